"""One row of a file of battles: who met, on which example, and who won, in the columns that others publish.

A row is read field by field. `COLUMNS` says which columns are known for a field: those of Chatbot Arena (`model_a`,
`winner`; its Kaggle form `winner_model_a`, `winner_tie`), of AlpacaEval's annotations (`generator_1`, `preference`), of
MT-Bench's pairwise judgements (`model_1`, `g1_winner`, `g2_winner`), of Arena-Hard (`baseline`, `games`), and of
evaluand's own export (`outcome`, `order`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from evaluand.core.errors import DataError, Fault, SpecError, alternatives, kind_of
from evaluand.core.key_columns import INDEX
from evaluand.core.selector import Selector
from evaluand.matches.column_options import column_option, system_option
from evaluand.store.tables import ABSTAINED, FAILED, SCORE_STATUSES, SCORED

COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    "example": ("question_id", "uid", "id"),
    "replication": ("replication",),
    "turn": ("turn",),
    "a": ("model_a", "generator_1", "model_1", "baseline"),
    "b": ("model_b", "generator_2", "model_2", "model"),
    "outcome": ("outcome",),
    "winner": ("winner", "g1_winner"),
    "swapped": ("g2_winner",),
    "games": ("games",),
    "preference": ("preference",),
    "winner_a": ("winner_model_a",),
    "winner_b": ("winner_model_b",),
    "winner_tie": ("winner_tie", "winner_model_tie"),
    "order": ("order",),
    "judge": ("judge", "annotator"),
    "input": ("input", "instruction", "prompt", "question"),
    "response_a": ("response_a", "conversation_a", "output_1", "answer_a"),
    "response_b": ("response_b", "conversation_b", "output_2", "answer_b"),
    "explanation": ("explanation", "g1_judgment"),
    "swapped_explanation": ("g2_judgment",),
    "status": ("status",),
    "reason": ("reason",),
    "strength": ("strength",),
    "label": ("label",),
    "data": ("data",),
}
"""The fields of a row, and the columns in which they are looked for, the first that the file has."""

OWN: Final = (
    INDEX,
    "number_a",
    "number_b",
    "round",
    "judgement",
    "digest",
    "missing",
    "first",
    "equal",
    "style_a",
    "style_b",
    "usage",
)
"""Further columns of evaluand's own export; from a file with all of them the same matches are read again."""

VERDICTS: Final = ("outcome", "winner", "games", "preference", "winner_a")
"""The fields that can say who won."""


class Verdict(NamedTuple):
    """What a judge decided.

    Attributes:
        outcome: the share of the win that the row's first system gets; None if there is none.
        label: the judge's own word.
        strength: how much better the winner is.
        status, reason: as in the table of matches.
    """

    outcome: float | None
    label: str | None = None
    strength: float | None = None
    status: str = SCORED
    reason: str | None = None


