"""Labelled sets from files: a column with the label of people, and one with what a judge said.

A row is an answer or, if it has two responses, a pair; the label and the judgements of a pair name the better response:
1 or 2, `a` or `b`, `first` or `second`, or `tie`. Rows that agree in example, responses and models are one answer that
was judged several times; without responses only if the field `repeat` counts the judgements, since an example may have
several answers. No judge is asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, alternatives, kind_of
from evaluand.core.selector import Selector
from evaluand.data.source import read_rows
from evaluand.data.sources import open_data, open_file
from evaluand.judges.cards.labelled_set import Item, JudgeIdentity, Judgement, Label, LabelledSet
from evaluand.matches.battle_rows import column_option, read_winner

COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "label": ("label",),
    "judgement": ("judgement",),
    "swapped": ("swapped",),
    "explanation": ("explanation",),
    "swapped_explanation": ("swapped_explanation",),
    "id": ("id", "example_id", "question_id"),
    "repeat": ("repeat",),
    "cluster": (),
    "input": ("input", "instruction", "prompt", "question"),
    "response": ("response", "output"),
    "response_a": ("response_a", "output_1"),
    "response_b": ("response_b", "output_2"),
    "model": ("model",),
    "model_a": ("model_a",),
    "model_b": ("model_b",),
    "seconds": ("seconds",),
    "cost": ("cost",),
    "currency": ("currency",),
}
"""The fields of a row, and the columns in which they are looked for, the first that the file has."""

SEVERAL: Final = ("label", "judgement", "swapped")
"""The fields that may have several columns: of several people, or of repeated judgements."""

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
    places = choose_columns(source.schema.names, columns or {})
    rows = _Rows(places, by_place)
    for row, where in read_rows(source):
        rows.add(row, where)
    rows.check(source.name)
    spec = {"kind": "recorded", "name": judge, "version": version}
    made_by = JudgeIdentity(judge, spec, {"version": version} if version else {}, judge_model)
    people = places["label"] if len(places["label"]) > 1 else [None]
    name = Path(source.name).name if is_path else None
    return LabelledSet([*rows.items.values()], made_by, people, rows.is_pairs, rows.usage, rows.seconds, source=name)


def choose_columns(names: Sequence[str], chosen: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    """The paths of each field: those that were chosen, else the known columns that a file has.

    Raises:
        SpecError: a field or column is unknown, or no column has labels or judgements.
    """
    given = {field: [place] if isinstance(place, str) else list(place) for field, place in chosen.items()}
    faults = [f"no field is called {field!r}{alternatives(field, [*COLUMNS])}" for field in given.keys() - COLUMNS]
    for field, places in given.items():
        if len(places) > 1 and field not in SEVERAL:
            faults.append(f"{field} has {len(places)} columns; it can have one")
        for place in places:
            first = place if place in names else next(iter(Selector(place).steps), None)
            if first not in names:
                missing = f"no column is called {first!r}{alternatives(str(first), names)}"
                faults.append(f"{column_option(field, place)}: {missing}")
    if faults:
        raise SpecError("\n".join(faults))
    found = {field: [name for name in known if name in names][:1] for field, known in COLUMNS.items()} | given
    for field, what in (("label", "the labels of people"), ("judgement", "what the judge said")):
        if not found[field]:
            known = f"; the columns are {', '.join(names)}" if names else ": there are no columns"
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
        self._add_cost(row, where)

    def check(self, name: str) -> None:
        if self.faults:
            raise DataError(self.faults)
        if not self.items:
            raise DataError(f"{name}: no row has a label")

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

    def _add_cost(self, row: Mapping[str, Any], where: str) -> None:
        numbers = {}
        for field in ("seconds", "cost"):
            value = self._get(row, field)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                self.faults.append(Fault(f"{where}:{field}", f"is {kind_of(value)}; give a number, 0 or more"))
                continue
            numbers[field] = float(value)
        if "seconds" in numbers:
            self.seconds.append(numbers["seconds"])
        if "cost" in numbers:
            self.usage.append({"cost": numbers["cost"], "currency": self._get(row, "currency")})


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
