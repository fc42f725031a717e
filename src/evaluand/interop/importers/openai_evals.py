"""Logs of OpenAI Evals: JSON lines of events, which are put together by sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from evaluand.experiment.imports.importer import GroupedLines, Importer, LogFile
from evaluand.experiment.imports.sample import Grade, Sample, Total, mapping, microseconds, require, sequence


class OpenAIEvals(Importer):
    """The log of `oaieval`."""

    kind: ClassVar[str] = "openai_evals"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._spec: dict[str, Any] = {}
        self._report: dict[str, Any] = {}

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return "spec" in file.first_line and "eval_name" in mapping_or_empty(file.first_line["spec"])

    def records(self) -> Iterator[tuple[str, Any]]:
        lines = GroupedLines(self.path, self._group_of)
        yield from lines
        for where, reason in lines.faults:
            self.leave_out(where, reason)

    def _group_of(self, line: Any) -> str | None:
        if "spec" in line:
            self._spec = dict(mapping(line["spec"]))
        elif "final_report" in line:
            self._report = dict(mapping(line["final_report"]))
        else:
            return str(require(line, "sample_id"))
        return None

    def samples(self, record: Any) -> Iterable[Sample]:
        input = output = expected = started = None
        grades: dict[str, Grade] = {}
        error = None
        spans: list[list[Any]] = []
        for event in record:
            kind, data = str(require(event, "type")), mapping(require(event, "data"))
            if kind == "sampling":
                prompt, sampled = data.get("prompt"), data.get("sampled")
                answer = sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled
                input, output = (prompt if input is None else input), answer
                started = started or microseconds(event.get("created_at"))
                spans.append([len(spans) + 1, 0, "sampling", "llm", 0, None, 1, prompt, answer, None, None])
            elif kind == "match":
                expected = data.get("expected", expected)
                picked = data.get("picked")
                label = picked if isinstance(picked, str) else None
                grades["match"] = Grade.of(bool(require(data, "correct")), label=label)
            elif kind == "metrics":
                grades |= {str(name): Grade.of(value) for name, value in data.items() if not isinstance(value, str)}
            elif kind == "error":
                error = (str(data.get("type") or "Error"), str(data.get("message")))
        yield Sample(
            str(record[0]["sample_id"]),
            input,
            None if error else output,
            problem=str(self._spec.get("eval_name") or ""),
            system=", ".join(map(str, sequence(self._spec.get("completion_fns")))),
            expected=expected,
            replication=0,
            error=error,
            grades=grades,
            started=started,
            spans=spans,
        )

    def totals(self) -> Iterable[Total]:
        names = {"accuracy": "match"}
        for name, value in self._report.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and name in names:
                system = ", ".join(map(str, sequence(self._spec.get("completion_fns"))))
                yield Total(str(self._spec.get("eval_name") or ""), system, names[name], "mean", float(value))

    def is_higher_better(self, problem: str, scorer: str) -> bool | None:
        return True if scorer == "match" else None

    def facts(self) -> dict[str, Any]:
        return {"spec": self._spec, "final_report": self._report}


def mapping_or_empty(value: Any) -> dict[str, Any]:
    """A value if it is an object, or an empty one."""
    return value if isinstance(value, dict) else {}