class Battle(NamedTuple):
    """One judgement of two responses, as a row names them.

    Attributes:
        example: the id of the example; None if the row has none.
        replication: the repetition, from 0.
        a, b: the names of the two systems, in the order of the row.
        order: `ab` if the response of `a` was shown first, `ba`, or None if it is unknown.
        verdict: what the judge decided.
        explanation: the judge's reasons.
        data: anything else that the judge said.
        judge: who judged.
    """

    example: str | None
    replication: int
    a: str
    b: str
    order: str | None
    verdict: Verdict
    explanation: str | None
    data: Any
    judge: str | None


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
        is_own: whether the file is an export of evaluand, whose texts are read exactly.
    """

    places: Mapping[str, str]
    a: str | None = None
    b: str | None = None
    in_order: bool = False
    is_own: bool = False

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
        faults = [f"no field is called {field!r}{alternatives(field, [*COLUMNS])}" for field in chosen.keys() - COLUMNS]
        for field, place in chosen.items():
            first = next(iter(_selector(place).steps), None)
            if place not in names and isinstance(first, str) and first not in names:
                faults.append(
                    f"{column_option(field, place)}: no column is called {first!r}{alternatives(first, names)}"
                )
        if faults:
            raise SpecError("\n".join(faults))
        places = {field: name for field, known in COLUMNS.items() for name in known if name in names}
        places = {field: next(name for name in COLUMNS[field] if name in names) for field in places}
        if any(field in chosen for field in VERDICTS):
            places = {field: name for field, name in places.items() if field not in (*VERDICTS, "swapped")}
        if "outcome" not in places:
            places = {field: name for field, name in places.items() if field not in _OWN_FIELDS}
        places |= chosen
        for side, name in (("a", a), ("b", b)):
            if name is not None:
                places.pop(side, None)
            elif side not in places:
                raise SpecError(
                    f"no column names the {_PLACES[side]} system{_similar_column(side, names)}; name the column"
                    f" ({column_option(side)}) or, if it is the same in all rows, the system ({system_option(side)});"
                    f" the columns are {', '.join(names)}"
                )
        if not any(field in places for field in VERDICTS):
            raise SpecError(
                f"no column says who won{_similar_column('winner', names)}; name it ({column_option('winner')}); known"
                f" are {', '.join(_KNOWN_VERDICTS)}, and the columns are {', '.join(names)}"
            )
        return cls(places, a, b, in_order, set(OWN) <= set(names) and not chosen)

    @property
    def has_texts(self) -> bool:
        return "response_a" in self.places and "response_b" in self.places

    @property
    def input(self) -> str | None:
        """The place of the input, by which examples are distinguished if they have no id."""
        return self.places.get("input")

    def read(self, row: Mapping[str, Any], where: str, faults: list[Fault]) -> tuple[Texts, list[Battle]]:
        """The judgements of a row; its faults are added to the list."""
        reader = _Row(self, row, where, faults)
        texts = reader.texts() if self.places.keys() & _TEXT_FIELDS else _NO_TEXTS
        return texts, [*reader.battles(texts)]


_TEXT_FIELDS: Final = frozenset(Texts._fields)
_NO_TEXTS: Final = Texts(None, None, None)

_OWN_FIELDS: Final = ("status", "reason", "strength", "label", "data")
"""Fields whose columns mean something else in the files of others."""

_PLACES: Final = {"a": "first", "b": "second"}
_KNOWN_VERDICTS: Final = tuple(name for field in VERDICTS for name in COLUMNS[field])


def _similar_column(field: str, names: Sequence[str]) -> str:
    """The column of a file whose name is nearly a known one of the field."""
    for known in COLUMNS[field]:
        taken = [name for name in names if name not in _KNOWN]
        if close := get_close_matches(known, taken, n=1, cutoff=_SIMILAR):
            return f" (is {close[0]!r} meant to be {known!r}? write {column_option(field, close[0])})"
    return ""


_SIMILAR: Final = 0.8
_KNOWN: Final = frozenset(name for known in COLUMNS.values() for name in known)


@lru_cache(maxsize=256)
def _selector(place: str) -> Selector:
    return Selector(place)


class _Row:
    """A row in reading."""

    def __init__(self, columns: BattleColumns, row: Mapping[str, Any], where: str, faults: list[Fault]) -> None:
        self.columns, self.row, self.where, self.faults = columns, row, where, faults

    def fault(self, field: str, message: str) -> None:
        place = self.columns.places.get(field, field)
        self.faults.append(Fault(f"{self.where}:{place}", message))

    def get(self, field: str) -> Any:
        """The value of a field; None if the row or the file has none, or an empty cell."""
        place = self.columns.places.get(field)
        if place is None:
            return None
        value = self.row.get(place)
        if type(value) is str:  # most values, in a file of many battles
            return value or (value if self.columns.is_own else None)
        if value is None and place not in self.row:
            try:
                value = _selector(place).get(self.row)
            except DataError:
                return None
        return None if isinstance(value, float) and math.isnan(value) else value

    def text(self, field: str) -> str | None:
        """A name: a text or a number; several, such as a model and its prompt, are joined by a slash."""
        value = self.get(field)
        if value is None:
            return None
        if type(value) is str:
            return value if self.columns.is_own else value.strip() or None
        if isinstance(value, list | tuple) and value and all(isinstance(each, str) for each in value):
            return "/".join(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        self.fault(field, f"is {kind_of(value)}; give a text")
        return None

    def number(self, field: str) -> float | None:
        value = self.get(field)
        if value is None:
            return None
        number = _as_number(value)
        if number is None or not math.isfinite(number):
            self.fault(field, f"is {_show(value)}; give a number")
            return None
        return number

    def texts(self) -> Texts:
        columns, conversations = self.columns, [self._response(side) for side in "ab"]
        if columns.is_own:
            return Texts(*(self.text(field) for field in Texts._fields))
        asked = self.get("input") if columns.input else None
        is_list = "winner_a" in columns.places  # the Kaggle form has a JSON list of turns in each cell
        if asked is None:
            asked = next((said for each in conversations if (said := _said(each, "user"))), None)
        responses = [_said(each, "assistant", is_list=is_list) for each in conversations]
        return Texts(_said(asked, "user", is_list=is_list), *responses)

    def _response(self, side: str) -> Any:
        """A response, which may be the empty text."""
        place = self.columns.places.get(f"response_{side}")
        return "" if place is not None and self.row.get(place) == "" else self.get(f"response_{side}")

    def battles(self, texts: Texts) -> Iterator[Battle]:
        example, judge = self.text("example"), self.text("judge")
        if "example" in self.columns.places and not self.columns.is_own and self._is_empty("example"):
            self.fault("example", "is empty; give the id of the example")
        a, b = (self._system(side, name) for side, name in (("a", self.columns.a), ("b", self.columns.b)))
        replication, order = self._replication(), self._order()
        for verdict, its_order, explanation, data in self._verdicts(a, b, order):
            yield Battle(example, replication, a, b, its_order, verdict, explanation, data, judge)

    def _system(self, side: str, name: str | None) -> str:
        found = self.text(side) if name is None else name
        if name is None and self._is_empty(side):
            self.fault(side, "is empty; give the name of the system")
        return found or ""

    def _is_empty(self, field: str) -> bool:
        value = self.get(field)
        return value is None or (type(value) is str and not value.strip())

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
        self.fault("order", f"is {_show(order)}; give ab if the first system was shown first, else ba")
        return None

    def _verdicts(self, a: str, b: str, order: str | None) -> Iterator[tuple[Verdict, str | None, str | None, Any]]:
        """Each verdict with the order that the judge saw, its reasons and other data."""
        places = self.columns.places
        if "games" in places:
            yield from self._games()
            return
        verdict = self._verdict(a, b)
        if "swapped" in places:
            swapped = self._winner("swapped", a, b)
            yield verdict, order or "ab", self._explanation("explanation"), self._data()
            yield swapped, "ba" if (order or "ab") == "ab" else "ab", self._explanation("swapped_explanation"), None
            return
        yield self._described(verdict), order, self._explanation("explanation"), self._data()

    def _verdict(self, a: str, b: str) -> Verdict:
        """Who won; where several columns say so, they must not contradict each other."""
        places, n_faults = self.columns.places, len(self.faults)
        names = ("", "") if self.columns.is_own else (a, b)  # an export names the winner by its place alone
        readers: Mapping[str, Callable[[], Verdict]] = {
            "outcome": self._outcome,
            "preference": self._preference,
            "winner_a": self._one_of_three,
            "winner": lambda: self._winner("winner", *names),
        }
        verdicts = {field: read() for field, read in readers.items() if field in places}
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
            return _UNDECIDED
        if not 0 <= outcome <= 1:
            self.fault("outcome", f"is {outcome:g}; give the first system's share of the win, from 0 to 1")
        return Verdict(outcome)

    def _preference(self) -> Verdict:
        """1 if the first response is better, 2 if the second is, or between; AlpacaEval's 0 was a tie."""
        preference = self.number("preference")
        if preference is None:
            return _UNDECIDED
        if preference and not 1 <= preference <= 2:
            self.fault("preference", f"is {preference:g}; give a number from 1 (the first is better) to 2")
        return Verdict(2 - preference if preference else 0.5)

    def _one_of_three(self) -> Verdict:
        shares = [self.number(field) or 0.0 for field in ("winner_a", "winner_b", "winner_tie")]
        if sorted(shares) != [0, 0, 1]:
            fields = [name for field in ("winner_a", "winner_b", "winner_tie") if (name := self._column(field))]
            self.fault("winner_a", f"exactly one of {', '.join(fields)} must be 1, the others 0")
        return Verdict(shares[0] + shares[2] / 2)

    def _column(self, field: str) -> str | None:
        return self.columns.places.get(field)

    def _winner(self, field: str, a: str, b: str) -> Verdict:
        try:
            return read_winner(self.get(field), a, b)
        except DataError as error:
            self.fault(field, str(error))
            return _UNDECIDED

    def _games(self) -> Iterator[tuple[Verdict, str | None, str | None, Any]]:
        """Arena-Hard's two games: the first shows the baseline first, the second shows it second."""
        games = _parse_json(self.get("games"))
        if not isinstance(games, list) or len(games) > len(_GAME_ORDERS):
            found = f"has {len(games):,} games" if isinstance(games, list) else f"is {kind_of(games)}"
            return self.fault("games", f"{found}; give a list of one or two games")
        for number, (game, order) in enumerate(zip(games, _GAME_ORDERS, strict=False)):
            if not isinstance(game, dict | None):
                self.fault(f"{self._column('games')}[{number}]", f"is {kind_of(game)}; give an object with a score")
                continue
            verdict, explanation = _NO_VERDICT, None
            score = (game or {}).get("score")
            try:
                verdict = read_winner(score or "error", "", "")
            except DataError:
                message = f"is {_show(score)}; give a label such as A>>B, A>B or A=B"
                self.fault(f"{self._column('games')}[{number}].score", message)
            if order == "ba" and verdict.outcome is not None:
                verdict = verdict._replace(outcome=1 - verdict.outcome)
            if game is not None:
                judgment = game.get("judgment")
                explanation = judgment.get("answer") if isinstance(judgment, dict) else judgment
            yield verdict, order, explanation if isinstance(explanation, str) else None, None

    def _explanation(self, field: str) -> str | None:
        value = self.get(field)
        return value if isinstance(value, str) else None

    def _data(self) -> Any:
        return _parse_json(self.get("data"))

    def _described(self, verdict: Verdict) -> Verdict:
        """The verdict with what further columns say about it."""
        places = self.columns.places
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
            self.fault("status", f"is {_show(status)}; give one of {', '.join(SCORE_STATUSES)}")
        elif (status == SCORED) != (verdict.outcome is not None):
            needed = "needs an outcome" if status == SCORED else "must not have an outcome"
            self.fault("outcome", f"a match that is {status} {needed}")
        return verdict._replace(status=status or SCORED, reason=self.text("reason"))


