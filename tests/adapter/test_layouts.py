"""Precomputed kernels of any layout, dtypes and weights that lose their digits."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import model_selection as skl
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier

import foldless.model_selection as fl
from foldless import LSSVC, LSSVR
from foldless.model_selection import RefitWarning
from support.cross_validation import CODES, KFDA, VALUES, N, X
from support.tolerances import assert_close

K = np.exp(-0.1 * np.square(X[:, None] - X).sum(2))
PRECOMPUTED = [
    (LSSVR("precomputed"), VALUES),
    (LSSVC("precomputed"), CODES),
    (KFDA("precomputed"), CODES),
    (KernelRidge(kernel="precomputed"), VALUES),
]
NAMED = pd.DataFrame(K, columns=[f"row {number}" for number in range(N)])
LAYOUTS = {"list": K.tolist(), "DataFrame": pd.DataFrame(K), "DataFrame with names": NAMED, "sparse": sp.csr_array(K)}


def mean_prediction(model, X, y):
    return float(np.mean(model.predict(X)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("estimator", "y"), PRECOMPUTED, ids=lambda case: type(case).__name__)
def test_precomputed_kernels_of_any_layout_reach_scorers_and_estimators(estimator, y, layout):
    options = {"cv": skl.KFold(3), "scoring": mean_prediction, "error_score": "raise"}
    if layout == "sparse" and isinstance(estimator, KernelRidge):
        pytest.skip("scikit-learn's KernelRidge solves dense kernels only")
    ours = fl.cross_validate(estimator, LAYOUTS[layout], y, return_estimator=True, **options)
    theirs = skl.cross_validate(estimator, K, y, return_estimator=True, **options)
    assert_close(ours["test_score"], theirs["test_score"])
    train, test = next(options["cv"].split(K))
    part = NAMED.iloc[test, train] if layout == "DataFrame with names" else K[test][:, train]
    expected = theirs["estimator"][0].predict(K[test][:, train])
    np.testing.assert_allclose(ours["estimator"][0].predict(part), expected, rtol=1e-8)


@pytest.mark.parametrize("function", [fl.cross_val_score, fl.cross_val_predict, fl.explain])
@pytest.mark.parametrize("shape", [(N, N - 5), (N, 2 * N)])
def test_a_precomputed_kernel_that_is_not_square_is_refused(function, shape):
    for estimator, y in PRECOMPUTED:
        with pytest.raises(ValueError, match=r"must be a square matrix: X has shape \(30,"):
            function(estimator, np.resize(K, shape), y, cv=3)


def test_kernel_ridge_solves_a_kernel_that_is_not_symmetric_as_it_is():
    """scikit-learn does so, and P cannot: refits, with the reason."""
    lopsided, estimator = K.copy(), KernelRidge(kernel="precomputed")
    lopsided[0, 1] += 0.5
    path = fl.explain(estimator, lopsided, VALUES, cv=3)
    assert path.kind == "refit"
    assert "the precomputed kernel is not symmetric" in path.reason
    with pytest.warns(RefitWarning, match="is not symmetric"):
        ours = fl.cross_val_predict(estimator, lopsided, VALUES, cv=3)
    np.testing.assert_array_equal(ours, skl.cross_val_predict(estimator, lopsided, VALUES, cv=3))


@pytest.mark.parametrize("estimator", [Ridge(), RidgeClassifier(), KernelRidge(), KernelRidge(kernel="rbf")], ids=str)
def test_predictions_have_scikit_learns_dtype(estimator):
    labelled = isinstance(estimator, RidgeClassifier)
    method = "decision_function" if labelled else "predict"
    for x_dtype in (np.float32, np.float64, int):
        for y_dtype in (np.float32, np.float64, np.int8, int, bool):
            data, y = X.astype(x_dtype), (CODES > 0 if labelled else 10 * VALUES).astype(y_dtype)
            ours = fl.cross_val_predict(estimator, data, y, cv=3, method=method)
            theirs = skl.cross_val_predict(estimator, data, y, cv=3, method=method)
            assert ours.dtype == theirs.dtype, (x_dtype, y_dtype)
            np.testing.assert_allclose(ours, theirs, atol=1e-3)


EVERYONE = [(LSSVR(), VALUES), (LSSVC(), CODES), (KFDA(), CODES), (KernelRidge(), VALUES), (Ridge(), VALUES)]


@pytest.mark.parametrize(("estimator", "y"), [*EVERYONE, (RidgeClassifier(), CODES)], ids=str)
def test_weights_that_lose_their_digits_are_refused(estimator, y):
    """One such weight is as good as none."""
    estimator = estimator.set_params(gamma=0.1) if hasattr(estimator, "gamma") else estimator
    with pytest.raises(ValueError, match="sample_weight: its largest value is 1e-320, and float64 loses digits"):
        fl.cross_val_predict(estimator, X, y, cv=3, params={"sample_weight": np.full(N, 1e-320)})
    tiny, none = np.r_[1e-320, np.ones(N - 1)], np.r_[0.0, np.ones(N - 1)]
    ours, expected = (
        fl.cross_val_predict(estimator, X, y, cv=3, params={"sample_weight": weight}) for weight in (tiny, none)
    )
    assert_close(ours, expected)


def test_features_that_are_strings_are_refused_as_by_scikit_learn():
    for estimator in (Ridge(), KernelRidge(), RidgeClassifier()):
        for strings in (X.astype(str), X.astype(str).tolist()):
            with pytest.raises(ValueError, match="X holds strings"):
                fl.cross_val_predict(estimator, strings, CODES, cv=3)
