"""The files that docs/howto/d3m.md describes can be scored; tests/package/test_docs.py runs its complete problem."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.commands import Folder as Commands
from support.places import ROOT_FOLDER

PAGE = ROOT_FOLDER / "docs" / "howto" / "d3m.md"


@pytest.mark.parametrize(
    ("task", "metrics", "values"),
    [
        ("several labels", ["f1Micro"], [1.0]),
        ("ranking", ["hitsAtK", "meanReciprocalRank"], [1.0, 0.5]),
        ("boxes", ["objectDetectionAP"], [1.0]),
        ("labelled boxes", ["objectDetectionAP"], [0.5]),  # the cat is found, and not the dog
    ],
)
def test_the_other_files_that_are_shown_are_scored(
    task: str, metrics: list[str], values: list[float], tmp_path: Path
) -> None:
    [row] = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {task}")]
    truth, predictions = (re.findall(r"`([^`]+)`", cell) for cell in row.split("|")[2:4])
    for name, lines in (("truth", truth), ("predictions", predictions or truth)):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    named = [part for metric in metrics for part in ("--metric", metric)]
    files = ("--predictions", tmp_path / "predictions.csv", "--truth", tmp_path / "truth.csv")
    scores = Commands(tmp_path).json("score", *files, *named, *(("--k", 2) if task == "ranking" else ()))["metrics"]
    assert [score["value"] for score in scores] == values


def test_two_files_are_judged_by_named_metrics(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,kind\na,yes\nb,no\nc,no\n")
    (tmp_path / "p.csv").write_text("id,kind\nc,no\nb,yes\na,yes\n")
    commands = Commands(tmp_path)
    files = ("score", "--predictions", tmp_path / "p.csv", "--truth", tmp_path / "t.csv")
    found = commands.json(*files, "--metric", "F1", "--pos-label", "yes", "--metric", "confusion_matrix")["metrics"]
    assert [round(score["value"], 3) for score in found] == [0.667, 3.0]
    assert found[1]["data"]["cells"] == [[0, 0, 1], [0, 1, 1], [1, 1, 1]]
    assert "say which label is positive" in commands.refused(*files, "--metric", "f1")
    assert "did you mean 'f1Macro'" in commands.refused(*files, "--metric", "f1Makro")
    assert "or a --metric by which the columns that both files have are judged" in commands.refused(*files, code=2)
    assert "need --metric" in commands.refused("score", tmp_path, "--k", "2", code=2)


def test_faults_that_differ_in_their_row_alone_are_reported_a_few_times(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,y\n" + "".join(f"{i},{i}.5\n" for i in range(60)))
    (tmp_path / "p.csv").write_text("id,y\n" + "".join(f"{i},x{i}\n" for i in range(60)))
    files = ("--predictions", tmp_path / "p.csv", "--truth", tmp_path / "t.csv", "--metric", "meanSquaredError")
    reported = Commands(tmp_path).refused("score", *files).splitlines()
    assert [line.endswith("[wrong_type]") for line in reported] == [True] * 6 + [False]
    assert "55 more of this kind" in reported[5]
    assert reported[6] == "60 faults; nothing was scored"


def test_a_file_of_one_row_for_each_example_says_why_it_has_no_area(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("d3mIndex,y\n0,no\n1,yes\n2,yes\n")
    (tmp_path / "p.csv").write_text("d3mIndex,y,confidence\n0,yes,0.2\n1,yes,0.7\n2,yes,0.9\n")
    files = ("score", "--predictions", tmp_path / "p.csv", "--truth", tmp_path / "t.csv", "--metric", "rocAuc")
    reported = Commands(tmp_path).refused(*files)
    assert "rocAuc of y: each example has one row" in reported
    result = Commands(tmp_path).call(*files, "--definition", "nist")
    assert (result.exit_code, "[confidence_not_read]" in result.stderr) == (0, True)
