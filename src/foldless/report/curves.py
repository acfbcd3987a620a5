"""The plots of decisions and probabilities: ROC, precision and recall, calibration.

Of two classes the rarer one is looked for; of more each against all others. Decisions are those of the nested
cross-validation, all folds together.
"""

import numpy as np
from sklearn import metrics

from foldless.inspection import CalibrationDisplay
from foldless.report.svg import Figure, Plot
from foldless.report.words import counted, cut, number, percent, positive, quoted, score_text, without

BINS = 10
FEWEST = 5  # rows of each side that a curve is drawn of
COLOURS = ("0", "1", "3", "4")  # of curves, one for each class


def one_against_others(study):
    """[(class, whether rows are of it, decisions for it)] of classes with enough rows."""
    held = study.held_out
    decision = np.asarray(held.nested_decision, dtype=float)
    if len(study.classes) < 2:
        return []
    names, columns = study.classes, decision.T
    if len(study.classes) == 2:
        names = (positive(study),)
        columns = decision[None] if names[0] == study.classes[1] else -decision[None]
    found = []
    for name, values in zip(names, columns, strict=True):
        kept = (held.fold >= 0) & np.isfinite(values)
        of_it = np.asarray(held.truth)[kept] == name
        if FEWEST <= of_it.sum() <= len(of_it) - FEWEST:
            found.append((name, of_it, values[kept]))
    return found


def _drawn(plot, curves, title, told):
    """The figure with a curve of (class, x, y, tip of a point) for each class."""
    many = len(curves) > len(COLOURS)
    for place, (_, x, y, _) in enumerate(curves):
        plot.line(x, y, "faint" if many else f"l{COLOURS[place]}")
    for place, (name, x, y, tip) in enumerate(curves):
        few = np.unique(np.linspace(0, len(x) - 1, 8 if many else 25).round().astype(int))
        named = f"{name}: " if len(curves) > 1 else ""
        tips = [named + tip.format(percent(y[each]), percent(x[each])) for each in few]
        plot.points(x[few], y[few], tips, f"c{'0' if many else COLOURS[place]}", 2.5 if many else 3.5)
    if many:
        return Figure(title, plot, told, (("faint", "one class each"),))
    names = [cut(name, 30) for name, *_ in curves] if len(curves) > 1 else ["held-out rows"]
    return Figure(title, plot, told, tuple((f"l{COLOURS[place]}", name) for place, name in enumerate(names)))


def _of_classes(values, which, rarer):
    """A sentence on the values of one class, or of the worst and the best of several."""
    if len(values) == 1:
        (name, value), *_ = values.items()
        return f"{which} of the class {quoted(name)}, {rarer}, is {score_text(which, value)}"
    low, high = min(values, key=values.get), max(values, key=values.get)
    ends = " to ".join(f"{score_text(which, values[name])} ({quoted(name)})" for name in (low, high))
    return f"Every class against all others. {which} goes from {ends}"


def _why(study):
    """Why one of two classes is looked for."""
    if len(study.classes) != 2:
        return ""
    counts = study.data.class_counts
    return "the rarer one" if len(set(map(counts.get, study.classes))) == 2 else "the second of two"


def _mean_of_folds(study):
    """What the area in the table of scores is instead."""
    if not study.folds or "area under the ROC curve" not in [each.name for each in study.nested]:
        return ""
    return "; the table of scores has the mean of the folds"


def _not_likeliest(n):
    """That predictions are made from decisions, not from probabilities."""
    where = "the predicted class is not the most probable one"
    return f"In {counted(n, 'row')} {where}: predictions follow the decision of the model, not the probabilities."


def roc(study):
    """ROC curves."""
    found = one_against_others(study)
    if not found:
        return None
    plot = Plot((0, 1), (0, 1), "false alarms, of rows of other classes", "found, of rows of the class", percent="xy")
    plot.line([0, 1], [0, 1], "chance")
    curves = [(name, *metrics.roc_curve(*pairs)[:2], "{} found, {} false alarms") for name, *pairs in found]
    areas = {name: metrics.roc_auc_score(*pairs) for name, *pairs in found}
    text = (
        f"{_of_classes(areas, 'The area under the curve', _why(study))}, of all folds together{_mean_of_folds(study)}."
        " Chance would be 0.5, perfect is 1."
    )
    return _drawn(plot, curves, "ROC curve", text)


def precision_recall(study):
    """Precision against recall."""
    found = one_against_others(study)
    if not found:
        return None
    plot = Plot((0, 1), (0, 1.02), "found, of rows of the class (recall)", "right, of those found", percent="xy")
    if len(found) == 1:
        share = found[0][1].mean()
        plot.line([0, 1], [share, share], "chance")
    curves = []
    for name, *pairs in found:
        precision, recall, _ = metrics.precision_recall_curve(*pairs, drop_intermediate=True)
        curves.append((name, recall[:-1], precision[:-1], "{} right, {} found"))  # the last has no rows found
    means = {name: metrics.average_precision_score(*pairs) for name, *pairs in found}
    text = _of_classes(means, "The average precision", _why(study))
    chance = f" Chance would be {number(share)}." if len(found) == 1 else ""
    return _drawn(plot, curves, "Precision and recall", f"{text}, of all folds together.{chance}")


def calibration(study):
    """Shares beside probabilities: of the rarer of two classes, or of the likeliest of many."""
    found = study.held_out.loo_probability
    if found is None or len(found) < 2 * BINS:
        return None
    truth, likeliest = np.asarray(study.held_out.truth), np.asarray(study.classes, dtype=object)[found.argmax(1)]
    if len(study.classes) == 2:
        name = positive(study)
        said, came = found[:, study.classes.index(name)], truth == name
        of = f"the class {quoted(name)}, {_why(study)},"
    else:
        said, of = found.max(1), "the likeliest class"
        came = truth == likeliest
    if not np.isfinite(said).all():
        return None
    display = CalibrationDisplay.of(came, said, classes=(False, True), n_bins=BINS)
    (x,), (y,), (n,), ((low, high),) = display.prob_pred, display.prob_true, display.counts, display.intervals
    plot = Plot((0, 1), (0, 1), "predicted probability", "share that came true", percent="xy")
    plot.line([0, 1], [0, 1], "chance").segments(x, low, x, high)
    tips = [f"predicted {percent(a)}, came true {percent(b)}, {k} rows" for a, b, k in zip(x, y, n, strict=True)]
    plot.line(x, y).points(x, y, tips, "c0", 4.5)
    others = np.count_nonzero(likeliest != np.asarray(study.held_out.loo_prediction))
    off = np.average(np.abs(x - y), weights=n)
    text = (
        f"Predicted probabilities of {of} by the model {without(study, 'the row', 'the row’s')}, beside how often it"
        f" came true: {len(n)} bins of about equally many rows, with 90 % intervals (Wilson). On average they differ by"
        f" {percent(off)}."
    )
    if others:
        text += f" {_not_likeliest(others)}"
    return Figure("Are probabilities right?", plot, text, (("l0", "held-out rows"), ("chance", "perfect")))
