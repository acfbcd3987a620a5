"""Tests of clusters of neighbouring members, from the scores of all permutations.

Scores are converted to a unit that members share (``_units``). The values v of each labeling are a map over the
members. A cluster is a set of neighbours that are all above a threshold; its mass is the sum of their values (Maris &
Oostenveld 2007). Threshold-free cluster enhancement gives member k the support of all heights h below its value (Smith
& Nichols 2009), computed as a sum over h = dh, 2 dh, ... < v_k:

    TFCE_k = sum  e_k(h)^(1/2) h^2 dh        e_k(h): the number of members in the cluster of k at threshold h

Each statistic of the true labels is compared with the largest one of every permutation:

    p = (1 + #{j : largest_j >= statistic}) / (1 + m)

The clusters of many maps are found at once, as connected components of one graph with a copy of the members for each
map.
"""

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils import gen_batches

from foldless._engine.permutation.nulls import PermutationTestResult, p_values
from foldless.stats._units import all_scores, check_unit, convert_scores

TFCE_STEP = 0.1  # dh, in standard deviations of the null
TFCE_EXTENT_POWER, TFCE_HEIGHT_POWER = 0.5, 2.0
MAX_GRAPH_SIZE = 2**23  # members and pairs of neighbours of the maps in one graph


class ClusterTestResult(PermutationTestResult):
    """The scores and p-values of a family, with family-wise p-values by clusters.

    It unpacks to score, permutation_scores, pvalue, as the result of the family does, and displays draw it alike.

    Attributes
    ----------
    pvalue_fwe : ndarray of the shape of ``score``
        For "mass" the p-value of the cluster that contains the member (1 outside of clusters), for "tfce" the p-value
        of the member.
    statistics : ndarray of the shape of ``score``; the mass of the member's cluster (0 outside), or its TFCE
    max_statistics : ndarray of shape (n_permutations,), the largest statistic of every permutation
    clusters : list of boolean arrays of the shape of ``score``, the largest mass first; empty for "tfce"
    cluster_masses, cluster_pvalues : ndarrays, one entry for each cluster
    values : ndarray of the shape of ``score``, the values that masses are sums of: z, or score minus mean of the null
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
        n_significant, n_members = int(np.sum(self.pvalue_fwe <= 0.05)), np.size(self.score)
        counts = f"{n_significant} of {n_members} members with p <= 0.05"
        if self.statistic != "tfce":
            n_clusters = np.sum(np.asarray(self.cluster_pvalues) <= 0.05)
            counts = f"{n_clusters} of {len(self.clusters)} clusters, {counts}"
        undefined = np.isnan(self.pvalue_fwe).all()
        smallest = "no score" if undefined else f"smallest p = {np.nanmin(self.pvalue_fwe):.4g}"
        name = "TFCE" if self.statistic == "tfce" else "cluster masses"
        return f"{name} of {self.scoring or 'score'}: {counts}, {smallest} ({self.n_permutations} permutations)"

    def _columns(self):
        cluster_number = np.full(np.shape(self.score), -1)
        for number, mask in enumerate(self.clusters):
            cluster_number[mask] = number
        columns = {"value": self.values, "statistic": self.statistics, "cluster": cluster_number}
        return super()._columns() | {name: np.ravel(column) for name, column in columns.items()}


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
        Of a family: from :func:`~foldless.model_selection.permutation_test_score`, ``combine`` or ``sign_flip_test``.
    statistic : {"mass", "tfce"}, default="mass"
        "mass": the sum of z over a cluster. "tfce": threshold-free cluster enhancement, with the powers 1/2 of extent
        and 2 of height of Smith & Nichols (2009), in steps of a tenth of the null's standard deviation.
    threshold : float, default=0.05
        Threshold above which members form clusters; not used by "tfce". Choose it before you look at the scores.
    unit : {"p", "z", "score"}, default="p"
        Unit of the threshold. "p": members form clusters if their p-value is at most ``threshold``. "z": if they are
        that many standard deviations above the mean of their null. "score": if their score is that much better than
        the mean of their null; masses are then sums of these differences instead of z.
    adjacency : sparse matrix, tuple or None, default=None
        Which members are neighbours. None: members next to each other along each axis. A matrix of shape (members,
        members): its non-zero entries. A tuple has a matrix, or None, for each axis of ``shape``; members are then
        neighbours along one axis at a time (as in ``mne.stats.combine_adjacency``).
    shape : tuple of int, default=None
        Shape in which the members are arranged, last axis fastest: (n_channels, n_times), say. By default the shape of
        ``result.score``.

    Returns
    -------
    ClusterTestResult

    Notes
    -----
    The test is one-sided: only scores better than chance can be significant. A significant cluster says that there is
    an effect; its extent, and any single member of it, may be chance (Sassenhagen & Draschkow 2019).

    Examples
    --------
    >>> import numpy as np
    >>> from foldless.model_selection import PermutationTestResult
    >>> from foldless.stats import cluster_test
    >>> null = np.random.default_rng(0).normal(0.5, 0.05, size=(999, 8))
    >>> score = np.array([0.5, 0.48, 0.59, 0.61, 0.6, 0.5, 0.59, 0.52])
    >>> test = cluster_test(PermutationTestResult(score, null, scoring="accuracy"))
    >>> [np.flatnonzero(mask).tolist() for mask in test.clusters], test.cluster_pvalues.round(3).tolist()
    ([[2, 3, 4], [6]], [0.001, 0.294])
    """
    check_unit(unit)
    if statistic not in ("mass", "tfce"):
        raise ValueError(f"statistic={statistic!r} is unknown; use 'mass' or 'tfce'.")
    _check_threshold(threshold, unit)
    scores = all_scores(result)
    shape = _check_shape(np.shape(result.score) if shape is None else shape, scores.shape[1])
    values = convert_scores(scores, "score" if unit == "score" else "z")
    pairs = _neighbour_pairs(shape, adjacency)
    if statistic == "tfce":
        step = TFCE_STEP * (np.std(values[np.isfinite(values)]) if unit == "score" else 1.0)
        statistics = _in_batches(lambda maps: _tfce(values[maps], step, pairs), values, pairs)
        return _cluster_result(result, statistic, values[0], statistics)
    above = convert_scores(scores, "p") >= -threshold if unit == "p" else values > threshold
    statistics = _in_batches(lambda maps: _masses(values[maps], above[maps], pairs), values, pairs)
    return _add_clusters(_cluster_result(result, statistic, values[0], statistics), above[0], pairs)


