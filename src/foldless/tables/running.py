"""A run on a table, from the file to the :class:`Study` and the model: each phase is one function of another file."""

import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

from foldless import __version__
from foldless.tables import few
from foldless.tables.code import repeating
from foldless.tables.estimating import left_out, nested, tune, without_groups
from foldless.tables.guessing import Guessed, Wishes, guess
from foldless.tables.leakage import in_order, look_at_scores, look_for_leaks
from foldless.tables.looking import closer_look, surprising
from foldless.tables.parts import Chosen, Data, HeldOutRows, Trial
from foldless.tables.preparing import approximated, in_words
from foldless.tables.reading import Table
from foldless.tables.rows import Rows, rows_of
from foldless.tables.scores import BELOW
from foldless.tables.searching import Options, chosen
from foldless.tables.settings import LEARNT, feature_scales, kernel_name, setting, setting_of
from foldless.tables.study import Study
from foldless.tables.testing import permutation_test

PHASES = {"study": 7, "tuned": 2, "tested": 2}  # that a method of a run tells, the guess among them
FOREIGN = tuple(
    Path(str(each.__file__)).parent for each in (np, pd, scipy, sklearn)
)  # users can not act on their warnings
MOST_ROWS = 200_000  # above which a sample of the rows is taken


def prepare(table: Table, wishes: Wishes, seed: int = 0) -> Rows:
    """The rows of a table as a model sees them, all columns guessed; of very many rows a sample.

    Parameters
    ----------
    table : Table, from :func:`read_table`
    wishes : Wishes, the target and what is said of other columns
    seed : int, default=0; draws the sample
    """
    return _sampled(rows_of(table, guess(table, wishes), wishes), seed)


def _sampled(rows, seed):
    """At most ``MOST_ROWS`` rows: classes in their shares, whole groups."""
    if len(rows) <= MOST_ROWS:
        return rows
    named: dict[str, Any] = {"n_splits": 1, "train_size": MOST_ROWS / len(rows), "random_state": seed}
    if rows.groups is not None:
        draw = GroupShuffleSplit(test_size=None, **named).split(rows.y, rows.y, rows.groups)
    else:
        draw = (StratifiedShuffleSplit if rows.classifies else ShuffleSplit)(**named).split(rows.y, rows.y)
    kept = np.sort(next(draw)[0])
    note = f"Approximation: of {len(rows):,} rows {len(kept):,} were drawn at random; the others are not learnt from."
    return rows.take(kept, note)


