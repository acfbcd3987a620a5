"""Studies learn a kernel, and nothing that is told of held-out rows comes from a kernel that has seen their labels."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless.kernels import Nystroem, Sum  # noqa: E402
from foldless.tables import (  # noqa: E402
    Options,
    Run,
    Table,
    Wishes,
    load_model,
    outer_folds,
    pipeline,
    prepare,
    save_model,
    testing,
)
from foldless.tables.estimating import nested, tune  # noqa: E402
from foldless.tables.looking import closer_look  # noqa: E402
from foldless.tables.searching import search_of  # noqa: E402

QUICK = Options(permutations=0)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def few_folds(monkeypatch):
    monkeypatch.setattr("foldless.tables.folds.MORE_FOLDS", 3)
    monkeypatch.setattr("foldless.tables.scores.N_BOOTSTRAP", 30)


def frame(n=90, seed=0):
    """Numbers, one of them with gaps, and a category with rare levels; the sign of two numbers decides."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    gap = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    town = rng.choice(["Ulm", "Bonn", *(f"village {k}" for k in range(20))], n, p=[0.3, 0.3, *[0.02] * 20])
    return pd.DataFrame({"a": a, "b": b, "gap": gap, "town": town, "y": np.where((a > 0) ^ (b > 0), "sick", "well")})


def values(n=90, seed=0):
    data = frame(n, seed)
    return data.assign(y=np.abs(data["a"]) + 0.1 * np.random.default_rng(seed).normal(size=n))


def rows_of(data, **wishes):
    return prepare(Table(data, "a.csv", "csv"), Wishes("y", **wishes))


def test_a_study_tells_the_kernel_that_its_search_has_learnt():
    data = frame()
    study, model = Run(Table(data, "a.csv", "csv"), Wishes("y"), QUICK).study()
    rows = rows_of(data)
    search = search_of(rows, QUICK).fit(rows.X, rows.y)
    kernel = search.best_params_["model__kernel"]
    assert study.model.kernel == "learnt"
    assert study.model.params == {
        "alpha": pytest.approx(search.best_params_["model__alpha"]),
        "gaussian_weight": pytest.approx(kernel.weights[0]),
        "gaussian_gamma": pytest.approx(kernel.terms[0].gamma),
        "laplacian_weight": pytest.approx(kernel.weights[1]),
        "laplacian_gamma": pytest.approx(kernel.terms[1].kernel.gamma),
    }
    scales = {each.feature: each.scale for each in study.model.scales}
    names = model[:-1].get_feature_names_out()
    assert_allclose(scales["a"], search.feature_scales_[list(names).index("numbers__a")])
    assert_allclose(scales["gap is missing"], search.feature_scales_[list(names).index("gaps__missingindicator_gap")])
    assert {"b", "gap", "town_Ulm", "town_Bonn"} < scales.keys()
    assert len(scales) == len(names)
    assert list(scales.values()) == sorted(scales.values(), reverse=True)
    assert {each.feature for each in study.model.scales[:2]} == {"a", "b"}
    assert any(set(each.params) == {"alpha", "gaussian_gamma"} for each in study.model.trials)
    assert set(study.folds[0].params) == set(study.model.params)
    assert any("learns the kernel anew" in each for each in study.notes)


def test_a_named_kernel_is_the_former_search():
    rows = rows_of(frame())
    model = pipeline(rows, kernel="rbf")
    assert model[-1].kernel == "rbf"
    study, _ = Run(Table(frame(), "a.csv", "csv"), Wishes("y"), replace(QUICK, kernel="rbf")).study()
    assert study.model.kernel == "rbf"
    assert set(study.model.params) == {"alpha", "gamma"}
    assert study.model.scales == ()
    assert not any("learns the kernel anew" in each for each in study.notes)


def test_nested_predictions_are_those_of_searches_on_each_training_part():
    rows = rows_of(frame())
    found = nested(rows, QUICK)
    for (train, test), params in zip(outer_folds(rows), found.params, strict=True):
        search = clone(search_of(rows, QUICK)).fit(rows.X.iloc[train], rows.y[train])
        assert_array_equal(found.held_out.prediction[test], search.predict(rows.X.iloc[test]))
        assert_allclose(found.held_out.decision[test], search.decision_function(rows.X.iloc[test]))
        assert params["kernel"] == search.best_params_["model__kernel"]


