"""Four threads that read one freshly fitted model get its numbers: 500 models, half of them held in panels."""

import sys

import pytest

from foldless._engine.linalg import numpy as verbs
from foldless._engine.linalg import panels
from support.readers import every_reader, read, read_together
from support.tolerances import assert_close

N_MODELS = 504


@pytest.mark.parametrize("width", [None, 16], ids=["whole", "panels"])
@pytest.mark.parametrize("kind", every_reader)
def test_threads_that_read_one_model_all_get_its_numbers(kind, width, monkeypatch):
    if width is not None:
        monkeypatch.setattr(verbs, "LARGE", 2 * width)
        monkeypatch.setattr(panels, "WIDTH", width)
    make, names = every_reader[kind]
    expected = {name: read(make(), name) for name in names}
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for name, value in read_together(make, names, N_MODELS // (2 * len(every_reader))):
            assert_close(value, expected[name])
    finally:
        sys.setswitchinterval(before)
