"""Examples in docstrings open no windows, and their figures are closed."""

import os
import sys

import pytest

os.environ.setdefault("MPLBACKEND", "agg")


@pytest.fixture(autouse=True)
def closed_figures():
    """Close all figures after each example."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
