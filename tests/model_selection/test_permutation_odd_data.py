"""Permutation tests of odd data drawn by hypothesis."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.model_selection import StratifiedKFold

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.model_selection import permutation_test_score
from support.permutation import KFDA, few_examples, odd_data, orders_of, permutation_test_in_memory
from support.refits import labelings, p_value, scores_of_labelings


@few_examples
@given(odd_data(), st.sampled_from(["rbf", "linear"]), st.sampled_from(["rkhs", "coef"]), st.booleans())
def test_regressions_of_odd_data_equal_refits(data, kernel, penalty, intercept):
    X, y, train = data
    if train.sum() < 2:
        train = ~train
    estimator = LSSVR(kernel, gamma=0.5, penalty=penalty, fit_intercept=intercept)
    splits = [(np.flatnonzero(train), np.flatnonzero(~train))]
    options = {"cv": splits, "n_permutations": 3, "random_state": 7, "scoring": "neg_mean_squared_error"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the permutations do not change the labels")
        warnings.filterwarnings("ignore", "there are . different labelings")
        result = permutation_test_score(estimator, X, y.astype(float), **options)
    orders = orders_of(len(y), m=3)
    scores = scores_of_labelings(estimator, X, y.astype(float), orders, splits=splits, scoring="neg_mean_squared_error")
    assert_allclose(np.r_[result.score, result.permutation_scores], scores, rtol=1e-8, atol=1e-8)
    assert result.pvalue == p_value(scores[0], scores[1:])


@few_examples
@given(odd_data(), st.sampled_from(["accuracy", "balanced_accuracy", "ber"]), st.sampled_from([None, "resplit"]))
def test_results_of_odd_data_do_not_depend_on_batches(data, scoring, null):
    X, y, train = data
    splits = [(np.flatnonzero(part), np.flatnonzero(~part)) for part in (train, ~train)]
    options = {"cv": splits, "n_permutations": 5, "scoring": scoring, "null": null}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the permutations do not change the labels")
        warnings.filterwarnings("ignore", "there are . different labelings")
        for estimator in (LSSVC(), KFDA()):
            result = permutation_test_score(estimator, X, y, **options)
            assert 0 < result.pvalue <= 1
            assert result.permutation_scores.shape == (5,)
            assert ((result.permutation_scores >= 0) & (result.permutation_scores <= 1)).all()
            # Decisions of a lattice can tie, and rounding depends on the batch: without ties nothing does.
            apart = X + 0.1 * np.random.default_rng(0).normal(size=X.shape)
            one, other = (permutation_test_in_memory(limit, estimator, apart, y, **options) for limit in (1, 2**29))
            assert_allclose(one.permutation_scores, other.permutation_scores, rtol=0, atol=1e-12)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2])
def test_labelings_that_a_training_part_nearly_separates_equal_refits(alpha, penalty):
    """Five rows of three features: such a part is solved by itself, and has class masses of its own."""
    X, y = np.random.default_rng(0).normal(size=(11, 3)), np.arange(11) % 3
    model = KernelFisherDiscriminant("linear", alpha=alpha, penalty=penalty)
    splits = list(StratifiedKFold(2).split(X, y))
    result = permutation_test_score(model, X, y, cv=splits, scoring="accuracy", n_permutations=80)
    expected = scores_of_labelings(model, X, y, labelings(11, 80), splits=splits, scoring="accuracy")
    assert result.path.reason.startswith("permutations are columns")
    assert_allclose([result.score, *result.permutation_scores], expected, rtol=1e-12)
