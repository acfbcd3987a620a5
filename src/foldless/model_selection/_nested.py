"""Nested cross-validation of a search: the whole choice repeated inside every outer training part, and judged outside.

A grid takes no refits; it starts from parameters resolved once on all rows ("scale", balanced class weights, the
default grid; labels have a say in the second only). Continuous searches and one setting for each class (``share``) are
searched anew on every training part by ``fit`` itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from foldless.bridge.adapters import Search, check_probabilities
from foldless.bridge.candidates import by_grid
from foldless.bridge.confounded import columns_alone
from foldless.bridge.nested_data import NestedData
from foldless.bridge.pipelines import split_steps
from foldless.bridge.route import Route
from foldless.bridge.scorers import check_single, wants_probabilities
from foldless.bridge.splits import check_confounds_determined, row_numbers
from foldless.bridge.steps import StepsLike, front_of
from foldless.linalg.threads import threads_by_size
from foldless.linalg.types import MatrixLike
from foldless.model_selection._nested_runs import nested_grid, nested_loop
from foldless.model_selection._search_spec import check_search_with_confounds, checked_rows, search_spec
from foldless.model_selection._types import CVLike, Params, ScoringLike


@dataclass(repr=False)
class NestedResult:
    """Outer and inner estimates of a tuned model, one entry for each outer split.

    Attributes
    ----------
    test_score : ndarray of shape (n_splits,)
        Score of the held-out predictions of the model chosen without them: the honest estimate.
    inner_score : ndarray of shape (n_splits,)
        The same score on the inner held-out predictions that the choice was made by; nan where the score needs
        probabilities.
    optimism : ndarray of shape (n_splits,)
        inner_score - test_score.
    inner_criterion, outer_criterion : ndarray of shape (n_splits,)
        The criterion (a loss) of the chosen setting inside, and of its held-out fits outside.
    best_params : list of dicts (of lists of dicts, one a class, where ``share`` is not "all")
    predictions, decision : lists of arrays, for the rows ``test_indices`` of each split; decisions for classifiers only
    test_indices : list of arrays
    path : Path, how it was computed and why
    """

    test_score: np.ndarray
    inner_score: np.ndarray
    inner_criterion: np.ndarray
    outer_criterion: np.ndarray
    best_params: list
    predictions: list
    decision: list
    test_indices: list
    path: Route

    @property
    def optimism(self) -> np.ndarray:
        """How much better the chosen setting looked to the search than it was."""
        return self.inner_score - self.test_score

    def __repr__(self):
        # Not a standard error: splits share rows, and their scores are not independent.
        spread = self.test_score.std()
        text = (
            f"test score {self.test_score.mean():.4f} (standard deviation {spread:.4f}, {len(self.test_score)} splits)"
        )
        if not np.isnan(self.inner_score).any():
            text += f", inner score {self.inner_score.mean():.4f}, optimism {self.optimism.mean():.4f}"
        return f"{text}; {self.path}"


@threads_by_size
def nested_cross_validate(
    search: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    cv: CVLike = None,
    groups: ArrayLike | None = None,
    scoring: ScoringLike = None,
    params: Params = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    confounds: ArrayLike | None = None,
    steps: StepsLike = "each",
) -> NestedResult:
    """Exact nested cross-validation: the search repeated on every outer training part, judged on the rows it never saw.

    A criterion that was optimised is no performance estimate. Here every outer split chooses its own hyper-parameters;
    for grids no model is refitted.

    Parameters
    ----------
    search : FoldlessSearchCV, or a pipeline that ends in one
        Earlier steps of a pipeline are fitted on every outer training part (the inner splits see their output).
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    cv : int, splitter or iterable, default=None
        The outer splits, 5-fold by default; ``StratifiedShuffleSplit(100, test_size=0.1)`` is the practice of Cawley
        (2006). The inner ones are those of ``search``.
    groups : array-like of shape (n_samples,), default=None
        For the outer and for the inner splitter.
    scoring : str or callable, default=None
        One scorer; None: accuracy or R2.
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
    _check(search, y, scoring, params)
    X, y, groups = indexable(front.X, y, groups)
    spec = search_spec(search)
    scorer = check_scoring(search, scoring=scoring)
    check_probabilities(scoring, search)
    targets, sample_weight = checked_rows(search.estimator, y, (params or {}).get("sample_weight"))
    if confounds is not None:
        confounds = check_search_with_confounds(search, confounds, len(targets))
    given = (groups, sample_weight, confounds)
    data = NestedData(search, X, targets, *given, wants_probabilities(scorer), taken.first)
    splits = check_cv(cv, targets, classifier=is_classifier(search.estimator)).split(X, targets, groups)
    outer = row_numbers(splits, len(targets))
    data.check(outer)
    if confounds is not None:
        check_confounds_determined(columns_alone(search, confounds), outer)
    closed = search.share == "all" and taken.first is None and by_grid(search, X, targets, sample_weight, confounds)
    run = nested_grid if closed else nested_loop
    results, route = run(data, spec, outer, search.n_jobs if n_jobs is None else n_jobs, verbose or search.verbose)
    scores = [result.scores(scorer, targets, test) for result, (_, test) in zip(results, outer, strict=True)]
    return NestedResult(
        test_score=np.array([outside for outside, _ in scores]),
        inner_score=np.array([inside for _, inside in scores]),
        inner_criterion=np.array([each.inner_loss for each in results]),
        outer_criterion=np.array([each.outer_loss for each in results]),
        best_params=[each.params for each in results],
        predictions=[each.outside.predict(None) for each in results],
        decision=[each.outside.decision for each in results],
        test_indices=[test for _, test in outer],
        path=front.route(route),
    )


def _check(search, y, scoring, params):
    """Refuse what is no search, parameters that go nowhere, and several scores."""
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
    check_single(scoring, "nested_cross_validate takes one.")
