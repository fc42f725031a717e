"""Several sets of matches as one table of arrays, in which systems with the same label are one system.

Sets extend each other: what the same judge says about the same pair, on the same example and in the same order, counts
once, and the last set that has an outcome decides. How examples and judges are identified: `match_keys`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.score_shards import cluster_keys
from evaluand.core.errors import plural, warn
from evaluand.core.key_columns import INDEX
from evaluand.core.row_numbers import count_earlier, number_rows
from evaluand.data.dataset import Dataset
from evaluand.matches.match_keys import (
    ExampleKeys,
    JudgeKeys,
    file_origin,
    number_of,
    read_example_keys,
    read_judge_keys,
)
from evaluand.matches.matches import Matches
from evaluand.metrics.ratings.positions import contradictory_pairs
from evaluand.store.tables import FAILED, SCORED, SKIPPED

NOBODY, A, B, BOTH = range(4)  # whose response is missing


@dataclass(frozen=True, kw_only=True)
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
        weight: of the example; NaN where its dataset declares none.
        judge: a position in the names of the judges.
        style: entries × sides × the counts of `STYLE`; NaN where unknown.
        example: a number that all matches on an example share.
        pair: a number that both orders of a pair share.
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
    weight: np.ndarray
    judge: np.ndarray
    style: np.ndarray
    example: np.ndarray
    pair: np.ndarray

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
        return np.isin(self.pair, contradictory_pairs(self.outcome[known], self.a_first[known], self.pair[known]))


def gather(sets: Sequence[Matches]) -> MatchTable:
    """The table of all matches of some sets.

    Raises:
        NotFound: a dataset is not in the store.
    """
    systems = list(dict.fromkeys(label for each in sets for label in each.systems))
    judges: dict[int, str] = {}
    parts = [_read_set(each, systems, judges) for each in sets]
    _warn_about_changed_runs(sets)
    _warn_about_changed_judgements(sets, parts)
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    [arrays["pair"]], [arrays["example"]] = (number_rows([arrays[name]]) for name in ("pair", "example"))
    of_dataset = np.repeat(["dataset" in each.manifest["spec"] for each in sets], [len(part["a"]) for part in parts])
    for name in ("cluster", "weight"):
        arrays[name] = _share_by_example(arrays[name], arrays["example"], of_dataset)
    table = MatchTable(systems=systems, judges=[*judges.values()], **arrays)
    return table if len(sets) == 1 else _count_once(table, [len(part["a"]) for part in parts])


def _share_by_example(values: np.ndarray, example: np.ndarray, of_dataset: np.ndarray) -> np.ndarray:
    """The values, with those of the first set over a dataset for battles on the same example."""
    if of_dataset.all() or not of_dataset.any():
        return values
    known, first = np.unique(example[of_dataset], return_index=True)
    place = np.minimum(np.searchsorted(known, example), len(known) - 1)
    is_shared = ~of_dataset & (known[place] == example)
    return np.where(is_shared, values[of_dataset][first][place], values)


_COLUMNS: Final = [INDEX, "replication", "a", "b", "order", "status", "missing", "outcome", "first", "equal", "judge"]


def _read_set(matches: Matches, systems: Sequence[str], judges: dict[int, str]) -> dict[str, np.ndarray]:
    """The arrays of a `MatchTable`; `example` and `pair` are still rows of integers by which these are identified."""
    table = matches.table([*_COLUMNS, "style_a", "style_b"])
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    numbers = np.array([systems.index(label) for label in matches.systems])
    one, other = numbers[column["a"].to_numpy()], numbers[column["b"].to_numpy()]
    flipped, a, b = one > other, np.minimum(one, other), np.maximum(one, other)
    status, outcome = column["status"], column["outcome"].to_numpy(zero_copy_only=False).astype(np.float64)
    outcome[~pc.equal(status, SCORED).to_numpy(zero_copy_only=False)] = np.nan
    a_first = pc.equal(column["order"], "ab").to_numpy(zero_copy_only=False) != flipped
    ordered = np.isnan(outcome) | column["first"].is_valid().to_numpy(zero_copy_only=False)
    sides = pc.index_in(column["missing"], pa.array(["a", "b", "both"]))
    missing = 1 + pc.fill_null(sides, -1).to_numpy()
    style = np.stack([_read_style(column[f"style_{side}"]) for side in "ab"], axis=1)
    style[flipped] = style[flipped, ::-1]
    judge, judge_keys = _number_judges(matches, column["judge"], judges)
    keys = read_example_keys(matches)
    place = keys.places(column[INDEX].to_numpy())
    cluster, weight = _read_dataset_columns(matches, keys)
    judged_by = np.array(judge_keys.keys)[judge_keys.place]
    pair = np.column_stack([keys.key[place], judged_by, column["replication"].to_numpy().astype(np.int64), a, b])
    is_planned = "schedule" in matches.manifest["spec"]
    repeat = np.zeros(len(pair), np.int64) if is_planned else _number_repeats(pair, a_first, ordered)
    return {
        "a": a,
        "b": b,
        "outcome": np.where(flipped, 1.0 - outcome, outcome),
        "a_first": a_first,
        "ordered": ordered,
        "equal": column["equal"].to_numpy(zero_copy_only=False),
        "skipped": pc.equal(status, SKIPPED).to_numpy(zero_copy_only=False),
        "failed": pc.equal(status, FAILED).to_numpy(zero_copy_only=False),
        "missing": np.where(flipped, _FLIPPED[missing], missing),
        "cluster": cluster[place],
        "weight": weight[place],
        "judge": judge,
        "style": style,
        "example": keys.key[place],
        "pair": np.column_stack([pair, repeat]),
    }


def _number_repeats(key: np.ndarray, a_first: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """A number for each entry: several judgements of one judge, on one example and in one order, are several matches.

    The first in one order belongs to the first in the other; one whose order is unknown is a separate match.
    """
    repeat = count_earlier(np.column_stack([key, np.where(ordered, a_first, 2)]))
    return np.where(ordered, repeat, -1 - repeat)


_FLIPPED: Final = np.array([NOBODY, B, A, BOTH])


def _read_style(column: pa.StructArray) -> np.ndarray:
    """Entries × counts; NaN where there is none."""
    return np.column_stack([count.to_numpy(zero_copy_only=False).astype(np.float64) for count in column.flatten()])


def _number_judges(matches: Matches, people: pa.Array, judges: dict[int, str]) -> tuple[np.ndarray, JudgeKeys]:
    """For each entry the place of its judge in `judges` (key → name), which is extended, and the keys."""
    found = read_judge_keys(matches, people)
    for place in np.unique(found.place).tolist():
        key, person = found.keys[place], found.people[place]
        if key not in judges:
            name = person or _judge_name(matches)
            names = (name if n == 1 else f"{name} ({n})" for n in itertools.count(1))
            judges[key] = next(each for each in names if each not in judges.values())
    numbers = {key: number for number, key in enumerate(judges)}
    return np.array([numbers.get(key, -1) for key in found.keys])[found.place], found


def _judge_name(matches: Matches) -> str:
    """What a judge is called in tables."""
    spec = matches.manifest["spec"].get("judge")
    if (source := matches.manifest["provenance"].get("source")) is not None:
        return str(source)
    if spec is None:
        return "battles"
    return str(spec.get("name") or spec.get("kind") or "judge")


def _read_dataset_columns(matches: Matches, keys: ExampleKeys) -> tuple[np.ndarray, np.ndarray]:
    """The cluster and weight of each example, as far as its dataset declares them. Equal examples are one cluster."""
    cluster, weight = keys.key[:, 0], np.full(len(keys.index), np.nan)
    dataset_id = matches.manifest["spec"].get("dataset")
    if dataset_id is None:
        return cluster, weight
    dataset = Dataset.stored(matches.store, dataset_id)
    if (name := dataset.roles.cluster) is not None:
        cluster = cluster_keys(_read_column(dataset, name)).to_numpy()
    if (name := dataset.roles.weight) is not None:
        weight = _read_column(dataset, name).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return cluster, weight


def _read_column(dataset: Dataset, name: str) -> pa.Array:
    parts = [batch.column(0) for batch in dataset.columns([name])]
    return pa.chunked_array(parts, dataset.schema.field(name).type).combine_chunks()


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


def _warn_about_changed_judgements(sets: Sequence[Matches], parts: Sequence[dict[str, np.ndarray]]) -> None:
    """Warns where files with one name, and so with one judge, say something else about the same matches."""
    for (one, first), (other, second) in itertools.combinations(zip(sets, parts, strict=True), 2):
        origin = file_origin(one)
        if origin is None or origin != file_origin(other):
            continue
        keys = [np.column_stack([each["pair"], each["a_first"], each["ordered"]]) for each in (first, second)]
        numbers, other_numbers = number_rows(keys)
        _, ours, theirs = np.intersect1d(numbers, other_numbers, return_indices=True)
        outcomes = first["outcome"][ours], second["outcome"][theirs]
        differ = ~np.isclose(*outcomes, rtol=0.0, atol=1e-9, equal_nan=True)
        is_asked = ~(first["equal"] | first["skipped"])[ours] & (first["pair"][ours, _JUDGE] == number_of(origin))
        if n := int((differ & is_asked).sum()):
            warn(
                f"{plural(n, 'judgement')} in matches {_battles_name(one)} and {_battles_name(other)} differ, and the"
                " later count, since both files have one name; if they have different judges, add a column judge or"
                " rename a file"
            )


_JUDGE: Final = 2  # its place in the key of a pair


def _battles_name(matches: Matches) -> str:
    """Its file and its name, as far as it is known, and its id."""
    source, id = matches.manifest["provenance"]["source"], matches.id[:12]
    return f"{source} ({matches.name}, {id})" if matches.name else f"{source} ({id})"
