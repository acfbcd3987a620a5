"""FoldlessSearchCV: hyper-parameters by closed-form held-out criteria, behind the interface of GridSearchCV."""

import warnings
from collections.abc import Mapping
from functools import cached_property
from numbers import Integral

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS, Search
from foldless.bridge.candidates import check_known, heldout_scores
from foldless.bridge.splits import draw_splits
from foldless.estimators import OneAgainstAllClassifier
from foldless.estimators.checks import check_option, numbers
from foldless.model_selection._descent import descend
from foldless.model_selection._grid import grid
from foldless.readout.calibration import fit_calibration
from foldless.tuning import criteria
from foldless.tuning.search import PRIORS

METHODS = ("grid", "simplex", "gradient")
SHARES = ("all", "kernel", "none")


def _best_has(method):
    """Whether the chosen estimator (before ``fit`` the given one) has a method; its own error if not."""

    def check(search):
        getattr(search.best_estimator_ if hasattr(search, "best_estimator_") else search.estimator, method)
        return True

    return check


def _gives_probabilities(search):
    if not is_classifier(search.estimator):
        raise AttributeError("predict_proba is for classifiers.")
    return True if not isinstance(search.estimator, FOLDLESS_ESTIMATORS) else _best_has("predict_proba")(search)


class FoldlessSearchCV(Search, MetaEstimatorMixin, BaseEstimator):
    """Hyper-parameters by exact held-out criteria, at the price of one decomposition for each kernel.

    Every candidate is judged by its exact leave-one-out fits (or those of any splitter), without refits. A grid takes
    one decomposition for each kernel setting and all alphas along with it; the continuous searches follow the exact
    gradient, whose cost does not grow with the number of parameters, so that every feature can have a scale of its own.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, KernelFisherDiscriminant, Ridge, RidgeClassifier or KernelRidge
        The continuous searches start from its parameters: a fitted ``best_estimator_`` is a warm start.
    param_grid : dict or list of dicts, default=None
        As in GridSearchCV; ``kernel`` and any other parameter allowed. None: a grid from the data for alpha and the
        kernel's own parameters. For the continuous searches every candidate is a starting point.
    cv : int, splitter or iterable, default=None
        What is left out together; None: each row alone. Use a group splitter for grouped rows: leave-one-out leaks
        there. The criterion is taken over all held-out rows together.
    criterion : str or callable, default="press"
        Loss of the held-out fits, +-1 one against all: "press", "error", "smooth_error", "ber", "smooth_ber", "hinge",
        "hinge2", "auc", "smooth_auc" (losses add up over the classes), "multiclass_error" (of the classifier's own
        decision), or a function ``f(f, t, w)`` of fits, targets and weights of one class that returns the loss, or
        (loss, derivative by the fits).
    criterion_weight : {None, "balanced", "sample_weight"}, default=None
        Weights of the rows in the criterion, apart from those of the fit: equal, both classes the same, or those given
        to ``fit``.
    method : {"grid", "simplex", "gradient"}, default="grid"
        Nelder-Mead and L-BFGS-B work on the logarithms of alpha and of the parameters of the kernel.
    feature_scaling : bool, default=False
        One gamma for each feature, for "rbf", "poly" and "laplacian" by "gradient" (or, for very few, "simplex").
    feature_groups : array-like of shape (n_features,), default=None
        Features with equal entries share one scale; implies ``feature_scaling``.
    share : {"all", "kernel", "none"}, default="all"
        What the classes have in common: all parameters, the kernel but not alpha, or nothing.
    prior : {"auto", "cauchy", "bayes", None}, default="auto"
        Guards "press" against over-fitting where features have scales of their own: "cauchy" draws them to one gamma,
        "bayes" to 0 (Cawley & Talbot 2007), None leaves them free. "auto" is "cauchy" for "press", None otherwise
        (docs/benchmarks.md: better than no prior, not better than a single gamma).
    bounds : dict, default=None
        {parameter: (low, high)} for the continuous searches; the rest from the data.
    n_starts : int, default=1
        Starting points for each candidate, the first at its own parameters, the others around it.
    max_iter : int, default=50
        Iterations from each starting point.
    slope : float or sequence of floats, default=10.0
        Steepness of the smooth criteria; of several, the one with the least error (ber, auc) is kept.
    random_state : int, RandomState instance or None, default=None
        Draws the further starting points.
    n_jobs : int, default=None
        Processes over kernel settings or starting points; the linear algebra has threads of its own.
    refit : bool, default=True
        Whether to fit the best setting on all rows.
    verbose : int, default=0
        1 prints progress to standard error.

    Attributes
    ----------
    best_params_ : dict; a list of dicts, one for each class, where ``share`` is not "all"
    best_score_ : float, minus the criterion of the best setting (a prior not counted). It was optimised: no estimate of
        performance.
    best_estimator_ : the estimator refitted on all rows; an ``OneAgainstAllClassifier`` where ``share`` is not "all"
    best_index_ : int, place of the best candidate in ``cv_results_``; one for each class with ``share="none"``
    cv_results_ : dict of arrays: "params", "param_...", "mean_test_score" (minus the criterion), "rank_test_score"
    history_ : list of dicts, every setting looked at in order, with its "criterion" and, for continuous searches, the
        number of its "start" and the "objective" that was minimised: the criterion, and the prior where there is one
    n_iter_ : int, their number
    slope_ : float, the steepness in force
    feature_scales_ : ndarray of shape (n_features,) or (n_classes, n_features), with feature scaling only
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import FoldlessSearchCV, LSSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> search = FoldlessSearchCV(LSSVC(), {"alpha": [0.01, 0.1, 1.0], "gamma": [0.01, 0.1, 1.0]}).fit(X, y)
    >>> search.best_params_
    {'alpha': 0.1, 'gamma': 1.0}
    >>> scaled = FoldlessSearchCV(LSSVC(), method="gradient", feature_scaling=True).fit(X, y)
    >>> bool(scaled.best_score_ > search.best_score_), scaled.feature_scales_.shape
    (True, (4,))
    """

    def __init__(
        self,
        estimator,
        param_grid=None,
        *,
        cv=None,
        criterion="press",
        criterion_weight=None,
        method="grid",
        feature_scaling=False,
        feature_groups=None,
        share="all",
        prior="auto",
        bounds=None,
        n_starts=1,
        max_iter=50,
        slope=10.0,
        random_state=None,
        n_jobs=None,
        refit=True,
        verbose=0,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.criterion = criterion
        self.criterion_weight = criterion_weight
        self.method = method
        self.feature_scaling = feature_scaling
        self.feature_groups = feature_groups
        self.share = share
        self.prior = prior
        self.bounds = bounds
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.slope = slope
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.refit = refit
        self.verbose = verbose

    # -- fitting -------------------------------------------------------------------------------------------------------

    def fit(self, X, y, sample_weight=None, groups=None):
        """Search, and fit the best setting.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the fit; of the criterion only with ``criterion_weight="sample_weight"``.
        groups : array-like of shape (n_samples,), default=None
            For splitters that need them.

        Returns
        -------
        self : object
        """
        X, y, groups = indexable(X, y, groups)
        criterion = self._checked()
        if groups is not None and self.cv is None:
            warnings.warn(
                "groups is ignored by cv=None, which leaves out single rows: rows of a group then vouch for each other."
                " Use cv=GroupKFold() or another splitter of groups.",
                UserWarning,
                stacklevel=2,
            )
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, np.empty((len(y), 1)), ensure_non_negative=True)
            if np.count_nonzero(sample_weight) < 2:
                raise ValueError("sample_weight leaves fewer than two rows with a positive weight.")
        if is_classifier(self.estimator):
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            if sample_weight is not None and len(np.unique(y[sample_weight > 0])) < min(2, len(np.unique(y))):
                raise ValueError("sample_weight leaves one class only; at least two need rows of positive weight.")
        before = vars(self).copy()
        try:
            for name in before:  # nothing of an earlier fit may survive
                if name.endswith("_") or name == "_sigmoid":
                    delattr(self, name)
            splits = draw_splits(self.cv, self.estimator, X, y, groups)
            run = grid if self.method == "grid" else descend
            outcome = run(self, criterion, X, y, sample_weight, splits)
            self._accept(outcome)
            if self.refit:
                self._refit(X, y, sample_weight, splits, outcome.held)
        except BaseException:
            vars(self).clear()  # a fit that fails leaves an earlier one as it was
            vars(self).update(before)
            raise
        return self

    def _checked(self):
        """The criterion; refuses parameters that make no sense together."""
        check_known(self.estimator)
        check_option("method", self.method, METHODS)
        check_option("share", self.share, SHARES)
        check_option("prior", self.prior, ("auto", None, *PRIORS))
        check_option("criterion_weight", self.criterion_weight, criteria.WEIGHTS)
        slopes = numbers(np.atleast_1d(self.slope).tolist())
        if slopes is None or not len(slopes) or np.any(slopes <= 0):
            raise ValueError(f"slope={self.slope!r} must be a finite number > 0, or several.")
        criterion = criteria.resolve(self.criterion)
        if self.method == "grid":
            if len(slopes) > 1:
                raise ValueError(
                    f"slope={self.slope!r} lists several, for method='gradient' or 'simplex'; a grid can take the error"
                    " itself: criterion='error', 'ber' or 'auc'."
                )
            criterion = criterion.with_slope(slopes[0])
        classifier = is_classifier(self.estimator)
        if criterion.whole and self.share != "all":
            raise ValueError(f"criterion={self.criterion!r} judges all classes together; it needs share='all'.")
        for unfit, what in (
            (criterion.labels, f"criterion={self.criterion!r}"),
            (self.criterion_weight == "balanced", "criterion_weight='balanced'"),
            (self.share != "all", f"share={self.share!r}"),
        ):
            if unfit and not classifier:
                raise ValueError(
                    f"{type(self.estimator).__name__} has no classes, which {what} needs. Use criterion='press' or a"
                    " callable, criterion_weight=None and share='all' for regressors."
                )
        if self.method == "gradient" and not criterion.smooth:
            smooth = [name for name, each in criteria.CRITERIA.items() if each.smooth]
            raise ValueError(
                f"criterion={self.criterion!r} has no derivative; with method='gradient' use one of {smooth}, or"
                " method='simplex'."
            )
        if self.method == "grid" and self.bounds is not None:
            raise ValueError("bounds is for method='gradient' or 'simplex'; a grid says itself where it ends.")
        if self.method == "grid" and self._scaled:
            raise ValueError("feature_scaling needs method='gradient' (or 'simplex'): a grid of scales has no end.")
        if self.prior in PRIORS and self.criterion != "press":
            raise ValueError(
                f"prior={self.prior!r} goes with a model of squared residuals; criterion={self.criterion!r} has none."
                " Use criterion='press' or prior=None."
            )
        if self.prior in PRIORS and not self._scaled:
            raise ValueError(f"prior={self.prior!r} is one of feature scales; it needs feature_scaling=True.")
        for name in ("feature_scaling", "refit"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False.")
        for name in ("n_starts", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name}={value!r} must be an integer >= 1.")
        if self.share != "all":
            self._check_apart()
        return criterion

    def _check_apart(self):
        """Parameters that speak of several classes lose their meaning where each class is a problem of its own."""
        grids = [self.param_grid] if isinstance(self.param_grid, Mapping) else self.param_grid or []
        for name in ("class_weight", "priors", "n_components"):
            if getattr(self.estimator, name, None) is not None or any(name in each for each in grids):
                raise ValueError(
                    f"{name} speaks of several classes and share={self.share!r} takes each class by itself; use"
                    " share='all', or sample_weight for weights of classes."
                )

    @property
    def _prior(self):
        """The name of the prior in force, or None."""
        return ("cauchy" if self.criterion == "press" else None) if self.prior == "auto" else self.prior

    @property
    def _scaled(self):
        return self.feature_scaling or self.feature_groups is not None

    def _accept(self, outcome):
        """Store what a search found."""
        if outcome.classes is not None:
            self.classes_ = outcome.classes
        self.best_index_ = outcome.chosen[0] if len(outcome.chosen) == 1 else outcome.chosen
        self.best_score_ = -float(outcome.loss)
        self.slope_ = float(np.atleast_1d(self.slope)[0]) if outcome.slope is None else outcome.slope
        self.best_params_ = outcome.best[0] if len(outcome.best) == 1 else outcome.best
        self.cv_results_ = _table(outcome.params, outcome.losses)
        self.history_ = outcome.history
        self.n_iter_ = len(self.history_)
        if self._scaled:
            scales = np.array([each["gamma"] for each in outcome.best])
            self.feature_scales_ = scales if self.share == "none" and len(scales) > 1 else scales[0]

    def _refit(self, X, y, sample_weight, splits, held):
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.best_estimator_ = self._chosen().fit(X, y, **options)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        if is_classifier(self.estimator) and not isinstance(self.estimator, FOLDLESS_ESTIMATORS):
            if held is None or self.share != "all":
                held = heldout_scores(self._chosen(), X, y, sample_weight, splits)
            rows, scores = held
            scores = scores if len(self.classes_) > 2 else scores.reshape(-1)
            codes = np.searchsorted(self.classes_, np.asarray(y))[rows]
            weights = np.ones(len(rows)) if sample_weight is None else sample_weight[rows]
            self._sigmoid = _Sigmoid(scores, codes, len(self.classes_), weights)

    def _chosen(self):
        """The best setting, not fitted."""
        if isinstance(self.best_params_, dict):
            return clone(self.estimator).set_params(**self.best_params_)
        parts = [clone(self.estimator).set_params(**each) for each in self.best_params_]
        return OneAgainstAllClassifier(list(zip(self.classes_.tolist(), parts, strict=True)))

    # -- the chosen estimator ------------------------------------------------------------------------------------------

    @property
    def _best(self):
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit=False leaves no fitted estimator; fit one with best_params_.")
        return self.best_estimator_

    def predict(self, X):
        """``predict`` of the best estimator."""
        return self._best.predict(X)

    @available_if(_best_has("decision_function"))
    def decision_function(self, X):
        """``decision_function`` of the best estimator."""
        return self._best.decision_function(X)

    @available_if(_gives_probabilities)
    def predict_proba(self, X):
        """``predict_proba`` of the best estimator; for RidgeClassifier a sigmoid fitted to held-out decisions."""
        best = self._best
        if not hasattr(self, "_sigmoid"):
            return best.predict_proba(X)
        return self._sigmoid.fitted.proba(best.decision_function(X))

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X):
        """Logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @available_if(_best_has("transform"))
    def transform(self, X):
        """``transform`` of the best estimator."""
        return self._best.transform(X)

    @available_if(_best_has("transform"))
    def fit_transform(self, X, y, **fit_params):
        """``fit``, then ``transform``."""
        return self.fit(X, y, **fit_params).transform(X)

    def score(self, X, y, sample_weight=None):
        """Accuracy or R2 of the best estimator."""
        return self._best.score(X, y, sample_weight=sample_weight)

    @property
    def alpha_(self):
        """The chosen alpha, as RidgeClassifierCV calls it."""
        check_is_fitted(self)
        if isinstance(self.best_params_, dict):
            return self.best_params_.get("alpha", self.estimator.alpha)
        return np.array([each.get("alpha", self.estimator.alpha) for each in self.best_params_])

    @property
    def coef_(self):
        """``coef_`` of the best estimator."""
        return self._best.coef_

    @property
    def intercept_(self):
        """``intercept_`` of the best estimator."""
        return self._best.intercept_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "cv_results_")

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        tags.regressor_tags = inner.regressor_tags
        tags.transformer_tags = inner.transformer_tags
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags = inner.target_tags
        return tags


class _Sigmoid:
    """Held-out scores and the sigmoid of them, fitted if it is ever asked for."""

    def __init__(self, *scores):
        self.scores = scores

    @cached_property
    def fitted(self):
        return fit_calibration("sigmoid", *self.scores)


def checked_criterion(search):
    """The criterion of a search at its (first) slope; refuses parameters that make no sense together."""
    return search._checked().with_slope(float(np.atleast_1d(search.slope)[0]))


def _table(params, losses):
    """cv_results_ in the shape of GridSearchCV's."""
    names = sorted({name for each in params for name in each})
    table = {"params": params}
    for name in names:
        column = np.ma.masked_all(len(params), dtype=object)
        for place, each in enumerate(params):
            if name in each:
                column[place] = each[name]
        table[f"param_{name}"] = column
    table["mean_test_score"] = -losses
    table["rank_test_score"] = rankdata(losses, method="min").astype(int)
    return table
