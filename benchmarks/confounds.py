"""Levels and power of permutation tests with confounds, simulated at a nominal 5 %.

levels   features and labels depend on the confounds, and on each other only through them: shares of data sets in which
         an effect is found, with residuals or labels that are permuted freely beside what foldless permutes; n = 40 and
         100 rows, one and three confounds, weak and strong association with the labels; values and classes
others   the same of searches, families, strata, weights, outputs, patterns and scores that keep the confounds' part,
         n = 60 rows, strong association
sites    labels of two sites, with strata or confounds or neither: shares of data sets, without and with an effect
power    the same as levels with an effect

python benchmarks/confounds.py [--only levels|others|sites|power] [--sets 500] [--fast]
"""

from itertools import product

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from common import markdown, parser, report
from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.estimators.metrics import METRICS
from foldless.model_selection import Confounds, cross_val_predict, permutation_test_pattern, permutation_test_score

M, FEATURES = 199, 20
STRENGTHS = {"weak": 0.5, "strong": 3.0}
VALUE_SCORES = ["r2_pooled", "neg_mean_squared_error", "correlation"]
CLASS_SCORES = ["accuracy", "balanced_accuracy"]


class Free:
    """Labels are permuted whatever the confounds are, within test sets that were made from the labels."""

    def __init__(self, splits=()):
        self.splits = splits

    def orders(self, n, n_permutations, random_state):
        number = np.zeros(n)
        for place, (_, test) in enumerate(self.splits):
            number[test] = place
        orders = np.empty((n_permutations, n), int)
        orders[:, np.argsort(number, kind="stable")] = np.argsort(
            number + random_state.random_sample((n_permutations, n)), axis=1
        )
        return orders


def draw(rng, n, k, strength, kind, effect=0.0):
    """Features (n, 20), labels and confounds (n, k); ``effect`` of what the confounds leave of the first feature."""
    C, noise = rng.normal(size=(n, k)), rng.normal(size=(n, FEATURES))
    X = C @ rng.normal(size=(k, FEATURES)) + noise
    line, own = strength * C.sum(1) / np.sqrt(k), effect * noise[:, 0]
    if kind == "values":
        return X, line + own + rng.normal(size=n), C
    if kind == "2 classes":
        return X, (line + 2 * own + rng.logistic(size=n) > 0).astype(int), C
    return X, (np.column_stack([line, 2 * own, -line]) + rng.gumbel(size=(n, 3))).argmax(1), C


def enough(y, kind):
    """Whether every class has a row for each fold."""
    return kind == "values" or np.bincount(y, minlength=int(kind[0])).min() >= 5


def p_values(kind, X, y, C, seed):
    """{score: p}, and by free permutations {"score, free": p}."""
    cv = (KFold if kind == "values" else StratifiedKFold)(5, shuffle=True, random_state=seed)
    options = {"confounds": C, "n_permutations": M, "random_state": seed}
    if kind == "values":
        model, scores = LSSVR("linear", alpha=10.0), VALUE_SCORES
        result = permutation_test_score(model, X, y, cv=cv, scoring=scores, **options)
        free = free_p_values(model, X, y, C, cv, seed)
    else:
        model = (LSSVC if kind == "2 classes" else KernelFisherDiscriminant)("linear", alpha=10.0)
        scores = CLASS_SCORES + ["roc_auc"] * (kind == "2 classes")
        result = permutation_test_score(model, X, y, cv=cv, scoring=scores, **options)
        splits = list(cv.split(X, y))
        own = permutation_test_score(model, X, y, cv=splits, scoring=scores, null=Free(splits), **options).results
        free = {name: own[name].pvalue for name in scores}
    found = {}
    for name in scores:
        found |= {name: result.results[name].pvalue, f"{name}, free": free[name]}
    return found


