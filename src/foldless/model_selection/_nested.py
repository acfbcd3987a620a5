"""Nested cross-validation of a search: the whole choice repeated inside every outer training part, and judged outside.

A grid takes no refits; it starts from parameters resolved once on all rows ("scale", balanced class weights, the
default grid; labels have a say in the second only). Continuous searches and one setting for each class (``share``) are
searched anew on every training part by ``fit`` itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import check_cv

from foldless._engine.inference.counts import ScoreKind
from foldless._engine.inference.intervals import check_confidence, corrected_interval
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike
from foldless._sklearn.adapters import check_probabilities
from foldless._sklearn.candidates import SearchData, by_grid
from foldless._sklearn.confounded import columns_alone
from foldless._sklearn.counting import Counting
from foldless._sklearn.landmarks import landmarks_to_find
from foldless._sklearn.nested_data import NestedData
from foldless._sklearn.pipelines import Search, split_steps
from foldless._sklearn.route import Route
from foldless._sklearn.scorer_checks import check_scorers
from foldless._sklearn.scorers import deciding_scoring, scores_by_name, wants_probabilities
from foldless._sklearn.splits import check_confounds_determined, row_numbers
from foldless._sklearn.steps import StepsLike, fits_steps, front_of
from foldless._sklearn.weights import with_row_weights
from foldless.estimators.checks import confounds_left_out, rows_and_labels
from foldless.model_selection._nested_runs import nested_grid, nested_loop
from foldless.model_selection._nested_sets import NestedSets, tested
from foldless.model_selection._search_spec import check_search_with_confounds, checked_rows, search_spec, with_scores
from foldless.model_selection._types import ConfoundsLike, CVLike, Params, ScoringLike
from foldless.results import Result, by_name, lanes


@dataclass(repr=False)
class NestedResult(Result, NestedSets):
    """Outer and inner estimates of a tuned model, one entry for each outer split.

    Attributes
    ----------
    test_score : ndarray of shape (n_splits,); of several scores {name: ndarray}
        Score of the held-out predictions of the model chosen without them: the honest estimate.
    inner_score : ndarray of shape (n_splits,); of several scores {name: ndarray}
        The same score on the inner held-out predictions that the choice was made by; nan where the score needs
        probabilities.
    optimism : ndarray of shape (n_splits,); of several scores {name: ndarray}
        inner_score - test_score.
    mean_test_score, std_test_score : float; of several scores {name: float}
        The deviation is that between splits, which share rows: no standard error. See ``interval``.
    inner_criterion, outer_criterion : ndarray of shape (n_splits,)
        The criterion (a loss) of the chosen setting inside, and of its held-out fits outside.
    best_params : list of dicts (of lists of dicts, one a class, where ``share`` is not "all")
    predictions, decision : lists of arrays, for the rows ``test_indices`` of each split; decisions for classifiers only
    test_indices : list of arrays
    path : Path, how it was computed and why
    estimator : list of fitted estimators with ``return_estimator=True``, else None
    tested : list with the training rows of each of these, and y and its outputs at the test rows; else None
    test_share : float, tested rows for each training row, averaged over the splits
    counting : the kinds of the scores and the numbers of held-out rows that intervals are made from

    With ``return_estimator=True`` there are prediction intervals and sets of new rows, which count the tuning:
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
        return {name: compute(each, self.inner_score[name]) for name, each in self.test_score.items()}

    @property
    def optimism(self) -> Any:
        """How much better the chosen setting looked to the search than it was."""
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

        Intervals of scores of classes are widened to what the numbers of held-out rows allow (``docs/inference.md``).
        :func:`score_interval` of the search leaves out pairs of folds: dearer, and nearer to what it promises.
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
            "n_test": [len(each) for each in self.test_indices],
        }
        for what, scores in (("test", self.test_score), ("inner", self.inner_score)):
            named = scores if isinstance(scores, dict) else {"score": scores}
            columns |= {f"{what}_{name}": values for name, values in named.items()}
        columns |= {"inner_criterion": self.inner_criterion, "outer_criterion": self.outer_criterion}
        return columns | by_name(self.best_params, "param_")

    def _picture(self):
        scores = [each if isinstance(each, dict) else {"score": each} for each in (self.test_score, self.inner_score)]
        name = next(iter(scores[0]))
        rows = [(f"{what} {name}", each[name], None) for what, each in zip(("test", "inner"), scores, strict=True)]
        return lanes(rows, f"{name} of the outer splits, on held-out rows and as the choice saw it")


