"""Classes come and go with the rows of partial_fit and forget."""

import numpy as np
import pytest

from foldless import LSSVR, KernelFisherDiscriminant
from support.online import (
    KINDS,
    LABELS,
    LOO,
    X_NEW,
    Case,
    N,
    X,
    all_outputs,
    assert_same,
    every_classifier,
    every_penalty,
    fitted_on,
    gram,
    options,
    rows_of,
    updated_model,
)
from support.tolerances import assert_close


@every_classifier
@every_penalty
@pytest.mark.parametrize("class_weight", [None, {"cedar": 3.0}], ids=["plain", "weighted"])
def test_models_equal_refits_as_classes_come_and_go(kind, penalty, class_weight):
    """With weights of the classes, which KFDA takes relative to their mean, a new class changes those of all rows."""
    y = LABELS[3]
    order = np.concatenate([rows_of("ash"), rows_of("cedar"), rows_of("beech")])
    n_two = len(order) - len(rows_of("beech"))

    def make(rows):
        return fitted_on(kind, rows, first=order[:n_two], penalty=penalty, class_weight=class_weight)

    model = fitted_on(kind, order[:n_two], penalty=penalty, class_weight=class_weight)
    assert model.decision_function(X_NEW).shape == (7,)
    model.partial_fit(X[order[n_two:]], y[order[n_two:]])
    np.testing.assert_array_equal(model.classes_, ["ash", "beech", "cedar"])
    assert_same(all_outputs(model), all_outputs(make(order)))
    model.partial_fit(X[[40, 41]], ["aspen", "yew"])
    np.testing.assert_array_equal(model.classes_, ["ash", "aspen", "beech", "cedar", "yew"])
    model.forget([len(order), len(order) + 1])  # a few rows, so that P is updated where weights stay
    assert_same(all_outputs(model), all_outputs(make(order)))
    model.forget(np.flatnonzero(y[order] == "ash"))  # 3 -> 2, the first one goes
    kept = order[y[order] != "ash"]
    np.testing.assert_array_equal(model.classes_, ["beech", "cedar"])
    assert_same(all_outputs(model), all_outputs(make(kept)))
    model.partial_fit(X[[42]], ["ash"])
    assert model.decision_function(X_NEW).shape == (7, 3)


@every_classifier
@pytest.mark.parametrize("class_weight", [None, {"ash": 3.0}], ids=["plain", "weighted"])
def test_a_single_row_brings_and_takes_a_class(kind, class_weight):
    model = updated_model(kind, n_classes=2, class_weight=class_weight)
    before = all_outputs(model)
    model.partial_fit(X[[30]], ["yew"])
    expected = kind(gamma=0.2, alpha=0.3, class_weight=class_weight)
    expected.fit(X[[*range(20), 30]], [*LABELS[2][:20], "yew"])
    assert_same(all_outputs(model), all_outputs(expected))
    assert_same(all_outputs(model.forget(20)), before)


@every_classifier
def test_named_classes_stay_without_rows(kind):
    y = LABELS[3]
    named = ["ash", "beech", "cedar", "yew"]
    model = kind(gamma=0.2, alpha=0.3).partial_fit(X[:20], y[:20], classes=named)
    np.testing.assert_array_equal(model.classes_, named)
    beech = rows_of("beech", limit=20)
    model.forget(beech).partial_fit(X[20:22], np.where(y[20:22] == "beech", "ash", y[20:22]))
    np.testing.assert_array_equal(model.classes_, named)
    assert model.decision_function(X).shape == (N, 4)
    assert set(model.predict(X)) == {"ash", "cedar"}
    assert set(model.loo_predict()) <= {"ash", "cedar"}
    rows = np.setdiff1d(np.arange(22), beech)
    one_by_one = kind(gamma=0.2, alpha=0.3).partial_fit(
        X[rows], model.classes_[model._fitted_task.codes], classes=named
    )
    assert_same(all_outputs(model), all_outputs(one_by_one))
    model.partial_fit(X[30:32], ["fir", "beech"]).partial_fit(X[[32]], ["beech"], classes=["gum", "beech"])
    np.testing.assert_array_equal(model.classes_, ["ash", "beech", "cedar", "fir", "gum", "yew"])
    model.forget([20 - len(beech) + 2])  # the one fir, which nobody named
    np.testing.assert_array_equal(model.classes_, ["ash", "beech", "cedar", "gum", "yew"])
    np.testing.assert_array_equal(model.fit(X, y).classes_, ["ash", "beech", "cedar"])  # fit starts anew
    model.forget(np.flatnonzero(y == "ash"))
    np.testing.assert_array_equal(model.classes_, ["beech", "cedar"])


