"""foldless.model_selection against sklearn.model_selection on the same estimator: the same numbers, from one fit."""

import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless._engine.readout.task as tasks
import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from support.cases import SPLITTERS, odd_splits, splitters
from support.cross_validation import (
    BINARY,
    CODES,
    FEW_REFITS,
    GROUPS,
    LABELS,
    PARTITIONS,
    REGRESSORS,
    VALUES,
    WEIGHT,
    N,
    X,
    compare_predict,
    compare_splitter,
    compare_validate,
    everyone,
    methods,
    scores,
    weights_for,
)
from support.parts import TrainingParts
from support.refits import refit, with_fixed_functions
from support.tolerances import assert_close, assert_near

every_splitter = pytest.mark.parametrize("splitter", SPLITTERS)


@pytest.mark.many_cases
@everyone
@pytest.mark.parametrize(("weighted", "splitter"), FEW_REFITS)
def test_cross_validation_equals_refits_for_every_splitter(estimator, y, splitter, weighted, monkeypatch):
    compare_splitter(estimator, y, splitter, weighted, monkeypatch)


@pytest.mark.many_cases
@everyone
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_cross_validation_equals_refits_for_odd_splits(estimator, y, weighted, strategy):
    """Test rows inside the training part, rows in neither, the training part as the small side."""
    compare_validate(
        estimator,
        X,
        y,
        "one fit",
        cv=odd_splits(N)[:4] + odd_splits(N)[5:],
        params=weights_for(estimator, weighted),
        scoring=scores(estimator, y),
    )


@pytest.mark.many_cases
@everyone
@pytest.mark.parametrize("splitter", ["KFold", "ShuffleSplit with a gap", "TimeSeriesSplit"])
def test_steps_of_a_pipeline_are_fitted_on_each_training_part(estimator, y, splitter):
    pipeline = make_pipeline(StandardScaler(), PCA(3), clone(estimator))
    cv = splitters(N, CODES)[splitter]
    params = weights_for(pipeline, True)
    path = compare_validate(pipeline, X, y, "one P per fold", cv=cv, params=params, scoring=scores(estimator, y))
    assert "StandardScaler, PCA fitted on each training part" in str(path)
    if splitter in PARTITIONS:
        compare_predict(pipeline, X, y, cv=cv, params=params)


