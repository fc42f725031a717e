"""Several sets of matches as one table of arrays, in which systems with the same label are one system.

Sets extend each other: what the same judge says about the same pair, on the same example and in the same order, counts
once, and the last set that has an outcome decides. How examples and judges are identified: `match_keys`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.score_shards import cluster_keys
from evaluand.core.errors import SpecError, plural, warn
from evaluand.core.key_columns import INDEX
from evaluand.core.row_numbers import count_earlier, number_rows
from evaluand.data.dataset import Dataset
from evaluand.matches.column_options import column_option
from evaluand.matches.match_keys import (
    ExampleKeys,
    JudgeKeys,
    file_origin,
    read_example_keys,
    read_judge_keys,
)
from evaluand.matches.matches import Matches
from evaluand.matches.ratings.repeats import FileRows, count_repeated, count_shared
from evaluand.metrics.ratings.positions import contradictory_pairs
from evaluand.store.tables import FAILED, SCORED, SKIPPED, STYLE

NOBODY, A, B, BOTH = range(4)
"""Whose response is missing."""

_MISSING: Final = {"a": A, "b": B, "both": BOTH}


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Judgements of pairs, in arrays with an entry for each example, replication, pair, order and judge.

    Attributes:
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
    weight: np.ndarray
    judge: np.ndarray
    style: np.ndarray

    def __len__(self) -> int:
        return len(self.a)


@dataclass(frozen=True, kw_only=True)
class MatchTable(_Columns):
    """The judgements of all sets; see `_Columns` for the further arrays.

    Attributes:
        systems: the labels of the systems.
        judges: the names of the judges.
        example: a number that all matches on an example share.
        pair: a number that both orders of a pair share.
    """

    systems: Sequence[str]
    judges: Sequence[str]
    example: np.ndarray
    pair: np.ndarray

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
        SpecError: files of battles seem to have the same matches, and do not say enough to be certain.
    """
    systems = list(dict.fromkeys(label for each in sets for label in each.systems))
    judges: dict[int, str] = {}
    parts = [_read_set(each, systems, judges) for each in sets]
    _warn_about_changed_runs(sets)
    _refuse_overlap(sets, parts)
    _warn_about_repeats(sets, parts)
    arrays = {each.name: np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(_Part)}
    [pair], [example] = (number_rows([arrays[name]]) for name in ("key", "example"))
    of_dataset = np.repeat(["dataset" in each.manifest["spec"] for each in sets], [len(part) for part in parts])
    for name in ("cluster", "weight"):
        arrays[name] = _share_by_example(arrays[name], example, of_dataset)
    columns = {each.name: arrays[each.name] for each in fields(_Columns)}
    table = MatchTable(systems=systems, judges=[*judges.values()], example=example, pair=pair, **columns)
    return table if len(sets) == 1 else _count_once(table, [len(part) for part in parts])


def _share_by_example(values: np.ndarray, example: np.ndarray, of_dataset: np.ndarray) -> np.ndarray:
    """The values, with those of the first set over a dataset for battles on the same example."""
    if of_dataset.all() or not of_dataset.any():
        return values
    known, first = np.unique(example[of_dataset], return_index=True)
    place = np.minimum(np.searchsorted(known, example), len(known) - 1)
    is_shared = ~of_dataset & (known[place] == example)
    return np.where(is_shared, values[of_dataset][first][place], values)


def _refuse_overlap(sets: Sequence[Matches], parts: Sequence[_Part]) -> None:
    """Refuses files of battles that seem to have the same matches, which would count twice.

    Where a file names no judge or has no inputs, the same id, systems, order and judge may still be another match. If
    all outcomes are equal too, one file is a copy of the other, or of a part; otherwise all count. Warns where nearly
    all are equal, and where files have one name, so that they are one judge, and differ.
    """
    doubtful = [(each, part) for each, part in zip(sets, parts, strict=True) if not part.is_certain.all()]
    if len(doubtful) < 2:
        return
    keys = number_rows([np.column_stack([part.loose_key, part.a_first, part.ordered]) for _, part in doubtful])
    exact = number_rows([part.key for _, part in doubtful])
    for i, j in itertools.combinations(range(len(doubtful)), 2):
        _, ours, theirs = np.intersect1d(keys[i], keys[j], return_indices=True)
        (one, first), (other, second) = doubtful[i], doubtful[j]
        asked = ~(first.equal | first.skipped)[ours]
        ours, theirs = ours[asked], theirs[asked]
        differ = ~np.isclose(first.outcome[ours], second.outcome[theirs], rtol=0.0, atol=1e-9, equal_nan=True)
        is_open = exact[i][ours] != exact[j][theirs]
        names = f"matches {_battles_name(one)} and {_battles_name(other)}"
        if is_open.any() and not differ.any() and not _are_columns_of_one_file(one, other):
            raise SpecError(
                f"{plural(int(is_open.sum()), 'match', 'matches')} would count twice: {names} both have them, with the"
                " same example, systems, order and outcome; rate one file that has each match once, or add columns of"
                " the judge and of the input, by which equal matches are recognised"
            )
        if _agree_closely(first.outcome[ours][is_open], second.outcome[theirs][is_open]):
            common = plural(int(is_open.sum()), "match", "matches")
            warn(
                f"{int((is_open & ~differ).sum()):,} of {common} with the same example, systems and order have the same"
                f" outcome in {names}; all count twice if one file is a changed copy of the other; rate one of both, or"
                " add columns of the judge and of the input, by which equal matches are recognised"
            )
        n_replaced = int((differ & ~is_open).sum())
        if n_replaced and file_origin(one) is not None and file_origin(one) == file_origin(other):
            warn(
                f"{plural(n_replaced, 'judgement')} in {names} differ, and the later count, since both files have one"
                " name; if they have different judges, add a column judge or rename a file"
            )


