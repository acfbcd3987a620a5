"""foldless.model_selection against sklearn.model_selection on the same estimator: the same numbers, from one fit."""

import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from cases import SPLITTERS, assert_close, odd_splits, splitters
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score, make_scorer, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.model_selection as fl
import foldless.readout.task
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.heldout.parts import TrainingParts
from foldless.model_selection import RefitWarning

N = 30
RNG = np.random.default_rng(0)
CODES = RNG.permutation(np.arange(N) % 3)
X = RNG.normal(size=(N, 5)) + 0.7 * CODES[:, None]
GROUPS = np.arange(N) % 6
WEIGHT = RNG.uniform(0.3, 3.0, N)
LABELS = np.array(["ant", "bee", "cat"])[CODES]
VALUES = X[:, 0] ** 2 + RNG.normal(size=N)
BINARY = np.array(["no", "yes"])[(CODES > 0).astype(int)]

CLASSIFIERS = {
    "LSSVC": LSSVC(gamma=0.1, alpha=0.3),
    "LSSVC coef": LSSVC(gamma=0.1, penalty="coef"),
    "LSSVC linear, no intercept": LSSVC("linear", fit_intercept=False),
    "KFDA": KernelFisherDiscriminant(gamma=0.1, alpha=0.3),
    "KFDA coef": KernelFisherDiscriminant(gamma=0.1, penalty="coef"),
    "KFDA linear, priors": KernelFisherDiscriminant("linear", priors=[0.2, 0.3, 0.5], n_components=1),
    "RidgeClassifier": RidgeClassifier(alpha=0.5),
}
# scikit-learn's cross_val_predict turns labels into integers on the way, so weights by label need integers
WEIGHTED_CLASSIFIERS = {
    "LSSVC class weights": LSSVC(gamma=0.1, class_weight={0: 3.0, 1: 0.5}),
    "KFDA class weights": KernelFisherDiscriminant(gamma=0.1, class_weight={0: 3.0, 1: 0.5}),
    "RidgeClassifier class weights": RidgeClassifier(class_weight={0: 3.0, 1: 1, 2: 1}, fit_intercept=False),
}
BINARY_CLASSIFIERS = {
    **{f"KFDA {t}": KernelFisherDiscriminant(gamma=0.1, threshold=t) for t in ("fisher", "pm1", "centroid", "loo")},
    "KFDA centroid, priors": KernelFisherDiscriminant(gamma=0.1, threshold="centroid", priors=[0.8, 0.2]),
    "KFDA coef loo": KernelFisherDiscriminant(gamma=0.1, threshold="loo", penalty="coef"),
    "KFDA no intercept": KernelFisherDiscriminant(gamma=0.1, threshold="centroid", fit_intercept=False),
    "LSSVC": LSSVC(gamma=0.1),
    "RidgeClassifier": RidgeClassifier(),
}
REGRESSORS = {
    "LSSVR": LSSVR(gamma=0.1, alpha=0.3),
    "LSSVR coef": LSSVR(gamma=0.1, penalty="coef"),
    "Ridge": Ridge(alpha=0.5),
    "Ridge no intercept": Ridge(alpha=0.5, fit_intercept=False),
    "KernelRidge": KernelRidge(kernel="rbf", gamma=0.1),
    "KernelRidge poly": KernelRidge(kernel="poly", degree=2, gamma=0.1),
    "KernelRidge linear": KernelRidge(kernel="linear"),
    "KernelRidge callable": KernelRidge(kernel=lambda a, b: np.exp(-0.1 * np.sum((a - b) ** 2))),
}
ALL = (
    [pytest.param(e, LABELS, id=f"{k}-3 classes") for k, e in CLASSIFIERS.items()]
    + [pytest.param(e, CODES, id=f"{k}-3 classes") for k, e in WEIGHTED_CLASSIFIERS.items()]
    + [pytest.param(e, BINARY, id=f"{k}-2 classes") for k, e in BINARY_CLASSIFIERS.items()]
    + [pytest.param(e, VALUES, id=k) for k, e in REGRESSORS.items()]
)
everyone = pytest.mark.parametrize(("estimator", "y"), ALL)
every_splitter = pytest.mark.parametrize("splitter", SPLITTERS)


