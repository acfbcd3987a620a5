"""Runs of a permutation test: the labelings of one test, the members of a family, and the result of either."""

from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import gen_batches

from foldless.bridge.choose_strategy import choose_strategy, generalised
from foldless.bridge.permutation_spec import stack_members
from foldless.bridge.progress import Progress
from foldless.bridge.route import warn_caller, warn_of_refits
from foldless.linalg.memory import require_memory
from foldless.linalg.numpy import threads_for
from foldless.permutation.nulls import ROUNDING, ROUNDING_SINGLE
from foldless.permutation.result import PermutationTestResult
from foldless.permutation.strategies import Scores

EVERY_LABELING = "for every permutation"


def run_single(spec, data, labelings, n_jobs, verbose):
    """(scores (b,) of the labelings that are done, route, best parameters of the outer splits of a search)."""
    strategy = choose_strategy(spec, data)
    warn_of_refits(spec.estimator, strategy.route, EVERY_LABELING)
    m = len(labelings) - 1
    jobs = (
        delayed(_batch_scores)(strategy, labelings.orders[part], labelings.splits(part))
        for part in gen_batches(m + 1, strategy.n_together)
    )
    scores = Scores.join(_collect(jobs, n_jobs, Progress(m, "permutations", verbose), strategy.n_together))
    _warn_if_interrupted(len(scores.values) - 1, m, "permutations")
    best = None if scores.choices is None else [strategy.listed[place] for place in scores.choices[0]]
    return scores.values, strategy.route, best


def run_family(spec, data, labelings, members, n_jobs, verbose, *, generalise=False):
    """(scores (b, k) or (b, k, k), route) of a family: all members have the same labelings."""
    everywhere = None
    if generalise:
        everywhere = members = _checked_members(spec, labelings, members)
        data = replace(data, X=members[0])
    first = choose_strategy(spec, data)
    route = first.route
    warn_of_refits(spec.estimator, route, EVERY_LABELING)
    splits, known = labelings.splits(), {0: first}
    del first  # its P is kept by its job alone
    jobs = (
        delayed(_member_scores)(spec, replace(data, X=X), labelings.orders, splits, everywhere, known.pop(number, None))
        for number, X in enumerate(members)
    )
    done = _collect(jobs, n_jobs, Progress(len(members), "members of the family", verbose))
    _warn_if_interrupted(len(done), len(members), "members of the family")
    columns = [each.values for each in done]
    columns += [np.full_like(columns[0], np.nan)] * (len(members) - len(columns))
    return np.stack(columns, 1), route


def _checked_members(spec, labelings, members):
    """The members as one array, for models that are tested at all of them."""
    if spec.search is not None:
        raise ValueError("generalise=True: a search is not tested at other members; test an estimator.")
    if spec.moves_splits:
        raise ValueError("generalise=True needs splits that stay, and those of this cv do not; use KFold.")
    require_memory((len(labelings), len(members), len(members)), np.float64, "the scores of all permutations")
    return stack_members(members)


def _member_scores(spec, data, orders, splits, everywhere, strategy):
    """Scores of one member of a family, at its own features or ``everywhere``; its strategy where it is chosen."""
    with threads_for(len(data.y)):
        strategy = choose_strategy(spec, data) if strategy is None else strategy
        if everywhere is not None:
            strategy = generalised(strategy, everywhere)
        parts = gen_batches(len(orders), strategy.n_together)
        return Scores.join([strategy.scores(orders[part], splits.select(part)) for part in parts])


def _batch_scores(strategy, orders, splits):
    with threads_for(orders.shape[1]):
        return strategy.scores(orders, splits)


def _collect(jobs, n_jobs, progress, step=1):
    """Scores of the jobs in order; an interrupt from the keyboard leaves those that are done, if any."""
    results = []
    try:
        for result in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            results.append(result)
            progress.step(steps=step)
    except KeyboardInterrupt:
        if sum(len(each.values) for each in results) < 2:
            raise
    return results


def _warn_if_interrupted(done, total, what):
    if done < total:
        warn_caller(f"interrupted: the result rests on {done} of {total} {what}.")


def build_result(spec, data, strata, scores, route, best_params=None):
    """The result, with warnings of scores that are not defined; scikit-learn's p-value of them where it is promised."""
    score, null = scores[0], scores[1:]
    single = getattr(data.X, "dtype", None) == np.float32
    options = {
        "scoring": spec.scoring.name,
        "greater_is_better": spec.scoring.greater,
        "strata": strata,
        "path": route,
        "best_params": best_params,
        "rounding": 0.0 if spec.as_theirs else ROUNDING_SINGLE if single else ROUNDING,
    }
    result = PermutationTestResult(score, null, **options)
    missing = int(np.isnan(null[:, ~np.isnan(score)]).sum())  # of members that were reached
    if missing:
        theirs, ours = "do not count, as in scikit-learn", "count as at least as good as the true score"
        counted = theirs if spec.as_theirs else ours
        _warn_undefined(f"{missing} of {null.size} permuted scores are", counted, "Larger test parts avoid this.")
    undefined = np.isnan(score) & (np.ndim(score) == 0 or ~np.isnan(null).all(0))
    if not undefined.any():
        return result
    smallest = 1.0 / (len(null) + 1.0)
    theirs = f"{smallest:.3g}, scikit-learn's, which counts no permutation then: it says nothing"
    shown = theirs if spec.as_theirs else "nan"
    _warn_undefined("the score of the true labels is", f"its p-value is {shown}", "Use a stratified splitter.")
    pvalue = np.where(undefined, smallest, result.pvalue)[()] if spec.as_theirs else result.pvalue
    return PermutationTestResult(score, null, pvalue, **options)


def _warn_undefined(what, consequence, remedy):
    warn_caller(f"{what} not defined (a test part with one class only, say) and {consequence}. {remedy}")
