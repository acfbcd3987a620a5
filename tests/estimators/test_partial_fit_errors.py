"""A call of partial_fit or forget that is wrong says what is wrong and leaves the model as it was."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from support.online import (
    IDS,
    LABELS,
    VALUES,
    X_NEW,
    C,
    D,
    N,
    X,
    all_outputs,
    assert_same,
    every_classifier,
    every_kind,
    every_penalty,
    fitted_on,
    gram,
    rows_of,
    targets,
    updated_model,
)
from support.tolerances import assert_close


def assert_untouched(model, twin, kind):
    """The model is what its twin is, to which nothing happened, and takes the same way from here."""
    assert pickle.dumps(model) == pickle.dumps(twin)
    assert_same(all_outputs(model), all_outputs(twin))
    for each in (model, twin):
        each.partial_fit(X[[40]], targets(kind, [40]), **({"ids": ["new"]} if each.ids_ else {})).forget([0, 3])
    assert_same(all_outputs(model), all_outputs(twin))
    expected = all_outputs(fitted_on(kind, [1, 2, *range(4, 20), 40]))
    assert_same(all_outputs(model) | {"ids_": None}, expected | {"ids_": None})


def wrong_calls(kind):
    """Calls that must fail, with what they say."""
    y = targets(kind)
    nan = np.where(np.arange(D) == 2, np.nan, X[:2])

    def learn(*args, **options):
        return lambda model: model.partial_fit(*args, **options)

    def forget(*args, **options):
        return lambda model: model.forget(*args, **options)

    odd = [np.nan, 1.0] if kind is LSSVR else [0.5, 1.7]
    return {
        "features": (learn(X[:2, :3], y[:2]), "X has 3 features, but .* is expecting 4 features"),
        "NaN": (learn(nan, y[:2]), "X contains NaN"),
        "infinity": (learn(sp.csr_array(np.where(np.isnan(nan), np.inf, nan)), y[:2]), "X contains infinity"),
        "one dimension": (learn(X[0], y[:1]), "Expected 2D array, got 1D"),
        "no rows": (learn(X[:0], y[:0]), "0 sample"),
        "no y": (learn(X[:2], None), "y"),
        "y too short": (learn(X[:2], y[:1]), "inconsistent numbers of samples"),
        "odd y": (learn(X[:2], odd), "y contains NaN" if kind is LSSVR else "Unknown label type: continuous"),
        "y of words or numbers": (
            learn(X[:2], ["a", "b"] if kind is LSSVR else [1, 2]),
            "y must hold numbers|different kinds",
        ),
        "y in columns": (learn(X[:2], np.ones((2, 2))), r"y has shape \(2, 2\)|1d array"),
        "negative weights": (learn(X[:2], y[:2], sample_weight=[1.0, -1.0]), r"sample_weight .*negative values"),
        "weights too short": (learn(X[:2], y[:2], sample_weight=[1.0]), r"sample_weight .* 2 new rows.*shape \(1,\)"),
        "weights in columns": (learn(X[:2], y[:2], sample_weight=np.ones((2, 1))), r"sample_weight .*shape \(2, 1\)"),
        "weights of NaN": (learn(X[:2], y[:2], sample_weight=[np.nan, 1.0]), "sample_weight contains NaN"),
        "confounds": (learn(X[:2], y[:2], confounds=C[:2]), "confounds: .* was fitted without"),
        "ids": (learn(X[:2], y[:2], ids=[1, 2]), "ids: the rows so far have none; give ids from the first call"),
        "out of range": (forget([3, 20]), "indices: 20 out of range; the model has rows 0 to 19"),
        "negative": (forget([-1]), "indices: -1 out of range"),
        "twice": (forget([4, 4, 2]), "indices: 4 occur more than once"),
        "fractions": (forget([1.0]), "indices must be integers or a boolean mask; found .*float64"),
        "names": (forget(["p01"]), "indices must be integers or a boolean mask"),
        "a table": (forget([[1], [2]]), r"one list of positions; found shape \(2, 1\)"),
        "a short mask": (forget(np.ones(19, bool)), r"a mask of shape \(19,\) was given for 20 rows"),
        "neither": (forget(), "give either indices .* or ids="),
        "both": (forget([1], ids=[1]), "give either indices .* or ids="),
        "unknown ids": (forget(ids=[1]), "ids: the rows of this model have none"),
        "everything": (forget(np.arange(20)), "would leave none of the 20 rows; make a new estimator"),
    }


@pytest.mark.many_cases
@every_kind
@pytest.mark.parametrize("name", wrong_calls(LSSVC))
def test_wrong_calls_say_what_is_wrong_and_change_nothing(kind, name):
    call, message = wrong_calls(kind)[name]
    model = updated_model(kind)
    with pytest.raises((ValueError, TypeError), match=message):
        call(model)
    assert_untouched(model, updated_model(kind), kind)


IDS_ERRORS = {
    "unknown": (lambda m: m.forget(ids=["p01", "p77"]), "ids: no row of the model has 'p77'"),
    "gone": (lambda m: m.forget(ids=["p43"]), "ids: no row of the model has 'p43'"),
    "twice": (lambda m: m.forget(ids=["p01", "p01"]), "ids: 'p01' occur"),
    "unhashable": (lambda m: m.forget(ids=[["p01"]]), "hashable"),
    "everything": (lambda m: m.forget(ids=m.ids_), "would leave none"),
    "missing": (
        lambda m: m.partial_fit(X[:1], targets(type(m), [0])),
        "ids: the rows so far have ids; give ids for the new rows",
    ),
    "taken": (
        lambda m: m.partial_fit(X[:1], targets(type(m), [0]), ids=["p04"]),
        "ids: 'p04' belong to rows of the model",
    ),
    "repeated": (
        lambda m: m.partial_fit(X[:2], targets(type(m), [0, 1]), ids=["q", "q"]),
        "ids: 'q' occur more than once",
    ),
    "too few": (
        lambda m: m.partial_fit(X[:2], targets(type(m), [0, 1]), ids=["q"]),
        "ids has 1 entries and X has 2 rows",
    ),
    "lists": (lambda m: m.partial_fit(X[:1], targets(type(m), [0]), ids=[["q"]]), "ids must be hashable"),
}


@every_kind
@pytest.mark.parametrize("name", IDS_ERRORS)
def test_wrong_ids_change_nothing(kind, name):
    call, message = IDS_ERRORS[name]
    model = updated_model(kind, ids=IDS["strings"])
    with pytest.raises(ValueError, match=message):
        call(model)
    assert_untouched(model, updated_model(kind, ids=IDS["strings"]), kind)


CLASS_ERRORS = {
    "one class is left": (
        lambda m: m.forget(rows_of("ash", 2, 20)),
        {"n_classes": 2},
        "y holds one class only .*beech",
    ),
    "classes lacks a label": (
        lambda m: m.partial_fit(X[:2], ["ash", "fir"], classes=["ash"]),
        {},
        r"classes=\['ash'\] lacks 'fir'",
    ),
    "classes of another kind": (
        lambda m: m.partial_fit(X[:1], ["ash"], classes=[0, 1]),
        {},
        r"different kinds: .ash. and 0;",
    ),
    "a class without weight": (
        lambda m: m.forget(rows_of("ash", limit=20)),
        {"class_weight": {"ash": 2.0}},
        "class_weight names .*ash",
    ),
}
FISHER_ERRORS = {
    "priors": (
        lambda m: m.partial_fit(X[:1], ["fir"]),
        {"priors": [0.2, 0.3, 0.5]},
        "priors=.* must be 4 positive numbers",
    ),
    "axes": (
        lambda m: m.forget(rows_of("ash", limit=20)),
        {"n_components": 2},
        "n_components=2 must be .* from 1 to 1",
    ),
}


@every_classifier
@pytest.mark.parametrize("name", [*CLASS_ERRORS, *FISHER_ERRORS])
def test_classes_that_do_not_fit_change_nothing(kind, name):
    if kind is LSSVC and name in FISHER_ERRORS:
        pytest.skip("LSSVC has no such parameter")
    call, given, message = (CLASS_ERRORS | FISHER_ERRORS)[name]
    model, twin = updated_model(kind, **given), updated_model(kind, **given)
    with pytest.raises(ValueError, match=message):
        call(model)
    assert pickle.dumps(model) == pickle.dumps(twin)
    assert_same(all_outputs(model.forget([5])), all_outputs(twin.forget([5])))


@every_classifier
def test_balanced_weights_are_refused(kind):
    model = kind(gamma=0.2, class_weight="balanced")
    with pytest.raises(ValueError, match=r"class_weight='balanced' changes the weight of every row.*give numbers"):
        model.partial_fit(X, LABELS[3])
    assert not hasattr(model, "classes_")
    model.fit(X, LABELS[3])
    before = pickle.dumps(model)
    for call in (lambda: model.partial_fit(X[:1], ["ash"]), lambda: model.forget([0])):
        with pytest.raises(ValueError, match="class_weight='balanced'"):
            call()
    assert pickle.dumps(model) == before


CHANGES = {
    "alpha": 0.7,
    "gamma": 0.5,
    "kernel": "laplacian",
    "penalty": "coef",
    "fit_intercept": False,
    "calibration": "sigmoid",
    "class_weight": {"ash": 2.0},
    "threshold": "fisher",
    "n_components": 1,
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_parameters_are_refused_until_they_are_what_they_were(name):
    model, twin = updated_model(KernelFisherDiscriminant), updated_model(KernelFisherDiscriminant)
    old = model.get_params()[name]
    model.set_params(**{name: CHANGES[name]})
    for call in (lambda: model.partial_fit(X[:1], ["ash"]), lambda: model.forget([0])):
        with pytest.raises(ValueError, match=f"{name}: changed since the model was fitted"):
            call()
    model.set_params(**{name: old})
    assert_untouched(model, twin, KernelFisherDiscriminant)
    equal = copy.deepcopy(old) if name != "gamma" else np.float64(old)
    model.set_params(**{name: equal}).forget([0])


def test_changed_gammas_of_features_are_noticed():
    gammas = np.array([0.1, 0.2, 0.3, 0.4])
    model = LSSVR(gamma=gammas).fit(X, VALUES)
    model.set_params(gamma=gammas.tolist()).forget([0])
    with pytest.raises(ValueError, match="gamma: changed"):
        model.set_params(gamma=gammas * 2).forget([0])


@every_kind
def test_a_failed_first_call_leaves_an_unfitted_model(kind):
    model = kind(gamma=0.2)
    bad = {"labels": (X[:3], ["a"] * 3), "weights": (X[:3], list("aba"))}
    if kind is LSSVR:
        bad = {"NaN": (X[:2], [np.nan, 1.0])}
    for data, y in bad.values():
        with pytest.raises(ValueError):
            model.partial_fit(data, y, sample_weight=[0.0] * len(y) if y == list("aba") else None)
    assert vars(model).keys() == kind().get_params().keys()
    for call in (
        lambda: model.forget([0]),
        lambda: model.drift_,
        model.unlearning_certificate,
        model.forgetting_effects,
    ):
        with pytest.raises(NotFittedError):
            call()


def test_a_failed_fit_keeps_the_model():
    model = updated_model(LSSVR)
    with pytest.raises(ValueError):
        model.fit(X[:, :2], np.full(N, np.nan))
    assert_untouched(model, updated_model(LSSVR), LSSVR)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_probabilities_wait_for_enough_rows(calibration):
    y = np.array(list("aaabbbbbbbbb"))
    model = LSSVC(gamma=0.2, calibration=calibration).fit(X[:12], y).forget([0, 1])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"calibration='.*' needs two classes with at least two rows each"):
            model.predict_proba(X_NEW)
    plain = LSSVC(gamma=0.2).fit(X[2:12], y[2:])  # decisions need no calibration
    assert_close(model.decision_function(X_NEW), plain.decision_function(X_NEW))
    assert_close(model.loo_decision_function(), plain.loo_decision_function())
    model.partial_fit(X[:2], y[:2])
    rows = [*range(2, 12), 0, 1]
    assert_same(all_outputs(model), all_outputs(LSSVC(gamma=0.2, calibration=calibration).fit(X[rows], y[rows])))


@pytest.mark.parametrize("updated", [False, True])
@every_penalty
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_without_which_confounds_are_not_determined_stay(updated, penalty, kernel):
    confound = (np.arange(N) == 7).astype(float)  # one row alone tells its coefficient

    def make():
        return LSSVR(kernel, gamma=0.2, penalty=penalty).fit(X[:20], VALUES[:20, 0], confounds=confound[:20])

    model, twin = make(), make()
    for each in (model, twin) if updated else ():
        each.partial_fit(X[20:22], VALUES[20:22, 0], confounds=confound[20:22]).forget([0])
    with pytest.raises(ValueError, match="confounds: column 0 is a linear combination"):
        model.forget([7 - updated])
    assert pickle.dumps(model) == pickle.dumps(twin)
    assert_same(all_outputs(model.forget([9]), loo=()), all_outputs(twin.forget([9]), loo=()))


def test_confounds_must_come_with_new_rows():
    model = LSSVR(gamma=0.2).fit(X[:20], VALUES[:20], confounds=C[:20])
    before = pickle.dumps(model)
    for given, message in (
        (None, "confounds: the model was fitted with 2; give"),
        (C[:1, :1], "confounds has 1 columns"),
        (C[:2], "confounds has 2 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X[[30]], VALUES[[30]], confounds=given)
    assert pickle.dumps(model) == before


@every_kind
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_of_weight_zero_cannot_be_all_that_is_left(kind, kernel):
    given = {} if kind is LSSVR else {"classes": ["ash", "beech", "cedar"]}

    def make():
        return kind(kernel, gamma=0.2).partial_fit(
            X[:12], targets(kind, range(12)), sample_weight=[1.0] * 3 + [0.0] * 9, **given
        )

    model = make()
    with pytest.raises(ValueError, match="weight"):
        model.forget([0, 1, 2])
    assert pickle.dumps(model) == pickle.dumps(make())
    with pytest.raises(ValueError, match="weight"):
        kind(kernel, gamma=0.2).partial_fit(X[:2], targets(kind, [0, 1]), sample_weight=[0.0, 0.0], **given)


@every_kind
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gram(X[20:22], X[:20]), r"X has shape \(2, 20\).*kernel='precomputed', 2 new rows.*shape \(2, 22\)"),
        (np.ones((2, 23)), r"shape \(2, 22\)"),
        (
            np.hstack([gram(X[20:22], X[:20]), [[1.0, 0.5], [0.2, 1.0]]]),
            "precomputed kernel of the new rows.*symmetric",
        ),
        (np.full((2, 22), np.nan), "X contains NaN"),
    ],
    ids=["old", "wide", "unsymmetric", "NaN"],
)
def test_precomputed_kernels_that_do_not_fit_change_nothing(kind, data, message):
    def make():
        return kind("precomputed").fit(gram(X[:20], X[:20]), targets(kind, range(20)))

    model = make()
    with pytest.raises(ValueError, match=message):
        model.partial_fit(data, targets(kind, [20, 21]))
    with pytest.raises(ValueError, match="y"):
        model.partial_fit(gram(X[20:22], X[:22]), targets(kind, [20, 21, 22]))
    assert pickle.dumps(model) == pickle.dumps(make())
    assert model.n_features_in_ == 20