def _check_threshold(threshold, unit):
    if not isinstance(threshold, Real) or not np.isfinite(float(threshold)):
        raise ValueError(f"threshold={threshold!r} must be a number, in the unit {unit!r}.")
    if unit == "p" and not 0 < float(threshold) < 1:
        raise ValueError(f"threshold={threshold!r} must be between 0 and 1, a p-value; or set unit='z' or 'score'.")


def _check_shape(shape, n_members):
    """Check ``shape`` against the number of members, and return it as a tuple."""
    lengths = tuple(shape) if np.iterable(shape) else (shape,)
    if isinstance(shape, str) or not all(isinstance(length, Integral) and int(length) > 0 for length in lengths):
        raise ValueError(f"shape={shape!r} must be a tuple of lengths, such as (n_channels, n_times).")
    if np.prod(lengths) != n_members:
        raise ValueError(f"shape={lengths} has {np.prod(lengths)} places, and there are {n_members} members.")
    return lengths


# -- results -----------------------------------------------------------------------------------------------------------


def _cluster_result(result, statistic, values, statistics):
    """The result of the statistics (1 + m, members) of all labelings, the true labels first."""
    fields = ("scoring", "greater_is_better", "generalised", "path", "strata")
    test = ClusterTestResult(*result, **{name: getattr(result, name) for name in fields})
    shape, defined = np.shape(result.score), ~np.isnan(np.ravel(result.score))
    test.statistic = statistic
    test.max_statistics = statistics[1:].max(1)
    test.max_scores = None
    test.values = np.where(defined, values, np.nan).reshape(shape)
    test.statistics = np.where(defined, statistics[0], np.nan).reshape(shape)
    test.pvalue_fwe = p_values(test.statistics, test.max_statistics.reshape(-1, *[1] * len(shape)))
    return test


def _add_clusters(test, above, pairs):
    """Add the clusters of the true labels to the result, the largest mass first."""
    label = _cluster_labels(int(above.sum()), *_pairs_above(above[None], pairs))
    clusters = []
    for number in range(label.max(initial=-1) + 1):
        mask = np.zeros(np.shape(test.score), bool)
        mask.ravel()[np.flatnonzero(above)[label == number]] = True
        clusters.append(mask)
    test.clusters = sorted(clusters, key=lambda mask: -test.statistics[mask][0])
    test.cluster_masses = np.array([test.statistics[mask][0] for mask in test.clusters])
    test.cluster_pvalues = np.array([test.pvalue_fwe[mask][0] for mask in test.clusters])
    return test


