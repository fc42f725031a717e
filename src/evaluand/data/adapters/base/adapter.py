"""Adapters: from one shape of JSON-like rows to another, by configuration alone.

The adapters that data pass through are part of what is evaluated, so each is a kind and a JSON configuration, and
both are part of the identity of the results:

    {"kind": "ExplodeCollections", "configuration": {"collections": ["text"]}}

An adapter makes any number of rows of each row and looks at no other. It changes neither its configuration nor the
rows it is given; what a new row shares with its origin is not copied. Some adapters also work on whole Arrow batches,
without an object per row.

    adapter/template.py    values and paths of a new structure, as in `TransformJSON`
    adapter/options.py     what may stand in a configuration
    adapter/columns.py     Arrow batches
    adapters/              the kinds
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from evaluand.core import registry
from evaluand.core.errors import kind_of
from evaluand.data.adapters.base.faults import AdapterError, AdapterSpecError, WrongType
from evaluand.data.adapters.base.options import check_data, options

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
Through = Callable[[Any], Sequence[Row]]

INDEX = "_index_"
UPLOAD = "$fileUpload"
"""The one key of a row that is to be sent as `multipart/form-data`."""


class Adapter(ABC):
    """Makes new rows of a row; a kind implements `adapt`.

    Args:
        configuration: what the kind asks for; it is copied.

    Attributes:
        of_objects: whether it works on objects only; what is none is refused before it comes to `adapt`.
        last: whether what it makes is no row any more, so that it must be the last of a pipeline.

    Raises:
        AdapterSpecError: the configuration is not what the kind asks for; all of it at once.
    """

    kind: ClassVar[str]
    of_objects: ClassVar[bool] = True
    last: bool = False

    def __init__(self, configuration: Any = None) -> None:
        check_data(self.kind, configuration)
        self._configuration = copy.deepcopy(configuration)

    @property
    def configuration(self) -> Any:
        """A copy of what it was made of: an adapter stays what its results are identified by."""
        return copy.deepcopy(self._configuration)

    @abstractmethod
    def adapt(self, row: Row) -> Sequence[Row]:
        """The rows made of one.

        Raises:
            AdapterError: the row cannot be transformed.
        """

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """A whole batch at once, where the kind and the data allow it without going through every row."""
        return None

    @property
    def spec(self) -> dict[str, Any]:
        """The kind and its configuration, as `create` reads them."""
        return {"kind": self.kind, "configuration": self.configuration}

    def __call__(self, stream: Iterable[Row]) -> Adapted:
        return Pipeline([self])(stream)

    def __repr__(self) -> str:
        return f"{self.kind}({self.configuration!r})"


class Pipeline:
    """Adapters one after the other.

    Args:
        adapters: adapters, or their specs.
        on_error: what becomes of a row that cannot be transformed: `abort` raises, `skip` leaves it out, `default`
            puts another in its place. The last two are counted. A row that has become several is one row still: where
            one of them fails, none of them comes out.
        default: the row in its place, with `on_error="default"`.

    Raises:
        AdapterSpecError: an adapter's spec is wrong; all of them at once.

    Example:
        >>> pipeline = Pipeline([
        ...     {"kind": "Rename", "configuration": {"text": "prompt"}},
        ...     {"kind": "Drop", "configuration": {"fields": ["label"]}},
        ... ])
        >>> list(pipeline([{"text": "hello", "label": 1}]))
        [{'prompt': 'hello'}]
    """

    def __init__(
        self,
        adapters: Iterable[Adapter | Mapping[str, Any]],
        *,
        on_error: Literal["abort", "skip", "default"] = "abort",
        default: Mapping[str, Any] | None = None,
    ) -> None:
        self.adapters = _created(adapters)
        self.on_error, self.default = on_error, default
        self._check()
        self.default = copy.deepcopy(default)
        self.through = _in_turn([_step(adapter, self._where(i)) for i, adapter in enumerate(self.adapters)])
        """The rows made of one; an `AdapterError` names the adapter and its place in the pipeline."""

    @classmethod
    def of(cls, spec: Any) -> Self:
        """A pipeline from its spec: a list of adapters' specs, one of them, or an object with `adapters`.

        Raises:
            AdapterSpecError: it is none of these.
        """
        if isinstance(spec, Mapping) and "kind" not in spec:
            given = options(
                "a pipeline", spec, required=("adapters",), optional=("onError", "default"), what="its spec"
            )
            return cls(given["adapters"], on_error=given.get("onError", "abort"), default=given.get("default"))
        return cls([spec] if isinstance(spec, Mapping | Adapter) else spec)

    @property
    def spec(self) -> Any:
        """What `of` reads: a list where every row must pass."""
        adapters = [adapter.spec for adapter in self.adapters]
        if self.on_error == "abort":
            return adapters
        told = {"adapters": adapters, "onError": self.on_error}
        return told if self.default is None else told | {"default": copy.deepcopy(self.default)}

    @property
    def last(self) -> bool:
        """Whether what it makes is no row any more."""
        return any(adapter.last for adapter in self.adapters)

    def __call__(self, stream: Iterable[Row], counts: Counts | None = None) -> Adapted:
        """The rows made of a stream; `counts` are those of streams before, which go on."""
        return Adapted(self, stream, Counts() if counts is None else counts)

    def adapt(self, row: Row, place: int = 0) -> Sequence[Row]:
        """The rows made of one; `place` says which row of the stream it is, for messages.

        Raises:
            AdapterError: names the row, the adapter and its place in the pipeline.
        """
        try:
            return self.through(row)
        except AdapterError as error:
            error.add_place(row_name(row, place))
            raise

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """A whole batch at once, or None where it must go row by row: an adapter, or a row, asks for it."""
        made = batch if len(set(batch.schema.names)) == batch.num_columns else None
        for adapter in self.adapters:
            if made is None:
                return None
            made = adapter.columns(made)
        return made

    def pieces(
        self, batches: Iterable[pa.RecordBatch], counts: Counts | None = None
    ) -> Iterator[pa.RecordBatch | list[Row]]:
        """What becomes of each batch of a stream: a batch where it can be made at once, else a list of rows.

        Args:
            batches: of a table, `table.to_batches()`; of a Parquet file, `file.iter_batches()`.
            counts: those that go on; as when all goes row by row.

        Raises:
            AdapterError: a row cannot be transformed, with `on_error="abort"`.
        """
        from evaluand.data.adapters.base.columns import rows_of

        counts = Counts() if counts is None else counts
        for batch in batches:
            made = self.columns(batch)
            if made is None:
                yield list(self(rows_of(batch), counts))
            else:
                counts.read += batch.num_rows
                counts.made += made.num_rows
                yield made

    def table(self, batches: Iterable[pa.RecordBatch], counts: Counts | None = None) -> pa.Table:
        """The rows made of Arrow batches as a table: each batch at once where that can be, else row by row.

        Types stay those that the columns have at once. Where no batch can go so, or rows do not fit with those of the
        batches that can, they are what the values ask for, and JSON texts (`evaluand.store.tables.is_json`) for
        objects and for values of several types.

        Args:
            batches: as for `pieces`.
            counts: as for `pieces`.

        Raises:
            AdapterError: a row cannot be transformed, with `on_error="abort"`.
            DataError: what is made is no row, or holds what cannot be stored.

        Example:
            >>> import pyarrow as pa
            >>> batch = pa.RecordBatch.from_pylist([{"text": "hello"}, {"text": "bye"}])
            >>> Pipeline([{"kind": "Rename", "configuration": {"text": "prompt"}}]).table([batch]).to_pylist()
            [{'prompt': 'hello'}, {'prompt': 'bye'}]
        """
        from evaluand.data.adapters.base.columns import table_of

        return table_of(list(self.pieces(batches, counts)))

    def _where(self, number: int) -> str:
        kind = self.adapters[number].kind
        return kind if len(self.adapters) == 1 else f"{kind} (step {number + 1} of {len(self.adapters)})"

    def _check(self) -> None:
        faults = [
            f"{self._where(i)} must be the last adapter of a pipeline; move it to the end"
            for i, adapter in enumerate(self.adapters[:-1])
            if adapter.last
        ]
        if self.on_error not in _WAYS:
            faults.append(f"onError is {self.on_error!r}; give one of {', '.join(_WAYS)}")
        elif (self.on_error == "default") != (self.default is not None):
            faults.append("default: give the row that takes a failed one's place, and onError: default with it")
        elif self.default is not None and not isinstance(self.default, Mapping):
            faults.append(f"default is {kind_of(self.default)}; give an object")
        if faults:
            raise AdapterSpecError("\n".join(faults))
        check_data("default", self.default)


@dataclass(slots=True)
class Counts:
    """What became of the rows that went into a pipeline.

    Attributes:
        read: rows that went in.
        made: rows that came out.
        skipped: rows left out since they could not be transformed.
        defaulted: rows that another took the place of.
        reasons: how often each message came, without its row; the first hundred different ones.
    """

    read: int = 0
    made: int = 0
    skipped: int = 0
    defaulted: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class Adapted(Iterator[Row]):
    """The rows that a pipeline makes of a stream, with counts of what became of them so far."""

    def __init__(self, pipeline: Pipeline, stream: Iterable[Row], counts: Counts) -> None:
        self.counts = counts
        self._rows = chain.from_iterable(self._made(pipeline, stream))

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def __next__(self) -> Row:
        return next(self._rows)

    def _made(self, pipeline: Pipeline, stream: Iterable[Row]) -> Iterator[Sequence[Row]]:
        counts, through = self.counts, pipeline.through
        for row in stream:
            counts.read += 1
            try:
                made = through(row)
            except AdapterError as error:
                if pipeline.on_error == "abort":
                    error.add_place(row_name(row, counts.read - 1))
                    raise
                made = self._instead(pipeline, str(error))
            counts.made += len(made)
            yield made

    def _instead(self, pipeline: Pipeline, reason: str) -> Sequence[Row]:
        reasons = self.counts.reasons
        if reason in reasons or len(reasons) < _REASONS:
            reasons[reason] += 1
        if pipeline.default is None:
            self.counts.skipped += 1
            return ()
        self.counts.defaulted += 1
        return (dict(copy.deepcopy(pipeline.default)),)


def create(spec: Any) -> Adapter:
    """An adapter from its spec, `{"kind": …, "configuration": …}`.

    Raises:
        AdapterSpecError: no kind has that name, or its configuration is wrong; names the nearest right one.

    Example:
        >>> create({"kind": "Rename", "configuration": {"text": "prompt"}})
        Rename({'text': 'prompt'})
    """
    if isinstance(spec, Adapter):
        return spec
    given = options("an adapter", spec, required=("kind",), optional=("configuration",), what="its spec")
    kind, known = given["kind"], registry.names("adapters")
    if kind not in known:
        raise AdapterSpecError(
            f"no adapter is called {kind!r}{registry.nearest(str(kind), known)}; known: {', '.join(known)}"
        )
    adapter: Adapter = registry.find("adapters", kind)(given.get("configuration"))
    return adapter


def nested(kind: str, spec: Any) -> Pipeline:
    """The pipeline of an adapter that is made of others; what fails in it fails the row that the adapter works on."""
    try:
        pipeline = Pipeline.of(spec)
    except AdapterSpecError as error:
        raise type(error)(f"{kind}: {error}") from None
    if pipeline.on_error != "abort":
        raise AdapterSpecError(f"{kind}: only the outermost pipeline has onError; leave it out here")
    return pipeline


def row_name(row: Any, place: int) -> str:
    """What messages call a row: its `_index_`, or its place in the stream."""
    index = row.get(INDEX) if isinstance(row, Mapping) else None
    return f"row {place}" if index is None else f"{INDEX} {index}"


_WAYS = ("abort", "skip", "default")
_REASONS = 100


def _created(adapters: Iterable[Adapter | Mapping[str, Any]]) -> tuple[Adapter, ...]:
    if isinstance(adapters, str | Mapping) or not isinstance(adapters, Iterable):
        told = repr(adapters) if adapters else "empty"
        raise AdapterSpecError(f"a pipeline is {told}; give a list of adapters")
    made, faults, specs = [], [], list(adapters)
    for number, spec in enumerate(specs, 1):
        try:
            made.append(create(spec))
        except AdapterSpecError as error:
            faults.append(type(error)(f"step {number}: {error}") if len(specs) > 1 else error)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise AdapterSpecError("\n".join(map(str, faults)))
    return tuple(made)


def _step(adapter: Adapter, where: str) -> Through:
    adapt, of_objects = adapter.adapt, adapter.of_objects

    def step(row: Any) -> Sequence[Row]:
        try:
            return adapt(row) if type(row) is dict or not of_objects else adapt(_object(row))
        except AdapterError as error:
            error.add_place(where)
            raise
        except RecursionError:
            raise AdapterError(f"{where}: the row is nested too deeply") from None

    return step


def _in_turn(steps: Sequence[Through]) -> Through:
    if len(steps) == 1:
        return steps[0]

    def through(row: Any) -> Sequence[Row]:
        made: Sequence[Row] = (row,)
        for step in steps:
            made = step(made[0]) if len(made) == 1 else [new for old in made for new in step(old)]
        return made

    return through


def _object(row: Any) -> Row:
    if isinstance(row, Mapping):
        return dict(row)
    raise WrongType(f"the row is {kind_of(row)}; an adapter works on objects")
