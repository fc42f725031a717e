"""Fairness criteria: which rates of a decision are to be alike in all groups.

A criterion is a rule about metrics by group and no metric of its own: each is the disparities of one or two metrics, so
that a report shows the rates of every group beside how far they lie apart. No system that errs can fulfil all of them
where the groups' base rates differ (J. Kleinberg, S. Mullainathan & M. Raghavan, "Inherent trade-offs in the fair
determination of risk scores", ITCS 2017): which one matters is a question about the decision, not about the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from evaluand import registry
from evaluand.aggregation import Measure
from evaluand.disparity import Kind
from evaluand.errors import SpecError
from evaluand.registry import nearest

Criterion = Literal[
    "demographic_parity", "equal_opportunity", "equalized_odds", "predictive_parity", "calibration_by_group"
]

CRITERIA: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "demographic_parity": ("selection_rate",),
        "equal_opportunity": ("recall",),
        "equalized_odds": ("recall", "false_positive_rate"),
        "predictive_parity": ("precision",),
        "calibration_by_group": ("expected_calibration_error",),
    }
)
"""Criterion → the kinds of metrics that are to be alike.

- demographic parity: as many are given the positive label (C. Dwork et al., ITCS 2012)
- equal opportunity: as many of those that are positive are found; equalized odds: and as many of the others are wrongly
  taken for some (M. Hardt, E. Price & N. Srebro, NeurIPS 2016)
- predictive parity: as many of those given the label are right (A. Chouldechova, Big Data 5, 2017)
- calibration by group: confidence is as far from what comes true; reads the confidence of predictions
"""


def measures_of(
    criterion: Criterion,
    by: str | Sequence[str | Sequence[str]],
    *,
    scorer: str = "prediction",
    label: str | int | bool | None = None,
    disparities: Kind | Sequence[Kind] = ("difference", "ratio"),
    confidence: float = 0.95,
) -> list[Measure]:
    """The measures of a criterion, for an experiment or an `Aggregator`.

    Args:
        criterion: one of `CRITERIA`.
        by: attributes whose groups are compared, as of `Measure`.
        scorer: whose table is read: one of the kind `prediction`.
        label: the class that is decided for, the positive one; of bools `true` and of integers 1 if not given.
        disparities: what is made of the groups' rates.
        confidence: of all intervals.

    Raises:
        SpecError: there is no such criterion.

    Example:
        >>> [measure.metric.kind for measure in measures_of("equalized_odds", by="race", label="hired")]
        ['recall', 'false_positive_rate']
    """
    if criterion not in get_args(Criterion):
        hint = nearest(str(criterion), CRITERIA)
        raise SpecError(f"no criterion is called {criterion!r}{hint}; there are {', '.join(CRITERIA)}")
    made = [registry.find("metrics", kind)(**_parameters(kind, label, confidence)) for kind in CRITERIA[criterion]]
    return [Measure(scorer, metric, by, disparities, criterion) for metric in made]  # type: ignore[arg-type]


def _parameters(kind: str, label: str | int | bool | None, confidence: float) -> dict[str, Any]:
    named = {} if label is None or kind == "expected_calibration_error" else {"label": label}
    return {**named, "confidence": confidence}
