"""Watchers, which are called at each step of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from evaluand.trace.spans import Span


class Watcher:
    """Is called at each step of a trace as it happens; before all others, if it sets the ids of spans (`gives_ids`)."""

    __slots__ = ()
    gives_ids: ClassVar[bool] = False

    def opened(self, span: Span) -> None:
        """A span was opened; its input and first attributes are set."""

    def logged(self, span: Span, event: tuple[str, int, Any]) -> None:
        """An event was logged: its name, time in nanoseconds, and value as the span stores it."""

    def failed(self, span: Span, event: tuple[str, int, Any], error: BaseException) -> None:
        """An exception passed through, and the span has an event for it; `closed` follows."""

    def changed(self, span: Span, attributes: Mapping[str, Any]) -> None:
        """Attributes were set."""

    def closed(self, span: Span) -> None:
        """A span was closed; its output and status are final."""

    def entered(self, span: Span) -> None:
        """A span became the current one of this context."""

    def left(self, span: Span) -> None:
        """A span is no longer the current one of this context."""
