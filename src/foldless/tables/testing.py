"""The permutation test of a tuned pipeline, valid although the setting was chosen by the labels.

A setting that was chosen with the true labels and kept for permuted ones favours the true ones. So either the choice is
repeated for every permutation (few rows: one decomposition for each setting serves all permutations), or the setting is
chosen on some rows and tested on the others, where labels are permuted as columns of one system.

A learnt kernel has seen the labels of the rows that it was learnt on. Few rows therefore repeat the choice of a setting
of the Gaussian kernel, many rows are tested with a kernel that was learnt on the other part.

Where there are too few rows of a class, or groups, for that, the default setting is tested, which nobody has chosen.

Where there are groups, labels move within them; where all rows of a group have the same label, groups exchange theirs
(groups of equal size: of larger ones some rows are taken).
"""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    ParameterGrid,
    ShuffleSplit,
    StratifiedShuffleSplit,
)
from sklearn.pipeline import Pipeline

from foldless import LSSVR, FoldlessSearchCV
from foldless.kernels import Nystroem
from foldless.kernels.registry import is_automatic
from foldless.model_selection import WholeGroups, permutation_test_score
from foldless.tables.folds import blind_folds, outer_folds, told_apart
from foldless.tables.parts import PermutationTest
from foldless.tables.preparing import approximated, kernel_for, pipeline
from foldless.tables.scores import measures
from foldless.tables.searching import searched
from foldless.tables.settings import kernel_name

REPEATED_KERNEL = "rbf"  # in the place of one that would be learnt for every permutation
REPEATED = 1000  # rows times problems (one for each of several classes) up to which the choice is repeated
TUNED_SHARE, MOST_TUNED = 0.2, 1500  # of the rows otherwise, on which the setting is chosen
DRAWS = 20  # of these rows, until they and the others hold all classes
MOST_TESTED = 20_000  # of the others: five times as many take ten times as long
LEAST = 99  # permutations, however little time there is
ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0)
WIDTHS = (0.1, 0.3, 1.0, 3.0)  # in units of gamma="scale", about one over the number of features
METRICS = {"R2": "r2_pooled"}  # one R2 of all held-out rows


def permutation_test(rows, options, seconds=None):
    """The :class:`PermutationTest`, or None with too few rows; ``seconds``: about how long it may take."""
    if rows.few or not options.permutations:
        return None
    start = time.monotonic()
    whole = rows.groups is not None and _constant(rows)
    how = ""
    if whole:
        kept = _same_size(rows)
        how = "groups exchange their labels as a whole"
        if len(kept) < len(rows):
            how += f", {len(kept)} of {len(rows)} rows, as many of each group, are tested"
            rows = rows.take(kept)
    elif rows.groups is not None:
        how = "labels move within groups"
    n_classes = len(rows.schema.classes)
    folds = blind_folds if whole else outer_folds
    if len(rows) * (n_classes if n_classes > 2 else 1) <= REPEATED:
        splits, said = folds(rows, options.seed), "the choice is repeated for every permutation"
        model = _searched(rows, options, splits)
    else:
        rows, model, said = _tuned_elsewhere(rows, options)
        splits = folds(rows, options.seed)
    how = f"{how}; {said}" if how else said
    left = None if seconds is None else seconds - (time.monotonic() - start)
    return _tested(rows, model, options, splits, whole, how, left)


def _tested(rows, model, options, splits, whole, how, seconds):
    measure = measures(rows)[0]
    name = "sample_weight" if hasattr(model, "estimator") else "model__sample_weight"
    run = partial(
        permutation_test_score,
        model,
        rows.X,
        rows.y,
        groups=None if getattr(model, "cv", None) is None else rows.groups,
        cv=splits,
        random_state=options.seed,
        scoring=METRICS.get(measure.name, measure.scorer),
        params=None if rows.weights is None else {name: rows.weights},
        confounds=rows.confounds,
        null=_null(rows, whole),
        steps="once",
    )
    number = _affordable(lambda count: run(n_permutations=count), options, seconds)
    result = run(n_permutations=number)
    if number < options.permutations:
        how += f"; {number} permutations, as many as the time allows"
    if rows.confounds is not None:
        classes = "labels are permuted by their probabilities given the confounds"
        values = "residuals are permuted, and what the confounds explain of the values stays"
        how += f"; {classes if rows.classifies else values}"
    return PermutationTest(
        score_name=measure.name,
        score=float(result.score),
        null=np.asarray(result.permutation_scores),
        p_value=float(result.pvalue),
        n_rows=len(rows),
        how=how,
        within_groups=rows.groups is not None and not whole,
        tested=_what_is_tested(model),
        given_confounds=rows.confounds is not None,
    )


def _null(rows, whole):
    """The null scheme: whole groups, or rows within groups, or within test sets that were made from the labels."""
    if whole:
        return WholeGroups(rows.groups)
    if rows.groups is not None:
        return rows.groups
    return "within_test_sets" if rows.classifies else "free"


