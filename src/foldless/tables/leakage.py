"""What may make scores too good: copies of the target, rows that occur twice, ids; and perfect scores.

A column is judged by itself: a small tree of it alone is tested by cross-validation, in which groups stay together. One
that gets (nearly) everything right says the target, one way or another.
"""

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from foldless.tables.kinds import WHOSE_NAME
from foldless.tables.parts import Finding

NEARLY = 0.99  # score of one column, from which it nearly is the target
MOST_ROWS = 5000  # that a column is judged by
LEAST_ROWS = 20
MANY = 0.01  # share of rows with a twin, from which it is told
SHOWN = 20
LEAST_NAMED, LEAST_LEVELS = 6, 10  # different values of what may be an id that repeats, by its name, or without one
ABOUT_EQUAL, ROWS_OF_ONE = 0.3, 20  # how much counts of such values vary, and their mean, at the most
LEVEL = 0.05  # of the permutation test


def look_for_leaks(rows, columns):
    """All findings that need no model, the gravest first."""
    found = [*_columns(columns)]
    if not sp.issparse(rows.X):
        found += [*_copies(rows), *_twins(rows)]
    return in_order(found)


def in_order(findings):
    """The gravest first."""
    return tuple(sorted(findings, key=lambda each: each.severity != "high"))


def look_at_scores(nested, baseline, test):
    """Scores that are too good to be true, or no better than none."""
    score, least = nested[0], baseline[0]
    if score.greater_is_better and score.value >= 0.9995:
        text = f"The {score.name} is perfect. Real data hardly ever are: look for a column that says the target."
        yield Finding("perfect score", "high", text)
    if test is not None and test.p_value > LEVEL:
        where, beyond = (" within groups", " beyond what groups have in common") if test.within_groups else ("", "")
        if test.given_confounds:
            where = f"{where} given the confounds"
            beyond = f"{beyond} and the confounds" if beyond else " beyond the confounds"
        text = (
            f"With labels permuted{where} the {test.score_name} of the permutation test is often as good (p ="
            f" {test.p_value:.2g}): these rows do not show that the features tell anything of the target{beyond}, which"
            " does not mean that they tell nothing."
        )
        yield Finding("no better than the baseline", "low", text)
    elif test is None and score.low <= least.value:
        text = (
            f"The {100 * score.confidence:g} % interval of the {score.name}, {score.low:.3f} to {score.high:.3f}, is"
            f" not above the baseline, {least.value:.3f}."
        )
        yield Finding("no better than the baseline", "low", text)


def _columns(columns):
    reasons = {"id": "id column", "constant": "constant column", "empty": "empty column"}
    for column in columns:
        if column.role == "dropped" and column.kind in reasons and not column.why.startswith(("--", "not in --")):
            text = f"Column {column.name!r} is left out: {column.why}."
            if column.kind == "id":
                text += " Say --numeric or --categorical if it means something."
            yield Finding(reasons[column.kind], "low", text, (column.name,))


# -- columns that say the target ---------------------------------------------------------------------------------------


def _copies(rows):
    if len(rows) < LEAST_ROWS:
        return
    part = np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]
    y = np.unique(rows.y[part], return_inverse=True)[1] if rows.classifies else rows.y[part] / np.abs(rows.y).max()
    for field in rows.schema.features:
        column = rows.X[field.columns[0]].iloc[part]
        codes = pd.factorize(column)[0].astype(float) if field.kind == "category" else _scaled(column)
        if _one_to_one(rows, field, codes, y):
            text = f"Column {field.name!r} is the target in other words. Say --drop {field.name!r}."
            yield Finding("copy of the target", "high", text, (field.name,))
            continue
        score = _alone(codes, y, rows.classifies, None if rows.groups is None else rows.groups[part])
        together = 0.0 if rows.classifies or field.kind == "category" else _in_step(codes, y)
        if score < NEARLY <= together**2:
            text = (
                f"Column {field.name!r} goes with the target nearly in step (correlation {together:.3f})."
                f" Is it the target in other units? If so, say --drop {field.name!r}."
            )
            yield Finding("nearly the target", "high", text, (field.name,))
        elif (repeated := _repeated(rows, field, score >= NEARLY)) is not None:
            yield repeated
        elif score >= NEARLY:
            text = (
                f"Column {field.name!r} alone predicts the target ({score:.3f} of held-out rows, 1 is perfect)."
                f" Is it known before the target is? If not, say --drop {field.name!r}."
            )
            yield Finding("nearly the target", "high", text, (field.name,))