@pytest.fixture(params=["part", "solve"])
def way(request, monkeypatch):
    """Both ways to the model of a training part, whichever would be cheaper."""
    monkeypatch.setattr(foldless.readout.task, "TrainingParts", functools.partial(TrainingParts, way=request.param))
    return request.param


def weights_for(estimator, weighted):
    if not weighted:
        return None
    prefix = "" if not hasattr(estimator, "steps") else estimator.steps[-1][0] + "__"
    return {f"{prefix}sample_weight": WEIGHT}


def scores(estimator, y):
    return ["accuracy", "f1_macro"] if y.dtype.kind in "iUO" else ["r2", "neg_mean_absolute_error"]


def compare_validate(estimator, X, y, expected_kind, ours_y=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # R2 of a single row is undefined for both
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        warnings.simplefilter("ignore", sklearn.exceptions.UndefinedMetricWarning)
        theirs = skl.cross_validate(estimator, X, y, return_train_score=True, return_indices=True, **options)
        ours = fl.cross_validate(estimator, X, y, return_train_score=True, return_indices=True, **options)
    path = ours.pop("path")
    if expected_kind == "one fit" and "few large folds" in path.reason:
        expected_kind = "one P per fold"
    assert path.kind == expected_kind, path
    assert set(ours) == set(theirs)
    for key in theirs:
        if key.startswith(("test", "train")):
            np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-8, atol=1e-10, err_msg=key)
    for part in ("train", "test"):
        for a, b in zip(ours["indices"][part], theirs["indices"][part], strict=True):
            np.testing.assert_array_equal(a, b)
    return path


def methods(estimator):
    return [m for m in ("predict", "decision_function", "predict_proba", "predict_log_proba") if hasattr(estimator, m)]


def compare_predict(estimator, X, y, **options):
    if not isinstance(options.get("cv"), skl.GroupKFold | skl.LeaveOneGroupOut):
        options.pop("groups", None)
    for method in methods(estimator):
        theirs = skl.cross_val_predict(estimator, X, y, method=method, **options)
        ours = fl.cross_val_predict(estimator, X, y, method=method, **options)
        assert ours.dtype == theirs.dtype
        if ours.dtype.kind == "f":
            finite = np.isfinite(theirs)  # log-probabilities may be -inf
            np.testing.assert_array_equal(np.isfinite(ours), finite)
            assert_close(ours[finite], theirs[finite])
        else:
            np.testing.assert_array_equal(ours, theirs)


PARTITIONS = ("KFold", "StratifiedKFold", "GroupKFold", "LeaveOneOut", "LeaveOneGroupOut")


@everyone
@every_splitter
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_equal_to_refits_for_every_splitter(estimator, y, splitter, weighted, monkeypatch):
    if weighted:  # small problems would mostly be solved alone: here every part comes from the P of all rows
        monkeypatch.setattr(foldless.readout.task, "TrainingParts", functools.partial(TrainingParts, way="part"))
    cv = splitters(N, CODES)[splitter]
    params = weights_for(estimator, weighted)
    kind = "one fit"
    if splitter == "RepeatedStratifiedKFold" and y.dtype.kind == "f":
        pytest.skip("stratified by labels, and these are values")
    if splitter == "StratifiedKFold" and y.dtype.kind == "f":
        pytest.skip("stratified by labels, and these are values")
    rows = np.arange(12 if splitter == "LeavePOut(2)" else N)  # 435 refits are no better evidence than 66
    if weighted:
        params = {"sample_weight": WEIGHT[rows]}
    compare_validate(
        estimator, X[rows], y[rows], kind, cv=cv, groups=GROUPS[rows], params=params, scoring=scores(estimator, y)
    )
    if splitter in PARTITIONS:
        compare_predict(estimator, X, y, cv=cv, groups=GROUPS, params=params)


@everyone
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_equal_to_refits_for_splits_nobody_would_draw(estimator, y, weighted, way):
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


@everyone
@pytest.mark.parametrize("splitter", ["KFold", "ShuffleSplit with a gap", "TimeSeriesSplit"])
def test_behind_a_scaler_steps_are_fitted_on_each_training_part(estimator, y, splitter):
    pipeline = make_pipeline(StandardScaler(), PCA(3), clone(estimator))
    cv = splitters(N, CODES)[splitter]
    params = weights_for(pipeline, True)
    path = compare_validate(pipeline, X, y, "one P per fold", cv=cv, params=params, scoring=scores(estimator, y))
    assert "StandardScaler, PCA fitted on each training part" in str(path)
    if splitter in PARTITIONS:
        compare_predict(pipeline, X, y, cv=cv, params=params)


