"""Parameters of kernels: their kinds, and the objects that have them as fields.

The kind of a parameter, as in ``gamma: Annotated[float, Width()] = 1.0``, says how a value is checked and made a
number, and where searches look for a better one. ``get_params`` and ``set_params`` are scikit-learn's protocol:
``kernel__gamma`` is a parameter of an estimator. A field may also hold another such object, or a tuple of them, whose
parameters are named by the way to them, such as ``terms__0__gamma``.
"""

from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from inspect import get_annotations
from numbers import Real
from typing import Any, Self, get_type_hints

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from foldless._engine.linalg.dispatch import on_host
from foldless._engine.linalg.types import Matrix

DERIVED = {"derived": True}  # metadata of a field that is no parameter: the object derives it from parameters and X


def did_you_mean(name, names):
    """The most similar of the names, as a question; empty if none is similar."""
    near = get_close_matches(name, names, 1) or get_close_matches(name.lower(), names, 1)
    return f"Did you mean {near[0]!r}?" if near else ""


@dataclass(frozen=True)
class Parameter:
    """A value that is not checked; searches change it only if a grid names it."""

    bounds: tuple = ()
    grid: tuple = ()
    differentiable: bool = False
    per_feature: bool = False

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        """The value of the parameter ``name`` of the kernel named ``kernel``, for the rows X and their weights."""
        return value

    def from_data(self, value: Any) -> bool:
        """Whether the value is a name for a number that comes from the data."""
        return False

    def limits(self, value: Any) -> tuple[float, float]:
        """(low, high) of continuous searches."""
        return self.bounds

    def values(self, X: Matrix) -> list:
        """Values of the default grid."""
        return list(self.grid)


@dataclass(frozen=True)
class Number(Parameter):
    """A finite number > 0, or >= 0."""

    bounds: tuple = (1e-4, 1e4)
    differentiable: bool = True
    zero: bool = False  # whether 0 is allowed

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        if not isinstance(value, Real) or not np.isfinite(float(value)) or value < 0 or (value == 0 and not self.zero):
            low = ">= 0" if self.zero else "> 0"
            raise ValueError(f"{name}={value!r} must be a finite number {low} for kernel={kernel!r}.")
        return value


@dataclass(frozen=True)
class Width(Parameter):
    """A factor of differences or products of features: one number, one for each feature, "scale" or "auto".

    "scale" is 1 / (n_features * X.var()), rows repeated by their weights; of kernels that take absolute differences
    (``absolute``) 1 / (n_features * X.std()). "auto" is 1 / n_features. ``bounds`` and ``grid`` are factors: of the
    largest value at the start, and of "scale".
    """

    bounds: tuple = (1e-5, 1e3)
    grid: tuple = tuple(np.logspace(-2, 1, 10).tolist())
    differentiable: bool = True
    per_feature: bool = True
    absolute: bool = False

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        if isinstance(value, str):
            if value not in ("scale", "auto"):
                choice = "'scale', 'auto', a positive number, or one per feature"
                raise ValueError(f"{name}={value!r} is unknown; use {choice}.")
            return self._scale(name, X, sample_weight) if value == "scale" else 1.0 / X.shape[1]
        numbers = np.asarray(value, dtype=float)
        shape = numbers.shape
        d = X.shape[1]
        if shape not in ((), (d,)):
            raise ValueError(f"{name} has shape {shape}; use one number or one value for each of the {d} features.")
        if not np.all(np.isfinite(numbers)) or np.any(numbers < 0) or not np.any(numbers > 0):
            raise ValueError(f"{name}={value!r} must be positive and finite (zero only switches single features off).")
        return numbers if numbers.ndim else float(numbers)

    def from_data(self, value: Any) -> bool:
        return isinstance(value, str)

    def limits(self, value: Any) -> tuple[float, float]:
        """(low, high) about the largest value."""
        low, high = self.bounds
        middle = float(np.max(value))
        return low * middle, high * middle

    def values(self, X: Matrix) -> list:
        """Multiples of "scale"."""
        return (self._scale("gamma", X) * np.array(self.grid)).tolist()

    def _scale(self, name, X, sample_weight=None):
        variance = _variance(X, sample_weight)
        total = X.shape[1] * (np.sqrt(variance) if self.absolute else variance)
        if not np.isfinite(total):
            raise ValueError(f"{name}='scale' overflows: X is too large to be squared; rescale X or give {name}.")
        return float(1.0 / total) if total > 1e-307 else 1.0 / X.shape[1]  # no variance, or one without an inverse