@threads_by_size
def nested_cross_validate(
    search: BaseEstimator,
    X: MatrixLike,
    y: MatrixLike,
    *,
    cv: CVLike = None,
    groups: ArrayLike | None = None,
    scoring: ScoringLike = None,
    params: Params = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    confounds: ConfoundsLike = None,
    steps: StepsLike = "each",
    return_estimator: bool = False,
) -> NestedResult:
    """Exact nested cross-validation: the search repeated on every outer training part, judged on the rows it never saw.

    A criterion that was optimised is no performance estimate. Here every outer split chooses its own hyper-parameters;
    for grids no model is refitted.

    Parameters
    ----------
    search : FoldlessSearchCV, or a pipeline that ends in one
        Earlier steps of a pipeline are fitted on every outer training part (the inner splits see their output), and so
        are those of a pipeline inside the search (the inner splits by its own ``steps``).
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    cv : int, splitter or iterable, default=None
        The outer splits, 5-fold by default; ``StratifiedShuffleSplit(100, test_size=0.1)`` is the practice of Cawley
        (2006). The inner ones are those of ``search``.
    groups : array-like of shape (n_samples,), default=None
        For the outer and for the inner splitter.
    scoring : str, scorer, list or dict of them, default=None
        None: what decides in ``search`` if it has a ``scoring``, else accuracy or R2. Of several, results are dicts.
    params : dict, default=None
        {"sample_weight": weights} for the fits.
    n_jobs : int, default=None
        Kernel settings, or outer splits, worked on at a time; None: that of ``search``.
    verbose : int, default=0
        1 prints progress to standard error.
    confounds : array-like of shape (n_samples, n_confounds), default=None
        As in :func:`cross_validate`; regressed out anew in every outer and inner training part.
    steps : {"each", "once"}, default="each"
        As in :func:`cross_validate`: "once" fits the first steps of a pipeline on all rows, labels unseen.
    return_estimator : bool, default=False
        Whether to return the estimators with the chosen parameters, each fitted on its outer training part. What is
        made from data ("scale", balanced weights) is then made from that part.

    Returns
    -------
    NestedResult

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from foldless import FoldlessSearchCV, LSSVC
    >>> from foldless.model_selection import nested_cross_validate
    >>> X, y = load_wine(return_X_y=True)
    >>> X = (X - X.mean(0)) / X.std(0)
    >>> result = nested_cross_validate(FoldlessSearchCV(LSSVC()), X, y, cv=10)
    >>> print(result.test_score.mean().round(3), result.inner_score.mean().round(3))
    0.983 0.988
    """
    front = front_of(search, X, params, steps)
    taken = split_steps(front.estimator)
    search, params = taken.last, front.params
    _check(search, y, params)
    X, y, groups = rows_and_labels(front.X, y, groups)
    spec, confounds = search_spec(search), confounds_left_out(confounds, "a search")
    targets, sample_weight = checked_rows(search, y, (params or {}).get("sample_weight"))
    if search.scoring is not None:
        spec = with_scores(spec, search, targets)
    spec = with_row_weights(spec, search, targets, sample_weight)
    scorings, several = _scorings(search, spec, scoring, targets)
    scorers = {name: each.scorer for name, each in scorings.items()}
    if confounds is not None:
        confounds = check_search_with_confounds(search, confounds, len(targets))
    wanted = any(map(wants_probabilities, scorers.values()))
    data = NestedData(search, X, targets, groups, sample_weight, confounds, wanted, taken.first, return_estimator)
    splits = check_cv(cv, targets, classifier=is_classifier(search.estimator)).split(X, targets, groups)
    outer = row_numbers(splits, len(targets))
    data.check(outer)
    if confounds is not None:
        check_confounds_determined(columns_alone(search, confounds), outer)
    run = nested_grid if _in_closed_form(data, steps) else nested_loop
    results, route = run(data, spec, outer, search.n_jobs if n_jobs is None else n_jobs, verbose or search.verbose)
    outside, inside = _scores(scorers, results, targets, outer)
    return NestedResult(
        test_score=outside if several else outside["score"],
        inner_score=inside if several else inside["score"],
        inner_criterion=np.array([each.inner_loss for each in results]),
        outer_criterion=np.array([each.outer_loss for each in results]),
        best_params=[each.params for each in results],
        predictions=[each.outside.predict(None) for each in results],
        decision=[each.outside.decision for each in results],
        test_indices=[test for _, test in outer],
        path=front.route(route),
        **_kept(front, results, targets, outer) if return_estimator else {},
        test_share=float(np.mean([len(test) / len(train) for train, test in outer])),
        counting=_counting(scorings, search, targets, groups, outer, results),
    )


