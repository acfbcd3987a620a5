"""Batches, jobs, progress and interrupts of permutation tests."""

import os
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as theirs
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

import foldless._engine.permutation.strategies as strategies
from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.permutation.labelings import ARRAYS, truth_of
from foldless._sklearn import progress
from foldless._sklearn.progress import Progress
from foldless.model_selection import RefitWarning, _permutation, permutation_test_score
from support.permutation import (
    CODES,
    FOLDS,
    KFDA,
    LABELS,
    VALUES,
    N,
    X,
    margin,
    permutation_test_in_memory,
    scorer_returning,
)
from support.refits import p_value

STRATEGIES = {
    "columns": (LSSVR(gamma=0.1), VALUES, None),
    "columns, labels": (KFDA(gamma=0.1), LABELS, None),
    "steps": (make_pipeline(PCA(3), LSSVC(gamma=0.1)), LABELS, margin),
    "one by one": (KFDA(gamma=0.1), LABELS, margin),
    "a P each": (LSSVC(gamma=0.1, class_weight="balanced"), LABELS, margin),
}


@pytest.mark.parametrize(
    ("strategy", "null"),
    [(strategy, None) for strategy in STRATEGIES]
    + [(strategy, "resplit") for strategy in STRATEGIES if strategy != "steps"],
)
def test_the_batch_size_makes_no_difference(strategy, null):
    estimator, y, scoring = STRATEGIES[strategy]
    options = {"cv": 3, "n_permutations": 9, "scoring": scoring, "null": null}
    expected = permutation_test_score(estimator, X, y, **options)
    for memory_limit in (1, 3 * 8 * 8 * N * 2):
        result = permutation_test_in_memory(memory_limit, estimator, X, y, **options)
        assert_allclose(result.permutation_scores, expected.permutation_scores, rtol=1e-12, atol=1e-14)
        assert (result.score, result.pvalue) == pytest.approx((expected.score, expected.pvalue), rel=1e-12)


def test_batches_fit_the_memory_they_are_given(monkeypatch):
    widths = []

    def watched(task, orders, residuals=None):
        widths.append(len(orders))
        return truth_of(task, orders, residuals)

    monkeypatch.setattr(strategies, "truth_of", watched)
    column = N * 8 * ARRAYS
    for estimator, columns in ((LSSVC(), 2), (LSSVC(fit_intercept=False), 3)):
        for per_batch in (1, 2, 5):
            widths.clear()
            limit = columns * column * per_batch + 1
            permutation_test_in_memory(limit, estimator, X, LABELS, cv=3, n_permutations=8)
            assert max(widths) == per_batch
            assert sum(widths) == 9
    widths.clear()
    permutation_test_score(LSSVC(), X, LABELS, cv=3, n_permutations=8)
    assert widths == [9]


def process(model, X, y):
    """The process that scores, as a score."""
    return float(os.getpid())


def test_the_number_of_jobs_makes_no_difference():
    for strategy in ("columns", "one by one"):
        estimator, y, scoring = STRATEGIES[strategy]
        options = {"cv": FOLDS, "n_permutations": 12, "scoring": scoring}
        expected = permutation_test_in_memory(1, estimator, X, y, **options)
        result = permutation_test_in_memory(1, estimator, X, y, n_jobs=2, **options)
        assert_allclose(result.permutation_scores, expected.permutation_scores, rtol=1e-12, atol=1e-14)
        assert result.pvalue == expected.pvalue
    elsewhere = permutation_test_score(LSSVC(), X, LABELS, n_permutations=2, n_jobs=2, scoring=process)
    assert os.getpid() not in [elsewhere.score, *elsewhere.permutation_scores]


def test_progress_goes_to_standard_error(capsys):
    permutation_test_in_memory(1, LSSVC(), X, LABELS, n_permutations=3)
    assert capsys.readouterr() == ("", "")
    permutation_test_in_memory(1, LSSVC(), X, LABELS, n_permutations=3, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"(permutations: 3/3, \d+ s\n)+", err)


def interrupted(calls):
    """Accuracy, interrupted from the keyboard after so many calls, and one before any work."""
    left = iter(range(calls + 1))

    def accuracy(truth, labels):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return theirs.accuracy_score(truth, labels)

    return make_scorer(accuracy)


def test_an_interrupt_returns_what_is_done():
    options = {"cv": FOLDS, "n_permutations": 9, "random_state": 7}
    expected = permutation_test_in_memory(1, LSSVC(gamma=0.1), X, LABELS, **options)
    scoring = interrupted(4 * (1 + 4) + 2)  # the true labels and four permutations, four folds each
    with pytest.warns(UserWarning, match="interrupted: the result rests on 4 of 9 permutations"):
        result = permutation_test_in_memory(1, LSSVC(gamma=0.1), X, LABELS, scoring=scoring, **options)
    assert result.n_permutations == 4
    assert_array_equal(result.permutation_scores, expected.permutation_scores[:4])
    assert result.pvalue == p_value(expected.score, expected.permutation_scores[:4])


