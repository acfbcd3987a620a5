"""What `foldless report` costs, from a CSV file to the page: seconds of every phase and peak memory.

The tables are made: numbers, a fifth of the columns categories, a date, missing cells everywhere; two classes that
depend on some of the columns in a curved way. Each run is a process of its own, so that its peak memory is its own.

    python benchmarks/tables.py [--only exact landmarks] [--fast] [--json FILE]
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from common import at_most, markdown, parser, report

# rows, columns, seconds, GB
SIZES = {"exact": (5_000, 30, 60, 3.0), "landmarks": (100_000, 50, 300, None)}
FAST = {"exact": (300, 8, None, None)}
YARDSTICK = "n^3/3 operations of a Cholesky factorisation of all rows would take so long"
RUN = """
import resource, sys
from foldless.cli import main
try:
    main()
finally:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print("peak", peak, file=sys.stderr)
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


def reported(name, n, d, seconds, gigabytes, threads):
    """One entry: a report in a process of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "made.csv")
        made(n, d).to_csv(path, index=False)
        command = [
            sys.executable,
            "-c",
            RUN,
            "report",
            str(path),
            "--target",
            "sick",
            "--out",
            str(Path(folder, "out")),
        ]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        taken = time.perf_counter() - start
        study = json.loads(Path(folder, "out", "study.json").read_text())
    kilobytes = int(done.stderr.rsplit("peak", 1)[1])
    return {
        "name": name,
        "rows": n,
        "columns": d,
        "seconds": at_most(seconds, taken),
        "peak_gb": at_most(gigabytes, kilobytes / 2**20),
        "phases": study["timings"],
        "nested": study["nested"][0]["value"],
        "leave_one_out": study["leave_one_out"][0]["value"],
        "p_value": study["test"]["p_value"],
        "n_permutations": len(study["test"]["null"]),
        "notes": study["notes"],
    }
