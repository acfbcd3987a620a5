"""Errors about parameters and methods that an estimator does not have; they say what to write instead.

Unknown parameters are more often those of scikit-learn's estimators than misspelt ones. :func:`parameter_hint` is for
arguments of estimators and for names in parameter grids.
"""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from types import MethodType
from typing import Any, TypeVar

from foldless.kernels.parameters import did_you_mean

# Parameters of scikit-learn's classes and of earlier versions: the parameter in their place, and what to write.
COUNTERPARTS = {
    "C": ("alpha", "alpha = 1 / C"),
    "alphas": ("param_grid", "param_grid={'alpha': [...]}"),
    "eta": ("kernel", "kernel=Boolean(eta)"),
    "normalize": ("standardize", "standardize=True"),
    "param_distributions": ("param_grid", "param_grid"),
    "probability": ("calibration", "calibration='sigmoid'"),
}

DIRECT = "Leave it out: the fit is solved directly, without iterations."
THREADS = "Leave it out: the linear algebra uses threads by itself."
ONE_AGAINST_ALL = "Leave it out: several classes are coded one against all."
SQUARED_LOSS = "Leave it out: the loss is the squared error."
NYSTROEM = "Write kernel=Nystroem('rbf', n_landmarks=500, landmarks='kmeans', per_fold=False, random_state=0)"
LANDMARKS = f"{NYSTROEM} of foldless.kernels, whose parameters are searched as kernel__n_landmarks."
APPROXIMATION = f"{NYSTROEM} or kernel=RandomFeatures('rbf', n_landmarks=500) of foldless.kernels."
NO_FITS = "Leave it out: candidates are scored without a fit for each."

# Parameters of scikit-learn's classes and of earlier versions that no single parameter replaces.
UNNEEDED = {
    **dict.fromkeys(("cache_size", "dual", "max_iter", "shrinking", "solver", "tol", "warm_start"), DIRECT),
    **dict.fromkeys(("n_jobs", "verbose"), THREADS),
    **dict.fromkeys(("break_ties", "decision_function_shape", "multi_class"), ONE_AGAINST_ALL),
    **dict.fromkeys(("epsilon", "loss", "nu"), SQUARED_LOSS),
    **dict.fromkeys(("error_score", "n_iter", "pre_dispatch", "return_train_score"), NO_FITS),
    **dict.fromkeys(("landmarks", "landmarks_per_fold", "n_landmarks"), LANDMARKS),
    "alphas": "Use FoldlessSearchCV(estimator), which chooses alpha.",
    "approximation": APPROXIMATION,
    "feature_scaling": "Write method=Optimizer(feature_scaling=True) of a search, FoldlessSearchCV.",
    "kernel_params": "Give gamma, degree or coef0 by name, or a kernel object of foldless.kernels.",
    "random_state": "Leave it out: a fit draws nothing. Landmarks have one: kernel=Nystroem('rbf', random_state=0).",
}

Kind = TypeVar("Kind", bound=type)


def parameter_hint(name, names, prefix=""):
    """What to write in the place of an unknown parameter, as a sentence; empty if nothing is similar.

    ``names`` are the names of all parameters; in a pipeline those of the last step begin with ``prefix``.
    """
    bare = name.rpartition("__")[2]
    for place in (prefix, f"{prefix}kernel__"):
        if place + bare in names:
            return f"Did you mean {place}{bare}?"
    counterpart, code = COUNTERPARTS.get(bare, ("", ""))
    if counterpart and prefix + counterpart in names:
        return f"Did you mean {prefix}{code}?"
    return UNNEEDED.get(bare) or did_you_mean(name if "__" in name else prefix + name, names)


def explain_unknown_arguments(kind: Kind) -> Kind:
    """Decorate a class: errors of its constructor and of ``set_params`` say what to write for an unknown argument."""
    init: Any = vars(kind)["__init__"]
    plain_set_params: Any = kind.set_params  # type: ignore[attr-defined]
    names = list(inspect.signature(init).parameters)[1:]

    @wraps(init)
    def __init__(self, *args, **kwargs):
        try:
            init(self, *args, **kwargs)
        except TypeError:
            unknown = [name for name in kwargs if name not in names]
            if not unknown:
                raise
            hint = _hint_about_member(unknown[0], [*args, *kwargs.values()]) or parameter_hint(unknown[0], names)
            message = f"{type(self).__name__}() got an unexpected keyword argument {unknown[0]!r}. {hint}"
            raise TypeError(message.rstrip()) from None

    @wraps(plain_set_params)
    def set_params(self, **params):
        try:
            return plain_set_params(self, **params)
        except ValueError as error:
            unknown = [name for name in params if name.partition("__")[0] not in names]
            hint = parameter_hint(unknown[0], names) if unknown else ""
            raise ValueError(f"{error} {hint}".rstrip()) from None

    kind.__init__ = __init__  # type: ignore[misc]
    kind.set_params = set_params  # type: ignore[attr-defined]
    return kind


def _hint_about_member(name, values):
    """The hint that a parameter is one of an estimator among the arguments; empty if it is not."""
    for value in values:
        if hasattr(value, "get_params") and not isinstance(value, type) and name in value.get_params(deep=False):
            return f"It is a parameter of the estimator: {type(value).__name__}({name}=...)."
    return ""


def available_where(check: Callable[[Any], object]) -> Callable[[Callable], Any]:
    """Decorate a method that exists if ``check(estimator)`` raises no AttributeError, which says what is missing.

    scikit-learn's ``available_if`` would put "has no attribute" in front of the reason.
    """
    return partial(_ConditionalMethod, check)


class _ConditionalMethod:
    def __init__(self, check, method):
        self.check, self.method = check, method
        self.__doc__ = method.__doc__

    def __get__(self, estimator, owner=None):
        if estimator is None:
            return self.method
        self.check(estimator)
        return MethodType(self.method, estimator)
