"""Numbers, scores and names as text, in few digits."""

import math
import unicodedata

SHARES = ("accuracy", "balanced accuracy")
SPACE = "\N{NO-BREAK SPACE}"
CRITERIA = {"press": "squared error of held-out rows"}


def number(value, digits=3):
    """A number in few digits; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) < 1e7 and (value == int(value) or abs(value) >= 1000):
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−")


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
    return f"The model is {MACHINES.get(model.name, 'an estimator')} ({model.name}){kernel}."
