"""Experiments: what is wrong with a file is told by line, all at once; what is wrong in Python, in one sentence."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from evaluand import Accuracy, Aggregation, Dataset, DirectoryStore, Experiment, Measure
from evaluand.core.errors import DataError, EvaluandError, EvaluandWarning, SpecError
from evaluand.data import DataNote
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.report.facts.aggregation import metrics_facts

CODE = """import os


class Model:
    def __init__(self, path):
        self.path = path

    def do_run(self, input, task_span):
        return self.path


class Broken(Model):
    def __init__(self):
        raise ValueError("no key")


def answer(question):
    return question


def of_two(first, second):
    return first
"""

EXPERIMENT = """name: sums
dataset:
  path: rows.csv
  input: question
  expected: answer
  attributes: topic
tasks:
  mine: {function: app.py:answer}
scorers:
  same: {kind: exact_match}
metrics:
  - {kind: accuracy, by: topic}
run:
  concurrency: 2
"""


class Place:
    """A folder with data, code and an experiment file, in which words are exchanged."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "e.yaml"
        (folder / "rows.csv").write_text("question,answer,topic\na,a,x\nb,c,y\n")
        (folder / "app.py").write_text(CODE)

    def experiment(self, *changes: tuple[str, str]) -> Experiment:
        text = EXPERIMENT
        for old, new in changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        self.path.write_text(text)
        return Experiment.from_file(self.path)

    def error(self, *changes: tuple[str, str]) -> EvaluandError:
        with pytest.raises(EvaluandError) as refused:
            self.experiment(*changes)
        return refused.value

    def reported(self, *changes: tuple[str, str]) -> list[str]:
        """What is told, line by line, without the paths of the experiment and of the folder."""
        lines = str(self.error(*changes)).splitlines()
        return [line.removeprefix(f"{self.path}:").replace(f"{self.folder}/", "") for line in lines]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_file_without_faults_is_an_experiment_and_a_single_attribute_needs_no_list(place: Place) -> None:
    table = place.experiment().run().aggregation.table()
    assert table["by"].to_pylist() == [[], [("topic", "x")], [("topic", "y")]]
    assert table["value"].to_pylist() == [0.5, 1.0, 0.0]


@pytest.mark.parametrize("name", ["dask", "Processes"])
def test_an_unknown_engine_is_one_fault_at_its_line(place: Place, name: str) -> None:
    [fault] = place.reported(("concurrency: 2", f"concurrency: 2\nengine: {name}"))
    assert fault.endswith(f"engine: is '{name}'; give 'local', 'processes' or 'ray'")


@pytest.mark.parametrize(
    ("entry", "facts"),
    [
        ("concurrency: 2\nengine: processes", {"kind": "processes"}),
        ("concurrency: 2\nengine: {kind: processes, workers: 3}", {"kind": "processes", "workers": 3}),
        ("concurrency: 2\n  processes: true", {"kind": "processes", "workers": 2}),  # of earlier versions
        ("processes: false", {}),
    ],
)
def test_a_file_says_where_calls_are_made(place: Place, entry: str, facts: dict[str, Any]) -> None:
    engine = place.experiment(("concurrency: 2", entry)).engine
    assert {key: engine.facts[key] for key in facts} == facts
    assert bool(engine.facts) == bool(facts)


# Keys and types


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("sums", "5", '1: name: is 5; give text in quotes ("5")'),
        ("sums", "''", "1: name: is ''; give some text"),
        ("sums", "", "1: name: is empty; give text"),
        (": question", ": {a: 4}", '4: dataset.input.a: is 4; give text in quotes ("4")'),
        (": question", ": [question, {}]", "4: dataset.input.1: is empty; give text"),
        (": answer\n", ": []\n  weight: [a]\n", "6: dataset.weight: is a list; give text"),
        ("app.py:answer", "'app.py:'", "8: tasks.mine.function: is 'app.py:'; give file.py:name or module:name"),
        (": topic}", ": 3}", '12: metrics.0.by: is 3; give text in quotes ("3") or a list'),
        (": 2", ": many", "14: run.concurrency: is 'many'; give an integer"),
        (": 2", ": 1.5", "14: run.concurrency: is 1.5; give an integer"),
        (": 2", ": 0", "14: run.concurrency: is 0; give at least 1"),
        (": 2", f": {'x' * 99}", f"14: run.concurrency: is '{'x' * 58}…; give an integer"),
        (": 2", ": 2\n  timeout: 0", "15: run.timeout: is 0; give more than 0"),
        (": 2", ": 2\n  timeout: soon", "15: run.timeout: is 'soon'; give a number"),
        (": 2", f": 2\n  seed: {2**63}", f"15: run.seed: is {2**63}; give less than {2**63}"),
        (": 2", ": 2\n  abort_on_error: maybe", "15: run.abort_on_error: is 'maybe'; give true or false"),
        ("run:\n  concurrency: 2", "run: fast", "13: run: is 'fast'; give a mapping (name: value)"),
        (
            "{kind: accuracy, by: topic}",
            "{by: topic}",
            "12: metrics.0: is a mapping of by; give either kind: … (a registered kind) or function: file.py:name",
        ),
        (
            "{kind: accuracy, by: topic}",
            "{kind: accuracy, missing: ignore}",
            "12: metrics.0.missing: is 'ignore'; give 'leave_out', 'wrong' or 'refuse'",
        ),
    ],
)
def test_a_wrong_value_is_reported_with_its_line_and_the_remedy(
    place: Place, old: str, new: str, reported: str
) -> None:
    assert place.reported((old, new)) == [reported]


