"""What else follows from held-out fits: pairs, intervals, probabilities, adaptive discriminants, confounds."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from fuzz import data as sets
from fuzz import models, scores
from fuzz.judge import Skip
from fuzz.oracles import BASE, LD, LIMIT, Fits, Refit, kernel_matrix, kernel_rounding, minimum_norm, stack
from fuzz.programs.fitting import check_size, compare, started


def pairs(rng, s, judge):
    """Leave-pair-out: every pair ranked by the model without both of its rows."""
    name = sets.pick(rng, "LSSVC", "LSSVC", "KernelFisherDiscriminant", "KernelFisherDiscriminant", "LSSVR")
    model, d, given = started(rng, s, judge, most=11, name=name, loo_cut=False)
    if d.y.ndim == 2 and d.codes is None:
        d.y = d.y[:, 0]
        s.let("y", d.y)
    active = np.flatnonzero(np.asarray(d.w, float) > 0)
    params = ', params={"sample_weight": w}' if given else ""
    if d.codes is None and np.ptp(d.Y[active]) == 0:
        raise Skip
    problem, same, cache = model.problem(d), d.same, {}
    model.refit(problem, d, active)  # tells whether a refusal has good reason
    found = s.run(f"leave_pair_out_auc({model.text}, X, y{params})")

    def fits_of(i, j):
        key = (min(i, j), max(i, j))
        if key not in cache:
            cache[key] = model.refit(problem, d, np.setdiff1d(active, key))(np.array(key))
        part = cache[key]
        values, fine = (part.values, part.fine) if i < j else (part.values[::-1], part.fine[::-1])
        return values, fine

    def share(high, low, column):
        table = []
        for i, j in zip(high, low, strict=True):
            values, fine = fits_of(i, j)
            values, fine = (values, fine) if values.ndim == 1 else (values[:, column], fine[:, column])
            size = np.abs(values).max()
            merged = (
                fine.sum() + LD(2e-15 if d.classes is None or len(d.classes) < 3 else 2e-10) * size
            )  # as close as ties may be
            table.append(scores.wins(values[0] - values[1], merged, size, same[i] == same[j]))
        return np.mean(np.array(table, float), 0)

    if d.codes is None:
        y = np.asarray(d.Y[:, 0])
        high, low = (active[each] for each in np.nonzero(y[active][:, None] > y[active][None, :]))
        interval = share(high, low, 0)
    else:
        shares = []
        for k in [1] if len(d.classes) == 2 else range(len(d.classes)):
            up, down = active[d.codes[active] == k], active[d.codes[active] != k]
            shares.append(share(np.repeat(up, len(down)), np.tile(down, len(up)), k))
        interval = np.mean(shares, 0)
    judge.within("leave_pair_out_auc", found, interval)


def interval(rng, s, judge):
    """Jackknife+ intervals by all leave-one-out models."""
    model, d, given = started(rng, s, judge, most=18, name="LSSVR")
    new = np.asarray(d.dense[rng.integers(0, d.n, 3)], float)
    if model.kernel["kernel"] != "boolean":
        new = new + rng.normal(size=new.shape) * np.asarray(d.dense, float).std(0)
    new = new.astype(d.dtype)
    s.let("X_new", new)
    coverage = float(sets.pick(rng, 0.5, 0.8, 0.9))
    found = s.run(f"{model.text}.fit(X, y{given}).predict_interval(X_new, coverage={coverage})")
    problem = model.problem(d, new.astype(LD))
    active = np.flatnonzero(np.asarray(d.w, float) > 0)
    low, high, errors = [], [], []
    for i in active:
        part = Refit(problem, active[active != i]).at(np.concatenate([[i], d.n + np.arange(3)]))
        residual = np.abs(problem.Y[i] - part.values[0])
        low.append(part.values[1:] - residual)
        high.append(part.values[1:] + residual)
        errors.append(part.tolerance[1:] + part.tolerance[:1])
    n = len(active)
    rank = int(np.ceil(coverage * (n + 1) - 1e-9))
    if rank > n:
        ends = np.full((3, problem.Y.shape[1], 2), np.inf) * [-1, 1]
        flat = ends[:, 0] if d.y.ndim == 1 else ends
        return judge.equal("predict_interval, infinite", np.asarray(found), flat)
    ends = np.stack([np.sort(low, 0)[n - rank], np.sort(high, 0)[rank - 1]], -1)
    tolerance = np.repeat(np.max(errors, 0)[..., None], 2, -1)
    if d.y.ndim == 1:
        ends, tolerance = ends[:, 0], tolerance[:, 0]
    judge.values("predict_interval", found, ends, tolerance, 0.05 * max(1.0, float(np.abs(ends).max())))


def conformal(rng, s, judge):
    """p-values of labels by refits of all rows and a new one, with every label and without each row."""
    name, c = sets.pick(rng, "LSSVC", "KernelFisherDiscriminant"), sets.classes_of(rng)
    model = models.draw_own(rng, name, c, simple=True, loo_cut=False)
    d = sets.draw(rng, True, c=c, most=9, boolean=model.kernel["kernel"] == "boolean")
    d.weights = None
    check_size(model, d)
    judge.label = model.label
    s.let("X", d.X)
    s.let("y", d.y)
    new = np.asarray(d.dense[rng.integers(0, d.n, 1)], float)
    if model.kernel["kernel"] != "boolean":
        new = new + rng.integers(0, 2) * rng.normal(size=new.shape) * np.asarray(d.dense, float).std(0)
    new, conditional = new.astype(d.dtype), bool(rng.integers(0, 2))
    s.let("X_new", new)
    found = s.run(f"{model.text}.fit(X, y).conformal_p_values(X_new, class_conditional={conditional})")
    plain, rows = model.problem(d, new.astype(LD)), np.arange(d.n + 1)
    ranks = []
    for label in range(c):
        codes = np.append(d.codes, label)
        problem = replace(plain, Y=2 * np.eye(c, dtype=LD)[codes] - 1, w=np.ones(d.n + 1, LD))
        counted = rows[codes == label] if conditional else rows
        parts = stack([Refit(problem, rows[rows != i]).at([i]) for i in counted])
        own = codes[counted][:, None] == np.arange(c)
        margin = parts.values[own] - np.where(own, -np.inf, parts.values).max(1)
        error = 2 * parts.tolerance.max(1)
        gap = np.asarray(margin[-1] - margin, float)
        # The library lets margins tie that rounding may tell apart.
        error = error + error[-1] + 2 * np.sqrt(np.finfo(d.dtype).eps) * (1 + abs(float(margin[-1])))
        ranks.append([np.mean(gap >= error), np.mean(gap >= -error)])
    judge.intervals("conformal_p_values", found[0], ranks)


def calibration(rng, s, judge):
    """Probabilities inside cross-validation are those of an honest loop."""
    name, c = sets.pick(rng, "LSSVC", "KernelFisherDiscriminant"), sets.classes_of(rng)
    model = models.draw_own(rng, name, c, kernels=("rbf", "linear", "laplacian"), loo_cut=False)
    model.alpha = float(sets.pick(rng, 0.01, 0.1, 1.0, 10.0))
    if "gamma" in model.kernel:
        model.kernel["gamma"] = float(sets.pick(rng, 0.1, 0.5))
    model.options["calibration"] = sets.pick(rng, "sigmoid", "isotonic")
    d = sets.draw(rng, True, c=c, most=30, least=4 * c, plain=True)
    judge.label = f"{model.label} {model.options['calibration']}"
    s.let("X", d.X)
    s.let("y", d.y)
    params = ""
    if rng.random() < 0.3:
        s.let("w", rng.uniform(0.3, 3.0, d.n))
        params = ', params={"sample_weight": w}'
    splits = list(s.run(f"StratifiedKFold({int(rng.integers(2, 4))})", "cv").split(d.X, d.y))
    counts = [np.bincount(d.codes[train], minlength=c).min() for train, _ in splits]
    if min(counts) < 2:
        raise Skip
    s.run(model.text, "model")
    found = s.run(f'cross_val_predict(model, X, y, cv=cv{params}, method="predict_proba")')
    if model.option("penalty") == "coef":  # a plain refit has the basis functions of its own rows
        s.run("clone(model).set_params(kernel=clone(model).fit(X, y).kernel_, penalty='rkhs')", "model")
    expected = np.zeros((d.n, c))
    for place, (_, test) in enumerate(splits):
        s.run(f"list(cv.split(X, y))[{place}]", "split")
        weights = ", sample_weight=w[split[0]]" if params else ""
        expected[test] = s.run(f"clone(model).fit(X[split[0]], y[split[0]]{weights}).predict_proba(X[split[1]])")
    judge.values("predict_proba by refits", found, expected, 1e-6)
    judge.values("probabilities add up to 1", np.asarray(found).sum(1), np.ones(d.n), 1e-9)


def coded(fits, counts, coding):
    """Columns of one-against-all targets from fits of the indicators; one column for two classes."""
    fits = np.asarray(fits, LD)
    total = counts.sum()
    columns = []
    for k in range(fits.shape[1]):
        own, rest = fits[:, k], fits.sum(1) - fits[:, k]
        if coding == "fisher":
            own, rest = own * total / counts[k], rest * total / (total - counts[k])
        columns.append(own - rest)
    return np.stack(columns[1:] if len(columns) == 2 else columns, 1)


def adaptive(rng, s, judge, before=lambda call, subject: None):
    """The adaptive discriminant: fits, updates and leave-one-out against the least solution of its equations.

    ``before`` takes every call first.
    """
    kernel, alpha = models.draw_kernel(rng), models.draw_alpha(rng)
    coding = sets.pick(rng, "pm1", "fisher")
    d = sets.draw(rng, True, most=18, boolean=kernel["kernel"] == "boolean", singles=False)
    parameters = ", ".join(
        f"{k}={v!r}" for k, v in {**models.as_arguments(kernel), "alpha": alpha, "targets": coding}.items()
    )
    judge.label = f"AdaptiveKDA {kernel['kernel']}"
    K = kernel_matrix(kernel, d.dense, d.dense)
    Y, rows = np.eye(len(d.classes), dtype=LD)[d.codes], np.arange(d.n)
    factor = kernel_rounding(kernel, d.dense, not sp.issparse(d.X))

    def fits_of(train, test):
        fits, cond = minimum_norm(K, Y, train, test, alpha)
        relative = np.maximum(BASE[np.dtype(float)], 1e3 * np.finfo(float).eps * cond * factor)
        relative = np.where(relative <= LIMIT[np.dtype(float)], relative, np.inf)
        counts = np.bincount(d.codes[train], minlength=len(d.classes))
        values = coded(fits, counts, coding)
        size = max(1.0, float(np.abs(values).max()), float(counts.sum() / counts.min() if coding == "fisher" else 1))
        tolerance = np.broadcast_to(relative * size, values.shape)
        values, tolerance = (values[:, 0], tolerance[:, 0]) if values.shape[1] == 1 else (values, tolerance)
        return Fits(values, tolerance, tolerance)

    s.let("X", d.X)
    s.let("y", d.y)
    size = d.n
    whole = fits_of(rows, rows)
    if not np.isfinite(whole.tolerance).any():
        return judge.skip()
    if rng.random() < 0.5:
        size = int(rng.integers(d.n // 2, d.n))
        if len(np.unique(d.codes[:size])) < len(d.classes):
            size = d.n

    def change(call):
        before(call, "model")
        if s.run("model.X_fit_.shape[0] if hasattr(model, 'X_fit_') else 0") == held:  # not stopped after its last step
            s.run(f"model.{call}")

    s.run(f"AdaptiveKDA({parameters})", "model")
    held = 0
    change(f"fit(X[:{size}], y[:{size}])")
    held = size
    if size < d.n:
        change(f"partial_fit(X[{size}:], y[{size}:])")
    held = d.n
    before("decision_function(X)", "model")
    compare(judge, "decision_function", s.run("model.decision_function(X)"), whole)
    judge.labels("predict", s.run("model.predict(X)"), whole, d.classes)
    gone = rows[:0]
    if rng.random() < 0.4:
        gone = rng.choice(rows, 1)
        change(f"forget({gone.tolist()})")
    rows = np.setdiff1d(rows, gone)
    if np.bincount(d.codes[rows], minlength=len(d.classes)).min() < 2:
        return None
    loo = stack([fits_of(rows[rows != i], np.array([i])) for i in rows])
    before("loo_decision_function()", "model")
    compare(judge, "loo_decision_function", s.run("model.loo_decision_function()"), loo)
    judge.within("loo_score_", s.run("model.loo_score_"), scores.accuracy(loo, d.codes[rows]))
    compare(judge, "loo_decision_function, downdate", s.run('model.loo_decision_function(method="downdate")'), loo)
    return None


AREAS = {"pairs": pairs, "interval": interval, "conformal": conformal, "calibration": calibration, "adaptive": adaptive}
