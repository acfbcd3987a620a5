"""A run: honest numbers, the same as the library's own functions give, for every kind of table."""

import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss, r2_score, roc_auc_score

from support import intervals as plain

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless import FoldlessSearchCV, tables  # noqa: E402
from foldless.model_selection import nested_cross_validate  # noqa: E402
from foldless.tables import Options, Run, Study, Table, TableError, Wishes, outer_folds, prepare  # noqa: E402
from foldless.tables.estimating import left_out, nested, tune  # noqa: E402
from foldless.tables.folds import blind_folds  # noqa: E402
from foldless.tables.looking import closer_look  # noqa: E402
from foldless.tables.scores import ROC, measures  # noqa: E402
from foldless.tables.searching import SHARES, search_of  # noqa: E402
from foldless.tables.testing import permutation_test  # noqa: E402

QUICK = Options(permutations=19)


@pytest.fixture(autouse=True)
def few_folds(monkeypatch):
    monkeypatch.setattr("foldless.tables.folds.MORE_FOLDS", 3)
    monkeypatch.setattr("foldless.tables.scores.N_BOOTSTRAP", 30)
    monkeypatch.setattr("foldless.tables.looking.SHARES", (1.0,))
    monkeypatch.setattr(
        "foldless.tables.searching.FoldlessSearchCV", partial(FoldlessSearchCV, param_grid={"model__alpha": [0.1, 1.0]})
    )
    monkeypatch.setattr("foldless.tables.testing.ALPHAS", (0.1, 1.0))
    monkeypatch.setattr("foldless.tables.testing.WIDTHS", (1.0,))


def frame(n=45, seed=0, **more):
    rng = np.random.default_rng(seed)
    a, town = rng.normal(size=n), rng.choice(["Ulm", "Bonn"], n)
    gap = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    y = np.where(a + (town == "Ulm") + 0.5 * rng.normal(size=n) > 0.5, "sick", "well")
    return pd.DataFrame({"a": a, "town": town, "gap": gap, **more, "y": more.get("y", y)})


def table(*args, **more):
    return Table(frame(*args, **more), "a.csv", "csv")


def test_a_study_says_what_the_library_says():
    data = table()
    study, model = Run(data, Wishes("y"), QUICK).study()
    rows = prepare(data, Wishes("y"))
    nested = nested_cross_validate(search_of(rows, QUICK), rows.X, rows.y, cv=outer_folds(rows))
    assert_allclose(study.nested[0].value, nested.test_score.mean())
    _, low, high = nested.interval()
    assert_allclose([study.nested[0].low, study.nested[0].high], [low, min(high, 1.0)])
    found = study.held_out
    assert_allclose(np.mean(found.loo_prediction == found.truth), study.leave_one_out[0].value)
    assert_allclose(roc_auc_score(found.truth == "well", found.loo_decision), study.leave_one_out[2].value)
    assert_array_equal(model[-1].loo_predict(), found.loo_prediction)
    assert_allclose(study.test.p_value, (1 + np.sum(study.test.null >= study.test.score)) / 20)
    assert study.classes == ("sick", "well")
    assert found.loo_probability.shape == (45, 2)
    assert {each.column for each in study.importance} == {"a", "town", "gap"}
    assert "over 3 folds" in study.importance_how
    assert study.surprising[0].surprise == max(each.surprise for each in study.surprising)
    assert Study.from_json(study.to_json()).to_json() == study.to_json()


def test_values_have_errors_beside_r2():
    rng = np.random.default_rng(0)
    study, _ = Run(table(40, y=rng.normal(size=40) + frame(40)["a"]), Wishes("y"), QUICK).study()
    assert [each.name for each in study.nested] == ["R2", "mean absolute error", "root mean squared error"]
    assert all(0 <= each.low <= each.value <= each.high for each in study.nested[1:])
    assert_allclose(study.leave_one_out[0].value, r2_score(study.held_out.truth, study.held_out.loo_prediction))
    assert study.held_out.loo_probability is None


