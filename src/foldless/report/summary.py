"""What the numbers come to, in sentences for readers who read nothing else."""

from dataclasses import dataclass

from foldless.report.words import (
    called,
    counted,
    group,
    has_interval,
    interval,
    new_rows,
    number,
    percent,
    positive,
    quoted,
    score_text,
    worth,
)

LEVEL = 0.05  # p-values above are no evidence that other columns tell the target
FEW_NAMES = 4  # classes that a sentence lists


@dataclass(frozen=True)
class Verdict:
    """The summary.

    Attributes
    ----------
    level : str, "good", "unsure" or "doubt"
    headline : str, one sentence
    sentences : what was predicted, how well, how sure, beside which baseline, and what the permutation test says
    cautions : what was approximated, and left out
    """

    level: str
    headline: str
    sentences: tuple[str, ...]
    cautions: tuple[str, ...]


def verdict(study):
    """The :class:`Verdict` on a study."""
    level, headline = _headline(study)
    cautions = tuple(each for each in study.notes if each.startswith("Approximation"))
    return Verdict(level, headline, tuple(_sentences(study)), cautions)


def _headline(study):
    score, what = study.nested[0], quoted(study.target)
    if any(each.severity == "high" for each in study.findings):
        return "doubt", "See the warnings first: this score may be too good."
    if not has_interval(score) or not study.folds:
        return "unsure", f"These are too few rows to tell how well {what} can be predicted."
    linked = study.test is None or study.test.p_value <= LEVEL
    if linked and _ahead(study):
        return "good", f"The other {_columns(study, 'column helps', 'columns help')} to predict {what}."
    if linked and study.test is not None:
        others = _columns(study, "column tells", "columns tell")
        return "unsure", f"The other {others} something about {what}, but the model is not clearly better than none."
    others = _columns(study, "column", "columns")
    return "unsure", f"These rows do not show that {what} can be predicted from the other {others}."


def _columns(study, one, many):
    """Words for one other column, or for many."""
    return one if sum(each.role == "feature" for each in study.data.columns) == 1 else many


def _ahead(study):
    """Whether the whole interval is better than the baseline."""
    score = study.nested[0]
    if not study.baseline:
        return False
    base = study.baseline[0].value
    return score.low > base if score.greater_is_better else score.high < base


def _sentences(study):
    score, base = study.nested[0], study.baseline[0] if study.baseline else None
    yield f"The model predicts {quoted(study.target)}, {_kind(study)}. {_source(study)}"
    name = group(study)
    seen = f"rows whose {name} the model had not seen" if name else "rows that the model had not seen"
    yield f"{_how_well(study)} This was measured on {seen}, not even for tuning."
    if has_interval(score) and study.folds:
        ends = interval(score, " and ")
        sure = f"{100 * score.confidence:g} %"
        yield (
            f"The {sure} confidence interval lies between {ends}: of many such tables, about {sure} should have an"
            " interval that holds the true value."
        )
    if base is not None:
        reached = worth(base) if score.name == base.name != "R2" else f"an {called(base.name)} of {worth(base)}"
        yield f"For comparison: always answering {_always(study)} reaches {reached}.{_errors(study)}"
        yield from _plainly(study)
    yield from _permuted(study)


def _kind(study):
    names = [quoted(each) for each in study.classes]
    if not names:
        return "a number"
    if len(names) <= FEW_NAMES and sum(map(len, names)) < 80:
        return f"which is {', '.join(names[:-1])} or {names[-1]}"
    return f"one of {len(names)} classes"


def _source(study):
    data = study.data
    columns = sum(each.role == "feature" for each in data.columns)
    used = counted(data.n_features, "feature") if data.sparse else counted(columns, "other column")
    return f"It uses {used} and has learnt from {counted(data.n_used, 'row')}."


def _how_well(study):
    score, rows = study.nested[0], new_rows(study)
    value, share = worth(score), percent(score.value) if score.value > 0 else "none"
    mean = f", mean of {counted(len(study.folds), 'fold')}" if study.folds else ""
    return {
        "accuracy": f"It gets {value} of {rows} right (the accuracy{mean}).",
        "balanced accuracy": f"It gets {value} of {rows} right if classes count alike (the balanced accuracy{mean}).",
        "R2": f"It explains {share} of the variance of {rows} (R² = {value}{mean}).",
    }.get(score.name, f"Its {score.name} on {rows} is {value}.")


def _plainly(study):
    """That a model of rare classes has fewer right answers than always giving the same one, where it has."""
    ours, base = ({each.name: each for each in some} for some in (study.nested, study.baseline))
    if study.nested[0].name == "accuracy" or "accuracy" not in ours or "accuracy" not in base:
        return
    if ours["accuracy"].value < base["accuracy"].value:
        rare = f"a {quoted(positive(study))}" if len(study.classes) == 2 else "a rare class"
        yield (
            f"If every row counts alike, that answer is right more often than the model: {worth(base['accuracy'])} of"
            f" rows, the model {worth(ours['accuracy'])}. The model is worth it where missing {rare} costs more than a"
            " false alarm."
        )


def _always(study):
    counts = study.data.class_counts
    if not study.folds:
        return "the most frequent class of the other rows" if study.classes else "the mean of the other rows"
    if not study.classes or not counts:
        return "the most frequent class" if study.classes else "the mean"
    return f"{quoted(max(counts, key=counts.get))}, the most frequent class,"


def _errors(study):
    """How far off predictions of values are, in the unit of the target."""
    name = "mean absolute error"
    ours, base = ({each.name: each.value for each in some} for some in (study.nested, study.baseline))
    if study.classes or study.nested[0].name == name or name not in ours or name not in base:
        return ""
    ends = [score_text(name, each[name]) for each in (ours, base)]
    return f" The model is off by {ends[0]} on average, the mean by {ends[1]}."


def _permuted(study):
    """What the p-value of the permutation test says, and of what."""
    test = study.test
    if test is None:
        yield "There is no permutation test."
        return
    n = len(test.null)
    n_as_good = max(round(test.p_value * (n + 1)) - 1, 0)
    within = " within groups" if test.within_groups else ""
    given = " given the confounds" * test.given_confounds
    beyond = " beyond the confounds" * test.given_confounds
    yield (
        f"In the permutation test, {f'{n_as_good:,}' if n_as_good else 'none'} of {n:,} runs with targets shuffled"
        f"{within}{given} did as well as the true ones, {score_text(test.score_name, test.score)}. If the other"
        f" {_columns(study, 'column', 'columns')} had nothing to do with {quoted(study.target)}{within}{beyond}, a"
        f" score at least that good would occur in about {n_as_good + 1:,} of {n + 1:,} runs"
        f" (p = {number(test.p_value, 2)})."
        + " This is no evidence that they do, and none that they do not."
        * (test.p_value > LEVEL)
    )
    yield f"The test is of {test.tested}: p belongs to its score, not to the {called(study.nested[0].name)} above."
