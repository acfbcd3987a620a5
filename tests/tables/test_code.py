"""The Python that a study prints repeats its numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless.tables import Options, Run, Wishes, read_table  # noqa: E402


def frame(n, seed=0):
    rng = np.random.default_rng(seed)
    a, town = rng.normal(size=n), rng.choice(["Köln", "Ulm"], n)
    y = np.where(a + (town == "Ulm") + 0.5 * rng.normal(size=n) > 0.5, "süß", "sauer")
    return pd.DataFrame({"größe": a, "town": town, "weight": rng.uniform(1, 2, n), "g": np.arange(n) // 3, "y": y})


@pytest.mark.filterwarnings("ignore:FoldlessSearchCV")
@pytest.mark.parametrize(
    ("n", "encoding", "options", "more"),
    [
        (40, "latin-1", Options(permutations=0, seed=3), {}),
        (40, "utf-8", Options(permutations=19, seed=3), {}),
        (40, "utf-8", Options(permutations=0, time_limit=600.0), {"weights": "weight"}),
        (40, "utf-8", Options(permutations=0, kernel="linear", impute="mean"), {"categorical": ["town"]}),
        (10, "latin-1", Options(permutations=0), {"weights": "weight"}),
    ],
)
def test_the_code_repeats_the_run(tmp_path, monkeypatch, capsys, n, encoding, options, more):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("foldless.tables.folds.MORE_FOLDS", 2)
    frame(n).to_csv("a.csv", index=False, encoding=encoding)
    wishes = Wishes("y", drop=["g"], **more)
    study, _ = Run(read_table("a.csv", encoding=encoding), wishes, options).study()
    names = {}
    exec(study.code, names)
    assert ("permutation_test" in study.code) == (study.test is not None) == (options.permutations > 0)
    if study.test is not None:
        assert "its p-value is not one of the nested scores" in study.code
        assert_allclose(names["test"].null, study.test.null)
        assert names["test"].p_value == study.test.p_value
    said = capsys.readouterr().out
    assert "time_limit=120" in study.code or options.time_limit is None
    if n == 10:
        found = [each.value for each in names["nested"].held_out.scores]
        assert "alpha" not in said
    else:
        found = [names["nested"].test_score[each].mean() for each in names["nested"].test_score]
        best = names["search"].best_params_
        assert_allclose(best["model__alpha"], study.model.params["alpha"])
    assert_allclose(found, [each.value for each in study.nested])
    assert study.nested[0].name.replace(" ", "_") in said or n == 10
