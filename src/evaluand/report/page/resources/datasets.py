"""Datasets: what each column holds, the examples page by page, and how two versions differ.

Tables are read column by column, and examples only where they are seen: a dataset may have millions.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.comparison.drift.drift import measure_drift
from evaluand.core import identity
from evaluand.core.errors import EvaluandError, EvaluandWarning, NotFound
from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.data.dataset import Dataset
from evaluand.data.kind import DATASETS
from evaluand.data.roles import Roles
from evaluand.report.commands import format_command
from evaluand.report.facts.base import Facts, Names
from evaluand.report.histograms import BINS
from evaluand.report.html.cells import cell
from evaluand.report.page.resources.base import Source, read_number, resource
from evaluand.report.page.resources.examples import list_runs
from evaluand.report.page.resources.histograms import draw_histogram
from evaluand.report.text import SHORT_ID
from evaluand.run.kind import RUNS
from evaluand.store.tables import is_json
from evaluand.store.window import WindowedStore

_LONGEST: Final = 300  # characters of a value in a list
_LONGEST_WORD: Final = 80
_MOST_WORDS: Final = 10_000
_MOST_SHOWN: Final = 5
_EXACT: Final = 2**53  # a script has every integer up to here
_MOST_CHANGED: Final = 50
_MOST_OTHERS: Final = 200
_QUICK: Final = 20_000  # rows that drift is measured on while somebody waits


def _list_datasets(source: Source) -> Iterator[Mapping[str, str]]:
    yield from ({"id": entry["id"]} for entry in source.finished(DATASETS))


@resource("dataset/{id}", _list_datasets)
def read_dataset(source: Source, id: str) -> Facts:
    """A dataset: its name, digest, size, source and roles, the runs over it, and the other datasets of the store."""
    made = _read_manifest(source, id)
    names = Names(source.store.refs())
    runs = [entry["id"] for entry in list_runs(source, id)]
    others = [
        {"id": entry["id"], "name": entry["name"], "created": entry["created"]}
        for entry in source.finished(DATASETS)
        if entry["id"] != id
    ]
    name, origin = made.get("name"), made.get("provenance") or {}
    return {
        "id": id,
        "name": name,
        "created": made.get("created"),
        "digest": made["digest"],
        "examples": made["counts"]["examples"],
        "origin": {key: cell(origin[key], _LONGEST) for key in ("source", "where", "adapters") if key in origin},
        "piece": source.piece,
        "runs": [_describe_run(source, names, run) for run in runs[:_MOST_OTHERS]],
        "n_runs": len(runs),
        "others": sorted(others, key=lambda each: each["name"] != name or name is None)[:_MOST_OTHERS],
        "command": format_command("show", id[:SHORT_ID], source.root),
    }


def _describe_run(source: Source, names: Names, id: str) -> Facts:
    made = source.store.manifest(RUNS, id)
    return {"id": id, "names": names.find(RUNS, id, made.get("name")), "created": made.get("created")}


def _read_manifest(source: Source, id: str) -> Mapping[str, Any]:
    if not source.store.is_sealed(DATASETS, id):
        raise NotFound("this dataset is not in this store")
    return source.store.manifest(DATASETS, id)


@resource("dataset-columns/{id}", _list_datasets)
def read_columns(source: Source, id: str) -> list[Facts]:
    """What each column holds, one column after the other."""
    _read_manifest(source, id)
    return source.facts.get(("columns", id), lambda: [*_iterate_columns(source, id)])


def _iterate_columns(source: Source, id: str) -> Iterator[Facts]:
    data = Dataset.stored(source.store, id)
    roles = _find_roles(data.roles)
    for field in data.schema:
        if field.name in (INDEX, DIGEST):
            continue
        batches = (batch.column(0) for batch in source.store.read(DATASETS, id, "examples", [field.name]))
        head = {"name": field.name, "role": roles.get(field.name), "type": _name_type(field)}
        yield head | _summarise(field, batches)


def _find_roles(roles: Roles) -> dict[str, str]:
    """Column → its roles in words."""
    found: dict[str, list[str]] = {}
    for role, columns in asdict(roles).items():
        if isinstance(columns, Mapping):
            for target, column in columns.items():
                found.setdefault(column, []).append(f"{role} {target}")
            continue
        for column in [columns] if isinstance(columns, str) else columns or ():
            found.setdefault(column, []).append(_SINGULAR.get(role, role))
    return {column: ", ".join(names) for column, names in found.items()}


_SINGULAR: Final = {"attributes": "attribute"}


def _name_type(field: pa.Field) -> str:
    return "JSON" if is_json(field) else str(field.type)[:_LONGEST_WORD]


def _summarise(field: pa.Field, batches: Iterable[pa.Array]) -> Facts:
    kind = field.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _summarise_numbers(batches)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind):
        return _summarise_words(batches)
    if pa.types.is_temporal(kind):
        return _summarise_times(batches)
    return _UNKNOWN | {"missing": sum(batch.null_count for batch in batches)}


_UNKNOWN: Final[Facts] = {"distinct": None, "more": False, "low": None, "high": None, "top": [], "histogram": None}


def _summarise_numbers(batches: Iterable[pa.Array]) -> Facts:
    """Numbers in the type that they have: a float is not every integer."""
    missing, parts = 0, []
    for batch in batches:
        missing += batch.null_count
        parts.append(batch.drop_null().to_numpy(zero_copy_only=False))
    values = np.concatenate(parts) if parts else np.zeros(0)
    is_nan = np.isnan(values)
    found = _UNKNOWN | {"missing": missing + int(is_nan.sum())}
    distinct, counts = np.unique(values[~is_nan], return_counts=True)
    if not len(distinct):
        return found
    drawn = draw_histogram(values.astype(np.float64))
    top: list[Any] = []
    if len(distinct) <= BINS:
        order = np.argsort(-counts, kind="stable")[:_MOST_SHOWN]
        top = [[_write_number(distinct[place]), int(counts[place])] for place in order]
    return found | {
        "distinct": len(distinct),
        "low": _send_number(distinct[0]),
        "high": _send_number(distinct[-1]),
        "top": top,
        "histogram": None if drawn is None else drawn["chart"],
    }


def _send_number(value: np.generic) -> Any:
    """A number for the page: as text where a script has no such number, or JSON none."""
    number = value.item()
    is_sent = abs(number) <= _EXACT if isinstance(number, int) else math.isfinite(number)
    return number if is_sent else _write_number(value)


def _write_number(value: np.generic) -> str:
    """A number with all its digits."""
    number = value.item()
    return str(value) if isinstance(number, int) or math.isfinite(number) else identity.name_float(number)


def _summarise_words(batches: Iterable[pa.Array]) -> Facts:
    """The most frequent texts; those of a column that has too many different ones are not counted any more."""
    missing, is_more = 0, False
    counts: Counter[tuple[str, bytes]] = Counter()
    for batch in batches:
        missing += batch.null_count
        if is_more:
            continue
        for pair in pc.value_counts(batch.drop_null()):
            counts[_shorten(str(pair["values"].as_py()))] += pair["counts"].as_py()
            if len(counts) > _MOST_WORDS:
                is_more = True
                break
    frequent = [] if is_more else [[word, n] for (word, _), n in counts.most_common(_MOST_SHOWN) if n > 1]
    distinct = min(len(counts), _MOST_WORDS)
    return _UNKNOWN | {"missing": missing, "distinct": distinct, "more": is_more, "top": frequent}


def _shorten(text: str) -> tuple[str, bytes]:
    """A text or, if it is long, its beginning and its digest: a column may hold texts of any length."""
    if len(text) <= _LONGEST_WORD:
        return text, b""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return f"{text[:_LONGEST_WORD]}…", digest


def _summarise_times(batches: Iterable[pa.Array]) -> Facts:
    missing, ends = 0, []
    for batch in batches:
        missing += batch.null_count
        found = pc.min_max(batch)
        ends += [each for name in ("min", "max") if (each := found[name].as_py()) is not None]
    low, high = (str(min(ends)), str(max(ends))) if ends else (None, None)
    return _UNKNOWN | {"missing": missing, "low": low, "high": high}


def _list_pieces(source: Source) -> Iterator[Mapping[str, str]]:
    for dataset in _list_datasets(source):
        try:
            examples = int(source.store.manifest(DATASETS, dataset["id"])["counts"]["examples"])
        except EvaluandError:  # the dataset itself says why
            continue
        for piece in range(-(-examples // source.piece)):
            yield {**dataset, "piece": str(piece)}


@resource("dataset-examples/{id}/{piece}", _list_pieces)
def read_examples(source: Source, id: str, piece: str) -> list[Facts]:
    """A piece of the examples, with the beginnings of their texts."""
    _read_manifest(source, id)
    start = read_number(piece) * source.piece
    indices = _read_indices(source, id)[start : start + source.piece]
    if start and not len(indices):
        raise NotFound("there is no such piece")
    window: Any = WindowedStore(source.store, indices.tolist())
    return [
        {
            "index": str(each.index),
            "id": each.id,
            "input": cell(each.input, _LONGEST),
            "expected": _show(each.expected),
            "attributes": {name: _show(value) for name, value in each.attributes.items()},
        }
        for each in Dataset.stored(window, id).examples()
    ]


def _show(value: Any) -> Any:
    return None if value is None else cell(value, _LONGEST)


def _read_indices(source: Source, id: str) -> np.ndarray:
    """The `_index_` of all examples, in their order."""
    batches = source.store.read(DATASETS, id, "examples", [INDEX])
    return np.concatenate([np.zeros(0, np.int64), *(batch.column(0).to_numpy() for batch in batches)])


# Two versions


@resource("dataset-difference/{a}/{b}")
def read_difference(source: Source, a: str, b: str) -> Facts:
    """How two datasets differ: examples that only one has or whose content changed, and drift if that is quick."""
    for id in (a, b):
        _read_manifest(source, id)
    return source.contents.get(("difference", a, b), lambda: _compare(source, a, b))


def _compare(source: Source, a: str, b: str) -> Facts:
    sides = [Dataset.stored(source.store, id) for id in (a, b)]
    has_ids = all(side.roles.id is not None for side in sides)
    names = [_read_names(side, has_ids) for side in sides]
    codes = pa.concat_arrays(names).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first, place_a = np.unique(codes[: len(sides[0])], return_index=True)
    second, place_b = np.unique(codes[len(sides[0]) :], return_index=True)
    both, at_a, at_b = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    place_a, place_b = place_a[at_a], place_b[at_b]
    order = np.argsort(place_a, kind="stable")
    place_a, place_b = place_a[order], place_b[order]
    digests = [np.array(list(side.example_digests()), "S16") for side in sides]
    changed = np.flatnonzero(digests[0][place_a] != digests[1][place_b]) if len(both) else np.zeros(0, np.int64)
    shown = changed[:_MOST_CHANGED]
    shared = [name for name in sides[0].roles.columns if name in sides[1].roles.columns]
    rows = [
        _read_rows(source, id, side, places[shown], shared)
        for id, side, places in zip((a, b), sides, (place_a, place_b), strict=True)
    ]
    return {
        "by": "id" if has_ids else "index",
        "only_a": len(first) - len(both),
        "only_b": len(second) - len(both),
        "same": len(both) - len(changed),
        "changed": len(changed),
        "repeated": len(codes) - len(first) - len(second),
        "columns_only_a": [name for name in sides[0].roles.columns if name not in shared],
        "columns_only_b": [name for name in sides[1].roles.columns if name not in shared],
        "first_changed": [
            {"id": names[0][place].as_py(), "a": str(one[INDEX]), "b": str(other[INDEX])}
            | {"columns": _list_changes(one, other)}
            for place, one, other in zip(place_a[shown].tolist(), *rows, strict=True)
        ],
        "drift": _measure_drift(sides),
        "command": format_command("drift", [id[:SHORT_ID] for id in (a, b)], source.root),
    }


def _read_names(data: Dataset, has_ids: bool) -> pa.Array:
    """What identifies each example: its id, or its number."""
    if has_ids:
        return pa.array(data.ids(), pa.large_string())
    return pa.array(np.array(data.indices, np.int64)).cast(pa.large_string())


def _read_rows(source: Source, id: str, data: Dataset, places: np.ndarray, columns: list[str]) -> list[Facts]:
    """The values of some columns at some places, in the order of the places."""
    indices = np.array(data.indices, np.int64)[places].tolist()
    window = WindowedStore(source.store, indices)
    found = {}
    for batch in window.read(DATASETS, id, "examples", [INDEX, *columns]):
        found.update({row[INDEX]: row for row in batch.to_pylist()})
    return [found[index] for index in indices]


def _list_changes(one: Facts, other: Facts) -> list[str]:
    # NaN is not equal to itself, and repr is the same for equal values of one type
    return [name for name in one if name != INDEX and repr(one[name]) != repr(other[name])]


def _measure_drift(sides: list[Dataset]) -> Facts | None:
    """The verdict and the columns that drifted; None if it would take long."""
    if sum(map(len, sides)) > _QUICK:
        return None
    try:
        with warnings.catch_warnings(action="ignore", category=EvaluandWarning):
            found = measure_drift(*sides, labels=["this", "the other"])
    except EvaluandError as error:
        return {"verdict": str(error), "columns": []}
    drifted = set(found.drifted)
    names = ("column", "effect", "value", "low", "high", "p_adjusted")
    columns = [each for each in found.columns if each.column in drifted]
    return {"verdict": found.verdict, "columns": [{name: getattr(each, name) for name in names} for each in columns]}
