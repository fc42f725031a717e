"""Battles that were judged elsewhere: files of them as matches.

    read_battles(file) ──▶ Matches ──▶ ratings, win rates, export

Each row of a file is one judgement (or two, one in each order). Matches of a file have no runs: their systems are the
names in the file, and their examples are numbered in the order in which the file names them. Rows stay in the order of
the file.

`battle_batches` writes matches as battles, one flat row for each, for other tools and for `read_battles`. `model_a`,
`model_b` and `winner` are spelt as in Chatbot Arena, `outcome` is the first system's share of the win, and the other
columns are those of the table of matches, so that the same matches are read again from the rows.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, NotFound, plural, warn
from evaluand.core.files.csv import unescape_formula
from evaluand.core.identity import artifact_id
from evaluand.core.key_columns import INDEX
from evaluand.core.provenance import provenance
from evaluand.data.source import read_rows
from evaluand.data.sources import open_data, open_file
from evaluand.matches.battle_rows import Battle, BattleColumns, Texts, column_option
from evaluand.matches.judging import check_text
from evaluand.matches.matches import (
    BY_PEOPLE,
    EXAMPLES,
    EXAMPLES_SCHEMA,
    JUDGES,
    TABLE,
    TEXTS,
    TEXTS_SCHEMA,
    UNDIGESTED,
    MatchDigest,
    Matches,
    format_key,
    read_example_keys,
    read_judge_keys,
)
from evaluand.matches.response_style import response_style
from evaluand.run.runner import Run
from evaluand.store.store import MemoryStore, Store, at_once, check_name, check_store, drafted, give_name
from evaluand.store.tables import COMPLETED, MATCHES, TableWriter, json_field


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
    file = BattleFile(data, columns, a, b, in_order, format, delimiter)
    if "weight" in file.source.schema.names and "weight" not in file.columns.places.values():
        warn(f"{file.name}: the column weight is not used; each row counts once")
    whole = file.columns.whole
    tables = BattleTables(file) if whole is None else whole.tables(file)
    return _store_tables(store, tables, name, describe_file(data, columns), by_people=by_people)


class BattleFile:
    """An open file of battles, or rows.

    Args:
        data: a file or rows; the further arguments are those of `read_battles`.

    Attributes:
        source: its rows.
        columns: where the fields of a row are.
    """

    def __init__(
        self,
        data: Any,
        columns: Mapping[str, str] | None,
        a: str | None,
        b: str | None,
        in_order: bool,
        format: str | None,
        delimiter: str | None,
    ) -> None:
        for side, label in (("a", a), ("b", b)):
            if label is not None:
                check_text(side, label)
        is_path = isinstance(data, str | PathLike)
        source = open_file(fspath(data), format, delimiter) if is_path else open_data(data, "battles")
        self.source = source.texts() if source.texts else source
        self.name = self.source.name
        if not self.source.schema.names:
            raise DataError(f"{self.name}: has no battles")
        self.columns = BattleColumns.choose(self.source.schema.names, columns or {}, a, b, in_order)
        # texts that a spreadsheet would execute have a `'` in front
        self._is_escaped = source.texts is not None and self.columns.whole is not None

    def rows(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Each row with its place."""
        for row, where in read_rows(self.source):
            if self._is_escaped:
                row = {name: text if text is None else unescape_formula(text) for name, text in row.items()}
            yield row, where


def describe_file(data: Any, fields: Mapping[str, str] | None) -> dict[str, Any]:
    """What identifies a judge without a name in provenance: the file, and the columns that were chosen in it."""
    if not isinstance(data, str | PathLike):
        return {}
    path = Path(fspath(data))
    is_pattern = any(character in path.name for character in "*?[")
    return {"source": "/".join(path.parts[-2:]) if is_pattern else path.name, "fields": dict(fields or {})}


