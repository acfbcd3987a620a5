"""What n rows cost: seconds and peak memory of a fit, its leave-one-out, ten folds and a search, everything included.

LSSVC with an rbf kernel on 20 features, random data, float64. Seconds are those of the processor on one thread, which
other work on the machine hardly disturbs; the least of three runs (one from 10,000 rows on). The search is the grid
that FoldlessSearchCV makes by itself, 17 alphas x 10 gammas; above 3,000 rows it is left out, as it grows with n^3.

    python benchmarks/sizes.py [--fast] [--json FILE]
"""

import time
import warnings

import numpy as np
from sklearn.model_selection import LeaveOneOut, StratifiedKFold
from threadpoolctl import threadpool_limits

from common import markdown, parser, peak_arrays, report
from foldless import LSSVC, FoldlessSearchCV
from foldless.model_selection import cross_val_predict

SIZES = (300, 1000, 3000, 10_000)
LARGEST_SEARCH = 3000


def calls(n):
    """{name: function} for n rows."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 20)), np.arange(n) % 2
    X[:, 0] += y
    model = LSSVC(gamma=0.05)
    result = {
        "fit": lambda: model.fit(X, y),
        "leave-one-out": lambda: cross_val_predict(model, X, y, cv=LeaveOneOut()),
        "10 folds": lambda: cross_val_predict(model, X, y, cv=StratifiedKFold(10)),
    }
    whole_grid = {"search": lambda: FoldlessSearchCV(LSSVC(), method="grid").fit(X, y)}
    return result | (whole_grid if n <= LARGEST_SEARCH else {})


def seconds_of(call):
    """Processor time of one call."""
    start = time.process_time()
    call()
    return time.process_time() - start


@threadpool_limits.wrap(limits=1)
def main():
    options = parser(__doc__).parse_args()
    warnings.simplefilter("ignore")
    table = []
    for n in SIZES[:2] if options.fast else SIZES:
        for name, call in calls(n).items():
            gib = peak_arrays(call, n) * 8 * n**2 / 2**30
            repeats = 1 if options.fast or n >= SIZES[-1] else 3
            table.append({"n": n, "what": name, "seconds": min(seconds_of(call) for _ in range(repeats)), "GiB": gib})
            markdown(table[-1:])
    report(options, sizes=table)


if __name__ == "__main__":
    main()
