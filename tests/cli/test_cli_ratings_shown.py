"""Ratings at the command line: what `rate`, `show` and `export` write, as text and as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from evaluand import DirectoryStore, rate
from evaluand.cli import main
from evaluand.matches import Matches, Ratings, read_battles
from evaluand.store.tables import MATCHES

EXPERIMENT = """name: casing
dataset: {path: rows.jsonl, input: input, expected: expected}
tasks: [str:upper, str:lower, str:title]
scorers: {right: exact_match}
metrics: accuracy
matches: {judge: {by_score: right}}
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DirectoryStore:
    """Three systems on twelve examples, `top` almost always wins; one battle has no outcome."""
    monkeypatch.chdir(tmp_path)
    store = DirectoryStore(tmp_path / ".evaluand")
    rows = [
        {"id": str(i), "model_a": a, "model_b": b, "winner": winner(a, i), "judge": ("ann", "bob")[i % 2]}
        for i in range(12)
        for a, b in (("top", "mid"), ("top", "low"), ("mid", "low"))
    ]
    rate(read_battles(rows, store, name="judged", in_order=True), name="rated")
    return store


def winner(first: str, i: int) -> str:
    if i == 11 and first == "mid":
        return "error"
    return "model_b" if i == (0 if first == "top" else 1) else "model_a"


def run(*arguments: str, width: int = 120) -> Result:
    result = CliRunner().invoke(main, [*arguments], env={"COLUMNS": str(width)})
    assert result.exit_code == 0, result.output
    return result


def parse(text: str) -> Any:
    """JSON, in which NaN and Infinity are faults."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_ratings_show_how_many_matches_have_no_outcome(store: DirectoryStore) -> None:
    for command in (["rate", "judged"], ["show", "rated"]):
        text = run(*command).output
        assert "matches judged: 35 scored, 1 failed" in text
        assert "∞]" in text
        assert "position bias" in text
        assert "inconsistency" in text
    assert "won by a" in run("show", "judged").output


def test_an_experiment_shows_the_ratings_of_its_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"input": text, "expected": text.upper() if i % 3 else text.title()}
        for i, text in enumerate(["ab", "cd", "ef"])
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "e.yaml").write_text(EXPERIMENT.replace("str:", "app.py:"))
    (tmp_path / "app.py").write_text("upper, lower, title = str.upper, str.lower, str.title\n")
    run("run", "e.yaml")
    text = run("show", "casing").output
    assert "casing/matches\n" in text
    assert "win rate \\ against" in text
    [ratings] = parse(run("show", "casing", "--json").output)["ratings"]
    assert ratings["title"] == "casing/matches"
    assert [each["counts"] for each in ratings["sets"]] == [{"scored": 18}]


def test_win_rates_of_many_systems_are_numbered_and_fit_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": str(i), "model_a": f"m{a:02}", "model_b": f"m{b:02}", "winner": "model_a" if i else "model_b"}
        for i in range(4)
        for a in range(14)
        for b in range(a)
    ]
    rate(read_battles(rows, DirectoryStore(tmp_path / ".evaluand")), replicates=100, name="many")
    wide, narrow = (run("show", "many", width=width).output for width in (120, 60))
    [heads] = [line for line in wide.splitlines() if "against" in line]
    assert heads.split()[-1] == "14"
    assert "`, unrounded" not in wide
    assert "unrounded ones with intervals are in the table win_rates of `evaluand export" in wide
    assert "all of them are in the table win_rates of `evaluand export" in " ".join(narrow.split())
    assert max(map(len, narrow[narrow.index("% \\ against") :].splitlines()[:-1])) <= 60
    assert " 1 m13" in wide


def test_what_commands_write_as_json_is_what_is_stored(store: DirectoryStore) -> None:
    ratings, matches = Ratings.open(store, "rated"), Matches.open(store, "judged")
    for command in (["rate", "judged", "--json"], ["show", "rated", "--json"]):
        found = parse(run(*command).output)
        found = found.get("ratings") if command[0] == "show" else found
        assert {name: found[name] for name in ratings.to_dict()} == parse(
            json.dumps(ratings.to_dict(), allow_nan=False)
        )
        counts = {"failed": 1, "scored": 35}
        about = {"id": matches.id, "name": "judged", "counts": counts, "left_out": None, "caveats": []}
        assert found["sets"] == [about]
    shown = parse(run("show", "judged", "--json", "--examples", "40").output)
    assert [pair["won"] + pair["lost"] + pair["n_missing"] for pair in shown["pairs"]] == [12, 12, 12]
    assert len(shown["rows"]) == 36
    listed = {entry["id"]: entry["counts"] for entry in parse(run("list", "--json").output)}
    assert listed[matches.id] == matches.counts
    assert listed[ratings.id]["ratings"] == 3


def test_ratings_are_exported_table_by_table(store: DirectoryStore, tmp_path: Path) -> None:
    ratings = Ratings.open(store, "rated")
    for name in ("ratings", "win_rates", "differences", "parameters", "bias"):
        lines = run("export", "rated", "--table", name, "--format", "jsonl").output.splitlines()
        assert [parse(line) for line in lines] == parse(json.dumps(ratings.read_rows(name)))
    assert run("export", "rated").output.splitlines()[1].startswith('"top",1,"a",')
    summary = parse(run("export", "rated", "--table", "bias", "-o", "bias.csv", "--json").output)
    assert summary["rows"] == len(ratings.bias)
    result = CliRunner().invoke(main, ["export", "rated", "--table", "winrates"])
    assert "has no table 'winrates' (did you mean 'win_rates'?)" in result.output


def test_exported_matches_are_valid_json_and_read_again(store: DirectoryStore) -> None:
    lines = run("export", "judged", "--format", "jsonl").output.splitlines()
    rows = [parse(line) for line in lines]
    again = read_battles(rows)
    names = [name for name in MATCHES.names if name != "digest"]
    assert again.table(names).equals(Matches.open(store, "judged").table(names))
    assert rate(again).ratings == Ratings.open(store, "rated").ratings


def test_a_comparison_is_not_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("y,a,b\n1,1,0\n0,0,0\n1,1,1\n")
    run(
        "score",
        "p.csv",
        "--truth",
        "y",
        "--prediction",
        "a",
        "--prediction",
        "b",
        "--name",
        "scored",
        "--store",
        ".evaluand",
    )
    compared = next(each for each in parse(run("list", "--json").output) if each["kind"] == "comparisons")
    result = CliRunner().invoke(main, ["export", compared["id"]])
    assert result.exit_code == 1
    assert "is not one table; `evaluand show" in result.output


def test_undefined_intervals_are_no_open_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": str(i), "model_a": "A", "model_b": "B", "winner": "tie"} for i in range(3)]
    rate(read_battles(rows, DirectoryStore(tmp_path / ".evaluand"), name="ties"))
    text = run("rate", "ties").output
    assert "∞" not in text
    assert text.count("the examples show no spread, so there is no interval") == 1
    assert "A − B          +0             –  –" in text
