"""`evaluand schema`: shows, checks and converts schemas of experiment files, stored tables and your own rows."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from click import UsageError
from click.exceptions import Exit

from evaluand.cli.command import argument, make_command, option
from evaluand.cli.options import TARGET, json_option
from evaluand.cli.output import open_output, print_json, show
from evaluand.core.errors import DataError, plural

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluand.data.schema.data import Schema
    from evaluand.data.schema.faults import Faults, RowFault
    from evaluand.data.schema.kinds import StructType

EXPERIMENT, SUITE = "experiment", "suite"
_METAVAR = "NAME|FILE"

_EXAMPLES = """\b
Examples:
  evaluand schema > experiment.schema.json
  evaluand schema show evaluand.responses
  evaluand schema validate answers.jsonl --schema text.Text
  evaluand schema convert answers.parquet --to json
"""


@click.group("schema", invoke_without_command=True, epilog=_EXAMPLES, params=[json_option("as_json", bool)])
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show schemas, validate rows against them, and convert them.

    Without a command: print the JSON Schema of experiment files, with every installed kind.

    A schema is a name (text.Text, evaluand.responses, …), or a file: a JSON Schema, a stored schema or a product of
    named ones as JSON, an encoded Arrow schema, or data in Parquet or Arrow, whose schema is used; or your pydantic
    model, as file.py:Model or module:Model.
    """
    if ctx.invoked_subcommand is None:
        _print_experiment()


@make_command("show", command, epilog="\b\nExamples:\n  evaluand schema show text.Text\n  evaluand schema show suite")
def show_command(
    what: str = argument(metavar=_METAVAR),
    form: str = option(
        "As a table of its fields, as JSON Schema, or as Arrow prints it.",
        "--as",
        type=click.Choice(["text", "json", "arrow"]),
        default="text",
        show_default=True,
    ),
    as_json: bool = json_option,
) -> None:
    """Print a schema: NAME, or the one in FILE. `experiment` is that of experiment files, `suite` that of suites.

    The table of fields includes nested objects ({}), lists ([]) and maps. Datasets and scorers add columns to
    evaluand.examples and evaluand.scores.
    """
    if what == EXPERIMENT:
        return _print_experiment()
    if what == SUITE:
        from evaluand.experiment.suite_schema import suite_json_schema

        return print_json(suite_json_schema())
    schema = _read_schema(what)
    if form == "json":
        return print_json(schema.json)
    if form == "arrow":
        return click.echo(schema.arrow.to_string(truncate_metadata=False))
    fields = list(_fields(schema.struct))
    if as_json:
        return print_json({"schema": what, "fields": fields})
    from rich.table import Table

    table = Table(
        "field", "type", "may be null", "may be missing: is then", "limits", "about", box=None, pad_edge=False,
        header_style="bold",
    )  # fmt: skip
    for field in fields:
        missing = f"yes: {orjson.dumps(field['default']).decode()}" if "default" in field else _YES[field["optional"]]
        limits = ", ".join(_format_limit(*each) for each in field["limits"].items() if each[0] in _LIMITS)
        table.add_row(field["field"], field["type"], _YES[field["nullable"]], missing, limits, field["doc"])
    show(table)
    return None


@make_command(
    "validate", command, epilog="\b\nExamples:\n  evaluand schema validate answers.jsonl --schema text.Text --json"
)
def validate_command(
    file: Path = argument(type=click.Path(path_type=Path)),
    what: str = option("The schema to validate against.", "--schema", required=True, metavar=_METAVAR),
    most: int = option(
        "Faults of each path and kind to list; all are counted.",
        type=click.IntRange(min=0),
        default=10,
        show_default=True,
        metavar="N",
    ),
    as_json: bool = json_option,
) -> None:
    """Find rows of FILE that break a schema. FILE is JSON lines, JSON, CSV, Parquet or Arrow.

    In JSON, times, UUIDs and decimals are texts, and bytes are base64. The cells of a CSV file are read as the schema
    says. Rows count from 0, lines from 1. Exits 1 if
    there are faults.
    """
    schema, places = _read_schema(what), _RowFile(file, most)
    faults = schema.faults(places.data(schema), json=places.json, most=most)
    listed = [{"line": line, "what": "json", "message": why} for line, why in places.broken]
    listed += [
        {"row": fault.row, "index": fault.index, "path": fault.path, "what": fault.what, "message": fault.message}
        for fault in faults
    ]
    counts = {("", "json"): places.n_broken, **faults.counts} if places.n_broken else faults.counts
    if as_json:
        numbers = [{"path": path, "what": sort, "faults": n} for (path, sort), n in counts.items()]
        print_json({"file": str(file), "schema": what, "rows": places.count, "faults": listed, "counts": numbers})
    else:
        _print_faults(faults, places, counts, len(listed) < sum(counts.values()), what)
    if listed or counts:
        raise Exit(1)


