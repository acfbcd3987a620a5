"""Permutation tests of a cross-validated score, by the thousand: labels are columns of one product."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import gen_batches

from foldless._engine.linalg.dispatch import require_memory
from foldless._engine.linalg.threads import jobs_as_here, threads_by_size, threads_for
from foldless._engine.linalg.types import MatrixLike, RandomStateLike
from foldless._engine.permutation.nulls import ROUNDING, ROUNDING_SINGLE, PermutationTestResult, p_values
from foldless._engine.permutation.strategies import Batched, Weighted
from foldless._engine.permutation.tally import LabelingScores
from foldless._sklearn.families import family_members
from foldless._sklearn.permutation import choose_strategy
from foldless._sklearn.permutation_spec import (
    BATCH_LIMITS,
    COUNTS_OF_LABELS,
    PermutationData,
    PermutationSpec,
    check_permutations,
    specify_test,
    warn_of_unchanged_labels,
)
from foldless._sklearn.pipelines import Search, split_steps
from foldless._sklearn.progress import LONG_WITH_REMEDY, Progress, warn_of_time
from foldless._sklearn.request import PermutationRequest
from foldless._sklearn.route import try_closed_form, warn_caller, warn_of_refits
from foldless._sklearn.routing import check_groups
from foldless._sklearn.splits import check_splits
from foldless._sklearn.steps import FittedSteps, StepsLike, front_of
from foldless._sklearn.weights import with_row_weights
from foldless.estimators.checks import as_confounds, dense, rows_and_labels
from foldless.model_selection._nested import nested_cross_validate
from foldless.model_selection._search_runs import LONG
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
    scoring: ScoringLike = None,
    params: Params = None,
    confounds: ConfoundsLike = None,
    null: NullLike = None,
    generalise: bool = False,
    steps: StepsLike = "each",
) -> PermutationTestResult:
    """Significance of a cross-validated score: thousands of permutations of the labels in about the time of one fit.

    The scores of a permutation equal those of refits on each training part with the permuted labels. The score of a
    labeling is the mean over the splits, as in scikit-learn; for regressions, R2 of the pooled held-out predictions.

    Parameters
    ----------
    estimator : estimator
        LSSVC, LSSVR, KernelFisherDiscriminant, Ridge, RidgeClassifier, KernelRidge: one P for all permutations. A
        pipeline that ends in one of them and whose earlier steps never see y: one P for each split. A FoldlessSearchCV
        with a grid: every permutation chooses its own setting in every training part, without refits. All others are
        refitted for every permutation, with a ``RefitWarning``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), array of shape (n_samples, n_features, n_times) or
        iterable of matrices
        Three axes (as ``Epochs.get_data()`` of MNE gives them) or several matrices are a family of tests: one for each
        time, or each matrix, with the same permutations, and p-values corrected for their number. Three axes are one
        test for pipelines that begin with a step of three axes (of mne, pyriemann, aeon or sktime, or with
        scikit-learn's tag ``three_d_array``). Where both are possible an error is raised.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    groups : array-like of shape (n_samples,), default=None
        For the splitter. As in scikit-learn, labels are permuted within groups only, unless ``null`` is given.
    cv : int, splitter or iterable, default=None; 5-fold by default
    n_permutations : int, default=100; 0 for scores alone, whose p-values are 1
    n_jobs : int, default=None; processes; results do not depend on their number
    random_state : int, RandomState instance or None, default=0; draws the permutations, in the same way as scikit-learn
    verbose : int, default=0; 1 prints progress to standard error
    scoring : str, callable or foldless.model_selection.Metric, or a list or dict of them, default=None
        None: accuracy, or for regressions "r2_pooled", R2 of the pooled predictions (with ``null="resplit"`` the mean
        over splits, as in scikit-learn). "accuracy", "balanced_accuracy", "ber" (a loss), "roc_auc" of two classes,
        "r2_pooled", "r2", "neg_mean_squared_error", "correlation" and objects of ``Metric`` are computed for all
        permutations at once, other scorers one by one. Several scores share P and the permutations: the result is that
        of the first, and its ``results`` has all by name. "confusion" beside scores, ``["accuracy", "confusion"]``,
        counts which class gets which label, for the true labels and every permutation.
    params : dict, default=None
        {"sample_weight": weights} for the fits. Sample weights stay with the rows. Class weights follow the labels, as
        in refits, which needs a P for each permutation. Class weights given as sample weights need one P for all
        permutations, but weights made from the true labels favour these, and p-values may be too small.
    confounds : array-like of shape (n_samples, n_confounds) or Confounds, default=None
        As in :func:`cross_validate`: regressed out of the features in every training part. They stay with the rows, and
        so does the part of y that they explain: of regressions the residuals are permuted (Freedman & Lane 1983), and
        classes are permuted by their probabilities given the confounds, of a logistic model (Berrett et al. 2020).
        ``Confounds(values, in_score=True)`` keeps the part that they explain in all scores; not for searches.
    null : str, array-like of shape (n_samples,) or null scheme, default=None
        The labelings that are as likely as the true one under the null hypothesis.

        - None: labels are permuted freely, or within ``groups``. The splits of the true labels stay. If they were
          made from the labels (a stratified splitter; an integer for a classifier), labels are permuted within the
          test sets as well, so that every permutation is as balanced as the true labels; without that p-values are too
          small. (Where the test sets overlap, or leave fewer than 1000 labelings, the splits go with the permuted
          labels instead.) Splits given as a list are assumed not to depend on the labels.
        - "within_test_sets": within the test sets of any splits that test every row once.
        - "free": among all rows, whatever the ``groups``; splits that were made from the labels go with them.
        - "resplit": as in scikit-learn, with equal results for the same ``random_state``: the splits of every
          permutation are drawn from the permuted labels.
        - An array: among rows with equal entries (strata), for labels that are exchangeable only there. Splits that
          were made from the labels are treated as with None.
        - A null scheme: :class:`WholeGroups`, or an object with a method ``orders(n_samples, n_permutations,
          random_state)`` that returns row numbers of shape (n_permutations, n_samples), row i taking the label of row
          ``orders[j, i]``, such as circular shifts of a time series. Splits that were made from the labels go with
          them. With confounds the residuals of regressions are permuted by these orders; orders of classes by your own
          objects are not changed for confounds.
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


def run_permutation_test(request, limits=BATCH_LIMITS):
    """The :class:`PermutationTestResult` of a request."""
    test = PreparedTest.of(request, limits)
    warn_of_unchanged_labels(test.data, test.labelings.orders)
    if test.is_family:
        scores, route = _scores_of_family(test)
    else:
        scores, route = _scores_of_one(test)
    return _results(test.spec, test.data, test.labelings.strata, scores, test.front.route(route))


@dataclass(frozen=True)
class PreparedTest:
    """A permutation test whose arguments are checked and whose labelings are drawn."""

    request: PermutationRequest
    front: FittedSteps
    spec: PermutationSpec
    data: PermutationData
    labelings: Any
    members: list  # features of each test of a family, or of the only one
    is_family: bool

    @classmethod
    def of(cls, request, limits=BATCH_LIMITS):
        """The test of a request."""
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
        is_search = isinstance(last, Search)
        refit, search = (_nested_scores, search_spec(last)) if is_search else (_cross_validated_scores, None)
        data = PermutationData(X, y, None, as_confounds(request.confounds))
        spec, data, labelings = specify_test(request, data, limits, refit, search)
        if is_search:
            spec = replace(spec, search=with_row_weights(spec.search, last, data.y, data.sample_weight))
        return cls(request, fronts[0], spec, data, labelings, members, is_family)


def family_split_scores(request):
    """Scores (n_splits, n_members) of a family by the true labels; None where they do not follow from decisions."""
    test = PreparedTest.of(replace(request, n_permutations=0))
    smallest = min(len(rows) for _, rows in test.spec.true_splits)
    if any(scoring.metric is not None and smallest < scoring.metric.rows for scoring in test.spec.scorings.values()):
        return None
    data = test.data.with_targets(test.spec.estimator)
    strategy = choose_strategy(test.spec, replace(data, X=test.members[0]))
    if not isinstance(strategy, Batched | Weighted):
        return None
    _, obstacle = try_closed_form(check_splits, strategy.task, test.spec.true_splits)
    if obstacle is not None:
        return None
    scores, _ = _scores_of_family(replace(test, data=data), strategy, keeps_some=False)
    return scores.split_scores[:, :, 0].T


def _check_generalisation(request, is_family):
    """Refuse tests at other members where there are none, or where each labeling has splits of its own."""
    if not is_family:
        raise ValueError("generalise=True needs a family: X with three axes, or a list of feature matrices.")
    if request.null_name == "resplit":
        raise ValueError("generalise=True keeps the splits of the true labels, and null='resplit' does not; use None.")


def _cross_validated_scores(spec, data, splits, scores):
    """The :class:`LabelingScores` of one labeling, by refits of the estimator."""
    raw = spec.metadata.fit.get(split_steps(spec.estimator).fit_param("sample_weight"))
    params = spec.metadata.but_splitter(spec.params)
    params = {name: data.sample_weight if value is raw else value for name, value in params.items()}
    options = {"scoring": scores.scoring, "params": params or None, "error_score": "raise"}
    result = cross_validate(spec.estimator, data.X, data.y, cv=splits, confounds=data.confounds, **options)
    return scores.labeling_scores(result)


def _nested_scores(spec, data, splits, scores):
    """The :class:`LabelingScores` of one labeling, by nested cross-validation of the search."""
    params = None if data.sample_weight is None else {"sample_weight": data.sample_weight}
    scorers = {name: scoring.scorer for name, scoring in spec.scorings.items()}
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
    test_scores = {f"test_{name}": values for name, values in nested.test_score.items()}
    return scores.labeling_scores(test_scores, [nested.best_params])


def _scores_of_one(test):
    """(:class:`LabelingScores` of the labelings that are done, route) of a single test."""
    strategy = choose_strategy(test.spec, test.data)
    warn_of_refits(test.spec.estimator, strategy.route, EVERY_LABELING)
    labelings, n = test.labelings, len(test.labelings.orders)
    jobs = (delayed(_scores)(labelings.select(batch), strategy) for batch in _batches(n, strategy))
    progress = Progress(n - 1, "permutations", test.request.verbose)
    batches = _collect(jobs, test.request.n_jobs, progress, strategy.route.quicker, of_labelings=True)
    scores = LabelingScores.joined(batches)
    _warn_if_interrupted(len(scores.scores) - 1, n - 1, "permutations")
    return scores, strategy.route


def _scores_of_family(test, strategy=None, *, keeps_some=True):
    """(:class:`LabelingScores`, route) of a family: all members have the same labelings, and the same targets.

    ``strategy`` is that of the first member where it was chosen. If not ``keeps_some``, an interrupt from the
    keyboard ends the call.
    """
    spec, members, labelings = test.spec, test.members, test.labelings.select(slice(None))
    everywhere = None
    if test.request.generalise:
        members = everywhere = _stacked_members(spec, members, len(labelings.orders))
    data = test.data if strategy is not None else test.data.with_targets(spec.estimator)
    if strategy is None:
        strategy = choose_strategy(spec, replace(data, X=members[0]), everywhere)
    route, strategies = strategy.route, {0: strategy}  # its P is kept by its job alone
    del strategy
    warn_of_refits(spec.estimator, route, EVERY_LABELING)
    jobs = (
        delayed(_scores)(labelings, strategies.pop(number, None), spec, replace(data, X=X), everywhere)
        for number, X in enumerate(members)
    )
    progress = Progress(len(members), "members of the family", test.request.verbose)
    scores = _collect(jobs, test.request.n_jobs, progress, route.quicker)
    if len(scores) < len(members) and not keeps_some:
        raise KeyboardInterrupt
    _warn_if_interrupted(len(scores), len(members), "members of the family")
    return LabelingScores.stacked(scores + [scores[0].undefined()] * (len(members) - len(scores))), route


def _stacked_members(spec, members, n_labelings):
    """The members of a family as one array, which processes share; an error where they cannot test each other."""
    if spec.search is not None:
        raise ValueError("generalise=True: a search is not tested at other members; test an estimator.")
    if spec.moves_splits:
        raise ValueError("generalise=True needs splits that stay, and those of this cv do not; use KFold.")
    require_memory((n_labelings, len(members), len(members)), np.float64, "the scores of all permutations")
    shapes = {np.shape(X) for X in members}
    if len(shapes) > 1:
        raise ValueError(f"generalise=True needs members of the same features; X has shapes {sorted(shapes)}.")
    return np.stack([X.toarray() if hasattr(X, "toarray") else np.asarray(X) for X in members])


def _scores(labelings, strategy, *member):
    """:class:`LabelingScores` by a strategy; None: by the one that is chosen for a ``member`` of a family."""
    with threads_for(labelings.orders.shape[1]):
        if strategy is None:
            strategy = choose_strategy(*member, cautions=False)  # the first member has warned
        n, size = len(labelings.orders), strategy.n_together
        batches = [slice(start, start + size) for start in range(0, n, size)]
        return LabelingScores.joined([strategy.scores(labelings.select(batch)) for batch in batches])


def _batches(n, strategy):
    """Slices of n labelings. If the route names a quicker one, the first slice holds two, whose time is soon known."""
    first = 2 if strategy.route.quicker and n > 2 else 0
    if first:
        yield slice(0, first)
    for batch in gen_batches(n - first, strategy.n_together):
        yield slice(first + batch.start, first + batch.stop)


def _collect(jobs, n_jobs, progress, quicker="", *, of_labelings=False):
    """Results of the jobs in order; after an interrupt from the keyboard those that are done, if any."""
    results = []
    try:
        for result in Parallel(n_jobs=n_jobs, return_as="generator")(jobs_as_here(jobs)):
            results.append(result)
            progress.step(steps=len(result.scores) if of_labelings else 1)
            if len(results) == 1:
                _warn_of_time(progress, n_jobs, quicker)
    except KeyboardInterrupt:
        if sum(len(result.scores) for result in results) < 2:
            raise
    return results


def _warn_of_time(progress, n_jobs, quicker):
    """After the first job, warn if the others will take long: above a minute if something is known to be quicker."""
    remedies = f"Quicker: {quicker}; or" if quicker else "Quicker are"
    remedy = (
        f"{remedies} n_jobs=, fewer permutations and, for a search, a test of the setting that it chose on other rows."
    )
    warn_of_time(progress, n_jobs, remedy, LONG_WITH_REMEDY if quicker else LONG)


def _warn_if_interrupted(done, total, what):
    """Warn if fewer than all were done."""
    if done < total:
        warn_caller(f"interrupted: the result rests on {done} of {total} {what}.")


def _results(spec, data, strata, scores, route):
    """The result of the first score, with those of all scores if there are several, and the confusion matrices."""
    results: dict[str, PermutationTestResult] = {}
    place = 0
    for name, scoring in spec.scorings.items():
        columns = slice(place, place + scoring.width)
        place += scoring.width
        if name == COUNTS_OF_LABELS:
            counts = np.nan_to_num(scores.scores[..., columns]).astype(int)  # none of members that were not reached
            counts = counts.reshape(*counts.shape[:-1], *[round(scoring.width**0.5)] * 2)
            for result in results.values():
                result.confusion, result.permutation_confusions = counts[0], counts[1:]
            break
        result = results[name] = _result(spec, scoring, data, scores.scores[..., columns.start])
        result.path, result.strata = route, strata
        result.best_params = scores.choices and scores.choices[0]
        result.split_scores = None if scoring.pooled else scores.split_scores[..., columns.start]
        decisions = scores.decisions
        result.decisions = decisions[:, 0] if decisions is not None and decisions.shape[1] == 1 else decisions
    first = next(iter(results.values()))
    first.results = results if len(results) > 1 else None
    return first


def _result(spec, scoring, data, scores):
    """The result of one score, with its p-value."""
    score, null = scores[0], scores[1:]
    single = getattr(data.X, "dtype", None) == np.float32
    rounding = ROUNDING_SINGLE if single else ROUNDING
    if spec.matches_sklearn and is_classifier(
        spec.estimator
    ):  # scores of labels have scikit-learn's last bit, of values not
        rounding = 0.0
    pvalue = p_values(score, null, greater=scoring.greater, rounding=rounding, count_undefined=not spec.matches_sklearn)
    undefined = _warn_of_undefined_scores(spec, data, score, null)
    if spec.matches_sklearn and undefined.any():
        pvalue = np.where(undefined, _smallest_p_value(null), pvalue)[()]
    return PermutationTestResult(
        score,
        null,
        pvalue,
        scoring=scoring.name,
        greater_is_better=scoring.greater,
        rounding=rounding,
        generalised=np.ndim(score) == 2,
    )


def _warn_of_undefined_scores(spec, data, score, null):
    """Whether each score of the true labels is undefined; warn of those, and of undefined scores of permutations."""
    why = "not defined (a test part with one class only, say)"
    missing = int(np.isnan(null[:, ~np.isnan(score)]).sum())  # of members that were reached
    if missing:
        effect = "count as at least as good as the true score"
        if spec.matches_sklearn:
            effect = "do not count, as in scikit-learn"
        warn_caller(f"{missing} of {null.size} permuted scores are {why} and {effect}. Larger test parts avoid this.")
    undefined = np.isnan(score) & (np.ndim(score) == 0 or ~np.isnan(null).all(0))
    if undefined.any():
        text = "nan"
        if spec.matches_sklearn:
            text = f"{_smallest_p_value(null):.3g}, scikit-learn's, which counts no permutation then: it says nothing"
        remedy = "Use larger test parts."
        if is_classifier(spec.estimator) and np.ndim(data.y) == 1:
            rare = np.unique(np.asarray(data.y), return_counts=True)[1].min()
            remedy = f"The rarest class has {rare} rows: use a stratified splitter of at most as many folds."
        warn_caller(f"the score of the true labels is {why} and its p-value is {text}. {remedy}")
    return undefined


def _smallest_p_value(null):
    return 1.0 / (len(null) + 1.0)
