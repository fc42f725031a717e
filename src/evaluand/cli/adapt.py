"""`evaluand adapt`: tries a pipeline of adapters on the rows of a file."""

import json
from contextlib import nullcontext
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import IO, Any

import click
import orjson
import pyarrow as pa
from click import UsageError

from evaluand.cli.command import argument, make_command, option
from evaluand.cli.options import TARGET, json_option
from evaluand.cli.output import console, open_output, print_json
from evaluand.cli.progress import show_notes
from evaluand.core.errors import DataError, SpecError
from evaluand.core.files.bounded_yaml import MOST_BYTES
from evaluand.core.files.regular import read_regular_file
from evaluand.core.files.yaml import Document
from evaluand.data.adapters.base.adapter import Counts, Pipeline, Row, row_name
from evaluand.data.adapters.base.columns import read_rows
from evaluand.data.adapters.base.options import AdapterError, AdapterSpecError
from evaluand.data.sources import DataSource, open_file
from evaluand.report.export import json_line, write_parquet
from evaluand.report.text import safe

_EXAMPLES = """\b
Examples:
  evaluand adapt answers.jsonl --pipeline pipeline.yaml
  evaluand adapt answers.jsonl --pipeline pipeline.json --rows 10
  evaluand adapt answers.parquet --pipeline pipeline.yaml -o adapted.parquet
"""
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}

Shown = list[tuple[Row, list[Row] | None]]
"""Rows with the new rows made from each; None where a row stopped the pipeline."""


@make_command("adapt", epilog=_EXAMPLES)
def command(
    file: Path = argument(type=click.Path(path_type=Path)),
    spec: Path = option(
        "A JSON or YAML file.", "--pipeline", type=click.Path(path_type=Path), metavar="SPEC", required=True
    ),
    rows: int = option("Rows to show.", type=click.IntRange(min=0), default=3, show_default=True, metavar="N"),
    output: Path | None = option("JSON lines or Parquet.", "-o", "--output", type=TARGET, metavar="OUT"),
    as_json: bool = json_option,
) -> None:
    """Try a pipeline of adapters on the rows of FILE, any file that a dataset can be read from.

    SPEC is a list of adapters, each with kind and configuration, or an object with adapters, onError and default.
    onError decides what happens to a row that cannot be transformed: abort, skip or default. The first N rows are shown
    before (-) and after (+); all rows are transformed and counted, with the reasons for failures. As in a dataset, a
    field that only other rows have is null.

    With -o, the new rows are written to OUT: JSON lines one by one, Parquet with a column for each field.
    """
    form = _output_format(output)
    if output is not None and output.exists() and file.exists() and output.samefile(file):
        raise UsageError(f"{output} is the input file; write the new rows to another file")
    source = open_file(file)
    with show_notes():
        pipeline = _read_pipeline(spec)
    shown, counts = _preview(source, pipeline, rows), Counts()
    try:
        written = _write_rows(source, pipeline, counts, output, form)
    except AdapterError as error:
        error.add_place(source.where(counts.read - 1))
        if not as_json:
            _print_rows(shown)
        raise DataError(f"{error} (onError: skip in {spec} leaves such rows out)") from None
    if as_json:
        return print_json(_facts(file, pipeline, counts, shown, output))
    _print_rows(shown)
    _print_counts(counts)
    if output is not None:
        click.echo(f"{written:,} rows written to {safe(output)}", err=True)


def _output_format(output: Path | None) -> str:
    form = "" if output is None else _SUFFIXES.get(output.suffix.lower())
    if form is None:
        raise UsageError(f"{output}: the output must be OUT.jsonl or OUT.parquet")
    return form


def _read_pipeline(file: Path) -> Pipeline:
    if not file.is_file():
        raise SpecError(f"{file}: no such file; it must contain the adapters of the pipeline")
    value = _read_json(file) if file.suffix.lower() == ".json" else _read_yaml(file)
    try:
        return Pipeline.of(value)
    except AdapterSpecError as error:
        raise SpecError("\n".join(f"{file}: {line}" for line in str(error).split("\n"))) from None


def _read_yaml(file: Path) -> Any:
    document = Document(file)
    document.check()
    return document.value


def _read_json(file: Path) -> Any:
    try:
        content = read_regular_file(file, MOST_BYTES, follow_link=True)
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_unique_keys)
    except OSError as error:
        raise SpecError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{file}: byte {error.start:,} is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise SpecError(f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{file}: cannot be read as JSON: {error}") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} occurs twice")

    return unique


def _preview(source: DataSource, pipeline: Pipeline, n: int) -> Shown:
    """The first rows with the new rows made from each, up to one that cannot be transformed."""
    shown: Shown = []
    for row in islice((row for batch in source.batches() for row in read_rows(batch)), n):
        try:
            shown.append((row, list(pipeline([row]))))
        except AdapterError:
            shown.append((row, None))
            break  # the error is shown when all rows are transformed
    return shown


def _write_rows(source: DataSource, pipeline: Pipeline, counts: Counts, output: Path | None, form: str) -> int:
    """Transforms all rows, by batch where possible, and writes them if there is an output."""
    with open_output(output) if output is not None else nullcontext() as file:
        if file is not None and form == "parquet":
            return write_parquet(pipeline.table(source.batches(), counts).to_reader(), file)
        return sum(_write_lines(piece, file) for piece in pipeline.pieces(source.batches(), counts))


def _write_lines(piece: pa.RecordBatch | list[Row], file: IO[bytes] | None) -> int:
    if file is not None:
        for row in piece if isinstance(piece, list) else read_rows(piece):
            file.write(json_line(row) + b"\n")
    return len(piece)


# Output


def _facts(file: Path, pipeline: Pipeline, counts: Counts, shown: Shown, output: Path | None) -> dict[str, Any]:
    return {
        "file": str(file),
        "pipeline": pipeline.spec,
        "counts": {each.name: getattr(counts, each.name) for each in fields(counts)},
        "rows": [{"before": _as_json(row), "after": [_as_json(new) for new in made or ()]} for row, made in shown],
        "output": None if output is None else str(output),
    }


def _as_json(row: Any) -> Any:
    return orjson.Fragment(json_line(row))


def _print_rows(shown: Shown) -> None:
    width = console().width - 2
    for place, (row, made) in enumerate(shown):
        click.echo(safe(row_name(row, place)))
        for sign, each in (("-", row), *(("+", new) for new in made or ())):
            click.echo(f"{sign} {safe(json_line(each).decode(), width)}")
        if made == []:
            click.echo("+ no row")
        click.echo()


def _print_counts(counts: Counts) -> None:
    click.echo(
        f"{counts.read:,} rows read, {counts.made:,} made, {counts.skipped:,} skipped, {counts.defaulted:,} defaulted"
    )
    for reason, times in counts.reasons.most_common():
        click.echo(f"{times:>7,} × {safe(reason)}")
