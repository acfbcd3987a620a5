"""Intervals of scores and of differences of scores, by their formulas from refits without every fold and every pair.

With S_ij the score of fold i by the model without folds i and j, S_jj by the model without fold j, K folds:

    in_j   mean of S_ij over i != j         out_j  S_jj         MSE  mean of (in_j - out_j)^2 - Var(out_j)
    centre mean in - (1 + (K - 2) / K) (mean in - mean out)     error^2  (K - 1) / K MSE, from v to K v

with v the variance of the score of independent rows (Bates, Hastie & Tibshirani 2023). Nadeau & Bengio (2003): the
variance of J scores times 1 / J + test rows / training rows, Student's t with J - 1 degrees of freedom.

Intervals of scores of classes are widened to hold those from numbers of held-out rows: of accuracy the exact one of a
share, of balanced accuracy those of the recalls, squared and added, of an area that of its variance (Hanley & McNeil).
"""

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from fuzz import data as sets
from fuzz import models, scores
from fuzz.judge import Skip, choices
from fuzz.oracles import LD, Fits
from fuzz.programs import searching
from fuzz.programs.fitting import check_size, started
from fuzz.programs.validation import draw_splits, held_out, metrics_of

ROW_SCORES = {True: ("accuracy",), False: ("neg_mean_squared_error", "neg_mean_absolute_error")}
LIMITS = {"accuracy": (0, 1), "balanced_accuracy": (0, 1), "roc_auc": (0, 1), "r2": (-np.inf, 1)}
PERTURBED = 4  # times that scores are moved by their errors, to see what becomes of the interval
SPREAD = 6  # A (1 - A) times this is what the variance of cross-validated areas A has beyond that of a fixed model
SURE = 1e-7  # of the scores of rows: errors up to which equal scores of two models are known to be equal
GROUPS = 20  # of the rows of a fold, left out in turn by the jackknife of a score that is no mean over rows


def row_scores(name, fits, d, rows):
    """Scores of rows and the errors that rounding may explain."""
    if name == "accuracy":
        return (sure_choices(fits) == d.codes[rows]).astype(LD), np.zeros(len(rows), LD)
    gap = np.abs(fits.values - np.asarray(d.y, LD).reshape(d.n, -1)[rows])
    error = np.asarray(fits.tolerance, LD)
    if not np.isfinite(np.asarray(error, float)).all():
        raise Skip
    if name == "neg_mean_absolute_error":
        return -gap.mean(1), error.mean(1)
    return -(gap * gap).mean(1), (2 * gap * error + error * error).mean(1)


def sure_choices(fits):
    """Class numbers of decisions that rounding cannot change."""
    choice, margin, tolerance = choices(fits)
    if not np.all(margin > tolerance):
        raise Skip
    return choice


def whole_score(name, fits, d, rows, kept):
    """The score of some of the rows of a fold together."""
    part = Fits(fits.values[kept], fits.tolerance[kept], fits.fine[kept])
    if name == "balanced_accuracy":
        sure_choices(part)
        return scores.balanced_accuracy(part, d.codes[rows[kept]])[0]
    if len(np.unique(d.codes[rows[kept]])) < 2:
        raise Skip
    low, high = scores.roc_auc(part, d.codes[rows[kept]], d.same[rows[kept]])
    if low < high:
        raise Skip
    return low


@dataclass
class Folds:
    """Scores of folds and their errors, ``[i, j]`` of fold i by the model without both, a dictionary a partition.

    ``parts[j]`` are what the score of fold j is the mean of, ``weight[j]`` is that of the fold among the others.
    """

    scores: list
    parts: list
    weight: list
    subtracted: bool = False

    def minus(self, other):
        """The same of differences."""

        def subtract(mine, theirs):
            return {key: (mine[key][0] - theirs[key][0], mine[key][1] + theirs[key][1]) for key in mine}

        pairs = [list(map(subtract, *each)) for each in ((self.scores, other.scores), (self.parts, other.parts))]
        return Folds(*pairs, self.weight, True)

    def moved(self, rng, ways=(-1, 1)):
        """The same with every score moved by its error, up or down."""

        def move(known):
            return {
                key: (value + error * rng.choice(ways, np.shape(value)), error) for key, (value, error) in known.items()
            }

        return Folds(list(map(move, self.scores)), list(map(move, self.parts)), self.weight, self.subtracted)

    @property
    def n_folds(self):
        """Folds of a partition."""
        return len(self.weight[0])

    def outside(self):
        """Scores of the folds (R, K), each by the model without it."""
        return np.array([[one[j, j][0] for j in range(self.n_folds)] for one in self.scores], LD)


