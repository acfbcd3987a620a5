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

import foldless._engine.readout.task as tasks
import foldless.model_selection as fl
from foldless import LSSVC, LSSVR, FoldlessSearchCV, KernelFisherDiscriminant
from foldless._engine.heldout.part import TrainingPart
from foldless._engine.heldout.solution import Solution
from foldless._engine.permutation.labelings import Solver
from foldless._engine.readout.codings import indicator
from support.confounds import BAD, BINARY, C_NEW, CODES, LABELS, NEW, VALUES, C, N, X, every_strategy
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
        options = {"groups": sites, "confounds": fl.Confounds(levels, in_score)}
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
    assert isinstance(part, TrainingPart) == (strategy == "part")
    with pytest.raises(ValueError, match="confounds: column 2"):
        model._loo().full_fit.held_out(np.array([[1, 2], [4, 5]]))


def test_estimators_without_confounds_refuse_them():
    search = FoldlessSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0]})
    for ask in (search.fit, functools.partial(fl.nested_cross_validate, search)):
        with pytest.raises(ValueError, match=r"confounds: fit of RidgeClassifier takes none\. Use LSSVC"):
            ask(X, BINARY, confounds=C)
    assert not hasattr(search, "best_params_")
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
    pipe, inside = make_pipeline(StandardScaler(), LSSVC()), fl.Confounds(C, in_score=True)
    with pytest.raises(ValueError, match="confounds: in_score=True is not possible here: Pipeline would be"):
        fl.cross_val_score(pipe, X, BINARY, confounds=inside)
    with pytest.raises(ValueError, match="LSSVC with in_score=True does not"):
        fl.cross_validate(LSSVC(), X, BINARY, confounds=inside, return_estimator=True)
    with pytest.raises(ValueError, match="Ridge with in_score=False does not"):
        fl.cross_validate(Ridge(), X, VALUES, confounds=C, return_estimator=True)
    search = FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]})
    for test in (functools.partial(fl.permutation_test_score, n_permutations=2), fl.nested_cross_validate):
        with pytest.raises(ValueError, match="confounds: in_score=True is not possible for a search"):
            test(search, X, BINARY, confounds=inside)
    with pytest.raises(ValueError, match="confounds: in_score=True is not possible for patterns"):
        fl.permutation_test_pattern(LSSVC("linear"), X, BINARY, confounds=inside)


def test_confounds_that_are_none_or_meant_for_functions_are_named():
    with pytest.raises(ValueError, match=r"confounds=Confounds\(None\): there are no confounds"):
        fl.Confounds(None, in_score=True)
    with pytest.raises(ValueError, match="confounds: in_score='yes' must be True or False"):
        fl.Confounds(C, in_score="yes")
    for estimator in (LSSVC(), FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]})):
        with pytest.raises(ValueError, match=r"is for the functions of foldless\.model_selection; give its values"):
            estimator.fit(X, BINARY, confounds=fl.Confounds(C))


LEVELS = indicator(np.arange(N) // 8, 4, float)[:, 1:]
CALLS = {
    "cross_val_score": lambda **options: fl.cross_val_score(LSSVC(gamma=0.1), X, BINARY, **options),
    "pipeline": lambda **options: fl.cross_val_score(make_pipeline(StandardScaler(), LSSVC()), X, BINARY, **options),
    "permutation": lambda **options: fl.permutation_test_score(LSSVC(gamma=0.1), X, BINARY, **options),
    "permuted search": lambda **options: fl.permutation_test_score(
        FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}), X, BINARY, **options
    ),
    "search": lambda cv, **options: FoldlessSearchCV(LSSVC(gamma=0.1), {"alpha": [1.0]}, cv=cv).fit(
        X, BINARY, **options
    ),
    "nested": lambda **options: fl.nested_cross_validate(
        FoldlessSearchCV(LSSVC(gamma=0.1), {"alpha": [1.0]}), X, BINARY, **options
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_training_part_that_does_not_determine_the_confounds_is_named_before_any_is_fitted(call, monkeypatch):
    fitted = []
    for kind in (Solution, Solver):
        monkeypatch.setattr(kind, "__init__", lambda *arguments, **options: fitted.append(arguments))
    sites = np.arange(N) // 8
    splits = [(np.flatnonzero(sites != k), np.flatnonzero(sites == k)) for k in (0, 2)]
    whole = np.arange(N)
    splits = [(whole[whole % 4 > 0], whole[whole % 4 == 0]), *splits]
    with pytest.raises(ValueError, match=r"training part of split 1: confounds: column 2 is a linear .*all but one"):
        CALLS[call](cv=PredefinedSplits(splits), confounds=LEVELS)
    with pytest.raises(ValueError, match=r"^confounds: column 3 is a linear combination of the intercept and"):
        CALLS[call](cv=PredefinedSplits(splits), confounds=np.column_stack([LEVELS, LEVELS.sum(1)]))
    with pytest.raises(ValueError, match=f"confounds: '{LABELS[0]}' is no number"):
        CALLS[call](cv=PredefinedSplits(splits), confounds=LABELS)
    assert not fitted


class PredefinedSplits:
    """A splitter that gives these splits."""

    def __init__(self, splits):
        self.splits = splits

    def split(self, X, y=None, groups=None):
        return iter(self.splits)

    def get_n_splits(self, X=None, y=None, groups=None):
        return len(self.splits)


def test_the_row_is_named_without_which_a_confound_is_not_determined():
    alone = np.zeros(N)
    alone[5] = 1.0
    for ask in (
        lambda: fl.cross_val_predict(LSSVC(gamma=0.1), X, BINARY, cv=skl.LeaveOneOut(), confounds=alone),
        lambda: FoldlessSearchCV(LSSVC(gamma=0.1), {"alpha": [0.1, 1.0]}).fit(X, BINARY, confounds=alone),
    ):
        with pytest.raises(ValueError, match=r"without row 5: confounds: column 0"):
            ask()


def test_confounds_given_twice_are_refused():
    pipe = make_pipeline(StandardScaler(), LSSVC())
    for estimator, params in ((LSSVC(), {"confounds": C}), (pipe, {"lssvc__confounds": C})):
        with pytest.raises(ValueError, match="given twice"):
            fl.cross_val_score(estimator, X, BINARY, confounds=C, params=params)
