"""Confidences of models from stored evaluations, as the input of `solve`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Measure, attribute_columns, dataset_of, shards
from evaluand.comparison.find import declared_measures
from evaluand.core.errors import DataError, EvaluandWarning, Fault, SpecError
from evaluand.core.key_columns import INDEX
from evaluand.core.registry import nearest
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.prediction_table import class_score, label_text, scored_classes
from evaluand.metrics.base.metric import CLUSTER, WEIGHT
from evaluand.tradeoff.confidences import Confidences, positive_label

CONFIDENT: Final = {"truth", "prediction", "confidence"}
"""The columns of a scorer's table that make it one of predictions with confidences."""


def confidences_of(
    evaluations: Mapping[str, Evaluation],
    by: Sequence[str] = (),
    *,
    label: str | int | bool | None = None,
    scorer: str | None = None,
    system: str = "system",
    declared: Sequence[Measure] | None = None,
) -> Confidences:
    """The confidences of models that were evaluated on the same examples, for `solve`.

    Rows without a confidence of some model are left out for all models, and reported as an `EvaluandWarning`. Rows
    count by the weights of the dataset, unless metrics of these scores are declared and none is `weighted`. Clusters
    are those of the dataset; without any, the replications of an example form one.

    Args:
        evaluations: model → its evaluation.
        by: attributes of the dataset.
        label: the positive label; by default `True` of bools and 1 of integers.
        scorer: one of the kind `prediction`; by default the only one with confidences.
        system: the name of the system that the models belong to.
        declared: metrics as they were declared; by default those of the aggregation of the evaluations.

    Raises:
        SpecError: there is no such scorer or attribute, or the examples differ.
        DataError: no row has a confidence of every model.
    """
    tables = {name: _scored_rows(name, evaluation, by, scorer) for name, evaluation in evaluations.items()}
    labels = {one for table in tables.values() for one in pc.unique(table["truth"]).to_pylist()}
    label = positive_label(sorted(labels, key=lambda one: (str(type(one)), one)), label)
    confidence = {name: _probability(name, table, label) for name, table in tables.items()}
    if missing := [name for name, each in confidence.items() if len(each) and np.isnan(each).all()]:
        raise DataError(missing_confidences(missing))
    known = {name: tables[name].filter(pa.array(~np.isnan(confidence[name]))) for name in tables}
    common = set.intersection(*(set(_keys(table)) for table in known.values()))
    if not common:
        raise DataError("no row has a truth and a confidence of every model; were they run on the same examples?")
    _warn_left_out(len(set().union(*map(_keys, tables.values()))) - len(common))
    used = {
        name: _select_keys(table.append_column(_CONFIDENCE, pa.array(confidence[name])), common)
        for name, table in tables.items()
    }
    first = next(iter(used.values()))
    positive = pa.array([one == label for one in first["truth"].to_pylist()], pa.bool_())
    models = {name: table[_CONFIDENCE] for name, table in used.items()}
    attributes = {name: first[column] for name, column in zip(by, attribute_columns(by), strict=True)}
    weight, cluster = (first[column] if column in first.column_names else None for column in (WEIGHT, CLUSTER))
    if weight is not None and not _is_weighted(evaluations, scorer, declared):
        weight = None
    cluster = first[INDEX] if cluster is None else cluster  # replications of an example are not independent
    return Confidences.read(positive, models, attributes, label=True, system=system, weight=weight, cluster=cluster)


def missing_confidences(models: Sequence[str]) -> str:
    """A message for models without confidences."""
    return (
        f"no confidences are recorded of {', '.join(models)}, and thresholds apply to confidences; add a confidence to "
        "the response (see howto/tradeoffs: What to record)"
    )


