"""Permutations that take a class from a training part."""

import numpy as np
import pytest
from sklearn import metrics as theirs
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from foldless import LSSVC
from foldless.model_selection import permutation_test_score
from support.permutation import KFDA, assert_scores, orders_of, plain_score
from support.refits import scores_of_labelings, with_fixed_functions


class OnClassesPresent(ClassifierMixin, BaseEstimator):
    """The estimator refitted on the classes there are; one class is voted for."""

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        self.classes_, model = np.unique(y), clone(self.estimator)
        last = model[-1] if hasattr(model, "steps") else model
        if getattr(last, "priors", None) is not None:
            last.set_params(priors=np.asarray(last.priors)[self.classes_])
        if getattr(last, "n_components", None) is not None:
            last.set_params(n_components=min(last.n_components, len(self.classes_) - 1))
        if isinstance(getattr(last, "class_weight", None), dict):
            last.set_params(class_weight={k: v for k, v in last.class_weight.items() if k in self.classes_})
        extra = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.model_ = model.fit(X, y, **extra) if len(self.classes_) > 1 else None
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0]) if self.model_ is None else self.model_.predict(X)


RARE = np.repeat([0, 1, 2], [9, 8, 3])
TWO_RARE = (RARE == 2).astype(int)
FEW_X = np.random.default_rng(2).normal(size=(20, 3)) + 0.7 * RARE[:, None]
FEW_WEIGHT = np.random.default_rng(3).uniform(0.3, 3.0, 20)
HALVES = [(np.arange(0, 20, 2), np.arange(1, 20, 2)), (np.arange(1, 20, 3), np.arange(0, 20, 3))]
ESTIMATORS = {
    "LSSVC": LSSVC(gamma=0.1),
    "LSSVC coef": LSSVC(gamma=0.1, penalty="coef"),
    "LSSVC no intercept": LSSVC("linear", fit_intercept=False),
    "RidgeClassifier": RidgeClassifier(),
    "RidgeClassifier no intercept": RidgeClassifier(fit_intercept=False),
    "KFDA": KFDA(gamma=0.1, threshold="centroid"),
    "KFDA coef": KFDA(gamma=0.1, penalty="coef", threshold="centroid"),
    "KFDA no intercept": KFDA("linear", fit_intercept=False, threshold="centroid"),
    "KFDA two components": KFDA(gamma=0.1, n_components=2, threshold="centroid"),
    "KFDA priors": KFDA(gamma=0.1, priors=[0.2, 0.3, 0.5], threshold="centroid"),
}
TWO_CLASS_ESTIMATORS = {
    **{k: e for k, e in ESTIMATORS.items() if "components" not in k and "priors" not in k},
    **{f"KFDA {t}": KFDA(gamma=0.1, threshold=t) for t in ("pm1", "fisher")},
    **{f"KFDA {t} linear": KFDA("linear", threshold=t, fit_intercept=False) for t in ("pm1", "fisher")},
    "KFDA priors": KFDA(gamma=0.1, priors=[0.2, 0.8], threshold="centroid"),
}


def check_missing_classes(estimator, y, *, weight=None, scoring=None, cv=HALVES, m=12, **options):
    """The loop of refits on the classes present; some labelings must lack a class in some training part."""
    orders = orders_of(len(y), m=m)
    missing = sum(len(np.unique(y[order][train])) < len(np.unique(y)) for order in orders for train, _ in cv)
    assert missing >= 2
    given = {"cv": cv, "n_permutations": m, "random_state": 7, "scoring": scoring, **options}
    if weight is not None:
        given["params"] = {"sample_weight": weight}
    result = permutation_test_score(estimator, FEW_X, y, **given)
    own = None if weight is None else lambda order: weight
    assert_scores(
        result,
        scores_of_labelings(
            OnClassesPresent(with_fixed_functions(estimator, FEW_X)),
            FEW_X,
            y,
            orders,
            splits=cv,
            scoring="accuracy",
            weight=own,
        ),
    )
    return result


