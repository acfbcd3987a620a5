"""What permutation tests cost: beside one matrix product, refits, the simulations of Treder (2019), and MNE.

Every entry holds its seconds, the yardstick's seconds, their ratio, its limit and whether it is kept. Random data.

    main     n = 1000, 100 features, 5 classes, 10 folds, 1000 permutations, for one and for two threads
    curves   the simulations of Treder (2019, section 2.5), on one thread; --figure PATH draws them (needs matplotlib)
    eeg      64 channels, 200 times, 300 trials, 1000 permutations, beside MNE's SlidingEstimator (where installed)

Refits are measured on some of the folds, permutations and times, and scaled; each yardstick says on how many.

    python benchmarks/permutation.py [--fast] [--only main curves eeg] [--threads 1 2] [--figure PATH] [--json FILE]
"""

from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, svd
from scipy.linalg.blas import dgemm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from common import at_least, at_most, best_time, best_times, markdown, parser, peak_arrays, report, summary, timed
from foldless import LSSVC, KernelFisherDiscriminant
from foldless.kernels import RBF
from foldless.model_selection import cross_val_predict, permutation_test_score

THREADS = (1, 2)
ALPHA, GAMMA = 1.0, 0.01
FOLDS = 10
CLAIMS = {"curves_cross_validation": 1000, "curves_permutations": 10000}  # "up to", Treder (2019, section 3)


def labelings(y, count):
    """The labels and ``count`` permutations of them, as random_state=0 draws them."""
    random_state = np.random.RandomState(0)  # scikit-learn's generator
    return [y] + [y[random_state.permutation(len(y))] for _ in range(count)]


def on_better_threads(function, repeats):
    """(seconds, number of threads) of a peer where it is quickest."""
    times = {}
    for threads in THREADS:
        with threadpool_limits(threads):
            times[threads] = best_time(function, repeats)
    best = min(times, key=times.get)
    return times[best], best


# -- refits: each predicts the rows ``test`` of codes 0, 1, ... --------------------------------------------------------


def nearest(z, centroids):
    """Number of the nearest centroid of each row."""
    return np.square(z[:, None] - centroids).sum(-1).argmin(1)


def indicator(codes):
    return np.eye(codes.max() + 1)[codes]


def lean(K, codes, train, test):
    """Optimal scoring from one Cholesky factorisation of the training part: no eigenproblem larger than the classes."""
    Y = indicator(codes[train])
    M = K[np.ix_(train, train)]
    M.flat[:: len(M) + 1] += ALPHA
    solved = cho_solve(cho_factor(M, overwrite_a=True, check_finite=False), np.column_stack([Y, np.ones(len(Y))]))
    one = solved[:, -1:]
    B = one.T @ Y / one.sum()
    A = solved[:, :-1] - one @ B
    fits = K[np.ix_(test, train)] @ A + B
    root = np.sqrt(Y.sum(0))
    rest, V = eigh(ALPHA * (Y / root).T @ (A / root))  # 1 - a2; the first is the constant's, 0
    rest, V = rest[1:], V[:, 1:] / root[:, None] / np.sqrt(rest[1:] * (1 - rest[1:]))
    return nearest(fits @ V, V * (1 - rest))


def textbook(K, codes, train, test):
    """The dual eigenproblem of Mika et al. (1999): between- and within-class scatter, n_train x n_train."""
    Y = indicator(codes[train])
    Kt = K[np.ix_(train, train)]
    means = Kt @ (Y / Y.sum(0))  # (n_train, c)
    between = (means - Kt.mean(1, keepdims=True)) * np.sqrt(Y.sum(0))
    within = Kt @ Kt - (means * Y.sum(0)) @ means.T
    n, c = Y.shape
    _, W = eigh(between @ between.T, within + ALPHA * Kt, subset_by_index=(n - c + 1, n - 1))
    return nearest(K[np.ix_(test, train)] @ W, means.T @ W)


