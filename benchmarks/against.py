"""Everyday calls beside an earlier commit: the same calls, by both versions in turns.

    python benchmarks/against.py REV [--fast] [--json FILE] [--only WORD]          (make bench-against REV=...)

Every version runs in a process of its own, with its own copy of ``src``. The processes take turns call by call, so that
both see the same machine, and the least of several rounds counts. An entry holds for both versions

- ``seconds``, the least wall time, and their ratio: at most 1.05, or the entry is not kept;
- ``cpu_seconds``, the least time of all processors together, and ``cpu_ratio``. They hardly depend on what else the
  machine does, and tell a version that is quick because it takes two processors from one that does less. Where other
  work is done on the machine, look at these, with OPENBLAS_NUM_THREADS=1;
- ``peak_mib``, the most memory that the call held at a time, by tracemalloc in a run of its own;
- ``error``, where a version does not know the call. It is not kept where this tree fails.

Random data, float64; nothing is done about threads, as a user would have it. The exit status is 1 if an entry is not
kept.
"""

import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np

LIMIT = 1.05
SECONDS = 0.4  # a call is repeated for so long, in every round and by each version
ROUNDS = 7


def calls():
    """{name: call}: what is measured. Imports are those of the version whose ``src`` comes first on the path."""
    from scipy.sparse import csr_array
    from sklearn.linear_model import RidgeClassifier
    from sklearn.model_selection import LeaveOneOut, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
    from foldless import model_selection as ms

    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(2000, 15)), rng.integers(0, 4, 2000)
    X[:, 0] += y
    three, pairs, values = np.minimum(y, 2), y % 2, X[:, 0] + np.sin(3 * X[:, 1])
    epochs, hand = rng.normal(size=(60, 12, 20)), np.arange(60) % 2
    machine, fisher = LSSVC(gamma=0.05), KernelFisherDiscriminant(gamma=0.05)
    grid = {"alpha": [0.01, 0.1, 1.0, 10.0], "gamma": [0.01, 0.03, 0.1, 0.3]}
    large_grid = {"alpha": np.logspace(-3, 3, 8).tolist(), "gamma": np.logspace(-3, 0, 6).tolist()}
    folds, few_folds, ten = StratifiedKFold(10), StratifiedKFold(5), slice(60, 70)
    regression, fitted = LSSVR(gamma=0.05), LSSVC(gamma=0.05).fit(X[:1000], y[:1000])
    wide, linear = rng.normal(size=(200, 5000)), LSSVC("linear", alpha=100.0)
    words = csr_array((rng.random(size=(500, 2000)) < 0.02).astype(float))
    calibrated, scaled = LSSVC(gamma=0.05, calibration="sigmoid"), make_pipeline(StandardScaler(), fisher)

    def learn_and_forget():
        model = regression.fit(X[:600], values[:600])
        for row in range(600, 620):
            model.partial_fit(X[row : row + 1], values[row : row + 1])
        return model.forget(np.arange(20))

    return {
        "fit, n=300": lambda: machine.fit(X[:300], y[:300]),
        "fit, n=1000": lambda: machine.fit(X[:1000], y[:1000]),
        "fit and predict_proba, n=300": lambda: calibrated.fit(X[:300], y[:300]).predict_proba(X[ten]),
        "leave-one-out, 5000 features, n=200": lambda: linear.fit(wide, pairs[:200]).loo_decision_function(),
        "leave-one-out, sparse, n=500": lambda: linear.fit(words, y[:500]).loo_decision_function(),
        "leave-one-out, n=300": lambda: machine.fit(X[:300], y[:300]).loo_decision_function(),
        "leave-one-out, n=1000": lambda: machine.fit(X[:1000], y[:1000]).loo_decision_function(),
        "leave-one-out, n=2000": lambda: machine.fit(X, y).loo_decision_function(),
        "leave-one-out, KFDA, n=600": lambda: fisher.fit(X[:600], y[:600]).loo_decision_function(),
        "loo_score_, n=300": lambda: machine.fit(X[:300], y[:300]).loo_score_,
        "loo_score_, n=1000": lambda: machine.fit(X[:1000], y[:1000]).loo_score_,
        "10 folds, n=80": lambda: ms.cross_val_score(machine, X[:80], pairs[:80], cv=10),
        "10 folds, n=300": lambda: ms.cross_val_predict(fisher, X[:300], y[:300], cv=folds),
        "10 folds, n=1000": lambda: ms.cross_val_predict(fisher, X[:1000], y[:1000], cv=folds),
        "10 folds, regression, n=300": lambda: ms.cross_val_score(regression, X[:300], values[:300], cv=10),
        "5 folds, StandardScaler, n=300": lambda: ms.cross_validate(scaled, X[:300], y[:300], cv=few_folds),
        "10 folds, RidgeClassifier, n=1000": lambda: ms.cross_val_score(
            RidgeClassifier(), X[:1000], y[:1000], cv=folds
        ),
        "leave-one-out cross_val_predict, n=60": lambda: ms.cross_val_predict(
            machine, X[:60], pairs[:60], cv=LeaveOneOut()
        ),
        "200 permutations, n=500": lambda: ms.permutation_test_score(
            fisher, X[:500], y[:500], cv=10, n_permutations=200
        ),
        "family of 20 times, 100 permutations": lambda: ms.permutation_test_score(
            KernelFisherDiscriminant("linear"), epochs, hand, cv=5, n_permutations=100
        ),
        "grid 4 x 4, n=300": lambda: FoldlessSearchCV(machine, grid).fit(X[:300], y[:300]),
        "grid 8 x 6, n=600": lambda: FoldlessSearchCV(machine, large_grid).fit(X[:600], three[:600]),
        "default search, n=400": lambda: FoldlessSearchCV(LSSVC()).fit(X[:400], y[:400]),
        "nested, 5 folds, grid 4 x 4, n=300": lambda: ms.nested_cross_validate(
            FoldlessSearchCV(machine, grid), X[:300], y[:300], cv=few_folds
        ),
        "nested, 10 folds, grid 8 x 6, n=600": lambda: ms.nested_cross_validate(
            FoldlessSearchCV(machine, large_grid), X[:600], three[:600], cv=folds
        ),
        "gradient search, n=200": lambda: FoldlessSearchCV(machine, method="gradient").fit(X[:200], pairs[:200]),
        "leave-pair-out AUC, n=200": lambda: ms.leave_pair_out_auc(machine, X[:200], pairs[:200]),
        "20 rows learnt, 20 forgotten, n=600": learn_and_forget,
        "predict, 10 rows, n=1000": lambda: fitted.predict(X[ten]),
        "predict, 1000 rows, n=1000": lambda: fitted.predict(X[1000:]),
    }


