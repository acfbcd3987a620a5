"""Scores of a search: those of GridSearchCV's refits on the same splits, and which of them decides."""

import numpy as np
import pandas as pd
import pytest
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import f1_score, get_scorer, make_scorer

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless._engine.tuning import fidelity
from foldless._sklearn.route import RefitWarning
from foldless.model_selection import Optimizer, nested_cross_validate, permutation_test_score
from foldless.model_selection._search_outcome import ranks
from support.refits import held_out_rows, leave_one_out, refit
from support.searches import BINARY, GROUPS, KFDA, LABELS, SPLITTERS, VALUES, WEIGHT, N, X
from support.tolerances import assert_close

FOLDS = skl.StratifiedKFold(3, shuffle=True, random_state=0)
LINEAR_GRID = {"alpha": [0.05, 20.0]}
RBF_GRID = {**LINEAR_GRID, "gamma": [0.03, 0.3]}
OF_LABELS = ["accuracy", "balanced_accuracy", "f1_macro"]
OF_VALUES = ["r2", "neg_mean_squared_error", "neg_median_absolute_error"]
CASES = {
    "LSSVC, 2 classes": (LSSVC(calibration="sigmoid"), RBF_GRID, BINARY, [*OF_LABELS, "roc_auc", "neg_log_loss"]),
    "LSSVC, 3 classes": (LSSVC(calibration="sigmoid"), RBF_GRID, LABELS, [*OF_LABELS, "roc_auc_ovr"]),
    "LSSVC, coefficients": (LSSVC(penalty="coef"), RBF_GRID, LABELS, OF_LABELS),
    "KFDA, 2 classes": (KFDA(), RBF_GRID, BINARY, [*OF_LABELS, "roc_auc"]),
    "KFDA, 3 classes": (KFDA(calibration="sigmoid"), RBF_GRID, LABELS, [*OF_LABELS, "neg_log_loss"]),
    "KFDA with a cut": (KFDA(threshold="loo"), RBF_GRID, BINARY, [*OF_LABELS, "roc_auc"]),
    "RidgeClassifier, 2 classes": (RidgeClassifier(), LINEAR_GRID, BINARY, [*OF_LABELS, "roc_auc"]),
    "RidgeClassifier, 3 classes": (RidgeClassifier(), LINEAR_GRID, LABELS, OF_LABELS),
    "Ridge": (Ridge(), LINEAR_GRID, VALUES, OF_VALUES),
    "Ridge, 2 outputs": (Ridge(), LINEAR_GRID, np.column_stack([VALUES, X[:, 1]]), OF_VALUES),
    "KernelRidge": (KernelRidge(kernel="rbf"), RBF_GRID, VALUES, OF_VALUES),
    "LSSVR": (LSSVR(), RBF_GRID, VALUES, OF_VALUES),
}


def assert_scores_of_refits(ours, theirs):
    """The same columns of scores; ranks may differ by ties up to rounding."""
    names = [name for name in theirs.cv_results_ if "_test_" in name and not name.startswith("rank")]
    assert names
    for name in names:
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-9, atol=1e-12)


@pytest.mark.many_cases
@pytest.mark.parametrize("case", CASES)
def test_scores_of_every_split_are_those_of_grid_search(case):
    estimator, grid, y, scoring = CASES[case]
    cv = FOLDS if y.dtype.kind == "U" else skl.KFold(3, shuffle=True, random_state=0)
    options = {"cv": cv, "scoring": scoring, "refit": scoring[-1]}
    ours = FoldlessSearchCV(estimator, grid, **options).fit(X, y)
    theirs = skl.GridSearchCV(estimator, grid, **options).fit(X, y)
    assert_scores_of_refits(ours, theirs)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-9)
    assert ours.cv_results_[f"rank_test_{scoring[-1]}"][ours.best_index_] == 1
    assert ours.score(X, y) == pytest.approx(get_scorer(scoring[-1])(ours.best_estimator_, X, y))
    assert (ours.multimetric_, ours.n_splits_, set(ours.scorer_)) == (True, 3, set(scoring))
    own = {f"{what}_test_criterion" for what in ("mean", "se", "rank")}
    assert set(theirs.cv_results_) == set(ours.cv_results_) - own


@pytest.mark.many_cases
@pytest.mark.parametrize("splitter", ["RepeatedKFold", "ShuffleSplit with a gap", "TimeSeriesSplit", "GroupKFold"])
@pytest.mark.parametrize("estimator", [LSSVC(), KFDA()], ids=["LSSVC", "KFDA"])
def test_scores_are_of_the_rows_that_a_split_tests(estimator, splitter):
    options = {"cv": SPLITTERS[splitter], "scoring": "accuracy"}
    given = {"groups": GROUPS} if splitter == "GroupKFold" else {}
    ours = FoldlessSearchCV(estimator, RBF_GRID, **options).fit(X, LABELS, **given)
    theirs = skl.GridSearchCV(estimator, RBF_GRID, **options).fit(X, LABELS, **given)
    assert_scores_of_refits(ours, theirs)


