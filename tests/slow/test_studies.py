"""Whole studies: their code repeats them, and groups, weights, confounds and unequal classes are heeded."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import balanced_accuracy_score

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless.tables import Options, Run, Table, Wishes, read_table  # noqa: E402

QUICK = Options(permutations=19)


def frame(n=45, seed=0, **more):
    rng = np.random.default_rng(seed)
    a, town = rng.normal(size=n), rng.choice(["Ulm", "Bonn"], n)
    gap = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    y = np.where(a + (town == "Ulm") + 0.5 * rng.normal(size=n) > 0.5, "sick", "well")
    return pd.DataFrame({"a": a, "town": town, "gap": gap, **more, "y": more.get("y", y)})


def table(*args, **more):
    return Table(frame(*args, **more), "a.csv", "csv")


def test_the_code_of_a_study_repeats_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame(30).to_csv("a.csv", index=False)
    study, _ = Run(read_table("a.csv"), Wishes("y", drop=["gap"]), Options(permutations=0)).study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(study.code, {})
    assert f"accuracy: test score {study.nested[0].value:.4f}" in capsys.readouterr().out


def test_unbalanced_classes_count_alike():
    data = frame(60)
    data["y"] = np.where(data["a"] > np.sort(data["a"])[-12], "fraud", "fine")
    study, _ = Run(Table(data, "a.csv", "csv"), Wishes("y"), QUICK).study()
    assert study.model.name == "KernelFisherDiscriminant"
    assert study.nested[0].name == "balanced accuracy"
    found = study.held_out
    assert_allclose(study.leave_one_out[0].value, balanced_accuracy_score(found.truth, found.loo_prediction))
    assert study.baseline[0].value == 0.5


def test_groups_stay_together_everywhere():
    groups = np.repeat([f"g{v}" for v in range(15)], 3)
    study, _ = Run(table(group=groups), Wishes("y", groups="group"), QUICK).study()
    folds = pd.Series(study.held_out.fold).groupby(study.held_out.groups).nunique()
    assert folds.max() == 1
    assert "labels move within groups" in study.test.how


def test_confounds_and_weights_are_taken():
    rng = np.random.default_rng(0)
    site, weight = rng.choice(["s", "t"], 40), rng.uniform(1, 2, 40)
    data = table(40, site=site, weight=weight)
    wishes = Wishes("y", confounds=("site",), weights="weight")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study, model = Run(data, wishes, QUICK).study()
    assert {each.name: each.role for each in study.data.columns}["site"] == "confound"
    assert hasattr(model[-1], "confound_coef_")
    assert "sample_weight=rows.weights" in study.code