@pytest.mark.parametrize(
    ("entry", "shown"),
    [("{}", "empty"), ("5", "5"), ("", "empty"), ("{colour: red}", "a mapping of colour")],
)
def test_an_entry_is_code_or_a_kind(place: Place, entry: str, shown: str) -> None:
    wanted = "either kind: … (a registered kind) or function: file.py:name"
    assert place.reported(("{function: app.py:answer}", entry)) == [f"8: tasks.mine: is {shown}; give {wanted}"]


def test_unknown_missing_and_empty_keys_are_reported_all_at_once_in_the_order_of_the_lines(place: Place) -> None:
    scorers = ("scorers:\n  same: {kind: exact_match}", "scorers: {}")
    roles = "input, expected, attributes, id, weight, cluster, metadata"
    keys = f"path, format, delimiter, name, {roles}, where, views, adapters, schema"
    assert place.reported(("path:", "pth:"), (" expected:", " expectd:"), scorers, ("2", "two")) == [
        "2: dataset.path: is missing; write path: FILE",
        f"3: dataset.pth: unknown key (did you mean 'path'?); known keys: {keys}",
        f"5: dataset.expectd: unknown key (did you mean 'expected'?); known keys: {keys}",
        "9: scorers: is empty; give at least one entry",
        "13: run.concurrency: is 'two'; give an integer",
    ]


def test_faults_of_form_hide_none_of_data_code_and_pace(place: Place) -> None:
    (place.folder / "theirs.csv").write_text("_index_,text\n0,a\n1,c\n")
    changes = [
        ("  path: rows.csv\n  input: question\n", "  path: rows.csv\n  inptu: question\n"),
        (": topic\n", ": topc\n"),
        ("{function: app.py:answer}", "{kind: recorded, path: gone.csv, response: text}\n  other: {}"),
        ("{kind: exact_match}", "{kind: exact_mach}\n  empty:"),
        ("{kind: accuracy, by: topic}", "{kind: acuracy, scorer: empty}\n  - {scorer: same, by: 3}"),
        (": 2", ": two\n  rate: 10/x\n  transient: [OSEror]\n  retries: few"),
    ]
    reported = [":".join(line.split(":")[:2]) for line in place.reported(*changes)]
    assert reported == [
        "4: dataset.inptu",
        "6: dataset.attributes",
        "8: tasks.mine",
        "9: tasks.other",
        "11: scorers.same.kind",
        "12: scorers.empty",
        "14: metrics.0",
        "15: metrics.1",
        "17: run.concurrency",
        "18: run.rate",
        "20: run.retries",
    ]
    without_other = ("{function: app.py:answer}", "{kind: recorded, path: gone.csv, response: text}")
    reported = [":".join(line.split(":")[:2]) for line in place.reported(without_other, *changes[3:])]
    assert reported[0] == "8: tasks.mine"
    assert "18: run.transient.0" in reported  # which the faulty task might have defined


def test_a_dataset_with_faulty_keys_is_opened_all_the_same(place: Place) -> None:
    reported = place.reported(("rows.csv", "gone.csv"), (": topic\n", ": {}\n"))
    assert reported == [
        "3: dataset.path: gone.csv: no such file",
        "6: dataset.attributes: is empty; give text or a list or at least one entry",
    ]


def test_scorers_that_are_missing_make_no_fault_of_every_metric(place: Place) -> None:
    assert place.reported(("scorers:\n  same: {kind: exact_match}\n", "")) == [
        "1: scorers: is missing; write scorers: {right: exact_match}, or prediction for classes and numbers"
    ]


def test_a_key_that_stands_twice_hides_no_other_fault(place: Place) -> None:
    twice = (": topic\n", ": topic\n  input: qestion\n")
    [first, second] = place.reported(twice)
    assert first == "7: dataset.input: occurs twice; give each entry a different name"
    assert second.startswith("7: dataset.input: no column is called 'qestion'")


def test_parameters_of_a_kind_are_reported_at_their_own_lines(place: Place) -> None:
    block = "\n    kind: exact_match\n    normalise: case\n    any_of: 5"
    assert place.reported(("{kind: exact_match}", block)) == [
        "12: scorers.same.normalise: is 'case'; give a list",
        "13: scorers.same.any_of: is 5; give true or false",
    ]
    known = "exact_match has no such parameter (did you mean 'any_of'?); it has normalise, any_of"
    known += ", view, expected_view"
    assert place.reported(("{kind: exact_match}", block.replace("any_of", "anyof"))) == [
        f"13: scorers.same.anyof: {known}"
    ]


def test_keys_of_an_entry_are_listed_with_the_parameters_of_its_kind(place: Place) -> None:
    [reported] = place.reported((", by: topic", ", zzz: red"))
    keys = "reference, pairs, given, smallest, adjust, scorer, by, where, disparities, worst_groups"
    assert reported.startswith("12: metrics.0.zzz: accuracy has no such parameter; it has missing, reduce, ")
    assert reported.endswith(f", {keys}")
    [reported] = place.reported((", by: topic", ", groups: topic"))
    assert reported == "12: metrics.0.groups: accuracy has no such parameter; write by: COLUMN"
    [reported] = place.reported((", by: topic", ", disparites: difference"))
    assert reported.startswith("12: metrics.0.disparites: accuracy has no such parameter (did you mean 'disparities'?)")
    [reported] = place.reported(("{function: app.py:answer}", "{kind: program, comand: cat, command: cat}"))
    assert reported.startswith("8: tasks.mine.comand: program has no such parameter (did you mean 'command'?); it has ")
    assert reported.endswith(", view")