def lacks_confidences(evaluation: Evaluation, scorer: str | None) -> bool:
    """Whether rows have predictions, and none has a confidence."""
    chosen = prediction_scorer(evaluation, scorer)
    if chosen is None:
        return False
    columns = [name for name in ("confidence", "scores") if name in evaluation.columns(chosen)]
    batches = evaluation.batches(chosen, ["prediction", *columns])
    counts = [[len(column) - column.null_count for column in batch.columns] for batch in batches]
    predicted, *known = map(sum, zip(*counts, strict=True)) if counts else (0,)
    return predicted > 0 and not any(known)


def prediction_scorer(evaluation: Evaluation, scorer: str | None) -> str | None:
    """The scorer whose table has confidences: the one named, or the only one; None if there is none."""
    known = _prediction_scorers(evaluation)
    chosen = scorer or (known[0] if len(known) == 1 else None)
    return chosen if chosen in known else None


def unclear_scorer(known: Sequence[str]) -> str:
    """A message for confidences whose scorer is not clear."""
    message = f"name the scorer of the kind prediction; there are: {', '.join(known) or 'none'}"
    hint = "thresholds apply to confidences; without them, use objectives of scores such as mean(SCORER)"
    return message if known else f"{message}; {hint}"


def _prediction_scorers(evaluation: Evaluation) -> list[str]:
    return [each for each in evaluation.scorers if set(evaluation.columns(each)) >= CONFIDENT]


def _warn_left_out(n: int) -> None:
    if n:
        words = "1 row is left out" if n == 1 else f"{n:,} rows are left out"
        message = f"{words}, as not every model has a confidence for {'it' if n == 1 else 'them'}"
        warnings.warn(message, EvaluandWarning, stacklevel=3)


def _is_weighted(evaluations: Mapping[str, Evaluation], scorer: str | None, declared: Sequence[Measure] | None) -> bool:
    """Whether rows count by their weights: as in the metrics of the same scores; yes if there are none."""
    each = list(evaluations.values())
    chosen = scorer or _prediction_scorers(each[0])[0]
    measures = declared_measures(each) if declared is None else declared
    settings = {bool(getattr(one.metric, "weighted", False)) for one in measures if one.scorer == chosen}
    if len(settings) > 1:
        problem = f"some metrics of {chosen!r} are declared weighted and some not"
        warnings.warn(f"{problem}; the trade-off at thresholds is weighted", EvaluandWarning, stacklevel=3)
    elif settings == {False}:
        problem = "the weights of the dataset are ignored"
        reason = f"no metric of {chosen!r} is declared weighted: true"
        warnings.warn(f"{problem}, as {reason}", EvaluandWarning, stacklevel=3)
    return settings != {False}


def _scored_rows(name: str, evaluation: Evaluation, by: Sequence[str], scorer: str | None) -> pa.Table:
    """The rows of an evaluation that were scored and have a truth."""
    dataset = dataset_of(evaluation)
    for attribute in by:
        if attribute not in dataset.roles.attributes:
            raise SpecError(
                f"{name}: {attribute!r} is no attribute of the dataset{nearest(attribute, dataset.roles.attributes)}; "
                "name it under attributes"
            )
    chosen = prediction_scorer(evaluation, scorer)
    if chosen is None:
        raise SpecError(f"{name}: {unclear_scorer(_prediction_scorers(evaluation))}")
    table = pa.concat_tables(shards(evaluation, dataset, chosen, by), promote_options="default")
    return table.filter(pc.and_(pc.is_valid(table["truth"]), pc.equal(table["status"].cast(pa.string()), "scored")))


def _keys(table: pa.Table) -> Iterator[tuple[int, int]]:
    return zip(*(table[name].to_pylist() for name in _KEY), strict=True)


def _select_keys(table: pa.Table, keys: Set[tuple[int, int]]) -> pa.Table:
    selected = [key in keys for key in _keys(table)]
    return table.filter(pa.array(selected)).sort_by([(name, "ascending") for name in _KEY])


