"""Matches and ratings in the HTML report: what is chosen and shown, and that data cannot harm the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from click.testing import CliRunner
from support.html_page import Page, data_of, head_of as packed_head_of

from evaluand.cli import main
from evaluand.data.dataset import Dataset
from evaluand.evaluation.comparison_scorers import Preference
from evaluand.evaluation.evaluator import Evaluator
from evaluand.matches.battles import read_battles
from evaluand.matches.matcher import Matcher
from evaluand.matches.matches import Matches
from evaluand.matches.ratings.rating import rate
from evaluand.matches.ratings.wording import bias_texts, method_texts
from evaluand.report.html.matches import OUTCOMES
from evaluand.run.runner import Runner
from evaluand.store.directory import DirectoryStore

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!--\u202e"


def prefer(first: str, second: str) -> Any:
    """Longer is better; within one character the first wins, and nobody judges a question mark."""
    if "?" in first + second:
        raise ValueError(f"no judgement: {HOSTILE}")
    if abs(len(first) - len(second)) <= 1:
        return Preference(0.9, explanation="about as long")
    return Preference("first" if len(first) > len(second) else "second", explanation=f"{len(first)} to {len(second)}")


def longer(text: str) -> str:
    return text * 2


def hedge(text: str) -> str:
    return text + "." if text != "c" else "?"


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def judged(store: DirectoryStore, name: str | None = "judged") -> Matches:
    """`same`, `hedge` and `long` on a, bbbb and c: a pair is contradictory where the lengths differ by one."""
    data = Dataset.from_rows([{"input": text} for text in ("a", "bbbb", "c")])
    runs = [Runner(store).run(task, data, name=f"exp/{task.__name__}") for task in (str.strip, hedge, longer)]
    return Matcher().match(runs, prefer, labels=["same", "hedge", "long"], name=name)


def report(store: DirectoryStore, *arguments: str) -> str:
    file = Path(store.root).parent / "report.html"
    result = CliRunner().invoke(main, ["report", *arguments, "--store", str(store.root), "-o", str(file)])
    assert result.exit_code == 0, result.output
    return file.read_text(encoding="utf-8")


def cases_of(page: str) -> list[dict[str, Any]]:
    return [case for piece in data_of(page, r"pairs/report/\d+") for case in orjson.loads(piece)]


def head_of(page: str) -> dict[str, Any]:
    return packed_head_of(page, "pair-columns/report")


def test_each_pair_on_an_example_is_a_row_with_its_judgements_in_both_orders(store: DirectoryStore) -> None:
    judged(store)
    cases = cases_of(report(store, "judged"))
    assert [(case["id"], case["input"], len(case["rows"])) for case in cases] == [
        ("0", "a", 3),
        ("1", "bbbb", 3),
        ("2", "c", 3),
    ]
    assert cases[1]["responses"] == {"0": "bbbb", "1": "bbbb.", "2": "bbbbbbbb"}
    assert cases[1]["styles"]["2"][:2] == [8, 1]
    contradictory, decided, _ = cases[1]["rows"]
    assert OUTCOMES[contradictory["outcome"]] == "contradictory"
    assert [said[:3] for said in contradictory["said"]] == [["ab", "scored", 0.9], ["ba", "scored", pytest.approx(0.1)]]
    assert contradictory["gap"] == pytest.approx(0.8)
    assert (OUTCOMES[decided["outcome"]], decided["share"], decided["said"][0][7]) == ("decided", 0.0, "4 to 8")
    assert [OUTCOMES[row["outcome"]] for row in cases[2]["rows"]] == ["no outcome", "contradictory", "no outcome"]


def test_of_too_many_pairs_the_contradictory_and_the_most_decisive_are_shown(store: DirectoryStore) -> None:
    judged(store)
    page = report(store, "judged", "--examples", "5")
    rows = [row for case in cases_of(page) for row in case["rows"]]
    assert sorted(OUTCOMES[row["outcome"]] for row in rows) == ["contradictory"] * 5
    assert (head_of(page)["rows"], head_of(page)["total"]) == (5, 9)


def test_ratings_are_a_plot_a_ranking_a_matrix_and_their_method(store: DirectoryStore) -> None:
    rate(judged(store), method="win_rate", name="judged")
    page = Page(report(store, "judged"))
    lines = page.lines
    assert [
        "rank",
        "system",
        "rating",
        "interval",
        "letters",
        "win rate",
        "won",
        "tied",
        "lost",
        "missing",
        "examples",
    ] in lines
    [long] = [line for line in lines if len(line) == 11 and line[1] == "long"]
    assert long[2] == "70.8 %"  # the mean of 2/3 against same and, without c, 3/4 against hedge
    assert [line[0] for line in lines if line[0] == "wins of ↓ against →"]
    text = " ".join(page.texts)
    assert "win_rate v2 interval=clustered_wilson 95%" in text
    assert "The response shown first won" in text
    assert "blue cells are above 50 %, brown ones below" in text
    assert "interval: Wilson by example; p: sign-flip test by example, adjusted by Shaffer; near the limit" in text
    assert next(each["aria-label"] or "" for each in page.all("svg") if each["class"] == "strip").startswith("70.8")


def test_systems_without_a_rating_are_named_with_the_reason(store: DirectoryStore) -> None:
    battles = [{"id": i, "model_a": "x", "model_b": "y", "winner": w} for i, w in enumerate(["model_a", "model_b"] * 4)]
    battles += [{"id": i, "model_a": "top", "model_b": "x", "winner": "model_a"} for i in range(8)]
    rate(read_battles(battles, store, name="arena"), name="arena")
    page = Page(report(store, "arena"))
    [top] = [line for line in page.lines if len(line) == 10 and line[1].startswith("top")]
    assert top[2] == "–"
    assert len(top[1]) > len("top")
    assert "has no rating; the reason is in the table." in " ".join(page.texts)


def test_matches_without_ratings_say_how_to_rate_them(store: DirectoryStore) -> None:
    id = judged(store).id
    page = report(store, "judged")
    assert f"evaluand rate {id[:12]}" in page
    assert 'id="ratings"' in page
    assert 'id="examples"' not in page


def test_matches_of_the_runs_of_a_report_are_part_of_it(store: DirectoryStore) -> None:
    matches = judged(store, name=None)
    rate(matches)
    tasks = []
    for run in filter(None, matches.runs):
        evaluation = Evaluator().evaluate(run, {"long": lambda output: len(output) > 2}, name=run.name)
        tasks.append(evaluation.name)
    page = report(store, "exp")
    assert {'id="examples"', 'id="ratings"', 'id="matches"'} <= set(
        re.findall(r'id="(?:examples|ratings|matches)"', page)
    )
    assert set(head_of(page)["sets"][0]["tasks"].values()) == set(tasks)


def test_a_later_set_by_the_same_judge_replaces_the_sets_that_it_extends(store: DirectoryStore) -> None:
    matches = judged(store)
    first, second, _ = filter(None, matches.runs)
    Matcher().match([first, second], prefer, name="two")
    runs = [run for run in matches.runs if run is not None]
    for run in runs:
        Evaluator().evaluate(run, {"long": lambda output: len(output) > 2}, name=run.name)
    assert [each["title"] for each in head_of(report(store, "exp"))["sets"]] == ["two", "judged"]
    Matcher().match(runs, prefer, labels=["1", "2", "3"], name="three")
    assert [each["title"] for each in head_of(report(store, "exp"))["sets"]] == ["three"]
    assert [each["title"] for each in head_of(report(store, "two"))["sets"]] == ["two"]


def test_matches_of_nothing_make_a_page(store: DirectoryStore) -> None:
    data = Dataset.from_arrow(pa.table({"input": pa.array([], pa.string())}))
    runs = [Runner(store).run(task, data) for task in (str.strip, longer)]
    rate(Matcher().match(runs, prefer, labels=["same", "long"], name="none"), name="none")
    page = report(store, "none")
    assert (head_of(page)["rows"], head_of(page)["starts"], cases_of(page)) == (0, [], [])
    assert "<bdi>same</bdi>, <bdi>long</bdi> have no rating; the reason is in the table." in page


def test_names_and_responses_cannot_become_markup(store: DirectoryStore) -> None:
    battles = [
        {"model_a": HOSTILE, "model_b": "y" * 300, "winner": winner, "response_a": HOSTILE, "response_b": "z" * 100_000}
        | {"prompt": HOSTILE, "judge": HOSTILE, "explanation": HOSTILE}
        for winner in ("model_a", "model_b", "tie")
    ]
    rate(read_battles(battles, store, name=HOSTILE.replace("/", "")), name=HOSTILE.replace("/", ""))
    page = report(store, HOSTILE.replace("/", ""))
    assert "<img" not in page
    assert "alert(1)</script>" not in page
    assert "\u202e" not in page
    assert len(page) < 250_000
    [first, *_] = cases_of(page)
    assert first["responses"]["1"] == {"t": "z" * 4000, "c": 96_000}


@pytest.mark.slow
def test_fifty_systems_fit_a_page(store: DirectoryStore) -> None:
    battles = [
        {
            "id": example,
            "model_a": f"model {a}",
            "model_b": f"model {b}",
            "winner": "model_a" if (a + example) % 3 else "model_b",
        }
        for example in range(4)
        for a in range(50)
        for b in range(a)
    ]
    rate(read_battles(battles, store, name="many"), name="many", replicates=100)
    page = report(store, "many", "--examples", "100")
    assert len(re.findall(r'class="strip"', page)) == 50
    assert page.count("never met") == 0
    assert len(page) < 1_500_000
    assert (head_of(page)["rows"], head_of(page)["total"]) == (100, 4900)


def test_sentences_on_bias_and_method() -> None:
    row = {
        "judge": None,
        "low": None,
        "high": None,
        "share": None,
        "n": 0.0,
        "first": 0.0,
        "second": 0.0,
        "neither": 0.0,
    }
    texts = [
        *bias_texts(
            [row | {"measure": "position_bias", "n_left_out": 3}, row | {"measure": "inconsistency", "n_left_out": 0}]
        )
    ]
    assert texts == [
        "Position bias is unknown: no pair of systems was judged in both orders. Left out: 3 judgements of pairs of "
        "systems seen in one order only.",
        "Inconsistency is unknown: no pair was judged in both orders.",
    ]
    method = {"kind": "win_rate", "parameters": {"baseline": "old", "contradictory": "drop", "missing": "lose"}}
    assert [*method_texts({"method": method, "confidence": 0.9, "differences": []})][:3] == [
        "Ratings are the share of wins against old; a tie is half a win.",
        "Pairs with opposite winners in their two orders are left out.",
        "A missing response loses.",
    ]
    parameters = {"baseline": "old", "weighted": True}
    method = {"kind": "equal_length", "parameters": parameters}
    assert [*method_texts({"method": method, "confidence": 0.9, "differences": []})][:2] == [
        "Win rates at equal length are the share of wins against old if all responses were equally long, and win rates "
        "the raw share; a tie is half a win.",
        "Each match counts by the weight of its example; counts of matches do not.",
    ]
