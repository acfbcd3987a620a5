"""Real data sets by name, and their partitions into a training and a test part.

Names are ``ida/...``, ``uci/...``, ``wcci2006/...``, ``large/...`` and ``eeg/...`` for files in the folder of the data,
and ``sklearn/...`` for those that come with scikit-learn. Sets that are another coding of one in the list are left out
(``uci/pima`` is ``ida/diabetis``, ``uci/german_credit`` is ``ida/german``, ``uci/splice`` is ``uci/dna_statlog180``).
"""

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3

from common import load, standardised

IDA = tuple(
    f"ida/{name}"
    for name in (
        *("banana", "breast_cancer", "diabetis", "flare_solar", "german", "heart", "image", "ringnorm", "splice"),
        *("thyroid", "titanic", "twonorm", "waveform"),
    )
)
UCI = tuple(
    f"uci/{name}"
    for name in (
        *("breast_cancer_wisconsin", "dna_statlog180", "glass", "liver_bupa", "segment", "vehicle", "vote"),
        "yeast_brown5",
    )
)
SKLEARN = ("sklearn/breast_cancer", "sklearn/digits", "sklearn/iris", "sklearn/wine")
WCCI = ("wcci2006/ada", "wcci2006/gina", "wcci2006/sylva")
LARGE = ("eeg/eye_state", "large/kddcup99_attack", "large/kddcup99_service", "large/mnist_t10k")
REGRESSION = (
    "sklearn/diabetes",
    *(f"friedman{k}/{n}_rows_{noise}_noise" for n in (150, 600, 1500) for k in (1, 2, 3) for noise in (0.1, 0.5)),
)


def rows_of(folder, name):
    """(X, y, realisations): rows that miss no value, and where there are any the published partitions.

    These are two tables of row numbers, (k, n_train) and (k, n_test); with k = 0 they still tell the sizes.
    """
    group, stem = name.split("/")
    if stem.startswith("kddcup99"):
        return _connections(load(folder, "large/kddcup99_10percent"), stem)
    data = load(None, stem) if group == "sklearn" else load(folder, name)
    if stem == "hiva":
        X = sp.csr_matrix((np.ones(len(data["indices"])), data["indices"], data["indptr"]), data["shape"]).toarray()
        return X, data["y"], None
    if group == "wcci2006":
        data = {"X": np.concatenate([data["X_train"], data["X_valid"]]), "y": np.r_[data["y_train"], data["y_valid"]]}
    X, y = data["X"].astype(float), data["y"]
    whole = np.isfinite(X).all(1)
    if stem == "eye_state":  # a few values are gross outliers
        whole &= (np.abs(X - np.median(X, 0)) < 500).all(1)
    if group == "ida":
        return X, y, (data["train"], data["test"])
    return X[whole], y[whole], None


def _connections(data, stem):
    """Distinct network connections: the kind of attack, or the service of normal ones; no class with most of the rows.

    Classes of fewer than 30 rows are left out. Counts go by their logarithms.
    """
    y, nominal = data["y_train"], data["nominal_train"]
    rows = np.unique(np.column_stack([data["X_train"], nominal]).round(6), axis=0, return_index=True)[1]
    if stem == "kddcup99_service":
        rows, most = rows[y[rows] == 0], 1500
        y, others = nominal[:, 1], nominal[:, [0, 2]]
    else:
        most, others = 2500, nominal
    rng, kept = np.random.default_rng(0), []
    for label in np.unique(y[rows]):
        members = rng.permutation(rows[y[rows] == label])
        kept += members[:most].tolist() if len(members) >= 30 else []
    kept = np.sort(kept)
    levels = [others[kept][:, [j]] == np.unique(others[kept][:, j]) for j in range(others.shape[1])]
    return np.hstack([np.log1p(data["X_train"][kept]), *levels]).astype(float), y[kept], None


def partitions(y, realisations, n_splits, most_train, most_test=2000):
    """(train, test) row numbers: published ones first, then random ones of the same size, or of two thirds."""
    n = len(y)
    given = [] if realisations is None else list(zip(*realisations, strict=True))
    size = 2 * n // 3 if realisations is None else realisations[0].shape[1]
    for k in range(n_splits):
        drawn = np.split(np.random.default_rng(k).permutation(n), [size])
        train, test = (part.astype(int) for part in (given[k] if k < len(given) else drawn))
        yield train[:most_train], test[:most_test]


def regression_parts(name, seed, n_test=1000):
    """Parts of a regression set: another partition, or for made sets another sample, for each seed.

    Noise of a made set is in standard deviations of its targets; features and targets are standardised.
    """
    group, stem = name.split("/")
    if group == "sklearn":
        X, y = load(None, stem).values()
        train, test = list(partitions(y, None, seed + 1, len(y)))[seed]
    else:
        n, noise = int(stem.split("_")[0]), float(stem.split("_")[2])
        make = {"friedman1": make_friedman1, "friedman2": make_friedman2, "friedman3": make_friedman3}[group]
        X, y = make(n + n_test, random_state=seed)
        y = y + noise * y.std() * np.random.default_rng(seed).normal(size=len(y))
        train, test = np.split(np.arange(len(y)), [n])
    return parts(X, (y - y[train].mean()) / y[train].std(), train, test)


def parts(X, y, train, test):
    """X and y of the training part, X and y of the test part, features standardised by the former."""
    X = standardised(X, train)
    return X[train], y[train], X[test], y[test]
