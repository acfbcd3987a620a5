"""Warnings of data, kernels and penalties from which a model can hardly learn."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.heldout.caution import HugePenaltyWarning, NothingLearntWarning
from foldless.model_selection import (
    cross_val_predict,
    cross_val_score,
    nested_cross_validate,
    permutation_test_pattern,
    permutation_test_score,
)

RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
X = RNG.normal(size=(60, 5)) + Y[:, None]
VOLTS = 1e-6 * X
CALLS = {
    "fit": lambda model, X: model.fit(X, Y),
    "predict": lambda model, X: cross_val_predict(model, X, Y),
    "score": lambda model, X: cross_val_score(model, X, Y),
    "permutation": lambda model, X: permutation_test_score(model, X, Y, n_permutations=3),
    "family": lambda model, X: permutation_test_score(model, [X, X, X], Y, n_permutations=3),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def warnings_of(function, *arguments):
    """Messages that a user would see: repetitions of one message at one line are shown once."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        function(*arguments)
    assert all(each.filename == __file__ for each in told)
    return [str(each.message) for each in told]


@every_call
@pytest.mark.parametrize(
    "model", [LSSVC("linear"), KernelFisherDiscriminant(gamma=1.0), LSSVC("linear", penalty="coef")]
)
def test_a_penalty_that_leaves_nothing_is_told_once(call, model):
    (message,) = warnings_of(call, model, VOLTS)
    assert message.startswith("alpha=1 is more than 1e+08 times what the kernel")
    assert all(remedy in message for remedy in ("standardize=True", "smaller alpha", "FoldlessSearchCV"))
    assert not warnings_of(call, model, X)


def test_the_remedies_of_a_large_penalty_remedy():
    for model in (LSSVC("linear", standardize=True), LSSVC("linear", alpha=1e-12), FoldlessSearchCV(LSSVC("linear"))):
        assert not warnings_of(model.fit, VOLTS, Y)


def test_scikit_learns_models_are_warned_of_where_foldless_solves_them():
    for model in (Ridge(), RidgeClassifier(), KernelRidge(kernel="linear", alpha=1e3)):
        with pytest.warns(HugePenaltyWarning):
            cross_val_score(model, VOLTS, Y)
    with pytest.warns(HugePenaltyWarning):
        permutation_test_pattern(LSSVC("linear"), VOLTS, Y, n_permutations=2)


def test_weights_scale_the_kernel():
    light = np.full(60, 1e-9)
    assert warnings_of(lambda: LSSVC("linear").fit(X, Y, sample_weight=light))
    assert not warnings_of(lambda: LSSVC("linear", alpha=1e-9).fit(X, Y, sample_weight=light))


def test_searches_may_try_and_choose_any_penalty():
    labels = np.random.default_rng(5).permutation(Y)
    search = FoldlessSearchCV(LSSVC("linear"), {"alpha": [1e-3, 1e12]})
    for call in (search.fit, lambda X, y: nested_cross_validate(search, X, y, cv=3)):
        assert not warnings_of(call, X, labels)


@every_call
@pytest.mark.parametrize(
    ("kernel", "size"), [("rbf", 1e-9), ("laplacian", 1e-17), ("poly", 1e-9), ("linear", 1e-200)], ids=str
)
def test_a_kernel_that_tells_no_rows_apart_is_told_of(call, kernel, size):
    (message,) = warnings_of(call, LSSVC(kernel, gamma=1.0), size * X)
    assert "is the same number for any two rows" in message
    assert "gamma='scale'" in message
    assert kernel == "linear" or not warnings_of(call, LSSVC(kernel), size * X)


@pytest.mark.parametrize("n", [1, 2, 60])
def test_equal_rows_and_single_rows_are_no_fault_of_the_kernel(n):
    rows = np.ones((n, 3))
    assert not warnings_of(lambda: LSSVR(gamma=1.0).partial_fit(rows, np.arange(n)))


def test_few_rows_that_differ_are_found_among_many_that_are_equal():
    rows = np.zeros((400, 2))
    rows[137] = 1.0
    assert not warnings_of(LSSVR("linear").fit, rows, np.arange(400))
    assert warnings_of(LSSVR("linear").fit, 1e-6 * rows, np.arange(400))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@every_call
def test_the_boolean_kernel_wants_zeros_and_ones(call, form):
    binary = (X > 0.5).astype(float)
    assert not warnings_of(call, LSSVC("boolean"), form(binary))
    (message,) = warnings_of(call, LSSVC("boolean"), form(3 * binary))
    assert message.startswith("kernel='boolean' is for features that are 0 or 1, and X holds 3.")


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_column_that_all_distances_consist_of_is_told(kernel):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(40, 3)), np.arange(40) % 2
    far = rows * [1.0, 1e5, 1.0]
    with pytest.warns(
        NothingLearntWarning, match=rf"column 1 of X spreads 7e\+04 times.*kernel='{kernel}'.*standardize"
    ):
        LSSVC(kernel).fit(far, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LSSVC(kernel).fit(rows * [1.0, 100.0, 1.0], labels)
        LSSVC(kernel, standardize=True).fit(far, labels)
        LSSVC(kernel, gamma=[1.0, 1e-10, 1.0]).fit(far, labels)
        LSSVC("linear").fit(far, labels)
        LSSVC(kernel).fit(far[:, 1:2], labels)
        LSSVC(kernel).fit(far * [0.0, 1.0, 0.0], labels)