def folds_of(name, model, problem, d, partitions):
    """:class:`Folds` of a model by refits."""
    found = Folds([], [], [])
    for tests in partitions:
        of_scores, of_parts = {}, {}
        for i in range(len(tests)):
            for j in range(i, len(tests)):
                train = np.setdiff1d(np.arange(d.n), np.concatenate([tests[i], tests[j]]))
                counted = train[np.asarray(d.w, float)[train] > 0]
                if len(counted) < 2 or (d.codes is not None and len(np.unique(d.codes[counted])) < len(d.classes)):
                    raise Skip
                at = model.refit(problem, d, train)
                for key, test in {(i, j): tests[i], (j, i): tests[j]}.items():
                    of_scores[key], parts = fold_score(name, at(test), d, test, alone=i == j)
                    of_parts[i] = parts if i == j else of_parts[i]
        found.scores.append(of_scores)
        found.parts.append(of_parts)
        of_rows = name in (*ROW_SCORES[True], *ROW_SCORES[False])
        found.weight.append(np.array([len(test) if of_rows else 1 for test in tests], LD))
    return found


def fold_score(name, fits, d, rows, alone):
    """(score, error) of a fold, and the same of what it is the mean of: rows, or pseudo-values of a jackknife."""
    if name in (*ROW_SCORES[True], *ROW_SCORES[False]):
        values, errors = row_scores(name, fits, d, rows)
        return (values.mean(), errors.mean()), (values, errors)
    group = np.arange(len(rows)) % min(GROUPS, len(rows))
    whole = LD(whole_score(name, fits, d, rows, group >= 0))
    if not alone:
        return (whole, LD(0)), None
    number = group.max() + 1
    rest = [whole_score(name, fits, d, rows, group != g) for g in range(number)]
    return (whole, LD(0)), (number * whole - (number - 1) * np.array(rest, LD), np.zeros(number, LD))


def nested_numbers(folds):
    """Score, centre and standard error of nested cross-validation."""
    K, squares, outside, inside, plain = folds.n_folds, [], [], [], []
    for one, parts, weight in zip(folds.scores, folds.parts, folds.weight, strict=True):
        out = np.array([one[j, j][0] for j in range(K)], LD)
        others = [[i for i in range(K) if i != j] for j in range(K)]
        into = [sum(weight[i] * one[i, j][0] for i in others[j]) / weight[others[j]].sum() for j in range(K)]
        variance = np.array([parts[j][0].var(ddof=1) / len(parts[j][0]) for j in range(K)], LD)
        squares.append(((np.array(into) - out) ** 2 - variance).mean())
        outside.append((weight * out).sum())
        inside.append((weight * np.array(into)).sum())
        plain.append((weight**2 * variance).sum() / weight.sum() ** 2)
    size = np.sum(folds.weight)
    score, within = sum(outside) / size, sum(inside) / size
    centre = within - (1 + LD(K - 2) / K) * (within - score)
    least = max(np.mean(plain), of_shares(folds))
    square = min(max(LD(K - 1) / K * np.mean(squares), least), K * least)
    return np.array([score, centre, np.sqrt(square)], LD)


def of_shares(folds):
    """Least variance of shares: that with four more rows, two of them right; of differences, each model wins one."""
    values = np.concatenate([parts[j][0] for parts in folds.parts for j in range(folds.n_folds)])
    nearest = np.rint(values)  # pseudo-values of shares are these numbers up to rounding
    if np.any(np.abs(nearest) > 1) or np.any(np.abs(values - nearest) > 1e-12):
        return LD(0)
    values = nearest
    n = LD(len(values)) / len(folds.scores)
    if folds.subtracted:
        square, mean = (n * (values * values).mean() + 2) / (n + 4), n * values.mean() / (n + 4)
        return (square - mean * mean) / n
    share = (n * values.mean() + 2) / (n + 4)
    return share * (1 - share) / n


def corrected_numbers(values, share):
    """Mean, the same again, and standard error by Nadeau & Bengio."""
    values = np.asarray(values, LD).ravel()
    error = np.sqrt((1 / LD(len(values)) + LD(share)) * values.var(ddof=1))
    return np.array([values.mean(), values.mean(), error], LD)


