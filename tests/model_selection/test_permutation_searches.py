"""Permutation tests of whole searches: every labeling chooses for itself, as by a loop of searches."""

from itertools import chain

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import metrics
from sklearn import model_selection as skl
from sklearn.base import clone, is_classifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import make_scorer
from sklearn.metrics.pairwise import rbf_kernel

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.permutation.strategies import BatchedGrid
from foldless.criteria import resolve
from foldless.model_selection import nested_cross_validate, permutation_test_score
from support.families import (
    ALPHAS,
    BINARY,
    FOUR,
    GRID,
    GROUPS,
    KFDA,
    OUTER,
    OUTPUTS,
    THREE,
    VALUES,
    WEIGHT,
    ZEROS,
    N,
    X,
    named,
)
from support.permutation import permutation_test_in_memory
from support.refits import labelings, p_value, refit, score_of_splits, scorer_of
from support.tolerances import assert_close


def absolute(f, t, w):
    return w @ np.abs(t - f)


KERNELS = [
    {"kernel": ["rbf", "laplacian"], "gamma": [0.1], "alpha": [0.1, 5.0]},
    {"kernel": ["poly"], "degree": [2], "coef0": [0.5], "gamma": [0.1], "alpha": [1.0]},
    {"kernel": ["linear"], "alpha": [10.0, 0.3]},
]
THRESHOLDS = {"threshold": ["pm1", "fisher", "centroid"], "alpha": [0.1, 5.0]}
SEARCHES = {
    "LSSVC, 2 classes": (LSSVC(), BINARY, GRID),
    "LSSVC, 3 classes": (LSSVC(), THREE, GRID),
    "LSSVC, 4 classes, low rank": (LSSVC("linear"), FOUR, {"alpha": ALPHAS}),
    "LSSVC, 2 classes, low rank": (LSSVC("linear"), BINARY, {"alpha": ALPHAS}),
    "LSSVC coef": (LSSVC(penalty="coef"), THREE, GRID),
    "LSSVC coef, 2 classes": (LSSVC(penalty="coef"), BINARY, GRID),
    "LSSVC kernels": (LSSVC(), THREE, KERNELS),
    "LSSVC penalties": (LSSVC(gamma=0.1), BINARY, {"penalty": ["rkhs", "coef"], "alpha": ALPHAS}),
    "LSSVC no intercept": (LSSVC(fit_intercept=False), FOUR, GRID),
    "KFDA, 2 classes": (KFDA(fit_intercept=False), BINARY, GRID),
    "KFDA, 3 classes": (KFDA(), THREE, GRID),
    "KFDA, 4 classes, low rank": (KFDA("linear", priors=[0.1, 0.2, 0.3, 0.4]), FOUR, {"alpha": ALPHAS}),
    "KFDA coef, axes": (KFDA(penalty="coef", gamma=0.1), THREE, {"alpha": [0.1, 5.0], "n_components": [1, 2]}),
    "KFDA thresholds": (KFDA(gamma=0.1), BINARY, THRESHOLDS),
    "LSSVR": (LSSVR(), VALUES, GRID),
    "LSSVR coef": (LSSVR(penalty="coef"), VALUES, GRID),
    "LSSVR outputs": (LSSVR(), OUTPUTS, GRID),
    "Ridge": (Ridge(), VALUES, {"alpha": ALPHAS, "fit_intercept": [True, False]}),
    "Ridge outputs": (Ridge(), OUTPUTS, {"alpha": ALPHAS}),
    "Ridge, hardly any penalty": (Ridge(solver="svd"), VALUES, {"alpha": [1e-12, 1.0]}),
    "RidgeClassifier, 2 classes": (RidgeClassifier(), BINARY, {"alpha": ALPHAS, "fit_intercept": [True, False]}),
    "RidgeClassifier, 3 classes": (RidgeClassifier(), THREE, {"alpha": ALPHAS}),
    "KernelRidge": (KernelRidge(), VALUES, KERNELS),
}
CRITERIA = ["press", "error", "ber", "hinge", "smooth_error", "auc", absolute]
INNER = {
    "leave-one-out": None,
    "KFold": skl.KFold(3, shuffle=True, random_state=0),
    "GroupKFold": skl.GroupKFold(3),
    "ShuffleSplit with a gap": skl.ShuffleSplit(3, train_size=0.6, test_size=0.2, random_state=0),
}