@dataclass
class Run:
    """A table on its way to a study.

    Attributes
    ----------
    table : Table
    wishes : Wishes
    options : Options
    tell : function that is called with the name of every phase as it begins
    timings : {phase: seconds} so far
    said : warnings of the library so far
    guessed : Guessed, the kinds of the columns
    rows : Rows
    """

    table: Table
    wishes: Wishes
    options: Options = field(default_factory=Options)
    tell: Callable[[str], Any] = lambda phase: None
    timings: dict[str, float] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    guessed: Guessed = field(init=False)
    rows: Rows = field(init=False)

    def __post_init__(self):
        with self.phase("guessing types"):
            self.guessed = guess(self.table, self.wishes)
            self.rows = _sampled(rows_of(self.table, self.guessed, self.wishes), self.options.seed)

    @contextmanager
    def phase(self, name):
        """Tell a phase, and take its time."""
        self.tell(name)
        start = time.monotonic()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("default")
            warnings.filterwarnings("ignore", ".* (is|are) expected to take about")  # advice to who writes Python
            yield
        self.said += [_in_words(name, str(each.message)) for each in said if _ours(each)]
        self.timings[name] = self.timings.get(name, 0.0) + time.monotonic() - start

    def tuned(self):
        """(the chosen model as :class:`Chosen`, the pipeline fitted on all rows)."""
        rows, options = self.rows, self.options
        with self.phase("tuning"):
            if rows.few:
                model = few.default_model(rows, options)
                return _described(rows, options, model, None), model
            search = tune(rows, options)
        return _described(rows, options, search.best_estimator_, search), search.best_estimator_

    def without_groups(self, model):
        """Decisions or values of all rows by the setting of a model, each without its group; None without groups."""
        if self.rows.groups is None:
            return None
        with self.phase("leaving out groups"):
            if self.rows.few:
                return few.each_left_out(self.rows, self.options, model).held_out.decision
            return without_groups(self.rows, model)

    def tested(self):
        """The permutation test, or None."""
        with self.phase("permutation test"):
            try:
                return permutation_test(self.rows, self.options, self.options.share("test"))
            except ValueError as error:  # too few rows of a class or a group; all else that was found stays
                self.said.append(f"permutation test: not made. {' '.join(str(error).split())}")
                return None

    def study(self):
        """(the :class:`Study`, the pipeline fitted on all rows)."""
        rows, options = self.rows, self.options
        with self.phase("looking for leaks"):
            leaks = look_for_leaks(rows, self.guessed.columns)
        described, model = self.tuned()
        with self.phase("nested cross-validation"):
            outer = few.each_left_out(rows, options, model) if rows.few else nested(rows, options)
        alone = self._alone(outer, model)
        test = self.tested()
        with self.phase("a closer look"):
            look = ((), (), "") if rows.few else closer_look(rows, outer, options)
        scores = outer.held_out.scores
        study = Study(
            version=__version__,
            created=datetime.now().astimezone().isoformat(timespec="seconds"),
            task=rows.schema.task,
            target=rows.schema.target.name,
            classes=rows.schema.classes,
            data=self.data(),
            findings=in_order([*leaks, *look_at_scores(scores, outer.baseline, test)]),
            model=described,
            nested=scores,
            leave_one_out=alone.scores,
            baseline=outer.baseline,
            folds=outer.folds,
            test=test,
            held_out=_held_out(rows, outer, alone),
            importance=look[0],
            learning_curve=look[1],
            importance_how=look[2],
            surprising=surprising(rows, self.table, alone),
            notes=self.notes(test, described),
            timings=self.timings,
            code=repeating(self.table, self.wishes, options, rows, len(outer.splits), test),
        )
        return study, model

    def _alone(self, outer, model):
        """The rows held out one by one (by their groups), as :class:`HeldOutBy`."""
        name = _what_is_left_out(self.rows)
        with self.phase(name):
            found = outer.held_out if self.rows.few else left_out(self.rows, self.options, model)
        low = [each for each in found.scores if BELOW in each.how]
        self.said += [f"The {name} {each.name}, {each.value:.3f}, is {BELOW}." for each in low]
        return found

    def notes(self, test=None, model=None):
        """Sentences on what was done; model: the :class:`Chosen` one, where there is one."""
        rows, said = self.rows, list(self.rows.notes)
        if approximated(rows, self.options.kernel) if model is None else model.landmarks:
            count = "" if model is None else f"{model.landmarks} "
            said.insert(0, f"Approximation: of so many rows ({len(rows):,}) the kernel is that of {count}landmarks")
            said[0] += " (Nyström); held-out numbers are exact for this model."
        if rows.few:
            said.append("So few rows, or rows of a class, allow no tuning: the default setting is taken, and each row")
            said[-1] += f" is predicted by a fit without {'it' if rows.groups is None else 'its group'}."
            said[-1] += " There is no permutation test."
        else:
            learns = model is not None and model.kernel == LEARNT
            anew = ", and learns the kernel anew from its training rows" * learns
            said.append(f"The search repeats itself in every outer fold{anew}.")
            said += _learnt(rows, test)
        if rows.groups is not None:
            said.append(_together(rows, test))
        if rows.weights is not None:
            said.append("Weights count in fits; scores, intervals and the test count every row once.")
        if rows.confounds is not None:
            said.append("Confounds are regressed out in every training part.")
        if test is not None:
            said.append(f"Permutation test: {test.how}.")
        return tuple(dict.fromkeys([*said, *self.said]))

    def data(self):
        """The :class:`Data` of the table."""
        rows, table = self.rows, self.table
        missing = 0 if sp.issparse(rows.X) else int(rows.X.isna().sum().sum())
        names, counts = np.unique(rows.y, return_counts=True) if rows.classifies else ((), ())
        count = dict(zip(names, map(int, counts), strict=True))
        n_sparse = 0 if table.sparse is None else table.sparse.shape[1]
        return Data(
            source=table.source,
            format=table.format,
            n_rows=len(table.frame),
            n_columns=table.frame.shape[1] + n_sparse,
            n_used=len(rows),
            n_without_target=rows.n_without_target,
            n_features=n_sparse or sum(len(each.columns) for each in rows.schema.features),
            n_missing=missing,
            sparse=bool(n_sparse),
            columns=self.guessed.columns,
            class_counts={each: count[each] for each in rows.schema.classes},
            group_count=0 if rows.groups is None else len(np.unique(rows.groups)),
        )


