"""Probabilities and intervals of a model file of rows with groups are those of rows of new groups."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless import FoldlessSearchCV  # noqa: E402
from foldless._engine.readout.calibration import fit_calibration  # noqa: E402
from foldless._engine.readout.conformal import group_half_width  # noqa: E402
from foldless.tables import Options, Run, Table, TableError, Wishes, load_model, save_model  # noqa: E402

SIZE = 8  # rows of a group


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(
        "foldless.tables.searching.FoldlessSearchCV",
        partial(
            FoldlessSearchCV, param_grid={"model__kernel": ["rbf"], "model__alpha": [0.1, 1.0], "model__gamma": [0.3]}
        ),
    )


def frame(n_groups, seed):
    """Groups that lie close together, each with a shift of its own of what is to be predicted."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), SIZE)
    place, shift = rng.normal(size=(n_groups, 3)), 2 * rng.normal(size=n_groups)
    X = 2 * place[group] + 0.3 * rng.normal(size=(len(group), 3))
    value = place[group, 0] + shift[group] + 0.3 * rng.normal(size=len(group))
    names = pd.DataFrame(X, columns=list("abc")).assign(g=[f"{seed} {v}" for v in group])
    return names.assign(value=value, label=np.where(value > 0, "up", "down"))


def model_of(path, target):
    data = Table(frame(30, 0).drop(columns="label" if target == "value" else "value"), "a.csv", "csv")
    run = Run(data, Wishes(target, groups="g"), Options(permutations=0))
    _, model = run.tuned()
    save_model(path, run.rows, model, {}, run.without_groups(model))
    loaded = load_model(path)
    new = frame(100, 1)
    return run.rows, model, loaded, loaded.pipeline[:-1].transform(new[list("abc")]), new


def test_probabilities_are_calibrated_by_decisions_without_groups(tmp_path):
    rows, model, loaded, X, new = model_of(tmp_path / "m", "label")
    machine = loaded.pipeline[-1]
    Z = model[:-1].transform(rows.X)
    decision = cross_val_predict(
        machine, Z, rows.y, groups=rows.groups, cv=LeaveOneGroupOut(), method="decision_function"
    )
    assert_allclose(loaded.apart, decision, rtol=1e-6, atol=1e-9)
    fitted = fit_calibration("sigmoid", decision, (rows.y == "up").astype(int), 2, np.ones(len(rows)))
    found = loaded.probabilities(X)
    assert_allclose(found, fitted.proba(machine.decision_function(X)), rtol=1e-6)
    ours, alone = log_loss(new["label"], found), log_loss(new["label"], machine.predict_proba(X))
    assert ours < 0.9 * alone
    assert ours < 0.72  # no worse than knowing nothing


def test_intervals_hold_values_of_new_groups(tmp_path):
    rows, _, loaded, X, new = model_of(tmp_path / "m", "value")
    ends = loaded.intervals(X, 0.8)
    residuals = np.sort(np.abs(rows.y - loaded.apart))
    half = residuals[int(np.ceil(0.8 * 31 * SIZE)) - 1]  # of 30 groups and the new one, all of one size
    assert_allclose(ends[:, 1] - ends[:, 0], 2 * half)
    inside = np.mean((ends[:, 0] <= new["value"]) & (new["value"] <= ends[:, 1]))
    alone = loaded.pipeline[-1].predict_interval(X, coverage=0.8)
    assert np.mean((alone[:, 0] <= new["value"]) & (new["value"] <= alone[:, 1])) < 0.7
    assert 0.7 < inside < 0.95
    assert np.isinf(loaded.intervals(X[:1], 0.97)).all()  # 31 groups can not promise it


def test_groups_count_alike_whatever_their_rows():
    residuals, groups = np.array([1.0, -2.0, 3.0, 9.0, 9.5]), np.array([0, 0, 0, 1, 2])
    # each group has a quarter: 1, 2, 3 a twelfth each, 9 and 9.5 a quarter each, infinity the last
    for coverage, half in ((0.08, 1.0), (0.24, 3.0), (0.26, 9.0), (0.5, 9.0), (0.75, 9.5), (0.76, np.inf)):
        assert group_half_width(residuals, groups, coverage) == half


def test_the_report_shows_probabilities_of_the_same_kind():
    data = Table(frame(30, 0).drop(columns="value"), "a.csv", "csv")
    run = Run(data, Wishes("label", groups="g"), Options(permutations=0))
    study, model = run.study()
    assert_allclose(study.held_out.loo_decision, run.without_groups(model), rtol=1e-6, atol=1e-9)
    assert any("those of new groups" in each for each in study.notes)


def test_decisions_of_other_rows_are_refused(tmp_path):
    rows, model, loaded, _, _ = model_of(tmp_path / "m", "label")
    save_model(tmp_path / "m", rows, model, {}, loaded.apart[:-1])
    with pytest.raises(TableError, match="decisions without groups have shape"):
        load_model(tmp_path / "m")


def test_without_groups_there_is_nothing_to_leave_out():
    run = Run(Table(frame(8, 0).drop(columns=["value", "g"]), "a.csv", "csv"), Wishes("label"))
    assert run.without_groups(None) is None


def test_a_class_of_one_group_is_refused():
    data = frame(12, 0).drop(columns="value")
    data.loc[data["g"] == "0 3", "label"] = "other"
    run = Run(Table(data, "a.csv", "csv"), Wishes("label", groups="g"))
    with pytest.raises(TableError, match="class 'other' occurs in one group only"):
        run.without_groups(run.tuned()[1])


def test_intervals_of_groups_say_that_groups_are_drawn():
    data = Table(frame(30, 0).drop(columns="value"), "a.csv", "csv")
    study, _ = Run(data, Wishes("label", groups="g"), Options(permutations=0)).study()
    assert all("bootstrap of the held-out groups" in each.how for each in study.leave_one_out)
    (said,) = (each for each in study.notes if each.startswith("What columns teach"))
    assert "the search and leave-one-group-out scores learn it once" in said
    (said,) = (each for each in study.notes if each.startswith("Rows of a group"))
    assert "in the search and in the calibration" in said  # there was no test
    assert said.endswith("whose probabilities are those of new groups.")


def test_few_rows_of_groups_speak_of_no_search_and_no_test():
    data = frame(4, 0).iloc[::4].drop(columns="value").assign(label=["up", "down"] * 4)
    study, _ = Run(Table(data, "a.csv", "csv"), Wishes("label", groups="g")).study()
    assert all("held-out groups" in each.how or "number of groups" in each.how for each in study.nested)
    said = " ".join(study.notes)
    assert "a fit without its group" in said
    assert "Rows of a group are held out together." in said
    assert "in the search" not in said
    assert "in the test" not in said
