"""Recorded outputs: predictions or responses that exist already, in a file or in memory, as a task."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, EvaluandWarning, SpecError, TaskError, described, plural, warn
from evaluand.core.fingerprint import Identity, code_identity
from evaluand.core.key_columns import INDEX
from evaluand.core.parameters import Text
from evaluand.core.selector import Selector
from evaluand.data.cell_texts import TEXT, cell_texts, digests_of, join_texts
from evaluand.data.dataset import Dataset
from evaluand.data.source import read_column
from evaluand.data.sources import DataNote, DataSource, Faults, digest_of_files, missing_column, open_file
from evaluand.data.typed_columns import id_text
from evaluand.models.reasoning import split_reasoning
from evaluand.run.output_columns import places_in_rows
from evaluand.run.parameters import check_parameters
from evaluand.run.responses import NOT_RECORDED, RECORDED
from evaluand.run.task import Recorded, Request, Task
from evaluand.run.tasks.recorded_score import BEHAVIOUR, Reading, is_number, reading_of
from evaluand.store.tables import BATCH_ROWS
from evaluand.trace.spans import TaskSpan


class DoubtfulJoin(EvaluandWarning):
    """The rows of a file may be joined to the wrong examples."""


@dataclass
class Outputs:
    """Outputs as texts: as Python objects they would take many times the file's size.

    Attributes:
        texts: large strings, the canonical text of each output.
        rows: key → number of the row; see `_key`.
        folds: key → fold.
        lacking: number of the row → why it has no output.
        errors: number of the row → the error that it has.
        thoughts: number of the row → the reasoning that its text has before the output.
    """

    texts: pa.Array = field(default_factory=lambda: pa.array([], TEXT))
    rows: dict[Hashable, int] = field(default_factory=dict)
    folds: dict[Hashable, int] = field(default_factory=dict)
    lacking: dict[int, str] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    thoughts: dict[int, str] = field(default_factory=dict)

    @property
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
        texts = cell_texts(self.texts.take(pa.array([row for _, row in rows], pa.int64())))
        return digests_of(join_texts(["[", replication, ",", index, ",", texts, "]"]))


class OutputsTask(Task[Any, Any]):
    """Returns outputs that exist, each by the `_index_` or the id of its example."""

    path: str
    by: str = "index"

    @property
    @abstractmethod
    def outputs(self) -> Outputs:
        """All outputs.

        Raises:
            SpecError: they cannot be read as the task says.
            DataError: they are invalid.
        """

    @property
    def is_async(self) -> bool:
        """True: a look-up never waits, so the event loop is faster than threads."""
        return True

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.by,)

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        raise TaskError("recorded outputs belong to examples; run the task on a dataset")

    def fold(self, index: int, id: str, replication: int) -> int | None:
        return self.outputs.folds.get(self._key_of(index, id, replication))

    def known(self, index: int, id: str, replication: int) -> Sequence[Any]:
        outputs, row = self.outputs, self.outputs.rows.get(self._key_of(index, id, replication))
        has_failed = row is None or row in outputs.lacking or row in outputs.errors
        output = None if has_failed else identity.decode(outputs.texts[row].as_py())
        return () if output is None else (output,)

    def recorded(self, dataset: Dataset, examples: int, replications: int) -> Recorded | None:
        outputs = self.outputs
        if outputs.lacking or outputs.errors or outputs.thoughts or self.items or self.output_schema is not None:
            return None
        keys: list[Hashable] = [*islice(self._keys_in(dataset), examples)]
        if replications > 1:
            keys = [_key(key, time) for key in keys for time in range(replications)]
        texts = outputs.texts.take(pa.array([*map(outputs.rows.get, keys)], pa.int64()))
        return Recorded(texts, map(outputs.folds.get, keys) if outputs.folds else repeat(None, len(keys)))

    async def call(self, request: Request) -> Any:
        outputs = self.outputs
        row = outputs.rows.get(self._key_of(request.index, request.id, request.replication))
        if row is None:
            key = request.id if self.by == "id" else request.index
            what = f"{self.by} {key!r}" + (f", replication {request.replication}" if request.replication else "")
            raise TaskError(f"{self.path} has no row for {what}", code=NOT_RECORDED)
        if row in outputs.errors:
            raise TaskError(outputs.errors[row], code=RECORDED)
        if row in outputs.thoughts:
            request.task_span.set(reasoning=outputs.thoughts[row])
        if row in outputs.lacking:
            raise TaskError(outputs.lacking[row], code=NOT_RECORDED)
        return identity.decode(outputs.texts[row].as_py())

    def _key_of(self, index: int, id: str, replication: int) -> Hashable:
        """The key of an example's row."""
        return _key(id_text(id) if self.by == "id" else index, replication)

    def _keys_in(self, dataset: Dataset) -> Iterator[Hashable]:
        """The key of each example for the first repeat."""
        return map(id_text, dataset.ids()) if self.by == "id" else iter(dataset.indices)


