"""Decisions that are tiny, next to constant or of weak axes keep their digits."""

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.heldout.solution import Solution
from foldless._engine.permutation.labelings import Labelings, Solver, truth_of
from foldless._engine.readout.discriminant import Discriminant
from foldless.model_selection import cross_val_predict, cross_val_score, leave_pair_out_auc, permutation_test_score
from support.refits import held_out_rows, leave_one_out, refit, weak_discriminant

pytestmark = pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")

# -- fits that are tiny, or next to constant -------------------------------------------------------------------------


def apart(n=60):
    rng, y = np.random.default_rng(0), np.arange(n) % 2
    return rng.normal(size=(n, 2)) * 0.6 + np.column_stack([3 * y, 0 * y]), y


NARROW = {
    "rkhs": LSSVC(gamma=1000, fit_intercept=False),
    "coefficients": LSSVC(gamma=1000, fit_intercept=False, penalty="coef"),
    "weak": LSSVC(gamma=0.1, alpha=1e14, fit_intercept=False),
    "linear, weak": LSSVC("linear", alpha=1e15, fit_intercept=False),
    "fisher": KernelFisherDiscriminant(gamma=1000, fit_intercept=False),
}


@pytest.mark.parametrize("name", NARROW)
def test_tiny_decisions_keep_their_digits(name):
    (X, y), estimator = apart(), NARROW[name]
    expected = held_out_rows(estimator, X, y, leave_one_out(60), "decision_function")
    actual = clone(estimator).fit(X, y).loo_decision_function()
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-300)
    splits = list(skl.StratifiedKFold(20).split(X, y))
    actual = cross_val_predict(estimator, X, y, cv=splits, method="decision_function")
    np.testing.assert_allclose(
        actual, held_out_rows(estimator, X, y, splits, "decision_function"), rtol=1e-6, atol=1e-300
    )


def test_tiny_decisions_of_functions_keep_their_signs():
    X, y = apart()
    assert clone(NARROW["coefficients"]).fit(X, y).loo_score_ == 1.0


def test_tiny_decisions_are_right_in_searches_pairs_and_permutations():
    X, y = apart()
    estimator = NARROW["rkhs"]
    search = FoldlessSearchCV(estimator, {"alpha": [0.1, 1.0]}, criterion="error").fit(X, y)
    assert (search.cv_results_["mean_test_criterion"] == 0).all()
    assert leave_pair_out_auc(estimator, X, y) == 1.0
    result = permutation_test_score(estimator, X, y, cv=20, n_permutations=5)
    assert result.score == np.mean(held_out_rows(estimator, X, y, skl.StratifiedKFold(20).split(X, y), "predict") == y)


@pytest.mark.parametrize(
    "estimator", [LSSVC(gamma=1e6), KernelFisherDiscriminant(gamma=1e6, threshold="centroid"), LSSVR(gamma=1e6)]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_constant_fits_score_at_chance(estimator, dtype):
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(dtype)
    y = np.arange(60) % 2 if not isinstance(estimator, LSSVR) else np.random.default_rng(1).normal(size=60)
    cv = skl.KFold(6)
    method = "predict" if isinstance(estimator, LSSVR) else "decision_function"
    values = cross_val_predict(estimator, X, y, cv=cv, method=method)
    for _, test in cv.split(X):
        assert len(np.unique(values[test])) == 1
    if method == "decision_function":
        assert (cross_val_score(estimator, X, y, cv=cv, scoring="roc_auc") == 0.5).all()
        result = permutation_test_score(estimator, X, y, cv=cv, scoring="roc_auc", n_permutations=10)
        assert (result.permutation_scores == 0.5).all()
        search = FoldlessSearchCV(estimator, {"alpha": [1.0]}, cv=cv, criterion="auc").fit(X, y)
        pooled = cross_val_predict(LSSVC(gamma=1e6), X, y, cv=cv, method="decision_function")
        assert search.best_criterion_ == pytest.approx(1 - roc_auc_score(y, pooled), abs=1e-12)


# -- weak axes ---------------------------------------------------------------------------------------------------------


def far_rows(c=3, n=45, seed=0):
    """Classes beside each other, the last five rows far from all others; weights."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    X = rng.normal(size=(n, 4)) + 2 * rng.normal(size=(c, 4))[y]
    X[-5:] *= 1e3
    return X, y, rng.uniform(0.5, 2, n)


def worst(found, expected):
    """Largest error relative to the size of its row."""
    return (np.abs(found - expected).max(1) / np.abs(expected).max(1)).max()


@pytest.mark.parametrize("options", [{}, {"penalty": "coef"}, {"fit_intercept": False}], ids=str)
@pytest.mark.parametrize("c", [3, 4])
def test_decisions_of_weak_axes_at_far_rows_equal_extended_precision(c, options):
    X, y, w = far_rows(c)
    coef, intercept = "penalty" in options, options.get("fit_intercept", True)
    alpha = 1e15 if coef else 1e12
    model = KernelFisherDiscriminant("linear", alpha=alpha, **options)

    def expected(train, test):
        return weak_discriminant(X @ X.T, y, w, alpha, train, test, intercept=intercept, coef=coef)

    near, far = np.arange(40), np.arange(40, 45)
    found = refit(model, X, y, near, sample_weight=w).decision_function(X[far])
    assert worst(found, expected(near, far)) < (1e-7 if intercept else 1e-12)

    rows = np.arange(41)  # one of them, left out
    loo = refit(model, X, y, rows, sample_weight=w).loo_decision_function()[40:]
    assert worst(loo, expected(near, rows[40:])) < 1e-7

    fold = clone(model).fit(X, y, sample_weight=w)._loo().part(near)
    found = Discriminant(c, centred=intercept).scores(fold.fits(far), fold.moments())
    assert worst(found, expected(near, far)) < 1e-7


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_decisions_of_weak_axes_without_intercept_equal_extended_precision(penalty):
    X, y, w = far_rows(4)
    X, y, w = X[:40], y[:40], w[:40]
    K = np.exp(-0.1 * np.square(X[:, None] - X).sum(-1))
    model = KernelFisherDiscriminant(gamma=0.1, alpha=1e10, penalty=penalty, fit_intercept=False).fit(
        X, y, sample_weight=w
    )
    folds = skl.KFold(4)
    found = cross_val_predict(model, X, y, cv=folds, method="decision_function", params={"sample_weight": w})
    for splits, values in ((folds.split(X), found), (leave_one_out(len(y)), model.loo_decision_function())):
        for train, test in splits:
            expected = weak_discriminant(K, y, w, 1e10, train, test, intercept=False, coef=penalty == "coef")
            assert worst(values[test], expected) < 1e-12


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_class_sums_of_weak_axes_of_all_labelings_equal_single_ones(weighted, intercept):
    X, y, w = far_rows(4)
    model = KernelFisherDiscriminant("rbf", gamma=0.1, alpha=1e10, fit_intercept=intercept).fit(
        X, y, sample_weight=w if weighted else None
    )
    task = model._fitted_task
    orders = np.stack([np.random.default_rng(seed).permutation(len(y)) for seed in range(3)])
    fitted = Labelings.of(Solver.of(task.problem), task, truth_of(task, orders))
    train = np.arange(5, 45)
    for part in (fitted.solution, fitted.part(train)):
        found = fitted.moments(part).V
        for order, V in zip(orders, found, strict=True):
            alone = Solution.fit(task.problem, part.rows, task.Y[order][part.rows]).moments().V
            assert np.abs(V - alone).max() < 1e-11 * np.abs(alone).max()
