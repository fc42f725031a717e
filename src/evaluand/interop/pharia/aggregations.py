"""Where aggregations are kept: in memory, or below a folder as `aggregations/<id>.json`, as the SDKs do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path

from evaluand.interop.pharia.backends import FileShelf, MemoryShelf, Shelf
from evaluand.interop.pharia.domain import AggregatedEvaluation, AggregationOverview
from evaluand.interop.pharia.repository_files import exact_text
from evaluand.interop.pharia.types import read_head


class AggregationRepository(ABC):
    """Keeps aggregations, each of which is one overview."""

    @abstractmethod
    def store_aggregation_overview(self, aggregation_overview: AggregationOverview[AggregatedEvaluation]) -> None:
        """Keeps an aggregation."""

    @abstractmethod
    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        """An aggregation; None where there is none of that id.

        Args:
            aggregation_id: which.
            aggregation_type: what its statistics are.
        """

    @abstractmethod
    def aggregation_overview_ids(self) -> Sequence[str]:
        """The ids of all aggregations, sorted."""

    def aggregation_overviews(
        self, aggregation_type: type[AggregatedEvaluation]
    ) -> Iterable[AggregationOverview[AggregatedEvaluation]]:
        """All aggregations, in the order of their ids."""
        for id in self.aggregation_overview_ids():
            found = self.aggregation_overview(id, aggregation_type)
            if found is not None:
                yield found


class _KeptAggregations(AggregationRepository):
    """Keeps aggregations on a shelf."""

    _shelf: Shelf

    def store_aggregation_overview(self, aggregation_overview: AggregationOverview[AggregatedEvaluation]) -> None:
        self._shelf.put(aggregation_overview.id, exact_text(aggregation_overview, indent=2))

    def aggregation_overview(
        self, aggregation_id: str, aggregation_type: type[AggregatedEvaluation]
    ) -> AggregationOverview[AggregatedEvaluation] | None:
        text = self._shelf.get(aggregation_id)
        if text is None:
            return None
        model = AggregationOverview[aggregation_type]  # type: ignore[valid-type]
        return read_head(model, text, self._shelf.where(aggregation_id))

    def aggregation_overview_ids(self) -> Sequence[str]:
        return self._shelf.ids()


class InMemoryAggregationRepository(_KeptAggregations):
    """Keeps aggregations as long as it lives."""

    def __init__(self) -> None:
        self._shelf = MemoryShelf()


class FileAggregationRepository(_KeptAggregations):
    """Keeps aggregations below a folder, in the SDKs' own files.

    Args:
        root_directory: the folder; made if it is not there.
    """

    def __init__(self, root_directory: Path) -> None:
        self._shelf = FileShelf(Path(root_directory) / "aggregations")
