"""`evaluand schema`: the form of experiment files, of stored tables and of rows of your own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson
from click.exceptions import Exit

from evaluand.cli.options import Group, json_option
from evaluand.cli.output import print_json, show
from evaluand.errors import DataError, SpecError

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluand.schema import Schema
    from evaluand.schema.kinds import Record

EXPERIMENT = "experiment"

_EXAMPLES = """\b
Examples:
  evaluand schema > experiment.schema.json
  evaluand schema show evaluand.responses
  evaluand schema validate answers.jsonl --schema text.Text
  evaluand schema convert answers.parquet --to json
"""


@click.group("schema", cls=Group, invoke_without_command=True, epilog=_EXAMPLES)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show schemas, hold rows to them, and write them in another form.

    Without a command: print the JSON Schema of experiment files, with every installed kind; it is JSON in any case.

    A schema is a name (text.Text, evaluand.responses, …), or a file: a JSON Schema, a stored schema or a product of
    named ones as JSON, an encoded Arrow schema, or data in Parquet or Arrow, whose own schema is taken.
    """
    if ctx.invoked_subcommand is None:
        _print_experiment()


@command.command("show", epilog="\b\nExamples:\n  evaluand schema show text.Text\n  evaluand schema show experiment")
@click.argument("what", metavar="NAME|FILE")
@click.option(
    "--as",
    "form",
    type=click.Choice(["text", "json", "arrow"]),
    default="text",
    show_default=True,
    help="As a table of its fields, as JSON Schema, or as Arrow prints it.",
)
@json_option
def show_command(what: str, form: str, as_json: bool) -> None:
    """Print the schema NAME or that in FILE; `experiment` is that of experiment files.

    The table of fields goes into nested objects ({}), lists ([]) and maps. Datasets and scorers add columns of their
    own to evaluand.examples and evaluand.scores.
    """
    if what == EXPERIMENT:
        return _print_experiment()
    schema = _read(what)
    if form == "json":
        return print_json(schema.json)
    if form == "arrow":
        return click.echo(schema.arrow.to_string(truncate_metadata=False))
    fields = list(_fields(schema.record))
    if as_json:
        return print_json({"schema": what, "fields": fields})
    from rich.table import Table

    table = Table(
        "field", "type", "may be null", "may be missing", "limits", "about", box=None, pad_edge=False,
        header_style="bold",
    )  # fmt: skip
    for field in fields:
        limits = ", ".join(f"{word} {orjson.dumps(value).decode()}" for word, value in field["limits"].items())
        marks = ("yes" if field[mark] else "no" for mark in ("nullable", "optional"))
        table.add_row(field["field"], field["type"], *marks, limits, field["doc"])
    show(table)
    return None


@command.command("validate", epilog="\b\nExamples:\n  evaluand schema validate answers.jsonl --schema text.Text --json")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--schema", "what", required=True, metavar="NAME|FILE", help="What the rows shall hold to.")
@json_option
def validate_command(file: Path, what: str, as_json: bool) -> None:
    """Find every row of FILE (JSON lines, JSON, CSV, Parquet, Arrow) that breaks a schema, and how.

    In JSON, times, UUIDs and decimals are texts, and bytes are base64. Exits 1 with faults.
    """
    schema, places = _read(what), _Places(file)
    faults = schema.faults(places.data(), json=places.json)
    told = [{"line": line, "what": "json", "message": why} for line, why in places.broken]
    told += [
        {"row": fault.row, "index": fault.index, "path": fault.path, "what": fault.what, "message": fault.message}
        for fault in faults
    ]
    if as_json:
        print_json({"file": str(file), "schema": what, "rows": places.count, "faults": told})
    else:
        from evaluand.report.text import safe

        for line, why in places.broken:
            click.echo(f"fault  {safe(str(file))}:{line}: {why}")
        for fault in faults:
            click.echo(f"fault  {safe(places.of(fault.row))}: {safe(str(fault))}")
        verdict = f"{len(told):,} fault{'s' * (len(told) != 1)}" if told else "ok"
        click.echo(
            f"{verdict}: {places.count:,} row{'s'[: places.count != 1]} of {safe(str(file))} against {safe(what)}"
        )
    if told:
        raise Exit(1)


