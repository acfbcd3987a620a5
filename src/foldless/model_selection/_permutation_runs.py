"""Runs of a permutation test: the labelings of one test, the members of a family, and the result of either."""

from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import gen_batches

from foldless.bridge.choose_strategy import choose_strategy
from foldless.bridge.permutation_spec import stack_members
from foldless.bridge.progress import Progress
from foldless.bridge.route import warn_caller, warn_of_refits
from foldless.linalg.memory import require_memory
from foldless.linalg.threads import threads_for
from foldless.permutation.nulls import ROUNDING, ROUNDING_SINGLE, PermutationTestResult

EVERY_LABELING = "for every permutation"


def run_single(spec, data, null, n_jobs, verbose):
    """(scores (b,) of the labelings that are done, route, best parameters of the outer splits of a search)."""
    strategy = choose_strategy(spec, data)
    warn_of_refits(spec.estimator, strategy.route, EVERY_LABELING)
    n, size = len(null.orders), strategy.n_together
    jobs = (delayed(_scores)(null.select(part), strategy) for part in gen_batches(n, size))
    done = _collect(jobs, n_jobs, Progress(n - 1, "permutations", verbose), size)
    scores = np.concatenate([values for values, _ in done])
    _warn_if_interrupted(len(scores) - 1, n - 1, "permutations")
    choices = done[0][1]
    return scores, strategy.route, None if choices is None else [strategy.listed[place] for place in choices[0]]


def run_family(spec, data, null, members, n_jobs, verbose, *, generalise=False):
    """(scores (b, k) or (b, k, k), route) of a family: all members have the same labelings."""
    everywhere = None
    if generalise:
        if spec.search is not None:
            raise ValueError("generalise=True: a search is not tested at other members; test an estimator.")
        if spec.moves_splits:
            raise ValueError("generalise=True needs splits that stay, and those of this cv do not; use KFold.")
        shape = (len(null.orders), len(members), len(members))
        require_memory(shape, np.float64, "the scores of all permutations")
        everywhere = members = stack_members(members)
    known = {0: choose_strategy(spec, replace(data, X=members[0]), everywhere)}  # its P is kept by its job alone
    route = known[0].route
    warn_of_refits(spec.estimator, route, EVERY_LABELING)
    null = null.select(slice(None))
    jobs = (
        delayed(_scores)(null, known.pop(number, None), spec, replace(data, X=X), everywhere)
        for number, X in enumerate(members)
    )
    done = _collect(jobs, n_jobs, Progress(len(members), "members of the family", verbose))
    _warn_if_interrupted(len(done), len(members), "members of the family")
    columns = [values for values, _ in done]
    columns += [np.full_like(columns[0], np.nan)] * (len(members) - len(columns))
    return np.stack(columns, 1), route


def _scores(null, strategy, *test):
    """(scores, choices) of labelings by a strategy, or by the one that is chosen for a ``test``."""
    with threads_for(null.orders.shape[1]):
        strategy = choose_strategy(*test) if strategy is None else strategy
        done = [strategy.scores(null.select(part)) for part in gen_batches(len(null.orders), strategy.n_together)]
    return np.concatenate([values for values, _ in done]), done[0][1]


def _collect(jobs, n_jobs, progress, step=1):
    """Scores of the jobs in order; an interrupt from the keyboard leaves those that are done, if any."""
    results = []
    try:
        for result in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            results.append(result)
            progress.step(steps=step)
    except KeyboardInterrupt:
        if sum(len(values) for values, _ in results) < 2:
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
    why = "not defined (a test part with one class only, say)"
    missing = int(np.isnan(null[:, ~np.isnan(score)]).sum())  # of members that were reached
    if missing:
        theirs, ours = "do not count, as in scikit-learn", "count as at least as good as the true score"
        counted = theirs if spec.as_theirs else ours
        warn_caller(f"{missing} of {null.size} permuted scores are {why} and {counted}. Larger test parts avoid this.")
    undefined = np.isnan(score) & (np.ndim(score) == 0 or ~np.isnan(null).all(0))
    if not undefined.any():
        return result
    smallest = 1.0 / (len(null) + 1.0)
    theirs = f"{smallest:.3g}, scikit-learn's, which counts no permutation then: it says nothing"
    shown = theirs if spec.as_theirs else "nan"
    warn_caller(f"the score of the true labels is {why} and its p-value is {shown}. Use a stratified splitter.")
    pvalue = np.where(undefined, smallest, result.pvalue)[()] if spec.as_theirs else result.pvalue
    return PermutationTestResult(score, null, pvalue, **options)
