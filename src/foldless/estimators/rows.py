"""Updates of estimators: the rows that a caller names, changes that happen completely or not at all, and threads.

Positions count from 0 in the order of insertion; when rows are forgotten, later rows move up. Ids are given with the
rows and stay. All of them are checked before anything is changed.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import wraps
from threading import get_ident
from typing import TypeAlias
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike

from foldless._engine.precision.growing import StaleError
from foldless.kernels.registry import is_object

PerRow: TypeAlias = ArrayLike | None  # something for each row: weights, confounds
Ids: TypeAlias = Iterable | None


def without_none(**arguments):
    """The arguments that are not None, for methods that may not take the others."""
    return {name: value for name, value in arguments.items() if value is not None}


_writers: dict[int, tuple[int, ref]] = {}  # thread that changes an estimator, and its block, by the id of the estimator


class all_or_nothing:
    """Change an estimator: the block works on a copy, whose fields replace those of the estimator at the end.

    A block that fails, or is interrupted, changes nothing. Other threads see the estimator as it was before the block
    or as it is after it. They cannot change it while the block runs.
    """

    def __init__(self, estimator):
        self.estimator = estimator

    def __enter__(self):
        self._check_no_other_writer()
        self.draft = with_fields(self.estimator, vars(self.estimator).copy())
        return self.draft

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self.estimator.__dict__ = vars(self.draft)
        _writers.pop(id(self.estimator), None)

    def _check_no_other_writer(self):
        """Become the writer of the estimator, until the block ends, or is gone after an interrupt."""
        key = id(self.estimator)
        block = ref(self, lambda block: _release(key, block))
        thread, _ = _writers.setdefault(key, (get_ident(), block))
        if thread != get_ident():
            raise RuntimeError(
                f"another thread is fitting or updating this {type(self.estimator).__name__}. One thread at a time can"
                " change a model: use a threading.Lock, or a copy of the model in each thread."
            )
        _writers[key] = thread, block


def _release(key, block):
    """Forget the writer of an estimator whose block was never left."""
    if _writers.get(key, (0, None))[1] is block:
        _writers.pop(key, None)


def _has_other_writer(estimator):
    """Whether another thread is changing an estimator."""
    thread, _ = _writers.get(id(estimator), (get_ident(), None))
    return thread != get_ident()


if hasattr(os, "register_at_fork"):  # threads of the parent process do not go on in a child
    os.register_at_fork(after_in_child=_writers.clear)


def with_fields(estimator, fields):
    """An estimator of the same class with this dictionary of fields, which is not copied."""
    other = object.__new__(type(estimator))
    other.__dict__ = fields
    return other


def reads_one_state(method):
    """Decorate a method so that it sees the estimator as it is when the call begins, whatever other threads change.

    Values that the method caches stay with that state. If P was updated in place, it is computed again from the rows.
    """

    @wraps(method)
    def read(self, *args, **options):
        state = with_fields(self, vars(self))
        try:
            return method(state, *args, **options)
        except StaleError:
            return method(state, *args, **options)
        except Exception:
            if not (_has_other_writer(self) or vars(self) is not vars(state)):
                raise
        # The arrays of P were replaced while they were read.
        return method(with_fields(self, vars(state) | {"_parts": None}), *args, **options)

    return read


def check_unchanged(estimator, settings):
    """Refuse updates of a fit whose parameters have been changed since."""
    changed: list[str] = []
    kernel = getattr(estimator, "kernel", None)
    inside = kernel.get_params() if kernel is not None and is_object(kernel) else {}
    for name, before in settings.items():
        owner, _, inner_name = name.partition("__")
        of_kernel = inner_name and owner == "kernel"
        now = inside.get(inner_name) if of_kernel else getattr(estimator, name, None)
        if not (now is before or _same(now, before)):
            changed.append(name)
    if changed:
        raise ValueError(
            f"{', '.join(changed)}: changed since the model was fitted; updates continue that fit. Set the old values,"
            " or fit again."
        )


def _same(a, b):
    if is_object(a) and type(a) is type(b):  # its parameters have names of their own
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):  # of kernels, perhaps
        return len(a) == len(b) and all(map(_same, a, b))
    return a == b if isinstance(a, Mapping) or isinstance(b, Mapping) else np.array_equal(a, b)


def joined_ids(model_ids, ids, n):
    """Ids of the rows so far (None: they have none) and of n new ones, all different, as a list; None without ids.

    A model has ids for all of its rows or for none of them.
    """
    if ids is None:
        if model_ids:
            raise ValueError(
                "ids: the rows so far have ids; give ids for the new rows as well (any different hashable values)."
            )
        return None
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise ValueError(f"ids={ids!r} must be a list with one id for each of the {n} rows.")
    ids = list(ids)
    if len(ids) != n:
        raise ValueError(f"ids has {len(ids)} entries and X has {n} rows; give one id for each row.")
    if model_ids is None:
        raise ValueError("ids: the rows so far have none; give ids from the first call of fit or partial_fit on.")
    try:
        in_use = set(model_ids).intersection(ids)
        repeated = [name for name, count in Counter(ids).items() if count > 1]
    except TypeError:
        raise ValueError("ids must be hashable values such as integers or strings.") from None
    if in_use:
        raise ValueError(f"ids: {_some(in_use)} belong to rows of the model already; forget those first.")
    if repeated:
        raise ValueError(f"ids: {_some(repeated)} occur more than once.")
    return [*model_ids, *ids]


def positions(indices, ids, n, model_ids):
    """Sorted positions of the rows to forget, from positions or a boolean mask, or from ids."""
    if (indices is None) == (ids is None):
        raise ValueError("give either indices (positions or a boolean mask) or ids=, one of the two.")
    if ids is not None:
        return _from_ids(ids, model_ids)
    indices = np.asarray(indices)
    if indices.dtype == bool:
        if indices.shape != (n,):
            raise ValueError(f"indices: a mask of shape {indices.shape} was given for {n} rows.")
        return np.flatnonzero(indices)
    if indices.ndim > 1:
        raise ValueError(f"indices must be one list of positions; found shape {indices.shape}.")
    indices = np.atleast_1d(indices)
    if len(indices) == 0:
        return np.empty(0, int)
    if not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"indices must be integers or a boolean mask; found values of type {indices.dtype}.")
    outside = indices[(indices < 0) | (indices >= n)]
    if len(outside):
        raise ValueError(f"indices: {_some(outside.tolist())} out of range; the model has rows 0 to {n - 1}.")
    rows = np.sort(indices)
    repeated = rows[1:][rows[1:] == rows[:-1]]
    if len(repeated):
        raise ValueError(f"indices: {_some(np.unique(repeated).tolist())} occur more than once.")
    return rows


def _from_ids(ids, model_ids):
    if model_ids is None:
        raise ValueError("ids: the rows of this model have none; give ids= to fit and partial_fit, or use positions.")
    ids = list(ids) if isinstance(ids, Iterable) and not isinstance(ids, str | bytes) else [ids]
    place = {name: row for row, name in enumerate(model_ids)}
    try:
        unknown = [name for name in ids if name not in place]
    except TypeError:
        raise ValueError("ids must be hashable values such as integers or strings.") from None
    if unknown:
        raise ValueError(f"ids: no row of the model has {_some(unknown)}.")
    rows = np.array(sorted(place[name] for name in ids), int)
    if len(np.unique(rows)) < len(rows):
        raise ValueError(f"ids: {_some(name for name, count in Counter(ids).items() if count > 1)} occur twice.")
    return rows


def _some(values):
    """The first five of the values, for a message."""
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    return ", ".join(map(repr, values[:5])) + (", ..." if len(values) > 5 else "")
