"""Where a judge and people differ: label by label, number by number, and the worst answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from evaluand.core import identity
from evaluand.core.files.json import none_if_nan
from evaluand.judges.cards.labelled_set import Item
from evaluand.judges.cards.measures import numbers_like_people, to_verdicts
from evaluand.judges.cards.scales import Readings, mean_of
from evaluand.metrics.calibration import assign_bins
from evaluand.metrics.judging.estimate import share

MOST_MISSES: Final = 20
MOST_LABELS: Final = 20
BINS: Final = 10
ABSTAINED: Final = "abstained"
DISAGREE: Final = "disagree"
_MOST_TEXT: Final = 2000  # characters of a text


def confusion_rows(readings: Readings, threshold: float | None) -> list[dict[str, Any]]:
    """How often each label of people met each one of the judge, in their order; none where these are numbers."""
    verdicts = _verdicts(readings, threshold)
    if verdicts is None:
        return []
    known = ~np.isnan(readings.majority)
    truth, said = readings.majority[known], verdicts[known]
    by_people, by_judge = np.unique(truth), np.unique(said)  # abstentions, which are NaN, come last
    if max(len(by_people), len(by_judge)) > MOST_LABELS:
        return []
    counts = Counter(zip(truth.tolist(), np.searchsorted(by_judge, said).tolist(), strict=True))
    return [
        {
            "people": readings.name(label),
            "judge": ABSTAINED if np.isnan(of) else readings.name(of),
            "n": counts[label, i],
        }
        for label in by_people.tolist()
        for i, of in enumerate(by_judge.tolist())
    ]


def _verdicts(readings: Readings, threshold: float | None) -> np.ndarray | None:
    """The first judgement of each item as a label; None where the judge gives numbers."""
    if readings.kind == "pairs":
        both = mean_of(np.stack([mean_of(readings.judge), mean_of(readings.swapped)], axis=1))
        return np.asarray(np.where(np.isnan(both), np.nan, 0.5 + 0.5 * np.sign(both - 0.5)))
    if readings.kind == "numbers" or not readings.judge.shape[1]:
        return None
    verdicts = to_verdicts(readings.judge, readings, threshold)[:, 0]
    return None if np.isnan(verdicts).all() else verdicts


def calibration_rows(readings: Readings, confidence: float) -> list[dict[str, Any]]:
    """The mean number of people by the judge's number, in bins of equally many answers; none of labels and pairs."""
    if readings.kind in ("labels", "pairs") or not readings.judge.shape[1]:
        return []
    said, truth = readings.judge[:, 0], readings.mean
    known = ~np.isnan(said) & ~np.isnan(truth)
    said, truth, example = said[known], truth[known], readings.example[known]
    if len(np.unique(said)) < _FEWEST_NUMBERS:
        return []
    least, most = float(min(said.min(), truth.min())), float(max(said.max(), truth.max()))
    bins = assign_bins((said - least) / (most - least), np.ones(len(said)), BINS, "mass")
    rows = []
    for number in np.unique(bins).tolist():
        own = bins == number
        found = share((truth[own] - least) / (most - least), example[own], confidence=confidence)
        value, low, high = (least + (most - least) * each for each in (found.value, found.low, found.high))
        numbers = {"people": value, "low": none_if_nan(low), "high": none_if_nan(high), "n": int(own.sum())}
        rows.append({"judge": float(said[own].mean())} | numbers)
    return rows


_FEWEST_NUMBERS: Final = 3


def miss_rows(items: Sequence[Item], readings: Readings, threshold: float | None) -> list[dict[str, Any]]:
    """The answers on which judge and people differ most, the worst first; equal ones in their order."""
    said, difference = _differences(readings, threshold)
    order = np.argsort(-np.nan_to_num(difference), kind="stable")
    worst = [place for place in order[:MOST_MISSES].tolist() if difference[place] > 0]
    truth = readings.mean if readings.kind == "numbers" else readings.majority
    return [
        {
            "id": items[place].id,
            "people": _name_truth(readings, place, float(truth[place])),
            "judge": said[place],
            "difference": None if readings.kind == "labels" else float(difference[place]),
            "explanation": _shorten(_explanation(items[place])),
            "texts": identity.encode(_shorten_all(items[place].texts)).decode(),
        }
        for place in worst
    ]


def _name_truth(readings: Readings, place: int, truth: float) -> str:
    """What people say together about an item or, where no label has a majority, each of their labels."""
    if not np.isnan(truth):
        return readings.name(truth)
    given = readings.people[place]
    counts = sorted(Counter(given[~np.isnan(given)].tolist()).items())
    names = [readings.name(label) + (f" {n} times" if n > 1 else "") for label, n in counts[:MOST_LABELS]]
    return f"{DISAGREE} ({', '.join(names)}{', …' if len(counts) > MOST_LABELS else ''})"


def _differences(readings: Readings, threshold: float | None) -> tuple[list[str], np.ndarray]:
    """The judgement on each item, and how far it differs from people's label."""
    if readings.kind == "pairs":
        orders = np.stack([mean_of(readings.judge), mean_of(readings.swapped)], axis=1)
        names = [" / ".join(readings.name(each) for each in row if each == each) for row in orders.tolist()]
        return names, np.abs(mean_of(orders) - readings.majority)
    first = readings.judge[:, 0] if readings.judge.shape[1] else np.full(len(readings.people), np.nan)
    names = [readings.name(each) for each in first.tolist()]
    if readings.kind == "labels":
        unequal = (first != readings.majority) & ~np.isnan(first) & ~np.isnan(readings.majority)
        return names, unequal.astype(np.float64)
    return names, np.abs(numbers_like_people(readings, threshold) - readings.mean)


def _explanation(item: Item) -> str | None:
    return next((each.explanation for each in (*item.judgements, *item.swapped) if each.explanation), None)


def _shorten(text: str | None) -> str | None:
    return text if text is None or len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def _shorten_all(texts: Mapping[str, Any]) -> dict[str, Any]:
    """Texts without their ends if they are long; other values are written as JSON first."""
    return {
        name: _shorten(value if isinstance(value, str) else identity.json_text(value))
        for name, value in texts.items()
        if value is not None
    }
