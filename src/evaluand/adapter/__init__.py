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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from evaluand import registry
from evaluand.adapter.faults import AdapterError, AdapterSpecError, WrongType
from evaluand.adapter.options import options
from evaluand.errors import with_article

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]

INDEX = "_index_"


class Adapter(ABC):
    """Makes new rows of a row; a kind implements `adapt`.

    Args:
        configuration: what the kind asks for; it is copied.

    Raises:
        AdapterSpecError: the configuration is not what the kind asks for; all of it at once.
    """

    kind: ClassVar[str]

    def __init__(self, configuration: Any = None) -> None:
        self.configuration = copy.deepcopy(configuration)

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
        return {"kind": self.kind, "configuration": copy.deepcopy(self.configuration)}

    def __call__(self, stream: Iterable[Row]) -> Adapted:
        return Pipeline([self])(stream)

    def __repr__(self) -> str:
        return f"{self.kind}({self.configuration!r})"


class Pipeline:
    """Adapters one after the other.

    Args:
        adapters: adapters, or their specs.
        on_error: what becomes of a row that cannot be transformed: `abort` raises, `skip` leaves it out, `default`
            puts another in its place. The last two are counted.
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
        self.on_error, self.default = on_error, copy.deepcopy(default)
        self._check()

    @classmethod
    def of(cls, spec: Any) -> Self:
        """A pipeline from its spec: a list of adapters' specs, one of them, or an object with `adapters`.

        Raises:
            AdapterSpecError: it is none of these.
        """
        if isinstance(spec, Mapping) and "kind" not in spec:
            given = options("a pipeline", spec, required=("adapters",), optional=("onError", "default"))
            return cls(given["adapters"], on_error=given.get("onError", "abort"), default=given.get("default"))
        return cls([spec] if isinstance(spec, Mapping) else spec)

    @property
    def spec(self) -> Any:
        """What `of` reads: a list where every row must pass."""
        adapters = [adapter.spec for adapter in self.adapters]
        if self.on_error == "abort":
            return adapters
        told = {"adapters": adapters, "onError": self.on_error}
        return told if self.default is None else told | {"default": copy.deepcopy(self.default)}

    def __call__(self, stream: Iterable[Row]) -> Adapted:
        return Adapted(self, stream)

    def adapt(self, row: Row, place: int = 0) -> Sequence[Row]:
        """The rows made of one; `place` says which row of the stream it is, for messages.

        Raises:
            AdapterError: names the adapter, its place in the pipeline and the row.
        """
        made: Sequence[Row] = (row,)
        number = 0
        try:
            for number, adapter in enumerate(self.adapters):  # noqa: B007 - the message tells how far it came
                if len(made) == 1:
                    (only,) = made
                    made = adapter.adapt(only if type(only) is dict else _object(only))
                else:
                    made = [new for old in made for new in adapter.adapt(_object(old))]
        except AdapterError as error:
            raise type(error)(f"{self._where(number)}: {row_name(row, place)}: {error}") from None
        return made

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """A whole batch at once, or None where it must go row by row: an adapter, or a row, asks for it."""
        made: pa.RecordBatch | None = batch
        for adapter in self.adapters:
            if made is None:
                return None
            made = adapter.columns(made)
        return made

    def _where(self, number: int) -> str:
        kind = self.adapters[number].kind
        return kind if len(self.adapters) == 1 else f"{kind} (step {number + 1} of {len(self.adapters)})"

    def _check(self) -> None:
        faults = [
            f"{self._where(i)} must be the last adapter of a pipeline"
            for i, adapter in enumerate(self.adapters[:-1])
            if getattr(adapter, "last", False)
        ]
        if self.on_error not in _WAYS:
            faults.append(f"onError is {self.on_error!r}; give one of {', '.join(_WAYS)}")
        elif (self.on_error == "default") != (self.default is not None):
            faults.append("default: give the row that takes a failed one's place, and onError: default with it")
        elif self.default is not None and not isinstance(self.default, Mapping):
            faults.append(f"default is {with_article(type(self.default).__name__)}; give an object")
        if faults:
            raise AdapterSpecError("\n".join(faults))


@dataclass
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

    def __init__(self, pipeline: Pipeline, stream: Iterable[Row]) -> None:
        self.counts = Counts()
        self._rows = self._made(pipeline, stream)

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def __next__(self) -> Row:
        return next(self._rows)

    def _made(self, pipeline: Pipeline, stream: Iterable[Row]) -> Iterator[Row]:
        counts = self.counts
        for place, row in enumerate(stream):
            counts.read += 1
            try:
                made = pipeline.adapt(row, place)
            except AdapterError as error:
                if pipeline.on_error == "abort":
                    raise
                made = self._instead(pipeline, str(error).replace(f"{row_name(row, place)}: ", "", 1))
            counts.made += len(made)
            yield from made

    def _instead(self, pipeline: Pipeline, reason: str) -> Sequence[Row]:
        reasons = self.counts.reasons
        if reason in reasons or len(reasons) < _REASONS:
            reasons[reason] += 1
        if pipeline.on_error == "skip":
            self.counts.skipped += 1
            return ()
        self.counts.defaulted += 1
        return (dict(copy.deepcopy(pipeline.default or {})),)


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
    given = options("an adapter", spec, required=("kind",), optional=("configuration",))
    kind, known = given["kind"], registry.names("adapters")
    if kind not in known:
        raise AdapterSpecError(
            f"no adapter is called {kind!r}{registry.nearest(str(kind), known)}; known: {', '.join(known)}"
        )
    adapter: Adapter = registry.find("adapters", kind)(given.get("configuration"))
    return adapter


def row_name(row: Any, place: int) -> str:
    """What messages call a row: its `_index_`, or its place in the stream."""
    index = row.get(INDEX) if isinstance(row, Mapping) else None
    return f"row {place}" if index is None else f"{INDEX} {index}"


_WAYS = ("abort", "skip", "default")
_REASONS = 100


def _created(adapters: Iterable[Adapter | Mapping[str, Any]]) -> tuple[Adapter, ...]:
    if isinstance(adapters, str | Mapping) or not isinstance(adapters, Iterable):
        raise AdapterSpecError(f"a pipeline is {adapters!r}; give a list of adapters")
    made, faults = [], []
    for number, spec in enumerate(adapters):
        try:
            made.append(create(spec))
        except AdapterSpecError as error:
            faults.append((number, error))
    if len(faults) == 1 and not made:
        raise faults[0][1]
    if faults:
        raise AdapterSpecError("\n".join(f"step {number + 1}: {error}" for number, error in faults))
    return tuple(made)


def _object(row: Any) -> Row:
    if isinstance(row, dict):
        return row
    if isinstance(row, Mapping):
        return dict(row)
    raise WrongType(f"is {with_article(type(row).__name__)}; an adapter works on objects")