@pytest.fixture
def choices(monkeypatch):
    """The candidates that every labeling chose in every outer split, as they come."""
    found, scores = [], BatchedGrid.scores

    def noted(strategy, *given):
        result = scores(strategy, *given)
        found.extend(result.choices)
        return result

    monkeypatch.setattr(BatchedGrid, "scores", noted)
    return found


def refitted(search, y, order, outer, scoring, w=None, groups=None, data=X):
    """Score and choices of one labeling: the search fitted on every outer training part."""
    held = []
    for train, test in outer:
        one = refit(search, data, y[order], train, groups=groups, sample_weight=w)
        held.append((one, data[test], y[order][test]))
    return score_of_splits(scoring, search, held), [one.best_params_ for one, _, _ in held]


def assert_tuned(search, y, choices, *, scoring=None, w=None, groups=None, outer=OUTER, m=3):
    """Every score and every choice against the loop, and against nested_cross_validate of permuted labels."""
    params = None if w is None else {"sample_weight": w}
    if scoring is None and not is_classifier(search):
        scoring = "neg_mean_squared_error"
    result = permutation_test_score(
        search, X, y, cv=outer, n_permutations=m, scoring=scoring, params=params, groups=groups
    )
    assert result.path.kind == "one fit"
    assert "every permutation chooses its own" in result.path.reason
    found = np.r_[result.score, result.permutation_scores]
    every = labelings(N, m, groups)
    assert len(choices) == len(every) == len(found)
    for order, score, chosen in zip(every, found, choices, strict=True):
        nested = nested_cross_validate(
            search, X, y[order], cv=outer, groups=groups, scoring=scorer_of(scoring, search), params=params
        )
        loops = [(nested.test_score.mean(), nested.best_params)]
        if "'coef'" not in str(search.get_params()):  # otherwise rows that are left out leave their functions behind
            loops.append(refitted(search, y, order, outer, scoring, w, groups))
        for expected, params_of in loops:
            assert chosen == params_of
            assert_close(score, expected, scale=max(1.0, abs(expected)))
    assert result.best_params == choices[0]
    assert result.pvalue == p_value(found[0], found[1:], result.greater_is_better)
    return result


@pytest.mark.many_cases
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("case", SEARCHES)
def test_choices_and_scores_of_all_labelings_equal_refits(case, turn, choices):
    """Criteria, their weights, inner splits, row weights and scores take turns."""
    estimator, y, grid = SEARCHES[case]
    step = list(SEARCHES).index(case) + 2 * turn
    inner = list(INNER)[(step + turn) % len(INNER)]
    criterion, weight = CRITERIA[(step + 3 * turn) % len(CRITERIA)], ("auto", "balanced", "sample_weight")[turn]
    scoring = ("accuracy", "balanced_accuracy", "ber", "f1_macro")[step % 4]
    if not is_classifier(estimator):
        criterion = "press" if step % 2 else absolute
        weight = None if weight == "balanced" else weight
        scoring = ("r2", "neg_mean_squared_error", "correlation", "neg_mean_absolute_error")[step % 4]
    search = FoldlessSearchCV(
        estimator, grid, cv=INNER[inner], criterion=resolve(criterion).with_slope(3.0), criterion_weight=weight
    )
    assert_tuned(
        search,
        y,
        choices,
        scoring=scoring,
        w=(None, ZEROS, WEIGHT)[(step + turn) % 3],
        groups=GROUPS if inner == "GroupKFold" else None,
    )


@pytest.mark.many_cases
@pytest.mark.parametrize("inner", ["leave-one-out", "KFold"])
@pytest.mark.parametrize("weight", ["auto", None, "balanced", "sample_weight"])
@pytest.mark.parametrize("criterion", CRITERIA, ids=named)
def test_every_criterion_and_weighting_equals_refits(criterion, weight, inner, choices):
    """Two to four classes take turns; candidates lie far apart, so that choices differ."""
    turn = CRITERIA.index(criterion) + ("balanced", "sample_weight", None, "auto").index(weight)
    estimator, y = ((LSSVC(), BINARY), (KFDA(), THREE), (LSSVC(), FOUR), (KFDA(), BINARY))[turn % 4]
    grid = {"alpha": [0.01, 30.0], "gamma": [0.02, 0.5]}
    search = FoldlessSearchCV(
        estimator, grid, cv=INNER[inner], criterion=resolve(criterion).with_slope(3.0), criterion_weight=weight
    )
    assert_tuned(search, y, choices, w=ZEROS, m=2, outer=OUTER[:2])
    assert len({str(each) for each in chain(*choices)}) > 1