def quantile(confidence, freedom=None):
    """Of the normal distribution, or of Student's."""
    return (stats.norm.ppf(0.5 + confidence / 2)) if freedom is None else stats.t.ppf(0.5 + confidence / 2, freedom)


def two_sided(centre, error, freedom=None):
    """p-value of no difference."""
    if error == 0:
        return 1.0 if centre == 0 else 0.0
    size = float(abs(centre) / error)
    return 2 * float(stats.norm.sf(size) if freedom is None else stats.t.sf(size, freedom))


def errors_of(numbers, folds, rng):
    """How far rounding may move the numbers: some draws of what it may do to the scores of rows, and more."""
    found = numbers(folds)
    moved = [np.abs(numbers(folds.moved(rng)) - found) for _ in range(PERTURBED)]
    moved.append(np.abs(numbers(folds.moved(rng, [1])) - found))  # errors up and down may cancel in all draws
    return found, 30 * np.max(moved, 0) + 1e-9 * (np.abs(found[0]) + np.abs(found[2])) + 1e-12


def judge_interval(judge, what, found, numbers, errors, confidence, limits, freedom=None, counts=None):
    """score, centre, standard error and both ends of a ``ScoreInterval``, which hold those from ``counts``."""
    (score, centre, error), t = numbers, quantile(confidence, freedom)
    judge.values(
        f"{what}: score, centre, error",
        np.array([found.score, found.centre, found.standard_error]),
        np.array([score, centre, error]),
        errors,
    )
    ends = np.array([centre - t * error, centre + t * error], LD)
    tolerance = errors[1] + t * errors[2]
    if counts is not None:
        ends, tolerance = np.array([min(ends[0], counts[0]), max(ends[1], counts[1])], LD), tolerance + 1e-9
    judge.values(f"{what}: ends", np.array([found.low, found.high]), np.clip(ends, *limits), tolerance)


def exact_share(share, n, confidence):
    """Clopper & Pearson's interval of a share of n rows."""
    right, tail = float(share) * n, (1 - confidence) / 2
    low = special.betaincinv(right, n - right + 1, tail) if right > 1e-9 else 0.0
    high = special.betaincinv(right + 1, n - right, 1 - tail) if right < n - 1e-9 else 1.0
    return np.array([low, high])


def of_recalls(confusion, units, confidence):
    """The mean of the recalls of the classes and its interval, from those of the recalls."""
    present = confusion.sum(1) > 0
    recalls = np.diag(confusion)[present] / confusion[present].sum(1)
    ends = np.array([exact_share(p, n, confidence) for p, n in zip(recalls, np.array(units)[present], strict=True)])
    gaps = np.sqrt(((ends - recalls[:, None]) ** 2).sum(0)) / len(recalls)
    return np.array([recalls.mean() - gaps[0], recalls.mean() + gaps[1]])


def of_area(area, units, confidence):
    """All areas A as near to ``area`` as their standard deviations allow, by halving."""
    m, n, z = min(units), max(units), quantile(confidence)

    def near(A):
        small, large = sorted([(1 - A) / (2 - A), A / (1 + A)])
        fixed = A * (1 - A) * (1 + (m - 1) * small + (n - 1) * large) / (m * n)
        return abs(area - A) <= z * np.sqrt((1 + SPREAD * A * (1 - A)) * fixed)

    def end(inner, outer):
        if abs(inner - outer) < 1e-11:
            return outer
        inner += 1e-12 * (outer - inner)  # the variance of a perfect area is none
        for _ in range(60):
            middle = (inner + outer) / 2
            inner, outer = (middle, outer) if near(middle) else (inner, middle)
        return inner

    return np.array([end(area, 0.0), end(area, 1.0)])


def units_of(d, rows, groups):
    """Rows of every class among these, or groups that hold some; and of all classes together."""
    number = d.groups if groups else np.arange(d.n)
    return [len(np.unique(number[rows][d.codes[rows] == k])) for k in range(len(d.classes))], len(
        np.unique(number[rows])
    )


def from_counts(name, score, d, rows, groups, confidence, confusion=None):
    """The interval from numbers of held-out rows, or None of a score without."""
    if d.codes is None:
        return None
    units, total = units_of(d, rows, groups)
    if name == "accuracy":
        return exact_share(score, total, confidence)
    if name == "roc_auc":
        return of_area(float(score), units, confidence)
    return of_recalls(confusion, units, confidence)


def confusion_of(parts, splits, d):
    """Rows of each class that get each label, in all test sets together."""
    confusion = np.zeros((len(d.classes), len(d.classes)))
    for part, (_, test) in zip(parts, splits, strict=True):
        np.add.at(confusion, (d.codes[test], sure_choices(part)), 1)
    return confusion


