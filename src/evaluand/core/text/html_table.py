"""Tables for the cells of notebooks: all text is escaped, and invisible characters are shown as codes."""

from __future__ import annotations

import html
from collections.abc import Iterable

_LONGEST = 300


def html_table(heads: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "") -> str:
    """A table whose rows begin with their heading.

    Example:
        >>> html_table(["", "won"], [["<b>", "3"]])
        '<table><thead><tr><th></th><th>won</th></tr></thead><tbody><tr><th>&lt;b&gt;</th><td>3</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape_text(text)}</th>" for text in heads)
    lines = []
    for first, *rest in rows:
        cells = "".join(f"<td>{escape_text(text)}</td>" for text in rest)
        lines.append(f"<tr><th>{escape_text(first)}</th>{cells}</tr>")
    title = f"<caption>{escape_text(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def html_notes(notes: Iterable[str]) -> str:
    """A paragraph for each sentence."""
    return "".join(f"<p>{escape_text(note)}</p>" for note in notes)


def escape_text(text: str) -> str:
    """Text for a page: markup and invisible characters are escaped, and long text is cut."""
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return escape_markup(shown)


def escape_markup(text: str, shown: str = "") -> str:
    r"""Text of any length for a page: markup and invisible characters are escaped, but not those that are shown.

    Example:
        >>> escape_markup("<b>\n\u202e", "\n")
        '&lt;b&gt;\n\\u202e'
    """
    parts = (c if c.isprintable() or c in shown else c.encode("unicode_escape").decode() for c in text)
    return html.escape("".join(parts))
