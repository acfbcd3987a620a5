"""What has no closed form: whoever knows the reason raises it, and every public function makes of it what it should."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.model_selection as fl
from foldless import LSSVC, FoldlessSearchCV
from foldless._sklearn.adapters import TASKS, build_task
from foldless._sklearn.route import NoClosedForm, NoSharedP, Route
from foldless._sklearn.splits import check_leave_out, check_splits

REASON = "tilted=True bends the plane"
X = np.random.default_rng(0).normal(size=(24, 3))
Y = np.arange(24) % 2


class Tilted(RidgeClassifier):
    """A classifier that foldless can know, but not with every parameter."""

    def __init__(self, alpha=1.0, tilted=True):
        super().__init__(alpha=alpha)
        self.tilted = tilted


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Tell foldless of the class, with an adapter that refuses one parameter."""

    def adapter(estimator, X, y, sample_weight):
        if estimator.tilted:
            raise NoClosedForm(f"Tilted: {REASON}")
        return TASKS[RidgeClassifier](RidgeClassifier(alpha=estimator.alpha), X, y, sample_weight)

    monkeypatch.setitem(TASKS, Tilted, adapter)


def test_the_same_class_with_a_closed_form():
    result = fl.cross_validate(Tilted(tilted=False), X, Y, cv=4)
    assert result["path"].kind == "one fit"
    assert result["path"].holder in str(result["path"])
    assert_array_equal(result["test_score"], skl.cross_val_score(Tilted(), X, Y, cv=4))


CALLS = {
    "cross_validate": lambda: fl.cross_validate(Tilted(), X, Y, cv=4)["test_score"],
    "cross_val_score": lambda: fl.cross_val_score(Tilted(), X, Y, cv=4),
}


@pytest.mark.parametrize("name", CALLS)
def test_refits_say_why_at_the_line_of_the_caller(name):
    with pytest.warns(fl.RefitWarning, match=f"Tilted is refitted on every training part: Tilted: {REASON}") as caught:
        found = CALLS[name]()
    assert [warning.filename for warning in caught] == [__file__]
    assert_array_equal(found, skl.cross_val_score(Tilted(), X, Y, cv=4))


def test_predictions_are_refitted():
    with pytest.warns(fl.RefitWarning, match=REASON) as caught:
        found = fl.cross_val_predict(Tilted(), X, Y, cv=4)
    assert caught[0].filename == __file__
    assert_array_equal(found, skl.cross_val_predict(Tilted(), X, Y, cv=4))


def test_explain_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        route = fl.explain(Tilted(), X, Y, cv=4)
    assert route == fl.Route("refit", f"Tilted: {REASON}") == Route("refit", f"Tilted: {REASON}", "")
    assert str(route) == f"refit: Tilted: {REASON}"


def test_permutations_are_refitted():
    splits = list(skl.KFold(3).split(X))
    with pytest.warns(fl.RefitWarning, match=f"refitted for every permutation: Tilted: {REASON}") as caught:
        result = fl.permutation_test_score(Tilted(), X, Y, cv=splits, n_permutations=3)
    assert caught[0].filename == __file__
    assert (result.path.kind, result.path.reason) == ("refit", f"Tilted: {REASON}")
    assert result.score == skl.cross_val_score(clone(Tilted()), X, Y, cv=splits).mean()


@pytest.mark.parametrize(
    "call",
    [
        lambda: fl.leave_pair_out_auc(Tilted(), X, Y),
        lambda: fl.permutation_test_pattern(Tilted(), X, Y),
        lambda: FoldlessSearchCV(Tilted(), {"alpha": [1.0]}).fit(X, Y),
    ],
    ids=["pairs", "patterns", "search"],
)
def test_what_needs_a_closed_form_is_refused_with_the_reason(call):
    with pytest.raises(ValueError, match=REASON):
        call()


def test_a_pipeline_has_one_solve_a_training_part():
    """No refit is warned of: the model itself is solved as ever, behind steps that are fitted."""
    pipeline = make_pipeline(StandardScaler(), LSSVC())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        route = fl.cross_validate(pipeline, X, Y, cv=4)["path"]
    assert (route.kind, route.holder) == ("one P per fold", "")
    reason = "StandardScaler fitted on each training part, then one solve of LSSVC there"
    assert route == NoSharedP(f"{reason}; steps='once' would take one fit for all 4 parts").route


def test_splits_without_a_closed_form():
    task = build_task(RidgeClassifier(), X, Y).task
    for train, reason in (
        (np.array([0, 0, 1, 2]), "the training part of split 0 repeats rows"),
        (np.array([0, 2, 4]), "the training part of split 0 lacks a class"),
    ):
        with pytest.raises(NoClosedForm, match=reason):
            check_splits(task, [(train, np.array([3]))])
    rare = build_task(RidgeClassifier(), X, np.arange(24) == 0).task
    with pytest.raises(NoClosedForm, match="leaving out a row empties a class"):
        check_leave_out(rare)
