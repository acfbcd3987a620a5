"""Intervals and sets that count the tuning: equal to a plain loop of searches, each without a fold."""

import pickle

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
    "average": FoldlessSearchCV(LSSVR(), GRID, average=True),
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


def p_by_loop(search, y, class_conditional):
    """Cross-conformal p-values by their definition."""
    classes = np.unique(y)
    counts, ranks = np.ones(len(classes)), np.ones((len(NEW), len(classes)))

    def margin(decision, label):
        if len(classes) == 2:
            return decision if label == classes[1] else -decision
        return decision[label == classes][0] - decision[label != classes].max()

    folds = skl.StratifiedKFold(min(10, np.unique(y, return_counts=True)[1].min()), **FOLDS)
    for model, test in models_without_folds(search, y, folds):
        for row, decision in zip(test, model.decision_function(X[test]), strict=True):
            for k, label in enumerate(classes):
                if not class_conditional or y[row] == label:
                    counts[k] += 1
                    own = [margin(each, label) for each in model.decision_function(NEW)]
                    ranks[:, k] += margin(decision, y[row]) <= np.array(own) + 1e-8
    return ranks / counts


@pytest.mark.many_cases
@pytest.mark.parametrize("name", SEARCHES)
def test_intervals_are_those_of_searches_without_each_fold(name):
    search, y = SEARCHES[name], np.column_stack([VALUES, X[:, 1] ** 2]) if name == "Ridge" else VALUES
    found = clone(search).fit(X, y).predict_interval(NEW, 0.8)
    assert_allclose(found, intervals_by_loop(search, y, 0.8, skl.KFold(10, **FOLDS)), rtol=1e-8)


def test_intervals_take_weights_and_leave_groups_together():
    search = SEARCHES["LSSVR"]
    expected = intervals_by_loop(search, VALUES, 0.9, skl.KFold(10, **FOLDS), sample_weight=WEIGHT)
    assert_allclose(clone(search).fit(X, VALUES, sample_weight=WEIGHT).predict_interval(NEW), expected, rtol=1e-8)
    search = FoldlessSearchCV(LSSVR(), GRID, cv=skl.GroupKFold(3))
    expected = intervals_by_loop(search, VALUES, 0.9, skl.GroupKFold(7), groups=GROUPS)
    assert_allclose(clone(search).fit(X, VALUES, groups=GROUPS).predict_interval(NEW), expected, rtol=1e-8)


def test_sets_of_grouped_rows_keep_groups_together_and_the_shares_of_the_classes():
    search = FoldlessSearchCV(LSSVC(), GRID, cv=skl.GroupKFold(3))
    fitted = clone(search).fit(X, BINARY, groups=GROUPS)
    folds = skl.StratifiedGroupKFold(len(np.unique(GROUPS)))
    expected = nested_cross_validate(search, X, BINARY, cv=folds, groups=GROUPS, return_estimator=True)
    assert_array_equal(fitted.conformal_p_values(NEW), expected.conformal_p_values(NEW))


def test_searches_that_take_long_are_said_to_be_repeated():
    search = clone(SEARCHES["LSSVR"]).fit(X, VALUES)
    search.history_ = [{**each, "time": 120.0} for each in search.history_]
    with pytest.warns(UserWarning, match=r"method='nested' repeats the search without each of 10 folds.*minutes"):
        search.predict_interval(NEW)


@pytest.mark.many_cases
@pytest.mark.parametrize("class_conditional", [False, True])
@pytest.mark.parametrize("kind", [LSSVC, KFDA, RidgeClassifier])
def test_sets_are_those_of_searches_without_each_fold(kind, class_conditional):
    y = LABELS if kind is LSSVC else BINARY
    search = FoldlessSearchCV(kind(), {"alpha": [0.05, 5.0]} if kind is RidgeClassifier else GRID)
    fitted, expected = clone(search).fit(X, y), p_by_loop(search, y, class_conditional)
    assert_allclose(fitted.conformal_p_values(NEW, class_conditional=class_conditional), expected, rtol=1e-12)
    assert_array_equal(fitted.predict_set(NEW, 0.7, class_conditional=class_conditional), expected > 0.3)


