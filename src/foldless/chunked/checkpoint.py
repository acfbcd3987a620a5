"""Sums of a pass, kept in a file: a run that was interrupted goes on from them.

The file is written under another name first and then renamed, so there is always a whole one. It also holds the
features of a few rows of the sample and other numbers that say which model of which rows the sums belong to. Alphas are
not among them: other ones can be tried without another pass.
"""

import os
import time
from pathlib import Path

import numpy as np

from foldless.chunked.sums import Sums

SECONDS = 60.0  # between two writings of an unfinished pass
SOME = 8  # rows of the sample whose features say which model it is


class Checkpoint:
    """The file of sums in a folder; None in its place: nothing is kept."""

    def __init__(self, folder, plan, survey):
        self.path = None if folder is None else Path(folder) / "sums.npz"
        self.n_rows, self._last = survey.n_rows, time.monotonic()
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folds = plan.folds
        self.identity = {
            "rows": np.array([survey.n_rows, *survey.checksum.tolist()], np.uint64),
            "folds": np.array([folds.k, folds.seed, folds.by_group, folds.names is not None]),
            "model": np.array([plan.intercept, plan.r, plan.m]),
            "level": plan.level,
            "factors": np.empty(0) if plan.factors is None else plan.factors,
            "features": plan.origin + plan.features(survey.X[:SOME]),
        }

    def load(self):
        """(next chunk, next row, sums) to go on from; sums are None where there are none."""
        if self.path is None or not self.path.exists():
            return 0, 0, None
        try:
            with self.path.open("rb") as file, np.load(file) as found:
                known = {name: found[name] for name in found.files}
            differ = [name for name, value in self.identity.items() if not _same(known[name], value)]
            place, sums = known["place"].tolist(), Sums(*(known[f"sums_{name}"] for name in Sums._fields))
        except Exception as error:
            raise ValueError(f"checkpoint: {self.path} cannot be read ({error}). Remove it to start anew.") from error
        if differ:
            raise ValueError(
                f"checkpoint: {self.path} belongs to another run: its {', '.join(differ)} differ. Remove it to start"
                " anew, or name another folder."
            )
        return *place, sums

    def save(self, following, row, sums):
        """Keep the sums where the pass is complete, or some time has passed."""
        if self.path is None or (row < self.n_rows and time.monotonic() - self._last < SECONDS):
            return
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.unfinished")
        known = {f"sums_{name}": value for name, value in zip(Sums._fields, sums, strict=True)}
        try:
            with temporary.open("wb") as file:
                np.savez(file, place=np.array([following, row]), **self.identity, **known)
            os.replace(temporary, self.path)
        except OSError as error:
            raise OSError(error.errno, f"checkpoint: {self.path} could not be written ({error}).") from error
        finally:
            temporary.unlink(missing_ok=True)
        self._last = time.monotonic()


def _same(known, value):
    if known.shape != value.shape:
        return False
    return np.allclose(known, value, rtol=1e-9, atol=1e-12) if value.dtype.kind == "f" else (known == value).all()
