"""Interrupts: at every line in turn, and real ones, by a signal that arrives while a call is at work."""

import re
import signal
import sys
import time
from itertools import count
from pathlib import Path
from threading import Thread

import foldless

SOURCE = str(Path(foldless.__file__).parent)


def seconds_of(call):
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interrupt_after(seconds, call):
    """Run a call that a signal interrupts, as Ctrl-C does, if it takes longer than this; whether it was interrupted."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        call()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        return False
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def interrupted(make, call, only):
    """Models whose call was interrupted: at every line of the files ``only`` that the call comes to."""
    for at in count():
        model, lines = make(), set()

        def trace(frame, event, argument, at=at, lines=lines):
            name = frame.f_code.co_filename
            mine = name.startswith(SOURCE)
            if event == "line" and mine and re.search(only, name.removeprefix(SOURCE)):
                lines.add((name, frame.f_lineno))
                if len(lines) > at:
                    raise KeyboardInterrupt
            return trace if mine else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            call(model)
            return
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        yield model  # its frames are gone


def with_a_call_at_every_line(make, read, write, only="estimators/"):
    """(model, value that was read) where another thread writes at one line of ``read``: every line it comes to."""
    for at in count():
        model, lines = make(), set()

        def trace(frame, event, argument, at=at, lines=lines, model=model):
            name = frame.f_code.co_filename
            mine = name.startswith(SOURCE)
            if event == "line" and mine and re.search(only, name.removeprefix(SOURCE)):
                fresh = (name, frame.f_lineno) not in lines
                lines.add((name, frame.f_lineno))
                if fresh and len(lines) == at + 1:
                    writer = Thread(target=write, args=[model])
                    writer.start()
                    writer.join()
            return trace if mine else None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            value = read(model)
        finally:
            sys.settrace(before)
        if len(lines) <= at:
            return
        yield model, value
