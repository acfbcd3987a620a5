"""How sets are left out: decided once, and the same held-out values by every plan."""

import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

from foldless import kernels, reference
from foldless._engine.heldout.leave_out import leave_out
from foldless._engine.heldout.plan import ALONE, ARRAY, BLOCKS, FEATURES, LeaveOutPlan, counts_of_splits
from foldless._engine.heldout.scaled import ScaledParts
from foldless._engine.heldout.sets import Sets, split_that_repeats_rows
from foldless._engine.heldout.training_parts import TrainingParts
from foldless._engine.linalg import memory
from foldless._engine.permutation.labelings import Labelings, Moving, Solver
from foldless._engine.precision import cost
from foldless._engine.precision.factored import Factored
from foldless._engine.precision.lowrank import LowRank
from foldless._engine.readout.codings import Regression
from foldless._engine.readout.task import Task
from support.cases import Case
from support.tolerances import assert_close

FOLDS = [np.arange(start, 26, 5) for start in range(5)]  # of 6 rows and of 5
LINEAR, RBF = Case(kernel="linear"), Case()


@pytest.fixture(autouse=True)
def _flops_alone(monkeypatch):
    """Few rows choose as many do: the small steps of a training part are not counted."""
    monkeypatch.setattr(cost, "STEPS_OF_FIT", 0.0)


def parts_of(case, **options):
    return TrainingParts(case.problem(), case.Y, **options)


