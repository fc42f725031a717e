"""Schemas as experiment files and commands name them: by name, file or code, or written out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from evaluand.core.errors import SpecError
from evaluand.data.schema.arrow import decode_schema
from evaluand.data.schema.data import Schema, names
from evaluand.data.sources import open_file
from evaluand.experiment.user_code import import_reference


def read_schema(what: Any, folder: Path = Path()) -> Any:
    """The schema that an entry names; an entry that is not text is returned unchanged.

    Args:
        what: a name (`text.Text`), a pydantic model (`file.py:Model`, `module:Model`), or a file: a JSON Schema, a
            stored schema or a product of named ones as JSON, an encoded Arrow schema, or data in Parquet or Arrow.
        folder: the folder to which paths are relative.

    Raises:
        SpecError: there is no such schema, or it is wrong; lists every fault.
    """
    if not isinstance(what, str):
        return what
    path, place = folder / what, what.rpartition(":")[0]
    if place and not path.exists():
        return _read(what, import_reference(what, folder))
    suffix = path.suffix.lstrip(".").lower()
    if what in names() or not path.is_file():
        if suffix in (*_DATA, "json") or "/" in what:
            raise SpecError(f"{path}: no such file")
        return Schema.of(what)
    if suffix in _DATA and not _is_encoded(path):
        return _read(what, open_file(path).schema)
    return _read_text(what, path)


_DATA = ("parquet", "arrow", "feather")


def _is_encoded(path: Path) -> bool:
    """Whether a file is an Arrow schema as text, as `evaluand schema convert --to arrow` prints it."""
    with path.open("rb") as file:
        return file.read(4) == b"////"  # the marker of an IPC message in base64


def _read_text(what: str, path: Path) -> Schema:
    try:
        text = path.read_text().strip()
    except UnicodeDecodeError:
        raise SpecError(f"{path}: not a schema; give JSON, an encoded Arrow schema, Parquet or Arrow") from None
    if not text.startswith("{"):
        return _read(what, decode_schema(text))
    try:
        return _read(what, orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise SpecError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None


def _read(what: str, schema: Any) -> Schema:
    try:
        return Schema.of(schema)
    except SpecError as error:
        raise SpecError("\n".join(f"{what}: {line}" for line in str(error).split("\n"))) from None
