"""Searches of foldless beside the models that could take their place: test errors, log-losses and times.

Tables (each with ``methods.py``'s models of its kind):

    (default)       28 sets, two thirds of the rows for training, at most 2000 (gina: 1000); published partitions first
    --large         four larger sets with ``--rows`` training rows
    --regression    diabetes, and Friedman's three functions with 150 to 1500 training rows and two levels of noise

Features (and targets of regressions) are standardised on the training part. Every fit has a process of its own and
``--threads`` threads; it is stopped after ``--timeout`` seconds and then called unfinished. Seconds are those of
``fit``, imports excluded. Log-losses are in nats a row, of probabilities of at least 1e-6. Optional packages are named
in ``methods.py``: a model whose package is missing is left out, and the result says so.

``--keep FILE`` appends each result to a file of JSON lines, and takes from it what it has: an interrupted run goes on,
and models or splits can be added later (``--methods NAME ...``). ``--budget SECONDS`` starts no fit after that time;
``--budget 0`` only makes the tables. Differences are to "foldless auto", on the same splits: *se* is over the sets, and
*clearly* means two standard errors over the splits of a set (of three splits, equal models differ so in one set of
five). Mean errors, ranks and wins are of the models that finished all splits of all sets; the others have a table of
their own, on the splits that they finished. Sets that foldless auto has not finished are left out.

``--data DIR`` is a folder with the files that ``sets.py`` names; without it, sets that come with scikit-learn are used.
``--plot FILE`` draws the differences by set, and the times (matplotlib).

    python benchmarks/peers.py --data DIR [--splits 3] [--keep FILE] [--methods NAME ...] [--only SET ...] [--fast]
"""

import contextlib
import json
import multiprocessing
import os
import sys
import time
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from common import markdown, parser, report, timed
from methods import CLASSIFIERS, REGRESSORS
from sets import IDA, LARGE, REGRESSION, SKLEARN, UCI, WCCI, partitions, parts, regression_parts, rows_of

TASKS = {"classification": CLASSIFIERS, "regression": REGRESSORS}
BASE = "foldless auto"
FAST_METHODS = ("foldless auto", "foldless rbf", "HistGB", "extra trees", "ridge")
MOST_TRAIN = {"wcci2006/gina": 1000}

# -- one fit -----------------------------------------------------------------------------------------------------------


def evaluate(task, name, split, threads):
    """Loss and seconds of a model on the parts (X, y, X_test, y_test) of one split.

    The loss is the error, or one minus R2, in per cent.
    """
    X, y, X_test, y_test = split
    if task == "classification":
        classes, y = np.unique(y, return_inverse=True)
        places = np.searchsorted(classes, y_test).clip(max=len(classes) - 1)
        y_test = np.where(classes[places] == y_test, places, -1)  # -1: a class without training rows
    with threadpool_limits(threads), warnings.catch_warnings(), open(os.devnull, "w") as sink:
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            model = TASKS[task][name].make(X, threads)
            _, seconds = timed(lambda: model.fit(X, y))
            predictions = np.ravel(model.predict(X_test))
            probabilities = model.predict_proba(X_test) if hasattr(model, "predict_proba") else None
    if task == "regression":
        return {"loss": 100 * np.mean((y_test - predictions) ** 2) / np.var(y_test), "seconds": seconds}
    result = {"loss": 100 * np.mean(predictions != y_test), "seconds": seconds}
    if probabilities is not None:
        true = np.where(y_test < 0, 0.0, probabilities[np.arange(len(y_test)), y_test])
        result["log_loss"] = -np.mean(np.log(np.maximum(true, 1e-6)))
    return result


def _send(connection, *arguments):
    try:
        result = {"status": "ok"} | {key: float(value) for key, value in evaluate(*arguments).items()}
    except Exception as error:
        result = {"status": f"failed: {type(error).__name__}: {error}"[:300]}
    connection.send(result)


def evaluated(timeout, *arguments):
    """The result of ``evaluate`` in a process of its own, which is killed after ``timeout`` seconds."""
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, *arguments), daemon=True)
    process.start()
    sender.close()
    try:
        result = receiver.recv() if receiver.poll(timeout) else {"status": "unfinished"}
    except EOFError:
        result = {"status": "failed: the process died"}
    process.kill()
    process.join()
    return result


# -- all fits ----------------------------------------------------------------------------------------------------------


