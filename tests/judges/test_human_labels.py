"""Labels that people give: the file they fill in, and what becomes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder

from evaluand import Aggregator, Dataset, Evaluator, Mean, Measure, Runner
from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.judges.people.human_labels import HumanLabels, Label, labelled, labelling_rows, read_labels
from evaluand.run.runner import Run
from evaluand.run.task import Candidates


def failing_on_three(number: int) -> Any:
    if number == 3:
        raise ValueError("three")
    return Candidates([number, -number]) if number == 2 else {"answer": number}


@pytest.fixture
def run() -> Run:
    return Runner().run(failing_on_three, Dataset.from_rows([{"input": n, "expected": n} for n in (1, 2, 3, 4)]))


def filled(path: Path, rows: list[dict[str, Any]], *labels: dict[str, Any] | None) -> Path:
    """The file of rows, of which the first are filled in."""
    reported = [row | (label or {}) for row, label in zip(rows, labels, strict=False)]
    path.write_text("".join(json.dumps(row) + "\n" for row in reported + rows[len(labels) :]))
    return path


def test_there_is_a_line_to_fill_in_for_each_answer(run: Run) -> None:
    rows = list(labelling_rows(run))
    assert [(row["_index_"], row["_response_index_"], row["response"]) for row in rows] == [
        (0, 0, {"answer": 1}),
        (1, 0, 2),
        (1, 1, -2),
        (3, 0, {"answer": 4}),
    ]
    assert rows[0]["input"] == rows[0]["expected"] == 1
    assert len({row["key"] for row in rows}) == 4


def test_half_a_file_is_half_an_evaluation_that_says_so(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    labels = read_labels([filled(tmp_path / "a.jsonl", rows, {"value": 1, "by": "ann"}, {"label": "good"})])
    evaluation = Evaluator().evaluate(run, {"human": labels})
    assert evaluation.counts["human"] == {"scored": 2, "abstained": 2, "failed": 1}
    reported = evaluation.table("human").select(["status", "reason", "value", "label", "by", "n_labels"]).to_pylist()
    assert reported[0] == {"status": "scored", "reason": None, "value": 1, "label": None, "by": ["ann"], "n_labels": 1}
    assert (reported[1]["label"], reported[1]["by"]) == ("good", [])
    assert reported[2]["reason"] == "not labelled yet"
    assert labelled(evaluation, "human") == (4, 2, {"ann": 1, None: 1}, 0)


def test_several_people_are_averaged_and_their_disputes_counted(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    ann = filled(tmp_path / "ann.jsonl", rows, *({"value": v, "label": "ok", "by": "ann"} for v in (1, 1, 0)))
    bob = filled(
        tmp_path / "bob.jsonl",
        rows,
        {"value": True, "label": "ok", "by": "bob"},
        {"value": 0.5, "label": "poor", "by": "bob", "explanation": "half"},
    )
    evaluation = Evaluator().evaluate(run, {"human": read_labels([ann, bob])})
    table = evaluation.table("human").to_pylist()
    assert [(row["value"], row["label"], row["n_labels"]) for row in table[:3]] == [
        (1, "ok", 2),
        (0.75, None, 2),
        (0, "ok", 1),
    ]
    assert table[1]["explanation"] == "bob: half"
    assert labelled(evaluation, "human") == (4, 3, {"ann": 3, "bob": 2}, 1)
    (row,) = Aggregator().aggregate([evaluation], [Measure("human", Mean(reduce="all"))]).table().to_pylist()
    assert row["value"] == pytest.approx((1 + 0.75 + 0) / 3)


def test_the_later_of_two_labels_of_one_person_counts(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    files = [filled(tmp_path / f"{v}.jsonl", rows, {"value": v, "by": "ann"}) for v in (0, 1)]
    table = Evaluator().evaluate(run, {"human": read_labels(files)}).table("human")
    assert (table["value"][0].as_py(), table["n_labels"][0].as_py()) == (1, 1)


def test_more_labels_are_another_evaluation_and_the_same_ones_the_same(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    few = filled(tmp_path / "few.jsonl", rows, {"value": 1})
    more = filled(tmp_path / "more.jsonl", rows, {"value": 1}, {"value": 0})
    ids = [Evaluator().evaluate(run, {"human": read_labels([file])}).id for file in (few, more, few)]
    assert ids[0] == ids[2] != ids[1]


def test_the_same_answer_of_another_run_has_its_label_already(run: Run, tmp_path: Path) -> None:
    labels = read_labels([filled(tmp_path / "a.jsonl", list(labelling_rows(run)), {"value": 1})])
    other = Runner().run(lambda number: {"answer": 1}, run.dataset)
    assert Evaluator().evaluate(other, {"human": labels}).counts["human"] == {"scored": 1, "abstained": 3}


def test_what_is_labelled_need_not_be_labelled_again(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    labels = read_labels([filled(tmp_path / "a.jsonl", rows, {"value": 1, "by": "ann"}, {"value": 1, "by": "bob"})])
    assert len(list(labelling_rows(run, given=labels))) == 2
    assert len(list(labelling_rows(run, given=labels, by="ann"))) == 3


def test_lines_that_are_none_are_reported_with_their_place(tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    lines = ["{", '{"value": 1}', '{"key": "a", "value": "high"}', '{"key": "a", "label": 3}', "", '{"key": "a"}']
    file.write_text("\n".join([*lines, '{"key": "a", "value": NaN}', "[1]"]))
    with pytest.raises(DataError) as raised:
        read_labels([file])
    reported = str(raised.value)
    for part in ("bad.jsonl:1: is no JSON", ":2: has no key", ":3: value is a text; give a number", ":4: label is"):
        assert part in reported
    assert ":7: value is nan; give a number" in reported
    assert ":8: is a list, not an object" in reported
    assert len(raised.value.faults) == 6


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", ",key,value\nx,a,1\n,b,0\n"),
        ("a.jsonl", '{"": "x", "key": "a", "value": 1}\n{"key": "b", "value": 0}\n'),
    ],
)
def test_a_column_without_a_name_is_no_column_of_labels(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    labels = read_labels([tmp_path / name]).labels
    assert {key: label.value for key, [label] in labels.items()} == {"a": 1, "b": 0}


def test_other_scorers_have_nobody_to_tell_of(run: Run) -> None:
    evaluation = Evaluator().evaluate(run, {"one": lambda output: 1.0})
    with pytest.raises(SpecError, match="'one' holds no labels"):
        labelled(evaluation, "one")


def test_no_labels_are_a_scorer_that_abstains(run: Run) -> None:
    assert Evaluator().evaluate(run, {"human": HumanLabels({})}).counts["human"] == {"abstained": 4, "failed": 1}


def test_blanks_and_the_case_of_a_label_part_nobody(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    ann = filled(tmp_path / "ann.jsonl", rows, {"label": "Good", "by": "ann"}, {"label": "poor", "by": "ann"})
    again = filled(tmp_path / "again.jsonl", rows, {"label": " good ", "by": "ann "}, {"label": "POOR", "by": "bob"})
    evaluation = Evaluator().evaluate(run, {"human": read_labels([ann, again])})
    assert labelled(evaluation, "human") == (4, 2, {"ann": 2, "bob": 1}, 0)
    assert evaluation.table("human")["label"].to_pylist()[:2] == ["Good", "poor"]


def test_names_that_differ_in_case_are_doubted(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    file = filled(tmp_path / "a.jsonl", rows, {"value": 1, "by": "ann"}, {"value": 1, "by": "Ann"})
    with pytest.warns(EvaluandWarning, match="'Ann' and 'ann' count as 2 people"):
        read_labels([file])


def test_an_explanation_alone_is_reported_to_be_no_label(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    file = filled(tmp_path / "a.jsonl", rows, {"value": 1}, {"explanation": "cannot tell"})
    with pytest.warns(EvaluandWarning, match=r"1 row has an explanation but neither value nor label.*a\.jsonl:2"):
        assert len(read_labels([file]).labels) == 1


def test_values_and_words_that_there_cannot_be_are_refused(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    file = filled(tmp_path / "a.jsonl", rows, {"value": 7}, {"value": 5}, {"label": "godo"}, {"value": True})
    with pytest.raises(DataError) as raised:
        read_labels([file], range=(1, 5), words=["good", "poor"])
    assert [str(fault).partition(".jsonl:")[2] for fault in raised.value.faults] == [
        "1: value 7 lies outside the range 1 to 5",
        "3: label 'godo' is none of good, poor (did you mean 'good'?)",
        "4: value is true; give a number from 1 to 5",
    ]


def test_true_is_no_value_beside_stars(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    file = filled(tmp_path / "a.jsonl", rows, {"value": True, "by": "ann"}, {"value": 7, "by": "bob"})
    with pytest.raises(DataError, match=r"a\.jsonl:1: value is true or false, but other values are numbers such as 7"):
        read_labels([file])


def test_words_on_which_people_disagree_are_no_score(run: Run, tmp_path: Path) -> None:
    rows = list(labelling_rows(run))
    files = [
        filled(tmp_path / f"{by}.jsonl", rows, {"label": word, "by": by})
        for by, word in (("ann", "good"), ("bob", "poor"))
    ]
    evaluation = Evaluator().evaluate(run, {"human": read_labels(files)})
    row = evaluation.table("human").to_pylist()[0]
    assert (row["status"], row["reason"]) == ("abstained", "people disagree: good, poor")
    assert [each["label"] for each in json.loads(row["data"])] == ["good", "poor"]
    assert labelled(evaluation, "human") == (4, 1, {"ann": 1, "bob": 1}, 1)


def test_a_table_of_a_spreadsheet_has_the_labels_of_json_lines(run: Run, tmp_path: Path) -> None:
    keys = [row["key"] for row in labelling_rows(run)]
    table = tmp_path / "ann.CSV"
    lines = [f'{keys[0]},4,"good, really",ann', f"{keys[1]},,poor,ann", f'{keys[2]},0.5,,""', f"{keys[3]},,,ann"]
    table.write_text("\ufeffkey,value,label,by\r\n" + "".join(f"{line}\r\n" for line in lines))
    assert read_labels([table]).labels == {
        keys[0]: (Label(4.0, "good, really", "ann", None),),
        keys[1]: (Label(None, "poor", "ann", None),),
        keys[2]: (Label(0.5, None, None, None),),
    }


def test_faults_of_a_table_have_their_lines(tmp_path: Path) -> None:
    table = tmp_path / "bad.csv"
    table.write_text('key,value,explanation\na,1,"two\nlines"\nb,high,\n,1,\n')
    with pytest.raises(DataError) as raised:
        read_labels([table])
    assert [fault.where.rpartition(":")[2] for fault in raised.value.faults] == ["4", "5"]
    table.write_text("a;b\n1;2\n")
    with pytest.raises(DataError, match='save the file with ","'):
        read_labels([table])
    table.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="has no column key"):
        read_labels([table])


# ---------------------------------------------------------------- the commands


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.call("run", made.experiment())
    return made


def test_a_file_is_written_filled_in_and_read_as_an_evaluation(folder: Folder) -> None:
    file = folder.path / "ann.jsonl"
    folder.done("label", "export", "doubling/mine", "-o", file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["response"] for row in rows} == {"about 0", "about 2", "about 4", "no idea", "about 10"}
    filled(file, rows, {"value": 1, "by": "ann"}, {"value": 0, "by": "ann"})
    out = folder.done("label", "import", "doubling/mine", file)
    assert out.splitlines()[:2] == ["2 of 5 answers labelled (40%)", "  ann: 2"]
    assert "more: evaluand show doubling/mine/human" in out
    reported = folder.json("label", "status", "doubling/mine/human")
    assert (reported["answers"], reported["labelled"], reported["by"]) == (5, 2, [{"by": "ann", "answers": 2}])
    assert "abstained  not labelled yet" in folder.done("show", "doubling/mine/human", "--lowest")
    rest = folder.done("label", "export", "doubling/mine", "--without", file)
    assert len(rest.splitlines()) == 3


def test_files_without_a_label_or_of_another_run_are_refused(folder: Folder) -> None:
    file = folder.path / "empty.jsonl"
    folder.done("label", "export", "doubling/mine", "-o", file)
    assert "has a value or a label; fill in the files first" in folder.refused("label", "import", "doubling/mine", file)
    file.write_text('{"key": "00", "value": 1}\n')
    assert "none of the 1 labels matches an answer" in folder.refused("label", "import", "doubling/mine", file)
    assert "import them with `evaluand label import`" in folder.refused("label", "status", "doubling/mine")


def test_labels_of_no_answer_are_counted_and_named(folder: Folder) -> None:
    file = folder.path / "ann.jsonl"
    folder.done("label", "export", "doubling/mine", "-o", file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    filled(file, rows, {"value": 1})
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes() + b'{"key": "beef", "value": 1}\n')
    out = folder.call("label", "import", "doubling/mine", file)
    assert out.exit_code == 0
    assert "1 of 2 labels match no answer of run" in out.stderr
    assert "and are left out; keys: beef" in out.stderr


def test_a_file_that_is_filled_in_is_not_written_over(folder: Folder) -> None:
    file = folder.path / "ann.jsonl"
    folder.done("label", "export", "doubling/mine", "-o", file)
    folder.done("label", "export", "doubling/mine", "-o", file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    before = filled(file, rows, {"explanation": "to be asked"}).read_text()
    reported = folder.refused("label", "export", "doubling/mine", "-o", file)
    assert "has 1 filled-in answer;" in reported
    assert f"--without {file}" in reported
    assert file.read_text() == before
    folder.done("label", "export", "doubling/mine", "-o", file, "--force")
    assert "to be asked" not in file.read_text()
    file.write_text("a diary\n")
    assert "is not a file of labels" in folder.refused("label", "export", "doubling/mine", "-o", file)


def test_a_table_is_written_filled_in_and_read(folder: Folder) -> None:
    table = folder.path / "ann.csv"
    folder.done("label", "export", "doubling/mine", "-o", table)
    header, first, *rest = table.read_text().splitlines()
    assert header.endswith('"response","value","label","by","explanation"')
    table.write_text("\n".join([header, first.removesuffix(",,,") + "4,,ann,", *rest]) + "\n")
    out = folder.done("label", "import", "doubling/mine", table, "--range", "1", "5", "--word", "good")
    assert out.splitlines()[:2] == ["1 of 5 answers labelled (20%)", "  ann: 1"]
    reported = folder.refused("label", "import", "doubling/mine", table, "--range", "1", "3")
    assert "value 4 lies outside the range 1 to 3" in reported
    assert "lowest and then" in folder.refused("label", "import", "doubling/mine", table, "--range", "5", "1", code=2)


def test_the_status_of_another_evaluation_names_the_one_with_labels(folder: Folder) -> None:
    file = folder.path / "ann.jsonl"
    folder.done("label", "export", "doubling/mine", "-o", file)
    filled(file, [json.loads(line) for line in file.read_text().splitlines()], {"value": 1})
    folder.done("label", "import", "doubling/mine", file)
    reported = folder.refused("label", "status", "doubling/mine")
    assert "'doubling/mine' holds no labels by people; those of its run are in doubling/mine/human" in reported
