"""From passes over the data to a result: the recipe, wherever the passes are run.

    survey       all rows are counted and checked, a sample is drawn, from which the model is prepared (``plan``)
    sums         one Gram matrix for each fold                                                      n r^2 operations
    solve        all alphas, on all rows and on each training part                                  (k + 1) 9 r^3
    errors       leave-one-out for every alpha, where that decides                                  2 n r^2
                 of folds for every alpha, where candidates have other class weights                n r
    held out     predictions and scores at the chosen alpha                                         2 n r^2

A ``reader`` (``passes.Reader``, or one of a cluster) runs the passes: ``run(name, function, merge)`` maps rows to what
``merge`` puts together in any order. All these functions and their arguments can be pickled.
"""

from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import clone

from foldless._engine.precision.digits import SUMMED, cancels
from foldless._engine.readout.task import Rule
from foldless.chunked.arguments import check_cv
from foldless.chunked.folds import folds_for
from foldless.chunked.heldout import HeldOutModels, fold_press_of, press_of, score_of
from foldless.chunked.leftout import left_out, warn_of_lost
from foldless.chunked.models import TrainingSums, check_folds, squared_errors, training_parts
from foldless.chunked.plan import plans_of
from foldless.chunked.predictions import asks_for, check_columns
from foldless.chunked.result import ChunkedResult
from foldless.chunked.rules import check_rule, is_trained, rule_of, rules_of_folds
from foldless.chunked.sums import merged
from foldless.chunked.survey import merged_surveys, survey_of
from foldless.estimators.access import with_coefficients
from foldless.estimators.checks import warn_caller


class Candidate:
    """Plans with their sums, solved for all alphas on all rows and on each training part."""

    def __init__(self, plans, sums, alphas):
        check_folds(plans[0], sums[0])
        self.plans, self.all_sums, self.sums, self.alphas = plans, sums, sums[0], alphas
        self.whole = TrainingSums(plans[0], self.sums.regression.total())
        self.folds, self.errors = [], np.zeros(len(alphas))  # squared errors of held-out folds
        for part, held_out in training_parts(plans, sums):
            self.folds.append([part.coefficients(alpha) for alpha in alphas])
            self.errors += [squared_errors(part.plan, held_out, each) for each in self.folds[-1]]

    @property
    def labels(self):
        """Rows of positive weight by class."""
        return self.sums.labels.sum(0)

    def left_out(self, alphas):
        """The model of all rows for these alphas, of which rows are left out."""
        return left_out(self.whole, self.labels, alphas)

    def rule(self, best, sample):
        """The rule of the model of all rows at the alpha of this number."""
        return rule_of(self.whole, self.labels, self.alphas[best], sample)

    def held_out_models(self, best, sample, *, loo, probabilities):
        """The models at the alpha of this number, with their rules; with that of all rows if ``loo``."""
        plan, models = self.plans[0], [each[best] for each in self.folds]
        rules: Any = (Rule(plan.readout, each.moments) for each in models)
        if is_trained(plan, probabilities=probabilities):
            parts = training_parts(self.plans, self.all_sums)
            rules = rules_of_folds(parts, self.sums, self.alphas[best], sample, plan.folds, probabilities=probabilities)
        whole = self.left_out(self.alphas[best : best + 1]) if loo else None
        return HeldOutModels(tuple(zip(models, rules, strict=True)), tuple(self.plans[1:]), whole)


