"""Data and estimators of the tests of cross-validation, and the comparison with scikit-learn."""

import functools
import warnings

import numpy as np
import pytest
import sklearn
from sklearn import model_selection as skl
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier

import foldless._engine.readout.task as tasks
import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from support.cases import SPLITTERS, splitters
from support.parts import TrainingParts
from support.refits import with_fixed_functions
from support.tolerances import assert_close

N = 30
RNG = np.random.default_rng(0)
CODES = RNG.permutation(np.arange(N) % 3)
X = RNG.normal(size=(N, 5)) + 0.7 * CODES[:, None]

WEIGHT = RNG.uniform(0.3, 3.0, N)
LABELS = np.array(["ant", "bee", "cat"])[CODES]
VALUES = X[:, 0] ** 2 + RNG.normal(size=N)

BINARY_CLASSIFIERS = {
    **{f"KFDA {t}": KernelFisherDiscriminant(gamma=0.1, threshold=t) for t in ("fisher", "pm1", "centroid", "loo")},
    "KFDA centroid, priors": KernelFisherDiscriminant(gamma=0.1, threshold="centroid", priors=[0.8, 0.2]),
    "KFDA coef loo": KernelFisherDiscriminant(gamma=0.1, threshold="loo", penalty="coef"),
    "KFDA no intercept": KernelFisherDiscriminant(gamma=0.1, threshold="centroid", fit_intercept=False),
    "LSSVC": LSSVC(gamma=0.1),
    "RidgeClassifier": RidgeClassifier(),
}


def weights_for(estimator, weighted):
    if not weighted:
        return None
    prefix = "" if not hasattr(estimator, "steps") else estimator.steps[-1][0] + "__"
    return {f"{prefix}sample_weight": WEIGHT}


def weights_among(options):
    """The weights of the rows that a call of cross_validate or cross_val_predict has, if any."""
    return (options.get("params") or {}).get("sample_weight")


def compare_validate(estimator, X, y, expected_kind, ours_y=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # R2 of a single row is undefined for both
        warnings.filterwarnings("ignore", "The groups parameter is ignored")
        warnings.simplefilter("ignore", sklearn.exceptions.UndefinedMetricWarning)
        refitted = with_fixed_functions(estimator, X, weights_among(options))
        theirs = skl.cross_validate(refitted, X, y, return_train_score=True, return_indices=True, **options)
        ours = fl.cross_validate(estimator, X, y, return_train_score=True, return_indices=True, **options)
    path = ours.path
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


KFDA = KernelFisherDiscriminant


GROUPS = np.arange(N) % 6


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


def scores(estimator, y):
    return ["accuracy", "f1_macro"] if y.dtype.kind in "iUO" else ["r2", "neg_mean_absolute_error"]


def methods(estimator):
    return [m for m in ("predict", "decision_function", "predict_proba", "predict_log_proba") if hasattr(estimator, m)]


def compare_predict(estimator, X, y, **options):
    if not isinstance(options.get("cv"), skl.GroupKFold | skl.LeaveOneGroupOut):
        options.pop("groups", None)
    refitted = with_fixed_functions(estimator, X, weights_among(options))
    for method in methods(estimator):
        theirs = skl.cross_val_predict(refitted, X, y, method=method, **options)
        ours = fl.cross_val_predict(estimator, X, y, method=method, **options)
        assert ours.dtype == theirs.dtype
        if ours.dtype.kind == "f":
            finite = np.isfinite(theirs)  # log-probabilities may be -inf
            np.testing.assert_array_equal(np.isfinite(ours), finite)
            assert_close(ours[finite], theirs[finite])
        else:
            np.testing.assert_array_equal(ours, theirs)


PARTITIONS = ("KFold", "StratifiedKFold", "GroupKFold", "LeaveOneOut", "LeaveOneGroupOut")


MANY_REFITS = [
    pytest.param(weighted, splitter, id=f"{'weighted' * weighted}-{splitter}")
    for weighted, splitter in ((False, "LeavePOut(2)"), (True, "LeavePOut(2)"), (True, "LeaveOneOut"))
]
FEW_REFITS = [
    pytest.param(weighted, splitter, id=f"{'weighted' * weighted}-{splitter}")
    for weighted in (False, True)
    for splitter in SPLITTERS
    if [weighted, splitter] not in [list(each.values) for each in MANY_REFITS]
]


def compare_splitter(estimator, y, splitter, weighted, monkeypatch):
    """cross_validate and, of partitions, cross_val_predict by one splitter against scikit-learn."""
    if weighted:  # small problems would mostly be solved alone: here every part comes from the P of all rows
        monkeypatch.setattr(tasks, "TrainingParts", functools.partial(TrainingParts, strategy="part"))
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
