"""`--where`: the same conditions for the rows that are run, scored, shown and exported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.commands import Folder, run_once

EXPERIMENT = """name: sums
dataset: {path: sums.jsonl, input: q, expected: "gold.answers[0]", attributes: {topic: topic, level: meta.level}}
tasks: {mine: sums.py:answer}
scorers: {right: exact_match}
metrics: [accuracy]
"""
CODE = "def answer(q):\n    return 'x' if q == '2+1' else str(sum(map(int, q.split('+'))))\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the experiment was run."""
    made = make(tmp_path_factory.mktemp("finished"))
    return run_once(made, made.path / "sums.yaml")


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Folder:
    return Folder.copied(finished, tmp_path)


def make(path: Path) -> Folder:
    folder = Folder(path)
    folder.write(
        "sums.jsonl",
        [
            {
                "q": f"{i}+1",
                "gold": {"answers": [str(i + 1)]},
                "topic": ("one", "two")[i % 2],
                "meta": {"level": None if i == 3 else i},
            }
            for i in range(6)
        ],
    )
    (path / "sums.py").write_text(CODE)
    (path / "sums.yaml").write_text(EXPERIMENT)
    return folder


def test_only_matching_examples_are_run_and_the_rest_later(tmp_path: Path) -> None:
    folder = make(tmp_path)
    first = folder.call("run", folder.path / "sums.yaml", "--where", "level > 1", "--json")
    [value] = json.loads(first.stdout)["metrics"]
    assert (value["n"], round(value["value"], 3)) == (3, 0.667)
    assert "note: where: 1 of 6 rows has a missing value in 'level > 1', which matches nothing" in first.stderr
    assert "3 done now, 3 reused" in folder.done("run", folder.path / "sums.yaml")


def test_rows_that_are_shown_match(folder: Folder) -> None:
    scores = ["show", "sums/mine", "--scorer", "right", "--examples", "9"]
    shown = folder.json(*scores, "--where", "topic == 'one' and value < 1")
    assert [row["_index_"] for row in shown["rows"]["right"]] == [2]
    assert folder.json(*scores, "--below", "1", "--where", "topic == 'two'")["rows"]["right"] == []
    calls = folder.json("show", "sums/mine", "--where", "level >= 4 or level == null")
    assert [row["_index_"] for row in calls["rows"]] == [3, 4, 5]


def test_rows_that_are_exported_match(folder: Folder) -> None:
    export = ["export", "sums/mine", "--format", "jsonl"]
    found = folder.call(*export, "--where", "level >= 2 and status == 'completed'")
    assert [json.loads(line)["_index_"] for line in found.stdout.splitlines()] == [2, 4, 5]
    assert "1 of 6 rows has a missing value" in found.stderr
    tidy = folder.done(*export, "--table", "tidy", "--where", "attribute.level > 1 and value == 0")
    assert [json.loads(line)["response"] for line in tidy.splitlines()] == ["x"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "sums.yaml", "--where", "level = 1"], 1, "filter 'level = 1': at 7: '= 1'; write == for equal"),
        (["run", "sums.yaml", "--where", "level > 9"], 1, "no row matches where: level > 9"),
        (["run", "sums.yaml", "--where", "lvl > 9"], 1, "no column is called 'lvl' (did you mean 'level'?)"),
        (["show", "sums", "--where", "value > 1"], 1, "--where chooses rows of a run or an evaluation or a dataset"),
        (["show", "sums/mine", "--lowest", "--where", "ok"], 2, "--where can be combined with"),
        (["export", "sums/mine", "--where", "topic == 1"], 1, "topic is text and 1 is a number, which are never equal"),
    ],
)
def test_a_condition_that_cannot_be_is_refused(folder: Folder, words: list[str], code: int, message: str) -> None:
    words = [str(folder.path / word) if word == "sums.yaml" else word for word in words]
    assert message in folder.refused(*words, code=code)


@pytest.fixture
def nested(folder: Folder) -> Path:
    rows = [{"gold": {"a": ["xyx"[i]]}, "m": "xxx"[i], "n": (1, 2, None)[i]} for i in range(3)]
    return folder.write("nested.jsonl", rows)


def test_columns_are_scored_by_paths_and_in_matching_rows_only(folder: Folder, nested: Path) -> None:
    command = ["score", nested, "--truth", "gold.a[0]", "--prediction", "m", "--metric", "accuracy", "--json"]
    [value] = json.loads(folder.call(*command).stdout)["metrics"]
    assert (value["n"], round(value["value"], 3)) == (3, 0.667)
    some = folder.call(*command, "--where", "n < 2")
    [value] = json.loads(some.stdout)["metrics"]
    assert (value["n"], value["value"]) == (1, 1.0)
    assert "where: 1 of 3 rows has a missing value in 'n < 2', which matches nothing" in some.stderr
    assert "$.gold has no 'b'" in folder.refused("score", nested, "--truth", "gold.b", "--prediction", "m")
    assert "no row matches where: n > 5" in folder.refused(*command, "--where", "n > 5")
