"""`evaluand drift`: tests whether two datasets, runs or evaluations come from one distribution."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from click.exceptions import Exit

from evaluand.cli.gates import GATE_FAILED
from evaluand.cli.options import confidence_option, json_option, repeatable, store_option
from evaluand.cli.output import print_json, show
from evaluand.cli.progress import show_notes
from evaluand.comparison.drift.drift import measure_drift
from evaluand.core.errors import SpecError
from evaluand.core.labels import short_labels
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.report.terminal.drift import drift_table
from evaluand.run.runner import Run
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.kinds import singular
from evaluand.store.opening import open_store
from evaluand.store.store import resolve

_EXAMPLES = """\b
Examples:
  evaluand drift january.csv june.csv
  evaluand drift january.csv june.csv --column age --column country --cluster customer
  evaluand drift support/base support/mine
  evaluand drift train.parquet live.parquet --fail-on-drift --json
"""


@click.command("drift", epilog=_EXAMPLES)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@repeatable("--column", "columns", metavar="NAME", help="Only this column; repeatable.  [default: all that both have]")
@click.option("--id", "id_", metavar="COLUMN", help="Of files: rows of A and B with the same id are a pair.")
@click.option("--cluster", metavar="COLUMN", help="Of files: rows with the same value belong together.")
@confidence_option
@click.option("--fail-on-drift", is_flag=True, help="Exit with 3 if there is drift, or if nothing can be said.")
@store_option
@json_option
def command(
    first: str,
    second: str,
    columns: tuple[str, ...],
    id_: str | None,
    cluster: str | None,
    confidence: float,
    fail_on_drift: bool,
    folder: Place,
    as_json: bool,
) -> None:
    """Test whether two datasets, runs or evaluations come from one distribution.

    Name files, or what is stored: datasets, runs (their inputs and outputs) or evaluations (their scores). Every column
    is tested, and a classifier is asked to tell A and B apart by all of them together; p values are adjusted for all
    tests. Runs over one dataset are compared by example, and only in their outputs.
    """
    roles = {name: value for name, value in (("id", id_), ("cluster", cluster)) if value is not None}
    store = open_store(folder)
    with show_notes():
        samples = [_read(store, text, roles) for text in (first, second)]
        drift = measure_drift(*samples, columns=columns or None, confidence=confidence, labels=_labels(first, second))
    facts = drift.to_dict()
    if as_json:
        print_json(facts)
    else:
        show(drift_table(facts))
    if fail_on_drift and (drift.drifted or not drift.is_tested):
        raise Exit(GATE_FAILED)


def _labels(*texts: str) -> list[str]:
    return short_labels([Path(text).name if Path(text).exists() else text for text in texts], texts)


def _read(store: FolderStore, text: str, roles: dict[str, str]) -> Any:
    """A file, or what has this name or id in the store."""
    if Path(text).exists():
        return Dataset.from_file(text, **roles)
    kind, id = resolve(store, text)
    if kind not in _STORED:
        raise SpecError(f"{text!r} is {singular(kind)} {id[:12]}; name two datasets, two runs or two evaluations")
    if roles:
        raise SpecError(f"{text!r} is stored, and has the roles that it was stored with; leave out --id and --cluster")
    return _STORED[kind](store, id)


_STORED: Final[dict[str, Callable[[FolderStore, str], Any]]] = {
    "datasets": Dataset.stored,
    "runs": Run,
    "evaluations": Evaluation,
}
