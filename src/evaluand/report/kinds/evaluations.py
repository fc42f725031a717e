"""Evaluations, as they are shown and written."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluand.comparison.measures import declared_measures
from evaluand.core import identity
from evaluand.core.errors import Fault
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.score_tables import row_texts
from evaluand.judges.stored_rubric import find_changed_rubrics
from evaluand.report.facts.base import Facts
from evaluand.report.facts.evaluation import evaluation_facts, example_facts
from evaluand.report.facts.judges import judge_facts
from evaluand.report.facts.unread import unread_facts
from evaluand.report.flat_rows import read_scores
from evaluand.report.kinds.base import Choice, KindView, read_lane
from evaluand.report.terminal.artifact import evaluation_body, spec_text
from evaluand.report.terminal.cells import CELL
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.kind import RUNS
from evaluand.store.store import Manifest, Store
from evaluand.store.tables import SCORE_STATUSES

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType


class EvaluationView(KindView):
    """An evaluation: scores with what was graded."""

    name = EVALUATIONS
    notebook = "evaluand.report.html.notebook:evaluation_html"
    takes_where = True

    def open(self, store: Store, id: str) -> Evaluation:
        return Evaluation(store, id)

    def recount(self, store: Store, id: str) -> tuple[str, object]:
        evaluation = Evaluation(store, id)
        counts: dict[str, Counter[str]] = {}
        digests = []
        for scorer in evaluation.scorers:
            state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
            tally = counts.setdefault(scorer, Counter())
            for batch in evaluation.batches(scorer):
                state.update(b"".join(row_texts(batch)))
                tally.update(batch.column("status").to_pylist())
            digests.append(state.digest())
        return identity.digest_of_digests(digests).hex(), {scorer: dict(tally) for scorer, tally in counts.items()}

    def find_faults(self, store: Store, manifest: Manifest) -> Iterable[Fault]:
        where = f"{self.name} {manifest['id']}"
        return [Fault(where, change) for change in find_changed_rubrics(manifest).values()]

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        evaluation = Evaluation(store, id)
        if choice.index is not None:
            return example_facts(evaluation, evaluation.read_run(), choice.index)
        judges = judge_facts({head["names"][0] if head["names"] else id[:SHORT_ID]: evaluation})
        return {"judges": judges, "unread": unread_facts(None, evaluation)} | evaluation_facts(
            evaluation,
            evaluation.run,
            choice.examples,
            failed=choice.failed,
            below=choice.below,
            scorers=choice.scorers,
            where=choice.where,
            lowest=choice.lowest,
            against=choice.against,
            measures=declared_measures([evaluation]),
        )

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        return evaluation_body(facts)

    def describe(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        for name, scorer in spec["scorers"].items():
            yield "scorer", f"{safe(name, CELL)}: {spec_text(scorer)}"

    def progress(self, store: Store, manifest: Manifest) -> Iterator[Facts]:
        rows = sum(store.manifest(RUNS, manifest["provenance"]["run"])["counts"].values())
        for number, scorer in enumerate(manifest["spec"]["scorers"]):
            yield read_lane(store, manifest, f"scorer{number}", f"graded by {scorer}", rows)

    def tables(self, artifact: Any) -> list[str]:
        return ["tidy", *artifact.scorers]

    def rows(self, artifact: Any, table: str) -> Iterator[pa.RecordBatch]:
        return read_scores(artifact, artifact.scorers if table == "tidy" else [table])

    def statuses(self, table: str) -> Sequence[str]:
        return SCORE_STATUSES

    def dataset(self, artifact: Any) -> Dataset | None:
        return artifact.read_run().dataset  # type: ignore[no-any-return]
