"""Experiment files for public benchmarks, run on small sets of our own in their published columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chat_answers import Body, ChatServer
from support.commands import Folder
from support.sandboxes import use_sandbox

from evaluand.cli.init import PRESETS
from evaluand.models.chat_model import ChatModel

Rows = list[dict[str, Any]]

GSM8K = [
    {"question": "Ann has 3 pens and buys 4. How many?", "answer": "3 + 4 = <<3+4=7>>7\n#### 7"},
    {"question": "Ben pays 2 of 1,002 coins. How many are left?", "answer": "1,002 - 2 = 1,000\n#### 1,000"},
]
MMLU = [
    {"question": "Two and two?", "subject": "sums", "choices": ["three", "four", "five", "six"], "answer": 1},
    {"question": "A red fruit?", "subject": "plants", "choices": ["cherry", "stone", "lime", "sea"], "answer": 0},
]
ARC = [
    {"id": "a", "question": "Hot?", "choices": {"text": ["ice", "fire"], "label": ["A", "B"]}, "answerKey": "B"},
    {"id": "b", "question": "Cold?", "choices": {"text": ["ice", "fire"], "label": ["1", "2"]}, "answerKey": "1"},
]
TRUTHFULQA = [
    {"question": f"Is {n} a colour?", "mc1_targets": {"choices": ["No.", "Yes.", "Perhaps."], "labels": [1, 0, 0]}}
    for n in range(6)
]
IFEVAL = [
    {"key": 1, "prompt": "Write without commas.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
    {
        "key": 2,
        "prompt": "Mention the sea, in at least 3 words.",
        "instruction_id_list": ["keywords:existence", "length_constraints:number_words"],
        "kwargs": [{"keywords": ["sea"]}, {"num_words": 3, "relation": "at least"}],
    },
    {
        "key": 3,
        "prompt": "In Urdu.",
        "instruction_id_list": ["language:response_language"],
        "kwargs": [{"language": "ur"}],
    },
]
CODE = {
    "humaneval": [
        {
            "task_id": "own/0",
            "prompt": 'def twice(n):\n    """Twice a number."""\n',
            "canonical_solution": "    return 2 * n\n",
            "test": "def check(candidate):\n    assert candidate(3) == 6\n",
            "entry_point": "twice",
        }
    ],
    "mbpp": [
        {
            "task_id": 1,
            "text": "Write a function twice that doubles a number.",
            "code": "def twice(n):\n    return 2 * n",
            "test_setup_code": "three = twice(1) + 1",
            "test_list": ["assert twice(three) == 6", "assert twice(0) == 0"],
        }
    ],
    "mbpp_sanitized": [
        {
            "task_id": 2,
            "prompt": "Write a function twice that doubles a number.",
            "code": "def twice(n):\n    return 2 * n",
            "test_imports": ["import math"],
            "test_list": ["assert math.isclose(twice(0.5), 1)"],
        }
    ],
}
SETS: dict[str, Rows] = {"gsm8k": GSM8K, "mmlu": MMLU, "arc": ARC, "truthfulqa": TRUTHFULQA, "ifeval": IFEVAL, **CODE}


def _letter_of(asked: str, text: str) -> str:
    return next(line[0] for line in asked.splitlines() if line[1:] == f". {text}")


def _solve(asked: str) -> str:
    return "3 + 4 = 7\nAnswer: 7" if "Ann" in asked else "I do not know."


def _choose(asked: str) -> str:
    wanted = {"Two and two?": "four", "A red fruit?": "stone", "Hot?": "fire", "Cold?": "ice"}
    return f"Answer: {_letter_of(asked, wanted.get(asked.splitlines()[0], 'No.'))}"


def _obey(asked: str) -> str:
    return "Well, I see the sea."


def _code(asked: str) -> str:
    return "```python\ndef twice(n):\n    return 2 * n\n```"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    (tmp_path / "set").mkdir()
    monkeypatch.chdir(tmp_path / "set")
    return Folder(tmp_path)


def _prepare(folder: Folder, preset: str, url: str = "http://127.0.0.1:1/v1", rows: Rows | None = None) -> None:
    """Your file of a set, and the experiment for it with another model."""
    Path("my set.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows or SETS[preset]))
    reported = folder.done("init", "--preset", preset, "--data", "my set.jsonl")
    assert "needs:   it asks ollama/llama3.2" in reported
    file = Path("experiment.yaml")
    assert "{{data}}" not in file.read_text()
    file.write_text(file.read_text().replace("{model: ollama/llama3.2,", f'{{model: "{url}#small",'))


def _values(facts: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(row["scorer"], row["metric"]): row["value"] for row in facts["metrics"] if not row["by"]}


@pytest.mark.parametrize(
    ("preset", "reply", "expected"),
    [
        ("gsm8k", _solve, {("number", "accuracy"): 0.5}),
        ("mmlu", _choose, {("right", "accuracy"): 0.5}),
        ("arc", _choose, {("right", "accuracy"): 1.0}),
        ("truthfulqa", _choose, {("right", "accuracy"): 1.0}),
        ("ifeval", _obey, {("followed", "accuracy"): 0.5, ("followed", "recall"): 2 / 3}),
    ],
)
def test_a_benchmark_runs_on_a_file_in_its_published_columns(
    folder: Folder, preset: str, reply: Callable[[str], str], expected: dict[tuple[str, str], float]
) -> None:
    def answer(body: Body) -> str:
        return reply(body["messages"][-1]["content"])

    with ChatServer(answer) as server:
        _prepare(folder, preset, server.url)
        assert folder.json("validate", "experiment.yaml")["faults"] == []
        facts = folder.json("run", "experiment.yaml")
    assert expected.items() <= _values(facts).items()


RIGHT = {
    "gsm8k": lambda asked: "7" if "Ann" in asked else "1,000",
    "mmlu": lambda asked: _letter_of(asked, "four" if "Two" in asked else "cherry"),
    "arc": lambda asked: _letter_of(asked, "fire" if "Hot" in asked else "ice"),
    "truthfulqa": lambda asked: _letter_of(asked, "No."),
    **dict.fromkeys(CODE, lambda asked: "def twice(n):\n    return 2 * n\n"),
}
MANNERS = {
    "numbers": {
        "shot": "So it is that.\n#### {}",
        "bold": "**Answer: {}**",
        "boxed": "Let $x$ be it. 2 + 2 = 4.\n\n$$\\boxed{{{}}}$$",
        "sentence": "Step 1: 3 of them.\n\nThe answer is **{}**.",
        "thinking": "<think>\nIs it 12? No.\n</think>\n\n{}",
        "channels": "<|channel|>analysis<|message|>12?<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    },
    "letters": {
        "bold": "**{}**",
        "sentence": "The correct answer is **{}**, since the others are not.",
        "boxed": "Thinking of it: $\\boxed{{\\text{{{}}}}}$",
        "json": '{{"answer": "{}"}}',
        "thinking": "<think>\nIt could be A or B.\n</think>\n\n{}.",
        "token": "Answer: {}<|eot_id|>",
    },
    "code": {
        "usage": "```python\n{}```\n\nExample:\n\n```python\nprint(twice(4))  # 8\n```\n",
        "output": "Here it is:\n```python\n{}```\nIt prints:\n```\n8\n```\n",
        "thinking": "<think>\n```python\ndef twice(n): return n\n```\n</think>\n```python\n{}```",
        "bare": "{}",
        "waves": "~~~python\n{}~~~",
    },
}
_KINDS = {"gsm8k": "numbers", **dict.fromkeys(("mmlu", "arc", "truthfulqa"), "letters"), **dict.fromkeys(CODE, "code")}


@pytest.mark.parametrize(
    ("preset", "manner"), [(preset, manner) for preset, kind in _KINDS.items() for manner in MANNERS[kind]]
)
def test_a_right_answer_is_right_in_the_manner_of_any_model(folder: Folder, preset: str, manner: str) -> None:
    form, right = MANNERS[_KINDS[preset]][manner], RIGHT[preset]
    with ChatServer(lambda body: form.format(right(body["messages"][-1]["content"]))) as server:
        _prepare(folder, preset, server.url)
        file = Path("experiment.yaml")
        file.write_text(file.read_text().replace("kind: code_tests", "kind: code_tests, allow_unsandboxed: true"))
        facts = folder.json("run", "experiment.yaml")
    values = _values(facts)
    assert [values[key] for key in values if key[1] in ("accuracy", "pass_at_k")] == [1.0]


def test_the_lines_that_allen_ai_publishes_are_read_by_the_paths_in_the_comment(folder: Folder) -> None:
    choices = [{"text": "ice", "label": "1"}, {"text": "fire", "label": "2"}]
    rows = [{"id": "a", "question": {"stem": "Hot?", "choices": choices}, "answerKey": "2"}]
    with ChatServer(lambda body: _choose(body["messages"][-1]["content"])) as server:
        _prepare(folder, "arc", server.url, rows)
        file = Path("experiment.yaml")
        lines = [line for line in file.read_text().splitlines(keepends=True) if not line.startswith("  input: ")]
        file.write_text("".join(lines).replace("  # input: ", "  input: "))
        assert _values(folder.json("run", "experiment.yaml"))["right", "accuracy"] == 1


QUESTIONS: Rows = [
    {"question": question, "subject": subject, "choices": choices.split(", "), "answer": answer}
    for subject, question, choices, answer in [
        ("sums", "What is two plus three?", "four, five, six, seven", 1),
        ("sums", "Half of twelve is", "three, four, six, eight", 2),
        ("sums", "Which number is even?", "three, seven, nine, ten", 3),
        ("nature", "Which animal can fly?", "eagle, horse, whale, snail", 0),
        ("nature", "What do bees make?", "milk, honey, wool, silk", 1),
        ("nature", "In which season does snow fall?", "summer, spring, autumn, winter", 3),
        ("nature", "What does a fish breathe with?", "lungs, leaves, gills, skin", 2),
        ("things", "What is a pair of scissors for?", "cutting, drinking, sleeping, counting", 0),
        ("things", "Where is bread baked?", "in a river, in an oven, in a drawer, in a tree", 1),
        ("things", "What shows the time?", "a spoon, a chair, a clock, a stone", 2),
    ]
]

PROBLEMS: Rows = [
    {
        "task_id": f"own/{number}",
        "prompt": f'def {head}:\n    """{what}"""\n',
        "canonical_solution": f"    return {body}\n",
        "test": f"def check(candidate):\n    assert {test}\n",
        "entry_point": head.split("(")[0],
    }
    for number, (head, what, body, test) in enumerate(
        [
            ("add(a, b)", "Return the sum of a and b.", "a + b", "candidate(2, 3) == 5"),
            ("shout(text)", "Return the text in capital letters.", "text.upper()", "candidate('hey') == 'HEY'"),
            ("is_even(n)", "Return whether n is even.", "n % 2 == 0", "candidate(4) and not candidate(5)"),
            ("largest(numbers)", "Return the largest number.", "max(numbers)", "candidate([3, 9, 2]) == 9"),
            ("backwards(text)", "Return the text backwards.", "text[::-1]", "candidate('abc') == 'cba'"),
        ]
    )
]


def _overall(facts: dict[str, Any], metric: str) -> dict[str, Any]:
    [row] = [row for row in facts["metrics"] if row["metric"] == metric and not row["by"]]
    return dict(row)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["reply", "log_likelihood"])
def test_a_real_model_answers_multiple_choice_questions(folder: Folder, smollm: ChatModel, method: str) -> None:
    _prepare(folder, "mmlu", smollm.url, QUESTIONS)
    file = Path("experiment.yaml")
    text = file.read_text().replace(
        "answer: number\n", f"answer: number\n    method: {method}\n    least_coverage: 0\n"
    )
    file.write_text(text.replace('version: "1"}', 'version: "1", max_tokens: 20, cut_off: keep}'))
    overall = _overall(folder.json("run", "experiment.yaml"), "accuracy")
    assert 0 <= overall["value"] <= 1
    assert overall["n"] == 10
    if method == "reply":
        assert overall["n_scored"] + overall["n_abstained"] == 10
    else:
        assert overall["n_scored"] == 10


@pytest.mark.slow
def test_a_real_model_writes_programs_that_run_in_a_sandbox(
    folder: Folder, smollm: ChatModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_sandbox("bubblewrap", monkeypatch)
    _prepare(folder, "humaneval", smollm.url, PROBLEMS)
    file = Path("experiment.yaml")
    file.write_text(file.read_text().replace("max_tokens: 1024", "max_tokens: 120, cut_off: keep"))
    overall = _overall(folder.json("run", "experiment.yaml"), "pass_at_k")
    assert 0 <= overall["value"] <= 1
    assert (overall["n"], overall["n_scored"]) == (5, 5)


def test_the_own_problems_have_solutions_that_pass(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    use_sandbox("bubblewrap", monkeypatch)
    solutions = {row["prompt"].strip(): row["prompt"] + row["canonical_solution"] for row in PROBLEMS}
    with ChatServer(lambda body: solutions[body["messages"][-1]["content"].split("\n\n", 1)[1].strip()]) as server:
        _prepare(folder, "humaneval", server.url, PROBLEMS)
        assert _overall(folder.json("run", "experiment.yaml"), "pass_at_k")["value"] == 1


@pytest.mark.parametrize("preset", CODE)
def test_a_benchmark_of_code_runs_the_answers_with_their_tests(
    folder: Folder, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_sandbox("bubblewrap", monkeypatch)
    with ChatServer(lambda body: _code(body["messages"][-1]["content"])) as server:
        _prepare(folder, preset, server.url)
        facts = folder.json("run", "experiment.yaml")
        assert _values(facts) == {("tests", "pass_at_k"): 1.0}
        asked = server.asked[0]["messages"][-1]["content"]
    assert "twice" in asked
    assert "canonical_solution" not in asked


def test_a_benchmark_is_named(folder: Folder) -> None:
    for arguments in (["--kind", "benchmark"], ["--data", "x.jsonl"]):
        assert "name the benchmark by --preset: arc, gsm8k, humaneval" in folder.refused("init", *arguments)
    assert not [*Path().iterdir()]


class Hub(BaseHTTPRequestHandler):
    """Gives every file of a repository at its commit, as Hugging Face does."""

    content = b""
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        _, _, place = self.path.partition("/resolve/")
        self.send_response(200 if self.content else 404)
        self.send_header("Content-Length", str(len(self.content)))
        self.send_header("ETag", '"1"')
        self.send_header("X-Repo-Commit", place.partition("/")[0])
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(self.content)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *reported: Any) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    constants = pytest.importorskip("huggingface_hub.constants", reason="needs huggingface_hub: make install")
    hub = type("Files", (Hub,), {"asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), hub) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        yield hub
        server.shutdown()


def test_a_benchmark_is_fetched_at_its_commit(folder: Folder, hub: type[Hub], tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(GSM8K), tmp_path / "test.parquet")
    hub.content = (tmp_path / "test.parquet").read_bytes()
    assert "created test.parquet" in folder.done("init", "--preset", "gsm8k")
    published = PRESETS["gsm8k"]
    place = f"/datasets/{published['repo_id']}/resolve/{published['revision']}/{published['filename']}"
    assert {*hub.asked} == {place}
    assert folder.json("validate", "experiment.yaml")["faults"] == []


def test_a_benchmark_that_cannot_be_fetched_leaves_nothing_behind(folder: Folder, hub: type[Hub]) -> None:
    fault = folder.refused("init", "--preset", "gsm8k")
    assert "main/test-00000-of-00001.parquet of the repository openai/gsm8k cannot be fetched" in fault
    assert fault.rstrip().endswith("give your own file by --data")
    assert not [*Path().iterdir()]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_file_that_is_there_is_not_overwritten(folder: Folder, preset: str) -> None:
    Path("experiment.yaml").write_text("mine")
    assert "already has experiment.yaml" in folder.refused("init", "--preset", preset)
    assert Path("experiment.yaml").read_text() == "mine"
