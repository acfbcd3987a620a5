"""Permutation tests behind steps and of estimators without closed form."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer, OneHotEncoder, StandardScaler

from foldless import LSSVC, kernels
from foldless.model_selection import RefitWarning
from support.permutation import (
    BINARY,
    FOLDS,
    KFDA,
    LABELS,
    MISSING,
    OUTPUTS,
    PARTS,
    VALUES,
    WEIGHT,
    WORDS,
    X,
    check_scores,
    margin,
    plain_score,
    splits_drawn_by,
)

PIPELINES = {
    "scaler": (make_pipeline(StandardScaler(), LSSVC(gamma=0.1)), X, LABELS),
    "scaler, PCA": (make_pipeline(StandardScaler(), PCA(3), KFDA(gamma=0.1)), X, LABELS),
    "PCA, two classes": (make_pipeline(PCA(3), KFDA(gamma=0.1, threshold="centroid")), X, BINARY),
    "PCA, coef": (make_pipeline(PCA(3), KFDA(gamma=0.1, penalty="coef")), X, LABELS),
    "imputer": (make_pipeline(SimpleImputer(), RidgeClassifier()), MISSING, LABELS),
    "one hot": (make_pipeline(OneHotEncoder(handle_unknown="ignore"), LSSVC("linear")), WORDS, LABELS),
    "scaler, values": (make_pipeline(StandardScaler(), Ridge()), X, OUTPUTS),
    "imputer, values": (make_pipeline(SimpleImputer(), KernelRidge(kernel="rbf", gamma=0.1)), MISSING, VALUES),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_steps_that_do_not_see_y_equal_refits(name):
    pipeline, features, y = PIPELINES[name]
    result = check_scores(pipeline, features, y, kind="one P per fold")
    assert type(pipeline[0]).__name__ in result.path.reason


@pytest.mark.parametrize("cv", [PARTS[:3], splits_drawn_by(ShuffleSplit(3, test_size=0.4, random_state=0), LABELS)])
def test_odd_splits_behind_steps_equal_refits(cv):
    check_scores(
        make_pipeline(StandardScaler(), LSSVC(gamma=0.1)), X, LABELS, cv=cv, scoring=margin, kind="one P per fold"
    )


@pytest.mark.parametrize("last", [LSSVC(gamma=0.1), KFDA(gamma=0.1), RidgeClassifier()], ids=str)
def test_weights_behind_steps_equal_refits(last):
    pipeline = make_pipeline(StandardScaler(), last)
    name = f"{type(last).__name__.lower()}__sample_weight"
    oracle = {"weight": lambda order: WEIGHT, "name": name}
    check_scores(pipeline, X, LABELS, params={name: WEIGHT}, kind="one P per fold", oracle=oracle)


def test_weights_of_several_steps_equal_refits():
    pipeline = make_pipeline(StandardScaler(), LSSVC(gamma=0.1))
    params = {"standardscaler__sample_weight": WEIGHT + 0.1, "lssvc__sample_weight": WEIGHT}
    with pytest.warns(RefitWarning, match="standardscaler__sample_weight"):
        check_scores(pipeline, X, LABELS, scoring=margin, params=params, m=2, kind="refit", oracle=params)


def test_rows_that_are_neither_trained_on_nor_tested_are_not_looked_at():
    words = WORDS.copy()
    words[0, 1] = "never seen elsewhere"
    splits = [(np.setdiff1d(train, [0]), np.setdiff1d(test, [0])) for train, test in FOLDS]
    pipeline = make_pipeline(OneHotEncoder(), LSSVC("linear"))
    check_scores(pipeline, words, LABELS, cv=splits, m=2, kind="one P per fold")


def test_passthrough_steps_take_the_closed_form():
    pipeline = make_pipeline("passthrough", LSSVC(gamma=0.1))
    check_scores(pipeline, X, LABELS)
    check_scores(pipeline, X, LABELS, scoring=lambda model, X, y: model.score(X, y) + len(model.steps), m=2)
    params = {"params": {"lssvc__sample_weight": WEIGHT}}
    oracle = {"weight": lambda order: WEIGHT, "name": "lssvc__sample_weight"}
    check_scores(pipeline, X, LABELS, oracle=oracle, **params)


def test_loo_thresholds_and_scorers_of_the_estimator_behind_steps_are_refitted():
    """Of a threshold that leave-one-out scores choose, and of functions of the fitted pipeline."""
    for last, scoring in ((KFDA(gamma=0.1, threshold="loo"), None), (LSSVC(gamma=0.1), plain_score)):
        with pytest.warns(RefitWarning, match="behind fitted steps"):
            check_scores(make_pipeline(StandardScaler(), last), X, BINARY, scoring=scoring, m=2, kind="refit")


@pytest.mark.parametrize(
    ("estimator", "y", "reason"),
    [
        (LogisticRegression(), LABELS, "not a least-squares model"),
        (make_pipeline(SelectKBest(k=2), LSSVC(gamma=0.1)), LABELS, "may learn from y"),
        (make_pipeline(StandardScaler(), LogisticRegression()), LABELS, "not a least-squares model"),
        (Ridge(positive=True), VALUES, "positive=True"),
        (KernelRidge(kernel="sigmoid", gamma=0.01), VALUES, "not positive semi-definite"),
    ],
    ids=["LogisticRegression", "SelectKBest", "scaler, LogisticRegression", "positive", "sigmoid"],
)
def test_what_has_no_closed_form_is_refitted_and_says_so(estimator, y, reason):
    with pytest.warns(RefitWarning, match=f"is refitted for every permutation: .*{reason}") as caught:
        result = check_scores(estimator, X, y, m=2, kind="refit")
    assert len(caught) == 1
    assert reason in result.path.reason


def test_steps_that_see_kernels_equal_refits():
    K = kernels.resolve("rbf", X, gamma=0.1).gram(X)
    pipeline = make_pipeline(KernelCenterer(), LSSVC("precomputed"))
    with pytest.warns(RefitWarning, match="see kernels, not rows"):
        check_scores(pipeline, K, LABELS, m=2, kind="refit")


def test_weights_of_refitted_estimators():
    options = {"params": {"sample_weight": WEIGHT}, "oracle": {"weight": lambda order: WEIGHT}}
    with pytest.warns(RefitWarning, match="LogisticRegression"):
        check_scores(LogisticRegression(), X, LABELS, m=2, kind="refit", **options)
