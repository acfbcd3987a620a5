"""Decisions of many labelings from one P equal those of refits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge

import foldless._engine.permutation.metrics as metrics
from foldless import LSSVC, kernels, reference
from foldless._engine.heldout.moments import Moments
from foldless._engine.permutation.labelings import Labelings, Solver, elsewhere, truth_of
from foldless._engine.permutation.nulls import Exchangeable
from foldless._engine.readout.codings import indicator
from foldless._engine.readout.discriminant import Discriminant
from foldless._sklearn.permutation_spec import PermutationData
from support.permutation import (
    BINARY,
    CODES,
    CONFOUNDS,
    EVERYONE,
    KFDA,
    LABELS,
    PARTS,
    THREE_CLASS_ESTIMATORS,
    VALUES,
    WEIGHT,
    N,
    X,
    few_examples,
    make_classes,
    odd_data,
    orders_of,
)
from support.refits import class_matrices, with_fixed_functions
from support.tolerances import assert_close

WITH_COLUMNS = [each for each in EVERYONE if "loo" not in each.id]


def fitted_columns(estimator, X, y, orders, weight=None):
    task = PermutationData(X, y, weight).task(estimator).task
    return Labelings.of(Solver.of(task.problem), task, truth_of(task, orders))


def decisions(fitted, train, test):
    """Decisions (b, k, t) of all labelings at ``test`` by the models of ``train``."""
    model = fitted.part(train)
    return fitted.reader(model)(model.fits(test))


def as_columns(model, X, **confounds):
    """Decisions or predictions of a fitted estimator, (k, t)."""
    D = model.decision_function(X, **confounds) if hasattr(model, "decision_function") else model.predict(X)
    return D.reshape(len(D), -1).T


def shared_constant(fitted):
    """Whether decisions are the estimator's up to a constant a row."""
    task = fitted.task
    return isinstance(task.readout, Discriminant) and task.n_classes > 2


@pytest.mark.many_cases
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize(("estimator", "y"), WITH_COLUMNS)
def test_decisions_of_all_labelings_are_those_of_refits(estimator, y, weight):
    orders = orders_of(N, m=2)
    fitted, fixed = fitted_columns(estimator, X, y, orders, weight), clone(with_fixed_functions(estimator, X, weight))
    for train, test in PARTS:
        for order, own in zip(orders, decisions(fitted, train, test), strict=True):
            extra = {} if weight is None else {"sample_weight": weight[train]}
            expected = as_columns(fixed.fit(X[train], y[order][train], **extra), X[test])
            if shared_constant(fitted):
                own, expected = own - own.mean(0), expected - expected.mean(0)
            assert_close(own, expected)


@pytest.mark.parametrize("name", ["LSSVC", "LSSVC linear", "LSSVC no intercept", "KFDA", "KFDA coef"])
@pytest.mark.parametrize("lacking", [False, True], ids=["", "a class is missing"])
def test_decisions_in_single_precision_are_near(name, lacking):
    train, test = (CODES < 2).nonzero()[0] if lacking else PARTS[0][0], PARTS[0][1]
    expected = decisions(fitted_columns(THREE_CLASS_ESTIMATORS[name], X, LABELS, [np.arange(N)]), train, test)
    D = decisions(
        fitted_columns(THREE_CLASS_ESTIMATORS[name], X.astype(np.float32), LABELS, [np.arange(N)]), train, test
    )
    assert D.dtype == np.float32
    if lacking:
        assert (D[:, 2] == np.finfo(np.float32).min).all()
        D, expected = D[:, :2], expected[:, :2]
    assert_close(D - D.mean(1, keepdims=True), expected - expected.mean(1, keepdims=True), rtol=2e-3)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("estimator", [LSSVC, KFDA])
@pytest.mark.parametrize("y", [LABELS, BINARY], ids=["3", "2"])
@pytest.mark.parametrize("intercept", [True, False], ids=["", "no intercept"])
def test_decisions_with_the_coefficient_penalty_equal_refits_of_the_matrix(estimator, y, intercept, weight):
    options = {"threshold": "centroid"} if estimator is KFDA else {}
    estimator = estimator(gamma=0.1, penalty="coef", fit_intercept=intercept, **options)
    orders = orders_of(N, m=2)
    fitted = fitted_columns(estimator, X, y, orders, weight)
    K = kernels.resolve("rbf", X, gamma=0.1).gram(X)
    w = np.ones(N) if weight is None else weight
    settings = {"w": w, "Q": np.ones((N, int(intercept))), "penalty": "coef"}
    readout = fitted.task.readout
    codes = np.unique(y, return_inverse=True)[1]
    for train, test in PARTS[:3]:
        for order, own in zip(orders, decisions(fitted, train, test), strict=True):
            Y = readout.targets(codes[order], float)
            F = reference.heldout_fits(K, Y, train, test, 1.0, **settings)
            moments = (
                Moments(*class_matrices(K, Y, train, 1.0, **settings)) if isinstance(readout, Discriminant) else None
            )
            expected = readout.scores(F, moments).reshape(len(test), -1).T
            if shared_constant(fitted):
                own, expected = own - own.mean(0), expected - expected.mean(0)
            assert_close(own, expected)


