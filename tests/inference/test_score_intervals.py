"""Intervals of cross-validated scores: every number beside a loop of refits, formula by formula."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    LeavePOut,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.inference.intervals import FoldScores, nested_error
from foldless._sklearn.closed_form import ClosedFormRun
from foldless.model_selection import RefitWarning, compare, cross_validate, score_interval
from support import intervals as plain
from support.refits import with_fixed_functions

RNG = np.random.default_rng(0)
X, TWO = make_classification(40, 5, n_informative=3, flip_y=0.2, random_state=0)
THREE = np.array(["ant", "bee", "cat"])[np.argmax(X[:, :3] + RNG.normal(size=(40, 3)), 1)]
VALUES = X[:, 0] + 0.5 * RNG.normal(size=40)
WEIGHT = RNG.uniform(0.5, 2.0, 40)


def by_refits(estimator, y, cv, scoring, rows=None, weight=None):
    """(score, centre, error) of one partition as Bates, Hastie & Tibshirani define them, with a refit for each set."""
    folds = [test for _, test in cv.split(X, y)]
    K, n = len(folds), len(y)
    scorer = get_scorer(scoring)

    def scores(test, out):
        """Scores of single rows, or of the rows together, by the model without ``out``."""
        train = np.setdiff1d(np.arange(n), out)
        model = clone(estimator).fit(X[train], y[train], **({} if weight is None else {"sample_weight": weight[train]}))
        if rows is None:
            return scorer(model, X[test], y[test])
        return rows(y[test], model.predict(X[test]))

    mean = np.mean if rows is not None else float
    outside = [scores(fold, fold) for fold in folds]
    square, inside = [], []
    for j, fold in enumerate(folds):
        others = [scores(other, np.concatenate([fold, other])) for i, other in enumerate(folds) if i != j]
        inside.append(np.mean(np.concatenate(others)) if rows is not None else np.mean(others))
        square.append((inside[-1] - mean(outside[j])) ** 2 - variance(outside[j], fold, scorer, estimator, y, rows))
    size = np.array([len(fold) for fold in folds]) if rows is not None else np.ones(K)
    score = np.average([mean(each) for each in outside], weights=size)
    within = np.average(inside, weights=size)
    own = [variance(*each, scorer, estimator, y, rows) for each in zip(outside, folds, strict=True)]
    plain = np.sum((size / size.sum()) ** 2 * own)
    if rows is right:
        p = (np.sum(np.concatenate(outside)) + 2) / (n + 4)
        plain = max(plain, p * (1 - p) / n)
    error = np.sqrt(np.clip((K - 1) / K * np.mean(square), plain, K * plain))
    centre = within - (1 + (K - 2) / K) * (within - score)
    return score, centre, error


def variance(outside, fold, scorer, estimator, y, rows):
    """Of the score of a fold whose model is fixed."""
    if rows is not None:
        return np.var(outside, ddof=1) / len(fold)
    train = np.setdiff1d(np.arange(len(y)), fold)
    model = clone(estimator).fit(X[train], y[train])
    n = len(fold)
    without = [scorer(model, X[np.delete(fold, k)], y[np.delete(fold, k)]) for k in range(n)]
    return (n - 1) / n * np.sum((without - np.mean(without)) ** 2)


def right(y, predicted):
    return (y == predicted).astype(float)


def squares(y, predicted):
    return -((y - predicted) ** 2)


CASES = {
    "two classes": (LSSVC(gamma=0.3), TWO, "accuracy", right),
    "three classes": (LSSVC("linear"), THREE, "accuracy", right),
    "discriminant": (KernelFisherDiscriminant(gamma=0.3), THREE, "accuracy", right),
    "coefficients penalised": (LSSVC(gamma=0.3, penalty="coef"), TWO, "accuracy", right),
    "values": (LSSVR(gamma=0.3), VALUES, "neg_mean_squared_error", squares),
    "scikit-learn's ridge": (Ridge(), VALUES, "neg_mean_squared_error", squares),
    "a share of pairs": (LSSVC(gamma=0.3), TWO, "roc_auc", None),
    "average precision": (LSSVC(gamma=0.3), TWO, "average_precision", None),
    "a scorer of scikit-learn": (LSSVC(gamma=0.3), TWO, "f1", None),
    "a cut from leave-one-out": (KernelFisherDiscriminant(gamma=0.3, threshold="loo"), TWO, "accuracy", right),
}


@pytest.mark.many_cases
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_partition_is_the_definition_by_refits(case, weighted):
    estimator, y, scoring, rows = CASES[case]
    if weighted and (rows is None or case == "a cut from leave-one-out"):
        pytest.skip("the jackknife of the loop above is of equal weights")
    weight = WEIGHT if weighted else None
    cv = StratifiedKFold(4) if is_classifier(estimator) else KFold(4)
    found = score_interval(
        estimator, X, y, cv=cv, scoring=scoring, params=None if weight is None else {"sample_weight": weight}
    )
    refitted = with_fixed_functions(estimator, X, weight)
    score, centre, error = by_refits(refitted, y, cv, scoring, rows, weight)
    np.testing.assert_allclose([found.score, found.centre, found.standard_error], [score, centre, error], rtol=1e-7)
    half = norm.ppf(0.95) * error
    ends = [(centre - half, centre + half)]
    if scoring == "accuracy":
        ends.append(plain.of_share(score, 40))
    if scoring == "roc_auc":
        ends.append(plain.of_area(score, *np.bincount(y)))
    if scoring == "average_precision":
        ends.append(plain.of_share(score, np.sum(y == 1)))
    if scoring == "f1":
        ends.append(by_labels(estimator, y, cv))
    limits = (0, 1) if is_classifier(estimator) else (-np.inf, 0)
    rtol = 1e-5 if scoring == "roc_auc" else 1e-7
    np.testing.assert_allclose([found.low, found.high], plain.both(*ends, limits=limits), rtol=rtol)
    assert found.n_repeats == 1


def by_labels(estimator, y, cv):
    """The interval of F1 from the numbers of held-out labels."""
    predicted = np.empty_like(y)
    for train, test in cv.split(X, y):
        predicted[test] = clone(estimator).fit(X[train], y[train]).predict(X[test])
    confusion = plain.confusion_of(y, predicted)
    return plain.of_labels(plain.f1, confusion, confusion.sum(1))


def test_partitions_are_averaged():
    cvs = [
        StratifiedKFold(4, shuffle=True, random_state=seed)
        for seed in np.random.RandomState(3).randint(2**31 - 1, size=3)
    ]
    found = score_interval(LSSVC(gamma=0.3), X, TWO, cv=4, n_repeats=3, random_state=3)
    alone = [by_refits(LSSVC(gamma=0.3), TWO, cv, "accuracy", right)[0] for cv in cvs]
    np.testing.assert_allclose(found.score, np.mean(alone))
    assert (found.n_folds, found.n_repeats) == (4, 3)
    assert repr(found).startswith("accuracy 0.")


def test_nadeau_and_bengio_is_their_formula():
    cv = KFold(5, shuffle=True, random_state=1)
    found = score_interval(LSSVR(gamma=0.3), X, VALUES, cv=cv, method="nadeau-bengio", n_repeats=1, random_state=7)
    own = KFold(5, shuffle=True, random_state=np.random.RandomState(7).randint(2**31 - 1))
    scores = [
        squares(VALUES[test], LSSVR(gamma=0.3).fit(X[train], VALUES[train]).predict(X[test])).mean()
        for train, test in own.split(X)
    ]
    error = np.sqrt((1 / 5 + 1 / 4) * np.var(scores, ddof=1))
    half = student.ppf(0.95, 4) * error
    np.testing.assert_allclose([*found], [np.mean(scores), np.mean(scores) - half, np.mean(scores) + half], rtol=1e-9)
    assert found.method == "nadeau-bengio"


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.3), SVC(), make_pipeline(StandardScaler(), LSSVC(gamma=0.2))])
@pytest.mark.parametrize("cv", [LeavePOut(2), LeaveOneOut(), ShuffleSplit(4, test_size=0.5, random_state=0), KFold(3)])
def test_intervals_of_results_know_how_many_rows_were_tested(estimator, cv):
    few = np.arange(0, 40, 3)
    found = cross_validate(estimator, X[few], TWO[few], cv=cv)
    scores, splits = found["test_score"], list(cv.split(X[few]))
    share = np.mean([len(test) / len(train) for train, test in splits])
    error = np.sqrt((1 / len(splits) + share) * np.var(scores, ddof=1))
    assert found.interval().standard_error == pytest.approx(error, rel=1e-12)


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), make_pipeline(StandardScaler(), LSSVC(gamma=0.2))], ids=["refits", "pipeline"]
)
def test_other_estimators_are_refitted(estimator):
    found = score_interval(estimator, X, TWO, cv=StratifiedKFold(3))
    np.testing.assert_allclose(
        [found.score, found.centre, found.standard_error],
        by_refits(estimator, TWO, StratifiedKFold(3), "accuracy", right),
    )


def test_refits_are_told():
    with pytest.warns(RefitWarning, match="without every fold and every pair of folds"):
        found = score_interval(LogisticRegression(), X, TWO, cv=3, n_repeats=1)
    assert found.path.kind == "refit"


@pytest.mark.filterwarnings("ignore:.*lies on the edge")
def test_a_search_chooses_anew_without_every_set():
    search = FoldlessSearchCV(LSSVC(gamma=0.3), {"alpha": [0.01, 1.0, 100.0]})
    found = score_interval(search, X, TWO, cv=StratifiedKFold(3))
    score, centre, error = by_refits(search, TWO, StratifiedKFold(3), "accuracy", right)
    np.testing.assert_allclose([found.score, found.centre, found.standard_error], [score, centre, error])


def test_probabilities_are_judged_by_their_logarithm():
    model = LSSVC(gamma=0.3, calibration="sigmoid")
    found = score_interval(model, X, TWO, cv=StratifiedKFold(3), scoring="neg_log_loss")
    own = []
    for train, test in StratifiedKFold(3).split(X, TWO):
        proba = clone(model).fit(X[train], TWO[train]).predict_proba(X[test])
        own.append(np.log(proba[np.arange(len(test)), TWO[test]]))
    np.testing.assert_allclose(found.score, np.mean(np.concatenate(own)), rtol=1e-6)


def test_groups_stay_together():
    groups = np.arange(40) // 4
    cv, model = list(GroupKFold(5).split(X, VALUES, groups)), LSSVR(gamma=0.3)
    found = score_interval(model, X, VALUES, cv=GroupKFold(5), groups=groups)
    assert found.score == score_interval(model, X, VALUES, cv=cv).score
    outside = [squares(VALUES[test], model.fit(X[train], VALUES[train]).predict(X[test])) for train, test in cv]
    # Two groups of four rows a fold: the variance of their mean is that of two numbers.
    least = np.mean([np.var(each.reshape(2, 4).mean(1), ddof=1) / 2 for each in outside]) / 5
    assert least * (1 - 1e-9) <= found.standard_error**2 <= 5 * least * (1 + 1e-9)
    drawn = score_interval(LSSVR(gamma=0.3), X, VALUES, cv=5, groups=groups, n_repeats=2)
    assert drawn.n_repeats == 2


def test_a_model_that_is_always_right_is_not_certain():
    S, parts = np.ones((2, 5, 5)), np.ones((2, 5, 4))
    centre, error = nested_error(FoldScores(S, parts, np.full((2, 5), 4.0)))
    p = 22 / 24
    assert centre == 1.0
    np.testing.assert_allclose(error, np.sqrt(p * (1 - p) / 20))


def test_equal_predictions_of_values_differ_by_nothing():
    """Squared errors of 0 are no shares of rows, of which four more might come out otherwise."""
    difference = compare({"one": LSSVR(), "two": LSSVR()}, X, VALUES, cv=5, n_repeats=1).differences[0]
    assert difference.standard_error == 0.0
    assert (difference.low, difference.high) == (0.0, 0.0)


def test_partitions_end_when_more_tell_nothing_new():
    few = score_interval(LSSVR(gamma=0.1), X, VALUES, cv=5)
    assert 10 <= few.n_repeats <= 200
    assert few.n_repeats % 10 == 0


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 6), st.integers(2, 4))
def test_the_error_lies_between_that_of_independent_rows_and_root_of_k_times_it(seed, n_folds, size):
    rng = np.random.default_rng(seed)
    scores = FoldScores(
        rng.normal(size=(3, n_folds, n_folds)), rng.normal(size=(3, n_folds, size)), np.ones((3, n_folds))
    )
    least = np.sqrt(scores.independent)
    assert least * (1 - 1e-12) <= nested_error(scores)[1] <= np.sqrt(n_folds) * least * (1 + 1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 95}, "confidence=95 must lie between 0 and 1"),
        ({"method": "bates"}, "method='bates' is unknown"),
        ({"cv": LeaveOneOut()}, "at least three folds of at least two rows each"),
        ({"cv": 2}, "leaves out 2 folds"),
        ({"cv": TimeSeriesSplit(4)}, "does not test every row once"),
        ({"scoring": ["accuracy", "f1"]}, "score_interval takes one"),
        ({"scoring": lambda model, X, y: 0.0}, "is a function of a fitted estimator"),
        ({"scoring": "neg_brier_score"}, "needs probabilities"),
        ({"n_repeats": 0}, "n_repeats=0 must be a whole number"),
        ({"confidence": "0.9"}, "confidence='0.9' must lie between"),
        ({"cv": 3, "groups": np.arange(40) // 10}, "at least three folds of at least two groups"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        score_interval(LSSVC(), X, TWO, **options)


def test_a_class_that_two_folds_hold_is_named():
    y = np.zeros(40, int)
    y[:2] = 1
    with pytest.raises(ValueError, match="two of the folds hold all 2 rows of class 1"):
        score_interval(LSSVC(), X, y, cv=KFold(20))


def test_r2_needs_folds_of_ten_rows():
    assert score_interval(LSSVR(gamma=0.3), X, VALUES, cv=4, scoring="r2", n_repeats=1).high <= 1.0
    too_few = r"^scoring='r2' needs at least 10 rows per fold, but the smallest fold has 4. "
    with pytest.raises(ValueError, match=too_few + r"Use fewer folds \(for example cv=3\)\.$"):
        score_interval(LSSVR(gamma=0.3), X, VALUES, scoring="r2")
    with pytest.raises(ValueError, match=r"has 2. Learn more rows, or use another score: 'neg_mean_squared_error'\.$"):
        score_interval(LSSVR(gamma=0.3), X[:20], VALUES[:20], scoring="r2")
    with pytest.raises(ValueError, match="'r2_pooled' is of all folds together"):
        score_interval(LSSVR(gamma=0.3), X, VALUES, scoring="r2_pooled")


def test_small_folds_of_classes_have_scores_of_classes():
    too_few = r"^scoring='roc_auc' needs at least 10 rows per fold, but the smallest fold has 4. "
    with pytest.raises(ValueError, match=too_few + r"Use fewer folds \(for example cv=3\). 'accuracy' and 'balanced_"):
        score_interval(LSSVC(gamma=0.3), X, TWO, scoring="roc_auc")
    with pytest.raises(ValueError, match=r"Learn more rows, or use another score: 'accuracy' or 'balanced_accuracy'"):
        score_interval(LSSVC(gamma=0.3), X[:24], TWO[:24], scoring="roc_auc")


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_refits_take_the_columns_of_their_part_of_a_precomputed_kernel():
    given = score_interval(SVC(kernel="precomputed"), X @ X.T, TWO, cv=3, n_repeats=1)
    made = score_interval(SVC(kernel="linear"), X, TWO, cv=3, n_repeats=1)
    assert [*given] == [*made]


def test_no_pairs_are_left_out_where_none_are_needed(monkeypatch):
    sizes = []
    decide = ClosedFormRun.decide
    monkeypatch.setattr(ClosedFormRun, "decide", lambda run, sets: sizes.extend(sets.sizes) or decide(run, sets))
    found = score_interval(LSSVC(gamma=0.3), X, TWO, cv=5, method="nadeau-bengio")
    assert set(sizes) == {8}
    assert found.n_repeats == 1


def test_the_interval_of_the_only_score_needs_no_name():
    found = cross_validate(LSSVC(gamma=0.3), X, TWO, cv=3, scoring=["roc_auc"])
    assert found.interval() == found.interval("roc_auc")
    assert found.interval().scoring == "roc_auc"
    assert found.interval(confidence=0.999999).high == 1.0
    several = cross_validate(LSSVC(gamma=0.3), X, TWO, cv=3, scoring=["roc_auc", "f1"])
    with pytest.raises(ValueError, match=r"name=None is no score of this result; give one of \['roc_auc', 'f1'\]"):
        several.interval()


def test_a_score_of_another_range_is_not_cut_by_its_name():
    given = {"accuracy": lambda model, X, y: 100.0 * model.score(X, y)}
    found = cross_validate(LSSVC(gamma=0.3), X, TWO, cv=3, scoring=given)
    assert found.interval().low < found["test_accuracy"].mean() < found.interval().high


def test_scores_of_labels_need_no_ten_rows_a_fold():
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    found = score_interval(
        LSSVC(), rng.normal(size=(40, 3)) + labels[:, None], labels, cv=5, n_repeats=2, scoring="balanced_accuracy"
    )
    assert found.low < found.score < found.high


def test_a_perfect_average_precision_of_few_rows_is_not_certain():
    y = (np.arange(60) < 6).astype(int)
    separated = np.random.default_rng(0).normal(size=(60, 2)) + 20.0 * y[:, None]
    found = score_interval(LSSVC("linear"), separated, y, cv=3, scoring="average_precision", n_repeats=1)
    assert found.score == found.high == 1.0
    assert found.low == pytest.approx(plain.of_share(1.0, 6)[0])
    assert "6 rows of the positive class" in found.description
