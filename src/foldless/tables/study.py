"""All numbers of one run on a table: what was read, guessed, chosen, estimated and tested. Reports are made from it.

A :class:`Study` is plain data: numbers, texts and arrays, and ``to_json`` writes all of it.
"""

import json
from dataclasses import dataclass

from foldless.results import Result, lanes, short
from foldless.tables.parts import (
    Chosen,
    Data,
    Finding,
    Fold,
    HeldOutRows,
    Importance,
    LearningPoint,
    PermutationTest,
    Score,
    SurprisingRow,
)
from foldless.tables.plain import built, plain


@dataclass(frozen=True)
class Study(Result):
    """All numbers of one run; ``to_frame()`` has the scores, and notebooks show them with a picture.

    Attributes
    ----------
    version : str, of foldless
    created : str, date and time of the run
    task : str, "classification" or "regression"
    target : str, name of the column
    classes : names of the classes in the order of decisions and probabilities; () for regression
    data : Data
    findings : possible leaks and oddities, the gravest first
    model : Chosen
    nested : scores of the nested cross-validation, the honest ones; the first is the score of the run
    leave_one_out : the same scores of the chosen setting, which was chosen on the same rows
    baseline : the same scores of always saying the most frequent class (the mean), held out as in ``nested``
    folds : the outer splits
    test : PermutationTest, or None where none was asked for
    held_out : HeldOutRows
    importance : columns, the most important first; () where it was not computed
    importance_how : str, one sentence on how
    learning_curve : from few rows to many; () where it was not computed
    surprising : rows, the most surprising first, at most 20
    notes : sentences on what was done to the data and how numbers were computed, approximations first
    timings : {phase: seconds}
    code : str, Python that repeats the run
    """

    version: str
    created: str
    task: str
    target: str
    classes: tuple[str, ...]
    data: Data
    findings: tuple[Finding, ...]
    model: Chosen
    nested: tuple[Score, ...]
    leave_one_out: tuple[Score, ...]
    baseline: tuple[Score, ...]
    folds: tuple[Fold, ...]
    test: PermutationTest | None
    held_out: HeldOutRows
    importance: tuple[Importance, ...]
    importance_how: str
    learning_curve: tuple[LearningPoint, ...]
    surprising: tuple[SurprisingRow, ...]
    notes: tuple[str, ...]
    timings: dict[str, float]
    code: str

    def _columns(self):
        """A row for each score, by each of the ways to estimate it."""
        found = [(by, each) for by in ("nested", "leave_one_out", "baseline") for each in getattr(self, by)]
        values = {part: [getattr(each, part) for _, each in found] for part in ("value", "low", "high")}
        names, ways = [each.name for _, each in found], [by.replace("_", "-") for by, _ in found]
        return {"measure": names, "by": ways, **values}

    def _picture(self):
        table = self._columns()
        first = [at for at, name in enumerate(table["measure"]) if name == self.nested[0].name]
        rows = [(table["by"][at], [table["value"][at]], (table["low"][at], table["high"][at])) for at in first]
        return lanes(rows, self.nested[0].name)

    def _caption(self):
        score = self.nested[0]
        return f"{self.target} in {self.data.source}, {self.data.n_used} rows: {score.name} {short(score.value)}"

    def to_json(self, indent: int | None = None) -> str:
        """The study as JSON; numbers that are not finite become null."""
        return json.dumps(plain(self), indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Study":
        """The study that ``to_json`` has written."""
        return built(cls, json.loads(text))
