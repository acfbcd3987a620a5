"""What the search costs that FoldlessSearchCV makes by itself, and how well it chooses.

    sets      beside GridSearchCV(SVC(), 16 settings, cv=5) in one and in two processes, and beside the full grid
              (method="grid", up to 3000 rows): seconds, test error, peak memory; real sets, several classes but for one
    units     in units of one exact leave-one-out of as many rows (fit and loo_score_), with the peak memory
    large     the same for --size rows, 20000 unless told, of skin (made data without --data)
    learnt    the search that learns its kernel (``kernel="auto"``) beside that of one Gaussian width and the SVC grid,
              and in units of one exact leave-one-out of its sum of kernels; 2000 and 10000 made rows of 20 features
    ida       test errors of the search and of the full grid on the 13 sets of Raetsch et al., paired

Every time is taken in a process of its own after a small fit; two threads for the linear algebra of foldless. Memory is
the growth of the largest resident size since then, in n x n arrays of float64. Pixels are divided by 255, other
features standardised on the training part, the same for all. MNIST, kinds of attack and services of network
connections have 10, 13 and 17 classes; eye_state has two, and its rows are dependent: neighbours in time are in both
parts.

    python benchmarks/search.py --data DIR [--only PART] [--size 20000] [--rows 3000 8000] [--fast]
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from common import at_most, markdown, parser, report, standardised, svc_grid, timed
from criterion import line, over_sets
from foldless import LSSVC, FoldlessSearchCV
from sets import IDA, partitions, parts, rows_of

SETS = ("large/mnist_t10k", "large/kddcup99_attack", "large/kddcup99_service", "eeg/eye_state")
SMALLER = ("uci/dna_statlog180", "uci/segment")  # 2700 and 1900 rows for training: with those of 3000
TRAIN = {"uci/dna_statlog180": 2700, "uci/segment": 1900}
LARGEST_GRID = 3000
METHODS = {
    "search": lambda X: FoldlessSearchCV(LSSVC()),
    "full grid": lambda X: FoldlessSearchCV(LSSVC(), method="grid"),
    "SVC, 1 process": lambda X: GridSearchCV(SVC(), svc_grid(X), cv=5),
    "SVC, 2 processes": lambda X: GridSearchCV(SVC(), svc_grid(X), cv=5, n_jobs=2),
    "leave-one-out": lambda X: LeaveOneOut(LSSVC()),
    "learnt": lambda X: FoldlessSearchCV(LSSVC("auto")),
    "leave-one-out of the sum": lambda X: LeaveOneOut(LSSVC("auto")),
}
OF_ONE_WIDTH = ("search", "full grid", "SVC, 1 process", "SVC, 2 processes")


class LeaveOneOut:
    """One exact leave-one-out: the unit."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.model.fit(X, y)
        self.score = self.model.loo_score_
        return self

    def predict(self, X):
        return self.model.predict(X)


# -- one measurement, in a process of its own --------------------------------------------------------------------------


def largest_size():
    """The largest resident size of this process so far, in bytes.

    Linux hands ``ru_maxrss`` down from the process that started this one; its own peak is elsewhere.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def one(file, method):
    """Seconds of a fit, test error, peak memory in n x n arrays, chosen parameters; printed as JSON."""
    data = np.load(file)
    X, y, X_test, y_test = (data[name] for name in ("X", "y", "X_test", "y_test"))
    METHODS[method](X).fit(X[:300], y[:300])  # modules are imported, threads and processes started
    before = largest_size()
    model, seconds = timed(lambda: METHODS[method](X).fit(X, y))
    arrays = (largest_size() - before) / (8 * len(X) ** 2)
    wrong = 100 * np.mean(model.predict(X_test) != y_test) if len(y_test) else None
    chosen = getattr(model, "best_params_", None)
    print(json.dumps({"seconds": seconds, "error": wrong, "arrays": arrays, "chosen": chosen}, default=number_or_repr))


def number_or_repr(value):
    """What JSON holds of a number of NumPy, or of a kernel."""
    return float(value) if isinstance(value, np.number) else repr(value)


def measure(data, method):
    """The result of ``one`` for arrays (X, y, X_test, y_test)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, **dict(zip(("X", "y", "X_test", "y_test"), data, strict=True)))
        command = [sys.executable, __file__, "--one", str(file), method]
        threads = {f"{name}_NUM_THREADS": "2" for name in ("OPENBLAS", "OMP", "MKL")}
        done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{method} on {len(data[1])} rows: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def scaled_parts(folder, name, n, seed=0, n_test=5000):
    """(X, y, X_test, y_test) of n rows for training, drawn at random."""
    if folder is None:  # no real data: only to see that it runs
        return made(n, seed, n_test)
    X, y, _ = rows_of(folder, name)
    train, test = np.split(np.random.default_rng(seed).permutation(len(y)), [n])
    test = test[:n_test]
    X = X / 255 if name == "large/mnist_t10k" else standardised(X, train)
    return X[train], y[train], X[test], y[test]


