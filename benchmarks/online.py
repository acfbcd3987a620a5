"""What learning and forgetting a row costs: in copies of an n x n array, against refits and against QR updating.

    python benchmarks/online.py [--fast] [--json FILE]

Every entry holds its seconds (the mean of many updates in a row, validation of the input and all), the yardstick's
seconds from the same run, their ratio, its limit and whether it is kept, for one and for two threads. A refit is the
kernel matrix and one Cholesky factorisation, nothing else, but for the entries with predictions or other settings,
where it is ``fit`` of the estimator. Random data, RBF kernel, alpha = 1 unless told otherwise, float64.
"""

import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsymv, dsyr
from threadpoolctl import threadpool_limits

from common import at_least, at_most, best_time, best_times, markdown, parser, peak_arrays, report, summary
from foldless import LSSVC, AdaptiveKDA
from foldless.kernels import RBF

GAMMA, FEATURES = 0.05, 20
WINDOW = {"learn": 2.2, "forget": 3.3}  # seconds of 200 steps of another implementation, on two other cores


def sample(n):
    """n rows and labels that are not linearly separable."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, FEATURES))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0).astype(int)


def cholesky_refit(X, y):
    """The least a refit can do: kernel, factor, two solves."""
    M = RBF(GAMMA).gram(X)
    M.flat[:: len(M) + 1] += 1.0
    factor = cho_factor(M, overwrite_a=True, check_finite=False)
    return cho_solve(factor, np.column_stack([2.0 * y - 1.0, np.ones(len(y))]), check_finite=False)


def walk(model, X, y, steps, *, predict=False):
    """Seconds of a step that learns a row and of one that forgets the oldest, ``steps`` of each in turn."""
    n = model.X_fit_.shape[0]
    spent = {"learn": 0.0, "forget": 0.0}
    for i in range(n, n + steps):
        for kind in spent:
            start = time.perf_counter()
            if kind == "learn":
                model.partial_fit(X[i : i + 1], y[i : i + 1])
            else:
                model.forget([0])
            if predict:
                model.predict(X[i : i + 1])
            spent[kind] += time.perf_counter() - start
    return {kind: seconds / steps for kind, seconds in spent.items()}


def started(model, X, y, n):
    """A model of n rows whose P is explicit: the first update of all pays for that."""
    return model.fit(X[:n], y[:n]).partial_fit(X[n : n + 1], y[n : n + 1]).forget([n])


def least_walk(model, X, y, steps, repeats, **options):
    """The least of several walks."""
    walks = [walk(model, X[start:], y[start:], steps, **options) for start in range(0, repeats * steps, steps)]
    return {kind: min(each[kind] for each in walks) for kind in walks[0]}


# -- entries -----------------------------------------------------------------------------------------------------------


def entry(name, n, threads, seconds, yardstick, ratio, **more):
    """One line of the result."""
    place = {"name": name, "n": n, "threads": threads}
    return {**place, "seconds": seconds, "yardstick_seconds": yardstick, "ratio": ratio, **more}


def steps_at(n, threads, repeats, *, refit, copies=None, steps=50, **settings):
    """One row in, one row out, at n rows."""
    X, y = sample(n + repeats * steps + steps + 2)
    model = started(LSSVC(gamma=GAMMA, **settings), X, y, n)
    which = "".join(f", {name}={value}" for name, value in settings.items())
    T, x = np.asfortranarray(RBF(GAMMA).gram(X[:n])), X[:n, 0].copy()
    yard = best_times(
        repeats,
        copy=lambda: T.copy(order="F"),
        refit=lambda: LSSVC(gamma=GAMMA, **settings).fit(X[:n], y[:n]) if settings else cholesky_refit(X[:n], y[:n]),
        limit=lambda: (dsymv(1.0, T, x, lower=1), dsyr(1e-9, x, a=T, lower=1, overwrite_a=1)),
    )
    results = []
    for kind, seconds in least_walk(model, X, y, steps, repeats).items():
        in_copies, gain = at_most(copies, seconds / yard["copy"]), at_least(refit, yard["refit"] / seconds)
        more = {"distance_to_symv_and_syr": seconds / yard["limit"], "drift": model.drift_}
        results.append(
            entry(f"{kind}{which}, in copies of n x n", n, threads, seconds, yard["copy"], in_copies, **more)
        )
        results.append(entry(f"{kind}{which}, against refit", n, threads, seconds, yard["refit"], gain))
    loo = best_time(lambda: fresh_loo(model), repeats)
    in_copies = at_most(None, loo / yard["copy"])
    return [*results, entry(f"leave-one-out after a step{which}", n, threads, loo, yard["copy"], in_copies)]


def fresh_loo(model):
    """The leave-one-out score as after an update."""
    model._loo_values = None
    return model.loo_score_


def against_qr(n, threads, repeats, *, limit):
    """One row in, one row out, beside the QR updating of the paper."""
    steps = 4
    X, y = sample(n + repeats * steps + steps + 2)
    ours = least_walk(started(LSSVC(gamma=GAMMA), X, y, n), X, y, steps, repeats)
    theirs = least_walk(started(AdaptiveKDA(gamma=GAMMA), X, y, n), X, y, steps, repeats)
    gains = {kind: at_least(limit, theirs[kind] / ours[kind]) for kind in ours}
    return [entry(f"{kind}, against QR updating", n, threads, ours[kind], theirs[kind], gains[kind]) for kind in ours]


def with_predictions(n, threads, repeats, *, window, refit, steps=200):
    """200 rows in, 200 out, a prediction after each."""
    X, y = sample(n + repeats * steps + steps + 2)
    model = started(LSSVC(gamma=GAMMA), X, y, n)
    spent = {kind: steps * seconds for kind, seconds in least_walk(model, X, y, steps, repeats, predict=True).items()}

    def lean():
        return RBF(GAMMA).gram(X[:1], X[:n]) @ cholesky_refit(X[:n], y[:n])

    refits = best_times(repeats, refit=lambda: LSSVC(gamma=GAMMA).fit(X[:n], y[:n]).predict(X[:1]), lean=lean)
    results = []
    for kind, seconds in spent.items():
        name, gains = f"{steps} x {kind} and predict, against", {key: steps * refits[key] for key in refits}
        ratio, lean_ratio = at_least(refit, gains["refit"] / seconds), at_least(None, gains["lean"] / seconds)
        results.append(entry(f"{name} refits", n, threads, seconds, gains["refit"], ratio))
        results.append(entry(f"{name} kernel and Cholesky alone", n, threads, seconds, gains["lean"], lean_ratio))
        if window is not None:
            gain = at_least(window, WINDOW[kind] / seconds)
            results.append(entry(f"{name} window code", n, threads, seconds, WINDOW[kind], gain))
    return results


def memory(n):
    """Peak memory of the first update and of a later one, in n x n arrays."""
    X, y = sample(n + 2)
    model = LSSVC(gamma=GAMMA).fit(X[:n], y[:n])
    first = peak_arrays(lambda: model.partial_fit(X[n : n + 1], y[n : n + 1]), n)
    later = peak_arrays(lambda: model.partial_fit(X[n + 1 :], y[n + 1 :]), n)
    return [
        {"name": "memory of the first update", "n": n, "peak_arrays": at_most(None, first)},
        {"name": "memory of a later update", "n": n, "peak_arrays": at_most(None, later)},
    ]


def main():
    """Measure and report."""
    options = parser(__doc__).parse_args()
    small, repeats = options.fast, 1 if options.fast else 3
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            if small:
                results += steps_at(200, threads, repeats, refit=None, steps=4)
                results += steps_at(60, threads, repeats, refit=None, steps=4, alpha=1e-3, penalty="coef")
                results += against_qr(100, threads, repeats, limit=None)
                results += with_predictions(100, threads, repeats, window=None, refit=None, steps=4)
            else:
                results += with_predictions(1000, threads, repeats, window=10, refit=25)
                results += steps_at(2000, threads, repeats, refit=25, copies=2)
                results += steps_at(2000, threads, repeats, refit=None, alpha=1e-3)  # small: updates are refined
                results += steps_at(1000, threads, repeats, refit=None, penalty="coef")
                results += against_qr(2000, threads, repeats, limit=5)
                results += steps_at(8000, threads, 2, refit=80, steps=20)
    results += memory(200 if small else 2000)
    markdown([summary(each) for each in results])
    report(options, results=results)


if __name__ == "__main__":
    main()
