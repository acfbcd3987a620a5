"""What confounds explain of a training part by themselves, which scores leave out of its fits.

The unpenalised columns are Q = [1, C], with the confounds C last. With mean and B those of the training part, and its
weights,

    explained of a row, confounds c     (c - mean)' B,    B the regression of Y on 1 and C alone;   0 for mean without 1
    scores                              fits of kernel and Q together, minus this

By Frisch, Waugh & Lovell such a fit gives the confounds the coefficients B - Gamma beta, where Gamma regresses the
features on 1 and C. Scores are therefore those of features from which the confounds were regressed, with coefficients
of the training part: cross-validated confound regression (Snoek, Miletic & Scholte 2019). A constant added to a
confound changes nothing.

What is explained of a row is q' D. With Q = Qo R of all rows, a training part without te has the Gram matrix
I - Qo_te' Qo_te and the sums Qo' Y - Qo_te' Y_te. Once the intercept is eliminated from them, g are the sums of the
confounds, theta is their Gram matrix^-1 g, and g' theta is what they explain of Y' Y; D follows from theta. No kernel,
penalty or P is seen: D is the same for all of them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from foldless._engine.linalg import concat, eye, orthonormal, solve


class Explained(NamedTuple):
    """What confounds explain: g and theta (..., n_confounds, m), and the coefficients D (..., q, m) of that."""

    g: np.ndarray
    theta: np.ndarray
    D: np.ndarray


@dataclass(frozen=True)
class ConfoundSums:
    """Sums of the unpenalised columns with whitened targets Y (n, m) of ``rows``, from which sets are left out."""

    problem: Any
    rows: np.ndarray
    Y: np.ndarray

    @cached_property
    def _factors(self):
        Qo, R = orthonormal(self.problem.whitened_columns(self.rows))
        return Qo, R, Qo.T @ self.Y

    def of_all_rows(self):
        """:class:`Explained` of all rows."""
        return self.without(np.empty(0, int))

    def without(self, members):
        """The same of the training part without each set of positions (..., t)."""
        Qo, R, sums = self._factors
        transpose = self.problem.xp.matrix_transpose
        left = transpose(Qo[members])
        gram, sums = eye(Qo, len(R)) - left @ Qo[members], sums - left @ self.Y[members]
        one = slice(self.problem.n_shown)  # the intercept, if there is one
        confounds = slice(self.problem.n_shown, None)
        means = solve(gram[..., one, one], gram[..., one, confounds])  # of the confounds
        centred = transpose(means)
        g = sums[..., confounds, :] - centred @ sums[..., one, :]
        theta = solve(gram[..., confounds, confounds] - centred @ gram[..., one, confounds], g)
        return Explained(g, theta, solve(R, concat([-means @ theta, theta], -2)))
