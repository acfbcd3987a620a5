"""Tests of clusters of neighbouring members, from the scores of all permutations.

Scores become values that members share (``comparable``), and the values of every labeling a map of cluster masses or of
TFCE (``neighbours``). Each is compared with the largest one of every permutation, with the true labels counted:

    p = (1 + #{j : largest_j >= statistic}) / (1 + m)
"""

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from foldless.permutation.comparable import all_scores, check_unit, comparable
from foldless.permutation.neighbours import components, enhanced, in_batches, joined, masses, neighbours
from foldless.permutation.nulls import PermutationTestResult, p_values

STEP = 0.1  # of TFCE, in standard deviations of the null


class ClusterTestResult(PermutationTestResult):
    """A family's scores and p-values as they were, with family-wise p-values by clusters.

    It unpacks to score, permutation_scores, pvalue, and displays draw it like the result of the family.

    Attributes
    ----------
    pvalue_fwe : ndarray of the shape of ``score``
        For "mass" the p-value of the cluster that a member belongs to (1 outside of clusters), for "tfce" its own.
    statistics : ndarray of the shape of ``score``; the mass of the member's cluster (0 outside), or its TFCE
    max_statistics : ndarray of shape (n_permutations,), the largest one of every permutation
    clusters : list of boolean arrays of the shape of ``score``, the largest mass first; empty for "tfce"
    cluster_masses, cluster_pvalues : ndarrays, one entry a cluster
    values : ndarray of the shape of ``score``, what was added up: z, or the score minus the mean of its null
    statistic : {"mass", "tfce"}

    ``to_frame()`` has one row for each member, with its value and statistic, and the number of its cluster, or -1.
    """

    statistics: Any = None
    max_statistics: Any = None
    clusters: Any = ()
    cluster_masses: Any = ()
    cluster_pvalues: Any = ()
    values: Any = None
    statistic: str = ""

    def __repr__(self):
        few, size = int(np.sum(self.pvalue_fwe <= 0.05)), np.size(self.score)
        lowest = f"smallest p = {np.nanmin(self.pvalue_fwe):.4g}" if not np.isnan(self.pvalue_fwe).all() else "no score"
        found = f"{few} of {size} members with p <= 0.05"
        if self.statistic != "tfce":
            found = f"{np.sum(np.asarray(self.cluster_pvalues) <= 0.05)} of {len(self.clusters)} clusters, {found}"
        what = "TFCE" if self.statistic == "tfce" else "cluster masses"
        return f"{what} of {self.scoring or 'score'}: {found}, {lowest} ({self.n_permutations} permutations)"

    def _columns(self):
        number = np.full(np.shape(self.score), -1)
        for place, mask in enumerate(self.clusters):
            number[mask] = place
        found = {"value": self.values, "statistic": self.statistics, "cluster": number}
        return super()._columns() | {name: np.ravel(each) for name, each in found.items()}


