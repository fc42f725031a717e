"""Adapters: from one shape of JSON-like rows to another, by configuration alone.

The adapters that data pass through are part of what is evaluated. So each is a kind and a JSON configuration, and both
enter the identity of the results:

    {"kind": "ExplodeCollections", "configuration": {"collections": ["text"]}}

An adapter turns one row into any number of rows and sees no other row. It changes neither its configuration nor its
input; parts that a new row shares with its origin are not copied. Some adapters also transform whole Arrow batches,
without an object per row.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, get_args

from evaluand.core import registry
from evaluand.core.errors import kind_of, nearest
from evaluand.data.adapters.base.options import AdapterError, AdapterSpecError, WrongType, check_json, read_options

if TYPE_CHECKING:
    import pyarrow as pa


UPLOAD: Final = "$fileUpload"
"""The only key of a row that is sent as `multipart/form-data`."""


class Adapter(ABC):
    """Turns a row into new rows; a kind implements `adapt`.

    Args:
        configuration: the kind's settings; they are copied.

    Attributes:
        objects_only: whether rows that are not objects are refused before they reach `adapt`.
        last: whether the results are no longer rows, so that the adapter must be the last of a pipeline.

    Raises:
        AdapterSpecError: the configuration is wrong; lists every fault.
    """

    kind: ClassVar[str]
    objects_only: ClassVar[bool] = True
    last: bool = False

    def __init__(self, configuration: Any = None) -> None:
        check_json(self.kind, configuration)
        self._configuration = copy.deepcopy(configuration)

    @property
    def configuration(self) -> Any:
        """A copy of the configuration, so that nobody can change what identifies the results."""
        return copy.deepcopy(self._configuration)

    @abstractmethod
    def adapt(self, row: Row) -> Sequence[Row]:
        """The new rows of one row.

        Raises:
            AdapterError: the row cannot be transformed.
        """

    def adapt_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """The new rows of a whole Arrow batch, or None where it must be transformed row by row."""
        return None

    def __init_subclass__(cls, **options: Any) -> None:
        """A class that adapts rows in its own way does not inherit how its base adapts batches."""
        super().__init_subclass__(**options)
        if "adapt" in vars(cls) and "adapt_batch" not in vars(cls):
            setattr(cls, "adapt_batch", Adapter.adapt_batch)  # noqa: B010 - mypy refuses to assign to a method

    @property
    def spec(self) -> dict[str, Any]:
        """The kind and its configuration, as `create_adapter` reads them."""
        return {"kind": self.kind, "configuration": self.configuration}

    def __call__(self, stream: Iterable[Row]) -> Adapted:
        """The new rows of a stream of rows."""
        return Adapted(partial(adapt_row, self, self.kind), stream, Counts())

    def __repr__(self) -> str:
        return f"{self.kind}({self.configuration!r})"


def create_adapter(spec: Any) -> Adapter:
    """An adapter from its spec, `{"kind": …, "configuration": …}`.

    Raises:
        AdapterSpecError: the kind is unknown (the message suggests the nearest), or its configuration is wrong.

    Example:
        >>> create_adapter({"kind": "Rename", "configuration": {"text": "prompt"}})
        Rename({'text': 'prompt'})
    """
    if isinstance(spec, Adapter):
        return spec
    options = read_options("an adapter", spec, required=("kind",), optional=("configuration",), what="its spec")
    kind, known = options["kind"], registry.names("adapters")
    if kind not in known:
        raise AdapterSpecError(f"no adapter is called {kind!r}{nearest(str(kind), known)}; known: {', '.join(known)}")
    adapter: Adapter = registry.find("adapters", kind)(options.get("configuration"))
    return adapter


Row = dict[str, Any]
Step = Callable[[Any], Sequence[Row]]

INDEX: Final = "_index_"


def adapt_row(adapter: Adapter, name: str, row: Any) -> Sequence[Row]:
    """The new rows of one row; errors name the adapter, and other rows than objects are refused where it needs them."""
    try:
        if adapter.objects_only and type(row) is not dict:
            if not isinstance(row, Mapping):
                raise WrongType(f"the row is {kind_of(row)}; an adapter works on objects")
            row = dict(row)
        return adapter.adapt(row)
    except AdapterError as error:
        error.add_place(name)
        raise
    except RecursionError:
        raise AdapterError(f"{name}: the row is nested too deeply") from None


def row_name(row: Any, place: int) -> str:
    """How messages name a row: by its `_index_`, or by its place in the stream."""
    index = row.get(INDEX) if isinstance(row, Mapping) else None
    return f"row {place}" if index is None else f"{INDEX} {index}"


OnError = Literal["abort", "skip", "default"]

_MAX_REASONS: Final = 100


@dataclass(slots=True)
class Counts:
    """What happened to the rows that entered a pipeline.

    Attributes:
        read: rows that entered.
        made: rows that came out.
        skipped: rows left out because they could not be transformed.
        defaulted: rows replaced by the default row.
        reasons: error message without its row → how often it occurred; the first hundred distinct messages.
    """

    read: int = 0
    made: int = 0
    skipped: int = 0
    defaulted: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class Adapted(Iterator[Row]):
    """The rows that a pipeline produces from a stream, with counts so far; arguments as in `Pipeline`."""

    def __init__(
        self,
        apply: Step,
        stream: Iterable[Row],
        counts: Counts,
        on_error: OnError = "abort",
        default: Mapping[str, Any] | None = None,
    ) -> None:
        self.counts = counts
        self._on_error, self._default = on_error, default
        self._rows = chain.from_iterable(self._adapt(apply, stream))

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def __next__(self) -> Row:
        return next(self._rows)

    def _adapt(self, apply: Step, stream: Iterable[Row]) -> Iterator[Sequence[Row]]:
        counts = self.counts
        for row in stream:
            counts.read += 1
            try:
                rows = apply(row)
            except AdapterError as error:
                if self._on_error == "abort":
                    error.add_place(row_name(row, counts.read - 1))
                    raise
                reason, reasons = str(error), counts.reasons
                if reason in reasons or len(reasons) < _MAX_REASONS:
                    reasons[reason] += 1
                rows = [] if self._default is None else [dict(copy.deepcopy(self._default))]
                counts.skipped, counts.defaulted = counts.skipped + (not rows), counts.defaulted + len(rows)
            counts.made += len(rows)
            yield rows


class Pipeline:
    """Adapters one after the other.

    Args:
        adapters: adapters, or their specs.
        on_error: what happens to a row that cannot be transformed: `abort` raises, `skip` leaves it out, `default`
            replaces it. Skipped and replaced rows are counted. The unit is the row that entered: where an earlier
            adapter has split it and one of its parts fails, none of its parts comes out.
        default: the replacement row, with `on_error="default"`.

    Raises:
        AdapterSpecError: specs are wrong; lists every fault.

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
        on_error: OnError = "abort",
        default: Mapping[str, Any] | None = None,
    ) -> None:
        self.adapters = _create_adapters(adapters)
        self.on_error, self.default = on_error, default
        self._check()
        self.default = copy.deepcopy(default)
        self._names = [self._step_name(i) for i in range(len(self.adapters))]

    @classmethod
    def of(cls, spec: Any) -> Self:
        """A pipeline from its spec: a list of adapters' specs, a single spec, or an object with `adapters`.

        Raises:
            AdapterSpecError: the spec is none of these.
        """
        if isinstance(spec, Mapping) and "kind" not in spec:
            options = read_options(
                "a pipeline", spec, required=("adapters",), optional=("onError", "default"), what="its spec"
            )
            return cls(options["adapters"], on_error=options.get("onError", "abort"), default=options.get("default"))
        return cls([spec] if isinstance(spec, Mapping | Adapter) else spec)

    @property
    def spec(self) -> Any:
        """The spec that `of` reads; just a list where a failing row raises."""
        adapters = [adapter.spec for adapter in self.adapters]
        if self.on_error == "abort":
            return adapters
        spec = {"adapters": adapters, "onError": self.on_error}
        return spec if self.default is None else spec | {"default": copy.deepcopy(self.default)}

    @property
    def last(self) -> bool:
        """Whether the results are no longer rows."""
        return any(adapter.last for adapter in self.adapters)

    def __call__(self, stream: Iterable[Row], counts: Counts | None = None) -> Adapted:
        """The new rows of a stream of rows; give the `counts` of an earlier stream to continue them."""
        counts = Counts() if counts is None else counts
        return Adapted(self.apply, stream, counts, self.on_error, self.default)

    def apply(self, row: Any) -> Sequence[Row]:
        """The new rows of one row; an `AdapterError` names the adapter and its step."""
        rows: Sequence[Row] = (row,)
        for adapter, name in zip(self.adapters, self._names, strict=True):
            if len(rows) == 1:
                rows = adapt_row(adapter, name, rows[0])
            else:
                rows = [new for old in rows for new in adapt_row(adapter, name, old)]
        return rows

    def adapt_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """The new rows of a whole batch, or None where an adapter or a row requires that it goes row by row."""
        adapted = batch if len(set(batch.schema.names)) == batch.num_columns else None
        for adapter in self.adapters:
            if adapted is None:
                return None
            adapted = adapter.adapt_batch(adapted)
        return adapted

    def pieces(
        self, batches: Iterable[pa.RecordBatch], counts: Counts | None = None
    ) -> Iterator[pa.RecordBatch | list[Row]]:
        """The results of each batch of a stream: a batch where it can be transformed whole, else a list of rows.

        Args:
            batches: of a table, `table.to_batches()`; of a Parquet file, `file.iter_batches()`.
            counts: counts to continue; they are the same either way.

        Raises:
            AdapterError: a row cannot be transformed, with `on_error="abort"`.
        """
        from evaluand.data.adapters.base.columns import read_rows  # on use: pyarrow and NumPy

        counts = Counts() if counts is None else counts
        for batch in batches:
            adapted = self.adapt_batch(batch)
            if adapted is None:
                yield list(self(list(read_rows(batch)), counts))
            else:
                counts.read += batch.num_rows
                counts.made += adapted.num_rows
                yield adapted

    def table(self, batches: Iterable[pa.RecordBatch], counts: Counts | None = None) -> pa.Table:
        """The new rows of Arrow batches as one table, each batch transformed whole where possible, else row by row.

        Column types are those of the batches that are transformed whole. Where there are none, or other rows do not
        fit them, types are inferred from the values; objects and columns of several types become JSON texts
        (`evaluand.store.tables.is_json`).

        Raises:
            AdapterError: a row cannot be transformed, with `on_error="abort"`.
            DataError: a result is not a row, or has a value that cannot be stored.

        Example:
            >>> import pyarrow as pa
            >>> batch = pa.RecordBatch.from_pylist([{"text": "hello"}, {"text": "bye"}])
            >>> Pipeline([{"kind": "Rename", "configuration": {"text": "prompt"}}]).table([batch]).to_pylist()
            [{'prompt': 'hello'}, {'prompt': 'bye'}]
        """
        from evaluand.data.adapters.base.columns import build_table  # on use: pyarrow and NumPy

        return build_table(list(self.pieces(batches, counts)))

    def _step_name(self, number: int) -> str:
        kind = self.adapters[number].kind
        return kind if len(self.adapters) == 1 else f"{kind} (step {number + 1} of {len(self.adapters)})"

    def _check(self) -> None:
        faults = [
            f"{self._step_name(i)} must be the last adapter of a pipeline; move it to the end"
            for i, adapter in enumerate(self.adapters[:-1])
            if adapter.last
        ]
        if self.on_error not in get_args(OnError):
            faults.append(f"onError is {self.on_error!r}; give one of {', '.join(get_args(OnError))}")
        elif (self.on_error == "default") != (self.default is not None):
            faults.append('default: give the row that replaces a failed one together with "onError": "default"')
        elif self.default is not None and not isinstance(self.default, Mapping):
            faults.append(f"default is {kind_of(self.default)}; give an object")
        if faults:
            raise AdapterSpecError("\n".join(faults))
        check_json("default", self.default)


def create_inner_pipeline(kind: str, spec: Any) -> Pipeline:
    """The pipeline inside an adapter; a failure in it fails the row that the adapter works on."""
    try:
        pipeline = Pipeline.of(spec)
    except AdapterSpecError as error:
        raise type(error)(f"{kind}: {error}") from None
    if pipeline.on_error != "abort":
        raise AdapterSpecError(f"{kind}: only the outermost pipeline has onError; leave it out here")
    return pipeline


def _create_adapters(specs: Iterable[Adapter | Mapping[str, Any]]) -> tuple[Adapter, ...]:
    if isinstance(specs, str | Mapping) or not isinstance(specs, Iterable):
        found = repr(specs) if specs else "empty"
        raise AdapterSpecError(f"a pipeline is {found}; give a list of adapters")
    adapters, faults, specs = [], [], list(specs)
    for number, spec in enumerate(specs, 1):
        try:
            adapters.append(create_adapter(spec))
        except AdapterSpecError as error:
            faults.append(type(error)(f"step {number}: {error}") if len(specs) > 1 else error)
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise AdapterSpecError("\n".join(map(str, faults)))
    return tuple(adapters)
