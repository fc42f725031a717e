"""The names of Dyff's document: resources as the platform writes them, and what evaluand makes of them."""

from __future__ import annotations

import importlib
import json
import operator
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.fresh import run_python

from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.data.schema import Schema, SchemaError
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.output_view import OutputView
from evaluand.evaluation.scorer import as_scorer
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.interop import dyff
from evaluand.interop.dyff import adapters, ids, platform
from evaluand.interop.dyff.pydantic import DyffSchemaBaseModel
from evaluand.run.runner import Runner
from evaluand.store.store import MemoryStore

ID, ACCOUNT = "0123456789abcdef0123456789abcdef", "acc"
OUTPUT = platform.DataSchema.make_output_schema(platform.DyffDataSchema(components=["text.Text"])).model_dump()
INPUT = platform.DataSchema.make_input_schema("text.Text").model_dump()
TO_PROMPT = {"kind": "TransformJSON", "configuration": {"prompt": "$.text", "n": 2}}
TO_ROWS = {"kind": "ExplodeCollections", "configuration": {"collections": ["text"]}}
ENTITY = {
    "id": ID,
    "account": ACCOUNT,
    "schemaVersion": "0.1",
    "labels": {"a": "b"},
    "status": "Ready",
    "annotations": [],
}
SERVICE = {
    "name": "completer",
    "model": {"id": "m" * 32, "account": ACCOUNT, "name": "llm", "artifact": {"kind": "Mock"}},
    "interface": {
        "endpoint": "generate",
        "outputSchema": OUTPUT,
        "inputPipeline": [TO_PROMPT],
        "outputPipeline": [TO_ROWS],
    },
    "outputViews": [],
}
RESOURCES = {
    "Dataset": {
        **ENTITY,
        "kind": "Dataset",
        "name": "sums",
        "artifacts": [{"path": "a.parquet", "digest": {"md5": None}}],
        "schema": INPUT,
        "views": [{"id": "v1", "viewOf": ID, "schema": INPUT, "adapterPipeline": [TO_PROMPT]}],
    },
    "Model": {
        **ENTITY,
        "kind": "Model",
        "name": "llm",
        "artifact": {"kind": "HuggingFaceCache"},
        "source": {"kind": "Mock"},
        "resources": {"storage": "1Gi"},
    },
    "InferenceService": {**ENTITY, "kind": "InferenceService", **SERVICE},
    "InferenceSession": {
        **ENTITY,
        "kind": "InferenceSession",
        "inferenceService": {**SERVICE, "id": ID, "account": ACCOUNT},
        "replicas": 2,
        "useSpotPods": True,
    },
    "Evaluation": {
        **ENTITY,
        "kind": "Evaluation",
        "dataset": ID,
        "replications": 2,
        "inferenceSession": {"inferenceService": {**SERVICE, "id": ID, "account": ACCOUNT}, "replicas": 1},
        "client": {
            "badRequestPolicy": "Skip",
            "requestTimeoutSeconds": 5,
            "inputPipeline": [{"kind": "Drop", "configuration": {"fields": ["name"]}}],
        },
    },
    "Report": {
        **ENTITY,
        "kind": "Report",
        "rubric": "text.WordErrors",
        "evaluation": ID,
        "dataset": ID,
        "inferenceService": ID,
        "datasetView": {"id": "v1", "viewOf": ID, "schema": INPUT, "adapterPipeline": None},
    },
}


