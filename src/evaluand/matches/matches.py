"""Matches: two responses to one example that were compared, as a stored table with one row per pair and order.

A `Matcher` makes them from runs; `battles.py` reads those that others have judged. Ratings and win
rates are computed from this table (`evaluand.matches.ratings`).

Several sets of matches, and exports of them, recognise the same match by keys of examples and judges. An example of a
dataset is identified by its content, so that sets over different datasets meet in the examples they share. One of
battles is identified by its id and input, and without an input by the name of its file too, because files number their
examples alike. A judge without a name is identified by the name of its file, so that a file with more rows extends what
it was. An export of evaluand has the keys in its columns `example_key` and `judge_key`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import NotFound, plural
from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.core.row_numbers import count_earlier, digest_halves
from evaluand.core.text.html_table import escape_text, html_notes, html_table
from evaluand.data.dataset import Dataset
from evaluand.data.kind import DATASETS
from evaluand.engine.keyed_work import Artifact
from evaluand.models.usage_total import UsageTotal
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store.store import Store, caveats, exists
from evaluand.store.tables import FAILED, MATCHES

TABLE = "matches"

EXAMPLES = "examples"
EXAMPLES_SCHEMA = pa.schema(
    [pa.field(INDEX, pa.int64(), nullable=False), *(pa.field(name, pa.string()) for name in ("id", "input", "key"))]
)
"""The examples of matches that others have judged; matches of runs have those of their dataset. `id` is null where the
file distinguishes examples by their inputs. `key` is that of an export."""

BY_PEOPLE: Final = "by_people"  # in the spec of matches, or of their judge, if people have judged elsewhere
SAID: Final = "said"  # in the identity of a judge elsewhere: the digest of its judgements

TEXTS = "texts"
TEXTS_SCHEMA = pa.schema([(name, pa.string()) for name in ("input", "response_a", "response_b")])
"""What a judge elsewhere saw, a row for each match, if it was recorded."""

JUDGES = "judges"
JUDGES_SCHEMA = pa.schema([("judge_key", pa.string())])
"""The key of the judge of each match, if an export of evaluand was read."""

_MOST_PAIRS = 45  # in the table of a notebook: those of ten systems

JUDGE_FAILED: Final = "judge: "  # how the reason of a match begins where the judge failed; its error follows

UNDIGESTED: Final = ["style_a", "style_b", "usage"]  # derived from responses, or no part of the result


class Matches(Artifact):
    """Matches in a store; the `receipt` says what had to be judged, if they were just made."""

    kind = "matches"

    def __repr__(self) -> str:
        n = sum(self.manifest.get("counts", {}).values())  # none while open
        return f"Matches({self.id[:12]}, {', '.join(self.systems)}: {plural(n, 'match', 'matches')})"

    def _repr_html_(self) -> str:
        """Who won how often against whom, as the table of a notebook."""
        title = f"<p>{escape_text(repr(self))}</p>"
        if not self.store.is_sealed("matches", self.id):
            return f"{title}{html_notes(['not finished'])}"
        pairs, names = count_pairs(self), ("won", "tied", "lost", "n_missing")
        rows = [[row["a"], row["b"], *(f"{row[name]:,}" for name in names)] for row in pairs[:_MOST_PAIRS]]
        notes = [", ".join(f"{n:,} {status}" for status, n in self.counts.items())]
        probable = sum(row["n_probable"] for row in pairs)
        notes += [f"{probable:,} outcomes are probabilities: won counts the higher one"] if probable else []
        notes += [f"and {plural(len(pairs) - _MOST_PAIRS, 'more pair')}"] if len(pairs) > _MOST_PAIRS else []
        notes += [f"{total['judge'] or 'judging'}: {usage_text(total)}" for total in sum_usage(self)]
        notes += caveats(self.store, [(self.kind, self.id)])
        return title + html_table(("a", "b", "won by a", "tied", "won by b", "no outcome"), rows) + html_notes(notes)

    @property
    def name(self) -> str | None:
        """The name under which the matches were made, or one that they got later."""
        if (name := self.manifest["name"]) is not None:
            return str(name)
        return next((ref.name for ref in self.store.refs() if (ref.kind, ref.id) == (self.kind, self.id)), None)

    @property
    def systems(self) -> list[str]:
        """The labels of the systems; the columns `a` and `b` of the table are positions in this list."""
        return list(self.manifest["spec"]["systems"])

    @property
    def counts(self) -> dict[str, int]:
        """Rows by status."""
        return self.manifest["counts"]  # type: ignore[no-any-return]

    @property
    def failures(self) -> dict[str, int]:
        """How many judgements failed, by class of error, most frequent first."""
        errors = (text.removeprefix(JUDGE_FAILED) for text in self.failed_reasons if text.startswith(JUDGE_FAILED))
        return dict(Counter(error.partition(":")[0] for error in errors).most_common())

    @property
    def failed_reasons(self) -> list[str]:
        """Why each judgement failed that did."""
        if not self.counts.get(FAILED):
            return []
        failed = (batch.filter(pc.equal(batch["status"], FAILED)) for batch in self.judgements(["status", "reason"]))
        return [reason or "" for batch in failed for reason in batch["reason"].to_pylist()]

    @property
    def runs(self) -> list[Run | None]:
        """The run of each system; None where the store has lost it, empty for matches that others have judged."""
        ids = self.manifest["provenance"]["runs"]
        return [Run(self.store, id) if exists(self.store, RUNS, id) else None for id in ids]

    @property
    def left_out(self) -> str | None:
        """What of the runs is not compared because another run has nothing to compare it with; None if nothing is."""
        runs = self.runs
        known = [run for run in runs if run is not None]
        if not known or len(known) < len(runs):
            return None
        return describe_left_out(known, self.systems, self.manifest["spec"].get("limit"))

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The table of matches as a stream, in the order of its key."""
        return self.store.read("matches", self.id, TABLE, columns)

    def judgements(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Of each judgement the first match that it decides, with its number as `judgement`."""
        batches = self.batches([*dict.fromkeys(("judgement", *columns))])
        return once_per_judgement(batch.filter(batch["judgement"].is_valid()) for batch in batches)

    def table(self, columns: list[str] | None = None) -> pa.Table:
        """The table of matches; its columns are those of `store.tables.MATCHES`."""
        return pa.Table.from_batches(self.batches(columns))


def describe_left_out(runs: Sequence[Run], labels: Sequence[str], limit: int | None = None) -> str | None:
    """What of some runs cannot be compared because others have fewer replications or examples; None if nothing is.

    Args:
        limit: only the first examples are to be compared.
    """
    replications = [int(run.manifest["spec"]["replications"]) for run in runs]
    examples = [int(run.manifest["spec"]["examples"]) for run in runs]
    if limit is not None:
        examples = [min(n, limit) for n in examples]
    n_idle = sum(n * (each - min(replications)) for n, each in zip(examples, replications, strict=True))
    parts = []
    for noun, counts, remedy in (
        ("replication", replications, f"with replications={max(replications)}"),
        ("example", examples, "over all examples" if limit is None else f"with limit={limit}"),
    ):
        fewest, most = min(counts), max(counts)
        if fewest < most:
            has = ", ".join(f"{label!r} has {n:,}" for label, n in zip(labels, counts, strict=True))
            fewer = " and ".join(repr(label) for label, n in zip(labels, counts, strict=True) if n < most)
            idle = f", so {plural(n_idle, 'response')} have none to meet" if noun == "replication" else ""
            parts.append(f"not all {noun}s are compared, since {has}{idle}; run {fewer} {remedy} and match again")
    return "; ".join(parts) or None


class MatchDigest:
    """The digest of a table of matches and its rows by status, batch by batch."""

    def __init__(self) -> None:
        self._state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
        self.counts: dict[str, int] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        names = [name for name in MATCHES.names if name not in UNDIGESTED]
        columns = [
            [None if each is None else each.hex() for each in batch.column(name).to_pylist()]
            if name == "digest"
            else batch.column(name).to_pylist()
            for name in names
        ]
        self._state.update(b"".join(map(orjson.dumps, zip(*columns, strict=True))))
        for each in pc.value_counts(batch.column("status")).to_pylist():
            self.counts[each["values"]] = self.counts.get(each["values"], 0) + each["counts"]

    @property
    def digest(self) -> str:
        return self._state.hexdigest()


def stored_digest(store: Store, id: str) -> tuple[str, dict[str, int]]:
    """The digest and the row counts of stored matches, computed from the rows as they are now."""
    state = MatchDigest()
    for batch in Matches(store, id).batches():
        state.add(batch)
    return state.digest, state.counts


def count_pairs(matches: Matches) -> list[dict[str, Any]]:
    """The judgements of each pair of systems, in the order of the systems.

    Returns:
        `a` and `b`, `won` (by a), `tied`, `lost`, `n_missing` (without an outcome) and `n_probable` (whose outcome is a
        probability, and counts for the side with the higher one).
    """
    labels = matches.systems
    counts = np.zeros((len(labels), len(labels), 5), np.int64)  # lost, tied, won, without an outcome, a probability
    for batch in matches.batches(["a", "b", "outcome"]):
        a, b = (np.asarray(batch.column(side)) for side in "ab")
        outcome = batch.column("outcome").to_numpy(zero_copy_only=False).astype(float)
        is_known = ~np.isnan(outcome)
        kind = np.where(is_known, 1 + np.sign(np.nan_to_num(outcome, nan=0.5) - 0.5), 3).astype(np.int64)
        np.add.at(counts, (a, b, kind), 1)
        np.add.at(counts[..., 4], (a, b), is_known & ~np.isin(outcome, (0.0, 0.5, 1.0)))
    names = ("won", "tied", "lost", "n_missing", "n_probable")
    return [
        {"a": labels[a], "b": labels[b]} | dict(zip(names, counts[a, b][[2, 1, 0, 3, 4]].tolist(), strict=True))
        for a, b in np.argwhere(counts.any(axis=2)).tolist()
    ]


def sum_usage(matches: Matches) -> list[dict[str, Any]]:
    """What the judgements cost when they were made, by judge; empty if none says so.

    A judgement that decides several matches counts once.

    Returns:
        `judge` (None if the matches do not name judges), `judgements` (those with a usage), and the entries of a
        `UsageTotal`.
    """
    totals: dict[str | None, UsageTotal] = {}
    batches = matches.batches(["judgement", "judge", "usage"])
    for batch in once_per_judgement(batch.filter(batch["usage"].is_valid()) for batch in batches):
        for row in batch.to_pylist():
            usage = orjson.loads(row["usage"])
            if isinstance(usage, dict):
                totals.setdefault(row["judge"], UsageTotal()).add(usage)
    found = sorted(totals.items(), key=lambda each: (each[0] is not None, str(each[0])))
    return [{"judge": judge, "judgements": total.rows, **total.to_dict()} for judge, total in found]


def usage_text(total: dict[str, Any]) -> str:
    """The usage of a judge in a line.

    Example:
        >>> usage_text({"rows": 2, "requests": 3, "failed": 1, "input_tokens": 1200, "cost": {"EUR": 0.25}})
        '2 judgements: 3 requests, 1 failed, 1,200 input tokens, cost 0.25 EUR'
    """
    used = UsageTotal.read(total)
    return f"{plural(used.rows, 'judgement')}: {used.describe('judgement')}"


def once_per_judgement(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of matches that one judgement decides the first; those without a judgement are all there."""
    known = np.zeros(0, bool)
    for batch in batches:
        numbers = np.asarray(pc.fill_null(batch["judgement"], -1))
        known = np.pad(known, (0, max(int(numbers.max(initial=0)) + 1 - len(known), 0)))
        first = np.zeros(len(numbers), bool)
        first[np.unique(numbers, return_index=True)[1]] = True
        is_new = (numbers < 0) | (first & ~known[numbers])
        known[numbers[numbers >= 0]] = True
        yield batch.filter(pa.array(is_new))


@dataclass(frozen=True)
class ExampleKeys:
    """The keys of examples.

    Attributes:
        index: `_index_` of each example, sorted.
        key: examples × 2: a number of the content, and how many equal examples come before.
        shared: the same, but of battles without inputs a number of the id alone, for readers that know that ids agree.
    """

    index: np.ndarray
    key: np.ndarray
    shared: np.ndarray


def read_example_ids(matches: Matches) -> dict[int, str | None]:
    """The ids of the examples by `_index_`."""
    dataset = matches.manifest["spec"].get("dataset")
    if dataset is not None:
        return {example.index: example.id for example in Dataset.stored(matches.store, dataset)}
    batches = matches.store.read("matches", matches.id, EXAMPLES, [INDEX, "id"])
    return {row[INDEX]: row["id"] for batch in batches for row in batch.to_pylist()}


def read_example_keys(matches: Matches) -> ExampleKeys:
    """The keys of the examples of matches.

    Raises:
        NotFound: their dataset is not in the store.
    """
    dataset = matches.manifest["spec"].get("dataset")
    if dataset is None:
        return _read_battle_examples(matches)
    try:
        batches = [*matches.store.read(DATASETS, dataset, "examples", [INDEX, DIGEST])]
    except NotFound as error:
        raise NotFound(f"matches {matches.id}: their dataset is missing: {error}") from None
    index = [batch.column(0).to_numpy() for batch in batches]
    halves = np.concatenate([np.zeros((0, 2), np.int64), *(digest_halves(batch.column(1)) for batch in batches)])
    key = np.column_stack([halves[:, 0], count_earlier(halves)])
    return ExampleKeys(np.concatenate([np.zeros(0, np.int64), *index]), key, key)


def _read_battle_examples(matches: Matches) -> ExampleKeys:
    source = (file_origin(matches) or {}).get("source") or _spec_of_rows(matches)
    keys: dict[int, tuple[tuple[int, int], tuple[int, int]]] = {}
    for batch in matches.store.read("matches", matches.id, EXAMPLES):
        for row in batch.to_pylist():
            about = row[INDEX], row["id"], row["input"]
            written = row.get("key")
            key = parse_example_key(written) if written is not None else (number_of(battle_example(source, *about)), 0)
            is_certain = written is not None or row["input"] is not None
            keys[row[INDEX]] = key, key if is_certain else (number_of(_describe(*about)), 0)
    index = np.array(sorted(keys), np.int64)
    both = np.array([keys[each] for each in index.tolist()], np.int64).reshape(-1, 2, 2)
    return ExampleKeys(index, both[:, 0], both[:, 1])


def file_origin(matches: Matches) -> dict[str, Any] | None:
    """The file of matches that others have judged, by its name, and the columns that were chosen in it."""
    made_from = matches.manifest["provenance"]
    source = made_from.get("source")
    return None if source is None else {"source": source, "fields": made_from.get("fields") or {}}


def _spec_of_rows(matches: Matches) -> dict[str, Any]:
    """The spec without whether people have judged: the same rows count once, whatever is known about their judge."""
    return {name: value for name, value in matches.manifest["spec"].items() if name != BY_PEOPLE}


def battle_example(source: Any, index: int, id: str | None, text: str | None) -> Mapping[str, Any]:
    """What identifies an example of battles."""
    return _describe(index, id, text) | ({"battles": source} if text is None else {})


def _describe(index: int, id: str | None, text: str | None) -> dict[str, Any]:
    """What a file says about an example; without an id and an input, each of its rows is one."""
    return {"row": index} if id is None and text is None else {"id": id, "input": text}


def number_of(value: Any) -> int:
    """A number of 64 bits that is equal for equal JSON-like values."""
    return int.from_bytes(identity.digest(value)[:8], "big", signed=True)


def format_key(number: int, repeat: int = 0) -> str:
    """A key as text.

    Example:
        >>> format_key(-1), format_key(255, 2), parse_example_key(format_key(-3, 1))
        ('ffffffffffffffff', '00000000000000ff.2', (-3, 1))
    """
    text = number.to_bytes(8, "big", signed=True).hex()
    return f"{text}.{repeat}" if repeat else text


_KEY: Final = re.compile(r"[0-9a-f]{16}(\.[1-9][0-9]{0,8})?")


def parse_example_key(text: str) -> tuple[int, int]:
    """The inverse of `format_key`.

    Raises:
        ValueError: the text is no key.
    """
    number, _, repeat = text.partition(".")
    if not _KEY.fullmatch(text):
        raise ValueError(text)
    return int.from_bytes(bytes.fromhex(number), "big", signed=True), int(repeat or "0")


class JudgeKeys(NamedTuple):
    """Who judged each match: a place in `keys`, and for each key the name of a person or None."""

    place: np.ndarray
    keys: list[int]
    people: list[str | None]


def read_judge_keys(matches: Matches, people: pa.Array) -> JudgeKeys:
    """The judges of all matches of a set.

    A judge is identified by all that identifies its work, or by the person who judged.

    Args:
        people: the column `judge`.
    """
    spec = matches.manifest["spec"]
    own: Mapping[str, Any] | None = file_origin(matches)
    if own is None:
        judge = {name: value for name, value in spec.get("judge", {}).items() if name != SAID}
        own = {"judge": judge} if "judge" in spec else _spec_of_rows(matches)
    person = people.dictionary_encode()
    names = person.dictionary.to_pylist()
    place = pc.fill_null(person.indices, -1).to_numpy()
    keys = [number_of({"person": name}) for name in names]
    if "battles" in spec and JUDGES in matches.manifest["tables"]:  # an export of evaluand was read
        batches = matches.store.read("matches", matches.id, JUDGES)
        written = pa.chunked_array([batch.column(0) for batch in batches]).combine_chunks()
        codes = written.dictionary_encode()
        places = pc.fill_null(codes.indices, -1).to_numpy()
        place = np.where(place >= 0, place, np.where(places >= 0, len(keys) + places, -1))
        keys += [parse_example_key(text)[0] for text in codes.dictionary.to_pylist()]
    place = np.where(place >= 0, place, len(keys))
    keys.append(number_of(own))
    return JudgeKeys(place, keys, [*names, *[None] * (len(keys) - len(names))])
