"""The first step: runs a task on every example of a dataset and stores its outputs."""

import inspect
from collections.abc import Awaitable, Iterable, Iterator
from typing import Any, Generic

from evaluand.core import identity
from evaluand.core.errors import warn
from evaluand.engine.event_loop import run_coroutine
from evaluand.interop.pharia.datasets import DatasetRepository
from evaluand.interop.pharia.domain import (
    FAILING,
    Example,
    ExampleOutput,
    ExpectedOutput,
    FailedExampleRun,
    RunOverview,
    SerializableDict,
    require_stored,
    utc_now,
)
from evaluand.interop.pharia.lineage import RepositoryNavigator, RunLineage
from evaluand.interop.pharia.runs import RunRepository
from evaluand.interop.pharia.steps import each_in_threads, origin
from evaluand.interop.pharia.types import (
    declared_or_any,
    require_count,
    require_head_fields,
    require_type,
    to_storable,
)
from evaluand.run.task import FunctionTask, Input, Output, Runnable, Task, as_task, types_of
from evaluand.trace.tracer import Tracer
from evaluand.trace.tracers.composite import CompositeTracer
from evaluand.trace.tracers.no_op import NoOpTracer


class Runner(Generic[Input, Output]):
    """Runs a task over datasets.

    Args:
        task: a task, a function or an object with `do_run`.
        dataset_repository: where the examples are stored.
        run_repository: where to store outputs and traces.
        description: what the runs are; stored in their heads.

    Example:
        >>> from evaluand.interop.pharia import InMemoryDatasetRepository, InMemoryRunRepository
        >>> class Shout(Task[str, str]):
        ...     def do_run(self, input, task_span):
        ...         return input.upper()
        >>> datasets, runs = InMemoryDatasetRepository(), InMemoryRunRepository()
        >>> dataset = datasets.create_dataset([Example(input="hi", expected_output="HI", id="1")], "greetings")
        >>> run = Runner(Shout(), datasets, runs, "shouting").run_dataset(dataset.id)
        >>> runs.example_output(run.id, "1", str).output
        'HI'
    """

    def __init__(
        self,
        task: Task[Input, Output] | Runnable,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        description: str,
    ) -> None:
        self.description = description
        self._original_task = task
        self._task = as_task(task)
        self._identity = self._task.identify()  # before it runs, since it may collect state
        self._dataset_repository, self._run_repository = dataset_repository, run_repository
        self._navigator = RepositoryNavigator(dataset_repository, run_repository)

    def input_type(self) -> type[Input]:
        """The type of inputs, as the task's class declares it; override this where it does not."""
        return self._type(0, "input")  # type: ignore[no-any-return]

    def output_type(self) -> type[Output]:
        """The type of outputs, as the task's class declares it; override this where it does not."""
        return self._type(1, "output")  # type: ignore[no-any-return]

    def run_dataset(
        self,
        dataset_id: str,
        tracer: Tracer | None = None,
        num_examples: int | None = None,
        abort_on_error: bool = False,
        max_workers: int = 10,
        description: str | None = None,
        trace_examples_individually: bool = True,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
        resume_from_recovery_data: bool = False,
        *,
        seed: int | None = None,
        environment_version: str | None = None,
    ) -> RunOverview:
        """Run the task over a dataset; every call creates a new run.

        Args:
            dataset_id: the dataset.
            tracer: an additional tracer for all calls.
            num_examples: at most this many, those with the smallest ids.
            abort_on_error: raise what the task raises; finished outputs are stored, and the run can be resumed.
                Otherwise a failure is stored as a failed output.
            max_workers: how many calls run concurrently.
            description: appended to that of the runner.
            trace_examples_individually: store a trace of each example.
            labels: for finding the run.
            metadata: further facts to store with the run, such as its configuration.
            resume_from_recovery_data: continue an unfinished run with the same dataset, examples, descriptions,
                metadata, seed, version of the environment and task, begun in this process or another; only missing
                examples are run. A new run begins if there is none, or only runs that are in progress or of a task
                with other code, arguments or declared version. An `EvaluandWarning` reports that the resumed task also
                depends on things that its code does not pin.
            seed: the seed of the task; stored in the head.
            environment_version: a declared version of the task's environment; stored in the head.

        Raises:
            Unknown: there is no such dataset.
            Refused: an invalid number of examples or workers, or an argument of the wrong type for the head.
            Misfit: the inputs do not have the type of the task; nothing was run.
        """
        require_count("max_workers", max_workers, 1)
        require_count("num_examples", num_examples)
        require_head_fields(description=description, labels=labels, metadata=metadata)
        require_head_fields(seed=seed, environment_version=environment_version)
        require_stored(self._dataset_repository.dataset(dataset_id), "dataset", dataset_id)
        start = utc_now()
        examples = list(self._dataset_repository.examples(dataset_id, self.input_type(), Any))[:num_examples]
        full = self.description if description is None else f"{self.description} : {description}"
        type_ = declared_or_any(self.output_type)
        content = self._dataset_repository.content_digest(dataset_id, num_examples)
        request = [dataset_id, content, full, metadata or {}, seed, environment_version]
        note = "".join(identity.digest(part).hex() for part in (request, [self._task.name, self._identity.spec]))

        def run(example: Example[Input, Any]) -> bool:
            span_tracer = self._tracer(tracer, begun.run_id, example.id, trace_examples_individually)
            output = self._output(example, span_tracer, type_, abort_on_error)
            row: ExampleOutput[Any] = ExampleOutput(run_id=begun.run_id, example_id=example.id, output=output)
            self._run_repository.store_finished(note, row)
            return isinstance(output, FailedExampleRun)

        with self._run_repository.begun(note, resume_from_recovery_data) as begun:
            done = {each.id for each in examples}.intersection(begun.finished_examples)
            if done:
                self._warn_if_unpinned(begun.run_id)
            earlier_failures = self._run_repository.failed_example_outputs(begun.run_id, Any) if done else ()
            failed = sum(each.example_id in done for each in earlier_failures)
            missing = [each for each in examples if each.id not in done]
            failed += sum(each_in_threads(run, missing, max_workers))
            configuration = {"num_examples": num_examples, "max_workers": max_workers, "abort_on_error": abort_on_error}
            overview = RunOverview(
                dataset_id=dataset_id,
                id=begun.run_id,
                start=start,
                end=utc_now(),
                failed_example_count=failed,
                successful_example_count=len(done) + len(missing) - failed,
                description=full,
                labels=labels or set(),
                metadata=metadata or {},
                provenance=origin(self._identity, configuration, seed, environment_version),
            )
            self._run_repository.store_run_overview(overview)
        return overview

    def run_is_already_computed(self, metadata: SerializableDict) -> bool:
        """Whether there is a run with this metadata, all of it and no other."""
        return any(overview.metadata == metadata for overview in self._run_repository.run_overviews())

    def run_lineages(
        self, run_id: str, expected_output_type: type[ExpectedOutput]
    ) -> Iterable[RunLineage[Input, ExpectedOutput, Output]]:
        """Each example with its output and trace."""
        return self._navigator.run_lineages(run_id, self.input_type(), expected_output_type, self.output_type())

    def failed_runs(
        self, run_id: str, expected_output_type: type[ExpectedOutput]
    ) -> Iterator[RunLineage[Input, ExpectedOutput, Output]]:
        """Each example on which the task failed, with its failure and trace."""
        for lineage in self.run_lineages(run_id, expected_output_type):
            if isinstance(lineage.output.output, FailedExampleRun):
                yield lineage

    def run_lineage(
        self, run_id: str, example_id: str, expected_output_type: type[ExpectedOutput]
    ) -> RunLineage[Input, ExpectedOutput, Output] | None:
        """One example with its output and trace; None if it has no output."""
        types = self.input_type(), expected_output_type, self.output_type()
        return self._navigator.run_lineage(run_id, example_id, *types)

    def _type(self, place: int, what: str) -> Any:
        declared = types_of(self._task)[place]
        if declared is None and isinstance(self._task, FunctionTask):
            return Any  # a function may take anything
        placeholder: Any = (Input, Output)[place]  # type: ignore[misc]
        return require_type(declared or placeholder, self._original_task, what, "do_run")

    def _warn_if_unpinned(self, run_id: str) -> None:
        if not self._identity.pinned:
            reasons = "; ".join(self._identity.unpinned)
            warn(f"run {run_id} is resumed and may mix settings: {reasons}")

    def _tracer(self, tracer: Tracer | None, run_id: str, example_id: str, individually: bool) -> Tracer:
        if not individually:
            return tracer or NoOpTracer()
        own = self._run_repository.create_tracer_for_example(run_id, example_id)
        return own if tracer is None else CompositeTracer([tracer, own])

    def _output(self, example: Example[Input, Any], tracer: Tracer, type_: Any, abort_on_error: bool) -> Any:
        try:
            output = self._task.run(example.input, tracer)
            if inspect.isawaitable(output):
                output = _await_value(output)
            output = to_storable(output, type_, f"the output for example {example.id}")
        except FAILING as error:
            if abort_on_error:
                raise
            return FailedExampleRun.from_exception(error)
        return output


def _await_value(value: Awaitable[Any]) -> Any:
    async def wait_for() -> Any:
        return await value

    return run_coroutine(wait_for())
