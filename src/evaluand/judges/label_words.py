"""The words with which people may label answers for the card of a judge: the verdicts of its rubric.

A card compares labels and verdicts as words, so a label that is no verdict never agrees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evaluand.core.errors import nearest
from evaluand.evaluation.evaluator import Evaluation, find_evaluations_of
from evaluand.judges.people.human_labels import HumanLabels
from evaluand.judges.stored_rubric import verdicts_of
from evaluand.run.runner import Run


class ForeignWords(NamedTuple):
    """Labels that no judge of a run writes.

    Attributes:
        words: the labels.
        verdicts: judge → the words that it writes.
        can_match: whether some label may agree with a verdict: another one is a verdict or has a value, or not all
            verdicts of a judge are known.
    """

    words: Sequence[str]
    verdicts: Mapping[str, Sequence[str]]
    can_match: bool

    @property
    def text(self) -> str:
        """Which labels these are, what the judges write, and what to do."""
        listed = ", ".join(map(repr, self.words[:_LISTED])) + (", …" if len(self.words) > _LISTED else "")
        judges = "; ".join(f"{name} writes {', '.join(words)}" for name, words in self.verdicts.items())
        every = [word for words in self.verdicts.values() for word in words]
        hint = nearest(self.words[0], every) if len(self.words) == 1 else ""
        return (
            f"no judge of this run writes {listed}{hint}: {judges}; for a card, write these verdicts, or say what each"
            f" other word means (`--word {self.words[0]}=VERDICT`)"
        )


def find_foreign_words(run: Run, labels: HumanLabels) -> ForeignWords | None:
    """The labels that are no verdict of a judge of a run; None if there are none, or if no judge has graded the run.

    Labels with a value are compared by their values, and need not be verdicts.
    """
    verdicts, is_complete = _read_verdicts(run)
    known = {word.casefold() for words in verdicts.values() for word in words}
    every = [label for of_answer in labels.labels.values() for label in of_answer]
    foreign = [each for each in every if each.value is None and each.label and each.label.casefold() not in known]
    if not verdicts or not foreign:
        return None
    words = list(dict.fromkeys(each.label for each in foreign if each.label))
    return ForeignWords(words, verdicts, not is_complete or len(foreign) < len(every))


def _read_verdicts(run: Run) -> tuple[dict[str, Sequence[str]], bool]:
    """Judge of a run → its possible verdicts, or else those that occur; and whether all possible ones are known."""
    found: dict[str, Sequence[str]] = {}
    is_complete = True
    for evaluation in find_evaluations_of(run.store, run.id):
        for name in evaluation.manifest["provenance"].get("judges") or ():
            if name not in evaluation.scorers:
                continue
            possible = verdicts_of(evaluation.manifest, name)
            is_complete &= bool(possible)
            if words := possible or _occurring_verdicts(evaluation, name):
                found[name] = [*dict.fromkeys((*found.get(name, ()), *words))]
    return found, is_complete


def _occurring_verdicts(evaluation: Evaluation, scorer: str) -> list[str]:
    batches = evaluation.batches(scorer, ["label"])
    return sorted(
        {word for batch in batches for word in batch.column("label").unique().to_pylist() if word is not None}
    )


_LISTED = 5
