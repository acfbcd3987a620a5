"""Permutation tests: scores of given permutations, p-values, families, confounds, and scikit-learn's own function."""

from math import factorial

import numpy as np

from fuzz import data as sets
from fuzz import models
from fuzz.judge import Skip
from fuzz.oracles import LD, Refit
from fuzz.programs.confounds import draw_confounds, reader, without_part
from fuzz.programs.fitting import check_size, limit_of
from fuzz.programs.validation import held_out, metrics_of, score_parts


def shuffled(rng_state, n, strata):
    """Row numbers permuted as scikit-learn does: all, or one stratum after the other."""
    if strata is None:
        return rng_state.permutation(n)
    order = np.arange(n)
    for value in np.unique(strata):
        mine = strata == value
        order[mine] = rng_state.permutation(order[mine])
    return order


def labelings(codes, strata):
    """How many different labelings there are within the strata."""
    count = 1
    for value in np.unique(strata):
        sizes = np.bincount(codes[strata == value])
        count *= factorial(int(sizes.sum()))
        for size in sizes:
            count //= factorial(int(size))
    return count


def moved(splits, order):
    """Splits in which row i takes the place of row order[i]."""
    place = np.argsort(order)
    return [(np.sort(place[train]), np.sort(place[test])) for train, test in splits]


def draw_case(rng, *, plain, most, c=None):
    """A model, of the library or of scikit-learn, and its data."""
    name = sets.pick(rng, "LSSVR", "LSSVC", "KernelFisherDiscriminant", "Ridge", "RidgeClassifier", "KernelRidge")
    c = c or sets.classes_of(rng)
    if name in models.FOLDLESS_ESTIMATORS:
        c = c if models.FOLDLESS_ESTIMATORS[name] else None
        kernels = ("rbf", "linear", "laplacian", "poly")
        model = models.draw_own(rng, name, c, kernels=kernels, simple=True, loo_cut=False)
    else:
        model = models.draw_their(rng, name)
        c = c if model.classifies else None
    if plain:
        model.alpha = float(sets.pick(rng, 0.01, 0.1, 1.0, 10.0))
        if "gamma" in model.kernel:
            model.kernel["gamma"] = float(sets.pick(rng, 0.1, 0.5))
    d = sets.draw(rng, model.classifies, c=c, most=most, least=9, plain=plain, sparse=False)
    if d.y.ndim == 2 or (d.codes is None and np.ptp(d.y) == 0):
        d.y = d.y.reshape(d.n, -1)[:, 0]
    check_size(model, d)
    return model, d


def mean_score(metric, model, d, splits, problem=None):
    """Interval of the mean over the splits of one labeling."""
    for train, test in splits:
        counted = train[np.asarray(d.w, float)[train] > 0]
        if d.codes is not None and len(np.unique(d.codes[counted])) < len(d.classes):
            raise Skip
        if metric == "roc_auc" and len(np.unique(d.codes[test])) < 2:
            raise Skip
    parts = held_out(model, model.problem(d) if problem is None else problem, d, splits)
    return np.mean([[float(each) for each in pair] for pair in score_parts(metric, parts, splits, d)], 0)


def permutation(rng, s, judge):
    """Fixed splits: every permuted score is the one of refits."""
    model, d = draw_case(rng, plain=False, most=16)
    judge.label = model.label
    family = rng.random() < 0.2 and d.dtype == np.float64
    members = [d]
    if family:
        other = d.dense[rng.permutation(d.n)].astype(float)
        X = np.stack([np.asarray(d.dense, float), other], 2)
        members = [d, sets.replace(d, dense=other.astype(d.dense.dtype))]
    else:
        X = d.X
    s.let("X", X)
    s.let("y", d.y)
    params = strata_text = ""
    if d.weights is not None:
        s.let("w", d.weights)
        params = ', params={"sample_weight": w}'
    state, m = int(rng.integers(1000)), int(rng.integers(2, 5))
    strata, moves = None, False
    if rng.random() < 0.3:
        strata = rng.integers(0, 2, d.n)
        s.let("strata", strata)
        strata_text = ", null=strata"
    k = int(rng.integers(2, 4))
    if d.codes is not None and rng.random() < 0.4:
        if np.bincount(d.codes).min() < k:
            raise Skip
        splits = list(s.run(f"StratifiedKFold({k})", "cv").split(d.dense, d.y))
        fold = np.empty(d.n, int)
        for number, (_, test) in enumerate(splits):
            fold[test] = number
        within = fold if strata is None else strata * k + fold
        moves = labelings(d.codes, within) < 1000  # then splits go with the labels
        strata = strata if moves else within
    else:
        splits = list(s.run(f"KFold({k}, shuffle=True, random_state={state})", "cv").split(d.dense))
    metric = sets.pick(rng, *metrics_of(rng, d, splits))
    if d.codes is None and rng.random() < 0.3:
        metric = "correlation"
    draw = np.random.RandomState(state)
    orders = [np.arange(d.n)] + [shuffled(draw, d.n, strata) for _ in range(m)]
    tables = [
        [mean_score(metric, model, each.relabel(order), moved(splits, order) if moves else splits) for order in orders]
        for each in members
    ]
    s.run(
        f"permutation_test_score({model.text}, X, y, cv=cv, scoring={metric!r}, n_permutations={m},"
        f" random_state={state}{params}{strata_text})",
        "result",
    )
    found = np.vstack([np.atleast_1d(s.run("result.score")), s.run("result.permutation_scores").reshape(m, -1)])
    pvalues = np.atleast_1d(s.run("result.pvalue"))
    for column, table in enumerate(tables):
        compare_table(judge, d, metric, found[:, column], np.array(table))
        judge_pvalue(judge, pvalues[column], np.array(table))


