"""Where evaluations are kept: in memory, or below a folder as `evaluations/<id>.json` and, of all examples together,
`evaluations/<id>/results.jsonl`. What the SDKs wrote, a file for each example, is read as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from evaluand.interop.pharia.domain import (
    Evaluation,
    EvaluationOverview,
    ExampleEvaluation,
    FailedExampleEvaluation,
    PartialEvaluationOverview,
    Refused,
    Unknown,
    new_id,
)
from evaluand.interop.pharia.files import (
    JoinedRows,
    Rows,
    SdkRows,
    file_name,
    heads,
    json_text,
    place,
    read_text,
    replace,
    sdk_place,
)
from evaluand.interop.pharia.typed import reader


class EvaluationRepository(ABC):
    """Keeps evaluations: a head, and for each example a result."""

    def initialize_evaluation(self) -> str:
        """An id for a new evaluation."""
        return new_id()

    @abstractmethod
    def store_evaluation_overview(self, evaluation_overview: EvaluationOverview) -> None:
        """Keeps the head of an evaluation; with it the evaluation is whole."""

    @abstractmethod
    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None:
        """The head of an evaluation."""

    @abstractmethod
    def evaluation_overview_ids(self) -> Sequence[str]:
        """The ids of all evaluations, sorted."""

    @abstractmethod
    def store_example_evaluation(self, example_evaluation: ExampleEvaluation[Evaluation]) -> None:
        """Keeps the result of an example; a later one takes the place of an earlier one."""

    @abstractmethod
    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> ExampleEvaluation[Evaluation] | ExampleEvaluation[FailedExampleEvaluation] | None:
        """The result of an example; None where there is none.

        Raises:
            Unknown: there is no such evaluation.
        """

    @abstractmethod
    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation] | ExampleEvaluation[FailedExampleEvaluation]]:
        """The results, in the order of the examples' ids.

        Raises:
            Unknown: there is no such evaluation.
        """

    def evaluation_overviews(self) -> Iterable[EvaluationOverview]:
        """The heads of all evaluations, in the order of their ids."""
        for id in self.evaluation_overview_ids():
            found = self.evaluation_overview(id)
            if found is not None:
                yield found

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
    """Keeps evaluations that wait for labels, too."""

    @abstractmethod
    def store_partial_evaluation_overview(self, partial_evaluation_overview: PartialEvaluationOverview) -> None:
        """Keeps the head of an evaluation that waits for labels."""

    @abstractmethod
    def partial_evaluation_overview(self, partial_evaluation_id: str) -> PartialEvaluationOverview | None:
        """The head of an evaluation that waits, or waited, for labels."""

    @abstractmethod
    def partial_evaluation_overview_ids(self) -> Sequence[str]:
        """The ids of all evaluations that wait, or waited, for labels; sorted."""

    def delete_example_evaluation(self, evaluation_id: str, example_id: str) -> None:
        """Forgets the result of an example, whose label was taken back."""
        raise Refused(f"{type(self).__name__} cannot take back a result; give it delete_example_evaluation")

    def partial_evaluation_overviews(self) -> Iterable[PartialEvaluationOverview]:
        """The heads of all evaluations that wait, or waited, for labels."""
        for id in self.partial_evaluation_overview_ids():
            found = self.partial_evaluation_overview(id)
            if found is not None:
                yield found


class InMemoryEvaluationRepository(EvaluationRepository):
    """Keeps evaluations as long as it lives."""

    def __init__(self) -> None:
        self._overviews: dict[str, EvaluationOverview] = {}
        self._results: dict[str, dict[str, ExampleEvaluation[Any]]] = {}

    def store_evaluation_overview(self, overview: EvaluationOverview) -> None:
        self._overviews[overview.id] = overview

    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None:
        return self._overviews.get(evaluation_id)

    def evaluation_overview_ids(self) -> Sequence[str]:
        return sorted(self._overviews)

    def store_example_evaluation(self, evaluation: ExampleEvaluation[Evaluation]) -> None:
        kept = self._results.setdefault(evaluation.evaluation_id, {})
        kept[evaluation.example_id] = evaluation

    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> ExampleEvaluation[Evaluation] | ExampleEvaluation[FailedExampleEvaluation] | None:
        return self._kept(evaluation_id).get(example_id)

    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation] | ExampleEvaluation[FailedExampleEvaluation]]:
        return [result for _, result in sorted(self._kept(evaluation_id).items())]

    def _kept(self, evaluation_id: str) -> dict[str, ExampleEvaluation[Any]]:
        if evaluation_id not in self._overviews and evaluation_id not in self._results:
            raise _unknown(evaluation_id)
        return self._results.get(evaluation_id, {})


class AsyncInMemoryEvaluationRepository(InMemoryEvaluationRepository, AsyncEvaluationRepository):
    """Keeps evaluations as long as it lives, those that wait for labels too."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[str, PartialEvaluationOverview] = {}

    def store_partial_evaluation_overview(self, overview: PartialEvaluationOverview) -> None:
        self._waiting[overview.id] = overview

    def partial_evaluation_overview(self, evaluation_id: str) -> PartialEvaluationOverview | None:
        return self._waiting.get(evaluation_id)

    def partial_evaluation_overview_ids(self) -> Sequence[str]:
        return sorted(self._waiting)

    def delete_example_evaluation(self, evaluation_id: str, example_id: str) -> None:
        self._kept(evaluation_id).pop(example_id, None)


