"""Rows come and go: after any sequence of updates the model is the one fitted on the rows it has."""

from dataclasses import replace

import numpy as np

from fuzz import data as sets
from fuzz import models, scores
from fuzz.judge import Skip
from fuzz.oracles import BASE, Fits, Refit, stack
from fuzz.programs.fitting import check_size, compare


class Stream:
    """A model that learns and forgets rows of a data set, and the numbers of those it holds."""

    def __init__(self, rng, s, judge, most=26):
        name = sets.pick(rng, "LSSVR", "LSSVC", "KernelFisherDiscriminant")
        c = sets.classes_of(rng) if models.FOLDLESS_ESTIMATORS[name] else None
        model = models.draw_own(rng, name, c, loo_cut=False)
        if rng.random() < 0.1:
            model.alpha = 1e10
        steep = rng.random() < 0.12  # entries of the kernel matrix from 1 to 1e10
        if steep:
            model.kernel, model.alpha = {"kernel": "poly", "gamma": 1.0, "degree": 3, "coef0": 1.0}, 1e-3
        boolean = model.kernel["kernel"] == "boolean"
        d = sets.draw(rng, model.classifies, c=c, least=10, most=most, boolean=boolean, plain=steep)
        if steep:
            d = sets.replace(d, X=30 * d.X, dense=30 * d.X.astype(d.dense.dtype))
        models.with_class_weight(rng, model, d, 0.15)
        check_size(model, d)
        judge.label = model.label
        self.rng, self.s, self.judge, self.model, self.d = rng, s, judge, model, d
        self.named = model.classifies and rng.random() < 0.5
        self.ids = rng.random() < 0.4
        self.rows, self.functions, self.calls = [], None, 0
        s.let("X", d.X)
        s.let("y", d.y)
        if d.weights is not None:
            s.let("w", d.weights)
        if self.named:
            s.let("classes", d.classes)

    def learn(self, rows):
        """``fit`` or ``partial_fit``."""
        first = not self.rows
        rows = [int(each) for each in rows]
        words = [f"X[{rows}]", f"y[{rows}]"]
        if self.d.weights is not None:
            words.append(f"sample_weight=w[{rows}]")
        if self.ids:
            words.append(f"ids={rows}")
        if self.named and first:
            words.append("classes=classes")
        method = "fit" if first and not self.named else "partial_fit"
        self.change(f"{method}({', '.join(words)})", self.rows + rows)

    def forget(self, places):
        """``forget`` by positions, by a mask or by ids."""
        places = sorted(int(each) for each in places)
        kept = [row for place, row in enumerate(self.rows) if place not in places]
        if self.ids:
            words = f"ids={[self.rows[place] for place in places]}"
        elif self.rng.random() < 0.3:
            words = f"np.isin(np.arange({len(self.rows)}), {places})"
        else:
            words = f"{places}"
        self.change(f"forget({words})", kept)

    def change(self, call, rows):
        """A call after which the model holds these rows."""
        self.s.run(f"{'model' if self.rows else self.model.text}.{call}", "model")
        self.hold(rows)

    def hold(self, rows):
        """Note the rows of the model; those of the first fit keep their basis functions."""
        self.rows = rows
        self.calls += 1
        if self.functions is None:
            self.functions = [row for row in rows if self.d.w[row] > 0]

    def problem(self):
        """The problem of the rows the model holds, the other ones behind them."""
        others = np.setdiff1d(np.arange(self.d.n), self.rows)
        problem = self.model.problem(self.d.take(self.rows), self.d.dense[others])
        places = np.argsort(np.concatenate([np.asarray(self.rows, int), others]))
        return replace(problem, functions=places[self.functions], calls=self.calls)

    def stays(self, rows):
        """Whether these rows show every class, with weight, so that a plain fit exists."""
        w = np.asarray(self.d.w, float)[rows]
        if np.count_nonzero(w) < 2:
            return False
        return self.d.codes is None or len(np.unique(self.d.codes[rows][w > 0])) == len(self.d.classes)

    def check(self, loo):
        """Predictions, ids, leave-one-out and the certificate at this moment."""
        s, judge, model, d = self.s, self.judge, self.model, self.d
        held = d.take(self.rows)
        whole = np.setdiff1d(np.arange(d.n), self.rows)
        problem = self.problem()
        at = model.refit(problem, held, np.arange(held.n))
        order = np.concatenate([np.asarray(self.rows, int), whole])
        fits = at(np.arange(d.n))
        s.let("order", order)
        if model.classifies:
            compare(judge, "decision_function after updates", s.run("model.decision_function(X[order])"), fits)
        else:
            found = s.run("model.predict(X[order])")
            compare(judge, "predict after updates", found, fits, d.y.ndim == 1)
            self.check_ill(problem, found, held.n)
        if self.ids:
            judge.equal("ids_", list(s.run("model.ids_")), self.rows)
        if loo and held.n > 3:
            self.check_loo(held)
        judged = np.isfinite(fits.tolerance).all() and fits.tolerance.max() <= 1e-2 * max(
            1.0, float(np.abs(fits.values).max())
        )
        holds = s.run("model.unlearning_certificate().holds")
        if judged:
            judge.equal("unlearning_certificate().holds", bool(holds), True)
        else:
            judge.skip()

    def check_ill(self, problem, found, n):
        """Where the condition forbids to judge digits: errors no larger than ten times what it explains."""
        rows = np.arange(n)
        refit = Refit(problem, rows)
        if refit.judged:
            return
        fits = refit.at(rows)
        size = np.maximum(np.abs(problem.Y - refit.middle).max(0), np.abs(fits.values - refit.middle))
        size = np.maximum(size, 8 * np.finfo(problem.dtype).eps * np.abs(problem.Y).max(0))  # spacing of constant y
        tolerance = 10 * max(refit.relative, 1.0) * refit.reach(rows)[:, None] * size
        expected = fits.values if found.ndim == 2 else fits.values[:, 0]
        tolerance = tolerance if found.ndim == 2 else tolerance[:, 0]
        self.judge.values("predict after updates, ill-conditioned", found[:n], expected, tolerance)

    def check_loo(self, held):
        """Leave-one-out after updates."""
        s, judge, model = self.s, self.judge, self.model
        w = np.asarray(held.w, float)
        if held.codes is not None and np.bincount(held.codes[w > 0]).min() < 2:
            return
        problem, rows = self.problem(), np.arange(held.n)
        parts, whole = [], Refit(problem, rows)
        for i in rows:
            fits, more = model.refit(problem, held, np.delete(rows, i))([i]), 1.0
            if whole.relative > BASE[np.dtype(problem.dtype)]:  # P of all rows is updated, and may be the worse one
                more = max(1.0, whole.relative / Refit(problem, np.delete(rows, i)).relative)
            more = more if whole.judged else np.inf
            parts.append(Fits(fits.values, fits.tolerance * more, fits.fine * more))
        fits = stack(parts)
        if model.classifies:
            compare(judge, "loo_decision_function after updates", s.run("model.loo_decision_function()"), fits)
            judge.within("loo_score_ after updates", s.run("model.loo_score_"), scores.accuracy(fits, held.codes))
        else:
            compare(judge, "loo_predict after updates", s.run("model.loo_predict()"), fits, held.y.ndim == 1)


