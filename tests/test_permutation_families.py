"""Permutation tests of whole searches, of families and of patterns against loops of refits; p-values under the null.

The loops fit the estimators themselves: the search on every outer training part of every labeling, a model of every
member at the features of every other, the linear model of every labeling. Statistics (marked slow) look at the p-values
of a few hundred small problems without any effect, and at procedures that are known to be wrong.
"""

from itertools import chain

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cases import assert_close
from scipy import stats
from sklearn import metrics
from sklearn import model_selection as skl
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import check_scoring, make_scorer
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant, reference
from foldless.model_selection import (
    PermutationTestResult,
    RefitWarning,
    _permutation_way,
    nested_cross_validate,
    permutation_test_pattern,
    permutation_test_score,
)
from foldless.model_selection._labelings import Batched
from foldless.model_selection._permutation_search import BatchedGrid
from foldless.permutation.labelings import Labelings
from foldless.permutation.metrics import METRICS

KFDA = KernelFisherDiscriminant
N, D = 36, 4
RNG = np.random.default_rng(4)
FOUR = RNG.permutation(np.arange(N) % 4)
X = RNG.normal(size=(N, D)) + 0.6 * FOUR[:, None] * [1, 0, -1, 0]
THREE = np.array(["ant", "bee", "cat"])[np.minimum(FOUR, 2)]  # cats are half of all
BINARY = np.array(["no", "yes"])[(FOUR > 1).astype(int)]
VALUES = X[:, 0] ** 2 + X[:, 1] + RNG.normal(size=N)
OUTPUTS = np.column_stack([VALUES, X[:, 2] + RNG.normal(size=N)])
GROUPS = np.arange(N) % 6
WEIGHT = RNG.uniform(0.3, 3.0, N)
ZEROS = WEIGHT * (np.arange(N) % 14 != 4)  # rows 4, 18 and 32 neither train nor choose
CONFOUNDS = np.column_stack([X[:, 0] + RNG.normal(size=N), FOUR % 2 - 0.5])


def labelings(m, strata=None, seed=0):
    """Row numbers: the true order, then m permutations as scikit-learn draws them, within strata if given."""
    rng, rows = check_random_state(seed), np.arange(N)
    strata = np.zeros(N) if strata is None else strata
    drawn = [rows]
    for _ in range(m):
        order = rows.copy()
        for level in np.unique(strata):
            order[strata == level] = rng.permutation(order[strata == level])
        drawn.append(order)
    return np.array(drawn)


def scorer_of(scoring, estimator):
    """scikit-learn's scorer; foldless has a few names more."""
    own = METRICS.get(scoring) if isinstance(scoring, str) else None
    return check_scoring(estimator, scoring=own.scorer() if scoring in ("ber", "correlation") else scoring)


def by_hand(score, null, greater=True):
    """(1 + number of null scores at least as good) / (1 + m)."""
    sign = 1 if greater else -1
    return (1 + np.sum(sign * np.asarray(null) >= sign * np.asarray(score) - 1e-10, axis=0)) / (1 + len(null))


# -- the whole search ------------------------------------------------------------------------------------------------


def absolute(f, t, w):
    return w @ np.abs(t - f)


def named(given):
    return given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)


ALPHAS = [0.05, 1.0, 20.0]
GRID = {"alpha": [0.1, 5.0], "gamma": [0.03, 0.3]}
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
    "LSSVC coef, all": (LSSVC(penalty="coef", basis="all"), BINARY, GRID),
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
OUTER = list(skl.KFold(3, shuffle=True, random_state=1).split(X))


@pytest.fixture
def choices(monkeypatch):
    """The candidates that every labeling chose in every outer split, as they come."""
    found, scores = [], BatchedGrid.scores

    def run_with_progress(way, *given):
        table = scores(way, *given)
        found.extend([[way.listed[int(place)] for place in row[1:]] for row in table])
        return table

    monkeypatch.setattr(BatchedGrid, "scores", run_with_progress)
    return found


def refitted(search, y, order, outer, scoring, w=None, groups=None, data=X):
    """Mean score and choices of one labeling: the search fitted on every outer training part."""
    scores, chosen = [], []
    for train, test in outer:
        inside = None if groups is None else groups[train]
        one = clone(search).fit(
            data[train], y[order][train], groups=inside, sample_weight=None if w is None else w[train]
        )
        scores.append(scorer_of(scoring, one)(one, data[test], y[order][test]))
        chosen.append(one.best_params_)
    return np.mean(scores), chosen


def assert_tuned(search, y, choices, *, scoring=None, w=None, groups=None, outer=OUTER, m=3):
    """Every score and every choice against the loop, and against nested_cross_validate of permuted labels."""
    params = None if w is None else {"sample_weight": w}
    result = permutation_test_score(
        search, X, y, cv=outer, n_permutations=m, scoring=scoring, params=params, groups=groups
    )
    assert result.path.kind == "one fit"
    assert "every permutation chooses its own" in result.path.reason
    found = np.r_[result.score, result.permutation_scores]
    every = labelings(m, groups)
    assert len(choices) == len(every) == len(found)
    for order, score, chosen in zip(every, found, choices, strict=True):
        nested = nested_cross_validate(
            search, X, y[order], cv=outer, groups=groups, scoring=scorer_of(scoring, search), params=params
        )
        loops = [(nested.test_score.mean(), nested.best_params)]
        if getattr(search.estimator, "basis", "train") == "train":  # otherwise rows left out leave something behind
            loops.append(refitted(search, y, order, outer, scoring, w, groups))
        for expected, params_of in loops:
            assert chosen == params_of
            assert_close(score, expected, scale=max(1.0, abs(expected)))
    assert result.best_params == choices[0]
    assert result.pvalue == by_hand(found[0], found[1:], result.greater_is_better)
    return result


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("case", SEARCHES)
def test_every_permutation_chooses_for_itself(case, turn, choices):
    """Criteria, their weights, inner splits, row weights and scores take turns."""
    estimator, y, grid = SEARCHES[case]
    step = list(SEARCHES).index(case) + 2 * turn
    inner = list(INNER)[(step + turn) % len(INNER)]
    criterion, weight = CRITERIA[(step + 3 * turn) % len(CRITERIA)], (None, "balanced", "sample_weight")[turn]
    scoring = ("accuracy", "balanced_accuracy", "ber", "f1_macro")[step % 4]
    if not is_classifier(estimator):
        criterion = "press" if step % 2 else absolute
        weight = None if weight == "balanced" else weight
        scoring = ("r2", "neg_mean_squared_error", "correlation", "neg_mean_absolute_error")[step % 4]
    search = FoldlessSearchCV(estimator, grid, cv=INNER[inner], criterion=criterion, criterion_weight=weight, slope=3.0)
    assert_tuned(
        search,
        y,
        choices,
        scoring=scoring,
        w=(None, ZEROS, WEIGHT)[(step + turn) % 3],
        groups=GROUPS if inner == "GroupKFold" else None,
    )


@pytest.mark.parametrize("inner", ["leave-one-out", "KFold"])
@pytest.mark.parametrize("weight", [None, "balanced", "sample_weight"])
@pytest.mark.parametrize("criterion", CRITERIA, ids=named)
def test_every_criterion_and_weighting_of_rows(criterion, weight, inner, choices):
    """Two to four classes take turns; candidates lie far apart, so that choices differ."""
    turn = CRITERIA.index(criterion) + ("balanced", "sample_weight", None).index(weight)
    estimator, y = ((LSSVC(), BINARY), (KFDA(), THREE), (LSSVC(), FOUR), (KFDA(), BINARY))[turn % 4]
    grid = {"alpha": [0.01, 30.0], "gamma": [0.02, 0.5]}
    search = FoldlessSearchCV(estimator, grid, cv=INNER[inner], criterion=criterion, criterion_weight=weight, slope=3.0)
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


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("scoring", SCORES)
def test_scores_of_all_kinds(scoring, choices):
    """At once or one by one, of labels, of decisions and of values."""
    estimator, y = SCORES[scoring]
    name = make_scorer(negative_hinge, response_method="decision_function") if scoring == "hinge" else scoring
    result = assert_tuned(FoldlessSearchCV(estimator, GRID), y, choices, scoring=name, m=4)
    assert result.greater_is_better == (scoring != "ber")


