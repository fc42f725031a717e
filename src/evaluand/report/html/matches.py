"""The matches of a report as a stream: the input, both responses, and what judges said about them in each order.

A row is a pair of systems on one example: all judgements of it, in both orders and by all judges. Rows with one input
are a *case*, which has each response once, however many pairs it is in. The page unpacks a case when one of its rows is
shown; columns of numbers say which rows pass a filter, and in which order.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import NotFound, plural
from evaluand.core.identity import json_text
from evaluand.core.key_columns import INDEX
from evaluand.matches.judging import SPANS_TABLE
from evaluand.matches.kind import MATCHES
from evaluand.matches.matches import EXAMPLES, TEXTS, Matches, usage_text
from evaluand.report.facts.base import Facts
from evaluand.report.html.cells import SHORT, TEXT, Budget, cell, cut_text, json_cell, span_cells
from evaluand.report.html.examples import ExampleReader, Keyed, read_tuples, response_texts
from evaluand.report.html.packing import compress
from evaluand.report.html.page import clean, name, table, th
from evaluand.report.text import SHORT_ID, format_creation, git_text
from evaluand.run.runner import Run
from evaluand.store.tables import COMPLETED, SCORED, STYLE

CONTRADICTORY, DECIDED, TIE, EQUAL, UNDECIDED = range(5)
OUTCOMES: Final = ("contradictory", "decided", "tie", "equal responses", "no outcome")
"""The outcome of a row, in the order in which rows are shown. *contradictory*: judgements with opposite winners;
*equal responses* tie without a judge."""

_ROOM: Final = 64 << 20  # characters of all texts together
_LEAST: Final = 400
_DATA: Final = 1000
_REASONS: Final = 100
_LISTED: Final = 100
_JUDGEMENTS: Final = 20
_PIECE_BYTES: Final = 1 << 20
_CHUNK_ROWS: Final = 2000
_KEY: Final = (INDEX, "replication", "a", "b")
_SAID: Final = (
    *("order", "status", "outcome", "strength", "label", "judge", "reason", "explanation", "data"),
    *("usage", "judgement"),
)
_SPANS: Final = 50
_ALL_SPANS: Final = 500_000


class MatchRows:
    """The rows of some sets of matches, and the columns by which the page chooses them.

    Args:
        sets: sealed sets of matches, by title.
        limit: how many rows of each set, in the order of `OUTCOMES` and the most decisive first; None is all.
        tasks: the id of a run → its task in the same report.

    Attributes:
        total: the number of rows, chosen or not.
        n: the number of rows written so far.
    """

    def __init__(self, sets: Mapping[str, Matches], limit: int | None, tasks: Mapping[str, str]) -> None:
        self._sets, self._tasks = sets, tasks
        self._chosen = [choose_matches(matches, limit) for matches in sets.values()]
        self.total = sum(chosen.total for chosen in self._chosen)
        self.systems = list(dict.fromkeys(label for matches in sets.values() for label in matches.systems))
        self.n = 0
        kinds = {"set": "H", "case": "I", "place": "I", "a": "H", "b": "H", "outcome": "B", "share": "d", "gap": "d"}
        self._columns = {name: array(kind) for name, kind in kinds.items()} | {"index": array("q")}

    def pieces(self) -> Iterator[bytes]:
        """Pieces of cases, compressed; adds their rows to the columns."""
        self._starts: list[int] = []
        pending: list[bytes] = []
        size = 0
        for number, case in enumerate(self._cases()):
            if not pending:
                self._starts.append(number)
            self._add(case, number)
            pending.append(orjson.dumps(case | {"index": str(case["index"])}, option=orjson.OPT_NON_STR_KEYS))
            size += len(pending[-1])
            if size >= _PIECE_BYTES:
                yield compress(b"[" + b",".join(pending) + b"]")
                pending, size = [], 0
        if pending:
            yield compress(b"[" + b",".join(pending) + b"]")

    def columns(self) -> Iterator[tuple[str, np.ndarray]]:
        """The columns of the rows in `pieces`, in the order in which rows are shown."""
        columns = {name: np.asarray(column) for name, column in self._columns.items()}
        order = order_pairs(columns)
        return ((name, column[order]) for name, column in columns.items())

    def head(self) -> Facts:
        """The meaning of the numbers in the columns."""
        return {
            "rows": self.n,
            "total": self.total,
            "outcomes": OUTCOMES,
            "style": [name.replace("_", " ") for name in STYLE_NAMES],
            "systems": self.systems,
            "starts": self._starts,
            "store": "",
            "sets": [
                {
                    "title": title,
                    "id": matches.id[:SHORT_ID],
                    "runs": self._by_system(matches, lambda run: run.id[:SHORT_ID]),
                    "tasks": self._by_system(matches, lambda run: self._tasks.get(run.id)),
                }
                for title, matches in self._sets.items()
            ],
        }

    def _by_system(self, matches: Matches, value: Any) -> dict[str, Any]:
        """The number of a system → a value of its run."""
        runs = zip(matches.systems, matches.runs, strict=False)
        return {str(self.systems.index(label)): value(run) for label, run in runs if run is not None}

    def _cases(self) -> Iterator[Facts]:
        n_texts = sum(chosen.n_texts for chosen in self._chosen)
        limit = min(max(_ROOM // max(n_texts, 1), _LEAST), TEXT)
        for number, (matches, chosen) in enumerate(zip(self._sets.values(), self._chosen, strict=True)):
            numbers = [self.systems.index(label) for label in matches.systems]
            for case in read_cases(matches, chosen, limit):
                yield {"set": number} | _renumber(case, numbers)

    def _add(self, case: Facts, number: int) -> None:
        for place, row in enumerate(case["rows"]):
            values = case | row | {"case": number, "place": place}
            for key, column in self._columns.items():
                column.append(values[key])
            self.n += 1


def matches_section(sets: Sequence[Facts]) -> str:
    """What was compared, by whom, why matches have no outcome, and the list of matches, which a script fills.

    Args:
        sets: as `match_set_facts` returns them.
    """
    return list_matches(sets) + _BROWSER


def list_matches(sets: Sequence[Facts]) -> str:
    """What was compared, by whom, and why matches have no outcome."""
    lines = "".join(f"<li>{_describe(each, len(sets) > 1)}</li>" for each in sets)
    reasons = [(each, reason) for each in sets for reason in each["missing"]]
    return f'<ul class="words">{lines}</ul>\n{_usages(sets)}{_missing(reasons)}'


def _describe(facts: Facts, several: bool) -> str:
    title = f"{name(facts['title'])}: " if several else ""
    counts = ", ".join(f"{n:,} {clean(status)}" for status, n in sorted(facts["counts"].items(), reverse=True))
    n = plural(sum(facts["counts"].values()), "match", "matches")
    systems = plural(len(facts["systems"]), "system")
    notes = "".join(f" {clean(str(note))}." for note in (facts["left_out"], *facts["caveats"]) if note)
    return f"{title}{n} of {systems}, {clean(facts['judged_by'], SHORT)}: {counts or 'none'}.{notes}"


def _usages(sets: Sequence[Facts]) -> str:
    """What judging cost, by judge."""
    lines = []
    for each in sets:
        for total in each["usage"][:_REASONS]:
            names = [each["title"] if len(sets) > 1 else None, total["judge"], usage_text(total)]
            lines.append(f"<li>{clean(': '.join(part for part in names if part))}</li>")
    if not lines:
        return ""
    note = '<p class="note">Judgements that were reused count with what they cost then.</p>'
    return f'<h3>What judging cost</h3>\n<ul class="words">{"".join(lines)}</ul>\n{note}\n'


def _missing(reasons: Sequence[tuple[Facts, Facts]]) -> str:
    """Why matches have no outcome."""
    lines = "".join(
        f'<tr><th scope="row">{name(each["title"])}</th><td class="text">{clean(reason["status"])}</td>'
        f'<td>{reason["count"]:,}</td><td class="text long">{clean(reason["reason"], SHORT)}</td>'
        f"<td>{reason['first']}</td></tr>"
        for each, reason in reasons[:_REASONS]
    )
    if not lines:
        return ""
    heads = th("matches", "text") + th("status", "text") + th("rows") + th("reason", "text") + th("first at")
    return table("Why matches have no outcome, most frequent first", heads, f"<tbody>{lines}</tbody>")


def match_provenance(facts: Facts) -> str:
    """Where a set of matches comes from."""
    spec, origin = facts["spec"], facts["provenance"] or {}
    versions = {"evaluand": origin.get("evaluand"), "python": origin.get("python")}
    pairs = {
        "matches": f"{facts['id']}  {facts['name'] or ''}",
        "digest": facts["digest"],
        "begun": format_creation(facts),
        "systems": ", ".join(facts["systems"][:_LISTED]),
        "runs": ", ".join(origin.get("runs", ())[:_LISTED]),
        "battles": spec.get("battles", ""),
        "judge": json_text(spec["judge"]) if "judge" in spec else "",
        "schedule": json_text(spec["schedule"]) if "schedule" in spec else "",
        "orders": f"{spec['orders']}, seed {spec.get('seed')}" if "orders" in spec else "",
        "unpinned": "; ".join(origin.get("unpinned") or ()),
        "data from": origin.get("source") or "",
        "versions": ", ".join(f"{package} {version}" for package, version in versions.items() if version),
        "git": git_text(origin),
    }
    cells = "".join(
        f'<dt>{what}</dt><dd class="{"warn" if what == "unpinned" else "code"}">{clean(value, 4 * SHORT)}</dd>'
        for what, value in pairs.items()
        if value
    )
    return f'<h3 dir="auto">{name(facts["title"])}</h3>\n<dl class="pairs">{cells}</dl>'


_BROWSER: Final = """<noscript><p>Allow this page to run its script to browse the matches.</p></noscript>
<div data-part="pairs"></div>"""


STYLE_NAMES: Final = [field.name for field in STYLE]


def _renumber(case: Facts, numbers: Sequence[int]) -> Facts:
    """A case with the numbers that systems have in the report."""
    own = {name: {numbers[system]: value for system, value in case[name].items()} for name in ("responses", "styles")}
    rows = [row | {side: numbers[row[side]] for side in "ab"} for row in case["rows"]]
    return case | own | {"rows": rows}


def order_pairs(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """The order in which pairs are shown: by `OUTCOMES`, the greatest difference or the most decisive first."""
    outcome, share = columns["outcome"], np.nan_to_num(columns["share"], nan=0.5)
    contradicted = columns["gap"] * (outcome == CONTRADICTORY)
    return np.lexsort([-np.abs(share - 0.5), -contradicted, outcome])


class Chosen(NamedTuple):
    """The rows of a set that are shown; arrays with an entry for each, in the order of the key.

    Attributes:
        total: the number of rows, chosen or not.
        keys: example, replication and both systems, rows × 4.
        positions: of each row the positions of its matches in the table.
        first: of each row the position of its first match in the table that has the texts of all matches.
        outcome: a position in `OUTCOMES`.
        share: a's mean share of the win; NaN without an outcome.
        gap: the greatest difference between two judgements.
        n_texts: how many texts are shown at most.
    """

    total: int
    keys: np.ndarray
    positions: list[np.ndarray]
    first: np.ndarray
    outcome: np.ndarray
    share: np.ndarray
    gap: np.ndarray
    n_texts: int

    def take(self, rows: np.ndarray, first: np.ndarray) -> Chosen:
        """Some of the rows, in ascending order, whose texts are at other positions."""
        positions = [self.positions[row] for row in rows.tolist()]
        return self._replace(
            keys=self.keys[rows],
            positions=positions,
            first=first,
            outcome=self.outcome[rows],
            share=self.share[rows],
            gap=self.gap[rows],
        )


def choose_matches(matches: Matches, limit: int | None) -> Chosen:
    """The rows of a set that are shown: so many, the first by `OUTCOMES`; None is all."""
    names = [*_KEY, "status", "outcome", "strength", "equal"]
    read = matches.table(names)
    columns = {each: _as_numpy(read.column(each)) for each in (*_KEY, "outcome", "strength", "equal")}
    is_scored = _as_numpy(pc.equal(read.column("status"), SCORED))
    order = np.lexsort([columns[each] for each in reversed(_KEY)])
    keys = np.stack([columns[each][order].astype(np.int64) for each in _KEY])
    starts = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)]) if len(order) else order
    if not len(order):
        return Chosen(0, keys.T, [], np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), 0)
    outcome = np.where(is_scored, columns["outcome"], np.nan)[order]
    known = ~np.isnan(outcome)
    counts = np.add.reduceat(known, starts, dtype=np.int64)
    share = np.add.reduceat(np.where(known, outcome, 0.0), starts) / np.where(counts > 0, counts, np.nan)
    low = np.minimum.reduceat(np.where(known, outcome, np.inf), starts)
    high = np.maximum.reduceat(np.where(known, outcome, -np.inf), starts)
    gap = np.where(counts > 0, high - low, 0.0)
    equal = np.logical_and.reduceat(columns["equal"][order], starts)
    strength = np.maximum.reduceat(np.nan_to_num(columns["strength"][order].astype(float)), starts)
    kinds = [counts == 0, equal, (low < 0.5) & (high > 0.5), np.abs(share - 0.5) < 1e-12]
    kind = np.select(kinds, [UNDECIDED, EQUAL, CONTRADICTORY, TIE], DECIDED)
    ranked = np.lexsort([-strength, -np.abs(np.nan_to_num(share, nan=0.5) - 0.5), -gap * (kind == CONTRADICTORY), kind])
    chosen = np.sort(ranked if limit is None else ranked[:limit])
    ends = np.r_[starts[1:], len(order)]
    positions = [np.sort(order[starts[i] : ends[i]]) for i in chosen]
    cases = keys[:2, starts[chosen]]
    n_cases = int((cases[:, 1:] != cases[:, :-1]).any(axis=0).sum()) + bool(len(chosen))
    n_texts = min(n_cases * (len(matches.systems) + 1), 3 * len(chosen)) + sum(map(len, positions))
    first = np.array([each[0] for each in positions], np.int64)
    of_rows = (kind[chosen], share[chosen], gap[chosen])
    return Chosen(len(starts), keys[:, starts[chosen]].T, positions, first, *of_rows, n_texts)


def _as_numpy(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False))


def read_cases(matches: Matches, chosen: Chosen, limit: int) -> Iterator[Facts]:
    """The cases of a set, in the order of the key, with the numbers that systems have in the set."""
    if not chosen.positions:
        return
    positions = np.concatenate(chosen.positions)
    found = _take(matches, np.sort(positions)).take(pa.array(np.argsort(np.argsort(positions))))  # as the keys are
    read = (row for batch in found.to_batches(_CHUNK_ROWS) for row in batch.to_pylist())
    texts: _RunTexts | _FileTexts
    texts = (
        _RunTexts(matches, limit) if matches.manifest["spec"].get("runs") else _FileTexts(matches, limit, chosen.first)
    )
    spans = _read_spans(matches, found.column("judgement"))
    case: Facts | None = None
    for number, positions in enumerate(chosen.positions):
        rows = [*itertools.islice(read, len(positions))]
        key = rows[0][INDEX], rows[0]["replication"], texts.case_key(rows[0])
        if case is None or case["key"] != key:
            if case is not None:
                yield texts.finish(case)
            case = {
                "key": key,
                "index": key[0],
                "replication": key[1],
                "rows": [],
                "styles": {},
                "first": chosen.first[number],
            }
        case["rows"].append(
            {
                "a": rows[0]["a"],
                "b": rows[0]["b"],
                "outcome": int(chosen.outcome[number]),
                "share": chosen.share[number].item(),
                "gap": chosen.gap[number].item(),
                "said": [_say(row, limit, spans.get(row["judgement"])) for row in rows[:_JUDGEMENTS]],
                "n_said": len(rows),
            }
        )
        for side in "ab":
            if rows[0][f"style_{side}"] is not None:
                case["styles"][rows[0][side]] = [rows[0][f"style_{side}"][name] for name in STYLE_NAMES]
    if case is not None:
        yield texts.finish(case)


def _take(matches: Matches, positions: np.ndarray) -> pa.Table:
    """Some rows of the table, in ascending order, without holding the others."""
    parts = []
    start = 0
    for batch in matches.batches([*_KEY, *_SAID, "style_a", "style_b"]):
        low, high = np.searchsorted(positions, [start, start + batch.num_rows])
        parts.append(batch.take(pa.array(positions[low:high] - start)))
        start += batch.num_rows
    return pa.Table.from_batches(parts).combine_chunks()


def _say(row: Mapping[str, Any], limit: int, spans: list[Any] | None) -> list[Any]:
    """One judgement: order, status, a's share, strength, label, judge, reason, explanation, data, usage, spans.

    The spans are their number and the cells of the first ones; None if the judge traced nothing.
    """
    short = [None if row[name] is None else cut_text(row[name], SHORT) for name in ("label", "judge")]
    long = [None if row[name] is None else cell(row[name], limit) for name in ("reason", "explanation")]
    data = None if row["data"] is None else json_cell(row["data"], min(_DATA, limit))
    usage = None if row["usage"] is None else _cut_usage(orjson.loads(row["usage"]))
    return [row["order"], row["status"], row["outcome"], row["strength"], *short, *long, data, usage, spans]


def _cut_usage(usage: Any) -> dict[str, Any] | None:
    """Numbers and short texts of a usage by name."""
    if not isinstance(usage, dict):
        return None
    entries = itertools.islice(usage.items(), _JUDGEMENTS)
    return {
        cut_text(key, SHORT): value if isinstance(value, int | float) else cut_text(str(value), SHORT)
        for key, value in entries
        if value is not None
    }


def _read_spans(matches: Matches, judgements: pa.ChunkedArray) -> dict[int, list[Any]]:
    """The steps of some calls of a judge, by judgement: how many there are, and the first ones as cells."""
    if SPANS_TABLE not in matches.manifest["tables"]:
        return {}
    judged = pc.unique(pc.drop_null(judgements))
    n = max(len(judged), 1)
    most, room = max(min(_SPANS, _ALL_SPANS // n), 1), _ROOM // n
    found: dict[int, list[Any]] = {}
    budgets: dict[int, Budget] = {}
    for batch in matches.store.read(MATCHES, matches.id, SPANS_TABLE):
        chosen = batch.filter(pc.is_in(batch.column("judgement"), judged))
        for number, *row in read_tuples(chosen):
            spans = found.setdefault(number, [0, []])
            spans[0] += 1
            if len(spans[1]) < most:
                spans[1].append(span_cells(row, None, budgets.setdefault(number, Budget(room))))
    return found


class _RunTexts:
    """Inputs and responses from the runs that were compared, read along with the matches."""

    def __init__(self, matches: Matches, limit: int) -> None:
        self._limit = limit
        runs = matches.runs
        self._responses = [None if run is None else _read_responses(run) for run in runs]
        self._in_lists = [run is not None and run.items for run in runs]
        run = next((run for run in runs if run is not None), None)
        self._examples = None if run is None else ExampleReader(run)

    def case_key(self, row: Mapping[str, Any]) -> Any:
        return None

    def finish(self, case: Facts) -> Facts:
        """A case with its texts."""
        del case["key"], case["first"]
        example = None if self._examples is None else self._examples.take(case["index"])
        systems = dict.fromkeys(row[side] for row in case["rows"] for side in "ab")
        responses = {system: self._response(system, (case["index"], case["replication"])) for system in systems}
        return case | {
            "id": None if example is None else cut_text(example.id, SHORT),
            "input": None if example is None else cell(example.input, self._limit),
            "responses": responses,
        }

    def _response(self, system: int, key: tuple[int, int]) -> Any:
        reader = self._responses[system]
        rows = [] if reader is None else reader.take(key)
        if not rows or rows[0][0] != COMPLETED or not rows[0][1]:
            return None
        _, items, n = rows[0]
        [text, *_] = [*response_texts(items, n, self._in_lists[system]), "null"]
        return json_cell(text, self._limit)


def _read_responses(run: Run) -> Keyed:
    names = [INDEX, "replication", "status", "responses", "n_responses"]
    return Keyed(row for batch in run.batches(names) for row in read_tuples(batch.select(names)))


class _FileTexts:
    """Inputs and responses from a file of battles, if it had them; a case is a pair, as rows may differ in them."""

    def __init__(self, matches: Matches, limit: int, positions: np.ndarray) -> None:
        self._matches, self._limit, self._positions = matches, limit, np.unique(positions)

    def case_key(self, row: Mapping[str, Any]) -> Any:
        return row["a"], row["b"]

    def finish(self, case: Facts) -> Facts:
        """A case with its texts."""
        place = case.pop("first")
        _, _, (a, b) = case.pop("key")
        id, input = self._examples.get(case["index"], (str(case["index"]), None))
        texts: Facts = {"input": input, "response_a": None, "response_b": None}
        own = self._texts.get(int(place), {})
        texts |= {name: own[name] for name in texts if own.get(name) is not None}
        cells = {name: None if text is None else cell(text, self._limit) for name, text in texts.items()}
        responses = {a: cells["response_a"], b: cells["response_b"]}
        own = {"id": None if id is None else cut_text(id, SHORT), "input": cells["input"], "responses": responses}
        return case | own

    @cached_property
    def _examples(self) -> dict[int, tuple[str | None, str | None]]:
        batches = self._matches.store.read(MATCHES, self._matches.id, EXAMPLES, [INDEX, "id", "input"])
        return {index: (id, input) for batch in batches for index, id, input in read_tuples(batch)}

    @cached_property
    def _texts(self) -> dict[int, dict[str, Any]]:
        """The texts of the matches at the positions; none if the file had none."""
        found: dict[int, dict[str, Any]] = {}
        start = 0
        with suppress(NotFound):
            for batch in self._matches.store.read(MATCHES, self._matches.id, TEXTS):
                low, high = np.searchsorted(self._positions, [start, start + batch.num_rows])
                own = self._positions[low:high]
                found |= zip(own.tolist(), batch.take(pa.array(own - start)).to_pylist(), strict=True)
                start += batch.num_rows
        return found
