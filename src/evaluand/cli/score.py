"""`evaluand score`: prediction files scored by the metrics of their problem."""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click
from click import UsageError
from click.exceptions import Exit
from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.cli.options import TARGET, force_option, json_option, repeatable, store_option, suggest_command
from evaluand.cli.output import condensed, open_output, print_json, show
from evaluand.cli.report import write as write_report
from evaluand.cli.run import notes
from evaluand.core.errors import DataError, Fault, plural
from evaluand.core.files.json import none_if_nan
from evaluand.experiment.scoring import Score, Scores, Spread, score
from evaluand.problem.formats import default_format
from evaluand.problem.inline import criterion_named, inline_problem
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


class _Layout(click.ParamType):  # type: ignore[type-arg]
    """A layout of the file of scores, of those that the installed format has."""

    name = "layout"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(default_format().score_layouts)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(click.Choice(default_format().score_layouts).convert(value, param, ctx))


@click.command("score", epilog=_EXAMPLES)
@click.argument("folder_or_problem", required=False, metavar="[FOLDER]", type=click.Path(exists=True, path_type=Path))
@click.option("--problem", type=click.Path(exists=True, path_type=Path), metavar="FILE", help="Instead of FOLDER.")
@repeatable(
    "--predictions",
    metavar="FILE",
    help="The file to score, by default the one that the problem names; repeat the option for repeats and folds, with"
    " their numbers in the names: predictions_repeat0_fold1.csv.",
)
@click.option(
    "--truth",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE|DATASET",
    help="A CSV file of index and targets, or a dataset's folder; by default the truth in FOLDER.",
)
@repeatable(
    "--metric",
    "metrics",
    metavar="NAME",
    help="Instead of a problem: a metric by which --predictions and --truth are judged, such as f1Macro; repeatable.",
)
@click.option("--pos-label", metavar="LABEL", help="With --metric: the label that counts as positive.")
@click.option("--k", type=click.IntRange(1), metavar="N", help="With --metric: how many rows or ranks count.")
@click.option(
    "--definition", metavar="NAME", help="Which public definition metrics follow: 3.1.1, core-2022, sklearn …"
)
@click.option("--part", metavar="PART", help="TRAIN, TEST or SCORE, if each has its own documents.")
@click.option("--out", type=TARGET, metavar="FILE", help="Write scores.csv.")
@click.option("--layout", type=_Layout(), help="The layout of scores.csv.", show_default="the first")
@click.option(
    "--table", type=TARGET, metavar="FILE", help="Write every score with all its attributes: .csv or .parquet."
)
@click.option("--report", type=TARGET, metavar="FILE", help="Write a report as one HTML file.")
@click.option("--no-intervals", is_flag=True, help="Values without intervals: faster on large files.")
@force_option
@click.option("--name", metavar="NAME", help="Store run, evaluation and values under this name.")
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
    layout: str | None,
    table: Path | None,
    report: Path | None,
    no_intervals: bool,
    force: bool,
    name: str | None,
    folder: Path,
    as_json: bool,
) -> None:
    """Score prediction files by the metrics of their problem.

    Everything is checked before anything is scored: rows that are missing, repeated or not tested, values that are
    empty, not finite or of another type, columns, quotes. Every fault is reported with its line, column and code, and
    the exit code is 1. With --name, the scores are stored for `evaluand show`, `compare` and `report`.
    """
    if (folder_or_problem is not None) + (problem is not None) + bool(metrics) != 1:
        raise UsageError("give FOLDER, --problem or --metric, and only one of them")
    if metrics and (truth is None or len(predictions) != 1):
        raise UsageError("--metric needs one file of --predictions and a file of --truth; give both")
    if not metrics and (pos_label is not None or k is not None):
        raise UsageError("--pos-label and --k need --metric; a problem states its own parameters")
    if table is not None and table.suffix not in (".csv", ".parquet"):
        raise UsageError(f"--table: unknown suffix {table.suffix!r}; use .csv or .parquet")
    _check_targets([out, table, report], force)
    source: Path | Problem | None = folder_or_problem or problem
    try:
        if metrics:
            criteria = [criterion_named(each, definition, positive=pos_label, k=k) for each in metrics]
            source = inline_problem(Path(predictions[0]), Path(str(truth)), criteria)
        assert source is not None  # by the check above
        with notes():
            scores = score(source, predictions, truth, definition=definition, part=part, intervals=not no_intervals)
    except DataError as error:
        _report_faults(error.faults, as_json)
        raise Exit(1) from None
    if out is not None:
        scores.write(out, layout, force=True)
    if table is not None:
        with open_output(table) as file:
            (write_parquet if table.suffix == ".parquet" else write_csv)(scores.table().to_reader(), file)
    stored = _store(scores, name, folder, report)
    if as_json:
        return print_json(_facts(scores) | stored)
    show(_render(scores))
    for note in condensed(scores.notes):
        click.echo(f"note: {safe(note)}", err=True)
    for path in (out, table, report):
        if path is not None:
            click.echo(f"written: {safe(str(path))}", err=True)
    if name is not None:
        click.echo(f"\nstored as {safe(name)}; more: {safe(suggest_command('show', name, folder))}")


