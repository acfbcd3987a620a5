"""What AdaptiveKDA costs, and the experiments of Kim, Drake & Park (2006): updates, leave-one-out, Thrombin, table 1.

    loo       leave-one-out in closed form beside Algorithm 7, n = 500
    updates   rows learned and forgotten by QR updating beside refits, n = 2000
    thrombin  leave-one-out by number of rows, as figure 3: ordinary, by downdating (Algorithm 7), in closed form; on
              the first 8000 features as there, then on all 139,351; --figure PATH draws it (needs matplotlib)
    table1    test errors of fits to all training rows, and to three quarters of them with the others learned one by one

Everything runs on one thread. ``--data DIR`` is a folder with ``kdd2001/thrombin.npz`` and ``ida/*.npz``; without it,
loo and updates alone run, on random data. Where only some of the rows are left out, the time is scaled and
``rows_timed`` says from how many.

    python benchmarks/adaptive.py --data DIR [--fast] [--only loo updates thrombin table1] [--figure PATH] [--json FILE]
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from common import at_least, at_most, best_time, best_times, load, markdown, parser, report, summary, timed
from foldless import AdaptiveKDA
from foldless._engine.online.minimum_norm import MinimumNorm
from foldless.kernels import RBF, Linear
from thresholds import partitions

ALPHA = 1e-3
PUBLISHED = {"thyroid": (3.9, 2.0), "diabetis": (26.3, 2.2), "heart": (16.1, 3.5), "titanic": (24.1, 2.7)}  # table 1
GAMMAS, ALPHAS = 2.0 ** np.arange(-9, 3), 10.0 ** np.arange(-3, 2)


def blobs(n, seed=0):
    """Two overlapping classes in five dimensions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 5)) + 0.7 * y[:, None], y


# -- leave-one-out and updates on random data --------------------------------------------------------------------------


def loo(fast):
    n = 120 if fast else 500
    np.empty(2**21)  # once freed, glibc keeps blocks of that size: Algorithm 7, all copies, is then 5 times faster
    X, y = blobs(n)
    model = AdaptiveKDA(gamma=0.1, alpha=ALPHA).fit(X, y)
    Y = np.eye(2)[y]
    times = best_times(
        0 if fast else 3, closed=lambda: model._factors.loo(Y), downdate=lambda: model._factors.loo_downdate(Y)
    )
    closed, downdated = (model.loo_decision_function(method) for method in ("closed", "downdate"))
    return {
        "name": "closed_form",
        "n": n,
        "seconds": times["closed"],
        "yardstick": "Algorithm 7: every row removed from a copy of the factors",
        "yardstick_seconds": times["downdate"],
        "ratio": at_least(50, times["downdate"] / times["closed"]),
        "largest_difference": at_most(1e-8, np.abs(closed - downdated).max() / np.abs(downdated).max()),
    }


def cholesky_refit(X, Y):
    """The same coefficients by Cholesky: M^-1 (I - t t' / tau) M^-1 Y and its product with G'."""
    K = RBF(0.1).gram(X)
    K.flat[:: len(K) + 1] += ALPHA
    factor = cho_factor(K, overwrite_a=True, check_finite=False)
    t, V = np.split(cho_solve(factor, np.column_stack([np.ones(len(Y)), Y]), check_finite=False), [1], axis=1)
    z = V - t @ (t.T @ V) / (1 + t.T @ t)
    return np.vstack([t.T @ V / (1 + t.T @ t), z])