@pytest.mark.many_cases
@everyone
@pytest.mark.parametrize("container", ["csr", "csc", "pandas", "polars", "float32", "list"])
def test_containers_give_the_same_numbers(estimator, y, container, monkeypatch):
    monkeypatch.setattr(tasks, "TrainingParts", functools.partial(TrainingParts, strategy="part"))
    sparse_solver = {"solver": "cholesky"} if "solver" in estimator.get_params() and container.startswith("cs") else {}
    if sparse_solver and estimator.fit_intercept:
        sparse_solver = {"solver": "sparse_cg", "tol": 1e-14}  # scikit-learn's only exact-enough one for sparse X
    estimator = clone(estimator).set_params(**sparse_solver)
    data = {
        "csr": sp.csr_array(X),
        "csc": sp.csc_array(X),
        "pandas": pd.DataFrame(X, columns=list("abcde")),
        "polars": pl.DataFrame(X, schema=list("abcde")),
        "float32": X.astype(np.float32),
        "list": X.tolist(),
    }[container]
    if callable(getattr(estimator, "kernel", None)) and container.startswith("cs"):
        pytest.skip("a function of two rows of numbers")
    y = y.tolist() if container == "list" else y
    cv = skl.KFold(4, shuffle=True, random_state=0)
    theirs = skl.cross_val_predict(with_fixed_functions(estimator, data), data, y, cv=cv)
    ours = fl.cross_val_predict(estimator, data, y, cv=cv)
    assert fl.explain(estimator, data, y, cv=cv).kind != "refit"
    if ours.dtype.kind == "f":
        assert_close(ours, theirs, rtol=1e-3 if container == "float32" else None)
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.many_cases
@pytest.mark.parametrize(
    "estimator",
    [
        LSSVC("precomputed"),
        KernelFisherDiscriminant("precomputed"),
        LSSVR("precomputed"),
        KernelRidge(kernel="precomputed"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("sparse", [False, True])
@every_splitter
def test_precomputed_kernels_are_sliced_on_both_sides(estimator, sparse, splitter):
    K = np.exp(-0.1 * np.square(X[:, None] - X).sum(-1))
    if sparse and isinstance(estimator, KernelRidge):
        pytest.skip("scikit-learn does not take a sparse precomputed kernel here")
    K = sp.csr_array(K) if sparse else K
    y = VALUES if sklearn.base.is_regressor(estimator) else LABELS
    if splitter in ("StratifiedKFold", "RepeatedStratifiedKFold") and y is VALUES:
        pytest.skip("stratified by labels, and these are values")
    cv = splitters(N, CODES)[splitter]
    if splitter == "LeavePOut(2)":
        cv = [(train, test) for train, test in cv.split(X) if test.max() < 8]
    compare_validate(estimator, K, y, "one fit", cv=cv, groups=GROUPS, scoring=scores(estimator, y))


@pytest.mark.many_cases
@pytest.mark.parametrize("estimator", list(REGRESSORS.values())[:5], ids=list(REGRESSORS)[:5])
@pytest.mark.parametrize("columns", [1, 2])
def test_several_outputs_equal_refits(estimator, columns, strategy):
    Y = np.column_stack([VALUES, X[:, 1]])[:, :columns]
    refitted = with_fixed_functions(estimator, X)
    for cv in (skl.LeaveOneOut(), skl.KFold(5)):
        assert_close(fl.cross_val_predict(estimator, X, Y, cv=cv), skl.cross_val_predict(refitted, X, Y, cv=cv))


@pytest.mark.many_cases
@everyone
def test_rows_of_weight_zero_are_predicted_and_never_trained_on(estimator, y):
    w = WEIGHT.copy()
    w[[0, 7, 8]] = 0.0
    cv = skl.KFold(5, shuffle=True, random_state=1)
    for each in (cv, skl.LeaveOneOut()):
        compare_predict(estimator, X, y, cv=each, params={"sample_weight": w})


@pytest.mark.many_cases
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_probabilities_inside_cross_validation_use_each_training_part_alone(calibration, y, kind, penalty, weighted):
    estimator = kind(gamma=0.1, calibration=calibration, penalty=penalty)
    params = weights_for(estimator, weighted)
    for splitter in ("KFold", "LeaveOneGroupOut"):  # LeaveOneOut: tests/slow
        cv = splitters(N, CODES)[splitter]
        compare_predict(estimator, X, y, cv=cv, groups=GROUPS, params=params)
    compare_validate(
        estimator,
        X,
        y,
        "one fit",
        cv=skl.KFold(3, shuffle=True, random_state=1),
        scoring={"log": "neg_log_loss"},
        params=params,
    )


def test_scorers_of_every_kind_equal_refits():
    estimator, y = LSSVC(gamma=0.1), (CODES > 0).astype(int)

    def reads_everything(estimator, X, y):
        assert X.shape[1] == 5
        return float(np.mean(estimator.predict(X) == y)) + estimator.dual_coef_[0, 0]

    for scoring in (
        None,
        "roc_auc",
        make_scorer(accuracy_score),
        ("accuracy", "roc_auc", "average_precision"),
        {"a": "accuracy", "mine": reads_everything},
        reads_everything,
        lambda e, X, y: {"one": e.score(X, y), "two": e.decision_function(X).mean()},
    ):
        compare_validate(estimator, X, y, "one fit", cv=5, scoring=scoring)
    assert_close(
        fl.cross_val_score(estimator, X, y, scoring="roc_auc", cv=4),
        skl.cross_val_score(estimator, X, y, scoring="roc_auc", cv=4),
    )


@pytest.mark.many_cases
@everyone
def test_returned_estimators_are_those_of_the_training_parts(estimator, y, strategy):
    cv = skl.ShuffleSplit(3, test_size=0.25, random_state=0)  # training parts in no order
    ours = fl.cross_validate(estimator, X, y, cv=cv, return_estimator=True, params={"sample_weight": WEIGHT})
    refitted = with_fixed_functions(estimator, X, WEIGHT)
    theirs = skl.cross_validate(refitted, X, y, cv=cv, return_estimator=True, params={"sample_weight": WEIGHT})
    for one, two in zip(ours["estimator"], theirs["estimator"], strict=True):
        assert type(one) is type(two)
        assert one.n_features_in_ == two.n_features_in_
        assert_close(one.dual_coef_, two.dual_coef_) if hasattr(two, "dual_coef_") else None
        if hasattr(two, "coef_"):
            assert_close(one.coef_, two.coef_)
        new = X[:7] + 0.1
        for method in methods(two):
            actual, expected = getattr(one, method)(new), getattr(two, method)(new)
            if expected.dtype.kind == "f":
                assert_close(actual, expected)
            else:
                np.testing.assert_array_equal(actual, expected)
        if hasattr(two, "loo_score_"):
            assert one.loo_score_ == pytest.approx(two.loo_score_, rel=1e-8)


@pytest.mark.parametrize(
    "estimator", [LSSVR("precomputed"), LSSVC("precomputed"), KernelRidge(kernel="precomputed")], ids=repr
)
def test_precomputed_columns_are_in_the_order_of_the_split(estimator, strategy):
    K = np.exp(-0.1 * np.square(X[:, None] - X).sum(-1))
    y = VALUES if sklearn.base.is_regressor(estimator) else BINARY
    cv = skl.ShuffleSplit(3, test_size=0.3, random_state=0)

    def scorer(estimator, K, y):
        return estimator.score(K, y) + estimator.dual_coef_.ravel()[0]

    expected = skl.cross_val_score(estimator, K, y, cv=cv, scoring=scorer)
    assert_close(fl.cross_val_score(estimator, K, y, cv=cv, scoring=scorer), expected)
    result = fl.cross_validate(estimator, K, y, cv=cv, return_estimator=True, return_indices=True)
    for one, train in zip(result["estimator"], result["indices"]["train"], strict=True):
        refit = clone(estimator).fit(K[np.ix_(train, train)], y[train])
        np.testing.assert_array_equal(one.predict(K[:, train]) == y, refit.predict(K[:, train]) == y)
        assert_close(one.dual_coef_, refit.dual_coef_)


def test_masks_and_negative_indices_are_splits_too():
    estimator = LSSVR(gamma=0.1)
    mask = np.arange(N) % 3 == 0
    splits = [(~mask, mask), (np.arange(-20, 0), np.arange(5))]
    assert_close(
        fl.cross_val_score(estimator, X, VALUES, cv=splits), skl.cross_val_score(estimator, X, VALUES, cv=splits)
    )
    assert fl.explain(estimator, X, VALUES, cv=splits).kind != "refit"


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.FitFailedWarning", "ignore:.*is refitted on every training part"
)
def test_a_split_without_training_rows_has_no_score():
    rows = np.arange(N)
    splits = [(rows[:0], rows[:10]), (rows[10:], rows[:10])]
    empty, score = fl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, cv=splits)
    assert np.isnan(empty)
    assert score == pytest.approx(refit(LSSVR(gamma=0.1), X, VALUES, rows[10:]).score(X[:10], VALUES[:10]))


@pytest.mark.parametrize("alpha", [1.0, 1e-9, 1e-12])
@pytest.mark.parametrize("cv", [skl.KFold(4), skl.LeaveOneOut()], ids=["folds", "rows"])
def test_returned_estimators_keep_the_basis_functions_of_all_rows(cv, alpha):
    estimator, params = LSSVR(gamma=0.1, alpha=alpha, penalty="coef"), {"sample_weight": WEIGHT}
    result = fl.cross_validate(
        estimator, X, VALUES, cv=cv, return_estimator=True, scoring="neg_mean_squared_error", params=params
    )
    held_out = fl.cross_val_predict(estimator, X, VALUES, cv=cv, params=params)
    for fitted, (_, test) in zip(result["estimator"], cv.split(X), strict=True):
        assert_close(fitted.predict(X[test]), held_out[test], scale=np.abs(VALUES).max())
        assert fitted.dual_coef_.shape == (N,)


TINY_ALPHA = {
    "values": (LSSVR, {}, lambda x: np.sin(6 * x)),
    "labels": (LSSVC, {}, lambda x: (np.sin(9 * x) > 0).astype(int)),
    **{
        f"Fisher, {name}": (KernelFisherDiscriminant, {"threshold": name}, lambda x: (np.sin(9 * x) > 0).astype(int))
        for name in ("fisher", "centroid")
    },
}


@pytest.mark.parametrize("case", TINY_ALPHA)
@pytest.mark.parametrize("alpha", [1e-3, 1e-9, 1e-12])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [skl.KFold(4), skl.LeaveOneOut()], ids=["folds", "rows"])
def test_returned_estimators_at_a_tiny_alpha_are_refits(cv, weighted, alpha, case):
    """K K' loses such an alpha: the coefficients of the basis functions must not come from A = O(1 / alpha)."""
    kind, options, targets = TINY_ALPHA[case]
    x = np.linspace(0.0, 1.0, 12)
    rows, y = x[:, None], targets(x)
    weights = np.where(weighted, np.geomspace(0.1, 10.0, 12), 1.0)
    estimator = kind(gamma=1.0, alpha=alpha, penalty="coef", **options)
    method = "predict" if kind is LSSVR else "decision_function"
    scoring = "neg_mean_squared_error" if kind is LSSVR else "accuracy"
    result = fl.cross_validate(
        estimator,
        rows,
        y,
        cv=cv,
        return_estimator=True,
        return_train_score=True,
        scoring=scoring,
        params={"sample_weight": weights},
    )
    splits = zip(result["estimator"], result["train_score"], cv.split(rows), strict=True)
    for fitted, train_score, (train, _) in splits:
        again = refit(estimator, rows, y, train, sample_weight=weights)
        assert_near(getattr(fitted, method)(rows), getattr(again, method)(rows), 1e-7)
        assert_near(train_score, get_scorer(scoring)(again, rows[train], y[train]), 1e-8)


