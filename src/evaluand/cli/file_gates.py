"""The gates of an experiment file, checked by what is stored: nothing of the file is imported or run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from evaluand.aggregation.aggregator import Aggregation
from evaluand.cli.gates import gate_facts, has_results
from evaluand.comparison.gate_result import GateResult
from evaluand.comparison.gates import check_gates
from evaluand.comparison.ratings.stored import Ratings
from evaluand.comparison.rule import Gate
from evaluand.core.errors import NotFound
from evaluand.experiment.match_gates import evaluate_match_gates, is_match_gate
from evaluand.experiment.parsing import ValidParts, name_in_experiment, parse_file
from evaluand.report.facts.base import Facts
from evaluand.store.directory import DirectoryStore

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
    """

    name: str
    artifacts: list[str]
    gates: list[Facts]


def read_results(store: DirectoryStore, file: Path) -> FileResults:
    """What is stored of the experiment in a file, with its gates.

    Raises:
        SpecError: the file is no experiment, or a gate is wrong.
        NotFound: the experiment has not been run.
    """
    parts, document = parse_file(file)
    gates = []
    for place, text in parts.gates.items():
        with document.at("gates", place):
            gates.append(Gate.parse(text))
    document.check()
    name = str(parts.name)
    of_matches = [gate for gate in gates if parts.matches and is_match_gate(gate)]
    of_metrics = [gate for gate in gates if gate not in of_matches]
    ids = {(ref.kind, ref.name): ref.id for ref in store.refs()}
    graded = ids.get(("aggregations", name))
    names = {each.name: name_in_experiment(name, each.name) for each in parts.matches.values()}
    matches = [ids["matches", each] for each in names.values() if ("matches", each) in ids]
    if graded is None and not matches:
        raise NotFound(f"experiment {name!r} has no results; `evaluand run {file}` makes them")
    if graded is None and of_metrics:
        raise NotFound(f"gate {of_metrics[0].text!r} has no values to check; `evaluand run {file}` makes them")
    allowed = parts.allow_unmeasured_judges
    results = [] if graded is None else _check_metrics(Aggregation(store, graded), parts, of_metrics)
    ratings = {one: Ratings(store, ids["ratings", each]) for one, each in names.items() if ("ratings", each) in ids}
    unrated = {one: "its systems have not been rated" for one in names if one not in ratings}
    results += evaluate_match_gates(of_matches, ratings, unrated, allow_unmeasured_judges=allowed)
    return FileResults(name, matches if graded is None else [graded], gate_facts(results))


def _check_metrics(aggregation: Aggregation, parts: ValidParts, gates: Sequence[Gate]) -> list[GateResult]:
    evaluations = dict(zip(aggregation.labels, aggregation.evaluations, strict=True))
    checkable = [gate for gate in gates if has_results(gate, [*evaluations], parts.task_names)]
    measures = [measure for measure in aggregation.measures if measure.where is None]
    return check_gates(checkable, evaluations, measures=measures, allow_unmeasured_judges=parts.allow_unmeasured_judges)
