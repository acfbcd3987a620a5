"""Confounds in the algebra: held-out fits and class matrices against refits, discriminants against the eigenproblem."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foldless import KernelFisherDiscriminant, kernels, reference
from foldless._engine.heldout.problem import Problem
from foldless._engine.readout.codings import indicator
from foldless._engine.readout.discriminant import Discriminant
from support.cases import Case, odd_splits, penalised
from support.confounds import every_strategy
from support.parts import TrainingParts
from support.tolerances import assert_close

# -- the algebra, against the oracle -----------------------------------------------------------------------------------

_base = Case(shape=(26, 4))
CASES = [
    *[
        replace(_base, kernel=k, penalty=p, weights=w, q=q)
        for k in ("rbf", "linear")
        for p in ("rkhs", "coef")
        for w in ("none", "random", "zeros")
        for q in (0, 1)
    ],
    *[replace(_base, kernel=k) for k in ("poly", "laplacian", "boolean", "cosine")],
    *[replace(_base, kernel="linear", shape=shape, weights="zeros") for shape in ((18, 40), (40, 3))],
    *[replace(_base, dtype="float32", kernel=k, penalty=p) for k in ("rbf", "linear") for p in ("rkhs", "coef")],
]
every_case = pytest.mark.parametrize("case", CASES, ids=[str(case) for case in CASES])


def two_confounds(case):
    """Two confounds, one of them far from centred."""
    return np.random.default_rng(12).normal((3.0, 0.0), size=(case.shape[0], 2))


def problem_of(case, **options):
    return case.problem().with_confounds(two_confounds(case).astype(case.dtype), **options)


def labels_of(case):
    return indicator(case.codes, 3, case.dtype)


def refit_fits(case, train, test, *, Y=None, n_confounds=2):
    options = {**case.oracle, "Q": np.hstack([case.Q, two_confounds(case)]), "n_confounds": n_confounds}
    Y = labels_of(case).astype(float) if Y is None else Y
    return reference.heldout_fits(case.K, Y, np.asarray(train), np.asarray(test), case.alpha, **options)


def refit_matrices(case, train):
    """N, U and the class sums of the scores of a training part, from the fits of a refit and the definitions."""
    train = np.asarray(train)[case.w[train] > 0]
    Y, w = labels_of(case)[train].astype(float), case.w[train]
    YW = Y.T * w
    N = YW @ Y
    return N, N - YW @ refit_fits(case, train, train, n_confounds=0), YW @ refit_fits(case, train, train)


def assert_matrices(moments, expected, k=slice(None)):
    for ours, theirs in zip((moments.N, moments.U, moments.sums), expected, strict=True):
        assert_close(ours[k], theirs, scale=np.abs(expected[0]).max())


@pytest.mark.many_cases
@every_case
@every_strategy
def test_fits_and_class_matrices_with_confounds_equal_refits(case, strategy):
    parts = TrainingParts(problem_of(case), labels_of(case), strategy=strategy)
    everything = np.arange(case.shape[0])
    for train, test in odd_splits(case.shape[0]):
        model = parts.part(train)
        expected = refit_fits(case, train, everything)
        assert_close(model.fits(everything), expected)
        assert_close(model.fits(test), expected[test])
        assert_matrices(model.moments(), refit_matrices(case, train))
        assert model.fits(test).dtype == case.dtype


@every_case
def test_confounds_kept_in_the_score_equal_other_unpenalised_columns(case):
    parts = TrainingParts(problem_of(case, in_score=True), labels_of(case), strategy="part")
    train, test = odd_splits(case.shape[0])[2]
    part = parts.part(train)
    assert_close(part.fits(test), refit_fits(case, train, test, n_confounds=0))
    assert part.moments().C is None


@pytest.mark.many_cases
@every_case
@every_strategy
def test_loo_with_confounds_of_all_rows_and_of_a_training_part_equals_refits(case, strategy):
    parts = TrainingParts(problem_of(case), labels_of(case), nested=True, strategy=strategy)
    train = odd_splits(case.shape[0])[3][0]
    for model, rows in ((parts.full_fit, np.arange(case.shape[0])), (parts.part(train), train)):
        loo = model.loo()
        expected = [refit_fits(case, rows[rows != i], [i])[0] for i in model.rows]
        assert_close(loo.fits[:, 0], np.array(expected))
        for k in (0, 4, len(model.rows) - 1):
            assert_matrices(loo.moments(), refit_matrices(case, rows[rows != model.rows[k]]), k)


@every_case
def test_pairs_left_out_with_confounds_equal_refits(case):
    whole = TrainingParts(problem_of(case), labels_of(case)).full_fit
    pairs = np.array([[0, 1], [5, 2], [7, 13]])
    batch = whole.held_out(pairs)
    fits = batch.fits
    for k, pair in enumerate(whole.rows[pairs]):
        rest = np.setdiff1d(np.arange(case.shape[0]), pair)
        assert_close(fits[k], refit_fits(case, rest, pair))
        assert_matrices(batch.moments(), refit_matrices(case, rest), k)


@every_case
def test_loo_models_with_confounds_at_new_points_equal_refits(case):
    """Confounds of the new points are taken as they are, or each model takes them at the mean of its own rows."""
    n = case.shape[0] - 5
    old, new = np.arange(n), np.arange(n, n + 5)
    whole = TrainingParts(problem_of(case).subset(old), labels_of(case)[old]).full_fit
    Q = np.hstack([case.Q, two_confounds(case)])
    w = case.w.copy()
    w[new] = 0.0  # part of the kernel matrix, not of the data
    given = (whole.problem.columns(two_confounds(case)[new]), None)
    for F, at_mean in zip((whole.loo_at(case.X[new], columns) for columns in given), (False, True), strict=True):
        for i in (0, 3, len(whole.rows) - 1):
            rest = np.setdiff1d(old, whole.rows[i])
            shown = Q.copy()
            if at_mean:
                shown[new, case.q :] = np.average(Q[rest, case.q :], 0, w[rest]) if case.q else 0.0
            options = {**case.oracle, "Q": shown, "n_confounds": 2, "w": w}
            expected = reference.heldout_fits(case.K, labels_of(case).astype(float), rest, new, case.alpha, **options)
            assert_close(F[:, i], expected)


# -- discriminants, against the eigenproblem ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
@pytest.mark.parametrize("weights", ["none", "random"])
@pytest.mark.parametrize("q", [0, 1], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_discriminants_with_confounds_equal_the_eigenproblem_of_features_without_them(n_classes, weights, q, penalty):
    n = 48
    case = Case(shape=(n, 6), weights=weights, q=q, penalty=penalty, alpha=0.3)
    rng = np.random.default_rng(n_classes)
    codes = rng.permutation(np.arange(n) % n_classes)
    C = two_confounds(case) + 0.5 * codes[:, None]
    priors = tuple(rng.dirichlet(np.full(n_classes, 5.0)))
    readout = Discriminant(n_classes, "centroid", priors, centred=bool(q))
    problem = case.problem().with_confounds(C)
    order = rng.permutation(n)
    train, test = np.sort(order[10:]), order[:10]
    options = {"w": case.w, "priors": priors, "centred": bool(q), "Q_c": C}
    z, centres, decision = reference.discriminant(case.K, codes, train, test, case.alpha, **options)
    if n_classes == 2:
        decision = decision[:, 1] - decision[:, 0]
    for strategy in ("part", "solve"):
        part = TrainingParts(problem, indicator(codes, n_classes, float), strategy=strategy).part(train)
        moments = part.moments()
        assert_close(readout.scores(part.fits(test), moments), decision)
        scalings, centroids, _ = readout.axes(moments)
        ours, theirs = part.fits(test) @ scalings - centroids[0], z - centres[0]
        assert_close(ours * np.sign((ours * theirs).sum(0)), theirs)
        if not q:  # no constant: the scores themselves are those of the features
            ours = part.fits(test) @ scalings
            assert_close(ours * np.sign((ours * z).sum(0)), z)


def test_discriminants_are_constant_where_confounds_are_the_classes():
    case = Case(shape=(30, 4))
    codes = np.arange(30) % 3
    C = indicator(codes, 3, float)[:, 1:]
    model = KernelFisherDiscriminant(gamma=0.2, threshold="centroid").fit(case.X, codes, confounds=C)
    assert np.ptp(model.decision_function(case.X)) == 0
    assert np.all(model.transform(case.X) == 0)
    other = codes == 2
    model = KernelFisherDiscriminant(gamma=0.2).fit(case.X, codes, confounds=other)  # one direction is left of two
    z = model.transform(case.X)
    assert np.ptp(z[:, 0]) > 0
    assert np.all(z[:, 1] == 0)


@pytest.mark.parametrize("seed", range(5))
def test_features_of_one_dimension_have_one_axis_whatever_confounds_tell_of_the_classes(seed):
    """Confounds that nearly are the classes leave little of these; rounding must not become an axis."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(60) % 4)
    C = np.eye(4)[codes][:, :2] + 0.02 * rng.normal(size=(60, 2))
    one = rng.normal(size=60) + codes
    X = np.column_stack([one, 2 * one + 1])
    model = KernelFisherDiscriminant("linear", alpha=0.1).fit(X, codes, confounds=C)
    assert np.all(model.transform(X)[:, 1:] == 0)
    moments = model._loo().full_fit.loo().moments()
    scalings, _, _ = Discriminant(4).axes(moments)
    assert np.all(scalings[:, :, 1:] == 0)


