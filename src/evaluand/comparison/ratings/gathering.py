"""Several sets of matches as one table of arrays, in which systems with the same label are one system.

Sets extend each other: what the same judge says about the same pair, on the same example and in the same order, counts
once, and the last set that has an outcome decides. Examples are identified by their content, so that sets over
different datasets meet in the examples they share. Those of battles without inputs are those of their file alone. A
judge without a name is identified by the name of its file, so that a file with more rows extends what it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import cluster_keys
from evaluand.comparison.pairing import count_earlier, digest_halves, number_rows
from evaluand.core import identity
from evaluand.core.errors import NotFound, plural, warn
from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.data.dataset import Dataset
from evaluand.evaluation.matching.matches import EXAMPLES, Matches
from evaluand.evaluation.matching.recorded import SAID
from evaluand.metrics.ratings.positions import resolve_orders
from evaluand.store.tables import FAILED, SCORED, SKIPPED, STYLE

NOBODY, A, B, BOTH = range(4)
"""Whose response is missing."""

_MISSING: Final = {"a": A, "b": B, "both": BOTH}


@dataclass(frozen=True)
class MatchTable:
    """Judgements of pairs, in arrays with an entry for each example, replication, pair, order and judge.

    Attributes:
        systems: the labels of the systems.
        judges: the names of the judges.
        a, b: numbers of systems, a < b.
        outcome: a's share of the win; NaN where there is none.
        a_first: whether the judge saw the response of a first.
        ordered: whether the order is known.
        equal: whether the responses are equal, so that no judge was asked.
        skipped: whether the match was not to be judged.
        failed: whether the judge or a system failed.
        missing: whose response is missing: `NOBODY`, `A`, `B` or `BOTH`.
        cluster: the key of the example, or of the cluster that its dataset declares.
        judge: a position in `judges`.
        pair: a number that both orders of a pair share.
        style: entries × sides × the counts of `STYLE`; NaN where unknown.
    """

    systems: Sequence[str]
    judges: Sequence[str]
    a: np.ndarray
    b: np.ndarray
    outcome: np.ndarray
    a_first: np.ndarray
    ordered: np.ndarray
    equal: np.ndarray
    skipped: np.ndarray
    failed: np.ndarray
    missing: np.ndarray
    cluster: np.ndarray
    judge: np.ndarray
    pair: np.ndarray
    style: np.ndarray

    def __len__(self) -> int:
        return len(self.a)

    def take(self, chosen: np.ndarray) -> MatchTable:
        """The chosen entries, by mask or position."""
        names = [each.name for each in fields(self) if each.name not in ("systems", "judges")]
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    @property
    def known(self) -> np.ndarray:
        """The entries with an outcome."""
        return np.asarray(~np.isnan(self.outcome))

    def shares(self) -> np.ndarray:
        """The part of a match that each entry is: both orders of a pair are one match."""
        return np.asarray(1.0 / np.bincount(self.pair)[self.pair] if len(self) else np.zeros(0))

    def contradictory(self) -> np.ndarray:
        """The entries of pairs with opposite winners in their two orders."""
        known = self.known & self.ordered
        found = resolve_orders(self.outcome[known], self.a_first[known], self.pair[known])
        pairs = self.pair[known][found.row[found.contradictory]]
        return np.isin(self.pair, pairs)


def gather(sets: Sequence[Matches]) -> MatchTable:
    """The table of all matches of some sets.

    Raises:
        NotFound: a dataset is not in the store.
    """
    systems = list(dict.fromkeys(label for each in sets for label in each.systems))
    judges: dict[int, str] = {}
    parts = [_read_set(each, systems, judges) for each in sets]
    _warn_about_changed_runs(sets)
    _warn_about_files(sets, parts)
    names = [each.name for each in fields(MatchTable) if each.name not in ("systems", "judges", "pair")]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    pairs = np.concatenate([part.key for part in parts])
    [pair] = number_rows([pairs]) if len(pairs) else [np.zeros(0, np.int64)]
    table = MatchTable(systems, [*judges.values()], pair=pair, **columns)
    return table if len(sets) == 1 else _count_once(table, [len(part.a) for part in parts])


class _Part(NamedTuple):
    """The columns of a set.

    `key` has a row of integers by which a pair is identified, `vote` one for what was judged, whoever judged it in
    whatever file.
    """

    a: np.ndarray
    b: np.ndarray
    outcome: np.ndarray
    a_first: np.ndarray
    ordered: np.ndarray
    equal: np.ndarray
    skipped: np.ndarray
    failed: np.ndarray
    missing: np.ndarray
    cluster: np.ndarray
    judge: np.ndarray
    style: np.ndarray
    key: np.ndarray
    vote: np.ndarray


_COLUMNS: Final = [INDEX, "replication", "a", "b", "order", "status", "missing", "outcome", "first", "equal", "judge"]


def _read_set(matches: Matches, systems: Sequence[str], judges: dict[int, str]) -> _Part:
    table = matches.table([*_COLUMNS, "style_a", "style_b"])
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    numbers = np.array([systems.index(label) for label in matches.systems])
    one, other = numbers[column["a"].to_numpy()], numbers[column["b"].to_numpy()]
    flipped = one > other
    outcome = column["outcome"].to_numpy(zero_copy_only=False).astype(np.float64)
    status = column["status"]
    outcome[~pc.equal(status, SCORED).to_numpy(zero_copy_only=False)] = np.nan
    a_first = pc.equal(column["order"], "ab").to_numpy(zero_copy_only=False)
    missing = _read_missing(column["missing"])
    style = np.stack([_read_style(column[f"style_{side}"]) for side in "ab"], axis=1)
    style[flipped] = style[flipped, ::-1]
    judge, keys = _number_judges(matches, column["judge"], judges)
    example, cluster, content = _identify_examples(matches, column[INDEX].to_numpy())
    a, b = np.minimum(one, other), np.maximum(one, other)
    replication = column["replication"].to_numpy().astype(np.int64)
    ordered = np.isnan(outcome) | column["first"].is_valid().to_numpy(zero_copy_only=False)
    key = np.column_stack([example, keys, replication, a, b])
    if "schedule" in matches.manifest["spec"]:
        repeat = np.zeros(len(key), np.int64)
    else:
        repeat = _number_repeats(key, a_first != flipped, ordered)
    outcome = np.where(flipped, 1.0 - outcome, outcome)
    share = np.where(np.isnan(outcome), -1, np.rint(outcome * 1e9)).astype(np.int64)
    return _Part(
        a=a,
        b=b,
        outcome=outcome,
        a_first=a_first != flipped,
        ordered=ordered,
        equal=column["equal"].to_numpy(zero_copy_only=False),
        skipped=pc.equal(status, SKIPPED).to_numpy(zero_copy_only=False),
        failed=pc.equal(status, FAILED).to_numpy(zero_copy_only=False),
        missing=np.where(flipped, _FLIPPED[missing], missing),
        cluster=cluster,
        judge=judge,
        style=style,
        key=np.column_stack([key, repeat]),
        vote=np.column_stack([content, replication, a, b, repeat, a_first != flipped, share]),
    )


def _number_repeats(key: np.ndarray, a_first: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """A number for each entry: several judgements of one judge, on one example and in one order, are several matches.

    The first in one order belongs to the first in the other; one whose order is unknown is a separate match.
    """
    repeat = count_earlier(np.column_stack([key, np.where(ordered, a_first, 2)]))
    return np.where(ordered, repeat, -1 - repeat)


_FLIPPED: Final = np.array([NOBODY, B, A, BOTH])


def _read_missing(column: pa.Array) -> np.ndarray:
    codes = column.dictionary_encode()
    numbers = np.array([*(_MISSING.get(text, NOBODY) for text in codes.dictionary.to_pylist()), NOBODY])
    return np.asarray(numbers[pc.fill_null(codes.indices, len(numbers) - 1).to_numpy()])


def _read_style(column: pa.StructArray) -> np.ndarray:
    """Entries × counts; NaN where there is none."""
    counts = [column.field(place).to_numpy(zero_copy_only=False).astype(np.float64) for place in range(len(STYLE))]
    found = np.column_stack(counts) if len(column) else np.zeros((0, len(STYLE)))
    found[pc.is_null(column).to_numpy(zero_copy_only=False)] = np.nan
    return found


def _number_judges(matches: Matches, people: pa.Array, judges: dict[int, str]) -> tuple[np.ndarray, np.ndarray]:
    """For each entry the place of its judge in `judges` (key → name), which is extended, and the judge's key.

    A judge is identified by all that identifies its work, and by the person who judged.
    """
    codes = people.dictionary_encode()
    keys = []
    for person in [*codes.dictionary.to_pylist(), None]:
        keys.append(_key(_identify_judge(matches, person)))
        if keys[-1] not in judges and (person is not None or codes.null_count):
            judges[keys[-1]] = _distinct_name(person or _judge_name(matches), [*judges.values()])
    numbers = {key: number for number, key in enumerate(judges)}
    place = pc.fill_null(codes.indices, len(keys) - 1).to_numpy()
    return np.array([numbers.get(key, -1) for key in keys])[place], np.array(keys)[place]


def _distinct_name(name: str, others: Sequence[str]) -> str:
    """The name, or with a number if another judge has it."""
    names = (name if n == 1 else f"{name} ({n})" for n in itertools.count(1))
    return next(each for each in names if each not in others)


def _identify_judge(matches: Matches, person: str | None) -> Mapping[str, Any]:
    if person is not None:
        return {"person": person}
    spec: Mapping[str, Any] = matches.manifest["spec"]
    if (origin := file_origin(matches)) is not None:
        return origin
    return (
        {"judge": {name: value for name, value in spec["judge"].items() if name != SAID}} if "judge" in spec else spec
    )


def file_origin(matches: Matches) -> dict[str, Any] | None:
    """The file of matches that others have judged, by its name, and the columns that were chosen in it."""
    made_from = matches.manifest["provenance"]
    source = made_from.get("source")
    return None if source is None else {"source": source, "fields": made_from.get("fields") or {}}


def _judge_name(matches: Matches) -> str:
    """What a judge is called in tables."""
    spec = matches.manifest["spec"].get("judge")
    if (source := matches.manifest["provenance"].get("source")) is not None:
        return str(source)
    if spec is None:
        return "battles"
    return str(spec.get("name") or spec.get("kind") or "judge")


def _identify_examples(matches: Matches, index: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each entry: a key of its example in two integers, a key of its cluster, and one of its content.

    Equal examples of one dataset are distinguished by their order; they are one cluster.
    """
    dataset_id = matches.manifest["spec"].get("dataset")
    if dataset_id is None:
        keys, content = _identify_battle_examples(matches, index)
        return np.column_stack([keys, np.zeros(len(keys), np.int64)]), keys, content
    try:
        dataset = Dataset.stored(matches.store, dataset_id)
    except NotFound as error:
        raise NotFound(f"matches {matches.id}: their dataset is missing: {error}") from None
    indices, halves = _read_digests(matches, dataset_id)
    place = np.searchsorted(indices, index)
    example = np.column_stack([halves[:, 0], count_earlier(halves)])[place]
    cluster = example[:, 0]
    if dataset.roles.cluster is not None:
        name = dataset.roles.cluster
        column = pa.chunked_array([b.column(0) for b in dataset.columns([name])], dataset.schema.field(name).type)
        cluster = cluster_keys(column.combine_chunks()).to_numpy()[place]
    return example, cluster, example[:, 0]