def split_parts(options, name):
    """Parts (X, y, X_test, y_test) of the splits of a set, made one at a time."""
    if options.regression:
        yield from (lambda k=k: regression_parts(name, k) for k in range(options.splits))
        return
    X, y, realisations = rows_of(options.data, name)
    for train, test in partitions(y, realisations, options.splits, most_rows(options, name)):
        yield lambda train=train, test=test: parts(X, y, train, test)


def most_rows(options, name):
    """The largest number of training rows, which tells the results of tables apart; None for regressions."""
    if options.regression:
        return None
    return options.rows if options.large else MOST_TRAIN.get(name, 2000)


def read(path):
    """Results that a file of JSON lines keeps; the last one of a fit counts. A line that was cut short is left out."""
    results = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            result = json.loads(line)
            results[result["set"], result["most_rows"], result["split"], result["method"]] = result
    return results


def run(options, task, names, chosen):
    """{(set, split, method): result}: those of the file, and those of the fits that it lacks."""
    kept, results, start = read(options.keep), {}, time.monotonic()
    for package in {package for method in chosen for package in TASKS[task][method].packages}:
        import_module(package)  # once, before processes are forked
    for name in names:
        for split, make_parts in enumerate(split_parts(options, name)):
            data = None
            for method in chosen:
                key = (name, most_rows(options, name), split, method)
                if key not in kept and (options.budget is None or time.monotonic() - start < options.budget):
                    data = make_parts() if data is None else data
                    kept[key] = _fit(options, task, key, data)
                if key in kept:
                    results[name, split, method] = kept[key]
        print(f"{name}: {time.monotonic() - start:.0f} s so far", file=sys.stderr, flush=True)
    return results


def _fit(options, task, key, data):
    result = evaluated(options.timeout, task, key[-1], data, options.threads)
    used = {package: version(package) for package in TASKS[task][key[-1]].packages}
    result = dict(zip(("set", "most_rows", "split", "method"), key, strict=True)) | result
    result |= {"n_train": len(data[0]), "n_features": data[0].shape[1], "threads": options.threads, **used}
    if options.keep:
        with options.keep.open("a") as file:
            file.write(json.dumps(result) + "\n")
    return result


# -- tables ------------------------------------------------------------------------------------------------------------


def array_of(results, names, n_splits, chosen, field):
    """Array (sets, splits, methods) of a field of the results; nan where a fit has none."""
    cells = [
        [[results.get((name, split, method), {}).get(field, np.nan) for method in chosen] for split in range(n_splits)]
        for name in names
    ]
    return np.array(cells, float)


def differences(losses, base):
    """Mean and standard error over the splits of each set, of each method's loss beyond the base's: (sets, methods).

    Splits that either lacks are left out; of fewer than two splits the standard error is nan.
    """
    change = losses - losses[:, :, [base]]
    n = np.isfinite(change).sum(1)
    mean = np.nansum(change, 1) / np.where(n, n, np.nan)
    variance = np.nansum((change - mean[:, None]) ** 2, 1) / np.where(n > 1, n - 1, np.nan)
    return mean, np.sqrt(variance / np.where(n, n, np.nan))


def method_rows(losses, log_losses, seconds, chosen, statuses, signs=(1.0, 0.0)):
    """Rows of two tables: of the methods with all fits, and of the others.

    ``signs`` = (a, b): the table shows a * loss + b.
    """
    slope, offset = signs
    base = chosen.index(BASE)
    change, spread = differences(losses, base)
    finished = np.isfinite(losses).all((0, 1))
    ranks, wins = ranks_and_wins(losses[:, :, finished].mean(1))
    complete, partial = [], []
    for k, method in enumerate(chosen):
        shared = np.isfinite(losses[:, :, k] + losses[:, :, base])
        if not shared.any():
            continue
        row = {"method": method}
        if not finished[k]:
            row |= {"sets": int(shared.any(1).sum()), "fits": int(shared.sum())}
        row["mean"] = slope * _mean_of_sets(losses[:, :, k], shared) + offset
        if finished[k]:
            place = np.sum(finished[:k])
            row |= {"rank": float(ranks[place]), "wins": int(wins[place])}
        else:
            row[BASE] = slope * _mean_of_sets(losses[:, :, base], shared) + offset
        row |= difference_columns(change[:, k], spread[:, k], slope)
        if log_losses is not None:
            row["log-loss"] = float(log_losses[:, :, k].mean()) if np.isfinite(log_losses[:, :, k]).all() else None
        row["seconds"] = float(np.nansum(seconds[:, :, k]))
        ends = [status for each, status in statuses if each == method]
        row |= {"unfinished": ends.count("unfinished"), "failed": sum(end.startswith("failed") for end in ends)}
        (complete if finished[k] else partial).append(row)
    return complete, partial


