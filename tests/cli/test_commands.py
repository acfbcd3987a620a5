"""The commands: what they print and write, and how they end."""

import json
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the command line needs the extra cli")
pytest.importorskip("skops", reason="the command line needs the extra cli")
pytest.importorskip("typer", reason="the command line needs the extra cli")

from typer.testing import CliRunner  # noqa: E402

import foldless  # noqa: E402
from foldless.cli.app import app  # noqa: E402
from foldless.tables import Study  # noqa: E402

RNG = np.random.default_rng(0)
N = 40
A = RNG.normal(size=N)
FRAME = pd.DataFrame({"a": A, "[red]": RNG.choice(["u", "v"], N), "y": np.where(A > 0, "sick", "well")})


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("foldless.tables.folds.MORE_FOLDS", 2)
    monkeypatch.setattr("foldless.tables.scores.N_BOOTSTRAP", 30)
    monkeypatch.setattr("foldless.tables.testing.WIDTHS", (1.0,))
    monkeypatch.setattr("foldless.tables.looking.SHARES", (1.0,))
    monkeypatch.setattr(
        "foldless.tables.searching.FoldlessSearchCV",
        partial(foldless.FoldlessSearchCV, param_grid={"model__alpha": [0.1, 1.0]}),
    )
    FRAME.to_csv("a.csv", index=False)


def run(*words, code=0):
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_report_writes_a_study_and_a_model_that_predicts(tmp_path):
    said = run("report", "a.csv", "--target", "y", "--permutations", 19, "--out", "out").stdout
    assert "[red]" in said  # a name, no markup
    assert "Task: classification, 2 classes of 'y'." in said
    assert "accuracy" in said
    study = Study.from_json((tmp_path / "out" / "study.json").read_text())
    assert study.data.n_rows == N
    new = FRAME.drop(columns="y").iloc[:3].assign(**{"[red]": ["other", "u", "v"]})
    new[["[red]", "a"]].to_parquet("new.parquet")
    result = run("predict", "out/model.foldless", "new.parquet")
    lines = [each.split(",") for each in result.stdout.splitlines()]
    assert lines[0] == ["row", "prediction", "probability sick", "probability well"]
    assert len(lines) == 4
    assert "'other'" in result.stderr
    rows = json.loads(run("predict", "out/model.foldless", "a.csv", "--json").stdout)
    assert len(rows) == N


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tune_learns_a_kernel_and_shows_its_scales(monkeypatch):
    monkeypatch.setattr("foldless.tables.searching.FoldlessSearchCV", foldless.FoldlessSearchCV)
    said = run("tune", "a.csv", "--target", "y").stdout
    assert "Model: LSSVC, learnt kernel, alpha" in said
    assert "Largest scales of features in the learnt kernel: a " in said
    assert "[red]_" in said
    assert run("predict", "a.foldless", "a.csv").stdout.count("\n") == N + 1
    said = run("tune", "a.csv", "--target", "y", "--kernel", "rbf").stdout
    assert "Model: LSSVC, rbf kernel, alpha" in said
    assert "scales" not in said


def test_json_is_all_that_is_printed():
    assert json.loads(run("tune", "a.csv", "--target", "y", "--json").stdout)["name"] == "LSSVC"
    assert json.loads(run("permute", "a.csv", "--target", "y", "--permutations", 9, "--json").stdout)["p_value"] == 0.1


def test_tune_and_permute_and_version(tmp_path):
    assert "alpha" in run("tune", "a.csv", "--target", "y", "--drop", "[red]").stdout
    assert (tmp_path / "a.foldless").exists()
    said = run("permute", "a.csv", "--target", "y", "--permutations", 19, "--quiet").stdout
    assert "p = 0.05" in said
    assert "Permutation test of a smaller search, of 5 settings of the kernel rbf: accuracy" in said
    assert "how often a score at least that good would occur if the features had nothing to do with the target" in said
    assert run("version").stdout.strip() == foldless.__version__
    assert "Survived" in run("report", "--help").stdout
    assert "--install-completion" in run("--help").stdout


