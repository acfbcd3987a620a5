"""The plots of scores and of the search: each a function from a study to a :class:`Figure`, or None.

Every figure has a text that says what it shows, for those who do not see it.
"""

from dataclasses import dataclass

import numpy as np
from sklearn import metrics

from foldless.report.svg import Plot, spread
from foldless.report.words import number, params, percent, score_text, worth

BINS = 10
FEWEST = 5  # rows of each class that a curve is drawn of
Z = 1.645  # Wilson's intervals of 90 %


@dataclass(frozen=True)
class Figure:
    """A plot with its title and its text; ``keys`` are (class of the colour, meaning) pairs."""

    title: str
    plot: Plot
    text: str
    keys: tuple[tuple[str, str], ...] = ()


def scores(study):
    """The first score: nested, leave-one-out, baseline."""
    found = [("nested", study.nested), ("leave-one-out", study.leave_one_out), ("baseline", study.baseline)]
    rows = [(name, each[0]) for name, each in found if each and np.isfinite(each[0].value)]
    if not rows:
        return None
    name = rows[0][1].name
    share = name in ("accuracy", "balanced accuracy")
    ends = spread(*[[each.low, each.value, each.high] for _, each in rows], margin=0.1)
    plot = Plot(ends, x_label=name, lanes=[each for each, _ in rows], percent="x" * share)
    for lane, (label, each) in enumerate(rows):
        plot.segments(each.low, lane, each.high, lane)
        plot.points([each.value], [lane], [f"{label}: {worth(each)}"], f"c{lane}", 5)
    said = "; ".join(f"{label} {worth(each)}" for label, each in rows)
    return Figure(f"The {name} with its interval", plot, f"{name}: {said}.")


def _pairs(study):
    """(second class or not, nested decision) of two classes, or None."""
    if len(study.classes) != 2:
        return None
    held = study.held_out
    kept = (held.fold >= 0) & np.isfinite(held.nested_decision)
    second = np.asarray(held.truth)[kept] == study.classes[1]
    return None if min(second.sum(), (~second).sum()) < FEWEST else (second, held.nested_decision[kept])


def roc(study):
    """The ROC curve of nested decisions."""
    pairs = _pairs(study)
    if pairs is None:
        return None
    false, true, _ = metrics.roc_curve(*pairs)
    area = metrics.roc_auc_score(*pairs)
    plot = Plot((0, 1), (0, 1), "rows of the other class called so", "rows of the class found", percent="xy")
    plot.line([0, 1], [0, 1], "chance").line(false, true)
    few = np.unique(np.linspace(0, len(false) - 1, 25).round().astype(int))
    tips = [f"{percent(true[each])} found, {percent(false[each])} of the others called so" for each in few]
    plot.points(false[few], true[few], tips)
    text = f"ROC curve of the class “{study.classes[1]}”. The area under it is {number(area)}; 0.5 would be chance."
    return Figure("ROC curve", plot, text, (("l0", "held-out rows, nested"), ("chance", "chance")))


def precision_recall(study):
    """Precision against recall of nested decisions."""
    pairs = _pairs(study)
    if pairs is None:
        return None
    precision, recall, _ = metrics.precision_recall_curve(*pairs, drop_intermediate=True)
    mean, share = metrics.average_precision_score(*pairs), pairs[0].mean()
    plot = Plot((0, 1), (0, 1.02), "rows of the class found", "of those called so, right", percent="xy")
    plot.line([0, 1], [share, share], "chance").line(recall, precision)
    few = np.unique(np.linspace(0, len(recall) - 1, 25).round().astype(int))
    tips = [f"{percent(recall[each])} found, {percent(precision[each])} of those called so right" for each in few]
    plot.points(recall[few], precision[few], tips)
    text = (
        f"Precision and recall of the class “{study.classes[1]}”. The average precision is {number(mean)};"
        f" chance would be {number(share)}."
    )
    return Figure("Precision and recall", plot, text, (("l0", "held-out rows, nested"), ("chance", "chance")))


