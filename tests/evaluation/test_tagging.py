"""The example of a tagger, from its file to its report."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.commands import Folder
from support.places import ROOT_FOLDER

EXAMPLE = ROOT_FOLDER / "examples" / "tagging"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    shutil.copytree(EXAMPLE, tmp_path / "tagging", ignore=shutil.ignore_patterns("__pycache__", ".evaluand"))
    return Folder(tmp_path)


def test_the_words_of_every_span_stand_at_their_place() -> None:
    for line in (EXAMPLE / "sentences.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert [row["text"][span["start"] : span["end"]] for span in row["spans"]] == [s["text"] for s in row["spans"]]


@pytest.mark.slow
def test_the_example_runs_twice_over_every_sentence_with_a_crash_and_rightly_empty_answers(folder: Folder) -> None:
    experiment = folder.path / "tagging" / "experiment.yaml"
    reported = folder.json("run", experiment)
    again = folder.json("run", experiment)
    metrics = {(row["task"], row["signature"], row["scorer"], *row["by"].items()): row for row in reported["metrics"]}
    assert again["metrics"] == reported["metrics"]

    perfect = [row for key, row in metrics.items() if key[0] == "annotator"]
    assert {(row["value"], row["n_failed"]) for row in perfect} == {(1.0, 0)}

    [recall] = [row for key, row in metrics.items() if key[0] == "rules" and row["metric"] == "recall"]
    # 21 spans are marked in ten sentences, 7 of them in the one that is too long for the tagger; each is asked twice.
    assert (recall["n"], recall["n_scored"], recall["n_failed"]) == (20, 18, 2)
    assert recall["data"]["expected"] == 2 * 14
    found = recall["data"]["found"]
    assert 0 < found < 2 * 14
    assert (recall["worst"], recall["best"]) == pytest.approx((found / 42, (found + 14) / 42))

    [wrong] = [row for row in metrics.values() if row["task"] == "rules" and "missing=wrong" in row["signature"]]
    [plain] = [
        row
        for key, row in metrics.items()
        if key[0] == "rules"
        and row["metric"] == "f_beta"
        and row["scorer"] == "strict"
        and not row["by"]
        and "missing=leave_out" in row["signature"]
        and "average=micro" in row["signature"]
    ]
    predicted = plain["data"]["predicted"]
    assert plain["value"] == pytest.approx(2 * found / (predicted + 28))
    assert wrong["value"] == pytest.approx(2 * found / (predicted + 14 + 42))


@pytest.mark.slow
def test_the_example_s_report_is_written(folder: Folder) -> None:
    folder.done("run", folder.path / "tagging" / "experiment.yaml")
    page = folder.path / "report.html"
    folder.done("report", "tagging", "-o", page)
    assert page.stat().st_size > 10_000
