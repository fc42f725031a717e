"""`evaluand judge`, and how other commands show what judges are worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder
from support.labelled import judge_numbers, label_numbers

from evaluand import DirectoryStore, Evaluation

ROWS = [{"id": n, "label": n % 2, "judgement": n % 2 if n % 10 else 1, "seconds": 0.5, "cost": 0.01} for n in range(60)]

JUDGE = """
from dataclasses import dataclass
from evaluand import Score, Scorer

@dataclass(frozen=True)
class Even(Scorer):
    kind = "even"
    version = 1
    is_judge = True
    limit: int = 0

    def score(self, output, expected):
        return Score(float(output % 2 == 0 and output >= self.limit))

def answer(number):
    return int(number)
"""

EXPERIMENT = """
name: numbers
dataset: {path: numbers.jsonl, input: n, metadata: [right]}
tasks: {mine: judge.py:answer}
scorers: {even: {function: judge.py:Even}}
metrics: [mean]
gates: [mean >= 0.4]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path)
    folder.write("labelled.jsonl", ROWS)
    folder.write("numbers.jsonl", [{"n": n, "right": int(n % 2 == 0 or n > 50)} for n in range(80)])
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "numbers.yaml").write_text(EXPERIMENT)
    return folder


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_file_has_a_card(folder: Folder) -> None:
    result = folder.call("judge", "card", "labelled.jsonl", "--judge", "gpt", "--name", "gpt/card")
    assert result.exit_code == 0, result.output
    shown = words(result.output)
    assert "gpt 60 answers labelled by people" in shown
    assert "agreement 0.90 [0.80, 0.95] 60 54 of 60" in shown
    assert "specificity 0.80" in shown
    assert "60 judgements: cost 0.60; 0.5 s each (median)" in shown
    assert "row" not in shown.split("worst misses")[0]
    assert "again: evaluand show gpt/card" in shown
    assert words(folder.call("show", "gpt/card").output).count("agreement 0.90") == 1
    facts = json.loads(folder.call("show", "gpt/card", "--json").output)
    assert facts["card"]["measures"][0]["value"] == 0.9
    listed = folder.call("list", "cards").output
    assert "gpt/card" in listed
    exported = folder.call("export", "gpt/card", "--table", "misses").output
    assert exported.splitlines()[0] == '"id","people","judge","difference","explanation","texts"'
    assert folder.call("verify", "gpt/card").exit_code == 0


def test_pairs_have_a_card(folder: Folder) -> None:
    rows = [
        {"label": 1, "choice": {"first": "1", "again": "1" if n % 4 else "2"}, "output_1": f"a{n}", "output_2": "b"}
        for n in range(40)
    ]
    folder.write("pairs.jsonl", rows)
    columns = ["--column", "judgement=choice.first", "--column", "swapped=choice.again"]
    facts = json.loads(folder.call("judge", "card", "pairs.jsonl", *columns, "--json").output)
    found = {(row["measure"], row["part"]): row["value"] for row in facts["measures"]}
    assert found["agreement", "first order"] == 1.0
    assert found["consistency", ""] == 0.75
    assert facts["judge"]["name"] == "pairs"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "nothing: no such file, and nothing stored with this name"),
        (["labelled.jsonl", "--scorer", "x"], "--scorer is not for files; give --column"),
        (["labelled.jsonl", "--column", "label"], "--column label must be a field and its column"),
        (["labelled.jsonl", "--column", "label=lable"], "--column label=lable: no column is called 'lable'"),
        (["labelled.jsonl", "--positive", "yes"], "no label is 'yes': labels are numbers"),
    ],
)
def test_wrong_use_is_explained(arguments: list[str], message: str, folder: Folder) -> None:
    result = folder.call("judge", "card", *arguments)
    assert result.exit_code in (1, 2)
    assert message in words(result.output)
    assert "Traceback" not in result.output