@pytest.fixture
def tested(monkeypatch):
    """The arguments of the permutation tests that a run makes."""
    calls = []
    run = testing.permutation_test_score

    def spied(model, X, y, **options):
        calls.append((model, X, y))
        return run(model, X, y, **options)

    monkeypatch.setattr(testing, "permutation_test_score", spied)
    return calls


def test_the_kernel_of_a_test_has_not_seen_the_labels_that_are_permuted(monkeypatch, tested):
    monkeypatch.setattr(testing, "REPEATED", 0)
    data = values(120)
    test = testing.permutation_test(rows_of(data), Options(permutations=9))
    assert "tested on 96 others" in test.how
    assert test.tested == "one setting, which was not chosen on these rows"
    model, X, y = tested[-1]
    assert isinstance(model[-1].kernel, Sum)
    others = data["y"].isin(y)
    assert others.sum() == len(y) == 96
    data.loc[others, "y"] = np.random.default_rng(1).normal(size=96)
    testing.permutation_test(rows_of(data), Options(permutations=9))
    again, X_again, y_again = tested[-1]
    assert again[-1].kernel == model[-1].kernel
    assert again[-1].alpha == model[-1].alpha
    assert_array_equal(X_again, X)
    assert not np.array_equal(y_again, y)


def test_a_test_of_few_rows_repeats_the_choice_with_a_named_kernel(tested):
    test = testing.permutation_test(rows_of(frame()), Options(permutations=9))
    search = tested[-1][0]
    assert search.estimator[-1].kernel == "rbf"
    assert set(search.param_grid) == {"model__alpha", "model__gamma"}
    assert test.tested == "a smaller search, of 20 settings of the kernel rbf"


def test_the_closer_look_takes_settings_that_have_not_seen_its_test_rows(monkeypatch):
    monkeypatch.setattr("foldless.tables.looking.SHARES", (0.5, 1.0))
    monkeypatch.setattr("foldless.tables.looking.FEW_ROWS", 0)
    rows = rows_of(frame())
    outer = nested(rows, QUICK)
    _, curve, _ = closer_look(rows, outer, QUICK)
    rng, (train, test) = np.random.default_rng(QUICK.seed), outer.splits[0]
    train = rng.permutation(train)
    part = rows.take(train[: len(train) // 2])
    on_half = tune(part, QUICK)
    assert [each.n_train for each in curve] == [len(part), len(train)]
    assert curve[0].test_scores == (pytest.approx(np.mean(on_half.predict(rows.X.iloc[test]) == rows.y[test])),)
    right = np.mean(outer.held_out.prediction[test] == rows.y[test])
    assert curve[1].test_scores == (pytest.approx(right),)


def approximate_beyond(n, monkeypatch):
    for module in ("preparing", "estimating", "model_file"):
        monkeypatch.setattr(f"foldless.tables.{module}.MOST_REPEATED", n)


def test_many_rows_have_landmarks_of_a_learnt_kernel(monkeypatch, tmp_path, tested):
    approximate_beyond(550, monkeypatch)
    monkeypatch.setattr(testing, "REPEATED", 0)
    run = Run(Table(frame(700), "a.csv", "csv"), Wishes("y"), Options(permutations=9))
    described, model = run.tuned()
    assert (described.kernel, described.landmarks) == ("learnt", 500)
    assert {each.feature for each in described.scales[:2]} == {"a", "b"}
    assert isinstance(model[-1].kernel, Nystroem)
    assert "500 landmarks" in run.notes(model=described)[0]
    save_model(tmp_path / "m", run.rows, model, {})
    again = load_model(tmp_path / "m").pipeline
    assert_allclose(again.decision_function(run.rows.X), model.decision_function(run.rows.X), rtol=1e-6, atol=1e-9)
    test = run.tested()
    assert isinstance(tested[-1][0][-1].kernel, Nystroem)
    assert isinstance(tested[-1][0][-1].kernel.kernel, Sum)
    assert "with 500 landmarks" in test.how


def test_few_rows_have_no_learnt_kernel():
    data = frame(10).assign(y=np.resize(["yes", "no"], 10))
    study, _ = Run(Table(data, "a.csv", "csv"), Wishes("y"), QUICK).study()
    assert study.model.kernel == "rbf + laplacian"
    assert study.model.params["gaussian_weight"] == study.model.params["laplacian_weight"] == 0.5
    assert study.model.scales == ()
