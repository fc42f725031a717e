"""The environment in which templates are rendered: Jinja's immutable sandbox, plain data in, text out.

Keys of objects come before methods; nothing private or that changes a value is there. Nothing is random, so that the
same row makes the same text. Null, and a text where a list belongs, are errors; lists, objects and truth values are
written as JSON. A template and its text are bounded in length, not in time: a loop may count as far as it likes.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Final

from jinja2 import StrictUndefined, Template, Undefined, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from evaluand.core.errors import kind_of

MOST_CHARACTERS: Final = 8_000_000
"""The longest template, and the longest text."""
_NULL: Final = 'a value is null; write {{ VALUE or "" }} if it may be'
_ITERATE: Final = "iterate "  # with a blank, so that no template can name it


def render(template: Template, values: Mapping[str, Any]) -> str:
    """The text of a template with some values.

    Raises:
        ValueError: it is too long; Jinja and the values raise other errors.
    """
    pieces: list[str] = []
    length = 0
    for piece in template.generate(values):
        length += len(piece)
        if length > MOST_CHARACTERS:
            raise ValueError(f"makes a text of more than {MOST_CHARACTERS:,} characters")
        pieces.append(piece)
    return "".join(pieces)


class _Sandbox(ImmutableSandboxedEnvironment):
    """The environment of all templates."""

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True, finalize=_text_of
        )
        self.globals = {"namespace": Namespace, "range": self.globals["range"]}
        del self.filters["random"]
        self.filters |= {
            _ITERATE: _iterate,
            "e": _escape,
            "escape": _escape,
            "join": _join,
            "string": _text_of,
            "tojson": _to_json,
        }

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A key of an object before a method of the same name: `row.items` are its items where it has such a key."""
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        return self.undefined(f"{attribute!r} of {kind_of(obj)} is not available", obj, attribute)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Strict().visit(super()._parse(source, name, filename))
        return tree


class _Strict(NodeTransformer):
    """Makes loops and `~` refuse what Jinja would read as something else, such as null."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, _ITERATE, [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "join", [], [], None, None, lineno=node.lineno)


def _text_of(value: Any) -> Any:
    """A value as a template writes it: text as it is, lists, objects and truth values as JSON.

    Raises:
        ValueError: it is null.
    """
    if isinstance(value, str):
        return value
    if value is None:
        raise ValueError(_NULL)
    if isinstance(value, Undefined):
        return str(value)  # raises what it says about itself
    if isinstance(value, Iterator):  # of a filter such as map
        value = list(value)
    if isinstance(value, bool | list | tuple | Mapping):
        return _to_json(value)
    if isinstance(value, int | float | Decimal | date | time | timedelta):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no data that can be written")


def _iterate(values: Iterable[Any]) -> Iterable[Any]:
    """The values of a loop.

    Raises:
        TypeError: they are a text.
        ValueError: they are null.
    """
    if isinstance(values, str):
        raise TypeError("a loop needs a list, not a text")
    if values is None:
        raise ValueError(_NULL)
    return values


def _join(values: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
    """The texts of values, joined; of one attribute of each if it is named."""
    return separator.join(_text_of(value if attribute is None else value[attribute]) for value in _iterate(values))


def _to_json(value: Any, indent: int | None = None) -> str:
    """JSON as a model reads it best: letters as they are."""
    return json.dumps(value, ensure_ascii=False, indent=indent, default=_text_of)


def _escape(value: Any) -> str:
    return html.escape(_text_of(value))


SANDBOX: Final = _Sandbox()
