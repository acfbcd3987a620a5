"""The fuzz itself: its oracles are right, and it finds what is wrong."""

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from foldless import LSSVC

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import __main__ as command
from fuzz import scores
from fuzz.discriminants import Discriminant, jacobi
from fuzz.judge import Judge, literal
from fuzz.moments import interrupted_at, moments
from fuzz.oracles import LD, Fits, Problem, Refit, kernel_matrix, minimum_norm, solve


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def problem(X, Y, kernel, **options):
    Y = np.asarray(Y, LD).reshape(len(X), -1)
    return Problem(kernel_matrix(kernel, X, X), Y, options.pop("w", np.ones(len(X), LD)), **options)


def test_elimination_and_jacobi_rotations_solve_systems_and_eigenproblems(rng):
    A = rng.normal(size=(7, 7))
    assert np.abs(A @ solve(A, np.eye(7)) - np.eye(7)).max() < 1e-13
    values, vectors = jacobi(A + A.T)
    assert np.abs((A + A.T) @ vectors - vectors * values).max() < 1e-13
    assert np.abs(values - np.linalg.eigvalsh(A + A.T)).max() < 1e-13


def test_fit_of_the_fuzz_equals_a_fit_by_hand():
    # rows 0 and 2, values 0 and 2: slope 2 / (2 + alpha), mean 1
    p = problem(np.array([[0.0], [2.0]]), [0.0, 2.0], {"kernel": "linear"}, alpha=2.0)
    fits = Refit(p, [0, 1]).at([0, 1])
    assert np.abs(fits.values[:, 0] - [0.5, 1.5]).max() < 1e-15


@pytest.mark.parametrize("kernel", [{"kernel": "rbf", "gamma": 0.3}, {"kernel": "laplacian", "gamma": 0.3}])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_ridge(rng, kernel, weighted):
    X, y = rng.normal(size=(15, 3)), rng.normal(size=15)
    w = rng.uniform(0.2, 3.0, 15) if weighted else np.ones(15)
    p = problem(X, y, kernel, alpha=0.1, w=w.astype(LD), intercept=False)
    expected = KernelRidge(alpha=0.1, **kernel).fit(X[:10], y[:10], sample_weight=w[:10]).predict(X[10:])
    assert np.abs(Refit(p, np.arange(10)).at(np.arange(10, 15)).values[:, 0] - expected).max() < 1e-12


def test_ridge_and_the_coefficient_penalty(rng):
    X, y = rng.normal(size=(15, 3)), rng.normal(size=15) + 5
    w = rng.uniform(0.2, 3.0, 15)
    p = problem(X, y, {"kernel": "linear"}, alpha=0.1, w=w.astype(LD))
    expected = Ridge(alpha=0.1).fit(X[:10], y[:10], sample_weight=w[:10]).predict(X[10:])
    assert np.abs(Refit(p, np.arange(10)).at(np.arange(10, 15)).values[:, 0] - expected).max() < 1e-12
    # beta' beta in place of beta' K beta: ridge on the columns of K, of all rows or of those that are named
    p.penalty = "coef"
    K = np.asarray(p.K, float)
    for p.functions, columns in ((None, np.arange(15)), (np.arange(4, 12), np.arange(4, 12))):
        ridge = Ridge(alpha=0.1).fit(K[:10, columns], y[:10], sample_weight=w[:10])
        expected = ridge.predict(K[10:, columns])
        assert np.abs(Refit(p, np.arange(10)).at(np.arange(10, 15)).values[:, 0] - expected).max() < 1e-11


def test_discriminants_without_penalty_are_linear_ones(rng):
    X, codes = rng.normal(size=(30, 3)), np.arange(30) % 3
    X[:, 0] += codes
    p = problem(X, np.eye(3)[codes], {"kernel": "linear"}, alpha=1e-9)
    ours = Discriminant(p, np.arange(20), codes, 3).decisions(np.arange(20, 30)).values
    theirs = LinearDiscriminantAnalysis(priors=np.ones(3) / 3).fit(X[:20], codes[:20]).decision_function(X[20:])
    differences = [each - each.mean(1, keepdims=True) for each in (np.asarray(ours, float), theirs)]
    assert np.abs(differences[0] - differences[1]).max() < 1e-6


def test_least_solutions_of_the_fuzz_have_least_norm(rng):
    X, Y = rng.normal(size=(8, 2)), rng.normal(size=(8, 1))
    K = kernel_matrix({"kernel": "rbf", "gamma": 0.5}, X, X)
    G = np.hstack([np.ones((6, 1)), np.asarray(K[:6, :6], float) + 0.1 * np.eye(6)])
    x = np.linalg.pinv(G) @ Y[:6]
    fits, _ = minimum_norm(K, Y, np.arange(6), np.array([6, 7]), 0.1)
    assert np.abs(fits - (x[0] + np.asarray(K[6:, :6], float) @ x[1:])).max() < 1e-12


