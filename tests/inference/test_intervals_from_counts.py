"""Intervals of scores of classes hold what the numbers of held-out rows allow: by formula, from held-out labels."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, get_scorer, make_scorer, recall_score, zero_one_loss
from sklearn.model_selection import GroupKFold, LeaveOneOut, RepeatedStratifiedKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foldless import LSSVC, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.inference.counts import area_interval, clopper_pearson
from foldless.model_selection import compare, cross_validate, nested_cross_validate, score_interval
from support import intervals as plain

pytestmark = pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
CV = StratifiedKFold(4, shuffle=True, random_state=0)


def rare(seed=0, effect=1.5, n=60):
    """Rows of two classes, one of which has every sixth of them."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 6 == 0).astype(int)
    return rng.normal(size=(n, 3)) + effect * y[:, None], y


def three(seed=0):
    """Rows of three classes, of 40, 15 and 5 rows."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(["ant", "bee", "cat"], [40, 15, 5]))
    centres = {"ant": [0, 0, 0], "bee": [2, 0, 0], "cat": [0, 2, 1]}
    return rng.normal(size=(60, 3)) + [centres[label] for label in y], y


TWO, THREE = rare(), three()
SCORES = {
    "balanced_accuracy": plain.balanced,
    "f1": plain.f1,
    "recall": plain.recall,
    "precision": plain.precision,
    "matthews_corrcoef": plain.matthews,
}
SCORES_OF_THREE = {"f1_macro": plain.macro_f1, "recall_macro": plain.balanced}
MODELS = {
    "one fit": LSSVC("linear", class_weight={0: 1.0, 1: 4.0}),
    "a cut from leave-one-out": KernelFisherDiscriminant("linear", threshold="loo"),
    "refits": LogisticRegression(class_weight={0: 1.0, 1: 4.0}),
    "a pipeline that is refitted": make_pipeline(StandardScaler(), SVC()),
}


def limits(scoring):
    return (-np.inf, 1.0) if scoring == "matthews_corrcoef" else (0.0, 1.0)


def held_out(model, X, y, cv):
    """Predictions of all rows, each by a refit without its fold."""
    predicted = np.empty_like(y)
    for train, test in cv.split(X, y):
        predicted[test] = clone(model).fit(X[train], y[train]).predict(X[test])
    return predicted


def fold_scores(model, X, y, cv, scoring):
    """Scores of refits without each fold."""
    splits = cv.split(X, y)
    return [get_scorer(scoring)(clone(model).fit(X[tr], y[tr]), X[te], y[te]) for tr, te in splits]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("scoring", SCORES)
@pytest.mark.filterwarnings("ignore:Precision is ill-defined")
def test_intervals_of_cross_validations_are_the_formulas(scoring, model):
    check_labels(MODELS[model], *TWO, scoring, SCORES[scoring])


@pytest.mark.parametrize("model", [LSSVC("linear"), SVC()], ids=["one fit", "refits"])
@pytest.mark.parametrize("scoring", SCORES_OF_THREE)
def test_intervals_of_three_classes_are_the_formulas(scoring, model):
    check_labels(model, *THREE, scoring, SCORES_OF_THREE[scoring])


def check_labels(model, X, y, scoring, score):
    confusion = plain.confusion_of(y, held_out(model, X, y, CV))
    by_counts = plain.of_labels(score, confusion, confusion.sum(1))
    by_folds = plain.of_folds(fold_scores(model, X, y, CV, scoring), 1 / 3)
    found = cross_validate(model, X, y, cv=CV, scoring=scoring).interval()
    ends = plain.both(by_counts, by_folds, limits=limits(scoring))
    assert_allclose([found.low, found.high], ends, rtol=1e-9)
    assert found.widened == (not np.allclose(ends, plain.both(by_folds, limits=limits(scoring))))


@pytest.mark.parametrize("model", [MODELS["one fit"], MODELS["refits"]], ids=["one fit", "refits"])
@pytest.mark.parametrize("effect", [0.3, 1.5, 6.0])
def test_areas_of_cross_validations_are_the_formulas(model, effect):
    X, y = rare(effect=effect)
    areas = fold_scores(model, X, y, CV, "roc_auc")
    found = cross_validate(model, X, y, cv=CV, scoring="roc_auc").interval()
    expected = plain.both(plain.of_area(np.mean(areas), 10, 50), plain.of_folds(areas, 1 / 3))
    assert_allclose([found.low, found.high], expected, atol=1e-5)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize(("rarer", "others"), [(1, 9), (5, 95), (20, 20)])
def test_areas_are_those_that_are_near_enough(rarer, others, confidence):
    for area in (0.0, 0.03, 0.5, 0.9, 0.999, 1.0):
        expected = plain.of_area(area, others, rarer, confidence)
        assert_allclose(area_interval(area, rarer, others, confidence), expected, atol=1e-5)


def test_shares_have_the_exact_interval():
    for right in range(8):
        ends = binomtest(right, 7).proportion_ci(0.8, method="exact")
        assert_allclose(clopper_pearson(right / 7, 7, 0.8), [ends.low, ends.high])


@pytest.mark.parametrize("scoring", [None, "accuracy"])
@pytest.mark.parametrize("model", [LSSVC(gamma=0.1), SVC(), make_pipeline(StandardScaler(), SVC())], ids=str)
def test_perfect_folds_are_not_certain(model, scoring):
    X, y = rare(effect=8.0)
    ends = binomtest(60, 60).proportion_ci(0.9, method="exact")
    found = cross_validate(model, X, y, cv=CV, scoring=scoring).interval()
    assert [found.score, found.low, found.high] == [1.0, pytest.approx(ends.low), 1.0]


def test_one_partition_of_the_nested_interval_is_the_formula():
    X, y = TWO
    model = MODELS["one fit"]
    found = score_interval(model, X, y, cv=StratifiedKFold(4), scoring="balanced_accuracy")
    confusion = plain.confusion_of(y, held_out(model, X, y, StratifiedKFold(4)))
    nested = found.centre + 1.6448536269514722 * found.standard_error * np.array([-1, 1])
    assert_allclose([found.low, found.high], plain.both(plain.of_labels(plain.balanced, confusion, [50, 10]), nested))
    areas = score_interval(model, X, y, cv=StratifiedKFold(4), scoring="roc_auc")
    nested = areas.centre + 1.6448536269514722 * areas.standard_error * np.array([-1, 1])
    assert_allclose([areas.low, areas.high], plain.both(plain.of_area(areas.score, 10, 50), nested), atol=1e-5)


def test_partitions_are_counted_together_but_rows_once():
    X, y = rare(effect=3.0)
    model = MODELS["one fit"]
    found = score_interval(model, X, y, cv=4, scoring="balanced_accuracy", n_repeats=12, random_state=3)
    seeds = np.random.RandomState(3).randint(2**31 - 1, size=12)
    confusion = sum(plain.confusion_of(y, held_out(model, X, y, folds(seed))) for seed in seeds)
    nested = found.centre + 1.6448536269514722 * found.standard_error * np.array([-1, 1])
    by_counts = plain.of_labels(plain.balanced, confusion, [50, 10])
    assert by_counts[0] < nested[0]
    assert_allclose([found.low, found.high], plain.both(by_counts, nested))
    cv = RepeatedStratifiedKFold(n_splits=4, n_repeats=2, random_state=1)
    result = cross_validate(model, X, y, cv=cv, scoring="balanced_accuracy")
    confusion = 0
    for train, test in cv.split(X, y):
        confusion = confusion + plain.confusion_of(y[test], clone(model).fit(X[train], y[train]).predict(X[test]))
    expected = plain.both(
        plain.of_labels(plain.balanced, confusion, [50, 10]), plain.of_folds(result["test_score"], 1 / 3)
    )
    assert_allclose([result.interval().low, result.interval().high], expected)


def folds(seed):
    return StratifiedKFold(4, shuffle=True, random_state=seed)


def test_rows_that_are_never_held_out_do_not_count():
    X, y = rare(effect=8.0)
    cv = ShuffleSplit(2, test_size=0.2, random_state=0)
    tested = np.unique(np.concatenate([test for _, test in cv.split(X)]))
    found = cross_validate(LSSVC(gamma=0.1), X, y, cv=cv).interval()
    assert 12 <= len(tested) < 25
    assert_allclose(found.low, binomtest(len(tested), len(tested)).proportion_ci(0.9, method="exact").low)


def test_groups_count_as_one():
    X, y = rare(effect=8.0)
    groups = np.arange(60) // 3 % 10  # 10 groups of six rows; every second holds some of class 1
    cv, model = GroupKFold(5), LSSVC(gamma=0.1)
    found = cross_validate(model, X, y, cv=cv, groups=groups, scoring=["accuracy", "balanced_accuracy"])
    ends = binomtest(10, 10).proportion_ci(0.9, method="exact")
    assert_allclose(found.interval("accuracy").low, ends.low)
    expected = plain.of_labels(plain.balanced, np.diag([50.0, 10.0]), [10, 5])
    assert_allclose(found.interval("balanced_accuracy").low, expected[0])
    assert "10 groups allow" in found.interval("accuracy").description
    nested = score_interval(model, X, y, cv=cv, groups=groups, scoring="balanced_accuracy")
    assert_allclose(nested.low, expected[0])


def test_nested_cross_validations_count_their_predictions():
    X, y = rare(effect=3.0)
    search = FoldlessSearchCV(LSSVC("linear", class_weight={0: 1.0, 1: 4.0}), {"alpha": [0.1, 1.0]})
    result = nested_cross_validate(search, X, y, cv=CV, scoring=["accuracy", "balanced_accuracy", "roc_auc"])
    predicted = np.empty_like(y)
    predicted[np.concatenate(result.test_indices)] = np.concatenate(result.predictions)
    counts = {
        "accuracy": plain.of_share(np.mean(predicted == y), 60),
        "balanced_accuracy": plain.of_labels(plain.balanced, plain.confusion_of(y, predicted), [50, 10]),
        "roc_auc": plain.of_area(result.test_score["roc_auc"].mean(), 10, 50),
    }
    for name, found in result.interval().items():
        expected = plain.both(counts[name], plain.of_folds(result.test_score[name], 1 / 3))
        assert_allclose([found.low, found.high], expected, atol=1e-5)
    alone = nested_cross_validate(search, X, y, cv=CV)
    assert_allclose([*alone.interval()], [*result.interval()["accuracy"]])


def test_labels_keep_their_names():
    X, y = rare()
    scorer = make_scorer(f1_score, pos_label="no")
    words = np.where(y == 1, "yes", "no")
    found = cross_validate(LSSVC(), X, words, cv=CV, scoring=scorer)
    confusion = plain.confusion_of(words, held_out(LSSVC(), X, words, CV))
    by_counts = plain.of_labels(lambda C: plain.f1(C, 0), confusion, [50, 10])
    expected = plain.both(by_counts, plain.of_folds(found["test_score"], 1 / 3))
    assert_allclose([found.interval().low, found.interval().high], expected)
    other = score_interval(LSSVC(), X, words, cv=CV, scoring=scorer, n_repeats=1)
    assert other.low <= by_counts[0] + 1e-12
    assert other.high >= by_counts[1] - 1e-12


@pytest.mark.parametrize("model", [LSSVC("linear"), SVC()], ids=["one fit", "refits"])
def test_losses_and_functions_of_users_have_intervals(model):
    X, y = rare(effect=8.0)
    loss = cross_validate(model, X, y, cv=CV, scoring=make_scorer(zero_one_loss, greater_is_better=False)).interval()
    by_counts = plain.of_labels(lambda C: np.trace(C) / C.sum() - 1, np.diag([50.0, 10.0]), [50, 10])
    assert_allclose([loss.low, loss.high], by_counts, atol=1e-12)
    odd = make_scorer(lambda y, predicted, sample_weight=None: 7.0 if sample_weight is None else 1 / 0)
    assert [*cross_validate(model, X, y, cv=CV, scoring=odd).interval()] == [7.0, 7.0, 7.0]
    negative = make_scorer(accuracy_score, greater_is_better=False)
    assert cross_validate(model, X, y, cv=CV, scoring=negative).interval().low <= -1.0


def test_the_recall_of_one_class_is_a_share_of_its_rows():
    X, y = THREE
    model = LSSVC("linear")
    scorer = make_scorer(recall_score, labels=["bee"], average="macro", pos_label=None)
    found = cross_validate(model, X, y, cv=CV, scoring=scorer)
    confusion = plain.confusion_of(y, held_out(model, X, y, CV))
    by_counts = plain.of_share(confusion[1, 1] / 15, 15)
    assert_allclose(
        [found.interval().low, found.interval().high],
        plain.both(by_counts, plain.of_folds(found["test_score"], 1 / 3)),
    )


@pytest.mark.filterwarnings("ignore:A single label was found", "ignore:y_pred contains classes not in y_true")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.parametrize("cv", [CV, LeaveOneOut()], ids=["folds", "leave-one-out"])
@pytest.mark.parametrize("scoring", ["balanced_accuracy", ["accuracy", "recall_macro"], None])
def test_counting_leaves_the_results_of_refits_as_they_are(scoring, cv):
    X, y = TWO
    options = {"cv": cv, "scoring": scoring, "return_train_score": True, "return_indices": True}
    found, expected = cross_validate(SVC(), X, y, **options), skl.cross_validate(SVC(), X, y, **options)
    assert list(found) == list(expected)
    for name in expected:
        if name.startswith(("test_", "train_")):
            np.testing.assert_array_equal(found[name], expected[name])


def test_scorers_that_fail_leave_an_interval_without_counts():
    X, y = TWO
    words = np.where(y == 1, "yes", "no")
    with pytest.warns(UserWarning, match="Scoring failed"):
        found = cross_validate(SVC(), X, words, cv=CV, scoring="f1")
    assert np.isnan(found["test_score"]).all()
    assert np.isnan([*found.interval()]).all()


def test_weights_are_not_routed_to_the_counts():
    X, y = TWO
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVC().set_fit_request(sample_weight=True)
        scorer = get_scorer("balanced_accuracy").set_score_request(sample_weight=False)
        weights = {"sample_weight": np.linspace(1, 2, len(y))}
        found = cross_validate(model, X, y, cv=CV, scoring=scorer, params=weights).interval()
    assert found.widened


@pytest.mark.parametrize(
    ("scoring", "words"),
    [
        ("accuracy", "widened to what 60 rows allow (Clopper & Pearson 1934)"),
        ("balanced_accuracy", "widened to what the rows of the classes allow, 10 of the rarest (Clopper"),
        ("roc_auc", "widened to what 10 rows of the rarest class allow (Hanley & McNeil 1982, Newcombe 2006)"),
    ],
)
def test_intervals_tell_their_method_in_words(scoring, words):
    X, y = rare(effect=8.0)
    found = score_interval(LSSVC("linear"), X, y, scoring=scoring, cv=4, n_repeats=1)
    assert found.description.startswith("nested cross-validation (Bates, Hastie & Tibshirani 2023), ")
    assert words in found.description
    assert "(nested, widened by counts, 4 folds)" in str(found)
    other = cross_validate(LSSVC("linear"), X, y, scoring=scoring, cv=4).interval()
    assert other.description.startswith("from the scores of the folds (Nadeau & Bengio 2003), ")
    assert words in other.description


def test_an_interval_that_holds_the_one_from_counts_stays_as_it_is():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 3)) + 0.5 * y[:, None]
    result = cross_validate(LSSVC("linear"), X, y, cv=4, scoring="balanced_accuracy")
    expected = plain.of_folds(result["test_score"], 1 / 3)
    found = result.interval(confidence=0.9)
    assert not found.widened
    assert_allclose([found.low, found.high], expected)
    assert found.description == "from the scores of the folds (Nadeau & Bengio 2003)"


@pytest.mark.parametrize("method", ["nested", "nadeau-bengio", "sign-flip"])
def test_comparisons_give_the_same_intervals(method):
    X, y = rare(effect=8.0)
    cv = ShuffleSplit(1, test_size=0.5, random_state=0) if method == "sign-flip" else CV
    first, second = LSSVC(gamma=0.1), LSSVC("linear")
    n = 30 if method == "sign-flip" else 60
    for found in compare(first, second, X, y, cv=cv, method=method, n_repeats=1).scores:
        assert [found.score, found.low] == [1.0, pytest.approx(binomtest(n, n).proportion_ci(0.9, method="exact").low)]


def test_folds_are_no_more_than_the_rows_of_the_rarest_class():
    X, y = rare(n=60)
    y[12:] = 0
    y[13::14] = 1
    assert np.bincount(y)[1] == 6
    found = score_interval(LSSVC("linear"), X, y, scoring="roc_auc", n_repeats=2)
    assert (found.n_folds, np.isfinite([*found]).all()) == (6, True)
    with pytest.raises(
        ValueError,
        match=r"scoring='roc_auc' needs rows of every class in every fold, but a fold has none"
        r" of the 6 rows of class 1. Use fewer folds \(for example cv=3\)",
    ):
        score_interval(LSSVC("linear"), X, y, scoring="roc_auc", cv=StratifiedKFold(6).split(X, np.arange(60) % 6))
