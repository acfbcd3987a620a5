"""Options that several commands share, and what they ask for."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from foldless.tables import Options, TableError, Wishes, read_table
from foldless.tables.preparing import IMPUTERS
from foldless.tables.reading import READERS

COLUMNS = "Columns"
RUNS = "Runs"
OUTPUT = "Output"


def option(name, text, panel=COLUMNS, **more):
    """A long option with its help."""
    return typer.Option(name, help=text, rich_help_panel=panel, **more)


def column(name, text):
    """An option that names columns."""
    return option(name, text, metavar="COLUMN")


Names = list[str] | None
Target = Annotated[str, column("--target", "Column to predict. A svmlight file has its own.")]
Task = Annotated[str | None, option("--task", "classification or regression; by the target if not given.")]
Drop = Annotated[Names, column("--drop", "Columns that are no features; repeat it, or separate names by commas.")]
Keep = Annotated[Names, column("--keep", "Columns that alone are features.")]
Categorical = Annotated[Names, column("--categorical", "Columns that are categories, whatever they look like.")]
Numeric = Annotated[Names, column("--numeric", "Columns that are numbers, whatever they look like.")]
Groups = Annotated[str | None, column("--groups", "Column of groups: their rows are held out together.")]
Confounds = Annotated[Names, column("--confounds", "Columns that shall not help to predict; regressed out everywhere.")]
Weights = Annotated[str | None, column("--weights", "Column of weights of the rows.")]
Impute = Annotated[str, option("--impute", f"What missing numbers become: {', '.join(IMPUTERS)}.", RUNS)]
Kernel = Annotated[
    str, option("--kernel", "rbf, linear, poly, laplacian, cosine; auto: learnt, linear for sparse data.", RUNS)
]
Permutations = Annotated[int, option("--permutations", "Of the permutation test; 0: none.", RUNS, min=0)]
TimeLimit = Annotated[
    float | None, option("--time-limit", "Seconds; the best found until then is taken.", RUNS, min=1.0)
]
Seed = Annotated[int, option("--seed", "Draws folds, permutations and samples.", RUNS, min=0)]
Format = Annotated[str | None, option("--format", f"{', '.join(READERS)}; by the ending if not given.")]
Encoding = Annotated[str, option("--encoding", "Of CSV, TSV and ARFF files.")]
Json = Annotated[bool, option("--json", "Print all numbers as JSON, and nothing else.", OUTPUT, metavar="")]
Quiet = Annotated[
    bool, option("--quiet", "Print the result alone: no columns, no notes, no progress.", OUTPUT, metavar="")
]
OURS = {"show_default": False, "readable": False}  # whether a file can be read is told in our own words
Data = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, ARFF, NPZ, svmlight or Excel file.", **OURS)]


@dataclass
class Request:
    """What the shared options say."""

    data: Data
    target: Target = ""
    task: Task = None
    drop: Drop = None
    keep: Keep = None
    categorical: Categorical = None
    numeric: Numeric = None
    groups: Groups = None
    confounds: Confounds = None
    weights: Weights = None
    impute: Impute = "median"
    kernel: Kernel = "auto"
    permutations: Permutations = 1000
    time_limit: TimeLimit = None
    seed: Seed = 0
    format: Format = None
    encoding: Encoding = "utf-8"
    json: Json = False
    quiet: Quiet = False

    def check(self):
        """Refuse words that are not known."""
        known = {
            "task": ("classification", "regression", None),
            "impute": IMPUTERS,
            "kernel": ("auto", "rbf", "linear", "poly", "laplacian", "cosine"),
        }
        for name, words in known.items():
            if getattr(self, name) not in words:
                choice = ", ".join(each for each in words if each)
                raise TableError(f"--{name} {getattr(self, name)!r} is not known.", f"Use one of {choice}.")

    def table(self):
        """The file."""
        self.check()
        return read_table(self.data, self.format, self.encoding)

    def wishes(self, table):
        """What is said of the columns."""
        lists = ("drop", "keep", "categorical", "numeric", "confounds")
        names = {each: _names(getattr(self, each), table.frame.columns) for each in lists}
        return Wishes(self.target, self.task, groups=self.groups, weights=self.weights, **names)

    def options(self):
        """How the run goes."""
        return Options(self.impute, self.kernel, self.permutations, self.seed, self.time_limit)


def _names(given, known):
    """Names as given, or separated by commas where no column has the whole as its name."""
    found: list[str] = []
    for each in given or ():
        found += [each] if each in known else [part.strip() for part in each.split(",")]
    return tuple(found)


def takes_table(function: Callable) -> Callable:
    """A command whose first argument is a :class:`Request`: its fields become options."""
    shared = inspect.signature(Request).parameters
    own = list(inspect.signature(function).parameters.values())[1:]
    hints = get_type_hints(Request, include_extras=True)
    both = [each.replace(annotation=hints[name], kind=each.KEYWORD_ONLY) for name, each in shared.items()]

    @wraps(function)
    def command(**given: Any) -> None:
        asked = Request(**{name: given.pop(name) for name in shared})
        function(asked, **given)

    more = [each.replace(kind=each.KEYWORD_ONLY) for each in own]
    command.__signature__ = inspect.Signature([*both, *more])  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in [*both, *more]}
    return command
