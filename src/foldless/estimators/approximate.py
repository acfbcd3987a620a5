"""When landmarks or random features take the place of an exact kernel: :func:`choose_approximation` alone decides.

    approximation="nystroem" or "rff"     always
    approximation="auto"                  above ``MOST_EXACT`` rows, or where the kernel matrix does not fit into memory
    approximation=None                    never in a fit. In a search where the matrix does not fit, and above
                                          ``MOST_SEARCHED`` rows if neither a grid, a method nor a time limit is given

A kernel that is linear, precomputed or an approximation itself stays as it is. The number of landmarks is
``n_landmarks``; a search finds it where that is "auto", or where nobody asked for landmarks
(``model_selection._search_landmarks``).
"""

from dataclasses import dataclass

from foldless.kernels.approximations import BasisFunctions
from foldless.kernels.registry import approximated, given_kernel
from foldless.linalg.memory import GIB, available_memory

MOST_EXACT = 12_000  # rows; time grows with their cube
MOST_SEARCHED = 25_000  # rows whose exact search takes about ten minutes of two cores


@dataclass(frozen=True)
class Approximation:
    """What takes the place of an exact kernel."""

    kind: str | None  # "nystroem" or "rff"; None: the exact kernel
    finds_number: bool = False  # whether a search has to find the number of landmarks
    reason: str = ""


EXACT = Approximation(None, reason="the kernel of these rows is neither too large nor too slow")


def choose_approximation(estimator, n, itemsize=8, *, searched=False, unlimited=False):
    """The :class:`Approximation` of an estimator for n rows.

    ``searched``: whether a search tunes the estimator; ``unlimited``: whether the search says neither where to look
    nor how long it may take.
    """
    kind, finds_number = estimator.approximation, estimator.n_landmarks == "auto"
    if kind not in (None, "auto"):
        return Approximation(kind, finds_number, f"approximation={kind!r}")
    kernel, replaceable = given_kernel(estimator), kind == "auto" or searched
    if not replaceable or not kernel.takes_rows or kernel.is_linear or kernel.approximates:
        return EXACT
    finds_number = finds_number or kind is None  # nobody gave a number for landmarks that were not asked for
    free = available_memory()
    if free is not None and 2 * n * n * itemsize > free:  # the Gram matrix and one more of its size
        needed = f"{n * n * itemsize / GIB:.0f} GiB and {free / GIB:.0f} GiB are free"
        return Approximation("nystroem", finds_number, f"an exact kernel matrix takes {needed}")
    if kind == "auto" and n > MOST_EXACT:
        return Approximation("nystroem", finds_number, f"an exact kernel of more than {MOST_EXACT} rows takes long")
    if kind is None and unlimited and n > MOST_SEARCHED:
        reason = f"an exact search of more than {MOST_SEARCHED} takes long, which time_limit= allows"
        return Approximation("nystroem", finds_number, reason)
    return EXACT


def kernel_for(estimator, n, itemsize=8, seen=None):
    """The kernel of an estimator for n rows, as it was given, behind its approximation.

    ``seen`` turns rows, such as landmarks that were given, into what the kernel sees of them.
    """
    options = {name: getattr(estimator, name) for name in ("n_landmarks", "landmarks", "random_state")}
    if seen is not None and not isinstance(options["landmarks"], str):
        options["landmarks"] = seen(options["landmarks"])
    whiten, kind = estimator.penalty == "rkhs", choose_approximation(estimator, n, itemsize).kind
    kernel = approximated(given_kernel(estimator), kind, whiten=whiten, **options)
    return kernel if whiten or kernel.approximates else BasisFunctions(kernel)


LANDMARKS_OF_PARTS = ("landmarks_per_fold", "approximation", "landmarks")  # the parameters that decide about it


def chooses_landmarks(estimator, **params):
    """Whether an estimator, with these parameters, is asked to choose its landmarks anew on every training part."""
    each, how, landmarks = (params.get(name, getattr(estimator, name, None)) for name in LANDMARKS_OF_PARTS)
    return bool(each) and how in ("nystroem", "auto") and isinstance(landmarks, str)
