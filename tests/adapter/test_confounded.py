"""Refits with confounds: scores of all kinds, estimators that take none, and what is given back."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.model_selection as fl
from foldless import LSSVC, FoldlessSearchCV
from support.confounds import BINARY, C, X

FOLDS = StratifiedKFold(4)
SCORES = {"roc_auc": ("decision_function", roc_auc_score), "neg_log_loss": ("predict_proba", lambda *a: -log_loss(*a))}
pytestmark = pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")


@pytest.mark.parametrize("scoring", SCORES)
@pytest.mark.parametrize("step", [StandardScaler(), SelectKBest(k=2)], ids=["scaler", "a step that sees y"])
def test_scores_of_decisions_and_probabilities_equal_a_loop_by_hand(step, scoring):
    method, score = SCORES[scoring]
    last = LSSVC(gamma=0.3, calibration="sigmoid")
    expected = []
    for tr, te in FOLDS.split(X, BINARY):
        fitted, model = clone(step).fit(X[tr], BINARY[tr]), clone(last)
        model.fit(fitted.transform(X[tr]), BINARY[tr], confounds=C[tr])
        expected.append(score(BINARY[te], getattr(model, method)(fitted.transform(X[te]), confounds=C[te])))
    pipeline = make_pipeline(step, last)
    found = fl.cross_val_score(pipeline, X, BINARY, cv=FOLDS, scoring=scoring, confounds=C)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "around",
    [lambda model: GridSearchCV(model, {"alpha": [1.0, 2.0]}), CalibratedClassifierCV, BaggingClassifier],
    ids=["GridSearchCV", "CalibratedClassifierCV", "BaggingClassifier"],
)
def test_other_estimators_around_ours_take_no_confounds_and_are_refused(around):
    with pytest.raises(ValueError, match=r"would be refitted on every training part .* fit takes none"):
        fl.cross_val_score(around(LSSVC()), X, BINARY, confounds=C)


def test_searches_of_a_precomputed_kernel_take_confounds():
    grid = {"alpha": [0.5, 2.0]}
    search, on_rows = (FoldlessSearchCV(LSSVC(kernel), grid, cv=3) for kernel in ("precomputed", "linear"))
    found = fl.cross_val_score(search, X @ X.T, BINARY, cv=FOLDS, confounds=C)
    np.testing.assert_allclose(found, fl.cross_val_score(on_rows, X, BINARY, cv=FOLDS, confounds=C))


def test_estimators_given_back_are_those_of_the_caller():
    pipeline = make_pipeline(SelectKBest(k=2), LSSVC())
    for options in ({"confounds": C}, {"params": {"lssvc__confounds": C}}):
        result = fl.cross_validate(pipeline, X, BINARY, cv=FOLDS, return_estimator=True, **options)
        assert all(type(each) is Pipeline for each in result["estimator"])
