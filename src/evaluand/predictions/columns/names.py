"""Which columns of a table look like the truth, like predictions and like scores, by their names and values.

Nothing is chosen by these guesses: they only complete the command that a message proposes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.metrics.base.labels import contents

_TRUTH: Final = re.compile(
    r"(y_?)?(true|truth|actual|gold|target|label|expected|reference|observed)s?(_(y|label|class|value|answer))?"
    r"|(true|gold|correct|target|ground|actual|expected)_?(truth|label|class|answer|value)s?|y|gt|class|answer|outcome",
    re.IGNORECASE,
)
_PREDICTION: Final = re.compile(
    r"(.*[_. -])?(y_?)?(pred|predict|predicted|prediction|hat|output|response|guess|forecast|estimate)s?([_. -]?.*)?",
    re.IGNORECASE,
)
_SCORE: Final = re.compile(
    r"(p|prob|proba|probability|score|confidence|conf|logit)s?([_. -].*)?"
    r"|.*[_. -](p|prob|proba|probability|score|confidence|conf|logit)s?",
    re.IGNORECASE,
)
_ID: Final = re.compile(
    r"(row|example|sample|case|item|record|image|patient|question|d3m|_)*_?(id|ids|uuid|index|_)", re.I
)
_MOST: Final = 8


@dataclass(frozen=True)
class ColumnGuesses:
    """The columns that look like something, in the order of the table."""

    truth: Sequence[str]
    predictions: Sequence[str]
    scores: Sequence[str]
    ids: Sequence[str]


def guess_columns(table: pa.Table, truth: str | None = None) -> ColumnGuesses:
    """The columns that look like truth, predictions, scores and ids.

    With `truth`, a column whose values all occur in it looks like a prediction too.

    Example:
        >>> guess_columns(pa.table({"id": [1], "label": ["a"], "pred_a": ["a"], "p_a": [0.5]})).predictions
        ['pred_a']
    """
    names = [name for name in table.column_names if name != truth]
    ids = [name for name in names if _ID.fullmatch(name)]
    rest = [name for name in names if name not in ids]
    truths = [truth] if truth is not None else [name for name in rest if _TRUTH.fullmatch(name)]
    rest = [name for name in rest if name not in truths]
    scores = [name for name in rest if _SCORE.fullmatch(name) and _holds_numbers(table, name)]
    rest = [name for name in rest if name not in scores]
    predictions = [name for name in rest if _PREDICTION.fullmatch(name)]
    if not predictions and len(truths) == 1:
        predictions = [name for name in rest if _shares_values(table, truths[0], name)]
    return ColumnGuesses(truths, predictions[:_MOST], scores[:_MOST], ids)


def looks_like_truth(name: str) -> bool:
    """Whether a column has a name such as `label`, `truth` or `y_true`."""
    return _TRUTH.fullmatch(name) is not None


def looks_like_prediction(name: str) -> bool:
    """Whether a column has a name such as `prediction`, `y_pred` or `model_output`."""
    return _PREDICTION.fullmatch(name) is not None


def looks_like_id(name: str) -> bool:
    """Whether a column has a name such as `id`, `row_id` or `uuid`."""
    return _ID.fullmatch(name) is not None


def _holds_numbers(table: pa.Table, name: str) -> bool:
    return contents(table.schema.field(name).type) in ("numbers", "integers")


def _shares_values(table: pa.Table, truth: str, name: str) -> bool:
    """Whether all values of a column occur in the truth, or both hold real numbers."""
    kinds = [contents(table.schema.field(column).type) for column in (truth, name)]
    if kinds[0] != kinds[1]:
        return False
    if kinds[0] == "numbers":
        return True
    if kinds[0] not in ("bools", "integers", "text"):
        return False
    known, values = (pc.unique(table.column(column)).drop_null() for column in (truth, name))
    return bool(len(values) and pc.all(pc.is_in(values, known)).as_py())
