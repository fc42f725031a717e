"""`evaluand import` of other tools' results, at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.foreign_results import write_deepeval, write_inspect, write_ragas

from evaluand.cli import main
from evaluand.exchange.storing import import_results
from evaluand.store.store import MemoryStore


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_imported_results_can_be_shown_compared_and_reported(folder: Path) -> None:
    one = write_inspect(folder)
    other = folder / "other.json"
    other.write_text(one.read_text().replace('"model": "m"', '"model": "n"').replace('"C"', '"I"'))
    imported = call("import", one, other)
    assert imported.exit_code == 0, imported.output
    assert "6 samples of inspect imported" in imported.output
    assert "addition/m" in imported.output
    assert "0.667" in imported.output
    assert "1 total of the files: equal" in imported.output
    assert (
        "other.json: the file states 0.666667 as the mean of match for n, and the imported scores have 0"
        in imported.output
    )
    assert "addition/n" in call("show", "addition").output
    compared = call("compare", "addition/m", "addition/n")
    assert compared.exit_code == 0, compared.output
    assert "match" in compared.output
    assert call("report", "addition", "--output", "page.html").exit_code == 0


def test_json_lists_what_was_stored_and_what_was_left_out(folder: Path) -> None:
    path = write_ragas(folder)
    rows = [*json.loads(path.read_text()), {"response": "without a question"}]
    path.write_text(json.dumps(rows))
    facts = json.loads(call("import", path, "--json").stdout)
    assert facts["samples"] == 3
    (left_out,) = facts["left_out"]
    assert left_out["where"].endswith("ragas.json: [3]")
    assert left_out["reason"] == "there is no 'user_input'"
    assert [run["counts"] for run in facts["runs"]] == [{"completed": 3}]


def test_a_row_with_half_an_emoji_counts_as_failed_and_the_import_as_incomplete(folder: Path) -> None:
    path = write_ragas(folder)
    path.write_text(path.read_text().replace('"10"', '"10 \\ud83d"', 1))
    imported = call("import", path)
    assert imported.exit_code == 1
    assert "3 samples of ragas imported" in imported.output
    assert "ragas.json: [1]: has half of a character (a lone surrogate, such as half an emoji)" in imported.output
    assert "so the row counts as failed; mend the text there" in imported.output
    result = import_results(path, MemoryStore())
    assert [run.counts for run in result.runs] == [{"completed": 2, "failed": 1}]
    assert result.evaluations[0].counts["faithfulness"] == {"scored": 2, "failed": 1}
    assert "half of a character" in call("show", "ragas").output


WEB_SPAN = {
    "traceId": "0a" * 16,
    "spanId": "0b" * 8,
    "name": "GET /chat",
    "startTimeUnixNano": "1700000000000000000",
    "endTimeUnixNano": "1700000000900000000",
    "attributes": [{"key": "http.method", "value": {"stringValue": "GET"}}],
}
OF_OTHER_CONVENTIONS = [{"key": "traceloop.entity.input", "value": {"stringValue": "Who wrote Emma?"}}]


def write_span(folder: Path, attributes: object) -> Path:
    path = folder / "spans.json"
    spans = [{**WEB_SPAN, "attributes": attributes}]
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    return path


@pytest.mark.parametrize("attributes", [WEB_SPAN["attributes"], OF_OTHER_CONVENTIONS], ids=["web", "traceloop"])
def test_an_import_of_spans_of_which_nothing_is_read_fails(folder: Path, attributes: object) -> None:
    path = write_span(folder, attributes)
    imported = call("import", path)
    assert imported.exit_code == 1
    assert "no sample has an input, an output, a score or a call of a model" in imported.output
    [fault] = import_results(path, MemoryStore()).unreadable
    assert "of spans, the attributes of OpenInference and of OpenTelemetry's gen_ai are read" in str(fault)


def test_spans_of_a_model_without_its_messages_are_imported(folder: Path) -> None:
    said = {"openinference.span.kind": "LLM", "llm.model_name": "small"}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
    path = write_span(folder, attributes)
    imported = call("import", path)
    assert imported.exit_code == 0, imported.output
    assert "have calls of models without input and output" in imported.output


def test_a_name_is_that_of_the_run(folder: Path) -> None:
    assert call("import", write_deepeval(folder), "--name", "mine").exit_code == 0
    assert call("show", "mine").exit_code == 0


def test_a_file_of_battles_becomes_matches(folder: Path) -> None:
    path = folder / "arena.jsonl"
    path.write_text('{"question_id": "1", "model_a": "x", "model_b": "y", "winner": "model_a"}\n')
    assert "of 2 systems" in call("import", path).output


def test_a_table_of_predictions_still_needs_its_examples(folder: Path) -> None:
    path = folder / "mine.csv"
    path.write_text("id,response\n1,x\n")
    refused = call("import", path)
    assert refused.exit_code == 2
    assert "mine.csv is of no format of another tool that is recognised (deepeval, helm, inspect, " in refused.output
    assert "name it with --from" in refused.output
    assert "give the examples with --dataset" in refused.output
    assert "--from" not in call("import", path, "--response", "response").output


def test_several_files_of_which_one_is_unknown_store_nothing(folder: Path) -> None:
    path = folder / "mine.csv"
    path.write_text("id,response\n1,x\n")
    refused = call("import", write_deepeval(folder), path)
    assert refused.exit_code == 1
    assert "mine.csv: is of no format that is recognised" in refused.output
    assert "runs" not in call("list").output


def test_an_unknown_tool_is_named(folder: Path) -> None:
    refused = call("import", write_deepeval(folder), "--from", "deepevil")
    assert refused.exit_code == 1
    assert "no importer is called 'deepevil'" in refused.output


def test_a_direction_that_the_tool_does_not_say_is_given(folder: Path) -> None:
    base = write_ragas(folder)
    other = folder / "other.json"
    other.write_text(base.read_text().replace("1.0", "0.5"))
    assert call("import", base, "--name", "base").exit_code == 0
    assert call("import", other, "--name", "other").exit_code == 0
    rule = "mean not worse than base by 0.1"
    gate = ("compare", "base", "other", "--scorer", "faithfulness", "--gate")
    refused = call(*gate, rule)
    assert refused.exit_code == 1
    assert "or import its results again with --direction faithfulness=lower" in refused.output
    for path, name in ((base, "base"), (other, "other")):
        assert call("import", path, "--name", name, "--direction", "faithfulness=lower").exit_code == 0
    assert "or compare the values themselves: `mean <= base`" in call(*gate, rule).output
    assert call(*gate, "mean <= base").exit_code == 0
    wrong = call("import", base, "--direction", "faithfullness=lower")
    assert wrong.exit_code == 1
    assert "the files have no scorer 'faithfullness' (did you mean 'faithfulness'?)" in wrong.output


@pytest.mark.parametrize("text", ["a", "a=up", "=lower"])
def test_a_direction_is_higher_or_lower(folder: Path, text: str) -> None:
    result = call("import", write_ragas(folder), "--direction", text)
    assert result.exit_code == 2
    assert "must be a scorer and what is better, such as latency=lower" in result.output


def test_predictions_have_no_direction(folder: Path) -> None:
    result = call("import", write_ragas(folder), "--dataset", "rows.jsonl", "--direction", "a=lower")
    assert result.exit_code == 2
    assert "--direction is for results of other tools" in result.output