@everyone
@pytest.mark.parametrize("container", ["csr", "csc", "pandas", "polars", "float32", "list"])
def test_containers_give_the_same_numbers(estimator, y, container, monkeypatch):
    monkeypatch.setattr(foldless.readout.task, "TrainingParts", functools.partial(TrainingParts, way="part"))
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
    theirs = skl.cross_val_predict(estimator, data, y, cv=cv)
    ours = fl.cross_val_predict(estimator, data, y, cv=cv)
    assert fl.explain(estimator, data, y, cv=cv).kind != "refit"
    if ours.dtype.kind == "f":
        assert_close(ours, theirs, rtol=1e-3 if container == "float32" else None)
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "estimator",
    [
        LSSVC("precomputed"),
        LSSVC("precomputed", penalty="coef"),
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


@pytest.mark.parametrize("estimator", list(REGRESSORS.values())[:5], ids=list(REGRESSORS)[:5])
@pytest.mark.parametrize("columns", [1, 2])
def test_several_outputs(estimator, columns, way):
    Y = np.column_stack([VALUES, X[:, 1]])[:, :columns]
    for cv in (skl.LeaveOneOut(), skl.KFold(5)):
        assert_close(fl.cross_val_predict(estimator, X, Y, cv=cv), skl.cross_val_predict(estimator, X, Y, cv=cv))


@everyone
def test_rows_of_weight_zero_are_predicted_and_never_trained_on(estimator, y):
    w = WEIGHT.copy()
    w[[0, 7, 8]] = 0.0
    cv = skl.KFold(5, shuffle=True, random_state=1)
    for each in (cv, skl.LeaveOneOut()):
        compare_predict(estimator, X, y, cv=each, params={"sample_weight": w})


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_probabilities_inside_cross_validation_use_each_training_part_alone(calibration, y, kind, penalty, weighted):
    estimator = kind(gamma=0.1, calibration=calibration, penalty=penalty)
    params = weights_for(estimator, weighted)
    for splitter in ("KFold", "LeaveOneOut", "LeaveOneGroupOut"):
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


def test_scorers_of_every_kind():
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


@everyone
def test_returned_estimators_are_those_of_the_training_parts(estimator, y, way):
    cv = skl.ShuffleSplit(3, test_size=0.25, random_state=0)  # training parts in no order
    ours = fl.cross_validate(estimator, X, y, cv=cv, return_estimator=True, params={"sample_weight": WEIGHT})
    theirs = skl.cross_validate(estimator, X, y, cv=cv, return_estimator=True, params={"sample_weight": WEIGHT})
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
def test_precomputed_columns_are_in_the_order_of_the_split(estimator, way):
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


def test_returned_estimators_with_all_basis_functions_keep_their_rows():
    estimator = LSSVR(gamma=0.1, penalty="coef", basis="all")
    cv = skl.KFold(4)
    result = fl.cross_validate(estimator, X, VALUES, cv=cv, return_estimator=True)
    held_out = fl.cross_val_predict(estimator, X, VALUES, cv=cv)
    for fitted, (_, test) in zip(result["estimator"], cv.split(X), strict=True):
        assert_close(fitted.predict(X[test]), held_out[test])
        assert_close(fitted.loo_predict()[test], held_out[test])  # rows of weight 0 there


def test_foreign_estimators_are_refitted_with_one_warning_that_says_why():
    estimator = LogisticRegression()
    with pytest.warns(RefitWarning, match=r"LogisticRegression is refitted .*: .*not a least-squares") as caught:
        ours = fl.cross_validate(estimator, X, CODES, cv=3)
    assert len(caught) == 1
    assert ours["path"].kind == "refit"
    np.testing.assert_array_equal(ours["test_score"], skl.cross_val_score(estimator, X, CODES, cv=3))
    with pytest.warns(RefitWarning, match="is refitted"):
        np.testing.assert_array_equal(
            fl.cross_val_predict(estimator, X, CODES, cv=3), skl.cross_val_predict(estimator, X, CODES, cv=3)
        )


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (Ridge(positive=True, solver="lbfgs"), "positive=True"),
        (Ridge(alpha=0.0, solver="svd"), "alpha=0.0 is not positive"),
        (KernelRidge(alpha=0, kernel="laplacian"), "alpha=0 is not positive"),
        (KernelRidge(kernel="sigmoid", gamma=0.5, alpha=0.1), "not positive semi-definite"),
        (RidgeClassifier(class_weight="balanced"), "computed anew on each training part"),
        (make_pipeline(SelectKBest(k=2), LSSVC()), r"step 'selectkbest' \(SelectKBest\) may learn from y"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "ends in LogisticRegression"),
        (skl.GridSearchCV(LSSVC(), {"alpha": [1.0]}), "GridSearchCV is not"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Singular matrix in solving dual problem")  # scikit-learn's, of such a kernel
def test_what_has_no_closed_form_is_refitted(estimator, reason):
    y = VALUES if sklearn.base.is_regressor(estimator) else CODES
    with pytest.warns(RefitWarning, match=reason):
        ours = fl.cross_val_score(estimator, X, y, cv=3)
    np.testing.assert_array_equal(ours, skl.cross_val_score(estimator, X, y, cv=3))


def test_one_alpha_per_target_is_refitted():
    Y = np.column_stack([VALUES, X[:, 0]])
    estimator = Ridge(alpha=np.array([0.1, 10.0]))
    with pytest.warns(RefitWarning, match="one number per target"):
        ours = fl.cross_val_predict(estimator, X, Y, cv=3)
    assert_close(ours, skl.cross_val_predict(estimator, X, Y, cv=3))


def test_subclasses_are_refitted_because_they_may_differ():
    class Mine(LSSVC):
        pass

    assert fl.explain(Mine(), X, LABELS).kind == "refit"


def test_a_pipeline_without_fitted_steps_is_one_fit():
    pipeline = make_pipeline("passthrough", LSSVC(gamma=0.1))
    params = {"lssvc__sample_weight": WEIGHT}
    path = compare_validate(pipeline, X, LABELS, "one fit", cv=10, params=params)
    assert "LSSVC" in str(path)
    for one in fl.cross_validate(pipeline, X, LABELS, cv=10, params=params, return_estimator=True)["estimator"]:
        assert type(one) is type(pipeline)
        assert one.predict(X).shape == (N,)


@pytest.mark.parametrize("cv", [skl.KFold(3), skl.LeaveOneOut()], ids=str)
def test_a_fold_that_empties_a_class_is_refitted(cv):
    y = np.array([0] * 14 + [1] * 15 + [2])
    with pytest.warns() as caught:
        ours = fl.cross_val_predict(LSSVC(gamma=0.1), X, y, cv=cv)
    assert any(issubclass(w.category, RefitWarning) and "class" in str(w.message) for w in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(ours, skl.cross_val_predict(LSSVC(gamma=0.1), X, y, cv=cv))


def test_a_training_part_with_repeated_rows_is_refitted():
    splits = [(np.r_[np.arange(20), 3, 4], np.arange(20, 30))]
    with pytest.warns(RefitWarning, match="repeats rows"):
        ours = fl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, cv=splits)
    assert_close(ours, skl.cross_val_score(LSSVR(gamma=0.1), X, VALUES, cv=splits))


def test_two_large_folds_are_solved_alone_and_the_path_says_so():
    path = compare_validate(LSSVR(gamma=0.1), X, VALUES, "one P per fold", cv=skl.KFold(2), scoring="r2")
    assert "solving each training part alone" in str(path)


def test_gamma_scale_and_balanced_weights_are_resolved_once_on_all_rows():
    estimator = LSSVC(class_weight="balanced")
    y = np.minimum(CODES, 1)
    ours = fl.cross_val_predict(estimator, X, y, cv=4, method="decision_function")
    fitted = clone(estimator).fit(X, y)
    resolved = LSSVC(gamma=fitted.kernel_.gamma, class_weight=dict(enumerate(N / (2 * np.bincount(y)))))
    assert_close(ours, skl.cross_val_predict(resolved, X, y, cv=4, method="decision_function"))


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


def test_metadata_routing():
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


def test_explain_fits_nothing_and_names_the_holder():
    assert "low rank, 5 features" in str(fl.explain(Ridge(), X, VALUES, cv=10))
    assert "one Cholesky factor of 30 rows" in str(fl.explain(LSSVR(), X, VALUES, cv=skl.LeaveOneOut()))
    assert fl.explain(LSSVC(), X).reason == "there is no y"


def brute_pairs(estimator, X, y, score):
    """Refit without every pair; share of pairs ranked correctly."""
    wins = []
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] > y[j]:
                rest = np.setdiff1d(np.arange(len(y)), [i, j])
                fitted = clone(estimator).fit(X[rest], y[rest])
                wins.append(np.sign(score(fitted, X[[i]]) - score(fitted, X[[j]])).item() / 2 + 0.5)
    return np.mean(wins)


@pytest.mark.parametrize(
    "estimator",
    [*BINARY_CLASSIFIERS.values(), LSSVC(gamma=0.1, penalty="coef"), LSSVR(gamma=0.1), KernelRidge(kernel="rbf")],
    ids=repr,
)
def test_leave_pair_out_equals_refits(estimator):
    rows = np.arange(16)
    y = (CODES[rows] > 0).astype(int) if sklearn.base.is_classifier(estimator) else VALUES[rows]
    score = "decision_function" if sklearn.base.is_classifier(estimator) else "predict"
    expected = brute_pairs(estimator, X[rows], y, lambda e, x: getattr(e, score)(x))
    assert fl.leave_pair_out_auc(estimator, X[rows], y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "estimator", [LSSVC(gamma=0.3), KernelFisherDiscriminant(gamma=0.3), RidgeClassifier()], ids=repr
)
def test_equal_rows_of_different_classes_are_ties(estimator):
    """Titanic-like tables: few distinct rows, many of them in both classes."""
    rows = np.random.default_rng(0).integers(0, 2, size=(18, 2)).astype(float)
    y = np.arange(18) % 2
    expected = brute_pairs(estimator, rows, y, lambda e, x: np.round(e.decision_function(x), 10))
    assert fl.leave_pair_out_auc(estimator, rows, y) == pytest.approx(expected, abs=1e-12)
    assert fl.leave_pair_out_auc(estimator, np.zeros((18, 2)), y) == 0.5


def test_leave_pair_out_of_three_classes_averages_one_against_the_others():
    rows, estimator = np.arange(15), KernelFisherDiscriminant(gamma=0.1)
    y = np.arange(15) % 3
    expected = []
    for k in range(3):
        wins = []
        for i in np.flatnonzero(y == k):
            for j in np.flatnonzero(y != k):
                rest = np.setdiff1d(rows, [i, j])
                d = clone(estimator).fit(X[rest], y[rest]).decision_function(X[[i, j]])[:, k]
                wins.append(np.sign(d[0] - d[1]) / 2 + 0.5)
        expected.append(np.mean(wins))
    assert fl.leave_pair_out_auc(estimator, X[rows], y) == pytest.approx(np.mean(expected), abs=1e-12)


def test_three_aucs_are_three_numbers():
    """Pooled over held-out scores, averaged over folds, leave-pair-out."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 80)
    X, estimator = rng.normal(size=(80, 3)) + 0.5 * y[:, None], LSSVC(gamma=0.1)
    cv = skl.StratifiedKFold(5, shuffle=True, random_state=0)
    pooled = roc_auc_score(y, fl.cross_val_predict(estimator, X, y, cv=cv, method="decision_function"))
    mean = fl.cross_val_score(estimator, X, y, cv=cv, scoring="roc_auc").mean()
    pairs = fl.leave_pair_out_auc(estimator, X, y)
    assert len({round(value, 6) for value in (pooled, mean, pairs)}) == 3
    assert pairs == pytest.approx(mean, abs=0.1)


# -- labels of refits --------------------------------------------------------------------------------------------------

ONE_TWO, AB = np.where(CODES > 0, 2, 1), np.where(CODES > 0, "b", "a")
TWICE = [(np.r_[train, train[0]], test) for train, test in skl.StratifiedKFold(3).split(X, ONE_TWO)]
KFDA = KernelFisherDiscriminant
SCALED = [make_pipeline(StandardScaler(), last) for last in (LSSVC("linear"), RidgeClassifier())]


def refitted(estimator, y, splits, method, params=None, n_columns=None):
    """What scikit-learn's function is to return: each training part fitted on the labels themselves."""
    out = np.empty(len(y) if n_columns is None else (len(y), n_columns))
    for train, test in splits:
        own = {name: value[train] for name, value in (params or {}).items()}
        out[test] = getattr(clone(estimator).fit(X[train], y[train], **own), method)(X[test])
    return out


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize("y", [ONE_TWO, AB], ids=["numbers", "strings"])
@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), KFDA(gamma=0.1), RidgeClassifier(), *SCALED], ids=str)
def test_refits_weigh_the_classes_that_are_named(estimator, y):
    """scikit-learn numbers the labels for decisions; weights name the labels themselves."""
    weighted, first = clone(estimator), np.unique(y)[0]
    last = weighted[-1] if hasattr(weighted, "steps") else weighted
    last.set_params(class_weight={first: 10.0})
    for splits in (TWICE, list(skl.StratifiedKFold(3).split(X, y))):
        ours = fl.cross_val_predict(weighted, X, y, cv=splits, method="decision_function")
        assert_close(ours, refitted(weighted, y, splits, "decision_function"))
        params = weights_for(estimator, True)
        ours = fl.cross_val_predict(weighted, X, y, cv=splits, method="decision_function", params=params)
        assert_close(ours, refitted(weighted, y, splits, "decision_function", params))


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_refits_for_probabilities_weigh_the_classes_that_are_named(method):
    for last in (LSSVC(gamma=0.1, calibration="sigmoid"), LogisticRegression()):
        estimator = last.set_params(class_weight={"a": 10.0})
        ours = fl.cross_val_predict(estimator, X, AB, cv=TWICE, method=method)
        assert_close(ours, refitted(estimator, AB, TWICE, method, n_columns=2))


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_columns_of_refits_that_lack_a_class_stay_in_order():
    splits = [(np.flatnonzero(CODES != 1), np.flatnonzero(CODES == 1))]
    splits.append(splits[0][::-1])
    model = LogisticRegression(class_weight={"ant": 10.0, "cat": 1.0}).fit(X[splits[0][0]], LABELS[splits[0][0]])
    expected = model.predict_proba(X[splits[0][1]])
    splits[1] = (np.arange(N), splits[1][1])
    with pytest.warns(RuntimeWarning, match="Number of classes in training fold"):
        ours = fl.cross_val_predict(model, X, LABELS, cv=splits, method="predict_proba")
    assert_close(ours[CODES == 1], np.insert(expected, 1, 0.0, axis=1))


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_routed_weights_reach_refits_on_the_labels_themselves():
    with sklearn.config_context(enable_metadata_routing=True):
        last = LSSVC(gamma=0.1, class_weight={"a": 10.0}).set_fit_request(sample_weight=True)
        params = {"sample_weight": WEIGHT}
        for estimator in (last, make_pipeline(StandardScaler().set_fit_request(sample_weight=False), last)):
            ours = fl.cross_val_predict(estimator, X, AB, cv=TWICE, method="decision_function", params=params)
            assert_close(ours, refitted(estimator, AB, TWICE, "decision_function", params))


