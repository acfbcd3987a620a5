"""The ways nested_cross_validate goes, and searches that it repeats."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn import model_selection as skl
from sklearn.base import clone, is_classifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.tuning.criteria import CRITERIA
from foldless.estimators import OneAgainstAllClassifier
from foldless.model_selection import Optimizer, nested_cross_validate
from support.nested import ALPHAS, BY_HAND, CODES, GRID, GROUPS, KFDA, LABELS, VALUES, ZEROS, X, assert_equal_results
from support.refits import signs
from support.tolerances import assert_close

# -- the cheaper way ---------------------------------------------------------------------------------------------------


def wide(n=150):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + 0.5 * y[:, None], y


def test_many_splits_share_one_P_and_few_do_not():
    data, y = wide()
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0], "gamma": [0.1, 1.0]})
    many = nested_cross_validate(search, data, y, cv=skl.StratifiedShuffleSplit(30, test_size=0.1, random_state=0))
    assert many.path.kind == "one fit"
    assert "one matrix P for each alpha of 2 kernel settings" in many.path.reason
    few = nested_cross_validate(search, data, y, cv=2)
    assert few.path.kind == "one P per fold"
    assert "each training part decomposed by itself for 2 kernel settings, which is less work there" in few.path.reason
    assert "one P for each candidate" not in few.path.reason
    # the many splits as few calls, each by the other way
    cv = list(skl.StratifiedShuffleSplit(30, test_size=0.1, random_state=0).split(data, y))
    alone = [nested_cross_validate(search, data, y, cv=[split]) for split in cv[:3]]
    assert {each.path.kind for each in alone} == {"one P per fold"}
    assert_close(many.inner_criterion[:3], np.array([each.inner_criterion[0] for each in alone]))
    for k, each in enumerate(alone):
        assert_close(many.decision[k], each.decision[0])


def test_each_kernel_setting_takes_its_cheaper_way():
    """Explicit features are decomposed for each training part, kernels share one P: the reason names both."""
    data, y = wide()
    cv = skl.StratifiedShuffleSplit(30, test_size=0.1, random_state=0)
    grid = [{"kernel": ["linear"], "alpha": [0.1, 1.0]}, {"kernel": ["rbf"], "gamma": [0.1, 1.0], "alpha": [0.1]}]
    result = nested_cross_validate(FoldlessSearchCV(LSSVC(), grid), data, y, cv=cv)
    assert result.path.kind == "one P per fold"
    assert "one matrix P for each alpha of 2 kernel settings" in result.path.reason
    assert "each training part decomposed by itself for 1 kernel setting," in result.path.reason


@pytest.mark.parametrize("inner", [None, 3], ids=["rows", "folds"])
def test_basis_functions_of_all_rows_serve_every_outer_part(inner):
    data, y = wide()
    cv = skl.StratifiedShuffleSplit(30, test_size=0.05, random_state=0)
    search = FoldlessSearchCV(LSSVC(penalty="coef", gamma=0.1), {"alpha": [0.1]}, cv=inner)
    assert nested_cross_validate(search, data, y, cv=cv).path.kind == "one fit"


def test_searches_that_share_nothing_are_repeated():
    result = nested_cross_validate(FoldlessSearchCV(LSSVC(), GRID, share="none"), X, LABELS, cv=3)
    assert result.path.kind == "refit"
    assert "searched by itself" in result.path.reason


# -- searches that are repeated ----------------------------------------------------------------------------------------

LOOPED = {
    "simplex": FoldlessSearchCV(LSSVC(), method=Optimizer("simplex", max_iter=8)),
    "gradient": FoldlessSearchCV(
        LSSVC(), method=Optimizer("gradient", max_iter=4), criterion=CRITERIA["smooth_error"].with_slope(3.0)
    ),
    "gradient, folds": FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}, method=Optimizer("gradient", max_iter=3), cv=3),
    "feature scales": FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=4, feature_scaling=True)),
    "decisions": FoldlessSearchCV(KFDA(), method=Optimizer("simplex", max_iter=4), criterion="multiclass_error"),
    "a kernel for all": FoldlessSearchCV(LSSVC(), GRID, share="kernel", criterion="auc"),
    "nothing shared": FoldlessSearchCV(LSSVC(), GRID, share="none", cv=skl.KFold(3, shuffle=True, random_state=0)),
    "nothing shared, KFDA": FoldlessSearchCV(KFDA(), GRID, share="none"),
    "nothing shared, ridge": FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}, share="none", criterion="error"),
    "an alpha each": FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=3), share="kernel"),
    "regression": FoldlessSearchCV(LSSVR(), method=Optimizer("gradient", max_iter=4)),
    "ridge": FoldlessSearchCV(Ridge(), method=Optimizer("simplex", max_iter=4), cv=4),
    "kernel ridge": FoldlessSearchCV(KernelRidge(kernel="rbf"), method=Optimizer("gradient", max_iter=3)),
}


@pytest.mark.many_cases
@pytest.mark.parametrize("case", LOOPED)
def test_other_searches_equal_a_fit_on_every_training_part(case):
    search = LOOPED[case]
    y = LABELS if is_classifier(search.estimator) else VALUES
    cv = list(skl.StratifiedKFold(3, shuffle=True, random_state=1).split(X, CODES))
    weight = "sample_weight" if search.criterion in ("press", "error") else None
    search = clone(search).set_params(criterion_weight=weight, refit=False)
    result = nested_cross_validate(search, X, y, cv=cv, params={"sample_weight": ZEROS})
    assert result.path.kind == "refit"
    for k, (train, test) in enumerate(cv):
        single = clone(search).set_params(refit=True).fit(X[train], y[train], sample_weight=ZEROS[train])
        assert repr(result.best_params[k]) == repr(single.best_params_)
        assert result.inner_criterion[k] == pytest.approx(single.best_criterion_, rel=1e-10)
        np.testing.assert_array_equal(result.predictions[k], single.predict(X[test]))
        assert result.test_score[k] == pytest.approx(single.score(X[test], y[test]))
        if y is LABELS:
            np.testing.assert_array_equal(result.decision[k], single.decision_function(X[test]))
        parts = single.best_estimator_
        if isinstance(parts, OneAgainstAllClassifier):
            parts = OneAgainstAllClassifier(parts.estimators)
        inner = search.cv if search.cv is not None else skl.LeaveOneOut()
        held = skl.cross_val_predict(clone(parts), X[train], y[train], cv=inner, params={"sample_weight": ZEROS[train]})
        rows = ZEROS[train] > 0
        score = metrics.accuracy_score if y is LABELS else metrics.r2_score
        assert result.inner_score[k] == pytest.approx(score(y[train][rows], held[rows]), rel=1e-8)
        # every class against the others, by a model of its own
        each, T = single.best_params_, signs(y)[test]
        each = each if isinstance(each, list) else [each] * T.shape[1]
        w = ZEROS[test] / ZEROS[test].sum() if weight else np.full(len(test), 1 / len(test))
        loss = 0.0
        for params, t, column in zip(each, T.T, signs(y).T, strict=True):
            part = clone(search.estimator).set_params(**params).fit(X[train], column[train], sample_weight=ZEROS[train])
            f = part.decision_function(X[test]) if y is LABELS else part.predict(X[test])
            loss += BY_HAND[search.criterion](f, t, w) if search.criterion != "multiclass_error" else 0.0
        if search.criterion == "multiclass_error":
            loss = w @ (single.predict(X[test]) != y[test])
        assert result.outer_criterion[k] == pytest.approx(loss, rel=1e-8)


def test_groups_reach_both_splitters_of_a_repeated_search():
    search = FoldlessSearchCV(LSSVC(), GRID, share="none", cv=skl.GroupKFold(2))
    result = nested_cross_validate(search, X, LABELS, cv=skl.LeaveOneGroupOut(), groups=GROUPS)
    for k in range(5):
        train, test = np.flatnonzero(k != GROUPS), np.flatnonzero(k == GROUPS)
        np.testing.assert_array_equal(result.test_indices[k], test)
        single = clone(search).fit(X[train], LABELS[train], groups=GROUPS[train])
        assert result.best_params[k] == single.best_params_
        assert_close(result.decision[k], single.decision_function(X[test]))


def test_processes_and_threads_give_the_same():
    for search in (
        FoldlessSearchCV(LSSVC(), GRID),
        FoldlessSearchCV(LSSVC(), GRID, share="none"),
    ):
        one, two = (nested_cross_validate(search, X, LABELS, cv=3, n_jobs=jobs) for jobs in (None, 2))
        assert_equal_results(one, two)
        assert one.path == two.path
