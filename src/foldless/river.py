"""The estimators as models of river: rows are dictionaries, and each is predicted before it is learnt.

river is optional. Its own wrapper of scikit-learn's estimators trains the estimator of the user (clones are then
trained already), needs all classes in advance and ignores weights. These classes clone the estimator, accept new
classes and take weights. Features are matched by name; missing or unknown features raise an error.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.utils.validation import has_fit_parameter

from foldless.estimators import LSSVC, LSSVR

try:
    from river import base
    from river.utils import dataframe
except ImportError as error:
    raise ImportError('foldless.river needs river 0.26 or later: pip install "river>=0.26"') from error

__all__ = ["RiverClassifier", "RiverRegressor"]


class _Adapter:
    """Base of the models: rows are matched by name, and wait until they suffice for a first fit."""

    classes: Sequence | None = None  # of a classifier
    _outputs: Callable  # (names of features, rows) -> list of predictions
    _can_start: Callable  # (rows with targets and weights) -> whether they suffice for a first fit

    def _start(self, estimator, suits):
        if not (suits(estimator) and hasattr(estimator, "partial_fit")):
            kind = type(self).__name__.removeprefix("River").lower()
            raise ValueError(
                f"estimator={estimator!r} is no {kind} with partial_fit; {type(self).__name__} takes those of foldless."
            )
        self.estimator = estimator
        self.model: Any = None
        self._names: list | None = None
        self._waiting: deque = deque(maxlen=getattr(estimator, "max_samples", None))  # as many as fit into the window

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of numbers by feature name; ``w`` >= 0 is the weight of its squared error."""
        self._learn(list(x), [list(x.values())], [y], w)

    def learn_many(self, X: Any, y: Any, w: ArrayLike = 1.0) -> None:
        """Learn the rows of a DataFrame at once; the model is the same as by ``learn_one``, row by row."""
        frame = dataframe.into_frame(X)
        self._learn(frame.columns, frame.to_numpy(), list(y), w)

    def predict_one(self, x: dict[Any, Any]) -> Any:
        """The label or value of a row; as usual in river, None or 0.0 before any row was learnt."""
        return self._outputs(list(x), [list(x.values())])[0]

    def predict_many(self, X: Any) -> Any:
        """Labels or values of the rows of a DataFrame, as a Series."""
        frame = dataframe.into_frame(X)
        return dataframe.to_native_series(self._outputs(frame.columns, frame.to_numpy()), name=None, like=frame)

    def _matrix(self, names, rows):
        """Rows of numbers, their columns in the order of the features met first."""
        expected = self._names or names
        place = {name: column for column, name in enumerate(names)}
        if not expected or place.keys() != set(expected):
            raise ValueError(
                f"x lacks the features {_some(set(expected) - place.keys())} and has unknown ones"
                f" {_some(place.keys() - set(expected))}; every row needs the features of the first one. river's"
                " compose.Select chooses features, preprocessing.StatImputer fills gaps."
            )
        try:
            X = np.array(rows, float)
        except (TypeError, ValueError):
            X = np.array(np.nan)
        if not np.isfinite(X).all():
            wrong = {name for name, column in zip(names, zip(*rows, strict=True), strict=True) if not _numeric(column)}
            raise ValueError(
                f"x: the features {_some(wrong)} hold something else than finite numbers. river's"
                " preprocessing.OneHotEncoder(categories=...) encodes categories, preprocessing.StatImputer fills gaps."
            )
        return X[:, [place[name] for name in expected]]

    def _learn(self, names, rows, y, w):
        X = self._matrix(names, rows)
        w = np.broadcast_to(np.asarray(w, float), len(rows))
        if not np.isfinite(w).all() or (w < 0).any():
            raise ValueError(f"w={_some(set(w.tolist()))} must be finite and >= 0.")
        if (w != 1).any() and not has_fit_parameter(self._inner, "sample_weight"):
            raise ValueError(f"w: {type(self._inner).__name__} has no weights; leave w out, or use LSSVC.")
        rows, state = [*self._waiting, *zip(X, y, w, strict=True)], {}
        if self.model is not None or self._can_start(rows):
            X, y, w = map(np.array, zip(*rows, strict=True))
            options = {"sample_weight": w} if (w != 1).any() else {}
            options |= {} if self.classes is None else {"classes": [*self.classes, *y.tolist()]}
            model = clone(self.estimator) if self.model is None else self.model
            state, rows = {"model": model.partial_fit(X, y, **options)}, []
        state |= {"_waiting": deque(rows, self._waiting.maxlen), "_names": self._names or list(names)}
        vars(self).update(state)  # at once: after an interrupt waiting rows must not be learnt twice

    @property
    def _inner(self):
        """The estimator, or the estimator of a ``SlidingWindow``."""
        return getattr(self.estimator, "estimator", self.estimator)

    def _unit_test_skips(self):
        """Checks of river in which features are added or removed."""
        return {
            "check_emerging_features",
            "check_disappearing_features",
            "check_radically_disappearing_features",
            "check_learn_many_matches_learn_one",
        }


