"""Lineages: an example with its outputs and result, joined from the repositories.

Every row is read once, so a table of lineages takes time in proportion to its rows. Traces are read on access.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import rich
from pydantic_core import from_json
from rich.text import Text
from rich.tree import Tree

from evaluand.core.errors import SpecError, warn
from evaluand.interop.pharia.datasets import DatasetRepository
from evaluand.interop.pharia.domain import (
    AggregationOverview,
    Evaluation,
    Example,
    ExampleEvaluation,
    ExampleOutput,
    ExpectedOutput,
    FailedExampleEvaluation,
    FailedExampleRun,
    Refused,
    RunOverview,
    require_stored,
)
from evaluand.interop.pharia.evaluations import EvaluationRepository
from evaluand.interop.pharia.repository_files import exact_text
from evaluand.interop.pharia.runs import RunRepository
from evaluand.run.task import Input, Output
from evaluand.trace.export import panel
from evaluand.trace.tracer import Tracer
from evaluand.trace.values import one_line

if TYPE_CHECKING:
    import pandas as pd


EXAMPLE_OUTPUT_TYPE = ExampleOutput[Output] | ExampleOutput[FailedExampleRun]
"""The output of a run for an example, or the failure of the task."""

EXAMPLE_EVAL_TYPE = ExampleEvaluation[Evaluation] | ExampleEvaluation[FailedExampleEvaluation]
"""The result for an example, or the failure of the logic."""


@dataclass(frozen=True)
class RunLineage(Generic[Input, ExpectedOutput, Output]):
    """An example with the output of the task.

    Attributes:
        example: the example.
        output: the output, or the failure of the task.
        run_repository: where its trace is stored.
    """

    example: Example[Input, ExpectedOutput]
    output: ExampleOutput[Output]
    run_repository: RunRepository = field(repr=False, compare=False)

    def _rich_render(self) -> Tree:
        return _tree("Run Lineage", self.example, [self.output])

    def _ipython_display_(self) -> None:
        rich.print(self._rich_render())

    @cached_property
    def tracer(self) -> Tracer | None:
        """The trace of the call; None if none was stored."""
        return self.run_repository.example_tracer(self.output.run_id, self.output.example_id)


@dataclass(frozen=True)
class EvaluationLineage(Generic[Input, ExpectedOutput, Output, Evaluation]):
    """An example with the output of each run and the result of the evaluation.

    Attributes:
        example: the example.
        outputs: the output of each run that has one, in the order of the runs; failures too.
        evaluation: the result, or the failure of the evaluation.
        run_repository: where the traces are stored.
    """

    example: Example[Input, ExpectedOutput]
    outputs: Sequence[ExampleOutput[Output]]
    evaluation: ExampleEvaluation[Evaluation]
    run_repository: RunRepository = field(repr=False, compare=False)

    def _rich_render(self) -> Tree:
        tree = _tree("Evaluation Lineage", self.example, self.outputs)
        tree.add(panel(f"evaluation {self.evaluation.evaluation_id}", self.evaluation.result))
        return tree

    def _ipython_display_(self) -> None:
        rich.print(self._rich_render())

    @cached_property
    def tracers(self) -> Sequence[Tracer | None]:
        """The traces of the calls, in the order of `outputs`; None where none was stored."""
        return [self.run_repository.example_tracer(each.run_id, each.example_id) for each in self.outputs]


class RepositoryNavigator:
    """Joins the contents of repositories.

    Args:
        dataset_repository: where the examples are stored.
        run_repository: where the outputs and traces are stored.
        evaluation_repository: where the results are stored; not needed for lineages of runs.
    """

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: EvaluationRepository | None = None,
    ) -> None:
        self._dataset_repository = dataset_repository
        self._run_repository = run_repository
        self._evaluation_repository = evaluation_repository

    def run_lineages(
        self,
        run_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        output_type: type[Output],
    ) -> Iterator[RunLineage[Input, ExpectedOutput, Output]]:
        """Each example of a run with its output, in the order of their ids.

        Raises:
            Unknown: there is no such run.
        """
        run = self._run(run_id)
        examples = self._examples(run.dataset_id, input_type, expected_output_type)
        missing: list[str] = []
        for output in self._run_repository.example_outputs(run_id, output_type):
            if output.example_id in examples:
                yield RunLineage(examples[output.example_id], output, self._run_repository)  # type: ignore[arg-type]
            else:
                missing.append(output.example_id)
        _warn_of_missing(missing, run.dataset_id, f"run {run_id}")

    def run_lineage(
        self,
        run_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        output_type: type[Output],
    ) -> RunLineage[Input, ExpectedOutput, Output] | None:
        """One example of a run with its output; None if it has none.

        Raises:
            Unknown: there is no such run.
        """
        run = self._run(run_id)
        example = self._dataset_repository.example(run.dataset_id, example_id, input_type, expected_output_type)
        output = self._run_repository.example_output(run_id, example_id, output_type)
        if example is None or output is None:
            return None
        return RunLineage(example, output, self._run_repository)  # type: ignore[arg-type]

    def evaluation_lineages(
        self,
        evaluation_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        output_type: type[Output],
        evaluation_type: type[Evaluation],
    ) -> Iterator[EvaluationLineage[Input, ExpectedOutput, Output, Evaluation]]:
        """Each example that was evaluated with its outputs and result, in the order of their ids.

        Raises:
            Unknown: there is no such evaluation.
        """
        runs = self._runs_of(evaluation_id)
        examples = self._examples(runs[0].dataset_id, input_type, expected_output_type) if runs else {}
        outputs = [
            {each.example_id: each for each in self._run_repository.example_outputs(run.id, output_type)}
            for run in runs
        ]
        results = self._require_evaluations().example_evaluations(evaluation_id, evaluation_type)
        missing: list[str] = []
        for result in results:
            id = result.example_id
            if id in examples:
                own = [of_run[id] for of_run in outputs if id in of_run]
                yield EvaluationLineage(examples[id], own, result, self._run_repository)  # type: ignore[arg-type]
            else:
                missing.append(id)
        _warn_of_missing(missing, runs[0].dataset_id if runs else "", f"evaluation {evaluation_id}")

    def evaluation_lineage(
        self,
        evaluation_id: str,
        example_id: str,
        input_type: type[Input],
        expected_output_type: type[ExpectedOutput],
        output_type: type[Output],
        evaluation_type: type[Evaluation],
    ) -> EvaluationLineage[Input, ExpectedOutput, Output, Evaluation] | None:
        """One example with its outputs and result; None where it was not evaluated.

        Raises:
            Unknown: there is no such evaluation.
        """
        runs = self._runs_of(evaluation_id)
        result = self._require_evaluations().example_evaluation(evaluation_id, example_id, evaluation_type)
        if result is None or not runs:
            return None
        example = self._dataset_repository.example(runs[0].dataset_id, example_id, input_type, expected_output_type)
        found = (self._run_repository.example_output(run.id, example_id, output_type) for run in runs)
        outputs = [each for each in found if each is not None]
        return None if example is None else EvaluationLineage(example, outputs, result, self._run_repository)  # type: ignore[arg-type]

    def _run(self, run_id: str) -> RunOverview:
        return require_stored(self._run_repository.run_overview(run_id), "run", run_id)

    def _runs_of(self, evaluation_id: str) -> list[RunOverview]:
        overview = self._require_evaluations().evaluation_overview(evaluation_id)
        return require_stored(overview, "evaluation", evaluation_id).ordered_runs

    def _require_evaluations(self) -> EvaluationRepository:
        if self._evaluation_repository is None:
            raise Refused("lineages of evaluations need evaluation_repository; pass it to RepositoryNavigator")
        return self._evaluation_repository

    def _examples(self, dataset_id: str, input_type: Any, expected_type: Any) -> dict[str, Example[Any, Any]]:
        return {each.id: each for each in self._dataset_repository.examples(dataset_id, input_type, expected_type)}


def _warn_of_missing(missing: list[str], dataset_id: str, what: str) -> None:
    if missing:
        message = f"{len(missing)} examples of {what} are no longer in dataset {dataset_id} and have no lineage"
        warn(f"{message}: {reprlib.repr(missing)}")


def run_lineages_to_pandas(run_lineages: Sequence[RunLineage[Input, ExpectedOutput, Output]]) -> pd.DataFrame:
    """A row for each lineage: input, expected_output, metadata, output and lineage, by example_id and run_id."""
    rows = [{**_example_columns(each), **_output_columns(each.output), "lineage": each} for each in run_lineages]
    return _frame(rows, ["example_id", "run_id"], ["input", "expected_output", "metadata", "output", "lineage"])


def evaluation_lineages_to_pandas(
    evaluation_lineages: Sequence[EvaluationLineage[Input, ExpectedOutput, Output, Evaluation]],
) -> pd.DataFrame:
    """A row for each output: input, expected_output, metadata, output, result, tracer and lineage, by example_id,
    evaluation_id and run_id.
    """
    rows = []
    for each in evaluation_lineages:
        of_lineage = {"evaluation_id": each.evaluation.evaluation_id, "result": each.evaluation.result, "lineage": each}
        for output, tracer in zip(each.outputs, each.tracers, strict=True):
            rows.append({**_example_columns(each), **_output_columns(output), "tracer": tracer, **of_lineage})
    columns = ["input", "expected_output", "metadata", "output", "result", "tracer", "lineage"]
    return _frame(rows, ["example_id", "evaluation_id", "run_id"], columns)


def aggregation_overviews_to_pandas(
    aggregation_overviews: Sequence[AggregationOverview[Any]],
    unwrap_statistics: bool = True,
    strict: bool = True,
    unwrap_metadata: bool = True,
) -> pd.DataFrame:
    """A row for each aggregation, with a column for each of its fields, among them `failure_policy`: two aggregations
    of one evaluation may differ in nothing else.

    Args:
        aggregation_overviews: the aggregations.
        unwrap_statistics: whether each of the statistics has a column; one with the name of another column becomes
            `statistics.<name>`.
        strict: whether all statistics must be of one type.
        unwrap_metadata: whether each item of the metadata has a column; one with the name of another
            column becomes `metadata.<name>`.

    Raises:
        Refused: the statistics are of several types, and `strict`.
    """
    if strict and len({type(overview.statistics) for overview in aggregation_overviews}) > 1:
        raise Refused("the aggregations have statistics of several types; pass strict=False to show them in one table")
    rows = []
    for overview in aggregation_overviews:
        row = from_json(exact_text(overview))
        if unwrap_statistics and isinstance(row["statistics"], dict):
            _unwrap(row, "statistics", row["statistics"])
        if unwrap_metadata:
            _unwrap(row, "metadata", dict(_flatten(row["metadata"], "")))
        rows.append(row)
    frame: pd.DataFrame = _pandas().DataFrame(rows)
    return frame


def _tree(title: str, example: Example[Any, Any], outputs: Iterable[ExampleOutput[Any]]) -> Tree:
    """A lineage as a tree for display; text is never read as markup."""
    tree = Tree(title)
    of_example = tree.add(Text(one_line(f"example {example.id}")))
    of_example.add(panel("input", example.input))
    of_example.add(panel("expected output", example.expected_output))
    for each in outputs:
        tree.add(panel(f"output of run {each.run_id}", each.output))
    return tree


def _example_columns(lineage: Any) -> dict[str, Any]:
    example = lineage.example
    return {
        "example_id": example.id,
        "input": example.input,
        "expected_output": example.expected_output,
        "metadata": example.metadata,
    }


def _output_columns(output: ExampleOutput[Any]) -> dict[str, Any]:
    return {"run_id": output.run_id, "output": output.output}


def _unwrap(row: dict[str, Any], field: str, values: dict[str, Any]) -> None:
    """Replace a field by columns for its values."""
    del row[field]
    row |= {f"{field}.{name}" if name in row else name: value for name, value in values.items()}


def _flatten(value: Any, name: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict) or (not value and name):
        yield name, value
        return
    for key, item in value.items():
        yield from _flatten(item, f"{name}.{key}" if name else key)


def _frame(rows: list[dict[str, Any]], index: list[str], columns: list[str]) -> pd.DataFrame:
    pandas = _pandas()
    data = {name: pandas.Series([row[name] for row in rows], dtype=object) for name in (*index, *columns)}
    frame: pd.DataFrame = pandas.DataFrame(data).infer_objects().set_index(index)
    return frame


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise SpecError("tables of lineages need pandas: pip install 'evaluand[pandas]'") from None
    return pandas
