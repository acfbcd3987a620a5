"""What cross-validation costs, in units of one factorisation, and against refits and peers.

Every entry holds its seconds, the yardstick's seconds from the same run, their ratio, its limit and whether it is
kept, for one and for two threads. Random data, float64.

    python benchmarks/core.py [--fast] [--json FILE]
"""

import subprocess
import sys
from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cholesky, eigh
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneOut, StratifiedKFold
from threadpoolctl import threadpool_limits

from common import at_least, at_most, best_time, best_times, markdown, parser, peak_arrays, report, summary
from foldless import LSSVC, KernelFisherDiscriminant
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import loo_path
from foldless.kernels import RBF
from foldless.model_selection import cross_val_predict

GAMMA = 0.05
THREADS = (1, 2)
REFITS = 40
PARTS = "sklearn.model_selection, sklearn.kernel_ridge, sklearn.linear_model, sklearn.isotonic, sklearn.pipeline"


def sample(n, classes=2):
    """n rows of 20 features, labels in equal shares, and K + I."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 20)), rng.permutation(np.arange(n) % classes)
    return X, y, RBF(GAMMA).gram(X) + np.eye(n)


def validation(estimator, X, y, cv):
    """The call that is measured."""
    return lambda: cross_val_predict(estimator, X, y, cv=cv, method="decision_function")


# -- entries -----------------------------------------------------------------------------------------------------------


def in_factors(estimator, cv, n, repeats, *, classes, limit, flops, memory=None):
    """A cross-validation without its kernel matrix, in Cholesky factorisations of n x n."""
    X, y, M = sample(n, classes)
    ours = validation(estimator, X, y, cv)
    times = best_times(
        repeats,
        seconds=ours,
        kernel_seconds=lambda: RBF(GAMMA).gram(X),
        sklearn_kernel_seconds=lambda: rbf_kernel(X, gamma=GAMMA),
        yardstick_seconds=lambda: cho_factor(M),
    )
    return {
        **times,
        "yardstick": "scipy.linalg.cho_factor(K + I); ratio = (seconds - kernel_seconds) / yardstick_seconds",
        "ratio": at_most(limit, (times["seconds"] - times["kernel_seconds"]) / times["yardstick_seconds"]),
        "flop_limit": flops,
        "peak_arrays": at_most(memory, peak_arrays(ours, n)),
    }


def alpha_path(n, repeats):
    """Leave-one-out residuals of 50 alphas, kernel matrix included, in eigendecompositions."""
    X, y, M = sample(n)
    K, Y, alphas = M - np.eye(n), 2.0 * y[:, None] - 1, np.logspace(-4, 4, 50)

    def ours():
        problem = Problem.of(RBF(GAMMA), X, alpha=1.0, Q=np.ones((n, 1)))
        return loo_path(problem, problem.active, Y, alphas)

    times = best_times(
        repeats,
        seconds=ours,
        kernel_seconds=lambda: RBF(GAMMA).gram(X),
        yardstick_seconds=lambda: eigh(K),
        eigh_evd_seconds=lambda: eigh(K, driver="evd"),
    )
    return {
        **times,
        "yardstick": "scipy.linalg.eigh(K); ratio = seconds / yardstick_seconds",
        "ratio": at_most(1.3, times["seconds"] / times["yardstick_seconds"]),
        "ratio_to_eigh_evd": times["seconds"] / times["eigh_evd_seconds"],
        "flop_limit": 1.0,
        "peak_arrays": at_most(None, peak_arrays(ours, n)),
    }


def against_refits(estimator, n, repeats):
    """Leave-one-out against fitting ``estimator`` n times, on the better number of threads for the refits."""
    X, y, _ = sample(n)
    seconds = best_time(validation(LSSVC(gamma=GAMMA), X, y, LeaveOneOut()), repeats)

    def refit():
        for i in range(REFITS):
            clone(estimator).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])

    times = {}
    for threads in THREADS:
        with threadpool_limits(threads):
            times[threads] = best_time(refit, repeats) * n / REFITS
    best = min(times, key=times.get)
    return {
        "seconds": seconds,
        "yardstick_seconds": times[best],
        "yardstick": f"{n} refits of {type(estimator).__name__} on {best} threads, scaled from {REFITS};"
        " ratio = yardstick_seconds / seconds",
        "ratio": at_least(300, times[best] / seconds),
    }


def against_ridge_cv(n, repeats):
    """RidgeCV's leave-one-out on a root of K, given to it as features, against ours from the rows."""
    X, y, M = sample(n)
    Y = 2.0 * y - 1
    features = cholesky(M - (1 - 1e-10) * np.eye(n), lower=True)
    ours, peer = validation(LSSVC(gamma=GAMMA), X, y, LeaveOneOut()), RidgeCV(alphas=[1.0], store_cv_results=True)
    times = best_times(repeats, seconds=ours, yardstick_seconds=lambda: peer.fit(features, Y))
    return {
        **times,
        "yardstick": "sklearn.linear_model.RidgeCV on a root of K; ratio = yardstick_seconds / seconds",
        "ratio": at_least(None, times["yardstick_seconds"] / times["seconds"]),
        "largest_difference": np.abs(np.square(Y - ours()) - peer.cv_results_[:, 0]).max(),
    }


