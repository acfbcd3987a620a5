"""The fields of all objects that pickles of models hold: written anew by ``python -m support.layout`` in tests/."""

import json
import warnings
from pathlib import Path

import numpy as np

from foldless.estimators import versions
from support.kinds_of_models import X, every_kernel, every_model, values

FILE = Path(__file__).with_name("layout.json")


def layout():
    """{"layout": number, "fields": {class: names of its fields}} of one model of every kind."""
    fields: dict[str, set] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [make() for make in every_model.values()]
    estimator = type(models[0])
    models += [estimator(kernel).fit(X, values > 0) for kernel in every_kernel.values()]
    for model in models:
        add_fields(model, fields, set())
    return {"layout": versions.LAYOUT, "fields": {name: sorted(fields[name]) for name in sorted(fields)}}


def add_fields(thing, fields, seen):
    """Add the fields of an object, and of all that it holds."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    kind, inside = type(thing), ()
    if kind.__module__.startswith("foldless."):
        state = thing._asdict() if hasattr(thing, "_asdict") else thing.__getstate__() or {}
        fields.setdefault(f"{kind.__module__}.{kind.__qualname__}", set()).update(state)
        inside = state.values()
    elif isinstance(thing, dict):
        inside = thing.values()
    elif isinstance(thing, list | tuple) or (isinstance(thing, np.ndarray) and thing.dtype == object):
        inside = list(thing)
    elif kind.__module__.startswith("sklearn."):
        inside = vars(thing).values()
    for each in inside:
        add_fields(each, fields, seen)


if __name__ == "__main__":
    FILE.write_text(json.dumps(layout(), indent=1) + "\n")