def updates(rng, s, judge):
    """A random sequence of learning and forgetting."""
    sequence(rng, Stream(rng, s, judge), most=8)


def sequence(rng, stream, most):
    """Rows come and go, at most so many times."""
    d = stream.d
    order = rng.permutation(d.n)
    size = d.n // 2
    while not stream.stays(list(order[:size])):
        size += 1
        if size > d.n:
            raise Skip
    waiting = list(order[size:])
    stream.learn(order[:size])
    for step in range(int(rng.integers(2, most + 1))):
        if waiting and (rng.random() < 0.5 or len(stream.rows) < 5):
            count = min(len(waiting), int(sets.pick(rng, 1, 1, 2, 4)))
            stream.learn(waiting[:count])
            waiting = waiting[count:]
        else:
            places = rng.choice(len(stream.rows), int(sets.pick(rng, 1, 1, 2, 3)), replace=False)
            kept = [row for place, row in enumerate(stream.rows) if place not in places]
            if not stream.stays(kept):
                continue
            waiting += [row for row in stream.rows if row not in kept]
            stream.forget(places)
        if step % 2:
            stream.check(loo=rng.random() < 0.3)
    stream.check(loo=rng.random() < 0.5)
    if stream.named and rng.random() < 0.5:
        one_class(stream)


def one_class(stream):
    """All rows but those of one class are forgotten; the classes were named and stay."""
    d, s, judge = stream.d, stream.s, stream.judge
    rows = np.asarray(stream.rows)
    keep = d.codes[rows] == d.codes[rows][0]
    w = np.asarray(d.w, float)[rows]
    if not (w[keep] > 0).any() or keep.all():
        return
    stream.forget(np.flatnonzero(~keep))
    judge.equal("certificate with one class left", bool(s.run("model.unlearning_certificate().holds")), True)
    if stream.model.intercept:
        judge.equal("predict with one class left", bool(np.all(s.run("model.predict(X)") == d.y[rows][keep][0])), True)
    judge.equal("classes_ with one class left", np.asarray(s.run("model.classes_")).tolist(), d.classes.tolist())


AREAS = {"updates": updates}
