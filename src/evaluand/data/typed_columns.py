"""How a column is read: one type, decided from all of its cells, whatever the column is used for.

Numbers are equal by value, whether they were written as 1, 1.0 or "1". Some words among numbers, or among booleans, do
not make a column text: they are kept apart, and whoever uses the column says whether they are labels or missing values.
What was converted is said in notes.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, plural, pluralize
from evaluand.data.columns import join_chunks, plain_type
from evaluand.store.tables import BATCH_ROWS

TYPES: Final = ("integer", "number", "boolean", "text", "list")
"""The types that a column can be declared to have."""

MISSING: Final = ("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "?", ".")
"""Words for a missing value, in any case."""

IS_MISSING: Final = r"^\s*(?i:" + "|".join(map(re.escape, MISSING)) + r")\s*$"
"""A pattern of them."""

_FORMS: Final = {
    pa.int64(): r"^-?(0|[1-9][0-9]{0,17}|[1-8][0-9]{18})$",
    pa.float64(): r"^-?((0|[1-9][0-9]{0,14})(\.[0-9]+)?|\.[0-9]+)([eE][+-]?([0-9]{1,2}|[12][0-9]{2}))?$",
    pa.bool_(): r"^(?i:true|false)$",
}
"""Type → what all of its cells look like in text: numbers that lose no digit before the point and do not overflow."""

_NUMBER: Final = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*$"
_CODE: Final = r"^\s*[+-]?(0[0-9]|[0-9]{16,}\s*$)"
_WHOLE: Final = r"^\s*[+-]?(0|[1-9][0-9]{0,17}|[1-8][0-9]{18})\s*$"  # of 64 bits
_LARGE: Final = r"^\s*[+-]?[1-9][0-9]{15,}\s*$"
_INFINITE: Final = r"^\s*[+-]?(?i:inf|infinity)\s*$"
_BOOLEAN: Final = r"^\s*(?i:true|false)\s*$"
_LIST: Final = r"^\s*\[.*\]\s*$"
_GAP: Final = "[ '\u00a0\u202f]"
_GROUPED: Final = rf"([0-9]{{1,3}}((,[0-9]{{3}})+|(\.[0-9]{{3}})+|({_GAP}[0-9]{{3}})+))"
_MARKED: Final = rf"^\s*[$€£¥]?\s?[+-]?[$€£¥]?({_GROUPED}|[0-9]+)([.,][0-9]+)?\s?[$€£¥%]?\s*$"
_EXACT: Final = 2**53
_FEW_WORDS: Final = 2
_MOST_WORDS: Final = 0.05
_JSON: Final = pa.json_(pa.string())
_NAN: Final = identity.encode(float("nan")).decode()

_NUMBER_OF_TEXT: Final = re.compile(_NUMBER)
_CODE_OF_TEXT: Final = re.compile(_CODE)


def is_number(text: str) -> bool:
    """Whether a text is a finite number.

    Example:
        >>> is_number(" 1e-3"), is_number("1,5"), is_number("01")
        (True, False, True)
    """
    return _NUMBER_OF_TEXT.match(text) is not None


def is_code(text: str) -> bool:
    """Whether digits name something: with a leading zero, or more of them than a number holds."""
    return _CODE_OF_TEXT.match(text) is not None


def id_text(text: str) -> str:
    """An id as text, alike where ids are equal numbers, as in `TypedColumn.texts`.

    Example:
        >>> id_text("7"), id_text("7.0"), id_text("07"), id_text("a7")
        ('7', '7', '07', 'a7')
    """
    if text.isdecimal() or not is_number(text) or is_code(text):
        return text
    return number_text(float(text))


def is_missing(text: str) -> bool:
    """Whether a text is a word for a missing value."""
    return text.strip().lower() in MISSING


@dataclass(frozen=True, eq=False)
class TypedColumn:
    """A column with its type.

    Attributes:
        type: `integer`, `number`, `boolean`, `text`, `time`, `list`, `object`, or `empty` without any value.
        values: null where a value is missing, or is a word.
        words: the words among numbers or booleans, null elsewhere; None without any.
        notes: what was converted, as sentences.
        numbers_among: whether some texts of a column of text are numbers.
        booleans_among: whether some are true or false.
        fault: why the cells are no numbers although they look like some; None elsewhere.
        written: the cells of lists, and of numbers with a percent sign or the like, as they were written in text.
    """

    name: str
    type: str
    values: pa.Array
    words: pa.Array | None = None
    notes: Sequence[str] = ()
    numbers_among: bool = False
    booleans_among: bool = False
    fault: str | None = None
    written: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: pa.Array) -> TypedColumn:
        """Some rows, null for null; their type is that of the whole column."""
        words, written = (None if each is None else each.take(rows) for each in (self.words, self.written))
        words = None if words is None or words.null_count == len(words) else words
        return replace(self, values=self.values.take(rows), words=words, written=written)

    def labels(self) -> pa.Array:
        """The values to tell apart: of a column with words the texts of all, numbers alike where they are equal.

        Example:
            >>> type_column("p", pa.array(["1", "1.0", "unknown", "2"])).labels().to_pylist()
            ['1', '1', 'unknown', '2']
        """
        if self.words is not None:
            return pc.coalesce(_texts_of(self.values), self.words)
        return as_integers(self.values) if self.type == "number" else self.values

    def texts(self) -> pa.Array:
        """Every value as text; texts that are numbers are alike where they are equal, as are spellings of true.

        Example:
            >>> type_column("p", pa.array(["x", "y", "1.0"])).texts().to_pylist()
            ['x', 'y', '1']
        """
        if self.type != "text":
            return self.labels() if self.words is not None else _texts_of(self.values)
        numbers = _matches(self.values, _NUMBER) & ~_matches(self.values, _CODE)
        texts = pc.if_else(pa.array(numbers), _texts_of(_to_numbers(self.values, numbers)), self.values)
        return pc.if_else(pa.array(_matches(self.values, _BOOLEAN)), _lowered(texts), texts)

    def numbers(self, where: Callable[[int], str]) -> pa.Array:
        """The numbers, null for a word.

        Args:
            where: the place of a row, for messages.

        Raises:
            DataError: the column holds something else, or more than one word in twenty cells (and more than two).
        """
        if self.type in ("integer", "number", "empty"):
            if self.words is not None and not self.has_few_words:
                self._refuse_words(self.words, where)
            if self.words is not None and (infinite := _matches(self.words, _INFINITE)).any():
                self._refuse_words(pc.if_else(pa.array(infinite), self.words, None), where)
            return self.values
        if self.type != "text":
            raise DataError(f"{self.name!r} holds {_PLURAL[self.type]} where numbers are needed; name another column")
        numbers = _matches(self.values, _NUMBER) | _matches(self.values, IS_MISSING)
        self._refuse_words(pc.if_else(pa.array(numbers), None, self.values), where)

    def as_floats(self) -> TypedColumn:
        """The column for computing: integers of too many digits, which are words of their own as labels, are floats."""
        if self.words is None or self.type == "boolean" or not (large := _matches(self.words, _LARGE)).any():
            return self
        mask, count = pa.array(large), plural(int(large.sum()), "integer")
        values = pc.coalesce(pc.if_else(mask, self.words, None).cast(pa.float64()), self.values.cast(pa.float64()))
        words = pc.if_else(mask, None, self.words)
        notes = [*self.notes, f"{self.name!r} has {count} of over 64 bits, read as the nearest float"]
        words = None if words.null_count == len(words) else words
        return replace(self, type="number", values=values, words=words, notes=notes)

    @property
    def has_few_words(self) -> bool:
        """Whether the words are so few that they may be missing numbers."""
        n_words = 0 if self.words is None else len(self.words) - self.words.null_count
        return are_few(n_words, n_words + len(self.values) - self.values.null_count)

    def describe_words(self, where: Callable[[int], str], role: str) -> str | None:
        """A sentence on the words.

        Args:
            role: what they count as, such as `a class of its own`.
        """
        words = self.words
        if self.type == "text" and (self.numbers_among or self.booleans_among):
            numbers = _matches(self.values, _NUMBER) & ~_matches(self.values, _CODE)
            words = pc.if_else(pa.array(numbers | _matches(self.values, _BOOLEAN)), None, self.values)
        if words is None or words.null_count == len(words):
            return None
        row = int(np.flatnonzero(np.asarray(words.is_valid()))[0])
        n_words = len(words) - words.null_count
        is_boolean = self.type == "boolean" or (self.type == "text" and not self.numbers_among)
        what = "true and false" if is_boolean else "numbers"
        return (
            f"{self.name!r} has {plural(n_words, 'word')} among {what}, such as {words[row].as_py()!r}"
            f" ({where(row)}): {pluralize(n_words, '', 'each ')}{role}"
        )

    def _refuse_words(self, words: pa.Array, where: Callable[[int], str]) -> NoReturn:
        rows = np.flatnonzero(np.asarray(words.is_valid()))
        if not len(rows):  # of the chosen rows
            raise DataError(self.fault or f"{self.name!r} is text in other rows; name a column of numbers")
        text = words[int(rows[0])].as_py()
        more = f" ({plural(len(rows) - 1, 'more such cell')})" if len(rows) > 1 else ""
        raise DataError(
            Fault(
                where(int(rows[0])),
                self.fault
                or f"{self.name!r} is {text!r} where a number is needed{more}; leave the cell empty if there is none,"
                " or name another column",
                code="not_a_number",
            )
        )


_PLURAL: Final = {"boolean": "bools", "text": "text", "time": "times", "list": "lists", "object": "objects"}


def type_column(name: str, column: pa.Array | pa.ChunkedArray, declared: str | None = None) -> TypedColumn:
    """The type of a column.

    Args:
        name: how messages name it.
        column: cells of any Arrow type; texts as a file without types has them; canonical JSON in Arrow's JSON type.
        declared: one of `TYPES`, in place of what the cells look like.

    Raises:
        DataError: a cell is none of the declared type.

    Example:
        >>> read = type_column("x", pa.array(["1", "2.5", "NA"]))
        >>> read.type, read.values.to_pylist(), [*read.notes]
        ('number', [1.0, 2.5, None], ["'x' has 1 cell with 'NA', taken as missing"])
        >>> mixed = type_column("x", pa.array(["1", "2", "3", "about 4"]))
        >>> mixed.type, mixed.values.to_pylist(), mixed.words.to_pylist()
        ('integer', [1, 2, 3, None], [None, None, None, 'about 4'])
    """
    array = plain_values(join_chunks(column) if isinstance(column, pa.ChunkedArray) else column)
    if declared == "text":
        return TypedColumn(name, "text", _without_blanks(_texts_of(array, _short_text)))
    if array.type == _JSON:
        read = _type_json(name, array, declared)
    elif pa.types.is_string(array.type):
        read = _type_texts(name, array, declared, is_written=True)
    else:
        read = _type_values(name, array)
    if declared is not None and read.type not in (declared, "empty") and (declared, read.type) != ("number", "integer"):
        what = _PLURAL.get(read.type, read.type + "s")
        raise DataError(f"{name!r} is declared as {declared}, and holds {read.fault or what}; declare another type")
    return read


def plain_values(array: pa.Array) -> pa.Array:
    """The values in a plain layout, null for NaN."""
    if array.type == _JSON:
        cells = pc.if_else(pc.equal(array.storage, _NAN), None, array.storage)
        return pa.ExtensionArray.from_storage(_JSON, cells)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = plain_type(array.type)
    array = array if array.type == kind else array.cast(kind)
    if pa.types.is_floating(array.type) and pc.any(pc.is_nan(array)).as_py():
        array = pc.if_else(pc.is_nan(array), None, array)
    return array


def _type_values(name: str, array: pa.Array) -> TypedColumn:
    """The type of a column whose cells have one, except for texts."""
    kind, types = array.type, pa.types
    if array.null_count == len(array):
        return TypedColumn(name, "empty", pa.nulls(len(array)))
    if types.is_boolean(kind):
        return TypedColumn(name, "boolean", array)
    if types.is_integer(kind):
        return TypedColumn(name, "integer", array)
    if types.is_floating(kind) and (largest := max(map(abs, pc.min_max(array).as_py().values()))) >= _EXACT:
        whole = pc.all(pc.equal(array, pc.floor(array))).as_py()
        note = f"{name!r} has {largest!r} as a float, which equals other integers, too; write them as text"
        return TypedColumn(name, "number", array, notes=[note] if whole else [])
    if types.is_floating(kind) or types.is_decimal(kind):
        return TypedColumn(name, "number", array)
    if types.is_temporal(kind):
        return TypedColumn(name, "time", array)
    return TypedColumn(name, "list" if types.is_list(kind) or types.is_fixed_size_list(kind) else "object", array)


class TextForm:
    """The form that all cells of a column of text have, seen batch by batch, but for words for a missing value.

    Example:
        >>> cells, form = pa.array(["1", "2.5", "NA"]), TextForm()
        >>> form.see(cells)
        >>> form.type, form.convert(cells).to_pylist(), form.note("x")
        (DataType(double), [1.0, 2.5, None], "'x' has 1 cell with 'NA', taken as missing")
    """

    def __init__(self, *, is_text: bool = False) -> None:
        """`is_text`: the cells stay text, whatever they look like."""
        self._words = {} if is_text else {kind: Counter[str]() for kind in _FORMS}  # the missing words of each form
        self._has_values = self._has_gaps = False

    def see(self, cells: pa.Array) -> None:
        self._has_gaps |= cells.null_count > 0
        for kind in [*self._words]:
            fits = pc.match_substring_regex(cells, _FORMS[kind])
            if (alike := pc.min_max(fits).as_py())["min"] is False:
                others = cells.filter(pc.invert(fits))
                if pc.all(pc.match_substring_regex(others, IS_MISSING)).as_py() is False:
                    del self._words[kind]
                    continue
                self._words[kind] += _count(others)
            self._has_values |= alike["max"] is True

    @property
    def type(self) -> pa.DataType:
        """Text where the cells have no form in common, or no value."""
        return next(iter(self._words)) if self._words and self._has_values else pa.string()

    def note(self, name: str) -> str | None:
        """A sentence on words that are taken as missing; None without any."""
        return _describe_missing(name, self._words.get(self.type, {}))

    def convert(self, cells: pa.Array) -> pa.Array:
        """The cells in their type; in text a quoted empty cell is missing if an unquoted one is."""
        if self.type == pa.string():
            return pc.if_else(pc.equal(cells, ""), None, cells) if self._has_gaps else cells
        if self._words[self.type]:
            cells = pc.if_else(pc.match_substring_regex(cells, _FORMS[self.type]), cells, None)
        return cells.cast(self.type)


def _type_json(name: str, array: pa.Array, declared: str | None) -> TypedColumn:
    """The type of cells of several types."""
    cells = _decode(array)
    counts = Counter(map(type, cells))
    n_text, n_boolean, n_number = counts[str], counts[bool], counts[int] + counts[float]
    is_huge = any(type(cell) is int and not -(2**63) <= cell < 2**63 for cell in cells)
    texts = pa.array((_text_of(cell) if is_huge else _short_text(cell) for cell in cells), pa.string())
    n = n_text + n_boolean + n_number
    column = _type_texts(name, texts, declared, is_written=n_text == n)
    are_lists = column.type == "list" and 0 < n_text == n  # some of them as text
    if n + counts[list] * are_lists < len(cells) - array.null_count:
        return TypedColumn(name, "object", array)
    notes = []
    if n_boolean and n_number:
        count = f"{plural(n_boolean, 'bool')} among {plural(n_number, 'number')}"
        notes.append(f"{name!r} has {count}, which equal no number")
    if 0 < n_text < n:
        others = plural(n_number, "number") if n_number else plural(n_boolean, "bool")
        notes.append(f"{name!r} has {plural(n_text, 'text')} among {others}; both are read as in a CSV file")
    return replace(column, notes=[*notes, *column.notes])


def _decode(array: pa.Array) -> list[Any]:
    return [None if cell is None else identity.decode(cell) for cell in array.storage.to_pylist()]


def _text_of(cell: Any) -> str | None:
    """A value as text: whole numbers with all of their digits, lists and objects as JSON."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, float):
        return number_text(cell)
    return identity.encode(cell).decode() if isinstance(cell, list | dict) else str(cell).lower()