def test_the_best_of_several_files_is_measured_on_the_other_half(folder: Folder) -> None:
    folder.write("worse.jsonl", [row | {"judgement": int(row["id"] % 3 == 0)} for row in ROWS])
    result = folder.call("judge", "tune", "labelled.jsonl", "worse.jsonl", "--by", "agreement")
    assert result.exit_code == 0, result.output
    lines = [words(line) for line in result.output.splitlines()]
    first = lines.index("on the half that chooses, the best first")
    assert [line.split()[0] for line in lines[first + 2 : first + 4]] == ["labelled", "worse"]
    assert "labelled 30 answers labelled by people, none of which chose it" in lines
    alone = folder.call("judge", "tune", "labelled.jsonl")
    assert "a choice needs two judges or more" in alone.output


def test_an_unmeasured_judge_stops_a_gate_until_it_has_a_card(folder: Folder) -> None:
    refused = folder.call("run", "numbers.yaml")
    assert refused.exit_code == 3
    shown = words(refused.output)
    assert "judge even unmeasured: nobody knows how often it agrees with people" in shown
    assert "UNDECIDED mean >= 0.4 mine refused: judge 'even' is unmeasured" in shown
    allowed = folder.call("run", "numbers.yaml", "--allow-unmeasured-judges", "--json")
    assert allowed.exit_code == 0
    facts = json.loads(allowed.stdout)
    assert facts["gates"][0]["judges"][0] | {"status": "unmeasured", "allowed": True} == facts["gates"][0]["judges"][0]
    card = folder.call("judge", "card", "numbers/mine", "--labels", "right")
    assert card.exit_code == 0, card.output
    measured = folder.call("run", "numbers.yaml")
    assert measured.exit_code == 0, measured.output
    shown = words(measured.output)
    assert "judge even agreement 0.81 [0.71, 0.88], 80 answers labelled by people (right) (card " in shown
    assert "mine: 0.500 judged right, 0.688 [0.496" in shown
    assert "corrected for its errors" in shown


def test_how_to_measure_a_judge_is_said_once_and_for_the_first_task(folder: Folder) -> None:
    text = EXPERIMENT.replace("{mine: judge.py:answer}", "{mine: judge.py:answer, other: judge.py:answer}")
    text = text.replace("[mean]", "[{kind: mean, range: [0, 1]}]")
    text = text.replace("[mean >= 0.4]", "[mean not worse than mine, mean >= 0.4]")
    (folder.path / "numbers.yaml").write_text(text)
    refused = folder.call("run", "numbers.yaml", "--report")
    gates = words(refused.output).partition("UNDECIDED")[2]
    assert gates.count("measure it with `evaluand judge card numbers/mine`") == gates.count("measure it with") == 1
    assert gates.count("refused: judge 'even' is unmeasured (see above)") == 1
    page = (folder.path / "numbers.html").read_text().partition("</section>")[0]
    assert (page.count("measure it with"), page.count("(see above)")) == (1, 1)
    messages = [gate["message"] for gate in json.loads(folder.call("run", "numbers.yaml", "--json").stdout)["gates"]]
    assert all("measure it with `evaluand judge card numbers/mine`" in message for message in messages)


def test_a_file_may_allow_unmeasured_judges(folder: Folder) -> None:
    (folder.path / "numbers.yaml").write_text(EXPERIMENT + "allow_unmeasured_judges: true\n")
    result = folder.call("run", "numbers.yaml")
    assert result.exit_code == 0, result.output
    assert "judge 'even' is unmeasured, which was allowed" in words(result.output)
    (folder.path / "numbers.yaml").write_text(EXPERIMENT + "allow_unmeasured_judges: perhaps\n")
    assert "allow_unmeasured_judges" in folder.call("validate", "numbers.yaml").output


