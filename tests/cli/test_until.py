"""`--until` and `--anytime`: looks at growing numbers of examples, and rules that allow for them."""

from __future__ import annotations

import json
import sys
from html import escape, unescape
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, strategies as st

from evaluand import DirectoryStore, Evaluation, compare
from evaluand.aggregation.aggregator import find_summary
from evaluand.aggregation.score_shards import draw_positions
from evaluand.cli import main
from evaluand.data.dataset import Dataset
from evaluand.report.page.resources.base import Source, find_resources, read_resource

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
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files of one size and second would be taken for the same
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
    assert (found["passed"], found["why"]) == (True, "is shown to hold for mine")
    assert 20 <= found["examples"] < 150
    assert f"after {found['examples']} of 300 examples" in result.stderr
    assert len(list((folder / "store" / "runs").iterdir())) == 2 * found["looks"]


def test_what_is_shown_not_to_hold_ends_the_run_and_fails(folder: Path) -> None:
    found = run(folder, 0.1, "--until", "accuracy not worse than base by 0.05", "--json")
    assert found.exit_code == 3
    assert until(found)["why"] == "is shown not to hold for mine"
    assert until(found)["examples"] < 200


def test_a_run_ends_where_the_examples_that_remain_cannot_show_it(folder: Path) -> None:
    words = ("--until", "accuracy better than base", "--json")
    found = until(run(folder, 0.5, *words, "--limit", "40", shift=1))
    assert found["passed"] is False
    assert str(found["why"]).startswith("can no longer be shown to hold with the")
    assert (found["examples"], found["of"]) < (40, 41)
    to_the_end = until(run(folder, 0.6, *words, "--limit", "20"))
    assert (to_the_end["examples"], to_the_end["why"]) == (20, "not decided for mine")


def test_the_value_of_one_system_may_be_awaited(folder: Path) -> None:
    found = run(folder, 0.9, "--task", "mine", "--until", "accuracy >= 0.6 at 95%", "--json")
    assert until(found)["examples"] < 300
    assert until(found)["passed"]


def test_a_sorted_file_is_looked_at_in_a_random_order(folder: Path) -> None:
    """In the order of the file, the first hundred rows would show that B is better, which is wrong."""
    (folder / "systems.py").write_text(
        "def base(x):\n    return 'yes' if x >= 100 else 'no'\n\ndef mine(x):\n    return 'yes' if x < 100 else 'no'\n"
    )
    found = call("run", "quiz.yaml", "--until", "accuracy better than base", "--json")
    assert until(found)["why"] == "is shown not to hold for mine"
    assert until(found)["examples"] < 300
    again = call("run", "quiz.yaml", "--until", "accuracy better than base", "--json")
    assert json.loads(again.stdout) | {"tasks": 0} == json.loads(found.stdout) | {"tasks": 0}
    whole = call("run", "quiz.yaml", "--json")
    reused = [task["run"]["receipt"]["reused"] for task in json.loads(whole.stdout)["tasks"]]
    assert reused == [until(found)["examples"]] * 2


def test_examples_that_a_stored_baseline_lacks_are_not_spent_on(folder: Path) -> None:
    run(folder, 0.5, "--task", "base", "--limit", "60")
    found = run(
        folder, 0.5, "--task", "mine", "--until", "accuracy not worse than quiz/base by 0.01", "--json", shift=1
    )
    assert "note: quiz/base has 60 of the 300 examples" in found.stderr
    assert until(found)["of"] == 60
    assert "others, as of ratings, curves and worst groups, are those of a single look" in found.stderr


def test_a_look_that_was_killed_is_resumed_over_the_same_examples(folder: Path) -> None:
    (folder / "systems.py").write_text(
        "import os\n\ndef base(x):\n    if x > 100 and not os.path.exists('on'):\n        raise KeyboardInterrupt\n"
        "    return 'yes'\n\ndef mine(x):\n    return 'yes'\n"
    )
    text = (folder / "quiz.yaml").read_text().replace("systems.py:base}", "systems.py:base, version: '1'}")
    (folder / "quiz.yaml").write_text(text)
    rule = "accuracy not worse than base by 0.1"
    stopped = call("run", "quiz.yaml", "--until", rule, "--limit", "200")
    assert stopped.exit_code == 130
    assert f"continue with: evaluand run quiz.yaml --limit 200 --until '{rule}'" in stopped.stderr
    (folder / "on").touch()
    [open_run] = [path.name for path in (folder / "store" / "runs").iterdir()]
    resumed = call("resume", open_run[:12], "--json")
    assert resumed.exit_code == 0, resumed.stderr
    [task] = json.loads(resumed.stdout)["tasks"]
    assert (task["run"]["id"], task["run"]["counts"]["completed"]) == (open_run, 20)


