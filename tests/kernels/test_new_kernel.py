"""A kernel that the library does not know, with parameters nobody has heard of, defined here and used everywhere."""

import pickle
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.tuning.criteria import CRITERIA
from foldless._engine.tuning.descent import Objective
from foldless._engine.tuning.selection import Selection
from foldless._engine.tuning.space import Space
from foldless._sklearn.candidates import SearchData
from foldless.kernels import FeatureMap, Kernel, Number
from foldless.model_selection import Optimizer, cross_val_predict, nested_cross_validate, permutation_test_score


@dataclass(frozen=True)
class Length(Number):
    """A number, or "median": the median distance between rows."""

    def resolved(self, name, value, kernel, X, sample_weight):
        """A number > 0."""
        value = float(np.median(pdist(X))) if value == "median" else value
        return super().resolved(name, value, kernel, X, sample_weight)

    def from_data(self, value):
        """Whether it is "median"."""
        return value == "median"


@dataclass(frozen=True)
class RationalQuadratic(Kernel):
    """(1 + |x - z|^2 / (2 mixture length^2))^-mixture"""

    length: Annotated[float, Length(bounds=(0.1, 20.0), grid=(0.5, 1.0, 2.0, 4.0))] = 1.0
    mixture: Annotated[float, Number(bounds=(0.1, 50.0))] = 1.0

    def _base(self, X, Z):
        return 1 + cdist(X, X if Z is None else Z, "sqeuclidean") / (2 * self.mixture * self.length**2)

    def gram(self, X, Z=None):
        """The formula."""
        return self._base(X, Z) ** -self.mixture

    def diag(self, X):
        """Ones."""
        return np.ones(len(X))

    def pullback(self, R, X, K):
        """Sums of R dK/dlength and R dK/dmixture."""
        base = self._base(X, None)
        by_length = 2 * self.mixture * (base - 1) / (base * self.length)
        by_mixture = (base - 1) / base - np.log(base)
        return {"length": np.vdot(R, K * by_length), "mixture": np.vdot(R, K * by_mixture)}


RNG = np.random.default_rng(0)
N = 36
X = RNG.normal(size=(N, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0.3, "a", np.where(X[:, 2] > 0, "b", "c"))
BINARY = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0
VALUES = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
GRID = {"alpha": [0.01, 0.1, 1.0], "kernel__length": [0.5, 1.5, 4.0], "kernel__mixture": [0.5, 2.0]}
EVERY_ESTIMATOR = pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (LSSVC(RationalQuadratic(2.0, 0.7), alpha=0.1), LABELS),
        (LSSVR(RationalQuadratic(2.0, 0.7), alpha=0.1), VALUES),
        (KernelFisherDiscriminant(RationalQuadratic(2.0, 0.7), alpha=0.1), LABELS),
        (AdaptiveKDA(RationalQuadratic(2.0, 0.7), alpha=0.1), LABELS),
    ],
    ids=lambda each: type(each).__name__,
)


def formula(A, B):
    """The same kernel as a function."""
    return np.array([[(1 + np.sum((a - b) ** 2) / (2 * 0.7 * 2.0**2)) ** -0.7 for b in B] for a in A])


def outputs(model, rows):
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


@EVERY_ESTIMATOR
def test_fit_equals_the_kernel_as_a_function(estimator, y):
    model = clone(estimator).fit(X, y)
    other = clone(estimator).set_params(kernel=formula).fit(X, y)
    np.testing.assert_allclose(outputs(model, X[:5] + 0.1), outputs(other, X[:5] + 0.1), rtol=1e-9)
    assert model.kernel_ == RationalQuadratic(2.0, 0.7)


@EVERY_ESTIMATOR
def test_leave_one_out_equals_refits(estimator, y):
    model = clone(estimator).fit(X, y)
    found = model.loo_decision_function() if hasattr(model, "loo_decision_function") else model.loo_predict()
    for i in range(0, N, 7):
        rest = np.arange(N) != i
        np.testing.assert_allclose(found[i], outputs(clone(estimator).fit(X[rest], y[rest]), X[[i]])[0], atol=1e-9)


