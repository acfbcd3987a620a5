"""Evidence that a model which has learnt and forgotten equals the one fitted from scratch on the rows it has now.

    residual          max_i |y_i - m_i' A - q_i' B| / max |y|        the equations of every row, kernel evaluated anew
    difference        max |beta - beta_new| / max |beta_new|         coefficients and offsets of a new factorisation
    loo_difference    max |E - E_new| / max |E_new|                  leave-one-out residuals of both

The residual needs no second fit: it is small only if the model solves the equations of the rows it has, to which
forgotten rows contribute nothing. A new fit costs n^3/3 (and as much for its leave-one-out).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Certificate:
    """What was found when a model was compared with a new fit on the same rows.

    Attributes
    ----------
    n_samples : int, rows of the model
    n_forgotten : int, rows forgotten since ``fit``
    residual : float, largest relative residual of the equations over all rows
    difference : float, largest relative difference of the coefficients to those of a new fit
    loo_difference : float, the same of the leave-one-out residuals; nan where a row cannot be left out
    limit : float, max(1e-8, 100 eps cond(M)): differences that rounding explains (1e-3 in place of 1e-8 for float32)
    inherited : tuple of str, parameters that were resolved from data when the model was first fitted (gamma="scale")
        and may depend on rows forgotten since; give numbers to have none
    """

    n_samples: int
    n_forgotten: int
    residual: float
    difference: float
    loo_difference: float
    limit: float
    inherited: tuple

    @property
    def holds(self):
        """Whether model and new fit agree up to rounding."""
        loo = self.loo_difference <= self.limit or np.isnan(self.loo_difference)
        return bool(self.residual <= self.limit and self.difference <= self.limit and loo)

    def __str__(self):
        verdict = "equals" if self.holds else "DIFFERS from"
        lines = [
            f"A model of {self.n_samples} rows, {self.n_forgotten} forgotten, {verdict} a new fit on its rows.",
            f"  largest residual of the equations       {self.residual:.1e} of the largest target",
            f"  largest difference of the coefficients  {self.difference:.1e} of the largest one",
            f"  of the leave-one-out residuals          {self.loo_difference:.1e} of the largest one",
            f"  rounding explains up to                 {self.limit:.1e}",
        ]
        if self.inherited and self.n_forgotten:
            names = ", ".join(self.inherited)
            lines.append(f"  resolved once, with forgotten rows: {names}; give numbers to leave no trace of them")
        return "\n".join(lines)


def compare(whole, new, stored, stored_new, *, n_forgotten, inherited):
    """The certificate of a solution beside a new one on the same rows.

    ``stored`` are the arrays a model predicts with, by name, ``stored_new`` those it would have after the new fit.
    """
    problem, Y = whole.problem, whole.Y
    basis, beta = whole.expansion()
    fits = problem.gram(whole.rows, basis) @ beta + problem.Q[whole.rows] @ whole.B
    residual = np.abs(Y - problem.alpha * whole.A - whole.root * fits).max(initial=0.0)
    try:
        E_new = new.loo().E
    except ValueError:  # one row, or one that alone determines an unpenalised column
        loo = float("nan")
    else:
        loo = _relative(whole.loo().E, E_new)
    eps, size = np.finfo(Y.dtype).eps, float(new.size.max(initial=0.0))
    least = {"offset": size, "cut": size}  # these may be zero for good reason
    differences = [_relative(stored[name], stored_new[name], least.get(name, 0.0)) for name in stored_new]
    return Certificate(
        n_samples=problem.n,
        n_forgotten=n_forgotten,
        residual=float(residual / max(np.abs(Y).max(initial=0.0), np.finfo(Y.dtype).tiny)),
        difference=max(differences),
        loo_difference=loo,
        limit=max(1e-8 if eps < 1e-10 else 1e-3, 100 * eps * problem.condition(whole.rows)),
        inherited=inherited,
    )


def _relative(a, b, least=0.0):
    """Largest difference relative to the largest value, or to ``least``; infinite where there are none to compare."""
    if a.shape != b.shape or not np.isfinite(a).all():
        return float("inf")
    size, difference = np.abs(b).max(initial=least), float(np.abs(a - b).max(initial=0.0))
    return difference / float(size) if size > 0 else difference