def _what_is_tested(model):
    """What the test cross-validates in the place of the search of the nested scores, which would take too long."""
    if hasattr(model, "param_grid"):
        n_settings, kernel = len(ParameterGrid(model.param_grid)), kernel_name(model.estimator[-1])
        return f"a smaller search, of {n_settings} settings of the kernel {kernel}"
    return "one setting, which was not chosen on these rows"


def _affordable(run, options, seconds):
    """How many permutations there is time for, from the times of none and of a few."""
    if seconds is None:
        return options.permutations
    marks = [time.monotonic()]
    for few in (1, 21):
        run(few)
        marks.append(time.monotonic())
    each = max((marks[2] - marks[1]) - (marks[1] - marks[0]), 1e-4) / 20
    left = seconds - (marks[2] - marks[0]) - (marks[1] - marks[0])
    return int(np.clip(left / each, min(LEAST, options.permutations), options.permutations))


def _searched(rows, options, splits):
    """A search over a few settings around those that suit standardised features; it learns no kernel."""
    name = kernel_for(rows, options.kernel)
    model = pipeline(rows, options.impute, REPEATED_KERNEL if is_automatic(name) else name)
    grid: dict[str, Any] = {"model__alpha": list(ALPHAS)}
    if kernel_name(model[-1]) == "rbf":
        width = LSSVR("rbf").fit(_prepared(model, rows), np.arange(len(rows)) % 2.0).kernel_.gamma
        grid["model__gamma"] = [width * each for each in WIDTHS]
    if rows.groups is None:
        return FoldlessSearchCV(model, grid, verbose=0)
    fewest = min(len(np.unique(rows.groups[train])) for train, _ in splits)
    cv = GroupKFold(min(len(blind_folds(rows)), fewest))  # splits that stay serve all labelings
    return FoldlessSearchCV(model, grid, cv=cv, verbose=0)


def _prepared(model, rows):
    return model[:-1].fit_transform(rows.X) if len(model) > 1 else rows.X


def _tuned_elsewhere(rows, options):
    """(rows to test, the pipeline with a setting chosen on other rows, how); the default setting if that can not be."""
    first, others = _two_parts(rows, options.seed)
    if not len(first):
        said = "the default setting was tested, as there are too few rows of a class, or groups, to choose one on some"
        return rows.take(others), pipeline(rows, options.impute, options.kernel), said
    part = rows.take(first)
    search = searched(part, options, options.share("test", 0.3))
    tested, fitted = rows.take(np.sort(others)), search.best_estimator_
    steps, last = fitted[:-1], clone(fitted[-1])
    if len(steps):  # the scales of a learnt kernel are those of the features behind these steps
        tested = replace(tested, X=steps.transform(tested.X))
    said = f"the setting was chosen on {len(first)} rows and tested on {len(others)} others"
    if approximated(tested, options.kernel):
        last.set_params(kernel=Nystroem(last.kernel))
        said += f", with {last.kernel.n_landmarks} landmarks"
    return tested, Pipeline([("model", last)]), said


def _two_parts(rows, seed):
    """(rows to choose a setting on, rows to test it on): whole groups, all classes in both parts.

    Where no draw is so, or the first part is too small for a choice, there are none to choose on.
    """
    share = min(MOST_TUNED / len(rows), TUNED_SHARE)
    named: dict[str, Any] = {"n_splits": DRAWS, "random_state": seed}
    if rows.groups is not None:
        some = max(1, round(share * len(np.unique(rows.groups))))
        draws = GroupShuffleSplit(train_size=some, test_size=None, **named).split(rows.y, rows.y, rows.groups)
    else:
        kind = StratifiedShuffleSplit if rows.classifies else ShuffleSplit
        draws = kind(train_size=share, test_size=1 - share, **named).split(rows.y, rows.y)
    most = MOST_TESTED if rows.groups is None else len(rows)  # of rows in random order
    for first, others in draws:
        others = others[:most]
        if not rows.take(first).few and all(told_apart(rows.take(each)) for each in (first, others)):
            return first, others
    return np.arange(0), np.random.default_rng(seed).permutation(len(rows))[:most]


def _constant(rows):
    """Whether all rows of every group have the same target."""
    codes = np.unique(rows.groups, return_inverse=True)[1]
    values = np.unique(rows.y, return_inverse=True)[1]
    return len(np.unique(np.column_stack([codes, values]), axis=0)) == codes.max() + 1


def _same_size(rows):
    """Rows of as many groups as can have equally many of them, the most rows in all."""
    codes = np.unique(rows.groups, return_inverse=True)[1]
    sizes = np.bincount(codes)
    size = max(range(1, sizes.max() + 1), key=lambda each: each * np.count_nonzero(sizes >= each))
    large = np.flatnonzero(sizes >= size)
    return np.sort(np.concatenate([np.flatnonzero(codes == each)[:size] for each in large]))
