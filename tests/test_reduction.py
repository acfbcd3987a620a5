"""Reduced instances against explicit averaging matrices, averages of explicit features and refits on them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.linalg import block_diag
from sklearn import model_selection as skl
from sklearn.metrics import pairwise
from sklearn.model_selection import GroupKFold, StratifiedKFold

import foldless._engine.linalg.memory as memory
from foldless import LSSVC, KernelFisherDiscriminant, reduction, reference
from foldless.model_selection import cross_val_predict
from foldless.reduction import Reduced, partition, reduce_instances
from support.tolerances import assert_close

GAMMA = 0.3
KERNELS = {
    "linear": lambda X, Z: X @ Z.T,
    "poly": lambda X, Z: (GAMMA * X @ Z.T + 1.0) ** 3,
    "rbf": lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=GAMMA),
    "laplacian": lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=GAMMA),
    "boolean": lambda X, Z: 2.0 ** (X @ Z.T),
    "cosine": pairwise.cosine_similarity,
}
ALL_KERNELS = pytest.mark.parametrize("kernel", KERNELS)
FORMS = pytest.mark.parametrize(
    "form", [np.asarray, sp.csr_array, sp.csc_matrix, pd.DataFrame], ids=lambda form: form.__name__
)


def data(n=47, classes=3, seed=0):
    """Rows of unbalanced classes, the labels strings."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.minimum(np.arange(n) % (classes + 1), classes - 1))
    return rng.normal(size=(n, 4)) + codes[:, None], np.array(["left", "right", "up"])[codes]


def averaging_matrix(members, n):
    M = np.zeros((len(members), n))
    for a, rows in enumerate(members):
        for i in rows:
            M[a, i] = 1.0 / len(rows)
    return M


# -- the Gram matrix ---------------------------------------------------------------------------------------------------


@ALL_KERNELS
@FORMS
@pytest.mark.parametrize("few_of", [{"size": 8}, {"method": "subsample", "keep": 8}], ids=["average", "subsample"])
def test_gram_matrices_are_those_of_the_explicit_averaging_matrix(kernel, form, few_of):
    (X, y), new = data(), data(11, seed=1)[0]
    few = reduce_instances(form(X), y, **few_of, kernel=kernel, gamma=GAMMA, random_state=3)
    M, function = averaging_matrix(few.members, len(X)), KERNELS[kernel]
    assert_close(few.K, M @ function(X, X) @ M.T, rtol=1e-12)
    np.testing.assert_array_equal(few.K, few.K.T)
    assert_close(few.gram(form(new)), function(new, X) @ M.T, rtol=1e-12)
    sets = [[0, 5, 7], [10], [2, 1]]
    assert_close(few.gram(form(new), sets), averaging_matrix(sets, 11) @ function(new, X) @ M.T, rtol=1e-12)


def test_a_linear_kernel_averages_the_rows_themselves():
    X, y = data()
    few = reduce_instances(X, y, size=4, kernel="linear", random_state=0)
    means = np.array([X[rows].mean(0) for rows in few.members])
    assert_close(few.K, means @ means.T, rtol=1e-13)


def test_a_precomputed_and_a_callable_kernel_are_averaged_like_a_named_one():
    (X, y), new = data(), data(9, seed=2)[0]
    function = KERNELS["rbf"]
    named = reduce_instances(X, y, size=3, gamma=GAMMA, random_state=1)
    own = reduce_instances(X, y, size=3, kernel=function, random_state=1)
    given = reduce_instances(function(X, X), y, size=3, kernel="precomputed", random_state=1)
    sparse = reduce_instances(sp.csr_array(function(X, X)), y, size=3, kernel="precomputed", random_state=1)
    for other, rows in ((own, new), (given, function(new, X)), (sparse, sp.csr_array(function(new, X)))):
        assert_close(other.K, named.K, rtol=1e-12)
        assert_close(other.gram(rows), named.gram(new), rtol=1e-12)
        assert_close(other.gram(rows, [[0, 1], [2, 3, 4]]), named.gram(new, [[0, 1], [2, 3, 4]]), rtol=1e-12)


@pytest.mark.parametrize("budget", [1, 100, 333, 1000])
@pytest.mark.parametrize("size", [2, 5, 40])
def test_chunks_of_any_size_give_the_same_result_and_stay_within_the_budget(budget, size, monkeypatch):
    """Chunks end inside instances; at least one row is evaluated at a time."""
    X, y = data()
    held = []

    def function(A, Z):
        held.append(len(A) * len(Z))
        return KERNELS["rbf"](A, Z)

    whole = reduce_instances(X, y, size=size, gamma=GAMMA, random_state=0)
    monkeypatch.setattr(reduction, "BUDGET", budget)
    for kernel in ("rbf", function):
        chunked = reduce_instances(X, y, size=size, kernel=kernel, gamma=GAMMA, random_state=0)
        assert_close(chunked.K, whole.K, rtol=1e-13)
        assert_close(chunked.gram(X[:9], [[0, 3], [1, 2, 4]]), whole.gram(X[:9], [[0, 3], [1, 2, 4]]), rtol=1e-13)
    assert max(held) <= max(budget, len(X))


