"""FoldlessSearchCV chooses as scikit-learn's own searches do."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV

from foldless import LSSVC, FoldlessSearchCV
from support.refits import with_fixed_functions
from support.searches import ALPHAS, BINARY, KFDA, LABELS, SPLITTERS, VALUES, WEIGHT, N, X, losses_of
from support.tolerances import assert_close

weighted_or_not = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("wide", [False, True], ids=["tall", "wide"])
@weighted_or_not
def test_ridge_cv_chooses_the_same_alpha(fit_intercept, wide, weighted):
    """RidgeCV weighs its leave-one-out errors as it weighs its fits."""
    data = np.hstack([X, np.random.default_rng(1).normal(size=(N, 40))]) if wide else X
    w, alphas = WEIGHT if weighted else None, np.logspace(-3, 4, 29)
    for y in (VALUES, np.column_stack([VALUES, X[:, 2]])):
        theirs = RidgeCV(alphas, fit_intercept=fit_intercept).fit(data, y, sample_weight=w)
        ours = FoldlessSearchCV(
            Ridge(fit_intercept=fit_intercept), {"alpha": alphas}, criterion_weight="sample_weight"
        ).fit(data, y, sample_weight=w)
        assert ours.alpha_ == theirs.alpha_
        assert_close(ours.coef_, theirs.coef_)
        assert_close(ours.intercept_, theirs.intercept_)
        assert_close(ours.predict(data), theirs.predict(data))
        if not weighted:
            assert ours.best_criterion_ / np.size(y[0]) == pytest.approx(-theirs.best_score_, rel=1e-6)


@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_classifier_cv_chooses_the_same_alpha(y, fit_intercept):
    alphas = np.logspace(-3, 4, 29)
    theirs = RidgeClassifierCV(alphas, fit_intercept=fit_intercept).fit(X, y)
    ours = FoldlessSearchCV(RidgeClassifier(fit_intercept=fit_intercept), {"alpha": alphas}).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    assert_close(ours.decision_function(X), theirs.decision_function(X))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    columns = 1 if y is BINARY else 3
    assert ours.best_criterion_ / columns == pytest.approx(-theirs.best_score_, rel=1e-6)


@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
def test_choice_by_accuracy_equals_an_explicit_loop(y):
    """Whatever scikit-learn's own searches score, a loop over refits is beyond doubt."""
    alphas = np.logspace(-1, 2, 4)
    criterion = "error" if y is BINARY else "multiclass_error"
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": alphas}, criterion=criterion).fit(X, y)
    accuracies = [
        skl.cross_val_score(RidgeClassifier(alpha=alpha), X, y, cv=skl.LeaveOneOut()).mean() for alpha in alphas
    ]
    assert_close(1 - losses_of(search), np.array(accuracies))
    ties = alphas[np.isclose(accuracies, max(accuracies))]
    assert search.alpha_ == ties.max()


@pytest.mark.many_cases
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (LSSVC(gamma=0.3), BINARY),
        (LSSVC(gamma=0.3), LABELS),
        (LSSVC(gamma=0.3, penalty="coef"), LABELS),
        (RidgeClassifier(), LABELS),
        (KFDA(gamma=0.3), LABELS),
        (KFDA(gamma=0.3, fit_intercept=False), LABELS),
        (KFDA(gamma=0.3, priors=[0.6, 0.2, 0.2]), LABELS),
        *[(KFDA(gamma=0.3, threshold=t), BINARY) for t in ("pm1", "fisher", "centroid")],
    ],
    ids=lambda value: f"{len(np.unique(value))} classes" if isinstance(value, np.ndarray) else str(value),
)
@pytest.mark.parametrize(("splitter", "weighted"), [("leave-one-out", True), ("KFold", False), ("KFold", True)])
def test_multiclass_error_is_that_of_the_classifiers_decisions(estimator, y, splitter, weighted):
    w, cv = WEIGHT if weighted else None, SPLITTERS[splitter]
    options = {"cv": cv, "criterion": "multiclass_error"}
    search = FoldlessSearchCV(estimator, {"alpha": ALPHAS[:2]}, **options).fit(X, y, sample_weight=w)
    for alpha, found in zip(ALPHAS[:2], losses_of(search), strict=True):
        single = with_fixed_functions(clone(estimator).set_params(alpha=alpha), X, w)
        params = {"sample_weight": w} if weighted else None
        expected = skl.cross_val_predict(single, X, y, cv=cv or skl.LeaveOneOut(), params=params)
        assert found == pytest.approx(np.average(expected != y, weights=w))
    if cv is None and hasattr(search.best_estimator_, "loo_score_"):
        assert search.best_score_ == pytest.approx(search.best_estimator_.loo_score_)


@pytest.mark.parametrize("weight", ["balanced", "sample_weight"])
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
def test_multiclass_error_with_weights_of_rows(weight, y):
    """Balanced: every class the same, as in balanced_accuracy_score."""
    options = {"criterion": "multiclass_error", "criterion_weight": weight}
    search = FoldlessSearchCV(LSSVC(gamma=0.3), {"alpha": ALPHAS}, **options).fit(X, y, sample_weight=WEIGHT)
    for alpha, found in zip(ALPHAS, losses_of(search), strict=True):
        decided = LSSVC(gamma=0.3, alpha=alpha).fit(X, y, sample_weight=WEIGHT).loo_predict()
        expected = {
            "balanced": 1 - metrics.balanced_accuracy_score(y, decided),
            "sample_weight": metrics.zero_one_loss(y, decided, sample_weight=WEIGHT),
        }[weight]
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("given", ["estimator", "grid"])
def test_multiclass_error_with_loo_threshold_is_refused(given):
    grid = {"alpha": ALPHAS, **({"threshold": ["pm1", "loo"]} if given == "grid" else {})}
    estimator = KFDA(gamma=0.3, threshold="loo" if given == "estimator" else "pm1")
    with pytest.raises(ValueError, match=r"criterion='multiclass_error' .*cut.*threshold='loo'.*use criterion='error'"):
        FoldlessSearchCV(estimator, grid, criterion="multiclass_error").fit(X, BINARY)
