"""Recorded outputs: predictions or responses that exist already, in a file or in memory, as a task."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, EvaluandWarning, SpecError, TaskError, plural, warn
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.key_columns import INDEX
from evaluand.core.selector import Selector
from evaluand.data.cell_texts import cell_texts, digests_of, join_texts
from evaluand.data.dataset import Dataset
from evaluand.data.sources import DataNote, DataSource, Faults, digest_of_files, missing_column, open_file
from evaluand.data.typed_columns import id_text
from evaluand.models.reasoning import split_reasoning
from evaluand.run.responses import NOT_RECORDED, RECORDED
from evaluand.run.task import Recorded, Request, Task
from evaluand.run.tasks.recorded_score import BEHAVIOUR, Reading, reading_of
from evaluand.store.tables import BATCH_ROWS, is_json
from evaluand.trace.spans import TaskSpan


class DoubtfulJoin(EvaluandWarning):
    """The rows of a file may be joined to the wrong examples."""


@dataclass(frozen=True, kw_only=True)
class RecordedTask(Task[Any, Any]):
    """Returns the recorded output of each example, from a file, or from a mapping with `from_outputs`.

    The rows of a file are joined to the examples by the example's id or by its `_index_`; a file without an `_index_`
    column by row number. An example without a row fails, as it would if the system had crashed; a row whose response is
    null has no answer. Rows that match no example are reported by a `DoubtfulJoin` warning.

    Args:
        path: a file, a folder or a pattern of files, as a dataset's.
        response: path of the output in a row (`prediction`, `model_a.text`), or a mapping name → path for several
            parts, such as prediction and confidence.
        score: instead of `response`, a score that decides from a threshold on: `{column: decile_score, range: [1, 10],
            threshold: 5}`, and `labels: [negative, positive]` if these are not 0 and 1.
        decision: instead of `response`, a decision in the words of the file: `{column: score_text, negative: [Low],
            positive: [Medium, High]}`, and `labels` as of a score.
        by: `index` or `id`: how rows are joined to examples.
        key: path of the index or id in a row; `_index_` or `id` by default.
        replication: path of the number of the repeat in a row, if the file has several.
        fold_key: path of the number of the fold in a row, if the outputs come from a cross-validation.
        error: path of the error in a row: where it is not empty, the call has failed with this message.
        items: the output is a list of items that together are the response.
        reasoning: `apart` from an output that is text (`<think>…</think>` with which it begins), in the trace; or
            `graded` as part of it.
        format: the file's format, if its suffix does not say.
        delimiter: the separator of a CSV file, if not a comma.
        output_schema: what each output must be; see `Task`.

    Example:
        >>> outputs = {(0, 0): identity.encode("cat"), (1, 0): identity.encode("dog")}
        >>> task = RecordedTask.from_outputs("predictions", outputs)
        >>> task.replications, task.skips(1, "1", 0)
        (2, True)
    """

    path: str
    response: str | Mapping[str, str] | None = None
    score: Mapping[str, Any] | None = None
    decision: Mapping[str, Any] | None = None
    by: str = "index"
    key: str | None = None
    replication: str | None = None
    fold_key: str | None = None
    error: str | None = None
    items: bool = False
    reasoning: Literal["apart", "graded"] = "apart"
    format: str | None = None
    delimiter: str | None = None
    output_schema: Any = None

    kind = "recorded"
    behaviour = 2

    def __post_init__(self) -> None:
        if self.reasoning not in ("apart", "graded"):
            raise SpecError(f"recorded: reasoning must be apart or graded, not {self.reasoning!r}")
        if self.by not in ("index", "id"):
            raise SpecError(f"recorded: by must be index or id, not {self.by!r}")
        if (self._reading is None) == (not self.response):
            raise SpecError(
                "recorded: response must not be empty; give the path of the output in a row, or score, or decision"
                if self._reading is None
                else "recorded: response, score and decision each say what the output is; give one of them"
            )
        for _, place in self._places:
            _selector(place)

    @classmethod
    def from_outputs(
        cls, name: str, outputs: Mapping[tuple[int, int], bytes], folds: Mapping[tuple[int, int], int] | None = None
    ) -> RecordedTask:
        """A task that returns outputs from memory, and skips the examples that have none.

        Args:
            outputs: (replication, `_index_`) → the output, as `identity.encode` writes it.
            folds: (replication, `_index_`) → the fold of a cross-validation.
        """
        task = cls(path=name, response="output")
        vars(task)["_outputs"] = _Outputs.from_mapping(outputs, folds or {})
        vars(task)["_in_memory"] = True
        return task

    @classmethod
    def from_texts(cls, name: str, texts: Callable[[], pa.Array]) -> RecordedTask:
        """A task that returns outputs from memory: of each example, by its `_index_` from 0.

        Args:
            texts: returns the outputs as large strings that `identity.encode` would write; called when the first one is
                needed.
        """
        task = cls(path=name, response="output")
        vars(task)["_texts"] = texts
        vars(task)["_in_memory"] = True
        return task

    @property
    def name(self) -> str:
        return self.path if self._in_memory else Path(self.path).stem

    @property
    def _in_memory(self) -> bool:
        return bool(vars(self).get("_in_memory"))

    @property
    def repeats(self) -> int:
        """The number of repeats: one more than the largest number of a repeat.

        Raises:
            SpecError: the file lacks columns.
            DataError: rows are invalid.
        """
        return 1 if "_texts" in vars(self) else self._outputs.repeats

    @property
    def replications(self) -> int | None:
        return self.repeats if self._in_memory else None

    @property
    def is_async(self) -> bool:
        """True: a look-up never waits, so the event loop is faster than threads."""
        return True

    def identify(self) -> Identity:
        if self._in_memory:
            return Identity({"kind": "given", "outputs": self._outputs.digest})
        if type(self) is not RecordedTask:
            return code_identity("task", self, files=[self.path])
        spec: dict[str, Any] = {
            "kind": self.kind,
            "version": self.behaviour if self._reading is None else BEHAVIOUR,
            "file": digest_of_files(self.path),
            "response": self.response,
            "by": self.by,
            "key": self.key,
            "replication": self.replication,
            "fold_key": self.fold_key,
            "items": self.items,
        }
        if self.reasoning != "apart":
            spec["reasoning"] = self.reasoning
        for name in ("delimiter", "error", "score", "decision"):
            if getattr(self, name) is not None:
                spec[name] = getattr(self, name)
        return Identity(spec, parts={os.path.basename(self.path): spec["file"]})

    def fold(self, index: int, id: str, replication: int) -> int | None:
        return self._outputs.folds.get(self._key_of(index, id, replication))

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        raise TaskError("recorded outputs belong to examples; run the task on a dataset")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.by,)

    def skips(self, index: int, id: str, replication: int) -> bool:
        return self._in_memory and _key(index, replication) not in self._outputs.rows

    def prepare(self, dataset: Dataset) -> None:
        if self._in_memory:
            return
        self._drop_stale_outputs()
        outputs = self._outputs
        assert outputs.source is not None
        numbered = list(dataset.indices[-1:]) == [len(dataset) - 1] and dataset.indices[0] == 0
        if outputs.by_place and numbered and len(outputs) != len(dataset):
            raise DataError(
                f"{self.path} has {len(outputs)} rows for {len(dataset)} examples, and no column to join them by;"
                f" give both an {INDEX} column, or join by: id"
            )
        columns = [name for name in outputs.source.schema.names if name not in dict(self._places).values()]
        id_column = next((name for name in columns if name.lower().endswith("id")), None)
        if outputs.by_place and dataset.roles.id in columns:
            raise SpecError(
                f"{self.path} has the ids of the examples in {dataset.roles.id!r}; set by: id, key: {dataset.roles.id}"
            )
        if outputs.by_place and id_column is not None:
            warn(
                f"{self.path} is joined by row number; if {id_column!r} holds the ids of the examples, set by: id, "
                f"key: {id_column}",
                DoubtfulJoin,
            )
        unnamed = self.by == "id" and dataset.roles.id is None
        if unnamed and not {*map(_example_key, outputs.rows)} & {*self._keys_in(dataset)}:
            raise SpecError(
                f"{self.path} is joined by: id, but the dataset has no ids; set its role id to their column"
            )
        self._warn_of_unmatched_rows(dataset)
        self._warn_of_unread_errors()
        self._warn_of_other_truth(dataset)
        self._warn_of_scores(dataset)

    def known(self, index: int, id: str, replication: int) -> Sequence[Any]:
        row = self._outputs.rows.get(self._key_of(index, id, replication))
        output = None if row is None or self._outputs.has_failed(row) else identity.decode(self._outputs.text(row))
        return () if output is None else (output,)

    def recorded(self, dataset: Dataset, examples: int, replications: int) -> Recorded | None:
        outputs = self._outputs
        if type(self) is not RecordedTask or self.items or self.output_schema is not None:
            return None
        if outputs.has_failures or outputs.thoughts:
            return None
        keys: list[Hashable] = [*islice(self._keys_in(dataset), examples)]
        if replications > 1:
            keys = [_key(key, time) for key in keys for time in range(replications)]
        rows = [*map(outputs.rows.get, keys)]
        if None in rows and not self._in_memory:  # the call would fail
            return None
        return Recorded(outputs.texts(rows), map(outputs.folds.get, keys) if outputs.folds else repeat(None, len(keys)))

    async def call(self, request: Request) -> Any:
        row = self._outputs.rows.get(self._key_of(request.index, request.id, request.replication))
        if row is None:
            key = request.id if self.by == "id" else request.index
            what = f"{self.by} {key!r}" + (f", replication {request.replication}" if request.replication else "")
            raise TaskError(f"{self.path} has no row for {what}", code=NOT_RECORDED)
        if row in self._outputs.errors:
            raise TaskError(self._outputs.errors[row], code=RECORDED)
        if row in self._outputs.thoughts:
            request.task_span.set(reasoning=self._outputs.thoughts[row])
        if row in self._outputs.lacking:
            raise TaskError(self._outputs.reason(row), code=NOT_RECORDED)
        return identity.decode(self._outputs.text(row))

    def _drop_stale_outputs(self) -> None:
        outputs: _Outputs | None = vars(self).get("_outputs")
        try:
            if outputs is not None and outputs.source is not None:
                outputs.source.check()
        except DataError:  # the file has changed since an earlier run
            del vars(self)["_outputs"]

    @cached_property
    def _reading(self) -> Reading | None:
        return reading_of(self.score, self.decision)

    @property
    def _places(self) -> list[tuple[str, str]]:
        """(parameter, path in a row) of everything that is read from a row."""
        responses = [self.response] if isinstance(self.response, str) else (self.response or {}).values()
        others = ((name, getattr(self, name)) for name in ("key", "replication", "fold_key", "error"))
        reading = self._reading
        return [
            *(("response", place) for place in responses),
            *([] if reading is None else [("score" if self.score is not None else "decision", reading.column)]),
            *((n, place) for n, place in others if place is not None),
        ]

    @cached_property
    def _outputs(self) -> _Outputs:
        if (texts := vars(self).get("_texts")) is not None:
            return _Outputs.from_texts(texts())
        source = open_file(self.path, self.format, self.delimiter)
        if not any(batch.num_rows for batch in source.batches()):
            raise DataError(f"{self.path}: the file has no rows")
        self._check_columns(source.schema.names)
        for column in dict.fromkeys(str(step) for _, place in self._places for step in _selector(place).steps[:1]):
            if column in source.notes:
                warn(f"{self.path}: {source.notes[column]}", DataNote)
        outputs = _Outputs(source, by_place=self._column not in source.schema.names and self.key is None)
        faults = Faults()
        for number, row in enumerate(_rows(source)):
            try:
                key = self._key(number if outputs.by_place else None, row)
                if self.fold_key:
                    outputs.folds[key] = _number(self.fold_key, _selector(self.fold_key).get(row))
            except DataError as error:
                faults.add(source.where(number), str(error))
                continue
            if key in outputs.rows:
                first = source.where(outputs.rows[key])
                message = f"{self.by} {_example_key(key)!r} occurs twice (first at {first}); keep one row for each"
                faults.add(source.where(number), message)
            outputs.rows.setdefault(key, number)
            if self.error and (failure := _error_message(self.error, row)):
                outputs.errors[number] = failure
            try:
                outputs.add(identity.encode(self._answer(row, number, outputs)))
            except DataError as error:
                outputs.add(b"")
                outputs.lacking[number] = str(error)
        faults.check()
        if len(outputs.lacking) == len(outputs):
            raise DataError(f"no row has a response: {outputs.reason(0)}")
        return outputs

    @property
    def _column(self) -> str:
        return INDEX if self.by == "index" else "id"

    def _check_columns(self, columns: Sequence[str]) -> None:
        faults = []
        for name, place in self._places:
            column = next(iter(_selector(place).steps), None)
            if isinstance(column, str) and column not in columns:
                faults.append(f"{self.path}: {name}: {missing_column(column, columns)}")
        if self.by == "id" and self.key is None and "id" not in columns:
            faults.append(
                f"{self.path}: by: id needs a column 'id'; set key to the column that holds the ids, one of: "
                f"{', '.join(columns)}"
            )
        if faults:
            raise SpecError("\n".join(faults))

    def _key(self, number: int | None, row: Mapping[str, Any]) -> Hashable:
        column = self.key or self._column
        replication = _number(self.replication, _selector(self.replication).get(row)) if self.replication else 0
        if number is not None:
            return _key(number, replication)
        value = _selector(column).get(row)
        if self.by == "index":
            return _key(_whole_number(column, value), replication)
        if value is None or value == "":
            raise DataError(f"{column} is empty; give the row the id of its example")
        return _key(id_text(str(value)), replication)

    def _key_of(self, index: int, id: str, replication: int) -> Hashable:
        """The key of an example's row."""
        return _key(id_text(id) if self.by == "id" else index, replication)

    def _keys_in(self, dataset: Dataset) -> Iterator[Hashable]:
        """The key of each example for the first repeat."""
        return map(id_text, dataset.ids()) if self.by == "id" else iter(dataset.indices)

    def _answer(self, row: Mapping[str, Any], number: int, outputs: _Outputs) -> Any:
        """The output in a row, without its reasoning."""
        output = self._output(row)
        if not isinstance(output, str) or self.reasoning == "graded":
            return output
        reasoning, answer = split_reasoning(output)
        if reasoning is not None:
            outputs.thoughts[number] = reasoning
            if not answer:
                raise DataError("the output has no answer after its reasoning")
        return answer

    def _output(self, row: Mapping[str, Any]) -> Any:
        if self._reading is not None:
            return self._reading.output(_selector(self._reading.column).get(row))
        if isinstance(self.response, str):
            return _selector(self.response).get(row)
        return {name: _selector(place).get(row) for name, place in (self.response or {}).items()}

    def _warn_of_unmatched_rows(self, dataset: Dataset) -> None:
        known: set[Hashable] = {*self._keys_in(dataset)}
        unused = [key for key in map(_example_key, self._outputs.rows) if key not in known]
        if unused:
            example = f"{self.by} {unused[0]!r}"
            count = f"1 row matches no example: {example}"
            if len(unused) > 1:
                count = f"{len(unused):,} rows match no example, such as {example}"
            warn(f"{self.path}: {count}", DoubtfulJoin)

    def _warn_of_unread_errors(self) -> None:
        """Warns if rows without a response have texts under `error`, and no errors are read."""
        source = self._outputs.source
        if source is None or self.error is not None or _ERROR not in source.schema.names:
            return
        if _ERROR in dict(self._places).values():
            return
        texts = iter(self._outputs)
        unread = [
            (number, row[_ERROR])
            for (number, row), text in zip(enumerate(_rows(source)), texts, strict=True)
            if text in ("", "null") and isinstance(row[_ERROR], str) and row[_ERROR]
        ]
        if unread:
            number, error = unread[0]
            warn(
                f"{self.path}: {_ERROR!r} is not read, but says why {plural(len(unread), 'row')} without a response"
                f" failed, such as {source.where(number)}: {error}; set error: {_ERROR} to count them as failed",
                DoubtfulJoin,
            )

    def _warn_of_other_truth(self, dataset: Dataset) -> None:
        """Warns if the file has the column of the expected values too, with other values."""
        source, name = self._outputs.source, dataset.roles.expected
        used = {step for _, place in self._places for step in _selector(place).steps[:1]}
        if source is None or not isinstance(name, str) or name not in source.schema.names or name in used:
            return
        own = {number: _text(row[name]) for number, row in enumerate(_rows(source))}
        differing = []
        for example in dataset:
            number = self._outputs.rows.get(self._key_of(example.index, example.id, 0))
            text = None if number is None else own[number]
            if number is not None and text is not None and text != _text(example.expected):
                differing.append((source.where(number), text, _text(example.expected)))
        if differing:
            where, one, other = differing[0]
            warn(
                f"{self.path}: {name!r} differs from the expected value of the dataset in"
                f" {plural(len(differing), 'row')}, such as {where}: {one} and not {other}; the dataset's value counts",
                DoubtfulJoin,
            )

    def _warn_of_scores(self, dataset: Dataset) -> None:
        """Warns if outputs are more than two numbers and the truth is one of two: they look like scores."""
        response = self.response
        column = response.get("prediction") if isinstance(response, Mapping) else response
        if not isinstance(column, str) or self.items:
            return
        outputs: set[Any] = set()
        for text in self._outputs:
            value = identity.decode(text) if text else None
            value = value.get("prediction") if isinstance(value, Mapping) else value
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                return
            outputs.add(value)
            if len(outputs) > _MANY:
                break
        outputs.discard(None)
        truths: set[Any] = set()
        for example in dataset:
            truths.add(example.expected if isinstance(example.expected, Hashable) else None)
            if len(truths) > 2:
                return
        if len(truths) == 2 and truths <= {0, 1} and len(outputs) > 2:
            shown = ", ".join(f"{value:g}" for value in sorted(outputs)[:_SHOWN])
            setting = f"{{column: {column}, range: [{min(outputs):g}, {max(outputs):g}], threshold: …}}"
            warn(
                f"{self.path}: {column!r} has the values {shown}, … and the expected value is one of two; if it is a"
                f" score, write score: {setting} instead of response: as it is, each number counts as a class",
                DoubtfulJoin,
            )


