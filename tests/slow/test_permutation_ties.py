"""Permutation scores that tie are scikit-learn's to the last bit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import model_selection as skl
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold, StratifiedKFold

from foldless import LSSVC
from foldless.model_selection import permutation_test_score
from support.permutation import KFDA

BINARY_24, NINE = np.arange(24) % 2, np.arange(36) % 9


TIED = {  # estimator, y, splitter, scoring
    "LSSVC": (LSSVC(gamma=0.5), BINARY_24, StratifiedKFold(4), "roc_auc"),
    "LSSVC linear": (LSSVC("linear"), BINARY_24, StratifiedKFold(4), "roc_auc"),
    "KFDA": (KFDA(gamma=0.5), BINARY_24, StratifiedKFold(4), "roc_auc"),
    "RidgeClassifier": (RidgeClassifier(), BINARY_24, StratifiedKFold(4), "roc_auc"),
    "one class in some test parts": (RidgeClassifier(), BINARY_24, KFold(8), "roc_auc"),
    "LSSVC, nine classes": (LSSVC(gamma=0.5), NINE, StratifiedKFold(4), "balanced_accuracy"),
    "RidgeClassifier, nine classes": (RidgeClassifier(), NINE, StratifiedKFold(3), "balanced_accuracy"),
    "KFDA, accuracy": (KFDA(gamma=0.5), NINE, StratifiedKFold(4), "accuracy"),
}


@pytest.mark.filterwarnings("ignore:.* permuted scores are not defined", "ignore:Only one class is present")
@pytest.mark.parametrize("name", TIED)
def test_scores_of_labels_are_scikit_learns_to_the_last_bit(name):
    """Scores of few rows tie with the true one all the time; a last bit decides whether they count."""
    estimator, y, cv, scoring = TIED[name]
    for seed in (0, 33):
        features = np.random.default_rng(seed).normal(size=(len(y), 3))
        options = {"cv": cv, "scoring": scoring, "n_permutations": 20, "random_state": seed}
        score, null, p = skl.permutation_test_score(estimator, features, y, **options)
        result = permutation_test_score(estimator, features, y, null="resplit", **options)
        assert_array_equal(np.r_[result.score, result.permutation_scores], np.r_[score, null])
        assert result.pvalue == p