def drawn_partitions(rng, s, d, classifies, k=None):
    """Words of ``cv`` and what is drawn of it, and the partitions."""
    k, state = int(rng.integers(3, 6)) if k is None else k, int(rng.integers(1000))
    kind = sets.pick(rng, "splitter", "list", "number")
    if (classifies and np.bincount(d.codes).min() < max(k, 3)) or d.n < 2 * k:
        raise Skip
    name = "StratifiedKFold" if classifies else "KFold"
    if kind != "number":
        s.run(f"{name}({k})", "cv")
        if kind == "list":
            s.let("cv", list(s.names["cv"].split(d.dense, d.y)))
        splits = s.names["cv"] if kind == "list" else s.names["cv"].split(d.dense, d.y)
        return ", cv=cv", [[test for _, test in splits]]
    repeats = int(rng.integers(1, 3))
    draw, partitions = np.random.RandomState(state), []
    for _ in range(repeats):
        s.run(f"{name}({k}, shuffle=True, random_state={draw.randint(2**31 - 1)})", "drawn")
        partitions.append([test for _, test in s.names["drawn"].split(d.dense, d.y)])
    return f", cv={k}, n_repeats={repeats}, random_state={state}", partitions


def score_interval(rng, s, judge):
    """``score_interval`` of an estimator, and of the fitted one."""
    larger = rng.random() < 0.15
    model, d, given = started(rng, s, judge, most=40 if larger else 20, least=36 if larger else 10, loo_cut=False)
    names = ROW_SCORES[model.classifies] + ("balanced_accuracy",) * model.classifies
    if larger and d.codes is not None and len(d.classes) == 2:
        names = ("roc_auc",)  # of folds of ten rows
    name = sets.pick(rng, *names)
    words, partitions = drawn_partitions(rng, s, d, model.classifies, 3 if larger else None)
    folds = folds_of(name, model, model.problem(d), d, partitions)
    confusion = None
    if name == "balanced_accuracy":
        problem, rows = model.problem(d), np.arange(d.n)
        splits = [(np.setdiff1d(rows, test), test) for tests in partitions for test in tests]
        confusion = confusion_of(held_out(model, problem, d, splits), splits, d)
    params = ', params={"sample_weight": w}' if given else ""
    confidence = float(sets.pick(rng, 0.5, 0.9, 0.95))
    method = sets.pick(rng, "nested", "nested", "nadeau-bengio")
    call = f"score_interval({model.text}, X, y, scoring={name!r}, method={method!r}, confidence={confidence}{words}"
    found = s.run(f"{call}{params})")
    limits, freedom, K = LIMITS.get(name, (-np.inf, 0)), None, folds.n_folds
    if method == "nested":
        numbers, errors = errors_of(nested_numbers, folds, rng)
    else:
        freedom = K * len(partitions) - 1
        numbers, errors = errors_of(lambda each: corrected_numbers(each.outside(), 1 / (K - 1)), folds, rng)
    counts = from_counts(name, numbers[0], d, np.arange(d.n), False, confidence, confusion)
    judge_interval(judge, f"{method}, {name}", found, numbers, errors, confidence, limits, freedom, counts)
    if "n_repeats" not in words or method != "nested" or not np.all(np.asarray(d.w, float) > 0):
        return
    weights = ", sample_weight=w" if given else ""
    call = f"{model.text}.fit(X, y{weights}).score_interval(scoring={name!r}, confidence={confidence}{words})"
    judge_interval(judge, f"of a fit, {name}", s.run(call), numbers, errors, confidence, limits, None, counts)


def of_results(rng, s, judge):
    """``interval()`` of ``cross_validate`` and ``nested_cross_validate``, from their scores."""
    if rng.random() < 0.3:
        return of_nested_results(rng, s, judge)
    model, d, given = started(rng, s, judge, most=20, loo_cut=False)
    splits, groups = draw_splits(rng, s, d, partition=rng.random() < 0.6)
    name = sets.pick(rng, *metrics_of(rng, d, splits))
    params = ', params={"sample_weight": w}' if given else ""
    s.run(f"cross_validate({model.text}, X, y, cv=cv{groups}{params}, scoring={name!r})", "result")
    confusion = None
    if name == "balanced_accuracy":
        confusion = confusion_of(held_out(model, model.problem(d), d, splits), splits, d)
    judge_corrected(rng, s, judge, splits, name, d, groups, confusion)


