"""What tuning costs: gradients, grids, nested cross-validation and ridge heads, each beside a yardstick.

Random data. Every entry holds its seconds, the yardstick's seconds, their ratio, its limit and whether it is kept.

    python benchmarks/tuning.py [--fast] [--only NAME ...] [--json FILE]
"""

import resource
import subprocess
import sys
import time

import numpy as np
from scipy.linalg import cho_factor, cholesky
from scipy.linalg.blas import dgemm
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from common import at_least, at_most, best_time, best_times, markdown, parser, peak_arrays, report, summary, timed
from foldless import LSSVC, FoldlessSearchCV
from foldless._engine.heldout.gradient import value_and_gradient
from foldless._engine.heldout.problem import Problem
from foldless.kernels import RBF, BasisFunctions
from foldless.model_selection import nested_cross_validate

THREADS = (1, 2)
ALPHAS, GAMMAS = np.logspace(-4, 2, 20), np.logspace(-3, 0, 10)


def sample(n, d):
    """n rows of d features; the sign of a product of two of them, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1, -1)


# -- gradients ---------------------------------------------------------------------------------------------------------


def press_and_gradient(X, y, theta, alpha=1.0, *, penalty="rkhs"):
    """Leave-one-out PRESS with one scale for each feature, and all its derivatives, as a function to be timed."""
    kernel = RBF(theta) if penalty == "rkhs" else BasisFunctions(RBF(theta)).resolved(X)
    problem = Problem.of(kernel, X, alpha=alpha, Q=np.ones((len(X), 1)))
    Y, share = y[:, None].astype(float), 1.0 / len(y)
    return lambda: value_and_gradient(
        problem, problem.active, Y, None, lambda E: (share * np.square(E).sum(), 2 * share * E)
    )


def many_features(n, repeats):
    """Value and gradient with 500 features against 5."""
    few, many = ((*sample(n, d), np.full(d, 1.0 / d)) for d in (5, 500))
    times = best_times(repeats, seconds=press_and_gradient(*many), yardstick_seconds=press_and_gradient(*few))
    return {
        **times,
        "yardstick": "the same with 5 features; ratio = seconds / yardstick_seconds",
        "ratio": at_most(1.6, times["seconds"] / times["yardstick_seconds"]),
    }


def in_products(d, limit):
    """Value and gradient, kernel included, in units of one Cholesky factorisation and one n x n product."""

    def entry(n, repeats):
        X, y = sample(n, d)
        theta = np.full(d, 1.0 / d)
        ours, M = press_and_gradient(X, y, theta), RBF(theta).gram(X) + np.eye(n)
        times = best_times(
            repeats,
            seconds=ours,
            cholesky_seconds=lambda: cho_factor(M),
            product_seconds=lambda: dgemm(1.0, M.T, M.T),  # SciPy's, as all the rest: pools of threads do not mix
        )
        unit = times["cholesky_seconds"] + times["product_seconds"]
        return {
            **times,
            "yardstick_seconds": unit,
            "yardstick": f"cho_factor and dgemm; d = {d}; ratio = seconds / (cholesky_seconds + product_seconds)",
            "ratio": at_most(limit, times["seconds"] / unit),
            # n^3: factor 1/3, inverse 1/3, P 1/3, P V P 2; n^2 d: kernel 1, pull-back 2
            "flop_limit": (3 * n + 3 * d) / (7 / 3 * n),
            "peak_arrays": at_most(None, peak_arrays(ours, n)),
        }

    return entry


def forward(X, y, theta, alpha, which):
    """Equations 3.7-3.10 of Bo, Wang & Jiao (2006) for the scales ``which``, on the mean of squared residuals.

    As printed, but T^-1, T^-1 C' and H are made once. ``lean`` below needs a single n^3 product for each scale.
    """
    n = len(y)
    K = RBF(theta).gram(X)
    C = np.column_stack([K, np.ones(n)])
    Tinv = np.linalg.inv(C.T @ C + alpha * np.diag(np.r_[np.ones(n), 0.0]))
    TC = Tinv @ C.T
    H = C @ TC
    free = 1 - np.diag(H)
    r = (y - H @ y) / free
    slopes = []
    for k in which:
        dK = -np.square(X[:, [k]] - X[:, k]) * K
        dC = np.column_stack([dK, np.zeros(n)])
        dTinv = -Tinv @ (dC.T @ C + C.T @ dC) @ Tinv  # 3.10
        dH = dC @ TC + C @ dTinv @ C.T + TC.T @ dC.T  # 3.8
        dr = -(dH @ y) / free + r / free * np.diag(dH)  # 3.7
        slopes.append(2 * r @ dr / n)
    return np.array(slopes)


def lean(X, y, theta, alpha, which):
    """The same, arranged: with B = dC T^-1 C', dH = B + B' - B' H - H B, of which two vectors are needed."""
    n = len(y)
    K = RBF(theta).gram(X)
    C = np.column_stack([K, np.ones(n)])
    TC = np.linalg.solve(C.T @ C + alpha * np.diag(np.r_[np.ones(n), 0.0]), C.T)
    H = C @ TC
    free, fit = 1 - np.diag(H), H @ y
    r = (y - fit) / free
    slopes = []
    for k in which:
        B = (-np.square(X[:, [k]] - X[:, k]) * K) @ TC[:n]
        By = B @ y
        dHy = By + B.T @ y - B.T @ fit - H @ By
        diagonal = 2 * (np.diag(B) - np.einsum("ij,ji->i", H, B))
        slopes.append(2 * r @ (r / free * diagonal - dHy / free) / n)
    return np.array(slopes)


