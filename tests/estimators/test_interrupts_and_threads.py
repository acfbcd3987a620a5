"""Interrupts and threads: a model never shows a factor that is being overwritten."""

import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Lock, Thread

import numpy as np
import pytest
from numpy.linalg import LinAlgError
from sklearn.metrics.pairwise import rbf_kernel

from foldless import LSSVC, LSSVR, AdaptiveKDA, SlidingWindow
from foldless._engine.linalg import memory, panels
from foldless._engine.linalg import numpy as verbs
from foldless._engine.precision import factored
from foldless._engine.precision.growing import Square
from foldless.estimators import rows
from foldless.estimators.rows import all_or_nothing
from support.interrupts import with_a_call_at_every_line
from support.readers import N_THREADS, X, every_reader, fitted, labels, new, read, read_together, values
from support.tolerances import assert_close

N = len(X)


def overwrite_then_interrupt(monkeypatch, n_times=1, error=KeyboardInterrupt):
    """Let inversions end in an interrupt after their work is done, as a signal during a call of LAPACK does."""
    invert, left = verbs.invert_lower_, [n_times]

    def interrupted(L):
        inverse = invert(L)
        if left[0]:
            left[0] -= 1
            raise error
        return inverse

    monkeypatch.setattr(verbs, "invert_lower_", interrupted)


every_call = {
    "loo_predict": lambda model: model.loo_predict(),
    "predict_interval": lambda model: np.hstack(model.predict_interval(new)),
    "forgetting_effects": lambda model: model.forgetting_effects(),
    "forget": lambda model: model.forget([4]).loo_predict(),
    "partial_fit": lambda model: model.partial_fit(new, new[:, 0]).loo_predict(),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", every_call)
def test_an_interrupted_inversion_starts_again_from_the_kernel(name, weighted, monkeypatch):
    weights = np.linspace(0.5, 2.0, N) if weighted else None

    def make():
        return LSSVR(gamma=0.3, alpha=0.1).fit(X, values, sample_weight=weights)

    call = every_call[name]
    expected, before = call(make()), make().loo_predict()
    overwrite_then_interrupt(monkeypatch, n_times=3)  # an even number would undo itself
    model = make()
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            call(model)
    assert_close(model.loo_predict(), before)
    assert_close(call(model), expected)


def test_an_interrupt_between_panels_starts_again_from_the_kernel(monkeypatch):
    expected = fitted().loo_predict()
    monkeypatch.setattr(verbs, "LARGE", 32)
    monkeypatch.setattr(panels, "WIDTH", 16)
    whole, n_calls = panels._fortran, [0]

    def product(A, B):
        n_calls[0] += 1
        if n_calls[0] == 7:
            raise KeyboardInterrupt
        return whole(A, B)

    model = fitted()
    monkeypatch.setattr(panels, "_fortran", product)
    with pytest.raises(KeyboardInterrupt):
        model.loo_predict()
    assert_close(model.loo_predict(), expected)


def test_a_factor_that_cannot_be_made_again_is_inverted_in_a_copy(monkeypatch):
    S = X @ X.T + np.eye(N)
    expected = factored.Factored(S.copy(), np.ones((N, 1)), 0.1).diagonal()
    overwrite_then_interrupt(monkeypatch)
    holder = factored.Factored(S.copy(), np.ones((N, 1)), 0.1)
    with pytest.raises(KeyboardInterrupt):
        holder.diagonal()
    assert_close(holder.diagonal(), expected)


def test_a_holder_can_be_pickled_before_and_after_its_inversion():
    P = fitted()._loo().full_fit.own_precision
    before = pickle.loads(pickle.dumps(P))
    expected = P.diagonal()
    for copy in (before, pickle.loads(pickle.dumps(P))):
        assert_close(copy.diagonal(), expected)
        assert_close(copy.apply(values[:, None]), P.apply(values[:, None]))


# -- threads -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def quick_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", every_reader)
def test_threads_that_read_one_model_all_get_the_same_numbers(kind, quick_switches):
    make, names = every_reader[kind]
    expected = {name: read(make(), name) for name in names}
    for name, value in read_together(make, names, 5):
        assert_close(value, expected[name])


def test_a_solve_waits_for_the_inversion_of_another_thread(monkeypatch):
    P = fitted()._loo().full_fit.own_precision
    expected = fitted()._loo().full_fit.own_precision.apply(values[:, None])
    overwritten, go_on, results = Event(), Event(), []
    invert = verbs.invert_lower_

    def slow(L):
        inverse = invert(L)
        overwritten.set()
        assert go_on.wait(10)
        return inverse

    monkeypatch.setattr(verbs, "invert_lower_", slow)
    inverter = Thread(target=P.diagonal)
    inverter.start()
    assert overwritten.wait(10)
    solver = Thread(target=lambda: results.append(P.apply(values[:, None])))
    solver.start()
    solver.join(0.05)
    assert not results
    go_on.set()
    inverter.join()
    solver.join()
    assert_close(results[0], expected)


every_writer = {
    "fit": lambda model: model.fit(X, values),
    "partial_fit": lambda model: model.partial_fit(new, new[:, 0]),
    "forget": lambda model: model.forget([0]),
}


@pytest.mark.parametrize("name", every_writer)
def test_during_an_update_others_read_the_model_before_it_and_cannot_write(name, monkeypatch):
    model, expected, predicted = fitted(), fitted().loo_predict(), fitted().predict(new)
    inside, go_on = Event(), Event()
    original = type(model)._accept

    def slow(self, *args):
        inside.set()
        assert go_on.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model), "_accept", slow)
    errors = []

    def write():
        try:
            every_writer[name](model)
        except KeyboardInterrupt as error:
            errors.append(error)

    writer = Thread(target=write)
    writer.start()
    assert inside.wait(10)
    for call in every_writer.values():
        with pytest.raises(RuntimeError, match="another thread is fitting or updating this LSSVR"):
            call(model)
    assert_close(model.loo_predict(), expected)
    assert_close(model.predict(new), predicted)
    go_on.set()
    writer.join()
    assert len(errors) == 1
    monkeypatch.setattr(type(model), "_accept", original)
    assert_close(model.loo_predict(), expected)
    every_writer[name](model)


