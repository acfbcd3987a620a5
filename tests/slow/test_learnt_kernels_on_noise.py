"""Labels that do not depend on X: learnt kernels have p-values that hold their level, and nested scores of chance."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from foldless import LSSVC, FoldlessSearchCV
from foldless.model_selection import nested_cross_validate, permutation_test_score

SETS, PERMUTATIONS = 40, 19


def noise(n, n_features, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_features)), rng.permutation(np.arange(n) % 2)


def p_values(model_of):
    """One p-value for each data set; ``model_of(X, y)`` is what is tested."""
    result = []
    for seed in range(SETS):
        X, y = noise(30, 4, seed)
        cv = StratifiedKFold(2, shuffle=True, random_state=seed)
        test = permutation_test_score(
            model_of(X, y), X, y, cv=cv, n_permutations=PERMUTATIONS, random_state=seed, scoring="roc_auc"
        )
        result.append(test.pvalue)
    return np.array(result)


def share_at_5_percent(values):
    return np.mean(values <= 0.05 + 1e-12)


@pytest.mark.filterwarnings("ignore")
def test_permutation_tests_that_relearn_the_kernel_hold_their_level():
    values = p_values(lambda X, y: FoldlessSearchCV(LSSVC("auto")))
    limit = 0.05 + 2 * np.sqrt(0.05 * 0.95 / SETS)
    assert share_at_5_percent(values) <= limit
    assert abs(values.mean() - 0.5) < 3 / np.sqrt(12 * SETS)

    def learnt_once(X, y):
        best = FoldlessSearchCV(LSSVC("auto")).fit(X, y).best_params_
        return clone(LSSVC()).set_params(**best)

    assert share_at_5_percent(p_values(learnt_once)) > limit  # scales that have seen the labels make p-values false


def test_nested_scores_of_noise_are_those_of_chance():
    nested, inner = [], []
    for seed in range(12):
        X, y = noise(60, 10, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cv = StratifiedKFold(5, shuffle=True, random_state=seed)
            result = nested_cross_validate(FoldlessSearchCV(LSSVC("auto")), X, y, cv=cv, scoring="roc_auc")
        nested.append(result.test_score.mean())
        inner.append(result.inner_score.mean())
    error = np.std(nested, ddof=1) / np.sqrt(len(nested))
    assert abs(np.mean(nested) - 0.5) < 3 * error
    assert np.mean(inner) > 0.5 + 3 * error  # while the scores that chose the setting flatter