def _short_text(cell: Any) -> str | None:
    """As `_text_of`, but large floats with the digits that tell them from other floats, as a CSV file has them."""
    return repr(cell) if isinstance(cell, float) and abs(cell) >= _EXACT else _text_of(cell)


def _type_texts(name: str, texts: pa.Array, declared: str | None, *, is_written: bool) -> TypedColumn:
    """The type that the cells of a column of text have."""
    form = TextForm()
    for start in range(0, len(texts), BATCH_ROWS):  # most columns of words show in a few cells that they are none
        form.see(texts.slice(start, BATCH_ROWS))
    if declared != "list" and form.type != pa.string():
        values = as_integers(form.convert(texts))
        notes = [note] if (note := form.note(name)) else _note_written(name, values) if is_written else []
        return TypedColumn(name, _type_values(name, values).type, values, notes=notes)
    missing = _matches(texts, IS_MISSING)
    known = np.asarray(texts.is_valid()) & ~missing
    numbers, booleans = _matches(texts, _NUMBER), _matches(texts, _BOOLEAN)
    if numbers.any() and declared not in ("integer", "number") and not _matches(texts, _WHOLE)[numbers].all():
        numbers &= ~_matches(texts, _CODE)
    n_known, n_numbers, n_booleans = int(known.sum()), int(numbers.sum()), int(booleans.sum())
    words_for_missing = _count(texts.filter(pa.array(missing)))
    note = _describe_missing(name, words_for_missing)
    notes = [note] if note else []
    if not n_known:
        return TypedColumn(name, "empty", pa.nulls(len(texts)), notes=notes)
    if declared == "list" or _are_lists(texts, known):
        column = _read_lists(name, texts, known)
        return replace(column, notes=[*column.notes, *notes], written=None if declared == "list" else texts)
    if n_numbers < n_known and (marked := _read_marked(name, texts, numbers, known)) is not None:
        return marked
    for n_own, own, convert in ((n_numbers, numbers, _to_numbers), (n_booleans, booleans, _to_booleans)):
        n_words = n_known - n_own
        if n_own <= n_words or not (are_few(n_words, n_known) or declared in ("integer", "number", "boolean")):
            continue
        values = convert(texts, own)
        words = pc.if_else(pa.array(known & ~own), texts, None) if n_words else None
        if not (notes or n_words) and is_written:
            notes = _note_written(name, values)
        return TypedColumn(name, _type_values(name, values).type, values, words, notes)
    classes = {word: n for word, n in words_for_missing.items() if word or not texts.null_count}
    if classes:
        n_missing, shown = sum(classes.values()), ", ".join(map(repr, classes))
        notes = [
            f"{name!r} has {plural(n_missing, 'cell')} with {shown}, counted as a class; if they mean a missing value,"
            " leave these cells empty"
        ]
    return TypedColumn(
        name,
        "text",
        _without_blanks(texts),
        notes=notes,
        numbers_among=bool(n_numbers),
        booleans_among=bool(n_booleans),
    )


