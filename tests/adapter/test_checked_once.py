"""X and y are validated once a call, whatever is fitted, searched or left out: scikit-learn's checks are counted."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import validation

from foldless import LSSVC, FoldlessSearchCV, KernelFisherDiscriminant
from foldless.model_selection import (
    Optimizer,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    leave_pair_out_auc,
    nested_cross_validate,
    permutation_test_score,
    score_interval,
)

N = 48
VALUES = np.random.default_rng(0).normal(size=(N, 4))
NAMES = ["a", "b", "c", "d"]
X = pd.DataFrame(VALUES, columns=NAMES)
LABELS = np.where(np.arange(N) % 2, "yes", "no")
Y = pd.Series(LABELS, dtype=object)
GRID = {"alpha": [0.1, 1.0], "gamma": [0.1, 1.0]}
GRADIENT = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", max_iter=2))


@pytest.fixture
def counts(monkeypatch):
    """Numbers of checks of matrices and of columns, by all modules that have the function."""
    plain, seen = validation.check_array, {"X": 0, "y": 0}

    def counting(array, *args, **options):
        seen["y" if len(np.shape(array)) == 1 else "X"] += 1
        return plain(array, *args, **options)

    for name, module in list(sys.modules.items()):
        if name.startswith(("sklearn", "foldless")) and getattr(module, "check_array", None) is plain:
            monkeypatch.setattr(module, "check_array", counting)
    return seen


PIPELINE = FoldlessSearchCV(make_pipeline(StandardScaler(), LSSVC()), {"lssvc__alpha": [0.1, 1.0]})
CALLS = {
    "fit": lambda: LSSVC().fit(X, Y),
    "grid": lambda: FoldlessSearchCV(LSSVC(), GRID).fit(X, Y),
    "default search": lambda: FoldlessSearchCV(LSSVC()).fit(X, Y),
    "gradient": lambda: GRADIENT.fit(X, Y),
    "class by class": lambda: FoldlessSearchCV(KernelFisherDiscriminant(), GRID, share="none").fit(X, np.arange(N) % 3),
    "predictions": lambda: cross_val_predict(LSSVC(), X, Y),
    "scores": lambda: cross_val_score(LSSVC(), X, Y),
    "fitted estimators": lambda: cross_validate(LSSVC(), X, Y, return_estimator=True),
    "nested grid": lambda: nested_cross_validate(FoldlessSearchCV(LSSVC(), GRID), X, Y, return_estimator=True),
    "nested default": lambda: nested_cross_validate(FoldlessSearchCV(LSSVC()), X, Y),
    "nested gradient": lambda: nested_cross_validate(GRADIENT, X, Y, return_estimator=True),
    "permutations": lambda: permutation_test_score(LSSVC(), X, Y, n_permutations=3),
    "pairs": lambda: leave_pair_out_auc(LSSVC(), X, Y),
    "interval": lambda: score_interval(LSSVC(), X, Y, n_repeats=1),
    "interval of a search": lambda: score_interval(FoldlessSearchCV(LSSVC(), GRID), X, Y, n_repeats=1),
}


@pytest.mark.parametrize("call", CALLS)
def test_X_is_validated_once(call, counts):
    CALLS[call]()
    assert counts["X"] == 1


def test_a_pipeline_is_validated_by_its_steps_alone(counts):
    StandardScaler().fit_transform(X)
    by_the_step = counts["X"]
    PIPELINE.fit(X, LABELS)
    assert counts["X"] == 2 * by_the_step


@pytest.mark.parametrize("y", [Y, LABELS], ids=["objects", "strings"])
@pytest.mark.parametrize("search", [FoldlessSearchCV(LSSVC(), GRID), GRADIENT], ids=["grid", "gradient"])
def test_checks_of_y_do_not_grow_with_the_splits(search, y, counts):
    nested_cross_validate(search, X, y, cv=3)
    of_three = counts["y"]
    nested_cross_validate(search, X, y, cv=6)
    assert counts["y"] == 2 * of_three


def test_checks_of_y_do_not_grow_with_the_sets_of_an_interval(counts):
    score_interval(FoldlessSearchCV(LSSVC(), GRID), X, Y, n_repeats=1)
    once = counts["y"]
    list(StratifiedKFold(shuffle=True).split(X, Y))
    by_a_splitter = counts["y"] - once
    counts["y"] = 0
    score_interval(FoldlessSearchCV(LSSVC(), GRID), X, Y, n_repeats=3)
    assert counts["y"] == once + 2 * by_a_splitter


@pytest.mark.parametrize("search", [FoldlessSearchCV(LSSVC(), GRID), GRADIENT], ids=["grid", "gradient"])
def test_names_of_features_are_those_of_X_everywhere(search):
    fitted = search.fit(X, Y)
    assert_array_equal(fitted.feature_names_in_, NAMES)
    outer = nested_cross_validate(search, X, Y, cv=3, return_estimator=True)
    models = [fitted.best_estimator_, *outer.estimator]
    models += cross_validate(LSSVC(), X, Y, cv=3, return_estimator=True)["estimator"]
    for model in models:
        assert_array_equal(model.feature_names_in_, NAMES)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(X[NAMES[::-1]])
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            model.predict(VALUES)


def test_a_searched_pipeline_is_that_of_scikit_learn():
    best = PIPELINE.fit(X, Y).best_estimator_
    again = make_pipeline(StandardScaler(), LSSVC(alpha=PIPELINE.best_params_["lssvc__alpha"])).fit(X, Y)
    assert_array_equal(best.feature_names_in_, NAMES)
    assert [name for name, _ in best.steps] == [name for name, _ in again.steps]
    assert_array_equal(best.decision_function(X), again.decision_function(X))