PROMPT = {
    "type": "object",
    "properties": {"prompt": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["prompt", "n"],
}
VIEW = {
    "id": "v1",
    "viewOf": ID,
    "schema": platform.DataSchema.make_input_schema(PROMPT).model_dump(),
    "adapterPipeline": [TO_PROMPT],
}
PROMPTS = {**RESOURCES["Dataset"], "views": [VIEW]}


@pytest.mark.parametrize("kind", RESOURCES)
def test_a_resource_is_written_as_it_was_read(kind: str) -> None:
    text = json.dumps(RESOURCES[kind])
    assert json.loads(getattr(platform, kind).model_validate_json(text).to_json()) == RESOURCES[kind]


def test_a_view_of_a_dataset_is_found_by_its_id() -> None:
    resource = platform.Dataset.model_validate(PROMPTS)
    seen = resource.view(Dataset.from_rows([{"text": "2 + 2"}]), "v1")
    assert [example.input for example in seen] == [{"prompt": "2 + 2", "n": 2}]


def test_a_view_that_a_dataset_does_not_have_is_reported_with_those_it_has() -> None:
    resource = platform.Dataset.model_validate(RESOURCES["Dataset"])
    with pytest.raises(SpecError, match=r"dataset 'sums' has no view 'v2'; it has v1"):
        resource.view(Dataset.from_rows([{"text": "2 + 2"}]), "v2")


def test_the_modules_are_there_without_an_import_of_their_own() -> None:
    code = "import evaluand.interop.dyff as d; print(d.platform.Dataset.__name__, *(getattr(d, n) for n in d.__all__))"
    done = run_python(code)
    assert done.stdout.startswith("Dataset <module 'evaluand.interop.dyff.adapters'")
    with pytest.raises(AttributeError, match="has no attribute 'plattform'; it has adapters, "):
        _ = dyff.plattform
    assert all(name in str(dyff.__doc__) for name in dyff.__all__)


def test_names_of_adapters_and_what_makes_them() -> None:
    known = adapters.known_adapters()
    assert sorted(known) == [
        "Drop",
        "EmbedIndex",
        "ExplodeCollections",
        "FileUpload",
        "FlattenHierarchy",
        "Map",
        "Pipeline",
        "Rename",
        "Select",
        "TransformJSON",
    ]
    pipeline = adapters.create_pipeline(
        [TO_PROMPT, adapters.create_adapter({"kind": "Drop", "configuration": {"fields": ["n"]}})]
    )
    assert list(pipeline([{"text": "a"}])) == [{"prompt": "a"}]
    assert isinstance(adapters.create_adapter(TO_ROWS), known["ExplodeCollections"])


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (
            "platform",
            "DataSchema DataSchema.make_input_schema DataSchema.make_output_schema DyffDataSchema Dataset Evaluation "
            "InferenceService InferenceSession Report",
        ),
        ("adapters", "ExplodeCollections FlattenHierarchy TransformJSON"),
        ("arrow", "decode_schema"),
        ("pydantic", "DyffSchemaBaseModel"),
        ("text", "Text"),
    ],
)
def test_every_name_of_the_document_is_there(module: str, names: str) -> None:
    found = importlib.import_module(f"evaluand.interop.dyff.{module}")
    for name in names.split():
        assert callable(operator.attrgetter(name)(found))


REPLICATIONS = [ids.replication_id(ID, number) for number in (0, 1)]


def output(index: Any, replication: Any, *texts: Any) -> dict[str, Any]:
    items = [{"_response_index_": number, "text": text} for number, text in enumerate(texts)]
    return {"_index_": index, "_replication_": replication, "responses": items}


def test_a_dataset_applies_the_schema_that_it_has(tmp_path: Path) -> None:
    resource = platform.Dataset.model_validate(RESOURCES["Dataset"])
    data = resource.examples([{"_index_": 3, "text": "a"}, {"_index_": 1, "text": "b"}])
    assert [(each.index, each.input) for each in data] == [(1, {"text": "b"}), (3, {"text": "a"})]
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}\n{"txet": "b"}\n')
    with pytest.raises(DataError, match=r"rows\.jsonl:2:text: is missing \(there is 'txet'\)"):
        resource.examples(tmp_path / "rows.jsonl")
    with pytest.raises(DataError, match="table:n: is not a field"):
        resource.examples(pa.table({"text": ["a"], "n": [1]}))


def test_the_rows_of_a_view_of_a_dataset_are_validated_against_its_schema() -> None:
    data = Dataset.from_rows([{"text": "2 + 2"}, {"text": "3"}])
    broken = {**VIEW, "adapterPipeline": [{**TO_PROMPT, "configuration": {"prompt": "$.text", "n": "two"}}]}
    resource = platform.Dataset.model_validate({**PROMPTS, "views": [broken]})
    with pytest.raises(DataError) as raised:
        resource.view(data, "v1")
    assert str(raised.value) == (
        "rows[0]: _index_ 0: input.n is text ('two'), not an integer: it does not fit the schema of the view"
        " (2 rows fail this way: _index_ 0, 1)"
    )


def test_outputs_are_validated_when_they_are_read() -> None:
    evaluation = platform.Evaluation.model_validate(RESOURCES["Evaluation"])
    rows = [output(0, REPLICATIONS[0], "a", "b"), output(0, REPLICATIONS[1], "a"), output(1, REPLICATIONS[0])]
    assert evaluation.outputs(rows).num_rows == 3
    assert evaluation.outputs(evaluation.outputs(rows)).to_pylist() == rows
    tagged = output(2, REPLICATIONS[0], "a", "b")
    tagged["responses"][1]["_response_index_"] = 0  # both items are one response
    assert evaluation.outputs([tagged]).to_pylist() == [tagged]
    wrong = [
        *rows,
        output(0, REPLICATIONS[0], "a"),
        output(1, "1", "a"),
        output(7, str(uuid.UUID(REPLICATIONS[0])), 3),
        {"_index_": 1, "_replication_": REPLICATIONS[0], "responses": []},
    ]
    with pytest.raises(SchemaError) as raised:
        evaluation.outputs(wrong, data=Dataset.from_rows([{"text": "a"}, {"text": "b"}]))
    assert str(raised.value).split("\n") == [
        "row 3 (_index_ 0): responses[]._response_index_: row 0 has the same _index_, _replication_ and "
        "_response_index_ 0; give each response one row",
        "row 4 (_index_ 1): _replication_: '1' is not a UUID; give replication_id(evaluation, number)",
        "row 5 (_index_ 7): responses[0].text: is an integer (3), not text",
        "row 5 (_index_ 7): _index_: 7 is not an _index_ of the dataset",
        "row 6 (_index_ 1): _replication_: row 2 has the same _index_ and _replication_; keep one",
    ]
    assert raised.value.counts.total() == 5