@dataclass(frozen=True)
class Scales(Parameter):
    """Finite numbers >= 0, one for each feature and one of them above 0; searches leave them as they are."""

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        numbers = np.asarray(value, dtype=float)
        if numbers.shape != (X.shape[1],):
            raise ValueError(f"{name} has shape {numbers.shape}; use one number for each of the {X.shape[1]} features.")
        if not np.all(np.isfinite(numbers)) or np.any(numbers < 0) or not np.any(numbers > 0):
            raise ValueError(f"{name}={value!r} must be finite numbers >= 0, at least one of them above 0.")
        return numbers


@dataclass(frozen=True)
class Weights(Number):
    """Finite numbers > 0, one for each of several things. ``bounds`` are factors of the largest at the start."""

    bounds: tuple = (1e-6, 1e3)

    def resolved(self, name: str, value: Any, kernel: str, X: Matrix, sample_weight: ArrayLike | None) -> Any:
        for weight in value:
            super().resolved(name, weight, kernel, X, sample_weight)
        return value

    def limits(self, value: Any) -> tuple[float, float]:
        low, high = self.bounds
        return low * max(value), high * max(value)


def check_decorated(kind):
    """Refuse a class with fields or a constructor of its own that is no dataclass: its parameters would be ignored."""
    for base in kind.__mro__[: kind.__mro__.index(Parametrised)]:
        has_fields = any("ClassVar" not in str(annotation) for annotation in get_annotations(base).values())
        if "__dataclass_params__" not in vars(base) and (has_fields or "__init__" in vars(base)):
            raise TypeError(
                f"{base.__name__}: the parameters of a kernel are the fields of a frozen dataclass, and {base.__name__}"
                " is none. Write @dataclass(frozen=True) above the class, and no __init__."
            )


