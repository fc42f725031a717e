"""Who is told of the steps of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from evaluand.trace.spans import Span


class Watcher:
    """Whoever wants to be told of the steps of a trace as they are taken; see `evaluand.trace.tracers`.

    Attributes:
        gives_ids: whether spans take their ids from it; then it is to be told before all others.
    """

    __slots__ = ()
    gives_ids: ClassVar[bool] = False

    def opened(self, span: Span) -> None:
        """A span was opened; its input and first attributes are there."""

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        """Something was logged: its name, time in nanoseconds, and value as the span keeps it."""

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        """An exception passed through, and the span has an event that tells so; `closed` follows."""

    def changed(self, span: Span, attributes: Mapping[str, Any]) -> None:
        """Attributes were set."""

    def closed(self, span: Span) -> None:
        """A span was closed; its output and status are final."""

    def entered(self, span: Span) -> None:
        """A span became the current one of this context."""

    def left(self, span: Span) -> None:
        """A span is the current one of this context no longer."""
