"""scikit-learn's cross_val_predict, cross_val_score and cross_validate, from one fit where exactness allows."""

import warnings
from dataclasses import dataclass

import numpy as np
import sklearn
from sklearn import model_selection as skl
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.metrics._scorer import _BaseScorer
from sklearn.model_selection import LeaveOneOut, check_cv
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import _num_samples

from foldless.bridge.decoded import Decoded
from foldless.bridge.path import (
    ONE_FIT,
    ONE_P_PER_FOLD,
    REFIT,
    Path,
    RefitWarning,
    build_task,
    check_leave_one_out,
    check_splits,
    confound_params,
    route,
)
from foldless.bridge.standin import Run, StandIn, rows_for

METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")


def cross_validate(
    estimator,
    X,
    y=None,
    *,
    groups=None,
    scoring=None,
    cv=None,
    n_jobs=None,
    verbose=0,
    params=None,
    pre_dispatch="2*n_jobs",
    return_train_score=False,
    return_estimator=False,
    return_indices=False,
    error_score=np.nan,
    confounds=None,
    confounds_in_score=False,
):
    """Scores of every split; :func:`sklearn.model_selection.cross_validate` from one fit where that is exact.

    All parameters but those of confounds are scikit-learn's, and so are the numbers, to rounding; ``gamma="scale"``
    and ``class_weight="balanced"`` of foldless' estimators are resolved once on all rows (``docs/exactness.md``).
    ``n_jobs`` and ``pre_dispatch`` matter where the estimator is refitted; one fit uses the threads of the linear
    algebra library.

    Parameters
    ----------
    confounds : array-like of shape (n_samples, n_confounds), default=None
        Columns fitted beside the intercept, without penalty, on every training part; scores leave their part out, with
        the coefficients of the training part (what that does and what not: ``docs/exactness.md``). Centre them, so that
        a cut at 0 keeps its meaning. Behind fitted steps of a pipeline they go to ``fit`` of its last step, one of
        foldless' estimators.
    confounds_in_score : bool, default=False
        Keep the confounds' part in the held-out predictions: confounds are then features without penalty.

    Returns
    -------
    dict
        scikit-learn's dictionary and ``"path"``, which says how the numbers were computed and why. The time of the
        one fit is part of the first ``fit_time``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import LSSVC
    >>> from foldless.model_selection import cross_validate
    >>> X, y = load_iris(return_X_y=True)
    >>> result = cross_validate(LSSVC(alpha=0.1), X, y, cv=10, scoring=["accuracy", "f1_macro"])
    >>> print(result["test_accuracy"].mean().round(3))
    0.987
    >>> result["path"].kind
    'one fit'
    """
    X, y = indexable(X, y)
    options = {"scoring": scoring, "confounds": confounds, "in_score": confounds_in_score}
    plan = _plan("cross_validate", estimator, X, y, groups, cv, params, **options)
    options = {
        "scoring": scoring,
        "verbose": verbose,
        "return_train_score": return_train_score,
        "return_estimator": return_estimator,
        "return_indices": return_indices,
        "error_score": error_score,
    }
    if plan.run is None:
        result = skl.cross_validate(estimator, X, y, **plan.refit, n_jobs=n_jobs, pre_dispatch=pre_dispatch, **options)
        return {**result, "path": plan.path}
    options["scoring"] = _scoring_of_rows(scoring, X)
    if confounds is not None and (return_estimator or _reads_estimators(options["scoring"])):
        plan.run.check_materialises(confounds_in_score)
    result = skl.cross_validate(StandIn(plan.run), plan.rows, y, cv=plan.splits, params=plan.score_params, **options)
    if return_estimator:
        result["estimator"] = [standin.materialise() for standin in result["estimator"]]
    return {**result, "path": plan.path}


def cross_val_score(
    estimator,
    X,
    y=None,
    *,
    groups=None,
    scoring=None,
    cv=None,
    n_jobs=None,
    verbose=0,
    params=None,
    pre_dispatch="2*n_jobs",
    error_score=np.nan,
    confounds=None,
    confounds_in_score=False,
):
    """Score of every split; :func:`sklearn.model_selection.cross_val_score` from one fit where that is exact.

    The parameters are those of :func:`cross_validate`. For leave-one-out, ``loo_score_`` of the
    fitted estimator or a metric of :func:`cross_val_predict` is quicker: scoring rows one by one takes longer than
    predicting them.

    Returns
    -------
    ndarray of shape (n_splits,)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from foldless.model_selection import cross_val_score
    >>> X, y = load_diabetes(return_X_y=True)
    >>> cross_val_score(Ridge(alpha=0.1), X, y, cv=3).round(3)
    array([0.459, 0.495, 0.512])
    """
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(
            f"scoring={scoring!r} names several metrics; cross_val_score takes one, cross_validate takes many."
        )
    result = cross_validate(
        estimator,
        X,
        y,
        groups=groups,
        scoring=scoring,
        cv=cv,
        n_jobs=n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        error_score=error_score,
        confounds=confounds,
        confounds_in_score=confounds_in_score,
    )
    if "test_score" not in result:
        raise ValueError("scoring returned several values; cross_val_score takes one, cross_validate takes many.")
    return result["test_score"]