@pytest.mark.parametrize("confounded", [False, True], ids=["", "confounds"])
@pytest.mark.parametrize(("kind", "fit_intercept"), [(LSSVR, True), (LSSVR, False), (LSSVC, True), (LSSVC, False)])
@pytest.mark.parametrize(("alpha", "d"), [(1e-7, 6), (1e-9, 4), (1e-9, 6)])
@pytest.mark.parametrize("seed", [14, 15, 16, 17, 21])
def test_returned_linear_models_at_a_tiny_alpha_are_refits(seed, alpha, d, kind, fit_intercept, confounded):
    """The Gram matrix of all rows is singular, that of half of them nearly regular."""
    rng = np.random.default_rng(seed)
    rows, labels, C = rng.normal(size=(12, d)), np.arange(12) % 2, rng.normal(size=(12, 2))
    y = rng.normal(size=12) if kind is LSSVR else labels
    given = {"confounds": C} if confounded else {}
    estimator, cv = kind("linear", alpha=alpha, fit_intercept=fit_intercept), skl.KFold(2)
    method = "predict" if kind is LSSVR else "decision_function"
    found = fl.cross_validate(estimator, rows, y, cv=cv, return_estimator=True, **given)["estimator"]
    for fitted, (train, _) in zip(found, cv.split(rows), strict=True):
        again = clone(estimator).fit(rows[train], y[train], **{name: C[train] for name in given})
        assert_near(getattr(fitted, method)(rows, **given), getattr(again, method)(rows, **given), 1e-8)