@dataclass(frozen=True)
class Parametrised:
    """A frozen dataclass whose fields are its parameters, and whose ``parts`` have more of them."""

    @classmethod
    @cache
    def parameters(cls) -> dict[str, Parameter]:
        """The kinds of the fields by their names, in order."""
        check_decorated(cls)
        hints = get_type_hints(cls, include_extras=True)
        names = [entry.name for entry in fields(cls) if not entry.metadata.get("derived")]
        extras = {name: getattr(hints[name], "__metadata__", ()) for name in names}
        return {
            name: next((extra for extra in annotations if isinstance(extra, Parameter)), Parameter())
            for name, annotations in extras.items()
        }

    @property
    def parts(self) -> dict[str, Any]:
        """{name: object} of all objects with parameters that the fields hold."""
        values: dict[str, Any] = {}
        for name in self.parameters():
            value = getattr(self, name)
            values[name] = value
            if isinstance(value, tuple):
                values |= {f"{name}__{place}": entry for place, entry in enumerate(value)}
        return {name: value for name, value in values.items() if isinstance(value, Parametrised)}

    def with_parts(self, parts: dict) -> Self:
        """The same with these in the place of ``parts``."""
        values = {}
        for name in self.parameters():
            value = getattr(self, name)
            if isinstance(value, tuple):
                value = tuple(parts.get(f"{name}__{place}", entry) for place, entry in enumerate(value))
            values[name] = parts.get(name, value)
        return replace(self, **values)

    def get_params(self, deep: bool = True) -> dict:
        """The parameters by name, as scikit-learn asks for them; ``deep``: with those of the parts."""
        params = {name: getattr(self, name) for name in self.parameters()}
        for name, part in self.parts.items() if deep else ():
            params[name] = part
            params |= {f"{name}__{inner}": value for inner, value in part.get_params().items()}
        return params

    def changed(self, **params: Any) -> Self:
        """The same with other values of some parameters; this object stays as it is."""
        fields_of_self = {name: params.pop(name) for name in self.parameters().keys() & params.keys()}
        new = replace(self, **fields_of_self)
        parts = new.parts
        for part in parts:
            parts[part] = params.pop(part, parts[part])
            below = {name: params.pop(name) for name in list(params) if name.startswith(f"{part}__")}
            if below:
                parts[part] = parts[part].changed(**{name.removeprefix(f"{part}__"): below[name] for name in below})
        for name in params:
            names = list(new.get_params())
            raise ValueError(f"Invalid parameter {name!r} for kernel {new!r}. Valid parameters are: {names!r}.")
        return new.with_parts(parts)

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place, as scikit-learn does for ``estimator.set_params(kernel__name=value)``."""
        changed = vars(self.changed(**params))
        vars(self).clear()  # what was derived from the old ones goes with them
        vars(self).update(changed)
        return self

    # -- kinds ---------------------------------------------------------------------------------------------------------

    @property
    def kinds(self) -> dict[str, Parameter]:
        """The kinds of all parameters by name, with those of the parts."""
        kinds = dict(self.parameters())
        for name, part in self.parts.items():
            kinds |= {f"{name}__{inner}": kind for inner, kind in part.kinds.items()}
        return kinds

    @property
    def differentiable(self) -> tuple:
        """Names of the parameters that there are derivatives by."""
        return tuple(name for name, kind in self.kinds.items() if kind.differentiable)

    @property
    def per_feature(self) -> str | None:
        """Name of the field that may hold one value for each feature, if there is one."""
        return next((name for name, kind in self.parameters().items() if kind.per_feature), None)

    @property
    def unresolved(self) -> dict:
        """{parameter: value} of those whose numbers come from the data."""
        values = self.get_params()
        return {name: values[name] for name, kind in self.kinds.items() if kind.from_data(values[name])}

    def resolved(self, X: Matrix, sample_weight: ArrayLike | None = None) -> Self:
        """The same with all parameters checked and made numbers; weights count as repetitions of rows."""
        label = getattr(self, "name", "") or type(self).__name__
        numbers = {}
        for name, kind in self.parameters().items():
            numbers[name] = kind.resolved(name, getattr(self, name), label, X, sample_weight)
        new, parts = replace(self, **numbers), self.parts
        return new.with_parts({name: part.resolved(X, sample_weight) for name, part in parts.items()}) if parts else new

    def default_grid(self, X: Matrix) -> dict:
        """{field: values} to try on the rows X; those that hold several values, or objects with parameters, stay."""
        grid = {name: kind.values(X) for name, kind in self.parameters().items() if not np.ndim(getattr(self, name))}
        return {name: values for name, values in grid.items() if values}

    def limits(self) -> dict:
        """{parameter: (low, high)} for continuous searches that start here."""
        values, kinds = self.get_params(), self.kinds
        return {name: kinds[name].limits(values[name]) for name in self.differentiable}


def _variance(X, sample_weight):
    """Variance of all entries of X, rows repeated by their weights."""
    X = on_host(X)
    share = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, float)
    share = share / (share.sum() * X.shape[1])
    # Divided by the largest entry first: squares of 1e200 would overflow.
    largest = float(abs(X).max()) if X.shape[0] else 0.0
    if largest == 0 or not np.isfinite(largest):
        return 0.0
    Z = X / largest
    mean = float(share @ np.asarray(Z.sum(1)).ravel())
    if sp.issparse(Z):
        zeros = Z.shape[1] - np.diff(Z.indptr)
        deviations = sp.csr_array((np.square(Z.data - mean), Z.indices, Z.indptr), Z.shape)
        spread = float(share @ (np.asarray(deviations.sum(1)).ravel() + zeros * mean**2))
    else:
        spread = float(share @ np.square(Z - mean).sum(1))
    return spread * largest * largest if spread > (100 * np.finfo(float).eps) ** 2 else 0.0
