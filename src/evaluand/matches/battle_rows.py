"""One row of a file of battles: who met, on which example, and who won, in declared columns.

A row is read field by field. `COLUMNS` says which columns are known for a field, before those that publishers have in
their formats (see `battle_format`); other columns are named by the reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

import orjson

from evaluand.core.errors import DataError, Fault, SpecError, alternatives
from evaluand.matches.battle_format import (
    UNDECIDED,
    BattleFormat,
    BattleRow,
    Verdict,
    battle_formats,
    selector_of,
    shown,
)
from evaluand.matches.column_options import column_option, system_option
from evaluand.store.tables import SCORE_STATUSES, SCORED

COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "example": ("question_id", "uid", "id"),
    "replication": ("replication",),
    "turn": ("turn",),
    "a": ("model_a",),
    "b": ("model_b",),
    "outcome": ("outcome",),
    "winner": ("winner",),
    "swapped": (),
    "order": ("order",),
    "judge": ("judge",),
    "input": ("input", "instruction", "prompt", "question"),
    "response_a": ("response_a", "answer_a"),
    "response_b": ("response_b", "answer_b"),
    "explanation": ("explanation",),
    "swapped_explanation": (),
    "status": ("status",),
    "reason": ("reason",),
    "strength": ("strength",),
    "label": ("label",),
    "data": ("data",),
}
"""The fields of a row, and the columns in which they are looked for, the first that the file has."""


@cache
def known_columns() -> Mapping[str, Sequence[str]]:
    """`COLUMNS` with the fields and columns of all formats."""
    known = {field: [*names] for field, names in COLUMNS.items()}
    for each in battle_formats():
        for field, names in each.columns.items():
            known.setdefault(field, []).extend(names)
    return known


@cache
def verdict_fields() -> Sequence[str]:
    """The fields that can say who won."""
    return ("outcome", "winner", *(each.verdict for each in battle_formats() if each.verdict))


class Battle(NamedTuple):
    """One judgement of two responses, as a row names them.

    Attributes:
        example: the id of the example; None if the row has none.
        replication: the repetition, from 0.
        a, b: the names of the two systems, in the order of the row.
        judge: who judged.
        verdict: what the judge decided.
    """

    example: str | None
    replication: int
    a: str
    b: str
    judge: str | None
    verdict: Verdict


class Texts(NamedTuple):
    """What the judge of a row saw; None where the file does not have it."""

    input: str | None
    response_a: str | None
    response_b: str | None


@dataclass(frozen=True)
class BattleColumns:
    """Where the fields of a row are.

    Attributes:
        places: field → its place in a row; fields that the file does not have are absent.
        a, b: the names of the systems where no column has them.
        in_order: whether each row names the system first whose response was shown first.
        whole: the format that reads the file as a whole, and its texts exactly.
    """

    places: Mapping[str, str]
    a: str | None = None
    b: str | None = None
    in_order: bool = False
    whole: type[BattleFormat] | None = None

    @classmethod
    def choose(
        cls,
        names: Sequence[str],
        chosen: Mapping[str, str],
        *,
        a: str | None = None,
        b: str | None = None,
        in_order: bool = False,
    ) -> BattleColumns:
        """The known columns that a file has, and those that were chosen.

        Args:
            names: the columns of the file.
            chosen: field → column, or the place of a value in a row, such as `results[0].winner`.

        Raises:
            SpecError: a field or a column is unknown, or no column says who met or who won.
        """
        known, verdicts = known_columns(), verdict_fields()
        faults = [f"no field is called {field!r}{alternatives(field, [*known])}" for field in chosen.keys() - known]
        for field, place in chosen.items():
            first = next(iter(selector_of(place).steps), None)
            if place not in names and isinstance(first, str) and first not in names:
                faults.append(
                    f"{column_option(field, place)}: no column is called {first!r}{alternatives(first, names)}"
                )
        if faults:
            raise SpecError("\n".join(faults))
        places = {field: column for field in known if (column := next((n for n in known[field] if n in names), None))}
        if any(field in chosen for field in verdicts):
            places = {field: name for field, name in places.items() if field not in (*verdicts, "swapped")}
        if "outcome" not in places:
            places = {field: name for field, name in places.items() if field not in _OWN_FIELDS}
        places |= chosen
        for side, name, ordinal in (("a", a, "first"), ("b", b, "second")):
            if name is not None:
                places.pop(side, None)
            elif side not in places:
                raise SpecError(
                    f"no column names the {ordinal} system{_similar_column(side, names)}; name the column"
                    f" ({column_option(side)}) or, if it is the same in all rows, the system ({system_option(side)});"
                    f" the columns are {', '.join(names)}"
                )
        if not any(field in places for field in verdicts):
            usual = ", ".join(column for field in verdicts for column in known[field])
            raise SpecError(
                f"no column says who won{_similar_column('winner', names)}; name it ({column_option('winner')}); known"
                f" are {usual}, and the columns are {', '.join(names)}"
            )
        whole = next((each for each in battle_formats() if each.own and each.own <= {*names} and not chosen), None)
        return cls(places, a, b, in_order, whole)

    @property
    def has_texts(self) -> bool:
        return "response_a" in self.places and "response_b" in self.places

    @cached_property
    def formats(self) -> list[type[BattleFormat]]:
        """The formats that may be those of the file."""
        return [each for each in battle_formats() if each.verdict is None or each.verdict in self.places]

    def read(self, row: Mapping[str, Any], where: str, faults: list[Fault]) -> tuple[Texts, list[Battle]]:
        """The judgements of a row; its faults are added to the list."""
        reader = _Reader(self, row, where, faults)
        return reader.texts(), [*reader.battles()]


_OWN_FIELDS: Final = ("status", "reason", "strength", "label", "data")
"""Fields whose columns mean something else in the files of others."""


def _similar_column(field: str, names: Sequence[str]) -> str:
    """The column of a file whose name is nearly a known one of the field."""
    taken = {name for known in known_columns().values() for name in known}
    for known in known_columns()[field]:
        others = [name for name in names if name not in taken]
        if close := get_close_matches(known, others, n=1, cutoff=_SIMILAR):
            return f" (is {close[0]!r} meant to be {known!r}? write {column_option(field, close[0])})"
    return ""


_SIMILAR: Final = 0.8


class _Reader(BattleRow):
    """Reads the battles of a row."""

    def __init__(self, columns: BattleColumns, row: Mapping[str, Any], where: str, faults: list[Fault]) -> None:
        super().__init__(columns.places, row, where, faults, is_exact=columns.whole is not None)
        self.columns = columns

    def texts(self) -> Texts:
        if not self.places.keys() & _TEXT_FIELDS:
            return _NO_TEXTS
        if self.is_exact:
            return Texts(*(self.text(field) for field in Texts._fields))
        asked, responses = self.get("input"), [self._response(side) for side in "ab"]
        if asked is None:
            asked = next((said for each in responses if (said := self._said(each, "user"))), None)
        return Texts(self._said(asked, "user"), *(self._said(each, "assistant") for each in responses))

    def _response(self, side: str) -> Any:
        """A response, which may be the empty text."""
        place = self.places.get(f"response_{side}")
        return "" if place is not None and self.row.get(place) == "" else self.get(f"response_{side}")

    def _said(self, value: Any, role: str) -> str | None:
        """The text of a response or of an input: a text, or what one side says in a conversation."""
        for each in self.columns.formats:
            if (turns := each.turns(value, role)) is not None:
                return "\n\n".join(turns) or None
        return value if value is None or isinstance(value, str) else _as_json(value)

    def battles(self) -> Iterator[Battle]:
        """The judgements of the row."""
        example, judge = self.text("example"), self.text("judge")
        if "example" in self.places and not self.is_exact and self.is_empty("example"):
            self.fault("example", "is empty; give the id of the example")
        a, b = self._system("a", self.columns.a), self._system("b", self.columns.b)
        replication, order = self._replication(), self._order()
        for verdict in self._verdicts(a, b, order):
            yield Battle(example, replication, a, b, judge, verdict)

    def _system(self, side: str, name: str | None) -> str:
        if name is not None:
            return name
        if self.is_empty(side):
            self.fault(side, "is empty; give the name of the system")
        return self.text(side) or ""

    def _replication(self) -> int:
        for field, first in (("replication", 0), ("turn", 1)):
            number = self.number(field)
            if number is not None:
                if number.is_integer() and first <= number < _MOST_REPLICATIONS:
                    return int(number) - first
                self.fault(field, f"is {number:g}; give a whole number, {first} or more")
        return 0

    def _order(self) -> str | None:
        order = self.get("order")
        if order in ("ab", "ba", None):
            return order if order is not None or not self.columns.in_order else "ab"
        self.fault("order", f"is {shown(order)}; give ab if the first system was shown first, else ba")
        return None

    def _verdicts(self, a: str, b: str, order: str | None) -> Iterator[Verdict]:
        """Each verdict with the order that the judge saw, its reasons and other data."""
        for each in self.columns.formats:
            if each.has_both_orders:
                yield from each.verdicts(self)
                return
        about = {"explanation": self.prose("explanation"), "data": self.data("data")}
        verdict = self._verdict(a, b)
        if "swapped" not in self.places:
            yield self._describe(verdict)._replace(order=order, **about)
            return
        yield verdict._replace(order=order or "ab", **about)
        swapped = self._winner("swapped", a, b)
        yield swapped._replace(order="ab" if order == "ba" else "ba", explanation=self.prose("swapped_explanation"))

    def _verdict(self, a: str, b: str) -> Verdict:
        """Who won; where several columns say so, they must not contradict each other."""
        places, n_faults = self.places, len(self.faults)
        verdicts = {"outcome": self._outcome()} if "outcome" in places else {}
        verdicts |= {each.verdict: next(each.verdicts(self)) for each in self.columns.formats if each.verdict}
        if "winner" in places:  # which an export names by its place alone
            verdicts["winner"] = self._winner("winner", *("", "") if self.is_exact else (a, b))
        decided = [(field, verdict) for field, verdict in verdicts.items() if verdict.outcome is not None]
        if not decided:
            verdict = [*verdicts.values()][-1]
            return verdict._replace(label=None) if "outcome" in places else verdict
        (field, verdict), *others = decided
        for other, its in others if len(self.faults) == n_faults else ():
            if _contradict(verdict.outcome, its.outcome):
                said = f"the outcome {verdict.outcome:g}, the first system's share of the win"
                self.fault(other, f"contradicts {said if field == 'outcome' else f'the column {places[field]}'}")
        return verdict

    def _outcome(self) -> Verdict:
        outcome = self.number("outcome")
        if outcome is None:
            return UNDECIDED
        if not 0 <= outcome <= 1:
            self.fault("outcome", f"is {outcome:g}; give the first system's share of the win, from 0 to 1")
        return Verdict(outcome)

    def _winner(self, field: str, a: str, b: str) -> Verdict:
        try:
            return read_winner(self.get(field), a, b)
        except DataError as error:
            self.fault(field, str(error))
            return UNDECIDED

    def _describe(self, verdict: Verdict) -> Verdict:
        """The verdict with what further columns say about it."""
        places = self.places
        if "label" in places:
            verdict = verdict._replace(label=self.text("label"))
        if "strength" in places:
            strength = self.number("strength")
            if strength is not None and strength < 0:
                self.fault("strength", f"is {strength:g}; give 0 or more")
            verdict = verdict._replace(strength=strength)
        if "status" not in places:
            return verdict
        status = self.text("status")
        if status not in SCORE_STATUSES:
            self.fault("status", f"is {shown(status)}; give one of {', '.join(SCORE_STATUSES)}")
        elif (status == SCORED) != (verdict.outcome is not None):
            needed = "needs an outcome" if status == SCORED else "must not have an outcome"
            self.fault("outcome", f"a match that is {status} {needed}")
        return verdict._replace(status=status or SCORED, reason=self.text("reason"))


_TEXT_FIELDS: Final = frozenset(Texts._fields)
_NO_TEXTS: Final = Texts(None, None, None)
_MOST_REPLICATIONS: Final = 2**31


def _contradict(one: float | None, other: float | None) -> bool:
    """Whether two shares of a win name different winners, or one a tie and the other a certain winner."""
    if one is None or other is None:
        return False
    return (one - 0.5) * (other - 0.5) < 0 or abs(one - other) >= 0.5


def _as_json(value: Any) -> str:
    """A value as JSON; integers beyond 64 bits, which orjson refuses, are written by the standard library."""
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:
        return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))


_LETTERS: Final = ("a", "b", "1", "2")
"""Words that more often name a system than its place in the row."""

_WORDS: Final[Mapping[str, Verdict]] = {
    **dict.fromkeys(("model_a", "first", "a", "1"), Verdict(1.0)),
    **dict.fromkeys(("model_b", "second", "b", "2"), Verdict(0.0)),
    **dict.fromkeys(("tie", "draw"), Verdict(0.5)),
}


@cache
def _known_words() -> Mapping[str, Verdict]:
    """What the cell of a winner may say besides a name, in small letters."""
    known = dict(_WORDS)
    for each in battle_formats():
        known |= {**each.words, **each.labels}
    return known


@cache
def _labels() -> frozenset[str]:
    """The words that say more than who won."""
    return frozenset(word for each in battle_formats() for word in each.labels)


def read_winner(value: Any, a: str, b: str) -> Verdict:
    """What the cell of a winner says.

    Args:
        value: the name of a system; `model_a`, `first`, `A`, 1 and their like; a word for a tie; or a label such as
            `A>>B`.
        a, b: the names of the systems of the row.

    Raises:
        DataError: it is nothing of these.

    Example:
        >>> read_winner("model_b", "x", "y").outcome, read_winner("[[A>>B]]", "x", "y")[:3]
        (0.0, (1.0, 'A>>B', 2.0))
    """
    if value is None:
        return UNDECIDED
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise DataError(f"is {shown(value)}; {_EXPECTED}")
    words, text = _known_words(), str(value).strip()
    if a != b and text in (a, b):
        by_name, by_place = float(text == a), words.get(text.casefold(), UNDECIDED).outcome
        if text.casefold() not in _LETTERS and by_place not in (None, by_name):
            raise DataError(
                f"is {shown(text)}, the name of a system and the word for another outcome; rename the system"
            )
        return Verdict(by_name)
    text = text.removeprefix("[[").removesuffix("]]")
    if ">" in text or "<" in text or "=" in text:
        text = text.replace(" ", "").upper()
    verdict = words.get(text.casefold())
    if verdict is None:
        raise DataError(f"is {shown(value)}; {_EXPECTED}")
    return verdict._replace(label=text) if text.casefold() in _labels() else verdict


_EXPECTED: Final = "give model_a, model_b, tie, or the name of a system of the row"
