"""Frozen dataclasses as JSON and back, by the types of their fields."""

import math
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import numpy as np


def plain(value: Any) -> Any:
    """Dataclasses, arrays and tuples as what JSON knows."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def built(kind: Any, value: Any) -> Any:
    """What ``plain`` was given, from what it made and the type of the field; TypeError where these do not agree."""
    if get_origin(kind) in (Union, UnionType):
        return None if value is None else built(get_args(kind)[0], value)
    if is_dataclass(kind):
        types, make = get_type_hints(kind), cast(Any, kind)
        return make(**{name: built(types[name], each) for name, each in _a(dict, value).items()})
    if get_origin(kind) is tuple:
        return tuple(built(get_args(kind)[0], each) for each in _a(list, value))
    if get_origin(kind) is dict:
        return {key: built(get_args(kind)[1], each) for key, each in _a(dict, value).items()}
    if kind is np.ndarray:
        numbers = [math.nan if each is None else each for each in _a(list, value)]
        return np.array(numbers if None in value else value)
    if kind is float:
        return math.nan if value is None else _a((int, float), value)
    return _a(kind, value)


def _a(kind, value):
    """The value, if it is of this kind; True and False are no numbers."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{str(value)[:40]!r} is of another type")
    return value
