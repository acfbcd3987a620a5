"""The loop over programs, the table, the reproductions."""

import json
import time
import traceback

import numpy as np

import foldless
from fuzz.judge import Judge, LibraryError, Skip
from fuzz.oracles import EXTENDED, SEEN


def run(areas, seed, *, seconds=None, only=None, programs=None, chosen=None):
    """Run programs for some seconds, or given ones alone; the judge with all figures."""
    judge, names = Judge(), sorted(areas) if chosen is None else chosen
    order = sorted(areas)
    end = None if seconds is None else time.monotonic() + seconds
    number = 0
    while True:
        if only is not None:
            if number >= len(only):
                return judge
            current = only[number]
        else:
            if (end is not None and time.monotonic() > end) or (programs is not None and number >= programs):
                return judge
            current = number
        number += 1
        name = order[current % len(order)]
        if name in names:
            one(judge, areas[name], name, seed, current)


def one(judge, program, name, seed, number):
    """One program, which follows from the seed and its number alone."""
    script = judge.start(name, number)
    SEEN.clear()
    rng = np.random.default_rng([seed, number])
    try:
        with np.errstate(all="ignore"):
            program(rng, script, judge)
    except LibraryError as error:
        if "alpha too small" in str(error) and not all(SEEN):
            return judge.skip()  # refused with good reason: a training part beyond the precision at hand
        judge.count.comparisons += 1
        judge.report(f"exception: {str(error)[:100]}", np.inf, "a result", error)
    except Skip:
        pass
    except ZeroDivisionError:
        judge.skip()  # the oracle's own equations are singular
    except Exception:
        judge.report("the fuzz itself failed", np.inf, "a comparison", traceback.format_exc())
    return None


def table(judge, out=None):
    """Figures of every area."""
    print(f"{'area':<22}{'programs':>9}{'compared':>10}{'not judged':>12}{'beyond':>8}{'largest ratio':>15}", file=out)
    for name, c in sorted(judge.counts.items()):
        print(f"{name:<22}{c.programs:>9}{c.comparisons:>10}{c.unjudged:>12}{c.beyond:>8}{c.ratio:>15.3g}", file=out)
    totals = totals_of(judge)
    print(
        f"{'all':<22}{totals['programs']:>9}{totals['comparisons']:>10}{totals['unjudged']:>12}{totals['beyond']:>8}",
        file=out,
    )


def totals_of(judge):
    """Sums over the areas."""
    each = judge.counts.values()
    return {name: sum(getattr(c, name) for c in each) for name in ("programs", "comparisons", "unjudged", "beyond")}


def figures(judge, seed, elapsed):
    """Everything in numbers, for machines."""
    kinds = {}
    for finding in judge.findings:
        entry = kinds.setdefault(f"{finding.area}: {finding.kind}", {"count": 0, "programs": []})
        entry["count"] += 1
        entry["programs"].append(finding.number)
    areas = {name: vars(count) for name, count in sorted(judge.counts.items())}
    return {
        "version": foldless.__version__,
        "library": foldless.__file__,
        "extended_precision": EXTENDED,
        "seed": seed,
        "seconds": round(elapsed, 1),
        **totals_of(judge),
        "areas": areas,
        "findings": kinds,
    }


def tell(judge, seed, everything=False, brief=False, out=None):
    """Findings, those of a kind together; the worst of each with all it takes to see it again."""
    groups = {}
    for finding in judge.findings:
        groups.setdefault((finding.area, finding.kind), []).append(finding)
    for (area, kind), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        members.sort(key=lambda f: (-f.ratio, len(f.script)))
        for place, finding in enumerate([] if brief else members):
            print(f"\n--- {area}: {kind} ({place + 1} of {len(members)})", file=out)
            print(f"    python -m fuzz --seed {seed} --only {finding.number}", file=out)
            print(
                f"    error / tolerance {finding.ratio:.3g}; expected {finding.expected}; found {finding.found}",
                file=out,
            )
            shown = finding.script if everything or place == 0 else finding.short
            print("\n".join(f"    {line}" for line in shown.splitlines()), file=out)
    if groups:
        print("\nfindings by kind:", file=out)
        for (area, kind), members in sorted(groups.items(), key=lambda item: -len(item[1])):
            print(f"{len(members):6d}  {area}: {kind}", file=out)


def summary(judge, seed, elapsed, out=None):
    """What was tested, and the table."""
    rate = totals_of(judge)["comparisons"] / max(elapsed, 1e-9) * 60
    kind = "extended" if EXTENDED else "double precision only (this machine has no longer floats)"
    print(
        f"\nfoldless {foldless.__version__} at {foldless.__file__}; oracles: {kind}; seed {seed}; {elapsed:.0f} s,"
        f" {rate:.0f} comparisons a minute",
        file=out,
    )
    table(judge, out)


def to_json(judge, seed, elapsed):
    """The figures alone."""
    return json.dumps(figures(judge, seed, elapsed), indent=1, default=str)
