"""Which criterion should choose alpha and gamma? Test errors of LSSVC after each of them.

Features are standardised on the training part (at most 500 rows; two thirds of the rows, or the published partitions
and sizes), every setting of the default grid of FoldlessSearchCV is judged by its exact leave-one-out fits, and the
chosen one's errors are counted on the test part (at most 2000 rows). Fits of all settings are computed once and serve
all criteria; ``check`` in the result says whether the choices on one partition of three sets are those of
FoldlessSearchCV.

``--data DIR`` is a folder with the files that ``sets.py`` names; without it, sets that come with scikit-learn are used.
Errors and differences (to ``press``: negative is better) are in per cent. The standard error of a mean over sets is
that of its partitions, ``se_of_sets`` the one that takes the sets themselves as drawn.

    python benchmarks/criterion.py --data DIR [--splits 20] [--fast]
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from common import markdown, parser, report
from foldless import LSSVC, FoldlessSearchCV
from foldless._engine.heldout.problem import Problem
from foldless._engine.heldout.solution import Solution, loo_path
from foldless._engine.readout.codings import chosen_codes, plus_minus
from foldless._engine.tuning.criteria import CRITERIA
from foldless._engine.tuning.selection import best_place
from foldless._engine.tuning.space import default_grid
from foldless.kernels import RBF
from sets import IDA, LARGE, SKLEARN, UCI, WCCI, partitions, parts, rows_of

NAMES = ("press", "smooth_error", "hinge2", "hinge", "multiclass_error", "error")
MOST_TRAIN = 500
CHECKED = ("ida/heart", "sklearn/iris", "uci/glass")


@dataclass(frozen=True)
class Fits:
    """Fits of every setting, first axis: leave-one-out ones of the training rows, and those of the test rows."""

    settings: list  # dictionaries of alpha and gamma
    heldout: np.ndarray  # (s, n, m)
    test: np.ndarray  # (s, t, m)
    targets: np.ndarray  # (n, m), +-1 one against all
    codes: np.ndarray  # class numbers (n,)
    test_codes: np.ndarray  # (t,); -1 where the training part lacks the class

    @property
    def alphas(self):
        return np.array([each["alpha"] for each in self.settings])

    def losses(self, name):
        """Losses (s,) of a criterion."""
        if name == "multiclass_error":
            return np.array([np.mean(decided(each) != self.codes) for each in self.heldout])
        W = np.full(self.targets.shape, 1 / len(self.targets))
        return np.array([CRITERIA[name](each, self.targets, W)[0].sum() for each in self.heldout])

    def best(self, name):
        """Place of the chosen setting."""
        return best_place(self.losses(name), self.alphas)

    def error(self, fits):
        """Test error of fits (t, m), in per cent."""
        return 100 * float(np.mean(decided(fits) != self.test_codes))


def decided(fits):
    """Class numbers of fits (n, m)."""
    return chosen_codes(fits[:, 0] if fits.shape[1] == 1 else fits)


def all_fits(X, y, X_test, y_test):
    """The fits of the default grid: one eigendecomposition for each gamma."""
    classes, codes = np.unique(y, return_inverse=True)
    T, everything = plus_minus(codes, len(classes), float), np.arange(len(y))
    problem = Problem.of(RBF(1 / X.shape[1]), X, alpha=1.0, Q=np.ones((len(y), 1)))
    grid = default_grid(problem)
    heldout, test = [], []
    for gamma in grid["gamma"]:
        problem = problem.replace(kernel=RBF(gamma))
        path, K = problem.path(everything), problem.gram_new(X_test, everything)
        heldout.append(T - loo_path(problem, everything, T, grid["alpha"], path))
        models = (Solution.fit(problem.replace(alpha=a), everything, T, path.with_alpha(a)) for a in grid["alpha"])
        A, B = zip(*((each.A, each.B) for each in models), strict=True)
        fits = (K @ np.hstack(A)).reshape(len(K), len(A), -1).transpose(1, 0, 2)
        test.append(fits + np.array(B))
    place = np.searchsorted(classes, y_test).clip(max=len(classes) - 1)
    return Fits(
        settings=[{"alpha": alpha, "gamma": gamma} for alpha in grid["alpha"] for gamma in grid["gamma"]],
        heldout=np.stack(heldout, 1).reshape(-1, *T.shape),
        test=np.stack(test, 1).reshape(-1, len(y_test), T.shape[1]),
        targets=T,
        codes=codes,
        test_codes=np.where(classes[place] == y_test, place, -1),
    )


def agrees(fits, X, y):
    """Whether FoldlessSearchCV chooses the same settings, by every criterion."""
    searches = {name: FoldlessSearchCV(LSSVC(), method="grid", criterion=name).fit(X, y) for name in NAMES}
    return all(each.best_params_ == fits.settings[fits.best(name)] for name, each in searches.items())


def drawn_fits(options, name):
    """Fits of every partition of a set, with the training part."""
    X, y, realisations = rows_of(options.data, name)
    for train, test in partitions(y, realisations, options.splits, MOST_TRAIN):
        X_train, y_train, *tested = parts(X, y, train, test)
        yield all_fits(X_train, y_train, *tested), (X_train, y_train)


def compared(errors, base=0):
    """Mean errors (k,), paired differences to the column ``base`` and their standard errors, of errors (splits, k)."""
    change = errors - errors[:, [base]]
    spread = change.std(0, ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.zeros(errors.shape[1])
    return errors.mean(0), change.mean(0), spread


def over_sets(names, tables, base=0):
    """One line a method over all sets, from their errors (splits, k)."""
    mean, change, spread = (np.array(each) for each in zip(*(compared(each, base) for each in tables), strict=True))
    clear = np.where(np.abs(change) > 2 * spread, np.sign(change), 0)
    ranks = np.array([rankdata(each.round(9)) for each in mean])
    between = change.std(0, ddof=1) / np.sqrt(len(change)) if len(change) > 1 else np.zeros(len(names))
    return [
        {
            "method": name,
            "error": float(mean[:, k].mean()),
            "difference": float(change[:, k].mean()),
            "se": float(np.sqrt(np.square(spread[:, k]).sum()) / len(spread)),
            "se_of_sets": float(between[k]),
            "median": float(np.median(change[:, k])),
            "rank": float(ranks[:, k].mean()),
            "lower": int(np.sum(change[:, k] < -1e-9)),
            "higher": int(np.sum(change[:, k] > 1e-9)),
            "clearly lower": int(np.sum(clear[:, k] < 0)),
            "clearly higher": int(np.sum(clear[:, k] > 0)),
        }
        for k, name in enumerate(names)
    ]


def line(name, methods, errors, base=0):
    """One set in the table: errors, and differences to the method ``base`` with their standard errors."""
    mean, change, spread = compared(errors, base)
    cells = {
        each: f"{mean[k]:.2f}" if k == base else f"{change[k]:+.2f} +- {spread[k]:.2f}"
        for k, each in enumerate(methods)
    }
    return {"set": name, **cells}


def set_options(description, **more):
    """Options of a comparison on many sets, and their names."""
    options = parser(description)
    for name, default in more.items():
        options.add_argument(f"--{name}", default=default)
    options.add_argument("--data", type=Path)
    options.add_argument("--splits", type=int, default=20)
    options = options.parse_args()
    names = SKLEARN if options.data is None else (*IDA, *UCI, *SKLEARN, *WCCI, *LARGE)
    if options.fast:
        names, options.splits = names[-3:-1], 2
    return options, names


@threadpool_limits.wrap(limits=1)  # small matrices are fastest on one thread
def main():
    options, names = set_options(__doc__)
    lines, tables, several, check = [], [], [], {}
    for name in names:
        errors = []
        for fits, training in drawn_fits(options, name):
            errors.append([fits.error(fits.test[fits.best(each)]) for each in NAMES])
            if name in CHECKED and name not in check:
                check[name] = agrees(fits, *training)
        tables.append(np.array(errors))
        several.append(fits.targets.shape[1] > 1)
        lines.append(line(name, NAMES, tables[-1]))
        markdown(lines[-1:])
    groups = {"two": [t for t, many in zip(tables, several, strict=True) if not many], "all": tables}
    groups["several"] = [t for t, many in zip(tables, several, strict=True) if many]
    groups = {key: over_sets(NAMES, each) for key, each in groups.items() if each}
    for key, rows in groups.items():
        markdown([{"classes": key, **row} for row in rows])
    report(options, check=check, sets=lines, groups=groups)


if __name__ == "__main__":
    main()
