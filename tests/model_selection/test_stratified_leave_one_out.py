"""Leave-one-out that keeps the shares of the classes, as score, splitter, criterion and calibration set."""

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold
from sklearn.model_selection import cross_val_predict as their_predict

from foldless import LSSVC, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.precision.base import SingularBlockError
from foldless._engine.readout.calibration import fit_calibration
from foldless._engine.readout.codings import chosen_codes
from foldless._engine.readout.strata import by_margin, chance_if_below, stratified_sets
from foldless._engine.readout.task import Task
from foldless.model_selection import (
    StratifiedLeaveOneOut,
    cross_val_predict,
    cross_val_score,
    nested_cross_validate,
    permutation_test_score,
)
from support.refits import held_out_rows, leave_one_out, with_fixed_functions
from support.tolerances import assert_close


def classes_of(sizes, seed=0, d=5, apart=0.8):
    rng, y = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(y), d))
    X[np.arange(len(y)), y] += apart
    order = rng.permutation(len(y))
    return X[order], y[order]


MODELS = {
    "two": (LSSVC(gamma=0.1), (20, 20)),
    "unequal": (LSSVC("linear", alpha=10.0), (25, 12)),
    "three": (LSSVC(gamma=0.1, alpha=5.0), (15, 15, 15)),
    "weights": (LSSVC(gamma=0.1, class_weight="balanced"), (22, 11)),
    "discriminant": (KernelFisherDiscriminant(gamma=0.1), (12, 13, 14)),
    "centroid": (KernelFisherDiscriminant("linear", threshold="centroid"), (16, 12)),
    "cut": (KernelFisherDiscriminant(gamma=0.1, threshold="loo"), (16, 12)),
    "coef": (LSSVC(gamma=0.1, penalty="coef"), (14, 14)),
}
every_model = pytest.mark.parametrize(("model", "sizes"), MODELS.values(), ids=MODELS)


@pytest.mark.parametrize("sizes", [(20, 20), (12, 12, 12), (42, 18), (30, 2), (3, 3), (50, 7, 1)])
def test_sets_hold_the_classes_in_their_shares_and_every_row_once(sizes):
    codes = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    sets = stratified_sets(codes, np.random.default_rng(1).permutation(len(codes)))
    np.testing.assert_array_equal(np.sort(np.concatenate(sets)), np.arange(len(codes)))
    assert len(sets) == max(min(sizes), min(10, max(sizes)))
    counts = np.array([np.bincount(codes[each], minlength=len(sizes)) for each in sets])
    assert np.all(np.ptp(counts, axis=0) <= 1)
    if len(set(sizes)) == 1:
        assert np.all(counts == 1)


@every_model
def test_stratified_scores_equal_refits(model, sizes):
    X, y = classes_of(sizes)
    fitted = clone(model).fit(X, y)
    whole = fitted._fitted_task.loo_scores(fitted._loo().full_fit)
    right = []
    for test in stratified_sets(y, by_margin(whole, y)):
        train = np.delete(np.arange(len(y)), test)
        options = {"class_weight": None} if model.class_weight else {}
        weight = None if not options else (len(y) / (2 * np.bincount(y)))[y][train]  # computed once, of all rows
        again = with_fixed_functions(clone(model).set_params(**options), X).fit(
            X[train], y[train], sample_weight=weight
        )
        right.append(again.predict(X[test]) == y[test])
    assert fitted.stratified_loo_score_ == pytest.approx(np.concatenate(right).mean())


@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant, partial(KernelFisherDiscriminant, threshold="loo")])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n", [2, 4])
def test_classes_of_a_single_row_have_a_score(n, fit_intercept, kind, capfd):
    model = kind(gamma=0.5, fit_intercept=fit_intercept).fit(np.random.default_rng(0).normal(size=(n, 3)), range(n))
    assert model.loo_score_ == 0.0  # without a row its class is not known
    assert model.stratified_loo_score_ == 0.0
    assert not "".join(capfd.readouterr())  # LAPACK writes on the terminal what it refuses


def test_a_confound_that_a_set_would_leave_undetermined_stops_no_score_and_no_calibration():
    """Two rows of different classes alone have the confound: leave-one-out keeps one of them, a set takes both."""
    rng, y, confound = np.random.default_rng(0), np.arange(24) % 2, np.zeros((24, 1))
    confound[:2] = 1.0
    X, noise = rng.normal(size=(24, 3)) + y[:, None], np.random.default_rng(2).normal(size=(24, 3))
    model = LSSVC(gamma=0.5).fit(X, y, confounds=confound)
    refits = held_out_rows(LSSVC(gamma=0.5), X, y, leave_one_out(24), "predict", confounds=confound)
    with pytest.raises(SingularBlockError, match="confounds"):
        _ = model.stratified_loo_score_
    assert model.loo_score_ == np.mean(refits == y)
    fitted = LSSVC("linear", alpha=1e4, calibration="sigmoid").fit(noise, y, confounds=confound)
    assert np.isfinite(fitted.predict_proba(noise)).all()


