"""Averages of the nearly best settings of a search: members, criterion, score and predictions against plain refits."""

import pickle

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.criteria import Criterion
from foldless.estimators import AverageEstimator
from foldless.model_selection import RefitWarning, cross_val_predict, nested_cross_validate, permutation_test_score
from foldless.readout.calibration import fit_calibration
from foldless.tuning.average import near_best
from support.nested import predicted
from support.refits import fits_of_candidate, held_out, signs
from support.searches import BINARY, GROUPS, KFDA, LABELS, SPLITTERS, VALUES, WEIGHT, N, X, splits_of
from support.tolerances import assert_close

GRID = {"alpha": [0.05, 0.3, 1.0, 5.0, 100.0], "gamma": [0.003, 0.03, 0.3]}
LOSSES = {
    "press": lambda t, f: (t - f) ** 2,
    "error": lambda t, f: float(t * f <= 0),
    "smooth_error": lambda t, f: (1 - t * np.tanh(10 * f)) / 2,
    "hinge": lambda t, f: max(1 - t * f, 0),
    "hinge2": lambda t, f: max(1 - t * f, 0) ** 2,
}


def weights_by_hand(kind, rows, T):
    """Weights of the criterion (N, m), columns of sum 1."""
    W = np.tile((WEIGHT[rows] if kind == "sample_weight" else np.ones(len(rows)))[:, None], T.shape[1])
    if kind == "balanced":
        for column, t in zip(W.T, T.T, strict=True):
            for side in (t > 0, t < 0):
                column[side] /= column[side].sum()
    return W / W.sum(0)


def average_by_refits(estimator, y, splits, loss, kind, w):
    """(members, criterion of their average, its fits, the rows of these) from a plain loop over settings and rows."""
    settings = list(skl.ParameterGrid(GRID))
    fits = []
    for params in settings:
        rows, each = fits_of_candidate(estimator, params, y, splits, X, w)
        fits.append(each)
    T = signs(y)[rows]
    W = weights_by_hand(kind, rows, T)
    losses = np.array([np.vectorize(loss)(T, each) for each in fits])
    totals = (W * losses).sum((1, 2))
    best = int(np.argmin(totals))
    mean = (W * losses[best]).sum(0)
    square = 0.0
    for row in range(N):
        square += (W * (losses[best] - mean))[rows == row].sum() ** 2
    near = [place for place in np.argsort(totals, kind="stable") if totals[place] <= totals[best] + np.sqrt(square)]
    average = np.mean([fits[place] for place in near], 0)
    criterion = (W * np.vectorize(loss)(T, average)).sum()
    return [settings[place] for place in near], criterion, average, rows


CASES = [
    (LSSVC(), LABELS, "press", "leave-one-out", None),
    (LSSVC(), LABELS, "press", "RepeatedKFold", "balanced"),
    (LSSVC(penalty="coef"), BINARY, "hinge2", "KFold", "sample_weight"),
    (LSSVC(), BINARY, "smooth_error", "leave-one-out", "balanced"),
    (LSSVC(), BINARY, "hinge", "GroupKFold", None),
    (KFDA(), LABELS, "press", "KFold", None),
    (LSSVR(), VALUES, "press", "ShuffleSplit with a gap", "sample_weight"),
]


@pytest.mark.parametrize(("estimator", "y", "criterion", "splitter", "kind"), CASES)
def test_members_and_criterion_of_an_average_equal_refits(estimator, y, criterion, splitter, kind):
    weight = WEIGHT if kind == "sample_weight" else None
    options = {"criterion": criterion, "cv": SPLITTERS[splitter], "criterion_weight": kind}
    search = FoldlessSearchCV(estimator, GRID, average=True, refit=False, **options)
    groups = GROUPS if splitter == "GroupKFold" else None
    search.fit(X, y, sample_weight=weight, groups=groups)
    splits = splits_of(splitter, groups)
    members, expected, fits, rows = average_by_refits(estimator, y, splits, LOSSES[criterion], kind, weight)
    assert search.average_params_ == members
    assert 1 < len(members) < 15
    assert members[0] == search.best_params_
    assert search.average_criterion_ == pytest.approx(expected, rel=1e-8)
    alone = FoldlessSearchCV(estimator, GRID, refit=False, **options).fit(X, y, weight, groups)
    assert search.best_criterion_ == alone.best_criterion_
    assert search.best_score_ == alone.best_score_
    if isinstance(estimator, LSSVC) and splitter == "leave-one-out":
        decision = fits[:, 0] if fits.shape[1] == 1 else fits
        assert search.average_score_ == accuracy_score(y[rows], predicted(decision, y))


