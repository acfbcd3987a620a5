"""How searches end: at the edge of a grid, at the last iteration, at a time limit, by an interrupt."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.heldout import solution
from foldless._engine.tuning import descent
from foldless._engine.tuning.space import beyond, on_edge
from foldless._sklearn.candidates import SearchData
from foldless.model_selection import Optimizer, _search_runs
from support.searches import BINARY, LABELS, RBF_GRID, X

GRID = [{"alpha": a, "gamma": g} for a in (1.0, 10.0, 100.0) for g in (0.1, 0.2, 0.4)]


def losses(function):
    return np.array([function(each["alpha"], each["gamma"]) for each in GRID])


# -- the edge of an automatic grid -------------------------------------------------------------------------------------


def test_the_best_is_on_the_edge_where_the_loss_falls_towards_it():
    assert on_edge(GRID, losses(lambda a, g: 1 + abs(np.log10(a) - 1) + g)) == ["gamma"]
    assert on_edge(GRID, losses(lambda a, g: 1 + 1 / a + abs(g - 0.2))) == ["alpha"]
    assert on_edge(GRID, losses(lambda a, g: 1 + abs(np.log10(a) - 1) + abs(g - 0.2))) == []


def test_a_flat_end_is_no_edge():
    assert on_edge(GRID, losses(lambda a, g: 1 + 1e-6 / a + abs(g - 0.2))) == []
    assert on_edge(GRID, losses(lambda a, g: -1 - 1e-6 * a + abs(g - 0.2))) == []  # minus a score
    assert on_edge(GRID, np.full(9, np.nan)) == []


def test_beyond_the_edge_the_grid_goes_on_in_its_steps():
    (grid,) = beyond(GRID, losses(lambda a, g: 1 + 1 / a + abs(g - 0.2)))
    assert grid["gamma"] == [0.1, 0.2, 0.4]
    np.testing.assert_allclose(grid["alpha"], 100 * 10.0 ** np.arange(1, 9))
    (grid,) = beyond(GRID, losses(lambda a, g: 1 + abs(np.log10(a) - 1) + g))
    np.testing.assert_allclose(grid["gamma"], [0.05, 0.025, 0.0125])
    assert grid["alpha"] == [1.0, 10.0, 100.0]


WIDE = np.linspace(-1, 1, 40)[:, None]
SMOOTH = 1.0 + WIDE[:, 0]  # without noise: the least alpha is the best


def test_an_automatic_grid_is_widened_once_and_says_so_where_that_is_not_enough():
    with pytest.warns(ConvergenceWarning, match=r"best (alpha|gamma), .*, lies on the edge of the automatic grid"):
        search = FoldlessSearchCV(LSSVR()).fit(WIDE, SMOOTH)
    least = min(each["alpha"] for each in search.cv_results_["params"])
    narrow = min(each["gamma"] for each in search.cv_results_["params"])
    assert least < 0.99e-6 or narrow < 0.009 / WIDE.var()
    assert len(search.history_) == len(search.cv_results_["params"]) > 170
    assert search.cv_results_["rank_test_criterion"][search.best_index_] == 1


def test_a_given_grid_stays_as_it_is():
    grid = {"alpha": [1.0, 10.0, 100.0], "gamma": [0.1, 1.0, 10.0]}
    search = FoldlessSearchCV(LSSVR(), grid).fit(WIDE, SMOOTH)
    assert len(search.history_) == 9
    assert search.best_params_["alpha"] == 1.0


# -- before the end ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "most", "far"), [("gradient", 2, LSSVC()), ("simplex", 8, LSSVC(alpha=1e4, gamma=1e-3))]
)
def test_the_last_iteration_is_told(method, most, far):
    with pytest.warns(ConvergenceWarning, match=rf"still falling after all max_iter={most} iterations. Raise max_iter"):
        FoldlessSearchCV(far, method=Optimizer(method, max_iter=most)).fit(X, LABELS)


def test_a_grid_stops_at_the_time_limit_after_one_kernel_at_least():
    with pytest.warns(ConvergenceWarning, match=r"stopped by time_limit after 3 evaluations.*judged on 30 rows"):
        search = FoldlessSearchCV(LSSVC(), RBF_GRID, time_limit=1e-9).fit(X, LABELS)
    whole = FoldlessSearchCV(LSSVC(), {**RBF_GRID, "gamma": RBF_GRID["gamma"][:1]}).fit(X, LABELS)
    assert search.stopped_ == "time_limit"
    assert search.best_params_ == whole.best_params_
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])
    assert whole.stopped_ is None


@pytest.mark.parametrize("n_starts", [1, 3])
@pytest.mark.parametrize("method", ["gradient", "simplex"])
def test_a_continuous_search_stops_at_the_time_limit_after_an_iteration(method, n_starts):
    with pytest.warns(ConvergenceWarning, match="stopped by time_limit"):
        search = FoldlessSearchCV(LSSVC(), method=Optimizer(method, n_starts=n_starts), time_limit=1e-9).fit(X, BINARY)
    assert {step["start"] for step in search.history_} == {0}
    assert search.best_criterion_ == min(step["criterion"] for step in search.history_)


def interrupt_after(monkeypatch, module, name, calls):
    """Let a function of a module be interrupted at a later call."""
    function, count = getattr(module, name), []

    def called(*args, **options):
        count.append(1)
        if len(count) > calls:
            raise KeyboardInterrupt
        return function(*args, **options)

    monkeypatch.setattr(module, name, called)


def test_an_interrupted_grid_keeps_the_kernels_it_has(monkeypatch):
    interrupt_after(monkeypatch, _search_runs, "judge_alphas", 1)
    with pytest.warns(ConvergenceWarning, match="stopped by the user after 3 evaluations"):
        search = FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, LABELS)
    assert search.stopped_ == "interrupted"
    assert search.predict(X).shape == (30,)


def test_an_interrupted_descent_keeps_its_best(monkeypatch):
    interrupt_after(monkeypatch, descent, "value_and_gradient", 3)
    with pytest.warns(ConvergenceWarning, match="stopped by the user after 3 evaluations"):
        search = FoldlessSearchCV(LSSVC(), method="gradient").fit(X, LABELS)
    assert search.best_criterion_ == min(step["criterion"] for step in search.history_)


def test_an_interrupt_before_the_first_result_is_the_users(monkeypatch):
    interrupt_after(monkeypatch, solution, "loo_path", 0)
    interrupt_after(monkeypatch, _search_runs, "judge_alphas", 0)
    with pytest.raises(KeyboardInterrupt):
        FoldlessSearchCV(LSSVC(), RBF_GRID).fit(X, LABELS)


# -- time told in advance ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "quicker"),
    [
        ({"param_grid": RBF_GRID}, r"method=.auto. without a param_grid, time_limit="),
        ({"method": Optimizer("gradient", max_iter=2)}, r"method=.auto., fewer iterations \(max_iter= of Optimizer\)"),
    ],
    ids=["grid", "gradient"],
)
def test_a_long_search_is_foreseen_from_a_few_rows(monkeypatch, options, quicker):
    monkeypatch.setattr(_search_runs, "SHORT", 20)
    monkeypatch.setattr(_search_runs, "MEASURED", 15)
    FoldlessSearchCV(LSSVC(), **options).fit(X, LABELS)  # not long enough to speak of
    monkeypatch.setattr(_search_runs, "LONG", 0.0)
    with pytest.warns(UserWarning, match=rf"search of 30 rows .* about \d+ minutes. Quicker are {quicker}"):
        FoldlessSearchCV(LSSVC(), **options).fit(X, LABELS)


def test_time_grows_faster_than_the_rows_unless_features_are_fewer(monkeypatch):
    monkeypatch.setattr(_search_runs, "SHORT", 20)
    monkeypatch.setattr(_search_runs, "MEASURED", 15)
    clock = iter([0.0, 1.0, 0.0, 1.0])
    monkeypatch.setattr(_search_runs.time, "perf_counter", lambda: next(clock))
    seen = []
    for kernel, factor in (("rbf", 2.0**2.6), ("linear", 2.0)):
        task = SearchData(X, BINARY).task(LSSVC(kernel)).task
        assert _search_runs.foreseen_seconds(task, None, seen.append) == pytest.approx(factor)
    assert [len(rows) for rows in seen] == [15, 15]
