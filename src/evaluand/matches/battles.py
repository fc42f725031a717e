"""Battles that were judged elsewhere: files of them as matches.

    read_battles(file) ──▶ Matches ──▶ ratings, win rates, export

Each row of a file is one judgement (or two, one in each order). Matches of a file have no runs: their systems are the
names in the file, and their examples are numbered in the order in which the file names them. Rows stay in the order of
the file.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, plural, warn
from evaluand.core.files.csv import unescape_formula
from evaluand.core.identity import artifact_id
from evaluand.core.key_columns import INDEX
from evaluand.core.provenance import provenance
from evaluand.data.source import DataSource, read_column
from evaluand.data.sources import open_data, open_file
from evaluand.matches.battle_rows import OWN, Battle, BattleColumns, Texts
from evaluand.matches.column_options import column_option
from evaluand.matches.match_keys import battle_example, format_key, number_of, parse_example_key
from evaluand.matches.matches import (
    BY_PEOPLE,
    EXAMPLES,
    EXAMPLES_SCHEMA,
    JUDGES,
    JUDGES_SCHEMA,
    TABLE,
    TEXTS,
    TEXTS_SCHEMA,
    MatchDigest,
    Matches,
)
from evaluand.matches.pairing import check_text
from evaluand.matches.response_style import ResponseStyle, response_style
from evaluand.store.store import MemoryStore, Store, at_once, check_name, check_store, drafted
from evaluand.store.tables import BATCH_ROWS, MATCHES


def read_battles(
    data: Any,
    store: Store | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    a: str | None = None,
    b: str | None = None,
    in_order: bool = False,
    by_people: bool = False,
    name: str | None = None,
    format: str | None = None,
    delimiter: str | None = None,
) -> Matches:
    """The battles of a file as matches.

    The columns of Chatbot Arena, AlpacaEval, MT-Bench, Arena-Hard and of evaluand's own export are known. Two rows on
    one example are dependent, so name the column of the example if the file has one: without it, each row is an
    example. Where the file has the responses, their length and Markdown are counted.

    Args:
        data: a file, several as a folder or pattern, or rows, as `Dataset.from_file` and `open_data` read them.
        store: where the matches are stored; default: in memory.
        columns: field → column, or the place of a value in a row, for columns that have other names; the fields are
            those of `battle_rows.COLUMNS`.
        a: the name of the first system, if no column has it; `b` that of the second.
        in_order: the response of each row's first system was shown first, as in Chatbot Arena. Otherwise the order is
            unknown, unless the file says it, and these matches do not count towards position bias.
        by_people: people have judged, not a model: gates then need no card of a judge. Files whose judges have the
            names of Chatbot Arena's or MT-Bench's people (`arena_user_7`, `expert_3`) say so themselves.
        name: a name for the matches.
        format: as in `open_file`; `delimiter` as well.

    Raises:
        DataError: rows are invalid; reports every fault with file, row and column.
        SpecError: no column says who met or who won.

    Example:
        >>> rows = [
        ...     {"question_id": 1, "model_a": "x", "model_b": "y", "winner": "model_a"},
        ...     {"question_id": 1, "model_a": "y", "model_b": "x", "winner": "tie"},
        ... ]
        >>> matches = read_battles(rows)
        >>> matches.systems, matches.table(["_index_", "a", "b", "outcome"]).to_pylist()[1]
        (['x', 'y'], {'_index_': 0, 'a': 0, 'b': 1, 'outcome': 0.5})
    """
    store = MemoryStore() if store is None else store
    check_store(store)
    if name is not None:
        check_name(name)
    file = BattleFile.open(data, columns, a=a, b=b, in_order=in_order, format=format, delimiter=delimiter)
    if _WEIGHT in file.source.schema.names and _WEIGHT not in file.columns.places.values():
        warn(f"{file.name}: the column {_WEIGHT} is not used; each row counts once")
    tables = _Tables(file.columns)
    for row, where in file.rows():
        tables.add(row, where)
    tables.check(file.name)
    return _store_tables(store, tables, name, _file_origin(data, columns), by_people=by_people)


_WEIGHT: Final = "weight"


class BattleFile(NamedTuple):
    """An open file of battles.

    Attributes:
        source: its rows.
        columns: where the fields of a row are.
        is_escaped: texts that a spreadsheet would execute have a `'` before them.
    """

    source: DataSource
    columns: BattleColumns
    is_escaped: bool

    @classmethod
    def open(
        cls,
        data: Any,
        columns: Mapping[str, str] | None,
        *,
        a: str | None,
        b: str | None,
        in_order: bool,
        format: str | None,
        delimiter: str | None,
    ) -> BattleFile:
        """Opens a file or rows; the arguments are those of `read_battles`."""
        for side, label in (("a", a), ("b", b)):
            if label is not None:
                check_text(side, label)
        is_path = isinstance(data, str | PathLike)
        source = open_file(fspath(data), format, delimiter) if is_path else open_data(data, "battles")
        is_csv = source.texts is not None
        source = source.texts() if source.texts else source
        if not source.schema.names:
            raise DataError(f"{source.name}: has no battles")
        chosen = BattleColumns.choose(source.schema.names, columns or {}, a=a, b=b, in_order=in_order)
        return cls(source, chosen, is_csv and chosen.is_own)

    @property
    def name(self) -> str:
        return self.source.name

    def rows(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Each row with its place."""
        number = 0
        for batch in self.source.batches():
            columns = [read_column(batch, name) for name in batch.schema.names]
            if self.is_escaped:
                columns = [[text if text is None else unescape_formula(text) for text in each] for each in columns]
            for row in zip(*columns, strict=True):
                yield dict(zip(batch.schema.names, row, strict=True)), self.source.where(number)
                number += 1


