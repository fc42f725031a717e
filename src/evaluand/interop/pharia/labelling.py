"""Evaluation by people: writes outputs to a file to be labelled, and reads the labels back.

The file has one line of JSON for each example: what the person sees, and `label`, null until it is labelled. Lines may
be labelled in any order and by any tool. Results can be retrieved any number of times; each time, the lines that have
a label count.
"""

import reprlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from evaluand.core.errors import DataError, plural, warn
from evaluand.core.files.paths import replaced
from evaluand.interop.pharia.datasets import DatasetRepository
from evaluand.interop.pharia.domain import (
    FAILING,
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
    format_exception,
    utc_now,
)
from evaluand.interop.pharia.evaluations import AsyncEvaluationRepository
from evaluand.interop.pharia.evaluator import EvaluatorBase
from evaluand.interop.pharia.logic import EvaluationLogicBase
from evaluand.interop.pharia.repository_files import file_name
from evaluand.interop.pharia.runs import RunRepository
from evaluand.interop.pharia.types import require_head_fields
from evaluand.judges.people.human_labels import filled_in
from evaluand.run.task import Input, Output
from evaluand.run.types import adapter_of


class LabellingLogic(EvaluationLogicBase[Input, Output, ExpectedOutput, Evaluation]):
    """Defines what people see of an example, and what their label means."""

    @abstractmethod
    def to_record(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> SerializableDict:
        """What a person sees of an example and of the output of each run, in the order of the runs."""

    def from_label(self, label: Any, evaluation_type: type[Evaluation]) -> Evaluation:
        """The result for a label; by default the label is the result, as JSON.

        The type defines the valid labels: `Annotated[int, Field(ge=1, le=5)]`, `Literal["good", "bad"]`. True and
        false are neither numbers nor texts.

        Raises:
            ValueError: the label is invalid; it becomes a failed result.
        """
        adapter = adapter_of(evaluation_type)
        try:
            return adapter.validate_json(to_json(label), strict=True)  # type: ignore[no-any-return]
        except ValidationError as error:
            if any(isinstance(each["input"], bool) for each in error.errors()):
                raise
        return adapter.validate_python(label)  # type: ignore[no-any-return]


class AsyncEvaluator(EvaluatorBase[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates runs by labels that people add later; see `EvaluatorBase` for the other arguments.

    Override `submit` and `retrieve` for a labelling service.

    Args:
        evaluation_repository: where to store the results.
        evaluation_logic: what people see, and what their labels mean.
        labelling_folder: where the files to be labelled are written.
    """

    _evaluation_logic: LabellingLogic[Input, Output, ExpectedOutput, Evaluation]
    _evaluation_repository: AsyncEvaluationRepository

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
        """Write the file to be labelled; see `labelling_file`.

        Args:
            run_ids: the runs, all of one dataset; people see their outputs in this order.
            num_examples: at most this many, those with the smallest ids that can be labelled.
            dataset_name: what the file is about, for people; appended to the description.
            abort_on_error: raise what `to_record` raises; otherwise it is stored as the example's failed result.
            skip_example_on_any_failure: leave out examples that any run failed on or lacks.
            labels: for finding the evaluation.
            metadata: further facts to store with it.

        Returns:
            The head of the waiting evaluation, with the id of the evaluation.

        Raises:
            Unknown: there is no such run.
            Refused: the runs cannot be evaluated together.
        """
        require_head_fields(description=dataset_name, labels=labels, metadata=metadata)
        runs = self._load_run_overviews(*run_ids)
        start, id = utc_now(), self._evaluation_repository.initialize_evaluation()
        evaluable = self._retrieve_eval_logic_input(runs, skip_example_on_any_failure, num_examples)
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
            submitted_example_ids=tuple(line["example_id"] for line in lines),
            **self._head(runs, evaluable, dataset_name, labels, metadata, configuration),
        )
        self._evaluation_repository.store_partial_evaluation_overview(overview)
        return overview

    def labelling_file(self, partial_overview_id: str) -> Path:
        """The file to be labelled: replace the `label` of each line."""
        return self._folder / f"{file_name(partial_overview_id)}.jsonl"

    def import_labels(self, partial_overview_id: str, path: Path | str) -> None:
        """Import labels from another file of the same format. An `EvaluandWarning` lists the examples whose label
        is replaced by another.

        Raises:
            Unknown: nothing with this id was submitted here.
            DataError: a line has another format, belongs to no submitted example, or repeats an example; lists each.
                Nothing is imported.
        """
        waiting = self._submitted(partial_overview_id)
        lines = {id: dict(line) for id, line in self._lines(waiting).items()}
        replaced_labels: list[str] = []
        for id, line in _by_example(Path(path), waiting.submitted_example_ids or lines).items():
            if line["label"] is not None:
                if lines.get(id, line)["label"] not in (None, line["label"]):
                    replaced_labels.append(id)
                lines.setdefault(id, {"example_id": id, "record": None})["label"] = line["label"]
        if replaced_labels:
            message = f"{len(replaced_labels)} examples had another label, which is replaced"
            warn(f"{path}: {message}: {reprlib.repr(replaced_labels)}")
        self._write(partial_overview_id, list(lines.values()))

    def retrieve(self, partial_overview_id: str) -> EvaluationOverview:
        """Evaluate by the labels in the file now; may be called again when there are more.

        The head counts examples without a label among those skipped (`unlabelled_example_count`), including those
        whose lines are missing, which an `EvaluandWarning` lists. Removing a label removes its result.

        Raises:
            Unknown: nothing with this id was submitted here.
            DataError: the file cannot be read, or lines belong to no submitted example or repeat one; lists each.
                Nothing is changed.
        """
        waiting = self._submitted(partial_overview_id)
        lines = self._lines(waiting)
        results = {id: self._result(line) for id, line in lines.items()}
        missing = [id for id in waiting.submitted_example_ids or () if id not in lines]
        if missing:
            message = f"{plural(len(missing), 'submitted example')} without a line, counted as not labelled yet"
            warn(f"{self.labelling_file(waiting.id)}: {message}: {reprlib.repr(missing)}")
        for id in self._submitted_ids(waiting.id):
            if results.get(id) is None:
                self._evaluation_repository.delete_example_evaluation(waiting.id, id)
        labelled = {id: result for id, result in results.items() if result is not None}
        for id, result in labelled.items():
            row: ExampleEvaluation[Any] = ExampleEvaluation(evaluation_id=waiting.id, example_id=id, result=result)
            self._evaluation_repository.store_example_evaluation(row)
        unlabelled = len(results) + len(missing) - len(labelled)
        failed = sum(isinstance(result, FailedExampleEvaluation) for result in labelled.values())
        own = {"submitted_evaluation_count", "submitted_example_ids", "run_overviews", "skipped_example_count"}
        overview = EvaluationOverview(
            **waiting.model_dump(exclude=own),
            run_overviews=waiting.run_overviews,
            end_date=utc_now(),
            successful_evaluation_count=len(labelled) - failed,
            failed_evaluation_count=failed,
            skipped_example_count=(waiting.skipped_example_count or 0) + unlabelled,
            unlabelled_example_count=unlabelled,
        )
        self._evaluation_repository.store_evaluation_overview(overview)
        return overview

    def _submitted(self, id: str) -> PartialEvaluationOverview:
        waiting = self._evaluation_repository.partial_evaluation_overview(id)
        if waiting is None:
            raise Unknown(f"this repository has nothing submitted as {id!r}")
        return waiting

    def _lines(self, waiting: PartialEvaluationOverview) -> dict[str, Mapping[str, Any]]:
        return _by_example(self.labelling_file(waiting.id), waiting.submitted_example_ids)

    def _submitted_ids(self, id: str) -> set[str]:
        """The examples that already have a result."""
        try:
            return {each.example_id for each in self._evaluation_repository.example_evaluations(id, Any)}
        except Unknown:
            return set()

    def _line(
        self, example: Example[Any, Any], outputs: list[SuccessfulExampleOutput[Any]], abort_on_error: bool
    ) -> dict[str, Any]:
        line: dict[str, Any] = {"example_id": example.id, "record": None, "label": None}
        try:
            return line | {"record": self._evaluation_logic.to_record(example, *outputs)}
        except FAILING as error:
            if abort_on_error:
                raise
            return line | {"error": format_exception(error, stack_trace=False)}

    def _write(self, id: str, lines: list[dict[str, Any]]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with replaced(self.labelling_file(id)) as file:
            file.writelines(to_json(line) + b"\n" for line in lines)

    def _result(self, line: Mapping[str, Any]) -> Any:
        """The result of a line; None if it waits for its label."""
        if "error" in line:
            return FailedExampleEvaluation(error_message=line["error"])
        if line["label"] is None:
            return None
        try:
            return self._evaluation_logic.from_label(line["label"], self.evaluation_type())
        except FAILING as error:
            return FailedExampleEvaluation.from_exception(error)


def _by_example(path: Path, submitted: Iterable[str] | None) -> dict[str, Mapping[str, Any]]:
    """The lines of a file by example id; any id is accepted if the submitted ids are unknown."""
    known = None if submitted is None else set(submitted)
    lines: dict[str, Mapping[str, Any]] = {}

    def read(row: Mapping[str, Any]) -> None:
        id = row.get("example_id")
        if not (isinstance(id, str) and "label" in row):
            raise DataError("not a line with the keys example_id, record and label")
        if known is not None and id not in known:
            raise DataError(f"example {id!r} was not submitted")
        if id in lines:
            raise DataError(f"example {id!r} has an earlier line already; delete one of them")
        lines[id] = row

    filled_in([path], read)
    return lines
