"""Numbers and findings in plain words: what a reader takes away before any plot."""

import math
from dataclasses import dataclass

SHARES = ("accuracy", "balanced accuracy")


def number(value, digits=3):
    """A number in few digits; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.{digits}g}"


def cell(value):
    """A target as text: a class as it is, a value in few digits."""
    return number(value) if isinstance(value, float) else str(value)


def percent(value):
    """A share as a percentage."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else "–"


def worth(score):
    """The value of a score: shares as percentages."""
    return score_text(score.name, score.value)


def score_text(name, value):
    """A value of the score of this name."""
    return percent(value) if name in SHARES else number(value)


def interval(score):
    """Both ends of an interval, or a dash."""
    if not math.isfinite(score.low + score.high):
        return "–"
    return f"{score_text(score.name, score.low)} to {score_text(score.name, score.high)}"


def params(chosen):
    """A setting as text."""
    return ", ".join(f"{name} = {_value(value)}" for name, value in chosen.items())


def _value(value):
    return number(value) if isinstance(value, int | float) else str(value)


def seconds(value):
    """A time."""
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


@dataclass(frozen=True)
class Verdict:
    """The summary.

    Attributes
    ----------
    level : str, "good", "unsure" or "doubt"
    headline : str, one sentence
    sentences : what was predicted, how well, how sure, beside which baseline, whether by chance
    """

    level: str
    headline: str
    sentences: tuple[str, ...]


def verdict(study):
    """What the numbers come to."""
    score, base = study.nested[0], study.baseline[0] if study.baseline else None
    grave = any(each.severity == "high" for each in study.findings)
    edge = score.low if score.greater_is_better else score.high
    edge = edge if math.isfinite(edge) else score.value
    sign = 1 if score.greater_is_better else -1
    ahead = base is not None and sign * (edge - base.value) > 0
    linked = study.test is not None and study.test.p_value <= 0.05
    what = f"“{study.target}”"
    if grave:
        level, headline = "doubt", f"The score for {what} can not be trusted before the warnings are looked into."
    elif ahead and (linked or study.test is None):
        level, headline = "good", f"{what} can be predicted from the other columns."
    elif linked:
        level = "unsure"
        headline = f"{what} is linked to the other columns, but its prediction is not clearly better than the baseline."
    else:
        level, headline = "unsure", f"These rows do not show that {what} can be predicted from the other columns."
    return Verdict(level, headline, tuple(_sentences(study, score, base)))


def _sentences(study, score, base):
    what = f"one of {len(study.classes)} classes" if study.classes else "a number"
    yield (
        f"Predicted is “{study.target}”, {what}, from {study.data.n_features:,} features of {study.data.n_used:,} rows."
    )
    yield f"{_meaning(score)} Every row was judged by a model that had not seen it, not even for its tuning."
    if math.isfinite(score.low + score.high):
        yield f"With a confidence of {100 * score.confidence:g} % the {score.name} lies in {interval(score)}."
    if base is not None:
        how = base.how or ("the most frequent class, always" if study.classes else "the mean, always")
        yield f"Without any model ({how}) it is {worth(base)}."
    if study.test is not None:
        yield (
            f"Of {len(study.test.null):,} runs with shuffled targets {_as_good(study.test)} did as well"
            f" (p = {number(study.test.p_value, 2)})."
        )


def _as_good(test):
    count = round(test.p_value * (len(test.null) + 1)) - 1
    return "none" if count <= 0 else f"{count:,}"


def _meaning(score):
    value = worth(score)
    return {
        "accuracy": f"{value} of new rows are predicted right.",
        "balanced accuracy": f"{value} of new rows are predicted right, each class counted alike (balanced accuracy).",
        "R2": f"The model explains {percent(max(score.value, 0.0))} of the variance of new rows (R2 = {value}).",
    }.get(score.name, f"The {score.name} on new rows is {value}.")
