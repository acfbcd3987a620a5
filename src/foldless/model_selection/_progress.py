"""A line of progress on standard error: what is done, of how much, and how long it may still take."""

import sys
import time


class Progress:
    """Counts steps; on a terminal the line is rewritten, elsewhere a line is added every few seconds."""

    def __init__(self, total, what, verbose):
        self.total, self.what, self.verbose = total, what, verbose
        self.done, self._start = 0, time.monotonic()
        self._last = self._start

    def step(self, note=""):
        """One more is done."""
        self.done += 1
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        if not self.verbose or (now - self._last < (0.1 if terminal else 5.0) and self.done < self.total):
            return
        self._last = now
        left = (now - self._start) / self.done * (self.total - self.done)
        line = f"{self.what}: {self.done}/{self.total}, {now - self._start:.0f} s, {left:.0f} s to go {note}".rstrip()
        end = "\n" if not terminal or self.done == self.total else ""
        print(f"\r\x1b[K{line}" if terminal else line, end=end, file=sys.stderr, flush=True)
