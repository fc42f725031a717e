"""Where the spread of a pilot's differences comes from: examples, replications, prompts or seeds, judges.

A pilot may compare the same two systems several times: with other prompts or seeds (its *variants*), and by several
judges. More examples do not remove what the variants or the judges that were chosen happen to favour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.comparison.pairing import PairedRows
from evaluand.metrics.stats.variance_components import Effect, variance_components

EXAMPLES, VARIANTS, JUDGES, REPLICATIONS = "examples", "variants", "judges", "replications"
_FACETS: Final = (EXAMPLES, VARIANTS, JUDGES, REPLICATIONS)


@dataclass(frozen=True)
class VarianceSplit:
    """The variance of differences between two systems, by its sources.

    Attributes:
        sizes: how many variants, judges and replications the pilot has.
        components: source → the variance of the difference of one answer to one example, by one judge.
        options: for some designs, the examples of the same power, the calls of one system, their judgements, and the
            standard error that no number of examples removes, for variants and judges in general, not just these.
    """

    sizes: Mapping[str, int]
    components: Mapping[str, float]
    options: tuple[Mapping[str, Any], ...]

    @property
    def design(self) -> str:
        """How often each example is asked and judged in the pilot, after the number of examples."""
        parts = [
            f"{word} {self.sizes[facet]} {name}"
            for facet, word, name in (
                (REPLICATIONS, "with", "answers each"),
                (VARIANTS, "under", "variants"),
                (JUDGES, "by", "judges"),
            )
            if self.sizes[facet] > 1
        ]
        return "".join(f" {part}" for part in parts)

    @property
    def verdict(self) -> str:
        """What would help, in a sentence or two."""
        return "; ".join([*self._verdicts()])

    def _verdicts(self) -> Iterator[str]:
        total = sum(self.components.values()) or 1.0
        shares = {source: 100 * each / total for source, each in self.components.items()}
        own = [each for each in self.options if all(each[name] == self.sizes[name] for name in (VARIANTS, JUDGES))]
        if self.sizes[REPLICATIONS] > 1:
            calls = {each[REPLICATIONS]: each["calls"] for each in own}
            best = min(calls, key=lambda k: (calls[k], k))
            of_replications = sum(share for source, share in shares.items() if REPLICATIONS in source)
            advice = (
                "more examples with one answer each are worth more than replications"
                if best == 1
                else f"{best} replications need fewest calls"
            )
            yield f"{of_replications:.0f} % of the variance is between replications of one example: {advice}"
        for facet in (VARIANTS, JUDGES):
            if self.sizes[facet] > 1:
                share = sum(share for source, share in shares.items() if facet in source and EXAMPLES not in source)
                yield f"{share:.0f} % is between {facet}, estimated from {self.sizes[facet]}"
        if left := own[0]["remaining_error"] if own else 0.0:
            several = " and ".join(facet for facet in (VARIANTS, JUDGES) if self.sizes[facet] > 1)
            yield f"for {several} in general, not just these, more examples leave a standard error of {left:.2g}"


def split_variance(rows: Sequence[Sequence[PairedRows]], examples: int) -> VarianceSplit | None:
    """The sources of the variance of differences; None if there is no facet besides examples, or replications differ.

    Args:
        rows: by variant and judge, the same rows, of the baseline and of the new system.
        examples: how many the pilot's design needs.
    """
    differences = [[one.value[1] - one.value[0] for one in of_variant] for of_variant in rows]
    example, replication = rows[0][0].index[0], rows[0][0].replication
    _, count = np.unique(example, return_counts=True)
    k = int(count.max(initial=0))
    order = np.lexsort((replication, example))
    values = np.array(differences)[:, :, order]
    sizes = {VARIANTS: values.shape[0], JUDGES: values.shape[1], REPLICATIONS: k}
    if k < 1 or (count < k).any() or len(count) < _FEWEST or max(sizes.values()) < 2:
        return None
    by_facet = np.moveaxis(values.reshape(*values.shape[:2], len(count), k), 2, 0)
    used = [facet for facet, n in zip(_FACETS, by_facet.shape, strict=True) if n > 1]
    nested = {REPLICATIONS: [facet for facet in (EXAMPLES, VARIANTS) if facet in used]}
    found = variance_components(np.squeeze(by_facet, tuple(_of_one(by_facet))), used, nested)
    components = {" × ".join(_named(effect)): each for effect, each in found.items()}
    options = tuple(_options(found, sizes, examples))
    return VarianceSplit(sizes, components, options)


def _of_one(values: np.ndarray) -> Iterator[int]:
    return (axis for axis, n in enumerate(values.shape) if n == 1)


def _named(effect: Effect) -> Effect:
    """An effect without the facets in which its replications are nested."""
    return tuple(facet for facet in effect if facet in (JUDGES, REPLICATIONS)) if REPLICATIONS in effect else effect


def _options(components: Mapping[Effect, float], sizes: Mapping[str, int], examples: int) -> Iterator[dict[str, Any]]:
    k = sizes[REPLICATIONS]
    designs = [{**sizes, REPLICATIONS: each} for each in (sorted({1, 2, 4, 8, k}) if k > 1 else [1])]
    designs += [{**sizes, facet: 2 * sizes[facet]} for facet in (VARIANTS, JUDGES) if sizes[facet] > 1]
    before = _per_example(components, sizes)
    for design in designs:
        needed = max(math.ceil(examples * _per_example(components, design) / before), 1) if before else examples
        calls = needed * design[VARIANTS] * design[REPLICATIONS]
        yield {
            **design,
            "examples": needed,
            "calls": calls,
            "judgements": calls * design[JUDGES],
            "remaining_error": math.sqrt(_remaining(components, design)),
        }


def _per_example(components: Mapping[Effect, float], design: Mapping[str, int]) -> float:
    """The part of the variance of the mean that examples divide, times their number."""
    return sum(each / _levels(effect, design) for effect, each in components.items() if EXAMPLES in effect)


def _remaining(components: Mapping[Effect, float], design: Mapping[str, int]) -> float:
    """The part that they do not divide."""
    return sum(each / _levels(effect, design) for effect, each in components.items() if EXAMPLES not in effect)


def _levels(effect: Effect, design: Mapping[str, int]) -> int:
    return math.prod(design[facet] for facet in effect if facet != EXAMPLES)


def align(rows: Sequence[PairedRows]) -> list[PairedRows]:
    """The rows that all have, known on all sides, in the same order.

    Args:
        rows: of the same evaluations, by one scorer each.
    """
    known = [one.take(np.all(one.known, axis=0)) for one in rows]
    keys = [np.stack([one.index[0], one.replication], axis=1).astype(np.int64) for one in known]
    shared = set.intersection(*({*map(tuple, each.tolist())} for each in keys))
    chosen = []
    for one, key in zip(known, keys, strict=True):
        mask = np.fromiter((tuple(each) in shared for each in key.tolist()), bool, len(key))
        own = one.take(mask)
        chosen.append(own.take(np.lexsort((own.replication, own.index[0]))))
    return chosen


_FEWEST: Final = 2
