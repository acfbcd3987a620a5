"""foldless: exact cross-validation, tuning, permutation tests and updates of kernel classifiers at the price of a fit.

    from foldless import AdaptiveKDA, FoldlessSearchCV, KernelFisherDiscriminant, LSSVC, LSSVR, SlidingWindow
    from foldless.model_selection import cross_val_predict, cross_val_score, cross_validate, nested_cross_validate
    from foldless.model_selection import permutation_test_score, permutation_test_pattern

Held-out predictions of these estimators (and of scikit-learn's Ridge, RidgeClassifier and KernelRidge) follow in
closed form from one matrix; see ``docs/notation.md`` for the formulas and ``docs/exactness.md`` for what *exact*
means.
"""

import importlib

from foldless.estimators import LSSVC, LSSVR, AdaptiveKDA, KernelFisherDiscriminant, SlidingWindow

__version__ = "0.4.0"

__all__ = [
    "LSSVC",
    "LSSVR",
    "AdaptiveKDA",
    "FoldlessSearchCV",
    "KernelFisherDiscriminant",
    "SlidingWindow",
    "__version__",
]
SUBMODULES = ("chunked", "criteria", "inspection", "kernels", "model_selection", "reduction", "reference", "stats")


def __getattr__(name):
    """Submodules and the search on first use: ``import foldless`` stays as quick as scikit-learn itself."""
    if name in SUBMODULES:
        return importlib.import_module(f"foldless.{name}")
    if name == "FoldlessSearchCV":
        return importlib.import_module("foldless.model_selection").FoldlessSearchCV
    raise AttributeError(f"module 'foldless' has no attribute {name!r}")


def __dir__():
    return sorted([*__all__, *SUBMODULES, "estimators"])