@pytest.mark.parametrize(
    ("case", "counts", "nested", "form", "batch_sizes"),
    [
        (RBF, {1: 26}, False, BLOCKS, {1: 26}),
        (RBF, {1: 26}, True, ARRAY, {1: 26}),
        (RBF, {2: 9, 4: 2}, False, ARRAY, {2: cost.MAX_ENTRIES // 8, 4: cost.MAX_ENTRIES // 32}),
        (RBF, dict.fromkeys(range(2, 8), 1), False, BLOCKS, {}),  # as many sizes as sets
        (LINEAR, {1: 26}, False, FEATURES, {1: 26}),
    ],
)
def test_the_plan_of_sets(case, counts, nested, form, batch_sizes):
    plan = parts_of(case, nested=nested).planned(counts).plan
    assert (plan.form, plan.batch_sizes, plan.counts) == (form, batch_sizes, counts)
    assert plan.holder is (LowRank if form == FEATURES else Factored)
    assert (plan.arrays == 0) == (form == FEATURES)
    assert plan.held in plan.reason


def test_few_large_folds_have_no_P_of_all_rows():
    plan = parts_of(RBF).planned({13: 2}).plan
    assert (plan.form, plan.batch_sizes, plan.holder, plan.arrays) == (ALONE, {}, None, 0)
    assert "few large folds" in plan.reason
    assert plan.solves_alone(13)


def test_small_training_parts_are_solved_by_themselves_beside_a_P_of_all_rows():
    parts = parts_of(RBF).planned({1: 26, 24: 1})
    assert parts.plan.alone == {24}
    assert not parts.plan.batch_sizes
    assert parts.part(np.arange(2)).choice.startswith("factored: one alpha, one Cholesky factor of 2 rows")
    assert "left out" in parts.part(np.arange(25)).choice


PLANS = {
    "alone": LeaveOutPlan({}, ALONE),
    "some alone": LeaveOutPlan({}, BLOCKS, alone=frozenset([6])),
    "blocks": LeaveOutPlan({}, BLOCKS),
    "array, one by one": LeaveOutPlan({}, ARRAY),
    "array": LeaveOutPlan({}, ARRAY, {5: 3, 6: 1}),
    "some together": LeaveOutPlan({}, ARRAY, {5: 2}),
}


@pytest.mark.parametrize("case", [RBF, LINEAR, Case(weights="random"), Case(q=3)], ids=str)
@pytest.mark.parametrize("name", PLANS)
def test_every_plan_gives_the_fits_of_refits(name, case):
    sets = Sets.of(FOLDS)
    parts = parts_of(case, plan=replace(PLANS[name], counts=sets.counts))
    seen = []
    for numbers, held_out in leave_out(parts, sets):
        for number, fits in zip(numbers, held_out.fits, strict=True):
            train = np.delete(np.arange(26), FOLDS[number])
            assert_close(fits, reference.heldout_fits(case.K, case.Y, train, FOLDS[number], case.alpha, **case.oracle))
            seen.append(number)
    assert sorted(seen) == list(range(5))


def test_other_sets_than_those_planned_for_have_a_plan_of_their_own():
    parts = parts_of(RBF).planned({1: 26})
    assert parts.plan_for(Sets.leave_one_out(26)) is parts.plan
    assert parts.plan_for(Sets.of(FOLDS)).form == ARRAY
    alone = parts_of(RBF).planned({13: 2})
    assert alone.plan_for(Sets.of(FOLDS)) is alone.plan  # there is no P of all rows


def test_splits_are_counted_by_rows_of_positive_weight():
    problem = Case(weights="zeros").problem()  # rows 1 and 11 do not count
    splits = [(np.delete(np.arange(26), fold), fold) for fold in FOLDS]
    assert counts_of_splits(splits, problem) == {6: 1, 5: 3, 3: 1}


def test_splits_that_are_sets():
    splits = [(np.delete(np.arange(26), fold), fold) for fold in FOLDS]
    sets = Sets.from_splits(splits, 26)
    assert sets.counts == {6: 1, 5: 4}
    np.testing.assert_array_equal(sets.rows, np.concatenate(FOLDS))
    assert Sets.from_splits([*splits, (np.arange(20), np.arange(21, 26))], 26) is None  # row 20 is in neither
    assert Sets.from_splits([(np.arange(26), np.empty(0, int))], 26) is None
    assert split_that_repeats_rows(splits) is None
    assert split_that_repeats_rows([*splits, (np.array([3, 3]), np.array([4]))]) == 5


# -- what is frozen ----------------------------------------------------------------------------------------------------


def test_what_follows_from_the_data_is_frozen():
    case, orders = RBF, np.arange(26)[None]
    parts, solver = parts_of(case), Solver.of(case.problem())
    task = Task(case.problem(), case.Y, Regression())
    things = [
        case.problem(),
        parts,
        parts.planned({1: 26}).plan,
        ScaledParts(case.X, case.Y, case.w, 1.0, intercept=True),
        solver,
        Labelings.of(solver, task, case.Y.T[None]),
        Moving.of(solver, task, orders),
    ]
    for thing in things:
        with pytest.raises(FrozenInstanceError):
            setattr(thing, fields(thing)[0].name, None)


def test_a_problem_shares_what_its_relatives_know():
    problem = LINEAR.problem()
    with_more = problem.with_confounds(np.random.default_rng(0).normal(size=(26, 1)))
    for other in (problem.replace(alpha=2.0), problem.weighted_by(np.full(26, 2.0)), with_more):
        assert other.table is problem.table
    assert problem.replace(alpha=2.0).lazy_mean_diagonal is problem.lazy_mean_diagonal
    assert with_more.equal is not problem.equal
    assert problem.replace(kernel=kernels.Linear()).table is not problem.table
    assert problem.weighted_by(np.full(26, 2.0)).weighted
    assert not problem.weighted_by(np.ones(26)).weighted


@pytest.mark.parametrize("case", [LINEAR, RBF, Case(penalty="coef"), Case(q=3, weights="zeros")], ids=str)
def test_a_problem_is_pickled_without_what_is_n_by_n(case):
    problem = case.problem()
    rows = problem.active
    K = problem.gram(rows, rows)
    text = pickle.dumps(problem)
    again = pickle.loads(text)
    assert_close(again.gram(rows, rows), K, rtol=1e-15)
    assert again.mean_diagonal == problem.mean_diagonal
    for name in ("alpha", "n_confounds", "intercept", "n", "dtype", "more_columns", "n_features", "weighted"):
        assert getattr(again, name) == getattr(problem, name)
    if case.kernel == "rbf":
        assert len(text) < K.nbytes + 2500


@pytest.mark.parametrize(
    ("require", "what"),
    [
        (lambda: cost.require_P(100, float, 2.0), "P of all rows"),
        (lambda: cost.require_P_and_factor(100, float, kernels.RBF(1.0)), "P and its factor"),
        (lambda: cost.require_explicit(100, float), "the matrix of the fit"),
        (lambda: cost.require_square(100, float), "room to grow"),
        (lambda: cost.require_updates(100, float), "as it is updated"),
        (lambda: cost.require_gram((100, 100), float), "the kernel matrix"),
        (lambda: cost.require_dense((100, 3), float), "dense array"),
        (lambda: cost.require_eigenvectors(100, float), "eigendecomposition"),
        (lambda: cost.require_qr(100), "QR"),
        (lambda: cost.require_gradient(100, float), "derivatives"),
        (lambda: cost.require_orders(100, 50), "permutations"),
    ],
)
def test_memory_is_required_before_the_work(require, what, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1)
    with pytest.raises(MemoryError, match=what):
        require()
