"""p-values of tables of noise are uniform; with a kernel that has seen the labels they are not."""

import numpy as np
import pytest
from scipy import stats

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
pytest.importorskip("skops", reason="tables need the extra cli")

from foldless.tables import Options, Table, Wishes, prepare, testing  # noqa: E402

REPETITIONS, LEVEL = 120, 1e-4
N, N_COLUMNS = 80, 6


def noise(seed, kind):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.normal(size=(N, N_COLUMNS)), columns=[f"column {k}" for k in range(N_COLUMNS)])
    y = rng.permutation(np.resize(["sick", "well"], N)) if kind == "classes" else rng.normal(size=N)
    return prepare(Table(data.assign(y=y), "a.csv", "csv"), Wishes("y"))


def p_values(kind):
    """p-values of tables of noise, ties broken by lot."""
    rng, values = np.random.default_rng(0), []
    for seed in range(REPETITIONS):
        test = testing.permutation_test(noise(seed, kind), Options(permutations=39, seed=seed))
        above, ties = np.sum(test.null > test.score + 1e-10), np.sum(np.abs(test.null - test.score) <= 1e-10)
        assert test.p_value == (above + ties + 1) / (len(test.null) + 1)
        values.append((above + rng.uniform() * (ties + 1)) / (len(test.null) + 1))
    return values


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("most_repeated", [0, N], ids=["learnt on other rows", "repeated"])
@pytest.mark.parametrize("kind", ["classes", "values"])
def test_p_values_of_noise_are_uniform(monkeypatch, kind, most_repeated):
    monkeypatch.setattr(testing, "REPEATED", most_repeated)
    assert stats.kstest(p_values(kind), "uniform").pvalue > LEVEL


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_kernel_that_was_learnt_on_the_tested_rows_makes_p_values_too_small(monkeypatch):
    monkeypatch.setattr(testing, "REPEATED", 0)
    monkeypatch.setattr(testing, "_two_parts", lambda rows, seed: (np.arange(len(rows)), np.arange(len(rows))))
    assert stats.kstest(p_values("values"), "uniform", alternative="greater").pvalue < LEVEL / 100