def file_origin(path: str | PathLike[str], fields: Mapping[str, str] | None) -> dict[str, Any]:
    """What identifies a judge without a name in provenance: the file, and the columns that were chosen in it."""
    path = Path(fspath(path))
    is_pattern = any(character in path.name for character in "*?[")
    return {"source": "/".join(path.parts[-2:]) if is_pattern else path.name, "fields": dict(fields or {})}


def _file_origin(data: Any, fields: Mapping[str, str] | None) -> dict[str, Any]:
    return file_origin(data, fields) if isinstance(data, str | PathLike) else {}


def _store_tables(
    store: Store, tables: _Tables, name: str | None, origin: Mapping[str, Any], *, by_people: bool
) -> Matches:
    systems, batches = tables.numbered()
    state = MatchDigest()
    for batch in batches:
        state.add(batch)
    content = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
    content.update(state.digest.encode())
    others = {EXAMPLES: tables.examples(), TEXTS: tables.texts, JUDGES: tables.judges}
    unkeyed = [batch.drop_columns(["key"]) for batch in others[EXAMPLES]]
    for batch in (*unkeyed, *others[TEXTS], *(batch.select(_UNDIGESTED) for batch in batches)):
        content.update(b"".join(orjson.dumps(row, default=bytes.hex) for row in batch.to_pylist()))
    spec: dict[str, Any] = {"systems": systems, "battles": content.hexdigest()}
    if tables.has_other_keys(spec):
        for batch in (*(batch.select([INDEX, "key"]) for batch in others[EXAMPLES]), *tables.judges):
            content.update(b"".join(map(orjson.dumps, batch.to_pylist())))
        spec["battles"] = content.hexdigest()
    if origin and tables.needs_file():
        spec["file"] = dict(origin)
    if by_people:
        spec[BY_PEOPLE] = True
    id = artifact_id("matches", spec, 0)
    if not store.is_sealed("matches", id):
        made_from = provenance(None) | {"runs": [], **origin}
        manifest = at_once("matches", id, spec, name, digest=state.digest, counts=state.counts, provenance=made_from)
        with drafted(store, "matches", id) as draft:
            for batch in batches:
                draft.append(TABLE, batch)
            for table, parts in others.items():
                for batch in parts:
                    draft.append(table, batch)
            draft.seal(manifest | {"pinned": True, "fresh": False, "work": []})
    if name is not None:
        store.refer(name, "matches", id)
    matches = Matches(store, id)
    if name is not None:
        matches.manifest = matches.manifest | {"name": name}  # stored rows may have had another name
    return matches