def calibration(study):
    """Shares beside probabilities: of the second class, or of the likeliest of many."""
    found = study.held_out.loo_probability
    if found is None or len(found) < 2 * BINS:
        return None
    truth = np.asarray(study.held_out.truth)
    if len(study.classes) == 2:
        said, came, of = found[:, 1], truth == study.classes[1], f"the class “{study.classes[1]}”"
    else:
        said, of = found.max(1), "the likeliest class"
        came = truth == np.asarray(study.classes, dtype=object)[found.argmax(1)]
    if not np.isfinite(said).all():
        return None
    bins = [each for each in np.array_split(np.argsort(said, kind="stable"), BINS) if len(each)]
    x, y = (np.array([values[each].mean() for each in bins]) for values in (said, came))
    n = np.array([len(each) for each in bins])
    middle, half = y + Z**2 / (2 * n), Z * np.sqrt(y * (1 - y) / n + Z**2 / (4 * n**2))
    plot = Plot((0, 1), (0, 1), "predicted probability", "share that came true", percent="xy")
    plot.line([0, 1], [0, 1], "chance").segments(
        x, (middle - half) / (1 + Z**2 / n), x, (middle + half) / (1 + Z**2 / n)
    )
    tips = [f"predicted {percent(a)}, came {percent(b)}, {k} rows" for a, b, k in zip(x, y, n, strict=True)]
    plot.line(x, y).points(x, y, tips, "c0", 4.5)
    off = np.average(np.abs(x - y), weights=n)
    text = f"Predicted probabilities of {of} beside how often it came true; on average they differ by {percent(off)}."
    return Figure("Calibration", plot, text, (("l0", f"{BINS} bins of leave-one-out rows"), ("chance", "perfect")))


def null(study):
    """Scores of permuted targets, and the true one."""
    test = study.test
    values = None if test is None else np.asarray(test.null, dtype=float)
    if values is None or not np.isfinite(values).any():
        return None
    values = values[np.isfinite(values)]
    counts, edges = np.histogram(values, bins=min(30, max(5, len(values) // 10)))
    share = test.score_name in ("accuracy", "balanced accuracy")
    high = 1.15 * counts.max()
    plot = Plot(spread(values, [test.score]), (0, high), test.score_name, "permutations", percent="x" * share)
    ends = [[score_text(test.score_name, each) for each in edges[part]] for part in (slice(-1), slice(1, None))]
    tips = [f"{count} permutations from {a} to {b}" for count, a, b in zip(counts, *ends, strict=True)]
    plot.boxes(edges[:-1], 0 * counts, edges[1:], counts, tips, "c2")
    plot.segments(test.score, 0, test.score, high, "truth")
    right = test.score > np.mean(plot.ends["x"])
    plot.note(test.score, 0.96 * high, "\N{NO-BREAK SPACE}true targets\N{NO-BREAK SPACE}", "end" if right else "start")
    text = (
        f"The {test.score_name} of {len(values):,} runs with shuffled targets lies between"
        f" {score_text(test.score_name, values.min())} and {score_text(test.score_name, values.max())}; that of the"
        f" true targets is {score_text(test.score_name, test.score)} (p = {number(test.p_value, 2)})."
    )
    return Figure("Could it be chance?", plot, text, (("c2", "shuffled targets"), ("truth", "true targets")))


def search(study):
    """The criterion of all settings in their order."""
    values = np.array([each.criterion for each in study.model.trials], dtype=float)
    if np.isfinite(values).sum() < 2:
        return None
    best = np.fmin.accumulate(values)
    finite = values[np.isfinite(values)]
    log = "y" if finite.min() > 0 and finite.max() > 20 * finite.min() else ""
    ends = (finite.min() / 1.2, finite.max() * 1.2) if log else spread(values)
    label = f"{study.model.criterion_name}, held out"
    plot = Plot((0.5, len(values) + 0.5), ends, "setting", label, log=log)
    order = np.arange(1, len(values) + 1)
    tips = [f"{params(each.params)}: {number(each.criterion, 4)}" for each in study.model.trials]
    plot.line(order, best, "l1").points(order, values, tips)
    text = (
        f"The search looked at {len(values):,} settings. The criterion {study.model.criterion_name} fell from"
        f" {number(values[0])} to {number(np.nanmin(values))}; the least was chosen, so it is no estimate of the error."
    )
    return Figure("Criterion over the search", plot, text, (("c0", "a setting"), ("l1", "best so far")))


def learning(study):
    """The score over the number of training rows."""
    curve = study.learning_curve
    if len(curve) < 2:
        return None
    name = study.nested[0].name
    n = [each.n_train for each in curve]
    test, train = [each.test_score for each in curve], [each.train_score for each in curve]
    share = "y" * (name in ("accuracy", "balanced accuracy"))
    plot = Plot((0, 1.05 * max(n)), spread(train, test, margin=0.1), "training rows", name, percent=share)
    for kind, label, values in (("1", "training rows", train), ("0", "held-out rows", test)):
        tips = [f"{count} rows: {score_text(name, value)} on {label}" for count, value in zip(n, values, strict=True)]
        plot.line(n, values, f"l{kind}").points(n, values, tips, f"c{kind}", 4)
    text = (
        f"With {n[0]:,} training rows the {name} on held-out rows is {score_text(name, test[0])}, with {n[-1]:,}"
        f" {score_text(name, test[-1])}."
    )
    return Figure("Learning curve", plot, text, (("l0", "held-out rows"), ("l1", "training rows")))
