"""Literals by which code tells kinds of artifacts apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

HOMES: Final = {
    "datasets": "data",
    "runs": "run",
    "evaluations": "evaluation",
    "aggregations": "aggregation",
    "comparisons": "comparison",
    "matches": "matches",
    "ratings": "matches",
    "cards": "judges",
    "recordings": "apps",
}
"""Kind → the room that registers it."""

_TAKE_A_KIND: Final = frozenset(
    (
        *("artifact_id", "at_once", "attempts", "begin", "damage", "draft", "drafted", "entries", "exists", "find"),
        *("find_kind", "find_made_from", "find_sealed", "finished", "folder", "ids", "is_sealed", "journalled", "lane"),
        *("is_stale", "list_ids", "manifest", "may_use", "open", "Origin", "read", "Ref", "refer", "resolve"),
        *("sealed_digests", "sealed_manifest", "singular", "stored", "_find_origin", "_find_uses", "_count_done"),
    )
)


def find_kind_literals(path: Path, room: str) -> Iterator[ast.Constant]:
    """The literals of a module that stand for a kind of another room.

    A literal stands for a kind as the argument of a function that takes one, compared with something called `kind`,
    before an id, as the value of the key `kind`, and among nothing but kinds.

    Args:
        room: that of the module.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=values) if name in _TAKE_A_KIND:
                pass
            case ast.Compare(left=left, comparators=others) if any(_is_kind(side) for side in (left, *others)):
                values = [left, *others]
            case ast.Dict(keys=keys):
                values = [value for key, value in zip(keys, node.values, strict=True) if _names_a_kind(key)]
            case ast.Tuple(elts=values) | ast.List(elts=values) | ast.Set(elts=values):
                before_an_id = [value for value, after in pairwise(values) if _is_id(after)]
                values = values if len(values) > 1 and all(map(_is_literal, values)) else before_an_id
            case _:
                continue
        yield from (literal for value in values for literal in _literals(value) if HOMES[str(literal.value)] != room)


def _literals(value: ast.expr) -> Iterator[ast.Constant]:
    """The literal that a value is, or those of a choice, or of a collection."""
    parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    parts = [each for part in parts for each in (part.elts if isinstance(part, ast.Tuple | ast.Set) else [part])]
    yield from (part for part in parts if isinstance(part, ast.Constant) and _is_literal(part))


def _is_literal(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in HOMES


def _is_kind(value: ast.expr) -> bool:
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name)):
            return str(name).split("_")[-1] in ("kind", "kinds")
        case ast.Tuple(elts=values):
            return any(map(_is_kind, values))
    return False


def _names_a_kind(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == "kind"


def _is_id(value: ast.expr) -> bool:
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name)):
            return str(name) == "id"
    return False
