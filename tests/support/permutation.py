"""Data and estimators of the permutation tests of one X, and the loop they are compared with."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn import model_selection as skl
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless._sklearn.confounded import given_confounds
from foldless._sklearn.permutation_spec import BatchLimits
from foldless._sklearn.request import PermutationRequest
from foldless.model_selection import permutation_test_score
from foldless.model_selection._patterns import run_pattern_test
from foldless.model_selection._permutation import run_permutation_test
from support.refits import labelings, p_value, scores_of_labelings

KFDA = KernelFisherDiscriminant
N = 40
M = 4  # permutations


def make_classes(n_classes, n=N, d=4, seed=0):
    """X and class numbers; the first class is the largest, the last the smallest."""
    rng = np.random.default_rng(seed)
    sizes = np.linspace(2.5, 1.0, n_classes)
    shares = np.cumsum(sizes / sizes.sum() * n).round()
    codes = rng.permutation(np.searchsorted(shares, np.arange(n), side="right"))
    return rng.normal(size=(n, d)) + 0.6 * np.eye(n_classes, d)[codes] * (1 + codes[:, None]), codes


X, CODES = make_classes(3)
LABELS = np.array(["ant", "bee", "cat"])[CODES]
BINARY = np.array(["no", "yes"])[(CODES > 0).astype(int)]
RNG = np.random.default_rng(1)
VALUES = X[:, 0] ** 2 + RNG.normal(size=N)
OUTPUTS = np.column_stack([VALUES, X[:, 1] + RNG.normal(size=N), RNG.normal(size=N)])
WIDE = np.hstack([X, RNG.normal(size=(N, 60))])
GROUPS = RNG.permutation(np.arange(N) % 8)
STRATA = np.array(["left", "right"])[RNG.permutation(np.arange(N) % 2)]
WEIGHT = RNG.uniform(0.3, 3.0, N)
WEIGHT[[2, 17, 30]] = 0.0
CONFOUNDS = RNG.normal((2.0, 0.0), size=(N, 2)) + CODES[:, None]
FOLDS = list(StratifiedKFold(4, shuffle=True, random_state=0).split(X, CODES))


# -- the comparison with refits ----------------------------------------------------------------------------------------


def orders_of(n, strata=None, m=M, labels=None, confounds=None, seed=7):
    """The labelings that random_state=7 draws; of ``labels`` of classes by what the confounds say of them.

    How the latter are distributed is the subject of tests/permutation/test_labels_given_confounds.py.
    """
    if confounds is None or np.asarray(labels).dtype.kind == "f":
        return labelings(n, m, strata, seed)
    drawn = given_confounds(labels, np.asarray(confounds).reshape(n, -1), strata).orders(n, m, seed)
    return np.vstack([np.arange(n), drawn])


def assert_scores(result, scores, *, atol=1e-8, greater=True):
    score, null, p = result
    assert null.shape == (len(scores) - 1,)
    assert np.ptp(scores) > 0, "the labelings have the same scores: nothing was tested"
    assert_allclose(np.r_[score, null], scores, rtol=0, atol=atol)
    assert p == p_value(scores[0], scores[1:], greater)


def check_scores(
    estimator, X, y, *, cv=FOLDS, scoring=None, m=M, strata=None, kind="one fit", atol=1e-8, oracle=None, **options
):
    """permutation_test_score equals the loop; ``oracle`` holds arguments of the loop, or the estimator to refit."""
    oracle = dict(oracle or {})
    options = {"cv": cv, "scoring": scoring, "n_permutations": m, "random_state": 7, "null": strata, **options}
    result = permutation_test_score(estimator, X, y, **options)
    orders = orders_of(len(y), strata, m, y, options.get("confounds"))
    oracle = {"splits": cv, "scoring": scoring, "strata": strata, **oracle}
    scores = scores_of_labelings(oracle.pop("estimator", estimator), X, y, orders, **oracle)
    assert_scores(result, scores, atol=atol)
    assert result.path.kind == kind
    return result


def permutation_test_in_memory(memory, estimator, X, y, *, labelings_of_search=256, **options):
    """permutation_test_score with so many bytes for the columns that are worked on at a time."""
    limits = BatchLimits(memory, labelings_of_search)
    return run_permutation_test(PermutationRequest(estimator, X, y, **options), limits)


def pattern_test_in_memory(memory, estimator, X, y, **options):
    """permutation_test_pattern with so many bytes for the columns that are worked on at a time."""
    return run_pattern_test(PermutationRequest(estimator, X, y, **options), BatchLimits(memory))


def _margin(truth, decision):
    """How far decisions are on the right side: continuous, so that it sees what accuracy does not."""
    if decision.ndim == 1:
        return np.mean(np.where(truth == "yes", decision, -decision))
    own = np.searchsorted(np.unique(LABELS), truth)
    return np.mean(decision[np.arange(len(truth)), own] - decision.mean(1))


margin = make_scorer(_margin, response_method="decision_function")


def plain_score(model, X, y):
    """A scorer that reads the fitted estimator."""
    return model.score(X, y)


# -- estimators --------------------------------------------------------------------------------------------------------

THREE_CLASS_ESTIMATORS = {
    "LSSVC": LSSVC(gamma=0.1, alpha=0.3),
    "LSSVC coef": LSSVC(gamma=0.1, alpha=0.3, penalty="coef"),
    "LSSVC no intercept": LSSVC(gamma=0.1, fit_intercept=False),
    "LSSVC coef no intercept": LSSVC(gamma=0.1, penalty="coef", fit_intercept=False),
    "LSSVC linear": LSSVC("linear"),
    "LSSVC poly": LSSVC("poly", gamma=0.2, degree=2),
    "KFDA": KFDA(gamma=0.1, alpha=0.3),
    "KFDA coef": KFDA(gamma=0.1, penalty="coef"),
    "KFDA no intercept": KFDA(gamma=0.1, fit_intercept=False),
    "KFDA coef no intercept": KFDA(gamma=0.1, penalty="coef", fit_intercept=False),
    "KFDA linear, priors": KFDA("linear", priors=[0.2, 0.3, 0.5]),
    "KFDA one component": KFDA(gamma=0.1, n_components=1),
    "RidgeClassifier": RidgeClassifier(alpha=0.5),
    "RidgeClassifier no intercept": RidgeClassifier(alpha=0.5, fit_intercept=False),
}
TWO_CLASS_ESTIMATORS = {
    **{f"KFDA {t}": KFDA(gamma=0.1, threshold=t) for t in ("fisher", "pm1", "centroid", "loo")},
    **{f"KFDA {t} no intercept": KFDA(gamma=0.1, threshold=t, fit_intercept=False) for t in ("fisher", "centroid")},
    "KFDA coef centroid": KFDA(gamma=0.1, threshold="centroid", penalty="coef"),
    "KFDA coef loo": KFDA(gamma=0.1, threshold="loo", penalty="coef"),
    "KFDA priors": KFDA(gamma=0.1, threshold="centroid", priors=[0.8, 0.2]),
    "LSSVC": LSSVC(gamma=0.1),
    "LSSVC no intercept": LSSVC(gamma=0.1, fit_intercept=False),
    "RidgeClassifier": RidgeClassifier(),
}
REGRESSORS = {
    "LSSVR": LSSVR(gamma=0.1, alpha=0.3),
    "LSSVR coef": LSSVR(gamma=0.1, penalty="coef"),
    "Ridge": Ridge(alpha=0.5),
    "Ridge no intercept": Ridge(alpha=0.5, fit_intercept=False),
    "KernelRidge": KernelRidge(kernel="rbf", gamma=0.1),
    "KernelRidge poly": KernelRidge(kernel="poly", degree=2, gamma=0.1),
}
CLASSIFIERS = [pytest.param(e, LABELS, id=f"{k}-3") for k, e in THREE_CLASS_ESTIMATORS.items()] + [
    pytest.param(e, BINARY, id=f"{k}-2") for k, e in TWO_CLASS_ESTIMATORS.items()
]
EVERYONE = (
    CLASSIFIERS
    + [pytest.param(e, VALUES, id=k) for k, e in REGRESSORS.items()]
    + [pytest.param(e, OUTPUTS, id=f"{k}-3 outputs") for k, e in REGRESSORS.items()]
)

_order = np.random.default_rng(5).permutation(N)
PARTS = [
    (_order[10:], _order[:10]),
    (_order[10:], _order[:3]),  # rows that belong to neither
    (_order[:18], _order[14:]),  # some test rows were trained on
    (np.arange(N), np.arange(N)),
]


def splits_drawn_by(cv, y, groups=None):
    return [(np.arange(N)[train], np.arange(N)[test]) for train, test in skl.check_cv(cv, y).split(X, y, groups)]


# -- features of other kinds -------------------------------------------------------------------------------------------

MISSING = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
WORDS = np.column_stack([LABELS, RNG.choice(["x", "y", "z"], N), RNG.choice(["p", "q"], N)]).astype(object)
WORDS[::2, 0] = "ant"


def scorer_returning(values):
    """A scorer that returns these values, one after the other."""
    left = iter(values)
    return lambda model, X, y: next(left)


# -- odd data ----------------------------------------------------------------------------------------------------------


@st.composite
def odd_data(draw):
    """A few rows on a coarse grid: duplicates, constant columns, single-row classes."""
    n, d = draw(st.integers(4, 9)), draw(st.integers(1, 3))
    cells = draw(st.lists(st.integers(-1, 1), min_size=n * d, max_size=n * d))
    labels = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n).filter(lambda each: len(set(each)) > 1))
    train = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda each: 0 < sum(each) < n))
    return np.array(cells, float).reshape(n, d), np.array(labels), np.array(train)


few_examples = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
