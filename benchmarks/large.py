"""Leave-one-out of as many rows as memory holds, in panel Cholesky factorisations, with its peak memory.

The kernel matrix, its factor and the inverse of the factor follow each other in one n x n array. The yardstick is the
factorisation by the same panels: on some processors a threaded factorisation in one call crashes at these sizes.

    python benchmarks/large.py [--rows 20000] [--fast] [--json FILE]
"""

import numpy as np
from sklearn.model_selection import LeaveOneOut

from common import at_most, parser, peak_arrays, report, timed
from foldless import LSSVC
from foldless._engine.linalg import panels
from foldless.kernels import RBF
from foldless.kernels.base import gram_of_all
from foldless.model_selection import cross_val_predict

GAMMA = 0.05


def sample(n, dtype):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 20)).astype(dtype), rng.permutation(np.arange(n) % 2)


def yardstick(X):
    """Seconds of the kernel matrix and of its Cholesky factorisation in panels."""
    M, kernel_seconds = timed(lambda: gram_of_all(RBF(GAMMA), X))
    M.flat[:: len(M) + 1] += 1.0
    _, seconds = timed(lambda: panels.cholesky_(M.T))
    return kernel_seconds, seconds


def leave_one_out(n, dtype):
    """One entry: seconds, the yardstick's, their ratio, peak memory in arrays of the data's own precision."""
    X, y = sample(n, dtype)
    kernel_seconds, yardstick_seconds = yardstick(X)
    ours = {}

    def run():
        ours["result"], ours["seconds"] = timed(
            lambda: cross_val_predict(LSSVC(gamma=GAMMA), X, y, cv=LeaveOneOut(), method="decision_function")
        )

    peak = peak_arrays(run, n) * 8 / np.dtype(dtype).itemsize
    return {
        "name": f"leave-one-out, {np.dtype(dtype).name}",
        "n": n,
        "seconds": ours["seconds"],
        "kernel_seconds": kernel_seconds,
        "yardstick_seconds": yardstick_seconds,
        "yardstick": "one Cholesky factorisation in panels; ratio = seconds / yardstick_seconds",
        "ratio": at_most(2.6, ours["seconds"] / yardstick_seconds),
        "flop_limit": 2.0,
        "gflops_of_yardstick": n**3 / 3 / yardstick_seconds / 1e9,
        "peak_arrays": at_most(1.2, peak),
    }


def main():
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=20_000)
    options = options.parse_args()
    n = 1500 if options.fast else options.rows
    report(options, entries=[leave_one_out(n, dtype) for dtype in (np.float64, np.float32)])


if __name__ == "__main__":
    main()
