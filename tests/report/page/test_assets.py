"""The assets of the page are made of its sources."""

import hashlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WEB, ASSETS = ROOT / "web", ROOT / "src/evaluand/report/page/assets"


def test_the_assets_are_made_of_the_sources() -> None:
    if not WEB.is_dir():
        pytest.skip("the sources of the page are not part of an installation")
    names = ["build.mjs", "package-lock.json", "package.json"]
    names += [path.relative_to(WEB).as_posix() for path in (WEB / "src").rglob("*") if path.suffix in (".js", ".css")]
    state = hashlib.sha256()
    for name in sorted(names):
        state.update(f"{name}\0".encode() + (WEB / name).read_bytes() + b"\0")
    assert (ASSETS / "sources.sha256").read_text() == f"{state.hexdigest()}\n", "make page"


def test_the_script_is_small_and_needs_no_other_address() -> None:
    script = (ASSETS / "view.js").read_text()
    assert len(script) < 200_000
    assert "eval(" not in script.replace("_eval(", "")
    addresses = {word for word in script.split('"') if word.startswith(("http:", "https:", "//"))}
    assert addresses <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/1998/Math/MathML",
    }


def test_the_licences_of_what_is_bundled_are_there() -> None:
    text = (ASSETS / "LICENSES.txt").read_text()
    for name in ("preact", "@preact/signals", "htm"):
        assert f"{name} " in text
    assert text.count("Permission is hereby granted") + text.count("Apache License") >= 4


def test_a_report_holds_the_notices_of_what_its_script_contains() -> None:
    script = (ROOT / "src/evaluand/report/assets/report.js").read_text()
    notice = script[: script.index("*/")]
    for name in ("preact", "@preact/signals", "htm"):
        assert f"{name} " in notice
    assert "Permission is hereby granted" in notice
    assert "Licensed under the Apache License" in notice
    assert "</script" not in script
    assert "<!--" not in script
