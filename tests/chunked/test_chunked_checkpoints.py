"""Sums of one model are never taken for another, and changed rows are told, whatever changed."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant, chunked
from foldless.chunked.hashing import checksum, row_words
from foldless.chunked.rows import Layout, checked
from foldless.chunked.survey import SALT

N = 120
X = np.random.default_rng(0).normal(size=(N, 3))
VALUES = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=N)
LABELS = np.array(["a", "b", "c"])[np.searchsorted([-0.5, 0.5], X[:, 0])]


@pytest.mark.parametrize("kinds", [(LSSVC, KernelFisherDiscriminant), (KernelFisherDiscriminant, LSSVC)])
def test_sums_of_other_targets_are_refused(tmp_path, kinds):
    first, second = kinds
    data = chunked.arrays(X, LABELS)
    chunked.cross_validate(first("linear"), data, cv=3, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another run"):
        chunked.cross_validate(second("linear"), data, cv=3, checkpoint=tmp_path)


def test_sums_of_other_places_of_the_classes_are_refused(tmp_path):
    """The first rows of the sample have one class only, whose place stays."""
    order = np.argsort(LABELS, kind="stable")
    data = chunked.arrays(X[order], LABELS[order], folds=np.arange(N) % 3)
    options = {"cv": None, "checkpoint": tmp_path}
    chunked.cross_validate(LSSVC("linear"), data, classes=["a", "b", "c", "d"], **options)
    with pytest.raises(ValueError, match="belongs to another run"):
        chunked.cross_validate(LSSVC("linear"), data, classes=["a", "aa", "b", "c"], **options)


def test_sums_of_other_columns_are_refused(tmp_path):
    """Such as those of a version that left out the column of ones of models without an intercept."""
    model, data = LSSVR("linear", fit_intercept=False), chunked.arrays(X, VALUES)
    chunked.cross_validate(model, data, cv=3, checkpoint=tmp_path)
    with np.load(tmp_path / "sums.npz") as file:
        arrays = dict(file)
    arrays["sums_gram_0"] = np.delete(np.delete(arrays["sums_gram_0"], 3, 1), 3, 2)
    np.savez(tmp_path / "sums.npz", **arrays)
    with pytest.raises(ValueError, match="belongs to another run"):
        chunked.cross_validate(model, data, cv=3, checkpoint=tmp_path)


def rows_of(X, start=0, **others):
    """Checked rows with all that rows can have."""
    n = X.shape[0]
    part = slice(start, start + n)
    known = {"y": VALUES[part], "sample_weight": np.arange(N)[part] / N, "groups": LABELS[part]}
    known |= {"folds": np.arange(N)[part] % 4, **others}
    return checked(chunked.Chunk(X, **known), 0, start, Layout(X.shape[1], False, present=tuple(known)[1:]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_array], ids=["dense", "csr", "coo"])
@pytest.mark.parametrize("width", [1, 3, 40])
def test_the_checksum_of_parts_is_that_of_all_rows(form, width):
    Z = np.tile(X, 14)[:, :width].round(0)
    expected = checksum(rows_of(Z))
    for cuts in ([0, 50, N], [0, 1, 2, 119, N], [0, *range(7, N, 7), N]):
        parts = [checksum(rows_of(form(Z[a:b]), a)) for a, b in pairwise(cuts)]
        assert sum(parts) == expected
    assert checksum(rows_of(form(Z.astype(np.float32)))) == expected
    assert checksum(rows_of(form(np.where(Z == 0, -0.0, Z)))) == expected


def test_the_checksum_sees_every_entry():
    known = {int(checksum(rows_of(X))[0])}
    for row, column in np.ndindex(N, 3):
        Z = X.copy()
        Z[row, column] = np.nextafter(Z[row, column], 9.0)
        known.add(int(checksum(rows_of(Z))[0]))
    small = X.round(0)
    known.add(int(checksum(rows_of(small))[0]))
    known.add(int(checksum(rows_of(small[:, [1, 0, 2]]))[0]))
    known.add(int(checksum(rows_of(small[[1, 0, *range(2, N)]]))[0]))
    for name in ("y", "sample_weight", "groups", "folds"):
        values = {"y": VALUES, "sample_weight": np.arange(N) / N, "groups": LABELS, "folds": np.arange(N) % 4}[name]
        values = values.copy()
        values[7] = values[8] if values[7] != values[8] else "zz"
        known.add(int(checksum(rows_of(X, **{name: values}))[0]))
    assert len(known) == 1 + 3 * N + 3 + 4


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_an_iterator_that_redraws_any_column_is_told(form, column):
    rng = np.random.default_rng(5)

    def make():
        Z = X.copy()
        Z[:, column] = rng.normal(size=N)
        for start in range(0, N, 40):
            yield form(Z[start : start + 40]), VALUES[start : start + 40]

    with pytest.raises(ValueError, match="the rows differ from those of the first pass"):
        chunked.cross_validate(LSSVR("linear"), chunked.iterator(make), cv=3)


@pytest.mark.parametrize("column", [0, 2])
def test_a_checkpoint_of_rows_that_changed_outside_the_sample_is_refused(tmp_path, column):
    options = {"cv": 3, "checkpoint": tmp_path, "sample": 10}
    chunked.cross_validate(LSSVR("linear"), chunked.arrays(X, VALUES), **options)
    changed, others = X.copy(), np.argsort(row_words(np.arange(N), SALT))[10:]
    changed[others, column] += 1.0
    with pytest.raises(ValueError, match="belongs to another run"):
        chunked.cross_validate(LSSVR("linear"), chunked.arrays(changed, VALUES), **options)