@pytest.mark.parametrize("estimator", [LSSVC(), KFDA()], ids=str)
def test_an_average_by_its_own_errors_has_their_standard_error(estimator):
    splits = splits_of("KFold")
    search = FoldlessSearchCV(estimator, GRID, cv=splits, criterion="multiclass_error", average=True).fit(X, LABELS)
    truth = LABELS[np.concatenate([test for _, test in splits])]
    refits = [
        np.concatenate(held_out(clone(estimator).set_params(**params), X, LABELS, splits, "decision_function"))
        for params in search.cv_results_["params"]
    ]
    wrong = np.array([predicted(each, LABELS) != truth for each in refits], float)
    assert_close(search.cv_results_["mean_test_criterion"], wrong.mean(1))
    best = wrong[search.best_index_]
    near = wrong.mean(1) <= best.mean() + best.std() / np.sqrt(N)
    assert len(search.average_params_) == near.sum()
    average = np.mean([each for each, taken in zip(refits, near, strict=True) if taken], 0)
    assert search.average_criterion_ == pytest.approx(np.mean(predicted(average, LABELS) != truth))


def test_rows_that_are_tested_twice_are_no_more_rows():
    splits, grid = splits_of("KFold"), {"alpha": np.geomspace(0.03, 300.0, 30).tolist()}
    once, twice = (FoldlessSearchCV(LSSVC(), grid, cv=cv, average=True).fit(X, LABELS) for cv in (splits, 2 * splits))
    assert once.average_params_ == twice.average_params_
    assert 1 < len(once.average_params_) < 20


def test_scores_of_an_average_are_those_of_the_splits():
    splits = splits_of("KFold")
    search = FoldlessSearchCV(LSSVR(), GRID, cv=splits, average=True).fit(X, VALUES)
    model = AverageEstimator([LSSVR(**params) for params in search.average_params_])
    scores = [
        r2_score(VALUES[test], clone(model).fit(X[train], VALUES[train]).predict(X[test])) for train, test in splits
    ]
    assert search.average_score_ == pytest.approx(np.mean(scores))


# -- predictions -------------------------------------------------------------------------------------------------------


def test_predictions_are_means_over_the_members():
    search = FoldlessSearchCV(LSSVC(calibration="sigmoid"), GRID, average=True).fit(X, LABELS, sample_weight=WEIGHT)
    members = [LSSVC(calibration="sigmoid", **params).fit(X, LABELS, WEIGHT) for params in search.average_params_]
    decision = np.mean([each.decision_function(X) for each in members], 0)
    assert isinstance(search.best_estimator_, AverageEstimator)
    assert_close(search.decision_function(X), decision)
    np.testing.assert_array_equal(search.predict(X), np.unique(LABELS)[decision.argmax(1)])
    assert_close(search.predict_proba(X), np.mean([each.predict_proba(X) for each in members], 0))
    assert search.score(X, LABELS) == accuracy_score(LABELS, search.predict(X))
    assert not hasattr(search.best_estimator_, "coef_")


def test_values_are_means_over_the_members_with_their_confounds():
    confounds = X[:, [3]] ** 2
    search = FoldlessSearchCV(LSSVR(), GRID, average=True).fit(X, VALUES, confounds=confounds)
    members = [LSSVR(**params).fit(X, VALUES, confounds=confounds) for params in search.average_params_]
    assert_close(search.predict(X, confounds), np.mean([each.predict(X, confounds=confounds) for each in members], 0))
    assert search.score(X, VALUES, confounds=confounds) == r2_score(VALUES, search.predict(X, confounds))


