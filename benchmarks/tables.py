"""What `foldless report` costs, from a CSV file to the page: seconds of every phase and peak memory.

The tables are made: numbers, a fifth of the columns categories, a date, missing cells everywhere; two classes that
depend on some of the columns in a curved way. Each run is a process of its own, so that its peak memory is its own.

    python benchmarks/tables.py [--only exact landmarks] [--fast] [--json FILE]
"""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor

from common import at_most, best_time, markdown, parser, report, timed

# rows, columns, permutations, limits of seconds (two cores) and GB
SIZES = {"exact": (5_000, 30, 1000, 60, 3.0), "landmarks": (100_000, 50, 1000, 300, None)}
FAST = {"exact": (120, 6, 19, None, None)}
RUN = """
import resource, sys
from foldless.cli import main
try:
    main()
finally:
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def made(n, d, seed=0):
    """A frame of n rows and d columns beside the target ``sick``."""
    rng = np.random.default_rng(seed)
    words = d // 5
    Z = rng.standard_normal((n, d - words - 1))
    levels = [rng.integers(0, 3 + 2 * j, n) for j in range(words)]
    effects = sum(rng.standard_normal(3 + 2 * j)[levels[j]] for j in range(0, words, 2))
    signal = Z[:, 0] * Z[:, 1] + np.sin(2 * Z[:, 2]) + 0.5 * Z[:, 3] + 0.5 * effects
    frame = pd.DataFrame({f"number {j}": column for j, column in enumerate(Z.T)}).round(4)
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    for j, level in enumerate(levels):
        frame[f"category {j}"] = np.array([f"level {each}" for each in range(level.max() + 1)])[level]
    frame = frame.mask(rng.uniform(size=frame.shape) < 0.05 * rng.uniform(size=frame.shape[1]))
    frame["sick"] = np.where(signal + rng.standard_normal(n) > np.median(signal), "yes", "no")
    return frame


def yardstick(n):
    """Seconds of one Cholesky factorisation of so many rows, from one of 1000."""
    M = np.eye(1000) + 1e-3
    return best_time(lambda: cho_factor(M), 3) * (n / 1000) ** 3


def reported(name, n, d, permutations, seconds, gigabytes):
    """One entry: a report in a process of its own."""
    with TemporaryDirectory() as folder:
        path, out = Path(folder, "made.csv"), Path(folder, "out")
        made(n, d).to_csv(path, index=False)
        words = ["report", path, "--target", "sick", "--out", out, "--permutations", permutations]
        run = partial(subprocess.run, capture_output=True, text=True, check=True)
        done, taken = timed(lambda: run([sys.executable, "-c", RUN, *map(str, words)]))
        study = json.loads((out / "study.json").read_text())
    kilobytes = int(done.stderr.rsplit("peak", 1)[1])
    return {
        "name": name,
        "n": n,
        "columns": d,
        "seconds": taken,
        "yardstick_seconds": yardstick(n),
        "yardstick": "one Cholesky factorisation of all rows, scaled from 1000",
        "whole": at_most(seconds, taken),
        "peak_gb": at_most(gigabytes, kilobytes / 2**20),
        "phases": study["timings"],
        "nested": study["nested"][0]["value"],
        "leave_one_out": study["leave_one_out"][0]["value"],
        "p_value": study["test"]["p_value"],
        "notes": study["notes"],
    }


def main():
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=list(SIZES), default=list(SIZES))
    options = options.parse_args()
    sizes = FAST if options.fast else {name: SIZES[name] for name in options.only}
    entries = [reported(name, *each) for name, each in sizes.items()]
    markdown(
        [{key: entry[key] for key in ("name", "n", "columns", "seconds", "yardstick_seconds")} for entry in entries]
    )
    report(options, entries=entries)


if __name__ == "__main__":
    main()
