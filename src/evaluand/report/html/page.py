"""The frame of a self-contained HTML page: its head, style, scripts and content security policy."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from evaluand._version import __version__
from evaluand.report.html.markup import clean

_TITLE = 200


def page_head(title: str, kind: str, meta: str, *, scripts: Sequence[str], skip: str, images: bool = False) -> str:
    """The head of a page, up to and including its heading.

    Args:
        title: text from a user.
        kind: what the page is, in a word or two.
        meta: the line below the title, as markup.
        scripts: the assets that may run.
        skip: the id of the first section.
        images: whether the page holds images.
    """
    allowed = " ".join(map(_hash, scripts))
    policy = f"default-src 'none'; style-src {_hash('report.css')}; script-src {allowed}; base-uri 'none'"
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
<style>{asset("report.css")}</style>
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


def page_end(scripts: Sequence[str]) -> str:
    """The scripts that run, and the end of the page."""
    return "".join(f"<script>{asset(script)}</script>\n" for script in scripts) + "</body>\n</html>\n"


@cache
def asset(name: str) -> str:
    """A style sheet or script."""
    return files("evaluand.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(name: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(asset(name).encode()).digest()).decode()}'"
