"""Which kernel an estimator works with: the exact one, or explicit features where asked for or where n x n is too much.

``approximation="auto"`` is exact up to ``MOST_EXACT`` rows, as long as their Gram matrix and one more of its size fit
into memory, and Nystroem beyond.
"""

from foldless.kernels.registry import approximated, given_kernel
from foldless.linalg.memory import available_memory

MOST_EXACT = 12_000  # rows; time grows with their cube


def kernel_for(estimator, n, itemsize=8, seen=None):
    """The kernel of an estimator for n rows, as it was given, behind the approximation that it asks for.

    ``seen`` turns rows, such as landmarks that were given, into what the kernel sees of them.
    """
    kernel, how = given_kernel(estimator), estimator.approximation
    if how == "auto":
        how = "nystroem" if needs_approximation(kernel, n, itemsize) else None
    options = {name: getattr(estimator, name) for name in ("n_landmarks", "landmarks", "random_state")}
    if seen is not None and not isinstance(options["landmarks"], str):
        options["landmarks"] = seen(options["landmarks"])
    whiten = getattr(estimator, "penalty", "rkhs") == "rkhs"  # AdaptiveKDA has no other
    return approximated(kernel, how, whiten=whiten, **options)


LANDMARKS_OF_PARTS = ("landmarks_per_fold", "approximation", "landmarks")  # the parameters that decide about it


def chooses_landmarks(estimator, **params):
    """Whether an estimator, with these parameters, is asked to choose its landmarks anew on every training part."""
    each, how, landmarks = (params.get(name, getattr(estimator, name, None)) for name in LANDMARKS_OF_PARTS)
    return bool(each) and how in ("nystroem", "auto") and isinstance(landmarks, str)


def needs_approximation(kernel, n, itemsize=8):
    """Whether the exact kernel of n rows would take too much memory or time."""
    if not kernel.takes_rows or kernel.is_linear or kernel.approximates:
        return False
    return n > MOST_EXACT or not fits_into_memory(n, itemsize)


def fits_into_memory(n, itemsize=8):
    """Whether there is room for the Gram matrix of n rows and one more of its size."""
    free = available_memory()
    return free is None or 2 * n * n * itemsize <= free
