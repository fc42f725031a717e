"""Row filters: `sex == "F" and age > 30` over the columns of a table. The language is in `core/selector/conditions.py`.

A filter is computed column by column in Arrow; only conditions on JSON and on paths that no Arrow column has go row by
row, with the same result. Missing values (null and NaN) match nothing, and are counted. Where texts are compared with a
number, or with true or false, they are read as such, and words such as NA as missing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import SpecError, nearest, plural, pluralize, warn
from evaluand.core.json_like import surrogate_fault
from evaluand.core.selector.conditions import (
    AllOf,
    AnyOf,
    Choice,
    Comparison,
    Condition,
    Function,
    Literal,
    Negation,
    Operand,
    Path,
    Pattern,
    Presence,
    Truth,
    parse_condition,
    paths_in,
)
from evaluand.core.selector.patterns import anchored
from evaluand.core.selector.steps import quoted
from evaluand.data.columns import join_chunks
from evaluand.data.source import DataNote, missing_column, read_column
from evaluand.data.typed_columns import TypedColumn, is_code, is_missing, is_number, plain_values, type_column
from evaluand.store import tables


@dataclass(frozen=True)
class RowFilter:
    """A condition on the rows of a table.

    Args:
        text: the condition, such as `sex == "F" and age > 30`.

    Raises:
        SpecError: the text is no condition.

    Example:
        >>> rows = pa.RecordBatch.from_pylist([{"sex": "F", "age": 31}, {"sex": "F", "age": None}, {"sex": "M"}])
        >>> RowFilter('sex == "F" and age > 30').mask(rows).to_pylist()
        [True, None, False]
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise SpecError(f"a filter is a text such as age > 30, not {self.text!r}")
        if fault := surrogate_fault(self.text):
            raise SpecError(f"filter {self.text!r}: {fault}; write the character itself")
        object.__setattr__(self, "condition", parse_condition(self.text))

    condition: Condition = None  # type: ignore[assignment]

    @property
    def columns(self) -> list[str]:
        """The columns that its paths begin with."""
        return list(dict.fromkeys(str(path.steps[0]) for path in paths_in(self.condition)))

    def check(self, schema: pa.Schema, names: Mapping[str, str] = {}) -> None:
        """Refuse a filter that does not fit columns.

        Args:
            names: further names of columns → the columns.

        Raises:
            SpecError: a column does not exist, or is compared with a value that its type never has.
        """
        _Columns(schema, names, self.text).check(self.condition)

    def mask(self, batch: pa.RecordBatch, names: Mapping[str, str] = {}) -> pa.BooleanArray:
        """Of each row whether it matches: null if that depends on a missing value.

        Raises:
            SpecError: as `check`.
        """
        columns = _Columns(batch.schema, names, self.text)
        columns.check(self.condition)
        return _Evaluation(batch, columns).evaluate(self.condition)

    def mask_of(
        self,
        batches: Iterable[pa.RecordBatch],
        schema: pa.Schema,
        notes: Mapping[str, str] = {},
        names: Mapping[str, str] = {},
    ) -> pa.BooleanArray:
        """Of each row of a whole table whether it matches, as `mask`; the types of columns are those of all rows.

        Args:
            schema: of the table.
            notes: column → what was converted in it when it was read.
            names: as in `check`.
        """
        self.check(schema, names)
        columns = _Columns(schema, names, self.text)
        needed = list(dict.fromkeys(columns.find(path)[0] for path in paths_in(self.condition)))
        table = pa.Table.from_batches(
            [batch.select(needed) for batch in batches], pa.schema([schema.field(name) for name in needed])
        )
        batch = pa.RecordBatch.from_arrays([join_chunks(column) for column in table.columns], schema=table.schema)
        own = [note for name in needed if (typed := _typed(batch, name)).type == "text" for note in typed.notes]
        for note in (*(notes[name] for name in needed if name in notes), *own):
            warn(f"where: {note}", DataNote)  # those of other types where they are compared
        return self.mask(batch, names)

    def describe_unknown(self, missing: int, total: int, noun: str = "row") -> str:
        """How many of all rows do not match because a value is missing.

        Example:
            >>> RowFilter("age > 30").describe_unknown(1, 6)
            "1 of 6 rows has a missing value in 'age > 30'"
        """
        have = pluralize(missing, "has", "have")
        return f"{missing:,} of {plural(total, noun)} {have} a missing value in {self.text!r}"


