"""Displays of searches, permutation tests and patterns, in scikit-learn's convention.

Each has ``from_result`` or ``from_search``, ``plot``, and the drawn artists as attributes; matplotlib is imported when
something is drawn. They know nothing of how the numbers arose: any object with the same attributes will do.
"""

from foldless.inspection._compare import ComparisonDisplay
from foldless.inspection._families import GeneralisationDisplay, TimeCourseDisplay
from foldless.inspection._pattern import PatternDisplay
from foldless.inspection._permutation import PermutationDisplay
from foldless.inspection._search import AlphaPathDisplay, FeatureScalesDisplay, NestedDisplay, SearchDisplay

__all__ = [
    "AlphaPathDisplay",
    "ComparisonDisplay",
    "FeatureScalesDisplay",
    "GeneralisationDisplay",
    "NestedDisplay",
    "PatternDisplay",
    "PermutationDisplay",
    "SearchDisplay",
    "TimeCourseDisplay",
]
