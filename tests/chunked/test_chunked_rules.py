"""Probabilities and cuts by leave-one-out scores, fitted in chunks, equal those of refits in memory."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from foldless import LSSVC, KernelFisherDiscriminant, chunked
from foldless._engine.readout.calibration import fit_calibration
from foldless._engine.readout.ranking import best_cut
from foldless.chunked.rows import CheckedRows
from foldless.chunked.survey import survey_of
from foldless.kernels import Nystroem, RandomFeatures
from support.refits import refit
from support.tolerances import assert_close

N = 241
SMOOTH = {"kernel": RandomFeatures("rbf", 12), "gamma": 0.3}


def data_of(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3)) + 2
    if n_classes == 2:
        return X, np.where(X[:, 0] + X[:, 1] ** 2 / 4 + rng.normal(size=N) > 3.4, "yes", "no")
    return X, 3 + (X[:, 0] > 2) + 2 * (X[:, 1] + rng.normal(size=N) > 2.4)


def weights_of(weighted):
    return np.random.default_rng(1).integers(0, 4, N) / 2 if weighted else None


MODELS = {
    "LSSVC": (LSSVC(alpha=0.5, **SMOOTH), 2),
    "LSSVC class weights": (LSSVC(class_weight={"no": 2.0, "yes": 0.5}, **SMOOTH), 2),
    "LSSVC no intercept": (LSSVC(fit_intercept=False, **SMOOTH), 2),
    "LSSVC classes": (LSSVC(alpha=0.5, **SMOOTH), 4),
    "KFDA": (KernelFisherDiscriminant(**SMOOTH), 2),
    "KFDA loo": (KernelFisherDiscriminant(threshold="loo", **SMOOTH), 2),
    "KFDA priors": (KernelFisherDiscriminant(threshold="centroid", priors=[0.2, 0.8], **SMOOTH), 2),
    "KFDA classes": (KernelFisherDiscriminant(alpha=0.2, threshold="loo", **SMOOTH), 4),
    "KFDA class weights": (KernelFisherDiscriminant(class_weight={3: 2.0}, **SMOOTH), 4),
}

pytestmark = pytest.mark.filterwarnings("ignore:calibration='isotonic' of")


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_probabilities_of_the_model_and_of_folds_equal_refits(name, weighted, calibration):
    model, n_classes = MODELS[name]
    model = clone(model).set_params(calibration=calibration)
    X, y = data_of(n_classes)
    w = weights_of(weighted)
    found = {"fold": np.empty(N, int), "decision": np.empty((N, 4)[: 1 + (n_classes > 2)])}
    found["probability"] = np.empty((N, n_classes))
    data = chunked.arrays(X, y, sample_weight=w, rows=50)
    result = chunked.cross_validate(model, data, cv=4, loo=name != "KFDA loo", predictions=found)
    whole = refit(model, X, y, slice(None), sample_weight=w)
    assert_close(result.estimator.predict_proba(X), whole.predict_proba(X))
    assert_close(result.estimator.decision_function(X), whole.decision_function(X))
    for fold in range(4):
        test = found["fold"] == fold
        fitted = refit(model, X, y, ~test, sample_weight=w)
        assert_close(found["probability"][test], fitted.predict_proba(X[test]))
        assert_close(found["decision"][test], fitted.decision_function(X[test]))
    assert result.n_scored == (N if w is None else np.count_nonzero(w))
    assert f"leave-one-out scores of {result.n_scored} rows" in str(result)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [0.0, 1.5])
def test_cuts_of_the_model_and_of_folds_equal_refits(weighted, share):
    """Another share of the classes moves the cut away from 0."""
    X, y = data_of(2)
    y = np.where(X[:, 0] + X[:, 1] ** 2 / 4 + np.random.default_rng(3).normal(size=N) > 3 + share, "yes", "no")
    w, model = weights_of(weighted), KernelFisherDiscriminant(threshold="loo", alpha=0.3, **SMOOTH)
    found = {"fold": np.empty(N, int), "decision": np.empty(N), "prediction": np.empty(N, "<U3")}
    data = chunked.arrays(X, y, sample_weight=w, rows=60)
    result = chunked.cross_validate(model, data, cv=3, loo=False, predictions=found)
    whole = refit(model, X, y, slice(None), sample_weight=w)
    assert_close(result.estimator.decision_function(X), whole.decision_function(X))
    cuts = [whole._rule.cut]
    for fold in range(3):
        test = found["fold"] == fold
        fitted = refit(model, X, y, ~test, sample_weight=w)
        cuts.append(fitted._rule.cut)
        assert_close(found["decision"][test], fitted.decision_function(X[test]))
        assert_array_equal(found["prediction"][test], fitted.predict(X[test]))
        assert result.test_score[fold] == accuracy_score(y[test], fitted.predict(X[test]))
    assert len({round(cut, 12) for cut in cuts}) > 1
    assert result.loo_score is None


def test_landmarks_of_each_training_part_have_their_own_rules():
    X, y = data_of(2)
    kernel = Nystroem("rbf", 12, landmarks="uniform", per_fold=True)
    model = KernelFisherDiscriminant(kernel, threshold="loo", calibration="sigmoid")
    found = {"fold": np.empty(N, int), "decision": np.empty(N), "probability": np.empty((N, 2))}
    chunked.cross_validate(model, chunked.arrays(X, y, rows=60), cv=3, loo=False, sample=N, predictions=found)
    for fold in range(3):
        test = found["fold"] == fold
        fitted = refit(model, X, y, ~test)
        assert_close(found["decision"][test], fitted.decision_function(X[test]))
        assert_close(found["probability"][test], fitted.predict_proba(X[test]))


@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")
@pytest.mark.parametrize(
    ("name", "shift", "weighted"),
    [("LSSVC", 1.2, False), ("LSSVC classes", 1.2, True), ("KFDA", 1.2, False), ("KFDA classes", 0.6, True)],
)
def test_scores_that_point_away_from_labels_are_stratified(name, shift, weighted):
    model, n_classes = MODELS[name]
    n, rng = 40, np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X, w = rng.normal(size=(n, 3)) + shift * y[:, None], rng.integers(1, 4, n) / 2 if weighted else None
    model = clone(model).set_params(calibration="sigmoid", alpha=1e3)
    fitted = refit(model, X, y, slice(None), sample_weight=w)
    scores = fitted._fitted_task.loo_scores(fitted._loo().full_fit)
    plain = fit_calibration("sigmoid", scores, y, n_classes, np.ones(n) if w is None else w)
    assert not plain.known
    result = chunked.cross_validate(model, chunked.arrays(X, y, sample_weight=w, rows=15), cv=None)
    assert_close(result.estimator.predict_proba(X), fitted.predict_proba(X))
    assert np.abs(plain.proba(fitted.decision_function(X)) - fitted.predict_proba(X)).max() > 1e-2


@pytest.mark.filterwarnings("ignore::foldless._engine.heldout.caution.HugePenaltyWarning")
def test_strata_that_hold_all_rows_of_a_class_say_nothing():
    """Its decisions have no size there."""
    X, y = np.random.default_rng(0).normal(size=(41, 3)), np.append(np.arange(40) % 3, 3)
    model = KernelFisherDiscriminant(calibration="sigmoid", **{**SMOOTH, "alpha": 1e3})
    p = refit(model, X, y, slice(None)).predict_proba(X)
    assert np.isfinite(p).all()
    assert_close(chunked.cross_validate(model, chunked.arrays(X, y), cv=None).estimator.predict_proba(X), p)


def test_the_order_of_chunks_and_their_sizes_do_not_matter(monkeypatch):
    X, y = data_of(4)
    monkeypatch.setattr("foldless.chunked.gather.ROWS_TOGETHER", 1)
    model = KernelFisherDiscriminant(calibration="isotonic", **SMOOTH)
    first, *others = [
        chunked.cross_validate(model, chunked.arrays(X, y, rows=rows), cv=None, sample=100).estimator.predict_proba(X)
        for rows in (7, 50, N)
    ]
    for other in others:
        assert_close(other, first)


def test_fewer_rows_than_all_are_those_of_the_sample():
    X, y = data_of(2)
    model = KernelFisherDiscriminant(threshold="loo", calibration="sigmoid", **SMOOTH)
    result = chunked.cross_validate(model, chunked.arrays(X, y, rows=50), cv=None, loo=False, sample=90)
    sample = survey_of(CheckedRows(X, y, None, None, None, np.arange(N)), True, 90, 0).sample.numbers
    whole = refit(model, X, y, slice(None))
    assert result.n_scored == len(sample) == 90
    scores, codes = whole._fitted_task.loo_scores(whole._loo().full_fit)[sample], (y[sample] == "yes").astype(int)
    cut = best_cut(scores, codes == 1, np.ones(90))
    assert_close(result.estimator.decision_function(X), whole.decision_function(X) + whole._rule.cut - cut)
    expected = fit_calibration("sigmoid", scores, codes, 2, np.ones(90))
    assert_close(result.estimator.predict_proba(X), expected.proba(whole.decision_function(X) + whole._rule.cut))


def test_balanced_classes_count_as_they_are():
    X, y = data_of(4)
    w = weights_of(True)
    model = LSSVC(class_weight="balanced", calibration="sigmoid", **SMOOTH)
    result = chunked.cross_validate(model, chunked.arrays(X, y, sample_weight=w, rows=50), cv=None)
    assert_close(result.estimator.predict_proba(X), refit(model, X, y, slice(None), sample_weight=w).predict_proba(X))


def test_announced_classes_without_rows_are_improbable():
    X, y = data_of(2)
    model = LSSVC(calibration="sigmoid", **SMOOTH)
    result = chunked.cross_validate(model, chunked.arrays(X, y), classes=["maybe", "no", "yes"], cv=None)
    p = result.estimator.predict_proba(X)
    assert_array_equal(p[:, 0], 0.0)
    assert_close(p.sum(1), np.ones(N))


def test_fitted_rules_travel():
    X, y = data_of(2)
    model = LSSVC(calibration="isotonic", **SMOOTH)
    fitted = chunked.cross_validate(model, chunked.arrays(X, y), cv=None).estimator
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))


def test_candidates_may_differ_in_their_rules():
    X, y = data_of(2)
    data, grid = chunked.arrays(X, y), {"threshold": ["pm1", "loo"]}
    with pytest.raises(ValueError, match=r"threshold='loo' chooses a cut by leave-one-out.*Use loo=False"):
        chunked.cross_validate(KernelFisherDiscriminant(**SMOOTH), data, cv=3, param_grid=grid)
    result = chunked.cross_validate(KernelFisherDiscriminant(**SMOOTH), data, cv=3, param_grid=grid, loo=False)
    assert result.best_params["threshold"] == "pm1"  # their squared errors are equal


def test_a_sample_without_enough_rows_of_a_class_is_refused():
    X, y = data_of(2)
    y = np.where(np.arange(N) < 3, "rare", y)
    model = LSSVC(calibration="sigmoid", **SMOOTH)
    with pytest.raises(ValueError, match="calibration='sigmoid': class 'rare' has 3 rows, and 1 in the sample of 20"):
        chunked.cross_validate(model, chunked.arrays(X, y), cv=None, sample=20)
    assert chunked.cross_validate(model, chunked.arrays(X, y), cv=None, sample=N).n_scored == N
    w = np.where(np.arange(N) < 2, 0.0, 1.0)  # one of them counts, which is all that there is
    chunked.cross_validate(model, chunked.arrays(X, y, sample_weight=w), cv=None, sample=N)


def test_probabilities_are_a_column_only_where_there_are_some():
    X, y = data_of(2)
    wanted = {"probability": np.empty((N, 2))}
    with pytest.raises(ValueError, match="there is no column 'probability'"):
        chunked.cross_validate(LSSVC(**SMOOTH), chunked.arrays(X, y), cv=3, predictions=wanted)


def test_scores_of_few_digits_are_told():
    X = np.column_stack([np.zeros(20), np.arange(20.0)])
    X[0, 0] = 1e4
    model = KernelFisherDiscriminant("linear", threshold="loo")
    with pytest.warns(UserWarning, match="1 rows carry a feature nearly alone"):
        chunked.cross_validate(model, chunked.arrays(X, np.arange(20) % 3 > 0), cv=None, loo=False)
