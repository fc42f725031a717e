"""`dyff.schema.platform`: resources, and the schemas that they carry.

Resources are read from the platform's JSON and written to it again as they were, with fields that mean nothing here. Of
each, what evaluand needs is offered in its own words: a dataset's view, a service's task, an evaluation's policy.

    service = InferenceService.model_validate_json(text)
    evaluation = Evaluation.model_validate_json(other)
    task = service.task("https://models.example/", client=evaluation.client)
    Runner(policy=evaluation.client.policy()).run(task, data, replications=evaluation.replications)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from evaluand.core.errors import SpecError
from evaluand.core.registry import nearest
from evaluand.data.adapters.base.pipeline import Pipeline
from evaluand.data.dataset import Dataset as Examples
from evaluand.data.schema.data import DataSchema, DyffDataSchema
from evaluand.engine.engine import Policy
from evaluand.run.tasks.service import ServiceTask

__all__ = [
    "DataSchema",
    "DataView",
    "Dataset",
    "DyffDataSchema",
    "Evaluation",
    "EvaluationClientConfiguration",
    "InferenceInterface",
    "InferenceService",
    "InferenceSession",
    "InferenceSessionSpec",
    "Model",
    "Report",
    "SchemaAdapter",
]


class _Resource(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=())

    def to_json(self) -> str:
        """The JSON of the resource, with exactly the fields that were given."""
        return self.model_dump_json(by_alias=True, exclude_unset=True)


class _Entity(_Resource):
    id: str
    account: str
    schemaVersion: Literal["0.1"] = "0.1"
    labels: dict[str, str | None] = Field(default_factory=dict)


class SchemaAdapter(_Resource):
    """An adapter by its kind and configuration."""

    kind: str
    configuration: Any = None


def _pipeline(adapters: Sequence[SchemaAdapter] | None) -> list[dict[str, Any]]:
    return [{"kind": adapter.kind, "configuration": adapter.configuration} for adapter in adapters or ()]


class DataView(_Resource):
    """A resource's data in another shape."""

    id: str
    viewOf: str
    schema_: DataSchema = Field(alias="schema")
    adapterPipeline: list[SchemaAdapter] | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The adapters: for `Dataset.view` of a dataset, for `OutputView` of the outputs of a service."""
        return Pipeline(_pipeline(self.adapterPipeline))


class Dataset(_Entity):
    """A dataset, with the schema of its rows and its views."""

    kind: Literal["Dataset"] = "Dataset"
    name: str
    artifacts: list[dict[str, Any]] = Field(default_factory=list)
    schema_: DataSchema = Field(alias="schema")
    views: list[DataView] = Field(default_factory=list)

    def view(self, data: Examples, id: str) -> Examples:
        """The dataset's examples in one of its views.

        Raises:
            SpecError: it has no such view; says which it has.
        """
        found = {view.id: view for view in self.views}
        if id not in found:
            there = f"there are {', '.join(found)}" if found else "it has no views"
            raise SpecError(f"dataset {self.name!r} has no view {id!r}{nearest(id, found)}; {there}")
        return data.view(found[id].pipeline)


class Model(_Entity):
    """What services are made of; several may share one."""

    kind: Literal["Model"] = "Model"
    name: str
    artifact: dict[str, Any]
    source: dict[str, Any]
    storage: dict[str, Any] | None = None
    resources: dict[str, Any]
    accelerators: list[dict[str, Any]] | None = None


class InferenceInterface(_Resource):
    """How data get in and out of a service."""

    endpoint: str
    outputSchema: DataSchema
    inputPipeline: list[SchemaAdapter] | None = None
    outputPipeline: list[SchemaAdapter] | None = None


class EvaluationClientConfiguration(_Resource):
    """How a service is asked, and what becomes of odd answers.

    `batchSize` and `extraOptions` are for the platform's own client, which services do not see: they are kept and have
    no effect here, where a service is asked for one row at a time. Give `task` a `batch` where it takes lists of rows.
    """

    badRequestPolicy: Literal["Abort", "Skip"] = "Abort"
    transientErrorRetryLimit: int = Field(120, ge=0)
    transientErrorRetryDelaySeconds: int = Field(30, ge=1)
    duplicateOutputPolicy: Literal["Deduplicate", "Error", "Ignore"] = "Deduplicate"
    missingOutputPolicy: Literal["Error", "Ignore"] = "Error"
    requestTimeoutSeconds: int = Field(30, gt=0)
    totalTimeoutSeconds: int = Field(7200, gt=0)
    batchSize: int = Field(1000, ge=1)
    extraOptions: dict[str, str] = Field(default_factory=dict)
    inputPipeline: list[SchemaAdapter] | None = None

    def policy(self, **more: Any) -> Policy:
        """The policy of a run that asks so; `more` are further parameters, such as its concurrency.

        The limit is that of each row's own tries, not of tries without a success between them.
        """
        return Policy(
            timeout=self.requestTimeoutSeconds,
            total_timeout=self.totalTimeoutSeconds,
            retries=self.transientErrorRetryLimit,
            backoff=self.transientErrorRetryDelaySeconds,
            backoff_growth=1,
            **more,
        )


def _address(base: str, endpoint: str) -> str:
    """Where a service is asked. The base alone says which host is sent what the headers hold, so an endpoint is a path
    below it; a query of the base is kept.

    Raises:
        SpecError: the endpoint is more than that.
    """
    try:
        told = urlsplit(endpoint)
    except ValueError:
        told = None
    if told is None or told.scheme or told.netloc or ".." in re.split(r"[/\\]", unquote(told.path)):
        raise SpecError(
            f"interface.endpoint is {endpoint!r}; give a path below the address of the service, such as /generate"
        )
    root, _, query = base.partition("?")
    query = "&".join(filter(None, (query, told.query)))
    return f"{root.rstrip('/')}/{told.path.lstrip('/')}" + (f"?{query}" if query else "")


class _Service(_Resource):
    name: str
    builder: dict[str, Any] | None = None
    runner: dict[str, Any] | None = None
    interface: InferenceInterface
    outputViews: list[DataView] = Field(default_factory=list)
    model: dict[str, Any] | None = None

    def task(
        self, base: str, *, client: EvaluationClientConfiguration | None = None, version: str | None = None, **more: Any
    ) -> ServiceTask:
        """The service as a task.

        Args:
            base: where the service is reached; its endpoint is a path below that.
            client: how it is asked.
            version: pins what answers; see `ServiceTask`.
            more: further parameters of `ServiceTask`, such as headers.

        Raises:
            SpecError: the endpoint leads away from the base, or duplicates are to be kept in the output, which a run
                cannot hold.
        """
        client = client or EvaluationClientConfiguration()
        if client.duplicateOutputPolicy == "Ignore":
            raise SpecError(
                "duplicateOutputPolicy Ignore would keep several outputs of one call; use Deduplicate or Error"
            )
        return ServiceTask(
            _address(base, self.interface.endpoint),
            model=str((self.model or {}).get("id") or (self.model or {}).get("name") or self.name),
            version=version,
            client_pipeline=_pipeline(client.inputPipeline),
            input_pipeline=_pipeline(self.interface.inputPipeline),
            output_pipeline=_pipeline(self.interface.outputPipeline),
            output_schema=self.interface.outputSchema.response(),
            on_bad_request="skip" if client.badRequestPolicy == "Skip" else "abort",
            on_duplicate="fail" if client.duplicateOutputPolicy == "Error" else "deduplicate",
            on_missing="ignore" if client.missingOutputPolicy == "Ignore" else "fail",
            **more,
        )


class InferenceService(_Entity, _Service):
    """A model behind an HTTP interface, for one kind of task."""

    kind: Literal["InferenceService"] = "InferenceService"


class _ForeignService(_Service):
    id: str
    account: str


class InferenceSessionSpec(_Resource):
    """What a session runs."""

    inferenceService: _ForeignService
    replicas: int = 1


class InferenceSession(_Entity, InferenceSessionSpec):
    """A running service."""

    kind: Literal["InferenceSession"] = "InferenceSession"


class Evaluation(_Entity):
    """A service run over a dataset; in evaluand, a run."""

    kind: Literal["Evaluation"] = "Evaluation"
    dataset: str
    inferenceSession: InferenceSessionSpec
    inferenceSessionReference: str | None = None
    replications: int = 1
    workersPerReplica: int | None = None
    client: EvaluationClientConfiguration = Field(default_factory=EvaluationClientConfiguration)

    def task(self, base: str, *, version: str | None = None, **more: Any) -> ServiceTask:
        """The service that is evaluated, asked as the evaluation says; see `InferenceService.task`."""
        return self.inferenceSession.inferenceService.task(base, client=self.client, version=version, **more)


class Report(_Entity):
    """Outputs graded and summarised by a rubric; in evaluand, an evaluation and its metrics."""

    kind: Literal["Report"] = "Report"
    rubric: str
    evaluation: str
    dataset: str
    inferenceService: str
    model: str | None = None
    datasetView: DataView | str | None = None
    evaluationView: DataView | str | None = None
    modules: list[str] = Field(default_factory=list)
