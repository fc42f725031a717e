"""`Scores`: how sure the models of a system were of each sample, what came true, and sensitive attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from evaluand.core.errors import DataError, Fault, SpecError, kind_of
from evaluand.core.registry import nearest
from evaluand.interop.fairical.names import OF_SCORES, objectives
from evaluand.interop.fairical.reading import (
    SYSTEM,
    Source,
    Target,
    content,
    doubt,
    is_text,
    load,
    number,
    numbers,
    plain,
    save,
    shown,
    unique_names,
)
from evaluand.interop.fairical.solutions import FROM, Solutions
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
        faults: list[Fault] = []
        given: Any = plain(self.scores)
        if not isinstance(given, list | tuple) or not given:
            raise DataError(Fault("scores", f"must be a list with a list of scores for each model{_instead(given)}"))
        given = [plain(each) for each in given]
        if not is_text(self.system):
            faults.append(Fault("system", f"{shown(self.system)} is no name; write it as text"))
        scores = [numbers(each, f"scores[{place}]", faults, 0.0, 1.0) for place, each in enumerate(given)]
        for place, each in enumerate(given):
            if isinstance(each, list | tuple) and not each:
                faults.append(Fault(f"scores[{place}]", "is empty; give a score for each sample"))
        n = len(scores[0])
        for place, each in enumerate(scores[1:], start=1):
            if len(each) != n:
                faults.append(Fault(f"scores[{place}]", f"has {len(each)} scores and scores[0] has {n}"))
        found = {
            "scores": scores,
            "ground_truth": _truth(self.ground_truth, n, faults),
            "attributes": _attributes(self.attributes, n, faults),
            "identifiers": unique_names(_given(self.identifiers), "identifiers", len(scores), faults),
        }
        if faults:
            raise DataError(faults)
        for name, value in found.items():
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
        fields = content(document, "the file")
        if TRUTH not in fields and "ground_truth" in fields:
            doubt(f"ground_truth is read as {TRUTH}, as it is spelt in these files")
            fields[TRUTH] = fields.pop("ground_truth")
        for key in fields:
            if key not in _KEYS:
                doubt(f"{key} is no field of a score file and is left out{nearest(key, _KEYS)}")
        faults = [Fault(key, "is missing") for key in _KEYS[:3] if key not in fields]
        if faults:
            raise DataError(faults)
        return cls(fields["scores"], fields[TRUTH], fields["attributes"], fields.get("identifiers", []), system)

    def to_dict(self) -> dict[str, Any]:
        """The object of a file."""
        fields = {"scores": self.scores, "identifiers": self.identifiers}
        return {**fields, TRUTH: self.ground_truth, "attributes": self.attributes}

    def save(self, dest: Target) -> None:
        """Writes a file, by its path or to open text."""
        save(self.to_dict(), dest)

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


def _instead(given: Any) -> str:
    return "" if isinstance(given, list | tuple) else f" and is {kind_of(given)}"


def _given(names: Any) -> Any:
    """None where there are no names; what is none of names is left to be told."""
    return None if names is None or (isinstance(names, list | tuple) and not names) else names


def _truth(given: Any, n: int, faults: list[Fault]) -> list[int]:
    given = plain(given)
    if not isinstance(given, list | tuple):
        faults.append(Fault(TRUTH, f"must be a list of 0 and 1 and is {kind_of(given)}"))
        return []
    found = [number(int(value) if isinstance(value, bool) else value) for value in map(plain, given)]
    for place, each in enumerate(found):
        if each not in (0.0, 1.0):
            faults.append(Fault(f"{TRUTH}[{place}]", f"{shown(given[place])} is neither 0 nor 1"))
    if len(given) != n:
        faults.append(Fault(TRUTH, f"has {len(given)} labels and there are {n} scores of each model"))
    return [int(each == 1.0) for each in found]


def _attributes(given: Any, n: int, faults: list[Fault]) -> dict[str, list[int | str]]:
    if not isinstance(given, Mapping):
        faults.append(Fault("attributes", f"must be an object of lists and is {kind_of(given)}"))
        return {}
    found: dict[str, list[int | str]] = {}
    for name, values in given.items():
        where = f"attributes.{name}"
        if not is_text(name):
            faults.append(Fault("attributes", f"{shown(name)} is no name; write it as text"))
            continue
        values = plain(values)
        if not isinstance(values, list | tuple):
            faults.append(Fault(where, f"must be a list of texts or integers and is {kind_of(values)}"))
            continue
        held = [plain(value) for value in values]
        for place, value in enumerate(held):
            if not is_text(value) and not (isinstance(value, int) and 0 <= value < _TOO_LARGE):
                told = "neither text nor an integer of 0 or more"
                faults.append(Fault(f"{where}[{place}]", f"{shown(value)} is {told}"))
            elif isinstance(value, str) != isinstance(held[0], str):
                told = f"{shown(value)} stands beside {shown(held[0])}; write all values as text or all as integers"
                faults.append(Fault(f"{where}[{place}]", told))
        if len(held) != n:
            faults.append(Fault(where, f"has {len(held)} values and there are {n} scores of each model"))
        found[name] = [int(value) if isinstance(value, bool) else value for value in held]
    return found


_TOO_LARGE: Final = 2**63
