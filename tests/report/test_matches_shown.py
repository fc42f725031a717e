"""Matches and ratings in notebooks and pages: what judging cost, what the judge did, and intervals without an end."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console
from support.html_page import data_of

from evaluand import Dataset, DirectoryStore, Matcher, MemoryStore, RemoteProvider, Reply, Runner, asks, rate, span
from evaluand.cli.report import write
from evaluand.matches import Matches, Ratings, check_rating_gates, read_battles
from evaluand.matches.battles import battle_batches
from evaluand.matches.matches import count_pairs, sum_usage, usage_text
from evaluand.report.facts.match_sets import judge_text
from evaluand.report.html.charts import Axis, Dot, strip
from evaluand.report.html.ratings import ratings_section
from evaluand.report.terminal.ratings import ratings_table

NUMBER = itertools.count()
HOSTILE = "</td><script>alert(1)</script>\u202e\x00"


@dataclass(frozen=True, kw_only=True)
class Shorter(RemoteProvider):
    """Prefers the shorter response, for a cent per ten words."""

    @asks
    def prefer(self, first: str, second: str) -> Reply:
        with span("compare", first=first):
            tokens = {"input_tokens": len(first) + len(second), "output_tokens": 1}
            return Reply("first" if len(first) < len(second) else "second", tokens | {"cost": 0.25, "currency": "EUR"})


def judge_with_costs(store: MemoryStore | DirectoryStore, name: str | None = None) -> Matches:
    """Three systems on two examples, two of which say the same."""
    judge = Shorter(model=f"small {next(NUMBER)}", version="1")  # replies of one model are cached
    data = Dataset.from_rows([{"input": "a"}, {"input": "bc"}])
    runs = [Runner(store).run(task, data) for task in (str.strip, lambda text: text * 2, str.lower)]
    return Matcher().match(
        runs, lambda first, second: judge.prefer(first, second), labels=["once", "twice", "same"], name=name
    )


def test_what_judging_cost_is_summed_by_judgement_and_not_by_match() -> None:
    matches = judge_with_costs(MemoryStore())
    assert sum(matches.table(["equal"])["equal"].to_pylist()) == 4  # once and same, on both, in both orders
    [total] = sum_usage(matches)
    assert matches.receipt is not None
    assert total["judgements"] == matches.receipt.called == 4
    assert (total["requests"], total["input_tokens"], total["cost"]) == (4, 2 * 3 + 2 * 6, {"EUR": 1.0})
    assert usage_text(total) == "4 judgements: 4 requests, 18 input tokens, 4 output tokens, cost 1.00 EUR"


def test_costs_of_battles_are_summed_by_judge() -> None:
    rows = [row for batch in battle_batches(judge_with_costs(MemoryStore())) for row in batch.to_pylist()]
    for number, row in enumerate(rows):
        row["judge"] = ("ann", "gpt")[number % 2]
    ann, gpt = sum_usage(read_battles(rows))
    assert (ann["judge"], gpt["judge"]) == ("ann", "gpt")
    assert ann["judgements"] + gpt["judgements"] == 4
    assert ann["cost"]["EUR"] + gpt["cost"]["EUR"] == 1


def test_what_is_unknown_of_a_usage_is_left_out() -> None:
    total = {"rows": 1, "requests": None, "failed": 0, "input_tokens": None, "output_tokens": 1234}
    costs = {"cost": {"": 2.0, "USD": 0.00125}}
    assert usage_text(total | costs) == "1 judgement: 1,234 output tokens, cost 2.00 and 0.0013 USD"
    assert usage_text(total | {"output_tokens": 0, "cost": {}}) == "1 judgement: nothing used"


def test_pairs_are_counted_by_outcome() -> None:
    winners = ["model_a", "model_a", "tie", "model_b", "error"]
    rows = [{"id": str(i), "model_a": "x", "model_b": "y", "winner": winner} for i, winner in enumerate(winners)]
    rows.append({"id": "0", "model_a": "z", "model_b": "y", "winner": "model_a"})
    assert count_pairs(read_battles(rows)) == [
        {"a": "x", "b": "y", "won": 2, "tied": 1, "lost": 1, "n_missing": 1, "n_probable": 0},
        {"a": "y", "b": "z", "won": 0, "tied": 0, "lost": 1, "n_missing": 0, "n_probable": 0},
    ]


def judge_by_length() -> Matches:
    """A judge with probabilities who prefers the longer response: `short` seems to lose more than it does."""
    rows = []
    for i in range(24):
        output = "w " * (20 + i % 7)
        shorter, p = "w " * (3 + 5 * (i % 5)), 0.30 + 0.05 * (i % 5) + (0.2 if i % 6 == 0 else 0.0)
        names = {"generator_1": "base", "generator_2": "short", "instruction": f"Do {i}"}
        rows.append(names | {"output_1": output, "output_2": shorter, "preference": 1 + p})
    return read_battles(rows)


def test_a_win_rate_at_equal_length_has_its_name_and_the_raw_one_next_to_it() -> None:
    ratings = rate(judge_by_length(), method="equal_length", baseline="base")
    row = next(row for row in ratings.ratings if row["system"] == "short")
    controlled, raw = (f"{100 * row[name]:.1f} %" for name in ("rating", "win_rate"))
    assert controlled != raw
    [result] = check_rating_gates(["rating(short) >= 1 %"], ratings, allow_unmeasured_judges=True)
    assert f"; raw win rate {row['win_rate']:.4g}, won" in result.message
    text = print_ratings(ratings)
    assert " ".join(text.split()).startswith("system alike win rate at equal length 95% interval win rate")
    assert re.search(f"short +[ab] +{controlled} .*{raw}", text)
    assert "win rate at equal length: as if all responses were equally long; win rate: the raw share of wins" in text
    assert re.search(rf"short: win rate at equal length {controlled} \[.*; win rate {raw}; won", str(ratings))
    assert "<th>win rate at equal length</th><th>win rate</th>" in ratings._repr_html_()
    assert ratings.to_dict()["rating_label"] == "win rate at equal length"
    section = ratings_section({"ratings": [ratings.to_dict()], "unrated": []})
    assert "win rate at equal length, in %, best first" in section
    assert "Share of wins" not in section


def test_counts_of_probabilities_are_explained_wherever_they_are_shown() -> None:
    matches = judge_by_length()
    [pair] = count_pairs(matches)
    assert (pair["won"] + pair["tied"] + pair["lost"], pair["n_probable"]) == (24, 24 - pair["tied"])
    note = "outcomes are probabilities: won"
    assert note in matches._repr_html_()
    for ratings, is_explained in ((rate(matches), True), (rate(matches, outcomes="discrete"), False)):
        section = ratings_section({"ratings": [ratings.to_dict()], "unrated": []})
        for page in (print_ratings(ratings), ratings._repr_html_(), section):
            assert (note in page.replace("Outcomes", "outcomes")) == is_explained
    assert "interval: bootstrap over examples; p: Student's t by example; near the limit" in print_ratings(ratings)


def print_ratings(ratings: Ratings) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(ratings_table(ratings.to_dict()))
    return captured.get()


def test_notebooks_show_matches_and_ratings_as_tables() -> None:
    matches = judge_with_costs(MemoryStore())
    page = matches._repr_html_()
    assert page.startswith(f"<p>Matches({matches.id[:12]}, once, twice, same: 12 matches)</p><table>")
    assert "<th>once</th><td>twice</td><td>4</td><td>0</td><td>0</td><td>0</td>" in page
    assert "<p>judging: 4 judgements: 4 requests, 18 input tokens, 4 output tokens, cost 1.00 EUR</p>" in page
    ranking = rate(matches, penalty=1.0)._repr_html_()
    assert ranking.count("<table>") == 2
    assert "<caption>bradley_terry v2 penalty=1.0 interval=bootstrap(1000,0) 95%</caption>" in ranking
    assert "<th>once</th><td></td><td>50.0 %</td><td>100.0 %</td>" in ranking
    assert "The response shown first won 50.0 %" in ranking


def test_notebooks_name_systems_without_a_rating_and_hide_markup() -> None:
    rows = [{"id": str(i), "model_a": HOSTILE, "model_b": "b", "winner": "model_a"} for i in range(3)]
    matches = read_battles(rows)
    ratings = rate(matches)
    for page in (matches._repr_html_(), ratings._repr_html_()):
        assert "<script" not in page
        assert "\u202e" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\x00" in page
    assert "won all of its 3 matches" in ratings._repr_html_()


def test_many_systems_have_no_matrix_in_a_notebook() -> None:
    rows = [
        {"id": str(i), "model_a": f"m{a}", "model_b": f"m{b}", "winner": "model_a" if (a + i) % 2 else "model_b"}
        for i in range(2)
        for a in range(12)
        for b in range(a)
    ]
    matches = read_battles(rows)
    assert rate(matches, replicates=100)._repr_html_().count("<table>") == 1
    assert "<p>and 21 more pairs</p>" in matches._repr_html_()


def test_a_report_shows_what_judging_cost_and_the_steps_of_each_judgement(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    judge_with_costs(store, name="judged")
    path, *_ = write(store, "judged", str(tmp_path / "report.html"))
    page = Path(path).read_text()
    assert "<h3>What judging cost</h3>" in page
    assert "<li>4 judgements: 4 requests, 18 input tokens, 4 output tokens, cost 1.00 EUR</li>" in page
    first, *_ = (case for piece in data_of(page, r"pairs/report/\d+") for case in orjson.loads(piece))
    said: list[Any] = next(row for row in first["rows"] if row["outcome"] == 1)["said"]
    assert [each[9]["cost"] for each in said] == [0.25, 0.25]
    for n, spans in (each[10] for each in said):
        assert n == len(spans) >= 1
        assert "compare" in [cells[2] for cells in spans]


def test_an_interval_without_an_end_is_an_arrow_to_the_edge() -> None:
    axis = Axis.over([900, 1100])
    up = strip([Dot(1050, 1000, None, None, None, open_high=True)], axis)
    assert 'x1="50.00%" x2="100%"' in up
    assert up.count('class="arrow s0"') == 1
    assert 'aria-label="1,050, interval 1,000 to no bound"' in up
    down = strip([Dot(950, None, 1000, None, None, open_low=True)], axis)
    assert 'x1="50.00%" x2="0%"' in down
    assert 'aria-label="950, interval no bound to 1,000"' in down


def test_a_system_that_nearly_always_won_has_an_arrow_and_infinity(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    rows = [
        {"id": str(i), "model_a": a, "model_b": b, "winner": "model_b" if i == (3 if a == "top" else 4) else "model_a"}
        for i in range(20)
        for a, b in (("top", "mid"), ("top", "low"), ("mid", "low"))
    ]
    ratings = rate(read_battles(rows, store, name="battles"), name="battles")
    top = ratings.ratings[0]
    assert (top["system"], top["high"]) == ("top", None)
    assert top["low"] is not None
    assert math.isfinite(top["low"])
    assert f"top: {top['rating']:.0f} [{top['low']:.0f}, ∞] a" in str(ratings)
    path, *_ = write(store, "battles", str(tmp_path / "report.html"))
    page = Path(path).read_text()
    assert "an arrow is an interval without an end" in page
    assert page.count('class="arrow s0"') == sum((r["low"] is None) != (r["high"] is None) for r in ratings.ratings)


@pytest.mark.parametrize(("higher", "word"), [(True, "higher"), (False, "lower")])
def test_a_judge_by_scores_is_named_by_its_scorer(higher: bool, word: str) -> None:
    spec = {"judge": {"kind": "by_score", "scorer": {"kind": "rouge"}, "higher_is_better": higher}}
    assert judge_text({"spec": spec, "provenance": {}}) == f"the {word} score of rouge wins"


def test_stored_ratings_look_the_same_in_a_notebook(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    ratings = rate(judge_with_costs(store), penalty=1.0, name="rated")
    assert Ratings.open(store, "rated")._repr_html_() == ratings._repr_html_()


def test_matches_with_one_system_alone_need_no_matrix(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    rows = [
        {"id": str(i), "model_a": name, "model_b": "<base>", "winner": "model_a" if (i + n) % 3 else "model_b"}
        for i in range(9)
        for n, name in enumerate(("x", "y", "z"))
    ]
    ratings = rate(read_battles(rows, store, name="star"), method="win_rate", baseline="<base>", name="star")
    path, *_ = write(store, "star", str(tmp_path / "report.html"))
    page = Path(path).read_text()
    assert "All matches are against <bdi>&lt;base&gt;</bdi>" in page
    assert "Who wins against whom" not in page
    assert ratings._repr_html_().count("<table>") == 1
    console = Console(width=120)
    with console.capture() as shown:
        console.print(ratings_table(ratings.to_dict()))
    assert "all matches are against <base>" in shown.get()
