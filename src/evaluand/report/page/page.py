"""The page itself, whose script finds all else, and its assets: the same from a server and from files."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Final
from urllib.parse import quote

ASSETS: Final = ("view.js", "view.css", "icon.svg")


def read_asset(name: str) -> bytes:
    """A script, a style sheet or a picture of the page."""
    return files("evaluand.report.page").joinpath("assets", name).read_bytes()


def page(assets: str, data: str, facts: Mapping[str, str] | None = None, meta: str = "") -> str:
    """The page, whose script finds the rest.

    Args:
        assets: where script and style sheet are.
        data: where what it reads is.
        facts: what else its script must know; `data-` attributes.
        meta: further lines of its head.
    """
    said = "".join(f' data-{name}="{escape(value)}"' for name, value in (facts or {}).items())
    at, where = quote(assets), quote(data)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{meta}<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>evaluand</title>
<link rel="icon" href="{at}icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{at}view.css">
<script src="{at}view.js" defer data-source="{where}"{said}></script>
</head>
<body><noscript>Allow this page to run its script.</noscript><div id="page"></div></body>
</html>
"""