_SIGNS: Final = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class _Columns:
    """The columns that paths name: a column of exactly the text of a path comes before the path."""

    def __init__(self, schema: pa.Schema, names: Mapping[str, str], text: str) -> None:
        self.schema, self.names, self.text = schema, names, text

    def find(self, path: Path) -> tuple[str, bool]:
        """The column of a path, and whether it is the full path."""
        for name in (path.text, str(path.steps[0])):
            column = self.names.get(name, name)
            if column in self.schema.names:
                return column, name == path.text or len(path.steps) == 1
        raise self.error(self._describe_missing(path))

    def kind(self, operand: Operand) -> str | None:
        """The kind of the values of an operand: text, number, boolean, time; None if unknown."""
        if isinstance(operand, Literal):
            return _literal_kind(operand.literal)
        if isinstance(operand, Function):
            return None if operand.name == "value" else "number"
        kind = self.type(operand)
        return None if kind is None else _type_kind(kind)

    def type(self, path: Path) -> pa.DataType | None:
        """The Arrow type of a path; None if it leads into JSON or a list."""
        column, full = self.find(path)
        field = self.schema.field(column)
        if tables.is_json(field) or isinstance(field.type, pa.BaseExtensionType):
            return None
        kind = field.type
        for step in () if full else path.steps[1:]:
            if not (pa.types.is_struct(kind) and isinstance(step, str)):
                return None
            if kind.get_field_index(step) < 0:
                known = [kind.field(i).name for i in range(kind.num_fields)]
                raise self.error(f"{path.text}: {column!r} has no {step!r}{nearest(step, known)}")
            kind = kind.field(step).type
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def check(self, condition: Condition) -> None:
        for path in paths_in(condition):
            self.find(path)
        if isinstance(condition, AllOf | AnyOf):
            for each in condition.conditions:
                self.check(each)
        elif isinstance(condition, Negation):
            self.check(condition.condition)
        elif isinstance(condition, Comparison):
            self._check_kinds(condition.left, condition.right, condition.sign)
        elif isinstance(condition, Choice):
            for each in condition.literals:
                self._check_kinds(condition.operand, Literal(each), "==")
        elif isinstance(condition, Pattern):
            if self.kind(condition.operand) not in (None, "text"):
                raise self.error(f"{condition.name} needs a text, and {_describe(condition.operand)} is none")
        elif isinstance(condition, Truth):
            if self.kind(condition.path) not in (None, "boolean", "text"):
                raise self.untrue(condition.path)
        else:
            self.kind(condition.operand)

    def _check_kinds(self, left: Operand, right: Operand, sign: str) -> None:
        one, other = self.kind(left), self.kind(right)
        for kind, side, literal in ((one, left, right), (other, right, left)):
            if kind == "time" and isinstance(literal, Literal):
                self._check_time(side, literal)
                return
        if sign not in ("==", "!=") and "boolean" in (one, other):
            raise self.error("true and false have no order; write == or !=")
        literals = [isinstance(operand, Literal) for operand in (left, right) if self.kind(operand) != "text"]
        if one and other and one != other and not ("text" in (one, other) and all(literals)):  # texts may be numbers
            raise self.unequal(left, right, one, other)

    def _check_time(self, side: Operand, literal: Literal) -> None:
        kind = self.type(side) if isinstance(side, Path) else None
        if kind is not None and _as_time(literal.literal, kind) is None:
            raise self.error(f'{_describe(side)} is a time; compare it with a text such as "2026-01-31"')

    def _describe_missing(self, path: Path) -> str:
        known = [name for name in (*self.schema.names, *self.names) if not name.startswith("_digest")]
        name = str(path.steps[0])
        dotted = [each for each in known if path.text.startswith(each)] or [
            each for each in known if each.startswith(name) and not each.isidentifier()
        ]
        hint = f"; write $[{quoted(dotted[0])}]" if dotted else ""
        message = missing_column(name, known)
        text = f'; write a text in quotes: "{name}"' if len(path.steps) == 1 and "did you mean" not in message else ""
        return f"{message}{hint}{text}"

    def unequal(self, left: Operand, right: Operand, one: str, other: str) -> SpecError:
        kinds = f"{_describe(left)} is {_KIND_WORDS[one]} and {_describe(right)} is {_KIND_WORDS[other]}"
        return self.error(f"{kinds}, which are never equal{_remedy(left, right, one, other)}")

    def untrue(self, path: Path) -> SpecError:
        return self.error(f"{path.text} is not true or false; compare it, or write {path.text} != null")

    def error(self, message: str) -> SpecError:
        return SpecError(f"filter {self.text!r}: {message}")


