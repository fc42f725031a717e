"""`evaluand rate`, and `show` and `list` of matches and ratings."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.commands import Folder
from support.matches import Outcomes, play

from evaluand import Dataset, DirectoryStore, EvaluandWarning, Matcher, Runner, comparison_scorer, rate

# mine wins 30 of 40 examples against base
BATTLES = [
    {"question_id": number, "model_a": "mine", "model_b": "base", "winner": "model_a" if number < 30 else "model_b"}
    for number in range(40)
]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("battles.jsonl", BATTLES)
    return folder


def test_a_file_of_battles_is_rated(folder: Folder) -> None:
    result = folder.call("rate", folder.path / "battles.jsonl", "--name", "arena")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    first = lines[1].split()  # 1000 + 400 log₁₀ 3 / 2
    assert first[:4] + first[6:] == ["1", "mine", "a", "1,095", "75.0", "%", "30", "0", "10"]
    assert lines[2].split()[:4] == ["2", "base", "b", "905"]
    assert "mine − base        +191   [+" in result.output
    assert "again: evaluand show" in result.output
    again = json.loads(folder.call("rate", "arena", folder.path / "battles.jsonl", "--json").output)
    assert [row["n"] for row in again["ratings"]] == [40, 40]
    assert again["signature"] == "bradley_terry v2 interval=bootstrap(1000,0) 95%"


def test_columns_of_any_name_are_read(folder: Folder) -> None:
    rows = [{"left": "x", "right": "y", "better": winner, "id": n} for n, winner in enumerate(["x", "y", "tie"])]
    folder.write("own.jsonl", rows)
    options = [f"--column={field}={name}" for field, name in (("a", "left"), ("b", "right"), ("winner", "better"))]
    facts = json.loads(folder.call("rate", folder.path / "own.jsonl", *options, "--json").output)
    assert facts["ratings"][0] | {"won": 1, "tied": 1, "lost": 1} == facts["ratings"][0]
    result = folder.call("rate", folder.path / "own.jsonl", "--column", "left")
    assert (result.exit_code, "--column left must be a field and its column" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("rule", "code"), [("win_rate(mine, base) >= 0.55 at 95%", 0), ("win_rate(mine, base) >= 0.7 at 95%", 3)]
)
def test_gates_decide_the_exit_code(rule: str, code: int, folder: Folder) -> None:
    junit = folder.path / "gates.xml"
    result = folder.call("rate", folder.path / "battles.jsonl", "--by-people", "--gate", rule, "--junit", junit)
    assert result.exit_code == code
    assert ("passed" if code == 0 else "FAILED") in result.output
    assert "lower 95% bound 0.6129; win rate 0.75 of 40 matches" in result.output
    assert ElementTree.parse(junit).getroot().get("failures") == str(int(code == 3))


@pytest.mark.parametrize("options", [(), ("--by-people",)])
def test_a_file_that_was_read_before_is_read_as_the_command_says(options: tuple[str, ...], folder: Folder) -> None:
    path, gate = folder.path / "battles.jsonl", ("--gate", "win_rate(mine, base) >= 0.55 at 95%")
    other = [] if options else ["--by-people"]
    folder.call("rate", path, *other)
    folder.call("import", path, "--battles", *other)
    result = folder.call("rate", path, *options, *gate)
    assert (result.exit_code, "is unmeasured" in result.output) == ((0, False) if options else (3, True))


def test_wrong_usage_is_one_sentence(folder: Folder) -> None:
    folder.call("rate", folder.path / "battles.jsonl", "--by-people", "--name", "arena")
    for arguments, message in (
        (["arina"], "arina: no such file, and no stored matches of this name (did you mean 'arena'?)"),
        (["arena", "--gate", "win_rate(mne, base) > 0"], "no system is called 'mne' (did you mean 'mine'?)"),
        (["arena", "--method", "win_rate", "--ties", "half"], "ties is a parameter of bradley_terry"),
        (["arena", "--junit", "x.xml"], "--junit needs --gate"),
        (["arena", "--by-people"], "--by-people is for files of battles; stored matches stay as their file was read"),
        (["arena", "--a", "mine"], "--a is for files of battles"),
        ([], "ID|NAME|FILE... is missing"),
    ):
        result = folder.call("rate", *arguments)
        assert result.exit_code in (1, 2)
        assert message in " ".join(result.output.split())


def test_messages_about_files_name_options_and_what_to_type(folder: Folder) -> None:
    folder.write("near.jsonl", [{"model_a": "x", "modelb": "y", "winner": "tie"}])
    folder.write("left.jsonl", [{"left": "x", "model_b": "y", "winner": "tie"}])
    store = DirectoryStore(folder.path / "store")
    Runner(store).run(str.upper, Dataset.from_rows([{"input": "a"}]), name="demo/upper")
    near, left = folder.path / "near.jsonl", folder.path / "left.jsonl"
    for arguments, message in (
        (["rate", near], "no column names the second system; name the column (--column b=COLUMN)"),
        (["rate", left], "name the column (--column a=COLUMN) or, if it is the same in all rows, the system (--a SY"),
        (["import", left, "--battles", "--column", "a=lft"], "--column a=lft: no column is called 'lft' (did you mean"),
        (
            ["rate", "demo/upper"],
            "is a run, not matches; judge it against others with `evaluand compare --pairwise demo/upper OTHER",
        ),
        (["compare", "demo/uper", "x", "--pairwise", "--by-score", "y"], "did you mean 'demo/upper'?"),
        (["report", folder.path / "battles.jsonl"], "type `evaluand rate "),
    ):
        assert message in " ".join(folder.call(*arguments).output.split())


def test_an_import_shows_and_returns_its_name_although_the_rows_are_stored(folder: Folder) -> None:
    path = folder.path / "battles.jsonl"
    folder.call("rate", path)
    command = ("import", path, "--battles", "--name", "arena")
    assert "(arena) of 2 systems" in folder.call(*command).output
    assert json.loads(folder.call(*command, "--json").output)["matches"]["name"] == "arena"
    assert "matches arena: 40 scored" in folder.call("rate", "arena").output


def test_undefined_ratings_are_shown_with_their_reason(folder: Folder) -> None:
    folder.write("won.jsonl", BATTLES[:5])
    result = folder.call("rate", folder.path / "won.jsonl")
    assert result.exit_code == 0
    assert '"mine" won all of its 5 matches, so its strength has no finite estimate' in result.output


OUTCOMES: Outcomes = {("A", "B"): [1.0, (1.0, 0.0), None], ("A", "C"): [0.5, 1.0, 0.0], ("B", "C"): [1.0, 0.0, 0.5]}


def test_matches_and_ratings_are_shown_and_listed(folder: Folder) -> None:
    store = DirectoryStore(folder.path / "store")
    matches = play(store, OUTCOMES)
    ratings = rate(matches, name="abc")
    text = folder.call("show", matches.id[:8]).output
    assert text.startswith(f"set of matches {matches.id}")
    assert ["A", "B", "3", "0", "1", "2"] in [line.split() for line in text.splitlines()]
    assert "_index_ 2, A – B: abstained" in text
    assert "the judge returned None" in text
    assert "A 2" in text
    failed: dict[str, Any] = json.loads(folder.call("show", matches.id[:8], "--failed", "--json").output)
    assert [row["status"] for row in failed["rows"]] == ["abstained", "abstained"]
    text = folder.call("show", "abc").output
    assert text.startswith(f"set of ratings {ratings.id}  abc")
    assert "win rate \\ against" in text
    assert "were the missing matches known, win rates would lie in: " in text
    assert "position bias" in text
    assert json.loads(folder.call("show", "abc", "--json").output)["ratings"]["digest"] == ratings.digest
    listed = json.loads(folder.call("list", "ratings", "--json").output)
    assert [(entry["name"], entry["counts"]["ratings"]) for entry in listed] == [("abc", 3)]
    assert "ok     set of ratings" in folder.call("verify", "abc").output


def test_a_changed_rating_is_found(folder: Folder) -> None:
    store = DirectoryStore(folder.path / "store")
    ratings = rate(play(store, OUTCOMES))
    [file] = (folder.path / "store" / "ratings" / ratings.id).glob("ratings-*.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert folder.call("verify", ratings.id).exit_code == 1


def test_what_matches_leave_out_is_shown_with_them_and_with_ratings(folder: Folder) -> None:
    store = DirectoryStore(folder.path / "store")
    data = Dataset.from_rows([{"input": number} for number in range(4)])
    runs = [Runner(store).run(lambda number: f"a{number}", data, replications=3)]
    runs.append(Runner(store).run(lambda number: f"b{number}", data))
    judge = comparison_scorer(lambda first, second: "first" if first < second else "second", name="alphabet")
    with pytest.warns(EvaluandWarning, match="not all replications are compared"):
        Matcher().match(runs, judge, labels=["a", "b"], name="pairs")
    left_out = "'a' has 3, 'b' has 1, so 8 responses have none to meet; run 'b' with replications=3 and match again"
    for command in ("show", "rate"):
        result = folder.call(command, "pairs")
        assert left_out in " ".join(result.output.split()), result.output


def test_equal_length_and_weights_are_options(folder: Folder) -> None:
    texts = {"response_a": "longer", "response_b": "short"}
    rows = [
        {"id": n, "model_a": a, "model_b": "base", "winner": ["model_a", "model_b", "model_a"][(n + len(a)) % 3]}
        | texts
        for n in range(12)
        for a in ("one", "four", "longer")
    ]
    folder.write("long.jsonl", rows)
    file = folder.path / "long.jsonl"
    options = ["--method", "equal_length", "--baseline", "base"]
    facts = json.loads(folder.call("rate", file, *options, "--json").output)
    assert facts["rating_label"] == "win rate at equal length"
    assert {row["name"] for row in facts["parameters"]} == {"length", "quality"}
    result = folder.call("rate", file, "--weighted")
    assert result.exit_code != 0
    assert "weighted needs weights, and the examples of 36 matches have none" in result.output


def test_why_answers_are_missing_names_the_id_of_an_example(folder: Folder) -> None:
    store = DirectoryStore(folder.path / "store")

    def fail_on_two(number: int) -> int:
        if number == 2:
            raise ValueError("no answer")
        return number

    data = Dataset.from_rows([{"input": number, "qid": f"q{number}"} for number in range(3)], id="qid")
    Runner(store).run(fail_on_two, data, name="demo/some")
    assert "ValueError: no answer (first: _index_ 2 q2)" in " ".join(folder.call("show", "demo/some").output.split())
