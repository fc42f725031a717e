"""What an import says of rows and totals that are not as a tool usually writes them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.foreign_results import inspect_header, inspect_samples, write_eval, write_inspect, write_ragas

from evaluand.core.errors import DataError
from evaluand.core.files.json_items import JsonCursor
from evaluand.exchange.storing import ImportedResult, import_results
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.store.store import MemoryStore


def read(*paths: Path) -> ImportedResult:
    return import_results([*paths], MemoryStore())


def write_log(path: Path, samples: list[dict[str, Any]], **header: Any) -> Path:
    path.write_text(json.dumps({**inspect_header(), **header, "samples": samples}))
    return path


def test_means_over_examples_and_over_rows_are_both_named_if_they_differ(tmp_path: Path) -> None:
    right, _, wrong = inspect_samples()[0], inspect_samples()[1], inspect_samples()[1]
    again = right | {"epoch": 2}
    results = {"scores": [{"name": "match", "metrics": {"accuracy": {"value": 0.5}}}]}
    result = read(write_log(tmp_path / "log.json", [right, again, wrong], results=results))
    assert result.agreements == 1
    (note,) = result.notes
    assert "is 0.5 over examples, as the file has it, and 0.666667 over rows, as shown" in note
    (aggregation,) = result.aggregations
    assert aggregation.table()["value"].to_pylist()[0] == pytest.approx(2 / 3)


def test_a_word_among_numbers_is_not_averaged(tmp_path: Path) -> None:
    samples = inspect_samples()
    samples[1]["scores"]["match"]["value"] = "unclear"
    result = read(write_log(tmp_path / "log.json", samples, results={}))
    (evaluation,) = result.evaluations
    assert evaluation is not None
    assert evaluation.counts == {"match": {"scored": 2, "abstained": 1}}
    row = evaluation.table("match").to_pylist()[1]
    assert (row["value"], row["label"]) == (None, "unclear")
    assert row["reason"] == "the score in the file is 'unclear', not a number"
    assert len(result.aggregations) == 1


def test_scorers_of_one_system_are_averaged_too(tmp_path: Path) -> None:
    samples = inspect_samples()
    for sample in samples:
        sample["scores"]["other"] = sample["scores"]["match"]
    first = write_log(tmp_path / "a.json", inspect_samples())
    second = write_log(tmp_path / "b.json", samples, eval={**inspect_header()["eval"], "model": "n"})
    result = read(first, second)
    measured = {(row["task"], row["scorer"]) for each in result.aggregations for row in metrics_facts(each)}
    assert measured == {("addition/m", "match"), ("addition/n", "match"), ("addition/n", "other")}


def test_files_of_one_name_without_a_common_example_are_noted(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first = write_ragas(tmp_path)
    second = tmp_path / "other" / first.name
    rows = json.loads(first.read_text())
    second.write_text(json.dumps([{**row, "user_input": f"another {n}"} for n, row in enumerate(rows)]))
    (note,) = [note for note in read(first, second).notes if "in common" in note]
    assert str(second) in note
    second.write_text(first.read_text())
    assert not [note for note in read(first, second).notes if "in common" in note]


def test_all_documents_of_a_file_are_read(tmp_path: Path) -> None:
    path = write_ragas(tmp_path)
    path.write_text(path.read_text() + "\n" + path.read_text().replace("+", "-"))
    result = read(path)
    assert (result.samples, result.left_out) == (6, [])


def test_what_follows_a_log_is_named(tmp_path: Path) -> None:
    path = write_inspect(tmp_path)
    end = len(path.read_text())
    path.write_text(path.read_text() + '\n{"more": 1}')
    (fault,) = read(path).left_out
    assert f"byte {end + 1:,}: follows the end of the result" in str(fault)


def test_a_text_that_never_ends_is_found_at_once() -> None:
    """A log that was cut within a long answer."""
    cursor = JsonCursor(b'[{"answer": "' + b"[x] " * 500_000)
    with pytest.raises(DataError, match="the document ends before this value does"):
        cursor.text()


def test_samples_of_a_zip_have_the_order_of_the_dataset(tmp_path: Path) -> None:
    header = inspect_header()
    header["eval"]["dataset"]["sample_ids"] = [2, 0, 1]
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for sample in inspect_samples():
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    (run,) = read(path).runs
    assert [example.id for example in run.dataset] == ["2", "0", "1"]


def test_a_sample_that_expands_beyond_measure_is_left_out(tmp_path: Path) -> None:
    path = write_eval(tmp_path)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("samples/9_epoch_1.json", "w") as member,
    ):
        for _ in range(130):
            member.write(bytes(1 << 20))
    (fault,) = read(path).left_out
    assert "at most 134,217,728 are read of one sample" in str(fault)


def test_attributes_that_differ_between_samples_of_an_example_are_noted(tmp_path: Path) -> None:
    samples = [{**sample, "metadata": {"level": "easy"}} for sample in inspect_samples()]
    others = [
        {**sample, "metadata": {"level": level}}
        for sample, level in zip(samples, ("easy", "hard", "hard"), strict=True)
    ]
    first = write_log(tmp_path / "a.json", samples)
    second = write_log(tmp_path / "b.json", others, eval={**inspect_header()["eval"], "model": "n"})
    (note,) = read(first, second).notes
    assert "2 samples with other attributes than an earlier one of the same example" in note


def test_metadata_by_which_nobody_can_group_are_stored_too(tmp_path: Path) -> None:
    samples = [
        {**sample, "metadata": {"level": 1, "long": text, "steps": [{"n": 1}], "input": "mine", "none": None}}
        for sample, text in zip(inspect_samples(), ("short", "x" * 201, "short"), strict=True)
    ]
    (run,) = read(write_log(tmp_path / "log.json", samples)).runs
    example = next(iter(run.dataset))
    assert example.attributes == {"level": 1, "input (2)": "mine"}
    assert example.metadata == {"long": "short", "steps": [{"n": 1}]}


def test_a_row_that_stands_twice_is_no_repeat_that_the_others_lack(tmp_path: Path) -> None:
    path = write_ragas(tmp_path)
    rows = json.loads(path.read_text())
    path.write_text(json.dumps([*rows, rows[0]]))
    result = read(path)
    (run,) = result.runs
    assert (run.manifest["spec"]["replications"], run.counts) == (1, {"completed": 4})
    assert [example.id for example in run.dataset] == ["0", "1", "2", "3"]
    inputs = [example.input for example in run.dataset]
    assert inputs[3] == inputs[0]
    (note,) = result.notes
    assert note == "ragas: 1 further row of examples that others have once, stored as examples of their own"
    path.write_text(json.dumps(rows * 2))
    (run,) = read(path).runs
    assert (run.manifest["spec"]["replications"], run.counts) == (2, {"completed": 6})


def test_systems_that_answered_other_examples_are_not_said_to_have_failed_on_them(tmp_path: Path) -> None:
    few = write_log(tmp_path / "few.json", inspect_samples()[1:2], results={})
    all_ = write_log(tmp_path / "all.json", inspect_samples(), eval={**inspect_header()["eval"], "model": "n"})
    result = read(few, all_)
    assert [run.counts for run in result.runs] == [{"completed": 1}, {"completed": 3}]
    alone = [read(path) for path in (few, all_)]
    assert [run.manifest["spec"] for run in result.runs] == [each.runs[0].manifest["spec"] for each in alone]
    assert [each and each.id for each in result.evaluations] == [
        each and each.id for one in alone for each in one.evaluations
    ]
    (aggregation,) = result.aggregations
    assert aggregation.labels == ["addition/m", "addition/n"]


@pytest.mark.parametrize("values", [[2**63, 1, 1], [2**60 + 1, 0.5, 1], [2**53 + 1, 2**53 + 1, 1]])
def test_large_integers_stay_exact(values: list[Any], tmp_path: Path) -> None:
    samples = [{**sample, "metadata": {"n": n}} for sample, n in zip(inspect_samples(), values, strict=True)]
    (run,) = read(write_log(tmp_path / "log.json", samples)).runs
    assert [example.attributes["n"] for example in run.dataset] == values


def test_a_count_that_is_too_large_leaves_its_sample_out(tmp_path: Path) -> None:
    samples = inspect_samples()
    samples[1]["model_usage"] = {"m": {"input_tokens": 2**63, "output_tokens": 1}}
    result = read(write_log(tmp_path / "log.json", samples, results={}))
    assert result.samples == 2
    (fault,) = result.left_out
    assert fault.message == f"{2**63:,} is too large to be stored"


def test_scorers_and_problems_whose_names_become_equal_stay_two(tmp_path: Path) -> None:
    samples = inspect_samples()
    for sample in samples:
        sample["scores"] = {"a\0": {"value": 1}, "a_": {"value": 0}, "x" * 201: {"value": 1}, "x" * 202: {"value": 0}}
    result = read(write_log(tmp_path / "log.json", samples, results={}))
    (evaluation,) = result.evaluations
    assert evaluation is not None
    assert [evaluation.table(name)["value"][0].as_py() for name in evaluation.scorers] == [1, 0, 1, 0]
    logs = [
        write_log(
            tmp_path / f"{n}.json", inspect_samples(), eval={**inspect_header()["eval"], "task": task}, results={}
        )
        for n, task in enumerate(("a\tb", "a\nb"))
    ]
    assert [each.name for each in read(*logs).aggregations] == ["a_b", "a_b (2)"]
