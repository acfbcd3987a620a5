"""Whether a model can learn from the rows at all, and whether their number makes the fit long.

What the kernel of the rows is worth is compared with rounding and with the penalty.

Two failures would be silent. The kernel of any two rows is the same number (X in volts and gamma=1, say: exp(-1e-17)
is 1), and nothing tells rows apart. Or alpha is so large that the fit is a constant, and the least imbalance of the
classes in a training part decides (X in volts again, with a linear kernel and alpha=1).
"""

import numpy as np

from foldless._engine.linalg import functions
from foldless._engine.linalg.memory import GIB, is_free
from foldless._engine.precision import cost

FIRST, BEFORE_WARNING = (4, 20), (500, 500)  # rows and columns of K that are looked at
LONG = 60.0  # seconds from which a fit is announced
MOST_SHORT = 5000  # rows that are fitted in less time by every holder of P
HUGE = 1e8  # alpha by the mean squared distance of the rows from their mean, in feature space


class NothingLearntWarning(UserWarning):
    """A model can hardly learn from these rows, as they are, with this kernel and penalty.

    Examples
    --------
    >>> import warnings
    >>> from foldless.model_selection import NothingLearntWarning
    >>> warnings.simplefilter("error", NothingLearntWarning)  # stop instead of warning
    """


class HugePenaltyWarning(NothingLearntWarning):
    """The penalty leaves next to nothing of the model.

    Examples
    --------
    >>> import warnings
    >>> from foldless.model_selection import HugePenaltyWarning
    >>> warnings.simplefilter("ignore", HugePenaltyWarning)  # where that is meant
    """


class LongFitWarning(UserWarning):
    """A fit, or a cross-validation, takes a minute or more, and the memory of arrays of n x n numbers.

    Examples
    --------
    >>> import warnings
    >>> from foldless.model_selection import LongFitWarning
    >>> warnings.simplefilter("error", LongFitWarning)  # stop before the work begins
    """


def caution_of_size(problem):
    """A warning that a fit by n x n arrays of NumPy will take long; None if it will not."""
    n = _two_digits(len(problem.active))
    if n <= MOST_SHORT or problem.xp is not functions or problem.through_features(n):
        return None
    flops, arrays = problem.holder(n).fit_cost(problem, n), cost.arrays_of_P(problem.kernel)
    return long_fit(n, flops, arrays, problem.dtype, takes_rows=problem.kernel.takes_rows)


def caution_of_call(problem, call, flops, arrays):
    """A warning that a ``call`` ("a cross-validation") from P takes so many flops and arrays; None if it is short."""
    n = len(problem.active)
    if cost.seconds(flops, problem.dtype) < LONG or problem.through_features(n):
        return None
    return long_fit(n, flops, arrays, problem.dtype, takes_rows=problem.kernel.takes_rows, what=call)


def long_fit(n, flops, arrays, dtype, *, takes_rows=True, what="a fit"):
    """A warning of a fit of n rows that takes so many flops, and arrays of n x n numbers; None if it is short.

    There is none either if the arrays do not fit into memory, which is an error with a message of its own. Training
    parts of nearly the same size have equal messages.
    """
    itemsize, n = np.dtype(dtype).itemsize, _two_digits(n)
    seconds = cost.seconds(flops, dtype)
    needed = arrays * n**2 * itemsize
    if seconds < LONG or not is_free(needed):
        return None
    remedy = "Quicker are fewer rows (foldless.reduction.reduce_instances)"
    if takes_rows:
        remedy = "Quicker is kernel=Nystroem(...) of foldless.kernels, which needs no array of n x n numbers"
    return LongFitWarning(
        f"{what} of {n} rows takes {_duration(seconds)} on two processors, and {needed / GIB:.1f} GiB"
        f" of memory for arrays of n x n numbers. {remedy}."
    )


def _two_digits(n):
    """A number of rows, rounded to two digits."""
    return int(float(f"{n:.1e}"))


def _duration(seconds):
    """A time in words, with one digit."""
    unit, name = (60.0, "minute") if seconds < 3600 else (3600.0, "hour")
    count = float(f"{seconds / unit:.0e}")
    return f"about {count:.0f} {name}{'s' * (count > 1)}"


def caution(problem):
    """A warning of what keeps a model from learning; None where nothing does, or where all rows of X are equal."""
    unsuited = problem.kernel.caution(problem.X)
    if unsuited is not None:
        return NothingLearntWarning(unsuited)
    rows, warning = problem.active, None
    if len(rows) < 2:
        return None
    for few, some in (FIRST, BEFORE_WARNING):
        columns = rows[np.linspace(0, len(rows) - 1, min(some, len(rows))).astype(int)]
        warning = _of_block(problem, columns, -(-len(columns) // few))
        if warning is None:
            break
    return warning


def _of_block(problem, rows, step):
    """The same of the kernel between every ``step``-th of the rows and all of them."""
    with np.errstate(over="ignore", invalid="ignore"):  # said elsewhere, with a way out
        K = problem.verbs.to_host(problem.gram(rows[::step], rows, check=False))
        largest, spread = np.abs(K).max(), np.ptp(K)
        size = _size(problem, rows, K, step)
    is_constant = spread <= 8 * np.finfo(K.dtype).eps * largest
    if not np.isfinite(largest) or not (is_constant or problem.alpha >= HUGE * abs(size)):
        return None
    equal = problem.equal.value if step == 1 else None  # more rows are yet to be looked at otherwise
    if equal is not None and len(np.unique(equal[rows])) == 1:
        return None
    if is_constant:
        return NothingLearntWarning(
            f"{problem.kernel!r} is the same number for any two rows, up to rounding: nothing can be learnt from X."
            " Rescale X (standardize=True, or other units), or take gamma='scale' where the kernel has a gamma."
        )
    return HugePenaltyWarning(
        f"alpha={problem.alpha:g} is more than {HUGE:g} times what the kernel of the rows differs by: the fit is nearly"
        " constant. Rescale X (standardize=True, or other units), use a smaller alpha, or let FoldlessSearchCV choose"
        " it."
    )


def _size(problem, rows, K, step):
    """Mean weighted diagonal of S, centred where there is an intercept; below 0 only where S is indefinite."""
    weight = float(np.square(problem.verbs.to_host(problem.root_w)[rows]).mean()) if problem.weighted else 1.0
    return weight * float(K[:, ::step].diagonal().mean() - (K.mean() if problem.intercept else 0.0))
