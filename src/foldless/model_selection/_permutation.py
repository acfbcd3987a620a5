"""Permutation tests of a cross-validated score, by the thousand: labels are columns of one product."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import gen_batches

from foldless.bridge.families import family_members
from foldless.bridge.permutation import choose_strategy
from foldless.bridge.permutation_spec import CONFUSION, PermutationData, check_numbers, specify_test, warn_of_weak_null
from foldless.bridge.pipelines import Search, split_steps
from foldless.bridge.progress import Progress
from foldless.bridge.route import warn_caller, warn_of_refits
from foldless.bridge.routing import check_groups
from foldless.bridge.steps import StepsLike, front_of
from foldless.bridge.weights import with_row_weights
from foldless.estimators.checks import dense, rows_and_labels
from foldless.heldout.caution import NothingLearntWarning
from foldless.linalg.memory import require_memory
from foldless.linalg.threads import threads_by_size, threads_for
from foldless.linalg.types import MatrixLike, RandomStateLike
from foldless.model_selection._nested import nested_cross_validate
from foldless.model_selection._permutation_runs import batches, collect, warn_if_interrupted
from foldless.model_selection._search_spec import search_spec
from foldless.model_selection._types import CVLike, Params, ScoringLike
from foldless.model_selection._validation import cross_validate
from foldless.permutation.metrics import Metric
from foldless.permutation.nulls import ROUNDING, ROUNDING_SINGLE, NullScheme, PermutationTestResult, p_values
from foldless.permutation.tally import Found

EVERY_LABELING = "for every permutation"


@threads_by_size
def permutation_test_score(
    estimator: BaseEstimator,
    X: MatrixLike | Iterable[MatrixLike],
    y: MatrixLike,
    *,
    groups: ArrayLike | None = None,
    cv: CVLike = None,
    n_permutations: int = 100,
    n_jobs: int | None = None,
    random_state: RandomStateLike = 0,
    verbose: int = 0,
    scoring: ScoringLike | Metric = None,
    params: Params = None,
    strata: ArrayLike | None = None,
    resplit: bool = False,
    weights: Literal["fixed", "permuted"] | None = None,
    confounds: ArrayLike | None = None,
    confounds_in_score: bool = False,
    generalise: bool = False,
    memory_limit: int = 2**29,
    null: NullScheme | None = None,
    steps: StepsLike = "each",
    family: bool | None = None,
    confusion: bool = False,
) -> PermutationTestResult:
    """Significance of a cross-validated score: thousands of permutations of the labels for about the price of one fit.

    Every permutation's scores are those of refitting the estimator on each training part with the permuted labels. The
    score of a labeling is the mean over the splits, as in scikit-learn, or for values R2 of all held-out rows together.

    Parameters
    ----------
    estimator : estimator
        LSSVC, LSSVR, KernelFisherDiscriminant, Ridge, RidgeClassifier, KernelRidge: one P for all permutations. A
        pipeline that ends in one of them and whose earlier steps never see y: one P for each split. A FoldlessSearchCV
        with a grid: every permutation chooses its own setting in every training part, without refits. Everything else
        is refitted for every permutation, with a ``RefitWarning``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), array of shape (n_samples, n_features, n_times) or
        iterable of matrices
        Three axes (as ``Epochs.get_data()`` of MNE gives them) or several matrices are a family of tests: one for each
        time, or each matrix, with the same permutations, and p-values corrected for their number. See ``family``.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    groups : array-like of shape (n_samples,), default=None
        For the splitter; and, as in scikit-learn, labels are permuted within groups only, unless ``strata`` is given.
    cv : int, splitter or iterable, default=None; 5-fold by default
    n_permutations : int, default=100; 0 for scores alone, whose p-values are 1
    n_jobs : int, default=None; processes; results do not depend on their number
    random_state : int, RandomState instance or None, default=0; draws the permutations, in the same way as scikit-learn
    verbose : int, default=0; 1 prints progress to standard error
    scoring : str, callable or foldless.permutation.metrics.Metric, or a list or dict of them, default=None
        None: accuracy, or for values "r2_pooled", R2 of all held-out rows together (with ``resplit=True`` the mean over
        splits, as in scikit-learn). "accuracy", "balanced_accuracy", "ber" (a loss), "roc_auc" of two classes,
        "r2_pooled", "r2", "neg_mean_squared_error", "correlation" and a ``Metric`` of your own are computed for all
        permutations at once, other scorers one by one. Several scores share P and the permutations: the result is that
        of the first, and its ``results`` has all by name.
    params : dict, default=None; {"sample_weight": weights} for the fits
    strata : array-like of shape (n_samples,), default=None
        Labels are permuted among rows with equal entries only: for labels that are exchangeable only there.
    resplit : bool, default=False
        Draw the splits anew for every permutation from the permuted labels, as scikit-learn does; the result is then
        scikit-learn's for the same ``random_state``. By default the splits of the true labels stay. Where they were
        made from the labels (a stratified splitter; an integer for a classifier), labels are then permuted within the
        test sets, so that every permutation is as balanced as the true labels; without that p-values are too small.
        (Where its test sets overlap, or leave fewer than 1000 labelings, labels are permuted freely and the splits go
        with them.) Splits given as a list are taken to be blind to the labels.
    weights : {None, "fixed", "permuted"}, default=None
        None: sample weights stay with the rows and class weights follow the labels (as when refitting); "fixed": both
        stay with the rows; "permuted": both follow the labels. Weights that follow need a P for each
        permutation. Weights that were made from the labels and stay favour the true ones: p-values may be too small.
    confounds : array-like of shape (n_samples, n_confounds), default=None
        As in :func:`cross_validate`: regressed out of the features in every training part. They stay with the rows,
        and what they explain of y too: of values the residuals are permuted (Freedman & Lane 1983), and classes with
        their probabilities given the confounds, by a logistic model (Berrett et al. 2020).
    confounds_in_score : bool, default=False
        Whether scores keep what the confounds explain, those of permutations too; not for searches.
    generalise : bool, default=False
        For a family of equally many features: test each model at the features of every member (time-by-time
        generalisation).
    memory_limit : int, default=2**29; bytes for the columns that are worked on at a time, beside P
    null : NullScheme, default=None
        Which labelings are as likely as the true one: an object with a method ``orders(n_samples, n_permutations,
        random_state)`` that returns row numbers of shape (n_permutations, n_samples), row i taking the label of row
        ``orders[j, i]``. In place of ``strata``, for labels that are not exchangeable one by one: those of a time
        series may be shifted in a circle, say. Splits that were made from the labels go with them. With confounds the
        residuals of values take these orders; of classes the orders are taken as they are.
    steps : {"each", "once"}, default="each"; as in :func:`cross_validate`
    family : bool, default=None
        Whether X with three axes is a family, a test for each time (True), or goes to the estimator whole, as one test
        (False). None: whole for pipelines that begin with a step of three axes (of mne, pyriemann, aeon or sktime, or
        with scikit-learn's tag ``three_d_array``), a family for foldless' and scikit-learn's estimators, and an error
        where nothing tells.
    confusion : bool, default=False
        Whether to count, for the true labels and every permutation, which class gets which label.

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
    check_groups(groups)
    by_time = generalise and getattr(X, "ndim", 0) == 3
    members, is_family = family_members(X, estimator, True if by_time and family is None else family)
    _check_options(is_family, generalise, resplit, strata, null)
    if confounds_in_score and confounds is None:
        raise ValueError("confounds_in_score=True: there are no confounds; give them as confounds=.")
    fronts = [front_of(estimator, each, params, steps) for each in members]
    estimator = fronts[0].estimator
    params = fronts[0].params
    members = [each.X for each in fronts]
    X, y, groups = rows_and_labels(members[0], dense(y), groups)
    check_numbers(y, n_permutations, weights, memory_limit, least=0)
    last = split_steps(estimator).last
    splitting = {"cv": cv, "groups": groups, "strata": strata, "null": null, "resplit": resplit, "stay": generalise}
    asked = {
        "scoring": scoring,
        "confusion": confusion,
        "params": params,
        "weights": weights,
        "memory_limit": memory_limit,
        "steps": steps,
    }
    searched = isinstance(last, Search)
    refit = {"refit": _searched, "search": search_spec(last)} if searched else {"refit": _validated}
    data = PermutationData(X, y, None, confounds, confounds_in_score)
    spec, data, labelings = specify_test(estimator, data, n_permutations, random_state, **splitting, **asked, **refit)
    if searched:
        spec = replace(spec, search=with_row_weights(spec.search, last, data.y, data.sample_weight))
    warn_of_weak_null(estimator, data, labelings.orders, weights)
    if is_family:
        found = _run_family(spec, data, labelings, members, n_jobs, verbose, generalise=generalise)
    else:
        found = _run_single(spec, data, labelings, n_jobs, verbose)
    return _build_results(spec, data, labelings.strata, found[0], fronts[0].route(found[1]))


def _check_options(is_family, generalise, resplit, strata, null):
    if generalise and not is_family:
        raise ValueError("generalise=True needs a family: X with three axes, or a list of feature matrices.")
    if generalise and resplit:
        raise ValueError("generalise=True keeps the splits of the true labels; use resplit=False.")
    if null is not None and not hasattr(null, "orders"):
        raise ValueError(f"null={null!r} must have a method orders(n_samples, n_permutations, random_state).")
    if null is not None and strata is not None:
        raise ValueError("strata and null both say which labels are exchangeable; give one of them.")


def _validated(spec, data, splits, scores):
    raw = spec.metadata.fit.get(split_steps(spec.estimator).fit_param("sample_weight"))
    params = spec.metadata.but_splitter(spec.params)
    params = {name: data.sample_weight if value is raw else value for name, value in params.items()}
    options = {"scoring": scores.scoring, "params": params or None, "error_score": "raise"}
    confounds = {"confounds": data.confounds, "confounds_in_score": data.confounds_in_score}
    return scores.found(cross_validate(spec.estimator, data.X, data.y, cv=splits, **options, **confounds))


def _searched(spec, data, splits, scores):
    params = None if data.sample_weight is None else {"sample_weight": data.sample_weight}
    scorers = {name: each.scorer for name, each in spec.scorings.items()}
    asked = scores.scoring if isinstance(scores.scoring, dict) else scorers
    options = {"groups": spec.groups, "scoring": asked, "params": params, "n_jobs": 1}
    options |= {"confounds": data.confounds, "steps": spec.steps}
    nested = nested_cross_validate(spec.estimator, data.X, data.y, cv=splits, **options)
    return scores.found({f"test_{name}": each for name, each in nested.test_score.items()}, [nested.best_params])


def _run_single(spec, data, null, n_jobs, verbose):
    """(what is found for the labelings that are done, route)."""
    strategy = choose_strategy(spec, data)
    warn_of_refits(spec.estimator, strategy.route, EVERY_LABELING)
    n = len(null.orders)
    jobs = (delayed(_scores)(null.select(part), strategy) for part in batches(n, strategy))
    progress = Progress(n - 1, "permutations", verbose)
    done = collect(jobs, n_jobs, progress, strategy.route.quicker, of_labelings=True)
    found = Found.joined(done)
    warn_if_interrupted(len(found.scores) - 1, n - 1, "permutations")
    return found, strategy.route


def _run_family(spec, data, null, members, n_jobs, verbose, *, generalise=False):
    """(what is found, route) of a family: all members have the same labelings."""
    everywhere = None
    if generalise:
        if spec.search is not None:
            raise ValueError("generalise=True: a search is not tested at other members; test an estimator.")
        if spec.moves_splits:
            raise ValueError("generalise=True needs splits that stay, and those of this cv do not; use KFold.")
        shape = (len(null.orders), len(members), len(members))
        require_memory(shape, np.float64, "the scores of all permutations")
        shapes = {np.shape(each) for each in members}
        if len(shapes) > 1:
            raise ValueError(f"generalise=True needs members of the same features; X has shapes {sorted(shapes)}.")
        members = [each.toarray() if hasattr(each, "toarray") else np.asarray(each) for each in members]
        everywhere = members = np.stack(members)  # one array, which processes share
    known = {0: choose_strategy(spec, replace(data, X=members[0]), everywhere)}  # its P is kept by its job alone
    route = known[0].route
    warn_of_refits(spec.estimator, route, EVERY_LABELING)
    null = null.select(slice(None))
    jobs = (
        delayed(_scores)(null, known.pop(number, None), spec, replace(data, X=X), everywhere)
        for number, X in enumerate(members)
    )
    done = collect(jobs, n_jobs, Progress(len(members), "members of the family", verbose), route.quicker)
    warn_if_interrupted(len(done), len(members), "members of the family")
    return Found.stacked(done + [done[0].undefined()] * (len(members) - len(done))), route


def _scores(null, strategy, *test):
    """What is found for labelings by a strategy, or by the one that is chosen for a ``test``."""
    with threads_for(null.orders.shape[1]):
        if strategy is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NothingLearntWarning)  # said of the first member
                strategy = choose_strategy(*test)
        parts = gen_batches(len(null.orders), strategy.n_together)
        return Found.joined([strategy.scores(null.select(part)) for part in parts])


