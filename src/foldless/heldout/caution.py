"""Whether a model can learn from the rows at all: what their kernel is worth against rounding and against the penalty.

Two failures would be silent. The kernel of any two rows is the same number (X in volts and gamma=1, say: exp(-1e-17)
is 1), and nothing tells rows apart. Or alpha is so large that the fit is a constant, and the least imbalance of the
classes in a training part decides (X in volts again, with a linear kernel and alpha=1).
"""

import numpy as np

FIRST, BEFORE_SAID = (4, 20), (500, 500)  # rows and columns of K that are looked at
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


def caution(problem):
    """A warning of what keeps a model from learning; None where nothing does, or where all rows of X are equal."""
    unsuited = problem.kernel.caution(problem.X)
    if unsuited is not None:
        return NothingLearntWarning(unsuited)
    rows, found = problem.active, None
    if len(rows) < 2:
        return None
    for few, some in (FIRST, BEFORE_SAID):
        columns = rows[np.linspace(0, len(rows) - 1, min(some, len(rows))).astype(int)]
        found = _of_block(problem, columns, -(-len(columns) // few))
        if found is None:
            break
    return found


def _of_block(problem, rows, step):
    """The same of the kernel between every ``step``-th of the rows and all of them."""
    with np.errstate(over="ignore", invalid="ignore"):  # said elsewhere, with a way out
        K = problem.gram(rows[::step], rows, check=False)
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
    weight = float(np.square(problem.root_w[rows]).mean())
    if problem.penalty.squares_kernel:
        K = K - K.mean(0) if problem.intercept else K
        return weight * float(np.square(K).sum(1).mean()) * len(problem.active) / len(rows)
    return weight * float(K[:, ::step].diagonal().mean() - (K.mean() if problem.intercept else 0.0))
