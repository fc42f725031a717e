"""Repositories of aggregations: in memory, or in a folder as `aggregations/<id>.json`, as the SDKs write them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path

from evaluand.interop.pharia.backends import FileShelf, MemoryShelf, Shelf
from evaluand.interop.pharia.domain import AggregatedEvaluation, AggregationOverview, read_each
from evaluand.interop.pharia.repository_files import exact_text
from evaluand.interop.pharia.types import read_head


class AggregationRepository(ABC):
    """Stores aggregations, each as one overview."""

    @abstractmethod
    def store_aggregation_overview(self, aggregation_overview: AggregationOverview[AggregatedEvaluation]) -> None:
        """Store an aggregation."""

    @abstractmethod
    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        """The aggregation with this id and this type of statistics, or None."""

    @abstractmethod
    def aggregation_overview_ids(self) -> Sequence[str]:
        """The ids of all aggregations, sorted."""

    def aggregation_overviews(
        self, aggregation_type: type[AggregatedEvaluation]
    ) -> Iterable[AggregationOverview[AggregatedEvaluation]]:
        """All aggregations, in the order of their ids."""
        return read_each(lambda id: self.aggregation_overview(id, aggregation_type), self.aggregation_overview_ids())


class _ShelfAggregations(AggregationRepository):
    """Stores aggregations on a shelf."""

    _shelf: Shelf

    def store_aggregation_overview(self, aggregation_overview: AggregationOverview[AggregatedEvaluation]) -> None:
        self._shelf.put(aggregation_overview.id, exact_text(aggregation_overview, indent=2))

    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        model = AggregationOverview[aggregation_type]  # type: ignore[valid-type]
        return read_head(model, self._shelf.get(aggregation_id), self._shelf.where(aggregation_id))

    def aggregation_overview_ids(self) -> Sequence[str]:
        return self._shelf.ids()


class InMemoryAggregationRepository(_ShelfAggregations):
    """Stores aggregations in memory."""

    def __init__(self) -> None:
        self._shelf = MemoryShelf()


class FileAggregationRepository(_ShelfAggregations):
    """Stores aggregations in a folder, which is created if it does not exist, in the file format of the SDKs."""

    def __init__(self, root_directory: Path) -> None:
        self._shelf = FileShelf(Path(root_directory) / "aggregations")
