"""Data with confounds."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless._engine.readout.codings import indicator
from support.refits import refit

every_strategy = pytest.mark.parametrize("strategy", ["part", "solve"])


# -- data and estimators -----------------------------------------------------------------------------------------------

N = 32
RNG = np.random.default_rng(3)
CODES = RNG.permutation(np.arange(N) % 3)
C = RNG.normal(size=(N, 2)) + 0.6 * CODES[:, None]
X = RNG.normal(size=(N, 5)) + 0.5 * CODES[:, None] + C[:, :1]
NEW, C_NEW = RNG.normal(size=(7, 5)), RNG.normal(size=(7, 2))

WEIGHT = RNG.uniform(0.3, 3.0, N)
LABELS = np.array(["ant", "bee", "cat"])[CODES]
BINARY = np.array(["no", "yes"])[(CODES > 0).astype(int)]
VALUES = X[:, 1] ** 2 + C[:, 0] + RNG.normal(size=N)
SEVERAL = np.column_stack([VALUES, X[:, 2] + RNG.normal(size=N)])

PENALTIES = {"rkhs": {}, "coef": {"penalty": "coef"}, "no intercept": {"fit_intercept": False}}
ESTIMATORS = [
    *[pytest.param(LSSVC(gamma=0.1, alpha=0.3, **p), LABELS, id=f"LSSVC {k}") for k, p in PENALTIES.items()],
    *[
        pytest.param(KernelFisherDiscriminant(gamma=0.1, alpha=0.3, **p), LABELS, id=f"KFDA {k}")
        for k, p in PENALTIES.items()
    ],
    pytest.param(LSSVC("linear"), BINARY, id="LSSVC linear, 2 classes"),
    pytest.param(LSSVC("linear", class_weight={"no": 2.0, "yes": 0.5}), BINARY, id="LSSVC linear, class weights"),
    pytest.param(KernelFisherDiscriminant("linear", n_components=1), LABELS, id="KFDA linear, one axis"),
    *[
        pytest.param(KernelFisherDiscriminant(gamma=0.1, threshold=t, **p), BINARY, id=f"KFDA {t}, {k}, 2 classes")
        for t in ("fisher", "pm1", "centroid", "loo")
        for k, p in PENALTIES.items()
    ],
    *[pytest.param(LSSVR(gamma=0.1, alpha=0.3, **p), VALUES, id=f"LSSVR {k}") for k, p in PENALTIES.items()],
    pytest.param(LSSVR("linear"), SEVERAL, id="LSSVR linear, two outputs"),
]
every_estimator = pytest.mark.parametrize(("estimator", "y"), ESTIMATORS)


def refit_with_confounds(estimator, y, train, *, weight=None, X=X, confounds=C):
    return refit(estimator, X, y, train, sample_weight=weight, confounds=confounds)


def method_of(estimator):
    return "predict" if isinstance(estimator, LSSVR) else "decision_function"


# -- confounds that are refused ----------------------------------------------------------------------------------------

BAD = [
    pytest.param(C[:-1], f"confounds has {N - 1} rows and X has {N}", id="too short"),
    pytest.param(np.where(C > 1, np.nan, C), "confounds contains NaN", id="NaN"),
    pytest.param(np.where(C > 1, np.inf, C), "confounds contains infinity", id="infinity"),
    pytest.param(C[:, :, None], "confounds: Found array with dim 3", id="three dimensions"),
    pytest.param(LABELS, "confounds: '...' is no number.*OneHotEncoder", id="strings"),
    pytest.param(C.astype(str), "confounds: '.*' is no number", id="numbers as strings"),
    pytest.param(
        pd.DataFrame({"age": C[:, 0], "site": LABELS}), "confounds: '...' is no number", id="a column of strings"
    ),
    pytest.param(np.arange(N).astype("datetime64[D]"), "confounds: .* is no number", id="dates"),
    pytest.param(C + 1j, "confounds: ", id="complex"),
    pytest.param(sp.csr_array(C), "confounds: Sparse data", id="sparse"),
    pytest.param(3.0, "confounds: ", id="a number"),
    pytest.param(np.ones(N), "confounds: column 0 is a linear combination of the intercept", id="constant"),
    pytest.param(np.column_stack([C, C.sum(1)]), "confounds: column 2 is a linear combination", id="sum"),
    pytest.param(indicator(CODES, 3, float), "confounds: column 2 .*all but one", id="all levels"),
    pytest.param(np.column_stack([C[:, 0], np.zeros(N)]), "confounds: column 1", id="zeros"),
    pytest.param(RNG.normal(size=(N, N)), f"confounds: column {N - 1}", id="as many as rows"),
]