def compare_table(judge, d, metric, found, table):
    """Scores of all labelings."""
    if d.codes is not None:
        return judge.intervals(f"permutation scores, {metric}", found, table)
    value, tolerance = table.mean(1), np.ptp(table, axis=1) / 2
    wide = ~np.isfinite(tolerance)
    value, tolerance = np.where(wide, 0, value), np.where(wide, np.inf, tolerance)
    judge.values(f"permutation scores, {metric}", found, value, tolerance + 1e-12, limit_of(value, tolerance))


def judge_pvalue(judge, found, table):
    """(b + 1) / (m + 1), b permutations at least as good as the truth, as far as rounding leaves it open."""
    if not np.isfinite(table).all():
        return judge.skip()
    slack = 1e-9 * np.abs(table).max()
    surely = np.sum(table[1:, 0] >= table[0, 1] - 1e-12 * np.abs(table).max())
    perhaps = np.sum(table[1:, 1] >= table[0, 0] - slack)
    judge.within("p-value", found, ((min(surely, perhaps) + 1) / len(table), (perhaps + 1) / len(table)))


def resplit(rng, s, judge):
    """Splits drawn for every permutation: scikit-learn's numbers, p-value included."""
    model, d = draw_case(rng, plain=True, most=24, c=2 if rng.random() < 0.5 else None)
    lattice = rng.random() < 0.3
    if lattice:
        X = rng.integers(0, 3, d.dense.shape).astype(float)
        d = sets.replace(d, X=X, dense=X.astype(d.dense.dtype))
    judge.label = model.label
    s.let("X", d.X)
    s.let("y", d.y)
    state, m, k = int(rng.integers(1000)), int(rng.integers(4, 7) if lattice else rng.integers(5, 30)), 2
    if rng.random() < 0.5:
        k = int(rng.integers(2, 6))
    metric = (
        "r2" if d.codes is None else sets.pick(rng, "accuracy", *2 * ["roc_auc" if len(d.classes) == 2 else "accuracy"])
    )
    if d.n < 2 * k or (d.codes is not None and np.bincount(d.codes).min() < max(k, 2)):
        raise Skip
    cv = s.run(f"StratifiedKFold({k})" if d.codes is not None else f"KFold({k})", "cv")
    arguments = f"{model.text}, X, y, cv=cv, scoring={metric!r}, n_permutations={m}, random_state={state}"
    ours = s.run(f"permutation_test_score({arguments}, null='resplit')")
    theirs = s.run(f"theirs.permutation_test_score({arguments})")
    if lattice and d.codes is not None:
        draw = np.random.RandomState(state)
        orders = [np.arange(d.n)] + [shuffled(draw, d.n, None) for _ in range(m)]
        relabelled = [d.relabel(order) for order in orders]
        table = np.array([mean_score(metric, model, each, list(cv.split(d.dense, each.y))) for each in relabelled])
        judge.intervals(f"resplit, scores {metric}", np.concatenate([[ours[0]], ours[1]]), table)
        if np.abs(ours[1] - theirs[1]).max() > 1e-9 or abs(ours[0] - theirs[0]) > 1e-9:
            return judge.skip()
    else:
        judge.values(f"resplit, score {metric}", ours[0], theirs[0], 1e-8 * (1 + abs(theirs[0])))
        tolerance = 1e-8 * (1 + np.abs(theirs[1]))
        judge.values(f"resplit, permutation scores {metric}", ours[1], theirs[1], tolerance)
    return judge.values(f"resplit, p-value {metric}", ours[2], theirs[2], 1e-12)