def updates(fast):
    """Whole updates of the model: kernel, factors, coefficients."""
    n, repeats = (200, 0) if fast else (2000, 5)
    X, y = blobs(n + 10)
    Y = np.eye(2)[y[:n]]
    model = AdaptiveKDA(gamma=0.1, alpha=ALPHA).fit(X[:n], y[:n])
    solution = model._factors.solve(Y)
    assert np.abs(cholesky_refit(X[:n], Y) - solution).max() < 1e-6 * np.abs(solution).max()
    state = vars(model).copy()

    def on_copy(change):
        def run():
            vars(model).update(state)
            change()

        return run

    rng = np.random.default_rng(0)
    scattered = np.sort(rng.permutation(n)[:10])
    times = best_times(
        repeats,
        insert_1=on_copy(lambda: model.partial_fit(X[n : n + 1], y[n : n + 1])),
        insert_10=on_copy(lambda: model.partial_fit(X[n:], y[n:])),
        remove_1=on_copy(lambda: model.forget([n // 2])),
        remove_10_neighbours=on_copy(lambda: model.forget(range(n // 2, n // 2 + 10))),
        remove_10_scattered=on_copy(lambda: model.forget(scattered)),
        qr=lambda: MinimumNorm(RBF(0.1).gram(X[:n]), ALPHA).solve(Y),
        cholesky=lambda: cholesky_refit(X[:n], Y),
    )
    qr, cholesky = times.pop("qr"), times.pop("cholesky")
    for name, seconds in times.items():
        yield {
            "name": name,
            "n": n,
            "seconds": seconds,
            "yardstick": "refit by QR, kernel included",
            "yardstick_seconds": qr,
            "ratio": at_least(None, qr / seconds),
            "refit_by_cholesky_seconds": cholesky,
            "ratio_to_refit_by_cholesky": cholesky / seconds,
        }


# -- Thrombin: figure 3 ------------------------------------------------------------------------------------------------


def ordinary(K, Y, rows):
    """Held-out fits of some rows by a factorisation for each."""
    fits = []
    for i in rows:
        rest = np.delete(np.arange(len(K)), i)
        solution = MinimumNorm(K[np.ix_(rest, rest)], ALPHA).solve(Y[rest])
        fits.append(solution[0] + K[i, rest] @ solution[1:])
    return np.array(fits)


def downdating(K, Y, rows):
    """The same by removing each row from the factors of all (Algorithm 7)."""
    factors, fits = MinimumNorm(K, ALPHA), []
    for i in rows:
        rest = np.delete(np.arange(len(K)), i)
        solution = factors.remove([i]).solve(Y[rest])
        fits.append(solution[0] + K[i, rest] @ solution[1:])
    return np.array(fits)


def thrombin(folder, fast):
    data = load(folder, "kdd2001/thrombin")
    X = sp.csr_array((np.ones(len(data["indices"])), data["indices"], data["indptr"]), shape=data["shape"])
    order = np.random.default_rng(0).permutation(X.shape[0])  # the 42 active compounds are spread over all sizes
    X, y = X[order], data["y"][order]
    for n_features in (8000, X.shape[1]):
        part = X[:, :n_features]
        for n in (60, 120) if fast else (100, 200, 400, 800, 1200, 1600, X.shape[0]):
            yield thrombin_entry(part[:n], y[:n], fast)


def thrombin_entry(X, y, fast):
    """Seconds of all three ways from the same kernel matrix, factorisation included, for +-1 targets."""
    n = X.shape[0]
    K, kernel_seconds = timed(lambda: Linear().gram(X))
    Y = np.where(y[:, None] == 1, 1.0, -1.0)
    closed_seconds = best_time(lambda: MinimumNorm(K, ALPHA).loo(Y), 0 if fast else 2)
    closed = MinimumNorm(K, ALPHA).loo(Y)
    factor_seconds = best_time(lambda: MinimumNorm(K, ALPHA), 0 if fast else 2)
    entry = {
        "name": f"thrombin_{X.shape[1]}",
        "n": n,
        "kernel_seconds": kernel_seconds,
        "closed": closed_seconds,
        "auc": roc_auc_score(y, closed[:, 0]) if len(np.unique(y)) == 2 else None,
    }
    for way, once, most in ((ordinary, 0.0, 4 if n > 400 else 40), (downdating, factor_seconds, 40 if n > 400 else n)):
        rows = np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))
        fits, seconds = timed(lambda way=way, rows=rows: way(K, Y, rows))
        entry[way.__name__] = once + (seconds - once) * n / len(rows)
        entry[f"{way.__name__}_rows_timed"] = len(rows)
        difference = np.abs(fits - closed[rows]).max() / max(1.0, np.abs(closed).max())
        entry["largest_difference"] = max(entry.get("largest_difference", 0.0), difference)
    return entry


def draw(entries, path):
    """Figure 3 with a third line, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = sorted({entry["name"] for entry in entries}, key=lambda name: int(name.split("_")[1]))
    fig, axes = plt.subplots(1, len(names), figsize=(10, 4.2), sharey=True, layout="constrained")
    ways = {
        "ordinary": ("ordinary, scaled from 40 rows or 4 (n > 400)", "#d55e00", "s"),
        "downdating": ("downdating, scaled from 40 rows for n > 400", "#0072b2", "^"),
        "closed": ("closed form", "black", "o"),
    }
    for ax, name in zip(axes, names, strict=True):
        mine = [entry for entry in entries if entry["name"] == name]
        n = [entry["n"] for entry in mine]
        for way, (label, colour, marker) in ways.items():
            seconds = [entry[way] for entry in mine]
            ax.loglog(n, seconds, color=colour, marker=marker, markersize=4, label=label)
            last = f"{seconds[-1]:,.{0 if seconds[-1] > 10 else 2}f} s"
            ax.annotate(last, (n[-1], seconds[-1]), (5, -3), textcoords="offset points", fontsize=8)
        kernel = [entry["kernel_seconds"] for entry in mine]
        ax.loglog(n, kernel, color="0.6", linestyle=":", label="kernel matrix, not included")
        title = f"Thrombin, {int(name.split('_')[1]):,} features"
        ax.set(title=title, xlabel="compounds", xlim=(n[0] * 0.9, n[-1] * 2), ylim=(1e-4, 2e4))
        ax.set_xticks(n[:4] + n[-1:], [str(each) for each in n[:4] + n[-1:]])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("seconds for leave-one-out")
    axes[0].legend(frameon=False, fontsize=8)
    fig.savefig(path, dpi=150)


# -- table 1 -----------------------------------------------------------------------------------------------------------


def tune(X, y):
    """(gamma, alpha) of the least error in stratified five-fold cross-validation; the smoother one of equals."""
    Y = np.where(y[:, None] == 1, 1.0, -1.0)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    errors = np.zeros((len(GAMMAS), len(ALPHAS)), int)
    for i, gamma in enumerate(GAMMAS):
        K = RBF(gamma).gram(X)
        for j, alpha in enumerate(ALPHAS):
            for train, test in folds:
                solution = MinimumNorm(K[np.ix_(train, train)], alpha).solve(Y[train])
                fits = solution[0] + K[np.ix_(test, train)] @ solution[1:]
                errors[i, j] += np.count_nonzero((fits > 0) != (Y[test] > 0))
    i, j = min(np.argwhere(errors == errors.min()), key=lambda place: (place[0], -place[1]))
    return GAMMAS[i], ALPHAS[j]


def table1(folder, name, n_splits):
    data = load(folder, f"ida/{name}")
    X, y = data["X"].astype(float), data["y"]
    splits = list(partitions(data, n_splits))
    # As is usual for these sets: tuned on the first five partitions, the medians are used on all.
    gamma, alpha = np.median([tune(X[train], y[train]) for train, _ in splits[:5]], axis=0)
    errors, differences = {"all": [], "adaptive": []}, []
    for train, test in splits:
        whole = AdaptiveKDA(gamma=gamma, alpha=alpha).fit(X[train], y[train])
        start = 3 * len(train) // 4
        grown = AdaptiveKDA(gamma=gamma, alpha=alpha).fit(X[train[:start]], y[train[:start]])
        for i in train[start:]:
            grown.partial_fit(X[[i]], y[[i]])
        for way, model in (("all", whole), ("adaptive", grown)):
            errors[way].append(100 * np.mean(model.predict(X[test]) != y[test]))
        expected = whole.decision_function(X[test])
        differences.append(np.abs(grown.decision_function(X[test]) - expected).max() / np.abs(expected).max())
    show = {way: f"{np.mean(values):.1f} +- {np.std(values, ddof=1):.1f}" for way, values in errors.items()}
    return {
        "set": name,
        "gamma": gamma,
        "alpha": alpha,
        "partitions": n_splits,
        "of them original": min(n_splits, len(data["train"])),
        "paper": "{} +- {}".format(*PUBLISHED[name]),
        "KDA": show["all"],
        "75 % KDA + 25 % adaptive": show["adaptive"],
        "equal errors": errors["all"] == errors["adaptive"],
        "largest difference of decisions": float(np.max(differences)),
    }


@threadpool_limits.wrap(limits=1)
def main():
    options = parser(__doc__)
    everything = ("loo", "updates", "thrombin", "table1")
    options.add_argument("--data", type=Path)
    options.add_argument("--only", nargs="+", choices=everything, default=None)
    options.add_argument("--figure", type=Path, metavar="PATH", help="draw the times of Thrombin there")
    error = options.error
    options = options.parse_args()
    only = options.only or (everything if options.data else everything[:2])
    if options.data is None and not set(only) <= set(everything[:2]):
        error("thrombin and table1 need --data DIR")
    if options.figure and "thrombin" not in only:
        error("--figure draws the times of Thrombin: add thrombin to --only, and --data DIR")
    results = {}
    entries = [loo(options.fast)] if "loo" in only else []
    entries += list(updates(options.fast)) if "updates" in only else []
    if entries:
        markdown([summary(entry) for entry in entries])
        results["entries"] = entries
    if "thrombin" in only:
        results["thrombin"] = list(thrombin(options.data, options.fast))
        markdown(results["thrombin"])
        if options.figure:
            draw(results["thrombin"], options.figure)
    if "table1" in only:
        n_splits = 2 if options.fast else 100
        results["table1"] = [table1(options.data, name, n_splits) for name in PUBLISHED]
        markdown(results["table1"])
    report(options, **results)


if __name__ == "__main__":
    main()