def _probability(name: str, table: pa.Table, label: Any) -> np.ndarray:
    """A model's confidence in the label; NaN where the row has none.

    It is the score of this class; else the confidence, if that is of this class; else, of two classes, one minus the
    confidence in the other. The confidence in one of several other classes says nothing about the label.
    """
    of = table["confidence_of"] if "confidence_of" in table.column_names else table["prediction"]
    classes = pc.coalesce(of, table["prediction"])
    confidence = np.array(table["confidence"].to_numpy(), np.float64)
    scores = table["scores"].combine_chunks() if "scores" in table.column_names else pa.nulls(len(table))
    score = class_score(scores, label_text(label))
    own = np.where(
        np.isnan(score), np.where([each == label for each in classes.to_pylist()], confidence, np.nan), score
    )
    complement = np.isnan(own) & ~np.isnan(confidence)
    if not complement.any():
        return own
    columns = [table["truth"], table["prediction"], of]
    others = {label_text(one) for column in columns for one in pc.unique(column).to_pylist() if one is not None}
    others |= set(scored_classes(scores))
    others -= {label_text(label)}
    if len(others) > 1:
        one, other = sorted(others)[:2]
        problem = f"{complement.sum():,} of {len(table):,} rows have no confidence in {label!r}"
        reason = f"with {one!r} and {other!r} as further classes, the confidence in one of them does not give it"
        raise DataError(Fault(name, f"{problem}: {reason}; have the task return the probabilities of all classes"))
    if ((confidence[complement] < 0) | (confidence[complement] > 1)).any():
        problem = f"its confidences are not probabilities, so that in {label!r} does not follow from the other class"
        raise DataError(Fault(name, f"{problem}; record the confidence in {label!r}"))
    implied = np.isnan(score) & ~np.isnan(confidence)
    if "confidence_of" in table.column_names:
        implied &= of.is_null().to_numpy()
    _check_predicted_class(name, confidence[implied], table["prediction"].filter(pa.array(implied)).to_pylist(), label)
    return np.where(complement, 1 - confidence, own)


def _check_predicted_class(name: str, confidence: np.ndarray, predicted: Sequence[Any], label: Any) -> None:
    """Refuses confidences that clearly are those of one class, not of the prediction, and warns of doubtful ones.

    Of two classes the more likely one has a probability of a half or more. If many predictions have less, and one class
    is predicted wherever the confidence is high and the other wherever it is low, then it is the probability of that
    class.

    Raises:
        DataError: the confidences are those of one class.
    """
    is_label = np.array([one == label for one in predicted], bool)
    low = int((confidence < _EVEN).sum())
    if not low or is_label.all() or not is_label.any():
        return
    ends = [(confidence[side].min(), confidence[side].max()) for side in (is_label, ~is_label)]
    likely = label if ends[0][0] >= ends[1][1] else next(one for one in predicted if one != label)
    separated = ends[0][0] >= ends[1][1] or ends[1][0] >= ends[0][1]
    counts = f"{low:,} of {len(confidence):,} confidences are below 0.5"
    problem = f"{counts}, and the predicted of two classes has 0.5 or more"
    hint = "add the class of the confidence to the response as confidence_of, or the probabilities of both"
    if separated and low >= _CLEAR:
        finding = f"{likely!r} is predicted where they are high, so they seem to be the probability of {likely!r}"
        raise DataError(Fault(name, f"{problem}; {finding}; {hint} (see howto/tradeoffs: What to record)"))
    if low >= _DOUBTFUL * len(confidence):
        assumption = "they are read as those of the predicted class; if they are the probability of one class"
        warnings.warn(f"{name}: {problem}; {assumption}, {hint}", EvaluandWarning, stacklevel=5)


_KEY: Final = (INDEX, "replication")
_CONFIDENCE: Final = "_confidence_"
_EVEN: Final = 0.5
_CLEAR: Final = 5
"""So many confidences below a half are no accident where they separate the predictions."""
_DOUBTFUL: Final = 0.05
"""The share of confidences below a half that gets a warning."""
