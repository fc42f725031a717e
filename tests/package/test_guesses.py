"""The page of first guesses: each works, or one sentence says what to type."""

from __future__ import annotations

import logging
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from support.places import ROOT_FOLDER

import evaluand
from evaluand.cli import main

PAGE = ROOT_FOLDER / "docs" / "reference" / "guesses.md"
FEWEST = 60
FILES = {
    "a.csv": "id,label,pred\n1,cat,cat\n2,dog,dog\n3,dog,cat\n4,cat,cat\n",
    "b.csv": "id,label,pred\n1,cat,dog\n2,dog,dog\n3,dog,cat\n4,cat,cat\n",
    "two.csv": "id,label,a,b\n1,cat,cat,dog\n2,dog,dog,dog\n3,dog,cat,cat\n4,cat,cat,cat\n",
    "data.jsonl": (
        '{"input":"2","expected":"4","gold":{"answers":["4"]}}\n{"input":"3","expected":"9","gold":{"answers":["9"]}}\n'
    ),
    "app.py": (
        "def answer(text):\n    return str(int(text) ** 2)\n\n\n"
        "async def later(text):\n    return '4'\n\n\n"
        "class Model:\n    def __call__(self, text):\n        return '4'\n"
    ),
}
EXPERIMENT = {
    "name": "squares",
    "dataset": {"path": "data.jsonl", "input": "input", "expected": "expected"},
    "tasks": {"mine": "app.py:answer"},
    "scorers": {"right": "exact_match"},
    "metrics": ["accuracy"],
}


class Tensor:
    """An array of a library that only NumPy's protocol can read, as those of torch and jax."""

    def __init__(self, values: list[int]) -> None:
        self._values = np.asarray(values)
        self.shape = self._values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._values if dtype is None else self._values.astype(dtype)

    def __len__(self) -> int:
        return len(self._values)


class Answerer:
    def __call__(self, text: str) -> str:
        return "4"


async def later(text: str) -> str:
    return "4"


def rows_of_page() -> list[tuple[str, str, str]]:
    """Section, guess and what the page says happens."""
    found, section = [], ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif match := re.fullmatch(r"\| (?P<guess>(?:no )?`[^|]+`) \| (?P<said>[^|]+) \|", line):
            found.append((section, match["guess"], match["said"]))
    return found


def outcome(section: str, guess: str) -> str | None:
    """What a guess is answered with; None where it works."""
    code = guess.removeprefix("no ").strip("`")
    if section == "Commands":
        return _call(code)
    if section == "Experiment files":
        changed = {k: v for k, v in EXPERIMENT.items() if not (guess.startswith("no ") and k == code)}
        changed |= {} if guess.startswith("no ") else yaml.safe_load(code)
        Path("squares.yaml").write_text(yaml.safe_dump(changed, sort_keys=False))
        return _call("evaluand run squares.yaml")
    return _evaluate(code)


def _call(line: str) -> str | None:
    result = CliRunner(env={"COLUMNS": "120"}).invoke(main, shlex.split(line)[1:])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return None if result.exit_code in (0, 3) else result.stderr.strip().splitlines()[-1]


def _evaluate(code: str) -> str | None:
    y, p = [1, 0, 1, 0], [1, 0, 0, 0]
    known = {"evaluand": evaluand, "y": y, "p": p, "s": [0.9, 0.2, 0.4, 0.1], "Tensor": Tensor, "later": later}
    known |= {"Answerer": Answerer, "table": pd.DataFrame({"label": y, "said": p}), "rows": "data.jsonl"}
    if "pipeline" in code:
        from sklearn.dummy import DummyClassifier
        from sklearn.pipeline import make_pipeline

        known["pipeline"] = make_pipeline(DummyClassifier()).fit([[0], [1]], [0, 1])
    try:
        exec(code, known)
    except (Exception, SystemExit) as error:
        return str(error)
    return None


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "squares.yaml").write_text(yaml.safe_dump(EXPERIMENT, sort_keys=False))
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("evaluand")  # which -v changes
    level = logger.level
    yield tmp_path
    logger.setLevel(level)
    logger.handlers = [handler for handler in logger.handlers if handler.get_name() != "evaluand"]


def test_every_guess_does_what_the_page_says(project: Path) -> None:
    rows = rows_of_page()
    assert len(rows) >= FEWEST
    assert len({guess for _, guess, _ in rows}) == len(rows)
    wrong = []
    for section, guess, said in rows:
        answer = outcome(section, guess)
        sys.modules.pop("app", None)
        as_said = answer is None if said.startswith("works") else answer is not None and said.strip("` ") in answer
        if not as_said:
            wrong.append(f"{guess}: {answer!r}, and the page says {said}")
    assert wrong == []


def test_errors_are_importable_by_name() -> None:
    from evaluand import errors
    from evaluand.errors import SpecError

    assert errors.SpecError is SpecError is evaluand.SpecError
    raised = [name for name in evaluand.__all__ if isinstance(getattr(evaluand, name), type(Exception))]
    assert {*errors.__all__} >= {name for name in raised if issubclass(getattr(evaluand, name), Exception)}


@pytest.mark.parametrize("room", ["metrics", "run", "report", "experiment", "errors"])
def test_rooms_are_attributes_without_an_import(room: str) -> None:
    assert getattr(evaluand, room).__name__ == f"evaluand.{room}"
