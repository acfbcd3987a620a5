"""Interrupts that repeat themselves: a KeyboardInterrupt at a numbered moment of the library's own Python code.

A moment is a call, a return, or a call of compiled code, such as LAPACK, by a function of the library. Signals arrive
between steps of Python too, at times that no seed repeats.
"""

import sys
from pathlib import Path

import foldless

SOURCE = str(Path(foldless.__file__).parent)
AT_TIMES = str(Path("linalg", "memory.py"))  # what is free is looked up ten times a second


class _Counter:
    """Counts moments; raises at the one of number ``stop``."""

    def __init__(self, stop=None):
        self.count, self.stop = 0, stop

    def __call__(self, frame, event, arg):
        name = frame.f_code.co_filename
        once = frame.f_code.co_name == "<module>"
        if once or not name.startswith(SOURCE) or name.endswith(AT_TIMES):
            return
        self.count += 1
        if self.count - 1 == self.stop:
            raise KeyboardInterrupt


def moments(call):
    """How many moments a call has that is not the first of the process: that one fills caches."""
    for _ in range(2):
        counter = _Counter()
        sys.setprofile(counter)
        try:
            call()
        finally:
            sys.setprofile(None)
    return counter.count


def interrupted_at(moment, call):
    """Run a call with an interrupt at this moment; whether it was stopped."""
    before, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None  # a generator that is given up stops none
    sys.setprofile(_Counter(moment))
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
        sys.unraisablehook = before
    return False
