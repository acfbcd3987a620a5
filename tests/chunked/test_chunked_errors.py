"""Bad chunks, bad arguments, full disks: what is told, and what is left."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from foldless import LSSVC, LSSVR, AdaptiveKDA, KernelFisherDiscriminant, chunked
from foldless.kernels import RBF, FeatureMap, Nystroem, RandomFeatures

X = np.random.default_rng(0).normal(size=(120, 3))
VALUES = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=120)
LABELS = np.where(X[:, 0] > 0, "b", "a")


def chunks_with(labels=False, **changes):
    """Three chunks of 40 rows, the last with some of its parts changed."""

    def make():
        y = LABELS if labels else VALUES
        for start in (0, 40):
            yield chunked.Chunk(X[start : start + 40], y[start : start + 40])
        yield chunked.Chunk(X[80:], y[80:])._replace(**changes)

    return chunked.iterator(make)


def with_value(values, row, value):
    values = np.array(values, object if values.dtype.kind == "U" else values.dtype)
    values[row] = value
    return values


BAD = {
    "width": ({"X": X[80:, :2]}, False, r"chunk 2: X has shape \(40, 2\); rows of 3 features"),
    "rank": ({"X": X[80:, 0]}, False, r"chunk 2: X has shape \(40,\)"),
    "length": ({"X": X[90:]}, False, r"chunk 2: y has shape \(40,\) and X has 30 rows"),
    "text": ({"X": X[80:].astype(str)}, False, "chunk 2: X has values of type"),
    "nan": (
        {"X": with_value(X[80:], (7, 1), np.nan)},
        False,
        r"chunk 2, row 7 \(row 87 of all\): X holds nan in column 1",
    ),
    "target": ({"y": with_value(VALUES[80:], 3, np.inf)}, False, r"chunk 2, row 3 \(row 83 of all\): y holds inf"),
    "targets": ({"y": X[80:, :2]}, False, r"chunk 2: y has shape \(40, 2\)"),
    "words": ({"y": LABELS[80:]}, False, "chunk 2: y has values of type"),
    "weights": ({"sample_weight": np.ones(40)}, False, "chunk 2: it has sample_weight, and the first chunk has none"),
    "class": ({"y": with_value(LABELS[80:], 9, "c")}, True, r"row 9 \(row 89 of all\): its label 'c' is not among"),
    "missing": ({"y": with_value(LABELS[80:], 9, None)}, True, "row 9 .*its label is missing"),
    "kind": ({"y": VALUES[80:] > 0}, True, "chunk 2: labels were text and are numbers here, such as"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_chunks_are_named(name):
    changes, labels, message = BAD[name]
    model, classes = (LSSVC("linear"), ["a", "b"]) if labels else (LSSVR("linear"), None)
    with pytest.raises(chunked.ChunkError, match=message) as found:
        chunked.cross_validate(model, chunks_with(labels, **changes), classes=classes)
    assert found.value.chunk == 2
    assert not hasattr(model, "kernel_")


def test_a_negative_weight_is_named():
    data = chunked.arrays(X, VALUES, sample_weight=with_value(np.ones(120), 50, -1.0), rows=40)
    with pytest.raises(chunked.ChunkError, match=r"chunk 1, row 10 \(row 50 of all\): its sample_weight is -1"):
        chunked.cross_validate(LSSVR("linear"), data)


def test_labels_that_are_fractions_are_named():
    with pytest.raises(chunked.ChunkError, match=r"chunk 1, row 10 \(row 50 of all\): its label 0.5 is not a whole"):
        chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, with_value(np.ones(120), 50, 0.5), rows=40))


def test_an_object_that_is_no_chunk():
    with pytest.raises(chunked.ChunkError, match=r"chunk 0: found ndarray; a chunk is a tuple"):
        chunked.cross_validate(LSSVR("linear"), chunked.iterator(lambda: iter([X])))


@pytest.mark.parametrize("y", [VALUES, np.column_stack([VALUES, VALUES]), LABELS], ids=["values", "outputs", "labels"])
def test_chunks_without_rows_change_nothing(y):
    """Their types say nothing either."""
    model = LSSVC("linear") if y is LABELS else LSSVR("linear")
    nothing = (np.empty((0, 3), object), np.empty((0, *y.shape[1:])))
    data = chunked.iterator(lambda: iter([nothing, (X[:50], y[:50]), nothing, (X[50:], y[50:]), nothing]))
    found, expected = (chunked.cross_validate(model, each, cv=4) for each in (data, chunked.arrays(X, y)))
    assert_array_equal(found.test_score, expected.test_score)


def test_labels_are_shown_as_they_were_written():
    y = LABELS.copy()
    y[7] = "c"
    with pytest.raises(chunked.ChunkError, match=r"its label 'c' is not among the classes \['a', 'b'\]"):
        chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, y), classes=["a", "b"])
    with pytest.raises(chunked.ChunkError, match="labels were numbers and are text here, such as 'b'"):
        chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, LABELS), classes=[0, 1])


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("name", ["y", "groups"])
def test_missing_labels_and_groups_are_named(name, missing):
    given = {"y": LABELS, "groups": LABELS}
    given[name] = with_value(LABELS, 87, missing)
    with pytest.raises(chunked.ChunkError, match=r"chunk 2, row 7 \(row 87 of all\): its .* is missing"):
        chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, **given, rows=40))


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_errors_of_those_who_read_have_a_note(bad):
    def read(number):
        if number == bad:
            raise OSError("no connection")
        return X[:40], VALUES[:40]

    with pytest.raises(OSError, match="no connection") as found:
        chunked.cross_validate(LSSVR("linear"), chunked.numbered(read, 3))
    assert found.value.__notes__ == [f"This is about chunk {bad}."]


def test_announced_classes_need_not_occur():
    result = chunked.cross_validate(LSSVC("linear"), chunks_with(True), classes=["a", "b", "z"], cv=3)
    assert_array_equal(result.estimator.classes_, ["a", "b", "z"])
    assert result.loo_score > 0.9


# -- passes that differ ------------------------------------------------------------------------------------------------


def test_an_iterator_that_does_not_start_anew_is_told():
    once = iter([(X[:60], VALUES[:60]), (X[60:], VALUES[60:])])
    with pytest.raises(ValueError, match="Every pass over the data must find the same rows"):
        chunked.cross_validate(LSSVR("linear"), chunked.iterator(lambda: once))


@pytest.mark.parametrize("what", ["rows", "targets", "features", "weights", "chunks"])
def test_other_chunks_in_a_later_pass_are_told(what):
    passes = []

    def make():
        passes.append(1)
        changed = len(passes) > 2  # the first look is for the layout
        y = VALUES[::-1] if changed and what == "targets" else VALUES
        Z = X + 1.0 if changed and what == "features" else X
        w = np.ones(120) + (changed and what == "weights")
        n = 100 if changed and what == "rows" else 120
        step = 20 if changed and what == "chunks" else 60
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            yield Z[part], y[part], w[part]

    place = "chunk 1: it has 40 rows and had 60 before.*" if what == "rows" else ""
    with pytest.raises(ValueError, match=f"{place}Every pass over the data must find the same rows"):
        chunked.cross_validate(LSSVR("linear"), chunked.iterator(make))


# -- arguments ---------------------------------------------------------------------------------------------------------

WRONG = [
    (AdaptiveKDA(), {}, "AdaptiveKDA: LSSVC, LSSVR and KernelFisherDiscriminant can be fitted in chunks"),
    (LSSVR(RBF(1.0)), {}, "has no explicit features"),
    (LSSVR("linear", penalty="coef"), {}, "penalty='coef' has a basis function for every row"),
    (KernelFisherDiscriminant("linear", threshold="loo"), {}, "threshold='loo' chooses a cut by leave-one-out"),
    (LSSVR("linear"), {"cv": 1}, "cv=1 must be a number of folds from 2"),
    (LSSVR("linear"), {"cv": 121}, "cv=121 must be a number of folds from 2"),
    (LSSVR("linear"), {"cv": "ten"}, "cv='ten' must be a number"),
    (LSSVR("linear"), {"alphas": [1.0, 0.0]}, "alphas=.* must be finite numbers > 0"),
    (LSSVR("linear"), {"select": "both"}, "select='both' is unknown"),
    (LSSVR("linear"), {"select": "kfold", "cv": None}, "select='kfold' needs folds"),
    (LSSVR("linear"), {"param_grid": {"alpha": [1.0]}}, "param_grid: give alphas by alphas="),
    (LSSVR("linear"), {"param_grid": {"colour": [1.0]}}, "colour"),
    (LSSVR("linear"), {"sample": 0}, "sample=0 must be an integer of at least 2"),
    (LSSVR("linear"), {"classes": [1, 2]}, "classes: LSSVR has none"),
    (LSSVR("linear", alpha=-1.0), {}, "alpha"),
    (LSSVR("linear"), {"predictions": np.zeros(3)}, "an entry for each of 120 rows"),
    (LSSVR("linear"), {"predictions": {"decision": np.zeros(120)}}, "there is no column 'decision'"),
    (LSSVR("linear"), {"predictions": np.zeros((120, 2))}, "prediction has shape"),
    (LSSVR("linear"), {"predictions": np.zeros(120), "cv": None, "loo": False}, "predictions: nothing is held out"),
    (LSSVR("linear"), {"predictions": "dask"}, "predictions='dask' are arrays of a cluster"),
]


@pytest.mark.parametrize(("model", "options", "message"), WRONG, ids=lambda each: str(each)[:30])
def test_wrong_arguments_are_named(model, options, message):
    y = VALUES if isinstance(model, LSSVR) else LABELS
    with pytest.raises(ValueError, match=message):
        chunked.cross_validate(model, chunked.arrays(X, y), **options)


UNREAD = [
    (LSSVR(RBF(1.0)), {}, "has no explicit features"),
    (LSSVR("rbf"), {"param_grid": {"kernel": [Nystroem("rbf"), "rbf"]}}, "has no explicit features"),
    (LSSVR("precomputed"), {}, "has no explicit features"),
    (LSSVR("cubic"), {}, "kernel='cubic' is unknown"),
    (LSSVR(Nystroem("cubic")), {}, "kernel='cubic' is unknown"),
    (LSSVR(Nystroem(RBF(1.0))), {"param_grid": {"gamma": [0.1]}}, "gamma is ignored.*kernel__gamma"),
    (LSSVR("linear", penalty="coef"), {}, "penalty='coef' has a basis function for every row"),
    (LSSVR(Nystroem("rbf", "auto")), {}, "n_landmarks='auto': a number is needed"),
    (LSSVR(RandomFeatures(RBF(1.0), "auto")), {}, "n_landmarks='auto': a number is needed"),
    (LSSVR(RandomFeatures("rbf", 0)), {}, "n_landmarks=0 must be a whole number"),
    (LSSVR(Nystroem("rbf", landmarks="all")), {}, "landmarks='all' is unknown"),
    (LSSVR("linear"), {"param_grid": {"colour": [1.0]}}, "colour"),
    (LSSVR("linear"), {"cv": "ten"}, "cv='ten' must be a number"),
    (LSSVR("linear"), {"cv": True}, "cv=True must be a number"),
    (
        KernelFisherDiscriminant("linear", threshold="loo"),
        {"classes": ["a", "b"]},
        "threshold='loo' chooses a cut by leave-one-out",
    ),
]


@pytest.mark.parametrize(("model", "options", "message"), UNREAD, ids=lambda each: str(each)[:30])
def test_wrong_arguments_are_told_before_the_first_chunk_is_read(model, options, message):
    passes = []
    data = chunked.iterator(lambda: passes.append(1) or iter([(X, VALUES)]))
    with pytest.raises(ValueError, match=message):
        chunked.cross_validate(model, data, **options)
    assert not passes


def test_contradictions_of_folds_are_told_before_the_first_pass(monkeypatch):
    def told(data, message, **options):
        with pytest.raises(ValueError, match=message):
            chunked.cross_validate(LSSVR("linear"), data, **options)

    monkeypatch.setattr("foldless.chunked.passes.Reader.run", lambda *args: pytest.fail("a pass"))
    folds = np.arange(120) % 2
    told(chunked.iterator(lambda: iter([(X, VALUES)])), "select='kfold' needs folds", select="kfold", cv=None)
    told(chunked.iterator(lambda: iter([(X, VALUES, None, None, folds)])), "bring their own folds", cv=3)
    monkeypatch.setattr("foldless.chunked.sources.Arrays.chunks", lambda *args: pytest.fail("a chunk"))
    told(chunked.arrays(X, VALUES), "select='kfold' needs folds", select="kfold", cv=None)
    told(chunked.arrays(X, VALUES, folds=folds), "bring their own folds", cv=3)
    told(chunked.arrays(X, VALUES), "cv=121 must be a number of folds from 2 to the number of rows, 120", cv=121)


@pytest.mark.parametrize("kind", ["U1", object])
def test_a_cut_of_two_classes_without_leave_one_out_is_told_before_the_first_chunk_is_read(monkeypatch, kind):
    model = KernelFisherDiscriminant("linear", threshold="loo")
    three = np.where(X[:, 1] > 0, "c", LABELS)
    assert chunked.cross_validate(model, chunked.arrays(X, three.astype(kind)), cv=3).loo_score > 0.5  # has no cut
    monkeypatch.setattr("foldless.chunked.sources.Arrays.chunks", lambda *args: pytest.fail("a chunk"))
    with pytest.raises(ValueError, match="threshold='loo' chooses a cut by leave-one-out"):
        chunked.cross_validate(model, chunked.arrays(X, LABELS.astype(kind)), cv=3)


def test_kernels_that_have_to_see_rows_are_left_for_later():
    """Features of a map may need more columns than one."""

    class Second(FeatureMap):
        def features(self, X):
            return X[:, 1:2] + 0.0

    for kernel in (Second(), Second() + Nystroem(RBF(0.5), 5)):
        assert chunked.cross_validate(LSSVR(kernel), chunked.arrays(X, VALUES), cv=3).n_rows == 120


def test_wrong_sources_are_named():
    with pytest.raises(ValueError, match=r"data: found tuple; give what chunked\.arrays"):
        chunked.cross_validate(LSSVR("linear"), (X, VALUES))
    with pytest.raises(ValueError, match="iterator: found list; give a function"):
        chunked.iterator([(X, VALUES)])
    with pytest.raises(ValueError, match="y has 119 rows and X has 120"):
        chunked.arrays(X, VALUES[1:])
    with pytest.raises(ValueError, match="rows=0 must be"):
        chunked.arrays(X, VALUES, rows=0)
    with pytest.raises(ValueError, match="no chunks"):
        chunked.cross_validate(LSSVR("linear"), chunked.iterator(lambda: iter([])))


def test_one_class_and_folds_without_a_class_are_refused():
    with pytest.raises(ValueError, match="one class only"):
        chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, np.zeros(120, int)))
    y = np.zeros(120, int)
    y[5] = 1
    with pytest.raises(ValueError, match=r"all rows of class .*1.* are in fold"):
        chunked.cross_validate(LSSVC("linear"), chunked.arrays(X, y), cv=3)


def test_few_groups_leave_a_fold_empty():
    data = chunked.arrays(X, VALUES, groups=np.arange(120) % 2)
    with pytest.raises(ValueError, match="has no rows"):
        chunked.cross_validate(LSSVR("linear"), data, cv=3)


def test_rows_of_no_weight_at_all():
    with pytest.raises(ValueError, match="no row has a positive weight"):
        chunked.cross_validate(LSSVR("linear"), chunked.arrays(X, VALUES, sample_weight=np.zeros(120)))


def test_given_folds_and_a_number_of_folds_contradict():
    data = chunked.arrays(X, VALUES, folds=np.arange(120) % 2)
    with pytest.raises(ValueError, match="bring their own folds"):
        chunked.cross_validate(LSSVR("linear"), data, cv=3)


# -- checkpoints -------------------------------------------------------------------------------------------------------


class Interrupted(Exception):
    """What ends a pass before its time."""


def interrupted_after(n_chunks, which_pass):
    """Chunks of 10 rows; one pass ends with an error after so many, the next ones are complete."""
    passes = []

    def make():
        passes.append(1)
        mine = len(passes)
        for start in range(0, 120, 10):
            if mine == which_pass and start == 10 * n_chunks:
                raise Interrupted
            yield X[start : start + 10], VALUES[start : start + 10]

    return chunked.iterator(make)


@pytest.fixture
def often(monkeypatch):
    """Every chunk is worked on, and kept, by itself."""
    monkeypatch.setattr("foldless.chunked.gather.ROWS_TOGETHER", 1)
    monkeypatch.setattr("foldless.chunked.checkpoint.SECONDS", 0.0)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("which_pass", [3, 4])
def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path, monkeypatch, which_pass):
    model = LSSVR("linear")
    expected = chunked.cross_validate(model, chunked.arrays(X, VALUES), cv=4)
    data = interrupted_after(7, which_pass)  # layout, survey, sums, held out
    with pytest.raises(Interrupted):
        chunked.cross_validate(model, data, cv=4, checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["sums.npz"]
    seen = []
    from foldless.chunked import sums

    monkeypatch.setattr("foldless.chunked.passes.sums_of", lambda *args: seen.append(1) or sums.sums_of(*args))
    result = chunked.cross_validate(model, data, cv=4, checkpoint=tmp_path)
    assert len(seen) == (5 if which_pass == 3 else 0)
    np.testing.assert_allclose(result.test_score, expected.test_score, rtol=1e-12)
    assert result.loo_score == pytest.approx(expected.loo_score, rel=1e-12)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("rows", [1, 7, 20, 35, 64, 69, 70, 71, 120])
def test_other_chunks_go_on_from_the_same_row(tmp_path, rows):
    model = LSSVR("linear")
    expected = chunked.cross_validate(model, chunked.arrays(X, VALUES), cv=4)
    with pytest.raises(Interrupted):
        chunked.cross_validate(model, interrupted_after(7, 3), cv=4, checkpoint=tmp_path)
    result = chunked.cross_validate(model, chunked.arrays(X, VALUES, rows=rows), cv=4, checkpoint=tmp_path)
    np.testing.assert_allclose(result.test_score, expected.test_score, rtol=1e-12)
    assert result.loo_score == pytest.approx(expected.loo_score, rel=1e-12)


def test_other_alphas_take_the_sums_of_a_checkpoint(tmp_path):
    data = chunked.arrays(X, VALUES)
    chunked.cross_validate(LSSVR("linear"), data, cv=4, checkpoint=tmp_path)
    again = chunked.cross_validate(LSSVR("linear"), data, cv=4, alphas=[0.1, 10.0], checkpoint=tmp_path)
    assert "sums" not in again.seconds
    fresh = chunked.cross_validate(LSSVR("linear"), data, cv=4, alphas=[0.1, 10.0])
    assert_array_equal(again.kfold_press, fresh.kfold_press)


@pytest.mark.parametrize("what", ["cv", "seed", "rows", "weights", "kernel", "scale"])
def test_a_checkpoint_of_another_run_is_refused(tmp_path, what):
    chunked.cross_validate(LSSVR("linear"), chunked.arrays(X, VALUES), cv=4, checkpoint=tmp_path)
    y = VALUES + (np.arange(120) == 77) if what == "rows" else VALUES
    w = np.arange(120) % 3 if what == "weights" else None
    model = LSSVR("linear", fit_intercept=what != "kernel", standardize=what == "scale")
    options = {"cv": 5 if what == "cv" else 4, "random_state": int(what == "seed")}
    with pytest.raises(ValueError, match="belongs to another run"):
        chunked.cross_validate(model, chunked.arrays(X, y, sample_weight=w), checkpoint=tmp_path, **options)


@pytest.mark.usefixtures("often")
def test_a_run_that_goes_on_shows_what_was_done_before(tmp_path, capsys):
    data = interrupted_after(7, 3)
    with pytest.raises(Interrupted):
        chunked.cross_validate(LSSVR("linear"), data, cv=4, checkpoint=tmp_path)
    chunked.cross_validate(LSSVR("linear"), data, cv=4, checkpoint=tmp_path, verbose=1)
    assert any(line.startswith("sums: 120/120") for line in capsys.readouterr().err.splitlines())


def test_a_checkpoint_that_is_a_file_is_told_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    passes = []
    data = chunked.iterator(lambda: passes.append(1) or iter([(X, VALUES)]))
    with pytest.raises(FileExistsError, match="is a file; sums are kept in a folder"):
        chunked.cross_validate(LSSVR("linear"), data, checkpoint=tmp_path / "file")
    assert not passes


def test_a_damaged_checkpoint_is_told(tmp_path):
    data = chunked.arrays(X, VALUES)
    chunked.cross_validate(LSSVR("linear"), data, checkpoint=tmp_path)
    whole = (tmp_path / "sums.npz").read_bytes()
    (tmp_path / "sums.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cannot be read"):
        chunked.cross_validate(LSSVR("linear"), data, checkpoint=tmp_path)