class GivenTask(OutputsTask):
    """Returns outputs from memory, by the `_index_` of each example, and skips the examples that have none.

    Args:
        path: the name of the task.
        make: makes the outputs when the first one is needed.
        repeats: how many each example has.

    Example:
        >>> outputs = {(0, 0): identity.encode("cat"), (1, 0): identity.encode("dog")}
        >>> task = GivenTask.from_outputs("predictions", outputs)
        >>> task.replications, task.skips(1, "1", 0)
        (2, True)
    """

    def __init__(self, path: str, make: Callable[[], Outputs], repeats: int = 1) -> None:
        self.path, self._make, self._repeats = path, make, repeats

    @classmethod
    def from_outputs(
        cls, name: str, outputs: Mapping[tuple[int, int], bytes], folds: Mapping[tuple[int, int], int] | None = None
    ) -> GivenTask:
        """Outputs by (replication, `_index_`).

        Args:
            outputs: as `identity.encode` writes them.
            folds: of a cross-validation.
        """
        ordered = sorted(outputs.items())
        rows = {_key(index, replication): row for row, ((replication, index), _) in enumerate(ordered)}
        by_key = {_key(index, replication): fold for (replication, index), fold in (folds or {}).items()}
        made = Outputs(pa.array([text for _, text in ordered], TEXT), rows, by_key)
        return cls(name, lambda: made, made.repeats)

    @classmethod
    def from_texts(cls, name: str, texts: Callable[[], pa.Array]) -> GivenTask:
        """Outputs of the examples from 0.

        Args:
            texts: returns large strings that `identity.encode` would write.
        """

        def make() -> Outputs:
            made = Outputs(texts())
            made.rows.update((row, row) for row in range(len(made.texts)))
            return made

        return cls(name, make)

    @cached_property
    def outputs(self) -> Outputs:
        return self._make()

    @property
    def name(self) -> str:
        return self.path

    @property
    def replications(self) -> int:
        return self._repeats

    def identify(self) -> Identity:
        return Identity({"kind": "given", "outputs": self.outputs.digest})

    def skips(self, index: int, id: str, replication: int) -> bool:
        return _key(index, replication) not in self.outputs.rows


