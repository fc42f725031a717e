"""`Scores`: a score file under fairical's names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from evaluand.interop.fairical.solutions import Solutions
from evaluand.tradeoff.arguments import check_type
from evaluand.tradeoff.confidences import Confidences, Thresholds
from evaluand.tradeoff.files.metrics import parse_metrics
from evaluand.tradeoff.files.scores import ScoreFile
from evaluand.tradeoff.files.solutions import FROM
from evaluand.tradeoff.points import Tradeoff
from evaluand.tradeoff.solving import solve

_OF_SCORES: Final = frozenset({"prec", "rec", "avg_prec", "f1"})
"""Utilities whose default thresholds are all finite scores, not the corners of the ROC curve."""


@dataclass(frozen=True)
class Scores(ScoreFile):
    """Scores of one or several models on the same samples; fields and errors as of `ScoreFile`.

    Example:
        >>> scores = Scores([[0.2, 0.7, 0.6, 0.9]], [0, 1, 0, 1], {"sex": ["f", "f", "m", "m"]})
        >>> scores.identifiers
        ['model-1']
        >>> scores.solutions_a_posteriori(["acc", "eod+sex"], [0.5, 0.65])["acc"]
        [0.75, 1.0]
    """

    def solutions_a_posteriori(
        self, metrics: Sequence[str], thresholds: Thresholds | int | Sequence[float] | None = None
    ) -> Solutions:
        """The points of all models at thresholds that come from these scores.

        Args:
            metrics: such as `acc`, `eod+race`, `minmaxd+f1+race`.
            thresholds: `every`, `roc`, a number of them, or a list (see `Confidences.thresholds`). None for those of
                fairical: the corners of the ROC curve; but all scores, without the infinite threshold, if one of
                `prec`, `rec`, `avg_prec` and `f1` is among the metrics, so that more thresholds may give a smaller
                hypervolume.

        Raises:
            SpecError: there is no such metric or attribute.
        """
        if thresholds is None:
            return Solutions.of_points(_solve_by_default(self.confidences, metrics))
        return Solutions.a_posteriori(self.confidences, metrics, thresholds)

    def solutions_a_priori(
        self,
        metrics: Sequence[str],
        prior_solutions: Solutions,
        dominated: bool | None = None,
        *,
        nds_from: str | None = None,
    ) -> Solutions:
        """The points of these scores at the models and thresholds of an earlier solution.

        Args:
            metrics: such as `acc` and `eod+race`; those of the earlier solution may be others.
            prior_solutions: the earlier one; its models are matched by name.
            dominated: use only its dominated points, or only the others; None for all.
            nds_from: the name of the system that the thresholds come from; by default that of the earlier solution.

        Raises:
            SpecError: there is no such metric or attribute, or a model of the earlier solution has no scores.
        """
        earlier = check_type("prior_solutions", prior_solutions, Solutions, "load a file by Solutions.load")
        found = Solutions.a_priori(self.confidences, metrics, earlier, dominated)
        return found if nds_from is None else replace(found, metadata={**found.metadata, FROM: nds_from})


def _solve_by_default(confidences: Confidences, metrics: Sequence[str]) -> Tradeoff:
    """The points at fairical's default thresholds."""
    objectives = parse_metrics(metrics)
    if not any(one.name in _OF_SCORES for one in objectives):
        return solve(confidences, objectives, "roc", "zero")
    points = solve(confidences, objectives, "every", "zero")
    order = np.lexsort((points.threshold, points.model))
    return points.take(order[np.isfinite(points.threshold[order])])
