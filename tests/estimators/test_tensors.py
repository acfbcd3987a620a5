"""Tensors in, tensors out: fits, predictions and leave-one-out of LSSVC and LSSVR where X lies."""

import pickle

import numpy as np
import pytest

from foldless import LSSVC as Classifier
from foldless import LSSVR as Regressor
from foldless import AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.kernels import RBF, Nystroem
from foldless.model_selection import cross_val_predict, cross_val_score
from support.arrays import Arrays
from support.tolerances import assert_close

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
X[1] = X[0]
CODES = RNG.integers(0, 3, N)
X += CODES[:, None]
VALUES = X[:, 0] + RNG.normal(size=N)
NEW = RNG.normal(size=(7, 4))
W = np.where(np.arange(N) % 9 == 8, 0.0, RNG.uniform(0.5, 2.0, N))
AGE = RNG.normal(size=(N, 1))

MODELS = {
    "rbf": {},
    "laplacian": {"kernel": "laplacian", "gamma": 0.2},
    "poly": {"kernel": "poly", "gamma": [0.1, 0.2, 0.1, 0.3], "degree": 2},
    "linear": {"kernel": "linear"},
    "cosine": {"kernel": "cosine", "alpha": 1e-3},
    "no intercept": {"fit_intercept": False},
    "landmarks": {"kernel": Nystroem(RBF("scale"), 10)},
    "penalty of coefficients": {"penalty": "coef"},
    "sum": {"kernel": RBF(0.1) + 0.5 * RBF(1.0)},
}
every_model = pytest.mark.parametrize("params", MODELS.values(), ids=MODELS)


@pytest.fixture(params=["float64", "float32"])
def arrays(request):
    return Arrays.of("torch", request.param)


def assert_same(arrays, found, expected):
    """A tensor where X lies, equal to the values of a model of NumPy in double precision."""
    assert arrays.are(found)
    assert_close(found.cpu().numpy(), expected, rtol=100 * arrays.rtol, scale=np.abs(expected).max())


def options_of(weights, confounds):
    return {"sample_weight": W if weights else None, "confounds": AGE if confounds else None}


@pytest.mark.parametrize(("weights", "confounds"), [(False, False), (True, False), (True, True)])
@every_model
def test_classifiers_of_tensors_equal_those_of_numpy(params, weights, confounds, arrays):
    options = options_of(weights, confounds)
    model = Classifier(**params).fit(arrays(X), arrays(CODES), **options)
    expected = Classifier(**params).fit(X, CODES, **options)
    assert_same(arrays, model.decision_function(arrays(NEW)), expected.decision_function(NEW))
    assert_same(arrays, model.loo_decision_function(), expected.loo_decision_function())
    assert_same(arrays, model.predict(arrays(NEW)), expected.predict(NEW))
    assert_same(arrays, model.loo_predict(), expected.loo_predict())
    assert model.loo_score_ == expected.loo_score_
    assert model.stratified_loo_score_ == expected.stratified_loo_score_
    assert model.score(arrays(X), arrays(CODES)) == expected.score(X, CODES)
    assert_same(arrays, model.intercept_, expected.intercept_)


@pytest.mark.parametrize(("weights", "confounds"), [(False, False), (True, False), (True, True)])
@every_model
def test_regressors_of_tensors_equal_those_of_numpy(params, weights, confounds, arrays):
    options = options_of(weights, confounds)
    model = Regressor(**params).fit(arrays(X), arrays(VALUES), **options)
    expected = Regressor(**params).fit(X, VALUES, **options)
    assert_same(arrays, model.predict(arrays(NEW)), expected.predict(NEW))
    assert_same(arrays, model.loo_predict(), expected.loo_predict())
    assert model.loo_score_ == pytest.approx(expected.loo_score_, rel=1e-2 if arrays.dtype == "float32" else 1e-9)
    assert model.score(arrays(X), arrays(VALUES)) == pytest.approx(expected.score(X, VALUES), rel=1e-3)


def test_two_classes_probabilities_and_several_outputs(arrays):
    model = Classifier(calibration="sigmoid", class_weight="balanced").fit(arrays(X), CODES > 0)
    expected = Classifier(calibration="sigmoid", class_weight="balanced").fit(X, CODES > 0)
    assert_same(arrays, model.decision_function(arrays(NEW)), expected.decision_function(NEW))
    assert_same(arrays, model.predict_proba(arrays(NEW)), expected.predict_proba(NEW))
    assert_same(arrays, model.loo_predict_proba(), expected.loo_predict_proba())
    assert_same(arrays, model.predict_log_proba(arrays(NEW)), expected.predict_log_proba(NEW))
    two = Regressor().fit(arrays(X), np.column_stack([VALUES, -VALUES]))
    assert_same(arrays, two.loo_predict()[:, 1], -Regressor().fit(X, VALUES).loo_predict())
    assert_same(arrays, Regressor("linear").fit(arrays(X), VALUES).coef_, Regressor("linear").fit(X, VALUES).coef_)