@pytest.mark.many_cases
@pytest.mark.parametrize("weight", [None, FEW_WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_class_that_a_training_part_lacks_never_wins(name, weight):
    check_missing_classes(ESTIMATORS[name], RARE, weight=weight)


@pytest.mark.many_cases
@pytest.mark.parametrize("weight", [None, FEW_WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("name", TWO_CLASS_ESTIMATORS)
def test_a_training_part_of_one_class_votes_for_it(name, weight):
    check_missing_classes(TWO_CLASS_ESTIMATORS[name], TWO_RARE, weight=weight)


def test_a_scorer_agrees_where_a_training_part_lacks_a_class():
    scoring = make_scorer(theirs.accuracy_score)
    for name in ("LSSVC no intercept", "KFDA"):
        for y in (RARE, TWO_RARE):
            assert "columns" in check_missing_classes(ESTIMATORS[name], y, scoring=scoring).path.reason


@pytest.mark.parametrize("name", ["LSSVC", "KFDA", "RidgeClassifier", "KFDA priors", "KFDA two components"])
def test_behind_steps_a_training_part_may_lack_a_class(name):
    """Of the true labels, too."""
    splits = [(np.arange(17), np.arange(17, 20)), *HALVES]
    check_missing_classes(make_pipeline(StandardScaler(), ESTIMATORS[name]), RARE, cv=splits, m=6)
    if name in ("LSSVC", "KFDA", "RidgeClassifier"):
        check_missing_classes(make_pipeline(StandardScaler(), ESTIMATORS[name]), TWO_RARE, cv=splits, m=6)


def test_with_three_of_four_classes_left_a_discriminant_is_the_refit():
    y = np.repeat([0, 1, 2, 3], [7, 6, 4, 3])
    check_missing_classes(KFDA(gamma=0.1), y)
    check_missing_classes(KFDA(gamma=0.1, priors=[0.1, 0.2, 0.3, 0.4]), y)


@pytest.mark.many_cases
@pytest.mark.parametrize("weight", [None, FEW_WEIGHT], ids=["", "weights"])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"penalty": "coef"}], ids=str)
@pytest.mark.parametrize("threshold", ["pm1", "fisher"])
def test_with_two_of_three_classes_left_a_discriminant_is_the_refit(threshold, options, weight):
    """Two classes have a threshold, more classes have centroids."""
    estimator = KFDA(gamma=0.1, threshold=threshold, **options)
    check_missing_classes(estimator, RARE, weight=weight, m=60)


def test_two_of_three_classes_have_no_cut_of_their_own():
    with pytest.raises(ValueError, match="threshold='loo': a labeling leaves two of 3 classes in a training part"):
        check_missing_classes(KFDA(threshold="loo"), RARE)


@pytest.mark.parametrize(
    "options",
    [
        {"estimator": LSSVC(), "scoring": plain_score},
        {"estimator": KFDA(threshold="loo")},
        {"estimator": LSSVC(class_weight={0: 2.0}), "scoring": plain_score},
    ],
    ids=["callable", "loo", "class weights"],
)
def test_what_needs_all_classes_says_which_split_lacks_one(options):
    with pytest.raises(ValueError, match=r"cv: a labeling leaves the training part of split . without class 1,"):
        permutation_test_score(X=FEW_X, y=TWO_RARE, cv=HALVES, n_permutations=12, random_state=7, **options)


@pytest.mark.parametrize(
    "estimator", [LSSVC(gamma=0.1, class_weight={0: 2.0}), RidgeClassifier(class_weight={0: 2.0})], ids=str
)
@pytest.mark.parametrize("y", [RARE, TWO_RARE], ids=["three", "two"])
def test_class_weights_that_follow_where_a_training_part_lacks_a_class(estimator, y):
    assert check_missing_classes(estimator, y).path.kind == "one P per fold"