# -- precomputed kernels, dtypes, weights ------------------------------------------------------------------------------

K = np.exp(-0.1 * np.square(X[:, None] - X).sum(2))
PRECOMPUTED = [
    (LSSVR("precomputed"), VALUES),
    (LSSVC("precomputed"), CODES),
    (KFDA("precomputed"), CODES),
    (KernelRidge(kernel="precomputed"), VALUES),
]
NAMED = pd.DataFrame(K, columns=[f"row {number}" for number in range(N)])
LAYOUTS = {"list": K.tolist(), "DataFrame": pd.DataFrame(K), "DataFrame with names": NAMED, "sparse": sp.csr_array(K)}


def mean_prediction(model, X, y):
    return float(np.mean(model.predict(X)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("estimator", "y"), PRECOMPUTED, ids=lambda case: type(case).__name__)
def test_precomputed_kernels_of_any_layout_reach_scorers_and_estimators(estimator, y, layout):
    options = {"cv": skl.KFold(3), "scoring": mean_prediction, "error_score": "raise"}
    if layout == "sparse" and isinstance(estimator, KernelRidge):
        pytest.skip("scikit-learn's KernelRidge solves dense kernels only")
    ours = fl.cross_validate(estimator, LAYOUTS[layout], y, return_estimator=True, **options)
    theirs = skl.cross_validate(estimator, K, y, return_estimator=True, **options)
    assert_close(ours["test_score"], theirs["test_score"])
    train, test = next(options["cv"].split(K))
    part = NAMED.iloc[test, train] if layout == "DataFrame with names" else K[test][:, train]
    expected = theirs["estimator"][0].predict(K[test][:, train])
    np.testing.assert_allclose(ours["estimator"][0].predict(part), expected, rtol=1e-8)


@pytest.mark.parametrize("function", [fl.cross_val_score, fl.cross_val_predict, fl.explain])
@pytest.mark.parametrize("shape", [(N, N - 5), (N, 2 * N)])
def test_a_precomputed_kernel_that_is_not_square_is_refused(function, shape):
    for estimator, y in PRECOMPUTED:
        with pytest.raises(ValueError, match=r"must be a square matrix: X has shape \(30,"):
            function(estimator, np.resize(K, shape), y, cv=3)


def test_kernel_ridge_solves_a_kernel_that_is_not_symmetric_as_it_is():
    """scikit-learn does so, and P cannot: refits, with the reason."""
    lopsided, estimator = K.copy(), KernelRidge(kernel="precomputed")
    lopsided[0, 1] += 0.5
    path = fl.explain(estimator, lopsided, VALUES, cv=3)
    assert path.kind == "refit"
    assert "the precomputed kernel is not symmetric" in path.reason
    with pytest.warns(RefitWarning, match="is not symmetric"):
        ours = fl.cross_val_predict(estimator, lopsided, VALUES, cv=3)
    np.testing.assert_array_equal(ours, skl.cross_val_predict(estimator, lopsided, VALUES, cv=3))


@pytest.mark.parametrize("estimator", [Ridge(), RidgeClassifier(), KernelRidge(), KernelRidge(kernel="rbf")], ids=str)
def test_predictions_have_scikit_learns_dtype(estimator):
    labelled = isinstance(estimator, RidgeClassifier)
    method = "decision_function" if labelled else "predict"
    for x_dtype in (np.float32, np.float64, int):
        for y_dtype in (np.float32, np.float64, np.int8, int, bool):
            data, y = X.astype(x_dtype), (CODES > 0 if labelled else 10 * VALUES).astype(y_dtype)
            ours = fl.cross_val_predict(estimator, data, y, cv=3, method=method)
            theirs = skl.cross_val_predict(estimator, data, y, cv=3, method=method)
            assert ours.dtype == theirs.dtype, (x_dtype, y_dtype)
            np.testing.assert_allclose(ours, theirs, atol=1e-3)


EVERYONE = [(LSSVR(), VALUES), (LSSVC(), CODES), (KFDA(), CODES), (KernelRidge(), VALUES), (Ridge(), VALUES)]


@pytest.mark.parametrize(("estimator", "y"), [*EVERYONE, (RidgeClassifier(), CODES)], ids=str)
def test_weights_that_lose_their_digits_are_refused(estimator, y):
    """One such weight is as good as none."""
    estimator = estimator.set_params(gamma=0.1) if hasattr(estimator, "gamma") else estimator
    with pytest.raises(ValueError, match="sample_weight: its largest value is 1e-320, and float64 loses digits"):
        fl.cross_val_predict(estimator, X, y, cv=3, params={"sample_weight": np.full(N, 1e-320)})
    tiny, none = np.r_[1e-320, np.ones(N - 1)], np.r_[0.0, np.ones(N - 1)]
    ours, expected = (
        fl.cross_val_predict(estimator, X, y, cv=3, params={"sample_weight": weight}) for weight in (tiny, none)
    )
    assert_close(ours, expected)


def test_features_that_are_strings_are_refused_as_by_scikit_learn():
    for estimator in (Ridge(), KernelRidge(), RidgeClassifier()):
        for strings in (X.astype(str), X.astype(str).tolist()):
            with pytest.raises(ValueError, match="X holds strings"):
                fl.cross_val_predict(estimator, strings, CODES, cv=3)
