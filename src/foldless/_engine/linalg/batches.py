"""Batches of rows, for what would not fit into memory for all of them together."""


def gen_batches(n, size):
    """Slices of ``size`` of n rows, the last perhaps shorter; scikit-learn has it by this name."""
    return (slice(first, min(first + size, n)) for first in range(0, n, size))