def _print_faults(
    faults: Faults, places: _RowFile, counts: Mapping[tuple[str, str], int], some: bool, what: str
) -> None:
    from evaluand.report.text import safe

    for line, why in places.broken:
        click.echo(f"fault  {safe(str(places.path))}:{line}: {why}")
    for fault in faults:
        click.echo(f"fault  {safe(places.locate(fault))}")
    for (path, sort), n in counts.items() if some else ():
        click.echo(f"{n:>7,} × {safe(path or 'row')}: {sort}")
    n, rows = sum(counts.values()), plural(places.count, "row")
    if n:
        return click.echo(f"{plural(n, 'fault')} in {safe(str(places.path))} ({rows}) against {safe(what)}")
    return click.echo(f"ok: {rows} of {safe(str(places.path))} against {safe(what)}")


@make_command("write", command, epilog="\b\nExamples:\n  evaluand schema write in.jsonl --schema s.json -o out.parquet")
def write_command(
    file: Path = argument(type=click.Path(path_type=Path)),
    what: str = option("The schema of the rows.", "--schema", required=True, metavar=_METAVAR),
    output: Path = option("JSON lines or Parquet.", "-o", "--output", type=TARGET, required=True, metavar="OUT"),
) -> None:
    """Write rows with the types of a schema. To Parquet, and back to JSON lines, without loss.

    Missing values get their defaults. Nothing is written if a row breaks the schema.
    """
    form = output.suffix.lower()
    if form not in (".jsonl", ".ndjson", ".parquet", ".pq"):
        raise UsageError(f"{output}: the output must be OUT.jsonl or OUT.parquet")
    schema, places = _read_schema(what), _RowFile(file, 1)
    table = schema.validate(places.data(schema), json=places.json)
    for line, why in places.broken:
        raise DataError(f"{file}:{line}: {why}")
    from evaluand.report.export import write_parquet

    with open_output(output) as out:
        if form in (".parquet", ".pq"):
            write_parquet(table.to_reader(), out)
        else:
            out.writelines(_json_lines(schema, table))
    click.echo(f"{len(table):,} rows written to {output}", err=True)


def _json_lines(schema: Schema, table: pa.Table) -> Iterator[bytes]:
    for number, row in enumerate(schema.json_rows(table)):
        try:
            yield json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        except ValueError:
            raise DataError(f"row {number}: JSON has no NaN or infinity; write Parquet") from None


@make_command("convert", command, epilog="\b\nExamples:\n  evaluand schema convert answer.schema.json --to dyff")
def convert_command(
    what: str = argument(metavar=_METAVAR),
    form: str = option(
        "An encoded Arrow schema (base64), a JSON Schema, or a stored schema that has both.",
        "--to",
        type=click.Choice(["arrow", "json", "dyff"]),
        required=True,
    ),
) -> None:
    """Print a schema in another form. Nothing is lost, and each form can be read again."""
    from evaluand.data.schema.arrow import encode_schema
    from evaluand.data.schema.data import DataSchema

    schema = _read_schema(what)
    if form == "arrow":
        click.echo(encode_schema(schema.arrow))
    elif form == "json":
        print_json(schema.json)
    else:
        print_json(DataSchema.from_model(what if schema.kind == what else schema).model_dump())


_YES = {True: "yes", False: "no"}
_LIMITS = {
    **dict.fromkeys(("minimum", "formatMinimum"), "≥ {}"),
    **dict.fromkeys(("maximum", "formatMaximum"), "≤ {}"),
    **dict.fromkeys(("exclusiveMinimum", "formatExclusiveMinimum"), "> {}"),
    **dict.fromkeys(("exclusiveMaximum", "formatExclusiveMaximum"), "< {}"),
    "multipleOf": "a multiple of {}",
    "pattern": "matches {}",
    "x-finite": "finite",
    "enum": "one of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "x-min-bytes": "at least {} bytes",
    "x-max-bytes": "at most {} bytes",
    "least": "at least {} in it",
    "most": "at most {} in it",
}


