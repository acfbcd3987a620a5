"""A linear model behind StandardScaler, both fitted on each training part: sums that are downdated, no refits.

What ``heldout.scaled`` can do exactly; everything else goes through scikit-learn's loop.
"""

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from foldless.bridge.adapters import TASKS, build_task
from foldless.bridge.pipelines import split_steps
from foldless.bridge.standin import Run
from foldless.heldout.scaled import ScaledParts


class ScaledRun(Run):
    """A run whose training parts have features, and models, of their own."""

    def decide(self, sets):
        """Decisions of the rows of each set (k, t) by the pipeline fitted without it."""
        readout = self.task.readout
        found = []
        for some, models in self.parts.without(sets):
            moments = models.moments() if readout.needs_moments else None
            found.append(readout.scores(models.fits(sets[some]), moments))
        return np.concatenate(found)

    def loo(self, method):
        """``method`` of all rows, each by the pipeline without it."""
        return self.outputs(self.decide(np.arange(self.task.problem.n)[:, None])[:, 0], method)

    def materialise(self, train, model):
        """The pipeline, fitted on a training part."""
        name, weight = split_steps(self.outer).name, self.sample_weight
        params = {} if weight is None else {f"{name}__sample_weight": np.asarray(weight)[train]}
        return clone(self.outer).fit(_safe_indexing(self.X, train), _safe_indexing(self.y, train), **params)


def scaled_run(asked, fit_params):
    """The :class:`ScaledRun` of a call, or None where the pipeline or the data are others."""
    steps = split_steps(asked.estimator)
    if steps.first is None or [type(step) for _, step in steps.first.steps] != [StandardScaler]:
        return None
    last, scaler = steps.last, steps.first.steps[0][1]
    probabilities = asked.method.endswith("proba") or getattr(last, "calibration", None) is not None
    balanced = isinstance(getattr(last, "class_weight", None), str)  # by each training part, as in a refit
    others = fit_params.keys() - {"sample_weight"} or asked.confounds is not None
    routed = fit_params and sklearn.get_config().get("enable_metadata_routing", False)
    if type(last) not in TASKS or probabilities or balanced or others or routed:
        return None
    weight = fit_params.get("sample_weight")
    built = build_task(last, asked.X, asked.y, weight)
    task, problem = built.task, built.task.problem
    dense_and_linear = problem.kernel.is_linear and not sp.issparse(problem.X) and problem.dtype == np.float64
    if not dense_and_linear or problem.penalty.squares_kernel or task.readout.cuts or problem.X.shape[1] >= problem.n:
        return None
    options = {"with_mean": scaler.with_mean, "with_std": scaler.with_std, "intercept": bool(problem.intercept)}
    parts = ScaledParts(problem.X, task.Y, np.square(problem.root_w), problem.alpha, **options)
    return ScaledRun(asked.estimator, last, built, asked.X, asked.y, weight, parts)