def cross_val_predict(
    estimator,
    X,
    y=None,
    *,
    groups=None,
    cv=None,
    n_jobs=None,
    verbose=0,
    params=None,
    pre_dispatch="2*n_jobs",
    method="predict",
    confounds=None,
    confounds_in_score=False,
):
    """Held-out prediction of every row: :func:`sklearn.model_selection.cross_val_predict` from one fit where exact.

    The parameters are those of scikit-learn and the confounds of :func:`cross_validate`.

    Returns
    -------
    ndarray
        What ``method`` returns, for every row by the model fitted without its fold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import LeaveOneOut
    >>> from foldless import KernelFisherDiscriminant
    >>> from foldless.model_selection import cross_val_predict
    >>> X, y = load_iris(return_X_y=True)
    >>> p = cross_val_predict(KernelFisherDiscriminant(alpha=0.1), X, y, cv=LeaveOneOut())
    >>> print((p == y).mean().round(3))
    0.98
    """
    getattr(estimator, method)  # the estimator's own error where it has no such method
    X, y = indexable(X, y)
    options = {"method": method, "confounds": confounds, "in_score": confounds_in_score}
    plan = _plan("cross_val_predict", estimator, X, y, groups, cv, params, **options)
    if plan.run is None:
        numbered = method in METHODS[1:] and np.ndim(y) == 1
        return skl.cross_val_predict(
            Decoded(estimator, np.unique(y)) if numbered else estimator,
            X,
            y,
            **plan.refit,
            n_jobs=n_jobs,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            method=method,
        )
    if plan.splits is None:
        return plan.run.loo(method)
    return skl.cross_val_predict(StandIn(plan.run), plan.rows, y, cv=plan.splits, verbose=verbose, method=method)


def explain(estimator, X, y=None, *, cv=None, groups=None, params=None, confounds=None, confounds_in_score=False):
    """Which way a cross-validation of this estimator on these data would go, and why; nothing is fitted.

    Parameters
    ----------
    estimator, X, y, cv, groups, params, confounds, confounds_in_score : as in :func:`cross_validate`

    Returns
    -------
    Path
        With ``kind``, one of "one fit", "one P per fold" and "refit", and ``reason``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> from foldless.model_selection import explain
    >>> X, y = np.eye(8), np.arange(8) % 2
    >>> print(explain(SVC(), X, y))
    refit: SVC is not a least-squares model foldless knows
    """
    X, y = indexable(X, y)
    options = {"confounds": confounds, "in_score": confounds_in_score, "warn": False}
    return _plan("explain", estimator, X, y, groups, cv, params, **options).path


@dataclass
class Plan:
    """How one call will be answered: by ``run`` on ``rows`` and ``splits``, or by scikit-learn with ``refit``."""

    path: Path
    run: Run | None = None
    splits: list | None = None  # None where rows are left out one by one
    score_params: dict | None = None
    refit: dict | None = None

    @property
    def rows(self):
        """Row numbers, in the place of X."""
        return np.arange(self.run.task.problem.n)[:, None]


