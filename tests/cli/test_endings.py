"""Commands that fail say the cause and a hint, end with their exit code, and write nothing."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the command line needs the extra cli")
pytest.importorskip("skops", reason="the command line needs the extra cli")
pytest.importorskip("typer", reason="the command line needs the extra cli")

from typer.testing import CliRunner  # noqa: E402

from foldless.cli.app import app  # noqa: E402
from foldless.tables import Run  # noqa: E402

RNG = np.random.default_rng(0)
N = 30
FRAME = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.choice(["u", "v"], N), "y": RNG.choice(["s", "w"], N)})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("a.csv", index=False)
    return tmp_path


def said(*words, code=2):
    """What a failing command says on standard error; nothing new lies in the folder."""
    before = sorted(Path().rglob("*"))
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == code, (result.output, result.exception)
    assert "Traceback" not in result.output
    assert sorted(Path().rglob("*")) == before
    lines = result.stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == ["error", "hint"]
    return result.stderr


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


BAD_FILES = {
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b"\n\n\n", "blank lines"),
    "header.csv": (b"a,y\n", "no rows"),
    "cut.csv": (b"a,b,y\n1,2,s\n4,5", "2 fields where the header has 3"),
    "quotes.csv": (b'a,y\n"1,s\n2,w\n', "unexpected end"),
    "latin.csv": ("a,y\nä,s\nb,w\n".encode("latin-1"), "--encoding latin-1"),
    "bytes.csv": (bytes(range(256)), "not utf-8"),
    "twice.csv": (b"a,a,y\n1,2,s\n3,4,w\n", "occurs more than once"),
    "spaces.csv": (b"a, a,y\n1,2,s\n3,4,w\n", "'a' occurs more than once"),
    "class.csv": (b"a,y\n1,s\n2,s\n3,s\n", "one class only"),
    "nothing.csv": (b"a,y\n1,\n2,\n3,\n", "has no values"),
    "nan.csv": (b"a,y\n,s\n,w\n,s\n", "no column is left"),
    "two.csv": (b"a,y\n1.5,s\n2.5,w\n", "At least three"),
    "wide.csv": (b",".join(b"c%d" % j for j in range(10**6)) + b"\n", "1,000,000 columns"),
    "no.parquet": (b"PAR1", "no readable Parquet"),
    "no.xlsx": (b"PK", "no readable Excel"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused(name):
    content, cause = BAD_FILES[name]
    Path(name).write_bytes(content)
    assert cause in said("report", name, "--target", "y")


@pytest.mark.parametrize("name", ["a.parquet", "a.xlsx"])
def test_files_that_are_cut_off_are_refused(name):
    FRAME.to_parquet(name) if name.endswith("parquet") else FRAME.to_excel(name, index=False)
    cut(Path(name))
    assert "cut off" in said("report", name, "--target", "y")


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("report", "none.csv", "--target", "y"), "does not exist"),
        (("report", ".", "--format", "csv", "--target", "y"), "is a directory"),
        (("report", ".", "--target", "y"), ". is a directory"),
        (("report", "folder", "--target", "y"), "folder does not exist"),
        (("predict", "none", "."), "does not exist"),
        (("report", "a.csv"), "--target is not given"),
        (("report", "a.csv", "--target", "Y"), "Did you mean 'y'"),
        (("report", "a.csv", "--target", "y", "--impute", "guess"), "--impute 'guess'"),
        (("report", "a.csv", "--target", "y", "--confounds", "a,z"), "no column 'z'"),
        (("report", "a.csv", "--target", "y", "--groups", "y"), "is the target"),
        (("report", "a.csv", "--target", "y", "--weights", "b"), "numbers >= 0"),
        (("report", "a.csv", "--target", "y", "--drop", "a,b"), "no column is left"),
        (("report", "a.csv", "--target", "y", "--out", "a.csv"), "is a file"),
        (("report", "a.csv", "--target", "y", "--out", "a.csv/b"), "is a file"),
        (("report", "a.csv", "--target", "y", "--task", "regression"), "no number"),
        (("report", "a.csv", "--target", "y", "--encoding", "klingon"), "unknown encoding"),
        (("tune", "a.csv", "--target", "y", "--format", "word"), "--format 'word'"),
        (("tune", "a.csv", "--target", "y", "--out", "."), "is a directory"),
        (("predict", "a.csv", "a.csv"), "no model file"),
        (("predict", "a.csv", "m.foldless"), "foldless predict MODEL DATA"),
        (("predict", "none", "a.csv"), "does not exist"),
    ],
)
def test_mistakes_in_options_are_told(words, cause):
    assert cause in said(*words)


@pytest.mark.parametrize(
    "words", ["report a.csv --nonsense", "nonsense", "tune a.csv --seed x", "tune a.csv --time-limit nan"]
)
def test_options_that_do_not_exist_are_told(words):
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_files_without_permission_are_refused(monkeypatch):
    def refuse(path, *args, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.R_OK)
    assert "no permission" in said("report", "a.csv", "--target", "y")


@pytest.mark.parametrize(
    ("error", "code", "cause"),
    [
        (ValueError("X holds\nnothing"), 2, "X holds nothing"),
        (MemoryError("64 GiB"), 2, "not enough memory: 64 GiB"),
        (OSError(28, "No space left on device", "out"), 2, "No space left"),
        (ZeroDivisionError("division"), 1, "ZeroDivisionError: division"),
    ],
)
def test_errors_from_inside_are_one_line(monkeypatch, error, code, cause):
    def fail(run):
        raise error

    monkeypatch.setattr(Run, "tuned", fail)
    assert cause in said("tune", "a.csv", "--target", "y", code=code)
    monkeypatch.setenv("FOLDLESS_TRACEBACK", "1")
    assert CliRunner().invoke(app, ["tune", "a.csv", "--target", "y"]).exception is error


def test_a_report_that_can_not_be_written_leaves_nothing(monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    pd.DataFrame({"a": [1, 2, 3], "y": ["u", "v", "u"]}).to_csv("three.csv", index=False)
    monkeypatch.setattr("foldless.cli.app.write", full)
    assert "No space left" in said("report", "three.csv", "--target", "y", "--out", "new/folder", "--quiet")


def test_predictions_that_can_not_be_written_leave_what_was_there(monkeypatch):
    pd.DataFrame({"a": [1, 2, 3], "y": ["u", "v", "u"]}).to_csv("three.csv", index=False)
    assert CliRunner().invoke(app, ["tune", "three.csv", "--target", "y", "--out", "m"]).exit_code == 0
    words = ("predict", "m", "three.csv", "--quiet", "--out")
    Path("old.csv").write_text("kept")
    whole = Path.write_text

    def full(path, text, **options):
        whole(path, text[:5], **options)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        assert "No space left" in said(*words, "old.csv")
        assert "No space left" in said(*words, "new/folder/p.csv")
    assert Path("old.csv").read_text() == "kept"
    Path("link.csv").symlink_to("old.csv")
    assert CliRunner().invoke(app, [*words, "link.csv"]).exit_code == 0
    assert Path("old.csv").read_text().startswith("row,prediction")
    assert "a pipe or a device" in said(*words, "/dev/null")
    assert "a pipe or a device" in said("tune", "three.csv", "--target", "y", "--out", "/dev/null")


def test_damaged_model_files_are_refused(folder):
    pd.DataFrame({"a": [1, 2, 3], "y": ["u", "v", "u"]}).to_csv("three.csv", index=False)
    assert CliRunner().invoke(app, ["tune", "three.csv", "--target", "y", "--out", "m"]).exit_code == 0
    with zipfile.ZipFile("m") as archive, zipfile.ZipFile("other", "w") as changed:
        for name in archive.namelist():
            changed.writestr(name, archive.read(name).replace(b'"a"', b'"b"'))
    assert "changed after it was written" in said("predict", "other", "three.csv")
    content = bytearray(Path("m").read_bytes())
    content[len(content) // 2] ^= 255
    Path("flipped").write_bytes(content)
    assert "is refused" in said("predict", "flipped", "three.csv")
    cut(folder / "m")
    assert "damaged" in said("predict", "m", "three.csv")
