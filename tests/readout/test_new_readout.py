"""A readout that the library does not know, defined here: margins of indicator fits, without class matrices."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import model_selection as skl
from sklearn.base import clone

from foldless import LSSVC, FoldlessSearchCV
from foldless._engine.permutation.nulls import Exchangeable
from foldless._engine.readout.codings import Readout
from foldless._sklearn import adapters
from foldless.estimators.access import task_of
from foldless.model_selection import cross_val_predict, explain, nested_cross_validate, permutation_test_score

N, M, ALPHA, GAMMA = 42, 8, 0.5, 0.3
RNG = np.random.default_rng(4)
CODES = np.arange(N) % 3
X = RNG.normal(size=(N, 3)) + CODES[:, None] * [0.7, 0.0, -0.5]
LABELS = {2: np.array(["no", "yes"])[CODES % 2], 3: np.array(["ant", "bee", "cat"])[CODES]}
SPLITS = list(skl.KFold(6, shuffle=True, random_state=0).split(X))
GRID = {"alpha": [0.05, 0.5, 5.0], "gamma": [0.1, 0.5]}


def margins(F):
    """By how much the fit of each class exceeds the mean of the others; of two classes, the second the first."""
    c = F.shape[-1]
    return F[..., 1] - F[..., 0] if c == 2 else (c * F - F.sum(-1, keepdims=True)) / (c - 1)


@dataclass(frozen=True)
class Margins(Readout):
    n_classes: int
    coding: ClassVar[str] = "indicator"

    def scores(self, fits, moments):
        return margins(fits)


class MarginClassifier(LSSVC):
    def _readout(self, n_classes, factors):
        return Margins(n_classes)


class HalfMargins(Margins):
    """The same from fits of targets +-1."""

    coding: ClassVar[str] = "plus_minus"

    def scores(self, fits, moments):
        return fits[..., 0] if self.n_classes == 2 else margins(fits) / 2


class HalfMarginClassifier(LSSVC):
    def _readout(self, n_classes, factors):
        return HalfMargins(n_classes)


class RelativeMargins(Margins):
    """Margins of fits less their means over the training rows of the class, which the class matrices give."""

    needs_moments: ClassVar[bool] = True

    def scores(self, fits, moments):
        means = 1 - np.diagonal(moments.U, axis1=-2, axis2=-1) / moments.mass
        return margins(fits - means[..., None, :])


class RelativeMarginClassifier(LSSVC):
    def _readout(self, n_classes, factors):
        return RelativeMargins(n_classes)


MODELS = [each(alpha=ALPHA, gamma=GAMMA) for each in (MarginClassifier, HalfMarginClassifier, RelativeMarginClassifier)]


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    for model in MODELS:
        monkeypatch.setitem(adapters.TASKS, type(model), task_of)


def refitted_fits(y, train, test, alpha=ALPHA, gamma=GAMMA):
    """Fits of the indicators by the bordered system of the training part."""

    def kernel(A, B):
        return np.exp(-gamma * np.square(A[:, None] - B).sum(-1))

    n, Y = len(train), (y[train][:, None] == np.unique(y)).astype(float)
    system = np.block([[kernel(X[train], X[train]) + alpha * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), 0.0]])
    solution = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return kernel(X[test], X[train]) @ solution[:n] + solution[n]


def chosen(y, decision):
    return np.unique(y)[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(1)]


def refitted_decisions(model, y, train, test, **setting):
    fits = refitted_fits(y, train, test, **setting)
    if isinstance(model, RelativeMarginClassifier):
        inside = refitted_fits(y, train, train, **setting)
        fits = fits - [inside[y[train] == label, k].mean() for k, label in enumerate(np.unique(y))]
    return margins(fits)


def refitted_accuracy(model, y, splits, **setting):
    hits = [chosen(y, refitted_decisions(model, y, *split, **setting)) == y[split[1]] for split in splits]
    return np.mean([np.mean(each) for each in hits])


def against_all(y, train, test, params):
    """Refitted fits of targets +-1 one against all, of params or of those of each class."""
    labels = np.unique(y)[-1:] if len(np.unique(y)) == 2 else np.unique(y)
    params = params if isinstance(params, list) else [params] * len(labels)
    pairs = [refitted_fits(y == label, train, test, **own) for label, own in zip(labels, params, strict=True)]
    return np.column_stack([pair[:, 1] - pair[:, 0] for pair in pairs])


def squared_error(y, test, fits):
    """The criterion "press" of such fits."""
    labels = np.unique(y)[-fits.shape[1] :]
    return np.square(np.where(y[test][:, None] == labels, 1.0, -1.0) - fits).mean(0).sum()


both = pytest.mark.parametrize("c", [2, 3])
every_readout = pytest.mark.parametrize("model", MODELS, ids=["indicator", "plus_minus", "moments"])


@both
@every_readout
def test_fit_of_a_new_readout_is_the_bordered_system(model, c):
    y, rows = LABELS[c], np.arange(N)
    model = clone(model).fit(X, y)
    assert_allclose(model.decision_function(X), refitted_decisions(model, y, rows, rows), atol=1e-10)
    left = np.stack([refitted_decisions(model, y, np.delete(rows, i), rows[[i]])[0] for i in rows])
    assert_allclose(model.loo_decision_function(), left, atol=1e-10)


def test_a_readout_of_class_matrices_must_have_indicators():
    class Wrong(HalfMargins):
        needs_moments: ClassVar[bool] = True

    with pytest.raises(ValueError, match="Wrong reads class matrices, which are made from indicators; its coding is"):
        Wrong(3).targets(CODES, float)


@both
@every_readout
def test_k_fold_of_a_new_readout_equals_refits(model, c):
    y = LABELS[c]
    assert "refit" not in str(explain(model, X, y, cv=SPLITS))
    found = cross_val_predict(model, X, y, cv=SPLITS, method="decision_function")
    for train, test in SPLITS:
        assert_allclose(found[test], refitted_decisions(model, y, train, test), atol=1e-10)


@pytest.mark.many_cases
@both
@every_readout
@pytest.mark.parametrize("options", [{}, {"share": "none"}], ids=["grid", "each class"])
def test_nested_cross_validation_of_a_new_readout_equals_refits(model, c, options):
    y = LABELS[c]
    search = FoldlessSearchCV(model, GRID, criterion="press", **options)
    result = nested_cross_validate(search, X, y, cv=SPLITS)
    for number, (train, test) in enumerate(SPLITS):
        params = result.best_params[number]
        fits = against_all(y, train, test, params)
        if isinstance(params, dict):
            own = refitted_decisions(model, y, train, test, **params)
        else:
            pairs = zip(np.unique(y), params, strict=True)
            own = np.column_stack([refitted_decisions(model, y == label, train, test, **one) for label, one in pairs])
        assert_allclose(result.decision[number], own, atol=1e-9)
        assert_allclose(result.outer_criterion[number], squared_error(y, test, fits), rtol=1e-9)
        left = [against_all(y, np.setdiff1d(train, row), np.array([row]), params) for row in train]
        assert_allclose(result.inner_criterion[number], squared_error(y, train, np.concatenate(left)), rtol=1e-9)


@both
@every_readout
def test_search_of_a_new_readout_chooses_as_refits_do(model, c):
    y = LABELS[c]
    search = FoldlessSearchCV(model, GRID, criterion="multiclass_error", cv=SPLITS).fit(X, y)
    for params, found in zip(search.cv_results_["params"], search.cv_results_["mean_test_criterion"], strict=True):
        assert_allclose(found, 1 - refitted_accuracy(model, y, SPLITS, **params), atol=1e-12)


@both
@every_readout
def test_permutations_of_a_new_readout_equal_refits(model, c):
    y = LABELS[c]
    result = permutation_test_score(model, X, y, cv=SPLITS, n_permutations=M)
    assert result.path.reason.startswith("permutations are columns")
    expected = [refitted_accuracy(model, y[order], SPLITS) for order in [np.arange(N), *Exchangeable().orders(N, M, 0)]]
    assert_allclose([result.score, *result.permutation_scores], expected, rtol=1e-12)


def test_permutations_of_a_search_with_a_new_readout_equal_nested_cross_validation():
    y, search = LABELS[3], FoldlessSearchCV(MarginClassifier(), GRID, criterion="press")
    result = permutation_test_score(search, X, y, cv=SPLITS, n_permutations=2)
    for order, found in zip(Exchangeable().orders(N, 2, 0), result.permutation_scores, strict=True):
        assert_allclose(found, nested_cross_validate(search, X, y[order], cv=SPLITS).test_score.mean(), rtol=1e-12)