def test_a_changed_judge_is_stale_everywhere(folder: Folder) -> None:
    ranged = EXPERIMENT.replace("[mean]", "[{kind: mean, range: [0, 1]}]")
    (folder.path / "numbers.yaml").write_text(ranged)
    folder.call("run", "numbers.yaml", "--allow-unmeasured-judges")
    folder.call("judge", "card", "numbers/mine", "--labels", "right")
    changed = ranged.replace("{function: judge.py:Even}", "{function: judge.py:Even, parameters: {limit: 2}}")
    (folder.path / "numbers.yaml").write_text(changed)
    shown = words(folder.call("run", "numbers.yaml").output)
    assert "stale: limit changed since card" in shown
    for command in (["show", "numbers"], ["show", "numbers/mine", "--scorer", "even"]):
        assert "stale: limit changed" in words(folder.call(*command).output)
        [judge] = json.loads(folder.call(*command, "--json").output)["judges"]
        assert (judge["status"], judge["changed"], judge["corrected"]) == ("stale", ["limit changed"], None)
    assert '<li class="warn">' in report(folder)
    assert "stale: limit changed since card" in report(folder)
    compared = folder.call("compare", "numbers/mine", "numbers/mine", "--gate", "mean not worse than baseline by 0.5")
    assert compared.exit_code == 3
    assert "judge 'even' is stale: limit changed since card" in words(compared.output)


def test_a_report_shows_what_judges_are_worth(folder: Folder) -> None:
    folder.call("run", "numbers.yaml", "--allow-unmeasured-judges")
    page = report(folder)
    assert '<section id="judges"' in page
    assert "unmeasured: nobody knows how often it agrees with people" in page
    folder.call("judge", "card", "numbers/mine", "--labels", "right")
    folder.call("run", "numbers.yaml")
    page = report(folder)
    assert "agreement 0.81 [0.71, 0.88]" in page
    assert "Krippendorff&#x27;s alpha" in page
    assert "if it errs as on its card" in page


def report(folder: Folder) -> str:
    result = folder.call("report", "numbers", "-o", "page.html")
    assert result.exit_code == 0, result.output
    return (folder.path / "page.html").read_text()


def test_labels_of_people_are_found_by_themselves(folder: Folder, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    numbers: list[Any] = [*range(0, 100, 3)]
    evaluation = judge_numbers(store, numbers)
    label_numbers(evaluation.run, tmp_path, {"ann": [int(n >= 45) for n in numbers]})  # type: ignore[arg-type]
    result = folder.call("judge", "card", "numbers/mine")
    assert result.exit_code == 0, result.output
    assert "fine 34 answers labelled by people" in words(result.output)
    by_name = folder.call("judge", "card", "numbers/mine", "--labels", "numbers/mine/human", "--json")
    assert json.loads(by_name.output)["items"] == 34
    wrong = folder.call("judge", "card", "numbers/mine", "--labels", "numbers/mine/humam")
    assert "did you mean" in wrong.output


def test_the_labels_that_count_are_named_with_the_others(folder: Folder, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    evaluation = judge_numbers(store, [*range(40)])
    folder.write("many.jsonl", label_rows(folder, "all", 40))
    folder.write("few.jsonl", label_rows(folder, "few", 3))
    first = folder.call("label", "import", "numbers/mine", "many.jsonl", "--name", "many")
    assert "newest labels" not in first.output
    again = folder.call("label", "import", "numbers/mine", "few.jsonl", "--name", "few")
    many = Evaluation.open(store, "many").id[:12]
    few = Evaluation.open(store, "few").id[:12]
    which = f"the newest labels count, {few} (3 labelled); 1 other evaluation of the run has labels: {many}"
    assert f"note: for `evaluand judge`, {which} (40 labelled); choose with --labels ID" in words(again.output)
    card = folder.call("judge", "card", evaluation.name or "")
    assert which in words(card.output)
    chosen = folder.call("judge", "card", "numbers/mine", "--labels", many, "--json")
    assert json.loads(chosen.stdout)["items"] == 40
    assert "newest labels" not in chosen.output


def label_rows(folder: Folder, name: str, n: int) -> list[dict[str, Any]]:
    """The answers of a run as somebody fills in the first ones."""
    assert folder.call("label", "export", "numbers/mine", "-o", f"{name}-empty.jsonl").exit_code == 0
    rows = [json.loads(line) for line in (folder.path / f"{name}-empty.jsonl").read_text().splitlines()]
    return [row | ({"value": place % 2} if place < n else {}) for place, row in enumerate(rows)]