def _what_is_left_out(rows):
    """What is left out for the scores of the chosen setting."""
    return "leave-one-out" if rows.groups is None else "leave-one-group-out"


def _learnt(rows, test):
    """Which rows teach the steps before the model, in a sentence."""
    if not rows.schema.n_sparse:
        once = f"the search and {_what_is_left_out(rows)} scores"
        once = once if test is None else f"the search, {_what_is_left_out(rows)} scores and the permutation test"
        yield (
            "What columns teach (fillings of gaps, scales, levels) is learnt from the training rows of every fold for"
            f" nested scores; {once} learn it once from all of their rows, labels unseen."
        )


def _together(rows, test):
    """Where rows of a group are held out together, in a sentence."""
    places = ["all scores", *(() if rows.few else ("the search",)), *(() if test is None else ("the test",))]
    if rows.few and rows.classifies:  # such a model has no probabilities
        return "Rows of a group are held out together."
    numbers = "probabilities" if rows.classifies else "intervals"
    first = f"Rows of a group are held out together in {', in '.join(places)} and in the calibration of the model"
    return f"{first}, whose {numbers} are those of new groups."


def _ours(warning):
    """Whether a warning is foldless' own, not one of the libraries below on numbers that are dealt with."""
    foreign = any(Path(warning.filename).is_relative_to(each) for each in FOREIGN)
    return not (foreign or issubclass(warning.category, UndefinedMetricWarning))


def _in_words(phase, warning):
    """A warning of the library, without advice to who writes Python."""
    if "stopped by" in warning:
        return "The time was up before all settings were looked at; the best until then were taken."
    if "lies on the edge of" in warning:
        warning = "the best setting lies on the edge of those that were looked at; one beyond may be a little better."
    return f"{phase}: {' '.join(warning.split())}"


def _held_out(rows, outer, alone):
    fold = np.full(len(rows), -1)
    for number, (_, test) in enumerate(outer.splits):
        fold[test] = number
    return HeldOutRows(
        rows=rows.numbers + 1,
        truth=rows.y,
        fold=fold,
        nested_prediction=outer.held_out.prediction,
        nested_decision=outer.held_out.decision,
        loo_prediction=alone.prediction,
        loo_decision=alone.decision,
        loo_probability=alone.probability,
        influence=alone.influence,
        groups=rows.groups,
    )


def _described(rows, options, model, search):
    """The :class:`Chosen` model."""
    last = model[-1]
    found = Chosen(
        name=type(last).__name__,
        kernel=kernel_name(last),
        params=setting_of(last),
        criterion_name="press",
        criterion=np.nan,
        trials=(),
        steps=in_words(rows.schema, len(rows), options.impute),
        landmarks=last.kernel_.n_landmarks if last.kernel_.approximates else 0,
        scales=feature_scales(model),
    )
    if search is None:
        return replace(found, criterion_name="none")
    trials = [
        Trial(
            params=setting(chosen({name: value for name, value in each.items() if "__" in name})),
            criterion=float(each["criterion"]),
            n_rows=int(each["n_rows"]),
        )
        for each in search.history_
    ]
    return replace(found, criterion=float(search.best_criterion_), trials=tuple(trials), stopped=search.stopped_ or "")
