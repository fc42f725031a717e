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
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from evaluand.core import registry
from evaluand.core.errors import kind_of
from evaluand.data.adapters.base.faults import AdapterError, AdapterSpecError, WrongType
from evaluand.data.adapters.base.options import check_json, read_options

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

    @property
    def spec(self) -> dict[str, Any]:
        """The kind and its configuration, as `create_adapter` reads them."""
        return {"kind": self.kind, "configuration": self.configuration}

    def __call__(self, stream: Iterable[Row]) -> Adapted:
        """The new rows of a stream of rows."""
        return Adapted(make_step(self.adapt, self.kind, objects_only=self.objects_only), stream, Counts())

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
        raise AdapterSpecError(
            f"no adapter is called {kind!r}{registry.nearest(str(kind), known)}; known: {', '.join(known)}"
        )
    adapter: Adapter = registry.find("adapters", kind)(options.get("configuration"))
    return adapter


Row = dict[str, Any]
Step = Callable[[Any], Sequence[Row]]

INDEX: Final = "_index_"


def make_step(adapt: Step, name: str, *, objects_only: bool) -> Step:
    """An adapter's `adapt` whose errors name the adapter.

    Args:
        name: the adapter's kind, with its place in a pipeline of several.
        objects_only: refuse rows that are not objects before they reach the adapter.
    """

    def step(row: Any) -> Sequence[Row]:
        try:
            return adapt(row) if type(row) is dict or not objects_only else adapt(_as_object(row))
        except AdapterError as error:
            error.add_place(name)
            raise
        except RecursionError:
            raise AdapterError(f"{name}: the row is nested too deeply") from None

    return step


def chain_steps(steps: Sequence[Step]) -> Step:
    """One step that applies several in order, each to every row that the step before produced."""
    if len(steps) == 1:
        return steps[0]

    def apply(row: Any) -> Sequence[Row]:
        rows: Sequence[Row] = (row,)
        for step in steps:
            rows = step(rows[0]) if len(rows) == 1 else [new for old in rows for new in step(old)]
        return rows

    return apply


def row_name(row: Any, place: int) -> str:
    """How messages name a row: by its `_index_`, or by its place in the stream."""
    index = row.get(INDEX) if isinstance(row, Mapping) else None
    return f"row {place}" if index is None else f"{INDEX} {index}"


def _as_object(row: Any) -> Row:
    if isinstance(row, Mapping):
        return dict(row)
    raise WrongType(f"the row is {kind_of(row)}; an adapter works on objects")


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
    """The rows that a pipeline produces from a stream, with counts so far.

    Args:
        apply: the new rows of one row.
        counts: counts to continue.
        on_error: what happens to a row that cannot be transformed, as in `Pipeline`.
        default: the replacement row, with `on_error="default"`.
    """

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
                rows = self._replace(str(error))
            counts.made += len(rows)
            yield rows

    def _replace(self, reason: str) -> Sequence[Row]:
        """The rows that replace a failed one."""
        reasons = self.counts.reasons
        if reason in reasons or len(reasons) < _MAX_REASONS:
            reasons[reason] += 1
        if self._default is None:
            self.counts.skipped += 1
            return ()
        self.counts.defaulted += 1
        return (dict(copy.deepcopy(self._default)),)