def free_p_values(model, X, y, C, cv, seed):
    """Those of values that are permuted freely: their held-out predictions are one matrix times them."""
    orders = np.vstack([np.arange(len(y)), Free().orders(len(y), M, np.random.RandomState(seed))])
    predictions = cross_val_predict(model, X, np.eye(len(y)), cv=cv, confounds=C) @ y[orders].T
    truth, found = y[orders], {}
    tests = [np.arange(len(y))], [test for _, test in cv.split(X)]
    for name in VALUE_SCORES:
        metric = METRICS[name]
        parts = tests[0 if metric.pooled else 1]
        scores = np.mean([metric.function(predictions.T[:, None, te], truth[:, None, te]) for te in parts], axis=0)
        found[name] = (1 + np.sum(scores[1:] >= scores[0] - 1e-10)) / (1 + M)
    return found


def levels(options, effects=None):
    """Shares of data sets in which an effect is found at 5 %."""
    table, number = [], 4 if options.fast else options.sets
    for kind, n, k, (name, strength) in product(
        ("values", "2 classes", "3 classes"), (40, 100), (1, 3), STRENGTHS.items()
    ):
        found, seed = [], 0
        while len(found) < number:
            seed += 1
            effect = 0.0 if effects is None else effects[n]
            data = draw(np.random.default_rng([n, k, seed]), n, k, strength, kind, effect)
            if enough(data[1], kind):
                found.append(p_values(kind, *data, seed))
        line = {"labels": kind, "n": n, "confounds": k, "association": name, "data sets": number}
        table.append(line | {score: 100 * np.mean([each[score] <= 0.05 for each in found]) for score in found[0]})
        markdown(table[-1:])
    return table


def power(options):
    """The same with an effect."""
    return levels(options, {40: 0.8, 100: 0.5})


def _score(model, kind, k=1, data=draw, in_score=False, **options):
    """The p-value of a call, the least of a family; arguments that are functions are made from the data."""

    def p(rng, seed):
        X, y, C = data(rng, 60, k, STRENGTHS["strong"], kind)
        if not enough(y, kind):
            return p(rng, seed)
        given = {name: make(X, y, C) if callable(make) else make for name, make in options.items()}
        given = {"cv": KFold(5), "confounds": Confounds(C, in_score), "n_permutations": M, "random_state": seed} | given
        X = given.pop("X", X)
        result = permutation_test_score(model, X, y, **given)
        return float(result.pvalue if result.pvalue_fwe is None else result.pvalue_fwe.min())

    return p


def _pattern(model, kind):
    """The least family-wise p-value of patterns."""

    def p(rng, seed):
        X, y, C = draw(rng, 60, 1, STRENGTHS["strong"], kind)
        return permutation_test_pattern(model, X, y, confounds=C, n_permutations=M, random_state=seed).pvalue_fwe.min()

    return p