def test_decisions_count_from_zero():
    """A score of decisions is not one of labels: hinge losses differ where accuracies agree."""
    search = FoldlessSearchCV(LSSVC(), GRID)
    scoring = make_scorer(negative_hinge, response_method="decision_function")
    result = permutation_test_score(search, X, BINARY, cv=OUTER, n_permutations=5, scoring=scoring)
    assert len(np.unique(result.permutation_scores)) == 5


def test_choices_differ_between_labelings(choices):
    """Otherwise nothing here would tell a choice for each labeling from one for all."""
    permutation_test_score(FoldlessSearchCV(LSSVC(), GRID), X, THREE, cv=OUTER, n_permutations=20)
    assert len({str(each) for each in choices}) > 5


def test_the_outer_splits_may_overlap_and_leave_rows_out(choices):
    cv = skl.ShuffleSplit(4, train_size=0.6, test_size=0.25, random_state=0)
    assert_tuned(FoldlessSearchCV(KFDA(), GRID), THREE, choices, outer=list(cv.split(X)))


def test_a_split_may_train_on_all_rows_of_positive_weight(choices):
    """Rows of weight 0 are tested by a model of all the others."""
    idle = ZEROS == 0
    outer = [(np.flatnonzero(~idle), np.flatnonzero(idle)), OUTER[0]]
    for cv in (None, skl.KFold(3)):
        choices.clear()
        assert_tuned(FoldlessSearchCV(LSSVC(), GRID, cv=cv), BINARY, choices, w=ZEROS, outer=outer, m=4)


@pytest.mark.parametrize("criterion", ["error", "press"])
def test_of_equal_losses_the_largest_alpha_is_taken(criterion, choices):
    """Separated classes: no candidate errs; all alphas tie, and so do the copies of a candidate for any criterion."""
    data = X + 20 * (BINARY == "yes")[:, None]
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 3.0, 1.0], "gamma": [0.001, 0.001]}, criterion=criterion)
    result = permutation_test_score(search, data, BINARY, cv=OUTER, n_permutations=4)
    for order, score, chosen in zip(labelings(4), np.r_[result.score, result.permutation_scores], choices, strict=True):
        expected, params = refitted(search, BINARY, order, OUTER, None, data=data)
        assert_close(score, expected)
        assert chosen == params
    if criterion == "error":
        assert result.best_params == [{"alpha": 3.0, "gamma": 0.001}] * 3


def test_a_class_that_a_permutation_takes_from_a_training_part():
    """The search there knows fewer classes; what it lacks it never names."""
    y = np.where(np.isin(np.arange(N), [3, 20]), 2, FOUR % 2)
    outer = list(skl.KFold(2).split(X))
    search = FoldlessSearchCV(KFDA(threshold="centroid"), GRID)
    result = permutation_test_score(search, X, y, cv=skl.KFold(2), n_permutations=20)
    every = labelings(20)
    lacking = [any(len(np.unique(y[order][train])) < 3 for train, _ in outer) for order in every]
    assert 3 < sum(lacking) < 18
    expected = [refitted(search, y, order, outer, None)[0] for order in every]
    assert_close(np.r_[result.score, result.permutation_scores], expected)


def test_a_training_part_of_one_class_votes_for_it():
    y = np.isin(np.arange(N), [3, 20]).astype(int)
    outer = list(skl.KFold(2).split(X))
    result = permutation_test_score(FoldlessSearchCV(LSSVC(), GRID), X, y, cv=skl.KFold(2), n_permutations=20)
    seen = 0
    for order, score in zip(labelings(20)[1:], result.permutation_scores, strict=True):
        alone = [number for number, (train, _) in enumerate(outer) if not y[order][train].any()]
        if alone:
            seen += 1
            [number] = alone
            train, test = outer[1 - number]
            other = clone(FoldlessSearchCV(LSSVC(), GRID)).fit(X[train], y[order][train])
            assert_close(score, (1 - 2 / len(outer[number][1]) + other.score(X[test], y[order][test])) / 2)
    assert seen > 3


@pytest.mark.parametrize("form", ["csr", "precomputed", "frame", "float32"])
def test_containers(form, choices):
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


@pytest.mark.parametrize("case", ["LSSVC, 3 classes", "KFDA, 4 classes, low rank", "LSSVC coef", "LSSVR outputs"])
@pytest.mark.parametrize("inner", [None, skl.KFold(3)], ids=["leave-one-out", "KFold"])
def test_chunks_and_blocks_change_nothing(case, inner, choices, monkeypatch):
    estimator, y, grid = SEARCHES[case]
    search = FoldlessSearchCV(estimator, grid, cv=inner)
    whole = permutation_test_score(search, X, y, cv=OUTER, n_permutations=12)
    before = list(choices)
    for together, limit in ((5, 2**29), (256, 1), (5, 8 * 8 * N * 3 * 2), (1, 1)):
        choices.clear()
        monkeypatch.setattr(_permutation_way, "TOGETHER", together)
        other = permutation_test_score(search, X, y, cv=OUTER, n_permutations=12, memory_limit=limit)
        assert_close(other.permutation_scores, whole.permutation_scores)
        assert choices == before
        assert other.best_params == whole.best_params