@EVERY_ESTIMATOR
def test_updates_equal_refits(estimator, y):
    model = clone(estimator).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]).forget(range(4))
    np.testing.assert_allclose(outputs(model, X), outputs(clone(estimator).fit(X[4:], y[4:]), X), atol=1e-8)
    model.set_params(kernel__length=3.0)
    with pytest.raises(ValueError, match="kernel__length: changed since the model was fitted"):
        model.partial_fit(X[:2], y[:2])


@EVERY_ESTIMATOR
def test_clones_and_pickles_are_the_same_model(estimator, y):
    model = clone(estimator).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(outputs(again, X), outputs(model, X))
    assert clone(model).get_params()["kernel__mixture"] == 0.7
    assert "kernel=RationalQuadratic(length=2.0, mixture=0.7)" in repr(clone(model))


def test_parameters_made_from_data_are_resolved_by_fit():
    model = LSSVC(RationalQuadratic("median")).fit(X, LABELS)
    assert model.kernel.length == "median"
    assert model.kernel_.length == np.median(pdist(X))
    assert LSSVC(RationalQuadratic("median")).fit(X, LABELS).unlearning_certificate().holds
    with pytest.warns(UserWarning, match="length='median' is resolved from the 4 rows of the first partial_fit"):
        LSSVR(RationalQuadratic("median")).partial_fit(X[:4], VALUES[:4])


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, "mean", None])
def test_impossible_values_are_refused(value):
    with pytest.raises(ValueError, match=r"length=.* must be a finite number > 0 for kernel='RationalQuadratic'"):
        LSSVC(RationalQuadratic(value)).fit(X, LABELS)


def test_unknown_parameters_are_refused():
    with pytest.raises(ValueError, match=r"Invalid parameter 'gamma' for kernel .*\['length', 'mixture'\]"):
        LSSVC(RationalQuadratic()).set_params(kernel__gamma=1.0)


# -- searches ----------------------------------------------------------------------------------------------------------


def press(estimator, y):
    """Mean squared leave-one-out residual of +-1 or of the values, by refits."""
    fits = np.array([outputs(clone(estimator).fit(np.delete(X, i, 0), np.delete(y, i)), X[[i]])[0] for i in range(N)])
    target = y if y.dtype.kind == "f" else np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    return np.square(target - fits).mean(0).sum()


@pytest.mark.parametrize(
    ("estimator", "y"), [(LSSVC(RationalQuadratic()), LABELS), (LSSVR(RationalQuadratic()), VALUES)]
)
def test_grid_search_equals_refits(estimator, y):
    grid = {"alpha": [0.1, 1.0], "kernel__length": [0.5, 2.0]}
    search = FoldlessSearchCV(estimator, grid).fit(X, y)
    for params, loss in zip(search.cv_results_["params"], search.cv_results_["mean_test_criterion"], strict=True):
        assert loss == pytest.approx(press(clone(estimator).set_params(**params), y), rel=1e-9)
    assert search.best_estimator_.kernel_.length == search.best_params_["kernel__length"]
    assert estimator.kernel == RationalQuadratic()


def test_default_grid_is_the_kernels_own():
    search = FoldlessSearchCV(LSSVC(RationalQuadratic())).fit(X, LABELS)
    assert {each["kernel__length"] for each in search.cv_results_["params"]} == {0.5, 1.0, 2.0, 4.0}
    assert set(search.best_params_) == {"alpha", "kernel__length"}