def test_whole_clusters_are_drawn(folder: Path) -> None:
    data = Dataset.from_rows([{"input": n, "person": n // 7} for n in range(300)], cluster="person")
    fewer, more = (draw_positions(data, n, 250, 3) for n in (20, 50))
    assert {*fewer} < {*more}
    assert max(more) < 250
    for drawn, n in ((fewer, 20), (more, 50)):
        assert n <= len(drawn) < n + 7
        assert all(len({*drawn} & {*range(7 * k, min(7 * k + 7, 250))}) in (0, 7) for k in range(35))
    assert {*draw_positions(data, 20, 250, 4)} != {*fewer}
    assert draw_positions(data, 250, 250, 3).tolist() == [*range(250)]


@given(st.lists(st.integers(0, 2), max_size=40), st.integers(1, 45), st.integers(0, 9))
def test_later_rows_leave_the_order_of_the_others(content: list[int], n: int, seed: int) -> None:
    rows = [{"input": [place, each]} for place, each in enumerate(content)]
    if not rows:
        return
    before = draw_positions(Dataset.from_rows(rows), n, len(rows), seed)
    more = Dataset.from_rows([*rows, {"input": "new"}])
    after = draw_positions(more, n, len(more), seed)
    assert len(before) == min(n, len(rows))
    assert {*after} - {len(rows)} <= {*before}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--until", "accuracy >= 0.6"], "only a rule with a confidence level can be decided early"),
        (["--until", "accuracy difference by g <= 0.1 at 95%"], "disparities have no bound for repeated looks"),
        (2 * ["--until", "accuracy better than base"], "--until is given 2 times; one rule decides when to stop"),
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


STOPPED = (
    "stopped early, after {} of 300 examples that --until 'accuracy better than base anytime' drew: values, differences"
    " and their gates have intervals that hold at all looks, whichever a signature names, or none"
)


def test_all_that_shows_its_numbers_says_that_the_run_stopped_early(folder: Path) -> None:
    found = until(run(folder, 1, "--until", "accuracy better than base", "--json"))
    stopped = STOPPED.format(found["examples"])
    for words in (
        ("compare", "quiz/base", "quiz/mine"),
        ("compare", "quiz", "--json"),
        ("show", "quiz/mine"),
        ("show", "quiz/mine", "--below", "1"),
        ("show", "quiz", "--metric", "accuracy"),
        ("report", "quiz", "--markdown"),
    ):
        assert stopped in " ".join(call(*words).stdout.split()), words
    assert call("report", "quiz", "-o", "page.html").exit_code == 0
    assert escape(stopped) in (folder / "page.html").read_text()


def test_pages_and_values_in_python_say_so_too(folder: Path) -> None:
    found = until(run(folder, 1, "--until", "accuracy better than base", "--json"))
    store, stopped = DirectoryStore("store"), STOPPED.format(found["examples"])
    base, mine = (Evaluation.open(store, name) for name in ("quiz/base", "quiz/mine"))
    comparison = compare(base, mine)
    assert stopped in str(comparison)
    find_resources()
    for path in ("answers/quiz", "sections/quiz", f"compare/{base.id}/{mine.id}"):
        assert stopped in unescape(bytes(read_resource(Source(store), path, {})).decode()), path
    for shown in (comparison, find_summary(mine), mine):
        assert stopped in unescape(shown._repr_html_())


def test_a_comparison_with_a_whole_run_says_which_side_stopped(folder: Path) -> None:
    run(folder, 0.5, "--task", "base")
    found = until(run(folder, 1, "--task", "mine", "--until", "accuracy better than quiz/base", "--json"))
    said = f"after {found['examples']} of 300 examples that --until 'accuracy better than quiz/base anytime'"
    assert said in " ".join(call("compare", "quiz/base", "quiz/mine").stdout.split())


def test_after_an_early_stop_no_interval_is_narrower_than_its_rule_allows(folder: Path) -> None:
    bound = until(run(folder, 0.9, "--until", "accuracy better than base", "--json"))["values"][0]["bound"]
    pair = json.loads(call("compare", "quiz/base", "quiz/mine", "--json").stdout)["pairs"][0]
    assert pair["low"] <= bound
    assert (pair["interval"], pair["p"], pair["p_permutation"]) == ("anytime", None, None)
    assert pair["reason"].startswith("no p value")
    assert "mine is better" in pair["verdict"]
    unbounded = json.loads(call("compare", "quiz/base", "quiz/mine", "--metric", "median", "--json").stdout)["pairs"][0]
    assert (unbounded["low"], unbounded["p"]) == (None, None)
    assert "no interval of this metric holds at all looks" in unbounded["verdict"]


def test_after_an_early_stop_gates_have_the_bounds_of_the_table(folder: Path) -> None:
    run(folder, 0.7, "--until", "accuracy better than base")
    command = ("compare", "quiz/base", "quiz/mine", "--json")
    pair = json.loads(call(*command, "--confidence", "0.9").stdout)["pairs"][0]
    rule, value = "accuracy better than quiz/base at 95%", "accuracy >= 0.6 at 95%"
    rules = (rule, f"{rule} anytime", value, f"{value} anytime", "median >= 0 at 95%")
    found = json.loads(call(*command, *(word for text in rules for word in ("--gate", text))).stdout)["gates"]
    by_rule, by_word, of_value, of_value_by_word, without = found
    assert by_rule["values"][0]["bound"] == by_word["values"][0]["bound"] == pytest.approx(pair["low"])
    assert of_value["values"][0]["bound"] == of_value_by_word["values"][0]["bound"]
    for gate in (by_rule, of_value):
        assert "lower 95% anytime bound" in gate["message"]
        assert "at all looks, as a rule stopped the run" in gate["message"]
    assert "is two-sided and so wider than the bound" in by_rule["message"]
    assert without["result"] == "undecided"
    assert "no interval of this metric holds at all looks" in without["message"]


def test_a_run_of_all_examples_has_not_stopped(folder: Path) -> None:
    for words in (("--limit", "20", "--until", "accuracy better than base"), ("--limit", "40")):
        run(folder, 0.9, *words)
        assert "stopped by" not in call("compare", "quiz").stdout