def test_strata_of_a_search(choices):
    """Labels stay within strata that have nothing to do with the splits."""
    search = FoldlessSearchCV(LSSVC(), GRID)
    strata = np.repeat(["b", "a", "c"], N // 3)
    result = permutation_test_score(search, X, THREE, cv=OUTER, n_permutations=5, strata=strata, random_state=3)
    for order, score, chosen in zip(
        labelings(5, strata, 3), np.r_[result.score, result.permutation_scores], choices, strict=True
    ):
        assert_close(score, refitted(search, THREE, order, OUTER, None)[0])
        assert chosen == refitted(search, THREE, order, OUTER, None)[1]


def test_class_weights_may_stay_with_the_rows(choices):
    """weights="fixed": those of the true labels are row weights for every labeling."""
    weighted = FoldlessSearchCV(LSSVC(class_weight={"ant": 3.0, "bee": 1.0, "cat": 0.5}), GRID)
    with pytest.warns(UserWarning, match="weights='fixed' keeps weights that were made from the true labels"):
        result = permutation_test_score(weighted, X, THREE, cv=OUTER, n_permutations=4, weights="fixed")
    rows = np.select([THREE == "ant", THREE == "bee"], [3.0, 1.0], 0.5)
    plain = FoldlessSearchCV(LSSVC(), GRID)
    for order, score, chosen in zip(labelings(4), np.r_[result.score, result.permutation_scores], choices, strict=True):
        expected, params = refitted(plain, THREE, order, OUTER, None, w=rows)
        assert_close(score, expected)
        assert chosen == params


def of_estimators(estimator, rows, y):
    """A scorer that is a function."""
    return np.mean(estimator.predict(rows) == y)


OTHER_WAYS = {
    "multiclass_error": (FoldlessSearchCV(KFDA(), GRID, criterion="multiclass_error"), THREE, {}),
    "gradient": (FoldlessSearchCV(LSSVC(), method="gradient", max_iter=3), BINARY, {}),
    "share": (FoldlessSearchCV(LSSVC(), GRID, share="none"), THREE, {}),
    "class weights": (FoldlessSearchCV(LSSVC(class_weight="balanced"), GRID), THREE, {}),
    "class weights in the grid": (
        FoldlessSearchCV(RidgeClassifier(), [{"alpha": ALPHAS}, {"class_weight": [{"no": 3.0}], "alpha": ALPHAS}]),
        BINARY,
        {},
    ),
    "a pipeline": (make_pipeline(StandardScaler(), FoldlessSearchCV(LSSVC(), GRID)), THREE, {}),
    "a pipeline that sees y": (make_pipeline(SelectKBest(k=2), FoldlessSearchCV(LSSVC(), GRID)), THREE, {}),
    "threshold loo": (FoldlessSearchCV(KFDA(threshold="loo"), GRID), BINARY, {}),
    "threshold loo in the grid": (FoldlessSearchCV(KFDA(gamma=0.1), {"threshold": ["pm1", "loo"]}), BINARY, {}),
    "probabilities": (FoldlessSearchCV(LSSVC(calibration="sigmoid"), GRID), BINARY, {"scoring": "neg_log_loss"}),
    "a function": (FoldlessSearchCV(LSSVC(), GRID), THREE, {"scoring": of_estimators}),
    "strata inside": (FoldlessSearchCV(LSSVC(), GRID, cv=skl.StratifiedKFold(2)), THREE, {}),
    "folds of classes inside": (FoldlessSearchCV(LSSVC(), GRID, cv=3), BINARY, {}),
    "weights that follow": (FoldlessSearchCV(LSSVC(), GRID), THREE, {"weights": "permuted"}),
    "decisions up to a constant": (FoldlessSearchCV(KFDA(), GRID), THREE, {"scoring": "top"}),
}


def second_best(truth, decision):
    return metrics.top_k_accuracy_score(truth, decision, k=2)


@pytest.mark.parametrize("case", OTHER_WAYS)
def test_other_searches_are_repeated_and_say_so(case):
    """Weighted rows, by nested_cross_validate of every labeling."""
    search, y, options = OTHER_WAYS[case]
    if options.get("scoring") == "top":
        options = {"scoring": make_scorer(second_best, response_method="decision_function")}
    name = "foldlesssearchcv__sample_weight" if isinstance(search, Pipeline) else "sample_weight"
    why = "drawn from the labels" if "inside" in case else "for every permutation"
    with pytest.warns(RefitWarning, match=rf"refitted for every permutation: the search is repeated.*{why}") as told:
        result = permutation_test_score(search, X, y, cv=OUTER, n_permutations=3, params={name: ZEROS}, **options)
    assert len(told) == 1
    assert result.path.kind == "refit"
    follows = options.get("weights") == "permuted"
    expected = [
        nested_cross_validate(
            search,
            X,
            y[order],
            cv=OUTER,
            scoring=options.get("scoring"),
            params={"sample_weight": ZEROS[order] if follows else ZEROS},
        ).test_score.mean()
        for order in labelings(3)
    ]
    assert_close(np.r_[result.score, result.permutation_scores], expected)
    assert result.pvalue == by_hand(expected[0], expected[1:])


def test_splits_drawn_anew_are_those_of_permuted_labels():
    search, cv = FoldlessSearchCV(LSSVC(), GRID), skl.StratifiedKFold(3)
    with pytest.warns(RefitWarning, match="the search is repeated"):
        result = permutation_test_score(search, X, THREE, cv=cv, n_permutations=3, resplit=True)
    expected = [nested_cross_validate(search, X, THREE[order], cv=cv).test_score.mean() for order in labelings(3)]
    assert_close(np.r_[result.score, result.permutation_scores], expected)


def test_without_splits_five_folds_are_taken_by_class():
    search = FoldlessSearchCV(LSSVC(), GRID)
    ours = permutation_test_score(search, X, THREE, n_permutations=3)
    other = permutation_test_score(search, X, THREE, cv=skl.StratifiedKFold(5), n_permutations=3)
    np.testing.assert_array_equal(ours.permutation_scores, other.permutation_scores)


def test_a_search_has_no_confounds():
    with pytest.raises(ValueError, match="confounds are not known to a search"):
        permutation_test_score(FoldlessSearchCV(LSSVC(), GRID), X, THREE, confounds=X[:, 0])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([(np.arange(25), np.arange(20, N))], "cv: split 0 tests rows that it trains on"),
        ([OUTER[0], (np.flatnonzero(THREE != "bee"), np.flatnonzero(THREE == "bee"))], "split 1 lacks class bee"),
        ([(np.r_[OUTER[0][0], OUTER[0][0][:1]], OUTER[0][1])], "split 0 repeats rows"),
    ],
)
def test_outer_splits_that_make_no_sense(cv, message):
    with pytest.raises(ValueError, match=message):
        permutation_test_score(FoldlessSearchCV(LSSVC(), GRID), X, THREE, cv=cv)


def test_a_search_that_cannot_be_done_is_refused_as_by_fit():
    for search, message in (
        (FoldlessSearchCV(LSSVC(), {"alpha": [-1.0]}), "alpha=-1.0"),
        (FoldlessSearchCV(LSSVC(), GRID, criterion="nonsense"), "criterion='nonsense' is unknown"),
        (FoldlessSearchCV(SVC(), GRID), "estimator=SVC is not a least-squares model"),
    ):
        with pytest.raises(ValueError, match=message):
            permutation_test_score(search, X, THREE, cv=OUTER)
    with pytest.raises(ValueError, match="scoring='ber' is for class labels"):
        permutation_test_score(FoldlessSearchCV(LSSVR(), GRID), X, VALUES, cv=OUTER, scoring="ber")


def test_parameters_of_a_search_that_nobody_takes_are_named():
    """They must not take the weights with them."""
    params = {"nonsense": X, "sample_weight": WEIGHT}
    with pytest.raises(ValueError, match=r"params: .*'nonsense'.*only sample_weight"):
        permutation_test_score(FoldlessSearchCV(LSSVC(), GRID), X, THREE, cv=OUTER, params=params)


def test_inner_splits_must_be_drawn_anew_for_every_training_part():
    search = FoldlessSearchCV(LSSVC(), GRID, cv=[(np.arange(10), np.arange(10, 20))])
    with pytest.raises(ValueError, match="of the search must be a number or a splitter"):
        permutation_test_score(search, X, THREE, cv=OUTER)


@pytest.mark.filterwarnings("ignore:weights='fixed' keeps weights")
@pytest.mark.parametrize("where", ["a pipeline", "a criterion of decisions"])
def test_class_weights_cannot_stay_where_every_labeling_is_searched(where):
    criterion = "press" if where == "a pipeline" else "multiclass_error"
    search = FoldlessSearchCV(RidgeClassifier(class_weight="balanced"), {"alpha": ALPHAS}, criterion=criterion)
    given = make_pipeline(StandardScaler(), search) if where == "a pipeline" else search
    with pytest.raises(ValueError, match=r"weights='fixed': .* its class weights follow the labels"):
        permutation_test_score(given, X, THREE, cv=OUTER, weights="fixed")


# -- families --------------------------------------------------------------------------------------------------------

TIMES = np.stack([X, 0.5 * X + RNG.normal(size=X.shape), RNG.normal(size=X.shape)], 2)  # (samples, features, times)
MEMBERS = [np.ascontiguousarray(TIMES[:, :, time]) for time in range(3)]
BLOCKS = [X, X[:, :1], np.hstack([X, MEMBERS[1], MEMBERS[2], X**2, X**3])]  # four, one and twenty features
CV = skl.KFold(3, shuffle=True, random_state=0)
FAMILIES = {
    "LSSVC": (LSSVC(gamma=0.1), THREE, {}),
    "LSSVC linear": (LSSVC("linear"), FOUR, {"scoring": "ber"}),
    "KFDA": (KFDA(gamma=0.1), FOUR, {"scoring": "balanced_accuracy"}),
    "KFDA linear": (KFDA("linear", threshold="centroid"), BINARY, {"scoring": "roc_auc"}),
    "LSSVR": (LSSVR(gamma=0.1), OUTPUTS, {}),
    "Ridge": (Ridge(), VALUES, {"scoring": "correlation"}),
    "RidgeClassifier": (RidgeClassifier(), THREE, {"scoring": "f1_macro"}),
    "KernelRidge": (KernelRidge(kernel="rbf", gamma=0.1), VALUES, {"scoring": "neg_mean_squared_error"}),
    "weights": (LSSVC("linear"), THREE, {"params": {"sample_weight": ZEROS}}),
    "permuted weights": (LSSVC("linear"), THREE, {"params": {"sample_weight": WEIGHT}, "weights": "permuted"}),
    "class weights": (KFDA("linear", class_weight="balanced"), THREE, {"weights": "fixed"}),
    "confounds": (LSSVC("linear"), THREE, {"confounds": CONFOUNDS}),
    "confounds in score": (LSSVC(gamma=0.1), BINARY, {"confounds": CONFOUNDS, "confounds_in_score": True}),
    "groups": (LSSVC(gamma=0.1), THREE, {"groups": GROUPS, "cv": skl.GroupKFold(3)}),
    "strata": (LSSVC(gamma=0.1), THREE, {"strata": GROUPS % 2}),
    "resplit": (LSSVC("linear"), BINARY, {"cv": skl.StratifiedKFold(3), "resplit": True, "memory_limit": 1}),
    "one by one": (LSSVC(gamma=0.1, calibration="sigmoid"), BINARY, {"scoring": "neg_log_loss"}),
    "pipeline": (make_pipeline(StandardScaler(), LSSVC("linear")), THREE, {}),
    "search": (FoldlessSearchCV(LSSVC(), GRID), THREE, {}),
    "memory": (LSSVC("linear"), THREE, {"memory_limit": 1}),
}


