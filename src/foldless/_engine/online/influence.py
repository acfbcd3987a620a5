"""What forgetting each row would do to the leave-one-out criterion of the others: every pair of rows, O(n^2) in all.

Without row i the P of the others is the Schur complement, and their leave-one-out residuals follow from its diagonal:

    A_j(-i) = A_j - P_ji E_i,    P_jj(-i) = P_jj - P_ji^2 / P_ii,    E_j(-i) = A_j(-i) / P_jj(-i),    E_i = A_i / P_ii
    effect_i = | sum_{j != i} E_j(-i)^2 - sum_{j != i} E_j^2 |

(sums also run over targets; E is whitened, so rows count by their weights).
"""

import numpy as np

from foldless._engine.linalg import put
from foldless._engine.linalg.batches import gen_batches
from foldless._engine.precision.base import SingularBlockError

MAX_ENTRIES = 2**20  # entries of an intermediate array


def effects(solution):
    """Absolute change of the sum of squared leave-one-out residuals of the other rows, for every row, shape (n,)."""
    n, P, A = len(solution.rows), solution.precision, solution.A
    if n - 2 < solution.problem.Q.shape[1]:
        raise SingularBlockError.of(range(2), n)
    D = P.diagonal()
    E = A / D[:, None]
    press = np.square(E).sum(1)
    least = 64 * np.finfo(D.dtype).eps * D
    effect = np.empty(n, A.dtype)
    for batch in gen_batches(n, max(1, MAX_ENTRIES // n)):
        forgotten = np.arange(n)[batch]
        C = P.columns(forgotten)  # (n, forgotten rows)
        A_left = A[:, None] - C[:, :, None] * E[forgotten]
        D_left = D[:, None] - np.square(C) / D[forgotten]
        itself = forgotten, np.arange(len(forgotten))
        D_left = put(D_left, itself, 1.0)
        A_left = put(A_left, itself, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):  # rounding: a column of Q is undetermined without both
            E_left = A_left / np.where(D_left > least[:, None], D_left, 0.0)[:, :, None]
        loss = np.square(E_left).sum(-1)
        if not np.isfinite(loss).all():
            raise SingularBlockError.of(range(2), n)
        effect[batch] = np.abs(loss.sum(0) - (press.sum() - press[batch]))
    return effect
