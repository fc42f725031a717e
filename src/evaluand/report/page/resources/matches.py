"""Matches and ratings: their sections, all pairs of responses as columns, and pieces of pairs with their texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from evaluand.core.errors import EvaluandError, NotFound
from evaluand.matches.kind import MATCHES, RATINGS
from evaluand.matches.matches import Matches
from evaluand.matches.ratings.rating import Ratings
from evaluand.report.commands import DEFAULT_STORE, format_command, format_store
from evaluand.report.contents import read_match_sets
from evaluand.report.facts.base import Facts
from evaluand.report.facts.match_sets import by_title, match_facts
from evaluand.report.html.matches import (
    OUTCOMES,
    STYLE_NAMES,
    Chosen,
    choose_matches,
    list_matches,
    order_pairs,
    read_cases,
)
from evaluand.report.html.packing import pack_columns
from evaluand.report.html.ratings import ratings_section
from evaluand.report.page.resources.base import Source, read_number, resource
from evaluand.report.text import SHORT_ID
from evaluand.store.window import WindowedStore

_LONGEST: Final = 50_000  # characters of an input or a response


class Pairs:
    """The pairs of responses in some sets of matches, contradictory ones first.

    Args:
        sets: the sets, by title.

    Attributes:
        systems: the labels of the systems of all sets.
    """

    def __init__(self, sets: Mapping[str, Matches]) -> None:
        self.sets = sets
        self.systems = list(dict.fromkeys(label for matches in sets.values() for label in matches.systems))
        parts = [
            _columns_of(number, choose_matches(matches, None), self._numbers(matches))
            for number, matches in enumerate(sets.values())
        ]
        self._columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
        self._order = order_pairs(self._columns) if parts else np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._order)

    def columns(self) -> Iterator[tuple[str, np.ndarray]]:
        """The columns by which a page chooses pairs, in the order of the pairs."""
        return ((name, column[self._order]) for name, column in self._columns.items() if name not in _OWN)

    def head(self) -> Facts:
        """The meaning of the numbers in the columns."""
        return {
            "rows": len(self),
            "outcomes": OUTCOMES,
            "style": [name.replace("_", " ") for name in STYLE_NAMES],
            "systems": self.systems,
            "sets": [
                {"title": title, "id": matches.id, "dataset": _find_dataset(matches), "runs": self._runs_of(matches)}
                for title, matches in self.sets.items()
            ],
        }

    def read(self, places: Sequence[int]) -> list[Facts]:
        """The pairs at some places, in this order, with all that was said about them."""
        rows = self._order[np.array(places, np.int64)]
        found: dict[int, Facts] = {}
        for number, matches in enumerate(self.sets.values()):
            own = rows[self._columns["set"][rows] == number]
            if len(own):
                found |= self._read_set(number, matches, np.unique(own))
        return [found[row] for row in rows.tolist()]

    def _read_set(self, number: int, matches: Matches, rows: np.ndarray) -> Iterator[tuple[int, Facts]]:
        """Some rows of a set with their texts, by reading little more than them."""
        columns = {name: column[rows] for name, column in self._columns.items()}
        store: Any = WindowedStore(matches.store, columns["index"])
        window = Matches(store, matches.id)
        near = choose_matches(window, None)
        wanted = {key: place for place, key in enumerate(zip(*(columns[name].tolist() for name in _KEY), strict=True))}
        numbers = self._numbers(matches)
        keys = _renumber(near.keys, numbers).tolist()
        kept = np.array([place for place, key in enumerate(keys) if tuple(key) in wanted], np.int64)
        known = [wanted[tuple(keys[place])] for place in kept.tolist()]
        for case in read_cases(window, near.take(kept, columns["first"][known]), _LONGEST):
            for row in case["rows"]:
                key = case["index"], case["replication"], int(numbers[row["a"]]), int(numbers[row["b"]])
                yield int(rows[wanted[key]]), _describe_pair(number, case, row, key)

    def _numbers(self, matches: Matches) -> np.ndarray:
        """The number that each system of a set has among all."""
        return np.array([self.systems.index(label) for label in matches.systems], np.int64)

    def _runs_of(self, matches: Matches) -> dict[str, str]:
        """The number of a system → the id of its run."""
        runs = zip(matches.systems, matches.runs, strict=False)
        return {str(self.systems.index(label)): run.id for label, run in runs if run is not None}


_KEY: Final = ("index", "replication", "a", "b")
_OWN: Final = ("first",)


def _columns_of(number: int, chosen: Chosen, numbers: np.ndarray) -> dict[str, np.ndarray]:
    index, replication, a, b = _renumber(chosen.keys, numbers).T
    return {
        "set": np.full(len(index), number, np.uint16),
        "index": index,
        "replication": replication.astype(np.int32),
        "a": a.astype(np.uint16),
        "b": b.astype(np.uint16),
        "outcome": chosen.outcome.astype(np.uint8),
        "share": chosen.share.astype(np.float64),
        "gap": chosen.gap.astype(np.float64),
        "first": chosen.first,
    }


def _renumber(keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Keys with the numbers that systems have among all."""
    return np.concatenate([keys[:, :2], numbers[keys[:, 2:]]], axis=1) if len(keys) else keys


