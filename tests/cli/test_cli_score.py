"""`evaluand score` over columns of files: what is typed, what is printed, and what is refused."""

import json
from csv import DictReader
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder

ROWS = [
    ("id", "sex", "label", "a", "b", "p_a"),
    (1, "f", "yes", "yes", "no", 0.9),
    (2, "m", "no", "no", "no", 0.2),
    (3, "f", "yes", "yes", "yes", 0.8),
    (4, "m", "no", "yes", "no", 0.6),
]


def csv(*rows: tuple[Any, ...]) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(csv(*ROWS))
    return Folder(tmp_path)


def values(facts: Any) -> dict[tuple[str, str], float]:
    return {(row["task"], row["metric"]): row["value"] for row in facts["metrics"] if not row["by"]}


def test_a_file_that_another_delimiter_divides_is_reported_so(folder: Folder) -> None:
    said = "there is one column, 'id,sex,label,a,b,p_a'; another delimiter may be meant"
    columns = ("--truth", "label", "--prediction", "a")
    assert f"no column is called 'label'; {said}\n" in folder.refused("score", "p.csv", "--delimiter", ";", *columns)
    for command in (("score", "p.csv"), ("import", "--battles", "p.csv")):
        assert said in folder.call(*command, "--delimiter", ";").output
    assert folder.call("score", "p.csv", "--delimiter", ",", *columns).exit_code == 0


def test_two_columns_are_scored_and_compared(folder: Folder) -> None:
    result = folder.call("score", "p.csv", "--truth", "label", "--prediction", "a", "--prediction", "b", "--json")
    facts = json.loads(result.stdout)
    assert values(facts) == {
        ("a", "accuracy"): 0.75,
        ("a", "f_beta"): 0.8,
        ("a", "matthews_correlation"): pytest.approx(0.5773502691896258),
        ("b", "accuracy"): 0.75,
        ("b", "f_beta"): pytest.approx(2 / 3),
        ("b", "matthews_correlation"): pytest.approx(0.5773502691896258),
    }
    pair, *others = facts["comparison"]["pairs"]
    assert (pair["metric"], pair["won"], pair["lost"], pair["n_used"]) == ("accuracy", 1, 1, 4)
    assert [(each["metric"], each["won"]) for each in others] == [("f_beta", None), ("matthews_correlation", None)]
    assert facts["target"] == {"column": "label", "kind": "binary", "positive": "yes"}
    assert "'yes' counts as positive; --pos-label names another class" in facts["notes"]


def test_a_list_in_a_json_object_is_a_part_of_the_file(folder: Folder) -> None:
    rows = [{"label": "x", "a": "x"}, {"label": "y", "a": "x"}]
    (folder.path / "rows.json").write_text(json.dumps({"version": 1, "data": rows}))
    result = folder.call("score", "rows.json#data", "--truth", "label", "--prediction", "a", "--json")
    assert values(json.loads(result.stdout))["a", "accuracy"] == 0.5


def test_groups_have_disparities_and_a_failed_gate_exits_with_3(folder: Folder) -> None:
    given = ("score", "p.csv", "--truth", "label", "--prediction", "a", "--by", "sex", "--metric", "accuracy")
    result = folder.call(*given, "--gate", "accuracy >= 0.9", "--json")
    facts = json.loads(result.stdout)
    assert result.exit_code == 3
    assert [row["value"] for row in facts["metrics"]] == [0.75, 1.0, 0.5]
    assert [(row["disparity"], row["value"]) for row in facts["disparities"]] == [("difference", 0.5)]
    assert [gate["passed"] for gate in facts["gates"]] == [False]


def test_the_first_column_is_the_baseline_of_gates(folder: Folder) -> None:
    given = ("score", "p.csv", "--truth", "label", "--prediction", "a", "--prediction", "b", "--json")
    gates = json.loads(folder.call(*given, "--gate", "accuracy not worse than baseline by 0.9").stdout)["gates"]
    assert [(gate["subject"], gate["passed"]) for gate in gates] == [("b", True)]


def test_missing_options_are_answered_with_the_complete_command(folder: Folder) -> None:
    said = folder.refused("score", "p.csv", code=2)
    assert "--truth and --prediction are missing; 'label' looks like the truth; 'a', 'b' look like predictions" in said
    assert "evaluand score p.csv --truth label --prediction a --prediction b" in said


def test_a_wrong_column_is_answered_with_the_nearest(folder: Folder) -> None:
    said = folder.refused("score", "p.csv", "--truth", "lable", "--prediction", "a")
    assert "in p.csv no column is called 'lable' (did you mean 'label'?)" in said


def test_a_file_as_truth_is_answered_with_the_option_for_it(folder: Folder) -> None:
    said = folder.refused("score", "p.csv", "--truth", "p.csv", "--prediction", "a", code=2)
    assert "give it as --truth-file p.csv, and with --truth its column, one of id, sex, label" in said


