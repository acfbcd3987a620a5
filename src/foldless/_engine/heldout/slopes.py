"""Slopes of held-out models at the rows that were left out of them: which features the model answers to.

    s_ik = d f^(-i)(x_i) / d x_k,     f^(-i)(x) = sum_j (A_j - P_ji E_i) k(x, x_j) + const

The plain fit nearly passes through its own rows and shows its slopes there in part only; the model without a row does
not know its target. Squares of slopes, summed over targets and averaged over rows, are the diagonal of the average
outer product of gradients (Radhakrishnan et al. 2024; there of the fit itself). A sample of some hundred rows is enough
for the mean: m n d operations for m rows, beyond P.
"""

import numpy as np

from foldless._engine.linalg.batches import gen_batches

MAX_ENTRIES = 2**22  # coefficients at a time


def mean_squared_slopes(solution, folds, n_rows, rng):
    """Mean squares (d,) of the slopes of the models without each row, or each of ``folds``, at about ``n_rows`` rows.

    Squares are summed over the targets, and rows count by their weights.
    """
    batches = _without_single_rows if folds is None else _without_folds
    total, mass = 0.0, 0.0
    problem = solution.problem
    for positions, basis, coefficients in batches(solution, folds, n_rows, rng):
        slopes = problem.kernel.slopes(coefficients, problem.data(solution.rows[positions]), problem.data(basis))
        weights = np.square(solution.root[positions, 0])
        total = total + weights @ np.square(slopes).sum(2)
        mass += weights.sum()
    return total / mass


def _without_single_rows(solution, folds, n_rows, rng):
    """Yield positions (b,), the rows of the model, and coefficients (b, n, m) of the models without each position."""
    n, m = solution.A.shape
    positions = np.sort(rng.permutation(n)[:n_rows])
    for batch in gen_batches(len(positions), max(1, MAX_ENTRIES // (n * m))):
        members = positions[batch]
        E = solution.held_out(members[:, None]).E
        columns = solution.precision.columns(members)
        A = solution.A - columns.T[:, :, None] * E
        A[np.arange(len(members)), members] = 0.0
        yield members, solution.rows, solution.root * A


def _without_folds(solution, folds, n_rows, rng):
    """The same for models without each fold, at some of its rows."""
    share = max(1, -(-n_rows // len(folds)))
    for number in rng.permutation(len(folds))[:n_rows]:
        basis, beta = solution.without(folds[number]).expansion()
        positions = rng.permutation(folds[number])[:share]
        yield positions, basis, np.broadcast_to(beta, (len(positions), *beta.shape))
