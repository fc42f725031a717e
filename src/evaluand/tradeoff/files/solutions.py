"""Solution files: the operating points of a system with their values, models and thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import IO, Any, Final, Self

import numpy as np

from evaluand.core.errors import SpecError, kind_of
from evaluand.core.files.json import Findings, Node, as_python, json_text, short_repr, write_open
from evaluand.tradeoff.arguments import check_type
from evaluand.tradeoff.confidences import Confidences, Thresholds
from evaluand.tradeoff.files.metrics import parse_metrics
from evaluand.tradeoff.files.reading import SYSTEM, JsonFile, read_items, unique_names
from evaluand.tradeoff.objectives import Objective
from evaluand.tradeoff.points import Tradeoff, solve

NAMES: Final = "identifier-names"
OF_MODELS: Final = "identifiers"
THRESHOLDS: Final = "thresholds"
FROM: Final = "nds-from"
UNDEFINED: Final = "undefined"
TRIVIAL: Final = "trivial"
_MISSPELT: Final = "threholds"


@dataclass(frozen=True)
class SolutionFile(JsonFile):
    """The points of a system by several metrics.

    In these files an undefined value is 0, and `undefined` in the metadata lists these values: metric → positions. They
    count as 0 in everything that is computed from the file, as its format defines; `solve` can leave them out instead.

    Args:
        points: metric → the value of each point, from 0 to 1.
        metadata: `identifier-names`, the names of the models; `identifiers`, the position of each point's model among
            these; `thresholds`, of each point; `nds-from`, the system on which the thresholds were chosen, if it was
            another; `trivial`, the positions of points that make the same decision for all rows. Other keys are stored
            as they are.
        system: the name of the system; not part of the file.

    Raises:
        DataError: these do not fit together; every fault with its field and position.

    Example:
        >>> points = {"acc": [0.65, 0.0], "eod+race": [0.1, 1.0]}
        >>> file = SolutionFile(points, {"identifier-names": ["tree"], "identifiers": [0, 0], "thresholds": [0.1, 0.2]})
        >>> file.front().points["acc"], round(file.tradeoff.indicators()["hv"], 3)
        ([0.65], 0.585)
    """

    format = "solution"
    required = ("points", "metadata")

    points: dict[str, list[float]]
    metadata: dict[str, Any]
    system: str = field(default=SYSTEM, compare=False)

    def __post_init__(self) -> None:
        findings = Findings()
        points = _points(self.points, findings)
        metadata = _metadata(self.metadata, points, findings)
        findings.warn()
        findings.check()
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "metadata", metadata)

    @classmethod
    def a_posteriori(
        cls, confidences: Confidences, metrics: Sequence[str], thresholds: Thresholds | int | Sequence[float] = "every"
    ) -> Self:
        """The points of all models at thresholds that come from these confidences.

        Args:
            confidences: of the models of a system.
            metrics: short names such as `acc`, `eod+race`, `minmaxd+f1+race`.
            thresholds: see `Confidences.thresholds`.

        Raises:
            SpecError: there is no such metric or attribute.
        """
        return cls.of_points(solve(confidences, parse_metrics(metrics), thresholds, "zero"))

    @classmethod
    def a_priori(
        cls, confidences: Confidences, metrics: Sequence[str], earlier: SolutionFile, dominated: bool | None = None
    ) -> Self:
        """The points of these confidences at the models and thresholds of an earlier solution.

        Args:
            confidences: of the models of a system; models are matched by name.
            metrics: short names; those of the earlier solution may be others.
            dominated: use only its dominated points, or only the others; None for all.

        Raises:
            SpecError: there is no such metric or attribute, or a model of the earlier solution has no confidences.
        """
        earlier = check_type("prior_solutions", earlier, SolutionFile, "load a file, such as by SolutionFile.load")
        if not isinstance(dominated, bool | None):
            raise SpecError(f"dominated={dominated!r} must be True, False, or None for all")
        if dominated is None:
            chosen, which = earlier, "all"
        elif dominated:
            chosen, which = earlier.dominated(), "dominated"
        else:
            chosen, which = earlier.front(), "non-dominated"
        metadata = {FROM: earlier.metadata.get(FROM) or earlier.system, "prior-solution-set": which}
        return cls.of_points(chosen.at(confidences, parse_metrics(metrics)), metadata)

    @classmethod
    def of_points(cls, points: Tradeoff, metadata: Mapping[str, Any] | None = None) -> Self:
        """A file of operating points whose undefined rates count as 0.

        Args:
            points: with short names as the names of their objectives.

        Raises:
            SpecError: groups have separate thresholds, for which the format has no place.
        """
        points = check_type("points", points, Tradeoff, "use solve")
        if points.threshold_groups:
            groups = f"these points have one for each of {len(points.threshold_groups)} groups"
            raise SpecError(f"solution files hold one threshold per point, and {groups}; store them with to_arrow")
        if not isinstance(metadata, Mapping | None):
            raise SpecError(f"metadata must be an object and is {kind_of(metadata)}")
        positions = {one.name: np.flatnonzero(points.unknown[:, i]).tolist() for i, one in enumerate(points.objectives)}
        undefined = {name: places for name, places in positions.items() if places}
        values = {one.name: np.nan_to_num(points.value[:, i]).tolist() for i, one in enumerate(points.objectives)}
        fields = {
            OF_MODELS: points.model.tolist(),
            THRESHOLDS: points.threshold.tolist(),
            NAMES: list(points.models),
            FROM: None,
            TRIVIAL: np.flatnonzero(points.trivial).tolist(),
            **(metadata or {}),
            **({UNDEFINED: undefined} if undefined else {}),
        }
        return cls(values, fields, points.system)

    def to_dict(self) -> dict[str, Any]:
        return {"points": self.points, "metadata": self.metadata}

    def write(self, file: IO[bytes]) -> None:
        """Writes to an open file."""
        write_open(json_text(self.to_dict()).encode(), file, "bytes")

    @property
    def n_points(self) -> int:
        """The number of points."""
        return len(self.metadata[OF_MODELS])

    @property
    def n_undefined(self) -> int:
        """The number of points with an undefined value, which counts as 0."""
        return int(self._undefined().any(axis=1).sum())

    @cached_property
    def tradeoff(self) -> Tradeoff:
        """The same as operating points; a missing threshold is NaN.

        Where the metadata do not list the trivial points, those at infinite thresholds count as trivial.
        """
        objectives = parse_metrics(list(self.points))
        value = np.array(list(self.points.values()), np.float64).T.reshape(-1, len(objectives))
        n = len(value)
        threshold = np.array(self.metadata.get(THRESHOLDS, [np.nan] * n), np.float64)
        model = np.array(self.metadata[OF_MODELS], np.int64)
        known = self.metadata.get(TRIVIAL)
        trivial = np.isinf(threshold) if known is None else np.isin(np.arange(n), known)
        models = tuple(self.metadata[NAMES])
        points = Tradeoff(objectives, models, model, threshold, value, trivial, self.system)
        return replace(points, undefined="zero", as_zero=self._undefined())

    def deduplicated(self, tolerance: float = 1e-6) -> Self:
        """The first of all points with equal values: see `Tradeoff.deduplicated`."""
        return self.take(self.tradeoff.distinct_places(tolerance))

    def front(self) -> Self:
        """The points that no other dominates."""
        return self.take(np.flatnonzero(self.tradeoff.on_front))

    def dominated(self) -> Self:
        """The points that are not on the front."""
        return self.take(np.flatnonzero(~self.tradeoff.on_front))

    def pick(self, best: str, where: Sequence[str] = (), *, allow_trivial: bool = False) -> Tradeoff:
        """The point that is best within limits: see `Tradeoff.pick`.

        Points with undefined values of the metrics asked for are left out; other undefined values of the picked point
        are NaN.

        Raises:
            SpecError: there is no such metric, or no point is defined and within the limits.
        """
        point = self.tradeoff.pick(best, where, allow_trivial=allow_trivial)
        return replace(point, value=np.where(point.unknown, np.nan, point.value))

    def at(self, confidences: Confidences, objectives: Sequence[Objective]) -> Tradeoff:
        """The same models at the same thresholds on other samples.

        Raises:
            SpecError: a model has no confidences there, or the points have no thresholds.
        """
        if THRESHOLDS not in self.metadata:
            raise SpecError("the earlier solution has no thresholds, so it cannot be applied to other scores")
        blank = np.empty((self.n_points, len(objectives)))
        return replace(self.tradeoff, objectives=tuple(objectives), value=blank).at(confidences, "zero")

    def take(self, places: np.ndarray) -> Self:
        """The points at some places, with their metadata and the models they use."""
        points = self.tradeoff.take(places)
        used = np.unique(points.model)
        metadata = {**self.metadata, OF_MODELS: np.searchsorted(used, points.model).tolist()}
        metadata[NAMES] = [points.models[number] for number in used]
        if THRESHOLDS in metadata:
            metadata[THRESHOLDS] = [self.metadata[THRESHOLDS][place] for place in places]
        new = {int(old): place for place, old in enumerate(places)}
        if UNDEFINED in metadata:
            positions = {name: [new[old] for old in each if old in new] for name, each in metadata[UNDEFINED].items()}
            metadata[UNDEFINED] = {name: each for name, each in positions.items() if each}
        if TRIVIAL in metadata:
            metadata[TRIVIAL] = [new[old] for old in metadata[TRIVIAL] if old in new]
        values = {name: [each[place] for place in places] for name, each in self.points.items()}
        return type(self)(values, metadata, self.system)

    def _undefined(self) -> np.ndarray:
        """Which values are undefined: points × metrics."""
        marks = np.zeros((self.n_points, len(self.points)), bool)
        for column, metric in enumerate(self.points):
            marks[self.metadata.get(UNDEFINED, {}).get(metric, []), column] = True
        return marks


def _points(values: Any, findings: Findings) -> dict[str, list[float]]:
    if not isinstance(values, Mapping) or not values:
        findings.fault("points", "wrong_type", "must be an object with a list of values for each metric")
        return {}
    node = Node({str(name): column for name, column in values.items()}, "points", findings)
    points = {name: node.numbers(name, least=0.0, most=1.0) for name in node.value}
    try:
        parse_metrics(list(points))
    except SpecError as error:
        findings.fault("points", "not_allowed", str(error))
    first, *others = points
    for name in others:
        if len(points[name]) != len(points[first]):
            message = f"has {len(points[name])} values, but points.{first} has {len(points[first])}"
            node.fault(name, "wrong_length", message)
    return points


def _metadata(values: Any, points: Mapping[str, list[float]], findings: Findings) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        findings.fault("metadata", "wrong_type", f"must be an object, not {kind_of(values)}")
        return {}
    fields, n_points = dict(values), len(next(iter(points.values()), []))
    node = Node(fields, "metadata", findings)
    if _MISSPELT in fields:
        node.note(_MISSPELT, "other_name", f"is read as {THRESHOLDS}")
        misspelt = fields.pop(_MISSPELT)
        if fields.setdefault(THRESHOLDS, misspelt) != misspelt:
            node.fault(_MISSPELT, "contradiction", f"differs from metadata.{THRESHOLDS}; remove one of them")
    if THRESHOLDS in fields:
        fields[THRESHOLDS] = node.numbers(THRESHOLDS, least=-np.inf, most=np.inf)
    _read_models(node, fields, n_points)
    for key in (OF_MODELS, THRESHOLDS):
        if key in fields and len(fields[key]) != n_points:
            node.fault(key, "wrong_length", f"has {len(fields[key])} entries for {n_points} points")
    if not isinstance(fields.get(FROM), str | None):
        node.fault(FROM, "wrong_type", f"must be the name of a system or null, not {fields[FROM]!r}")
    if TRIVIAL in fields:
        fields[TRIVIAL] = _positions(fields[TRIVIAL], f"metadata.{TRIVIAL}", n_points, findings)
    if UNDEFINED in fields:
        fields[UNDEFINED] = _positions_by_metric(fields[UNDEFINED], points, n_points, findings)
    return fields


def _read_models(node: Node, fields: dict[str, Any], n_points: int) -> None:
    """Reads the names of the models and, of each point, the position of its model among these."""
    numbers = fields[OF_MODELS] = _model_numbers(fields.get(OF_MODELS), node.findings)
    unnamed = fields.get(NAMES) is None
    count = min(n_points, max(numbers, default=-1) + 1) if unnamed else None  # no more models than points
    names = fields[NAMES] = unique_names(fields.get(NAMES), f"metadata.{NAMES}", count, node.findings)
    expected = (
        f"there are {n_points} points and no {NAMES}" if unnamed else f"{NAMES} has positions 0 to {len(names) - 1}"
    )
    for place, number in enumerate(numbers):
        if number >= len(names):
            node.fault(f"{OF_MODELS}[{place}]", "out_of_range", f"is {short_repr(number)}, but {expected}")


def _positions_by_metric(
    values: Any, points: Mapping[str, list[float]], n_points: int, findings: Findings
) -> dict[str, list[int]]:
    where = f"metadata.{UNDEFINED}"
    if not isinstance(values, Mapping):
        message = f"must be an object with a list of positions for each metric, not {kind_of(values)}"
        findings.fault(where, "wrong_type", message)
        return {}
    for name in values:
        if name not in points:
            findings.fault(f"{where}.{name}", "unknown_key", f"is not one of the metrics {', '.join(points)}")
    return {name: _positions(each, f"{where}.{name}", n_points, findings) for name, each in values.items()}


def _positions(values: Any, where: str, n_points: int, findings: Findings) -> list[int]:
    positions = read_items(values, where, "a list of positions", findings) or []
    for place, each in enumerate(positions):
        if isinstance(each, bool) or not isinstance(each, int) or not 0 <= each < n_points:
            message = f"{short_repr(each)} is not the position of a point; there are {n_points}, counted from 0"
            findings.fault(f"{where}[{place}]", "out_of_range", message)
    return positions


def _model_numbers(values: Any, findings: Findings) -> list[int]:
    where = f"metadata.{OF_MODELS}"
    values = as_python(values)
    if not isinstance(values, list | tuple):
        message = "is missing; give the position of each point's model" if values is None else "must be a list"
        findings.fault(where, "missing_key" if values is None else "wrong_type", message)
        return []
    numbers = [as_python(each) for each in values]
    for place, each in enumerate(numbers):
        if isinstance(each, bool) or not isinstance(each, int) or each < 0:
            message = f"{short_repr(each)} is not a position; write an integer of 0 or more"
            findings.fault(f"{where}[{place}]", "wrong_type", message)
    return [each if isinstance(each, int) and each >= 0 else 0 for each in numbers]