def test_generators_and_iterables_are_splits_too():
    splits = list(skl.KFold(4).split(X))
    expected = skl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, cv=splits)
    assert_close(fl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, cv=iter(splits)), expected)
    assert_close(fl.cross_val_score(Ridge(), X, VALUES), skl.cross_val_score(Ridge(), X, VALUES))


def test_random_splitters_are_drawn_once():
    """A refit after a look at the splits must not draw others."""
    y = np.r_[np.zeros(15), np.ones(14), 2].astype(int)
    ours_state, their_state = np.random.RandomState(0), np.random.RandomState(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = fl.cross_val_score(LSSVC(gamma=0.1), X, y, cv=skl.ShuffleSplit(3, random_state=ours_state))
        theirs = skl.cross_val_score(LSSVC(gamma=0.1), X, y, cv=skl.ShuffleSplit(3, random_state=their_state))
    assert_close(ours, theirs)


def test_metadata_routing_equals_scikit_learn():
    y = BINARY
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = LSSVC(gamma=0.1).set_fit_request(sample_weight=True)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        options = {
            "cv": skl.GroupKFold(3),
            "params": {"sample_weight": WEIGHT, "groups": GROUPS},
            "scoring": {
                "weighted": scorer,
                "plain": make_scorer(accuracy_score).set_score_request(sample_weight=False),
            },
        }
        compare_validate(estimator, X, y, "one fit", **options)
        only_fit = {**options, "scoring": options["scoring"]["plain"]}
        compare_validate(estimator, X, y, "one fit", **only_fit)
        ours = fl.cross_val_predict(estimator, X, y, cv=options["cv"], params=options["params"])
        theirs = skl.cross_val_predict(estimator, X, y, cv=options["cv"], params=options["params"])
        np.testing.assert_array_equal(ours, theirs)
        weighs = LSSVC(gamma=0.1).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        params = {"sample_weight": WEIGHT}
        expected = skl.cross_val_score(weighs, X, y, cv=10, params=params)
        assert_close(fl.cross_val_score(weighs, X, y, cv=10, params=params), expected)
        with pytest.raises(ValueError, match="groups"):
            fl.cross_val_predict(estimator, X, y, groups=GROUPS)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            fl.cross_val_predict(LSSVC(), X, y, params={"sample_weight": WEIGHT})


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_estimators_of_training_parts_learn_on(penalty):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(30, 3)), np.arange(30) % 2
    model = LSSVC(gamma=0.5, penalty=penalty)
    splits = list(skl.KFold(3).split(rows))
    found = fl.cross_validate(model, rows, labels, cv=splits, return_estimator=True)["estimator"][0]
    order = np.concatenate(splits[0])
    found.partial_fit(rows[splits[0][1]], labels[splits[0][1]])
    whole = clone(model).fit(rows[order], labels[order])
    assert_close(found.decision_function(rows), whole.decision_function(rows))
