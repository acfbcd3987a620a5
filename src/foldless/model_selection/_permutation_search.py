"""Permutation test of a whole grid search: every labeling chooses its own setting in every outer training part.

The nested algebra of ``_nested_grid`` with labelings as columns. For each candidate one P; its Schur complements give
the inner held-out residuals of all labelings in all outer training parts (2 n^2 flops a column and candidate, once more
for the parts), hence all criteria. Then, for the candidates that were chosen at all, the outer decisions of the
labelings that chose them: together about one more product P Y for each split. No model is refitted.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches

from foldless.bridge.candidates import candidates, settings
from foldless.heldout.solution import Part, Solution
from foldless.model_selection._grid import choose
from foldless.model_selection._labelings import chunk
from foldless.model_selection._outer import Outer
from foldless.permutation.labelings import Fitted, Labelings, Solver
from foldless.precision.base import Explicit
from foldless.readout.codings import against_all
from foldless.tuning import criteria
from foldless.tuning.selection import Selection, heldout_fits

TOGETHER = 256  # labelings that share the making of every candidate's P


@dataclass
class BatchedGrid:
    """Scores and choices of a grid search for any labelings; splits, outer and inner, are those of the true labels."""

    tried: list  # kernel settings
    listed: list  # candidates
    judges: list  # one a setting
    selections: list  # [setting][outer split]
    criterion: criteria.Criterion
    weight: str | None
    memory_limit: int

    @classmethod
    def of(cls, wanted, search, criterion, given):
        """The grid of ``search``, or None where a score or a criterion takes more than decisions of columns."""
        outer = wanted.splits
        data = Outer(search, given.X, given.y, wanted.groups, given.sample_weight, False)
        data.checked(outer)
        triple = (given.X, given.y, given.sample_weight)
        listed = candidates(search.estimator, search.param_grid, *triple)
        tried = settings(search.estimator, listed, *triple)
        judges = [wanted.judge(each.task, each.classes, each.flat) for each in tried]
        if criterion.whole or any(judge is None for judge in judges):
            return None
        weight = search.criterion_weight
        inner = [data.inner_splits(train) for train, _ in outer]
        options = {"weight": None if weight == "balanced" else weight, "sample_weight": given.sample_weight}
        selections = [
            [
                Selection.of(setting.task, criterion, splits=splits, train=train, **options)
                for (train, _), splits in zip(outer, inner, strict=True)
            ]
            for setting in tried
        ]
        return cls(tried, listed, judges, selections, criterion, weight, wanted.memory_limit)

    def scores(self, orders, splits, resplit=False):
        """Mean scores and the places of the chosen candidates, (b, 1 + n_splits)."""
        assert not resplit
        losses = np.empty((len(splits), len(self.listed), len(orders)))
        for setting, selections in zip(self.tried, self.selections, strict=True):
            labelings = Labelings.of(setting.task, orders)
            path = setting.task.problem.path(setting.task.problem.active)
            for alpha, place in zip(setting.alphas, setting.places, strict=True):
                solver = Solver(setting.problem(alpha), precision=path.with_alpha(alpha))
                for block in gen_batches(len(orders), chunk(setting.task, self.memory_limit)):
                    fitted = Fitted(solver, labelings.select(block))
                    for s, (selection, (train, _)) in enumerate(zip(selections, splits, strict=True)):
                        losses[s, place, block] = self._losses(fitted, selection, train)
        # places[s, j]
        places = np.array([[choose(each[:, None], self.tried)[0] for each in split.T] for split in losses])
        return np.column_stack([self._outer(orders, splits, places), places.T])

    def _losses(self, fitted, selection, train):
        """Criterion (b,) of the inner held-out fits of one outer training part, all columns of a labeling added up."""
        model = fitted.part(train)
        if selection.folds is not None and isinstance(model, Part):
            shares = isinstance(model.whole.precision, Explicit) and not model.problem.drops_basis
            model = model.alone() if shares else Solution(model.problem, model.rows, model.Y / model.root)
        fits = heldout_fits(model, selection.folds)
        F, T = _targets(fitted.labelings, fits, selection.rows[selection.where])
        b, m, N = F.shape
        F, T = F.reshape(-1, N), T.reshape(-1, N)
        W = np.broadcast_to(selection.W[:, 0].astype(F.dtype), F.shape)
        W = criteria.balanced_halves(T, W) if self.weight == "balanced" else W
        return self.criterion(F.T, T.T, W.T)[0].reshape(b, m).sum(1)

    def _outer(self, orders, splits, places):
        """Mean outer scores (b,) of the chosen candidates."""
        scores = np.empty((len(orders), len(splits)))
        for number, setting in enumerate(self.tried):
            labelings = Labelings.of(setting.task, orders)
            for alpha, place in zip(setting.alphas, setting.places, strict=True):
                members = np.flatnonzero((places == place).any(0))
                if not len(members):
                    continue
                solver = Solver(setting.problem(alpha))
                for block in gen_batches(len(members), chunk(setting.task, self.memory_limit)):
                    fitted = Fitted(solver, labelings.select(members[block]))
                    for s, (train, test) in enumerate(splits):
                        mine = np.flatnonzero(places[s, members[block]] == place)
                        if len(mine):
                            one = fitted.select(mine)
                            model = one.part(train)
                            D = one.decisions(model, test)
                            scores[members[block][mine], s] = self.judges[number](D, one.labelings.truth[..., test])
        return np.ascontiguousarray(scores).mean(1)


def _targets(labelings, fits, rows):
    """Fits and targets of the criterion, (b, m, N): +-1 one against all, or the values of a regression."""
    if labelings.task.codes is None:
        return labelings.split(fits), labelings.truth[:, :, rows]
    F, codes = against_all(labelings.classes(fits), axis=1), labelings.truth[:, rows]
    classes = np.arange(labelings.task.n_classes)[1:] if F.shape[1] == 1 else np.arange(labelings.task.n_classes)
    return F, np.where(codes[:, None] == classes[:, None], 1.0, -1.0).astype(F.dtype)
