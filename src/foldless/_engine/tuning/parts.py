"""A selection whose training parts see X in ways of their own, as behind steps that are fitted on each of them.

Nothing can be left out of one P then: every training part has a task, a decomposition and a path of alphas. The
held-out fits of all parts are judged together, as those of one task are.
"""

from dataclasses import dataclass, replace

import numpy as np

from foldless._engine.heldout.solution import Solution
from foldless._engine.tuning.selection import Selection


@dataclass(frozen=True)
class SelectionOfParts(Selection):
    """A criterion of the held-out fits of many tasks, one for each of ``folds``; rows left out have weight 0 there."""

    tasks: tuple = ()

    def path(self, problem, alphas):
        """:class:`Judged` of every alpha, by one decomposition of each training part (``problem`` is of none)."""
        return self.judged_by(self._outputs_at(alphas), alphas)

    def outputs(self, problem):
        """As that of one task, for the alpha of ``problem``."""
        return self._outputs_at([problem.alpha])[0]

    def _outputs_at(self, alphas):
        outputs = []
        for each in self._asked(self._outputs_of_part, alphas):
            columns = zip(*each, strict=True)
            outputs.append([None if some[0] is None else np.concatenate(some) for some in columns])
        return outputs

    def scores_at(self, alpha):
        """Held-out decisions of the tasks' own readouts, stacked, before any cut."""

        def scores(task, model, rows):
            own, readout = model(task.Y), task.readout
            moments = own.moments() if readout.needs_moments else None
            return task.problem.tie_equal_rows(rows, readout.scores(own.fits(rows), moments))

        return np.concatenate(self._asked(scores, [alpha])[0])

    def _asked(self, ask, alphas):
        """What is asked of the models of all training parts at the rows they leave out: a list for each alpha."""
        assert self.folds is not None
        found: list = [[] for _ in alphas]
        for task, fold in zip(self.tasks, self.folds, strict=True):
            problem, train = task.problem, task.problem.active
            path = problem.path(train, len(alphas))
            for place, alpha in enumerate(alphas):
                own, precision = problem.replace(alpha=alpha), path.with_alpha(alpha)

                def model(Y, own=own, precision=precision, train=train):
                    return Solution.fit(own, train, Y[train], precision)

                found[place].append(ask(task, model, self.rows[fold]))
        return found

    def _outputs_of_part(self, task, model, rows):
        """(residuals or fits of the criterion, decisions, probabilities) of one training part, None if not needed."""
        fits = decisions = probabilities = None
        if not self.criterion.whole:
            T = task.plus_minus_targets(np.arange(task.problem.n))
            fits = model(T).fits(rows)
            fits = fits if self.criterion.ranks else T[rows] - fits
        if self.criterion.whole or self.scoring is not None:
            wanted, tie = self.scoring is not None and self.scoring.probabilities, task.problem.tie_equal_rows
            own = model(task.Y)
            rule, values = task.rule(own, probabilities=wanted), own.fits(rows)
            decisions = tie(rows, rule.decision(values))
            probabilities = tie(rows, rule.proba(values)) if wanted else None
        return fits, decisions, probabilities


def selection_of_parts(spec, tasks, splits, rows):
    """The selection of tasks, one for each of the (train, test) pairs ``splits``; None: for each row left out alone.

    ``rows`` are those of positive weight.
    """
    whole = spec.selection(tasks[0], splits, rows=rows)
    if splits is None:
        whole = replace(whole, folds=list(np.arange(len(rows))[:, None]))
        own = [tasks[row] for row in rows]
    else:  # those that leave out some of the rows, and have a fold
        each = zip(tasks, splits, strict=True)
        own = [task for task, (train, _) in each if 0 < np.isin(rows, train).sum() < len(rows)]
    return SelectionOfParts(**vars(whole), tasks=tuple(own))