def signs_of_clear(change, spread):
    """1 or -1 where a difference is more than two standard errors above or below 0, else 0; of nan 0.

    A difference of exactly two standard errors, which three splits often have, is not clear.
    """
    margin = 2 * spread * (1 + 1e-9) + 1e-9
    return np.where(change > margin, 1, np.where(change < -margin, -1, 0))


def ranks_and_wins(means):
    """Mean rank of each method over the sets, and the sets where it has the least mean loss, shared ones included."""
    ranks = np.array([rankdata(each.round(9)) for each in means])
    return ranks.mean(0), np.sum(means <= means.min(1, keepdims=True) + 1e-9, 0)


def difference_columns(change, spread, slope):
    """Mean difference over the sets, its standard error, and counts of sets: worse or better, and clearly so."""
    change, spread = change[np.isfinite(change)], spread[np.isfinite(change)]
    n, clear = len(change), signs_of_clear(change, spread)
    has_spread = np.isfinite(spread).any()
    return {
        "difference": slope * float(change.mean()) + 0.0,  # no -0
        "se": abs(slope) * float(change.std(ddof=1)) / np.sqrt(n) if n > 1 else None,
        "sets worse": int(np.sum(change > 1e-9)),
        "sets better": int(np.sum(change < -1e-9)),
        "clearly worse": int(np.sum(clear > 0)) if has_spread else None,
        "clearly better": int(np.sum(clear < 0)) if has_spread else None,
    }


def _mean_of_sets(losses, shared):
    """Mean over sets of the means over the splits that are shared."""
    return float(np.mean([row[mask].mean() for row, mask in zip(losses, shared, strict=True) if mask.any()]))


def set_rows(losses, names, chosen, signs):
    """Mean loss of each method by set."""
    slope, offset = signs
    counts = np.isfinite(losses).all(1)
    means = np.where(counts, np.where(np.isfinite(losses), losses, 0).mean(1), np.nan)
    return [
        {"set": name, **{m: None if np.isnan(v) else slope * v + offset for m, v in zip(chosen, row, strict=True)}}
        for name, row in zip(names, means.tolist(), strict=True)
    ]


def lost_sets(losses, names, chosen, scale):
    """Sets where another model than foldless' errs clearly less than the base: the one of the least loss.

    That one is the best of many after the fact, so that some of its lead is luck.
    """
    base = chosen.index(BASE)
    change, spread = differences(losses, base)
    peers = [k for k, method in enumerate(chosen) if not method.startswith("foldless")]
    rows = []
    for i, name in enumerate(names):
        clear = [k for k in peers if signs_of_clear(change[i, k], spread[i, k]) < 0]
        if clear:
            best = min(clear, key=lambda k: change[i, k])
            row = {"set": name, "best clear peer": chosen[best], "by": scale * -change[i, best]}
            rows.append({**row, "se": scale * spread[i, best], "clear peers": len(clear)})
    return rows


# -- plot --------------------------------------------------------------------------------------------------------------


