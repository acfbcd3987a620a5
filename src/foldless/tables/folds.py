"""Which rows are held out together: folds drawn at random, classes in their shares, groups never torn apart."""

import warnings

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from foldless.tables.errors import TableError

N_FOLDS = 5
MORE_FOLDS = 10  # of fewer than SMALL rows, whose training parts would miss a fifth of them
SMALL = 200
FEWER_FOLDS = 3  # of more than LARGE rows, whose training parts can spare a third
LARGE = 50_000
DRAWS = 10  # of folds of groups, until all classes are in every test part
MORE_GROUPS = "No model can be tested on it: more groups are needed."


def splitter(rows, seed, most=None):
    """A splitter for some rows: as many folds as asked for, or as classes and groups allow."""
    most = most or (MORE_FOLDS if len(rows) < SMALL else FEWER_FOLDS if len(rows) > LARGE else N_FOLDS)
    if rows.classifies:
        most = min(most, int(np.unique(rows.y, return_counts=True)[1].min()))
    if rows.groups is None:
        return (StratifiedKFold if rows.classifies else KFold)(max(most, 2), shuffle=True, random_state=seed)
    most = max(2, min(most, fewest_groups(rows)))
    return (StratifiedGroupKFold if rows.classifies else GroupKFold)(most, shuffle=True, random_state=seed)


def fewest_groups(rows):
    """How many groups there are, or those of the class that is in the fewest."""
    if not rows.classifies:
        return len(np.unique(rows.groups))
    return min(len(np.unique(rows.groups[rows.y == each])) for each in np.unique(rows.y))


def outer_folds(rows, seed=0):
    """(train, test) row numbers of the outer splits; every class is in all training parts.

    Every class is in all test parts too, where groups allow it: rather fewer folds than some that lack a class.

    Parameters
    ----------
    rows : Rows
    seed : int, default=0

    Returns
    -------
    list of pairs of arrays
    """
    numbers = (None, *range(N_FOLDS - 1, 1, -1))
    if rows.classifies and rows.groups is not None:
        for most in numbers:
            for draw in range(DRAWS):
                folds = _drawn(rows, seed + draw, most)
                if all_classes(rows, (part for fold in folds for part in fold)):
                    return folds
    for most in numbers:
        folds = _drawn(rows, seed, most)
        if all_classes(rows, (train for train, _ in folds)):
            return folds
    if rows.groups is None:
        raise TableError("a class has too few rows to be in every fold.", "Drop the class, or add rows of it.")
    check_groups(rows)
    raise TableError("--groups: the classes are spread over too few groups.", MORE_GROUPS)


def _drawn(rows, seed, most):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = list(splitter(rows, seed, most).split(np.zeros(len(rows)), rows.y, rows.groups))
    return [(train, test) for train, test in folds if len(test)]


def all_classes(rows, parts):
    """Whether every class is in each of some parts of the rows."""
    return not rows.classifies or all(len(np.unique(rows.y[part])) == len(rows.schema.classes) for part in parts)


def told_apart(rows):
    """Whether all classes are there, twice: in two groups, if there are groups."""
    if not rows.classifies:
        return True
    sets = np.arange(len(rows)) if rows.groups is None else rows.groups
    return all(len(np.unique(sets[rows.y == each])) > 1 for each in rows.schema.classes)


def check_groups(rows):
    """Refuse classes of one group: without it a model does not know them."""
    alone = [each for each in rows.schema.classes if len(np.unique(rows.groups[rows.y == each])) < 2]
    if alone:
        raise TableError(f"--groups: class {alone[0]!r} occurs in one group only.", MORE_GROUPS)


def blind_folds(rows, seed=0):
    """The same of groups that have one class each, without a look at which class is whose.

    There are so many folds that none can hold all groups of a class, whichever groups these are.
    """
    n_groups = len(np.unique(rows.groups))
    most = min(N_FOLDS, n_groups)
    if rows.classifies:
        fewest = min(len(np.unique(rows.groups[rows.y == each])) for each in np.unique(rows.y))
        most = max(most, -(-n_groups // max(fewest - 1, 1)))
    return list(GroupKFold(most, shuffle=True, random_state=seed).split(rows.y, rows.y, rows.groups))


def inner_cv(rows, seed=0):
    """What the search leaves out together: each row alone, or folds of groups.

    Training parts of the outer splits have fewer groups than there are, and must have enough for it too.
    """
    if rows.groups is None:
        return None
    left = fewest_groups(rows) - 1 if rows.classifies else len(np.unique(rows.groups)) // 2
    return splitter(rows, seed, max(2, min(N_FOLDS, left)))
