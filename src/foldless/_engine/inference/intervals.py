"""Intervals of cross-validated scores, from the scores of folds and the numbers of held-out rows.

The scores of the folds of a cross-validation are not independent: their models share training rows. Their standard
error is too small. Two remedies:

nested           Bates, Hastie & Tibshirani (2023), algorithm 1. Leave out pairs of folds. With K folds of n_i rows, let
                 S_ij be the score of fold i by the model without folds i and j, S_ii by the model without fold i:

                     in_j = mean of S_ij over i != j,    out_j = S_jj,
                     MSE  = mean over j of (in_j - out_j)^2 - Var(out_j),

                 averaged over partitions drawn at random. in_j estimates what out_j estimates without bias, so that
                 their squared distance is the error of in_j plus the variance of out_j, which is known. MSE is that of
                 (K-1)/K n rows. The centre is moved from K-2 folds to all rows: a bias that falls as 1/n is
                 (1 + (K-2)/K) (mean in - mean out). sqrt(MSE) is kept between the standard error of independent rows
                 and sqrt(K) times it.

nadeau-bengio    Nadeau & Bengio (2003): scores of J splits vary by (1/J + n_test / n_train) times their variance about
                 their mean; Student's t with J - 1 degrees of freedom.

Both rely on how the scores of folds differ, which says little of a rare class and nothing of perfect folds. Intervals
of scores of classes are therefore widened to hold those from the numbers of held-out rows (``inference.counts``) too.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from foldless._engine.inference.counts import HeldOutCounts
from foldless.results import Result, lanes

IN_WORDS = {
    "nested": "nested cross-validation (Bates, Hastie & Tibshirani 2023)",
    "nadeau-bengio": "from the scores of the folds (Nadeau & Bengio 2003)",
    "held-out rows": "Student's t of held-out {units}",
}


@dataclass(frozen=True)
class FoldScores:
    """Scores of the folds of R partitions; the difference of two is that of two models.

    Attributes
    ----------
    S : ndarray of shape (R, K, K), the score of fold i by the model without i and j; on the diagonal without i alone
    parts : ndarray of shape (R, K, p), what the scores on the diagonal are means of: scores of single rows, or
        pseudo-values of a jackknife over groups of rows; nan fills up shorter folds
    weight : ndarray of shape (R, K), of the folds in their mean: their rows, or 1
    subtracted : bool, whether these are differences
    of_values : bool, whether predicted values are scored, not classes: their scores are no shares of rows
    counts : HeldOutCounts or None, of classes
    """

    S: np.ndarray
    parts: np.ndarray
    weight: np.ndarray
    subtracted: bool = False
    of_values: bool = False
    counts: HeldOutCounts | None = None

    def __sub__(self, other):
        return FoldScores(self.S - other.S, self.parts - other.parts, self.weight, True, self.of_values)

    def extended(self, other):
        """The same with the partitions of another."""
        width = max(self.parts.shape[2], other.parts.shape[2])
        padded = [
            np.pad(scores.parts, ((0, 0), (0, 0), (0, width - scores.parts.shape[2])), constant_values=np.nan)
            for scores in (self, other)
        ]
        S, weight = (np.concatenate([getattr(scores, name) for scores in (self, other)]) for name in ("S", "weight"))
        counts = self.counts
        if counts is not None and counts.confusion is not None:
            counts = counts.with_confusion(other.counts.confusion)
        return FoldScores(S, np.concatenate(padded), weight, of_values=self.of_values, counts=counts)

    @property
    def outside(self):
        """Scores (R, K) of the folds by the models without them."""
        return np.diagonal(self.S, axis1=1, axis2=2)

    @property
    def inside(self):
        """Mean scores (R, K) of all other folds by the models without them and one fold."""
        others = self.weight[:, :, None] * ~np.eye(self.S.shape[1], dtype=bool)
        return (others * self.S).sum(1) / others.sum(1)

    @property
    def score(self):
        """The cross-validated score, averaged over the partitions."""
        return float((self.weight * self.outside).sum() / self.weight.sum())

    @property
    def variance(self):
        """Variances (R, K) of ``outside``, were the models fixed and their rows independent."""
        return np.nanvar(self.parts, axis=2, ddof=1) / np.count_nonzero(~np.isnan(self.parts), axis=2)

    @property
    def square_errors(self):
        """(R,) estimates of the mean squared error of ``inside``, one for each partition."""
        return (np.square(self.inside - self.outside) - self.variance).mean(1)

    @property
    def independent(self):
        """The variance of the score, were rows and models independent.

        Shares of rows have at least the variance that they get from four more rows, two of them right and two wrong
        (Agresti & Coull 1998); differences of shares from four more, of which each model wins one: a model that is
        right in all rows is not certain.
        """
        share = self.weight / self.weight.sum(1, keepdims=True)
        plain = float((share**2 * self.variance).sum(1).mean())
        values = self.parts[~np.isnan(self.parts)]
        if self.of_values or not np.isin(values, (-1.0, 0.0, 1.0)).all():
            return plain
        n, mean = len(values) / len(self.parts), values.mean()
        square = (n * np.square(values).mean() + 2) / (n + 4)
        centre = n * mean / (n + 4) if self.subtracted else square
        return max(plain, float(square - centre**2) / n)

    def known_within(self, share):
        """Whether the partitions drawn so far tell the square root of MSE to this share of it."""
        errors = self.square_errors
        spread = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.inf
        return spread <= 2 * share * max(errors.mean(), self.independent)


@dataclass(frozen=True, repr=False)
class ScoreInterval(Result):
    """A cross-validated score and an interval for what it estimates: the score of the model on new rows.

    Attributes
    ----------
    score : float, the cross-validated score
    low, high : float, the ends of the interval
    standard_error : float
    confidence : float
    method : str, "nested", "nadeau-bengio" or "held-out rows"
    scoring : str
    centre : float, the score moved to the number of rows that the model has in the end; the middle of the interval of
        the method
    n_folds, n_repeats : int, folds, and partitions into them
    description : str, where the ends come from, in words: the method, and the numbers of held-out rows if the interval
        was widened to what these allow
    widened : bool, whether it was
    path : Route, how the held-out scores were computed and why

    It unpacks to score, low, high. ``to_frame()`` has one row.
    """

    score: float
    low: float
    high: float
    standard_error: float
    confidence: float
    method: str
    scoring: str = "score"
    centre: float = np.nan
    n_folds: int = 0
    n_repeats: int = 1
    description: str = ""
    widened: bool = False
    path: Any = None

    def __iter__(self):
        return iter((self.score, self.low, self.high))

    def __repr__(self):
        folds = f", {self.n_folds} folds" if self.n_folds else ""
        times = f", {self.n_repeats} times" if self.n_repeats > 1 else ""
        counts = ", widened by counts" if self.widened else ""
        return (
            f"{self.scoring} {self.score:.4f}, {100 * self.confidence:g} % interval {self.low:.4f} to {self.high:.4f}"
            f" ({self.method}{counts}{folds}{times})"
        )

    def _columns(self):
        return {name: [value] for name, value in vars(self).items() if name != "path"}

    def _picture(self):
        return lanes([(self.scoring, self.score, (self.low, self.high))], f"{self.scoring} and its interval")


def check_confidence(confidence):
    """Refuse what is no share."""
    if isinstance(confidence, str) or not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence={confidence!r} must lie between 0 and 1; 0.9 gives a 90 % interval.")


def nested_error(scores):
    """(centre, standard error) by the nested cross-validation of Bates, Hastie & Tibshirani (2023)."""
    n_folds = scores.S.shape[1]
    inside, outside = (scores.weight * scores.inside).sum() / scores.weight.sum(), scores.score
    bias = (1 + (n_folds - 2) / n_folds) * (inside - outside)
    least = scores.independent
    square = np.clip((n_folds - 1) / n_folds * scores.square_errors.mean(), least, n_folds * least)
    return float(inside - bias), float(np.sqrt(square))


def corrected_error(scores, share):
    """(mean, standard error, degrees of freedom) of split scores (J,) by Nadeau & Bengio (2003).

    ``share`` is the number of test rows for each training row.
    """
    scores = np.asarray(scores, float)
    n = len(scores)
    if n < 2:
        raise ValueError("an interval from the scores of splits takes at least two splits.")
    return float(scores.mean()), float(np.sqrt((1 / n + share) * scores.var(ddof=1))), n - 1


def interval_from(estimate, quantile, confidence, kind, counts=None, *, method, **about):
    """The :class:`ScoreInterval` of ``estimate``, the score with its centre and standard error.

    It reaches ``quantile`` standard errors to either side, and further where the ``counts`` of held-out rows say so.
    """
    score, centre, error = map(float, estimate)
    low, high = np.clip([centre - quantile * error, centre + quantile * error], *kind.limits).tolist()
    units = "groups" if counts is not None and counts.grouped else "rows"
    description = IN_WORDS[method].format(units=units)
    low, high, why = widened_by_counts(low, high, score, confidence, kind, counts)
    about |= {"scoring": kind.name, "centre": centre, "description": description + why, "widened": bool(why)}
    return ScoreInterval(score, low, high, error, confidence, method, **about)


def widened_by_counts(low, high, score, confidence, kind, counts):
    """(low, high, what to add to the description of an interval) of one that holds the one from counts as well."""
    ends = None if counts is None else counts.interval(kind, score, confidence)
    if ends is None or (low <= ends[0] and ends[1] <= high):
        return low, high, ""
    low, high = np.clip([np.minimum(low, ends[0]), np.maximum(high, ends[1])], *kind.limits).tolist()
    return low, high, f", widened to {counts.words(kind)}"


def nested_interval(scores, confidence, kind, **about):
    """The :class:`ScoreInterval` of :class:`FoldScores` by :func:`nested_error`."""
    estimate = (scores.score, *nested_error(scores))
    about |= {"method": "nested", "n_folds": scores.S.shape[1], "n_repeats": len(scores.S)}
    return interval_from(estimate, norm.ppf(0.5 + confidence / 2), confidence, kind, scores.counts, **about)


def corrected_interval(scores, share, confidence, kind, counts=None, **about):
    """The :class:`ScoreInterval` of split scores by :func:`corrected_error`."""
    mean, error, freedom = corrected_error(scores, share)
    quantile = student.ppf(0.5 + confidence / 2, freedom)
    return interval_from((mean, mean, error), quantile, confidence, kind, counts, method="nadeau-bengio", **about)


def row_interval(values, confidence, kind, counts=None, **about):
    """The :class:`ScoreInterval` of scores (t,) of rows that the model has not seen, which are independent."""
    mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))
    quantile = student.ppf(0.5 + confidence / 2, len(values) - 1)
    return interval_from((mean, mean, error), quantile, confidence, kind, counts, method="held-out rows", **about)


def interval_of(scores, method, confidence, kind, **about):
    """The :class:`ScoreInterval` of :class:`FoldScores` by a method, "nested" or "nadeau-bengio"."""
    if method == "nested":
        return nested_interval(scores, confidence, kind, **about)
    n_folds = scores.S.shape[1]
    about |= {"n_folds": n_folds, "n_repeats": len(scores.S)}
    return corrected_interval(scores.outside.ravel(), 1 / (n_folds - 1), confidence, kind, scores.counts, **about)


def two_sided(centre, error, freedom=None):
    """The p-value of a difference, by the normal distribution or Student's t."""
    if error == 0.0:
        return 1.0 if centre == 0.0 else 0.0
    tail = norm.sf(abs(centre) / error) if freedom is None else student.sf(abs(centre) / error, freedom)
    return float(2 * tail)
