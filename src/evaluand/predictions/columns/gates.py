"""Gates on the values of systems whose predictions exist already, of which `baseline` is the first."""

from collections.abc import Sequence
from typing import Any

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.checking import GateResult
from evaluand.comparison.gates import check_gates
from evaluand.comparison.rule import Gate
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
    gates: Sequence[Gate], results: Results, measures: Sequence[Measure], **options: Any
) -> list[GateResult]:
    """The results of gates; of several systems the first is the baseline.

    Args:
        options: more of `check_gates`.

    Raises:
        SpecError: a gate compares, and there is one system.
    """
    first, *others = results.evaluations
    return check_gates(gates, results.evaluations, first if others else None, measures=measures, **options)
