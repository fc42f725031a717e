"""Scores and decisions as a file has them: read into labels and places, or refused with the fault."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.compas import COUNTS, write_compas

from evaluand.cli import main
from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.run.runner import Runner
from evaluand.run.tasks.recorded import DoubtfulJoin, RecordedTask
from evaluand.run.tasks.recorded_score import ScoreReading, reading_of

SCORE = {"column": "decile_score", "range": [1, 10], "threshold": 5}
DECISION = {"column": "score_text", "negative": ["Low"], "positive": ["Medium", "High"]}
EXPERIMENT = """
name: compas
dataset: {path: compas.csv, id: id, expected: two_year_recid, attributes: [race, sex, age_cat]}
tasks:
  scores: {kind: recorded, path: compas.csv, by: id, score: {column: decile_score, range: [1, 10], threshold: 5}}
  words: {kind: recorded, path: compas.csv, by: id,
          decision: {column: score_text, negative: Low, positive: [Medium, High]}}
scorers: {risk: {kind: prediction, type: integer}}
metrics:
  - {kind: false_positive_rate, by: race, disparities: difference}
"""


@pytest.mark.slow
def test_false_positive_rates_by_race_need_no_edited_file(tmp_path: Path) -> None:
    write_compas(tmp_path / "compas.csv")
    (tmp_path / "e.yaml").write_text(EXPERIMENT)
    store = ["--store", str(tmp_path / "store")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(main, ["run", str(tmp_path / "e.yaml"), "--json", *store])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    for race in {race for race, _, _ in COUNTS}:
        counts = [each for (of, _, _), each in COUNTS.items() if of == race]
        right, wrong = sum(each[0] for each in counts), sum(each[1] for each in counts)
        found = [row["value"] for row in printed["metrics"] if row["by"] == {"race": race}]
        assert found == pytest.approx([wrong / (right + wrong)] * 2)
    for row in printed["disparities"]:
        assert (row["lowest"], row["highest"]) == ({"race": "Asian"}, {"race": "African-American"})
        assert (row["value"], row["low"]) == pytest.approx((0.36152, 0.2289), abs=1e-4)


def test_a_score_becomes_the_decision_and_its_place_in_the_range() -> None:
    reading = ScoreReading("s", (0, 200), 50.5, labels=("no", "yes"))
    assert reading.output(50) == {"prediction": "no", "probabilities": {"no": 0.75, "yes": 0.25}}
    assert reading.output(50.5)["prediction"] == "yes"  # type: ignore[index]
    assert reading.output(None) is None
    with pytest.raises(DataError, match=r"s is 201, not a number from 0 to 200"):
        reading.output(201)


def test_a_row_outside_of_the_range_fails_and_a_missing_score_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_text('{"id": "a", "s": 11}\n{"id": "b", "s": null}\n{"id": "c", "s": 7}\n')
    data = Dataset.from_rows([{"id": name, "input": name, "expected": 1} for name in "abc"])
    task = RecordedTask(
        path=str(tmp_path / "f.jsonl"), by="id", score={"column": "s", "range": [1, 10], "threshold": 5}
    )
    evaluation = Evaluator().evaluate(Runner().run(task, data), {"p": Prediction(type="integer")})
    rows = evaluation.table("p").to_pylist()
    assert [row["status"] for row in rows] == ["failed", "abstained", "scored"]
    assert "s is 11, not a number from 1 to 10" in rows[0]["reason"]
    assert rows[2]["scores"] == [{"label": "0", "score": 1 - 6 / 9}, {"label": "1", "score": 6 / 9}]


@pytest.mark.parametrize(
    ("setting", "found", "reason"),
    [
        ({"score": SCORE | {"column": "s"}}, ["failed", 1, 0, None, None], "f.csv:2: s is 'high', not a number from 1"),
        (
            {"decision": {"column": "step", "negative": 1, "positive": [2, 3]}},
            [0, "failed", 1, 1, None],
            "f.csv:3: step is '1 or 2', and decision names it neither",
        ),
    ],
)
def test_a_word_among_numbers_fails_only_its_own_row(
    tmp_path: Path, setting: Any, found: list[Any], reason: str
) -> None:
    (tmp_path / "f.csv").write_text("id,s,step\na,high,1\nb,7,1 or 2\nc,4.0,2\nd,NaN,2.0\ne,,\n")
    data = Dataset.from_rows([{"id": name, "input": name, "expected": 1} for name in "abcde"])
    run = Runner().run(RecordedTask(path=str(tmp_path / "f.csv"), by="id", **setting), data)
    rows = Evaluator().evaluate(run, {"p": Prediction(type="integer")}).table("p").to_pylist()
    assert [row["status"] if row["status"] == "failed" else row["prediction"] for row in rows] == found
    assert [reason in row["reason"] for row in rows if row["status"] == "failed"] == [True]


def test_words_decide_only_as_they_are_named() -> None:
    reading = reading_of(None, DECISION | {"labels": [False, True]})
    assert reading is not None
    assert [reading.output(word) for word in ("Low", "High", None)] == [
        {"prediction": False},
        {"prediction": True},
        None,
    ]
    with pytest.raises(DataError, match="score_text is 'N/A', and decision names it neither under negative nor"):
        reading.output("N/A")


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ({"score": {"column": "s", "range": [1, 10]}}, "score: has no threshold; write {column: decile_score"),
        ({"score": SCORE | {"range": [10, 1]}}, r"score.range: is \[10, 1\]; write the lowest and highest score"),
        ({"score": SCORE | {"threshold": 11}}, "score.threshold: is 11; it must be a number from 1 to 10"),
        ({"score": SCORE | {"labels": [1, 1]}}, r"labels: is \[1, 1\]; write the negative and the positive label"),
        ({"score": SCORE | {"treshold": 5}}, "there is no 'treshold' .did you mean 'threshold'"),
        ({"score": "decile_score"}, "score: is 'decile_score'; write {column"),
        ({"decision": DECISION | {"negative": ["High"]}}, "'High' is both negative and positive"),
        ({"score": SCORE, "decision": DECISION}, "give score or decision, not both"),
        ({"score": SCORE, "response": "s"}, "each say what the output is; give one of them"),
        ({}, "response must not be empty; give the path of the output in a row, or score, or decision"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_write(setting: Any, fault: str) -> None:
    with pytest.raises(SpecError, match=fault):
        RecordedTask(path="f.csv", **setting)


def test_a_score_read_as_a_class_is_reported(tmp_path: Path) -> None:
    path = write_compas(tmp_path / "compas.csv")
    (tmp_path / "c.csv").write_text(path.read_text().replace(",8,", ",9,", 1000))
    data = Dataset.from_data(str(path), id="id", expected="two_year_recid")
    task = RecordedTask(path=str(tmp_path / "c.csv"), by="id", response="decile_score")
    with pytest.warns(
        DoubtfulJoin, match=r"'decile_score' has the values 3, 8, 9, … .*; if it is a score, write score"
    ):
        task.prepare(data)
