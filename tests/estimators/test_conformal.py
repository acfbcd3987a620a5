"""Full conformal sets and intervals: equal to n + 1 refits for every candidate, and refused where they do not hold."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless.estimators import conformal
from support.refits import conformal_interval, gram, label_p_values
from support.tolerances import assert_close

RNG = np.random.default_rng(0)
N = 16
CODES = RNG.permutation(np.arange(N) % 3)
X = RNG.normal(size=(N, 3)) + 0.8 * CODES[:, None] * [1, 0, -1]
NEW = np.vstack([RNG.normal(size=(2, 3)), [[9.0, -4.0, 7.0]]])  # the last one far away
VALUES = np.column_stack([X[:, 0] + RNG.normal(size=N), np.sin(X[:, 1])])
WIDE, WIDE_NEW = RNG.normal(size=(N, 30)), RNG.normal(size=(3, 30))
LABELS = {2: np.array(["no", "yes"])[(CODES > 0).astype(int)], 3: np.array(["ant", "bee", "cat"])[CODES]}
KERNELS = {
    "features": {"kernel": "linear", "alpha": 0.5},
    "nearly no penalty": {"kernel": "linear", "alpha": 1e-7},
    "rbf": {"kernel": "rbf", "gamma": 0.3, "alpha": 0.1},
    "laplacian": {"kernel": "laplacian", "gamma": 0.2, "alpha": 0.02},
    "poly": {"kernel": "poly", "gamma": 0.2, "degree": 2, "coef0": 1.0, "alpha": 1e-3},
}
METHODS = ("conformal", "studentised")


def augmented(own, data, x, intercept=True):
    """Kernel and unpenalised columns of all rows and a new one."""
    return gram(own, np.vstack([data, x])), np.ones((len(data) + 1, int(intercept)))


def p_by_refits(own, data, y, new, intercept=True, **options):
    classes, codes = np.unique(y, return_inverse=True)
    found = []
    for x in new:
        K, Q = augmented(own, data, x, intercept)
        found.append(label_p_values(K, codes, len(classes), own["alpha"], Q, **options))
    return np.array(found)


def intervals_by_refits(own, data, y, new, coverage, method, intercept=True):
    found = []
    for x in new:
        K, Q = augmented(own, data, x, intercept)
        found.append(conformal_interval(K, y, own["alpha"], Q, coverage, studentised=method == "studentised"))
    return np.array(found)


# -- equal to refits ---------------------------------------------------------------------------------------------------


@pytest.mark.many_cases
@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_conditional", [False, True])
def test_p_values_of_labels_are_those_of_refits(kind, name, intercept, n_classes, class_conditional):
    own, y = KERNELS[name], LABELS[n_classes]
    model = kind(**own, fit_intercept=intercept).fit(X, y)
    expected = p_by_refits(own, X, y, NEW, intercept, class_conditional=class_conditional)
    assert_allclose(model.conformal_p_values(NEW, class_conditional=class_conditional), expected, rtol=1e-12)


@pytest.mark.many_cases
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_intervals_of_values_are_those_of_refits(name, intercept, method, coverage):
    own = KERNELS[name]
    model = LSSVR(**own, fit_intercept=intercept).fit(X, VALUES)
    found = model.predict_interval(NEW, coverage, method=method)
    for k, y in enumerate(VALUES.T):
        expected = intervals_by_refits(own, X, y, NEW, coverage, method, intercept)
        assert_array_equal(np.isinf(found[:, k]), np.isinf(expected))
        finite = np.isfinite(expected)
        assert_close(found[:, k][finite], expected[finite], rtol=1e-6 if own["alpha"] < 1e-6 else 1e-8)


def test_more_features_than_rows():
    own = {"kernel": "linear", "alpha": 2.0}
    expected = p_by_refits(own, WIDE, LABELS[3], WIDE_NEW, class_conditional=False)
    assert_allclose(LSSVC(**own).fit(WIDE, LABELS[3]).conformal_p_values(WIDE_NEW), expected, rtol=1e-12)
    expected = intervals_by_refits(own, WIDE, VALUES[:, 0], WIDE_NEW, 0.8, "conformal")
    found = LSSVR(**own).fit(WIDE, VALUES[:, 0]).predict_interval(WIDE_NEW, 0.8, method="conformal")
    assert_close(found, expected)


def test_values_far_out_may_be_learnt_by_rows_that_follow_the_new_one():
    """Leave-one-out residuals of rows near an outlier grow with its value: the set has no end, or a gap."""
    data, own = np.array([[-0.2], [0.0], [0.1], [6.0], [0.3], [-0.3], [0.2]]), {"kernel": "linear", "alpha": 1e-3}
    new, endless = np.array([[5.0], [3.0], [7.0]]), 0
    for y in np.random.default_rng(1).normal(size=(3, 7)):
        model = LSSVR(**own).fit(data, y)
        for method in METHODS:
            for coverage in (0.3, 0.5, 0.8):
                found = model.predict_interval(new, coverage, method=method)
                expected = intervals_by_refits(own, data, y, new, coverage, method)
                assert_array_equal(np.isinf(found), np.isinf(expected))
                assert_close(found[np.isfinite(found)], expected[np.isfinite(found)])
                endless += np.isinf(found).sum()
                assert method == "conformal" or np.isfinite(found).all()
    assert endless


@settings(max_examples=8, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_odd_data(data):
    """Few rows, equal rows, constant features, new rows that equal old ones."""
    n, intercept = data.draw(st.integers(4, 9)), data.draw(st.booleans())
    rows = st.lists(st.sampled_from([0.0, 1.0, 3.0]), min_size=2 * n, max_size=2 * n)
    seen = np.reshape(data.draw(rows), (n, 2))
    new = np.vstack([seen[:1], [[1.0, 2.0]]])
    y = data.draw(st.lists(st.sampled_from([0, 1, 2]), min_size=n, max_size=n).filter(lambda y: len(set(y)) > 1))
    own = KERNELS[data.draw(st.sampled_from(["features", "rbf", "poly"]))]
    conditional, method = data.draw(st.booleans()), data.draw(st.sampled_from(METHODS))
    found = LSSVC(**own, fit_intercept=intercept).fit(seen, y).conformal_p_values(new, class_conditional=conditional)
    expected = p_by_refits(own, seen, y, new, intercept, class_conditional=conditional)
    assert_allclose(found, expected, rtol=1e-12)
    values = np.array(y) + 0.1 * np.arange(n)
    found = LSSVR(**own, fit_intercept=intercept).fit(seen, values).predict_interval(new, 0.7, method=method)
    expected = intervals_by_refits(own, seen, values, new, 0.7, method, intercept)
    assert_array_equal(np.isinf(found), np.isinf(expected))
    assert_allclose(found[np.isfinite(found)], expected[np.isfinite(found)], rtol=1e-6, atol=1e-6)


# -- the same in other ways --------------------------------------------------------------------------------------------


def outputs(labels, values, new=NEW):
    """Everything that is asked of new rows."""
    p = [labels.conformal_p_values(new, class_conditional=each) for each in (False, True)]
    return np.concatenate([*p, *(values.predict_interval(new, 0.8, method=each) for each in METHODS)], 1)


@pytest.mark.parametrize("name", ["features", "rbf"])
def test_the_same_after_updates_and_pickling(name):
    own, y = KERNELS[name], VALUES[:, 0]
    labels, values = LSSVC(**own).fit(X, LABELS[3]), LSSVR(**own).fit(X, y)
    expected = outputs(labels, values)
    assert_close(outputs(*pickle.loads(pickle.dumps((labels, values)))), expected)
    labels, values = LSSVC(**own).fit(X[:-2], LABELS[3][:-2]), LSSVR(**own).fit(X[:-2], y[:-2])
    for model, target in ((labels, LABELS[3]), (values, y)):
        model.partial_fit(np.vstack([X[-2:], X[:1]]), np.append(target[-2:], target[0])).forget([N])
    assert_close(outputs(labels, values), expected)


def test_the_same_from_sparse_rows_scaled_rows_single_precision_and_in_batches(monkeypatch):
    own, y = KERNELS["rbf"], VALUES[:, 0]
    labels, values = LSSVC(**own).fit(X, LABELS[3]), LSSVR(**own).fit(X, y)
    expected = outputs(labels, values)
    assert_close(outputs(labels, values, sp.csr_array(NEW)), expected)
    monkeypatch.setattr(conformal, "ENTRIES", 1)
    assert_close(outputs(labels, values), expected)
    small, small_values = LSSVC(**own).fit(X.astype(np.float32), LABELS[3]), LSSVR(**own).fit(X.astype(np.float32), y)
    assert_close(outputs(small, small_values, NEW.astype(np.float32)), expected, rtol=2e-3)
    center, scale = X.mean(0), X.std(0)
    scaled = (X - center) / scale
    one, two = LSSVC(standardize=True).fit(X, LABELS[3]), LSSVR(standardize=True).fit(X, y)
    other, another = LSSVC().fit(scaled, LABELS[3]), LSSVR().fit(scaled, y)
    assert_close(outputs(one, two), outputs(other, another, (NEW - center) / scale))


# -- sets --------------------------------------------------------------------------------------------------------------


def test_sets_hold_the_labels_of_large_p_values_in_the_order_of_the_classes():
    model = LSSVC(gamma=0.3).fit(X, LABELS[3])
    for options in ({}, {"class_conditional": True}):
        p = model.conformal_p_values(X, **options)
        assert_array_equal(model.predict_set(X, 0.7, **options), p > 0.3)
    assert model.predict_set(NEW).shape == (3, 3)
    assert np.mean(model.predict_set(X, 0.5)[np.arange(N), CODES]) > 0.5


def test_a_p_value_of_one_minus_the_coverage_is_outside():
    data = np.arange(19.0)[:, None]
    model = LSSVC("linear").fit(data, data[:, 0] > 8.5)
    p = model.conformal_p_values(data)
    assert np.isclose(p, 0.1).any()
    assert_array_equal(model.predict_set(data, 0.9), np.round(20 * p) > 2)


def test_a_class_that_no_row_has_is_in_every_set_of_its_own():
    model = LSSVC(gamma=0.3).partial_fit(X, LABELS[3], classes=["ant", "bee", "cat", "dog"])
    assert_array_equal(model.conformal_p_values(NEW, class_conditional=True)[:, 3], 1.0)


def test_too_few_rows_for_the_coverage_give_all_labels_and_infinite_ends():
    model = LSSVC(gamma=0.3).fit(X, LABELS[3])
    assert model.predict_set(NEW, 0.95).all()
    for method in METHODS:
        assert np.isinf(LSSVR().fit(X, VALUES).predict_interval(NEW, 0.95, method=method)).all()


# -- what is refused ---------------------------------------------------------------------------------------------------

WEIGHTS = np.linspace(0.5, 2.0, N)
REFUSED = {
    "weights": ({}, {"sample_weight": WEIGHTS}, "weights"),
    "rows of weight 0": ({}, {"sample_weight": (WEIGHTS > 1).astype(float)}, "weights"),
    "confounds": ({}, {"confounds": WEIGHTS}, "confounds"),
    "coef": ({"penalty": "coef"}, {}, r"penalty='rkhs'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_fits_without_exchangeable_rows_or_closed_form_are_refused(name):
    options, given, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        LSSVC(**options).fit(X, LABELS[3], **given).predict_set(NEW)
    model = LSSVR(**options).fit(X, VALUES, **given)
    for method in METHODS:
        with pytest.raises(ValueError, match=rf"{message}.* or method='jackknife\+'"):
            model.predict_interval(NEW, method=method)
    assert model.predict_interval(NEW).shape == (3, 2, 2)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_equal_weights_are_another_penalty(kernel):
    options, weight = {"gamma": 0.2}, np.full(N, 4.0)
    weighted = LSSVC(kernel, alpha=2.0, **options).fit(X, LABELS[3], sample_weight=weight)
    plain = LSSVC(kernel, alpha=0.5, **options).fit(X, LABELS[3])
    assert_array_equal(weighted.conformal_p_values(NEW), plain.conformal_p_values(NEW))
    weighted = LSSVR(kernel, alpha=2.0, **options).fit(X, X[:, 0] ** 2, sample_weight=weight)
    plain = LSSVR(kernel, alpha=0.5, **options).fit(X, X[:, 0] ** 2)
    for method in ("conformal", "studentised"):
        ends = (each.predict_interval(NEW, method=method) for each in (weighted, plain))
        assert_allclose(*ends, rtol=1e-8)


def test_class_weights_and_kernels_without_rows_are_refused():
    with pytest.raises(ValueError, match=r"class_weight.* Fit without weights"):
        LSSVC(class_weight="balanced").fit(X, LABELS[2]).predict_set(NEW)
    with pytest.raises(ValueError, match=r"kernel='precomputed'.* needs k\(x, x\)"):
        LSSVC("precomputed").fit(X @ X.T, LABELS[2]).predict_set(NEW @ X.T)


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 90, np.nan, "0.9", None], ids=repr)
def test_the_coverage_of_sets_lies_between_zero_and_one(coverage):
    with pytest.raises(ValueError, match=r"coverage=.* must .*between 0 and 1, for instance 0.9"):
        LSSVC().fit(X, LABELS[3]).predict_set(NEW, coverage)


def test_bad_calls_say_what_is_wrong():
    values, labels = LSSVR().fit(X, VALUES), LSSVC().fit(X, LABELS[3])
    with pytest.raises(ValueError, match="method='jackknife' is unknown; use one of"):
        values.predict_interval(NEW, method="jackknife")
    with pytest.raises(ValueError, match=r"confounds: method='conformal'.*jackknife\+"):
        values.predict_interval(NEW, confounds=NEW[:, 0], method="conformal")
    for X_new, message in ((NEW[:, 1:], "X has 2 features"), (NEW[:0], "0 sample"), (NEW[0], "1D array")):
        with pytest.raises(ValueError, match=message):
            labels.predict_set(X_new)
        with pytest.raises(ValueError, match=message):
            values.predict_interval(X_new, method="conformal")
