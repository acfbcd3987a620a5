"""A stand-in that lets scikit-learn's own loop do the book-keeping of a closed-form cross-validation.

scikit-learn's functions are handed row numbers in place of X and a :class:`StandIn` in place of the estimator.
"Fitting" it on the numbers of a training part looks up the model without the other rows; "predicting" at numbers
returns fits that follow from P. Scorers, multi-metric dictionaries, train scores, timings, error scores and column
order are then scikit-learn's, not a copy of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object
from sklearn.utils.metaestimators import available_if

from foldless._engine.heldout.sets import Sets
from foldless._engine.readout.codings import chosen_labels
from foldless._sklearn.adapters import FOLDLESS_ESTIMATORS
from foldless._sklearn.pipelines import with_last
from foldless.estimators.access import EstimatorTask, fitted_on_part, rows_of


@dataclass(frozen=True)
class Run:
    """One estimator on one data set, ready to be asked for any training part."""

    outer: BaseEstimator  # what the user gave: the estimator, or a pipeline that only passes X on to it
    estimator: BaseEstimator
    built: EstimatorTask
    X: object
    y: object
    sample_weight: object
    parts: Any  # models of training parts

    @property
    def task(self):
        """Problem, targets and readout."""
        return self.built.task

    @property
    def classes(self):
        """Labels; None for a regression."""
        return self.built.classes

    @property
    def rows(self):
        """Row numbers, in the place of X."""
        return np.arange(self.task.problem.n)[:, None]

    def outputs(self, raw, method):
        """Decisions or probabilities as the estimator's ``method`` would return them."""
        if method == "predict":
            if self.classes is not None:
                labels = chosen_labels(raw, self.classes, self.built.flat)
                return sp.csr_matrix(labels) if sp.issparse(self.y) else labels
            return raw[:, 0] if self.built.flat else raw
        if method == "predict_log_proba":
            with np.errstate(divide="ignore"):
                return np.log(raw)
        return raw

    def loo(self, method):
        """``method`` of all rows, each by the model without it."""
        kind = "proba" if method.endswith("proba") else "decision"
        idle = len(self.task.problem.active) < self.task.problem.n
        rule = self.task.rule(self.parts.whole, probabilities=kind == "proba") if idle else None
        return self.outputs(self.task.loo_outputs(self.parts, rule, kind), method)

    def decide(self, sets):
        """Decisions (k, t) or (k, t, c), or values (k, t, m), of the rows of each set by the model without it."""
        decisions = self.task.held_out_decisions(self.parts, Sets.of(sets))
        return decisions.reshape(*sets.shape, *decisions.shape[1:])

    def check_materialises(self):
        """Refuse fitted estimators of training parts where they could not give the held-out predictions again."""
        confounds, in_score = len(self.task.problem.origin) > 0, self.task.problem.n_confounds == 0
        if confounds and (in_score or not isinstance(self.estimator, FOLDLESS_ESTIMATORS)):
            raise ValueError(
                "confounds: return_estimator=True needs fitted estimators that regress the confounds out by themselves;"
                f" {type(self.estimator).__name__} with in_score={in_score} does not. Use one of"
                f" {', '.join(kind.__name__ for kind in FOLDLESS_ESTIMATORS)} with in_score=False."
            )

    def materialise(self, train, model):
        """What the user gave, fitted on a training part: from P for foldless' own, refitted for scikit-learn's."""
        if isinstance(self.estimator, FOLDLESS_ESTIMATORS):
            fitted = fitted_on_part(self.estimator, self.task, model, train, self.X, self.y, self.sample_weight)
        else:
            weight = None if self.sample_weight is None else np.asarray(self.sample_weight)[train]
            rows = rows_of(self.estimator, self.X, train, train)
            fitted = clone(self.estimator).fit(rows, _safe_indexing(self.y, train), sample_weight=weight)
        return fitted if self.outer is self.estimator else with_last(self.outer, fitted)


class ScaledRun(Run):
    """A linear model behind StandardScaler, both fitted on each training part from sums (``heldout.scaled``)."""

    def loo(self, method):
        """``method`` of all rows, each by the pipeline without it."""
        return self.outputs(self.decide(np.arange(self.task.problem.n)[:, None])[:, 0], method)

    def materialise(self, train, model):
        """The pipeline, fitted on a training part."""
        name, weight = self.outer.steps[-1][0], self.sample_weight
        params = {} if weight is None else {f"{name}__sample_weight": np.asarray(weight)[train]}
        return clone(self.outer).fit(_safe_indexing(self.X, train), _safe_indexing(self.y, train), **params)


