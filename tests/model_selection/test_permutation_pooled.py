"""R2 of all held-out rows together, the default of values, equals that of refits by every way to it."""

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.permutation.metrics import Metric, roc_auc
from foldless.model_selection import nested_cross_validate, permutation_test_score
from support.families import BINARY, CV, OUTPUTS, TIMES, VALUES, WEIGHT, N, X
from support.permutation import permutation_test_in_memory
from support.refits import labelings, score_of_splits, scores_of_labelings, scores_of_members
from support.tolerances import assert_close

SPLITS = list(CV.split(X))
ALONE = list(skl.LeaveOneOut().split(X))[::3]
TWICE = list(skl.RepeatedKFold(n_splits=7, n_repeats=2, random_state=0).split(X))
GRID = {"alpha": [0.1, 10.0]}
refits = pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")

WAYS = {
    "columns": (LSSVR(gamma=0.1), VALUES, SPLITS),
    "outputs": (Ridge(), OUTPUTS, SPLITS),
    "each row alone": (LSSVR(gamma=0.1), VALUES, ALONE),
    "rows tested twice": (LSSVR(gamma=0.1), VALUES, TWICE),
    "pipeline": (make_pipeline(StandardScaler(), Ridge()), VALUES, SPLITS),
    "refit": (SVR(), VALUES, SPLITS),
    "search": (FoldlessSearchCV(Ridge(), GRID), VALUES, SPLITS),
    "search, refitted": (make_pipeline(StandardScaler(), FoldlessSearchCV(Ridge(), GRID)), VALUES, SPLITS),
}


@refits
@pytest.mark.parametrize("way", WAYS)
def test_r2_of_all_held_out_rows_equals_refits(way):
    estimator, y, splits = WAYS[way]
    result = permutation_test_score(estimator, X, y, cv=splits, n_permutations=2)
    expected = scores_of_labelings(estimator, X, y, labelings(N, 2), splits=splits, scoring="r2_pooled")
    assert_close(np.r_[result.score, result.permutation_scores], expected)
    assert (result.scoring, result.greater_is_better) == ("r2_pooled", True)


def test_r2_of_all_held_out_rows_with_weights_equals_refits():
    options = {"cv": SPLITS, "n_permutations": 2, "params": {"sample_weight": WEIGHT}}
    result = permutation_test_score(Ridge(), X, VALUES, **options)
    orders = labelings(N, 2)
    expected = scores_of_labelings(Ridge(), X, VALUES, orders, splits=SPLITS, weight=lambda order: WEIGHT)
    assert_close(np.r_[result.score, result.permutation_scores], expected)


@pytest.mark.parametrize("memory_limit", [2**29, 1])
def test_r2_of_all_held_out_rows_at_other_members_equals_refits(memory_limit):
    options = {"cv": CV, "n_permutations": 2, "generalise": True}
    result = permutation_test_in_memory(memory_limit, Ridge(), TIMES, VALUES, **options)
    members = [TIMES[:, :, time] for time in range(TIMES.shape[2])]
    expected = [scores_of_members(Ridge(), members, VALUES[order], SPLITS) for order in labelings(N, 2)]
    assert_close(np.concatenate([result.score[None], result.permutation_scores]), np.array(expected))


def test_a_metric_of_your_own_may_be_of_all_held_out_rows():
    pooled = Metric(roc_auc, True, roc_auc_score, "decision_function", classes=2, pooled=True)
    result = permutation_test_score(LSSVC(gamma=0.1), X, BINARY, cv=ALONE, n_permutations=1, scoring=pooled)
    models = [LSSVC(gamma=0.1).fit(X[train], BINARY[train]) for train, _ in ALONE]
    rows = np.concatenate([test for _, test in ALONE])
    decision = [model.decision_function(X[[row]])[0] for model, row in zip(models, rows, strict=True)]
    assert_close(result.score, roc_auc_score(BINARY[rows], decision))


def test_splits_anew_keep_the_default_score_of_scikit_learn():
    cv = skl.KFold(2, shuffle=True, random_state=0)
    found = permutation_test_score(Ridge(), X, VALUES, cv=cv, n_permutations=2, null="resplit")
    theirs = skl.permutation_test_score(Ridge(), X, VALUES, cv=cv, n_permutations=2)
    assert found.scoring == "r2"
    assert_close(found.score, theirs[0])


class Largest(Ridge):
    """A regressor with a score of its own."""

    def score(self, X, y):
        return -np.abs(y - self.predict(X)).max()


@refits
def test_a_score_of_the_estimators_own_stays():
    result = permutation_test_score(Largest(), X, VALUES, cv=SPLITS, n_permutations=1)
    assert_close(result.score, skl.cross_val_score(Largest(), X, VALUES, cv=SPLITS).mean())


def test_scores_of_all_held_out_rows_are_for_permutation_tests():
    with pytest.raises(ValueError, match="scoring='r2_pooled' is of all held-out rows together"):
        nested_cross_validate(FoldlessSearchCV(Ridge(), GRID), X, VALUES, cv=CV, scoring="r2_pooled")
    with pytest.raises(ValueError, match="scoring='r2_pooled' is of all held-out rows together"):
        FoldlessSearchCV(Ridge(), GRID, cv=CV, scoring="r2_pooled").fit(X, VALUES)


def test_the_oracle_pools_what_it_is_given():
    class Half:
        def predict(self, rows):
            return rows / 2

    rows = np.arange(6.0)
    held = [(Half(), rows[:1], rows[:1]), (Half(), rows[1:], rows[1:])]
    assert score_of_splits("r2_pooled", None, held) == r2_score(rows, rows / 2)
