"""`Solutions`: operating points of a system with what they are worth, and where they come from."""

from __future__ import annotations

import os
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeVar

import numpy as np

from evaluand.core.errors import DataError, Fault, SpecError, kind_of
from evaluand.core.files.json import (
    Findings,
    Node,
    Source,
    Target,
    as_python,
    error_in,
    json_text,
    read_json,
    short_repr,
    source_label,
    write_json,
    write_open,
)
from evaluand.core.registry import nearest
from evaluand.interop.fairical.names import objectives, unique_names
from evaluand.tradeoff import Confidences, Objective, Tradeoff
from evaluand.tradeoff.arguments import made
from evaluand.tradeoff.front import non_dominated

Read = TypeVar("Read")

SYSTEM: Final = "system"
NAMES: Final = "identifier-names"
OF_MODELS: Final = "identifiers"
THRESHOLDS: Final = "thresholds"
FROM: Final = "nds-from"
UNDEFINED: Final = "undefined"
TRIVIAL: Final = "trivial"
_MISSPELT: Final = "threholds"


@dataclass(frozen=True)
class Solutions:
    """Points of a system by several metrics; a mapping from metric to values, and an array of points × metrics.

    In these files an undefined value is 0; `undefined` in the metadata tells which those are, metric → positions. They
    count as 0 in what is made of the points, as in the files' own definition; for another see `evaluand.tradeoff`.

    Args:
        points: metric → the value of each point, from 0 to 1.
        metadata: `identifier-names`, the models; `identifiers`, of each point its model, as a place among these;
            `thresholds`, of each point; `nds-from`, the system the thresholds were taken from, where these were chosen
            on another; `trivial`, the positions of points that decide alike for all rows; and whatever else is there,
            which is kept.
        system: what the points belong to; not part of the file.

    Raises:
        DataError: these do not fit; every fault by its field and position.

    Example:
        >>> points = {"acc": [0.65, 0.0], "eod+race": [0.1, 1.0]}
        >>> found = Solutions(points, {"identifier-names": ["tree"], "identifiers": [0, 0], "thresholds": [0.1, 0.2]})
        >>> front, dominated = found.non_dominated_solutions()
        >>> front["acc"], dominated["acc"], round(front.indicators()["hv"], 3)
        ([0.65], [0.0], 0.585)
    """

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
    def load(cls, source: Source) -> Solutions:
        """From a file, its path or open text; the system is called after the file.

        Raises:
            DataError: the file is none, or its content does not fit.
        """
        return load(source, cls.from_dict)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], system: str = SYSTEM) -> Solutions:
        """From the object of a file.

        Raises:
            DataError: a field is missing, or does not fit.
        """
        findings, keys = Findings(), ("points", "metadata")
        document = root_node(document, findings).value
        for key in document:
            if key not in keys:
                message = f"is not a field of a solution file and is ignored{nearest(key, keys)}"
                findings.note(key, "unknown_key", message)
        for key in keys:
            if key not in document:
                findings.fault(key, "missing_key", "is missing")
        findings.warn()
        findings.check()
        return cls(document["points"], document["metadata"], system)

    @classmethod
    def fromarray(
        cls,
        points: Any,
        metrics: Sequence[str],
        thresholds: Sequence[float],
        identifiers: Sequence[int] | None = None,
        identifier_names: Sequence[str] | None = None,
    ) -> Solutions:
        """From an array of points × metrics, as `numpy.asarray` makes of solutions.

        Args:
            points: an array or a list of lists.
            metrics: those of its columns.
            thresholds: of each point.
            identifiers: of each point its model, as a place among the names; the first if not given.
            identifier_names: what the models are called.

        Raises:
            DataError: these do not fit.
            SpecError: the metrics are none, or one is given twice.

        Example:
            >>> found = Solutions.fromarray([[0.65, 0.1], [0.7, 0.3]], ["acc", "eod+race"], [0.1, 0.2])
            >>> found["acc"], Solutions.fromarray(np.asarray(found), list(found), [0.1, 0.2]) == found
            ([0.65, 0.7], True)
        """
        names = [one.name for one in objectives(metrics)]
        try:
            array = np.asarray(points, np.float64)
        except (TypeError, ValueError):
            raise DataError(Fault("points", f"must be numbers: an array of points × {len(names)} metrics")) from None
        if array.ndim != 2 or array.shape[1] != len(names):
            turned = array.ndim == 2 and len(array) == len(names)
            told = f" and is {' × '.join(map(str, array.shape)) or 'a number'}" + "; give its transpose" * turned
            raise DataError(Fault("points", f"must be an array of points × {len(names)} metrics{told}"))
        given: dict[str, Any] = {
            THRESHOLDS: thresholds,
            OF_MODELS: [0] * len(array) if identifiers is None else identifiers,
        }
        given |= {} if identifier_names is None else {NAMES: identifier_names}
        return cls(dict(zip(names, array.T.tolist(), strict=True)), given)

    @classmethod
    def of_points(cls, points: Tradeoff, metadata: Mapping[str, Any] | None = None) -> Solutions:
        """From operating points whose undefined rates count as 0.

        Args:
            points: with the names of these files.
            metadata: what else to tell.
        """
        points = made("points", points, Tradeoff, "such as solve gives")
        if points.apart:
            groups = f"and these points have one for each of {len(points.apart)} groups"
            raise SpecError(f"solution files hold one threshold of each point, {groups}; keep them with to_arrow")
        if not isinstance(metadata, Mapping | None):
            raise SpecError(f"metadata must be an object and is {kind_of(metadata)}")
        undefined = _undefined_of(points)
        values = {one.name: np.nan_to_num(points.value[:, i]).tolist() for i, one in enumerate(points.objectives)}
        told = {
            OF_MODELS: points.model.tolist(),
            THRESHOLDS: points.threshold.tolist(),
            NAMES: list(points.models),
            FROM: None,
            TRIVIAL: np.flatnonzero(points.trivial).tolist(),
            **(metadata or {}),
            **({UNDEFINED: undefined} if undefined else {}),
        }
        return cls(values, told, points.system)

    def to_dict(self) -> dict[str, Any]:
        """The object of a file."""
        return {"points": self.points, "metadata": self.metadata}

    def save(self, dest: Target) -> None:
        """Writes a file, by its path or to open text; infinite thresholds are the text "Infinity"."""
        write_json(self.to_dict(), dest)

    def write(self, file: IO[bytes]) -> None:
        """Writes to an open file."""
        write_open(json_text(self.to_dict()).encode(), file, "bytes")

    def __getitem__(self, key: str) -> list[float]:
        return self.points[key]

    def __len__(self) -> int:
        """How many metrics there are."""
        return len(self.points)

    def __iter__(self) -> Iterator[str]:
        return iter(self.points)

    def keys(self) -> KeysView[str]:
        """The metrics."""
        return self.points.keys()

    def values(self) -> ValuesView[list[float]]:
        """The values of each metric."""
        return self.points.values()

    def items(self) -> ItemsView[str, list[float]]:
        """Each metric with its values."""
        return self.points.items()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Points × metrics."""
        return np.array(list(self.points.values()), dtype or np.float64).T

    @property
    def n_metrics(self) -> int:
        """How many metrics there are."""
        return len(self.points)

    @property
    def n_solutions(self) -> int:
        """How many points there are."""
        return len(self.metadata[OF_MODELS])

    @cached_property
    def tradeoff(self) -> Tradeoff:
        """The same as points of `evaluand.tradeoff`; of points without a threshold that is NaN.

        Where the metadata do not tell which points are trivial, those at infinite thresholds are known to be so.
        """
        wanted = objectives(list(self.points))
        value = np.asarray(self).reshape(-1, len(wanted))
        n = len(value)
        threshold = np.array(self.metadata.get(THRESHOLDS, [np.nan] * n), np.float64)
        model = np.array(self.metadata[OF_MODELS], np.int64)
        known = self.metadata.get(TRIVIAL)
        trivial = np.isinf(threshold) if known is None else np.isin(np.arange(n), known)
        return Tradeoff(
            wanted,
            tuple(self.metadata[NAMES]),
            model,
            threshold,
            value,
            trivial,
            self.system,
            undefined="zero",
            as_zero=self._undefined(),
        )

    def deduplicate(self, eps: float = 1e-6) -> Solutions:
        """The first of each points that are equal, defined and undefined ones apart."""
        return self._taken(self.tradeoff.distinct_places(eps))

    def non_dominated_solutions(self) -> tuple[Solutions, Solutions]:
        """The points that no other dominates, and those that another does."""
        kept = non_dominated(self.tradeoff.loss)
        return self._taken(np.flatnonzero(kept)), self._taken(np.flatnonzero(~kept))

    def indicators(self) -> dict[Literal["hv", "ud", "os", "as", "onvg", "onvgr"], float]:
        """What the front is worth: see `Tradeoff.indicators`.

        Raises:
            SpecError: there are no points, or there is only one metric.
        """
        if not self.n_solutions:
            raise SpecError("there are no points, and so nothing to indicate")
        return self.tradeoff.indicators()  # type: ignore[return-value]

    def pick(self, best: str, where: Sequence[str] = ()) -> Tradeoff:
        """The one point that is best within limits: see `Tradeoff.pick`.

        Points whose values are undefined by a metric that is asked for are not chosen; what is undefined of the chosen
        one by others is NaN.

        Raises:
            SpecError: there is no such metric, or no point keeps the limits or is defined.
        """
        chosen = self.tradeoff.pick(best, where)
        return replace(chosen, value=np.where(chosen.unknown, np.nan, chosen.value))

    @property
    def n_undefined(self) -> int:
        """How many points have a value that is undefined and counts as 0."""
        return int(self._undefined().any(axis=1).sum())

    def at(self, given: Confidences, wanted: Sequence[Objective]) -> Tradeoff:
        """The same models at the same thresholds on other samples.

        Raises:
            SpecError: a model has no scores there, or the points have no thresholds.
        """
        if THRESHOLDS not in self.metadata:
            raise SpecError("the earlier solution tells no thresholds, so it cannot be applied to other scores")
        blank = np.empty((self.n_solutions, len(wanted)))
        return replace(self.tradeoff, objectives=tuple(wanted), value=blank).at(given, "zero")

    def _undefined(self) -> np.ndarray:
        """Which values are undefined: points × metrics."""
        marks = np.zeros((self.n_solutions, self.n_metrics), bool)
        for column, metric in enumerate(self):
            marks[self.metadata.get(UNDEFINED, {}).get(metric, []), column] = True
        return marks

    def _taken(self, places: np.ndarray) -> Solutions:
        """Some of the points with what is told of them, and the models they use."""
        points = self.tradeoff.taken(places)
        used = np.unique(points.model)
        told = {**self.metadata, OF_MODELS: np.searchsorted(used, points.model).tolist()}
        told[NAMES] = [points.models[number] for number in used]
        if THRESHOLDS in told:
            told[THRESHOLDS] = [self.metadata[THRESHOLDS][place] for place in places]
        new = {int(old): place for place, old in enumerate(places)}
        if UNDEFINED in told:
            kept = {metric: [new[old] for old in each if old in new] for metric, each in told[UNDEFINED].items()}
            told[UNDEFINED] = {metric: each for metric, each in kept.items() if each}
        if TRIVIAL in told:
            told[TRIVIAL] = [new[old] for old in told[TRIVIAL] if old in new]
        return Solutions({name: [each[place] for place in places] for name, each in self.items()}, told, self.system)


def load(source: Source, build: Callable[[dict[str, Any], str], Read]) -> Read:
    """Reads a file and builds from its object and from the name of its system, which is the file's name.

    Raises:
        DataError: there is no such file, or its content does not fit.
        SpecError: `source` is neither a path nor an open file.
    """
    document = read_json(source, extended=True)
    is_path = isinstance(source, str | os.PathLike)
    system = Path(source).name.removesuffix(".json") if is_path else SYSTEM  # type: ignore[arg-type]
    where = source_label(source)
    document = root_node(document, Findings(), where).value
    try:
        return build(document, system)
    except DataError as error:
        raise error_in(where, error) from None


def root_node(document: Any, findings: Findings, name: str = "the file") -> Node:
    """The object of a file.

    Raises:
        DataError: the document is not an object.
    """
    return Node.root(document, findings, name)


def _points(values: Any, findings: Findings) -> dict[str, list[float]]:
    if not isinstance(values, Mapping) or not values:
        findings.fault("points", "wrong_type", "must be an object with a list of values for each metric")
        return {}
    node = Node({str(name): column for name, column in values.items()}, "points", findings)
    points = {name: node.numbers(name, least=0.0, most=1.0) for name in node.value}
    try:
        objectives(list(points))
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
    """Positions of points."""
    values = as_python(values)
    if not isinstance(values, list | tuple):
        findings.fault(where, "wrong_type", f"must be a list of positions, not {kind_of(values)}")
        return []
    positions = [as_python(each) for each in values]
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


def _undefined_of(points: Tradeoff) -> dict[str, list[int]]:
    """Which values are undefined, or others, if rates without rows are left out: metric → positions."""
    found = {one.name: np.flatnonzero(points.unknown[:, i]).tolist() for i, one in enumerate(points.objectives)}
    return {name: places for name, places in found.items() if places}
