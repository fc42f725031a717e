"""The best of several judges, chosen on one half of a labelled set and measured on the other.

The best of many looks better than it is on the answers that chose it. So these are split by example into two halves of
equal size: all candidates are compared on one, and the card of the chosen one rests on the other alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from evaluand.core import identity
from evaluand.core.errors import SpecError, nearest, plural, warn
from evaluand.evaluation.judges.cards.card import JudgeCard, make_card, stored_cards
from evaluand.evaluation.judges.cards.labelled_set import LabelledSet
from evaluand.metrics.judging.estimate import Estimate
from evaluand.store.store import MemoryStore, Store

CRITERION: Final = "krippendorff_alpha"
_PARTS: Final = ("", "both orders", "first order")
"""The parts of a card that a criterion is looked for in, the first that there is."""


class Candidate(NamedTuple):
    """How a judge did on the half that chose.

    Attributes:
        name: that of the judge.
        estimate: the criterion.
        abstained: the share of answers about which it said nothing.
        card: of this half; in memory alone.
    """

    name: str
    estimate: Estimate
    abstained: float
    card: JudgeCard


class Tuning(NamedTuple):
    """The choice among several judges.

    Attributes:
        criterion: the measure that chose.
        candidates: the judges, the best first.
        card: of the best, on the other half.
    """

    criterion: str
    candidates: Sequence[Candidate]
    card: JudgeCard

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-like data."""
        return {
            "criterion": self.criterion,
            "candidates": [
                {
                    "judge": each.name,
                    "digest": each.card.judge_digest,
                    **{name: _finite(getattr(each.estimate, name)) for name in ("value", "low", "high")},
                    "reason": each.estimate.reason,
                    "abstained": each.abstained,
                    "items": each.card.manifest["spec"]["items"],
                }
                for each in self.candidates
            ],
            "card": self.card.to_dict(),
        }


def tune_judges(
    candidates: Mapping[str, LabelledSet],
    store: Store | None = None,
    *,
    criterion: str = CRITERION,
    seed: int = 0,
    name: str | None = None,
    **options: Any,
) -> Tuning:
    """Compares judges on one half of a labelled set, and measures the best on the other half.

    Args:
        candidates: name → the same labelled answers with the judgements of one judge.
        store: where the card is stored; default: in memory.
        criterion: the measure that decides, the higher the better, such as `agreement` or `sensitivity`.
        seed: of the split.
        name: a name for the card.
        options: as `make_card` takes them.

    Raises:
        SpecError: there are fewer than two candidates, they are about different answers, there are too few to split, or
            no candidate has the criterion.
    """
    store = MemoryStore() if store is None else store
    total = _check(candidates)
    chooses = _choose_half(next(iter(candidates.values())), seed)
    ranked = []
    for label, labelled in candidates.items():
        card = make_card(labelled.where(lambda item: item.example in chooses), MemoryStore(), **options)
        ranked.append(_rank(label, card, criterion))
    ranked.sort(key=lambda each: -math.inf if math.isnan(each.estimate.value) else each.estimate.value, reverse=True)
    best = ranked[0]
    if math.isnan(best.estimate.value):
        raise SpecError(f"no judge can be chosen by {criterion}: {best.estimate.reason}")
    whole = candidates[best.name]
    _warn_of_earlier(store, whole.digest, seed)
    others = sorted(labelled.judge.digest for labelled in candidates.values())
    part = {"of": whole.digest, "items": total, "seed": seed, "criterion": criterion, "chosen_from": others}
    rest = whole.where(lambda item: item.example not in chooses)
    return Tuning(criterion, ranked, make_card(rest, store, part=part, name=name, **options))


def _check(candidates: Mapping[str, LabelledSet]) -> int:
    """The number of answers, which all candidates must share."""
    if len(candidates) < 2:
        only = ", ".join(map(repr, candidates)) or "none"
        raise SpecError(f"a choice needs two judges or more, and there is {only}; name several scorers or files")
    (first, labelled), *others = candidates.items()
    for name, other in others:
        if other.digest != labelled.digest:
            raise SpecError(
                f"{first!r} and {name!r} judged different answers, or they were labelled differently; compare judges"
                " of the same answers with the same labels"
            )
    examples = len({item.example for item in labelled.items})
    if examples < _FEWEST:
        raise SpecError(f"there are labels of {plural(examples, 'example')}, and a split needs {_FEWEST}; label more")
    return len(labelled.items)


_FEWEST: Final = 4


def _choose_half(labelled: LabelledSet, seed: int) -> set[str]:
    """Examples with about half of the items, by chance; the same for every judge and order of the items."""
    sizes: dict[str, int] = {}
    for item in labelled.items:
        sizes[item.example] = sizes.get(item.example, 0) + 1
    chosen: set[str] = set()
    n = 0
    for example in sorted(sizes, key=lambda each: identity.digest(["tune", seed, each])):
        if 2 * n >= len(labelled.items):
            break
        chosen.add(example)
        n += sizes[example]
    return chosen


def _rank(name: str, card: JudgeCard, criterion: str) -> Candidate:
    found = next((each for part in _PARTS if (each := card.find(criterion, part)) is not None), None)
    if found is None:
        known = list(dict.fromkeys(row["measure"] for row in card.measures))
        raise SpecError(f"cards of these labels have no {criterion!r}{nearest(criterion, known)}: {', '.join(known)}")
    abstained = card.find("abstained")
    return Candidate(name, found, 0.0 if abstained is None else abstained.value, card)


def _warn_of_earlier(store: Store, labels: str, seed: int) -> None:
    """Warns if another split of these labels has chosen a judge before."""
    for card in stored_cards(store):
        part = card.manifest["spec"].get("part") or {}
        if part.get("of") == labels and part.get("seed") != seed:
            warn(
                f"these labels chose a judge before, with seed {part.get('seed')}; answers that chose then may report"
                " now, so the card looks better than the judge is: keep one seed, or label more"
            )
            return


def _finite(number: float) -> float | None:
    return None if math.isnan(number) else number
