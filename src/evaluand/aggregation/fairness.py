"""Fairness criteria: the rates of a decision that should be equal in all groups.

A criterion is not a metric: it is the disparities of one or two metrics, so that a report shows the rates of every
group with their disparities. No system that makes errors can satisfy all criteria where the base rates of the groups
differ (J. Kleinberg, S. Mullainathan & M. Raghavan, "Inherent trade-offs in the fair determination of risk scores",
ITCS 2017): which one matters is a question about the decision, not about the data.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.disparity import Kind
from evaluand.aggregation.group_rules import GroupRules
from evaluand.core import registry
from evaluand.core.errors import SpecError, nearest
from evaluand.metrics.base.class_scores import ScoredBy
from evaluand.metrics.base.labels import contents

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
"""Criterion → the kinds of metrics that should be equal in all groups.

- demographic parity: equal shares get the positive label (C. Dwork et al., ITCS 2012)
- equal opportunity: equal shares of the positive rows are found; equalized odds: and equal shares of the negative rows
  are mistaken for positive (M. Hardt, E. Price & N. Srebro, NeurIPS 2016)
- predictive parity: equal shares of the rows with the positive label are right (A. Chouldechova, Big Data 5, 2017)
- calibration by group: the confidence deviates equally from the truth; with a label, the probability of that class
"""


def measures_of(
    criterion: Criterion,
    by: str | Sequence[str | Sequence[str]],
    *,
    scorer: str = "prediction",
    label: str | int | bool | None = None,
    scored_by: ScoredBy | None = None,
    disparities: Kind | Sequence[Kind] = ("difference", "ratio"),
    confidence: float = 0.95,
    rules: GroupRules | None = None,
) -> list[Measure]:
    """The measures of a criterion, for an experiment or an `Aggregator`.

    Args:
        criterion: one of `CRITERIA`.
        by: attributes whose groups are compared, as of `Measure`.
        scorer: the scorer whose table is read, of the kind `prediction`.
        label: the positive class of the decision; by default `true` of bools and 1 of integers. The
            calibration is that of its probability, or without a label that of the confidence in the prediction.
        scored_by: the source of the probability for calibration, see `OfScores`; by default `predicted`.
        disparities: the kinds of disparities between the groups.
        confidence: the level of all intervals.
        rules: which groups disparities compare; by default the two that differ most.

    Raises:
        SpecError: there is no such criterion, or it reads no scores.

    Example:
        >>> [measure.metric.kind for measure in measures_of("equalized_odds", by="race", label="hired")]
        ['recall', 'false_positive_rate']
    """
    if criterion not in get_args(Criterion):
        hint = nearest(str(criterion), CRITERIA)
        raise SpecError(f"no criterion is called {criterion!r}{hint}; there are {', '.join(CRITERIA)}")
    if scored_by is not None and criterion != "calibration_by_group":
        raise SpecError(f"{criterion} applies to decisions and reads no scores; remove scored_by={scored_by!r}")
    options = {"label": label, "scored_by": scored_by}
    parameters = {name: value for name, value in options.items() if value is not None} | {"confidence": confidence}
    metrics = [registry.find("metrics", kind)(**parameters) for kind in CRITERIA[criterion]]
    return [Measure(scorer, metric, by, disparities, criterion, rules=rules) for metric in metrics]  # type: ignore[arg-type]


def check_decided(measure: Measure, labels: pa.Array) -> None:
    """Refuses a criterion of decisions without a positive label, where the labels do not imply one.

    Args:
        measure: of a criterion, or any other.
        labels: a column of truths.

    Raises:
        SpecError: names some of the classes.

    Example:
        >>> [measure] = measures_of("demographic_parity", by="race")
        >>> check_decided(measure, pa.array(["in", "out"]))
        Traceback (most recent call last):
        evaluand.SpecError: demographic_parity needs the positive class; name it, as in label='in'
    """
    decides = measure.criterion is not None and measure.criterion != "calibration_by_group"
    kind = labels.type.value_type if pa.types.is_dictionary(labels.type) else labels.type
    if not decides or getattr(measure.metric, "label", None) is not None or contents(kind) not in ("integers", "text"):
        return
    known = pc.unique(labels.drop_null()).to_pylist()
    if any(label not in (0, 1) for label in known):
        raise SpecError(f"{measure.criterion} needs the positive class; name it, as in label={min(known)!r}")
