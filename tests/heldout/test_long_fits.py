"""Fits and calls that take long are announced before they begin."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, AdaptiveKDA, FoldlessSearchCV
from foldless._engine.heldout import caution
from foldless._engine.heldout.caution import LongFitWarning, caution_of_size, long_fit
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import Solution
from foldless._engine.linalg import memory
from foldless._engine.precision.cost import qr_factors
from foldless._engine.readout.task import Task
from foldless._sklearn.planner import plan
from foldless._sklearn.request import CrossValidation
from foldless.estimators import checks
from foldless.estimators.access import task_of
from foldless.kernels import Nystroem
from foldless.model_selection import (
    compare,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    explain,
    nested_cross_validate,
    permutation_test_score,
    score_interval,
)


@pytest.fixture
def much_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2**40)


@pytest.fixture
def every_fit_is_long(monkeypatch, much_memory):
    monkeypatch.setattr(checks, "announced", set())
    monkeypatch.setattr(caution, "LONG", 0.0)
    monkeypatch.setattr(caution, "MOST_SHORT", 0)


def rows(n, dtype=float):
    return np.random.default_rng(0).normal(size=(n, 3)).astype(dtype), np.arange(n) % 2


def said(model, n, dtype=float):
    found = caution_of_size(task_of(model, *rows(n, dtype)).task.problem)
    return None if found is None else str(found)


@pytest.mark.usefixtures("much_memory")
def test_thirty_thousand_rows_are_announced_with_time_memory_and_remedy():
    message = said(LSSVC(), 30_000)
    assert "a fit of 30000 rows takes about 2 minutes" in message
    assert "6.7 GiB of memory" in message
    assert "Quicker is kernel=Nystroem(...) of foldless.kernels" in message
    assert "1 minute on two processors, and 3.4 GiB" in said(LSSVC(), 30_000, np.float32)
    assert "9 minutes on two processors, and 20.1 GiB" in said(LSSVC(penalty="coef"), 30_000)


@pytest.mark.usefixtures("much_memory")
@pytest.mark.parametrize(
    ("model", "n"),
    [
        (LSSVC(), 20_000),
        (LSSVC("linear"), 50_000),
        (LSSVC(Nystroem("rbf", 50, landmarks="uniform")), 50_000),
    ],
)
def test_quick_fits_are_not_announced(model, n):
    assert said(model, n) is None


@pytest.mark.usefixtures("much_memory")
def test_a_gram_matrix_has_no_landmarks():
    message = str(long_fit(30_000, 9e12, 1, np.float64, takes_rows=False))
    assert "Nystroem" not in message
    assert "reduce_instances" in message


def test_a_fit_without_the_memory_is_left_to_its_error(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2**30)
    assert said(LSSVC(), 30_000) is None


@pytest.mark.usefixtures("much_memory")
def test_factors_of_adaptive_models_are_announced():
    assert "20 minutes" in str(long_fit(30_000, *qr_factors(30_000), np.float64))


@pytest.mark.usefixtures("every_fit_is_long")
@pytest.mark.filterwarnings("error")
def test_the_warning_comes_before_the_work_and_can_stop_it(monkeypatch):
    monkeypatch.setattr(Task, "training_parts", None)
    for _ in range(2):
        with pytest.raises(LongFitWarning):
            LSSVC().fit(*rows(20))
    with pytest.warns(LongFitWarning), pytest.raises(TypeError):
        LSSVC().fit(*rows(20))


@pytest.mark.usefixtures("every_fit_is_long")
def test_updates_are_not_announced():
    X, y = rows(20)
    for model in (LSSVC(gamma=1.0), AdaptiveKDA(gamma=1.0)):
        with pytest.warns(LongFitWarning):
            model.fit(X, y)
        checks.announced.clear()
        model.partial_fit(X[:2], y[:2]).forget([0])  # warnings are errors here


@pytest.mark.usefixtures("every_fit_is_long")
def test_a_search_announces_no_fit():
    FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}).fit(*rows(20))  # warnings are errors here


@pytest.mark.usefixtures("every_fit_is_long")
def test_refits_of_candidates_are_announced_once_for_each_size():
    X, y = rows(330)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        GridSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}, cv=StratifiedKFold(4), refit=False).fit(X, y)
    assert len([each for each in found if each.category is LongFitWarning]) == 1


@pytest.mark.usefixtures("much_memory")
def test_calls_of_thirty_thousand_rows_are_announced_with_their_time(monkeypatch):
    monkeypatch.setattr(checks, "announced", set())
    X, y = rows(30_000)
    # P takes two thirds of n^3 operations, and each of ten sets of 3,000 rows n t^2 more. Two large training parts are
    # solved by themselves.
    for cv, minutes in ((10, "about 5 minutes"), (LeaveOneOut(), "about 4 minutes"), (2, None)):
        checks.announced.clear()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            plan(CrossValidation(estimator=LSSVC(gamma=1.0), X=X, y=y, cv=cv))
        messages = [str(each.message) for each in found]
        assert [f"a cross-validation of 30000 rows takes {minutes}" in text for text in messages] == [True] * (cv != 2)


LONG_CALLS = {
    "cross_val_predict": lambda X, y: cross_val_predict(LSSVC(), X, y),
    "cross_validate": lambda X, y: cross_validate(LSSVC(), X, y),
    "cross_val_score": lambda X, y: cross_val_score(LSSVC(), X[:, :, None], y),
    "score_interval": lambda X, y: score_interval(LSSVC(), X, y, n_repeats=1),
    "compare": lambda X, y: compare(LSSVC(), LSSVC("linear", gamma=2.0), X, y, n_repeats=1),
    "permutation_test_score": lambda X, y: permutation_test_score(LSSVC(), X, y, n_permutations=5),
    "class weights": lambda X, y: permutation_test_score(LSSVC(class_weight={0: 2.0}), X, y, n_permutations=5),
    "behind steps": lambda X, y: permutation_test_score(make_pipeline(StandardScaler(), LSSVC()), X, y),
    "a search": lambda X, y: permutation_test_score(FoldlessSearchCV(LSSVC(), GRID), X, y, n_permutations=5),
    "nested_cross_validate": lambda X, y: nested_cross_validate(FoldlessSearchCV(LSSVC(), GRID), X, y),
}
GRID = {"alpha": [0.1, 1.0]}


@pytest.mark.usefixtures("every_fit_is_long")
@pytest.mark.parametrize("name", LONG_CALLS)
@pytest.mark.filterwarnings("error")
def test_a_long_call_is_announced_before_the_work(name, monkeypatch):
    monkeypatch.setattr(Solution, "fit", None)
    monkeypatch.setattr(Problem, "precision", None)
    monkeypatch.setattr(Problem, "path", None)
    with pytest.raises(LongFitWarning, match=r"^a (nested )?cross-validation|^a permutation test"):
        LONG_CALLS[name](*rows(40))


@pytest.mark.usefixtures("every_fit_is_long")
def test_the_members_of_a_family_are_announced_together():
    X, y = rows(40)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        permutation_test_score(LSSVC(), [X, 2 * X, 3 * X], y, n_permutations=5)
    assert len([each for each in found if each.category is LongFitWarning]) == 1


@pytest.mark.usefixtures("every_fit_is_long")
@pytest.mark.filterwarnings("error")
def test_an_explanation_announces_nothing():
    explain(LSSVC(), *rows(40))
