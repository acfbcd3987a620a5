"""Permutation test of a whole grid search: every labeling chooses its own setting in every outer training part.

The algebra of ``tuning.grid`` with labelings as columns. For each candidate one P; its Schur complements give
the inner held-out residuals of all labelings in all outer training parts (2 n^2 flops a column and candidate, once more
for the parts), hence all criteria. Then, for the candidates that were chosen at all, the outer decisions of the
labelings that chose them: together about one more product P Y for each split. No model is refitted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from foldless.permutation.labelings import Fitted, Labelings, Solver, labelings_that_fit
from foldless.permutation.strategies import Scores
from foldless.readout.codings import against_all
from foldless.tuning.criteria import balanced_halves
from foldless.tuning.grid import choose_candidates
from foldless.tuning.selection import heldout_fits


@dataclass(frozen=True)
class BatchedGrid:
    """Scores and choices of a grid search for any labelings; splits, outer and inner, are those of the true labels."""

    route: Any
    n_together: int  # labelings that share the making of every candidate's P
    tried: list  # kernel settings
    listed: list  # candidates
    judges: list  # one a setting: scores of decisions (b, k, t)
    selections: list  # [setting][outer split]
    weight: str | None  # of the rows in the criterion
    memory_limit: int

    def scores(self, orders, splits):
        """Scores of the labelings and the numbers of the candidates that they chose."""
        places = self._choices(orders, splits.pairs)
        return Scores(self._outer_scores(orders, splits.pairs, places), places.T)

    def _choices(self, orders, splits):
        """Numbers (n_splits, b) of the chosen candidates."""
        losses = np.empty((len(splits), len(self.listed), len(orders)))
        for setting, selections in zip(self.tried, self.selections, strict=True):
            labelings = Labelings.of(setting.task, orders)
            path = setting.task.problem.path(setting.task.problem.active)
            for alpha, place in zip(setting.alphas, setting.places, strict=True):
                solver = Solver(setting.problem(alpha), precision=path.with_alpha(alpha))
                for block in self._blocks(setting, len(orders)):
                    fitted = Fitted(solver, labelings.select(block))
                    for s, (selection, (train, _)) in enumerate(zip(selections, splits, strict=True)):
                        losses[s, place, block] = self._losses(fitted, selection, train)
        return np.array([[choose_candidates(each[:, None], self.tried)[0] for each in split.T] for split in losses])

    def _blocks(self, setting, n_labelings):
        return gen_batches(n_labelings, labelings_that_fit(setting.task, self.memory_limit))

    def _losses(self, fitted, selection, train):
        """Criterion (b,) of the inner held-out fits of one outer training part, all columns of a labeling added up."""
        fits = heldout_fits(selection.inner_model(fitted.part(train)), selection.folds)
        F, T = _targets(fitted.labelings, fits, selection.rows[selection.where])
        b, m, N = F.shape
        F, T = F.reshape(-1, N), T.reshape(-1, N)
        W = np.broadcast_to(selection.W[:, 0].astype(F.dtype), F.shape)
        W = balanced_halves(T, W) if self.weight == "balanced" else W
        return selection.criterion(F.T, T.T, W.T)[0].reshape(b, m).sum(1)

    def _outer_scores(self, orders, splits, places):
        """Mean outer scores (b,) of the chosen candidates."""
        scores = np.empty((len(orders), len(splits)))
        for setting, judge in zip(self.tried, self.judges, strict=True):
            labelings = Labelings.of(setting.task, orders)
            for alpha, place in zip(setting.alphas, setting.places, strict=True):
                members = np.flatnonzero((places == place).any(0))
                if not len(members):
                    continue
                solver = Solver(setting.problem(alpha))
                for block in self._blocks(setting, len(members)):
                    those = members[block]
                    fitted = Fitted(solver, labelings.select(those))
                    for s, (train, test) in enumerate(splits):
                        mine = np.flatnonzero(places[s, those] == place)
                        if len(mine):
                            one = fitted.select(mine)
                            D = one.decisions(one.part(train), test)
                            scores[those[mine], s] = judge(D, one.labelings.truth[..., test])
        return scores.mean(1)


def _targets(labelings, fits, rows):
    """Fits and targets of the criterion, (b, m, N): +-1 one against all, or the values of a regression."""
    if labelings.task.codes is None:
        return labelings.split(fits), labelings.truth[:, :, rows]
    F, codes = against_all(labelings.classes(fits), axis=1), labelings.truth[:, rows]
    classes = np.arange(labelings.task.n_classes)[1:] if F.shape[1] == 1 else np.arange(labelings.task.n_classes)
    return F, np.where(codes[:, None] == classes[:, None], 1.0, -1.0).astype(F.dtype)
