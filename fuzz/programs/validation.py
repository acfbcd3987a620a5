"""Cross-validation over splitters, methods and metrics: the library's estimators and scikit-learn's."""

from dataclasses import replace

import numpy as np

from fuzz import data as sets
from fuzz import models, scores
from fuzz.judge import Skip
from fuzz.oracles import LD, Fits, kernel_rounding
from fuzz.programs.fitting import check_size, compare, limit_of, started

PARTITIONS = ("KFold", "StratifiedKFold", "GroupKFold", "LeaveOneOut", "list")
OTHERS = ("ShuffleSplit", "LeavePOut", "RepeatedKFold", "odd list")


def draw_splits(rng, s, d, partition, repeats=False):
    """The text of a splitter and its splits as row numbers; every training part holds all classes."""
    kind = sets.pick(rng, *(PARTITIONS if partition else PARTITIONS + OTHERS))
    k = int(rng.integers(2, 5))
    shuffled = f"shuffle=True, random_state={int(rng.integers(100))}"
    text, groups = None, ""
    if kind == "KFold":
        text = f"KFold({k}, {shuffled})"
    elif kind == "StratifiedKFold":
        if d.codes is not None and np.bincount(d.codes).min() < k:
            raise Skip
        text = f"StratifiedKFold({k}, {shuffled})" if d.codes is not None else f"KFold({k})"
    elif kind == "GroupKFold":
        text, groups = f"GroupKFold({min(k, 4)})", ", groups=groups"
        s.let("groups", d.groups)
    elif kind == "LeaveOneOut":
        text = "LeaveOneOut()"
    elif kind == "ShuffleSplit":
        text = f"ShuffleSplit({k}, train_size=0.5, test_size=0.3, random_state={int(rng.integers(100))})"
    elif kind == "LeavePOut":
        text = "LeavePOut(2)" if d.n <= 10 else f"ShuffleSplit({k}, test_size=2, random_state=0)"
    elif kind == "RepeatedKFold":
        text = f"RepeatedKFold(n_splits={k}, n_repeats=2, random_state={int(rng.integers(100))})"
    if text is None:
        s.let("cv", listed(rng, d, odd=kind == "odd list", repeats=repeats))
    else:
        s.run(text, "cv")
    cv = s.names["cv"]
    splits = cv if isinstance(cv, list) else list(cv.split(d.dense, d.y, *([d.groups] if groups else [])))
    for train, _ in splits:
        train = train[np.asarray(d.w, float)[train] > 0]
        if len(train) < 2 or (d.codes is not None and len(np.unique(d.codes[train])) < len(d.classes)):
            raise Skip
    return splits, groups


def listed(rng, d, odd, repeats):
    """Splits as row numbers: a partition, or what no splitter draws."""
    order = rng.permutation(d.n)
    if not odd:
        parts = np.array_split(order, int(rng.integers(2, 5)))
        splits = [(np.setdiff1d(order, part), part) for part in parts]
        if repeats and rng.random() < 0.5:  # training rows that repeat
            splits[0] = (np.concatenate([splits[0][0], splits[0][0][:1]]), splits[0][1])
        return splits
    half = d.n // 2
    return [
        (order[:half], order[half:]),
        (np.concatenate([order[2:], order[2 : 2 + int(rng.integers(1, 3))]]), order[:2]),  # training rows that repeat
        (order[3:], order[:6]),  # some test rows were trained on
        (order[4:], order[:3]),  # a row that belongs to neither part
    ]


def held_out(model, problem, d, splits):
    """Fits of every test set by the refit without it."""
    if any(len(np.unique(train)) < len(train) for train, _ in splits):  # plain refits, with their own functions
        return [model.refit(functions_of(problem, d, train), d, train)(test) for train, test in splits]
    return [model.refit(problem, d, train)(test) for train, test in splits]


def functions_of(problem, d, rows):
    """The problem with the basis functions of these rows, as an estimator fitted on them has."""
    rows = np.asarray(rows)
    return replace(problem, functions=rows[np.asarray(d.w, float)[rows] > 0])


def placed(parts, splits, n):
    """Fits of a partition in the order of the rows."""
    first = parts[0]
    whole = Fits(*(np.zeros((n, *getattr(first, name).shape[1:]), LD) for name in ("values", "tolerance", "fine")))
    for part, (_, test) in zip(parts, splits, strict=True):
        for name in ("values", "tolerance", "fine"):
            getattr(whole, name)[test] = getattr(part, name)
    whole.tolerance = np.asarray(whole.tolerance, float)
    return whole


def cross_predict(s, judge, model, d, parts, splits, groups, params):
    """``cross_val_predict`` by all methods."""
    fits = placed(parts, splits, d.n)
    call = f"cross_val_predict({model.text}, X, y, cv=cv{groups}{params}"
    if not model.classifies:
        found = s.run(f"{call})")
        compare(judge, "cross_val_predict", found, fits, d.y.ndim == 1)
        return found, fits
    found = s.run(f'{call}, method="decision_function")')
    compare(judge, "cross_val_predict, decision_function", found, fits)
    judge.labels("cross_val_predict", s.run(f"{call})"), fits, d.classes)
    return found, fits


