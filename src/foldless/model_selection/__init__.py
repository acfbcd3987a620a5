"""scikit-learn's cross-validation functions, from one fit where that is exact.

The signatures and results are those of ``sklearn.model_selection``; change the import and keep the estimator.
``explain`` tells which way a call would go and why.
"""

from foldless.bridge.route import RefitWarning
from foldless.bridge.route import Route as Path
from foldless.heldout.caution import HugePenaltyWarning, NothingLearntWarning
from foldless.inference.comparison import ComparisonResult
from foldless.inference.intervals import ScoreInterval
from foldless.model_selection._compare import compare
from foldless.model_selection._intervals import score_interval
from foldless.model_selection._nested import NestedResult, nested_cross_validate
from foldless.model_selection._pairs import leave_pair_out_auc
from foldless.model_selection._patterns import permutation_test_pattern
from foldless.model_selection._permutation import permutation_test_score
from foldless.model_selection._search import FoldlessSearchCV
from foldless.model_selection._strata import StratifiedLeaveOneOut
from foldless.model_selection._validation import cross_val_predict, cross_val_score, cross_validate, explain
from foldless.permutation.clusters import ClusterTestResult, cluster_test
from foldless.permutation.group import combine, sign_flip_test
from foldless.permutation.nulls import PermutationTestResult
from foldless.permutation.patterns import PatternTestResult
from foldless.permutation.prevalence import PrevalenceResult, prevalence_test
from foldless.permutation.stepdown import step_down

__all__ = [
    "ClusterTestResult",
    "ComparisonResult",
    "FoldlessSearchCV",
    "HugePenaltyWarning",
    "NestedResult",
    "NothingLearntWarning",
    "Path",
    "PatternTestResult",
    "PermutationTestResult",
    "PrevalenceResult",
    "RefitWarning",
    "ScoreInterval",
    "StratifiedLeaveOneOut",
    "cluster_test",
    "combine",
    "compare",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "explain",
    "leave_pair_out_auc",
    "nested_cross_validate",
    "permutation_test_pattern",
    "permutation_test_score",
    "prevalence_test",
    "score_interval",
    "sign_flip_test",
    "step_down",
]
