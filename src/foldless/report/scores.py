"""The plots of scores: beside a baseline, by fold, of shuffled targets, by the number of rows.

Here and in its sister files each plot is a function from a study to a :class:`Figure`, or None where the study holds
nothing to draw.
"""

import numpy as np

from foldless.inspection import LearningCurveDisplay, PermutationDisplay
from foldless.report.svg import Figure, Plot, spread
from foldless.report.words import (
    SHARES,
    called,
    capital,
    has_interval,
    interval,
    left_out,
    new_rows,
    number,
    score_text,
    worth,
)

SHUFFLED = "shuffled targets"


def overview(study):
    """The score of the run beside the baseline and shuffled targets."""
    score, test, name = study.nested[0], study.test, study.nested[0].name
    lanes = [("the model", score.low, score.value, score.high)]
    if study.baseline:
        lanes.append(("no model", np.nan, study.baseline[0].value, np.nan))
    if test is not None and test.score_name == name and np.isfinite(test.null).all():
        lanes.append((SHUFFLED, *np.quantile(test.null, [0.05, 0.5, 0.95])))
    values = np.array([line[1:] for line in lanes], dtype=float)
    if not np.isfinite(values[:, 1]).all():
        return None
    share = name in SHARES
    ends = (0.0, 1.0) if share else spread(values, [0.0, 1.0] if name == "R2" else [0.0])
    plot = Plot(ends, x_label=called(name), lanes=[line[0] for line in lanes], percent="x" * share, lane=40)
    for lane, (label, low, value, high) in enumerate(lanes):
        kind = 2 if lane else 0
        plot.segments(low, lane, high, lane, f"range l{kind}")
        plot.points([value], [lane], [f"{label}: {score_text(name, value)}"], f"c{kind}", 6)
    return Figure(f"{capital(called(name))} on {new_rows(study)}", plot, _overview_text(study, lanes))


def _overview_text(study, lanes):
    score = study.nested[0]
    texts = [f"{label} {score_text(score.name, value)}" for label, _, value, _ in lanes]
    said = f"{capital(called(score.name))}: {', '.join(texts)}."
    if has_interval(score):
        said += f" The bar of the model is its {100 * score.confidence:g} % confidence interval."
    if lanes[-1][0] == SHUFFLED:
        said += f" Shuffled targets are those of the permutation test, of {study.test.tested};"
        said += " their bar holds 90 % of the runs."
    return said


def scores(study):
    """The score of the run: nested with its folds, leave-one-out, baseline."""
    found = [("nested", study.nested), (left_out(study), study.leave_one_out), ("baseline", study.baseline)]
    rows = [(label, each[0]) for label, each in found if each and np.isfinite(each[0].value)]
    if not rows or not study.folds:
        return None
    name = rows[0][1].name
    folds = [each.scores[name] for each in study.folds if np.isfinite(each.scores.get(name, np.nan))]
    ends = spread(folds, *[[each.low, each.value, each.high] for _, each in rows], margin=0.1)
    lanes = [label for label, _ in rows]
    plot = Plot(ends, x_label=called(name), lanes=lanes, percent="x" * (name in SHARES), lane=60)
    tips = [f"fold {k}: {score_text(name, each)}" for k, each in enumerate(folds, 1)]
    plot.points(folds, [0.25] * len(folds), tips, "c2", 3.5)
    for lane, (label, each) in enumerate(rows):
        plot.segments(each.low, lane, each.high, lane, f"range l{lane}")
        plot.points([each.value], [lane], [f"{label}: {worth(each)}"], f"c{lane}", 6)
    said = "; ".join(f"{label} {worth(each)}" + f" ({interval(each)})" * has_interval(each) for label, each in rows)
    text = f"{capital(called(name))}: {said}. Small points are the {len(folds)} folds; nested is their mean."
    return Figure(f"{capital(called(name))} with its interval", plot, text)


def null(study):
    """Scores of shuffled targets, and the true one."""
    test = study.test
    values = np.array([] if test is None else test.null, dtype=float)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    name = test.score_name
    display = PermutationDisplay(score=test.score, permutation_scores=values, pvalue=test.p_value, scoring=name)
    counts, edges = display.histogram()
    high = 1.15 * counts.max()
    share = "x" * (name in SHARES)
    plot = Plot(spread(edges, [test.score]), (0, high), called(name), "runs", percent=share)
    ends = [[score_text(name, each) for each in edges[part]] for part in (slice(-1), slice(1, None))]
    tips = [f"{count} runs from {a} to {b}" for count, a, b in zip(counts, *ends, strict=True)]
    plot.boxes(edges[:-1], 0 * counts, edges[1:], counts, tips, "c2")
    plot.segments(test.score, 0, test.score, high, "truth")
    text = (
        f"The {called(name)} of {len(values):,} runs with shuffled targets lies between"
        f" {score_text(name, values.min())} and {score_text(name, values.max())}."
        f" With the true targets it is {score_text(name, test.score)}"
        f" (p = {number(test.p_value, 2)}, {test.n_rows:,} rows): {_of_the_test(name)}, not the nested score."
        f" The test is of {test.tested}. p is how often a score at least as good would occur if other columns had"
        " nothing to do with the target; it is not the probability that they have nothing to do with it."
    )
    return Figure("Scores of shuffled targets", plot, text, (("c2", "shuffled targets"), ("truth", "true targets")))


def _of_the_test(name):
    """What the score of the test is."""
    return "that of all held-out rows of the test together" if name == "R2" else "the mean of the folds of the test"


def learning(study):
    """The score over the number of training rows."""
    curve = study.learning_curve
    if len(curve) < 2:
        return None
    name = study.nested[0].name
    n = np.array([each.n_train for each in curve])
    test_scores, train_scores = ([getattr(each, part) for each in curve] for part in ("test_scores", "train_scores"))
    display = LearningCurveDisplay(train_sizes=n, test_scores=test_scores, train_scores=train_scores)
    test, train, band = display.means, display.train_means, display.band
    low, high = spread(train, test, band, margin=0.1)
    share, high = ("y", min(high, 1.02)) if name in SHARES else ("", high)
    plot = Plot((0, 1.05 * max(n)), (low, high), "rows learnt from", called(name), percent=share)
    plot.segments(n, band[0], n, band[1])
    for kind, label, values in (("1", "rows learnt from", train), ("0", "held-out rows", test)):
        tips = [f"{count} rows: {score_text(name, value)} on {label}" for count, value in zip(n, values, strict=True)]
        plot.line(n, values, f"l{kind}").points(n, values, tips, f"c{kind}", 4)
    n_folds = len(curve[0].test_scores)
    several = f" Points are means of {n_folds} folds, whiskers hold 10 to 90 % of them." * (n_folds > 1)
    text = (
        f"After learning from {n[0]:,} rows, and tuning on them, the {called(name)} on held-out rows is"
        f" {score_text(name, test[0])}, after {n[-1]:,} rows {score_text(name, test[-1])}. Where the curve still"
        " rises, more rows would probably help."
        f"{several}"
    )
    return Figure("Would more rows help?", plot, text, (("l0", "held-out rows"), ("l1", "rows learnt from")))
