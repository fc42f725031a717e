"""The rubrics of the methods of model providers: evaluand's own, and those of `rubrics.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from evaluand.core.files.yaml import Document
from evaluand.judges.rubric import Rubric


@cache
def method_rubric(name: str) -> Rubric:
    """The rubric with a name.

    Example:
        >>> method_rubric("truth").material, method_rubric("coherence").title
        (('output',), 'coherence 1')
    """
    entry = dict(_entries().get(name, {}))
    if not entry:
        return Rubric.of(name)
    low, high = entry.pop("ends")
    scale = {"lowest": {"value": 0, "anchor": low}, "highest": {"value": 1, "anchor": high}}
    return Rubric.of({"name": name, "scale": scale, **entry})


@cache
def _entries() -> Mapping[str, Mapping[str, Any]]:
    entries: Mapping[str, Mapping[str, Any]] = Document(_FILE).value
    return entries


_FILE: Final = Path(__file__).with_name("rubrics.yaml")