def against_forward(n, repeats):
    """All derivatives by the scales of 240 features against the forward formulas, measured on a few and scaled."""
    d, some = 240, 8
    X, y = sample(n, d)
    theta, alpha = np.full(d, 1.0 / d), 1.0
    ours = press_and_gradient(X, y, theta, alpha, penalty="coef")
    lone = best_times(repeats, none=lambda: forward(X, y, theta, alpha, []), bare=lambda: lean(X, y, theta, alpha, []))
    times = best_times(
        repeats,
        seconds=ours,
        printed=lambda: forward(X, y, theta, alpha, range(some)),
        arranged=lambda: lean(X, y, theta, alpha, range(some)),
    )
    printed, arranged = (
        base + (times[name] - base) * d / some for name, base in (("printed", lone["none"]), ("arranged", lone["bare"]))
    )
    expected = forward(X, y, theta, alpha, range(some))
    return {
        "seconds": times["seconds"],
        "yardstick_seconds": printed,
        "yardstick": f"equations 3.7-3.10 of Bo et al. (2006) for {d} scales, scaled from {some};"
        " ratio = yardstick_seconds / seconds",
        "ratio": at_least(50, printed / times["seconds"]),
        "ratio_to_lean_forward": arranged / times["seconds"],
        "largest_difference": np.abs(ours()[1]["gamma"][:some] - expected).max() / np.abs(expected).max(),
    }


# -- searches ----------------------------------------------------------------------------------------------------------


def searched(**options):
    """The grid of 20 alphas and 10 gammas, or another search of the same estimator."""
    grid = {"alpha": ALPHAS, "gamma": GAMMAS}
    return FoldlessSearchCV(LSSVC(gamma=0.05), None if "method" in options else grid, **options)


def grid(n, repeats):
    """Leave-one-out of 200 settings against GridSearchCV (10 folds) and against RidgeCV on roots of the kernels."""
    X, y = sample(n, 20)
    times = best_times(
        repeats,
        seconds=lambda: searched().fit(X, y),
        gradient_seconds=lambda: searched(method="gradient").fit(X, y),
    )
    with threadpool_limits(1):
        times["two_processes_seconds"] = best_time(lambda: searched(n_jobs=2).fit(X, y), repeats)
    ours_seconds = min(times["seconds"], times["two_processes_seconds"])
    peers, some = {}, GAMMAS[4:6]  # two of the gammas, scaled
    for threads in THREADS:
        with threadpool_limits(3 - threads):  # one process with two threads, or two with one
            peer = GridSearchCV(
                KernelRidge(kernel="rbf"), {"alpha": ALPHAS, "gamma": some}, cv=KFold(10), n_jobs=threads
            )
            peers[threads] = timed(lambda peer=peer: peer.fit(X, y))[1] * len(GAMMAS) / len(some)
    roots = [cholesky(RBF(gamma).gram(X) + 1e-8 * np.eye(n), lower=True) for gamma in some]
    features = best_time(lambda: [RidgeCV(alphas=ALPHAS).fit(root, y) for root in roots], min(repeats, 2))
    ours, downhill = searched().fit(X, y), searched(method="gradient").fit(X, y)
    return {
        **times,
        "yardstick_seconds": min(peers.values()),
        "yardstick": "GridSearchCV(KernelRidge, cv=10) at its better setting, scaled from 2 of 10 gammas;"
        " ratio = yardstick_seconds / least of seconds and two_processes_seconds",
        "ratio": at_least(25, min(peers.values()) / ours_seconds),
        "ridge_cv_seconds": features * len(GAMMAS) / len(some),
        "ratio_to_ridge_cv": at_least(1, features * len(GAMMAS) / len(some) / times["seconds"]),
        "criterion": ours.best_criterion_,
        "criterion_by_gradient": at_most(ours.best_criterion_, downhill.best_criterion_),
        "gradient_over_grid_seconds": at_most(1, times["gradient_seconds"] / times["seconds"]),
    }