class FileEvaluationRepository(EvaluationRepository):
    """Keeps evaluations below a folder.

    Args:
        root_directory: the folder; made if it is not there.
    """

    def __init__(self, root_directory: Path) -> None:
        self._folder = Path(root_directory) / "evaluations"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._rows: dict[str, Rows] = {}
        self._theirs: dict[Path, SdkRows] = {}

    def store_evaluation_overview(self, overview: EvaluationOverview) -> None:
        path = self._folder / f"{file_name(overview.id)}.json"
        replace(path, json_text(overview, indent=2))
        self._own_rows(overview.id).close()

    def evaluation_overview(self, evaluation_id: str) -> EvaluationOverview | None:
        text = read_text(place(self._folder, evaluation_id, ".json"))
        return None if text is None else EvaluationOverview.model_validate_json(text)

    def evaluation_overview_ids(self) -> Sequence[str]:
        return heads(self._folder, ".json")

    def store_example_evaluation(self, evaluation: ExampleEvaluation[Evaluation]) -> None:
        result = evaluation.result
        rows = self._own_rows(evaluation.evaluation_id)
        rows.append(evaluation.example_id, json_text(result), failed=isinstance(result, FailedExampleEvaluation))

    def example_evaluation(
        self, evaluation_id: str, example_id: str, evaluation_type: type[Evaluation]
    ) -> ExampleEvaluation[Evaluation] | ExampleEvaluation[FailedExampleEvaluation] | None:
        row = self._results(evaluation_id).get(example_id)
        return None if row is None else _result(evaluation_id, row, evaluation_type)

    def example_evaluations(
        self, evaluation_id: str, evaluation_type: type[Evaluation]
    ) -> Sequence[ExampleEvaluation[Evaluation] | ExampleEvaluation[FailedExampleEvaluation]]:
        return [_result(evaluation_id, row, evaluation_type) for row in self._results(evaluation_id)]

    def _own_rows(self, evaluation_id: str) -> Rows:
        if evaluation_id not in self._rows:
            path = self._folder / file_name(evaluation_id) / "results.jsonl"
            self._rows.setdefault(evaluation_id, Rows(path))
        return self._rows[evaluation_id]

    def _results(self, evaluation_id: str) -> Rows | JoinedRows:
        own, theirs = self._own_rows(evaluation_id), sdk_place(self._folder, evaluation_id)
        if theirs.is_dir():
            return JoinedRows(own, self._theirs.setdefault(theirs, SdkRows(theirs, _row_of)))
        if own.path.is_file():
            return own
        if self.evaluation_overview(evaluation_id) is None:
            raise _unknown(evaluation_id)
        return own


class AsyncFileEvaluationRepository(FileEvaluationRepository, AsyncEvaluationRepository):
    """Keeps evaluations below a folder, those that wait for labels too."""

    def store_partial_evaluation_overview(self, overview: PartialEvaluationOverview) -> None:
        path = self._folder / f"{file_name(overview.id)}.partial_json"
        replace(path, json_text(overview, indent=2))

    def partial_evaluation_overview(self, evaluation_id: str) -> PartialEvaluationOverview | None:
        text = read_text(place(self._folder, evaluation_id, ".partial_json"))
        return None if text is None else PartialEvaluationOverview.model_validate_json(text)

    def partial_evaluation_overview_ids(self) -> Sequence[str]:
        return heads(self._folder, ".partial_json")

    def delete_example_evaluation(self, evaluation_id: str, example_id: str) -> None:
        self._own_rows(evaluation_id).take_back(example_id)


def _row_of(content: dict[str, Any]) -> dict[str, Any]:
    """The row that a file of the SDKs stands for, which holds the result as text."""
    value = from_json(content["json_result"])
    return {"example_id": content["example_id"], "failed": content["is_exception"], "value": value}


def _result(evaluation_id: str, row: dict[str, Any], evaluation_type: Any) -> ExampleEvaluation[Any]:
    type_ = FailedExampleEvaluation if row["failed"] else evaluation_type
    result = reader(type_).validate_python(row["value"])
    return ExampleEvaluation(evaluation_id=evaluation_id, example_id=row["example_id"], result=result)


def _unknown(id: str) -> Unknown:
    return Unknown(f"this repository has no evaluation {id!r}")
