"""Millions of rows on a cluster of two workers: fit, exact leave-one-out and ten folds of an approximate kernel.

Rows are twonorm (Breiman 1998): two Gaussians in 20 dimensions at distance 4, Bayes rate Phi(-2) = 2.28 %. Workers make
their own chunks from a seed. The yardstick is the rate of matrix products on the same workers in the same pass: each
takes the time of one before every chunk, which is not counted as time of the pass.
Dask's statistics of itself, which take 7 % of two cores, are turned down.

    python benchmarks/scale.py [--rows 10000000] [--landmarks 500] [--chunk 200000] [--fast] [--json FILE]

Needs dask: pip install ".[dask]" in this project's folder.
"""

import resource
import time

import dask
import numpy as np
from distributed import Client, LocalCluster, get_worker
from scipy.stats import norm

from common import at_least, at_most, markdown, parser, report, timed
from foldless import LSSVC, chunked
from foldless.kernels import RBF, Nystroem

D, FOLDS, WORKERS, GIGABYTE = 20, 10, 2, 2**30
LIMIT = 4 * GIGABYTE  # of each worker
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "500ms",
}


def twonorm(rows, order):
    """A function from the number of a chunk to its rows, which takes the time of a product of this order on the way."""

    def read(number):
        A = np.ones((order, order))
        start = time.perf_counter()
        A @ A
        seconds = time.perf_counter() - start
        get_worker().log_event("products", (time.time(), seconds))
        rng = np.random.default_rng(number)
        y = rng.integers(0, 2, rows)
        X = rng.standard_normal((rows, D))
        X += np.where(y, 2.0, -2.0)[:, None] / np.sqrt(D)
        return X, y

    return read


def products_in(client, begin, passes, order):
    """{pass: (operations a second of products on all workers, seconds that these took)}, passes by their seconds."""
    found = np.array([event for _, event in client.get_events("products")])
    stops = begin + np.cumsum(list(passes.values()))
    which = np.searchsorted(stops, found[:, 0])
    own = {name: found[which == place, 1] for place, name in enumerate(passes)}
    return {name: (2 * order**3 / np.mean(each) * WORKERS, each.sum() / WORKERS) for name, each in own.items()}


def peak_memory():
    """Bytes of this process at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def operations(n, r):
    """Of each pass that has products: kernel, whitening, and the Gram matrix or leverages and fits."""
    features = n * (2 * r * D + r * r)
    return {"sums": features + n * (r + 2) ** 2, "held out": features + 2 * n * r * r}


def run(client, n, r, chunk, order):
    client.run(np.dot, np.ones((order, order)), np.ones((order, order)))  # the first product takes longer
    model = LSSVC(Nystroem(RBF(0.01), r, landmarks="uniform"))
    data = chunked.numbered(twonorm(chunk, order), -(-n // chunk), rows=chunk)
    begin = time.time()
    result, total = timed(lambda: chunked.cross_validate(model, data, cv=FOLDS, client=client))
    products, work = products_in(client, begin, result.seconds, order), operations(result.n_rows, r)
    rates = {name: products[name][0] for name in work}
    shares = {name: work[name] / (result.seconds[name] - products[name][1]) / rates[name] for name in work}
    return {
        "name": "twonorm, fit + leave-one-out + 10 folds",
        "n": result.n_rows,
        "landmarks": r,
        "seconds": total,
        "seconds_of_passes": result.seconds,
        "product_gflops": {name: each / 1e9 for name, each in rates.items()},
        "share_of_product_rate": {"sums": at_least(0.5, shares["sums"]), "held out": {"value": shares["held out"]}},
        "worker_gigabytes": at_most(LIMIT / GIGABYTE, max(client.run(peak_memory).values()) / GIGABYTE),
        "workers_gone": at_most(0, result.workers_gone),
        "client_gigabytes": at_most(1.0, peak_memory() / GIGABYTE),
        "error_10_folds": 1 - result.test_score.mean(),
        "error_leave_one_out": 1 - result.loo_score,
        "bayes_error": norm.cdf(-2),
    }


def main():
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--landmarks", type=int, default=500)
    options.add_argument("--chunk", type=int, default=200_000, help="rows of a chunk")
    options = options.parse_args()
    n, r, chunk = (20_000, 50, 5000) if options.fast else (options.rows, options.landmarks, options.chunk)
    cluster = {"n_workers": WORKERS, "threads_per_worker": 1, "memory_limit": LIMIT, "dashboard_address": ":0"}
    with dask.config.set(QUIET), LocalCluster(**cluster) as cluster, Client(cluster) as client:
        entry = run(client, n, r, chunk, 200 if options.fast else 1500)
    shown = {
        name: each["value"] if isinstance(each, dict) and "value" in each else each for name, each in entry.items()
    }
    columns = (
        "n",
        "landmarks",
        "seconds",
        "worker_gigabytes",
        "client_gigabytes",
        "error_leave_one_out",
        "bayes_error",
    )
    markdown([{name: shown[name] for name in columns} | {"share": entry["share_of_product_rate"]["sums"]["value"]}])
    report(options, entries=[entry])


if __name__ == "__main__":
    main()