def report(view: Any) -> platform.Report:
    return platform.Report.model_validate({**RESOURCES["Report"], "evaluationView": view})


def test_rows_that_enter_a_report_are_validated_against_the_schema_of_its_view() -> None:
    evaluation = platform.Evaluation.model_validate(RESOURCES["Evaluation"])
    label = platform.DataSchema.make_output_schema("classification.Label").model_dump()
    to_label = {"kind": "Rename", "configuration": {"text": "label"}}
    view = {"id": "labels", "viewOf": ID, "schema": label, "adapterPipeline": [to_label]}
    rows = [output(0, REPLICATIONS[0], "a", "b")]
    assert report(view).rows(evaluation, rows).to_pylist() == [
        {
            "_index_": 0,
            "_replication_": REPLICATIONS[0],
            "responses": [{"_response_index_": 0, "label": "a"}, {"_response_index_": 1, "label": "b"}],
        }
    ]
    assert report(None).rows(evaluation, rows).to_pylist() == rows
    with pytest.raises(SchemaError, match=r"responses\[1\]\.text: is null"):
        report(view).rows(evaluation, [output(0, REPLICATIONS[0], "a", None)])
    unlike = {**view, "adapterPipeline": None}
    with pytest.raises(SchemaError, match=r"responses\[0\]\.label: is missing"):
        report(unlike).rows(evaluation, rows)
    dropping = {**view, "adapterPipeline": [{"kind": "Select", "configuration": {"fields": ["label"]}}]}
    with pytest.raises(SchemaError, match=r"row 0 \(_index_ 0\): responses\[0\]: .*there is no field 'label'"):
        report(dropping).rows(evaluation, rows)
    with pytest.raises(SpecError, match="service 'completer' has no output view 'labels'; it has no output views"):
        report("labels").rows(evaluation, rows)


def test_the_examples_of_a_report_are_those_of_its_view() -> None:
    dataset = platform.Dataset.model_validate(PROMPTS)
    data = dataset.examples([{"text": "a"}])
    for view in (VIEW, "v1"):
        resource = platform.Report.model_validate({**RESOURCES["Report"], "datasetView": view})
        assert [each.input for each in resource.examples(dataset, data)] == [{"prompt": "a", "n": 2}]


def test_an_output_that_breaks_the_schema_of_a_view_has_no_score() -> None:
    run = Runner().run(
        lambda text: {"said": text if text == "a" else 3}, Dataset.from_rows([{"input": "a"}, {"input": "b"}])
    )
    label = platform.DataSchema.make_output_schema("classification.Label").model_dump()
    to_label = {"kind": "Rename", "configuration": {"said": "label"}}
    view = platform.DataView.model_validate(
        {"id": "labels", "viewOf": ID, "schema": label, "adapterPipeline": [to_label]}
    )
    graded = Evaluator().evaluate(run, {"long": view.output_view(as_scorer("long", lambda output: 1.0))})
    rows = graded.table("long").to_pylist()
    assert [row["status"] for row in rows] == ["scored", "failed"]
    assert "output.label is an integer (3), not text: it does not fit the schema of the view" in rows[1]["reason"]


def test_a_model_of_ones_own_makes_an_output_schema() -> None:
    class Counted(DyffSchemaBaseModel):
        n: int

    assert platform.DataSchema.make_output_schema(Counted).response() == Schema.of(Counted)


def test_the_schema_of_one_response_is_that_of_what_outputs_were_made_of() -> None:
    assert platform.DataSchema.model_validate(OUTPUT).response() == Schema.of("text.Text")
    with pytest.raises(SpecError, match="a schema of outputs has a list 'responses'"):
        platform.DataSchema.model_validate(INPUT).response()


