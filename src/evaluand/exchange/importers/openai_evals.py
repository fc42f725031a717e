"""Logs of OpenAI Evals: JSON lines of events, which are put together by sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from evaluand.exchange.importer import Importer, LogFile
from evaluand.exchange.sample import Grade, Sample, Total, by_name, mapping, microseconds, require, sequence


class OpenAIEvals(Importer):
    """The log of `oaieval`."""

    kind: ClassVar[str] = "openai_evals"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._spec: dict[str, Any] = {}
        self._report: dict[str, Any] = {}
        self._scorers: set[str] = set()

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return "spec" in file.first_line and "eval_name" in mapping_or_empty(file.first_line["spec"])

    def records(self) -> Iterator[tuple[str, Any]]:
        yield from self.grouped_records(self._group_of)
        if not self._report:
            self.notes.append(f"{self.path.name}: there is no final report; samples may be missing")

    def _group_of(self, line: Any) -> str | None:
        line = mapping(line)
        if "spec" in line:
            self._spec = dict(mapping(line["spec"]))
        elif "final_report" in line:
            self._report = dict(mapping(line["final_report"]))
        else:
            return str(require(line, "sample_id"))
        return None

    def samples(self, record: Any) -> Iterable[Sample]:
        input = output = expected = started = None
        found: list[tuple[str, Grade]] = []
        error = None
        answers: list[Any] = []
        used: Counter[str] = Counter()
        spans: list[list[Any]] = []
        for event in record:
            kind, data = str(require(event, "type")), mapping(require(event, "data"))
            if kind == "sampling":
                prompt, sampled = data.get("prompt"), data.get("sampled")
                answers.append(sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled)
                input = prompt if input is None else input
                started = started or microseconds(event.get("created_at"))
                spans.append([len(spans) + 1, 0, "sampling", "llm", 0, None, 1, prompt, answers[-1], None, None])
                used.update(_usage(data))
            elif kind == "match":
                expected, output = data.get("expected", expected), data.get("sampled", output)
                picked = data.get("picked")
                label = picked if isinstance(picked, str) else None
                found.append(("match", Grade.of(bool(require(data, "correct")), label=label)))
            elif kind == "metrics":
                choice = data.get("choice")
                output = answers[0] if isinstance(choice, str) and answers else output  # the grader answers after it
                found += [
                    (name, Grade.of(value, label=choice if name == "score" else None))
                    for name, value in data.items()
                    if not isinstance(value, str)
                ]
            elif kind == "error":
                error = (str(data.get("type") or "Error"), str(data.get("message")))
        grades = by_name(found)
        self._scorers.update(grades)
        yield Sample(
            str(record[0]["sample_id"]),
            input,
            None if error else answers[-1] if output is None and answers else output,
            problem=self._problem,
            system=self._system,
            expected=expected,
            replication=0,
            error=error,
            grades=grades,
            usage=dict(used) or None,
            started=started,
            spans=spans,
        )

    @property
    def _problem(self) -> str:
        return str(self._spec.get("eval_name") or "")

    @property
    def _system(self) -> str:
        return ", ".join(map(str, sequence(self._spec.get("completion_fns"))))

    def totals(self) -> Iterable[Total]:
        """The numbers of the final report that are means of a metric; its accuracy may be that of matches."""
        for name, value in self._report.items():
            scorer = "match" if name == "accuracy" and name not in self._scorers else name
            if scorer in self._scorers and isinstance(value, int | float) and not isinstance(value, bool):
                yield Total(self._problem, self._system, scorer, "mean", float(value))

    def is_higher_better(self, problem: str, scorer: str) -> bool | None:
        return True if scorer == "match" or scorer.startswith("match (") else None

    def facts(self) -> dict[str, Any]:
        return {"spec": self._spec, "final_report": self._report}


def mapping_or_empty(value: Any) -> dict[str, Any]:
    """A value if it is an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def _usage(data: Mapping[str, Any]) -> dict[str, int]:
    usage = mapping_or_empty(data.get("usage"))
    names = (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))
    return {ours: usage[theirs] for ours, theirs in names if type(usage.get(theirs)) is int}
