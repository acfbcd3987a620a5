"""Sums of a pass, kept in a file: a run that was interrupted goes on from them.

The file is written under another name first and then renamed, so there is always a whole one. It also holds a checksum
of all rows, features of a few of the sample, targets of the classes and other numbers that say which models of which
rows the sums belong to. Alphas are not among them: other ones can be tried without another pass.
"""

import os
import time
from pathlib import Path

import numpy as np

from foldless._engine.heldout.row_sums import RowSums
from foldless.chunked.sums import FoldSums

SECONDS = 60.0  # between two writings of an unfinished pass
SOME = 8  # rows of the sample whose features say which model it is


def check_place(folder):
    """Tell what cannot be a folder of sums before the work begins."""
    if folder is not None and Path(folder).is_file():
        raise FileExistsError(f"checkpoint={str(folder)!r} is a file; sums are kept in a folder.")


class Checkpoint:
    """The file of the sums of some plans in a folder; with None for a folder nothing is kept."""

    def __init__(self, folder, plans, survey):
        self.path = None if folder is None else Path(folder) / "sums.npz"
        self.n_rows, self.plans, self._last = survey.n_rows, plans, time.monotonic()
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.identity = _identity(plans, survey)

    def load(self):
        """(next row, sums of each plan) to go on from; sums are None where there are none."""
        if self.path is None or not self.path.exists():
            return 0, None
        try:
            with self.path.open("rb") as file, np.load(file) as found:
                known = {name: found[name] for name in found.files}
        except Exception as error:
            raise ValueError(f"checkpoint: {self.path} cannot be read ({error}). Remove it to start anew.") from error
        mine = {name: value for name, value in known.items() if not name.startswith("sums_")}
        row = int(mine.pop("place")[-1])
        same = mine.keys() == self.identity.keys()
        same = same and all(_same(mine[name], value) for name, value in self.identity.items())
        if not same or any(len(known[f"sums_gram_{i}"][0]) != plan.n_sums for i, plan in enumerate(self.plans)):
            raise ValueError(
                f"checkpoint: {self.path} belongs to another run, with other rows, folds, weights or kernels. Remove it"
                " to start anew, or name another folder."
            )
        return row, [_unpacked(known, i, plan.r) for i, plan in enumerate(self.plans)]

    def save(self, row, sums):
        """Keep the sums where the pass is complete, or some time has passed."""
        if self.path is None or (row < self.n_rows and time.monotonic() - self._last < SECONDS):
            return
        known = {name: array for i, of_plan in enumerate(sums) for name, array in _packed(of_plan, i).items()}
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.unfinished")
        try:
            with temporary.open("wb") as file:
                np.savez(file, place=np.array([row]), **self.identity, **known)
            os.replace(temporary, self.path)
        except OSError as error:
            raise OSError(error.errno, f"checkpoint: {self.path} could not be written ({error}).") from error
        finally:
            temporary.unlink(missing_ok=True)
        self._last = time.monotonic()


def _packed(sums, i):
    """The sums of plan number i as named arrays."""
    arrays = {**sums._asdict(), "gram": sums.regression.gram}
    del arrays["regression"]
    return {f"sums_{name}_{i}": array for name, array in arrays.items()}


def _unpacked(arrays, i, r):
    """The sums of plan number i, with r features, from named arrays."""
    others = {name: arrays[f"sums_{name}_{i}"] for name in FoldSums._fields if name != "regression"}
    return FoldSums(RowSums(arrays[f"sums_gram_{i}"], r), **others)


def _identity(plans, survey):
    """Numbers that differ where sums do: of rows and folds, and of each plan."""
    folds = plans[0].folds
    known: dict[str, np.ndarray] = {"rows": np.array([survey.n_rows, *survey.checksum.tolist()], np.uint64)}
    known["folds"] = np.array([folds.k, folds.seed, folds.by_group, folds.names is not None])
    for i, plan in enumerate(plans):
        known[f"level_{i}"] = plan.level
        known[f"factors_{i}"] = np.ones(1) if plan.factors is None else plan.factors
        known[f"targets_{i}"] = plan.targets(survey.classes if plan.n_classes else survey.sample.y[:SOME])
        known[f"features_{i}"] = np.append(plan.features(survey.sample.X[:SOME]), plan.intercept)
    return known


def _same(known, value):
    if known.shape != value.shape:
        return False
    return np.allclose(known, value, rtol=1e-9, atol=1e-12) if value.dtype.kind == "f" else (known == value).all()
