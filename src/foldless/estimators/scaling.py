"""Features in common units: standardised, and with ``standardize="robust"`` normal scores where a column has a tail.

A column with values beyond ``TAIL`` standard deviations decides distances by its few outliers. Its normal scores take
their place (van der Waerden 1952): the quantiles of the normal distribution at the ranks of the values,

    z_i = Phi^-1( (W(x < x_i) + W(x = x_i) / 2) / W ),     W(.) the total weight of the rows that satisfy it,

standardised again. New values are interpolated between those that were seen, and take the score of the nearest end
beyond them. Labels are not seen.
"""

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri
from sklearn.preprocessing import StandardScaler

TAIL = 5.0  # standard deviations
MOST_KNOTS = 1000  # values of a column whose scores are kept; others are interpolated


class TailScaler(StandardScaler):
    """A StandardScaler that puts the normal scores of columns with a tail in the place of their values.

    ``tails_`` are the numbers of these columns, ``knots_`` and ``scores_`` lists of values and their scores.
    """

    def fit(self, X, y=None, sample_weight=None):
        """Fit to dense rows; weights count as repetitions."""
        super().fit(X, sample_weight=sample_weight)
        weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
        rows = weights > 0
        X, weights = X[rows], weights[rows]
        largest = np.abs((X - self.mean_) / self.scale_).max(0)
        self.tails_ = np.flatnonzero(largest > TAIL)
        curves = [_scores(X[:, column].astype(float), weights) for column in self.tails_]
        self.knots_ = [knots for knots, _ in curves]
        self.scores_ = [scores for _, scores in curves]
        return self

    def with_scores(self, X, standardized):
        """Standardised rows with the scores of the tailed columns of X in their place."""
        for column, knots, scores in zip(self.tails_, self.knots_, self.scores_, strict=True):
            standardized[:, column] = np.interp(X[:, column], knots, scores)
        return standardized


def _scores(values, weights):
    """(values in order, their normal scores with mean 0 and variance 1)."""
    knots, places = np.unique(values, return_inverse=True)
    masses = np.bincount(places, weights)
    scores = ndtri((np.cumsum(masses) - masses / 2) / masses.sum())
    mean = np.average(scores, weights=masses)
    scores = (scores - mean) / np.sqrt(np.average(np.square(scores - mean), weights=masses))
    if len(knots) > MOST_KNOTS:
        kept = np.unique(np.linspace(0, len(knots) - 1, MOST_KNOTS).round().astype(int))
        knots, scores = knots[kept], scores[kept]
    return knots, scores


def fitted_scaler(standardize, X, sample_weight):
    """The fitted scaler of an estimator; sparse rows are not centred and have no scores."""
    if standardize == "robust" and not sp.issparse(X):
        return TailScaler().fit(X, sample_weight=sample_weight)
    return StandardScaler(with_mean=not sp.issparse(X)).fit(X, sample_weight=sample_weight)


def standardized(scaler, X):
    """Rows X in the units of a fitted scaler, in their own type; sparse ones stay sparse unless it centres."""
    if sp.issparse(X):
        if not scaler.with_mean:
            return scaler.transform(X)
        X = X.toarray()  # the model was fitted to dense rows
    center = scaler.mean_.astype(X.dtype) if scaler.with_mean else 0.0
    rows = (X - center) / scaler.scale_.astype(X.dtype)
    return scaler.with_scores(X, rows) if isinstance(scaler, TailScaler) else rows
