"""Aggregations, as they are shown and written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from evaluand.aggregation.aggregator import Aggregation, table_digest
from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.core.errors import NotFound, warn
from evaluand.report.facts.aggregation import summary_facts
from evaluand.report.facts.base import Facts
from evaluand.report.facts.judges import judge_facts
from evaluand.report.facts.match_sets import run_ratings_facts
from evaluand.report.facts.report import tradeoffs_facts
from evaluand.report.flat_rows import read_values
from evaluand.report.kinds.base import Choice, KindView
from evaluand.report.terminal.artifact import aggregation_body
from evaluand.store.store import Store

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType


class AggregationView(KindView):
    """An aggregation: values of metrics, curves, disparities and trade-offs."""

    name = AGGREGATIONS
    notebook = "evaluand.report.html.notebook:aggregation_html"

    def open(self, store: Store, id: str) -> Aggregation:
        return Aggregation(store, id)

    def recount(self, store: Store, id: str) -> tuple[str, object]:
        tables = Aggregation(store, id).tables()
        batches = [batch for table in tables.values() for batch in table.combine_chunks().to_batches()]
        counts = {name: table.num_rows for name, table in tables.items()}
        return (table_digest(*batches) if batches else "no rows"), counts

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        aggregation = Aggregation(store, id)
        found: Facts = {}
        try:
            evaluations = aggregation.evaluations
            found["judges"] = judge_facts(dict(zip(aggregation.labels, evaluations, strict=True)))
            found["ratings"] = run_ratings_facts(store, [evaluation.read_run() for evaluation in evaluations])
        except NotFound as error:  # its evaluations and runs may be in another store
            left_out = [part for part in ("judges", "ratings") if part not in found]
            warn(f"{' and '.join(left_out)} are left out: {error}")
        tradeoffs = tradeoffs_facts(aggregation)
        return summary_facts(aggregation) | {"tradeoffs": tradeoffs, "judges": [], "ratings": []} | found

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        return aggregation_body(facts)

    def tables(self, artifact: Any) -> list[str]:
        return ["metrics", "curves"]

    def rows(self, artifact: Any, table: str) -> Iterator[pa.RecordBatch]:
        return iter([read_values(artifact, artifact.table() if table == "metrics" else artifact.curves())])
