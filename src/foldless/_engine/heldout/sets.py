"""Sets of rows that are left out together: single rows, folds, pairs, groups, any lists of rows.

Sets of equal size form a group, an array (k, t): they are one batch of small systems in P.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of positions among the rows of a fit.

    ``groups`` holds, for every size t, the numbers (k,) of the sets of this size in their order, and their positions
    (k, t).
    """

    groups: tuple

    @classmethod
    def of(cls, sets):
        """Sets from a list of arrays of positions, or from an array (k, t) of sets of one size."""
        if isinstance(sets, np.ndarray):
            return cls(((np.arange(len(sets)), sets),))
        sizes = np.array([len(members) for members in sets])
        by_size = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
        return cls(tuple((numbers, np.stack([sets[number] for number in numbers])) for numbers in by_size))

    @classmethod
    def leave_one_out(cls, n):
        """n sets of one row."""
        return cls.of(np.arange(n)[:, None])

    def __len__(self):
        return sum(len(numbers) for numbers, _ in self.groups)

    @cached_property
    def sizes(self):
        """Number of rows of every set, in their order."""
        sizes = np.empty(len(self), int)
        for numbers, members in self.groups:
            sizes[numbers] = members.shape[1]
        return sizes

    def __getitem__(self, number):
        """Positions of one set."""
        for numbers, members in self.groups:
            place = np.searchsorted(numbers, number)
            if place < len(numbers) and numbers[place] == number:
                return members[place]
        raise IndexError(number)

    def are_all_rows_of(self, n):
        """Whether the sets are n rows, every one alone and in order."""
        members = self.groups[0][1]
        return members.shape == (n, 1) and np.array_equal(members[:, 0], np.arange(n))

    def stacked(self, values):
        """Values of all rows that are left out, (N, ...), set by set in their order.

        ``values`` yields numbers (k,) of sets and values (k, t, ...) of their rows.
        """
        ends = np.cumsum(self.sizes)
        out = None
        for numbers, of_sets in values:
            if out is None:
                out = np.empty((ends[-1], *of_sets.shape[2:]), of_sets.dtype)
            places = (ends - self.sizes)[numbers][:, None] + np.arange(of_sets.shape[1])
            out[places] = of_sets
        return out