def _text(value: Any) -> str | None:
    """A value as text, by which columns of different formats can be compared."""
    return None if value is None else str(value)


@dataclass
class _Outputs:
    """Outputs as one text: as Python objects they would take many times the file's size.

    Attributes:
        source: the file, if they come from one.
        by_place: whether rows are joined by their number only.
        rows: key → number of the row.
        folds: key → fold.
        lacking: number of the row → why it has no output.
        errors: number of the row → the error that it has.
        thoughts: number of the row → the reasoning that its text has before the output.
    """

    source: DataSource | None
    by_place: bool
    rows: dict[Hashable, int] = field(default_factory=dict)
    folds: dict[Hashable, int] = field(default_factory=dict)
    lacking: dict[int, str] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    thoughts: dict[int, str] = field(default_factory=dict)
    _texts: bytearray = field(default_factory=bytearray)
    _ends: array[int] = field(default_factory=lambda: array("q", [0]))

    @classmethod
    def from_mapping(cls, outputs: Mapping[tuple[int, int], bytes], folds: Mapping[tuple[int, int], int]) -> _Outputs:
        """Outputs in memory, by (replication, `_index_`)."""
        found = cls(None, by_place=False)
        for row, ((replication, index), text) in enumerate(sorted(outputs.items())):
            found.rows[_key(index, replication)] = row
            found.add(text)
        found.folds = {_key(index, replication): fold for (replication, index), fold in folds.items()}
        return found

    @classmethod
    def from_texts(cls, texts: pa.Array) -> _Outputs:
        """Outputs in memory, of the examples from 0."""
        numbers = range(len(texts))
        outputs = cls(None, by_place=False, rows=dict(zip(numbers, numbers, strict=True)))
        outputs._column = texts
        return outputs

    def __len__(self) -> int:
        return len(self._column)

    @cached_property
    def repeats(self) -> int:
        """One more than the largest number of a repeat."""
        return 1 + max((key[1] for key in self.rows if isinstance(key, tuple)), default=0)

    @property
    def digest(self) -> str:
        rows = iter(self.rows.items())
        batches = iter(lambda: [*islice(rows, BATCH_ROWS)], [])
        return identity.digest_of_digests(chain.from_iterable(map(self._digests, batches))).hex()

    def _digests(self, rows: Sequence[tuple[Any, int]]) -> list[bytes]:
        """The digest of each output with its place."""
        places = [(key[1], key[0]) if isinstance(key, tuple) else (0, key) for key, _ in rows]
        replication, index = (cell_texts(pa.array(column, pa.int64())) for column in zip(*places, strict=True))
        texts = cell_texts(self.texts([row for _, row in rows]))
        return digests_of(join_texts(["[", replication, ",", index, ",", texts, "]"]))

    @property
    def has_failures(self) -> bool:
        return bool(self.lacking or self.errors)

    def has_failed(self, row: int) -> bool:
        return row in self.lacking or row in self.errors

    def add(self, text: bytes) -> None:
        self._texts += text
        self._ends.append(len(self._texts))

    @cached_property
    def _column(self) -> pa.Array:
        ends, characters = pa.py_buffer(self._ends), pa.py_buffer(self._texts)
        return pa.Array.from_buffers(pa.large_string(), len(self._ends) - 1, [None, ends, characters])

    def __iter__(self) -> Iterator[str]:
        return (text.as_py() for text in self._column)

    def texts(self, rows: Sequence[int | None]) -> pa.Array:
        """The texts of rows; null where there is no row."""
        return self._column.take(pa.array(rows, pa.int64()))

    def text(self, row: int) -> str:
        text: str = self._column[row].as_py()
        return text

    def reason(self, row: int) -> str:
        where = row if self.source is None else self.source.where(row)
        return f"{where}: {self.lacking[row]}"