relaxed = settings(deadline=None, max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(9, 20),
    st.integers(1, 3),
    st.sampled_from(["rbf", "linear", "poly"]),
    st.sampled_from(["rkhs", "coef"]),
    st.booleans(),
    st.sampled_from(["normal", "far", "huge", "tiny", "binary", "outlier"]),
)
@relaxed
def test_confounds_of_any_size_equal_refits_or_are_refused(seed, n, k, kernel, penalty, intercept, shape):
    """Confounds of any size and form: closed form and refit agree, or both complain."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, rng.integers(1, 2 * n))), rng.normal(size=(n, 2))
    C = rng.normal(size=(n, k))
    if shape == "binary":
        C = (C > 0).astype(float)
    if shape == "outlier":
        C[0] *= 1e4
    C = C * {"huge": 1e6, "tiny": 1e-6}.get(shape, 1.0) + {"far": 1e3}.get(shape, 0.0)
    w = 10.0 ** rng.uniform(-1, 1, n)
    w[rng.permutation(n)[:1]] = 0.0
    kernel = kernels.resolve(kernel, X, gamma="scale", degree=2)
    Q = np.hstack([np.ones((n, int(intercept))), C])
    problem = Problem.of(penalised(kernel, penalty, X, w), X, alpha=0.5, Q=Q, sample_weight=w, n_confounds=k)
    train = np.sort(rng.permutation(n)[: rng.integers(k + 3, n)])
    kept = train[w[train] > 0]
    if np.linalg.matrix_rank(Q[kept] / np.maximum(np.abs(Q[kept]).max(0), 1e-300), tol=1e-9) < Q.shape[1]:
        for strategy in ("part", "solve"):
            with pytest.raises(ValueError, match=r"confounds: column \d is a linear combination"):
                TrainingParts(problem, Y, strategy=strategy).part(train)
        return
    options = {"w": w, "Q": Q, "penalty": penalty, "n_confounds": k}
    expected = reference.heldout_fits(kernel.gram(X), Y, train, np.arange(n), 0.5, **options)
    full = reference.heldout_fits(kernel.gram(X), Y, train, np.arange(n), 0.5, **{**options, "n_confounds": 0})
    scale = np.abs(Y).max() + np.abs(expected).max() + np.abs(full).max()
    for strategy in ("part", "solve"):
        model = TrainingParts(problem, Y, strategy=strategy).part(train)
        assert_close(model.fits(np.arange(n)), expected, scale=scale, rtol=1e-7)
