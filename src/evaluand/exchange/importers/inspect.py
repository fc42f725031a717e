"""Inspect AI's logs, `.eval` and `.json`: samples with epochs, scores, messages, model calls, errors and limits.

An `.eval` file is a zip of JSON documents, of which newer versions compress each with Zstandard.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, ClassVar, Final

import pyarrow as pa

from evaluand.core.errors import DataError, Fault, plural
from evaluand.core.files.json_items import JsonCursor, parse_json
from evaluand.exchange.importer import Importer, LogFile
from evaluand.exchange.sample import (
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
_WORDS: Final = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}  # also in capitals
_MEANS: Final = ("accuracy", "mean")
_ZSTD: Final = 93
_LARGEST: Final = 1 << 27  # bytes of a sample
_MOST_ATTACHED: Final = 1 << 26  # characters of a sample's attachments in all places
_MOST_ASKED: Final = 1 << 25  # characters of all inputs of a sample's model calls
_RESERVED: Final = 1 << 23  # of them, for calls after the first one whose input is shortened
_LAST_ASKED: Final = 1 << 13  # characters of each such input


class Inspect(Importer):
    """Logs of Inspect AI."""

    kind: ClassVar[str] = "inspect"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._header: dict[str, Any] = {}
        self._verdicts: set[str] = set()
        self._n_samples = 0
        self._n_shortened = 0  # inputs of model calls

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        if file.head[:4] == b"PK\x03\x04":
            return b"_journal/start.json" in file.head or b"header.json" in file.head or file.path.suffix == ".eval"
        return {"version", "eval"} <= file.keys

    def records(self) -> Iterator[tuple[str, Any]]:
        yield from self._zip_records() if self.file.head[:2] == b"PK" else self._json_records()
        self.notes += self._describe_status()
        if self._n_shortened:
            self.notes.append(
                f"{self.path.name}: {plural(self._n_shortened, 'model call')} without the earlier messages of the"
                f" input, because the inputs of a sample would have more than {_MOST_ASKED:,} characters in all"
            )

    def _json_records(self) -> Iterator[tuple[str, Any]]:
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
                members: dict[str, zipfile.ZipInfo] = {}
                for info in archive.infolist():
                    if info.filename in members:
                        reason = "another member further on has this name, and counts, as in Inspect"
                        self.leave_out(f"{self.path}: {info.filename}", reason)
                    members[info.filename] = info
                if "header.json" not in members:  # which is written last
                    self._header["status"] = "started"
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

    def _describe_status(self) -> Iterator[str]:
        """A note for a log that is not complete."""
        status = self._header.get("status")
        if status in (None, "success"):
            return
        eval_, results = mapping(self._header.get("eval")), mapping(self._header.get("results"))
        dataset, epochs = mapping(eval_.get("dataset")), mapping(eval_.get("config")).get("epochs") or 1
        examples = len(sequence(dataset.get("sample_ids"))) or dataset.get("samples")
        total = results.get("total_samples") or (examples * epochs if examples and type(epochs) is int else None)
        known = f"; it has {self._n_samples:,} of {plural(total, 'sample')}" if type(total) is int else ""
        yield f"{self.path.name}: the status of this log is {status!r}, not 'success'{known}"

    def samples(self, record: Any) -> Iterable[Sample]:
        sample = parse_object(record)
        attachments = _Attachments(mapping(sample.get("attachments")))
        sample |= attachments.into({name: sample[name] for name in _CONTENTS if name in sample})
        asked = _Asked(sample, attachments)
        eval_ = mapping(self._header.get("eval"))
        output = mapping(sample.get("output"))
        error, started = _error(sample), microseconds(sample.get("started_at"))
        is_own = "evaluand" in mapping(eval_.get("packages"))
        scores = [*_scores(mapping(sample.get("scores")))]
        grades = {name: _own_grade(score) if is_own else _grade(score) for name, score in scores}
        self._verdicts |= {name for name, grade in grades.items() if grade.is_share and grade.label in _GRADES}
        total = sample.get("total_time")
        duration = round(total * 1e6) if isinstance(total, int | float) else None
        spans = _spans(sample, asked, attachments, started)
        self._n_samples += 1
        self._n_shortened += asked.n_shortened
        yield Sample(
            require(sample, "id"),
            _input(require(sample, "input")),
            None if error else _completion(output, attachments),
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


_CONTENTS: Final = ("input", "target", "metadata", "scores", "error")
_ATTACHMENT: Final = "attachment://"


class _Attachments:
    """The texts that a sample stores once, under their digests, for all places that name these."""

    def __init__(self, texts: Mapping[str, Any]) -> None:
        self.texts = texts
        self._left = _MOST_ATTACHED

    def into(self, value: Any) -> Any:
        """A value with the texts in their places.

        Raises:
            ValueError: the sample becomes too large.
        """
        if isinstance(value, dict):
            return {key: self.into(each) for key, each in value.items()}
        if isinstance(value, list):
            return [*map(self.into, value)]
        if not isinstance(value, str) or not value.startswith(_ATTACHMENT):
            return value
        text = self.texts.get(value.removeprefix(_ATTACHMENT))
        if not isinstance(text, str):
            return value
        self._left -= len(text)
        if self._left < 0:
            raise ValueError(f"its attachments, in all of their places, have more than {_MOST_ATTACHED:,} characters")
        return text


def _input(value: Any) -> Any:
    if isinstance(value, list):
        return [{"role": m.get("role"), "content": m.get("content")} for m in value]
    return value


def _completion(output: Mapping[str, Any], attachments: _Attachments) -> Any:
    if output.get("completion") is not None:
        return attachments.into(output["completion"])
    choices = sequence(output.get("choices"))
    return _text_of(mapping(choices[0]).get("message"), attachments) if choices else None


def _text_of(message: Any, attachments: _Attachments) -> Any:
    content = mapping(message).get("content")
    if not isinstance(content, list):
        return attachments.into(content)
    texts = [part.get("text", "") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(attachments.into(texts))


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


def _scores(scores: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Scores by scorer; a score of several values is several scorers."""
    for name, score in scores.items():
        value = require(score, "value")
        if isinstance(value, dict):
            for part, each in value.items():
                yield f"{name}.{part}", {**score, "value": each}
        else:
            yield name, score