@pytest.mark.parametrize("lax", ["yes", "'yes'", "1", "'true'", "0.0", "on", "'0'"])
@pytest.mark.parametrize(
    "places",
    [
        {
            "8: tasks.mine.items": ("app.py:answer", "app.py:answer, items: LAX"),
            "10: scorers.same.any_of": ("exact_match", "exact_match, any_of: LAX"),
            "12: metrics.0.weighted": (", by: topic", ", weighted: LAX"),
        },
        {
            "8: tasks.mine.items": ("{function: app.py:answer}", "{kind: program, command: [cat], items: LAX}"),
            "10: scorers.same.batch": ("{kind: exact_match}", "{function: app.py:of_two, batch: LAX}"),
            "15: run.abort_on_error": (": 2", ": 2\n  abort_on_error: LAX"),
        },
    ],
)
def test_only_true_and_false_are_true_or_false(place: Place, places: dict[str, tuple[str, str]], lax: str) -> None:
    shown = {"yes": "'yes'", "on": "'on'"}.get(lax, lax)
    reported = place.reported(*((old, new.replace("LAX", lax)) for old, new in places.values()))
    assert {f"{at}: is {shown}; give true or false" for at in places} <= {*reported}


def test_a_file_that_is_not_utf_8_is_reported_and_one_with_a_mark_is_read(place: Place) -> None:
    place.path.write_bytes(b"\xef\xbb\xbf" + EXPERIMENT.encode())
    assert Experiment.from_file(place.path).name == "sums"
    place.path.write_bytes(EXPERIMENT.replace("sums", "sümme").encode("latin-1"))
    with pytest.raises(SpecError) as refused:
        Experiment.from_file(place.path)
    assert str(refused.value) == f"{place.path}: byte 7 is not UTF-8; save the file as UTF-8"


# Data


def test_columns_that_are_not_there_are_reported_at_the_line_of_their_role(place: Place) -> None:
    there = "there are question, answer, topic"
    assert place.reported((": question", ": qestion"), (": answer\n", ": [answer, colour]\n")) == [
        f"4: dataset.input: no column is called 'qestion' (did you mean 'question'?); {there}",
        f"5: dataset.expected: no column is called 'colour'; {there}",
    ]


def test_a_dataset_that_cannot_be_opened_is_reported_at_the_line_of_its_path(place: Place) -> None:
    error = place.error(("rows.csv", "nowhere.csv"))
    assert isinstance(error, DataError)
    assert str(error) == f"{place.path}:3: dataset.path: {place.folder / 'nowhere.csv'}: no such file"
    assert place.reported(("rows.csv", "app.py"))[0].startswith("3: dataset.path: app.py: unknown format 'py'")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("question,answer,topic\n", "the file has no examples"),
        ("", "there are no columns, and so no examples"),
    ],
)
def test_a_file_that_names_data_without_examples_is_refused(place: Place, text: str, reported: str) -> None:
    (place.folder / "rows.csv").write_text(text)
    error = place.error()
    assert isinstance(error, DataError)
    assert str(error) == f"{place.path}:3: dataset.path: {place.folder / 'rows.csv'}: {reported}"


def test_faulty_rows_keep_their_own_place_with_faults_of_the_file(place: Place) -> None:
    (place.folder / "rows.csv").write_text("question,answer,topic\na,a\nb,c,y,z\n")
    assert isinstance(place.error(), DataError)
    assert place.reported((": exact_match", ": exact_mach"))[0] == "rows.csv:2:4: 2 values where the header names 3"
    assert place.reported((": exact_match", ": exact_mach"))[2].startswith(
        "10: scorers.same.kind: no kind of scorer is "
    )
    assert isinstance(place.error((": exact_match", ": exact_mach")), SpecError)


def test_another_delimiter_can_be_said(place: Place) -> None:
    (place.folder / "rows.csv").write_text("question;answer;topic\na;a;x\nb;b;y\n")
    with pytest.warns(DataNote, match='the cells are separated by ";"'):
        assert len(place.experiment().dataset) == 2
    assert len(place.experiment(("rows.csv", 'rows.csv\n  delimiter: ";"')).dataset) == 2


# Tasks and metrics against the data


def test_recorded_outputs_are_checked_before_anything_is_called(place: Place) -> None:
    (place.folder / "theirs.csv").write_text("_index_,text\n0,a\n1,c\n")

    def entry(file: str, rest: str) -> tuple[str, str]:
        return "{function: app.py:answer}", f"{{kind: recorded, path: {file}, {rest}}}"

    assert place.reported(entry("their.csv", "response: text")) == ["8: tasks.mine: their.csv: no such file"]
    reported = (
        "8: tasks.mine: theirs.csv: response: no column is called 'txt' (did you mean 'text'?); there are _index_, text"
    )
    assert place.reported(entry("theirs.csv", "response: txt")) == [reported]
    assert len(place.experiment(entry("theirs.csv", "response: text")).run().tasks) == 1


def test_a_function_that_takes_other_columns_is_reported_before_anything_is_called(place: Place) -> None:
    [reported] = place.reported(("app.py:answer", "app.py:of_two"))
    assert reported.startswith("8: tasks.mine: task 'of_two' takes first, second, ")


