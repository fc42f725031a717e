"""Every error and warning that evaluand raises on purpose.

    EvaluandError
    ├── SpecError        what you wrote cannot work: an experiment, a task, an option
    │   └── ParameterError   invalid parameters of a kind, with the path of each
    ├── DataError        the data break their schema; carries every fault, not only the first
    │   └── NotStored        a value was too large, or not data, when it was recorded
    ├── TaskError        the system under test failed on one example; becomes a row, the run goes on
    │   ├── TransientError   a failure worth retrying (raise it in a task to ask for a retry)
    │   ├── TaskTimeout      the call took longer than the run allows
    │   └── Skipped          leave this example out (raise it in a task to skip the row)
    └── EngineError      evaluand's own machinery failed (disk, lock, worker); the only kind to retry blindly
        └── NotFound         the store has no such artifact

`EvaluandWarning` is for what is allowed but may not be what you meant.

A message says what is wrong, where (file:row:column, `_index_`, JSON path) and what to do; types and counts have the
same words everywhere.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import FrameType
from typing import Any, Final

SHOWN_FAULTS = 20
_MOST_BYTES = 4000  # of a message; longer ones quote what somebody else wrote
_LINE = 900  # characters shown of a line of a longer one
_END = 450  # of these, from its end
_MESSAGE = 2000  # characters stored of an error message
_LONGEST = 20_000  # characters of it that are searched for credentials, so that none is cut in half


class EvaluandError(Exception):
    """Base of every error evaluand raises on purpose; the command line prints it without a traceback."""


class EvaluandWarning(UserWarning):
    """What is allowed but may not be what was meant; the command line prints it as a note."""


def warn(message: str, category: type[Warning] = EvaluandWarning) -> None:
    """Warns at the line of user code that led here.

    Python 3.12 can skip files by prefix, 3.11 only counts frames. A thread started by evaluand has no line of user
    code: there the warning names evaluand and shows no source.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        warnings.warn_explicit(message, category, "evaluand", 1, registry=_shown_once)
    else:
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        module = frame.f_globals.get("__name__") or "<unknown>"
        warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, module, registry)


_OWN: Final = os.path.dirname(os.path.abspath(str(sys.modules["evaluand"].__file__))) + os.sep
_STANDARD: Final = os.path.dirname(os.__file__) + os.sep
_shown_once: Final[dict[Any, Any]] = {}


