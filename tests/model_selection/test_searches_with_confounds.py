"""Searches and nested cross-validation with confounds: criteria of the scores, against refits on plain features.

Confounds are regressed out of linear features with the coefficients of each training part, and then forgotten.
"""

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.tuning.criteria import CRITERIA
from foldless.model_selection import Optimizer, cross_val_predict, cross_val_score, nested_cross_validate
from support.confounds import BINARY, C_NEW, LABELS, NEW, VALUES, WEIGHT, C, N, X
from support.refits import leave_one_out, refit, signs
from support.tolerances import assert_close

GRID = {"alpha": [0.01, 1.0, 30.0]}
FOLDS = list(skl.KFold(4, shuffle=True, random_state=0).split(X))


def without_confounds(train, weight=None):
    """All features without what confounds explain of them in a training part."""
    own = None if weight is None else weight[train]
    return X - C @ LinearRegression().fit(C[train], X[train], sample_weight=own).coef_.T


def plain_fits(estimator, y, splits, weight=None):
    """Held-out fits of targets +-1 or values by refits, stacked, and their rows."""
    twin = LSSVR("linear", alpha=estimator.alpha)
    fits = []
    for train, test in splits:
        rest = without_confounds(train, weight)
        fits.append(refit(twin, rest, signs(y), train, sample_weight=weight).predict(rest[test]))
    return np.concatenate(fits), np.concatenate([test for _, test in splits])


@pytest.mark.many_cases
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("cv", [None, FOLDS], ids=["leave-one-out", "folds"])
@pytest.mark.parametrize("criterion", ["press", "auc", "smooth_error"])
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
def test_criteria_of_a_grid_are_those_of_features_without_the_confounds(y, criterion, cv, weight):
    search = FoldlessSearchCV(LSSVC("linear"), GRID, criterion=criterion, criterion_weight=None, cv=cv)
    search.fit(X, y, sample_weight=weight, confounds=C)
    for params, loss in zip(search.cv_results_["params"], search.cv_results_["mean_test_criterion"], strict=True):
        splits = leave_one_out(N) if cv is None else cv
        fits, rows = plain_fits(LSSVC("linear", **params), y, splits, weight)
        share = np.full((len(rows), 1), 1 / len(rows))
        expected = CRITERIA[criterion](fits, signs(y)[rows], share)[0].sum()
        assert loss == pytest.approx(expected, rel=1e-7)
    best = LSSVC("linear", **search.best_params_).fit(X, y, sample_weight=weight, confounds=C)
    for inputs in ((NEW,), (NEW, C_NEW)):
        assert_close(search.decision_function(*inputs), best.decision_function(*inputs))
        np.testing.assert_array_equal(search.predict(*inputs), best.predict(*inputs))
    assert search.score(X, y, confounds=C) == best.score(X, y, confounds=C)


@pytest.mark.parametrize("cv", [None, FOLDS], ids=["leave-one-out", "folds"])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_gradients_with_confounds_lead_to_the_least_criterion(penalty, cv):
    """The criterion at the end is that of a grid of one, and neighbours are no better."""
    search = FoldlessSearchCV(LSSVC(gamma=0.1, penalty=penalty), method=Optimizer("gradient", max_iter=100), cv=cv)
    search.fit(X, BINARY, confounds=C)
    best = search.best_params_
    around = [{name: [value * step]} for step in (1.0, 0.98, 1.02) for name, value in best.items()]
    grid = [{**{name: [value] for name, value in best.items()}, **each} for each in around]
    table = FoldlessSearchCV(LSSVC(penalty=penalty), grid, cv=cv).fit(X, BINARY, confounds=C).cv_results_
    losses = table["mean_test_criterion"]
    assert losses[0] == pytest.approx(search.best_criterion_, rel=1e-6)
    flat = penalty == "coef" and cv is not None  # the least lies in a long valley, at a tiny alpha
    assert losses.min() >= losses[0] - (5e-4 if flat else 1e-6)


@pytest.mark.parametrize(
    ("search", "kind"),
    [
        (FoldlessSearchCV(LSSVC("linear"), GRID), "grid"),
        (FoldlessSearchCV(LSSVC("linear"), GRID, cv=skl.KFold(3)), "grid"),
        (FoldlessSearchCV(KernelFisherDiscriminant("linear"), GRID, criterion="multiclass_error"), "grid"),
        (FoldlessSearchCV(LSSVC("linear"), GRID, share="none"), "refit"),
        (FoldlessSearchCV(LSSVC("linear"), method=Optimizer("gradient", max_iter=3)), "refit"),
    ],
    ids=["grid", "inner folds", "discriminant", "one setting a class", "gradient"],
)
def test_nested_cross_validation_with_confounds_equals_searches_of_every_training_part(search, kind):
    result = nested_cross_validate(search, X, LABELS, cv=FOLDS, confounds=C)
    assert (result.path.kind == "refit") == (kind == "refit")
    for k, (train, test) in enumerate(FOLDS):
        model = clone(search).fit(X[train], LABELS[train], confounds=C[train])
        assert result.best_params[k] == model.best_params_
        assert_close(result.decision[k], model.decision_function(X[test], confounds=C[test]))
        assert result.test_score[k] == model.score(X[test], LABELS[test], confounds=C[test])
        assert_close(result.inner_criterion[k], model.best_criterion_)


def test_cross_validation_of_a_search_is_its_nested_cross_validation():
    search = FoldlessSearchCV(LSSVR("linear"), GRID)
    nested = nested_cross_validate(search, X, VALUES, cv=FOLDS, confounds=C)
    with pytest.warns(UserWarning, match="refitted on every"):
        assert_close(cross_val_score(search, X, VALUES, cv=FOLDS, confounds=C), nested.test_score)
    with pytest.warns(UserWarning, match="refitted on every"):
        predictions = cross_val_predict(search, X, VALUES, cv=FOLDS, confounds=C)
    assert_close(predictions[FOLDS[1][1]], nested.predictions[1])