def _scores(scorers, results, y, outer):
    """{name: scores of the outer splits}, and the same of the rows that the choice was made by."""
    outside, inside = {}, {}
    for name, scorer in scorers.items():
        pairs = zip(results, outer, strict=True)
        outside[name] = np.array([each.outer_score(scorer, y, test) for each, (_, test) in pairs])
        inside[name] = np.array([each.inner_score(scorer, y) for each in results])
    return outside, inside


def _counting(scorings, search, y, groups, outer, results):
    """The :class:`Counting` of the predictions of the outer splits."""
    counting = Counting.of(None, search.estimator, y, groups, outer)
    kinds = {}
    for name, each in scorings.items():  # the estimator's own score has a metric too
        kinds[name] = ScoreKind.of(each.argument, each.scorer if each.metric is None else each.metric.scorer())
    if counting.counts is None:
        return Counting(kinds, None)
    tested = np.concatenate([test for _, test in outer])
    predicted = np.concatenate([each.outside.predict(None) for each in results])
    return Counting(kinds, counting.counts.with_labels(np.ravel(y)[tested], predicted))


def _kept(front, results, y, outer):
    """The fitted estimators, and what they say of their test rows."""
    models = [each.estimator for each in results]
    said = [tested(model, front.X, y, *split) for model, split in zip(models, outer, strict=True)]
    return {"estimator": [front.whole(model) for model in models], "tested": said}


def _check(search, y, params):
    """Refuse what is no search, and parameters that go nowhere."""
    if not isinstance(search, Search):
        raise ValueError(
            f"search={search!r} must be a FoldlessSearchCV, or a pipeline that ends in one; scikit-learn's"
            " cross_validate takes others."
        )
    unknown = set(params or {}) - {"sample_weight"}
    if unknown:
        raise ValueError(f"params holds {sorted(unknown)}; only sample_weight is passed to the fits.")
    if y is None:
        raise ValueError("y=None: there is nothing to predict.")


def _in_closed_form(data, steps):
    """Whether a whole grid is looked at for one setting, behind no steps that are fitted on each part."""
    search = data.search
    if data.steps is not None or search.share != "all" or fits_steps(search, steps):
        return False
    if landmarks_to_find(search, data.X) is not None:
        return False
    return by_grid(search, SearchData(data.X, data.y, data.sample_weight, data.confounds))


def _scorings(search, spec, scoring, y):
    """({name: Scoring}, whether there may be several): those of ``scoring``, or what decides in the search."""
    if search.scoring is not None and not spec.score_decides:
        raise ValueError(f"refit={search.refit!r} of the search must name the one of its scores that decides.")
    scoring = deciding_scoring(search.scoring, search.refit) if scoring is None else scoring
    scorings, several = scores_by_name(search, scoring)
    check_probabilities(scoring, search)
    check_scorers([(each.name, each.scorer) for each in scorings.values()], search.estimator, y)
    return scorings, several
