"""``steps=``: whether the first steps of a pipeline are fitted on each training part, or once on all rows.

"each" is what scikit-learn does, and what a pipeline is for. "once" fits steps that never see y on all rows, so that
one P serves all training parts. Held-out rows then have a say in means and scales (as they have in ``gamma="scale"``),
never their labels: what is tested by permutation or by held-out labels stays honest.

A cross-validation has one pipeline, hence one :class:`Front`. A search has many, which may differ in their steps:
:class:`RowsBehindSteps` fits those that are equal once.
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

from foldless._engine.linalg.memory import require_memory
from foldless._sklearn.pipelines import Search, split_steps, step_that_sees_y
from foldless.estimators.access import checked_rows_of
from foldless.estimators.checks import check_option, warn_caller
from foldless.kernels.registry import is_object

StepsLike: TypeAlias = Literal["each", "once"]
MANY_FITS = 200  # of the steps of a search, above which a warning says what is quicker


@dataclass(frozen=True)
class Front:
    """What is cross-validated: the estimator, X and parameters as they were given, or those behind fitted steps."""

    estimator: Any
    X: Any
    params: dict
    fitted: Pipeline | None = None  # the steps, fitted on all rows
    name: str = ""  # of the last step
    names: str = ""  # classes of steps that are fitted on all rows

    def whole(self, estimator):
        """A fitted last step as the pipeline that was given."""
        return estimator if self.fitted is None else Pipeline([*self.fitted.steps, (self.name, estimator)])

    def route(self, route):
        """The route of a call, with the steps in front."""
        if not self.names:
            return route
        return replace(route, reason=f"{self.names} fitted once on all rows, labels unseen; {route.reason}")


def parts_of(search, splits, n):
    """The (train, test) pairs of row numbers that a search fits steps on, or takes landmarks from; None: all rows."""
    check_option("steps", search.steps, ("each", "once"))
    fitted = search.steps == "each" and isinstance(search.estimator, Pipeline)
    if not fitted and not _takes_landmarks_from_parts(search):
        return None
    if splits is None:
        if n > MANY_FITS:
            warn_caller(
                f"steps='each' with cv=None fits the steps {n} times, and decomposes as often for every kernel setting."
                " Use cv=5 or steps='once', which are quicker."
            )
        rows = np.arange(n)
        return [(np.delete(rows, row), rows[[row]]) for row in rows]
    for number, (train, _) in enumerate(splits):
        if not len(train) or len(np.unique(train)) < len(train):
            fault = "repeats rows" if len(train) else "is empty"
            raise ValueError(f"cv: the training part of split {number} {fault}; steps='each' fits the steps on it.")
    return splits


def front_of(estimator, X, params, steps):
    """The :class:`Front` of a call with ``steps="each"`` or ``"once"``."""
    check_option("steps", steps, ("each", "once"))
    params, taken = params or {}, split_steps(estimator)
    if steps == "each" or taken.first is None:
        inside = isinstance(taken.last, Search) and not fits_steps(taken.last, steps)
        return Front(estimator, X, params, names=split_steps(taken.last.estimator).names if inside else "")
    _check_steps_once(taken.first, "steps='each'")
    mine, others = _split_params(taken, params)
    fitted = clone(taken.first).fit(X, None, **mine)
    return Front(taken.last, fitted.transform(X), others, fitted, taken.name, taken.names)


def _check_steps_once(first, remedy):
    """Refuse steps that may learn from y where they are to be fitted on all rows."""
    if reason := step_that_sees_y(first):
        raise ValueError(f"steps='once': {reason}, and would be shown the labels of held-out rows. Use {remedy}.")


def fits_steps(search, steps):
    """Whether a search fits steps, or chooses landmarks, on every outer training part, in a call with ``steps``."""
    taken = split_steps(search.estimator)
    return (taken.first is not None and "each" in (steps, search.steps)) or _takes_landmarks_from_parts(search)


def _takes_landmarks_from_parts(search):
    """Whether a setting of a search chooses landmarks on every training part: all of them then go part by part."""
    taken = split_steps(search.estimator)
    grids = [search.param_grid] if isinstance(search.param_grid, Mapping) else search.param_grid or [{}]
    settings = ParameterGrid([{key: grid[key] for key in grid if _decides_landmarks(key, taken)} for grid in grids])
    choices = {_landmarks_per_fold(taken, params) for params in settings}
    if {True, False} <= choices:
        raise ValueError("param_grid: per_fold is one for all kernels of landmarks; set it of the estimator's kernel.")
    return True in choices


def _decides_landmarks(key, taken):
    """Whether a name in a grid is one of the kernel, or says how a kernel chooses landmarks."""
    name = key.removeprefix(taken.prefix)
    return name == "kernel" or (name.startswith("kernel__") and name.endswith(("per_fold", "landmarks")))


def _landmarks_per_fold(taken, params):
    """The same of the kernel of the last step with these parameters; None where it chooses no landmarks."""
    try:
        last = clone(taken.last).set_params(**{name.removeprefix(taken.prefix): params[name] for name in params})
    except (AttributeError, ValueError):  # told where settings are made
        return None
    kernel: Any = getattr(last, "kernel", None)
    return kernel.landmarks_per_fold if is_object(kernel) else None


def _split_params(taken, params):
    """Parameters of ``fit`` of the first steps, and the rest as the last step calls them."""
    if sklearn.get_config().get("enable_metadata_routing", False):
        consumed = get_routing_for_object(taken.first).consumes("fit", params)
        only = set(consumed) - set(get_routing_for_object(taken.last).consumes("fit", params))
        return {name: params[name] for name in consumed}, {k: v for k, v in params.items() if k not in only}
    names = {name for name, _ in taken.first.steps}
    mine = {key: value for key, value in params.items() if key.partition("__")[0] in names}
    return mine, taken.fit_params_of_last({key: value for key, value in params.items() if key not in mine})


# -- searches ----------------------------------------------------------------------------------------------------------


class TransformedRows:
    """All rows X behind fitted steps, and as estimators of foldless check them."""

    def __init__(self, X):
        self.X = X
        self._checked: dict = {}  # {class of an estimator: X and y}

    def checked(self, estimator, y):
        """X and y as an estimator of foldless checks them, once for all settings of its class."""
        kind = type(estimator)
        if kind not in self._checked:
            self._checked[kind] = checked_rows_of(estimator, self.X, y)
        return self._checked[kind]


@dataclass(frozen=True)
class RowsBehindSteps:
    """Rows as the last steps of pipelines see them; first steps with the same parameters are fitted once.

    ``parts`` are (train, test) pairs whose training rows the steps are fitted on; None: they are fitted on all rows.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    parts: list | None = None
    known: dict = field(default_factory=dict)

    def behind(self, estimator):
        """The :class:`TransformedRows` behind the first steps of an estimator: one, or one for each of the parts."""
        steps = split_steps(estimator)
        key = None if steps.first is None else content(steps.first)
        if key not in self.known:  # with the steps themselves, by which the key stays theirs
            self.known[key] = self._transformed(steps), steps.first
        return self.known[key][0]

    def _transformed(self, steps):
        if steps.first is None:
            return [TransformedRows(self.X)] * (1 if self.parts is None else len(self.parts))
        tables = self._once(steps) if self.parts is None else self._each(steps, self.parts)
        return [TransformedRows(X) for X in tables]

    def _once(self, taken):
        _check_steps_once(taken.first, "steps='each' with cv=5 (say)")
        return [clone(taken.first).fit_transform(self.X, None, **self._params(taken))]

    def _each(self, taken, parts):
        found: list = []
        for train, _ in parts:
            found.append(self._part(taken, train))
            if len(found) == 1 and not sp.issparse(found[0]):
                what = "X behind the steps fitted on every training part"
                require_memory((len(parts), *found[0].shape), found[0].dtype, what)
        return found

    def _part(self, taken, train):
        """All rows behind the steps fitted on ``train``, whose own rows ``fit_transform`` gives, as in a pipeline."""
        rows = np.arange(len(self.y))
        others = np.setdiff1d(rows, train)
        first = clone(taken.first)
        y = _safe_indexing(self.y, train)
        seen = [first.fit_transform(_safe_indexing(self.X, train), y, **self._params(taken, train))]
        if len(others):
            seen.append(first.transform(_safe_indexing(self.X, others)))
        dense = not any(map(sp.issparse, seen))
        stacked = np.concatenate([np.asarray(each) for each in seen]) if dense else sp.vstack(seen).tocsr()
        return stacked[np.argsort(np.concatenate([train, others]))]

    def _params(self, taken, rows=slice(None)):
        """Parameters of ``fit`` that metadata routing sends to the first steps."""
        given = {} if self.sample_weight is None else {taken.fit_param("sample_weight"): self.sample_weight[rows]}
        return _split_params(taken, given)[0]


def content(value):
    """Equal for equal parameters: estimators and kernels by what they were made with, arrays by their values."""
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
    """The same of parameters by name."""
    return tuple((name, content(value)) for name, value in sorted(params.items()))
