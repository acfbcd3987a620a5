"""A metric is one object, given as it is or listed: here one that nobody has, the geometric mean of the recalls."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, make_scorer, recall_score

from foldless import LSSVC, KernelFisherDiscriminant
from foldless._engine.permutation.metrics import Metric
from foldless._engine.permutation.nulls import Exchangeable
from foldless._engine.readout.codings import chosen_among_close
from foldless.estimators.metrics import METRICS
from foldless.model_selection import cross_val_score, cross_validate, permutation_test_score

N, M = 45, 12
RNG = np.random.default_rng(1)
Y = np.array(["ant", "bee", "cat"])[np.arange(N) % 3]
X = RNG.normal(size=(N, 4)) + (np.arange(N) % 3)[:, None] * [0.6, 0.0, -0.4, 0.0]
SPLITS = list(skl.KFold(5, shuffle=True, random_state=0).split(X))


def geometric_mean(D, codes):
    """Of all labelings at once, from decisions (b, k, t) and class numbers (b, t)."""
    right = chosen_among_close(D) == codes
    recalls = [(right & (codes == k)).sum(1) / np.maximum((codes == k).sum(1), 1) for k in range(D.shape[1])]
    return np.prod(recalls, axis=0) ** (1 / D.shape[1])


def geometric_mean_of_one(truth, predictions):
    """Of one labeling, from labels, with scikit-learn's recalls."""
    recalls = recall_score(truth, predictions, average=None, labels=["ant", "bee", "cat"], zero_division=0)
    return np.prod(recalls) ** (1 / 3)


GEOMETRIC_MEAN = Metric(geometric_mean, True, geometric_mean_of_one)


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    monkeypatch.setitem(METRICS, "geometric_mean", GEOMETRIC_MEAN)


either_way = pytest.mark.parametrize("scoring", ["geometric_mean", GEOMETRIC_MEAN], ids=["by name", "as it is"])


@either_way
@pytest.mark.parametrize("estimator", [LSSVC(alpha=0.5), KernelFisherDiscriminant(alpha=0.5)], ids=["LSSVC", "KFDA"])
def test_a_new_metric_of_all_permutations_equals_refits_one_by_one(estimator, scoring):
    estimator.set_params(gamma=0.2)
    result = permutation_test_score(estimator, X, Y, cv=SPLITS, n_permutations=M, scoring=scoring)
    assert result.path.reason.startswith("permutations are columns")
    assert result.scoring == "geometric_mean"
    scorer = make_scorer(geometric_mean_of_one)
    orders = [np.arange(N), *Exchangeable().orders(N, M, 0)]
    for order, found in zip(orders, [result.score, *result.permutation_scores], strict=True):
        expected = skl.cross_val_score(clone(estimator), X, Y[order], cv=SPLITS, scoring=scorer)
        assert_allclose(found, expected.mean(), rtol=1e-12, atol=1e-15)


@either_way
def test_a_new_metric_gives_the_p_value_of_scikit_learns_test(scoring):
    options = {"cv": skl.StratifiedKFold(3), "n_permutations": M, "random_state": 3}
    ours = permutation_test_score(LSSVC(gamma=0.2), X, Y, scoring=scoring, null="resplit", **options)
    scorer = make_scorer(geometric_mean_of_one)
    theirs = skl.permutation_test_score(LSSVC(gamma=0.2), X, Y, scoring=scorer, **options)
    assert_allclose(ours.permutation_scores, theirs[1], rtol=1e-12, atol=1e-15)
    assert ours.pvalue == theirs[2]


@either_way
def test_a_new_metric_of_labels_refuses_values(scoring):
    values = np.arange(N, dtype=float)
    with pytest.raises(ValueError, match="scoring='geometric_mean' is for class labels"):
        permutation_test_score(Ridge(), X, values, cv=SPLITS, scoring=scoring)


def test_a_new_metric_is_computed_one_by_one_where_columns_do_not_do():
    model = LSSVC(gamma=0.2, class_weight="balanced")  # weights follow the labels
    options = {"cv": SPLITS, "n_permutations": 3, "random_state": 1}
    found = permutation_test_score(model, X, Y, scoring=GEOMETRIC_MEAN, **options)
    named = permutation_test_score(model, X, Y, scoring=make_scorer(geometric_mean_of_one), **options)
    assert_allclose(found.permutation_scores, named.permutation_scores, rtol=1e-12, atol=1e-15)


def test_a_metric_of_two_rows_refuses_leave_one_out():
    metric = replace(GEOMETRIC_MEAN, rows=2)
    with pytest.raises(ValueError, match="scoring='geometric_mean' needs at least 2 held-out rows"):
        permutation_test_score(LSSVC(), X, Y, cv=skl.LeaveOneOut(), scoring=metric)


def test_a_metric_scores_the_splits_of_a_cross_validation():
    scorer, options = make_scorer(geometric_mean_of_one), {"cv": SPLITS}
    expected = skl.cross_val_score(LSSVC(gamma=0.2), X, Y, scoring=scorer, **options)
    assert_allclose(cross_val_score(LSSVC(gamma=0.2), X, Y, scoring=GEOMETRIC_MEAN, **options), expected, rtol=1e-12)
    several = {"mean": GEOMETRIC_MEAN, "accuracy": "accuracy"}
    found = cross_validate(LSSVC(gamma=0.2), X, Y, scoring=several, **options)
    assert_allclose(found["test_mean"], expected, rtol=1e-12)
    with pytest.raises(ValueError, match="is of all held-out rows together; it is for permutation tests"):
        cross_val_score(LSSVC(), X, Y, scoring=replace(GEOMETRIC_MEAN, pooled=True))


def test_the_score_of_one_labeling_follows_from_a_metric_of_values():
    values = X[:, 0] + X[:, 1]
    least = Metric(lambda D, T: -np.abs(T - D).max((1, 2)), labels=False)
    expected = [-np.abs(model.predict(X[test]) - values[test]).max() for model, test in fitted_parts(values)]
    assert_allclose(cross_val_score(Ridge(), X, values, cv=SPLITS, scoring=least), expected, rtol=1e-9)
    found = permutation_test_score(Ridge(), X, values, cv=SPLITS, scoring=least, n_permutations=0)
    assert_allclose(found.score, np.mean(expected), rtol=1e-9)


def fitted_parts(values):
    return [(Ridge().fit(X[train], values[train]), test) for train, test in SPLITS]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((geometric_mean,), "labels=None must be True for a score of class labels or False"),
        ((geometric_mean, True), "sklearn_metric=None; a score of class labels needs"),
        (("accuracy", True, accuracy_score), "function='accuracy' must be a function"),
    ],
)
def test_what_a_metric_lacks_is_named(arguments, message):
    with pytest.raises(TypeError, match=message):
        Metric(*arguments)
