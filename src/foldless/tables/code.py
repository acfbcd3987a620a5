"""Python that repeats a run."""

from dataclasses import fields

from foldless.tables.scores import measures


def repeating(table, wishes, options, rows, n_folds, test=None):
    """The code, as text: it reads the same file, tunes, estimates on the same folds, and tests."""
    file = f"{table.source!r}, {table.format!r}" + f", encoding={table.encoding!r}" * (table.encoding != "utf-8")
    said = {name: value for name, value in vars(wishes).items() if value}
    given = ", ".join(f"{name}={_literal(value)}" for name, value in said.items())
    read = f"rows = prepare(read_table({file}), Wishes({given}), seed={options.seed})"
    return _of_few(read, options) if rows.few else _of_many(read, options, rows, n_folds) + _of_test(options, test)


def _of_few(read, options):
    own = {
        each.name: getattr(options, each.name) for each in fields(options) if each.name in ("impute", "kernel", "seed")
    }
    asked = ", ".join(f"{name}={value!r}" for name, value in own.items())
    return f"""\
from foldless.tables import Options, Wishes, prepare, read_table
from foldless.tables.few import default_model, each_left_out

{read}
options = Options({asked})
nested = each_left_out(rows, options, default_model(rows, options))
print(*nested.held_out.scores, sep="\\n")
"""


def _of_many(read, options, rows, n_folds):
    how = f", impute={options.impute!r}" * (options.impute != "median")
    how += f", kernel={options.kernel!r}" * (options.kernel != "auto")
    scoring = [each.scorer for each in measures(rows)]
    data = ", groups=rows.groups" * (rows.groups is not None) + ", confounds=rows.confounds" * (
        rows.confounds is not None
    )
    fit = data + ", sample_weight=rows.weights" * (rows.weights is not None)
    nested = data + ', params={"sample_weight": rows.weights}' * (rows.weights is not None)
    cv = f", cv=inner_cv(rows, {options.seed})" * (rows.groups is not None)
    tuning, each = options.share("tuning"), options.share("nested", 1 / n_folds)
    limit = "" if tuning is None else f", time_limit={tuning:.6g}"
    other = "" if each is None else f"search.set_params(time_limit={each:.6g})\n"
    return f"""\
from foldless import FoldlessSearchCV
from foldless.model_selection import nested_cross_validate
from foldless.tables import Wishes, inner_cv, outer_folds, pipeline, prepare, read_table

{read}
search = FoldlessSearchCV(pipeline(rows{how}){cv}, random_state={options.seed}{limit})
search.fit(rows.X, rows.y{fit})
print(search.best_params_)
{other}folds = outer_folds(rows, {options.seed})
nested = nested_cross_validate(search, rows.X, rows.y, cv=folds, scoring={scoring!r}{nested})
print(nested)
"""


def _of_test(options, test):
    """The permutation test, with as many permutations as there were."""
    if test is None:
        return ""
    own = {**vars(options), "permutations": len(test.null)}
    asked = ", ".join(f"{name}={value!r}" for name, value in own.items() if value is not None)
    return f"""
# The test is of {test.tested}: its p-value is not one of the nested scores.
from foldless.tables import Options
from foldless.tables.testing import permutation_test

test = permutation_test(rows, Options({asked}))
print(test.score, test.p_value)
"""


def _literal(value):
    return repr(value if isinstance(value, str) else list(value))
