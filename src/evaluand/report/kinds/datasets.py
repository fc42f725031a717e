"""Datasets, as they are shown and written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from evaluand.data.dataset import Dataset
from evaluand.data.kind import DATASETS
from evaluand.report.facts.base import Facts
from evaluand.report.facts.run import dataset_facts
from evaluand.report.flat_rows import read_dataset
from evaluand.report.kinds.base import Choice, KindView
from evaluand.report.terminal.artifact import dataset_body
from evaluand.store.store import Store

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType


class DatasetView(KindView):
    """A dataset: roles, columns and examples."""

    name = DATASETS
    takes_where = True

    def open(self, store: Store, id: str) -> Dataset:
        return Dataset.stored(store, id)

    def recount(self, store: Store, id: str) -> tuple[str, object]:
        dataset = self.open(store, id)
        return dataset.compute_digest(), {"examples": len(dataset)}

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        dataset = self.open(store, id)
        return dataset_facts(dataset if choice.where is None else dataset.where(choice.where), choice.examples)

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        return dataset_body(facts)

    def tables(self, artifact: Any) -> list[str]:
        return ["examples"]

    def rows(self, artifact: Any, table: str) -> Iterator[pa.RecordBatch]:
        return read_dataset(artifact)

    def dataset(self, artifact: Any) -> Dataset | None:
        return artifact  # type: ignore[no-any-return]