def test_labels_are_as_y_was_given(arrays):
    names = np.array(["a", "b", "c"])[CODES]
    assert Classifier().fit(arrays(X), names).predict(arrays(NEW)).dtype.kind == "U"
    assert isinstance(Classifier().fit(arrays(X), CODES).loo_predict(), np.ndarray)
    model = Classifier().fit(arrays(X), arrays(CODES))
    assert arrays.are(model.predict(arrays(NEW)))
    assert isinstance(model.fit(arrays(X), names).predict(arrays(NEW)), np.ndarray)


def test_a_precomputed_kernel_of_a_tensor(arrays):
    K = RBF(0.1).gram(X)
    model, expected = (Regressor("precomputed").fit(values, VALUES) for values in (arrays(K), K))
    assert_same(arrays, model.loo_predict(), expected.loo_predict())
    assert_same(arrays, model.predict(arrays(K[:3])), expected.predict(K[:3]))
    with pytest.raises(ValueError, match="not symmetric"):
        Regressor("precomputed").fit(arrays(K + np.triu(K, 1)), VALUES)


def test_models_of_tensors_are_pickled(arrays):
    model = Classifier().fit(arrays(X), CODES)
    restored = pickle.loads(pickle.dumps(model))
    for one, other in [
        (restored.decision_function(arrays(NEW)), model.decision_function(arrays(NEW))),
        (restored.loo_decision_function(), model.loo_decision_function()),
    ]:
        assert_same(arrays, one, other.cpu().numpy())


def test_the_tensor_given_stays_as_it_is(arrays):
    given = arrays(X)
    model = Regressor().fit(given, VALUES)
    before = model.predict(arrays(NEW)).cpu().numpy()
    given[:] = 0.0
    np.testing.assert_array_equal(model.predict(arrays(NEW)).cpu().numpy(), before)
    given.requires_grad_()
    assert not Regressor().fit(given + arrays(X), VALUES).loo_predict().requires_grad


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[:, 0], "2D array"),
        (lambda rows: rows[:0], "0 sample"),
        (lambda rows: rows[:, :0], "0 feature"),
        (lambda rows: rows / 0.0, "NaN, infinity"),
        (lambda rows: rows + 1j, "[Cc]omplex"),
        (lambda rows: rows[:5], "inconsistent numbers of samples"),
    ],
)
def test_bad_tensors_are_refused(change, message, arrays):
    with pytest.raises(ValueError, match=message):
        Regressor().fit(change(arrays(X)), VALUES)


def test_what_tensors_cannot_do_says_so(arrays):
    model = Regressor().fit(arrays(X), VALUES)
    calls = [
        (lambda: model.predict(X), "of the same kind"),
        (lambda: model.predict(arrays(X[:, :2])), "2 features"),
        (lambda: model.partial_fit(arrays(X), VALUES), "arrays of NumPy"),
        (lambda: model.forget([0]), "arrays of NumPy"),
        (lambda: model.predict_interval(arrays(X)), "arrays of NumPy"),
        (lambda: model.score_interval(), "arrays of NumPy"),
        (lambda: Regressor(standardize=True).fit(arrays(X), VALUES), "arrays of NumPy"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()


def test_others_take_tensors_as_arrays_of_numpy(arrays):
    rows, codes = arrays(X), CODES > 0
    for model in (KernelFisherDiscriminant(), AdaptiveKDA(), FoldlessSearchCV(Classifier(), {"alpha": [0.1, 1.0]})):
        found = model.fit(rows, codes).predict(arrays(NEW))
        np.testing.assert_array_equal(found, model.fit(X.astype(arrays.dtype), codes).predict(NEW.astype(arrays.dtype)))
    found = cross_val_predict(Regressor(), rows, arrays(VALUES), cv=5)
    expected = cross_val_predict(Regressor(), X, VALUES, cv=5)
    assert_close(found, expected, rtol=100 * arrays.rtol, scale=1.0)
    assert cross_val_score(Classifier(), rows, codes, cv=5).shape == (5,)
    fitted = Regressor().fit(X, VALUES)
    assert_close(fitted.predict(arrays(NEW)), fitted.predict(NEW), rtol=100 * arrays.rtol, scale=1.0)
