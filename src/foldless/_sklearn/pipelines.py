"""Pipelines: their last step and those before it, steps that never see y, and steps fitted on a training part."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import _safe_indexing, get_tags

from foldless._sklearn.route import NoClosedForm

# Modules whose transformers accept y and ignore it. No tag of scikit-learn tells them apart: SelectKBest and PCA have
# the same tags.
LABEL_BLIND_MODULES = (
    "sklearn.decomposition",
    "sklearn.feature_extraction",
    "sklearn.impute",
    "sklearn.kernel_approximation",
    "sklearn.preprocessing",
    "sklearn.random_projection",
    "aeon.transformations",
    "sktime.transformations",
)
# The same of packages whose other transformers learn from y.
LABEL_BLIND_CLASSES = {"mne": ("FilterEstimator", "PSDEstimator", "Scaler", "TemporalFilter", "Vectorizer")}


class Search:
    """Base class of searches over parameters; they are repeated on every training part."""

    estimator: Any
    param_grid: Any
    scoring: Any
    refit: Any
    steps: Any  # whether those of a pipeline are fitted once, or on each training part


class FirstSteps(Pipeline):
    """A pipeline of transformers alone. It counts as fitted: the last step may have no fitted attributes."""

    def __sklearn_is_fitted__(self):
        return True


class Steps(NamedTuple):
    """The steps of an estimator: a pipeline of all but the last (None: there are none), the last one and its name."""

    first: Pipeline | None
    name: str
    last: Any

    @property
    def names(self):
        """Class names of the transformers."""
        return "" if self.first is None else ", ".join(type(step).__name__ for _, step in self.first.steps)

    @property
    def prefix(self):
        """The prefix of the last step's parameters."""
        return f"{self.name}__" if self.name else ""

    def transform(self, X):
        """Rows behind the fitted transformers."""
        return X if self.first is None else self.first.transform(X)

    def fit_params_of_last(self, params):
        """Parameters of ``fit`` by the names that the last step has for them."""
        return {name.removeprefix(self.prefix): value for name, value in params.items()}

    def fit_params(self, **params):
        """Parameters of the last step that are not None, by the names that ``fit`` of the pipeline has for them."""
        return {self.fit_param(name): value for name, value in params.items() if value is not None}

    def fit_param(self, name):
        """The name that ``fit`` of the pipeline has for a parameter of the last step."""
        routing = sklearn.get_config().get("enable_metadata_routing", False)
        return name if routing else self.prefix + name


def split_steps(estimator):
    """The :class:`Steps` of a pipeline; any other estimator is the last step itself."""
    if not isinstance(estimator, Pipeline):
        return Steps(None, "", estimator)
    *first, (name, last) = estimator.steps
    first = [(step_name, step) for step_name, step in first if step is not None and step != "passthrough"]
    return Steps(FirstSteps(first, memory=estimator.memory) if first else None, name, last)


def with_last(estimator, last):
    """An unfitted copy of a pipeline with another last step; for any other estimator, that step alone."""
    if not isinstance(estimator, Pipeline):
        return last
    estimator = clone(estimator)
    estimator.steps[-1] = (estimator.steps[-1][0], last)
    return estimator


def with_fitted_steps(estimator, fitted, last):
    """A copy of a pipeline with fitted steps and a fitted last step; for any other estimator, that step alone."""
    if fitted is None and not isinstance(estimator, Pipeline):
        return last
    steps, transformers = clone(estimator), {} if fitted is None else dict(fitted.steps)
    steps.steps = [(name, transformers.get(name, step)) for name, step in steps.steps[:-1]]
    steps.steps.append((estimator.steps[-1][0], last))
    return steps


def input_tags(estimator):
    """Tags of X: for a pipeline those of its first step, but missing values are only allowed where a step imputes."""
    tags, steps = get_tags(estimator).input_tags, split_steps(estimator)
    if steps.first is None:
        return tags
    first_tags = get_tags(steps.first.steps[0][1]).input_tags
    imputes = any(type(step).__module__.startswith("sklearn.impute") for _, step in steps.first.steps)
    return replace(first_tags, sparse=tags.sparse, allow_nan=first_tags.allow_nan and imputes)


def step_that_sees_y(first):
    """The first step that may learn from y, in words; an empty string if there is none."""
    for name, step in first.steps:
        if not never_sees_y(step):
            return f"step {name!r} ({type(step).__name__}) may learn from y (it has no label_blind = True)"
    return ""


def check_steps(first):
    """Refuse steps that may learn from y: their fits would depend on the labeling and on held-out labels."""
    if reason := step_that_sees_y(first):
        raise NoClosedForm(reason)


def never_sees_y(step):
    """Whether a transformer is known to learn from X alone: by its class, or by its attribute ``label_blind``."""
    if step is None or isinstance(step, str):  # "passthrough", "drop"
        return True
    if isinstance(step, Pipeline):
        return all(never_sees_y(inner) for _, inner in step.steps)
    if isinstance(step, FeatureUnion):
        return all(never_sees_y(inner) for _, inner in step.transformer_list)
    if isinstance(step, ColumnTransformer):
        return all(never_sees_y(inner) for _, inner, _ in step.transformers)
    kind = type(step)
    declared = getattr(step, "label_blind", None)
    if declared is not None:
        return bool(declared)
    if kind.__name__ in LABEL_BLIND_CLASSES.get(kind.__module__.partition(".")[0], ()):
        return True
    is_blind = isinstance(step, VarianceThreshold) or kind.__module__.startswith(LABEL_BLIND_MODULES)
    return is_blind and not get_tags(step).target_tags.required


def fit_steps(first, X, train, y=None):
    """A copy of the transformers, fitted on the rows ``train``."""
    return clone(first).fit(_safe_indexing(X, train), None if y is None else _safe_indexing(y, train))


def transform_split(fitted, X, n, train, test):
    """All n rows behind fitted transformers; rows of neither part are replaced by one of ``train``."""
    rows = np.arange(n)
    rows[~np.isin(rows, np.concatenate([train, test]))] = train[0]
    return fitted.transform(_safe_indexing(X, rows))
