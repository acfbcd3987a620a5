"""The result of nested cross-validation, with prediction sets and intervals that allow for the tuning.

Rows by which hyper-parameters were chosen are fitted better than new ones, also when they are left out, and intervals
made from their residuals are too short. Here each row is judged by a model that was chosen and fitted without its fold:

    values    f_k(x) -+ |y_i - f_k(x_i)|, k the fold of row i: CV+ (Barber, Candes, Ramdas & Tibshirani 2021)
    labels    p = (1 + #{ i : margin of row i <= margin of the label at x, both by f_k }) / (n + 1)   (Vovk 2015)

For exchangeable rows the truth is covered with a probability of at least 2 coverage - 1, up to a term of order n^-1/2,
and of about ``coverage`` in practice (docs/conformal.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _safe_split

from foldless._engine.inference.intervals import check_confidence, corrected_interval
from foldless._engine.linalg.types import MatrixLike
from foldless._engine.readout.conformal import cross_p_values, in_set, residual_intervals
from foldless._sklearn.counting import Counting
from foldless._sklearn.route import Route
from foldless.estimators.conformal import check_coverage
from foldless.results import Result, by_name, lanes


class Tested(NamedTuple):
    """What the estimator of an outer split was fitted on, and its outputs for the rows that it is tested on."""

    train: np.ndarray
    y: Any
    output: np.ndarray  # decisions, or predicted values


def tested(estimator, X, y, train, test):
    """:class:`Tested` of a fitted estimator."""
    X, y = _safe_split(estimator, X, y, test, train)
    return Tested(train, np.asarray(y), _output(estimator, X))


def _output(estimator, X):
    return estimator.decision_function(X) if is_classifier(estimator) else estimator.predict(X)


@dataclass(repr=False)
class NestedResult(Result):
    """Outer and inner estimates of a tuned model, one entry for each outer split.

    Attributes
    ----------
    test_score : ndarray of shape (n_splits,); of several scores {name: ndarray}
        Score of the held-out predictions by the model that was chosen and fitted without them: the estimate to report.
    inner_score : ndarray of shape (n_splits,); of several scores {name: ndarray}
        The same score of the inner held-out predictions, by which the model was chosen; nan if the score needs
        probabilities.
    optimism : ndarray of shape (n_splits,); of several scores {name: ndarray}
        inner_score - test_score.
    mean_test_score, std_test_score : float; of several scores {name: float}
        The standard deviation between splits, which is no standard error since they share rows. See ``interval``.
    inner_criterion, outer_criterion : ndarray of shape (n_splits,)
        The criterion (a loss) of the chosen setting inside, and of its held-out fits outside.
    best_params : list of dicts (of lists of dicts, one a class, where ``share`` is not "all")
    predictions, decision : lists of arrays, for the rows ``test_indices`` of each split; decisions for classifiers only
    test_indices : list of arrays
    path : Route, how it was computed and why
    estimator : list of fitted estimators with ``return_estimator=True``, else None
    tested : list of the training rows of these, with y and the outputs for the test rows; else None
    test_share : float, ratio of test rows to training rows, averaged over the splits
    counting : the kinds of the scores and the numbers of held-out rows, for intervals

    With ``return_estimator=True`` there are prediction intervals and sets of new rows that allow for the tuning:
    ``predict_interval(X, coverage=0.9)`` and ``predict_set(X, coverage=0.9, class_conditional=False)``.
    ``to_frame()`` has one row for each outer split.
    """

    test_score: Any
    inner_score: Any
    inner_criterion: np.ndarray
    outer_criterion: np.ndarray
    best_params: list
    predictions: list
    decision: list
    test_indices: list
    path: Route
    estimator: list | None = None
    tested: list | None = None
    test_share: float = np.nan
    counting: Counting = field(default_factory=lambda: Counting({}, None))

    def _by_name(self, compute):
        """``compute(test, inner)`` of the score, or of each of several."""
        if not isinstance(self.test_score, dict):
            return compute(self.test_score, self.inner_score)
        return {name: compute(test, self.inner_score[name]) for name, test in self.test_score.items()}

    @property
    def optimism(self) -> Any:
        """Inner scores minus test scores: the bias of the criterion by the choice."""
        return self._by_name(lambda test, inner: inner - test)

    @property
    def mean_test_score(self) -> Any:
        """Mean over the splits."""
        return self._by_name(lambda test, _: float(test.mean()))

    @property
    def std_test_score(self) -> Any:
        """Standard deviation over the splits."""
        return self._by_name(lambda test, _: float(test.std()))

    def interval(self, confidence: float = 0.9) -> Any:
        """The :class:`ScoreInterval` of ``test_score`` by Nadeau & Bengio (2003); of several scores {name: interval}.

        Intervals of scores of classes are widened for small numbers of held-out rows (``docs/inference.md``). The
        slower :func:`score_interval` of the search leaves out pairs of folds; its coverage is closer to nominal.
        """
        check_confidence(confidence)
        if not isinstance(self.test_score, dict):
            return self._interval("score", self.test_score, confidence)
        return {name: self._interval(name, values, confidence) for name, values in self.test_score.items()}

    def _interval(self, name, values, confidence):
        kind, counts = self.counting.kind(name), self.counting.counts
        return corrected_interval(values, self.test_share, confidence, kind, counts)

    def __repr__(self):
        if not isinstance(self.test_score, dict):
            return f"{self._in_words('score', self.test_score, self.inner_score)}; {self.path}"
        texts = [
            f"{name}: {self._in_words(name, values, self.inner_score[name])}"
            for name, values in self.test_score.items()
        ]
        return f"{'; '.join(texts)}; {self.path}"

    def _in_words(self, name, test, inner):
        text = f"test score {test.mean():.4f}"
        if len(test) > 1 and np.isfinite(test).all():
            _, low, high = self._interval(name, test, 0.9)
            text += f" (90 % interval {low:.4f} to {high:.4f}, {len(test)} splits)"
        if np.isnan(inner).any():
            return text
        return f"{text}, inner score {inner.mean():.4f}, optimism {(inner - test).mean():.4f}"

    def _columns(self):
        columns: dict[str, Any] = {
            "split": range(len(self.best_params)),
            "n_test": [len(rows) for rows in self.test_indices],
        }
        for what, scores in (("test", self.test_score), ("inner", self.inner_score)):
            named = scores if isinstance(scores, dict) else {"score": scores}
            columns |= {f"{what}_{name}": values for name, values in named.items()}
        columns |= {"inner_criterion": self.inner_criterion, "outer_criterion": self.outer_criterion}
        return columns | by_name(self.best_params, "param_")

    def _picture(self):
        test, inner, name = self.test_score, self.inner_score, "score"
        if isinstance(test, dict):
            name = next(iter(test))
            test, inner = test[name], inner[name]
        rows = [(f"test {name}", test, None), (f"inner {name}", inner, None)]
        return lanes(rows, f"{name} of the outer splits, on held-out rows and as the choice saw it")

    # -- sets and intervals of new rows -------------------------------------------------------------------------------

    def _outputs(self, X, of_labels):
        """Outputs of every estimator for new rows X; an error where there are none to make sets or intervals from."""
        if self.estimator is None or self.tested is None:
            raise ValueError("return_estimator=False kept no models for new rows; nested_cross_validate with True.")
        if is_classifier(self.estimator[0]) != of_labels or (of_labels and self.tested[0].y.ndim > 1):
            raise AttributeError("sets are for classifiers of one label a row, intervals for regressors.")
        rows = np.concatenate(self.test_indices)
        if len(np.unique(rows)) < len(rows):
            raise ValueError("cv tests rows more than once; sets and intervals need splits that do not, such as KFold.")
        outputs = []
        for model, (train, *_) in zip(self.estimator, self.tested, strict=True):
            pairwise = get_tags(model).input_tags.pairwise
            outputs.append(_output(model, _safe_indexing(X, train, axis=1) if pairwise else X))
        return outputs

    def predict_interval(self, X: MatrixLike, coverage: float = 0.9) -> np.ndarray:
        """CV+ intervals (n_samples, 2) or (n_samples, n_outputs, 2) of new rows; they allow for the tuning."""
        check_coverage(coverage)
        predictions, tested_parts = self._outputs(X, False), self.tested or []
        residuals = np.concatenate([part.y - part.output for part in tested_parts])
        flat = residuals.ndim == 1
        n_rows = [len(part.y) for part in tested_parts]
        fits = np.repeat(np.stack(predictions, 1), n_rows, axis=1)  # those of the model without the row's fold
        ends = residual_intervals(fits[..., None] if flat else fits, residuals.reshape(len(residuals), -1), coverage)
        return ends[:, 0] if flat else ends

    def conformal_p_values(self, X: MatrixLike, *, class_conditional: bool = False) -> np.ndarray:
        """Cross-conformal p-values (n_samples, n_classes) of the labels of new rows; they allow for the tuning."""
        decisions = self._outputs(X, True)
        classes = self.estimator[0].classes_  # type: ignore[index]
        held_out = [(part.output, np.searchsorted(classes, part.y)) for part in self.tested or []]
        return cross_p_values(decisions, held_out, class_conditional=class_conditional)

    def predict_set(self, X: MatrixLike, coverage: float = 0.9, *, class_conditional: bool = False) -> np.ndarray:
        """Sets of labels with a p-value above 1 - coverage, boolean (n_samples, n_classes), allowing for the tuning."""
        check_coverage(coverage)
        return in_set(self.conformal_p_values(X, class_conditional=class_conditional), coverage)
