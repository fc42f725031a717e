"""No command and no function imports pandas by itself; whoever imports it has Arrow read its objects as ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pandas")

CASES = [{"id": f"c{n}", "question": f"{n} + 7", "answer": str(n + 7), "group": "ab"[n % 2]} for n in range(6)]
EXPERIMENT = """
name: sums
dataset: {path: cases.jsonl, input: question, expected: answer, attributes: [group]}
tasks: {right: tasks:right, wrong: tasks:wrong}
scorers: [exact_match]
metrics: [{kind: accuracy, by: [group]}, {kind: mean, scorer: exact_match}]
gates: ["accuracy >= 0.1"]
"""
TASKS = """
def right(question: str) -> str:
    return str(sum(map(int, question.split(" + "))))

def wrong(question: str) -> str:
    return "1" if question.startswith("0") else right(question)
"""
COMMANDS = (
    "validate .",
    "run .",
    "run . --fresh",
    "list",
    "show sums/right",
    "show sums",
    "show sums/wrong --failed",
    "compare sums/right sums/wrong",
    "score scores.csv --truth truth --prediction prediction --by group",
    "score scores.csv --truth truth --prediction prediction --name scored",
    "grade sums/right --scorer exact_match",
    "report sums -o report.html",
    "export sums/right -o rows.csv",
    "verify",
)
COMMAND_LINE = """
import shlex, sys
from click.testing import CliRunner
from evaluand.cli import main

for command in sys.argv[1:]:
    result = CliRunner().invoke(main, shlex.split(command))
    assert result.exit_code == 0, (command, result.output)
    assert "pandas" not in sys.modules, command
"""


def run_python(code: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE"))}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_no_command_imports_pandas(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in CASES))
    (tmp_path / "evaluand.yaml").write_text(EXPERIMENT)
    (tmp_path / "tasks.py").write_text(TASKS)
    rows = "".join(f"{n},{'yes' if n % 3 else 'no'},{'yes' if n % 4 else 'no'},{'ab'[n % 2]}\n" for n in range(12))
    (tmp_path / "scores.csv").write_text(f"id,truth,prediction,group\n{rows}")
    result = run_python(COMMAND_LINE, *COMMANDS, folder=tmp_path)
    assert result.returncode == 0, result.stderr


def test_the_library_does_not_import_pandas() -> None:
    code = "import numpy as np, evaluand, sys; evaluand.evaluate([1, 0, 1], np.array([1, 0, 0]), metrics=['accuracy'])"
    result = run_python(f"{code}; assert 'pandas' not in sys.modules")
    assert result.returncode == 0, result.stderr


SERIES = "assert pa.array(pd.Series([1.0, None])).null_count == 1, 'not read as pandas'"
TIME = "assert pa.scalar(1, pa.timestamp('ns')).as_py() == pd.Timestamp(1)"


@pytest.mark.parametrize(
    "imports",
    {
        "later": "import evaluand, pyarrow as pa\npa.array([1])\nimport pandas as pd",
        "later, and a part of it first": "import evaluand, pyarrow as pa\nimport pandas.api.types\nimport pandas as pd",
        "later, after somebody looked whether it is there": (
            "import evaluand, pyarrow as pa, importlib.util\nimportlib.util.find_spec('pandas')\nimport pandas as pd"
        ),
        "before Arrow": "import evaluand\nimport pandas as pd\nimport pyarrow as pa",
        "before evaluand": "import pandas as pd, pyarrow as pa\nimport evaluand",
        "later, and Arrow before evaluand": "import pyarrow as pa\nimport evaluand\npa.array([1])\nimport pandas as pd",
    }.items(),
    ids=lambda case: case[0],
)
def test_arrow_reads_objects_of_pandas_once_it_is_imported(imports: tuple[str, str]) -> None:
    result = run_python(f"{imports[1]}\n{SERIES}\n{TIME}")
    assert result.returncode == 0, result.stderr