def test_two_files_that_both_have_the_truth_are_not_scored_against_each_other(folder: Folder) -> None:
    for name in ("one.csv", "two.csv"):
        (folder.path / name).write_text("id,truth,prediction\n1,a,b\n")
    given = ("score", "--truth", "one.csv", "--predictions", "two.csv")
    said = folder.refused(*given, "--metric", "accuracy", code=2)
    assert "'truth', which would be scored against itself" in said
    right = "evaluand score two.csv --truth-file one.csv --truth truth --prediction prediction"
    assert f"{right} --metric=accuracy" in said
    assert right in folder.refused(*given, code=2)


def test_stdin_is_read_in_any_format(folder: Folder) -> None:
    lines = "".join(json.dumps(dict(zip(ROWS[0], row, strict=True))) + "\n" for row in ROWS[1:])
    for text in (csv(*ROWS), lines):
        given = ("score", "-", "--truth", "label", "--prediction", "a", "--metric", "accuracy", "--json")
        assert values(json.loads(folder.call(*given, input=text).stdout)) == {("a", "accuracy"): 0.75}
    said = folder.call("score", "-", "--truth", "label", "--prediction", "a", input="label,a\nyes\n").stderr
    assert "<stdin>:2:4: 1 value where the header names 2" in said


def test_results_can_be_stored_and_reported(folder: Folder) -> None:
    given = ("score", "p.csv", "--truth", "label", "--prediction", "a", "--prediction", "b")
    folder.done(*given, "--name", "mine")
    names = {ref.name for ref in folder.store.refs()}
    assert {"mine", "mine/a", "mine/b"} <= names
    folder.done(*given, "--report", "out.html", "--table", "out.csv")
    assert "Score again" in (folder.path / "out.html").read_text()
    with (folder.path / "out.csv").open() as file:
        rows = [(row["task"], row["metric"]) for row in DictReader(file)]
    assert rows[0] == ("a", "accuracy")
    assert len(rows) == 6
    assert "out.html exists already" in folder.refused(*given, "--report", "out.html", code=2)


def test_options_of_problems_and_of_columns_are_not_mixed(folder: Folder) -> None:
    given = ("score", "p.csv", "--truth", "label")
    assert "for columns of p.csv give --prediction=a" in folder.refused(*given, "--predictions", "a", code=2)
    assert "--k is for problems" in folder.refused(*given, "--prediction", "a", "--k", "3", code=2)
    assert "nothing.csv: no such file or folder" in folder.refused("score", "nothing.csv", code=2)
    assert "name the file that has the columns" in folder.refused("score", "--prediction", "a", code=2)
    said = folder.refused("score", "--predictions", "p.csv", "--truth", "label", "--metric", "accuracy", code=2)
    assert "evaluand score p.csv --truth label --prediction COLUMN" in said


def test_a_metric_of_scores_asks_for_them(folder: Folder) -> None:
    given = ("score", "p.csv", "--truth", "label", "--prediction", "a")
    assert "roc_auc needs scores: give --score COLUMN" in folder.refused(*given, "--metric", "auc")
    assert "did you mean 'accuracy'?" in folder.refused(*given, "--metric", "acuracy")
    found = folder.json(*given, "--score", "p_a", "--metric", "auc,f1,log_loss")
    assert {metric for _, metric in values(found)} == {"roc_auc", "f_beta", "log_loss"}


def test_a_confusion_matrix_is_printed_below_the_values(folder: Folder) -> None:
    printed = folder.done("score", "p.csv", "--truth", "label", "--prediction", "a", "--metric", "confusion_matrix")
    assert "see below" in printed
    assert "truth \\ predicted" in printed


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("evaluate", "evaluand score FILE"),
        ("metrics", "evaluand list metrics"),
        ("diff", "evaluand compare NAME OTHER"),
    ],
)
def test_near_names_lead_to_the_command(folder: Folder, name: str, said: str) -> None:
    assert f"no command is called {name!r}; {said}" in folder.refused(name, code=2)


def test_import_without_a_dataset_leads_to_score(folder: Folder) -> None:
    said = folder.refused("import", "p.csv", code=2)
    assert "evaluand score p.csv --truth label --prediction=a --prediction=b" in said


def test_a_report_shows_several(folder: Folder) -> None:
    for name, column in (("one", "a"), ("two", "b")):
        folder.done("score", "p.csv", "--truth", "label", "--prediction", column, "--name", name)
    folder.done("report", "one", "two", "-o", "both.html")
    page = (folder.path / "both.html").read_text()
    assert "<title>one and two" in page
    assert "evaluand compare one two" in page


def test_a_plan_says_why_calls_are_made_again(folder: Folder) -> None:
    experiment = folder.experiment()
    folder.done("run", experiment)
    folder.write("rows.jsonl", [folder.row(i) | ({"answer": "9"} if i == 5 else {}) for i in range(6)])
    assert "1 of 6 calls to make, 5 reused (examples changed)" in folder.call("validate", experiment).stdout
    (folder.path / "app.py").write_text((folder.path / "app.py").read_text().replace("about ", "some "))
    assert "6 of 6 calls to make (app.double changed" in folder.call("validate", experiment).stdout
    folder.write("said.jsonl", [{"_index_": i, "text": "x"} for i in range(6)])
    recorded = folder.experiment("{kind: recorded, path: said.jsonl, response: text}")
    assert "plan   mine: 6 of 6 recorded outputs to read" in folder.call("validate", recorded).stdout


