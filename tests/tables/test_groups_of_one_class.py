"""Groups of one class each (patients with a diagnosis): scores of folds that hold all classes, or of all rows."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from sklearn.exceptions import UndefinedMetricWarning  # noqa: E402

from foldless.tables import Options, Run, Table, Wishes, outer_folds, prepare  # noqa: E402
from foldless.tables.estimating import nested  # noqa: E402

NONE = Options(permutations=0)


def table(sizes, rows_each=5, seed=0):
    """Noise; ``sizes`` are the numbers of groups of each class."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.array(["u", "v", "w"])[: len(sizes)], sizes)
    group = np.repeat(np.arange(len(label)), rows_each)
    X = pd.DataFrame(rng.normal(size=(len(group), 3)), columns=list("abc"))
    return Table(X.assign(p=[f"P{v}" for v in group], y=label[group]), "a.csv", "csv")


@pytest.mark.parametrize("sizes", [(6, 6), (3, 3), (2, 6), (2, 2), (3, 4, 5)])
def test_every_fold_holds_all_classes(sizes):
    rows = prepare(table(sizes), Wishes("y", groups="p"))
    folds = outer_folds(rows)
    assert len(folds) == min(sizes)
    assert all(len(np.unique(rows.y[part])) == len(sizes) for fold in folds for part in fold)
    assert_allclose(np.sort(np.concatenate([test for _, test in folds])), np.arange(len(rows)))


def test_noise_is_no_better_and_no_worse_than_the_baseline():
    study, _ = Run(table((6, 6)), Wishes("y", groups="p"), NONE).study()
    assert_allclose([each.value for each in study.baseline], 0.5)
    assert study.nested[0].low <= 0.5 <= study.nested[0].high
    assert np.isfinite([each.value for each in study.nested]).all()
    area = study.leave_one_out[2]
    assert area.value < 0.5
    assert "ranked together" in area.how
    assert any(f"{area.value:.3f}, is below one half" in each for each in study.notes)
    assert not any("y_true" in each for each in study.notes)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_folds_that_lack_a_class_are_scored_together(monkeypatch):
    rows = prepare(table((6, 6)), Wishes("y", groups="p"))
    apart = [(rows.groups != each, rows.groups == each) for each in np.unique(rows.groups)]
    splits = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in apart]
    monkeypatch.setattr("foldless.tables.estimating.outer_folds", lambda rows, seed: splits)
    found = nested(rows, NONE)
    right = found.held_out.prediction == rows.y
    assert_allclose(found.held_out.scores[1].value, np.mean([right[rows.y == each].mean() for each in "uv"]))
    assert "some folds lack a class" in found.held_out.scores[0].how
    assert found.baseline[0].value == 0.0  # without a group the other class is the larger


@pytest.mark.parametrize("n_groups", [4, 5])
def test_values_of_few_groups_have_a_study(n_groups):
    data = table((n_groups,), 10)
    data = Table(data.frame.assign(y=data.frame["a"]), "a.csv", "csv")
    study, _ = Run(data, Wishes("y", groups="p"), NONE).study()
    assert study.nested[0].value > 0.5


def test_warnings_of_libraries_below_are_no_notes():
    run = Run(table((6, 6)), Wishes("y", groups="p"), NONE)
    with run.phase("tuning"):
        warnings.warn("Only one class is present in y_true", UndefinedMetricWarning, stacklevel=1)
        np.divide(1.0, np.zeros(1))
    assert [each for each in run.said if "y_true" in each] == []
