"""`evaluand drift`: tests whether two datasets, runs or evaluations come from one distribution."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from click.exceptions import Exit

from evaluand.cli.command import argument, make_command, option
from evaluand.cli.gates import GATE_FAILED
from evaluand.cli.options import confidence_option, json_option, store_option
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


@dataclass(frozen=True, kw_only=True)
class _Options:
    first: str = argument(metavar="A")
    second: str = argument(metavar="B")
    columns: tuple[str, ...] = option(
        "Only this column; repeatable.  [default: all that both have]", "--column", metavar="NAME"
    )
    id_: str | None = option("Of files: rows of A and B with the same id are a pair.", "--id", metavar="COLUMN")
    cluster: str | None = option("Of files: rows with the same value belong together.", metavar="COLUMN")
    confidence: float = confidence_option
    fail_on_drift: bool = option("Exit with 3 if there is drift, or if nothing can be said.")
    folder: Place = store_option
    as_json: bool = json_option


@make_command("drift", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Test whether two datasets, runs or evaluations come from one distribution.

    Name files, or what is stored: datasets, runs (their inputs and outputs) or evaluations (their scores). Every column
    is tested, and a classifier is asked to tell A and B apart by all of them together; p values are adjusted for all
    tests. Runs over one dataset are compared by example, and only in their outputs.
    """
    roles = {name: value for name, value in (("id", options.id_), ("cluster", options.cluster)) if value is not None}
    store = open_store(options.folder)
    with show_notes():
        samples = [_read(store, text, roles) for text in (options.first, options.second)]
        drift = measure_drift(
            *samples,
            columns=options.columns or None,
            confidence=options.confidence,
            labels=_labels(options.first, options.second),
        )
    facts = drift.to_dict()
    if options.as_json:
        print_json(facts)
    else:
        show(drift_table(facts))
    if options.fail_on_drift and (drift.drifted or not drift.is_tested):
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
