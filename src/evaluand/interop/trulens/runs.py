"""`RunConfig` and `Run`: an app called on each row of a frame, or rows that were logged elsewhere, and their metrics.

    run = recorder.add_run(RunConfig(run_name="march", dataset_name="questions", dataset_spec={"input": "question"}))
    run.start(input_df)
    run.compute_metrics([relevance])

Differences from TruLens: nothing is sent anywhere, so a run is complete when `start` returns; a row whose call fails is
a record with its error, and the other rows are called; metrics are feedback functions, never names of a server's; and
`compute_metrics` returns their evaluation.
"""

import enum
import inspect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from evaluand.apps.recording.writer import annotate, name_feedbacks
from evaluand.core.errors import SpecError, described, nearest
from evaluand.engine.event_loop import run_coroutine
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.feedback.feedback import Feedback
from evaluand.interop.trulens.virtual import VirtualRecord, context_calls


class Mode(enum.StrEnum):
    """Whether a run calls its app, or takes what was logged elsewhere."""

    APP_INVOCATION = "APP_INVOCATION"
    LOG_INGESTION = "LOG_INGESTION"


class RunStatus(enum.StrEnum):
    """How far a run is."""

    CREATED = "CREATED"
    INVOCATION_COMPLETED = "INVOCATION_COMPLETED"
    INVOCATION_PARTIALLY_COMPLETED = "INVOCATION_PARTIALLY_COMPLETED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What a run consists of.

    Args:
        run_name: the name of the run.
        dataset_name: a name for the rows.
        dataset_spec: what a column holds → the name of the column: `input_id`, `input`, `output`,
            `ground_truth_output`, `retrieval.query_text` and `retrieval.retrieved_contexts`, the first four also with
            `record_root.` before them, in any case; if the app is called, other names are further arguments, in order.
        source_type: must be DATAFRAME.
        description: words for people.
        label: words for people, stored as the tags of the records.
        mode: whether the app is called, or the columns hold what it answered.
        invocation_max_workers: how many calls are made at once; default: 4.

    Raises:
        SpecError: there is no input, or a column of that meaning is not known.

    Example:
        >>> spec = {"RECORD_ROOT.INPUT": "question"}
        >>> RunConfig(run_name="march", dataset_name="questions", dataset_spec=spec).columns
        {'input': 'question'}
    """

    run_name: str
    dataset_name: str
    dataset_spec: Mapping[str, str]
    source_type: str = "DATAFRAME"
    description: str | None = None
    label: str | None = None
    mode: Mode | str = Mode.APP_INVOCATION
    invocation_max_workers: int | None = None

    def __post_init__(self) -> None:
        if self.source_type != "DATAFRAME":
            raise SpecError(f"source_type is {self.source_type!r}; only DATAFRAME is offered: pass the rows to start()")
        if self.mode not in [*Mode]:
            raise SpecError(f"mode is {self.mode!r}; give one of {', '.join(Mode)}")
        workers = self.invocation_max_workers
        if workers is not None and (type(workers) is not int or workers < 1):
            raise SpecError(f"invocation_max_workers is {workers!r}; give an integer of at least 1")
        if "input" not in self.columns:
            raise SpecError("dataset_spec names no column for the input; give {'input': 'question'}")
        unknown = [name for name in self.columns if name not in _KNOWN]
        if self.mode == Mode.LOG_INGESTION and unknown:
            known = ", ".join(_KNOWN)
            raise SpecError(f"dataset_spec has {unknown[0]!r}{nearest(unknown[0], _KNOWN)}; logged rows have {known}")

    @property
    def columns(self) -> dict[str, str]:
        """What a column holds → its name, in one spelling."""
        return {key.lower().removeprefix("record_root."): name for key, name in self.dataset_spec.items()}


_KNOWN: Final = (
    "input_id",
    "input",
    "output",
    "ground_truth_output",
    "retrieval.query_text",
    "retrieval.retrieved_contexts",
)


class Run:
    """A run of an app over rows.

    Attributes:
        run_name: the name of the run.
        evaluation: what `compute_metrics` computed last; None before.
    """

    def __init__(self, app: Any, config: RunConfig) -> None:
        self.app, self.config, self.run_name = app, config, config.run_name
        self.evaluation: Evaluation | None = None
        self._recording: Any = None

    def start(self, input_df: Any) -> None:
        """Call the app on each row, or record what the rows hold.

        Args:
            input_df: a data frame, or a list of mappings.

        Raises:
            SpecError: the run was started before, a column is missing, or the app does not take these arguments.
        """
        if self._recording is not None:
            raise SpecError(f"run {self.run_name!r} was started before; add another run")
        rows = input_df.to_dict("records") if hasattr(input_df, "to_dict") else list(input_df)
        if not rows:
            raise SpecError("there are no rows; give at least one")
        self._check_columns(rows)
        self.app.close()  # what was recorded before is no part of the run
        recording = self.app.record(tags=self.config.label, meta={"run_name": self.run_name})
        if self.config.mode == Mode.LOG_INGESTION:
            for row in rows:
                recording.take(self._logged(row).recorded)
        else:
            self._call_all(recording, rows)
        self._recording = recording.close()

    def get_status(self) -> RunStatus:
        """How far the run is; partially completed if the calls of some rows failed, failed if those of all did."""
        if self._recording is None:
            return RunStatus.CREATED
        errors = [record.main_error is not None for record in self._recording.records]
        if all(errors):
            return RunStatus.FAILED
        if any(errors):
            return RunStatus.INVOCATION_PARTIALLY_COMPLETED
        return RunStatus.INVOCATION_COMPLETED if self.evaluation is None else RunStatus.COMPLETED

    def compute_metrics(self, metrics: Sequence[Feedback]) -> Evaluation:
        """Evaluate all records by feedback functions; scores that are known are not computed again.

        Raises:
            SpecError: the run was not started, or a metric is not a feedback function.
        """
        for metric in metrics:
            if not isinstance(metric, Feedback):
                raise SpecError(f"a metric is {described(metric)}; pass Feedback(…); no server computes metrics")
        if not metrics:
            raise SpecError("there are no metrics; give at least one Feedback")
        run = self._started().run
        self.evaluation = Evaluator(run.store).evaluate(run, name_feedbacks(metrics))
        return self.evaluation

    def get_records(self) -> list[dict[str, Any]]:
        """For each row its `record_id`, `input`, `output`, `latency` in seconds, and the value of each metric."""
        recording = self._started()
        scores = {} if self.evaluation is None else {name: self._values(name) for name in self.evaluation.scorers}
        return [
            {
                "record_id": record.record_id,
                "input": record.main_input,
                "output": record.main_output,
                "latency": record.perf and record.perf.latency and record.perf.latency.total_seconds(),
                **{name: of_row.get(number) for name, of_row in scores.items()},
            }
            for number, record in zip(recording.numbers, recording.records, strict=True)
        ]

    def _values(self, name: str) -> dict[int, float | None]:
        """The value of a metric by the number of the record."""
        assert self.evaluation is not None
        return {row["_index_"]: row["value"] for row in self.evaluation.table(name).to_pylist()}

    def _started(self) -> Any:
        if self._recording is None:
            raise SpecError(f"run {self.run_name!r} has not been started; call start(rows)")
        return self._recording

    def _check_columns(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for number, row in enumerate(rows):
            for name in self.config.columns.values():
                if name not in row:
                    raise SpecError(f"row {number} has no column {name!r}{nearest(name, row)}; it has {', '.join(row)}")

    def _call_all(self, recording: Any, rows: Sequence[Mapping[str, Any]]) -> None:
        method = self._main_method()
        try:
            inspect.signature(method).bind(*self._arguments(rows[0]))
        except TypeError as error:
            raise SpecError(f"dataset_spec does not fit {self.app.root_callable}: {error}") from None
        workers = self.config.invocation_max_workers or min(len(rows), 4)
        with recording, ThreadPoolExecutor(workers) as threads:
            call = recording.carry_context(lambda row: self._call(method, row))
            list(threads.map(call, rows))

    def _call(self, method: Callable[..., Any], row: Mapping[str, Any]) -> None:
        with annotate(**self._about(row)):
            try:
                returned = method(*self._arguments(row))
                if inspect.isawaitable(returned):
                    run_coroutine(_awaited(returned))
            except Exception:
                pass

    def _main_method(self) -> Callable[..., Any]:
        target = self.app.app
        if inspect.isroutine(target):
            return target
        named = self.app.root_callable
        if named is None:
            raise SpecError("which method is to be called? Name it: TruApp(app, main_method=app.query)")
        method: Callable[..., Any] = getattr(target, named.rpartition(".")[2])
        return method

    def _arguments(self, row: Mapping[str, Any]) -> list[Any]:
        columns = self.config.columns
        further = [name for key, name in columns.items() if key not in _KNOWN]
        return [row[name] for name in (columns["input"], *further)]

    def _about(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The annotations of the record of a row."""
        columns = self.config.columns
        own = {"name": str(row[columns["input_id"]])} if "input_id" in columns else {}
        truth = {name: row[columns[name]] for name in ("ground_truth_output",) if name in columns}
        return {**own, "metadata": truth}

    def _logged(self, row: Mapping[str, Any]) -> VirtualRecord:
        held = {key: row[name] for key, name in self.config.columns.items()}
        query = held.get("retrieval.query_text", held["input"])
        about = self._about(row)
        return VirtualRecord(
            main_input=held["input"],
            main_output=held.get("output"),
            calls=context_calls(query, held.get("retrieval.retrieved_contexts")),
            record_id=about.get("name", ""),
            meta=about["metadata"] or None,
        )


async def _awaited(returned: Any) -> Any:
    return await returned
