"""The command line: ``python -m fuzz --seconds 60 --seed 0``."""

import argparse
import sys
import time

from fuzz import report
from fuzz.programs import (
    confounds,
    fitting,
    held_out,
    interrupts,
    intervals,
    permutation,
    returned,
    searching,
    updating,
    validation,
)

MODULES = (confounds, fitting, held_out, interrupts, intervals, permutation, returned, searching, updating, validation)
AREAS = {name: program for module in MODULES for name, program in module.AREAS.items()}


def main(argv=None):
    """Run and report; 1 if something is beyond its tolerance."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Random programs against plain refits.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="+", help="numbers of single programs")
    parser.add_argument("--programs", type=int, help="how many programs, in place of --seconds")
    parser.add_argument("--area", nargs="+", choices=sorted(AREAS), help="these areas only")
    parser.add_argument("--json", action="store_true", help="print the figures alone")
    parser.add_argument("--brief", action="store_true", help="no reproductions, only kinds and figures")
    options = parser.parse_args(argv)
    start = time.monotonic()
    seconds = None if options.programs is not None else options.seconds
    judge = report.run(
        AREAS, options.seed, seconds=seconds, only=options.only, programs=options.programs, chosen=options.area
    )
    elapsed = time.monotonic() - start
    if options.json:
        print(report.to_json(judge, options.seed, elapsed))
    else:
        report.tell(judge, options.seed, everything=options.only is not None, brief=options.brief)
        report.summary(judge, options.seed, elapsed)
    return int(bool(judge.findings))


if __name__ == "__main__":
    sys.exit(main())
