"""Ways to the cross-validated scores of many labelings, from the quickest to the most general.

    Batched          labelings are columns: one P for all of them (behind fitted steps one P for each split)
    SharedPrecision  the same P, but scikit-learn's loop for every labeling: scores of probabilities or estimators
    RefitEach        a cross-validation for every labeling: weights that follow the labels, no closed form

Each takes ``orders`` (b, n), labeling j giving row i the label of row orders[j, i], and their splits, and returns the b
mean scores over the splits.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn import model_selection as skl
from sklearn.base import clone
from sklearn.metrics._scorer import _BaseScorer
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS
from foldless.bridge.path import RefitWarning, build_task
from foldless.bridge.standin import Run, StandIn
from foldless.estimators.access import kernel_of
from foldless.model_selection._outer import Labels, Values
from foldless.model_selection._validation import _reads_estimators, _scoring_of_rows
from foldless.permutation.labelings import Fitted, Labelings, Solver, elsewhere
from foldless.permutation.metrics import METRICS, Metric
from foldless.readout.codings import OneAgainstAll
from foldless.readout.task import Task

ARRAYS = 10  # arrays of the size of the columns alive at a time
ENTRIES = 2**21  # entries of an array of columns beyond which larger ones are no quicker


@dataclass
class TestData:
    """The data of one test."""

    X: object
    y: object
    sample_weight: object = None
    confounds: object = None
    confounds_in_score: bool = False

    def task(self, estimator):
        """(task, classes, flat), or the Path of a refit."""
        extra = {} if self.confounds is None else {"confounds": self.confounds, "in_score": self.confounds_in_score}
        return build_task(estimator, self.X, self.y, self.sample_weight, **extra)


@dataclass
class Judge:
    """Scores of decisions: at once by a metric, or one labeling after the other by a scorer."""

    metric: Metric | None
    scorer: object
    classes: np.ndarray | None
    flat: bool
    as_theirs: bool = False  # whether scores of labels are to be scikit-learn's to the last bit

    @classmethod
    def of(cls, scoring, scorer, task, classes, flat, as_theirs=False):
        """The judge of a scoring, or None where decisions are not enough for it."""
        metric = METRICS.get(scoring) if isinstance(scoring, str) else None
        if task.readout.cuts:  # the cut is made from leave-one-out scores of every labeling
            return None
        suits = metric is not None and metric.labels == (classes is not None)
        if suits and metric.classes in (None, task.n_classes):
            return cls(metric, scorer, classes, flat, as_theirs)
        response = getattr(scorer, "_response_method", None)
        plain = response == "predict" or (response == "decision_function" and _absolute(task))
        return cls(None, scorer, classes, flat) if isinstance(scorer, _BaseScorer) and plain else None

    def __call__(self, D, truth):
        """Scores (b,) of decisions (b, k, t)."""
        if self.metric is not None:
            rounded = self.metric.as_theirs if self.as_theirs else None
            return (rounded or self.metric.function)(D, truth)
        rows = np.arange(D.shape[2])[:, None]
        scores = np.empty(len(D))
        for j, (decision, true) in enumerate(zip(D, truth, strict=True)):
            if self.classes is None:
                values = decision[0] if self.flat else decision.T
                scores[j] = self.scorer(Values(values), rows, true[0] if self.flat else true.T)
            else:
                outputs = Labels(self.classes, decision[0] if len(decision) == 1 else decision.T)
                scores[j] = self.scorer(outputs, rows, self.classes[true])
        return scores


def _absolute(task):
    """Whether decisions of columns are the decision function itself, not up to a constant a row."""
    return task.codes is None or task.n_classes == 2 or isinstance(task.readout, OneAgainstAll)


def chunk(task, memory_limit):
    """Labelings to work on at a time within so many bytes."""
    entries = min(ENTRIES, memory_limit // (ARRAYS * task.problem.dtype.itemsize))
    width = Labelings(task, np.empty((0, 0))).width
    return max(1, int(entries // (task.problem.n * width)))


def _split_lists(orders, splits, resplit):
    """The splits of every labeling."""
    return splits if resplit else [splits] * len(orders)


@dataclass
class Batched:
    """Scores of columns: ``solver`` serves all splits, or ``behind`` makes one for each behind fitted steps."""

    task: Task
    judge: Judge
    solver: Solver | None = None
    behind: object = None  # function of (train, test); one P is held at a time

    def scores(self, orders, splits, resplit=False):
        """Mean scores (b,)."""
        labelings = Labelings.of(self.task, orders)
        if self.behind is not None:
            return _mean(np.array([self._fold(Fitted(self.behind(*split), labelings), *split) for split in splits]).T)
        fitted = Fitted(self.solver, labelings)
        if not resplit:
            return _mean(np.array([self._fold(fitted, train, test) for train, test in splits]).T)
        scores, true = np.empty(len(orders)), self._true_ones(labelings)
        # Rounding depends on the number of columns: labels that stay as they are must give the very same score.
        alone = Fitted(self.solver, labelings.select(true[:1])) if len(true) else fitted
        for j, own in enumerate(splits):
            one = alone if j in true else fitted.select([j])
            scores[j] = np.mean([self._fold(one, train, test)[0] for train, test in own])
        return scores

    def _true_ones(self, labelings):
        """Numbers of the labelings that are the true one."""
        true = Labelings.of(self.task, np.arange(self.task.problem.n)[None]).truth
        return np.flatnonzero((labelings.truth == true).reshape(len(labelings), -1).all(1))

    def _fold(self, fitted, train, test):
        model = fitted.part(train)
        return self.judge(fitted.decisions(model, test), fitted.labelings.truth[..., test])

    def generalised(self, orders, splits, others):
        """Scores (b, k) of the models trained here at the features ``others`` (k arrays) of the held-out rows."""
        labelings = Labelings.of(self.task, orders)
        total = np.zeros((len(orders), len(others)))
        shared = None if self.behind is not None else Fitted(self.solver, labelings)
        for train, test in splits:
            fitted = shared or Fitted(self.behind(train, test), labelings)
            model, truth = fitted.part(train), labelings.truth[..., test]
            read, fits = fitted.reader(model), elsewhere(model, test)
            for k, X in enumerate(others):
                rows = _safe_indexing(X, test) if shared is not None else fitted.solver.transform(X, test)
                total[:, k] += self.judge(read(fits(rows)), truth)
        return total / len(splits)


def _mean(scores):
    """Means over splits of (b, n_splits), summed as NumPy sums a vector: equal scores stay equal."""
    return np.ascontiguousarray(scores).mean(1)


def behind_steps(steps, given, train, test):
    """(fitted steps, all rows as they see them), fitted on ``train`` alone; rows of neither part are not looked at."""
    steps, rows = clone(steps).fit(_safe_indexing(given.X, train)), np.arange(len(given.y))
    rows[~np.isin(rows, np.concatenate([train, test]))] = train[0]
    return steps, replace(given, X=steps.transform(_safe_indexing(given.X, rows)))


class StepSolver(Solver):
    """P of a training part behind fitted steps."""

    def __init__(self, steps, last, given, train, test):
        self.steps, given = behind_steps(steps, given, train, test)
        problem = given.task(last)[0].problem
        if isinstance(last, FOLDLESS_ESTIMATORS):  # "scale" is resolved on the training part, as in a refit
            weight = None if given.sample_weight is None else given.sample_weight[train]
            problem = problem.replace(kernel=kernel_of(last, problem.X[train], weight))
        super().__init__(problem.trained_on(train))

    def transform(self, X, rows):
        """Other features of these rows, transformed by the steps."""
        return self.steps.transform(_safe_indexing(X, rows))


@dataclass
class SharedPrecision:
    """scikit-learn's loop over the splits for every labeling, all from one P."""

    estimator: object
    solved: object
    given: TestData
    task: Task
    classes: np.ndarray | None
    flat: bool
    solver: Solver
    scoring: object
    score_params: dict | None = None

    def scores(self, orders, splits, resplit=False):
        """Mean scores (b,)."""
        each = zip(orders, _split_lists(orders, splits, resplit), strict=True)
        return np.array([self._one(order, own) for order, own in each])

    def _one(self, order, splits):
        codes = None if self.task.codes is None else self.task.codes[order]
        if codes is not None:
            check_classes(codes, splits)
        task = replace(self.task, Y=self.task.Y[order], codes=codes)
        holdout = task.training_parts()
        holdout.way, holdout.whole = "part", self.solver.solve(task.Y)
        given, y = self.given, _safe_indexing(self.given.y, order)
        run = Run(self.estimator, self.solved, task, self.classes, self.flat, given.X, y, given.sample_weight, holdout)
        scoring = _scoring_of_rows(self.scoring, given.X)
        if given.confounds is not None and _reads_estimators(scoring):
            run.check_materialises(given.confounds_in_score)
        result = skl.cross_validate(
            StandIn(run),
            np.arange(task.problem.n)[:, None],
            y,
            cv=splits,
            scoring=scoring,
            params=self.score_params,
            error_score="raise",
        )
        return np.mean(result["test_score"])


