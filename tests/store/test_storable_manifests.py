"""Manifests that readers would refuse are refused before they are written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from support.manifests import SPECS, create_manifest

from evaluand import Dataset, DirectoryStore, Evaluator, MemoryStore, Runner, Scorer
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.core.errors import EngineError, SpecError
from evaluand.engine.policy import Policy
from evaluand.evaluation.scorer import Score
from evaluand.report.verification import verify
from evaluand.store.store import Store

ID = "1" * 32
ROWS = Dataset.from_rows([{"input": "a", "expected": "A"}])


@pytest.fixture(params=["directory", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return DirectoryStore(tmp_path) if request.param == "directory" else MemoryStore()


def test_an_open_artifact_that_readers_would_refuse_is_not_written(store: Store) -> None:
    manifest = create_manifest("runs", ID, spec=SPECS["runs"] | {"seed": 0.5})
    expected = "the run cannot be stored: spec.seed: expected a whole number, found 0.5"
    with pytest.raises(SpecError, match=f"^{re.escape(expected)}$"):
        store.open(manifest)
    assert store.ids("runs") == []


def test_a_sealed_artifact_that_readers_would_refuse_is_not_written(store: Store) -> None:
    draft = store.draft("datasets", ID)
    draft.append("rows", pa.record_batch({"x": [1]}))
    with pytest.raises(SpecError, match=r"cannot be stored: provenance\.source: expected a text, found 1$"):
        draft.seal(create_manifest("datasets", ID, digest="", provenance={"source": 1}))
    draft.discard()
    draft = store.draft("datasets", ID)
    with pytest.raises(EngineError, match=r"cannot be stored: counts\.rows: expected a count, found -1$"):
        draft.seal(create_manifest("datasets", ID, digest="", counts={"rows": -1}))
    assert store.ids("datasets") == []


def test_a_manifest_that_is_too_large_to_be_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluand.store.manifests.MAX_BYTES", 1000)
    store = DirectoryStore(tmp_path)
    with pytest.raises(SpecError, match=r"its manifest has 1,\d{3} bytes; readers accept up to 1,000$"):
        store.open(create_manifest("runs", ID, name="a" * 1000))
    assert store.ids("runs") == []


@pytest.mark.parametrize("version", [[1, 2], {"x": 1}, 1.5, True, None])
def test_versions_of_apps_may_be_any_data(tmp_path: Path, version: Any) -> None:
    store = DirectoryStore(tmp_path)
    with RecordingWriter.begin(store, {"name": "a", "version": version}, mode="none") as writer:
        pass
    assert verify(store, "recordings", writer.id) == []
    assert writer.app[1] == {"[1, 2]": "[1,2]", "{'x': 1}": '{"x":1}'}.get(str(version), version)


def test_names_of_apps_are_texts() -> None:
    with pytest.raises(SpecError, match=r"^app: its name is the integer 5; give a text$"):
        RecordingWriter.begin(MemoryStore(), {"name": 5}, mode="none")


@pytest.mark.parametrize("name", ["timeout", "total_timeout"])
def test_an_endless_time_limit_is_none(tmp_path: Path, name: str) -> None:
    policy = Policy(**{name: math.inf})
    assert getattr(policy, name) is None
    store = DirectoryStore(tmp_path)
    assert Runner(store, policy).run(str.upper, ROWS).counts["completed"] == 1
    with RecordingWriter.begin(store, {"name": "a"}, policy=policy, mode="none") as writer:
        pass
    assert verify(store, "recordings", writer.id) == []
    with pytest.raises(SpecError, match=f"^{name} is True; give seconds above 0"):
        Policy(**{name: True})


@dataclass(frozen=True)
class _Constant(Scorer):
    kind: ClassVar[str] = "constant"
    version: ClassVar[Any] = 1

    def score(self, output: Any, expected: Any) -> Score:
        raise AssertionError("the scorer must be refused before it grades")


@pytest.mark.parametrize("ends", [(True, False), (0,), (0, math.nan), ("0", "1"), 1])
def test_ranges_of_scorers_are_two_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: Any) -> None:
    monkeypatch.setattr(_Constant, "ranges", {"value": ends})
    store = DirectoryStore(tmp_path)
    run = Runner(store).run(str.upper, ROWS)
    expected = f"scorer 'constant': ranges['value'] is {ends!r}; give two numbers, such as (0, 1)"
    with pytest.raises(SpecError, match=f"^{re.escape(expected)}$"):
        Evaluator(store).evaluate(run, {"c": _Constant()})
    assert store.ids("evaluations") == []


@pytest.mark.parametrize("better", [1, "yes", 0.0])
def test_higher_is_better_is_true_false_or_none(monkeypatch: pytest.MonkeyPatch, better: Any) -> None:
    monkeypatch.setattr(_Constant, "higher_is_better", better, raising=False)
    store = MemoryStore()
    with pytest.raises(SpecError, match=r"^scorer 'constant': higher_is_better is .*; give True, False or None$"):
        RecordingWriter.begin(store, {"name": "a"}, {"c": _Constant()}, mode="with_app")
    assert store.ids("recordings") == []
