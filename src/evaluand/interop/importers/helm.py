"""Run folders of HELM: `run_spec.json`, `scenario_state.json`, `per_instance_stats.json` and `stats.json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.json_items import JsonCursor, parse_json
from evaluand.experiment.imports.importer import Importer, LogFile
from evaluand.experiment.imports.sample import Grade, Sample, mapping, require, sequence

_STATE: Final = "scenario_state.json"
_STATS: Final = "per_instance_stats.json"


class Helm(Importer):
    """A run folder of HELM."""

    kind: ClassVar[str] = "helm"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        if not file.is_folder:
            self.path = self.path.parent
        self._spec: dict[str, Any] = {}
        self._stats: dict[tuple[str, int, str], dict[str, float]] = {}

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
        cursor = JsonCursor.open(self.path / _STATE)
        for key in cursor.members():
            if key == "request_states":
                for n, _ in enumerate(cursor.items()):
                    yield f"{self.path / _STATE}: request_states[{n}]", cursor.value()

    def _read_stats(self) -> None:
        cursor = JsonCursor.open(self.path / _STATS)
        for n, _ in enumerate(cursor.items()):
            try:
                row = cursor.value()
                key = _key(str(require(row, "instance_id")), row)
                values = self._stats.setdefault(key, {})
                for stat in sequence(row.get("stats")):
                    if isinstance(mean := mapping(stat).get("mean"), int | float):
                        values[str(mapping(stat.get("name")).get("name"))] = mean
            except (ValueError, TypeError, AttributeError) as error:
                self.leave_out(f"{self.path / _STATS}: [{n}]", str(error))

    def samples(self, record: Any) -> Iterable[Sample]:
        instance = mapping(require(record, "instance"))
        id, perturbation = str(require(instance, "id")), mapping(instance.get("perturbation"))
        result = mapping(record.get("result"))
        completions = [mapping(each).get("text") for each in sequence(result.get("completions"))]
        failed = not result or result.get("success") is False
        correct = [
            mapping(each.get("output")).get("text")
            for each in sequence(instance.get("references"))
            if "correct" in sequence(each.get("tags"))
        ]
        values = self._stats.get(_key(id, {**record, "perturbation": perturbation}), {})
        seconds = result.get("request_time")
        yield Sample(
            f"{id} {perturbation['name']}" if perturbation.get("name") else id,
            mapping(require(instance, "input")).get("text"),
            None if failed else completions[0] if len(completions) == 1 else completions or None,
            problem=str(self._spec.get("name") or "").split(",model=")[0].split(":model=")[0],
            system=str(mapping(record.get("request")).get("model") or ""),
            expected=correct[0] if len(correct) == 1 else correct or None,
            attributes={name: instance[name] for name in ("split", "sub_split") if isinstance(instance.get(name), str)},
            replication=None,
            error=("RequestError", str(result.get("error") or "there is no result")) if failed else None,
            grades={name: Grade.of(value) for name, value in values.items()},
            started=None,
            duration=round(seconds * 1e6) if isinstance(seconds, int | float) else None,
        )

    def facts(self) -> dict[str, Any]:
        return {"run_spec": self._spec}


def _key(id: str, row: Mapping[str, Any]) -> tuple[str, int, str]:
    """Instance, trial and perturbation, which statistics belong to."""
    return id, int(row.get("train_trial_index", 0)), str(mapping(row.get("perturbation")).get("name", ""))