def _store_tables(
    store: Store, tables: BattleTables, name: str | None, origin: Mapping[str, Any], *, by_people: bool
) -> Matches:
    state = MatchDigest()
    for batch in tables.batches[TABLE]:
        state.add(batch)
    content = hashlib.blake2b(state.digest.encode(), digest_size=identity.DIGEST_SIZE)
    examples, texts, judges = (tables.batches.get(table, []) for table in (EXAMPLES, TEXTS, JUDGES))
    unkeyed = (batch.drop_columns(["key"]) for batch in examples)
    for batch in (*unkeyed, *texts, *(batch.select(UNDIGESTED) for batch in tables.batches[TABLE])):
        content.update(b"".join(orjson.dumps(row, default=bytes.hex) for row in batch.to_pylist()))
    spec: dict[str, Any] = {"systems": tables.systems, "battles": content.hexdigest()}
    if tables.has_other_keys(spec):
        for batch in (*(batch.select([INDEX, "key"]) for batch in examples), *judges):
            content.update(b"".join(map(orjson.dumps, batch.to_pylist())))
        spec["battles"] = content.hexdigest()
    if origin and tables.says_too_little:
        spec["file"] = dict(origin)
    if by_people:
        spec[BY_PEOPLE] = True
    id = artifact_id("matches", spec, 0)
    if not store.is_sealed("matches", id):
        made_from = provenance(None) | {"runs": [], **origin}
        manifest = at_once("matches", id, spec, name, digest=state.digest, counts=state.counts, provenance=made_from)
        with drafted(store, "matches", id) as draft:
            for table, batches in tables.batches.items():
                for batch in batches:
                    draft.append(table, batch)
            draft.seal(manifest | {"pinned": True, "fresh": False, "work": []})
    give_name(store, name, "matches", id)
    matches = Matches(store, id)
    if name is not None:
        matches.manifest = matches.manifest | {"name": name}  # stored rows may have had another name
    return matches


