"""Public definitions of the metrics by which problems are judged, in terms of our kinds.

One table of data. Where programs and papers differ, they differ here.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal

from evaluand.core import registry
from evaluand.core.errors import nearest
from evaluand.metrics.base.metric import OverTargets
from evaluand.metrics.names import canonical_name, explain_unknown, is_name, resolve_metric
from evaluand.predictions.problem.problem import STANDARD_METRICS

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

_OF_ONE_CLASS: Final[Mapping[str, Any]] = {"reads": "labels", "positive": "one", "two_classes": True}
_AREA: Final[Mapping[str, Any]] = {"kind": "roc_auc", "reads": "scores", "of_sets": True}
_OF_CLASSES: Final[Mapping[str, Any]] = {"kind": "f_beta", "reads": "sets", "labels": True}

_STANDARD: Final = {
    "accuracy": Rule(kind="accuracy", reads="sets"),
    "precision": Rule(kind="precision", **_OF_ONE_CLASS),
    "recall": Rule(kind="recall", **_OF_ONE_CLASS),
    "f1": Rule(kind="f_beta", **_OF_ONE_CLASS),
    "f1_micro": Rule(parameters={"average": "micro"}, **_OF_CLASSES),
    "f1_macro": Rule(parameters={"average": "macro", "zero_division": 0}, **_OF_CLASSES),
    "roc_auc": Rule(parameters={"average": "macro", "absent": 0.0}, two_classes=True, one_value=True, **_AREA),
    "roc_auc_micro": Rule(parameters={"average": "micro", "absent": 0.0}, **_AREA),
    "roc_auc_macro": Rule(parameters={"average": "macro", "absent": 0.0}, **_AREA),
    "mean_squared_error": Rule(kind="mean_squared_error", reads="numbers"),
    "root_mean_squared_error": Rule(kind="root_mean_squared_error", reads="numbers", jointly="pooled"),
    "root_mean_squared_error_mean": Rule(kind="root_mean_squared_error", reads="numbers", always_jointly=True),
    "mean_absolute_error": Rule(kind="mean_absolute_error", reads="numbers"),
    "r_squared": Rule(kind="r_squared", reads="numbers"),
    "normalized_mutual_information": Rule(kind="normalized_mutual_information", reads="labels", clusters=True),
    "jaccard_similarity": Rule(kind="jaccard", **_OF_ONE_CLASS),
    "precision_at_top_k": Rule(kind="precision_at_top_k", reads="rows", parameters={"top": "first"}, k=20),
    "object_detection_average_precision": Rule(
        kind="mean_average_precision", reads="boxes", parameters={"definition": "standard"}, jointly=None
    ),
    "hamming_loss": Rule(kind="hamming_loss", reads="sets", labels=True),
    "mean_reciprocal_rank": Rule(kind="mean_reciprocal_rank", reads="ranking", parameters={"absent_rank": 500.0}),
    "hits_at_k": Rule(kind="hits_at_k", reads="ranking", k=0),
}


def _but(rule: Rule, /, **changed: Any) -> Rule:
    """A rule with other attributes, and some parameters besides."""
    return replace(rule, **changed | {"parameters": {**rule.parameters, **changed.get("parameters", {})}})


_ZERO: Final = {"zero_division": 0}
_HARD: Final = Rule(kind="roc_auc", reads="labels", parameters={"scored_by": "labels"})

_LIBRARY: Final = {
    **_STANDARD,
    **{name: _but(_STANDARD[name], parameters=_ZERO) for name in ("precision", "recall", "f1", "jaccard_similarity")},
    "r_squared": _but(_STANDARD["r_squared"], parameters={"constant": "zero_or_one"}),
}
"""What is 0 or 1 where there is nothing to divide by, as it is with scikit-learn."""

_SEPARATE: Final = {
    name: _but(rule, jointly=None) if rule.reads in ("labels", "sets", "scores") else rule
    for name, rule in _LIBRARY.items()
}
"""Labels of several targets are not judged together."""

_PUBLISHED: Final = {
    **_SEPARATE,
    "roc_auc": _but(_SEPARATE["roc_auc"], without_scores=_but(_HARD, two_classes=True, jointly=None)),
    "roc_auc_micro": _but(
        _SEPARATE["roc_auc_micro"], without_scores=_but(_HARD, parameters={"average": "micro"}, jointly=None)
    ),
    "roc_auc_macro": _but(_SEPARATE["roc_auc_macro"], without_scores=_but(_HARD, jointly=None)),
    "jaccard_similarity": Rule(kind="accuracy", reads="labels", jointly=None),
    "object_detection_average_precision": _but(
        _STANDARD["object_detection_average_precision"], parameters={"definition": "3.1.1"}
    ),
}

_LARGEST: Final = _but(_STANDARD["precision_at_top_k"], parameters={"top": "largest"})
_LATER: Final = ("mean_reciprocal_rank", "hits_at_k")


class _Definitions(dict[str, Mapping[str, Rule]]):
    """Definition → metric → rule, of which a prompt shows the names alone."""

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {', '.join(rules)}" for name, rules in self.items())


def _without(rules: Mapping[str, Rule], *names: str) -> dict[str, Rule]:
    return {name: rule for name, rule in rules.items() if name not in names}


DEFINITIONS: Final[Mapping[str, Mapping[str, Rule]]] = _Definitions(
    {
        STANDARD: _STANDARD,
        "3.1.1": _without(_PUBLISHED, *_LATER),
        "core-2022": {
            name: replace(rule, always_jointly=True)
            for name, rule in _without(
                {
                    **_LIBRARY,
                    **{
                        name: _but(_LIBRARY[name], positive="given")
                        for name in ("precision", "recall", "f1", "jaccard_similarity")
                    },
                    "root_mean_squared_error": _but(_STANDARD["root_mean_squared_error"], jointly="mean"),
                    "normalized_mutual_information": _but(
                        _STANDARD["normalized_mutual_information"], parameters={"mean": "geometric"}
                    ),
                    "hamming_loss": _but(_STANDARD["hamming_loss"], parameters={"one_hot": True}),
                    "roc_auc": _but(_LIBRARY["roc_auc"], of_sets=False),
                    "precision_at_top_k": _but(_LARGEST, k=0, parameters={"top": "largest_integers"}),
                    "mean_reciprocal_rank": _but(
                        _LIBRARY["mean_reciprocal_rank"], if_none_ranked={"absent_rank": None}
                    ),
                    "object_detection_average_precision": _but(
                        _STANDARD["object_detection_average_precision"], parameters={"definition": "core-2022"}
                    ),
                },
                "root_mean_squared_error_mean",
            ).items()
        },
        "nist": _without(
            {
                **_PUBLISHED,
                **{name: rule.without_scores for name, rule in _PUBLISHED.items() if rule.without_scores},
                "precision_at_top_k": _LARGEST,
            },
            *_LATER,
            "hamming_loss",
        ),
        "sklearn": _without(
            {**_SEPARATE, "root_mean_squared_error": _but(_STANDARD["root_mean_squared_error"], jointly="mean")},
            *_LATER,
            "precision_at_top_k",
            "object_detection_average_precision",
        ),
        "coco": {
            "object_detection_average_precision": _but(
                _STANDARD["object_detection_average_precision"], parameters={"definition": "coco"}
            )
        },
    }
)
"""Definition → metric → rule. `standard`: undefined is undefined, and no order of rows matters but to
`precision_at_top_k`, which looks at the first rows. `3.1.1`: the table and the code published with D3M's problem schema
3.1.1, that is scikit-learn, where `jaccard_similarity_score` was the accuracy of single labels. `core-2022`: D3M's core
package 2022.5.5, which judges all targets together. `nist`: NIST's scorer of 2019, which takes areas from hard labels.
`sklearn`: scikit-learn of today. `coco`: pycocotools."""


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
    reads: Reads | None = None
    if "scores" in columns:
        reads = "scores"
    elif "confidence" in columns:
        reads = "confidence"
    elif {"ranks", "first_rank"}.intersection(columns):
        reads = "ranking"
    elif "detections" in columns:
        reads = "boxes"
    elif metric_object.label_columns:
        reads = "sets" if getattr(metric_object, "takes_sets", False) else "labels"
    elif set(columns) - {_SCALE} == {"truth", "prediction"}:
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
