"""Effects that are there are found by permutation tests, and told apart from what only helps."""

import numpy as np
from sklearn import model_selection as skl

from foldless import LSSVC, FoldlessSearchCV
from foldless.model_selection import permutation_test_pattern, permutation_test_score
from support.families import KFDA, random_labels


def test_a_planted_effect_is_found():
    """One of five features tells the classes apart, at one of three times."""
    rng = np.random.default_rng(0)
    data, y = random_labels(rng, 60, (5, 3))
    data[:, 2, 1] += 2 * y
    options = {"cv": 5, "n_permutations": 199}
    family = permutation_test_score(LSSVC("linear"), data, y, **options)
    np.testing.assert_array_equal(family.pvalue_fwe <= 0.05, [False, True, False])
    assert family.pvalue_fwe[1] == family.pvalue[1] == 1 / 200
    search = FoldlessSearchCV(LSSVC(), {"gamma": (0.3 * np.eye(5)).tolist()})
    tuned = permutation_test_score(search, data[:, :, 1], y, **options)
    assert tuned.pvalue == 1 / 200
    assert tuned.best_params == [{"gamma": [0.0, 0.0, 0.3, 0.0, 0.0]}] * 5
    square = permutation_test_score(LSSVC("linear"), data, y, generalise=True, **options)
    np.testing.assert_array_equal(square.pvalue_fwe <= 0.05, np.diag([False, True, False]))
    pattern = permutation_test_pattern(LSSVC("linear"), data[:, :, 1], y, n_permutations=199)
    np.testing.assert_array_equal(pattern.pvalue_fwe[0] <= 0.05, np.arange(5) == 2)
    assert pattern.patterns[0].argmax() == 2


def test_feature_that_cancels_noise_has_a_weight_and_no_pattern():
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=80), np.arange(80) % 2
    data = np.column_stack([y + noise, noise, rng.normal(size=80)])
    result = permutation_test_pattern(KFDA("linear"), data, y, n_permutations=199)
    np.testing.assert_array_equal(result.weights_pvalue_fwe[0] <= 0.05, [True, True, False])
    np.testing.assert_array_equal(result.pvalue_fwe[0] <= 0.05, [True, False, False])


def test_an_effect_beside_the_confound_is_found_within_its_strata():
    rng = np.random.default_rng(1)
    z = np.arange(120) % 2
    y = np.where(rng.uniform(size=120) < 0.7, z, 1 - z)
    data = rng.normal(size=(120, 3)) + z[:, None] + 1.5 * y[:, None] * [0, 0, 1]
    options = {"cv": skl.KFold(5, shuffle=True, random_state=0), "n_permutations": 199}
    assert permutation_test_score(LSSVC("linear"), data, y, null=z, confounds=z - 0.5, **options).pvalue == 1 / 200
