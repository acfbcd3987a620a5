"""Permutation tests of a cross-validated score, by the thousand: labels are columns of one product."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import gen_batches

from foldless._engine.heldout.caution import NothingLearntWarning
from foldless._engine.linalg.memory import require_memory
from foldless._engine.linalg.threads import threads_by_size, threads_for
from foldless._engine.linalg.types import MatrixLike, RandomStateLike
from foldless._engine.permutation.metrics import Metric
from foldless._engine.permutation.nulls import ROUNDING, ROUNDING_SINGLE, PermutationTestResult, p_values
from foldless._engine.permutation.tally import Found
from foldless._sklearn.families import family_members
from foldless._sklearn.permutation import choose_strategy
from foldless._sklearn.permutation_spec import (
    COUNTS_OF_LABELS,
    MEMORY_LIMIT,
    PermutationData,
    PermutationRequest,
    check_permutations,
    specify_test,
    warn_of_unchanged_labels,
)
from foldless._sklearn.pipelines import Search, split_steps
from foldless._sklearn.progress import Progress
from foldless._sklearn.route import warn_caller, warn_of_refits
from foldless._sklearn.routing import check_groups
from foldless._sklearn.steps import StepsLike, front_of
from foldless._sklearn.weights import with_row_weights
from foldless.estimators.checks import as_confounds, dense, rows_and_labels
from foldless.model_selection._nested import nested_cross_validate
from foldless.model_selection._permutation_runs import batches, collect, warn_if_interrupted
from foldless.model_selection._search_spec import search_spec
from foldless.model_selection._types import ConfoundsLike, CVLike, NullLike, Params, ScoringLike
from foldless.model_selection._validation import cross_validate

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
    confounds: ConfoundsLike = None,
    null: NullLike = None,
    generalise: bool = False,
    steps: StepsLike = "each",
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
        time, or each matrix, with the same permutations, and p-values corrected for their number. Three axes are one
        test for pipelines that begin with a step of three axes (of mne, pyriemann, aeon or sktime, or with
        scikit-learn's tag ``three_d_array``), and an error where nothing tells.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    groups : array-like of shape (n_samples,), default=None
        For the splitter; and, as in scikit-learn, labels are permuted within groups only, unless ``null`` says
        otherwise.
    cv : int, splitter or iterable, default=None; 5-fold by default
    n_permutations : int, default=100; 0 for scores alone, whose p-values are 1
    n_jobs : int, default=None; processes; results do not depend on their number
    random_state : int, RandomState instance or None, default=0; draws the permutations, in the same way as scikit-learn
    verbose : int, default=0; 1 prints progress to standard error
    scoring : str, callable or foldless.model_selection.Metric, or a list or dict of them, default=None
        None: accuracy, or for values "r2_pooled", R2 of all held-out rows together (with ``null="resplit"`` the mean
        over splits, as in scikit-learn). "accuracy", "balanced_accuracy", "ber" (a loss), "roc_auc" of two classes,
        "r2_pooled", "r2", "neg_mean_squared_error", "correlation" and a ``Metric`` of your own are computed for all
        permutations at once, other scorers one by one. Several scores share P and the permutations: the result is that
        of the first, and its ``results`` has all by name. "confusion" beside scores, ``["accuracy", "confusion"]``,
        counts which class gets which label, for the true labels and every permutation.
    params : dict, default=None
        {"sample_weight": weights} for the fits. Sample weights stay with the rows. Class weights follow the labels, as
        in refits, which needs a P for each permutation. Class weights that stay are sample weights: one P serves all
        permutations, but weights that were made from the labels favour the true ones, and p-values may be too small.
    confounds : array-like of shape (n_samples, n_confounds) or Confounds, default=None
        As in :func:`cross_validate`: regressed out of the features in every training part. They stay with the rows,
        and what they explain of y too: of values the residuals are permuted (Freedman & Lane 1983), and classes with
        their probabilities given the confounds, by a logistic model (Berrett et al. 2020).
        ``Confounds(values, in_score=True)`` keeps what they explain in the scores, those of permutations too; not for
        searches.
    null : str, array-like of shape (n_samples,) or null scheme, default=None
        Which labelings are as likely as the true one.

        - None: labels are permuted freely, or within ``groups``. The splits of the true labels stay. Where they were
          made from the labels (a stratified splitter; an integer for a classifier), labels are permuted within the
          test sets as well, so that every permutation is as balanced as the true labels; without that p-values are too
          small. (Where the test sets overlap, or leave fewer than 1000 labelings, the splits go with the permuted
          labels instead.) Splits given as a list are taken to be blind to the labels.
        - "within_test_sets": within the test sets of any splits that test every row once.
        - "free": among all rows, whatever the ``groups``; splits that were made from the labels go with them.
        - "resplit": as in scikit-learn, whose result it gives for the same ``random_state``: the splits are drawn anew
          for every permutation from the permuted labels.
        - An array: among rows with equal entries (strata), for labels that are exchangeable only there. Splits that
          were made from the labels are treated as with None.
        - A null scheme: :class:`WholeGroups`, or an object with a method ``orders(n_samples, n_permutations,
          random_state)`` that returns row numbers of shape (n_permutations, n_samples), row i taking the label of row
          ``orders[j, i]``. Those of a time series may be shifted in a circle, say. Splits that were made from the
          labels go with them. With confounds the residuals of values take these orders; of classes the orders of your
          own objects are taken as they are.
    generalise : bool, default=False
        For a family of equally many features: test each model at the features of every member (time-by-time
        generalisation).
    steps : {"each", "once"}, default="each"; as in :func:`cross_validate`

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
    request = PermutationRequest(
        estimator=estimator,
        X=X,
        y=y,
        groups=groups,
        cv=cv,
        n_permutations=n_permutations,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
        scoring=scoring,
        params=params,
        confounds=confounds,
        null=null,
        generalise=generalise,
        steps=steps,
    )
    return run_permutation_test(request)


def run_permutation_test(request, memory_limit=MEMORY_LIMIT):
    """The :class:`PermutationTestResult` of a request; ``memory_limit`` are bytes of columns at a time, beside P."""
    check_groups(request.groups)
    members, is_family = family_members(request.X, request.estimator, generalise=request.generalise)
    if request.generalise:
        _check_generalisation(request, is_family)
    fronts = [front_of(request.estimator, X, request.params, request.steps) for X in members]
    members = [front.X for front in fronts]
    X, y, groups = rows_and_labels(members[0], dense(request.y), request.groups)
    check_permutations(y, request.n_permutations, least=0)
    request = replace(request, estimator=fronts[0].estimator, params=fronts[0].params, groups=groups)
    last = split_steps(request.estimator).last
    searched = isinstance(last, Search)
    refit, search = (_searched, search_spec(last)) if searched else (_validated, None)
    data = PermutationData(X, y, None, as_confounds(request.confounds))
    spec, data, labelings = specify_test(request, data, memory_limit, refit, search)
    if searched:
        spec = replace(spec, search=with_row_weights(spec.search, last, data.y, data.sample_weight))
    warn_of_unchanged_labels(data, labelings.orders)
    if is_family:
        found, route = _run_family(spec, data, labelings, members, request)
    else:
        found, route = _run_single(spec, data, labelings, request)
    return _build_results(spec, data, labelings.strata, found, fronts[0].route(route))


def _check_generalisation(request, is_family):
    """Refuse tests at other members where there are none, or where each labeling has splits of its own."""
    if not is_family:
        raise ValueError("generalise=True needs a family: X with three axes, or a list of feature matrices.")
    if request.null_name == "resplit":
        raise ValueError("generalise=True keeps the splits of the true labels, and null='resplit' does not; use None.")


def _validated(spec, data, splits, scores):
    raw = spec.metadata.fit.get(split_steps(spec.estimator).fit_param("sample_weight"))
    params = spec.metadata.but_splitter(spec.params)
    params = {name: data.sample_weight if value is raw else value for name, value in params.items()}
    options = {"scoring": scores.scoring, "params": params or None, "error_score": "raise"}
    result = cross_validate(spec.estimator, data.X, data.y, cv=splits, confounds=data.confounds, **options)
    return scores.found(result)


def _searched(spec, data, splits, scores):
    params = None if data.sample_weight is None else {"sample_weight": data.sample_weight}
    scorers = {name: each.scorer for name, each in spec.scorings.items()}
    nested = nested_cross_validate(
        spec.estimator,
        data.X,
        data.y,
        cv=splits,
        groups=spec.groups,
        scoring=scores.scoring if isinstance(scores.scoring, dict) else scorers,
        params=params,
        n_jobs=1,
        confounds=data.confounds,
        steps=spec.steps,
    )
    return scores.found({f"test_{name}": each for name, each in nested.test_score.items()}, [nested.best_params])


def _run_single(spec, data, null, request):
    """(what is found for the labelings that are done, route)."""
    strategy = choose_strategy(spec, data)
    warn_of_refits(spec.estimator, strategy.route, EVERY_LABELING)
    n = len(null.orders)
    jobs = (delayed(_scores)(null.select(part), strategy) for part in batches(n, strategy))
    progress = Progress(n - 1, "permutations", request.verbose)
    done = collect(jobs, request.n_jobs, progress, strategy.route.quicker, of_labelings=True)
    found = Found.joined(done)
    warn_if_interrupted(len(found.scores) - 1, n - 1, "permutations")
    return found, strategy.route


def _run_family(spec, data, null, members, request):
    """(what is found, route) of a family: all members have the same labelings."""
    everywhere = None
    if request.generalise:
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
    progress = Progress(len(members), "members of the family", request.verbose)
    done = collect(jobs, request.n_jobs, progress, route.quicker)
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
        if name == COUNTS_OF_LABELS:
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
