"""Fairness criteria: which rates of a decision are to be alike in all groups.

A criterion is a rule about metrics by group and no metric of its own: each is the disparities of one or two metrics, so
that a report shows the rates of every group beside how far they lie apart. No system that errs can fulfil all of them
where the groups' base rates differ (J. Kleinberg, S. Mullainathan & M. Raghavan, "Inherent trade-offs in the fair
determination of risk scores", ITCS 2017): which one matters is a question about the decision, not about the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.disparity import Kind
from evaluand.core import registry
from evaluand.core.errors import SpecError
from evaluand.core.registry import nearest
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
"""Criterion → the kinds of metrics that are to be alike.

- demographic parity: as many are given the positive label (C. Dwork et al., ITCS 2012)
- equal opportunity: as many of those that are positive are found; equalized odds: and as many of the others are wrongly
  taken for some (M. Hardt, E. Price & N. Srebro, NeurIPS 2016)
- predictive parity: as many of those given the label are right (A. Chouldechova, Big Data 5, 2017)
- calibration by group: confidence is as far from what comes true; with a label, the probability of that class
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
) -> list[Measure]:
    """The measures of a criterion, for an experiment or an `Aggregator`.

    Args:
        criterion: one of `CRITERIA`.
        by: attributes whose groups are compared, as of `Measure`.
        scorer: whose table is read: one of the kind `prediction`.
        label: the class that is decided for, the positive one; of bools `true` and of integers 1 if not given. The
            calibration is that of its probability, and without it that of the confidence in whatever is predicted.
        scored_by: of calibration, what that probability is read from, see `OfScores`; `predicted` if not given.
        disparities: what is made of the groups' rates.
        confidence: of all intervals.

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
        raise SpecError(f"{criterion} is about decisions and reads no scores; leave scored_by={scored_by!r} out")
    given = {"label": label, "scored_by": scored_by}
    parameters = {name: value for name, value in given.items() if value is not None} | {"confidence": confidence}
    made = [registry.find("metrics", kind)(**parameters) for kind in CRITERIA[criterion]]
    return [Measure(scorer, metric, by, disparities, criterion) for metric in made]  # type: ignore[arg-type]


def check_decided(measure: Measure, labels: pa.Array) -> None:
    """Refuses a criterion of decisions that does not say for which class they are, where the labels do not tell.

    Args:
        measure: of a criterion, or any other.
        labels: a column of truths.

    Raises:
        SpecError: names some of the classes.

    Example:
        >>> [measure] = measures_of("demographic_parity", by="race")
        >>> check_decided(measure, pa.array(["in", "out"]))
        Traceback (most recent call last):
        evaluand.SpecError: demographic_parity is about the class decided for; say which, as in label='in'
    """
    decides = measure.criterion is not None and measure.criterion != "calibration_by_group"
    kind = labels.type.value_type if pa.types.is_dictionary(labels.type) else labels.type
    if not decides or getattr(measure.metric, "label", None) is not None or contents(kind) not in ("integers", "text"):
        return
    known = pc.unique(labels.drop_null()).to_pylist()
    if any(label not in (0, 1) for label in known):
        raise SpecError(f"{measure.criterion} is about the class decided for; say which, as in label={min(known)!r}")
