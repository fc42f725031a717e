"""Arrays as the columns of a table: groupings, scores of classes, and matrices by the names of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from evaluand.core.errors import DataError, SpecError
from evaluand.evaluation.prediction_table import label_text, to_column
from evaluand.predictions.columns.systems import SystemSpec
from evaluand.predictions.columns.tables import NamedTable, as_table
from evaluand.predictions.matrices import ArrayInputs, as_columns, plain_label
from evaluand.predictions.options import ColumnOptions, EvaluateOptions

ROLES: Final = ("truth", "weight", "cluster")
_RESERVED: Final = frozenset(("row", *ROLES))  # the other columns of a saved dataset


def read_arrays(
    truth: Any, predictions: Any, given: EvaluateOptions
) -> tuple[NamedTable, list[SystemSpec], ColumnOptions]:
    """The table of all arrays, the columns of each system in it, and the options by the names of columns.

    Args:
        predictions: of one system in any form, or system → these.

    Raises:
        SpecError: arrays do not fit each other, or two have the same name.
        DataError: arrays have different lengths, or a value is invalid; names the rows.
    """
    if given.scores is not None and given.confidence is not None:
        raise SpecError("scores include the confidence of each prediction; give either scores or confidence")
    columns: dict[str, Any] = {}
    specs: dict[str, dict[str, Any]] = {}
    label = plain_label(given.label)
    for name, suffix, values, scores, confidence in _systems(predictions, given):
        inputs = as_columns(truth, values, scores, given.classes, plain_label(given.label))
        if name in columns or name in ROLES:
            raise SpecError(_SAME_NAME)
        own, specs[name] = _system_columns(name, suffix, inputs, confidence)
        columns |= {"truth": inputs.truth} | own
        label = inputs.score_label if label is None else label
    groupings = dict(_read_groupings(given.by))
    further = {str(name): values for name, values in (given.columns or {}).items()}
    others = {name: getattr(given, name) for name in ROLES[1:] if getattr(given, name) is not None}
    for more in (others, groupings, further):
        if twice := {*columns} & {*more}:
            raise SpecError(_SAME_NAME if len(specs) > 1 else f"{min(twice)!r} is a reserved name; choose another")
        columns |= more
    columns |= {name: [*values] for name, values in further.items() if getattr(values, "ndim", 1) == 2}
    _check_one_index(columns)
    arrays = {name: to_column(name, values) for name, values in columns.items()}
    _check_lengths(arrays)
    chosen = ColumnOptions(
        truth="truth",
        predictions=tuple(specs),
        by=tuple((name,) for name in groupings),
        label=label,
        weight="weight" if "weight" in others else None,
        cluster="cluster" if "cluster" in others else None,
        columns=tuple(further),
        **given.shared(),
    )
    base = NamedTable("the arrays", pa.table(arrays), lambda row: f"row {row}", types=chosen.column_types())
    return base, [SystemSpec(name, base, rates_class=False, **spec) for name, spec in specs.items()], chosen


def _systems(predictions: Any, given: EvaluateOptions) -> Iterator[tuple[str, str, Any, Any, Any]]:
    """The name of each system, what follows the names of its scores, its predictions, scores and confidences."""
    if not isinstance(predictions, Mapping):
        name = "scores" if predictions is None else "predictions"
        yield name, "", predictions, given.scores, given.confidence
        return
    if not predictions:
        raise SpecError("predictions is empty; give at least one system")
    for option in ("confidence", "scores"):
        values = getattr(given, option)
        if values is not None and not (isinstance(values, Mapping) and values.keys() <= predictions.keys()):
            raise SpecError(f"{option} of several systems must be a mapping system → n numbers")
    for system, own in predictions.items():
        scores, confidence = ((values or {}).get(system) for values in (given.scores, given.confidence))
        yield str(system), f" of {system}", own, scores, confidence


def _system_columns(
    name: str, suffix: str, inputs: ArrayInputs, confidence: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of a system, and their roles for `SystemSpec`."""
    columns, spec = dict[str, Any](), dict[str, Any]()
    if inputs.score is not None:
        spec["score"] = f"scores{suffix}"
        columns[spec["score"]] = inputs.score
    else:
        by_class = dict(_read_class_scores(inputs.scores))
        columns = {f"score of {label!r}{suffix}": values for label, values in by_class.items()}
        spec["scores"] = dict(zip(map(label_text, by_class), columns, strict=True)) or None
    if inputs.predictions is not None:
        columns[name], spec["prediction"] = inputs.predictions, name
    if confidence is not None:
        spec["confidence"] = f"confidence{suffix}"
        columns[spec["confidence"]] = confidence
    return columns, spec


_SAME_NAME: Final = "systems and groups must have different names, none of them 'truth', 'weight' or 'cluster'"


def _read_groupings(by: Any) -> Iterator[tuple[str, Any]]:
    known: set[str] = set()
    for name, column in _named_arrays(by):
        text = "group" if name is None else str(name)
        if text in _RESERVED or text.startswith("_"):
            raise SpecError(f"by: {text!r} is a reserved name; choose another")
        if text in known:
            raise SpecError(f"by: {text!r} occurs twice; give each grouping its own name")
        known.add(text)
        yield text, column


def _as_columns(frame: Any) -> Any:
    """The columns of a frame of another library by name; other values stay as they are."""
    is_frame = hasattr(frame, "__arrow_c_stream__") and hasattr(frame, "columns") and not hasattr(frame, "items")
    if not is_frame:
        return frame
    table = as_table(frame, "data").table
    return dict(zip(table.column_names, table.columns, strict=True))


def _named_arrays(by: Any) -> Iterable[tuple[Any, Any]]:
    if by is None:
        return []
    by = _as_columns(by)
    if hasattr(by, "items") and not hasattr(by, "to_frame"):
        return by.items()  # type: ignore[no-any-return]
    if isinstance(by, list | tuple) and any(map(_is_array, by)):
        if all(getattr(column, "name", None) is not None for column in by):
            return [(column.name, column) for column in by]
        raise SpecError("by: the arrays of a list have no names; give a mapping, such as by={'size': [...], ...}")
    return [(getattr(by, "name", None), by)]


def _is_array(value: Any) -> bool:
    """Whether an item of a list is a column, and not a value to group by."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _check_one_index(arrays: Mapping[str, Any]) -> None:
    series = {name: value for name, value in arrays.items() if hasattr(value, "to_frame") and hasattr(value, "index")}
    indexed = [(name, value.index) for name, value in series.items()]
    for name, index in indexed[1:]:
        first, expected = indexed[0]
        if len(index) == len(expected) and not index.equals(expected):
            raise SpecError(f"{first} and {name} have different indexes; align them, or give {name}.to_numpy()")


def _check_lengths(columns: Mapping[str, pa.Array]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {n:,}" for name, n in lengths.items())
        raise DataError(f"the arrays are of different lengths: {sizes}; give one value for each row")


def _read_class_scores(scores: Any) -> Iterable[tuple[Any, Any]]:
    if scores is None:
        return []
    scores = _as_columns(scores)
    if not hasattr(scores, "items") or hasattr(scores, "to_frame"):
        raise SpecError('scores must be a mapping label → n numbers, such as {"cat": [0.9, 0.2], "dog": [0.1, 0.8]}')
    classes = [(plain_label(label), numbers) for label, numbers in scores.items()]
    if not classes:
        raise SpecError("scores is empty; give the scores of at least one class")
    return classes
