"""Public definitions of the metrics by which problems are judged, in terms of our kinds.

One table of data, `definitions.json`. Where programs and papers differ, they differ there.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from evaluand.core import registry
from evaluand.core.errors import nearest
from evaluand.metrics.base.metric import OverTargets
from evaluand.metrics.names import canonical_name, explain_unknown, is_name, resolve_metric

Reads = Literal["labels", "sets", "numbers", "rows", "scores", "confidence", "ranking", "boxes"]
"""What is read of each example: one label; one label or several (`sets`); a number; any value, in the order of the file
(`rows`); a score for each class; a label with its confidence; answers with their ranks; or boxes."""

Positive = Literal["none", "one", "given", "chosen"]
"""Whether a label counts as positive: none does; 1 unless another is named (`one`); one must be named (`given`); or the
kind works without one (`chosen`)."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Rule:
    """A metric under one definition.

    Attributes:
        kind: our kind of metric.
        reads: what it is computed from.
        parameters: of the kind.
        positive: whether a label counts as positive; it is the kind's parameter `label`.
        k: the default of the kind's `k`; 0 if it must be given; None if the kind has none.
        labels: whether the kind takes the list of all labels.
        two_classes: whether more than two classes are refused.
        one_value: whether both classes must give the same value.
        jointly: how several targets are judged together; None if they cannot be.
        always_jointly: whether several targets are always judged together.
        clusters: whether labels are names of clusters, so that only their partition counts.
        without_scores: the rule where predictions have no confidence.
        of_sets: whether scores of labels are also judged where examples have several labels, each label by itself.
        if_none_ranked: parameters where no ranking has a right answer.
        of_truth: further columns of numbers that are read from the truth, such as the scale of a forecast's series.
    """

    kind: str
    reads: Reads
    parameters: Mapping[str, Any] = field(default_factory=dict)
    positive: Positive = "none"
    k: int | None = None
    labels: bool = False
    two_classes: bool = False
    one_value: bool = False
    jointly: OverTargets | None = "mean"
    always_jointly: bool = False
    clusters: bool = False
    without_scores: Rule | None = None
    of_sets: bool = False
    if_none_ranked: Mapping[str, Any] = field(default_factory=dict)
    of_truth: tuple[str, ...] = ()

    def __repr__(self) -> str:
        values = ((each.name, getattr(self, each.name), each) for each in fields(self))
        listed = [f"{name}={value!r}" for name, value, each in values if value not in (each.default, {})]
        return f"Rule({', '.join(listed)})"


STANDARD: Final = "standard"
"""The well-defined one, and the default."""


class _Definitions(dict[str, Mapping[str, Rule]]):
    """Definition → metric → rule, of which a prompt shows the names alone."""

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {', '.join(rules)}" for name, rules in self.items())


def _read_definitions() -> Mapping[str, Mapping[str, Rule]]:
    """The definitions of `definitions.json`."""
    stated: dict[str, Any] = orjson.loads(Path(__file__).with_suffix(".json").read_bytes())
    return _Definitions({name: {key: _rule(each) for key, each in _rules(name, stated).items()} for name in stated})


