"""Reads a report in HTML: its elements, texts, lines of tables, and the rows that it carries."""

from __future__ import annotations

import base64
import gzip
import re
from html.parser import HTMLParser

import orjson

from evaluand.report.facts.base import Facts


def rows_of(text: str) -> list[Facts]:
    return [row for piece in data_of(text, 'rows/[^"]*') for row in orjson.loads(piece)]


def data_of(text: str, path: str) -> list[bytes]:
    """What a report holds under the paths that match a pattern."""
    found = re.findall(f'id="data:{path}">([^<]*)</script>', text)
    return [gzip.decompress(base64.b64decode(each)) for each in found]


def head_of(text: str, path: str) -> Facts:
    """The head of packed columns in a report."""
    [packed] = data_of(text, path)
    head: Facts = orjson.loads(packed[8 : 8 + int(packed[:8])])
    return head


class Page(HTMLParser):
    """What a page is made of: elements with their attributes, and the lines of its tables as texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.lines: list[list[str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "tr":
            self.lines.append([])
        if tag in ("td", "th"):
            self.lines[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._in_cell:
            self.lines[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]