def _identify_battle_examples(matches: Matches, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each entry a key of its example, in matches that others have judged, and a key of what the file says of it.

    They differ without an input: the ids of different files may be those of different examples.
    """
    source = (file_origin(matches) or {}).get("source") or matches.manifest["spec"]
    keys: dict[int, tuple[int, int]] = {}
    for batch in matches.store.read("matches", matches.id, EXAMPLES):
        for row in batch.to_pylist():
            without = row["id"] is None and row["input"] is None  # each row of the file is an example
            content = {"row": row[INDEX]} if without else {"id": row["id"], "input": row["input"]}
            inside = {"battles": source} if row["input"] is None else {}
            keys[row[INDEX]] = _key(content | inside), _key(content)
    known = np.array(sorted(keys), np.int64)
    found = np.array([keys[each] for each in known.tolist()], np.int64).reshape(-1, 2)
    own, content_keys = found[np.searchsorted(known, index)].T
    return own, content_keys


def _read_digests(matches: Matches, dataset: str) -> tuple[np.ndarray, np.ndarray]:
    """`_index_` and digest of each example, the digest as two integers."""
    batches = [*matches.store.read("datasets", dataset, "examples", [INDEX, DIGEST])]
    indices = [batch.column(0).to_numpy() for batch in batches]
    halves = [digest_halves(batch.column(1)) for batch in batches]
    if not batches:
        return np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    return np.concatenate(indices), np.concatenate(halves)


def _key(value: Any) -> int:
    return int.from_bytes(identity.digest(value)[:8], "big", signed=True)


def _count_once(table: MatchTable, lengths: Sequence[int]) -> MatchTable:
    """The table without the judgements that a later set has too."""
    if not len(table):
        return table
    key = table.pair * 2 + table.a_first
    decides = np.full(int(key.max()) + 1, -1, np.int64)
    known = table.known
    borders = np.cumsum([0, *lengths])
    for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        entries = np.arange(start, stop)
        earlier = decides[key[entries]]
        better = known[entries] | (earlier < 0) | ~known[earlier]
        decides[key[entries[better]]] = entries[better]
    return table.take(np.sort(decides[decides >= 0]))


def _warn_about_changed_runs(sets: Sequence[Matches]) -> None:
    """Warns where one label is that of different runs."""
    runs: dict[str, tuple[str, Matches]] = {}
    for each in sets:
        for label, run in zip(each.systems, each.manifest["spec"].get("runs", ()), strict=False):
            first, where = runs.setdefault(label, (run, each))
            if first != run:
                warn(
                    f"system {label!r} is another run in matches {each.id[:12]} than in matches {where.id[:12]}; where "
                    "both have a match, the later one counts; give the runs different labels to rate them separately"
                )
                return


def _warn_about_files(sets: Sequence[Matches], parts: Sequence[_Part]) -> None:
    """Warns where the name of a file may be misleading about who judged.

    All judgements of one file are in another too, and count as those of another judge; or judgements in two files of
    one name differ, and only the later count.
    """
    files = [number for number, each in enumerate(sets) if "schedule" not in each.manifest["spec"]]
    for one, other in itertools.combinations(files, 2):
        judgements = [_read_judgements(parts[number]) for number in (one, other)]
        (votes, keys, judges), (other_votes, other_keys, other_judges) = judgements
        names = f"matches {sets[one].id[:12]} and {sets[other].id[:12]}"
        is_copy = bool(votes and other_votes) and (votes <= other_votes or votes >= other_votes)
        if is_copy and not judges & other_judges:
            warn(
                f"all judgements of one of {names} are in the other too, by another judge, and count twice; if one file"
                " is a copy of the other with more rows, rate that one alone"
            )
        n = sum(keys[key] != other_keys[key] for key in keys.keys() & other_keys.keys())
        if n and file_origin(sets[one]) is not None and file_origin(sets[one]) == file_origin(sets[other]):
            warn(
                f"{plural(n, 'judgement')} in {names} differ, and the later count, since both files have one name; if"
                " they have different judges, add a column judge or rename a file"
            )


def _read_judgements(part: _Part) -> tuple[set[bytes], dict[bytes, int], set[int]]:
    """What a file says: its judgements, the outcome of each by its key, and the keys of its judges."""
    asked = ~(part.equal | part.skipped)
    votes, keys = ([*map(bytes, np.ascontiguousarray(each[asked]))] for each in (part.vote, part.key))
    in_order = [key + bytes([first]) for key, first in zip(keys, part.a_first[asked].tolist(), strict=True)]
    outcomes = dict(zip(in_order, part.vote[asked, -1].tolist(), strict=True))
    return {*votes}, outcomes, {*part.key[asked, 2].tolist()}