def validated(estimator, reader, settings):
    """The result of all passes."""
    alphas = settings.alphas
    plans, survey = _prepared(estimator, reader, settings)
    check_columns(reader.predictions, plans[0][0], settings.loo, survey.n_rows)
    sums = iter(reader.add_up([plan for each in plans for plan in each], survey))
    found = [Candidate(each, list(islice(sums, len(each))), alphas) for each in plans]
    _warn_of_digits(found, alphas)
    folds = plans[0][0].folds.k > 1
    kfold_press, loo_press = _errors(found, reader, settings)
    press: Any = kfold_press if loo_press is None else loo_press
    which, best = (0, 0) if press is None else np.unravel_index(press.argmin(), press.shape)
    plan, chosen = plans[which][0], found[which]
    params = {**settings.candidates[which], "alpha": float(alphas[best])}
    fitted = _fitted(plan, chosen.whole.coefficients(alphas[best]), chosen.rule(best, survey.sample), params)
    asked = {"loo": settings.loo, "probabilities": asks_for(reader.predictions, "probability")}
    held_out_models = chosen.held_out_models(best, survey.sample, **asked)
    judged: Any = reader.judge(plan, held_out_models, survey) if folds or settings.loo else (None, None)
    scores, arrays = judged
    warn_of_lost(0 if scores is None else scores.lost[0])
    return ChunkedResult(
        estimator=fitted,
        best_params=params,
        test_score=np.array([score_of(plan, each) for each in scores.folds]) if folds else None,
        loo_score=score_of(plan, scores.loo.sum(0)) if settings.loo else None,
        alphas=alphas,
        candidates=settings.candidates,
        kfold_press=kfold_press,
        loo_press=loo_press,
        fold_sizes=chosen.sums.rows.astype(int),
        n_rows=survey.n_rows,
        n_components=plan.r,
        n_scored=len(survey.sample) if is_trained(plan) else None,
        seconds=reader.seconds,
        predictions=arrays,
        workers_gone=reader.workers_gone,
    )


def _errors(found, reader, settings):
    """Mean squared held-out errors (candidates, alphas) of folds and of leave-one-out, as far as they are needed.

    Candidates of other class weights are compared by what all have in common, the sample weights. Errors of folds then
    do not follow from the sums.
    """
    plans, alphas, folds = [each.plans[0] for each in found], settings.alphas, found[0].plans[0].folds.k > 1
    shared = _share_class_weights(plans)
    masses = np.array([each.sums.regression.mass.sum(0) for each in found])
    kfold, loo = np.array([each.errors for each in found]) / masses if folds else None, None
    if folds and not shared:
        models = [(tuple(each.plans[1:]), each.folds) for each in found]
        kfold = _means(reader.run("errors of folds", partial(fold_press_of, plans, models), merged))
    if len(found) * len(alphas) > 1 and (settings.select == "loo" or not folds):
        models = [each.left_out(alphas) for each in found]
        loo = _means(reader.run("leave-one-out errors", partial(press_of, plans, models, shared), merged))
    return kfold, loo


def _means(errors):
    return np.array([each.total / each.mass for each in errors])


def _share_class_weights(plans):
    """Whether class weights of all candidates differ by a factor at most."""
    factors = [np.ones(1) if each.factors is None else each.factors / each.factors.max() for each in plans]
    return all(np.allclose(each, factors[0], rtol=1e-12, atol=0.0) for each in factors)


def _prepared(estimator, reader, settings):
    """Plans of each candidate, and the survey that they come from."""
    layout, size = reader.layout, settings.sample
    given = "folds" in layout.present
    check_cv(settings.cv, settings.select, None, given)
    look = partial(survey_of, labels=layout.labels, size=size, seed=settings.seed)
    survey = reader.run("survey", look, partial(merged_surveys, size=size, seed=settings.seed))
    check_cv(settings.cv, settings.select, survey.n_rows, given)
    folds = folds_for(settings.cv, survey, layout, settings.seed)
    models = [clone(estimator).set_params(**each) for each in settings.candidates]
    plans = [plans_of(each, survey, layout, folds, reader.names) for each in models]
    for each in plans:
        check_rule(each[0], survey, size, loo=settings.loo)
    reader.layout = plans[0][0].layout  # the classes are known from now on
    return plans, survey


def _fitted(plan, found, rule, params):
    """The estimator with these coefficients, for features and values as they are."""
    offset = found.offset + plan.level - (plan.origin @ found.weights if plan.intercept else 0.0)
    choice = f"sums over chunks: {plan.r} features"
    return with_coefficients(plan.model, params, plan.kernel, found.weights, offset, rule, choice)


def _warn_of_digits(found, alphas):
    """Sums of squares keep half the digits of a decomposition of the rows."""
    largest = max(candidate.whole.s.max(initial=0.0) for candidate in found)
    if cancels(alphas.min(), largest, SUMMED):
        warn_caller(
            f"alpha={alphas.min():g} is below {SUMMED * largest:.3g}, from where on sums over chunks have fewer than 6"
            " digits. Use a larger alpha, or scale the features."
        )
