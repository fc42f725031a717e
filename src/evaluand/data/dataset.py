"""Datasets: immutable, streamed examples, identified by their values.

Columns keep their native types and places. *Roles* say which columns a task sees as input, which contain the expected
answer, and which group, weigh, cluster or describe examples. The digest of an example covers the values of its roles,
so it does not depend on the file format or the batches they came in. The `_index_` of rows is checked and sorted if the
source has one, else they are numbered from 0.
"""

from __future__ import annotations

import copy
import hashlib
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from evaluand.core import identity as ids
from evaluand.core.errors import DataError, EngineError, SpecError, kind_of, nearest, warn
from evaluand.core.key_columns import DIGEST, INDEX
from evaluand.core.near import Explained
from evaluand.core.text.html_table import escape_markup
from evaluand.data.adapters.base.adapter import Counts
from evaluand.data.cell_texts import digests_of
from evaluand.data.conform import conform
from evaluand.data.kind import DATASETS
from evaluand.data.paths import read_paths
from evaluand.data.ranges import Ranges
from evaluand.data.roles import Roles, read_roles
from evaluand.data.row_filter import RowFilter, combine
from evaluand.data.row_index import add_index
from evaluand.data.row_values import (
    RowDigests,
    RowNumbers,
    RowValues,
    digest_column,
    digest_rows,
    input_texts,
    join_inputs,
)
from evaluand.data.sources import (
    DataNote,
    DataSource,
    Faults,
    from_pandas,
    from_rows,
    is_pandas,
    open_data,
    open_file,
    read_column,
)
from evaluand.data.view import View, ViewSpec
from evaluand.store.ownership import with_mac
from evaluand.store.store import Rows, Store, at_once, check_name, drafted


@dataclass(slots=True)
class Example:
    """One example.

    Attributes:
        index: its `_index_`, unique in the dataset.
        position: its place in the dataset, from 0.
        id: its name, or its index as text.
        input: what the task sees.
        expected: the right answer, a mapping target → answer, or None.
        attributes: values to group by.
        weight: its weight, or None.
        cluster: the group of examples that it belongs to, or None.
        metadata: other values.
        digest: 16 bytes, a hash of everything except the index and position.
    """

    index: int
    position: int
    id: str
    input: Any
    expected: Any
    attributes: dict[str, Any]
    weight: float | None
    cluster: Any
    metadata: dict[str, Any]
    digest: bytes

    @property
    def input_digest(self) -> bytes:
        """16 bytes, a hash of what the task sees."""
        return ids.digest(self.input)


