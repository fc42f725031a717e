"""`Scores`: how sure the models of a system were of each sample, what came true, and sensitive attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from evaluand.core.errors import SpecError, kind_of
from evaluand.core.files.json import (
    Findings,
    Node,
    Source,
    Target,
    as_python,
    is_text,
    short_repr,
    to_number,
    write_json,
)
from evaluand.core.registry import nearest
from evaluand.interop.fairical.names import OF_SCORES, objectives, unique_names
from evaluand.interop.fairical.solutions import FROM, SYSTEM, Solutions, load, root_node
from evaluand.tradeoff import Confidences, solve
from evaluand.tradeoff.arguments import made
from evaluand.tradeoff.confidences import Thresholds

TRUTH: Final = "ground-truth"
_KEYS: Final = ("scores", TRUTH, "attributes", "identifiers")


@dataclass(frozen=True)
class Scores:
    """Scores of one or several models on the same samples.

    Args:
        scores: for each model a list of scores from 0 to 1.
        ground_truth: of each sample 0 or 1.
        attributes: attribute → of each sample a text or an integer of 0 or more.
        identifiers: what the models are called; `model-1` … if not given. Equal names are numbered.
        system: what the models belong to; not part of the file.

    Raises:
        DataError: these do not fit; every fault by its field and position.

    Example:
        >>> scores = Scores([[0.2, 0.7, 0.6, 0.9]], [0, 1, 0, 1], {"sex": ["f", "f", "m", "m"]})
        >>> scores.identifiers
        ['model-1']
        >>> scores.solutions_a_posteriori(["acc", "eod+sex"], [0.5, 0.65])["acc"]
        [0.75, 1.0]
    """

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
        fields = {
            "scores": scores,
            "ground_truth": _truth(self.ground_truth, count, findings),
            "attributes": _attributes(self.attributes, count, findings),
            "identifiers": unique_names(_or_none(self.identifiers), "identifiers", len(scores), findings),
        }
        findings.warn()
        findings.check()
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def load(cls, source: Source) -> Scores:
        """From a file, its path or open text; the system is called after the file.

        Raises:
            DataError: the file is none, or its content does not fit.
        """
        return load(source, cls.from_dict)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], system: str = SYSTEM) -> Scores:
        """From the object of a file.

        Raises:
            DataError: a field is missing, or does not fit.
        """
        findings = Findings()
        fields = dict(root_node(document, findings).value)
        if TRUTH not in fields and "ground_truth" in fields:
            findings.note("ground_truth", "other_name", f"is read as {TRUTH}, the name in these files")
            fields[TRUTH] = fields.pop("ground_truth")
        for key in fields:
            if key not in _KEYS:
                findings.note(key, "unknown_key", f"is not a field of a score file and is ignored{nearest(key, _KEYS)}")
        for key in _KEYS[:3]:
            if key not in fields:
                findings.fault(key, "missing_key", "is missing")
        findings.warn()
        findings.check()
        return cls(fields["scores"], fields[TRUTH], fields["attributes"], fields.get("identifiers", []), system)

    def to_dict(self) -> dict[str, Any]:
        """The object of a file."""
        fields = {"scores": self.scores, "identifiers": self.identifiers}
        return {**fields, TRUTH: self.ground_truth, "attributes": self.attributes}

    def save(self, dest: Target) -> None:
        """Writes a file, by its path or to open text."""
        write_json(self.to_dict(), dest)

    @cached_property
    def confidences(self) -> Confidences:
        """The same as what `evaluand.tradeoff` reads."""
        models = {name: np.array(each) for name, each in zip(self.identifiers, self.scores, strict=True)}
        named = {name: [str(value) for value in values] for name, values in self.attributes.items()}
        return Confidences.read(self.ground_truth, models, named, label=1, system=self.system)

    def solutions_a_posteriori(
        self, metrics: Sequence[str], thresholds: Thresholds | int | Sequence[float] | None = None
    ) -> Solutions:
        """The points of all models at thresholds that are chosen on these very scores.

        Args:
            metrics: such as `acc`, `eod+race`, `minmaxd+f1+race`.
            thresholds: which of each model are tried: `every`, `roc`, how many, or a list of them, as everywhere (see
                `Confidences.thresholds`). None for those of fairical: the corners of the ROC curve, but all scores
                without the threshold that nothing reaches if one of `prec`, `rec`, `avg_prec` and `f1` is among the
                metrics, so that with more thresholds the hypervolume may be smaller.

        Raises:
            SpecError: there is no such metric or attribute.
        """
        return a_posteriori(self.confidences, metrics, thresholds)

    def solutions_a_priori(
        self,
        metrics: Sequence[str],
        prior_solutions: Solutions,
        dominated: bool | None = None,
        *,
        nds_from: str | None = None,
    ) -> Solutions:
        """The points of these scores at the models and thresholds of an earlier solution.

        Args:
            metrics: such as `acc` and `eod+race`; those of the earlier solution may be others.
            prior_solutions: the earlier one. Its models are found here by their names.
            dominated: take only its dominated points, or only those that are not; None for all.
            nds_from: what the system is called that the thresholds come from; the earlier one's name if not given.

        Raises:
            SpecError: there is no such metric or attribute, or the scores lack a model of the earlier solution.
        """
        found = a_priori(self.confidences, metrics, prior_solutions, dominated)
        return found if nds_from is None else replace(found, metadata={**found.metadata, FROM: nds_from})


def a_posteriori(
    given: Confidences,
    metrics: Sequence[str],
    thresholds: Thresholds | int | Sequence[float] | None = None,
) -> Solutions:
    """As `Scores.solutions_a_posteriori`, of confidences from anywhere."""
    wanted = objectives(metrics)
    if thresholds is not None:
        return Solutions.of_points(solve(given, wanted, thresholds, "zero"))
    whole = any(one.name in OF_SCORES for one in wanted)
    points = solve(given, wanted, "every" if whole else "roc", "zero")
    if whole:
        order = np.lexsort((points.threshold, points.model))
        points = points.taken(order[np.isfinite(points.threshold[order])])
    return Solutions.of_points(points)


def a_priori(
    given: Confidences, metrics: Sequence[str], earlier: Solutions, dominated: bool | None = None
) -> Solutions:
    """As `Scores.solutions_a_priori`, of confidences from anywhere."""
    earlier = made("prior_solutions", earlier, Solutions, "load them by Solutions.load")
    if not isinstance(dominated, bool | None):
        raise SpecError(f"dominated={dominated!r} must be True, False, or None for all")
    if dominated is None:
        chosen, which = earlier, "all"
    else:
        front, others = earlier.non_dominated_solutions()
        chosen, which = (others, "dominated") if dominated else (front, "non-dominated")
    points = chosen.at(given, objectives(metrics))
    return Solutions.of_points(
        points, {FROM: earlier.metadata.get(FROM) or earlier.system, "prior-solution-set": which}
    )


def _or_none(names: Any) -> Any:
    """None instead of an empty list of names."""
    return None if names is None or (isinstance(names, list | tuple) and not names) else names


def _scores(values: Any, findings: Findings) -> list[list[float]]:
    """The scores of each model.

    Raises:
        DataError: there is no list of models at all.
    """
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
    values = as_python(values)
    if not isinstance(values, list | tuple):
        findings.fault(TRUTH, "wrong_type", f"must be a list of 0 and 1, not {kind_of(values)}")
        return []
    labels = [to_number(int(value) if isinstance(value, bool) else value) for value in map(as_python, values)]
    for place, label in enumerate(labels):
        if label not in (0.0, 1.0):
            findings.fault(f"{TRUTH}[{place}]", "not_allowed", f"{short_repr(values[place])} is neither 0 nor 1")
    if len(values) != count:
        findings.fault(TRUTH, "wrong_length", f"has {len(values)} labels, but each model has {count} scores")
    return [int(label == 1.0) for label in labels]


def _attributes(values: Any, count: int, findings: Findings) -> dict[str, list[int | str]]:
    if not isinstance(values, Mapping):
        findings.fault("attributes", "wrong_type", f"must be an object of lists, not {kind_of(values)}")
        return {}
    attributes: dict[str, list[int | str]] = {}
    for name, column in values.items():
        if not is_text(name):
            findings.fault("attributes", "wrong_type", f"{short_repr(name)} is not a name; write it as text")
        elif (items := _attribute(f"attributes.{name}", as_python(column), count, findings)) is not None:
            attributes[name] = items
    return attributes


def _attribute(where: str, column: Any, count: int, findings: Findings) -> list[int | str] | None:
    if not isinstance(column, list | tuple):
        findings.fault(where, "wrong_type", f"must be a list of texts or integers, not {kind_of(column)}")
        return None
    values = [as_python(value) for value in column]
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
