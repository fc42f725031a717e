"""Labelling answer by answer: which comes next, how far people are and agree, and their labels as an evaluation."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from evaluand.core.errors import NotFound, SpecError
from evaluand.core.key_columns import RESPONSE_INDEX
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.sample import find_turns
from evaluand.judges.people.human_labels import HumanLabels, Label, key_of, labelling_rows, unmatched
from evaluand.metrics.judging.estimate import measure_kappa
from evaluand.run.runner import Run
from evaluand.store.tables import COMPLETED
from evaluand.store.window import WindowedStore

SCORER: Final = "human"
"""The name of imported labels in their evaluation."""

_SHORT: Final = 12


class Placed(NamedTuple):
    """An answer of a run, without its texts.

    Attributes:
        key: identifies the example and the answer.
        example: its `_index_`.
        replication: of the call.
        number: of the answer among those of the call.
    """

    key: str
    example: int
    replication: int
    number: int


def draw_answers(run: Run, seed: int = 0) -> list[Placed]:
    """The different answers of a run in the order of `draw_labelling_rows`, without their texts.

    An answer that an example was given several times is there once: it has one label.
    """
    turns = find_turns(run, seed)
    digests = dict(zip(run.dataset.indices, run.dataset.example_digests(), strict=True))
    found = []
    for response in run:
        if response.status == COMPLETED:
            at = response.index, response.replication
            for number, answer in enumerate(response.responses or ()):
                found.append((turns[at], number, Placed(key_of(digests[response.index], answer), *at, number)))
    answers: dict[str, Placed] = {}
    for _, _, placed in sorted(found):
        answers.setdefault(placed.key, placed)
    return [*answers.values()]


def read_answer(run: Run, placed: Placed) -> dict[str, Any]:
    """The row to fill in of an answer, as `labelling_rows` returns it, by reading little more than it."""
    store: Any = WindowedStore(run.store, [placed.example])
    for row in labelling_rows(Run(store, run.id)):
        if (row["replication"], row[RESPONSE_INDEX], row["key"]) == (placed.replication, placed.number, placed.key):
            return row
    raise NotFound(f"run {run.id[:_SHORT]} has no such answer to example {placed.example}")


def find_strays(run: Run, labels: HumanLabels) -> list[str]:
    """The keys of labels that match no answer of a run.

    Raises:
        SpecError: none matches.
    """
    strays = unmatched(run, labels)
    if len(strays) == len(labels.labels):
        raise SpecError(f"none of the {len(strays):,} labels matches an answer of run {run.id[:_SHORT]}")
    return strays


def name_labels(run: Run) -> str | None:
    """The usual name of the evaluation that holds the labels of a run; None if the run has no name."""
    return f"{run.name}/{SCORER}" if run.name else None


def store_labels(run: Run, labels: HumanLabels, name: str | None) -> Evaluation:
    """The labels of a run as an evaluation."""
    return Evaluator(run.store).evaluate(run, {SCORER: labels}, name=name)


class PeopleAgreement(NamedTuple):
    """How often two people label alike the answers on which both have given a number, or both a word.

    Attributes:
        one, other: the people.
        answers: how many these are.
        agreed: how many of them they label the same.
        kappa: Cohen's kappa, None where chance agrees everywhere or without common answers.
        low: the lower end of its 95 % interval by example, None below two examples; `high` the upper end.
    """

    one: str
    other: str
    answers: int
    agreed: int
    kappa: float | None
    low: float | None
    high: float | None


class Agreements(NamedTuple):
    """How often people agree, pair by pair.

    Attributes:
        pairs: those with an answer that both have labelled, the most answers first.
        is_complete: false if there are too many people or pairs, and some are left out.
    """

    pairs: list[PeopleAgreement]
    is_complete: bool


def agreement_of_people(labels: HumanLabels, answers: Iterable[Placed], most: int = 20) -> Agreements:
    """How often people who have given their names agree on some answers.

    Args:
        most: at most so many people are compared, those with the most labels; and of their pairs at most as many, those
            with the most answers in common.
    """
    said: dict[str, dict[str, Label]] = {}
    examples: dict[str, int] = {}
    for placed in answers:
        for label in labels.labels.get(placed.key, ()):
            if label.by is not None:
                said.setdefault(label.by, {})[placed.key] = label
                examples[placed.key] = placed.example
    people = sorted(heapq.nlargest(most, said, key=lambda by: len(said[by])))
    common = {pair: len(said[pair[0]].keys() & said[pair[1]].keys()) for pair in itertools.combinations(people, 2)}
    pairs = [pair for pair, n in common.items() if n]
    closest = heapq.nlargest(most, pairs, key=lambda pair: common[pair])
    found = [_compare(one, other, said, examples) for one, other in closest]
    compared = [each for each in found if each.answers]
    compared.sort(key=lambda each: -each.answers)
    return Agreements(compared, len(people) == len(said) and len(closest) == len(pairs))


def _compare(
    one: str, other: str, said: Mapping[str, Mapping[str, Label]], examples: Mapping[str, int]
) -> PeopleAgreement:
    own, others = said[one], said[other]
    words = {key: _as_words(label, others[key]) for key, label in own.items() if key in others}
    comparable = {key: each for key, each in words.items() if each is not None}
    if not comparable:
        return PeopleAgreement(one, other, 0, 0, None, None, None)
    sides = np.array([*comparable.values()]).T
    known, numbers = np.unique(sides, return_inverse=True)
    kappa = measure_kappa(numbers.reshape(2, -1), known.tolist(), [examples[key] for key in comparable])
    return PeopleAgreement(one, other, len(comparable), int((sides[0] == sides[1]).sum()), *kappa)


def _as_words(one: Label, other: Label) -> tuple[str, str] | None:
    """What both have given, a number or a word or both, as a word each; None if they gave no comparable label."""
    pairs = [(one.value, other.value), (one.label, other.label)]
    both = [pair for pair in pairs if None not in pair]
    return (" ".join(str(pair[0]) for pair in both), " ".join(str(pair[1]) for pair in both)) if both else None
