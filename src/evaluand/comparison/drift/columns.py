"""The columns in which two samples are compared: of datasets, of the outputs of runs, of scores."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import orjson

from evaluand.core.errors import DataError, SpecError, warn
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Dataset
from evaluand.data.source import DataNote, read_column
from evaluand.data.typed_columns import type_column
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.prediction_table import to_column
from evaluand.run.runner import Run
from evaluand.store.tables import FAILED, SCORED, SKIPPED

Kind = Literal["number", "category", "text"]

MOST_CATEGORIES: Final = 50
"""Text with more distinct values, or with fewer than five rows for each, is text and no category."""

MOST_COLUMNS: Final = 500
_ROWS_PER_CATEGORY: Final = 5
_FEWEST_NUMBERS: Final = 2  # two numbers are categories, such as 0 and 1
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d|$)")
_KEYS: Final = (INDEX, "replication", "_response_index_", "target", "status")


@dataclass
class Sample:
    """The rows of one side.

    Attributes:
        label: a name for people.
        columns: the values by name; None where one is missing.
        unit: by row, what it belongs to: rows of both sides with an equal unit are a pair. None: each row for itself.
        by: what a unit is, such as `cluster (document)`.
    """

    label: str
    columns: dict[str, list[Any]] = field(default_factory=dict)
    unit: list[Any] | None = None
    by: str | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True)
class Column:
    """A column of both samples, first the rows of the first.

    Attributes:
        values: float64 for numbers; numbers of `categories`, from the most common; or a list of texts. Missing values
            are NaN, -1 or None.
    """

    name: str
    kind: Kind
    values: Any
    categories: tuple[str, ...] = ()

    @property
    def missing(self) -> np.ndarray:
        """By row, whether the value is missing."""
        if self.kind == "number":
            return np.asarray(np.isnan(self.values))
        missing = self.values < 0 if self.kind == "category" else [value is None for value in self.values]
        return np.asarray(missing, np.bool_)


def read_samples(a: Any, b: Any, labels: Sequence[str]) -> tuple[Sample, Sample]:
    """The samples of two datasets, runs or evaluations; of runs over one dataset only the outputs, paired by example.

    Raises:
        SpecError: they are of different kinds, or none of these.
    """
    kinds = [next((kind for kind in _READERS if isinstance(one, kind)), None) for one in (a, b)]
    if None in kinds or kinds[0] is not kinds[1]:
        named = " and ".join(type(one).__name__ for one in (a, b))
        raise SpecError(f"drift compares two datasets, two runs or two evaluations, not {named}")
    kind = kinds[0]
    assert kind is not None
    alike = kind is not Dataset and _dataset_id(a) == _dataset_id(b)
    first, second = (_READERS[kind](one, label, alike) for one, label in zip((a, b), labels, strict=True))
    if first.by != second.by:
        first.unit = second.unit = first.by = second.by = None
    return first, second


def _dataset_id(one: Any) -> str:
    return str(one.manifest["spec"]["dataset"])


def _read_dataset(dataset: Dataset, label: str, alike: bool) -> Sample:
    roles = dataset.roles
    left_out = {INDEX, roles.id, roles.weight, roles.cluster}
    names = [name for name in dataset.schema.names if name not in left_out and not name.startswith("_digest")]
    sample, rows = Sample(label), [*dataset.columns(names)]
    for name in names:
        sample.columns |= flatten(name, (value for batch in rows for value in read_column(batch, name)))
    _join_examples(sample, dataset, dataset.indices, alike)
    return sample


def _read_run(run: Run, label: str, alike: bool) -> Sample:
    sample, index = Sample(label), list[int]()
    outputs: list[Any] = []
    failed: list[bool] = []
    for batch in run.batches([INDEX, "status", "responses"]):
        for place, status, responses in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if status != SKIPPED:
                index.append(place)
                failed.append(status == FAILED)
                values = [orjson.loads(each["value"]) for each in responses or ()]
                outputs.append(values if run.items else next(iter(values), None))
    if not alike:
        place = {each: i for i, each in enumerate(run.dataset.indices)}
        for name, values_of in _read_dataset(run.dataset, "", False).columns.items():
            sample.columns[name] = [values_of[place[each]] for each in index]
    sample.columns |= flatten("output", outputs) | {"failed": failed}
    _join_examples(sample, run.dataset, index, alike)
    return sample


def _read_evaluation(evaluation: Evaluation, label: str, alike: bool) -> Sample:
    """A row for each example and replication, with the scores of all scorers."""
    sample = Sample(label)
    rows: dict[tuple[int, ...], int] = {}
    found: dict[str, dict[int, Any]] = {}
    for scorer in evaluation.scorers:
        names = [name for name in evaluation.columns(scorer) if name not in _KEYS]
        for batch in evaluation.batches(scorer, [*_KEYS[:2], "target", "status", *names]):
            for place, replication, target, status, *values in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                if status == SKIPPED:
                    continue
                row = rows.setdefault((place, replication), len(rows))
                head = scorer if target is None else f"{scorer}({target})"
                found.setdefault(f"{head} (no score)", {})[row] = status != SCORED
                for name, value in zip(names, values, strict=True):
                    found.setdefault(head if name == "value" else f"{head}.{name}", {})[row] = value
    for name, values_of in found.items():
        sample.columns |= flatten(name, (values_of.get(row) for row in range(len(rows))))
    dataset = Dataset.stored(evaluation.store, _dataset_id(evaluation))
    _join_examples(sample, dataset, [place for place, _ in rows], alike)
    return sample


_READERS: Final[Mapping[type, Callable[[Any, str, bool], Sample]]] = {
    Dataset: _read_dataset,
    Run: _read_run,
    Evaluation: _read_evaluation,
}


def _join_examples(sample: Sample, dataset: Dataset, index: Sequence[int], alike: bool) -> None:
    """Which rows belong together: those of a cluster, an id or, in one dataset or with replications, an example."""
    key = dataset.roles.cluster or dataset.roles.id
    if key:
        values = [value for batch in dataset.columns([key]) for value in read_column(batch, key)]
        place = {each: i for i, each in enumerate(dataset.indices)}
        sample.unit = [values[place[each]] for each in index]
        sample.by = f"{'cluster' if dataset.roles.cluster else 'id'} ({key})"
    elif alike:
        sample.unit, sample.by = [*index], "example"
    elif len(set(index)) < len(index):
        sample.unit, sample.by = [(sample.label, each) for each in index], "example"


def flatten(name: str, values: Iterable[Any]) -> dict[str, list[Any]]:
    """Values as columns of plain values: a mapping has a column for each key, a list its length.

    Example:
        >>> flatten("output", [{"label": "yes", "tags": [1, 2]}, None])
        {'output.label': ['yes', None], 'output.tags (items)': [2, None]}
    """
    rows = [*values]
    found: dict[str, list[Any]] = {}
    for row, value in enumerate(rows):
        for path, leaf in _leaves(name, value):
            if path not in found:
                if len(found) >= MOST_COLUMNS:
                    raise DataError(f"{name}: more than {MOST_COLUMNS} different keys; select some of them")
                found[path] = [None] * len(rows)
            found[path][row] = leaf
    return found or {name: [None] * len(rows)}


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner)
    elif isinstance(value, list | tuple):
        yield f"{path} (items)", len(value)
    elif isinstance(value, dt.datetime | dt.date):
        moment = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
        yield path, _timestamp(moment)
    elif isinstance(value, dt.timedelta):
        yield path, value.total_seconds()
    elif value is not None and not isinstance(value, bytes):
        yield path, value


def _timestamp(moment: dt.datetime) -> float:
    return moment.replace(tzinfo=moment.tzinfo or dt.UTC).timestamp()


def join_columns(a: Sample, b: Sample) -> Iterator[Column]:
    """The columns that both samples have, each with its kind by the values of both."""
    for name, values in a.columns.items():
        if name in b.columns:
            yield _as_column(name, [*values, *b.columns[name]])


def _as_column(name: str, values: list[Any]) -> Column:
    values = _read_texts(name, values)
    known = [value for value in values if value is not None and value == value]  # not NaN
    if known and all(isinstance(value, str) and _DATE.match(value) for value in known):
        with suppress(ValueError):
            values = [None if value is None else _timestamp(dt.datetime.fromisoformat(value)) for value in values]
            known = [value for value in values if value is not None]
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
    if known and are_numbers and len({*known}) > _FEWEST_NUMBERS:
        numbers = np.array([math.nan if value is None else float(value) for value in values])
        return Column(name, "number", np.where(np.isinf(numbers), np.sign(numbers) * np.finfo(float).max, numbers))
    texts = [None if value is None or value != value else _as_text(value) for value in values]
    counts: dict[str, int] = {}
    for text in texts:
        if text is not None:
            counts[text] = counts.get(text, 0) + 1
    if len(counts) > MOST_CATEGORIES or len(known) < _ROWS_PER_CATEGORY * len(counts):
        return Column(name, "text", texts)
    categories = sorted(counts, key=lambda text: (-counts[text], text))
    code = {text: i for i, text in enumerate(categories)}
    return Column(name, "category", np.array([-1 if text is None else code[text] for text in texts]), (*categories,))


def _read_texts(name: str, values: list[Any]) -> list[Any]:
    """Texts as numbers where they write some, words such as NA as missing; other values as they are."""
    if not any(isinstance(value, str) for value in values):
        return values
    read = type_column(name, to_column(name, values)).as_floats()
    if read.type in ("integer", "number") and read.has_few_words:
        words = read.describe_words(lambda row: f"row {row}", "counts as missing")
        for note in (*read.notes, *filter(None, [words])):
            warn(note, DataNote)
        return [*read.values.to_pylist()]
    if read.numbers_among:
        warn(f"{name!r} has numbers among words, so it is compared as text", DataNote)
    return values


def _as_text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
