"""Random numbers that follow from a row's number and a seed: the same whatever the chunks, on any machine.

``mixed`` is the output function of SplitMix64 (Steele, Lea & Flood 2014), evaluated at a counter. Arithmetic is modulo
2^64.
"""

import hashlib

import numpy as np
import scipy.sparse as sp

from foldless.kernels.matrices import canonical

GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio
WORD = 2**64
HASHED = 2**15  # numbers whose bits are looked at together: they stay in the cache


def mixed(values, seed):
    """A random word of 64 bits for each of the words ``values``."""
    z = values + np.uint64((seed + 1) * GOLDEN % WORD)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def row_words(numbers, seed):
    """Random words of the rows of these numbers."""
    return mixed(mixed(numbers.astype(np.uint64), seed), seed)


def words(values):
    """A word for each value, equal for equal values: numbers by their bits, anything else by its text."""
    if values.dtype.kind in "iub":
        return values.astype(np.int64).view(np.uint64)
    if values.dtype.kind == "f":
        whole = np.trunc(values) == values  # 3.0 is 3
        small = whole & (np.abs(values) < 2.0**53)
        bits = (values + 0.0).astype(np.float64).view(np.uint64)
        return np.where(small, np.where(small, values, 0).astype(np.int64).view(np.uint64), bits)
    different, places = np.unique(values.astype(str), return_inverse=True)
    texts = [hashlib.blake2b(each.encode(), digest_size=8).digest() for each in different.tolist()]
    return np.frombuffer(b"".join(texts), np.uint64)[places]


def checksum(rows):
    """A word (1,) of all that rows have; those of parts of the rows add up to it, whatever the parts."""
    found = mixed(row_words(rows.numbers, 0) ^ _feature_words(rows.X), 1)
    others = [each for each in (rows.sample_weight, rows.groups, rows.folds) if each is not None]
    for column in [*rows.y.reshape(len(rows), -1).T, *others]:
        found = mixed(found ^ words(column), 1)
    return found.sum(keepdims=True, dtype=np.uint64)


def _feature_words(X):
    """A word for each row: the sum of the bits of its values, each times a random odd word of its column.

    Zeros add nothing, so sparse rows have the words of dense ones.
    """
    factors = mixed(np.arange(X.shape[1], dtype=np.uint64), 2) | np.uint64(1)
    if sp.issparse(X):
        X = canonical(X)
        ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_bits(X.data) * factors[X.indices], dtype=np.uint64)])
        return ends[X.indptr[1:]] - ends[X.indptr[:-1]]
    found = np.empty(len(X), np.uint64)
    step = max(1, HASHED // max(1, X.shape[1]))
    for start in range(0, len(X), step):
        part = slice(start, start + step)
        np.matmul(_bits(X[part]), factors, out=found[part])
    return found


def _bits(values):
    """Words of numbers, of -0.0 that of 0.0; the lower half of a word knows of the upper one."""
    bits = (values + np.float64(0.0)).astype(np.float64, copy=False).view(np.uint64)
    bits ^= bits >> np.uint64(32)
    return bits
