"""Gates on the values of systems whose predictions exist already, of which `baseline` is the first."""

from collections.abc import Callable, Sequence
from typing import Any

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.checking import GateResult
from evaluand.comparison.gates import check_gates
from evaluand.comparison.rule import BASELINE, Gate
from evaluand.metrics.base.metric import Metric, Missing
from evaluand.predictions.columns.notes import Notes
from evaluand.predictions.columns.tables import NamedTable
from evaluand.predictions.steps import Results


def check_gate_columns(
    gates: Sequence[Gate], base: NamedTable, by: Sequence[str | Sequence[str]], notes: Notes
) -> None:
    """Refuses a gate on a group of a column that is not grouped by."""
    grouped = {name for each in by for name in ([*each.split(","), each] if isinstance(each, str) else each)}
    for gate in gates:
        for name in (*dict(gate.where), *gate.by, *gate.given):
            if name in base.table.column_names and name not in {each.strip() for each in grouped}:
                raise gate.fault(f"values are not grouped by {name!r}; add {notes.option('by', name)}")


def check_system_gates(
    gates: Sequence[Gate],
    results: Results,
    measures: Sequence[Measure],
    metric_by_name: Callable[[str], Metric] | None = None,
    missing: Missing | None = None,
) -> list[GateResult]:
    """The results of gates, which judge candidates: of several systems the first is `baseline` and is not judged.

    Args:
        metric_by_name: the metric of a name that no measure has; see `check_gates`.
        missing: what happens to rows without a score, in place of the default of gates.

    Raises:
        SpecError: a gate compares, and there is one system.
    """
    checked: list[GateResult] = []
    options: dict[str, Any] = {"measures": measures, "metric_by_name": metric_by_name, "missing": missing}
    (label, first), *others = results.evaluations.items()
    for gate in sorted(gates, key=lambda gate: gate.baseline is not None):
        if gate.baseline is not None and not others:
            raise gate.fault("compares two systems; name a second one")
        is_other = gate.baseline not in (None, BASELINE, label)
        candidates = {label: first, **dict(others)} if is_other or not others else dict(others)
        baselines = None if is_other or not others else {label: first}
        checked += check_gates([gate], candidates, baselines, **options)
    return checked