def _is_internal(file: str) -> bool:
    """Whether a file belongs to evaluand or to the standard library, such as `contextlib`."""
    return file.startswith((_OWN, "<frozen")) or (file.startswith(_STANDARD) and "-packages" not in file)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collects the texts of evaluand's warnings raised in the block, each once; issues them again after it.

    Example:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     with collect_warnings() as texts:
        ...         warnings.warn("2 rows are left out", EvaluandWarning)
        >>> texts
        ['2 rows are left out']
    """
    texts: list[str] = []
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", EvaluandWarning)
            yield texts
    finally:
        once = {(str(one.message), one.category, one.filename, one.lineno): one for one in caught}
        texts += dict.fromkeys(str(one.message) for one in once.values() if issubclass(one.category, EvaluandWarning))
        for one in once.values():
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _shorten(message: str) -> str:
    """A message that somebody can read: of a very long one the middles of long lines and the last lines are counted."""
    if _n_bytes(message) <= _MOST_BYTES:
        return message
    lines = message.split("\n")
    return _fit(lines, len(lines), "lines")


def _fit(lines: Sequence[str], total: int, noun: str) -> str:
    """As many lines as can be read; the others are counted."""
    if sum(_n_bytes(line) + 1 for line in lines) > _MOST_BYTES:
        lines = [*_readable_lines(lines)]
    more = [f"… and {total - len(lines)} more {noun}"] if total > len(lines) else []
    return "\n".join([*lines, *more])


def _readable_lines(lines: Iterable[str]) -> Iterator[str]:
    from evaluand.core.redaction import redact  # only of long messages, before what is cut hides a part of a credential

    left = _MOST_BYTES
    for line in lines:
        if len(line) > _LINE:
            start, end = redact(line[:_LONGEST])[: _LINE - _END], redact(line[-_LONGEST:])[-_END:]
            line = f"{start} [… {len(line) - _LINE:,} characters …] {end}"
        left -= _n_bytes(line) + 1
        if left < 0:
            return
        yield line


def _n_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


class SpecError(EvaluandError):
    """What you wrote cannot work.

    Args:
        python: what to do about it in Python; appended to the message.
        command: what to do about it on the command line.

    Attributes:
        for_commands: the message as the command line shows it.
    """

    def __init__(self, message: object = "", *, python: str = "", command: str = "") -> None:
        shown = _shorten(str(message))
        super().__init__(f"{shown}; {python}" if python else shown)
        self.for_commands = f"{shown}; {command}" if command else str(self)


@dataclass(frozen=True)
class Fault:
    """One fault at one place; `code` is its class for programs, if it has one."""

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
        """The distinct codes of the faults."""
        return tuple(dict.fromkeys(fault.code for fault in self.faults if fault.code))

    @property
    def code(self) -> str | None:
        """The first code, or None."""
        return next(iter(self.codes), None)

    def _message(self) -> str:
        lines = [str(fault) for fault in self.faults[:SHOWN_FAULTS]]
        return _fit(lines, len(self.faults), "faults")


class NotStored(DataError):
    """A value was not stored, because it is too large or not data, so nothing can be computed from it."""


def first_fault(error: EvaluandError) -> str:
    """The message of an error as one fault: the first that it carries, and how many more there are.

    Example:
        >>> first_fault(DataError([Fault("_index_ 0", "is empty"), Fault("_index_ 7", "is empty")]))
        '_index_ 0: is empty (and 1 more)'
    """
    faults = error.faults if isinstance(error, DataError) else (error,)
    return f"{faults[0]} (and {len(faults) - 1:,} more)" if len(faults) > 1 else str(faults[0])


def with_article(name: str) -> str:
    """A name with its article, for messages: `an int`, `a str`."""
    return f"an {name}" if name[:1].lower() in "aeio" else f"a {name}"


def kind_of(value: Any) -> str:
    """The type of a value in words, with its article: as JSON names it, or by its Python class."""
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


def described(value: object) -> str:
    """A value in a few words, for reasons and messages.

    Example:
        >>> described("18 apples"), described(18), described([1, 2]), described(None)
        ("the text '18 apples'", 'the integer 18', 'a list', 'null')
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return f"the text {value if len(value) <= _SHOWN_TEXT else value[: _SHOWN_TEXT - 1] + '…'!r}"
    if isinstance(value, int):
        return f"the integer {value}" if value.bit_length() <= _SHOWN_BITS else "a very long integer"
    if isinstance(value, float):
        return f"the number {value}"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if isinstance(value, Mapping) else f"{with_article(type(value).__name__)}"


_SHOWN_TEXT: Final = 40
_SHOWN_BITS: Final = 128


def storable_message(error: object) -> str:
    """The message of an error as text that can be stored: cut, without credentials and lone surrogates."""
    from evaluand.core.redaction import redact  # only where code failed

    try:
        text = str(error)[:_LONGEST].encode("utf-8", "backslashreplace").decode()
        return redact(text)[:_MESSAGE]
    except Exception:  # a __str__ that fails
        return f"{with_article(type(error).__name__)} that cannot be shown"


def describe_error(error: BaseException) -> str:
    """An error of someone's code in one line: its class, its message, and the line that raised it.

    Example:
        >>> describe_error(ValueError("no rows"))
        'ValueError: no rows'
    """
    import traceback  # only where code failed

    frames = traceback.extract_tb(error.__traceback__)
    text = " ".join(storable_message(error).split())
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{f': {text}' if text else ''}{where}"


