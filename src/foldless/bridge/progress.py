"""Progress: what is done or tried, and how long it may still take; a line on standard error, a bar in notebooks."""

import importlib
import shutil
import sys
import time
from html import escape

from joblib import Parallel

from foldless.linalg.threads import jobs_as_here

BY_ITSELF = 3.0  # seconds after which a line appears without being asked for


def _in_notebook():
    return type(sys.stderr).__module__.startswith("ipykernel")


class NotebookLine:
    """One place of a notebook's output that changes: a bar, where the share that is done is known, and a text.

    Notebooks rewrite a printed line as well, but keep what a shorter one does not cover, on the red of errors.
    """

    def __init__(self):
        self._place = None

    def show(self, line, share):
        """Put this in the place of what was there; ``share`` may be None."""
        bar = "" if share is None else f'<progress value="{share:.4f}" max="1"></progress> '
        shown = {"text/html": f"{bar}{escape(line)}", "text/plain": line}
        if self._place is None:
            self._place = importlib.import_module("IPython.display").display(shown, raw=True, display_id=True)
        else:
            self._place.update(shown, raw=True)


class Progress:
    """Counts steps, or tells what is being tried.

    On a terminal and in a notebook the line is rewritten, elsewhere one is added every few seconds. ``verbose``: 0 is
    silent, 1 talks, None talks on a terminal and in a notebook where it takes more than a few seconds.
    """

    def __init__(self, total, what, verbose):
        self.total, self.what, self.verbose = total, what, verbose
        self.done, self._start = 0, time.monotonic()
        self._last, self._shown = self._start, False
        self._notebook = NotebookLine() if _in_notebook() else None

    def step(self, note="", steps=1):
        """One more is done, or several, but no more than there are."""
        self.done = min(self.done + steps, self.total)
        self._count(note)

    def skip(self, steps):
        """So many are not needed."""
        self.total -= steps
        if steps > 0:
            self._count("")

    def tell(self, note, ahead=None):
        """What is being tried now; ``ahead`` are the seconds that are expected to go."""
        left = "" if ahead is None else f", about {ahead:.0f} s to go"
        self._show(f"{self.what}: {self._spent:.0f} s{left}; {note}", False)

    def close(self):
        """Nothing more will come: a line that came by itself goes by itself."""
        if not self._shown or self.total is not None:
            return
        if self._notebook is None:
            print("\r\x1b[K" if self.verbose is None else "", end="" if self.verbose is None else "\n", file=sys.stderr)
        elif self.verbose is None:
            self._notebook.show("", None)

    @property
    def ahead(self):
        """Seconds to go, at most: those of what is done, for as many as there are left."""
        return self._spent / max(self.done, 1) * (self.total - self.done)

    @property
    def _spent(self):
        return time.monotonic() - self._start

    def _count(self, note):
        complete = self.done >= self.total
        left = "" if complete else f", at most {self.ahead:.0f} s to go"
        self._show(f"{self.what}: {self.done}/{self.total}, {self._spent:.0f} s{left} {note}".rstrip(), complete)

    def _show(self, line, complete):
        now, rewritten = time.monotonic(), sys.stderr.isatty() or self._notebook is not None
        asked = self.verbose or (self.verbose is None and rewritten and self._spent > BY_ITSELF)
        if not asked or (now - self._last < (0.1 if rewritten else 5.0) and not complete):
            return
        self._last, self._shown = now, rewritten
        if self._notebook is not None:
            self._notebook.show(line, None if self.total is None else self.done / max(self.total, 1))
            return
        line = line[: shutil.get_terminal_size().columns - 1] if rewritten else line  # a second line would stay
        end = "\n" if complete or not rewritten else ""
        print(f"\r\x1b[K{line}" if rewritten else line, end=end, file=sys.stderr, flush=True)


def run_with_progress(jobs, n_jobs, progress, stop=None):
    """Results of joblib's ``jobs`` in order, each a step of ``progress``.

    With ``stop`` only those that are there when it turns true, or when the user interrupts: at least one.
    Processes, not threads: SciPy's linear algebra does not let go of the interpreter.
    """
    results = []
    found = Parallel(n_jobs=n_jobs, return_as="generator")(jobs_as_here(jobs))
    try:
        for result in found:
            results.append(result)
            progress.step()
            if stop is not None and stop():
                break
    except KeyboardInterrupt:
        if stop is None or not results:
            raise
    return results
