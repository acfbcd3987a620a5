"""The search of a table's pipeline, and what all its users need: options, arguments, names, labels."""

from dataclasses import dataclass

from foldless import FoldlessSearchCV
from foldless.tables.folds import inner_cv
from foldless.tables.preparing import pipeline

# Shares of a time limit. What is left goes to reading, writing and fits that can not be cut short.
SHARES = {"tuning": 0.2, "nested": 0.4, "alone": 0.1, "test": 0.2, "look": 0.1}


@dataclass(frozen=True)
class Options:
    """How a run goes.

    Attributes
    ----------
    impute : {"median", "mean", "most_frequent"}, what missing numbers are filled in with
    kernel : str, one of the kernels of LSSVC; "auto" is learnt, of sparse features it is linear
    permutations : int, 0 for no test
    seed : int
    time_limit : float or None, seconds for tuning, estimating and testing together
    """

    impute: str = "median"
    kernel: str = "auto"
    permutations: int = 1000
    seed: int = 0
    time_limit: float | None = None

    def share(self, part, of=1.0):
        """Seconds for a phase of the run, or a part of it; None: as long as it takes."""
        return None if self.time_limit is None else of * SHARES[part] * self.time_limit


def search_of(rows, options, limit=None):
    """A search of the pipeline for some rows, not fitted."""
    first = pipeline(rows, options.impute, options.kernel)
    said = {"random_state": options.seed, "verbose": 0, "time_limit": limit}
    return FoldlessSearchCV(first, cv=inner_cv(rows, options.seed), **said)


def searched(rows, options, limit=None, **params):
    """The same with some parameters of the search, fitted."""
    search = search_of(rows, options, limit).set_params(**params)
    names = ("confounds", "sample_weight") if search.cv is None else ("groups", "confounds", "sample_weight")
    return search.fit(rows.X, rows.y, **given(rows, *names))


def given(rows, *names):
    """Arguments of ``fit`` and of the functions of ``model_selection`` that the rows have."""
    found = {"groups": rows.groups, "confounds": rows.confounds, "sample_weight": rows.weights}
    return {name: found[name] for name in names if found[name] is not None}


def chosen(params):
    """Parameters of the machine by its own names."""
    return {name.removeprefix("model__"): value for name, value in params.items()}


def labels(decision, classes):
    """The classes that decisions stand for."""
    return classes[(decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(1)]
