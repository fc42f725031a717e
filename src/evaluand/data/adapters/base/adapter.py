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
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from evaluand.core import registry
from evaluand.data.adapters.base.adapted import Adapted, Counts
from evaluand.data.adapters.base.apply import Row, make_step
from evaluand.data.adapters.base.faults import AdapterSpecError
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
