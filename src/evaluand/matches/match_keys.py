"""Keys of examples and judges by which several sets of matches, and exports of them, recognise the same match.

An example of a dataset is identified by its content, so that sets over different datasets meet in the examples they
share. One of battles is identified by its id and input, and without an input by the name of its file too, because
files number their examples alike. A judge without a name is identified by the name of its file, so that a file with
more rows extends what it was. An export of evaluand has the keys in its columns `example_key` and `judge_key`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import NotFound
from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.core.row_numbers import count_earlier, digest_halves
from evaluand.data.dataset import Dataset
from evaluand.data.kind import DATASETS
from evaluand.matches.matches import EXAMPLES, JUDGES, SAID, Matches


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

    def places(self, index: np.ndarray) -> np.ndarray:
        """The place of each `_index_`."""
        return np.searchsorted(self.index, index)


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
    source = (file_origin(matches) or {}).get("source") or matches.manifest["spec"]
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
    own = number_of(identify_judge(spec, file_origin(matches)))
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
    keys.append(own)
    return JudgeKeys(place, keys, [*names, *[None] * (len(keys) - len(names))])


def identify_judge(spec: Mapping[str, Any], origin: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """What identifies the judge of matches with this spec and file, where no person judged."""
    if origin is not None:
        return origin
    if "judge" in spec:
        return {"judge": {name: value for name, value in spec["judge"].items() if name != SAID}}
    return spec