@pytest.mark.parametrize("share", ["all", "kernel"])
def test_scores_take_the_weights_of_the_criterion(share):
    options = {"cv": FOLDS, "criterion_weight": "sample_weight", "share": share}
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, **options).fit(X, LABELS, sample_weight=WEIGHT)
    scores = [
        refit(search.best_estimator_, X, LABELS, train, sample_weight=WEIGHT).score(X[test], LABELS[test], WEIGHT[test])
        for train, test in FOLDS.split(X, LABELS)
    ]
    assert search.best_score_ == pytest.approx(np.mean(scores))


@pytest.mark.many_cases
@pytest.mark.parametrize(
    ("estimator", "y", "scoring"),
    [
        (LSSVC(gamma=0.1), LABELS, "balanced_accuracy"),
        (LSSVC(gamma=0.1), BINARY, "roc_auc"),
        (KFDA(gamma=0.1), LABELS, "accuracy"),
        (LSSVR(gamma=0.1), VALUES, "r2"),
        (Ridge(), VALUES, "neg_mean_absolute_error"),
    ],
)
def test_with_leave_one_out_a_score_is_of_all_held_out_predictions_together(estimator, y, scoring):
    search = FoldlessSearchCV(estimator, LINEAR_GRID, scoring=scoring).fit(X, y)
    method = "decision_function" if scoring == "roc_auc" else "predict"
    scorer = get_scorer(scoring)
    for params, found in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        held = held_out_rows_of(clone(estimator).set_params(**params), y, method)
        assert found == pytest.approx(scorer._sign * scorer._score_func(y, held), rel=1e-9)
    assert search.best_score_ == pytest.approx(search.cv_results_["mean_test_score"].max())
    assert np.isnan(search.cv_results_["std_test_score"]).all()
    assert not any(name.startswith("split") for name in search.cv_results_)
    assert search.n_splits_ == N


def held_out_rows_of(estimator, y, method):
    if y.dtype.kind != "U" or method != "predict":
        return held_out_rows(estimator, X, y, leave_one_out(N), method)
    classes, codes = np.unique(y, return_inverse=True)
    return classes[held_out_rows(estimator, X, codes, leave_one_out(N), method).astype(int)]


@pytest.mark.many_cases
@pytest.mark.parametrize("cv", [None, FOLDS], ids=["leave-one-out", "folds"])
@pytest.mark.parametrize("estimator", [LSSVC("linear"), KFDA("linear"), RidgeClassifier()])
def test_without_scoring_the_criterion_decides_and_the_score_is_recorded(estimator, cv):
    search = FoldlessSearchCV(estimator, LINEAR_GRID, cv=cv).fit(X, LABELS)
    theirs = skl.GridSearchCV(estimator, LINEAR_GRID, cv=cv or skl.LeaveOneOut()).fit(X, LABELS)
    table = search.cv_results_
    known = np.isfinite(table["mean_test_score"])  # of a discriminant the best alpha alone
    assert known.all() or isinstance(estimator, KFDA)
    assert_close(table["mean_test_score"][known], theirs.cv_results_["mean_test_score"][known])
    assert search.best_index_ == np.argmin(table["mean_test_criterion"])
    assert table["rank_test_criterion"][search.best_index_] == 1
    assert search.best_score_ == table["mean_test_score"][search.best_index_]
    assert search.score(X, LABELS) == search.best_estimator_.score(X, LABELS)
    frame = pd.DataFrame(table)
    assert len(frame) == len(table["params"])
    assert (frame["mean_fit_time"] > 0).all()
    assert search.refit_time_ > 0


def test_the_score_decides_where_the_criterion_would_choose_another():
    grid = {"alpha": [1e-3, 1.0, 30.0], "gamma": [0.03, 0.3, 3.0]}
    by_score, by_criterion = (
        FoldlessSearchCV(LSSVC(), grid, cv=FOLDS, scoring=scoring).fit(X, LABELS) for scoring in ("accuracy", None)
    )
    assert by_score.best_params_ != by_criterion.best_params_
    assert by_score.best_score_ > by_criterion.best_score_
    assert by_score.best_criterion_ > by_criterion.best_criterion_
    assert_close(by_score.cv_results_["mean_test_criterion"], by_criterion.cv_results_["mean_test_criterion"])
    assert_close([step["score"] for step in by_score.history_], by_score.cv_results_["mean_test_score"])