@pytest.mark.parametrize(("estimator", "y"), WITH_COLUMNS)
def test_decisions_of_a_subset_of_labelings_are_the_same(estimator, y):
    """Whatever was computed of all of them before."""
    orders = orders_of(N, m=4)
    fitted = fitted_columns(estimator, X, y, orders, WEIGHT)
    D = decisions(fitted, *PARTS[0])
    for chosen in ([3], [4, 0], slice(1, 3)):
        some = fitted.select(chosen)
        assert len(some) == len(orders[chosen])
        assert_close(decisions(some, *PARTS[0]), D[chosen])


def test_number_of_columns_of_labelings():
    for n_classes in (2, 3, 6):
        X, y = make_classes(n_classes)
        for intercept in (True, False):
            labelings = fitted_columns(LSSVC(fit_intercept=intercept), X, y, orders_of(N, m=2))
            assert labelings.width == n_classes - intercept
            assert labelings.solution.Y.shape == (N, 3 * labelings.width)
    assert fitted_columns(Ridge(), X, VALUES, orders_of(N, m=2)).width == 1


@pytest.mark.parametrize("kind", ["LSSVC", "KFDA coef", "LSSVC linear", "RidgeClassifier", "LSSVC no intercept"])
def test_solver_equals_refits_for_any_columns_and_rows(kind, monkeypatch):
    """Also of some of the rows, with a P that is known already."""
    task = PermutationData(X, LABELS, WEIGHT).task(THREE_CLASS_ESTIMATORS[kind]).task
    rows, everything = np.flatnonzero(WEIGHT)[3:], np.arange(N)
    problem = task.problem.restricted(rows)
    Y, orders = np.random.default_rng(0).normal(size=(N, 5)), orders_of(N, m=1)
    known = problem.precision(rows)

    def oracle(Y, rows):
        K = problem.gram(everything, everything)
        return reference.heldout_fits(K, Y, rows, everything, problem.alpha, w=WEIGHT, Q=problem.Q)

    solvers = [Solver.of(problem)]
    with monkeypatch.context() as blind:
        blind.setattr(type(problem), "precision", None)  # a P that is known is not made again
        solvers.append(Solver.of(problem, known))
    for solver in solvers:
        assert solver.choice == known.choice
        assert_close(solver.solve(Y).fits(everything), oracle(Y, rows))
        labelings = Labelings.of(solver, task, truth_of(task, orders))
        model = labelings.part(rows[5:])
        for order, own in zip(orders, np.split(model.fits(everything), 2, axis=1), strict=True):
            shown = indicator(task.codes[order], 3, float)[:, labelings.n_implied :]
            assert_close(own, oracle(shown, rows[5:]))


@pytest.mark.parametrize("confounds", [None, CONFOUNDS], ids=["", "confounds"])
@pytest.mark.parametrize("kind", ["LSSVC", "LSSVC linear", "LSSVC coef", "LSSVC no intercept"])
def test_decisions_at_other_features_equal_refits(kind, confounds):
    task = PermutationData(X, LABELS, WEIGHT, confounds).task(THREE_CLASS_ESTIMATORS[kind]).task
    others = np.random.default_rng(3).normal(size=X.shape)
    orders = orders_of(N, m=2)
    fitted = Labelings.of(Solver.of(task.problem), task, truth_of(task, orders))
    train, test = PARTS[1]
    model = fitted.part(train)
    D = fitted.reader(model)(elsewhere(model, test)(others[test]))
    for order, own in zip(orders, D, strict=True):
        extra = {} if confounds is None else {"confounds": confounds[train]}
        refit = clone(with_fixed_functions(THREE_CLASS_ESTIMATORS[kind], X, WEIGHT)).fit(
            X[train], LABELS[order][train], sample_weight=WEIGHT[train], **extra
        )
        shown = {} if confounds is None else {"confounds": confounds[test]}
        assert_close(own, as_columns(refit, others[test], **shown))


@few_examples
@given(odd_data(), st.sampled_from(["rbf", "linear"]), st.sampled_from(["rkhs", "coef"]), st.booleans())
def test_decisions_of_odd_data_equal_refits(data, kernel, penalty, intercept):
    """Of the classes a training part has; the others never win."""
    X, y, train = data
    train, test = np.flatnonzero(train), np.flatnonzero(~train)
    orders = np.vstack([np.arange(len(y)), Exchangeable().orders(len(y), 3, 7)])
    for kind in (LSSVC, KFDA):
        options = {"threshold": "centroid"} if kind is KFDA else {}
        estimator = kind(kernel, gamma=0.5, penalty=penalty, fit_intercept=intercept, **options)
        fitted = fitted_columns(estimator, X, y, orders)
        codes = np.unique(y, return_inverse=True)[1]
        for order, own in zip(orders, decisions(fitted, train, test), strict=True):
            here = np.unique(codes[order][train])
            assert np.isin(metrics.chosen_among_close(own[None])[0], here).all()
            if len(here) == 1 or len(train) < 2:
                continue
            expected = as_columns(with_fixed_functions(estimator, X).fit(X[train], codes[order][train]), X[test])
            if len(here) == 2 and len(own) > 1:
                own, expected = own[here[1:]] - own[here[:1]], expected * (1 if kind is KFDA else 2)
            elif kind is KFDA and len(own) > 1:
                own, expected = own[here] - own[here].mean(0), expected - expected.mean(0)
            assert_close(own, expected, rtol=1e-6, scale=1.0 + np.abs(expected).max())
