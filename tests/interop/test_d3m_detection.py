"""Detection as the schemas print it: boxes with labels, images by name or by index, boxes without confidence."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder as Commands
from support.d3m_problem import column
from support.problem_scores import noted

from evaluand.core.errors import DataError
from evaluand.predictions.scoring import score
from evaluand.store.store import MemoryStore

ONE, TWO, THREE, AWAY = "0,0,0,9,9,9,9,0", "20,0,20,9,29,9,29,0", "0,20,0,29,9,29,9,20", "70,70,70,79,79,79,79,70"
TRUTH = [(0, "a", "cat", ONE), (0, "a", "dog", TWO), (1, "b", "cat", THREE)]
HEADER = ("d3mIndex", "image", "class", "box")


class Boxes:
    """The folder of a problem of detection."""

    def __init__(self, root: Path, *, labels: bool = True, version: str = "4.0.0", role: str = "multiIndex") -> None:
        self.root, self.labels = root, labels
        targets = [(2, "class")] * labels + [(3, "box")]
        columns = [
            column(0, "d3mIndex", "integer", role),
            column(1, "image", "string", "index"),
            column(2, "class", "string", "suggestedTarget"),
            column(3, "box", "realVector", "suggestedTarget", "boundingPolygon"),
        ]
        task = {"taskKeywords": ["objectDetection", "image"]} if version[0] == "4" else {"taskType": "objectDetection"}
        self.dataset: dict[str, Any] = {
            "about": {"datasetID": "d", "datasetName": "d", "license": "x", "datasetSchemaVersion": version},
            "dataResources": [
                {
                    "resID": "learningData",
                    "resPath": "tables/learningData.csv",
                    "resType": "table",
                    "resFormat": ["text/csv"],
                    "isCollection": False,
                    "columns": columns,
                }
            ],
        }
        self.problem: dict[str, Any] = {
            "about": {"problemID": "d", "problemName": "d", "problemSchemaVersion": version, **task},
            "inputs": {
                "data": [
                    {
                        "datasetID": "d",
                        "targets": [
                            {"targetIndex": i, "resID": "learningData", "colIndex": at, "colName": name}
                            for i, (at, name) in enumerate(targets)
                        ],
                    }
                ],
                "performanceMetrics": [{"metric": "objectDetectionAP"}],
            },
            "expectedOutputs": {},
        }
        (root / "tables").mkdir(parents=True)
        self.table(root / "tables" / "learningData.csv", HEADER, TRUTH)

    def table(self, path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
        return path

    def score(self, header: Sequence[str], rows: Sequence[Sequence[Any]], **options: Any) -> Any:
        (self.root / "datasetDoc.json").write_text(json.dumps(self.dataset))
        (self.root / "problemDoc.json").write_text(json.dumps(self.problem))
        return score(self.root, self.table(self.root.parent / "said.csv", header, rows), **options)


SAID = ("d3mIndex", "class", "box", "confidence")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(0, "cat", ONE, 0.9), (0, "dog", TWO, 0.8), (1, "cat", THREE, 0.7)], 1.0),
        ([(1, "cat", THREE, 0.7), (0, "dog", TWO, 0.8), (0, "cat", ONE, 0.9)], 1.0),  # in another order
        ([(0, "dog", TWO, 0.8)], 0.5),  # no cat is found
        ([(0, "cat", ONE, 0.9), (1, "cat", THREE, 0.7)], 0.5),  # no dog is found
        ([(0, "cat", ONE, 0.9), (0, "dog", TWO, 0.8)], 0.75),  # of two cats one is found
        # of cats the first detection is wrong and the second finds one of two; of dogs none is found
        ([(0, "cat", TWO, 0.9), (0, "dog", ONE, 0.8), (1, "cat", THREE, 0.7)], 0.125),
        ([(0, "cat", ONE, 0.9), (0, "dog", TWO, 0.8), (1, "dog", THREE, 0.7)], 0.75),
        ([(0, "cat", ONE, 0.9), (0, "dog", TWO, 0.8), (1, "cat", THREE, 0.7), (1, "pig", ONE, 0.9)], 1.0),
        ([(1, "cat", ONE, 0.9), (1, "dog", TWO, 0.8), (0, "cat", THREE, 0.7)], 0.0),  # in the other image each
        ([(0, "cat", AWAY, 0.9), (0, "cat", ONE, 0.8), (0, "dog", TWO, 0.8), (1, "cat", THREE, 0.7)], 5 / 6),
        ([(0, "cat", ONE, 0.9), (0, "cat", ONE, 0.8), (0, "dog", TWO, 0.8), (1, "cat", THREE, 0.7)], 11 / 12),
    ],
)
def test_boxes_with_labels_have_the_mean_over_the_labels_of_the_truth(
    tmp_path: Path, rows: list[Any], expected: float
) -> None:
    scores = Boxes(tmp_path / "d").score(SAID, rows)
    [row] = scores.rows
    assert (row.value, row.target, row.n) == (pytest.approx(expected), None, 2)
    assert set(row.data["labels"]) >= {"cat", "dog"}
    [stored] = scores.save(MemoryStore(), "kept").aggregation.table().to_pylist()
    assert stored["value"] == pytest.approx(expected)


ALL = [(0, "a", "cat", ONE, 0.9), (0, "a", "dog", TWO, 0.8), (1, "b", "cat", THREE, 0.7)]
WITH_IMAGE = ("d3mIndex", "image", "class", "box", "confidence")


@pytest.mark.parametrize(
    ("truth", "said", "rows", "expected"),
    [
        (HEADER, WITH_IMAGE, ALL, 1.0),
        (HEADER, SAID, ALL, 1.0),
        (("d3mIndex", "class", "box"), SAID, ALL, 1.0),
        (("d3mIndex", "class", "box"), WITH_IMAGE, ALL, 1.0),
        (HEADER, WITH_IMAGE, [(1 - index, *cells) for index, *cells in ALL], 1.0),  # the image counts
        (HEADER, SAID, [(1 - index, *cells) for index, *cells in ALL], 0.0),
        (("d3mIndex", "class", "box"), WITH_IMAGE, [(1 - index, *cells) for index, *cells in ALL], 0.0),
        (HEADER, WITH_IMAGE, [(i, {"a": "b", "b": "a"}[image], *cells) for i, image, *cells in ALL], 0.0),
        (HEADER, WITH_IMAGE, ALL[:2], 0.75),
        (HEADER, SAID, ALL[:2], 0.75),
    ],
)
def test_images_are_matched_by_name_if_both_files_have_it_else_by_index(
    tmp_path: Path, truth: Sequence[str], said: Sequence[str], rows: list[Any], expected: float
) -> None:
    boxes = Boxes(tmp_path / "d")
    named = dict(zip(HEADER, zip(*TRUTH, strict=True), strict=True))
    file = boxes.table(tmp_path / "right.csv", truth, [*zip(*(named[name] for name in truth), strict=True)])
    shown = [[dict(zip(WITH_IMAGE, row, strict=True))[name] for name in said] for row in rows]
    [row] = boxes.score(said, shown, truth=file).rows
    assert row.value == pytest.approx(expected)


@pytest.mark.parametrize("labels", [False, True])
def test_the_example_of_schema_4_is_checked_and_scored(tmp_path: Path, labels: bool) -> None:
    boxes = Boxes(tmp_path / "d", labels=labels)
    header = SAID if labels else ("d3mIndex", "box", "confidence")
    rows = [(i, *([name] if labels else []), box, 0.9) for i, _, name, box in TRUTH]
    boxes.score(header, rows)
    commands = Commands(tmp_path)
    checked = commands.json("problem", "check", boxes.root)
    assert (checked["ok"], checked["faults"]) == (True, [])
    [reported] = commands.json("score", boxes.root, "--predictions", tmp_path / "said.csv")["metrics"]
    assert (reported["value"], reported["target"]) == (1.0, None if labels else "box")


@pytest.mark.parametrize(
    ("header", "rows", "code"),
    [
        (SAID, [(0, "", ONE, 0.9)], "empty_value"),
        (SAID, [(0, "cat", "", 0.9)], "empty_value"),
        (SAID, [(0, "cat", "1,2,3", 0.9)], "wrong_type"),
        (SAID, [(0, "cat", "cat", 0.9)], "wrong_type"),
        (SAID, [(0, "cat", ONE, "sure")], "wrong_type"),
        (SAID, [(7, "cat", ONE, 0.9)], "extra_row"),
        (WITH_IMAGE, [(0, "c", "cat", ONE, 0.9)], "extra_row"),
        (SAID[:1] + SAID[2:], [(0, ONE, 0.9)], "missing_column"),
        (SAID[1:], [("cat", ONE, 0.9)], "missing_column"),
        (("d3mIndex", "class", "box", "confidence", "Confidence"), [(0, "cat", ONE, 0.9, 0.9)], "twice_column"),
    ],
)
def test_what_is_no_box_with_a_label_is_refused(
    tmp_path: Path, header: Sequence[str], rows: list[Any], code: str
) -> None:
    with pytest.raises(DataError) as refused:
        Boxes(tmp_path / "d").score(header, rows)
    assert code in refused.value.codes


def test_an_image_has_to_be_named_where_each_box_has_its_own_index(tmp_path: Path) -> None:
    boxes = Boxes(tmp_path / "d", role="index")
    boxes.table(boxes.root / "tables" / "learningData.csv", HEADER, [(i, *row[1:]) for i, row in enumerate(TRUTH)])
    with pytest.raises(DataError, match="the index 'image' has no column"):
        boxes.score(SAID, [(0, "cat", ONE, 0.9)])
    [row] = boxes.score(WITH_IMAGE, [(9, "a", "cat", ONE, 0.9)]).rows
    assert row.value == 0.25


def test_of_several_targets_only_one_can_be_the_label(tmp_path: Path) -> None:
    boxes = Boxes(tmp_path / "d")
    image = {"targetIndex": 2, "resID": "learningData", "colIndex": 1, "colName": "image"}
    boxes.problem["inputs"]["data"][0]["targets"].append(image)
    boxes.dataset["dataResources"][0]["columns"][1]["role"] = ["suggestedTarget"]
    with pytest.raises(DataError, match="'class', 'image' hold no boxes"):
        boxes.score(WITH_IMAGE, ALL)


# In the order of the file the second box is wrong; without an order all three are one step.
UNSURE = [(0, ONE), (0, AWAY), (1, THREE)]
ORDERED, AT_ONCE = 1 / 3 + 1 / 3 * 2 / 3, 2 / 3 * 2 / 3


@pytest.mark.parametrize(
    ("version", "definition", "expected", "stated"),
    [
        ("3.1.1", None, ORDERED, "3.1.1"),
        ("3.2.0", None, ORDERED, "3.1.1"),
        ("4.0.0", None, AT_ONCE, "standard"),
        ("4.1.1", None, AT_ONCE, "standard"),
        ("4.1.1", "3.1.1", ORDERED, "3.1.1"),
        ("3.1.1", "standard", AT_ONCE, "standard"),
    ],
)
def test_boxes_without_confidence_follow_the_schema_of_their_document(
    tmp_path: Path, version: str, definition: str | None, expected: float, stated: str
) -> None:
    scores = Boxes(tmp_path / "d", labels=False, version=version).score(
        ("d3mIndex", "box"), UNSURE, definition=definition
    )
    [row] = scores.rows
    assert (row.value, scores.about["definition"]) == (pytest.approx(expected), stated)
    both = [f"{ORDERED:.6g}", f"{AT_ONCE:.6g}"]
    messages = [note.message for note in noted(scores) if note.code == "other_version"]
    assert len(messages) == (definition is None)
    assert all(value in message for message in messages for value in both)


@pytest.mark.parametrize("rows", [UNSURE[:1], UNSURE[::2], [*UNSURE[::2], UNSURE[1]], [UNSURE[1]]])
def test_where_the_versions_agree_there_is_no_note(tmp_path: Path, rows: list[Any]) -> None:
    boxes = Boxes(tmp_path / "d", labels=False, version="3.1.1")
    scores = boxes.score(("d3mIndex", "box"), rows)
    other = boxes.score(("d3mIndex", "box"), rows, definition="standard").rows[0].value
    assert (scores.rows[0].value == pytest.approx(other)) == (noted(scores)[-1].code != "other_version")


def test_a_split_need_not_name_the_images_of_its_rows(tmp_path: Path) -> None:
    boxes = Boxes(tmp_path / "d", role="index")
    boxes.table(boxes.root / "tables" / "learningData.csv", HEADER, [(i, *row[1:]) for i, row in enumerate(TRUTH)])
    boxes.problem["inputs"]["dataSplits"] = {"method": "holdOut", "testSize": 0.6}
    boxes.table(
        boxes.root / "dataSplits.csv",
        ("d3mIndex", "type", "repeat", "fold"),
        [(0, "TEST", 0, 0), (1, "TEST", 0, 0), (2, "TRAIN", 0, 0)],
    )
    [row] = boxes.score(WITH_IMAGE, [(9, "a", "cat", ONE, 0.9)]).rows
    assert (row.value, row.n) == (0.5, 1)
