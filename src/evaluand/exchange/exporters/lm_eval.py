"""Results of the lm-evaluation-harness 0.4: `results_TIME.json` and `samples_TASK_TIME.jsonl` in a folder."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

from evaluand._version import __version__
from evaluand.core.errors import SpecError, plural
from evaluand.core.files.paths import replaced
from evaluand.exchange.exporter import Exporter, Result, Sample, named, own_columns, text_of
from evaluand.exchange.importers.lm_eval import SAMPLE_KEYS
from evaluand.exchange.sample import free_name
from evaluand.report.export import json_line
from evaluand.report.facts.base import Facts

_MEANS: Final = ("accuracy", "mean")
_USAGE: Final = ("input_tokens", "output_tokens", "cost")


class LmEval(Exporter):
    """Results of the lm-evaluation-harness, with samples."""

    kind: ClassVar[str] = "lm_eval"
    is_folder: ClassVar[bool] = True

    def write(self, result: Result, path: Path) -> list[Path]:
        if (n := result.run.manifest["spec"]["replications"]) > 1:
            raise SpecError(f"lm-eval stores one score per example, and this run has {n} repeats; export it to inspect")
        if not result.scorers:
            raise SpecError("lm-eval stores scores, and this run has none; grade it first")
        task, time = re.sub(r"[^\w.-]+", "_", result.problem), _time(result)
        path.mkdir(parents=True, exist_ok=True)
        samples, results = path / f"samples_{task}_{time}.jsonl", path / f"results_{time}.json"
        names, written, numbered = _other_names(result), 0, True
        with replaced(samples) as file:
            for sample in result.samples():
                if sample.call["status"] == "completed":
                    file.write(json_line(_sample(sample, names)) + b"\n")
                    written += 1
                    numbered &= sample.call["id"] == str(sample.call["_index_"])
                    self._count_left_out(sample)
        with replaced(results) as file:
            file.write(json.dumps(_results(result, task, written, names), indent=2, ensure_ascii=False).encode())
        total = result.run.manifest["spec"]["examples"]
        if written < total:
            self.notes.append(f"{plural(total - written, 'example')} without an answer left out: lm-eval has no errors")
        if not numbered:
            self.notes.append(
                "doc_id is the number of an example: lm-eval has no other ids; yours is the id of each doc"
            )
        self.notes += [f"{name!r} is called {other!r}: lm-eval has a key of that name" for name, other in names.items()]
        self.leave_out(sum(batch.num_rows for batch in result.run.spans()), "span")
        self.leave_out(len(result.numbers()) - len(_values(result)), "further value")
        self.note_left_out(result)
        return [results, samples]

    def _count_left_out(self, sample: Sample) -> None:
        self.leave_out(len([*sample.all_grades()]) - len([*sample.first_grades()]), "further grade")
        self.leave_out(sum(row["label"] is not None for _, row in sample.first_grades()), "label")
        self.leave_out(sum(row["explanation"] is not None for _, row in sample.first_grades()), "explanation")
        self.leave_out(sum(len(own_columns(row)) for _, row in sample.first_grades()), "grade detail")
        self.leave_out(any(sample.call[name] is not None for name in _USAGE), "usage record")


def _time(result: Result) -> str:
    """When the result was complete, as in the names of lm-eval's files."""
    return dt.datetime.fromisoformat(result.newest["sealed"]).strftime("%Y-%m-%dT%H-%M-%S.%f")


def _other_names(result: Result) -> dict[str, str]:
    """Scorers that have the name of a key of lm-eval's samples, and what they are called instead."""
    taken = {*SAMPLE_KEYS, *result.scorers}
    return {scorer: free_name(scorer, taken) for scorer in result.scorers if scorer in SAMPLE_KEYS}


def _sample(sample: Sample, names: Mapping[str, str]) -> Facts:
    call, prompt, target = sample.call, text_of(sample.input), text_of(sample.expected)
    doc = {"id": call["id"], "input": sample.input, "expected": sample.expected} | sample.about
    answers = [text_of(each) for each in call.get("responses") or [call["response"]]]
    scores = {names.get(name, name): row["value"] for name, row in sample.first_grades() if row["value"] is not None}
    return {
        "doc_id": call["_index_"],
        "doc": doc,
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {}}},
        "resps": [answers],
        "filtered_resps": answers[:1],
        "filter": "none",
        "metrics": [*scores],
        "doc_hash": _hash(json.dumps(json.loads(json_line(doc)), indent=2, ensure_ascii=False)),
        "prompt_hash": _hash(prompt),
        "target_hash": _hash(target),
        **scores,
    }


def _hash(text: str) -> str:
    """The digest by which lm-eval tells documents and prompts apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _results(result: Result, task: str, written: int, names: Mapping[str, str]) -> Facts:
    values = {names.get(name, name): value for name, value in _values(result).items()}
    better = {names.get(name, name): higher for name, higher in _directions(result).items()}
    config = {"task": task, "output_type": "generate_until", "repeats": 1}
    config["metric_list"] = [{"metric": name} | _better(better.get(name)) for name in values]
    stated = {f"{name},none": value for name, value in values.items()}
    unknown = {f"{name}_stderr,none": "N/A" for name in values}
    return {
        "results": {task: {"name": task, "alias": task, "sample_len": written} | stated | unknown},
        "group_subtasks": {},
        "configs": {task: config},
        "versions": {task: "evaluand"},
        "higher_is_better": {task: better},
        "n-samples": {task: {"original": result.run.manifest["spec"]["examples"], "effective": written}},
        "config": {"model": result.system, "model_args": {}, "limit": None},
        "git_hash": (result.newest["provenance"].get("git") or {}).get("commit"),
        "date": dt.datetime.fromisoformat(result.newest["sealed"]).timestamp(),
        "lm_eval_version": f"evaluand {__version__}",
        "model_source": "evaluand",
        "model_name": result.system,
        "model_name_sanitized": re.sub(r"[^\w.-]+", "_", result.system),
    }


def _better(higher: bool | None) -> Facts:
    """Whether higher values are better, where it is known."""
    return {} if higher is None else {"higher_is_better": higher}


def _values(result: Result) -> dict[str, float]:
    """The mean of each scorer; other metrics by the scorer's and their own name."""
    found: dict[str, float] = {}
    for row in result.values:
        scorer = named(row)
        name = scorer if row["metric"] in _MEANS else f"{scorer}.{row['metric']}"
        if row["value"] is not None:
            found.setdefault(name, row["value"])
    return found


def _directions(result: Result) -> dict[str, bool]:
    """Whether higher scores are better, where a metric says it."""
    return {
        named(row): row["direction"] == "higher"
        for row in result.values
        if row["metric"] in _MEANS and row["direction"]
    }