def of_nested_results(rng, s, judge):
    """The same of a search."""
    model, d, grid, given = searching.case(rng, s, judge, 13)
    splits, groups = draw_splits(rng, s, d, partition=True)
    if groups or len(splits) > 6 or min(len(test) for _, test in splits) < 2:
        raise Skip
    params = ', params={"sample_weight": w}' if given else ""
    model.refit(model.problem(d, alpha=min(grid["alpha"]), kernel=model.kernel), d, splits[0][0])
    name = "accuracy" if model.classifies else "neg_mean_squared_error"
    s.run(
        f"nested_cross_validate(FoldlessSearchCV({model.text}, grid), X, y, cv=cv, scoring={name!r}{params})", "result"
    )
    judge_corrected(rng, s, judge, splits, name, d, "")


def judge_corrected(rng, s, judge, splits, name, d, groups, confusion=None):
    """Compare ``result.interval()`` with the formula."""
    values = np.asarray(s.run("result['test_score'] if isinstance(result, dict) else result.test_score"))
    if len(values) < 2 or not np.isfinite(values).all():
        raise Skip
    confidence = float(sets.pick(rng, 0.5, 0.9, 0.95))
    share = np.mean([len(test) / len(train) for train, test in splits])
    numbers = corrected_numbers(values, share)
    errors = np.full(3, 1e-9 * (np.abs(values).max() + 1e-3), LD)
    limits = LIMITS.get(name, (-np.inf, 0))
    found = s.run(f"result.interval(confidence={confidence})")
    rows = np.unique(np.concatenate([test for _, test in splits]))
    counts = from_counts(name, numbers[0], d, rows, groups, confidence, confusion)
    judge_interval(judge, f"interval(), {name}", found, numbers, errors, confidence, limits, len(values) - 1, counts)


def comparison(rng, s, judge):
    """``compare``: scores, differences, p-values and their correction."""
    model, d, given = started(rng, s, judge, most=18, least=10, loo_cut=False)
    compared = {"first": model}
    for key in ("second", "third")[: int(rng.integers(1, 3))]:
        c = len(d.classes) if model.classifies else None
        kernels = ("rbf", "linear", "laplacian", "cosine")
        compared[key] = models.draw_own(rng, model.name, c, kernels=kernels, loo_cut=False)
        check_size(compared[key], d)
    name = sets.pick(rng, *ROW_SCORES[model.classifies])
    words = ', params={"sample_weight": w}' if given else ""
    confidence = float(sets.pick(rng, 0.8, 0.9))
    method = sets.pick(rng, "nested", "nested", "nadeau-bengio", "sign-flip")
    words += f", scoring={name!r}, method={method!r}, confidence={confidence}"
    listed = ", ".join(f"{key!r}: {each.text}" for key, each in compared.items())
    call = f"compare({{{listed}}}, X, y{words}"
    of_folds = flipped if method == "sign-flip" else over_folds
    of_folds(rng, s, judge, list(compared.values()), d, name, call, confidence, method)


def over_folds(rng, s, judge, compared, d, name, call, confidence, method):
    """Differences of the scores of folds."""
    words, partitions = drawn_partitions(rng, s, d, d.codes is not None)
    held = [folds_of(name, each, each.problem(d), d, partitions) for each in compared]
    s.run(f"{call}{words})", "result")
    K = held[0].n_folds
    freedom = None if method == "nested" else K * len(partitions) - 1

    def numbers_of(folds):
        return nested_numbers(folds) if freedom is None else corrected_numbers(folds.outside(), 1 / (K - 1))

    for place, folds in enumerate(held):
        numbers, errors = errors_of(numbers_of, folds, rng)
        counts = from_counts(name, numbers[0], d, np.arange(d.n), False, confidence)
        found, limits = s.run(f"result.scores[{place}]"), LIMITS.get(name, (-np.inf, 0))
        judge_interval(judge, "compare, scores", found, numbers, errors, confidence, limits, freedom, counts)
    pvalues, ranges = [], []
    for i, j in pairs_of(held):
        folds = held[i].minus(held[j])
        numbers, errors = errors_of(numbers_of, folds, rng)
        judge_difference(judge, s.run(f"result.differences[{len(pvalues)}]"), numbers, errors, confidence, freedom)
        pvalues.append(two_sided(*numbers[1:], freedom))
        moved = [two_sided(*numbers_of(folds.moved(rng))[1:], freedom) for _ in range(PERTURBED)]
        ranges.append(30 * np.max(np.abs(np.array(moved) - pvalues[-1])) + 1e-7)
    judge_pvalues(s, judge, pvalues, ranges)