class _Evaluation:
    """A condition on the rows of one batch."""

    def __init__(self, batch: pa.RecordBatch, columns: _Columns) -> None:
        self.batch, self.columns = batch, columns
        self._values: dict[str, list[Any]] = {}

    def evaluate(self, condition: Condition) -> pa.BooleanArray:
        if isinstance(condition, AllOf | AnyOf):
            join = pc.and_kleene if isinstance(condition, AllOf) else pc.or_kleene
            found = self.evaluate(condition.conditions[0])
            for each in condition.conditions[1:]:
                found = join(found, self.evaluate(each))
            return found
        if isinstance(condition, Negation):
            return pc.invert(self.evaluate(condition.condition))
        found = self._in_columns(condition)
        return self._by_row(condition) if found is None else found

    def _in_columns(self, condition: Any) -> pa.BooleanArray | None:
        """The condition computed from columns; None if it must go row by row."""
        if isinstance(condition, Comparison):
            return self._compare(condition)
        if isinstance(condition, Choice):
            found = [self._compare(Comparison(condition.operand, "==", Literal(each))) for each in condition.literals]
            return None if any(each is None for each in found) else reduce(pc.or_kleene, found)
        if isinstance(condition, Truth):
            column = self._values_of_texts(condition.path, "boolean")
            column = self._column(condition.path) if column is None else column
            if column is not None and _is_text(column.type):
                raise self.columns.untrue(condition.path)
            return column if column is not None and pa.types.is_boolean(column.type) else None
        column = self._column(condition.operand)
        if isinstance(condition, Presence):
            numbers = self._values_of_texts(condition.operand, "number")
            column = column if numbers is None or numbers.null_count == len(numbers) else numbers
            return None if column is None else column.is_null() if condition.missing else column.is_valid()
        if column is None or not _is_text(column.type):
            return None
        return pc.match_substring_regex(column, anchored(condition.pattern, whole=condition.name == "match"))

    def _compare(self, condition: Comparison) -> pa.BooleanArray | None:
        left, right, sign = condition.left, condition.right, condition.sign
        if isinstance(left, Literal):
            left, right, sign = right, left, _MIRRORED.get(sign, sign)
        if not isinstance(right, Literal):
            column, other = self._column(left), self._column(right)
            if column is None or other is None or other.type != column.type or _is_inexact(column.type):
                return None
            return _SIGNS[sign](column, other)
        kind = _literal_kind(right.literal)
        column = self._values_of_texts(left, kind, right) if kind in ("number", "boolean") else None
        converted = column is not None
        column = column if converted else self._column(left)
        if column is None or _is_inexact(column.type):
            return None
        value = _as_scalar(right.literal, column.type)
        if value is None and converted:  # beyond the integers, or infinite beyond all floats
            column, value = column.cast(pa.float64(), safe=False), pa.scalar(float(str(right.literal)))
        return None if value is None else _SIGNS[sign](column, value)

    def _values_of_texts(self, operand: Operand, kind: str | None, compared: Literal | None = None) -> pa.Array | None:
        """The numbers or bools in a column of text, or of JSON with texts among them; None if it holds anything else.

        Raises:
            SpecError: texts that are compared with a number or a bool are words, or numbers and many words.
        """
        if not isinstance(operand, Path) or not self.columns.find(operand)[1]:
            return None
        name, given = self.columns.find(operand)[0], self.columns.kind(operand)
        if given != "text" and self.columns.type(operand) is not None:
            return None
        read = _typed(self.batch, name).as_floats()
        if read.type == "empty":
            return pa.nulls(len(read), pa.bool_() if kind == "boolean" else pa.float64())
        if _KINDS.get(read.type) == kind and read.has_few_words:
            noted = read.describe_words(lambda row: f"row {row}", "counts as missing")
            for note in (*read.notes, *filter(None, [noted])):
                warn(f"where: {note}", DataNote)
            return read.values
        if compared is None:
            return None
        if kind == "number" and read.type in ("integer", "number", "text"):
            texts = [text for text in self._read(name) if isinstance(text, str)]
            numbers = [is_number(text) and not is_code(text) for text in texts]
            pairs = zip(texts, numbers, strict=True)
            word = next((text for text, known in pairs if not known and not is_missing(text)), None)
            if any(numbers) and word is not None:
                raise self.columns.error(f"{_describe(operand)} has {word!r} among numbers; leave such cells empty")
        if given == "text":
            raise self.columns.unequal(operand, compared, "text", str(kind))
        return None

    def _column(self, operand: Operand) -> pa.Array | None:
        """The values of an operand as one column, null for NaN; None if Arrow has no such column."""
        if isinstance(operand, Function):
            column = self._column(operand.path) if operand.name == "length" else None
            if column is not None and _is_text(column.type):
                return pc.utf8_length(column)
            return pc.list_value_length(column) if column is not None and pa.types.is_list(column.type) else None
        if isinstance(operand, Literal) or self.columns.type(operand) is None:
            return None
        name, full = self.columns.find(operand)
        column = self.batch.column(name)
        for step in () if full else operand.steps[1:]:
            column = pc.struct_field(column, [step])
        return plain_values(column)

    def _by_row(self, condition: Any) -> pa.BooleanArray:
        paths = {path: self.columns.find(path) for path in paths_in(condition)}
        names = {str(path.steps[0]) for path, (_, full) in paths.items() if not full or len(path.steps) == 1}
        columns = {name: self._read(self.columns.names.get(name, name)) for name in names}
        literal = {path: self._read(column) for path, (column, full) in paths.items() if full and len(path.steps) > 1}
        found = []
        for i in range(self.batch.num_rows):
            row = {name: values[i] for name, values in columns.items()}
            row |= {path.text: values[i] for path, values in literal.items()}
            found.append(_with_full_names(condition, literal).test(row))
        return pa.array(found, pa.bool_())

    def _read(self, column: str) -> list[Any]:
        if column not in self._values:
            values = read_column(self.batch, column)
            if isinstance(self.batch.column(column).type, pa.JsonType):
                values = [None if value is None else identity.decode(value) for value in values]
            self._values[column] = values
        return self._values[column]


