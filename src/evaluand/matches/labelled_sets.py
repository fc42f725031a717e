"""Who judged matches, and what several judges said about the same pairs of responses.

From that follow labelled sets of a judge and of people, how often judges agree, and whether a judge was measured.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, NotFound, SpecError, kind_of
from evaluand.core.key_columns import INDEX
from evaluand.core.selector import Selector
from evaluand.data.source import list_columns, read_rows
from evaluand.data.sources import open_data, open_file
from evaluand.evaluation.comparison_scorers import ComparisonScorer
from evaluand.evaluation.scorer import class_of
from evaluand.evaluation.standing import ScorerStanding
from evaluand.judges.cards.from_evaluation import answering_model, model_of, read_seconds
from evaluand.judges.cards.labelled_set import Item, JudgeIdentity, Judgement, Label, LabelledSet
from evaluand.judges.cards.standing import find_standing
from evaluand.matches.battle_rows import check_places, column_option, read_winner
from evaluand.matches.judging import SPANS_TABLE
from evaluand.matches.kind import judge_name
from evaluand.matches.matches import BY_PEOPLE, Matches, file_origin, read_example_ids, read_example_keys
from evaluand.metrics.judging.estimate import measure_kappa
from evaluand.store.store import find_sealed
from evaluand.store.tables import SKIPPED


def read_labelled_matches(matches: Matches, labels: Matches | None = None) -> LabelledSet:
    """The pairs that people have judged, with the judgements of a judge.

    Systems are matched by label, and examples by content. Equal responses, which no judge sees, do not count.

    Args:
        matches: those of the judge.
        labels: those of people; by default the newest matches by people of the same runs.

    Raises:
        NotFound: there are no matches by people.
        SpecError: the sets have no pair in common.
    """
    if is_by_people(matches):
        raise SpecError(f"{matches!r} were judged by people; name those of the judge")
    found, runs = labels, {*matches.manifest["spec"].get("runs", ())}
    for manifest in find_sealed(matches.store, "matches", *runs) if labels is None else ():
        other = Matches(matches.store, manifest["id"])
        if is_by_people(other) and len(runs & {*manifest["spec"].get("runs", ())}) > 1:
            found = other
            break
    if found is None:
        raise NotFound("people have not judged pairs of these runs; let them judge with `evaluand label --pairs`")
    said, given = _read_pairs(matches), _read_pairs(found)
    people = sorted({by for judged in given.values() for by in judged.by}, key=lambda by: (by is None, by or ""))
    items = [_item(pair, said[pair], given[pair], people) for pair in given if pair in said]
    if not items:
        raise SpecError(f"{matches!r} and {found!r} have no pair in common")
    usage = [each for judged in said.values() for each in judged.usage]
    seconds = read_seconds(usage) or [*_read_spans(matches)]
    made_from = [("matches", matches.id), ("matches", found.id)]
    judge = judge_of_matches(matches)
    judge = judge._replace(model=answering_model(usage) or judge.model)
    return LabelledSet(items, judge, people, True, usage, seconds, made_from)


def judge_of_matches(matches: Matches) -> JudgeIdentity:
    """Which judge made matches.

    Raises:
        SpecError: the matches do not say.
    """
    spec = matches.manifest["spec"].get("judge")
    if spec is None:
        raise SpecError(f"{matches!r} were judged elsewhere, by nobody knows whom; measure the judge from its file")
    stored = (matches.manifest["provenance"].get("parts") or {}).get("judge") or {}
    parts = {part: str(value) for part, value in stored.items()}
    return JudgeIdentity(
        judge_name(matches.manifest), spec, parts, model_of(spec), bool(matches.manifest.get("pinned", True))
    )


def is_by_people(matches: Matches) -> bool:
    """Whether people have judged matches."""
    spec = matches.manifest["spec"]
    judge = spec.get("judge", {})
    return judge.get("kind") == "people" or bool(spec.get(BY_PEOPLE) or judge.get(BY_PEOPLE))


class _Pair(NamedTuple):
    """Two systems, in the order of their labels, on an example."""

    example: tuple[int, ...]
    replication: int
    a: str
    b: str


def _read_judged(matches: Matches, columns: Sequence[str]) -> Iterator[tuple[_Pair, Sequence[str], dict[str, Any]]]:
    """Each match of responses that differ: its pair, the sides of the pair's systems, and its cells.

    The cells are the columns, the id of the example, and the share of the win that the first system of the pair gets.
    """
    keys, ids = read_example_keys(matches), read_example_ids(matches)
    examples = dict(zip(keys.index.tolist(), map(tuple, keys.shared.tolist()), strict=True))
    for batch in matches.batches([INDEX, "replication", "a", "b", "equal", "outcome", "judge", *columns]):
        for row in batch.to_pylist():
            if not row["equal"]:
                sides = sorted("ab", key=lambda side: matches.systems[row[side]])
                if row["outcome"] is not None and sides[0] == "b":
                    row["outcome"] = 1 - row["outcome"]
                systems = (matches.systems[row[side]] for side in sides)
                yield (
                    _Pair(examples[row[INDEX]], row["replication"], *systems),
                    sides,
                    row | {"id": ids.get(row[INDEX])},
                )


class _Judged:
    """The judgements on a pair, as shares of the win that `a` gets."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.by: dict[str | None, list[float]] = {}
        self.orders: dict[str, list[Judgement]] = {"ab": [], "ba": []}
        self.usage: list[Mapping[str, Any]] = []
        self.lengths: tuple[int, ...] = ()
        self.models: tuple[str | None, ...] = ()


