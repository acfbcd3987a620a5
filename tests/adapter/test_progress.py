"""Progress is one line on standard error, which terminals and notebooks rewrite."""

import io
from types import SimpleNamespace

import pytest

from foldless._sklearn.progress import Progress


class Terminal(io.StringIO):
    """Standard error of a terminal."""

    def isatty(self):
        return True


class Notebook(io.StringIO):
    """Standard error of a notebook, which is recognised by the name of its module."""


Notebook.__module__ = "ipykernel.iostream"


@pytest.fixture
def make_stderr(monkeypatch):
    """A function that replaces standard error by a stream; a second passes between two looks at the clock."""

    def replace(kind):
        stream = kind()
        monkeypatch.setattr("foldless._sklearn.progress.sys", SimpleNamespace(stderr=stream))
        monkeypatch.setattr("time.monotonic", iter(range(1000)).__next__)
        return stream

    return replace


def screen(stream):
    """The lines that are seen after all carriage returns."""
    lines = []
    for text in stream.getvalue().split("\n"):
        line = ""
        for part in text.split("\r"):
            line = part + line[len(part) :]
        lines.append(line.rstrip())
    return lines


@pytest.mark.parametrize("kind", [Terminal, Notebook])
def test_a_counted_line_is_rewritten_and_ends_with_the_last_step(kind, make_stderr):
    stream = make_stderr(kind)
    progress = Progress(2, "folds", verbose=1)
    progress.step("a long note about the first step")
    assert screen(stream)[0].endswith("a long note about the first step")
    progress.step()
    assert len(screen(stream)) == 2
    assert screen(stream)[0].startswith("folds: 2/2, ")
    assert screen(stream)[0].endswith(" s")
    assert screen(stream)[1] == ""
    assert "<" not in stream.getvalue()


@pytest.mark.parametrize("kind", [Terminal, Notebook])
def test_a_line_that_nobody_asked_for_is_erased_at_the_end(kind, make_stderr):
    stream = make_stderr(kind)
    progress = Progress(None, "search", verbose=None)
    progress.tell("alpha=1")
    progress.tell("alpha=2", ahead=7)
    assert screen(stream)[0].endswith("about 7 s to go; alpha=2")
    progress.close()
    assert screen(stream) == [""]


@pytest.mark.parametrize("kind", [Terminal, Notebook])
def test_a_line_that_was_asked_for_stays(kind, make_stderr):
    stream = make_stderr(kind)
    progress = Progress(None, "search", verbose=1)
    progress.tell("alpha=1")
    progress.close()
    assert screen(stream)[0].endswith("alpha=1")
    assert screen(stream)[1:] == [""]


def test_a_file_gets_a_line_every_few_seconds_and_the_last_one(make_stderr):
    stream = make_stderr(io.StringIO)
    progress = Progress(9, "folds", verbose=1)
    for _ in range(9):
        progress.step()
    lines = stream.getvalue().splitlines()
    assert 1 < len(lines) < 9
    assert lines[-1].startswith("folds: 9/9")
    assert "\r" not in stream.getvalue()


@pytest.mark.parametrize(("kind", "verbose"), [(Terminal, 0), (Notebook, 0), (io.StringIO, 0), (io.StringIO, None)])
def test_no_output_where_none_is_wanted(kind, verbose, make_stderr):
    stream = make_stderr(kind)
    progress = Progress(3, "folds", verbose)
    for _ in range(3):
        progress.step()
    progress.close()
    assert stream.getvalue() == ""


def test_lines_are_cut_to_the_width_of_the_terminal(make_stderr, monkeypatch):
    stream = make_stderr(Terminal)
    monkeypatch.setenv("COLUMNS", "30")
    Progress(None, "search", verbose=1).tell("a note of more than thirty characters")
    assert len(screen(stream)[0]) == 29
