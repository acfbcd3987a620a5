"""What cross-validation in chunks returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foldless.results import Result, by_name, lanes


@dataclass(frozen=True)
class ChunkedResult(Result):
    """A fitted estimator and its exact held-out scores.

    Attributes
    ----------
    estimator : the estimator with the chosen parameters, fitted on all rows, of which it keeps none
    best_params : dict of the chosen parameters, alpha among them
    test_score : ndarray of shape (k,) or None; accuracy or R2 of each fold by the model without it
    loo_score : float or None; the same of leave-one-out, of all rows together
    alphas : ndarray of shape (n_alphas,)
    candidates : tuple of dicts, the other parameters that were chosen from
    kfold_press, loo_press : ndarrays of shape (n_candidates, n_alphas) or None
        Mean squared held-out errors of the targets (+-1 for labels, summed over classes), rows counted by their
        weights; class weights count as well, unless candidates differ in them. That of leave-one-out is there where it
        decided.
    fold_sizes : ndarray of shape (k,), rows of each fold
    n_rows, n_components : int; number of rows, and of explicit features of the kernel
    n_scored : int or None
        Rows of the sample, whose leave-one-out scores gave probabilities and the cut of threshold="loo"; None without.
    seconds : dict, of each pass over the data
    predictions : dict of dask arrays or None; columns of held-out predictions by name, for predictions="dask"
    workers_gone : int or None; workers of a cluster that were lost, or taken away, during the run

    ``to_frame()`` has one row for each setting: its parameters and mean squared held-out errors.
    """

    estimator: Any
    best_params: dict[str, Any]
    test_score: np.ndarray | None
    loo_score: float | None
    alphas: np.ndarray
    candidates: tuple[dict, ...]
    kfold_press: np.ndarray | None
    loo_press: np.ndarray | None
    fold_sizes: np.ndarray
    n_rows: int
    n_components: int
    n_scored: int | None
    seconds: dict[str, float]
    predictions: dict[str, Any] | None = None
    workers_gone: int | None = None

    def __str__(self):
        name = "accuracy" if hasattr(self.estimator, "classes_") else "R2"
        lines = [f"{type(self.estimator).__name__} of {self.n_components} features, {self.n_rows} rows in chunks"]
        count = len(self.alphas) * len(self.candidates)
        chosen = ", ".join(
            f"{name}={value:g}" if name == "alpha" else f"{name}={value!r}" for name, value in self.best_params.items()
        )
        lines.append(f"{'parameters':14} {chosen}" + f", best of {count}" * (count > 1))
        if self.test_score is not None:
            mean, spread = self.test_score.mean(), self.test_score.std()
            lines.append(f"{name:14} {mean:.4f} +- {spread:.4f} over {len(self.test_score)} folds")
        if self.loo_score is not None:
            lines.append(f"{name:14} {self.loo_score:.4f} leave-one-out")
        if self.n_scored is not None:
            lines.append(f"{'rule':14} from leave-one-out scores of {self.n_scored} rows")
        spent = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in self.seconds.items())
        return "\n".join([*lines, f"{'passes':14} {spent}"])

    def _columns(self):
        settings = [{**each, "alpha": alpha} for each in self.candidates for alpha in self.alphas]
        press = {"kfold_press": self.kfold_press, "loo_press": self.loo_press}
        return by_name(settings) | {name: np.ravel(each) for name, each in press.items() if each is not None}

    def _picture(self):
        rows = {"folds": self.test_score, "leave-one-out": self.loo_score}
        name = "accuracy" if hasattr(self.estimator, "classes_") else "R2"
        return lanes([(what, each, None) for what, each in rows.items() if each is not None], f"held-out {name}")
