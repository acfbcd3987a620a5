"""Simulations of what intervals and comparisons promise: how often they hold.

coverage   shares of data sets in which a nominal 90 % interval of a cross-validated score holds the score of the
           fitted model on 5000 new rows: the standard error of the folds, Nadeau & Bengio (2003), Bates, Hastie &
           Tibshirani (2023); n = 20, 40, 100 rows; classes, values, and a tuned classifier
rare       the same of balanced accuracy and areas under the ROC curve where 5, 10 or 20 of 100 or 300 rows are of the
           rarer class, from no separation to a perfect one; by the folds alone, and widened to what the counts allow
compare    shares of data sets in which two models differ at 5 %: models of different columns with the same effect
           (level), and where one of them has more of it (power)

python benchmarks/inference.py [--only coverage|rare|compare|levels|cost] [--sets 200] [--fast]
"""

import warnings

import numpy as np
from scipy.stats import norm, ttest_1samp
from scipy.stats import t as student
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, StratifiedKFold

from common import markdown, parser, report, timed
from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.kernels import Linear, On
from foldless.model_selection import (
    compare,
    cross_val_predict,
    cross_validate,
    nested_cross_validate,
    permutation_test_score,
    score_interval,
)
from foldless.stats import cluster_test, step_down

NEW = 5000
FEATURES = 10


def classes(n, rng, effect=0.5):
    """Two classes that differ in all features."""
    y = rng.permutation(np.arange(n) % 2)
    return rng.normal(size=(n, FEATURES)) + effect * y[:, None], y


def values(n, rng):
    """A sum of features with noise."""
    X = rng.normal(size=(n, FEATURES))
    return X, X.sum(1) / 2 + rng.normal(size=n)


KINDS = {
    "classes": (LSSVC("linear", alpha=1.0), classes, "accuracy", 20),
    "values": (LSSVR("linear", alpha=1.0), values, "neg_mean_squared_error", 20),
    "tuned classes": (FoldlessSearchCV(LSSVC(gamma=0.05), {"alpha": [0.1, 1.0, 10.0]}), classes, "accuracy", 5),
}


def coverage(options):
    """Shares of intervals that hold the score on new rows."""
    table = []
    for kind, (model, draw, scoring, n_repeats) in KINDS.items():
        for n in (20, 40) if options.fast else (20, 40, 100):
            rng = np.random.default_rng(n)
            number = 8 if options.fast else options.sets // (4 if kind.startswith("tuned") else 1)
            held = [held_by(model, *draw(n, rng), draw(NEW, rng), scoring, n_repeats, seed) for seed in range(number)]
            line = {"model": kind, "n": n, "data sets": number}
            table.append(line | {name: 100 * np.mean([each[name] for each in held]) for name in held[0]})
            markdown(table[-1:])
    return table


def held_by(model, X, y, new, scoring, n_repeats, seed):
    """Which intervals hold the score of the fitted model on new rows."""
    truth = get_scorer(scoring)(model.fit(X, y), *new)
    nested = score_interval(model, X, y, scoring=scoring, n_repeats=n_repeats, random_state=seed)
    corrected = score_interval(model, X, y, scoring=scoring, method="nadeau-bengio", n_repeats=1, random_state=seed)
    # The standard error of the folds of one cross-validation: the same without the second term.
    error = corrected.standard_error / np.sqrt((1 / 10 + 1 / 9) * 10)
    half = error * student.ppf(0.95, 9)
    found = {"folds": abs(corrected.score - truth) <= half}
    for name, each in {"Nadeau-Bengio": corrected, "nested": nested}.items():
        found[name] = each.low <= truth <= each.high
    return found


RARE = {"balanced accuracy": "balanced_accuracy", "area": "roc_auc"}
BALANCED = LSSVC("linear", class_weight="balanced")
OF_A_REPORT = FoldlessSearchCV(BALANCED, {"alpha": [0.1, 10.0]})


def rare(options):
    """Shares of intervals that hold the score on new rows, where one class is rare."""
    table = []
    for n, positives in (
        ((100, 5),) if options.fast else ((100, 5), (100, 10), (100, 20), (300, 5), (300, 10), (300, 20))
    ):
        for distance in (1.5, 6.0) if options.fast else (0.0, 1.5, 3.0, 6.0):
            rng = np.random.default_rng([n, positives, int(10 * distance)])
            number = 4 if options.fast else options.sets
            sets = [held_of_rare(*rare_class(n, positives, distance, rng), distance, seed) for seed in range(number)]
            for score in RARE:
                line = {"n": n, "positives": positives, "score": score, "distance": distance, "data sets": number}
                for name, value in sets[0][score].items():
                    unit = 100 if isinstance(value, bool | np.bool_) else 1
                    line[name] = unit * np.mean([each[score][name] for each in sets])
                table.append(line)
                markdown(table[-1:])
    return table