def test_the_order_of_the_rows_changes_nothing():
    X, y = classes_of((25, 12))
    order = np.random.default_rng(3).permutation(len(y))
    model = LSSVC("linear", alpha=100.0)
    assert model.fit(X, y).stratified_loo_score_ == model.fit(X[order], y[order]).stratified_loo_score_


@every_model
def test_the_splitter_in_cross_validation_equals_refits(model, sizes):
    if model.class_weight:
        pytest.skip("balanced weights are those of all rows here, of each training part there")
    X, y = classes_of(sizes)
    cv = StratifiedLeaveOneOut(random_state=1)
    expected = their_predict(with_fixed_functions(model, X), X, y, cv=cv, method="decision_function")
    assert_close(cross_val_predict(model, X, y, cv=cv, method="decision_function"), expected)
    right = chosen_codes(expected) == y
    found = cross_val_score(model, X, y, cv=cv)
    assert_close(found, np.array([right[test].mean() for _, test in cv.split(X, y)]))


def test_repeats_deal_the_rows_anew():
    y = np.repeat([0, 1], [12, 15])
    cv = StratifiedLeaveOneOut(3)
    tests = [tuple(test) for _, test in cv.split(y[:, None], y)]
    assert len(tests) == cv.get_n_splits(y[:, None], y) == 36
    assert len(set(tests)) > 24
    np.testing.assert_array_equal(np.bincount(np.concatenate(tests)), np.full(27, 3))


