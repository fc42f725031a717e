"""Forms with a file, as bodies of requests: `multipart/form-data` (RFC 7578), with names written as browsers do."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple

_ESCAPES: Final = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})  # html.spec.whatwg.org, section 4.10.22.8


class FilePart(NamedTuple):
    """A file in a form."""

    name: str
    filename: str
    content_type: str
    content: bytes


def encode_form(fields: Mapping[str, str], file: FilePart) -> tuple[bytes, str]:
    """The body of a form, fields first, and its content type.

    Example:
        >>> body, content_type = encode_form({"lang": "de"}, FilePart("file", "a.txt", "text/plain", b"Hallo"))
        >>> body.count(content_type.partition("boundary=")[2].encode())
        3
    """
    boundary = secrets.token_hex(16)
    parts = [f"{_disposition(name)}\r\n\r\n{value}".encode() for name, value in fields.items()]
    described = f'{_disposition(file.name)}; filename="{file.filename.translate(_ESCAPES)}"'
    parts.append(f"{described}\r\nContent-Type: {file.content_type}\r\n\r\n".encode() + file.content)
    start = f"--{boundary}\r\n".encode()
    body = b"".join(start + part + b"\r\n" for part in parts) + f"--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"


def _disposition(name: str) -> str:
    return f'Content-Disposition: form-data; name="{name.translate(_ESCAPES)}"'