def test_float32_stays_float32():
    X, y = data()
    double, single = (reduce_instances(X.astype(t), y, gamma=GAMMA, random_state=0) for t in (float, np.float32))
    assert single.K.dtype == single.gram(X.astype(np.float32)).dtype == np.float32
    assert_close(single.K, double.K.astype(np.float32), rtol=1e-5)


def test_gamma_scale_is_the_one_of_all_rows():
    X, y = data()
    few = reduce_instances(X, y, random_state=0)
    assert few.kernel.gamma == pytest.approx(1 / (X.shape[1] * X.var()))
    M = averaging_matrix(few.members, len(X))
    assert_close(few.K, M @ pairwise.rbf_kernel(X, gamma=few.kernel.gamma) @ M.T, rtol=1e-12)


# -- which rows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5, 7, 100])
def test_every_row_is_in_one_average_of_its_class_and_sizes_differ_by_one_at_most(size):
    X, y = data()
    few = reduce_instances(X, y, size=size, kernel="linear", random_state=0)
    assert isinstance(few, Reduced)
    np.testing.assert_array_equal(np.sort(np.concatenate(few.members)), np.arange(len(X)))
    np.testing.assert_array_equal(few.sizes, [len(rows) for rows in few.members])
    assert few.groups is None
    for label, rows in zip(few.y, few.members, strict=True):
        assert set(y[rows]) == {label}
    for label in np.unique(y):
        sizes, count = few.sizes[few.y == label], np.sum(y == label)
        assert np.ptp(sizes) <= 1
        assert len(sizes) == max(1, int(count / size + 0.5))
    first = [rows[0] for rows in few.members]
    assert first == sorted(first)


def test_groups_are_not_mixed_and_splitters_by_group_keep_rows_apart():
    X, y = data(60)
    groups = np.array(list("abcde"))[np.random.default_rng(5).integers(5, size=60)]
    few = reduce_instances(X, y, size=3, groups=groups, kernel="linear", random_state=0)
    for label, group, rows in zip(few.y, few.groups, few.members, strict=True):
        assert set(groups[rows]) == {group}
        assert set(y[rows]) == {label}
    assert max(few.sizes) > 1
    for train, test in GroupKFold(3).split(few.K, few.y, few.groups):
        rows = [np.concatenate([few.members[a] for a in part]) for part in (train, test)]
        assert not set(groups[rows[0]]) & set(groups[rows[1]])


@pytest.mark.parametrize("size", [3, 10, 30, 47, 0.1, 0.5, 1.0])
def test_a_subsample_keeps_the_proportions_and_every_class(size):
    X, y = data()
    few = reduce_instances(X, y, method="subsample", keep=size, groups=np.arange(47), kernel="linear", random_state=2)
    rows = np.concatenate(few.members)
    keep = round(size * 47) if isinstance(size, float) else size
    assert len(set(rows)) == len(rows) == keep
    np.testing.assert_array_equal(few.y, y[rows])
    np.testing.assert_array_equal(few.groups, rows)
    np.testing.assert_array_equal(few.sizes, 1)
    for label in np.unique(y):
        assert abs(np.sum(few.y == label) - keep * np.mean(y == label)) < 2
        assert label in few.y


def test_values_of_a_regression_can_be_subsampled():
    X, _ = data()
    y = X.sum(1) + 0.5
    few = reduce_instances(X, y, method="subsample", keep=10, kernel="linear", random_state=0)
    np.testing.assert_array_equal(few.y, y[np.concatenate(few.members)])
    both = reduce_instances(X, np.column_stack([y, -y]), method="subsample", keep=10, kernel="linear", random_state=0)
    np.testing.assert_array_equal(both.y, np.column_stack([few.y, -few.y]))


def test_default_reduction_leaves_a_fifth_of_the_rows():
    X, y = data(100)
    assert len(reduce_instances(X, y, random_state=0).y) == 20
    assert len(reduce_instances(X, y, method="subsample", random_state=0).y) == 20


def test_the_size_of_a_subsample_is_called_keep():
    X, y = data()
    assert len(reduce_instances(X, y, method="subsample", keep=12, random_state=0).y) == 12
    with pytest.raises(ValueError, match="keep= is the number of rows to keep, or their share"):
        reduce_instances(X, y, method="subsample", size=12, random_state=0)


@pytest.mark.parametrize("method", ["average", "subsample"])
def test_random_state_draws_the_instances(method):
    X, y = data()

    def members(seed):
        return [rows.tolist() for rows in reduce_instances(X, y, method=method, random_state=seed).members]

    assert members(0) == members(0)
    assert members(0) != members(1)


# -- models of instances -----------------------------------------------------------------------------------------------