@pytest.mark.parametrize("lines", [["1,2,yes", "2,1,no", "3,5,yes"], ["1,2,0.5", "2,1,1.5", "3,5,2.25"]])
def test_three_rows_have_a_study(tmp_path, lines):
    (tmp_path / "a.csv").write_text("\n".join(["a,b,y", *lines]))
    study, _ = Run(tables.read_table(tmp_path / "a.csv"), Wishes("y")).study()
    assert study.test is None
    assert any("So few rows" in each for each in study.notes)
    assert len(study.held_out.truth) == 3


def test_sparse_features_stay_sparse():
    X = sp.random(50, 200, density=0.1, random_state=0, format="csr")
    data = Table(pd.DataFrame({"target": np.arange(50) % 2}), "a.svmlight", "svmlight", X)
    study, model = Run(data, Wishes(), QUICK).study()
    assert study.model.kernel == "linear"
    assert sp.issparse(model[-1].X_fit_)


def test_many_rows_are_approximated_and_told(monkeypatch):
    approximate_beyond(40, monkeypatch)
    run = Run(table(600), Wishes("y"), Options(kernel="rbf"))
    chosen, model = run.tuned()
    assert repr(model[-1].kernel) == "Nystroem('rbf', n_landmarks=500)"
    assert chosen.kernel == "rbf"
    assert set(chosen.params) == {"alpha", "gamma"}
    assert chosen.landmarks == 500
    assert run.notes()[0].startswith("Approximation")
    assert "that of 500 landmarks" in run.notes(model=chosen)[0]
    monkeypatch.setattr("foldless.tables.running.MOST_ROWS", 30)
    rows = prepare(table(), Wishes("y"))
    assert len(rows) == 30
    assert "drawn at random" in rows.notes[0]


def approximate_beyond(n, monkeypatch):
    for module in ("preparing", "estimating", "model_file"):
        monkeypatch.setattr(f"foldless.tables.{module}.MOST_REPEATED", n)


def test_labels_move_within_groups_or_with_them():
    groups = np.repeat([f"g{v}" for v in range(15)], 3)
    rows = prepare(table(group=groups), Wishes("y", groups="group"))
    for train, test in outer_folds(rows):
        assert not set(rows.groups[train]) & set(rows.groups[test])
    labels = np.repeat(np.random.default_rng(0).permutation(["a", "b"] * 7 + ["a"]), 3)
    rows = prepare(table(group=groups, y=labels), Wishes("y", groups="group"))
    assert "groups exchange" in permutation_test(rows, QUICK).how
    with pytest.raises(TableError, match="all rows are in one group"):
        prepare(table(group="all"), Wishes("y", groups="group"))


def test_held_out_probabilities_of_many_classes_are_as_sure_as_they_are_right(monkeypatch):
    monkeypatch.setattr("foldless.tables.estimating.EACH_CALIBRATED", 0)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 8, 160)
    X = 1.5 * rng.normal(size=(8, 5))[codes] + rng.normal(size=(160, 5))
    data = pd.DataFrame(X, columns=list("abcde")).assign(y=[f"class {each:02d}" for each in codes])
    rows = prepare(Table(data, "a.csv", "csv"), Wishes("y"))
    found = left_out(rows, QUICK, tune(rows, QUICK).best_estimator_)
    right = np.mean(found.probability.argmax(1) == codes)
    assert abs(found.probability.max(1).mean() - right) < 0.06
    assert log_loss(rows.y, found.probability) < 1.1


def test_the_area_under_the_curve_counts_pairs():
    y, decision = np.array([0, 0, 1, 1, 1]), np.array([0.1, 0.4, 0.4, 0.3, 0.9])
    assert_allclose(ROC.compute(y, None, decision), roc_auc_score(y, decision))


