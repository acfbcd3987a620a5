"""FoldlessSearchCV: hyper-parameters by closed-form held-out criteria, behind the interface of GridSearchCV."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from foldless._engine.heldout.caution import HugePenaltyWarning, LongFitWarning
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike, RandomStateLike
from foldless._engine.online.certificate import Certificate
from foldless._engine.tuning.criteria import Criterion
from foldless._engine.tuning.spec import Optimizer
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS
from foldless._sklearn.candidates import SearchData, chosen_setting
from foldless._sklearn.landmarks import landmarks_to_find
from foldless._sklearn.pipelines import Search, input_tags, split_steps
from foldless._sklearn.scorers import stored_with_confounds
from foldless._sklearn.steps import StepsLike
from foldless.estimators.checks import rows_and_labels
from foldless.estimators.missing import available_where, explain_unknown_arguments
from foldless.estimators.rows import Ids, PerRow, all_or_nothing, without_none
from foldless.estimators.versions import Versioned
from foldless.model_selection._landmark_search import fit_with_landmarks
from foldless.model_selection._search_outcome import held_out_sigmoid, settings_card
from foldless.model_selection._search_runs import prepared, run_search, warn_of_end
from foldless.model_selection._search_spec import (
    check_search_with_confounds,
    checked_rows,
    search_spec,
    warn_of_unused_groups,
)
from foldless.model_selection._types import CVLike, ScoringLike
from foldless.results import frame


def _best_has(method):
    """Whether the best estimator (before ``fit``: the estimator) has a method; its error if not."""

    def check(search):
        best = search.best_estimator_ if hasattr(search, "best_estimator_") else search.estimator
        getattr(split_steps(best).last, method)
        return True

    return check


def _gives_probabilities(search):
    if not is_classifier(search.estimator):
        raise AttributeError("predict_proba is for classifiers.")
    fits_sigmoid = hasattr(search, "_sigmoid") or not hasattr(search, "best_estimator_")
    if fits_sigmoid and not isinstance(split_steps(search.estimator).last, FOLDLESS_ESTIMATORS):
        return True
    return _best_has("predict_proba")(search)


@explain_unknown_arguments
class FoldlessSearchCV(Search, MetaEstimatorMixin, Versioned):
    """Search for hyper-parameters by exact held-out criteria, in the time of a few fits.

    Every candidate is scored by its exact leave-one-out fits (or those of any splitter), without refits. Without
    ``param_grid`` a whole grid is evaluated on some hundred rows, a few settings on more of them, and one to three on
    all rows. With ``kernel="auto"`` of the estimator the search learns a kernel with a scale for each feature. A grid
    takes one decomposition for each kernel setting. Continuous searches follow the exact gradient, whose cost does not
    grow with the number of parameters: every feature can have its own scale.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, KernelFisherDiscriminant, Ridge, RidgeClassifier or KernelRidge, or a pipeline
        that ends in one of them, with parameters named ``lssvc__alpha``. The continuous searches start from its
        parameters: a fitted ``best_estimator_`` is a warm start.
    param_grid : dict or list of dicts, default=None
        As in GridSearchCV, with ``kernel``, any other parameter, and those of earlier steps of a pipeline. None: alpha
        and the kernel's parameters. For the continuous searches every candidate is a starting point.
    cv : int, splitter or iterable, default=None
        Which rows are left out together; None: leave-one-out. Use a group splitter for grouped rows, where
        leave-one-out leaks. The criterion is computed from all held-out rows together.
    scoring : str, scorer, list or dict of them, default=None
        The score that decides in place of the criterion: any scorer of scikit-learn (of several, the one that
        ``refit`` names). As in GridSearchCV it is computed from the held-out predictions of every split and averaged;
        with ``cv=None`` from all held-out predictions together. None: the criterion decides, and accuracy or R2 is
        recorded. Rows of weight 0 are not scored. Functions of the fitted estimator raise an error, and so do scores of
        probabilities with ``cv=None``.
    criterion : str, callable or Criterion, default="press"
        Loss of the held-out fits, +-1 one against all: "press", "error", "smooth_error", "ber", "smooth_ber", "hinge",
        "hinge2", "auc", "smooth_auc" (losses add up over the classes), "multiclass_error" (of the classifier's own
        decision), or a function ``f(f, t, w)`` of fits, targets and weights of one class that returns the loss, or
        (loss, derivative by the fits). A ``foldless.criteria.Criterion`` is taken as those with names are, such as
        ``CRITERIA["smooth_error"].with_slope(5.0)``, less steep than the 10 of the name.
    criterion_weight : {"auto", None, "balanced", "sample_weight"}, default="auto"
        Weights of the rows in the criterion. "auto": those of the fit, ``sample_weight`` times ``class_weight`` (the
        former alone where candidates differ in the latter). None: equal. "balanced": both classes the same.
        "sample_weight": ``sample_weight`` alone, which scores then take as well.
    method : {"auto", "grid", "simplex", "gradient"} or Optimizer, default="auto"
        "auto" evaluates all of ``param_grid``. Without ``param_grid`` it evaluates a default grid up to 500 rows, and
        where a linear model has fewer features than rows; otherwise that grid on some hundred rows, then a descent of
        the criterion there and on a fifth of the rows, and at the end one to three settings on all rows. "grid"
        evaluates the whole grid on all rows. "simplex" (Nelder-Mead) and "gradient" (L-BFGS-B) search the logarithms of
        alpha and of the parameters of the kernel. An :class:`~foldless.model_selection.Optimizer` is such a method with
        bounds, further starting points, a number of iterations, and a gamma for each feature.
    share : {"all", "kernel", "none"}, default="all"
        Which parameters the classes have in common: all of them, the kernel but not alpha, or none.
    random_state : int, RandomState instance or None, default=0
        Draws the parts of the rows and the further starting points.
    n_jobs : int, default=None
        Processes over kernel settings or starting points; the linear algebra has its own threads.
    refit : bool or str, default=True
        Whether to fit the best setting on all rows; of several scores the name of the deciding one, or False: none.
    time_limit : float, default=None
        Seconds after which the search stops with a warning and takes the best setting so far; the current evaluation is
        finished first, and the final fit is not counted. Ctrl-C stops the search as well.
    verbose : int, default=None
        1 prints progress to standard error, 0 nothing. None: in terminals and notebooks, after a few seconds.
    steps : {"once", "each"}, default="once"
        The first steps of a pipeline: fitted once on all rows, labels unseen, or on every training part of ``cv``, as
        GridSearchCV does (grids only; the steps may then learn from y). :func:`nested_cross_validate` refits them for
        every outer training part by default.

    Attributes
    ----------
    best_params_ : dict; a list of dicts, one for each class, where ``share`` is not "all"
    best_score_ : float, the score of the best setting: by ``scoring``, or accuracy or R2. It is too good an estimate of
        performance, since the setting was chosen by it, and with ``kernel="auto"`` the scales of the features have seen
        every label (on 28 data sets its error was 0.9 points below that of new rows). If ``share`` is not "all", the
        score of the classifier put together from the best settings. nan with ``threshold="loo"`` and ``cv=None``, where
        every row has its own cut.
    best_criterion_, best_criterion_se_ : float, the criterion of the best setting, a loss without the prior; and its
        standard error if it is a mean over rows (rows taken as independent), else nan
    best_estimator_ : the estimator refitted on all rows; an ``OneAgainstAllClassifier`` where ``share`` is not "all"
    best_index_ : int, place of the best candidate in ``cv_results_``; one for each class with ``share="none"``
    cv_results_ : dict of arrays as GridSearchCV's: "params", "param_...", "split0_test_score", ..., "mean_test_score",
        "std_test_score", "rank_test_score" ("..._test_NAME" of several scores), and "mean_test_criterion",
        "se_test_criterion", "rank_test_criterion" (a loss: the least has rank 1). With ``cv=None`` there are no columns
        of splits, and "std_test_score" is nan. "mean_fit_time" is the time of a kernel setting, which all its alphas
        and splits share, divided by the number of its alphas; "mean_score_time" that of the scores. Scores are nan for
        the steps of a descent and, if ``scoring`` is None, for all but the best alpha of each kernel of a discriminant.
    scorer_, multimetric_ : the scorer, or {name: scorer} of several; bool, whether there may be several
    n_splits_ : int, number of splits; of rows with ``cv=None``
    refit_time_ : float, seconds of the fit on all rows
    history_ : list of dicts, every evaluated setting in order, with its "criterion" (its "score", if one decides),
        the number of rows ("n_rows") it was scored on and the "time" in seconds; for continuous searches also the
        number of its "start" and the "objective" that was minimised: the criterion, and the prior where there is one
    stopped_ : None, or what ended the search before its end: "time_limit" or "interrupted"
    n_iter_ : int, their number
    landmark_path_ : list of dicts with the numbers of landmarks that were tried, "n_landmarks", their "criterion" and
        "seconds"; only where the search finds the number, which is ``best_params_["kernel__n_landmarks"]`` or that of
        ``best_params_["kernel"]``
    feature_scales_ : ndarray of shape (n_features,) or (n_classes, n_features), with a gamma for each feature, and with
        ``kernel="auto"``: those of its Laplacian kernel, of mean square 1
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from foldless import FoldlessSearchCV, LSSVC
    >>> from foldless.model_selection import Optimizer
    >>> X, y = load_iris(return_X_y=True)
    >>> search = FoldlessSearchCV(LSSVC(), {"alpha": [0.01, 0.1, 1.0], "gamma": [0.01, 0.1, 1.0]}).fit(X, y)
    >>> search.best_params_
    {'alpha': 0.1, 'gamma': 1.0}
    >>> scaled = FoldlessSearchCV(LSSVC(), method=Optimizer("gradient", feature_scaling=True)).fit(X, y)
    >>> bool(scaled.best_criterion_ < search.best_criterion_), scaled.feature_scales_.shape
    (True, (4,))
    >>> balanced = FoldlessSearchCV(LSSVC(), cv=5, scoring="balanced_accuracy").fit(X, y)
    >>> round(balanced.best_score_, 2)
    0.99
    """

    best_estimator_: Any
    best_params_: Any
    scorer_: Any
    multimetric_: bool
    classes_: Any
    cv_results_: dict

    def __init__(
        self,
        estimator: BaseEstimator,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        cv: CVLike = None,
        scoring: ScoringLike = None,
        criterion: str | Callable | Criterion = "press",
        criterion_weight: Literal["auto", "balanced", "sample_weight"] | None = "auto",
        method: Literal["auto", "grid", "simplex", "gradient"] | Optimizer = "auto",
        share: Literal["all", "kernel", "none"] = "all",
        random_state: RandomStateLike = 0,
        n_jobs: int | None = None,
        refit: bool | str = True,
        time_limit: float | None = None,
        verbose: int | None = None,
        steps: StepsLike = "once",
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.criterion = criterion
        self.criterion_weight = criterion_weight
        self.method = method
        self.share = share
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.refit = refit
        self.time_limit = time_limit
        self.verbose = verbose
        self.steps = steps

    # -- fitting ----------------------------------------------------------------------------------------------------

    @threads_by_size
    def fit(
        self,
        X: MatrixLike,
        y: MatrixLike,
        sample_weight: PerRow = None,
        groups: PerRow = None,
        confounds: PerRow = None,
    ) -> Self:
        """Search, and fit the best setting.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs); several labels a row (RidgeClassifier): 0 and 1
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the fit, and of the criterion with ``criterion_weight="auto"``.
        groups : array-like of shape (n_samples,), default=None
            For splitters that need them.
        confounds : array-like of shape (n_samples, n_confounds), default=None
            As in ``fit`` of the estimator. The criterion compares targets with held-out fits of features from which the
            confounds were regressed out.
        """
        if y is None:
            raise ValueError("FoldlessSearchCV requires y to be passed, but the target y is None: nothing to predict.")
        X, y, groups = rows_and_labels(X, y, groups)
        spec = search_spec(self)
        warn_of_unused_groups(self.cv, groups)
        labels, sample_weight = checked_rows(self, y, sample_weight)
        if confounds is not None:
            confounds = check_search_with_confounds(self, confounds, len(labels))
        return self._fit_data(spec, SearchData(X, labels, sample_weight, confounds), groups, y)

    def _fit_data(self, spec, data, groups=None, y=None):
        """``fit`` to checked data; ``y`` has several labels a row as they were given, which may be sparse."""
        to_find = landmarks_to_find(self, data.X)
        if to_find is not None:
            return fit_with_landmarks(self, to_find, data, groups, y)
        with all_or_nothing(self) as search:
            for name in [name for name in vars(search) if name.endswith("_") or name == "_sigmoid"]:
                delattr(search, name)
            spec, data, splits = prepared(search, spec, data, groups)
            outcome = run_search(spec, search, data, splits)
            vars(search).update(outcome.attributes(spec, search.estimator, data, splits))
            warn_of_end(search, outcome)
            if search.refit:
                search._refit(data, y if np.ndim(data.y) > 1 and y is not None else data.y)
                sigmoid = held_out_sigmoid(search, data, splits, outcome.heldout)
                if sigmoid is not None:
                    search._sigmoid = sigmoid
        return self

    def _refit(self, data, y):
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HugePenaltyWarning)  # without a signal that is the best
            warnings.simplefilter("ignore", LongFitWarning)  # the search has taken longer
            best = chosen_setting(self.estimator, self.best_params_, getattr(self, "classes_", None))
            self.best_estimator_ = data.fit(best, y)
        self.refit_time_ = time.perf_counter() - begin
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))

    # -- the best estimator: of a pipeline its last step, behind the fitted others -------------------------------------

    @property
    def _best(self):
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("refit=False leaves no fitted estimator; fit one with best_params_.")
        return self.best_estimator_

    @property
    def _last(self):
        """The best estimator, or the last step of the best pipeline."""
        return split_steps(self._best).last

    def _call_best(self, name, X, /, *others, **options):
        """A method of the best estimator at rows X; ``options`` that are None are left out."""
        best = split_steps(self._best)
        return getattr(best.last, name)(best.transform(X), *others, **without_none(**options))

    def predict(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``predict`` of the best estimator."""
        return self._call_best("predict", X, confounds=confounds)

    @available_where(_best_has("decision_function"))
    def decision_function(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``decision_function`` of the best estimator."""
        return self._call_best("decision_function", X, confounds=confounds)

    @available_where(_gives_probabilities)
    def predict_proba(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``predict_proba`` of the best estimator; for RidgeClassifier a sigmoid fitted to held-out decisions."""
        if not hasattr(self, "_sigmoid"):
            return self._call_best("predict_proba", X, confounds=confounds)
        return self._sigmoid.fitted.proba(self._call_best("decision_function", X))

    @available_where(_gives_probabilities)
    def predict_log_proba(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, confounds))

    @available_where(_best_has("transform"))
    def transform(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``transform`` of the best estimator."""
        return self._call_best("transform", X, confounds=confounds)

    @available_where(_best_has("transform"))
    def fit_transform(self, X: MatrixLike, y: MatrixLike, **fit_params: Any) -> np.ndarray:
        """``fit``, then ``transform``."""
        return self.fit(X, y, **fit_params).transform(X, fit_params.get("confounds"))

    def score(self, X: MatrixLike, y: MatrixLike, sample_weight: PerRow = None, confounds: PerRow = None) -> float:
        """The deciding score of the best estimator: that of ``scoring``, else accuracy or R2."""
        best = self._best
        if self.scoring is None:
            return self._call_best("score", X, y, sample_weight=sample_weight, confounds=confounds)
        scorer = self.scorer_[self.refit] if self.multimetric_ else self.scorer_
        if confounds is not None:
            best = stored_with_confounds(self._last, split_steps(best).transform(X), confounds)
        return scorer(best, X, y, **without_none(sample_weight=sample_weight))

    @available_where(_best_has("partial_fit"))
    def partial_fit(self, X: MatrixLike, y: ArrayLike, **options: Any) -> Self:
        """Learn more rows: ``partial_fit`` of the best estimator, which changes in place. The first call is ``fit``.

        Hyper-parameters, and the first steps of a pipeline, stay as they were chosen and fitted. ``options`` are
        further arguments of its ``partial_fit``, such as ``sample_weight``. A call that fails leaves all as it was.
        """
        if not self.__sklearn_is_fitted__():
            unseen = [label for label in without_none(**options).get("classes", ()) if label not in np.asarray(y)]
            if unseen:
                raise ValueError(f"classes: {unseen[0]!r} is not in y; the first call searches, and needs all of them.")
            return self.fit(X, y, **{name: value for name, value in options.items() if name != "classes"})
        best = split_steps(self._best)
        with all_or_nothing(self) as search, all_or_nothing(best.last) as model:
            model.partial_fit(best.transform(X), y, **without_none(**options))
            search._updated(model)
        return self

    @available_where(_best_has("forget"))
    def forget(self, indices: ArrayLike | None = None, *, ids: Ids = None) -> Self:
        """Forget rows: ``forget`` of the best estimator, which changes in place.

        Hyper-parameters, ``cv_results_`` and the first steps of a pipeline have seen these rows, and stay as they are.
        """
        with all_or_nothing(self) as search, all_or_nothing(self._last) as model:
            model.forget(indices, ids=ids)
            search._updated(model)
        return self

    def _updated(self, model):
        """Follow the rows of the best estimator, which are not those of ``fit`` any more."""
        if hasattr(self, "classes_"):
            self.classes_ = model.classes_

    @available_where(_best_has("forgetting_effects"))
    def forgetting_effects(self) -> np.ndarray:
        """``forgetting_effects`` of the best estimator."""
        return self._last.forgetting_effects()

    @available_where(_best_has("unlearning_certificate"))
    def unlearning_certificate(self) -> Certificate:
        """``unlearning_certificate`` of the best estimator; what the search learnt besides is not part of it."""
        return self._last.unlearning_certificate()

    @available_where(_best_has("loo_predict"))
    def loo_predict(self) -> np.ndarray:
        """``loo_predict`` of the best estimator."""
        return self._last.loo_predict()

    @available_where(_best_has("loo_decision_function"))
    def loo_decision_function(self) -> np.ndarray:
        """``loo_decision_function`` of the best estimator."""
        return self._last.loo_decision_function()

    @available_where(_best_has("loo_predict_proba"))
    def loo_predict_proba(self) -> np.ndarray:
        """``loo_predict_proba`` of the best estimator."""
        return self._last.loo_predict_proba()

    @property
    def loo_score_(self) -> float:
        """``loo_score_`` of the best estimator. The setting was chosen by such values: no estimate of performance."""
        return self._last.loo_score_

    @property
    def stratified_loo_score_(self) -> float:
        """``stratified_loo_score_`` of the best estimator, as ``loo_score_``."""
        return self._last.stratified_loo_score_

    @property
    def alpha_(self) -> Any:
        """The chosen alpha, as RidgeClassifierCV calls it."""
        check_is_fitted(self)
        steps = split_steps(self.estimator)
        name, default = f"{steps.prefix}alpha", getattr(steps.last, "alpha", None)
        if isinstance(self.best_params_, dict):
            return self.best_params_.get(name, default)
        return np.array([params.get(name, default) for params in self.best_params_])

    @property
    def coef_(self) -> np.ndarray:
        """``coef_`` of the best estimator."""
        return self._last.coef_

    @property
    def intercept_(self) -> Any:
        """``intercept_`` of the best estimator."""
        return self._last.intercept_

    def to_frame(self) -> Any:
        """``cv_results_`` as a table of pandas, one row for each candidate."""
        check_is_fitted(self)
        plain = {name: values.tolist() if np.ma.isMA(values) else values for name, values in self.cv_results_.items()}
        return frame(plain)

    def _html_repr(self):
        diagram = super()._html_repr()
        return diagram + settings_card(self) if hasattr(self, "cv_results_") else diagram

    def __sklearn_is_fitted__(self):
        return hasattr(self, "cv_results_")

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "transformer_tags", "target_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.input_tags = input_tags(self.estimator)
        return tags
