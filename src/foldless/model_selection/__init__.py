"""scikit-learn's cross-validation functions, from one fit where that is exact.

The signatures and results are those of ``sklearn.model_selection``; change the import and keep the estimator.
``explain`` returns how a call would be computed, and why. Tests of the results of permutation tests are in
``foldless.stats``.
"""

from foldless._engine.heldout.caution import HugePenaltyWarning, LongFitWarning, NothingLearntWarning
from foldless._engine.inference.comparison import ComparisonResult
from foldless._engine.inference.intervals import ScoreInterval
from foldless._engine.permutation.metrics import Metric
from foldless._engine.permutation.nulls import PermutationTestResult, WholeGroups
from foldless._engine.permutation.patterns import PatternTestResult
from foldless._engine.tuning.spec import Optimizer
from foldless._sklearn.route import RefitWarning, Route
from foldless.estimators.checks import Confounds
from foldless.model_selection._compare import compare
from foldless.model_selection._intervals import score_interval
from foldless.model_selection._nested import nested_cross_validate
from foldless.model_selection._nested_result import NestedResult
from foldless.model_selection._pairs import leave_pair_out_auc
from foldless.model_selection._patterns import permutation_test_pattern
from foldless.model_selection._permutation import permutation_test_score
from foldless.model_selection._score import cross_val_score
from foldless.model_selection._search import FoldlessSearchCV
from foldless.model_selection._strata import StratifiedLeaveOneOut
from foldless.model_selection._validation import cross_val_predict, cross_validate, explain

__all__ = [
    "ComparisonResult",
    "Confounds",
    "FoldlessSearchCV",
    "HugePenaltyWarning",
    "LongFitWarning",
    "Metric",
    "NestedResult",
    "NothingLearntWarning",
    "Optimizer",
    "PatternTestResult",
    "PermutationTestResult",
    "RefitWarning",
    "Route",
    "ScoreInterval",
    "StratifiedLeaveOneOut",
    "WholeGroups",
    "compare",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "explain",
    "leave_pair_out_auc",
    "nested_cross_validate",
    "permutation_test_pattern",
    "permutation_test_score",
    "score_interval",
]
