"""Prediction files scored by the metrics of their problem."""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import join
from typing import Final

import click
from click import UsageError
from click.exceptions import Exit
from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.cli.options import suggest_command
from evaluand.cli.output import condensed, open_output, print_json, show
from evaluand.cli.progress import show_notes
from evaluand.cli.report import write as write_report
from evaluand.cli.score.options import ScoreOptions
from evaluand.core.errors import DataError, Fault, plural
from evaluand.core.files.json import none_if_nan
from evaluand.predictions.columns.names import looks_like_prediction, looks_like_truth
from evaluand.predictions.problem.files import read_header
from evaluand.predictions.problem.inline import criterion_named, inline_problem
from evaluand.predictions.problem.problem import Problem
from evaluand.predictions.scoring import Score, Scores, Spread, score
from evaluand.report.export import write_csv, write_parquet
from evaluand.report.facts.base import Facts
from evaluand.report.terminal.cells import plain_table
from evaluand.report.terminal.comparison import comparison_table
from evaluand.report.text import between, numbers, safe
from evaluand.store.addresses import Place
from evaluand.store.directory import DirectoryStore
from evaluand.store.opening import open_store


def score_problem(options: ScoreOptions, problem: Path | None) -> None:
    """Scores prediction files by the metrics of their problem, or by named metrics against a file of truth.

    Raises:
        Exit: there are faults, which were printed.
        UsageError: the options do not fit.
    """
    if problem is not None and options.metrics:
        raise UsageError(f"--metric: {problem} names its own metrics; leave out one of the two")
    if problem is None and len(options.predictions) == 1 and options.truth is not None:
        _require_one_meaning(options.predictions[0], options.truth, options.metrics)
    elif options.metrics:
        raise UsageError("--metric needs a FILE with columns, or one file of --predictions and a file of --truth")
    elif problem is None:
        raise UsageError(
            "name a file and its columns (evaluand score FILE --truth COLUMN --prediction COLUMN), or a problem by its"
            " FOLDER or --problem"
        )
    if not options.metrics and (options.pos_label is not None or options.k is not None):
        raise UsageError("--pos-label and --k need --metric; a problem states its own parameters")
    check_targets([options.out, options.table, options.report], options.force)
    source: Path | Problem | None = problem
    try:
        if options.metrics:
            criteria = [
                criterion_named(each, options.definition, positive=options.pos_label, k=options.k)
                for each in options.metrics
            ]
            source = inline_problem(Path(options.predictions[0]), Path(options.truth or ""), criteria)
        assert source is not None  # by the check above
        with show_notes():
            scores = score(
                source,
                options.predictions,
                None if options.truth is None else Path(options.truth),
                definition=options.definition,
                part=options.part,
                intervals=not options.no_intervals,
            )
    except DataError as error:
        if options.as_json:
            print_json({"ok": False, "faults": [*map(_fault_facts, error.faults)], "notes": []})
        else:
            for line in condensed(error.faults):
                click.echo(f"fault  {safe(line)}", err=True)
            click.echo(f"{plural(len(error.faults), 'fault')}; nothing was scored", err=True)
        raise Exit(1) from None
    if options.out is not None:
        scores.write(options.out, options.layout, force=True)
    if options.table is not None:
        with open_output(options.table) as file:
            write = write_parquet if options.table.suffix == ".parquet" else write_csv
            write(scores.table().to_reader(), file)
    stored, comparison = _store(scores, options.name, options.folder, options.report)
    if options.as_json:
        return print_json(_facts(scores) | {"comparison": comparison} | stored)
    show(_render(scores))
    if comparison is not None:
        click.echo()
        show(comparison_table(comparison | {"flips": []}))
    for note in condensed(scores.notes):
        click.echo(f"note: {safe(note)}", err=True)
    for path in (options.out, options.table, options.report):
        if path is not None:
            click.echo(f"written: {safe(str(path))}", err=True)
    if options.name is not None:
        again = suggest_command("show", options.name, options.folder)
        click.echo(f"\nstored as {safe(options.name)}; more: {safe(again)}")