def test_a_window_may_update_the_model_that_it_is_changing():
    model = SlidingWindow(LSSVR(gamma=0.3), max_samples=50).partial_fit(X[:50], values[:50])
    model.partial_fit(X[50:60], values[50:60])
    assert model.n_samples_ == 50


def test_threads_that_start_a_window_together_lose_no_rows():
    window, start = SlidingWindow(LSSVR(gamma=0.3), max_samples=80), Barrier(N_THREADS)
    lock = Lock()

    def learn(number):
        start.wait()
        rows = slice(20 * number, 20 * number + 20)
        while True:
            try:
                window.partial_fit(X[rows], values[rows])
                return
            except RuntimeError:  # another thread is at it
                with lock:
                    pass

    with ThreadPoolExecutor(N_THREADS) as pool:
        list(pool.map(learn, range(N_THREADS)))
    assert window.n_samples_ == 80


overtaken = {
    "predict": (fitted, lambda model: model.predict(new)),
    "loo_predict": (fitted, lambda model: model.loo_predict()),
    "loo_predict after updates": (lambda: fitted().forget([3]), lambda model: model.loo_predict()),
    "intervals after updates": (lambda: fitted().forget([3]), lambda model: model.predict_interval(new)),
    "unpickled": (lambda: pickle.loads(pickle.dumps(fitted())), lambda model: model.loo_predict()),
    "calibrated": (
        lambda: LSSVC(gamma=0.3, calibration="sigmoid").fit(X, labels).forget([3]),
        lambda model: model.predict_proba(new),
    ),
    "score": (lambda: LSSVC(gamma=0.3).fit(X, labels), lambda model: model.loo_score_),
    "AdaptiveKDA": (lambda: AdaptiveKDA(gamma=0.3).fit(X, labels), lambda model: model.loo_decision_function()),
}


@pytest.mark.parametrize("case", overtaken)
def test_a_reader_that_a_writer_overtakes_at_any_line_gets_the_values_of_one_model(case):
    make, read_from = overtaken[case]

    def write(model):
        return model.partial_fit(X[:8], (values if isinstance(model, LSSVR) else labels)[:8] * 0)

    before, after = read_from(make()), read_from(write(make()))
    assert not np.allclose(np.ravel(before)[:5], np.ravel(after)[:5], rtol=1e-4)
    n, n_after = 0, 0
    for model, value in with_a_call_at_every_line(make, read_from, write):
        n += 1
        if np.shape(value) == np.shape(after) and np.allclose(value, after):  # the reader had not begun
            n_after += 1
        else:
            assert_close(value, before)
        assert_close(read_from(model), after)
    assert n > 5
    assert n_after <= 5  # lines before the state is taken


