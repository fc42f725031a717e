"""Labels that no judge of a run writes: said at their import, refused for cards, replaced by `--word`."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path

import pytest
from support.chat_answers import Body, ChatServer
from support.commands import Folder, run_once

FILE = """
name: capitals
dataset: {{path: rows.jsonl, input: question, expected: answer}}
tasks: {{mine: app.py:double}}
scorers:
  right: {{kind: judge, rubric: correctness, model: {{model: "{url}#small", version: "1"}}}}
  tone: {{kind: judge, rubric: tone.yaml, model: {{model: "{url}#small", version: "1"}}}}
metrics:
  - {{kind: mean, scorer: right}}
  - {{kind: mean, scorer: tone}}
"""
TONE = """
instructions: Is it kind?
material: [output]
scale: {kind: 1, harsh: 0}
"""


def _reply(asked: Body) -> str:
    verdict = "kind" if "Is it kind?" in asked["messages"][0]["content"] else "correct"
    return json.dumps({"reasons": "-", "verdict": verdict})


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Folder(tmp_path_factory.mktemp("judged"))
    (folder.path / "tone.yaml").write_text(TONE)
    with chdir(folder.path), ChatServer(_reply) as server:
        (folder.path / "e.yaml").write_text(FILE.format(url=server.url))
        run_once(folder, Path("e.yaml"))
        folder.done("label", "export", "capitals/mine", "-o", "ann.jsonl")
    return folder.path


@pytest.fixture
def folder(judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder.copied(judged, tmp_path)


def fill_in(**written: object) -> None:
    """Fills in all rows of the file, the last one with `last` as its label if that is given."""
    file = Path("ann.jsonl")
    last = {"label": written.pop("last")} if "last" in written else {}
    rows = [
        json.loads(line) | {"by": "ann", "label": None, "value": None} | written
        for line in file.read_text().splitlines()
    ]
    rows[-1] |= last
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def import_(folder: Folder, *options: str, exit_code: int = 0) -> str:
    result = folder.call("label", "import", "capitals/mine", "ann.jsonl", *options)
    assert result.exit_code == exit_code, result.output
    return " ".join(result.output.split())


def card(folder: Folder, *options: str, exit_code: int = 0) -> str:
    result = folder.call("judge", "card", "capitals/mine", "--scorer", "right", *options)
    assert result.exit_code == exit_code, result.output
    return " ".join(result.output.split())


def test_labels_of_which_none_is_a_verdict_are_refused_with_what_to_write(folder: Folder) -> None:
    fill_in(label="korrekt")
    said = import_(folder, exit_code=1)
    assert "no judge of this run writes 'korrekt'" in said
    assert "right writes correct, incorrect, not attempted; tone writes kind, harsh; for a card, write these" in said
    assert "(`--word korrekt=VERDICT`); to import them as they are, for other uses: `--word korrekt`" in said
    assert "capitals/mine/human" not in folder.done("list", "--json")


@pytest.mark.parametrize("options", [(), ("--word", "korrekt=richtig")])
def test_a_mapping_to_words_that_are_no_verdicts_does_not_help(folder: Folder, options: tuple[str, ...]) -> None:
    fill_in(label="korrekt")
    assert "no judge of this run writes" in import_(folder, *options, exit_code=1)


def test_some_words_that_no_judge_writes_are_noted(folder: Folder) -> None:
    fill_in(label="correct", last="korrekt")
    said = import_(folder)
    assert "note: no judge of this run writes 'korrekt'" in said
    assert "say what each other word means (`--word korrekt=VERDICT`)" in said


@pytest.mark.parametrize("written", [{"label": "Incorrect"}, {"label": "kind"}, {"label": "korrekt", "value": 1}])
def test_verdicts_in_any_case_and_labels_with_a_value_are_not_noted(folder: Folder, written: dict[str, object]) -> None:
    fill_in(**written)
    assert "no judge of this run" not in import_(folder)


def test_words_are_stored_as_the_verdicts_that_they_mean(folder: Folder) -> None:
    fill_in(label="good", last="Bad")
    said = import_(folder, "--word", "good=correct", "--word", "bad=incorrect")
    assert "no judge of this run" not in said
    assert "agreement 0.80" in card(folder, "--positive", "correct")
    fill_in(label="good", last="poor")
    assert "label 'poor' is none of" in import_(folder, "--word", "good=correct", exit_code=1)


@pytest.mark.parametrize("options", [(), ("--positive", "good"), ("--positive", "correct"), ("--order", "bad,good")])
def test_a_card_on_words_that_the_judge_cannot_say_is_refused(folder: Folder, options: tuple[str, ...]) -> None:
    fill_in(label="good", last="bad")
    import_(folder, "--word", "good", "--word", "bad")
    said = card(folder, *options, exit_code=1)
    assert "people say good, bad and the judge may say correct, incorrect, not attempted: no word is the same" in said
    assert "`--word good=VERDICT --word bad=VERDICT`" in said
    assert not [entry for entry in json.loads(folder.done("list", "--json")) if entry["kind"] == "cards"]
    assert "agreement 0.80" in card(folder, "--word", "good=correct", "--word", "bad=incorrect")


def test_a_card_names_the_words_that_are_no_verdicts(folder: Folder) -> None:
    fill_in(label="correct", last="wrong")
    import_(folder)
    assert "wrong can never agree" in card(folder, "--positive", "correct", exit_code=1)
    assert "specificity" in card(folder, "--positive", "correct", "--word", "wrong=incorrect")
    assert "nobody wrote the label 'wrogn' (did you mean 'wrong'?); there are correct, wrong" in card(
        folder, "--word", "wrogn=incorrect", exit_code=1
    )


def test_faults_of_the_options_are_said(folder: Folder) -> None:
    fill_in(label="correct")
    import_(folder)
    assert "--positive is given twice, correct and good" in card(
        folder, "--positive", "correct", "--positive", "good", exit_code=2
    )
    assert "such as good=correct" in card(folder, "--word", "good", exit_code=2)
    assert "such as good=correct" in import_(folder, "--word", "good=", exit_code=2)
    both = ("--word", "good=correct", "--word", "good=incorrect")
    assert "--word good means correct and incorrect; name one verdict" in card(folder, *both, exit_code=2)
    assert "--word good means correct and incorrect; name one verdict" in import_(folder, *both, exit_code=2)


def test_the_word_that_means_right_may_come_from_the_environment(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_in(label="correct", last="not attempted")
    import_(folder)
    monkeypatch.setenv("EVALUAND_JUDGE_CARD_POSITIVE", "not attempted")
    assert "sensitivity 0.00" in card(folder)


def test_the_same_fault_of_many_rows_is_said_once(folder: Folder) -> None:
    fill_in(label="good")
    said = import_(folder, "--word", "correct", exit_code=1)
    assert said == (
        "error: ann.jsonl:1: label 'good' is none of correct; the same at"
        " ann.jsonl:2, ann.jsonl:3, ann.jsonl:4, ann.jsonl:5"
    )


def test_other_labels_of_the_run_are_mentioned_only_if_something_changed(folder: Folder) -> None:
    fill_in(label="correct")
    assert "newest labels count" not in import_(folder)
    fill_in(label="incorrect")
    assert "1 other evaluation of the run has labels" in import_(folder)
    assert "newest labels count" not in import_(folder)
    fill_in(label="correct")
    assert "the newest labels count" in import_(folder)  # which are not the ones that were just imported
