"""Inspect AI's logs, `.eval` and `.json`: samples with epochs, scores, messages, model calls, errors and limits.

An `.eval` file is a zip of JSON documents, of which newer versions compress each with Zstandard.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar, Final

import pyarrow as pa

from evaluand.core.errors import DataError, Fault
from evaluand.core.files.json_items import JsonCursor, parse_json
from evaluand.experiment.imports.importer import Importer, LogFile
from evaluand.experiment.imports.sample import (
    Grade,
    Sample,
    Total,
    mapping,
    microseconds,
    named_values,
    parse_object,
    require,
    sequence,
)

_GRADES: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # as value_to_float of Inspect reads them
_MEANS: Final = ("accuracy", "mean")
_ZSTD: Final = 93
_LARGEST: Final = 1 << 27  # bytes of a sample


class Inspect(Importer):
    """Logs of Inspect AI."""

    kind: ClassVar[str] = "inspect"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._header: dict[str, Any] = {}
        self._verdicts: set[str] = set()

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        if file.head[:4] == b"PK\x03\x04":
            return b"_journal/start.json" in file.head or b"header.json" in file.head or file.path.suffix == ".eval"
        return {"version", "eval"} <= file.keys

    def records(self) -> Iterator[tuple[str, Any]]:
        if self.file.head[:2] == b"PK":
            yield from self._zip_records()
            return
        cursor = JsonCursor.open(self.path)
        n = 0
        for key in cursor.members():
            if key == "samples" and cursor.kind == "[":
                for _ in cursor.items():
                    text = cursor.text()
                    yield f"{self.path}: samples[{n}]", text
                    n += 1
            elif key in _HEADER:
                self._header[key] = cursor.value()
        self.leave_out_rest(cursor)

    def _zip_records(self) -> Iterator[tuple[str, Any]]:
        try:
            with zipfile.ZipFile(self.path) as archive, self.path.open("rb") as file:
                members = {info.filename: info for info in archive.infolist()}
                for name in ("_journal/start.json", "header.json"):
                    if name in members:
                        self._header |= mapping(parse_json(_read(file, members[name]), f"{self.path}: {name}"))
                samples = [name for name in members if name.startswith("samples/")]
                for name in sorted(samples, key=self._places()):
                    try:
                        text = _read(file, members[name])
                    except (OSError, ValueError, zlib.error, struct.error, EOFError) as error:
                        self.leave_out(f"{self.path}: {name}", f"cannot be read: {error}")
                        continue
                    yield f"{self.path}: {name}", text
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError, zlib.error, struct.error) as error:
            raise DataError(Fault(str(self.path), f"cannot be read as a log of Inspect: {error}")) from None

    def _places(self) -> Callable[[str], tuple[int, int, str]]:
        """What sorts members: epoch and place of a sample, in the order of the dataset where the header has it."""
        ids = sequence(mapping(mapping(self._header.get("eval")).get("dataset")).get("sample_ids"))
        places = {str(id): place for place, id in reversed([*enumerate(ids)])}

        def place_of(member: str) -> tuple[int, int, str]:
            found = _MEMBER.fullmatch(member)
            if found is None:
                return 0, len(ids), member
            return int(found["epoch"]), places.get(found["id"], len(ids)), member

        return place_of

    def samples(self, record: Any) -> Iterable[Sample]:
        sample = parse_object(record)
        if attachments := mapping(sample.get("attachments")):
            sample = _attach(sample, attachments)
        eval_ = mapping(self._header.get("eval"))
        output = mapping(sample.get("output"))
        error, started = _error(sample), microseconds(sample.get("started_at"))
        grades = dict(_grades(mapping(sample.get("scores"))))
        self._verdicts |= {name for name, grade in grades.items() if grade.label in _GRADES}
        total = sample.get("total_time")
        duration = round(total * 1e6) if isinstance(total, int | float) else None
        spans = _spans(sample, started)
        yield Sample(
            require(sample, "id"),
            _input(require(sample, "input")),
            None if error else _completion(output),
            problem=str(eval_.get("task") or ""),
            system=str(eval_.get("model") or ""),
            expected=sample.get("target"),
            attributes=named_values(sample.get("metadata")),
            replication=int(require(sample, "epoch")) - 1,
            error=error,
            grades=grades,
            usage=_usage(mapping(sample.get("model_usage"))),
            started=started,
            duration=duration,
            spans=[*spans, *_limits(sample, len(spans) + 1, duration or 0)],
        )

    def totals(self) -> Iterable[Total]:
        eval_ = mapping(self._header.get("eval"))
        problem, system = str(eval_.get("task") or ""), str(eval_.get("model") or "")
        reducers = mapping(eval_.get("config")).get("epochs_reducer") or ["mean"]
        for score in sequence(mapping(self._header.get("results")).get("scores")):
            if (score.get("reducer") or "mean") != "mean" or "mean" not in reducers:
                continue
            name, scorer = str(score.get("name")), str(score.get("scorer") or score.get("name"))
            for statistic, metric in mapping(score.get("metrics")).items():
                value = mapping(metric).get("value")
                if statistic in _MEANS and isinstance(value, int | float):
                    yield Total(problem, system, name if name == scorer else f"{scorer}.{name}", "mean", float(value))

    def is_higher_better(self, problem: str, scorer: str) -> bool | None:
        return True if scorer in self._verdicts else None

    def facts(self) -> dict[str, Any]:
        eval_ = mapping(self._header.get("eval"))
        said = {name: eval_.get(name) for name in _FACTS}
        return said | {"status": self._header.get("status"), "log_version": self._header.get("version")}


_HEADER: Final = ("version", "status", "eval", "plan", "results", "stats", "error")
_FACTS: Final = (
    "eval_id",
    "run_id",
    "created",
    "task",
    "task_version",
    "task_args",
    "model",
    "model_generate_config",
    "model_args",
    "model_base_url",
    "config",
    "packages",
    "revision",
)
_MEMBER: Final = re.compile(r"samples/(?P<id>.*)_epoch_(?P<epoch>\d+)\.json", re.DOTALL)


def _read(file: BinaryIO, member: zipfile.ZipInfo) -> bytes:
    """The content of a member of a zip; the standard library does not read those of Zstandard yet."""
    file.seek(member.header_offset)
    head = file.read(30)
    name_length, extra_length = struct.unpack("<HH", head[26:30])
    file.seek(name_length + extra_length, 1)
    content = file.read(member.compress_size)
    if not 0 <= member.file_size <= _LARGEST:
        raise ValueError(f"it has {member.file_size:,} bytes, and at most {_LARGEST:,} are read of one sample")
    if member.compress_type == _ZSTD:
        found = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read(member.file_size)
    elif member.compress_type == zipfile.ZIP_DEFLATED:
        found = zlib.decompressobj(-15).decompress(content, member.file_size or 1)
    elif member.compress_type == zipfile.ZIP_STORED:
        found = content
    else:
        raise ValueError(f"compression {member.compress_type} is unknown")
    if len(found) != member.file_size or zlib.crc32(found) != member.CRC:
        raise ValueError("its content does not have its checksum")
    return found  # type: ignore[no-any-return]


def _attach(value: Any, attachments: Mapping[str, Any]) -> Any:
    """A value with the texts that are stored once, under their digests, in their places."""
    if isinstance(value, str):
        return attachments.get(value.removeprefix(_ATTACHMENT), value) if value.startswith(_ATTACHMENT) else value
    if isinstance(value, dict):
        return {key: _attach(each, attachments) for key, each in value.items() if key != "attachments"}
    return [_attach(each, attachments) for each in value] if isinstance(value, list) else value


_ATTACHMENT: Final = "attachment://"


def _input(value: Any) -> Any:
    if isinstance(value, list):
        return [{"role": m.get("role"), "content": m.get("content")} for m in value]
    return value


def _completion(output: Mapping[str, Any]) -> Any:
    if output.get("completion") is not None:
        return output["completion"]
    choices = sequence(output.get("choices"))
    return _text_of(mapping(choices[0]).get("message")) if choices else None


def _text_of(message: Any) -> Any:
    content = mapping(message).get("content")
    if not isinstance(content, list):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, dict) and part.get("type") == "text")


def _error(sample: Mapping[str, Any]) -> tuple[str, str] | None:
    if error := sample.get("error"):
        message = str(mapping(error).get("message"))
        kind = re.match(r"([A-Za-z_][A-Za-z0-9_.]*)\(", message)
        return (kind[1] if kind else "Error"), message
    return None


def _limits(sample: Mapping[str, Any], number: int, at: int) -> list[list[Any]]:
    """A span for the limit that has ended a sample.

    Inspect scores what there is of the answer then, and counts it in its means, so the sample has not failed. The limit
    is a fact of this answer: among the attributes of the example it would be one of all systems and repeats.
    """
    limit = sample.get("limit")
    if not limit:
        return []
    said = {"limit": limit} if isinstance(limit, str) else dict(mapping(limit))
    attributes = {"limit": said.get("type", said.get("limit")), "value": said.get("limit") if "type" in said else None}
    return [[number, 0, "limit", "span", at, None, 2, None, None, attributes, None]]


def _grades(scores: Mapping[str, Any]) -> Iterator[tuple[str, Grade]]:
    """Grades by scorer; a score of several values is several scorers."""
    for name, score in scores.items():
        value, explanation, answer = require(score, "value"), score.get("explanation"), score.get("answer")
        if isinstance(value, dict):
            for part, each in value.items():
                yield f"{name}.{part}", _grade(each, explanation, answer)
        else:
            yield name, _grade(value, explanation, answer)


def _grade(value: Any, explanation: Any, answer: Any) -> Grade:
    label = None if answer is None else str(answer)
    if isinstance(value, str) and value in _GRADES:
        return Grade(
            _GRADES[value], value, _text_or_none(explanation), {"answer": label} if label else None, None, True
        )
    return Grade.of(value, explanation=explanation, label=label if not isinstance(value, str) else None)


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def _usage(by_model: Mapping[str, Any]) -> dict[str, Any] | None:
    """The tokens of all models together."""
    if not by_model:
        return None
    used: dict[str, Any] = {}
    for name in ("input_tokens", "output_tokens"):
        counts = [n for each in by_model.values() if type(n := mapping(each).get(name)) is int]
        if counts:
            used[name] = sum(counts)
    costs = [c for each in by_model.values() if isinstance(c := mapping(each).get("total_cost"), int | float)]
    if costs and len(costs) == len(by_model):
        used |= {"cost": float(sum(costs)), "currency": "USD"}
    return used | ({"model": next(iter(by_model))} if len(by_model) == 1 else {}) or None


def _spans(sample: Mapping[str, Any], started: int | None) -> list[list[Any]]:
    """The calls of models and tools; of a log without events one span with all messages."""
    rows: list[list[Any]] = []
    pool = sequence(mapping(sample.get("events_data")).get("messages"))
    for event in sequence(sample.get("events")):
        kind = _KINDS.get(mapping(event).get("event", ""))
        if kind is None:
            continue
        at, completed = microseconds(event.get("timestamp")), microseconds(event.get("completed"))
        start = max(0, at - started) if at is not None and started is not None else 0
        duration = completed - at if at is not None and completed is not None and completed >= at else None
        status = 2 if event.get("error") else 1
        if kind == "llm":
            output = mapping(event.get("output"))
            name, given, got = str(event.get("model")), _messages(_asked(event, pool)), _reply(output)
            attributes = _usage({name: output["usage"]} if output.get("usage") else {})
        else:
            name, given, got = str(event.get("function")), event.get("arguments"), event.get("result")
            attributes = None
        rows.append([len(rows) + 1, 0, name, kind, start, duration, status, given, got, attributes, None])
    if not rows and (messages := _messages(sequence(sample.get("messages")))):
        rows.append([1, 0, "messages", "llm", 0, None, 1, messages[:-1], messages[-1], None, None])
    return rows


def _asked(event: Mapping[str, Any], pool: Sequence[Any]) -> Iterator[Any]:
    """The messages that a model saw; newer logs store each once, and name ranges of them."""
    yield from sequence(event.get("input"))
    for first, last in sequence(event.get("input_refs")):
        yield from pool[first:last]


def _reply(output: Mapping[str, Any]) -> Any:
    choices = sequence(output.get("choices"))
    replies = _messages([mapping(choices[0]).get("message")]) if choices else []
    return replies[0] if replies else None


def _messages(messages: Iterable[Any]) -> list[dict[str, Any]]:
    """Messages as `{role, content, tool_calls}`."""
    found = []
    for message in messages:
        said = {"role": mapping(message).get("role"), "content": _text_of(message)}
        calls = [
            {"id": call.get("id"), "function": {"name": call.get("function"), "arguments": call.get("arguments")}}
            for call in sequence(message.get("tool_calls"))
        ]
        found.append(said | ({"tool_calls": calls} if calls else {}))
    return found


_KINDS: Final = {"model": "llm", "tool": "tool"}