def _require_one_meaning(predictions: str, truth: str, metrics: Sequence[str]) -> None:
    """Refuses two files without a metric, and those that both have truth and predictions.

    Raises:
        UsageError: the message has the command with the columns named.
    """
    own, true = (read_header(Path(path)) if Path(path).is_file() else [] for path in (predictions, truth))
    truths = [name for name in own if name in true and looks_like_truth(name)]
    others = [name for name in own if looks_like_prediction(name)]
    if metrics and not (truths and others):
        return
    named = [next(iter(truths), "COLUMN"), "--prediction", next(iter(others), "COLUMN")]
    command = join(["evaluand", "score", predictions, "--truth-file", truth, "--truth", *named])
    reason = (
        "name the column of the truth and that of the predictions, or a --metric by which the columns that both files"
        " have are judged"
    )
    if metrics:
        command = " ".join([command, *(join([f"--metric={metric}"]) for metric in metrics)])
        reason = (
            f"both files have the column {truths[0]!r}, which would be scored against itself, and {predictions} has"
            f" {others[0]!r}"
        )
    raise UsageError(f"{reason}. Run\n  {safe(command)}")


def check_targets(files: Sequence[Path | None], force: bool) -> None:
    """Refuses to write a file twice, to replace one without --force, or a table of an unknown format.

    Args:
        files: those of --out, --table and --report.

    Raises:
        UsageError: names the option or the file.
    """
    if (table := files[1]) is not None and table.suffix not in (".csv", ".parquet"):
        raise UsageError(f"--table: unknown suffix {table.suffix!r}; use .csv or .parquet")
    paths = [path for path in files if path is not None]
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("--out, --table and --report must be different files")
    for path in paths:
        if path.exists() and not force:
            raise UsageError(f"{path} exists already; name another file, or give --force")
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}")


def _store(scores: Scores, name: str | None, folder: Place, report: Path | None) -> tuple[Facts, Facts | None]:
    """Stores the scores under a name, writes their report, or both; what is stored, and the comparison of systems."""
    if name is None and report is None:
        return {}, None if scores.comparison is None else scores.comparison.to_dict()
    with tempfile.TemporaryDirectory(prefix="evaluand-score-") as place:
        store = DirectoryStore(place) if name is None else open_store(folder)
        results = scores.save(store, name or scores.problem.id)
        if report is not None:
            write_report(store, name or scores.problem.id, str(report))
    comparison = None if results.comparison is None else results.comparison.to_dict()
    if name is None:
        return {}, comparison
    assert results.aggregation is not None  # where there is an evaluation, there is one
    ids = [{"run": one.run.id, "evaluation": evaluation.id} for one in results.tasks if (evaluation := one.evaluation)]
    stored: Facts = ids[0] if len(ids) == 1 else {"systems": dict(zip(scores.systems, ids, strict=True))}
    return {**stored, "aggregation": results.aggregation.id}, comparison


# Output


def _fault_facts(fault: Fault) -> Facts:
    place = {name: getattr(fault, name, None) for name in ("file", "line", "column")}
    return {"where": fault.where, **place, "code": fault.code, "message": fault.message}


def _facts(scores: Scores) -> Facts:
    rows = [row | {"data": one.data} for row, one in zip(scores.table().to_pylist(), scores.rows, strict=True)]
    spread = [{name: none_if_nan(value) for name, value in asdict(one).items()} for one in scores.spread]
    notes = [*map(_fault_facts, scores.notes)]
    return {"ok": True, "problem": scores.problem.id, "scores": rows, "spread": spread, "notes": notes}


def _render(scores: Scores) -> RenderableType:
    several, systems = scores.n_parts > 1, len(scores.systems) > 1
    first = ["system"] if systems else []
    table = plain_table(*first, "metric", "target", *(["repeat", "fold"] if several else []), "value", "interval", "n")
    for row in scores.rows:
        part = [str(row.repeat), str(row.fold)] if several else []
        interval = "" if math.isnan(row.low) else between(*numbers(row.low, row.high))
        system = [row.system] if systems else []
        cells = (*system, row.metric, row.target or "all", *part, _format(row.value), interval, f"{row.n:,}")
        table.add_row(*(Text(safe(cell)) for cell in cells))
    parts: list[RenderableType] = [table]
    if scores.spread:
        parts += ["", _spread_table(scores.spread, systems)]
    for row in scores.rows:
        if row.data is not None and "cells" in row.data:
            parts += [row.system if systems else "", *_confusion_table(row)]
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


def _spread_table(spread: Sequence[Spread], systems: bool) -> RenderableType:
    first = ["system"] if systems else []
    table = plain_table(*first, "metric", "target", "mean", "deviation", "least", "most", "parts")
    for one in spread:
        parts = f"{one.parts:,}" + (f", {one.undefined:,} undefined" if one.undefined else "")
        values = map(_format, (one.mean, one.deviation, one.least, one.most))
        system = [one.system] if systems else []
        table.add_row(*(Text(safe(cell)) for cell in (*system, one.metric, one.target or "all", *values, parts)))
    return table


def _format(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.6g}"