def _without_blanks(texts: pa.Array) -> pa.Array:
    """Texts of which an empty one is missing if another cell is."""
    return pc.if_else(pc.equal(texts, ""), None, texts) if texts.null_count else texts


def are_few(n_words: int, n: int) -> bool:
    """Whether so many words of n cells may be odd ones: at most two, or one in twenty."""
    return n_words <= _FEW_WORDS or n_words <= _MOST_WORDS * n


def _matches(texts: pa.Array, pattern: str) -> np.ndarray:
    """Of each cell whether it matches; false for null."""
    return np.asarray(pc.fill_null(pc.match_substring_regex(texts, pattern), False))


def _count(texts: pa.Array) -> Counter[str]:
    return Counter({pair["values"]: pair["counts"] for pair in pc.value_counts(texts).to_pylist()})


def _describe_missing(name: str, words: Mapping[str, int]) -> str | None:
    """A sentence on the words that were taken as missing, with how often each occurs; None if all are blank."""
    written = {word: n for word, n in words.items() if word.strip()}
    shown = ", ".join(map(repr, written))
    return f"{name!r} has {plural(sum(written.values()), 'cell')} with {shown}, taken as missing" if written else None


def _note_written(name: str, values: pa.Array) -> list[str]:
    form, kind = ("true and false", "bools") if pa.types.is_boolean(values.type) else ("numbers", "numbers")
    return [f"{name!r} has {form} written as text, taken as {kind}"]