class RiverClassifier(_Adapter, base.MiniBatchClassifier):
    """A classifier of foldless as a classifier of river.

    After every step ``model`` equals the estimator fitted on the rows learnt so far, or on those a window holds.

    Parameters
    ----------
    estimator : LSSVC, KernelFisherDiscriminant, AdaptiveKDA or a SlidingWindow of one
        Clones of it are trained. Give a number for ``gamma``. Use a SlidingWindow for endless streams: the others keep
        all rows.
    classes : sequence, default=None
        The known classes. If None, rows wait until a second class appears; later classes are accepted in any case.
        Calibration needs two rows of two classes. While rows wait, predictions follow the class frequencies.

    Attributes
    ----------
    model : the fitted estimator, with all its attributes; None before the first fit

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from foldless import LSSVC, SlidingWindow
    >>> from foldless.river import RiverClassifier
    >>> window = SlidingWindow(LSSVC(gamma=0.03), max_samples=200)
    >>> model = preprocessing.StandardScaler() | RiverClassifier(window)
    >>> accuracy = evaluate.progressive_val_score(datasets.Phishing().take(1000), model, metrics.Accuracy())
    >>> round(accuracy.get(), 2)
    0.89
    >>> round(model["RiverClassifier"].model.loo_score_, 2)
    0.9
    """

    def __init__(self, estimator: BaseEstimator, classes: Sequence | None = None) -> None:
        self.classes = classes
        self._start(estimator, is_classifier)

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Class probabilities of a row by label, for a calibrated estimator; none before any row was learnt.

        While a window holds too few rows of a second class to calibrate, the predicted label has probability 1.
        """
        classes, P = self._probabilities(list(x), [list(x.values())])
        return dict(zip(classes, P[0].tolist(), strict=True))

    def predict_proba_many(self, X: Any) -> Any:
        """Class probabilities of the rows of a DataFrame, one column for each class, for a calibrated estimator."""
        frame = dataframe.into_frame(X)
        classes, P = self._probabilities(frame.columns, frame.to_numpy())
        return dataframe.to_native_frame(dict(zip(classes, P.T, strict=True)), like=frame)

    def _learn(self, names, rows, y, w):
        if any(label is None or label != label for label in y):
            raise ValueError("y holds a missing label (None or NaN); learn only rows whose label is known.")
        if len({isinstance(label, str) for label in (*y, *_targets_of_weight(self._waiting))}) > 1:
            raise ValueError("labels of different kinds, numbers and strings; use one kind of labels throughout.")
        super()._learn(names, rows, y, w)

    def _can_start(self, rows):
        counts = Counter(_targets_of_weight(rows))
        if getattr(self._inner, "calibration", None) is not None:
            return sum(count > 1 for count in counts.values()) > 1
        return bool(counts) and len(counts.keys() | set(self.classes or ())) > 1

    def _outputs(self, names, rows):
        X = self._matrix(names, rows)
        if self.model is None:
            return [max(self._frequencies, key=self._frequencies.get, default=None)] * len(X)
        return self.model.predict(X).tolist()

    @property
    def _frequencies(self):
        """Shares of the classes among the rows that wait."""
        counts = Counter(_targets_of_weight(self._waiting))
        return {label: count / counts.total() for label, count in counts.items()}

    def _probabilities(self, names, rows):
        X = self._matrix(names, rows)
        if not hasattr(self.model or self.estimator, "predict_proba"):
            raise NotImplementedError(
                f"probabilities need an estimator with calibration='sigmoid' or 'isotonic'; found {self.estimator!r}."
                " Metrics of labels, such as Accuracy, need none."
            )
        if self.model is None:
            shares = self._frequencies
            return list(shares), np.tile(list(shares.values()), (len(X), 1))
        classes = self.model.classes_
        try:
            return classes.tolist(), self.model.predict_proba(X)
        except ValueError:  # too few rows of other classes in the window to calibrate
            return classes.tolist(), (self.model.predict(X)[:, None] == classes).astype(float)

    @property
    def _multiclass(self):
        return True

    @classmethod
    def _unit_test_params(cls):
        yield {"estimator": LSSVC(gamma=0.1)}


class RiverRegressor(_Adapter, base.MiniBatchRegressor):
    """A regressor of foldless as a regressor of river.

    After every step ``model`` equals the estimator fitted on the rows learnt so far, or on those a window holds.

    Parameters
    ----------
    estimator : LSSVR or a SlidingWindow of it
        Clones of it are trained. Give a number for ``gamma``. Use a SlidingWindow for endless streams: LSSVR keeps all
        rows.

    Attributes
    ----------
    model : the fitted estimator, with all its attributes; None before the first row

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from foldless import LSSVR, SlidingWindow
    >>> from foldless.river import RiverRegressor
    >>> window = SlidingWindow(LSSVR(gamma=0.1, alpha=0.01), max_samples=200)
    >>> model = preprocessing.StandardScaler() | RiverRegressor(window)
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval().take(500), model, metrics.MAE())
    >>> round(error.get(), 2)
    0.63
    """

    def __init__(self, estimator: BaseEstimator) -> None:
        self._start(estimator, is_regressor)

    def _can_start(self, rows):
        return bool(_targets_of_weight(rows))

    def _outputs(self, names, rows):
        X = self._matrix(names, rows)
        return [0.0] * len(X) if self.model is None else self.model.predict(X).tolist()

    @classmethod
    def _unit_test_params(cls):
        yield {"estimator": LSSVR(gamma=0.1)}


def _targets_of_weight(rows):
    """Targets of the rows of positive weight."""
    return [target for _, target, weight in rows if weight > 0]


def _numeric(values):
    try:
        return all(map(math.isfinite, values))
    except TypeError:
        return False


def _some(values):
    """The first five of the values in a fixed order, for a message."""
    values = sorted(map(repr, values))
    return f"[{', '.join(values[:5])}{', ...' if len(values) > 5 else ''}]"
