"""scikit-learn's cross_val_predict, cross_val_score and cross_validate, from one fit where exactness allows."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn import model_selection as skl
from sklearn.base import BaseEstimator

from foldless._engine.inference.intervals import ScoreInterval, check_confidence, corrected_interval
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike
from foldless._sklearn import closed_form
from foldless._sklearn.adapters import TASKS, check_probabilities
from foldless._sklearn.confounded import WithConfounds
from foldless._sklearn.counting import Counting
from foldless._sklearn.pipelines import split_steps
from foldless._sklearn.planner import METHODS, plan
from foldless._sklearn.request import CrossValidation
from foldless._sklearn.route import Route, warn_caller, warn_of_refits
from foldless._sklearn.scorer_checks import objections
from foldless._sklearn.scorers import named_scorers, scoring_of_rows, with_scorers
from foldless._sklearn.standin import Decoded, StandIn
from foldless._sklearn.steps import StepsLike
from foldless.estimators.checks import dense, rows_and_labels
from foldless.model_selection._types import ConfoundsLike, CVLike, Params, ScoringLike
from foldless.results import Result, lanes

EVERY_PART = "on every training part"


class CrossValidationResult(Result, dict):
    """The dictionary of scikit-learn's ``cross_validate``, with its keys alone, and ``path`` as an attribute.

    ``result["path"]`` works as well. ``test_share`` is the ratio of test rows to training rows, that of folds if it is
    None. ``counting`` has the numbers of held-out rows, for intervals.
    ``to_frame()`` has one row for each split.
    """

    def __init__(
        self, values: dict[str, Any], path: Route, test_share: float | None = None, counting: Counting | None = None
    ) -> None:
        super().__init__(values)
        self.path = path
        self.test_share = test_share
        self.counting = Counting({}, None) if counting is None else counting

    def interval(self, name: str | None = None, confidence: float = 0.9) -> ScoreInterval:
        """The interval of a score by Nadeau & Bengio (2003), from its values in the splits; of several, name one.

        Intervals of scores of classes are widened for small numbers of held-out rows (``docs/inference.md``). The
        slower :func:`score_interval` leaves out pairs of folds; its coverage is closer to nominal.
        """
        check_confidence(confidence)
        names = [key.removeprefix("test_") for key in self if key.startswith("test_")]
        name = names[0] if name is None and len(names) == 1 else name
        if name not in names:
            raise ValueError(f"name={name!r} is no score of this result; give one of {names}.")
        scores = self[f"test_{name}"]
        share = 1 / max(len(scores) - 1, 1) if self.test_share is None else self.test_share
        return corrected_interval(scores, share, confidence, self.counting.kind(name), self.counting.counts)

    def __missing__(self, key: str) -> Route:
        if key == "path":
            return self.path
        raise KeyError(key)

    def _columns(self):
        columns = {name: values for name, values in self.items() if name != "indices"}
        for name, parts in self.get("indices", {}).items():
            columns[f"n_{name}"] = [len(part) for part in parts]
        return {"split": range(len(next(iter(columns.values())))), **columns}

    def _picture(self):
        rows = [(name, values, None) for name, values in self.items() if name.startswith(("test_", "train_"))]
        return lanes(rows, "scores of the splits")

    def _caption(self):
        means = [f"{name} {np.mean(values):.4f}" for name, values in self.items() if name.startswith("test_")]
        return f"{', '.join(means)}; {self.path}"


@threads_by_size
def cross_validate(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: MatrixLike | None = None,
    *,
    groups: ArrayLike | None = None,
    scoring: ScoringLike = None,
    cv: CVLike = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Params = None,
    pre_dispatch: int | str = "2*n_jobs",
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: float | Literal["raise"] = np.nan,
    confounds: ConfoundsLike = None,
    steps: StepsLike = "each",
) -> CrossValidationResult:
    """Scores of every split; :func:`sklearn.model_selection.cross_validate` from one fit where that is exact.

    All parameters but those of confounds are scikit-learn's, and so are the numbers, to rounding; ``gamma="scale"``
    and ``class_weight="balanced"`` of foldless' estimators are resolved once on all rows (``docs/exactness.md``).
    ``n_jobs`` and ``pre_dispatch`` matter where the estimator is refitted; one fit uses the threads of the linear
    algebra library if the data are large.

    Parameters
    ----------
    confounds : array-like of shape (n_samples, n_confounds) or Confounds, default=None
        Columns such as age or site. They are regressed out of the (kernel) features, with coefficients of each training
        part, and fitted beside the intercept without penalty, which is the same model (``docs/exactness.md``).
        Constants added to them change nothing. Behind fitted steps of a pipeline they go to its last step, one of
        foldless' estimators or a search of one. ``Confounds(values, in_score=True)`` keeps what they explain in the
        held-out predictions: they are then features without penalty.
    steps : {"each", "once"}, default="each"
        The first steps of a pipeline: fitted on each training part, as scikit-learn does, or once on all rows, labels
        unseen (scalers, imputers, PCA and others that never use y; your own transformers declare this by the class
        attribute ``label_blind = True``). Then one fit serves all training parts, and scorers that are functions are
        called with the last step and its rows.

    Returns
    -------
    CrossValidationResult
        scikit-learn's dictionary. Its attribute ``path`` tells how the numbers were computed and why. The time of the
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
    >>> result.path.kind
    'one fit'
    """
    scoring = with_scorers(scoring)
    check_probabilities(scoring, estimator)
    X, y = rows_and_labels(X, dense(y))
    _report_objections(scoring, estimator, y, error_score)
    request = CrossValidation(
        estimator=estimator,
        X=X,
        y=y,
        groups=groups,
        cv=cv,
        scoring=scoring,
        params=params,
        confounds=confounds,
        steps=steps,
    )
    front, request = request.behind_steps()
    planned = plan(request)
    counting = Counting.of(scoring, request.estimator, y, groups, planned.drawn)
    options: dict[str, Any] = {
        "verbose": verbose,
        "error_score": error_score,
        "return_indices": return_indices,
        "return_train_score": return_train_score,
        "return_estimator": return_estimator,
    }
    if planned.run is None:
        warn_of_refits(estimator, front.route(planned.route), EVERY_PART)
        options |= {"n_jobs": n_jobs, "pre_dispatch": pre_dispatch}
        scores = skl.cross_validate(y=y, **planned.loop, scoring=counting.scoring(scoring), **options)
        result, counting = counting.taken_from(scores)
        models = [_without_confounds(model) for model in result.get("estimator", [])]
    else:
        if return_estimator:
            planned.run.check_materialises()
        result, counting = _closed_form_scores(planned, front.X, y, scoring, counting, options)
        models = [standin.materialise() for standin in result.get("estimator", [])]
    if return_estimator:
        result["estimator"] = [front.in_pipeline(model) for model in models]
    return CrossValidationResult(result, front.route(planned.route_taken()), planned.test_share, counting)


def _closed_form_scores(planned, X, y, scoring, counting, options):
    """(scikit-learn's dictionary of scores, their counts) from held-out decisions, or by its loop on row numbers."""
    returns_more = any(value for name, value in options.items() if name != "error_score")
    if not returns_more and not planned.score_params:
        scored = closed_form.validate(planned.run, planned.splits, scoring, counting)
        if scored is not None:
            return scored
    scores = skl.cross_validate(
        StandIn(planned.run),
        planned.run.rows,
        y,
        cv=planned.splits,
        scoring=scoring_of_rows(counting.scoring(scoring), X),
        params=planned.score_params,
        **options,
    )
    return counting.taken_from(scores)


def _without_confounds(model):
    """The fitted estimator of the user, which is wrapped if confounds were regressed out before it."""
    return model.estimator if isinstance(model, WithConfounds) else model


def _report_objections(scoring, estimator, y, error_score):
    """Warn of scores that do not go with y, or raise an error with ``error_score="raise"``."""
    if type(split_steps(estimator).last) not in TASKS:  # others are left to scikit-learn
        return
    for message in objections(named_scorers(scoring).values(), estimator, y):
        if isinstance(error_score, str):
            raise ValueError(message)
        warn_caller(f"{message} The scores will be error_score={error_score!r}.")


@threads_by_size
def cross_val_predict(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: MatrixLike | None = None,
    *,
    groups: ArrayLike | None = None,
    cv: CVLike = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Params = None,
    pre_dispatch: int | str = "2*n_jobs",
    method: str = "predict",
    confounds: ConfoundsLike = None,
    steps: StepsLike = "each",
) -> np.ndarray:
    """Held-out prediction of every row: :func:`sklearn.model_selection.cross_val_predict` from one fit where exact.

    The parameters are those of scikit-learn, and the confounds and steps of :func:`cross_validate`.

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
    X, y = rows_and_labels(X, y)
    request = CrossValidation(
        function="cross_val_predict",
        estimator=estimator,
        X=X,
        y=y,
        groups=groups,
        cv=cv,
        params=params,
        confounds=confounds,
        steps=steps,
        method=method,
    )
    _, request = request.behind_steps()
    planned = plan(request)
    options = {"verbose": verbose, "method": method}
    if planned.run is None:
        warn_of_refits(estimator, planned.route, EVERY_PART)
        loop = planned.loop
        if method in METHODS[1:] and np.ndim(y) == 1:
            loop = loop | {"estimator": Decoded(loop["estimator"], np.unique(y))}
        options |= {"n_jobs": n_jobs, "pre_dispatch": pre_dispatch}
        return skl.cross_val_predict(y=y, **loop, **options)
    if isinstance(planned.splits, skl.LeaveOneOut):
        return planned.run.loo(method)
    predictions = closed_form.predict(planned.run, planned.splits, method)
    if predictions is not None:
        return predictions
    return skl.cross_val_predict(StandIn(planned.run), planned.run.rows, dense(y), cv=planned.splits, **options)


def explain(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: MatrixLike | None = None,
    *,
    cv: CVLike = None,
    groups: ArrayLike | None = None,
    params: Params = None,
    confounds: ConfoundsLike = None,
    steps: StepsLike = "each",
) -> Route:
    """How a cross-validation of this estimator on these data would be computed, and why; nothing is fitted.

    Parameters
    ----------
    estimator, X, y, cv, groups, params, confounds, steps : as in :func:`cross_validate`

    Returns
    -------
    Route
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
    X, y = rows_and_labels(X, y)
    request = CrossValidation(
        function="explain",
        estimator=estimator,
        X=X,
        y=y,
        groups=groups,
        cv=cv,
        params=params,
        confounds=confounds,
        steps=steps,
    )
    front, request = request.behind_steps()
    return front.route(plan(request).route)
