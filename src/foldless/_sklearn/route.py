"""How a call is answered, and why: the route, the exception where there is no closed form, and the warning of refits.

one fit          closed-form held-out predictions from one P
one P per fold   one solve on each training part: behind fitted steps of a pipeline, or for a few large folds
refit            the estimator is fitted on each training part
"""

import re
from dataclasses import dataclass
from typing import ClassVar

from foldless.estimators.checks import warn_caller

ONE_FIT = "one fit"
ONE_P_PER_FOLD = "one P per fold"
REFIT = "refit"
WHAT_P_IS = "P is the matrix that a fit makes of X alone"


class RefitWarning(UserWarning):
    """A cross-validation refits the estimator; the message says why."""


@dataclass(frozen=True)
class Route:
    """How a call was answered: ``kind`` ("one fit", "one P per fold", "refit"), the reason, how P was held.

    ``holder`` is empty where no P of all rows was made. ``quicker`` names a quicker way, if there is one.
    """

    kind: str
    reason: str
    holder: str = ""
    quicker: str = ""

    def __str__(self):
        text = f"{self.kind}: {self.reason}"
        return f"{text} ({WHAT_P_IS})" if re.search(r"\bP\b", text) else text


class NoClosedForm(Exception):
    """There is no closed form for the call; the message says why."""

    kind: ClassVar[str] = REFIT

    def __init__(self, reason: str, quicker: str = ""):
        super().__init__(reason)
        self.quicker = quicker

    @property
    def route(self):
        """The route of the refits that take its place."""
        return Route(self.kind, str(self), quicker=self.quicker)


class NoSharedP(NoClosedForm):
    """No P serves all training parts, or all labelings; each has one of its own, unless ``otherwise`` is set."""

    kind: ClassVar[str] = ONE_P_PER_FOLD

    def __init__(self, reason: str, otherwise: str = "steps='once'", quicker: str = ""):
        super().__init__(reason, quicker)
        self.otherwise = otherwise


def try_closed_form(attempt, *arguments):
    """(result of ``attempt(*arguments)``, None), or (None, the :class:`NoClosedForm` that it raises).

    This is the one place that catches it. Without a traceback the obstacle holds no arrays.
    """
    try:
        return attempt(*arguments), None
    except NoClosedForm as obstacle:
        return None, obstacle.with_traceback(None)


def require_closed_form(make, refusal):
    """What ``make()`` returns; where there is no closed form, a ValueError with the words of ``refusal(obstacle)``.

    For calls that no refit can answer.
    """
    result, obstacle = try_closed_form(make)
    if obstacle is not None:
        raise ValueError(refusal(obstacle))
    return result


def warn_of_refits(estimator, route, when):
    """Warn that an estimator is refitted, and why."""
    if route.kind == REFIT:
        quicker = f" Quicker: {route.quicker}." if route.quicker else ""
        warn_caller(f"{type(estimator).__name__} is refitted {when}: {route.reason}.{quicker}", RefitWarning)
