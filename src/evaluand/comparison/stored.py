"""The stored comparison that belongs to what is shown: that of the same evaluations by the metrics they declare.

The same evaluations may also have been compared by other metrics, such as those of another experiment over the same
runs; these comparisons answer another question.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from evaluand.aggregation.aggregator import Aggregation, Measure, read_measure, shared_ranges, with_ranges
from evaluand.comparison.comparing import Comparison
from evaluand.comparison.measures import definition, resolve_measures
from evaluand.core import identity
from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.store.store import Manifest, find_sealed


def find_comparison(evaluations: Sequence[Evaluation], summaries: Iterable[Aggregation]) -> Comparison | None:
    """The stored comparison of exactly these evaluations by exactly the metrics by which `compare` compares them.

    Of several the one with most examples, then the newest.

    Args:
        summaries: declare the metrics; without any, those that `compare` takes without a declaration are meant.
    """
    store, asked = evaluations[0].store, _AskedMetrics(evaluations, [*summaries])
    digests = Counter(evaluation.digest for evaluation in evaluations)
    sealed = find_sealed(store, "comparisons", evaluations[0].digest)
    of_these = (manifest for manifest in sealed if Counter(manifest["spec"]["evaluations"]) == digests)
    found = [(*rank, manifest["id"]) for manifest in of_these if (rank := asked.rank(manifest)) is not None]
    return Comparison(store, max(found)[-1]) if found else None


class _AskedMetrics:
    """The metrics by which evaluations are to be compared; those of the user's code are known by their spec only."""

    def __init__(self, evaluations: Sequence[Evaluation], summaries: Sequence[Aggregation]) -> None:
        self.ranges = shared_ranges(evaluations)
        declared = [measure for summary in summaries for measure in summary.measures]
        specs = [spec for summary in summaries for spec in summary.manifest["spec"]["measures"]]
        self.own_code = {_encode(spec) for spec in specs if read_measure(spec) is None and "where" not in spec}
        self.declared = self._definitions(declared)
        self.compared = set[tuple[str, str]]()
        try:
            with warnings.catch_warnings(action="ignore", category=EvaluandWarning):
                self.compared = self._definitions(resolve_measures(evaluations, None, None, None, declared).compared)
        except SpecError:  # they share no scorer that returns numbers, but perhaps a metric of the user's code
            pass

    def rank(self, comparison: Manifest) -> tuple[int, int, str] | None:
        """The place of a comparison among those by these metrics; None if it is by others."""
        specs = comparison["spec"]["measures"]
        own_code = {_encode(spec) for spec in specs if read_measure(spec) is None}
        known = self._definitions(measure for spec in specs if (measure := read_measure(spec)) is not None)
        if own_code:
            suits = own_code <= self.own_code and known <= self.declared | self.compared
        else:
            suits = known == self.compared
        return (len(own_code), comparison["spec"]["flips"], str(comparison["created"])) if suits else None

    def _definitions(self, measures: Iterable[Measure]) -> set[tuple[str, str]]:
        return {(each.scorer, definition(each.metric)) for each in with_ranges(measures, self.ranges)}


def _encode(spec: Any) -> bytes:
    """The scorer and the metric of a stored measure."""
    return identity.encode([spec["scorer"], spec["metric"]])
