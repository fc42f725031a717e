"""Repositories of evaluations and of aggregations: in memory, or in a folder.

An evaluation is a file `evaluations/<id>.json` and, for all examples together, `evaluations/<id>/results.jsonl`; the
second results of examples that have several are in `results-2.jsonl`, and so on. The files of the SDKs, one for each
example, are read as well. An aggregation is a file `aggregations/<id>.json`, as the SDKs write it.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import from_json

from evaluand.interop.pharia.backends import MemoryShelf
from evaluand.interop.pharia.domain import (
    AggregatedEvaluation,
    AggregationOverview,
    Evaluation,
    EvaluationOverview,
    ExampleEvaluation,
    FailedExampleEvaluation,
    PartialEvaluationOverview,
    Refused,
    Unknown,
    new_id,
    read_each,
)
from evaluand.interop.pharia.file_systems import FileSystem, FileSystemBasedRepository, LocalFiles, Shelf, open_shelf
from evaluand.interop.pharia.repository_files import Rows, exact_text
from evaluand.interop.pharia.types import read_as, read_head

ROWS: Final = "results"
PARTIAL: Final = ".partial_json"
Result = ExampleEvaluation[Evaluation] | ExampleEvaluation[FailedExampleEvaluation]


class SerializedExampleEvaluation(BaseModel):
    """A result with its value as JSON, for stores that hold texts.

    Attributes:
        evaluation_id: of the evaluation.
        example_id: of the example.
        is_exception: whether the logic failed.
        json_result: the value, or the failure.

    Example:
        >>> result = ExampleEvaluation(evaluation_id="e", example_id="1", result=0.5)
        >>> SerializedExampleEvaluation.from_example_result(result).to_example_result(float) == result
        True
    """

    evaluation_id: str
    example_id: str
    is_exception: bool
    json_result: str

    @classmethod
    def from_example_result(cls, result: Result[Evaluation]) -> SerializedExampleEvaluation:
        """Writes the value of a result as JSON."""
        return cls(
            evaluation_id=result.evaluation_id,
            example_id=result.example_id,
            is_exception=isinstance(result.result, FailedExampleEvaluation),
            json_result=exact_text(result.result).decode(),
        )

    def to_example_result(self, evaluation_type: type[Evaluation]) -> Result[Evaluation]:
        """The result, whose value is read as this type."""
        type_: Any = FailedExampleEvaluation if self.is_exception else evaluation_type
        value = read_as(type_, from_json(self.json_result), f"the result for example {self.example_id}")
        return ExampleEvaluation(evaluation_id=self.evaluation_id, example_id=self.example_id, result=value)


class EvaluationRepository(ABC):
    """Stores evaluations: a head, and a result for each example."""

    def initialize_evaluation(self) -> str:
        """An id for a new evaluation."""
        return new_id()

    @abstractmethod
    def store_evaluation_overview(self, evaluation_overview: EvaluationOverview) -> None:
        """Store the head of an evaluation, which completes it."""

    @abstractmethod
    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None:
        """The head of an evaluation, or None."""

    @abstractmethod
    def evaluation_overview_ids(self) -> Sequence[str]:
        """The ids of all evaluations, sorted."""

    @abstractmethod
    def store_example_evaluation(self, example_evaluation: ExampleEvaluation[Evaluation]) -> None:
        """Store the result of an example; it replaces an earlier one."""

    @abstractmethod
    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> Result[Evaluation] | None:
        """The result of an example, or None.

        Raises:
            Unknown: there is no such evaluation.
        """

    @abstractmethod
    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[Result[Evaluation]]:
        """The results, in the order of the examples' ids.

        Raises:
            Unknown: there is no such evaluation.
        """

    def evaluation_overviews(self) -> Iterable[EvaluationOverview]:
        """The heads of all evaluations, in the order of their ids."""
        return read_each(self.evaluation_overview, self.evaluation_overview_ids())

    def successful_example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation]]:
        """The results of the examples that did not fail."""
        found = self.example_evaluations(evaluation_id, evaluation_type)
        return [each for each in found if not isinstance(each.result, FailedExampleEvaluation)]  # type: ignore[misc]

    def failed_example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[FailedExampleEvaluation]]:
        """The failures."""
        found = self.example_evaluations(evaluation_id, evaluation_type)
        return [each for each in found if isinstance(each.result, FailedExampleEvaluation)]  # type: ignore[misc]


class AsyncEvaluationRepository(EvaluationRepository):
    """Stores evaluations, including those that wait for labels."""

    @abstractmethod
    def store_partial_evaluation_overview(self, partial_evaluation_overview: PartialEvaluationOverview) -> None:
        """Store the head of an evaluation that waits for labels."""

    @abstractmethod
    def partial_evaluation_overview(self, partial_evaluation_id: str) -> PartialEvaluationOverview | None:
        """The head of an evaluation that waits, or waited, for labels."""

    @abstractmethod
    def partial_evaluation_overview_ids(self) -> Sequence[str]:
        """The ids of all evaluations that wait, or waited, for labels; sorted."""

    def delete_example_evaluation(self, evaluation_id: str, example_id: str) -> None:
        """Delete the result of an example whose label was removed."""
        raise Refused(f"{type(self).__name__} cannot delete a result; implement delete_example_evaluation")

    def store_example_results(self, evaluation_id: str, example_id: str, results: Sequence[Any]) -> None:
        """Store the results of an example that has one for each of its records; they replace earlier ones."""
        for result in results:
            row: ExampleEvaluation[Any] = ExampleEvaluation(
                evaluation_id=evaluation_id, example_id=example_id, result=result
            )
            self.store_example_evaluation(row)

    def partial_evaluation_overviews(self) -> Iterable[PartialEvaluationOverview]:
        """The heads of all evaluations that wait, or waited, for labels."""
        return read_each(self.partial_evaluation_overview, self.partial_evaluation_overview_ids())


class _ShelfEvaluations(EvaluationRepository):
    """Stores evaluations on a shelf."""

    _shelf: Shelf

    def store_evaluation_overview(self, overview: EvaluationOverview) -> None:
        self._shelf.put(overview.id, exact_text(overview, indent=2))
        self._shelf.rows(overview.id, ROWS).close()

    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None:
        return read_head(EvaluationOverview, self._shelf.get(evaluation_id), self._shelf.where(evaluation_id))

    def evaluation_overview_ids(self) -> Sequence[str]:
        return self._shelf.ids()

    def store_example_evaluation(self, evaluation: ExampleEvaluation[Evaluation]) -> None:
        result, rows = evaluation.result, self._shelf.rows(evaluation.evaluation_id, ROWS)
        rows.append(evaluation.example_id, exact_text(result), failed=isinstance(result, FailedExampleEvaluation))

    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> Result[Evaluation] | None:
        rows = self._results(evaluation_id)
        row = rows.get(example_id) if rows else None
        return None if row is None else _result(evaluation_id, row, evaluation_type)

    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[Result[Evaluation]]:
        found = [_result(evaluation_id, row, evaluation_type) for row in self._results(evaluation_id) or ()]
        further = [
            _result(evaluation_id, row, evaluation_type)
            for rows in itertools.islice(self._rows_by_place(evaluation_id), 1, None)
            for row in rows
        ]
        return sorted(found + further, key=lambda each: each.example_id) if further else found

    def _rows_by_place(self, evaluation_id: str) -> Iterator[Rows]:
        """The rows with the first result of each example, with its second result, and so on."""
        for place in itertools.count():
            rows = self._shelf.rows(evaluation_id, _rows_name(place))
            if not rows.ids():
                return
            yield rows

    def _results(self, evaluation_id: str) -> Rows | None:
        rows = self._shelf.all_rows(evaluation_id, ROWS)
        if rows is None and not self._has_head(evaluation_id):
            raise Unknown(f"this repository has no evaluation {evaluation_id!r}")
        return rows

    def _has_head(self, evaluation_id: str) -> bool:
        return self._shelf.get(evaluation_id) is not None


class _AsyncShelfEvaluations(_ShelfEvaluations, AsyncEvaluationRepository):
    """Stores evaluations on a shelf, including those that wait for labels."""

    def store_partial_evaluation_overview(self, overview: PartialEvaluationOverview) -> None:
        self._shelf.put(overview.id, exact_text(overview, indent=2), PARTIAL)

    def partial_evaluation_overview(self, evaluation_id: str) -> PartialEvaluationOverview | None:
        where = self._shelf.where(evaluation_id, PARTIAL)
        return read_head(PartialEvaluationOverview, self._shelf.get(evaluation_id, PARTIAL), where)

    def partial_evaluation_overview_ids(self) -> Sequence[str]:
        return self._shelf.ids(PARTIAL)

    def delete_example_evaluation(self, evaluation_id: str, example_id: str) -> None:
        self._shelf.rows(evaluation_id, ROWS).take_back(example_id)

    def _has_head(self, evaluation_id: str) -> bool:
        return super()._has_head(evaluation_id) or self._shelf.get(evaluation_id, PARTIAL) is not None

    def store_example_results(self, evaluation_id: str, example_id: str, results: Sequence[Any]) -> None:
        stored = sum(rows.get(example_id) is not None for rows in self._rows_by_place(evaluation_id))
        for place in range(max(stored, len(results))):
            rows = self._shelf.rows(evaluation_id, _rows_name(place))
            if place < len(results):
                result = results[place]
                rows.append(example_id, exact_text(result), failed=isinstance(result, FailedExampleEvaluation))
            else:
                rows.take_back(example_id)


class InMemoryEvaluationRepository(_ShelfEvaluations):
    """Stores evaluations in memory, results as JSON, so that later changes of an object change no result."""

    def __init__(self) -> None:
        self._shelf = MemoryShelf()


class FileSystemEvaluationRepository(_ShelfEvaluations, FileSystemBasedRepository):
    """Stores evaluations on a file system; see `FileSystemBasedRepository`."""

    def __init__(self, file_system: FileSystem, root_directory: Path) -> None:
        super().__init__(file_system, root_directory)
        self._shelf = open_shelf(file_system, self._root_directory / "evaluations", lambda folder: folder, _parse_row)

    def store_example_evaluation(self, example_evaluation: ExampleEvaluation[Evaluation]) -> None:
        super().store_example_evaluation(example_evaluation)


class FileEvaluationRepository(FileSystemEvaluationRepository):
    """Stores evaluations in a folder, which the first write creates."""

    def __init__(self, root_directory: Path) -> None:
        super().__init__(LocalFiles(), root_directory)


class AsyncInMemoryEvaluationRepository(_AsyncShelfEvaluations, InMemoryEvaluationRepository):
    """Stores evaluations in memory, including those that wait for labels."""


class AsyncFileEvaluationRepository(_AsyncShelfEvaluations, FileEvaluationRepository):
    """Stores evaluations in a folder, including those that wait for labels."""


def _rows_name(place: int) -> str:
    return f"{ROWS}-{place + 1}" if place else ROWS


def _parse_row(content: dict[str, Any]) -> dict[str, Any]:
    """The row of a file of the SDKs, which contains the result as text."""
    value = from_json(content["json_result"])
    return {"example_id": content["example_id"], "failed": content["is_exception"], "value": value}


def _result(evaluation_id: str, row: dict[str, Any], evaluation_type: Any) -> ExampleEvaluation[Any]:
    type_ = FailedExampleEvaluation if row["failed"] else evaluation_type
    result = read_as(type_, row["value"], f"the result of evaluation {evaluation_id} for example {row['example_id']}")
    return ExampleEvaluation(evaluation_id=evaluation_id, example_id=row["example_id"], result=result)


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


class FileSystemAggregationRepository(_ShelfAggregations, FileSystemBasedRepository):
    """Stores aggregations on a file system, in the file format of the SDKs; see `FileSystemBasedRepository`."""

    def __init__(self, file_system: FileSystem, root_directory: Path) -> None:
        super().__init__(file_system, root_directory)
        self._shelf = open_shelf(file_system, self._root_directory / "aggregations")


class FileAggregationRepository(FileSystemAggregationRepository):
    """Stores aggregations in a folder, which the first write creates, in the file format of the SDKs."""

    def __init__(self, root_directory: Path) -> None:
        super().__init__(LocalFiles(), root_directory)