def rare_class(n, positives, distance, rng):
    """Two normal classes with unit variances, the means so far apart."""
    y = rng.permutation(np.arange(n) < positives).astype(int)
    return rng.normal(size=(n, FEATURES)) + distance / np.sqrt(FEATURES) * y[:, None], y


def of_new_rows(model, distance):
    """Balanced accuracy and area of a linear model on new rows, which normal classes tell."""
    cut = model.decision_function(np.zeros((1, FEATURES)))[0]
    slope = model.decision_function(np.eye(FEATURES)) - cut
    length, shift = np.linalg.norm(slope), distance / np.sqrt(FEATURES) * slope.sum()
    recalls = norm.cdf([-cut / length, (shift + cut) / length])
    return {"balanced accuracy": recalls.mean(), "area": norm.cdf(shift / length / np.sqrt(2))}


def held_of_rare(X, y, distance, seed):
    """{score: {method: whether its interval holds the score on new rows}}, without and with counts."""
    cv = min(10, np.bincount(y).min())
    cv = StratifiedKFold(cv, shuffle=True, random_state=seed)
    folds = cross_validate(BALANCED, X, y, cv=cv, scoring=list(RARE.values()))
    report = nested_cross_validate(OF_A_REPORT, X, y, cv=cv, scoring=list(RARE.values())).interval()
    models = {"fixed": BALANCED.fit(X, y), "tuned": OF_A_REPORT.fit(X, y).best_estimator_}
    truths = {name: of_new_rows(model, distance) for name, model in models.items()}
    found = {}
    for score, scoring in RARE.items():
        truth = truths["fixed"][score]
        nested = score_interval(BALANCED, X, y, scoring=scoring, n_repeats=3, random_state=seed)
        held = {"true score": truth}
        for name, each, quantile, true in (
            ("nested", nested, norm.ppf(0.95), truth),
            ("Nadeau-Bengio", folds.interval(scoring), student.ppf(0.95, cv.n_splits - 1), truth),
            ("report", report[scoring], student.ppf(0.95, cv.n_splits - 1), truths["tuned"][score]),
        ):
            alone = np.clip(each.centre + quantile * each.standard_error * np.array([-1, 1]), 0, 1)
            held[f"{name}, folds alone"] = alone[0] <= true <= alone[1]
            held[name] = each.low <= true <= each.high
            held[f"width of {name}"] = each.high - each.low
        found[score] = held
    return found


def comparisons(options):
    """Shares of data sets in which two models are told apart at 5 %."""
    table = []
    first, second = (LSSVC(On(range(*ends), Linear())) for ends in ((0, 5), (5, 10)))
    for n in (40,) if options.fast else (20, 40, 100):
        for what, more in {"level": 0.0, "power": 0.7}.items():
            rng = np.random.default_rng(n)
            number = 8 if options.fast else options.sets
            told = [told_apart(first, second, *pair(n, rng, more), seed) for seed in range(number)]
            line = {"n": n, "what": what, "data sets": number}
            table.append(line | {name: 100 * np.mean([each[name] for each in told]) for name in told[0]})
            markdown(table[-1:])
    return table


def pair(n, rng, more):
    """Two classes that differ in all features, in the first five by ``more``."""
    X, y = classes(n, rng)
    X[:, :5] += more * y[:, None]
    return X, y