def _contradict(one: float | None, other: float | None) -> bool:
    """Whether two shares of a win name different winners, or one a tie and the other a certain winner."""
    if one is None or other is None:
        return False
    return (one - 0.5) * (other - 0.5) < 0 or abs(one - other) >= 0.5


_GAME_ORDERS: Final = ("ab", "ba")
_MOST_REPLICATIONS: Final = 2**31
_UNDECIDED: Final = Verdict(None, status=ABSTAINED, reason="the file has no winner")
_NO_VERDICT: Final = Verdict(None, status=FAILED, reason="the judge gave no verdict that could be read")

_FIRST: Final = ("model_a", "model_1", "first", "a", "1", "output_1")
_SECOND: Final = ("model_b", "model_2", "second", "b", "2", "output_2")
_TIES: Final = ("tie", "tie (bothbad)", "tie (both bad)", "bothbad", "both_bad", "both bad", "draw")
_WORDS: Final[Mapping[str, Verdict]] = {
    **dict.fromkeys(_FIRST, Verdict(1.0)),
    **dict.fromkeys(_SECOND, Verdict(0.0)),
    **dict.fromkeys(_TIES, Verdict(0.5)),
    "a>>b": Verdict(1.0, strength=2.0),
    "a>b": Verdict(1.0, strength=1.0),
    "a=b": Verdict(0.5, strength=0.0),
    "b=a": Verdict(0.5, strength=0.0),
    "b>a": Verdict(0.0, strength=1.0),
    "b>>a": Verdict(0.0, strength=2.0),
    "a<b": Verdict(0.0, strength=1.0),
    "a<<b": Verdict(0.0, strength=2.0),
    "b<a": Verdict(1.0, strength=1.0),
    "b<<a": Verdict(1.0, strength=2.0),
    "error": _NO_VERDICT,
}
_LETTERS: Final = ("a", "b", "1", "2")
"""Words that more often name a system than its place in the row."""