def test_a_time_limit_ends_the_permutations():
    rows = prepare(table(), Wishes("y"))
    assert len(measures(rows)) == 3
    test = permutation_test(rows, Options(permutations=300), seconds=1e-3)
    assert len(test.null) == 99
    assert "as the time allows" in test.how


def test_every_phase_has_a_share_of_the_time(monkeypatch):
    rows = prepare(table(), Wishes("y"))
    assert sum(SHARES.values()) <= 1 + 1e-9
    model = tune(rows, QUICK).best_estimator_
    called = []
    monkeypatch.setattr(type(model[-1]), "loo_predict_proba", lambda machine: called.append(1))
    left_out(rows, Options(time_limit=60.0), model)
    left_out(rows, Options(), model)
    assert len(called) == 2
    assert left_out(rows, Options(time_limit=1.0), model).probability.shape == (45, 2)
    assert len(called) == 2
    outer = nested(rows, QUICK)
    assert closer_look(rows, outer, Options(time_limit=1e-9)) == ((), (), "")
    assert len(closer_look(rows, outer, Options())[0]) == 3


def test_a_class_of_few_among_many_rows_is_refused():
    data = frame(300, y=np.r_[["rare"] * 4, ["common"] * 296])
    with pytest.raises(TableError, match="class 'rare' of 300 rows has fewer than 5"):
        prepare(Table(data, "a.csv", "csv"), Wishes("y"))


def test_few_rows_have_their_confounds_taken_out(tmp_path):
    data = frame(10, site=np.resize(["s", "t", "s"], 10), y=np.resize(["yes", "no"], 10))
    run = Run(Table(data, "a.csv", "csv"), Wishes("y", confounds=("site",)), QUICK)
    _, model = run.tuned()
    assert model[-1].confound_coef_.shape == (1, 1)
    tables.save_model(tmp_path / "m", run.rows, model, {})
    tables.load_model(tmp_path / "m")


def test_a_test_that_cannot_be_made_leaves_the_rest(monkeypatch):
    def fails(*_):
        raise ValueError("too few groups")

    monkeypatch.setattr("foldless.tables.running.permutation_test", fails)
    run = Run(Table(frame(), "a.csv", "csv"), Wishes("y"), QUICK)
    assert run.tested() is None
    assert run.said[-1] == "permutation test: not made. too few groups"


def test_an_interval_says_whose_it_is():
    apart = table(40, sure=np.repeat([0.0, 1.0], 20), y=np.repeat(["sick", "well"], 20))
    study, _ = Run(apart, Wishes("y"), Options(permutations=0)).study()
    perfect = np.diag([20.0, 20.0])
    ends = [plain.of_share(1.0, 40), plain.of_labels(plain.balanced, perfect, [20, 20]), plain.of_area(1.0, 20, 20)]
    for scores, how in (
        (study.nested, "from the scores of the folds (Nadeau & Bengio 2003), widened to what"),
        (study.leave_one_out, "is not counted, widened to what"),
    ):
        for score, expected in zip(scores, ends, strict=True):
            assert_allclose([score.value, score.low, score.high], [1.0, *expected], atol=1e-5)
            assert how in score.how
    assert "40 rows allow (Clopper & Pearson 1934)" in study.nested[0].how
    study, _ = Run(table(), Wishes("y"), Options(permutations=0)).study()
    assert "Nadeau & Bengio" in study.nested[0].how


