"""How much the random parts of a search matter for what it finds on all rows."""

import numpy as np

from foldless import LSSVC, FoldlessSearchCV
from foldless._engine.tuning import fidelity
from foldless._sklearn import candidates


def test_ten_draws_of_the_parts_end_at_nearly_the_same_criterion(monkeypatch):
    """Parts of 250 and 500 of 1,500 rows, twelve features of which three matter, and not linearly."""
    sizes = {"FEW": 250, "MOST_AT_FIRST": 250, "AT_ONCE": 500, "MOST_IN_PART": 500}
    for name, size in sizes.items():
        monkeypatch.setattr(fidelity, name, size)
    monkeypatch.setattr(candidates, "FEW", 250)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 12))
    y = np.sin(2 * X[:, 0]) + np.sin(2 * X[:, 1]) * X[:, 2] + 0.5 * rng.normal(size=1500) > 0
    ends = []
    for seed in range(10):
        search = FoldlessSearchCV(LSSVC(), random_state=seed).fit(X, y)
        ends.append(search.best_criterion_)
        of_part = min((step for step in search.history_ if step["n_rows"] == 500), key=lambda step: step["criterion"])
        setting = {name: [of_part[name]] for name in search.best_params_}
        not_moved = FoldlessSearchCV(LSSVC(), setting, refit=False).fit(X, y)
        assert search.best_criterion_ < 1.01 * not_moved.best_criterion_
    assert max(ends) < 1.08 * min(ends)
