"""float32 X with values y of more digits: models learn rounded values, and every score is one of y as it was given.

All values lie a little below the middle between two numbers of single precision, so that rounding moves all of them
down: scores by rounded values would be off by about ``ROUNDING``. Refits in single precision would be off by as much,
since their intercepts are rounded too. So scores are those of the held-out predictions, and the predictions are
compared with refits in double precision that learn the rounded values about their centre.
"""

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVR, FoldlessSearchCV
from foldless.model_selection import (
    Metric,
    Optimizer,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    nested_cross_validate,
    permutation_test_score,
)
from support.refits import held_out_rows, labelings, relabelled

N = 240
CENTRE = 1e6
STEP = float(np.spacing(np.float32(CENTRE)))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).astype(np.float32)
Y = CENTRE + STEP * (np.round(X[:, 0] + 0.5 * RNG.normal(size=N)) + 0.45)
ROUNDING = np.square(Y - Y.astype(np.float32)).mean()
CONFOUND = RNG.normal(size=(N, 1))
STRATA = np.arange(N) % 2
FOLDS = list(skl.KFold(12).split(X))
ERROR = "neg_mean_squared_error"
PERMUTATIONS = {"cv": FOLDS, "n_permutations": 3, "random_state": 1}
every_model = pytest.mark.parametrize(
    "model", [LSSVR("linear"), LSSVR(gamma=0.05), Ridge()], ids=["linear", "rbf", "Ridge"]
)


def median_of_truth(predictions, truth):
    """A score that rounding of predictions, which may be as large as that of y, has no part in."""
    assert predictions.dtype == np.float32
    return np.median(truth, axis=2).mean(1)


MEDIAN = Metric(median_of_truth, labels=False)


def expected_medians(confounds=None, strata=None):
    """This score of the labelings of ``PERMUTATIONS``."""
    values = [relabelled(Y, order, confounds, strata) for order in labelings(N, 3, strata, 1)]
    return [np.mean([np.median(y[test]) for _, test in FOLDS]) for y in values]


def predictions_of_refits(model, splits=FOLDS):
    """Held-out predictions of the rounded values, in double precision."""
    rounded = Y.astype(np.float32).astype(float) - CENTRE
    return held_out_rows(model, X.astype(float), rounded, splits, "predict") + CENTRE


def error_of(model, y, splits=FOLDS, **options):
    """The mean squared error of the held-out predictions of y."""
    return mean_squared_error(y, cross_val_predict(model, X, y, cv=splits, **options))