def cluster_test(
    result: PermutationTestResult,
    *,
    statistic: Literal["mass", "tfce"] = "mass",
    threshold: float = 0.05,
    unit: Literal["p", "z", "score"] = "p",
    adjacency: Any = None,
    shape: tuple[int, ...] | None = None,
) -> ClusterTestResult:
    """Family-wise test of clusters of neighbouring members: times, channels x times, or pairs of times.

    Parameters
    ----------
    result : PermutationTestResult
        Of a family: from :func:`permutation_test_score`, ``combine`` or ``sign_flip_test``.
    statistic : {"mass", "tfce"}, default="mass"
        "mass": the sum of z over a cluster. "tfce": threshold-free cluster enhancement, with the powers 1/2 of extent
        and 2 of height of Smith & Nichols (2009), in steps of a tenth of the null's standard deviation.
    threshold : float, default=0.05
        Which members may form clusters; "tfce" has no use for it. Choose it before looking.
    unit : {"p", "z", "score"}, default="p"
        Unit of the threshold. "p": members whose own p-value is at most ``threshold``. "z": members that many standard
        deviations of their null above its mean. "score": members whose score is that much better than the mean of the
        null; the same is then added up, in place of z.
    adjacency : sparse matrix, tuple or None, default=None
        Which members are neighbours. None: those next to each other, along each axis. A matrix of shape (members,
        members): its non-zero entries. A tuple has a matrix, or None, for each axis of ``shape``; members are then
        neighbours along one axis at a time (as in ``mne.stats.combine_adjacency``).
    shape : tuple of int, default=None
        How members lie, last axis fastest: (n_channels, n_times), say. By default the shape of ``result.score``.

    Returns
    -------
    ClusterTestResult

    Notes
    -----
    Scores are tested for being better than chance, not for being worse. A significant cluster says that there is an
    effect; its extent, and any single member of it, may be chance (Sassenhagen & Draschkow 2019).

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.model_selection import PermutationTestResult, cluster_test
    >>> null = np.random.default_rng(0).normal(0.5, 0.05, size=(999, 8))
    >>> score = np.array([0.5, 0.48, 0.59, 0.61, 0.6, 0.5, 0.59, 0.52])
    >>> found = cluster_test(PermutationTestResult(score, null, scoring="accuracy"))
    >>> [np.flatnonzero(each).tolist() for each in found.clusters], found.cluster_pvalues.round(3).tolist()
    ([[2, 3, 4], [6]], [0.001, 0.294])
    """
    check_unit(unit)
    if statistic not in ("mass", "tfce"):
        raise ValueError(f"statistic={statistic!r} is unknown; use 'mass' or 'tfce'.")
    _check_threshold(threshold, unit)
    scores = all_scores(result)
    shape = _checked_shape(np.shape(result.score) if shape is None else shape, scores.shape[1])
    values = comparable(scores, "score" if unit == "score" else "z")
    pairs = neighbours(shape, adjacency)
    if statistic == "tfce":
        step = STEP * (np.std(values[np.isfinite(values)]) if unit == "score" else 1.0)
        found = in_batches(lambda part: enhanced(values[part], step, pairs), values, pairs)
        return _result(result, statistic, values[0], found)
    above = comparable(scores, "p") >= -threshold if unit == "p" else values > threshold
    found = in_batches(lambda part: masses(values[part], above[part], pairs), values, pairs)
    return _with_clusters(_result(result, statistic, values[0], found), above[0], pairs)


def _check_threshold(threshold, unit):
    if not isinstance(threshold, Real) or not np.isfinite(float(threshold)):
        raise ValueError(f"threshold={threshold!r} must be a number, in the unit {unit!r}.")
    if unit == "p" and not 0 < float(threshold) < 1:
        raise ValueError(f"threshold={threshold!r} must be between 0 and 1, a p-value; or set unit='z' or 'score'.")


def _checked_shape(shape, n_members):
    lengths = tuple(shape) if np.iterable(shape) else (shape,)
    if isinstance(shape, str) or not all(isinstance(each, Integral) and int(each) > 0 for each in lengths):
        raise ValueError(f"shape={shape!r} must be a tuple of lengths, such as (n_channels, n_times).")
    if np.prod(lengths) != n_members:
        raise ValueError(f"shape={lengths} has {np.prod(lengths)} places, and there are {n_members} members.")
    return lengths


def _result(result, statistic, values, found):
    """The result of statistics (1 + m, members) of all labelings, the true ones first."""
    given = {name: getattr(result, name) for name in ("scoring", "greater_is_better", "generalised", "path", "strata")}
    test = ClusterTestResult(*result, **given)
    shape, known = np.shape(result.score), ~np.isnan(np.ravel(result.score))
    test.statistic = statistic
    test.max_statistics = found[1:].max(1)
    test.max_scores = None
    test.values, test.statistics = (np.where(known, each, np.nan).reshape(shape) for each in (values, found[0]))
    test.pvalue_fwe = p_values(test.statistics, test.max_statistics.reshape(-1, *[1] * len(shape)))
    return test


def _with_clusters(test, above, pairs):
    """The same with the clusters of the true labels, the largest mass first."""
    label = components(int(above.sum()), *joined(above[None], pairs))
    clusters = []
    for number in range(label.max(initial=-1) + 1):
        mask = np.zeros(np.shape(test.score), bool)
        mask.ravel()[np.flatnonzero(above)[label == number]] = True
        clusters.append(mask)
    test.clusters = sorted(clusters, key=lambda mask: -test.statistics[mask][0])
    test.cluster_masses = np.array([test.statistics[mask][0] for mask in test.clusters])
    test.cluster_pvalues = np.array([test.pvalue_fwe[mask][0] for mask in test.clusters])
    return test