def _build_results(spec, data, strata, found, route):
    """The result of the first score, with those of all where there are several, and the confusion matrices."""
    results: dict[str, PermutationTestResult] = {}
    place = 0
    for name, scoring in spec.scorings.items():
        columns = slice(place, place + scoring.width)
        place += scoring.width
        if name == CONFUSION:
            counts = np.nan_to_num(found.scores[..., columns]).astype(int)  # none of members that were not reached
            counts = counts.reshape(*counts.shape[:-1], *[round(scoring.width**0.5)] * 2)
            for each in results.values():
                each.confusion, each.permutation_confusions = counts[0], counts[1:]
            break
        each = results[name] = _build_result(spec, scoring, data, found.scores[..., columns.start])
        each.path, each.strata = route, strata
        each.best_params = found.choices and found.choices[0]
        each.split_scores = None if scoring.pooled else found.split_scores[..., columns.start]
        D = found.decisions
        each.decisions = D[:, 0] if D is not None and D.shape[1] == 1 else D
    first = next(iter(results.values()))
    first.results = results if len(results) > 1 else None
    return first


def _build_result(spec, scoring, data, scores):
    """The result, with warnings of scores that are not defined; scikit-learn's p-value of them where it is promised."""
    score, null = scores[0], scores[1:]
    single = getattr(data.X, "dtype", None) == np.float32
    rounding = ROUNDING_SINGLE if single else ROUNDING
    if spec.as_theirs and is_classifier(spec.estimator):  # scores of labels have scikit-learn's last bit, of values not
        rounding = 0.0
    pvalue = p_values(score, null, greater=scoring.greater, rounding=rounding, count_undefined=not spec.as_theirs)
    why = "not defined (a test part with one class only, say)"
    missing = int(np.isnan(null[:, ~np.isnan(score)]).sum())  # of members that were reached
    if missing:
        theirs, ours = "do not count, as in scikit-learn", "count as at least as good as the true score"
        counted = theirs if spec.as_theirs else ours
        warn_caller(f"{missing} of {null.size} permuted scores are {why} and {counted}. Larger test parts avoid this.")
    undefined = np.isnan(score) & (np.ndim(score) == 0 or ~np.isnan(null).all(0))
    if undefined.any():
        smallest, shown = 1.0 / (len(null) + 1.0), "nan"
        if spec.as_theirs:
            pvalue = np.where(undefined, smallest, pvalue)[()]
            shown = f"{smallest:.3g}, scikit-learn's, which counts no permutation then: it says nothing"
        remedy = "Use larger test parts."
        if is_classifier(spec.estimator) and np.ndim(data.y) == 1:
            rare = np.unique(np.asarray(data.y), return_counts=True)[1].min()
            remedy = f"The rarest class has {rare} rows: use a stratified splitter of at most as many folds."
        warn_caller(f"the score of the true labels is {why} and its p-value is {shown}. {remedy}")
    asked = {"scoring": scoring.name, "greater_is_better": scoring.greater, "rounding": rounding}
    return PermutationTestResult(score, null, pvalue, generalised=np.ndim(score) == 2, **asked)
