"""Whether pages can be read by everybody: with assistive technology, in the dark, and on a narrow screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def check_readable(tab: Any, address: str) -> None:
    """No rule of axe is broken, and nothing is wider than a narrow screen but what scrolls by itself."""
    api = pytest.importorskip("axe_playwright_python.base", reason="needs axe: pip install 'evaluand[browser]'")
    script = (Path(api.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    try:
        tab.set_viewport_size({"width": 1280, "height": 800})
        tab.goto(address)
        tab.get_by_role("heading", level=1).wait_for()
        if "/live" not in address:
            tab.wait_for_load_state("networkidle")
        tab.evaluate(script)
        for scheme, rules in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):  # others do not depend on it
            tab.emulate_media(color_scheme=scheme)
            asked = {"resultTypes": ["violations"], "preload": False}
            found = tab.evaluate("(asked) => axe.run(asked).then((found) => found.violations)", asked | rules)
            assert [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]] == []
        tab.set_viewport_size({"width": 390, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    finally:
        tab.emulate_media(color_scheme="light")
        tab.set_viewport_size({"width": 1280, "height": 800})
