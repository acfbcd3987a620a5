"""Fixtures that several folders use."""

import functools

import pytest

import foldless.readout.task as tasks
from foldless.heldout.parts import TrainingParts


@pytest.fixture(params=["part", "solve"])
def way(request, monkeypatch):
    """Both ways to the model of a training part, whichever would be cheaper."""
    monkeypatch.setattr(tasks, "TrainingParts", functools.partial(TrainingParts, strategy=request.param))
    return request.param
