"""What `evaluand import` does with results of other tools: imports them, checks their totals, shows what was stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table

from evaluand.cli.options import suggest_command
from evaluand.cli.output import print_json, show
from evaluand.cli.progress import display, show_notes
from evaluand.core.errors import DataError, EvaluandError, plural
from evaluand.exchange.importer import Importer, LogFile
from evaluand.exchange.storing import ImportedResult, save_results
from evaluand.matches.battle_rows import battle_formats
from evaluand.metrics.base.metric import Direction
from evaluand.report.text import SHORT_ID, numbers, safe
from evaluand.run.runner import Run
from evaluand.store.addresses import Place
from evaluand.store.opening import open_store
from evaluand.store.tables import FAILED, SCORED

_SHOWN: Final = 5  # rows that were left out


def is_of_battles(file: Path) -> bool:
    """Whether a file has the columns by which battles are recognised without being called so."""
    try:
        log = LogFile(file)
    except EvaluandError:
        return False
    return any(each.marks and each.marks <= log.keys | log.columns for each in battle_formats())


def store_results(
    importers: Sequence[Importer],
    folder: Place,
    name: str | None,
    directions: Mapping[str, Direction],
    *,
    as_json: bool,
) -> None:
    """Imports results and prints what was stored.

    Raises:
        DataError: some files could not be read; the results of the others are stored.
    """
    store = open_store(folder)
    with show_notes():
        result = save_results(
            importers, store, name=name, directions=directions, progress=display(as_json, quiet=False)
        )
    if as_json:
        print_json(_facts(result))
    else:
        tools = ", ".join(dict.fromkeys(str(run.manifest["spec"]["task"]["tool"]) for run in result.runs))
        click.echo(f"{plural(result.samples, 'sample')} of {tools} imported")
        show(_table(result))
        if result.agreements:
            click.echo(f"\n{plural(result.agreements, 'total')} of the files: equal to those of the imported scores")
        note_import(result)
        _print_next(result, folder)
    if result.unreadable:
        raise DataError(result.unreadable)


def _table(result: ImportedResult) -> Table:
    """A line for each scorer of each run."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("run", "examples", "repeats", "failed", "scorer", "scored", "mean"):
        table.add_column(title, justify="left" if title in ("run", "scorer") else "right")
    values = _means(result)
    for run, evaluation in zip(result.runs, result.evaluations, strict=True):
        spec = run.manifest["spec"]
        cells = [safe(run.name or run.id[:SHORT_ID]), f"{spec['examples']:,}", f"{spec['replications']:,}"]
        cells.append(f"{run.counts.get(FAILED, 0):,}")
        for scorer in evaluation.scorers if evaluation else [""]:
            scored = f"{evaluation.counts[scorer].get(SCORED, 0):,}" if evaluation else ""
            value = values.get((evaluation.id, scorer)) if evaluation else None
            table.add_row(*cells, safe(scorer), scored, "" if value is None else numbers(value)[0])
            cells = [""] * len(cells)
    return table


def _means(result: ImportedResult) -> dict[tuple[str, str], float | None]:
    """The mean of each scorer of each evaluation."""
    return {
        (aggregation.evaluations[row["evaluation"]].id, row["scorer"]): row["value"]
        for aggregation in result.aggregations
        for row in aggregation.table().to_pylist()
    }


def note_import(result: ImportedResult) -> None:
    """Prints what an import has assumed and left out."""
    for note in result.notes:
        click.echo(f"note: {safe(note)}", err=True)
    for fault in result.left_out[:_SHOWN]:
        click.echo(f"left out: {safe(str(fault))}", err=True)
    if len(result.left_out) > _SHOWN:
        click.echo(f"left out: {len(result.left_out) - _SHOWN:,} more; all are listed with --json", err=True)


def _print_next(result: ImportedResult, folder: Place) -> None:
    named = [each.name or each.id[:SHORT_ID] for each in result.evaluations if each is not None]
    if not named:
        return
    shown = result.aggregations[0].name if result.aggregations else None
    click.echo(f"\nshow it:     {safe(suggest_command('show', shown or named[0], folder))}")
    if systems := next((labels for each in result.aggregations if len(labels := each.labels) > 1), None):
        click.echo(f"compare:     {safe(suggest_command('compare', systems[:2], folder))}")
    click.echo(f"report it:   {safe(suggest_command('report', shown or named[0], folder))}")


def _facts(result: ImportedResult) -> dict[str, Any]:
    def of_run(run: Run) -> dict[str, Any]:
        spec = run.manifest["spec"]
        return {
            "id": run.id,
            "name": run.name,
            "tool": spec["task"]["tool"],
            "system": spec["task"]["system"],
            "dataset": spec["dataset"],
            "examples": spec["examples"],
            "replications": spec["replications"],
            "counts": run.counts,
        }

    return {
        "samples": result.samples,
        "runs": [*map(of_run, result.runs)],
        "evaluations": [
            {"id": e.id, "name": e.name, "run": e.manifest["provenance"]["run"], "counts": e.counts}
            for e in result.evaluations
            if e is not None
        ],
        "aggregations": [{"id": each.id, "name": each.name} for each in result.aggregations],
        "totals_equal": result.agreements,
        "notes": result.notes,
        "left_out": [{"where": fault.where, "reason": fault.message} for fault in result.left_out],
        "unreadable": [{"where": fault.where, "reason": fault.message} for fault in result.unreadable],
    }