def _rules(name: str, stated: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The rules of a definition, which may be as another one, with other attributes; a null parameter is left out."""
    entry, found = stated[name], dict[str, dict[str, Any]]()
    own, base = entry["metrics"], _rules(entry["as"], stated) if "as" in entry else {}
    for metric in dict.fromkeys([*base, *own]):
        of_base, changed = base.get(metric, {}), own.get(metric, {})
        parameters = changed.get("parameters", {})
        merged = {} if parameters is None else of_base.get("parameters", {}) | parameters
        kept = {key: value for key, value in merged.items() if value is not None}
        found[metric] = of_base | changed | entry.get("every", {}) | {"parameters": kept}
    return {metric: rule for metric, rule in found.items() if metric not in entry.get("without", ())}


def _rule(stated: Mapping[str, Any]) -> Rule:
    other = stated.get("without_scores")
    return Rule(**{**stated, "without_scores": None if other is None else _rule(other)})


DEFINITIONS: Final = _read_definitions()
"""Definition → metric → rule. `standard`: undefined is undefined, and no order of rows matters but to
`precision_at_top_k`, which looks at the first rows. `3.1.1`: the table and the code published with D3M's problem schema
3.1.1, that is scikit-learn, where `jaccard_similarity_score` was the accuracy of single labels. `core-2022`: D3M's core
package 2022.5.5, which judges all targets together. `nist`: NIST's scorer of 2019, which takes areas from hard labels.
`sklearn`: scikit-learn of today. `coco`: pycocotools."""

STANDARD_METRICS: Final = tuple(DEFINITIONS[STANDARD])
"""The metrics of common problems; a definition chooses the parameters of each."""

TAKES_K: Final = frozenset(name for name, rule in DEFINITIONS[STANDARD].items() if rule.k is not None)
TAKES_POSITIVE: Final = frozenset(name for name, rule in DEFINITIONS[STANDARD].items() if rule.positive != "none")


def rule_of(metric: str, definition: str | None) -> Rule | tuple[str, str]:
    """What a metric is under a definition, or why it is nothing: code and message.

    Example:
        >>> rule_of("hamming_loss", "core-2022").parameters
        {'one_hot': True}
        >>> rule_of("hamming_loss", "coco")[0]
        'not_applicable'
    """
    name = STANDARD if definition is None else definition
    if name not in DEFINITIONS:
        known = ", ".join(DEFINITIONS)
        return "definition_unknown", f"no definition is called {definition!r}{nearest(str(name), DEFINITIONS)}: {known}"
    rules = DEFINITIONS[name]
    if metric in rules:
        return rules[metric]
    if is_name(metric) and (canonical := canonical_name(metric)) != metric and canonical in STANDARD_METRICS:
        return rule_of(canonical, definition)
    if metric in STANDARD_METRICS:
        has = [other for other, rules in DEFINITIONS.items() if metric in rules]
        return "not_applicable", f"the definition {name} does not have this metric; take {' or '.join(has)}"
    return _of_kind(metric)


def _positive(takes: Mapping[str, inspect.Parameter]) -> Positive:
    """Of one class are kinds that have a label, unless they take the mean over classes by default."""
    if "label" not in takes:
        return "none"
    return "one" if "average" in takes and takes["average"].default is None else "chosen"


def _of_kind(metric: str) -> Rule | tuple[str, str]:
    """The rule of a metric by its name, from what its kind reads."""
    if not is_name(metric):
        return "not_applicable", explain_unknown(metric)
    name, parameters = resolve_metric(metric)
    kind = registry.find("metrics", name)
    takes = inspect.signature(kind).parameters
    needed = [name for name, one in takes.items() if one.default is one.empty and name not in parameters]
    if set(needed) - {"k"}:
        return "not_applicable", f"cannot judge by its name alone; it needs {' and '.join(needed)}"
    metric_object = kind(**parameters, **dict.fromkeys(needed, 1))
    columns = metric_object.columns
    reads = next((reads for column, reads in _READS.items() if column in columns), None)
    if reads is None and metric_object.label_columns:
        reads = "sets" if getattr(metric_object, "takes_sets", False) else "labels"
    elif reads is None and set(columns) - {_SCALE} == {"truth", "prediction"}:
        reads = "numbers"
    if reads is None:
        names = " and ".join(columns)
        reason = f"reads {names}, which predictions do not have" if names else "reads no prediction"
        return "not_applicable", f"{reason}, so it cannot judge predictions; choose another metric"
    return Rule(
        kind=name,
        reads=reads,
        parameters={**parameters, **({"absent": 0.0} if reads == "scores" and "absent" in takes else {})},
        k=0 if "k" in needed else takes["k"].default if "k" in takes else None,
        labels="labels" in takes,
        positive=_positive(takes) if reads != "boxes" else "none",
        jointly=None if reads == "boxes" else "mean",
        of_truth=(_SCALE,) if _SCALE in columns else (),
    )


_SCALE: Final = "scale"
_READS: Final[Mapping[str, Reads]] = {
    "scores": "scores",
    "confidence": "confidence",
    "ranks": "ranking",
    "first_rank": "ranking",
    "detections": "boxes",
}
"""What metrics with a column read; the first one decides."""
