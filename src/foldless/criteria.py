"""Selection criteria under their public name; the code is in ``tuning.criteria``."""

from foldless._engine.tuning.criteria import *  # noqa: F403
from foldless._engine.tuning.criteria import CRITERIA, Criterion, resolve

__all__ = ["CRITERIA", "Criterion", "resolve"]
