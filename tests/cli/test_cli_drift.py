"""`evaluand drift`: its table, its JSON, its exit codes and its faults."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.commands import Folder

from evaluand import Dataset, Runner


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    rng, folder = np.random.default_rng(4), Folder(tmp_path)
    for name, shift in (("march", 0), ("april", 0), ("june", 8)):
        rows = [
            {"id": i, "age": int(rng.integers(20, 70) + shift), "country": str(rng.choice(["de", "fr", "it"]))}
            for i in range(300)
        ]
        folder.write(f"{name}.jsonl", rows)
    return folder


def test_the_columns_that_moved_come_first(folder: Folder) -> None:
    result = folder.call("drift", folder.path / "march.jsonl", folder.path / "june.jsonl")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split()[:4] == ["column", "effect", "march.jsonl", "june.jsonl"]
    assert lines[1].startswith("age")
    assert lines[1].endswith("0.0004")  # of 10,000 exchanges
    assert lines[2].startswith("country  change of the share of ")
    last = "drift: 1 of 2 tests of columns differs between march.jsonl and june.jsonl, age most clearly"
    assert lines[-1] == last
    found = json.loads(folder.call("drift", folder.path / "march.jsonl", folder.path / "june.jsonl", "--json").output)
    assert found["drifted"][0] == "age"
    assert found["verdict"] == last


def test_a_release_fails_on_drift_or_if_nothing_can_be_said(folder: Folder) -> None:
    march, april, june = (folder.path / f"{name}.jsonl" for name in ("march", "april", "june"))
    assert folder.call("drift", march, june, "--fail-on-drift").exit_code == 3
    assert folder.call("drift", march, april, "--fail-on-drift").exit_code == 0
    folder.write("few.jsonl", [{"age": 30, "country": "de"}] * 5)
    result = folder.call("drift", march, folder.path / "few.jsonl", "--fail-on-drift")
    assert result.exit_code == 3
    assert "nothing can be said: fewer than 10 independent values in a sample" in result.output


def test_only_named_columns_are_tested(folder: Folder) -> None:
    march, june = (folder.path / f"{name}.jsonl" for name in ("march", "june"))
    result = folder.call("drift", march, june, "--column", "country", "--fail-on-drift")
    assert result.exit_code == 0
    assert "no drift could be shown in 1 test of columns, with 300 units in the smaller sample" in result.output
    result = folder.call("drift", march, june, "--column", "contry")
    assert result.exit_code == 1
    assert "both samples have no column 'contry' (did you mean 'country'?)" in result.output


def test_what_is_stored_is_compared_with_its_like(folder: Folder) -> None:
    store = folder.store
    data = Dataset.from_rows([{"input": f"{i}"} for i in range(60)]).save(store)
    for name, task in (("a", len), ("b", lambda text: len(text) + 1)):
        Runner(store).run(task, data, name=name)
    result = folder.call("drift", "a", "b")
    assert "rows belong together by example: 60 and 60, of which 60 are in both" in result.output
    assert "drift: 1 of " in result.output
    result = folder.call("drift", "a", folder.path / "march.jsonl")
    assert result.exit_code == 1
    assert "drift compares two datasets, two runs or two evaluations, not Run and Dataset" in result.output
    assert folder.call("drift", "a", "b", "--cluster", "x").exit_code == 1
    assert folder.call("drift", "a", "nothing").exit_code == 1
    assert folder.call("drift", "a").exit_code == 2