def test_a_single_metric_needs_no_list(place: Place) -> None:
    several = "metrics:\n  - {kind: accuracy, by: topic}"
    assert place.experiment((several, "metrics: {kind: accuracy, by: topic}")).measures == place.experiment().measures
    [reported] = place.reported((several, "metrics:\n  kind: accuracy\n  by: topc"))
    assert reported.startswith("11: metrics: accuracy: 'topc' is not an attribute")
    [reported] = place.reported((several, "metrics:\n  kind: accuracy\n  by: 3"))
    assert reported == '13: metrics.by: is 3; give text in quotes ("3") or a list'
    assert place.reported((several, "metrics: {same: accuracy}")) == ["11: metrics: is a mapping of same; give a list"]


def test_a_misspelt_group_of_scorers_has_no_consequences(place: Place) -> None:
    [reported] = place.reported(("scorers:", "scorer:"), ("run:", "gates: [accuracy >= 0.5]\nrun:"))
    assert reported == "9: scorer: unknown key; write scorers: {right: exact_match}"


@pytest.mark.parametrize(
    ("metric", "gate", "faults"),
    [
        ("kind: acuracy, scorer: same", "accuracy >= 0.5", ["13: metrics.0: no metric is called 'acuracy'"]),
        ("kind: accuracy, scorer: smae", "accuracy >= 0.5", ["13: metrics.0: no scorer is called 'smae'"]),
        ("kind: accuracy, scorer: 3", "accuracy >= 0.5", ["13: metrics.0.scorer: is 3;"]),
        ("function: app.py:shares", "shares(same) >= 0.5", ["13: metrics.0: "]),
        ("kind: f_beta, label: 3, scorer: smae", "f_beta(same, label=x) >= 0.5", ["13: metrics.0: no scorer is"]),
        ("kind: acuracy, scorer: same", "mean >= 2", ["13: metrics.0: ", "15: gates.0: "]),
        ("kind: accuracy, scorer: same", "accurcy >= 0.5", ["15: gates.0: gate 'accurcy >= 0.5': no metric is called"]),
    ],
)
def test_a_metric_with_a_fault_has_no_consequences_for_gates(
    place: Place, metric: str, gate: str, faults: list[str]
) -> None:
    further = "  - {kind: mean, scorer: other, range: [0, 1]}\n"
    reported = place.reported(
        ("metrics:\n", "  other: {kind: exact_match}\nmetrics:\n"),
        ("kind: accuracy, by: topic}\n", f"{metric}}}\n{further}"),
        ("run:", f"gates: ['{gate}']\nrun:"),
    )
    assert len(reported) == len(faults)
    assert all(map(str.startswith, reported, faults)), reported


def test_metrics_that_do_not_fit_are_reported_before_anything_is_called(place: Place) -> None:
    [reported] = place.reported((": topic}", ": topc}"))
    assert reported.startswith(
        "12: metrics.0: accuracy: 'topc' is not an attribute of the dataset (did you mean 'topic'?)"
    )
    [reported] = place.reported((", by: topic", ", scorer: sane"))
    assert reported == "12: metrics.0: no scorer is called 'sane' (did you mean 'same'?); there are same"


PAIR = "{kind: recorded, path: theirs.jsonl, response: {prediction: text, confidence: sure}}"
ONE = "{kind: recorded, path: theirs.jsonl, response: text}"


@pytest.mark.parametrize(
    ("answers", "texts", "task", "scorer", "reported"),
    [
        (
            ["a", "b"],
            ["a", "b"],
            "app.py:answer",
            "{kind: prediction, type: boolean}",
            "no example can be graded: the truth is the text 'a', not true or false; "
            "set the scorer's type to what the data are, as in {kind: prediction, type: text}, or convert them",
        ),
        (
            [1, 2],
            ["1", "2"],
            ONE,
            "{kind: prediction, type: integer}",
            "no output of task 'mine' can be graded: the prediction is the text '1', not an integer; "
            "set the scorer's type to what the data are, or convert them",
        ),
        (
            ["a", "b"],
            ["a", "b"],
            PAIR,
            "exact_match",
            "no output of task 'mine' can be graded: the output is an object and the expected answer the text 'a', "
            "which are never equal; name the part of the output that is the answer",
        ),
        (
            [["a"], ["b"]],
            ["a", "c"],
            ONE,
            "exact_match",
            "no output of task 'mine' can be graded: the output is the text 'a' and the expected answer a list, "
            "which are never equal; use json_equality for JSON, or any_of for a list of answers",
        ),
        (
            [1, 2],
            ["1", "2"],
            ONE,
            "exact_match",
            "no output of task 'mine' can be graded: the output is the text '1' and the expected answer the integer 1, "
            "which are never equal; give both the same type, or use numeric_answer",
        ),
        ([1, 2], [1, 2], ONE, "includes", "no example can be graded: the expected value is the integer 1; "),
        (["a", "b"], ["a"] * 2, ONE, "numeric_answer", "no example can be graded: the expected value is the text 'a'"),
        (["a", "b"], ["a"] * 2, ONE, "json_equality", "no example can be graded: the expected value is the text 'a'"),
        (
            [1, 2],
            ["a"] * 2,
            ONE,
            "{kind: pattern, pattern: (a), group: 1}",
            "no example can be graded: the expected value is the integer 1; pattern compares text",
        ),
    ],
)
def test_a_scorer_that_can_grade_no_row_is_reported_before_anything_is_called(
    place: Place, answers: list[Any], texts: list[Any], task: str, scorer: str, reported: str
) -> None:
    recorded(place, answers, texts)
    found = place.reported(
        ("rows.csv", "rows.jsonl"),
        ("{function: app.py:answer}", task),
        ("{kind: exact_match}", scorer),
        (", by: topic", ""),
    )
    assert found[0].startswith(f"10: scorers.same: {reported}")
    assert len(found) == 1


