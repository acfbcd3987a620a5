"""Models and searches with sums of kernels: the same as with their Gram matrix, gradients, and useful groups found."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.heldout.gradient import value_and_gradient
from foldless._engine.heldout.problem import Problem
from foldless._engine.tuning import fidelity
from foldless.kernels import RBF, BasisFunctions, Custom, Laplacian, Linear, On, Poly
from foldless.model_selection import Optimizer, cross_val_predict, nested_cross_validate, permutation_test_score
from support.refits import fits
from support.tolerances import assert_close

RNG = np.random.default_rng(0)
N = 36
X = RNG.normal(size=(N, 4))
LABELS = np.where(X[:, 0] * X[:, 1] > 0.3, "a", np.where(X[:, 2] > 0, "b", "c"))
BINARY = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0
VALUES = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
KERNELS = {
    "sum": RBF(0.3) + 0.5 * Linear(),
    "product": RBF(0.1) * Poly(0.2, 2),
    "columns": On([0, 1], RBF(0.4)) + 0.3 * On([1, 2, 3], Laplacian(0.2)),
    "features": On([0, 1], Linear()) + 2 * On(slice(2, None), Linear()),
    "nested": (RBF(0.2) + 0.1 * Linear()) * On([3], RBF(0.5)) + 0.2 * Poly(0.1, 2),
}
ESTIMATORS = {LSSVC: LABELS, LSSVR: VALUES, KernelFisherDiscriminant: LABELS, AdaptiveKDA: LABELS}
every_kernel = pytest.mark.parametrize("name", KERNELS)
every_kind = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)


def as_function(kernel):
    """The same matrix from a function, whose parts nobody knows."""
    return Custom(lambda A, B: kernel.gram(A, B))


def outputs(model, rows):
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


# -- models ------------------------------------------------------------------------------------------------------------


@pytest.mark.many_cases
@every_kind
@every_kernel
def test_models_are_those_of_the_gram_matrix(kind, name):
    mine, other = (kind(kernel, alpha=0.3) for kernel in (KERNELS[name], as_function(KERNELS[name])))
    y, new = ESTIMATORS[kind], X[:5] + 0.1
    for model in (mine, other):
        model.fit(X[:30], y[:30])
    assert_close(outputs(mine, new), outputs(other, new), rtol=1e-8)
    for model in (mine, other):
        model.partial_fit(X[30:], y[30:]).forget(range(4))
    assert_close(outputs(mine, new), outputs(other, new), rtol=1e-7)
    assert_close(outputs(mine, new), outputs(clone(mine).fit(X[4:], y[4:]), new), rtol=1e-7)


@every_kernel
def test_cross_validation_equals_refits(name):
    model, splits = LSSVC(KERNELS[name], alpha=0.3), list(StratifiedKFold(3).split(X, LABELS))
    found = cross_val_predict(model, X, LABELS, cv=splits, method="decision_function")
    for train, test in splits:
        assert_close(found[test], clone(model).fit(X[train], LABELS[train]).decision_function(X[test]))


def test_permutation_tests_are_those_of_the_gram_matrix():
    options = {"cv": StratifiedKFold(3), "n_permutations": 10, "random_state": 0, "scoring": "roc_auc"}
    kernel = KERNELS["columns"]
    found, expected = (
        permutation_test_score(LSSVC(each), X, BINARY, **options) for each in (kernel, as_function(kernel))
    )
    assert_close(found[1], expected[1])
    assert found[0] == pytest.approx(expected[0])


def test_sums_of_few_features_are_held_through_them():
    wide = np.tile(X, (5, 1)) + 0.1 * np.random.default_rng(1).normal(size=(5 * N, 4))
    model = LSSVR(KERNELS["features"], alpha=0.3).fit(wide, np.tile(VALUES, 5))
    assert "features" in model.holder_
    other = LSSVR(as_function(KERNELS["features"]), alpha=0.3).fit(wide, np.tile(VALUES, 5))
    assert_close(model.predict(X), other.predict(X))


def test_widths_are_those_of_their_columns_and_stay_in_updates():
    scaled = X * [1.0, 1.0, 100.0, 100.0]
    kernel = On([0, 1], RBF("scale")) + On([2, 3], RBF("scale"))
    model = LSSVC(kernel).fit(scaled[:30], LABELS[:30])
    first, second = (term.kernel.gamma for term in model.kernel_.terms)
    assert first == pytest.approx(1 / (2 * scaled[:30, :2].var()))
    assert second == pytest.approx(1 / (2 * scaled[:30, 2:].var()))
    model.partial_fit(scaled[30:], LABELS[30:])
    assert model.kernel_.terms[0].kernel.gamma == first
    with pytest.warns(UserWarning, match="terms__0__kernel__gamma='scale' is resolved from the 8 rows"):
        LSSVC(On([0, 1], RBF("scale")) + Linear()).partial_fit(X[:8], LABELS[:8])


def test_updates_refuse_parameters_that_have_changed():
    model = LSSVC(On([0], RBF([0.3])) + Linear()).fit(X, LABELS)
    model.set_params(kernel=On([0], RBF([0.3])) + Linear()).forget([0])  # an equal object is no change
    model.set_params(kernel__terms__0__kernel__gamma=[0.5])
    with pytest.raises(ValueError, match=r"^kernel__terms__0__kernel__gamma: changed since the model was fitted"):
        model.forget([0])
    model.set_params(kernel=On([0], RBF([0.3])) + 2 * Linear())
    with pytest.raises(ValueError, match=r"^kernel__weights: changed since"):
        model.forget([0])


def test_the_text_of_an_estimator_holds_the_expression():
    assert repr(LSSVC(RBF(0.5) + 2 * Linear())) == "LSSVC(kernel=RBF(gamma=0.5) + 2.0 * Linear())"


# -- gradients ---------------------------------------------------------------------------------------------------------


@pytest.mark.many_cases
@pytest.mark.parametrize("folds", [None, np.array_split(np.arange(14)[::-1], 3)], ids=["leave-one-out", "folds"])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@every_kernel
def test_gradients_equal_differences_of_refits(name, penalty, folds):
    rows, Y, alpha, step = X[:14], np.column_stack([VALUES, X[:, 3] ** 2])[:14], 0.7, 1e-4
    w, Q = np.random.default_rng(2).uniform(0.5, 2.0, 14), np.ones((14, 1))
    sets = [[i] for i in range(14)] if folds is None else folds
    splits = [(np.delete(np.arange(14), te), te) for te in sets]

    def press(kernel, alpha):
        held_out = fits(kernel.gram(rows), Y, splits, alpha, w=w, Q=Q, penalty=penalty)
        return np.square(Y[np.concatenate(sets)] - held_out).sum()

    def moved(logs):
        values = kernel.get_params()
        others = {each: np.asarray(values[each]) * np.exp(logs[place]) for each, place in places.items()}
        return press(kernel.changed(**others), alpha * np.exp(logs[0]))

    kernel = KERNELS[name]
    features = BasisFunctions(kernel).resolved(rows) if penalty == "coef" else kernel
    problem = Problem.of(features, rows, alpha=alpha, Q=Q, sample_weight=w)
    value, slopes = value_and_gradient(problem, np.arange(14), Y, folds, lambda E: ((E**2).sum(), 2 * E))
    assert value == pytest.approx(press(kernel, alpha))
    sizes, places = [np.size(kernel.get_params()[each]) for each in kernel.differentiable], {}
    for each, size, stop in zip(kernel.differentiable, sizes, 1 + np.cumsum(sizes), strict=True):
        places[each] = np.arange(stop - size, stop) if np.ndim(kernel.get_params()[each]) else stop - 1
    found = [alpha * slopes["alpha"]]
    for each in kernel.differentiable:
        found += np.atleast_1d(np.asarray(kernel.get_params()[each]) * slopes[each]).tolist()
    expected = [
        (8 * (moved(step * e) - moved(-step * e)) - moved(2 * step * e) + moved(-2 * step * e)) / (12 * step)
        for e in np.eye(1 + sum(sizes))
    ]
    assert_close(np.array(found), np.array(expected), rtol=1e-7)


@pytest.mark.parametrize("name", ["sum", "columns", "nested"])
def test_weights_and_alpha_times_one_number_change_nothing(name):
    problem = Problem.of(KERNELS[name], X, alpha=0.7, Q=np.ones((N, 1)))
    _, slopes = value_and_gradient(problem, np.arange(N), VALUES[:, None], None, lambda E: ((E**2).sum(), 2 * E))
    along = np.dot(KERNELS[name].weights, slopes["weights"])
    assert along == pytest.approx(-0.7 * slopes["alpha"], rel=1e-8)


# -- searches ----------------------------------------------------------------------------------------------------------


def test_a_default_grid_is_one_of_alpha_alone():
    search = FoldlessSearchCV(LSSVC(RBF("scale") + Linear()), method="grid").fit(X, LABELS)
    assert set(search.best_params_) == {"alpha"}
    assert len(search.cv_results_["params"]) == 25
    alone = FoldlessSearchCV(LSSVC(On([0, 1], RBF("scale")))).fit(X, LABELS)  # one kernel has its own grid
    named = FoldlessSearchCV(LSSVC()).fit(X[:, :2], LABELS)
    assert alone.best_params_["kernel__kernel__gamma"] == named.best_params_["gamma"]
    assert alone.best_criterion_ == pytest.approx(named.best_criterion_)


def test_a_search_without_a_grid_tunes_all_of_a_sum():
    kernel = On([0, 1], RBF("scale")) + Linear()
    search = FoldlessSearchCV(LSSVR(kernel)).fit(X, VALUES)
    assert set(search.best_params_) == {"alpha", "kernel__weights", "kernel__terms__0__kernel__gamma"}
    assert search.best_criterion_ == pytest.approx(np.square(VALUES - search.best_estimator_.loo_predict()).mean())
    assert search.best_criterion_ < FoldlessSearchCV(LSSVR(kernel), method="grid").fit(X, VALUES).best_criterion_


def test_a_search_by_parts_of_the_rows_keeps_to_the_bounds(monkeypatch):
    for name, size in {"FEW": 16, "PER_CLASS": 4, "MOST_AT_FIRST": 24, "AT_ONCE": 24}.items():
        monkeypatch.setattr(fidelity, name, size)
    kernel = On([0, 1], RBF("scale")) + Linear()
    bounds = {"kernel__weights": (0.01, 2.0), "kernel__terms__0__kernel__gamma": "fixed"}
    search = FoldlessSearchCV(LSSVR(kernel), method=Optimizer(bounds=bounds)).fit(X, VALUES)
    assert {each["n_rows"] for each in search.history_} == {16, 32, N}
    assert set(search.best_params_) == {"alpha", "kernel__weights"}
    weights = [each["kernel__weights"] for each in search.history_]
    assert 0.01 * (1 - 1e-9) <= np.min(weights) < np.max(weights) <= 2.0 * (1 + 1e-9)
    assert search.best_estimator_.kernel_.terms[0] == kernel.resolved(X).terms[0]
    plain = FoldlessSearchCV(LSSVR(gamma=0.3), method=Optimizer(bounds={"gamma": "fixed"})).fit(X, VALUES)
    assert set(plain.best_params_) == {"alpha"}
    assert plain.best_estimator_.kernel_.gamma == 0.3


def test_grids_name_weights_terms_and_their_parameters():
    grid = {
        "alpha": [0.1, 1.0],
        "kernel__weights": [(1.0, 1.0), (1.0, 0.1)],
        "kernel__terms__0__gamma": [0.1, 1.0],
        "kernel__terms__1": [Linear(), Custom(lambda A, B: (A @ B.T + 1) ** 2)],
    }
    kernel = RBF("scale") + Linear()
    search = FoldlessSearchCV(LSSVC(kernel), grid).fit(X, LABELS)
    results = search.cv_results_
    assert len(results["params"]) == 16
    for params, loss in list(zip(results["params"], results["mean_test_criterion"], strict=True))[::3]:
        model = LSSVC(as_function(clone(kernel, safe=False).set_params(**inside(params))), alpha=params["alpha"])
        residuals = np.where(LABELS[:, None] == ["a", "b", "c"], 1, -1) - model.fit(X, LABELS).loo_decision_function()
        assert loss == pytest.approx(np.square(residuals).mean(0).sum())
    assert kernel == RBF("scale") + Linear()


def inside(params):
    return {name.removeprefix("kernel__"): value for name, value in params.items() if name != "alpha"}


@pytest.mark.parametrize("method", ["gradient", "simplex"])
def test_continuous_searches_move_all_parameters(method):
    start = LSSVR(RBF("scale") + 0.5 * On([1], Linear()), alpha=0.5)
    search = FoldlessSearchCV(start, method=Optimizer(method, max_iter=15)).fit(X, VALUES)
    assert set(search.best_params_) == {"alpha", "kernel__weights", "kernel__terms__0__gamma"}
    assert search.best_criterion_ == pytest.approx(np.square(VALUES - search.best_estimator_.loo_predict()).mean())
    assert search.best_criterion_ < np.square(VALUES - start.fit(X, VALUES).loo_predict()).mean()
    assert search.best_estimator_.kernel_.weights == search.best_params_["kernel__weights"]


def test_continuous_searches_leave_fixed_parameters_alone():
    kernel = 2 * On([0, 1], RBF("scale")) + Poly(0.1, 2)
    bounds = {"kernel__terms__0__kernel__gamma": "fixed", "kernel__weights": "fixed", "alpha": (0.1, 1.0)}
    search = FoldlessSearchCV(
        LSSVC(kernel), method=Optimizer("gradient", bounds=bounds, n_starts=2, max_iter=4), random_state=0
    )
    search.fit(X, BINARY)
    assert set(search.best_params_) == {"alpha", "kernel__terms__1__gamma", "kernel__terms__1__coef0"}
    assert search.best_estimator_.kernel_.weights == (2.0, 1.0)
    assert search.best_estimator_.kernel_.terms[0] == kernel.resolved(X).terms[0]
    named = FoldlessSearchCV(LSSVC(gamma=0.3), method=Optimizer("gradient", bounds={"gamma": "fixed"})).fit(X, BINARY)
    assert set(named.best_params_) == {"alpha"}
    assert named.best_estimator_.kernel_.gamma == 0.3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"method": Optimizer("gradient", bounds={"alpha": "fixed"})},
            r"bounds\['alpha'\]='fixed' must be two finite numbers",
        ),
        (
            {"method": Optimizer("gradient", bounds={"kernel__weights": "free"})},
            r"bounds\['kernel__weights'\]='free' must be .*or 'fixed'",
        ),
        (
            {"method": Optimizer("gradient", bounds={"kernel__gamma": "fixed"})},
            "'kernel__gamma'; .* alpha, kernel__weights and kernel__terms__0",
        ),
        ({"method": Optimizer("gradient", feature_scaling=True)}, "has no scale for each feature"),
    ],
)
def test_searches_say_what_a_sum_cannot_do(options, said):
    with pytest.raises(ValueError, match=said):
        FoldlessSearchCV(LSSVC(RBF(0.3) + Linear()), **options).fit(X, BINARY)


def test_nested_searches_of_a_sum_equal_a_double_loop():
    search = FoldlessSearchCV(LSSVC(RBF("scale") + Linear()), method=Optimizer("gradient", max_iter=2))
    splits = list(StratifiedKFold(2).split(X, BINARY))
    result = nested_cross_validate(search, X, BINARY, cv=splits)
    for number, (train, test) in enumerate(splits):
        assert result.test_score[number] == clone(search).fit(X[train], BINARY[train]).score(X[test], BINARY[test])


@pytest.mark.parametrize("useful", [0, 2])
def test_the_useful_group_of_columns_is_found(useful):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 12))
    own = rows[:, 3 * useful : 3 * useful + 3]
    y = np.sin(own[:, 0]) * own[:, 1] + 0.1 * rng.normal(size=80)
    kernel = sum(On(slice(3 * k, 3 * k + 3), RBF("scale")) for k in range(4))
    bounds = {f"kernel__terms__{k}__kernel__gamma": "fixed" for k in range(4)}
    search = FoldlessSearchCV(LSSVR(kernel), method=Optimizer("gradient", bounds=bounds, max_iter=15)).fit(rows, y)
    weights = np.array(search.best_params_["kernel__weights"])
    noise = np.delete(weights, useful) / weights[useful]
    assert noise.max() < 0.1
    assert np.median(noise) < 1e-3
