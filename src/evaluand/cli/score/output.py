"""What `evaluand score` prints, stores and writes."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import join
from typing import Any

import click
import pyarrow as pa
from click import UsageError

from evaluand.aggregation.aggregator import REFUSED
from evaluand.cli.gates import conclude, require_gates, show_gates
from evaluand.cli.options import suggest_command
from evaluand.cli.output import open_output, print_json, show
from evaluand.cli.progress import show_notes
from evaluand.cli.score.options import ScoreOptions
from evaluand.core import identity
from evaluand.predictions.result import SystemScores
from evaluand.report.export import write_csv, write_parquet
from evaluand.report.facts.base import Facts
from evaluand.report.terminal.comparison import comparison_table
from evaluand.report.terminal.report import results_table
from evaluand.report.text import safe
from evaluand.store.directory import DirectoryStore
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store
from evaluand.store.store import Store, check_name


def check_output(output: ScoreOptions) -> None:
    """Checks before anything is computed that the results can be written.

    Raises:
        UsageError: a file is named twice, exists already or is a table of an unknown format, or --junit has no gates.
        SpecError: the name is none.
    """
    require_gates(output.gates, output.junit)
    if output.name is not None:
        check_name(output.name)
    if (table := output.table) is not None and table.suffix not in (".csv", ".parquet"):
        raise UsageError(f"--table: unknown suffix {table.suffix!r}; use .csv or .parquet")
    paths = _written(output)
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("--out, --table and --report must be different files")
    for path in paths:
        if path.exists() and not output.force:
            raise UsageError(f"{path} exists already; name another file, or give --force")
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}")


def _written(output: ScoreOptions) -> list[Path]:
    """The files that are written."""
    return [path for path in (output.out, output.table, output.report) if path is not None]


def write_scores(
    compute: Callable[[Store | None], SystemScores], output: ScoreOptions, name: str, *, flips: int
) -> None:
    """Computes scores in a store, prints them, and writes the files that are requested.

    Args:
        compute: computes the scores in a store, under `name`; without one they are not stored.
        flips: how many examples of each pair to list as won and as lost.

    Raises:
        Exit: a gate failed, or a metric cannot use the scores.
    """
    with show_notes(), _open_store(output) as store:
        scores = compute(store)
        if output.report is not None:
            from evaluand.cli.report import write as write_report  # on use: it takes a third of the time of a score

            assert isinstance(store, FolderStore)
            commands = None if output.name is not None else {"Score again": f"evaluand {join(sys.argv[1:])}"}
            write_report(store, name, str(output.report), commands=commands)
        facts = scores.facts(flips=flips)
    _print(facts, output)
    refused = _refused_metrics(facts)
    for reason in refused:
        click.echo(f"error: {safe(reason)}", err=True)
    conclude(facts["gates"], output.junit, failed=bool(refused))


def _refused_metrics(facts: Facts) -> list[str]:
    """Why metrics have no value, where they cannot use what a system has."""
    whole = (row for row in facts["metrics"] if not row["by"] and (row["reason"] or "").startswith(REFUSED))
    return [*dict.fromkeys(f"{row['task']}: {row['reason'].removeprefix(REFUSED)}" for row in whole)]


@contextmanager
def _open_store(output: ScoreOptions) -> Iterator[Store | None]:
    if output.name is not None:
        yield open_store(output.folder)
    elif output.report is None:
        yield None
    else:
        with tempfile.TemporaryDirectory(prefix="evaluand-score-") as place:
            yield DirectoryStore(place)


def _print(facts: Facts, output: ScoreOptions) -> None:
    if output.table is not None:
        _write_table(facts["metrics"], output.table)
    stored = {} if output.name is None else {"stored": output.name}
    if output.as_json:
        return print_json(facts | stored)
    show(results_table(facts, quiet=True))
    if facts["comparison"] is not None:
        click.echo()
        show(comparison_table(facts["comparison"]))
    show_gates(facts["gates"])
    for note in facts["notes"]:
        click.echo(f"note: {safe(note)}", err=True)
    for path in _written(output):
        click.echo(f"written: {safe(str(path))}", err=True)
    if output.name is not None:
        again = suggest_command("show", output.name, output.folder)
        click.echo(f"\nstored as {safe(output.name)}; more: {safe(again)}")


def _write_table(rows: Sequence[Facts], path: Path) -> None:
    records = [{name: _cell(value) for name, value in row.items()} for row in rows]
    table = pa.Table.from_pylist(records)
    with open_output(path) as file:
        (write_parquet if path.suffix == ".parquet" else write_csv)(table.to_reader(), file)


def _cell(value: Any) -> Any:
    return identity.encode(value).decode() if isinstance(value, dict | list) else value
