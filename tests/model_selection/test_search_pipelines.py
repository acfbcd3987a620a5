"""Searches of pipelines: steps fitted once on all rows or on each training part, compared with plain refits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as skl
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, KernelCenterer, OneHotEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_sample_weight

from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import Optimizer, cross_val_predict, nested_cross_validate, permutation_test_score
from support.refits import held_out, signs
from support.searches import ALPHAS, BINARY, KFDA, LABELS, VALUES, WEIGHT, N, X

SCALED = StandardScaler().fit_transform(X)
GRID = {"lssvc__alpha": ALPHAS, "lssvc__gamma": [0.03, 0.3]}
PLAIN = {name.removeprefix("lssvc__"): values for name, values in GRID.items()}
TWO, FOLDS = skl.KFold(2), skl.KFold(3, shuffle=True, random_state=0)  # of equal size
CONFOUNDS = np.random.default_rng(7).normal(size=(N, 2))


def pipeline(*first, last=None):
    return make_pipeline(*(first or [StandardScaler()]), LSSVC() if last is None else last)


def losses_of(search):
    return search.cv_results_["mean_test_criterion"]


def press_of_refits(search, y, splits, data=X, weight=None, **given):
    """Weighted mean squares of what plain refits leave of the held-out targets, for every candidate of a search."""
    T, losses = signs(y), []
    method = "predict" if T.dtype == y.dtype else "decision_function"
    for params in search.cv_results_["params"]:
        model = clone(search.estimator).set_params(**clone(params, safe=False))
        fits = np.concatenate(held_out(model, data, y, splits, method, **given)).reshape(-1, T.shape[1])
        rows = np.concatenate([test for _, test in splits])
        counted = None if weight is None else weight[rows]
        losses.append(np.average(np.square(T[rows] - fits).sum(1), weights=counted))
    return np.array(losses)


# -- once --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "options"),
    [
        (PLAIN, {}),
        (None, {}),
        (PLAIN, {"cv": FOLDS, "criterion": "multiclass_error"}),
        (PLAIN, {"share": "kernel"}),
        (None, {"method": Optimizer("gradient", max_iter=4)}),
        (None, {"method": Optimizer("simplex", max_iter=4)}),
        (None, {"method": Optimizer("gradient", max_iter=3), "share": "kernel"}),
        (None, {"method": Optimizer("gradient", max_iter=2, bounds={"alpha": (0.1, 10.0)}, feature_scaling=True)}),
    ],
    ids=str,
)
def test_once_is_a_search_of_the_last_step_behind_steps_fitted_on_all_rows(grid, options):
    plain = FoldlessSearchCV(LSSVC(), grid, **options).fit(SCALED, LABELS)
    if getattr(options.get("method"), "bounds", None) is not None:
        options = options | {"method": replace(options["method"], bounds={"lssvc__alpha": (0.1, 10.0)})}
    search = FoldlessSearchCV(pipeline(), grid and GRID, **options).fit(X, LABELS)

    def prefixed(params):
        return {f"lssvc__{name}": value for name, value in params.items()}

    assert_allclose(search.best_criterion_, plain.best_criterion_, rtol=1e-12)
    chosen, expected = (
        each if isinstance(each, list) else [each] for each in (search.best_params_, plain.best_params_)
    )
    for mine, theirs in zip(chosen, expected, strict=True):
        assert mine.keys() == prefixed(theirs).keys()
        assert all(np.allclose(mine[name], value, rtol=1e-10) for name, value in prefixed(theirs).items())
    renamed = {"alpha": "lssvc__alpha", "gamma": "lssvc__gamma"}
    assert list(search.history_[0]) == [renamed.get(name, name) for name in plain.history_[0]]
    assert_allclose(search.decision_function(X), plain.decision_function(SCALED), rtol=1e-7, atol=1e-9)
    assert_array_equal(search.predict(X), plain.predict(SCALED))
    assert_allclose(search.alpha_, plain.alpha_, rtol=1e-10)
    assert isinstance(search.best_estimator_, Pipeline)
    assert search.n_features_in_ == X.shape[1]
    assert_array_equal(search.classes_, ["ant", "bee", "cat"])


def test_a_search_by_fidelity_takes_pipelines(monkeypatch):
    monkeypatch.setattr("foldless._sklearn.candidates.FEW", 10)
    bounds = {"alpha": (0.1, 10.0), "gamma": (0.05, 0.5)}
    plain = FoldlessSearchCV(LSSVC(), method=Optimizer(bounds=bounds)).fit(SCALED, LABELS)
    search = FoldlessSearchCV(
        pipeline(), method=Optimizer(bounds={f"lssvc__{name}": pair for name, pair in bounds.items()})
    )
    search.fit(X, LABELS)
    assert search.best_params_ == {f"lssvc__{name}": value for name, value in plain.best_params_.items()}
    assert [each["n_rows"] for each in search.history_] == [each["n_rows"] for each in plain.history_]
    assert set(search.history_[0]) - set(plain.history_[0]) == set(search.best_params_)


class Counted(TransformerMixin, BaseEstimator):
    """Multiplies X, never sees y, and counts its fits."""

    label_blind = True
    fits = 0

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y=None):
        Counted.fits += 1
        return self

    def transform(self, X):
        return self.factor * X


@pytest.mark.parametrize(("options", "times"), [({}, 1), ({"steps": "each", "cv": TWO}, 2)], ids=["once", "each"])
def test_steps_are_fitted_once_for_each_setting_of_their_own(options, times):
    Counted.fits = 0
    search = FoldlessSearchCV(pipeline(Counted()), {"counted__factor": [0.5, 2.0], **GRID}, refit=False, **options)
    search.fit(X, LABELS)
    assert Counted.fits == 2 * times
    if options:
        expected = press_of_refits(search, LABELS, list(TWO.split(X)))
    else:
        expected = np.concatenate([losses_of(FoldlessSearchCV(LSSVC(), PLAIN).fit(f * X, LABELS)) for f in (0.5, 2.0)])
    assert_allclose(losses_of(search), expected, rtol=1e-9)


@pytest.mark.parametrize("steps", ["once", "each"])
def test_steps_themselves_may_be_searched(steps):
    function = FunctionTransformer(lambda X: X[:, :2])  # without a name, by which it could be told
    grid = {"standardscaler": ["passthrough", None, StandardScaler(), function], "lssvc": [LSSVC("linear"), LSSVC()]}
    search = FoldlessSearchCV(pipeline(), grid, steps=steps, cv=TWO).fit(X, LABELS)
    if steps == "each":
        expected = press_of_refits(search, LABELS, list(TWO.split(X)))
    else:
        seen = [X, X, SCALED, X[:, :2]]
        plain = [FoldlessSearchCV(model, {"alpha": [1.0]}, cv=TWO) for model in grid["lssvc"]]
        expected = np.concatenate([losses_of(each.fit(rows, LABELS)) for each in plain for rows in seen])
    assert_allclose(losses_of(search), expected, rtol=1e-9)


# -- on each training part ---------------------------------------------------------------------------------------------

EACH = {
    "two classes": (pipeline(PCA(2)), BINARY, GRID, {}),
    "scale of each part": (pipeline(), LABELS, {"lssvc__alpha": ALPHAS}, {}),
    "selection by y": (pipeline(SelectKBest(f_classif)), LABELS, {"selectkbest__k": [1, 3], **GRID}, {}),
    "weights": (pipeline(), LABELS, GRID, {"sample_weight": WEIGHT}),
    "confounds": (pipeline(), BINARY, GRID, {"confounds": CONFOUNDS}),
    "balanced classes": (pipeline(last=LSSVC(class_weight="balanced")), LABELS, GRID, {}),
    "all basis functions": (pipeline(last=LSSVC(penalty="coef")), LABELS, GRID, {}),
    "standardize": (pipeline(PCA(3), last=LSSVC(standardize=True)), LABELS, GRID, {}),
    "values": (pipeline(last=LSSVR()), VALUES, {"lssvr__alpha": ALPHAS}, {}),
    "ridge": (pipeline(last=Ridge()), VALUES, {"ridge__alpha": ALPHAS}, {}),
    "kernel ridge": (pipeline(last=KernelRidge(kernel="rbf")), VALUES, {"kernelridge__alpha": ALPHAS}, {}),
    "ridge classifier": (
        pipeline(last=RidgeClassifier(class_weight="balanced")),
        LABELS,
        {"ridgeclassifier__alpha": ALPHAS},
        {},
    ),
}


@pytest.mark.many_cases
@pytest.mark.parametrize("case", EACH)
@pytest.mark.parametrize("cv", [FOLDS, skl.ShuffleSplit(2, train_size=0.5, test_size=0.3, random_state=0), None])
def test_each_equals_plain_refits(case, cv):
    model, y, grid, given = EACH[case]
    rows = np.arange(0, N, 1 if cv is not None else 3)
    data, y, given = X[rows], y[rows], {name: values[rows] for name, values in given.items()}
    search = FoldlessSearchCV(model, grid, steps="each", cv=cv).fit(data, y, **given)
    splits, last = list((cv or skl.LeaveOneOut()).split(data)), model.steps[-1][0]
    named = {f"{last}__{name}": values for name, values in given.items()}
    weight = given.get("sample_weight")
    if getattr(model.steps[-1][1], "class_weight", None) == "balanced":
        weight = compute_sample_weight("balanced", y)
    assert_allclose(losses_of(search), press_of_refits(search, y, splits, data, weight, **named), rtol=1e-8)
    method = "predict" if y.dtype.kind == "f" else "decision_function"
    fitted = clone(model).set_params(**search.best_params_).fit(data, y, **named)
    assert_allclose(getattr(search, method)(X), getattr(fitted, method)(X), rtol=1e-10)


@pytest.mark.parametrize("last", [LSSVC(), KFDA(), RidgeClassifier()], ids=str)
def test_each_equals_grid_search_of_scikit_learn(last):
    name = type(last).__name__.lower()
    grid = {"pca__n_components": [1, 3], f"{name}__alpha": [0.01, 0.5, 30.0]}
    model = make_pipeline(StandardScaler(), PCA(), last)
    ours = FoldlessSearchCV(model, grid, steps="each", cv=FOLDS, criterion="multiclass_error").fit(X, LABELS)
    theirs = skl.GridSearchCV(model, grid, cv=FOLDS).fit(X, LABELS)
    assert [each.keys() for each in ours.cv_results_["params"]] == [
        each.keys() for each in theirs.cv_results_["params"]
    ]
    assert_allclose(1 - losses_of(ours), theirs.cv_results_["mean_test_score"])


@pytest.mark.parametrize("cv", [FOLDS, None], ids=["folds", "rows"])
def test_scores_of_each_part_equal_grid_search_of_scikit_learn(cv):
    last = KFDA() if cv is None else KFDA(threshold="loo", calibration="sigmoid")
    model, rows = pipeline(SelectKBest(), last=last), slice(None, None, 3 if cv is None else 1)
    grid = {"selectkbest__k": [1, 3], "kernelfisherdiscriminant__alpha": [0.01, 3.0]}
    names = ["accuracy"] if cv is None else ["accuracy", "roc_auc", "neg_log_loss"]
    options = {"scoring": names, "refit": "accuracy"}
    ours = FoldlessSearchCV(model, grid, steps="each", cv=cv, **options).fit(X[rows], BINARY[rows])
    theirs = skl.GridSearchCV(model, grid, cv=cv or skl.LeaveOneOut(), **options).fit(X[rows], BINARY[rows])
    splits = [] if cv is None else [f"split{number}_test_{name}" for number in range(3) for name in names]
    for name in [*splits, *(f"mean_test_{name}" for name in names)]:
        assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], rtol=1e-7)
    assert_allclose(ours.best_score_, theirs.best_score_)
    assert ours.n_splits_ == theirs.n_splits_


class OwnRows(TransformerMixin, BaseEstimator):
    """Shows rows that it has learnt from otherwise than new ones, as a TargetEncoder does."""

    def fit(self, X, y):
        return self

    def fit_transform(self, X, y):
        return X - 0.1 * y[:, None]

    def transform(self, X):
        return X + 1.0


def test_training_rows_come_from_fit_transform_as_in_a_pipeline():
    search = FoldlessSearchCV(
        pipeline(OwnRows(), last=LSSVR("linear")), {"lssvr__alpha": ALPHAS}, steps="each", cv=FOLDS
    )
    search.fit(X, VALUES)
    assert_allclose(losses_of(search), press_of_refits(search, VALUES, list(FOLDS.split(X))), rtol=1e-9)


def test_a_default_grid_has_the_range_of_the_first_training_part():
    model = pipeline(SelectKBest(k=2), last=LSSVC("linear"))
    search = FoldlessSearchCV(model, steps="each", cv=TWO, refit=False).fit(X, LABELS)
    train = next(TWO.split(X))[0]
    seen = SelectKBest(k=2).fit_transform(X[train], LABELS[train])
    plain = FoldlessSearchCV(LSSVC("linear"), refit=False).fit(seen, LABELS[train])
    alphas = [each["alpha"] for each in plain.cv_results_["params"]]
    assert_allclose([each["lssvc__alpha"] for each in search.cv_results_["params"]], alphas)


def test_probabilities_of_ridge_come_from_the_held_out_decisions_of_each_part():
    model = pipeline(SelectKBest(k=2), last=RidgeClassifier())
    search = FoldlessSearchCV(model, {"ridgeclassifier__alpha": [0.5]}, steps="each", cv=FOLDS).fit(X, LABELS)
    again = FoldlessSearchCV(model, {"ridgeclassifier__alpha": [0.5]}, steps="each", cv=FOLDS, share="kernel")
    held = np.concatenate(
        held_out(model.set_params(ridgeclassifier__alpha=0.5), X, LABELS, FOLDS.split(X), "decision_function")
    )
    assert_allclose(search._sigmoid.scores[0], held, rtol=1e-9)
    assert_allclose(again.fit(X, LABELS)._sigmoid.scores[0], held, rtol=1e-9)
    assert_allclose(search.predict_proba(X).sum(1), 1.0)


# -- what X may be -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "sparse"), [("once", 0.0), ("once", 1.0), ("each", 1.0)])
def test_frames_with_strings_go_to_the_steps_as_they_are(steps, sparse):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.array(["x", "y", "z"])[np.arange(N) % 3])
    columns = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_include=[object, "string"])),
        (StandardScaler(), list("abcd")),
        sparse_threshold=sparse,
    )
    grid = {"columntransformer__standardscaler__with_std": [True, False], "lssvc__alpha": ALPHAS, "lssvc__gamma": [0.3]}
    search = FoldlessSearchCV(pipeline(columns), grid, steps=steps, cv=TWO).fit(frame, LABELS)
    assert list(search.feature_names_in_) == ["a", "b", "c", "d", "kind"]
    assert search.n_features_in_ == 5
    assert search.score(frame, LABELS) > 0.6
    if steps == "each":
        expected = press_of_refits(search, LABELS, list(TWO.split(X)), frame)
        assert_allclose(losses_of(search), expected, rtol=1e-9)
    else:
        seen = columns.fit_transform(frame)
        assert sp.issparse(seen) == bool(sparse)
        plain = FoldlessSearchCV(LSSVC(gamma=0.3), {"alpha": ALPHAS}, cv=TWO).fit(seen, LABELS)
        with_std = [each["columntransformer__standardscaler__with_std"] for each in search.cv_results_["params"]]
        assert_allclose(losses_of(search)[with_std], losses_of(plain), rtol=1e-10)


def test_missing_values_go_to_an_imputer():
    holes = X.copy()
    holes[::7, 1] = np.nan
    search = FoldlessSearchCV(pipeline(SimpleImputer(), StandardScaler())).fit(holes, LABELS)
    assert np.isfinite(search.decision_function(holes)).all()
    assert get_tags(search).input_tags.allow_nan
    assert not get_tags(FoldlessSearchCV(pipeline())).input_tags.allow_nan


def test_kernels_may_be_centred_in_front():
    K = X @ X.T
    model = make_pipeline(KernelCenterer(), LSSVC("precomputed"))
    search = FoldlessSearchCV(model, {"lssvc__alpha": ALPHAS}).fit(K, LABELS)
    assert get_tags(search).input_tags.pairwise
    plain = FoldlessSearchCV(LSSVC("linear"), {"alpha": ALPHAS}).fit(X - X.mean(0), LABELS)
    assert_allclose(losses_of(search), losses_of(plain), rtol=1e-9)
    with pytest.raises(ValueError, match=r"steps='each' needs features; .*steps='once'"):
        FoldlessSearchCV(model, {"lssvc__alpha": ALPHAS}, steps="each", cv=3).fit(K, LABELS)


@pytest.mark.parametrize("steps", ["once", "each"])
def test_odd_pipelines_are_searched(steps, tmp_path):
    inner = make_pipeline(StandardScaler(), "passthrough", PCA(2)).set_output(transform="pandas")
    model = Pipeline([("none", None), ("inner", inner), ("last", LSSVC())], memory=str(tmp_path))
    search = FoldlessSearchCV(model, {"inner__pca__n_components": [1, 2], "last__alpha": ALPHAS}, steps=steps, cv=FOLDS)
    search.fit(X, LABELS)
    if steps == "each":
        assert_allclose(losses_of(search), press_of_refits(search, LABELS, list(FOLDS.split(X))), rtol=1e-9)
    alone = Pipeline([("none", None), ("last", LSSVC())])
    found = FoldlessSearchCV(alone, {"last__alpha": ALPHAS, "last__gamma": [0.1]}, steps=steps, cv=FOLDS).fit(X, LABELS)
    plain = FoldlessSearchCV(LSSVC(), {"alpha": ALPHAS, "gamma": [0.1]}, cv=FOLDS).fit(X, LABELS)
    assert_allclose(losses_of(found), losses_of(plain), rtol=1e-9)


def test_weights_are_routed_to_the_steps_that_ask_for_them():
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=True), LSSVC().set_fit_request(sample_weight=True)
        )
        search = FoldlessSearchCV(model, GRID).fit(X, LABELS, sample_weight=WEIGHT)
        seen = StandardScaler().fit(X, sample_weight=WEIGHT).transform(X)
        plain = FoldlessSearchCV(LSSVC(), PLAIN).fit(seen, LABELS, sample_weight=WEIGHT)
        assert_allclose(losses_of(search), losses_of(plain), rtol=1e-12)
        assert_allclose(search.decision_function(X), plain.decision_function(seen), rtol=1e-10)


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (pipeline(SelectKBest(k=2)), {}, r"steps='once': step 'selectkbest' .*Use steps='each' with cv=5"),
        (pipeline(), {"steps": "always"}, "steps='always' is unknown; use one of 'each', 'once'"),
        (LSSVC(), {"steps": "always"}, "steps='always' is unknown"),
        (pipeline(), {"steps": "each", "method": "gradient"}, r"steps='each' .*use steps='once', or method='grid'"),
        (pipeline(), {"steps": "each", "method": Optimizer(feature_scaling=True)}, r"steps='each' .*use steps='once'"),
        (pipeline(), {"share": "none", "param_grid": {"standardscaler__with_std": [True]}}, "share='none' .*with_std"),
        (pipeline(), {"param_grid": {"lssvc__alpha": [-1.0]}}, "lssvc__alpha=-1.0 must be a finite number > 0"),
        (
            pipeline(),
            {"param_grid": {"lssvc": [Counted()]}},
            "the last step 'lssvc', Counted, is not a least",
        ),
        (make_pipeline(StandardScaler(), pipeline()), {}, "the last step 'pipeline', Pipeline, is not"),
        (
            pipeline(),
            {"method": Optimizer("gradient", bounds={"alpha": (1, 2)})},
            "bounds names 'alpha'; the continuous parameters are lssvc__alpha, .*lssvc__gamma",
        ),
        (
            pipeline(),
            {"steps": "each", "cv": [(np.r_[0, np.arange(20)], np.arange(20, N))]},
            "cv: the training part of split 0 repeats rows",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_way_out(model, options, message):
    with pytest.raises(ValueError, match=message):
        FoldlessSearchCV(model, **options).fit(X, LABELS)


def test_long_searches_of_training_parts_are_foreseen(monkeypatch):
    for name, value in (("SHORT", 10), ("MEASURED", 8)):
        monkeypatch.setattr(f"foldless.model_selection._search_runs.{name}", value)
    monkeypatch.setattr("foldless.model_selection._search_runs.LONG", 0.0)
    search = FoldlessSearchCV(pipeline(), {"lssvc__alpha": [1.0]}, steps="each", cv=[(np.arange(20), np.arange(20, N))])
    with pytest.warns(UserWarning, match="this search of 20 rows is expected to take"):
        search.fit(X, LABELS)


def test_many_fits_of_the_steps_are_warned_of(monkeypatch):
    monkeypatch.setattr("foldless._sklearn.steps.MANY_FITS", N - 1)
    with pytest.warns(UserWarning, match=rf"fits the steps {N} times.*Use cv=5 or steps='once'"):
        FoldlessSearchCV(pipeline(), {"lssvc__alpha": [1.0]}, steps="each").fit(X, LABELS)


# -- nested ------------------------------------------------------------------------------------------------------------

OUTER, RIDGE = skl.StratifiedKFold(3, shuffle=True, random_state=1), {"ridgeclassifier__alpha": ALPHAS}
SEARCHES = {
    "once": (FoldlessSearchCV(pipeline(), GRID), LABELS),
    "each": (FoldlessSearchCV(pipeline(SelectKBest(k=2)), GRID, steps="each", cv=TWO), LABELS),
    "ridge classifier": (FoldlessSearchCV(pipeline(last=RidgeClassifier()), RIDGE, cv=TWO, steps="each"), BINARY),
    "values": (FoldlessSearchCV(pipeline(last=LSSVR("linear"))), VALUES),
    "share": (FoldlessSearchCV(pipeline(), GRID, share="kernel"), LABELS),
}


@pytest.mark.parametrize("case", SEARCHES)
def test_nested_cross_validation_fits_the_steps_in_every_outer_part(case):
    search, y = SEARCHES[case]
    cv = skl.KFold(3) if y is VALUES else OUTER
    result = nested_cross_validate(search, X, y, cv=cv, params={"sample_weight": WEIGHT}, return_estimator=True)
    for number, (train, test) in enumerate(cv.split(X, y)):
        own = clone(search).fit(X[train], y[train], sample_weight=WEIGHT[train])
        assert result.best_params[number] == own.best_params_
        assert_allclose(result.test_score[number], own.score(X[test], y[test]), rtol=1e-9)
        assert_allclose(result.inner_criterion[number], own.best_criterion_, rtol=1e-12)
        assert_array_equal(result.estimator[number].predict(X[test]), own.predict(X[test]))
        T, method = signs(y), "predict" if y is VALUES else "decision_function"
        fits = getattr(own, method)(X[test]).reshape(len(test), -1)
        assert_allclose(
            result.outer_criterion[number],
            np.average(np.square(T[test] - fits).sum(1), weights=WEIGHT[test]),
            rtol=1e-9,
        )
    assert result.path.kind == "refit"


def test_nested_once_takes_one_P_behind_steps_fitted_on_all_rows():
    options = {"steps": "once", "params": {"sample_weight": np.ones(N)}, "return_estimator": True}
    result = nested_cross_validate(SEARCHES["once"][0], X, LABELS, cv=OUTER, **options)
    assert all(isinstance(each, Pipeline) for each in result.estimator)
    plain = nested_cross_validate(FoldlessSearchCV(LSSVC(), PLAIN), SCALED, LABELS, cv=OUTER)
    assert_array_equal(result.test_score, plain.test_score)
    assert_allclose(result.inner_criterion, plain.inner_criterion, rtol=1e-12)
    assert result.path.reason.startswith("StandardScaler fitted once on all rows, labels unseen; ")
    assert set(result.best_params[0]) == set(GRID)
    each = nested_cross_validate(SEARCHES["each"][0], X, LABELS, cv=OUTER, steps="once")
    assert each.path.kind == "refit"
    assert "fitted once" not in each.path.reason


def test_permutation_tests_repeat_the_search_of_a_pipeline():
    search = FoldlessSearchCV(pipeline(), {"lssvc__alpha": ALPHAS})
    options = {"cv": skl.KFold(3), "n_permutations": 2, "random_state": 0}
    with pytest.warns(UserWarning, match="the search is repeated"):
        result = permutation_test_score(search, X, LABELS, **options)
    expected = nested_cross_validate(search, X, LABELS, cv=skl.KFold(3)).test_score.mean()
    assert_allclose(result.score, expected, rtol=1e-12)
    once = permutation_test_score(search, X, LABELS, steps="once", **options)
    plain = permutation_test_score(FoldlessSearchCV(LSSVC(), {"alpha": ALPHAS}), SCALED, LABELS, **options)
    assert_allclose(once.permutation_scores, plain.permutation_scores, rtol=1e-12)
    assert once.path.kind == "one fit"
    assert once.path.reason.startswith("StandardScaler fitted once")


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_held_out_predictions_of_a_search_of_a_pipeline_equal_refits():
    search, given = SEARCHES["once"][0], {"confounds": CONFOUNDS}
    expected = np.concatenate(held_out(search, X, LABELS, skl.KFold(3).split(X), "predict"))
    assert_array_equal(cross_val_predict(search, X, LABELS, cv=skl.KFold(3)), expected)
    ours = cross_val_predict(search, X, LABELS, cv=skl.KFold(3), method="decision_function", **given)
    theirs = held_out(search, X, LABELS, skl.KFold(3).split(X), "decision_function", **given)
    assert_allclose(ours, np.concatenate(theirs), rtol=1e-10)
