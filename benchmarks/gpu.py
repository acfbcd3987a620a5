"""Exact leave-one-out on a CUDA card: results beside those of the CPU, seconds and memory beside bare torch.

    checks    leave-one-out and predictions of LSSVC and LSSVR on the card beside NumPy: largest relative difference
    times     public calls: LSSVC(...).fit(X, y) and its loo_decision_function(), float64 and float32, d = 20, rbf, two
              classes; peak memory of the card in n x n arrays; and beside them, where its arrays fit,
    bare      torch.linalg.cholesky and torch.cholesky_inverse of a kernel matrix of the same size, and what the same
              flops (2/3 n^3, a factor and the diagonal of the inverse) would take at the rate of a matrix product
    cpu       the same call on the CPU, up to --most-cpu rows

Needs torch with CUDA: without a card the benchmark says so and ends.

    python benchmarks/gpu.py [--rows 10000 32768 65536 100000] [--most-cpu 10000] [--fast]
"""

import sys

import numpy as np

from common import markdown, parser, report, timed
from foldless import LSSVC, LSSVR

GAMMA, ALPHA, FEATURES = 0.05, 0.1, 20


def made(n, dtype=np.float64, seed=0):
    """(X, y) of two classes that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, FEATURES)) + 0.4 * (2 * y[:, None] - 1)
    return X.astype(dtype), y


def call(X, y):
    """The public calls of a leave-one-out."""
    model = LSSVC(gamma=GAMMA, alpha=ALPHA).fit(X, y)
    return model.loo_decision_function()


def checks(torch, n):
    """One line for each model and precision."""
    table = []
    for dtype in (np.float64, np.float32):
        X, codes = made(n, dtype)
        for make, y in ((LSSVC, codes), (LSSVC, codes + 2 * (X[:, 0] > 0)), (LSSVR, X[:, 0] + np.sin(X[:, 1]))):
            for kernel in ("rbf", "laplacian", "linear"):
                of_cpu = make(kernel, gamma=GAMMA, alpha=ALPHA).fit(X.astype(float), y)
                on_card = make(kernel, gamma=GAMMA, alpha=ALPHA).fit(torch.as_tensor(X).cuda(), y)
                outputs = "decision_function" if make is LSSVC else "predict"
                line = {
                    "model": make.__name__,
                    "kernel": kernel,
                    "classes": len(np.unique(y)) if make is LSSVC else 0,
                }
                for name, arguments in ((f"loo_{outputs}", ()), (outputs, (X,))):
                    expected = getattr(of_cpu, name)(*(each.astype(float) for each in arguments))
                    result = getattr(on_card, name)(*(torch.as_tensor(each).cuda() for each in arguments)).cpu().numpy()
                    line[name.replace(outputs, "fit")] = float(np.abs(result - expected).max() / np.abs(expected).max())
                table.append({"precision": np.dtype(dtype).name, **line})
    return table


def best_of(torch, function, repeats):
    """The least seconds of a function on the card."""
    seconds = []
    for _ in range(repeats):
        torch.cuda.synchronize()

        def synchronised():
            function()
            torch.cuda.synchronize()

        seconds.append(timed(synchronised)[1])
    return min(seconds)


def bare(torch, X):
    """Seconds of torch's factor and inverse of a matrix of that size; None where their arrays do not fit."""
    n, itemsize = len(X), X.element_size()
    torch.cuda.empty_cache()
    if 4 * n**2 * itemsize > torch.cuda.mem_get_info()[0]:
        return None

    def run():
        K = torch.exp(-GAMMA * torch.cdist(X, X) ** 2)
        K.diagonal().add_(ALPHA)
        torch.cholesky_inverse(torch.linalg.cholesky(K)).diagonal().sum().item()

    return best_of(torch, run, 2)


def rate(torch, dtype, n=8192):
    """Flops a second of a matrix product."""
    A = torch.randn(n, n, dtype=dtype, device="cuda")
    return 2.0 * n**3 / best_of(torch, lambda: A @ A, 4)


def times(torch, options):
    """One line for each precision and size."""
    table = []
    for dtype in (torch.float64, torch.float32):
        limit = rate(torch, dtype)
        for n in options.rows:
            values, y = made(n)
            X = torch.as_tensor(values).to(dtype).cuda()
            call(X[:2000], y[:2000])
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            try:
                seconds = best_of(torch, lambda X=X, y=y: call(X, y), 1 if n > 50_000 else 3)
            except (MemoryError, torch.OutOfMemoryError) as error:
                table.append({"precision": str(dtype), "n": n, "error": str(error)[:200]})
                continue
            peak = torch.cuda.max_memory_allocated()
            line = {"precision": str(dtype).removeprefix("torch."), "n": n, "seconds": seconds, "error": None}
            line |= {"peak GB": peak / 1e9, "arrays": peak / (n**2 * X.element_size())}
            line |= {"bare s": bare(torch, X), "limit s": 2 / 3 * n**3 / limit}
            line["cpu s"] = (
                timed(lambda v=values, y=y: call(v, y))[1] if n <= options.most_cpu and "64" in str(dtype) else None
            )
            table.append(line)
            markdown([line])
    return table


def main():
    options = parser(__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=[10_000, 32_768, 65_536, 100_000])
    options.add_argument("--most-cpu", type=int, default=10_000)
    options = options.parse_args()
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("no CUDA card that torch sees: nothing is measured", file=sys.stderr)
        return report(options, checks=[], times=[])
    if options.fast:
        options.rows, options.most_cpu = [2000], 2000
    card = torch.cuda.get_device_name()
    return report(options, card=card, torch=torch.__version__, checks=checks(torch, 1500), times=times(torch, options))


if __name__ == "__main__":
    main()