def in_features(X, codes, train, test, alpha):
    """Fisher discriminants of the rows: scatter matrices of features x features, as in Treder's simulations.

    His scripts compute all eigenvectors; only those of the c - 1 largest eigenvalues are asked for here.
    """
    Y, Xt = indicator(codes[train]), X[train]
    means = (Y / Y.sum(0)).T @ Xt
    between = (means - Xt.mean(0)) * np.sqrt(Y.sum(0))[:, None]
    within = Xt - means[codes[train]]
    d, c = X.shape[1], Y.shape[1]
    S = within.T @ within
    S.flat[:: d + 1] += alpha
    _, W = eigh(between.T @ between, S, subset_by_index=(d - c + 1, d - 1))
    return nearest(X[test] @ W, means @ W)


def in_kernel(X, codes, train, test, alpha):
    """The same with a linear kernel: the eigendecomposition of its centred n_train x n_train matrix (section 2.4)."""
    Y = indicator(codes[train])
    K, new = X[train] @ X[train].T, X[test] @ X[train].T
    mean = K.mean(0)
    new -= mean
    new -= new.mean(1, keepdims=True)
    K -= mean + mean[:, None] - mean.mean()
    s, V = eigh(K)
    s, V = s[s > 1e-10 * s[-1]], V[:, s > 1e-10 * s[-1]]
    Z = V * np.sqrt(s)  # principal components; their total scatter is diag(s)
    U, a, _ = svd((Z / np.sqrt(s + alpha)).T @ (Y / np.sqrt(Y.sum(0))), full_matrices=False)
    U, a = U[:, : Y.shape[1] - 1], a[: Y.shape[1] - 1]
    W = U / np.sqrt(s + alpha)[:, None] / np.sqrt(1 - a**2)
    return nearest(new @ (V / np.sqrt(s)) @ W, (Y / Y.sum(0)).T @ Z @ W)


# -- main --------------------------------------------------------------------------------------------------------------