def _to_numbers(texts: pa.Array, numbers: np.ndarray) -> pa.Array:
    """The numbers in some cells, null elsewhere: integers if all are whole."""
    chosen = pc.utf8_trim_whitespace(pc.if_else(pa.array(numbers), texts, None))
    chosen = pc.replace_substring_regex(chosen, r"^\+", "")
    if _matches(chosen, _WHOLE)[numbers].all():
        return chosen.cast(pa.int64())
    return as_integers(chosen.cast(pa.float64()))


def as_integers(numbers: pa.Array) -> pa.Array:
    """Floats as integers if all are whole, null for NaN; other columns unchanged.

    Example:
        >>> as_integers(pa.array([1.0, float("nan")])).to_pylist(), as_integers(pa.array([1.5])).to_pylist()
        ([1, None], [1.5])
    """
    if not pa.types.is_floating(numbers.type):
        return numbers
    plain = plain_values(numbers)
    known = plain.drop_null().to_numpy()
    whole = ((known == np.floor(known)) & (np.abs(known) < _EXACT)).all()
    return plain.cast(pa.int64()) if whole else numbers


def _to_booleans(texts: pa.Array, booleans: np.ndarray) -> pa.Array:
    return pc.equal(_lowered(pc.if_else(pa.array(booleans), texts, None)), "true")


