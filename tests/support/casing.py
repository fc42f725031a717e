"""An experiment of three tasks that write letters in upper case: always, up to e, and never; and its judge."""

from __future__ import annotations

import json
from pathlib import Path

CODE = """
def upper(text):
    return text.upper()


def early(text):
    return text.upper() if text < "f" else text


def same(text):
    return text


def cased(first, second):
    return "tie" if first.isupper() == second.isupper() else "first" if first.isupper() else "second"
"""

EXPERIMENT = """name: casing
dataset: {path: rows.jsonl, input: input, expected: expected}
tasks: [app.py:upper, app.py:early, app.py:same]
scorers: {right: exact_match}
metrics: accuracy
"""


def write_rows_and_code(folder: Path, code: str = CODE) -> None:
    """Writes the ten letters from a to j and the code."""
    rows = [{"input": letter, "expected": letter.upper()} for letter in "abcdefghij"]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "app.py").write_text(code)