def test_probabilities_of_averaged_ridge_classifiers_come_from_their_held_out_mean():
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0, 10.0, 30.0]}, average=True).fit(X, BINARY)
    members = [RidgeClassifier(**params) for params in search.average_params_]
    assert len(members) > 1
    splits = splits_of("leave-one-out")
    scores = np.mean([held_out(each, X, BINARY, splits, "decision_function") for each in members], 0)[:, 0]
    sigmoid = fit_calibration("sigmoid", scores, (BINARY == "yes").astype(int), 2, np.ones(N))
    assert_close(search.predict_proba(X), sigmoid.proba(search.decision_function(X)), rtol=1e-6)


@pytest.mark.parametrize(("member", "y"), [(LSSVC(), LABELS), (Ridge(), VALUES)], ids=["classes", "values"])
def test_an_average_of_estimators_is_an_estimator(member, y):
    model = AverageEstimator([member, clone(member).set_params(alpha=3.0)])
    assert (is_classifier(model), is_regressor(model)) == (is_classifier(member), is_regressor(member))
    fitted = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    assert fitted.n_features_in_ == X.shape[1]
    assert hasattr(fitted, "decision_function") == is_classifier(member)
    assert not hasattr(fitted, "predict_proba")
    with pytest.warns(RefitWarning, match="AverageEstimator averages several models"):
        np.testing.assert_array_equal(
            cross_val_predict(model, X, y, cv=3), skl.cross_val_predict(clone(model), X, y, cv=3)
        )
    with pytest.raises(ValueError, match=r"estimators=\[\] must be a list of at least one"):
        AverageEstimator([]).fit(X, y)


# -- pipelines ---------------------------------------------------------------------------------------------------------


def test_members_may_be_pipelines_with_other_steps():
    splits, pipeline = splits_of("KFold"), Pipeline([("scale", StandardScaler()), ("pca", PCA()), ("svc", LSSVC())])
    grid = {"pca__n_components": [3, 4], "svc__alpha": [1.0, 5.0]}
    search = FoldlessSearchCV(pipeline, grid, cv=splits, steps="each", average=True).fit(X, LABELS)
    members = [clone(pipeline).set_params(**params) for params in search.average_params_]
    assert len({each["pca__n_components"] for each in search.average_params_}) == 2
    decisions = [np.mean(each, 0) for each in zip(*(_refits(each, splits) for each in members), strict=True)]
    squares = np.concatenate(
        [np.square(signs(LABELS)[test] - each) for (_, test), each in zip(splits, decisions, strict=True)]
    )
    assert search.average_criterion_ == pytest.approx(squares.mean(0).sum())
    fitted = [each.fit(X, LABELS).decision_function(X) for each in members]
    assert_close(search.decision_function(X), np.mean(fitted, 0))
    train, test = next(skl.StratifiedKFold(2).split(X, LABELS))
    search = FoldlessSearchCV(pipeline, grid, cv=2, steps="each", average=True)
    result = nested_cross_validate(search, X, LABELS, cv=[(train, test)])
    inside = search.fit(X[train], LABELS[train])
    squares = np.square(signs(LABELS)[test] - inside.decision_function(X[test])).mean(0).sum()
    assert result.inner_criterion[0] == pytest.approx(inside.average_criterion_)
    assert result.outer_criterion[0] == pytest.approx(squares)


def _refits(pipeline, splits):
    return held_out(pipeline, X, LABELS, splits, "decision_function")


def test_confounds_do_not_go_through_averaged_pipelines():
    search = FoldlessSearchCV(make_pipeline(StandardScaler(), LSSVC()), average=True)
    with pytest.raises(ValueError, match="confounds: the members of average=True are whole pipelines"):
        search.fit(X, LABELS, confounds=X[:, :1])


# -- which settings ----------------------------------------------------------------------------------------------------


def test_settings_that_are_alike_count_once_and_twenty_are_the_most():
    params = [{"alpha": 1.0, "kernel": "rbf"}, {"alpha": 1.04, "kernel": "rbf"}, {"alpha": 1.04, "kernel": "linear"}]
    assert near_best(params, np.array([1.0, 1.1, 1.2]), 0, 0.5) == [0, 2]
    many = [{"alpha": 2.0**place} for place in range(30)]
    assert near_best(many, np.arange(30.0)[::-1], 29, 50.0) == list(range(29, 9, -1))
    assert near_best(many, np.where(np.arange(30) == 7, 0.0, np.nan), 7, 1.0) == [7]


