"""The contract of a kernel, sums and products of kernels, and what the families share.

A kernel is a frozen dataclass and owns all that others ask of it: values, features and derivatives, and how the data it
works on are sliced and joined (X may be the Gram matrix itself). Its fields are its parameters, of the kinds in
``parameters``. Only X and weights of rows are seen, never labels.

To add a kernel write one such class; ``kernel=`` of the estimators takes its objects. An entry in
``registry.KERNELS`` gives it a name. Kernels are added and multiplied by + and *, which make a :class:`Sum` with one
weight for each term, or a :class:`Product`.
"""

from dataclasses import dataclass
from functools import reduce
from numbers import Real
from operator import mul
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from foldless._engine.linalg import (
    concat,
    put,
    zeros,
)
from foldless._engine.linalg.types import Matrix
from foldless.kernels.matrices import dot, squared_norms
from foldless.kernels.parameters import Parametrised, Weights, Width, check_decorated

MANY_ROWS = 8192  # from which on a Gram matrix is evaluated
BLOCK = 1024  # rows at a time


@dataclass(frozen=True, init=False)
class Kernel(Parametrised):
    """Base of the kernels: a kernel of rows x of a matrix X, without explicit features."""

    name: ClassVar[str] = ""
    takes_rows: ClassVar[bool] = True  # False: X is the Gram matrix itself
    is_linear: ClassVar[bool] = False  # True: features(X) is X itself
    approximates: ClassVar[bool] = False  # True: explicit features in the place of another kernel
    squares_condition: ClassVar[bool] = False  # True: the Gram matrix has the squared condition of the features' kernel

    def __init__(self, *values: Any, **named: Any) -> None:
        check_decorated(type(self))  # dataclasses with fields have a constructor of their own
        super().__init__(*values, **named)

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        """Gram matrix of shape (len(X), len(Z)), a new array that callers overwrite; Z=None: that of X with itself."""
        raise NotImplementedError

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) for each row of X."""
        raise NotImplementedError

    def n_features(self, X: Matrix) -> int | None:
        """Number of explicit features of the rows of X; None where there are none."""
        return None

    def features(self, X: Matrix) -> Any:
        """Explicit features (len(X), n_features), dense or sparse; None where there are none."""
        return None

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        """{parameter: sum_ij R_ij dK_ij/dparameter} for a symmetric R = dL/dK, which is overwritten, and K = gram(X).

        It costs one n x n product with X, whatever the number of features (Bo, Wang & Jiao 2006 pay d products of size
        n^3).
        """
        return {}

    def pullback_between(self, R: np.ndarray, X: Matrix, Z: Matrix) -> dict:
        """{parameter: sum_ij R_ij dk(x_i, z_j)/dparameter} for R = dL/dk(X, Z).

        By :meth:`pullback` of some rows of X and all of Z together; a kernel may know a shorter way.
        """
        derivatives: dict[str, Any] = {}
        m = Z.shape[0]
        for rows in gen_batches(X.shape[0], max(m, 256)):
            both = self.joined(X[rows], Z)
            n = both.shape[0] - m
            slopes = np.zeros((n + m, n + m), R.dtype)
            slopes[:n, n:] = R[rows] / 2
            slopes[n:, :n] = slopes[:n, n:].T
            for name, value in self.pullback(slopes, both, np.ascontiguousarray(self.gram(both))).items():
                derivatives[name] = derivatives.get(name, 0.0) + value
        return derivatives

    def slopes(self, coefficients: np.ndarray, X: Matrix, Z: Matrix) -> np.ndarray:
        """Slopes by the features at every row x_i of X, (len(X), n_features, n_functions).

        The functions are sum_j c_ij k(x, z_j), with coefficients (len(X), len(Z), n_functions) of their own at each
        row. Only searches that learn a kernel (``tuning.kernel_search``) need them; kernels without slopes raise an
        error.
        """
        raise NotImplementedError(
            f"{self!r} has no slopes by features; implement slopes(coefficients, X, Z), or use RBF or Laplacian."
        )

    def waves(self, rng: np.random.RandomState, shape: tuple) -> np.ndarray | None:
        """Frequencies (n_features, n_waves) whose cosines have this kernel as their mean, for a width of 1; or None."""
        return None

    def caution(self, X: Matrix) -> str | None:
        """A warning about rows X that do not suit the kernel; None if they do."""
        return next(filter(None, (part.caution(X) for part in self.parts.values())), None)

    @property
    def surely_symmetric(self) -> bool:
        """Whether Gram matrices are symmetric for certain; a function of the user may not be."""
        return all(part.surely_symmetric for part in self.parts.values())

    @property
    def landmarks_per_fold(self) -> bool | None:
        """Whether cross-validation chooses landmarks anew on every training part; None where none are chosen."""
        choices = {part.landmarks_per_fold for part in self.parts.values()} - {None}
        return any(choices) if choices else None

    def standardized(self, center: np.ndarray, spread: np.ndarray) -> "Kernel":
        """The kernel for the rows (X - center) / spread; landmarks of the user are standardised in the same way."""
        parts = self.parts
        if not parts:
            return self
        return self.with_parts({name: part.standardized(center, spread) for name, part in parts.items()})

    def narrower(self, factor: float) -> "Kernel":
        """The kernel of the rows times ``factor``: all its widths are divided by that."""
        widths = {name: kind for name, kind in self.kinds.items() if isinstance(kind, Width)}
        values = self.get_params()
        powers = {name: 1 if kind.absolute else 2 for name, kind in widths.items()}
        return self.changed(**{name: factor ** powers[name] * values[name] for name in widths})

    def of_unit_weight(self) -> tuple:
        """(total, kernel): this kernel is ``total`` times one whose weights, if it is a sum, add up to 1."""
        return 1.0, self

    # -- kernels made of this one ----------------------------------------------------------------------------------

    def __add__(self, other: Any) -> "Sum":
        return _sum([*self._terms(), *other._terms()]) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: Any) -> "Kernel":
        return self if isinstance(other, Real) and other == 0 else NotImplemented  # sum(kernels) starts from 0

    def __mul__(self, other: Any) -> "Kernel":
        if isinstance(other, Real):
            return _sum([(float(other) * weight, term) for weight, term in self._terms()])
        if not isinstance(other, Kernel):
            return NotImplemented
        (mine, first), (theirs, second) = self._weighted(), other._weighted()
        product = Product((*first._factors(), *second._factors()))
        return product if mine * theirs == 1 else _sum([(mine * theirs, product)])

    __rmul__ = __mul__

    def _terms(self) -> list:
        """[(weight, kernel)] that add up to this one."""
        return [(1.0, self)]

    def _weighted(self) -> tuple:
        """(weight, kernel) whose product is this one."""
        terms = self._terms()
        return terms[0] if len(terms) == 1 else (1.0, self)

    def _factors(self) -> tuple:
        """Kernels whose product is this one."""
        return (self,)

    # -- data: how X is sliced and joined ------------------------------------------------------------------------------

    def rows(self, X: Matrix, index: Any) -> Matrix:
        """The data of some rows alone."""
        return X[index]

    def block(self, X: Matrix, rows: Any, columns: Any) -> np.ndarray:
        """K[rows, columns] of the data X."""
        if rows is columns:
            return np.ascontiguousarray(self.gram(X[rows]))
        return self.gram(X[rows], X[columns])

    def against(self, X_new: Matrix, X: Matrix, columns: Any) -> np.ndarray:
        """Kernel between new rows and some rows of the data X."""
        return self.gram(X_new, X[columns])

    def joined(self, X: Matrix, more: Matrix) -> Matrix:
        """The data X with the rows ``more`` behind them."""
        return sp.vstack([X, more]).tocsr() if sp.issparse(X) else np.concatenate([X, more])


class FeatureMap(Kernel):
    """Base of the kernels that are given by explicit features, k(x, z) = phi(x).phi(z); a subclass writes ``features``.

    Models of fewer features than rows are held through them: memory and time grow with the number of features.
    """

    def features(self, X: Matrix) -> Any:
        raise NotImplementedError

    def n_features(self, X: Matrix) -> int:
        return self.features(X[:1]).shape[1]

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        Phi = self.features(X)
        return dot(Phi, Phi if Z is None else self.features(Z))

    def diag(self, X: Matrix) -> np.ndarray:
        return squared_norms(self.features(X))


@dataclass(frozen=True, repr=False)
class Sum(Kernel):
    """sum_k w_k k_k(x, z), what + and a number in front of a kernel make.

    Parameters are ``weights``, which only count beside each other (all of them times a number are alpha divided by it),
    and those of the terms, as ``terms__0__gamma``. Searches tune all of them by the gradient. None has a default grid,
    since the grids of all terms together would be huge: ``method="grid"`` without ``param_grid`` tries alpha alone.

    Examples
    --------
    >>> from foldless.kernels import RBF, Linear
    >>> kernel = RBF(0.1) + 0.5 * Linear()
    >>> kernel
    RBF(gamma=0.1) + 0.5 * Linear()
    >>> kernel.weights
    (1.0, 0.5)
    >>> kernel.set_params(terms__0__gamma=2.0, weights=(3.0, 1.0))
    3.0 * RBF(gamma=2.0) + Linear()
    """

    terms: tuple[Kernel, ...]
    weights: Annotated[Any, Weights()] = None  # None: all 1

    def __post_init__(self):
        terms = check_kernels("terms", self.terms)
        weights = (1.0,) * len(terms) if self.weights is None else self.weights
        if np.shape(weights) != (len(terms),):
            raise ValueError(f"weights={weights!r} must be numbers, one for each of the {len(terms)} terms.")
        weights = weights if isinstance(weights, tuple) else tuple(np.array(weights).tolist())
        vars(self).update(terms=terms, weights=weights)

    def __repr__(self):
        numbers = ["" if weight == 1 else f"{weight!r} * " for weight in self.weights]
        return " + ".join(f"{number}{term!r}" for number, term in zip(numbers, self.terms, strict=True))

    def _terms(self) -> list:
        return list(zip(self.weights, self.terms, strict=True))

    def of_unit_weight(self) -> tuple:
        total = sum(self.weights)
        return total, self.changed(weights=tuple(weight / total for weight in self.weights))

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        K: Any = None
        for weight, term in self._terms():
            part = term.gram(X, Z)
            part *= weight
            if K is None:
                K = part
            else:
                K += part
        return K

    def diag(self, X: Matrix) -> np.ndarray:
        return sum(weight * term.diag(X) for weight, term in self._terms())

    def n_features(self, X: Matrix) -> int | None:
        counts = [count for term in self.terms if (count := term.n_features(X)) is not None]
        return sum(counts) if len(counts) == len(self.terms) else None

    def features(self, X: Matrix) -> Any:
        """Those of all terms side by side, where all have some."""
        if self.n_features(X) is None:
            return None
        parts = [float(np.sqrt(weight)) * term.features(X) for weight, term in self._terms()]
        return sp.hstack(parts).tocsr() if any(map(sp.issparse, parts)) else concat(parts, 1)

    def slopes(self, coefficients: np.ndarray, X: Matrix, Z: Matrix) -> np.ndarray:
        return sum(weight * term.slopes(coefficients, X, Z) for weight, term in self._terms())

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        """By a weight, sum_ij R_ij k_k(x_i, x_j); by a parameter of a term, w_k times its own."""
        by_weight = []
        derivatives: dict[str, Any] = {}
        for place, (weight, term) in enumerate(self._terms()):
            K_term = term.gram(X)
            by_weight.append(np.vdot(R, K_term))
            if term.differentiable:
                derivatives |= _named(f"terms__{place}", term.pullback(weight * R, X, K_term))
        return {"weights": np.array(by_weight), **derivatives}


@dataclass(frozen=True, repr=False)
class Product(Kernel):
    """The product of kernels, what * makes of them. Parameters are those of its factors, as ``factors__0__gamma``.

    There is no default grid for any, as for :class:`Sum`.

    Examples
    --------
    >>> from foldless.kernels import RBF, Linear, Poly
    >>> (RBF(0.1) + Linear()) * Poly(degree=2)
    (RBF(gamma=0.1) + Linear()) * Poly(gamma=1.0, degree=2, coef0=1.0)
    """

    factors: tuple[Kernel, ...]

    def __post_init__(self):
        vars(self).update(factors=check_kernels("factors", self.factors))

    def __repr__(self):
        return " * ".join(f"({factor!r})" if isinstance(factor, Sum) else repr(factor) for factor in self.factors)

    def _factors(self) -> tuple:
        return self.factors

    def gram(self, X: Matrix, Z: Matrix | None = None) -> np.ndarray:
        first, *others = self.factors
        K = first.gram(X, Z)
        for factor in others:
            K *= factor.gram(X, Z)
        return K

    def diag(self, X: Matrix) -> np.ndarray:
        return reduce(mul, (factor.diag(X) for factor in self.factors))

    def pullback(self, R: np.ndarray, X: Matrix, K: np.ndarray) -> dict:
        """By a parameter of a factor: its own, of R times all other factors."""
        grams = [factor.gram(X) for factor in self.factors]
        derivatives: dict[str, Any] = {}
        for place, factor in enumerate(self.factors):
            slope = R.copy()
            for other in grams[:place] + grams[place + 1 :]:
                slope *= other
            derivatives |= _named(f"factors__{place}", factor.pullback(slope, X, grams[place]))
        return derivatives


def _sum(terms):
    weights, kernels = zip(*terms, strict=True)
    return Sum(kernels, weights)


def check_kernels(name, kernels):
    """A tuple of kernels of rows, at least one."""
    kernels = tuple(kernels)
    for kernel in kernels:
        if not (isinstance(kernel, Kernel) and kernel.takes_rows):
            raise ValueError(
                f"{name}: {kernel!r} is no kernel of rows of X. Use objects of foldless.kernels, with Custom(f) for a"
                " function f(X, Z). Gram matrices can be added and multiplied before, for kernel='precomputed'."
            )
    if not kernels:
        raise ValueError(f"{name} is empty; give at least one kernel.")
    return kernels


def _named(part, values):
    return {f"{part}__{name}": value for name, value in values.items()}


def gram_of_all(kernel, X):
    """The Gram matrix of X with itself; of many rows C-ordered, in blocks, so that nothing else of its size is held."""
    n = X.shape[0]
    if n <= MANY_ROWS:
        return kernel.gram(X)
    K = zeros(X, (n, n))
    for rows in gen_batches(n, BLOCK):
        K = put(K, (rows, rows), kernel.gram(X[rows]))
        if rows.start:
            block = kernel.gram(X[rows], X[: rows.start])
            K = put(K, (rows, slice(rows.start)), block)
            K = put(K, (slice(rows.start), rows), block.T)
    return K