def test_outputs_that_are_all_wrong_are_no_mistake(place: Place) -> None:
    recorded(place, [1, 2], ["I do not know", "nor that"])
    with pytest.warns(EvaluandWarning, match=r"no output of task 'mine' can be right: the task returns text and the"):
        made = place.experiment(("rows.csv", "rows.jsonl"), ("{function: app.py:answer}", ONE), (", by: topic", ""))
    with pytest.warns(EvaluandWarning, match=r"scorer 'same' gave every answer 0, and none could be right"):
        assert made.run().aggregation.table()["value"].to_pylist() == [0.0]


def test_sides_that_are_never_equal_are_reported_before_the_first_call_with_the_paths_that_fit() -> None:
    def answer(question: str) -> str:
        raise AssertionError("this was called")

    rows = [{"input": "a", "gold": {"answers": ["x"], "n": 1}}]
    data = Dataset.from_rows(rows, input="input", expected="gold")
    experiment = Experiment("x", data, {"t": answer}, {"s": ExactMatch()}, [Measure("s", Accuracy())])
    paths = r"no output of task 't' can be right: the task returns text .* that fits: gold\.answers\[0\]"
    with pytest.raises(EvaluandWarning, match=paths):  # warnings are errors here
        experiment.run()
    data = Dataset.from_rows(rows, input="input", expected="gold.answers[0]")
    right = Experiment("x", data, {"t": lambda question: "x"}, {"s": ExactMatch()}, [Measure("s", Accuracy())])
    assert right.run().aggregation.table()["value"].to_pylist() == [1.0]


def test_a_scorer_that_can_grade_some_row_of_every_task_is_no_fault(place: Place) -> None:
    recorded(place, [None, 1, "b", "c"], ["a", "1", None, "c"])
    experiment = place.experiment(("rows.csv", "rows.jsonl"), ("{function: app.py:answer}", ONE))
    assert experiment.run().tasks[0].evaluation.counts == {"same": {"abstained": 2, "failed": 1, "scored": 1}}


def test_every_target_must_be_gradable(place: Place) -> None:
    recorded(place, [1, 2], [{"a": 1, "b": 1}, {"a": 2, "b": "2"}])
    targets = (": answer\n", ": {a: answer, b: topic}\n")
    scorer = ("{kind: exact_match}", "{kind: prediction, type: integer, prediction_key: null}")
    [reported] = place.reported(("rows.csv", "rows.jsonl"), ("{function: app.py:answer}", ONE), targets, scorer)
    assert reported.startswith("10: scorers.same: no example can be graded for target 'b': the truth is the text 'x'")


def recorded(place: Place, answers: list[Any], texts: list[Any]) -> None:
    """A dataset with expected answers, and a file of recorded texts."""
    rows = [{"question": "q", "answer": answer, "topic": "x"} for answer in answers]
    outputs = [{"_index_": i, "text": text, "sure": 0.5} for i, text in enumerate(texts)]
    for name, lines in (("rows", rows), ("theirs", outputs)):
        (place.folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


# Code


@pytest.mark.parametrize(
    ("code", "reported"),
    [
        ("import os\n\nx = foo\n", "app.py:3: NameError: name 'foo' is not defined"),
        ("x = (\n", "app.py:1: SyntaxError: '(' was never closed"),
        ("import nowhere_at_all\n", "app.py:1: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("import part\n", "part.py:2: ZeroDivisionError: division by zero"),
        ("import json\njson.loads('')\n", "app.py:2: JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        ("\nraise SystemExit(3)\n", "app.py:2: SystemExit: 3"),
        ("anser = 1\n", "app.py has no 'answer' (did you mean 'anser'?)"),
    ],
)
def test_an_error_in_code_is_reported_with_its_place_in_the_users_file(place: Place, code: str, reported: str) -> None:
    (place.folder / "app.py").write_text(code)
    (place.folder / "part.py").write_text("\n1 / 0\n")
    assert place.reported() == [f"8: tasks.mine: {reported}"]


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        (
            "Model",
            "app.py:4: TypeError: Model.__init__() missing 1 required positional argument: 'path';"
            " put the arguments of Model under parameters",
        ),
        ("Broken", "app.py:14: ValueError: no key"),
    ],
)
def test_an_object_that_cannot_be_made_is_reported_with_the_place_of_its_class(
    place: Place, name: str, reported: str
) -> None:
    assert place.reported(("app.py:answer", f"app.py:{name}")) == [f"8: tasks.mine: {reported}"]


@pytest.mark.parametrize(
    ("name", "reported"),
    [("LIMIT", "a number"), ("os", "a module"), ("Plain", "a Plain"), ("WORDS", "a list")],
)
def test_what_cannot_be_called_is_no_task_and_no_scorer(place: Place, name: str, reported: str) -> None:
    (place.folder / "app.py").write_text(f"{CODE}\n\nclass Plain:\n    pass\n\n\nLIMIT = 5\nWORDS = ['a']\n")
    hint = "is not callable; name a function, or a class whose objects are callable"
    assert place.reported(("app.py:answer", f"app.py:{name}")) == [f"8: tasks.mine: app.py:{name}: {reported} {hint}"]
    entry = ("{kind: exact_match}", f"app.py:{name}")
    assert place.reported(entry) == [f"10: scorers.same: app.py:{name}: {reported} {hint}"]


def test_a_class_of_scorers_is_pinned_by_its_own_version(place: Place) -> None:
    code = "from evaluand import Scorer\n\n\nclass Same(Scorer):\n    def score(self, output, expected):\n"
    code += "        return 1\n"
    (place.folder / "grading.py").write_text(code)
    [reported] = place.reported(("{kind: exact_match}", "{function: grading.py:Same, version: '1'}"))
    assert reported.startswith("10: scorers.same: grading.py:Same is a Scorer class: declare its version there")


def test_code_that_imports_broken_code_is_reported_with_the_place_of_the_break(place: Place) -> None:
    (place.folder / "app.py").write_text("answer = foo\n")
    (place.folder / "other.py").write_text("import app\n\nanswer = app.answer\n")
    reported = "app.py:1: NameError: name 'foo' is not defined"
    entry = "{function: app.py:answer}"
    assert place.reported((entry, f"{entry}\n  other: other.py:answer")) == [
        f"8: tasks.mine: {reported}",
        f"9: tasks.other: {reported}",
    ]


def test_code_that_was_broken_can_be_mended(place: Place) -> None:
    (place.folder / "app.py").write_text("answer = foo\n")
    place.error()
    (place.folder / "app.py").write_text(CODE)
    assert place.experiment().run().tasks[0].run.counts == {"completed": 2}


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("ConectionError", "no error class is called 'ConectionError' (did you mean 'ConnectionError'?); "),
        (
            "TooBussy",
            "no error class is called 'TooBussy' (did you mean 'TooBusy'?); name a class of your code, or write ",
        ),
        ("json.JSONDecodeEror", "json has no 'JSONDecodeEror' (did you mean 'JSONDecodeError'?)"),
        ("nowhere_at_all.Busy", "nowhere_at_all cannot be imported: ModuleNotFoundError: "),
        ("json.loads", "json.loads is a function, not an error class"),
        ("str", "str is a type, not an error class"),
    ],
)
def test_an_error_worth_a_retry_that_is_none_is_reported_at_its_line(place: Place, name: str, reported: str) -> None:
    (place.folder / "app.py").write_text(f"{CODE}\n\nclass TooBusy(Exception):\n    pass\n")
    [found] = place.reported((": 2", f": 2\n  transient:\n    - OSError\n    - {name}"))
    assert found.startswith(f"17: run.transient.1: {reported}")


