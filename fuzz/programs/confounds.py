"""Confounds: columns without penalty, whose part stays in the scores or is left out of them.

The part is (c - mean)' B, with mean and B, the regression on the confounds alone, of the training part.
"""

from dataclasses import replace

import numpy as np

from fuzz import data as sets
from fuzz import models
from fuzz.judge import Skip
from fuzz.oracles import LD, Fits, Refit, solve, stack
from fuzz.programs.fitting import check_size, compare
from fuzz.programs.validation import draw_splits, judge_scores, metrics_of, placed


def without_part(problem, train, test, at_mean=False):
    """Scores at ``test`` without the confounds' part; ``at_mean`` with the confounds of the test rows at their mean."""
    refit = Refit(problem, train)
    fits = refit.at(test)
    rows = refit.train
    w = np.asarray(problem.w, LD)[rows][:, None]
    C, Q = np.asarray(problem.C, LD), problem.Q(rows)
    B = solve(Q.T @ (w * Q), Q.T @ (w * problem.Y[rows]))[int(problem.intercept) :]
    middle = (w * C[rows]).sum(0) / w.sum() if problem.intercept else 0
    B = refit.B[int(problem.intercept) :] if at_mean else B
    return Fits(fits.values - (C[test] - middle) @ B, fits.tolerance, fits.fine)


def draw_confounds(rng, d, more=0):
    """The data with confounds, and the confounds of its rows and of some more."""
    C = rng.normal(size=(d.n + more, int(rng.integers(1, 3))))
    if rng.random() < 0.3:
        C = np.round(2 * C) + 0.25 * rng.normal(size=C.shape)
    if rng.random() < 0.2:
        C = C + 10.0 ** rng.integers(0, 3)
    if np.count_nonzero(np.asarray(d.w, float) > 1e-3 * float(d.w.max())) < d.n:
        d.weights = None  # confounds that hardly any weight determines
    C = C.astype(d.dtype).astype(float)
    return replace(d, confounds=C[: d.n]), C


def confounds(rng, s, judge):
    """Held-out scores with and without the confounds' part."""
    name = sets.pick(rng, "LSSVR", "LSSVC", "KernelFisherDiscriminant", "Ridge")
    c = 2 if name == "KernelFisherDiscriminant" else sets.classes_of(rng)
    model = models.draw_their(rng, name) if name == "Ridge" else models.draw_own(rng, name, c, loo_cut=False)
    if name == "KernelFisherDiscriminant":
        model.options["threshold"] = "pm1"
        model.options.pop("priors", None)
    d = sets.draw(rng, model.classifies, c=c, least=12, most=24, boolean=model.kernel["kernel"] == "boolean")
    check_size(model, d)
    d, C = draw_confounds(rng, d)
    judge.label = model.label
    params = ""
    for key, value in (("X", d.X), ("y", d.y), ("C", C), ("w", d.weights)):
        if value is not None:
            s.let(key, value)
    if d.weights is not None:
        params = ', params={"sample_weight": w}'
    splits, groups = draw_splits(rng, s, d, partition=True)
    if min(len(train) for train, _ in splits) < 6:
        raise Skip
    inside = rng.random() < 0.5
    problem = model.problem(d, C=C)
    read = reader(model, d)
    parts = []
    for train, test in splits:
        fits = Refit(problem, train).at(test) if inside else without_part(problem, train, test)
        parts.append(read(fits))
    params += f", confounds=Confounds(C, in_score={inside})"
    judge.label = f"{model.label}, {'in' if inside else 'not in'} the score"
    fits = placed(parts, splits, d.n)
    call = f"cross_val_predict({model.text}, X, y, cv=cv{groups}{params}"
    if model.classifies:
        compare(judge, "cross_val_predict, decision_function", s.run(f'{call}, method="decision_function")'), fits)
        judge.labels("cross_val_predict", s.run(f"{call})"), fits, d.classes)
    else:
        compare(judge, "cross_val_predict", s.run(f"{call})"), fits, d.y.ndim == 1)
    metric = sets.pick(rng, *metrics_of(rng, d, splits))
    judge_scores(judge, s, metric, model, d, parts, splits, groups, params, False)
    if model.name in models.FOLDLESS_ESTIMATORS:
        fitted(s, judge, model, d, problem, read)


def reader(model, d):
    """From fits to what the estimator returns."""
    if model.name == "KernelFisherDiscriminant":
        return lambda f: Fits(f.values[:, 1] - f.values[:, 0], f.tolerance.sum(1), f.fine.sum(1))
    if model.classifies and len(d.classes) == 2:
        return lambda f: f.column(0)
    return lambda f: f


def fitted(s, judge, model, d, problem, read):
    """The fitted estimator, and its leave-one-out."""
    rows = np.arange(d.n)
    weights = ", sample_weight=w" if d.weights is not None else ""
    s.run(f"{model.text}.fit(X, y{weights}, confounds=C)", "model")
    method = "decision_function" if model.classifies else "predict"
    flat = not model.classifies and d.y.ndim == 1
    compare(judge, method, s.run(f"model.{method}(X)"), read(without_part(problem, rows, rows, at_mean=True)), flat)
    scores = read(without_part(problem, rows, rows))
    compare(judge, f"{method}, with confounds", s.run(f"model.{method}(X, confounds=C)"), scores, flat)
    loo = stack([read(without_part(problem, np.delete(rows, i), rows[i : i + 1])) for i in rows])
    method = "loo_decision_function" if model.classifies else "loo_predict"
    compare(judge, method, s.run(f"model.{method}()"), loo, flat)


AREAS = {"confounds": confounds}