def _read_pairs(matches: Matches) -> dict[_Pair, _Judged]:
    models: list[str | None] = [None] * len(matches.systems)
    for number, run in enumerate(matches.runs):
        if run is not None:  # the model that wrote the responses of a run, if its usage names exactly one
            usages = (usage for batch in run.batches(["usage"]) for usage in batch.column(0).to_pylist())
            models[number] = answering_model(usages)
    pairs: dict[_Pair, _Judged] = {}
    for pair, sides, row in _read_judged(matches, ("order", "status", "reason", "explanation", *_STYLES, "usage")):
        if row["status"] == SKIPPED:
            continue
        judged, outcome = pairs.setdefault(pair, _Judged(str(row["id"] or row[INDEX]))), row["outcome"]
        reason = None if outcome is not None else f"{row['status']}: {row['reason']}"
        order = row["order"] if sides[0] == "a" else row["order"][::-1]
        judged.orders[order].append(Judgement(outcome, reason, row["explanation"]))
        if outcome is not None:
            judged.by.setdefault(row["judge"], []).append(outcome)
        styles = [row[f"style_{side}"] for side in sides]
        judged.lengths = tuple(style["characters"] for style in styles) if all(styles) else ()
        own = tuple(models[row[side]] for side in sides)
        judged.models = own if any(own) else ()
        judged.usage += [orjson.loads(row["usage"])] if row["usage"] else []
    return pairs


_STYLES: Final = ("style_a", "style_b")


def _item(pair: _Pair, said: _Judged, given: _Judged, people: list[str | None]) -> Item:
    labels = [0.5 + 0.5 * _mean_winner(given.by[person]) if person in given.by else None for person in people]
    digest = identity.digest([list(pair.example), pair.replication, pair.a, pair.b]).hex()
    example = identity.digest(list(pair.example)).hex()
    judgements, swapped = (tuple(said.orders[order]) for order in ("ab", "ba"))
    texts = {"response_a": pair.a, "response_b": pair.b}
    return Item(example, digest, said.id, tuple(labels), judgements, swapped, said.lengths, said.models, texts)


def _read_spans(matches: Matches) -> Iterator[float]:
    """How long each judgement took, as far as it was traced."""
    if SPANS_TABLE in matches.manifest["tables"]:
        for batch in matches.store.read("matches", matches.id, SPANS_TABLE, ["parent", "duration"]):
            for row in batch.to_pylist():
                if row["parent"] is None and row["duration"] is not None:
                    yield row["duration"].total_seconds()


class Disputed(NamedTuple):
    """A pair on which two judges do not agree.

    Attributes:
        example: `_index_` of the example in the first set of matches that has it; `id` is its id there.
        replication: of the pair.
        a, b: the labels of the systems.
        one, other: who wins according to each judge: `a`, `b` or `tie`.
    """

    example: int
    id: str | None
    replication: int
    a: str
    b: str
    one: str
    other: str


