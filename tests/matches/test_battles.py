"""Files of battles as matches: the published forms, what a cell may say, and every fault with its place."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evaluand import DataError, DirectoryStore, EvaluandWarning, MemoryStore, SpecError
from evaluand.cli import main
from evaluand.matches import Matches, read_battles
from evaluand.matches.battles import battle_batches
from evaluand.report.verification import verify

LLMBAR = Path(__file__).parents[2].parent / "shared" / "data" / "llmbar"


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def rows_of(matches: Matches, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in matches.table([*columns]).to_pylist()]


def battle(winner: Any = "model_a", **further: Any) -> dict[str, Any]:
    return {"question_id": "q1", "model_a": "x", "model_b": "y", "winner": winner} | further


def test_battles_of_chatbot_arena(tmp_path: Path) -> None:
    asked, said = {"role": "user", "content": "Hi?"}, {"role": "assistant", "content": "# Hello **you**"}
    short = {"role": "assistant", "content": "no"}
    rows = [
        battle(conversation_a=[asked, said], conversation_b=[asked, short], judge="arena_user_1", turn=1),
        battle("model_b", question_id="q2", model_a="z", judge="arena_user_2", turn=2),
        battle("tie (bothbad)", model_a="y", model_b="x", conversation_a=[asked, short, said], turn=1),
    ]
    matches = read_battles(write(tmp_path / "arena.jsonl", *rows), name="arena")
    assert matches.systems == ["x", "y", "z"]
    assert (matches.name, matches.runs, matches.counts) == ("arena", [], {"scored": 3})
    names = ["_index_", "replication", "a", "b", "outcome", "label", "judge"]
    assert rows_of(matches, *names) == [
        (0, 0, 0, 1, 1.0, None, "arena_user_1"),
        (1, 1, 1, 2, 1.0, None, "arena_user_2"),
        (0, 0, 0, 1, 0.5, "tie (bothbad)", None),
    ]
    styles = matches.table(["style_a", "style_b"]).to_pylist()
    assert [style and (style["words"], style["headings"], style["bold"]) for style in styles[0].values()] == [
        (3, 1, 1),
        (1, 0, 0),
    ]
    assert (styles[2]["style_a"], styles[2]["style_b"]["words"]) == (None, 4)


def test_the_order_is_unknown_unless_the_file_or_the_reader_says_it() -> None:
    rows = [battle(), battle("model_b", model_a="y", model_b="x")]
    assert rows_of(read_battles(rows), "order", "outcome", "first") == [("ab", 1.0, None), ("ab", 1.0, None)]
    assert rows_of(read_battles(rows, in_order=True), "order", "outcome", "first") == [
        ("ab", 1.0, 1.0),
        ("ba", 1.0, 0.0),
    ]
    rows = [each | {"order": order} for each, order in zip(rows, ("ba", "ab"), strict=True)]
    assert rows_of(read_battles(rows), "order", "outcome", "first") == [("ba", 1.0, 0.0), ("ba", 1.0, 0.0)]


def test_battles_with_a_column_for_each_winner(tmp_path: Path) -> None:
    text = """id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie
1,x,y,"[""Hi""]","[""a b"",""c""]",[null],1,0,0
2,x,y,"[""Ho""]",a,b,0,0,1
"""
    matches = read_battles(write(tmp_path / "train.csv", text))
    assert rows_of(matches, "_index_", "outcome") == [(0, 1.0), (1, 0.5)]
    assert [row["words"] for (row,) in rows_of(matches, "style_a")] == [3, 1]
    faulty = write(tmp_path / "faulty.csv", text + "3,x,y,p,a,b,1,0,1\n4,x,y,p,a,b,,,\n")
    message = "winner_model_a: exactly one of winner_model_a, winner_model_b, winner_tie must be 1, the others 0"
    with pytest.raises(DataError) as raised:
        read_battles(faulty)
    assert str(raised.value).splitlines() == [f"{faulty}:4:{message}", f"{faulty}:5:{message}"]


def test_annotations_of_alpaca_eval(tmp_path: Path) -> None:
    def annotation(instruction: str, preference: float | None, output: str = "short") -> dict[str, Any]:
        said = {"instruction": instruction, "output_1": "a longer text", "generator_1": "base", "annotator": "gpt"}
        return said | {"output_2": output, "generator_2": "new", "preference": preference}

    rows = [annotation("one", 1.75), annotation("two", 0, "a longer text"), annotation("one", None)]
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(rows, indent=2))
    matches = read_battles(path)
    assert matches.systems == ["base", "new"]
    assert rows_of(matches, "_index_", "outcome", "equal", "status", "reason", "judge") == [
        (0, 0.25, False, "scored", None, "gpt"),
        (1, 0.5, True, "scored", None, "gpt"),
        (0, None, False, "abstained", "the file has no winner", "gpt"),
    ]
    with pytest.raises(DataError, match=r"battles\[0\]:preference: is 2.5; give a number from 1"):
        read_battles([annotation("one", 2.5)])


def test_pairwise_judgements_of_mt_bench_are_two_matches_in_both_orders() -> None:
    row = {"question_id": 81, "model_1": "x", "model_2": "y", "judge": ["gpt-4", "pair-v2"], "turn": 2}
    row |= {"g1_winner": "model_1", "g2_winner": "tie", "g1_judgment": "because"}
    matches = read_battles([row, row | {"turn": 1, "g1_winner": "error"}])
    assert rows_of(matches, "replication", "order", "outcome", "first", "status", "judge", "explanation") == [
        (1, "ab", 1.0, 1.0, "scored", "gpt-4/pair-v2", "because"),
        (1, "ba", 0.5, 0.5, "scored", "gpt-4/pair-v2", None),
        (0, "ab", None, None, "failed", "gpt-4/pair-v2", "because"),
        (0, "ba", 0.5, 0.5, "scored", "gpt-4/pair-v2", None),
    ]


def test_games_of_arena_hard_have_labels_by_position() -> None:
    games = [{"score": "A>>B", "judgment": {"answer": "clear"}}, {"score": "A=B"}]
    rows = [
        {"uid": "u1", "model": "new", "baseline": "base", "judge": "gpt", "games": games},
        {
            "uid": "u2",
            "model": "new",
            "baseline": "base",
            "judge": "gpt",
            "games": [{"score": "B>A"}, {"score": "A>B"}],
        },
        {"uid": "u3", "model": "new", "baseline": "base", "judge": "gpt", "games": [{"score": None}, None]},
    ]
    matches = read_battles(rows)
    assert matches.systems == ["base", "new"]
    assert rows_of(matches, "order", "outcome", "first", "label", "strength", "explanation") == [
        ("ab", 1.0, 1.0, "A>>B", 2.0, "clear"),
        ("ba", 0.5, 0.5, "A=B", 0.0, None),
        ("ab", 0.0, 0.0, "B>A", 1.0, None),
        ("ba", 0.0, 1.0, "A>B", 1.0, None),
        *[(order, None, None, None, None, None) for order in ("ab", "ba")],
    ]
    first = {name: value for name, value in rows[0].items() if name != "baseline"}
    assert read_battles([first], a="gpt-4-0314").systems == ["gpt-4-0314", "new"]
    with pytest.raises(SpecError, match=r"names the first system; name the column \(columns={'a': 'COLUMN'}\)"):
        read_battles([first])


@pytest.mark.parametrize(
    ("winner", "outcome"),
    [
        *[(word, 1.0) for word in ("model_a", " A ", "first", 1, 1.0, "model_1", "x", "[[A]]", "A > B", "B<A")],
        *[(word, 0.0) for word in ("model_b", "b", "Second", "2", "y", "B>>A")],
        *[(word, 0.5) for word in ("tie", "Tie (bothbad)", "both_bad", "A=B")],
    ],
)
def test_what_a_winner_may_be(winner: Any, outcome: float) -> None:
    assert rows_of(read_battles([battle(winner)]), "outcome") == [(outcome,)]


@pytest.mark.parametrize("winner", ["z", 0, 3, 0.5, True, ["x"], "model_c"])
def test_what_a_winner_must_not_be(winner: Any) -> None:
    with pytest.raises(DataError, match=r"^battles\[0\]:winner: is .*; give model_a, model_b, tie, or the name of"):
        read_battles([battle(winner)])


def test_a_winner_that_is_a_name_and_a_word_for_another_outcome_is_refused() -> None:
    for a, b, winner in (("model_b", "model_a", "model_a"), ("tie", "x", "tie")):
        with pytest.raises(DataError, match="the name of a system and the word for another outcome"):
            read_battles([{"id": 1, "model_a": a, "model_b": b, "winner": winner}])
    matches = read_battles([{"id": 1, "model_a": "tie", "model_b": "model_a", "winner": "first"}])
    [batch] = battle_batches(matches)
    assert read_battles(batch.to_pylist()).digest == matches.digest


def test_rows_without_an_example_are_those_of_no_input() -> None:
    rows = [{"model_a": "x", "model_b": "y", "winner": "x", "prompt": each} for each in ("row 1", None, "row 1")]
    with pytest.warns(EvaluandWarning, match="counts as a separate example"):
        assert rows_of(read_battles(rows), "_index_") == [(0,), (1,), (0,)]


def test_every_fault_is_reported_with_its_row_and_column(tmp_path: Path) -> None:
    rows = [
        battle(),
        battle("nobody", turn=0),
        battle(model_a="", question_id=""),
        battle(order="xy", judge={"name": "ann"}, turn="two"),
    ]
    path = write(tmp_path / "battles.jsonl", *rows)
    with pytest.raises(DataError) as raised:
        read_battles(path)
    assert str(raised.value).splitlines() == [
        f"{path}:2:turn: is 0; give a whole number, 1 or more",
        f"{path}:2:winner: is 'nobody'; give model_a, model_b, tie, or the name of a system of the row",
        f"{path}:3:question_id: is empty; give the id of the example",
        f"{path}:3:model_a: is empty; give the name of the system",
        f"{path}:4:judge: is an object; give a text",
        f"{path}:4:turn: is 'two'; give a number",
        f"{path}:4:order: is 'xy'; give ab if the first system was shown first, else ba",
    ]


def test_columns_are_named_explicitly_also_by_their_place() -> None:
    rows = [{"q": {"id": 7}, "left": "x", "right": "y", "better": "left wins", "said": [{"who": "y"}]}]
    chosen = {"example": "q.id", "a": "left", "b": "right", "winner": "said[0].who"}
    assert rows_of(read_battles(rows, columns=chosen), "outcome") == [(0.0,)]
    with pytest.raises(SpecError, match=r"no field is called 'wins' \(did you mean 'winner'"):
        read_battles(rows, columns=chosen | {"wins": "better"})
    with pytest.raises(SpecError, match=r"={'winner': 'beter'}: no column is called 'beter' \(did you mean 'better'"):
        read_battles(rows, columns=chosen | {"winner": "beter"})
    with pytest.raises(SpecError, match=r"no column says who won; name it \(columns={'winner': 'COLUMN'}\)"):
        read_battles(rows, columns={"a": "left", "b": "right"})


def test_rows_without_an_example_are_reported_and_mirror_matches_left_out() -> None:
    rows = [{name: value for name, value in battle().items() if name != "question_id"}] * 2
    with pytest.warns(EvaluandWarning, match="no column names the example, so each of 2 rows counts as a separate"):
        assert rows_of(read_battles(rows), "_index_") == [(0,), (1,)]
    with pytest.warns(EvaluandWarning, match="1 row in which a system meets itself cannot be matches"):
        assert read_battles([battle(), battle(model_b="x")]).counts == {"scored": 1}
    with pytest.raises(DataError, match="battles: has no battles"), pytest.warns(EvaluandWarning):
        read_battles([battle(model_b="x")])


def test_the_id_depends_on_what_the_rows_say_and_not_on_the_file(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    rows = [battle(prompt="hi", judge="ann"), battle("tie", prompt="hi", judge="ann")]
    lines = read_battles(write(tmp_path / "a.jsonl", *rows), store, name="battles")
    cells = ["question_id,model_a,model_b,winner,prompt,judge", "q1,x,y,A,hi,ann", "q1,x,y,tie,hi,ann"]
    table = read_battles(write(tmp_path / "b.csv", *cells), store)
    assert lines.id == table.id
    assert read_battles([battle(), battle("model_b")], store).id != lines.id
    assert Matches.open(store, "battles").digest == lines.digest
    assert verify(store, "matches", lines.id) == []


@pytest.mark.parametrize("said", [{"judge": "ann"}, {"prompt": "hi"}])
def test_the_name_of_a_file_that_says_too_little_is_part_of_the_id(said: dict[str, str], tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    one, other = (read_battles(write(tmp_path / name, battle(**said)), store) for name in ("a.jsonl", "b.jsonl"))
    assert one.digest == other.digest
    assert one.id != other.id
    assert [each.manifest["provenance"]["source"] for each in (one, other)] == ["a.jsonl", "b.jsonl"]
    assert verify(store, "matches", other.id) == []


def test_matches_have_the_name_that_they_get_later(tmp_path: Path) -> None:
    store, path = DirectoryStore(tmp_path / "store"), write(tmp_path / "a.jsonl", battle())
    assert read_battles(path, store).name is None
    assert [read_battles(path, store, name=name).name for name in ("arena", "again")] == ["arena", "again"]
    assert Matches.open(store, "arena").name is not None


@pytest.mark.skipif(not LLMBAR.exists(), reason="needs the data of LLMBar")
@pytest.mark.parametrize(("judge", "consistent", "first_twice"), [("GPT-4", 93, None), ("ChatGPT", 62, 36)])
def test_replies_of_real_judges_in_both_orders(judge: str, consistent: int, first_twice: int | None) -> None:
    columns = {
        "winner": 'results[0]["swap = False"].winner',
        "swapped": 'results[0]["swap = True"].winner',
    }
    path = LLMBAR / f"Natural.{judge}.Swap.json"
    matches = read_battles(path, MemoryStore(), columns=columns, a="output_1", b="output_2")
    outcomes = rows_of(matches, "outcome", "first")
    pairs = [*zip(outcomes[::2], outcomes[1::2], strict=True)]
    assert len(pairs) == 100
    assert sum(one[0] == other[0] for one, other in pairs) == consistent
    both = Counter((one[1], other[1]) for one, other in pairs)
    assert first_twice is None or both[1.0, 1.0] == first_twice


def test_a_match_that_a_judge_repeats_is_another_replication() -> None:
    rows = [battle(), battle("tie"), battle(judge="ann"), battle(turn=3), battle(turn=3), battle(turn=2)]
    assert rows_of(read_battles(rows), "replication", "outcome") == [
        (0, 1.0),
        (1, 0.5),
        (0, 1.0),
        (2, 1.0),
        (3, 1.0),
        (4, 1.0),
    ]


def test_battles_are_imported_by_the_command_line(tmp_path: Path) -> None:
    def call(*words: str) -> Any:
        return CliRunner().invoke(main, ["import", *words, "--store", str(tmp_path / "store")])

    file = str(write(tmp_path / "judged.jsonl", {"id": 1, "left": "x", "right": "y", "better": "x"}))
    columns = [word for each in ("a=left", "b=right", "winner=better") for word in ("--column", each)]
    done = call(file, "--battles", *columns)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith(" (judged) of 2 systems: 1 scored")
    facts = json.loads(call(file, "--battles", *columns, "--in-order", "--name", "ordered", "--json").stdout)
    assert facts["matches"]["systems"] == ["x", "y"]
    assert Matches.open(DirectoryStore(tmp_path / "store"), "ordered").table(["first"]).to_pylist() == [{"first": 1.0}]
    assert "--dataset is not for --battles; leave it out" in call(file, "--battles", "--dataset", "d").stderr
    assert "--column is for --battles; leave it out, or add --battles" in call(file, *columns).stderr
    assert "--column a must be a field and its column" in call(file, "--battles", "--column", "a").stderr


def test_a_file_without_rows_has_no_battles(tmp_path: Path) -> None:
    for name, text in (("empty.jsonl", ""), ("header.csv", "model_a,model_b,winner\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match=f"{name}: has no battles"):
            read_battles(tmp_path / name)


def test_faults_of_games() -> None:
    rows = [{"uid": 1, "model": "m", "baseline": "b", "games": games} for games in ("x", [{}] * 3, [{"score": "C"}, 3])]
    with pytest.raises(DataError) as raised:
        read_battles(rows)
    assert str(raised.value).splitlines() == [
        "battles[0]:games: is a text; give a list of one or two games",
        "battles[1]:games: has 3 games; give a list of one or two games",
        "battles[2]:games[0].score: is 'C'; give a label such as A>>B, A>B or A=B",
        "battles[2]:games[1]: is a number; give an object with a score",
    ]


def test_responses_are_texts_or_what_an_assistant_says() -> None:
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"text": "a"}, "b"]}]
    said = {"content": "ok"}
    rows = [battle(response_a=turns, response_b=said), battle(response_a="[1]", response_b=json.dumps(turns))]
    styles = read_battles(rows).table(["style_a", "style_b"]).to_pylist()
    lengths = [[row[side]["characters"] for side in ("style_a", "style_b")] for row in styles]
    assert lengths == [[len("a\n\nb"), 2], [3, len("a\n\nb")]]


def test_an_empty_response_has_no_characters_and_a_missing_one_is_unknown() -> None:
    row = {"model_a": "x", "model_b": "y", "winner": "model_b", "response_b": "text"}
    rows = [row | {"id": "1", "response_a": ""}, row | {"id": "2", "response_a": None}]
    empty, unknown = read_battles(rows).table(["style_a"])["style_a"].to_pylist()
    assert empty["characters"] == empty["words"] == 0
    assert unknown is None


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"winner": "model_a", "preference": 2}, "winner: contradicts the column preference"),
        ({"winner": "tie", "preference": 1.0}, "winner: contradicts the column preference"),
        (
            {"winner": "x", "winner_model_a": 0, "winner_model_b": 1, "winner_tie": 0},
            "winner: contradicts the column win",
        ),
        ({"preference": 1.2, "outcome": 0.4}, "preference: contradicts the outcome 0.4, the first system's share of"),
        ({"winner": "model_a", "outcome": 3}, "outcome: is 3; give the first system's share"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(row: dict[str, Any], fault: str) -> None:
    with pytest.raises(DataError) as raised:
        read_battles([{"id": 1, "model_a": "x", "model_b": "y"} | row])
    assert str(raised.value).startswith(f"battles[0]:{fault}")
    assert len(raised.value.faults) == 1


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        ({"winner": "model_a", "preference": 1.4}, 0.6),
        ({"winner": "tie", "preference": 1.4}, 0.6),
        ({"winner": "model_b", "preference": None}, 0.0),
        ({"winner": None, "preference": 2}, 0.0),
        ({"winner": None, "preference": None, "outcome": None}, None),
    ],
)
def test_columns_that_agree_or_say_nothing_are_read(row: dict[str, Any], outcome: float | None) -> None:
    [read] = read_battles([{"id": 1, "model_a": "x", "model_b": "y"} | row]).table(["outcome"]).to_pylist()
    assert read["outcome"] == (outcome if outcome is None else pytest.approx(outcome))
