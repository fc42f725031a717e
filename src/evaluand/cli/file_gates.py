"""The gates of an experiment file, checked by what is stored: nothing of the file is imported or run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evaluand.aggregation.aggregator import Aggregation
from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.cli.gates import gate_facts, has_results
from evaluand.comparison.checking import GateResult
from evaluand.comparison.gates import check_gates
from evaluand.core.errors import NotFound
from evaluand.core.files.yaml import Document
from evaluand.core.provenance import experiment_origin
from evaluand.experiment.gates import check_experiment_gates, choose_baseline, evaluate_match_gates
from evaluand.experiment.parsing import parse_file
from evaluand.matches.kind import MATCHES, RATINGS
from evaluand.matches.ratings.rating import Ratings
from evaluand.predictions.steps import name_in_experiment
from evaluand.report.facts.base import Facts
from evaluand.report.text import minute
from evaluand.store.folder_store import FolderStore

if TYPE_CHECKING:
    from evaluand.experiment.experiment import Experiment

SUFFIXES: Final = (".yaml", ".yml")


def is_experiment_file(name: str) -> bool:
    """Whether a name is that of a file that may be an experiment."""
    return name.endswith(SUFFIXES) and Path(name).is_file()


class FileResults(NamedTuple):
    """What is stored of the experiment in a file.

    Attributes:
        name: of the experiment.
        artifacts: the ids of its aggregation, or of its matches where nothing was graded.
        gates: the results of its gates by the stored scores and ratings.
        made: when these were made.
        is_changed: whether the file has changed since then.
    """

    name: str
    artifacts: list[str]
    gates: list[Facts]
    made: str
    is_changed: bool

    @property
    def text(self) -> str:
        """By which results the gates were checked."""
        changed = "; the file has changed since they were made" if self.is_changed else ""
        return f"gates checked by the results of {minute(self.made)} UTC{changed}"


def read_results(store: FolderStore, file: Path) -> FileResults:
    """What is stored of the experiment in a file, with its gates.

    Raises:
        SpecError: the file is no experiment, or a gate is wrong.
        NotFound: the experiment has not been run.
    """
    parts, document = parse_file(file)
    gates = parts.parse_gates(document)
    document.check()
    name = str(parts.name)
    of_matches = {place: gate for place, gate in gates.items() if parts.matches and gate.is_of_matches}
    of_metrics = {place: gate for place, gate in gates.items() if place not in of_matches}
    ids = {(ref.kind, ref.name): ref.id for ref in store.refs()}
    graded = ids.get((AGGREGATIONS, name))
    names = {each.name: name_in_experiment(name, each.name) for each in parts.matches.values()}
    matches = [ids[MATCHES, each] for each in names.values() if (MATCHES, each) in ids]
    if graded is None and not matches:
        raise NotFound(f"experiment {name!r} has no results; `evaluand run {file}` makes them")
    if graded is None and of_metrics:
        first = next(iter(of_metrics.values()))
        raise NotFound(f"gate {first.text!r} has no values to check; `evaluand run {file}` makes them")
    aggregation = None if graded is None else Aggregation(store, graded)
    evaluations = {} if aggregation is None else dict(zip(aggregation.labels, aggregation.evaluations, strict=True))
    measures = [measure for measure in aggregation.measures if measure.where is None] if aggregation else []
    allowed, results = parts.allow_unmeasured_judges, list[GateResult]()
    base = choose_baseline(gates.values(), parts.task_names)
    for place, gate in of_metrics.items():
        with document.at("gates", place):
            if has_results(gate, [*evaluations], parts.task_names, base):
                results += check_gates([gate], evaluations, base, measures=measures, allow_unmeasured_judges=allowed)
    document.check()
    ratings = {one: Ratings(store, ids[RATINGS, each]) for one, each in names.items() if (RATINGS, each) in ids}
    unrated = {one: "its systems have not been rated" for one in names if one not in ratings}
    results += evaluate_match_gates([*of_matches.values()], ratings, unrated, allow_unmeasured_judges=allowed)
    kind, artifacts = (MATCHES, matches) if graded is None else (AGGREGATIONS, [graded])
    read = [store.manifest(kind, id) for id in artifacts] + [each.manifest for each in evaluations.values()]
    origins = [origin for manifest in read if (origin := experiment_origin(manifest)) is not None]
    is_changed = bool(origins) and document.digest not in [origin.digest for origin in origins]
    made = max(str(manifest["created"]) for manifest in read)
    return FileResults(name, artifacts, gate_facts(results), made, is_changed)


def names_in_file(file: Path, model: str | None, experiment: Experiment) -> list[str]:
    """The tasks of a file, of which those of an experiment that was read with `--model` are a part."""
    return [*experiment.tasks] if model is None else parse_file(file)[0].task_names


def check_baselines(file: Path, tasks: Sequence[str], experiment: Experiment, store: FolderStore) -> None:
    """Refuses gates of a file whose baseline is neither one of its tasks nor in the store.

    Raises:
        SpecError: lists them with their lines.
    """
    document = Document(file)
    for i, gate in enumerate(experiment.gates):
        if gate.baseline is not None and not experiment.is_of_matches(gate):
            with document.at("gates", i):
                check_experiment_gates([gate], experiment, [*experiment.tasks, *tasks], store)
    document.check()
