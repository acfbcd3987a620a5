"""Grid searches: the criterion of every candidate, the choice, and nested cross-validation."""

import numpy as np

from fuzz import data as sets
from fuzz import models, scores
from fuzz.judge import LibraryError, Skip
from fuzz.oracles import LD, Fits, Refit
from fuzz.programs.fitting import limit_of
from fuzz.programs.validation import draw_splits

CRITERIA = ("press", "press", "error", "smooth_error", "ber", "hinge", "hinge2", "auc")
SLOPE = 10.0


def balanced_halves(t, mass):
    """Weights with one half for each sign."""
    w = np.zeros(len(t), LD)
    for side in (t > 0, t <= 0):
        total = mass[side].sum()
        w[side] = mass[side] / (2 * total if total > 0 else 1)
    return w


def loss_of_column(name, f, error, t, mass, same):
    """Lowest and highest value of one criterion for one column of held-out fits."""
    w = mass / mass.sum() if name != "ber" else balanced_halves(t, mass)
    if name == "press":
        e = t - f
        value, spread = (w * e * e).sum(), (w * (2 * np.abs(e) * error + error * error)).sum()
    elif name == "smooth_error":
        value, spread = (w * (1 - t * np.tanh(SLOPE * f))).sum() / 2, (w * SLOPE * error).sum()
    elif name in ("hinge", "hinge2"):
        gap = np.maximum(1 - t * f, 0)
        value = (w * gap).sum() if name == "hinge" else (w * gap * gap).sum()
        spread = (w * error).sum() if name == "hinge" else (w * (2 * gap * error + error * error)).sum()
    elif name == "auc":
        keep = mass > 0  # pairs count equally
        merged = np.maximum(error, 1e-9 * np.ptp(f[keep]))
        low, high = scores.roc_auc(Fits(f[keep], merged[keep], merged[keep]), (t[keep] > 0).astype(int), same[keep])
        return 1 - high, 1 - low
    else:
        wrong, sure = t * f <= 0, np.abs(f) > error
        return (w * (sure & wrong)).sum(), (w * (~sure | wrong)).sum()
    return value - spread, value + spread


def criterion(name, problem, splits, T, mass, row_ids):
    """Interval of the criterion over all held-out rows of these weights, losses of the columns added up."""
    F, error, same = np.zeros(T.shape, LD), np.full(T.shape, np.inf), np.full(len(T), -1)
    tested = np.zeros(len(T), bool)
    for number, (train, test) in enumerate(splits):
        part = Refit(problem, train).at(test)
        F[test], error[test] = part.values, part.tolerance
        same[test] = number * len(T) + row_ids[test]
        tested[test] = True
    columns = [loss_of_column(name, F[:, k], error[:, k], T[:, k], mass * tested, same) for k in range(T.shape[1])]
    low, high = np.sum(np.array(columns, LD), axis=0)
    slack = LD(1e-11) * max(abs(low), abs(high), LD(1e-3)) if np.isfinite(float(high)) else LD(0)
    return low - slack, high + slack


def criterion_weight(rng, name, model, d):
    """Text and weights of the rows in the criterion: by default those of the fit, or equal ones."""
    if name == "auc" or rng.random() < 0.3:
        return ", criterion_weight=None", (np.asarray(d.w, float) > 0).astype(LD)
    return "", d.w * (model.class_factors(d)[0][d.codes] if model.classifies else 1)


def targets(model, d):
    """+-1 one against all, or the values."""
    if not model.classifies:
        return d.Y
    Y = 2 * np.eye(len(d.classes), dtype=LD)[d.codes] - 1
    return Y[:, 1:] if len(d.classes) == 2 else Y


def case(rng, s, judge, most, *, returned=False):
    """A model without alpha and gamma, its data and grid; ``returned``: scikit-learn's fits of its own are judged."""
    name = sets.pick(rng, "LSSVR", "LSSVC", "KernelFisherDiscriminant", "Ridge", "RidgeClassifier", "KernelRidge")
    c = sets.classes_of(rng)
    if name in models.FOLDLESS_ESTIMATORS:
        kernels = ("rbf", "linear", "laplacian", "poly", "cosine")
        model = models.draw_own(
            rng, name, c if models.FOLDLESS_ESTIMATORS[name] else None, kernels=kernels, loo_cut=False
        )
        model.options.pop("n_components", None)
    else:
        model = models.draw_their(rng, name)
    plain = returned and name not in models.FOLDLESS_ESTIMATORS  # scikit-learn's solvers lose digits elsewhere
    d = sets.draw(rng, model.classifies, c=c, most=most, sparse=False, singles=False, plain=plain)
    models.with_class_weight(rng, model, d, 0.1)
    alphas = sorted({models.draw_alpha(rng) for _ in range(int(rng.integers(2, 4)))})
    grid = {"alpha": alphas}
    if model.kernel["kernel"] in ("rbf", "laplacian"):
        grid["gamma"] = [0.1, float(sets.pick(rng, 1e-3, 1.0, 50.0))]
    judge.label = model.label
    s.let("X", d.X)
    s.let("y", d.y)
    s.let("grid", grid)
    given = ""
    if d.weights is not None:
        s.let("w", d.weights)
        given = ", sample_weight=w"
    return model, d, grid, given


def problem_of_model(model, d, params, X=None):
    """The problem of the model with these parameters, and of further rows X."""
    kernel = {**model.kernel, **({"gamma": params["gamma"]} if "gamma" in params else {})}
    return model.problem(d, X, alpha=params["alpha"], kernel=kernel)


