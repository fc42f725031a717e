"""The best of several judges, chosen on one half of a labelled set and measured on the other.

The best of many looks better than it is on the answers by which it was chosen. So the answers are split by example into
two halves: all candidates are compared on the first, and the card of the best is measured on the second. Candidates are
compared on the answers that all of them judged. A candidate that abstains much more often than another is not chosen,
because it would be compared on easy answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from evaluand.core import identity
from evaluand.core.errors import SpecError, nearest, plural, warn
from evaluand.judges.cards.card import JudgeCard, make_card, stored_cards
from evaluand.judges.cards.labelled_set import Item, LabelledSet
from evaluand.judges.cards.measures import DIRECTIONS
from evaluand.metrics.judging.estimate import Estimate, undefined
from evaluand.store.store import MemoryStore, Store

CRITERION: Final = "krippendorff_alpha"
_PARTS: Final = ("", "both orders", "first order", "quadratic")
"""The parts of a card that a criterion is looked for in, the first that there is."""

MOST_ABSTAINED: Final = 0.1
"""By how much the share about which a candidate abstains may exceed the least share of any candidate."""

REPORTED_BEFORE: Final = "reported_before"
"""Where the origin of a card says how many choices its answers had reported about before."""


class Candidate(NamedTuple):
    """The result of a judge on the first half.

    Attributes:
        name: that of the judge.
        estimate: the criterion, on the answers that all candidates judged; without a value if it abstains too often.
        abstained: the share of answers on which it abstained.
        card: on these answers, or on all of this half if it abstains too often; only in memory.
    """

    name: str
    estimate: Estimate
    abstained: float
    card: JudgeCard


class Tuning(NamedTuple):
    """The choice among several judges.

    Attributes:
        criterion: the measure by which the best was chosen.
        candidates: the judges, the best first.
        card: of the best, on the second half.
        reported_before: how many cards of other choices, made by the same split, the store has.
    """

    criterion: str
    candidates: Sequence[Candidate]
    card: JudgeCard

    @property
    def reported_before(self) -> int:
        return int(self.card.manifest["provenance"]["origin"].get(REPORTED_BEFORE, 0))

    def to_dict(self) -> dict[str, Any]:
        """The complete choice as JSON-like data."""
        return {
            "criterion": self.criterion,
            REPORTED_BEFORE: self.reported_before,
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
        criterion: the measure that decides, such as `agreement` or, the lower the better, `brier`.
        seed: of the split.
        name: a name for the card.
        options: as `make_card` takes them.

    Raises:
        SpecError: there are fewer than two candidates, they are about different answers, there are too few to split, no
            candidate has the criterion, or its values are neither better nor worse.
    """
    store = MemoryStore() if store is None else store
    total = _check(candidates)
    chooses = choose_half([item.example for item in next(iter(candidates.values())).items], seed)
    halves = {label: each.where(lambda item: item.example in chooses) for label, each in candidates.items()}
    ranked = _rank(halves, criterion, options)
    best = ranked[0]
    if math.isnan(best.estimate.value):
        raise SpecError(f"no judge can be chosen by {criterion}: {best.estimate.reason}")
    whole = candidates[best.name]
    _warn_of_other_split(store, whole.digest, seed)
    others = sorted(labelled.judge.digest for labelled in candidates.values())
    part = {"of": whole.digest, "items": total, "seed": seed, "criterion": criterion, "chosen_from": others}
    rest = whole.where(lambda item: item.example not in chooses)
    origin = {REPORTED_BEFORE: len(_find_choices(store, whole.digest, seed))}
    found = Tuning(criterion, ranked, make_card(rest, store, part=part, name=name, origin=origin, **options))
    if n := found.reported_before:
        warn(
            f"this half of the labels has reported {plural(n, 'time')} before, about other choices; the best of several"
            " reports looks better than the judge is: label more answers, which have not reported yet"
        )
    return found


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


def choose_half(examples: Sequence[str], seed: int) -> set[str]:
    """A random half of the examples of some items; the same for every judge and order of the items.

    Examples are not divided, so the half may be larger by up to the items of one example.

    Args:
        examples: that of each item.
    """
    sizes = Counter(examples)
    chosen: set[str] = set()
    n = 0
    for example in sorted(sizes, key=lambda each: identity.digest(["tune", seed, each])):
        if 2 * n >= len(examples):
            break
        chosen.add(example)
        n += sizes[example]
    return chosen


def _rank(halves: Mapping[str, LabelledSet], criterion: str, options: Mapping[str, Any]) -> list[Candidate]:
    """The candidates on the answers that all judged, the best first; those that abstain too often come last."""
    abstained = {name: _share_abstained(half) for name, half in halves.items()}
    least = min(abstained.values())
    compared = [name for name, share in abstained.items() if share <= least + MOST_ABSTAINED + _ROUNDING]
    unjudged = {item.key for name in compared for item in halves[name].items if not _is_judged(item)}
    if all(item.key in unjudged for item in halves[compared[0]].items):
        raise SpecError(f"no judge can be chosen by {criterion}: {', '.join(compared)} judged no answer in common")
    ranked = []
    for name in compared:
        card = make_card(halves[name].where(lambda item: item.key not in unjudged), MemoryStore(), **options)
        ranked.append(Candidate(name, _find_criterion(card, criterion), abstained[name], card))
    sign = -1.0 if DIRECTIONS[criterion] == "lower" else 1.0
    ranked.sort(key=lambda each: _or_least(sign * each.estimate.value), reverse=True)
    for name in (each for each in halves if each not in compared):
        reason = f"abstained on {100 * abstained[name]:.0f} %, another judge on {100 * least:.0f} % of the answers"
        card = make_card(halves[name], MemoryStore(), **options)
        ranked.append(Candidate(name, undefined(reason), abstained[name], card))
    return ranked


_ROUNDING: Final = 1e-9


def _share_abstained(labelled: LabelledSet) -> float:
    return sum(not _is_judged(item) for item in labelled.items) / len(labelled.items)


def _is_judged(item: Item) -> bool:
    """Whether the judge gave a label, in each order in which it was asked."""
    asked = [each for each in (item.judgements, item.swapped) if each]
    return bool(asked) and all(any(one.label is not None for one in each) for each in asked)


def _or_least(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _find_criterion(card: JudgeCard, criterion: str) -> Estimate:
    """The measure by which the best is chosen.

    Raises:
        SpecError: the card does not have it, or its values are neither better nor worse.
    """
    known = list(dict.fromkeys(row["measure"] for row in card.measures if DIRECTIONS[row["measure"]]))
    usable = {name: found for name in known if (found := _find_part(card, name)) is not None}
    if criterion in usable:
        return usable[criterion]
    if criterion in DIRECTIONS and DIRECTIONS[criterion] is None:
        raise SpecError(f"no value of {criterion!r} is better than another; choose by one of {', '.join(usable)}")
    raise SpecError(f"cards of these labels have no {criterion!r}{nearest(criterion, usable)}: {', '.join(usable)}")


def _find_part(card: JudgeCard, criterion: str) -> Estimate | None:
    return next((each for part in _PARTS if (each := card.find(criterion, part)) is not None), None)


def _find_choices(store: Store, labels: str, seed: int) -> list[JudgeCard]:
    """The cards of earlier choices by the same split of these labels."""
    parts = ((card, card.manifest["spec"].get("part") or {}) for card in stored_cards(store))
    return [card for card, part in parts if part.get("of") == labels and part.get("seed") == seed]


def _warn_of_other_split(store: Store, labels: str, seed: int) -> None:
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