def test_errors_worth_a_retry_are_those_of_the_code_of_python_and_of_modules(place: Place) -> None:
    (place.folder / "app.py").write_text(f"{CODE}\n\nclass TooBusy(Exception):\n    pass\n")
    names = "[TransientError, TooBusy, IOError, json.JSONDecodeError, WorkerDied]"
    made = place.experiment((": 2", f": 2\n  transient: {names}"))
    assert made.policy.transient == ("TransientError", "TooBusy", "OSError", "JSONDecodeError", "WorkerDied")


def test_a_program_may_name_its_errors_as_it_likes(place: Place) -> None:
    program = ("{function: app.py:answer}", "{kind: program, command: [cat]}")
    made = place.experiment(program, (": 2", ": 2\n  transient: [OfTheProgram]"))
    assert made.policy.transient == ("OfTheProgram",)


# Python

GIVEN: dict[str, Any] = {
    "name": "e",
    "dataset": Dataset.from_rows([{"input": "a", "expected": "A"}]),
    "tasks": {"upper": str.upper},
    "scorers": {"same": "exact_match"},
    "measures": [Measure("same", Accuracy())],
}


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ({"name": 5}, "a name must be text, not 5"),
        ({"name": " "}, "a name must not be empty or blank"),
        ({"dataset": 5}, "dataset: give a path, a table or frame, or a list of mappings, not a number"),
        ({"tasks": [str.upper]}, "tasks must be a mapping name: task with at least one, not a list"),
        ({"tasks": {}}, "tasks must be a mapping name: task with at least one"),
        ({"tasks": {1: str.upper}}, "a name must be text, not 1"),
        ({"tasks": {"mine": "app.py:answer"}}, "tasks.mine: a str is not a task"),
        ({"scorers": [str.upper]}, "scorers must be a mapping name: scorer with at least one, not a list"),
        ({"measures": [Accuracy]}, r"^measures must be a list of names of metrics or of Measure\(scorer, metric\)"),
        ({"measures": []}, r"of Measure\(scorer, metric\), with at least one$"),
        ({"measures": ["acuracy"]}, r"no metric is called 'acuracy' \(did you mean 'accuracy'\?\)"),
        (
            {"scorers": ["exact_match", "includes"], "measures": [Accuracy()]},
            r"^measures: Accuracy\(\) could read several scorers; write Measure\('exact_match', Accuracy\(\)\)$",
        ),
        ({"measures": [Measure("sane", Accuracy())]}, r"no scorer is called 'sane' \(did you mean 'same'\?\)"),
        ({"policy": {"retries": 3}}, "policy must be a Policy, not an object"),
    ],
)
def test_what_is_given_wrongly_is_refused_in_one_sentence(wrong: dict[str, Any], reported: str) -> None:
    with pytest.raises(SpecError, match=reported):
        Experiment(**GIVEN | wrong)