def flipped(rng, s, judge, compared, d, name, call, confidence, method):
    """Differences of rows that no model has seen, whose signs are flipped in all ways."""
    test = np.sort(rng.choice(d.n, int(rng.integers(3, 8)), replace=False))
    train = np.setdiff1d(np.arange(d.n), test)
    counted = train[np.asarray(d.w, float)[train] > 0]
    if len(counted) < 2 or (d.codes is not None and len(np.unique(d.codes[counted])) < len(d.classes)):
        raise Skip
    held = [row_scores(name, each.refit(each.problem(d), d, train)(test), d, test) for each in compared]
    s.let("cv", [(train, test)])
    s.run(f"{call}, cv=cv)", "result")
    n, freedom = len(test), len(test) - 1

    def numbers_of(values):
        return np.array([values.mean(), values.mean(), np.sqrt(values.var(ddof=1) / n)], LD)

    def errors_of_rows(errors):
        size = 4 * errors.sum() + LD(1e-11)
        return np.array([size, size, size], LD)

    for place, (values, errors) in enumerate(held):
        found = s.run(f"result.scores[{place}]")
        counts, limits = None, (-np.inf, np.inf)
        if name == "accuracy":
            counts, limits = exact_share(values.mean(), n, confidence), (0, 1)
        if name == "neg_mean_squared_error" or name == "neg_mean_absolute_error":
            limits = (-np.inf, 0)
        numbers = numbers_of(values)
        size = errors_of_rows(errors) + 1e-9 * np.abs(numbers).max()
        judge_interval(judge, "sign-flip, scores", found, numbers, size, confidence, limits, freedom, counts)
    pvalues, ranges = [], []
    signs = 1 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    for i, j in pairs_of(held):
        values, errors = held[i][0] - held[j][0], held[i][1] + held[j][1]
        numbers = numbers_of(values)
        size = errors_of_rows(errors) + 1e-9 * max(np.abs(held[i][0]).max(), np.abs(held[j][0]).max())
        judge_difference(judge, s.run(f"result.differences[{len(pvalues)}]"), numbers, size, confidence, freedom)
        sums, own = np.abs(signs @ values), np.abs(values.sum())
        if np.any((np.abs(sums - own) > 1e-15 * own) & (np.abs(sums - own) <= 2 * n * size[0])):
            raise Skip  # rounding decides which flips are as large
        if np.any(values == 0) and np.any(errors > SURE * np.abs(held[i][0])):
            raise Skip  # rounding decides which rows have no difference
        pvalues.append(float(np.mean(sums >= own * (1 - LD(1e-15)))))
        ranges.append(1e-9)
    judge_pvalues(s, judge, pvalues, ranges)


def pairs_of(held):
    """Numbers of two models."""
    return [(i, j) for i in range(len(held)) for j in range(i + 1, len(held))]


def judge_pvalues(s, judge, pvalues, ranges):
    """p-values of the differences, alone and corrected for their number."""
    found = np.array(s.run("[each.pvalue for each in result.differences]"))
    judge.values("compare, p-values", found, np.array(pvalues), np.array(ranges))
    found = np.array(s.run("[each.pvalue_corrected for each in result.differences]"))
    judge.values("compare, corrected p-values", found, holm(pvalues), len(pvalues) * np.max(ranges))


def judge_difference(judge, found, numbers, errors, confidence, freedom):
    """A difference and its ends."""
    t = quantile(confidence, freedom)
    _, centre, error = numbers
    expected = np.array([numbers[0], centre - t * error, centre + t * error, error], LD)
    tolerance = np.array([errors[0], *2 * [errors[1] + t * errors[2]], errors[2]], LD)
    actual = np.array([found.difference, found.low, found.high, found.standard_error])
    judge.values("compare, differences", actual, expected, tolerance)


def holm(pvalues):
    """Each p-value times the number of those that are no smaller, and never below a corrected smaller one."""
    corrected, largest = np.zeros(len(pvalues)), 0.0
    for rank, place in enumerate(np.argsort(pvalues, kind="stable")):
        largest = max(largest, min(1.0, (len(pvalues) - rank) * pvalues[place]))
        corrected[place] = largest
    return corrected


AREAS = {"score intervals": score_interval, "intervals of results": of_results, "comparisons": comparison}