class ParameterError(SpecError):
    """Invalid parameters of a kind.

    Attributes:
        faults: pairs of a path among the parameters, such as `("input_pipeline", 1)`, and a message.
    """

    def __init__(self, faults: Iterable[tuple[tuple[str | int, ...], str]]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(f"{'.'.join(map(str, place))}: {message}" for place, message in self.faults))

    def __reduce__(self) -> tuple[type[ParameterError], tuple[Any, ...]]:
        """Copies are made from the faults; the message alone is not enough."""
        return type(self), (self.faults,)


class TaskError(EvaluandError):
    """The system under test failed on one example.

    Attributes:
        code: a short machine-readable reason, such as an HTTP status, or None.
        stops: whether it stops the run, whatever the policy says.
    """

    def __init__(self, message: str, *, code: str | None = None, stops: bool = False) -> None:
        super().__init__(message)
        self.code, self.stops = code, stops


class TransientError(TaskError):
    """A failure that may pass: the call is retried if the run allows retries.

    Attributes:
        after: seconds to wait before the retry, as the service asks, or None.
    """

    def __init__(self, message: str, *, code: str | None = None, after: float | None = None) -> None:
        super().__init__(message, code=code)
        self.after = after


class TaskTimeout(TaskError):
    """The call took longer than the run allows."""


class Skipped(TaskError):
    """Leave this example out: its row is skipped and counts in no denominator."""


class EngineError(EvaluandError):
    """evaluand's own machinery failed."""


class NotFound(EngineError):
    """The store has nothing under this id or name."""


def alternatives(name: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown name: the nearest name, and all known names if they are few.

    Example:
        >>> alternatives("acuracy", ["accuracy", "mean"])
        " (did you mean 'accuracy'?); known: accuracy, mean"
    """
    import difflib  # only for a wrong name: it takes a while to import

    near = nearest(name, known)
    if len(known) <= _FEW:
        return f"{near}; known: {', '.join(known)}"
    similar = difflib.get_close_matches(name, known, n=_SIMILAR, cutoff=0.0)
    return near or f"; of {len(known)} names the most similar are {', '.join(similar)}"


_FEW = 15
_SIMILAR = 5


def nearest(name: str, known: Any) -> str:
    """` (did you mean 'x'?)` for the most similar known name, else the shortest with that prefix, else nothing.

    Example:
        >>> nearest("acuracy", ["accuracy", "mean"]), nearest("bas", ["baseline"]), nearest("f1", ["mean"])
        (" (did you mean 'accuracy'?)", " (did you mean 'baseline'?)", '')
    """
    return _nearest(name, tuple(known))


@lru_cache(maxsize=256)
def _nearest(name: str, known: tuple[Any, ...]) -> str:
    """Cached, because the same name may be asked for in every row."""
    import difflib

    begun = sorted((other for other in known if name and other.startswith(name)), key=len)
    close = difflib.get_close_matches(name, known, n=1) or begun
    return f" (did you mean {close[0]!r}?)" if close else ""


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun, in the singular for exactly one.

    Args:
        count: how many.
        noun: for one.
        nouns: for any other number; `noun` with an s if None.

    Example:
        >>> plural(1, "row"), plural(1200, "row"), plural(0, "query", "queries")
        ('1 row', '1,200 rows', '0 queries')
    """
    return f"{count:,} {pluralize(count, noun, nouns)}"


def pluralize(count: int, noun: str, nouns: str | None = None) -> str:
    """The noun alone, in the form that suits a count.

    Example:
        >>> pluralize(1, "value"), pluralize(3, "value")
        ('value', 'values')
    """
    return noun if count == 1 else nouns or f"{noun}s"


def singular(kind: str) -> str:
    """The word for one thing, from the plural under which they are grouped."""
    return kind.removesuffix("s").replace("_", " ")


for _public in [*globals().values()]:
    if isinstance(_public, type) and issubclass(_public, EvaluandError | EvaluandWarning):
        _public.__module__ = "evaluand"  # tracebacks show the name under which users import an error
