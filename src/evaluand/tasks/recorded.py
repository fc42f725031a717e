"""Recorded outputs: a file of predictions or responses made elsewhere, as a task."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evaluand import ids, rows
from evaluand.dataset import Dataset
from evaluand.errors import DataError, SpecError, TaskError
from evaluand.fingerprint import Identity, code_identity
from evaluand.selector import Selector
from evaluand.source import Faults, Source, open_file
from evaluand.task import Request, Task
from evaluand.trace import TaskSpan


@dataclass(frozen=True, kw_only=True)
class RecordedTask(Task[Any, Any]):
    """Gives each example the output that a file has for it.

    The rows of the file are joined to the examples by the example's id or by its `_index_`. A file without the key
    column is joined by the number of its row. An example without a row fails, as it would if the system had crashed;
    a row whose response is null gave no answer.

    Args:
        path: a CSV, JSON lines, JSON, Parquet or Arrow file.
        response: where in a row the output stands (`prediction`, `model_a.text`), or a mapping name → place for
            several parts, such as prediction and confidence.
        by: `index` or `id`: what a row is joined by.
        key: where in a row that stands; `_index_` or `id` if not given.
        replication: where in a row the number of the repeat stands, if the file has several.
        fold_key: where in a row the number of the fold stands, if the outputs come from a cross-validation.
        items: the output is a list of items that together are the response.
        format: the file's format, if its suffix does not tell.
    """

    path: str
    response: str | Mapping[str, str]
    by: str = "index"
    key: str | None = None
    replication: str | None = None
    fold_key: str | None = None
    items: bool = False
    format: str | None = None

    kind = "recorded"
    behaviour = 1

    def __post_init__(self) -> None:
        if self.by not in ("index", "id"):
            raise SpecError(f"recorded: by must be index or id, not {self.by!r}")
        responses = (self.response,) if isinstance(self.response, str) else self.response.values()
        for place in (*responses, self.key, self.replication, self.fold_key):
            if place is not None:
                Selector(place)

    @property
    def name(self) -> str:
        return Path(self.path).stem

    @property
    def is_async(self) -> bool:
        """Looking up waits for nothing, so the event loop does it quicker than threads would."""
        return True

    def identify(self) -> Identity:
        if type(self) is not RecordedTask:
            return code_identity("task", self, self.name, files=[self.path])
        spec: dict[str, Any] = {
            "kind": self.kind,
            "version": self.behaviour,
            "file": ids.digest_of_file(self._file),
            "response": self.response,
            "by": self.by,
            "key": self.key,
            "replication": self.replication,
            "fold_key": self.fold_key,
            "items": self.items,
        }
        return Identity(spec, parts={os.path.basename(self.path): spec["file"]})

    def fold(self, index: int, id: str, replication: int) -> int | None:
        return self._folds.get((id if self.by == "id" else index, replication))

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        raise TaskError("recorded outputs belong to examples; they cannot be asked for an input alone")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.by,)

    def prepare(self, dataset: Dataset) -> None:
        outputs, _, by_place = self._read
        numbered = list(dataset.indices[-1:]) == [len(dataset) - 1] and dataset.indices[0] == 0
        if by_place and numbered and len(outputs) != len(dataset):
            raise DataError(
                f"{self.path} has {len(outputs)} rows for {len(dataset)} examples, and nothing tells which is whose;"
                f" give both an {rows.INDEX} column, or join by: id"
            )

    async def call(self, request: Request) -> Any:
        key = request.id if self.by == "id" else request.index
        found = self._outputs.get((key, request.replication))
        if found is None:
            what = f"{self.by} {key!r}" + (f", replication {request.replication}" if request.replication else "")
            raise TaskError(f"{self.path} has no row for {what}", code="not_recorded")
        if isinstance(found, str):
            raise TaskError(found, code="not_recorded")
        return ids.decode(found)

    @property
    def _file(self) -> Path:
        path = Path(self.path)
        if not path.is_file():
            raise DataError(f"{self.path}: no such file")
        return path

    @property
    def _outputs(self) -> dict[tuple[Hashable, int], bytes | str]:
        """(key, replication) → canonical text of the output, or in words why the row has none."""
        return self._read[0]

    @property
    def _folds(self) -> dict[tuple[Hashable, int], int]:
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[dict[tuple[Hashable, int], bytes | str], dict[tuple[Hashable, int], int], bool]:
        """Outputs, folds, and whether rows are joined by nothing but their place."""
        source = open_file(self._file, self.format)
        outputs: dict[tuple[Hashable, int], bytes | str] = {}
        folds: dict[tuple[Hashable, int], int] = {}
        faults = Faults()
        for number, row in enumerate(_rows(source)):
            try:
                key = self._key(number, row, source)
                if self.fold_key:
                    folds[key] = _number(self.fold_key, Selector(self.fold_key).get(row))
            except DataError as error:
                faults.add(source.where(number), str(error))
                continue
            if key in outputs:
                faults.add(source.where(number), f"{self.by} {key[0]!r} occurs twice; keep one row for each")
            outputs[key] = self._written(row, source.where(number))
        faults.check()
        if outputs and all(isinstance(output, str) for output in outputs.values()):
            raise DataError(f"no row has a response: {next(iter(outputs.values()))!s}")
        return outputs, folds, self._by_place(source)

    def _by_place(self, source: Source) -> bool:
        return self.by == "index" and self.key is None and rows.INDEX not in source.schema.names

    def _written(self, row: Mapping[str, Any], where: str) -> bytes | str:
        try:
            return ids.encode(self._output(row))
        except DataError as error:
            return f"{where}: {error}"

    def _key(self, number: int, row: Mapping[str, Any], source: Source) -> tuple[Hashable, int]:
        column = self.key or (rows.INDEX if self.by == "index" else "id")
        replication = _number(self.replication, Selector(self.replication).get(row)) if self.replication else 0
        if self.by == "index":
            if self._by_place(source):
                return number, replication
            return _whole(column, Selector(column).get(row)), replication
        id = Selector(column).get(row)
        if id is None or id == "":
            raise DataError(f"{column} is empty; give the row the id of its example")
        return str(id), replication

    def _output(self, row: Mapping[str, Any]) -> Any:
        if isinstance(self.response, str):
            return Selector(self.response).get(row)
        return {name: Selector(place).get(row) for name, place in self.response.items()}


def _whole(column: str, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():  # a column that some other row made one of fractions
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(f"{column} is {value!r}, not a whole number; to join by names say by: id")
    return value


def _number(column: str, value: Any) -> int:
    """The number of a repeat or fold."""
    number = _whole(column, value)
    if not 0 <= number < 2**31:
        raise DataError(f"{column} is {value}; repeats and folds are numbered from 0")
    return number


def _rows(source: Source) -> Iterator[dict[str, Any]]:
    for batch in source.batches():
        texts = [f.name for f in batch.schema if rows.is_json(f)]
        for row in batch.to_pylist():
            for name in texts:
                row[name] = None if row[name] is None else ids.decode(row[name])
            yield row
