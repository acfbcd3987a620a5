"""Weights of rows and classes in permutation tests, that stay or follow the labels."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC
from foldless._engine.permutation.nulls import Exchangeable, moved_splits
from foldless._engine.precision.reweighted import Reweighted
from foldless.model_selection import RefitWarning, permutation_test_score
from support.permutation import CODES, EVERYONE, KFDA, LABELS, OUTPUTS, WEIGHT, N, X, check_scores, plain_score
from support.refits import refit

BY_CLASS = {0: 3.0, 1: 0.5, 2: 1.5}
OWN_WEIGHTED = {"LSSVC": LSSVC(gamma=0.1), "KFDA": KFDA(gamma=0.1), "KFDA coef": KFDA(gamma=0.1, penalty="coef")}
weighting = pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])


def factors(estimator, class_weight, codes, base):
    """class_weight of foldless' estimators as numbers: "balanced" is taken from all labels, weights are repetitions."""
    if class_weight == "balanced":
        mass = np.bincount(codes, weights=base)
        return mass.sum() / (len(mass) * mass)
    own = np.array([class_weight[k] for k in range(len(class_weight))])
    return own / own.mean() if isinstance(estimator, KFDA) else own


def unweighted(estimator, class_weight):
    """The estimator whose sample weights hold the class weights; a discriminant takes priors from a dict as well."""
    if isinstance(estimator, KFDA) and class_weight != "balanced":
        own = factors(estimator, class_weight, None, None)
        return clone(estimator).set_params(priors=own / own.sum())
    return estimator


@pytest.mark.parametrize(
    ("estimator", "y"), [e for e in EVERYONE if e.id.startswith(("LSSVC-3", "KFDA loo", "KFDA coef-3", "KernelRidge"))]
)
def test_sample_weights_that_stay_equal_refits(estimator, y):
    options = {"params": {"sample_weight": WEIGHT}, "oracle": {"weight": lambda order: WEIGHT}}
    check_scores(estimator, X, y, **options)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [(LSSVC(gamma=0.1), LABELS), (KFDA(gamma=0.1), LABELS), (RidgeClassifier(), LABELS), (Ridge(), OUTPUTS)],
    ids=["LSSVC", "KFDA", "RidgeClassifier", "Ridge"],
)
def test_sample_weights_that_stay_equal_refits_by_any_scorer(estimator, y):
    options = {"params": {"sample_weight": WEIGHT}, "oracle": {"weight": lambda order: WEIGHT}}
    check_scores(estimator, X, y, **options)
    check_scores(estimator, X, y, scoring=plain_score, m=2, **options)


@pytest.mark.many_cases
@weighting
@pytest.mark.parametrize("class_weight", [BY_CLASS, "balanced"], ids=["dict", "balanced"])
@pytest.mark.parametrize("name", OWN_WEIGHTED)
def test_class_weights_that_follow_the_labels_equal_refits(name, class_weight, weight):
    estimator = OWN_WEIGHTED[name]
    base = np.ones(N) if weight is None else weight

    def of_labeling(order):
        codes = CODES[order]
        return base * factors(estimator, class_weight, codes, base)[codes]

    check_scores(
        clone(estimator).set_params(class_weight=class_weight),
        X,
        CODES,
        params=None if weight is None else {"sample_weight": weight},
        kind="one P per fold",
        oracle={"estimator": unweighted(estimator, class_weight), "weight": of_labeling},
    )


RARE = np.select([np.arange(N) % 6 == 2, np.arange(N) % 10 == 5], [1, 2], 0)  # 7 and 4 of 40 rows
UPDATED = [(name, 3, {0: 0.5, 1: 3.0, 2: 5.0}) for name in OWN_WEIGHTED] + [("LSSVC", 2, {0: 0.5, 1: 3.0})]
UPDATED += [(name, classes, "balanced") for name in OWN_WEIGHTED for classes in (2, 3)]


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize(("name", "classes", "given"), UPDATED)
def test_rare_classes_update_one_P_and_equal_refits(name, classes, given, monkeypatch):
    estimator, codes, used = OWN_WEIGHTED[name], np.minimum(RARE, classes - 1), []
    made = Reweighted.__init__
    monkeypatch.setattr(Reweighted, "__init__", lambda self, *args: used.append(1) or made(self, *args))
    check_scores(
        clone(estimator).set_params(class_weight=given),
        X,
        codes,
        scoring="balanced_accuracy",
        kind="one P per fold",
        oracle={
            "estimator": unweighted(estimator, given),
            "weight": lambda order: factors(estimator, given, codes[order], np.ones(N))[codes[order]],
        },
    )
    assert used


