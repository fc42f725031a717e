"""Runs, as they are shown and written."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from evaluand.apps.recording.kind import RECORDINGS
from evaluand.core import identity
from evaluand.core.errors import EngineError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.report.facts.base import Facts
from evaluand.report.facts.evaluation import grades_facts
from evaluand.report.facts.run import run_facts
from evaluand.report.facts.unread import unread_facts
from evaluand.report.flat_rows import read_dataset, read_responses, read_spans
from evaluand.report.kinds.base import Choice, KindView, read_lane
from evaluand.report.terminal.artifact import run_body, spec_text
from evaluand.report.text import SHORT_ID
from evaluand.run.kind import RUNS
from evaluand.run.responses import LANE, row_digest
from evaluand.run.runner import Run
from evaluand.store.store import Manifest, Store
from evaluand.store.tables import RESPONSE_STATUSES
from evaluand.trace import STATUSES

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType


class RunView(KindView):
    """A run: calls with their answers, errors and spans."""

    name = RUNS
    notebook = "evaluand.report.html.notebook:run_html"
    takes_where = True

    def open(self, store: Store, id: str) -> Run:
        return Run(store, id)

    def recount(self, store: Store, id: str) -> tuple[str, object]:
        state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
        counts: Counter[str] = Counter()
        for row in Run(store, id):
            state.update(row_digest(row.index, row.replication, row.fold, row.content))
            counts[row.status] += 1
        return state.hexdigest(), dict(counts)

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        run = self.open(store, id)
        facts = count_losses(store, run.manifest["provenance"].get("recording"))
        facts |= run_facts(run, choice.examples, failed=choice.failed, index=choice.index, where=choice.where)
        facts["unread"] = unread_facts(run, None)
        if choice.index is not None:
            facts["grades"] = _read_grades(store, head["used_by"] or (), choice.index)
        return facts

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        return run_body(facts)

    def describe(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield "task", spec_text(spec["task"])
        yield "asked", f"{spec['examples']:,} examples × {spec['replications']:,}, seed {spec['seed']}"

    def progress(self, store: Store, manifest: Manifest) -> Iterator[Facts]:
        spec = manifest["spec"]
        yield read_lane(store, manifest, LANE, "calls", spec["examples"] * spec["replications"])

    def tables(self, artifact: Any) -> list[str]:
        return ["responses", "spans", "examples"]

    def rows(self, artifact: Any, table: str) -> Iterator[pa.RecordBatch]:
        if table == "examples":
            return read_dataset(artifact.dataset)
        return read_responses(artifact) if table == "responses" else read_spans(artifact)

    def statuses(self, table: str) -> Sequence[str]:
        return {"responses": RESPONSE_STATUSES, "spans": STATUSES}.get(table, ())

    def dataset(self, artifact: Any) -> Dataset | None:
        return artifact.dataset  # type: ignore[no-any-return]


def count_losses(store: Store, recording: Any) -> Facts:
    """How many records a recording has lost, as far as that is known; empty if it is not in the store."""
    made: Facts = {}
    if isinstance(recording, str):
        with suppress(EngineError):  # `verify` reports it
            made = store.manifest(RECORDINGS, recording)["provenance"]
    return {name: made[name] for name in ("damaged_lines", "missing_records") if name in made}


def _read_grades(store: Store, used_by: Sequence[Facts], index: int) -> dict[str, list[Facts]]:
    """The grades of an example in the evaluations of its run that have names, or in all if none has."""
    graded = [use for use in used_by if store.is_sealed(EVALUATIONS, use["id"])]
    found = {}
    for use in [use for use in graded if use["name"]] or graded:
        for scorer, rows in grades_facts(Evaluation(store, use["id"]), index).items():
            found[f"{use['name'] or use['id'][:SHORT_ID]} · {scorer}"] = rows
    return found
