"""`evaluand export`: the rows of an artifact as one flat table, for pandas and spreadsheets."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click
from click import UsageError

from evaluand.aggregation.aggregator import Aggregation
from evaluand.cli.options import complete_artifact, json_option, store_option
from evaluand.cli.output import opened, print_json
from evaluand.core.errors import NotFound, SpecError
from evaluand.core.registry import nearest
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.report.export import FORMATS, Artifact, flat, tables_of, write_csv, write_jsonl, write_parquet
from evaluand.report.text import safe
from evaluand.run.runner import Run
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import KINDS, Store, resolve

_EXAMPLES = """\b
Examples:
  evaluand export arithmetic/mine > responses.csv
  evaluand export arithmetic/mine --table tidy -o scores.parquet
  evaluand export arithmetic/mine --status failed --format jsonl
  evaluand export arithmetic -o metrics.csv
"""


@click.command("export", epilog=_EXAMPLES)
@click.argument("artifact", metavar="ID|NAME", shell_complete=complete_artifact)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Where to.")
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="csv if neither this nor the suffix of FILE says otherwise."
)
@click.option(
    "--table", metavar="TABLE", help="responses, spans, examples, tidy, metrics, curves, or the name of a scorer."
)
@click.option("--status", metavar="STATUS", help="Only rows with this status: completed, failed, scored, …")
@click.option("--raw", is_flag=True, help="Leave CSV cells as they are, also those that a spreadsheet would execute.")
@store_option
@json_option
def command(
    artifact: str,
    output: Path | None,
    form: str | None,
    table: str | None,
    status: str | None,
    raw: bool,
    folder: Path,
    as_json: bool,
) -> None:
    """Write the rows of a run, an evaluation, an aggregation or a dataset as one flat table.

    A run gives one row per call (responses), or its spans, or its examples; an evaluation one row per score (tidy), or
    those of one scorer; an aggregation its metrics; a dataset its examples. A name of several stands for the first that
    has the TABLE.

    CSV is safe for spreadsheets: a text that begins with = + - @, a tab or a line break gets a leading ' (not with
    --raw). What is neither text nor number nor true or false is JSON. Parquet keeps every value and type, and so gives
    the same run when it is imported; CSV cannot tell the text 1 from the number.

    With --json, says what was written to FILE.
    """
    if as_json and output is None:
        raise UsageError("--json tells what was written to a file: give -o FILE, or --format jsonl for rows in JSON")
    form = form or _form(output)
    if form == "parquet" and output is None:
        raise UsageError("Parquet is not for stdout: give -o FILE")
    store = DirectoryStore(folder)
    batches = flat(*_found(store, artifact, table), status=status)
    with opened(output) as file:
        if form == "csv":
            written = write_csv(batches, file, raw=raw)
        else:
            written = write_jsonl(batches, file) if form == "jsonl" else write_parquet(batches, file)
    if as_json:
        print_json({"file": str(output), "format": form, "rows": written, "columns": batches.schema.names})
    elif output is not None:
        click.echo(f"{written:,} rows written to {safe(output)}", err=True)


def _form(output: Path | None) -> str:
    if output is None or not output.suffix:
        return "csv"
    form = {"ndjson": "jsonl", "pq": "parquet"}.get(given := output.suffix[1:].lower(), given)
    if form not in FORMATS:
        raise UsageError(f"the suffix {output.suffix!r} tells no format: give --format {' | '.join(FORMATS)}")
    return form


def _found(store: Store, artifact: str, table: str | None) -> tuple[Artifact, str | None]:
    """What is meant, and its table: of several of one name, the first that has the table."""
    if table is None:
        return _opened_artifact(store, *resolve(store, artifact)), None
    there: list[str] = []
    for kind in KINDS:
        with suppress(NotFound):
            found = _opened_artifact(store, *resolve(store, artifact, kind))
            if table in (known := tables_of(found)):
                return found, table
            there += known
    if not there:
        resolve(store, artifact)  # says what is wrong with the name
    raise SpecError(f"{artifact!r} has no table {table!r}{nearest(table, there)}; there are {', '.join(there)}")


def _opened_artifact(store: Store, kind: str, id: str) -> Artifact:
    if not store.is_sealed(kind, id):
        raise SpecError(f"{kind[:-1]} {id} is not finished; go on with `evaluand resume {id}`, then export it")
    if kind == "runs":
        return Run(store, id)
    if kind == "evaluations":
        return Evaluation(store, id)
    return Aggregation(store, id) if kind == "aggregations" else Dataset.stored(store, id)
