"""Run folders of HELM: `run_spec.json`, `scenario_state.json`, `per_instance_stats.json` and `stats.json`."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.json_items import JsonCursor, parse_json
from evaluand.exchange.importer import Importer, LogFile
from evaluand.exchange.sample import Grade, Sample, Total, mapping, require, sequence, whole_number

_STATE: Final = "scenario_state.json"
_STATS: Final = "per_instance_stats.json"
_TOTALS: Final = "stats.json"


class Helm(Importer):
    """A run folder of HELM."""

    kind: ClassVar[str] = "helm"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        if not file.is_folder:
            self.path = self.path.parent
        self._spec: dict[str, Any] = {}
        self._stats = _Statistics()
        self._perturbations: dict[str, set[str]] = {}  # name → parameters
        self._parts: set[tuple[Any, bool]] = set()  # splits of the samples, and whether these are perturbed
        self._system = ""

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return (file.path if file.is_folder else file.path.parent).joinpath(_STATE).is_file()

    def records(self) -> Iterator[tuple[str, Any]]:
        for name in (_STATE, _STATS):
            if not (self.path / name).is_file():
                raise DataError(Fault(str(self.path), f"has no {name}; give the complete run folder"))
        if (spec := self.path / "run_spec.json").is_file():
            self._spec = dict(mapping(parse_json(spec.read_bytes(), str(spec))))
        self._read_stats()
        for _, group in groupby(self._states(), _answer_of):
            states = [*group]
            yield f"{self.path / _STATE}: request_states[{states[0][0]}]", [state for _, state in states]

    def _states(self) -> Iterator[tuple[int, Any]]:
        """The number of each request, and the request."""
        cursor = JsonCursor.open(self.path / _STATE)
        for key in cursor.members():
            if key == "request_states":
                for n, _ in enumerate(cursor.items()):
                    yield n, cursor.value()

    def _read_stats(self) -> None:
        cursor = JsonCursor.open(self.path / _STATS)
        for n, _ in enumerate(cursor.items()):
            try:
                row = cursor.value()
                key = _key(str(require(row, "instance_id")), row)
                if perturbation := mapping(row.get("perturbation")):
                    self._perturbations.setdefault(str(perturbation.get("name")), set()).add(key[2])
                self._stats.add(key, [*map(mapping, sequence(row.get("stats")))])
            except DataError as error:
                self.leave_out(f"{self.path / _STATS}: [{n}]", error.faults[0].message)
            except ValueError as error:
                self.leave_out(f"{self.path / _STATS}: [{n}]", str(error))

    def samples(self, record: Any) -> Iterable[Sample]:
        record = [mapping(state) for state in record]
        first = record[0]
        instance = mapping(require(first, "instance"))
        id, perturbation = str(require(instance, "id")), mapping(instance.get("perturbation"))
        results = [mapping(state.get("result")) for state in record]
        failed = next((each for each in results if not each or each.get("success") is False), None)
        correct = [
            mapping(each.get("output")).get("text")
            for each in map(mapping, sequence(instance.get("references")))
            if "correct" in sequence(each.get("tags"))
        ]
        values = self._stats.of(_key(id, {**first, "perturbation": perturbation}))
        seconds = [each["request_time"] for each in results if isinstance(each.get("request_time"), int | float)]
        self._parts.add((str(instance.get("split")), bool(perturbation)))
        self._system = str(mapping(first.get("request")).get("model") or "")
        yield Sample(
            " ".join([id, *self._describe(perturbation)]),
            mapping(require(instance, "input")).get("text"),
            None if failed is not None else _answer(record),
            problem=self._problem,
            system=self._system,
            expected=correct[0] if len(correct) == 1 else correct or None,
            attributes={name: instance[name] for name in ("split", "sub_split") if isinstance(instance.get(name), str)},
            replication=None,
            error=None if failed is None else ("RequestError", str(failed.get("error") or "there is no result")),
            grades={name: Grade.of(value) for name, value in values.items()},
            started=None,
            duration=round(sum(seconds) * 1e6) if seconds else None,
        )

    def _describe(self, perturbation: Mapping[str, Any]) -> Iterator[str]:
        """The name of a perturbation, and all of its parameters where others of the name have other ones."""
        if name := perturbation.get("name"):
            yield str(name)
            if len(self._perturbations.get(str(name), ())) > 1:
                yield _parameters(perturbation)

    @property
    def _problem(self) -> str:
        return str(self._spec.get("name") or "").split(",model=")[0].split(":model=")[0]

    def totals(self) -> Iterable[Total]:
        """The means of `stats.json`, of which each is of one split, if the run has one split without perturbations."""
        path = self.path / _TOTALS
        if len(self._parts) != 1 or (True in dict(self._parts).values()) or not path.is_file():
            return
        (split,) = dict(self._parts)
        for stat in map(mapping, sequence(parse_json(path.read_bytes(), str(path)))):
            name, mean = mapping(stat.get("name")), stat.get("mean")
            is_whole = str(name.get("split")) == split and not name.get("perturbation") and not name.get("sub_split")
            if is_whole and str(name.get("name")) in self._stats.names and isinstance(mean, int | float):
                yield Total(self._problem, self._system, str(name["name"]), "mean", float(mean))

    def facts(self) -> dict[str, Any]:
        return {"run_spec": self._spec}


_Key = tuple[str, int, str]


class _Statistics:
    """The means of each answer, packed: a file has millions.

    Attributes:
        names: of all statistics.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._means: dict[_Key, tuple[tuple[str, ...], array[float]]] = {}
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}

    def add(self, key: _Key, stats: Iterable[Mapping[str, Any]]) -> None:
        """Adds the statistics of an answer that have a mean."""
        values = self.of(key)
        for stat in stats:
            if isinstance(mean := stat.get("mean"), int | float):
                values[str(mapping(stat.get("name")).get("name"))] = float(mean)
        names = (*values,)
        self.names.update(names)
        self._means[key] = self._shared.setdefault(names, names), array("d", values.values())

    def of(self, key: _Key) -> dict[str, float]:
        """Name → mean; empty for an answer without statistics."""
        names, means = self._means.get(key, ((), ()))
        return dict(zip(names, means, strict=True))


def _answer_of(numbered: tuple[int, Any]) -> Any:
    """What requests have in common that make up one answer: one for each choice, which are scored together."""
    n, state = numbered
    if not isinstance(state, Mapping) or state.get("reference_index") is None:
        return n
    instance = state.get("instance")
    if not isinstance(instance, Mapping):
        return n
    return instance.get("id"), state.get("train_trial_index"), instance.get("perturbation")


def _answer(states: list[Any]) -> Any:
    """The text or texts that were generated; or of several requests the log-probability of each choice."""
    if states[0].get("reference_index") is None:
        texts = [mapping(each).get("text") for each in sequence(mapping(states[0].get("result")).get("completions"))]
        return texts[0] if len(texts) == 1 else texts or None
    return [
        {
            "reference_index": state["reference_index"],
            "request_mode": state.get("request_mode"),
            "logprob": [mapping(each).get("logprob") for each in sequence(state["result"].get("completions"))],
        }
        for state in states
    ]


def _key(id: str, row: Mapping[str, Any]) -> _Key:
    """Instance, trial and perturbation, which statistics belong to."""
    return id, whole_number(row, "train_trial_index"), _parameters(mapping(row.get("perturbation")))


def _parameters(perturbation: Mapping[str, Any]) -> str:
    """What a perturbation is, as one text for all equal ones; empty for none."""
    return sys.intern(json.dumps(perturbation, sort_keys=True)) if perturbation else ""
