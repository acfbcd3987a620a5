"""Evidence that a model which has learnt and forgotten equals the one fitted from scratch on the rows it has now.

    residual          max_i |y_i - m_i' A - q_i' B| / max |y|        the equations of every row, kernel evaluated anew
    difference        max |beta - beta_new| / size of beta           coefficients and offsets of a new factorisation
    loo_difference    max |F - F_new| / size of y                    leave-one-out fits of both

The size is the largest value of the new fit, or what such values are for targets of this size where they vanish (one
class is left, y is constant, X tells nothing): then only rounding is there to compare. With |y| of the targets,

    F, offsets, cuts    |y|                        class matrices           the largest mass
    A                   |y| / |S + alpha I|        confounds' coefficients  |y| / |c|
    beta                A times |W|^1/2            weights of features      beta times |X|

The residual needs no second fit: it is small only if the model solves the equations of the rows it has, to which
forgotten rows contribute nothing. Fits are made from A and B alone, m_i' A = alpha A_i + phi_i' (Phi' A) by features:
weights that a model keeps beside A must agree with it. A new fit costs n^3/3 (and as much for its leave-one-out).
"""

from dataclasses import dataclass

import numpy as np

from foldless._engine.linalg import add_diagonal_, eigenvalues, outer_square
from foldless.results import Result, lanes


@dataclass(frozen=True)
class Certificate(Result):
    """What was found when a model was compared with a new fit on the same rows.

    Attributes
    ----------
    n_samples : int, rows of the model
    n_forgotten : int, rows forgotten since ``fit``
    residual : float, largest relative residual of the equations over all rows
    difference : float, largest difference of the coefficients to those of a new fit, by their size
    loo_difference : float, the same of the leave-one-out fits; nan where a row cannot be left out
    limit : float, max(1e-8, 1e3 eps cond(M)): differences that rounding explains (1e-3 in place of 1e-8 for float32)
    inherited : tuple of str, parameters that were resolved from data when the model was first fitted (gamma="scale",
        standardize=True) and may depend on rows forgotten since; give numbers, and scaled X, to have none

    ``to_frame()`` has one row.
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
        names = ", ".join(self.inherited) if self.n_forgotten else ""
        same = f" with the same {names}" if names else ""
        lines = [
            f"A model of {self.n_samples} rows, {self.n_forgotten} forgotten, {verdict} a new fit on its rows{same}.",
            f"  largest residual of the equations       {self.residual:.1e} of the largest target",
            f"  largest difference of the coefficients  {self.difference:.1e} of their size",
            f"  of the leave-one-out fits               {self.loo_difference:.1e} of their size",
            f"  rounding explains up to                 {self.limit:.1e}",
        ]
        if names:
            lines.append(f"  resolved once, with forgotten rows: {names}; fit anew to leave no trace of them")
        return "\n".join(lines)

    def _columns(self):
        return {name: [value] for name, value in {"holds": self.holds, **vars(self)}.items()}

    def _picture(self):
        names = ("residual", "difference", "loo_difference")
        with np.errstate(divide="ignore"):  # no difference at all
            rows = [(name, np.log10(getattr(self, name)), None) for name in names]
        return lanes(rows, "log10 of what was found; line: what rounding explains", np.log10(self.limit))


def compare(solution, new, stored, stored_new, *, n_forgotten, inherited):
    """The certificate of a solution beside a new one on the same rows.

    ``stored`` are the arrays a model predicts with, by name, ``stored_new`` those it would have after the new fit.
    """
    problem, Y = solution.problem, solution.Y
    fits = solution.evaluated(solution.rows, from_A=True)
    if problem.n_confounds:
        fits += problem.Q[solution.rows] @ solution.confound_fit.D
    residual = np.abs(Y - problem.alpha * solution.A - solution.root * fits).max(initial=0.0)
    smallest, largest = eigenvalue_range(problem, solution.rows)
    try:
        fits_new = new.loo().fits[:, 0]
    except ValueError:  # one row, or one that alone determines an unpenalised column
        loo = float("nan")
    else:
        loo = _relative(solution.loo().fits[:, 0], fits_new, new.target_scale.max(initial=0.0))
    eps, sizes = np.finfo(Y.dtype).eps, _sizes(new, largest, stored_new)
    differences = [_relative(stored[name], stored_new[name], sizes.get(name, 0.0)) for name in stored_new]
    return Certificate(
        n_samples=problem.n,
        n_forgotten=n_forgotten,
        residual=float(residual / max(np.abs(Y).max(initial=0.0), np.finfo(Y.dtype).tiny)),
        difference=max(differences),
        loo_difference=loo,
        limit=max(1e-8 if eps < 1e-10 else 1e-3, 1e3 * eps * largest / smallest),
        inherited=inherited,
    )


def eigenvalue_range(problem, rows):
    """Smallest and largest size of the eigenvalues of S + alpha I, by Phi' Phi where features are fewer than rows."""
    if problem.through_features(len(rows)):
        sizes = np.abs(eigenvalues(outer_square(problem.whitened_features(rows).T)))
        return problem.alpha, float(sizes.max()) + problem.alpha
    S = add_diagonal_(problem.whitened_gram(rows), problem.alpha)
    sizes = np.abs(eigenvalues(S))
    return max(float(sizes.min()), float(np.finfo(sizes.dtype).tiny)), float(sizes.max())


def _sizes(new, largest, stored):
    """What the stored arrays are in size for targets of this size, even where they vanish; by name.

    ``largest`` is the norm of S + alpha I.
    """
    problem, size = new.problem, float(new.target_scale.max(initial=0.0))
    A = float(np.abs(new.Y).max(initial=0.0)) / largest
    dual = A * float(new.root.max())
    sizes = {"offset": size, "cut": size, "dual": dual}
    if "weights" in stored:
        sizes["weights"] = dual * np.sqrt(problem.n * problem.mean_diagonal)
    if problem.n_confounds:
        C = np.abs(problem.Q[new.rows, problem.n_shown :]).max(0)
        sizes["confounds"] = (size / np.maximum(C, np.finfo(C.dtype).tiny))[:, None]
    return sizes | {name: np.abs(stored["N"]).max() for name in "NUC" if name in stored}


def _relative(a, b, least):
    """Largest difference relative to the largest value, or to ``least``; infinite where there are none to compare.

    ``least`` is a number, or one for each row of the arrays.
    """
    if a.shape != b.shape or not np.isfinite(a).all():
        return float("inf")
    size = np.maximum(np.abs(b).max(initial=0.0), least)
    return float((np.abs(a - b) / np.where(size > 0, size, 1.0)).max(initial=0.0))
