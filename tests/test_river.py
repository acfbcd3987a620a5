"""The adapter for river against the same estimators fitted by hand on the rows seen so far."""

import importlib
import pickle
import random
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from foldless import LSSVC, LSSVR, AdaptiveKDA, KernelFisherDiscriminant
from foldless.estimators import SlidingWindow
from support.tolerances import assert_close

pytest.importorskip("river", minversion="0.26", reason="river 0.26 or later is not installed")

from river import checks, evaluate, metrics, preprocessing

from foldless.river import RiverClassifier, RiverRegressor

RNG = np.random.default_rng(5)
N = 36
X = RNG.normal(size=(N, 3))
LABELS = np.array(["ash", "ash", "ash", *RNG.choice(["ash", "beech", "cedar"], N - 3)])
VALUES = X @ [1.0, -2.0, 0.5] + RNG.normal(size=N)
WEIGHTS = RNG.uniform(0.5, 2, N)
NAMES = ["height", "girth", 7]  # names may be any hashable values

CLASSIFIERS = {
    "lssvc": LSSVC(gamma=0.3),
    "fisher": KernelFisherDiscriminant(gamma=0.3),
    "adaptive": AdaptiveKDA(gamma=0.3),
    "linear": LSSVC(kernel="linear"),
}


def named(row, shuffled=None):
    """A row as a dictionary, its features in any order."""
    x = dict(zip(NAMES, row.tolist(), strict=True))
    return {name: x[name] for name in (NAMES if shuffled is None else shuffled.permutation(np.array(NAMES, object)))}


def frame(rows):
    return pd.DataFrame(rows, columns=pd.Index(NAMES, dtype=object))


def fresh(estimator):
    return type(estimator)(**estimator.get_params())


