"""Boxes as columns: read from tables, arrays and rows, and checked.

A box goes from (x_min, y_min), the top left, to (x_max, y_max), the bottom right. Coordinates are numbers or text of
numbers; a box may also be one text, `10,11,100,100`. Faults are reported with row and image. Columns are converted at
once; only if that fails is each cell checked, to name the faulty one.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.metrics.base.labels import contents
from evaluand.metrics.detection.masks import box_and_area
from evaluand.metrics.detection.outlines import FEWEST, area_of, read_outline

COORDINATES: Final = ("x_min", "y_min", "x_max", "y_max")
IMAGE, BOX, CONFIDENCE, LABEL, CROWD = "image", "box", "confidence", "label", "crowd"
_LARGEST: Final = 1e150  # areas of larger boxes overflow
_SMALLEST: Final = 1 / _LARGEST  # areas of smaller boxes underflow


@dataclass(frozen=True)
class Boxes:
    """Boxes in images, row by row.

    Attributes:
        what: the name of a row in messages.
        image: text or integers.
        corners: 4 × rows: x_min, y_min, x_max, y_max.
        confidence: of each detection, higher is more confident; None if unknown, then all are equal.
        label: of each box, text or integers; None if all boxes have the same.
        crowd: which true boxes hold many objects that are not separated; None if none does.
        outline: of each polygon its corners × 2, None where the box is the outline; None if all are boxes.
        mask: of each object its mask (`read_mask`), in place of the box; None if there are none.
        area: of each object as its source states it, NaN where it does not; None if it states none.

    Example:
        >>> Boxes.of([["a.png", 0, 0, 9, 9, 0.5], ["a.png", "5", "5", "9", "9", "0.25"]], "detection").corners.T
        array([[0., 0., 9., 9.],
               [5., 5., 9., 9.]])
    """

    what: str
    image: pa.Array
    corners: np.ndarray
    confidence: np.ndarray | None = None
    label: pa.Array | None = None
    crowd: np.ndarray | None = None
    outline: np.ndarray | None = None
    mask: Sequence[Any] | None = None
    area: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.image)

    @classmethod
    def of(cls, source: Any, what: str = "box") -> Self:
        """Boxes from a table, columns or rows.

        Args:
            source: a table or mapping of columns with `image`, `x_min`, `y_min`, `x_max`, `y_max` (or `box`, text of
                these four, or of the corners of a polygon, with commas between them), and perhaps `confidence`, `label`
                and `crowd` (true or false); or rows of an image, four coordinates, eight of a polygon or a text of
                them, and perhaps a confidence.
            what: the name of a row in messages.

        Raises:
            SpecError: a column is missing, or the source is of another kind.
            DataError: cells are not numbers, or rows differ in length; reported with row and image.
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, np.ndarray) and source.dtype.names is None:
            source = source.tolist()
        if isinstance(source, Sequence) and not isinstance(source, str):
            return cls._from_columns(_columns_of_rows(source, what), what)
        return cls._from_columns(_select_columns(source, what), what)

    def areas(self, pixel: int) -> np.ndarray:
        """The area of each object: as stated, else of its mask or polygon, else of its box.

        Args:
            pixel: added to width and height of boxes.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            width, height = self.corners[2:] - self.corners[:2] + pixel
            area = np.asarray(width * height)
        if self.outline is not None:
            drawn = np.array([np.nan if each is None else area_of(each) for each in self.outline], np.float64)
            area = np.where(np.isnan(drawn), area, drawn)
        if self.mask is not None:
            area = np.array([box_and_area(each)[1] for each in self.mask], np.float64)
        return area if self.area is None else np.where(np.isnan(self.area), area, self.area)

    @classmethod
    def _from_columns(cls, columns: Mapping[str, Any], what: str) -> Self:
        image = _arrow(columns[IMAGE], f"{what}: image")
        if image.null_count:
            empty = np.flatnonzero(np.asarray(image.is_null()))
            raise DataError(Fault(f"{what} row {row}", "has no image") for row in empty.tolist())
        label = _arrow(columns[LABEL], f"{what}: label") if LABEL in columns else None
        parse, outline = _Parser(what, image), None
        confidence = parse.numbers(columns[CONFIDENCE], CONFIDENCE) if CONFIDENCE in columns else None
        crowd = parse.flags(columns[CROWD], CROWD) if CROWD in columns else None
        if BOX in columns:
            sides, outline = parse.boxes(columns[BOX])
        else:
            sides = [parse.numbers(columns[name], name) for name in COORDINATES]
        lengths = {len(each) for each in (image, label, confidence, crowd, *sides) if each is not None}
        if len(lengths) > 1:
            counts = " and ".join(map(str, sorted(lengths)))
            raise DataError(f"{what}: the columns have {counts} rows; give all columns equally many")
        if confidence is not None and len(confidence) and np.isnan(confidence).all():
            # NaN in a file of confidences is a fault, and null is not
            confidence = None if _arrow(columns[CONFIDENCE], CONFIDENCE).null_count == len(confidence) else confidence
        return cls(what, image, np.stack(sides), confidence, label, crowd, outline)

    def refuse_odd(self, takes: Literal["proper", "inverted", "anything"]) -> None:
        """Check boxes and confidences; a DataError lists invalid ones by row and image. `takes`: see `Definition`."""
        if takes == "anything":
            return
        faults = list(self._faults(takes))
        if faults:
            raise DataError(fault for _, fault in sorted(faults, key=lambda each: each[0]))

    def _faults(self, takes: str) -> Iterable[tuple[int, Fault]]:
        columns = dict(zip(COORDINATES, self.corners, strict=True))
        if self.confidence is not None:
            columns[CONFIDENCE] = self.confidence
        for name, column in columns.items():
            limit = math.inf if name == CONFIDENCE else _LARGEST
            for row in np.flatnonzero(~(np.abs(column) < limit)).tolist():
                problem = "missing or NaN" if column[row] != column[row] else f"{column[row]}, which is too large"
                yield row, self.fault(row, f"{name} is {problem}; give a finite number")
        for axis, least, most in (("x", *self.corners[::2]), ("y", *self.corners[1::2])):
            size = most - least
            for row in np.flatnonzero((np.abs(size) < _SMALLEST) & (size != 0)).tolist():
                message = f"{axis}_max exceeds {axis}_min by only {size[row]:g}; the box has no area"
                yield row, self.fault(row, message)
            if takes == "inverted":
                continue
            for row in np.flatnonzero(most < least).tolist():
                message = f"{axis}_max {most[row]:g} is smaller than {axis}_min {least[row]:g}"
                yield row, self.fault(row, f"{message}; a box is x_min, y_min, x_max, y_max")

    def fault(self, row: int, message: str) -> Fault:
        """A fault of a row."""
        return Fault(_where(self.what, row, self.image[row].as_py()), message)


def _where(what: str, row: int, image: Any) -> str:
    return f"{what} row {row} (image {image!r})"


def _select_columns(source: Any, what: str) -> Mapping[str, Any]:
    listed = source if isinstance(source, Mapping) else getattr(source, "columns", None)
    if isinstance(source, np.ndarray | pa.Table | pa.RecordBatch):
        listed = source.dtype.names if isinstance(source, np.ndarray) else source.schema.names
    if listed is None:
        raise SpecError(f"{what}s must be a table, columns by name or a list of rows, not {type(source).__name__}")
    names = list(listed)
    needed = [IMAGE] if BOX in names else [IMAGE, *COORDINATES]
    lacking = [name for name in needed if name not in names]
    if lacking:
        raise SpecError(
            f"{what}s lack {', '.join(map(repr, lacking))}; the columns are {', '.join(map(repr, names)) or 'none'}"
        )
    optional = [name for name in (BOX, CONFIDENCE, LABEL, CROWD) if name in names]
    return {name: source[name] for name in dict.fromkeys([*needed, *optional])}


_POLYGON: Final = (9, 10)
"""Cells of a row with a polygon of four corners, without and with a confidence."""

_BY_LENGTH: Final = {
    2: (IMAGE, BOX),
    3: (IMAGE, BOX, CONFIDENCE),
    5: (IMAGE, *COORDINATES),
    6: (IMAGE, *COORDINATES, CONFIDENCE),
}


def _columns_of_rows(rows: Sequence[Any], what: str) -> Mapping[str, Any]:
    if not len(rows):
        return dict.fromkeys(_BY_LENGTH[5], ())
    bad = [
        row for row, cells in enumerate(rows) if not isinstance(cells, Sequence | np.ndarray) or isinstance(cells, str)
    ]
    if bad:
        raise DataError(Fault(f"{what} row {row}", f"is {rows[row]!r}, not a list of {_FORM}") for row in bad)
    length = len(rows[0])
    if length not in (*_POLYGON, *_BY_LENGTH):
        raise DataError(Fault(_where(what, 0, next(iter(rows[0]), None)), f"has {length} cells; give {_FORM}"))
    odd = [row for row, cells in enumerate(rows) if len(cells) != length]
    if odd:
        raise DataError(
            Fault(_where(what, row, next(iter(rows[row]), None)), f"has {len(rows[row])} cells, and the first {length}")
            for row in odd
        )
    if length in _POLYGON:
        columns = {IMAGE: [row[0] for row in rows], BOX: [",".join(map(str, row[1:9])) for row in rows]}
        return columns | ({CONFIDENCE: [row[9] for row in rows]} if length == _POLYGON[1] else {})
    return dict(zip(_BY_LENGTH[length], zip(*rows, strict=True), strict=True))


_FORM: Final = "image, x_min, y_min, x_max, y_max (or the eight numbers of a polygon) and perhaps a confidence"


def _arrow(values: Any, what: str) -> pa.Array:
    """A column of text or integers."""
    try:
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise DataError(f"{what}: the column holds values of several types; give text, or integers") from None
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return pa.array([], pa.string()) if pa.types.is_null(column.type) and not len(column) else column


@dataclass(frozen=True)
class _Parser:
    """Converts cells into numbers, and reports those that are not numbers."""

    what: str
    image: pa.Array

    def numbers(self, values: Any, name: str) -> np.ndarray:
        """A column as 64-bit floats; null is NaN."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
            return values.astype(np.float64, copy=False)
        try:
            column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
            if contents(column.type) == "text":
                column = pc.utf8_trim_whitespace(column)
            elif pa.types.is_boolean(column.type):
                return self._each(column.to_pylist(), name)
            return np.asarray(column.cast(pa.float64()))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            return self._each(values.to_pylist() if hasattr(values, "to_pylist") else list(values), name)

    def flags(self, values: Any, name: str) -> np.ndarray:
        """A column of bools, or of 0 and 1; null is false."""
        column = _arrow(values, f"{self.what}: {name}")
        if pa.types.is_boolean(column.type):
            return np.asarray(pc.fill_null(column, False))
        numbers = np.nan_to_num(self.numbers(values, name))
        self._refuse(
            ~np.isin(numbers, (0, 1)), lambda row: f"{name} is {column[row].as_py()!r}; give true or false, or 1 or 0"
        )
        return np.asarray(numbers == 1)

    def boxes(self, values: Any) -> tuple[list[np.ndarray], np.ndarray | None]:
        """The coordinates of a column of texts such as `10,11,100,100`, or of lists; and the outlines of polygons."""
        column = _arrow(values, f"{self.what}: {BOX}")
        if not len(column):
            return [np.empty(0)] * 4, None
        is_text = contents(column.type) == "text"
        if not is_text and not pa.types.is_list(column.type):
            raise DataError(f"{self.what}: the column box holds {column.type}; give text such as '10,11,100,100'")
        parts = pc.split_pattern(column, ",") if is_text else column
        counts = np.asarray(pc.fill_null(pc.list_value_length(parts), 0))
        odd = (counts != 4) & ((counts < FEWEST) | (counts % 2 == 1))
        self._refuse(odd, lambda row: f"box is {column[row].as_py()!r}; give x_min,y_min,x_max,y_max, or a polygon")
        flat = parts.flatten()
        if (counts == 4).all():
            sides = [flat.take(pa.array(np.arange(i, len(flat), 4))) for i in range(4)]
            return [self.numbers(side, name) for side, name in zip(sides, COORDINATES, strict=True)], None
        polygon = np.repeat(np.arange(len(counts)), counts)  # whose row is reported
        numbers = _Parser(self.what, self.image.take(pa.array(polygon))).numbers(flat, "a coordinate")
        return self._polygons(np.split(numbers, np.cumsum(counts)[:-1]))

    def _polygons(self, each: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray | None]:
        """The boxes around polygons, and their outlines where they differ."""
        corners, outline, faults = np.empty((4, len(each))), np.full(len(each), None, np.object_), dict[int, str]()
        for row, numbers in enumerate(each):
            fault, corners[:, row], outline[row] = read_outline(numbers.tolist())
            if fault:
                faults[row] = fault
        self._refuse(np.isin(np.arange(len(each)), [*faults]), lambda row: f"the polygon {faults[row]}")
        return [*corners], outline if any(one is not None for one in outline) else None

    def _each(self, cells: Sequence[Any], name: str) -> np.ndarray:
        values, bad = np.full(len(cells), np.nan), np.zeros(len(cells), np.bool_)
        for row, cell in enumerate(cells):
            try:
                if isinstance(cell, bool | np.bool_):
                    raise ValueError
                values[row] = math.nan if cell is None else float(cell)
            except (TypeError, ValueError, OverflowError):
                bad[row] = True
        quoted = '; remove the quotes: a CSV file quotes with " only'
        hints = [quoted if isinstance(cell, str) and "'" in cell else "" for cell in cells]
        self._refuse(bad, lambda row: f"{name} is {cells[row]!r}, not a number{hints[row]}")
        return values

    def _refuse(self, bad: np.ndarray, message: Callable[[int], str]) -> None:
        if bad.any():
            raise DataError(
                Fault(_where(self.what, row, self.image[row].as_py() if row < len(self.image) else None), message(row))
                for row in np.flatnonzero(bad).tolist()
            )
