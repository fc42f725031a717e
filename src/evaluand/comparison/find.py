"""The evaluations and measures that names and ids refer to."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from shlex import quote

from evaluand.aggregation.aggregator import Aggregation, Measure, find_summary
from evaluand.core.errors import NotFound, SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.store.store import Store, resolve


def find_evaluations(store: Store, text: str) -> list[Evaluation]:
    """The evaluations that a name or id refers to.

    An evaluation refers to itself, a run to its newest evaluation, an aggregation to all evaluations it summarises.

    Raises:
        NotFound: nothing has this name.
        SpecError: it has no evaluations, or one of them is not finished.
    """
    return _read_evaluations(store, *_find_artifact(store, text))


def find_measures(store: Store, texts: Sequence[str]) -> list[Measure] | None:
    """The measures of the aggregations that are named, and of those that summarised the others.

    Returns:
        None where no aggregation is named.
    """
    found = [_find_artifact(store, text) for text in texts]
    if all(kind != "aggregations" for kind, _ in found):
        return None
    return [
        measure
        for kind, id in found
        for measure in (
            Aggregation(store, id).measures
            if kind == "aggregations"
            else declared_measures(_read_evaluations(store, kind, id))
        )
    ]


def declared_measures(evaluations: Iterable[Evaluation]) -> list[Measure]:
    """The measures that evaluations were summarised by: they say what the scores mean."""
    summaries = [summary for evaluation in evaluations if (summary := find_summary(evaluation))]
    return [measure for summary in {s.id: s for s in summaries}.values() for measure in summary.measures]


def _find_artifact(store: Store, text: str) -> tuple[str, str]:
    for kind in ("evaluations", "runs", "aggregations"):
        with suppress(NotFound):
            return resolve(store, text, kind)
    kind, id = resolve(store, text)
    raise SpecError(f"{text!r} is {kind[:-1]} {id[:12]}; name evaluations, runs or an aggregation to compare")


def _read_evaluations(store: Store, kind: str, id: str) -> list[Evaluation]:
    if kind == "runs":
        return [_newest_of_run(store, id)]
    ids = [id] if kind == "evaluations" else store.manifest(kind, id)["provenance"]["evaluations"]
    for one in ids:
        if not store.is_sealed("evaluations", one):
            raise SpecError(
                f"evaluation {one[:12]} is not finished",
                python="resume it before it is compared",
                command=f"continue with: evaluand resume {one[:12]}",
            )
    return [Evaluation(store, one) for one in ids]


def _newest_of_run(store: Store, run: str) -> Evaluation:
    sealed = (Evaluation(store, e) for e in store.ids("evaluations") if store.is_sealed("evaluations", e))
    of_run = [e for e in sealed if e.manifest["provenance"]["run"] == run]
    if of_run:
        return max(of_run, key=lambda e: str(e.manifest["created"]))
    file = (store.manifest("runs", run)["provenance"].get("origin") or {}).get("experiment")
    how = "evaluate it with:" if file else "evaluate it with an experiment file that has its task and scorers:"
    raise SpecError(
        f"run {run[:12]} has not been evaluated",
        python="see Evaluator.evaluate",
        command=f"{how} evaluand run {quote(file) if file else 'FILE'}",
    )
