"""The frame of a self-contained HTML page with its content security policy, and the building blocks of its content.

All text from data enters a page through `clean`.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

from evaluand._version import __version__
from evaluand.report.text import LABEL, safe, safe_lines

_TITLE = 200
_WHOLE = 4000


_SCRIPT: Final = "report.js"
_STYLE: Final = "report.css"


def page_head(title: str, kind: str, meta: str, *, skip: str, images: bool = False) -> str:
    """The head of a page, up to and including its heading; `meta` is markup, `skip` the id of the first section."""
    policy = f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; base-uri 'none'"
    policy += "; img-src data:" if images else ""
    heading = clean(title, _TITLE)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="evaluand {clean(__version__)}">
<title>{page_title(title)}</title>
<style>{asset(_STYLE)}</style>
</head>
<body>
<a class="skip" href="#{skip}">Skip to the results</a>
<header>
<div class="head"><p class="kind">{kind}</p>
<button type="button" id="theme" aria-pressed="false" hidden>Dark</button></div>
<h1 dir="auto">{heading}</h1>
<p class="meta">{meta}</p>
</header>
"""


def page_title(title: str) -> str:
    """The `<title>` of a report, as written in the file."""
    return f"{clean(title, _TITLE)} – evaluand report"


def page_foot(version: object = __version__) -> str:
    """The footer below the sections."""
    return (
        f"</main>\n<footer><p>Made by evaluand {clean(version)}. This file is complete: it needs no network and "
        "sends nothing.</p></footer>\n"
    )


def page_end() -> str:
    """The script, and the end of the page. What the script reads stands before it."""
    return f'<script data-kind="elements" data-address="hash">{asset(_SCRIPT)}</script>\n</body>\n</html>\n'


@cache
def asset(name: str) -> str:
    """A style sheet or script."""
    return files("evaluand.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(name: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(asset(name).encode()).digest()).decode()}'"


def clean(value: Any, limit: int = 0) -> str:
    """Escapes text for a page."""
    return escape(safe(value, limit))


def clean_sentence(text: str) -> str:
    """Escapes a sentence for a page; what is between backticks becomes code.

    Example:
        >>> clean_sentence("run `evaluand list` & wait")
        'run <code>evaluand list</code> &amp; wait'
    """
    return _CODE.sub(r"<code>\1</code>", clean(text))


_CODE: Final = re.compile(r"`([^`]+)`")


def clean_lines(text: str) -> str:
    """Escapes text of several lines for a page."""
    return escape(safe_lines(text))


def excerpt(text: str, limit: int) -> str:
    """A text that is cut at a word, with the whole of it as its title.

    Example:
        >>> excerpt("no difference could be shown", 20)
        '<span title="no difference could be shown">no difference could…</span>'
        >>> excerpt("b is better", 20)
        'b is better'
    """
    if len(text) <= limit:
        return clean(text)
    start, space, _ = text[:limit].rpartition(" ")
    shown = start if space else text[: limit - 1]
    return f'<span title="{clean(text, _WHOLE)}">{clean(shown.rstrip(" ,;:"))}…</span>'


def name(value: Any) -> str:
    """A name from a user: isolated from the text direction around it, with line breaks allowed after `_` and `/`."""
    return f"<bdi>{re.sub('(?<=[_/])', '<wbr>', clean(value, LABEL))}</bdi>"


def th(title: str, kind: str = "", sortable: bool = False) -> str:
    """The head of a column."""
    inner = f'<button type="button">{clean(title)}</button>' if sortable else clean(title)
    return f'<th scope="col"{f" class={kind}" if kind else ""}>{inner}</th>'


def example_link(task: str, index: Any) -> str:
    """The address of an example on the page of a report."""
    return escape(f"#example={quote(str(task), safe='')}/{quote(str(index), safe='')}")


def table(caption: str, heads: str, body: str, kind: str = "") -> str:
    """A table that scrolls by itself if it is wider than the page."""
    label = re.sub(r"<[^>]*>", "", caption)
    return (
        f'<div class="scroll" role="group" aria-label="{label}" tabindex="0"><table class="numbers {kind}">'
        f"<caption><span>{caption}</span></caption><thead><tr>{heads}</tr></thead>{body}</table></div>\n"
    )


def figure(caption: str, head: str, lines: Sequence[str], foot: str) -> str:
    """A table whose lines are charts, with their scale below, which screen readers skip."""
    return (
        f'<figure><table class="plot"><caption>{caption}</caption><thead class="quiet"><tr>{head}</tr></thead>'
        f'<tbody>{"".join(lines)}</tbody><tfoot aria-hidden="true"><tr><td></td>{foot}</tr></tfoot></table></figure>'
    )
