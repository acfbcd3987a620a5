"""Selection criteria under their public name; the code is in ``tuning.criteria``."""

from foldless.tuning.criteria import *  # noqa: F403
from foldless.tuning.criteria import CRITERIA, Criterion, resolve

__all__ = ["CRITERIA", "Criterion", "resolve"]