@command.command("convert", epilog="\b\nExamples:\n  evaluand schema convert answer.schema.json --to dyff")
@click.argument("what", metavar="NAME|FILE")
@click.option(
    "--to",
    "form",
    type=click.Choice(["arrow", "json", "dyff"]),
    required=True,
    help="An encoded Arrow schema (base64), a JSON Schema, or a stored schema that has both.",
)
def convert_command(what: str, form: str) -> None:
    """Print the schema NAME or that in FILE in another form; nothing is lost, and each form can be read again."""
    from evaluand.schema import DataSchema, encode_schema

    schema = _read(what)
    if form == "arrow":
        click.echo(encode_schema(schema.arrow))
    elif form == "json":
        print_json(schema.json)
    else:
        print_json(DataSchema.from_model(what if schema.kind == what else schema).model_dump())


def _print_experiment() -> None:
    from evaluand.experiment import json_schema

    print_json(json_schema())


def _read(what: str) -> Schema:
    """The schema of a name or in a file."""
    from evaluand.schema import Schema, names

    path = Path(what)
    if what in names() or not path.is_file():
        if path.suffix.lstrip(".").lower() in (*_DATA, "json") or "/" in what:
            raise SpecError(f"{what}: no such file")
        return Schema.of(what)
    if path.suffix.lstrip(".").lower() in _DATA:
        from evaluand.source import open_file

        return _from(path, open_file(path).schema)
    try:
        text = path.read_text().strip()
    except UnicodeDecodeError:
        raise SpecError(f"{path}: this is no schema; give JSON, an encoded Arrow schema, Parquet or Arrow") from None
    if not text.startswith("{"):
        from evaluand.schema import decode_schema

        return _from(path, decode_schema(text))
    try:
        return _from(path, orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise SpecError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None


_DATA = ("parquet", "arrow", "feather")


def _from(path: Path, given: pa.Schema | dict[str, Any]) -> Schema:
    from pydantic import ValidationError

    from evaluand.schema import DataSchema, DyffDataSchema, Schema

    try:
        if isinstance(given, dict) and "arrowSchema" in given:
            return DataSchema.model_validate(given).to_schema()
        if isinstance(given, dict) and "components" in given:
            return DyffDataSchema.model_validate(given).to_schema()
        return Schema.of(given)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    except SpecError as error:
        lines = str(error).split("\n")
    raise SpecError("\n".join(f"{path}: {line}" for line in lines)) from None


def _fields(record: Record, path: str = "") -> Iterator[dict[str, Any]]:
    """Each field, and those inside it."""
    for each in record.fields:
        told = {"field": f"{path}{each.name}", "nullable": each.nullable, "optional": not each.required}
        yield told | _type(each.type) | {"doc": each.doc}
        yield from _inside(each.type, f"{path}{each.name}")


def _inside(given: Any, path: str) -> Iterator[dict[str, Any]]:
    from evaluand.schema.kinds import Array, Map, Record

    if isinstance(given, Record):
        yield from _fields(given, f"{path}.")
    if isinstance(given, Array | Map):
        inner, path = (given.item, f"{path}[]") if isinstance(given, Array) else (given.value, f"{path}{{}}")
        if not isinstance(inner, Record):
            yield {"field": path, "nullable": given.nullable, "optional": False} | _type(inner) | {"doc": ""}
        yield from _inside(inner, path)


def _type(given: Any) -> dict[str, Any]:
    from evaluand.schema.arrow import arrow_type
    from evaluand.schema.kinds import Record, Scalar, keywords

    if isinstance(given, Scalar):
        name = "string (JSON)" if given.kind == "json" else str(arrow_type(given))
        return {"type": name, "limits": keywords(given)}
    lengths = {} if isinstance(given, Record) else {"least": given.min_length, "most": given.max_length}
    limits = {word: length for word, length in lengths.items() if length is not None}
    return {"type": {"Record": "object", "Array": "list", "Map": "map"}[type(given).__name__], "limits": limits}


class _Places:
    """The rows of a file, and where each of them stands."""

    def __init__(self, path: Path) -> None:
        self.path, self.lines = path, list[int]()
        self.kind = path.suffix.lstrip(".").lower()
        self.json = self.kind in ("json", "jsonl", "ndjson")
        self.count = 0
        self.broken: list[tuple[int, str]] = []

    def data(self) -> Any:
        """The rows: objects as JSON has them, or a table."""
        if not self.path.is_file():
            raise DataError(f"{self.path}: no such file")
        if self.json:
            return self._objects()
        import pyarrow as pa

        from evaluand.source import open_file

        source = open_file(self.path)
        table = pa.Table.from_batches(source.batches(), source.schema)
        self.count = len(table)
        return table

    def of(self, row: int | None) -> str:
        return str(self.path) if row is None or not self.lines else f"{self.path}:{self.lines[row]}"

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
