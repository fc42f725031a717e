"""`dyff.schema.platform`: resources, and the schemas that they carry.

Resources are read from the platform's JSON and written back unchanged, including fields that evaluand does not use.
They offer what evaluand needs as native objects: the view of a dataset, the task of a service, the policy of an
evaluation.

    service = InferenceService.model_validate_json(text)
    evaluation = Evaluation.model_validate_json(other)
    task = service.task("https://models.example/", client=evaluation.client)
    Runner(policy=evaluation.client.policy()).run(task, data, replications=evaluation.replications)
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from evaluand.core.errors import SpecError, nearest
from evaluand.data.adapters.base.adapter import Pipeline
from evaluand.data.dataset import Dataset as Examples
from evaluand.data.schema.data import DataSchema as DataSchema, DyffDataSchema as DyffDataSchema
from evaluand.data.schema.outputs import validate_outputs, view_outputs
from evaluand.engine.policy import Policy
from evaluand.evaluation.output_view import OutputView
from evaluand.evaluation.scorer import Scorer
from evaluand.run.tasks.service import ServiceTask


class _Resource(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=())

    def to_json(self) -> str:
        """The JSON of the resource, with exactly the fields that were set."""
        return self.model_dump_json(by_alias=True, exclude_unset=True)


class _Entity(_Resource):
    id: str
    account: str
    schemaVersion: Literal["0.1"] = "0.1"
    labels: dict[str, str | None] = Field(default_factory=dict)


class SchemaAdapter(_Resource):
    """The kind and configuration of an adapter."""

    kind: str
    configuration: Any = None


def _list_specs(adapters: Sequence[SchemaAdapter] | None) -> list[dict[str, Any]]:
    return [{"kind": adapter.kind, "configuration": adapter.configuration} for adapter in adapters or ()]


class DataView(_Resource):
    """The data of a resource in another shape."""

    id: str
    viewOf: str
    schema_: DataSchema = Field(alias="schema")
    adapterPipeline: list[SchemaAdapter] | None = None

    @property
    def pipeline(self) -> Pipeline:
        """The adapters, for `Dataset.view` or for an `OutputView` of the outputs of a service."""
        return Pipeline(_list_specs(self.adapterPipeline))

    def output_view(self, scorer: Scorer) -> OutputView:
        """A scorer that sees outputs in this view, if they are valid against its schema."""
        return OutputView(scorer, self.pipeline, self.schema_)

    def rows(self, outputs: pa.Table) -> pa.Table:
        """Valid outputs in this view, valid against its schema.

        Raises:
            SchemaError: an item cannot be transformed, or breaks the schema; lists every fault.
        """
        return view_outputs(outputs, self.pipeline, self.schema_)


class Dataset(_Entity):
    """A dataset, with the schema of its rows and its views."""

    kind: Literal["Dataset"] = "Dataset"
    name: str
    artifacts: list[dict[str, Any]] = Field(default_factory=list)
    schema_: DataSchema = Field(alias="schema")
    views: list[DataView] = Field(default_factory=list)

    def examples(self, rows: Any, **roles: Any) -> Examples:
        """The examples of the dataset, valid against its schema.

        Args:
            rows: the path of a file, an Arrow table, or mappings.
            roles: as in `evaluand.Dataset`.

        Raises:
            DataError: rows break the schema; lists every fault with its row and column.
        """
        roles = {"name": self.name, **roles, "schema": self.schema_}
        if isinstance(rows, str | os.PathLike):
            return Examples.from_file(rows, **roles)
        return Examples.from_arrow(rows, **roles) if isinstance(rows, pa.Table) else Examples.from_rows(rows, **roles)

    def view(self, data: Examples, id: str) -> Examples:
        """The dataset's examples in one of its views, valid against the schema of the view.

        Raises:
            SpecError: there is no such view; lists the views.
            DataError: rows cannot be transformed, or break the schema; lists every fault.
        """
        views = {view.id: view for view in self.views}
        if id not in views:
            known = f"it has {', '.join(views)}" if views else "it has no views"
            raise SpecError(f"dataset {self.name!r} has no view {id!r}{nearest(id, views)}; {known}")
        return data.view(views[id].pipeline, schema=views[id].schema_)


class Model(_Entity):
    """A model, which several services may share."""

    kind: Literal["Model"] = "Model"
    name: str
    artifact: dict[str, Any]
    source: dict[str, Any]
    storage: dict[str, Any] | None = None
    resources: dict[str, Any]
    accelerators: list[dict[str, Any]] | None = None


class InferenceInterface(_Resource):
    """The endpoint of a service and the adapters of its inputs and outputs."""

    endpoint: str
    outputSchema: DataSchema
    inputPipeline: list[SchemaAdapter] | None = None
    outputPipeline: list[SchemaAdapter] | None = None


class EvaluationClientConfiguration(_Resource):
    """How the client calls a service, and what it does with faulty, missing and duplicate outputs.

    `batchSize` and `extraOptions` configure the platform's own client and have no effect here: evaluand sends one row
    per request. Give `task` a `batch` if the service takes lists of rows.
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
        """The policy of a run with this configuration; `more` are further parameters, such as the concurrency.

        The retry limit applies to each row, not to consecutive failures.
        """
        return Policy(
            timeout=self.requestTimeoutSeconds,
            total_timeout=self.totalTimeoutSeconds,
            retries=self.transientErrorRetryLimit,
            backoff=self.transientErrorRetryDelaySeconds,
            backoff_growth=1,
            **more,
        )