SCORES = {
    "accuracy": (LSSVC(), THREE),
    "balanced_accuracy": (KFDA(), THREE),
    "ber": (LSSVC(), FOUR),
    "roc_auc": (KFDA(), BINARY),
    "matthews_corrcoef": (KFDA(), FOUR),
    "hinge": (LSSVC(), BINARY),
    "r2": (LSSVR(), OUTPUTS),
    "neg_mean_squared_error": (LSSVR(), OUTPUTS),
    "correlation": (LSSVR(), VALUES),
    "neg_median_absolute_error": (LSSVR(), VALUES),
}


def negative_hinge(truth, decision):
    return -metrics.hinge_loss(truth, decision)


@pytest.mark.many_cases
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("scoring", SCORES)
def test_scores_of_all_kinds_of_a_search_equal_refits(scoring, choices):
    """At once or one by one, of labels, of decisions and of values."""
    estimator, y = SCORES[scoring]
    name = make_scorer(negative_hinge, response_method="decision_function") if scoring == "hinge" else scoring
    result = assert_tuned(FoldlessSearchCV(estimator, GRID), y, choices, scoring=name, m=4)
    assert result.greater_is_better == (scoring != "ber")


def test_scores_of_decisions_are_not_those_of_labels():
    """A score of decisions is not one of labels: hinge losses differ where accuracies agree."""
    search = FoldlessSearchCV(LSSVC(), GRID)
    scoring = make_scorer(negative_hinge, response_method="decision_function")
    result = permutation_test_score(search, X, BINARY, cv=OUTER, n_permutations=5, scoring=scoring)
    assert len(np.unique(result.permutation_scores)) == 5


def test_choices_differ_between_labelings(choices):
    """Otherwise nothing here would tell a choice for each labeling from one for all."""
    permutation_test_score(FoldlessSearchCV(LSSVC(), GRID), X, THREE, cv=OUTER, n_permutations=20)
    assert len({str(each) for each in choices}) > 5


def test_overlapping_and_partial_outer_splits_equal_refits(choices):
    cv = skl.ShuffleSplit(4, train_size=0.6, test_size=0.25, random_state=0)
    assert_tuned(FoldlessSearchCV(KFDA(), GRID), THREE, choices, outer=list(cv.split(X)))


def test_training_on_all_rows_of_positive_weight_equals_refits(choices):
    """Rows of weight 0 are tested by a model of all the others."""
    idle = ZEROS == 0
    outer = [(np.flatnonzero(~idle), np.flatnonzero(idle)), OUTER[0]]
    for cv in (None, skl.KFold(3)):
        choices.clear()
        assert_tuned(FoldlessSearchCV(LSSVC(), GRID, cv=cv), BINARY, choices, w=ZEROS, outer=outer, m=4)


@pytest.mark.parametrize("criterion", ["error", "press"])
def test_largest_alpha_of_equal_losses_is_taken(criterion, choices):
    """Separated classes: no candidate errs; all alphas tie, and so do the copies of a candidate for any criterion."""
    data = X + 20 * (BINARY == "yes")[:, None]
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 3.0, 1.0], "gamma": [0.001, 0.001]}, criterion=criterion)
    result = permutation_test_score(search, data, BINARY, cv=OUTER, n_permutations=4)
    for order, score, chosen in zip(
        labelings(N, 4), np.r_[result.score, result.permutation_scores], choices, strict=True
    ):
        expected, params = refitted(search, BINARY, order, OUTER, None, data=data)
        assert_close(score, expected)
        assert chosen == params
    if criterion == "error":
        assert result.best_params == [{"alpha": 3.0, "gamma": 0.001}] * 3


def test_searches_where_a_training_part_lacks_a_class_equal_refits():
    """The search there knows fewer classes; what it lacks it never names."""
    y = np.where(np.isin(np.arange(N), [3, 20]), 2, FOUR % 2)
    outer = list(skl.KFold(2).split(X))
    search = FoldlessSearchCV(KFDA(threshold="centroid"), GRID)
    result = permutation_test_score(search, X, y, cv=skl.KFold(2), n_permutations=20)
    every = labelings(N, 20)
    lacking = [any(len(np.unique(y[order][train])) < 3 for train, _ in outer) for order in every]
    assert 3 < sum(lacking) < 18
    expected = [refitted(search, y, order, outer, None)[0] for order in every]
    assert_close(np.r_[result.score, result.permutation_scores], expected)


