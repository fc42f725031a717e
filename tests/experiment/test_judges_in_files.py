"""Judges in experiment files: rubrics beside the file, matches, what is wrong and where, and what a file reaches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chat_answers import Body, ChatServer

from evaluand import Experiment, MemoryStore, SpecError
from evaluand.experiment.access import read_access
from evaluand.experiment.near_keys import word_advice
from evaluand.experiment.parsing import parse_file

POLITE = """
instructions: Is it polite?
material: [input, output]
scale: {polite: 1, rude: 0}
higher_is_better: true
"""
FILE = """
name: support
dataset: {{path: rows.jsonl, input: question, expected: answer}}
tasks: {{mine: app.py:answer, loud: "app.py:shout"}}
scorers:
  polite: {{kind: judge, rubric: rubrics/polite.yaml, model: {{url: "{url}", name: small, version: "1"}}}}
metrics: [mean]
matches:
  judge: {{kind: judge, rubric: pairwise, model: "{url}#small"}}
  rating: win_rate
"""


@pytest.fixture
def server() -> Iterator[ChatServer]:
    def answer(asked: Body) -> str:
        text = asked["messages"][-1]["content"]
        if "<first>" not in text:
            return json.dumps({"reasons": "-", "verdict": "rude" if "HELLO" in text else "polite"})
        return json.dumps(
            {"reasons": "-", "verdict": "second" if "HELLO" in text.partition("<second>")[0] else "first"}
        )

    with ChatServer(answer) as started:
        yield started


def write(folder: Path, url: str, text: str = FILE) -> Path:
    (folder / "rubrics").mkdir(exist_ok=True)
    (folder / "rubrics" / "polite.yaml").write_text(POLITE)
    (folder / "rows.jsonl").write_text('{"question": "a", "answer": "b"}\n{"question": "c", "answer": "d"}\n')
    (folder / "app.py").write_text(
        "def answer(question):\n    return f'Hello, {question}'\n\n\n"
        "def shout(question):\n    return f'HELLO {question}'\n"
    )
    file = folder / "experiment.yaml"
    file.write_text(text.format(url=url))
    return file


def test_a_file_judges_by_a_rubric_beside_it_and_compares_in_both_orders(server: ChatServer, tmp_path: Path) -> None:
    file = write(tmp_path, server.url)
    results = Experiment.from_file(file).run(MemoryStore())
    values = {task: found.table("polite")["value"].to_pylist() for task, found in results.evaluations.items()}
    assert values == {"mine": [1.0, 1.0], "loud": [0.0, 0.0]}
    assert len(server.asked) == 4 + 4
    ratings = results.ratings["matches"]
    assert {row["system"]: row["win_rate"] for row in ratings.table("ratings").to_pylist()} == {
        "mine": 1.0,
        "loud": 0.0,
    }


def test_faults_of_a_judge_have_the_lines_of_the_file(tmp_path: Path) -> None:
    text = FILE.replace("rubrics/polite.yaml", "rubrics/plite.yaml").replace("rubric: pairwise", "rubric: correctness")
    file = write(tmp_path, "http://127.0.0.1:9/v1", text)
    with pytest.raises(SpecError) as caught:
        Experiment.from_file(file)
    lines = str(caught.value).split("\n")
    assert lines[0].startswith(
        f"{file}:6: scorers.polite.rubric: {tmp_path}/rubrics/plite.yaml: no such file; name the"
    )
    assert lines[1] == (
        f"{file}:9: matches.judge.rubric: correctness judges one response; a comparison needs the material"
        " first and second"
    )


def test_faults_of_a_rubric_have_the_lines_of_its_file(tmp_path: Path) -> None:
    file = write(tmp_path, "http://127.0.0.1:9/v1")
    (tmp_path / "rubrics" / "polite.yaml").write_text(POLITE + "reasons: maybe\n")
    with pytest.raises(
        SpecError, match=r"experiment.yaml:6: scorers.polite.rubric: .*polite.yaml:6: reasons: is the text"
    ):
        Experiment.from_file(file)


def test_the_access_of_a_file_has_hosts_and_rubrics(tmp_path: Path) -> None:
    file = write(tmp_path, "http://models.example/v1")
    access = read_access(parse_file(file)[0], tmp_path)
    assert ("scorers.polite", "rubrics/polite.yaml") in [(each.where, each.path) for each in access.files]
    assert ("scorers.polite", "http://models.example") in [(each.where, each.host) for each in access.hosts]


def test_the_access_of_a_file_has_the_hosts_of_every_model_of_a_jury(tmp_path: Path) -> None:
    members = '["openai/gpt-5-mini", "http://second.example:8080/v1#small", {url: "http://third.example", name: big}]'
    jury = f"{{kind: jury, rubric: rubrics/polite.yaml, models: {members}}}"
    text = FILE.replace('{{kind: judge, rubric: pairwise, model: "{url}#small"}}', "JURY")
    file = write(tmp_path, "http://models.example/v1", text)
    file.write_text(file.read_text().replace("JURY", jury.replace("rubrics/polite.yaml", "pairwise")))
    found = read_access(parse_file(file)[0], tmp_path).hosts
    assert [(each.host, each.variables) for each in found if each.where == "matches.judge"] == [
        ("https://api.openai.com", ["OPENAI_API_KEY"]),
        ("http://second.example:8080", []),
        ("http://third.example", []),
    ]


@pytest.mark.parametrize(
    ("group", "word", "rubric"),
    [
        ("scorers", "llm_judge", "correctness"),
        ("scorers", "Faithfulness", "faithfulness"),
        ("scorers", "hallucination", "groundedness"),
        ("scorers", "model_graded_fact", "fact_check"),
        ("comparison_scorers", "pairwise", "pairwise"),
    ],
)
def test_words_of_other_tools_lead_to_a_rubric(group: str, word: str, rubric: str) -> None:
    assert word_advice(group, word) == f"write {{kind: judge, rubric: {rubric}, model: MODEL}}"


def test_a_faulty_scorer_is_no_fault_of_the_gates_on_it(tmp_path: Path) -> None:
    text = FILE.replace("rubrics/polite.yaml", "correctnes").partition("matches:")[0]
    path = write(
        tmp_path, "http://127.0.0.1:9/v1", text + "gates: [mean >= 0.5, mean(polite) >= 0.5, mean(rude) > 0]\n"
    )
    with pytest.raises(SpecError) as raised:
        Experiment.from_file(path)
    reported = [line.removeprefix(f"{path}:") for line in str(raised.value).split("\n")]
    assert [line.partition(": ")[2].partition(":")[0] for line in reported] == ["scorers.polite.rubric", "gates.2"]
    assert "mean()" not in str(raised.value)
