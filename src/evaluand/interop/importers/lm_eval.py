"""Results of lm-evaluation-harness: `results_*.json` with the `samples_*.jsonl` beside it, or their folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.json_items import parse_json
from evaluand.experiment.imports.importer import Importer, LogFile, json_lines
from evaluand.experiment.imports.sample import (
    Grade,
    Sample,
    Total,
    mapping,
    parse_object,
    plain_attributes,
    require,
    sequence,
)


class LmEval(Importer):
    """Results of the lm-evaluation-harness, with samples logged by `--log_samples`."""

    kind: ClassVar[str] = "lm_eval"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._results: dict[str, Any] = {}
        self._task = ""
        self._numbers: set[tuple[str, str]] = set()  # tasks and metrics whose samples have numbers

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        if file.is_folder:
            return any(file.path.glob("**/results_*.json")) and any(file.path.glob("**/samples_*.jsonl"))
        return {"results", "configs"} <= file.keys or {"doc_id", "resps", "arguments"} <= file.keys

    def records(self) -> Iterator[tuple[str, Any]]:
        results, samples = self._find_files()
        if results is not None:
            self._results = dict(mapping(parse_json(results.read_bytes(), str(results))))
        tasks = mapping(self._results.get("results"))
        found = set()
        for path in samples:
            name = _SAMPLES.fullmatch(path.name)
            self._task = name["task"] if name else path.stem
            found.add(self._task)
            yield from json_lines(path)
        missing = [task for task in tasks if task not in found and task in mapping(self._results.get("configs"))]
        if missing and found:
            self.notes.append(f"{self.path.name}: there are no samples of {', '.join(missing)}")

    def _find_files(self) -> tuple[Path | None, list[Path]]:
        if self.file.is_folder:
            every = sorted(self.path.glob("**/results_*.json"))
            results = every[-1]
            if len(every) > 1:
                self.notes.append(f"{self.path}: of {len(every)} results the newest is imported, {results.name}")
        elif "doc_id" in self.file.keys:
            stamp = _SAMPLES.fullmatch(self.path.name)
            beside = self.path.with_name(f"results_{stamp['time']}.json") if stamp else None
            return (beside if beside and beside.is_file() else None), [self.path]
        else:
            results = self.path
        time = _RESULTS.fullmatch(results.name)
        pattern = f"samples_*_{time['time']}.jsonl" if time else "samples_*.jsonl"
        samples = sorted(results.parent.glob(pattern))
        if not samples:
            message = f"there is no {pattern} beside it; run lm_eval with --log_samples"
            raise DataError(Fault(str(results), message))
        return results, samples

    def samples(self, record: Any) -> Iterable[Sample]:
        row = parse_object(record)
        doc, filter_ = mapping(require(row, "doc")), str(row.get("filter") or "none")
        arguments = list(mapping(require(row, "arguments")).values())
        metrics = sequence(row.get("metrics")) or [name for name in row if name not in _OWN]
        answers = sequence(require(row, "filtered_resps", "resps"))
        self._numbers |= {(self._task, name) for name in metrics if isinstance(row.get(name), int | float)}
        yield Sample(
            row.get("doc_id"),
            _prompt(arguments),
            _answer(answers),
            problem=self._task,
            system=self._model,
            expected=row.get("target"),
            attributes=plain_attributes({k: v for k, v in doc.items() if k not in _TEXTS}),
            replication=0,
            part=filter_,
            grades={
                (name if filter_ == "none" else f"{name},{filter_}"): Grade.of(row[name])
                for name in metrics
                if name in row
            },
        )

    @property
    def _model(self) -> str:
        return str(self._results.get("model_name") or mapping(self._results.get("config")).get("model") or "model")

    def totals(self) -> Iterable[Total]:
        """The means of tasks; those of groups of tasks, and of pairs such as text and length, are left out."""
        for task, values in mapping(self._results.get("results")).items():
            aggregations = {
                str(each.get("metric")): each["aggregation"]
                for each in sequence(mapping(mapping(self._results.get("configs")).get(task)).get("metric_list"))
                if each.get("aggregation")
            }
            for key, value in mapping(values).items():
                name, _, filter_ = key.partition(",")
                aggregation = aggregations.get(name, "perplexity" if name == "perplexity" else "mean")
                is_mean = filter_ and (task, name) in self._numbers and aggregation == "mean"
                if is_mean and isinstance(value, int | float):
                    yield Total(task, self._model, name if filter_ == "none" else key, "mean", float(value))

    def is_higher_better(self, problem: str, scorer: str) -> bool | None:
        stated = mapping(mapping(self._results.get("higher_is_better")).get(problem))
        found = stated.get(scorer.partition(",")[0])
        return found if isinstance(found, bool) else None

    def facts(self) -> dict[str, Any]:
        return {name: self._results.get(name) for name in _FACTS}


_RESULTS: Final = re.compile(r"results_(?P<time>.+)\.json")
_SAMPLES: Final = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT.+)\.jsonl")
_OWN: Final = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    )
)
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


def _prompt(arguments: list[Any]) -> Any:
    """What the model saw: a text, or for several requests the text that they share and their continuations."""
    texts = [each.get("arg_0") if isinstance(each, Mapping) else each for each in arguments]
    if len(texts) == 1:
        return texts[0]
    choices = [each.get("arg_1") if isinstance(each, Mapping) else None for each in arguments]
    if len({str(text) for text in texts}) == 1:
        return {"context": texts[0], "continuations": choices}
    return texts


def _answer(answers: Any) -> Any:
    """The text that was generated; or of each continuation its log-likelihood and whether it is the greedy one."""
    return answers[0] if len(answers) == 1 and isinstance(answers[0], str) else list(answers) or None
