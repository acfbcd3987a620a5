"""The commands. Each reads, asks ``foldless.tables``, shows, and writes when all is known."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

import foldless
from foldless.cli import show
from foldless.cli.ending import told
from foldless.cli.options import OURS, OUTPUT, Data, Encoding, Format, Json, Quiet, Request, option, takes_table
from foldless.cli.predicting import predicted
from foldless.cli.writing import (
    as_text,
    check_file,
    check_folder,
    table_format,
    write_binary,
    written,
    written_file,
)
from foldless.report import write
from foldless.tables import Run, load_model, read_table, save_model
from foldless.tables.plain import plain
from foldless.tables.running import PHASES

app = typer.Typer(
    help="From a table to a tuned model, an honest score, a p-value and a report.",
    epilog="Begin with `foldless demo`, or with `foldless report visits.csv --target sick`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


REPLACED = "What is there of an earlier run is replaced."
REPORT = """Tune, estimate, test, and write a report.

Writes report.html, study.json (all numbers) and model.foldless into a folder.

**Examples**

    foldless report titanic.csv --target Survived

    foldless report visits.xlsx --target outcome --groups patient --drop notes --out visits

    foldless report prices.parquet --target price --task regression --time-limit 120
"""


@app.command(help=REPORT)
@told
@takes_table
def report(
    asked: Request,
    out: Annotated[Path | None, option("--out", f"Folder; DATA-report if not given. {REPLACED}", OUTPUT)] = None,
) -> None:
    """Tune, estimate, test, and write a report."""
    folder = out or Path(f"{asked.data.stem}-report")
    check_folder(folder)
    run, (study, model) = _run(asked, "study")
    with written(folder) as beside:
        (beside / "study.json").write_text(study.to_json(indent=1), encoding="utf-8")
        apart = None if study.held_out.groups is None else study.held_out.loo_decision
        save_model(beside / "model.foldless", run.rows, model, _about(study), apart)
        write(study, beside / "report.html")
    if asked.json:
        print(study.to_json(indent=1))
        return
    (show.result if asked.quiet else show.study)(study)
    for name in ("study.json", "model.foldless", "report.html"):
        show.say(folder / name)


TUNE = """Choose a model, and write it to a file.

**Example**

    foldless tune titanic.csv --target Survived --out titanic.foldless
"""


@app.command(help=TUNE)
@told
@takes_table
def tune(
    asked: Request,
    out: Annotated[Path | None, option("--out", f"File; DATA.foldless if not given. {REPLACED}", OUTPUT)] = None,
) -> None:
    """Choose a model, and write it to a file."""
    path = out or Path(f"{asked.data.stem}.foldless")
    check_file(path)
    run, (chosen, model) = _run(asked, "tuned")
    about = {"source": run.table.source, "target": run.rows.schema.target.name}
    apart = run.without_groups(model)
    with written_file(path) as beside:
        save_model(beside, run.rows, model, about, apart)
    if asked.json:
        print(json.dumps(plain(chosen), indent=1))
        return
    if not asked.quiet:
        show.model(chosen)
        show.say("How good it is, `foldless report` tells: a criterion that was minimised does not.")
    show.say(path)


PERMUTE = """Test whether the target can be predicted at all.

**Example**

    foldless permute titanic.csv --target Survived --permutations 5000
"""


@app.command(help=PERMUTE)
@told
@takes_table
def permute(asked: Request) -> None:
    """Test whether the target can be predicted at all."""
    run, test = _run(asked, "tested")
    if asked.json:
        print(json.dumps(plain(test), indent=1))
        return
    show.test(test)
    if not asked.quiet:
        for each in run.notes(test):
            show.say(f"- {each}")


PREDICT = """Predict the rows of a table by a model file.

Writes CSV (or TSV, Parquet or Excel, by the ending of --out): the prediction, and the probability of every class or the
ends of an interval. The prediction follows the decision of the model; where classes are unbalanced it need not be the
likeliest class. In CSV and TSV, texts that spreadsheets would run, such as =1+1, have an apostrophe in front.

**Example**

    foldless predict titanic-report/model.foldless new.csv --out predicted.csv
"""


@app.command(help=PREDICT)
@told
def predict(
    model: Annotated[Path, typer.Argument(help="A file that `report` or `tune` has written.", **OURS)],
    data: Data,
    out: Annotated[
        Path | None, option("--out", "CSV, TSV, Parquet or Excel file to write; standard output if not given.", OUTPUT)
    ] = None,
    coverage: Annotated[float, option("--coverage", "Of intervals for values.", OUTPUT, min=0.01, max=0.99)] = 0.9,
    format: Format = None,
    encoding: Encoding = "utf-8",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the rows of a table by a model file."""
    format_out = "json" if as_json else table_format(out)
    if out is not None:
        check_file(out)
    loaded = load_model(model)
    frame, notes, warnings = predicted(loaded, read_table(data, format, encoding), coverage)
    if as_json and warnings:
        frame["warning"] = " ".join(warnings)
    text, more = as_text(frame, format_out)
    for each in (*warnings, *(() if quiet or as_json else (*notes, *more))):
        show.console(error=True).print(show.plain(f"- {each}"))
    if out is None:
        sys.stdout.write(text)
        return
    with written_file(out) as path:
        if text is None:
            write_binary(frame, path, format_out)
        else:
            path.write_text(text, encoding="utf-8")
    show.say(out)


@app.command()
@told
def demo(
    out: Annotated[Path, option("--out", "Folder to write into.", OUTPUT)] = Path("foldless-demo"),
    quiet: Quiet = False,
) -> None:
    """Make a report of data that come with scikit-learn: tumours, benign or malignant."""
    from sklearn.datasets import load_breast_cancer

    check_folder(out)
    data = load_breast_cancer(as_frame=True)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "tumours.csv"
    data.data.assign(diagnosis=data.target_names[data.target]).to_csv(path, index=False)
    if not quiet:
        show.say(f"foldless report {path} --target diagnosis --out {out}")
    report(**vars(Request(path, target="diagnosis", quiet=quiet)), out=out)


@app.command()
def version() -> None:
    """Print the version."""
    print(foldless.__version__)


def _run(asked, what):
    """(the run, what its method found), with the guess shown and progress told."""
    table = asked.table()
    loud = not (asked.quiet or asked.json)
    with show.progress(loud, PHASES[what]) as tell:
        run = Run(table, asked.wishes(table), asked.options(), tell)
        if loud:
            show.columns(run.guessed.columns)
            show.task(run.guessed)
        return run, getattr(run, what)()


def _about(study):
    """What a model file says of itself."""
    about = {"source": study.data.source, "target": study.target, "created": study.created}
    return about | {"score": plain(study.nested[0])}
