"""Whether an answer is the expected JSON, and where it first differs.

Text is always JSON text here, in the output as in what was expected: a text that is expected as such is written with
its quotes. An output without JSON is a wrong answer, not a missing one, so it scores 0 and the explanation says at
which line and column it breaks. Strictly JSON: no comments, no `NaN`, no key twice in an object.
"""

import json
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final

from evaluand.core.errors import DataError, described
from evaluand.core.json_like import escape_surrogates
from evaluand.core.parameters import Within
from evaluand.evaluation.scorer import (
    ARITHMETIC,
    RIGHT,
    ExpectationScorer,
    Score,
    are_equal,
    as_decimal,
    is_number,
    unread,
    wrong_parameter,
)
from evaluand.models.extraction import COLUMN, Extraction
from evaluand.models.structured import json_values

_Path = tuple[str | int | None, ...]
"""The steps from the root: a key, an index, or None for any index."""
_Difference = tuple[str, str]
"""Where (a path without its `$`) and what."""


@dataclass(frozen=True, kw_only=True)
class JsonEquality(ExpectationScorer):
    """1 where the output is the expected JSON, else 0, with the first difference as the explanation.

    Outputs and expected values are JSON text or data. The order of keys never matters. Numbers compare by value, `1`
    and `1.0` are equal; `true` and `1` are not. Abstains where nothing was expected.

    Attributes:
        ignore: what is not compared: names of keys, wherever they stand (`id`), and paths that end in a key
            (`$.meta.time`, `$.items[*].id`, `$["a b"]`).
        unordered: lists are equal when they hold the same items in any order. With a tolerance every item is compared
            with every other, which takes long for lists of thousands.
        tolerance: the largest difference between two numbers that still counts as equal.
        fenced: read the JSON within an answer that has other text: that of fenced code blocks (`json` or no language),
            or else its objects and the lists on lines of their own. If these differ, the scorer abstains.

    Raises:
        SpecError: a path to ignore cannot be read.

    Example:
        >>> JsonEquality().score('{"a": [1, 2, 3], "b": null}', {"b": None, "a": [1, 2, 4]}).explanation
        '$.a[2]: 3 ≠ 4'
    """

    kind = "json_equality"
    version = 2
    cheap = True
    ranges: ClassVar = {"value": (0.0, 1.0)}
    columns: ClassVar = {COLUMN: "json"}

    ignore: tuple[str, ...] = ()
    unordered: bool = False
    tolerance: Annotated[float, Within(0)] = 0
    fenced: bool = True

    def __post_init__(self) -> None:
        entries: Any = self.ignore
        if not isinstance(entries, list | tuple) or not all(isinstance(each, str) and each for each in entries):
            raise wrong_parameter(self, "ignore", "give a list of keys and paths, such as ['id', '$.meta.time']")
        object.__setattr__(self, "ignore", tuple(sorted(set(self.ignore))))
        super().__post_init__()
        _ = self._ignored_paths

    def grade(self, output: Any, truth: Any, *others: Any) -> Score:
        """Compares one answer; a DataError if either side is nested too deeply."""
        if not isinstance(output, str):
            return self._compared(output, truth)
        try:
            answer, read = self._parsed(output), Extraction(output, "whole reply")
        except ValueError as error:
            values = _within(output, isinstance(truth, Mapping)) if self.fenced else {}
            if len(values) > 1:
                return unread("the reply has several JSON values that differ", len(values))
            if not values:
                read = Extraction.unread(f"not JSON: {error}")
                return Score(0.0, explanation=read.reason, columns={COLUMN: read.data})
            [(text, answer)] = values.items()
            read = Extraction(text, "JSON in the reply")
        return self._compared(answer, truth)._replace(columns={COLUMN: read.data})

    def read_expected(self, expected: Any) -> Any:
        try:
            return self._parsed(expected) if isinstance(expected, str) else expected
        except ValueError as error:
            problem = f"the expected value is {described(expected)}, which is not JSON: {error}"
            raise DataError(f"{problem}; quote it if it is a text") from None

    def _parsed(self, text: str) -> Any:
        return _parsed(_unfenced(text) if self.fenced else text)

    def _compared(self, answer: Any, truth: Any) -> Score:
        try:
            if self.ignore:
                answer, truth = (_pruned(side, self._ignored_keys, self._ignored_paths) for side in (answer, truth))
            difference = self._difference(answer, truth)
        except RecursionError:
            raise DataError("the answer or the expected value is nested too deeply to be compared") from None
        if difference is None:
            return RIGHT
        path, message = difference
        return Score(0.0, explanation=escape_surrogates(f"${path}: {message}"))

    @cached_property
    def _ignored_keys(self) -> frozenset[str]:
        return frozenset(entry for entry in self.ignore if not entry.startswith("$"))

    @cached_property
    def _ignored_paths(self) -> tuple[_Path, ...]:
        return tuple(self._path(entry) for entry in self.ignore if entry.startswith("$"))

    def _path(self, entry: str) -> _Path:
        path = _path_of(entry)
        if not path or not isinstance(path[-1], str):
            need = f'{entry!r} is not a path to a key; write it like $.meta.time, $.items[*].id or $["a b"]'
            raise wrong_parameter(self, "ignore", need)
        return path

    def _difference(self, a: Any, b: Any) -> _Difference | None:
        """Where `a`, the answer, first departs from `b`, in the order of `b`."""
        if isinstance(b, Mapping) and isinstance(a, Mapping):
            return self._difference_of_objects(a, b)
        if isinstance(b, list | tuple) and isinstance(a, list | tuple):
            return self._difference_of_sets(a, b) if self.unordered else self._difference_of_lists(a, b)
        return None if self._equal_scalars(a, b) else ("", f"{_shown(a)} ≠ {_shown(b)}")

    def _difference_of_objects(self, a: Mapping[Any, Any], b: Mapping[Any, Any]) -> _Difference | None:
        for key, item in b.items():
            if key not in a:
                return _step(key), "missing"
            inner = self._difference(a[key], item)
            if inner is not None:
                return _step(key) + inner[0], inner[1]
        extra = next((key for key in a if key not in b), None)
        return None if extra is None else (_step(extra), "not expected")

    def _difference_of_lists(self, a: Sequence[Any], b: Sequence[Any]) -> _Difference | None:
        for i, (left, right) in enumerate(zip(a, b, strict=False)):
            inner = self._difference(left, right)
            if inner is not None:
                return f"[{i}]{inner[0]}", inner[1]
        return _difference_of_lengths(a, b)

    def _difference_of_sets(self, a: Sequence[Any], b: Sequence[Any]) -> _Difference | None:
        if self.tolerance:
            lone = _unmatched([[j for j, left in enumerate(a) if not self._difference(left, right)] for right in b])
        else:
            lone = _first_beyond(b, a)
        if lone is not None:
            return f"[{lone}]", f"no item equals {_shown(b[lone])}"
        return _difference_of_lengths(a, b)

    def _equal_scalars(self, a: Any, b: Any) -> bool:
        return are_equal(a, b) or (self.tolerance > 0 and is_number(a) and is_number(b) and self._close(a, b))

    def _close(self, a: float, b: float) -> bool:
        left, right = as_decimal(a), as_decimal(b)
        if not left.is_finite() or not right.is_finite():
            return False
        return ARITHMETIC.subtract(left, right).copy_abs() <= as_decimal(self.tolerance)


