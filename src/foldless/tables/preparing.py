"""The model of a table: what is learnt from the columns, and the least-squares machine behind it.

Numbers are filled in by their median (or what is asked for) and standardised, with an indicator of missing cells beside
them; truth values are 0 and 1; categories are indicators of their levels, rare ones pooled. None of these steps sees
the target. All of it is one scikit-learn pipeline, so that the steps are part of what is cross-validated.

``kernel="auto"`` is the kernel that searches learn, of sparse features the linear one. Above ``MOST_REPEATED`` rows
landmarks approximate the kernel (``_sklearn.landmarks``).
"""

from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from foldless import LSSVC, LSSVR, KernelFisherDiscriminant
from foldless._sklearn.landmarks import MOST_REPEATED
from foldless.kernels import Nystroem
from foldless.tables.cells import rare

IMPUTERS = ("median", "mean", "most_frequent")
MOST_LEVELS = 50


def table_steps(schema, n, impute="median"):
    """What is learnt from the columns of n rows, as a ColumnTransformer."""
    numbers = [name for field in schema.features if field.kind in ("number", "date") for name in field.columns]
    truth = [field.name for field in schema.features if field.kind == "boolean"]
    words = [field.name for field in schema.features if field.kind == "category"]
    gaps = [field.columns[0] for field in schema.features if field.missing and field.kind != "category"]
    filled = SimpleImputer(strategy=impute, keep_empty_features=True)
    levels = OneHotEncoder(
        min_frequency=rare(n), max_categories=MOST_LEVELS, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    steps = [
        ("numbers", Pipeline([("filled", filled), ("scaled", StandardScaler())]), numbers),
        ("truth", SimpleImputer(strategy="most_frequent", keep_empty_features=True), truth),
        ("gaps", MissingIndicator(features="all", error_on_new=False), gaps),
        ("categories", levels, words),
    ]
    return ColumnTransformer([step for step in steps if step[2]], verbose_feature_names_out=True)


def in_words(schema, n, impute="median"):
    """The steps of :func:`table_steps`, a sentence each."""
    kinds = [field.kind for field in schema.features]
    said = []
    if schema.n_sparse:
        return ("Features are a sparse matrix and stay as they are.",)
    if "number" in kinds or "date" in kinds:
        said.append(f"Missing numbers are filled in ({impute.replace('_', ' ')}); numbers are standardised.")
    if "date" in kinds:
        said.append("Dates are days, with sine and cosine of year, week and day where dates go through these.")
    if any(field.missing and field.kind != "category" for field in schema.features):
        said.append("Indicators beside them tell which cells were missing.")
    if "boolean" in kinds:
        said.append("Truth values are 0 and 1.")
    if "category" in kinds:
        said.append(
            f"Categories are indicators of their levels; levels of fewer than {rare(n)} rows, and those beyond"
            f" {MOST_LEVELS}, are pooled; missing is a level."
        )
    return tuple(said)


def kernel_for(rows, kernel="auto"):
    """The name of the kernel for some rows."""
    return "linear" if kernel == "auto" and rows.schema.n_sparse else kernel


def approximated(rows, kernel="auto"):
    """Whether the kernel of so many rows is approximated; a linear one of few features needs no n x n matrix."""
    linear = kernel_for(rows, kernel) == "linear"
    return len(rows) > MOST_REPEATED and not (linear and rows.schema.n_sparse < MOST_REPEATED)


def machine(rows, kernel="auto"):
    """The least-squares machine for some rows, not fitted."""
    name = kernel_for(rows, kernel)
    chosen = Nystroem(name) if approximated(rows, kernel) else name
    if not rows.classifies:
        return LSSVR(chosen)
    if rows.unbalanced:
        return KernelFisherDiscriminant(chosen, threshold="fisher")
    return LSSVC(chosen)


def pipeline(rows, impute="median", kernel="auto", **params):
    """The pipeline for some rows, not fitted: the steps of their columns and the machine, with parameters."""
    model = machine(rows, kernel).set_params(**params)
    first = [] if rows.schema.n_sparse else [("table", table_steps(rows.schema, len(rows), impute))]
    return Pipeline([*first, ("model", model)])
