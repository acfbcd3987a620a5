"""Splits: drawn as row numbers, checked for a closed form; splitters that look at the labels."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import LeaveOneOut, check_cv

from foldless._engine.heldout.sets import split_that_repeats_rows
from foldless._engine.precision.base import SingularBlockError
from foldless._sklearn.route import NoClosedForm


def draw_splits(cv, estimator, X, y, groups):
    """(train, test) pairs of row numbers, or None for leave-one-out."""
    if cv is None or (isinstance(cv, LeaveOneOut) and groups is None):
        return None
    return row_numbers(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups), len(y))


def row_numbers(splits, n):
    """(train, test) pairs of row numbers from indices or masks, which may be empty lists."""
    everything, numbered = np.arange(n), []
    for train, test in splits:
        train, test = np.asarray(train), np.asarray(test)
        train = train if train.size else train.astype(int)  # an empty list would be one of floats
        test = test if test.size else test.astype(int)
        try:
            numbered.append((everything[train], everything[test]))
        except IndexError as error:
            raise ValueError(f"cv: {error}.") from None
    return numbered


def depends_on_labels(cv):
    """Whether a splitter looks at the labels, by the class name, as for scikit-learn's splitters."""
    return any("Stratified" in kind.__name__ for kind in type(cv).__mro__)


def splits_of_labeling(cv, X, y, split_params):
    """(train, test) pairs of row numbers, drawn from these labels."""
    splits = row_numbers(cv.split(X, y, **split_params), len(y))
    if not splits:
        raise ValueError("cv holds no split.")
    for number, (train, test) in enumerate(splits):
        if not len(test) or not len(train):
            raise ValueError(f"cv: split {number} trains on {len(train)} rows and tests {len(test)}.")
    return splits


def check_leave_out(task, p=1):
    """Refuse tasks of which some set of p rows cannot be left out in closed form."""
    if task.codes is not None:
        sizes = np.bincount(task.codes[task.problem.active], minlength=task.n_classes)
        if sizes.min() <= p:
            raise NoClosedForm(f"leaving out {'a row' if p == 1 else f'{p} rows'} empties a class")
    if len(task.problem.active) < p + 2:
        raise NoClosedForm(f"leaving out {p} of {len(task.problem.active)} rows leaves fewer than two")


def check_splits(task, splits):
    """Refuse splits of which some training part cannot be solved in closed form."""
    active = np.zeros(task.problem.n, bool)
    active[task.problem.active] = True
    repeating = split_that_repeats_rows(splits)
    if repeating is not None:
        raise NoClosedForm(f"the training part of split {repeating} repeats rows")
    for number, (train, _) in enumerate(splits):
        if task.codes is not None:
            present = np.bincount(task.codes[train][active[train]], minlength=task.n_classes)
            if (present == 0).any():
                raise NoClosedForm(f"the training part of split {number} lacks a class")
        if np.count_nonzero(active[train]) < 2:
            raise NoClosedForm(f"the training part of split {number} has fewer than two rows of positive weight")


def check_confounds_determined(problem, splits):
    """Refuse splits with a training part in which confounds depend on each other, before any of them is solved."""
    for number, (train, _) in enumerate(splits if problem.more_columns else ()):
        try:
            problem.basis_of_Q(np.intersect1d(train, problem.active))
        except SingularBlockError as error:
            raise ValueError(f"cv: the training part of split {number}: {error}") from None


def is_leave_one_out(splits, n):
    """Whether the splits leave out each row once, alone."""
    if len(splits) != n or not all(len(test) == 1 and len(train) == n - 1 for train, test in splits):
        return False
    return np.array_equal(np.sort([test[0] for _, test in splits]), np.arange(n)) and all(
        test[0] not in train for train, test in splits
    )
