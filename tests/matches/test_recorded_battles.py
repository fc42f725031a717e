"""Runs judged by a file of battles: found by example and label, with an account of what does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluand import DataError, Dataset, EvaluandWarning, MemoryStore, Run, Runner, SpecError
from evaluand.matches import AgainstBaseline, Matcher, Matches, RecordedBattles
from evaluand.report.export import flat, write_jsonl


def run_all(replications: int = 1, ids: bool = True) -> list[Run]:
    data = Dataset.from_rows([{"id": f"e{n}", "input": f"q{n}"} for n in (1, 2, 3)], id="id" if ids else None)
    store = MemoryStore()
    tasks = (str.upper, str.title, lambda text: text * 2)
    return [Runner(store).run(task, data, replications=replications) for task in tasks]


def write(path: Path, *rows: dict[str, Any]) -> RecordedBattles:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return RecordedBattles(str(path))


def battle(id: str, a: str, b: str, winner: str, **further: Any) -> dict[str, Any]:
    return {"id": id, "model_a": a, "model_b": b, "winner": winner} | further


def rows_of(matches: Matches, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in matches.table([*columns]).to_pylist()]


LABELS = ["up", "title", "twice"]


def test_judgements_are_found_by_example_and_label(tmp_path: Path) -> None:
    judge = write(
        tmp_path / "battles.jsonl",
        battle("e1", "up", "twice", "model_a", order="ab", judge="ann", explanation="shouts"),
        battle("e1", "twice", "up", "A>>B", order="ab", judge="ann"),
        battle("e2", "twice", "title", "tie"),
    )
    matches = Matcher().match(run_all(), judge, labels=LABELS, name="judged")
    assert (matches.systems, matches.name) == (LABELS, "judged")
    assert matches.receipt is not None
    assert matches.receipt.why == f"3 judgements read from {tmp_path / 'battles.jsonl'}"
    names = ("_index_", "a", "b", "order", "outcome", "first", "status", "equal", "judge", "strength", "explanation")
    assert rows_of(matches, *names) == [
        (0, 0, 1, "ab", 0.5, 0.5, "scored", True, None, None, None),
        (0, 0, 2, "ab", 1.0, 1.0, "scored", False, "ann", None, "shouts"),
        (0, 0, 2, "ba", 0.0, 1.0, "scored", False, "ann", 2.0, None),
        (0, 1, 2, "ab", None, None, "skipped", False, None, None, None),
        (1, 0, 1, "ab", 0.5, 0.5, "scored", True, None, None, None),
        (1, 0, 2, "ab", None, None, "skipped", False, None, None, None),
        (1, 1, 2, "ab", 0.5, None, "scored", False, None, None, None),
        (2, 0, 1, "ab", 0.5, 0.5, "scored", True, None, None, None),
        (2, 0, 2, "ab", None, None, "skipped", False, None, None, None),
        (2, 1, 2, "ab", None, None, "skipped", False, None, None, None),
    ]
    assert matches.table(["style_a"]).to_pylist()[1]["style_a"]["characters"] == 2
    assert all(runs is not None for runs in matches.runs)


def test_what_an_export_says_is_what_it_said_of_the_runs(tmp_path: Path) -> None:
    runs = run_all(replications=2)
    first = Matcher().match(
        runs, lambda first, second: "first" if len(first) < len(second) else "second", labels=LABELS
    )
    with (tmp_path / "matches.jsonl").open("wb") as file:
        write_jsonl(flat(first), file)
    again = Matcher().match(runs, RecordedBattles(str(tmp_path / "matches.jsonl")), labels=LABELS)
    names = ("_index_", "replication", "a", "b", "order", "outcome", "first", "status")
    assert rows_of(again, *names) == rows_of(first, *names)


def test_examples_without_an_id_are_found_by_their_input(tmp_path: Path) -> None:
    rows = [{"instruction": "q2", "generator_1": "up", "generator_2": "twice", "preference": 1.25}]
    matches = Matcher().match(run_all(ids=False), write(tmp_path / "a.jsonl", *rows), labels=LABELS)
    assert [row for row in rows_of(matches, "_index_", "a", "b", "outcome", "status") if row[:3] == (1, 0, 2)] == [
        (1, 0, 2, 0.75, "scored")
    ]


def test_what_does_not_fit_is_reported(tmp_path: Path) -> None:
    used = battle("e1", "up", "twice", "model_a")
    others = [battle("e1", "up", "gpt", "model_a"), battle("e9", "up", "twice", "model_a")]
    with pytest.warns(EvaluandWarning) as warned:
        Matcher().match(run_all(), write(tmp_path / "b.jsonl", used, *others), labels=LABELS)
    path = tmp_path / "b.jsonl"
    assert [str(each.message) for each in warned] == [
        f"{path}: 1 battle of other systems (gpt) than up, title, twice, left out",
        f"{path}: 1 battle on examples that the dataset does not have, such as 'e9', left out",
    ]
    with pytest.raises(SpecError, match=r"has no battle of these runs: 1 battle of other systems \(gpt\) than up"):
        Matcher().match(run_all(), write(path, others[0]), labels=LABELS)
    with pytest.raises(SpecError, match="has the pairs that were judged; leave out against_baseline"):
        Matcher().match(run_all(), write(path, used), labels=LABELS, schedule=AgainstBaseline("up"))
    with pytest.raises(DataError, match=r"b.jsonl:1:replication: is 1, but the runs have 1 replication"):
        Matcher().match(run_all(), write(path, used | {"replication": 1}), labels=LABELS)


def test_a_changed_file_gives_other_matches(tmp_path: Path) -> None:
    runs = run_all()
    judge = write(tmp_path / "b.jsonl", battle("e1", "up", "twice", "model_a"))
    first = Matcher().match(runs, judge, labels=LABELS)
    assert Matcher().match(runs, judge, labels=LABELS).id == first.id
    changed = Matcher().match(runs, write(tmp_path / "b.jsonl", battle("e1", "up", "twice", "tie")), labels=LABELS)
    assert changed.id != first.id


def test_a_limit_applies_to_recorded_judgements_too(tmp_path: Path) -> None:
    judge = write(tmp_path / "b.jsonl", battle("e1", "up", "twice", "tie"), battle("e3", "up", "twice", "model_a"))
    runs = run_all()
    first = Matcher().match(runs, judge, labels=LABELS, limit=1)
    assert rows_of(first, "_index_", "a", "b", "outcome")[1] == (0, 0, 2, 0.5)
    assert first.table(["_index_"]).num_rows == 3
    all_ = Matcher().match(runs, judge, labels=LABELS, limit=3)
    assert all_.table(["_index_"]).num_rows == 9
    assert all_.id == Matcher().match(runs, judge, labels=LABELS).id != first.id


@pytest.mark.parametrize(("option", "words"), [({"orders": "random"}, "orders: random"), ({"seed": 3}, "seed: 3")])
def test_orders_and_seeds_are_those_of_the_file(tmp_path: Path, option: dict[str, Any], words: str) -> None:
    judge = write(tmp_path / "b.jsonl", battle("e1", "up", "twice", "tie"))
    message = f"the judge recorded has the orders in which pairs were judged; leave out {words}"
    with pytest.raises(SpecError, match=message):
        Matcher().match(run_all(), judge, labels=LABELS, **option)