def test_scorers_with_options_of_their_own_are_taken():
    scoring = {"yes": make_scorer(f1_score, pos_label="yes"), "no": make_scorer(f1_score, pos_label="no")}
    options = {"cv": FOLDS, "scoring": scoring, "refit": "no"}
    ours = FoldlessSearchCV(LSSVC(), RBF_GRID, **options).fit(X, BINARY)
    theirs = skl.GridSearchCV(LSSVC(), RBF_GRID, **options).fit(X, BINARY)
    assert_scores_of_refits(ours, theirs)
    assert ours.score(X, BINARY) == f1_score(BINARY, ours.predict(X), pos_label="no")


def test_of_several_scores_without_one_that_decides_none_is_the_best():
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, cv=3, scoring=OF_LABELS, refit=False).fit(X, LABELS)
    assert not [name for name in vars(search) if name.startswith("best_")]
    assert "mean_test_f1_macro" in search.cv_results_


def test_a_loss_of_ours_is_ranked_from_below():
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, cv=FOLDS, scoring="ber").fit(X, LABELS)
    assert search.best_score_ == search.cv_results_["mean_test_score"].min()
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (LSSVC(), {"scoring": lambda estimator, X, y: 0.0}, r"scoring=.*handed a fitted estimator.*make_scorer"),
        (LSSVC(), {"scoring": "nonsense"}, "nonsense"),
        (LSSVC(), {"scoring": []}, r"scoring=\[\] must be a score"),
        (LSSVC(), {"scoring": ["accuracy", "accuracy"]}, "different names"),
        (LSSVC(), {"scoring": OF_LABELS}, r"refit=True: with several scores it must name the one of \['accuracy'"),
        (LSSVC(), {"scoring": OF_LABELS, "refit": "r2"}, "refit='r2': with several scores"),
        (LSSVC(), {"scoring": "accuracy", "refit": "r2"}, "refit='r2' names a score; scoring='accuracy'"),
        (LSSVC(), {"scoring": "neg_log_loss"}, "probabilities.*calibration='sigmoid'"),
        (RidgeClassifier(), {"scoring": "neg_log_loss", "cv": 3}, "probabilities.*calibration='sigmoid'"),
        (LSSVC(calibration="sigmoid"), {"scoring": "neg_log_loss"}, "calibrations.*cv=None; use cv=5"),
        (KFDA(threshold="loo"), {"scoring": "accuracy"}, "cuts.*cv=None; use cv=5"),
        (LSSVC(), {"scoring": "accuracy", "method": "gradient"}, "no derivative; with method='gradient'"),
        (LSSVC(), {"scoring": "accuracy", "share": "none"}, "scoring='accuracy' judges all classes together"),
        (LSSVC(), {"scoring": "roc_auc", "cv": skl.LeavePOut(1)}, "roc_auc.*at least 2 held-out rows"),
        (LSSVC(), {"scoring": "roc_auc", "cv": skl.KFold(3)}, "scoring='roc_auc' is no number for any candidate"),
    ],
)
def test_scores_that_do_not_follow_are_refused_by_name(estimator, options, message):
    y = np.sort(BINARY)
    search = FoldlessSearchCV(estimator, {"alpha": [1.0]})
    before = search.fit(X, BINARY).best_params_
    with pytest.raises(ValueError, match=f"(?s){message}"):
        search.set_params(**options).fit(X, y)
    assert search.best_params_ == before


def test_a_cut_for_every_row_is_not_made_for_a_score_that_was_not_asked_for():
    search = FoldlessSearchCV(KFDA(threshold="loo"), RBF_GRID).fit(X, BINARY)
    assert np.isnan(search.best_score_)
    assert np.isfinite(search.best_criterion_)


# -- other searches ----------------------------------------------------------------------------------------------------


def mean_of_refits(estimator, params, y, scoring, cv):
    single = clone(estimator).set_params(**params)
    return skl.cross_val_score(single, X, y, cv=cv, scoring=scoring).mean()


def test_a_simplex_goes_where_the_score_is_best():
    search = FoldlessSearchCV(
        LSSVR(), method=Optimizer("simplex", max_iter=20), cv=4, scoring="neg_mean_absolute_error"
    )
    search.fit(X, VALUES)
    visited = [step["score"] for step in search.history_]
    assert search.best_score_ == pytest.approx(max(visited))
    expected = mean_of_refits(LSSVR(), search.best_params_, VALUES, "neg_mean_absolute_error", 4)
    assert search.best_score_ == pytest.approx(expected, rel=1e-6)
    assert search.best_criterion_ == search.cv_results_["mean_test_criterion"][search.best_index_] > 0


@pytest.mark.many_cases
@pytest.mark.parametrize("share", ["all", "kernel", "none"])
@pytest.mark.parametrize("method", ["grid", "gradient"])
def test_recorded_scores_are_those_of_refits_of_the_best_setting(method, share):
    grid = RBF_GRID if method == "grid" else None
    search = FoldlessSearchCV(LSSVC(), grid, method=Optimizer(method, max_iter=5), share=share, cv=FOLDS)
    search.fit(X, LABELS)
    expected = skl.cross_val_score(clone(search.best_estimator_), X, LABELS, cv=FOLDS).mean()
    assert search.best_score_ == pytest.approx(expected)


