"""Answers with labels by people, and a judge whose verdicts are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from evaluand import Dataset, Evaluation, Evaluator, Run, Runner
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.judges.people.human_labels import labelling_rows, read_labels
from evaluand.store.store import Store


@dataclass(frozen=True)
class Rounding(Scorer):
    """Takes an answer for right if its number is at least a limit; says nothing about negative ones."""

    kind = "rounding"
    version = 1
    is_judge = True

    limit: int = 50

    def score(self, output: Any, expected: Any) -> Score:
        if output < 0:
            return Score.abstained("a negative number")
        right = output >= self.limit
        return Score(float(right), "good" if right else "bad", explanation=f"{output} against {self.limit}")


def play_numbers(store: Store, numbers: Sequence[int], **roles: Any) -> Run:
    """A run whose answers are these numbers."""
    rows = [{"id": f"n{place}", "input": number, "expected": None} for place, number in enumerate(numbers)]
    return Runner(store).run(_same, Dataset.from_rows(rows, **roles), name="numbers/mine")


def judge_numbers(store: Store, numbers: Sequence[int], judge: Scorer | None = None) -> Evaluation:
    """The evaluation of these numbers by a judge called `fine`."""
    return Evaluator(store).evaluate(
        play_numbers(store, numbers), {"fine": Rounding() if judge is None else judge}, name="numbers/mine"
    )


def label_numbers(run: Run, folder: Path, labels: Mapping[str, Sequence[Any]]) -> Evaluation:
    """Labels by people, one for each answer in order; None is no label."""
    rows = list(labelling_rows(run))
    path = folder / "labels.jsonl"
    with path.open("wb") as file:
        for person, own in labels.items():
            for row, label in zip(rows, own, strict=True):
                field = "label" if isinstance(label, str) else "value"
                file.write(orjson.dumps(row | {"by": person} | ({} if label is None else {field: label})) + b"\n")
    return Evaluator(run.store).evaluate(run, {"human": read_labels([path])}, name="numbers/mine/human")


def _same(number: int) -> int:
    return number
