"""What is permuted where there are confounds: residuals of values, and labels by their probabilities."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from foldless._engine.permutation import confounded
from foldless._engine.permutation.confounded import ExchangeableGivenConfounds, Residuals
from foldless._sklearn.confounded import given_confounds
from support.refits import labelings, relabelled

LEVEL = 1e-4  # of false alarms


def tables(seed, n, n_labels):
    return np.log(np.random.default_rng(seed).dirichlet(np.ones(n_labels), n))


def probabilities(codes, log_probability, strata):
    """{labels: probability} of all labelings of the rows within strata."""
    found = {}
    for labels in set(permutations(codes)):
        if all(sorted(np.array(labels)[strata == s]) == sorted(codes[strata == s]) for s in strata):
            found[labels] = np.exp(log_probability[np.arange(len(codes)), labels].sum())
    return {labels: each / sum(found.values()) for labels, each in found.items()}


CASES = {
    "two classes": (np.array([0, 0, 0, 1, 1]), np.zeros(5)),
    "three classes": (np.array([0, 2, 1, 1, 0]), np.zeros(5)),
    "strata": (np.array([0, 1, 1, 2, 0, 1, 0]), np.array([1, 0, 0, 0, 1, 1, 1])),
}


@pytest.mark.parametrize("case", CASES)
def test_labelings_have_the_probabilities_of_their_labels(case):
    codes, strata = CASES[case]
    log_probability = tables(1, len(codes), codes.max() + 1)
    scheme = ExchangeableGivenConfounds(strata=strata, codes=codes, log_probability=log_probability)
    expected = probabilities(codes, log_probability, strata)
    drawn = [tuple(each) for each in codes[scheme.orders(len(codes), 4000, 0)]]
    assert set(drawn) <= set(expected)
    counts = [drawn.count(labels) for labels in expected]
    assert stats.chisquare(counts, 4000 * np.array([*expected.values()])).pvalue > LEVEL
    even = [4000 / len(expected)] * len(expected)
    assert stats.chisquare(counts, even).pvalue < LEVEL  # as free permutations would be


def rank(scheme, score, number, rng):
    """Where the score of the true labels lies among those of 19 permutations, ties broken by lot."""
    orders = scheme.orders(len(scheme.codes), 19, number)
    truth, null = score(scheme.codes), np.array([score(scheme.codes[order]) for order in orders])
    return (np.sum(null > truth) + rng.uniform() * (1 + np.sum(null == truth))) / 20


def test_the_true_labels_are_one_labeling_among_equals_after_few_steps(monkeypatch):
    """Labels that are drawn from these probabilities have any rank among their permutations."""
    monkeypatch.setattr(confounded, "STEPS", 2)
    values, rng, ranks = np.linspace(-2, 2, 30), np.random.default_rng(0), []
    log_probability = np.column_stack([np.zeros(30), values])
    for number in range(300):
        y = (rng.uniform(size=30) < 1 / (1 + np.exp(-values))).astype(int)
        scheme = ExchangeableGivenConfounds(codes=y, log_probability=log_probability)
        ranks.append(rank(scheme, lambda labels: labels @ values, number, rng))
    assert stats.kstest(ranks, "uniform").pvalue > LEVEL


@pytest.mark.parametrize("row", [0, 1, 2])
def test_the_pairs_of_the_first_walk_come_in_reverse_order(monkeypatch, row):
    """One of three rows has label 1, which moves between rows 0 and 1, then between 1 and 2."""
    pairs = [(np.array([0]), np.array([1])), (np.array([1]), np.array([2]))]
    monkeypatch.setattr(confounded, "STEPS", 2)
    rng, ranks = np.random.default_rng(0), []
    for number in range(600):
        left = iter(pairs)
        monkeypatch.setattr(confounded, "_pairs", lambda levels, generator, left=left: next(left))
        y = (np.arange(3) == rng.integers(3)).astype(int)
        scheme = ExchangeableGivenConfounds(codes=y, log_probability=np.zeros((3, 2)))
        ranks.append(rank(scheme, lambda labels: labels[row], number, rng))
    assert stats.chisquare(np.histogram(ranks, np.linspace(0, 1, 11))[0]).pvalue > LEVEL


def test_orders_are_permutations_within_strata_that_follow_the_random_state():
    rng = np.random.default_rng(0)
    n, strata = 61, rng.integers(0, 3, 61)
    C = rng.normal(size=(n, 2))
    y = np.array(["a", "b", "c"])[np.digitize(C[:, 0] + rng.normal(size=n), [-0.5, 0.5])]
    scheme = given_confounds(y, C, strata)
    orders = scheme.orders(n, 200, 5)
    assert_array_equal(np.sort(orders, 1), np.tile(np.arange(n), (200, 1)))
    assert (strata[orders] == strata).all()
    assert_array_equal(orders, scheme.orders(n, 200, 5))
    assert not np.array_equal(orders, scheme.orders(n, 200, 6))
    assert len(np.unique(orders, axis=0)) == 200
    for row in range(n):  # rows of one label are exchangeable among themselves
        assert len(np.unique(orders[:, row])) > np.count_nonzero(strata == strata[row]) / 2


def test_permuted_labels_keep_their_association_with_the_confounds():
    rng = np.random.default_rng(3)
    C = rng.normal((1e9, 0.0, 3.0), size=(400, 3))  # the third is of no account
    y = (C[:, 0] - 1e9 + C[:, 1] + rng.logistic(size=400) / 2 > 0).astype(int)
    orders = given_confounds(y, C).orders(400, 500, 0)

    def distance(labels):
        return C[labels == 1].mean(0) - C[labels == 0].mean(0)

    permuted = np.array([distance(y[order]) for order in orders])
    assert_allclose(permuted.mean(0), distance(y), atol=5 * permuted.std(0).max() / np.sqrt(10))
    assert (np.abs(distance(y))[:2] > 0.5).all()


@pytest.mark.parametrize("kind", [str, object, float])
def test_labels_of_any_type_have_the_same_orders(kind):
    rng = np.random.default_rng(2)
    C, codes = rng.normal(size=(30, 1)), rng.integers(0, 3, 30)
    orders = given_confounds(codes, C).orders(30, 9, 0)
    y = codes.astype(str).astype(object) if kind is object else codes.astype(kind)
    assert_array_equal(given_confounds(y, C).orders(30, 9, 0), orders)


def test_rows_of_several_labels_move_with_all_of_them():
    rng = np.random.default_rng(1)
    C = rng.normal(size=(120, 1))
    y = (C + rng.logistic(size=(120, 3)) * [0.2, 0.2, 5.0] > 0).astype(int)
    orders = given_confounds(y, C).orders(120, 200, 0)
    kept = [np.mean([np.corrcoef(y[order, k], C[:, 0])[0, 1] for order in orders]) for k in range(3)]
    assert_allclose(kept, [np.corrcoef(y[:, k], C[:, 0])[0, 1] for k in range(3)], atol=0.06)


SHAPES = {"one output": (50,), "outputs": (50, 3)}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("stratified", [False, True], ids=["", "strata"])
def test_permuted_values_keep_size_and_confounds(shape, stratified):
    rng = np.random.default_rng(0)
    C = np.column_stack([rng.normal(2e3, 1.0, 50), rng.integers(0, 2, 50)])
    strata = rng.integers(0, 4, 50) if stratified else np.zeros(50, int)
    y = rng.normal(size=shape) + (C[:, :1] - 2e3 + strata[:, None]).reshape(50, *[1] * (len(shape) - 1))
    orders = labelings(50, 5, strata)
    found = Residuals.of(y, C, strata)
    design = np.column_stack([strata[:, None] == np.unique(strata), C])
    coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
    for order, values in zip(orders, found.permuted(orders), strict=True):
        own = found.labelled(order)
        assert own.shape == y.shape
        assert_allclose(values.T.reshape(shape), own, rtol=1e-13)
        assert_allclose(own, relabelled(y, order, C, strata), rtol=1e-9)
        assert_allclose(np.linalg.lstsq(design, own, rcond=None)[0], coefficients, rtol=1e-6, atol=1e-8)
        assert_allclose(np.square(own).sum(0), np.square(y).sum(0))
    assert_array_equal(found.labelled(orders[0]), y)  # to the last bit
    assert not np.allclose(found.labelled(orders[1]), y)


def test_confounds_that_strata_determine_leave_the_values_to_be_permuted():
    rng = np.random.default_rng(0)
    site, y = np.arange(30) % 3, rng.normal(size=30)
    C = np.column_stack([site == 1, site == 2, np.ones(30), 1e6 + site]).astype(float)
    order = labelings(30, 1, site)[1]
    assert_allclose(Residuals.of(y, C, site).labelled(order), y[order], rtol=1e-12)


def test_values_that_the_confounds_determine_stay():
    c = np.linspace(-1, 1, 20)
    assert_allclose(Residuals.of(2 * c + 3, c[:, None], np.zeros(20, int)).labelled(np.arange(20)[::-1]), 2 * c + 3)


def test_labels_that_a_confound_tells_apart_stay():
    """Nearly all: probabilities are not 0 or 1."""
    y = np.repeat([0, 1, 2], 20)
    orders = given_confounds(y, (y * 1e3 + np.arange(60) / 60)[:, None]).orders(60, 50, 0)
    assert np.mean(y[orders] != y) < 0.01
    assert len(np.unique(orders, axis=0)) == 50  # rows of one label take any of its places