def test_the_baseline_of_few_rows_does_not_see_the_row(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,y\n1,2,0.5\n2,1,1.5\n3,5,2.5\n")
    study, _ = Run(tables.read_table(tmp_path / "a.csv"), Wishes("y")).study()
    others = [2.0, 1.5, 1.0]
    assert_allclose(study.baseline[0].value, r2_score([0.5, 1.5, 2.5], others))
    assert_allclose(study.baseline[1].value, 1.0)
    (tmp_path / "a.csv").write_text("a,b,y\n1,2,s\n2,1,s\n3,5,w\n4,4,w\n")
    study, _ = Run(tables.read_table(tmp_path / "a.csv"), Wishes("y")).study()
    assert study.baseline[0].value == 0.0  # each row leaves more of the other class
    assert "other rows" in study.baseline[0].how


def test_what_weights_count_in_is_told():
    run = Run(table(weight=np.ones(45)), Wishes("y", weights="weight"), QUICK)
    assert any("every row once" in each for each in run.notes())
    assert not any("every row once" in each for each in Run(table(), Wishes("y"), QUICK).notes())


def grouped(n, n_groups, seed=0):
    rng = np.random.default_rng(seed)
    a, group = rng.normal(size=n), np.arange(n) % n_groups
    y = np.where(a + 0.5 * rng.normal(size=n) > 0, "sick", "well")
    return pd.DataFrame({"a": a, "b": rng.normal(size=n), "g": [f"g{v}" for v in group], "y": y})


@pytest.mark.parametrize(
    ("n", "how", "tested"),
    [
        (80, "the choice is repeated", "a smaller search, of 2 settings"),
        (1200, "the default setting was", "one setting"),
    ],
)
def test_few_groups_have_a_test(n, how, tested):
    run = Run(Table(grouped(n, 4), "a.csv", "csv"), Wishes("y", groups="g"), QUICK)
    test = run.tested()
    assert test.p_value == 0.05
    assert how in test.how
    assert tested in test.tested
    assert test.n_rows == n


def test_a_rare_class_in_many_rows_has_a_test():
    data = grouped(1200, 3).drop(columns="g")
    data.loc[data.index[:8], "y"] = "rare"
    data.loc[data.index[:8], "b"] += 9
    test = Run(Table(data, "a.csv", "csv"), Wishes("y"), QUICK).tested()
    assert test.p_value == 0.05
    assert "too few rows of a class" in test.how


def test_folds_of_whole_groups_hold_no_class_alone():
    data = grouped(60, 10)
    data["y"] = np.where(data["g"].isin(["g0", "g9"]), "sick", "well")
    rows = prepare(Table(data, "a.csv", "csv"), Wishes("y", groups="g"))
    for seed in range(20):
        assert all(len(np.unique(rows.y[train])) == 2 for train, _ in blind_folds(rows, seed))


def test_advice_on_python_is_left_out_of_notes():
    run = Run(table(), Wishes("y"), QUICK)
    with run.phase("tuning"):
        warnings.warn("the best alpha, 1, lies on the edge of the automatic grid. Give param_grid.", stacklevel=1)
        warnings.warn("this search of 7000 rows is expected to take about 12 minutes. Quicker are", stacklevel=1)
        warnings.warn("the outer splits are expected to take about 4 minutes; verbose=1 shows", stacklevel=1)
        warnings.warn("other \n words", stacklevel=1)
        warnings.warn("FoldlessSearchCV: stopped by time_limit after 3 evaluations: best_params_ are", stacklevel=1)
    assert run.said == [
        "tuning: the best setting lies on the edge of those that were looked at; one beyond may be a little better.",
        "tuning: other words",
        "The time was up before all settings were looked at; the best until then were taken.",
    ]


@pytest.mark.parametrize("module", [np, pd, __import__("scipy"), __import__("sklearn")])
def test_warnings_of_other_libraries_are_known_by_their_place_not_by_the_name_of_a_folder(module, tmp_path):
    run = Run(table(), Wishes("y"))
    theirs = Path(module.__file__).parent / "inside" / "file.py"
    ours = tmp_path / module.__name__ / "foldless" / "estimators" / "base.py"
    with run.phase("looking"):
        for path in (theirs, ours):
            warnings.warn_explicit(f"of {path.name}", UserWarning, str(path), 1)
    assert run.said == ["looking: of base.py"]
