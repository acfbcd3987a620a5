"""Leave-pair-out cross-validation of the AUC (Pahikkala et al. 2009; Airola et al. 2011).

Every pair of a positive and a negative row is held out together and ranked by the model that has seen neither: the
mean over pairs is an almost unbiased estimate of the AUC, where pooling the scores of different folds is not. All
pairs are 2 x 2 systems in P, O(n^2) after one explicit P.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from foldless._engine.heldout.leave_out import leave_out
from foldless._engine.heldout.sets import Sets
from foldless._engine.linalg.threads import threads_by_size
from foldless._engine.linalg.types import MatrixLike
from foldless._engine.readout.ranking import scored_pairs_won
from foldless._sklearn.adapters import build_task, closed_form_estimator
from foldless._sklearn.pipelines import split_steps
from foldless._sklearn.route import require_closed_form
from foldless._sklearn.steps import StepsLike, front_of
from foldless.estimators.checks import rows_and_labels
from foldless.model_selection._types import ConfoundsLike, Params


@threads_by_size
def leave_pair_out_auc(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    params: Params = None,
    confounds: ConfoundsLike = None,
    steps: StepsLike = "each",
) -> float:
    """Exact leave-pair-out AUC: the share of pairs that a model fitted without them ranks correctly.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, KernelFisherDiscriminant, or scikit-learn's Ridge, RidgeClassifier, KernelRidge
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Two classes: pairs of one row of each. More classes: each class against the others, averaged. Regression: all
        pairs with different values (concordance).
    params : dict, default=None
        ``{"sample_weight": ...}`` for ``fit``; the average over pairs is not weighted. Rows of weight 0 form no
        pairs.
    confounds : array-like of shape (n_samples, n_confounds) or Confounds, default=None; as in :func:`cross_validate`
        Pairs are ranked by scores without the confounds' part, with it if ``in_score=True``.
    steps : {"each", "once"}, default="each"; pipelines need "once", as in :func:`cross_validate`

    Returns
    -------
    float
        Ties count one half.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from foldless import LSSVC
    >>> from foldless.model_selection import leave_pair_out_auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> round(leave_pair_out_auc(LSSVC(alpha=0.1), (X - X.mean(0)) / X.std(0), y), 3)
    0.996
    """
    front = front_of(estimator, X, params, steps)
    estimator, params = front.estimator, front.params
    X, y = rows_and_labels(front.X, y)
    steps_of_estimator = split_steps(estimator)
    of_last = steps_of_estimator.fit_params_of_last(params)
    weight, confounds = of_last.get("sample_weight"), of_last.get("confounds", confounds)
    solved = require_closed_form(
        lambda: build_task(closed_form_estimator(steps_of_estimator, of_last), X, y, weight, confounds),
        lambda obstacle: (
            f"leave_pair_out_auc has no closed form for {type(estimator).__name__} ({obstacle}) and would need a"
            " refit for every pair. Use a least-squares estimator, behind steps of a pipeline with steps='once', or"
            " cross_val_score(..., scoring='roc_auc') for the mean AUC over folds."
        ),
    )
    task, classes = solved.task, solved.classes
    if not solved.flat or (classes is None and task.readout.cuts):
        raise ValueError("leave_pair_out_auc ranks one output; y has several.")
    if classes is not None and np.bincount(task.codes[task.problem.active], minlength=task.n_classes).min() < 2:
        raise ValueError(
            "leave_pair_out_auc needs at least two rows of every class: leaving out a pair empties a class."
        )
    model = task.training_parts().full_fit.explicit()  # its n x n entries are no more than there are pairs
    if classes is None:
        values = task.Y[model.rows, 0]
        return _share(task, model, np.nonzero(values[:, None] > values[None, :]), None)
    codes = task.codes[model.rows]
    if len(classes) == 2:
        return _share(task, model, _cross(codes == 1), None)
    return float(np.mean([_share(task, model, _cross(codes == k), k) for k in range(len(classes))]))


def _cross(positive):
    """All pairs of a positive and a negative row."""
    high, low = np.flatnonzero(positive), np.flatnonzero(~positive)
    return np.repeat(high, len(low)), np.tile(low, len(high))


def _share(task, model, pairs, column):
    """Share of pairs (high, low) with the larger score, or column of scores, at ``high``."""
    high, low = pairs
    if not len(high):
        raise ValueError("y holds no pair of different values: there is nothing to rank.")
    wins = 0.0
    for _, held_out in leave_out(model, Sets.of(np.stack([high, low], 1))):
        scores = task.scores(held_out)
        scores = scores if scores.ndim == 2 else scores[..., 0 if column is None else column]
        wins += scored_pairs_won(scores, squares=column is not None)
    return float(wins / len(high))
