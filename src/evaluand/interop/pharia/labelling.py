"""Evaluation that waits for people: outputs are written to a file to be labelled, and read back when they are.

The file has one line of JSON for each example: what the person is to see, and `label`, null until it is given. Lines
may be labelled in any order and by any tool, and results retrieved as often as wanted: each time those count that have
a label by then.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from evaluand.errors import DataError, Fault
from evaluand.files import replaced
from evaluand.interop.pharia.datasets import DatasetRepository
from evaluand.interop.pharia.domain import (
    Evaluation,
    EvaluationOverview,
    Example,
    ExampleEvaluation,
    ExpectedOutput,
    FailedExampleEvaluation,
    PartialEvaluationOverview,
    SerializableDict,
    SuccessfulExampleOutput,
    Unknown,
    told,
    utc_now,
)
from evaluand.interop.pharia.evaluations import AsyncEvaluationRepository
from evaluand.interop.pharia.evaluator import EvaluatorBase
from evaluand.interop.pharia.files import file_name
from evaluand.interop.pharia.logic import EvaluationLogicBase
from evaluand.interop.pharia.runs import RunRepository
from evaluand.labelling import filled_in
from evaluand.task import Input, Output
from evaluand.typed import adapter_of


class LabellingLogic(EvaluationLogicBase[Input, Output, ExpectedOutput, Evaluation]):
    """What people see of an example, and what their label means."""

    @abstractmethod
    def to_record(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> SerializableDict:
        """What a person sees of an example.

        Args:
            example: the example.
            output: of each run, in the order in which the runs were given.
        """

    def from_label(self, label: Any, evaluation_type: type[Evaluation]) -> Evaluation:
        """The result that a label stands for; by default the label is the result, as JSON.

        Raises:
            ValueError: the label is none; it is then a failed result.
        """
        return adapter_of(evaluation_type).validate_python(label)  # type: ignore[no-any-return]


class AsyncEvaluator(EvaluatorBase[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates runs by labels that are given later; see `EvaluatorBase` for the rest of what it is made of.

    Overwrite `submit` and `retrieve` for a labelling service.

    Args:
        evaluation_repository: where the results are kept.
        evaluation_logic: what people see, and what their labels mean.
        labelling_folder: where the files to be labelled are written.
    """

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: AsyncEvaluationRepository,
        description: str,
        evaluation_logic: LabellingLogic[Input, Output, ExpectedOutput, Evaluation],
        labelling_folder: Path | str = "labelling",
    ) -> None:
        super().__init__(dataset_repository, run_repository, evaluation_repository, description, evaluation_logic)
        self._labelling, self._waiting = evaluation_logic, evaluation_repository
        self._folder = Path(labelling_folder)

    def submit(
        self,
        *run_ids: str,
        num_examples: int | None = None,
        dataset_name: str | None = None,
        abort_on_error: bool = False,
        skip_example_on_any_failure: bool = True,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> PartialEvaluationOverview:
        """Writes the file to be labelled; see `labelling_file`.

        Args:
            run_ids: the runs, all of one dataset; people see their outputs in this order.
            num_examples: only so many, of the smallest ids that can be labelled.
            dataset_name: what the file is about, for people; stands behind the description.
            abort_on_error: raise what `to_record` raises; otherwise that is the example's result.
            skip_example_on_any_failure: leave out examples that any run failed on or has not.
            labels: for finding the evaluation.
            metadata: anything known of it.

        Returns:
            The head of what waits; its id is that of the evaluation.

        Raises:
            Unknown: there is no such run.
            Refused: the runs cannot be evaluated together.
        """
        runs = self._heads(run_ids)
        start, id = utc_now(), self._waiting.initialize_evaluation()
        evaluable = self._evaluable(runs, num_examples, skip_example_on_any_failure)
        lines = [self._line(example, outputs, abort_on_error) for example, outputs in evaluable]
        self._write(id, lines)
        configuration = {
            "num_examples": num_examples,
            "skip_example_on_any_failure": skip_example_on_any_failure,
        }
        overview = PartialEvaluationOverview(
            id=id,
            start_date=start,
            submitted_evaluation_count=sum("error" not in line for line in lines),
            **self._head(runs, evaluable, dataset_name, labels, metadata, configuration),
        )
        self._waiting.store_partial_evaluation_overview(overview)
        return overview

    def labelling_file(self, partial_evaluation_id: str) -> Path:
        """The file to be labelled: give every line's `label` its value."""
        return self._folder / f"{file_name(partial_evaluation_id)}.jsonl"

    def import_labels(self, partial_evaluation_id: str, path: Path | str) -> None:
        """Takes over labels from another file of the same form, such as one that came back from several people.

        Raises:
            DataError: a line is not of this form, or of no example that was submitted; tells each. Nothing is taken.
        """
        submitted = filled_in([self.labelling_file(partial_evaluation_id)], _line)
        lines = {line["example_id"]: dict(line) for line in submitted}
        faults = []
        for line in filled_in([Path(path)], _line):
            if line["example_id"] not in lines:
                faults.append(Fault(str(path), f"example {line['example_id']!r} was not submitted"))
            elif line["label"] is not None:
                lines[line["example_id"]]["label"] = line["label"]
        if faults:
            raise DataError(faults)
        self._write(partial_evaluation_id, list(lines.values()))

    def retrieve(self, partial_evaluation_id: str) -> EvaluationOverview:
        """The evaluation by the labels that there are; retrieved again, by those that there are then.

        Its head counts examples without a label among those skipped. A label that was taken back takes its result
        with it.

        Raises:
            Unknown: nothing of that id was submitted here.
            DataError: the file cannot be read.
        """
        waiting = self._waiting.partial_evaluation_overview(partial_evaluation_id)
        if waiting is None:
            raise Unknown(f"this repository has nothing submitted as {partial_evaluation_id!r}")
        counts = {True: 0, False: 0, None: 0}
        kept_before = self._kept(partial_evaluation_id)
        for line in filled_in([self.labelling_file(partial_evaluation_id)], _line):
            result = self._result(line)
            failed = None if result is None else isinstance(result, FailedExampleEvaluation)
            counts[failed] += 1
            if result is None:
                if line["example_id"] in kept_before:
                    self._waiting.delete_example_evaluation(partial_evaluation_id, line["example_id"])
            else:
                kept: ExampleEvaluation[Any] = ExampleEvaluation(
                    evaluation_id=partial_evaluation_id, example_id=line["example_id"], result=result
                )
                self._waiting.store_example_evaluation(kept)
        shared = waiting.model_dump(exclude={"submitted_evaluation_count", "run_overviews", "skipped_example_count"})
        overview = EvaluationOverview(
            **shared,
            run_overviews=waiting.run_overviews,
            end_date=utc_now(),
            successful_evaluation_count=counts[False],
            failed_evaluation_count=counts[True],
            skipped_example_count=(waiting.skipped_example_count or 0) + counts[None],
        )
        self._waiting.store_evaluation_overview(overview)
        return overview

    def _kept(self, id: str) -> set[str]:
        """The examples that have a result from before."""
        try:
            return {each.example_id for each in self._waiting.example_evaluations(id, Any)}
        except Unknown:
            return set()

    def _line(
        self, example: Example[Any, Any], outputs: list[SuccessfulExampleOutput[Any]], abort_on_error: bool
    ) -> dict[str, Any]:
        line: dict[str, Any] = {"example_id": example.id, "record": None, "label": None}
        try:
            return line | {"record": self._labelling.to_record(example, *outputs)}
        except Exception as error:
            if abort_on_error:
                raise
            return line | {"error": told(error, stack_trace=False)}

    def _write(self, id: str, lines: list[dict[str, Any]]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with replaced(self.labelling_file(id)) as file:
            file.writelines(to_json(line) + b"\n" for line in lines)

    def _result(self, line: Mapping[str, Any]) -> Any:
        """The result that a line stands for; None where it waits for its label."""
        if "error" in line:
            return FailedExampleEvaluation(error_message=line["error"])
        if line["label"] is None:
            return None
        try:
            return self._labelling.from_label(line["label"], self.evaluation_type())
        except Exception as error:
            return FailedExampleEvaluation.from_exception(error)


def _line(row: Mapping[str, Any]) -> Mapping[str, Any]:
    if not (isinstance(row.get("example_id"), str) and "label" in row):
        raise DataError("not a line with the keys example_id, record and label")
    return row
