"""`evaluand score`: files of predictions scored by the metrics of their problem."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click
from click import UsageError
from click.exceptions import Exit
from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.cli.options import LINE, json_option, store_option, suggest_command
from evaluand.cli.output import condensed, opened, print_json, show
from evaluand.cli.report import write as write_report
from evaluand.cli.run import notes
from evaluand.core.errors import DataError, Fault
from evaluand.interop.d3m.inline_problem import criterion_of, stated_problem
from evaluand.interop.d3m.scores import LAYOUTS, Score, Scores, Spread, score
from evaluand.problem.problem import Problem
from evaluand.report.export import write_csv, write_parquet
from evaluand.report.facts.base import Facts
from evaluand.report.terminal.cells import plain_table
from evaluand.report.text import numbers, safe
from evaluand.store.directory import DirectoryStore

_EXAMPLES = """\b
Examples:
  evaluand score 185_baseball
  evaluand score 185_baseball --predictions mine.csv --out scores.csv
  evaluand score --predictions mine.csv --truth right.csv --metric accuracy --metric f1Macro
  evaluand score --problem problemDoc.json --predictions mine.csv --truth targets.csv --json
  evaluand score 185_baseball --predictions mine.csv --name mine --report mine.html
"""

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("score", epilog=_EXAMPLES)
@click.argument("folder_or_problem", required=False, metavar="[FOLDER]", type=click.Path(exists=True, path_type=Path))
@click.option("--problem", type=click.Path(exists=True, path_type=Path), metavar="FILE", help="Instead of FOLDER.")
@click.option(
    "--predictions",
    multiple=True,
    type=LINE,
    metavar="FILE",
    help="What is scored, as the problem says if not given; several times for files of repeats and folds, named so:"
    " predictions_repeat0_fold1.csv.",
)
@click.option(
    "--truth",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE|DATASET",
    help="A CSV file of index and targets, or a dataset's folder; as FOLDER has it if not given.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    type=LINE,
    metavar="NAME",
    help="Instead of a problem: how --predictions and --truth are judged, such as f1Macro; several times for more.",
)
@click.option("--pos-label", metavar="LABEL", help="With --metric: the label that counts as positive.")
@click.option("--k", type=click.IntRange(1), metavar="N", help="With --metric: how many rows or ranks count.")
@click.option(
    "--definition", metavar="NAME", help="Which public definition metrics follow: 3.1.1, core-2022, sklearn …"
)
@click.option("--part", metavar="PART", help="TRAIN, TEST or SCORE, where each has documents of its own.")
@click.option("--out", type=_FILE, metavar="FILE", help="Write scores.csv.")
@click.option("--layout", type=click.Choice(LAYOUTS), default=LAYOUTS[0], show_default=True, help="Of scores.csv.")
@click.option("--table", type=_FILE, metavar="FILE", help="Write all that is known of each score: .csv or .parquet.")
@click.option("--report", type=_FILE, metavar="FILE", help="Write a report as one HTML file.")
@click.option("--no-intervals", is_flag=True, help="Values alone: faster on large files.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--name", metavar="NAME", help="Keep run, evaluation and values in the store under this name.")
@store_option
@json_option
def command(
    folder_or_problem: Path | None,
    problem: Path | None,
    predictions: tuple[str, ...],
    truth: Path | None,
    metrics: tuple[str, ...],
    pos_label: str | None,
    k: int | None,
    definition: str | None,
    part: str | None,
    out: Path | None,
    layout: str,
    table: Path | None,
    report: Path | None,
    no_intervals: bool,
    force: bool,
    name: str | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Score files of predictions by the metrics of their problem.

    Everything is checked before anything is scored: rows that are missing, superfluous, there twice or not tested,
    values that are empty, not finite or of another type, columns, quotes. Every fault is told with its line, column and
    code, and the exit code is 1. With --name, `evaluand show`, `compare` and `report` know what was scored.
    """
    if (folder_or_problem is not None) + (problem is not None) + bool(metrics) != 1:
        raise UsageError("give one of FOLDER, --problem and --metric")
    if metrics and (truth is None or len(predictions) != 1):
        raise UsageError("--metric judges one file of --predictions by a file of --truth; give both")
    if not metrics and (pos_label is not None or k is not None):
        raise UsageError("--pos-label and --k are for --metric; a problem says itself how it is judged")
    if table is not None and table.suffix not in (".csv", ".parquet"):
        raise UsageError(f"--table: the suffix {table.suffix!r} tells no format: .csv or .parquet")
    _check_new([out, table, report], force)
    source: Path | Problem | None = folder_or_problem or problem
    try:
        if metrics:
            criteria = [criterion_of(each, definition, positive=pos_label, k=k) for each in metrics]
            source = stated_problem(Path(predictions[0]), Path(str(truth)), criteria)
        assert source is not None
        with notes():
            scores = score(source, predictions, truth, definition=definition, part=part, intervals=not no_intervals)
    except DataError as error:
        _tell(error.faults, (), as_json)
        raise Exit(1) from None
    if out is not None:
        scores.write(out, layout, force=True)  # type: ignore[arg-type]
    if table is not None:
        with opened(table) as file:
            (write_parquet if table.suffix == ".parquet" else write_csv)(scores.table().to_reader(), file)
    stored = _kept(scores, name, folder, report)
    if as_json:
        return print_json(_facts(scores) | stored)
    show(_shown(scores))
    for told in condensed(scores.notes):
        click.echo(f"note: {safe(told)}", err=True)
    for path in (out, table, report):
        if path is not None:
            click.echo(f"written: {safe(str(path))}", err=True)
    if name is not None:
        click.echo(f"\nkept as {safe(name)}; more: {safe(suggest_command('show', name, folder))}")


