"""Programs that models have written: right and wrong ones, and those that do what no answer should."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.hostile_programs import HOSTILE
from support.patience import PATIENCE
from support.sandboxes import SANDBOXES, await_end, await_no_container, use_readable_python, use_sandbox
from support.thinned import thinned

from evaluand import MemoryStore
from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.engine.policy import Policy
from evaluand.engine.sandbox import running
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorers.code_tests import CodeTests
from evaluand.evaluation.written_code import read_program
from evaluand.run.runner import Runner

ADD = "def add(a, b):\n    return a + b\n"
TESTS = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0"]

HUMAN_EVAL: list[tuple[str, str, str, str, str]] = [  # entry point, prompt, right, wrong, test
    (
        "below",
        'from typing import List\n\n\ndef below(numbers: List[int], most: int) -> bool:\n    """All are below."""\n',
        "    return all(n < most for n in numbers)\n",
        "    return any(n < most for n in numbers)\n",
        "def check(candidate):\n    assert candidate([1, 2], 3)\n    assert not candidate([1, 4], 3)\n",
    ),
    (
        "vowels",
        'def vowels(text):\n    """How many vowels a text has.\n    >>> vowels("abe")\n    2\n    """\n',
        "    return sum(c in 'aeiou' for c in text.lower())",
        "    return sum(c in 'aeiou' for c in text)",
        "METADATA = {}\n\ndef check(candidate):\n    assert candidate('abe') == 2\n    assert candidate('ABE') == 2\n",
    ),
    (
        "largest",
        'def helper(x):\n    return -x\n\n\ndef largest(numbers):\n    """The largest, with the helper."""\n',
        "    return -min(map(helper, numbers))\n",
        "    return min(map(helper, numbers))\n",
        "def check(candidate):\n    assert candidate([1, 5, 3]) == 5\n",
    ),
    (
        "halves",
        'def halves(n):\n    """How often n can be halved."""\n',
        "    count = 0\n    while n % 2 == 0 and n:\n        n //= 2\n        count += 1\n    return count\n",
        "    count = 0\n    while n % 2 == 0:\n        count += 1\n        n / 0\n    return count\n",
        "def check(candidate):\n    assert candidate(8) == 3\n    assert candidate(0) == 0\n",
    ),
    (
        "mean",
        'import math\n\n\ndef mean(xs):\n    """The mean."""\n',
        "    return math.fsum(xs) / len(xs)\n",
        "    return math.fsum(xs) // len(xs)\n",
        "def check(candidate):\n    assert abs(candidate([1.0, 2.0]) - 1.5) < 1e-9\n",
    ),
    (
        "twice",
        'def twice(f):\n    """f after f."""\n',
        "    def both(x):\n        return f(f(x))\n    return both\n",
        "    return f\n",
        "def check(candidate):\n    assert candidate(lambda x: x + 1)(0) == 2\n",
    ),
]

MBPP: list[tuple[str, str, Any]] = [  # right, wrong, expected
    (ADD, ADD.replace("+", "-"), TESTS),
    (
        "import re\ndef words(s):\n    return re.findall(r'\\w+', s)",
        "def words(s):\n    return s.split(',')",
        ["assert words('a b') == ['a', 'b']"],
    ),
    (
        "def is_odd(n):\n    return n % 2 == 1",
        "def is_odd(n):\n    return n & 2 == 1",
        ["assert is_odd(3) == True", "assert is_odd(2) == False"],
    ),
    (
        "class Node:\n    def __init__(self, value):\n        self.value = value\ndef value_of(n):\n    return n.value",
        "class Node:\n    def __init__(self, value):\n        self.value = None\ndef value_of(n):\n    return n.value",
        {"tests": ["assert value_of(root) == 7"], "setup": "root = Node(7)"},
    ),
    (
        "def root(x):\n    return x ** 0.5",
        "def root(x):\n    return x / 2",
        {"tests": ["assert math.isclose(root(9), 3)"], "setup": ["import math"]},
    ),
    (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass P:\n    x: int\ndef make(x):\n    return P(x)",
        "def make(x):\n    return x",
        "point = make(3)\nassert point.x == 3\n",
    ),
]


@pytest.fixture(params=SANDBOXES)
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    use_sandbox(name, monkeypatch)
    return name


def evaluated(outputs: list[str], expected: list[Any], scorer: CodeTests) -> list[dict[str, Any]]:
    data = Dataset.from_rows([{"input": n, "expected": tests} for n, tests in enumerate(expected)])
    run = Runner(MemoryStore()).run(lambda n: outputs[n], data)
    evaluation = Evaluator(policy=Policy(concurrency=4)).evaluate(run, {"code": scorer})
    rows: list[dict[str, Any]] = evaluation.table("code").to_pylist()
    return rows


# ---------------------------------------------------------------- right and wrong programs


@pytest.mark.usefixtures("sandbox")
def test_completions_of_human_eval_are_graded_by_check() -> None:
    outputs = [text for _, _, right, wrong, _ in HUMAN_EVAL for text in (right, wrong)]
    expected = [
        {"prompt": prompt, "entry_point": name, "tests": tests}
        for name, prompt, _, _, tests in HUMAN_EVAL
        for _ in range(2)
    ]
    rows = evaluated(outputs, expected, CodeTests())
    assert [(row["value"], row["label"]) for row in rows] == [(1.0, "passed"), (0.0, "failed")] * len(HUMAN_EVAL)


@pytest.mark.usefixtures("sandbox")
def test_programs_of_mbpp_are_graded_by_their_assertions() -> None:
    outputs = [text for right, wrong, _ in MBPP for text in (f"Sure:\n```python\n{right}\n```\nDone.", wrong)]
    rows = evaluated(outputs, [tests for _, _, tests in MBPP for _ in range(2)], CodeTests())
    assert [(row["value"], row["label"]) for row in rows] == [(1.0, "passed"), (0.0, "failed")] * len(MBPP)


@pytest.mark.usefixtures("sandbox")
def test_an_answer_may_repeat_the_function_that_it_should_continue() -> None:
    name, prompt, right, wrong, tests = HUMAN_EVAL[2]
    header = "def largest(numbers):\n"
    expected = {"prompt": prompt, "entry_point": name, "tests": tests}
    scores = [CodeTests().score(f"```\n{header}{body}```", expected) for body in (right, wrong)]
    assert [score.value for score in scores] == [1.0, 0.0]
    bare = {"prompt": "def add(a, b):", "tests": TESTS}
    assert CodeTests().score(ADD, bare).value == CodeTests().score(" return a + b", bare).value == 1.0


@pytest.mark.usefixtures("sandbox")
def test_an_explanation_is_the_error_and_the_line_of_it() -> None:
    score = CodeTests().score(ADD.replace("+", "*"), TESTS)
    assert score.explanation == "AssertionError (tests, line 1: assert add(1, 2) == 3)"
    score = CodeTests().score("def add(a, b):\n    return c", TESTS)
    assert score.explanation == "NameError: name 'c' is not defined (answer, line 2: return c)"
    score = CodeTests().score("x = 1\ndef add(", TESTS)
    assert score.explanation is not None
    assert score.explanation.startswith("SyntaxError: '(' was never closed (answer, line 2: def add(")


@pytest.mark.usefixtures("sandbox")
def test_the_same_program_has_the_same_score_and_explanation_each_time() -> None:
    program = "raise ValueError(list({'a', 'b', 'c', 'd', 'e'}), object())"
    first, *others = (CodeTests().score(program, TESTS) for _ in range(3))
    assert others == [first, first]


@pytest.mark.usefixtures("sandbox")
def test_what_a_file_does_as_a_script_is_left_out() -> None:
    assert CodeTests().score(f"{ADD}\nif __name__ == '__main__':\n    input()", TESTS).value == 1.0
    assert CodeTests().score(f"{ADD}\nprint(add(1, 2))\n", TESTS).value == 1.0


PROMPT = 'def add(a, b):\n    """The sum."""\n'
BLOCK = f"```python\n{ADD}```\n"
HELPER = "```python\nimport math\ndef plus(a, b):\n    return math.fsum([a, b])\n```\nand\n```python\ndef add(a, b):\n"
HELPED = "```python\ndef plus(a, b):\n    return a + b\n```\nand\n"
IN_T = ADD.replace("a +", "T[0] + a +")
PRINTING = "def build():\n    print('built')\n    return [0]\n"
TABLE = f"T = {{}}\nfor i in (0, 1):\n    T[i] = i\n{IN_T}"
READ: list[tuple[str, str, str]] = [  # what the reply has, the reply, the rule by which its program is read
    ("one block", BLOCK, "block 1"),
    ("an example", f"{BLOCK}Example:\n```python\nprint(add(1, 2))\n```", "block 1"),
    ("a wrong example", f"```python\nassert add(1, 2) == 4\n```\n{BLOCK}", "block 2"),
    ("an output", f"{BLOCK}prints\n```\n3\n```", "block 1"),
    ("an output of words", f"{BLOCK}prints\n```\nHello\n```", "block 1"),
    ("a helper", f"{HELPER}    return plus(a, b)\n```", "blocks 1, 2"),
    ("a list", "1. Write:\n\n    ```python\n    def add(a, b):\n        return a + b\n    ```\n", "block 1"),
    ("an entry of a list", "- ```py\n  def add(a, b):\n      return a + b\n  ```\n", "block 1"),
    ("tildes", BLOCK.replace("```", "~~~"), "block 1"),
    ("other languages", f"```sh\npip install x\n```\n{BLOCK}```json\n{{}}\n```\n```text\nadd\n```", "block 1"),
    ("a correction", f"```python\n{ADD.replace('+', '*')}```\nNo:\n{BLOCK}", "block 2"),
    ("a session", f"{BLOCK}```python\n>>> add(1, 2)\n4\n```", "block 1"),
    ("only a session", "```\n>>> def add(a, b):\n...     return a + b\n>>> add(1, 2)\n3\n```", "block 1"),
    ("a fence in a text", '````\ndef add(a, b):\n    """\n```\n    """\n    return a + b\n````', "block 1"),
    ("own tests", f"```\n{ADD}assert add(1, 2) == 4\nx = int(input())\ny = add(x, 1)\nprint(y)\n```", "block 1"),
    ("a main function", f"```\n{ADD}def main():\n    print(add(int(input()), 1))\nmain()\n```", "block 1"),
    ("a loop that asks", f"```\n{ADD}while True:\n    print(add(int(input()), 1))\n```", "block 1"),
    ("a table that is filled", f"```\n{TABLE}```", "block 1"),
    (
        "an import that may fail",
        f"```\ntry:\n    import re\nexcept ImportError:\n    print(0)\n{ADD}re.I\n```",
        "block 1",
    ),
    ("a table that a function that prints makes", f"```\n{PRINTING}T = build()\n{IN_T}```", "block 1"),
    ("a table that a function that prints fills", f"```\nT = []\n{PRINTING}T += build()\n{IN_T}```", "block 1"),
    (
        "a loop that prints and fills",
        f"```\nT = []\nfor n in [0]:\n    print(n)\n    T.append(n)\n{IN_T}```",
        "block 1",
    ),
    (
        "a function that prints and fills",
        f"```\nT = []\ndef fill():\n    T.append(0)\n    print(T)\nfill()\n{IN_T}```",
        "block 1",
    ),
    (
        "an object that prints",
        f"```\nclass Tree(list):\n    def __init__(self):\n        self.append(print(0) or 0)\nT = Tree()\n{IN_T}```",
        "block 1",
    ),
    ("statements on one line", f"```\nT = [0]; é = 'é'; print(add(\n1)); U = 1; print(U)\n{IN_T}```", "block 1"),
    ("a wrong test in a function", f"```\n{ADD}def test():\n    assert add(1, 2) == 4\ntest()\n```", "block 1"),
    ("an import of the answer", f"{BLOCK}```python\nfrom solution import add\nprint(add(1))\n```", "block 1"),
    (
        "an import of a helper",
        f"{HELPED}```python\nfrom solution import plus\ndef add(a, b):\n    return plus(b, a)\n```",
        "blocks 1, 2",
    ),
    ("a result under the same name", f"{BLOCK}```python\nadd = add(1, 2)\nprint(add)\n```", "block 1"),
    ("a result under the same name in its block", f"```\n{ADD}add = round(add(1, 2), 3)\n```", "block 1"),
    ("a value under the same name", f"{BLOCK}```python\nadd = 1 + 2\n```", "block 1"),
    ("a function that is wrapped", f"```\nfrom functools import cache\n{ADD}add = cache(add)\n```", "block 1"),
    ("carriage returns", BLOCK.replace("\n", "\r\n") + "print(1)\r", "block 1"),
    ("a block that is cut off", f"{BLOCK}Better:\n```python\ndef add(a, b):\n    return b +", "block 1"),
    ("an example that is cut off", f"```python\n{ADD}\nprint(add(1,", "block 1"),
    ("no fences", f"Here it is:\n\n{ADD}\nIt adds two numbers.", "passage 1"),
    ("marks of no fences", f"[PYTHON]\n{ADD}[/PYTHON]\n[DONE]", "passage 1"),
    ("nothing else", ADD, "whole reply"),
    ("indentation", "    def add(a, b):\n        return a + b\n", "whole reply"),
]
CONTINUED: list[tuple[str, str, str]] = [
    ("a body", "    return a + b\n", "whole reply"),
    ("a body in a block", "```\n    return a + b\n```", "block 1"),
    ("a body before words", "    return a + b\n\nThis adds.", "passage 1"),
    ("a body before its own test", "    return a + b\n\nassert add(1, 2) == 4", "whole reply"),
]


