"""Displays of permutation tests and patterns, in scikit-learn's convention.

Each has ``from_result``, ``plot``, and the drawn artists as attributes; matplotlib is imported when something is drawn.
They know nothing of how the numbers arose: any object with the same attributes will do.
"""

from foldless.inspection._families import GeneralisationDisplay, TimeCourseDisplay
from foldless.inspection._pattern import PatternDisplay
from foldless.inspection._permutation import PermutationDisplay

__all__ = ["GeneralisationDisplay", "PatternDisplay", "PermutationDisplay", "TimeCourseDisplay"]
