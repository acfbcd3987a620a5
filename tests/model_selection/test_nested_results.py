"""Scores, containers, texts and pipelines of nested_cross_validate."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.stats import t as student
from sklearn import metrics
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.model_selection._nested as _nested
from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import nested_cross_validate
from support.nested import (
    ALPHAS,
    BINARY,
    GRID,
    GROUPS,
    KFDA,
    LABELS,
    ORDER,
    VALUES,
    WEIGHT,
    N,
    X,
    assert_equal_results,
    force_route,
    predicted,
)
from support.tolerances import assert_close

# -- scores ------------------------------------------------------------------------------------------------------------


def error_of_the_first_class(estimator, rows, y):
    return -np.mean((estimator.predict(rows) == "no") != (y == "no"))


@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize(
    "scoring",
    [None, "balanced_accuracy", "roc_auc", "f1_macro", error_of_the_first_class],
    ids=["None", "balanced_accuracy", "roc_auc", "f1_macro", "own"],
)
def test_scores_are_those_of_scikit_learn(scoring, share):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    result = nested_cross_validate(search, X, BINARY, cv=3, scoring=scoring)
    score = {
        None: lambda y, d: metrics.accuracy_score(y, predicted(d, BINARY)),
        "balanced_accuracy": lambda y, d: metrics.balanced_accuracy_score(y, predicted(d, BINARY)),
        "roc_auc": metrics.roc_auc_score,
        "f1_macro": lambda y, d: metrics.f1_score(y, predicted(d, BINARY), average="macro"),
        error_of_the_first_class: lambda y, d: -np.mean(predicted(d, BINARY) != y),
    }[scoring]
    for k, (train, test) in enumerate(skl.StratifiedKFold(3).split(X, BINARY)):
        single = clone(search).fit(X[train], BINARY[train])
        assert result.test_score[k] == pytest.approx(score(BINARY[test], single.decision_function(X[test])))
        held = single.best_estimator_.loo_decision_function()
        assert result.inner_score[k] == pytest.approx(score(BINARY[train], held))
    assert_close(result.optimism, result.inner_score - result.test_score)


@pytest.mark.many_cases
@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score", "roc_auc_ovr"])
@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize("estimator", [LSSVC(calibration="sigmoid"), KFDA(calibration="isotonic")], ids=str)
def test_probabilities_are_calibrated_on_the_outer_training_part(estimator, share, scoring):
    """They are no part of the inner fits: the inner score is not known."""
    search = FoldlessSearchCV(estimator, {"alpha": [0.1, 1.0], "gamma": [0.1]}, share=share)
    result = nested_cross_validate(search, X, LABELS, cv=3, scoring=scoring)
    expected = skl.cross_val_score(search, X, LABELS, cv=3, scoring=scoring)
    assert_close(result.test_score, expected)
    assert np.isnan(result.inner_score).all()
    assert np.isnan(result.optimism).all()
    assert "inner score" not in str(result)


@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
def test_ridge_classifiers_have_the_probabilities_of_their_search(y, share):
    """A sigmoid of the inner held-out decisions, as in the predict_proba of the search."""
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}, share=share)
    result = nested_cross_validate(search, X, y, cv=3, scoring="neg_log_loss", params={"sample_weight": WEIGHT})
    for k, (train, test) in enumerate(skl.StratifiedKFold(3).split(X, y)):
        single = clone(search).fit(X[train], y[train], sample_weight=WEIGHT[train])
        expected = -metrics.log_loss(y[test], single.predict_proba(X[test]), labels=np.unique(y))
        assert result.test_score[k] == pytest.approx(expected, rel=1e-6)
    assert np.isnan(result.inner_score).all()


@pytest.mark.parametrize("share", ["all", "none"])
def test_a_class_of_one_row_is_no_obstacle_where_no_probabilities_are_asked_for(share):
    y = np.where(np.arange(N) == ORDER[0], "dog", "cat")
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": ALPHAS}, share=share)
    train, test = ORDER[:20], ORDER[20:]
    result = nested_cross_validate(search, X, y, cv=[(train, test)])
    single = clone(search).fit(X[train], y[train])
    assert_close(result.decision[0], single.decision_function(X[test]))
    with pytest.raises(ValueError, match="needs two classes with at least two rows each"):
        nested_cross_validate(search, X, y, cv=[(train, test)], scoring="neg_log_loss")


@pytest.mark.parametrize("share", ["all", "none"])
def test_scores_of_probabilities_need_a_calibration(share):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    with pytest.raises((ValueError, AttributeError), match=r"predict_proba|calibration") as error:
        nested_cross_validate(search, X, LABELS, cv=3, scoring="neg_log_loss")
    assert "Labels" not in str(error.value)


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("nonsense", "scoring.*must be a str among|nonsense"),
        (["r2", "r2"], "scoring=.*different names"),
        ({}, "scoring=.*must be a score"),
        (3, "scoring"),
    ],
)
def test_bad_scoring_is_refused_before_any_work(scoring, message, monkeypatch):
    def nothing(*given):
        raise AssertionError("work was done first")

    monkeypatch.setattr(_nested, "nested_grid", nothing)
    with pytest.raises(ValueError, match=message):
        nested_cross_validate(FoldlessSearchCV(LSSVR(), GRID), X, VALUES, cv=3, scoring=scoring)


def test_other_errors_of_a_scorer_are_not_hidden():
    def broken(estimator, rows, y):
        raise ValueError("this scorer is broken")

    with pytest.raises(ValueError, match="this scorer is broken"):
        nested_cross_validate(FoldlessSearchCV(LSSVC(), GRID), X, LABELS, cv=3, scoring=broken)


# -- what is given -----------------------------------------------------------------------------------------------------


@pytest.mark.many_cases
@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize("container", ["csr", "csc", "pandas", "polars", "float32", "list"])
def test_containers_give_the_same(container, share):
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(N)[::-1])
    data = {
        "csr": sp.csr_array(X),
        "csc": sp.csc_matrix(X),
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "float32": X.astype(np.float32),
        "list": X.tolist(),
    }[container]
    series = {"pandas": lambda v: pd.Series(v, frame.index), "polars": pl.Series, "list": np.ndarray.tolist}
    series = series.get(container, np.asarray)
    search = FoldlessSearchCV(LSSVC(), GRID, cv=skl.GroupKFold(3), share=share)
    cv = skl.LeaveOneGroupOut()
    plain = nested_cross_validate(search, X, LABELS, cv=cv, groups=GROUPS, params={"sample_weight": WEIGHT})
    ours = nested_cross_validate(
        search, data, series(LABELS), cv=cv, groups=series(GROUPS), params={"sample_weight": series(WEIGHT)}
    )
    if container != "float32":
        assert_equal_results(ours, plain)
    else:
        assert ours.decision[0].dtype == np.float32 or share == "none"
        assert_close(ours.inner_criterion, plain.inner_criterion, rtol=1e-3)
        assert ours.best_params == plain.best_params
        assert_close(np.concatenate(ours.decision), np.concatenate(plain.decision), rtol=2e-3)


@pytest.mark.parametrize("share", ["all", "none"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_precomputed_kernels_are_cut_on_both_sides(form, share, monkeypatch):
    K = rbf_kernel(X, gamma=0.3)
    given = nested_cross_validate(
        FoldlessSearchCV(LSSVC(gamma=0.3), {"alpha": ALPHAS}, share=share, cv=3), X, LABELS, cv=3
    )
    for shared in (True, False):
        force_route(monkeypatch, shared)
        search = FoldlessSearchCV(LSSVC("precomputed"), {"alpha": ALPHAS}, share=share, cv=3)
        assert_equal_results(nested_cross_validate(search, form(K), LABELS, cv=3), given)


@pytest.mark.parametrize("share", ["all", "none"])
def test_one_number_as_a_weight_weighs_all_rows_the_same(share):
    search = FoldlessSearchCV(LSSVC(gamma=0.1), {"alpha": ALPHAS}, share=share)
    one = nested_cross_validate(search, X, LABELS, cv=3, params={"sample_weight": 2.0})
    two = nested_cross_validate(search, X, LABELS, cv=3, params={"sample_weight": np.full(N, 2.0)})
    assert_equal_results(one, two)


def test_masks_and_lists_are_splits():
    mask = np.arange(N) % 3 == 0
    search = FoldlessSearchCV(LSSVR(), GRID)
    one = nested_cross_validate(search, X, VALUES, cv=[(~mask, mask), (mask, ~mask)])
    numbered = [(np.flatnonzero(~mask).tolist(), np.flatnonzero(mask).tolist()), (np.flatnonzero(mask), ~mask)]
    assert_equal_results(one, nested_cross_validate(search, X, VALUES, cv=iter(numbered)))
    np.testing.assert_array_equal(one.test_indices[0], np.flatnonzero(mask))


def test_without_splits_five_folds_are_taken_by_class():
    search = FoldlessSearchCV(LSSVC(), GRID)
    assert_equal_results(
        nested_cross_validate(search, X, LABELS), nested_cross_validate(search, X, LABELS, cv=skl.StratifiedKFold(5))
    )


def test_the_search_given_is_left_as_it_was():
    for share in ("all", "none"):
        search = FoldlessSearchCV(LSSVC(), GRID, share=share, refit=False)
        before = repr(search)
        nested_cross_validate(search, X, LABELS, cv=3)
        assert repr(search) == before
        assert not hasattr(search, "cv_results_")
        assert not hasattr(search.estimator, "X_fit_")


# -- what is told ------------------------------------------------------------------------------------------------------


def test_the_text_of_a_result_holds_its_numbers():
    result = nested_cross_validate(FoldlessSearchCV(LSSVC(), GRID), X, LABELS, cv=3)
    text = str(result)
    interval = result.interval()
    half = student.ppf(0.95, 2) * np.sqrt((1 / 3 + 1 / 2) * result.test_score.var(ddof=1))
    np.testing.assert_allclose([interval.low, interval.high], result.test_score.mean() + half * np.array([-1, 1]))
    assert (
        f"test score {interval.score:.4f} (90 % interval {interval.low:.4f} to {interval.high:.4f}, 3 splits)" in text
    )
    assert f"inner score {result.inner_score.mean():.4f}" in text
    assert f"optimism {(result.inner_score - result.test_score).mean():.4f}" in text
    assert str(result.path) in text


@pytest.mark.parametrize(("share", "words"), [("all", "kernel settings: 2/2"), ("none", "outer splits: 3/3")])
def test_progress_goes_to_standard_error(share, words, capsys):
    search = FoldlessSearchCV(LSSVC(), GRID, share=share)
    nested_cross_validate(search, X, LABELS, cv=3, verbose=1)
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""
    nested_cross_validate(search, X, LABELS, cv=3)
    assert capsys.readouterr().err == ""


def test_inner_score_of_an_overfitting_search_is_optimistic():
    """Labels by a coin: the least of many leave-one-out errors says nothing, the outer one says one half."""
    rng = np.random.default_rng(0)
    data, y = rng.normal(size=(40, 8)), rng.permutation(np.arange(40) % 2)
    scales = rng.permutation(np.logspace(-3, 1, 8 * 60)).reshape(60, 8)
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0], "gamma": scales.tolist()}, criterion="error")
    cv = skl.StratifiedShuffleSplit(10, test_size=0.5, random_state=0)
    result = nested_cross_validate(search, data, y, cv=cv)
    assert result.optimism.mean() > 0.1
    assert abs(result.test_score.mean() - 0.5) < 0.2
    assert_close(result.inner_score, 1 - result.inner_criterion)
    assert_close(result.test_score, 1 - result.outer_criterion)


# -- pipelines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"method": "gradient"}], ids=["grid", "gradient"])
def test_a_pipeline_fits_its_steps_on_every_outer_training_part(options):
    search = FoldlessSearchCV(LSSVC(), None if options else {"alpha": [0.1, 1.0], "gamma": [0.05, 0.2]}, **options)
    raw = X * np.array([1.0, 10.0, 0.1, 3.0])[: X.shape[1]] + 5.0
    cv = skl.StratifiedKFold(3)
    result = nested_cross_validate(make_pipeline(StandardScaler(), search), raw, LABELS, cv=cv)
    assert result.path.kind == "refit"
    for number, (train, test) in enumerate(cv.split(raw, LABELS)):
        whole = make_pipeline(StandardScaler(), clone(search)).fit(raw[train], LABELS[train])
        assert whole[-1].best_params_ == result.best_params[number]
        assert_close(result.decision[number], whole.decision_function(raw[test]))
        assert result.test_score[number] == whole.score(raw[test], LABELS[test])
        assert_close(result.inner_criterion[number], whole[-1].best_criterion_)


def test_repr_of_a_result_is_one_line():
    result = nested_cross_validate(FoldlessSearchCV(LSSVC(), {"alpha": [1.0]}), X, LABELS, cv=3)
    assert repr(result) == str(result)
    assert "\n" not in repr(result)
