"""Which cases of a large table are run where not all of them are."""

import random
from itertools import pairwise

FEWEST = 3


def sampled_cases(cases, every, seed, options=tuple):
    """One case in ``every``, at least three: one from each of as many equal segments of the table.

    ``options(case)`` lists the options of a case, in the same order for all cases. Each segment gives the case with
    most options that no earlier segment gave; ties are broken by a draw. Equal seeds give equal cases.
    """
    n_sampled = min(len(cases), max(FEWEST, len(cases) // every))
    ends = [len(cases) * segment // n_sampled for segment in range(n_sampled + 1)]
    draws = random.Random(seed)
    seen, sample = set(), []
    for start, stop in pairwise(ends):
        segment = draws.sample(range(start, stop), stop - start)
        unseen = {place: set(enumerate(options(cases[place]))) - seen for place in segment}
        chosen = max(segment, key=lambda place: len(unseen[place]))
        seen |= unseen[chosen]
        sample.append(cases[chosen])
    return sample
