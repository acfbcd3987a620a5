"""Errors that verbs of any kind of arrays raise."""

from numpy.linalg import LinAlgError

__all__ = ["LinAlgError", "NotPositiveDefiniteError"]


class NotPositiveDefiniteError(LinAlgError):
    """The matrix given to ``cholesky_`` has no Cholesky factor in this precision."""
