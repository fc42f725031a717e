"""Results of lm-evaluation-harness: `results_*.json` with the `samples_*.jsonl` beside it, or their folder.

Until version 0.4.2 they are `results.json` and `MODEL_TASK.jsonl`, which is a list of samples without names of filters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.json_items import parse_json
from evaluand.exchange.importer import Importer, LogFile, json_records
from evaluand.exchange.sample import (
    Grade,
    Sample,
    Total,
    mapping,
    named_values,
    parse_object,
    require,
    sequence,
)


@dataclass
class _Log:
    """A file of results with the samples of its tasks.

    Attributes:
        path: of the results, or of the samples if there are no results.
        document: the content of the results; empty if there are none.
        samples: tasks and the files of their samples.
        numbers: tasks and metrics whose samples have numbers.
    """

    path: Path
    document: Mapping[str, Any]
    samples: list[tuple[str, Path]]
    numbers: set[tuple[str, str]] = field(default_factory=set)

    @property
    def model(self) -> str:
        return str(self.document.get("model_name") or mapping(self.document.get("config")).get("model") or "model")

    @property
    def time(self) -> str:
        """When it was written, by its name."""
        found = _RESULTS.fullmatch(self.path.name)
        return found["time"] if found else ""

    @property
    def tasks(self) -> list[str]:
        """The tasks that it states results of, without groups of tasks."""
        configs = mapping(self.document.get("configs"))
        return [task for task in mapping(self.document.get("results")) if task in configs]

    def filter(self, task: str, number: int) -> str:
        """The name of the filter of a sample without one: rows of the same example are in the order of the filters."""
        config = mapping(mapping(self.document.get("configs")).get(task))
        names = [str(mapping(each).get("name")) for each in sequence(config.get("filter_list"))]
        if number < len(names):
            return names[number]
        return "none" if number == 0 else f"filter {number + 1}"

    @property
    def facts(self) -> dict[str, Any]:
        return {name: self.document.get(name) for name in _FACTS}


class LmEval(Importer):
    """Results of the lm-evaluation-harness, with samples logged by `--log_samples`."""

    kind: ClassVar[str] = "lm_eval"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._logs: list[_Log] = []
        self._log = _Log(self.path, {}, [])
        self._task = ""
        self._seen: Counter[tuple[str, Any]] = Counter()  # samples without a filter by task and example

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        if not file.is_folder:
            return any(keys <= file.keys for keys in _KEYS)
        if any(file.path.glob("results_*.json")):
            return any(file.path.glob("samples_*.jsonl"))
        old = file.path / _OLD_RESULTS
        return old.is_file() and cls.recognizes(LogFile(old))

    def records(self) -> Iterator[tuple[str, Any]]:
        self._logs = self._find_logs()
        for log in self._logs:
            self._log = log
            self._seen.clear()
            for task, path in log.samples:
                self._task = task
                yield from json_records(path)

    def _find_logs(self) -> list[_Log]:
        if self.file.is_folder:
            logs = self._newest([*self._read_folder()])
        elif "doc_id" in self.file.keys:
            stamp = _SAMPLES.fullmatch(self.path.name)
            beside = self.path.with_name(f"results_{stamp['time']}.json" if stamp else _OLD_RESULTS)
            document = _read(beside) if beside.is_file() else {}
            return [_Log(self.path, document, [(_task_of(self.path, document), self.path)])]
        else:
            logs = [_read_with_samples(self.path)]
        known = {(log.model, task) for log in logs for task, _ in log.samples}
        for log in logs:
            if missing := [task for task in log.tasks if (log.model, task) not in known]:
                self.notes.append(f"{log.path.name}: there are no samples of {', '.join(missing)}")
        return logs

    def _read_folder(self) -> Iterator[_Log]:
        for path in sorted({*self.path.glob("results_*.json"), *self.path.glob(_OLD_RESULTS)}):
            try:
                yield _read_with_samples(path)
            except DataError as error:
                self.left_out += error.faults
            except ValueError as error:
                self.leave_out(str(path), str(error))

    def _newest(self, logs: list[_Log]) -> list[_Log]:
        """The logs with the newest samples of each task of a model."""
        newest: dict[tuple[str, str], _Log] = {}
        for log in sorted(logs, key=lambda log: log.time):
            newest |= {(log.model, task): log for task, _ in log.samples}
        for log in logs:
            older = [task for task, _ in log.samples if newest[log.model, task] is not log]
            if older:
                later = {str(newest[log.model, task].path.name): None for task in older}
                self.notes.append(
                    f"{self.path.name}: {', '.join(older)} of {log.model} in {log.path.name} is not imported, because"
                    f" {', '.join(later)} is newer"
                )
            log.samples = [(task, path) for task, path in log.samples if task not in older]
        return [log for log in logs if log.samples]

    def samples(self, record: Any) -> Iterable[Sample]:
        row = parse_object(record)
        doc, arguments = mapping(require(row, "doc")), _arguments(row)
        filter_ = str(row.get("filter") or self._log.filter(self._task, self._count(row.get("doc_id"))))
        metrics = sequence(row.get("metrics")) or [name for name in row if name not in SAMPLE_KEYS]
        answer, filtered = _answer(_replies(row)), _answer(sequence(row.get("filtered_resps")))
        label = filtered if isinstance(filtered, str) and filter_ != "none" else None
        self._log.numbers |= {(self._task, name) for name in metrics if isinstance(row.get(name), int | float)}
        yield Sample(
            row.get("doc_id"),
            _prompt(arguments),
            answer,
            problem=self._task,
            system=self._log.model,
            expected=row.get("target"),
            attributes=named_values({k: v for k, v in doc.items() if k not in _TEXTS}),
            replication=0,
            part=filter_,
            grades={
                (name if filter_ == "none" else f"{name},{filter_}"): _grade(name, row[name], label)
                for name in metrics
                if name in row
            },
        )

    def _count(self, example: Any) -> int:
        """How many samples of an example of the task there were before."""
        self._seen[self._task, str(example)] += 1
        return self._seen[self._task, str(example)] - 1

    def totals(self) -> Iterable[Total]:
        for log in self._logs:
            yield from _totals(log)

    def is_higher_better(self, problem: str, scorer: str) -> bool | None:
        for log in self._logs:
            stated = mapping(mapping(log.document.get("higher_is_better")).get(problem))
            if isinstance(found := stated.get(scorer.partition(",")[0]), bool):
                return found
        return None

    def facts(self) -> dict[str, Any]:
        return self._logs[0].facts if len(self._logs) == 1 else {log.path.name: log.facts for log in self._logs}


def _read(results: Path) -> Mapping[str, Any]:
    return mapping(parse_json(results.read_bytes(), str(results)))


def _read_with_samples(results: Path) -> _Log:
    """A file of results with the samples beside it.

    Raises:
        DataError: it is not JSON, or there are no samples.
        ValueError: it is no object.
    """
    document, time = _read(results), _RESULTS.fullmatch(results.name)
    pattern = f"samples_*_{time['time']}.jsonl" if time else "*.jsonl"
    samples = [(_task_of(path, document), path) for path in sorted(results.parent.glob(pattern))]
    if not time:  # other files may be there
        known = mapping(document.get("results"))
        samples = [(task, path) for task, path in samples if task in known or path.name.startswith("samples_")]
    if not samples:
        pattern = pattern if time else "samples_*.jsonl"
        message = f"there is no {pattern} beside it; run lm_eval, version 0.4 or later, with --log_samples"
        raise DataError(Fault(str(results), message))
    return _Log(results, document, samples)


def _task_of(samples: Path, document: Mapping[str, Any]) -> str:
    """The task of a file of samples: by its name, or the task of these results with which its name ends."""
    if name := _SAMPLES.fullmatch(samples.name):
        return name["task"]
    tasks = [task for task in mapping(document.get("results")) if samples.stem.endswith(f"_{task}")]
    return max(tasks, key=len, default=samples.stem)


def _totals(log: _Log) -> Iterator[Total]:
    """The means of tasks; those of groups of tasks, and of pairs such as text and length, are left out."""
    for task, values in mapping(log.document.get("results")).items():
        aggregations = {
            str(each.get("metric")): each["aggregation"]
            for each in map(
                mapping, sequence(mapping(mapping(log.document.get("configs")).get(task)).get("metric_list"))
            )
            if each.get("aggregation")
        }
        for key, value in mapping(values).items():
            name, _, filter_ = key.partition(",")
            aggregation = aggregations.get(name, "perplexity" if name == "perplexity" else "mean")
            is_mean = filter_ and (task, name) in log.numbers and aggregation == "mean"
            if is_mean and isinstance(value, int | float):
                yield Total(task, log.model, name if filter_ == "none" else key, "mean", float(value))


_KEYS: Final = ({"results", "configs"}, {"results", "versions", "config"}, {"doc_id", "resps", "arguments"})
_OLD_RESULTS: Final = "results.json"
_RESULTS: Final = re.compile(r"results_(?P<time>.+)\.json")
_SAMPLES: Final = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT.+)\.jsonl")
SAMPLE_KEYS: Final = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    )
)
"""The keys of a sample that are no scores."""

_SHARES: Final = frozenset(("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"))
"""Metrics that are 0 or 1 on each sample, or a mean of that."""
_TEXTS: Final = ("question", "answer", "text", "input", "target")
_FACTS: Final = (
    "model_name",
    "model_source",
    "config",
    "versions",
    "n-shot",
    "git_hash",
    "date",
    "lm_eval_version",
    "transformers_version",
    "chat_template_sha",
    "task_hashes",
)


def _arguments(row: Mapping[str, Any]) -> list[Any]:
    """The arguments of each request, by name."""
    found = require(row, "arguments")
    if isinstance(found, Mapping):
        return list(found.values())
    return [{f"arg_{n}": value for n, value in enumerate(sequence(each))} for each in sequence(found)]


def _grade(metric: str, value: Any, label: str | None) -> Grade:
    grade = Grade.of(value, label=label)
    return grade.as_share() if metric in _SHARES else grade


def _prompt(arguments: list[Any]) -> Any:
    """What the model saw: a text, or for several requests the text that they share and their continuations."""
    texts = [each.get("arg_0") if isinstance(each, Mapping) else each for each in arguments]
    if len(texts) == 1:
        return texts[0]
    choices = [each.get("arg_1") if isinstance(each, Mapping) else None for each in arguments]
    if len({str(text) for text in texts}) == 1:
        return {"context": texts[0], "continuations": choices}
    return texts


def _replies(row: Mapping[str, Any]) -> Sequence[Any]:
    """What the model replied to each request; several replies to the same request are a list."""
    if "resps" not in row:
        return sequence(require(row, "resps", "filtered_resps"))
    replies = [sequence(each) for each in sequence(row["resps"])]
    return [each[0] if len(each) == 1 else list(each) for each in replies]


def _answer(answers: Sequence[Any]) -> Any:
    """The text that was generated; or of each continuation its log-likelihood and whether it is the greedy one."""
    return answers[0] if len(answers) == 1 and isinstance(answers[0], str) else list(answers) or None
