"""The parameters of a search, checked one rule at a time and returned as a ``SearchSpec``."""

import time
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import assert_all_finite, check_array, get_tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, _num_samples, column_or_1d

from foldless._engine.tuning import criteria
from foldless._engine.tuning.descent import PRIORS
from foldless._engine.tuning.spec import SearchSpec, optimizer_of, scales_features
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS, grid_names, learns_kernel
from foldless._sklearn.candidates import check_known, has_grid
from foldless._sklearn.pipelines import split_steps
from foldless._sklearn.scorer_checks import check_scorers
from foldless._sklearn.scorers import search_scores
from foldless.estimators.checks import check_confounds, check_option, dense, numbers, warn_caller

METHODS = ("auto", "grid", "simplex", "gradient")
SHARES = ("all", "kernel", "none")


def search_spec(search):
    """The spec of a ``FoldlessSearchCV``; parameters that make no sense, alone or together, raise an error.

    Scores are added by :func:`with_scores`, as they name the classes.
    """
    check_known(search.estimator)
    _check_options(search)
    criterion = criteria.resolve(search.criterion)
    optimizer = optimizer_of(search)
    scaled = scales_features(optimizer)
    squares = criterion.function is criteria.press and search.scoring is None  # what the priors are made for
    _check_classes(search, criterion)
    _check_method(search, optimizer, criterion, scaled)
    _check_prior(optimizer.prior, search.criterion, squares, scaled)
    _check_learnt_kernel(search, optimizer, scaled)
    _check_apart(search)
    _check_steps(search)
    groups = optimizer.feature_scaling if scaled and np.ndim(optimizer.feature_scaling) else None
    return SearchSpec(
        criterion=criterion,
        method=optimizer.method,
        share=search.share,
        criterion_weight=search.criterion_weight,
        prior=("cauchy" if squares else None) if optimizer.prior == "auto" else optimizer.prior,
        bounds=_checked_bounds(optimizer.bounds),
        feature_scaling=scaled,
        feature_groups=groups,
        n_starts=optimizer.n_starts,
        max_iter=optimizer.max_iter,
        random_state=search.random_state,
        n_jobs=search.n_jobs,
        verbose=search.verbose,
        deadline=_deadline(search.time_limit),
    )


def _check_options(search):
    optimizer = optimizer_of(search)
    check_option("method", optimizer.method, METHODS)
    check_option("share", search.share, SHARES)
    check_option("prior", optimizer.prior, ("auto", None, *PRIORS))
    check_option("criterion_weight", search.criterion_weight, criteria.WEIGHTS)
    if not isinstance(search.refit, str | bool | np.bool_):
        raise ValueError(f"refit={search.refit!r} must be True, False or the name of a score.")
    scaling = optimizer.feature_scaling
    if not isinstance(scaling, bool | np.bool_) and np.ndim(scaling) == 0:
        raise ValueError(f"feature_scaling={scaling!r} must be True, False or a group for each feature.")
    if isinstance(search.scoring, str | None) and search.refit not in (True, False, search.scoring):
        raise ValueError(f"refit={search.refit!r} names a score; scoring={search.scoring!r} holds no such name.")
    for name in ("n_starts", "max_iter"):
        value = getattr(optimizer, name)
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name}={value!r} must be an integer >= 1.")


def _check_classes(search, criterion):
    """Raise an error for parameters that need classes, or all classes together, where there are none."""
    for needs_all, what in (
        (criterion.of_decisions, f"criterion={search.criterion!r}"),
        (search.scoring is not None, f"scoring={search.scoring!r}"),
    ):
        if needs_all and search.share != "all":
            raise ValueError(f"{what} judges all classes together; it needs share='all'.")
    if is_classifier(search.estimator):
        return
    for needed, what in (
        (criterion.labels, f"criterion={search.criterion!r}"),
        (search.criterion_weight == "balanced", "criterion_weight='balanced'"),
        (search.share != "all", f"share={search.share!r}"),
    ):
        if needed:
            name = type(split_steps(search.estimator).last).__name__
            raise ValueError(
                f"{name} has no classes, which {what} needs. Use criterion='press' or a callable, criterion_weight=None"
                " and share='all' for regressors."
            )


