"""Exports of evaluand: battles with all columns of the table of matches, from which the same matches are read again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np
import orjson
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import Fault
from evaluand.core.key_columns import INDEX
from evaluand.matches.battle_rows import Battle, BattleFormat, Texts
from evaluand.matches.battles import BattleFile, BattleTables
from evaluand.matches.matches import (
    JUDGES,
    JUDGES_SCHEMA,
    TABLE,
    battle_example,
    format_key,
    number_of,
    parse_example_key,
)
from evaluand.matches.response_style import ResponseStyle
from evaluand.store.tables import MATCHES


class EvaluandExport(BattleFormat):
    """Systems and examples have numbers, and examples and judges perhaps the keys by which others recognise them."""

    kind = "evaluand"
    columns: ClassVar[Mapping[str, Sequence[str]]] = {}
    own = frozenset(
        (
            *(INDEX, "number_a", "number_b", "round", "judgement", "digest", "missing", "first", "equal"),
            *("style_a", "style_b", "usage"),
        )
    )

    @classmethod
    def tables(cls, file: BattleFile) -> BattleTables:
        return _ExportTables(file)


class _ExportTables(BattleTables):
    """The tables of an export."""

    def __init__(self, file: BattleFile) -> None:
        self._names: dict[int, str] = {}  # of the systems, by their number
        self._own_numbers: dict[tuple[str | None, str | None], int] = {}  # of examples, by id, or by input without one
        self._keys: dict[int, str] = {}  # of examples, by their number
        self._judge_keys: list[str | None] = []
        super().__init__(file)

    @property
    def systems(self) -> list[str]:
        return [self._names[number] for number in sorted(self._names)]

    @property
    def says_too_little(self) -> bool:
        texts = (text for index, (_, text) in self.ids.items() if index not in self._keys)
        return self.has_unknown_judges or any(text is None for text in texts)

    def has_other_keys(self, spec: Mapping[str, Any]) -> bool:
        if any(key not in (None, format_key(number_of(spec))) for key in self._judge_keys):
            return True
        own = (battle_example(spec, index, *self.ids[index]) for index in self._keys)
        return [*self._keys.values()] != [format_key(number_of(each)) for each in own]

    def read_cells(self, row: Mapping[str, Any], where: str) -> dict[str, Any]:
        return _read_export_cells(row, where, self.faults)

    def cells_of(self, battle: Battle, texts: Texts, cells: dict[str, Any], where: str) -> dict[str, Any]:
        self._check_example(cells[INDEX], cells.pop(_EXAMPLE_KEY), (battle.example, texts.input), where)
        for side, system in (("a", battle.a), ("b", battle.b)):
            number = cells[f"number_{side}"]
            known = self._names.setdefault(number, system)
            if known != system or self.numbers.setdefault(system, number) != number:
                message = f"is {number}, but in other rows {known!r} has this number, or {system!r} another one"
                self.faults.append(Fault(f"{where}:number_{side}", message))
        outcome, order, first = battle.verdict.outcome, battle.verdict.order or "ab", cells["first"]
        expected = outcome if battle.verdict.order == "ab" or outcome is None else 1 - outcome
        if first is not None and (expected is None or not math.isclose(first, expected, abs_tol=_TOLERANCE)):
            self.faults.append(Fault(f"{where}:first", f"is {first:g}, which contradicts the outcome and the order"))
        judge_key = cells.pop(_JUDGE_KEY)
        self._judge_keys.append(judge_key)
        self.has_unknown_judges |= battle.judge is None and judge_key is None
        numbers = {"a": cells["number_a"], "b": cells["number_b"]}
        return cells | numbers | {"replication": battle.replication, "order": order, "outcome": outcome}

    def _check_example(self, index: int, key: str | None, about: tuple[str | None, str | None], where: str) -> None:
        """Adds a fault where a number is of several examples, or an example has several numbers or keys."""
        id, text = about
        known, _ = self.ids.setdefault(index, about)
        identified = about != (None, None)
        number = self._own_numbers.setdefault((id, None if id is not None else text), index) if identified else index
        if known != id:
            self.faults.append(Fault(f"{where}:{INDEX}", f"is {index}, which is example {known!r} in other rows"))
        elif number != index:
            self.faults.append(Fault(f"{where}:{INDEX}", f"is {index}, but the same example is {number} in other rows"))
        elif key is not None and self._keys.setdefault(index, key) != key:
            self.faults.append(Fault(f"{where}:{_EXAMPLE_KEY}", f"differs from that of other rows of example {id!r}"))

    def finish(self) -> None:
        self.flush()
        self.append_examples(self._keys)
        if any(self._judge_keys):
            self.append(
                JUDGES, pa.RecordBatch.from_arrays([pa.array(self._judge_keys, pa.string())], JUDGES_SCHEMA.names)
            )
        numbers = np.array(sorted(self._names), np.int32)
        if TABLE in self.batches and (numbers != np.arange(len(numbers))).any():
            self.batches[TABLE] = [_renumber(batch, numbers) for batch in self.batches[TABLE]]


def _renumber(batch: pa.RecordBatch, numbers: np.ndarray) -> pa.RecordBatch:
    """The matches of a part of the systems, with their places among these as numbers."""
    for side in "ab":
        at = batch.schema.get_field_index(side)
        places = np.searchsorted(numbers, batch.column(at).to_numpy()).astype(np.int32)
        batch = batch.set_column(at, MATCHES.field(side), pa.array(places))
    return batch


_TOLERANCE: Final = 1e-9
_EXAMPLE_KEY, _JUDGE_KEY = "example_key", "judge_key"
_NEVER_NULL: Final = (INDEX, "number_a", "number_b", "round", "equal")


def _read_export_cells(row: Mapping[str, Any], where: str, faults: list[Fault]) -> dict[str, Any]:
    """The cells that only an export has; from CSV, all of them are texts. Faults are added to the list."""
    cells: dict[str, Any] = {}
    for name, read in _READERS.items():
        value = row.get(name)
        try:
            cells[name] = None if value is None or value == "" else read(value)
        except (ValueError, TypeError, KeyError):
            faults.append(Fault(f"{where}:{name}", f"is {value!r}; keep the value that `evaluand export` wrote"))
            continue
        if cells[name] is None and name in _NEVER_NULL:
            faults.append(Fault(f"{where}:{name}", "is empty; keep the value that `evaluand export` wrote"))
    a, b = cells.get("number_a"), cells.get("number_b")
    if a is not None and b is not None and a >= b:
        faults.append(Fault(f"{where}:number_b", "must be larger than number_a"))
    return cells


def _read_integer(value: Any) -> int:
    number = int(value)
    if isinstance(value, bool) or number != float(value) or not 0 <= number < 2**31:
        raise ValueError(value)
    return number


def _read_index(value: Any) -> int:
    number = int(value)
    if isinstance(value, bool | float) or not -(2**63) <= number < 2**63:
        raise ValueError(value)
    return number


def _read_share(value: Any) -> float:
    number = float(value)
    if isinstance(value, bool) or not 0 <= number <= 1:
        raise ValueError(value)
    return number


def _read_flag(value: Any) -> bool:
    return value if isinstance(value, bool) else {"true": True, "false": False}[value.casefold()]


def _read_side(value: Any) -> str:
    return {"a": "a", "b": "b", "both": "both"}[value]


def _read_digest(value: Any) -> bytes:
    digest = value if isinstance(value, bytes) else bytes.fromhex(value)
    if len(digest) != identity.DIGEST_SIZE:
        raise ValueError(value)
    return digest


def _read_style(value: Any) -> dict[str, int]:
    counts = orjson.loads(value) if isinstance(value, str) else value
    return {name: _read_integer(counts[name]) for name in ResponseStyle._fields}


def _read_json(value: Any) -> str:
    return identity.encode(orjson.loads(value) if isinstance(value, str) else value).decode()


def _read_key(value: Any) -> str:
    parse_example_key(value)
    return str(value)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    INDEX: _read_index,
    "number_a": _read_integer,
    "number_b": _read_integer,
    "round": _read_integer,
    "judgement": _read_integer,
    "digest": _read_digest,
    "missing": _read_side,
    "first": _read_share,
    "equal": _read_flag,
    "style_a": _read_style,
    "style_b": _read_style,
    "usage": _read_json,
    _EXAMPLE_KEY: _read_key,
    _JUDGE_KEY: _read_key,
}