def plot(path, losses, seconds, chosen, unit):
    """Differences to the base by method, one point a set, and seconds of all fits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    base = chosen.index(BASE)
    change, spread = differences(losses, base)
    shown = [k for k in range(len(chosen)) if k != base and np.isfinite(change[:, k]).any()]
    shown.sort(key=lambda k: -np.nanmean(change[:, k]))
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 0.4 * len(shown) + 2), width_ratios=(3, 1), sharey=True, layout="constrained"
    )
    rng, labels = np.random.default_rng(0), []
    for place, k in enumerate(shown):
        each, clear = change[:, k], signs_of_clear(change[:, k], spread[:, k])
        for sign, color in ((0, "0.7"), (1, "C0"), (-1, "C3")):
            mask = clear == sign
            heights = place + rng.uniform(-0.2, 0.2, mask.sum())
            left.scatter(each[mask], heights, s=14, color=color, linewidths=0)
        found = each[np.isfinite(each)]
        se = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
        left.errorbar(found.mean(), place, xerr=se, fmt="D", color="k", ms=5, capsize=3)
        labels.append(chosen[k] if len(found) == len(each) else f"{chosen[k]} ({len(found)} of {len(each)} sets)")
        fits = np.isfinite(losses[:, :, k] + losses[:, :, base])
        share = seconds[:, :, k][fits].sum() / seconds[:, :, base][fits].sum()
        right.plot(share, place, "s", color="0.4")
    left.axvline(0, color="k", lw=0.8)
    right.axvline(1, color="k", lw=0.8)
    left.set_xscale("symlog", linthresh=1)
    ticks = [tick for tick in (-50, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50) if _between(tick, left.get_xlim())]
    left.set_xticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks])
    left.minorticks_off()
    left.grid(axis="x", color="0.93", zorder=0)
    left.set_yticks(range(len(shown)), labels)
    left.set_xlabel(f"{unit} beyond {BASE}: left of 0 the other model is better\n(points: sets; diamonds: means)")
    for color, text in (("0.7", "not clear"), ("C0", f"clearly worse than {BASE}"), ("C3", "clearly better")):
        left.scatter([], [], s=20, color=color, label=text)
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    right.set(xscale="log", xlabel=f"seconds of its fits over\nthose of {BASE}")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _between(value, limits):
    return limits[0] <= value <= limits[1]


# -- all of it ---------------------------------------------------------------------------------------------------------


def arguments():
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--splits", type=int, default=3)
    options.add_argument("--large", action="store_true")
    options.add_argument("--rows", type=int, default=3000, help="training rows of --large")
    options.add_argument("--regression", action="store_true")
    options.add_argument("--only", nargs="+", metavar="SET")
    options.add_argument("--methods", nargs="+", metavar="NAME", help=f"beside {BASE}")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--timeout", type=float, default=300.0, help="seconds of a fit")
    options.add_argument("--budget", type=float, help="seconds after which no fit is started")
    options.add_argument("--keep", type=Path, metavar="FILE")
    options.add_argument("--plot", type=Path, metavar="FILE")
    return options.parse_args()


def set_names(options):
    if options.regression:
        names = REGRESSION
    elif options.data is None:
        names = SKLEARN
    else:
        names = LARGE if options.large else (*IDA, *UCI, *SKLEARN, *WCCI)
    if options.fast:
        names = [name for name in names if name.endswith(("heart", "iris", "wine", "diabetes", "150_rows_0.1_noise"))]
    return options.only or list(names)


def chosen_methods(options, methods):
    """Names of the methods to run, and of those that are left out with the reason."""
    chosen = [BASE, *(options.methods or (FAST_METHODS if options.fast else methods))]
    unknown = [name for name in chosen if name not in methods]
    if unknown and options.methods:
        sys.exit(f"--methods {' '.join(unknown)}: no such method; there are {', '.join(methods)}")
    missing = {name: methods[name].missing for name in chosen}
    left_out = {name: f"{', '.join(each)} not installed" for name, each in missing.items() if each}
    return [name for name in methods if name in chosen and name not in left_out], left_out


def main():
    options = arguments()
    task = "regression" if options.regression else "classification"
    if options.fast:
        options.splits = 2
    names = set_names(options)
    chosen, left_out = chosen_methods(options, TASKS[task])
    results = run(options, task, names, chosen)
    finished = {key for key, result in results.items() if result["status"] == "ok"}
    names = [name for name in names if all((name, k, BASE) in finished for k in range(options.splits))]
    if not names:
        sys.exit(f"no set has {options.splits} finished splits of {BASE}")
    signs = (-0.01, 1.0) if options.regression else (1.0, 0.0)
    losses, log_losses, seconds = (
        array_of(results, names, options.splits, chosen, field) for field in ("loss", "log_loss", "seconds")
    )
    statuses = [(method, result["status"]) for (_, _, method), result in results.items()]
    judged = None if options.regression else log_losses
    complete, partial = method_rows(losses, judged, seconds, chosen, statuses, signs)
    sets, lost = set_rows(losses, names, chosen, signs), lost_sets(losses, names, chosen, abs(signs[0]))
    for rows in (complete, partial, sets, lost):
        if rows:
            markdown(rows)
    if options.plot:
        plot(options.plot, losses, seconds, chosen, "100 (1 - R2)" if options.regression else "points of test error")
    packages = {package: version(package) for method in chosen for package in TASKS[task][method].packages}
    failures = [result for result in results.values() if result["status"] != "ok"]
    tables = {"methods": complete, "partial": partial, "sets": sets, "lost": lost}
    report(options, packages=packages, **tables, left_out=left_out, failures=failures)


if __name__ == "__main__":
    main()
