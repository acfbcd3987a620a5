"""``steps=``: whether the first steps of a pipeline are fitted on each training part, or once on all rows.

"each" is what scikit-learn does. "once" fits steps that never see y on all rows, so that one P serves all training
parts. Held-out rows then contribute to means and scales (as they do to ``gamma="scale"``), but their labels do not:
permutation tests and held-out scores stay valid.

A cross-validation has one pipeline, hence one :class:`FittedSteps`. A search has many, which may differ in their steps:
:class:`RowsBehindSteps` fits equal steps once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from pickle import PicklingError
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
import sklearn
from joblib import hash as fingerprint
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object

from foldless._engine.heldout.sets import split_that_repeats_rows
from foldless._engine.linalg.dispatch import require_memory
from foldless._sklearn.pipelines import Search, split_steps, step_that_sees_y
from foldless.estimators.access import checked_rows_of
from foldless.estimators.checks import check_option, warn_caller
from foldless.estimators.classifier import CodedLabels
from foldless.kernels.registry import is_object

StepsLike: TypeAlias = Literal["each", "once"]
MANY_FITS = 200  # of the steps of a search, above which a warning names quicker settings


@dataclass(frozen=True)
class FittedSteps:
    """The estimator, X and parameters that are cross-validated: those of the caller, or those behind fitted steps."""

    estimator: Any
    X: Any
    params: dict
    fitted: Pipeline | None = None  # the steps, fitted on all rows
    name: str = ""  # of the last step
    names: str = ""  # classes of the steps that are fitted on all rows

    def in_pipeline(self, estimator):
        """A fitted last step in the caller's pipeline."""
        return estimator if self.fitted is None else Pipeline([*self.fitted.steps, (self.name, estimator)])

    def route(self, route):
        """The route of a call, with the steps in front."""
        if not self.names:
            return route
        return replace(route, reason=f"{self.names} fitted once on all rows, labels unseen; {route.reason}")


def parts_of(search, splits, n):
    """The (train, test) pairs on whose training rows a search fits steps or chooses landmarks; None: on all rows."""
    check_option("steps", search.steps, ("each", "once"))
    fits_on_parts = search.steps == "each" and isinstance(search.estimator, Pipeline)
    if not fits_on_parts and not _takes_landmarks_from_parts(search):
        return None
    if splits is None:
        if n > MANY_FITS:
            warn_caller(
                f"steps='each' with cv=None fits the steps {n} times, and decomposes as often for every kernel setting."
                " Use cv=5 or steps='once', which are quicker."
            )
        rows = np.arange(n)
        return [(np.delete(rows, row), rows[[row]]) for row in rows]
    empty = next((number for number, (train, _) in enumerate(splits) if not len(train)), None)
    for number, fault in ((split_that_repeats_rows(splits), "repeats rows"), (empty, "is empty")):
        if number is not None:
            raise ValueError(f"cv: the training part of split {number} {fault}; steps='each' fits the steps on it.")
    return splits


def front_of(estimator, X, params, steps):
    """The :class:`FittedSteps` of a call with ``steps="each"`` or ``"once"``."""
    check_option("steps", steps, ("each", "once"))
    params, split = params or {}, split_steps(estimator)
    if steps == "each" or split.first is None:
        names = ""
        if isinstance(split.last, Search) and not fits_steps(split.last, steps):
            names = split_steps(split.last.estimator).names
        return FittedSteps(estimator, X, params, names=names)
    _check_steps_once(split.first, "steps='each'")
    first_params, last_params = _split_params(split, params)
    fitted = clone(split.first).fit(X, None, **first_params)
    return FittedSteps(split.last, fitted.transform(X), last_params, fitted, split.name, split.names)


def _check_steps_once(first, remedy):
    """Refuse steps that may learn from y, since they would be fitted on all rows."""
    if reason := step_that_sees_y(first):
        raise ValueError(f"steps='once': {reason}, and would be shown the labels of held-out rows. Use {remedy}.")


def fits_steps(search, steps):
    """Whether a search fits steps, or chooses landmarks, on every outer training part, in a call with ``steps``."""
    has_steps = split_steps(search.estimator).first is not None
    return (has_steps and "each" in (steps, search.steps)) or _takes_landmarks_from_parts(search)


def _takes_landmarks_from_parts(search):
    """Whether a setting of a search chooses landmarks on every training part: all of them then go part by part."""
    steps = split_steps(search.estimator)
    grids = [search.param_grid] if isinstance(search.param_grid, Mapping) else search.param_grid or [{}]
    settings = ParameterGrid([{key: grid[key] for key in grid if _decides_landmarks(key, steps)} for grid in grids])
    choices = {_landmarks_per_fold(steps, params) for params in settings}
    if {True, False} <= choices:
        raise ValueError("param_grid: per_fold is one for all kernels of landmarks; set it of the estimator's kernel.")
    return True in choices


def _decides_landmarks(key, steps):
    """Whether a name in a grid is that of the kernel, or of a parameter by which a kernel chooses landmarks."""
    name = key.removeprefix(steps.prefix)
    return name == "kernel" or (name.startswith("kernel__") and name.endswith(("per_fold", "landmarks")))