def _repeated(rows, field, tells):
    """The finding that a feature says whose a row is, where several rows are of one; None if it does not seem so.

    It has such a name, or values that occur about equally often; ``tells`` is whether it predicts the target alone.
    """
    column = rows.X[field.columns[0]]
    if rows.groups is not None or field.kind not in ("category", "number"):
        return None
    if field.kind == "number" and not np.all(column.dropna() == column.dropna().round()):
        return None
    counts = column.value_counts().to_numpy()
    named = WHOSE_NAME.search(field.name) is not None
    several = len(counts) >= (LEAST_NAMED if named else LEAST_LEVELS) and np.median(counts) >= 2
    spread = counts.std() / counts.mean() if len(counts) else np.inf
    alike = spread <= ABOUT_EQUAL and counts.mean() <= ROWS_OF_ONE and (tells or field.kind == "category")
    if not several or not (alike or (named and spread <= 1)):
        return None
    text = (
        f"Column {field.name!r} seems to say whose a row is: {len(counts)} different values, about"
        f" {round(np.median(counts))} rows each. If rows of one {field.name!r} belong together, say"
        f" --groups {field.name!r}: otherwise models are tested on those that they have learnt from."
    )
    return Finding("repeated id", "high" if named or tells else "low", text, (field.name,))


def _scaled(column):
    """Numbers of at most 1: trees see the same in them, and none is too large."""
    values = column.to_numpy(dtype=float)
    largest = np.nanmax(np.abs(values), initial=0.0)
    return values / largest if largest > 0 else values


def _in_step(values, y):
    """The largest of |Pearson| and |Spearman| of the numbers there; 0 where they are few."""
    there = np.isfinite(values)
    values, y = values[there], y[there]
    if len(y) < LEAST_ROWS or len(y) < len(there) / 2 or min(len(np.unique(values)), len(np.unique(y))) < 3:
        return 0.0
    pairs = [(values, y), (rankdata(values), rankdata(y))]
    return float(max(abs(np.corrcoef(a, b)[0, 1]) for a, b in pairs))


def _one_to_one(rows, field, codes, y):
    """Whether values and classes (or ranks of values) correspond one to one."""
    there = ~np.isnan(codes)
    if there.mean() < 0.5:
        return False
    codes, y = codes[there], y[there]
    if not rows.classifies and field.kind != "category":
        ranks, theirs = rankdata(codes, "dense"), rankdata(y, "dense")
        return ranks.max() > 2 and (np.array_equal(ranks, theirs) or np.array_equal(ranks.max() + 1 - ranks, theirs))
    pairs = len(np.unique(np.column_stack([codes, y]), axis=0))
    return 1 < pairs == len(np.unique(codes)) == len(np.unique(y)) < len(y)


def _alone(codes, y, classifies, groups):
    """Held-out score of a small tree of one column."""
    if classifies and np.bincount(y).min() < 3:
        return 0.0
    leaves = max(16, 2 * len(np.unique(y))) if classifies else 64
    tree = (DecisionTreeClassifier if classifies else DecisionTreeRegressor)(max_leaf_nodes=leaves, random_state=0)
    if groups is None:
        kind, n_folds = StratifiedKFold if classifies else KFold, 3
    else:
        kind, n_folds = StratifiedGroupKFold if classifies else GroupKFold, min(3, len(np.unique(groups)))
    cv = kind(n_folds, shuffle=True, random_state=0)
    said = cross_val_predict(tree, codes[:, None], y, groups=groups, cv=cv)
    return (balanced_accuracy_score if classifies else r2_score)(y, said)


# -- rows that occur twice ---------------------------------------------------------------------------------------------


def _twins(rows):
    codes = pd.DataFrame({name: pd.factorize(column)[0] for name, column in rows.X.items()})
    number = codes.groupby(list(codes.columns), sort=False).ngroup().to_numpy()
    twin = np.bincount(number)[number] > 1
    if rows.groups is not None:
        yield from _across_groups(rows, number)
    elif twin.mean() >= MANY:
        chance = all(column.nunique() < len(rows) / 10 for _, column in rows.X.items())
        text = f"{int(twin.sum())} of {len(rows)} rows have a twin with the same features."
        text += (
            " With so few different values that may be chance."
            if chance
            else " A twin in the training part tells the answer: drop them, or say --groups to keep them together."
        )
        shown = tuple((rows.numbers[twin][:SHOWN] + 1).tolist())
        yield Finding("duplicate rows", "low" if chance else "high", text, rows=shown)


def _across_groups(rows, number):
    groups = pd.factorize(rows.groups)[0]
    spread = pd.Series(groups).groupby(number).transform("nunique").to_numpy() > 1
    if spread.any():
        text = (
            f"{int(spread.sum())} rows have a twin with the same features in another group."
            " Groups that share rows do not keep them apart."
        )
        shown = tuple((rows.numbers[spread][:SHOWN] + 1).tolist())
        yield Finding("duplicates across groups", "high" if spread.mean() >= MANY else "low", text, rows=shown)
