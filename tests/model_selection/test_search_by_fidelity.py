"""Searches on parts of the rows and then on all: every criterion is the exact one of its rows and splits."""

import time
from itertools import pairwise

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.tuning import fidelity
from foldless._engine.tuning.criteria import CRITERIA
from foldless._engine.tuning.descent import DescentResult, Objective
from foldless._engine.tuning.selection import Selection
from foldless._sklearn import candidates
from foldless.kernels import Nystroem
from foldless.model_selection import Optimizer, _search_runs, nested_cross_validate
from support.refits import with_fixed_functions

N = 90
X, Y = make_moons(N, noise=0.3, random_state=0)
RNG = np.random.default_rng(0)
THREE = np.array(["ant", "bee", "cat"])[Y + (X[:, 0] > 1.2)]
VALUES = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=N)
WEIGHT = RNG.uniform(0.2, 2.0, N) * (np.arange(N) % 9 > 0)
GROUPS = np.arange(N) % 10


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of 24 and 48 of 90 rows."""
    sizes = {"FEW": 24, "PER_CLASS": 4, "MOST_AT_FIRST": 40, "AT_ONCE": 60}
    for name, size in sizes.items():
        monkeypatch.setattr(fidelity, name, size)
    monkeypatch.setattr(candidates, "FEW", 24)


def fixed(search, step):
    """A search that looks at the parameters of one step of the history alone."""
    names = set(step) - {"n_rows", "time", "criterion"}
    return clone(search).set_params(param_grid={name: [step[name]] for name in names}, method="grid")


CASES = {
    "three classes": (LSSVC(), THREE, {}),
    "values": (LSSVR(kernel="laplacian"), VALUES, {}),
    "discriminant": (KernelFisherDiscriminant(), THREE, {"criterion": "multiclass_error"}),
    "penalty of coefficients": (LSSVC(penalty="coef"), Y, {"criterion": "hinge2"}),
    "a polynomial": (LSSVC("poly", degree=2), Y, {"criterion": "smooth_error"}),
    "errors in folds": (LSSVC(), THREE, {"criterion": "error", "cv": skl.KFold(4, shuffle=True, random_state=0)}),
    "groups": (LSSVC(), Y, {"cv": skl.GroupKFold(5)}),
    "balanced": (LSSVC(), THREE, {"criterion": "ber", "criterion_weight": "balanced"}),
    "a function": (LSSVR(), VALUES, {"criterion": lambda f, t, w: float(w @ np.abs(f - t))}),
    "only alpha": (LSSVC("cosine"), Y, {}),
    "weights": (LSSVC(), Y, {"criterion_weight": "sample_weight"}),
}


@pytest.mark.many_cases
@pytest.mark.filterwarnings("ignore:.*lies on the edge")
@pytest.mark.parametrize("case", CASES)
def test_the_criterion_on_all_rows_is_that_of_a_search_of_this_setting_alone(case):
    estimator, y, options = CASES[case]
    given = {"groups": GROUPS} if case == "groups" else {"sample_weight": WEIGHT} if case == "weights" else {}
    search = FoldlessSearchCV(estimator, **options).fit(X, y, **given)
    sizes = [step["n_rows"] for step in search.history_]
    n = N if case != "weights" else np.count_nonzero(WEIGHT)
    assert sizes == sorted(sizes)
    assert sorted(set(sizes)) == [24, 48, n]
    last = [step for step in search.history_ if step["n_rows"] == n]
    assert 1 <= len(last) <= fidelity.ON_ALL_ROWS
    for step in last:
        alone = fixed(search, step).fit(X, y, **given)
        np.testing.assert_allclose(step["criterion"], alone.history_[0]["criterion"], rtol=1e-6)
    assert search.history_[-1]["time"] > 0
    best = min(last, key=lambda step: step["criterion"])
    assert search.best_params_ == {name: best[name] for name in search.best_params_}


@pytest.mark.many_cases
@pytest.mark.parametrize("case", ["three classes", "penalty of coefficients", "groups"])
def test_the_criterion_on_a_part_is_that_of_these_rows_alone(case):
    estimator, y, options = CASES[case]
    given = {"groups": GROUPS} if case == "groups" else {}
    search = FoldlessSearchCV(estimator, **options).fit(X, y, **given)
    gamma = search.history_[0]["gamma"]
    task = candidates.SearchData(X, y).task(estimator).task
    splits = None if case != "groups" else list(skl.GroupKFold(5).split(X, y, GROUPS))
    rows = np.sort(fidelity.order_of_rows(task, splits, 0)[:24])
    inside = np.full(N, -1)
    inside[rows] = np.arange(24)
    own = None
    if splits is not None:
        own = [(inside[np.intersect1d(train, rows)], inside[np.intersect1d(test, rows)]) for train, test in splits]
    alone = fixed(search, {**search.history_[0], "gamma": gamma}).set_params(cv=own)
    if case == "penalty of coefficients":  # the functions are those of all rows
        alone.set_params(
            estimator=with_fixed_functions(LSSVC(gamma=gamma, penalty="coef"), X),
            param_grid={"alpha": [search.history_[0]["alpha"]]},
        )
    alone.fit(X[rows], y[rows])
    np.testing.assert_allclose(search.history_[0]["criterion"], alone.history_[0]["criterion"], rtol=1e-8)


def test_places_on_all_rows_follow_a_parabola_through_what_is_known():
    def loss(t):
        return 2.0 + 0.4 * (t + 0.9) ** 2

    rise = 0.4 / loss(0.5)  # of the same parabola about its minimum, as a share
    assert fidelity._next_place([0.5], [loss(0.5)], rise, part=9.0) == [0.0]
    third = fidelity._next_place([0.5, 0.0], [loss(0.5), loss(0.0)], rise, part=9.0)
    np.testing.assert_allclose(third, [-0.9])
    assert fidelity._next_place([0.5, 0.0, -0.9], [loss(0.5), loss(0.0), loss(-0.9)], rise, part=9.0) == []
    flat = rise / 100
    assert fidelity._next_place([0.5], [2.0], flat, part=9.0) == []  # nothing to gain
    assert fidelity._next_place([0.5], [2.0], flat, part=1.9) == [0.0]  # more rows ought to have less
    assert fidelity._next_place([0.5, 0.0], [2.0, 2.2], -0.01, part=9.0) == [1.0]  # no end in sight: further downhill
    assert fidelity._next_place([0.5, 0.0], [2.2, 2.0], 0.0, part=9.0) == [-0.5]
    assert fidelity._next_place([0.0], [2.0], 0.0, part=1.9) == []  # there was no drift


@pytest.mark.parametrize("kernel_rows", [None, 8])
def test_time_grows_with_the_rows_alone_where_features_are_explicit(kernel_rows):
    model = LSSVC() if kernel_rows is None else LSSVC(Nystroem("rbf", kernel_rows))
    problem = candidates.SearchData(X, Y).task(model).task.problem
    power = fidelity.GROWTH if kernel_rows is None else 1.0
    assert fidelity.growth(problem, 45, N) == pytest.approx(2**power)
    if kernel_rows:  # a part of fewer rows than features
        assert fidelity.growth(problem, 4, N) == pytest.approx(N / 4 * 2 ** (fidelity.GROWTH - 1))


@pytest.mark.parametrize("y", [Y, THREE], ids=["two classes", "three classes"])
def test_it_ends_near_the_best_of_the_whole_grid(y):
    whole = FoldlessSearchCV(LSSVC(), method="grid").fit(X, y)
    found = FoldlessSearchCV(LSSVC()).fit(X, y)
    best = min(step["criterion"] for step in whole.history_)
    assert found.history_[-1]["n_rows"] == N
    assert min(step["criterion"] for step in found.history_ if step["n_rows"] == N) < 1.05 * best


def test_the_random_state_draws_the_parts():
    def ways(seed):
        steps = FoldlessSearchCV(LSSVC(), random_state=seed).fit(X, Y).history_
        return [{**step, "time": 0} for step in steps]

    assert ways(1) == ways(1)
    assert ways(1) != ways(2)


def test_a_given_grid_and_few_rows_are_looked_at_as_a_whole():
    grid = {"alpha": [0.1, 1.0], "gamma": [0.3, 1.0]}
    assert len(FoldlessSearchCV(LSSVC(), grid).fit(X, Y).history_) == 4
    few = FoldlessSearchCV(LSSVC()).fit(X[:24], Y[:24])
    assert few.best_params_ == FoldlessSearchCV(LSSVC(), method="grid").fit(X[:24], Y[:24]).best_params_
    linear = FoldlessSearchCV(LSSVC("linear")).fit(X, Y)
    assert linear.best_params_ == FoldlessSearchCV(LSSVC("linear"), method="grid").fit(X, Y).best_params_


def test_bounds_hold_on_every_part():
    search = FoldlessSearchCV(LSSVC(), method=Optimizer(bounds={"alpha": (0.5, 0.7), "gamma": (0.01, 0.02)})).fit(X, Y)
    for step in search.history_:
        assert 0.5 <= step["alpha"] <= 0.7 + 1e-12
        assert 0.01 - 1e-12 <= step["gamma"] <= 0.02 + 1e-12


def test_widths_given_for_each_feature_stay_as_they_are():
    search = FoldlessSearchCV(LSSVC(gamma=[0.5, 2.0])).fit(X, Y)
    assert set(search.best_params_) == {"alpha"}
    assert search.history_[-1]["n_rows"] == N


def test_scales_of_features_start_from_one_gamma_for_all(monkeypatch):
    monkeypatch.setattr(fidelity, "PER_CLASS", 20)  # too few rows do not tell noise from the rest
    rows, labels = make_moons(200, noise=0.2, random_state=0)
    rows = np.column_stack([rows, np.random.default_rng(0).normal(size=(200, 2))])
    search = FoldlessSearchCV(
        LSSVC(), method=Optimizer(feature_scaling=True), criterion=CRITERIA["smooth_error"].with_slope(2.0)
    ).fit(rows, labels)
    kinds = [np.ndim(step["gamma"]) for step in search.history_]
    assert kinds == sorted(kinds)
    assert set(kinds) == {0, 1}
    assert search.feature_scales_.shape == (4,)
    assert search.feature_scales_[:2].min() > search.feature_scales_[2:].max()
    np.testing.assert_array_equal(search.best_params_["gamma"], search.feature_scales_)


# -- stopped before the end --------------------------------------------------------------------------------------------


def test_the_time_limit_takes_the_best_so_far_and_says_so(monkeypatch):
    path = Selection.path

    def slow(self, *args):
        time.sleep(0.004)
        return path(self, *args)

    monkeypatch.setattr(Selection, "path", slow)
    with pytest.warns(ConvergenceWarning, match=r"stopped by time_limit after \d+ evaluations.*judged on 24 rows"):
        search = FoldlessSearchCV(LSSVC(), time_limit=0.01).fit(X, Y)
    assert search.stopped_ == "time_limit"
    assert len(search.history_) % 17 == 0  # all alphas of a kernel are known together
    best = min(search.history_, key=lambda step: step["criterion"])
    assert search.best_params_ == {"alpha": best["alpha"], "gamma": best["gamma"]}
    assert search.predict(X).shape == (N,)


@pytest.mark.parametrize("size", [24, 48, N])
def test_an_interrupt_keeps_the_best_so_far(monkeypatch, size):
    monkeypatch.setattr(fidelity, "WORTH_A_SECOND", 0.0)
    judged, path = Selection.judged, Selection.path

    def interrupted(method):
        def called(self, *args):
            if len(self.rows) == size:
                calls.append(1)
                if len(calls) == 2:
                    raise KeyboardInterrupt
            return method(self, *args)

        return called

    calls: list = []
    monkeypatch.setattr(Selection, "judged", interrupted(judged))
    monkeypatch.setattr(Selection, "path", interrupted(path))
    with pytest.warns(ConvergenceWarning, match="stopped by the user"):
        search = FoldlessSearchCV(LSSVC()).fit(X, Y)
    assert search.stopped_ == "interrupted"
    assert search.history_[-1]["n_rows"] == size
    assert search.predict(X).shape == (N,)


def test_an_interrupt_of_a_search_inside_ends_the_whole(monkeypatch):
    fit = FoldlessSearchCV._fit_data

    def interrupted(search, *args, **options):
        found = fit(search, *args, **options)
        found.stopped_ = "interrupted"
        return found

    monkeypatch.setattr(FoldlessSearchCV, "_fit_data", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nested_cross_validate(FoldlessSearchCV(LSSVC()), X, Y, cv=2)


@pytest.mark.parametrize("calls", [1, 3, 8, 9, 11])
def test_an_interrupt_on_a_way_down_ends_the_search(monkeypatch, calls):
    call, count = Objective.__call__, []

    def interrupted(self, *args):
        count.append(1)
        if len(count) == calls:  # once: whoever catches it must hand it on
            raise KeyboardInterrupt
        return call(self, *args)

    monkeypatch.setattr(Objective, "__call__", interrupted)
    with pytest.warns(ConvergenceWarning, match="stopped by the user"):
        search = FoldlessSearchCV(LSSVC()).fit(X, Y)
    assert search.stopped_ == "interrupted"
    assert len(count) == calls


def test_the_history_has_every_evaluation(monkeypatch):
    made, judged = [], Selection.judged

    def counted(self, problem):
        made.append(len(self.rows))
        return judged(self, problem)

    monkeypatch.setattr(Selection, "judged", counted)
    monkeypatch.setattr(fidelity, "descend", lambda start, spec, selection, vector, *rest: still(start, selection))

    def still(start, selection):
        objective = Objective(selection, start.space, None)
        objective(start.vector)
        return DescentResult(objective.best, objective.history, "converged")

    search = FoldlessSearchCV(LSSVC()).fit(X, Y)
    sizes = [step["n_rows"] for step in search.history_]
    steps = 2  # of the ways down, by the objective
    assert len(sizes) == 170 + steps + len(made)


@pytest.mark.parametrize("n_classes", [12, 30])
def test_many_classes_leave_parts_of_different_sizes(n_classes):
    rng = np.random.default_rng(1)
    y = np.arange(120) % n_classes
    rows = rng.normal(size=(n_classes, 3))[y] + 0.3 * rng.normal(size=(120, 3))
    search = FoldlessSearchCV(LSSVC()).fit(rows, y)
    sizes = sorted({step["n_rows"] for step in search.history_})
    assert sizes[-1] == 120
    assert all(2 * small <= large or large == 120 for small, large in pairwise(sizes))


def test_scores_of_rare_classes_are_taken_of_all_rows_of_a_part():
    y = np.where(np.arange(N) % 15 == 0, "rare", "often")
    rows = X + 1.5 * (y == "rare")[:, None]
    search = FoldlessSearchCV(LSSVC(), scoring="roc_auc", cv=3).fit(rows, y)
    assert 0.5 < search.best_score_ <= 1.0
    grid = {name: [value] for name, value in search.best_params_.items()}
    alone = FoldlessSearchCV(LSSVC(), grid, scoring="roc_auc", cv=3).fit(rows, y)
    np.testing.assert_allclose(search.best_score_, alone.best_score_, rtol=1e-9)


def test_scores_of_probabilities_decide_on_all_rows_alone():
    search = FoldlessSearchCV(LSSVC(calibration="sigmoid"), scoring="neg_log_loss", cv=3).fit(X, Y)
    kinds = {(step["n_rows"], "score" in step) for step in search.history_}
    assert kinds == {(24, False), (48, False), (N, True)}
    assert search.cv_results_["mean_test_score"][search.best_index_] == search.best_score_


def test_an_end_at_the_limits_is_told():
    with pytest.warns(ConvergenceWarning, match="best alpha, .*, lies on the edge"):
        FoldlessSearchCV(LSSVR()).fit(X, X @ [1.0, 2.0])


def test_scores_of_all_settings_are_known_where_a_score_decides(monkeypatch):
    for n_rows in (60, N):  # the second part is all rows, or not
        search = FoldlessSearchCV(LSSVC(), scoring="balanced_accuracy", cv=3).fit(X[:n_rows], Y[:n_rows])
        assert not np.isnan(search.cv_results_["mean_test_score"]).any()
        assert search.cv_results_["mean_test_score"][search.best_index_] == search.best_score_


def test_an_interrupt_before_anything_is_known_ends_the_fit(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    search = FoldlessSearchCV(LSSVC()).fit(X, Y)
    before = search.best_params_
    monkeypatch.setattr(Selection, "path", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, THREE)
    assert search.best_params_ == before
    assert search.predict(X).dtype == Y.dtype


@pytest.mark.parametrize("limit", [0, -1.0, "long", np.nan])
def test_time_limits_are_positive_numbers(limit):
    with pytest.raises(ValueError, match=r"time_limit=.*seconds > 0"):
        FoldlessSearchCV(LSSVC(), time_limit=limit).fit(X, Y)


def test_a_long_search_says_how_long_and_what_is_quicker(monkeypatch):
    monkeypatch.setattr(_search_runs, "LONG", 0.0)
    with pytest.warns(UserWarning, match=r"search of 90 rows .* about \d+ minutes.*time_limit="):
        FoldlessSearchCV(LSSVC()).fit(X, Y)


def test_nested_cross_validation_repeats_the_search_on_every_part():
    search = FoldlessSearchCV(LSSVC())
    splits = list(skl.KFold(3, shuffle=True, random_state=0).split(X))
    result = nested_cross_validate(search, X, Y, cv=splits)
    for (train, test), params, score in zip(splits, result.best_params, result.test_score, strict=True):
        own = clone(search).fit(X[train], Y[train])
        assert own.best_params_ == params
        assert own.score(X[test], Y[test]) == score
