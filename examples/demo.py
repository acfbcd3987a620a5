"""The main job in a minute: fit, tune, and judge a kernel classifier, and compare with scikit-learn's refit loop.

Run it with ``make demo``. The data are scikit-learn's Wisconsin breast cancer set (569 rows, 30 features).
"""

import time
import warnings

import numpy as np
from sklearn import model_selection as refits
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import LeaveOneOut, StratifiedKFold
from threadpoolctl import threadpool_limits

from foldless import LSSVC
from foldless import model_selection as foldless

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
    """Exact leave-one-out accuracy of every (alpha, gamma); the best, and the smoothest of equals."""
    scores = {(a, g): LSSVC(alpha=a, gamma=g).fit(X, y).loo_score_ for a in ALPHAS for g in GAMMAS}
    best = max(scores, key=lambda pair: (scores[pair], pair[0]))
    return best, scores


def main():
    """Print the three tables."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    print(f"\nfoldless on the breast cancer data: {len(X)} rows, {X.shape[1]} features, 2 classes\n")

    ((alpha, gamma), scores), seconds = clock(lambda: tune(X, y))
    print(f"1. Tuning: exact leave-one-out accuracy of {len(scores)} settings in {seconds:.2f} s")
    print(f"   (that is what {len(scores) * len(X):,} refits would have given)\n")
    picks = [*sorted(scores, key=scores.get, reverse=True)[:4], min(scores, key=scores.get)]
    show([(f"{a:.3g}", f"{g:.3g}", f"{scores[a, g]:.4f}") for a, g in picks], ("alpha", "gamma", "LOO accuracy"))
    print(f"\n   chosen: alpha={alpha:.3g}, gamma={gamma:.3g}\n")

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
        rows.append(("", "largest relative difference", f"{difference:.0e}", f"{slow / fast:.1f} times"))
    show(rows, ("cross-validation", "by", "accuracy", "time"))

    print("\n3. Probabilities and the ranking, from the same single fit\n")
    calibrated = LSSVC(alpha=alpha, gamma=gamma, calibration="sigmoid")
    loss = -foldless.cross_val_score(calibrated, X, y, cv=10, scoring="neg_log_loss").mean()
    pairs, seconds = clock(lambda: foldless.leave_pair_out_auc(model, X, y))
    n_pairs = np.count_nonzero(y) * np.count_nonzero(1 - y)
    rows = [
        ("log-loss, 10-fold, calibrated inside each training part", f"{loss:.4f}"),
        (f"leave-pair-out AUC ({n_pairs:,} pairs in {seconds:.2f} s)", f"{pairs:.4f}"),
    ]
    show(rows, ("estimate", "value"))
    print(f"\n   path: {foldless.explain(model, X, y, cv=10)}")
    print("\nThe accuracy of the chosen setting was optimised in step 1, so it flatters; see docs/exactness.md.\n")


if __name__ == "__main__":
    warnings.simplefilter("error")
    with threadpool_limits(1):  # the better setting for matrices of this size, here and for the refits
        main()
