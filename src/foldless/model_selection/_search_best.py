"""The chosen estimator of a search, whose methods and attributes the search has as well, and the search as a table."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from foldless._engine.linalg.types import MatrixLike
from foldless._engine.online.certificate import Certificate
from foldless._engine.readout.calibration import DeferredSigmoid
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS
from foldless._sklearn.candidates import chosen_setting, heldout_scores
from foldless._sklearn.pipelines import split_steps
from foldless._sklearn.scorers import known_with_confounds
from foldless.estimators.missing import available_where
from foldless.estimators.rows import Ids, PerRow, all_or_nothing, without_none
from foldless.results import by_name, card, frame, points, short


def _best_has(method):
    """Whether the chosen estimator (before ``fit`` the given one) has a method; its own error if not."""

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


class BestEstimator:
    """What a search hands on to its ``best_estimator_``: of a pipeline, to its last step, behind the fitted others."""

    estimator: Any
    scoring: Any
    refit: Any
    best_params_: Any
    scorer_: Any
    multimetric_: bool
    share: Any
    classes_: Any
    fit: Any
    __sklearn_is_fitted__: Any
    history_: list
    cv_results_: dict
    _learnt: dict | None  # the rows of the last fit

    def _best_setting(self):
        """The best setting as an estimator that is not fitted."""
        return chosen_setting(self.estimator, self.best_params_, getattr(self, "classes_", None))

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

    def _ask(self, name, X, /, *others, **options):
        """A method of the best estimator at rows X; ``options`` that are None are left out."""
        best = split_steps(self._best)
        return getattr(best.last, name)(best.transform(X), *others, **without_none(**options))

    def predict(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``predict`` of the best estimator."""
        return self._ask("predict", X, confounds=confounds)

    @available_where(_best_has("decision_function"))
    def decision_function(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``decision_function`` of the best estimator."""
        return self._ask("decision_function", X, confounds=confounds)

    @available_where(_gives_probabilities)
    def predict_proba(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``predict_proba`` of the best estimator; for RidgeClassifier a sigmoid fitted to held-out decisions."""
        if not hasattr(self, "_sigmoid"):
            return self._ask("predict_proba", X, confounds=confounds)
        return self._sigmoid.fitted.proba(self._ask("decision_function", X))

    @available_where(_gives_probabilities)
    def predict_log_proba(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """Logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, confounds))

    def _prepare_probabilities(self, data, splits, heldout):
        """Keep held-out decisions of a scikit-learn classifier, to which ``predict_proba`` fits a sigmoid."""
        last = split_steps(self.estimator).last
        if isinstance(last, FOLDLESS_ESTIMATORS) or not is_classifier(last) or np.ndim(data.y) > 1:
            return
        if heldout is None or self.share != "all":
            heldout = heldout_scores(self._best_setting(), data, splits)
        rows, scores = heldout
        scores = scores if len(self.classes_) > 2 else scores.reshape(-1)
        codes = np.searchsorted(self.classes_, np.asarray(data.y))[rows]
        weights = np.ones(len(rows)) if data.sample_weight is None else data.sample_weight[rows]
        self._sigmoid = DeferredSigmoid(scores, codes, len(self.classes_), weights)

    @available_where(_best_has("transform"))
    def transform(self, X: MatrixLike, confounds: PerRow = None) -> np.ndarray:
        """``transform`` of the best estimator."""
        return self._ask("transform", X, confounds=confounds)

    @available_where(_best_has("transform"))
    def fit_transform(self, X: MatrixLike, y: MatrixLike, **fit_params: Any) -> np.ndarray:
        """``fit``, then ``transform``."""
        return self.fit(X, y, **fit_params).transform(X, fit_params.get("confounds"))

    def score(self, X: MatrixLike, y: MatrixLike, sample_weight: PerRow = None, confounds: PerRow = None) -> float:
        """The deciding score of the best estimator: that of ``scoring``, else accuracy or R2."""
        best = self._best
        if self.scoring is None:
            return self._ask("score", X, y, sample_weight=sample_weight, confounds=confounds)
        scorer = self.scorer_[self.refit] if self.multimetric_ else self.scorer_
        if confounds is not None:
            best = known_with_confounds(self._last, split_steps(best).transform(X), confounds)
        return scorer(best, X, y, **without_none(sample_weight=sample_weight))

    # -- rows that come and go -----------------------------------------------------------------------------------------

    @available_where(_best_has("partial_fit"))
    def partial_fit(self, X: MatrixLike, y: ArrayLike, **options: Any) -> Self:
        """Learn more rows: ``partial_fit`` of the best estimator, which changes in place. The first call is ``fit``.

        Hyper-parameters, and the first steps of a pipeline, stay as they were chosen and fitted. ``options`` are
        further arguments of its ``partial_fit``, such as ``sample_weight``. A call that fails leaves all as it was.
        """
        if not self.__sklearn_is_fitted__():
            unseen = [label for label in without_none(**options).pop("classes", ()) if label not in np.asarray(y)]
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
        self._learnt = None
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

    # -- leave-one-out at the chosen setting ---------------------------------------------------------------------------

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

    # -- attributes ----------------------------------------------------------------------------------------------------

    @property
    def alpha_(self) -> Any:
        """The chosen alpha, as RidgeClassifierCV calls it."""
        check_is_fitted(self)
        steps = split_steps(self.estimator)
        chosen = [self.best_params_] if isinstance(self.best_params_, dict) else self.best_params_
        alphas = [each.get(f"{steps.prefix}alpha", getattr(steps.last, "alpha", None)) for each in chosen]
        return alphas[0] if chosen[0] is self.best_params_ else np.array(alphas)

    @property
    def coef_(self) -> np.ndarray:
        """``coef_`` of the best estimator."""
        return self._last.coef_

    @property
    def intercept_(self) -> Any:
        """``intercept_`` of the best estimator."""
        return self._last.intercept_

    # -- the settings as a table -----------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """``cv_results_`` as a table of pandas, one row for each candidate."""
        check_is_fitted(self)
        plain = {name: values.tolist() if np.ma.isMA(values) else values for name, values in self.cv_results_.items()}
        return frame(plain)

    def _html_repr(self):
        diagram = super()._html_repr()  # type: ignore[misc]
        return diagram + self._settings_card() if hasattr(self, "cv_results_") else diagram

    def _settings_card(self):
        """A card of all settings that were looked at, the best first."""
        deciding = "criterion" if "criterion" in self.history_[0] else "score"
        values = np.array([setting[deciding] for setting in self.history_], float)
        order = np.argsort(values if deciding == "criterion" else -values)
        best = np.isin(np.arange(len(values)), order[:1])
        picture = points(np.arange(len(values)), values, best, f"{deciding} of the settings in order; dark: the best")
        summary = [f"{len(values)} settings"]
        for name in ("best_params_", "best_criterion_", "best_score_"):
            if hasattr(self, name):
                summary.append(f"{name} {short(getattr(self, name))}")
        return card("; ".join(summary), picture, by_name([self.history_[place] for place in order]))
