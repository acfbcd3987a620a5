"""Random numbers by the conventions of scikit-learn."""

from numbers import Integral

import numpy as np


def check_random_state(random_state):
    """The RandomState of a seed, a RandomState as it is, and that of NumPy's module for None."""
    if random_state is None or random_state is np.random:
        return np.random.mtrand._rand
    if isinstance(random_state, Integral):
        return np.random.RandomState(int(random_state))
    if isinstance(random_state, np.random.RandomState):
        return random_state
    raise ValueError(f"random_state={random_state!r} must be None, an integer or a numpy.random.RandomState.")