def metrics_of(rng, d, splits):
    """Metrics that all test sets allow."""
    if d.codes is None:
        return ["neg_mean_squared_error"] + ["r2"] * (min(len(test) for _, test in splits) > 1)
    names = ["accuracy", "balanced_accuracy"]
    if len(d.classes) == 2 and all(len(np.unique(d.codes[test])) == 2 for _, test in splits):
        names += ["roc_auc", "roc_auc"]
    return names


def score_parts(name, parts, splits, d, same=None):
    """Intervals of a score, one for each test set."""
    result = []
    for part, (_, test) in zip(parts, splits, strict=True):
        if d.codes is None:
            given = np.asarray(d.y, LD).reshape(d.n, -1)  # scores see y as it is, not in the type of X
            value, tolerance = getattr(scores, name)(Fits(*columns(part)), given[test])
            result.append((value - tolerance, value + tolerance))
        elif name == "roc_auc":
            result.append(scores.roc_auc(part, d.codes[test], (d.same if same is None else same)[test]))
        else:
            result.append(getattr(scores, name)(part, d.codes[test]))
    return result


def columns(part):
    """Values and tolerances of a regression as (t, m)."""
    return part.values, part.tolerance, part.fine


def cross_score(rng, s, judge, model, d, parts, splits, groups, params):
    """``cross_val_score`` or ``cross_validate`` by one of the metrics."""
    name = sets.pick(rng, *metrics_of(rng, d, splits))
    judge_scores(judge, s, name, model, d, parts, splits, groups, params, rng.random() < 0.3)


def judge_scores(judge, s, name, model, d, parts, splits, groups, params, whole):
    """Compare scores of all splits with their intervals."""
    call = f"{model.text}, X, y, cv=cv{groups}{params}, scoring={name!r}"
    found = s.run(f"cross_validate({call})['test_score']" if whole else f"cross_val_score({call})")
    intervals = score_parts(name, parts, splits, d)
    if d.codes is not None:
        return judge.intervals(f"cross_val_score {name}", found, intervals)
    low, high = (np.array([each[side] for each in intervals], LD) for side in (0, 1))
    value, tolerance = (low + high) / 2, (high - low) / 2
    wide = ~np.isfinite(np.asarray(tolerance, float))
    value, tolerance = np.where(wide, 0, value), np.where(wide, np.inf, tolerance)
    judge.values(f"cross_val_score {name}", found, value, tolerance, limit_of(value, tolerance))


def cross_validation(rng, s, judge):
    """The library's estimators."""
    model, d, given = started(rng, s, judge, most=24)
    partition = rng.random() < 0.55
    splits, groups = draw_splits(rng, s, d, partition, repeats=True)
    params = ', params={"sample_weight": w}' if given else ""
    parts = held_out(model, model.problem(d), d, splits)
    if partition:
        cross_predict(s, judge, model, d, parts, splits, groups, params)
    cross_score(rng, s, judge, model, d, parts, splits, groups, params)


def drop_in(rng, s, judge):
    """scikit-learn's estimators as they are, against the oracle and against scikit-learn's own functions."""
    model = models.draw_their(rng, sets.pick(rng, "Ridge", "RidgeClassifier", "KernelRidge"))
    plain = rng.random() < 0.4
    d = sets.draw(rng, model.classifies, most=40 if rng.random() < 0.3 else 26, plain=plain)
    if plain and rng.random() < 0.5:
        d.weights = rng.uniform(0.2, 3.0, d.n)
    models.with_class_weight(rng, model, d)
    check_size(model, d)
    judge.label = model.label
    s.let("X", d.X)
    s.let("y", d.y)
    params = ""
    if d.weights is not None:
        s.let("w", d.weights)
        params = ', params={"sample_weight": w}'
    plain_labels = not model.option("class_weight")  # scikit-learn's own refits renumber labels, and then miss them
    # Rows that repeat are left to its refits, whose solver of sparse rows stops at 1e-4.
    repeats = plain_labels and isinstance(d.X, np.ndarray)
    splits, groups = draw_splits(rng, s, d, partition=True, repeats=repeats)
    problem = model.problem(d)
    if any(len(np.unique(train)) < len(train) for train, _ in splits):  # scikit-learn refits, by its own kernels
        problem = replace(problem, rounding=kernel_rounding(model.kernel, d.dense, centred=False))
    parts = held_out(model, problem, d, splits)
    found, fits = cross_predict(s, judge, model, d, parts, splits, groups, params)
    cross_score(rng, s, judge, model, d, parts, splits, groups, params)
    if isinstance(d.X, np.ndarray) and not model.option("class_weight"):
        method = ', method="decision_function"' if model.classifies else ""
        theirs = s.run(f"theirs.cross_val_predict({model.text}, X, y, cv=cv{groups}{params}{method})")
        judge.equal("dtype of cross_val_predict", str(found.dtype), str(theirs.dtype))
        if plain:
            judge.values(
                "cross_val_predict, scikit-learn",
                found,
                theirs,
                np.asarray(10 * fits.tolerance if theirs.ndim == fits.tolerance.ndim else 10 * fits.tolerance[:, 0]),
            )


AREAS = {"cross-validation": cross_validation, "drop-in": drop_in}