@pytest.mark.parametrize("estimator", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_every_prediction_is_that_of_a_model_fitted_on_the_rows_before(estimator):
    model, order = RiverClassifier(estimator), np.random.default_rng(0)
    for i in range(N):
        x = named(X[i], order)
        predicted = model.predict_one(x)
        if i == 0:
            assert predicted is None
        elif len(set(LABELS[:i])) == 1:
            assert predicted == LABELS[0]
            assert model.model is None
        else:
            refit = fresh(estimator).fit(X[:i], LABELS[:i])
            assert predicted == refit.predict(X[i : i + 1])[0]
            assert type(predicted) is str
            columns = [NAMES.index(name) for name in model._names]
            assert_close(model.model.decision_function(X[:, columns]), refit.decision_function(X))
        model.learn_one(x, LABELS[i])
    assert not hasattr(estimator, "classes_")  # trained is a clone


@pytest.mark.parametrize("kind", ["lssvc", "adaptive"])
def test_a_window_holds_the_last_rows_even_of_those_that_waited(kind):
    model = RiverClassifier(SlidingWindow(CLASSIFIERS[kind], 10))
    y = np.where(np.arange(N) < 15, "ash", LABELS)
    for i in range(N):
        model.learn_one(named(X[i]), y[i])
        if i == 14:
            assert model.model is None
            assert len(model._waiting) == 10
    assert model.model.n_samples_ == 10
    refit = fresh(CLASSIFIERS[kind]).partial_fit(X[-10:], y[-10:], classes=np.unique(y))
    assert_close(model.model.decision_function(X), refit.decision_function(X))


def test_regression_equals_refits_from_the_first_row_on():
    model = RiverRegressor(LSSVR(gamma=0.3))
    assert model.predict_one(named(X[0])) == 0.0
    for i in range(N - 1):
        model.learn_one(named(X[i]), VALUES[i])
        refit = LSSVR(gamma=0.3).partial_fit(X[: i + 1], VALUES[: i + 1])
        assert_close(model.predict_one(named(X[i + 1])), refit.predict(X[i + 1 : i + 2])[0])
    window = RiverRegressor(SlidingWindow(LSSVR(gamma=0.3), 12))
    window.learn_many(frame(X), pd.Series(VALUES))
    expected = LSSVR(gamma=0.3).fit(X[-12:], VALUES[-12:]).predict(X)
    assert_close(window.predict_many(frame(X)).to_numpy(), expected)


def test_named_classes_start_with_the_first_row():
    model = RiverClassifier(LSSVC(gamma=0.3), classes=["ash", "beech"])
    assert model.predict_one(named(X[0])) is None
    model.learn_one(named(X[0]), "ash")
    by_hand = LSSVC(gamma=0.3).partial_fit(X[:1], ["ash"], classes=["ash", "beech"])
    assert_close(model.model.decision_function(X), by_hand.decision_function(X))
    model.learn_one(named(X[1]), "cedar")  # others may still appear
    assert model.model.classes_.tolist() == ["ash", "beech", "cedar"]


@pytest.mark.parametrize("window", [False, True])
def test_weights_are_sample_weights(window):
    plain = LSSVC(gamma=0.3)
    one = RiverClassifier(SlidingWindow(plain, N) if window else plain)
    many = one.clone()
    for i in range(N):
        one.learn_one(named(X[i]), LABELS[i], w=WEIGHTS[i])
    many.learn_many(frame(X), pd.Series(LABELS), w=WEIGHTS)
    refit = LSSVC(gamma=0.3).fit(X, LABELS, sample_weight=WEIGHTS)
    for model in (one, many):
        assert_close(model.model.decision_function(X), refit.decision_function(X))


def test_rows_of_weight_zero_do_not_start_a_model():
    model = RiverClassifier(LSSVC(gamma=0.3))
    model.learn_one(named(X[0]), "ash")
    model.learn_one(named(X[1]), "beech", w=0.0)
    assert model.model is None
    assert model.predict_one(named(X[2])) == "ash"
    model.learn_one(named(X[2]), "beech")
    refit = LSSVC(gamma=0.3).fit(X[:3], ["ash", "beech", "beech"], sample_weight=[1, 0, 1])
    assert_close(model.model.decision_function(X), refit.decision_function(X))
    named_classes = RiverClassifier(LSSVC(gamma=0.3), classes=["ash", "beech"])
    named_classes.learn_one(named(X[0]), "ash", w=0.0)
    assert named_classes.model is None


def test_probabilities_of_calibrated_models():
    estimator = LSSVC(gamma=0.3, calibration="sigmoid")
    model = RiverClassifier(estimator)
    assert model.predict_proba_one(named(X[0])) == {}
    for i, label in enumerate(["ash", "ash", "beech"]):
        model.learn_one(named(X[i]), label)
    assert model.model is None  # calibration needs a second row of a second class
    assert model.predict_proba_one(named(X[3])) == {"ash": 2 / 3, "beech": 1 / 3}
    assert model.predict_one(named(X[3])) == "ash"
    model.learn_many(frame(X[3:]), pd.Series(LABELS[3:]))
    refit = fresh(estimator).fit(X, ["ash", "ash", "beech", *LABELS[3:]])
    P = refit.predict_proba(X)
    many = model.predict_proba_many(frame(X))
    assert many.columns.tolist() == ["ash", "beech", "cedar"]
    assert_close(many.to_numpy(), P, rtol=1e-6)
    one = model.predict_proba_one(named(X[0]))
    assert list(one) == many.columns.tolist()
    assert_close(list(one.values()), P[0], rtol=1e-6)


def test_probabilities_need_calibration():
    for estimator in (LSSVC(gamma=0.3), SlidingWindow(AdaptiveKDA(gamma=0.3))):
        model = RiverClassifier(estimator)
        with pytest.raises(NotImplementedError, match="calibration='sigmoid'"):
            model.predict_proba_one(named(X[0]))
        model.learn_many(frame(X), pd.Series(LABELS))
        with pytest.raises(NotImplementedError, match="calibration='sigmoid'"):
            model.predict_proba_many(frame(X))


def test_mini_batches_equal_single_rows_and_columns_go_by_name():
    one, many = RiverClassifier(LSSVC(gamma=[0.1, 0.3, 1.0])), RiverClassifier(LSSVC(gamma=[0.1, 0.3, 1.0]))
    for i in range(N):
        one.learn_one(named(X[i]), LABELS[i])
    table = frame(X).set_axis(np.arange(N) + 100)
    for rows, columns in ((slice(0, 2), NAMES), (slice(2, 20), NAMES[::-1]), (slice(20, N), NAMES)):
        many.learn_many(table.iloc[rows][columns], pd.Series(LABELS[rows]))
    predicted = many.predict_many(table[NAMES[::-1]])
    assert predicted.index.equals(table.index)
    assert predicted.tolist() == [one.predict_one(named(row)) for row in X]
    assert_close(many.model.decision_function(X), one.model.decision_function(X))
    refit = LSSVC(gamma=[0.1, 0.3, 1.0]).fit(X, LABELS)
    assert_close(many.model.decision_function(X), refit.decision_function(X))


def test_predictions_of_polars_frames_are_polars():
    table = pl.DataFrame(X, schema=["a", "b", "c"])
    model = RiverClassifier(KernelFisherDiscriminant(gamma=0.3, calibration="sigmoid"))
    model.learn_many(table, pl.Series(LABELS))
    refit = KernelFisherDiscriminant(gamma=0.3, calibration="sigmoid").fit(X, LABELS)
    assert model.predict_many(table.select("c", "a", "b")).to_list() == refit.predict(X).tolist()
    P = model.predict_proba_many(table)
    assert isinstance(P, pl.DataFrame)
    assert_close(P.to_numpy(), refit.predict_proba(X))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"height": 1.0, "girth": 2.0}, r"lacks the features \[7\]"),
        ({"height": 1.0, "girth": 2.0, 7: 1.0, "age": 3.0}, r"unknown ones \['age'\]"),
        ({}, r"lacks the features \['girth', 'height', 7\]"),
        ({"height": "tall", "girth": 2.0, 7: 1.0}, r"\['height'\] hold something else than finite numbers"),
        ({"height": 1.0, "girth": None, 7: np.nan}, r"\['girth', 7\] hold something else than finite numbers"),
    ],
    ids=["missing", "unknown", "empty", "text", "gap"],
)
@pytest.mark.parametrize("rows", [2, N], ids=["waiting", "fitted"])
def test_rows_that_do_not_match_are_refused_and_change_nothing(x, message, rows):
    model = RiverClassifier(LSSVC(gamma=0.3))
    model.learn_many(frame(X[:rows]), pd.Series(LABELS[:rows]))
    before = pickle.dumps(model)
    for call in (lambda: model.learn_one(x, "ash"), lambda: model.predict_one(x)):
        with pytest.raises(ValueError, match=message):
            call()
    assert pickle.dumps(model) == before


