"""The main job in half a minute: fit, tune, and judge a kernel classifier, and compare with scikit-learn's refit loop.

``make demo`` runs it, and then makes a report. The data are scikit-learn's Wisconsin breast cancer set (569 rows,
30 features).
"""

import time
import warnings

import numpy as np
from sklearn import model_selection as refits
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import LeaveOneOut, StratifiedKFold, StratifiedShuffleSplit
from threadpoolctl import threadpool_limits

from foldless import LSSVC, FoldlessSearchCV
from foldless import model_selection as foldless
from foldless.model_selection import Optimizer

ALPHAS = np.logspace(-3, 2, 11)
GAMMAS = np.logspace(-4, -0.5, 8)


def clock(function):
    """Result and seconds."""
    start = time.perf_counter()
    return function(), time.perf_counter() - start


def show(rows, header):
    """A plain table with aligned columns."""
    rows = [header, *rows]
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(header))]
    for number, row in enumerate(rows):
        print("  " + "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)))
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))


def tune(X, y):
    """Three ways to alpha and gamma; returns those of the grid."""
    grid = {"alpha": ALPHAS, "gamma": GAMMAS}
    search, seconds = clock(lambda: FoldlessSearchCV(LSSVC(), grid).fit(X, y))
    n_settings = len(search.cv_results_["params"])
    print(f"1. Tuning: exact leave-one-out of {n_settings} settings in {seconds:.2f} s")
    print(f"   (that is what {n_settings * len(X):,} refits would have given)\n")
    rows = [
        (
            "grid",
            n_settings,
            f"{search.best_criterion_:.4f}",
            f"{search.best_estimator_.loo_score_:.4f}",
            f"{seconds:.2f} s",
        )
    ]
    for name, options in (
        ("gradient", {"method": "gradient"}),
        (
            "gradient, a scale for each feature",
            {"method": Optimizer("gradient", max_iter=10, feature_scaling=True)},
        ),
    ):
        other, seconds = clock(lambda options=options: FoldlessSearchCV(LSSVC(), **options).fit(X, y))
        accuracy = f"{other.best_estimator_.loo_score_:.4f}"
        rows.append((name, other.n_iter_, f"{other.best_criterion_:.4f}", accuracy, f"{seconds:.2f} s"))
    show(rows, ("search", "settings", "LOO squared error", "LOO accuracy", "time"))
    alpha, gamma = search.best_params_["alpha"], search.best_params_["gamma"]
    print(f"\n   chosen by the grid: alpha={alpha:.3g}, gamma={gamma:.3g}\n")
    return alpha, gamma


def honest(X, y):
    """The tuned model judged on rows that had no say in the tuning."""
    print("3. What the tuned model is worth: nested cross-validation of the whole search\n")
    search = FoldlessSearchCV(LSSVC(), {"alpha": ALPHAS[::2], "gamma": GAMMAS[::2]}, criterion="error")
    cv = StratifiedShuffleSplit(10, test_size=0.1, random_state=0)
    result, seconds = clock(lambda: foldless.nested_cross_validate(search, X, y, cv=cv))
    rows = [
        ("accuracy the search believed in (inner leave-one-out)", f"{result.inner_score.mean():.4f}"),
        ("accuracy on the held-out rows", f"{result.test_score.mean():.4f}"),
    ]
    show(rows, (f"10 random partitions, 24 settings each, {seconds:.1f} s", "value"))
    print("   (On other partitions the second can be the larger by chance; on average it is not.)")
    print(f"\n   path: {result.path}\n")


def chance(X, y, model):
    """Thousands of permutations, and the first of them as scikit-learn computes them."""
    print("5. Could it be chance? Permutation tests, all permutations as columns of one product\n")
    few, many = 20, 2000
    test, seconds = clock(lambda: foldless.permutation_test_score(model, X, y, cv=10, n_permutations=many))
    search = FoldlessSearchCV(LSSVC(), {"alpha": ALPHAS[::2], "gamma": GAMMAS[::2]})
    whole, longer = clock(lambda: foldless.permutation_test_score(search, X, y, cv=10, n_permutations=100))
    options = {"cv": 10, "n_permutations": few}
    redrawn, fast = clock(lambda: foldless.permutation_test_score(model, X, y, null="resplit", **options))
    theirs, slow = clock(lambda: refits.permutation_test_score(model, X, y, **options))
    equal = np.array_equal(redrawn.permutation_scores, theirs[1])
    rows = [
        (f"{many:,} permutations", f"{test.score:.4f}", f"{test.pvalue:.4f}", f"{seconds:.2f} s"),
        (
            "100, each with its own tuning of 24 settings",
            f"{whole.score:.4f}",
            f"{whole.pvalue:.4f}",
            f"{longer:.2f} s",
        ),
        (f"{few}, folds drawn anew", f"{redrawn.score:.4f}", f"{redrawn.pvalue:.4f}", f"{fast:.2f} s"),
        (f"{few}, scikit-learn's refits", f"{theirs[0]:.4f}", f"{theirs[2]:.4f}", f"{slow:.2f} s"),
    ]
    show(rows, ("10-fold accuracy", "score", "p", "time"))
    print(f"\n   the {few} permuted scores equal scikit-learn's: {equal}\n")


