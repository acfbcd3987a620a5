"""Fixtures that several folders use, and the choice of cases of ``make test``."""

import functools
from collections import defaultdict

import pytest

import foldless._engine.readout.task as tasks
from support.parts import TrainingParts
from support.sampling import sampled_cases


@pytest.fixture(params=["part", "solve"])
def strategy(request, monkeypatch):
    """Both ways to the model of a training part, whichever would be cheaper."""
    monkeypatch.setattr(tasks, "TrainingParts", functools.partial(TrainingParts, strategy=request.param))
    return request.param


EVERY = 37


def pytest_addoption(parser):
    parser.addoption("--every", type=int, default=1, help="share of the cases of tests marked many_cases: one in EVERY")
    parser.addoption("--some-cases", action="store_true", help="one in 37 cases of tests marked many_cases, at least 3")
    parser.addoption("--few-cases", action="store_true", help="one in 37 cases of all tests, at least 3")
    parser.addoption("--interrupts", type=int, default=25, help="random moments in each slow case of interrupts")


def option_names(item):
    """The options of a case of a test, as pytest prints them: ["KFDA", "3", "KFold"]."""
    return item.callspec.id.split("-") if hasattr(item, "callspec") else []


def pytest_collection_modifyitems(config, items):
    few = config.getoption("--few-cases")
    every = EVERY if few or config.getoption("--some-cases") else config.getoption("--every")
    if every == 1:
        return
    tables = defaultdict(list)
    for item in items:
        if few or item.get_closest_marker("many_cases") is not None:
            name = getattr(item, "originalname", item.name)  # examples of docstrings have no other name
            tables[item.path, name].append(item)
    dropped = set()
    for (path, name), cases in tables.items():
        dropped |= set(cases) - set(sampled_cases(cases, every, seed=f"{path.name}/{name}", options=option_names))
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]
