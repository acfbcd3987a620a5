"""Models of training parts by a given way, whichever would be cheaper."""

from foldless._engine.heldout import training_parts


class TrainingParts(training_parts.TrainingParts):
    """``strategy`` "part" or "solve" takes one way for all parts, None the cheaper one."""

    def __init__(self, problem, Y, *, strategy=None, **options):
        super().__init__(problem, Y, **options)
        self.strategy = strategy

    def leaves_out(self, k):
        return super().leaves_out(k) if self.strategy is None else self.strategy == "part"
