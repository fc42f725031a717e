"""Prediction columns of a table scored against its truth: types and metrics follow from the data.

names      which columns look like truth, predictions and scores
tables     reads files, and joins them by id
systems    the predictions and scores of each system in the types of the truth
proposals  the kind of target, and the metrics that suit it
gates      the results of gates for each system
scoring    `score_columns`, which stores, compares and checks gates
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.predictions.columns.scoring import ColumnScores as ColumnScores, score_columns as score_columns

__getattr__, __dir__ = lazy_names(__name__)
