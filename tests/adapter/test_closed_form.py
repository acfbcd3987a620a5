"""Scores and predictions of all splits at once equal scikit-learn's loop of refits."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as skl
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import fbeta_score, make_scorer

import foldless._sklearn.closed_form as closed_form
import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from support.cross_validation import BINARY, LABELS, VALUES, WEIGHT, N, X, everyone, weights_for
from support.refits import with_fixed_functions

SPLITTERS = {
    "folds of one size": skl.KFold(6),
    "folds of two sizes": skl.StratifiedKFold(8, shuffle=True, random_state=0),
    "rows": skl.LeaveOneOut(),
    "rows as a list": list(skl.LeaveOneOut().split(X)),
    "repeated": skl.RepeatedKFold(n_splits=10, n_repeats=2, random_state=0),
}
every_splitter = pytest.mark.parametrize("splitter", SPLITTERS)


@pytest.fixture
def loop(monkeypatch):
    """An error where scikit-learn's loop is taken."""

    def taken(*args, **kwargs):
        raise AssertionError("the loop is taken")

    monkeypatch.setattr("foldless.model_selection._validation.skl.cross_validate", taken)
    monkeypatch.setattr("foldless.model_selection._validation.skl.cross_val_predict", taken)


def refits(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


THEIRS = {name: getattr(skl, name) for name in ("cross_validate", "cross_val_predict", "cross_val_score")}


def scores_of(y):
    if y.dtype.kind == "f":
        return ["neg_mean_squared_error", "neg_mean_absolute_error", "neg_median_absolute_error"]
    return ["accuracy", "balanced_accuracy", "f1_macro", "matthews_corrcoef"]


@pytest.mark.many_cases
@everyone
@every_splitter
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_scores_equal_refits(loop, estimator, y, splitter, weighted):
    if "Stratified" in repr(SPLITTERS[splitter]) and y.dtype.kind == "f":
        pytest.skip("stratified by labels, and these are values")
    options = {"cv": SPLITTERS[splitter], "scoring": scores_of(y), "params": weights_for(estimator, weighted)}
    ours = refits(fl.cross_validate, estimator, X, y, **options)
    theirs = refits(THEIRS["cross_validate"], with_fixed_functions(estimator, X), X, y, **options)
    assert set(ours) == set(theirs)
    for name in scores_of(y):
        assert_allclose(ours[f"test_{name}"], theirs[f"test_{name}"], rtol=1e-8, atol=1e-10)
    assert len(ours["fit_time"]) == len(theirs["fit_time"])


@pytest.mark.parametrize(("estimator", "y"), [(LSSVC(gamma=0.1), BINARY), (Ridge(), VALUES)], ids=["LSSVC", "Ridge"])
@pytest.mark.parametrize(
    "score", [None, "roc_auc", make_scorer(fbeta_score, beta=2, pos_label="yes"), {"mine": "accuracy"}]
)
def test_ways_to_name_a_score(loop, estimator, y, score):
    if y is VALUES and score is not None:
        pytest.skip("for labels")
    options = {"cv": skl.KFold(10, shuffle=True, random_state=0), "scoring": score}
    ours = refits(fl.cross_validate, estimator, X, y, **options)
    theirs = refits(THEIRS["cross_validate"], with_fixed_functions(estimator, X), X, y, **options)
    assert set(ours) == set(theirs)
    for name in set(theirs) - {"fit_time", "score_time"}:
        assert_allclose(ours[name], theirs[name], rtol=1e-12)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (LSSVC(gamma=0.1), LABELS),
        (KernelFisherDiscriminant(gamma=0.1), LABELS),
        (LSSVR(gamma=0.1, penalty="coef"), VALUES),
    ],
    ids=["LSSVC", "KFDA", "coef"],
)
def test_leave_two_out_equals_refits(loop, estimator, y):
    score = "neg_mean_squared_error" if y is VALUES else "accuracy"
    few = slice(0, 14)
    options = {"cv": skl.LeavePOut(2), "scoring": score, "params": {"sample_weight": WEIGHT[few]}}
    ours = refits(fl.cross_val_score, estimator, X[few], y[few], **options)
    theirs = refits(THEIRS["cross_val_score"], with_fixed_functions(estimator, X[few]), X[few], y[few], **options)
    assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


def test_areas_of_pairs_are_found_at_once_with_one_warning_of_pairs_of_one_class(loop):
    options = {"cv": skl.LeavePOut(2), "scoring": "roc_auc"}
    with pytest.warns(UndefinedMetricWarning, match="roc_auc is not defined") as caught:
        ours = fl.cross_val_score(LSSVC(gamma=0.1), X[:14], BINARY[:14], **options)
    assert len(caught) == 1
    assert_allclose(ours, refits(THEIRS["cross_val_score"], LSSVC(gamma=0.1), X[:14], BINARY[:14], **options))
    assert 0 < np.isnan(ours).sum() < len(ours)


@pytest.mark.parametrize(("scoring", "y"), [("r2", VALUES), ("roc_auc", BINARY)])
def test_scores_that_a_single_row_does_not_have_are_nan_with_one_warning(loop, scoring, y):
    model = Ridge() if y is VALUES else LSSVC()
    with pytest.warns(UndefinedMetricWarning, match=f"{scoring} of a single row is not defined") as caught:
        scores = fl.cross_val_score(model, X, y, cv=skl.LeaveOneOut(), scoring=scoring)
    assert len(caught) == 1
    assert np.isnan(scores).all()


