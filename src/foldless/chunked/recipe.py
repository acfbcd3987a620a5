"""From passes over the data to a result: the recipe, wherever the passes are run.

    survey       all rows are counted and checked, a sample is drawn, from which the model is prepared (``plan``)
    sums         one Gram matrix for each fold                                                      n r^2 operations
    solve        all alphas, on all rows and on each training part                                  (k + 1) 9 r^3
    errors       leave-one-out for every alpha, where that decides                                  2 n r^2
    held out     predictions and scores at the chosen alpha                                         2 n r^2

A ``reader`` (``passes.Reader``, or one of a cluster) runs the passes: ``run(name, function, merge)`` maps rows to what
``merge`` puts together in any order. All these functions and their arguments can be pickled.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from foldless.chunked.folds import folds_for
from foldless.chunked.heldout import Judges, press_of, score_of, with_whole
from foldless.chunked.models import SQUARED, Part, check_folds, squared_errors, training_parts
from foldless.chunked.plan import plan_of
from foldless.chunked.result import ChunkedResult
from foldless.chunked.sums import merged
from foldless.chunked.survey import merged_surveys, survey_of
from foldless.estimators.access import with_coefficients
from foldless.estimators.checks import check_option, numbers, warn_caller
from foldless.readout.task import Rule


@dataclass(frozen=True)
class Settings:
    """Arguments of ``cross_validate`` that do not depend on where it runs."""

    cv: Any
    loo: bool
    alphas: np.ndarray
    select: str | None
    sample: int
    seed: int

    @classmethod
    def checked(cls, *, cv, loo, alphas, select, sample, random_state) -> Self:
        """The settings, or an error that says which argument is wrong."""
        check_option("select", select, (None, "kfold", "loo"))
        found = numbers(np.ravel(alphas))
        if found is None or not len(found) or found.min() <= 0:
            raise ValueError(f"alphas={alphas!r} must be finite numbers > 0.")
        if not isinstance(sample, int | np.integer) or sample < 2:
            raise ValueError(f"sample={sample!r} must be an integer of at least 2.")
        whole = isinstance(random_state, int | np.integer)
        seed = random_state if whole else check_random_state(random_state).randint(2**31)
        return cls(cv, bool(loo), found, select, int(sample), int(seed))


def validated(estimator, reader, settings):
    """The result of all passes."""
    plan, survey = _prepared(estimator, reader, settings)
    sums = reader.add_up(plan, survey)
    check_folds(plan, sums)
    alphas, mass = settings.alphas, sums.mass.sum()
    whole = Part(plan, sums.gram.sum(0))
    _warn_of_digits(whole, alphas)
    parts, errors = _of_folds(plan, sums, alphas)
    kfold_press, loo_press = (errors / mass if parts else None), None
    if len(alphas) > 1 and (settings.select == "loo" or not parts):
        judges = with_whole((), whole, sums, alphas)
        loo_press = reader.run("leave-one-out errors", partial(press_of, plan, judges), merged).total / mass
    best = 0 if len(alphas) == 1 else int(np.argmin(errors if loo_press is None else loo_press))
    judges = Judges(tuple(each[best] for each in parts))
    if settings.loo:
        judges = with_whole(judges.folds, whole, sums, alphas[best : best + 1])
    scores: Any = reader.judge(plan, judges, survey.n_rows) if parts or settings.loo else None
    return ChunkedResult(
        estimator=_fitted(plan, whole.coefficients(alphas[best]), alphas[best]),
        alpha=float(alphas[best]),
        test_score=np.array([score_of(plan, each) for each in scores.folds]) if parts else None,
        loo_score=score_of(plan, scores.loo.sum(0)) if settings.loo else None,
        alphas=alphas,
        kfold_press=kfold_press,
        loo_press=loo_press,
        fold_sizes=sums.rows.astype(int),
        n_rows=survey.n_rows,
        n_components=plan.r,
        seconds=reader.seconds,
    )


def _prepared(estimator, reader, settings):
    """The plan, and the survey that it comes from."""
    layout, size = reader.layout, settings.sample
    look = partial(survey_of, labels=layout.labels, size=size, seed=settings.seed)
    survey = reader.run("survey", look, partial(merged_surveys, size=size))
    folds = folds_for(settings.cv, survey, layout, settings.seed)
    if settings.select == "kfold" and folds.k == 1:
        raise ValueError("select='kfold' needs folds; give cv, or use select='loo'.")
    plan = plan_of(estimator, survey, layout, folds, reader.names)
    reader.layout = plan.layout  # the classes are known from now on
    return plan, survey


def _of_folds(plan, sums, alphas):
    """Coefficients of every training part for all alphas, and squared errors of the held-out rows (n_alphas,)."""
    found, errors = [], np.zeros(len(alphas))
    for part, own in zip(training_parts(plan, sums), sums.gram, strict=False):
        found.append([part.coefficients(alpha) for alpha in alphas])
        errors += [squared_errors(plan, own, each) for each in found[-1]]
    return found, errors


def _fitted(plan, found, alpha):
    """The estimator with these coefficients, for features and values as they are."""
    offset = found.offset + plan.level - (plan.origin @ found.weights if plan.intercept else 0.0)
    rule = Rule(plan.readout, found.moments)
    choice = f"sums over chunks: {plan.r} features"
    return with_coefficients(plan.model, {"alpha": float(alpha)}, plan.kernel, found.weights, offset, rule, choice)


def _warn_of_digits(whole, alphas):
    """Sums of squares keep half the digits of a decomposition of the rows."""
    least = SQUARED * whole.s.max(initial=0.0)
    if alphas.min() < least:
        warn_caller(
            f"alpha={alphas.min():g} is below {least:.3g}, from where on sums over chunks have fewer than 8 digits."
            " Use a larger alpha, or scale the features."
        )