def assert_alone(result, members, estimator, y, options, m=9):
    """Every member as a call of its own; the maximum over members by hand."""
    alone = [permutation_test_score(estimator, each, y, n_permutations=m, **options) for each in members]
    assert_close(result.score, [each.score for each in alone], rtol=1e-12)
    assert_close(result.permutation_scores, np.stack([each.permutation_scores for each in alone], 1), rtol=1e-12)
    np.testing.assert_array_equal(result.pvalue, [each.pvalue for each in alone])
    greater = result.greater_is_better
    best = (np.max if greater else np.min)(result.permutation_scores, 1)
    np.testing.assert_array_equal(result.max_scores, best)
    np.testing.assert_array_equal(result.pvalue_fwe, by_hand(result.score, best[:, None], greater))
    assert result.score.shape == result.pvalue.shape == result.pvalue_fwe.shape == (len(members),)
    assert str(result.path) == str(alone[0].path)


@pytest.mark.filterwarnings("ignore:weights='fixed' keeps weights")
@pytest.mark.parametrize("form", ["times", "blocks"])
@pytest.mark.parametrize("case", FAMILIES)
def test_every_member_is_a_test_of_its_own(case, form):
    """The same permutations for all: a call for each member with the same seed."""
    estimator, y, options = FAMILIES[case]
    options = {"cv": CV, **options}
    given, members = (TIMES, MEMBERS) if form == "times" else (BLOCKS, BLOCKS)
    result = permutation_test_score(estimator, given, y, n_permutations=9, **options)
    assert_alone(result, members, estimator, y, options)


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize(
    "estimator",
    [SVC(), make_pipeline(SelectKBest(k=1), LSSVC()), FoldlessSearchCV(LSSVC(), GRID, share="none")],
    ids=["SVC", "pipeline", "search"],
)
def test_members_that_are_refitted(estimator):
    options = {"cv": CV}
    result = permutation_test_score(estimator, TIMES, BINARY, n_permutations=3, **options)
    assert result.path.kind == "refit"
    assert_alone(result, MEMBERS, estimator, BINARY, options, m=3)


def test_a_family_that_is_refitted_says_so_once():
    with pytest.warns(RefitWarning, match="SVC is refitted for every permutation") as told:
        permutation_test_score(SVC(), TIMES, BINARY, cv=CV, n_permutations=2)
    assert len(told) == 1


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, pd.DataFrame, np.asfortranarray, tuple], ids=named)
def test_blocks_of_all_kinds(form):
    """Sparse blocks and frames; a tuple is a list."""
    estimator = LSSVC("linear", alpha=2.0)
    plain = permutation_test_score(estimator, BLOCKS, THREE, cv=CV, n_permutations=9)
    given = tuple(BLOCKS) if form is tuple else [form(each) for each in BLOCKS]
    result = permutation_test_score(estimator, given, THREE, cv=CV, n_permutations=9)
    assert_close(result.score, plain.score)
    assert_close(result.permutation_scores, plain.permutation_scores)


def test_one_member_is_a_family_of_one():
    result = permutation_test_score(LSSVC(), [X], THREE, cv=CV, n_permutations=9)
    alone = permutation_test_score(LSSVC(), X, THREE, cv=CV, n_permutations=9)
    np.testing.assert_array_equal(result.permutation_scores, alone.permutation_scores[:, None])
    assert result.pvalue_fwe == result.pvalue == [alone.pvalue]
    assert alone.pvalue_fwe is None
    assert alone.max_scores is None


def test_a_list_of_rows_is_no_family():
    result = permutation_test_score(LSSVC(), X.tolist(), THREE, cv=CV, n_permutations=3)
    assert np.ndim(result.score) == 0


def test_processes_change_nothing(monkeypatch):
    """Of a search, of a family, of a generalisation."""
    monkeypatch.setattr(_permutation_way, "TOGETHER", 4)
    for estimator, data, generalise in (
        (FoldlessSearchCV(LSSVC(), GRID), X, False),
        (LSSVC(gamma=0.1), TIMES, False),
        (LSSVC(gamma=0.1), TIMES, True),
    ):
        options = {"cv": CV, "n_permutations": 9, "generalise": generalise}
        one, two = (permutation_test_score(estimator, data, THREE, n_jobs=jobs, **options) for jobs in (1, 2))
        np.testing.assert_array_equal(one.permutation_scores, two.permutation_scores)
        assert one.best_params == two.best_params


def test_scores_that_are_not_defined_count_as_the_best_of_all():
    """Labelings with one class only in a test part; the same for all members, and for the maximum over them."""
    y = np.isin(np.arange(N), [1, 2, 20]).astype(int)
    cv = [(np.r_[12:N], np.arange(12)), (np.arange(18), np.r_[18:N])]
    with pytest.warns(UserWarning, match=r"of 60 permuted scores are not defined .* as at least as good"):
        result = permutation_test_score(LSSVC("linear"), TIMES, y, cv=cv, n_permutations=20, scoring="roc_auc")
    lost = np.isnan(result.permutation_scores).any(1)
    expected = [any(len(np.unique(y[order][test])) < 2 for _, test in cv) for order in labelings(20)[1:]]
    np.testing.assert_array_equal(lost, expected)
    assert 0 < lost.sum() < 20
    best = np.where(lost, np.inf, np.where(lost[:, None], 0.0, result.permutation_scores).max(1))
    np.testing.assert_array_equal(result.max_scores, best)
    np.testing.assert_array_equal(result.pvalue_fwe, by_hand(result.score, best[:, None]))
    filled = np.where(lost[:, None], np.inf, result.permutation_scores)
    np.testing.assert_array_equal(result.pvalue, by_hand(result.score, filled))


def test_of_a_loss_the_least_counts():
    null = np.array([[0.3, np.nan], [0.2, 0.4], [0.6, 0.5]])
    result = PermutationTestResult(np.array([0.25, 0.1]), null, greater_is_better=False)
    np.testing.assert_array_equal(result.max_scores, [-np.inf, 0.2, 0.5])
    np.testing.assert_array_equal(result.pvalue, [0.5, 0.5])
    np.testing.assert_array_equal(result.pvalue_fwe, [0.75, 0.5])


def test_members_without_a_score_are_no_members():
    """An interrupted family: the rest is corrected for the rest."""
    score, null = np.array([0.6, np.nan, 0.5]), np.array([[0.7, np.nan, 0.2], [0.1, np.nan, 0.4], [0.1, np.nan, 0.3]])
    result = PermutationTestResult(score, null)
    np.testing.assert_array_equal(result.max_scores, [0.7, 0.4, 0.3])
    np.testing.assert_array_equal(result.pvalue_fwe, [0.5, np.nan, 0.5])
    np.testing.assert_array_equal(result.pvalue, [0.5, np.nan, 0.25])
    assert "best 0.6000 at 0" in repr(result)
    nothing = PermutationTestResult(np.full(2, np.nan), np.full((3, 2), np.nan))
    assert np.isnan(nothing.pvalue_fwe).all()
    assert "2 members, none of them defined" in repr(nothing)


def test_an_interrupted_family_keeps_the_members_that_are_done(monkeypatch):
    scores, calls = Batched.scores, []

    def tired(way, *given):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return scores(way, *given)

    whole = permutation_test_score(LSSVC("linear"), TIMES, THREE, cv=CV, n_permutations=9)
    monkeypatch.setattr(Batched, "scores", tired)
    with pytest.warns(UserWarning, match="interrupted: the result rests on 2 of 3 members of the family"):
        result = permutation_test_score(LSSVC("linear"), TIMES, THREE, cv=CV, n_permutations=9)
    np.testing.assert_array_equal(result.score, [*whole.score[:2], np.nan])
    np.testing.assert_array_equal(result.permutation_scores[:, :2], whole.permutation_scores[:, :2])
    np.testing.assert_array_equal(result.max_scores, whole.permutation_scores[:, :2].max(1))


