"""Permutation tests of a cross-validated score, by the thousand: labels are columns of one product."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, gen_batches, indexable
from threadpoolctl import threadpool_limits

from foldless.bridge.path import REFIT, RefitWarning
from foldless.bridge.progress import Progress
from foldless.linalg.memory import require_memory
from foldless.model_selection._labelings import Batched, TestData
from foldless.model_selection._permutation_arguments import (
    check_arguments,
    check_exchangeable,
    checked_strata,
    drawn_splits,
    family_members,
    is_partition,
    moved_splits,
    name_of,
    stacked,
    warn_of_fixed,
    within_folds,
)
from foldless.model_selection._permutation_way import TestSpec, choose_way, depends_on_labels
from foldless.model_selection._validation import _routed
from foldless.permutation.metrics import METRICS
from foldless.permutation.nulls import ROUNDING, ROUNDING_SINGLE, permutations, with_truth
from foldless.permutation.result import PermutationTestResult

SMALL = 2000  # rows up to which one thread is as quick as two


def permutation_test_score(
    estimator,
    X,
    y,
    *,
    groups=None,
    cv=None,
    n_permutations=100,
    n_jobs=None,
    random_state=0,
    verbose=0,
    scoring=None,
    params=None,
    strata=None,
    resplit=False,
    weights=None,
    confounds=None,
    confounds_in_score=False,
    generalise=False,
    memory_limit=2**29,
):
    """Significance of a cross-validated score: thousands of permutations of the labels for about the price of one fit.

    Every permutation's scores are those of refitting the estimator on each training part with the permuted labels. The
    score of a labeling is the mean over the splits, as in scikit-learn.

    Parameters
    ----------
    estimator : estimator
        LSSVC, LSSVR, KernelFisherDiscriminant, Ridge, RidgeClassifier, KernelRidge: one P for all permutations. A
        pipeline that ends in one of them and whose earlier steps never see y: one P for each split. A FoldlessSearchCV
        with a grid: every permutation chooses its own setting in every training part, without refits. Everything else
        is refitted for every permutation, with a ``RefitWarning``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), array of shape (n_samples, n_features, n_times) or
        list of matrices
        Three axes (as ``Epochs.get_data()`` of MNE gives them) or a list are a family of tests: one for each time, or
        each matrix, with the same permutations, and p-values corrected for their number.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    groups : array-like of shape (n_samples,), default=None
        For the splitter; and, as in scikit-learn, labels are permuted within groups only, unless ``strata`` is given.
    cv : int, splitter or iterable, default=None
        5-fold by default.
    n_permutations : int, default=100
    n_jobs : int, default=None
        Processes; results do not depend on their number.
    random_state : int, RandomState instance or None, default=0
        Draws the permutations, in the same way as scikit-learn.
    verbose : int, default=0
        1 prints progress to standard error.
    scoring : str or callable, default=None
        None: accuracy or R2. "accuracy", "balanced_accuracy", "ber" (a loss), "roc_auc" of two classes, "r2",
        "neg_mean_squared_error" and "correlation" are computed for all permutations at once, other scorers one by one.
    params : dict, default=None
        {"sample_weight": weights} for the fits.
    strata : array-like of shape (n_samples,), default=None
        Labels are permuted among rows with equal entries only: for labels that are exchangeable only there.
    resplit : bool, default=False
        Draw the splits anew for every permutation from the permuted labels, as scikit-learn does; the result is then
        scikit-learn's for the same ``random_state``. By default the splits of the true labels stay. Where they were
        made from the labels (a stratified splitter; an integer for a classifier), labels are then permuted within the
        test sets, so that every permutation is as balanced as the true labels; without that p-values are too small.
        (Where its test sets overlap, the splits go with the labels.) Splits given as a list are taken to be blind to
        the labels.
    weights : {None, "fixed", "permuted"}, default=None
        None: sample weights stay with the rows and class weights follow the labels (as when refitting); "fixed": both
        stay with the rows; "permuted": both follow the labels. Weights that follow need a factorisation for each
        permutation. Weights that were made from the labels and stay favour the true ones: p-values may be too small.
    confounds : array-like of shape (n_samples, n_confounds), default=None
        Columns that are fitted without penalty; they stay with the rows. Centre them: scores leave their part out, and
        a column with a mean takes a constant along, which moves the decisions.
    confounds_in_score : bool, default=False
        Whether scores keep what the confounds explain.
    generalise : bool, default=False
        For a family of equally many features: test each model at the features of every member (time-by-time
        generalisation).
    memory_limit : int, default=2**29
        Bytes for the columns that are worked on at a time, beside P.

    Returns
    -------
    PermutationTestResult
        Unpacks to score, permutation_scores, pvalue; p-values are (b + 1) / (m + 1). An interrupt from the keyboard
        returns what is done, with a warning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import KernelFisherDiscriminant
    >>> from foldless.model_selection import permutation_test_score
    >>> X, y = load_iris(return_X_y=True)
    >>> score, null, p = permutation_test_score(KernelFisherDiscriminant(), X, y, cv=10, n_permutations=2000)
    >>> print(score.round(3), null.mean().round(2), round(p, 4))
    0.973 0.33 0.0005
    """
    members = family_members(X)
    if members is None and generalise:
        raise ValueError("generalise=True needs a family: X with three axes, or a list of feature matrices.")
    if generalise and resplit:
        raise ValueError("generalise=True keeps the splits of the true labels; use resplit=False.")
    if confounds_in_score and confounds is None:
        raise ValueError("confounds_in_score=True: there are no confounds; give them as confounds=.")
    X, y, groups = indexable(X if members is None else members[0], y, groups)
    check_arguments(y, n_permutations, scoring, weights, memory_limit)
    params = params or {}
    cv = check_cv(cv, y, classifier=is_classifier(estimator))
    own = METRICS.get(scoring) if isinstance(scoring, str) else None
    asked = own.scorer() if own is not None and scoring in ("ber", "correlation") else scoring
    scorer = check_scoring(estimator, scoring=asked)
    split_params, fit_params, score_params = _routed("cross_validate", estimator, cv, params, groups, scorer)
    if scoring is None:
        scoring = "accuracy" if is_classifier(estimator) else "r2"
    n = len(y)
    draw = partial(drawn_splits, cv, X, y, split_params)
    first = draw(np.arange(n))
    strata = groups if strata is None else checked_strata(strata, n)
    own_splits = resplit
    if depends_on_labels(cv) and not resplit:
        if is_partition(first, n):
            strata = within_folds(first, n, strata)
        else:
            draw, own_splits = partial(moved_splits, first), True
    require_memory((n_permutations, n), np.int32, "the row numbers of the permutations")
    random_state = check_random_state(random_state)
    orders = with_truth(permutations(n, n_permutations, random_state, strata))
    check_exchangeable(y, orders)

    rest = {name: value for name, value in params.items() if name not in split_params}
    wanted = TestSpec(
        estimator=estimator,
        scoring=scoring,
        asked=asked,
        scorer=scorer,
        first=first,
        own_splits=own_splits,
        resplit=resplit,
        groups=groups,
        params=rest,
        fit_params=fit_params,
        score_params=score_params,
        weights=weights,
        generalise=generalise,
        memory_limit=memory_limit,
    )
    warn_of_fixed(estimator, weights)
    given = TestData(X, y, None, confounds, confounds_in_score)
    greater = True if own is None else own.greater
    options = {"scoring": name_of(scoring), "greater_is_better": greater, "strata": strata}
    single = getattr(X, "dtype", None) == np.float32
    options["rounding"] = 0.0 if resplit else ROUNDING_SINGLE if single else ROUNDING
    run = _alone if members is None else partial(_family, members)
    table, path, options["best_params"] = run(wanted, given, orders, draw, n_jobs, verbose)
    return _result(table[0], table[1:], path, options, resplit)


def _alone(wanted, given, orders, draw, n_jobs, verbose):
    """Scores of the labelings in order, as many as are done, (b,); the path; the choices of a search for the truth."""
    way, size, path = choose_way(wanted, given)
    _warn(path, wanted.estimator)

    def jobs():
        for part in gen_batches(len(orders), size):
            splits = wanted.first
            if wanted.own_splits:
                splits = [wanted.first if number == 0 else draw(orders[number]) for number in range(len(orders))[part]]
            yield delayed(_job)(way.scores, orders.shape[1], orders[part], splits, wanted.own_splits)

    progress = Progress(len(orders) - 1, "permutations", verbose)
    table = np.concatenate(_collected(jobs(), n_jobs, progress, size))
    if len(table) < len(orders):
        _warn_interrupted(len(table) - 1, len(orders) - 1)
    if table.ndim == 1:
        return table, path, None
    return table[:, 0], path, [way.listed[int(place)] for place in table[0, 1:]]


def _family(members, wanted, given, orders, draw, n_jobs, verbose):
    """Scores of all labelings and members, (b, k) or (b, k, k); the path; None."""
    path, n = choose_way(wanted, given)[2], orders.shape[1]
    _warn(path, wanted.estimator)
    splits = [wanted.first, *map(draw, orders[1:])] if wanted.own_splits else wanted.first
    if wanted.generalise:
        if wanted.own_splits:
            raise ValueError("generalise=True needs splits that stay, and those of this cv do not; use KFold.")
        require_memory((len(orders), len(members), len(members)), np.float64, "the scores of all permutations")
        everywhere = stacked(members)
        parts = (replace(given, X=each) for each in everywhere)
        jobs = (delayed(_job)(_generalised, n, wanted, part, everywhere, orders, splits) for part in parts)
    else:
        jobs = (delayed(_job)(_member, n, wanted, replace(given, X=each), orders, splits) for each in members)
    columns = _collected(jobs, n_jobs, Progress(len(members), "members of the family", verbose))
    if len(columns) < len(members):
        _warn_interrupted(len(columns), len(members), "members of the family")
        columns += [np.full_like(columns[0], np.nan)] * (len(members) - len(columns))
    return np.stack(columns, 1), path, None


def _member(wanted, given, orders, splits):
    """Scores (m + 1,) of one member of a family."""
    way, size, _ = choose_way(wanted, given)
    tables = [
        way.scores(orders[part], splits[part] if wanted.own_splits else splits, wanted.own_splits)
        for part in gen_batches(len(orders), size)
    ]
    table = np.concatenate(tables)
    return table[:, 0] if table.ndim == 2 else table


def _generalised(wanted, given, everywhere, orders, splits):
    """Scores (m + 1, k) of the models of one member at the features (k, n, d) of all."""
    way, size, path = choose_way(wanted, given)
    if not isinstance(way, Batched):
        raise ValueError(f"generalise=True needs permutations as columns, which is not possible here: {path.reason}.")
    if not way.task.problem.kernel.takes_rows:
        raise ValueError(
            "generalise=True needs features: precomputed kernels say nothing of rows of one member against those of"
            " another."
        )
    return np.concatenate(
        [way.generalised(orders[part], splits, everywhere) for part in gen_batches(len(orders), size)]
    )


def _job(function, n, *arguments):
    """``function(*arguments)`` for n rows.

    Products of few rows are many and short: threads that wait for each other make them slower, several times so.
    """
    with threadpool_limits(1 if n <= SMALL else None, user_api="blas"):
        return function(*arguments)


def _collected(jobs, n_jobs, progress, step=1):
    """Results of the jobs in order; an interrupt from the keyboard leaves those that are done, if any."""
    results = []
    try:
        for result in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            results.append(result)
            progress.step(steps=min(step, progress.total - progress.done))
    except KeyboardInterrupt:
        if sum(len(np.atleast_1d(each)) for each in results) < 2:
            raise
    return results


def _result(score, null, path, options, resplit):
    """The result, with warnings of scores that are not defined; scikit-learn's p-value of them where it is promised."""
    result = PermutationTestResult(score, null, path=path, **options)
    missing = int(np.isnan(null[:, ~np.isnan(score)]).sum())  # of members that were reached
    if missing:
        counted = "do not count, as in scikit-learn" if resplit else "count as at least as good as the true score"
        _warn_undefined(f"{missing} of {null.size} permuted scores are", counted, "Larger test parts avoid this.")
    undefined = np.isnan(score) & (np.ndim(score) == 0 or ~np.isnan(null).all(0))
    if not undefined.any():
        return result
    smallest = 1.0 / (len(null) + 1.0)
    shown = f"{smallest:.3g}, scikit-learn's, which counts no permutation then: it says nothing" if resplit else "nan"
    _warn_undefined("the score of the true labels is", f"its p-value is {shown}", "Use a stratified splitter.")
    pvalue = np.where(undefined, smallest, result.pvalue)[()] if resplit else result.pvalue
    return PermutationTestResult(score, null, pvalue, path=path, **options)


def _warn_undefined(what, consequence, remedy):
    message = f"{what} not defined (a test part with one class only, say) and {consequence}. {remedy}"
    warnings.warn(message, UserWarning, stacklevel=4)


def _warn(path, estimator):
    if path.kind == REFIT:
        name = type(estimator).__name__
        warnings.warn(f"{name} is refitted for every permutation: {path.reason}.", RefitWarning, stacklevel=4)


def _warn_interrupted(done, total, what="permutations"):
    warnings.warn(f"interrupted: the result rests on {done} of {total} {what}.", UserWarning, stacklevel=4)
