"""Python that repeats a run."""

from foldless.tables.scores import measures


def repeating(table, wishes, options, rows):
    """The code, as text: it reads the same file, tunes, and estimates on the same folds."""
    said = {name: value for name, value in vars(wishes).items() if value}
    given = ", ".join(f"{name}={_literal(value)}" for name, value in said.items())
    how = f", impute={options.impute!r}" * (options.impute != "median")
    how += f", kernel={options.kernel!r}" * (options.kernel != "auto")
    scoring = [each.scorer for each in measures(rows)]
    data = ", groups=rows.groups" * (rows.groups is not None) + ", confounds=rows.confounds" * (
        rows.confounds is not None
    )
    fit = data + ", sample_weight=rows.weights" * (rows.weights is not None)
    nested = data + ', params={"sample_weight": rows.weights}' * (rows.weights is not None)
    cv = f", cv=inner_cv(rows, {options.seed})" * (rows.groups is not None)
    return f"""\
from foldless import FoldlessSearchCV
from foldless.model_selection import nested_cross_validate
from foldless.tables import Wishes, inner_cv, outer_folds, pipeline, prepare, read_table

rows = prepare(read_table({table.source!r}, {table.format!r}), Wishes({given}), seed={options.seed})
search = FoldlessSearchCV(pipeline(rows{how}){cv}, random_state={options.seed})
search.fit(rows.X, rows.y{fit})
print(search.best_params_)
print(nested_cross_validate(search, rows.X, rows.y, cv=outer_folds(rows, {options.seed}), scoring={scoring!r}{nested}))
"""


def _literal(value):
    return repr(value if isinstance(value, str) else list(value))
