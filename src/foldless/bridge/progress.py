"""A line of progress on standard error: what is done, of how much at most, and how long it may still take."""

import sys
import time

from joblib import Parallel

from foldless.linalg.threads import jobs_as_here


class Progress:
    """Counts steps; on a terminal the line is rewritten, elsewhere a line is added every few seconds."""

    def __init__(self, total, what, verbose):
        self.total, self.what, self.verbose = total, what, verbose
        self.done, self._start = 0, time.monotonic()
        self._last = self._start

    def step(self, note="", steps=1):
        """One more is done, or several, but no more than there are."""
        self.done = min(self.done + steps, self.total)
        self._show(note)

    def skip(self, steps):
        """So many are not needed."""
        self.total -= steps
        if steps > 0:
            self._show("")

    def _show(self, note):
        now, terminal, complete = time.monotonic(), sys.stderr.isatty(), self.done >= self.total
        if not self.verbose or (now - self._last < (0.1 if terminal else 5.0) and not complete):
            return
        self._last = now
        spent = now - self._start
        left = "" if complete else f", at most {spent / max(self.done, 1) * (self.total - self.done):.0f} s to go"
        line = f"{self.what}: {self.done}/{self.total}, {spent:.0f} s{left} {note}".rstrip()
        end = "\n" if complete or not terminal else ""
        print(f"\r\x1b[K{line}" if terminal else line, end=end, file=sys.stderr, flush=True)


def run_with_progress(jobs, n_jobs, progress):
    """Results of joblib's ``jobs`` in order, each a step of ``progress``.

    Processes, not threads: SciPy's linear algebra does not let go of the interpreter.
    """
    results = []
    for result in Parallel(n_jobs=n_jobs, return_as="generator")(jobs_as_here(jobs)):
        results.append(result)
        progress.step()
    return results
