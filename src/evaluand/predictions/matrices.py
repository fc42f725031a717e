"""Two-dimensional truths, predictions and scores as columns: probabilities of classes, and indicators of labels.

What `predict_proba` returns has a column for each class, as an array or a frame; so do multilabel indicators, whose
cells are 0 and 1. Names of columns come from `classes`, from a frame, or from the truth where that is safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from evaluand.core.errors import SpecError, plural
from evaluand.evaluation.prediction_table import to_column

Label = str | int | bool


class ArrayInputs(NamedTuple):
    """Truth, predictions and scores, one value for each row.

    Attributes:
        scores: by label.
        score: the scores of the positive class alone.
        score_label: the class that `score` is of, if the order of the classes says it.
    """

    truth: Any
    predictions: Any
    scores: Any
    score: Any = None
    score_label: Any = None


def as_columns(truth: Any, predictions: Any, scores: Any, classes: Any, label: Label | None) -> ArrayInputs:
    """Matrices and frames among the arrays as columns; other arrays as they are.

    Args:
        classes: the labels of the columns, such as `model.classes_`.
        label: the positive class, whose scores a single column holds.

    Raises:
        SpecError: a matrix has cells or a number of columns that fit no label; says what to pass.

    Example:
        >>> as_columns(["cat", "dog"], np.array([[0.9, 0.1], [0.3, 0.7]]), None, None, None).predictions
        ['cat', 'dog']
        >>> as_columns(np.array([[1, 0], [1, 1]]), np.array([[1, 0], [0, 0]]), None, None, None)[:2]
        ([['0'], ['0', '1']], [['0'], []])
    """
    truth, predictions, scores = (_read_tensor(values) for values in (truth, predictions, scores))
    truth, predictions = _read_nested(truth, predictions)
    scores = _nested_numbers(scores) if _is_nested(scores) and not _are_pairs(scores) else scores
    named = None if classes is None else [plain_label(one) for one in classes]
    cells, answers = _read_matrix("truth", truth), _read_matrix("predictions", predictions)
    if cells is not None and cells.values.shape[1] == 1:
        truth, cells = cells.column(0), None
    if answers is not None and answers.values.shape[1] == 1:
        predictions, answers = answers.column(0), None
    labels: Sequence[Any] | None = named
    if cells is not None:
        labels = [str(one) for one in cells.labels(named) or range(cells.values.shape[1])]
        truth = cells.as_sets(labels)
    if answers is not None and (cells is not None or _holds_sets(truth)):
        predictions = answers.as_sets(labels or answers.labels(None))
    elif cells is not None and predictions is None:
        raise SpecError(
            f"truth has {plural(cells.values.shape[1], 'column')} of labels, and scores alone do not decide which of "
            "them a row has; pass predictions too, such as (scores >= 0.5)"
        )
    elif cells is not None and not _holds_sets(predictions):
        raise SpecError(
            f"truth has {plural(cells.values.shape[1], 'column')} of labels, and predictions one value for each row; "
            "give a column for each label, or sets of labels"
        )
    elif answers is not None:
        if scores is not None:
            raise SpecError("predictions has a column of scores for each class; give either these or scores")
        known = answers.labels(named, truth)
        predictions, scores = answers.most_likely(known), answers.by_label(known)
    return _add_scores(ArrayInputs(truth, predictions, None), scores, labels, label)


def _read_tensor(values: Any) -> Any:
    """A tensor as an array; whatever Arrow reads by itself as it is."""
    known = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_array__") or hasattr(values, "iloc")
    if known or isinstance(values, np.ndarray | pa.Array | pa.ChunkedArray | pa.Table):
        return values
    if hasattr(values, "__array__") and hasattr(values, "shape"):
        return np.asarray(values.detach() if hasattr(values, "detach") else values)
    return values


def _read_nested(truth: Any, predictions: Any) -> tuple[Any, Any]:
    """Lists of rows of numbers as matrices: of scores if the truth holds labels, of labels if both hold 0 and 1.

    Other lists of numbers, such as coordinates, stay values that are equal or not.
    """
    cells, answers = _nested_numbers(truth), _nested_numbers(predictions)
    if not _is_nested(truth):
        empty = isinstance(truth, list | tuple) and all(value is None for value in truth)
        return truth, predictions if empty else answers
    if not _is_nested(predictions):
        return cells if getattr(predictions, "ndim", 1) > 1 else truth, predictions
    if any(isinstance(row, list | tuple) and any(isinstance(x, str) for x in row) for row in truth):
        return truth, answers
    both = cells is not truth and answers is not predictions
    if both and np.isin(cells, (0, 1)).all() and np.isin(answers, (0, 1)).all():
        return cells, answers
    return truth, predictions


def _are_rows(values: Any) -> bool:
    return _is_nested(values) and all(isinstance(row, list | tuple | np.ndarray) for row in values)


def _is_nested(values: Any) -> bool:
    return isinstance(values, list | tuple) and any(isinstance(row, list | tuple | np.ndarray) for row in values)


def _nested_numbers(values: Any) -> Any:
    """A matrix, if each row is a list of as many numbers, two or more; other values as they are."""
    if not _are_rows(values):
        return values
    widths = {len(row) for row in values}
    if len(widths) > 1 or min(widths) < 2 or not all(isinstance(x, _NUMBERS) for row in values for x in row):
        return values
    return np.asarray(values)


def _are_pairs(scores: Sequence[Any]) -> bool:
    """Whether scores are a list of two columns for each label, as scikit-learn returns those of labels in sets."""
    return all(getattr(one, "ndim", 1) == 2 and one.shape[1] == 2 for one in scores)


_NUMBERS: Final = (int, float, np.number, np.bool_)


class _Matrix(NamedTuple):
    name: str
    values: np.ndarray
    columns: list[Any] | None
    frame: Any  # of pandas, whose index the columns keep

    def column(self, place: int) -> Any:
        return self._series(self.values[:, place])

    def labels(self, named: Sequence[Any] | None, truth: Any = None) -> list[Any]:
        """The labels of the columns: those named, those of the frame, or those of the truth if they are as many."""
        width = self.values.shape[1]
        if named is not None:
            if len(named) != width:
                raise SpecError(
                    f"{self.name} has {plural(width, 'column')} and classes {len(named)}; give one for each"
                )
            return list(named)
        numbered = self.columns is None or self.columns == list(range(width))
        known = [] if truth is None else _distinct(truth)
        if self.columns is not None and not (numbered and known and known != self.columns):
            return self.columns
        if truth is not None and len(known) != width:
            raise SpecError(
                f"{self.name} has {plural(width, 'column')}, and the truth {plural(len(known), 'label')}; "
                "name the labels of the columns, as in classes=model.classes_"
            )
        return known

    def as_sets(self, labels: Sequence[Any] | None) -> Any:
        """The labels whose cells are 1, of each row."""
        if not labels:
            raise SpecError(f"{self.name} has columns without labels; name them, as in classes=['cat', 'dog']")
        if len(labels) != self.values.shape[1]:
            raise SpecError(
                f"{self.name} has {plural(self.values.shape[1], 'column')} for {plural(len(labels), 'label')}; "
                "give one for each"
            )
        if self.columns is not None and self.values.dtype.kind not in "fiub":
            raise SpecError(
                f"{self.name} is a table with the columns {', '.join(map(str, self.columns))}; give one of them"
            )
        if not np.isin(self.values, (0, 1)).all():
            raise SpecError(
                f"{self.name} has several columns, and cells other than 0 and 1: pass probabilities of labels as "
                "scores, with predictions such as (probabilities >= 0.5); evaluate several numbers of a row one by one"
            )
        texts = [str(label) for label in labels]
        return self._series([[texts[place] for place in np.flatnonzero(row)] for row in self.values.tolist()])

    def most_likely(self, labels: Sequence[Any]) -> Any:
        """The label with the highest score in each row, the first of equals; None for a row without scores."""
        if self.values.dtype.kind not in "fiub":
            raise SpecError(f"{self.name} has {plural(self.values.shape[1], 'column')}, which hold no numbers")
        known = ~np.isnan(self.values.astype(float)).any(axis=1)
        places = np.where(known, np.argmax(self.values, axis=1), 0).tolist()
        return self._series([labels[place] if has else None for place, has in zip(places, known, strict=True)])

    def by_label(self, labels: Sequence[Any]) -> dict[Any, Any]:
        return {label: self.column(place) for place, label in enumerate(labels)}

    def _series(self, values: Any) -> Any:
        if self.frame is None:
            return values
        import pandas as pd  # installed, since the frame is one of pandas

        return pd.Series(list(values), index=self.frame.index)


def _read_matrix(name: str, value: Any) -> _Matrix | None:
    """A value with two dimensions; None for any other."""
    if isinstance(value, pa.Table):
        columns = [column.to_numpy() for column in value.columns]
        return _Matrix(name, np.column_stack(columns), list(value.column_names), None)
    if hasattr(value, "toarray"):  # sparse
        return _Matrix(name, value.toarray(), None, None)
    named = (
        [plain_label(one) for one in value.columns]
        if hasattr(value, "columns") and hasattr(value, "to_numpy")
        else None
    )
    if named is None and getattr(value, "ndim", 1) != 2:
        return None
    values = np.asarray(value.to_numpy() if named is not None else value)
    return _Matrix(name, values, named, value if hasattr(value, "iloc") else None)


def _add_scores(inputs: ArrayInputs, scores: Any, labels: Sequence[Any] | None, label: Label | None) -> ArrayInputs:
    """Scores by label: of a matrix, of a list of two columns for each label, or of the positive class alone."""
    if scores is None or isinstance(scores, Mapping):
        return inputs._replace(scores=scores)
    if isinstance(scores, list | tuple) and scores and _are_pairs(scores):
        scores = np.column_stack([np.asarray(one)[:, 1] for one in scores])
    matrix = _read_matrix("scores", scores)
    if matrix is not None and matrix.values.shape[1] > 1:
        return inputs._replace(scores=matrix.by_label(matrix.labels(labels, inputs.truth)))
    if label is None and labels is not None and len(labels) == 2:
        label = labels[1]
    return inputs._replace(score=scores if matrix is None else matrix.column(0), score_label=label)


def _distinct(values: Any) -> list[Any]:
    """The different values of a column, sorted; none of lists and objects."""
    column = to_column("truth", values)
    if pa.types.is_nested(column.type) or pa.types.is_null(column.type) or isinstance(column, pa.ExtensionArray):
        return []
    if pa.types.is_floating(column.type):
        numbers = column.drop_null()
        if not np.equal(np.mod(numbers.to_numpy(), 1), 0).all():
            raise SpecError(
                "predictions has a column for each class, but truth holds real numbers; give one number a row"
            )
        column = numbers.cast(pa.int64())
    return sorted(column.unique().drop_null().to_pylist())


def _holds_sets(truth: Any) -> bool:
    return bool(pa.types.is_nested(to_column("truth", truth).type))


def plain_label(value: Any) -> Any:
    """A label as a value of Python; an integer if NumPy or pandas made it a float.

    Example:
        >>> plain_label(np.int64(1)), plain_label(np.float64(0.0)), plain_label("cat")
        (1, 0, 'cat')
    """
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value