@pytest.mark.parametrize(("reply", "rule"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_what_only_shows_the_program_does_not_decide(reply: str, rule: str) -> None:
    prompted = {"tests": f"def check(add):\n    {TESTS[0]}", "entry_point": "add", "prompt": PROMPT}
    for expected in (TESTS, prompted):
        score = CodeTests(allow_unsandboxed=True).score(reply, expected)
        assert (score.label, score.explanation) == ("passed", None)
        assert score.columns is not None
        assert score.columns["extraction"]["rule"] == rule
    wrong = reply.replace("a + b", "a - b").replace("plus(a, b)\n```", "plus(a, -b)\n```")
    assert CodeTests(allow_unsandboxed=True).score(wrong, TESTS).label == "failed"


@pytest.mark.parametrize(("reply", "rule"), [row[1:] for row in CONTINUED], ids=[row[0] for row in CONTINUED])
def test_a_reply_may_continue_the_prompt(reply: str, rule: str) -> None:
    assert read_program(reply, ["add"], PROMPT).rule == rule
    score = CodeTests(allow_unsandboxed=True).score(reply, {"tests": TESTS, "prompt": PROMPT})
    assert (score.label, score.explanation) == ("passed", None)


def test_where_nothing_that_is_tested_is_defined_the_rest_is_run() -> None:
    two = "```python\na = 1\n```\ntext\n```py\nb = a\n```\n```json\n{}\n```"
    assert read_program(two, []).text == "a = 1\n\nb = a\n"
    assert read_program("```python\nprint 'x'\n```", ["f"])[:2] == ("print 'x'\n", "last block")
    assert read_program("```sh\npip\n```", ["f"])[:2] == ("```sh\npip\n```", "whole reply")
    assert read_program("x" * 60_000, ["f"]).rule == "whole reply"


@pytest.mark.parametrize(
    "part", ["print();", "b=1;print(b);", "def a():print()\n", "a()\n", "```\n", "x = \n", "a(", "\r"]
)
def test_hostile_programs_are_read_in_time(part: str) -> None:
    begun = time.process_time()
    read_program("```\n" + part * (49_000 // len(part)), ["add"])
    read_program(part * (1_000_000 // len(part)), ["add"])
    assert time.process_time() - begun < 10


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ("", "no tests"),
        ([], "no tests"),
        (3, "tests of the expected value is the integer 3"),
        (["assert True", 1], "reads a text or a list of texts"),
        ({"test": "assert True"}, "has 'test'; code_tests reads tests"),
        ({"tests": "def check(candidate): ...", "entry_point": "a b"}, "not the name of a function"),
        ({"tests": "def check(candidate): ...", "entry_point": "def"}, "not the name of a function"),
        ("def check(candidate):\n    assert candidate(1)", "nothing calls it; add entry_point"),
    ],
)
def test_tests_that_test_nothing_are_refused(expected: Any, message: str) -> None:
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        CodeTests().check(expected)
    with pytest.raises(DataError):
        CodeTests().score(ADD, expected)


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout": 0},
        {"timeout": "5"},
        {"memory": 1},
        {"allow_unsandboxed": "no"},
        {"image": "--privileged"},
        {"image": ""},
    ],
)
def test_wrong_parameters_are_refused(wrong: Any) -> None:
    with pytest.raises(SpecError, match=f"code_tests.*{next(iter(wrong))}"):
        CodeTests(**wrong)


def test_the_limits_are_part_of_the_identity() -> None:
    assert CodeTests(timeout=2, memory=512).identify().spec == {
        "kind": "code_tests",
        "version": 2,
        "parameters": {"timeout": 2, "memory": 512, "allow_unsandboxed": False},
    }
    assert CodeTests(image="python:3.14").identify().spec["parameters"]["image"] == "python:3.14"


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The programs that are found on the machine; nothing that was found before is remembered."""
    found: dict[str, str] = {}
    monkeypatch.setattr(shutil, "which", found.get)
    running._find_place.cache_clear()
    yield found
    running._find_place.cache_clear()


@pytest.mark.usefixtures("search")
def test_without_a_sandbox_nothing_is_graded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_run_in", None)
    with pytest.raises(SpecError) as raised:
        evaluated([ADD], [TESTS], CodeTests())
    assert str(raised.value).endswith(
        "programs that models write are run in a sandbox, and bubblewrap is not installed (install it, such as with"
        " apt-get install bubblewrap); docker is not installed; podman is not installed;"
        " set allow_unsandboxed: true to run them without isolation"
    )


@pytest.mark.usefixtures("search")
def test_without_isolation_programs_are_graded_if_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    use_readable_python(monkeypatch)
    rows = evaluated([ADD, ADD.replace("+", "*")], [TESTS] * 2, CodeTests(allow_unsandboxed=True))
    assert [row["label"] for row in rows] == ["passed", "failed"]


def test_a_sandbox_that_does_not_work_says_why(search: dict[str, str]) -> None:
    search["bwrap"] = "/bin/false"
    with pytest.raises(SpecError, match=r"bubblewrap does not work here \(the sandbox did not start: status 1;"):
        CodeTests().prepare()


def test_an_image_that_is_not_there_is_not_fetched(
    search: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\necho $* >> {tmp_path}/calls\necho Error: No such image: $5 >&2\nexit 1\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    search["docker"] = str(docker)
    with pytest.raises(SpecError) as raised:
        CodeTests(image="python:9").prepare()
    assert (
        "; docker does not find the image python:9 (Error: No such image: python:9; it is fetched with docker pull"
        " python:9); podman is not installed;" in str(raised.value)
    )
    assert (tmp_path / "calls").read_text() == "image inspect --format {{.Id}} python:9\n"


# ---------------------------------------------------------------- hostile programs

PARTS = 6  # of the hostile programs, each with its own run


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, socket.socket]]:
    """A folder with a file, open to everybody, and a socket that listens; a secret is in the environment."""
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / "kept.txt").write_text("kept-secret")
    for path in (folder, folder / "kept.txt"):
        path.chmod(0o777)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("SERVICE_API_KEY", "kept-secret")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield folder, server


@thinned("part", range(PARTS), every=3)
def test_a_hostile_program_costs_its_row_and_nothing_else(
    part: int, sandbox: str, host: tuple[Path, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, server = host
    mark = f"# {folder}\n"
    monkeypatch.setattr(running, "_INSIDE", mark + running._INSIDE)
    places_of = {"host": folder, "port": server.getsockname()[1]}
    rows = []
    for endless in (False, True):
        programs = {name: it for name, it in [*HOSTILE.items()][part::PARTS] if ("timeout" in it[1]) == endless}
        outputs = [ADD, *(text.format(**places_of) for text, _ in programs.values()), ADD]
        scorer = CodeTests(timeout=1 if endless else PATIENCE, memory=256)
        first, *graded, last = evaluated(outputs, [TESTS] * len(outputs), scorer)
        if not endless:
            assert first["label"] == last["label"] == "passed"
        for row, (name, (_, labels)) in zip(graded, programs.items(), strict=True):
            assert row["status"] == "scored", (name, row)
            assert row["value"] == 0.0, name
            assert row["label"] in labels, (name, row)
            assert len(row["explanation"]) < 2000, name
        rows += [{name: cell for name, cell in row.items() if name != "extraction"} for row in graded]  # the programs

    assert "kept-secret" not in json.dumps(rows, default=repr)
    assert [path.name for path in folder.iterdir()] == ["kept.txt"]
    assert (folder / "kept.txt").read_text() == "kept-secret"
    assert not [*folder.with_name("temporary").iterdir()]
    with pytest.raises(BlockingIOError):
        server.accept()
    await_end(mark)
    await_no_container(sandbox)
