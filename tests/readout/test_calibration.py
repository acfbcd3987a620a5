"""Probabilities from leave-one-out scores."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from foldless import LSSVC, KernelFisherDiscriminant
from foldless._engine.readout import calibration
from foldless._engine.readout.calibration import fit_calibration
from foldless.model_selection import cross_val_predict
from support.tolerances import assert_close


def scored(n, c, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % c)
    S = rng.normal(size=(n, c)) * noise
    S[np.arange(n), codes] += 1.5
    return (S[:, 1] - S[:, 0] if c == 2 else S), codes, rng.uniform(0.2, 2.0, n)


def columns(S):
    return S if S.ndim == 2 else np.column_stack([np.zeros_like(S), S])


def smoothed(codes, w, c):
    mass = np.bincount(codes, weights=w, minlength=c)
    hit = (mass + 1) / (mass + 2)
    T = np.repeat(((1 - hit) / (c - 1))[codes][:, None], c, 1)
    T[np.arange(len(codes)), codes] = hit[codes]
    return T


def test_sigmoids_of_two_classes_minimise_platts_loss():
    s, codes, w = scored(80, 2)
    p = fit_calibration("sigmoid", s, codes, 2, w).proba(s)[:, 1]
    T = smoothed(codes, w, 2)

    def loss(theta):
        q = expit(theta[0] * s + theta[1])
        return -np.sum(w * (T[:, 1] * np.log(q) + T[:, 0] * np.log1p(-q)))

    best = minimize(loss, [1.0, 0.0], tol=1e-12)
    assert_close(p, expit(best.x[0] * s + best.x[1]), rtol=1e-5)
    assert loss(np.polyfit(s, np.log(p / (1 - p)), 1)) <= best.fun + 1e-9


@pytest.mark.parametrize("c", [3, 5])
def test_sigmoids_of_more_classes_minimise_the_loss_of_vector_scaling(c):
    S, codes, w = scored(90, c)
    fitted = fit_calibration("sigmoid", S, codes, c, w)
    T = smoothed(codes, w, c)

    def loss(theta):
        return -np.sum(w[:, None] * T * log_softmax(theta[:c] * S + theta[c:], axis=1))

    best = minimize(loss, np.r_[np.ones(c), np.zeros(c)], tol=1e-12)
    assert loss(np.r_[fitted.slope, fitted.offset]) == pytest.approx(best.fun, abs=1e-7)


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("c", [2, 3, 5])
def test_calibrated_probabilities_add_up_to_one_and_grow_with_the_scores(kind, c):
    S, codes, w = scored(60, c, noise=2.0)
    new = scored(500, c, seed=1, noise=3.0)[0]
    p = fit_calibration(kind, S, codes, c, w).proba(new)
    assert p.shape == (500, c)
    assert np.all(p > 0)
    assert np.all(p < 1)
    assert_close(p.sum(1), np.ones(500))
    if c == 2:
        assert np.all(np.diff(p[np.argsort(new), 1]) >= 0)


def rare_classes(n, seed=0):
    """Scores that do not know that four rows in five are of the first class."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, n, p=[0.8, 0.1, 0.1])
    S = rng.normal(size=(n, 3))
    S[np.arange(n), codes] += 1.0
    return S, codes


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_the_largest_score_has_the_largest_probability_where_nothing_clearly_speaks_against_it(kind):
    S, codes, w = scored(60, 3, noise=1.5)
    new = scored(500, 3, seed=1, noise=1.5)[0]
    fitted = fit_calibration(kind, S, codes, 3, w)
    sigmoid = getattr(fitted, "sigmoid", fitted)
    assert np.any(softmax(sigmoid.slope * new + sigmoid.offset, axis=1).argmax(1) != new.argmax(1))
    np.testing.assert_array_equal(fitted.proba(new).argmax(1), new.argmax(1))


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_scores_that_do_not_know_rare_classes_are_overruled(kind):
    S, codes = rare_classes(400)
    new, truth = rare_classes(2000, seed=1)
    fitted = fit_calibration(kind, S, codes, 3, np.ones(400))
    p = fitted.proba(new)
    assert np.mean(p.argmax(1) == truth) > np.mean(new.argmax(1) == truth) + 0.1
    if kind == "sigmoid":
        free = softmax(fitted.slope * new + fitted.offset, axis=1)
        assert abs(log_loss(truth, p) - log_loss(truth, free)) < 2e-3


def test_standard_errors_of_logits_are_those_of_the_inverse_hessian():
    S, codes, w = scored(90, 3)
    fitted = fit_calibration("sigmoid", S, codes, 3, w)
    T, theta = smoothed(codes, w, 3), np.r_[fitted.slope * fitted.spread, fitted.offset]

    def gradient(theta):
        R = w[:, None] * (softmax(theta[:3] * S / fitted.spread + theta[3:], axis=1) - T)
        return np.r_[(R * S / fitted.spread).sum(0), R.sum(0)]

    steps = 1e-5 * np.eye(6)
    H = np.array([(gradient(theta + step) - gradient(theta - step)) / 2e-5 for step in steps])
    row = np.array([0.3, -0.2, 0.0, 1.0, -1.0, 0.0])  # no common shift of the offsets, which is free
    assert row @ fitted.covariance @ row == pytest.approx(row @ np.linalg.pinv(H, rcond=1e-7) @ row, rel=1e-4)