def assert_error(actual, expected):
    """Near enough for none of it to be by rounded values."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=0.4 * ROUNDING)


@every_model
def test_cross_validated_scores_are_those_of_y(model):
    predictions = cross_val_predict(model, X, Y, cv=FOLDS)
    assert predictions.dtype == np.float32
    assert np.abs(predictions - predictions_of_refits(model)).max() <= 2 * STEP
    expected = [-mean_squared_error(Y[test], predictions[test]) for _, test in FOLDS]
    for scores in (
        cross_val_score(model, X, Y, cv=FOLDS, scoring=ERROR),
        cross_validate(model, X, Y, cv=FOLDS, scoring=[ERROR])[f"test_{ERROR}"],
    ):
        np.testing.assert_allclose(scores, expected, rtol=1e-6)


@pytest.mark.parametrize("model", [LSSVR("linear"), LSSVR(gamma=0.05)], ids=["linear", "rbf"])
def test_the_leave_one_out_score_is_that_of_y(model):
    model.fit(X, Y)
    assert model.loo_predict().dtype == np.float32
    assert model.predict(X).dtype == np.float32
    assert model.loo_score_ == pytest.approx(r2_score(Y, model.loo_predict()), rel=1e-12)
    splits = list(skl.LeaveOneOut().split(X))
    assert_error((1 - model.loo_score_) * Y.var(), error_of(model, Y, splits))


def test_the_leave_one_out_score_after_updates_is_that_of_y():
    model, expected = LSSVR(gamma=0.05).fit(X[:-20], Y[:-20]), LSSVR(gamma=0.05).fit(X[30:], Y[30:])
    model.partial_fit(X[-20:], Y[-20:]).forget(np.arange(30))
    assert_error((1 - model.loo_score_) * Y.var(), (1 - expected.loo_score_) * Y.var())
    assert model.loo_score_ == pytest.approx(r2_score(Y[30:], model.loo_predict()), rel=1e-12)


@every_model
@pytest.mark.parametrize(
    ("options", "strata"),
    [
        ({}, None),
        ({"null": STRATA}, STRATA),
        ({"confounds": CONFOUND}, None),
        ({"params": {"sample_weight": 1.0 + STRATA}}, None),
    ],
    ids=["plain", "strata", "confounds", "weights"],
)
def test_permutation_tests_score_y(model, options, strata):
    result = permutation_test_score(model, X, Y, **PERMUTATIONS, scoring=MEDIAN, **options)
    expected = expected_medians(options.get("confounds"), strata)
    np.testing.assert_allclose(np.r_[result[0], result[1]], expected, rtol=0, atol=1e-2 * STEP)
    assert np.ptp(expected) > 1e-2 * STEP


@every_model
def test_errors_of_permutation_tests_are_those_of_y(model):
    result = permutation_test_score(model, X, Y, **PERMUTATIONS, scoring=ERROR)
    assert_error(-np.r_[result[0], result[1]], [error_of(model, Y[order]) for order in labelings(N, 3, None, 1)])


def test_permutation_tests_with_splits_that_move_score_y():
    groups = np.arange(N) % 24
    options = {"cv": skl.GroupKFold(8), "groups": groups, "n_permutations": 3, "null": "resplit", "scoring": MEDIAN}
    result = permutation_test_score(LSSVR(gamma=0.05), X, Y, **options)
    expected = np.mean([np.median(Y[test]) for _, test in skl.GroupKFold(8).split(X, Y, groups)])
    np.testing.assert_allclose(np.r_[result[0], result[1]], expected, rtol=0, atol=1e-2 * STEP)


def test_permutation_tests_of_families_score_y():
    model, family = LSSVR(gamma=0.05), np.stack([X, X[:, ::-1]], 2)
    expected = np.array(expected_medians())
    for generalise in (False, True):
        result = permutation_test_score(model, family, Y, **PERMUTATIONS, scoring=MEDIAN, generalise=generalise)
        np.testing.assert_allclose(np.ravel(result[0]), expected[0], rtol=0, atol=1e-2 * STEP)
        actual = result[1].reshape(3, -1)
        np.testing.assert_allclose(actual.T, [expected[1:]] * actual.shape[1], rtol=0, atol=1e-2 * STEP)


def test_permutation_tests_of_searches_score_y():
    search = FoldlessSearchCV(LSSVR(gamma=0.05), {"alpha": [1.0]}, cv=skl.KFold(3))
    result = permutation_test_score(search, X, Y, **PERMUTATIONS, scoring=MEDIAN)
    np.testing.assert_allclose(np.r_[result[0], result[1]], expected_medians(), rtol=0, atol=1e-2 * STEP)


@every_model
@pytest.mark.parametrize("cv", [None, skl.KFold(12)], ids=["each alone", "folds"])
def test_searches_judge_every_candidate_by_y(model, cv):
    splits = list((cv or skl.LeaveOneOut()).split(X))
    search = FoldlessSearchCV(model, {"alpha": [1.0, 100.0]}, cv=cv).fit(X, Y)
    refits = [predictions_of_refits(clone(model).set_params(alpha=alpha), splits) for alpha in (1.0, 100.0)]
    assert_error(search.cv_results_["mean_test_criterion"], [mean_squared_error(Y, values) for values in refits])
    assert search.predict(X).dtype == np.float32
    scored = FoldlessSearchCV(model, {"alpha": [1.0, 100.0]}, cv=FOLDS, scoring=MEDIAN).fit(X, Y)
    expected = np.mean([np.median(Y[test]) for _, test in FOLDS])
    np.testing.assert_allclose(scored.cv_results_["mean_test_score"], expected, rtol=0, atol=1e-2 * STEP)


def test_searches_behind_steps_of_each_training_part_judge_by_y():
    search = FoldlessSearchCV(make_pipeline(StandardScaler(), LSSVR("linear", alpha=1.0)), {}, cv=skl.KFold(12))
    search.set_params(steps="each").fit(X, Y)
    expected = predictions_of_refits(search.estimator, list(skl.KFold(12).split(X)))
    assert_error(search.cv_results_["mean_test_criterion"], [mean_squared_error(Y, expected.astype(np.float32))])


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("cv", [None, skl.KFold(12)], ids=["each alone", "folds"])
def test_continuous_searches_judge_by_y(method, cv):
    optimizer = Optimizer(method=method, max_iter=3)
    search = FoldlessSearchCV(LSSVR(gamma=0.05), cv=cv, method=optimizer).fit(X, Y)
    expected = predictions_of_refits(search.best_estimator_, list((cv or skl.LeaveOneOut()).split(X)))
    assert_error(search.best_criterion_, mean_squared_error(Y, expected))


def test_nested_cross_validation_scores_y():
    search = FoldlessSearchCV(LSSVR(gamma=0.05), {"alpha": [1.0]})
    result = nested_cross_validate(search, X, Y, cv=FOLDS, scoring=ERROR)
    assert result.predictions[0].dtype == np.float32
    parts = zip(FOLDS, result.predictions, strict=True)
    np.testing.assert_allclose(result.test_score, [-mean_squared_error(Y[test], found) for (_, test), found in parts])
