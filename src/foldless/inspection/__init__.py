"""Displays of models, searches, tests and patterns, in scikit-learn's convention.

Each has ``from_estimator``, ``from_predictions``, ``from_search`` or ``from_result``, a method ``plot``, and the drawn
artists as attributes; matplotlib is imported when something is drawn. Constructors take finished numbers: any object
with the same attributes will do for a result.
"""

from foldless.inspection._calibration import CalibrationDisplay
from foldless.inspection._choices import FeatureScalesDisplay, NestedDisplay
from foldless.inspection._compare import ComparisonDisplay
from foldless.inspection._families import GeneralisationDisplay, TimeCourseDisplay
from foldless.inspection._learning import LearningCurveDisplay
from foldless.inspection._margins import InfluenceDisplay, MarginsDisplay
from foldless.inspection._pattern import PatternDisplay
from foldless.inspection._permutation import PermutationDisplay
from foldless.inspection._regions import DecisionRegionsDisplay
from foldless.inspection._search import AlphaPathDisplay, SearchDisplay
from foldless.inspection._stream import StreamDisplay

__all__ = [
    "AlphaPathDisplay",
    "CalibrationDisplay",
    "ComparisonDisplay",
    "DecisionRegionsDisplay",
    "FeatureScalesDisplay",
    "GeneralisationDisplay",
    "InfluenceDisplay",
    "LearningCurveDisplay",
    "MarginsDisplay",
    "NestedDisplay",
    "PatternDisplay",
    "PermutationDisplay",
    "SearchDisplay",
    "StreamDisplay",
    "TimeCourseDisplay",
]