def _typed(batch: pa.RecordBatch, name: str) -> TypedColumn:
    column = batch.column(name)
    if tables.is_json(batch.schema.field(name)):
        column = pa.ExtensionArray.from_storage(pa.json_(pa.string()), column)
    return type_column(name, column)


def _with_full_names(condition: Any, literal: Mapping[Path, Any]) -> Any:
    """The condition in which a path that is the name of a column is one key."""
    if not literal:
        return condition
    parts: dict[str, Operand] = {}
    for name in ("left", "right", "operand", "path"):
        part = getattr(condition, name, None)
        if isinstance(part, Function) and part.path in literal:
            parts[name] = Function(part.name, Path(part.path.text, (part.path.text,)))
        elif isinstance(part, Path) and part in literal:
            parts[name] = Path(part.text, (part.text,))
    return type(condition)(**{**vars(condition), **parts})


def _is_inexact(kind: pa.DataType) -> bool:
    """Whether Arrow does not compare values of a type as they are."""
    return _type_kind(kind) is None or bool(pa.types.is_decimal(kind))


def _as_scalar(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """A literal to compare a column with; None if Arrow cannot compare them exactly."""
    if pa.types.is_temporal(kind):
        return _as_time(value, kind)
    if _literal_kind(value) != _type_kind(kind):
        return None
    if pa.types.is_integer(kind):
        whole = isinstance(value, int) or value.is_integer()
        unsigned = kind == pa.uint64()
        low, high = (0, 2**64) if unsigned else (-(2**63), 2**63)
        return pa.scalar(int(value), pa.uint64() if unsigned else pa.int64()) if whole and low <= value < high else None
    if pa.types.is_floating(kind):
        return pa.scalar(float(value), pa.float64()) if abs(value) <= _EXACT else None
    return pa.scalar(value)


_EXACT: Final = 2**53
_KINDS: Final = {"integer": "number", "number": "number", "boolean": "boolean"}


def _as_time(value: Any, kind: pa.DataType) -> pa.Scalar | None:
    """A text as a time of a type; None if it is none."""
    if not isinstance(value, str):
        return None
    try:
        if pa.types.is_date(kind):
            return pa.scalar(dt.date.fromisoformat(value), kind)
        if pa.types.is_timestamp(kind):
            moment = dt.datetime.fromisoformat(value)
            if kind.tz is not None and moment.tzinfo is None:
                moment = moment.replace(tzinfo=dt.UTC)
            return pa.scalar(moment, kind)
    except (ValueError, pa.ArrowException):
        return None
    return None


def _literal_kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number" if isinstance(value, int | float) else None


def _type_kind(kind: pa.DataType) -> str | None:
    if pa.types.is_boolean(kind):
        return "boolean"
    if _is_text(kind):
        return "text"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "time" if pa.types.is_date(kind) or pa.types.is_timestamp(kind) else None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_KIND_WORDS: Final = {"text": "text", "number": "a number", "boolean": "true or false", "time": "a time"}


def _describe(operand: Operand) -> str:
    if isinstance(operand, Literal):
        return repr(operand.literal) if not isinstance(operand.literal, bool) else str(operand.literal).lower()
    return operand.text if isinstance(operand, Path) else f"{operand.name}({operand.path.text})"


def _remedy(left: Operand, right: Operand, one: str, other: str) -> str:
    """How to write a literal in the type of a column."""
    literal, kind = (left, other) if isinstance(left, Literal) else (right, one)
    if not isinstance(literal, Literal):
        return ""
    if kind == "text":
        return f'; write "{_describe(literal)}"'
    if kind == "number" and isinstance(literal.literal, str):
        return f"; write {literal.literal} without quotes" if is_number(literal.literal) else ""
    return "; write true or false without quotes" if kind == "boolean" else ""


def combine(filters: Sequence[str]) -> str | None:
    """One filter that matches what all of them match; None for none.

    Example:
        >>> combine(["a == 1", "b == 2 or c"])
        '(a == 1) and (b == 2 or c)'
    """
    if len(filters) < 2:
        return filters[0] if filters else None
    return " and ".join(f"({each})" for each in filters)