def told_apart(first, second, X, y, seed):
    """Which tests find a difference."""
    cv = StratifiedKFold(10, shuffle=True, random_state=seed)
    rows = [cross_val_predict(each, X, y, cv=cv) == y for each in (first, second)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all differences are 0
        found = {"t-test of rows": ttest_1samp(rows[0].astype(float) - rows[1], 0.0).pvalue <= 0.05}
    for method, n_repeats in (("nadeau-bengio", 1), ("nested", 20)):
        result = compare(first, second, X, y, method=method, n_repeats=n_repeats, random_state=seed)
        found[method] = result.differences[0].pvalue <= 0.05
    return found


def no_effect(n, rng):
    """Two classes, four to one, that do not differ."""
    return rng.normal(size=(n, FEATURES)), (np.arange(n) % 5 == 0).astype(int)


def _one(estimator, **options):
    """The p-value of one test."""

    def p(rng, seed):
        X, y = no_effect(40, rng)
        given = {name: make(rng, y) for name, make in options.items() if callable(make)}
        fixed = {name: each for name, each in options.items() if not callable(each)}
        return permutation_test_score(estimator, X, y, n_permutations=199, random_state=seed, **given | fixed).pvalue

    return p


def _values(rng, seed):
    X, y = rng.normal(size=(30, FEATURES)), rng.normal(size=30)
    return permutation_test_score(LSSVR("linear"), X, y, n_permutations=199, random_state=seed).pvalue


def _family(read):
    """The least family-wise p-value of twelve times."""

    def p(rng, seed):
        X, y = rng.normal(size=(40, 4, 12)), np.arange(40) % 2
        result = permutation_test_score(LSSVC("linear"), X, y, n_permutations=199, random_state=seed)
        return float(np.min(read(result)))

    return p


def _pairs(rng, seed):
    """The least p-value of pairs of times of which at most one has the effect: two of six times have it."""
    X, y = rng.normal(size=(40, 4, 6)), np.arange(40) % 2
    X[:, :, 4:] += 0.8 * y[:, None, None]
    result = permutation_test_score(LSSVC("linear"), X, y, n_permutations=199, random_state=seed, generalise=True)
    null = np.ones((6, 6), bool)
    null[4:, 4:] = False
    return float(result.pvalue_fwe[null].min())


LINEAR = LSSVC("linear")
SEARCH = FoldlessSearchCV(LSSVC(gamma=0.05), {"alpha": [0.1, 1.0, 10.0]})
SCHEMES = {
    "stratified folds": _one(LINEAR, cv=5),
    "folds blind to labels": _one(LINEAR, cv=KFold(5)),
    "splits that go with the labels": _one(LINEAR, cv=RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)),
    "within strata": _one(LINEAR, cv=KFold(5), null=lambda rng, y: np.arange(40) // 10),
    "confounds": _one(LINEAR, cv=KFold(5), confounds=lambda rng, y: y[:, None] + rng.normal(size=(40, 1))),
    "balanced accuracy": _one(LINEAR, cv=5, scoring="balanced_accuracy"),
    "a search": _one(SEARCH, cv=KFold(4)),
    "values, pooled R2": _values,
    "family, maximum": _family(lambda result: result.pvalue_fwe),
    "family, step-down": _family(step_down),
    "family, cluster mass": _family(lambda result: cluster_test(result).pvalue_fwe),
    "family, TFCE": _family(lambda result: cluster_test(result, statistic="tfce").pvalue_fwe),
    "pairs of times": _pairs,
}


def levels(options):
    """Shares of data sets without an effect in which a test finds one."""
    table, number = [], 4 if options.fast else options.sets
    for scheme, p in SCHEMES.items():
        rng = np.random.default_rng(0)
        found = np.array([p(rng, seed) for seed in range(number)])
        shares = {f"{100 * level:g} %": 100 * np.mean(found <= level + 1e-12) for level in (0.01, 0.05, 0.1)}
        table.append({"scheme": scheme, "data sets": number, **shares})
        markdown(table[-1:])
    return table


def cost(options):
    """Seconds of a nested interval of many partitions."""
    n, n_repeats = (100, 20) if options.fast else (500, 1000)
    X, y = classes(n, np.random.default_rng(0))
    model = LSSVC(gamma=0.05)
    score_interval(model, X, y, n_repeats=1)  # modules are imported
    _, seconds = timed(lambda: score_interval(model, X, y, n_repeats=n_repeats))
    unit = min(timed(lambda: cross_validate(model, X, y, cv=10))[1] for _ in range(5))
    _, refits = timed(lambda: [model.fit(X[n // 5 :], y[n // 5 :]) for _ in range(55)])
    table = [
        {
            "n": n,
            "partitions": n_repeats,
            "seconds": seconds,
            "10-fold cross-validation s": unit,
            "ratio": seconds / unit,
            "times faster than refits": n_repeats * refits / seconds,
        }
    ]
    markdown(table)
    return table


PARTS = {"coverage": coverage, "rare": rare, "compare": comparisons, "levels": levels, "cost": cost}


def main():
    options = parser(__doc__)
    options.add_argument("--only", choices=PARTS)
    options.add_argument("--sets", type=int, default=200)
    options = options.parse_args()
    report(options, **{name: PARTS[name](options) for name in ([options.only] if options.only else PARTS)})


if __name__ == "__main__":
    main()
