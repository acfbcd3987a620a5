"""Updates of the estimators as scikit-learn writes them: containers, names, weights, routing, searches."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import Ridge, SGDClassifier
from sklearn.utils.metadata_routing import get_routing_for_object

import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, FoldlessSearchCV
from foldless.model_selection import Optimizer
from support.online import (
    LABELS,
    NAMES,
    VALUES,
    X_NEW,
    D,
    N,
    W,
    X,
    all_outputs,
    assert_same,
    every_classifier,
    every_kind,
    fitted_on,
    targets,
)
from support.tolerances import assert_close


@every_classifier
def test_streams_as_scikit_learn_writes_them(kind):
    """classes in the first call, then batches in which classes may be missing; the score before each batch."""
    model, theirs = kind(gamma=0.2, alpha=0.3), SGDClassifier(random_state=0)
    classes = np.unique(LABELS[4])
    for start in range(0, N, 4):
        some = slice(start, start + 4)
        first = {"classes": classes} if start == 0 else {}
        model.partial_fit(X[some], LABELS[4][some], **first)
        theirs.partial_fit(X[some], LABELS[4][some], **first)
        np.testing.assert_array_equal(model.classes_, theirs.classes_)
        assert model.decision_function(X).shape == theirs.decision_function(X).shape
    assert_same(all_outputs(model), all_outputs(kind(gamma=0.2, alpha=0.3).fit(X, LABELS[4])))


@pytest.mark.parametrize("form", ["pandas", "polars"])
def test_names_of_features_are_those_of_the_first_rows(form):
    frame = (
        (lambda v, names: pd.DataFrame(v, columns=names))
        if form == "pandas"
        else (lambda v, names: pl.DataFrame(v, schema=names))
    )
    y = LABELS[3]
    model = LSSVC(gamma=0.2).partial_fit(frame(X[:20], NAMES), y[:20])
    if not hasattr(Ridge().fit(frame(X, NAMES), VALUES), "feature_names_in_"):
        pytest.skip("this scikit-learn does not read the names of this polars")
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame(X[20:22], NAMES[::-1]), y[20:22])
    for call in (lambda: copy.deepcopy(model).partial_fit(X[20:22], y[20:22]), lambda: model.predict(X_NEW)):
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            call()
    assert pickle.dumps(model) == before
    model.partial_fit(frame(X[20:22], NAMES), y[20:22]).forget([0])
    assert list(model.feature_names_in_) == NAMES


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "new", [np.asarray, sp.csr_array, sp.csc_matrix, np.ndarray.tolist], ids=["dense", "csr", "csc", "list"]
)
def test_new_rows_come_in_any_container(stored, new):
    model = LSSVC(gamma=0.2).fit(stored(X[:20]), LABELS[3][:20]).partial_fit(new(X[20:23]), LABELS[3][20:23].tolist())
    assert sp.issparse(model.X_fit_) == (stored is sp.csr_array)
    assert_same(all_outputs(model), all_outputs(LSSVC(gamma=0.2).fit(X[:23], LABELS[3][:23])))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_new_rows_take_the_precision_of_the_model(dtype):
    model = LSSVR(gamma=0.2).fit(X[:20].astype(dtype), VALUES[:20]).partial_fit(X[20:22], VALUES[20:22])
    model.partial_fit(X[22:24].astype(np.float32), VALUES[22:24].astype(np.float32)).partial_fit(
        np.ones((1, D), int), [[1, 2]]
    )
    assert model.X_fit_.dtype == model.dual_coef_.dtype == dtype
    rows = np.vstack([X[:22], X[22:24].astype(np.float32), np.ones((1, D))])
    values = np.vstack([VALUES[:22], VALUES[22:24].astype(np.float32), [[1, 2]]])
    expected = LSSVR(gamma=0.2).fit(rows.astype(dtype), values).predict(X_NEW)
    assert_close(model.predict(X_NEW), expected, rtol=1e-8 if dtype is np.float64 else 1e-4)


@every_kind
def test_weights_may_be_one_number_or_come_later(kind):
    model = kind(gamma=0.2).fit(X[:20], targets(kind, range(20)))
    model.partial_fit(X[20:22], targets(kind, [20, 21]), sample_weight=3.0).partial_fit(
        X[22:24], targets(kind, [22, 23])
    )
    w = np.where(np.isin(np.arange(24), [20, 21]), 3.0, 1.0)
    assert_same(all_outputs(model), all_outputs(kind(gamma=0.2).fit(X[:24], targets(kind, range(24)), sample_weight=w)))


@every_kind
def test_metadata_can_be_requested(kind):
    names = {"sample_weight", "confounds", "ids"} | ({"classes"} if kind is not LSSVR else set())
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            kind().set_partial_fit_request(**dict.fromkeys(names, True)).set_fit_request(sample_weight=True, ids=True)
        )
        model.set_score_request(sample_weight=False)
        routing = get_routing_for_object(model)
        assert {name for name, asked in routing.partial_fit.requests.items() if asked} == names
        assert {name for name, asked in routing.fit.requests.items() if asked} == {"sample_weight", "ids"}
        weighted = skl.cross_val_score(model.set_params(gamma=0.2), X, targets(kind), cv=3, params={"sample_weight": W})
    assert weighted.shape == (3,)


def updated(kind, **options):
    model = kind(gamma=0.2, alpha=0.3, **options).fit(X[:30], targets(kind, range(30)))
    return model.partial_fit(X[30:], targets(kind, range(30, N))).forget([0, 7])


@every_kind
def test_cross_validation_of_an_updated_model_is_that_of_its_parameters(kind):
    y, cv = targets(kind), skl.KFold(4, shuffle=True, random_state=0)
    model = updated(kind)
    before = pickle.dumps(model)
    np.testing.assert_array_equal(
        fl.cross_val_predict(model, X, y, cv=cv), fl.cross_val_predict(clone(model), X, y, cv=cv)
    )
    np.testing.assert_allclose(fl.cross_val_score(model, X, y, cv=cv), skl.cross_val_score(clone(model), X, y, cv=cv))
    if kind is not LSSVR:
        ours, plain = (
            fl.permutation_test_score(m, X, y, cv=cv, n_permutations=9, random_state=0) for m in (model, clone(model))
        )
        np.testing.assert_array_equal(ours[1], plain[1])
        assert ours[2] == plain[2]
    assert pickle.dumps(model) == before
    assert_same(all_outputs(model.forget([3])), all_outputs(updated(kind).forget([3])))


@every_kind
def test_estimators_of_cross_validation_learn_and_forget(kind):
    y = targets(kind)
    splits = list(skl.KFold(4, shuffle=True, random_state=0).split(X))
    found = fl.cross_validate(kind(gamma=0.2, alpha=0.3), X, y, cv=splits, return_estimator=True)["estimator"]
    for (train, test), model in zip(splits, found, strict=True):
        assert model.ids_ is None
        model.partial_fit(X[test[:3]], y[test[:3]]).forget([0, 5])
        rows = [*np.delete(train, [0, 5]), *test[:3]]
        assert_same(all_outputs(model), all_outputs(fitted_on(kind, rows)))
        assert model.unlearning_certificate().holds


@pytest.mark.parametrize(
    "options", [{}, {"method": Optimizer("gradient", max_iter=3, feature_scaling=True)}], ids=["grid", "gradient"]
)
@every_kind
def test_the_best_estimator_of_a_search_learns_and_forgets(kind, options):
    estimator = kind(gamma=0.2)
    grid = {} if options else {"param_grid": {"alpha": [0.1, 1.0], "gamma": [0.1, 0.3]}}
    best = FoldlessSearchCV(estimator, **grid, **options).fit(X[:30], targets(kind, range(30))).best_estimator_
    best.partial_fit(X[30:34], targets(kind, range(30, 34))).forget([2, 31])
    rows = np.delete(np.arange(34), [2, 31])
    gamma = best.kernel_.gamma
    assert_same(all_outputs(best), all_outputs(clone(best).set_params(gamma=gamma).fit(X[rows], targets(kind, rows))))
    assert best.unlearning_certificate().holds