class Agreement(NamedTuple):
    """How often two judges agree on pairs that both have judged.

    Attributes:
        one, other: the judges.
        pairs: how many pairs both have judged.
        agreed: on how many they name the same winner, or both a tie.
        kappa: Cohen's kappa of the winners, None where chance agrees everywhere or without pairs.
        low: the lower end of its 95 % interval by example, None below two examples; `high` the upper end.
        disputed: the pairs on which they do not agree.
    """

    one: str
    other: str
    pairs: int
    agreed: int
    kappa: float | None
    low: float | None
    high: float | None
    disputed: list[Disputed]


def agreement(sets: Sequence[Matches]) -> list[Agreement]:
    """How often any two judges agree, by pair: with both orders, their mean decides.

    A judge is a person, or all matches of a set without one; people without a name are left out. Systems are those of
    the same label. Examples are those of the same content, and in battles those of the same id and input, so that sets
    over different datasets or from different files meet in the examples that they share.

    Args:
        sets: matches, of any datasets or files.

    Raises:
        NotFound: a dataset is not in the store.
    """
    said: dict[str, dict[_Pair, list[float]]] = {}
    places: dict[tuple[int, ...], tuple[int, str | None]] = {}
    for number, matches in enumerate(sets):
        spec = matches.manifest["spec"].get("judge", {})
        is_people = spec.get("kind") == "people"
        unnamed = str(matches.name or spec.get("kind") or f"set {number + 1}")
        for pair, _, row in _read_judged(matches, ()):
            if row["outcome"] is not None and not (is_people and row["judge"] is None):
                places.setdefault(pair.example, (row[INDEX], row["id"]))
                said.setdefault(row["judge"] or unnamed, {}).setdefault(pair, []).append(row["outcome"])
    found = []
    for one, other in itertools.combinations(said, 2):
        common = [pair for pair in said[one] if pair in said[other]]
        winners = np.array([[_mean_winner(said[judge][pair]) for pair in common] for judge in (one, other)], np.int64)
        disputed = [
            Disputed(*places[pair.example], pair.replication, pair.a, pair.b, _WORDS[first], _WORDS[second])
            for pair, first, second in zip(common, *winners.tolist(), strict=True)
            if first != second
        ]
        examples = [pair.example for pair in common]
        kappa, low, high = measure_kappa(winners + 1, ["b", "tie", "a"], examples) if common else (None, None, None)
        found.append(Agreement(one, other, len(common), len(common) - len(disputed), kappa, low, high, disputed))
    return found


def _mean_winner(outcomes: Sequence[float]) -> int:
    """Who wins by the mean of some shares: 1 for the first system, 0 for a tie, -1 for the second."""
    total = sum(outcome - 0.5 for outcome in outcomes)
    return (total > 0) - (total < 0)


_WORDS: Final = {1: "a", 0: "tie", -1: "b"}


def standings_of(matches: Matches) -> list[tuple[JudgeIdentity, ScorerStanding]]:
    """The judges of matches, each with whether it was measured, as its class says; none for people and functions.

    The judgements of other tools count as those of a judge, unless people are known to have made them. A file that
    names no judge is one judge with the name of the file.
    """
    if is_by_people(matches):
        return []
    spec = matches.manifest["spec"].get("judge")
    if spec is None or spec.get("kind") == RECORDED:
        unnamed = Path(str((file_origin(matches) or {}).get("source") or "")).stem or "unnamed"
        named = {name for batch in matches.batches(["judge"]) for name in pc.unique(batch.column(0)).to_pylist()}
        return [
            (judge, find_standing(matches.store, judge, f"FILE --judge {name}")._replace(otherwise=_BY_PEOPLE))
            for name in sorted(unnamed if name is None else name for name in named)
            if not _PEOPLE_ELSEWHERE.fullmatch(name)
            for judge in [JudgeIdentity(name, {"kind": RECORDED, "name": name, "version": None})]
        ]
    if not matches.manifest["provenance"].get("judges"):
        return []
    kind = class_of("comparison_scorers", spec)
    kind = kind if issubclass(kind, ComparisonScorer) else ComparisonScorer
    judge = judge_of_matches(matches)
    return [(judge, standing) for standing in kind.standings(matches.store, [judge], matches.name or matches.id[:12])]


RECORDED: Final = "recorded"
_PEOPLE_ELSEWHERE: Final = re.compile(r"(arena_user|expert|author)_\d+")  # in Chatbot Arena, and in MT-Bench

_BY_PEOPLE: Final = "; if people have judged, read the file with --by-people (in Python and experiments: by_people)"