def work(source):
    """Answer names of calls on standard input with their least times and their memory, for ever."""
    sys.path.insert(0, source)
    warnings.simplefilter("ignore")
    known = calls()
    for line in sys.stdin:
        name, seconds = json.loads(line)
        try:
            answer = least_times(known[name], seconds)
        except Exception as error:  # the earlier version may not know it
            answer = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(answer), flush=True)


def least_times(call, seconds):
    """The least wall and processor time of a call that is repeated for so long, and the memory that it took."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    wall, cpu, end = np.inf, np.inf, time.perf_counter() + seconds
    while True:
        start = time.perf_counter(), time.process_time()
        call()
        stop = time.perf_counter(), time.process_time()
        wall, cpu = min(wall, stop[0] - start[0]), min(cpu, stop[1] - start[1])
        if stop[0] > end:
            return {"seconds": wall, "cpu_seconds": cpu, "peak_mib": peak}


class Version:
    """A process that measures calls by the version whose ``src`` is in a folder."""

    def __init__(self, source):
        command = [sys.executable, __file__, "--work", str(source)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, name, seconds):
        """The answer to one call."""
        print(json.dumps([name, seconds]), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.wait()


def compare(name, versions, rounds, seconds):
    """One entry: the least times of both versions, which take turns."""
    answers = {label: [] for label in versions}
    for _ in range(rounds):
        for label, version in versions.items():
            answers[label].append(version.measure(name, seconds))
    entry = {"name": name}
    for label, found in answers.items():
        errors = [answer["error"] for answer in found if "error" in answer]
        for what in ("seconds", "cpu_seconds", "peak_mib"):
            known = [answer[what] for answer in found if answer.get(what) is not None]
            entry[f"{label}_{what}"] = None if errors else min(known, default=None)
        entry[f"{label}_error"] = errors[0] if errors else None
    if entry["now_error"] or entry["then_error"]:
        return entry | {"ratio": None, "cpu_ratio": None, "kept": False if entry["now_error"] else None}
    ratio, cpu = (entry[f"now_{what}"] / entry[f"then_{what}"] for what in ("seconds", "cpu_seconds"))
    return entry | {"ratio": ratio, "cpu_ratio": cpu, "kept": bool(ratio <= LIMIT)}


def main():
    """Compare this tree with a commit."""
    root = Path(__file__).parents[1]
    sys.path.insert(0, str(root / "src"))
    from common import markdown, parser, report

    options = parser(__doc__)
    options.add_argument("rev", help="the earlier commit")
    options.add_argument("--only", default="", help="calls whose name holds this word")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", options.rev, "src"], cwd=root, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        versions = {"then": Version(Path(folder) / "src"), "now": Version(root / "src")}
        names = [name for name in calls() if options.only in name]
        rounds, seconds = (1, 0.0) if options.fast else (ROUNDS, SECONDS)
        entries = [compare(name, versions, rounds, seconds) for name in names]
        for version in versions.values():
            version.close()
    columns = ("seconds", "cpu_seconds", "peak_mib")
    shown = ["name", *(f"{label}_{what}" for what in columns for label in versions), "ratio", "cpu_ratio", "kept"]
    markdown([{key: entry[key] for key in shown} for entry in entries])
    for entry in entries:
        for label in versions:
            if entry[f"{label}_error"]:
                print(f"{entry['name']}, {label}: {entry[f'{label}_error']}", file=sys.stderr)
    report(options, limit=LIMIT, entries=entries)
    sys.exit(any(entry["kept"] is False for entry in entries))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2])
    else:
        main()