def _describe_pair(number: int, case: Facts, row: Facts, key: tuple[int, int, int, int]) -> Facts:
    names = ("outcome", "share", "gap", "said", "n_said")
    return {name: row[name] for name in names} | {
        "set": number,
        "index": str(key[0]),
        "replication": key[1],
        "a": key[2],
        "b": key[3],
        "id": case["id"],
        "input": case["input"],
        "responses": [case["responses"].get(row[side]) for side in "ab"],
        "styles": [case["styles"].get(row[side]) for side in "ab"],
    }


def _find_dataset(matches: Matches) -> str | None:
    """The dataset of the runs that were compared; None for matches from a file, or if the store has lost the runs."""
    run = next((run for run in matches.runs if run is not None), None)
    return None if run is None else run.manifest["spec"]["dataset"]


def _list_names(source: Source) -> Iterator[Mapping[str, str]]:
    """The ids of all matches and ratings, and the names of those experiments that have some."""
    store = source.store
    for kind in _KINDS:
        yield from ({"name": id} for id in store.ids(kind) if store.is_sealed(kind, id))
    refs = [ref for ref in store.refs() if ref.kind in _KINDS and store.is_sealed(ref.kind, ref.id)]
    yield from ({"name": ref.name} for ref in refs)
    yield from ({"name": ref.name.rpartition("/")[0]} for ref in refs if "/" in ref.name)


@resource("matches/{name}", _list_names)
def read_matches(source: Source, name: str) -> Facts:
    """Matches and ratings: what was compared and by whom, win rates and ratings, as markup.

    Args:
        name: of matches, of ratings, or of results whose runs were compared.
    """
    title, sets, ratings = _read_sets(source, name)
    facts = match_facts(sets, ratings)
    for each in facts["unrated"]:
        each["command"] = format_command("rate", each["id"][:SHORT_ID], source.root)
    return {
        "title": title,
        "kind": "Ratings" if ratings else "Matches",
        "ratings": ratings_section(facts) if facts["ratings"] or facts["unrated"] else "",
        "matches": list_matches(facts["matches"]) if sets else "",
        "sets": _join_ids(sets),
    }


def _read_sets(source: Source, name: str) -> tuple[str, dict[str, Matches], dict[str, Ratings]]:
    """What a name refers to now."""
    store = source.store
    refs = tuple(sorted(ref for ref in store.refs() if f"{ref.name}/".startswith(f"{name}/")))
    known = tuple((entry["id"], entry["status"]) for kind in _KINDS for entry in store.catalog.entries(kind))
    return source.contents.get(("match sets", name, refs, known), lambda: read_match_sets(store, name))


_KINDS: Final = (MATCHES, RATINGS)


def find_pairs(source: Source, sets: str) -> Pairs:
    """The pairs of some sets of matches.

    Args:
        sets: their ids with + between them.
    """
    return source.columns.get(("pairs", sets), lambda: Pairs(_find_sets(source, sets.split("+"))))


def _find_sets(source: Source, ids: Sequence[str]) -> dict[str, Matches]:
    if not all(source.store.is_sealed(MATCHES, id) for id in ids):
        raise NotFound("these matches are not finished, or not in this store")
    return by_title(source.store, [Matches(source.store, id) for id in ids])


def _list_sets(source: Source) -> Iterator[Mapping[str, str]]:
    for each in _list_names(source):
        with suppress(EvaluandError):  # `matches` says why
            _, sets, _ = _read_sets(source, each["name"])
            if sets:
                yield {"sets": _join_ids(sets)}


def _join_ids(sets: Mapping[str, Matches]) -> str:
    return "+".join(matches.id for matches in sets.values())


@resource("pair-columns/{sets}", _list_sets)
def read_pair_columns(source: Source, sets: str) -> bytes:
    """All pairs as columns, in the form of the columns of rows."""
    pairs = find_pairs(source, sets)
    store = format_store(source.root, DEFAULT_STORE)
    return pack_columns(pairs.head() | {"piece": source.piece, "store": store}, pairs.columns())


def _list_pieces(source: Source) -> Iterator[Mapping[str, str]]:
    for each in _list_sets(source):
        with suppress(EvaluandError):  # the columns say why
            n = len(find_pairs(source, each["sets"]))
            yield from ({**each, "piece": str(piece)} for piece in range(-(-n // source.piece)))


@resource("pairs/{sets}/{piece}", _list_pieces)
def read_pairs(source: Source, sets: str, piece: str) -> list[Facts]:
    """A piece of the pairs, with their texts."""
    pairs = find_pairs(source, sets)
    start = read_number(piece) * source.piece
    if start and start >= len(pairs):
        raise NotFound("there is no such piece")
    return pairs.read(range(start, min(start + source.piece, len(pairs))))


@resource("pairs-at/{sets}")
def read_pairs_at(source: Source, sets: str, query: Mapping[str, str]) -> list[Facts]:
    """The pairs at some places, with their texts; at most as many as a piece has."""
    pairs = find_pairs(source, sets)
    places = [read_number(part) for part in query.get("places", "").split(",")[: source.piece]]
    if any(place >= len(pairs) for place in places):
        raise NotFound(f"there are {len(pairs)} pairs")
    return pairs.read(places)
