"""Labels that people give: a file to fill in, and what is filled in as a scorer.

    labelling_rows(run) ──▶ a file ── people ──▶ read_labels ──▶ HumanLabels ── Evaluator ──▶ Evaluation

A run is evaluated by people as it is by any scorer. What they have not come to yet is abstained from, so an evaluation
of half a file has its honest counts, and the next import, with more labels, makes another. A label belongs to an
example and an answer and not to a run: the same answer of another run has it already.
"""

from __future__ import annotations

import codecs
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import orjson
from pydantic_core import from_json

from evaluand import ids
from evaluand.errors import DataError, Fault, SpecError, kind_of
from evaluand.evaluation import Evaluation
from evaluand.fingerprint import Identity
from evaluand.lookup import in_reading_order, plain
from evaluand.rows import COMPLETED
from evaluand.run import Run
from evaluand.scorer import Score, Scorer

Line = TypeVar("Line")

FIELDS: Final = ("value", "label", "by", "explanation")
"""What people fill in: a number or a word or both, who they are, and why."""

NOT_LABELLED: Final = "not labelled yet"


class Label(NamedTuple):
    """What one person says of one answer."""

    value: float | None
    label: str | None
    by: str | None
    explanation: str | None


def labelling_rows(run: Run, *, given: HumanLabels | None = None, by: str | None = None) -> Iterator[dict[str, Any]]:
    """A row for each answer of a run: its key, what was asked, expected and answered, and empty fields for a label.

    Args:
        given: labels there are already; answers that have one are left out.
        by: left out is only what this person has labelled.

    Example:
        >>> from evaluand import Dataset, Runner
        >>> run = Runner().run(str.upper, Dataset.from_rows([{"input": "a"}]))
        >>> row = next(labelling_rows(run))
        >>> row["input"], row["response"], row["value"], row["label"]
        ('a', 'A', None, None)
    """
    examples = iter(run.dataset)
    example = None
    for response in run:
        while example is None or example.index < response.index:
            example = next(examples)
        if response.status != COMPLETED:
            continue
        for number, answer in enumerate(response.responses or ()):
            key = key_of(example.digest, answer)
            told = given.labels.get(key, ()) if given else ()
            if any(by is None or label.by == by for label in told):
                continue
            yield {
                "key": key,
                "_index_": response.index,
                "replication": response.replication,
                "_response_index_": number,
                "id": example.id,
                "input": plain(example.input),
                "expected": plain(example.expected),
                "response": in_reading_order(plain(answer)),
                **dict.fromkeys(FIELDS),
            }


def key_of(example: bytes, answer: Any) -> str:
    """What stands for an answer to an example, whichever run gave it."""
    return ids.digest([example.hex(), answer]).hex()


def unmatched(run: Run, labels: HumanLabels) -> list[str]:
    """The keys of labels that are of no answer of a run, as they were read."""
    left = dict.fromkeys(labels.labels)
    for row in labelling_rows(run):
        left.pop(row["key"], None)
    return list(left)


def read_labels(files: Iterable[Path]) -> HumanLabels:
    """The labels in files that were filled in: JSON lines with a key and any of `FIELDS`.

    Rows without value and label are not labelled. Of two labels that one person gave one answer the later counts.

    Raises:
        DataError: a row is none; with its file and line.
    """
    found: dict[str, dict[str | None, Label]] = {}
    for key, label in filled_in(files, _labelled):
        if label is not None:
            found.setdefault(key, {})[label.by] = label
    return HumanLabels({key: tuple(labels.values()) for key, labels in found.items()})


def filled_in(files: Iterable[Path], read: Callable[[Mapping[str, Any]], Line]) -> list[Line]:
    """The lines of files of JSON lines that people or their tools have filled in, all of them looked at first.

    Args:
        files: a mark at the beginning of one, and blank lines, are passed over.
        read: makes of the object in a line what it stands for; raises a DataError where it is none.

    Raises:
        DataError: a file cannot be read, or lines are none; with file and line of each.
    """
    lines: list[Line] = []
    faults: list[Fault] = []
    for file in files:
        try:
            texts = file.read_bytes().removeprefix(codecs.BOM_UTF8).splitlines()
        except OSError as error:
            raise DataError(f"{file}: cannot be read: {error.strerror}") from None
        for number, text in enumerate(texts, 1):
            try:
                if text.strip():
                    lines.append(read(_object(text)))
            except DataError as error:
                faults.append(Fault(f"{file}:{number}", str(error)))
    if faults:
        raise DataError(faults)
    return lines


