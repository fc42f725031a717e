"""Logs of Inspect AI: one JSON document in version 2 of its format, which `read_eval_log` and its viewer open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from evaluand._version import __version__
from evaluand.core.files.paths import replaced
from evaluand.exchange.exporter import Exporter, Result, Sample, named, own_columns, text_of
from evaluand.report.export import json_line
from evaluand.report.facts.base import Facts

_VERSION: Final = 2


class Inspect(Exporter):
    """A log of Inspect AI."""

    kind: ClassVar[str] = "inspect"

    def write(self, result: Result, path: Path) -> list[Path]:
        head = {
            "version": _VERSION,
            "status": "success",
            "eval": _eval(result),
            "plan": {"name": "plan", "steps": [], "config": {}},
            "results": _results(result),
            "stats": {
                "started_at": result.run.manifest["created"],
                "completed_at": result.newest["sealed"],
                "model_usage": {},
            },
        }
        with replaced(path) as file:
            file.write(json_line(head)[:-1] + b',"samples":[')
            for number, sample in enumerate(result.samples()):
                file.write(b"," * (number > 0) + b"\n" + json_line(_sample(sample, result.system)))
                self._count_left_out(sample)
            file.write(b"\n]}\n")
        self.leave_out(sum(batch.num_rows for batch in result.run.spans()), "span")
        self.note_left_out(result)
        return [path]

    def _count_left_out(self, sample: Sample) -> None:
        call = sample.call
        self.leave_out(max(len(call.get("responses") or ()) - 1, 0), "further answer")
        self.leave_out(len([*sample.all_grades()]) - len([*sample.first_grades()]), "further grade")
        usage = _usage(call)
        self.leave_out((call["input_tokens"] is None) != (call["output_tokens"] is None), "partly known usage")
        self.leave_out(call["cost"] is not None and "total_cost" not in usage, "cost")


def _eval(result: Result) -> Facts:
    run = result.run.manifest
    scorers = [{"name": name, "options": {}, "metrics": [], "metadata": {}} for name in result.scorers]
    return {
        "eval_id": result.newest["id"],
        "run_id": run["id"],
        "created": run["created"],
        "task": result.problem,
        "task_id": run["spec"]["dataset"],
        "task_version": 0,
        "dataset": {"name": result.run.dataset.name, "samples": run["spec"]["examples"], "shuffled": False},
        "model": result.system,
        "config": {"epochs": run["spec"]["replications"]},
        "packages": {"evaluand": __version__},
        "scorers": scorers or None,
        "metadata": {"digest": result.newest["digest"]},
    }


def _results(result: Result) -> Facts:
    """The values of the metrics, by scorer and target."""
    scores: dict[str, Facts] = {}
    for row in result.values:
        name = named(row)
        unscored = row["n"] - row["n_scored"]
        score = {"scorer": row["scorer"], "scored_samples": row["n_scored"], "unscored_samples": unscored}
        entry = scores.setdefault(name, {"name": name} | score | {"params": {}, "metrics": {}})
        if row["value"] is not None:
            metrics = entry["metrics"]
            metrics[row["metric"] if row["metric"] not in metrics else row["signature"]] = {
                "name": row["metric"],
                "value": row["value"],
                "params": {"signature": row["signature"], "low": row["low"], "high": row["high"]},
            }
    counts = result.run.manifest["counts"]
    return {
        "total_samples": sum(counts.values()),
        "completed_samples": counts.get("completed", 0),
        "scores": [*scores.values()],
    }


def _sample(sample: Sample, system: str) -> Facts:
    call = sample.call
    found: Facts = {
        "id": call["id"],
        "epoch": call["replication"] + 1,
        "input": sample.input if _is_chat(sample.input) else text_of(sample.input),
        "target": _target(sample.expected),
        "messages": [],
        "output": {"model": call["model"] or system, "choices": [], "completion": ""},
        "scores": dict(_scores(sample)),
        "metadata": sample.about,
        "total_time": call["duration"],
    }
    if call["started"] is not None:
        found["started_at"] = call["started"].isoformat()
    if call["status"] == "completed":
        found |= _answered(found["input"], found["output"], text_of(call["response"]))
    else:
        message = f"{call['error_type'] or call['status']}({call['error_message'] or ''!r})"
        trace = call["error_place"] or ""
        found["error"] = {"message": message, "traceback": trace, "traceback_ansi": trace}
    if usage := _usage(call):
        found["output"]["usage"] = usage
        found["model_usage"] = {call["model"] or system: usage}
    return found


def _is_chat(value: Any) -> bool:
    """Whether a value is the messages of a chat with texts."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(each, Mapping) and each.get("role") in _ROLES and isinstance(each.get("content"), str)
            for each in value
        )
    )


_ROLES: Final = ("system", "user", "assistant")


def _target(value: Any) -> str | list[str]:
    return [*map(text_of, value)] if isinstance(value, list) else text_of(value)


def _answered(asked: Any, output: Facts, answer: str) -> Facts:
    """The messages of a call and what the model returned."""
    reply = {"role": "assistant", "content": answer, "source": "generate", "model": output["model"]}
    before = asked if isinstance(asked, list) else [{"role": "user", "content": asked, "source": "input"}]
    messages = [{"role": each["role"], "content": each["content"]} for each in before]
    choices = [{"message": reply, "stop_reason": "stop"}]
    return {"messages": [*messages, reply], "output": output | {"choices": choices, "completion": answer}}


def _scores(sample: Sample) -> Iterator[tuple[str, Facts]]:
    """The grades; a row without one has no score in Inspect. Labels, for which it has no place, are metadata."""
    for name, row in sample.first_grades():
        said = row["value"] if row["value"] is not None else row["label"]
        if said is not None:
            own = own_columns(row) | ({} if row["label"] is None else {"label": row["label"]})
            score = {"value": said, "answer": _answer(sample, own), "explanation": row["explanation"]}
            yield name, score | ({"metadata": own} if own else {})


def _answer(sample: Sample, own: Facts) -> str:
    """The answer that was graded: what the scorer has found in the response, if it says it, else all of this."""
    data = own.get("data")
    return text_of(data["answer"] if isinstance(data, Mapping) and "answer" in data else sample.call["response"])


def _usage(call: Facts) -> Facts:
    given, got = call["input_tokens"], call["output_tokens"]
    if given is None or got is None:  # Inspect takes a missing number for 0
        return {}
    tokens = {"input_tokens": given, "output_tokens": got, "total_tokens": given + got}
    return tokens | ({"total_cost": call["cost"]} if call["currency"] == "USD" else {})
