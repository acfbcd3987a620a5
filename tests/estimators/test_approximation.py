"""Models of landmarks and random features: held-out results equal refits of the same approximate model."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.estimators.base as base
from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.heldout.gradient import value_and_gradient
from foldless._engine.heldout.problem import Problem
from foldless.kernels import RBF, Laplacian, Linear, On, RandomFeatures
from foldless.kernels import Nystroem as Landmarks
from foldless.model_selection import cross_val_predict, explain, nested_cross_validate, permutation_test_score

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = {"two": (X[:, 0] + X[:, 1] ** 2 > 1) * 1, "three": np.digitize(X[:, 0] + X[:, 1] ** 2, [0.5, 1.5])}
W = RNG.integers(0, 3, 90).astype(float)
every_model = pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant, LSSVR])
every_approximation = pytest.mark.parametrize("approximation", [Landmarks, RandomFeatures])
every_penalty = pytest.mark.parametrize("penalty", ["rkhs", "coef"])


def model(kind, approximation=Landmarks, *, per_fold=None, **more):
    options = {} if per_fold is None else {"per_fold": per_fold}
    return kind(approximation(RBF(0.3), 12, **options), alpha=0.1, **more)


def same_features(estimator, rows, weight=None):
    """The estimator with its landmarks, or its waves, as they are on all rows: what a refit on some of them takes."""
    fitted = clone(estimator).fit(rows, np.arange(rows.shape[0]) % 2, weight)
    return clone(estimator).set_params(kernel=fitted.kernel_, penalty="rkhs")


def decisions(fitted, rows):
    return fitted.predict(rows) if isinstance(fitted, LSSVR) else fitted.decision_function(rows)


@pytest.mark.many_cases
@every_model
@every_approximation
@every_penalty
@pytest.mark.parametrize("weights", [None, W], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_leave_one_out_equals_refits(kind, approximation, penalty, weights, form):
    rows, y = form(X), Y["three"]
    estimator = model(kind, approximation, penalty=penalty).fit(rows, y, weights)
    found = estimator.loo_predict() if kind is LSSVR else estimator.loo_decision_function()
    again = same_features(model(kind, approximation, penalty=penalty), rows, weights)
    for i in (0, 7, 50, 89):
        kept = np.arange(90) != i
        refit = clone(again).fit(rows[kept], y[kept], None if weights is None else weights[kept])
        assert_allclose(found[i], decisions(refit, rows[[i]])[0], rtol=1e-8, atol=1e-9)


@every_model
@every_approximation
@pytest.mark.parametrize("cv", [KFold(4, shuffle=True, random_state=0), GroupKFold(5)], ids=["folds", "groups"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_split_equals_refits(kind, approximation, cv, dtype):
    rows, y = X.astype(dtype), Y["two"]
    groups = np.arange(90) // 9 if isinstance(cv, GroupKFold) else None
    method = "predict" if kind is LSSVR else "decision_function"
    found = cross_val_predict(model(kind, approximation), rows, y, cv=cv, groups=groups, method=method)
    again, expected = same_features(model(kind, approximation), rows), np.empty(90)
    for train, test in cv.split(rows, y, groups):
        expected[test] = decisions(clone(again).fit(rows[train], y[train]), rows[test])
    assert_allclose(found, expected, **({"rtol": 1e-8, "atol": 1e-9} if dtype is np.float64 else {"atol": 1e-3}))


def test_the_model_is_ridge_regression_on_the_features_of_scikit_learn():
    """Its Nystroem features, by the symmetric root of k(Z, Z), span the same space with the same norm."""
    theirs = Nystroem(kernel="rbf", gamma=0.3, n_components=12, random_state=0).fit(X)
    estimator = LSSVR(Landmarks(RBF(0.3), landmarks=theirs.components_), alpha=0.1).fit(X, X[:, 0])
    ridge = Ridge(alpha=0.1).fit(theirs.transform(X), X[:, 0])
    assert_allclose(estimator.predict(X), ridge.predict(theirs.transform(X)), atol=1e-7)


def test_with_the_penalty_of_coefficients_it_is_ridge_regression_on_the_kernel_of_the_landmarks():
    estimator = model(LSSVR, penalty="coef").fit(X, X[:, 0])
    C = RBF(0.3).gram(X, estimator.kernel_.landmarks)
    assert_allclose(estimator.predict(X), Ridge(alpha=0.1).fit(C, X[:, 0]).predict(C), atol=1e-8)


@every_model
def test_landmarks_never_see_labels(kind):
    y = Y["three"]
    first, second = (model(kind).fit(X, labels).kernel_.landmarks for labels in (y, y[::-1]))
    assert_array_equal(first, second)


@every_model
@every_approximation
def test_learning_and_forgetting_equal_a_new_fit_with_the_same_landmarks(kind, approximation):
    y = Y["three"]
    estimator = model(kind, approximation).fit(X[:70], y[:70])
    estimator.partial_fit(X[70:], y[70:]).forget(np.arange(5, 25))
    kept = np.r_[0:5, 25:90]
    expected = same_features(model(kind, approximation), X[:70]).fit(X[kept], y[kept])
    assert_allclose(decisions(estimator, X), decisions(expected, X), rtol=1e-8, atol=1e-9)
    assert_allclose(estimator.loo_score_, expected.loo_score_)
    certificate = estimator.unlearning_certificate()
    assert certificate.holds
    assert certificate.inherited == (("landmarks",) if approximation is Landmarks else ())


@pytest.mark.many_cases
@pytest.mark.parametrize("kind", [Landmarks, RandomFeatures])
@pytest.mark.parametrize("kernel", [RBF(0.3), RBF(np.array([0.1, 0.5, 0.2])), Laplacian(0.3)], ids=repr)
@pytest.mark.parametrize("folds", [None, "sets"])
@pytest.mark.parametrize("weights", [None, W + 0.5], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("intercept", [0, 1])
def test_gradients_are_differences_of_the_loss(kind, kernel, folds, weights, intercept, monkeypatch):
    monkeypatch.delattr(Problem, "whitened_gram")  # nothing n x n is formed
    kernel = kind(kernel, 12).resolved(X)
    problem = Problem.of(kernel, X, 0.1, np.ones((90, intercept)), weights)
    rows, T = np.arange(90), np.column_stack([X[:, 0] ** 2, Y["two"]])
    sets = None if folds is None else np.split(np.random.default_rng(1).permutation(90), 6)

    def loss(E):
        return float(np.square(E).sum()), 2 * E

    def value(problem):
        return value_and_gradient(problem, rows, T, sets, loss)[0]

    assert problem.n_features == 12
    assert problem.through_features(90)
    _, found = value_and_gradient(problem, rows, T, sets, loss)
    ends = [problem.replace(alpha=0.1 * (1 + sign * 1e-5)) for sign in (1, -1)]
    assert_allclose(found["alpha"], (value(ends[0]) - value(ends[1])) / 2e-6, rtol=1e-5)
    gamma = np.array(kernel.get_params()["gamma"], float)
    for place in np.ndindex(gamma.shape):
        step = np.zeros_like(gamma)
        step[place] = 1e-5 * gamma[place]
        both = [gamma + step, gamma - step]
        ends = [problem.replace(kernel=kernel.changed(gamma=each if each.ndim else float(each))) for each in both]
        expected = (value(ends[0]) - value(ends[1])) / (2 * step[place])
        assert_allclose(np.asarray(found["gamma"])[place], expected, rtol=1e-4, atol=1e-6)


@every_approximation
def test_searches_tune_alpha_and_gamma_of_the_approximate_model(approximation):
    grid, signs, losses = {"alpha": [0.01, 0.1, 10.0], "kernel__gamma": [0.1, 0.3, 3.0]}, np.where(Y["two"], 1, -1), {}
    search = FoldlessSearchCV(model(LSSVC, approximation), grid, cv=KFold(3)).fit(X, Y["two"])
    for alpha in grid["alpha"]:
        for gamma in grid["kernel__gamma"]:
            other = model(LSSVC, approximation).set_params(alpha=alpha, kernel__gamma=gamma)
            F = cross_val_predict(other, X, Y["two"], cv=KFold(3), method="decision_function")
            losses[alpha, gamma] = np.mean(np.square(signs - F))
    assert tuple(search.best_params_.values()) == min(losses, key=losses.__getitem__)
    assert_allclose(search.best_criterion_, min(losses.values()), rtol=1e-8)
    best_params = FoldlessSearchCV(model(LSSVC, approximation)).fit(X, Y["two"]).best_params_
    assert set(best_params) == {"alpha", "kernel__gamma"}


def test_nested_and_permuted_results_equal_those_on_the_features_themselves():
    """A linear model on the features, written out, is the same model: all that is asked of it agrees."""
    y, grid = Y["two"], {"alpha": [0.01, 0.1, 1.0]}
    kernel = model(LSSVC).fit(X, y).kernel_
    Phi, cv = kernel.features(X), StratifiedKFold(5)
    linear = LSSVC("linear", alpha=0.1)
    ours = nested_cross_validate(FoldlessSearchCV(model(LSSVC), grid), X, y, cv=cv)
    theirs = nested_cross_validate(FoldlessSearchCV(linear, grid), Phi, y, cv=cv)
    assert_allclose(np.concatenate(ours.decision), np.concatenate(theirs.decision), rtol=1e-8, atol=1e-9)
    ours = permutation_test_score(model(LSSVC), X, y, cv=cv, n_permutations=20, random_state=0)
    theirs = permutation_test_score(linear, Phi, y, cv=cv, n_permutations=20, random_state=0)
    assert_allclose(ours.permutation_scores, theirs.permutation_scores)
    linear.set_params(calibration="sigmoid")
    ours, theirs = model(LSSVC, calibration="sigmoid").fit(X, y), linear.fit(Phi, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(Phi), rtol=1e-6)
    ours, theirs = model(LSSVR).fit(X, X[:, 0]), LSSVR("linear", alpha=0.1).fit(Phi, X[:, 0])
    assert_allclose(ours.predict_interval(X[:5]), theirs.predict_interval(Phi[:5]), rtol=1e-6)


def test_the_route_says_that_landmarks_are_fixed_once():
    route = str(explain(model(LSSVC), X, Y["two"], cv=5))
    assert "12 features" in route
    assert "fixed once from all rows, labels unseen" in route


@every_model
@every_approximation
@every_penalty
def test_a_name_inside_takes_the_parameters_of_the_estimator(kind, approximation, penalty):
    y = Y["three"]
    by_name = kind(approximation("rbf", 12), gamma=0.3, alpha=0.1, penalty=penalty)
    by_object = model(kind, approximation, penalty=penalty)
    assert_array_equal(decisions(by_name.fit(X, y), X), decisions(by_object.fit(X, y), X))
    scaled, default = (kind(approximation(inside, 12)).fit(X, y) for inside in (RBF("scale"), "rbf"))
    assert_array_equal(decisions(scaled, X), decisions(default, X))
    search = FoldlessSearchCV(by_name, {"alpha": [0.1], "gamma": [0.1, 0.3]}).fit(X, y)
    other = FoldlessSearchCV(by_object, {"alpha": [0.1], "kernel__gamma": [0.1, 0.3]}).fit(X, y)
    assert_array_equal(search.cv_results_["mean_test_criterion"], other.cv_results_["mean_test_criterion"])
    assert set(FoldlessSearchCV(by_name).fit(X, y).best_params_) == {"alpha", "gamma"}


def test_the_penalty_of_coefficients_takes_the_features_without_whitening():
    plain = LSSVC(Landmarks(RBF(0.3), 12, whiten=False), alpha=0.1).fit(X, Y["two"])
    assert_array_equal(model(LSSVC, penalty="coef").fit(X, Y["two"]).decision_function(X), plain.decision_function(X))


def test_candidates_of_other_numbers_of_landmarks_are_others():
    kernels = [Landmarks(RBF(0.3), count) for count in (3, 30)]
    search = FoldlessSearchCV(LSSVC(alpha=0.1), {"kernel": kernels}).fit(X, Y["two"])
    expected = [
        FoldlessSearchCV(LSSVC(kernel), {"alpha": [0.1]}).fit(X, Y["two"]).best_criterion_ for kernel in kernels
    ]
    assert_allclose(search.cv_results_["mean_test_criterion"], expected)


def test_leave_one_out_by_scikit_learns_loop_is_the_same():
    found = cross_val_predict(model(LSSVC), X, Y["two"], cv=LeaveOneOut(), method="decision_function")
    assert_allclose(found, model(LSSVC).fit(X, Y["two"]).loo_decision_function(), rtol=1e-9)


def refits(estimator, y, splits):
    """Held-out decisions of plain refits, landmarks of each training part included."""
    found = np.empty(90)
    for train, test in splits:
        found[test] = decisions(clone(estimator).fit(X[train], y[train]), X[test])
    return found


@every_model
def test_landmarks_of_each_training_part_equal_refits(kind):
    estimator, cv = model(kind, per_fold=True), KFold(4)
    method = "predict" if kind is LSSVR else "decision_function"
    found = cross_val_predict(estimator, X, Y["two"], cv=cv, method=method)
    assert_allclose(found, refits(estimator, Y["two"], cv.split(X)), rtol=1e-9)
    once = cross_val_predict(model(kind), X, Y["two"], cv=cv, method=method)
    assert abs(found - once).max() > 1e-3
    route = explain(estimator, X, Y["two"], cv=cv)
    assert route.kind == "one P per fold"
    assert "per_fold=False of the kernel would take one fit" in route.reason


def test_searches_take_landmarks_of_each_training_part():
    estimator, cv, y = model(LSSVC, per_fold=True), KFold(3), Y["two"]
    search = FoldlessSearchCV(estimator, {"alpha": [0.01, 1.0]}, cv=cv).fit(X, y)
    signs = np.where(y, 1.0, -1.0)
    for alpha, score in zip([0.01, 1.0], search.cv_results_["mean_test_criterion"], strict=True):
        F = refits(clone(estimator).set_params(alpha=alpha), y, cv.split(X))
        assert_allclose(abs(score), np.mean(np.square(signs - F)), rtol=1e-8)


def test_nested_results_take_landmarks_of_each_training_part():
    estimator, y, inner, outer = model(LSSVC, per_fold=True), Y["two"], KFold(3), KFold(4)
    grid = {"alpha": [0.01, 1.0]}
    result = nested_cross_validate(FoldlessSearchCV(estimator, grid, cv=inner), X, y, cv=outer)
    signs = np.where(y, 1.0, -1.0)
    for number, (train, test) in enumerate(outer.split(X)):
        losses = []
        for alpha in grid["alpha"]:
            own = clone(estimator).set_params(alpha=alpha)
            F = np.concatenate(
                [decisions(clone(own).fit(X[train][a], y[train][a]), X[train][b]) for a, b in inner.split(train)]
            )
            losses.append(np.mean(np.square(signs[train] - F)))
        best = clone(estimator).set_params(alpha=grid["alpha"][int(np.argmin(losses))]).fit(X[train], y[train])
        assert_allclose(np.ravel(result.decision[number]), decisions(best, X[test]), rtol=1e-8)
        assert result.best_params[number]["alpha"] == best.alpha


@pytest.mark.parametrize("steps", [False, True], ids=["alone", "behind a scaler"])
def test_permutations_take_landmarks_of_each_training_part(steps):
    estimator, cv, y = model(LSSVC, per_fold=True), StratifiedKFold(3), Y["two"]
    estimator = make_pipeline(StandardScaler(), estimator) if steps else estimator
    result = permutation_test_score(estimator, X, y, cv=cv, n_permutations=4, random_state=0)
    assert result.path.kind == "one P per fold"
    scores = [clone(estimator).fit(X[a], y[a]).score(X[b], y[b]) for a, b in cv.split(X, y)]
    assert_allclose(result.score, np.mean(scores))
    rng = np.random.default_rng(0)
    labels = rng.permutation(y)
    splits = list(cv.split(X, y))
    one = permutation_test_score(estimator, X, labels, cv=splits, n_permutations=1, random_state=0)
    assert_allclose(
        one.score, np.mean([clone(estimator).fit(X[a], labels[a]).score(X[b], labels[b]) for a, b in splits])
    )


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_given_landmarks_are_in_the_units_of_the_rows(sparse):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3)) * [1000.0, 0.01, 1.0] + [5.0, 0.0, 0.0]
    labels = np.arange(60) % 2
    rows = sp.csr_array(rows) if sparse else rows
    scaler = StandardScaler(with_mean=not sparse).fit(rows)
    for around in (lambda kernel: kernel, lambda kernel: On([0, 1, 2], kernel), lambda kernel: kernel + Linear()):
        unscaled, seen = (around(Landmarks(RBF(0.3), landmarks=Z)) for Z in (rows[:8], scaler.transform(rows[:8])))
        model = LSSVC(unscaled, standardize=True).fit(rows, labels)
        scaled = LSSVC(seen).fit(scaler.transform(rows), labels)
        assert_allclose(model.decision_function(rows), scaled.decision_function(scaler.transform(rows)), rtol=1e-9)
        again = LSSVC(model.kernel_, standardize=True).fit(
            rows, labels
        )  # its landmarks are rows as the kernel sees them
        assert_array_equal(again.decision_function(rows), model.decision_function(rows))
    narrow = Landmarks(RBF(0.3), landmarks=np.ones((8, 2)))
    with pytest.raises(ValueError, match=r"landmarks has shape \(8, 2\)"):
        LSSVC(narrow, standardize=True).fit(rows, labels)


def test_landmarks_that_replace_those_of_a_fitted_kernel_are_in_the_units_of_the_rows():
    rows, labels = X * [1000.0, 0.01, 1.0], Y["two"]
    fitted = LSSVC(Landmarks(RBF(0.3), 8), standardize=True).fit(rows, labels).kernel_
    again = LSSVC(fitted.changed(landmarks=rows[:8]), standardize=True).fit(rows, labels)
    expected = LSSVC(Landmarks(RBF(0.3), landmarks=rows[:8]), standardize=True).fit(rows, labels)
    assert_array_equal(again.decision_function(rows), expected.decision_function(rows))


def test_landmarks_of_the_user_are_those_of_some_columns():
    rows, labels = X * [1000.0, 0.01, 1.0], Y["two"]
    scaler = StandardScaler().fit(rows)
    unscaled, seen = (On([2, 0], Landmarks(RBF(0.3), landmarks=Z[:8, [2, 0]])) for Z in (rows, scaler.transform(rows)))
    model = LSSVC(unscaled, standardize=True).fit(rows, labels)
    scaled = LSSVC(seen).fit(scaler.transform(rows), labels)
    assert_allclose(model.decision_function(rows), scaled.decision_function(scaler.transform(rows)), rtol=1e-9)


def test_features_of_new_rows_are_looked_at_some_at_a_time(monkeypatch):
    labels = np.arange(60) % 2
    model = LSSVC(Landmarks(RBF(0.3), landmarks=X[:6])).fit(X[:60], labels)
    expected, seen, kind = model.decision_function(X), [], type(model.kernel_)
    features = kind.features
    monkeypatch.setattr(kind, "features", lambda self, rows: seen.append(len(rows)) or features(self, rows))
    monkeypatch.setattr(base, "CHUNK", 60)
    assert_allclose(model.decision_function(X), expected)
    assert max(seen) == 10
    assert sum(seen) == len(X)


def test_an_approximate_linear_kernel_has_no_coefficients_of_columns():
    model = LSSVC(Landmarks(Linear(), landmarks=X[:6])).fit(X, np.arange(len(X)) % 2)
    with pytest.raises(AttributeError, match="coef_ exists for kernel='linear' only, not for an approximation"):
        _ = model.coef_
