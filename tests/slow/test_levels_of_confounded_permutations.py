"""Levels of permutation tests with confounds: features and labels depend on them, and on each other through them alone.

Tests at 5 % find no more than that, up to two standard errors of the simulation. Where some more are found in few data
sets, four times as many decide: among so many comparisons that happens by chance. ``benchmarks/confounds.py`` simulates
more data sets.
"""

from itertools import product

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.model_selection import Confounds, permutation_test_pattern, permutation_test_score

pytestmark = [
    pytest.mark.filterwarnings("ignore:the permutations do not change the labels"),
    pytest.mark.filterwarnings("ignore:there are .* different labelings"),
]

LEVEL, M = 0.05, 99
FEW, MANY = 100, 400  # data sets
STRENGTHS = {"weak": 0.5, "strong": 3.0}
SVR, SVC = LSSVR("linear", alpha=10.0), LSSVC("linear", alpha=10.0)
SETTINGS = [
    pytest.param(n, k, strength, id=f"{n} rows, {k} confounds, {name}")
    for n, k, (name, strength) in product((40, 100), (1, 3), STRENGTHS.items())
]
MODELS = {
    "values": (SVR, ["r2_pooled", "neg_mean_squared_error", "correlation"]),
    "2 classes": (SVC, ["accuracy", "balanced_accuracy", "roc_auc"]),
    "3 classes": (KernelFisherDiscriminant("linear", alpha=10.0), ["accuracy", "balanced_accuracy"]),
}


def draw(rng, n, k, strength, kind):
    """Features (n, 10), labels and confounds (n, k)."""
    C = rng.normal(size=(n, k))
    X = C @ rng.normal(size=(k, 10)) + rng.normal(size=(n, 10))
    line = strength * C.sum(1) / np.sqrt(k)
    if kind == "values":
        return X, line + rng.normal(size=n), C
    if kind == "2 classes":
        y = (line + rng.logistic(size=n) > 0).astype(int)
    else:
        y = (np.column_stack([line, np.zeros(n), -line]) + rng.gumbel(size=(n, 3))).argmax(1)
    # A class with fewer rows than folds is drawn anew.
    return (X, y, C) if np.bincount(y, minlength=int(kind[0])).min() >= 4 else draw(rng, n, k, strength, kind)


def assert_level(p_values_of, seed):
    """No p-value of ``p_values_of(rng, number)`` is at most 5 % more often than in 5 % of the data sets."""
    rng, found = np.random.default_rng(seed), []
    for number in (FEW, MANY):
        found += [p_values_of(rng, place) for place in range(len(found), number)]
        shares = np.mean(np.array(found) <= LEVEL, axis=0)
        if (shares <= LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / number)).all():
            return
    raise AssertionError(f"found in shares of {shares} of {number} data sets")


def p_values(model, X, y, C, seed, *, in_score=False, **options):
    """p-values of all scores, of a family the least one."""
    confounds = C if not in_score else Confounds(C, in_score=True)
    options = {"cv": KFold(4), "n_permutations": M, "random_state": seed, "confounds": confounds} | options
    result = permutation_test_score(model, X, y, **options)
    if result.pvalue_fwe is not None:
        return [result.pvalue_fwe.min()]
    return [each.pvalue for each in (result.results or {"": result}).values()]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(("n", "k", "strength"), SETTINGS)
def test_a_test_finds_no_more_than_its_level(n, k, strength, kind):
    model, scoring = MODELS[kind]
    cv = KFold(4) if kind == "values" else StratifiedKFold(4)

    def one(rng, number):
        return p_values(model, *draw(rng, n, k, strength, kind), number, cv=cv, scoring=scoring)

    assert_level(one, [n, k, int(strength)])


def sites(rng, kind):
    """Sites of five rows: confound and labels go together within sites, and their means go against each other."""
    site, C = np.arange(60) // 5, rng.normal(size=(60, 1))
    shift = rng.normal(size=(12, 1))[site]
    line = (3 * C - 4 * shift)[:, 0]
    y = line + rng.normal(size=60) if kind == "values" else (line + rng.logistic(size=60) > 0).astype(int)
    C = C + shift
    return C @ rng.normal(size=(1, 10)) + rng.normal(size=(60, 10)), y, C


GRID = {"alpha": [1.0, 100.0]}
FIVE = np.arange(60) // 5
DESIGNS = {
    "search, values": (FoldlessSearchCV(SVR, GRID), "values", {}),
    "search, classes": (FoldlessSearchCV(SVC, GRID), "2 classes", {}),
    "strata, values": (SVR, "values", {"null": FIVE}),
    "strata, classes": (SVC, "2 classes", {"null": FIVE}),
    "groups, values": (SVR, "values", {"groups": FIVE, "cv": GroupKFold(4)}),
    "in the score, values": (SVR, "values", {"in_score": True}),
    "in the score, classes": (SVC, "2 classes", {"in_score": True}),
    "rbf, values": (LSSVR(alpha=0.3), "values", {}),
    "rbf, 3 classes": (LSSVC(alpha=0.3), "3 classes", {}),
    "weights, values": (SVR, "values", {"params": {"sample_weight": np.exp(1.5 * np.sin(np.arange(60)))}}),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_other_designs_find_no_more_than_their_level(design):
    model, kind, options = DESIGNS[design]
    sited = "null" in options or "groups" in options

    def one(rng, number):
        data = sites(rng, kind) if sited else draw(rng, 60, 1, STRENGTHS["strong"], kind)
        return p_values(model, *data, number, **options)

    assert_level(one, 0)


@pytest.mark.parametrize("kind", ["values", "2 classes"])
def test_families_and_patterns_find_no_more_than_their_level(kind):
    model = MODELS[kind][0]

    def one(rng, number):
        X, y, C = draw(rng, 60, 1, STRENGTHS["strong"], kind)
        pattern = permutation_test_pattern(model, X, y, confounds=C, n_permutations=M, random_state=number)
        return [pattern.pvalue_fwe.min(), *p_values(model, np.stack([X[:, :5], X[:, 5:]], 2), y, C, number)]

    assert_level(one, 0)


def test_an_effect_beside_strong_confounds_is_found():
    """Values of which the confound explains 90 %: one feature says half of what it leaves."""
    rng, found = np.random.default_rng(0), []
    for seed in range(60):
        X, y, C = draw(rng, 100, 1, STRENGTHS["strong"], "values")
        own = rng.normal(size=100)
        X = np.column_stack([X, C[:, 0] + own])
        found.append(p_values(SVR, X, y + own, C, seed, scoring=MODELS["values"][1]))
    assert (np.mean(np.array(found) <= LEVEL, axis=0) > 0.9).all()


class Free:
    def orders(self, n, n_permutations, random_state):
        return np.argsort(random_state.random_sample((n_permutations, n)), axis=1)


def test_free_permutations_of_classes_find_the_confounds():
    """What the other tests of this file would see if labels of classes were permuted freely."""
    rng = np.random.default_rng(0)
    for design in ("in the score, classes", "rbf, 3 classes"):
        model, kind, options = DESIGNS[design]
        found = [
            p_values(model, *draw(rng, 60, 1, STRENGTHS["strong"], kind), seed, null=Free(), **options)
            for seed in range(40)
        ]
        assert np.mean(np.array(found) <= LEVEL) > 0.15, design
