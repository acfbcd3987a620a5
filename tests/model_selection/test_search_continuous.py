"""Continuous searches: at least as good as a fine grid, scores those of refits."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import make_moons
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.tuning.criteria import CRITERIA
from foldless.model_selection import Optimizer
from support.refits import fits_of_candidate, signs
from support.searches import (
    BINARY,
    GROUPS,
    KFDA,
    LABELS,
    RBF_GRID,
    SPLITTERS,
    VALUES,
    WEIGHT,
    D,
    N,
    X,
    criterion_by_refits,
    losses_of,
    splits_of,
    xor,
)
from support.tolerances import assert_close

MORE = np.random.default_rng(3)
MOONS = MORE.normal(size=(60, 2))
RING = (np.abs(np.square(MOONS).sum(1) - 1.2) < 0.7).astype(int)
CURVE = MOONS[:, 0] ** 2 + MOONS[:, 1] + MORE.normal(size=60)
STARTS = {"alpha": [0.01, 1.0], "gamma": [0.1, 1.0]}


@pytest.mark.many_cases
@pytest.mark.parametrize("criterion", [name for name, each in CRITERIA.items() if each.smooth])
def test_the_gradient_search_is_at_least_as_good_as_a_fine_grid(criterion):
    options = {"criterion": CRITERIA[criterion].with_slope(3.0)}
    fine = {"alpha": np.logspace(-4, 2, 25), "gamma": np.logspace(-2, 1.5, 25)}
    grid = FoldlessSearchCV(LSSVC(), fine, **options).fit(MOONS, RING)
    start = {name: [value] for name, value in grid.best_params_.items()}
    found = FoldlessSearchCV(
        LSSVC(),
        [STARTS, start],
        method=Optimizer("gradient", bounds={"alpha": (1e-4, 1e2), "gamma": (1e-2, 10**1.5)}),
        **options,
    ).fit(MOONS, RING)
    assert found.best_criterion_ <= grid.best_criterion_
    assert found.best_criterion_ == pytest.approx(criterion_by_refits(found, MOONS, RING, criterion, 3.0), rel=1e-6)


@pytest.mark.parametrize("criterion", ["press", "smooth_error", "hinge2"])
def test_gradient_and_simplex_find_the_same_parameters(criterion):
    ends = [
        FoldlessSearchCV(
            LSSVC(alpha=0.3, gamma=0.5),
            method=Optimizer(method, max_iter=200),
            criterion=CRITERIA[criterion].with_slope(2.0),
        ).fit(MOONS, RING)
        for method in ("gradient", "simplex")
    ]
    assert ends[0].best_criterion_ == pytest.approx(ends[1].best_criterion_, rel=1e-4)
    for name in ("alpha", "gamma"):
        one, two = (np.log(end.best_params_[name]) for end in ends)
        assert one == pytest.approx(two, abs=0.1), name


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize(
    ("estimator", "y", "names"),
    [
        (LSSVC(), RING, {"alpha", "gamma"}),
        (LSSVC("poly", degree=2), RING, {"alpha", "gamma", "coef0"}),
        (LSSVC("poly", degree=2, coef0=0.0), RING, {"alpha", "gamma"}),
        (LSSVC("laplacian", penalty="coef"), RING, {"alpha", "gamma"}),
        (LSSVC("linear"), RING, {"alpha"}),
        (KFDA(), np.arange(60) % 3, {"alpha", "gamma"}),
        (LSSVR(), CURVE, {"alpha", "gamma"}),
        (KernelRidge(kernel="rbf"), CURVE, {"alpha", "gamma"}),
        (KernelRidge(kernel="poly", degree=2), CURVE, {"alpha", "gamma", "coef0"}),
        (Ridge(), CURVE, {"alpha"}),
        (RidgeClassifier(), RING, {"alpha"}),
    ],
    ids=lambda value: str(value) if hasattr(value, "fit") else "",
)
def test_scores_are_those_of_the_parameters_found(method, estimator, y, names):
    search = FoldlessSearchCV(estimator, method=Optimizer(method, max_iter=15)).fit(MOONS, y)
    assert set(search.best_params_) == names
    assert search.best_criterion_ == pytest.approx(criterion_by_refits(search, MOONS, y), rel=1e-6)
    assert all(set(step) == names | {"start", "n_rows", "time", "criterion", "objective"} for step in search.history_)
    visited = [step["criterion"] for step in search.history_]
    assert search.best_criterion_ == min(visited)
    assert search.best_criterion_ < visited[0]  # it started at the estimator's own parameters, and moved
    for name in names:
        assert search.best_estimator_.get_params()[name] == search.best_params_[name]


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("weight", ["auto", None, "balanced", "sample_weight"])
@pytest.mark.parametrize("splitter", ["leave-one-out", "GroupKFold", "ShuffleSplit with a gap", "RepeatedKFold"])
def test_continuous_searches_judge_as_grids_do(method, weight, splitter):
    """The same splits and weights: the end of a search, put into a grid, has the same score."""
    options = {
        "cv": SPLITTERS[splitter],
        "criterion": CRITERIA["smooth_error"].with_slope(2.0),
        "criterion_weight": weight,
    }
    w, groups = WEIGHT * (np.arange(N) > 1), GROUPS if splitter == "GroupKFold" else None
    search = FoldlessSearchCV(KFDA(), method=Optimizer(method, max_iter=4), **options).fit(X, LABELS, w, groups)
    fixed = {name: [value] for name, value in search.best_params_.items()}
    alone = FoldlessSearchCV(KFDA(), fixed, **options).fit(X, LABELS, w, groups)
    assert alone.best_criterion_ == pytest.approx(search.best_criterion_, rel=1e-9)
    rows, fits = fits_of_candidate(KFDA(), search.best_params_, LABELS, splits_of(splitter, groups), X, w)
    T = signs(LABELS)[rows]
    W = {
        None: np.ones_like(T),
        "balanced": np.where(T > 0, 1 / (T > 0).sum(0), 1 / (T < 0).sum(0)),
        "sample_weight": np.repeat(w[rows, None], 3, axis=1),
    }["sample_weight" if weight == "auto" else weight]
    expected = CRITERIA["smooth_error"].with_slope(2.0)(fits, T, W / W.sum(0))[0].sum()
    assert search.best_criterion_ == pytest.approx(expected, rel=1e-8)


def test_a_search_starts_at_the_parameters_it_is_given():
    estimator = LSSVC(alpha=0.123, gamma=0.456)
    for method in ("gradient", "simplex"):
        search = FoldlessSearchCV(estimator, method=Optimizer(method, max_iter=3)).fit(MOONS, RING)
        first = search.history_[0]
        assert (first["alpha"], first["gamma"]) == pytest.approx((0.123, 0.456))
        listed = FoldlessSearchCV(estimator, {"alpha": [7.0, 0.1]}, method=Optimizer(method, max_iter=3)).fit(
            MOONS, RING
        )
        starts = {step["start"]: step for step in reversed(listed.history_)}
        assert [starts[k]["alpha"] for k in (0, 1)] == pytest.approx([7.0, 0.1])
        assert [starts[k]["gamma"] for k in (0, 1)] == pytest.approx([0.456] * 2)


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("scaling", [False, True])
def test_continuous_search_is_the_same_in_other_units(method, scaling):
    options = {"method": Optimizer(method, max_iter=10, feature_scaling=scaling)}
    one = FoldlessSearchCV(LSSVR(), **options).fit(MOONS, CURVE)
    two = FoldlessSearchCV(LSSVR(), **options).fit(1e3 * MOONS, 1e-4 * CURVE)
    assert len(one.history_) == len(two.history_)
    assert two.alpha_ == pytest.approx(one.alpha_, rel=1e-5)
    assert_close(1e6 * np.asarray(two.best_params_["gamma"]), np.asarray(one.best_params_["gamma"]), rtol=1e-5)
    assert two.best_criterion_ == pytest.approx(1e-8 * one.best_criterion_, rel=1e-6)


@pytest.mark.parametrize("scaling", [False, True])
def test_the_best_estimator_is_a_warm_start(scaling):
    options = {"method": Optimizer("gradient", max_iter=200, feature_scaling=scaling)}
    first = FoldlessSearchCV(LSSVC(), **options).fit(MOONS, RING)
    again = FoldlessSearchCV(first.best_estimator_, **options).fit(MOONS, RING)
    assert again.history_[0]["criterion"] == pytest.approx(first.best_criterion_, rel=1e-9)
    assert again.best_criterion_ <= first.best_criterion_
    assert again.best_criterion_ == pytest.approx(first.best_criterion_, rel=1e-4)
    assert len(again.history_) <= len(first.history_)
    for name in ("alpha", "gamma"):
        moved = np.log(again.best_params_[name]) - np.log(first.best_params_[name])
        assert np.abs(moved).max() < 0.2, name


@pytest.mark.parametrize("method", ["gradient", "simplex"])
def test_search_stays_within_bounds(method):
    bounds = {"alpha": (0.5, 0.6), "gamma": (0.02, 0.025)}
    search = FoldlessSearchCV(LSSVC(), method=Optimizer(method, bounds=bounds, n_starts=3), random_state=0).fit(
        MOONS, RING
    )
    free = FoldlessSearchCV(LSSVC(), method=method).fit(MOONS, RING)
    for name, (low, high) in bounds.items():
        assert not low <= free.best_params_[name] <= high
        for step in search.history_:
            assert low * (1 - 1e-12) <= step[name] <= high * (1 + 1e-12)
    scaled = FoldlessSearchCV(
        LSSVC(), method=Optimizer(method, bounds={"gamma": (0.02, 0.025)}, max_iter=5, feature_scaling=True)
    ).fit(MOONS, RING)
    assert scaled.feature_scales_.min() >= 0.02 * (1 - 1e-12)
    assert scaled.feature_scales_.max() <= 0.025 * (1 + 1e-12)


def test_further_starts_are_drawn_from_the_random_state():
    options = {"method": Optimizer("gradient", n_starts=3, max_iter=3)}
    one, two, other = (FoldlessSearchCV(LSSVC(), random_state=seed, **options).fit(MOONS, RING) for seed in (0, 0, 1))
    assert len(one.cv_results_["params"]) == 3
    np.testing.assert_array_equal(losses_of(one), losses_of(two))
    assert one.best_params_ == two.best_params_
    starts = [{step["start"]: step["alpha"] for step in reversed(search.history_)} for search in (one, other)]
    assert starts[0][0] == starts[1][0] == pytest.approx(1.0)  # the first is the estimator's own
    assert starts[0][1] != starts[1][1]
    alone = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=3)).fit(MOONS, RING)
    assert losses_of(one)[0] == losses_of(alone)[0]
    assert one.best_criterion_ == losses_of(one).min()
    listed = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}, **options).fit(MOONS, RING)
    assert len(listed.cv_results_["params"]) == 6


@pytest.mark.parametrize("method", ["grid", "gradient"])
@pytest.mark.parametrize("share", ["all", "none"])
def test_threads_give_the_same_losses(method, share):
    grid = RBF_GRID if method == "grid" else {"alpha": [0.1, 1.0]}
    options = {"method": Optimizer(method, n_starts=2, max_iter=5), "random_state": 0, "share": share}
    one, two = (FoldlessSearchCV(LSSVC(), grid, n_jobs=jobs, **options).fit(X, LABELS) for jobs in (None, 2))
    assert_close(losses_of(one), losses_of(two), rtol=1e-12)
    assert one.best_index_ == two.best_index_


def test_more_iterations_score_better_and_are_counted():
    few, many = (FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=k)).fit(MOONS, RING) for k in (1, 50))
    assert len(few.history_) < len(many.history_)
    assert few.best_criterion_ > many.best_criterion_


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_feature_scales_find_the_features_that_matter(kernel):
    data, y = xor()
    search = FoldlessSearchCV(LSSVC(kernel), method=Optimizer("gradient", feature_scaling=True)).fit(data, y)
    scales = search.feature_scales_
    assert scales.shape == (6,)
    assert scales[:2].min() > 10 * scales[2:].max()
    np.testing.assert_array_equal(search.best_params_["gamma"], scales)
    one = FoldlessSearchCV(LSSVC(kernel), method="gradient").fit(data, y)
    new, truth = xor(400, seed=1)
    assert search.score(new, truth) > one.score(new, truth) + 0.03
    assert any(step["criterion"] == search.best_criterion_ for step in search.history_)


@pytest.mark.parametrize("groups", [[0, 0, 1, 1], ["b", "a", "a", "b"], np.array([7, 3, 7, 3])], ids=str)
def test_features_of_a_group_share_a_scale(groups):
    search = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=8, feature_scaling=groups)).fit(X, LABELS)
    scales = search.feature_scales_
    for group in np.unique(groups):
        assert np.unique(scales[np.asarray(groups) == group]).size == 1
    assert np.unique(scales).size == 2
    tied = np.unique(groups, return_inverse=True)[1]
    assert search.best_criterion_ == pytest.approx(criterion_by_refits(search, X, LABELS), rel=1e-6)
    free = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=8, feature_scaling=True)).fit(X, LABELS)
    assert np.unique(free.feature_scales_).size == 4
    assert len(tied) == 4


def test_one_group_for_all_is_one_gamma():
    one = FoldlessSearchCV(LSSVC(), method="gradient").fit(X, LABELS)
    two = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", feature_scaling=[5] * D)).fit(X, LABELS)
    assert two.best_criterion_ == pytest.approx(one.best_criterion_, rel=1e-8)
    assert_close(two.feature_scales_, np.full(D, one.best_params_["gamma"]), rtol=1e-4)


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("scaling", [False, True])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_targets_without_variance_leave_nothing_to_search(method, scaling, value):
    search = FoldlessSearchCV(LSSVR(), method=Optimizer(method, max_iter=3, feature_scaling=scaling)).fit(
        X, np.full(N, value)
    )
    assert search.best_criterion_ == pytest.approx(0.0, abs=1e-20)
    assert_close(search.predict(X), np.full(N, value), scale=1.0)
    assert np.isfinite(np.hstack(list(search.best_params_.values()))).all()


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_features_without_variance_leave_nothing_to_search(method, kernel):
    data = np.full((N, 2), 3.0)
    search = FoldlessSearchCV(LSSVC(kernel), method=Optimizer(method, max_iter=3, feature_scaling=kernel != "linear"))
    losses = {
        search.fit(data, BINARY).best_criterion_,
        FoldlessSearchCV(LSSVC(kernel)).fit(data, BINARY).best_criterion_,
    }
    assert np.ptp(list(losses)) < 1e-6


def test_scales_of_a_single_feature_are_still_a_vector():
    search = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=3, feature_scaling=True)).fit(
        X[:, :1], BINARY
    )
    assert search.feature_scales_.shape == (1,)
    assert search.predict(X[:, :1]).shape == (N,)


@pytest.mark.parametrize("method", ["gradient", "simplex"])
@pytest.mark.parametrize("estimator", [LSSVR("poly", degree=2), LSSVR("laplacian"), KFDA()], ids=str)
def test_scores_with_feature_scaling_are_those_of_the_scales(estimator, method):
    y = LABELS if is_classifier(estimator) else VALUES
    search = FoldlessSearchCV(estimator, method=Optimizer(method, max_iter=5, prior=None, feature_scaling=True)).fit(
        X, y
    )
    alone = FoldlessSearchCV(estimator, {k: [v] for k, v in search.best_params_.items()}).fit(X, y)
    assert alone.best_criterion_ == pytest.approx(search.best_criterion_, rel=1e-8)
    assert search.best_criterion_ < FoldlessSearchCV(estimator, {"alpha": [1.0]}).fit(X, y).best_criterion_


def test_feature_scaling_finds_two_features_among_noise():
    """Two moons among noise: from equal scales the prior alone would never let the features part."""
    rng = np.random.RandomState(0)
    rows, y = make_moons(150, noise=0.2, random_state=0)
    rows = np.column_stack([rows, rng.randn(150, 15)])
    rows = (rows - rows.mean(0)) / rows.std(0)
    scales = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", feature_scaling=True)).fit(rows, y).feature_scales_
    assert scales[:2].min() > 5 * scales[2:].max()


def test_the_automatic_prior_is_for_squared_errors_only():
    def scores(criterion, prior):
        search = FoldlessSearchCV(
            LSSVC(), method=Optimizer("gradient", max_iter=3, prior=prior, feature_scaling=True), criterion=criterion
        )
        return search.fit(MOONS[:20], RING[:20]).decision_function(MOONS)

    np.testing.assert_array_equal(scores("press", "auto"), scores("press", "cauchy"))
    assert not np.allclose(scores("press", "auto"), scores("press", None))
    np.testing.assert_array_equal(scores("hinge2", "auto"), scores("hinge2", None))
