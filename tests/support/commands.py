"""A folder with data, code and an experiment, in which tests call commands."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Self

from click.testing import CliRunner, Result

from evaluand.cli import main
from evaluand.store.directory import DirectoryStore

CODE = """
def double(question):
    if question == "3":
        raise ValueError("three")
    return "about " + str(2 * int(question)) if question != "4" else "no idea"

def table(question):
    return {"given": int(question), "parts": [1, 2.5, None]}

def whole(question):
    return int(question)
"""

EXPERIMENT = """
name: doubling
dataset: {{path: rows.jsonl, input: question, expected: answer, attributes: [parity]}}
tasks:
  mine: {task}
scorers:
  number: {{kind: numeric_answer}}
  label: {{kind: prediction}}
metrics:
  - {{kind: accuracy, scorer: number, by: [parity]}}
"""


def run_once(folder: Folder, experiment: Path) -> Path:
    """Runs an experiment, which tests get copies of; the folder of its code does not stay on the search path."""
    before = sys.path[:]
    folder.call("run", experiment)
    sys.path[:] = before
    return folder.path


class Folder:
    """Six questions, of which the code doubles four, fails on one and has no idea of one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("rows.jsonl", [self.row(i) for i in range(6)])
        (path / "app.py").write_text(CODE)

    @classmethod
    def copied(cls, source: Path, path: Path) -> Self:
        """A folder as another one was left."""
        path.mkdir(exist_ok=True)
        folder = cls(path)
        shutil.copytree(source, path, dirs_exist_ok=True)
        return folder

    def row(self, i: int) -> dict[str, Any]:
        return {"question": str(i), "answer": str(2 * i), "parity": ["even", "odd"][i % 2]}

    def write(self, name: str, rows: list[Any]) -> Path:
        path = self.path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def experiment(self, task: str = "app.py:double", name: str = "e.yaml", text: str = EXPERIMENT) -> Path:
        path = self.path / name
        path.write_text(text.format(task=task))
        return path

    def call(self, *arguments: object, **options: Any) -> Result:
        env = {"EVALUAND_STORE": str(self.path / "store"), "COLUMNS": "120"} | options.pop("env", {})
        return CliRunner(env=env).invoke(main, [*map(str, arguments)], **options)

    def done(self, *arguments: object, **options: Any) -> str:
        result = self.call(*arguments, **options)
        assert result.exit_code == 0, result.output or repr(result.exception)
        return result.stdout

    def refused(self, *arguments: object, code: int = 1) -> str:
        """What a command says that ends with an exit code of its own and not with a traceback."""
        result = self.call(*arguments)
        assert result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.stderr

    def json(self, *arguments: object) -> Any:
        return json.loads(self.done(*arguments, "--json"))

    @property
    def store(self) -> DirectoryStore:
        return DirectoryStore(self.path / "store")

    def id(self, kind: str) -> str:
        (id,) = self.store.ids(kind)
        return id