@pytest.mark.parametrize("estimator", [LSSVC("linear"), FoldlessSearchCV(LSSVC(), GRID)], ids=["model", "search"])
def test_splits_by_class_permute_within_test_sets(estimator):
    """All members, all candidates: training parts and test sets keep the class counts of the true labels."""
    cv = skl.StratifiedKFold(3, shuffle=True, random_state=0)
    result = permutation_test_score(estimator, TIMES, THREE, cv=cv, n_permutations=4, random_state=1)
    splits = list(cv.split(X, THREE))
    fold = np.empty(N, int)
    for number, (_, test) in enumerate(splits):
        fold[test] = number
    np.testing.assert_array_equal(result.strata, fold)
    given = permutation_test_score(estimator, TIMES, THREE, cv=splits, n_permutations=4, random_state=1, strata=fold)
    np.testing.assert_array_equal(result.permutation_scores, given.permutation_scores)


def test_the_text_of_a_family_names_its_best_member():
    result = permutation_test_score(LSSVC("linear"), TIMES[:, :, ::-1], BINARY, cv=CV, n_permutations=19)
    assert "accuracy of 3 members" in repr(result)
    best = int(np.argmax(result.score))
    assert f"best {result.score[best]:.4f} at {best}, family-wise p = {result.pvalue_fwe[best]:.4g}" in repr(result)
    square = permutation_test_score(LSSVC("linear"), TIMES, BINARY, cv=CV, n_permutations=19, generalise=True)
    assert "accuracy of 9 members" in repr(square)
    row, column = np.unravel_index(np.argmax(square.score), (3, 3))
    assert f"at ({row}, {column})" in repr(square)
    loss = permutation_test_score(LSSVC("linear"), TIMES, BINARY, cv=CV, n_permutations=3, scoring="ber")
    assert f"best {loss.score.min():.4f} at {loss.score.argmin()}" in repr(loss)


def test_progress_counts_members(capsys):
    permutation_test_score(LSSVC(), TIMES, THREE, cv=CV, n_permutations=2, verbose=1)
    told = capsys.readouterr()
    assert "members of the family: 3/3" in told.err
    assert told.out == ""


# -- generalisation --------------------------------------------------------------------------------------------------


def elsewhere(estimator, members, y, order, outer, scoring=None, w=None, confounds=None):
    """Scores (k, k) of one labeling: trained on member s (first axis), tested at the features of member t."""
    table = np.zeros((len(members), len(members)))
    name = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    for train, test in outer:
        options = {f"{name}sample_weight": w, f"{name}confounds": confounds}
        options = {key: value[train] for key, value in options.items() if value is not None}
        for s, seen in enumerate(members):
            model = clone(estimator).fit(seen[train], y[order][train], **options)
            for t, other in enumerate(members):
                table[s, t] += scorer_of(scoring, model)(model, other[test], y[order][test]) / len(outer)
    return table


SQUARES = {
    "LSSVC": (LSSVC(gamma=0.1), THREE, {}),
    "LSSVC coef": (LSSVC(gamma=0.1, penalty="coef"), BINARY, {"scoring": "roc_auc"}),
    "LSSVC coef, linear": (LSSVC("linear", penalty="coef"), THREE, {}),
    "LSSVC low rank": (LSSVC("linear"), FOUR, {"scoring": "ber"}),
    "LSSVC linear, wide": (LSSVC("linear"), THREE, {}),
    "LSSVC no intercept": (LSSVC("linear", fit_intercept=False), BINARY, {}),
    "KFDA": (KFDA(gamma=0.1), FOUR, {"scoring": "balanced_accuracy"}),
    "KFDA low rank": (KFDA("linear", threshold="fisher"), BINARY, {}),
    "KFDA centroid": (KFDA("linear", threshold="centroid"), BINARY, {"scoring": "roc_auc"}),
    "LSSVR": (LSSVR(gamma=0.1), OUTPUTS, {}),
    "LSSVR low rank": (LSSVR("linear"), VALUES, {"scoring": "correlation"}),
    "Ridge": (Ridge(), OUTPUTS, {"scoring": "neg_mean_squared_error"}),
    "RidgeClassifier": (RidgeClassifier(), THREE, {"scoring": "f1_macro"}),
    "KernelRidge": (KernelRidge(kernel="laplacian", gamma=0.1), VALUES, {"scoring": "neg_median_absolute_error"}),
    "poly": (LSSVC("poly", degree=2, gamma=0.1), THREE, {}),
    "weights": (LSSVC(gamma=0.1), THREE, {"w": ZEROS}),
    "weights, low rank": (KFDA("linear"), THREE, {"w": ZEROS}),
    "confounds": (LSSVC(gamma=0.1), THREE, {"confounds": CONFOUNDS}),
    "confounds, low rank": (KFDA("linear"), THREE, {"confounds": CONFOUNDS, "w": WEIGHT}),
    "confounds, coef": (LSSVR(gamma=0.1, penalty="coef"), VALUES, {"confounds": CONFOUNDS}),
    "scaled": (make_pipeline(StandardScaler(), LSSVC("linear")), THREE, {}),
    "scaled, rbf": (make_pipeline(StandardScaler(), PCA(2), KFDA()), THREE, {}),  # gamma="scale" of the training part
    "scaled, coef": (make_pipeline(StandardScaler(), LSSVC(gamma=0.1, penalty="coef")), BINARY, {"w": ZEROS}),
    "scaled, confounds": (make_pipeline(StandardScaler(), LSSVC("linear")), THREE, {"confounds": CONFOUNDS}),
    "scaled regression": (make_pipeline(StandardScaler(with_std=False), Ridge()), VALUES, {"scoring": "r2"}),
}


@pytest.mark.parametrize("case", SQUARES)
def test_every_model_is_tested_at_the_features_of_every_member(case):
    estimator, y, options = SQUARES[case]
    family = np.concatenate([TIMES, TIMES**2, TIMES[:, ::-1] ** 3, np.sin(TIMES)], 1) if "wide" in case else TIMES
    members = [family[:, :, time] for time in range(3)]
    scoring, w, confounds = (options.get(name) for name in ("scoring", "w", "confounds"))
    name = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    result = permutation_test_score(
        estimator,
        family,
        y,
        cv=CV,
        n_permutations=3,
        scoring=scoring,
        params=None if w is None else {f"{name}sample_weight": w},
        confounds=confounds,
        generalise=True,
    )
    found = np.concatenate([result.score[None], result.permutation_scores])
    outer = list(CV.split(X))
    expected = np.array(
        [elsewhere(estimator, members, y, order, outer, scoring, w, confounds) for order in labelings(3)]
    )
    assert_close(found, expected, scale=max(1.0, np.abs(expected).max()))
    assert np.ptp(expected[0]) > 0
    greater = result.greater_is_better
    best = (np.max if greater else np.min)(found[1:], (1, 2))
    np.testing.assert_array_equal(result.max_scores, best)
    np.testing.assert_array_equal(result.pvalue, by_hand(found[0], found[1:], greater))
    np.testing.assert_array_equal(result.pvalue_fwe, by_hand(found[0], best[:, None, None], greater))
    assert result.score.shape == result.pvalue_fwe.shape == (3, 3)


@pytest.mark.parametrize("in_score", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_confounds_stay_with_the_rows_that_are_tested(kernel, in_score):
    """Ridge regressions with columns beside the intercept, by the reference; scores with and without their part."""
    estimator = Ridge(alpha=0.7) if kernel == "linear" else LSSVR(gamma=0.1, alpha=0.7)
    result = permutation_test_score(
        estimator,
        TIMES,
        VALUES,
        cv=CV,
        n_permutations=3,
        scoring="neg_mean_squared_error",
        confounds=CONFOUNDS,
        confounds_in_score=in_score,
        generalise=True,
    )
    gram = linear_kernel if kernel == "linear" else lambda a, b: rbf_kernel(a, b, gamma=0.1)
    Q = np.column_stack([np.ones(N), CONFOUNDS])
    shown = Q * [1, in_score, in_score]
    for order, table in zip(labelings(3), [result.score, *result.permutation_scores], strict=True):
        expected = np.zeros((3, 3))
        for train, test in CV.split(X):
            for s, seen in enumerate(MEMBERS):
                beta, B = reference.fit(gram(seen[train], seen[train]), VALUES[order][train, None], 0.7, Q=Q[train])
                for t, other in enumerate(MEMBERS):
                    fits = (gram(other[test], seen[train]) @ beta + shown[test] @ B)[:, 0]
                    expected[s, t] -= np.square(VALUES[order][test] - fits).mean() / 3
        assert_close(table, expected)


@pytest.mark.parametrize("case", ["LSSVC", "KFDA low rank", "confounds", "scaled, rbf"])
def test_the_diagonal_of_a_generalisation_is_the_family(case):
    estimator, y, options = SQUARES[case]
    options = {"cv": CV, "n_permutations": 4, "confounds": options.get("confounds")}
    square = permutation_test_score(estimator, TIMES, y, generalise=True, **options)
    family = permutation_test_score(estimator, TIMES, y, **options)
    assert_close(np.diagonal(square.score), family.score)
    assert_close(np.diagonal(square.permutation_scores, axis1=1, axis2=2), family.permutation_scores)
    assert str(square.path) == str(family.path)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, pd.DataFrame], ids=named)
