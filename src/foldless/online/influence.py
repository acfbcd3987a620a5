"""What forgetting each row would do to the leave-one-out criterion of the others: every pair of rows, O(n^2) in all.

Without row i the P of the others is the Schur complement, and their leave-one-out residuals follow from its diagonal:

    A_j(-i) = A_j - P_ji E_i,    P_jj(-i) = P_jj - P_ji^2 / P_ii,    E_j(-i) = A_j(-i) / P_jj(-i),    E_i = A_i / P_ii
    effect_i = | sum_{j != i} E_j(-i)^2 - sum_{j != i} E_j^2 |

(sums also run over targets; E is whitened, so rows count by their weights). With the coefficient penalty a row that is
forgotten takes its basis function along: two sites of J (``heldout.solution``), and blocks in the place of P_ii.
"""

import numpy as np
from sklearn.utils import gen_batches

from foldless.linalg import inverse, solve
from foldless.precision.base import SingularBlockError

MAX_ENTRIES = 2**20  # entries of an intermediate array


def effects(whole):
    """Absolute change of the sum of squared leave-one-out residuals of the other rows, for every row, shape (n,)."""
    n, J = len(whole.rows), whole.joint
    if n - 2 < whole.problem.Q.shape[1]:
        raise SingularBlockError.of(range(2), n)
    own = whole.own_sites(np.arange(n)[:, None])  # left out by leave-one-out
    gone = np.arange(len(whole.joint_A)).reshape(-1, n).T  # forgotten
    A, D = whole.joint_A[own], J.diagonal_blocks(own)
    press = np.square(solve(D, A)[:, 0]).sum(-1)
    D_gone = J.diagonal_blocks(gone)
    E_gone = solve(D_gone, whole.joint_A[gone])
    effect = np.empty(n, A.dtype)
    for batch in gen_batches(n, max(1, MAX_ENTRIES // (n * gone.shape[1] ** 2))):
        mine = np.arange(n)[batch]
        C = J.columns(gone[mine].ravel())[own].reshape(*own.shape, len(mine), -1)
        A_left = A[:, None] - np.einsum("jaib,ibm->jiam", C, E_gone[mine])
        D_left = D[:, None] - np.einsum("jaib,ibc,jdic->jiad", C, inverse(D_gone[mine]), C, optimize=True)
        itself = mine, np.arange(len(mine))
        D_left[itself] = np.eye(D.shape[-1], dtype=D.dtype)
        A_left[itself] = 0.0
        if D.shape[-1] > 1:
            E_left = solve(D_left, A_left)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):  # rounding: a column of Q is undetermined without both
                E_left = A_left / np.where(D_left > 64 * np.finfo(D.dtype).eps * D[:, None], D_left, 0.0)
        loss = np.square(E_left[:, :, 0]).sum(-1)
        if not np.isfinite(loss).all():
            raise SingularBlockError.of(range(2), n)
        effect[batch] = np.abs(loss.sum(0) - (press.sum() - press[batch]))
    return effect
