"""Confounds that cannot be used are refused with an error that names them."""

import functools
import re

import numpy as np
import pytest
from sklearn import model_selection as skl
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import foldless.model_selection as fl
import foldless.readout.task as tasks
from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.estimators import OneAgainstAllClassifier
from foldless.heldout.part import Part
from foldless.readout.codings import indicator
from support.confounds import BAD, BINARY, C_NEW, CODES, NEW, VALUES, C, N, X, every_strategy
from support.parts import TrainingParts


@pytest.mark.parametrize(("confounds", "message"), BAD)
@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant, LSSVR])
def test_bad_confounds_are_refused(kind, confounds, message):
    y = VALUES if kind is LSSVR else BINARY
    with pytest.raises(ValueError, match=message):
        kind(gamma=0.1).fit(X, y, confounds=confounds)
    with pytest.raises(ValueError, match=message):
        fl.cross_val_predict(kind(gamma=0.1), X, y, cv=skl.LeaveOneOut(), confounds=confounds)
    with pytest.raises(ValueError, match=re.sub(r"column \d+", r"column \\d+", message)):
        fl.cross_val_predict(make_pipeline(StandardScaler(), kind(gamma=0.1)), X, y, confounds=confounds)


def test_fit_that_fails_on_confounds_keeps_the_earlier_model():
    model = LSSVC(gamma=0.1).fit(X, BINARY, confounds=C)
    before = model.decision_function(NEW)
    with pytest.raises(ValueError, match="column 0"):
        model.fit(X, BINARY, confounds=np.ones(N))
    np.testing.assert_array_equal(model.decision_function(NEW), before)


@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant, LSSVR])
def test_bad_confounds_of_new_rows_are_refused(kind):
    y = VALUES if kind is LSSVR else BINARY
    plain, model = kind(gamma=0.1).fit(X, y), kind(gamma=0.1).fit(X, y, confounds=C)
    with pytest.raises(ValueError, match=r"confounds: this .* was fitted without"):
        plain.predict(NEW, confounds=C_NEW)
    with pytest.raises(ValueError, match="confounds has 1 columns; the model was fitted with 2"):
        model.predict(NEW, confounds=C_NEW[:, 0])
    with pytest.raises(ValueError, match="confounds has 3 rows and X has 7"):
        model.predict(NEW, confounds=C_NEW[:3])
    with pytest.raises(AttributeError, match="confound_coef_ exists only after"):
        plain.confound_coef_  # noqa: B018
    if kind is LSSVR:
        with pytest.raises(ValueError, match="confounds has 1 columns"):
            model.predict_interval(NEW, confounds=C_NEW[:, 0])


@every_strategy
def test_training_part_without_rows_of_a_confound_level_is_refused(strategy, monkeypatch):
    """A site whose rows are all held out has no coefficient; rounding must not invent one."""
    monkeypatch.setattr(tasks, "TrainingParts", functools.partial(TrainingParts, strategy=strategy))
    sites = np.arange(N) // 8
    levels = indicator(sites, 4, float)[:, 1:]
    for in_score in (False, True):
        options = {"groups": sites, "confounds": levels, "confounds_in_score": in_score}
        with pytest.raises(ValueError, match=r"confounds: column \d is a linear .* every level"):
            fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, cv=skl.LeaveOneGroupOut(), **options)
    alone = np.zeros(N)
    alone[5] = 1.0  # the indicator of one row
    model = LSSVC(gamma=0.1).fit(X, BINARY, confounds=np.column_stack([C, alone]))
    with pytest.raises(ValueError, match="confounds: column 2"):
        model.loo_decision_function()
    part = model._loo().part(np.arange(1, N))
    with pytest.raises(ValueError, match="confounds: column 2"):
        part.loo()
    assert isinstance(part, Part) == (strategy == "part")
    with pytest.raises(ValueError, match="confounds: column 2"):
        model._loo().whole.batch(np.array([[1, 2], [4, 5]]))


def test_estimators_without_confounds_refuse_them():
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]})
    with pytest.raises(TypeError, match="confounds"):
        search.fit(X, BINARY, confounds=C)
    with pytest.raises(TypeError, match="confounds"):
        OneAgainstAllClassifier([("no", LSSVC()), ("yes", LSSVC())]).fit(X, BINARY, confounds=C)
    for estimator in (
        search,
        SVC(),
        make_pipeline(StandardScaler(), Ridge()),
        RidgeClassifier(class_weight="balanced"),
    ):
        with pytest.raises(ValueError, match=r"confounds: .* would be refitted .* Use LSSVC, LSSVR, KernelFisher"):
            fl.cross_val_score(estimator, X, CODES, confounds=C)
        with pytest.raises(ValueError, match=r"confounds: .* would be refitted"):
            fl.explain(estimator, X, CODES, confounds=C)


def test_confounds_in_score_is_refused_where_it_cannot_be_done():
    pipe = make_pipeline(StandardScaler(), LSSVC())
    with pytest.raises(ValueError, match="confounds_in_score=True: Pipeline would be refitted"):
        fl.cross_val_score(pipe, X, BINARY, confounds=C, confounds_in_score=True)
    with pytest.raises(ValueError, match="confounds_in_score=True: there are no confounds"):
        fl.cross_val_score(LSSVC(), X, BINARY, confounds_in_score=True)
    for options in ({"return_estimator": True}, {"scoring": lambda estimator, X, y: estimator.score(X, y)}):
        with pytest.raises(ValueError, match="LSSVC with confounds_in_score=True does not"):
            fl.cross_validate(LSSVC(), X, BINARY, confounds=C, confounds_in_score=True, **options)
        with pytest.raises(ValueError, match="Ridge with confounds_in_score=False does not"):
            fl.cross_validate(Ridge(), X, VALUES, confounds=C, **options)


def test_confounds_given_twice_are_refused():
    pipe = make_pipeline(StandardScaler(), LSSVC())
    for estimator, params in ((LSSVC(), {"confounds": C}), (pipe, {"lssvc__confounds": C})):
        with pytest.raises(ValueError, match="given twice"):
            fl.cross_val_score(estimator, X, BINARY, confounds=C, params=params)