def _classifies(standin):
    return standin.run.classes is not None


def _calibrated(standin):
    return standin.run.task.calibration is not None


class StandIn(BaseEstimator):
    """An estimator of row numbers."""

    def __init__(self, run):
        self.run = run

    def __sklearn_clone__(self):
        return StandIn(self.run)

    def __sklearn_tags__(self):
        tags = self.run.estimator.__sklearn_tags__()
        tags.input_tags.pairwise = False
        return tags

    def get_metadata_routing(self):
        """Metadata of ``fit`` has been used already; what remains is for the estimator's own ``score``."""
        request = MetadataRequest(owner=self)
        for name, alias in get_routing_for_object(self.run.outer).score.requests.items():
            if alias is not None:  # what is left unset has been complained about before
                request.score.add_request(param=name, alias=alias)
        return request

    @property
    def _metadata_request(self):
        """Where scikit-learn 1.7 looks for the requests of ``score``."""
        return self.get_metadata_routing()

    def fit(self, rows, y=None, **fit_params):
        """Look up the model of these rows."""
        self.train_ = rows[:, 0]
        self.model_ = self.run.parts.part(self.train_)
        self.rule_ = self.run.task.rule(self.model_, probabilities=False)
        self.classes_ = self.run.classes
        self.calibrated_ = None
        return self

    def _decision(self, rows):
        return self._tied(rows, self.rule_.decision(self.model_.fits(rows[:, 0])))

    def _tied(self, rows, values):
        """Values of these rows, those of equal rows made equal."""
        return self.run.task.problem.tie_equal_rows(rows[:, 0], values)

    def predict(self, rows):
        """Held-out (or training) predictions of these rows."""
        return self.run.outputs(self._decision(rows), "predict")

    @available_if(_classifies)
    def decision_function(self, rows):
        """Held-out (or training) decisions of these rows."""
        return self._decision(rows)

    @available_if(_calibrated)
    def predict_proba(self, rows):
        """Probabilities, calibrated on leave-one-out scores within the training part."""
        if self.calibrated_ is None:
            self.calibrated_ = self.run.task.rule(self.model_)
        return self._tied(rows, self.calibrated_.proba(self.model_.fits(rows[:, 0])))

    @available_if(_calibrated)
    def predict_log_proba(self, rows):
        """Logarithms of the probabilities."""
        return self.run.outputs(self.predict_proba(rows), "predict_log_proba")

    def score(self, rows, y, sample_weight=None):
        """Accuracy or R2, as the estimators' own ``score``."""
        score = accuracy_score if self.run.classes is not None else r2_score
        return score(y, self.predict(rows), sample_weight=sample_weight)

    def materialise(self):
        """The estimator itself, fitted on the training part."""
        return self.run.materialise(self.train_, self.model_)


class Decoded(BaseEstimator):
    """An estimator that is given numbers of ``labels``, learns the labels, and names its classes by number again.

    For decisions and probabilities scikit-learn's ``cross_val_predict`` fits on 0, 1, ..., so that columns have one
    order whatever classes a training part holds. Weights by label would then miss their classes.
    """

    def __init__(self, estimator, labels):
        self.estimator, self.labels = estimator, labels

    def __sklearn_clone__(self):
        return Decoded(clone(self.estimator), self.labels)

    def __sklearn_tags__(self):
        return get_tags(self.estimator)

    def get_metadata_routing(self):
        """That of the estimator: parameters of ``fit`` are passed through."""
        return get_routing_for_object(self.estimator)

    def fit(self, X, y, **fit_params):
        """Fit the estimator on the labels themselves."""
        self.estimator.fit(X, self.labels[y], **fit_params)
        return self

    @property
    def classes_(self):
        """Numbers of the classes of the fitted estimator."""
        return np.searchsorted(self.labels, self.estimator.classes_)

    def predict(self, X):
        """Numbers of the predicted labels."""
        return np.searchsorted(self.labels, self.estimator.predict(X))

    def __getattr__(self, name):
        if name in ("decision_function", "predict_proba", "predict_log_proba"):
            return getattr(self.estimator, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