_FENCE: Final = "```"
_SHOWN_TEXT: Final = 40


def _unfenced(text: str) -> str:
    start = len(text) - len(text.lstrip())
    head, newline, rest = text[start:].rstrip().partition("\n")
    if not newline or not head.startswith(_FENCE) or not rest.endswith(_FENCE):
        return text
    if head.removeprefix(_FENCE).strip().casefold() not in ("", "json"):
        return text
    lines_above = text.count("\n", 0, start) + 1  # kept, so that errors tell the line of the answer
    return "\n" * lines_above + rest.removesuffix(_FENCE)


def _within(reply: str, is_object: bool) -> dict[str, Any]:
    """The different values in a reply by their text, of the expected kind if there are any; none beside a fault."""
    read = [*json_values(reply)]
    values = [] if any(fault for _, fault in read) else [value for value, _ in read]
    fitting = [value for value in values if isinstance(value, Mapping) == is_object]
    return {json.dumps(value, sort_keys=True, ensure_ascii=False): value for value in fitting or values}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refused_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refused_constant(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {_shown(twice)} occurs twice in one object")
    return result


def _path_of(entry: str) -> _Path:
    """The steps of a path; empty where it cannot be read."""
    steps: list[str | int | None] = []
    end = 1
    for match in _STEP.finditer(entry, end):
        if match.start() != end:
            return ()
        name, index, quoted = match.groups()
        steps.append(name or (quoted[1:-1] if quoted else None if index == "*" else int(index)))
        end = match.end()
    return tuple(steps) if end == len(entry) else ()


def _pruned(value: Any, keys: frozenset[str], paths: Sequence[_Path]) -> Any:
    """The value without the keys that are not compared."""
    if isinstance(value, Mapping):
        gone = keys.union(path[0] for path in paths if len(path) == 1 and isinstance(path[0], str))
        return {
            key: _pruned(item, keys, [path[1:] for path in paths if len(path) > 1 and path[0] == key])
            for key, item in value.items()
            if key not in gone
        }
    if isinstance(value, list | tuple):
        return [
            _pruned(item, keys, [path[1:] for path in paths if path[0] is None or path[0] == i])
            for i, item in enumerate(value)
        ]
    return value


def _difference_of_lengths(a: Sequence[Any], b: Sequence[Any]) -> _Difference | None:
    return None if len(a) == len(b) else ("", f"{len(a)} items ≠ {len(b)} items")


def _first_beyond(items: Sequence[Any], others: Sequence[Any]) -> int | None:
    """The first item that occurs more often than among the others."""
    left = Counter(map(_hashable, others))
    for i, item in enumerate(items):
        key = _hashable(item)
        if not left[key]:
            return i
        left[key] -= 1
    return None


def _hashable(value: Any) -> Hashable:
    """A key that two values share when they are equal with the order of lists left aside."""
    if isinstance(value, Mapping):
        return "object", frozenset((key, _hashable(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return "list", frozenset(Counter(map(_hashable, value)).items())
    if is_number(value):
        return "number", "NaN" if value != value else value
    return type(value), value


def _unmatched(options: Sequence[Sequence[int]]) -> int | None:
    """The first of several items for which no partner is left, from the possible partners of each.

    Partners are re-assigned along augmenting paths: with a tolerance, who takes the first that fits may take the only
    one that fits another.
    """
    owner: dict[int, int] = {}
    partner: dict[int, int] = {}
    for start in range(len(options)):
        asked: dict[int, int] = {}
        queue, free = [start], None
        for item in queue:
            new = {other: item for other in options[item] if other not in asked}
            asked |= new
            free = next((other for other in new if other not in owner), None)
            if free is not None:
                break
            queue += [owner[other] for other in new]
        if free is None:
            return start
        while free is not None:  # only the first item had no partner
            item = asked[free]
            owner[free] = item
            partner[item], free = free, partner.get(item)
    return None


def _step(key: Any) -> str:
    text = str(key)
    return f".{text}" if text.isidentifier() else f"[{json.dumps(text, ensure_ascii=False)}]"


def _shown(value: Any) -> str:
    """A value as JSON, in short."""
    if isinstance(value, str):
        text = value if len(value) <= _SHOWN_TEXT else value[: _SHOWN_TEXT - 1] + "…"
        return json.dumps(text, ensure_ascii=False)
    if isinstance(value, float):
        return json.dumps(value)
    return described(value).removeprefix("the integer ")


_STEP: Final = re.compile(r"""\.([^.\[\]"']+)|\[(\*|\d+)\]|\[("[^"]+"|'[^']+')\]""")
