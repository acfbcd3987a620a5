"""cross_val_score of X with three axes: a family whose targets are made once, equal to a call for each time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._sklearn import adapters
from foldless.estimators import access, classifier
from foldless.model_selection import Metric, _permutation, _score, cross_val_score, permutation_test_score

N, TIMES = 60, 4
RNG = np.random.default_rng(0)
LABELS = np.array(["ant", "bee", "cat"])[np.arange(N) % 3]
TWO = np.where(np.arange(N) % 5 < 2, "no", "yes")
X = RNG.normal(size=(N, 5, TIMES)) + 0.8 * (TWO == "yes")[:, None, None] * (np.arange(TIMES) > 1)
VALUES = X[:, 0, 2] + RNG.normal(size=N)
WEIGHT = np.where(np.arange(N) % 7 == 3, 0.0, RNG.uniform(0.5, 2.0, N))
CONFOUND = RNG.normal(size=N)

FAMILIES = {
    "two classes": (LSSVC(), TWO, {}),
    "several": (KernelFisherDiscriminant(penalty="coef"), LABELS, {"scoring": "balanced_accuracy"}),
    "areas": (LSSVC("linear", standardize=True), TWO, {"scoring": "roc_auc"}),
    "class weights": (LSSVC(class_weight="balanced"), TWO, {"scoring": "f1_macro"}),
    "weights": (LSSVC(), LABELS, {"params": {"sample_weight": WEIGHT}}),
    "confounds": (LSSVR(), VALUES, {"confounds": CONFOUND}),
    "overlapping test sets": (LSSVC(), TWO, {"cv": ShuffleSplit(4, test_size=0.3, random_state=0)}),
    "outputs": (Ridge(), np.column_stack([VALUES, CONFOUND]), {"scoring": "neg_mean_squared_error"}),
    "labels of a ridge": (RidgeClassifier(), LABELS, {"cv": KFold(4)}),
    "behind steps": (make_pipeline(StandardScaler(), LSSVC()), TWO, {}),
    "behind steps fitted once": (make_pipeline(StandardScaler(), LSSVC()), TWO, {"steps": "once"}),
    "a metric": (LSSVR(), VALUES, {"scoring": Metric(lambda D, T: -np.abs(D - T).max((1, 2)), False)}),
}
# Each time by itself: they take more than decisions, or warn of what a family does not see.
TIME_BY_TIME = {
    "leave-one-out": (LSSVC(), TWO, {"cv": LeaveOneOut()}),
    "cuts": (KernelFisherDiscriminant(threshold="loo"), TWO, {}),
    "a function": (LSSVC(), TWO, {"scoring": lambda model, X, y: model.score(X, y)}),
    "probabilities": (LSSVC(calibration="sigmoid"), TWO, {"scoring": "neg_log_loss"}),
    "a class that a part lacks": (LSSVC(), np.sort(LABELS), {"cv": KFold(3)}),
    "a search": (FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}), TWO, {"cv": 3}),
    "R2 of single rows": (Ridge(), VALUES, {"cv": KFold(N)}),
}


@pytest.fixture
def families(monkeypatch):
    """Whether each call was answered as a family."""
    plain, answers = _score.family_split_scores, []

    def recorded(request):
        answers.append(plain(request))
        return answers[-1]

    monkeypatch.setattr(_score, "family_split_scores", recorded)
    return answers


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", [*FAMILIES, *TIME_BY_TIME])
def test_scores_at_each_time_are_those_of_a_call_for_each(case, families):
    estimator, y, options = (FAMILIES | TIME_BY_TIME)[case]
    found = cross_val_score(estimator, X, y, **options)
    assert any(answer is not None for answer in families) == (case in FAMILIES)
    expected = [cross_val_score(estimator, X[:, :, time], y, **options) for time in range(TIMES)]
    assert_allclose(found, np.transpose(expected), rtol=1e-9, atol=1e-12)


def test_scores_without_permutations_are_those_of_the_test():
    found = cross_val_score(LSSVC(), X, TWO, cv=4)
    result = permutation_test_score(LSSVC(), X, TWO, cv=4, n_permutations=0)
    assert_array_equal(result.split_scores.T, found)
    assert_array_equal(result.score, found.mean(0))


def test_an_interrupt_ends_the_scores(monkeypatch):
    scores, calls = _permutation._scores, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return scores(*args)

    monkeypatch.setattr(_permutation, "_scores", interrupted)
    with pytest.raises(KeyboardInterrupt):  # a permutation test keeps the members that are done
        cross_val_score(LSSVC(), X, TWO, cv=4)


def test_labels_are_coded_and_splits_checked_once_for_all_members(monkeypatch):
    coded, unique, counts = classifier.coded, np.unique, {"coded": 0, "training parts": 0}

    def counted_coding(*args):
        counts["coded"] += 1
        return coded(*args)

    def counted_unique(values, **options):
        counts["training parts"] += len(values) == N - N // 4
        return unique(values, **options)

    monkeypatch.setattr(classifier, "coded", counted_coding)
    monkeypatch.setattr(np, "unique", counted_unique)
    for call in (
        lambda X: permutation_test_score(LSSVC(), X, TWO, cv=4, n_permutations=3),
        lambda X: cross_val_score(LSSVC(), X, TWO, cv=4),
    ):
        call(X[:, :, :2])
        of_two = dict(counts)
        call(X)
        assert counts == {name: 2 * count for name, count in of_two.items()}
        counts.update(dict.fromkeys(counts, 0))


def test_the_task_of_known_targets_is_that_of_y():
    for estimator, y, weight in (
        (LSSVC(class_weight="balanced", standardize=True), TWO, None),
        (KernelFisherDiscriminant(priors=[0.2, 0.3, 0.5]), LABELS, WEIGHT),
        (LSSVR("poly"), np.column_stack([VALUES, CONFOUND]), WEIGHT),
    ):
        targets = adapters.placeholder_task(estimator, y, weight)
        for features in (X[:, :, 1], X[:, :, 2].astype(np.float32)):
            found = access.task_on_rows(estimator, features, targets, weight)
            expected = access.task_of(estimator, features, y, weight)
            for name in ("Y", "codes", "calibration_weights"):
                assert_array_equal(getattr(found.task, name), getattr(expected.task, name))
            assert found.task.Y.dtype == expected.task.Y.dtype
            assert_allclose(found.task.problem.root_w, expected.task.problem.root_w, rtol=1e-6)
            assert repr(found.task.problem.kernel) == repr(expected.task.problem.kernel)
            assert found.flat == expected.flat
            assert vars(found.checked).keys() == vars(expected.checked).keys()
