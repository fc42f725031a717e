"""What was read from a reply, and how many replies could not be read, at every door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder

from evaluand import Dataset, Evaluator, Runner
from evaluand.evaluation.scorers.pattern import Pattern
from evaluand.report.contents import read_contents, read_parts
from evaluand.report.facts.answers import answers
from evaluand.report.facts.report import scores_facts
from evaluand.report.facts.unread import unread_facts
from evaluand.report.html.examples import Examples
from evaluand.report.text import extraction_text

REPLIES = ["Answer: A", "Answer: A. Or Answer: B", "no idea", "Answer: B"]
LETTER = Pattern(pattern=r"Answer: (\w)", group=1, which="all")
SENTENCE = (
    "2 of 4 replies of gpt could not be read by exact (50 %): first _index_ 1 b,"
    " the matches hold several texts: 'A', 'B'"
)
ROWS = [{"id": "abcd"[n], "input": str(n), "expected": "B", "reply": reply} for n, reply in enumerate(REPLIES)]
EXPERIMENT = """
name: e
dataset: {path: replies.jsonl, id: id, input: input, expected: expected}
tasks: {gpt: {kind: recorded, path: replies.jsonl, response: reply, by: id, key: id}}
scorers: {exact: {kind: pattern, pattern: 'Answer: (\\w)', group: 1, which: all}}
metrics: [accuracy]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    made = Folder(tmp_path)
    Path("replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    Path("e.yaml").write_text(EXPERIMENT)
    return made


def test_every_first_screen_says_how_many_replies_could_not_be_read(folder: Folder) -> None:
    assert SENTENCE in folder.done("run", "e.yaml")
    shown = folder.done("show", "e/gpt", "--scorer", "exact")
    assert SENTENCE.replace("gpt", "e/gpt") in shown
    assert "extraction  read 'A' by rule 'all matches'" in shown
    assert "extraction  unread: the pattern is not found" in shown
    facts = folder.json("show", "e/gpt", "--scorer", "exact")
    assert [(each["count"], each["rows"], each["first_id"]) for each in facts["unread"]] == [(2, 4, "b")]
    contents = read_contents(folder.store, ["e"], distributions=False)
    assert SENTENCE in answers(contents.facts, contents.measures)[0].sentences
    folder.done("report", "e", "-o", "report.html")
    assert "2 of 4 replies of gpt could not be read by exact (50 %)" in Path("report.html").read_text()


def test_a_row_of_the_page_shows_what_was_read_in_a_line(folder: Folder) -> None:
    folder.done("run", "e.yaml")
    [part] = read_parts(folder.store, "e")
    rows = [*Examples(part, scores_facts([part]))]
    read = [score["columns"]["extraction"] for row in rows for score in row["scores"]]
    assert read[0] == "read 'A' by rule 'all matches'"
    assert read[2] == "unread: the pattern is not found"


def outputs(*extractions: Any) -> list[Any]:
    return [{"prediction": None, "extraction": each} for each in extractions]


@pytest.mark.parametrize(
    ("replies", "count"),
    [
        (outputs({"reason": "none", "candidates": 0}, {"text": "A", "rule": "r", "candidates": 1}), (1, 2)),
        (outputs({"text": "A", "rule": "r", "candidates": 1}), None),
        (["A", "B"], None),
        ([{"extraction": "of oil"}, {"extraction": "of teeth"}], None),
    ],
)
def test_outputs_that_hold_what_was_read_are_counted_without_a_scorer(
    replies: list[Any], count: tuple[int, int] | None
) -> None:
    data = Dataset.from_rows([{"input": n} for n in range(len(replies))])
    found = unread_facts(Runner().run(lambda n: replies[n], data), None, "gpt")
    assert [(each["count"], each["rows"]) for each in found] == ([] if count is None else [count])
    if count:
        assert found[0]["sentence"] == "1 of 2 replies of gpt could not be read (50 %): first _index_ 0, none"


def test_what_was_not_expected_is_not_unread() -> None:
    run = Runner().run(lambda n: REPLIES[n], Dataset.from_rows([{"input": 0}, {"input": 2}]))
    assert unread_facts(run, Evaluator().evaluate(run, {"exact": LETTER})) == []


@pytest.mark.parametrize(
    ("read", "line"),
    [
        ({"text": "B", "rule": "statement", "candidates": 2}, "read 'B' by rule 'statement', 2 candidates"),
        ({"text": "a\n  b", "rule": "block 1", "candidates": 1}, "read 'a b' by rule 'block 1'"),
        ({"text": "x" * 99, "rule": "block 1", "candidates": 1}, f"read '{'x' * 59}…' by rule 'block 1'"),
        ({"reason": "the reply names no option", "candidates": 0}, "unread: the reply names no option"),
    ],
)
def test_what_was_read_is_a_line(read: Any, line: str) -> None:
    assert extraction_text(read) == line