def test_what_an_interrupt_leaves_does_not_keep_other_threads_from_writing():
    model = fitted()
    keys = {id(model)}
    all_or_nothing(model).__enter__()  # and no more: the interrupt came before the block
    with ThreadPoolExecutor(1) as pool:
        pool.submit(model.forget, [1]).result()
    all_or_nothing(model).__enter__()
    del model
    assert not keys & rows._writers.keys()


@pytest.mark.parametrize("name", ["predict_interval", "forgetting_effects"])
def test_a_reader_whose_arrays_are_replaced_meanwhile_starts_again(name, monkeypatch):
    """A writer has moved P into a larger array, and not changed it yet, between two looks of a reader at it."""
    model = fitted().partial_fit(new, new[:, 0])
    expected, begun, done = read(model, name), [], Event()

    def begin_to_learn(square):
        with all_or_nothing(model):
            square.reserve(1000)
            begun[0].set()
            done.wait(10)

    def after_growth(read_square):
        def grow_and_read(square, *arguments):
            if not begun:
                begun.append(Event())
                Thread(target=begin_to_learn, args=(square,)).start()
                begun[0].wait(10)
            return read_square(square, *arguments)

        return grow_and_read

    monkeypatch.setattr(Square, "entries_of_H", after_growth(Square.entries_of_H))
    monkeypatch.setattr(Square, "columns_of_H", after_growth(Square.columns_of_H))
    monkeypatch.setattr(Square, "times_H", after_growth(Square.times_H))
    try:
        assert_close(read(model, name), expected)
    finally:
        done.set()
    assert begun


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_can_change_a_model_that_a_thread_of_its_parent_was_changing():
    model, inside, go_on = fitted(), Event(), Event()

    def hold():
        with all_or_nothing(model):
            inside.set()
            go_on.wait(10)

    writer = Thread(target=hold)
    writer.start()
    assert inside.wait(10)
    child = os.fork()
    if not child:
        try:
            model.forget([3])
        except BaseException:
            os._exit(1)
        os._exit(0)
    go_on.set()
    writer.join()
    assert os.waitpid(child, 0)[1] == 0


# -- the rows of the user ----------------------------------------------------------------------------------------------


def test_rows_that_the_user_changes_in_place_do_not_change_an_interrupted_model(monkeypatch):
    expected, mine = fitted().loo_predict(), X.copy()
    overwrite_then_interrupt(monkeypatch)
    model = LSSVR(gamma=0.3, alpha=0.1).fit(mine, values)
    mine[:] = 0.0
    with pytest.raises(KeyboardInterrupt):
        model.loo_predict()
    assert_close(model.loo_predict(), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_gram_matrix_that_the_user_changes_in_place_is_an_error_after_an_interrupt(dtype, monkeypatch):
    K = rbf_kernel(X, gamma=0.3).astype(dtype)
    model = LSSVR("precomputed", alpha=0.1).fit(K, values)
    overwrite_then_interrupt(monkeypatch, n_times=2)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            model.loo_predict()
    K[30, 30] += 0.1
    with pytest.raises(RuntimeError, match="changed in place"):
        model.loo_predict()
    K[30, 30] -= dtype(0.1)
    expected = LSSVR("precomputed", alpha=0.1).fit(K, values).loo_predict()
    assert_close(model.loo_predict(), expected, rtol=1e-6 if dtype is np.float64 else 1e-3)


@pytest.mark.parametrize("error", [MemoryError, LinAlgError])
def test_another_error_during_an_inversion_is_as_an_interrupt(error, monkeypatch):
    expected = fitted().loo_predict()
    overwrite_then_interrupt(monkeypatch, error=error)
    model = fitted()
    with pytest.raises(error):
        model.loo_predict()
    assert_close(model.loo_predict(), expected)


def test_an_interrupted_model_holds_no_second_matrix_and_tells_when_memory_is_short(monkeypatch):
    overwrite_then_interrupt(monkeypatch)
    model = fitted()
    expected = fitted().predict(new)
    with pytest.raises(KeyboardInterrupt):
        model.loo_predict()
    holder = model._parts.full_fit.own_precision
    assert not [name for name, value in vars(holder).items() if np.size(value) >= N * N]
    with monkeypatch.context() as patch:
        patch.setattr(memory, "available_memory", lambda: N)
        with pytest.raises(MemoryError, match="the kernel matrix"):
            model.loo_predict()
    assert_close(model.predict(new), expected)
    assert_close(model.loo_predict(), fitted().loo_predict())
