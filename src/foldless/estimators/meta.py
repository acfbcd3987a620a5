"""Meta-estimators: a sliding window over a stream, and one binary classifier for each class.

The window learns new rows and forgets the oldest, or those of least influence, exactly. The binary classifiers may
differ in kernel and penalty as well (Bo, Wang & Jiao 2006, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.validation import _estimator_has, check_is_fitted

from foldless._engine.linalg.types import MatrixLike
from foldless._engine.online.certificate import Certificate
from foldless._engine.readout.codings import chosen_labels
from foldless.estimators.checks import check_options
from foldless.estimators.classifier import LabelledDecisions, join_labels
from foldless.estimators.missing import available_where, explain_unknown_arguments
from foldless.estimators.rows import Ids, PerRow, all_or_nothing, check_unchanged, without_none
from foldless.estimators.versions import Versioned


def _with_classes(options, y, old_classes):
    """Arguments of ``partial_fit``, with all classes named where new ones appear: once named, classes stay."""
    labels = np.ravel(np.asarray(y))
    classes = options.pop("classes", None)
    if classes is not None:
        labels = join_labels(labels, np.ravel(np.asarray(classes)))
    old_classes = labels[:0] if old_classes is None else old_classes
    if np.isin(labels, old_classes).all():
        return options
    return {**options, "classes": np.unique(join_labels(old_classes, labels))}


@explain_unknown_arguments
@dataclass(eq=False, repr=False)
class SlidingWindow(MetaEstimatorMixin, Versioned):
    """An estimator that holds a limited number of rows: it learns new ones and forgets others in their place.

    After every call the model equals one fitted on the rows it holds.

    Parameters
    ----------
    estimator : KernelFisherDiscriminant, LSSVC, LSSVR or AdaptiveKDA
        It is cloned; give numbers for ``gamma``, which the first rows would otherwise decide for good.
    max_samples : int, default=1000; rows to hold at most
    drop : {"oldest", "least"}, default="oldest"
        Which rows go when there are too many: those learnt first, or one by one the row whose absence changes the
        squared leave-one-out residuals of the others least (O(n^2) for each row; not with AdaptiveKDA). The latter
        suits steady streams with clean labels: rows of influence stay, wrong and outdated ones among them.

    Attributes
    ----------
    estimator_ : the fitted estimator, with ``ids_``, ``loo_score_`` and all it has
    classes_ : classes seen so far; they stay when the window holds none of their rows
    n_samples_ : int, rows held

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from foldless import LSSVC, SlidingWindow
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> model = SlidingWindow(LSSVC(gamma=0.03), max_samples=200)
    >>> for start in range(0, 500, 50):
    ...     model = model.partial_fit(X[start : start + 50], y[start : start + 50])
    >>> model.n_samples_
    200
    >>> round(model.score(X[500:], y[500:]), 2)
    0.97
    """

    estimator: BaseEstimator
    max_samples: int = 1000
    drop: Literal["oldest", "least"] = field(default="oldest", kw_only=True)
    estimator_: Any = field(init=False)

    def fit(self, X: MatrixLike, y: ArrayLike, **options: Any) -> Self:
        """Start anew with these rows; arguments as in ``partial_fit``."""
        with all_or_nothing(self) as window:
            window._learn(clone(self.estimator), X, y, options)
        return self

    def partial_fit(self, X: MatrixLike, y: ArrayLike, **options: Any) -> Self:
        """Learn rows, then forget as many as are too many.

        ``options`` are further arguments of the estimator's ``partial_fit``, such as ``classes`` and ``sample_weight``.
        """
        with all_or_nothing(self) as window:
            fitted = hasattr(window, "estimator_")
            if fitted:
                check_unchanged(self.estimator, window.estimator_.get_params())
            window._learn(window.estimator_ if fitted else clone(self.estimator), X, y, options)
        return self

    def _learn(self, model, X, y, options):
        check_options(self)
        if not isinstance(self.max_samples, Integral) or self.max_samples < 2:
            raise ValueError(f"max_samples={self.max_samples!r} must be an integer of at least 2.")
        if not (hasattr(model, "partial_fit") and hasattr(model, "forget")):
            raise ValueError(
                f"estimator={model!r} cannot learn and forget rows; use one of LSSVC, LSSVR, KernelFisherDiscriminant,"
                " AdaptiveKDA, and scale X before."
            )
        if self.drop == "least" and not hasattr(model, "forgetting_effects"):
            raise ValueError(f"drop='least' needs forgetting_effects, which {type(model).__name__} does not have.")
        with all_or_nothing(model) as held:
            if is_classifier(held) and y is not None:
                options = _with_classes(options, y, getattr(held, "classes_", None))
            held.partial_fit(X, y, **options)
            surplus = held.X_fit_.shape[0] - self.max_samples
            if surplus > 0 and self.drop == "oldest":
                held.forget(np.arange(surplus))
            while surplus > 0 and self.drop == "least":
                held.forget([int(np.argmin(held.forgetting_effects()))])
                surplus -= 1
        self.estimator_ = model

    def forget(self, indices: ArrayLike | None = None, *, ids: Ids = None) -> Self:
        """Forget these rows; arguments as in the estimator's ``forget``."""
        self._fitted.forget(indices, ids=ids)
        return self

    @property
    def _fitted(self):
        check_is_fitted(self)
        return self.estimator_

    @available_where(_estimator_has("unlearning_certificate"))
    def unlearning_certificate(self) -> Certificate:
        """Evidence that the model equals one fitted from scratch on the rows it has now."""
        return self._fitted.unlearning_certificate()

    @property
    def n_samples_(self) -> int:
        """Rows held."""
        return self._fitted.X_fit_.shape[0]

    @property
    def classes_(self) -> np.ndarray:
        """Classes seen so far."""
        return self.estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, where the rows had any."""
        return self.estimator_.feature_names_in_

    def predict(self, X: MatrixLike, **options: Any) -> np.ndarray:
        """Predictions of the estimator; ``options`` are further arguments of its method, such as ``confounds``."""
        return self._fitted.predict(X, **options)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None) -> float:
        """Score of the estimator: accuracy or R2."""
        return self._fitted.score(X, y, sample_weight)

    @available_where(_estimator_has("decision_function"))
    def decision_function(self, X: MatrixLike, **options: Any) -> np.ndarray:
        """Decision values of the estimator; ``options`` as in ``predict``."""
        return self._fitted.decision_function(X, **options)

    @available_where(_estimator_has("predict_proba"))
    def predict_proba(self, X: MatrixLike, **options: Any) -> np.ndarray:
        """Class probabilities of the estimator; ``options`` as in ``predict``."""
        return self._fitted.predict_proba(X, **options)

    @property
    def loo_score_(self) -> float:
        """Exact leave-one-out score of the rows held."""
        return self._fitted.loo_score_

    def __sklearn_tags__(self):
        return replace(get_tags(self.estimator), transformer_tags=None)


def _all_have(method):
    def check(machine):
        for _, estimator in machine.estimators:
            getattr(estimator, method)
        return True

    return check


@explain_unknown_arguments
class OneAgainstAllClassifier(LabelledDecisions, Versioned):
    """One binary classifier for each class, with its own hyper-parameters; the largest decision wins.

    scikit-learn's ``OneVsRestClassifier`` fits copies of one estimator; here every class may have another penalty or
    kernel, as ``FoldlessSearchCV(share="kernel")`` and ``share="none"`` choose them.

    Parameters
    ----------
    estimators : list of (label, classifier), one for each class, in the order of the sorted labels

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    estimators_ : list of fitted binary classifiers, in the order of ``classes_``

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import LSSVC
    >>> from foldless.estimators import OneAgainstAllClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> parts = [(0, LSSVC(alpha=1.0)), (1, LSSVC(alpha=0.1)), (2, LSSVC(alpha=0.1))]
    >>> model = OneAgainstAllClassifier(parts).fit(X, y)
    >>> round(model.loo_score_, 3)
    0.98
    """

    def __init__(self, estimators: list[tuple[Any, BaseEstimator]]) -> None:
        self.estimators = estimators

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, confounds: PerRow = None) -> Self:
        """Fit every class against the others; weights and confounds go to each classifier."""
        labels = np.asarray(y)
        classes = np.unique(labels)
        named = [label for label, _ in self.estimators]
        if named != classes.tolist():
            raise ValueError(f"estimators names the classes {named}; y holds {classes.tolist()}.")
        options = without_none(sample_weight=sample_weight, confounds=confounds)
        with all_or_nothing(self) as machine:
            machine.estimators_ = [
                clone(estimator).fit(X, labels == label, **options) for label, estimator in self.estimators
            ]
            machine.classes_ = classes
            machine._y = labels.copy()
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(machine.estimators_[0], name):
                    setattr(machine, name, getattr(machine.estimators_[0], name))
        return self

    def decision_function(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Decision of every binary classifier, (n_samples, n_classes)."""
        check_is_fitted(self)
        options = without_none(confounds=confounds)
        return np.column_stack([estimator.decision_function(X, **options) for estimator in self.estimators_])

    def predict(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Labels (n_samples,) by the largest column of ``decision_function``."""
        return chosen_labels(self.decision_function(X, confounds), self.classes_)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: PerRow = None, confounds: PerRow = None) -> float:
        """Accuracy of ``predict``."""
        return accuracy_score(y, self.predict(X, confounds), sample_weight=sample_weight)

    @available_where(_all_have("predict_proba"))
    def predict_proba(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Probabilities of the binary problems, divided by their sum."""
        check_is_fitted(self)
        options = without_none(confounds=confounds)
        raw = np.column_stack([estimator.predict_proba(X, **options)[:, 1] for estimator in self.estimators_])
        total = raw.sum(1, keepdims=True)
        return np.where(total > 0, raw / np.where(total > 0, total, 1.0), 1.0 / len(self.classes_))

    @available_where(_all_have("loo_decision_function"))
    def loo_decision_function(self) -> np.ndarray:
        """Decisions of every training row by the classifiers fitted without it, (n_samples, n_classes)."""
        check_is_fitted(self)
        return np.column_stack([estimator.loo_decision_function() for estimator in self.estimators_])

    @available_where(_all_have("loo_decision_function"))
    def loo_predict(self) -> np.ndarray:
        """Label of every training row by the classifiers fitted without it."""
        return super().loo_predict()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        input_tags = [get_tags(estimator).input_tags for _, estimator in self.estimators]
        tags.input_tags.sparse = all(inner.sparse for inner in input_tags)
        tags.input_tags.pairwise = any(inner.pairwise for inner in input_tags)
        return tags
