"""A second reading of a column of odd cells, in plain Python: what each cell means, or that nobody can know.

It shares nothing with the reader of the package but the rules, and is as slow as it is short.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

MISSING = {"", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "?", "."}
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*", re.ASCII)
CODE = re.compile(r"\s*[+-]?(0[0-9]|[0-9]{16,}\s*$)", re.ASCII)
WHOLE = re.compile(r"\s*[+-]?(0|[1-9][0-9]*)\s*", re.ASCII)
MARKED = re.compile(
    r"\s*[$€£¥]?\s?[+-]?[$€£¥]?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?:\.[0-9]{3})+"
    r"|[0-9]{1,3}(?:[ '\u00a0\u202f][0-9]{3})+|[0-9]+)([.,][0-9]+)?\s?[$€£¥%]?\s*"
)
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}")


class Unreadable(Exception):
    """Nobody can know what the cells mean."""


@dataclass(frozen=True)
class Column:
    """What the cells of a column are.

    Attributes:
        type: `number`, `boolean`, `text`, `list` or `empty`.
        keys: of each cell ("number", value), ("boolean", value), ("text", text) or ("list", labels); None if missing.
        cells: as they were written.
        is_due: whether something was converted or guessed, which a note must say.
    """

    type: str
    keys: Sequence[Any]
    cells: Sequence[Any]
    is_due: bool

    def take(self, rows: Sequence[int]) -> Column:
        """Some rows, of a column with this type."""
        return replace(self, keys=[self.keys[row] for row in rows], cells=[self.cells[row] for row in rows])

    def numbers(self) -> list[float | None]:
        """Of each cell its number, None for a few words."""
        if self.type == "empty":
            return [None for _ in self.keys]
        words = [key for key in self.keys if key is not None and key[0] == "text"]
        if self.type != "number" or not few(len(words), sum(key is not None for key in self.keys)):
            raise Unreadable
        return [float(key[1]) if key is not None and key[0] == "number" else None for key in self.keys]


def spell(cell: Any) -> str | None:
    """How a file without types has a cell."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, list):
        return json.dumps(cell, ensure_ascii=False)
    if isinstance(cell, bool):
        return str(cell).lower()
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53 else str(cell)


def few(n_words: int, n: int) -> bool:
    return n_words <= 2 or n_words <= 0.05 * n


def is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None and CODE.match(text) is None


def is_whole(text: str) -> bool:
    return WHOLE.fullmatch(text) is not None and -(2**63) <= int(text) < 9 * 10**18


def value_of(text: str) -> Fraction:
    """The exact value of an integer, or of the float that other digits stand for."""
    return Fraction(Decimal(text.strip()) if WHOLE.fullmatch(text) else float(text))


def read(cells: Sequence[Any], declared: str | None = None) -> Column:
    """What the cells of a column are, decided from all of them, unless it is declared to be text."""
    is_huge = declared is None and any(isinstance(cell, int) and not -(2**63) <= cell < 2**63 for cell in cells)
    texts = [str(int(c)) if is_huge and isinstance(c, float) and c.is_integer() else spell(c) for c in cells]
    gaps = any(text is None for text in texts)
    labels = [None if text is None or (not text and gaps) else ("text", text) for text in texts]
    if declared == "text":
        return Column("text", labels, cells, False)
    known = [text for text in texts if text is not None and text.strip().lower() not in MISSING]
    words_for_missing = any(text is not None and text.strip() and text.strip().lower() in MISSING for text in texts)
    if not known:
        return Column("empty", [None for _ in cells], cells, words_for_missing)
    if any(isinstance(cell, list) for cell in cells) or all(_list(text) is not None for text in known):
        return _lists(cells, texts)
    if all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells if spell(cell) is not None):
        if is_huge:  # for which there is no type of numbers
            return Column("text", labels, cells, False)
        keys = [None if text is None else ("number", value_of(text)) for text in texts]
        return Column("number", keys, cells, False)
    all_whole = all(is_whole(text) for text in known if NUMBER.fullmatch(text))
    numeric = is_whole if all_whole else is_number
    plain = [*map(numeric, known)]
    if not all(plain) and all(
        n or (MARKED.fullmatch(t) and not CODE.match(t)) for n, t in zip(plain, known, strict=True)
    ):
        return _marked(cells, texts)
    for type, own in (("number", numeric), ("boolean", _is_boolean)):
        n = sum(map(own, known))
        if n > len(known) - n and few(len(known) - n, len(known)):
            keys = [_key(text, type, own) for text in texts]
            typed = {spell(cell) is not None and isinstance(cell, str) for cell in cells if spell(cell) is not None}
            return Column(type, keys, cells, words_for_missing or n < len(known) or typed == {True, False})
    return Column("text", labels, cells, words_for_missing)