def sample(n, count):
    """n rows of 100 features in 5 classes, folds, and the keyword arguments of a test with ``count`` permutations."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % 5)
    X = rng.standard_normal((n, 100)) + 0.2 * rng.standard_normal((5, 100))[y]
    cv = list(StratifiedKFold(FOLDS).split(X, y))
    return X, y, {"cv": cv, "n_permutations": count, "random_state": 0, "scoring": "accuracy"}


def in_products(estimator, n, repeats):
    """The whole call, kernel matrix and all, in products P Y of all labelings."""
    X, y, options = sample(n, 1000 if repeats else 20)
    rng = np.random.default_rng(1)
    P, Y = rng.standard_normal((n, n)), rng.standard_normal((n, 5 * options["n_permutations"]))
    P_fortran, Y_fortran = np.asfortranarray(P), np.asfortranarray(Y)

    def ours():
        return permutation_test_score(estimator, X, y, **options)

    times = best_times(
        repeats,
        seconds=ours,
        numpy_product_seconds=lambda: P @ Y,
        scipy_product_seconds=lambda: dgemm(1.0, P_fortran, Y_fortran),
        kernel_seconds=lambda: RBF(GAMMA).gram(X),
    )
    unit = min(times["numpy_product_seconds"], times["scipy_product_seconds"])
    result = ours()
    return {
        **times,
        "yardstick_seconds": unit,
        "yardstick": f"P Y, {n} x {n} by {n} x {Y.shape[1]}, the quicker of NumPy's and SciPy's; ratio = seconds / it",
        "ratio": at_most(8, times["seconds"] / unit),
        "permutations": options["n_permutations"],
        "score": result.score,
        "pvalue": result.pvalue,
        "peak_arrays": at_most(None, peak_arrays(ours, n)),
    }


def against_refits(refit, what, whole, limit, n, repeats):
    """The whole call against refits of ``whole`` labelings, on the better number of threads for them."""
    X, y, options = sample(n, 1000 if repeats else 20)
    estimator, count = KernelFisherDiscriminant(gamma=GAMMA, alpha=ALPHA), options["n_permutations"]
    seconds = best_time(lambda: permutation_test_score(estimator, X, y, **options), repeats)
    K, some, found = RBF(GAMMA).gram(X), labelings(y, whole)[1:], []

    def refits():
        found[:] = [
            np.mean([np.mean(refit(K, codes, *split) == codes[split[1]]) for split in options["cv"]]) for codes in some
        ]

    peer, threads = on_better_threads(refits, min(repeats, 1))
    ours = permutation_test_score(estimator, X, y, **options).permutation_scores[:whole]
    total = peer * (count + 1) / whole
    return {
        "seconds": seconds,
        "yardstick_seconds": total,
        "yardstick": f"{what}, kernel matrix given, {threads} threads; scaled from {whole} of {count + 1} labelings"
        f" ({whole * FOLDS} refits); ratio = yardstick_seconds / seconds",
        "ratio": at_least(limit, total / seconds),
        "largest_difference_of_scores": np.abs(np.array(found) - ours).max(),
    }


def against_rlscore(n, repeats):
    """RLScore with permutations as label columns, one against all, no intercept; where it is installed."""
    try:
        from rlscore.learner import RLS
    except ImportError:
        return {"yardstick": "RLScore: not installed, and no numbers of other machines are taken in its place"}
    X, y, options = sample(n, 1000 if repeats else 20)
    Y = np.column_stack([2 * indicator(codes) - 1 for codes in labelings(y, options["n_permutations"])])

    def peer():
        learner = RLS(X, Y, regparam=ALPHA, kernel="GaussianKernel", gamma=GAMMA)
        return [learner.training_parts(test).reshape(len(test), -1, 5).argmax(2) for _, test in options["cv"]]

    estimator = LSSVC(gamma=GAMMA, alpha=ALPHA)
    times = best_times(
        repeats, seconds=lambda: permutation_test_score(estimator, X, y, **options), yardstick_seconds=peer
    )
    return {
        **times,
        "yardstick": "RLScore, labelings as columns; ratio = yardstick_seconds / seconds",
        "ratio": at_least(1, times["yardstick_seconds"] / times["seconds"]),
    }


# -- curves ------------------------------------------------------------------------------------------------------------


def simulated(n, d, classes, seed):
    """Treder (2019, section 2.5): normal classes, centroids on the unit sphere, covariance from a Wishart."""
    rng = np.random.default_rng(seed)
    centroids = rng.standard_normal((classes, d))
    centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    y = rng.permutation(np.arange(n) % classes)
    X = centroids[y] + rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / np.sqrt(d)
    splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y))
    return X, y, splits, 1e-3 * np.square(X).sum() / d  # the penalty of his scripts


STANDARDS = {"features": in_features, "kernel": in_kernel}


def point(n, d, classes, permutations, repeats):
    """One point of the curves: data drawn anew in every repeat; one fold of the true labels is refitted and scaled."""
    ours, theirs, agreement = [], {name: [] for name in STANDARDS}, []
    for seed in range(repeats + 1):
        X, y, splits, alpha = simulated(n, d, classes, seed)
        estimator = KernelFisherDiscriminant(kernel="linear", alpha=alpha)
        train, test = splits[0]
        if permutations:
            call = partial(permutation_test_score, estimator, X, y, cv=splits, n_permutations=permutations)
        else:
            call = partial(cross_val_predict, estimator, X, y, cv=splits)
        ours.append(timed(call)[1])
        expected = cross_val_predict(estimator, X, y, cv=splits)[test]
        for name, refit in STANDARDS.items():
            found, seconds = timed(partial(refit, X, y, train, test, alpha))
            theirs[name].append(seconds * FOLDS * (permutations + 1))
            agreement.append(np.mean(found == expected))
    first = int(repeats > 0)  # the first round is a warm-up
    gains = {name: np.array(seconds[first:]) / ours[first:] for name, seconds in theirs.items()}
    return {
        "n": n,
        "features": d,
        "classes": classes,
        "permutations": permutations,
        "seconds": np.median(ours[first:]),
        **{f"{name}_seconds": np.median(seconds[first:]) for name, seconds in theirs.items()},
        **{f"{name}_gain": np.median(gain) for name, gain in gains.items()},
        **{f"{name}_quartiles": np.quantile(gain, (0.25, 0.75)).tolist() for name, gain in gains.items()},
        "least_agreement": min(agreement),
    }


def curves(settings, rounds, _, repeats):
    """Gains over all settings; 'ratio' is the largest one, beside the largest that the paper claims."""
    rows = [point(*setting, repeats=rounds if repeats else 1) for setting in settings(fast=not repeats)]
    markdown([{key: value for key, value in row.items() if "quartiles" not in key} for row in rows])
    best = max(rows, key=lambda row: row["features_gain"])
    return {
        "n": best["n"],
        "seconds": best["seconds"],
        "yardstick_seconds": best["features_seconds"],
        "yardstick": "the classifier trained anew on every fold, scaled from one fold of each data set: 'features'"
        " solves the eigenproblem of scatter matrices (features x features), 'kernel' decomposes the centred kernel"
        f" matrix (n_train x n_train); ratio = largest features_gain, a median over {rounds} data sets",
        "ratio": {"value": best["features_gain"]},
        "points": rows,
    }


def cross_validation_settings(fast):
    features = (10, 100) if fast else np.logspace(1, 3, 9).round().astype(int)
    return [(n, int(d), c, 0) for n, c, d in product((100, 200) if fast else (100, 1000), (5, 10), features)]


def permutation_settings(fast):
    sizes, features = ((100,), (50, 100)) if fast else ((100, 1000), (100, 1000))
    return [(n, d, 5, m) for n, d, m in product(sizes, features, (10, 100))]


def figure(entries, path):
    """Gains of the curves beside the claims of the paper."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    entries = [entry for entry in entries if entry["name"] in CLAIMS]
    across = {"curves_cross_validation": ("features", "classes"), "curves_permutations": ("permutations", "features")}
    titles = {"features": "scatter matrices, features x features", "kernel": "kernel matrix, n x n"}
    fig, axes = plt.subplots(len(titles), len(entries), figsize=(9, 7), squeeze=False, layout="constrained")
    for column, entry in enumerate(entries):
        x, style = across[entry["name"]]
        rows, claim = entry["points"], CLAIMS[entry["name"]]
        levels = [sorted({row[key] for row in rows}) for key in ("n", style)]
        for axis, (standard, title) in zip(axes[:, column], titles.items(), strict=True):
            for (i, n), (j, level) in product(enumerate(levels[0]), enumerate(levels[1])):
                line = [row for row in rows if row["n"] == n and row[style] == level]
                low, high = np.transpose([row[f"{standard}_quartiles"] for row in line])
                xs, label = [row[x] for row in line], f"n = {n}, {level} {style}"
                axis.plot(xs, [row[f"{standard}_gain"] for row in line], f"C{i}" + ("-o", "--s")[j], ms=4, label=label)
                axis.fill_between(xs, low, high, color=f"C{i}", alpha=0.15, lw=0)
            axis.axhline(claim, color="0.3", ls=":", label=f"up to {claim:,}x (Treder 2019)")
            axis.set(xscale="log", yscale="log", xlabel=x, ylabel="times faster", title=f"refits: {title}")
            axis.grid(alpha=0.3)
        axes[0, column].legend(fontsize=8)
    fig.savefig(path, dpi=150)


