"""Metrics of many labelings at once are scikit-learn's, row by row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics as theirs
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold

import foldless._engine.permutation.metrics as metrics
from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.estimators.metrics import METRICS, scorer_of
from foldless.model_selection import permutation_test_score
from support.permutation import BINARY, KFDA, VALUES, X
from support.tolerances import assert_close


def tied_decisions(n_classes, b=12, t=15, seed=0):
    """Decisions with many ties, and class numbers; one labeling lacks the last class, another all others."""
    rng = np.random.default_rng(seed)
    D = rng.integers(-2, 3, (b, 1 if n_classes == 2 else n_classes, t)).astype(float)
    codes = rng.integers(0, n_classes, (b, t))
    codes[1] = rng.integers(0, n_classes - 1, t)
    codes[2] = n_classes - 1
    return D, codes


def values(b=12, k=2, t=15, seed=0):
    """Predictions and values of k outputs; constant in places, and met exactly in some of them."""
    rng = np.random.default_rng(seed)
    D, T = rng.normal(size=(2, b, k, t))
    T[1, 0] = 3.0
    T[2] = D[2] = 0.25
    D[3, 1] = 0.5
    T[4], D[4] = 2.0, 2.0
    D[4, 0, 3] += 0.5
    return D, T


@pytest.mark.parametrize("n_classes", [2, 3, 4, 6])
def test_classes_chosen_among_close_decisions_are_the_largest(n_classes):
    D, _ = tied_decisions(n_classes)
    expected = (D[:, 0] > 0).astype(int) if n_classes == 2 else D.argmax(1)
    assert_array_equal(metrics.chosen_among_close(D), expected)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 6])
@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "ber"])
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true", "ignore:A single label was found")
def test_metrics_of_labels_are_scikit_learns_row_by_row(name, n_classes):
    D, codes = tied_decisions(n_classes)
    found = METRICS[name].function(D, codes)
    labels = (D[:, 0] > 0) if n_classes == 2 else D.argmax(1)
    function = theirs.accuracy_score if name == "accuracy" else theirs.balanced_accuracy_score
    expected = [function(true, label.astype(int)) for true, label in zip(codes, labels, strict=True)]
    expected = 1 - np.array(expected) if name == "ber" else expected
    assert_allclose(found, expected, rtol=0, atol=1e-15)
    one = [METRICS[name].sklearn_metric(true, label.astype(int)) for true, label in zip(codes, labels, strict=True)]
    assert_allclose(one, expected, rtol=0, atol=1e-15)


@pytest.mark.filterwarnings("ignore:Only one class is present")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_areas_under_the_curve_are_scikit_learns_row_by_row(dtype):
    D, codes = tied_decisions(2)
    D[5] = 0.5  # all the same
    D = D.astype(dtype)
    found = metrics.roc_auc(D, codes)
    expected = [theirs.roc_auc_score(true, d[0]) for true, d in zip(codes, D, strict=True)]
    assert np.isnan(expected[2])
    assert_allclose(found, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("model", [LSSVC(gamma=5.0), KFDA(gamma=5.0), LSSVR(gamma=5.0)], ids=lambda m: type(m).__name__)
def test_constant_held_out_decisions_score_at_chance(model):
    """Where every kernel value is 0 held-out decisions are constant, and 0 = Y - E up to rounding that knows Y."""
    far = np.random.default_rng(0).normal(size=(60, 60))
    y = np.arange(60) % 2
    scoring, chance = ("correlation", 0.0) if isinstance(model, LSSVR) else ("roc_auc", 0.5)
    splits = list(KFold(5, shuffle=True, random_state=0).split(far))
    result = permutation_test_score(model, far, y, cv=splits, n_permutations=20, scoring=scoring)
    assert_close(np.append(result.permutation_scores, result.score), np.full(21, chance))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", ["r2", "neg_mean_squared_error", "correlation"])
def test_metrics_of_values_are_scikit_learns_row_by_row(name, k):
    D, T = values(k=max(k, 2))
    D, T = D[:, -k:], T[:, -k:]

    def correlation(true, predicted):
        flat = [np.ptp(true[:, j]) == 0 or np.ptp(predicted[:, j]) == 0 for j in range(k)]
        return np.mean([0.0 if flat[j] else np.corrcoef(true[:, j], predicted[:, j])[0, 1] for j in range(k)])

    def loss(true, predicted):
        return -theirs.mean_squared_error(true, predicted)

    expected = {"r2": theirs.r2_score, "neg_mean_squared_error": loss, "correlation": correlation}[name]
    rows = [(t.T, d.T) for t, d in zip(T, D, strict=True)]
    assert_allclose(METRICS[name].function(D, T), [expected(*row) for row in rows], rtol=1e-12, atol=1e-14)
    assert_allclose(
        [METRICS[name].sklearn_metric(*row) for row in rows], [expected(*row) for row in rows], rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("name", ["r2", "correlation"])
def test_metrics_of_values_far_from_zero_keep_the_digits_of_their_differences(name):
    """The mean of values near 1e13 is known to 1e-3; halves of the values and predictions are exact there."""
    rng = np.random.default_rng(0)
    D, T = (rng.integers(-9, 9, size=(4, 2, 15)) / 2 for _ in range(2))
    assert_allclose(METRICS[name].function(D + 1e13, T + 1e13), METRICS[name].function(D, T), rtol=1e-12)


@pytest.mark.parametrize("name", ["r2", "correlation", "neg_mean_squared_error"])
def test_differences_of_a_few_last_places_are_no_rounding(name):
    """Single precision near 2^20 has eighths."""
    rng = np.random.default_rng(0)
    D, T = (rng.integers(-2, 3, size=(4, 2, 15)) / 4 for _ in range(2))
    far = [(values + 2.0**20).astype(np.float32) for values in (D, T)]
    assert_allclose(METRICS[name].function(*far), METRICS[name].function(D, T), rtol=1e-5)


def test_values_far_from_zero_have_nearly_the_same_scores_in_single_precision():
    y = 1e6 + VALUES / VALUES.std()
    search = FoldlessSearchCV(LSSVR(gamma=0.1), {"alpha": [0.1]}, scoring="r2", cv=KFold(4))
    options = {"cv": KFold(4), "n_permutations": 3, "random_state": 0}
    found = []
    for rows in (X, X.astype(np.float32)):
        score, null, _ = permutation_test_score(LSSVR(gamma=0.1, alpha=0.1), rows, y, **options)
        found.append([score, *null, search.fit(rows, y).best_score_])
    assert_allclose(*found, rtol=0, atol=0.05)


def test_scorers_of_metrics_give_their_values():
    model = Ridge().fit(X, VALUES)
    r = np.corrcoef(model.predict(X), VALUES)[0, 1]
    assert_close(scorer_of(METRICS["correlation"])(model, X, VALUES), r)
    model = LogisticRegression().fit(X, BINARY)
    assert scorer_of(METRICS["ber"])(model, X, BINARY) == 1 - theirs.balanced_accuracy_score(BINARY, model.predict(X))
    assert scorer_of(METRICS["roc_auc"])(model, X, BINARY) == theirs.roc_auc_score(BINARY, model.decision_function(X))
    assert [name for name, metric in METRICS.items() if not metric.greater] == ["ber"]