def _lowered(texts: pa.Array) -> pa.Array:
    return pc.utf8_lower(pc.utf8_trim_whitespace(texts))


def _texts_of(values: pa.Array, write: Callable[[Any], str | None] = _text_of) -> pa.Array:
    """Values as texts."""
    kind = values.type
    if kind == _JSON:
        return pa.array(map(write, _decode(values)), pa.string())
    if pa.types.is_floating(kind) or pa.types.is_nested(kind):
        return pa.array(map(write, values.to_pylist()), pa.string())
    return values.cast(pa.string())


def number_text(number: float) -> str:
    """A number as text, alike where numbers are equal: all digits of a whole one.

    Example:
        >>> number_text(1.0), number_text(1), number_text(0.5), number_text(1e21) == number_text(10**21)
        ('1', '1', '0.5', True)
    """
    return str(int(number)) if number % 1 == 0 else repr(number)


# Lists


def _are_lists(texts: pa.Array, known: np.ndarray) -> bool:
    """Whether every cell is a list as Python or JSON writes it."""
    if not str(texts[int(np.flatnonzero(known)[0])].as_py()).lstrip().startswith("["):
        return False
    return bool(_matches(texts, _LIST)[known].all()) and all(
        _parse_list(text) is not None for text in pc.unique(texts.filter(pa.array(known))).to_pylist()
    )