def against_rlscore(n, repeats):
    """RLScore's leave-one-out (no intercept there), where it is installed."""
    try:
        from rlscore.learner import RLS
    except ImportError:
        return {"yardstick": "RLScore: not installed"}
    X, y, _ = sample(n)
    times = best_times(
        repeats,
        seconds=validation(LSSVC(gamma=GAMMA), X, y, LeaveOneOut()),
        yardstick_seconds=lambda: RLS(
            X, 2.0 * y - 1, regparam=1.0, kernel="GaussianKernel", gamma=GAMMA
        ).leave_one_out(),
    )
    return {
        **times,
        "yardstick": "RLScore; ratio = yardstick_seconds / seconds",
        "ratio": at_least(None, times["yardstick_seconds"] / times["seconds"]),
    }


def imports(repeats):
    """Seconds that ``import foldless`` takes in a fresh interpreter beyond those of scikit-learn."""

    def fresh(what):
        return lambda: subprocess.run([sys.executable, "-c", f"import {what}"], check=True)

    names = {"seconds": "foldless", "yardstick_seconds": "sklearn", "parts_seconds": PARTS}
    times = best_times(repeats, **{name: fresh(what) for name, what in names.items()})
    return {
        **times,
        "yardstick": "import sklearn; difference = seconds - yardstick_seconds",
        "difference": at_most(0.3, times["seconds"] - times["yardstick_seconds"]),
        "parts": f"import {PARTS}; difference = seconds - parts_seconds",
        "difference_to_parts": at_most(0.3, times["seconds"] - times["parts_seconds"]),
    }


LOO, FOLDS = LeaveOneOut(), StratifiedKFold(10)
FISHER, LSSVM, RIDGE = KernelFisherDiscriminant(gamma=GAMMA), LSSVC(gamma=GAMMA), KernelRidge(kernel="rbf", gamma=GAMMA)

# Flops in units of n^3/3: a factor and its inverse for leave-one-out; ten blocks of n (n/10)^2 more for ten folds.
SUITE = {
    "leave_one_out": (4000, partial(in_factors, LSSVM, LOO, classes=2, limit=3, flops=2.0, memory=2.2)),
    "ten_folds_fisher": (2000, partial(in_factors, FISHER, FOLDS, classes=5, limit=5, flops=2.3)),
    "ten_folds_lssvm": (2000, partial(in_factors, LSSVM, FOLDS, classes=5, limit=5, flops=2.3)),
    "alpha_path": (2000, alpha_path),
    "refits_lssvm": (1000, partial(against_refits, LSSVM)),
    "refits_kernel_ridge": (1000, partial(against_refits, RIDGE)),
    "against_ridge_cv": (2000, against_ridge_cv),
    "against_rlscore": (1000, against_rlscore),
}


def main():
    options = parser(__doc__).parse_args()
    shrink, repeats = (20, 0) if options.fast else (1, 5)
    entries = []
    for threads in THREADS:
        with threadpool_limits(threads):
            for name, (n, function) in SUITE.items():
                result = function(n // shrink, repeats)
                entries.append({"name": name, "n": n // shrink, "threads": threads, **result})
    entries.append({"name": "import", **imports(repeats)})
    markdown([summary(entry) for entry in entries])
    report(options, entries=entries)


if __name__ == "__main__":
    main()
