"""Verbs on matrices, memory and threads: the only room that speaks to LAPACK.

Other rooms take the verbs from here. The next line says whose they are.
"""

from foldless._engine.linalg.numpy import *  # noqa: F403