def orthonormal(C):
    """Orthonormal columns that C spans, by Gram and Schmidt, twice; nearly dependent columns make no sense here."""
    basis = []
    for column in C.T:
        v = column
        for _ in range(2):
            for b in basis:
                v = v - (b @ v) * b
        if np.sqrt(v @ v) < 1e-3 * np.sqrt(column @ column):
            raise Skip
        basis.append(v / np.sqrt(v @ v))
    return np.stack(basis, 1)


def permuted_residuals(y, C, strata, order):
    """Values (n, m) of one labeling with confounds: y - e + s R e[order], e = R y, s = |e| / |R e[order]|.

    R takes out the means of the strata and the confounds (Freedman & Lane 1983).
    """
    y, C = np.asarray(y, LD).reshape(len(y), -1), np.asarray(C, LD)
    member = (np.unique(strata)[:, None] == strata).astype(LD)
    means = member.T @ (member / member.sum(1, keepdims=True))
    basis = orthonormal(C - means @ C)
    beyond = np.eye(len(y), dtype=LD) - means
    R = beyond - basis @ (basis.T @ beyond)
    e = R @ y
    if np.any((e * e).sum(0) < 1e-6 * ((y - y.mean(0)) ** 2).sum(0)):
        raise Skip  # hardly anything to permute
    moved = R @ e[order]
    return y - e + moved * np.sqrt((e * e).sum(0) / (moved * moved).sum(0))


def confounded(rng, s, judge):
    """Values with confounds: what these leave of the values is permuted."""
    model = models.draw_their(rng, "Ridge") if rng.random() < 0.3 else models.draw_own(rng, "LSSVR", loo_cut=False)
    model.alpha = float(max(model.alpha, 1e-4))
    d = sets.draw(rng, False, most=18, least=12, boolean=model.kernel["kernel"] == "boolean", singles=False)
    check_size(model, d)
    Y = np.asarray(d.y, LD).reshape(d.n, -1)
    if np.any(np.abs(Y).max(0) > 1e4 * Y.std(0)):
        d.y = np.asarray(Y - Y.mean(0), float).reshape(np.shape(d.y))  # residuals of others have few digits
    d, C = draw_confounds(rng, d)
    judge.label = model.label
    for key, value in (("X", d.X), ("y", d.y), ("C", C), ("w", d.weights)):
        if value is not None:
            s.let(key, value)
    words = ', params={"sample_weight": w}' if d.weights is not None else ""
    strata = np.zeros(d.n, int)
    if rng.random() < 0.3:
        strata = rng.integers(0, 2, d.n)
        s.let("strata", strata)
        words += ", null=strata"
    state, m, inside = int(rng.integers(1000)), int(rng.integers(2, 5)), rng.random() < 0.4
    splits = list(s.run(f"KFold({int(rng.integers(2, 4))}, shuffle=True, random_state={state})", "cv").split(d.dense))
    if min(len(train) for train, _ in splits) < 8:
        raise Skip
    metric = sets.pick(rng, "neg_mean_squared_error", "r2", "correlation")
    draw = np.random.RandomState(state)
    orders = [shuffled(draw, d.n, strata if "strata" in words else None) for _ in range(m)]
    labelings = [np.asarray(d.y, LD).reshape(d.n, -1)] + [permuted_residuals(d.y, C, strata, each) for each in orders]
    table = []
    for values in labelings:
        relabelled = sets.replace(d, y=values)
        problem, read = model.problem(relabelled, C=C), reader(model, d)
        problem.Y = values  # all digits
        parts = [read(Refit(problem, tr).at(te) if inside else without_part(problem, tr, te)) for tr, te in splits]
        pairs = score_parts(metric, parts, splits, relabelled)
        table.append(np.mean([[float(each) for each in pair] for pair in pairs], 0))
    s.run(
        f"permutation_test_score({model.text}, X, y, cv=cv, scoring={metric!r}, n_permutations={m},"
        f" random_state={state}, confounds=Confounds(C, in_score={inside}){words})",
        "result",
    )
    found = np.concatenate([[s.run("result.score")], s.run("result.permutation_scores")])
    compare_table(judge, d, metric, found, np.array(table))
    judge_pvalue(judge, s.run("result.pvalue"), np.array(table))


AREAS = {"permutation": permutation, "permutation resplit": resplit, "permutation, confounds": confounded}
