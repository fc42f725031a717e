"""Where runs are kept: in memory, or below a folder as `runs/<id>.json` and, of all examples together,
`runs/<id>/outputs.jsonl` and `runs/<id>/traces.jsonl`. What the SDKs wrote, a file for each example, is read as well.

An output is marked as failed where it is, so that a failure never reads back as an answer, whatever type is asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from evaluand.interop.pharia.domain import (
    ExampleOutput,
    FailedExampleRun,
    RecoveryData,
    RunOverview,
    as_failure,
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
from evaluand.interop.pharia.kept_traces import ExampleTracer, tracer_of
from evaluand.interop.pharia.typed import reader
from evaluand.task import Output
from evaluand.trace import Tracer
from evaluand.tracers.file import FileTracer
from evaluand.tracers.in_memory import InMemoryTracer


class RunRepository(ABC):
    """Keeps runs: a head, and for each example an output and perhaps a trace."""

    @abstractmethod
    def store_run_overview(self, overview: RunOverview) -> None:
        """Keeps the head of a run; with it the run is whole."""

    @abstractmethod
    def run_overview(self, run_id: str) -> RunOverview | None:
        """The head of a run."""

    @abstractmethod
    def run_overview_ids(self) -> Sequence[str]:
        """The ids of all runs, sorted."""

    @abstractmethod
    def store_example_output(self, example_output: ExampleOutput[Output]) -> None:
        """Keeps what the task gave for an example."""

    @abstractmethod
    def example_output(
        self, run_id: str, example_id: str, output_type: type[Output]
    ) -> ExampleOutput[Output] | ExampleOutput[FailedExampleRun] | None:
        """What the task gave for an example; None where nothing is kept."""

    @abstractmethod
    def example_output_ids(self, run_id: str) -> Sequence[str]:
        """The ids of the examples that have an output, sorted."""

    @abstractmethod
    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        """A tracer for one example, whose traces are kept."""

    @abstractmethod
    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        """The traces of an example; None where there are none."""

    @abstractmethod
    def create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None:
        """Notes that a run has begun, so that it can be resumed.

        Args:
            tmp_hash: what the run is found by again; see `Runner`.
            run_id: its id.
        """

    @abstractmethod
    def delete_temporary_run_data(self, tmp_hash: str) -> None:
        """Forgets the note, if there is one."""

    @abstractmethod
    def finished_examples(self, tmp_hash: str) -> RecoveryData | None:
        """The run that began under this note, with the examples that are done; None where there is no note."""

    def temp_store_finished_example(self, tmp_hash: str, example_id: str) -> None:  # noqa: B027 - see its words
        """Notes that an example is done; nothing is to be done for it, since its output says so."""

    def store_example_output_parallel(self, tmp_hash: str, example_output: ExampleOutput[Output]) -> None:
        """Keeps what the task gave for an example of a run that can be resumed."""
        self.store_example_output(example_output)
        self.temp_store_finished_example(tmp_hash, example_output.example_id)

    def run_overviews(self) -> Iterable[RunOverview]:
        """The heads of all runs, in the order of their ids."""
        for id in self.run_overview_ids():
            found = self.run_overview(id)
            if found is not None:
                yield found

    def example_outputs(
        self, run_id: str, output_type: type[Output]
    ) -> Iterable[ExampleOutput[Output] | ExampleOutput[FailedExampleRun]]:
        """What the task gave for each example, in the order of their ids."""
        for id in self.example_output_ids(run_id):
            found = self.example_output(run_id, id, output_type)
            if found is not None:
                yield found

    def successful_example_outputs(self, run_id: str, output_type: type[Output]) -> Iterable[ExampleOutput[Output]]:
        """The outputs of the examples that did not fail."""
        for each in self.example_outputs(run_id, output_type):
            if not isinstance(each.output, FailedExampleRun):
                yield each  # type: ignore[misc]

    def failed_example_outputs(
        self, run_id: str, output_type: type[Output]
    ) -> Iterable[ExampleOutput[FailedExampleRun]]:
        """The failures."""
        for each in self.example_outputs(run_id, output_type):
            if isinstance(each.output, FailedExampleRun):
                yield each  # type: ignore[misc]


class InMemoryRunRepository(RunRepository):
    """Keeps runs as long as it lives."""

    def __init__(self) -> None:
        self._overviews: dict[str, RunOverview] = {}
        self._outputs: dict[str, dict[str, ExampleOutput[Any]]] = {}
        self._tracers: dict[tuple[str, str], InMemoryTracer] = {}
        self._begun: dict[str, str] = {}

    def store_run_overview(self, overview: RunOverview) -> None:
        self._overviews[overview.id] = overview
        self._outputs.setdefault(overview.id, {})

    def run_overview(self, run_id: str) -> RunOverview | None:
        return self._overviews.get(run_id)

    def run_overview_ids(self) -> Sequence[str]:
        return sorted(self._overviews)

    def store_example_output(self, example_output: ExampleOutput[Output]) -> None:
        self._outputs.setdefault(example_output.run_id, {})[example_output.example_id] = example_output

    def example_output(
        self, run_id: str, example_id: str, output_type: type[Output]
    ) -> ExampleOutput[Output] | ExampleOutput[FailedExampleRun] | None:
        return self._outputs.get(run_id, {}).get(example_id)

    def example_output_ids(self, run_id: str) -> Sequence[str]:
        return sorted(self._outputs.get(run_id, {}))

    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        return self._tracers.setdefault((run_id, example_id), InMemoryTracer())

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        return self._tracers.get((run_id, example_id))

    def create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None:
        self._begun[tmp_hash] = run_id

    def delete_temporary_run_data(self, tmp_hash: str) -> None:
        self._begun.pop(tmp_hash, None)

    def finished_examples(self, tmp_hash: str) -> RecoveryData | None:
        run_id = self._begun.get(tmp_hash)
        if run_id is None:
            return None
        return RecoveryData(run_id=run_id, finished_examples=list(self.example_output_ids(run_id)))


class FileRunRepository(RunRepository):
    """Keeps runs below a folder.

    Args:
        root_directory: the folder; made if it is not there.
    """

    def __init__(self, root_directory: Path) -> None:
        self._folder = Path(root_directory) / "runs"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._rows: dict[tuple[str, str], Rows] = {}
        self._theirs: dict[Path, SdkRows] = {}

    def store_run_overview(self, overview: RunOverview) -> None:
        replace(self._folder / f"{file_name(overview.id)}.json", json_text(overview, indent=2))
        for kind in ("outputs", "traces"):
            self._own_rows(overview.id, kind).close()

    def run_overview(self, run_id: str) -> RunOverview | None:
        text = read_text(place(self._folder, run_id, ".json"))
        return None if text is None else RunOverview.model_validate_json(text)

    def run_overview_ids(self) -> Sequence[str]:
        return heads(self._folder, ".json")

    def store_example_output(self, example_output: ExampleOutput[Output]) -> None:
        failed = isinstance(example_output.output, FailedExampleRun)
        rows = self._own_rows(example_output.run_id, "outputs")
        rows.append(example_output.example_id, json_text(example_output.output), failed=failed)

    def example_output(
        self, run_id: str, example_id: str, output_type: type[Output]
    ) -> ExampleOutput[Output] | ExampleOutput[FailedExampleRun] | None:
        row = self._outputs(run_id).get(example_id)
        return None if row is None else _output(run_id, row, output_type)

    def example_outputs(
        self, run_id: str, output_type: type[Output]
    ) -> Iterator[ExampleOutput[Output] | ExampleOutput[FailedExampleRun]]:
        for row in self._outputs(run_id):
            yield _output(run_id, row, output_type)

    def example_output_ids(self, run_id: str) -> Sequence[str]:
        return self._outputs(run_id).ids()

    def create_tracer_for_example(self, run_id: str, example_id: str) -> Tracer:
        rows = self._own_rows(run_id, "traces")
        return ExampleTracer(lambda text: rows.append(example_id, text))

    def example_tracer(self, run_id: str, example_id: str) -> Tracer | None:
        kept = self._own_rows(run_id, "traces").all(example_id)
        if kept:
            return tracer_of(row["value"] for row in kept)
        theirs = place(sdk_place(self._folder, run_id) / "trace", example_id, ".jsonl")
        return FileTracer(theirs).traces() if theirs.is_file() else None

    def create_temporary_run_data(self, tmp_hash: str, run_id: str) -> None:
        replace(self._note(tmp_hash), json_text({"run_id": run_id}))

    def delete_temporary_run_data(self, tmp_hash: str) -> None:
        self._note(tmp_hash).unlink(missing_ok=True)

    def finished_examples(self, tmp_hash: str) -> RecoveryData | None:
        text = read_text(self._note(tmp_hash))
        if text is None:
            return None
        run_id = from_json(text)["run_id"]
        return RecoveryData(run_id=run_id, finished_examples=list(self.example_output_ids(run_id)))

    def _note(self, tmp_hash: str) -> Path:
        return self._folder / f"{file_name(tmp_hash)}.tmp"

    def _own_rows(self, run_id: str, kind: str) -> Rows:
        key = run_id, kind
        if key not in self._rows:
            self._rows.setdefault(key, Rows(self._folder / file_name(run_id) / f"{kind}.jsonl"))
        return self._rows[key]

    def _outputs(self, run_id: str) -> Rows | JoinedRows:
        own, theirs = self._own_rows(run_id, "outputs"), sdk_place(self._folder, run_id) / "output"
        if not theirs.is_dir():
            return own
        return JoinedRows(own, self._theirs.setdefault(theirs, SdkRows(theirs, _row_of)))


def _row_of(content: dict[str, Any]) -> dict[str, Any]:
    """The row that a file of the SDKs stands for, which marks a failure by its form alone."""
    output = content["output"]
    return {"example_id": content["example_id"], "failed": as_failure(output) is not None, "value": output}


def _output(run_id: str, row: dict[str, Any], output_type: Any) -> ExampleOutput[Any]:
    type_ = FailedExampleRun if row["failed"] else output_type
    output = reader(type_).validate_python(row["value"])
    return ExampleOutput(run_id=run_id, example_id=row["example_id"], output=output)