@pytest.fixture
def server() -> Iterator[Any]:
    """A service that completes a prompt twice; "bad" it refuses, and of "odd" it gives numbers."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, body))
            texts = [3, 4] if body["prompt"] == "odd" else [f"{body['prompt']} 1", f"{body['prompt']} 2"]
            answer = json.dumps({"text": texts}).encode()
            self.send_response(400 if body["prompt"] == "bad" else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}", asked
    made.shutdown()
    made.server_close()


def test_an_evaluation_is_run_as_it_says(server: Any) -> None:
    base, asked = server
    resource = platform.Evaluation.model_validate(RESOURCES["Evaluation"])
    rows = [{"text": text, "name": "private", "expected": f"{text} 1"} for text in ("good", "bad", "odd")]
    examples = Dataset.from_rows(rows, input=["text", "name"])
    run = Runner(MemoryStore(), resource.client.policy(concurrency=2)).run(
        resource.task(base, version="1"), examples, replications=resource.replications
    )
    assert run.counts == {"completed": 2, "skipped": 2, "failed": 2}
    assert {path for path, _ in asked} == {"/generate"}
    assert all(body == {"prompt": body["prompt"], "n": 2} for _, body in asked)
    good = [response.responses for response in run if response.index == 0]
    assert good == [[{"text": "good 1"}, {"text": "good 2"}]] * 2
    text = OutputView(ExactMatch(), [{"kind": "TransformJSON", "configuration": "$.text"}])
    graded = Evaluator().evaluate(run, {"right": text}).table("right").to_pylist()
    assert [row["value"] for row in graded if row["_index_"] == 0] == [1.0, 0.0] * 2


def service(endpoint: str) -> platform.InferenceService:
    interface = {**SERVICE["interface"], "endpoint": endpoint}  # type: ignore[dict-item]
    return platform.InferenceService.model_validate({**RESOURCES["InferenceService"], "interface": interface})


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://other.example/x",
        "//other.example/x",
        "../../admin",
        "v1/../../admin",
        "v1/%2e%2E/admin",
        "..\\admin",
        "http://[",
    ],
)
def test_an_endpoint_cannot_lead_away_from_where_credentials_are_sent(endpoint: str) -> None:
    with pytest.raises(SpecError, match=r"interface\.endpoint is .*; give a path below the address of the service"):
        service(endpoint).task("https://models.example/team", headers={"Authorization": "Bearer ${TOKEN}"})


def test_an_endpoint_names_no_variable() -> None:
    with pytest.raises(SpecError, match=r"interface\.endpoint is .*; a variable is not replaced in it"):
        service("generate?x=${AWS_SECRET_ACCESS_KEY}").task("https://models.example/team")


@pytest.mark.parametrize(
    ("base", "endpoint", "url"),
    [
        ("https://m.example/a", "generate", "https://m.example/a/generate"),
        ("https://m.example/a/", "/v1/generate", "https://m.example/a/v1/generate"),
        ("https://m.example/a?x=1", "generate", "https://m.example/a/generate?x=1"),
        ("https://m.example?x=1", "models/m:predict?y=2", "https://m.example/models/m:predict?x=1&y=2"),
    ],
)
def test_an_endpoint_is_a_path_below_the_base_which_keeps_its_query(base: str, endpoint: str, url: str) -> None:
    assert service(endpoint).task(base).url == url


def test_a_policy_of_the_client_is_a_policy_of_the_run() -> None:
    policy = platform.EvaluationClientConfiguration().policy()
    assert (policy.timeout, policy.total_timeout, policy.retries) == (30, 7200, 120)


def test_the_delay_between_tries_is_the_one_that_the_client_says_each_time() -> None:
    for seconds in (1, 30, 90):
        policy = platform.EvaluationClientConfiguration(transientErrorRetryDelaySeconds=seconds).policy()
        assert {policy.pause(attempts) for attempts in range(1, 121)} == {seconds}


def test_the_size_of_a_client_s_batches_is_stored_and_changes_no_request(server: Any) -> None:
    base, asked = server
    client = {**RESOURCES["Evaluation"]["client"], "batchSize": 2, "extraOptions": {"a": "b"}}  # type: ignore[dict-item]
    resource = platform.Evaluation.model_validate({**RESOURCES["Evaluation"], "client": client})
    assert json.loads(resource.to_json())["client"] == client
    rows = Dataset.from_rows([{"text": text, "name": "x"} for text in "ab"], input=["text", "name"])
    assert Runner().run(resource.task(base), rows).counts == {"completed": 2}
    assert sorted(body["prompt"] for _, body in asked) == ["a", "b"]
    assert resource.task(base, batch=2).batch == 2


def test_policies_that_a_run_cannot_keep_are_refused() -> None:
    resource = platform.Evaluation.model_validate(RESOURCES["Evaluation"])
    resource.client.duplicateOutputPolicy = "Ignore"
    with pytest.raises(SpecError, match="duplicateOutputPolicy Ignore"):
        resource.task("http://127.0.0.1/")
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        platform.EvaluationClientConfiguration(transientErrorRetryLimit=-1)