def test_scores_called_after_classes_are_proposed_as_such(folder: Folder) -> None:
    (folder.path / "m.csv").write_text("label,p_cat,p_dog,p_cow\ncat,.5,.3,.2\ndog,.1,.8,.1\ncow,.3,.3,.4\n")
    said = folder.refused("score", "m.csv", "--truth", "label", code=2)
    assert "evaluand score m.csv --truth label --score cat=p_cat --score dog=p_dog --score cow=p_cow" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "label"), "no such option: --target; give --truth COLUMN"),
        (("--truth", "label", "--pred", "a"), "no such option: --pred; give --prediction COLUMN"),
        (("label", "a"), "label is a column of p.csv; give it as --truth or as --prediction"),
        (("other.csv",), "other.csv: no such file, and no column of p.csv"),
    ],
)
def test_other_habits_lead_to_the_option(folder: Folder, words: tuple[str, ...], said: str) -> None:
    assert said in folder.refused("score", "p.csv", *words, code=2)


def test_several_columns_may_stand_in_one_option(folder: Folder) -> None:
    facts = folder.json("score", "p.csv", "--truth", "label", "--prediction", "a,b", "--metric", "acc")
    assert values(facts) == {("a", "accuracy"): 0.75, ("b", "accuracy"): 0.75}


def test_a_metric_that_refuses_the_scores_is_an_error(folder: Folder) -> None:
    (folder.path / "m.csv").write_text("y,p,q\na,2,.5\nb,.3,.5\na,.2,.1\n")
    given = ("score", "m.csv", "--truth", "y", "--score", "a=p", "--score", "b=q", "--metric", "log_loss")
    assert "a score lies outside 0 and 1; log_loss needs probabilities" in folder.refused(*given)


@pytest.mark.parametrize(
    ("table", "options", "note", "value"),
    [
        ("y;m\n1,5;1,4\n2,5;2\n", ("--prediction", "m", "--metric", "mae"), "2 cells of 'y' have a decimal comma", 0.3),
        (
            'y,m\n1.5,1\n2.5,"2,1"\n',
            ("--prediction", "m", "--metric", "mae"),
            "1 cell of 'm' has a decimal comma",
            0.45,
        ),
        ('y,p\n1,"0,8"\n0,"0,2"\n', ("--score", "p", "--metric", "brier"), "'0,8' is read as 0.8", 0.04),
        (
            'y,m,w\na,a,"0,5"\nb,a,"1,5"\n',
            ("--prediction", "m", "--weight", "w", "--metric", "accuracy"),
            "2 cells of 'w' have a decimal comma: '0,5' is read as 0.5",
            0.25,
        ),
    ],
)
def test_decimal_commas_are_read_and_noted(
    folder: Folder, table: str, options: tuple[str, ...], note: str, value: float
) -> None:
    (folder.path / "d.csv").write_text(table)
    facts = folder.json("score", "d.csv", "--truth", "y", *options)
    assert facts["metrics"][0]["value"] == pytest.approx(value)
    assert note in "\n".join(facts["notes"])


def test_texts_with_commas_are_classes_if_stated(folder: Folder) -> None:
    (folder.path / "d.csv").write_text('y,m\n"1,2","1,2"\n"1,3","1,2"\n')
    facts = folder.json("score", "d.csv", "--truth", "y", "--prediction", "m", "--kind", "binary")
    assert values(facts)["m", "accuracy"] == 0.5


def test_the_positive_label_reaches_gates(folder: Folder) -> None:
    given = ("score", "p.csv", "--truth", "sex", "--prediction", "sex2", "--gate", "recall >= 0.85")
    rows = "sex,sex2\nf,f\nf,m\nm,m\nm,m\n"
    (folder.path / "p.csv").write_text(rows)
    assert folder.call(*given, "--pos-label", "m", "--metric", "accuracy").exit_code == 0
    assert folder.call(*given, "--pos-label", "f", "--metric", "accuracy").exit_code == 3


@pytest.mark.parametrize(
    ("words", "shown", "passed", "decided"),
    [
        ((), 1.0, False, False),
        (("--missing", "leave_out"), 1.0, True, True),
        (("--missing", "wrong"), 0.75, False, True),
    ],
)
def test_a_gate_passes_on_rows_without_a_prediction_only_if_it_is_said_how_they_count(
    folder: Folder, words: tuple[str, ...], shown: float, passed: bool, decided: bool
) -> None:
    (folder.path / "few.csv").write_text(csv(("label", "a"), ("x", "x"), ("x", "x"), ("y", "y"), ("y", "")))
    options = ("--truth", "label", "--prediction", "a", "--metric", "accuracy", "--gate", "accuracy >= 0.8", "--json")
    result = folder.call("score", "few.csv", *options, *words)
    facts = json.loads(result.stdout)
    [gate] = facts["gates"]
    assert (values(facts)["a", "accuracy"], gate["passed"], gate["decided"]) == (shown, passed, decided)
    assert result.exit_code == (0 if passed else 3)