def test_bad_labels_and_weights_are_refused_and_change_nothing():
    model = RiverClassifier(AdaptiveKDA(gamma=0.3))
    model.learn_one(named(X[0]), "ash")
    before = pickle.dumps(model)
    for y, w, message in (
        (None, 1.0, "missing label"),
        (np.nan, 1.0, "missing label"),
        ("ash", -1.0, r"w=\[-1.0\] must be finite and >= 0"),
        ("ash", 2.0, "AdaptiveKDA has no weights"),
    ):
        with pytest.raises(ValueError, match=message):
            model.learn_one(named(X[1]), y, w=w)
    assert pickle.dumps(model) == before
    first = RiverRegressor(LSSVR(gamma=0.3))
    for x, y, message in (({}, 1.0, "x lacks"), ({"a": "high"}, 1.0, "finite numbers"), ({"a": 1.0}, "high", "y must")):
        with pytest.raises(ValueError, match=message):
            first.learn_one(x, y)
    first.learn_one({"b": 1.0}, 2.0)  # refused rows name no features
    assert first.model.n_features_in_ == 1


def test_estimator_of_the_wrong_kind_is_refused():
    with pytest.raises(ValueError, match=r"LSSVR\(\) is no classifier with partial_fit"):
        RiverClassifier(LSSVR())
    with pytest.raises(ValueError, match=r"is no regressor with partial_fit"):
        RiverRegressor(SlidingWindow(LSSVC()))