def _landmarks_per_fold(steps, params):
    """Whether the kernel of the last step with these parameters chooses landmarks per fold; None without landmarks."""
    try:
        last = clone(steps.last).set_params(**{name.removeprefix(steps.prefix): params[name] for name in params})
    except (AttributeError, ValueError):  # settings raise the error
        return None
    kernel: Any = getattr(last, "kernel", None)
    return kernel.landmarks_per_fold if is_object(kernel) else None


def _split_params(steps, params):
    """(parameters of ``fit`` of the first steps, those of the last step by its own names)."""
    if sklearn.get_config().get("enable_metadata_routing", False):
        consumed = get_routing_for_object(steps.first).consumes("fit", params)
        of_first_alone = set(consumed) - set(get_routing_for_object(steps.last).consumes("fit", params))
        last_params = {name: value for name, value in params.items() if name not in of_first_alone}
        return {name: params[name] for name in consumed}, last_params
    names = {name for name, _ in steps.first.steps}
    first_params = {key: value for key, value in params.items() if key.partition("__")[0] in names}
    remaining = {key: value for key, value in params.items() if key not in first_params}
    return first_params, steps.fit_params_of_last(remaining)


# -- searches ----------------------------------------------------------------------------------------------------------


class TransformedRows:
    """All rows X behind the ``fitted`` steps of a pipeline (None: there are none), and as estimators check them."""

    def __init__(self, X, fitted=None):
        self.X = X
        self.fitted = fitted
        self._checked: dict = {}  # {class of an estimator: rows and y}

    def checked(self, estimator, y):
        """(:class:`ValidatedRows`, y) of an estimator of foldless, checked once for all settings of its class."""
        kind = type(estimator)
        if kind not in self._checked:
            self._checked[kind] = checked_rows_of(estimator, self.X, y)
        return self._checked[kind]

    def subset(self, X, rows, key):
        """The same of some ``rows``, which are X; checked arrays are indexed by ``key``."""
        part = TransformedRows(X)
        for kind, (checked, y) in self._checked.items():
            part._checked[kind] = checked[key], y.select(rows) if isinstance(y, CodedLabels) else y[rows]
        return part


@dataclass(frozen=True)
class RowsBehindSteps:
    """Rows behind the first steps of pipelines; first steps with equal parameters are fitted once.

    ``parts`` are (train, test) pairs whose training rows the steps are fitted on; None: they are fitted on all rows.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    parts: list | None = None
    transformed: dict = field(default_factory=dict)  # {content of first steps: (TransformedRows, these steps)}

    def behind(self, estimator):
        """The :class:`TransformedRows` behind the first steps of an estimator: one, or one for each of the parts."""
        steps = split_steps(estimator)
        key = None if steps.first is None else content(steps.first)
        if key not in self.transformed:  # the steps are kept as well: the key may hold ids of their parameters
            self.transformed[key] = self._transform(steps), steps.first
        return self.transformed[key][0]

    def _transform(self, steps):
        if steps.first is None:
            return [TransformedRows(self.X)] * (1 if self.parts is None else len(self.parts))
        if self.parts is not None:
            return [TransformedRows(X) for X in self._each(steps, self.parts)]
        _check_steps_once(steps.first, "steps='each' with cv=5 (say)")
        first = clone(steps.first)
        return [TransformedRows(first.fit_transform(self.X, None, **self._params(steps)), first)]

    def _each(self, steps, parts):
        tables: list = []
        for train, _ in parts:
            tables.append(self._part(steps, train))
            if len(tables) == 1 and not sp.issparse(tables[0]):
                what = "X behind the steps fitted on every training part"
                require_memory((len(parts), *tables[0].shape), tables[0].dtype, what)
        return tables

    def _part(self, steps, train):
        """All rows behind the steps fitted on ``train``; the rows of ``train`` are those of ``fit_transform``."""
        rows = np.arange(len(self.y))
        held_out = np.setdiff1d(rows, train)
        first = clone(steps.first)
        y = _safe_indexing(self.y, train)
        tables = [first.fit_transform(_safe_indexing(self.X, train), y, **self._params(steps, train))]
        if len(held_out):
            tables.append(first.transform(_safe_indexing(self.X, held_out)))
        dense = not any(map(sp.issparse, tables))
        stacked = np.concatenate([np.asarray(table) for table in tables]) if dense else sp.vstack(tables).tocsr()
        return stacked[np.argsort(np.concatenate([train, held_out]))]

    def _params(self, steps, rows=slice(None)):
        """Parameters of ``fit`` that metadata routing sends to the first steps."""
        params = {} if self.sample_weight is None else {steps.fit_param("sample_weight"): self.sample_weight[rows]}
        return _split_params(steps, params)[0]


def content(value):
    """A hashable value, equal for equal parameters: those of estimators and kernels, values of arrays."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return type(value), content_of_params(value.get_params(deep=False))
    if isinstance(value, list | tuple):
        return tuple(map(content, value))
    if value is None or isinstance(value, str | Real | np.generic):
        return type(value), value
    try:
        return fingerprint(value)
    except (PicklingError, AttributeError, TypeError):  # a function without a name, say
        return id(value)


def content_of_params(params):
    """:func:`content` of parameters by name."""
    return tuple((name, content(value)) for name, value in sorted(params.items()))
