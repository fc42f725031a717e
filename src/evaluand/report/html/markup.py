"""The building blocks of HTML reports; all text from data enters a page through `clean`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from evaluand.report.text import LABEL, safe


def clean(value: Any, limit: int = 0) -> str:
    """Escapes text for a page."""
    return escape(safe(value, limit))


def name(value: Any) -> str:
    """A name from a user: isolated from the text direction around it, with line breaks allowed after `_` and `/`."""
    return f"<bdi>{re.sub('(?<=[_/])', '<wbr>', clean(value, LABEL))}</bdi>"


def th(title: str, kind: str = "", sortable: bool = False) -> str:
    """The head of a column."""
    inner = f'<button type="button">{clean(title)}</button>' if sortable else clean(title)
    return f'<th scope="col"{f" class={kind}" if kind else ""}>{inner}</th>'


def table(caption: str, heads: str, body: str, kind: str = "") -> str:
    """A table that scrolls by itself if it is wider than the page."""
    label = re.sub(r"<[^>]*>", "", caption)
    return (
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table class="numbers {kind}">'
        f"<caption><span>{caption}</span></caption><thead><tr>{heads}</tr></thead>{body}</table></div>\n"
    )


def figure(caption: str, head: str, lines: Sequence[str], foot: str) -> str:
    """A table whose lines are charts, with their scale below, which screen readers skip."""
    return (
        f'<figure><table class="plot"><caption>{caption}</caption><thead class="quiet"><tr>{head}</tr></thead>'
        f'<tbody>{"".join(lines)}</tbody><tfoot aria-hidden="true"><tr><td></td>{foot}</tr></tfoot></table></figure>'
    )
