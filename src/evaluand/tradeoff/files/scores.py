"""Score files: the confidences of a system's models for each sample, the truth and sensitive attributes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from evaluand.core.errors import kind_of
from evaluand.core.files.json import Findings, Node, as_python, is_text, read_json, short_repr, to_number
from evaluand.core.files.paths import require_within
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.files.reading import SYSTEM, JsonFile, read_items, unique_names

TRUTH: Final = "ground-truth"


@dataclass(frozen=True)
class ScoreFile(JsonFile):
    """Scores of one or several models on the same samples.

    Args:
        scores: for each model a list of scores from 0 to 1; in a file also the path of a JSON file with the list, as
            for truth and attributes.
        ground_truth: 0 or 1 for each sample.
        attributes: attribute → a text or an integer of 0 or more for each sample.
        identifiers: the names of the models; `model-1` … by default. Repeated names get numbers.
        system: the name of the system that the models belong to; not part of the file.

    Raises:
        DataError: these do not fit together; every fault with its field and position.

    Example:
        >>> file = ScoreFile([[0.2, 0.7, 0.6, 0.9]], [0, 1, 0, 1], {"sex": ["f", "f", "m", "m"]})
        >>> file.identifiers, list(file.confidences.models)
        (['model-1'], ['model-1'])
    """

    format = "score"
    required = ("scores", TRUTH, "attributes")
    optional = ("identifiers",)
    other_names = MappingProxyType({"ground_truth": TRUTH})

    scores: list[list[float]]
    ground_truth: list[int]
    attributes: dict[str, list[int | str]]
    identifiers: list[str] = field(default_factory=list)
    system: str = field(default=SYSTEM, compare=False)

    def __post_init__(self) -> None:
        findings = Findings()
        scores = _scores(self.scores, findings)
        if not is_text(self.system):
            findings.fault("system", "wrong_type", f"{short_repr(self.system)} is not a name; write it as text")
        count = len(scores[0])
        names: Any = self.identifiers
        is_empty = isinstance(names, list | tuple) and not names
        fields = {
            "scores": scores,
            "ground_truth": _truth(self.ground_truth, count, findings),
            "attributes": _attributes(self.attributes, count, findings),
            "identifiers": unique_names(None if is_empty else names, "identifiers", len(scores), findings),
        }
        findings.warn()
        findings.check()
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def with_parts(cls, document: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
        """The object with the lists of which it has only the path of a JSON file.

        Raises:
            DataError: there is no such file, or it is outside the folder.
        """

        def read(value: Any) -> Any:
            return read_json(require_within(folder / value, folder), extended=True) if isinstance(value, str) else value

        parts = {name: read(document[name]) for name in (TRUTH, *cls.other_names, "attributes") if name in document}
        if isinstance(document.get("scores"), list):
            parts["scores"] = [*map(read, document["scores"])]
        return {**document, **parts}

    def to_dict(self) -> dict[str, Any]:
        fields = {"scores": self.scores, "identifiers": self.identifiers}
        return {**fields, TRUTH: self.ground_truth, "attributes": self.attributes}

    @cached_property
    def confidences(self) -> Confidences:
        """The same as input of `solve`."""
        models = {name: np.array(each) for name, each in zip(self.identifiers, self.scores, strict=True)}
        attributes = {name: [str(value) for value in values] for name, values in self.attributes.items()}
        return Confidences.read(self.ground_truth, models, attributes, label=1, system=self.system)


def _scores(values: Any, findings: Findings) -> list[list[float]]:
    """The scores of each model."""
    values = as_python(values)
    if not isinstance(values, list | tuple) or not values:
        actual = "" if isinstance(values, list | tuple) else f", not {kind_of(values)}"
        findings.fault("scores", "wrong_type", f"must be a list with a list of scores for each model{actual}")
        findings.check()
    models = Node([as_python(each) for each in values], "scores", findings)
    scores = [models.numbers(place, least=0.0, most=1.0) for place in range(len(models.value))]
    for place, each in enumerate(models.value):
        if isinstance(each, list | tuple) and not each:
            models.fault(place, "empty", "is empty; give a score for each sample")
    for place, each in enumerate(scores[1:], start=1):
        if len(each) != len(scores[0]):
            models.fault(place, "wrong_length", f"has {len(each)} scores, but scores[0] has {len(scores[0])}")
    return scores


def _truth(values: Any, count: int, findings: Findings) -> list[int]:
    if (items := read_items(values, TRUTH, "a list of 0 and 1", findings)) is None:
        return []
    labels = [to_number(int(item) if isinstance(item, bool) else item) for item in items]
    for place, label in enumerate(labels):
        if label not in (0.0, 1.0):
            findings.fault(f"{TRUTH}[{place}]", "not_allowed", f"{short_repr(items[place])} is neither 0 nor 1")
    if len(items) != count:
        findings.fault(TRUTH, "wrong_length", f"has {len(items)} labels, but each model has {count} scores")
    return [int(label == 1.0) for label in labels]


def _attributes(values: Any, count: int, findings: Findings) -> dict[str, list[int | str]]:
    if not isinstance(values, Mapping):
        findings.fault("attributes", "wrong_type", f"must be an object of lists, not {kind_of(values)}")
        return {}
    attributes: dict[str, list[int | str]] = {}
    for name, column in values.items():
        if not is_text(name):
            findings.fault("attributes", "wrong_type", f"{short_repr(name)} is not a name; write it as text")
        elif (items := _attribute(f"attributes.{name}", column, count, findings)) is not None:
            attributes[name] = items
    return attributes


def _attribute(where: str, column: Any, count: int, findings: Findings) -> list[int | str] | None:
    if (values := read_items(column, where, "a list of texts or integers", findings)) is None:
        return None
    for place, value in enumerate(values):
        if not is_text(value) and not (isinstance(value, int) and 0 <= value < _TOO_LARGE):
            message = f"{short_repr(value)} is neither text nor an integer of 0 or more"
            findings.fault(f"{where}[{place}]", "wrong_type", message)
        elif isinstance(value, str) != isinstance(values[0], str):
            message = (
                f"{short_repr(value)} differs in type from {short_repr(values[0])}; use texts only or integers only"
            )
            findings.fault(f"{where}[{place}]", "wrong_type", message)
    if len(values) != count:
        findings.fault(where, "wrong_length", f"has {len(values)} values, but each model has {count} scores")
    return [int(value) if isinstance(value, bool) else value for value in values]


_TOO_LARGE: Final = 2**63
