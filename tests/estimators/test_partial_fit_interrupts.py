"""Interrupts and memory that runs out leave the model of partial_fit and forget as it was."""

import joblib
import numpy as np
import pytest
from sklearn.base import clone

import foldless._engine.linalg.memory as memory
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless._engine.precision import growing
from support.interrupts import interrupted
from support.online import (
    D,
    X,
    all_outputs,
    assert_same,
    every_kind,
    every_penalty,
    fitted_on,
    interrupted_add,
    targets,
    updated_model,
)
from support.tolerances import assert_close

UPDATES = "estimators/(online|rows)|updates|growing|square"
ALL = "^(?!.*threads)"  # threads are restored when the update is done


@pytest.mark.many_cases
@pytest.mark.parametrize(
    ("kind", "options", "verb", "only"),
    [
        (LSSVC, {}, "learn", ALL),
        (KernelFisherDiscriminant, {"penalty": "coef"}, "learn", UPDATES),
        (LSSVR, {"kernel": "linear"}, "learn", UPDATES),
        (LSSVR, {}, "forget", ALL),
        (KernelFisherDiscriminant, {"penalty": "coef"}, "forget", UPDATES),
    ],
    ids=["LSSVC learn", "KFDA coef learn", "LSSVR linear learn", "LSSVR forget", "KFDA coef forget"],
)
def test_an_interrupt_at_any_line_changes_nothing_or_all(kind, options, verb, only):
    def learn(model):
        return model.partial_fit(X[30:32], targets(kind, [30, 31]))

    def make():
        return updated_model(kind, **options)

    call = learn if verb == "learn" else lambda model: model.forget([1, 17])
    content, expected, later = joblib.hash(make()), make().loo_predict(), learn(make()).forget([2])
    n, n_complete, complete = 0, 0, joblib.hash(call(make()))
    for n, model in enumerate(interrupted(make, call, only), 1):
        found = joblib.hash(model)  # pickles differ by which equal strings are one object
        if found == complete:  # the interrupt came after the last step
            n_complete += 1
            continue
        assert found == content
        if n % 3 == 0:
            assert_same({"loo": model.loo_predict()}, {"loo": expected})
        learn(model).forget([2])
        names = ("dual_coef_", "loo_predict", "loo_decision_function")
        for name in names if kind is not LSSVR else names[:2]:
            one, two = (getattr(each, name) for each in (model, later))
            assert_same({name: one() if callable(one) else one}, {name: two() if callable(two) else two})
    assert n > 30
    assert n_complete < 10


N_LARGE = np.random.default_rng(1).normal(size=(230, D))


def large_model(*blocks):
    """150 rows in the growing holder, then without blocks of these sizes."""
    model = LSSVR(gamma=0.2, alpha=0.5).fit(N_LARGE[:151], np.sin(N_LARGE[:151, 0])).forget([150])
    for size in blocks:
        model.forget(np.arange(size))
    return model


def more_rows(model, n=70):
    return model.partial_fit(N_LARGE[150 : 150 + n], np.sin(N_LARGE[150 : 150 + n, 0]))


every_change_of_size = {"grows": ((), more_rows), "shrinks": ((50, 33), lambda model: model.forget(np.arange(10)))}


@pytest.mark.parametrize("case_name", every_change_of_size)
def test_an_interrupt_while_the_array_is_replaced_changes_nothing(case_name):
    blocks, call = every_change_of_size[case_name]

    def size(model):
        return len(model._parts.full_fit.own_precision._held)

    model = large_model(*blocks)
    before = size(model)
    assert (size(call(model)) > before) == (case_name == "grows")  # the array is indeed another one
    assert size(model) != before
    assert "growing" in model.holder_
    rows = model.X_fit_
    for _ in range(10):
        assert "growing" in model.forget([0]).holder_  # no drift that asks for a new factorisation
    assert_close(model.loo_predict(), clone(model).fit(rows[10:], np.sin(rows[10:, 0])).loo_predict())
    expected, later = large_model(*blocks).loo_predict(), more_rows(large_model(*blocks), 3).forget([2]).loo_predict()
    n = 0
    for n, model in enumerate(interrupted(lambda: large_model(*blocks), call, "growing|square"), 1):
        if n % 2:
            assert_close(model.loo_predict(), expected)
        assert_close(more_rows(model, 3).forget([2]).loo_predict(), later)
    assert n > 20


@every_kind
@every_penalty
@pytest.mark.parametrize("asked", [False, True])
def test_interrupted_update_of_P_is_not_used(kind, penalty, asked, monkeypatch):
    for call in (lambda m: m.forget([2, 5]), lambda m: m.partial_fit(X[:2], targets(kind, [0, 1]))):
        model, twin = updated_model(kind, penalty=penalty), updated_model(kind, penalty=penalty)
        with monkeypatch.context() as patch:
            patch.setattr(growing, "add_signed_", interrupted_add)
            with pytest.raises(KeyboardInterrupt):
                call(model)
        assert joblib.hash(model) == joblib.hash(twin)
        if asked:
            assert_same(all_outputs(model), all_outputs(twin))
        for each in (model, twin):
            call(each)
        assert_same(all_outputs(model), all_outputs(twin))


def assert_memory_may_run_out(make, call, monkeypatch):
    """Let every request for memory fail in turn."""
    expected, failures = all_outputs(call(make()), N_LARGE[:5]), 0
    while True:
        model, asked = make(), iter(range(100))
        with monkeypatch.context() as patch:
            patch.setattr(
                memory,
                "available_memory",
                lambda asked=asked, n=failures: 0 if next(asked) >= n else None,
            )
            try:
                call(model)
                break
            except MemoryError:
                pass
        assert joblib.hash(model) == joblib.hash(make())
        assert_same(all_outputs(call(model), N_LARGE[:5]), expected)
        failures += 1
    assert failures
    assert_same(all_outputs(model, N_LARGE[:5]), expected)


@every_kind
@every_penalty
@pytest.mark.parametrize("verb", ["learn", "forget"])
def test_memory_that_runs_out_changes_nothing(kind, penalty, verb, monkeypatch):
    def learn(m):
        return m.partial_fit(X[:2], targets(kind, [0, 1]))

    call = learn if verb == "learn" else lambda m: m.forget([2, 5])
    assert_memory_may_run_out(lambda: fitted_on(kind, range(20), penalty=penalty), call, monkeypatch)


@pytest.mark.parametrize("case_name", every_change_of_size)
def test_memory_that_runs_out_while_the_array_is_replaced_changes_nothing(case_name, monkeypatch):
    blocks, call = every_change_of_size[case_name]
    assert_memory_may_run_out(lambda: large_model(*blocks), call, monkeypatch)
