"""Labelings that keep the association of labels and confounds.

Freely permuted labels lose it, and scores would differ from those of the true labels for this reason alone: predictions
that leave out the confounds are judged by values of which these explain much or little, and the rest of the values,
which is fitted, is small or large. So only what the confounds C leave is permuted.

Values (Freedman & Lane 1983; Winkler et al. 2014, NeuroImage 92). With R the projection that takes out the means of
the strata and the confounds, and Pi a permutation,

    e = R y        y* = y - e + s R Pi e        s = |e| / |R Pi e|

As P C = 0, fits are those of s Pi e. With R and s the part that is permuted has the same length in all labelings and is
orthogonal to the part that stays, as e is. Pi e alone is not: the size of y* would vary with the product of the two
parts, and the mean squared error of predictions more than by any effect.

Classes have no residuals that are labels. Their permutations are drawn with the probability that labels have given the
confounds, by a logistic model p of y on C and the strata (conditional permutation test, Berrett et al. 2020, JRSSB 82)

    P(Pi)  proportional to  prod_i p(y_Pi(i) | c_i)

by a walk: rows are paired at random, again and again, and the labels u, v of a pair (a, b) are dealt anew,

    odds that a has v and b has u    p(v | c_a) p(u | c_b) / (p(u | c_a) p(v | c_b))

The walk starts from where a walk of the true labels through the same pairs, in reverse order, ends: the true labels are
then one labeling among equals, however many steps there are.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from foldless._engine.linalg import divide, norm, row_major, svd
from foldless._engine.linalg.batches import gen_batches
from foldless._engine.linalg.random_state import check_random_state
from foldless._engine.permutation.nulls import Exchangeable
from foldless._engine.precision import cost

STEPS = 50  # swaps of every row
ENTRIES = 2**21  # labels that are swapped at a time
DEPENDENT = 1e-9  # share of a confound's length below which it is a combination of others and of strata


def standardised(C):
    """Confounds with mean 0 and variance 1; constant ones are 0."""
    C = C - C.mean(0)
    scale = C.std(0)
    return divide(C, scale)


def beyond_means(values, levels):
    """Values (n, m) about their means in every stratum."""
    sums = np.zeros((levels.max() + 1, values.shape[1]))
    np.add.at(sums, levels, values)
    return values - (sums / np.bincount(levels)[:, None])[levels]


@dataclass(frozen=True)
class Residuals:
    """Values y (n,) or (n, m), and what strata and confounds leave of them: ``e`` (n, m).

    ``basis`` (n, r) are orthonormal columns that the confounds about their means in the strata span.
    """

    y: np.ndarray
    e: np.ndarray
    basis: np.ndarray

    @classmethod
    def of(cls, y, C, levels):
        """The residuals of y on confounds C (n, k) and strata, by their number for every row."""
        y = np.asarray(y, float)
        columns, sigma, _ = svd(beyond_means(standardised(C), levels))
        basis = columns[:, sigma > DEPENDENT * np.sqrt(len(y))]
        e = beyond_means(y.reshape(len(y), -1), levels)
        return cls(y, e - basis @ (basis.T @ e), basis)

    def permuted(self, orders):
        """Values (b, m, n) of the labelings in which row i takes the residual of row orders[j, i]."""
        E = row_major(self.e[orders].transpose(0, 2, 1))
        E -= (E @ self.basis) @ self.basis.T
        size = norm(E, axis=2, keepdims=True)
        E *= divide(norm(self.e, axis=0)[:, None], size)
        Y = self.y.reshape(len(self.y), -1)
        E += (Y - self.e).T
        E[(orders == np.arange(len(Y))).all(1)] = Y.T  # to the last bit
        return E

    def labelled(self, order):
        """The values of one labeling, in the shape of y."""
        return self.permuted(np.asarray(order)[None])[0].T.reshape(self.y.shape)


@dataclass(frozen=True, kw_only=True)
class ExchangeableGivenConfounds(Exchangeable):
    """Labels are exchangeable, within strata, among rows whose confounds make them equally probable.

    ``codes`` (n,) are the numbers of the labels, ``log_probability`` (n, c) what every label has at every row, up
    to a constant in the row.
    """

    codes: np.ndarray
    log_probability: np.ndarray

    @classmethod
    def of(cls, y, C, strata=None, *, log_probability):
        """The scheme of classes y (n,), or of the labels (n, m) of rows with several, with confounds C (n, k).

        ``log_probability(columns, codes)`` gives log-probabilities (n, c) of class numbers (n,) at the rows of columns
        (n, r), up to a constant in every row: the model of one label by the confounds and the strata.
        """
        y = np.asarray(y)
        columns = np.column_stack([np.unique(label, return_inverse=True)[1] for label in y.reshape(len(y), -1).T])
        labels, codes = np.unique(columns, axis=0, return_inverse=True)
        levels = Exchangeable(strata).levels(len(y))
        seen = standardised(C)
        if levels.any():
            strata_columns = sp.csr_matrix((np.ones(len(levels)), levels, np.arange(len(levels) + 1)))
            seen = sp.hstack([sp.csr_matrix(seen), strata_columns]).tocsr()
        total = np.zeros((len(y), len(labels)))
        for column, values in zip(columns.T, labels.T, strict=True):
            if (column != column[0]).any():
                total += log_probability(seen, column)[:, values]
        return cls(strata=strata, codes=codes.ravel(), log_probability=total)

    def orders(self, n, n_permutations, random_state):
        """Row numbers (m, n), row i taking the label of row orders[j, i]."""
        cost.require_orders(n_permutations, n)
        levels, generator = self.levels(n), np.random.default_rng(check_random_state(random_state).randint(2**31))
        orders = np.empty((n_permutations, n), np.int32 if n < 2**31 else np.int64)
        steps = [_pairs(levels, generator) for _ in range(STEPS)]
        hub = self._walk(self.codes[:, None], steps[::-1], generator)
        cells = levels * self.log_probability.shape[1]
        sources = np.argsort(cells + self.codes, kind="stable")
        for batch in gen_batches(n_permutations, max(1, ENTRIES // n)):
            count = len(orders[batch])
            labels = self._walk(np.repeat(hub, count, 1), steps, generator)
            # In every stratum, rows with a label take those of the true labels in random order.
            places = np.argsort((cells[:, None] + labels).T + generator.random((count, n)), axis=1)
            np.put_along_axis(orders[batch], places, np.broadcast_to(sources, places.shape), 1)
        return orders

    def _walk(self, labels, steps, generator):
        """The labels (n, b) of b labelings after a swap or none of each of these pairs of rows."""
        n_labels = self.log_probability.shape[1]
        labels = labels.astype(np.int8 if n_labels < 128 else np.int32)
        for a, b in steps:
            low, high = np.minimum(labels[a], labels[b]), np.maximum(labels[a], labels[b])
            gain = (self.log_probability[a] - self.log_probability[b]).astype(np.float32)
            if n_labels == 2:  # where both have the same label the odds do not matter
                log_odds = gain[:, 1:] - gain[:, :1]
            else:
                gain_of_high = np.take_along_axis(gain, high.astype(int), 1)
                log_odds = gain_of_high - np.take_along_axis(gain, low.astype(int), 1)
            first_has_high = generator.random(low.shape, dtype=np.float32) < expit(log_odds)
            labels[a], labels[b] = np.where(first_has_high, high, low), np.where(first_has_high, low, high)
        return labels


def _pairs(levels, generator):
    """Two arrays of rows, paired at random within the strata; a row of an odd number has no partner."""
    order = generator.permutation(len(levels))
    order = order[np.argsort(levels[order], kind="stable")]
    counts = np.bincount(levels)
    place = np.arange(len(levels)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.flatnonzero((place % 2 == 0)[:-1] & (np.diff(levels[order]) == 0))
    return order[first], order[first + 1]
