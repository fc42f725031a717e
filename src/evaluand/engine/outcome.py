"""What comes out of a call, and the end of a run at a failure."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from evaluand.core.errors import TaskError, storable_message

U = TypeVar("U")


class Outcome(NamedTuple):
    """The outcome of one unit.

    Attributes:
        value: what the call returned, or None.
        error: what the call raised, or None.
        started: the start of the first attempt, nanoseconds since the epoch; None if unknown.
        duration: nanoseconds from there to the end of the last attempt; None if unknown.
    """

    value: Any
    error: BaseException | None
    attempts: int
    started: int | None
    duration: int | None


class Failure(NamedTuple):
    """What a failed unit says in its journal line: the class and message of its error, and the error's code."""

    text: str
    code: str | None = None


Call = Callable[[U], Any]
"""Plain or async: unit → value."""

Done = Callable[[U, Outcome], None]


class Aborted(TaskError):
    """The run stopped at a failure, as the policy asks."""


class Unreachable(Aborted):
    """The run stopped because no connection to a server could be made."""


NO_CONNECTION: Final = "connect"
"""The code of the error of a call that could not connect to its server."""


def abort_error(unit: Any, error: BaseException) -> Aborted:
    """The end of a run at the failure of a unit."""
    stopped = Aborted(stop_message(unit, error_text(error)))
    stopped.__cause__ = error
    return stopped


def error_text(error: BaseException) -> str:
    """The class and the message of an error."""
    return f"{type(error).__name__}: {storable_message(error)}"


def stop_message(unit: Any, failure: str) -> str:
    """The message for a failure that stops the run; it need not be the first failure."""
    return f"{unit}: {failure}; this stops the run"
