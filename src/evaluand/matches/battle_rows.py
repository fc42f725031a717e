"""One row of a file of battles: who met, on which example, and who won, in declared columns.

The core reads battles by declared columns: systems `a` and `b`, winner, example, judge, order, texts. `COLUMNS` says
which columns are known for a field, before those that publishers have in their formats; other columns are named by the
reader. A format adds the names that a publisher gives to these columns, and may read verdicts that the publisher writes
in another way. Formats are found by the registry in the group `battle_formats`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

import orjson

from evaluand.core import registry
from evaluand.core.errors import DataError, Fault, SpecError, alternatives, kind_of
from evaluand.core.selector import Selector
from evaluand.data.source import list_columns
from evaluand.store.tables import ABSTAINED, FAILED, SCORE_STATUSES, SCORED

if TYPE_CHECKING:
    from evaluand.matches.battles import BattleFile, BattleTables

_FIELDS: Final = (
    *("example", "replication", "turn", "a", "b", "outcome", "winner", "swapped", "order", "judge"),
    *("input", "response_a", "response_b", "explanation", "swapped_explanation"),
    *("status", "reason", "strength", "label", "data"),
)
COLUMNS: Final[Mapping[str, Sequence[str]]] = {field: (field,) for field in _FIELDS} | {
    "example": ("question_id", "uid", "id"),
    "a": ("model_a",),
    "b": ("model_b",),
    "swapped": (),
    "input": ("input", "instruction", "prompt", "question"),
    "response_a": ("response_a", "answer_a"),
    "response_b": ("response_b", "answer_b"),
    "swapped_explanation": (),
}
"""The fields of a row, and the columns in which they are looked for, the first that the file has."""


class Verdict(NamedTuple):
    """What a judge decided.

    Attributes:
        outcome: the share of the win that the row's first system gets; None if there is none.
        label: the judge's own word.
        strength: how much better the winner is.
        status, reason: as in the table of matches.
        order: `ab` if the response of the first system was shown first, `ba`, or None if it is unknown.
        explanation: the judge's reasons.
        data: anything else that the judge said.
    """

    outcome: float | None
    label: str | None = None
    strength: float | None = None
    status: str = SCORED
    reason: str | None = None
    order: str | None = None
    explanation: str | None = None
    data: Any = None


UNDECIDED: Final = Verdict(None, status=ABSTAINED, reason="the file has no winner")
UNREADABLE: Final = Verdict(None, status=FAILED, reason="the judge gave no verdict that could be read")


class BattleFormat:
    """The columns of a publisher, and its ways to write a winner and a text.

    Attributes:
        kind: the registered name.
        columns: field → columns in which it is looked for where the usual ones are absent.
        marks: columns by which a file is taken for one of battles without being called so.
        words: what the cell of a winner may say, in small letters → what it means.
        labels: the same for words that say more than who won, and are kept as the label.
        verdict: the field that says who won where no usual column does; its columns are among `columns`.
        has_both_orders: whether that field has a verdict for each order, and no other column says who won.
        own: further columns; a file with all of them is read as a whole, and its texts exactly.
    """

    kind: ClassVar[str]
    columns: ClassVar[Mapping[str, Sequence[str]]]
    marks: ClassVar[frozenset[str]] = frozenset()
    words: ClassVar[Mapping[str, Verdict]] = {}
    labels: ClassVar[Mapping[str, Verdict]] = {}
    verdict: ClassVar[str | None] = None
    has_both_orders: ClassVar[bool] = False
    own: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def verdicts(cls, row: BattleRow) -> Iterator[Verdict]:
        """What the field `verdict` of a row says."""
        raise NotImplementedError(f"{cls.__name__} does not define how its verdicts are read")

    @classmethod
    def turns(cls, value: Any, role: str) -> list[str] | None:
        """What one side says in a conversation, in files that have the field `verdict`; None if it is no conversation.

        Args:
            role: the side.
        """
        return None

    @classmethod
    def tables(cls, file: BattleFile) -> BattleTables:
        """The tables of a file with the columns `own`."""
        raise NotImplementedError(f"{cls.__name__} does not define how a file is read as a whole")


@cache
def battle_formats() -> list[type[BattleFormat]]:
    """The registered formats."""
    return [registry.find("battle_formats", name) for name in registry.names("battle_formats")]


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


def check_places(chosen: Mapping[str, Sequence[str]], known: Sequence[str], names: Sequence[str]) -> list[str]:
    """What is wrong with the columns, or places of a value in a row, that were chosen for fields of a file."""
    faults = [f"no field is called {field!r}{alternatives(field, known)}" for field in chosen.keys() - {*known}]
    for field, places in chosen.items():
        for place in places:
            first = place if place in names else next(iter(selector_of(place).steps), None)
            if first not in names:
                missing = f"no column is called {first!r}{alternatives(str(first), names)}"
                faults.append(f"{column_option(field, place)}: {missing}")
    return faults


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
        faults = check_places({field: [place] for field, place in chosen.items()}, [*known], names)
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
                    f"no column names the {ordinal} system; name the column ({column_option(side)}) or, if it is the"
                    f" same in all rows, the system ({system_option(side)}); {list_columns(names)}"
                )
        if not any(field in places for field in verdicts):
            usual = ", ".join(column for field in verdicts for column in known[field])
            raise SpecError(
                f"no column says who won; name it ({column_option('winner')}); known are {usual}, and"
                f" {list_columns(names)}"
            )
        whole = next((each for each in battle_formats() if each.own and each.own <= {*names} and not chosen), None)
        return cls(places, a, b, in_order, whole)

    @cached_property
    def formats(self) -> list[type[BattleFormat]]:
        """The formats that may be those of the file."""
        return [each for each in battle_formats() if each.verdict is None or each.verdict in self.places]

    def read(self, row: Mapping[str, Any], where: str, faults: list[Fault]) -> tuple[Texts, list[Battle]]:
        """The judgements of a row; its faults are added to the list."""
        reader = BattleRow(self, row, where, faults)
        return reader.texts(), [*reader.battles()]


_OWN_FIELDS: Final = ("status", "reason", "strength", "label", "data")  # which others mean otherwise


class BattleRow:
    """A row of a file of battles, read field by field; faults are added to a list."""

    def __init__(self, columns: BattleColumns, row: Mapping[str, Any], where: str, faults: list[Fault]) -> None:
        self.columns, self.row, self.where, self.faults = columns, row, where, faults
        self.places, self.is_exact = columns.places, columns.whole is not None

    def fault(self, field: str, message: str) -> None:
        self.faults.append(Fault(f"{self.where}:{self.places.get(field, field)}", message))

    def get(self, field: str) -> Any:
        """The value of a field; None if the row or the file has none, or an empty cell."""
        place = self.places.get(field)
        if place is None:
            return None
        value = self.row.get(place)
        if type(value) is str:  # most values, in a file of many battles
            return value or (value if self.is_exact else None)
        if value is None and place not in self.row:
            try:
                value = selector_of(place).get(self.row)
            except DataError:
                return None
        return None if isinstance(value, float) and math.isnan(value) else value

    def is_empty(self, field: str) -> bool:
        value = self.get(field)
        return value is None or (type(value) is str and not value.strip())

    def text(self, field: str) -> str | None:
        """A name: a text or a number; several, such as a model and its prompt, are joined by a slash."""
        value = self.get(field)
        if value is None:
            return None
        if type(value) is str:
            return value if self.is_exact else value.strip() or None
        if isinstance(value, list | tuple) and value and all(isinstance(each, str) for each in value):
            return "/".join(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        self.fault(field, f"is {kind_of(value)}; give a text")
        return None

    def prose(self, field: str) -> str | None:
        """A text as it is; None for anything else."""
        value = self.get(field)
        return value if isinstance(value, str) else None

    def number(self, field: str) -> float | None:
        """A number, also as text; true and false are 1 and 0."""
        value = self.get(field)
        if value is None:
            return None
        text = value.strip().casefold() if isinstance(value, str) else value
        try:
            number = _FLAGS[text] if isinstance(text, str) and text in _FLAGS else float(text)
        except (TypeError, ValueError):
            number = math.nan
        if math.isfinite(number):
            return number
        self.fault(field, f"is {shown(value)}; give a number")
        return None

    def texts(self) -> Texts:
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
        about = {"explanation": self.prose("explanation"), "data": parse_json(self.get("data"))}
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
        decided = [(field, said, said.outcome) for field, said in verdicts.items() if said.outcome is not None]
        if not decided:
            verdict = [*verdicts.values()][-1]
            return verdict._replace(label=None) if "outcome" in places else verdict
        (field, verdict, share), *others = decided
        for other, _, its in others if len(self.faults) == n_faults else ():
            if (share - 0.5) * (its - 0.5) < 0 or abs(share - its) >= 0.5:  # a tie contradicts a certain winner
                first = f"the outcome {share:g}, the first system's share of the win"
                self.fault(other, f"contradicts {first if field == 'outcome' else f'the column {places[field]}'}")
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


_FLAGS: Final = {"true": 1.0, "false": 0.0}
_MOST_REPLICATIONS: Final = 2**31


def _as_json(value: Any) -> str:
    """A value as JSON; integers beyond 64 bits, which orjson refuses, are written by the standard library."""
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:
        return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))


_LETTERS: Final = ("a", "b", "1", "2")  # more often the name of a system than its place in the row

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
    is_label = any(text.casefold() in each.labels for each in battle_formats())
    return verdict._replace(label=text) if is_label else verdict


_EXPECTED: Final = "give model_a, model_b, tie, or the name of a system of the row"


@lru_cache(maxsize=256)
def selector_of(place: str) -> Selector:
    return Selector(place)


_MOST_CHARACTERS: Final = 40


def shown(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, str):
        return repr(value if len(value) <= _MOST_CHARACTERS else f"{value[:_MOST_CHARACTERS]}…")
    is_scalar = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_scalar else kind_of(value)


def parse_json(value: Any) -> Any:
    """The value of a JSON text; anything else unchanged."""
    if isinstance(value, str):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


_COLUMNS: Final = {
    "python": "columns={{{field!r}: {column!r}}}",
    "command": "--column {field}={column}",
    "scorer": "fields: {{{field}: {column}}}",
}
_SYSTEMS: Final = {"python": "{side}='SYSTEM'", "command": "--{side} SYSTEM", "scorer": "{side}: SYSTEM"}
_door: ContextVar[str] = ContextVar("door of battles", default="python")


def column_option(field: str, column: str = "COLUMN") -> str:
    """How to say in which column a field is.

    Example:
        >>> column_option("a")
        "columns={'a': 'COLUMN'}"
        >>> with spelled_for("command"):
        ...     column_option("winner", "better")
        '--column winner=better'
    """
    return _COLUMNS[_door.get()].format(field=field, column=column)


def system_option(side: str) -> str:
    """How to name the system of a side, `a` or `b`, that is the same in all rows.

    Example:
        >>> system_option("a")
        "a='SYSTEM'"
    """
    return _SYSTEMS[_door.get()].format(side=side)


@contextmanager
def spelled_for(door: Literal["python", "command", "scorer"]) -> Iterator[None]:
    """A context whose messages are for a command line, the parameters of a scorer, or Python."""
    token = _door.set(door)
    try:
        yield
    finally:
        _door.reset(token)
