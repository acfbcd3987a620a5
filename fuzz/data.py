"""Random data sets: plain ones, and those on which rounding shows."""

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fuzz.oracles import LD


@dataclass
class Data:
    """One data set; ``dense`` holds the numbers of X as they are after conversion to its type."""

    X: object
    dense: np.ndarray
    y: np.ndarray
    codes: np.ndarray | None
    classes: np.ndarray | None
    weights: np.ndarray | None
    groups: np.ndarray
    confounds: np.ndarray
    dtype: type

    @property
    def n(self):
        """Rows."""
        return len(self.dense)

    @property
    def w(self):
        """Weights as numbers, as the library sees them."""
        return np.ones(self.n, LD) if self.weights is None else np.asarray(self.weights.astype(self.dtype), LD)

    @property
    def Y(self):
        """Targets of a regression as the library sees them, (n, m)."""
        return np.asarray(self.y.astype(self.dtype), LD).reshape(self.n, -1)

    @property
    def same(self):
        """Equal numbers for equal rows."""
        rows = np.asarray(self.dense, float)
        return np.unique(np.hstack([rows, self.confounds]), axis=0, return_inverse=True)[1].ravel()

    def take(self, rows):
        """Some of the rows, with the classes they show."""
        rows = np.asarray(rows)
        codes = classes = None
        if self.codes is not None:
            present = np.unique(self.codes[rows])
            codes, classes = np.searchsorted(present, self.codes[rows]), self.classes[present]
        w = None if self.weights is None else self.weights[rows]
        parts = (self.dense[rows], self.y[rows], codes, classes, w, self.groups[rows], self.confounds[rows])
        return Data(self.X[rows], *parts, self.dtype)

    def relabel(self, order):
        """The same rows with the targets of others."""
        codes = None if self.codes is None else self.codes[order]
        return replace(self, y=self.y[order], codes=codes)


def pick(rng, *options):
    """One of the options."""
    return options[int(rng.integers(len(options)))]


def features(rng, n, d, boolean=False):
    """X of one of several kinds."""
    if boolean:
        return rng.integers(0, 2, (n, d)).astype(float)
    kind = rng.random()
    if kind < 0.30:
        X = rng.normal(size=(n, d))
    elif kind < 0.50:
        X = rng.integers(0, 3, (n, d)).astype(float)
    elif kind < 0.60:
        X = rng.normal(size=(n, d))
        X[rng.integers(0, n, n // 3)] = X[rng.integers(0, n, n // 3)]
    elif kind < 0.68:
        X = rng.normal(size=(n, d))
        X[:, int(rng.integers(d))] = rng.normal()
    elif kind < 0.76:
        X = rng.normal(size=(n, d)) + 10.0 ** rng.integers(1, 8)
    elif kind < 0.88:
        X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
    else:
        X = rng.normal(size=(n, d)) * pick(rng, 5.0, 30.0)
    return X


def weights(rng, n, codes=None):
    """Weights of one of several kinds, mostly none; every class keeps rows of positive weight."""
    kind = rng.random()
    if kind < 0.45:
        return None
    if kind < 0.55:
        return np.ones(n) * pick(rng, 1.0, 3.0, 1e-3)
    if kind < 0.65:
        return rng.integers(1, 5, n).astype(float)
    if kind < 0.75:
        return 10.0 ** rng.uniform(-8, 8, n)
    if kind < 0.83:
        return np.exp(-np.arange(n) * pick(rng, 0.2, 2.0, 4.0))
    if kind < 0.92 and codes is not None:
        w = np.full(n, pick(rng, 1.0, 1e-6))
        for k in range(int(rng.integers(1, codes.max() + 2))):
            w[np.flatnonzero(codes == k)[0]] = 1e6
        return w
    w = rng.uniform(0.3, 3.0, n)
    free = np.arange(n) if codes is None else np.flatnonzero(np.bincount(codes)[codes] > 3)
    if len(free) > 6:
        w[rng.choice(free, int(rng.integers(1, 3)), replace=False)] = 0.0
    if codes is not None and np.bincount(codes[w > 0], minlength=codes.max() + 1).min() < 2:
        return None
    return w


def labels(rng, n, c):
    """Class numbers, at least three of each where n allows it, sometimes very unequal."""
    least = 3 if n >= 3 * c else 2
    codes = np.repeat(np.arange(c), least)
    share = rng.dirichlet(np.full(c, pick(rng, 0.5, 5.0, 50.0)))
    codes = np.concatenate([codes, rng.choice(c, n - len(codes), p=share)])
    return rng.permutation(codes)


def names(rng, c):
    """Class labels of one of several kinds."""
    return pick(
        rng,
        np.arange(c),
        np.arange(1, c + 1),
        np.arange(c) - 1,
        np.array(["ape", "bee", "cat", "dog", "eel"][:c]),
    )


def classes_of(rng):
    """Number of classes, often two."""
    return 2 if rng.random() < 0.4 else int(rng.integers(2, 6))


def draw(rng, classification, *, most=40, least=6, c=None, plain=False, boolean=False, singles=True, sparse=True):
    """A data set; ``plain``: well-scaled double precision without weights."""
    c = classes_of(rng) if c is None else c
    low = max(least, 3 * c if classification else least)
    n = int(rng.integers(low, max(low + 1, most + 1)))
    d = int(rng.integers(1, 7))
    X = rng.normal(size=(n, d)) if plain else features(rng, n, d, boolean)
    codes = classes = None
    if classification:
        codes, classes = labels(rng, n, c), names(rng, c)
        y = classes[codes]
        if rng.random() < 0.5:
            X = X + (0 if boolean else 1) * (codes[:, None] * pick(rng, 0.5, 2.0)) * (np.arange(d) == 0) * X.std(0)
    else:
        m = int(rng.integers(1, 3))
        y = rng.normal(size=(n, m)) + np.tanh((X - X.mean(0)) / (X.std(0) + 1e-300)).sum(1)[:, None]
        if not plain and rng.random() < 0.35:
            y = y + 10.0 ** rng.integers(4, 14)
        elif not plain and rng.random() < 0.2:
            y = np.round(y)
        y = y[:, 0] if m == 1 else y
    w = None if plain else weights(rng, n, codes)
    dtype = np.float32 if singles and not plain and rng.random() < 0.15 else np.float64
    if w is not None and dtype == np.float32:
        w = np.where(w > 0, np.maximum(w, 1e-30), 0.0)  # none that vanishes in single precision
    X = X.astype(dtype)
    dense = X.astype(LD)
    if sparse and not plain and rng.random() < 0.1:
        X = sp.csr_matrix(X)
    groups = rng.permutation(np.arange(n) % 4)
    confounds = np.zeros((n, 0))
    if not classification and dtype == np.float32 and np.abs(y).max() > 1e6:
        y = y / np.abs(y).max() * 1e5
    return Data(X, dense, y, codes, classes, w, groups, confounds, dtype)
