"""Interrupts at random moments of calls on thousands of rows: what they leave is compared with what was before.

Rows are more than 8,192, so that factors go panel by panel; narrow panels give an interrupt many places to arrive. Of
each call the script counts interrupts, wrong results after them, and models that were left updated because the
interrupt came after the last step. A call is interrupted until its share of the time is spent.

    python benchmarks/interrupts.py [--rows 9000] [--minutes 12] [--calls forget fit] [--width 256] [--seed 0] [--fast]
        [--json FILE]
"""

import pickle
import signal
import sys
import time

import numpy as np

from common import markdown, parser, report
from foldless import LSSVR
from foldless._engine.linalg import panels

N_NEW = 4
PER_CHECK = 8  # interrupts of one model in a row, whose result is compared then
READERS = {
    "loo_predict": lambda model, data: model.loo_predict(),
    "loo_score_": lambda model, data: model.loo_score_,
    "predict_interval": lambda model, data: model.predict_interval(data[2]),
    "forgetting_effects": lambda model, data: model.forgetting_effects(),
    "fit": lambda model, data: model.fit(*data[:2]),  # the same rows again: the model before it and after it are equal
}
WRITERS = {
    "partial_fit": lambda model, data: model.partial_fit(data[2], data[2][:, 0]),
    "forget": lambda model, data: model.forget(np.arange(len(model.X_fit_) - N_NEW, len(model.X_fit_))),
}


def sample(n, seed):
    rng = np.random.default_rng(seed)
    X, new = (rng.standard_normal((size, 5)).astype(np.float32) for size in (n, N_NEW))
    return X, np.sin(X[:, 0]) + np.float32(0.1) * rng.standard_normal(n).astype(np.float32), new


def fitted(data):
    return LSSVR(gamma=0.1, alpha=1.0).fit(*data[:2])


def interrupted(call, seconds):
    """(whether a call is interrupted that takes longer than so many seconds, how long it took)."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before, start = signal.signal(signal.SIGALRM, interrupt), time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, max(min(seconds, 1e6), 1e-6))
        call()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        ended = False
    except KeyboardInterrupt:
        ended = True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    return ended, time.perf_counter() - start


def outputs(model, data):
    return {"loo_predict": model.loo_predict(), "predict": model.predict(data[2])}


def matches(found, expected):
    """Whether all outputs agree up to single precision."""
    return all(
        found[name].shape == value.shape and np.abs(found[name] - value).max() <= 2e-3 * np.abs(value).max()
        for name, value in expected.items()
    )


def interrupt_reader(name, pickled, data, seconds, rng):
    """One entry of the result: interrupts of a call on copies of a model, which make their P in the call."""
    begin, expected = time.perf_counter(), outputs(pickle.loads(pickled), data)
    _, longest = interrupted(lambda: READERS[name](pickle.loads(pickled), data), np.inf)
    entry = {"call": name, "seconds": longest, "interrupts": 0, "wrong": 0, "complete": 0}
    while time.perf_counter() - begin < seconds:
        model = pickle.loads(pickled)
        for _ in range(PER_CHECK):
            ended, _ = interrupted(lambda model=model: READERS[name](model, data), longest * rng.uniform())
            entry["interrupts"] += ended
        entry["wrong"] += not matches(outputs(model, data), expected)
    return entry


def interrupt_writer(name, data, seconds, rng):
    """The same of an update; between interrupts an update and its opposite bring back a P that is updated in place."""
    call, opposite = WRITERS[name], next(each for other, each in WRITERS.items() if other != name)
    model = fitted(data)
    model = opposite(model, data) if name == "partial_fit" else model
    model = opposite(call(model, data), data)
    before, (_, longest) = outputs(model, data), interrupted(lambda: call(model, data), np.inf)
    after, begin = outputs(model, data), time.perf_counter()
    opposite(model, data)
    entry = {"call": name, "seconds": longest, "interrupts": 0, "wrong": 0, "complete": 0}
    while time.perf_counter() - begin < seconds:
        ended, _ = interrupted(lambda: call(model, data), longest * rng.uniform())
        found = outputs(model, data)
        complete = matches(found, after)
        entry["interrupts"] += ended
        entry["complete"] += ended and complete
        entry["wrong"] += not (complete or matches(found, before))
        if not complete:
            call(model, data)
        opposite(model, data)
    return entry


def main():
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=9000)
    options.add_argument("--minutes", type=float, default=12.0)
    options.add_argument("--calls", nargs="+", choices=[*READERS, *WRITERS], default=[*READERS, *WRITERS])
    options.add_argument("--width", type=int, default=256, help="rows of a panel")
    options.add_argument("--seed", type=int, default=0)
    options = options.parse_args()
    if options.fast:
        options.rows, options.minutes = 1000, 0.1
    panels.WIDTH = options.width
    data, rng = sample(options.rows, options.seed), np.random.default_rng(options.seed)
    pickled, seconds, results = pickle.dumps(fitted(data)), 60.0 * options.minutes / len(options.calls), []
    for name in options.calls:
        if name in READERS:
            results.append(interrupt_reader(name, pickled, data, seconds, rng))
        else:
            results.append(interrupt_writer(name, data, seconds, rng))
        print(results[-1], file=sys.stderr, flush=True)
    markdown(results)
    report(options, interrupts=results)
    if any(each["wrong"] for each in results):
        raise SystemExit("an interrupt left wrong values")


if __name__ == "__main__":
    main()
