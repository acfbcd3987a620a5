"""Intervals of fitted estimators: those of the function on the same rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.model_selection import score_interval

RNG = np.random.default_rng(0)
X, TWO = make_classification(40, 5, n_informative=3, flip_y=0.2, random_state=0)
THREE = np.array(["ant", "bee", "cat"])[np.argmax(X[:, :3] + RNG.normal(size=(40, 3)), 1)]
VALUES = X[:, 0] + 0.5 * RNG.normal(size=40)
WEIGHT = RNG.uniform(0.5, 2.0, 40)
CONFOUND = RNG.normal(size=40)
MODELS = {
    "two classes": (LSSVC(gamma=0.3), TWO, None, 4, {}),
    "class weights": (LSSVC("linear", class_weight="balanced"), TWO, "balanced_accuracy", 4, {}),
    "ranks": (LSSVC(gamma=0.3, penalty="coef"), TWO, "roc_auc", 4, {}),
    "three classes": (KernelFisherDiscriminant(standardize=True), THREE, None, 4, {}),
    "a cut from leave-one-out": (KernelFisherDiscriminant(gamma=0.3, threshold="loo"), TWO, None, 3, {}),
    "values": (LSSVR(), VALUES, None, 10, {}),
    "outputs": (LSSVR(), np.column_stack([VALUES, CONFOUND]), "r2", 4, {}),
    "weights": (LSSVR("linear"), VALUES, "neg_mean_absolute_error", 4, {"sample_weight": WEIGHT}),
    "confounds": (LSSVC(gamma=0.3), TWO, None, 4, {"confounds": CONFOUND}),
}


def numbers(found):
    return [*found, found.standard_error, found.centre, found.n_folds, found.n_repeats]


@pytest.mark.parametrize("case", MODELS)
def test_the_interval_of_an_estimator_is_that_of_the_function(case):
    estimator, y, scoring, cv, given = MODELS[case]
    options = {"scoring": scoring, "cv": cv, "n_repeats": 3, "random_state": 7, "confidence": 0.8}
    found = estimator.fit(X, y, **given).score_interval(**options)
    weight = given.get("sample_weight")
    others = {"params": None if weight is None else {"sample_weight": weight}, "confounds": given.get("confounds")}
    expected = score_interval(estimator, X, y, **options, **others)
    assert_allclose(numbers(found), numbers(expected), rtol=1e-9)
    assert str(found) == str(expected)


def test_rows_of_weight_0_are_not_in_the_interval():
    weight = np.r_[np.zeros(4), np.ones(36)]
    found = LSSVC(gamma=0.3).fit(X, TWO, sample_weight=weight).score_interval(cv=4, n_repeats=2)
    assert_allclose(numbers(found), numbers(score_interval(LSSVC(gamma=0.3), X[4:], TWO[4:], cv=4, n_repeats=2)))


def test_the_interval_is_of_the_rows_that_are_learnt_now():
    model = LSSVC(gamma=0.3).fit(X[:30], TWO[:30]).partial_fit(X[30:], TWO[30:]).forget([0])
    found, plain = (each.score_interval(cv=4, n_repeats=2) for each in (model, LSSVC(gamma=0.3).fit(X[1:], TWO[1:])))
    assert_allclose(numbers(found), numbers(plain))


def test_folds_are_no_more_than_the_rows_of_the_rarest_class():
    y = np.r_[np.ones(4, int), np.zeros(36, int)]
    assert LSSVC().fit(X, y).score_interval(n_repeats=2).n_folds == 4
    found = LSSVR().fit(X, VALUES).score_interval(scoring="r2", n_repeats=2)
    assert (found.n_folds, found.scoring, LSSVR().fit(X, VALUES).score_interval().n_folds) == (4, "r2", 10)


def test_bad_calls_of_estimators_say_what_to_try():
    model = LSSVC().fit(X, TWO)
    for options, message in (
        ({"scoring": "r2"}, "scoring='r2' is unknown.*accuracy"),
        ({"cv": 2}, "cv=2 must be a whole number of at least 3"),
        ({"n_repeats": 0.5}, "n_repeats=0.5 must be"),
        ({"confidence": 2}, "confidence=2 must"),
    ):
        with pytest.raises(ValueError, match=message):
            model.score_interval(**options)
    with pytest.raises(ValueError, match="needs three folds with rows of every class, but the rarest class has 2 rows"):
        LSSVC().fit(X, np.arange(40) < 2).score_interval()
    few = LSSVC().fit(X[:24], TWO[:24])
    with pytest.raises(ValueError, match=r"scoring='roc_auc' needs at least 10 rows per fold.*'balanced_accuracy'\.$"):
        few.score_interval(scoring="roc_auc")
    with pytest.raises(NotFittedError):
        LSSVR().score_interval()