@pytest.mark.parametrize(
    ("estimator", "sizes"),
    [
        (LSSVC(gamma=0.1), (10, 10)),
        (KernelFisherDiscriminant(gamma=0.1), (7, 7, 7)),
        (RidgeClassifier(), (7, 7, 7)),
    ],
)
def test_searches_take_the_splitter_and_score_as_grid_search_does(estimator, sizes):
    X, y = classes_of(sizes)
    grid, cv = {"alpha": [0.1, 1000.0]}, StratifiedLeaveOneOut()
    ours = FoldlessSearchCV(estimator, grid, cv=cv, scoring="accuracy").fit(X, y)
    theirs = GridSearchCV(estimator, grid, cv=cv).fit(X, y)
    assert_close(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    press = FoldlessSearchCV(estimator, grid, cv=cv).fit(X, y)
    whole = FoldlessSearchCV(estimator, grid, cv=list(cv.split(X, y))).fit(X, y)
    assert_close(press.cv_results_["mean_test_criterion"], whole.cv_results_["mean_test_criterion"])


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_the_criterion_of_many_small_sets_equals_refits(penalty):
    X, y = classes_of((14, 14))
    cv, model = StratifiedLeaveOneOut(), LSSVC("linear", penalty=penalty)
    search = FoldlessSearchCV(model, {"alpha": [0.1, 100.0]}, cv=cv).fit(X, y)
    for alpha, found in zip([0.1, 100.0], search.cv_results_["mean_test_criterion"], strict=True):
        again = with_fixed_functions(clone(model).set_params(alpha=alpha), X)
        fits = their_predict(again, X, y, cv=cv, method="decision_function")
        assert found == pytest.approx(np.mean((2 * y - 1 - fits) ** 2), rel=1e-8)


def test_nested_searches_and_permutation_tests_take_the_splitter():
    X, y = classes_of((12, 12))
    search = FoldlessSearchCV(LSSVC(gamma=0.1), {"alpha": [0.1, 10.0]}, cv=StratifiedLeaveOneOut())
    nested = nested_cross_validate(search, X, y, cv=StratifiedKFold(3))
    for (train, _), params in zip(StratifiedKFold(3).split(X, y), nested.best_params, strict=True):
        assert clone(search).fit(X[train], y[train]).best_params_ == params
    result = permutation_test_score(LSSVC(gamma=0.1), X, y, cv=StratifiedLeaveOneOut(), n_permutations=20)
    assert result[0] == pytest.approx(cross_val_score(LSSVC(gamma=0.1), X, y, cv=StratifiedLeaveOneOut()).mean())


def test_leave_one_out_that_misleads_warns_and_other_does_not():
    X, y = classes_of((20, 20))
    strong = LSSVC("linear", alpha=1e4).fit(X, y)
    with pytest.warns(UserWarning, match=r"stratified_loo_score_.*StratifiedLeaveOneOut\(\)"):
        assert strong.loo_score_ < 0.1
    assert strong.stratified_loo_score_ > 0.5
    with pytest.warns(UserWarning, match="leave-one-out misleads"):
        cross_val_score(LSSVC("linear", alpha=1e4), X, y, cv=LeaveOneOut())
    assert LSSVC("linear").fit(X, y).loo_score_ > 0.5  # warnings are errors here


def test_leave_one_out_scores_run_no_stratified_leave_one_out(monkeypatch):
    X, y = classes_of((20, 20))
    held_out_decisions, calls = Task.held_out_decisions, []
    monkeypatch.setattr(Task, "stratified_scores", None)
    monkeypatch.setattr(Task, "stratified_decisions", None)
    monkeypatch.setattr(Task, "held_out_decisions", lambda *args: calls.append(1) or held_out_decisions(*args))
    for alpha, warning in ((1.0, nullcontext()), (1e4, pytest.warns(UserWarning, match="stratified_loo_score_"))):
        model = LSSVC("linear", alpha=alpha).fit(X, y)
        with warning:
            assert (model.loo_score_ > 0.5) == (alpha == 1.0)
        assert len(calls) == 1  # one leave-one-out decides about the score and the warning
        calls.clear()
    assert cross_val_score(LSSVC("linear"), X, y, cv=LeaveOneOut()).mean() > 0.5
    assert len(calls) == 1


def test_chance_is_the_mean_accuracy_on_labels_in_random_order():
    rng = np.random.default_rng(0)
    codes, decisions = np.repeat([0, 1, 2], [60, 30, 10]), rng.normal(size=(100, 3))
    decisions[np.arange(100), codes] -= 9.0  # never right
    named = decisions.argmax(1)
    in_random_order = [np.mean(named == rng.permutation(codes)) for _ in range(4000)]
    assert chance_if_below(decisions, codes) == pytest.approx(np.mean(in_random_order), abs=0.005)


def test_only_accuracies_three_standard_errors_and_five_percent_below_chance_count():
    codes = np.arange(100) % 2

    def right_in(rows):
        return np.where(np.arange(100) < rows, 1.0, -1.0) * (2 * codes - 1)

    assert chance_if_below(right_in(34), codes) == 0.5
    assert chance_if_below(right_in(36), codes) is None
    many = np.arange(40_000) % 2
    nearly = np.where(np.arange(40_000) < 18_200, 1.0, -1.0) * (2 * many - 1)  # 4.5 %, 18 standard errors
    assert chance_if_below(nearly, many) is None


def test_a_model_that_names_the_larger_class_alone_is_not_below_chance():
    codes = np.repeat([0, 1], [90, 10])
    assert chance_if_below(-np.ones(100), codes) is None
    fair = np.where(np.arange(100) % 4 == 0, 1.0, -1.0)  # a quarter of either class is named 1
    fair[90:] = 1.0
    assert np.mean((fair > 0) == codes) < 0.9
    assert chance_if_below(fair, codes) is None


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_calibration_takes_stratified_scores_where_those_of_leave_one_out_point_away(kind):
    X, y = classes_of((30, 30))
    model = LSSVC("linear", alpha=1e4, calibration=kind).fit(X, y)
    task, whole = model._fitted_task, model._loo().full_fit
    loo = model.loo_decision_function()
    assert not fit_calibration(kind, loo, y, 2, np.ones(60)).known
    fairer = task.stratified_scores(whole, loo)
    expected = fit_calibration(kind, fairer, y, 2, np.ones(60)).proba(model.decision_function(X))
    assert_close(model.predict_proba(X), expected)
    assert np.ptp(expected[:, 1]) > 0.05
    parts = cross_val_predict(model, X, y, cv=StratifiedKFold(3), method="predict_proba")
    assert_close(parts, their_predict(model, X, y, cv=StratifiedKFold(3), method="predict_proba"), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"n_repeats": 0}, [0, 0, 1, 1], "n_repeats=0 must be an integer >= 1"),
        ({}, [0, 0, 0, 1], "single row of class 1"),
        ({}, None, "needs y"),
        ({}, [0.5, 1.5, 2.7, 3.1], "Unknown label type"),
    ],
)
def test_the_splitter_refuses_what_it_cannot_split(options, y, message):
    with pytest.raises(ValueError, match=message):
        list(StratifiedLeaveOneOut(**options).split(np.zeros((4, 1)), y))
