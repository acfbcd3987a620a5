"""Columns that are regressed out: the scores of a run, and the predictions of its model file, are without them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import r2_score
from sklearn.model_selection import LeaveOneOut

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")
pytest.importorskip("typer", reason="the command line needs the extra cli")

from foldless import LSSVC  # noqa: E402
from foldless._sklearn.permutation_spec import PermutationData, keep_association  # noqa: E402
from foldless.cli.predicting import predicted  # noqa: E402
from foldless.model_selection import Confounds, WholeGroups, cross_val_predict  # noqa: E402
from foldless.tables import Options, Run, Table, Wishes, load_model, pipeline, prepare, save_model  # noqa: E402
from foldless.tables.testing import permutation_test  # noqa: E402


def frame(n, seed=0, classes=False):
    """Features that carry the confounds age and site, which say most of y."""
    rng = np.random.default_rng(seed)
    age, site = rng.normal(50, 9, n), rng.choice(["s", "t"], n)
    known = (age - 50) / 9 + (site == "t")
    a, b = known + 0.1 * rng.normal(size=n), known + rng.normal(size=n)
    y = 3 * known + 0.4 * (b - known) + 0.3 * rng.normal(size=n)
    y = np.where(y > np.median(y), "high", "low") if classes else y
    return Table(pd.DataFrame({"a": a, "b": b, "age": age, "site": site, "y": y}), "a.csv", "csv")


@pytest.mark.parametrize("classes", [False, True])
def test_few_rows_are_scored_without_their_confounds(classes):
    data, wishes = frame(11, classes=classes), Wishes("y", confounds=("age", "site"))
    study, _ = Run(data, wishes).study()
    rows = prepare(data, wishes)
    asked = {"cv": LeaveOneOut(), "confounds": rows.confounds, "steps": "each"}
    if classes:
        asked["method"] = "decision_function"
    expected = cross_val_predict(pipeline(rows), rows.X, rows.y, **asked)
    assert_allclose(study.held_out.nested_decision, expected, rtol=1e-6, atol=1e-9)
    if not classes:
        assert_allclose(study.nested[0].value, r2_score(rows.y, expected))
        assert study.nested[0].value < 0.7


def model_of(path, classes, **more):
    run = Run(frame(80, classes=classes), Wishes("y", confounds=("age", "site"), **more), Options(permutations=0))
    _, model = run.tuned()
    save_model(path, run.rows, model, {}, run.without_groups(model))
    return load_model(path), run, model


@pytest.mark.parametrize("classes", [False, True])
def test_predictions_are_those_that_were_scored(tmp_path, classes):
    loaded, run, _ = model_of(tmp_path / "m", classes)
    new = frame(60, 1, classes)
    found, _, warnings = predicted(loaded, new, 0.9)
    assert not warnings
    fields = run.rows.schema.confounds
    shown = new.frame.assign(age=(new.frame["age"] - fields[0].mean) / fields[0].scale)
    C = np.column_stack([shown["age"], shown["site"] == "t"])
    X = loaded.pipeline[:-1].transform(new.frame[["a", "b"]])
    machine = loaded.pipeline[-1]
    assert (found["prediction"].to_numpy() == machine.predict(X, confounds=C)).all()
    if classes:
        assert_allclose(found["probability low"], machine.predict_proba(X, confounds=C)[:, 1])
    else:
        inside = (found["low"] <= new.frame["y"]) & (new.frame["y"] <= found["high"])
        assert 0.75 <= inside.mean() <= 1.0  # of y, most of which the confounds say
        assert_allclose((found["low"] + found["high"]) / 2, found["prediction"])


def test_a_table_without_the_confounds_is_told(tmp_path):
    loaded, _, _ = model_of(tmp_path / "m", False)
    new = frame(60, 1)
    lacking = Table(new.frame.drop(columns="site"), "b.csv", "csv")
    found, _, warnings = predicted(loaded, lacking, 0.9)
    assert "lacks 'site'" in warnings[0]
    assert "score of the report and these intervals do not describe these predictions" in warnings[0]
    X = loaded.pipeline[:-1].transform(new.frame[["a", "b"]])
    assert_allclose(found["prediction"], loaded.pipeline[-1].predict(X))


def test_confounds_of_new_rows_are_read_as_in_training(tmp_path):
    loaded, _, _ = model_of(tmp_path / "m", False)
    age = loaded.schema.confounds[0]
    new = frame(4, 1).frame.assign(age=[np.nan, 50, 60, 70], site=["s", "t", "u", None])
    C, absent, notes = loaded.schema.confounds_in(Table(new, "b.csv", "csv"))
    assert not absent
    assert_allclose(C[:, 0], (np.array([age.typical, 50, 60, 70]) - age.mean) / age.scale)
    assert C[:, 1].tolist() == [0, 1, 0, 0]
    assert any("'u'" in each for each in notes)


@pytest.mark.parametrize("classes", [False, True])
def test_the_permutation_test_knows_the_confounds(classes):
    """Features that say nothing but age and site, and a target that follows both: nothing is found."""
    data = frame(80, classes=classes)
    wishes = Wishes("y", confounds=("age", "site"))
    rows, options = prepare(data, wishes), Options(permutations=99, kernel="linear")
    test = permutation_test(rows, options)
    if not classes:
        assert test.p_value <= 0.05  # b says more than they do
    assert ("probabilities given the confounds" if classes else "residuals are permuted") in test.how
    assert test.given_confounds
    noise = data.frame.assign(a=data.frame["age"] + np.sin(np.arange(80.0)), b=np.cos(np.arange(80.0) ** 2))
    test = permutation_test(prepare(Table(noise, "a.csv", "csv"), wishes), options)
    assert test.p_value > 0.05
    plain = permutation_test(prepare(Table(noise, "a.csv", "csv"), Wishes("y")), options)
    assert plain.p_value == 0.01
    assert not plain.given_confounds


def test_whole_groups_exchange_their_labels_by_the_means_of_their_confounds():
    """All rows of a group have its label, which depends on the age of the group; features know the age alone."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(40), 3)
    age = rng.normal(size=40)
    y = np.where(age + 0.3 * rng.logistic(size=40) > 0, "high", "low")[groups]
    columns = {"a": age[groups] + rng.normal(size=120), "age": age[groups], "group": groups.astype(str), "y": y}
    rows = prepare(Table(pd.DataFrame(columns), "a.csv", "csv"), Wishes("y", confounds=("age",), groups="group"))
    data = PermutationData(rows.X, rows.y, confounds=Confounds(rows.confounds))
    scheme, _ = keep_association(LSSVC(), data, WholeGroups(rows.groups))
    orders = scheme.orders(len(rows), 200, np.random.RandomState(0))
    high = (rows.y == rows.y[0]).astype(float)
    permuted = [np.corrcoef(high[order], rows.confounds[:, 0])[0, 1] for order in orders]
    truth = np.corrcoef(high, rows.confounds[:, 0])[0, 1]
    assert abs(truth) > 0.5
    assert_allclose(np.mean(permuted), truth, atol=0.1)
    for order in orders[:20]:
        assert all(len(set(high[order][rows.groups == group])) == 1 for group in np.unique(rows.groups))
