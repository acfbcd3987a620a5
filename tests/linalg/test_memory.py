"""How much memory is free, in control groups too, and what the error says would fit."""

import re

import numpy as np
import pytest

import foldless._engine.linalg.memory as memory
from foldless._engine.linalg.dispatch import require_memory


def group(folder, limit, current, inactive):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{current}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {inactive}\n")


def test_the_limits_of_all_control_groups_above_the_process_count(tmp_path):
    root = tmp_path / "groups"
    group(root / "jobs" / "mine", 1000, 300, 100)
    group(root / "jobs", "max", 0, 0)
    group(root, 500, 450, 0)
    own = tmp_path / "own"
    own.write_text("0::/jobs/mine\n")
    assert list(memory._free_in_groups(root, own)) == [800, 50]


def test_limits_of_the_first_version_of_control_groups_count_too(tmp_path):
    folder = tmp_path / "memory" / "jobs"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("1000\n")
    (folder / "memory.usage_in_bytes").write_text("300\n")
    (folder / "memory.stat").write_text("total_inactive_file 100\n")
    own = tmp_path / "own"
    own.write_text("5:cpu,cpuacct:/jobs\n4:memory:/jobs\n0::/\n")
    assert list(memory._free_in_groups(tmp_path, own)) == [800]


def test_machines_without_control_groups_have_no_such_limit(tmp_path):
    assert list(memory._free_in_groups(tmp_path, tmp_path / "nothing")) == []


def test_free_memory_is_a_number_of_bytes_here():
    assert memory.available_memory() > 2**20


def message_for(monkeypatch, free, shape, dtype, arrays=1.0):
    monkeypatch.setattr(memory, "available_memory", lambda: free)
    with pytest.raises(MemoryError) as error:
        require_memory(shape, dtype, "P", arrays)
    return str(error.value)


def test_the_number_of_rows_that_would_fit_does_fit(monkeypatch):
    message = message_for(monkeypatch, 10**9, (30_000, 30_000), np.float64, 2)
    rows = int(re.search(r"about (\d+) fit", message)[1])
    require_memory((rows, rows), np.float64, "P", 2)
    with pytest.raises(MemoryError):
        require_memory((rows + 2, rows + 2), np.float64, "P", 2)


def test_float32_is_said_to_suffice_only_where_it_does(monkeypatch):
    assert "float32 input (0.4 GiB)" in message_for(monkeypatch, 2**29, (10_000, 10_000), np.float64)
    assert "float32 input (0.4 GiB, still too much)" in message_for(monkeypatch, 2**28, (10_000, 10_000), np.float64)
    assert "float32" not in message_for(monkeypatch, 2**28, (10_000, 10_000), np.float32).split("available.")[1]


def test_arrays_that_are_not_square_shrink_in_proportion(monkeypatch):
    assert "about 500 fit" in message_for(monkeypatch, 8 * 500 * 7, (1000, 7), np.float64)