class BattleTables:
    """The tables of the battles of a file; each system and each example gets a number.

    Attributes:
        batches: table → its rows; those without a row are absent.

    Raises:
        DataError: rows are invalid, or there are none.
    """

    def __init__(self, file: BattleFile) -> None:
        self.batches: dict[str, list[pa.RecordBatch]] = {}
        self.file, self.faults = file, list[Fault]()
        self._matches, self._texts = TableWriter(MATCHES), TableWriter(TEXTS_SCHEMA)
        self.numbers: dict[str, int] = {}  # of the systems
        self._examples: dict[str | int, int] = {}  # id or input → number
        self.ids: dict[int, tuple[str | None, str | None]] = {}  # number of an example → id and input
        self._seen: dict[tuple[Any, ...], int] = {}  # the key of a match → the next replication that is free
        self.has_unknown_judges = False
        n_mirrors = 0
        for row, where in file.rows():
            n_faults = len(self.faults)
            texts, battles = file.columns.read(row, where, self.faults)
            cells = self.read_cells(row, where)
            if len(self.faults) > n_faults:
                continue
            if battles and battles[0].a == battles[0].b:
                n_mirrors += 1
                continue
            for battle in battles:
                self._add(battle, texts, cells, where)
        if self.faults:
            raise DataError(self.faults)
        if n_mirrors:
            warn(f"{file.name}: {plural(n_mirrors, 'row')} in which a system meets itself cannot be matches")
        self.finish()
        if TABLE not in self.batches:
            raise DataError(f"{file.name}: has no battles")

    @property
    def systems(self) -> list[str]:
        """The names of the systems, by their number."""
        return [*self.numbers]

    @property
    def says_too_little(self) -> bool:
        """Whether the name of the file identifies rows too: they have no judge or no input."""
        return self.has_unknown_judges or any(text is None for _, text in self.ids.values())

    def has_other_keys(self, spec: Mapping[str, Any]) -> bool:
        """Whether rows have other keys of examples or judges than matches with this spec have by themselves."""
        return False

    def append(self, table: str, batch: pa.RecordBatch) -> None:
        """Keeps a batch, as a draft does."""
        self.batches.setdefault(table, []).append(batch)

    def read_cells(self, row: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The cells of the table of matches that a row has itself; adds faults."""
        return {}

    def _add(self, battle: Battle, texts: Texts, cells: dict[str, Any], where: str) -> None:
        values = self.cells_of(battle, texts, cells, where)
        verdict = battle.verdict
        values |= {name: getattr(verdict, name) for name in ("status", "reason", "strength", "label", "explanation")}
        values |= {"data": None if verdict.data is None else identity.encode(verdict.data).decode()}
        values["judge"] = battle.judge
        self._matches.add(tuple(map(values.get, MATCHES.names)))
        if {"response_a", "response_b"} <= self.file.columns.places.keys():
            is_swapped = self.numbers.get(battle.a) != values["a"]
            self._texts.add(Texts(texts.input, *texts[:0:-1]) if is_swapped else texts)
        if self._matches.is_full:
            self.flush()

    def cells_of(self, battle: Battle, texts: Texts, cells: dict[str, Any], where: str) -> dict[str, Any]:
        """The cells of a match besides what the judge said; the system that the file named first is `a`."""
        a, b = (self.numbers.setdefault(system, len(self.numbers)) for system in (battle.a, battle.b))
        example = (battle.example, texts.input)  # a row without both is another example
        key: str | int = next((each for each in example if each is not None), len(self.ids))
        index = self._examples.setdefault(key, len(self._examples))
        self.ids.setdefault(index, example)
        self.has_unknown_judges |= battle.judge is None
        outcome, order = battle.verdict.outcome, battle.verdict.order
        first = outcome if order == "ab" or outcome is None else 1 - outcome
        style_a, style_b = (None if text is None else response_style(text)._asdict() for text in texts[1:])
        if a > b:
            a, b, style_a, style_b = b, a, style_b, style_a
            outcome = None if outcome is None else 1 - outcome
            order = None if order is None else order[::-1]
        return {
            INDEX: index,
            "replication": self._free_replication(battle.replication, (index, a, b, order, battle.judge)),
            "a": a,
            "b": b,
            "order": order or "ab",
            "round": 0,
            "outcome": outcome,
            "first": None if order is None else first,
            "equal": outcome == 0.5 and texts.response_a is not None and texts.response_a == texts.response_b,
            "style_a": style_a,
            "style_b": style_b,
        }

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

    def flush(self) -> None:
        """Writes the pending rows."""
        self._matches.flush(self, TABLE)
        self._texts.flush(self, TEXTS)

    def finish(self) -> None:
        """Writes the rest of the tables, and issues notes about what was assumed."""
        self.flush()
        self.append_examples({})
        n_nameless = sum(about == (None, None) for about in self.ids.values())
        if n_nameless:
            warn(
                f"{self.file.name}: no column names the example, so each of {plural(n_nameless, 'row')} counts as a"
                f" separate example; if several rows share an example, name its column ({column_option('example')})"
            )

    def append_examples(self, keys: Mapping[int, str]) -> None:
        """Writes the ids and inputs of the examples, in the order of their numbers, and their keys in an export."""
        examples = TableWriter(EXAMPLES_SCHEMA)
        for index in sorted(self.ids):
            examples.add((index, *self.ids[index], keys.get(index)))
        examples.flush(self, EXAMPLES)


_TEXT: Final = pa.string()
BATTLES: Final = pa.schema(
    [
        MATCHES.field(INDEX),
        pa.field("id", _TEXT),
        MATCHES.field("replication"),
        *(pa.field(f"number_{side}", pa.int32()) for side in "ab"),
        *(pa.field(f"model_{side}", _TEXT) for side in "ab"),
        MATCHES.field("order"),
        pa.field("winner", _TEXT),
        *(MATCHES.field(name) for name in ("outcome", "first", "status", "reason", "missing", "judge", "strength")),
        *(MATCHES.field(name) for name in ("equal", "label", "explanation", "data")),
        *(pa.field(name, _TEXT) for name in ("input", "response_a", "response_b")),
        *(json_field(f"style_{side}") for side in "ab"),
        *(MATCHES.field(name) for name in ("usage", "judgement", "round")),
        *(pa.field(name, _TEXT) for name in ("digest", "example_key", "judge_key")),
    ]
)
"""The columns of battles; `winner` is `model_a`, `model_b` or `tie`, and null without an outcome."""


def battle_batches(matches: Matches) -> Iterator[pa.RecordBatch]:
    """The rows of matches as battles, in the order of the table; at least one batch.

    Example:
        >>> from evaluand.matches.battles import read_battles
        >>> [batch] = battle_batches(read_battles([{"id": 7, "model_a": "x", "model_b": "y", "winner": "tie"}]))
        >>> batch.select(["id", "model_a", "model_b", "winner"]).to_pylist()
        [{'id': '7', 'model_a': 'x', 'model_b': 'y', 'winner': 'tie'}]
    """
    systems, examples = pa.array(matches.systems, _TEXT), _read_examples(matches)
    responses = [_read_responses(run) for run in matches.runs] or [{} for _ in matches.systems]
    texts = None
    if TEXTS in matches.manifest["tables"]:
        texts = pa.Table.from_batches(matches.store.read("matches", matches.id, TEXTS))
    try:
        example_keys = read_example_keys(matches)
        keys = dict(
            zip(example_keys.index.tolist(), itertools.starmap(format_key, example_keys.key.tolist()), strict=True)
        )
    except NotFound:  # the dataset is missing
        keys = {}
    judges = read_judge_keys(matches, matches.table(["judge"]).column(0).combine_chunks())
    written = [None if name else format_key(key) for key, name in zip(judges.keys, judges.people, strict=True)]
    judge_keys, start = pa.array(written, _TEXT).take(pa.array(judges.place)), 0
    for batch in matches.batches():
        cells = {name: batch.column(name) for name in batch.schema.names}
        index, replication = (batch.column(name).to_pylist() for name in (INDEX, "replication"))
        about = [examples.get(each, (str(each), None)) for each in index]
        cells["id"], cells["input"] = (pa.array([each[place] for each in about], _TEXT) for place in (0, 1))
        for side in "ab":
            cells[f"number_{side}"] = numbers = batch.column(side)
            cells[f"model_{side}"] = systems.take(numbers)
            styles = batch.column(f"style_{side}").to_pylist()
            cells[f"style_{side}"] = pa.array([as_text(style) for style in styles], _TEXT)
            calls = zip(numbers.to_pylist(), index, replication, strict=True)
            cells[f"response_{side}"] = pa.array([responses[system].get((*call,)) for system, *call in calls], _TEXT)
        if texts is not None:
            part = texts.slice(start, batch.num_rows)
            cells |= {name: part.column(name).combine_chunks() for name in part.column_names}
        outcome = batch.column("outcome")
        won = pc.if_else(pc.greater(outcome, 0.5), "model_a", "model_b")
        cells["winner"] = pc.if_else(pc.equal(outcome, 0.5), "tie", won).cast(_TEXT)
        cells["digest"] = pa.array([each and each.hex() for each in batch.column("digest").to_pylist()], _TEXT)
        cells["example_key"] = pa.array([keys.get(each) for each in index], _TEXT)
        cells["judge_key"] = judge_keys.slice(start, batch.num_rows)
        start += batch.num_rows
        yield pa.RecordBatch.from_arrays([cells[name] for name in BATTLES.names], schema=BATTLES)


def _read_examples(matches: Matches) -> dict[int, tuple[str | None, str | None]]:
    """Id and input of each example by `_index_`; empty if the dataset is missing."""
    if not matches.manifest["spec"].get("runs"):
        batches = matches.store.read("matches", matches.id, EXAMPLES)
        return {row[INDEX]: (row["id"], row["input"]) for batch in batches for row in batch.to_pylist()}
    run = next((run for run in matches.runs if run is not None), None)
    try:
        return {example.index: (example.id, as_text(example.input)) for example in (run.dataset if run else ())}
    except NotFound:
        return {}


def _read_responses(run: Run | None) -> dict[tuple[int, ...], str | None]:
    """The first response of each call, as text."""
    answered = (each for each in run or () if each.status == COMPLETED and each.responses)
    return {(each.index, each.replication): as_text((each.responses or [None])[0]) for each in answered}


def as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else identity.encode(value).decode()
