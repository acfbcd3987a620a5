"""Sets of rows that are left out together: single rows, folds, pairs, groups, any lists of rows.

Sets of equal size form a group, an array (k, t): they are one batch of small systems in P.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foldless._engine.linalg import namespace, put, zeros


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
        numbers, members = defaultdict(list), defaultdict(list)  # by size
        for number, positions in enumerate(sets):
            numbers[len(positions)].append(number)
            members[len(positions)].append(positions)
        return cls(tuple([(np.array(numbers[t]), np.stack(members[t])) for t in sorted(numbers)]))

    @classmethod
    def leave_one_out(cls, n):
        """n sets of one row."""
        return cls.of(np.arange(n)[:, None])

    @classmethod
    def from_splits(cls, splits, n):
        """The test sets of (train, test) row numbers; None where a training part is not all other rows, each once."""
        tests = []
        for train, test in splits:
            if not len(test) or len(train) + len(test) != n:
                return None
            if (np.bincount(np.concatenate([train, test]), minlength=n) != 1).any():
                return None
            tests.append(test)
        return cls.of(tests)

    def __len__(self):
        return sum(self.counts.values())

    @cached_property
    def counts(self):
        """How many sets have a size, {rows of a set: number of sets}."""
        return {members.shape[1]: len(members) for _, members in self.groups}

    @cached_property
    def sizes(self):
        """Number of rows of every set, in their order."""
        sizes = np.empty(sum(self.counts.values()), int)
        for numbers, members in self.groups:
            sizes[numbers] = members.shape[1]
        return sizes

    @cached_property
    def rows(self):
        """Positions of all rows that are left out, (N,), set by set in their order."""
        if len(self.groups) == 1:
            return self.groups[0][1].ravel()
        return self.stacked(self.groups)

    def __getitem__(self, number):
        """Positions of one set."""
        for numbers, members in self.groups:
            place = np.searchsorted(numbers, number)
            if place < len(numbers) and numbers[place] == number:
                return members[place]
        raise IndexError(number)

    def are_all_rows_of(self, n):
        """Whether the sets are n rows, every one alone and in order."""
        return are_all_rows(self.groups[0][1], n)

    def stacked(self, values):
        """Values of all rows that are left out, (N, ...), set by set in their order.

        ``values`` yields numbers (k,) of sets and values (k, t, ...) of their rows. :meth:`by_size` takes them apart.
        """
        ends, out = None, None
        for numbers, of_sets in values:
            if len(self.groups) == 1 and len(numbers) == len(self.groups[0][0]):  # one batch of all sets, in order
                return namespace(of_sets).reshape(of_sets, (-1, *of_sets.shape[2:]))
            if out is None:
                ends = np.cumsum(self.sizes)
                out = zeros(of_sets, (int(ends[-1]), *of_sets.shape[2:]))
            out = put(out, self._places(ends, numbers, of_sets.shape[1]), of_sets)
        return out

    def by_size(self, stacked):
        """[(numbers of sets (k,), positions (k, t), values (k, t, ...))] for each size, of stacked values (N, ...)."""
        ends = np.cumsum(self.sizes)
        return [
            (numbers, members, stacked[self._places(ends, numbers, members.shape[1])])
            for numbers, members in self.groups
        ]

    def _places(self, ends, numbers, t):
        """Where the rows of some sets of t rows are among all rows that are left out, (k, t)."""
        return (ends - self.sizes)[numbers][:, None] + np.arange(t)


def are_all_rows(members, n):
    """Whether sets of positions (k, t) are n rows, every one alone and in order."""
    return members.shape == (n, 1) and np.array_equal(members[:, 0], np.arange(n))


def split_that_repeats_rows(splits):
    """Number of the first (train, test) split that trains on a row more than once; None where none does.

    Such a training part is not what is left without a set of rows.
    """
    for number, (train, _) in enumerate(splits):
        if len(train) and np.bincount(train).max() > 1:
            return number
    return None


def folds_of(splits, rows, n):
    """Positions in ``rows`` that each split leaves out, and the places among these, stacked, that it tests."""
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    folds, tests, end = [], [], 0
    repeating = split_that_repeats_rows(splits)
    if repeating is not None:
        raise ValueError(
            f"cv: the training part of split {repeating} repeats rows; give rows that count more a larger sample_weight"
            " instead."
        )
    for number, (train, test) in enumerate(splits):
        inside = np.zeros(n, bool)
        inside[train] = True
        if inside[test].any():
            raise ValueError(f"cv: split {number} tests rows that it trains on; such a score says nothing.")
        out = rows[~inside[rows]]
        if len(out) and len(out) < len(rows):
            folds.append(place[out])
            tests.append(end + np.flatnonzero(np.isin(out, test)))
            end += len(out)
    tests = [places for places in tests if len(places)]
    if not tests:
        raise ValueError("cv: no split leaves out a row of positive weight and keeps another.")
    return folds, tests
