"""What a format of battles is: the columns in which others publish who met and who won.

The core reads battles by declared columns: systems `a` and `b`, winner, example, judge, order, texts. A format adds the
names that a publisher gives to these columns, and may read verdicts that the publisher writes in another way. Formats
are found by the registry in the group `battle_formats`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import orjson

from evaluand.core import registry
from evaluand.core.errors import DataError, Fault, kind_of
from evaluand.core.selector import Selector
from evaluand.store.tables import ABSTAINED, FAILED, SCORED

if TYPE_CHECKING:
    from evaluand.matches.battles import BattleFile, BattleTables


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


class BattleRow:
    """A row of a file of battles, read field by field; faults are added to a list.

    Args:
        places: field → its place in a row; fields that the file does not have are absent.
        is_exact: whether texts are read as they are.
    """

    def __init__(
        self, places: Mapping[str, str], row: Mapping[str, Any], where: str, faults: list[Fault], *, is_exact: bool
    ) -> None:
        self.places, self.row, self.where, self.faults, self.is_exact = places, row, where, faults, is_exact

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

    def data(self, field: str) -> Any:
        """A value that may be written as JSON."""
        return parse_json(self.get(field))


_FLAGS: Final = {"true": 1.0, "false": 0.0}


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
