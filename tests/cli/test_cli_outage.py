"""What commands say after an outage of a judge's server, and the command that asks again."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chat_answers import Body, ChatServer
from support.commands import Folder

EXPERIMENT = """
name: cities
dataset: {{path: cities.jsonl, input: country, expected: capital}}
tasks:
  ask: {{kind: chat, model: {{model: "{url}#small", version: "1"}}, prompt: "The capital of {{{{ country }}}}?"}}
  again: {{kind: chat, model: {{model: "{url}#big", version: "1"}}, prompt: "The capital of {{{{ country }}}}?"}}
scorers:
  right: {{kind: judge, rubric: correctness, model: {{model: "{url}#judge", version: "1"}}}}
  exact: exact_match
metrics:
  - {{kind: mean, scorer: right}}
run: {{backoff: 0}}
"""
DOWN: Body = {"status": 503, "body": {}}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(reply) as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ChatServer) -> Folder:
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path)
    folder.write("cities.jsonl", [{"country": str(number), "capital": "Paris"} for number in range(6)])
    (tmp_path / "cities.yaml").write_text(EXPERIMENT.format(url=server.url))
    return folder


def reply(asked: Body) -> str:
    if asked["model"] == "judge":
        return json.dumps({"reasons": "It is.", "verdict": "correct"})
    return f"{asked['model']} {asked['messages'][-1]['content']}"


def fail_judge(asked: Body) -> str | Body:
    return DOWN if asked["model"] == "judge" else reply(asked)


@pytest.mark.slow
def test_after_an_outage_of_a_judge_the_error_is_marked_as_stored_and_the_command_asks_again(
    folder: Folder, server: ChatServer
) -> None:
    server.answer = fail_judge
    first = folder.call("run", "cities.yaml", "--limit", "3")
    assert first.exit_code == 1
    error = "error: scorer 'right' failed on all 3 rows of task 'ask'"
    assert f"{error}: Unavailable: " in first.stderr
    server.answer, asked = reply, len(server.asked)
    second = folder.call("run", "cities.yaml", "--limit", "3")
    assert second.exit_code == 1
    assert len(server.asked) == asked
    assert re.search(
        re.escape(error) + r" \(stored error of \d{4}-\d\d-\d\d \d\d:\d\d UTC\): Unavailable: ", second.stderr
    )
    assert "3 failed earlier (3 Unavailable)" in " ".join(second.stdout.split())
    [note] = [line for line in second.stderr.splitlines() if "grades" in line]
    assert note.startswith("note: 6 grades of scorer right failed; repeat with: evaluand run cities.yaml --limit 3 ")
    third = folder.call(*shlex.split(note.partition("repeat with: evaluand ")[2]))
    assert third.exit_code == 0, third.output
    assert "repeat with" not in third.stderr
    assert len(server.asked) == asked + 6


def test_grades_that_no_repetition_changes_are_not_suggested(folder: Folder) -> None:
    folder.write("cities.jsonl", [{"country": "1", "capital": "1"}, {"country": "2", "capital": "none"}])
    experiment = folder.path / "cities.yaml"
    experiment.write_text(experiment.read_text().replace("exact_match", "numeric_answer"))
    said = folder.call("run", "cities.yaml", "--task", "ask")
    assert "ask · exact  1  failed  scorer: DataError: " in said.stdout
    assert "repeat with" not in said.stderr


def test_an_outage_from_the_start_stops_the_command_and_names_the_judge_and_its_task(
    folder: Folder, server: ChatServer
) -> None:
    folder.write("cities.jsonl", [{"country": str(number), "capital": "Paris"} for number in range(30)])
    server.answer = fail_judge
    stopped = folder.refused("run", "cities.yaml")
    assert "the first 20 calls failed, all with the same error: Unavailable: " in stopped
    assert "stopped: 0 of 30 done (right of cities/ask); continue with: evaluand run cities.yaml\n" in stopped
    server.answer = reply
    assert "30 done now" in folder.done("run", "cities.yaml")