@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), LSSVC("linear")], ids=["rbf", "linear"])
def test_generalisation_of_all_kinds_of_members(estimator, form):
    given = [form(each) for each in MEMBERS]
    options = {"cv": CV, "n_permutations": 4, "generalise": True}
    result = permutation_test_score(estimator, given, THREE, **options)
    plain = permutation_test_score(estimator, TIMES, THREE, **options)
    assert_close(result.score, plain.score)
    assert_close(result.permutation_scores, plain.permutation_scores)


def test_generalisation_in_chunks():
    options = {"cv": CV, "n_permutations": 7, "generalise": True}
    whole = permutation_test_score(KFDA(gamma=0.1), TIMES, THREE, **options)
    parts = permutation_test_score(KFDA(gamma=0.1), TIMES, THREE, memory_limit=1, **options)
    assert_close(whole.permutation_scores, parts.permutation_scores)


@pytest.mark.parametrize("columns", [list("abcd"), None], ids=["named", "numbered"])
def test_steps_see_frames_of_all_members_alike(columns):
    estimator = make_pipeline(StandardScaler(), LSSVC("linear"))
    options = {"cv": CV, "n_permutations": 4, "generalise": True}
    given = [pd.DataFrame(each, columns=columns) for each in MEMBERS]
    result = permutation_test_score(estimator, given, THREE, **options)
    assert_close(result.score, permutation_test_score(estimator, TIMES, THREE, **options).score)


# -- what a family refuses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (X, {"generalise": True}, "generalise=True needs a family"),
        (
            BLOCKS,
            {"generalise": True},
            r"same features; X has shapes \[\(36, 1\), \(36, 4\), \(36, 20\)\]",
        ),
        (TIMES, {"generalise": True, "resplit": True}, "generalise=True keeps the splits of the true labels"),
        ([X @ X.T] * 2, {"generalise": True, "kernel": "precomputed"}, "generalise=True needs features: precomputed"),
        (TIMES[:, :, :0], {}, r"X of shape \(36, 4, 0\) holds no member"),
        (TIMES[:, :, :, None], {}, "X has 4 axes"),
        ([X, X[:-1]], {}, r"X: the matrices of a family have \[35, 36\] rows"),
        ([X[:-1], X[:-1]], {}, "inconsistent numbers of samples"),
    ],
    ids=["no family", "features", "resplit", "precomputed", "no times", "four axes", "rows", "rows of y"],
)
def test_families_that_make_no_sense(given, options, message):
    options = dict(options)
    with pytest.raises(ValueError, match=message):
        permutation_test_score(LSSVC(options.pop("kernel", "rbf")), given, THREE, cv=3, **options)


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (SVC(), {}),
        (LSSVC(class_weight="balanced"), {}),
        (LSSVC(calibration="sigmoid"), {"scoring": "neg_log_loss"}),
    ],
    ids=["SVC", "class weights", "probabilities"],
)
def test_generalisation_takes_columns(estimator, options):
    with pytest.raises(ValueError, match="generalise=True needs permutations as columns, which is not possible here"):
        permutation_test_score(estimator, TIMES, BINARY, cv=3, n_permutations=2, generalise=True, **options)


@pytest.mark.parametrize("steps", [False, True])
def test_a_search_is_not_tested_at_other_members(steps):
    search = FoldlessSearchCV(LSSVC(), GRID)
    search = make_pipeline(StandardScaler(), search) if steps else search
    with pytest.raises(ValueError, match="generalise=True: a search is not tested at other members"):
        permutation_test_score(search, TIMES, BINARY, cv=3, n_permutations=2, generalise=True)


# -- patterns --------------------------------------------------------------------------------------------------------

WIDE = np.hstack([X, MEMBERS[1], MEMBERS[2], X**2, X**3, *np.random.default_rng(0).normal(size=(6, N, D))])  # 44 > 36
PATTERNS = {
    "LSSVC, 2 classes": (LSSVC("linear"), BINARY, X, {}),
    "LSSVC, 3 classes": (LSSVC("linear"), THREE, X, {}),
    "LSSVC, 4 classes, wide": (LSSVC("linear"), FOUR, WIDE, {}),
    "LSSVC coef": (LSSVC("linear", penalty="coef"), THREE, X, {}),
    "LSSVC no intercept": (LSSVC("linear", fit_intercept=False), THREE, X + 1, {}),
    "LSSVC no intercept, 2 classes": (LSSVC("linear", fit_intercept=False), BINARY, X + 1, {}),
    "KFDA, 2 classes": (KFDA("linear"), BINARY, X, {}),
    "KFDA fisher": (KFDA("linear", threshold="fisher"), BINARY, X, {}),
    "KFDA centroid": (KFDA("linear", threshold="centroid"), BINARY, WIDE, {}),
    "KFDA, 3 classes": (KFDA("linear"), THREE, X, {}),
    "KFDA, 4 classes, wide": (KFDA("linear", n_components=2), FOUR, WIDE, {}),
    "LSSVR": (LSSVR("linear"), VALUES, X, {}),
    "LSSVR outputs": (LSSVR("linear"), OUTPUTS, WIDE, {}),
    "Ridge": (Ridge(), VALUES, X, {}),
    "Ridge outputs": (Ridge(fit_intercept=False), OUTPUTS, X, {}),
    "RidgeClassifier, 2 classes": (RidgeClassifier(), BINARY, X, {}),
    "RidgeClassifier, 4 classes": (RidgeClassifier(), FOUR, WIDE, {}),
    "KernelRidge": (KernelRidge(), OUTPUTS, X, {}),
    "weights": (LSSVC("linear"), THREE, X, {"w": ZEROS}),
    "weights, wide": (KFDA("linear"), THREE, WIDE, {"w": ZEROS}),
    "confounds": (LSSVC("linear"), THREE, X, {"confounds": CONFOUNDS}),
    "confounds, weights": (KFDA("linear"), FOUR, WIDE, {"confounds": CONFOUNDS, "w": ZEROS}),
    "confounds, 2 classes": (KFDA("linear", threshold="centroid"), BINARY, X, {"confounds": CONFOUNDS}),
    "sparse": (LSSVC("linear"), THREE, sp.csr_array(WIDE), {"w": WEIGHT}),
    "sparse, few features": (LSSVC("linear"), BINARY, sp.csr_array(X), {}),
}


def coefficients(estimator, data, y, **options):
    """coef_ of a refit with one row for each fit of targets +-1; discriminants are made of these fits."""
    if isinstance(estimator, KFDA):
        estimator = LSSVC("linear", alpha=estimator.alpha, fit_intercept=estimator.fit_intercept)
    model = clone(estimator).fit(data, y, **options)
    return (data.T @ model.dual_coef_).T if isinstance(model, KernelRidge) else np.atleast_2d(model.coef_)


def two_sided(values):
    """p-values and family-wise p-values (k, d) of values (1 + m, k, d)."""
    size = np.abs(values)
    largest = size[1:].max(2, keepdims=True)
    return by_hand(size[0], size[1:] * (1 + 1e-9)), by_hand(size[0], largest * (1 + 1e-9))