_LABELS: Final = {word for word in _WORDS if word not in (*_FIRST, *_SECOND, "tie", "draw", "error")}
"""Words that say more than who won, or of what kind the tie is."""


def read_winner(value: Any, a: str, b: str) -> Verdict:
    """What the cell of a winner says.

    Args:
        value: the name of a system; `model_a`, `first`, `A`, 1 and their like; a word for a tie; or a label of
            Arena-Hard such as `A>>B`.
        a, b: the names of the systems of the row.

    Raises:
        DataError: it is nothing of these.

    Example:
        >>> read_winner("model_b", "x", "y").outcome, read_winner("[[A>>B]]", "x", "y")[:3]
        (0.0, (1.0, 'A>>B', 2.0))
    """
    if value is None:
        return _UNDECIDED
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise DataError(f"is {_show(value)}; {_EXPECTED}")
    text = str(value).strip()
    if a != b and text in (a, b):
        by_name, by_place = float(text == a), _WORDS.get(text.casefold(), _UNDECIDED).outcome
        if text.casefold() not in _LETTERS and by_place not in (None, by_name):
            raise DataError(
                f"is {_show(text)}, the name of a system and the word for another outcome; rename the system"
            )
        return Verdict(by_name)
    text = text.removeprefix("[[").removesuffix("]]")
    if ">" in text or "<" in text or "=" in text:
        text = text.replace(" ", "").upper()
    verdict = _WORDS.get(text.casefold())
    if verdict is None:
        raise DataError(f"is {_show(value)}; {_EXPECTED}")
    return verdict._replace(label=text) if text.casefold() in _LABELS else verdict