def come_and_go(X, y, model):
    """The last hundred rows learnt one by one, the first hundred forgotten, beside refits."""
    print("6. Rows come and go: learn 100 rows one by one, forget the 100 oldest, leave-one-out after each\n")
    start, n = 100, len(X) - 100
    model = clone(model).fit(X[:n], y[:n])

    def updated():
        for i in range(n, len(X)):
            model.partial_fit(X[i : i + 1], y[i : i + 1]).loo_score_  # noqa: B018
        for _ in range(start):
            model.forget([0]).loo_score_  # noqa: B018
        return model

    def refitted():
        rows = [slice(0, i + 1) for i in range(n, len(X))] + [slice(i + 1, None) for i in range(start)]
        return [clone(model).fit(X[each], y[each]) for each in rows][-1]

    ours, fast = clock(updated)
    theirs, slow = clock(refitted)
    gap = np.abs(ours.decision_function(X) - theirs.decision_function(X)).max()
    rows = [
        ("partial_fit and forget", f"{ours.loo_score_:.4f}", f"{fast:.2f} s"),
        ("200 refits, without their leave-one-out", f"{theirs.loo_score_:.4f}", f"{slow:.2f} s"),
        ("largest difference of their decisions", f"{gap:.0e}", f"{slow / fast:.1f} times faster"),
    ]
    show(rows, (f"{n} to {len(X)} rows and back", "LOO accuracy", "time"))
    print("\n   " + str(ours.unlearning_certificate()).replace("\n", "\n   ") + "\n")


def main():
    """Print the six tables."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    print(f"\nfoldless on the breast cancer data: {len(X)} rows, {X.shape[1]} features, 2 classes\n")
    alpha, gamma = tune(X, y)

    model = LSSVC(alpha=alpha, gamma=gamma)
    print("2. The same numbers as scikit-learn's refit loop on the same estimator\n")
    rows = []
    for name, cv in (
        ("leave-one-out", LeaveOneOut()),
        ("10-fold", StratifiedKFold(10, shuffle=True, random_state=0)),
    ):
        options = {"cv": cv, "method": "decision_function"}
        ours, fast = clock(lambda options=options: foldless.cross_val_predict(model, X, y, **options))
        theirs, slow = clock(lambda options=options: refits.cross_val_predict(model, X, y, **options))
        accuracy, expected = np.mean((ours > 0) == y), np.mean((theirs > 0) == y)
        rows.append((name, "foldless, one fit", f"{accuracy:.4f}", f"{fast:.3f} s"))
        rows.append(("", f"scikit-learn, {cv.get_n_splits(X)} refits", f"{expected:.4f}", f"{slow:.3f} s"))
        difference = np.abs(ours - theirs).max() / np.abs(theirs).max()
        rows.append(("", "largest relative difference", f"{difference:.0e}", f"{slow / fast:.1f} times faster"))
    show(rows, ("cross-validation", "by", "accuracy", "time"))

    print()
    honest(X, y)

    print("4. Probabilities and the ranking, from the same single fit\n")
    calibrated = LSSVC(alpha=alpha, gamma=gamma, calibration="sigmoid")
    loss = -foldless.cross_val_score(calibrated, X, y, cv=10, scoring="neg_log_loss").mean()
    pairs, seconds = clock(lambda: foldless.leave_pair_out_auc(model, X, y))
    n_pairs = np.count_nonzero(y) * np.count_nonzero(1 - y)
    rows = [
        ("log-loss, 10-fold, calibrated inside each training part", f"{loss:.4f}"),
        (f"leave-pair-out AUC ({n_pairs:,} pairs in {seconds:.2f} s)", f"{pairs:.4f}"),
    ]
    show(rows, ("estimate", "value"))
    print(f"\n   path: {foldless.explain(model, X, y, cv=10)}\n")
    chance(X, y, model)
    come_and_go(X, y, model)
    print("docs/tuning.md says which search and which criterion to take when, docs/permutation.md what is tested,")
    print("docs/online.md how rows come and go.\n")


if __name__ == "__main__":
    warnings.simplefilter("error")
    with threadpool_limits(1):  # the better setting for matrices of this size, here and for the refits
        main()
