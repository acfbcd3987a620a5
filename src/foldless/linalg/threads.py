"""Threads of the BLAS: one where products are many and short."""

from contextlib import contextmanager

from threadpoolctl import threadpool_limits

FEW_ROWS = 2000  # rows up to which one thread is as quick as two


@contextmanager
def threads_for(n_rows):
    """Inside the block the BLAS works with one thread if rows are few.

    Products of few rows are many and short: threads that wait for each other make them slower, several times so.
    """
    with threadpool_limits(1 if n_rows <= FEW_ROWS else None, user_api="blas"):
        yield
