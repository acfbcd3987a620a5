"""Every format is read; what is broken is refused with a cause and a hint."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless.tables import TableError, formats, read_table  # noqa: E402

FRAME = pd.DataFrame({"age": [41.5, 23.0, np.nan], "town": ["Ulm, old", "Köln", None], "sick": ["yes", "no", "no"]})


def same(table):
    assert table.frame.columns.tolist() == ["age", "town", "sick"]
    assert_array_equal(table.frame["age"].to_numpy(float), FRAME["age"])
    assert table.frame["town"].isna().tolist() == [False, False, True]
    assert table.frame["town"].tolist()[:2] == ["Ulm, old", "Köln"]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.csv", lambda path: FRAME.to_csv(path, index=False)),
        ("a.tsv", lambda path: FRAME.to_csv(path, index=False, sep="\t")),
        ("a.parquet", FRAME.to_parquet),
        ("a.xlsx", lambda path: FRAME.to_excel(path, index=False)),
    ],
)
def test_files_are_read_by_their_ending(tmp_path, name, write):
    pytest.importorskip({"a.parquet": "pyarrow", "a.xlsx": "openpyxl"}.get(name, "pandas"))
    write(tmp_path / name)
    same(read_table(tmp_path / name))
    (tmp_path / name).rename(tmp_path / "other.data")
    same(read_table(tmp_path / "other.data", format=read_format(name)))


def read_format(name):
    return {"a.csv": "csv", "a.tsv": "tsv", "a.parquet": "parquet", "a.xlsx": "excel"}[name]


def test_semicolons_and_decimal_commas_are_seen(tmp_path):
    path = tmp_path / "german.csv"
    path.write_text("größe;y\n1,5;a\n2,25;b\n", encoding="latin-1")
    with pytest.raises(TableError, match="not utf-8"):
        read_table(path)
    assert read_table(path, encoding="latin-1").frame["größe"].tolist() == [1.5, 2.25]


def test_arff_has_numbers_and_words(tmp_path):
    path = tmp_path / "a.arff"
    path.write_text("@relation r\n@attribute x numeric\n@attribute c {a,b}\n@data\n1.5,a\n?,?\n")
    frame = read_table(path).frame
    assert frame["x"].isna().tolist() == frame["c"].isna().tolist() == [False, True]
    assert frame["c"][0] == "a"
    path.write_text("@relation r\n@attribute x numeric\n@data\n{0 1.5}\n")
    with pytest.raises(TableError, match="sparse ARFF"):
        read_table(path)
    path.write_text("@relation r\n@attribute x string\n@data\nhello\n")
    with pytest.raises(TableError, match="string"):
        read_table(path)


def test_columns_of_svmlight_stay_where_they_are(tmp_path):
    (tmp_path / "a.svmlight").write_text("1 1:2.0 3:1.0\n0 3:4.0\n")
    assert read_table(tmp_path / "a.svmlight").sparse.shape == (2, 4)


def test_svmlight_stays_sparse(tmp_path):
    X, y = sp.random(20, 50, density=0.1, random_state=0, format="csr"), np.arange(20) % 2
    dump_svmlight_file(X, y, str(tmp_path / "a.svmlight"))
    table = read_table(tmp_path / "a.svmlight")
    assert sp.issparse(table.sparse)
    assert_array_equal(table.frame["target"], y)


def test_npz_has_columns_matrices_and_sparse_matrices(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.arange(6.0).reshape(3, 2), y=np.array(["a", "b", "a"]))
    assert read_table(tmp_path / "a.npz").frame.columns.tolist() == ["X 0", "X 1", "y"]
    np.savez(tmp_path / "b.npz", X=np.eye(3), y=np.arange(4))
    with pytest.raises(TableError, match="do not agree"):
        read_table(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", y=np.array([{}, {}], dtype=object))
    with pytest.raises(TableError, match=r"'y' holds Python objects.*astype\(str\)"):
        read_table(tmp_path / "c.npz")


def broken_files():
    yield "empty.csv", b"", "is empty"
    yield "header.csv", b"a,b\n", "no rows"
    yield "encoding.csv", "a,b\nä,1\n".encode("latin-1"), "not utf-8"
    yield "truncated.csv", b"a,b,c\n1,2,3\n4,5", "2 fields where the header has 3"
    yield "quotes.csv", b'a,b\n"1,2\n3,4\n', "line 3"
    yield "inside.csv", b'a,b\n"1"x,2\n3,4\n', "line 2"
    yield "twice.csv", b"a,b,a\n1,2,3\n", "'a' occurs more than once"
    yield "wide.csv", ",".join(f"c{j}" for j in range(formats.MOST_COLUMNS + 1)).encode() + b"\n", "columns; tables"
    yield "bad.parquet", b"PAR1 no parquet", "no readable Parquet"
    yield "bad.xlsx", b"PK no zip", "no readable Excel"
    yield "bad.npz", b"PK no zip", "no readable NPZ"
    yield "bad.svmlight", b"1 a:b\n", "no readable svmlight"
    yield "bad.arff", b"@relation x\n", "has no @data"
    yield "cut.arff", b"@relation r\n@attribute x numeric\n@attribute c {a,b}\n@data\n1.5\n", "no readable ARFF"
    yield "unknown.doc", b"x", "ending"


@pytest.mark.parametrize(("name", "content", "cause"), list(broken_files()), ids=[each[0] for each in broken_files()])
def test_broken_files_are_refused_with_a_hint(tmp_path, name, content, cause):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=cause) as caught:
        read_table(tmp_path / name)
    assert caught.value.hint
    assert "\n" not in caught.value.cause + caught.value.hint


def test_folders_and_absent_files_are_refused(tmp_path):
    with pytest.raises(TableError, match="is a directory"):
        read_table(tmp_path, format="csv")
    with pytest.raises(TableError, match="does not exist"):
        read_table(tmp_path / "none.csv")


def test_parquet_files_are_read_by_their_own_types(tmp_path):
    """Not by those of the frame that was written: of pyarrow, nullable ones, an index."""
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    typed = FRAME.astype({"age": "double[pyarrow]", "town": "string[pyarrow]"})
    typed.to_parquet(path)
    same(read_table(path))
    assert read_table(path).frame["age"].dtype == np.float64
    typed.set_index("age").to_parquet(path)
    same(read_table(path))
    typed.set_index(FRAME.index[::-1] * 0.5).to_parquet(path)
    assert read_table(path).frame.columns.tolist() == ["index", "age", "town", "sick"]


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_sparse_matrices_whose_indices_lead_nowhere_are_refused(tmp_path, kind):
    X = sp.random(20, 9, density=0.3, format=kind, random_state=0)
    X.indices[3] = 10**9
    sp.save_npz(tmp_path / "a.npz", X)
    with pytest.raises(TableError, match="no readable NPZ file"):
        read_table(tmp_path / "a.npz")
