"""Kernel Fisher discriminant analysis (Cawley & Talbot 2003; Treder 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from foldless._engine.linalg.types import MatrixLike
from foldless._engine.readout.discriminant import Discriminant
from foldless.estimators.checks import numbers
from foldless.estimators.classifier import KernelClassifier
from foldless.estimators.missing import explain_unknown_arguments
from foldless.estimators.rows import PerRow, reads_one_state


@explain_unknown_arguments
@dataclass(kw_only=True, eq=False, repr=False)
class KernelFisherDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelClassifier):
    """Kernel Fisher discriminant for two or more classes, with exact leave-one-out.

    Regularised least squares on the indicators of the classes, read out by optimal scoring: the discriminant axes of
    the eigenproblem (S_b, S_w + alpha I) in feature space.

    Parameters
    ----------
    kernel, gamma, degree, coef0 : as in LSSVC
    alpha : float, default=1.0
        Penalty, > 0, added to the within-class scatter. Values from 1e-3 to 1e3 are worth trying, on features of
        comparable scale.
    penalty : {"rkhs", "coef"}, default="rkhs"
        Norm that is penalised: of the function or of its expansion coefficients (the 2003 paper).
    fit_intercept : bool, default=True; without it scatter is taken about the origin and ``transform`` has one more axis
    standardize : bool or "robust", default=False; as in LSSVC
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the classes, scaled to a mean of 1; "balanced" gives all classes the same total,
        computed once from the y given to ``fit``.
    calibration : {None, "sigmoid", "isotonic"}, default=None; as in LSSVC
    threshold : {"fisher", "pm1", "centroid", "loo"}, default="pm1"
        Where two classes are cut: "pm1" as regression on targets +-1 does (errs least on benchmarks); "fisher" on
        targets that give both classes the same weight, "centroid" midway between the class means, both for balanced
        errors of unbalanced classes; "loo" at the cut with the fewest leave-one-out errors. More classes always use
        centroids.
    priors : array-like of shape (n_classes,), default=None
        Class probabilities added to the centroid rule as logarithms; None: equal, or in proportion to a
        ``class_weight`` dict. With two classes they need threshold="centroid". Probabilities are those of rows in which
        the classes have these shares; with None those of the training rows.
    n_components : int, default=None; number of discriminant axes kept; None: all, one fewer than classes

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples, n_components), expansion of the discriminant axes
    centroids_ : ndarray of shape (n_classes, n_components), class centroids in the space of ``transform``
    explained_variance_ratio_ : ndarray of shape (n_components,), share of the between-class scatter on each axis
    coef_, intercept_ : linear kernel only; X @ coef_.T + intercept_ is the decision function, with more than two
        classes up to a constant for each row
    confound_coef_ : what each confound adds to the decision function, by its distance from the mean, where confounds
        are given; any kernel, only after ``fit`` with confounds
    classes_, X_fit_, kernel_, holder_, ids_, drift_, loo_score_, stratified_loo_score_, n_features_in_,
        feature_names_in_ : as in LSSVC

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import KernelFisherDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelFisherDiscriminant(alpha=0.1).fit(X, y)
    >>> round(model.loo_score_, 3)
    0.98
    >>> model.transform(X).shape
    (150, 2)
    """

    threshold: Literal["fisher", "pm1", "centroid", "loo"] = "pm1"
    priors: ArrayLike | None = None
    n_components: int | None = None

    def _class_factors(self, mass):
        """Factors in a dict are scaled to mean 1: alpha is added to a scatter of that size, and keeps its meaning."""
        factors = super()._class_factors(mass)
        return factors / factors.mean() if isinstance(self.class_weight, Mapping) else factors

    def _readout(self, n_classes, factors):
        most = n_classes - 1 if self.fit_intercept else n_classes
        axes = self.n_components
        if axes is not None and not (isinstance(axes, int | np.integer) and 1 <= axes <= most):
            raise ValueError(f"n_components={axes!r} must be an integer from 1 to {most} for {n_classes} classes.")
        priors = self._checked_priors(n_classes, factors)
        expected = None if self.priors is None else priors
        return Discriminant(n_classes, self.threshold, priors, axes, bool(self.fit_intercept), expected)

    def _checked_priors(self, n_classes, factors):
        if self.priors is None:
            # A class that counts more in the fit counts more in the decision; "balanced" means equal, as None does.
            return tuple(factors / factors.sum()) if isinstance(self.class_weight, Mapping) else None
        priors = numbers(np.ravel(self.priors))
        if priors is None or priors.shape != (n_classes,) or not np.all(priors > 0):
            raise ValueError(
                f"priors={self.priors!r} must be {n_classes} positive numbers, one for each of the classes."
            )
        if n_classes == 2 and self.threshold != "centroid":
            raise ValueError(
                f"priors move the centroid rule, but threshold={self.threshold!r} uses none with two classes;"
                " set threshold='centroid' or priors=None."
            )
        return tuple(priors / priors.sum())

    def _set_attributes(self):
        scalings, self.centroids_, a2 = self._rule.readout.axes(self._rule.moments)
        between = a2 / np.maximum(1 - a2, np.finfo(a2.dtype).eps)
        total = between.sum()
        self.explained_variance_ratio_ = between / total if total > 0 else between
        self._scalings = scalings
        self.dual_coef_ = self._dual @ scalings
        self._n_features_out = scalings.shape[1]

    @reads_one_state
    def transform(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """X on the discriminant axes, (n_samples, n_components); arguments as in ``decision_function``."""
        return self._fits(X, confounds) @ self._scalings

    @property
    @reads_one_state
    def intercept_(self) -> np.ndarray:
        """Constant of the linear decision function; only with ``kernel="linear"``."""
        self._check_linear("intercept_")
        return self._linear(*self._in_units_of_X())[1]

    def _linear(self, weights, offset):
        """The decision as X coef' + intercept: affine in the fits, up to the -nu/2 |z|^2 all classes share."""
        slopes, offsets = self._rule.readout.affine(self._rule.moments)
        return (weights @ slopes).T, offset @ slopes + offsets - self._rule.cut
