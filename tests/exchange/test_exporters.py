"""Results written in the formats of other tools: what they hold, and that importing them gives the same results."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder
from support.foreign_results import write_inspect

from evaluand.core import registry
from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import Score
from evaluand.exchange import import_results
from evaluand.exchange.exporter import Result
from evaluand.exchange.exporters.inspect import Inspect
from evaluand.exchange.exporters.lm_eval import LmEval
from evaluand.models.usage import report_usage
from evaluand.run.runner import Runner
from evaluand.run.task import Candidates, FunctionTask
from evaluand.store.store import MemoryStore

CODE = """
def plus(q):
    if "3" in q:
        raise ValueError("no 3")
    return "seven" if "7" in q else str(sum(map(int, q.split("+"))))
"""
EXPERIMENT = """
name: sums
dataset: {path: sums.jsonl, input: q, expected: a, id: name, attributes: [topic]}
tasks: {plus: "app.py:plus", same: "app.py:plus"}
run: {replications: REPEATS}
scorers: {exact: exact_match, inside: includes}
metrics: [{kind: accuracy, scorer: exact}, {kind: mean, scorer: inside, direction: higher}]
"""


def make(path: Path, repeats: int) -> Folder:
    folder = Folder(path)
    rows = [{"name": f"q{n}", "q": f"{n}+{n}", "a": str(2 * n), "topic": f"t{n % 2}"} for n in range(10)]
    folder.write("sums.jsonl", rows)
    (path / "app.py").write_text(CODE)
    (path / "e.yaml").write_text(EXPERIMENT.replace("REPEATS", str(repeats)))
    folder.done("run", path / "e.yaml")
    return folder


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return make(tmp_path_factory.mktemp("once"), 1)


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return make(tmp_path_factory.mktemp("twice"), 2)


def imported(folder: Folder, path: Path, at: Path) -> tuple[Folder, list[dict[str, Any]]]:
    """The results in files, and the grades of the imported run."""
    other = Folder(at)
    other.done("import", path)
    return other, rows_of(other)


def rows_of(folder: Folder) -> list[dict[str, Any]]:
    """The grades of `sums/plus`."""
    text = folder.done("export", "sums/plus", "--table", "tidy", "--to", "jsonl")
    return [json.loads(line) for line in text.splitlines()]


def test_a_log_of_inspect_has_every_call_with_its_grades(twice: Folder, tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    twice.done("export", "sums/plus", "--to", "inspect", "-o", file)
    log = json.loads(file.read_text())
    assert log["version"] == 2
    assert log["eval"]["task"] == "sums"
    assert log["eval"]["model"] == "plus"
    assert [(sample["id"], sample["epoch"]) for sample in log["samples"][:3]] == [("q0", 1), ("q0", 2), ("q1", 1)]
    first, failed = log["samples"][2], log["samples"][6]
    assert first["input"] == "1+1"
    assert first["target"] == "2"
    assert first["output"]["completion"] == "2"
    assert [message["role"] for message in first["messages"]] == ["user", "assistant"]
    assert first["scores"]["exact"]["value"] == 1.0
    assert first["metadata"] == {"topic": "t1"}
    assert failed["error"]["message"] == "ValueError('no 3')"
    assert failed["scores"] == {}
    exact, inside = log["results"]["scores"]
    assert exact["metrics"]["accuracy"]["value"] == pytest.approx(16 / 18)
    assert (exact["scored_samples"], exact["unscored_samples"]) == (18, 2)
    assert inside["name"] == "inside"


def test_systems_with_slashes_in_their_names_keep_them(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("rows.jsonl", [{"q": "1+1", "a": "2"}])
    (tmp_path / "app.py").write_text(CODE)
    (tmp_path / "e.yaml").write_text(
        "name: other/sums\ndataset: {path: rows.jsonl, input: q, expected: a}\n"
        "tasks: {org/plus: 'app.py:plus'}\nscorers: {exact: exact_match}\nmetrics: [accuracy]\n"
    )
    folder.done("run", tmp_path / "e.yaml")
    log = write_inspect(tmp_path)
    log.write_text(log.read_text().replace('"model": "m"', '"model": "org/m"'))
    folder.done("import", log)
    for problem, system in (("other/sums", "org/plus"), ("addition", "org/m")):
        folder.done("export", f"{problem}/{system}", "--to", "inspect", "-o", tmp_path / "again.json")
        exported = json.loads((tmp_path / "again.json").read_text())["eval"]
        assert (exported["task"], exported["model"]) == (problem, system)
        (tmp_path / "again.json").unlink()


def test_an_imported_log_of_inspect_has_the_same_grades(twice: Folder, tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    twice.done("export", "sums/plus", "--to", "inspect", "-o", file)
    _, found = imported(twice, file, tmp_path)
    names = ("id", "replication", "scorer", "status", "value", "input", "expected", "response")
    assert [[row[n] for n in names] for row in found] == [[row[n] for n in names] for row in rows_of(twice)]


def test_results_of_lm_eval_have_its_names_and_digests(once: Folder, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    result = once.json("export", "sums/plus", "--to", "lm-eval", "-o", folder)
    results, samples = (Path(file) for file in result["files"])
    assert results.name == samples.name.replace("samples_sums", "results").replace(".jsonl", ".json")
    facts = json.loads(results.read_text())
    assert facts["results"]["sums"]["exact,none"] == pytest.approx(8 / 9)
    assert facts["results"]["sums"]["exact_stderr,none"] == "N/A"
    assert facts["higher_is_better"] == {"sums": {"exact": True, "inside": True}}
    assert facts["n-samples"] == {"sums": {"original": 10, "effective": 9}}
    assert facts["model_name"] == "plus"
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    assert [row["doc_id"] for row in rows] == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    row = rows[6]
    assert row["resps"] == [["seven"]]
    assert row["filtered_resps"] == ["seven"]
    assert row["exact"] == 0.0
    assert row["doc_hash"] == hashlib.sha256(json.dumps(row["doc"], indent=2).encode()).hexdigest()
    assert row["target_hash"] == hashlib.sha256(b"14").hexdigest()
    assert result["notes"] == [
        "1 example without an answer left out: lm-eval has no errors",
        "doc_id is the number of an example: lm-eval has no other ids; yours is the id of each doc",
        "1 explanation left out",
        "1 span left out",
    ]
    assert "n-shot" not in facts
    assert facts["configs"]["sums"].keys() == {"task", "output_type", "repeats", "metric_list"}


def test_imported_results_of_lm_eval_have_the_same_grades(once: Folder, tmp_path: Path) -> None:
    once.done("export", "sums/plus", "--to", "lm_eval", "-o", tmp_path / "results")
    _, found = imported(once, tmp_path / "results", tmp_path)
    names = ("scorer", "value", "input", "expected", "response")
    answered = [row for row in rows_of(once) if row["status"] == "scored"]
    assert [[row[n] for n in names] for row in found] == [[row[n] for n in names] for row in answered]


def test_lm_eval_has_no_place_for_repeats(twice: Folder, tmp_path: Path) -> None:
    said = twice.refused("export", "sums/plus", "--to", "lm_eval", "-o", tmp_path / "results")
    assert "this run has 2 repeats; export it to inspect" in said
    assert not (tmp_path / "results").exists()


def test_what_cannot_be_exported_is_refused(once: Folder, tmp_path: Path) -> None:
    file = tmp_path / "log.json"
    assert "give -o FILE" in once.refused("export", "sums/plus", "--to", "inspect", code=2)
    assert "neither a run nor an evaluation" in once.refused("export", "sums", "--to", "inspect", "-o", file)
    assert "leave out --table" in once.refused(
        "export", "sums/plus", "--to", "inspect", "-o", file, "--status", "failed", code=2
    )
    assert "is a folder" in once.refused("export", "sums/plus", "--to", "inspect", "-o", tmp_path, code=2)
    assert "inspect" in once.refused("export", "sums/plus", "--to", "inspct", code=2)


def test_chats_stay_chats_and_several_expected_answers_a_list(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"}]
    data = Dataset.from_rows([{"input": chat, "expected": ["hi", "hello"]}], name="chats")
    run = Runner().run(lambda messages: {"said": messages[1]["content"]}, data)
    Inspect().write(Result(run, None), tmp_path / "log.json")
    [sample] = json.loads((tmp_path / "log.json").read_text())["samples"]
    assert sample["input"] == chat
    assert sample["target"] == ["hi", "hello"]
    assert sample["output"]["completion"] == '{"said":"Hello"}'
    assert [message["role"] for message in sample["messages"]] == ["system", "user", "assistant"]


def test_all_answers_are_written_and_the_first_is_graded(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"x": 1, "y": 2, "sum": "3"}], input=["x", "y"], expected="sum", name="adding")
    run = Runner().run(FunctionTask(lambda row: Candidates(["3", "4"])), data, name="two")
    evaluation = Evaluator().evaluate(run, {"exact": "exact_match"}, name="adding/two")
    _, samples = LmEval().write(Result(run, evaluation), tmp_path)
    row = json.loads(samples.read_text())
    assert row["arguments"]["gen_args_0"]["arg_0"] == '{"x":1,"y":2}'
    assert row["resps"] == [["3", "4"]]
    assert row["filtered_resps"] == ["3"]
    assert row["exact"] == 1.0


def test_a_run_without_grades_has_no_place_in_lm_eval(tmp_path: Path) -> None:
    run = Runner().run(str.upper, Dataset.from_rows([{"input": "a"}]))
    with pytest.raises(SpecError, match="this run has none; grade it first"):
        LmEval().write(Result(run, None), tmp_path)


def test_every_exporter_has_its_registered_name() -> None:
    for name in registry.names("exporters"):
        assert registry.find("exporters", name).kind == name


def test_a_run_is_exported_under_the_name_by_which_it_is_asked_for(tmp_path: Path) -> None:
    folder = make(tmp_path, 1)
    (tmp_path / "again.yaml").write_text((tmp_path / "e.yaml").read_text().replace("name: sums", "name: again"))
    folder.done("run", tmp_path / "again.yaml")
    for name in ("sums", "again"):
        folder.done("export", f"{name}/plus", "--to", "inspect", "-o", tmp_path / "log.json")
        assert json.loads((tmp_path / "log.json").read_text())["eval"]["task"] == name


def test_words_without_numbers_are_scores_in_inspect_and_named_by_lm_eval(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"input": text, "expected": "x"} for text in "ab"])
    run = Runner().run(FunctionTask(lambda input: input), data)
    scorers = {"tone": lambda output: Score(None, "calm" if output == "a" else "angry"), "exact": "exact_match"}
    result = Result(run, Evaluator().evaluate(run, scorers))
    exporter = Inspect()
    exporter.write(result, tmp_path / "log.json")
    samples = json.loads((tmp_path / "log.json").read_text())["samples"]
    assert [sample["scores"]["tone"]["value"] for sample in samples] == ["calm", "angry"]
    other = LmEval()
    other.write(result, tmp_path / "lm_eval")
    assert "2 labels left out" in other.notes


def test_usage_and_details_of_grades_are_written_or_named(tmp_path: Path) -> None:
    def answer(text: str) -> str:
        cost, currency = {"a": (0.5, "USD"), "b": (0.5, "EUR"), "c": (0.25, "USD")}[text]
        report_usage(input_tokens=None if text == "c" else 3, output_tokens=0, cost=cost, currency=currency)
        return text

    run = Runner().run(FunctionTask(answer), Dataset.from_rows([{"input": text} for text in "abc"]))
    result = Result(run, Evaluator().evaluate(run, {"near": lambda output: Score(0.5, data={"margin": 2})}))
    log, table = Inspect(), LmEval()
    log.write(result, tmp_path / "log.json")
    samples = json.loads((tmp_path / "log.json").read_text())["samples"]
    known = {"input_tokens": 3, "output_tokens": 0, "total_tokens": 3}
    assert [each["output"].get("usage") for each in samples] == [known | {"total_cost": 0.5}, known, None]
    assert [each["scores"]["near"]["metadata"] for each in samples] == [{"data": {"margin": 2}}] * 3
    assert {"1 partly known usage left out", "2 costs left out"} <= {*log.notes}
    table.write(result, tmp_path / "table")
    assert {"3 grade details left out", "3 usage records left out"} <= {*table.notes}


def test_values_that_have_one_name_in_lm_eval_are_named(tmp_path: Path) -> None:
    folder = make(tmp_path, 1)
    metrics = "metrics: [{kind: accuracy, scorer: exact}, {kind: mean, scorer: exact}]"
    text = (tmp_path / "e.yaml").read_text().partition("metrics:")[0] + metrics
    (tmp_path / "e.yaml").write_text(text)
    folder.done("run", tmp_path / "e.yaml")
    found = folder.json("export", "sums/plus", "--to", "lm-eval", "-o", tmp_path / "results")
    assert "1 further value left out" in found["notes"]


def test_scorers_that_are_called_as_a_key_of_lm_eval_get_another_name(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"input": "a", "expected": "A"}], name="letters")
    run = Runner().run(str.upper, data, name="letters/upper")
    scorers = {"target": "exact_match", "filter": lambda output: 0.5, "filter (2)": lambda output: 0.25}
    exporter = LmEval()
    _, samples = exporter.write(Result(run, Evaluator().evaluate(run, scorers, name="letters/upper")), tmp_path)
    row = json.loads(samples.read_text())
    assert (row["target"], row["filter"], row["doc_id"]) == ("A", "none", 0)
    assert {name: row[name] for name in row["metrics"]} == {"target (2)": 1.0, "filter (3)": 0.5, "filter (2)": 0.25}
    assert "'filter' is called 'filter (3)': lm-eval has a key of that name" in exporter.notes
    [again] = import_results(tmp_path, MemoryStore()).evaluations
    assert again is not None
    assert again.table("target (2)")["value"].to_pylist() == [1.0]
