"""Systems whose truth, predictions and scores are arrays, read by the rules of columns of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from evaluand.aggregation.disparity import check_kinds
from evaluand.core.errors import SpecError
from evaluand.evaluation.prediction_table import PredictionColumns, label_text, to_column
from evaluand.metrics.base.metric import Metric
from evaluand.predictions.arrays.array_columns import check_lengths, check_one_index, read_class_scores, read_groupings
from evaluand.predictions.arrays.matrices import ArrayInputs, as_columns
from evaluand.predictions.columns.notes import Notes
from evaluand.predictions.columns.proposals import Proposals
from evaluand.predictions.columns.readings import read_typed
from evaluand.predictions.columns.scoring import ColumnOptions, ColumnScores, score_systems
from evaluand.predictions.columns.systems import SystemSpec, make_system
from evaluand.predictions.columns.tables import NamedTable

ARGUMENTS: Final = {"pos-label": "label", "score": "scores", "prediction": "predictions"}


class Reading(NamedTuple):
    """The arguments of `evaluate` that say how to read arrays whose values leave it open.

    Attributes:
        as_text: whether truth and predictions are text, for metrics of text.
    """

    kind: str | None
    label: Any
    classes: Sequence[Any] | None
    threshold: float | None
    as_text: bool = False

    def types(self, *names: str) -> Mapping[str, str]:
        """Column → its declared type."""
        return dict.fromkeys(names, "text") if self.as_text else {}


def read_system(
    columns: Mapping[str, pa.Array], scores: ScoreColumns, reading: Reading, weight: Any
) -> tuple[PredictionColumns, Proposals, Notes]:
    """One system in the types of the scorer `prediction`, the metrics that suit it, and what was assumed.

    Args:
        columns: `truth`, and `predictions` and `confidence` if there are any, with all other arrays of the rows.
        weight: as it was passed.

    Raises:
        SpecError: the arrays do not fit each other.
        DataError: a value is not a number where one is needed; names its row.
    """
    notes = Notes(ARGUMENTS, arrays=True)
    types = reading.types("truth", "predictions")
    base = NamedTable("the arrays", pa.table(dict(columns)), lambda row: f"row {row}", types=types)
    decided = "predictions" in columns
    spec = SystemSpec(
        "predictions" if decided else "scores",
        base,
        prediction="predictions" if decided else None,
        score=scores.alone,
        confidence="confidence" if "confidence" in columns else None,
        rates_class=False,
        scores=scores.by_text,
    )
    label = scores.label if reading.label is None else reading.label
    typed = read_typed(base, "truth", [spec], notes, kind=reading.kind, label=label)
    prediction = typed.predictions.get(spec.name)
    _check_scored(typed.truth, prediction, typed.target.classes, scores)
    system = make_system(
        spec,
        typed.truth,
        prediction,
        typed.target,
        threshold=reading.threshold,
        weight=weight,
        type=typed.type,
        notes=notes,
    )
    remedy = f"{notes.option('prediction')} or {notes.option('threshold')}"
    proposals = Proposals(typed.target, system.decides, system.gives, remedy, weighted=weight is not None)
    return system.columns, proposals, notes


class ScoreColumns(NamedTuple):
    """The columns of scores of one system.

    Attributes:
        alone: the scores of the positive class, if there is no other.
        by_text: text of a label → its scores.
        label: the class of the scores in `alone`, if it follows from the order of the classes.
    """

    alone: str | None
    by_text: Mapping[str, str] | None
    label: Any


def name_scores(inputs: ArrayInputs, suffix: str = "") -> tuple[dict[str, Any], ScoreColumns]:
    """The scores of a system as columns by their names in messages."""
    if inputs.score is not None:
        alone = f"scores{suffix}"
        return {alone: inputs.score}, ScoreColumns(alone, None, inputs.score_label)
    by_class = dict(read_class_scores(inputs.scores))
    columns = {f"score of {label!r}{suffix}": values for label, values in by_class.items()}
    by_text = dict(zip(map(label_text, by_class), columns, strict=True))
    return columns, ScoreColumns(None, by_text or None, None)


def _check_scored(truth: pa.Array, prediction: pa.Array | None, classes: Sequence[Any], scores: ScoreColumns) -> None:
    """Refuses scores that belong to no class of the rows, and scores without predictions if there are no classes."""
    if prediction is None and (not classes or truth.null_count == len(truth)):
        raise SpecError("scores alone decide between classes, and truth has none; pass predictions too")
    if not scores.by_text or not classes:
        return
    labels = truth.drop_null().unique().to_pylist()
    labels += [] if prediction is None else prediction.drop_null().unique().to_pylist()
    if labels and not {*scores.by_text} & {*map(label_text, labels)}:
        shown = ", ".join(map(repr, [*scores.by_text][:3]))
        raise SpecError(
            f"scores are a mapping label → n numbers, and no row has the label {shown}; evaluate systems one by one, or"
            " pass predictions={system: …} too"
        )


def evaluate_systems(
    truth: Any,
    predictions: Mapping[Any, Any],
    metrics: Sequence[str | Metric],
    disparities: Any,
    reading: Reading,
    *,
    by: Any,
    weight: Any,
    cluster: Any,
    confidence: Any,
    scores: Any,
) -> ColumnScores:
    """Several systems, as columns of one table.

    Args:
        confidence: system → n numbers, or None.
        scores: system → scores in any form that one system may have, or None.
    """
    if not predictions:
        raise SpecError("predictions is empty; give at least one system")
    for option, values in (("confidences", confidence), ("scores", scores)):
        if values is not None and not (isinstance(values, Mapping) and values.keys() <= predictions.keys()):
            raise SpecError(f"{option} of several systems must be a mapping system → n numbers")
    columns: dict[str, Any] = {}
    specs: dict[str, dict[str, Any]] = {}
    scored_label = None
    for system, values in predictions.items():
        name = str(system)
        inputs = as_columns(truth, values, (scores or {}).get(system), reading.classes, reading.label)
        if name in columns or name == "truth":
            raise SpecError(_SAME_NAME)
        own, specs[name] = _system_columns(name, inputs, (confidence or {}).get(system))
        columns |= {"truth": inputs.truth} | own
        scored_label = inputs.score_label if scored_label is None else scored_label
    groupings = dict(read_groupings(by))
    others = {name: values for name, values in (("weight", weight), ("cluster", cluster)) if values is not None}
    if {*columns} & {*groupings, *others}:
        raise SpecError(_SAME_NAME)
    columns |= groupings | others
    check_one_index(columns)
    arrays = {name: to_column(name, values) for name, values in columns.items()}
    check_lengths(arrays)
    types = reading.types("truth", *specs)
    base = NamedTable("the arrays", pa.table(arrays), lambda row: f"row {row}", types=types)
    options = ColumnOptions(
        truth="truth",
        predictions=tuple(specs),
        metrics=metrics,
        by=tuple(groupings),
        disparities=check_kinds(disparities),
        kind=reading.kind,
        threshold=reading.threshold,
        weight="weight" if "weight" in others else None,
        cluster="cluster" if "cluster" in others else None,
    )
    systems = [SystemSpec(name, base, **spec) for name, spec in specs.items()]
    label = scored_label if reading.label is None else reading.label
    return score_systems(base, systems, options, Notes(ARGUMENTS, arrays=True), None, "columns", label=label)


def _system_columns(name: str, inputs: ArrayInputs, confidence: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of a system, and their roles for `SystemSpec`."""
    columns, scores = name_scores(inputs, f" of {name}")
    spec: dict[str, Any] = {"score": scores.alone, "scores": scores.by_text, "rates_class": False}
    if inputs.predictions is not None:
        columns[name], spec["prediction"] = inputs.predictions, name
    if confidence is not None:
        spec["confidence"] = f"confidence of {name}"
        columns[spec["confidence"]] = confidence
    return columns, spec


_SAME_NAME: Final = "systems and groups must have different names, none of them 'truth', 'weight' or 'cluster'"