@pytest.mark.parametrize(("kind", "c"), [("sigmoid", 2), ("sigmoid", 3), ("isotonic", 2)])
def test_priors_reweight_probabilities_by_bayes_rule(kind, c):
    S, codes, w = scored(90, c)
    priors, share = np.arange(1.0, c + 1), np.bincount(codes, w)
    plain = fit_calibration("sigmoid", S, codes, c, w)
    expected = softmax(plain.slope * columns(S) + plain.offset, axis=1) * priors / share
    expected /= expected.sum(1, keepdims=True)
    fitted = fit_calibration(kind, S, codes, c, w, priors)
    if kind == "isotonic":
        steps = replace(fitted, factors=1.0, n=10**12, sigmoid=plain).proba(S) * priors / share
        expected = (90 * steps / steps.sum(1, keepdims=True) + expected) / 91
    kept = slice(None) if c == 2 else fitted.proba(S).argmax(1) == expected.argmax(1)
    assert_close(fitted.proba(S)[kept], expected[kept], rtol=1e-6)


@pytest.mark.parametrize("scores", ["all different", "many equal", "equal up to rounding"])
@pytest.mark.parametrize("weighted", [False, True])
def test_monotone_curves_are_those_of_isotonic_regression(weighted, scores):
    s, codes, w = scored(70, 2)
    s = s.round(1) if scores != "all different" else s
    s = s * (1 + np.arange(70) % 3 * np.finfo(float).eps / 4) if scores == "equal up to rounding" else s
    w = np.where(np.arange(70) % 9, w, 0.0) if weighted else np.ones(70)
    expected = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(s, codes, sample_weight=w)
    new = np.linspace(s.min() - 1, s.max() + 1, 301)
    curve = calibration.MonotoneCurve.fit(s, codes == 1, w)
    assert_close(curve.predict(new), expected.predict(new), rtol=1e-12)
    assert_close(curve.predict(s), expected.predict(s), rtol=1e-12)


def test_priors_of_a_discriminant_halve_the_log_loss_of_rows_with_other_shares():
    rng, priors = np.random.default_rng(0), [0.95, 0.05]
    y, new = np.arange(200) % 2, (np.arange(2000) % 20 == 0).astype(int)
    X, Z = (rng.normal(size=(len(each), 2)) + 1.5 * each[:, None] for each in (y, new))
    plain = KernelFisherDiscriminant(threshold="centroid", calibration="sigmoid")
    losses = [log_loss(new, clone(plain).set_params(priors=p).fit(X, y).predict_proba(Z)) for p in (None, priors)]
    assert losses[1] < losses[0] / 2


def test_isotonic_calibration_of_few_rows_warns():
    X, y = make_classification(120, 6, weights=[0.7], random_state=0)
    model = LSSVC(calibration="isotonic")
    with pytest.warns(UserWarning, match="isotonic.* rows of class 1.*'sigmoid'"):
        model.fit(X, y)
    assert np.bincount(np.r_[y, y, y]).min() > 50
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(np.r_[X, X, X], np.r_[y, y, y])


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
def test_calibration_of_scores_that_separate_the_classes_is_finite(kind):
    s = np.r_[np.linspace(-3, -1, 10), np.linspace(1, 3, 10)]
    p = fit_calibration(kind, s, np.repeat([0, 1], 10), 2, np.ones(20)).proba(s)
    assert np.all((p > 1e-6) & (p < 1 - 1e-6))
    np.testing.assert_array_equal(p.argmax(1), np.repeat([0, 1], 10))


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_calibration_does_not_depend_on_the_scale_of_the_scores(scale):
    s, codes, w = scored(50, 2)
    one = fit_calibration("sigmoid", s, codes, 2, w).proba(s)
    assert_close(fit_calibration("sigmoid", s * scale, codes, 2, w).proba(s * scale), one)


def test_calibrated_constant_scores_are_the_smoothed_frequencies():
    codes = np.repeat([0, 1], [10, 30])
    p = fit_calibration("sigmoid", np.zeros(40), codes, 2, np.ones(40)).proba(np.zeros(1))[0, 1]
    assert p == pytest.approx(np.mean(smoothed(codes, np.ones(40), 2)[:, 1]))


def test_calibration_sets_aside_a_row_that_is_alone_in_its_class():
    S, codes, w = scored(40, 3)
    lonely = np.r_[codes % 2, 2]
    fits = [
        fit_calibration("sigmoid", np.vstack([S, row]), lonely, 3, np.r_[w, 1.0])
        for row in ([0, 0, 9.0], [5.0, -3.0, -1.0])
    ]
    np.testing.assert_array_equal(fits[0].slope, fits[1].slope)