def nested_folds(n, repeats):
    """Nested cross-validation of the grid with 10 outer folds, in plain searches."""
    X, y = sample(n, 20)
    results = []
    times = best_times(
        min(repeats, 2),
        seconds=lambda: results.append(nested_cross_validate(searched(), X, y, cv=10)),
        yardstick_seconds=lambda: searched().fit(X, y),
    )
    return {
        **times,
        "yardstick": "the search itself; ratio = seconds / yardstick_seconds",
        "ratio": at_most(5, times["seconds"] / times["yardstick_seconds"]),
        "path": results[-1].path.kind,
    }


def nested_partitions(n, repeats):
    """100 random partitions 90/10 against the search run anew on each training part, scaled from five."""
    X, y = sample(n, 20)
    cv = StratifiedShuffleSplit(100, test_size=0.1, random_state=0)
    result, seconds = timed(lambda: nested_cross_validate(searched(), X, y, cv=cv))
    some = [train for train, _ in cv.split(X, y)][:5]
    anew = best_time(lambda: [clone(searched()).fit(X[train], y[train]) for train in some], min(repeats, 1)) * 20
    return {
        "seconds": seconds,
        "yardstick_seconds": anew,
        "yardstick": "the search on each training part, scaled from 5; ratio = yardstick_seconds / seconds",
        "ratio": at_least(4, anew / seconds),
        "path": result.path.kind,
    }


# -- ridge heads -------------------------------------------------------------------------------------------------------


def ridge_head(n, d, who):
    """One search for alpha of a linear classifier, in a process of its own: seconds, peak memory, the choice."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    y = X @ rng.standard_normal(d).astype(np.float32) / np.sqrt(d) + rng.standard_normal(n) > 0
    alphas = np.logspace(-1, 5, 13)
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": alphas}) if who == "foldless" else RidgeClassifierCV(alphas)
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    search.fit(X, y)
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(seconds, (peak - before) / 2**20, X.nbytes / 2**30, search.alpha_)


def against_ridge_classifier_cv(n, d):
    """FoldlessSearchCV(RidgeClassifier()) beside RidgeClassifierCV, float32."""

    def entry(_, repeats):
        size = (n, d) if repeats else (n // 100, d // 100)
        found = {}
        for who in ("foldless", "scikit-learn"):
            command = [sys.executable, __file__, "--ridge-head", *map(str, size), who]
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            found[who] = dict(zip(("seconds", "gib", "gib_of_X", "alpha"), map(float, answer), strict=True))
        ours, theirs = found["foldless"], found["scikit-learn"]
        return {
            "shape": size,
            "seconds": ours["seconds"],
            "yardstick_seconds": theirs["seconds"],
            "yardstick": "RidgeClassifierCV; ratio = yardstick_seconds / seconds; GiB beyond X",
            "ratio": at_least(1, theirs["seconds"] / ours["seconds"]),
            "details": found,
        }

    return entry


SUITE = {
    "many_features": (1000, many_features),
    "gradient_d500": (1000, in_products(500, 4)),
    "gradient_d5": (1000, in_products(5, 4)),
    "gradient_d240": (500, in_products(240, 4)),
    "against_forward": (500, against_forward),
    "grid": (1000, grid),
    "nested_folds": (1000, nested_folds),
    "nested_partitions": (1000, nested_partitions),
    "ridge_head_wide": (2000, against_ridge_classifier_cv(2000, 20000)),
    "ridge_head_tall": (100000, against_ridge_classifier_cv(100000, 2000)),
}


def main():
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", choices=SUITE, default=list(SUITE))
    options.add_argument("--threads", nargs="+", type=int, default=THREADS)
    options = options.parse_args()
    shrink, repeats = (20, 0) if options.fast else (1, 5)
    entries = []
    for threads in options.threads:
        with threadpool_limits(threads):
            for name in options.only:
                if name.startswith("ridge_head") and threads != options.threads[-1]:
                    continue  # processes of their own, at the library's own number of threads
                n, function = SUITE[name]
                entries.append({"name": name, "n": n // shrink, "threads": threads, **function(n // shrink, repeats)})
                markdown([summary(entries[-1])])
    markdown([summary(entry) for entry in entries])
    report(options, entries=entries)


if __name__ == "__main__":
    if "--ridge-head" in sys.argv:
        ridge_head(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        main()
