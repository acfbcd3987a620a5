"""Statistics of permutation test results: clusters, step-down p-values, groups of subjects, prevalence.

The functions take results of :func:`foldless.model_selection.permutation_test_score` and return results; no model is
fitted.
"""

from foldless.stats._clusters import ClusterTestResult, cluster_test
from foldless.stats._groups import PrevalenceResult, combine, prevalence_test, sign_flip_test
from foldless.stats._step_down import step_down

__all__ = [
    "ClusterTestResult",
    "PrevalenceResult",
    "cluster_test",
    "combine",
    "prevalence_test",
    "sign_flip_test",
    "step_down",
]
