"""Targets far from zero lose no digits in held-out predictions."""

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from foldless import LSSVR, FoldlessSearchCV
from foldless.model_selection import cross_val_predict
from support.refits import held_out_rows
from support.tolerances import assert_close


def far_targets(offset, dtype="float64", n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)).astype(dtype)
    return X, (offset + X[:, 0] + 0.3 * rng.normal(size=n)).astype(dtype)


REGRESSIONS = {
    "Ridge": Ridge(),
    "linear": LSSVR("linear"),
    "rbf": LSSVR(gamma=0.1),
    "coefficients": LSSVR(gamma=0.1, penalty="coef"),
}


@pytest.mark.many_cases
@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize("cv", [skl.LeaveOneOut(), skl.KFold(20)], ids=["each alone", "folds"])
@pytest.mark.parametrize(("offset", "dtype"), [(1e5, "float32"), (1e13, "float64"), (-1e10, "float64")])
def test_predictions_keep_the_digits_that_targets_far_from_zero_leave_them(name, cv, offset, dtype):
    estimator = REGRESSIONS[name]
    X, y = far_targets(offset, dtype)
    actual = cross_val_predict(estimator, X, y, cv=cv)
    centre = y.mean()
    near = y.astype(float) - centre  # as many digits as there are: targets about their mean, in double precision
    found = held_out_rows(estimator, X.astype(float), near, cv.split(X), "predict") + centre
    expected = found.astype(dtype)
    spacing = np.spacing(np.abs(y).max())
    assert np.abs(actual - expected).max() <= 2 * spacing + (1e-3 if dtype == "float32" else 1e-8)
    assert r2_score(y, actual) == pytest.approx(r2_score(y, expected), abs=0.02)


def test_ridge_on_targets_far_from_zero_has_as_many_different_predictions_as_scikit_learn():
    X, y = far_targets(1e5, "float32")
    ours, theirs = (each(Ridge(), X, y, cv=skl.LeaveOneOut()) for each in (cross_val_predict, skl.cross_val_predict))
    assert abs(len(np.unique(ours)) - len(np.unique(theirs))) <= 10
    assert r2_score(y, ours) == pytest.approx(r2_score(y, theirs), abs=2e-3)


def test_a_search_on_targets_far_from_zero_chooses_as_on_centred_ones():
    X, y = far_targets(1e13)
    grid = {"alpha": np.logspace(-3, 3, 7).tolist()}
    for cv in (None, 10):
        far, near = (FoldlessSearchCV(LSSVR(gamma=0.1), grid, cv=cv).fit(X, t) for t in (y, y - 1e13))
        assert_close(far.cv_results_["mean_test_criterion"], near.cv_results_["mean_test_criterion"], rtol=1e-8)
        assert far.best_params_ == near.best_params_