def _build_url(base: str, endpoint: str) -> str:
    """The URL of a service; a query of the base stays in it.

    The endpoint must be a path below the base, so that only the base determines which host receives the headers, which
    may contain secrets. It comes from a file, so it names no variable.
    """
    try:
        parts = urlsplit(endpoint)
    except ValueError:
        parts = None
    if "${" in endpoint:
        raise SpecError(
            f"interface.endpoint is {endpoint!r}; a variable is not replaced in it, write it in base or headers"
        )
    if parts is None or parts.scheme or parts.netloc or ".." in re.split(r"[/\\]", unquote(parts.path)):
        raise SpecError(
            f"interface.endpoint is {endpoint!r}; give a path below the address of the service, such as /generate"
        )
    root, _, query = base.partition("?")
    query = "&".join(filter(None, (query, parts.query)))
    return f"{root.rstrip('/')}/{parts.path.lstrip('/')}" + (f"?{query}" if query else "")


class _Service(_Resource):
    name: str
    builder: dict[str, Any] | None = None
    runner: dict[str, Any] | None = None
    interface: InferenceInterface
    outputViews: list[DataView] = Field(default_factory=list)
    model: dict[str, Any] | None = None

    def output_view(self, id: str) -> DataView:
        """One of the views of the service's outputs.

        Raises:
            SpecError: there is no such view; lists the views.
        """
        views = {view.id: view for view in self.outputViews}
        if id not in views:
            known = f"it has {', '.join(views)}" if views else "it has no output views"
            raise SpecError(f"service {self.name!r} has no output view {id!r}{nearest(id, views)}; {known}")
        return views[id]

    def task(
        self, base: str, *, client: EvaluationClientConfiguration | None = None, version: str | None = None, **more: Any
    ) -> ServiceTask:
        """The service as a task.

        Args:
            base: the URL of the service; the endpoint is a path below it.
            client: how to call it.
            version: the version of the service; see `ServiceTask`.
            more: further parameters of `ServiceTask`, such as headers.

        Raises:
            SpecError: the endpoint is not a path below the base, or duplicate outputs are not to be removed, which a
                run cannot store.
        """
        client = client or EvaluationClientConfiguration()
        if client.duplicateOutputPolicy == "Ignore":
            raise SpecError(
                "duplicateOutputPolicy Ignore would store several outputs of one call; use Deduplicate or Error"
            )
        return ServiceTask(
            _build_url(base, self.interface.endpoint),
            model=str((self.model or {}).get("id") or (self.model or {}).get("name") or self.name),
            version=version,
            client_pipeline=_list_specs(client.inputPipeline),
            input_pipeline=_list_specs(self.interface.inputPipeline),
            output_pipeline=_list_specs(self.interface.outputPipeline),
            output_schema=self.interface.outputSchema.response(),
            on_bad_request="skip" if client.badRequestPolicy == "Skip" else "abort",
            on_duplicate="fail" if client.duplicateOutputPolicy == "Error" else "deduplicate",
            on_missing="ignore" if client.missingOutputPolicy == "Ignore" else "fail",
            **more,
        )


