"""Small problems have one thread of the BLAS, large ones all, and afterwards all is as before."""

import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from threading import Event, Thread

import numpy as np
import pytest
from joblib import delayed
from threadpoolctl import threadpool_info, threadpool_limits

from foldless import LSSVC, LSSVR, AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.linalg import threads
from foldless._engine.linalg.threads import jobs_as_here, threads_for, two_threads_where_idle
from foldless.kernels import RBF, Linear
from foldless.model_selection import (
    cross_val_predict,
    cross_val_score,
    cross_validate,
    leave_pair_out_auc,
    nested_cross_validate,
    permutation_test_pattern,
    permutation_test_score,
)
from support.interrupts import interrupted

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
Y = np.arange(24) % 2
SEEN = []


def now():
    """The number of threads of each BLAS."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


pytestmark = pytest.mark.skipif(not now(), reason="threadpoolctl knows no BLAS here")


@pytest.fixture(autouse=True)
def _two_threads():
    SEEN.clear()
    with threadpool_limits(2, user_api="blas"):
        yield


@dataclass(frozen=True)
class Watched(RBF):
    """Writes down how many threads there are when the kernel is evaluated."""

    def gram(self, X, Z=None):
        SEEN.append(now())
        return super().gram(X, Z)


@dataclass(frozen=True)
class WatchedLinear(Linear):
    def features(self, X):
        SEEN.append(now())
        return super().features(X)


SVM = LSSVC(Watched(0.3), calibration="sigmoid")


def fitted(model=SVM):
    """A model without its factor: what it is asked next evaluates the kernel again."""
    model = pickle.loads(pickle.dumps(model.fit(X, Y)))
    SEEN.clear()
    return model


SEARCH = FoldlessSearchCV(LSSVC(Watched(0.3)), {"alpha": [0.1, 1.0]})
CALLS = {
    "fit": lambda: LSSVC(Watched(0.3)).fit(X, Y),
    "rows by name": lambda: LSSVR(Watched(0.3)).fit(y=Y, X=X.tolist()),
    "predict": lambda: fitted().predict(X),
    "predict_proba": lambda: fitted().predict_proba(X),
    "loo": lambda: fitted().loo_predict(),
    "loo_predict_proba": lambda: fitted().loo_predict_proba(),
    "partial_fit": lambda: fitted().partial_fit(X, Y),
    "forget": lambda: fitted().forget([3]),
    "forgetting_effects": lambda: fitted().forgetting_effects(),
    "certificate": lambda: fitted().unlearning_certificate(),
    "adaptive fit": lambda: AdaptiveKDA(Watched(0.3)).fit(X, Y),
    "adaptive partial_fit": lambda: fitted(AdaptiveKDA(Watched(0.3))).partial_fit(X, Y),
    "adaptive forget": lambda: fitted(AdaptiveKDA(Watched(0.3))).forget([3]),
    "adaptive predict": lambda: fitted(AdaptiveKDA(Watched(0.3))).predict(X),
    "adaptive loo": lambda: fitted(AdaptiveKDA(Watched(0.3))).loo_predict(),
    "cross_validate": lambda: cross_validate(SVM, X, Y, scoring="neg_log_loss"),
    "cross_val_score": lambda: cross_val_score(KernelFisherDiscriminant(Watched(0.3)), X, Y),
    "cross_val_predict": lambda: cross_val_predict(SVM, X, Y),
    "leave_pair_out_auc": lambda: leave_pair_out_auc(LSSVC(Watched(0.3)), X, Y),
    "search": lambda: SEARCH.fit(X, Y),
    "nested": lambda: nested_cross_validate(SEARCH, X, Y),
    "permutation": lambda: permutation_test_score(LSSVC(Watched(0.3)), X, Y, n_permutations=3),
    "family": lambda: permutation_test_score(LSSVC(Watched(0.3)), X[..., None], Y, n_permutations=3),
    "list of matrices": lambda: permutation_test_score(LSSVC(Watched(0.3)), [X, X], Y, n_permutations=3),
    "pattern": lambda: permutation_test_pattern(LSSVC(WatchedLinear()), X, Y, n_permutations=3),
}


@pytest.mark.parametrize("call", CALLS)
def test_small_problems_have_one_thread_and_large_ones_all(call, monkeypatch):
    CALLS[call]()
    assert SEEN
    assert all(each == {1} for each in SEEN)
    assert now() == {2}
    SEEN.clear()
    monkeypatch.setattr(threads, "SMALL", 0)
    CALLS[call]()
    assert SEEN
    assert all(each == {2} for each in SEEN)


def test_members_of_a_generator_are_looked_at_one_by_one():
    permutation_test_score(LSSVC(Watched(0.3)), (each for each in (X, X)), Y, n_permutations=3)
    assert SEEN[-1] == {1}


def test_many_features_are_work_as_well():
    with threads_for(100, 100_000):
        assert now() == {1}
    with threads_for(1000, 100_000):
        assert now() == {2}


def test_rows_already_learnt_count():
    model = LSSVC(Watched(0.3)).fit(X, Y)
    model.X_fit_ = np.broadcast_to(0.0, (10**4, 3))
    assert threads.threads_by_size(lambda self: now())(model) == {2}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_threads_are_restored_after_an_error(error):
    def fail(X):
        with threads_for(10):
            raise error

    with pytest.raises(error):
        threads.threads_by_size(fail)(X)
    assert now() == {2}


def test_the_callers_number_of_threads_is_restored():
    with threadpool_limits(3, user_api="blas"):
        LSSVC(Watched(0.3)).fit(X, Y)
        assert now() == {3}
    assert all(each == {1} for each in SEEN)


def test_threads_of_python_that_overlap_restore_what_the_first_of_them_found():
    first, second = threads_for(10), threads_for(10)
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert now() == {1}
    second.__exit__()
    assert now() == {2}


@pytest.mark.parametrize("nested", [False, True])
def test_threads_are_restored_after_an_interrupt_at_any_line(nested):
    def call(_):
        with threads_for(10):
            if nested:
                LSSVC(Watched(0.3)).fit(X, Y)

    n = 0
    for _ in interrupted(lambda: None, call, "linalg/threads"):
        n += 1
        assert now() == {2}
    assert n > 10


def test_jobs_in_other_processes_have_the_threads_of_the_caller():
    jobs = [delayed(now)()]
    with threads_for(10):
        limited = list(jobs_as_here(jobs))
    for function, args, options in limited:
        assert function(*args, **options) == {1}
    for function, args, options in jobs_as_here(jobs):
        assert function(*args, **options) == {2}


# -- factorisations inside small problems ------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(monkeypatch):
    """The number of running tasks of other programs on a machine of two processors, as a list of one."""
    number = [0]
    monkeypatch.setattr(threads, "_running_elsewhere", lambda: number[0])
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(threads, "LOOK_AGAIN", -1.0)
    return number


@pytest.mark.parametrize(("n_rows", "n_elsewhere", "n_threads"), [(500, 0, 2), (500, 1, 1), (499, 0, 1)])
def test_factorisations_have_two_threads_where_processors_are_idle(elsewhere, n_rows, n_elsewhere, n_threads):
    elsewhere[0] = n_elsewhere
    with threads_for(10):
        with two_threads_where_idle(n_rows, 500):
            assert now() == {n_threads}
        assert now() == {1}
    assert now() == {2}


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("before", "inside"), [(1, 1), (4, 2)])
def test_factorisations_have_no_more_threads_than_before_and_than_two(before, inside):
    with threadpool_limits(before, user_api="blas"), threads_for(10), two_threads_where_idle(500, 500):
        assert now() == {inside}


def test_factorisations_of_large_problems_keep_their_threads(elsewhere):
    elsewhere[0] = 5
    with two_threads_where_idle(5000, 500):
        assert now() == {2}


@pytest.mark.usefixtures("elsewhere")
def test_factorisations_have_one_thread_while_another_thread_of_python_computes():
    entered, leave = Event(), Event()

    def compute():
        with threads_for(10):
            entered.set()
            leave.wait(10)

    other = Thread(target=compute)
    with threads_for(10):
        other.start()
        assert entered.wait(10)
        with two_threads_where_idle(500, 500):
            assert now() == {1}
        leave.set()
        other.join()
        with two_threads_where_idle(500, 500):
            assert now() == {2}


@pytest.mark.usefixtures("elsewhere")
def test_threads_are_restored_after_an_interrupt_of_a_factorisation():
    def call(_):
        with threads_for(10), two_threads_where_idle(500, 500):
            pass

    n = 0
    for _ in interrupted(lambda: None, call, "linalg/threads"):
        n += 1
        assert now() == {2}
    assert n > 10


@pytest.mark.skipif(not Path("/proc/loadavg").exists(), reason="the system does not tell how many tasks run")
def test_running_tasks_of_other_programs_are_counted():
    with Popen([sys.executable, "-c", "while True: pass"]) as program:
        try:
            assert any(threads._running_elsewhere() >= 1 for _ in range(10_000))
        finally:
            program.kill()


def test_other_programs_count_as_running_where_the_system_does_not_tell(monkeypatch):
    monkeypatch.setattr(threads, "Path", lambda name: Path("/nowhere") / name.lstrip("/"))
    assert threads._running_elsewhere() == np.inf
