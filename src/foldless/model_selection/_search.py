"""FoldlessSearchCV: hyper-parameters by closed-form held-out criteria, behind the interface of GridSearchCV."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from foldless._engine.heldout.caution import HugePenaltyWarning, LongFitWarning
from foldless._engine.inference.intervals import ScoreInterval
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike, RandomStateLike
from foldless._engine.permutation.metrics import Metric
from foldless._engine.tuning.criteria import Criterion
from foldless._engine.tuning.spec import Optimizer
from foldless._sklearn.candidates import (
    SearchData,
    beginning,
    by_grid,
    settings,
    starting_points,
    widened,
)
from foldless._sklearn.confounded import columns_alone
from foldless._sklearn.landmarks import landmarks_to_find
from foldless._sklearn.pipelines import Search, input_tags, split_steps
from foldless._sklearn.scorers import deciding_scoring
from foldless._sklearn.splits import check_confounds_determined, draw_splits
from foldless._sklearn.steps import StepsLike, parts_of
from foldless._sklearn.weights import with_row_weights
from foldless.estimators.checks import rows_and_labels
from foldless.estimators.missing import explain_unknown_arguments
from foldless.estimators.rows import PerRow, all_or_nothing, without_none
from foldless.estimators.versions import Versioned
from foldless.model_selection._nested import nested_cross_validate
from foldless.model_selection._partitions import IntervalRequest, interval_of_model
from foldless.model_selection._search_best import BestEstimator
from foldless.model_selection._search_landmarks import fit_with_landmarks
from foldless.model_selection._search_runs import (
    continuous_search,
    fidelity_search,
    grid_search,
    score_together,
    warn_of_end,
)
from foldless.model_selection._search_spec import (
    check_search_with_confounds,
    checked_rows,
    search_spec,
    warn_of_unused_groups,
    with_scores,
)
from foldless.model_selection._searched import FitOptions, Searched
from foldless.model_selection._types import CVLike, ScoringLike


@explain_unknown_arguments
class FoldlessSearchCV(BestEstimator, Search, MetaEstimatorMixin, Versioned):
    """Hyper-parameters by exact held-out criteria, at the price of a few fits.

    Every candidate is judged by its exact leave-one-out fits (or those of any splitter), without refits. Without a grid
    of yours the search goes by parts: a whole grid on some hundred rows, a few settings on more of them, and one to
    three on all rows. A grid takes one decomposition for each kernel setting; the continuous searches follow the exact
    gradient, whose cost does not grow with the number of parameters: every feature can have a scale of its own.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, KernelFisherDiscriminant, Ridge, RidgeClassifier or KernelRidge, or a pipeline
        that ends in one of them, with parameters named ``lssvc__alpha``. The continuous searches start from its
        parameters: a fitted ``best_estimator_`` is a warm start.
    param_grid : dict or list of dicts, default=None
        As in GridSearchCV; ``kernel`` and any other parameter allowed, those of earlier steps of a pipeline too, and
        all of it is looked at. None: alpha and the kernel's own parameters. For the continuous searches every candidate
        is a starting point.
    cv : int, splitter or iterable, default=None
        What is left out together; None: each row alone. Use a group splitter for grouped rows: leave-one-out leaks
        there. The criterion is taken over all held-out rows together.
    scoring : str, scorer, list or dict of them, default=None
        What decides in the place of the criterion: any scorer of scikit-learn (of several, the one that ``refit``
        names), of the exact held-out predictions. As in GridSearchCV it is taken of every split's test rows and
        averaged; with ``cv=None`` of all held-out predictions together. None: the criterion decides, and accuracy or R2
        is recorded. Rows of weight 0 are not scored. A function that wants the fitted estimator is refused, and so are,
        with ``cv=None``, scores of probabilities.
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
        "auto" looks at all of ``param_grid`` where there is one. Without it: at a grid from the data up to 500 rows, or
        where a linear model has fewer features than rows; otherwise at that grid on some hundred rows, then down the
        criterion there and on a fifth of the rows, and at the end at one to three settings on all rows. "grid" looks
        at the whole grid on all rows. "simplex" (Nelder-Mead) and "gradient" (L-BFGS-B) work on the logarithms of alpha
        and of the parameters of the kernel. An :class:`~foldless.model_selection.Optimizer` is such a method with
        bounds, further starting points, a number of iterations, and a gamma for each feature.
    share : {"all", "kernel", "none"}, default="all"
        What the classes have in common: all parameters, the kernel but not alpha, or nothing.
    random_state : int, RandomState instance or None, default=0
        Draws the parts of the rows and the further starting points; None draws others each time.
    n_jobs : int, default=None
        Processes over kernel settings or starting points; the linear algebra has threads of its own.
    refit : bool or str, default=True
        Whether to fit the best setting on all rows; with several scores, the name of the one that decides, or False:
        nothing is chosen.
    time_limit : float, default=None
        Seconds after which the best so far is taken, with a warning. What is being computed is finished first, and the
        fit of the best comes on top. Ctrl-C does the same.
    verbose : int, default=None
        1 prints progress to standard error, 0 nothing. None: a line in a terminal or a notebook, where the search takes
        more than a few seconds.
    steps : {"once", "each"}, default="once"
        The first steps of a pipeline: fitted once on all rows, labels unseen, or on every training part of ``cv``, as
        GridSearchCV does (by grid only; they may then learn from y). A search chooses and does not estimate, hence
        "once"; :func:`nested_cross_validate`, which estimates, fits them anew in every outer training part.

    Attributes
    ----------
    best_params_ : dict; a list of dicts, one for each class, where ``share`` is not "all"
    best_score_ : float, the score of the best setting: by ``scoring``, or accuracy or R2. It was chosen for being good:
        no estimate of performance. Where ``share`` is not "all", that of the classifier put together from the best
        settings. nan with ``threshold="loo"`` and ``cv=None``: it would take a cut for each row.
    best_criterion_, best_criterion_se_ : float, the criterion of the best setting, a loss, a prior not counted; and its
        standard error where it is a mean over rows (rows taken as independent), else nan
    best_estimator_ : the estimator refitted on all rows; an ``OneAgainstAllClassifier`` where ``share`` is not "all"
    best_index_ : int, place of the best candidate in ``cv_results_``; one for each class with ``share="none"``
    cv_results_ : dict of arrays as GridSearchCV's: "params", "param_...", "split0_test_score", ..., "mean_test_score",
        "std_test_score", "rank_test_score" ("..._test_NAME" of several scores), and "mean_test_criterion",
        "se_test_criterion", "rank_test_criterion" (a loss: the least has rank 1). With ``cv=None`` there are no columns
        of splits, and "std_test_score" is nan. "mean_fit_time" is the time of a kernel setting, which all its alphas
        and splits share, divided by the number of its alphas; "mean_score_time" that of the scores. Scores are nan for
        what lies on the way of a search that goes down and, unless ``scoring`` asks for them, for all but the best
        alpha of a discriminant's kernel, whose decisions take models of their own.
    scorer_, multimetric_ : the scorer, or {name: scorer} of several; bool, whether there may be several
    n_splits_ : int, number of splits; of rows with ``cv=None``
    refit_time_ : float, seconds of the fit on all rows
    history_ : list of dicts, every setting looked at in order, with its "criterion" (its "score", where one decides),
        the number of rows ("n_rows") it was judged on and the "time" in seconds; for continuous searches also the
        number of its "start" and the "objective" that was minimised: the criterion, and the prior where there is one
    stopped_ : None, or what ended the search before its end: "time_limit" or "interrupted"
    n_iter_ : int, their number
    landmark_path_ : list of dicts with the numbers of landmarks that were tried, "n_landmarks", their "criterion" and
        "seconds"; only where the search finds the number, which is ``best_params_["kernel__n_landmarks"]`` or that of
        ``best_params_["kernel"]``
    feature_scales_ : ndarray of shape (n_features,) or (n_classes, n_features), with a gamma for each feature only
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

    def __init__(
        self,
        estimator: BaseEstimator,
        param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        cv: CVLike = None,
        scoring: ScoringLike | Metric = None,
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

    _nested_cross_validate = nested_cross_validate

    # -- fitting -------------------------------------------------------------------------------------------------------

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
            Weights of the fit, and of the criterion unless ``criterion_weight`` says otherwise.
        groups : array-like of shape (n_samples,), default=None
            For splitters that need them.
        confounds : array-like of shape (n_samples, n_confounds), default=None
            As in ``fit`` of the estimator. The criterion judges the scores: targets minus held-out fits of features
            from which the confounds were regressed.
        """
        if y is None:
            raise ValueError("FoldlessSearchCV requires y to be passed, but the target y is None: nothing to predict.")
        X, y, groups = rows_and_labels(X, y, groups)
        to_find = landmarks_to_find(self, X)
        if to_find is not None:
            others = {"y": y, "sample_weight": sample_weight, "groups": groups, "confounds": confounds}
            return fit_with_landmarks(self, to_find, X, others)
        spec = search_spec(self)
        warn_of_unused_groups(self.cv, groups, stacklevel=3)
        learnt = y  # several labels a row, if sparse, are predicted as such
        y, sample_weight = checked_rows(self, y, sample_weight)
        with all_or_nothing(self) as search:
            for name in [name for name in vars(search) if name.endswith("_") or name == "_sigmoid"]:
                delattr(search, name)
            splits = draw_splits(search.cv, search.estimator, X, y, groups)
            if confounds is not None:
                confounds = check_search_with_confounds(search, confounds, len(np.asarray(y)))
                check_confounds_determined(columns_alone(search, confounds), splits or ())
            spec = with_row_weights(with_scores(spec, search, y), search, y, sample_weight)
            parts = parts_of(search, splits, len(np.asarray(y)))
            data = SearchData(X, y, sample_weight, confounds, parts)
            outcome = search._search(spec, data, splits)
            search._store(spec, outcome, data, splits)
            search.stopped_ = outcome.stopped
            warn_of_end(search, outcome, stacklevel=3)
            search._keep(X, learnt, groups, confounds, sample_weight)
            if search.refit:
                search._refit(data, learnt if np.ndim(y) > 1 else y)
                search._prepare_probabilities(data, splits, outcome.heldout)
        return self

    def _search(self, spec, data, splits):
        """The outcome of the search by the method that is asked for, or suits the data."""
        if by_grid(self, data):
            listed, tried = settings(self.estimator, self.param_grid, data)
            widen = partial(widened, self.estimator, data) if self.param_grid is None else None
            return grid_search(spec, listed, tried, splits, widen)
        if spec.method == "auto":
            start, grid = beginning(spec, self.estimator, data)
            return fidelity_search(spec, start, grid, splits)
        starts = starting_points(spec, self.estimator, self.param_grid, data)
        return continuous_search(spec, starts, splits)

    def _store(self, spec, outcome, data, splits):
        if outcome.classes is not None:
            self.classes_ = outcome.classes
        scoring = spec.scoring
        self.scorer_, self.multimetric_ = scoring.scorer, scoring.several
        self.n_splits_ = len(np.asarray(data.y)) if splits is None else len(splits)
        self.cv_results_ = outcome.table()
        if scoring.decides or not scoring.requested:  # of several scores, without one that decides, none is the best
            self.best_index_ = outcome.chosen[0] if len(outcome.chosen) == 1 else outcome.chosen
            self.best_params_ = outcome.best[0] if len(outcome.best) == 1 else outcome.best
            self.best_criterion_, alone = float(outcome.loss), len(outcome.best) == 1
            self.best_criterion_se_ = float(outcome.record.errors[self.best_index_]) if alone else np.nan
            if alone:
                self.best_score_ = float(self.cv_results_[f"mean_test_{scoring.deciding or 'score'}"][self.best_index_])
            else:
                self.best_score_ = score_together(spec, self._best_setting(), data, splits)
        self.history_ = outcome.history
        self.n_iter_ = len(self.history_)
        if outcome.feature_scales is not None:
            scales = outcome.feature_scales
            self.feature_scales_ = scales if len(scales) > 1 else scales[0]

    def _refit(self, data, y):
        begin, steps = time.perf_counter(), split_steps(self.estimator)
        options = steps.fit_params(sample_weight=data.sample_weight, confounds=data.confounds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HugePenaltyWarning)  # without a signal that is the best
            warnings.simplefilter("ignore", LongFitWarning)  # the search has taken longer
            self.best_estimator_ = self._best_setting().fit(data.X, y, **options)
        self.refit_time_ = time.perf_counter() - begin
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))

    def score_interval(
        self,
        *,
        scoring: ScoringLike = None,
        cv: CVLike = None,
        confidence: float = 0.9,
        method: Literal["nested", "nadeau-bengio"] = "nested",
        n_repeats: int | None = None,
        random_state: RandomStateLike = 0,
    ) -> ScoreInterval:
        """An interval for the score of the search on new rows: ``best_score_`` is too good, it was chosen for that.

        The search is repeated on the rows, groups, weights and confounds of ``fit``, without every fold and every pair
        of folds. Arguments are those of :func:`foldless.model_selection.score_interval`; ``scoring=None`` is the
        deciding score, else accuracy or "neg_mean_squared_error".
        """
        check_is_fitted(self)
        if self._learnt is None:
            raise ValueError("score_interval needs all rows, and some came or went since fit: fit again.")
        X, y, groups, confounds, params = self._learnt.values()

        options = FitOptions(groups=groups, params=params, confounds=confounds)

        def searched(_, *, classes, response):
            return Searched.of(self, X, y, options, classes=classes, response=response)

        scoring = deciding_scoring(self.scoring, self.refit) if scoring is None else scoring
        request = IntervalRequest(scoring, cv, confidence, method, n_repeats, random_state)
        return interval_of_model(request, searched, self, X, y, groups)

    def _keep(self, X, y, groups, confounds, sample_weight):
        """Keep the rows of a fit: copies, but of a Gram matrix, which is the largest array of all."""
        rows = {"y": y, "groups": groups, "confounds": confounds, "params": without_none(sample_weight=sample_weight)}
        X = X if get_tags(self).input_tags.pairwise else deepcopy(X)
        self._learnt = {"X": X, **deepcopy(rows)}

    def __sklearn_is_fitted__(self):
        return hasattr(self, "cv_results_")

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "transformer_tags", "target_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.input_tags = input_tags(self.estimator)
        return tags