# -- neighbours --------------------------------------------------------------------------------------------------------


def _neighbour_pairs(shape, adjacency):
    """Pairs of neighbours, as two arrays of member numbers; members are arranged in ``shape``, last axis fastest.

    ``adjacency`` has a matrix for each axis, or None for members next to each other; one matrix is for all members.
    """
    n_members = int(np.prod(shape))
    if adjacency is not None and not isinstance(adjacency, tuple):
        shape, adjacency = (n_members,), (adjacency,)
    adjacency = (None,) * len(shape) if adjacency is None else adjacency
    if len(adjacency) != len(shape):
        raise ValueError(f"adjacency has {len(adjacency)} entries; give one for each axis of shape={tuple(shape)}.")
    numbers = np.arange(n_members).reshape(shape)
    first, second = [], []
    for axis, (length, matrix) in enumerate(zip(shape, adjacency, strict=True)):
        along_axis = np.moveaxis(numbers, axis, 0)
        rows, columns = _pairs_of_axis(length, matrix)
        first.append(along_axis[rows].ravel())
        second.append(along_axis[columns].ravel())
    return np.concatenate(first), np.concatenate(second)


def _pairs_of_axis(length, matrix):
    """Pairs of neighbours along one axis."""
    if matrix is None:
        return np.arange(length - 1), np.arange(1, length)
    try:
        matrix = coo_array(matrix, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"adjacency holds a {type(matrix).__name__} that is no matrix of numbers; give a matrix of all members, a"
            " tuple with a matrix or None for each axis of shape, or None."
        ) from None
    if matrix.shape != (length, length):
        raise ValueError(
            f"adjacency has a matrix of shape {matrix.shape} for {length} members; give a square matrix of that"
            " size, or set shape= to the shape in which members are arranged."
        )
    linked = (matrix.data != 0) & (matrix.row != matrix.col)
    return matrix.row[linked], matrix.col[linked]


def _pairs_above(above, pairs):
    """Pairs of neighbours in the same map (maps, members) that are both above the threshold.

    They are numbered among all members above the threshold.
    """
    number = np.cumsum(above).reshape(above.shape) - 1
    maps, pair = np.nonzero(above[:, pairs[0]] & above[:, pairs[1]])
    return number[maps, pairs[0][pair]], number[maps, pairs[1][pair]]


# -- statistics --------------------------------------------------------------------------------------------------------


def _cluster_labels(n_above, first, second):
    """The number of the cluster of each member above the threshold (n_above,), from pairs of neighbours."""
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(n_above, n_above))
    return connected_components(graph, directed=False)[1]


def _masses(values, above, pairs):
    """The mass of each member's cluster (maps, members), 0 for members that are not ``above`` the threshold."""
    label = _cluster_labels(int(above.sum()), *_pairs_above(above, pairs))
    masses = np.zeros(values.shape)
    masses[above] = np.bincount(label, values[above])[label]
    return masses


def _tfce(values, step, pairs):
    """TFCE of each member (maps, members); inf everywhere in maps that have an infinite value."""
    unbounded = np.isposinf(values).any(1)
    values = np.where(unbounded[:, None], 0.0, values)
    tfce = np.zeros(values.shape)
    above = values > 0
    first, second = _pairs_above(above, pairs)
    values, place = values[above], np.flatnonzero(above)
    n_steps = 0
    while len(values):
        # Members that are no longer above the height are dropped, and the others renumbered.
        n_steps += 1
        height = n_steps * step
        remains = values > height
        both_remain = remains[first] & remains[second]
        new_number = np.cumsum(remains) - 1
        first, second = new_number[first[both_remain]], new_number[second[both_remain]]
        values, place = values[remains], place[remains]
        label = _cluster_labels(len(values), first, second)
        support = np.bincount(label) ** TFCE_EXTENT_POWER * height**TFCE_HEIGHT_POWER * step
        tfce.ravel()[place] += support[label]
    tfce[unbounded] = np.inf
    return tfce


def _in_batches(statistic, values, pairs):
    """Concatenate ``statistic(maps)`` of slices of all maps (maps, members), which limits the size of the graph."""
    n_maps = max(1, MAX_GRAPH_SIZE // (values.shape[1] + len(pairs[0])))
    return np.concatenate([statistic(maps) for maps in gen_batches(len(values), n_maps)])
