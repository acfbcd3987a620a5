"""Should class weights of the fit weigh the criterion of a search as well? LSSVC tuned on classes of unequal size.

Alpha and gamma are chosen from the default grid of FoldlessSearchCV by exact leave-one-out squared residuals of at most
400 training rows, which count equally, by the balanced class weights, or balanced one against all (half of the weight
for the positive rows of each column). Models are fitted with balanced class weights, or with none. Balanced accuracy
and the area under the ROC curve (one against the rest) of at most 2000 other rows, in per cent. In sets that are named
with a share, classes are thinned out until the rarer one has that share.

``--data DIR`` is a folder with the files that ``sets.py`` names; without it, made sets are used alone.

    python benchmarks/class_weights.py --data DIR [--splits 10] [--fast]
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from threadpoolctl import threadpool_limits

from common import markdown, parser, report, standardised
from foldless import LSSVC
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import loo_path
from foldless._engine.readout.codings import chosen_codes, plus_minus
from foldless._engine.tuning.criteria import press, weights
from foldless._engine.tuning.selection import best_place
from foldless._engine.tuning.space import default_grid
from foldless.kernels import RBF
from sets import rows_of

MOST_TRAIN, MOST_TEST, FEWEST = 400, 2000, 5
REAL = {  # share of the rarer class; None: as it is
    "wcci2006/hiva": None,
    "wcci2006/sylva": None,
    "wcci2006/ada": None,
    "wcci2006/gina": 0.06,
    "ida/thyroid": None,
    "ida/flare_solar": 0.06,
    "ida/german": 0.1,
    "ida/diabetis": 0.1,
    "ida/breast_cancer": None,
    "ida/banana": 0.06,
    "ida/image": 0.06,
    "ida/ringnorm": 0.06,
    "ida/waveform": 0.06,
    "ida/titanic": 0.1,
    "uci/yeast_brown5": None,
    "uci/glass": None,
    "large/kddcup99_attack": None,
    "large/kddcup99_service": None,
}
MADE = {
    "made/linear 6 %": {"weights": [0.94], "n_features": 20, "n_informative": 5, "n_clusters_per_class": 1},
    "made/clusters 6 %": {"weights": [0.94], "n_features": 10, "n_informative": 6, "n_clusters_per_class": 2},
    "made/noisy 6 %": {"weights": [0.94], "n_features": 20, "n_informative": 3, "class_sep": 0.5},
    "made/3 classes": {"weights": [0.8, 0.15, 0.05], "n_features": 10, "n_informative": 5, "n_classes": 3},
    "made/5 classes": {"weights": [0.7, 0.1, 0.1, 0.06, 0.04], "n_features": 10, "n_informative": 6, "n_classes": 5},
}
WAYS = [(fit, how) for fit in ("none", "balanced") for how in ("none", "classes", "halves")]


def data_of(options, name):
    if name in MADE:
        return make_classification(4000, random_state=0, **MADE[name])
    X, y, _ = rows_of(options.data, name)
    return X, y


def thinned(codes, share, rng):
    """Rows in random order, those of the rarer class thinned out to this share."""
    rows = rng.permutation(len(codes))
    if share is None:
        return rows
    rare = np.argmin(np.bincount(codes))
    own, others = rows[codes[rows] == rare], rows[codes[rows] != rare]
    return rng.permutation(np.r_[others, own[: int(share / (1 - share) * len(others))]])


def halves(codes, rows, most_train, most_test):
    """(train, test) with the shares of the classes, of which each has some rows in both."""
    train = np.zeros(len(rows), bool)
    share = min(0.6, most_train / len(rows))
    for code in np.unique(codes[rows]):
        own = np.flatnonzero(codes[rows] == code)
        train[own[: max(FEWEST, round(share * len(own)))]] = True
    return rows[train], rows[~train][:most_test]


def scores(X, codes, X_test, test_codes):
    """(balanced accuracy, AUC) of every way, in per cent."""
    n_classes, everything = codes.max() + 1, np.arange(len(codes))
    T = plus_minus(codes, n_classes, float)
    by_class = len(codes) / (n_classes * np.bincount(codes))[codes]
    counted = {"none": np.ones(len(codes)), "classes": by_class}
    counted = {name: weights(None, T, each) for name, each in counted.items()}
    counted["halves"] = weights("balanced", T, np.ones(len(codes)))
    found = {}
    for fit in ("none", "balanced"):
        w = by_class if fit == "balanced" else None
        problem = Problem.of(RBF(1 / X.shape[1]), X, alpha=1.0, Q=np.ones((len(codes), 1)), sample_weight=w)
        grid = default_grid(problem)
        settings, losses = [], []
        for gamma in grid["gamma"]:
            own = problem.replace(kernel=RBF(gamma))
            path = own.path(everything)
            E = loo_path(own, everything, T, grid["alpha"], path)
            settings += [own.replace(alpha=a) for a in grid["alpha"]]
            losses += [[press((T - e).T, T.T, W.T)[0].sum() for W in counted.values()] for e in E]
        alphas = [own.alpha for own in settings]
        for how, column in zip(counted, np.transpose(losses), strict=True):
            own = settings[best_place(column, alphas)]
            model = LSSVC(alpha=own.alpha, gamma=own.kernel.gamma, class_weight=None if fit == "none" else fit)
            fits = model.fit(X, codes).decision_function(X_test).reshape(len(X_test), -1)
            decided = chosen_codes(fits[:, 0] if n_classes == 2 else fits)
            classes = [1] if n_classes == 2 else range(n_classes)
            shown = np.unique(test_codes)  # a class without test rows has no area
            aucs = [roc_auc_score(test_codes == c, f) for c, f in zip(classes, fits.T, strict=True) if c in shown]
            found[fit, how] = 100 * balanced_accuracy_score(test_codes, decided), 100 * np.mean(aucs)
    return np.array([found[way] for way in WAYS])


@threadpool_limits.wrap(limits=1)
def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--splits", type=int, default=10)
    options = options.parse_args()
    names = [*MADE, *(() if options.data is None else REAL)]
    if options.fast:
        names, options.splits = names[:1], 2
    lines, means = [], {"two": [], "several": []}
    for name in names:
        X, y = data_of(options, name)
        codes = np.unique(y, return_inverse=True)[1]
        kept = np.bincount(codes)[codes] >= 2 * FEWEST
        X, codes = X[kept], np.unique(codes[kept], return_inverse=True)[1]
        runs = []
        for k in range(options.splits):
            rng = np.random.default_rng(k)
            train, test = halves(codes, thinned(codes, REAL.get(name), rng), MOST_TRAIN, MOST_TEST)
            Z = standardised(X, train)
            runs.append(scores(Z[train], codes[train], Z[test], codes[test]))
        mean = np.mean(runs, 0)
        means["two" if codes.max() == 1 else "several"].append(mean)
        cells = {f"{fit}/{how}": f"{b:.1f} / {a:.1f}" for (fit, how), (b, a) in zip(WAYS, mean, strict=True)}
        lines.append({"set": name, **cells})
        markdown(lines[-1:])
    everything = {}
    for group, each in means.items():
        if each:
            each = np.array(each)
            base = each[:, [0, 0, 0, 3, 3, 3]]
            change = each - base
            se = change.std(0, ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.zeros(change.shape[1:])
            everything[group] = [
                {
                    "fit": fit,
                    "criterion": how,
                    "balanced accuracy": each[:, k, 0].mean(),
                    "difference": change[:, k, 0].mean(),
                    "se": se[k, 0],
                    "higher": int((change[:, k, 0] > 0.05).sum()),
                    "lower": int((change[:, k, 0] < -0.05).sum()),
                    "AUC": each[:, k, 1].mean(),
                    "AUC difference": change[:, k, 1].mean(),
                    "AUC se": se[k, 1],
                    "AUC higher": int((change[:, k, 1] > 0.05).sum()),
                    "AUC lower": int((change[:, k, 1] < -0.05).sum()),
                }
                for k, (fit, how) in enumerate(WAYS)
            ]
            markdown(everything[group])
    report(options, sets=lines, groups=everything)


if __name__ == "__main__":
    main()
