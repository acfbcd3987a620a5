"""The display of a comparison: an interval for each pair of models."""

import numpy as np
import pytest

from foldless import LSSVC
from foldless.inspection import ComparisonDisplay
from foldless.model_selection import compare

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")


def test_a_comparison_has_an_interval_for_each_pair():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 2
    models = {"rbf": LSSVC(), "linear": LSSVC("linear"), "strong": LSSVC(alpha=10.0)}
    result = compare(models, X, y, cv=3, n_repeats=1)
    display = ComparisonDisplay.from_result(result)
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == ["rbf - linear", "rbf - strong", "linear - strong"]
    drawn = [line[:, 0].tolist() for line in display.intervals_.get_segments()]
    np.testing.assert_allclose(drawn, [[each.low, each.high] for each in result.differences])
    plt.close("all")


def test_other_results_are_refused():
    with pytest.raises(ValueError, match="must be what compare returns; got int"):
        ComparisonDisplay.from_result(3)
