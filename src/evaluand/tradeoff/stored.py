"""Trade-offs of what is stored: each task of an experiment, or each of its settings, is a point.

A system without thresholds (an LLM application) has as many points as variants were run; their values, disparities and
intervals are those of the aggregation. Classifiers whose confidences are stored have points at every threshold: they
are the models of one system.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation import Aggregation, Measure, dataset_of, held_as, shards
from evaluand.errors import DataError, Doubt, Fault, SpecError
from evaluand.evaluation import Evaluation
from evaluand.fairness import CRITERIA
from evaluand.metric import CLUSTER, WEIGHT
from evaluand.registry import nearest
from evaluand.rows import INDEX
from evaluand.tradeoff import Confidences, Tradeoff
from evaluand.tradeoff.ends import Ends
from evaluand.tradeoff.objectives import Objective, written


def of_aggregation(aggregation: Aggregation, objectives: Sequence[str], system: str = "system") -> Tradeoff:
    """A point for each evaluation of an aggregation, called as it is there.

    Args:
        aggregation: of the variants of a system, with the disparities that are asked for.
        objectives: such as `mean(quality)` and `mean(quality) difference by topic`.
        system: what the points belong to.

    Raises:
        SpecError: the aggregation has no such metric or disparity, or several.
    """
    wanted = tuple(_found(text, aggregation.measures) for text in objectives)
    value, low, high = (np.full((len(aggregation.labels), len(wanted)), np.nan) for _ in Ends._fields)
    for place, objective in enumerate(wanted):
        for row in _rows(aggregation, objective):
            ends = (row[part] for part in Ends._fields)
            for part, end in zip((value, low, high), ends, strict=True):
                part[row["evaluation"], place] = np.nan if end is None else end
    n = len(aggregation.labels)
    return Tradeoff(
        objectives=wanted,
        models=tuple(aggregation.labels),
        model=np.arange(n),
        threshold=np.full(n, np.nan),
        value=value,
        trivial=np.zeros(n, bool),
        system=system,
        ends=Ends(value, low, high),
    )


def confidences_of(
    evaluations: Mapping[str, Evaluation],
    by: Sequence[str] = (),
    *,
    label: str | int | bool | None = None,
    scorer: str | None = None,
    system: str = "system",
) -> Confidences:
    """The confidences of models that were evaluated on the same examples, for `solve`.

    Rows that a model gave no confidence for are left out for all models, and told as a `Doubt`. Rows count by the
    weights of the dataset, and those of a cluster belong together; without clusters, replications of an example do.

    Args:
        evaluations: what each model is called → its evaluation.
        by: attributes of the dataset.
        label: the positive label; `True` of bools and 1 of integers if not given.
        scorer: one of the kind `prediction`; the only one that has confidences if not given.
        system: what the models belong to.

    Raises:
        SpecError: no such scorer or attribute, or other examples.
        DataError: no row has a confidence of every model.
    """
    tables = {name: _confident(name, evaluation, by, scorer) for name, evaluation in evaluations.items()}
    first, *others = tables.values()
    keys = [set(zip(*(table[name].to_pylist() for name in _KEY), strict=True)) for table in tables.values()]
    common = set.intersection(*keys)
    if not common:
        raise DataError("no row has a truth and a confidence of every model; were they run on the same examples?")
    left = len(set.union(*keys)) - len(common)
    if left:
        told = "row is left out, as not every model has a confidence for it"
        told = told if left == 1 else "rows are left out, as not every model has a confidence for them"
        warnings.warn(f"{left:,} {told}", Doubt, stacklevel=2)
    cut = [_of_keys(table, common) for table in (first, *others)]
    truth = cut[0]["truth"].combine_chunks()
    positive = Confidences.read(truth, {"": np.zeros(len(truth))}, label=label).truth
    label = truth[int(np.argmax(positive))].as_py() if positive.any() else label
    sure = {name: _probability(name, table, label) for name, table in zip(tables, cut, strict=True)}
    named = {name: cut[0][held] for name, held in zip(by, held_as(by), strict=True)}
    weight, cluster = (cut[0][name] if name in cut[0].column_names else None for name in (WEIGHT, CLUSTER))
    together = cut[0][INDEX] if cluster is None else cluster  # replications of an example belong together
    return Confidences.read(truth, sure, named, label=label, system=system, weight=weight, cluster=together)


def _confident(name: str, evaluation: Evaluation, by: Sequence[str], scorer: str | None) -> pa.Table:
    """The rows of an evaluation that have a truth and a confidence, in order."""
    dataset = dataset_of(evaluation)
    for attribute in by:
        if attribute not in dataset.roles.attributes:
            raise SpecError(
                f"{name}: {attribute!r} is no attribute of the dataset{nearest(attribute, dataset.roles.attributes)}; "
                "name it under attributes"
            )
    known = [
        each for each in evaluation.scorers if {"truth", "prediction", "confidence"} <= set(evaluation.columns(each))
    ]
    chosen = scorer or (known[0] if len(known) == 1 else None)
    if chosen is None or chosen not in known:
        raise SpecError(
            f"{name}: say which scorer of the kind prediction is meant; there are: {', '.join(known) or 'none'}"
        )
    table = pa.concat_tables(shards(evaluation, dataset, chosen, by), promote_options="default")
    there = pc.and_(pc.is_valid(table["truth"]), pc.is_valid(table["confidence"]))
    return table.filter(pc.and_(there, pc.equal(table["status"].cast(pa.string()), "scored")))


def _of_keys(table: pa.Table, keys: Set[tuple[int, int]]) -> pa.Table:
    kept = [key in keys for key in zip(*(table[name].to_pylist() for name in _KEY), strict=True)]
    return table.filter(pa.array(kept)).sort_by([(name, "ascending") for name in _KEY])


def _probability(name: str, table: pa.Table, label: Any) -> np.ndarray:
    """How sure a model is of the label, by its confidence in whatever class that is of."""
    of = table["confidence_of"] if "confidence_of" in table.column_names else table["prediction"]
    own = np.array([each == label for each in pc.coalesce(of, table["prediction"]).to_pylist()])
    sure = np.asarray(table["confidence"].to_numpy(), np.float64)
    if not own.all() and ((sure < 0) | (sure > 1)).any():
        raise DataError(Fault(name, "its confidences are no probabilities, so those of the other class tell nothing"))
    return np.where(own, sure, 1 - sure)


def _found(text: str, measures: Sequence[Measure]) -> Objective:
    """The objective with the metrics that were computed."""
    said = written(text)
    fits = [measure for measure in measures if _fits(said, measure)]
    scorers = list(dict.fromkeys(measure.scorer for measure in fits))
    if not fits:
        known = ", ".join(dict.fromkeys(map(_called, measures)))
        raise SpecError(f"{text!r} was not computed; there are: {known}")
    if len(scorers) > 1:
        raise SpecError(f"{text!r} was computed of several scorers; write such as {said['metric']}({scorers[0]})")
    parts = tuple(dict.fromkeys(measure.metric for measure in fits))
    if said["metric"] not in CRITERIA and len(parts) > 1:
        raise SpecError(f"{text!r} was computed in several ways: {'; '.join(part.signature for part in parts)}")
    return Objective(**{**said, "scorer": scorers[0]}, parts=parts)


def _fits(said: Mapping[str, Any], measure: Measure) -> bool:
    if said["scorer"] not in (None, measure.scorer):
        return False
    if said["disparity"] is None:
        return bool(said["metric"] == measure.metric.kind)
    name = measure.criterion or measure.metric.kind
    return bool(name == said["metric"] and said["disparity"] in measure.disparities and said["by"] in measure.by)


def _called(measure: Measure) -> str:
    metric = f"{measure.metric.kind}({measure.scorer})"
    if not measure.disparities:
        return metric
    by = " or ".join(", ".join(each) for each in measure.by)
    return f"{metric}, {measure.criterion or measure.metric.kind} {'|'.join(measure.disparities)} by {by}"


def _rows(aggregation: Aggregation, objective: Objective) -> Iterator[dict[str, Any]]:
    """The rows of its table that tell of an objective."""
    signatures = {part.signature for part in objective.parts}
    table = aggregation.disparities() if objective.disparity else aggregation.table()
    for row in table.to_pylist():
        if row["scorer"] != objective.scorer or row["target"] is not None:
            continue
        if objective.disparity is None:
            if row["signature"] in signatures and not row["by"]:
                yield row
        elif (row["metric"], row["disparity"], tuple(row["over"])) == (
            objective.metric,
            objective.disparity,
            objective.by,
        ):
            yield row


_KEY: Final = (INDEX, "replication")
