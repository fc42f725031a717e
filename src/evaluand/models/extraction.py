"""What was read from a reply to be graded: the option, number, code or data, and by which rule."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

COLUMN: Final = "extraction"
"""The column of scores, and the key of outputs, that stores an extraction as JSON."""


class Extraction(NamedTuple):
    """The part of a reply that decides its grade.

    Attributes:
        text: the part as the reply has it; None if nothing could be read.
        rule: which rule chose it, such as `boxed`, `last number` or `whole reply`.
        candidates: how many parts of the reply could have been read by that rule.
        reason: why nothing could be read.

    Example:
        >>> Extraction("7", "last number", 3).data
        {'text': '7', 'rule': 'last number', 'candidates': 3}
        >>> Extraction.unread("the reply has no number").data
        {'candidates': 0, 'reason': 'the reply has no number'}
    """

    text: str | None
    rule: str | None = None
    candidates: int = 1
    reason: str | None = None

    @classmethod
    def unread(cls, reason: str, candidates: int = 0) -> Self:
        """Nothing that could be graded, and why."""
        return cls(None, None, candidates, reason)

    @property
    def data(self) -> dict[str, Any]:
        """As it is stored."""
        return {name: value for name, value in self._asdict().items() if value is not None}
