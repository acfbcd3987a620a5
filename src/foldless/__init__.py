"""foldless: exact cross-validation and tuning of kernel classifiers at the price of one fit.

    from foldless import FoldlessSearchCV, KernelFisherDiscriminant, LSSVC, LSSVR
    from foldless.model_selection import cross_val_predict, cross_val_score, cross_validate, nested_cross_validate

Held-out predictions of these estimators (and of scikit-learn's Ridge, RidgeClassifier and KernelRidge) follow in
closed form from one matrix; see ``docs/notation.md`` for the formulas and ``docs/exactness.md`` for what *exact*
means.
"""

import importlib

from foldless.estimators import LSSVC, LSSVR, KernelFisherDiscriminant

__version__ = "0.2.0"

__all__ = ["LSSVC", "LSSVR", "FoldlessSearchCV", "KernelFisherDiscriminant", "__version__"]


def __getattr__(name):
    """Submodules and the search on first use: ``import foldless`` stays as quick as scikit-learn itself."""
    if name in ("model_selection", "reference"):
        return importlib.import_module(f"foldless.{name}")
    if name == "FoldlessSearchCV":
        return importlib.import_module("foldless.model_selection").FoldlessSearchCV
    raise AttributeError(f"module 'foldless' has no attribute {name!r}")


def __dir__():
    return sorted([*__all__, "criteria", "estimators", "kernels", "model_selection", "reference"])