def _object(text: bytes) -> dict[str, Any]:
    try:
        row = from_json(text)
    except ValueError as error:
        raise DataError(f"is no JSON: {error}") from None
    if not isinstance(row, dict):
        raise DataError(f"is {kind_of(row)}, not an object")
    return row


class HumanLabels(Scorer):
    """Grades answers as people did: the mean of their values, and the label on which all agree.

    Answers that nobody has labelled are abstained from. The columns `by` and `n_labels` tell who has, and how many.

    Args:
        labels: `key_of` → what each person says.
    """

    kind = "human"
    version = 1
    cheap = True

    def __init__(self, labels: Mapping[str, Sequence[Label]]) -> None:
        self.labels = {key: tuple(given) for key, given in labels.items()}

    @property
    def columns(self) -> Mapping[str, str]:
        return {"by": "labels", "n_labels": "int64"}

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("output", "example")

    def identify(self) -> Identity:
        return Identity({"kind": self.kind, "version": self.version, "parameters": {"labels": self._digest}})

    @cached_property
    def _digest(self) -> str:
        return ids.digest({key: [list(label) for label in labels] for key, labels in self.labels.items()}).hex()

    def score(self, output: Any, example: Any) -> Score:
        """What people said of the answer."""
        given = self.labels.get(key_of(example.digest, output))
        if not given:
            return Score.abstained(NOT_LABELLED)
        values = [label.value for label in given if label.value is not None]
        words = {label.label for label in given if label.label is not None}
        several = len(given) > 1
        told = (
            f"{label.by or 'somebody'}: {label.explanation}" if several else label.explanation
            for label in given
            if label.explanation
        )
        return Score(
            math.fsum(values) / len(values) if values else None,
            next(iter(words)) if len(words) == 1 else None,
            [label._asdict() for label in given] if several else None,
            "; ".join(told) or None,
            columns={"by": sorted({label.by for label in given if label.by}), "n_labels": len(given)},
        )


class Labelled(NamedTuple):
    """How far people have come.

    Attributes:
        answers: how many there are to label.
        labelled: how many have a label.
        by: person → how many answers they have labelled; None is labels without a name.
        disputed: how many answers people label differently.
    """

    answers: int
    labelled: int
    by: dict[str | None, int]
    disputed: int


def labelled(evaluation: Evaluation, scorer: str) -> Labelled:
    """How far the labels of an evaluation are: a partial overview while people are at work.

    Raises:
        SpecError: the scorer holds no labels of people.
    """
    if evaluation.manifest["spec"]["scorers"].get(scorer, {}).get("kind") != HumanLabels.kind:
        raise SpecError(f"{scorer!r} holds no labels that people gave; import them with evaluand label import")
    answers = done = disputed = 0
    by: Counter[str | None] = Counter()
    for batch in evaluation.batches(scorer, ["status", "reason", "data", "by"]):
        for status, reason, data, people in zip(
            *(batch.column(name).to_pylist() for name in ("status", "reason", "data", "by")), strict=True
        ):
            answers += status == "scored" or reason == NOT_LABELLED
            if status != "scored":
                continue
            done += 1
            by.update(people or [None])
            given = orjson.loads(data) if data is not None else []
            disputed += len({(each["value"], each["label"]) for each in given}) > 1
    return Labelled(answers, done, dict(by.most_common()), disputed)


def _labelled(row: Mapping[str, Any]) -> tuple[str, Label | None]:
    """The key and the label of one line; None where it is not filled in."""
    if not isinstance(row.get("key"), str):
        raise DataError("has no key; keep the key that evaluand label export wrote")
    value, label, by, explanation = (row.get(name) for name in FIELDS)
    number = isinstance(value, int | float) and math.isfinite(value)
    if value is not None and not number:
        told = value if isinstance(value, float) else kind_of(value)
        raise DataError(f"value is {told}; give a number, true or false, and words as label")
    for name, text in (("label", label), ("by", by), ("explanation", explanation)):
        if text is not None and not isinstance(text, str):
            raise DataError(f"{name} is {kind_of(text)}; give text")
    if value is None and label is None:
        return row["key"], None
    return row["key"], Label(None if value is None else float(value), label, by, explanation)