@pytest.mark.parametrize("threshold", ["fisher", "pm1", "centroid", "loo"])
def test_two_named_classes_of_which_one_has_rows(threshold):
    model = KernelFisherDiscriminant(gamma=0.2, threshold=threshold)
    model.partial_fit(X[:4], ["a"] * 4, classes=["a", "b"])
    assert set(model.predict(X)) == {"a"}
    model.partial_fit(X[4:12], list("babbabab"))
    expected = KernelFisherDiscriminant(gamma=0.2, threshold=threshold).fit(X[:12], list("aaaababbabab"))
    assert_same(all_outputs(model), all_outputs(expected))
    model.forget(np.flatnonzero(np.array(list("aaaababbabab")) == "a"))
    assert set(model.predict(X)) == {"b"}


@every_classifier
@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2]),
        np.array([-1, 5, 70], np.int8),
        np.array([1.0, 2.0, 4.0]),
        np.array(["a", "bb", "ccc"]),
        np.array(["a", "bb", "ccc"], object),
    ],
    ids=["int", "int8", "float", "str", "object"],
)
def test_labels_of_any_kind_can_be_learnt_and_forgotten(kind, labels):
    y = labels[np.searchsorted(["ash", "beech", "cedar"], LABELS[3])]
    model = kind(gamma=0.2).fit(X[:20], y[:20])
    for row in range(20, 26):
        model.partial_fit(X[[row]], y[[row]])
    model.forget(np.flatnonzero(y[:26] == labels[2])).partial_fit(X[26:], y[26:].tolist())
    rows = np.concatenate([np.flatnonzero(y[:26] != labels[2]), np.arange(26, N)])
    assert_same(all_outputs(model), all_outputs(kind(gamma=0.2).fit(X[rows], y[rows])))
    assert set(model.predict(X)) <= set(labels)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("kernel", "penalty"),
    [("rbf", "rkhs"), ("linear", "rkhs"), ("precomputed", "rkhs"), ("rbf", "coef"), ("linear", "coef")],
)
@pytest.mark.filterwarnings("ignore:penalty=.coef. is resolved from the 1 rows")
def test_learning_row_by_row_equals_fit(kind, kernel, penalty):
    """With penalty="coef" of the function of the first row, which the warning says."""
    case = Case(kind, 2, options(kernel=kernel, penalty=penalty))
    given = {} if kind == "LSSVR" else {"classes": ["ash", "beech"]}
    model = case.estimator()
    for row in range(12):
        model.partial_fit(case.inputs([row], range(row)), case.targets([row]), **given)
        assert model.X_fit_.shape[0] == row + 1
    rows = list(range(12))
    assert_same(all_outputs(model, case.new_inputs(rows)), all_outputs(case.refit(rows, [0]), case.new_inputs(rows)))
    if penalty == "coef":
        return  # models of other rows below have other functions
    for _ in range(11):  # and back to the last one
        model.forget(0)
    new = case.new_inputs([11])
    alone = case.estimator().partial_fit(case.inputs([11]), case.targets([11]), **given)
    assert_same(all_outputs(model, new, loo=()), all_outputs(alone, new, loo=()))
    np.testing.assert_array_equal(model.predict(new), np.repeat(case.targets([11]), 7))
    with pytest.raises(ValueError, match="leaving out 1 of 1 rows"):
        _ = model.loo_score_
    with pytest.raises(ValueError, match="would leave none of the 1 rows; make a new estimator"):
        model.forget(0)
    model.partial_fit(case.inputs([0, 1], [11]), case.targets([0, 1]))
    expected = case.estimator().partial_fit(case.inputs([11, 0, 1]), case.targets([11, 0, 1]), **given)
    new = case.new_inputs([11, 0, 1])
    assert_same(all_outputs(model, new, loo=LOO[:3]), all_outputs(expected, new, loo=LOO[:3]))


def test_model_of_one_row_without_intercept():
    model = LSSVR(gamma=0.2, fit_intercept=False, alpha=0.5).partial_fit(X[:1], [3.0])
    assert_close(model.predict(X_NEW), 3.0 / 1.5 * gram(X_NEW, X[:1])[:, 0])
    assert_close(model.loo_predict(), [0.0], scale=1.0)