def made(n, seed=0, n_test=0, n_classes=5, n_features=20):
    """Classes around centres that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n + n_test)
    X = rng.normal(size=(n_classes, n_features))[y] * 0.8 + rng.normal(size=(n + n_test, n_features))
    return X[:n], y[:n], X[n:], y[n:]


# -- the four parts ----------------------------------------------------------------------------------------------------


def sets(options):
    """One line for each set and size."""
    table = []
    for n in options.rows:
        names = [] if options.data is None else SETS + (SMALLER if n == LARGEST_GRID else ())
        for name in names or ["made"]:
            data = scaled_parts(options.data, name, TRAIN.get(name, n))
            methods = OF_ONE_WIDTH
            if n > LARGEST_GRID:  # and one process takes nearly twice as long as two
                methods = ["search", "SVC, 2 processes"]
            found = {method: measure(data, method) for method in methods}
            table.append(beside(name, len(data[1]), found, 0.7 if n <= LARGEST_GRID else 0.5))
            markdown(table[-1:])
    return table


def beside(name, n, found, limit):
    """The search beside the better of the SVC grids, and the full grid where there is one."""
    times = {key: each["seconds"] for key, each in found.items()}
    theirs = min((key for key in found if key.startswith("SVC")), key=times.get)
    grid = found.get("full grid", {})
    ratio = at_most(limit, times["search"] / times[theirs])
    return {
        "set": name,
        "n": n,
        "search s": times["search"],
        "SVC s": times[theirs],
        "SVC setting": theirs,
        "grid s": grid.get("seconds"),
        "ratio": ratio["value"],
        "limit": ratio["limit"],
        "kept": ratio["kept"],
        "search error": found["search"]["error"],
        "SVC error": found[theirs]["error"],
        "grid error": grid.get("error"),
        "arrays": found["search"]["arrays"],
        "grid arrays": grid.get("arrays"),
        "chosen": found["search"]["chosen"],
    }


def units(options, sizes=((4000, 10), (10_000, 6))):
    """The search in units of one exact leave-one-out."""
    table = []
    for n, limit in [(1000, None)] if options.fast else sizes:
        for name in ("made",) if options.data is None else SETS[:3]:
            data = scaled_parts(options.data, name, n, n_test=0)
            unit, ours = (measure(data, method) for method in ("leave-one-out", "search"))
            table.append(in_units(name, n, unit, ours, limit))
            markdown(table[-1:])
    return table


def large(options):
    """The same at the largest size: skin, or made data where there is no folder."""
    n = 2000 if options.fast else options.size
    name = "made" if options.data is None else "large/skin"
    data = scaled_parts(options.data, name, n, n_test=0)
    unit, ours = (measure(data, method) for method in ("leave-one-out", "search"))
    table = [in_units(name, n, unit, ours, 15, 1.3)]
    markdown(table)
    return table


def learnt(options):
    """The search that learns its kernel, beside searches of one width and in units of its own leave-one-out."""
    table = []
    for n in (600,) if options.fast else (2000, 10_000):
        data = made(n, n_test=2000, n_classes=2)
        others = ["search"] if n > LARGEST_GRID else ["search", "SVC, 2 processes"]
        results = {method: measure(data, method) for method in ["learnt", "leave-one-out of the sum", *others]}
        ours, unit = results["learnt"], results["leave-one-out of the sum"]
        row = in_units("made", n, unit, ours, 6 if n == 10_000 else None, 3.2 if n == 10_000 else None)
        beside_rbf = at_most(3 if n == 2000 else None, ours["seconds"] / results["search"]["seconds"])
        row |= {"times rbf search": beside_rbf["value"], "times rbf search, limit": beside_rbf.get("limit")}
        for method in others:
            of_others = results[method]
            row |= {f"{method}, one width, s": of_others["seconds"], f"{method}, one width, error": of_others["error"]}
        table.append({**row, "error": ours["error"]})
        markdown(table[-1:])
    return table


def in_units(name, n, unit, ours, limit, arrays=None):
    """One line: the search in exact leave-one-outs, and its memory."""
    ratio, memory = at_most(limit, ours["seconds"] / unit["seconds"]), at_most(arrays, ours["arrays"])
    return {
        "set": name,
        "n": n,
        "leave-one-out s": unit["seconds"],
        "search s": ours["seconds"],
        "ratio": ratio["value"],
        "limit": ratio.get("limit"),
        "kept": ratio.get("kept"),
        "arrays": memory["value"],
        "arrays limit": memory.get("limit"),
        "arrays kept": memory.get("kept"),
        "chosen": ours["chosen"],
    }


def ida(options):
    """Test errors of the search and of the full grid, paired, on standardised features."""
    names = ("sklearn/breast_cancer", "sklearn/wine") if options.data is None else IDA
    lines, tables, pair = [], [], {key: METHODS[key] for key in ("full grid", "search")}
    for name in names[:2] if options.fast else names:
        X, y, realisations = rows_of(options.data, name)
        errors = []
        for train, test in partitions(y, realisations, 2 if options.fast else options.splits, 2000, len(y)):
            rows, labels, X_test, y_test = parts(X, y, train, test)
            fitted = [make(rows).fit(rows, labels) for make in pair.values()]
            errors.append([100 * float(np.mean(each.predict(X_test) != y_test)) for each in fitted])
        tables.append(np.array(errors))
        lines.append(line(name, pair, tables[-1]))
        markdown(lines[-1:])
    means = over_sets(list(pair), tables)
    markdown(means)
    return {"sets": lines, "methods": means}


PARTS = {"sets": sets, "units": units, "large": large, "learnt": learnt, "ida": ida}


def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--only", choices=PARTS)
    options.add_argument("--rows", type=int, nargs="+", default=[3000, 8000])
    options.add_argument("--size", type=int, default=20_000)
    options.add_argument("--splits", type=int, default=10)
    options.add_argument("--one", nargs=2, help="internal: one measurement of a file")
    options = options.parse_args()
    if options.one:
        return one(*options.one)
    if options.fast:
        options.rows = [600]
    report(options, **{name: PARTS[name](options) for name in ([options.only] if options.only else PARTS)})


if __name__ == "__main__":
    main()
