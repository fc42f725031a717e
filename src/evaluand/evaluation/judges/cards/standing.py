"""What a mean by a judge is worth: measured, stale since the judge changed, or unmeasured; and what errors do to it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from evaluand.core.errors import NotFound
from evaluand.core.fingerprint import explain
from evaluand.core.identity import json_text
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.judges.cards.card import KIND, JudgeCard, stored_cards
from evaluand.evaluation.judges.cards.from_evaluation import judge_of
from evaluand.evaluation.judges.cards.from_matches import judge_of_matches
from evaluand.evaluation.judges.cards.labelled_set import JudgeIdentity
from evaluand.evaluation.matching.matches import Matches
from evaluand.metrics.judging.correction import rogan_gladen
from evaluand.metrics.judging.estimate import Estimate, share
from evaluand.store.store import Store
from evaluand.store.tables import SCORED

Status = Literal["measured", "stale", "unmeasured"]


class Standing(NamedTuple):
    """Whether a judge was measured.

    Attributes:
        judge: which judge.
        status: `measured`, `stale` if only an earlier form of the judge was, or `unmeasured`.
        card: the newest card of the judge or, if stale, of its earlier form.
        changed: what has changed since then, in words.
        measure_it: the command that measures it.
    """

    judge: JudgeIdentity
    status: Status
    card: JudgeCard | None
    changed: tuple[str, ...]
    measure_it: str

    @property
    def text(self) -> str:
        """What is known, in one line, and what to do if it is too little."""
        if self.card is None:
            return f"unmeasured: nobody knows how often it agrees with people; {self.remedy}"
        if self.status == "stale":
            return f"{self.finding}; {self.remedy}"
        unpinned = "" if self.judge.pinned else "; it has no declared version, so it may have changed since"
        return f"{self.finding}{unpinned}"

    @property
    def finding(self) -> str:
        """What is known, in a few words."""
        if self.card is None:
            return self.status
        card = f"card {self.card.id[:_SHORT]}"
        if self.status == "stale":
            what = ", ".join(self.changed[:_SHOWN]) + (", …" if len(self.changed) > _SHOWN else "")
            return f"stale: {what or 'it has changed'} since {card}"
        return f"{self.card.headline} ({card})"

    @property
    def remedy(self) -> str:
        """How to measure it."""
        return f"measure it{' again' if self.status == 'stale' else ''} with `{self.measure_it}`"


_SHOWN: Final = 3
_SHORT: Final = 12


def find_standing(store: Store, judge: JudgeIdentity, source: str, scorer: str | None = None) -> Standing:
    """Whether a judge was measured.

    Args:
        source: the name or id of what it judged, for the command that measures it; `scorer` is its name there.
    """
    command = f"evaluand judge card {source}" + ("" if scorer is None else f" --scorer {scorer}")
    own = (JudgeCard(store, id) for id in store.find(KIND, judge.digest))
    if (card := next((card for card in own if card.has_agreement), None)) is not None:
        return Standing(judge, "measured", card, (), command)
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


def standings(evaluation: Evaluation) -> dict[str, Standing]:
    """The judges among the scorers of an evaluation, by name, and whether they were measured."""
    source = evaluation.name or evaluation.id[:_SHORT]
    names = evaluation.manifest["provenance"].get("judges") or ()
    several = len(names) > 1 or len(evaluation.scorers) > 1
    return {
        name: find_standing(evaluation.store, judge_of(evaluation, name), source, name if several else None)
        for name in names
        if name in evaluation.scorers
    }


def standing_of_matches(matches: Matches) -> Standing | None:
    """Whether the judge of matches was measured; None if it is no judge, such as a function or people."""
    if not matches.manifest["provenance"].get("judges"):
        return None
    return find_standing(matches.store, judge_of_matches(matches), matches.name or matches.id[:_SHORT])


class CorrectedMean(NamedTuple):
    """The share of answers that a judge takes for right, and the share that is right if it errs as its card says."""

    raw: Estimate
    corrected: Estimate


def correct_mean(evaluation: Evaluation, scorer: str, card: JudgeCard) -> CorrectedMean | None:
    """The mean of a judge corrected for the errors on its card; None unless it says right or wrong.

    The judge must err on these answers as often as on those that people have labelled, see `rogan_gladen`.
    """
    sensitivity, specificity = card.find("sensitivity"), card.find("specificity")
    if sensitivity is None or specificity is None:
        return None
    options = card.manifest["spec"]["options"]
    values, example = _read_verdicts(evaluation, scorer, options)
    if not len(values) or not np.isin(values, (0.0, 1.0)).all():
        return None
    confidence = float(card.manifest["spec"]["confidence"])
    raw = share(values, example, confidence=confidence)
    return CorrectedMean(raw, rogan_gladen(raw, sensitivity, specificity, confidence=confidence))


def _read_verdicts(evaluation: Evaluation, scorer: str, options: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The first answer of each call as the judge sees it, as a number, and the cluster of its example."""
    positive, threshold = options["positive"], options["threshold"]
    field = "value" if positive is None else "label"
    clusters = _read_clusters(evaluation)
    values: list[float] = []
    example: list[Any] = []
    for batch in evaluation.batches(scorer, [INDEX, RESPONSE_INDEX, "status", field]):
        for row in batch.to_pylist():
            said = row[field]
            if row["status"] != SCORED or row[RESPONSE_INDEX] or said is None:
                continue
            if positive is not None:
                said = float(said.strip().casefold() == positive.casefold())
            values.append(float(said) if threshold is None else float(said >= threshold))
            example.append(clusters.get(row[INDEX], row[INDEX]))
    keys = np.unique(list(map(repr, example)), return_inverse=True)[1] if example else np.zeros(0, np.int64)
    return np.array(values, np.float64), keys


def _read_clusters(evaluation: Evaluation) -> dict[int, tuple[str, Any]]:
    """The cluster of each example by `_index_`; empty if the dataset has none."""
    with suppress(NotFound):  # without the run or its dataset, each example counts by itself
        run = evaluation.run
        if run is not None and (column := run.dataset.roles.cluster) is not None:
            rows = (row for batch in run.dataset.columns([column]) for row in batch.column(column).to_pylist())
            return {index: ("cluster", cluster) for index, cluster in zip(run.dataset.indices, rows, strict=True)}
    return {}