_UNDIGESTED: Final = ["style_a", "style_b", "usage"]


class _Tables:
    """The tables of battles, row by row."""

    def __init__(self, columns: BattleColumns) -> None:
        self._columns = columns
        self._faults: list[Fault] = []
        self._systems: dict[str, int] = {}
        self._declared: dict[int, str] = {}  # the systems by their numbers in an export of evaluand
        self._examples: dict[str | int, int] = {}  # id or input → number; each row without both is another example
        self._ids: dict[int, tuple[str | None, str | None]] = {}
        self._own_numbers: dict[tuple[str | None, str | None], int] = {}  # of examples in such an export
        self._rows: list[tuple[Any, ...]] = []
        self._texts: list[Texts] = []
        self._batches: list[pa.RecordBatch] = []
        self._example_keys: dict[int, str] = {}
        self._judge_keys: list[str | None] = []
        self.texts: list[pa.RecordBatch] = []
        self.judges: list[pa.RecordBatch] = []
        self._seen: dict[tuple[Any, ...], int] = {}  # the key of a match → the next replication that is free
        self._mirrors = self._without_example = 0
        self._has_unknown_judges = False

    def add(self, row: Mapping[str, Any], where: str) -> None:
        before = len(self._faults)
        texts, battles = self._columns.read(row, where, self._faults)
        own = _read_own(row, where, self._faults) if self._columns.is_own else None
        if len(self._faults) > before:
            return
        if battles and battles[0].a == battles[0].b:
            self._mirrors += 1
            return
        styles = [None if text is None else _style(text) for text in texts[1:]]
        for battle in battles:
            index = self._number_example(battle, texts, own, where)
            cells = self._cells(battle, texts, styles, index) if own is None else self._own_cells(battle, own, where)
            self._rows.append(cells)
            is_swapped = own is None and self._systems[battle.a] > self._systems[battle.b]
            self._texts.append(Texts(texts.input, *texts[:0:-1]) if is_swapped else texts)
            judge_key = None if own is None else own.pop(_JUDGE_KEY)
            self._judge_keys.append(judge_key)
            self._has_unknown_judges |= battle.judge is None and judge_key is None
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def check(self, name: str) -> None:
        """Raises the faults, and issues notes about what was assumed."""
        if self._faults:
            raise DataError(self._faults)
        if self._mirrors:
            warn(f"{name}: {plural(self._mirrors, 'row')} in which a system meets itself cannot be matches")
        self._flush()
        if not self._batches:
            raise DataError(f"{name}: has no battles")
        if self._without_example:
            warn(
                f"{name}: no column names the example, so each of {plural(self._without_example, 'row')} counts as a"
                f" separate example; if several rows share an example, name its column ({column_option('example')})"
            )

    def numbered(self) -> tuple[list[str], list[pa.RecordBatch]]:
        """The systems and the table of matches."""
        if not self._columns.is_own:
            return [*self._systems], self._batches
        numbers = sorted(self._declared)
        if numbers == [*range(len(numbers))]:
            return [self._declared[number] for number in numbers], self._batches
        places = {number: place for place, number in enumerate(numbers)}
        return [self._declared[number] for number in numbers], [_renumber(batch, places) for batch in self._batches]

    def examples(self) -> list[pa.RecordBatch]:
        """The ids and inputs of the examples, in the order of their numbers."""
        rows = ((index, *self._ids[index], self._example_keys.get(index)) for index in sorted(self._ids))
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, EXAMPLES_SCHEMA, strict=True)]
        return [pa.RecordBatch.from_arrays(arrays, schema=EXAMPLES_SCHEMA)]

    def needs_file(self) -> bool:
        """Whether rows say too little: without a judge or an input, the name of their file identifies them too."""
        return self._has_unknown_judges or any(
            text is None and index not in self._example_keys for index, (_, text) in self._ids.items()
        )

    def has_other_keys(self, spec: Mapping[str, Any]) -> bool:
        """Whether rows have other keys of examples or judges than matches with this spec have by themselves."""
        judge = format_key(number_of(spec))
        if any(each["judge_key"] not in (None, judge) for part in self.judges for each in part.to_pylist()):
            return True
        own = (battle_example(spec, index, *self._ids[index]) for index in self._example_keys)
        return [*self._example_keys.values()] != [format_key(number_of(each)) for each in own]

    def _number_example(self, battle: Battle, texts: Texts, own: dict[str, Any] | None, where: str) -> int:
        """The number of the example of a battle; without an id, examples are distinguished by their input."""
        if own is not None:
            index, id, written = own[INDEX], battle.example, own.pop(_EXAMPLE_KEY)
            known = self._ids.setdefault(index, (id, texts.input))
            if known[0] != id:
                self._faults.append(
                    Fault(f"{where}:{INDEX}", f"is {index}, which is example {known[0]!r} in other rows")
                )
            elif (other := self._own_number(id, texts.input, index)) != index:
                message = f"is {index}, but the same example is {other} in other rows"
                self._faults.append(Fault(f"{where}:{INDEX}", message))
            elif written is not None and self._example_keys.setdefault(index, written) != written:
                self._faults.append(
                    Fault(f"{where}:{_EXAMPLE_KEY}", f"differs from that of other rows of example {id!r}")
                )
            return int(index)
        key: str | int | None = texts.input if battle.example is None else battle.example
        if key is None:
            self._without_example += 1
            key = len(self._ids)
        index = self._examples.setdefault(key, len(self._examples))
        self._ids.setdefault(index, (battle.example, texts.input))
        return index

    def _own_number(self, id: str | None, input: str | None, index: int) -> int:
        """The number that an example has in an export of evaluand, by its id, or its input if it has none."""
        if id is None and input is None:
            return index
        return self._own_numbers.setdefault((id, None if id is not None else input), index)

    def _cells(self, battle: Battle, texts: Texts, styles: Sequence[Any], index: int) -> tuple[Any, ...]:
        """A row of the table of matches; the system that the file named first is `a`."""
        a, b = (self._systems.setdefault(system, len(self._systems)) for system in (battle.a, battle.b))
        verdict, order, (style_a, style_b) = battle.verdict, battle.order, styles
        outcome = verdict.outcome
        first = outcome if order == "ab" or outcome is None else 1 - outcome
        if a > b:
            a, b, style_a, style_b = b, a, style_b, style_a
            outcome = None if outcome is None else 1 - outcome
            order = None if order is None else _OTHER_ORDER[order]
        replication = self._free_replication(battle.replication, (index, a, b, order, battle.judge))
        is_equal = outcome == 0.5 and texts.response_a is not None and texts.response_a == texts.response_b
        values = {
            INDEX: index,
            "replication": replication,
            "a": a,
            "b": b,
            "order": order or "ab",
            "round": 0,
            "outcome": outcome,
            "first": None if order is None else first,
            "equal": is_equal,
            "style_a": style_a,
            "style_b": style_b,
        }
        return _row(battle, values)

    def _free_replication(self, replication: int, match: tuple[Any, ...]) -> int:
        """The replication of a match; one that the same judge has judged before in the same order is a further one."""
        key = (replication, *match)
        if key in self._seen:
            replication = self._seen[key]
            while (replication, *match) in self._seen:
                replication += 1
            self._seen[key] = replication + 1
        self._seen[replication, *match] = replication + 1
        return replication

    def _own_cells(self, battle: Battle, own: dict[str, Any], where: str) -> tuple[Any, ...]:
        for side, system in (("a", battle.a), ("b", battle.b)):
            number = own[f"number_{side}"]
            known = self._declared.setdefault(number, system)
            if known != system or self._systems.setdefault(system, number) != number:
                message = f"is {number}, but in other rows {known!r} has this number, or {system!r} another one"
                self._faults.append(Fault(f"{where}:number_{side}", message))
        outcome, first = battle.verdict.outcome, own["first"]
        expected = outcome if battle.order == "ab" or outcome is None else 1 - outcome
        if first is not None and (expected is None or not math.isclose(first, expected, abs_tol=_TOLERANCE)):
            self._faults.append(Fault(f"{where}:first", f"is {first:g}, which contradicts the outcome and the order"))
        values: dict[str, Any] = {"replication": battle.replication, "order": battle.order or "ab", "outcome": outcome}
        return _row(battle, values | {"a": own["number_a"], "b": own["number_b"]} | own)

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, MATCHES, strict=True)]
        self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=MATCHES))
        if self._columns.has_texts:
            columns = zip(*self._texts, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, TEXTS_SCHEMA, strict=True)]
            self.texts.append(pa.RecordBatch.from_arrays(arrays, schema=TEXTS_SCHEMA))
        if any(self._judge_keys) or self.judges:
            self.judges.append(
                pa.RecordBatch.from_arrays([pa.array(self._judge_keys, pa.string())], schema=JUDGES_SCHEMA)
            )
        self._rows, self._texts, self._judge_keys = [], [], []


