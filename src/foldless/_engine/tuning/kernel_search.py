"""A search that learns a kernel: a sum of a Gaussian and a Laplacian one, the latter with a scale for each feature.

    K = a exp(-g |x - z|^2) + b exp(-h sum_k s_k |x_k - z_k|)

Scales s come from two metric steps, an idea of recursive feature machines (Radhakrishnan et al. 2024): with the present
Laplacian model, s_k^2 is the mean squared slope by feature k of the models without each row, at that row
(``heldout.slopes``), divided by its mean over the features; then the width h and alpha again. a, b, g, h and alpha are
chosen by the criterion, with the scales as they are.

The criterion after a step flatters the Laplacian kernel, since the scales have seen every label. The number of steps is
therefore fixed, and kernels are not chosen but added, with weights a, b > 0.

    some hundred rows     a grid for each kernel, the first metric step, the second one where rows are few
    a fifth of all        the second metric step, and down from the best weights
    all rows              as in ``tuning.fidelity``: one to three settings
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from foldless._engine.heldout.slopes import mean_squared_slopes
from foldless._engine.heldout.solution import Solution
from foldless._engine.linalg.random_state import check_random_state
from foldless._engine.tuning.fidelity import Fidelity, _least
from foldless._engine.tuning.space import default_grid, default_limits
from foldless.kernels.base import Sum
from foldless.kernels.columns import Scaled
from foldless.kernels.formulas import RBF, Laplacian

STEPS = 2
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)  # of the Gaussian kernel; smooth functions need nearly all of it
NEAR_WIDTHS = np.array([0.5, 1.0, 2.0])  # factors of the width after a metric step
NEAR_ALPHAS = np.logspace(-1.5, 1.5, 13)  # and of alpha
SLOPES = 400  # rows whose slopes are averaged
FEWEST_SLOPES = 50
DIFFERENCES = 1e9  # of features of rows that slopes take at the most, beyond the fewest rows
LEAST_SCALE = 1e-3  # of the root mean square of the scales; features below it are left out


@dataclass
class KernelSearch(Fidelity):
    """The search of a sum of kernels, as a sequence of points; the last of them are those on all rows."""

    scales: np.ndarray | None = None  # (d,), after a metric step

    def points(self):
        few, more, everything = self.parts
        gaussian = yield from self._best_of_grid(few, RBF("scale"))
        laplacian = yield from self._best_of_grid(few, Laplacian("scale"))
        if not issparse(self.task.problem.X):
            for step in range(STEPS):
                laplacian = yield from self._metric_step(laplacian, few if step == 0 else more)
        best = yield from self._best_share(gaussian, laplacian)
        small = yield from self._down(best, few)
        self.chosen = small
        if more is not few:
            large = yield from self._down(small, more)
            self.chosen = large
            if more is not everything:
                on_all_rows = yield from self._on_all_rows(small, large)
                self.chosen = _least(on_all_rows or [large])

    def named(self, point):
        """A point as parameters of the estimator; weights of the kernels add up to 1, and alpha goes with them."""
        total, kernel = point.kernel.of_unit_weight()
        return {
            **self.start.params,
            self.start.alpha: float(point.alphas[0]) / total,
            self.start.prefix + "kernel": kernel,
        }

    @property
    def feature_scales(self):
        """Scales (1, d) of the Laplacian kernel."""
        return None if self.chosen is None or self.scales is None else self.scales[None]

    # -- kernels by themselves, on some hundred rows -------------------------------------------------------------------

    def _best_of_grid(self, selection, kernel):
        """The best of the default grid of a kernel."""
        problem = self.task.problem.replace(kernel=kernel.resolved(self.task.problem.X))
        points = yield from self._whole_grid(selection, problem.kernel, default_grid(problem))
        return _least(points)

    def _best_near(self, selection, kernels, alpha):
        """The best of some kernels, with alphas around this one."""
        points = []
        for kernel in kernels:
            limits = default_limits(self.task.problem.replace(kernel=kernel))["alpha"]
            alphas = np.unique(np.clip(alpha * NEAR_ALPHAS, *limits))
            points += yield from self._whole_grid(selection, kernel, {"alpha": alphas.tolist()})
        return _least(points)

    def _metric_step(self, point, selection):
        """The best on few rows with the scales from the slopes of a point's models on the rows of a selection."""
        alpha, kernel = float(point.alphas[0]), point.kernel
        width = kernel.get_params()["gamma" if self.scales is None else "kernel__gamma"]
        self.scales = self._scales_of_slopes(selection, alpha, kernel)
        kernels = [Scaled(Laplacian(float(factor * width)), self.scales) for factor in NEAR_WIDTHS]
        return (yield from self._best_near(self.parts[0], kernels, alpha))

    def _scales_of_slopes(self, selection, alpha, kernel):
        """Roots of the mean squared slopes by the features, of mean square 1."""
        problem = self.task.problem.replace(kernel=kernel, alpha=alpha)
        n, d = len(selection.rows), problem.X.shape[1]
        n_rows = int(np.clip(DIFFERENCES / (n * d), FEWEST_SLOPES, SLOPES))
        with self._threads(selection):
            solution = Solution.fit(problem, selection.rows, selection.T)
            squares = mean_squared_slopes(solution, selection.folds, n_rows, check_random_state(self.spec.random_state))
        if not squares.any():
            return np.ones(d)
        scales = np.sqrt(squares / squares.mean())
        return np.where(scales < LEAST_SCALE, 0.0, scales)

    def _best_share(self, gaussian, laplacian):
        """The best weights of both kernels on few rows."""
        points = []
        for share in SHARES:
            kernel = Sum((gaussian.kernel, laplacian.kernel), (share, 1.0 - share))
            alpha = float(gaussian.alphas[0] ** share * laplacian.alphas[0] ** (1 - share))
            points.append((yield from self._best_near(self.parts[0], [kernel], alpha)))
        return _least(points)
