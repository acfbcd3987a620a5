"""Leave-one-out of balanced classes under a strong penalty, beside the truth and beside sets that keep the shares."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import log_loss

from foldless import LSSVC

REPEATS = 60


def simulated(alpha, n=40, seed=0):
    """Accuracy on new rows, by leave-one-out and stratified; log-loss of probabilities; how often it warned."""
    rng, y, new = np.random.default_rng(seed), np.arange(n) % 2, np.arange(2000) % 2
    found = []
    for _ in range(REPEATS):
        X, Z = (rng.normal(size=(len(each), 10)) for each in (y, new))
        X[:, 0] += y
        Z[:, 0] += new
        model = LSSVC("linear", alpha=alpha, calibration="sigmoid").fit(X, y)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            loo = model.loo_score_
        loss = log_loss(new, model.predict_proba(Z))
        found.append((model.score(Z, new), loo, model.stratified_loo_score_, loss, bool(said)))
    return np.mean(found, 0)


@pytest.mark.parametrize(("alpha", "least"), [(1e3, 0.35), (1e4, 1.0)])
def test_stratified_leave_one_out_is_right_where_leave_one_out_is_far_off(alpha, least):
    truth, loo, stratified, loss, warned = simulated(alpha)
    assert 0.58 < truth < 0.66
    assert loo < 0.35
    assert abs(stratified - truth) < 0.045  # a standard error of about 0.012
    assert loss < 0.68  # a constant has 0.693
    assert warned >= least


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_both_agree_and_nothing_is_said_under_a_weak_penalty(alpha):
    truth, loo, stratified, _, warned = simulated(alpha)
    assert abs(loo - truth) < 0.045
    assert abs(stratified - truth) < 0.045
    assert warned == 0
