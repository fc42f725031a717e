"""`--until` and `--anytime`: looks at growing numbers of examples, and rules that allow for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evaluand.cli import main

EXPERIMENT = """
name: quiz
dataset: {path: rows.jsonl, input: x, expected: y}
tasks:
  base: {function: systems.py:base}
  mine: {function: systems.py:mine}
scorers:
  exact: exact_match
metrics:
  - {kind: accuracy, scorer: exact}
"""

SYSTEMS = """
def right(x, chance):
    return "yes" if (x * 7919 % 101) / 101 < chance else "no"

def base(x):
    return right(x, 0.5)

def mine(x):
    return right(x + 31 * SHIFT, CHANCE)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quiz.yaml").write_text(EXPERIMENT)
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"x": {n}, "y": "yes"}}\n' for n in range(300)))
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--store", "store"], catch_exceptions=False)


def run(folder: Path, chance: float, *words: str, shift: int = 0) -> Result:
    (folder / "systems.py").write_text(SYSTEMS.replace("CHANCE", str(chance)).replace("SHIFT", str(shift)))
    return call("run", "quiz.yaml", *words)


def until(result: Result) -> dict[str, object]:
    [gate] = json.loads(result.stdout)["gates"]
    assert gate["values"][0]["anytime"] is True
    return gate | gate["until"]


def test_a_clear_difference_ends_the_run_early(folder: Path) -> None:
    result = run(folder, 0.9, "--until", "accuracy better than base", "--json")
    assert result.exit_code == 0
    found = until(result)
    assert (found["passed"], found["why"]) == (True, "mine is shown to hold")
    assert 20 <= found["examples"] < 150
    assert f"after {found['examples']} of 300 examples" in result.stderr
    assert len(list((folder / "store" / "runs").iterdir())) == 2 * found["looks"]


def test_what_is_shown_not_to_hold_ends_the_run_and_fails(folder: Path) -> None:
    found = run(folder, 0.1, "--until", "accuracy not worse than base by 0.05", "--json")
    assert found.exit_code == 3
    assert until(found)["why"] == "mine is shown not to hold"
    assert until(found)["examples"] < 200


def test_a_run_ends_where_the_examples_that_remain_cannot_show_it(folder: Path) -> None:
    words = ("--until", "accuracy better than base", "--json")
    found = until(run(folder, 0.5, *words, "--limit", "40", shift=1))
    assert found["passed"] is False
    assert str(found["why"]).startswith("mine is no longer possible to show with the")
    assert (found["examples"], found["of"]) < (40, 41)
    to_the_end = until(run(folder, 0.6, *words, "--limit", "20"))
    assert (to_the_end["examples"], to_the_end["why"]) == (20, "mine is not decided")


def test_the_value_of_one_system_may_be_awaited(folder: Path) -> None:
    found = run(folder, 0.9, "--task", "mine", "--until", "accuracy >= 0.6 at 95%", "--json")
    assert until(found)["examples"] < 300
    assert until(found)["passed"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--until", "accuracy >= 0.6"], "only a rule with a confidence level can be decided early"),
        (["--until", "accuracy better than base", "--fresh"], "--until looks several times"),
        (["--anytime"], "--anytime needs gates"),
        (["--until", "accuracy better than"], "expected the name of a baseline"),
    ],
)
def test_what_cannot_be_awaited_is_refused_before_anything_runs(folder: Path, words: list[str], message: str) -> None:
    result = run(folder, 0.9, *words)
    assert result.exit_code in (1, 2)
    assert message in " ".join(result.stderr.split())
    assert not (folder / "store" / "runs").exists()


def test_bounds_at_any_time_are_called_so_and_are_wider(folder: Path) -> None:
    run(folder, 0.8)
    gate = ("compare", "quiz/base", "quiz/mine", "--json", "--gate")
    rule = "accuracy not worse than baseline by 0.02 at 90%"
    [fixed] = json.loads(call(*gate, rule).stdout)["gates"]
    by_option, by_word = (
        json.loads(call(*gate, *words).stdout)["gates"][0] for words in ((rule, "--anytime"), (f"{rule} anytime",))
    )
    assert by_option == by_word
    assert by_word["gate"].endswith("at 90% anytime")
    assert "lower 90% anytime bound" in by_word["message"]
    assert "anytime" not in fixed["values"][0]
    assert by_word["values"][0]["bound"] < fixed["values"][0]["bound"]
    assert call("compare", "quiz/base", "quiz/mine", "--anytime").exit_code == 2
