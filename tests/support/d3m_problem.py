"""A D3M problem as a folder, complete and to be broken."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from evaluand.interop.d3m.folder import ProblemFolder, examine_folder, open_folder


def column(index: int, name: str, kind: str, *roles: str, **more: Any) -> dict[str, Any]:
    return {"colIndex": index, "colName": name, "colType": kind, "role": list(roles), **more}


DATASET: dict[str, Any] = {
    "about": {
        "datasetID": "p_dataset",
        "datasetName": "a dataset",
        "license": "CC0",
        "datasetVersion": "1.0",
        "datasetSchemaVersion": "3.1.1",
        "redacted": False,
    },
    "dataResources": [
        {
            "resID": "0",
            "resPath": "media/",
            "resType": "image",
            "resFormat": ["image/png"],
            "isCollection": True,
        },
        {
            "resID": "1",
            "resPath": "tables/learningData.csv",
            "resType": "table",
            "resFormat": ["text/csv"],
            "isCollection": False,
            "columns": [
                column(0, "d3mIndex", "integer", "index"),
                column(1, "image", "string", "attribute", refersTo={"resID": "0", "resObject": "item"}),
                column(2, "code", "categorical", "attribute"),
                column(3, "label", "categorical", "suggestedTarget"),
            ],
        },
    ],
}
PROBLEM: dict[str, Any] = {
    "about": {
        "problemID": "p_problem",
        "problemName": "a problem",
        "taskType": "classification",
        "taskSubType": "binary",
        "problemVersion": "1.0",
        "problemSchemaVersion": "3.1.1",
    },
    "inputs": {
        "data": [
            {
                "datasetID": "p_dataset",
                "targets": [{"targetIndex": 0, "resID": "1", "colIndex": 3, "colName": "label"}],
            }
        ],
        "dataSplits": {"method": "holdOut", "testSize": 0.5, "splitsFile": "dataSplits.csv"},
        "performanceMetrics": [{"metric": "accuracy"}],
    },
    "expectedOutputs": {"predictionsFile": "predictions.csv"},
}
ROWS = "d3mIndex,image,code,label\n10,a.png,007,yes\n11,b.png,08,no\n12,c.png,,yes\n13,d.png,1.50,no\n"
SPLITS = "d3mIndex,type,repeat,fold\n10,TRAIN,0,0\n11,TEST,0,0\n12,TRAIN,0,0\n13,TEST,0,0\n"


class Made:
    """The folder of a problem, to be changed before it is opened."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.dataset, self.problem = copy.deepcopy(DATASET), copy.deepcopy(PROBLEM)
        (root / "p_dataset" / "tables").mkdir(parents=True)
        (root / "p_dataset" / "media").mkdir()
        (root / "p_problem").mkdir()
        for name in "abcd":
            (root / "p_dataset" / "media" / f"{name}.png").write_bytes(b"")
        self.rows(ROWS)
        self.splits(SPLITS)

    def rows(self, text: str) -> None:
        (self.root / "p_dataset" / "tables" / "learningData.csv").write_text(text)

    def splits(self, text: str) -> None:
        (self.root / "p_problem" / "dataSplits.csv").write_text(text)

    @property
    def columns(self) -> list[dict[str, Any]]:
        return self.dataset["dataResources"][1]["columns"]  # type: ignore[no-any-return]

    @property
    def target(self) -> dict[str, Any]:
        return self.problem["inputs"]["data"][0]["targets"][0]  # type: ignore[no-any-return]

    def write(self) -> Path:
        (self.root / "p_dataset" / "datasetDoc.json").write_text(json.dumps(self.dataset))
        (self.root / "p_problem" / "problemDoc.json").write_text(json.dumps(self.problem))
        return self.root

    def opened(self) -> ProblemFolder:
        return open_folder(self.write())

    def found(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """The places and codes of faults and of notes."""
        findings = examine_folder(self.write())[1].all()
        return tuple(  # type: ignore[return-value]
            [(fault.where.replace(f"{self.root}/", ""), fault.code) for fault in kind]
            for kind in (findings.faults, findings.notes)
        )
