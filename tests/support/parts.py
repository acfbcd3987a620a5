"""Models of training parts by a given way, whichever would be cheaper."""

from dataclasses import dataclass, replace

from foldless._engine.heldout import training_parts
from foldless._engine.heldout.plan import ALONE, BLOCKS


@dataclass(frozen=True, eq=False)
class TrainingParts(training_parts.TrainingParts):
    """``strategy`` "part" or "solve" takes one way for all training parts, None the cheaper one."""

    strategy: str | None = None

    def _make_plan(self, counts, **options):
        plan = super()._make_plan(counts, **options)
        if self.strategy == "solve":
            return replace(plan, alone=frozenset(range(self.problem.n + 1)), batch_sizes={})
        if self.strategy == "part":
            return replace(plan, form=BLOCKS if plan.form == ALONE else plan.form, alone=frozenset())
        return plan
