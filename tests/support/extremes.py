"""Data, kernels and estimators at the ends of the range."""

from functools import cache

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.model_selection import KFold, LeaveOneOut

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.model_selection import cross_val_predict
from support.refits import fits, held_out_rows, leave_one_out, signs
from support.tolerances import assert_near

EPS = np.finfo(float).eps
GAMMA = 0.1
KINDS = {
    "LSSVC, two classes": (LSSVC, {}, 2),
    "LSSVC, three classes": (LSSVC, {}, 3),
    "LSSVR": (LSSVR, {}, 0),
    "Fisher, two classes": (KernelFisherDiscriminant, {"threshold": "fisher"}, 2),
    "Fisher, two centroids": (KernelFisherDiscriminant, {"threshold": "centroid"}, 2),
    "Fisher, three classes": (KernelFisherDiscriminant, {}, 3),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
every_kernel = pytest.mark.parametrize("kernel", ["linear", "rbf"])
every_penalty = pytest.mark.parametrize("penalty", ["rkhs", "coef"])
every_design = pytest.mark.parametrize(
    "rows",
    [
        "few features",
        "duplicated rows",
        "more features than rows",
        "constant features",
        "nothing but constants",
        "all of these",
    ],
)


@cache
def design(name):
    """(X, codes of two classes, codes of three classes, values)."""
    rng = np.random.default_rng(50)
    n = 16
    X = {
        "few features": lambda: rng.normal(size=(n, 4)),
        "duplicated rows": lambda: np.repeat(rng.normal(size=(n // 2, 4)), 2, axis=0),
        "more features than rows": lambda: rng.normal(size=(n, 40)),
        "constant features": lambda: np.hstack([rng.normal(size=(n, 3)), np.full((n, 1), 3.0), np.zeros((n, 1))]),
        "nothing but constants": lambda: np.full((n, 3), 2.5),
        "all of these": lambda: np.hstack([np.repeat(rng.normal(size=(n // 2, 35)), 2, axis=0), np.full((n, 5), -7.0)]),
    }[name]()
    codes = rng.permutation(n)
    return X, codes % 2, codes % 3, X[:, 0] + rng.normal(size=n)


def estimator_and_targets(kind, X, two, three, values, **parameters):
    """The estimator, its y, and the method with continuous values."""
    cls, own, n_classes = KINDS[kind]
    y = {0: values, 2: two, 3: three}[n_classes]
    return cls(**own, **parameters), y, "decision_function" if n_classes else "predict"


def loo_values(model):
    return model.loo_predict() if isinstance(model, LSSVR) else model.loo_decision_function()


def gram(X, kernel, gamma=GAMMA):
    return X @ X.T if kernel == "linear" else np.exp(-gamma * cdist(X, X, "sqeuclidean"))


def condition(K, penalty, alpha):
    S = K if penalty == "rkhs" else K @ K.T
    return np.linalg.cond(S + alpha * np.eye(len(K)))


def compare_with_refits(kind, penalty, kernel, rows, alpha):
    """Leave-one-out and folds against refits of the estimator, and against the oracle where that has digits."""
    X, *ys = design(rows)
    model, y, method = estimator_and_targets(kind, X, *ys, kernel=kernel, gamma=GAMMA, alpha=alpha, penalty=penalty)
    K = gram(X, kernel)
    tolerance = max(1e-8, 100 * EPS * condition(K, penalty, alpha))
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))

    loo = loo_values(model.fit(X, y))
    assert_near(loo, held_out_rows(model, X, y, leave_one_out(len(y)), method), tolerance)
    assert_near(cross_val_predict(model, X, y, cv=LeaveOneOut(), method=method), loo, 1e-12)
    in_folds = cross_val_predict(model, X, y, cv=folds, method=method)
    assert_near(in_folds, held_out_rows(model, X, y, folds, method), tolerance)

    labels = loo if isinstance(model, LSSVR) else model.classes_[loo.argmax(1) if loo.ndim == 2 else 1 * (loo > 0)]
    np.testing.assert_array_equal(model.loo_predict(), labels)

    # the decisions of a discriminant are no fits; beyond all digits the oracle has none either
    if not isinstance(model, KernelFisherDiscriminant) and tolerance < 1:
        Y = signs(y)
        for found, splits in ((loo, leave_one_out(len(y))), (in_folds, folds)):
            order = np.concatenate([test for _, test in splits])
            assert_near(found.reshape(Y.shape)[order], fits(K, Y, splits, alpha, penalty=penalty), tolerance)