# -- eeg ---------------------------------------------------------------------------------------------------------------


def trials(fast):
    """Trials x channels x times, two classes that differ in the middle of the time course."""
    n, channels, times = (60, 8, 12) if fast else (300, 64, 200)
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(n) % 2)
    X = rng.standard_normal((n, channels, times))
    pattern = rng.standard_normal(channels) / np.sqrt(channels)
    X += np.exp(-(np.linspace(-3, 3, times) ** 2)) * pattern[:, None] * (2 * y[:, None, None] - 1)
    return X, y


PEERS = {
    "lda": LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
    "ridge": RidgeClassifier(alpha=ALPHA),  # the same model as LSSVC(kernel="linear")
}


def eeg(estimator, same, _, repeats):
    """Scores and nulls of all time points in one call; ``same`` names the peer that must give the same scores."""
    X, y = trials(fast=not repeats)
    count = 1000 if repeats else 20
    cv = list(StratifiedKFold(5).split(X, y))

    def ours():
        return permutation_test_score(estimator, X, y, cv=cv, n_permutations=count, random_state=0, scoring="accuracy")

    seconds = best_time(ours, min(repeats, 2))
    result = ours()
    entry = {
        "n": len(X),
        "shape": X.shape,
        "permutations": count,
        "seconds": seconds,
        "ratio": at_most(8, seconds),
        "yardstick": "the clock; ratio = seconds",
        "best_score": result.score.max(),
        "times_with_familywise_p_at_most_0.05": int(np.sum(result.pvalue_fwe <= 0.05)),
    }
    try:
        from mne.decoding import SlidingEstimator, cross_val_multiscore
    except ImportError:
        return {**entry, "peers": "MNE: not installed"}
    few, some = 10 if repeats else 4, labelings(y, 2)[1:]
    for name, model in PEERS.items():
        sliding = SlidingEstimator(model, scoring="accuracy", verbose="error")
        found = []

        def peer(sliding=sliding, found=found):
            found[:] = [cross_val_multiscore(sliding, X[:, :, :few], codes, cv=cv).mean(0) for codes in some]

        peer_seconds, threads = on_better_threads(peer, min(repeats, 1))
        total = peer_seconds * (count + 1) / len(some) * X.shape[2] / few
        entry[f"mne_{name}"] = {
            "peer": f"SlidingEstimator({model}) and a loop of permutations, {threads} threads, scaled from {few} of"
            f" {X.shape[2]} times and {len(some)} of {count + 1} labelings",
            "seconds": total,
            "ratio": total / seconds,
        }
        if name == same:
            difference = np.abs(np.array(found) - result.permutation_scores[: len(some), :few]).max()
            entry[f"mne_{name}"]["largest_difference_of_scores"] = difference
    return entry


