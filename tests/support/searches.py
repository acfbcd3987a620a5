"""Data, estimators and grids of the tests of searches, and the loop they are compared with."""

import numpy as np
from sklearn import model_selection as skl

from foldless import KernelFisherDiscriminant
from foldless._engine.tuning.criteria import CRITERIA
from support.refits import fits_of_candidate, signs

N, D = 30, 4
RNG = np.random.default_rng(0)
CODES = RNG.permutation(np.repeat([0, 1, 2], [8, 10, 12]))
X = RNG.normal(size=(N, D)) + 0.8 * CODES[:, None] * [1, 0, -1, 0]
GROUPS = np.arange(N) % 7
WEIGHT = RNG.uniform(0.3, 3.0, N)
LABELS = np.array(["ant", "bee", "cat"])[CODES]
BINARY = np.array(["no", "yes"])[(CODES > 1).astype(int)]
VALUES = X[:, 0] ** 2 + X[:, 1] + RNG.normal(size=N)
KFDA = KernelFisherDiscriminant

ALPHAS = [0.05, 1.0, 20.0]
RBF_GRID = {"alpha": ALPHAS, "gamma": [0.03, 0.3]}

SPLITTERS = {
    "leave-one-out": None,
    "LeaveOneOut": skl.LeaveOneOut(),
    "KFold": skl.KFold(4, shuffle=True, random_state=0),
    "GroupKFold": skl.GroupKFold(3),
    "RepeatedKFold": skl.RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "ShuffleSplit": skl.ShuffleSplit(3, test_size=0.3, random_state=0),
    "ShuffleSplit with a gap": skl.ShuffleSplit(3, train_size=0.5, test_size=0.3, random_state=0),
    "TimeSeriesSplit": skl.TimeSeriesSplit(2, max_train_size=14),
    "PredefinedSplit": skl.PredefinedSplit(np.where(np.arange(N) % 4 < 3, np.arange(N) % 4, -1)),
}


# -- splits and losses -------------------------------------------------------------------------------------------------


def splits_of(splitter, groups=None):
    return list((SPLITTERS[splitter] or skl.LeaveOneOut()).split(X, CODES, groups))


def losses_of(search):
    return search.cv_results_["mean_test_criterion"]


def criterion_by_refits(search, data, y, criterion="press", slope=10.0):
    """The criterion at ``best_params_`` from a plain loop, classes apart where they have parameters of their own."""
    splits = list(skl.LeaveOneOut().split(data))
    params, T = search.best_params_, signs(y)
    params = [params] * T.shape[1] if isinstance(params, dict) else params
    total = 0.0
    for k, each in enumerate(params):
        scaled, own = data, dict(each)
        if np.ndim(each.get("gamma")):
            scaled, own["gamma"] = data * np.sqrt(each["gamma"]), 1.0
        _, fits = fits_of_candidate(search.estimator, own, y, splits, scaled)
        w = np.full((len(y), 1), 1 / len(y))
        total += CRITERIA[criterion].with_slope(slope)(fits[:, [k]], T[:, [k]], w)[0].item()
    return total


# -- data with features that do not matter -----------------------------------------------------------------------------


def xor(n=90, noise=4, seed=0):
    """Two features that matter together, and others that do not."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(n, 2 + noise))
    return data, (data[:, 0] * data[:, 1] > 0).astype(int)