_OTHER_ORDER: Final = {"ab": "ba", "ba": "ab"}
_TOLERANCE: Final = 1e-9


_NAMES: Final = tuple(MATCHES.names)


def _row(battle: Battle, values: dict[str, Any]) -> tuple[Any, ...]:
    verdict = battle.verdict
    said: dict[str, Any] = {
        "status": verdict.status,
        "reason": verdict.reason,
        "strength": verdict.strength,
        "label": verdict.label,
        "data": None if battle.data is None else identity.encode(battle.data).decode(),
        "explanation": battle.explanation,
        "judge": battle.judge,
    }
    cells = said | values
    return tuple(map(cells.get, _NAMES))


def _renumber(batch: pa.RecordBatch, places: Mapping[int, int]) -> pa.RecordBatch:
    for side in ("a", "b"):
        at = batch.schema.get_field_index(side)
        numbers = pa.array([places[number] for number in batch.column(at).to_pylist()], pa.int32())
        batch = batch.set_column(at, MATCHES.field(side), numbers)
    return batch


def _style(text: str) -> dict[str, int]:
    return response_style(text)._asdict()


# The columns of an export of evaluand


def _read_own(row: Mapping[str, Any], where: str, faults: list[Fault]) -> dict[str, Any]:
    """The cells that only an export of evaluand has; from CSV, all of them are texts."""
    cells: dict[str, Any] = {}
    for name in (*OWN, _EXAMPLE_KEY, _JUDGE_KEY):
        value = row.get(name)
        try:
            cells[name] = None if value is None or value == "" else _READERS[name](value)
        except (ValueError, TypeError, KeyError):
            faults.append(Fault(f"{where}:{name}", f"is {value!r}; keep the value that `evaluand export` wrote"))
            continue
        if cells[name] is None and name in _NEVER_NULL:
            faults.append(Fault(f"{where}:{name}", "is empty; keep the value that `evaluand export` wrote"))
    a, b = cells.get("number_a"), cells.get("number_b")
    if a is not None and b is not None and a >= b:
        faults.append(Fault(f"{where}:number_b", "must be larger than number_a"))
    return cells


_EXAMPLE_KEY, _JUDGE_KEY = "example_key", "judge_key"
_NEVER_NULL: Final = (INDEX, "number_a", "number_b", "round", "equal")


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


def _read_key(value: Any) -> str:
    parse_example_key(value)
    return str(value)


def _read_json(value: Any) -> str:
    return identity.encode(orjson.loads(value) if isinstance(value, str) else value).decode()


_READERS: Final[Mapping[str, Any]] = {
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