def _parse_list(text: str) -> list[Any] | None:
    """The list that a text writes in JSON or Python; None if it writes none, or lists of lists."""
    value: Any
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    is_plain = isinstance(value, list) and all(isinstance(item, str | int | float | bool) for item in value)
    return value if is_plain else None


def _read_lists(name: str, texts: pa.Array, known: np.ndarray) -> TypedColumn:
    """Cells that are lists: as Python or JSON writes them, or with `|` or `;` between the items."""
    distinct = pc.unique(texts.filter(pa.array(known)))
    written = [_parse_list(text) for text in distinct.to_pylist()]
    if None in written:
        sign = "|" if pc.any(pc.match_substring(distinct, "|")).as_py() else ";"
        lists = [[item.strip() for item in text.split(sign) if item.strip()] for text in distinct.to_pylist()]
        how = f"are lists separated by {sign!r}"
    else:
        lists, how = [[*items] for items in written if items is not None], "are lists written as text"
    kinds = {type(item) for items in lists for item in items}
    if not (kinds <= {str} or kinds <= {int}):
        lists = [[item if isinstance(item, str) else orjson.dumps(item).decode() for item in items] for items in lists]
    inner = pa.int64() if kinds == {int} else pa.string()
    values = pa.array(lists, pa.list_(inner)).take(pc.index_in(pc.if_else(pa.array(known), texts, None), distinct))
    return TypedColumn(name, "list", values, notes=[f"the cells of {name!r} {how}, taken as lists"])