def test_values_are_predicted_with_intervals():
    FRAME.assign(y=A + 0.1 * np.random.default_rng(5).normal(size=N)).to_csv("b.csv", index=False)
    run("tune", "b.csv", "--target", "y", "--quiet")
    table = pd.read_csv(pd.io.common.StringIO(run("predict", "b.foldless", "b.csv", "--coverage", 0.8).stdout))
    assert (table["low"] < table["high"]).all()


def test_predict_says_which_column_decides():
    rare = np.arange(200) % 10 == 0
    data = pd.DataFrame(
        {"a": np.random.default_rng(5).normal(size=200) + 1.5 * rare, "y": np.where(rare, "fraud", "fine")}
    )
    data.to_csv("c.csv", index=False)
    run("tune", "c.csv", "--target", "y", "--quiet")
    result = run("predict", "c.foldless", "c.csv")
    found = pd.read_csv(pd.io.common.StringIO(result.stdout))
    others = int(((found["probability fraud"] > 0.5) != (found["prediction"] == "fraud")).sum())
    assert others > 10
    assert f"In {others} of 200 rows another class" in result.stderr
    assert "The prediction follows the decision" in result.stderr


def test_predict_says_when_numbers_are_those_of_new_groups():
    FRAME.assign(g=np.arange(N) // 4).astype({"g": str}).to_csv("g.csv", index=False)
    run("tune", "g.csv", "--target", "y", "--groups", "g", "--quiet")
    assert "Probabilities are those of rows of new groups" in run("predict", "g.foldless", "g.csv").stderr
    FRAME.assign(g=np.arange(N) % 3).astype({"g": str}).to_csv("few.csv", index=False)
    run("tune", "few.csv", "--target", "y", "--groups", "g", "--quiet")  # too few groups: no probabilities
    assert "new groups" not in run("predict", "few.foldless", "few.csv").stderr


def test_flags_take_no_value_in_the_help():
    said = run("report", "--help").stdout
    lines = [line for line in said.splitlines() if "--json" in line or "--quiet" in line]
    assert len(lines) == 2
    assert not any("bool" in line for line in lines)
    assert "replaced" in said
    assert "list[str]" not in said


def test_a_quiet_report_says_its_score_and_its_files():
    words = ("report", "a.csv", "--target", "y", "--permutations", 0, "--quiet", "--out", "out")
    first, *files = run(*words).stdout.splitlines()
    score = Study.from_json(Path("out/study.json").read_text()).nested[0]
    assert first.startswith(f"accuracy {score.value:.3f} (90 % interval {score.low:.3f} to {score.high:.3f}), baseline")
    assert [each.rpartition("/")[2] for each in files] == ["study.json", "model.foldless", "report.html"]


def test_scores_of_groups_leave_out_groups():
    FRAME.assign(g=np.arange(N) // 4).astype({"g": str}).to_csv("g.csv", index=False)
    said = run("report", "g.csv", "--target", "y", "--groups", "g", "--permutations", 0, "--out", "out").stdout
    assert "group out" in said
    assert "leave-one-out" not in said
    assert "leave-one-group-out" in Study.from_json(Path("out/study.json").read_text()).timings


def test_predict_tells_in_json_too_that_confounds_are_missing():
    FRAME.assign(age=np.random.default_rng(5).normal(size=N)).to_csv("c.csv", index=False)
    run("tune", "c.csv", "--target", "y", "--confounds", "age", "--quiet")
    result = run("predict", "c.foldless", "a.csv", "--json")
    assert "lacks 'age'" in json.loads(result.stdout)[0]["warning"]
    assert "lacks 'age'" in result.stderr
    assert "warning" not in json.loads(run("predict", "c.foldless", "c.csv", "--json").stdout)[0]


@pytest.mark.parametrize(("command", "n_phases"), [("report", 7), ("tune", 2), ("permute", 2)])
def test_the_bar_of_a_command_goes_to_its_end(monkeypatch, command, n_phases):
    told = []

    @contextmanager
    def progress(shown, total):
        told.append(total)
        yield told.append

    monkeypatch.setattr("foldless.cli.show.progress", progress)
    run(command, "a.csv", "--target", "y", "--permutations", 9)
    assert told[0] == n_phases == len(told) - 1
