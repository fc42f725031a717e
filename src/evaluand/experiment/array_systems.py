"""Systems whose truth, predictions and scores are arrays, read by the rules of columns of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from evaluand.aggregation.disparity import check_kinds
from evaluand.core.errors import SpecError
from evaluand.evaluation.prediction_table import PredictionColumns, label_text, to_column, to_numbers
from evaluand.experiment.array_columns import check_lengths, check_one_index, read_class_scores, read_groupings
from evaluand.experiment.columns.notes import Notes
from evaluand.experiment.columns.proposals import Proposals
from evaluand.experiment.columns.readings import read_typed
from evaluand.experiment.columns.scoring import ColumnOptions, ColumnScores, score_systems
from evaluand.experiment.columns.systems import SystemSpec, check_direction, complete_scores, decide
from evaluand.experiment.columns.tables import NamedTable
from evaluand.experiment.matrices import Given, as_columns
from evaluand.metrics.base.metric import Metric
from evaluand.store.store import MemoryStore

ARGUMENTS: Final = {"pos-label": "label", "score": "scores", "prediction": "predictions"}
_WITH_CLASSES: Final = ("binary", "multiclass", "text")


class Reading(NamedTuple):
    """How arrays are to be read, where their values do not say it: the arguments of `evaluate` of that name."""

    kind: str | None
    label: Any
    classes: Sequence[Any] | None
    threshold: float | None


def read_system(
    columns: Mapping[str, pa.Array],
    by_class: Mapping[Any, pa.Array],
    scored_class: Any,
    reading: Reading,
    weight: Any,
) -> tuple[PredictionColumns, Proposals, Notes]:
    """One system in the types of the scorer `prediction`, the metrics that suit it, and what was taken for granted.

    Args:
        columns: `truth`, and `predictions` if there are any, with all other arrays of the rows.
        by_class: label → scores.
        scored_class: the class whose scores alone were passed; None if each class has its own.
        weight: as it was passed.

    Raises:
        SpecError: the arrays do not fit each other.
        DataError: a value is no number where one is needed; names its row.
    """
    notes = Notes(ARGUMENTS)
    base = NamedTable("the arrays", pa.table(dict(columns)), lambda row: f"row {row}")
    decided = "predictions" in columns
    spec = SystemSpec(
        "predictions" if decided else "scores",
        base,
        prediction="predictions" if decided else None,
        score=None if scored_class is None else "scores",
    )
    label = scored_class if reading.label is None and reading.classes is not None else reading.label
    labels = [each for each in by_class if isinstance(each, str | int | bool)]
    typed = read_typed(base, "truth", [spec], notes, kind=reading.kind, label=label, scored=labels)
    has_classes = typed.target.kind in _WITH_CLASSES
    numbers = {each: to_numbers(f"score of {each!r}", column) for each, column in by_class.items()}
    scores, gives = complete_scores(numbers, typed.target) if numbers and has_classes else (numbers, "nothing")
    if "confidence" in columns:
        gives = "confidence"
    prediction = typed.predictions.get(spec.name)
    if scored_class is not None:
        scores = {scored_class: scores[scored_class], **scores}
    if prediction is None:
        _check_scored(typed.truth, typed.target.classes, scores)
        prediction = decide(spec, scores, typed.target, gives, reading.threshold, notes)
    elif scored_class is not None:
        check_direction(spec, "scores", scores[scored_class], prediction, scored_class, notes)
    decides = decided or reading.threshold is not None or scored_class is None
    remedy = f"{notes.option('prediction')} or {notes.option('threshold')}"
    built = PredictionColumns.build(
        typed.truth,
        prediction,
        confidence=columns.get("confidence"),
        scores=scores or None,
        weight=weight,
        type=typed.type,
    )
    return built, Proposals(typed.target, decides, gives, remedy), notes


def _check_scored(truth: pa.Array, classes: Sequence[Any], scores: Mapping[Any, Any]) -> None:
    """Refuses scores without predictions that belong to no class of the truth."""
    if not classes or truth.null_count == len(truth):
        raise SpecError("scores alone decide between classes, and truth has none; pass predictions too")
    if not {*scores} & {*truth.drop_null().unique().to_pylist()}:
        shown = ", ".join(map(repr, list(scores)[:3]))
        raise SpecError(
            f"scores are a mapping label → n numbers, and no row of truth has {shown}; evaluate systems one by one, or"
            " pass predictions={system: …} too"
        )


def evaluate_systems(
    truth: Any,
    predictions: Mapping[Any, Any],
    metrics: Sequence[str | Metric],
    by: Any,
    named: Mapping[str, Any],
    confidence: Any,
    scores: Any,
    disparities: Any,
    reading: Reading,
) -> ColumnScores:
    """Several systems, as columns of one table.

    Args:
        named: weight and cluster; None where there is none.
        confidence: system → n numbers, or None; scores likewise, each in any form of those of one system.
    """
    if not predictions:
        raise SpecError("predictions is empty; give at least one system")
    for option, values in (("confidences", confidence), ("scores", scores)):
        if values is not None and not (isinstance(values, Mapping) and values.keys() <= predictions.keys()):
            raise SpecError(f"{option} of several systems must be a mapping system → n numbers")
    columns: dict[str, Any] = {}
    specs: dict[str, dict[str, Any]] = {}
    labels: dict[Any, None] = {}
    for system, values in predictions.items():
        name = str(system)
        given = as_columns(truth, values, (scores or {}).get(system), reading.classes, reading.label)
        if name in columns or name == "truth":
            raise SpecError(_SAME_NAME)
        own, specs[name], of_system = _system_columns(name, given, (confidence or {}).get(system))
        columns |= {"truth": given.truth} | own
        labels |= dict.fromkeys(of_system)
    groupings = dict(read_groupings(by))
    others = {name: values for name, values in named.items() if values is not None}
    if {*columns} & {*groupings, *others}:
        raise SpecError(_SAME_NAME)
    columns |= groupings | others
    check_one_index(columns)
    arrays = {name: to_column(name, values) for name, values in columns.items()}
    check_lengths(arrays)
    base = NamedTable("the arrays", pa.table(arrays), lambda row: f"row {row}")
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
    return score_systems(
        base, systems, options, Notes(ARGUMENTS), MemoryStore(), "columns", label=reading.label, scored=[*labels]
    )


def _system_columns(name: str, given: Given, confidence: Any) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """The columns of a system, which of them `SystemSpec` takes for what, and the labels that have scores."""
    columns: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    if given.predictions is not None:
        columns[name], spec["prediction"] = given.predictions, name
    by_class = dict(read_class_scores(given.scores))
    if given.scored_class is not None:
        by_class = {given.scored_class: by_class[given.scored_class]}
        spec["score"] = f"scores of {name}"
        columns[spec["score"]] = by_class[given.scored_class]
    elif by_class:
        spec["scores"] = {label_text(label): f"score of {label!r} of {name}" for label in by_class}
        columns |= {f"score of {label!r} of {name}": column for label, column in by_class.items()}
    if confidence is not None:
        spec["confidence"] = f"confidences of {name}"
        columns[spec["confidence"]] = confidence
    return columns, spec, [*by_class]


_SAME_NAME: Final = "systems and groups must have different names, none of them 'truth', 'weight' or 'cluster'"
