"""Bad arguments and data of permutation tests are named."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut

from foldless import LSSVC, LSSVR
from foldless.model_selection import WholeGroups, permutation_test_score
from support.permutation import (
    BINARY,
    CODES,
    CONFOUNDS,
    FOLDS,
    GROUPS,
    LABELS,
    MISSING,
    STRATA,
    VALUES,
    WEIGHT,
    N,
    X,
    check_scores,
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_permutations": -1}, "n_permutations=-1 must be an integer of at least 0"),
        ({"n_permutations": 2.5}, "n_permutations=2.5 must be"),
        ({"n_permutations": True}, "n_permutations=True must be"),
        ({"scoring": ["accuracy", "accuracy"]}, "scoring=.* must be a score, a list of different names, or a dict"),
        ({"scoring": {}}, "scoring=.* must be a score"),
        ({"scoring": "nonsense"}, "scoring"),
        ({"scoring": "correlation"}, "scoring='correlation' is for values"),
        ({"scoring": "neg_log_loss"}, "scoring='neg_log_loss' needs probabilities"),
        ({"confounds": CONFOUNDS[1:]}, "confounds has 39 rows and X has 40"),
        ({"confounds": np.full((N, 1), np.nan)}, "confounds: .*NaN"),
        ({"confounds": np.ones((N, 1))}, "confounds: column 0 is a linear combination of the intercept"),
        ({"cv": []}, "cv holds no split"),
        ({"cv": [(np.arange(30), [])]}, "cv: split 0 trains on 30 rows and tests 0"),
        ({"cv": [FOLDS[0], ([], np.arange(30))]}, "cv: split 1 trains on 0 rows and tests 30"),
        ({"cv": [(np.arange(30), np.arange(30, 50))]}, "cv: .* out of bounds"),
        ({"cv": 1}, "cross-validation"),
        ({"cv": "five"}, "cv"),
        ({"params": {"sample_weight": WEIGHT[1:]}}, "sample_weight"),
        ({"params": {"sample_weight": -WEIGHT}}, "sample_weight"),
        ({"params": {"confounds": CONFOUNDS}}, "params: give confounds as confounds="),
        ({"params": {"sample_weight": np.where(WEIGHT, WEIGHT, np.nan)}}, "sample_weight"),
        ({"generalise": True}, "generalise=True needs a family"),
        ({"random_state": "seed"}, "seed"),
        ({"groups": GROUPS[1:]}, "inconsistent numbers of samples"),
        ({"null": STRATA[1:]}, r"null of shape \(39,\) is not possible here. Use None, 'within_test_sets', "),
        ({"null": np.column_stack([GROUPS, GROUPS])}, r"null of shape \(40, 2\).* an array of shape \(40,\)"),
        ({"null": np.where(GROUPS > 3, np.nan, 1.0)}, "null: the strata hold NaN"),
        ({"null": "strata"}, "null='strata' is not possible here. Use None, 'within_test_sets'"),
        ({"null": 3}, "null=3 is not possible here"),
        ({"null": WholeGroups}, "null=<class .* an object with a method orders"),
        ({"null": WholeGroups(GROUPS[1:])}, r"null=WholeGroups\(groups\): groups have shape \(39,\)"),
        ({"null": WholeGroups(GROUPS > 2)}, r"null=WholeGroups\(groups\): groups have \d+ to \d+ rows"),
        ({"null": "within_test_sets", "cv": FOLDS[1:]}, "null='within_test_sets' needs splits that test every"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises((ValueError, AttributeError), match=message):
        permutation_test_score(LSSVC(), X, LABELS, **{"n_permutations": 2, **options})


@pytest.mark.parametrize(
    ("estimator", "features", "y", "message"),
    [
        (LSSVC(), X, None, "y=None: there are no labels to permute"),
        (LSSVC(), X[1:], LABELS, "inconsistent numbers of samples"),
        (LSSVC(), X[None, None], LABELS, "X has 4 axes"),
        (LSSVC(), X, np.zeros(N), "y holds one class only"),
        (LSSVC(), X, np.column_stack([CODES, CODES]), "y should be a 1d array"),
        (LSSVC(), MISSING, LABELS, "X contains NaN"),
        (LSSVR(), X, np.where(CODES, VALUES, np.nan), "y contains NaN"),
        (LSSVR(), X, LABELS, "y must hold numbers"),
        (LSSVC(alpha=-1.0), X, LABELS, "alpha=-1.0 must be"),
        (LSSVC("spline"), X, LABELS, "kernel='spline' is unknown"),
    ],
    ids=["no y", "rows", "axes", "one class", "two columns", "missing", "missing y", "strings", "alpha", "kernel"],
)
def test_bad_data_are_named(estimator, features, y, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels that do not change are pointed out first
        with pytest.raises(ValueError, match=message):
            permutation_test_score(estimator, features, y, n_permutations=2)


class Epochs:
    """Looks like those of MNE."""

    def get_data(self):
        return X[:, :, None]


def test_epochs_objects_are_refused_with_a_hint_to_their_array():
    with pytest.raises(ValueError, match=r"X is Epochs; give its array, X.get_data\(\)"):
        permutation_test_score(LSSVC(), Epochs(), LABELS)


@pytest.mark.parametrize("scoring", ["roc_auc", "r2", "correlation"])
def test_scores_of_a_single_test_row_are_refused(scoring):
    labels = scoring == "roc_auc"
    with pytest.raises(ValueError, match="needs at least 2 held-out rows and cv leaves out 1"):
        permutation_test_score(
            LSSVC() if labels else LSSVR(), X, BINARY if labels else VALUES, cv=LeaveOneOut(), scoring=scoring
        )


def test_r2_of_two_test_rows_equals_refits_and_warns_of_them():
    splits = [(np.arange(2, N), np.arange(2)), (np.arange(N - 2), np.arange(N - 2, N))]
    with pytest.warns(UserWarning, match="scoring='r2' of test parts with 2 rows"):
        check_scores(LSSVR(gamma=0.1), X, VALUES, cv=splits, scoring="r2")


def test_metrics_of_the_wrong_kind_of_target_are_refused():
    with pytest.raises(ValueError, match="scoring='ber' is for class labels"):
        permutation_test_score(LSSVR(), X, VALUES, scoring="ber")
    with pytest.raises(ValueError, match="multi_class"):
        permutation_test_score(LSSVC(), X, LABELS, scoring="roc_auc")
