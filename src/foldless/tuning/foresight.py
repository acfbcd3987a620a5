"""How long an evaluation of all rows will take, from one of a few: time grows with nearly the cube of the rows."""

import time

import numpy as np

from foldless.linalg.threads import threads_for
from foldless.tuning.fidelity import growth, order_of_rows

SHORT = 2000  # rows up to which nobody waits long
PART = 500  # rows that are measured


def foreseen_seconds(task, splits, evaluate):
    """Seconds that ``evaluate(rows)`` would take for all rows of a task; 0 where these are few."""
    problem = task.problem
    n = len(problem.active)
    if n <= SHORT:
        return 0.0
    rows = np.sort(order_of_rows(task, splits, 0)[:PART])
    begin = time.perf_counter()
    with threads_for(PART, problem.X.shape[1]):
        evaluate(rows)
    return (time.perf_counter() - begin) * growth(problem, PART, n)