# Numbers with a decimal comma, separators of thousands, a percent sign or a currency


def _read_marked(name: str, texts: pa.Array, numbers: np.ndarray, known: np.ndarray) -> TypedColumn | None:
    """A column of numbers of which some have a mark that Python's have not; None for any other column."""
    marked = known & ~numbers
    row = int(np.flatnonzero(marked)[0])
    if not re.match(_MARKED, texts[row].as_py()):
        return None
    if not _matches(texts, _MARKED)[marked].all() or _matches(texts, _CODE)[marked].any():
        return None
    if len({sign for text in pc.unique(texts).drop_null().to_pylist() for sign in text if sign in "$€£¥"}) > 1:
        return None  # amounts of several currencies are no numbers
    distinct = pc.unique(texts.filter(pa.array(known)))
    cells = {text: re.sub(r"[\s$€£¥%'\u00a0\u202f]", "", text) for text in distinct.to_pylist()}  # digits, separators
    shown = texts[row].as_py()
    n, is_percent = int(marked.sum()), ["%" in text for text in cells]
    signs, fault = _decimal_signs(cells.values()), ""
    if any(is_percent) and not all(is_percent):
        fault = f"{name!r} is {shown!r}, and other cells have no percent sign; write all of them alike"
    elif len(signs) > 1:
        fault = f"{name!r} is {shown!r}, and other cells have another decimal sign; write all of them alike"
    elif not signs and any("," in cell for cell in cells.values()):
        point, comma = shown.replace(",", "."), shown.replace(",", "")
        fault = (
            f"{name!r} is {shown!r}, as {plural(n, 'cell')} with a comma; write {comma} if it separates thousands,"
            f" {point} if it is a decimal comma"
        )
    if fault:
        return TypedColumn(name, "text", texts, numbers_among=True, fault=fault)
    decimal, share = next(iter(signs), "."), 100 if all(is_percent) else 1
    other = "." if decimal == "," else ","
    read = {text: float(cell.replace(other, "").replace(decimal, ".")) / share for text, cell in cells.items()}
    places = pc.index_in(pc.if_else(pa.array(known), texts, None), distinct)
    values = as_integers(pa.array([*read.values()], pa.float64()).take(places))
    note = f"{plural(n, 'cell')} of {name!r} {pluralize(n, 'has', 'have')} {_name_mark(shown, decimal)}: {shown!r} is "
    return TypedColumn(
        name,
        "integer" if pa.types.is_integer(values.type) else "number",
        values,
        notes=[f"{note}read as {number_text(read[shown])}"],
        written=texts,
    )


def _decimal_signs(cells: Iterable[str]) -> set[str]:
    """The signs before fractions of which the cells leave no doubt: a single group of three digits may be thousands."""
    signs: set[str] = set()
    for cell in cells:
        commas, points = cell.count(","), cell.count(".")
        last = max(cell.rfind(","), cell.rfind("."))
        if commas and points:
            signs.add(cell[last])
        elif commas > 1 or points > 1:
            signs.add("." if commas > 1 else ",")
        elif commas and not re.fullmatch(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}", cell):
            signs.add(",")
        elif points and not re.fullmatch(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}", cell):
            signs.add(".")
    return signs


def _name_mark(text: str, decimal: str) -> str:
    if "%" in text:
        return "a percent sign"
    if set("$€£¥") & {*text}:
        return "the sign of a currency"
    return "a decimal comma" if decimal == "," and "," in text else "separators of thousands"
