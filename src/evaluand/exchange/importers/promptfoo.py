"""Promptfoo's results as JSON: every prompt × provider is a system, its assertions are scorers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from evaluand.core import identity
from evaluand.core.files.json_items import JsonCursor
from evaluand.exchange.importer import Importer, LogFile
from evaluand.exchange.sample import (
    Grade,
    Sample,
    Total,
    by_name,
    free_name,
    mapping,
    named_values,
    require,
    sequence,
    whole_number,
)

_FREE: Final = frozenset(("javascript", "python", "ruby", "webhook"))
"""Types of assertions whose score is any number that the user's code returns; others are between 0 and 1."""
_ERROR: Final = 2  # failureReason: 0 none, 1 an assertion, 2 the provider


class Promptfoo(Importer):
    """The file of `promptfoo eval --output results.json`."""

    kind: ClassVar[str] = "promptfoo"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._facts: dict[str, Any] = {}
        self._prompts: list[Mapping[str, Any]] = []
        self._systems: dict[tuple[int, str], str] = {}  # of the number of a prompt and its provider
        self._tests: dict[bytes, str] = {}  # what a test is → the number of the first that is the same

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return "results" in file.keys and ("evalId" in file.keys or b'"promptIdx"' in file.head)

    def records(self) -> Iterator[tuple[str, Any]]:
        self._read_prompts()
        cursor = JsonCursor.open(self.path)
        n = 0
        for key in cursor.members():
            if key != "results":
                if key in ("evalId", "config", "metadata"):
                    self._facts[key] = cursor.value()
                continue
            for name in cursor.members():
                if name == "results":
                    for _ in cursor.items():
                        yield f"{self.path}: results.results[{n}]", cursor.value()
                        n += 1
                elif name in ("version", "timestamp"):
                    self._facts[name] = cursor.value()
        self.leave_out_rest(cursor)

    def _read_prompts(self) -> None:
        """The prompts, which may be behind the results, and the names of their systems in this order."""
        self._prompts = [*map(mapping, _prompts_in(JsonCursor.open(self.path)))]
        for number, prompt in enumerate(self._prompts):
            if provider := prompt.get("provider"):
                self._name_system(number, str(provider), prompt.get("label"))

    def samples(self, record: Any) -> Iterable[Sample]:
        variables, response = mapping(require(record, "vars")), mapping(record.get("response"))
        grading = mapping(record.get("gradingResult"))
        is_error = record.get("failureReason") == _ERROR or (not response and bool(record.get("error")))
        message = str(record.get("error") or response.get("error") or "no message")
        latency = record.get("latencyMs")
        yield Sample(
            self._test(record, variables),
            dict(variables),
            None if is_error else response.get("output"),
            system=self._system(record),
            attributes=named_values(mapping(mapping(record.get("testCase")).get("metadata"))),
            error=("ProviderError", message) if is_error else None,
            grades={} if is_error else by_name(_grades(record, grading)),
            usage=_usage(record),
            duration=round(latency * 1000) if isinstance(latency, int | float) else None,
        )

    def _test(self, record: Mapping[str, Any], variables: Mapping[str, Any]) -> str:
        """The id of a test: the number of the first one with its variables, assertions and description.

        With `--repeat`, promptfoo numbers each repeat of a test as another test. A test that a suite has twice looks
        the same in the file, and counts as a repeat too.
        """
        number, case = str(require(record, "testIdx")), mapping(record.get("testCase"))
        content = identity.digest([dict(variables), case.get("assert"), case.get("description")])
        return self._tests.setdefault(content, number)

    def _system(self, record: Mapping[str, Any]) -> str:
        provider = mapping(record.get("provider"))
        name = str(provider.get("label") or provider.get("id") or "provider")
        return self._name_system(whole_number(record, "promptIdx"), name, mapping(record.get("prompt")).get("label"))

    def _name_system(self, number: int, provider: str, label: Any) -> str:
        """The provider, and the label of the prompt where there are several; numbered where these are the same."""
        if (number, provider) not in self._systems:
            several = len({str(each.get("label")) for each in self._prompts}) > 1
            name = f"{provider} with {label}" if several and label else provider
            self._systems[number, provider] = free_name(name, self._systems.values())
        return self._systems[number, provider]

    def totals(self) -> Iterable[Total]:
        for (number, _), system in self._systems.items():
            metrics = mapping(self._prompts[number].get("metrics")) if number < len(self._prompts) else {}
            if metrics.get("testErrorCount") != 0:
                continue
            passed, failed = metrics.get("testPassCount"), metrics.get("testFailCount", 0)
            if isinstance(passed, int) and isinstance(failed, int):
                yield Total("", system, "success", "passed", float(passed))
                yield Total("", system, "success", "count", float(passed + failed))
            if isinstance(score := metrics.get("score"), int | float):
                yield Total("", system, "score", "sum", float(score))

    def is_higher_better(self, problem: str, scorer: str) -> bool | None:
        return True  # an assertion passes from its threshold upwards

    def facts(self) -> dict[str, Any]:
        return self._facts


def _prompts_in(cursor: JsonCursor) -> Sequence[Any]:
    """The prompts of a file; reads it only up to them."""
    for key in cursor.members():
        for name in cursor.members() if key == "results" else ():
            if name == "prompts":
                return sequence(cursor.value())
    return ()


def _grades(record: Mapping[str, Any], grading: Mapping[str, Any]) -> Iterator[tuple[str, Grade]]:
    """Whether the test passed, its score, and that of each assertion."""
    yield "success", Grade.of(bool(require(record, "success")), explanation=grading.get("reason"))
    yield "score", Grade.of(record.get("score")).as_share()
    names = set()
    for part in map(mapping, sequence(grading.get("componentResults"))):
        assertion = mapping(part.get("assertion"))
        name = str(assertion.get("metric") or assertion.get("type") or "assertion")
        names.add(name)
        label = "pass" if part.get("pass") else "fail"
        grade = Grade.of(part.get("score"), explanation=part.get("reason"), label=label)
        yield name, grade if str(assertion.get("type")) in _FREE else grade.as_share()
    for name, value in mapping(record.get("namedScores")).items():
        if name not in names:
            yield name, Grade.of(value)


def _usage(record: Mapping[str, Any]) -> dict[str, Any] | None:
    tokens = mapping(record.get("tokenUsage"))
    used: dict[str, Any] = {}
    for ours, theirs in (("input_tokens", "prompt"), ("output_tokens", "completion"), ("requests", "numRequests")):
        if type(tokens.get(theirs)) is int:
            used[ours] = tokens[theirs]
    if isinstance(cost := record.get("cost"), int | float) and cost > 0:
        used |= {"cost": float(cost), "currency": "USD"}
    return used or None