_EXPECTED: Final = "give model_a, model_b, tie, or the name of a system of the row"
_MOST_CHARACTERS: Final = 40


def _show(value: Any) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= _MOST_CHARACTERS else f"{value[:_MOST_CHARACTERS]}…")
    is_scalar = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_scalar else kind_of(value)


def _as_number(value: Any) -> float | None:
    """A number, also as text; true and false are 1 and 0."""
    if isinstance(value, bool | int | float):
        return float(value)
    text = value.strip().casefold() if isinstance(value, str) else ""
    if text in _FLAGS:
        return _FLAGS[text]
    try:
        return float(text)
    except ValueError:
        return None


_FLAGS: Final = {"true": 1.0, "false": 0.0}


def _parse_json(value: Any) -> Any:
    """The value of a JSON text; anything else unchanged."""
    if isinstance(value, str):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _said(value: Any, role: str, *, is_list: bool = False) -> str | None:
    """The text of a response or of an input: a text, or what one side says in a conversation.

    Args:
        role: the side.
        is_list: whether a text may be a JSON list of turns.
    """
    if isinstance(value, str):
        if not value.startswith("["):
            return value
        parsed = _parse_json(value)
        if not isinstance(parsed, list) or not parsed:
            return value
        is_conversation = all(isinstance(each, dict) and "role" in each for each in parsed)
        is_turns = is_list and all(isinstance(each, str | None) for each in parsed)
        return _said(parsed, role) if is_conversation or is_turns else value
    if isinstance(value, Mapping) and "content" in value:
        return _said([value], role)
    if isinstance(value, list | tuple):
        return "\n\n".join(_turns(value, role)) or None
    return None if value is None else _as_json(value)


def _as_json(value: Any) -> str:
    """A value as JSON; integers beyond 64 bits, which orjson refuses, are written by the standard library."""
    try:
        return orjson.dumps(value, default=str).decode()
    except TypeError:
        return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))


def _turns(conversation: Iterable[Any], role: str) -> Iterator[str]:
    for turn in conversation:
        if isinstance(turn, str):
            yield turn
        elif isinstance(turn, Mapping) and turn.get("role", role) == role:
            content = turn.get("content", turn.get("text"))
            if isinstance(content, str):
                yield content
            elif isinstance(content, list | tuple):
                yield from _turns(content, role)