@pytest.mark.parametrize("case", PATTERNS)
def test_weights_and_patterns_are_those_of_refits(case):
    """Cov(x) w / (w' Cov(x) w) with weighted covariances, and |Cov(x) w| against that of every permutation."""
    estimator, y, data, options = PATTERNS[case]
    w, confounds = options.get("w"), options.get("confounds")
    m = 29
    result = permutation_test_pattern(
        estimator,
        data,
        y,
        n_permutations=m,
        confounds=confounds,
        params=None if w is None else {"sample_weight": w},
        random_state=5,
    )
    fit = {name: value for name, value in (("sample_weight", w), ("confounds", confounds)) if value is not None}
    weights = np.array([coefficients(estimator, data, y[order], **fit) for order in labelings(m, seed=5)])
    dense = data.toarray() if sp.issparse(data) else data
    covariance = np.cov(dense.T, aweights=w, ddof=0)
    along = weights @ covariance
    assert_close(result.weights, weights[0])
    assert_close(result.patterns, along[0] / np.einsum("kd,kd->k", weights[0], along[0])[:, None])
    scores = dense @ weights[0].T
    mass = np.ones(N) if w is None else w
    for k, s in enumerate(scores.T):  # the slope of a regression of each feature on the decision
        centred = s - np.average(s, weights=mass)
        assert_close(result.patterns[k], (mass * centred) @ dense / ((mass * centred) @ s))
    for found, values in (
        ((result.pvalue, result.pvalue_fwe), along),
        ((result.weights_pvalue, result.weights_pvalue_fwe), weights),
    ):
        expected = two_sided(values)
        np.testing.assert_allclose(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1])
        assert (found[0] <= found[1]).all()
        assert len(np.unique(found[0])) > 2
    assert result.n_permutations == m
    classes = np.unique(y) if is_classifier(estimator) else np.arange(weights.shape[1])
    assert result.outputs == list(classes[-weights.shape[1] :])
    assert result.feature_names is None


def test_patterns_in_chunks():
    options = {"n_permutations": 20, "random_state": 1}
    whole = permutation_test_pattern(KFDA("linear"), X, THREE, **options)
    for limit in (1, 8 * 8 * N * 2 * 7):
        parts = permutation_test_pattern(KFDA("linear"), X, THREE, memory_limit=limit, **options)
        assert_close(parts.patterns, whole.patterns)
        np.testing.assert_array_equal(parts.pvalue, whole.pvalue)
        np.testing.assert_array_equal(parts.weights_pvalue_fwe, whole.weights_pvalue_fwe)


def test_weights_of_many_features_are_counted(monkeypatch):
    """Their memory, not that of the columns: 396 features of 36 rows leave few labelings at a time."""
    seen, of = [], Labelings.of.__func__

    def run_with_progress(cls, task, orders):
        seen.append(len(orders))
        return of(cls, task, orders)

    monkeypatch.setattr(Labelings, "of", classmethod(run_with_progress))
    wide = np.hstack([WIDE] * 9)
    limits = {}
    for name, data in (("few", X), ("many", wide)):
        seen.clear()
        permutation_test_pattern(LSSVC("linear"), data, THREE, n_permutations=60, memory_limit=8 * 10 * N * 2 * 40)
        assert sum(seen) == 61
        limits[name] = max(seen)
    assert limits["few"] > 30
    assert limits["many"] * wide.shape[1] <= limits["few"] * N


def test_a_decision_that_never_changes_has_no_pattern():
    result = permutation_test_pattern(LSSVC("linear"), 0 * X, THREE, n_permutations=3)
    np.testing.assert_array_equal(result.patterns, np.zeros((3, D)))
    np.testing.assert_array_equal(result.pvalue, np.ones((3, D)))


def test_patterns_within_strata():
    result = permutation_test_pattern(Ridge(), X, VALUES, n_permutations=19, strata=GROUPS, random_state=2)
    weights = np.array([[Ridge().fit(X, VALUES[order]).coef_] for order in labelings(19, GROUPS, 2)])
    np.testing.assert_allclose(result.weights_pvalue, two_sided(weights)[0])
    np.testing.assert_allclose(result.pvalue, two_sided(weights @ np.cov(X.T))[0])


def test_patterns_with_class_weights_that_stay():
    estimator = RidgeClassifier(class_weight="balanced")
    with pytest.warns(UserWarning, match="weights='fixed' keeps weights that were made from the true labels"):
        result = permutation_test_pattern(estimator, X, THREE, n_permutations=19, weights="fixed")
    rows = balanced(THREE)
    weights = np.array([RidgeClassifier().fit(X, THREE[order], sample_weight=rows).coef_ for order in labelings(19)])
    assert_close(result.weights, weights[0])
    np.testing.assert_allclose(result.weights_pvalue, two_sided(weights)[0])
    np.testing.assert_allclose(result.pvalue, two_sided(weights @ np.cov(X.T, aweights=rows))[0])


