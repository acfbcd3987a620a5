"""Stratified leave-one-out as a splitter (the sets: ``readout.strata``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from foldless._engine.linalg.types import RandomStateLike
from foldless._engine.readout.strata import stratified_sets


class StratifiedLeaveOneOut(BaseCrossValidator):
    """Leave-one-out that keeps the shares of the classes: of equal classes one row of each is left out together.

    Leave-one-out removes a row of one class only. Under a strong penalty this alone decides against the class, and even
    good models misclassify the row (Parker, Guenter & Bedo 2007). Here a test set has one row of the rarest class, and
    of every other class as many rows as it has for each row of the rarest. Every row is tested once in each repeat.

    Parameters
    ----------
    n_repeats : int, default=1
        How often all rows are divided into test sets, each time at random.
    random_state : int, RandomState instance or None, default=0
        Divides the rows of each class among the sets; None gives other sets at every call.

    Notes
    -----
    There are as many sets as the rarest class has rows; ten, some without that class, where these are fewer and
    another class has ten. Scores of a single split are those of a few rows: take their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import LSSVC
    >>> from foldless.model_selection import StratifiedLeaveOneOut, cross_val_score
    >>> rng, y = np.random.default_rng(0), np.arange(40) % 2
    >>> X = rng.normal(size=(40, 10)) + 0.3 * y[:, None]
    >>> float(cross_val_score(LSSVC("linear", alpha=10_000), X, y, cv=StratifiedLeaveOneOut()).mean())
    0.625
    """

    def __init__(self, n_repeats: int = 1, *, random_state: RandomStateLike = 0) -> None:
        self.n_repeats = n_repeats
        self.random_state = random_state

    def split(self, X: Any, y: ArrayLike, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Row numbers (train, test) of every split."""
        codes = self._codes(y)
        rng, rows = check_random_state(self.random_state), np.arange(len(codes))
        for _ in range(self.n_repeats):
            for test in stratified_sets(codes, rng.permutation(len(codes))):
                yield np.delete(rows, test), test

    def get_n_splits(self, X: Any = None, y: ArrayLike | None = None, groups: Any = None) -> int:
        """The number of splits; needs y."""
        codes = self._codes(y)
        return self.n_repeats * len(stratified_sets(codes, np.arange(len(codes))))

    def _codes(self, y):
        if not isinstance(self.n_repeats, int | np.integer) or self.n_repeats < 1:
            raise ValueError(f"n_repeats={self.n_repeats!r} must be an integer >= 1.")
        if y is None:
            raise ValueError("StratifiedLeaveOneOut needs y: its sets hold rows of every class.")
        y = column_or_1d(y)
        check_classification_targets(y)
        classes, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
        if sizes.min() < 2:
            rare = classes.tolist()[sizes.argmin()]
            raise ValueError(f"y has a single row of class {rare!r}; without it no class is left. Use LeaveOneOut().")
        return codes