def test_names_suffice_for_scorers_and_for_metrics_of_the_only_scorer() -> None:
    named = Experiment(**GIVEN | {"scorers": "exact_match", "measures": "accuracy"})
    written = Experiment(**GIVEN | {"scorers": {"exact_match": "exact_match"}, "measures": [Accuracy()]})
    assert named.measures == written.measures == [Measure("exact_match", Accuracy())]
    assert named.run().aggregation.id == written.run().aggregation.id


def test_an_experiment_takes_rows_of_any_kind_as_its_dataset() -> None:
    rows = [{"input": "a", "expected": "A"}, {"input": "b", "expected": "b"}]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    results = [Experiment(**GIVEN | {"dataset": data}).run() for data in (rows, columns, pa.Table.from_pylist(rows))]
    assert [result.aggregation.table()["value"].to_pylist() for result in results] == [[0.5]] * 3
    assert len({result.tasks[0].run.digest for result in results}) == 1


# Estimators

MODELS = """
from sklearn.linear_model import LogisticRegression


def logistic():
    return LogisticRegression(max_iter=200)
"""


def estimator(folder: Path, task: str) -> Path:
    rows = "".join(f"{i % 7},{i % 5},{'yes' if i % 7 > i % 5 else 'no'}\n" for i in range(40))
    (folder / "data.csv").write_text("a,b,target\n" + rows)
    (folder / "models.py").write_text(MODELS)
    file = folder / "experiment.yaml"
    file.write_text(
        "name: split\ndataset: {path: data.csv, expected: target, attributes: target}\n"
        f"tasks:\n  mine: {task}\nscorers: {{pair: prediction}}\nmetrics: [{{kind: accuracy, by: target}}]\n"
    )
    return file


def test_an_estimator_is_named_by_file_and_cross_validated(tmp_path: Path) -> None:
    file = estimator(tmp_path, "{kind: estimator, model: 'models.py:logistic', split: {folds: 4, repeats: 2}}")
    results = Experiment.from_file(file).run()
    assert results.tasks[0].run.counts == {"completed": 80}
    groups = [row["by"] for row in results.aggregation.table().to_pylist()]
    assert groups == [[], [("target", "no")], [("target", "yes")]]  # a scorer may have a column of that name too


