"""Everything evaluand raises on purpose.

    EvaluandError
    ├── SpecError        you wrote it: an experiment, a task, an option that cannot work
    │   └── ParameterError   parameters of a kind; knows the place of each fault among them
    ├── DataError        the data break their schema; carries every fault found, not only the first
    ├── TaskError        the system under test failed on one example; becomes a row, never a stop
    │   ├── TransientError   a failure that is worth another try (raise it in a task to ask for one)
    │   ├── TaskTimeout      the call took longer than the run allows
    │   └── Skipped          the example is to be left out (raise it in a task to have its row skipped)
    └── EngineError      our machinery failed (disk, lock, worker); the only kind to be retried blindly
        └── NotFound         the store has no such artifact

A `EvaluandWarning` is a warning: nothing is wrong by the rules, but it may not be what was meant.

A message says what is wrong, where (file:row:column, `_index_`, JSON path) and what to do about it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

SHOWN_FAULTS = 20
_MESSAGE = 2000  # characters kept of what an error says


class EvaluandError(Exception):
    """Base of every error evaluand raises on purpose; the command line prints it without a traceback."""


class EvaluandWarning(UserWarning):
    """Something that is allowed may not be what was meant; the command line tells it as a note."""


def warn(message: str, category: type[Warning] = EvaluandWarning) -> None:
    """Warns at the line of the user's that led here, be it a call, `with app` or what is made.

    Python 3.12 knows which files are to be skipped, 3.11 only counts frames. In a thread of evaluand's own there is no
    such line: there the warning names evaluand, and repeats none of its source.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_passed(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        warnings.warn_explicit(message, category, "evaluand", 1, registry=_told)
    else:
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        module = frame.f_globals.get("__name__") or "<unknown>"
        warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, module, registry)


_OWN: Final = os.path.dirname(os.path.abspath(str(sys.modules["evaluand"].__file__))) + os.sep
_STANDARD: Final = os.path.dirname(os.__file__) + os.sep
_told: Final[dict[Any, Any]] = {}


def _is_passed(file: str) -> bool:
    """Whether a file is evaluand's or of the standard library, such as `contextlib` and `threading`."""
    return file.startswith((_OWN, "<frozen")) or (file.startswith(_STANDARD) and "-packages" not in file)


@contextmanager
def doubts() -> Iterator[list[str]]:
    """The texts of the doubts that are told meanwhile, each once, for what is to carry them; they are told on after it.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     with doubts() as told:
        ...         warnings.warn("2 rows are left out", EvaluandWarning)
        >>> told
        ['2 rows are left out']
    """
    texts: list[str] = []
    heard: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", EvaluandWarning)
            yield texts
    finally:
        once = {(str(one.message), one.category, one.filename, one.lineno): one for one in heard}
        texts += dict.fromkeys(str(one.message) for one in once.values() if issubclass(one.category, EvaluandWarning))
        for one in once.values():
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


class SpecError(EvaluandError):
    """What was asked for cannot work as it is written.

    Args:
        message: what is wrong.
        python: what to do about it, for those who call from Python; stands behind the message.
        command: the same for those who call the command line.

    Attributes:
        for_commands: the message as the command line tells it.
    """

    def __init__(self, message: object = "", *, python: str = "", command: str = "") -> None:
        super().__init__(f"{message}; {python}" if python else message)
        self.for_commands = f"{message}; {command}" if command else str(self)


@dataclass(frozen=True)
class Fault:
    """One thing wrong at one place; `code` names its class for programs, where it has one."""

    where: str
    message: str
    code: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class DataError(EvaluandError):
    """The data break their schema.

    Attributes:
        faults: every fault found, in the order of the data.
    """

    def __init__(self, faults: str | Fault | Iterable[Fault]) -> None:
        if isinstance(faults, str):
            faults = Fault("", faults)
        self.faults: tuple[Fault, ...] = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__(self._message())

    @property
    def codes(self) -> tuple[str, ...]:
        """The classes of the faults, each once."""
        return tuple(dict.fromkeys(fault.code for fault in self.faults if fault.code))

    @property
    def code(self) -> str | None:
        """The class of the first fault that has one."""
        return next(iter(self.codes), None)

    def _message(self) -> str:
        lines = [str(fault) for fault in self.faults[:SHOWN_FAULTS]]
        if len(self.faults) > SHOWN_FAULTS:
            lines.append(f"… and {len(self.faults) - SHOWN_FAULTS} more faults")
        return "\n".join(lines)


def with_article(name: str) -> str:
    """A name with its article, for messages: `an int`, `a str`."""
    return f"an {name}" if name[:1].lower() in "aeio" else f"a {name}"


def kind_of(value: Any) -> str:
    """What a value is, in words of JSON where it has them."""
    for types, words in _WORDS.items():
        if isinstance(value, types):
            return words
    return with_article(type(value).__name__)


_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    (int, float): "a number",
    str: "a text",
    (list, tuple): "a list",
    Mapping: "an object",
    type(None): "null",
}


def message_of(said: object) -> str:
    """Text of an error that can be stored, whatever the error is like."""
    try:
        return str(said)[:_MESSAGE].encode("utf-8", "backslashreplace").decode()
    except Exception:  # a __str__ that fails
        return f"{with_article(type(said).__name__)} that cannot be shown"


class ParameterError(SpecError):
    """Parameters that a kind cannot have.

    Attributes:
        faults: where among the parameters, such as `("input_pipeline", 1)`, and what is wrong there.
    """

    def __init__(self, faults: Iterable[tuple[tuple[str | int, ...], str]]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(f"{'.'.join(map(str, place))}: {message}" for place, message in self.faults))

    def __reduce__(self) -> tuple[type[ParameterError], tuple[Any, ...]]:
        """Copies are made of the faults: of its message alone an error cannot be made."""
        return type(self), (self.faults,)


class TaskError(EvaluandError):
    """The system under test failed on one example.

    Attributes:
        code: a short machine-readable reason such as an HTTP status, or None.
        stops: whether the run is to stop because of it, whatever its policy says.
    """

    def __init__(self, message: str, *, code: str | None = None, stops: bool = False) -> None:
        super().__init__(message)
        self.code, self.stops = code, stops


class TransientError(TaskError):
    """A failure that may pass: the call is tried again where the run allows retries.

    Attributes:
        after: seconds that whoever was asked wants to be left alone for, or None.
    """

    def __init__(self, message: str, *, code: str | None = None, after: float | None = None) -> None:
        super().__init__(message, code=code)
        self.after = after


class TaskTimeout(TaskError):
    """The call took longer than the run allows."""


class Skipped(TaskError):
    """The example is to be left out: its row is skipped and counts in no denominator."""


class EngineError(EvaluandError):
    """evaluand's own machinery failed."""


class NotFound(EngineError):
    """The store holds nothing under that id or name."""


# Tracebacks show the name under which users import an error.
for _public in (
    EvaluandError,
    EvaluandWarning,
    SpecError,
    ParameterError,
    DataError,
    TaskError,
    TransientError,
    TaskTimeout,
    Skipped,
    EngineError,
    NotFound,
):
    _public.__module__ = "evaluand"
