"""A class that has no rows in a training part never wins, without an intercept as well."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut, cross_val_score

from foldless import LSSVC, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.kernels import Linear, Nystroem

LINEAR = {"kernel": "linear", "fit_intercept": False, "alpha": 0.01}
KINDS = {
    "LSSVC": LSSVC(**LINEAR),
    "landmarks": LSSVC(Nystroem(Linear(), n_landmarks=3, landmarks="uniform"), alpha=0.01, fit_intercept=False),
    "coef": LSSVC(**LINEAR, penalty="coef"),
    "discriminant": KernelFisherDiscriminant(**LINEAR),
}


def data(n_classes, n=40):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), rng.integers(0, n_classes, n), rng.normal(size=(500, 3))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("empty", ["first", "last"])
def test_a_named_class_without_rows_never_wins(kind, n_classes, empty):
    X, y, new = data(n_classes)
    y = y + (empty == "first")
    absent = 0 if empty == "first" else n_classes
    model = clone(KINDS[kind]).partial_fit(X, y, classes=np.arange(n_classes + 1))
    assert not np.any(model.predict(new) == absent)
    decisions = model.loo_decision_function()
    winners = decisions.argmax(1) if decisions.ndim == 2 else (decisions > 0).astype(int)
    assert not np.any(winners == absent)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_that_has_lost_its_rows_never_wins(kind):
    X, y, new = data(3)
    model = clone(KINDS[kind]).partial_fit(np.vstack([X, X[:1]]), np.append(y, 3), classes=range(4)).forget([40])
    assert not np.any(model.predict(new) == 3)


@pytest.mark.parametrize("seed", range(20))
def test_scores_with_classes_of_one_row_are_those_of_refits(seed):
    X, y = np.random.default_rng(seed).normal(size=(5, 3)), np.array([0, 1, 2, 3, 3])
    model = LSSVC(**LINEAR)
    expected = cross_val_score(model, X, y, cv=LeaveOneOut()).mean()
    assert model.fit(X, y).loo_score_ == pytest.approx(expected)
    search = FoldlessSearchCV(model, {"alpha": [0.01]}, scoring="accuracy").fit(X, y)
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(expected)