def _agree_closely(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two lists of outcomes agree more closely than two judges do: Cohen's kappa is at least 0.8."""
    if len(one) < _FEWEST_COMMON:
        return False
    outcomes, codes = np.unique(np.round(np.concatenate([one, other]), 9), return_inverse=True)
    first, second = codes.reshape(2, -1)
    counts = [np.bincount(each, minlength=len(outcomes)) / len(first) for each in (first, second)]
    expected = float(counts[0] @ counts[1])
    return float(np.mean(first == second)) - expected >= _CLOSE * (1 - expected)


_FEWEST_COMMON: Final = 10
_CLOSE: Final = 0.8


def _warn_about_repeats(sets: Sequence[Matches], parts: Sequence[_Part]) -> None:
    """Warns where files whose rows have no ids seem to have the same battles, or the same ones twice."""
    if all(part.is_identified.all() for part in parts):
        return
    of_files = [(each, part) for each, part in zip(sets, parts, strict=True) if "battles" in each.manifest["spec"]]
    keys = number_rows([part.key for _, part in of_files])
    remedy = f"name the column of the example, if there is one ({column_option('example')})"
    for each, part in of_files:
        n = 0 if part.is_identified.any() else count_repeated(_file_rows(part, np.zeros(len(part), np.bool_), True))
        if n:
            have, count = ("has", "counts") if n == 1 else ("have", "count")
            warn(
                f"matches {_battles_name(each)}: {plural(n, 'judgement')} of {len(part):,} {have} the same systems and"
                f" outcomes as others, in the same order, and {count} twice if they are the same; {remedy}"
            )
    for i, j in itertools.combinations(range(len(of_files)), 2):
        (one, first), (other, second) = of_files[i], of_files[j]
        if first.is_identified.all() and second.is_identified.all():
            continue
        has_judges = bool(first.names_judge.all() and second.names_judge.all())
        n = count_shared(
            _file_rows(first, np.isin(keys[i], keys[j]), has_judges),
            _file_rows(second, np.isin(keys[j], keys[i]), has_judges),
        )
        if n:
            nameless = other if first.is_identified.all() else one
            have, count = ("has", "counts") if n == 1 else ("have", "count")
            warn(
                f"{plural(n, 'judgement')} of matches {_battles_name(one)} and {_battles_name(other)} {have} the same"
                f" systems and outcomes in the same order, and {count} twice if they are the same; rate one of both,"
                f" or, as {_battles_name(nameless)} does not say which examples its rows are on, {remedy}"
            )


def _file_rows(part: _Part, excluded: np.ndarray, has_judges: bool) -> FileRows:
    """What the rows of a file say: the systems, the outcome and perhaps the judge."""
    outcome = np.where(np.isnan(part.outcome), -1, np.rint(1e6 * np.nan_to_num(part.outcome)).astype(np.int64))
    return FileRows(
        np.column_stack([part.a, part.b, outcome, part.judge if has_judges else np.zeros_like(part.a)]), excluded
    )


def _are_columns_of_one_file(one: Matches, other: Matches) -> bool:
    """Whether different columns of one file say who won, which are different judges."""
    first, second = (file_origin(each) or {} for each in (one, other))
    return bool(first) and first["source"] == second.get("source") and first["fields"] != second["fields"]


def _battles_name(matches: Matches) -> str:
    """Its file and its name, as far as they are known, and its id."""
    source, id = matches.manifest["provenance"].get("source"), matches.id[:12]
    if source is None:
        return f"{matches.name} ({id})" if matches.name else id
    return f"{source} ({matches.name}, {id})" if matches.name else f"{source} ({id})"


@dataclass(frozen=True, kw_only=True)
class _Part(_Columns):
    """The judgements of one set.

    Attributes:
        example: entries × 2: the key of the example.
        key: a row of integers by which each pair is identified.
        loose_key: the same with the id and input of the example alone, and with 0 for a judge that is not known.
        is_certain: whether `key` says all: another set with the same match has the same key.
        is_identified: whether the example has an id or an input.
        names_judge: whether the judge is known.
    """

    example: np.ndarray
    key: np.ndarray
    loose_key: np.ndarray
    is_certain: np.ndarray
    is_identified: np.ndarray
    names_judge: np.ndarray


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
    judge, judge_keys = _number_judges(matches, column["judge"], judges)
    keys = read_example_keys(matches)
    place = keys.places(column[INDEX].to_numpy())
    about = _read_dataset_columns(matches, keys)
    a, b = np.minimum(one, other), np.maximum(one, other)
    replication = column["replication"].to_numpy().astype(np.int64)
    ordered = np.isnan(outcome) | column["first"].is_valid().to_numpy(zero_copy_only=False)
    played = np.column_stack([replication, a, b])
    judged_by = np.array(judge_keys.keys)[judge_keys.place]
    key = np.column_stack([keys.key[place], judged_by, played])
    names_judge = np.array(judge_keys.is_known)[judge_keys.place]
    anybody = np.where(np.array(judge_keys.is_known), judge_keys.keys, 0)[judge_keys.place]
    if "schedule" in matches.manifest["spec"]:
        repeat = np.zeros(len(key), np.int64)
    else:
        repeat = _number_repeats(key, a_first != flipped, ordered)
    return _Part(
        a=a,
        b=b,
        outcome=np.where(flipped, 1.0 - outcome, outcome),
        a_first=a_first != flipped,
        ordered=ordered,
        equal=column["equal"].to_numpy(zero_copy_only=False),
        skipped=pc.equal(status, SKIPPED).to_numpy(zero_copy_only=False),
        failed=pc.equal(status, FAILED).to_numpy(zero_copy_only=False),
        missing=np.where(flipped, _FLIPPED[missing], missing),
        cluster=about.cluster[place],
        weight=about.weight[place],
        judge=judge,
        style=style,
        example=keys.key[place],
        key=np.column_stack([key, repeat]),
        loose_key=np.column_stack([keys.loose[place], anybody, played, repeat]),
        is_certain=keys.is_certain[place] & names_judge,
        is_identified=keys.is_identified[place],
        names_judge=names_judge,
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


def _number_judges(matches: Matches, people: pa.Array, judges: dict[int, str]) -> tuple[np.ndarray, JudgeKeys]:
    """For each entry the place of its judge in `judges` (key → name), which is extended, and the keys."""
    found = read_judge_keys(matches, people)
    for place in np.unique(found.place).tolist():
        key, person = found.keys[place], found.people[place]
        if key not in judges:
            judges[key] = _distinct_name(person or _judge_name(matches), [*judges.values()])
    numbers = {key: number for number, key in enumerate(judges)}
    return np.array([numbers.get(key, -1) for key in found.keys])[found.place], found


def _distinct_name(name: str, others: Sequence[str]) -> str:
    """The name, or with a number if another judge has it."""
    names = (name if n == 1 else f"{name} ({n})" for n in itertools.count(1))
    return next(each for each in names if each not in others)


def _judge_name(matches: Matches) -> str:
    """What a judge is called in tables."""
    spec = matches.manifest["spec"].get("judge")
    if (source := matches.manifest["provenance"].get("source")) is not None:
        return str(source)
    if spec is None:
        return "battles"
    return str(spec.get("name") or spec.get("kind") or "judge")


class _ExampleColumns(NamedTuple):
    """What a dataset says about its examples: the key of the cluster, and the weight; NaN where there is none."""

    cluster: np.ndarray
    weight: np.ndarray


def _read_dataset_columns(matches: Matches, keys: ExampleKeys) -> _ExampleColumns:
    """The clusters and weights of the examples with these keys. Equal examples are one cluster."""
    weight = np.full(len(keys.index), np.nan)
    dataset_id = matches.manifest["spec"].get("dataset")
    if dataset_id is None:
        return _ExampleColumns(keys.key[:, 0], weight)
    dataset = Dataset.stored(matches.store, dataset_id)
    columns = {}
    for name in (dataset.roles.cluster, dataset.roles.weight):
        if name is not None:
            parts = [batch.column(0) for batch in dataset.columns([name])]
            columns[name] = pa.chunked_array(parts, dataset.schema.field(name).type).combine_chunks()
    cluster = keys.key[:, 0]
    if dataset.roles.cluster is not None:
        cluster = cluster_keys(columns[dataset.roles.cluster]).to_numpy()
    if dataset.roles.weight is not None:
        weight = columns[dataset.roles.weight].cast(pa.float64()).to_numpy(zero_copy_only=False)
    return _ExampleColumns(cluster, weight)


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
