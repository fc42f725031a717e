"""Adapters against recorded inputs and outputs of Dyff's, where these lie beside the project.

A case that is marked as deviating is expected as the documentation asks for it. Keys of objects have no order; 1 and
1.0 are equal, and True is neither.
"""

from __future__ import annotations

import base64
import builtins
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from evaluand.adapter import Pipeline
from evaluand.errors import EvaluandError

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "vectors" / "dyff"
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


@pytest.fixture(scope="module", autouse=True)
def _there() -> None:
    if not CASES:
        pytest.skip(f"no recorded cases in {FOLDER}")


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
    expected = case.get("recommended", case["output"])
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