SPLITS = {
    "folds of unequal size": KFold(4),
    "parts of the rows": ShuffleSplit(5, test_size=0.2, train_size=0.6, random_state=0),
    "splits that go with the labels": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
}


@pytest.mark.parametrize("cv", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("name", OWN_WEIGHTED)
def test_class_weights_that_follow_the_labels_equal_refits_in_any_splits(name, cv):
    """A refit sees rows in another order in the place of labels, weights and splits in another order."""
    estimator = clone(OWN_WEIGHTED[name]).set_params(class_weight=BY_CLASS)
    result = permutation_test_score(estimator, X, CODES, cv=cv, n_permutations=4, random_state=0)
    splits = list(cv.split(X, CODES))
    orders = Exchangeable().orders(N, 4, 0)
    expected = []
    for order in orders:
        moves = isinstance(cv, RepeatedStratifiedKFold)
        own = moved_splits(splits, order) if moves else splits
        parts = [refit(estimator, X, CODES[order], train) for train, _ in own]
        expected.append([part.score(X[test], CODES[order][test]) for part, (_, test) in zip(parts, own, strict=True)])
    np.testing.assert_allclose(result.permutation_scores, np.mean(expected, axis=1), rtol=1e-12)
    assert "every permutation has a P of its own" in result.path.reason


@pytest.mark.many_cases
@weighting
@pytest.mark.parametrize("class_weight", [BY_CLASS, "balanced"], ids=["dict", "balanced"])
@pytest.mark.parametrize("name", [*OWN_WEIGHTED, "RidgeClassifier"])
def test_class_weights_as_sample_weights_stay_with_the_rows(name, class_weight, weight):
    """Those of the true labels; a discriminant takes priors from them as well."""
    estimator = {**OWN_WEIGHTED, "RidgeClassifier": RidgeClassifier()}[name]
    base = np.ones(N) if weight is None else weight
    counted = np.ones(N) if name == "RidgeClassifier" else base  # scikit-learn counts rows
    fixed = base * factors(estimator, class_weight, CODES, counted)[CODES]
    options = {"params": {"sample_weight": fixed}, "oracle": {"weight": lambda order: fixed}}
    check_scores(unweighted(estimator, class_weight), X, CODES, **options)
    check_scores(unweighted(estimator, class_weight), X, CODES, scoring=plain_score, m=1, **options)


@weighting
def test_ridge_classifiers_with_class_weights_equal_refits(weight):
    options = {
        "params": None if weight is None else {"sample_weight": weight},
        "oracle": {} if weight is None else {"weight": lambda order: weight},
    }
    check_scores(RidgeClassifier(class_weight=BY_CLASS), X, CODES, kind="one P per fold", **options)
    with pytest.warns(RefitWarning, match="balanced"):
        check_scores(RidgeClassifier(class_weight="balanced"), X, CODES, kind="refit", **options)


@pytest.mark.parametrize("class_weight", [BY_CLASS, "balanced"], ids=["dict", "balanced"])
def test_class_weights_behind_steps_equal_refits(class_weight):
    last = LSSVC(gamma=0.1, class_weight=class_weight)
    fixed = factors(last, class_weight, CODES, np.ones(N))[CODES]
    plain = make_pipeline(StandardScaler(), LSSVC(gamma=0.1))
    oracle = {"weight": lambda order: fixed, "name": "lssvc__sample_weight"}
    params = {"lssvc__sample_weight": fixed}
    check_scores(plain, X, CODES, params=params, kind="one P per fold", oracle=oracle)
    if class_weight is BY_CLASS:  # a refit of foldless' own resolves "balanced" on its training part
        check_scores(make_pipeline(StandardScaler(), last), X, CODES, kind="one P per fold")