def _format_limit(word: str, value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    texts = (each if isinstance(each, str) and word != "enum" else orjson.dumps(each).decode() for each in values)
    return _LIMITS[word].format(", ".join(texts))


def _print_experiment() -> None:
    from evaluand.experiment.spec_schema import json_schema

    print_json(json_schema())


def _read_schema(what: str) -> Schema:
    """The schema of a name or in a file."""
    from evaluand.experiment.schemas import read_schema

    schema: Schema = read_schema(what)
    return schema


def _fields(record: StructType, path: str = "") -> Iterator[dict[str, Any]]:
    """Each field, and the fields nested in it."""
    from evaluand.data.schema.kinds import to_json

    for each in record.fields:
        row = {"field": f"{path}{each.name}", "nullable": each.nullable, "optional": not each.required}
        if not each.required and (each.fill_value is not None or each.default is None):
            row["default"] = to_json(each.type, each.fill_value)
        yield row | _describe_type(each.type) | {"doc": each.doc}
        yield from _nested_fields(each.type, f"{path}{each.name}")


def _nested_fields(kind: Any, path: str) -> Iterator[dict[str, Any]]:
    from evaluand.data.schema.kinds import Array, Map, StructType

    if isinstance(kind, StructType):
        yield from _fields(kind, f"{path}.")
    if isinstance(kind, Array | Map):
        inner, path = (kind.item, f"{path}[]") if isinstance(kind, Array) else (kind.value, f"{path}{{}}")
        if not isinstance(inner, StructType):
            yield {"field": path, "nullable": kind.nullable, "optional": False} | _describe_type(inner) | {"doc": ""}
        yield from _nested_fields(inner, path)


def _describe_type(kind: Any) -> dict[str, Any]:
    from evaluand.data.schema.arrow import arrow_type
    from evaluand.data.schema.kinds import Scalar, StructType, keywords

    if isinstance(kind, Scalar):
        name = "string (JSON)" if kind.kind == "json" else str(arrow_type(kind))
        return {"type": name, "limits": keywords(kind)}
    lengths = {} if isinstance(kind, StructType) else {"least": kind.min_length, "most": kind.max_length}
    limits = {word: length for word, length in lengths.items() if length is not None}
    return {"type": {"StructType": "object", "Array": "list", "Map": "map"}[type(kind).__name__], "limits": limits}


_CELLS = ("csv", "tsv")


class _RowFile:
    """The rows of a file, and the line of each."""

    def __init__(self, path: Path, most: int) -> None:
        self.path, self.most, self.lines = path, most, array("q")
        self.kind = path.suffix.lstrip(".").lower()
        self.json = self.kind in ("json", "jsonl", "ndjson", *_CELLS)
        self.count = self.n_broken = 0
        self.broken: list[tuple[int, str]] = []

    def data(self, schema: Schema) -> Any:
        """The rows: JSON objects, or a table. The cells of a CSV file are read as the schema says."""
        if not self.path.is_file():
            raise DataError(f"{self.path}: no such file")
        if self.kind in _CELLS:
            return self._cells(schema)
        if self.json:
            return self._objects()
        import pyarrow as pa

        from evaluand.data.sources import open_file

        source = open_file(self.path)
        table = pa.Table.from_batches(source.batches(), source.schema)
        self.count = len(table)
        return table

    def locate(self, fault: RowFault) -> str:
        """A fault with its line in JSON lines, or else its row."""
        if fault.row is None or not self.lines:
            return f"{self.path}: {fault}"
        index = "" if fault.index is None else f" (_index_ {fault.index})"
        path = f" {fault.path}:" if fault.path else ""
        return f"{self.path}:{self.lines[fault.row]}{index}:{path} {fault.message}"

    def _cells(self, schema: Schema) -> Iterator[Any]:
        from evaluand.data.conform import parse_cells
        from evaluand.data.sources import open_file

        source = open_file(self.path)
        texts = source.texts() if source.texts else source
        for batch in texts.batches():
            for row in batch.to_pylist():
                self.lines.append(int(source.where(self.count).rpartition(":")[2]))
                self.count += 1
                yield parse_cells(schema.struct, row)

    def _objects(self) -> Iterator[Any]:
        if self.kind == "json":
            for row in self._array():
                self.count += 1
                yield row
            return
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    self.n_broken += 1
                    if self.n_broken <= self.most:
                        self.broken.append((number, f"not JSON at column {error.colno}: {error.msg}"))
                    continue
                self.count += 1
                self.lines.append(number)
                yield row

    def _array(self) -> list[Any]:
        try:
            rows = orjson.loads(self.path.read_bytes())
        except orjson.JSONDecodeError as error:
            raise DataError(f"{self.path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
        return rows if isinstance(rows, list) else [rows]
