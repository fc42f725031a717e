"""People who judge pairs: what they see, what becomes of their answers, and that none is lost."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sk
from click.testing import CliRunner, Result

from evaluand import (
    DataError,
    Dataset,
    DirectoryStore,
    EvaluandError,
    EvaluandWarning,
    MemoryStore,
    Run,
    Runner,
    SpecError,
    comparison_scorer,
)
from evaluand.cli import main
from evaluand.matches import Matcher, Matches
from evaluand.matches.battles import read_battles
from evaluand.matches.labelled_sets import agreement
from evaluand.matches.people import match_by_people, pairs_to_judge, read_judged, read_to_append
from evaluand.store.store import Store


def short(text: str) -> str:
    return f"{text}!"


def long(text: str) -> str:
    return f"well,\n{text}"


def mostly_short(text: str) -> str | None:
    return {"q1": "q1!", "q2": "\x1b[31mother", "q3": None}[text]


def run_all(store: Store, *tasks: Any) -> list[Run]:
    data = Dataset.from_rows([{"input": f"q{n}"} for n in (1, 2, 3)])
    return [
        Runner(store).run(task, data, name=f"demo/{task.__name__}") for task in tasks or (short, long, mostly_short)
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    run_all(DirectoryStore(tmp_path / ".evaluand"))
    return tmp_path


def label(*words: str, typed: str = "") -> Result:
    return CliRunner().invoke(main, ["label", "--pairs", "demo/short", "demo/long", "demo/mostly_short", *words], typed)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_pair_of_different_responses_is_shown_once_without_a_name() -> None:
    pairs = pairs_to_judge(run_all(MemoryStore()))
    assert {frozenset((pair.first, pair.second)) for pair in pairs} == {
        frozenset(each)
        for each in (
            ("q1!", "well,\nq1"),
            ("q2!", "well,\nq2"),
            ("q2!", "\x1b[31mother"),
            ("well,\nq2", "\x1b[31mother"),
            ("q3!", "well,\nq3"),
        )
    }
    assert len(pairs) == 5
    assert set(pairs[0].row) == {"key", "id", "input", "first", "second", "winner", "by", "explanation"}


def test_the_order_is_random_and_the_same_for_a_person_and_a_seed() -> None:
    data = Dataset.from_rows([{"input": f"q{n}"} for n in range(40)])
    runner = Runner()
    runs = [runner.run(task, data) for task in (short, long)]
    with pytest.raises(SpecError, match="is in another store; pairs are of runs in one store"):
        pairs_to_judge([runs[0], Runner().run(long, data)])
    ann = pairs_to_judge(runs, by="ann")
    assert pairs_to_judge(runs[::-1], by="ann") == ann
    assert 8 < sum(pair.first.endswith("!") for pair in ann) < 32
    assert [int(pair.id) for pair in ann] != sorted(int(pair.id) for pair in ann)
    assert pairs_to_judge(runs, by="bob") != ann != pairs_to_judge(runs, by="ann", seed=1)


def test_answers_are_stored_at_once_and_become_matches(folder: Path) -> None:
    done = label("--by", "ann", typed="1 it is short\nx\n2\nb\nt\ns\n")  # the second answer is replaced, then the end
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "'x' is no answer: type 1, 2, t, s, b or q" in done.output
    assert "3 of 5 pairs judged in pairs-ann.jsonl; the same command continues" in done.stderr
    assert "ann: 3 of 5 pairs\n" in done.stdout
    rows = lines_of(folder / "pairs-ann.jsonl")
    assert [(row["winner"], row["by"], row["explanation"]) for row in rows] == [
        ("first", "ann", "it is short"),
        ("second", "ann", None),
        ("tie", "ann", None),
        ("skip", "ann", None),
    ]
    matches = Matches.open(DirectoryStore(folder / ".evaluand"), "demo/ann")
    assert matches.systems == ["short", "long", "mostly_short"]
    stored = matches.table().to_pylist()
    judged = [row for row in stored if row["judge"] == "ann"]
    assert {row["explanation"] for row in judged if row["first"] == 1.0} == {"it is short"}
    skipped = [row for row in judged if row["status"] == "abstained"]
    assert {(row["outcome"], row["reason"]) for row in skipped} == {(None, "the person skipped it")}
    assert [(row["_index_"], row["outcome"]) for row in stored if row["equal"]] == [(0, 0.5)]
    assert {row["reason"] for row in stored if row["status"] == "skipped"} == {"not judged"}


def test_the_same_command_continues_also_after_a_line_was_torn(folder: Path) -> None:
    label("--by", "ann", typed="1\n2\nq\n")
    path = folder / "pairs-ann.jsonl"
    first = lines_of(path)
    with path.open("ab") as file:
        file.write(b'{"key": "torn')
    done = label("--by", "ann", typed="t\nt\nt\n1\n")
    assert "Pair 3 of 5" in done.stdout
    assert "Pair 2 of 5" not in done.stdout
    assert "5 of 5 pairs judged in pairs-ann.jsonl\n" in done.stderr
    assert lines_of(path)[:2] == first
    assert len(lines_of(path)) == 5


def test_only_what_a_killed_process_left_of_an_answer_is_removed(folder: Path) -> None:
    assert label("--by", "ann", typed="1 schön \\u00 \\n\n2\nq\n").exit_code == 0
    path = folder / "pairs-ann.jsonl"
    whole = path.read_bytes()
    first, second = whole.splitlines()
    for n in range(1, len(second), 3):
        path.write_bytes(first + b"\n" + second[:n])
        assert [each.winner for each in read_to_append(path)] == ["first"]
        assert path.read_bytes() == first + b"\n"
    path.write_bytes(whole[:-1])
    assert [each.winner for each in read_to_append(path)] == ["first", "second"]
    assert path.read_bytes() == whole
    path.write_bytes(second[:9])
    assert read_to_append(path) == []
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", "remember the milk"),
        ("notes.txt", "first\n{"),
        ("notes.jsonl", '{"key": "k", "winner": "first"}\n{"name": "a'),
        ("notes.jsonl", '{"key": "k", "winner": "first"}\n{"key": "k", "winner": first}'),
        ("table.csv", "key,winner\nk,first\nk,second"),
        ("list.json", '["key"'),
    ],
)
def test_a_file_of_something_else_stays_as_it_is(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(EvaluandError, match=re.escape(name)):
        read_to_append(tmp_path / name)
    assert (tmp_path / name).read_text() == content


def test_answers_are_not_appended_to_csv(folder: Path) -> None:
    refused = label("--by", "ann", "-o", "new.csv")
    assert refused.stderr == "error: new.csv: answers are appended as JSON lines; give a file that ends in .jsonl\n"
    assert not (folder / "new.csv").exists()


def test_several_people_are_imported_with_their_agreement(folder: Path) -> None:
    label("--by", "ann", typed="t\n" * 5)
    assert label("--export", "bob.csv").stderr == "5 pairs to judge in bob.csv\n"
    with (folder / "bob.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, winner in zip(rows, ("Tie", "first", "", "skip", "tie "), strict=True):
        row |= {"winner": winner, "by": "bob"}
    with (folder / "bob.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    refused = label("--export", "bob.csv")
    assert (refused.exit_code, refused.stderr) == (1, "error: bob.csv has 4 filled-in pairs; write to another file\n")
    facts = json.loads(label("--import", "pairs-ann.jsonl", "--import", "bob.csv", "--json").stdout)
    assert (facts["name"], facts["pairs"], facts["unmatched"]) == ("demo/people", 5, 0)
    assert {each["by"]: each["pairs"] for each in facts["by"]} == {"ann": 5, "bob": 4}
    [both] = facts["agreement"]
    assert both["agreed"] + len(both["disputed"]) == both["pairs"]
    assert {(pair["one"], pair["other"]) for pair in both["disputed"]} <= {("tie", "a"), ("tie", "b")}
    assert all(pair["id"] and {pair["a"], pair["b"]} <= {"short", "long", "other"} for pair in both["disputed"])
    text = label("--import", "pairs-ann.jsonl", "--import", "bob.csv", "--with", "demo/ann").stdout
    assert "common pairs" in text
    assert "the pairs on which they do not agree: --json" in text


def test_bytes_that_are_no_text_are_escaped_in_a_reason_and_refused_in_a_name(folder: Path) -> None:
    command = ["label", "--pairs", "demo/short", "demo/long", "--by"]
    typed = CliRunner(charset="utf-8").invoke(main, [*command, "ann"], b"1 be\xffcause\n1 really\nq\n")
    assert typed.exception is None
    assert "this line is not UTF-8: type it again" in typed.stdout
    refused = CliRunner().invoke(main, [*command, "a\udcff"])
    assert "by: a name must not have control characters: 'a" in refused.stderr


def test_what_the_command_refuses(folder: Path) -> None:
    assert "give one of --by NAME (judge here), --export FILE and --import FILE" in label().stderr
    (folder / "empty.jsonl").write_text("")
    assert "no row of empty.jsonl has a winner; fill in the files first" in label("--import", "empty.jsonl").stderr
    assert label("--by", "ann", typed="q\n").exit_code == 0
    same = CliRunner().invoke(main, ["label", "pairs", "demo/short", "demo/short", "--by", "ann"])
    assert "there is nothing to judge: the runs gave equal responses" in same.stderr


def test_an_answer_belongs_to_the_responses_and_not_to_the_runs(tmp_path: Path) -> None:
    store = MemoryStore()
    runs = run_all(store)
    path = tmp_path / "ann.jsonl"
    rows = [pair.row | {"winner": "first", "by": "ann"} for pair in pairs_to_judge(runs, by="ann")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = read_judged([path])
    everything = match_by_people(runs, answers, labels=["x", "y", "z"])
    assert (everything.pairs, everything.by, everything.unmatched) == (5, {"ann": 5}, 0)
    with pytest.warns(EvaluandWarning, match="2 answers of 5 are about other responses, and are left out"):
        fewer = match_by_people(runs[:2], answers)
    assert (fewer.pairs, fewer.by) == (3, {"ann": 3})
    other = run_all(store, str.upper, str.title)
    with pytest.raises(SpecError, match="no answer is about a pair of responses of these runs; 5 answers"):
        match_by_people(other, answers)


def test_people_agree_with_a_judge() -> None:
    runs = run_all(MemoryStore(), short, long)
    judge = Matcher().match(runs, lambda first, second: "first" if len(first) < len(second) else "second")
    pairs = pairs_to_judge(runs, by="ann")
    rows = [(pair.key, "first" if len(pair.first) < len(pair.second) else "second") for pair in pairs]
    people = match_by_people(runs, [*_answers(rows[:1], "ann"), *_answers([(rows[1][0], "tie")], "ann")])
    [each] = agreement([people.matches, judge])
    assert (each.one, each.other, each.pairs, each.agreed) == ("ann", "function", 2, 1)


def _answers(rows: list[tuple[str, str]], by: str | None) -> list[Any]:
    from evaluand.matches.people import Judged

    return [Judged(key, winner, by, None) for key, winner in rows]


def test_every_fault_of_a_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "ann.jsonl"
    rows = [{"key": "k", "winner": "frist"}, {"winner": "first"}, {"key": "k", "winner": "tie", "by": 3}, {"key": "k"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError) as raised:
        read_judged([path])
    assert str(raised.value).splitlines() == [
        f"{path}:1: winner is 'frist' (did you mean 'first'?); give one of first, second, tie, skip",
        f"{path}:2: has no key; keep the key that `evaluand label pairs --export` wrote",
        f"{path}:3: by is a number; give a text",
    ]


def test_a_table_without_keys_names_the_command_that_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "bob.csv"
    path.write_text("id,winner\n1,first\n")
    with pytest.raises(DataError, match="has no column key; keep the columns that `evaluand label pairs --export` wr"):
        read_judged([path])


def earlier_if_small(first: str, second: str) -> str:
    """A judge who prefers `a` up to 3, and nobody above."""
    return "tie" if int(first[1:]) > 3 else "first" if first < second else "second"


def test_judges_of_different_datasets_are_compared_on_the_examples_they_share() -> None:
    store, sets = MemoryStore(), []
    rows = [{"input": number} for number in range(6)]
    for number, some in enumerate((rows[:5], rows[:1:-1])):
        data = Dataset.from_rows(some)
        runs = [Runner(store).run(task, data) for task in (lambda n: f"a{n}", lambda n: f"b{n}")]
        judge = comparison_scorer(earlier_if_small, name=f"judge {number}", version="1")
        sets.append(Matcher().match(runs, judge, labels=["a", "b"], name=f"judged/{number}"))
    assert [each[:4] for each in agreement(sets)] == [("judged/0", "judged/1", 3, 3)]


def test_kappa_is_that_of_scikit_learn_and_has_an_interval_by_example() -> None:
    chance = np.random.default_rng(3)
    ann = chance.integers(0, 3, 80)
    bob = np.where(chance.random(80) < 0.6, ann, chance.integers(0, 3, 80))
    words, systems = ("model_a", "tie", "model_b"), [("x", "y"), ("x", "z")]
    battles = [
        {"question_id": n // 2, "model_a": systems[n % 2][0], "model_b": systems[n % 2][1], "judge": who}
        | {"winner": words[said[n]]}
        for who, said in (("ann", ann), ("bob", bob))
        for n in range(80)
    ]
    [found] = agreement([read_battles(battles)])
    assert found.kappa == pytest.approx(sk.cohen_kappa_score(ann, bob))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.kappa < found.high
    assert len(found.disputed) == int(np.sum(ann != bob))
    assert all(pair.id == str(pair.example) for pair in found.disputed)


def test_people_without_a_name_agree_with_nobody() -> None:
    runs = run_all(MemoryStore(), short, long)
    rows = [(pair.key, "first") for pair in pairs_to_judge(runs)]
    people = match_by_people(runs, [*_answers(rows, "ann"), *_answers(rows, None)])
    assert agreement([people.matches]) == []


def test_judges_of_two_files_are_compared_by_the_ids_of_examples() -> None:
    sets = [
        read_battles([{"id": id, "model_a": "x", "model_b": "y", "winner": said[id], "judge": who} for id in said])
        for who, said in (
            ("ann", {"p": "model_a", "q": "model_b", "r": "tie"}),
            ("bob", {"r": "model_a", "q": "model_b", "s": "tie"}),
        )
    ]
    [each] = agreement(sets)
    assert each[:4] == ("ann", "bob", 2, 1)
    assert len(each.disputed) == 1