class InferenceService(_Entity, _Service):
    """A model behind an HTTP interface."""

    kind: Literal["InferenceService"] = "InferenceService"


class _ForeignService(_Service):
    id: str
    account: str


class InferenceSessionSpec(_Resource):
    """The service that a session runs."""

    inferenceService: _ForeignService
    replicas: int = 1


class InferenceSession(_Entity, InferenceSessionSpec):
    """A running service."""

    kind: Literal["InferenceSession"] = "InferenceSession"


class Evaluation(_Entity):
    """The outputs of a service for a dataset; in evaluand, a run."""

    kind: Literal["Evaluation"] = "Evaluation"
    dataset: str
    inferenceSession: InferenceSessionSpec
    inferenceSessionReference: str | None = None
    replications: int = 1
    workersPerReplica: int | None = None
    client: EvaluationClientConfiguration = Field(default_factory=EvaluationClientConfiguration)

    def task(self, base: str, *, version: str | None = None, **more: Any) -> ServiceTask:
        """The evaluated service as a task, called as the evaluation configures; see `InferenceService.task`."""
        return self.inferenceSession.inferenceService.task(base, client=self.client, version=version, **more)

    def outputs(self, rows: Any, *, json: bool = False, data: Examples | None = None) -> pa.Table:
        """The outputs of the evaluation, valid against the schema of its service.

        Args:
            rows: mappings, or an Arrow table.
            json: whether the rows have the forms of JSON.
            data: the dataset that they belong to; an `_index_` that it does not have is a fault.

        Raises:
            SchemaError: rows break the schema, or their `_index_`, `_replication_` and `_response_index_` are not valid
                or not unique; lists every fault.
        """
        schema = self.inferenceSession.inferenceService.interface.outputSchema
        return validate_outputs(schema, rows, json=json, indices=None if data is None else data.indices)


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

    def rows(self, evaluation: Evaluation, rows: Any, *, json: bool = False, data: Examples | None = None) -> pa.Table:
        """The outputs that enter the report: of the evaluation, in the report's view of them, if it has one.

        Args:
            evaluation: the evaluation that the report is about.
            rows, json, data: as in `Evaluation.outputs`.

        Raises:
            SchemaError: rows break the schema of the service, or that of the view; lists every fault.
            SpecError: the service has no view with this id.
        """
        view = self.evaluationView
        if isinstance(view, str):
            view = evaluation.inferenceSession.inferenceService.output_view(view)
        outputs = evaluation.outputs(rows, json=json, data=data)
        return outputs if view is None else view.rows(outputs)

    def examples(self, dataset: Dataset, data: Examples) -> Examples:
        """The examples that enter the report: of the dataset, in the report's view of them, if it has one.

        Raises:
            SpecError: the dataset has no view with this id.
            DataError: rows cannot be transformed, or break the schema of the view; lists every fault.
        """
        view = self.datasetView
        if view is None:
            return data
        if isinstance(view, str):
            return dataset.view(data, view)
        return data.view(view.pipeline, schema=view.schema_)