@pytest.mark.parametrize("calls", [0, 3, 4, 7])
def test_an_interrupt_before_the_first_permutation_is_done_is_one(calls):
    options = {"cv": FOLDS, "n_permutations": 9}
    with pytest.raises(KeyboardInterrupt):
        permutation_test_in_memory(1, LSSVC(), X, LABELS, scoring=interrupted(calls), **options)


def interrupted_function(calls):
    """A function of fitted estimators, which is asked one by one, interrupted after so many calls."""
    left = iter(range(calls))

    def score(model, X, y):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return 0.5

    return score


WARNED = {
    "is refitted for every permutation": lambda: {"estimator": LogisticRegression()},
    "do not change the labels": lambda: {"null": CODES},
    "are not defined": lambda: {"scoring": scorer_returning([1.0, 0.5, np.nan]), "cv": FOLDS[:1]},
    "interrupted": lambda: {"scoring": interrupted_function(4 * 10), "n_permutations": 20},
}


@pytest.mark.parametrize("words", WARNED)
def test_warnings_point_to_the_call(words):
    options = {"estimator": LSSVC(), "cv": FOLDS, "n_permutations": 2, **WARNED[words]()}
    with pytest.warns(UserWarning, match=words) as caught:
        permutation_test_score(X=X, y=LABELS, **options)
    assert [warning.filename for warning in caught] == [__file__]


def test_constant_features_tie_all_decisions():
    """Decisions of all rows are equal: rounding decides no label and no order."""
    y = np.arange(N) % 2
    for scoring in ("roc_auc", "accuracy"):
        options = {"cv": FOLDS, "n_permutations": 20, "scoring": scoring}
        for estimator in (LSSVC(), LSSVC("linear", fit_intercept=False), KFDA(threshold="centroid")):
            result = permutation_test_score(estimator, np.zeros((N, 2)), y, **options)
            alone = permutation_test_in_memory(1, estimator, np.zeros((N, 2)), y, **options)
            assert_array_equal(alone.permutation_scores, result.permutation_scores)
            if scoring == "roc_auc":
                assert (result.permutation_scores == 0.5).all()


def test_p_values_are_never_zero():
    X = np.r_[np.full((20, 1), -1.0), np.full((20, 1), 1.0)] + np.random.default_rng(0).normal(size=(40, 1)) * 1e-3
    y = np.arange(40) >= 20
    result = permutation_test_score(LSSVC("linear"), X, y, n_permutations=99)
    assert (result.score, result.pvalue) == (1.0, 1 / 100)


def test_permutations_that_take_long_are_foretold(monkeypatch):
    monkeypatch.setattr(_permutation, "LONG_WITH_REMEDY", 0.0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}, cv=2)
    quicker = r"Quicker: inner splits that do not look at the labels, such as cv=None or cv=KFold\(5"
    with (
        pytest.warns(RefitWarning, match=rf"inner splits are drawn from the labels\. {quicker}"),
        pytest.warns(UserWarning, match=f"are expected to take about 1 minutes; .* {quicker}.*; or n_jobs="),
    ):
        permutation_test_score(search, X, y, cv=KFold(2), n_permutations=4)
    search.set_params(cv=KFold(5, shuffle=True, random_state=0))
    assert permutation_test_score(search, X, y, cv=KFold(2), n_permutations=2).path.kind == "one fit"


WITH_CLASS_WEIGHTS = {
    "model": (LSSVC(class_weight="balanced"), "a model without class_weight, with scoring='balanced_accuracy'"),
    "search": (
        FoldlessSearchCV(LSSVC(class_weight="balanced"), {"alpha": [1.0]}),
        "a search of a model without class_weight, with criterion_weight='balanced'",
    ),
}


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize("case", WITH_CLASS_WEIGHTS)
def test_class_weights_that_follow_the_labels_are_foretold_after_two_labelings(case, monkeypatch):
    """Before the others are worked on, with a way that is quicker."""
    monkeypatch.setattr(_permutation, "LONG_WITH_REMEDY", 0.0)
    model, quicker = WITH_CLASS_WEIGHTS[case]
    done, step = [], Progress.step

    def counted(self, note="", steps=1):
        if self.what == "permutations":
            done.append(steps)
        return step(self, note, steps)

    monkeypatch.setattr(Progress, "step", counted)
    monkeypatch.setattr(progress, "warn_caller", lambda message: told.append((message, list(done))))
    told: list = []
    permutation_test_score(model, X, CODES, cv=FOLDS, n_permutations=9)
    (message, before), *others = told
    assert f"Quicker: {quicker}" in message
    assert (sum(before) <= 2, sum(done), others) == (True, 10, [])