def _plan(
    owner,
    estimator,
    X,
    y,
    groups,
    cv,
    params,
    *,
    scoring=None,
    method="predict",
    confounds=None,
    in_score=False,
    warn=True,
):
    params = params or {}
    if in_score and confounds is None:
        raise ValueError("confounds_in_score=True: there are no confounds; give them as confounds=.")
    cv = check_cv(cv, y, classifier=is_classifier(estimator))
    split_params, fit_params, score_params = _routed(owner, estimator, cv, params, groups, scoring)
    arguments = {"cv": cv, "groups": groups, "params": params or None}
    named = {name.rpartition("__")[2]: value for name, value in fit_params.items()}  # without the name of a step
    if confounds is not None and "confounds" in named:
        raise ValueError("confounds are given twice: as confounds= and in params.")

    path, solved = route(estimator, fit_params)
    if y is None:
        path, solved = Path(REFIT, "there is no y"), None
    if method not in METHODS:
        path, solved = Path(REFIT, f"method={method!r} is asked of each fitted estimator"), None
    splits = None
    if solved is not None:
        sample_weight = named.get("sample_weight")  # route() lets nothing through but this and confounds
        confounds = named.get("confounds", confounds)
        built = build_task(solved, X, y, sample_weight, confounds, in_score=in_score)
        if isinstance(built, Path):
            path, solved = built, None
    if solved is not None:
        task, classes, flat = built
        if not (isinstance(cv, LeaveOneOut) and owner != "cross_validate"):
            splits = [(_rows(train, task), _rows(test, task)) for train, test in cv.split(X, y, **split_params)]
            # They are drawn now, and groups have done their work: a refit must not draw others.
            rest = {name: value for name, value in params.items() if name not in split_params}
            arguments = {"cv": splits, "groups": None, "params": rest or None}
        obstacle = check_leave_one_out(task) if splits is None else check_splits(task, splits)
        if obstacle is not None:
            path, solved = obstacle, None
    if solved is None:
        if confounds is not None:
            routing = sklearn.get_config().get("enable_metadata_routing", False)
            more = confound_params(estimator, confounds, _num_samples(X), path, in_score=in_score, routing=routing)
            arguments["params"] = (arguments["params"] or {}) | more
        if warn and path.kind == REFIT:
            name = type(estimator).__name__
            warnings.warn(f"{name} is refitted on every training part: {path.reason}.", RefitWarning, stacklevel=3)
        return Plan(path, refit=arguments)

    holdout = task.training_parts(probabilities=method.endswith("proba") or scoring is not None)
    if splits is not None and owner != "cross_validate" and _is_leave_one_out(splits, task.problem.n):
        splits = None
    if splits is None or holdout.plan([len(train) for train, _ in splits]):
        path = Path(ONE_FIT, f"{path.reason} ({task.problem.describe_holder()})")
    else:
        path = Path(ONE_P_PER_FOLD, "few large folds: solving each training part alone is less work than P of all rows")
    return Plan(path, Run(estimator, solved, task, classes, flat, X, y, sample_weight, holdout), splits, score_params)


def _rows(indices, task):
    """Row numbers from indices, negative indices or a mask."""
    return np.arange(task.problem.n)[np.asarray(indices)]


def _is_leave_one_out(splits, n):
    """Whether the splits leave out each row once, alone."""
    if len(splits) != n or not all(len(test) == 1 and len(train) == n - 1 for train, test in splits):
        return False
    return np.array_equal(np.sort([test[0] for _, test in splits]), np.arange(n)) and all(
        test[0] not in train for train, test in splits
    )


def _routed(owner, estimator, cv, params, groups, scoring):
    """Parameters of the splitter, of fit and of the scorers, with or without scikit-learn's metadata routing."""
    if not sklearn.get_config().get("enable_metadata_routing", False):
        return {"groups": groups}, params, None
    if groups is not None:
        raise ValueError(
            "`groups` can only be passed if metadata routing is not enabled; pass params={'groups': groups}."
        )
    router = MetadataRouter(owner=owner)
    router.add(splitter=cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    router.add(estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    for_scorers = {}
    if owner == "cross_validate":
        scorers = check_scoring(estimator, scoring=scoring)
        router.add(scorer=scorers, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        wanted = get_routing_for_object(scorers).consumes("score", params.keys())
        for_scorers = {name: params[name] for name in wanted}
    routed = process_routing(router, "fit", **params)
    return routed.splitter.split, routed.estimator.fit, for_scorers or None


def _scoring_of_rows(scoring, X):
    """Scorers that read X or the estimator itself get both, where others are satisfied with predictions."""
    if isinstance(scoring, dict):
        return {name: _scoring_of_rows(scorer, X) for name, scorer in scoring.items()}
    if callable(scoring) and not isinstance(scoring, _BaseScorer):
        return _RowScorer(scoring, X)
    return scoring


def _reads_estimators(scoring):
    """Whether any scorer is handed the fitted estimators of the splits."""
    return any(isinstance(each, _RowScorer) for each in (scoring.values() if isinstance(scoring, dict) else [scoring]))


class _RowScorer:
    """A user's ``scorer(estimator, X, y)``, called with the fitted estimator of the split and the rows themselves."""

    def __init__(self, scorer, X):
        self.scorer, self.X = scorer, X

    def __call__(self, standin, rows, y, **score_params):
        X = rows_for(standin.run.estimator, self.X, rows[:, 0], standin.train_)
        return self.scorer(standin.materialise(), X, y, **score_params)