def test_a_gram_matrix_is_cut_to_the_rows_of_each_fold():
    plain = FoldlessSearchCV(LSSVR("linear"), {"alpha": ALPHAS}).fit(X, VALUES)
    given = FoldlessSearchCV(LSSVR("precomputed"), {"alpha": ALPHAS}).fit(X @ X.T, VALUES)
    assert_allclose(given.predict_interval(NEW @ X.T), plain.predict_interval(NEW), rtol=1e-8)


def test_other_methods_are_those_of_the_best_estimator():
    search = clone(SEARCHES["pipeline"]).fit(X, VALUES)
    scaler, best = search.best_estimator_[0], search.best_estimator_[1]
    for method in ("jackknife+", "conformal", "studentised"):
        expected = best.predict_interval(scaler.transform(NEW), 0.8, method=method)
        assert_array_equal(search.predict_interval(NEW, 0.8, method=method), expected)
    search = FoldlessSearchCV(LSSVC(), GRID).fit(X, LABELS)
    best = search.best_estimator_
    assert_array_equal(search.conformal_p_values(NEW, method="conformal"), best.conformal_p_values(NEW))
    expected = best.predict_set(NEW, 0.8, class_conditional=True)
    assert_array_equal(search.predict_set(NEW, 0.8, class_conditional=True, method="conformal"), expected)


def test_rows_are_kept_as_they_were_until_some_come_or_go():
    data = X.copy()
    search = clone(SEARCHES["LSSVR"]).fit(data, VALUES)
    other = pickle.loads(pickle.dumps(search))
    expected = clone(search).fit(X, VALUES).predict_interval(NEW)
    data *= 2
    assert_array_equal(search.predict_interval(NEW), expected)
    assert_array_equal(other.predict_interval(NEW), expected)
    search.forget([0])
    with pytest.raises(ValueError, match=r"method='nested' needs all rows.* fit again"):
        search.predict_interval(NEW)
    assert search.predict_interval(NEW, method="jackknife+").shape == (7, 2)
    assert_array_equal(search.fit(X, VALUES).predict_interval(NEW), expected)


def test_nested_results_have_intervals_of_the_splits_that_were_asked_for():
    search, folds = SEARCHES["LSSVR"], skl.KFold(5)
    result = nested_cross_validate(search, X, VALUES, cv=folds, return_estimator=True)
    assert_allclose(result.predict_interval(NEW, 0.8), intervals_by_loop(search, VALUES, 0.8, folds), rtol=1e-8)


def test_calls_without_an_answer_say_why():
    search = SEARCHES["LSSVR"]
    with pytest.raises(ValueError, match="return_estimator"):
        nested_cross_validate(search, X, VALUES).predict_interval(NEW)
    twice = skl.RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)
    repeated = nested_cross_validate(search, X, VALUES, cv=twice, return_estimator=True)
    with pytest.raises(ValueError, match="cv tests rows more than once"):
        repeated.predict_interval(NEW)
    for call in (repeated.predict_set, repeated.conformal_p_values):
        with pytest.raises(AttributeError, match="sets are for classifiers"):
            call(NEW)
    fitted = clone(search).fit(X, VALUES)
    assert not hasattr(fitted, "predict_set")
    assert not hasattr(FoldlessSearchCV(LSSVC()), "predict_interval")
    with pytest.raises(ValueError, match="coverage=2 must lie"):
        fitted.predict_interval(NEW, 2)
    with pytest.raises(ValueError, match=r"confounds: method='nested'.*jackknife\+"):
        fitted.predict_interval(NEW, confounds=NEW[:, 0])
    with pytest.raises(ValueError, match=r"method='x' is unknown.*'nested', 'jackknife\+', 'conformal', 'studentised'"):
        fitted.predict_interval(NEW, method="x")
    ridge = clone(SEARCHES["Ridge"]).fit(X, VALUES)
    with pytest.raises(ValueError, match=r"method='conformal' is one of foldless' LSSVR, and Ridge has none"):
        ridge.predict_interval(NEW, method="conformal")
    ridge = FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}).fit(X, BINARY)
    with pytest.raises(ValueError, match=r"RidgeClassifier has none; use method='nested'"):
        ridge.predict_set(NEW, method="conformal")
    labels = FoldlessSearchCV(LSSVC(), GRID).fit(X, LABELS)
    with pytest.raises(ValueError, match="coverage=0 must lie"):
        labels.predict_set(NEW, 0)
    with pytest.raises(ValueError, match="method='jackknife' is unknown"):
        labels.predict_set(NEW, method="jackknife")
