"""Numbers, scores and names as text, in few digits."""

import math
import unicodedata

SHARES = ("accuracy", "balanced accuracy")
SPACE = "\N{NO-BREAK SPACE}"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
CRITERIA = {"press": "squared error of held-out rows"}


def number(value, digits=3):
    """A number in few digits; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    for size, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if max(0.9995 * size, 1e7) <= abs(value) < 999.5 * size:
            return f"{value / size:.{max(digits, 3)}g}{SPACE}{name}".replace("-", "−")
    if abs(value) < 1e7 and (value == int(value) or abs(value) >= 1000):
        return f"{value:,.0f}".replace("-", "−")
    return powers(f"{value:.{digits}g}").replace("-", "−")


def powers(text):
    """A number as Python writes it, but with powers of ten: 2.5e+15 is 2.5·10¹⁵."""
    factor, _, power = text.partition("e")
    return f"{factor}·10{str(int(power)).translate(RAISED)}" if power else text


def percent(value):
    """A share as a percentage."""
    return f"{100 * value:.1f}{SPACE}%".replace("-", "−") if math.isfinite(value) else "–"


def score_text(name, value):
    """A value of the score of this name: shares as percentages, errors in the unit of the target."""
    if name in SHARES:
        return percent(value)
    if name.endswith("error") or abs(value) >= 100:
        return number(value)
    return f"{value:.3f}".replace("-", "−") if math.isfinite(value) else "–"


def worth(score):
    """The value of a score as text."""
    return score_text(score.name, score.value)


def has_interval(score):
    """Whether a score has an interval."""
    return math.isfinite(score.low + score.high)


def interval(score, between=" to "):
    """Both ends of an interval, or a dash."""
    return between.join(score_text(score.name, end) for end in (score.low, score.high)) if has_interval(score) else "–"


def origins(scores):
    """Where the intervals of some scores come from; by name where that differs."""
    found = {each.how: [called(one.name) for one in scores if one.how == each.how] for each in scores if each.how}
    if len(found) < 2:
        return next(iter(found), "")
    return "; ".join(f"{how} ({', '.join(names)})" for how, names in found.items())


def called(name):
    """The name of a score, a criterion or a finding as readers see it."""
    return {"R2": "R²"}.get(name) or CRITERIA.get(name, name)


def capital(text):
    """A text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def quoted(name):
    """A name of the user's file in quotes; its direction of writing does not reach beyond them."""
    name = str(name)
    return f"“{name}”" if name.isascii() else f"“\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}”"


def width(text):
    """The width of a text in letters, where those of East Asian scripts count twice."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def cut(text, most=23):
    """A text of at most this width."""
    text = str(text)
    if width(text) <= most:
        return text
    kept = next(place for place in range(len(text)) if width(text[: place + 1]) > most - 1)
    return text[:kept] + "…"


def cell(value):
    """A target as text: a class as it is, a value in few digits."""
    return number(value) if isinstance(value, float) else str(value)


def params(chosen):
    """A setting as text."""
    return ", ".join(
        f"{name} = {number(value) if isinstance(value, int | float) else value}" for name, value in chosen.items()
    )


def seconds(value):
    """A time."""
    if value < 0.01:
        return "under 0.01 s"
    return f"{number(value, 2)} s" if value < 10 else f"{value:,.0f} s"


def counted(n, one, many=None):
    """A count with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


MACHINES = {
    "LSSVC": "a least-squares support vector machine",
    "LSSVR": "a least-squares support vector regression, which is kernel ridge regression with an intercept",
    "KernelFisherDiscriminant": "a kernel Fisher discriminant",
}


def machine(model):
    """The model in a sentence."""
    kernel = f" with the kernel {model.kernel}" if model.kernel else ""
    if model.kernel == "learnt":
        kernel = " with a kernel that the search has learnt"
        kernel += ", the sum of a Gaussian and a Laplacian one" * ("laplacian_weight" in model.params)
    landmarks = f", approximated by {model.landmarks} landmarks" * (model.landmarks > 0)
    return f"The model is {MACHINES.get(model.name, 'an estimator')} ({model.name}){kernel}{landmarks}."


def group(study):
    """The name of the column whose rows are held out together, in quotes; None where rows are held out alone."""
    if study.held_out.groups is None:
        return None
    return next((quoted(each.name) for each in study.data.columns if each.role == "groups"), "group")


def new_rows(study):
    """What the scores are of: new rows, or rows of new groups."""
    name = group(study)
    return f"rows with a new {name}" if name else "new rows"


def left_out(study):
    """What the scores of the chosen setting are called."""
    return "leave-one-out" if group(study) is None else "leave-one-group-out"


def without(study, of="it", their="its"):
    """What the model of a held-out row has not seen."""
    name = group(study)
    return f"without {their} {name}" if name else f"without {of}"


def positive(study):
    """Which of two classes curves and probabilities are of: the rarer one, of equally many rows the second."""
    counts = study.data.class_counts
    first, second = study.classes
    return first if counts.get(first, 0) < counts.get(second, 0) else second
