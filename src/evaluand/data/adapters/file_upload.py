"""Rows as multipart uploads."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from evaluand.core.errors import DataError, kind_of
from evaluand.data.adapters.base.adapter import UPLOAD, Adapter, Row
from evaluand.data.adapters.base.options import AdapterError, AdapterSpecError, WrongType, read_options
from evaluand.data.adapters.base.template import Compute, compile_template, read_path


class FileUpload(Adapter):
    """Turns each row into a file sent as `multipart/form-data`; must be the last adapter of an input pipeline.

    `field` is the path of the file's content. `encoding` is the form of that value: `base64` (default; bytes are
    accepted too), `binary`, `utf-8`, or `json`, which writes any value as a JSON document. `name` is the name of the
    part (default `file`). `filename`, `contentType` and `formFields`, further parts of the form, are templates as in
    `TransformJSON`. Other fields of the row are dropped.

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
        options = read_options(self.kind, self.configuration, required=("field",), optional=known)
        self._field = read_path(options["field"], f"{self.kind}: field")
        self._encoding = options.get("encoding", "base64")
        if self._encoding not in _ENCODINGS:
            raise AdapterSpecError(
                f"{self.kind}: no encoding is called {self._encoding!r}; use one of {', '.join(_ENCODINGS)}"
            )
        self._name = options.get("name", "file")
        if not isinstance(self._name, str):
            raise AdapterSpecError(f"{self.kind}: name is {self._name!r}; give text")
        self._filename = self._template(options, "filename", "file")
        self._type = self._template(options, "contentType", "application/octet-stream")
        if not isinstance(options.get("formFields", {}), Mapping):
            raise AdapterSpecError(f"{self.kind}: formFields is {options['formFields']!r}; give an object: name: value")
        self._fields = self._template(options, "formFields", {})

    def adapt(self, row: Row) -> list[Row]:
        upload = {
            "name": self._name,
            "filename": _check_text("filename", self._filename(row)),
            "contentType": _check_header("contentType", self._type(row)),
            "content": self._read_content(row),
            "formFields": _format_fields(self._fields(row)),
        }
        return [{UPLOAD: upload}]

    def _template(self, options: Mapping[str, Any], key: str, default: Any) -> Compute:
        return compile_template(options.get(key, default), self.kind, key)

    def _read_content(self, row: Row) -> bytes:
        try:
            value = self._field.get(row)
        except DataError as error:
            raise AdapterError(f"field: {error}") from None
        if self._encoding == "json":
            try:
                return json.dumps(value, allow_nan=False).encode()
            except (TypeError, ValueError) as error:
                kind = WrongType if isinstance(error, TypeError) else AdapterError
                raise kind(f"field: cannot be written as JSON: {error}") from None
        if isinstance(value, bytes | bytearray | memoryview) and self._encoding in ("base64", "binary"):
            return bytes(value)
        if isinstance(value, str) and self._encoding == "utf-8":
            return value.encode()
        if isinstance(value, str) and self._encoding == "base64":
            try:
                return base64.b64decode("".join(value.split()), validate=True)
            except (binascii.Error, ValueError) as error:
                raise AdapterError(f"field: is not base64 text: {error}") from None
        expected = {"base64": "base64 text or bytes", "binary": "bytes", "utf-8": "text"}[self._encoding]
        hint = "; encoding base64 accepts both" if self._encoding == "binary" and isinstance(value, str) else ""
        raise AdapterError(f"field: is {kind_of(value)}, not {expected}{hint}")


_ENCODINGS = ("base64", "binary", "utf-8", "json")


def _check_text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise AdapterError(f"{key}: is {kind_of(value)}, not text")
    return value


def _check_header(key: str, value: Any) -> str:
    if not (_check_text(key, value).isascii() and value.isprintable()):
        raise AdapterError(f"{key}: {value!r} is not allowed in a header; give printable ASCII")
    return str(value)


def _format_fields(fields: Any) -> dict[str, str]:
    if not isinstance(fields, dict):
        raise AdapterError(f"formFields: is {kind_of(fields)}, not an object")
    return {name: _format_value(name, value) for name, value in fields.items()}


def _format_value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise AdapterError(f"formFields: {name}: is {kind_of(value)}; give text, a number, true or false")
