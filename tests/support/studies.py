"""Studies made by hand, with every part filled in, for tests of reports."""

import numpy as np

from foldless.tables import Study, parts


def study(classes=("benign", "malignant"), n=60, name="width", groups=None, **more):
    """A study of random numbers; ``classes=()`` is a regression, ``name`` the name of its first column."""
    rng = np.random.default_rng(0)
    held = _held_out(rng, classes, n, groups)
    first = "accuracy" if classes else "R2"
    score = parts.Score(first, 0.9, 0.85, 0.95, 0.9, "from the folds")
    test = {"score_name": first, "score": 0.9, "p_value": 0.01, "n_rows": n, "how": "labels"}
    columns = [parts.Column(each, "feature", "number", "numbers", 1, n, ("1", "2")) for each in (name, "b")]
    counts = {each: int(np.sum(held.truth == each)) for each in classes}
    trials = tuple(parts.Trial({"alpha": 10.0**k}, float(rng.random()), n) for k in range(-3, 3))
    said = {
        "version": "0",
        "created": "2030-01-02T03:04:05",
        "task": "classification" if classes else "regression",
        "target": "y",
        "classes": tuple(classes),
        "data": parts.Data("a.csv", "csv", n, 3, n, 0, 2, 2, False, tuple(columns), counts),
        "findings": (parts.Finding("id column", "low", f"Column {name} looks like an id.", (name,), (1, 2)),),
        "model": parts.Chosen("LSSVC", "rbf", {"alpha": 1.0}, "press", 0.5, trials, ("Numbers are scaled.",)),
        "nested": (score,),
        "leave_one_out": (score,),
        "baseline": (parts.Score(first, 0.5, how="the most frequent class, always"),),
        "folds": tuple(parts.Fold(40, 20, {"alpha": 1.0}, {first: 0.9}) for _ in range(3)),
        "test": parts.PermutationTest(**test, null=0.5 + 0.1 * rng.random(99), tested="a smaller search"),
        "held_out": held,
        "importance": (parts.Importance(name, 0.2, 0.05), parts.Importance("b", -0.01, 0.02)),
        "importance_how": "By shuffling.",
        "learning_curve": (
            parts.LearningPoint(10, (1.0, 1.0), (0.5, 0.7)),
            parts.LearningPoint(40, (0.95,) * 2, (0.9,) * 2),
        ),
        "surprising": (parts.SurprisingRow(7, str(held.truth[0]), "other", 0.97, {name: "3", "y": "no"}),),
        "notes": (f"{name} was scaled.",),
        "timings": {"tuning": 1.5},
        "code": f"print({name!r})",
    }
    return Study(**said | more)


def _held_out(rng, classes, n, groups):
    if not classes:
        truth = rng.normal(size=n)
        said = truth + 0.3 * rng.normal(size=n)
        values = (np.arange(n) + 1, truth, np.arange(n) % 3, said, said, said, said)
        return parts.HeldOutRows(*values, influence=rng.random(n), groups=groups)
    codes = np.arange(n) % len(classes)
    names = np.array(classes, dtype=object)
    decision = np.eye(len(classes))[codes] + 0.4 * rng.normal(size=(n, len(classes)))
    said = names[decision.argmax(1)]
    probability = np.exp(decision) / np.exp(decision).sum(1, keepdims=True)
    decision = decision[:, 1] - decision[:, 0] if len(classes) == 2 else decision
    values = (np.arange(n) + 1, names[codes], np.arange(n) % 3, said, decision, said, decision, probability)
    return parts.HeldOutRows(*values, influence=rng.random(n), groups=groups)
