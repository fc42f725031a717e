"""Answers, or pairs of answers, that people have labelled, with the judgements of a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from evaluand.core import identity
from evaluand.core.errors import SpecError, nearest
from evaluand.judges.judge_digest import digest_judge

Label = float | str
"""A number, or a word. Of a pair: the share of the win that `a` gets: 1, ½ for a tie, 0, or a probability."""


class Judgement(NamedTuple):
    """The judgement of a judge on an answer, or on a pair.

    Attributes:
        label: None if it abstained or failed.
        reason: why there is no label.
        explanation: the judge's reasons.
    """

    label: Label | None
    reason: str | None = None
    explanation: str | None = None


class Item(NamedTuple):
    """An answer, or a pair of answers `a` and `b`.

    Attributes:
        example: identifies the example, or what groups examples: items of the same one depend on each other.
        key: identifies example and answers, whatever the run or the file.
        id: the id of the example, for people.
        labels: of the people of the set, in their order; None for a person who gave none.
        judgements: those of the judge, several if it was asked repeatedly; for a pair, with `a` shown first.
        swapped: for a pair, the judgements with `b` shown first; they name the winner, not its position.
        lengths: the characters of each answer; empty if unknown.
        models: the model that wrote each answer; empty if unknown.
        texts: input and answers, for people.
    """

    example: str
    key: str
    id: str
    labels: tuple[Label | None, ...]
    judgements: tuple[Judgement, ...]
    swapped: tuple[Judgement, ...] = ()
    lengths: tuple[int, ...] = ()
    models: tuple[str | None, ...] = ()
    texts: Mapping[str, Any] = {}


class JudgeIdentity(NamedTuple):
    """The identity of a judge.

    Attributes:
        name: that of the scorer, or the one in a file.
        spec: the data that identify it, as in manifests.
        parts: its parts, such as rubric and model, to explain changes.
        model: the name of the model that judges; None if unknown.
        pinned: whether the spec fully says how it judges; a model without a version does not.
    """

    name: str
    spec: Mapping[str, Any]
    parts: Mapping[str, str] = {}
    model: str | None = None
    pinned: bool = True

    @property
    def digest(self) -> str:
        """What a card is bound to, see `digest_judge`.

        Example:
            >>> len(JudgeIdentity("polite", {"kind": "function", "code": "3f2a"}).digest)
            32
        """
        return digest_judge(self.spec, self.parts)


@dataclass(frozen=True)
class LabelledSet:
    """Items with their labels and judgements.

    Attributes:
        items: in any order.
        judge: who judged.
        people: the names of the people who labelled; None for a person without a name.
        is_pairs: whether items are pairs of answers.
        usage: of the judgements, as in the tables of scores; one entry for each judgement with a known usage.
        seconds: how long each judgement, or each of its requests, took, as far as that is known.
        made_from: (kind, id) of the artifacts that it was read from.
        source: the file that it was read from; None for artifacts.
        judge_range: the lowest and the highest number that the judge may give; None if unknown.
        verdicts: the words that the judge may give; empty if unknown.
        question: the name of the labels: a scorer of people or a column; None if unknown.
    """

    items: Sequence[Item]
    judge: JudgeIdentity
    people: Sequence[str | None]
    is_pairs: bool = False
    usage: Sequence[Mapping[str, Any]] = ()
    seconds: Sequence[float] = ()
    made_from: Sequence[tuple[str, str]] = ()
    source: str | None = None
    judge_range: tuple[float, float] | None = None
    verdicts: Sequence[str] = ()
    question: str | None = None

    @cached_property
    def digest(self) -> str:
        """The digest of the items and their labels, independent of judge and order."""
        rows = sorted(
            identity.encode([item.example, item.key, sorted(map(repr, item.labels))]).decode() for item in self.items
        )
        return identity.digest([self.is_pairs, rows]).hex()

    @cached_property
    def judgements_digest(self) -> str:
        """The digest of the judgements."""
        rows = sorted(
            identity.encode(
                [item.key, *([each.label for each in of] for of in (item.judgements, item.swapped))]
            ).decode()
            for item in self.items
        )
        return identity.digest(rows).hex()

    @cached_property
    def details_digest(self) -> str:
        """The digest of the other inputs of measures, misses and costs: lengths, models, texts, reasons, usage."""
        rows = sorted(
            repr([item.key, item.id, item.lengths, item.models, item.texts, item.labels, item.judgements, item.swapped])
            for item in self.items
        )
        return identity.digest([rows, *(sorted(map(repr, each)) for each in (self.usage, self.seconds))]).hex()

    def with_words(self, words: Mapping[str, str]) -> LabelledSet:
        """The set as if people had written other words; the case of their words does not matter.

        Args:
            words: a word of people → the verdict of the judge that it stands for.

        Raises:
            SpecError: nobody wrote one of the words, or these are pairs, whose labels are no words.

        Example:
            >>> judge = JudgeIdentity("mine", {})
            >>> item = Item("1", "1", "1", ("Good", "incorrect"), (Judgement("correct"),))
            >>> LabelledSet([item], judge, ["ann", "bob"]).with_words({"good": "correct"}).items[0].labels
            ('correct', 'incorrect')
        """
        if words and self.is_pairs:
            raise SpecError("labels of pairs name the better response, so there are no words to replace")
        written = {label.casefold(): label for item in self.items for label in item.labels if isinstance(label, str)}
        meant = {word.casefold(): verdict for word, verdict in words.items()}
        for word in words:
            if word.casefold() not in written:
                known = ", ".join([*written.values()][:_SHOWN]) or "numbers"
                raise SpecError(f"nobody wrote the label {word!r}{nearest(word, written.values())}; there are {known}")

        def read(label: Label | None) -> Label | None:
            return meant.get(label.casefold(), label) if isinstance(label, str) else label

        return replace(self, items=[item._replace(labels=tuple(map(read, item.labels))) for item in self.items])

    def with_threshold(self, threshold: float) -> LabelledSet:
        """The set as if people had said right (1) from a grade on, and wrong (0) below it.

        Raises:
            SpecError: a label is no number, or these are pairs.

        Example:
            >>> item = Item("1", "1", "1", (5.0, 2.0), (Judgement(1.0),))
            >>> LabelledSet([item], JudgeIdentity("mine", {}), ["ann", "bob"]).with_threshold(4).items[0].labels
            (1.0, 0.0)
        """
        if self.is_pairs:
            raise SpecError("labels of pairs name the better response, so there are no grades to divide")

        def divide(label: Label | None) -> Label | None:
            try:
                return None if label is None else float(float(label) >= threshold)
            except ValueError:
                raise SpecError(
                    f"`--people-threshold` divides grades, but people wrote {label!r}; see `--word`"
                ) from None

        return replace(self, items=[item._replace(labels=tuple(map(divide, item.labels))) for item in self.items])

    def where(self, chosen: Callable[[Item], bool]) -> LabelledSet:
        """The set with some of its items; its usage is that of all items."""
        return replace(self, items=[item for item in self.items if chosen(item)])


_SHOWN: Final = 5
