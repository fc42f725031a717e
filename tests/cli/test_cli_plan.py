"""`evaluand plan`: its tables, its JSON and its faults."""

import json
from pathlib import Path

import pytest
from support.commands import Folder

from evaluand import Dataset, Evaluator, Runner


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_gate_is_planned_from_stated_shares(folder: Folder) -> None:
    words = ("plan", "accuracy better than base", "--base", "80%", "--value", "0.85", "--differ", "15%")
    result = folder.call(*words, "--n", "100")
    assert result.exit_code == 0, result.output
    assert "if they differ on 0.15 of the rows" in result.output
    assert result.output.splitlines()[-1] == "accuracy better than base: 381 examples have a power of 80 %"
    found = json.loads(folder.call(*words, "--n", "100", "--json").output)
    assert found["examples"] == 381
    assert [n for n, _ in found["needs"][0]["table"]] == [95, 100, 190, 381, 762]


def test_a_width_is_planned(folder: Folder) -> None:
    result = folder.call("plan", "--value", "90%", "--width", "4%")
    assert result.output == "868 examples: the 95 % interval of 0.9 is at most 0.04 wide\n"
    assert folder.call("plan", "accuracy >= 0.9 at 95%", "--value", "90%", "--width", "4%").exit_code == 2
    assert json.loads(folder.call("plan", "--value", "90%", "--width", "4%", "--json").output)["examples"] == 868


def test_a_pilot_is_planned_from(folder: Folder) -> None:
    store = folder.store
    data = Dataset.from_rows([{"input": str(i), "expected": str(i)} for i in range(60)]).save(store)
    for name, wrong in (("base", 4), ("mine", 9)):
        run = Runner(store).run(lambda text, wrong=wrong: text if int(text) % wrong else "?", data, name=name)
        Evaluator().evaluate(run, {"exact": "exact_match"}, name=name)
    result = folder.call("plan", "accuracy better than base", "--pilot", "base", "mine")
    assert result.exit_code == 0, result.output
    assert "if the difference is that of the pilot, +0.133" in result.output
    assert "if it is the worse end of the pilot's 80 % interval" in result.output
    assert folder.call("plan", "accuracy better than base", "--pilot", "base", "nothing").exit_code == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("accuracy better than base", "--value", "85"), 2, "'85' is no share from 0 to 1; write 85% or 0.85"),
        (("accuracy better than base", "--value", "good"), 2, "'good' is no share"),
        (("accuracy better than base", "--value", "85%"), 1, "base is missing"),
        (("accuracy bettr than base",), 1, "gate 'accuracy bettr than base'"),
        (("--width", "4%"), 2, "--width needs --value"),
    ],
)
def test_faults_say_what_to_do(folder: Folder, words: tuple[str, ...], code: int, message: str) -> None:
    result = folder.call("plan", *words)
    assert (result.exit_code, message in result.output) == (code, True), result.output
