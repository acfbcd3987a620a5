"""What is printed: tables of columns, findings, scores. Texts of the user's file are shown, never interpreted."""

import sys
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

MOST_COLUMNS = 40  # of a table that are shown
MOST_SCALES = 5  # of features


def plain(text):
    """Text without control characters, as rich shows it: no markup."""
    return Text("".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(text)))


def console(error=False):
    """Where to print."""
    return Console(stderr=error, highlight=False, soft_wrap=True)


def say(text, style=None):
    """A line."""
    line = plain(text)
    if style:
        line.stylize(style)
    console().print(line)


def complain(cause, hint):
    """The cause of an error and a hint, a line each, on standard error."""
    out = console(error=True)
    out.print(Text("error: ", style="bold red") + plain(cause))
    out.print(Text("hint: ", style="bold") + plain(hint))


@contextmanager
def progress(shown, n_phases):
    """A function to tell phases with, and a bar on standard error where that is a terminal."""
    if not (shown and sys.stderr.isatty()):
        yield lambda phase: None
        return
    look = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*look, console=console(error=True), transient=True) as bar:
        task = bar.add_task("reading", total=n_phases)
        yield lambda phase: bar.update(task, description=phase, advance=1)


def columns(found):
    """The guess, as a table."""
    table = Table(box=box.SIMPLE, title="Columns, as they were understood", title_justify="left")
    for name in ("column", "role", "kind", "missing", "different", "such as", "why"):
        table.add_column(name, justify="right" if name in ("missing", "different") else "left", overflow="fold")
    for each in found[:MOST_COLUMNS]:
        cells = (
            each.name,
            each.role,
            each.kind,
            each.n_missing or "",
            each.n_distinct,
            ", ".join(each.examples),
            each.why,
        )
        style = {"dropped": "dim", "target": "bold"}.get(each.role)
        table.add_row(*map(plain, cells), style=style)
    console().print(table)
    if len(found) > MOST_COLUMNS:
        say(f"... and {len(found) - MOST_COLUMNS} more columns")


def task(guessed):
    """What is predicted, in a line."""
    schema = guessed.schema
    what = f"classification, {len(schema.classes)} classes" if schema.classes else "regression"
    say(f"Task: {what} of {schema.target.name!r}. {guessed.doubt}".rstrip())


def findings(found):
    """Possible leaks, the gravest first."""
    for each in found:
        mark = Text("! ", style="bold red") if each.severity == "high" else Text("- ", style="yellow")
        console().print(mark + plain(each.text))


def model(chosen):
    """The chosen model, in a line."""
    params = ", ".join(f"{name} {value:.3g}" for name, value in chosen.params.items())
    say(f"Model: {chosen.name}, {chosen.kernel} kernel, {params} ({len(chosen.trials)} settings looked at).")
    if chosen.scales:
        largest = ", ".join(f"{each.feature} {each.scale:.3g}" for each in chosen.scales[:MOST_SCALES])
        say(f"Largest scales of features in the learnt kernel: {largest}.")


def test(found):
    """The permutation test, in two lines."""
    if found is None:
        say("No permutation test.")
        return
    middle = sorted(found.null)[len(found.null) // 2]
    within = " within groups" if found.within_groups else ""
    say(
        f"Permutation test of {found.tested}: {found.score_name} {found.score:.3f} of {found.n_rows} rows, permuted"
        f" labels {middle:.3f} (median of {len(found.null)}), p = {found.p_value:.2g}."
    )
    say(
        "p is how often a score at least that good would occur if the features had nothing to do with the target"
        f"{within}. It belongs to the score of the test, not to nested scores."
    )


def scores(study):
    """Nested and leave-one-out scores beside the baseline."""
    table = Table(box=box.SIMPLE, title="How well the target is predicted", title_justify="left")
    table.add_column("score")
    alone = "leave-one-out" if study.held_out.groups is None else "leave one group out"
    for name in ("nested (honest)", "90 % interval", alone, "baseline"):
        table.add_column(name, justify="right")
    for outer, alone, least in zip(study.nested, study.leave_one_out, study.baseline, strict=True):
        cells = (
            f"{outer.value:.3f}",
            f"{outer.low:.3f} to {outer.high:.3f}",
            f"{alone.value:.3f}",
            f"{least.value:.3f}",
        )
        table.add_row(plain(outer.name), *cells)
    console().print(table)


def result(found):
    """The score of the run, in a line."""
    score, base = found.nested[0], found.baseline[0]
    ends = f"{score.low:.3f} to {score.high:.3f}"
    say(f"{score.name} {score.value:.3f} ({100 * score.confidence:g} % interval {ends}), baseline {base.value:.3f}")


def study(found):
    """The whole study, but for the columns."""
    scores(found)
    model(found.model)
    test(found.test)
    findings(found.findings)
    for each in found.notes:
        console().print(Text("- ", style="dim") + plain(each))
