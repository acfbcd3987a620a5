"""Cross-validation against scikit-learn's where that takes many refits: pairs, and probabilities of single rows."""

import pytest
from sklearn import model_selection as skl

from foldless import LSSVC, KernelFisherDiscriminant
from support.cross_validation import (
    BINARY,
    LABELS,
    MANY_REFITS,
    X,
    compare_predict,
    compare_splitter,
    everyone,
    weights_for,
)


@everyone
@pytest.mark.parametrize(("weighted", "splitter"), MANY_REFITS)
def test_cross_validation_equals_refits_for_every_splitter(estimator, y, splitter, weighted, monkeypatch):
    compare_splitter(estimator, y, splitter, weighted, monkeypatch)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["2 classes", "3 classes"])
@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_probabilities_of_single_rows_use_each_training_part_alone(calibration, y, kind, penalty, weighted):
    estimator = kind(gamma=0.1, calibration=calibration, penalty=penalty)
    compare_predict(estimator, X, y, cv=skl.LeaveOneOut(), params=weights_for(estimator, weighted))
