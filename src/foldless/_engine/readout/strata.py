"""Sets of rows that hold the classes in their shares: of equal classes one row of each.

Leave-one-out takes a row from its own class alone, and the training part has fewer of it than of the others. Where
the penalty leaves little of the features the intercept decides, and decides for the others (Parker, Guenter & Bedo
2007, BMC Bioinformatics 8:326, "stratification bias"): half of the rows of either class, and every row left out is
called wrong. Sets that take a row from each class leave the shares as they are.

There are as many sets as the rarest class has rows. Where that is fewer than ten, ten of them if other classes have as
many rows: some sets then lack the rarest. Where every class has a single row, each row is a set: one set of all rows
would leave nothing to train on.
"""

import numpy as np

from foldless._engine.readout.codings import chosen_codes

AT_LEAST = 10  # sets


def stratified_sets(codes, order):
    """A list of positions for each set; every row is in one of them.

    The rows of each class are dealt to the sets in the order ``order`` of all positions.
    """
    sizes = np.bincount(codes)
    if sizes.max() == 1:
        return list(np.arange(len(codes))[:, None])
    k = max(sizes[sizes > 0].min(), min(AT_LEAST, sizes.max()))
    number = np.empty(len(codes), int)
    for code in np.flatnonzero(sizes):
        rows = order[codes[order] == code]
        number[rows] = np.arange(len(rows)) % k
    return np.split(np.argsort(number, kind="stable"), np.cumsum(np.bincount(number))[:-1])


def by_margin(scores, codes):
    """Positions in the order of the scores for their own class, whatever the order of the rows."""
    margin = scores * (2 * codes - 1) if scores.ndim == 1 else scores[np.arange(len(codes)), codes]
    return np.argsort(margin, kind="stable")


def chance_if_below(decisions, codes):
    """The accuracy of decisions on labels in random order, if their own is far below it, else None.

    Far is by three standard errors, and by 5 % of the rows. Useless decisions have no reason to be that bad;
    leave-one-out has.
    """
    named, n = chosen_codes(decisions), len(codes)
    size = max(named.max(), codes.max()) + 1
    chance = float(np.bincount(codes, minlength=size) @ np.bincount(named, minlength=size)) / n**2
    margin = max(3.0 * np.sqrt(chance * (1 - chance) / n), 0.05)
    return chance if chance - np.mean(named == codes) > margin else None
