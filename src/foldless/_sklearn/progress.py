"""Progress of calls that take long: one line on standard error, in terminals and in notebooks."""

import shutil
import sys
import time

from joblib import Parallel, effective_n_jobs

from foldless._engine.linalg.threads import jobs_as_here
from foldless.estimators.checks import warn_caller

LONG_WITH_REMEDY = 60.0  # seconds above which a warning tells the time, if something is known to be quicker
SECONDS_UNTIL_SHOWN = 3.0  # with verbose=None
SECONDS_BETWEEN_REWRITES, SECONDS_BETWEEN_LINES = 0.1, 5.0


def can_rewrite_line(stream):
    """Whether a carriage return overwrites the last line of a stream, as in terminals and in notebooks."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")


class Progress:
    """A line that counts steps up to ``total``, or reports the current setting if ``total`` is None.

    In a terminal or a notebook the line is rewritten. Elsewhere (a file) a new line is added every few seconds.
    ``verbose`` is 0 for no output, 1 for output, and None for output in terminals and notebooks only, after a few
    seconds.
    """

    def __init__(self, total, what, verbose):
        self.total = total
        self.what = what
        self.verbose = verbose
        self.done, self._start = 0, time.monotonic()
        self._last_shown = self._start
        self._line_length = 0  # of the line that the next one overwrites

    def step(self, note="", steps=1):
        """Count one or more steps, up to ``total``."""
        self.done = min(self.done + steps, self.total)
        self._show_count(note)

    def skip(self, steps):
        """Subtract steps that are not needed from ``total``."""
        self.total -= steps
        if steps > 0:
            self._show_count("")

    def tell(self, note, ahead=None):
        """Report the current setting; ``ahead`` is the expected number of seconds to go."""
        left = "" if ahead is None else f", about {ahead:.0f} s to go"
        self._show(f"{self.what}: {self._elapsed:.0f} s{left}; {note}", complete=False)

    def close(self):
        """End the line of a call without ``total``; with ``verbose=None`` it is erased."""
        if self.total is None and self._line_length:
            end = f"\r{' ' * self._line_length}\r" if self.verbose is None else "\n"
            print(end, end="", file=sys.stderr, flush=True)
            self._line_length = 0

    @property
    def ahead(self):
        """Expected seconds to go, at most: the remaining steps take as long as those that are done."""
        return self._elapsed / max(self.done, 1) * (self.total - self.done)

    @property
    def _elapsed(self):
        return time.monotonic() - self._start

    def _show_count(self, note):
        complete = self.done >= self.total
        left = "" if complete else f", at most {self.ahead:.0f} s to go"
        self._show(f"{self.what}: {self.done}/{self.total}, {self._elapsed:.0f} s{left} {note}".rstrip(), complete)

    def _show(self, line, complete):
        if self.verbose is not None and not self.verbose:
            return
        now, rewrites = time.monotonic(), can_rewrite_line(sys.stderr)
        is_on = self.verbose or (self.verbose is None and rewrites and self._elapsed > SECONDS_UNTIL_SHOWN)
        pause = SECONDS_BETWEEN_REWRITES if rewrites else SECONDS_BETWEEN_LINES
        if not is_on or (now - self._last_shown < pause and not complete):
            return
        self._last_shown = now
        if not rewrites:
            print(line, file=sys.stderr, flush=True)
            return
        line = line[: shutil.get_terminal_size().columns - 1]  # a longer line would wrap, and could not be overwritten
        print(f"\r{line.ljust(self._line_length)}", end="\n" if complete else "", file=sys.stderr, flush=True)
        self._line_length = 0 if complete else len(line)


def warn_of_time(progress, n_jobs, remedy, limit):
    """Warn if the steps ahead are expected to take more than ``limit`` seconds; the message ends with the remedy."""
    seconds = progress.ahead / effective_n_jobs(n_jobs)
    if seconds > limit:
        warn_caller(
            f"the {progress.what} are expected to take about {max(seconds / 60, 1):.0f} minutes; verbose=1 shows how"
            f" far they are. {remedy}"
        )


def run_with_progress(jobs, n_jobs, progress, stop=None, remedy=""):
    """Results of joblib's ``jobs`` in order; every result is a step of ``progress``.

    With ``stop``, the results that are there when it returns True or when the user interrupts: at least one. With a
    ``remedy`` a warning is raised after the first result if the others are expected to take more than a minute.
    Jobs run in processes, because SciPy's linear algebra holds the interpreter lock.
    """
    results = []
    finished = Parallel(n_jobs=n_jobs, return_as="generator")(jobs_as_here(jobs))
    try:
        for result in finished:
            results.append(result)
            progress.step()
            if remedy and len(results) == 1:
                warn_of_time(progress, n_jobs, remedy, LONG_WITH_REMEDY)
            if stop is not None and stop():
                break
    except KeyboardInterrupt:
        if stop is None or not results:
            raise
    return results
