"""Matches written as battles and read again: the same matches, whatever texts and outcomes they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st

from evaluand import DataError, Dataset, DirectoryStore, MemoryStore, Runner, rate
from evaluand.cli import main
from evaluand.evaluation import Preference
from evaluand.matches import Matcher, Matches, read_battles
from evaluand.matches.battles import battle_batches
from evaluand.report.export import flat, write_csv, write_jsonl, write_parquet

WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


def written(matches: Matches, path: Path) -> Path:
    with path.open("wb") as file:
        WRITERS[path.suffix[1:]](flat(matches), file)
    return path


def texts() -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6) | st.sampled_from(
        ["=1", "'=1", "''", "1", "true", "null", '"', "a,b", "[]", '{"a":1}', "\r\n"]
    )


def names() -> st.SearchStrategy[str]:
    return texts().filter(lambda text: bool(text.strip()))


@st.composite
def battles(draw: st.DrawFn) -> list[dict[str, Any]]:
    systems = draw(st.lists(names(), min_size=2, max_size=4, unique_by=str.strip))
    pairs = st.permutations(systems).map(lambda each: {"model_a": each[0], "model_b": each[1]})
    fields = {
        "question_id": names(),
        "winner": st.sampled_from(["model_a", "model_b", "tie", "A>>B", "tie (bothbad)", "error", None]),
        "order": st.sampled_from(["ab", "ba", None]),
        "turn": st.integers(1, 3),
        "judge": st.none() | texts(),
        "input": st.none() | texts(),
        "explanation": st.none() | texts(),
        "response_a": st.none() | texts(),
        "response_b": st.none() | texts(),
    }
    rows = st.builds(lambda pair, rest: pair | rest, pairs, st.fixed_dictionaries(fields))
    return draw(st.lists(rows, min_size=1, max_size=6))


def check_round_trip(folder: Path, form: str, rows: list[dict[str, Any]]) -> None:
    matches = read_battles(rows)
    again = read_battles(written(matches, folder / f"matches.{form}"))
    assert again.systems == matches.systems
    assert again.table().to_pylist() == matches.table().to_pylist()
    assert again.id == matches.id


@settings(max_examples=5, deadline=None)
@given(form=st.sampled_from([*WRITERS]), rows=battles())
def test_battles_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, form: str, rows: list[dict[str, Any]]
) -> None:
    check_round_trip(tmp_path_factory.mktemp("battles"), form, rows)


@pytest.mark.slow
@pytest.mark.parametrize("form", WRITERS)
@settings(max_examples=100, deadline=None)
@given(rows=battles())
def test_any_battles_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, form: str, rows: list[dict[str, Any]]
) -> None:
    check_round_trip(tmp_path_factory.mktemp("battles"), form, rows)


def judge(first: str, second: str) -> Any:
    if "3" in (first + second):
        raise ValueError("no idea")
    return Preference(0.3 if len(first) < len(second) else 0.7, 2.5, "=shorter\n", "A>B", {"why": [1, None]})


def compared(store: MemoryStore | DirectoryStore) -> Matches:
    data = Dataset.from_rows([{"id": f"e{n}", "input": str(n)} for n in range(5)], id="id")
    tasks = (str, lambda text: text * 2, lambda text: text if text == "1" else None)
    runs = [Runner(store).run(task, data) for task in tasks]
    return Matcher().match(runs, judge, labels=["z", "=y", "x"], name="texts/matches")


@pytest.mark.parametrize("form", WRITERS)
def test_matches_of_runs_are_read_as_they_were_written(tmp_path: Path, form: str) -> None:
    matches = compared(MemoryStore())
    again = read_battles(written(matches, tmp_path / f"matches.{form}"))
    assert again.systems == matches.systems
    assert again.table().equals(matches.table())
    assert again.counts == {"scored": 12, "failed": 2, "abstained": 16}


def test_the_exported_columns(tmp_path: Path) -> None:
    rows = [
        json.loads(line) for line in written(compared(MemoryStore()), tmp_path / "m.jsonl").read_text().splitlines()
    ]
    assert [(row["id"], row["model_a"], row["model_b"], row["order"], row["winner"]) for row in rows[:3]] == [
        ("e0", "z", "=y", "ab", "model_b"),
        ("e0", "z", "=y", "ba", "model_b"),
        ("e0", "z", "x", "ab", None),
    ]
    assert {name: rows[1][name] for name in ("input", "response_a", "response_b", "outcome", "first", "data")} == {
        "input": "0",
        "response_a": "0",
        "response_b": "00",
        "outcome": pytest.approx(0.3),
        "first": 0.7,
        "data": {"why": [1, None]},
    }


def test_a_changed_export_is_refused_with_the_place_of_each_fault(tmp_path: Path) -> None:
    path = written(
        read_battles([{"id": n, "model_a": "x", "model_b": "y", "winner": "A", "order": "ab"} for n in range(7)]),
        tmp_path / "m.jsonl",
    )
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["winner"] = "model_b"
    rows[1]["outcome"] = 1.5
    rows[2]["status"] = "failed"
    rows[3]["digest"] = "abc"
    rows[4]["first"] = 0.0
    rows[5]["number_b"] = 3
    rows[6]["id"], rows[6]["_index_"] = "other", 4
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError) as raised:
        read_battles(path)
    assert [line.removeprefix(f"{path}:") for line in str(raised.value).splitlines()] == [
        "1:winner: contradicts the outcome 1, the first system's share of the win",
        "2:outcome: is 1.5; give the first system's share of the win, from 0 to 1",
        "3:outcome: a match that is failed must not have an outcome",
        "4:digest: is 'abc'; keep the value that `evaluand export` wrote",
        "5:first: is 0, which contradicts the outcome and the order",
        "6:number_b: is 3, but in other rows 'y' has this number, or 'y' another one",
        "7:_index_: is 4, which is example '4' in other rows",
    ]


@pytest.mark.parametrize("key", ["zz", "00112233445566778", "0011223344556677.01", "00 11 22 33 44 5", "\uff10" * 16])
def test_a_changed_key_of_an_export_is_refused(tmp_path: Path, key: str) -> None:
    path = written(compared(MemoryStore()), tmp_path / "m.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["example_key"] = key
    rows[1]["judge_key"] = key
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError) as raised:
        read_battles(path)
    assert [line.removeprefix(f"{path}:") for line in str(raised.value).splitlines()] == [
        f"1:example_key: is {key!r}; keep the value that `evaluand export` wrote",
        f"2:judge_key: is {key!r}; keep the value that `evaluand export` wrote",
    ]


def test_rows_of_one_example_with_several_keys_are_refused() -> None:
    rows = [row for batch in battle_batches(compared(MemoryStore())) for row in batch.to_pylist()]
    rows[1]["example_key"] = "0011223344556677"
    with pytest.raises(DataError, match="example_key: differs from that of other rows of example 'e0'"):
        read_battles(rows)


@pytest.mark.parametrize("name", ["id", "input"])
def test_an_example_has_one_number_in_all_rows(name: str) -> None:
    battles = [{name: f"e{n // 2}", "model_a": "x", "model_b": "y", "winner": "A", "order": "ab"} for n in range(6)]
    rows = [row for batch in battle_batches(read_battles(battles)) for row in batch.to_pylist()]
    assert read_battles(rows).table().num_rows == 6
    rows[3]["_index_"] = -1
    with pytest.raises(DataError, match=r"^battles\[3\]:_index_: is -1, but the same example is 1 in other rows$"):
        read_battles(rows)


def test_every_cell_that_an_export_wrote_is_validated(tmp_path: Path) -> None:
    cells = {"_index_": 2**63, "round": -1, "first": 1.5, "digest": "ab", "equal": "maybe", "missing": "c", "round ": 0}
    cells |= {"number_a": None, "equal ": "", "number_b": 0, "strength": -1, "status": "lost"}
    battles = [{"id": n, "model_a": "x", "model_b": "y", "winner": "A", "order": "ab"} for n in range(len(cells))]
    path = written(read_battles(battles), tmp_path / "m.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row, (name, value) in zip(rows, cells.items(), strict=True):
        row[name.strip()] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError) as raised:
        read_battles(path)
    assert [line.removeprefix(f"{path}:") for line in str(raised.value).splitlines()] == [
        "1:_index_: is 9223372036854775808; keep the value that `evaluand export` wrote",
        "2:round: is -1; keep the value that `evaluand export` wrote",
        "3:first: is 1.5; keep the value that `evaluand export` wrote",
        "4:digest: is 'ab'; keep the value that `evaluand export` wrote",
        "5:equal: is 'maybe'; keep the value that `evaluand export` wrote",
        "6:missing: is 'c'; keep the value that `evaluand export` wrote",
        "8:number_a: is empty; keep the value that `evaluand export` wrote",
        "9:equal: is empty; keep the value that `evaluand export` wrote",
        "10:number_b: must be larger than number_a",
        "11:strength: is -1; give 0 or more",
        "12:status: is 'lost'; give one of scored, failed, abstained, skipped",
    ]


def test_matches_are_exported_by_the_command_line(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    matches = compared(store)
    options = ["-o", str(tmp_path / "m.csv"), "--status", "scored", "--store", str(store.root)]
    done = CliRunner().invoke(main, ["export", "texts/matches", *options])
    assert (done.exit_code, done.stderr) == (0, f"12 rows written to {tmp_path / 'm.csv'}\n")
    assert read_battles(tmp_path / "m.csv").counts == {"scored": 12}
    assert read_battles(tmp_path / "m.csv").systems == matches.systems


def test_ratings_of_an_export_are_those_of_the_matches(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"_index_": 10**12 * n, "input": "q" * n} for n in range(1, 6)])  # too far for an array
    runner = Runner()
    runs = [runner.run(task, data) for task in (str.upper, lambda text: text * 2, lambda text: text + "!!")]
    matches = Matcher().match(runs, lambda one, other: "first" if len(one) < len(other) else "second", labels=[*"abc"])
    again = read_battles(written(matches, tmp_path / "matches.jsonl"))
    assert str(rate(again, method="win_rate")) == str(rate(matches, method="win_rate"))
