"""What the benchmarks share: options, the machine, clock and memory, data sets, tuning by leave-one-out."""

import argparse
import json
import os
import platform
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import scipy
import sklearn
from scipy.special import log_softmax
from sklearn import datasets
from threadpoolctl import threadpool_info

from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import loo_path
from foldless._engine.readout.calibration import Sigmoid
from foldless.kernels import RBF

ALPHAS = np.logspace(-4, 3, 15)
WIDTHS = np.logspace(-1.5, 1.5, 7)  # gamma times the number of features

# -- options and output ------------------------------------------------------------------------------------------------


def parser(description):
    """Options of every benchmark."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--fast", action="store_true", help="small sizes, one repeat: only to see that it runs")
    result.add_argument("--json", type=Path, metavar="FILE", help="write the result there as well")
    return result


def report(options, **results):
    """Print one JSON document: the machine, the options, the results."""
    arguments = {name: str(value) for name, value in vars(options).items() if value and name not in ("json", "data")}
    text = json.dumps({"machine": machine(), "options": arguments, **results}, default=float)
    text = json.dumps(json.loads(text, parse_float=lambda digits: float(f"{float(digits):.4g}")), indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def markdown(rows):
    """Print a list of dictionaries with equal keys as a table, beside the JSON: to stderr."""
    lines = [list(rows[0]), ["---"] * len(rows[0])] + [[_cell(value) for value in row.values()] for row in rows]
    print("\n".join("| " + " | ".join(line) + " |" for line in lines), file=sys.stderr, flush=True)


def _cell(value):
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def machine():
    """Versions, processor and linear algebra libraries."""
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "blas": [f"{library['internal_api']} {library['version']} {library.get('architecture')}" for library in blas],
    }


def _cpu():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


# -- clock and memory --------------------------------------------------------------------------------------------------


def timed(function):
    """(result, wall seconds) of one call."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def best_times(repeats, **functions):
    """Least wall time of each function after one warm-up; they take turns, so that all see the same machine.

    Without repeats the warm-up itself is taken.
    """
    rounds = [[timed(function)[1] for function in functions.values()] for _ in range(repeats + 1)]
    return dict(zip(functions, np.min(rounds[1:] or rounds, axis=0), strict=True))


def best_time(function, repeats):
    """Least wall time of one function after one warm-up."""
    return best_times(repeats, it=function)["it"]


def peak_arrays(function, n):
    """Peak memory of one call in n x n arrays of float64, what it returns included (NumPy informs tracemalloc)."""
    tracemalloc.start()
    function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / (8 * n**2)


# -- verdicts ----------------------------------------------------------------------------------------------------------


def at_most(limit, value):
    """A measured value beside its limit, if it has one."""
    return {"value": value} if limit is None else {"value": value, "limit": f"<= {limit}", "kept": bool(value <= limit)}


def at_least(limit, value):
    """The same, for gains."""
    return {"value": value} if limit is None else {"value": value, "limit": f">= {limit}", "kept": bool(value >= limit)}


def summary(entry):
    """One line of the table."""
    judged = entry.get("ratio", entry.get("difference", {}))
    return {
        **{key: entry.get(key) for key in ("name", "n", "threads", "seconds", "yardstick_seconds")},
        "measured": judged.get("value"),
        "limit": judged.get("limit"),
        "kept": judged.get("kept"),
        "peak arrays": entry.get("peak_arrays", {}).get("value"),
    }


# -- data and tuning ---------------------------------------------------------------------------------------------------


def load(folder, name):
    """The arrays of ``folder/name.npz``; without a folder, of the set of that name that comes with scikit-learn."""
    if folder is not None:
        return dict(np.load(folder / f"{name}.npz"))
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return {"X": X, "y": y}


def standardised(X, train):
    """X with the mean and the standard deviation of its training rows taken out."""
    spread = X[train].std(0)
    return (X - X[train].mean(0)) / np.where(spread > 0, spread, 1.0)


def svc_grid(X):
    """The grid of an SVC: 16 settings around gamma="scale"."""
    scale = 1 / (X.shape[1] * X.var())
    return {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [scale * factor for factor in (0.1, 0.3, 1.0, 3.0)]}


def tune(X, y, criterion="press"):
    """alpha and gamma of the least leave-one-out PRESS, or log-loss after a sigmoid, of +-1 one against all."""
    classes, codes = np.unique(y, return_inverse=True)
    Y = 2.0 * np.eye(len(classes))[codes] - 1.0
    best = (np.inf, None, None)
    for gamma in WIDTHS / X.shape[1]:
        problem = Problem.of(RBF(gamma), X, alpha=1.0, Q=np.ones((len(X), 1)))
        E = loo_path(problem, problem.active, Y, ALPHAS)
        losses = np.square(E).sum((1, 2)) if criterion == "press" else [_log_loss(Y - e, codes) for e in E]
        best = min(best, (np.min(losses), ALPHAS[np.argmin(losses)], gamma))
    return best[1:]


def _log_loss(scores, codes):
    """Log-loss of held-out scores after the sigmoid fitted to them; infinite where it falls with a score."""
    sigmoid = Sigmoid.fit(scores, codes, np.ones(len(codes)))
    if sigmoid.slope.min() < 0:
        return np.inf
    return -log_softmax(sigmoid.slope * scores + sigmoid.offset, axis=1)[np.arange(len(codes)), codes].mean()