def problem_of(model, d, params):
    """The problem of one candidate, with the targets of the criterion."""
    problem = problem_of_model(model, d, params)
    problem.Y = targets(model, d)
    return problem


def search(rng, s, judge, before=None):
    """Every candidate of a grid, by leave-one-out or a splitter; ``before`` takes the call of ``fit`` first."""
    model, d, grid, given = case(rng, s, judge, 18)
    name = sets.pick(rng, *CRITERIA) if model.classifies else "press"
    weighting, mass = criterion_weight(rng, name, model, d)
    cv, groups = "", ""
    rows = np.arange(d.n)
    splits = [(np.delete(rows, i), rows[i : i + 1]) for i in rows]
    if rng.random() < 0.5:
        splits, groups = draw_splits(rng, s, d, partition=True, repeats=True)
        cv = ", cv=cv"
    repeats = any(len(np.unique(train)) < len(train) for train, _ in splits)
    judge.label += ", training rows repeat" if repeats else ""
    if not repeats:  # tells whether a refusal has good reason
        model.refit(model.problem(d, alpha=min(grid["alpha"]), kernel=model.kernel), d, splits[0][0])
    try:
        s.run(f"FoldlessSearchCV({model.text}, grid, criterion={name!r}{weighting}{cv})", "search")
        if before is not None:
            before(f"fit(X, y{given}{groups})")
        s.run(f"search.fit(X, y{given}{groups})")
    except LibraryError as error:
        if repeats and "repeats rows" in str(error):
            raise Skip from None  # said plainly
        raise
    if repeats and model.option("penalty") == "coef":  # refits take the functions of their part
        raise Skip
    candidates = s.run("search.cv_results_['params']")
    found = np.asarray(s.run("search.cv_results_['mean_test_criterion']"))
    judge.equal("number of candidates", len(candidates), int(np.prod([len(v) for v in grid.values()])))
    T, row_ids = targets(model, d), d.same
    table = [criterion(name, problem_of(model, d, each), splits, T, mass, row_ids) for each in candidates]
    compare_criteria(judge, f"criterion {name}", found, table)
    judge_choice(judge, "best_params_", s.run("search.best_params_"), candidates, table)


def compare_criteria(judge, what, found, table):
    """Values of a criterion with the intervals of the oracle."""
    table = np.array(table, LD)
    value, tolerance = table.mean(1), np.abs(table[:, 1] - table[:, 0]) / 2
    wide = ~np.isfinite(np.asarray(tolerance, float))
    value, tolerance = np.where(wide, 0, value), np.where(wide, np.inf, tolerance)
    judge.values(what, found, value, tolerance + LD(1e-13), limit_of(value, tolerance))


def judge_choice(judge, what, found, candidates, table):
    """The chosen setting may be any whose criterion is not surely above that of another."""
    table = np.array(table, LD)
    if not np.isfinite(np.asarray(table, float)).all():
        return judge.skip()
    place = candidates.index(found)
    low, best = float(table[place, 0]), float(table[:, 1].min())
    judge.within(what, low if low > best else best, (best, best), 1e-12)


def nested(rng, s, judge):
    """The choice repeated on every outer training part, and judged outside."""
    model, d, grid, given = case(rng, s, judge, 13)
    name = sets.pick(rng, "press", "error", "hinge") if model.classifies else "press"
    splits, groups = draw_splits(rng, s, d, partition=True)
    if groups or len(splits) > 6 or min(len(test) for _, test in splits) < 2:
        raise Skip
    weighting, mass = criterion_weight(rng, name, model, d)
    params = ', params={"sample_weight": w}' if given else ""
    scoring = "accuracy" if model.classifies else "neg_mean_squared_error"
    # tells whether a refusal has good reason
    model.refit(model.problem(d, alpha=min(grid["alpha"]), kernel=model.kernel), d, splits[0][0])
    s.run(
        f"nested_cross_validate(FoldlessSearchCV({model.text}, grid, criterion={name!r}{weighting}), X, y, cv=cv,"
        f" scoring={scoring!r}{params})",
        "result",
    )
    counted = np.asarray(d.w, float) > 0
    candidates = [
        dict(zip(grid, each, strict=True))
        for each in np.array(np.meshgrid(*grid.values())).T.reshape(-1, len(grid)).tolist()
    ]
    T, found = targets(model, d), s.run("result.best_params")
    for place, (train, test) in enumerate(splits):
        inner = [(np.delete(train, i), train[i : i + 1]) for i in range(len(train))]
        if d.codes is not None and np.bincount(d.codes[train][counted[train]], minlength=len(d.classes)).min() < 2:
            return
        table = [criterion(name, problem_of(model, d, each), inner, T, mass, d.same) for each in candidates]
        judge_choice(judge, "nested, best_params", found[place], candidates, table)
        chosen = found[place]
        fits = model.refit(problem_of_model(model, d, chosen), d, train)(test)
        if model.classifies:
            judge.labels("nested, predictions", s.run(f"result.predictions[{place}]"), fits, d.classes)
            judge.within(
                "nested, test_score", s.run(f"result.test_score[{place}]"), scores.accuracy(fits, d.codes[test])
            )
        else:
            value, tolerance = scores.neg_mean_squared_error(fits, d.Y[test])
            judge.values(
                "nested, test_score",
                s.run(f"result.test_score[{place}]"),
                value,
                tolerance,
                limit_of(np.asarray(value), tolerance),
            )


AREAS = {"search": search, "nested": nested}
