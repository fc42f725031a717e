"""From rows to multipart uploads."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from evaluand.core.errors import DataError, kind_of
from evaluand.data.adapters.base.adapter import UPLOAD, Adapter, Row
from evaluand.data.adapters.base.faults import AdapterError, AdapterSpecError, WrongType
from evaluand.data.adapters.base.options import options
from evaluand.data.adapters.base.template import Made, compiled, selector


class FileUpload(Adapter):
    """Makes of each row a file to be sent as `multipart/form-data`; must be the last adapter of an input pipeline.

    `field` is the path of the file's contents, and `encoding` how they stand there: `base64` (unless given; bytes
    are taken too), `binary`, `utf-8`, or `json`, which writes the value as a JSON document. `name` is that of the
    part (`file`), `filename` and `contentType` are the file's, `formFields` are parts beside it. The last three are
    templates, as in `TransformJSON`. Other fields of the row are dropped.

    Example:
        >>> (row,) = FileUpload({"field": "$.data", "filename": "a.txt"}).adapt({"data": "aGVsbG8="})
        >>> row["$fileUpload"]["content"]
        b'hello'
    """

    kind = "FileUpload"
    last = True

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        super().__init__(configuration)
        known = ("encoding", "name", "filename", "contentType", "formFields")
        given = options(self.kind, self.configuration, required=("field",), optional=known)
        self._field = selector(given["field"], f"{self.kind}: field")
        self._encoding = given.get("encoding", "base64")
        if self._encoding not in _ENCODINGS:
            raise AdapterSpecError(
                f"{self.kind}: no encoding is called {self._encoding!r}; use one of {', '.join(_ENCODINGS)}"
            )
        self._name = given.get("name", "file")
        if not isinstance(self._name, str):
            raise AdapterSpecError(f"{self.kind}: name is {self._name!r}; give a text")
        self._filename = self._template(given, "filename", "file")
        self._type = self._template(given, "contentType", "application/octet-stream")
        if not isinstance(given.get("formFields", {}), Mapping):
            raise AdapterSpecError(f"{self.kind}: formFields is {given['formFields']!r}; give an object: name: value")
        self._fields = self._template(given, "formFields", {})

    def adapt(self, row: Row) -> list[Row]:
        upload = {
            "name": self._name,
            "filename": _text("filename", self._filename(row)),
            "contentType": _header("contentType", self._type(row)),
            "content": self._content(row),
            "formFields": _form(self._fields(row)),
        }
        return [{UPLOAD: upload}]

    def _template(self, given: Mapping[str, Any], key: str, default: Any) -> Made:
        return compiled(given.get(key, default), self.kind, key)

    def _content(self, row: Row) -> bytes:
        try:
            value = self._field.get(row)
        except DataError as error:
            raise AdapterError(f"field: {error}") from None
        if self._encoding == "json":
            try:
                return json.dumps(value, allow_nan=False).encode()
            except TypeError as error:
                raise WrongType(f"field: cannot be written as JSON: {error}") from None
            except ValueError as error:
                raise AdapterError(f"field: cannot be written as JSON: {error}") from None
        if isinstance(value, bytes | bytearray | memoryview) and self._encoding in ("base64", "binary"):
            return bytes(value)
        if isinstance(value, str) and self._encoding == "utf-8":
            return value.encode()
        if isinstance(value, str) and self._encoding == "base64":
            return _decoded(value)
        wanted = {"base64": "base64 text or bytes", "binary": "bytes", "utf-8": "text"}[self._encoding]
        hint = "; encoding: base64 takes both" if self._encoding == "binary" and isinstance(value, str) else ""
        raise AdapterError(f"field: is {kind_of(value)}, not {wanted}{hint}")


_ENCODINGS = ("base64", "binary", "utf-8", "json")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise AdapterError(f"field: is no base64 text: {error}") from None


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise AdapterError(f"{key}: is {kind_of(value)}, not a text")
    return value


def _header(key: str, value: Any) -> str:
    if not (_text(key, value).isascii() and value.isprintable()):
        raise AdapterError(f"{key}: is {value!r}, which cannot stand in a header; give printable ASCII")
    return str(value)


def _form(fields: Any) -> dict[str, str]:
    if not isinstance(fields, dict):
        raise AdapterError(f"formFields: is {kind_of(fields)}, not an object")
    return {name: _form_value(name, value) for name, value in fields.items()}


def _form_value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise AdapterError(
        f"formFields: {name}: is {kind_of(value)}; a part of a form is a text, a number or a truth value"
    )
