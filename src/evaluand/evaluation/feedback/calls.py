"""The calls of a feedback's implementation: what each returned or raised, and how a table stores them.

A stored call is `{args, ret, meta, error}`; empty parts are not stored. Arguments are stored only where those of all
calls of a row are short together. Long ones are in the record already, and the calls are in the order in which the
values selected there are combined, so they are left out and selected again when the calls are read. Where several
arguments have several values, the first call has the `order` of the arguments: the last one changes with each call.

Why long arguments are not replaced by references: a reference would have to be distinguished from values that look
like one, and with three feedbacks of five contexts the references alone take as much space as the rest of a record.
"""

import itertools
import numbers
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, Final

from evaluand.core.errors import DataError, EvaluandError, Skipped, TaskError, described, storable_message
from evaluand.core.identity import encode, restore
from evaluand.core.json_like import escape_surrogates, to_json_like
from evaluand.core.selector import Selector
from evaluand.evaluation.feedback.arguments import PLAIN
from evaluand.evaluation.feedback.selection import combine
from evaluand.evaluation.scorer import CallReader


class Calls:
    """The calls of an implementation.

    Attributes:
        records: each call in order, as `{args, ret, meta, error}`.
        values: what the calls that have a value returned, as floats, lists of floats or dictionaries of floats.
        errors: what failed calls raised.
        skipped: what skipped calls raised.
        undefined: the reason of each call that returned no value.
    """

    __slots__ = ("errors", "function", "records", "skipped", "strict", "undefined", "values")

    def __init__(self, function: str, strict: bool) -> None:
        self.function = function
        self.strict = strict
        self.records: list[dict[str, Any]] = []
        self.values: list[Any] = []
        self.errors: list[Exception] = []
        self.skipped: list[Skipped] = []
        self.undefined: list[str] = []

    def add(self, args: dict[str, Any], returned: Any) -> None:
        """Records a call that returned; a DataError if that is not a value, with or without metadata."""
        meta: dict[str, Any] = {}
        if isinstance(returned, tuple):
            returned, meta = self._split(returned)
        if returned is None and meta:
            ret = None
            self.undefined.append(str(meta.get("reason", "no value")))
        else:
            ret = returned if type(returned) is float else self._to_floats(returned)
            self.values.append(ret)
        self.records.append({"args": args, "ret": ret, "meta": meta, "error": None})

    def add_failed(self, args: dict[str, Any], error: Exception) -> None:
        """Records a call that raised; raises errors that stop the run."""
        if isinstance(error, TaskError) and error.stops:
            raise error
        if isinstance(error, Skipped):
            self.skipped.append(error)
        else:
            self.errors.append(error)
        self.records.append({"args": args, "ret": None, "meta": {}, "error": error_line(error)})

    @property
    def failures(self) -> str:
        """How many calls failed, and why the first did; empty where none did."""
        return self._count("failed", [error_line(error) for error in self.errors])

    @property
    def gaps(self) -> str:
        """How many calls have no value although they did not fail, and why the first has none."""
        skipped = self._count("were skipped", [error_line(error) for error in self.skipped])
        return "; ".join(filter(None, (self._count("have no value", self.undefined), skipped)))

    def _count(self, outcome: str, reasons: Sequence[str]) -> str:
        if not reasons or len(self.records) == 1:
            return reasons[0] if reasons else ""
        return f"{len(reasons)} of {len(self.records)} calls {outcome}: {reasons[0]}"

    def _split(self, returned: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
        if len(returned) != 2 or not isinstance(returned[1], Mapping):
            items = ", ".join(described(value) for value in returned)
            raise DataError(f"{self.function} returned ({items}); a tuple must be a value and a dictionary of metadata")
        return returned[0], dict(returned[1])

    def _to_floats(self, returned: Any) -> Any:
        number = to_number(returned)
        if number is not None:
            return number
        if isinstance(returned, Mapping) and returned:
            return {
                escape_surrogates(str(key)): self._to_float(value, f"under {key!r}") for key, value in returned.items()
            }
        if isinstance(returned, list) and returned:
            return [self._to_float(value, f"at place {place}") for place, value in enumerate(returned)]
        what = "an empty list or object" if isinstance(returned, list | Mapping) else described(returned)
        raise DataError(
            f"{self.function} returned {what}; it must return a number, a list of numbers or a dictionary of numbers, "
            "alone or in a tuple with a dictionary of metadata"
        )

    def _to_float(self, value: Any, where: str) -> float:
        number = to_number(value)
        if number is None or (self.strict and not isinstance(value, float)):
            kind = "float" if self.strict else "number"
            raise DataError(f"{self.function} returned {described(value)} {where}; it must be a {kind}")
        return number


_NUMBERS: Final = frozenset((float, int, bool))


def to_number(value: Any) -> float | None:
    """A number of any kind as a float; None for anything else."""
    if type(value) not in _NUMBERS and hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # of NumPy
        value = value.item()
    if not isinstance(value, numbers.Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:  # more digits than a float has
        return None


def error_line(error: Exception) -> str:
    """An error in one line, as it is stored."""
    return f"{type(error).__name__}: {storable_message(error)}"


SHORT: Final = 100
"""The most characters that the stored arguments of a row have together."""


def pack_calls(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Calls as they are stored; values that are not data are described, lone surrogates are escaped.

    Example:
        >>> calls = [{"args": {"text": text}, "ret": 1.0, "meta": {}, "error": None} for text in ("Emma", "Persuasion")]
        >>> pack_calls(calls)
        [{'args': {'text': 'Emma'}, 'ret': 1.0}, {'args': {'text': 'Persuasion'}, 'ret': 1.0}]
        >>> calls[1]["args"]["text"] *= 10
        >>> pack_calls(calls)
        [{'ret': 1.0}, {'ret': 1.0}]
    """
    short = _are_short(calls)
    packed = []
    for call in calls:
        written: dict[str, Any] = {}
        for name, part in (("args", call["args"] if short else {}), ("meta", call["meta"])):
            if part:
                written[name] = {escape_surrogates(str(key)): _to_data(value) for key, value in part.items()}
        written["ret"] = call["ret"]
        if call["error"] is not None:
            written["error"] = call["error"]
        packed.append(written)
    if not short and not _is_one_row(calls):
        packed[0]["order"] = list(calls[0]["args"])
    return packed


def call_reader(spec: Mapping[str, Any]) -> CallReader | None:
    """What reads the stored calls of a feedback; None for the identity of any other scorer, or one that is forged.

    Example:
        >>> call_reader({"selectors": {"text": 3}}) is None
        True
    """
    selectors = spec.get("selectors")
    is_feedback = isinstance(selectors, Mapping) and all(isinstance(text, str) for text in selectors.values())
    return partial(read_calls, spec) if is_feedback else None


def read_calls(
    spec: Mapping[str, Any], stored: Any, source: Callable[[], Mapping[str, Any] | None]
) -> list[dict[str, Any]]:
    """Stored calls with all their parts: `{args, ret, meta, error}` each.

    Args:
        spec: the identity of the feedback, which has its selectors.
        stored: a cell of the column `calls`, as any JSON parser reads it.
        source: returns what was judged, or None where that is not available; called only where arguments were left
            out. Arguments that cannot be selected again are shown as `{"selected": "a value of …"}`.

    Example:
        >>> spec = {"selectors": {"text": "rets[:]"}, "combinations": "product"}
        >>> read_calls(spec, [{"ret": 0.5}, {"ret": 1.0}], lambda: {"rets": ["a", "b"]})[1]
        {'args': {'text': 'b'}, 'ret': 1.0, 'meta': {}, 'error': None}
        >>> read_calls(spec, [{"ret": 0.5}, {"ret": 1.0}], lambda: None)[1]["args"]
        {'text': {'selected': 'a value of rets[:]'}}
    """
    calls = restore(stored)
    selected: list[dict[str, Any]] | None = None
    complete = []
    for number, call in enumerate(calls):
        if "args" not in call and selected is None:
            selected = _select_arguments(spec, calls[0].get("order"), source(), len(calls))
        args = call["args"] if "args" in call else (selected or [])[number]
        complete.append({"args": args, "ret": call["ret"], "meta": call.get("meta", {}), "error": call.get("error")})
    return complete


def _are_short(calls: Sequence[Mapping[str, Any]]) -> bool:
    left = SHORT
    for call in calls:
        for name, value in call["args"].items():
            left -= len(name) + (len(value) if type(value) is str else len(encode(_to_data(value))))
            if left < 0:
                return False
    return True


def _is_one_row(calls: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one argument has another value in each call, so that the others have one value each."""
    for name in calls[0]["args"]:
        values = {id(call["args"][name]): call["args"][name] for call in calls}  # few, where there are many calls
        distinct = {value if type(value) is str else encode(_to_data(value)) for value in values.values()}
        if len(values) == len(calls) == len(distinct):
            return True
    return False


def _to_data(value: Any) -> Any:
    if type(value) in PLAIN and (type(value) is not str or value.isascii()):
        return value
    try:
        encode(value)
    except DataError:
        return to_json_like(value)
    return value


def _select_arguments(
    spec: Mapping[str, Any], order: Sequence[str] | None, source: Mapping[str, Any] | None, n_calls: int
) -> list[dict[str, Any]]:
    """The arguments of `n_calls` calls, selected again; placeholders where the source does not give that many."""
    selectors: Mapping[str, str] = spec["selectors"]
    with suppress(EvaluandError, KeyError):
        if source is not None:
            values = {name: Selector(selectors[name]).select(source) for name in order or selectors}
            arguments = list(itertools.islice(combine(values, spec["combinations"]), n_calls + 1))
            if len(arguments) == n_calls:
                return arguments
    return [{name: {"selected": f"a value of {text}"} for name, text in selectors.items()}] * n_calls