def sites(rng, n, k, strength, kind):
    """Sites of five rows, whose means of confound and values go the other way than both do within a site."""
    site, C = np.arange(n) // 5, rng.normal(size=(n, k))
    shift = rng.normal(size=(n // 5, 1))[site]
    y = strength * C.sum(1) - 4 * shift[:, 0]
    y = y + rng.normal(size=n) if kind == "values" else (y + rng.logistic(size=n) > 0).astype(int)
    C = C + shift
    return C @ rng.normal(size=(k, FEATURES)) + rng.normal(size=(n, FEATURES)), y, C


def _five(X, y, C):
    return np.arange(len(y)) // 5


def _times(X, y, C):
    return np.stack([X[:, :4], X[:, 4:8], X[:, 8:12], X[:, 12:16]], axis=2)


def _weights(X, y, C):
    return {"sample_weight": np.exp(1.5 * X[:, 0] / X[:, 0].std())}


GRID = {"alpha": [1.0, 10.0, 100.0]}
SVR, SVC = LSSVR("linear", alpha=10.0), LSSVC("linear", alpha=10.0)
OTHERS = {
    "search, values": _score(FoldlessSearchCV(SVR, GRID), "values"),
    "search, classes": _score(FoldlessSearchCV(SVC, GRID), "2 classes"),
    "family of four, values": _score(SVR, "values", X=_times),
    "family of four, classes": _score(SVC, "2 classes", X=_times),
    "12 strata, values": _score(SVR, "values", data=sites, null=_five),
    "12 strata, classes": _score(SVC, "2 classes", data=sites, null=_five),
    "12 groups, held out, values": _score(SVR, "values", data=sites, groups=_five, cv=GroupKFold(4)),
    "weights, values": _score(SVR, "values", params=_weights),
    "confounds in the score, values": _score(SVR, "values", in_score=True),
    "confounds in the score, classes": _score(SVC, "2 classes", in_score=True),
    "rbf, values": _score(LSSVR(alpha=0.3), "values", k=3),
    "rbf, 2 classes": _score(LSSVC(alpha=0.3), "2 classes"),
    "rbf, 3 classes": _score(LSSVC(alpha=0.3), "3 classes"),
    "patterns, values": _pattern(SVR, "values"),
    "patterns, classes": _pattern(SVC, "2 classes"),
    "free: confounds in the score, classes": _score(SVC, "2 classes", in_score=True, null=Free()),
    "free: rbf, 3 classes": _score(LSSVC(alpha=0.3), "3 classes", null=Free()),
}


def others(options):
    """Shares of data sets without an effect in which one is found at 5 %."""
    table, number = [], 4 if options.fast else options.sets
    for name, p in OTHERS.items():
        rng = np.random.default_rng(0)
        share = 100 * np.mean([p(rng, seed) <= 0.05 for seed in range(number)])
        table.append({"test": name, "data sets": number, "found %": share})
        markdown(table[-1:])
    return table


def two_sites(rng, effect=0.0):
    """120 rows of two sites with 75 and 25 % of the labels, and ten features that know the site; labels by one."""
    site = np.arange(120) % 2
    y = (rng.random(120) < np.where(site == 1, 0.75, 0.25)).astype(int)
    X = rng.normal(size=(120, 10)) + 0.5 * site[:, None]
    X[:, 0] += effect * y
    return X, y, site


def _beyond_site(X, site):
    """Features about their means in each site, of all rows."""
    return X - np.array([X[site == number].mean(0) for number in (0, 1)])[site]


REMEDIES = {
    "nothing": lambda X, site: (X, {}),
    "`confounds=site`": lambda X, site: (X, {"confounds": site[:, None]}),
    "`null=site`": lambda X, site: (X, {"null": site}),
    "`confounds=site, null=site`": lambda X, site: (X, {"confounds": site[:, None], "null": site}),
    "site regressed out of X on all rows": lambda X, site: (_beyond_site(X, site), {}),
    "the same, with `null=site`": lambda X, site: (_beyond_site(X, site), {"null": site}),
}


def of_sites(options):
    """Levels, scores and power of the tests of two sites."""
    table, number = [], 4 if options.fast else options.sets
    for name, remedy in REMEDIES.items():
        results, p_values_of_effect = [], []
        for seed in range(number):
            for effect in (0.0, 1.0) if 2 * seed < number else (0.0,):
                X, y, site = two_sites(np.random.default_rng([seed, int(effect)]), effect)
                X, arguments = remedy(X, site)
                keywords = {"n_permutations": M, "random_state": seed} | arguments
                result = permutation_test_score(LSSVC("linear", alpha=10.0), X, y, cv=5, **keywords)
                if effect:
                    p_values_of_effect.append(result.pvalue)
                else:
                    results.append(result)
        table.append(
            {
                "": name,
                "p <= 0.05 (%)": 100 * np.mean([result.pvalue <= 0.05 for result in results]),
                "mean score": np.mean([result.score for result in results]),
                "mean of the null": np.mean([result.permutation_scores.mean() for result in results]),
                "effect found (%)": 100 * np.mean(np.array(p_values_of_effect) <= 0.05),
            }
        )
        markdown(table[-1:])
    return table


PARTS = {"levels": levels, "others": others, "sites": of_sites, "power": power}


def main():
    options = parser(__doc__)
    options.add_argument("--only", choices=PARTS)
    options.add_argument("--sets", type=int, default=500)
    options = options.parse_args()
    report(options, **{name: PARTS[name](options) for name in ([options.only] if options.only else PARTS)})


if __name__ == "__main__":
    main()
