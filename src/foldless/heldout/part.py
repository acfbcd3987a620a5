"""The model without a held-out set, from the P of all rows.

For Y (n x m), A = P Y, B = G Y and a held-out set te with training part tr (Treder 2019, eq. 1 and 4; Cawley & Talbot
2003, appendix A, is the case of one row):

    residuals         E_te = P_te,te^-1 A_te            held-out fits  Y_te - E_te
    the model         A_tr - P_tr,te E_te               its offset     B - G_te E_te
    class matrices    N = Y_tr' Y_tr,  U = alpha ( Y_tr' A_tr - (A_te - P_te,te Y_te)' E_te ) = alpha Y_tr' A_(tr)

With confounds among the columns Q, fits leave their part q' B out, with B of the training part, and the class matrices
R and V (``heldout.moments``) are those of the training part as well.

All exact. A fold of t rows costs n t^2 + t^3/3.
"""

from functools import cached_property
from typing import Any

import numpy as np

from foldless.heldout.batch import Batch
from foldless.heldout.model import Model
from foldless.heldout.moments import EVERYTHING, finished, own_moments, part_moments
from foldless.heldout.sites import HeldOutSet
from foldless.linalg.numpy import product
from foldless.precision.base import SingularBlockError


class Part(Model):
    """The model without the positions ``removed`` of a full solution ``whole``, by P alone."""

    whole: Any
    held: HeldOutSet
    removed: np.ndarray
    E: np.ndarray

    def __init__(self, whole, removed):
        whole._check_rest(len(removed))
        held = HeldOutSet(whole.sites, removed)
        if whole.problem.more_columns:
            vars(self)["span"] = whole.problem.span(held.rows)
        try:
            E = held.block.residual(whole.site_A, whole.Y)
        except SingularBlockError:  # it counts sites
            raise SingularBlockError.of(removed, len(whole.rows)) from None
        self._set(whole, held, E)

    def _set(self, whole, held, E):
        super().__init__(
            problem=whole.problem,
            whole=whole,
            held=held,
            rows=held.rows,
            removed=held.removed,
            E=E,
            choice=f"{whole.choice}; {len(held.removed)} of them left out by its blocks",
        )
        return self

    def select_targets(self, columns):
        """The same model of some of the targets."""
        other = Part.__new__(Part)._set(self.whole.select_targets(columns), self.held, self.E[:, columns])
        if self.problem.more_columns:
            vars(other)["span"] = self.span
        return other

    def solve(self, rows, Y):
        """The solution on other rows of the problem with targets Y."""
        return self.whole.solve(rows, Y)

    def solve_anew(self):
        """The training part as a solution by a factorisation of its own."""
        return self.solve(self.rows, self.Y / self.root)

    def as_solution(self):
        """The training part as a solution of its own: parts of it can be left out in turn.

        From its own P; by a new factorisation where P is held through features, or J is held, which does not give P.
        """
        if self.whole.precision.through_features or self.problem.penalty.sites_per_row > 1:
            return self.solve_anew()
        return self.whole.solve(self.rows, self.Y / self.root, self.precision)

    # -- the model -------------------------------------------------------------------------------------------------

    @cached_property
    def Y(self):  # type: ignore[override]
        """Targets of the training rows."""
        return self.whole.Y[self.held.kept]

    @property
    def target_scale(self):
        """Size of the targets, one number a column."""
        return self.whole.target_scale

    @cached_property
    def _taken(self):
        """P_,te E_te at every site of the training part."""
        return self.held.spread(self.E)

    @cached_property
    def site_A(self):  # type: ignore[override]
        """Coefficients at every site of the training part: A - P_,te E_te."""
        return self.whole.site_A[self.held.kept_sites] - self._taken

    @property
    def _site_sizes(self):
        return np.abs(self.whole.site_A[self.held.kept_sites]) + np.abs(self._taken)

    @property
    def A(self):  # type: ignore[override]
        """Coefficients of the training rows."""
        return self.site_A[: len(self.rows)]

    @property
    def _beta(self):
        own = len(self.site_A) == len(self.rows)
        return super()._beta if own else self.site_A[len(self.rows) :]

    @cached_property
    def B(self):  # type: ignore[override]
        """Coefficients of the unpenalised columns."""
        return self.whole.B - product(self.whole.precision.G[:, self.held.sites], self.E)

    @cached_property
    def weights(self):  # type: ignore[override]
        """Weights of the explicit features where P is held through them, else None."""
        taken = self.whole.precision.feature_weights(self.held.sites)
        return None if taken is None else self.whole.weights - taken @ self.E

    @property
    def precision(self):
        """The P (or J) of the training part, as an array."""
        return self.held.precision

    def G(self, columns):
        """Rows of the G of the training part, for these unpenalised columns."""
        return self.held.G(columns)

    def _fits_elsewhere(self, rows):
        """Held-out rows from E; rows of weight 0, which are not part of P, from the coefficients."""
        place = np.full(self.problem.n, -1)
        place[self.whole.rows[self.removed]] = np.arange(len(self.removed))
        F = np.empty((len(rows), self.E.shape[1]), self.E.dtype)
        out = place[rows] >= 0
        mine = place[rows[out]]
        members = self.removed[mine]
        F[out] = (self.whole.Y[members] - self.E[mine]) / self.whole.root[members]
        self._leave_confounds_out(F, out, rows)
        if not out.all():
            F[~out] = super()._fits_elsewhere(rows[~out])
        return F

    # -- classes, and what is left out of it -----------------------------------------------------------------------

    @cached_property
    def own_moments(self):
        """N and U of all targets, as differences."""
        return part_moments(self)[0]

    def moments(self, targets=EVERYTHING):
        """Class matrices of the training part without forming its A, unless nearly all of a class is left out."""
        found, gone = part_moments(self, targets)
        if gone.all():
            return self._solved_moments(targets)
        found = finished(self, targets, found)
        return found.where(gone, self._solved_moments(targets)) if gone.any() else found

    def _solved_moments(self, targets):
        model = self.solve_anew()
        return finished(model, targets, own_moments(model, targets))

    def loo(self):
        """Leave-one-out within the training part: A and the diagonal (blocks) of its own P."""
        members = np.arange(len(self.rows))[:, None]
        self._check_sets(members)
        if not self.held.block.keeps_digits:
            return self.solve_anew().loo()
        return Batch.solve(self, members, self.site_A[self.own_sites(members)], self.held.inner_blocks(members))