def _is_boolean(text: str) -> bool:
    return text.strip().lower() in ("true", "false")


def _key(text: str | None, type: str, own: Any) -> Any:
    if text is None or text.strip().lower() in MISSING:
        return None
    if not own(text):
        return "text", text
    return (type, value_of(text)) if type == "number" else (type, text.strip().lower() == "true")


def _list(text: str) -> list[Any] | None:
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text.strip())
        except (ValueError, SyntaxError):
            continue
        return value if isinstance(value, list) else None
    return None


def _lists(cells: Sequence[Any], texts: Sequence[str | None]) -> Column:
    lists = [None if text is None or text.strip().lower() in MISSING else _list(text) for text in texts]
    if any(
        items is None and text is not None and text.strip().lower() not in MISSING
        for items, text in zip(lists, texts, strict=True)
    ):
        raise Unreadable
    keys = [None if items is None else ("list", frozenset(map(str, items))) for items in lists]
    return Column("list", keys, cells, any(isinstance(cell, str) for cell in cells))


def _marked(cells: Sequence[Any], texts: Sequence[str | None]) -> Column:
    bare = [None if t is None or t.strip().lower() in MISSING else re.sub(r"[\s$€£¥%']", "", t) for t in texts]
    percent = {"%" in text for text, digits in zip(texts, bare, strict=True) if text and digits is not None}
    signs = {sign for digits in bare if digits is not None for sign in _decimal_signs(digits)}
    if len(percent) > 1 or len(signs) > 1 or (not signs and any(digits and "," in digits for digits in bare)):
        raise Unreadable
    decimal = next(iter(signs), ".")
    other = "," if decimal == "." else "."
    share = 100 if percent == {True} else 1
    keys = [
        None if digits is None else ("number", value_of(digits.replace(other, "").replace(decimal, ".")) / share)
        for digits in bare
    ]
    return Column("number", keys, cells, True)


def _decimal_signs(digits: str) -> set[str]:
    """The signs before a fraction of which a cell leaves no doubt."""
    commas, points = digits.count(","), digits.count(".")
    if commas and points:
        return {max(",.", key=digits.rfind)}
    if commas > 1 or points > 1:
        return {"." if commas > 1 else ","}
    if not (commas or points) or THOUSANDS.fullmatch(digits):
        return set()
    return {"," if commas else "."}


def comparable(truth: Column, said: Column) -> tuple[list[Any], list[Any]]:
    """The keys of two columns, in which what is equal by value is equal."""
    types = {truth.type, said.type}
    if "list" in types and types != {"list"}:
        raise Unreadable
    zero_or_one = [column for column in (truth, said) if column.type == "number"]
    if (
        types <= {"number", "empty"}
        and len({key for column in (truth, said) for key in column.keys if key and key[0] == "number"}) > 20
    ):
        return [_number_only(key) for key in truth.keys], [_number_only(key) for key in said.keys]
    words = any(key is not None and key[0] == "text" for column in (truth, said) for key in column.keys)
    if types == {"boolean", "number"}:
        if words or any(key is not None and key[1] not in (0, 1) for key in zero_or_one[0].keys):
            raise Unreadable
        return [_as_number(key) for key in truth.keys], [_as_number(key) for key in said.keys]
    if types & {"number", "boolean"}:
        return [_by_value(key) for key in truth.keys], [_by_value(key) for key in said.keys]
    return [*truth.keys], [*said.keys]


def _number_only(key: Any) -> Any:
    return key if key is not None and key[0] == "number" else None


def _as_number(key: Any) -> Any:
    return None if key is None else ("number", int(key[1]))


def _by_value(key: Any) -> Any:
    if key is None or key[0] != "text":
        return key
    if is_number(key[1]) or WHOLE.fullmatch(key[1]):
        return "number", value_of(key[1])
    return ("boolean", key[1].strip().lower() == "true") if _is_boolean(key[1]) else key