def _check_method(search, optimizer, criterion, scaled):
    """Raise an error for gradients of what has no derivative, and for bounds or scales of features of a grid."""
    if optimizer.method == "gradient" and search.scoring is not None:
        raise ValueError(
            f"scoring={search.scoring!r} has no derivative; with method='gradient' let a criterion decide"
            " (scoring=None), or use method='grid' or 'simplex'."
        )
    if optimizer.method == "gradient" and not criterion.smooth:
        smooth = [name for name, candidate in criteria.CRITERIA.items() if candidate.smooth]
        raise ValueError(
            f"criterion={search.criterion!r} has no derivative; with method='gradient' use one of {smooth}, or"
            " method='simplex'."
        )
    if optimizer.method in ("simplex", "gradient"):
        return
    if optimizer.method == "auto" and search.param_grid is None:
        return
    if optimizer.bounds is not None:
        raise ValueError("bounds is for method='gradient' or 'simplex'; the limits of a grid are its values.")
    if scaled:
        raise ValueError(
            "feature_scaling needs method='gradient' (or 'simplex'): a grid with a scale for each feature is too large."
        )


def _check_learnt_kernel(search, optimizer, scaled):
    """Raise an error for options that a search with ``kernel="auto"`` has no use for."""
    if not learns_kernel(search):
        return
    behind_steps = split_steps(search.estimator).first is not None
    for name, value, is_set in (
        ("method", optimizer.method, optimizer.method != "auto"),
        ("share", search.share, search.share != "all"),
        ("feature_scaling", optimizer.feature_scaling, scaled),
        ("bounds", optimizer.bounds, optimizer.bounds is not None),
        ("steps", search.steps, behind_steps and search.steps == "each"),
    ):
        if is_set:
            raise ValueError(
                f"{name}={value!r} does not go with kernel='auto', whose kernels, widths and scales of features the"
                f" search learns in a way of its own. Leave {name} out, or name a kernel, such as kernel='rbf'."
            )


def _check_prior(prior, criterion, squares, scaled):
    """Raise an error for a prior without feature scales or squared residuals."""
    if prior in PRIORS and not squares:
        raise ValueError(
            f"prior={prior!r} goes with a model of squared residuals; criterion={criterion!r} has none."
            " Use criterion='press' or prior=None."
        )
    if prior in PRIORS and not scaled:
        raise ValueError(f"prior={prior!r} is one of feature scales; it needs Optimizer(feature_scaling=True).")


def _check_apart(search):
    """Raise an error for parameters of several classes if every class is searched by itself."""
    last = split_steps(search.estimator).last
    for name in ("class_weight", "priors", "n_components") if search.share != "all" else ():
        if getattr(last, name, None) is not None or grid_names(search, name):
            raise ValueError(
                f"{name} speaks of several classes and share={search.share!r} takes each class by itself; use"
                " share='all', or sample_weight for weights of classes."
            )


def _check_steps(search):
    """Raise an error for steps fitted on training parts without a grid, and for grids of them class by class."""
    check_option("steps", search.steps, ("each", "once"))
    if not isinstance(search.estimator, Pipeline):
        return
    if search.steps == "each" and not has_grid(search):
        raise ValueError(
            "steps='each' has a P for every training part, and a search between the values of a grid follows one P;"
            " use steps='once', or method='grid' without bounds and feature_scaling."
        )
    grids = [search.param_grid] if isinstance(search.param_grid, Mapping) else search.param_grid or []
    last, prefix = search.estimator.steps[-1][0], split_steps(search.estimator).prefix
    others = sorted({name for grid in grids for name in grid if name != last and not name.startswith(prefix)})
    if search.share == "none" and others:
        raise ValueError(
            f"share='none' searches each class by itself, and one pipeline has one {others[0]!r} for all of them; use"
            " share='kernel' or 'all'."
        )


