"""The words of D3M's documents, and what evaluand calls the same; the longer lists are in `words.json`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from evaluand.core import registry
from evaluand.core.errors import DataError, Fault, nearest
from evaluand.core.files.json import Node
from evaluand.metrics.names import explain_unknown, is_name
from evaluand.predictions.problem.definitions import STANDARD_METRICS
from evaluand.predictions.problem.problem import SubType, TaskType

Version = tuple[int, ...]

_VOCABULARY: Final[Mapping[str, Any]] = orjson.loads(Path(__file__).with_name("words.json").read_bytes())

VERSIONS: Final[Sequence[str]] = _VOCABULARY["versions"]
"""What problemSchemaVersion and datasetSchemaVersion say."""


def _camel_case(word: str) -> str:
    first, *rest = word.split("_")
    return first + "".join(map(str.capitalize, rest))


TASK_TYPES: Final = {_camel_case(each): each for each in TaskType} | {"timeSeriesForecasting": TaskType.FORECASTING}
ONLY_3: Final = frozenset({"graphClustering", "timeSeriesForecasting"})
ONLY_4: Final = frozenset({"vertexClassification", "forecasting"})

SUB_TYPES: Final = {_camel_case(each): each for each in SubType}

KEYWORDS: Final[Mapping[str, str]] = _VOCABULARY["keywords"]

METRICS: Final[Mapping[str, str]] = {
    _VOCABULARY["metrics"].get(name, _camel_case(name)): name for name in STANDARD_METRICS
}
"""The metrics of the documents → what a `Criterion` calls them."""

UPPER: Final[Mapping[str, str]] = _VOCABULARY["metrics_of_scores"]
"""What a `Criterion` calls a metric → its name in scores of the layout 4, where that is not the same in capitals."""

WORDS: Final = {name: word for word, name in METRICS.items()}
"""What a `Criterion` calls a metric → its name in documents."""

_NAMES: Final = re.compile(rf"\b({'|'.join(name for name in WORDS if '_' in name)})\b")

METRICS_ONLY_3: Final = frozenset({"rootMeanSquaredErrorAvg"})
METRICS_ONLY_4: Final = frozenset({"hammingLoss", "meanReciprocalRank", "hitsAtK"})

COLUMN_TYPES: Final[Mapping[str, str]] = _VOCABULARY["column_types"]
"""The types of columns → those of `evaluand.core.files.cells`."""

RESOURCE_TYPES: Final[Sequence[str]] = _VOCABULARY["resource_types"]
ROLES: Final[Sequence[str]] = _VOCABULARY["roles"]

ABOUT_DATASET: Final[Sequence[str]] = _VOCABULARY["dataset"]
"""What describes a dataset and has no meaning here."""


def takes_k(version: Version) -> tuple[str, ...]:
    """The metrics that may have a K."""
    return ("precisionAtTopK", "hitsAtK") if version >= (4,) else ("precisionAtTopK",)


def takes_label(version: Version) -> tuple[str, ...]:
    """The metrics that may have a posLabel."""
    return ("f1", "precision", "recall", "jaccardSimilarityScore") if version > (3, 1, 1) else ("f1",)


def name_of(metric: str) -> str:
    """What a `Criterion` calls a metric that is called as in documents, in scores of the layout 4, or as we do.

    Raises:
        DataError: there is no such metric.

    Example:
        >>> name_of("f1Macro"), name_of("F1_MACRO"), name_of("cohen_kappa")
        ('f1_macro', 'f1_macro', 'cohen_kappa')
    """
    ours = registry.names("metrics")
    if metric in METRICS or metric in ours:
        return METRICS.get(metric, metric)
    upper = {UPPER.get(name, name.upper()): name for name in METRICS.values()}
    if metric in upper or metric in METRICS.values():
        return upper.get(metric, metric)
    if is_name(metric):
        return metric
    near = nearest(metric, [*METRICS, *upper, *ours])
    message = f"there is no metric {metric!r}{near}" if near else explain_unknown(metric)
    raise DataError(Fault(metric, message, code="not_applicable"))


def translate(text: str) -> str:
    """A text with the names that documents give to metrics: `f1Macro` for `f1_macro`."""
    return _NAMES.sub(lambda found: WORDS[found[0]], text)


def read_version(node: Node, key: str, default: str) -> Version:
    """The schema version that a document states; an unknown one is read as the nearest version below it."""
    text = node.text(key)
    if text is None:
        if not node.has(key):
            node.note(key, "no_version", f"is missing; read as {default}")
        return parse_version(default)
    try:
        version = parse_version(text)
    except ValueError:
        version = ()
    if version[:1] not in ((3,), (4,)):
        node.fault(key, "unknown_version", f"unknown version {text!r}; known versions: {', '.join(VERSIONS)}")
        return parse_version(VERSIONS[-1] if version > parse_version(VERSIONS[-1]) else default)
    if text not in VERSIONS:
        node.note(key, "unknown_version", f"unknown version {text!r}; read by the rules of {version[0]}.x")
    return version


def parse_version(version: str) -> Version:
    """The numbers of a version."""
    return tuple(int(part) for part in version.split("."))
