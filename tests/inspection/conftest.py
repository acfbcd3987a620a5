"""Figures without a screen, closed before and after each test."""

import pytest


@pytest.fixture(autouse=True)
def plt():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    yield plt
    plt.close("all")