@dataclass
class RefitEach:
    """A cross-validation for every labeling: ``validate(given, splits)`` gives the scores of its splits."""

    validate: object
    given: TestData
    follow: bool = False  # whether sample weights go with the labels
    by_class: bool = False  # whether class weights do

    def scores(self, orders, splits, resplit=False):
        """Mean scores (b,)."""
        scores = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RefitWarning)  # said once, in the path of the result
            for order, own in zip(orders, _split_lists(orders, splits, resplit), strict=True):
                weight = self.given.sample_weight
                if weight is not None and self.follow:
                    weight = np.asarray(weight)[order]
                given = replace(self.given, y=_safe_indexing(self.given.y, order), sample_weight=weight)
                if self.by_class:
                    check_classes(np.asarray(given.y), own)
                scores.append(np.mean(self.validate(given, own)))
        return np.array(scores)


def check_classes(labels, splits):
    """Refuse training parts without one of the classes, where fitted estimators or class weights are asked for."""
    classes = np.unique(labels)
    for number, (train, _) in enumerate(splits):
        missing = np.setdiff1d(classes, labels[train])
        if len(missing):
            raise ValueError(
                f"cv: a labeling leaves the training part of split {number} without class {missing[0]!r}, and class"
                " weights, cuts and scores of fitted estimators need all of them. Use a stratified splitter, fewer"
                " folds, or a score by name such as 'balanced_accuracy'."
            )


def last_step(estimator):
    """(steps before the last, the last) of a pipeline; (None, estimator) otherwise."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    *first, (_, last) = estimator.steps
    first = [(name, step) for name, step in first if step is not None and step != "passthrough"]
    return (Pipeline(first) if first else None), last
