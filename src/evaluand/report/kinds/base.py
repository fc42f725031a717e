"""What lists, pages, exports and checks ask of a kind of artifact, and what they get if it says nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from evaluand.core.errors import Fault
from evaluand.engine.keyed_work import Artifact
from evaluand.report.facts.base import Facts
from evaluand.store.store import Manifest, Store

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType

    from evaluand.data.dataset import Dataset
    from evaluand.evaluation.evaluator import Evaluation


@dataclass(frozen=True)
class Choice:
    """Which rows of an artifact are shown.

    Attributes:
        examples: how many.
        failed: only those that failed or have no score.
        index: only those of the example with this `_index_`.
        below: only answers scored below this.
        lowest: the lowest scores first.
        against: only rows that this evaluation grades differently.
        scorers: only scores of these; of all if there are none.
        where: only those that match this condition, see `RowFilter`.
    """

    examples: int = 0
    failed: bool = False
    index: int | None = None
    below: float | None = None
    lowest: bool = False
    against: Evaluation | None = None
    scorers: Sequence[str] = ()
    where: str | None = None


class KindView:
    """How one kind of artifact is opened, recounted, shown and written.

    A kind overrides what it has; the rest is what can be said of any artifact.

    Attributes:
        name: the kind.
        takes_where: whether a condition can choose from its rows.
        is_table: whether it is exported as tables.
        lacks: what it has none of if it has no table.
        made: what stands before its origins.
        notes_stops: whether `show` adds that a run was stopped early.
        sums_usage: whether `show` sums what its rows have used.
        notebook: `module:function` that writes it as HTML; it is loaded where a notebook asks.
    """

    name: str
    takes_where = False
    is_table = True
    lacks = "tables"
    made = "made from"
    notes_stops = True
    sums_usage = True
    notebook = ""

    def open(self, store: Store, id: str) -> Any:
        """The artifact."""
        return type(self.name, (Artifact,), {"kind": self.name})(store, id)

    def recount(self, store: Store, id: str) -> tuple[str, object] | None:
        """The digest and the counts of what is stored, as the manifest must state them; None to check files alone."""
        return None

    def find_faults(self, store: Store, manifest: Manifest) -> Iterable[Fault]:
        """The faults of an artifact of which tables, digest and counts are sound."""
        return ()

    def find_open_faults(self, store: Store, id: str) -> Iterable[Fault]:
        """The faults of an open artifact."""
        return ()

    # shown

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        """What a finished artifact holds.

        Args:
            head: what `show` says of any artifact: its names, origins and uses.
        """
        return {}

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        """The facts in a terminal."""
        return iter(())

    def describe(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """What was asked, in lines with a name."""
        return iter(())

    def progress(self, store: Store, manifest: Manifest) -> Iterator[Facts]:
        """How far each step of the work on an open artifact is: its label, how many rows are done, and of how many."""
        return iter(())

    def to_html(self, artifact: Any) -> str | None:
        """The artifact in a notebook."""
        return resolve_name(self.notebook)(artifact) if self.notebook else None

    # written

    def tables(self, artifact: Any) -> list[str]:
        """The names of the tables that can be exported, the default first."""
        return [*artifact.manifest["tables"]]

    def rows(self, artifact: Any, table: str) -> Iterator[pa.RecordBatch]:
        """The rows of a table as flat batches, at least one, possibly empty."""
        return iter(artifact.store.read(self.name, artifact.id, table))

    def statuses(self, table: str) -> Sequence[str]:
        """The statuses that rows of a table may have; none if they have no status."""
        return ()

    def dataset(self, artifact: Any) -> Dataset | None:
        """The dataset whose columns stand beside the rows under other names; None without one."""
        return None


def read_lane(store: Store, manifest: Manifest, name: str, label: str, slots: int) -> Facts:
    """How many rows of a lane of the journal of an open artifact are done."""
    with closing(store.lane(manifest["kind"], manifest["id"], name, slots)) as lane:
        lane.refresh()
        return {"label": label, "done": lane.n_done, "total": slots}