_FIELDS: Final = (
    *("label", "judgement", "swapped", "explanation", "swapped_explanation", "id", "repeat", "cluster", "input"),
    *("response", "response_a", "response_b", "model", "model_a", "model_b", "seconds", "cost", "currency"),
)
COLUMNS: Final[Mapping[str, Sequence[str]]] = {field: (field,) for field in _FIELDS} | {
    "id": ("id", "example_id", "question_id"),
    "cluster": (),
    "input": ("input", "instruction", "prompt", "question"),
    "response": ("response", "output"),
    "response_a": ("response_a", "output_1"),
    "response_b": ("response_b", "output_2"),
}
"""The fields of a row, and the columns in which they are looked for, the first that the file has."""

SEVERAL: Final = ("label", "judgement", "swapped")  # may have columns of several people, or of repeated judgements
_OF_PAIRS: Final = ("swapped", "response_a", "response_b", "model_a", "model_b")
_NO_JUDGEMENT: Final = "the file has no judgement"


def read_labelled_file(
    data: Any,
    judge: str,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    version: str | None = None,
    judge_model: str | None = None,
    by_place: bool = False,
    format: str | None = None,
    delimiter: str | None = None,
) -> LabelledSet:
    """The labelled answers of a file with what a judge said about them.

    Args:
        data: a file, several as a folder or pattern, or rows, as `Dataset.from_file` and `open_data` read them.
        judge: its name.
        columns: field → column, or the path of a value in a row, such as `results[0].winner`; the fields are those of
            `COLUMNS`, and those of `SEVERAL` may have several columns.
        version: of the judge: a text that changes whenever its rubric, model or parameters change.
        judge_model: the model that judges, to find answers that it wrote itself.
        by_place: judgements of swapped pairs name the position of the winner, not the response.
        format: as in `open_file`; `delimiter` as well.

    Raises:
        DataError: rows are invalid; reports every fault with file, row and column.
        SpecError: no column has the labels or the judgements.

    Example:
        >>> rows = [{"label": "good", "judgement": "good"}, {"label": "bad", "judgement": "good"}]
        >>> [item.labels for item in read_labelled_file(rows, "mine").items]
        [('good',), ('bad',)]
    """
    is_path = isinstance(data, str | PathLike)
    source = open_file(fspath(data), format, delimiter) if is_path else open_data(data, "rows")
    places = _choose_columns(source.schema.names, columns or {})
    rows = _Rows(places, by_place)
    for row, where in read_rows(source):
        rows.add(row, where)
    if rows.faults:
        raise DataError(rows.faults)
    if not rows.items:
        raise DataError(f"{source.name}: no row has a label")
    spec = {"kind": "recorded", "name": judge, "version": version}
    made_by = JudgeIdentity(judge, spec, {"version": version} if version else {}, judge_model)
    people = places["label"] if len(places["label"]) > 1 else [None]
    name = Path(source.name).name if is_path else None
    return LabelledSet([*rows.items.values()], made_by, people, rows.is_pairs, rows.usage, rows.seconds, source=name)


