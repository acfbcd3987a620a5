"""Fixtures that several folders use, and the choice of cases of ``make test``."""

import functools
from collections import Counter

import pytest

import foldless.readout.task as tasks
from support.parts import TrainingParts


@pytest.fixture(params=["part", "solve"])
def strategy(request, monkeypatch):
    """Both ways to the model of a training part, whichever would be cheaper."""
    monkeypatch.setattr(tasks, "TrainingParts", functools.partial(TrainingParts, strategy=request.param))
    return request.param


EVERY = 37  # of tests with many cases; no number of options divides it, so that all options occur


def pytest_addoption(parser):
    parser.addoption("--every", type=int, default=1, help="every so manyth case of tests marked many_cases")
    parser.addoption("--some-cases", action="store_true", help="every thirty-seventh case of tests marked many_cases")
    parser.addoption("--few-cases", action="store_true", help="every thirty-seventh case of all tests")


def pytest_collection_modifyitems(config, items):
    few = config.getoption("--few-cases")
    every = EVERY if few or config.getoption("--some-cases") else config.getoption("--every")
    if every == 1:
        return
    seen, chosen, others = Counter(), [], []
    for item in items:
        number = 0
        if few or item.get_closest_marker("many_cases") is not None:
            number = seen[item.path, item.originalname]
            seen[item.path, item.originalname] += 1
        (others if number % every else chosen).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen
