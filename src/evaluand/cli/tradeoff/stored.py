"""Systems in the store, as the options of a command describe them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from click import UsageError

from evaluand.aggregation.aggregator import dataset_of
from evaluand.core import registry
from evaluand.evaluation.evaluator import Evaluation
from evaluand.store.directory import DirectoryStore
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.constraints import Limit
from evaluand.tradeoff.evaluations import find_variants, of_evaluations
from evaluand.tradeoff.files.metrics import parse_metrics
from evaluand.tradeoff.points import Tradeoff
from evaluand.tradeoff.short_names import FAIRNESS, UTILITIES, WITHIN
from evaluand.tradeoff.stored_confidences import CONFIDENT, confidences_of


@dataclass(frozen=True)
class Stored:
    """The systems of --stored, with the metrics, attributes and thresholds asked for.

    Attributes:
        names: the values of --stored: `NAME` or `SYSTEM=NAME`.
        metrics: the metrics; none for the default ones.
        label: the positive label, as text.
        scorer: the scorer of the confidences or scores.
        thresholds: the value of --thresholds.
    """

    store: DirectoryStore
    names: tuple[str, ...]
    metrics: tuple[str, ...]
    by: tuple[str, ...]
    label: str | None
    scorer: str | None
    thresholds: str | None

    @property
    def of_scores(self) -> bool:
        """Whether runs are points by their stored scores, not models with thresholds."""
        of_scores = [_is_of_scores(metric) for metric in self.metrics]
        if any(of_scores) and not all(of_scores):
            one, other = self.metrics[of_scores.index(True)], self.metrics[of_scores.index(False)]
            raise UsageError(
                f"{one} is a metric of stored scores and {other} one of decisions at thresholds; give only one sort"
            )
        return bool(self.names) and any(of_scores)

    def with_metrics_of(self, best: str, where: Sequence[str]) -> Stored:
        """The same with the metrics of a choice, if no others are asked for."""
        if self.metrics or not self.names:
            return self
        metrics = dict.fromkeys([best, *(Limit.parse(text, best).name for text in where)])
        return replace(self, metrics=tuple(metrics))

    def confidences(self) -> Iterator[Confidences]:
        """The confidences of each system."""
        objectives = parse_metrics(self.metrics) if self.metrics else ()
        names = dict.fromkeys((*self.by, *(name for one in objectives for name in one.by)))
        for system, evaluations in self._systems():
            every = dataset_of(next(iter(evaluations.values()))).roles.attributes
            yield self.confidences_of(evaluations, [*names] if names or objectives else every, system)

    def confidences_of(self, evaluations: Mapping[str, Evaluation], by: Sequence[str], system: str) -> Confidences:
        """The confidences of some evaluations, with the options of the command."""
        label = _parse_label(self.label, [*evaluations.values()])
        return confidences_of(evaluations, by, label=label, scorer=self.scorer, system=system)

    def points(self) -> Iterator[Tradeoff]:
        """The points of each system, by stored scores."""
        for system, evaluations in self._systems():
            yield self.points_of(evaluations, self.metrics, system)

    def points_of(self, evaluations: Mapping[str, Evaluation], metrics: Sequence[str], system: str) -> Tradeoff:
        """The points of some evaluations, with the options of the command."""
        label = _parse_label(self.label, [*evaluations.values()])
        return of_evaluations(evaluations, metrics, label=label, scorer=self.scorer, system=system)

    def _systems(self) -> Iterator[tuple[str, dict[str, Evaluation]]]:
        """Each system with its models or variants: `SYSTEM=NAME`, or all names without a system as one."""
        known = {ref.name for ref in self.store.refs()}
        names_of: dict[str, list[str]] = {}
        unnamed = [text for text in self.names if text in known or "=" not in text]
        together = " + ".join(unnamed)
        if len(together) > _LONGEST:
            together = f"{unnamed[0]} + {len(unnamed) - 1} others"
        for text in self.names:
            system, _, name = (together, "", text) if text in unnamed else text.partition("=")
            names_of.setdefault(system, []).append(name)
        for system, names in names_of.items():
            yield system, find_variants(self.store, names)


def _is_of_scores(metric: str) -> bool:
    """Whether a metric is one of stored scores; the attributes of short names may contain any character."""
    head, attribute, _ = metric.partition("+")
    if head in UTILITIES or (attribute and head in (*FAIRNESS, *WITHIN)):
        return False
    return bool(re.search(r"[(\s]", metric)) or metric in registry.names("metrics")


def _parse_label(text: str | None, evaluations: Sequence[Evaluation]) -> str | int | bool | None:
    """The label in the type of the stored truths; as text if it does not fit that type."""
    if text is None:
        return None
    types = [
        schema.field("truth").type
        for evaluation in evaluations
        for schema in (next(evaluation.batches(scorer)).schema for scorer in evaluation.scorers)
        if set(schema.names) >= CONFIDENT
    ]
    if any(map(pa.types.is_boolean, types)):
        return {"true": True, "false": False}.get(text.lower(), text)
    if any(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types):
        try:
            return int(text)
        except ValueError:
            return text
    return text


_LONGEST: Final = 80
