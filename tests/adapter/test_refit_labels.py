"""Refits see the labels themselves: class weights, columns and routed weights."""

import numpy as np
import pytest
import sklearn
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import foldless.model_selection as fl
from foldless import LSSVC
from support.cross_validation import CODES, KFDA, LABELS, WEIGHT, N, X, weights_for
from support.refits import held_out_rows
from support.tolerances import assert_close

ONE_TWO, AB = np.where(CODES > 0, 2, 1), np.where(CODES > 0, "b", "a")
TWICE = [(np.r_[train, train[0]], test) for train, test in skl.StratifiedKFold(3).split(X, ONE_TWO)]

SCALED = [make_pipeline(StandardScaler(), last) for last in (LSSVC("linear"), RidgeClassifier())]


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize("y", [ONE_TWO, AB], ids=["numbers", "strings"])
@pytest.mark.parametrize("estimator", [LSSVC(gamma=0.1), KFDA(gamma=0.1), RidgeClassifier(), *SCALED], ids=str)
def test_refits_weigh_the_classes_that_are_named(estimator, y):
    """scikit-learn numbers the labels for decisions; weights name the labels themselves."""
    weighted, first = clone(estimator), np.unique(y)[0]
    last = weighted[-1] if hasattr(weighted, "steps") else weighted
    last.set_params(class_weight={first: 10.0})
    for splits in (TWICE, list(skl.StratifiedKFold(3).split(X, y))):
        ours = fl.cross_val_predict(weighted, X, y, cv=splits, method="decision_function")
        assert_close(ours, held_out_rows(weighted, X, y, splits, "decision_function"))
        params = weights_for(estimator, True)
        ours = fl.cross_val_predict(weighted, X, y, cv=splits, method="decision_function", params=params)
        assert_close(ours, held_out_rows(weighted, X, y, splits, "decision_function", **params))


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_refits_for_probabilities_weigh_the_classes_that_are_named(method):
    for last in (LSSVC(gamma=0.1, calibration="sigmoid"), LogisticRegression()):
        estimator = last.set_params(class_weight={"a": 10.0})
        ours = fl.cross_val_predict(estimator, X, AB, cv=TWICE, method=method)
        assert_close(ours, held_out_rows(estimator, X, AB, TWICE, method))


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_columns_of_refits_that_lack_a_class_stay_in_order():
    splits = [(np.flatnonzero(CODES != 1), np.flatnonzero(CODES == 1))]
    splits.append(splits[0][::-1])
    model = LogisticRegression(class_weight={"ant": 10.0, "cat": 1.0}).fit(X[splits[0][0]], LABELS[splits[0][0]])
    expected = model.predict_proba(X[splits[0][1]])
    splits[1] = (np.arange(N), splits[1][1])
    with pytest.warns(RuntimeWarning, match="Number of classes in training fold"):
        ours = fl.cross_val_predict(model, X, LABELS, cv=splits, method="predict_proba")
    assert_close(ours[CODES == 1], np.insert(expected, 1, 0.0, axis=1))


@pytest.mark.filterwarnings("ignore::foldless.model_selection.RefitWarning")
def test_routed_weights_reach_refits_on_the_labels_themselves():
    with sklearn.config_context(enable_metadata_routing=True):
        last = LSSVC(gamma=0.1, class_weight={"a": 10.0}).set_fit_request(sample_weight=True)
        params = {"sample_weight": WEIGHT}
        for estimator in (last, make_pipeline(StandardScaler().set_fit_request(sample_weight=False), last)):
            ours = fl.cross_val_predict(estimator, X, AB, cv=TWICE, method="decision_function", params=params)
            assert_close(ours, held_out_rows(estimator, X, AB, TWICE, "decision_function", **params))
