"""Intervals and sets of nested cross-validation: equal to a plain loop of searches, each without a fold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import nested_cross_validate
from support.searches import ALPHAS, BINARY, GROUPS, KFDA, LABELS, VALUES, WEIGHT, N, X

NEW = np.random.default_rng(1).normal(size=(7, 4))
GRID = {"alpha": ALPHAS, "gamma": [0.1]}
FOLDS = {"shuffle": True, "random_state": 0}
SEARCHES = {
    "LSSVR": FoldlessSearchCV(LSSVR(), GRID),
    "pipeline": FoldlessSearchCV(make_pipeline(StandardScaler(), LSSVR(gamma=0.1)), {"lssvr__alpha": ALPHAS}),
    "Ridge": FoldlessSearchCV(Ridge(), {"alpha": ALPHAS}),
}


def models_without_folds(search, y, folds, **given):
    """(search fitted without a fold, rows of the fold)."""
    for train, test in folds.split(X, y, given.get("groups")):
        own = {name: values[train] for name, values in given.items()}
        yield clone(search).fit(X[train], y[train], **own), test


def intervals_by_loop(search, y, coverage, folds, **given):
    """CV+ by its definition."""
    low, high = [], []
    for model, test in models_without_folds(search, y, folds, **given):
        for row in test:
            residual = np.abs(y[row] - model.predict(X[[row]])[0])
            low.append(model.predict(NEW) - residual)
            high.append(model.predict(NEW) + residual)
    rank = int(np.ceil(coverage * (N + 1)))
    return np.stack([np.sort(low, 0)[N - rank], np.sort(high, 0)[rank - 1]], -1)


def p_by_loop(search, y, folds, class_conditional):
    """Cross-conformal p-values by their definition."""
    classes = np.unique(y)
    counts, ranks = np.ones(len(classes)), np.ones((len(NEW), len(classes)))

    def margin(decision, label):
        if len(classes) == 2:
            return decision if label == classes[1] else -decision
        return decision[label == classes][0] - decision[label != classes].max()

    for model, test in models_without_folds(search, y, folds):
        for row, decision in zip(test, model.decision_function(X[test]), strict=True):
            for k, label in enumerate(classes):
                if not class_conditional or y[row] == label:
                    counts[k] += 1
                    own = [margin(each, label) for each in model.decision_function(NEW)]
                    ranks[:, k] += margin(decision, y[row]) <= np.array(own) + 1e-8
    return ranks / counts


def nested(search, y, folds, data=X, **options):
    return nested_cross_validate(search, data, y, cv=folds, return_estimator=True, **options)


@pytest.mark.many_cases
@pytest.mark.parametrize("name", SEARCHES)
def test_intervals_are_those_of_searches_without_each_fold(name):
    search, y = SEARCHES[name], np.column_stack([VALUES, X[:, 1] ** 2]) if name == "Ridge" else VALUES
    folds = skl.KFold(10, **FOLDS)
    found = nested(search, y, folds).predict_interval(NEW, 0.8)
    assert_allclose(found, intervals_by_loop(search, y, 0.8, folds), rtol=1e-8)


def test_intervals_take_weights_and_leave_groups_together():
    search, folds = SEARCHES["LSSVR"], skl.KFold(10, **FOLDS)
    expected = intervals_by_loop(search, VALUES, 0.9, folds, sample_weight=WEIGHT)
    found = nested(search, VALUES, folds, params={"sample_weight": WEIGHT}).predict_interval(NEW)
    assert_allclose(found, expected, rtol=1e-8)
    search, folds = FoldlessSearchCV(LSSVR(), GRID, cv=skl.GroupKFold(3)), skl.GroupKFold(7)
    expected = intervals_by_loop(search, VALUES, 0.9, folds, groups=GROUPS)
    assert_allclose(nested(search, VALUES, folds, groups=GROUPS).predict_interval(NEW), expected, rtol=1e-8)


@pytest.mark.many_cases
@pytest.mark.parametrize("class_conditional", [False, True])
@pytest.mark.parametrize("kind", [LSSVC, KFDA, RidgeClassifier])
def test_sets_are_those_of_searches_without_each_fold(kind, class_conditional):
    y = LABELS if kind is LSSVC else BINARY
    search = FoldlessSearchCV(kind(), {"alpha": [0.05, 5.0]} if kind is RidgeClassifier else GRID)
    folds = skl.StratifiedKFold(min(10, np.unique(y, return_counts=True)[1].min()), **FOLDS)
    result, expected = nested(search, y, folds), p_by_loop(search, y, folds, class_conditional)
    assert_allclose(result.conformal_p_values(NEW, class_conditional=class_conditional), expected, rtol=1e-12)
    assert_array_equal(result.predict_set(NEW, 0.7, class_conditional=class_conditional), expected > 0.3)


def test_a_gram_matrix_is_cut_to_the_rows_of_each_fold():
    folds = skl.KFold(10, **FOLDS)
    plain = nested(FoldlessSearchCV(LSSVR("linear"), {"alpha": ALPHAS}), VALUES, folds)
    given = nested(FoldlessSearchCV(LSSVR("precomputed"), {"alpha": ALPHAS}), VALUES, folds, X @ X.T)
    assert_allclose(given.predict_interval(NEW @ X.T), plain.predict_interval(NEW), rtol=1e-8)


def test_calls_without_an_answer_say_why():
    search = SEARCHES["LSSVR"]
    with pytest.raises(ValueError, match="return_estimator"):
        nested_cross_validate(search, X, VALUES).predict_interval(NEW)
    repeated = nested(search, VALUES, skl.RepeatedKFold(n_splits=2, n_repeats=2, random_state=0))
    with pytest.raises(ValueError, match="cv tests rows more than once"):
        repeated.predict_interval(NEW)
    for call in (repeated.predict_set, repeated.conformal_p_values):
        with pytest.raises(AttributeError, match="sets are for classifiers"):
            call(NEW)
    with pytest.raises(ValueError, match="coverage=2 must lie"):
        nested(search, VALUES, skl.KFold(5)).predict_interval(NEW, 2)
    with pytest.raises(ValueError, match="coverage=0 must lie"):
        nested(FoldlessSearchCV(LSSVC(), GRID), LABELS, skl.KFold(5)).predict_set(NEW, 0)


def test_a_search_leaves_intervals_and_sets_to_its_best_estimator():
    values, labels = FoldlessSearchCV(LSSVR(), GRID).fit(X, VALUES), FoldlessSearchCV(LSSVC(), GRID).fit(X, LABELS)
    for name in ("predict_interval", "predict_set", "conformal_p_values"):
        assert not hasattr(values, name)
        assert not hasattr(labels, name)
    assert values.best_estimator_.predict_interval(NEW).shape == (7, 2)
    assert labels.best_estimator_.predict_set(NEW).shape == (7, 3)