def test_values_are_compared_in_their_own_precision(loop):
    y = 1e5 + 1e-4 * VALUES  # constant in float32
    options = {"cv": skl.KFold(10), "scoring": ["neg_mean_squared_error", "r2"]}
    ours = fl.cross_validate(Ridge(fit_intercept=False), X.astype(np.float32), y, **options)
    theirs = THEIRS["cross_validate"](Ridge(fit_intercept=False), X.astype(np.float32), y, **options)
    for name in ("test_neg_mean_squared_error", "test_r2"):
        assert_allclose(ours[name], theirs[name], rtol=1e-3)


def test_nothing_as_large_as_P_is_made_of_few_features(loop, monkeypatch):
    monkeypatch.setattr("foldless._engine.precision.lowrank.LowRank.explicit", None)
    monkeypatch.setattr("foldless._engine.precision.lowrank.GATHERED", 1)  # one set at a time
    for cv in (skl.KFold(2), skl.KFold(5), skl.LeavePOut(2)):
        ours = fl.cross_val_score(Ridge(), X, VALUES, cv=cv, scoring="neg_mean_squared_error")
        assert_allclose(ours, THEIRS["cross_val_score"](Ridge(), X, VALUES, cv=cv, scoring="neg_mean_squared_error"))


@pytest.mark.many_cases
@everyone
@pytest.mark.parametrize("splitter", ["folds of one size", "folds of two sizes"])
@pytest.mark.parametrize("large", [0, 64], ids=["part by part", "in a batch"])
def test_predictions_equal_refits(loop, monkeypatch, estimator, y, splitter, large):
    if "Stratified" in repr(SPLITTERS[splitter]) and y.dtype.kind == "f":
        pytest.skip("stratified by labels, and these are values")
    monkeypatch.setattr("foldless._engine.precision.cost.SMALL_SET", large)
    method = "decision_function" if hasattr(estimator, "decision_function") else "predict"
    ours = refits(fl.cross_val_predict, estimator, X, y, cv=SPLITTERS[splitter], method=method)
    theirs = refits(
        THEIRS["cross_val_predict"], with_fixed_functions(estimator, X), X, y, cv=SPLITTERS[splitter], method=method
    )
    assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


OF_EVERY_PART = {
    "calibrated": LSSVC(gamma=0.3, calibration="sigmoid"),
    "a cut": KernelFisherDiscriminant(gamma=0.3, threshold="loo"),
    "both": KernelFisherDiscriminant(gamma=0.3, threshold="loo", calibration="sigmoid"),
}


@pytest.mark.parametrize("splitter", ["folds of two sizes", "large folds"])
@pytest.mark.parametrize("case", OF_EVERY_PART)
def test_cuts_and_probabilities_of_every_training_part_equal_refits(loop, case, splitter):
    model, cv = OF_EVERY_PART[case], skl.KFold(3) if splitter == "large folds" else SPLITTERS[splitter]
    scoring = ["accuracy", "roc_auc", *["neg_log_loss"] * (model.calibration is not None)]
    found = fl.cross_validate(model, X, BINARY, cv=cv, scoring=scoring)
    expected = refits(THEIRS["cross_validate"], model, X, BINARY, cv=cv, scoring=scoring)
    for name in scoring:
        assert_allclose(found[f"test_{name}"], expected[f"test_{name}"], rtol=1e-7, err_msg=name)
    for method in ("decision_function", "predict_proba", "predict_log_proba")[: 1 if model.calibration is None else 3]:
        by_refits = refits(THEIRS["cross_val_predict"], model, X, BINARY, cv=cv, method=method)
        assert_allclose(fl.cross_val_predict(model, X, BINARY, cv=cv, method=method), by_refits, rtol=1e-7, atol=1e-10)


def test_rows_of_weight_zero_and_other_training_parts_take_the_loop():
    weight = WEIGHT.copy()
    weight[3] = 0.0
    for options in ({"params": {"sample_weight": weight}}, {"cv": skl.ShuffleSplit(3, train_size=0.5, random_state=0)}):
        ours = fl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, **options)
        assert_allclose(ours, skl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, **options), rtol=1e-8)


def test_a_score_that_fails_is_told_by_scikit_learn():
    with pytest.warns(UserWarning, match="Scoring failed|does not go with this y") as told:
        scores = fl.cross_val_score(LSSVC(), X, LABELS, cv=6, scoring="precision")  # of two classes only
    assert np.isnan(scores).all()
    assert "Use scoring='precision_macro'. The scores will be error_score=nan." in str(told[0].message)
    with pytest.raises(ValueError, match=r"(multiclass|pos_label).*Use scoring='precision_macro'"):
        fl.cross_val_score(LSSVC(), X, LABELS, cv=6, scoring="precision", error_score="raise")


def test_sets_that_are_left_out():
    sets = closed_form.left_out_sets([([0, 1], [2, 3]), ([1, 2, 3], [0]), ([2, 3], [1, 0])], 4)
    assert sets.counts == {1: 1, 2: 2}
    assert_array_equal(sets.rows, [2, 3, 0, 1, 0])
    (others, single, values), (numbers, pairs, rows) = sets.by_size(sets.rows)
    assert_array_equal(numbers, [0, 2])
    assert_array_equal(pairs, [[2, 3], [1, 0]])
    assert_array_equal(rows, pairs)
    assert_array_equal(others, [1])
    assert_array_equal(single, [[0]])
    assert_array_equal(values, single)
    assert closed_form.left_out_sets([([0, 1], [2])], 4) is None  # a row in neither
    assert closed_form.left_out_sets([([0, 1, 2], [2])], 4) is None  # a row in both
    assert len(closed_form.left_out_sets(skl.LeavePOut(2), N)) == N * (N - 1) // 2
