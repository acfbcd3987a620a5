"""Interrupts at a numbered moment of long methods, after which all numbers are those of refits.

A model is then what it was before the call or, where the interrupt comes after its last step, what it is after it.
"""

import numpy as np

from fuzz import data as sets
from fuzz import models
from fuzz.judge import LibraryError
from fuzz.programs import held_out, searching, validation
from fuzz.programs.fitting import started
from fuzz.programs.permutation import compare_table, mean_score, shuffled
from fuzz.programs.updating import Stream, sequence

READING = (
    "loo_{}()",
    "loo_{}()",
    "loo_score_",
    "stratified_loo_score_",
    "{}(X)",
    "forgetting_effects()",
    "unlearning_certificate()",
    "predict_interval(X)",
    "conformal_p_values(X)",
    "score_interval(n_repeats=1)",
)


def interrupt(rng, s, call, subject="model"):
    """Run a call with an interrupt at a moment drawn from all that it has, or the last of them; whether it was stopped.

    What a call has found is stored last.
    """
    count = s.run(f"moments(lambda: copy.deepcopy({subject}).{call})" if subject else f"moments(lambda: {call})")
    first = 0 if rng.random() < 0.5 else count - count // 10
    moment = int(rng.integers(first, max(count, first + 1)))
    return s.run(f"interrupted_at({moment}, lambda: {subject and subject + '.'}{call})")


class Interrupted(Stream):
    """A stream whose changes are interrupted before they succeed, and whose questions are."""

    def change(self, call, rows):
        """A call after which the model holds these rows, interrupted and judged; then as it should be."""
        s, judge, before = self.s, self.judge, self.rows
        if not before:
            s.run(self.model.text, "model")
        stopped = interrupt(self.rng, s, call)
        held = s.run("model.X_fit_.shape[0] if hasattr(model, 'X_fit_') else 0")
        judge.equal(
            "rows of an interrupted model", held in ((len(before), len(rows)) if stopped else (len(rows),)), True
        )
        if held == len(rows):
            self.hold(rows)
        else:
            if before and self.stays(before):
                self.check(loo=self.rng.random() < 0.3)
            s.run(f"model.{call}")
            self.hold(rows)
        if self.stays(rows) and self.rng.random() < 0.5:
            self.ask()

    def ask(self):
        """A question that is interrupted leaves the model as it was."""
        method = "decision_function" if self.model.classifies else "predict"
        question = sets.pick(self.rng, *READING).format(method)
        try:
            interrupt(self.rng, self.s, question)
        except LibraryError as error:
            if isinstance(error.__cause__, ValueError | AttributeError):
                return  # refused for these rows, which other programs judge
            raise
        self.check(loo=True)


def models_of_streams(rng, s, judge):
    """Fits, updates and questions."""
    sequence(rng, Interrupted(rng, s, judge, most=18), most=3)


def cross_validation(rng, s, judge):
    """Held-out predictions and scores after an interrupted call."""
    model, d, given = started(rng, s, judge, most=18)
    splits, groups = validation.draw_splits(rng, s, d, partition=True)
    params = ', params={"sample_weight": w}' if given else ""
    parts = validation.held_out(model, model.problem(d), d, splits)
    interrupt(rng, s, f"cross_val_predict({model.text}, X, y, cv=cv{groups}{params})", "")
    if rng.random() < 0.5:
        interrupt(rng, s, f"cross_validate({model.text}, X, y, cv=cv{groups}{params}, return_estimator=True)", "")
    validation.cross_predict(s, judge, model, d, parts, splits, groups, params)
    validation.cross_score(rng, s, judge, model, d, parts, splits, groups, params)


def search(rng, s, judge):
    """A search that was interrupted, and fitted again."""
    searching.search(rng, s, judge, before=lambda call: interrupt(rng, s, call, "search"))


def permutation(rng, s, judge):
    """A permutation test after an interrupted one: neither its draws nor its labels have moved."""
    name, c = sets.pick(rng, "LSSVR", "LSSVC", "KernelFisherDiscriminant"), sets.classes_of(rng)
    kernels = ("rbf", "linear", "laplacian")
    model = models.draw_own(rng, name, c, kernels=kernels, simple=True, loo_cut=False)
    d = sets.draw(rng, model.classifies, c=c, most=14, least=9, plain=True)
    d.y = d.y.reshape(d.n, -1)[:, 0]
    judge.label = model.label
    s.let("X", d.X)
    s.let("y", d.y)
    state, m = int(rng.integers(1000)), int(rng.integers(2, 5))
    splits = list(s.run(f"KFold({int(rng.integers(2, 4))})", "cv").split(d.dense))
    metric = "neg_mean_squared_error" if d.codes is None else "accuracy"
    draw = np.random.RandomState(state)
    orders = [np.arange(d.n)] + [shuffled(draw, d.n, None) for _ in range(m)]
    table = np.array([mean_score(metric, model, d.relabel(order), splits) for order in orders])
    call = f"permutation_test_score({model.text}, X, y, cv=cv, scoring={metric!r}, n_permutations={m},"
    call += f" random_state={state})"
    interrupt(rng, s, call, "")
    s.run(call, "result")
    found = np.concatenate([[s.run("result.score")], s.run("result.permutation_scores")])
    compare_table(judge, d, metric, found, table)


def adaptive(rng, s, judge):
    """The adaptive discriminant."""
    held_out.adaptive(rng, s, judge, before=lambda call, subject: interrupt(rng, s, call, subject))


def interrupts(rng, s, judge):
    """One of them."""
    kinds = (*3 * [models_of_streams], cross_validation, search, permutation, adaptive)
    sets.pick(rng, *kinds)(rng, s, judge)


AREAS = {"interrupts": interrupts}