def test_intervals_of_scores(rng):
    values, codes = rng.normal(size=20), np.arange(20) % 2
    sharp, same = Fits(values.astype(LD), np.zeros(20), np.zeros(20)), np.arange(20)
    low, high = scores.roc_auc(sharp, codes, same)
    assert low == high == pytest.approx(roc_auc_score(codes, values), abs=1e-15)
    blurred = Fits(values.astype(LD), np.full(20, 0.1), np.full(20, 0.1))
    low, high = scores.roc_auc(blurred, codes, same)
    assert low < roc_auc_score(codes, values) < high
    assert scores.roc_auc(blurred, codes, np.zeros(20, int)) == (0.5, 0.5)  # equal rows tie whatever the tolerance
    low, high = scores.accuracy(sharp, codes)
    assert low == high == np.mean((values > 0) == codes)


def test_judge_accepts_equal_and_finds_different_values():
    judge = Judge()
    judge.start("area", 0)
    judge.values("near", np.array([1.0]), [1.0 + 1e-9], 1e-8)
    judge.values("far", np.array([1.0]), [1.0 + 1e-7], 1e-8)
    judge.values("ill", np.array([1.0]), [2.0], np.inf)
    judge.values("nan", np.array([np.nan]), [2.0], 1e-8)
    assert [finding.kind for finding in judge.findings] == ["far", "nan"]
    assert (judge.count.comparisons, judge.count.unjudged, judge.count.beyond) == (4, 1, 2)
    values = np.array([[0.1, 1e-300], [1e13, -3.0]])
    assert np.array_equal(eval(literal(values), {"np": np}), values)


@pytest.mark.filterwarnings("ignore")
def test_a_wrong_result_is_found_and_told(monkeypatch, capsys):
    import foldless

    few = ["--programs", str(6 * len(command.AREAS)), "--seed", "2", "--area", "interval"]
    assert command.main(few) == 0
    right = foldless.LSSVR.predict_interval
    monkeypatch.setattr(foldless.LSSVR, "predict_interval", lambda *a, **k: right(*a, **k) * (1 + 1e-6))
    capsys.readouterr()
    assert command.main(few) == 1
    told = capsys.readouterr().out
    assert "--- interval: predict_interval" in told
    assert "python -m fuzz --seed 2 --only" in told
    assert "X = np.array(" in told
    assert ".predict_interval(X_new" in told


def slightly_wrong(monkeypatch, module, name, change):
    """Let a function of the library return something else."""
    own = importlib.import_module(f"foldless.{module}")
    right = getattr(own, name)
    monkeypatch.setattr(own, name, lambda *given, **options: change(right(*given, **options)))


def moved(model):
    """A fitted model with another offset."""
    if hasattr(model, "_offset"):
        model._offset = model._offset + 1e-3
    return model


def longer(found):
    """Centre, standard error and the like, with a longer error."""
    return (found[0], found[1] * 1.001, *found[2:])


BROKEN = {
    "returned models": ("_sklearn.closed_form", "fitted_on_part", moved),
    "returned models, nested": ("model_selection._nested", "_fitted_on", moved),
    "score intervals": ("_engine.inference.intervals", "nested_error", longer),
    "intervals of results": ("_engine.inference.intervals", "corrected_error", longer),
    "comparisons": ("_engine.inference.comparison", "nested_error", longer),
    "permutation, confounds": (
        "_engine.permutation.strategies",
        "truth_of",
        lambda truth: truth * np.linspace(1, 2, truth.shape[-1]),
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("area", BROKEN)
def test_the_programs_of_an_area_find_what_is_wrong_there(area, monkeypatch, capsys):
    few = ["--programs", str(12 * len(command.AREAS)), "--area", area, "--brief"]
    slightly_wrong(monkeypatch, *BROKEN[area])
    assert command.main(few) == 1
    assert f"{area}: " in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_an_interrupt_leaves_half_changed_is_found(monkeypatch, capsys):
    @contextmanager
    def half_changed(estimator):
        try:
            yield estimator
        except KeyboardInterrupt:
            moved(estimator)
            raise

    for module in ("base", "online"):
        monkeypatch.setattr(f"foldless.estimators.{module}.all_or_nothing", half_changed)
    few = ["--programs", str(6 * len(command.AREAS)), "--area", "interrupts", "--brief"]
    assert command.main(few) == 1
    assert "interrupts: " in capsys.readouterr().out


def test_interrupts_come_at_the_same_moment_again():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    count = moments(lambda: LSSVC().fit(X, y))
    assert count == moments(lambda: LSSVC().fit(X, y)) > 100
    for moment in (0, count // 4, count // 2):
        model = LSSVC()
        assert interrupted_at(moment, lambda model=model: model.fit(X, y))
        assert not hasattr(model, "dual_coef_")
    assert not interrupted_at(count, lambda: LSSVC().fit(X, y))
    assert sys.getprofile() is None


@pytest.mark.filterwarnings("ignore")
def test_an_exception_is_found(monkeypatch, capsys):
    import foldless

    def fails(*arguments, **options):
        raise ValueError("no interval today")

    monkeypatch.setattr(foldless.LSSVR, "predict_interval", fails)
    assert command.main(["--programs", str(len(command.AREAS)), "--area", "interval", "--json"]) == 1
    assert "no interval today" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_programs_repeat_with_their_seed(capsys):
    figures = []
    for _ in range(2):
        command.main(["--only", "0", "1", "2", "3", "--json"])
        figures.append([line for line in capsys.readouterr().out.splitlines() if "seconds" not in line])
    assert figures[0] == figures[1]