def _grade(score: Mapping[str, Any]) -> Grade:
    """The grade that Inspect's metrics compute with; a text that they count as 0, with a warning, is only a label."""
    said, explanation, answer = score["value"], score.get("explanation"), _text_or_none(score.get("answer"))
    if isinstance(said, str):
        value = _GRADES.get(said, _WORDS.get(said.lower()))
        if value is not None:
            data = {"answer": answer} if answer else None
            return Grade(value, said, _text_or_none(explanation), data, None, True)
        said = _number(said)
    return Grade.of(said, explanation=explanation, label=answer)


def _number(text: str) -> float | str:
    """The finite number that a text is, or else the text."""
    try:
        found = float(text)
    except ValueError:
        return text
    return found if math.isfinite(found) else text


def _own_grade(score: Mapping[str, Any]) -> Grade:
    """The grade of a score that evaluand has written: what Inspect has no name for is in the metadata."""
    value, about = score["value"], mapping(score.get("metadata"))
    label = _text_or_none(about.get("label"))
    grade = Grade.of(value, explanation=score.get("explanation"), label=label)._replace(data=about.get("data"))
    return grade._replace(is_share=label in _GRADES and _GRADES[label] == value)


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


class _Asked:
    """What the models of a sample were asked; once all inputs have too many characters, only the ends of further ones.

    Each call of an agent has all messages of those before it, so that the inputs grow with the square of the calls.
    Newer logs store each message once, and name ranges of them.

    Attributes:
        n_shortened: how many inputs hold only their last messages.
    """

    def __init__(self, sample: Mapping[str, Any], attachments: _Attachments) -> None:
        self._texts = attachments.texts
        self._pool = _messages(sequence(mapping(sample.get("events_data")).get("messages")), attachments)
        self._sizes = [*map(_size, self._pool)]
        self._left = _MOST_ASKED
        self.n_shortened = 0

    def of(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The messages that a model saw; for earlier ones that are left out, first an object with their number."""
        given = sequence(event.get("input"))
        ranges = [range(len(self._pool))[first:last] for first, last in sequence(event.get("input_refs"))]
        room = min(self._left, _LAST_ASKED) if self.n_shortened else self._left - _RESERVED
        kept: list[dict[str, Any]] = []
        for size, message in self._newest_first(given, ranges):
            if size > room:
                break
            room -= size
            self._left -= size
            kept.append(message)
        kept.reverse()
        n_earlier = len(given) + sum(map(len, ranges)) - len(kept)
        if not n_earlier:
            return kept
        self.n_shortened += 1
        return [{"earlier_messages": n_earlier}, *kept]

    def _newest_first(self, given: Sequence[Any], ranges: Sequence[range]) -> Iterator[tuple[int, dict[str, Any]]]:
        for numbers in reversed(ranges):
            yield from ((self._sizes[number], self._pool[number]) for number in reversed(numbers))
        for each in reversed(given):
            message = _message(each, _Attachments(self._texts))
            yield _size(message), message


def _size(value: Any) -> int:
    """About how many characters a value has as JSON."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + _size(each) for key, each in value.items())
    return len(value) + sum(map(_size, value)) if isinstance(value, list) else 8


def _spans(sample: Mapping[str, Any], asked: _Asked, attachments: _Attachments, started: int | None) -> list[list[Any]]:
    """The calls of models and tools; of a log without events one span with all messages."""
    rows: list[list[Any]] = []
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
            name, given, got = str(event.get("model")), asked.of(event), _reply(output, attachments)
            attributes = _usage({name: output["usage"]} if output.get("usage") else {})
        else:
            name, attributes = str(event.get("function")), None
            given, got = attachments.into(event.get("arguments")), attachments.into(event.get("result"))
        rows.append([len(rows) + 1, 0, name, kind, start, duration, status, given, got, attributes, None])
    if not rows and (messages := _messages(sequence(sample.get("messages")), attachments)):
        rows.append([1, 0, "messages", "llm", 0, None, 1, messages[:-1], messages[-1], None, None])
    return rows


def _reply(output: Mapping[str, Any], attachments: _Attachments) -> Any:
    choices = sequence(output.get("choices"))
    return _message(mapping(choices[0]).get("message"), attachments) if choices else None


def _messages(messages: Iterable[Any], attachments: _Attachments) -> list[dict[str, Any]]:
    return [_message(message, attachments) for message in messages]


def _message(message: Any, attachments: _Attachments) -> dict[str, Any]:
    """A message as `{role, content, tool_calls}`."""
    said = {"role": mapping(message).get("role"), "content": _text_of(message, attachments)}
    calls = [
        {
            "id": call.get("id"),
            "function": {"name": call.get("function"), "arguments": attachments.into(call.get("arguments"))},
        }
        for call in sequence(message.get("tool_calls"))
    ]
    return said | ({"tool_calls": calls} if calls else {})


_KINDS: Final = {"model": "llm", "tool": "tool"}