FISHER, LSSVM = (partial(kind, alpha=ALPHA) for kind in (KernelFisherDiscriminant, LSSVC))
SUITE = {
    "main_fisher_rbf": (1000, partial(in_products, FISHER(gamma=GAMMA))),
    "main_fisher_linear": (1000, partial(in_products, FISHER(kernel="linear"))),
    "main_lssvc_rbf": (1000, partial(in_products, LSSVM(gamma=GAMMA))),
    "main_against_lean_refits": (1000, partial(against_refits, lean, "one Cholesky factorisation a refit", 2, 150)),
    "main_against_textbook": (1000, partial(against_refits, textbook, "the dual eigenproblem", 1, 1000)),
    "main_against_rlscore": (1000, against_rlscore),
    "curves_cross_validation": (1000, partial(curves, cross_validation_settings, 20)),
    "curves_permutations": (1000, partial(curves, permutation_settings, 10)),
    "eeg_lssvc": (300, partial(eeg, LSSVM(kernel="linear"), "ridge")),
    "eeg_fisher": (300, partial(eeg, FISHER(kernel="linear"), None)),
}


def main():
    options = parser(__doc__)
    sections = ("main", "curves", "eeg")
    options.add_argument("--only", nargs="+", choices=sections, default=list(sections))
    options.add_argument("--threads", nargs="+", type=int, default=THREADS)
    options.add_argument("--figure", type=Path, metavar="PATH", help="draw the curves there")
    options, error = options.parse_args(), options.error
    if options.figure and "curves" not in options.only:
        error("--figure draws the curves: add curves to --only")
    shrink, repeats = (20, 0) if options.fast else (1, 5)
    entries = []
    for threads in options.threads:
        with threadpool_limits(threads):
            for name, (n, function) in SUITE.items():
                section = name.split("_")[0]
                if section not in options.only or (section == "curves" and threads != options.threads[0]):
                    continue
                entries.append({"name": name, "n": n // shrink, "threads": threads, **function(n // shrink, repeats)})
                markdown([summary(entries[-1])])
    markdown([summary(entry) for entry in entries])
    if options.figure:
        figure(entries, options.figure)
    report(options, entries=entries)


if __name__ == "__main__":
    main()