class Dataset(metaclass=Explained):
    """An immutable sequence of examples, ordered by `_index_`.

    Create one with `from_data`, or with `from_file`, `from_rows`, `from_arrow` or `from_pandas`. Files are streamed,
    not loaded, unless their `_index_` column is out of order and has to be sorted. Without that column rows are
    numbered from 0. A dataset with columns may be empty, but not in an experiment file.

    Args:
        name: a name for people.
        adapters: a `Pipeline`, or its JSON configuration, that transforms the rows first. Rows that its `onError`
            leaves out or replaces are counted.
        schema: what every row must be, after the adapters, in any form that `Schema.of` takes. The columns get its
            types, and missing values its defaults. The cells of a CSV file are read as its types say.
        roles: as in `Roles`; of the columns after the adapters.

    Attributes:
        adapter_counts: what the adapters did to the rows; None without adapters.

    Raises:
        DataError: rows are invalid; lists every fault with its row and column.
        RoleError: a role names an unknown column.

    Example:
        >>> data = Dataset.from_rows([{"input": "2+2", "expected": "4"}, {"input": "3+3", "expected": "6"}])
        >>> [e.expected for e in data]
        ['4', '6']
    """

    kind: ClassVar = DATASETS

    def __init__(
        self,
        source: DataSource,
        *,
        name: str | None = None,
        adapters: Any = None,
        schema: Any = None,
        where: str | None = None,
        **roles: Any,
    ) -> None:
        if not isinstance(source, DataSource):
            given = repr(source) if isinstance(source, str) else "DATA"
            raise SpecError(f"Dataset reads a source of rows, not {kind_of(source)}; write Dataset.from_data({given})")
        self.name = None if name is None else check_name(name)
        self.adapter_counts: Counts | None = None
        if adapters is not None or schema is not None:
            source, self.adapter_counts = conform(source, adapters, schema)
        self._store: Store | None = None
        self._view: View | None = None
        names = [name for name in source.schema.names if name != DIGEST]
        _check_names(source)
        if not [name for name in names if name != INDEX]:
            raise DataError(f"{source.name}: there are no columns, and so no examples")
        if DIGEST in source.schema.names:  # which may come from elsewhere
            source = _select(source, names)
        source, roles = read_paths(source, roles or dict(source.roles))
        names = source.schema.names
        self.roles = Roles.over([name for name in names if name != INDEX], **roles)
        for name in self.roles.columns:
            if name in source.notes:
                warn(f"{source.name}: {source.notes[name]}", DataNote)
        self._source, self.indices = add_index(source)
        self._filter = where
        if where is not None:
            self._source, self.indices = _filter_rows(self._source, RowFilter(where))
        _check_rows(self._source, self.roles)

    @classmethod
    def from_rows(cls, records: Iterable[Mapping[str, Any]], *, name: str | None = None, **roles: Any) -> Dataset:
        """From Python mappings. Roles as in `Roles`: `input="question", expected="gold.answers[0]"`.

        This and the other constructors take `where`: only rows that match this filter, such as `age > 30`.
        """
        return cls(from_rows(records), name=name, **roles)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        delimiter: str | None = None,
        name: str | None = None,
        **roles: Any,
    ) -> Dataset:
        """From a file, compressed or not, a folder or a glob of files, or standard input.

        Args:
            path: `rows.csv`, `rows.jsonl.gz`, `parts/`, `parts/*.parquet`, `book.xlsx#sheet`, or `-`.
            format: one of `evaluand.data.format_names()`; by default it follows from the suffix.
            delimiter: the delimiter of a CSV file; by default a comma, or a tab in a TSV file.
            roles: as in `Roles`.

        Raises:
            DataError: there is no such file, or rows are invalid; lists every fault with its place.
            SpecError: the format, the delimiter or a role is wrong.
        """
        if not isinstance(path, str | os.PathLike):
            raise SpecError(f"give the path of a file, not {kind_of(path)}")
        return cls(open_file(os.fspath(path), format, delimiter), name=name, **roles)

    @classmethod
    def from_data(cls, data: Any, *, name: str | None = None, **roles: Any) -> Dataset:
        """From whatever holds rows: a path, a table or frame of any library, rows, or a mapping of columns.

        Args:
            data: as in `open_data`. A dataset is returned as it is, if no roles are declared.
            roles: as in `Roles`.

        Raises:
            DataError: rows are invalid; lists every fault with its place.
            SpecError: this has no rows, or a role is wrong.

        Example:
            >>> data = Dataset.from_data({"input": ["2+2", "3+3"], "expected": ["4", "6"]})
            >>> len(data)
            2
        """
        if isinstance(data, Dataset):
            if roles or (name is not None and name != data.name):
                raise SpecError("the dataset has its roles and its name already; give the rows that it was made from")
            return data
        return cls(open_data(data, "dataset"), name=name, **roles)

    @classmethod
    def from_arrow(cls, table: Any, *, name: str | None = None, **roles: Any) -> Dataset:
        """From an Arrow table, or anything that gives one, such as a polars frame or a DuckDB relation."""
        if not isinstance(table, pa.Table | pa.RecordBatch) and not hasattr(table, "__arrow_c_stream__"):
            raise SpecError(f"give a pyarrow.Table, or anything with __arrow_c_stream__, not {kind_of(table)}")
        return cls(open_data(table, "table"), name=name, **roles)

    @classmethod
    def from_pandas(cls, frame: Any, *, name: str | None = None, **roles: Any) -> Dataset:
        """From a pandas DataFrame, without its index."""
        if not is_pandas(frame):
            raise SpecError(f"give a pandas.DataFrame, not {kind_of(frame)}")
        return cls(from_pandas(frame), name=name, **roles)

    @classmethod
    def stored(cls, store: Store, id: str) -> Dataset:
        """The dataset with an id in a store.

        Raises:
            NotFound: the store has no such dataset.
            EngineError: its manifest or its table is damaged, or they do not belong together.
        """
        manifest = store.manifest("datasets", id)
        schema = next(store.read("datasets", id, "examples", rows=Rows(of=np.zeros(0, np.int64)))).schema
        self = cls.__new__(cls)
        self.name = manifest["name"]
        self.roles = read_roles(manifest["spec"]["roles"])
        if missing := [name for name in self.roles.columns if name not in schema.names]:
            raise EngineError(
                f"dataset {id} cannot be read: its manifest gives the column {missing[0][:60]!r} a role, but its table"
                " has no such column; see `evaluand verify`"
            )
        self._store, self._view, self._filter, self.adapter_counts = store, None, None, None
        self._source = DataSource(
            f"dataset {id}", schema, lambda: store.read("datasets", id, "examples"), lambda row: f"row {row}"
        )
        self.indices = array("q")
        for batch in store.read("datasets", id, "examples", [INDEX]):
            self.indices.frombytes(batch.column(0).to_numpy(zero_copy_only=False).tobytes())
        self.__dict__["digest"] = manifest["digest"]
        return self

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Example]:
        return self.examples()

    def __repr__(self) -> str:
        return f"Dataset({self.name or self._source.name!r}, {len(self)} examples, {self.roles})"

    def _repr_html_(self) -> str:
        """The first examples as the table of a notebook, with what a task sees and what is expected."""
        rows = [(example.index, example.input, example.expected) for example in islice(self, _SHOWN)]
        lines = (f"<td>{'</td><td>'.join(escape_markup(_shorten(cell)) for cell in row)}</td>" for row in rows)
        head = "<thead><tr><th></th><th>input</th><th>expected</th></tr></thead>"
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<p>{escape_markup(repr(self))}</p><table>{head}<tbody>{body}</tbody></table>"

    @property
    def schema(self) -> pa.Schema:
        """The native columns, with `_index_`."""
        return self._source.schema

    @cached_property
    def digest(self) -> str:
        """32 hexadecimal digits, a hash of every index and example."""
        return self.compute_digest()

    def compute_digest(self) -> str:
        """The digest computed from the rows, ignoring a stored one."""
        return self._digest_of(partial(digest_column, roles=self.roles))

    def _digest_of(self, digests: Callable[[pa.RecordBatch], pa.Array]) -> str:
        state = hashlib.blake2b(digest_size=ids.DIGEST_SIZE)
        for batch in self._source.batches():
            state.update(_with_indices(batch, digests(batch)))
        return state.hexdigest()

    @cached_property
    def id(self) -> str:
        """The dataset's id, derived from its values and roles."""
        return ids.artifact_id("datasets", self.spec)

    @property
    def spec(self) -> dict[str, Any]:
        return {"digest": self.digest, "roles": asdict(self.roles)}

    def where(self, condition: str) -> Dataset:
        """The examples that match a filter; their `_index_` stays.

        A missing value matches nothing; how many rows do not match because of one is reported in a warning.

        Args:
            condition: such as `sex == "F" and age > 30`. Of a stored dataset it sees the columns with a role.

        Raises:
            SpecError: the condition is wrong, or does not fit the columns.
            DataError: no example matches.

        Example:
            >>> data = Dataset.from_rows([{"input": "a", "age": 20}, {"input": "b", "age": 40}])
            >>> [(example.index, example.input) for example in data.where("age > 30")]
            [(1, 'b')]
        """
        dataset = self._over_other_rows()
        dataset._filter = combine([each for each in (self._filter, condition) if each])
        dataset._source, dataset.indices = _filter_rows(self._source, RowFilter(condition))
        return dataset

    def take(self, positions: Sequence[int] | np.ndarray[Any, np.dtype[np.int64]]) -> Dataset:
        """The examples at some positions, in the order of the dataset; their `_index_` stays.

        Example:
            >>> data = Dataset.from_rows([{"input": "a"}, {"input": "b"}, {"input": "c"}])
            >>> [(example.index, example.input) for example in data.take([2, 0])]
            [(0, 'a'), (2, 'c')]
        """
        dataset, places = self._over_other_rows(), np.unique(np.asarray(positions, np.int64))
        dataset._source = _take_rows(self._source, places)
        dataset.indices = array("q", np.frombuffer(self.indices, np.int64)[places].tobytes())
        return dataset

    def matches(self, condition: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Of each example whether it matches a condition; warns of those that do not because a value is missing."""
        rows = RowFilter(condition)
        mask = rows.mask_of(self._source.batches(), self._source.schema)
        if mask.null_count:
            unknown = rows.describe_unknown(mask.null_count, len(mask), "example")
            warn(f"where: {unknown}, which matches nothing")
        return np.asarray(mask.fill_null(False))

    def check_attributes(self, names: Iterable[str]) -> None:
        """Refuses names that are no attributes.

        Raises:
            SpecError: one is none.
        """
        known = self.roles.attributes
        for name in names:
            if name not in known:
                hint = nearest(name, known)
                raise SpecError(f"{name!r} is not an attribute of the dataset{hint}; declare it under attributes")

    def count_values(self, name: str) -> int:
        """The number of distinct values of a column."""
        return len({value for batch in self.columns([name]) for value in batch.column(0).unique().to_pylist()})

    def view(self, adapters: Any, *, schema: Any = None, checked: bool = False) -> Dataset:
        """This dataset with inputs transformed by adapters, for a service that needs them in another shape.

        Ids, expected values, attributes and digests stay the same, so that runs on several views of one dataset can be
        compared row by row. Adapters see `_index_` and the columns with the roles input, id, attributes and metadata,
        and must return one row for each.

        Args:
            adapters: a `Pipeline`, or its JSON configuration: a list of `{"kind": …, "configuration": …}`, or an object
                with `adapters` and, if you like, a `schema`.
            schema: what each input must be, in any form that `ValueSchema` takes.
            checked: skip the check of all rows, for rows that passed it before.

        Raises:
            AdapterSpecError: the configuration of the adapters is wrong.
            DataError: rows cannot be transformed; lists each distinct fault with its first row and the number of rows.

        Example:
            >>> data = Dataset.from_rows([{"text": "hello", "expected": "x"}])
            >>> viewed = data.view([{"kind": "TransformJSON", "configuration": {"prompt": "$.text", "n": 2}}])
            >>> [example.input for example in viewed]
            [{'prompt': 'hello', 'n': 2}]
        """
        view = View(ViewSpec.of(adapters, schema), self.roles)
        if not checked:
            view.check(self._source)
        return self._with_view(view)

    @property
    def view_spec(self) -> Any:
        """The adapters of the view as JSON; None without a view."""
        return None if self._view is None else self._view.pipeline.spec

    @property
    def view_counts(self) -> Counts | None:
        """What happened to the rows in the view; None without a view."""
        return None if self._view is None else self._view.counts

    def _over_other_rows(self) -> Dataset:
        """A copy that has no identity yet."""
        dataset = copy.copy(self)
        dataset.__dict__.pop("digest", None)
        dataset.__dict__.pop("id", None)
        dataset._store = None
        return dataset

    def _with_view(self, view: View | None) -> Dataset:
        dataset = copy.copy(self)
        dataset._view = view
        return dataset

    def examples(self, start: int = 0, stop: int | None = None) -> Iterator[Example]:
        """The examples from position `start` up to, not including, `stop`."""
        return ExampleStream(self).take(start, len(self) if stop is None else stop)

    def examples_at(self, positions: Sequence[int]) -> Iterator[Example]:
        """The examples at some positions, in ascending order."""
        chosen, position = np.asarray(positions, np.int64), 0
        for batch in self._source.batches():
            places = chosen[(chosen >= position) & (chosen < position + batch.num_rows)]
            if len(places):
                part = batch.take(pa.array(places - position))
                examples = _examples(part, self.roles, 0)
                if self._view is not None:
                    examples = _replace_inputs(examples, self._view.inputs(part))
                for example, place in zip(examples, places.tolist(), strict=True):
                    example.position = place
                    yield example
            position += batch.num_rows

    def inputs(self) -> Iterator[Any]:
        """What tasks see of each example, in order; faster than through `Example.input`."""
        for batch in self._source.batches():
            yield from self._inputs(batch)

    def _inputs(self, batch: pa.RecordBatch) -> Iterable[Any]:
        if self._view is not None:
            return self._view.inputs(batch)
        names = (self.roles.input,) if isinstance(self.roles.input, str) else self.roles.input
        return join_inputs({name: read_column(batch, name) for name in names}, self.roles, batch.num_rows)

    def input_digests(self, reads: Sequence[str] = ()) -> Iterator[bytes]:
        """The digest of what a task sees of each example, in order.

        Args:
            reads: "index" and "id" where the task reads these, too.
        """
        for batch in self._source.batches():
            texts = None if self._view is not None else input_texts(batch, self.roles, reads)
            if texts is not None:
                yield from digests_of(texts)
                continue
            more = {"index": read_column(batch, INDEX), "id": map(str, read_column(batch, self.roles.id or INDEX))}
            columns = [self._inputs(batch), *(more[name] for name in reads)]
            yield from map(ids.digest, zip(*columns, strict=True) if reads else columns[0])

    def example_digests(self) -> Iterator[bytes]:
        """The digest of each example, in order."""
        for batch in self._source.batches():
            stored = DIGEST in batch.schema.names
            yield from batch.column(DIGEST).to_pylist() if stored else digest_rows(batch, self.roles)

    def columns(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some native columns, in order, as a stream."""
        for batch in self._source.batches():
            yield batch.select(list(names))

    def ids(self) -> Iterator[str]:
        """The id of every example, in order."""
        if self.roles.id is None:
            yield from map(str, self.indices)
            return
        for batch in self._source.batches():
            yield from map(str, read_column(batch, self.roles.id))

    def save(self, store: Store, *, numbered: bool = False) -> Dataset:
        """This dataset stored in a store, to which it is copied unless it is there already.

        Args:
            numbered: whether `_index_` identifies an example within its dataset, and not its content: it is faster.
        """
        if self._store is store:
            return self
        digests = RowNumbers(self._source.batches(), self.roles) if numbered else RowDigests(self.roles)
        if "digest" not in self.__dict__:
            self.__dict__["digest"] = self._digest_of(digests.of)
        if not store.is_sealed("datasets", self.id):
            counts, origin = {"examples": len(self)}, {"source": self._source.name} | self._left_out
            with drafted(store, "datasets", self.id) as draft:
                draft.append("examples", self._empty_batch())
                for batch in self._with_digests(digests):
                    draft.append("examples", batch)
                manifest = at_once(
                    "datasets", self.id, self.spec, self.name, digest=self.digest, counts=counts, provenance=origin
                )
                draft.seal(with_mac(store, manifest))
        return Dataset.stored(store, self.id)._with_view(self._view)

    @property
    def _left_out(self) -> dict[str, Any]:
        """The filter, and how many rows the adapters left out or replaced, and why; empty if neither."""
        where = {} if self._filter is None else {"where": self._filter}
        counts = self.adapter_counts
        if counts is None or not counts.reasons:
            return where
        rows = {"read": counts.read, "skipped": counts.skipped, "defaulted": counts.defaulted}
        return where | {"adapters": rows | {"reasons": dict(counts.reasons)}}

    def _empty_batch(self) -> pa.RecordBatch:
        fields = [self._source.schema.field(name) for name in (INDEX, *self.roles.columns)]
        return pa.RecordBatch.from_pylist([], pa.schema([*fields, pa.field(DIGEST, pa.binary(ids.DIGEST_SIZE))]))

    def _with_digests(self, digests: RowDigests | RowNumbers) -> Iterator[pa.RecordBatch]:
        columns = [INDEX, *self.roles.columns]
        state = hashlib.blake2b(digest_size=ids.DIGEST_SIZE)
        for batch in self._source.batches():
            column = digests.of(batch)
            state.update(_with_indices(batch, column))
            yield batch.select(columns).append_column(DIGEST, column)
        if state.hexdigest() != self.digest:
            raise DataError(f"{self._source.name}: the rows changed while they were read; open the dataset again")


def _with_indices(batch: pa.RecordBatch, digests: pa.Array) -> bytes:
    """What the digest of a dataset covers of a batch: each index, in 8 bytes, and the digest of its row."""
    pairs = np.empty((batch.num_rows, 8 + ids.DIGEST_SIZE), np.uint8)
    pairs[:, :8] = batch.column(INDEX).to_numpy().astype("<i8", copy=False).view(np.uint8).reshape(-1, 8)
    pairs[:, 8:] = np.frombuffer(digests.buffers()[1], np.uint8).reshape(-1, ids.DIGEST_SIZE)
    return pairs.tobytes()


class ExampleStream:
    """Ranges of examples from one pass over a dataset, in ascending order; going back starts another pass."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self._ranges = dataset, Ranges(dataset._source.batches)

    def take(self, start: int, stop: int) -> Iterator[Example]:
        """The examples from position `start` up to, not including, `stop`."""
        roles, view = self._dataset.roles, self._dataset._view
        for position, part in self._ranges.take(start, stop):
            examples = _examples(part, roles, position)
            yield from examples if view is None else _replace_inputs(examples, view.inputs(part))


def _examples(batch: pa.RecordBatch, roles: Roles, position: int) -> Iterator[Example]:
    stored = DIGEST in batch.schema.names
    digests = batch.column(DIGEST).to_pylist() if stored else digest_rows(batch, roles)
    values, places = RowValues(batch, roles), range(position, position + batch.num_rows)
    names = [str(i) if name is None else str(name) for i, name in zip(values.indices, values.names, strict=True)]
    return map(Example, values.indices, places, names, *values.content, digests)


def _replace_inputs(examples: Iterator[Example], inputs: Iterator[Any]) -> Iterator[Example]:
    for example, input in zip(examples, inputs, strict=True):
        example.input = input
        yield example


def _check_names(source: DataSource) -> None:
    reserved = [n for n in source.schema.names if n.startswith("_") and n.endswith("_") and n not in (INDEX, DIGEST)]
    if reserved:
        raise DataError(
            f"{source.name}: the columns {', '.join(map(repr, reserved))} are refused: names that begin and end with"
            " an underscore are reserved; rename them"
        )


def _select(source: DataSource, names: Sequence[str]) -> DataSource:
    schema = pa.schema([source.schema.field(name) for name in names])
    return replace(source, schema=schema, batches=lambda: (batch.select(names) for batch in source.batches()))


def _filter_rows(source: DataSource, condition: RowFilter) -> tuple[DataSource, array[int]]:
    """The rows of a source that match a filter, and their indices."""
    mask = condition.mask_of(source.batches(), source.schema, source.notes)
    because = condition.describe_unknown(mask.null_count, len(mask))
    rows = np.flatnonzero(np.asarray(mask.fill_null(False)))
    if len(mask) and not len(rows):
        unknown = f"; {because}" if mask.null_count else ""
        raise DataError(f"{source.name}: no row matches where: {condition.text}{unknown}")
    if mask.null_count:
        warn(f"where: {because}, which matches nothing")
    taken, indices = _take_rows(source, rows), array("q")
    for batch in taken.batches():
        indices.frombytes(batch.column(INDEX).to_numpy().tobytes())
    return taken, indices


def _take_rows(source: DataSource, places: np.ndarray[Any, np.dtype[np.int64]]) -> DataSource:
    """The rows of a source at some places, which ascend."""

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for batch in source.batches():
            first, last = np.searchsorted(places, (start, start + batch.num_rows))
            if last > first:
                yield batch.take(pa.array(places[first:last] - start))
            start += batch.num_rows

    return replace(
        source,
        batches=batches,
        where=lambda row: source.where(int(places[row])),
        n_rows=len(places),
        objects=None,
        texts=None,
    )


def _check_rows(source: DataSource, roles: Roles) -> None:
    """Check that ids are unique and weights are finite numbers of at least 0."""
    if roles.id is None and roles.weight is None:
        return
    faults, row = Faults(), 0
    seen: dict[bytes, int] = {}
    for batch in source.batches():
        for i, value in enumerate(read_column(batch, roles.id) if roles.id is not None else (), row):
            if value is None or value == "":
                faults.add(source.where(i), "the id is empty; give each example a unique id")
            elif (first := seen.setdefault(ids.digest(str(value)), i)) != i:
                message = f"the id {str(value)[:80]!r} occurs twice (first at {source.where(first)})"
                faults.add(source.where(i), message)
        for i, value in enumerate(read_column(batch, roles.weight) if roles.weight is not None else (), row):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                faults.add(source.where(i), f"weight {value!r} is not a finite number of at least 0")
        row += batch.num_rows
    faults.check()


_SHOWN: Final = 5
_LONGEST: Final = 120


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