def _choose_columns(names: Sequence[str], chosen: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    """The paths of each field: those that were chosen, else the known columns that a file has.

    Raises:
        SpecError: a field or column is unknown, or no column has labels or judgements.
    """
    given = {field: [place] if isinstance(place, str) else list(place) for field, place in chosen.items()}
    faults = check_places(given, [*COLUMNS], names)
    for field, places in given.items():
        if len(places) > 1 and field not in SEVERAL:
            faults.append(f"{field} has {len(places)} columns; it can have one")
    if faults:
        raise SpecError("\n".join(faults))
    found = {field: [name for name in known if name in names][:1] for field, known in COLUMNS.items()} | given
    for field, what in (("label", "the labels of people"), ("judgement", "what the judge said")):
        if not found[field]:
            known = f"; {list_columns(names)}" if names else ": there are no columns"
            raise SpecError(f"no column has {what}; name it ({column_option(field)}){known}")
    return found


class _Rows:
    """The rows of a file, one after the other."""

    def __init__(self, places: Mapping[str, Sequence[str]], by_place: bool) -> None:
        self.places, self.by_place = places, by_place
        self.is_pairs = any(places[field] for field in _OF_PAIRS)
        self.items: dict[str, Item] = {}
        self.usage: list[Mapping[str, Any]] = []
        self.seconds: list[float] = []
        self.faults: list[Fault] = []
        self.number = 0
        self.repeats: set[tuple[str, str]] = set()
        self.unknown: dict[str, int] = {}

    def add(self, row: Mapping[str, Any], where: str) -> None:
        """Reads a row; one without a label is left out."""
        self.number += 1
        labels = tuple(self._label(row, place, where) for place in self.places["label"])
        if all(label is None for label in labels):
            return
        item = self._item(row, where, labels)
        item = item._replace(key=self._identify(item, row, where))
        known = self.items.get(item.key)
        if known is not None:
            if known.labels != item.labels:
                self.faults.append(Fault(where, "has other labels than an earlier row with the same answer"))
            both = {name: getattr(known, name) + getattr(item, name) for name in ("judgements", "swapped")}
            item = known._replace(**both)
        self.items[item.key] = item
        for field in ("seconds", "cost"):
            value = self._get(row, field)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                self.faults.append(Fault(f"{where}:{field}", f"is {kind_of(value)}; give a number, 0 or more"))
            elif field == "seconds":
                self.seconds.append(float(value))
            else:
                self.usage.append({"cost": float(value), "currency": self._get(row, "currency")})

    def _item(self, row: Mapping[str, Any], where: str, labels: tuple[Label | None, ...]) -> Item:
        id, given = self._get(row, "id"), self._get(row, "input")
        fields = ("response_a", "response_b") if self.is_pairs else ("response",)
        responses = [self._get(row, field) for field in fields]
        models = [self._get(row, field) for field in (("model_a", "model_b") if self.is_pairs else ("model",))]
        own = id if id is not None else given if given is not None else self.number
        group = self._get(row, "cluster")
        return Item(
            identity.digest(["cluster", group] if group is not None else ["example", own]).hex(),
            identity.digest([own, *responses, *(models if any(models) else ())]).hex(),
            str(own) if id is not None else f"row {self.number}",
            labels,
            tuple(self._judgement(row, place, "explanation", where) for place in self.places["judgement"]),
            tuple(self._judgement(row, place, "swapped_explanation", where) for place in self.places["swapped"]),
            tuple(map(len, responses)) if all(isinstance(each, str) for each in responses) else (),
            tuple(None if each is None else str(each) for each in models) if any(models) else (),
            {"input": given} | dict(zip(fields, responses, strict=True)),
        )

    def _identify(self, item: Item, row: Mapping[str, Any], where: str) -> str:
        """The key of the answer: that of an earlier row only if these are known to be the same answer."""
        repeat = self._get(row, "repeat")
        if repeat is not None:
            known = item.key, str(repeat)
            if known in self.repeats:
                self.faults.append(Fault(where, f"has the repeat {repeat} of an earlier row with the same answer"))
            self.repeats.add(known)
            return item.key
        if any(response is not None for name, response in item.texts.items() if name != "input"):
            return item.key
        self.unknown[item.key] = n = self.unknown.get(item.key, 0) + 1
        return item.key if n == 1 else identity.digest([item.key, n]).hex()

    def _judgement(self, row: Mapping[str, Any], place: str, field: str, where: str) -> Judgement:
        label = self._label(row, place, where)
        explanation = self._get(row, field)
        if label is None:
            return Judgement(None, _NO_JUDGEMENT)
        if self.by_place and field == "swapped_explanation" and isinstance(label, float):
            label = 1 - label
        return Judgement(label, None, explanation if isinstance(explanation, str) else None)

    def _label(self, row: Mapping[str, Any], place: str, where: str) -> Label | None:
        value = _find(row, place)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        try:
            return read_winner(value, "", "").outcome if self.is_pairs else _read_label(value)
        except DataError as error:
            expected = "is no winner; give 1, 2, a, b or tie"
            self.faults.append(Fault(f"{where}:{place}", expected if self.is_pairs else str(error)))
            return None

    def _get(self, row: Mapping[str, Any], field: str) -> Any:
        places = self.places[field]
        return _find(row, places[0]) if places else None


def _find(row: Mapping[str, Any], place: str) -> Any:
    """The value at a path; None if there is none."""
    if place in row:
        value = row[place]
    else:
        found = Selector(place).find(row)
        value = found[0] if found else None
    return None if isinstance(value, float) and math.isnan(value) else value


def _read_label(value: Any) -> Label:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | int | float) and math.isfinite(value):
        return float(value)
    raise DataError(f"is {kind_of(value)}; give a number, a word, true or false")
