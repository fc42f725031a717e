"""Whether the judge of a mean is measured, weak, stale or unmeasured, and the mean corrected for its errors.

A judge is measured if its card shows agreement with people beyond chance on enough examples. If the card shows less,
the judge is weak: a single label, or a judge that always says right, proves nothing. If only an earlier form of the
judge was measured, it is stale.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np

from evaluand.core.errors import NotFound, plural
from evaluand.core.fingerprint import explain
from evaluand.core.identity import json_text
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.standing import CorrectedMean, Status
from evaluand.judges.cards.card import JudgeCard, stored_cards
from evaluand.judges.cards.from_evaluation import AnswerTo, answers_to, judge_of, read_labelled_answers
from evaluand.judges.cards.labelled_set import JudgeIdentity
from evaluand.judges.cards.tuning import choose_half
from evaluand.judges.kind import CARDS
from evaluand.metrics.judging.estimate import share
from evaluand.run.runner import Run
from evaluand.store.store import Store, exists
from evaluand.store.tables import SCORED


class Standing(NamedTuple):
    """Whether a judge was measured.

    Attributes:
        judge: which judge.
        status: `measured`, `weak` if its card shows too little, `stale` if only an earlier form of the judge was
            measured, or `unmeasured`.
        card: the card that is used: the one of the judge or, if stale, of its earlier form with the most examples.
        changed: the changes since then, in words.
        measure_it: the command that measures it.
        newer: a newer card of the judge with fewer examples, which is not used; None if there is none.
        otherwise: what to do instead if it was not measured.
    """

    judge: JudgeIdentity
    status: Status
    card: JudgeCard | None
    changed: tuple[str, ...]
    measure_it: str
    newer: JudgeCard | None = None
    otherwise: str = ""

    @property
    def name(self) -> str:
        return self.judge.name

    @property
    def digest(self) -> str:
        return self.judge.digest

    @property
    def card_id(self) -> str | None:
        return None if self.card is None else self.card.id

    def correct(self, evaluation: Evaluation, scorer: str) -> CorrectedMean | None:
        """The mean corrected by the card, see `correct_mean`."""
        return None if self.card is None else correct_mean(evaluation, scorer, self.card)

    @property
    def text(self) -> str:
        """The standing in one line, with what to do if the judge is not measured well enough."""
        if self.card is None:
            return f"unmeasured: nobody knows how often it agrees with people; {self.remedy}"
        return self.finding if self.status == "measured" else f"{self.finding}; {self.remedy}"

    @property
    def finding(self) -> str:
        """The standing in a few words."""
        if self.card is None:
            return self.status
        card = f"card {self.card.id[:_SHORT]}"
        if self.status == "stale":
            what = ", ".join(self.changed[:_SHOWN]) + (", …" if len(self.changed) > _SHOWN else "")
            return f"stale: {what or 'it has changed'} since {card}"
        weak = f"weak: {self.card.weakness}; " if self.status == "weak" else ""
        return f"{weak}{self.card.headline} ({card}){self._reservations}"

    @property
    def remedy(self) -> str:
        """How to measure it."""
        how = {"weak": "label more answers and measure it again", "stale": "measure it again"}
        return f"{how.get(self.status, 'measure it')} with `{self.measure_it}`{self.otherwise}"

    @property
    def _reservations(self) -> str:
        newer = "" if self.newer is None else f"; a newer card has only {plural(self.newer.clusters, 'example')}"
        return newer + ("" if self.judge.pinned else "; no version is declared, so its model may have changed since")


_SHOWN: Final = 3
_SHORT: Final = 12


def find_standing(store: Store, judge: JudgeIdentity, source: str, scorer: str | None = None) -> Standing:
    """Whether a judge was measured.

    Args:
        source: the name or id of what it judged, for the command that measures it; `scorer` is its name there.
    """
    command = f"evaluand judge card {source}" + ("" if scorer is None else f" --scorer {scorer}")
    own = [card for id in store.find(CARDS, judge.digest) if (card := JudgeCard(store, id)).has_agreement]
    if own:
        card = max(own, key=lambda each: each.clusters)  # the newest of those with the most examples
        newer = None if own[0].id == card.id else own[0]
        return Standing(judge, "measured" if card.weakness is None else "weak", card, (), command, newer)
    for card in stored_cards(store):
        other = card.judge
        is_earlier = other.name == judge.name and other.spec.get("kind") == judge.spec.get("kind")
        if is_earlier and other.digest != judge.digest and card.has_agreement:
            return Standing(judge, "stale", card, tuple(explain(_parts_of(other), _parts_of(judge))), command)
    return Standing(judge, "unmeasured", None, (), command)


def _parts_of(judge: JudgeIdentity) -> Mapping[str, str]:
    """What a judge consists of: its parts or, if it has none, its parameters."""
    parameters = judge.spec.get("parameters")
    if judge.parts or not isinstance(parameters, Mapping):
        return judge.parts
    return {name: json_text(value) for name, value in parameters.items()}


def standing_of(evaluation: Evaluation, name: str) -> Standing:
    """Whether a judge among the scorers of an evaluation was measured."""
    source = evaluation.name or evaluation.id[:_SHORT]
    several = len(evaluation.manifest["provenance"].get("judges") or ()) > 1 or len(evaluation.scorers) > 1
    return find_standing(evaluation.store, judge_of(evaluation, name), source, name if several else None)


def standings(evaluation: Evaluation) -> dict[str, Standing]:
    """The judges among the scorers of an evaluation, by name, and whether they were measured."""
    names = evaluation.manifest["provenance"].get("judges") or ()
    return {name: standing_of(evaluation, name) for name in names if name in evaluation.scorers}


def correct_mean(evaluation: Evaluation, scorer: str, card: JudgeCard) -> CorrectedMean | None:
    """The mean of a judge corrected for the errors on its card; None unless it says right or wrong.

    The judge must err on these answers as often as on those that people have labelled, see `rogan_gladen`.
    """
    sensitivity, specificity = card.find("sensitivity"), card.find("specificity")
    if sensitivity is None or specificity is None:
        return None
    verdicts = _read_verdicts(evaluation, scorer, card.manifest["spec"]["options"])
    if not len(verdicts.right) or not np.isin(verdicts.right, (0.0, 1.0)).all():
        return None
    confidence = float(card.manifest["spec"]["confidence"])
    raw = share(verdicts.right, verdicts.example, confidence=confidence)
    is_mean = bool(np.array_equal(verdicts.right, verdicts.value))
    labelled, items = _count_labelled(evaluation, card), int(card.manifest["spec"]["items"])
    return CorrectedMean(raw, (sensitivity, specificity), confidence, is_mean, labelled, items)


def _count_labelled(evaluation: Evaluation, card: JudgeCard) -> int:
    """How many of the answers were used to measure the judge: the same answers to the same examples, in any run."""
    made_from = [each["id"] for each in card.manifest["provenance"]["made_from"] if each["kind"] == EVALUATIONS]
    if not made_from:
        return 0
    with suppress(NotFound):
        keys = {(each.example.digest, each.digest) for each in _read_answers_of(card, made_from)}
        if (run := evaluation.run) is not None:
            return _count_answers(run, keys)
    run_digest = evaluation.manifest["spec"]["run"]  # the store has lost the labels, or the answers
    known = (id for id in made_from if exists(evaluation.store, EVALUATIONS, id))
    is_same = any(evaluation.store.manifest(EVALUATIONS, id)["spec"]["run"] == run_digest for id in known)
    return int(card.manifest["spec"]["items"]) if is_same else 0


def _read_answers_of(card: JudgeCard, made_from: Sequence[str]) -> list[AnswerTo]:
    """The answers on which a judge was measured.

    Args:
        made_from: the evaluations with its scores and, unless these are a column, with the labels.

    Raises:
        NotFound: the store has lost them.
    """
    spec = card.manifest["spec"]
    judged, *labels = (Evaluation(card.store, id) for id in made_from)
    if (run := judged.run) is None or spec["question"] is None:
        raise NotFound(f"{card!r} does not say which answers were labelled, or they are not in the store")
    found = read_labelled_answers(run, labels[0] if labels else None, spec["question"])
    if (part := spec.get("part")) is None:
        return found
    chose = choose_half([each.group for each in found], part["seed"])
    return [each for each in found if each.group not in chose]


def _count_answers(run: Run, keys: Collection[tuple[bytes, str]]) -> int:
    """How many first answers of a run are among some answers, by the digests of example and answer."""
    known = {example for example, _ in keys}
    digests = zip(run.dataset.indices, run.dataset.example_digests(), strict=True)
    answers = answers_to(run, {int(index) for index, digest in digests if digest in known})
    return sum((each.example.digest, each.digest) in keys for each in answers if not each.key[2])


class _Verdicts(NamedTuple):
    """The first answer of each call as the judge sees it.

    Attributes:
        right: 1 if the judge accepts it, 0 if not; another number if the judge does not say.
        value: the judge's value.
        example: the cluster of its example.
    """

    right: np.ndarray
    value: np.ndarray
    example: np.ndarray


def _read_verdicts(evaluation: Evaluation, scorer: str, options: Mapping[str, Any]) -> _Verdicts:
    positive, threshold = options["positive"], options["threshold"]
    field = "value" if positive is None else "label"
    clusters = _read_clusters(evaluation)
    right: list[float] = []
    values: list[float | None] = []
    example: list[Any] = []
    for batch in evaluation.batches(scorer, [INDEX, RESPONSE_INDEX, "status", "value", "label"]):
        for row in batch.to_pylist():
            said = row[field]
            if row["status"] != SCORED or row[RESPONSE_INDEX] or said is None:
                continue
            if positive is not None:
                said = float(said.strip().casefold() == positive.casefold())
            right.append(float(said) if threshold is None else float(said >= threshold))
            values.append(row["value"])
            example.append(clusters.get(row[INDEX], row[INDEX]))
    keys = np.unique(list(map(repr, example)), return_inverse=True)[1] if example else np.zeros(0, np.int64)
    return _Verdicts(np.array(right, np.float64), np.array(values, np.float64), keys)


def _read_clusters(evaluation: Evaluation) -> dict[int, tuple[str, Any]]:
    """The cluster of each example by `_index_`; empty if the dataset has none."""
    with suppress(NotFound):  # without the run or its dataset, each example counts by itself
        run = evaluation.run
        if run is not None and (column := run.dataset.roles.cluster) is not None:
            rows = (row for batch in run.dataset.columns([column]) for row in batch.column(column).to_pylist())
            return {index: ("cluster", cluster) for index, cluster in zip(run.dataset.indices, rows, strict=True)}
    return {}
