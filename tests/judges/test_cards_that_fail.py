"""Cards where something is missing, hostile, changed or killed."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.commands import Folder
from support.labelled import Rounding, judge_numbers, label_numbers

from evaluand import DataError, DirectoryStore, EvaluandWarning, Evaluator, MemoryStore, SpecError
from evaluand.judges.cards.card import JudgeCard, make_card
from evaluand.judges.cards.from_evaluation import read_labelled_evaluation
from evaluand.judges.cards.standing import correct_mean, standings
from evaluand.judges.cards.tuning import tune_judges
from evaluand.judges.people.human_labels import labelling_rows, read_labels
from evaluand.matches.labelled_sets import read_labelled_file
from evaluand.report.verification import verify

NUMBERS = [*range(40, 60)]


def card_of(rows: list[dict[str, Any]], **options: Any) -> JudgeCard:
    return make_card(read_labelled_file(rows, "mine"), **options)


def rows_of(card: JudgeCard) -> dict[str, dict[str, Any]]:
    return {row["measure"]: row for row in card.measures}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


# Nothing, or too little


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column has the labels of people; name it (--column label=COLUMN): there are no columns"),
        ("label,judgement\n", "no row has a label"),
        ("label,judgement\n,1\n,0\n", "no row has a label"),
        ("label\n1\n", "no column has what the judge said"),
    ],
)
def test_a_file_without_labels_or_judgements_is_refused(text: str, message: str, folder: Folder) -> None:
    (folder.path / "labelled.csv").write_text(text)
    result = folder.call("judge", "card", "labelled.csv")
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())
    assert folder.call("list", "cards", "--json").output.strip() in ("[]", "")


def test_of_one_class_only_its_own_errors_are_known() -> None:
    found = rows_of(card_of([{"label": 1, "judgement": n % 4 > 0} for n in range(40)]))
    assert (found["agreement"]["value"], found["sensitivity"]["value"]) == (0.75, 0.75)
    assert (found["specificity"]["value"], found["specificity"]["note"]) == (None, "")
    assert found["specificity"]["reason"] == "people took no answer for wrong"
    assert found["cohen_kappa"]["value"] == 0.0


def test_one_class_corrects_no_mean(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, NUMBERS)
    label_numbers(evaluation.run, tmp_path, {"ann": [1] * len(NUMBERS)})  # type: ignore[arg-type]
    means = correct_mean(evaluation, "fine", make_card(read_labelled_evaluation(evaluation, "fine"), store))
    assert means is not None
    assert means.raw.value == 0.5
    assert (math.isnan(means.corrected.value), means.corrected.reason) == (True, "people took no answer for wrong")


def test_people_and_judge_that_always_agree_on_one_label_prove_nothing_beyond_chance() -> None:
    found = rows_of(card_of([{"label": 1, "judgement": 1} for _ in range(40)]))
    assert found["agreement"]["value"] == 1.0
    assert found["agreement"]["low"] < 0.95
    assert (found["cohen_kappa"]["value"], found["krippendorff_alpha"]["value"]) == (None, None)


@pytest.mark.parametrize("labels", [[0, 1], ["good", "bad"], [1, 5], [0.5, 0.7]])
def test_a_judge_that_abstains_everywhere_is_not_measured(labels: list[Any], tmp_path: Path) -> None:
    card = card_of([{"label": labels[n % 2], "judgement": None} for n in range(20)])
    found = rows_of(card)
    assert found["abstained"]["value"] == 1.0
    assert found["abstained"]["note"] == "20 of 20; most often: the file has no judgement (20)"
    assert all(row["value"] is None for name, row in found.items() if name != "abstained")
    assert card.misses == []
    assert not card.has_agreement


def test_a_judge_that_abstains_everywhere_cannot_gate(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, [-n for n in range(1, 21)])
    label_numbers(evaluation.run, tmp_path, {"ann": [n % 2 for n in range(20)]})  # type: ignore[arg-type]
    card = make_card(read_labelled_evaluation(evaluation, "fine"), store)
    assert rows_of(card)["abstained"]["note"] == "20 of 20; most often: a negative number (20)"
    assert standings(evaluation)["fine"].status == "unmeasured"


def test_a_judge_that_abstains_everywhere_is_never_chosen() -> None:
    rows = [{"id": n, "label": n % 2, "judgement": n % 2} for n in range(40)]
    sets = {
        "silent": read_labelled_file([row | {"judgement": None} for row in rows], "silent"),
        "poor": read_labelled_file([row | {"judgement": 1 - row["label"]} for row in rows], "poor"),
    }
    found = tune_judges(sets)
    assert [each.name for each in found.candidates] == ["poor", "silent"]
    assert found.candidates[1].abstained == 1.0
    with pytest.raises(SpecError, match="no judge can be chosen by krippendorff_alpha"):
        tune_judges({"a": sets["silent"], "b": sets["silent"]})


# Labels that fit nothing, or twice


def test_labels_of_answers_that_nobody_gave_measure_nothing(tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), NUMBERS)
    run = evaluation.run
    assert run is not None
    row = next(iter(labelling_rows(run))) | {"value": 1, "by": "ann"}
    (tmp_path / "labels.jsonl").write_bytes(orjson.dumps(row | {"key": "0" * 32}) + b"\n")
    labels = Evaluator(run.store).evaluate(run, {"human": read_labels([tmp_path / "labels.jsonl"])})
    labelled = read_labelled_evaluation(evaluation, "fine", labels)
    assert labelled.items == []
    with pytest.raises(SpecError, match="no answer is both labelled by people and judged"):
        make_card(labelled)


def test_labels_of_another_run_are_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation, other = judge_numbers(store, NUMBERS), judge_numbers(store, [1, 2])
    labels = label_numbers(other.run, tmp_path, {"ann": [0, 1]})  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="has labels of another run"):
        read_labelled_evaluation(evaluation, "fine", labels)


def test_rows_without_labels_do_not_count(tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), NUMBERS)
    labels = [1 if n < 45 else None for n in NUMBERS]
    label_numbers(evaluation.run, tmp_path, {"ann": labels})  # type: ignore[arg-type]
    assert make_card(read_labelled_evaluation(evaluation, "fine")).manifest["spec"]["items"] == 5


def test_an_answer_that_was_labelled_twice_alike_counts_once() -> None:
    rows = [{"id": n % 10, "label": n % 2, "judgement": n % 2, "response": f"r{n % 10}"} for n in range(20)]
    card = card_of(rows)
    assert card.manifest["spec"]["items"] == 10
    assert rows_of(card)["retest_agreement"]["value"] == 1.0


def test_all_faults_of_doubled_labels_are_named(tmp_path: Path) -> None:
    rows = [{"id": 1, "label": n % 2, "judgement": 1, "response": "x"} for n in range(4)]
    path = tmp_path / "labels.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    with pytest.raises(DataError) as error:
        read_labelled_file(path, "mine")
    assert [fault.where for fault in error.value.faults] == [f"{path}:2", f"{path}:4"]


# Hostile names


HOSTILE = "\x1b[31m<script>alert(1)</script>\u202e"


def test_hostile_texts_are_shown_and_never_executed(folder: Folder) -> None:
    rows = [
        {"id": f"{HOSTILE}{n}", "label": "<b>good</b>", "judgement": f"{HOSTILE}bad" if n % 3 else "<b>good</b>"}
        | {"response": HOSTILE, "explanation": f"`rm`{HOSTILE}"}
        for n in range(30)
    ]
    folder.write("hostile.jsonl", rows)
    name = "=cmd|' /C calc'!A0"
    made = folder.call("judge", "card", "hostile.jsonl", "--judge", HOSTILE, "--name", name)
    assert made.exit_code == 0, made.output
    for output in (made.output, folder.call("show", name).output, folder.call("list", "cards").output):
        assert "\x1b[31m" not in output
        assert "\u202e" not in output
    card = JudgeCard.open(DirectoryStore(folder.path / "store"), name)
    assert "<script>" not in card._repr_html_()
    assert card.judge.name == HOSTILE
    assert card.read_rows("misses")[0]["id"] == f"{HOSTILE}1"
    assert verify(card.store, "cards", card.id) == []


@pytest.mark.parametrize("place", ["label[", "a..b", "", "__import__('os')"])
def test_hostile_places_of_columns_are_refused(place: str, folder: Folder) -> None:
    folder.write("labelled.jsonl", [{"label": 1, "judgement": 1}])
    result = folder.call("judge", "card", "labelled.jsonl", "--column", f"judgement={place}")
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output


# Changes


def test_other_labels_make_another_card_and_leave_the_first(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, NUMBERS)
    label_numbers(evaluation.run, tmp_path, {"ann": [int(n >= 45) for n in NUMBERS]})  # type: ignore[arg-type]
    first = make_card(read_labelled_evaluation(evaluation, "fine"), store)
    before = first.to_dict()
    label_numbers(evaluation.run, tmp_path, {"ann": [int(n >= 55) for n in NUMBERS]})  # type: ignore[arg-type]
    with pytest.warns(EvaluandWarning, match="newest labels count"):
        second = make_card(read_labelled_evaluation(evaluation, "fine"), store)
    assert second.id != first.id
    assert second.manifest["spec"]["labels"] != first.manifest["spec"]["labels"]
    assert JudgeCard(store, first.id).to_dict() == before
    assert standings(evaluation)["fine"].card.id == second.id  # type: ignore[union-attr]


def test_the_newest_card_of_another_form_is_the_one_that_is_stale(tmp_path: Path) -> None:
    store = MemoryStore()
    for limit in (50, 52):
        evaluation = judge_numbers(store, NUMBERS, Rounding(limit=limit))
        label_numbers(evaluation.run, tmp_path, {"ann": [int(n >= 45) for n in NUMBERS]})  # type: ignore[arg-type]
        newest = make_card(read_labelled_evaluation(evaluation, "fine"), store)
    found = standings(judge_numbers(store, NUMBERS, Rounding(limit=54)))["fine"]
    assert found.finding == f"stale: limit changed since card {newest.id[:12]}"


# Killed


KILLED = """
    import os, sys
    from evaluand import DirectoryStore
    from evaluand.judges import make_card
    from evaluand.matches import read_labelled_file

    def die_at(event, args):
        if event in ("open", "os.rename", "os.link") and {file!r} in str(args[0]):
            os._exit(9)

    labelled = read_labelled_file([{{"id": n, "label": n % 2, "judgement": n % 3 % 2}} for n in range(30)], "mine")
    store = DirectoryStore({store!r})
    store.ids("cards")
    if {file!r}:
        sys.addaudithook(die_at)
    print(make_card(labelled, store, name="mine").id)
"""


@pytest.mark.parametrize(
    "file", [*(pytest.param(file, marks=pytest.mark.slow) for file in (".measures", ".misses")), ".manifest"]
)
@pytest.mark.slow
def test_a_card_that_was_killed_is_none_and_is_made_again(file: str, tmp_path: Path) -> None:
    def make(file: str) -> subprocess.CompletedProcess[str]:
        code = textwrap.dedent(KILLED.format(file=file, store=str(tmp_path / "store")))
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    killed = make(file)
    assert killed.returncode == 9, killed.stderr
    store = DirectoryStore(tmp_path / "store")
    assert [id for id in store.ids("cards") if store.is_sealed("cards", id)] == []
    assert [ref.name for ref in store.refs()] == []
    again = make("")
    assert again.returncode == 0, again.stderr
    card = JudgeCard.open(DirectoryStore(tmp_path / "store"), "mine")
    assert card.id == again.stdout.strip()
    assert verify(card.store, "cards", card.id) == []
    assert json.loads(json.dumps(card.to_dict()))["items"] == 30