def test_members_of_a_search_by_parts_were_judged_on_all_rows():
    search = FoldlessSearchCV(LSSVR(), bounds={"gamma": (0.01, 0.1)}, average=True, refit=False).fit(X, VALUES)
    seen = [(step["alpha"], step["gamma"]) for step in search.history_ if step["n_rows"] == N]
    assert len(search.average_params_) > 1
    assert all((each["alpha"], each["gamma"]) in seen for each in search.average_params_)


def test_a_time_limit_leaves_the_best_alone():
    with (
        pytest.warns(ConvergenceWarning, match="stopped by time_limit"),
        pytest.warns(ConvergenceWarning, match=r"stopped \(time_limit\) at 1 of the 3 settings to average") as told,
    ):
        search = FoldlessSearchCV(LSSVC(), GRID, average=True, time_limit=1e-9).fit(X, LABELS)
    assert {each.filename for each in told} == {__file__}
    assert search.average_params_ == [search.best_params_]
    assert search.average_criterion_ == pytest.approx(search.best_criterion_)


def mean_over_rows(f, t, w):
    return (w * np.abs(t - f)).sum(-1), -w * np.sign(t - f)


def test_a_criterion_of_ones_own_may_say_that_it_is_a_mean_over_rows():
    own = Criterion(mean_over_rows, True, labels=False, rowwise=True)
    search = FoldlessSearchCV(LSSVR(), GRID, criterion=own, average=True).fit(X, VALUES)
    splits = splits_of("leave-one-out")
    members, expected, _, _ = average_by_refits(LSSVR(), VALUES, splits, lambda t, f: abs(t - f), None, None)
    assert search.average_params_ == members
    assert search.average_criterion_ == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"average": "yes"}, "average='yes' must be True or False"),
        ({"share": "none"}, "average=True needs share='all', not 'none'"),
        ({"scoring": "accuracy"}, r"average=True .*scoring='accuracy' there is none.*'multiclass_error'"),
        ({"criterion": "ber"}, r"average=True .*criterion='ber' is not.*criterion_weight='balanced'"),
        ({"criterion": mean_over_rows}, r"average=True .*is not said to be.*rowwise=True"),
        ({"method": "gradient", "feature_scaling": True}, r"average=True .*feature_scaling=False"),
        ({"method": "gradient", "criterion": "smooth_error", "slope": [1.0, 2.0]}, r"average=True .*one slope"),
    ],
)
def test_what_has_no_average_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        FoldlessSearchCV(LSSVC(), **{"average": True, **options}).fit(X, LABELS)


# -- a search on every training part -----------------------------------------------------------------------------------


def test_nested_cross_validation_of_an_average_fits_the_search_on_every_outer_part():
    search, outer = FoldlessSearchCV(LSSVC(), GRID, average=True), skl.StratifiedKFold(3)
    result = nested_cross_validate(search, X, LABELS, cv=outer)
    for number, (train, test) in enumerate(outer.split(X, LABELS)):
        inside = clone(search).fit(X[train], LABELS[train])
        decision = inside.decision_function(X[test])
        assert_close(result.decision[number], decision)
        assert result.test_score[number] == inside.score(X[test], LABELS[test])
        assert result.inner_criterion[number] == pytest.approx(inside.average_criterion_)
        assert result.inner_score[number] == pytest.approx(inside.average_score_)
        squares = np.square(signs(LABELS)[test] - decision).mean(0).sum()
        assert result.outer_criterion[number] == pytest.approx(squares)
    with pytest.warns(RefitWarning, match="a search is repeated"):
        found = cross_val_predict(search, X, LABELS, cv=outer)
    np.testing.assert_array_equal(found[test], result.predictions[-1])


def test_permutation_tests_repeat_an_average_for_every_labeling():
    search = FoldlessSearchCV(LSSVC("linear"), {"alpha": [0.1, 1.0]}, average=True)
    with pytest.warns(RefitWarning, match="the search is repeated for every permutation"):
        result = permutation_test_score(search, X, BINARY, cv=3, n_permutations=2)
    expected = nested_cross_validate(search, X, BINARY, cv=3).test_score.mean()
    assert result[0] == pytest.approx(expected)