def test_a_training_part_of_one_class_votes_for_it():
    y = np.isin(np.arange(N), [3, 20]).astype(int)
    outer = list(skl.KFold(2).split(X))
    result = permutation_test_score(FoldlessSearchCV(LSSVC(), GRID), X, y, cv=skl.KFold(2), n_permutations=20)
    seen = 0
    for order, score in zip(labelings(N, 20)[1:], result.permutation_scores, strict=True):
        alone = [number for number, (train, _) in enumerate(outer) if not y[order][train].any()]
        if alone:
            seen += 1
            [number] = alone
            train, test = outer[1 - number]
            other = clone(FoldlessSearchCV(LSSVC(), GRID)).fit(X[train], y[order][train])
            assert_close(score, (1 - 2 / len(outer[number][1]) + other.score(X[test], y[order][test])) / 2)
    assert seen > 3


@pytest.mark.parametrize("form", ["csr", "precomputed", "frame", "float32"])
def test_containers_give_the_same_scores_and_choices(form, choices):
    """A precomputed kernel is cut on both sides."""
    grid = {"alpha": ALPHAS} if form == "precomputed" else {"alpha": ALPHAS, "gamma": [0.1]}
    plain = permutation_test_score(FoldlessSearchCV(LSSVC(gamma=0.1), grid), X, THREE, cv=3, n_permutations=9)
    first = [list(each) for each in choices]
    choices.clear()
    data, y = {
        "csr": (sp.csr_array(X), THREE),
        "precomputed": (rbf_kernel(X, gamma=0.1), THREE),
        "frame": (pd.DataFrame(X, index=np.arange(N)[::-1]), pd.Series(THREE, np.arange(N)[::-1])),
        "float32": (X.astype(np.float32), THREE),
    }[form]
    estimator = LSSVC("precomputed") if form == "precomputed" else LSSVC()
    result = permutation_test_score(FoldlessSearchCV(estimator, grid), data, y, cv=3, n_permutations=9)
    assert [[each["alpha"] for each in row] for row in choices] == [[each["alpha"] for each in row] for row in first]
    assert_close(result.permutation_scores, plain.permutation_scores)
    assert result.score == plain.score


@pytest.mark.many_cases
@pytest.mark.parametrize("case", ["LSSVC, 3 classes", "KFDA, 4 classes, low rank", "LSSVC coef", "LSSVR outputs"])
@pytest.mark.parametrize("inner", [None, skl.KFold(3)], ids=["leave-one-out", "KFold"])
def test_batches_of_labelings_change_nothing(case, inner, choices):
    estimator, y, grid = SEARCHES[case]
    search = FoldlessSearchCV(estimator, grid, cv=inner)
    whole = permutation_test_score(search, X, y, cv=OUTER, n_permutations=12)
    before = list(choices)
    for together, limit in ((5, 2**29), (256, 1), (5, 8 * 8 * N * 3 * 2), (1, 1)):
        choices.clear()
        options = {"cv": OUTER, "n_permutations": 12, "labelings_of_search": together}
        other = permutation_test_in_memory(limit, search, X, y, **options)
        assert_close(other.permutation_scores, whole.permutation_scores)
        assert choices == before
        assert other.best_params == whole.best_params


def test_strata_of_a_search_equal_refits(choices):
    """Labels stay within strata that have nothing to do with the splits."""
    search = FoldlessSearchCV(LSSVC(), GRID)
    strata = np.repeat(["b", "a", "c"], N // 3)
    result = permutation_test_score(search, X, THREE, cv=OUTER, n_permutations=5, null=strata, random_state=3)
    for order, score, chosen in zip(
        labelings(N, 5, strata, 3), np.r_[result.score, result.permutation_scores], choices, strict=True
    ):
        assert_close(score, refitted(search, THREE, order, OUTER, None)[0])
        assert chosen == refitted(search, THREE, order, OUTER, None)[1]


def test_class_weights_of_a_search_that_stay_equal_refits(choices):
    """Those of the true labels are sample weights for every labeling."""
    rows = np.select([THREE == "ant", THREE == "bee"], [3.0, 1.0], 0.5)
    plain = FoldlessSearchCV(LSSVC(), GRID)
    result = permutation_test_score(plain, X, THREE, cv=OUTER, n_permutations=4, params={"sample_weight": rows})
    for order, score, chosen in zip(
        labelings(N, 4), np.r_[result.score, result.permutation_scores], choices, strict=True
    ):
        expected, params = refitted(plain, THREE, order, OUTER, None, w=rows)
        assert_close(score, expected)
        assert chosen == params
