"""Single precision stays single, near and finite."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

from foldless import LSSVR
from foldless.model_selection import cross_val_predict
from support.extremes import GAMMA, design, estimator_and_targets, every_kernel, every_kind, every_penalty, loo_values
from support.tolerances import assert_near


@pytest.mark.many_cases
@every_kind
@every_kernel
@every_penalty
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("alpha", [1.0, 10.0])
def test_single_precision_keeps_three_digits(kind, kernel, penalty, form, alpha):
    X, *ys = design("few features")
    model, y, method = estimator_and_targets(kind, X, *ys, kernel=kernel, gamma=GAMMA, alpha=alpha, penalty=penalty)
    expected = loo_values(model.fit(X, y))
    folds = KFold(6)
    expected_in_folds = cross_val_predict(model, X, y, cv=folds, method=method)
    low = form(X.astype(np.float32))
    assert_near(loo_values(model.fit(low, y)), expected, 1e-3)
    assert_near(cross_val_predict(model, low, y, cv=folds, method=method), expected_in_folds, 1e-3)


@every_kind
@every_kernel
@every_penalty
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_single_precision_stays_single(kind, kernel, penalty, form):
    X, *ys = design("few features")
    model, y, method = estimator_and_targets(kind, X, *ys, kernel=kernel, gamma=GAMMA, penalty=penalty)
    low = form(X.astype(np.float32))
    assert loo_values(model.fit(low, y)).dtype == np.float32
    assert getattr(model, method)(low).dtype == np.float32
    assert model.dual_coef_.dtype == np.float32


@pytest.mark.many_cases
@every_kind
@every_kernel
@every_penalty
@pytest.mark.parametrize("rows", ["few features", "duplicated rows", "all of these"])
@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")
def test_single_precision_stays_finite_at_any_alpha(kind, kernel, penalty, rows, alpha):
    X, *ys = design(rows)
    model, y, method = estimator_and_targets(kind, X, *ys, kernel=kernel, gamma=GAMMA, alpha=alpha, penalty=penalty)
    low = X.astype(np.float32)
    model.fit(low, y)
    assert np.isfinite(loo_values(model)).all()
    assert np.isfinite(getattr(model, method)(low)).all()


def test_the_leave_one_out_score_of_values_far_from_zero_keeps_its_digits():
    """Values that differ by one unit in the last place: their mean lies between two numbers of single precision."""
    X, *_ = design("few features")
    y = np.float32(1e5) + np.float32(2.0**-7) * (np.arange(len(X)) % 3 == 0)
    model = LSSVR(gamma=GAMMA).fit(X.astype(np.float32), y.astype(np.float32))
    assert model.loo_score_ == pytest.approx(r2_score(y.astype(float), model.loo_predict().astype(float)))
