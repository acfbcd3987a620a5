"""Which cases of a large table are run where not all of them are."""

import random
from itertools import pairwise

FEWEST = 3


def sampled_cases(cases, every, seed):
    """One case in ``every``, at least three: one drawn from each of as many equal segments of the table.

    Segments cover the options that vary slowly, draws within them those that vary quickly. Equal seeds give equal
    cases.
    """
    n_sampled = min(len(cases), max(FEWEST, len(cases) // every))
    ends = [len(cases) * segment // n_sampled for segment in range(n_sampled + 1)]
    draws = random.Random(seed)
    return [cases[draws.randrange(start, stop)] for start, stop in pairwise(ends)]