def test_gradient_equals_central_differences():
    task = SearchData(X, LABELS).task(LSSVC(RationalQuadratic(1.5, 0.8), alpha=0.3)).task
    space = Space(task.problem.kernel)
    objective = Objective(Selection.of(task, CRITERIA["press"]), space, None)
    x, h = space.pack(0.3, task.problem.kernel), 1e-5
    assert space.names == ("length", "mixture")
    differences = [(objective(x + h * e, False) - objective(x - h * e, False)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(objective(x)[1], differences, rtol=1e-6)


@pytest.mark.parametrize("method", ["gradient", "simplex"])
def test_continuous_searches_move_the_parameters_of_the_kernel(method):
    estimator = LSSVR(RationalQuadratic())
    search = FoldlessSearchCV(estimator, method=Optimizer(method, bounds={"kernel__mixture": (0.5, 5.0)})).fit(
        X, VALUES
    )
    assert set(search.best_params_) == {"alpha", "kernel__length", "kernel__mixture"}
    assert 0.5 <= search.best_params_["kernel__mixture"] <= 5.0
    assert search.best_criterion_ == pytest.approx(press(clone(search.best_estimator_), VALUES), rel=1e-6)
    assert search.best_criterion_ < press(estimator, VALUES)
    assert search.best_estimator_.kernel_.length == search.best_params_["kernel__length"]


def test_bounds_name_the_parameters_there_are():
    search = FoldlessSearchCV(LSSVR(RationalQuadratic()), method=Optimizer("gradient", bounds={"gamma": (0.1, 1.0)}))
    with pytest.raises(ValueError, match=r"'gamma'; .* are alpha, kernel__length and kernel__mixture"):
        search.fit(X, VALUES)


def test_nested_cross_validation_equals_a_double_loop():
    cv = StratifiedKFold(3)
    search = FoldlessSearchCV(LSSVC(RationalQuadratic()), GRID)
    result = nested_cross_validate(search, X, LABELS, cv=cv)
    for number, (train, test) in enumerate(cv.split(X, LABELS)):
        inner = clone(search).fit(X[train], LABELS[train])
        assert result.best_params[number] == inner.best_params_
        np.testing.assert_allclose(result.decision[number], inner.decision_function(X[test]), atol=1e-9)
        assert result.test_score[number] == inner.score(X[test], LABELS[test])


def test_permutation_test_of_a_search_equals_nested_cross_validation():
    grid = {"alpha": [0.1, 1.0], "kernel__length": [0.7, 3.0]}
    search = FoldlessSearchCV(LSSVC(RationalQuadratic()), grid)
    cv = list(StratifiedKFold(3).split(X, BINARY))
    score, null, _ = permutation_test_score(search, X, BINARY, cv=cv, n_permutations=4, random_state=0)
    assert score == pytest.approx(nested_cross_validate(search, X, BINARY, cv=cv).test_score.mean())
    assert len(null) == 4


@EVERY_ESTIMATOR
def test_folds_equal_refits(estimator, y):
    if isinstance(estimator, AdaptiveKDA):
        pytest.skip("has no closed form for folds")
    splits = list(StratifiedKFold(3).split(X, LABELS))
    method = "decision_function" if hasattr(estimator, "decision_function") else "predict"
    found = cross_val_predict(estimator, X, y, cv=splits, method=method)
    for train, test in splits:
        np.testing.assert_allclose(found[test], outputs(clone(estimator).fit(X[train], y[train]), X[test]), atol=1e-9)


class Undecorated(Kernel):
    length: Annotated[float, Number()] = 1.0

    def gram(self, X, Z=None):
        return np.exp(-cdist(X, X if Z is None else Z) / self.length)

    def diag(self, X):
        return np.ones(len(X))


class WithConstructor(Undecorated):
    def __init__(self, length=1.0):
        self.length = length


@pytest.mark.parametrize(
    "make", [Undecorated, lambda: Undecorated(length=2.0), lambda: LSSVC(WithConstructor(2.0)).fit(X, LABELS)]
)
def test_a_kernel_that_is_no_dataclass_is_refused(make):
    with pytest.raises(TypeError, match=r"^\w+: the parameters of a kernel .*Write @dataclass\(frozen=True\)"):
        make()


class Squares(FeatureMap):
    name: ClassVar[str] = "squares"

    def features(self, X):
        return np.square(X)


def test_a_kernel_without_parameters_needs_no_decorator():
    decisions = LSSVC(Squares()).fit(X, LABELS).decision_function(X)
    assert_array_equal(decisions, LSSVC("linear").fit(np.square(X), LABELS).decision_function(np.square(X)))


@dataclass(frozen=True)
class WithoutDerivative(RationalQuadratic):
    """A kernel whose author forgot the derivative by one of its parameters."""

    def pullback(self, R, X, K):
        """That by the mixture alone."""
        slopes = super().pullback(R, X, K)
        return {"mixture": slopes["mixture"]}


def test_a_derivative_that_is_missing_is_named():
    X = np.random.default_rng(0).normal(size=(40, 3))
    search = FoldlessSearchCV(LSSVR(WithoutDerivative()), method="gradient")
    with pytest.raises(ValueError, match=r"no derivative by length.*differentiable=False"):
        search.fit(X, X[:, 0])