def quadratic_features(X):
    """Explicit features of (0.3 x.z + 1)^2."""
    Z = np.column_stack([np.sqrt(GAMMA) * X, np.ones(len(X))])
    return np.einsum("ni,nj->nij", Z, Z).reshape(len(X), -1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [KernelFisherDiscriminant, LSSVC], ids=lambda kind: kind.__name__)
def test_cross_validation_equals_refits_on_averages_of_explicit_features(kind, weighted):
    X, y = data(90)
    few = reduce_instances(X, y, size=4, kernel="poly", gamma=GAMMA, degree=2, random_state=0)
    features = np.array([quadratic_features(X)[rows].mean(0) for rows in few.members])
    params = {"sample_weight": few.sizes} if weighted else None
    options = {"cv": StratifiedKFold(4), "method": "decision_function", "params": params}
    ours = cross_val_predict(kind(kernel="precomputed", alpha=0.7), few.K, few.y, **options)
    assert_close(ours, skl.cross_val_predict(kind(kernel="linear", alpha=0.7), features, few.y, **options))


def test_a_discriminant_of_averages_predicts_new_rows_and_new_averages_as_the_reference_does():
    (X, y), (new, labels) = data(90), data(20, seed=4)
    few = reduce_instances(X, y, size=4, gamma=GAMMA, random_state=0)
    machine = KernelFisherDiscriminant(kernel="precomputed", alpha=0.2).fit(few.K, few.y, sample_weight=few.sizes)
    sets = partition(labels, size=3, random_state=0)
    M = averaging_matrix(few.members, 90)
    for matrix, found in ((np.eye(20), few.gram(new)), (averaging_matrix(sets, 20), few.gram(new, sets))):
        both = block_diag(M, matrix)
        K = both @ pairwise.rbf_kernel(np.vstack([X, new]), gamma=GAMMA) @ both.T
        train, test = np.arange(len(M)), np.arange(len(M), len(K))
        codes = np.r_[np.unique(few.y, return_inverse=True)[1], np.zeros(len(test), int)]
        w = np.r_[few.sizes, np.ones(len(test))].astype(float)
        expected = reference.discriminant(K, codes, train, test, 0.2, w=w)[2]
        assert_close(machine.decision_function(found), expected, rtol=1e-7)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "mean"}, "method='mean' is unknown; use 'average' or 'subsample'"),
        ({"size": 0}, "size=0 must be an integer >= 1"),
        ({"size": 2.5}, "size=2.5 must be an integer >= 1"),
        ({"size": True}, "size=True must be an integer >= 1"),
        ({"keep": 5}, "keep=5 is for method='subsample'; size= is the number of rows in an average"),
        ({"method": "subsample", "keep": 48}, "keep=48 must be the number of rows to keep, 1 to 47"),
        ({"method": "subsample", "keep": 1.5}, "keep=1.5 must be the number of rows"),
        ({"method": "subsample", "keep": 0.0}, "keep=0.0 must be the number of rows"),
        ({"method": "subsample", "keep": True}, "keep=True must be the number of rows"),
        ({"method": "subsample", "keep": 2}, "keep=2 keeps 2 rows and y has 3 classes"),
        ({"method": "subsample", "keep": 0.05}, "keep=0.05 keeps 2 rows and y has 3 classes"),
        ({"y": np.linspace(0, 1, 47)}, "y holds continuous targets and only rows of one class can be averaged"),
        ({"y": np.eye(47)[:, :2]}, "y holds multilabel-indicator targets"),
        ({"y": np.zeros(46)}, "inconsistent numbers of samples"),
        ({"method": "subsample", "groups": np.zeros(46)}, "inconsistent numbers of samples"),
        ({"kernel": "precomputed"}, "expects the square Gram matrix of all rows"),
        ({"kernel": "sigmoid"}, "kernel='sigmoid' is unknown"),
        ({"kernel": lambda X, Z: X @ (Z + 1.0).T}, "the averaged Gram matrix is not symmetric"),
        ({"X": np.full((47, 4), np.nan)}, "contains NaN"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_data_that_cannot_be_reduced_are_refused(change, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        reduce_instances(**{"X": X, "y": y, "random_state": 0, **change})


def test_partition_checks_its_groups():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        partition([0, 1, 0, 1], groups=[0, 1])


@pytest.mark.parametrize("members", [[], [np.arange(0)], [[0, 9]], [[-1]], [[0.5]], [0, 1]], ids=str)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_members_of_new_rows_must_exist(members, kernel):
    X, y = data()
    few = reduce_instances(X, y, kernel=kernel, random_state=0)
    with pytest.raises(ValueError, match="members must hold row numbers of X_new, 0 to 8"):
        few.gram(X[:9], members)


def test_new_rows_have_the_same_features():
    X, y = data()
    with pytest.raises(ValueError, match="X_new has 3 columns and X had 4"):
        reduce_instances(X, y, random_state=0).gram(X[:, :3])


def test_a_gram_matrix_that_cannot_be_held_is_refused_before_it_is_made(monkeypatch):
    X, y = data()
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="the Gram matrix of the reduced instances"):
        reduce_instances(X, y, size=1)