def _check_targets(files: Sequence[Path | None], force: bool) -> None:
    """Refuses to write a file twice, or to replace one without --force."""
    paths = [path for path in files if path is not None]
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("--out, --table and --report must be different files")
    for path in paths:
        if path.exists() and not force:
            raise UsageError(f"{path} exists already; name another file, or give --force")
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}")


def _store(scores: Scores, name: str | None, folder: Path, report: Path | None) -> Facts:
    """Stores the scores under a name, writes their report, or both."""
    if name is None and report is None:
        return {}
    if name is not None:
        return _save(scores, name, DirectoryStore(folder), report)
    with tempfile.TemporaryDirectory(prefix="evaluand-score-") as place:
        _save(scores, scores.problem.id, DirectoryStore(Path(place)), report)
    return {}


def _save(scores: Scores, name: str, store: DirectoryStore, report: Path | None) -> Facts:
    results = scores.save(store, name)
    if report is not None:
        write_report(store, name, str(report))
    [result] = results.tasks
    return {"run": result.run.id, "evaluation": result.evaluation.id, "aggregation": results.aggregation.id}


# Output


def _report_faults(faults: Sequence[Fault], as_json: bool) -> None:
    if as_json:
        return print_json({"ok": False, "faults": [*map(_fault_facts, faults)], "notes": []})
    for line in condensed(faults):
        click.echo(f"fault  {safe(line)}", err=True)
    return click.echo(f"{plural(len(faults), 'fault')}; nothing was scored", err=True)


def _fault_facts(fault: Fault) -> Facts:
    place = {name: getattr(fault, name, None) for name in ("file", "line", "column")}
    return {"where": fault.where, **place, "code": fault.code, "message": fault.message}


def _facts(scores: Scores) -> Facts:
    rows = [row | {"data": one.data} for row, one in zip(scores.table().to_pylist(), scores.rows, strict=True)]
    spread = [{name: none_if_nan(value) for name, value in asdict(one).items()} for one in scores.spread]
    return {
        "ok": True,
        "problem": scores.problem.id,
        "scores": rows,
        "spread": spread,
        "notes": [*map(_fault_facts, scores.notes)],
    }


def _render(scores: Scores) -> RenderableType:
    several = len(scores.parts) > 1
    table = plain_table("metric", "target", *(["repeat", "fold"] if several else []), "value", "interval", "n")
    for row in scores.rows:
        part = [str(row.repeat), str(row.fold)] if several else []
        interval = "" if math.isnan(row.low) else " – ".join(numbers(row.low, row.high))
        cells = (row.metric, row.target or "all", *part, _format(row.value), interval, f"{row.n:,}")
        table.add_row(*(Text(safe(cell)) for cell in cells))
    parts: list[RenderableType] = [table]
    if scores.spread:
        parts += ["", _spread_table(scores.spread)]
    for row in scores.rows:
        if row.data is not None and "cells" in row.data:
            parts += ["", *_confusion_table(row)]
    reasons = {f"{row.metric}: {row.reason}": None for row in scores.rows if row.reason}
    signatures = {f"{row.metric}  {row.signature}, definition {row.definition}": None for row in scores.rows}
    parts += ["", *(Text(safe(line), "dim") for line in (*reasons, *signatures))]
    return Group(*parts)


def _confusion_table(row: Score) -> list[RenderableType]:
    """Counts with a line per true class and a column per predicted class, unless there are too many for a line."""
    classes = [str(label) for label in row.data["classes"]]
    if len(classes) > _MOST_CLASSES:
        return [Text(f"{row.metric}: {len(classes):,} classes; --json shows the counts", "dim")]
    counts = {(truth, prediction): n for truth, prediction, n in row.data["cells"]}
    table = plain_table(f"{row.target or 'truth'} \\ predicted", *map(safe, classes))
    for i, label in enumerate(classes):
        table.add_row(Text(safe(label)), *(Text(f"{counts.get((i, j), 0):,}") for j in range(len(classes))))
    return [table]


_MOST_CLASSES: Final = 12


def _spread_table(spread: Sequence[Spread]) -> RenderableType:
    table = plain_table("metric", "target", "mean", "deviation", "least", "most", "parts")
    for one in spread:
        parts = f"{one.parts:,}" + (f", {one.undefined:,} undefined" if one.undefined else "")
        values = map(_format, (one.mean, one.deviation, one.least, one.most))
        table.add_row(*(Text(safe(cell)) for cell in (one.metric, one.target or "all", *values, parts)))
    return table


def _format(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.6g}"
