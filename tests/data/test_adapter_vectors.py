"""Adapters against recorded inputs and outputs of Dyff's, where these are next to the project.

A case that is marked as deviating is expected as the documentation asks for it. Keys of objects have no order; 1 and
1.0 are equal, and True is neither.
"""

from __future__ import annotations

import base64
import builtins
import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder
from support.places import VECTORS_FOLDER, missing

from evaluand.core.errors import EvaluandError
from evaluand.data.adapters.base.adapter import Pipeline

FOLDER = VECTORS_FOLDER / "dyff"
FILES = (
    "transform_json",
    "explode_collections",
    "flatten_hierarchy",
    "rename_drop_select",
    "map_pipeline",
    "embed_index",
    "file_upload",
)
CASES = [
    pytest.param(case, id=f"{name}: {case['name']}")
    for name in FILES
    if (FOLDER / f"{name}.json").exists()
    for case in json.loads((FOLDER / f"{name}.json").read_text())
]


def recorded(case: dict[str, Any]) -> Any:
    """The rows that come of a case, or its error; as documented where the recorded one deviates."""
    return case.get("recommended", case["output"])


@pytest.fixture(scope="module", autouse=True)
def _there() -> None:
    if not CASES:
        pytest.skip(missing(FOLDER))


def plain(value: Any) -> Any:
    """A value that is equal to another one only where both are the same as JSON, with bytes as base64."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return {"__base64__": base64.b64encode(value).decode()}
    return ("bool", value) if isinstance(value, bool) else value


def run(spec: Any, rows: list[Any], made: list[Any]) -> None:
    """Notes that the pipeline could be built, then every row that it makes."""
    pipeline = Pipeline.of(spec)
    made.append("built")
    made.extend(pipeline(rows))


@pytest.mark.parametrize("case", CASES or [None])
def test_a_recorded_case_comes_out_as_documented(case: dict[str, Any]) -> None:
    expected = recorded(case)
    spec = case["adapter"]
    before, rows = json.dumps(spec), copy.deepcopy(case["input"])
    if isinstance(expected, list):
        for _ in range(2):
            assert plain(list(Pipeline.of(spec)(rows))) == plain(expected)
    else:
        made: list[Any] = []
        with pytest.raises(EvaluandError) as raised:
            run(spec, rows, made)
        assert ("run" if made[:1] == ["built"] else "construct") == expected["phase"]
        assert plain(made[1:]) == plain(expected.get("rows_before_error", made[1:]))
        assert "\n" not in str(raised.value)
        kind = getattr(builtins, expected["error"], None)
        assert kind is None or isinstance(raised.value, kind)
    assert json.dumps(spec) == before
    assert rows == case["input"]


@pytest.mark.parametrize("case", [case for case in CASES if "error" in recorded(case.values[0])] or [None])
def test_a_recorded_mistake_is_one_sentence_at_the_command_line(case: dict[str, Any], tmp_path: Path) -> None:
    expected, folder = recorded(case), Folder(tmp_path)
    (tmp_path / "p.json").write_text(json.dumps(case["adapter"]))
    message = folder.refused("adapt", folder.write("in.jsonl", case["input"]), "--pipeline", tmp_path / "p.json")
    place = (
        f"in.jsonl:{len(expected.get('rows_before_error', ())) + 1}: row " if expected["phase"] == "run" else "p.json: "
    )
    assert message.startswith(f"error: {tmp_path}/{place}")
    assert message.count("\n") == 1
    assert expected["phase"] == "construct" or message.endswith(
        f"(onError: skip in {tmp_path}/p.json leaves such rows out)\n"
    )
    assert re.search(r"Traceback|\b[A-Z]\w*Error\b|<class|object at", message) is None
