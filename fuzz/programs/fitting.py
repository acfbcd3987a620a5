"""Fit, predict, transform, coefficients; leave-one-out of the fitted estimator."""

import numpy as np

from fuzz import data as sets
from fuzz import models, scores
from fuzz.discriminants import Discriminant
from fuzz.judge import Skip
from fuzz.oracles import LD, OFFSET, Refit, kernel_matrix, stack


def started(rng, s, judge, *, most=30, name=None, loo_cut=True, **options):
    """A model and data, named in the script, and the words that hand the weights over."""
    name = name or sets.pick(rng, "LSSVR", "LSSVC", "KernelFisherDiscriminant", "KernelFisherDiscriminant")
    c = sets.classes_of(rng) if models.FOLDLESS_ESTIMATORS[name] else None
    model = models.draw_own(rng, name, c, loo_cut=loo_cut)
    small = 14 if model.option("threshold") == "loo" else most
    d = sets.draw(rng, model.classifies, c=c, most=small, boolean=model.kernel["kernel"] == "boolean", **options)
    models.with_class_weight(rng, model, d)
    check_size(model, d)
    judge.label = model.label
    given = ""
    s.let("X", d.X)
    s.let("y", d.y)
    if d.weights is not None:
        s.let("w", d.weights)
        given = ", sample_weight=w"
    return model, d, given


def check_size(model, d):
    """Kernel matrices that overflow in single precision are refused by the library, and rightly so."""
    if d.dtype == np.float32:
        with np.errstate(all="ignore"):
            largest = np.abs(kernel_matrix(model.kernel, d.dense, d.dense)).max()
        if not largest < 1e12:
            raise Skip


def compare(judge, what, found, fits, flat=False):
    """Predictions or decisions of the library with those of the oracle."""
    expected, tolerance = fits.values, fits.tolerance
    if flat and expected.ndim == 2:
        expected, tolerance = expected[:, 0], tolerance[:, 0]
    judge.values(what, found, expected, tolerance, limit_of(expected, tolerance))


def limit_of(expected, tolerance):
    """Tolerances that say nothing: a hundredth of the size of the row, or of all rows."""
    size = np.abs(expected).max() if expected.size else 0.0
    return np.inf if not np.isfinite(float(size)) else max(float(size), 1.0) * 0.05


def new_rows(rng, model, d, number):
    """Rows of the data, mostly moved away from them."""
    new = np.asarray(d.dense[rng.integers(0, d.n, number)], float)
    if model.kernel["kernel"] != "boolean":
        new = new + rng.normal(size=new.shape) * np.asarray(d.dense, float).std(0) * sets.pick(rng, 0.0, 0.3, 1.0)
    return new.astype(d.dtype)


def fit(rng, s, judge):
    """The fitted estimator at its own rows and at new ones."""
    model, d, given = started(rng, s, judge, loo_cut=rng.random() < 0.5)
    new = new_rows(rng, model, d, int(rng.integers(1, 6)))
    s.let("X_new", new)
    s.run(f"{model.text}.fit(X, y{given})", "model")
    problem = model.problem(d, new.astype(LD))
    rows = np.arange(len(problem.K))
    at = model.refit(problem, d, np.arange(d.n))
    fits = at(rows)
    old, fresh = (
        type(fits)(*(getattr(fits, k)[part] for k in ("values", "tolerance", "fine")))
        for part in (slice(0, d.n), slice(d.n, None))
    )
    if not model.classifies:
        flat = d.y.ndim == 1
        compare(judge, "predict", s.run("model.predict(X)"), old, flat)
        compare(judge, "predict, new rows", s.run("model.predict(X_new)"), fresh, flat)
    else:
        compare(judge, "decision_function", s.run("model.decision_function(X)"), old)
        compare(judge, "decision_function, new rows", s.run("model.decision_function(X_new)"), fresh)
        judge.labels("predict", s.run("model.predict(X)"), old, d.classes)
        judge.labels("predict, new rows", s.run("model.predict(X_new)"), fresh, d.classes)
    judge.equal(
        "dtype",
        s.run("str(model.predict(X).dtype) if y.dtype.kind == 'f' else 'float'"),
        str(np.dtype(d.dtype)) if d.y.dtype.kind == "f" else "float",
    )
    if model.name == "KernelFisherDiscriminant":
        transform(s, judge, model, d, problem, rows[d.n :])
    elif model.kernel["kernel"] == "linear" and model.option("penalty") != "coef":
        refit = Refit(problem, np.arange(d.n))
        coefficients = (np.asarray(d.dense, LD)[refit.functions].T @ refit.beta).T
        size = np.abs(problem.Y - refit.middle).max() / np.sqrt(problem.alpha) + np.abs(coefficients).max()
        if model.name == "LSSVR" and d.y.ndim == 1:
            coefficients = coefficients[0]
        grow = max(1.0, float(np.sqrt(problem.w.max())))
        tolerance = (refit.relative if refit.judged else np.inf) * size * grow
        offset = OFFSET * np.finfo(d.dtype).eps * np.abs(problem.Y).max() * np.sqrt(d.n / problem.alpha) * grow
        judge.values("coef_", s.run("model.coef_"), coefficients, tolerance + offset)


def transform(s, judge, model, d, problem, rows):
    """Discriminant scores, each axis up to its sign."""
    codes = np.concatenate([d.codes, np.zeros(len(problem.K) - d.n, int)])
    oracle = Discriminant(problem, np.arange(d.n), codes, len(d.classes), n_components=model.option("n_components"))
    z = oracle.transform(rows)
    found = np.asarray(s.run("model.transform(X_new)"))
    if found.shape == z.values.shape:
        signs = np.where((found * z.values).sum(0) < 0, -1, 1)
        alive = oracle.alive[: oracle.k]
        tolerance = np.where(alive, z.tolerance, np.inf)
        judge.values("transform", found * signs, z.values, tolerance, 0.05 * max(float(np.abs(z.values).max()), 1.0))
    else:
        judge.equal("transform: shape", found.shape, z.values.shape)


def leave_one_out(rng, s, judge):
    """Every training row by the model without it."""
    model, d, given = started(rng, s, judge, most=20 if rng.random() < 0.8 else 36, loo_cut=False)
    if d.classes is not None and np.bincount(d.codes[np.asarray(d.w, float) > 0]).min() < 2:
        return
    s.run(f"{model.text}.fit(X, y{given})", "model")
    problem = model.problem(d)
    rows = np.arange(d.n)
    fits = stack([model.refit(problem, d, np.delete(rows, i))([i]) for i in rows])
    if model.classifies:
        compare(judge, "loo_decision_function", s.run("model.loo_decision_function()"), fits)
        judge.labels("loo_predict", s.run("model.loo_predict()"), fits, d.classes)
        judge.within("loo_score_", s.run("model.loo_score_"), scores.accuracy(fits, d.codes))
    else:
        compare(judge, "loo_predict", s.run("model.loo_predict()"), fits, d.y.ndim == 1)
        value, tolerance = scores.r2(fits, d.Y)
        judge.values("loo_score_", s.run("model.loo_score_"), value, tolerance + 1e-9, 1e-2 * (1 + abs(float(value))))


AREAS = {"fit": fit, "leave-one-out": leave_one_out}