def _deadline(time_limit):
    if time_limit is None:
        return None
    seconds = numbers([time_limit])
    if seconds is None or seconds[0] <= 0:
        raise ValueError(f"time_limit={time_limit!r} must be a number of seconds > 0, or None.")
    return time.monotonic() + float(seconds[0])


def _checked_bounds(bounds):
    if not isinstance(bounds, Mapping | None):
        raise ValueError(f"bounds={bounds!r} must be a dict {{parameter: (low, high)}}.")
    bounds = bounds or {}
    for name, pair in bounds.items():
        if isinstance(pair, str) and pair == "fixed" and not name.endswith("alpha"):
            continue
        values = numbers(np.atleast_1d(pair).tolist())
        if values is None or values.shape != (2,) or not 0 < values[0] <= values[1]:
            raise ValueError(
                f"bounds[{name!r}]={pair!r} must be two finite numbers 0 < low <= high (or 'fixed', of a kernel)."
            )
    return bounds


def with_scores(spec, search, y):
    """The spec with the scores of ``search``: those of ``scoring``, or else that of the estimator's ``score``."""
    classes = None
    if is_classifier(search.estimator):
        classes = np.unique(np.asarray(y)) if np.ndim(y) == 1 else np.arange(y.shape[1])
    scores = search_scores(search.estimator, search.scoring, search.refit, classes)
    if search.scoring is not None:
        check_scorers([(scoring.name, scoring.scorer) for scoring in scores.scorings.values()], search.estimator, y)
    return replace(spec, scoring=scores)


def warn_of_unused_groups(cv, groups):
    """Warn that leave-one-out ignores groups."""
    if groups is not None and cv is None:
        warn_caller(
            "groups is ignored by cv=None, which leaves out single rows: rows of a group then vouch for each other."
            " Use cv=GroupKFold() or another splitter of groups."
        )


def check_search_with_confounds(search, confounds, n):
    """Confounds of n rows as an array; an error if the estimator that is refitted takes none."""
    last = split_steps(search.estimator).last
    if search.refit and not isinstance(last, FOLDLESS_ESTIMATORS):
        raise ValueError(
            f"confounds: fit of {type(last).__name__} takes none. Use"
            f" {', '.join(kind.__name__ for kind in FOLDLESS_ESTIMATORS)} (with kernel='linear' for ridge models), or"
            " refit=False to search only."
        )
    return check_confounds(confounds, n)


def checked_rows(search, y, sample_weight):
    """(y, sample_weight) of a fit; an error unless rows of two classes have a positive weight.

    Several labels a row, for estimators that take them, are returned as a dense matrix.
    """
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, np.empty((_num_samples(y), 1)), ensure_non_negative=True)
        if np.count_nonzero(sample_weight) < 2:
            raise ValueError("sample_weight leaves fewer than two rows with a positive weight.")
    estimator = search.estimator
    several = np.ndim(y) == 2 and is_classifier(estimator) and get_tags(estimator).classifier_tags.multi_label
    if several and type_of_target(y) == "multilabel-indicator":
        _check_several_labels(search)
        return np.asarray(dense(y)), sample_weight
    if not is_classifier(estimator):
        y = check_array(y, accept_sparse="csr", ensure_2d=False, dtype=None, input_name="y")
    else:
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if sample_weight is not None and len(np.unique(y[sample_weight > 0])) < min(2, len(np.unique(y))):
            raise ValueError("sample_weight leaves one class only; at least two need rows of positive weight.")
    return y, sample_weight


def _check_several_labels(search):
    """Raise an error for options that need one class for each row."""
    if search.share != "all":
        raise ValueError(
            f"share={search.share!r} is for classes, and y has several labels a row; use share='all', or a search for"
            " each column of y."
        )
    if search.criterion_weight == "balanced" and criteria.resolve(search.criterion).of_decisions:
        raise ValueError(
            f"criterion={search.criterion!r} with criterion_weight='balanced' gives every class of rows the same share,"
            " and y has several labels a row; use criterion='ber', which balances each of them."
        )
