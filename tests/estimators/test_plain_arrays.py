"""Plain arrays skip scikit-learn's validation: nothing that it would have said or stored may be missing."""

import numpy as np
import pandas as pd
import pytest

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
LABELS = np.arange(30) % 3


@pytest.mark.parametrize("kind", [LSSVC, KernelFisherDiscriminant, LSSVR])
def test_a_plain_array_after_a_frame_leaves_no_names_of_features(kind):
    estimator = kind()
    estimator.fit(pd.DataFrame(X, columns=list("abc")), LABELS)
    assert list(estimator.feature_names_in_) == list("abc")
    estimator.fit(X[:, :2], LABELS)
    assert not hasattr(estimator, "feature_names_in_")
    assert estimator.n_features_in_ == 2
    with pytest.raises(ValueError, match="expecting 2 features"):
        estimator.predict(X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_plain_arrays_that_are_not_finite_are_refused(value):
    bad = X.copy()
    bad[4, 1] = value
    with pytest.raises(ValueError, match="Input X contains"):
        LSSVC().fit(bad, LABELS)
    values = np.random.default_rng(5).normal(size=30)
    values[3] = value
    with pytest.raises(ValueError, match="Input y contains"):
        LSSVR().fit(X, values)


def test_large_numbers_whose_sum_overflows_are_finite():
    large = np.abs(X) / np.abs(X).max() * 1e308
    large += 1e307
    with np.errstate(over="ignore"):
        assert not np.isfinite(large.sum())
    model = LSSVC("cosine").fit(large, LABELS)
    assert np.isfinite(model.decision_function(large)).all()


@pytest.mark.parametrize("empty", [np.empty((0, 3)), np.empty((30, 0))])
def test_plain_arrays_without_rows_or_features_are_refused(empty):
    with pytest.raises(ValueError, match="Found array with 0"):
        LSSVC().fit(empty, LABELS[: len(empty)])


def test_values_in_the_place_of_labels_are_told():
    with pytest.raises(ValueError, match="Unknown label type"):
        LSSVC().fit(X, np.random.default_rng(5).normal(size=30))
    with pytest.warns(UserWarning, match="greater than 50%"):
        LSSVC().fit(X, np.arange(30) % 20)


def test_lengths_that_differ_are_told():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LSSVC().fit(X, LABELS[:-1])