def _check_new(files: Sequence[Path | None], force: bool) -> None:
    """Nothing that is there is replaced unasked, and no file is written twice."""
    given = [path for path in files if path is not None]
    if len({path.resolve() for path in given}) < len(given):
        raise UsageError("--out, --table and --report are different files; name each otherwise")
    for path in given:
        if path.exists() and not force:
            raise UsageError(f"{path} is there already; name another file, or give --force")
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}")


def _kept(scores: Scores, name: str | None, folder: Path, report: Path | None) -> Facts:
    """Keeps what was scored where that is asked for, and writes the report of it."""
    if name is None and report is None:
        return {}
    if name is not None:
        return _stored(scores, name, DirectoryStore(folder), report)
    with tempfile.TemporaryDirectory(prefix="evaluand-score-") as place:
        _stored(scores, scores.problem.id, DirectoryStore(Path(place)), report)
    return {}


def _stored(scores: Scores, name: str, store: DirectoryStore, report: Path | None) -> Facts:
    results = scores.save(store, name)
    if report is not None:
        write_report(store, name, str(report))
    [kept] = results.tasks
    return {"run": kept.run.id, "evaluation": kept.evaluation.id, "aggregation": results.aggregation.id}


# What is told


def _tell(faults: Sequence[Fault], found: Sequence[Fault], as_json: bool) -> None:
    if as_json:
        return print_json({"ok": False, "faults": [*map(_plain, faults)], "notes": [*map(_plain, found)]})
    for line in condensed(faults):
        click.echo(f"fault  {safe(line)}", err=True)
    click.echo(f"{len(faults):,} fault{'s' * (len(faults) != 1)}; nothing was scored", err=True)
    return None


def _plain(fault: Fault) -> Facts:
    place = {name: getattr(fault, name, None) for name in ("file", "line", "column")}
    return {"where": fault.where, **place, "code": fault.code, "message": fault.message}


def _facts(scores: Scores) -> Facts:
    rows = [row | {"data": of.data} for row, of in zip(scores.table().to_pylist(), scores.rows, strict=True)]
    told = [{name: _number(value) for name, value in asdict(one).items()} for one in scores.spread]
    return {
        "ok": True,
        "problem": scores.problem.id,
        "scores": rows,
        "spread": told,
        "notes": [*map(_plain, scores.notes)],
    }


def _number(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def _shown(scores: Scores) -> RenderableType:
    parted = len(scores.parts) > 1
    of_part = ["repeat", "fold"] if parted else []
    table = plain_table("metric", "target", *of_part, "value", "interval", "n")
    for row in scores.rows:
        place = [str(row.repeat), str(row.fold)] if parted else []
        between = "" if math.isnan(row.low) else " – ".join(numbers(row.low, row.high))
        cells = (row.metric, row.target or "all", *place, _figure(row.value), between, f"{row.n:,}")
        table.add_row(*(Text(safe(cell)) for cell in cells))
    parts: list[RenderableType] = [table]
    if scores.spread:
        parts += ["", _spread(scores.spread)]
    for row in scores.rows:
        if row.data is not None and "cells" in row.data:
            parts += ["", *_cells(row)]
    told = {f"{row.metric}: {row.reason}": None for row in scores.rows if row.reason}
    signatures = {f"{row.metric}  {row.signature}, definition {row.definition}": None for row in scores.rows}
    parts += ["", *(Text(safe(line), "dim") for line in (*told, *signatures))]
    return Group(*parts)


def _cells(row: Score) -> list[RenderableType]:
    """How often each truth, by line, met each prediction, by column; only of classes that fit a line."""
    classes = [str(label) for label in row.data["classes"]]
    if len(classes) > _CLASSES:
        return [Text(f"{row.metric}: of {len(classes):,} classes; --json has the cells", "dim")]
    counts = {(truth, prediction): n for truth, prediction, n in row.data["cells"]}
    table = plain_table(f"{row.target or 'truth'} \\ predicted", *map(safe, classes))
    for i, label in enumerate(classes):
        table.add_row(Text(safe(label)), *(Text(f"{counts.get((i, j), 0):,}") for j in range(len(classes))))
    return [table]


_CLASSES: Final = 12


def _spread(spread: Sequence[Spread]) -> RenderableType:
    table = plain_table("metric", "target", "mean", "deviation", "least", "most", "parts")
    for one in spread:
        parts = f"{one.parts:,}" + (f", {one.undefined:,} undefined" if one.undefined else "")
        values = map(_figure, (one.mean, one.deviation, one.least, one.most))
        table.add_row(*(Text(safe(cell)) for cell in (one.metric, one.target or "all", *values, parts)))
    return table


def _figure(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.6g}"