def test_a_split_by_groups_is_written_in_the_file(tmp_path: Path) -> None:
    task = "{kind: estimator, model: 'models.py:logistic', split: {folds: 3, groups: b}}"
    results = Experiment.from_file(estimator(tmp_path, task)).run()
    folds = [response.fold for response in results.tasks[0].run]
    assert all(folds[i] == folds[i % 5] for i in range(40))
    assert set(folds) == {0, 1, 2}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("{kind: estimator, model: 'models.py:logistik', split: {folds: 4}}", "(did you mean 'logistic'?)"),
        ("{kind: estimator, model: 'models.py:logistic', split: {fold: 4}}", "tasks.mine.split.fold: unknown key"),
        ("{kind: estimator, model: 'models.py:logistic', split: {folds: 1}}", "folds is 1; give an integer"),
        ("{kind: estimator, model: 'models.py:MODELS'}", "models.py has no 'MODELS'"),
        (
            "{kind: estimator, model: 'models.py:logistic', split: {folds: 4, stratified: 1}}",
            "tasks.mine.split.stratified: is 1; give true or false",
        ),
    ],
)
def test_an_estimator_that_cannot_be_is_reported_by_line(tmp_path: Path, task: str, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        Experiment.from_file(estimator(tmp_path, task))
    assert "experiment.yaml:4: tasks.mine" in str(raised.value)
    assert message in str(raised.value)


# Names and versions


def test_a_value_stands_with_the_task_it_was_requested(tmp_path: Path) -> None:
    """Two tasks that answer alike share an evaluation, and tasks may change their names."""
    (tmp_path / "data.jsonl").write_text('{"input": "a", "expected": "A"}\n')
    (tmp_path / "app.py").write_text("def good(text):\n    return text.upper()\n\n\ndef bad(text):\n    return text\n")

    def labelled(tasks: str) -> list[tuple[str, float]]:
        text = f"name: e\ndataset: {{path: data.jsonl}}\ntasks: {tasks}\nscorers: {{s: exact_match}}\n"
        text += "metrics: [accuracy]\n"
        (tmp_path / "e.yaml").write_text(text)
        store = DirectoryStore(tmp_path / "store")
        made = Experiment.from_file(tmp_path / "e.yaml").run(store).aggregation
        return [(row["task"], row["value"]) for row in metrics_facts(Aggregation(store, made.id))]

    assert labelled("{old: 'app.py:good', new: 'app.py:bad'}") == [("old", 1.0), ("new", 0.0)]
    assert labelled("{new: 'app.py:good', old: 'app.py:bad'}") == [("new", 1.0), ("old", 0.0)]
    assert labelled("{one: 'app.py:good', two: 'app.py:good'}") == [("one", 1.0), ("two", 1.0)]


@pytest.mark.parametrize(
    ("task", "reported"),
    [
        ("{function: 'app.py:answer', version: ''}", r"e\.yaml:4: tasks\.t\.version"),
        ("{function: 'app.py:answer', files: [nope.txt]}", r"e\.yaml:4: tasks\.t: .*nope\.txt does not exist"),
        ("'..:answer'", r"e\.yaml:4: tasks\.t: '\.\.' is neither a file nor a module"),
    ],
    ids=["empty version", "file", "module"],
)
def test_what_code_cannot_be_pinned_by_or_found_under_is_reported_by_line(
    tmp_path: Path, task: str, reported: str
) -> None:
    (tmp_path / "data.jsonl").write_text('{"input": "a", "expected": "A"}\n')
    (tmp_path / "app.py").write_text("def answer(text):\n    return text\n")
    file = tmp_path / "e.yaml"
    file.write_text(
        f"name: e\ndataset: {{path: data.jsonl}}\ntasks:\n  t: {task}\n"
        "scorers: {s: exact_match}\nmetrics: [accuracy]\n"
    )
    with pytest.raises(SpecError, match=reported):
        Experiment.from_file(file)


@pytest.mark.parametrize(
    "entry",
    [
        "{{function: 'app.py:answer', version: {0}}}",
        "{{kind: program, command: [cat], version: {0}}}",
        "{{kind: service, url: 'http://x', model: {0}, version: '1'}}",
        "{{kind: service, url: 'http://x', model: m, version: {0}}}",
    ],
    ids=["code", "program", "model", "service"],
)
def test_a_version_is_what_is_written_and_no_number(place: Place, entry: str) -> None:
    def identity(version: str) -> Any:
        [task] = place.experiment(("{function: app.py:answer}", entry.format(version))).tasks.values()
        return task.identify().spec

    assert identity("1.10") == identity("'1.10'") != identity("1.1")
    assert identity("1_0") == identity("'1_0'")


def test_a_text_that_needs_quotes_in_yaml_is_reported_so(place: Place) -> None:
    [reported] = place.reported(("{kind: exact_match}", "{kind: exact_match, view: {a: $.b[0].c}}"))
    assert reported.endswith("put a text with [ ] { } , or : in quotes")


TRIES = """
name: tries
dataset: {{path: rows.jsonl, input: question, expected: answer}}
tasks: {{mine: app.py:answer}}
scorers: {{same: exact_match}}
metrics: [accuracy, {{kind: {metric}, k: 3}}]
run: {{replications: {n}}}
"""


def tries(folder: Path, metric: str, n: int | str, code: str = "") -> Path:
    (folder / "rows.jsonl").write_text('{"question": "a", "answer": "A"}')
    (folder / "app.py").write_text(f"{code}\ndef answer(text):\n    return text.upper()\n")
    file = folder / "experiment.yaml"
    file.write_text(TRIES.format(metric=metric, n=n))
    return file


@pytest.mark.parametrize("metric", ["pass_at_k", "k_of_n"])
@pytest.mark.parametrize(("n", "times"), [("null", "once"), (2, "2 times")])
def test_too_few_replications_for_a_metric_are_reported_before_anything_is_called(
    tmp_path: Path, metric: str, n: int | str, times: str
) -> None:
    reported = (
        f"experiment.yaml:6: metrics.1: {metric}: k=3 needs 3 answers to each example, but mine is called {times};"
    )
    with pytest.raises(SpecError, match=re.escape(reported)):
        Experiment.from_file(tries(tmp_path, metric, n))
    whole = Experiment.from_file(tries(tmp_path, metric, 3))
    with pytest.raises(SpecError, match="run with replications: 3 or more"):
        replace(whole, replications=None)


def test_a_task_that_may_give_several_answers_at_once_is_asked_as_often_as_is_said(tmp_path: Path) -> None:
    code = "from evaluand import Candidates"
    assert Experiment.from_file(tries(tmp_path, "pass_at_k", "null", code)).replications is None


def test_a_rate_without_a_period_is_reported_how_it_is_written(tmp_path: Path) -> None:
    reported = "experiment.yaml:7: run.rate: is 5, without a period; give calls per period, such as 5/s"
    with pytest.raises(SpecError, match=re.escape(reported)):
        Experiment.from_file(tries(tmp_path, "pass_at_k", "3, rate: 5"))
    assert str(Experiment.from_file(tries(tmp_path, "pass_at_k", "3, rate: 5/s")).policy.rate) == "5/s"


def test_a_key_that_a_criterion_of_fairness_has_not_is_reported_with_those_it_has(place: Place) -> None:
    rule = "fairness:\n  - {criterion: demographic_parity, by: topic, labels: x}\nrun:"
    keys = "reference, pairs, given, smallest, adjust, criterion, by, scorer, label, scored_by, disparities, confidence"
    assert place.reported(("run:", rule)) == [
        f"14: fairness.0.labels: unknown key (did you mean 'label'?); known keys: {keys}"
    ]


@pytest.mark.parametrize(
    ("criterion", "reported"),
    [
        ("equal_opportunity", "equal_opportunity needs the positive class; name it, as in label="),
        (
            "demographic_parity, label: A, scored_by: classes",
            "demographic_parity applies to decisions and reads no scores",
        ),
    ],
)
def test_what_a_criterion_of_fairness_lacks_is_reported_before_anything_is_called(
    place: Place, criterion: str, reported: str
) -> None:
    rule = f"fairness:\n  - {{criterion: {criterion}, by: topic, scorer: same}}\nrun:"
    [line] = place.reported(("run:", rule), ("{kind: exact_match", "{kind: prediction"))
    assert line.startswith(f"14: fairness.0: {reported}")


@pytest.mark.parametrize("label", ["1.5", "[a]"])
def test_the_label_of_a_criterion_of_fairness_is_no_other_than_a_class(place: Place, label: str) -> None:
    rule = f"fairness:\n  - {{criterion: demographic_parity, by: topic, label: {label}}}\nrun:"
    [reported] = place.reported(("run:", rule))
    assert reported.startswith("14: fairness.0.label: is ")
