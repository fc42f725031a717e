"""Labels that no judge of a run writes are noted when people's files are imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.chat_answers import Body, ChatServer
from support.commands import Folder

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


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path)
    (tmp_path / "tone.yaml").write_text(TONE)
    with ChatServer(_reply) as server:
        (tmp_path / "e.yaml").write_text(FILE.format(url=server.url))
        assert folder.call("run", "e.yaml").exit_code in (0, 1)
    folder.done("label", "export", "capitals/mine", "-o", "ann.jsonl")
    return folder


def label(folder: Folder, **written: object) -> str:
    file = Path("ann.jsonl")
    rows = [json.loads(line) | {"by": "ann"} | written for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = folder.call("label", "import", "capitals/mine", "ann.jsonl")
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_a_word_that_no_judge_writes_is_noted_with_those_that_they_do(folder: Folder) -> None:
    said = label(folder, label="korrekt")
    assert "note: no judge of this run writes 'korrekt'" in said
    assert "right writes correct, incorrect, not attempted; tone writes kind;" in said


@pytest.mark.parametrize("written", [{"label": "Incorrect"}, {"label": "kind"}, {"label": "korrekt", "value": 1}])
def test_verdicts_in_any_case_and_labels_with_a_value_are_not_noted(folder: Folder, written: dict[str, object]) -> None:
    assert "no judge of this run" not in label(folder, **written)