def test_clones_are_untrained_and_pickles_go_on():
    model = RiverClassifier(LSSVC(gamma=0.3))
    model.learn_many(frame(X[:20]), pd.Series(LABELS[:20]))
    assert model.clone().predict_one(named(X[0])) is None
    copy = pickle.loads(pickle.dumps(model))
    for each in (model, copy):
        each.learn_many(frame(X[20:]), pd.Series(LABELS[20:]))
    assert_close(copy.model.decision_function(X), model.model.decision_function(X))


def test_river_evaluates_a_pipeline_as_a_loop_by_hand_does():
    stream = [(named(row), label, {"w": w}) for row, label, w in zip(X, LABELS, WEIGHTS, strict=True)]
    pipeline = preprocessing.StandardScaler() | RiverClassifier(SlidingWindow(LSSVC(gamma=0.3), 15))
    steps = list(
        evaluate.iter_progressive_val_score(stream, pipeline, metrics.Accuracy(), step=1, yield_predictions=True)
    )
    scaler, rows, expected = preprocessing.StandardScaler(), [], [None]
    for i, (x, _, _) in enumerate(stream[:-1]):
        scaler.learn_one(x)
        rows.append(list(scaler.transform_one(x).values()))
        if len(set(LABELS[: i + 1])) == 1:
            expected.append(LABELS[0])
            continue
        last = slice(max(0, i - 14), i + 1)
        by_hand = LSSVC(gamma=0.3).partial_fit(
            rows[last], LABELS[last], classes=np.unique(LABELS[: i + 1]), sample_weight=WEIGHTS[last]
        )
        expected.append(by_hand.predict([list(scaler.transform_one(stream[i + 1][0]).values())])[0])
    assert [step["Prediction"] for step in steps] == expected
    assert steps[-1]["Accuracy"].get() == np.mean(np.array(expected[1:]) == LABELS[1:])  # None does not count


MODELS = {
    "classifier": RiverClassifier(SlidingWindow(LSSVC(gamma=1e-4), 20)),
    "regressor": RiverRegressor(SlidingWindow(LSSVR(gamma=1e-4), 20)),
}
CHECKS = [
    pytest.param(model, check, id=f"{kind}-{number}-{check.__name__}")
    for kind, model in MODELS.items()
    for number, check in enumerate(checks.yield_checks(model))
    if check.__name__ not in model._unit_test_skips()
]


@pytest.mark.many_cases
@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_checks_of_river(model, check):
    random.seed(0)
    check(model.clone())


def test_without_river_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "foldless.river", raising=False)
    with pytest.raises(ImportError, match=r'pip install "river>=0\.26"'):
        importlib.import_module("foldless.river")


def test_waiting_labels_of_different_kinds_are_an_error():
    model = RiverClassifier(LSSVC(gamma=0.1))
    model.learn_one({"a": 1.0}, 1)
    with pytest.raises(ValueError, match="labels of different kinds"):
        model.learn_one({"a": 2.0}, "x")
    model.learn_one({"a": 2.0}, 2)
    assert model.model.classes_.tolist() == [1, 2]


def test_a_calibrated_window_goes_on_when_it_holds_one_class():
    model = RiverClassifier(SlidingWindow(LSSVC(gamma=0.1, calibration="sigmoid"), 6))
    for i in range(20):
        model.learn_one({"a": float(i)}, bool(i % 2 or i > 8))
    assert model.predict_proba_one({"a": 3.0}) == {False: 0.0, True: 1.0}
    for i in range(8):
        model.learn_one({"a": float(i)}, bool(i % 2))
    assert 0 < model.predict_proba_one({"a": 3.0})[True] < 1


def test_confounds_pass_through_windows():
    rng = np.random.default_rng(0)
    X, C, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 1)), np.arange(20) % 2
    window = SlidingWindow(LSSVC(gamma=0.1), 12).partial_fit(X, y, confounds=C)
    again = LSSVC(gamma=0.1).fit(X[8:], y[8:], confounds=C[8:])
    np.testing.assert_allclose(window.decision_function(X, confounds=C), again.decision_function(X, confounds=C))
    assert (window.predict(X, confounds=C) == again.predict(X, confounds=C)).all()