def balanced(y):
    """Balanced class weights as row weights."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return (len(y) / (len(classes) * counts))[codes]


@pytest.mark.parametrize("estimator", [LSSVC("linear"), RidgeClassifier()], ids=named)
def test_patterns_with_class_weights_that_follow(estimator):
    """Every labeling has its own P, and its own weights in Cov(x)."""
    factors = {"ant": 2.0, "bee": 1.0, "cat": 0.5}
    given = clone(estimator).set_params(class_weight=factors)
    result = permutation_test_pattern(given, X, THREE, n_permutations=19, params={"sample_weight": WEIGHT})
    weights, along = [], []
    for order in labelings(19):
        rows = WEIGHT * np.array([factors[label] for label in THREE[order]])
        weights.append(clone(estimator).fit(X, THREE[order], sample_weight=rows).coef_)
        along.append(weights[-1] @ np.cov(X.T, aweights=rows, ddof=0))
    assert_close(result.weights, weights[0])
    assert_close(result.patterns, along[0] / np.einsum("kd,kd->k", weights[0], along[0])[:, None])
    for found, values in (
        ((result.weights_pvalue, result.weights_pvalue_fwe), weights),
        ((result.pvalue, result.pvalue_fwe), along),
    ):
        np.testing.assert_allclose(found, two_sided(np.array(values)))


def test_a_pattern_names_its_features_and_counts_what_it_found():
    frame = pd.DataFrame(X, columns=["left", "right", "up", "down"])
    result = permutation_test_pattern(LSSVC("linear"), frame, THREE, n_permutations=99)
    assert result.feature_names == ["left", "right", "up", "down"]
    numbered = permutation_test_pattern(LSSVC("linear"), pd.DataFrame(X), THREE, n_permutations=1)
    assert numbered.feature_names == ["0", "1", "2", "3"]
    counts = (result.pvalue_fwe <= 0.05).sum(1)
    found = f"ant: {counts[0]}, bee: {counts[1]}, cat: {counts[2]}"
    assert repr(result) == f"patterns of 4 features, 99 permutations; family-wise p <= 0.05 for {found}"
    assert (result.pvalue_fwe <= 0.05).any()


def test_progress_of_patterns(capsys):
    for limit in (1, 2**29):
        permutation_test_pattern(Ridge(), X, VALUES, n_permutations=5, memory_limit=limit, verbose=1)
        assert "permutations: 5/5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (LSSVC(), {}, "patterns need kernel='linear'; this one is RBF"),
        (SVC(kernel="linear"), {}, "patterns need a linear least-squares model: SVC is not"),
        (FoldlessSearchCV(LSSVC("linear")), {}, "patterns need a linear least-squares model: a search"),
        (make_pipeline(StandardScaler(), LSSVC("linear")), {}, "patterns need a linear least-squares model"),
        (RidgeClassifier(class_weight="balanced"), {}, "class_weight='balanced' is computed anew"),
        (LSSVC("linear"), {"weights": "permuted"}, "weights='permuted': patterns know sample weights that stay"),
        (LSSVC("linear"), {"weights": "nonsense"}, "weights='nonsense' is unknown"),
        (LSSVC("linear"), {"n_permutations": 0}, "n_permutations=0"),
        (LSSVC("linear"), {"memory_limit": 0}, "memory_limit=0"),
        (LSSVC("linear"), {"params": {"nonsense": 1}}, "nonsense"),
        (LSSVC("linear"), {"confounds": np.ones((3, 1))}, "confounds has 3 rows"),
    ],
    ids=[
        "rbf",
        "SVC",
        "search",
        "pipeline",
        "class weights",
        "permuted",
        "weights",
        "none",
        "memory",
        "params",
        "rows",
    ],
)
def test_patterns_that_make_no_sense(estimator, options, message):
    with pytest.raises(ValueError, match=message):
        permutation_test_pattern(estimator, X, THREE, **options)


def test_patterns_need_labels_that_change():
    with pytest.raises(ValueError, match="y=None"):
        permutation_test_pattern(LSSVC("linear"), X, None)
    with pytest.warns(UserWarning, match="do not change the labels"):
        result = permutation_test_pattern(LSSVC("linear"), X, THREE, strata=THREE, n_permutations=3)
    for name in ("pvalue", "pvalue_fwe", "weights_pvalue"):  # what is equal up to rounding is equal
        np.testing.assert_array_equal(getattr(result, name), np.ones((3, D)))


# -- under the null --------------------------------------------------------------------------------------------------

M, LEVEL = 99, 1e-4  # permutations, and the share of false alarms
HALVES = skl.KFold(2)


def place(result, rng):
    """Where the true score lies among all, ties broken by lot: uniform if labelings are exchangeable.

    Of a family, the best member among the best of all permutations.
    """
    score, null, reported = result
    if result.max_scores is not None:
        score, null, reported = score.max(), result.max_scores, result.pvalue_fwe.min()
    above, ties = np.sum(null > score + 1e-10), np.sum(np.abs(null - score) <= 1e-10)
    assert reported == (above + ties + 1) / (len(null) + 1)
    return (above + rng.uniform() * (ties + 1)) / (len(null) + 1)


def many(count, problem, seed=0):
    """p-values of so many problems, each drawn anew."""
    rng = np.random.default_rng(seed)
    return np.array([problem(rng, number) for number in range(count)])


def assert_uniform(values):
    assert stats.kstest(values, "uniform").pvalue > LEVEL


def assert_too_small(values):
    """Far from uniform: what an invalid procedure gives."""
    assert stats.kstest(values, "uniform", alternative="greater").pvalue < LEVEL / 100


def coins(rng, n=30, shape=(3,)):
    """Features and labels that have nothing to do with each other."""
    return rng.normal(size=(n, *shape)), rng.permutation(np.arange(n) % 2)


def asked(estimator, data, y, number, **options):
    options = {"cv": HALVES, "n_permutations": M, "random_state": number, **options}
    return permutation_test_score(estimator, data, y, **options)


NULLS = {
    "accuracy": (LSSVC("linear"), {"scoring": "accuracy"}),
    "AUC": (KFDA(gamma=0.2), {"scoring": "roc_auc"}),
    "correlation": (LSSVR(gamma=0.2), {"scoring": "correlation"}),
    "folds by class": (LSSVC("linear"), {"cv": 5}),
    "folds by class, the majority wins": (LSSVC("linear", alpha=1000.0), {"cv": 5}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", NULLS)
def test_p_values_are_uniform_where_there_is_nothing(case):
    estimator, options = NULLS[case]
    assert_uniform(many(250, lambda rng, number: place(asked(estimator, *coins(rng), number, **options), rng)))


@pytest.mark.slow
def test_the_whole_search_is_uniform_and_one_choice_for_all_is_not():
    """One feature of four is chosen. What the true labels chose suits them better than any permutation of them."""
    search = FoldlessSearchCV(LSSVC(), {"gamma": (0.5 * np.eye(4)).tolist()})
    options = {"scoring": "roc_auc"}

    def both(rng, number):
        data, y = coins(rng, 24, (4,))
        once = clone(search).fit(data, y).best_estimator_
        return [place(asked(each, data, y, number, **options), rng) for each in (search, once)]

    whole, once = many(150, both).T
    assert_uniform(whole)
    assert_too_small(once)


@pytest.mark.slow
def test_the_family_wise_p_value_is_uniform_and_the_smallest_of_all_is_not():
    def both(rng, number):
        data, y = coins(rng, shape=(2, 4))
        result = asked(LSSVC("linear"), data, y, number, scoring="roc_auc")
        return place(result, rng), result.pvalue.min()

    corrected, smallest = many(150, both).T
    assert_uniform(corrected)
    assert_too_small(smallest)


@pytest.mark.slow
def test_labels_that_follow_a_confound_are_permuted_within_it():
    """Features and labels both follow z, and each other only through it."""

    def problem(rng, number):
        z = np.arange(30) % 2
        data = rng.normal(size=(30, 3)) + z[:, None]
        y = np.where(rng.uniform(size=30) < 0.8, z, 1 - z)
        cv = skl.KFold(3, shuffle=True, random_state=number)
        for options in ({"strata": z, "confounds": z - 0.5}, {"strata": z}, {}):
            yield place(asked(LSSVC("linear"), data, y, number, cv=cv, **options), rng)

    both, strata, neither = many(200, lambda rng, number: list(problem(rng, number))).T
    assert_uniform(both)
    assert_uniform(strata)
    assert_too_small(neither)


@pytest.mark.slow
def test_p_values_of_patterns_are_uniform():
    def problem(rng, number):
        data, y = coins(rng, shape=(4,))
        result = permutation_test_pattern(KFDA("linear"), data, y, n_permutations=M, random_state=number)
        each = [result.pvalue[0, 0], result.weights_pvalue[0, 1]]
        smallest = [result.pvalue_fwe.min(), result.weights_pvalue_fwe.min()]
        return np.array([*each, *smallest]) - rng.uniform(size=4) / (M + 1), result.pvalue.min()

    found = many(250, lambda rng, number: np.hstack(problem(rng, number))).T
    for values in found[:4]:
        assert_uniform(values)
    assert_too_small(found[4])


@pytest.mark.slow
def test_labels_permuted_in_the_training_part_alone_are_seen():
    """True test labels lean away from true training labels, and not from permuted ones: this null is another one."""

    def problem(rng, number):
        data, y = rng.normal(size=(30, 3)), rng.normal(size=30)
        columns = np.column_stack([y, *[rng.permutation(y) for _ in range(M)]])
        errors = np.zeros(M + 1)
        for train, test in skl.KFold(10).split(data):
            K = linear_kernel(data[train])
            beta, B = reference.fit(K, columns[train], 1.0)
            errors += np.square(y[test, None] - linear_kernel(data[test], data[train]) @ beta - B).sum(0)
        return (np.sum(errors[1:] < errors[0]) + rng.uniform()) / (M + 1)

    assert stats.kstest(many(250, problem), "uniform").pvalue < LEVEL / 100


# -- what is there is found ------------------------------------------------------------------------------------------


def test_a_planted_effect_is_found():
    """One of five features tells the classes apart, at one of three times."""
    rng = np.random.default_rng(0)
    data, y = coins(rng, 60, (5, 3))
    data[:, 2, 1] += 2 * y
    options = {"cv": 5, "n_permutations": 199}
    family = permutation_test_score(LSSVC("linear"), data, y, **options)
    np.testing.assert_array_equal(family.pvalue_fwe <= 0.05, [False, True, False])
    assert family.pvalue_fwe[1] == family.pvalue[1] == 1 / 200
    search = FoldlessSearchCV(LSSVC(), {"gamma": (0.3 * np.eye(5)).tolist()})
    tuned = permutation_test_score(search, data[:, :, 1], y, **options)
    assert tuned.pvalue == 1 / 200
    assert tuned.best_params == [{"gamma": [0.0, 0.0, 0.3, 0.0, 0.0]}] * 5
    square = permutation_test_score(LSSVC("linear"), data, y, generalise=True, **options)
    np.testing.assert_array_equal(square.pvalue_fwe <= 0.05, np.diag([False, True, False]))
    pattern = permutation_test_pattern(LSSVC("linear"), data[:, :, 1], y, n_permutations=199)
    np.testing.assert_array_equal(pattern.pvalue_fwe[0] <= 0.05, np.arange(5) == 2)
    assert pattern.patterns[0].argmax() == 2


def test_a_sensor_that_only_cancels_noise_has_a_weight_and_no_pattern():
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=80), np.arange(80) % 2
    data = np.column_stack([y + noise, noise, rng.normal(size=80)])
    result = permutation_test_pattern(KFDA("linear"), data, y, n_permutations=199)
    np.testing.assert_array_equal(result.weights_pvalue_fwe[0] <= 0.05, [True, True, False])
    np.testing.assert_array_equal(result.pvalue_fwe[0] <= 0.05, [True, False, False])


def test_an_effect_beside_the_confound_is_found_within_its_strata():
    rng = np.random.default_rng(1)
    z = np.arange(60) % 2
    y = np.where(rng.uniform(size=60) < 0.7, z, 1 - z)
    data = rng.normal(size=(60, 3)) + z[:, None] + 1.5 * y[:, None] * [0, 0, 1]
    options = {"cv": skl.KFold(5, shuffle=True, random_state=0), "n_permutations": 199}
    assert permutation_test_score(LSSVC("linear"), data, y, strata=z, confounds=z - 0.5, **options).pvalue == 1 / 200
