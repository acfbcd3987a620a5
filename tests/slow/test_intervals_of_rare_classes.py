"""Simulations: intervals of balanced accuracy and areas hold where one class is rare, from weak to perfect separation.

Classes are normal with unit variances, and models linear: the score of the fitted model on new rows is known.
"""

import numpy as np
import pytest
from scipy.stats import norm

from foldless import LSSVC, FoldlessSearchCV
from foldless.model_selection import cross_validate, nested_cross_validate, score_interval

pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless.tables import Table, Wishes, prepare
from foldless.tables.scores import BALANCED, ROC, bootstrapped, from_interval

FEATURES, SETS = 5, 30
SCORES = {"balanced_accuracy": BALANCED, "roc_auc": ROC}
MODEL = LSSVC("linear", class_weight="balanced")
SEARCH = FoldlessSearchCV(MODEL, {"alpha": [0.1, 10.0]})


def draw(n, positives, distance, rng):
    y = rng.permutation(np.arange(n) < positives).astype(int)
    return rng.normal(size=(n, FEATURES)) + distance / np.sqrt(FEATURES) * y[:, None], y


def true_scores(model, distance):
    """Balanced accuracy and area of a fitted linear model on new rows."""
    cut = model.decision_function(np.zeros((1, FEATURES)))[0]
    slope = model.decision_function(np.eye(FEATURES)) - cut
    length, shift = np.linalg.norm(slope), distance / np.sqrt(FEATURES) * slope.sum()
    recalls = norm.cdf([-cut / length, (shift + cut) / length])
    return {"balanced_accuracy": recalls.mean(), "roc_auc": norm.cdf(shift / length / np.sqrt(2))}


def of_a_report(X, y, search, cv, seed):
    """{what: {score: (low, high)}} of a report: nested cross-validation, and leave-one-out with the chosen setting."""
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(FEATURES)]).assign(y=np.where(y == 1, "yes", "no"))
    rows = prepare(Table(frame, "simulated.csv", "csv"), Wishes("y"))
    nested = nested_cross_validate(SEARCH, X, y, cv=cv, scoring=list(SCORES)).interval()
    decision = search.best_estimator_.loo_decision_function()
    prediction = np.where(decision > 0, "yes", "no").astype(object)
    found = {
        "report": [from_interval(measure, nested[name]) for name, measure in SCORES.items()],
        "report, leave-one-out": [
            bootstrapped(each, rows, prediction, decision, seed, "from a bootstrap") for each in SCORES.values()
        ],
    }
    return {
        what: {name: (each.value, each.low, each.high) for name, each in zip(SCORES, two, strict=True)}
        for what, two in found.items()
    }


@pytest.mark.parametrize("distance", [1.0, 3.0, 8.0])
@pytest.mark.parametrize(("n", "positives"), [(100, 5), (100, 10), (100, 20), (300, 5), (300, 10), (300, 20)])
def test_intervals_hold_where_one_class_is_rare(n, positives, distance):
    rng, held = np.random.default_rng([n, positives, int(10 * distance)]), {}
    for seed in range(SETS):
        X, y = draw(n, positives, distance, rng)
        cv = min(positives, 10)
        model, search = MODEL.fit(X, y), SEARCH.fit(X, y)
        folds = cross_validate(MODEL, X, y, cv=cv, scoring=list(SCORES))
        found = of_a_report(X, y, search, cv, seed)
        found["nadeau-bengio"] = {name: folds.interval(name) for name in SCORES}
        found["nested"] = {
            name: score_interval(MODEL, X, y, scoring=name, n_repeats=2, random_state=seed) for name in SCORES
        }
        for what, intervals in found.items():
            truth = true_scores(search.best_estimator_ if what.startswith("report") else model, distance)
            for name, (*_, low, high) in intervals.items():
                held.setdefault((what, name), []).append(low <= truth[name] <= high)
    shares = {what: np.mean(each) for what, each in held.items()}
    assert len(shares) == 8
    assert min(shares.values()) > 0.88 - 3 * np.sqrt(0.88 * 0.12 / SETS), shares
    assert np.mean([*shares.values()]) > 0.9 - 3 * np.sqrt(0.9 * 0.1 / SETS), shares