@pytest.mark.many_cases
@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
@pytest.mark.parametrize("estimator", [LSSVC(), KFDA()], ids=["LSSVC", "KFDA"])
def test_a_search_by_fidelity_has_the_score_of_its_last_rows(estimator, scoring, monkeypatch):
    for name, size in {"FEW": 12, "MOST_AT_FIRST": 18, "AT_ONCE": 18, "PER_CLASS": 4}.items():
        monkeypatch.setattr(fidelity, name, size)
    monkeypatch.setattr("foldless._sklearn.candidates.FEW", 12)
    bounds = {"alpha": (0.05, 5.0), "gamma": (0.05, 0.5)}
    search = FoldlessSearchCV(estimator, cv=FOLDS, scoring=scoring, method=Optimizer(bounds=bounds)).fit(X, LABELS)
    assert {step["n_rows"] for step in search.history_} >= {12, N}
    expected = mean_of_refits(estimator, search.best_params_, LABELS, scoring, FOLDS)
    assert search.best_score_ == pytest.approx(expected)
    if scoring is not None:
        last = [step["score"] for step in search.history_ if step["n_rows"] == N]
        assert search.best_score_ == pytest.approx(max(last))


# -- nested cross-validation and permutation tests ---------------------------------------------------------------------


@pytest.mark.many_cases
@pytest.mark.parametrize("inner", [None, 3], ids=["leave-one-out", "folds"])
@pytest.mark.parametrize("estimator", [LSSVC(), KFDA()], ids=["LSSVC", "KFDA"])
def test_nested_choices_are_by_the_score_of_the_search(estimator, inner):
    search = FoldlessSearchCV(estimator, RBF_GRID, cv=inner, scoring="balanced_accuracy")
    splits = list(FOLDS.split(X, LABELS))
    result = nested_cross_validate(search, X, LABELS, cv=splits)
    for number, (train, test) in enumerate(splits):
        alone = clone(search).fit(X[train], LABELS[train])
        assert result.best_params[number] == alone.best_params_
        assert result.test_score[number] == pytest.approx(alone.score(X[test], LABELS[test]))
        assert result.inner_criterion[number] == pytest.approx(alone.best_criterion_, rel=1e-8)


@pytest.mark.parametrize("share", ["all", "none"])
def test_nested_cross_validation_has_several_scores_and_the_fitted_estimators(share):
    search = FoldlessSearchCV(LSSVC(gamma=0.1), LINEAR_GRID, share=share)
    splits = list(FOLDS.split(X, LABELS))
    result = nested_cross_validate(search, X, LABELS, cv=splits, scoring=OF_LABELS, return_estimator=True)
    for name in OF_LABELS[1:]:
        one = nested_cross_validate(search, X, LABELS, cv=splits, scoring=name)
        assert one.estimator is None
        assert_close(result.test_score[name], one.test_score)
        assert_close(result.inner_score[name], one.inner_score)
        assert_close(result.optimism[name], one.optimism)
        assert (result.mean_test_score[name], result.std_test_score[name]) == (one.mean_test_score, one.std_test_score)
        assert one.std_test_score == one.test_score.std()
        assert f"{name}: test score {one.mean_test_score:.4f} (90 % interval" in repr(result)
    for estimator, (train, test), decision in zip(result.estimator, splits, result.decision, strict=True):
        assert len(estimator.predict(X[train])) == len(train)
        assert_close(estimator.decision_function(X[test]), decision)


def test_nested_cross_validation_needs_a_score_that_decides():
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, scoring=OF_LABELS, refit=False)
    with pytest.raises(ValueError, match="refit=False of the search must name the one of its scores"):
        nested_cross_validate(search, X, LABELS, cv=3)


def test_permutation_tests_of_a_search_judge_by_its_score():
    search = FoldlessSearchCV(LSSVC(), RBF_GRID, scoring="balanced_accuracy")
    with pytest.warns(RefitWarning):
        result = permutation_test_score(search, X, LABELS, cv=FOLDS, n_permutations=2, random_state=0)
    nested = nested_cross_validate(search, X, LABELS, cv=FOLDS)
    assert result.score == pytest.approx(nested.mean_test_score)


def test_settings_without_a_score_have_the_last_rank():
    np.testing.assert_array_equal(ranks(np.array([np.nan, 0.2, 0.1, np.nan, 0.2])), [4, 2, 1, 4, 2])
    np.testing.assert_array_equal(ranks(np.array([np.nan, 0.2])), [2, 1])
