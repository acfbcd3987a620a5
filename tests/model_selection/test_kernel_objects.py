"""Kernel objects as ``kernel=``: the same numbers as by name and shorthands, under the names ``kernel__parameter``."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.kernels import RBF, Boolean, Cosine, Custom, Laplacian, Linear, Poly, Precomputed
from foldless.model_selection import Optimizer, cross_val_score, nested_cross_validate, permutation_test_score

RNG = np.random.default_rng(0)
N = 40
X = RNG.normal(size=(N, 3))
LABELS = np.where(X[:, 0] * X[:, 1] > 0.2, 2, (X[:, 2] > 0).astype(int))
BINARY = (X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N) > 0).astype(int)
VALUES = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
GAMMAS = [0.05, 0.5, 2.0]
ALPHAS = [0.01, 0.1, 1.0]
PAIRS = {  # an object, and what it is by name
    "rbf": (RBF("scale"), {"kernel": "rbf"}),
    "rbf, per feature": (RBF([0.1, 0.2, 0.4]), {"kernel": "rbf", "gamma": [0.1, 0.2, 0.4]}),
    "laplacian": (Laplacian(0.3), {"kernel": "laplacian", "gamma": 0.3}),
    "poly": (Poly("scale", 2, 0.5), {"kernel": "poly", "degree": 2, "coef0": 0.5}),
    "boolean": (Boolean(1.0), {"kernel": "boolean"}),
    "cosine": (Cosine(), {"kernel": "cosine"}),
    "linear": (Linear(), {"kernel": "linear"}),
}
ESTIMATORS = {LSSVC: LABELS, LSSVR: VALUES, KernelFisherDiscriminant: LABELS, AdaptiveKDA: LABELS}
every_pair = pytest.mark.parametrize("pair", PAIRS)
every_kind = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)


def by_object_and_name(**options):
    """Two searches of one kernel."""
    return FoldlessSearchCV(LSSVC(RBF("scale")), **options), FoldlessSearchCV(LSSVC(), **options)


def renamed(params):
    return {name.removeprefix("kernel__"): value for name, value in params.items()}


@every_kind
@every_pair
@pytest.mark.filterwarnings("ignore:kernel=.boolean. is for")
def test_objects_equal_names(kind, pair):
    kernel, options = PAIRS[pair]
    y = ESTIMATORS[kind]
    mine, named = kind(kernel, gamma="nonsense", degree=-1, coef0=-1).fit(X, y), kind(**options).fit(X, y)
    np.testing.assert_array_equal(mine.predict(X), named.predict(X))
    assert repr(mine.kernel_) == repr(named.kernel_)
    assert mine.kernel_ is not kernel


@every_kind
def test_precomputed_objects_are_cut_on_both_sides(kind):
    K, y = X @ X.T, ESTIMATORS[kind]
    mine, named = kind(Precomputed()), kind("precomputed")
    assert mine.__sklearn_tags__().input_tags.pairwise
    np.testing.assert_array_equal(mine.fit(K, y).predict(K), named.fit(K, y).predict(K))
    if kind is not AdaptiveKDA:  # has no closed form for folds
        np.testing.assert_array_equal(cross_val_score(mine, K, y, cv=3), cross_val_score(named, K, y, cv=3))
    with pytest.raises(ValueError, match="must be a square matrix"):
        mine.fit(X, y)


@every_kind
def test_parameters_are_those_of_scikit_learn(kind):
    kernel = RBF("scale")
    estimator = kind(kernel)
    assert estimator.get_params()["kernel__gamma"] == "scale"
    assert "kernel__gamma" not in kind().get_params()
    copied = clone(estimator)
    assert copied.set_params(kernel__gamma=0.5).kernel == RBF(0.5)
    assert kernel == RBF("scale")
    assert repr(copied) == f"{kind.__name__}(kernel=RBF(gamma=0.5))"
    pipeline = make_pipeline(StandardScaler(), estimator).set_params(**{f"{kind.__name__.lower()}__kernel__gamma": 2.0})
    assert pipeline[-1].kernel is kernel
    assert kernel == RBF(2.0)


def test_classes_of_kernels_are_refused():
    with pytest.raises(ValueError, match=r"kernel=RBF is a class; give an object, for instance RBF\(\)"):
        LSSVC(RBF).fit(X, LABELS)


def test_fitted_models_keep_their_kernel_when_parameters_change():
    model = LSSVC(RBF(0.3)).fit(X, LABELS)
    before = model.decision_function(X)
    model.set_params(kernel__gamma=3.0)
    np.testing.assert_array_equal(model.decision_function(X), before)
    with pytest.raises(ValueError, match="kernel__gamma: changed since the model was fitted"):
        model.forget([0])
    model.set_params(kernel=RBF(0.3)).forget([0])  # an equal object is no change
    model.set_params(kernel="rbf")
    with pytest.raises(ValueError, match="kernel__gamma, kernel: changed since"):
        model.forget([0])


# -- searches ----------------------------------------------------------------------------------------------------------


def assert_same_search(mine, named):
    assert renamed(mine.best_params_) == named.best_params_
    assert mine.best_criterion_ == named.best_criterion_
    np.testing.assert_array_equal(mine.predict(X), named.predict(X))


def test_default_grids_are_the_same():
    mine, named = (search.fit(X, LABELS) for search in by_object_and_name())
    assert set(mine.best_params_) == {"alpha", "kernel__gamma"}
    assert_same_search(mine, named)
    assert [renamed(each) for each in mine.cv_results_["params"]] == named.cv_results_["params"]


@pytest.mark.parametrize("pair", ["poly", "cosine", "linear"])
def test_default_grids_of_other_kernels_are_the_same(pair):
    kernel, options = PAIRS[pair]
    mine, named = FoldlessSearchCV(LSSVC(kernel)).fit(X, LABELS), FoldlessSearchCV(LSSVC(**options)).fit(X, LABELS)
    assert_same_search(mine, named)


@pytest.mark.parametrize("few", [500, 10], ids=["whole grid", "by parts"])
def test_a_search_leaves_parameters_that_an_object_alone_has(monkeypatch, few):
    monkeypatch.setattr("foldless._sklearn.candidates.FEW", few)
    search = FoldlessSearchCV(LSSVC("boolean")).fit((X > 0).astype(float), LABELS)
    assert set(search.best_params_) == {"alpha"}
    assert search.best_estimator_.kernel_ == Boolean(1.0)
    objects = FoldlessSearchCV(LSSVC(Boolean(1.0))).fit((X > 0).astype(float), LABELS)
    assert set(objects.best_params_) == {"alpha", "kernel__eta"}


@pytest.mark.parametrize("method", ["gradient", "simplex"])
def test_continuous_searches_leave_parameters_that_an_object_alone_has(method):
    rows, fixed = (X > 0).astype(float), {"kernel__eta": "fixed"}
    named = FoldlessSearchCV(LSSVC("boolean"), method=Optimizer(method, max_iter=8)).fit(rows, LABELS)
    mine = FoldlessSearchCV(LSSVC(Boolean(1.0)), method=Optimizer(method, bounds=fixed, max_iter=8)).fit(rows, LABELS)
    assert set(named.best_params_) == {"alpha"}
    assert_same_search(mine, named)
    with pytest.raises(ValueError, match=r"bounds names 'eta'; the continuous parameters are alpha, gamma and coef0"):
        FoldlessSearchCV(LSSVC("boolean"), method=Optimizer(bounds={"eta": (0.1, 1.0)})).fit(rows, LABELS)


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("bounds", [None, (0.2, 0.3)])
def test_continuous_searches_are_the_same(method, bounds):
    mine, named = by_object_and_name()
    for search, name in ((mine, "kernel__gamma"), (named, "gamma")):
        own = None if bounds is None else {name: bounds}
        search.set_params(method=Optimizer(method, bounds=own, n_starts=2, max_iter=15))
    assert_same_search(mine.fit(X, LABELS), named.fit(X, LABELS))
    for each, other in zip(mine.history_, named.history_, strict=True):
        assert {**renamed(each), "time": 0} == {**other, "time": 0}


def test_feature_scales_are_the_same():
    mine, named = by_object_and_name(method=Optimizer("gradient", max_iter=10, feature_scaling=[0, 0, 1]))
    mine.fit(X, BINARY)
    named.fit(X, BINARY)
    np.testing.assert_array_equal(mine.feature_scales_, named.feature_scales_)
    np.testing.assert_array_equal(mine.best_params_["kernel__gamma"], named.best_params_["gamma"])
    np.testing.assert_array_equal(mine.best_estimator_.kernel_.gamma, named.feature_scales_)


@pytest.mark.parametrize("share", ["kernel", "none"])
def test_classes_may_have_their_own_parameters(share):
    mine, named = (
        search.fit(X, LABELS) for search in by_object_and_name(method=Optimizer("gradient", max_iter=8), share=share)
    )
    assert [renamed(each) for each in mine.best_params_] == named.best_params_
    np.testing.assert_array_equal(mine.predict(X), named.predict(X))


def test_objects_in_a_grid_are_left_as_they_are():
    first, second = RBF(1.0), Poly(0.1, 2)
    grid = [
        {"kernel": [first], "kernel__gamma": GAMMAS, "alpha": ALPHAS},
        {"kernel": [second, Linear(), Custom(lambda A, B: A @ B.T)], "alpha": ALPHAS},
    ]
    search = FoldlessSearchCV(LSSVC(), grid).fit(X, LABELS)
    assert first == RBF(1.0)
    assert second == Poly(0.1, 2)
    named = [
        {"kernel": ["rbf"], "gamma": GAMMAS, "alpha": ALPHAS},
        {"kernel": ["poly"], "gamma": [0.1], "degree": [2], "alpha": ALPHAS},
        {"kernel": ["linear", lambda A, B: A @ B.T], "alpha": ALPHAS},
    ]
    other = FoldlessSearchCV(LSSVC(), named).fit(X, LABELS)
    losses = search.cv_results_["mean_test_criterion"], other.cv_results_["mean_test_criterion"]
    np.testing.assert_allclose(np.sort(losses[0]), np.sort(losses[1]), rtol=1e-12)
    continuous = FoldlessSearchCV(LSSVC(), {"kernel": [first, "rbf"]}, method=Optimizer("gradient", max_iter=5)).fit(
        X, LABELS
    )
    ends = continuous.cv_results_["params"]
    assert set(ends[0]) == {"kernel", "alpha", "kernel__gamma"}
    assert set(ends[1]) == {"kernel", "alpha", "gamma"}
    assert first == RBF(1.0)


@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_nested_cross_validation_is_the_same(method):
    options = {"method": Optimizer(method, max_iter=5)}
    mine, named = by_object_and_name(**options)
    if method == "grid":
        mine.set_params(param_grid={"kernel__gamma": GAMMAS, "alpha": ALPHAS})
        named.set_params(param_grid={"gamma": GAMMAS, "alpha": ALPHAS})
    found, expected = (nested_cross_validate(each, X, LABELS, cv=StratifiedKFold(3)) for each in (mine, named))
    np.testing.assert_array_equal(found.test_score, expected.test_score)
    np.testing.assert_array_equal(found.inner_criterion, expected.inner_criterion)
    assert [renamed(each) for each in found.best_params] == expected.best_params
    assert str(found.path) == str(expected.path)


@pytest.mark.parametrize("scoring", ["accuracy", "roc_auc"])
def test_permutation_tests_are_the_same(scoring):
    mine, named = by_object_and_name()
    mine.set_params(param_grid={"kernel__gamma": GAMMAS, "alpha": ALPHAS})
    named.set_params(param_grid={"gamma": GAMMAS, "alpha": ALPHAS})
    options = {"cv": StratifiedKFold(3), "n_permutations": 10, "random_state": 0, "scoring": scoring}
    for pair in ((mine, named), (LSSVC(RBF(0.3)), LSSVC(gamma=0.3))):
        found, expected = (permutation_test_score(each, X, BINARY, **options) for each in pair)
        np.testing.assert_array_equal(found[1], expected[1])
        assert found[0] == expected[0]
        assert str(found.path) == str(expected.path)