@dataclass(frozen=True, kw_only=True)
class RecordedTask(OutputsTask):
    """Returns the recorded output of each example, from a file.

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
    """

    path: str
    response: str | Mapping[str, str] | None = None
    score: Mapping[str, Any] | None = None
    decision: Mapping[str, Any] | None = None
    by: Literal["index", "id"] = "index"
    key: Text | None = None
    replication: Text | None = None
    fold_key: Text | None = None
    error: Text | None = None
    items: bool = False
    reasoning: Literal["apart", "graded"] = "apart"
    format: str | None = None
    delimiter: str | None = None
    output_schema: Any = None

    kind = "recorded"
    behaviour = 2

    def __post_init__(self) -> None:
        parts = self.response.values() if isinstance(self.response, Mapping) else [self.response or ""]
        wrong = () if all(isinstance(part, str) for part in parts) else (self.response,)
        check_parameters(self, ((("response",), f"is {described(value)}; {_RESPONSE}") for value in wrong))
        if (self._reading is None) == (not self.response):
            raise SpecError(
                "recorded: response must not be empty; give the path of the output in a row, or score, or decision"
                if self._reading is None
                else "recorded: response, score and decision each say what the output is; give one of them"
            )
        for _, place in self._places:
            _selector(place)

    @property
    def name(self) -> str:
        return Path(self.path).stem

    def identify(self) -> Identity:
        if type(self) is not RecordedTask:
            return code_identity("task", self, files=[self.path])
        spec: dict[str, Any] = {
            "kind": self.kind,
            "version": self.behaviour if self._reading is None else BEHAVIOUR,
            "file": digest_of_files(self.path),
        }
        spec |= {name: getattr(self, name) for name in ("response", "by", "key", "replication", "fold_key", "items")}
        if self.reasoning != "apart":
            spec["reasoning"] = self.reasoning
        for name in ("delimiter", "error", "score", "decision"):
            if getattr(self, name) is not None:
                spec[name] = getattr(self, name)
        return Identity(spec, parts={os.path.basename(self.path): spec["file"]})

    def prepare(self, dataset: Dataset) -> None:
        """Reads the file, and says where its rows may be joined to the wrong examples.

        Raises:
            SpecError: the file has other columns, or its rows cannot be joined to the examples.
            DataError: rows are invalid.
        """
        if "_source" in vars(self):
            try:
                self._source.check()
            except DataError:  # the file has changed since an earlier run
                for name in ("_source", "_is_by_place", "outputs"):
                    vars(self).pop(name, None)
        if self._is_by_place:
            self._check_places(dataset)
        keys = {*map(_example_key, self.outputs.rows)}
        if self.by == "id" and dataset.roles.id is None and not keys & {*self._keys_in(dataset)}:
            raise SpecError(
                f"{self.path} is joined by: id, but the dataset has no ids; set its role id to their column"
            )
        for doubts in (self._id_columns, self._unmatched_rows, self._unread_errors, self._other_truth, self._scores):
            for doubt in doubts(dataset):
                warn(f"{self.path}{doubt}", DoubtfulJoin)

    def recorded(self, dataset: Dataset, examples: int, replications: int) -> Recorded | None:
        made = super().recorded(dataset, examples, replications) if type(self) is RecordedTask else None
        return None if made is None or made.texts.null_count else made  # the call of a row that is missing fails

    # -- the file

    @cached_property
    def _reading(self) -> Reading | None:
        return reading_of(self.score, self.decision)

    @property
    def _places(self) -> list[tuple[str, str]]:
        """(parameter, path in a row) of everything that is read from a row."""
        return [*places_in_rows(vars(self))]

    @property
    def _columns(self) -> list[str]:
        """The columns in which these paths begin."""
        steps = (step for _, place in self._places for step in _selector(place).steps[:1])
        return [*dict.fromkeys(step for step in steps if isinstance(step, str))]

    @property
    def _key_place(self) -> str:
        return self.key or (INDEX if self.by == "index" else "id")

    @cached_property
    def _is_by_place(self) -> bool:
        """Whether rows are joined by their number only."""
        return self.key is None and self._key_place not in self._source.schema.names

    @cached_property
    def _source(self) -> DataSource:
        source = open_file(self.path, self.format, self.delimiter)
        if not any(batch.num_rows for batch in source.batches()):
            raise DataError(f"{self.path}: the file has no rows")
        columns, faults = source.schema.names, []
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
        for column in self._columns:
            if column in source.notes:
                warn(f"{self.path}: {source.notes[column]}", DataNote)
        return source

    @cached_property
    def outputs(self) -> Outputs:
        outputs, faults, parts = Outputs(), Faults(), []
        rows = enumerate(self._rows())
        while texts := [self._text_in(row, n, outputs, faults) for n, row in islice(rows, BATCH_ROWS)]:
            parts.append(pa.array(texts, TEXT))
        faults.check()
        outputs.texts = pa.concat_arrays(parts)
        if len(outputs.lacking) == len(outputs.texts):
            raise DataError(f"no row has a response: {outputs.lacking[0]}")
        return outputs

    def _rows(self) -> Iterator[dict[str, Any]]:
        names = self._source.schema.names
        for batch in self._source.batches():
            for cells in zip(*(read_column(batch, name) for name in names), strict=True):
                yield dict(zip(names, cells, strict=True))

    def _text_in(self, row: Mapping[str, Any], number: int, outputs: Outputs, faults: Faults) -> bytes:
        """The text of the output in a row; notes all else that the row says."""
        where = self._source.where
        try:
            key = self._key_in(row, number)
            if self.fold_key:
                outputs.folds[key] = _number(self.fold_key, _selector(self.fold_key).get(row))
        except DataError as error:
            faults.add(where(number), str(error))
            return b""
        if (first := outputs.rows.setdefault(key, number)) != number:
            message = f"{self.by} {_example_key(key)!r} occurs twice (first at {where(first)}); keep one row for each"
            faults.add(where(number), message)
        if self.error and (failure := _error_message(self.error, row)):
            outputs.errors[number] = failure
        try:
            output = self._output(row)
            if isinstance(output, str) and self.reasoning == "apart":
                reasoning, output = split_reasoning(output)
                if reasoning is not None:
                    outputs.thoughts[number] = reasoning
                    if not output:
                        raise DataError("the output has no answer after its reasoning")
            return identity.encode(output)
        except DataError as error:
            outputs.lacking[number] = f"{where(number)}: {error}"
            return b""

    def _key_in(self, row: Mapping[str, Any], number: int) -> Hashable:
        replication = _number(self.replication, _selector(self.replication).get(row)) if self.replication else 0
        if self._is_by_place:
            return _key(number, replication)
        value = _selector(self._key_place).get(row)
        if self.by == "index":
            return _key(_whole_number(self._key_place, value), replication)
        if value is None or value == "":
            raise DataError(f"{self._key_place} is empty; give the row the id of its example")
        return _key(id_text(str(value)), replication)

    def _output(self, row: Mapping[str, Any]) -> Any:
        if self._reading is not None:
            return self._reading.output(_selector(self._reading.column).get(row))
        if isinstance(self.response, str):
            return _selector(self.response).get(row)
        return {name: _selector(place).get(row) for name, place in (self.response or {}).items()}

    def _cells(self, column: str) -> list[Any]:
        return [cell for batch in self._source.batches() for cell in read_column(batch, column)]

    # -- what is doubtful

    def _check_places(self, dataset: Dataset) -> None:
        """Raise if rows cannot be joined by their number."""
        n, role = len(self.outputs.texts), dataset.roles.id
        is_numbered = [*dataset.indices[:1], *dataset.indices[-1:]] == [0, len(dataset) - 1]
        if is_numbered and n != len(dataset):
            raise DataError(
                f"{self.path} has {n} rows for {len(dataset)} examples, and no column to join them by;"
                f" give both an {INDEX} column, or join by: id"
            )
        if role in self._source.schema.names and role not in self._columns:
            raise SpecError(f"{self.path} has the ids of the examples in {role!r}; set by: id, key: {role}")

    def _id_columns(self, dataset: Dataset) -> Iterator[str]:
        """A column that looks like ids, if rows are joined by their number."""
        columns = [name for name in self._source.schema.names if name not in self._columns]
        column = next((name for name in columns if name.lower().endswith("id")), None)
        if self._is_by_place and column is not None:
            yield f" is joined by row number; if {column!r} holds the ids of the examples, set by: id, key: {column}"

    def _unmatched_rows(self, dataset: Dataset) -> Iterator[str]:
        keys: set[Hashable] = {*self._keys_in(dataset)}
        unused = [key for key in map(_example_key, self.outputs.rows) if key not in keys]
        if unused:
            example = f"{self.by} {unused[0]!r}"
            many = f"{len(unused):,} rows match no example, such as {example}"
            yield f": {many if len(unused) > 1 else f'1 row matches no example: {example}'}"

    def _unread_errors(self, dataset: Dataset) -> Iterator[str]:
        """Texts under `error` in rows without a response, if no errors are read."""
        if self.error is not None or _ERROR not in self._source.schema.names or _ERROR in self._columns:
            return
        cells = zip(self._cells(_ERROR), self.outputs.texts.to_pylist(), strict=True)
        lacking = ((n, error) for n, (error, text) in enumerate(cells) if text in ("", "null"))
        unread = [(number, error) for number, error in lacking if isinstance(error, str) and error]
        for number, error in unread[:1]:
            yield (
                f": {_ERROR!r} is not read, but says why {plural(len(unread), 'row')} without a response"
                f" failed, such as {self._source.where(number)}: {error}; set error: {_ERROR} to count them as failed"
            )

    def _other_truth(self, dataset: Dataset) -> Iterator[str]:
        """The column of the expected values, if the file has it too, with other values."""
        name = dataset.roles.expected
        if not isinstance(name, str) or name not in self._source.schema.names or name in self._columns:
            return
        own, rows = self._cells(name), self.outputs.rows
        pairs = ((rows.get(self._key_of(e.index, e.id, 0)), e.expected) for e in dataset)
        joined = ((row, str(own[row]), str(expected)) for row, expected in pairs if row is not None)
        differing = [pair for pair in joined if own[pair[0]] is not None and pair[1] != pair[2]]
        for row, one, other in differing[:1]:
            yield (
                f": {name!r} differs from the expected value of the dataset in {plural(len(differing), 'row')},"
                f" such as {self._source.where(row)}: {one} and not {other}; the dataset's value counts"
            )

    def _scores(self, dataset: Dataset) -> Iterator[str]:
        """Outputs of more than two numbers where the truth is one of two: they look like scores."""
        column = self.response.get("prediction") if isinstance(self.response, Mapping) else self.response
        if not isinstance(column, str) or self.items:
            return
        texts = self.outputs.texts.unique()[:_MANY].to_pylist()
        values = [identity.decode(text) for text in texts if text]
        values = [value.get("prediction") if isinstance(value, Mapping) else value for value in values]
        values = [value for value in values if value is not None]
        if all(map(is_number, values)) and len(numbers := {*values}) > 2 and _is_binary(dataset):
            shown = ", ".join(f"{value:g}" for value in sorted(numbers)[:_SHOWN])
            setting = f"{{column: {column}, range: [{min(numbers):g}, {max(numbers):g}], threshold: …}}"
            yield (
                f": {column!r} has the values {shown}, … and the expected value is one of two; if it is a score, write"
                f" score: {setting} instead of response: as it is, each number counts as a class"
            )


_RESPONSE = "give the path of the output in a row, or a path for each of its parts by name"

_MANY = 1000
"""Of more different outputs the first so many are looked at."""

_SHOWN = 3

_ERROR = "error"
"""The column in which files of outputs usually have errors."""

_selector = cache(Selector)


def _is_binary(dataset: Dataset) -> bool:
    """Whether 0 and 1 are all expected values."""
    expected: set[Any] = set()
    for example in dataset:
        expected.add(example.expected if isinstance(example.expected, Hashable) else None)
        if len(expected) > 2:
            return False
    return expected == {0, 1}


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


def _number(column: str, value: Any) -> int:
    """The number of a repeat or fold."""
    number = _whole_number(column, value)
    if not 0 <= number < 2**31:
        raise DataError(f"{column} is {value}; repeats and folds are numbered from 0")
    return number


def _error_message(place: str, row: Mapping[str, Any]) -> str | None:
    """The error of a row as text; None where it is empty."""
    try:
        value = _selector(place).get(row)
    except DataError:  # the row has no such path
        return None
    if value is None or value is False or value == "":
        return None
    return value if isinstance(value, str) else identity.encode(value).decode()