_MANY = 1000
"""Of more different outputs the first so many are looked at."""

_SHOWN = 3

_ERROR = "error"
"""The column in which files of outputs usually have errors."""

_selector = cache(Selector)


def _key(example: Hashable, replication: int) -> Hashable:
    """The key of a row; for the first repeat only that of the example, which takes less memory."""
    return (example, replication) if replication else example


def _example_key(key: Hashable) -> Hashable:
    return key[0] if isinstance(key, tuple) else key


def _whole_number(column: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():  # another row made the column one of floats
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(f"{column} is {value!r}, not an integer; to join by names set by: id")
    return value


def _error_message(place: str, row: Mapping[str, Any]) -> str | None:
    """The error of a row as text; None where it is empty."""
    try:
        value = _selector(place).get(row)
    except DataError:  # the row has no such path
        return None
    if value is None or value is False or value == "":
        return None
    return value if isinstance(value, str) else identity.encode(value).decode()


def _number(column: str, value: Any) -> int:
    """The number of a repeat or fold."""
    number = _whole_number(column, value)
    if not 0 <= number < 2**31:
        raise DataError(f"{column} is {value}; repeats and folds are numbered from 0")
    return number


def _rows(source: DataSource) -> Iterator[dict[str, Any]]:
    for batch in source.batches():
        texts = [f.name for f in batch.schema if is_json(f)]
        for row in batch.to_pylist():
            for name in texts:
                row[name] = None if row[name] is None else identity.decode(row[name])
            yield row
