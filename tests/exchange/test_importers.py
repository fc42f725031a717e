"""Results of other tools become datasets, runs and evaluations with the tools' own counts, scores and totals."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from support.foreign_results import QUESTIONS, WRITERS, inspect_header, inspect_samples, write_inspect, write_langfuse
from support.places import VECTORS_FOLDER
from support.thinned import thinned

from evaluand.core.errors import DataError, EvaluandError
from evaluand.exchange.importer import UnknownFormat, find_importers
from evaluand.exchange.storing import ImportedResult, import_results, save_results
from evaluand.store.opening import open_store
from evaluand.store.store import MemoryStore

RIVALS = VECTORS_FOLDER / "rivals"
SCORERS = dict.fromkeys(("langfuse", "langsmith", "mlflow", "phoenix", "spans"), "exact") | {
    "deepeval": "Exact Match",
    "eval": "match",
    "helm": "exact_match",
    "inspect": "match",
    "lm_eval": "exact_match",
    "openai_evals": "match",
    "promptfoo": "success",
    "ragas": "faithfulness",
}
TOTALS = {"deepeval": 2, "eval": 1, "inspect": 1, "lm_eval": 1, "openai_evals": 1, "promptfoo": 3}


def read(path: Path, store: MemoryStore | None = None) -> ImportedResult:
    return save_results(find_importers(path), store or MemoryStore())


@pytest.mark.parametrize("format", WRITERS)
def test_each_format_is_recognised_and_read_whole(format: str, tmp_path: Path) -> None:
    path = WRITERS[format](tmp_path)
    (found,) = find_importers(path)
    assert found.kind == {"eval": "inspect"}.get(format, format)
    result = save_results([found], MemoryStore())
    assert (result.samples, result.left_out, result.notes) == (3, [], [])
    assert result.agreements == TOTALS.get(format, 0)
    (run,), (evaluation,) = result.runs, result.evaluations
    assert run.counts == {"completed": 3}
    assert evaluation is not None
    table = evaluation.table(SCORERS[format])
    assert table["value"].to_pylist() == [float(right == answered) for _, right, answered in QUESTIONS]
    answers = [json.dumps(response.responses) for response in run]
    assert all(answered in answer for (_, _, answered), answer in zip(QUESTIONS, answers, strict=True))
    inputs = [json.dumps(example.input) for example in run.dataset]
    assert all(asked in text for (asked, _, _), text in zip(QUESTIONS, inputs, strict=True))


@thinned("format", WRITERS, every=3)
def test_importing_a_file_again_changes_nothing(format: str, tmp_path: Path) -> None:
    path, store = WRITERS[format](tmp_path), MemoryStore()
    first, again = read(path, store), read(path, store)
    assert [run.id for run in first.runs] == [run.id for run in again.runs]
    assert [each and each.id for each in first.evaluations] == [each and each.id for each in again.evaluations]


def test_a_score_that_is_not_a_number_abstains(tmp_path: Path) -> None:
    (evaluation,) = read(WRITERS["ragas"](tmp_path)).evaluations
    assert evaluation is not None
    table = evaluation.table("answer_relevancy")
    assert table["status"].to_pylist() == ["scored", "abstained", "abstained"]
    assert table["reason"].to_pylist()[1] == "the score in the file is nan"


def edit_inspect(tmp_path: Path, change: Any) -> ImportedResult:
    samples, header = inspect_samples(), inspect_header()
    change(samples, header)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({**header, "samples": samples}))
    return read(path)


def test_epochs_are_replications_and_what_is_missing_has_failed(tmp_path: Path) -> None:
    def change(samples: list[dict[str, Any]], header: dict[str, Any]) -> None:
        samples.append({**samples[0], "epoch": 2})
        header["results"]["scores"] = []

    (run,) = edit_inspect(tmp_path, change).runs
    assert run.manifest["spec"]["replications"] == 2
    assert run.counts == {"completed": 4, "failed": 2}
    assert run.failures == {"NotRecorded": 2}


def test_errors_are_failed_rows_and_answers_that_a_limit_ended_keep_their_scores(tmp_path: Path) -> None:
    def change(samples: list[dict[str, Any]], header: dict[str, Any]) -> None:
        samples[0]["error"] = {"message": "ValueError('no')", "traceback": "…"}
        del samples[0]["scores"]
        samples[1]["limit"] = {"type": "token", "limit": 10}
        header["results"]["scores"][0]["metrics"]["accuracy"]["value"] = 0.5  # as Inspect counts it: without errors

    result = edit_inspect(tmp_path, change)
    (run,), (evaluation,) = result.runs, result.evaluations
    assert (run.failures, result.agreements, result.notes) == ({"ValueError": 1}, 1, [])
    assert [each.responses for each in run] == [None, ["10"], ["10"]]
    assert evaluation is not None
    assert evaluation.table("match")["status"].to_pylist() == ["failed", "scored", "scored"]
    spans = [row for batch in run.spans() for row in batch.to_pylist() if row["name"] == "limit"]
    assert [(row["_index_"], json.loads(row["attributes"])) for row in spans] == [(1, {"limit": "token", "value": 10})]


def test_a_total_that_differs_is_named(tmp_path: Path) -> None:
    def change(samples: list[dict[str, Any]], header: dict[str, Any]) -> None:
        header["results"]["scores"][0]["metrics"]["accuracy"]["value"] = 0.9

    result = edit_inspect(tmp_path, change)
    assert result.agreements == 0
    assert result.notes == [
        "changed.json: the file states 0.9 as the mean of match for m, and the imported scores have 0.666667"
    ]


def test_rows_that_are_no_samples_are_named_and_the_others_imported(tmp_path: Path) -> None:
    def change(samples: list[Any], header: dict[str, Any]) -> None:
        del samples[0]["input"]
        samples[1] = 7
        samples.append(samples[2])
        header["results"]["scores"] = []

    result = edit_inspect(tmp_path, change)
    assert result.samples == 1
    assert [fault.where.rpartition(": ")[2] for fault in result.left_out] == ["samples[0]", "samples[1]", "samples[3]"]
    assert [fault.message for fault in result.left_out] == [
        "there is no 'input'",
        "this is the integer 7, not an object",
        "example 2, repeat 1, is in the file already",
    ]


def test_a_score_of_several_values_is_several_scorers_with_their_totals(tmp_path: Path) -> None:
    def change(samples: list[dict[str, Any]], header: dict[str, Any]) -> None:
        for sample in samples:
            sample["scores"] = {"both": {"value": {"length": len(sample["input"]), "right": "C"}}}
        stated = [("length", "mean", 5.0), ("right", "accuracy", 1.0)]
        header["results"]["scores"] = [
            {"name": name, "scorer": "both", "metrics": {metric: {"value": value}}} for name, metric, value in stated
        ]

    result = edit_inspect(tmp_path, change)
    assert (result.agreements, result.notes) == (2, [])
    (evaluation,) = result.evaluations
    assert evaluation is not None
    assert evaluation.scorers == ["both.length", "both.right"]


def test_only_totals_of_means_over_epochs_are_compared(tmp_path: Path) -> None:
    def change(samples: list[dict[str, Any]], header: dict[str, Any]) -> None:
        header["eval"]["config"]["epochs_reducer"] = ["at_least_2", "mean"]
        (mean,) = header["results"]["scores"]
        other = {**mean, "reducer": "at_least_2", "metrics": {"accuracy": {"value": 0.0}}}
        header["results"]["scores"] = [other, {**mean, "reducer": "mean"}]

    result = edit_inspect(tmp_path, change)
    assert (result.agreements, result.notes) == (1, [])


def test_texts_that_a_log_stores_once_are_put_in_their_places(tmp_path: Path) -> None:
    def change(samples: list[dict[str, Any]], header: dict[str, Any]) -> None:
        samples[0]["attachments"] = {"0a": "a long text"}
        samples[0]["input"] = "attachment://0a"

    (run,) = edit_inspect(tmp_path, change).runs
    assert next(iter(run.dataset)).input == "a long text"


def test_calls_of_models_and_tools_are_spans_with_their_messages(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "1 + 7"}
    call = {"id": "1", "function": "add", "arguments": {"x": 1}}
    replied = {"role": "assistant", "content": [{"type": "text", "text": "let me add"}], "tool_calls": [call]}

    def change(samples: list[dict[str, Any]], header: dict[str, Any]) -> None:
        at = "2026-11-22T09:32:58.940726+00:00"
        output = {"choices": [{"message": replied}], "usage": {"input_tokens": 9, "output_tokens": 3}}
        samples[0]["events_data"] = {"messages": [asked, replied]}
        samples[0]["events"] = [
            {"event": "model", "model": "m", "timestamp": at, "input": [], "input_refs": [[0, 1]], "output": output},
            {"event": "tool", "function": "add", "timestamp": at, "arguments": {"x": 1}, "result": "8"},
            {"event": "score"},
        ]

    (run,) = edit_inspect(tmp_path, change).runs
    rows = [row for batch in run.spans() for row in batch.to_pylist() if row["_index_"] == 0]
    assert [(row["name"], row["kind"], row["start"].total_seconds()) for row in rows] == [
        ("m", "llm", 0.1),
        ("add", "tool", 0.1),
    ]
    assert json.loads(rows[0]["input"]) == [asked]
    said = json.loads(rows[0]["output"])
    assert said["content"] == "let me add"
    assert said["tool_calls"] == [{"id": "1", "function": {"name": "add", "arguments": {"x": 1}}}]
    assert (json.loads(rows[1]["input"]), json.loads(rows[1]["output"])) == ({"x": 1}, "8")


def test_an_absurd_number_of_repeats_is_named(tmp_path: Path) -> None:
    def change(samples: list[dict[str, Any]], header: dict[str, Any]) -> None:
        samples[0]["epoch"] = 10**9
        samples[1]["epoch"] = 0
        header["results"]["scores"] = []

    result = edit_inspect(tmp_path, change)
    assert result.samples == 1
    assert [fault.message for fault in result.left_out] == [
        "its repeat, 1,000,000,000, must be between 1 and 10,000",
        "its repeat, 0, must be between 1 and 10,000",
    ]


def test_names_in_a_file_are_no_paths(tmp_path: Path) -> None:
    def change(samples: list[dict[str, Any]], header: dict[str, Any]) -> None:
        header["eval"] |= {"task": "../../task", "model": "\x1b[31m/../m\n"}
        samples[0]["scores"]["../../../out\x00"] = {"value": 1}
        header["results"]["scores"] = []

    samples, header = inspect_samples(), inspect_header()
    change(samples, header)
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**header, "samples": samples}))
    store = open_store(tmp_path / "inner" / "store")
    result = import_results(path, store)
    (evaluation,) = result.evaluations
    assert evaluation is not None
    assert evaluation.scorers == ["../../../out_", "match"]
    assert evaluation.table("../../../out_")["value"].to_pylist() == [1.0, None, None]
    assert {each.name for each in tmp_path.iterdir()} == {"log.json", "inner"}
    assert {each.name for each in (tmp_path / "inner").iterdir()} == {"store"}


def test_examples_that_share_an_id_have_ids_of_their_own(tmp_path: Path) -> None:
    def change(samples: list[dict[str, Any]], header: dict[str, Any]) -> None:
        samples[0]["id"] = samples[1]["id"] = "a"
        samples[2]["id"] = "a (2)"
        header["results"]["scores"] = []

    (run,) = edit_inspect(tmp_path, change).runs
    assert [example.id for example in run.dataset] == ["a", "a (3)", "a (2)"]


def test_a_file_without_samples_is_refused(tmp_path: Path) -> None:
    def change(samples: list[Any], header: dict[str, Any]) -> None:
        samples.clear()

    with pytest.raises(DataError, match="has no samples"):
        edit_inspect(tmp_path, change)


def test_a_file_of_no_known_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    path.write_text('[{"question": "?", "answer": "!"}]')
    with pytest.raises(UnknownFormat, match="of no format that is recognised"):
        find_importers(path)


def test_credentials_in_a_file_are_not_stored(tmp_path: Path) -> None:
    path = write_inspect(tmp_path)
    document = json.loads(path.read_text())
    document["eval"]["model_args"] = {"api_key": "sk-live-0123456789abcdefghij", "temperature": 0}
    path.write_text(json.dumps(document))
    (run,) = read(path).runs
    said = run.manifest["provenance"]["origin"]["stated"]
    assert said["model_args"] == {"api_key": "[hidden]", "temperature": 0}


def test_two_systems_are_two_runs_over_one_dataset(tmp_path: Path) -> None:
    paths = []
    for model in ("a", "b"):
        document = {**inspect_header(), "samples": inspect_samples()}
        document["eval"]["model"] = model
        document["samples"][0]["output"]["completion"] = model
        paths.append(tmp_path / f"{model}.json")
        paths[-1].write_text(json.dumps(document))
    result = save_results([importer for path in paths for importer in find_importers(path)], MemoryStore())
    assert [run.name for run in result.runs] == ["addition/a", "addition/b"]
    assert len({run.manifest["spec"]["dataset"] for run in result.runs}) == 1
    assert [aggregation.labels for aggregation in result.aggregations] == [["addition/a", "addition/b"]]


def test_two_logs_of_one_system_are_two_runs(tmp_path: Path) -> None:
    first = write_inspect(tmp_path)
    second = tmp_path / "again.json"
    second.write_text(first.read_text().replace('"C"', '"I"'))
    result = import_results([first, second], MemoryStore())
    assert (result.samples, result.left_out) == (6, [])
    assert [run.name for run in result.runs] == ["addition/m", "addition/m (2)"]
    assert [each.labels for each in result.aggregations] == [["addition/m", "addition/m (2)"]]


def test_observations_become_spans_with_their_parents(tmp_path: Path) -> None:
    (run,) = read(write_langfuse(tmp_path)).runs
    rows = [row for batch in run.spans() for row in batch.to_pylist()]
    assert [(row["_index_"], row["name"], row["kind"], row["parent"]) for row in rows] == [
        (number, "ask", "llm", 0) for number in range(3)
    ]
    assert rows[0]["start"].total_seconds() == 0.1
    assert rows[0]["duration"].total_seconds() == 0.2


def mutate_bytes(content: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(content) + 1)
        length = chance.choice([1, 1, 4, 40, len(content)])
        inserted = chance.choice([b"", b"", b"\xff", b'"', b"}", b"[", b"null", b"1e999", content[at : at + 30]])
        content = content[:at] + inserted + content[at + length :]
    return content


OTHER_VALUES = [None, True, -1, 1e300, 10**30, "", "x" * 300, "\ud800", [], {}, [[]], {"a": 1}]


def mutate_values(value: Any, chance: random.Random) -> Any:
    """JSON with one value replaced, or one member removed."""
    places: list[tuple[Any, Any]] = []

    def visit(each: Any) -> None:
        for key in [*each] if isinstance(each, dict) else range(len(each)):
            places.append((each, key))
            if isinstance(each[key], dict | list):
                visit(each[key])

    visit(value)
    if places:
        holder, key = chance.choice(places)
        if isinstance(holder, dict) and chance.random() < 0.3:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(chance.choice(OTHER_VALUES))
    return value


def rows_in(document: Any) -> int:
    """How many samples a document has, found without an importer; 0 where its rows are only parts of samples."""
    for keys in ((), ("testCases",), ("samples",), ("results", "results"), ("data",)):
        found = document
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, list):
            return len(found)
    return 0


def check_mutated(path: Path, seed: int) -> None:
    """A mutated file is imported or refused in words; every sample of JSON that was read is stored or named."""
    chance = random.Random(seed)
    target = path.parent / "mutated" / path.name
    if not target.parent.exists():
        target.parent.mkdir()
        for other in path.parent.iterdir():
            if other.is_file():
                (target.parent / other.name).write_bytes(other.read_bytes())
    content = path.read_bytes()
    by_value = path.suffix == ".json" and chance.random() < 0.6
    n_rows = 0
    if by_value:
        document = mutate_values(json.loads(content), chance)
        n_rows, changed = rows_in(document), json.dumps(document).encode()
    elif path.suffix == ".jsonl" and chance.random() < 0.6:
        lines = [json.loads(line) for line in content.splitlines()]
        number = chance.randrange(len(lines))
        lines[number] = mutate_values(lines[number], chance)
        n_rows = len(lines) if path.name.startswith("samples_") else 0  # other lines are parts of samples
        changed = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    else:
        changed = mutate_bytes(content, chance)
    target.write_bytes(changed)
    try:
        (importer,) = find_importers(target)
        read = []
        records = importer.records
        importer.records = lambda: (read.append(1) or record for record in records())  # type: ignore
        result = save_results([importer], MemoryStore())
    except EvaluandError:
        return
    assert max(n_rows, len(read)) <= result.samples + len(result.left_out)
    assert sum(run.counts.get("completed", 0) for run in result.runs) <= result.samples


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("format", WRITERS)
def test_changed_files_lose_nothing_in_silence(format: str, tmp_path: Path) -> None:
    path = WRITERS[format](tmp_path)
    for seed in range(5):
        check_mutated(path, seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("format", WRITERS)
def test_hundreds_of_changed_files_lose_nothing_in_silence(format: str, tmp_path: Path) -> None:
    path = WRITERS[format](tmp_path)
    for seed in range(5, 505):
        check_mutated(path, seed)


needs_rivals = pytest.mark.skipif(not RIVALS.is_dir(), reason="the result files of other tools are not there")


@needs_rivals
@pytest.mark.parametrize(
    ("file", "samples", "agreements"),
    [
        ("inspect/addition.eval", 12, 2),
        ("inspect/addition.json", 12, 2),
        ("lm_eval/results_2026-11-22T09-36-27.188943.json", 12, 3),
        ("lm_eval", 12, 3),
        ("promptfoo/out.json", 12, 12),
        ("deepeval/test_run_20261122_093426.json", 6, 4),
        ("deepeval/evaluate_result.json", 6, 0),
        ("mlflow/eval_results.json", 6, 0),
    ],
)
def test_files_that_the_tools_wrote(file: str, samples: int, agreements: int) -> None:
    result = read(RIVALS / file)
    assert (result.samples, result.agreements) == (samples, agreements)
    assert (result.left_out, result.notes) == ([], [])
    assert sum(run.counts["completed"] for run in result.runs) == samples


@needs_rivals
def test_both_forms_of_an_inspect_log_are_the_same() -> None:
    (one,), (other,) = (read(RIVALS / "inspect" / name).runs for name in ("addition.eval", "addition.json"))
    assert one.digest == other.digest
    assert one.dataset.id == other.dataset.id


@needs_rivals
def test_scores_of_mlflow_are_those_of_its_table() -> None:
    rows = json.loads((RIVALS / "mlflow" / "eval_results.json").read_text())
    (evaluation,) = read(RIVALS / "mlflow" / "eval_results.json").evaluations
    assert evaluation is not None
    assert evaluation.table("exact")["value"].to_pylist() == [float(row["exact/value"]) for row in rows]
