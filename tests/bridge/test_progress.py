"""Progress in notebooks: one output that changes, with a bar where the end is known; a line on terminals."""

import io
import sys
from types import ModuleType, SimpleNamespace

import pytest

from foldless.bridge.progress import Progress


class Stream(io.StringIO):
    """Standard error of a notebook, by the name of its module."""


Stream.__module__ = "ipykernel.iostream"


@pytest.fixture
def shown(monkeypatch):
    """What a notebook shows, all of it in one place."""
    outputs = []

    def display(bundle, *, raw, display_id):
        assert raw
        assert display_id
        assert not outputs  # there is one display, which is updated
        outputs.append(bundle)
        return SimpleNamespace(update=lambda bundle, *, raw: outputs.append(bundle))

    module = ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr("foldless.bridge.progress.sys", SimpleNamespace(stderr=Stream()))
    monkeypatch.setattr("time.monotonic", iter(range(0, 1000, 2)).__next__)  # every step takes a while
    return outputs


def test_a_bar_in_a_notebook_is_updated_in_place(shown):
    progress = Progress(4, "folds <b>", verbose=1)
    for _ in range(4):
        progress.step()
    assert [each["text/html"].split('"')[1] for each in shown] == ["0.2500", "0.5000", "0.7500", "1.0000"]
    assert shown[-1]["text/plain"].startswith("folds <b>: 4/4")
    assert "&lt;b&gt;" in shown[0]["text/html"]


def test_what_came_by_itself_in_a_notebook_goes_by_itself(shown):
    progress = Progress(None, "search", verbose=None)
    progress.tell("alpha=1")
    progress.tell("alpha=2", ahead=7)
    assert shown[-1]["text/plain"].endswith("about 7 s to go; alpha=2")
    assert "<progress" not in shown[-1]["text/html"]
    progress.close()
    assert shown[-1] == {"text/html": "", "text/plain": ""}


def test_silence_is_kept_in_a_notebook(shown):
    progress = Progress(2, "folds", verbose=0)
    progress.step()
    progress.step()
    assert not shown
