"""Which members of a family are neighbours, and what clusters of neighbours add up to.

A map has a value v for each member. A cluster is a set of neighbours that are all above a threshold; its mass is the
sum of their values (Maris & Oostenveld 2007). Threshold-free cluster enhancement gives member k the support of all
heights h below its value (Smith & Nichols 2009), here a sum over h = dh, 2 dh, ... < v_k:

    TFCE_k = sum  e_k(h)^(1/2) h^2 dh        e_k(h): the number of members in the cluster of k at threshold h

The clusters of many maps are the components of one graph, which has a copy of the members for each map.
"""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils import gen_batches

EXTENT, HEIGHT = 0.5, 2.0  # powers of TFCE
ENTRIES = 2**23  # members and pairs of the maps that are worked on at a time


def neighbours(shape, adjacency):
    """Pairs of neighbours as two arrays of member numbers, for members that lie in ``shape``, last axis fastest.

    ``adjacency`` has a matrix for each axis, or None for those next to each other; one matrix is for all members.
    """
    size = int(np.prod(shape))
    if adjacency is not None and not isinstance(adjacency, tuple):
        shape, adjacency = (size,), (adjacency,)
    adjacency = (None,) * len(shape) if adjacency is None else adjacency
    if len(adjacency) != len(shape):
        raise ValueError(f"adjacency has {len(adjacency)} entries; give one for each axis of shape={tuple(shape)}.")
    numbers = np.arange(size).reshape(shape)
    first, second = [], []
    for axis, (length, matrix) in enumerate(zip(shape, adjacency, strict=True)):
        along = np.moveaxis(numbers, axis, 0)
        one, other = _pairs(length, matrix)
        first.append(along[one].ravel())
        second.append(along[other].ravel())
    return np.concatenate(first), np.concatenate(second)


def _pairs(length, matrix):
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
            f"adjacency has a matrix of shape {matrix.shape} for {length} members; give a square one of that size, or"
            " say by shape= how members lie."
        )
    there = (matrix.data != 0) & (matrix.row != matrix.col)
    return matrix.row[there], matrix.col[there]


def joined(above, pairs):
    """Pairs of neighbours above the threshold in a map, as numbers among all that are: ``above`` is (maps, members)."""
    number = np.cumsum(above).reshape(above.shape) - 1
    where, pair = np.nonzero(above[:, pairs[0]] & above[:, pairs[1]])
    return number[where, pairs[0][pair]], number[where, pairs[1][pair]]


def components(count, first, second):
    """The number of the cluster (count,) that each of so many members belongs to."""
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(count, count))
    return connected_components(graph, directed=False)[1]


def masses(values, above, pairs):
    """The mass of each member's cluster (maps, members), 0 outside; members ``above`` the threshold form clusters."""
    label = components(int(above.sum()), *joined(above, pairs))
    found = np.zeros(values.shape)
    found[above] = np.bincount(label, values[above])[label]
    return found


def enhanced(values, step, pairs):
    """TFCE of each member (maps, members); infinite in maps that have an infinite value."""
    unbounded = np.isposinf(values).any(1)
    values = np.where(unbounded[:, None], 0.0, values)
    found = np.zeros(values.shape)
    above, number = values > 0, 0
    (first, second), values, place = joined(above, pairs), values[above], np.flatnonzero(above)
    while len(values):
        # Members that fell below are left behind; those that remain are numbered anew.
        number += 1
        alive = values > number * step
        both = alive[first] & alive[second]
        again = np.cumsum(alive) - 1
        first = again[first[both]]
        second = again[second[both]]
        values = values[alive]
        place = place[alive]
        label = components(len(values), first, second)
        support = np.bincount(label) ** EXTENT * (number * step) ** HEIGHT * step
        found.ravel()[place] += support[label]
    found[unbounded] = np.inf
    return found


def in_batches(statistic, values, pairs):
    """``statistic(part)`` of all maps (maps, members), slice by slice, so that their graph stays small."""
    size = max(1, ENTRIES // (values.shape[1] + len(pairs[0])))
    return np.concatenate([statistic(part) for part in gen_batches(len(values), size)])
