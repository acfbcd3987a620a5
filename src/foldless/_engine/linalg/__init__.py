"""Verbs on matrices, memory and threads: the only room that speaks to LAPACK and to torch.

Other rooms take the verbs from here. A verb works on arrays of the kind of its first argument (``linalg.dispatch``);
what else there is to do with arrays, functions of the array API standard do: ``namespace(A)``. Row numbers and masks of
rows are arrays of NumPy for any kind of arrays, and a single one may be the index of the first axis.

What every small fit runs through takes both from the problem or from ``kind_of(A)``, and so looks them up once.
"""

from foldless._engine.linalg import numpy as _numpy
from foldless._engine.linalg.dispatch import dispatched
from foldless._engine.linalg.dispatch import eps as eps
from foldless._engine.linalg.dispatch import float_type as float_type
from foldless._engine.linalg.dispatch import host_dtype as host_dtype
from foldless._engine.linalg.dispatch import is_tensor as is_tensor
from foldless._engine.linalg.dispatch import kind_of as kind_of
from foldless._engine.linalg.dispatch import namespace as namespace
from foldless._engine.linalg.dispatch import on_host as on_host
from foldless._engine.linalg.dispatch import register as register
from foldless._engine.linalg.dispatch import tiny as tiny
from foldless._engine.linalg.errors import LinAlgError as LinAlgError
from foldless._engine.linalg.errors import NotPositiveDefiniteError as NotPositiveDefiniteError
from foldless._engine.linalg.numpy import *  # noqa: F403

globals().update({name: dispatched(name) for name in _numpy.__all__})