@pytest.mark.parametrize("c", [2, 3])
def test_calibration_of_scores_that_point_the_wrong_way_keeps_the_ranking(c):
    S, codes, w = scored(60, c)
    fitted = fit_calibration("sigmoid", -S, codes, c, w)
    assert np.all(fitted.slope >= 0)
    assert np.any(fitted.slope == 0)
    model = LSSVC(gamma=0.1, alpha=1e5, calibration="sigmoid")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % c
    p = model.fit(X, y).predict_proba(X)
    assert np.isfinite(p).all()


@pytest.mark.parametrize("kind", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("c", [3, 4])
def test_calibration_gives_a_class_without_weight_no_probability(kind, dtype, c):
    X, y = make_classification(80, 6, n_informative=5, n_redundant=0, n_classes=c, random_state=0)
    X, w = X.astype(dtype), np.where(y == 1, 0.0, 1.0)
    model = KernelFisherDiscriminant(gamma=0.1, calibration=kind).fit(X, y, sample_weight=w)
    p = model.predict_proba(X)
    assert np.all(p[:, 1] == 0)
    assert_close(p.sum(1), np.ones(80))
    rest = KernelFisherDiscriminant(gamma=0.1, calibration=kind, threshold="centroid").fit(X[w > 0], y[w > 0])
    assert_close(np.delete(p, 1, axis=1), rest.predict_proba(X), rtol=1e-8 if dtype is np.float64 else 1e-2)


def test_integer_weights_of_calibration_are_repetitions_of_scores():
    s, codes, _ = scored(30, 2)
    k = np.random.default_rng(0).integers(1, 4, 30)
    one = fit_calibration("sigmoid", s, codes, 2, k).proba(s)
    two = fit_calibration("sigmoid", np.repeat(s, k), np.repeat(codes, k), 2, np.ones(k.sum())).proba(s)
    assert_close(one, two)


@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("c", [2, 4])
def test_estimators_calibrate_on_their_leave_one_out_scores(kind, calibration, c):
    X, y = make_classification(90, 6, n_informative=4, n_classes=c, random_state=0)
    model = kind(gamma=0.1, calibration=calibration).fit(X, y)
    expected = fit_calibration(calibration, model.loo_decision_function(), y, c, np.ones(90))
    new = X[:10] + 0.3
    assert_close(model.predict_proba(new), expected.proba(model.decision_function(new)))
    assert_close(np.exp(model.predict_log_proba(new)), model.predict_proba(new))


def test_log_loss_of_calibration_is_close_to_that_of_a_calibrated_ensemble():
    """Five refits and their average against one fit: equal within the noise of one split."""
    X, y = make_classification(600, 8, n_informative=5, flip_y=0.1, random_state=0)
    train, test = np.arange(400), np.arange(400, 600)
    ours = LSSVC(gamma=0.05, calibration="sigmoid").fit(X[train], y[train]).predict_proba(X[test])
    theirs = CalibratedClassifierCV(LSSVC(gamma=0.05), cv=5).fit(X[train], y[train]).predict_proba(X[test])
    assert log_loss(y[test], ours) < log_loss(y[test], theirs) + 0.02


@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 1.0, 1: 8.0}], ids=["balanced", "dict"])
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weights_do_not_make_classes_more_frequent(kind, class_weight, weighted):
    X, y = make_classification(200, 5, n_informative=3, weights=[0.85], flip_y=0.1, random_state=1)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 200) if weighted else np.ones(200)
    model = kind(alpha=3.0, class_weight=class_weight, calibration="sigmoid").fit(X, y, sample_weight=weight)
    expected = fit_calibration("sigmoid", model.loo_decision_function(), y, 2, weight)
    assert_close(model.predict_proba(X), expected.proba(model.decision_function(X)))
    share = np.average(y, weights=weight)
    assert abs(np.average(model.loo_predict_proba()[:, 1], weights=weight) - share) < 0.02


def test_probabilities_of_training_parts_count_their_rows_without_class_weights():
    X, y = make_classification(60, 4, weights=[0.7], random_state=0)
    model = LSSVC(gamma=0.2, class_weight={0: 1.0, 1: 5.0}, calibration="sigmoid")
    found = cross_val_predict(model, X, y, cv=3, method="predict_proba")
    for train, test in StratifiedKFold(3).split(X, y):
        assert_close(found[test], clone(model).fit(X[train], y[train]).predict_proba(X[test]))


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_newton_takes_few_steps_although_a_common_shift_of_offsets_changes_nothing(n_classes, monkeypatch):
    rng, codes, steps = np.random.default_rng(n_classes), np.arange(120) % n_classes, []
    scores = rng.normal(size=(120, n_classes))
    scores[np.arange(120), codes] += 1.0
    scores = scores if n_classes > 2 else scores[:, 1] - scores[:, 0]
    log_loss = calibration._log_loss

    def counted(*arguments):
        evaluate, derivatives = log_loss(*arguments)

        def counted_derivatives(*at):
            steps.append(at)
            return derivatives(*at)

        return evaluate, counted_derivatives

    monkeypatch.setattr(calibration, "_log_loss", counted)
    fitted = fit_calibration("sigmoid", scores, codes, n_classes, np.ones(120))
    assert fitted.known
    assert 2 < len(steps) < 12
