"""Data and estimators of the tests of cross-validation, and the comparison with scikit-learn."""

import warnings

import numpy as np
import sklearn
from sklearn import model_selection as skl
from sklearn.linear_model import RidgeClassifier

import foldless.model_selection as fl
from foldless import LSSVC, KernelFisherDiscriminant

N = 30
RNG = np.random.default_rng(0)
CODES = RNG.permutation(np.arange(N) % 3)
X = RNG.normal(size=(N, 5)) + 0.7 * CODES[:, None]

WEIGHT = RNG.uniform(0.3, 3.0, N)
LABELS = np.array(["ant", "bee", "cat"])[CODES]
VALUES = X[:, 0] ** 2 + RNG.normal(size=N)

BINARY_CLASSIFIERS = {
    **{f"KFDA {t}": KernelFisherDiscriminant(gamma=0.1, threshold=t) for t in ("fisher", "pm1", "centroid", "loo")},
    "KFDA centroid, priors": KernelFisherDiscriminant(gamma=0.1, threshold="centroid", priors=[0.8, 0.2]),
    "KFDA coef loo": KernelFisherDiscriminant(gamma=0.1, threshold="loo", penalty="coef"),
    "KFDA no intercept": KernelFisherDiscriminant(gamma=0.1, threshold="centroid", fit_intercept=False),
    "LSSVC": LSSVC(gamma=0.1),
    "RidgeClassifier": RidgeClassifier(),
}


def weights_for(estimator, weighted):
    if not weighted:
        return None
    prefix = "" if not hasattr(estimator, "steps") else estimator.steps[-1][0] + "__"
    return {f"{prefix}sample_weight": WEIGHT}


def compare_validate(estimator, X, y, expected_kind, ours_y=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # R2 of a single row is undefined for both
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        warnings.simplefilter("ignore", sklearn.exceptions.UndefinedMetricWarning)
        theirs = skl.cross_validate(estimator, X, y, return_train_score=True, return_indices=True, **options)
        ours = fl.cross_validate(estimator, X, y, return_train_score=True, return_indices=True, **options)
    path = ours.pop("path")
    if expected_kind == "one fit" and "few large folds" in path.reason:
        expected_kind = "one P per fold"
    assert path.kind == expected_kind, path
    assert set(ours) == set(theirs)
    for key in theirs:
        if key.startswith(("test", "train")):
            np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-8, atol=1e-10, err_msg=key)
    for part in ("train", "test"):
        for a, b in zip(ours["indices"][part], theirs["indices"][part], strict=True):
            np.testing.assert_array_equal(a, b)
    return path


KFDA = KernelFisherDiscriminant
