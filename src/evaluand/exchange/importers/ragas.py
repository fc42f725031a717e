"""Results of Ragas: rows of `EvaluationResult.to_pandas()` as JSON, JSON lines or CSV; metrics are columns.

Until version 0.1 the columns were `question`, `contexts`, `answer` and `ground_truth`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

from evaluand.exchange.importer import Importer, LogFile, table_records
from evaluand.exchange.sample import Grade, Sample, cell_value, parse_object, require

_EARLIER: Final = {
    "question": "user_input",
    "contexts": "retrieved_contexts",
    "answer": "response",
    "ground_truth": "reference",
    "ground_truths": "reference",
}
"""What columns were called until version 0.1."""
_METRICS: Final = frozenset(
    (
        "faithfulness",
        "answer_relevancy",
        "context_precision",
        "context_recall",
        "context_relevancy",
        "context_utilization",
    )
)
_ATTRIBUTES: Final = ("persona_name", "query_style", "query_length", "synthesizer_name")
_TEXTS: Final = frozenset(("user_input", "response", "reference", *_ATTRIBUTES))
_FIELDS: Final = _TEXTS | {
    *("retrieved_contexts", "reference_contexts", "multi_responses", "rubrics", "retrieved_context_ids"),
    *("reference_context_ids", "reference_topics", "reference_tool_calls", "index"),
}


class Ragas(Importer):
    """Rows of an evaluation by Ragas."""

    kind: ClassVar[str] = "ragas"

    def __init__(self, file: LogFile) -> None:
        super().__init__(file)
        self._unfilled = set(file.columns) - _FIELDS - _EARLIER.keys() - {""}

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        names = file.keys | file.columns
        if {"question", "contexts", "answer"} <= names:
            return bool(_METRICS & names)
        return "user_input" in names and bool({"response", "reference", "retrieved_contexts"} & names)

    def records(self) -> Iterator[tuple[str, Any]]:
        yield from table_records(self.path)
        if self._unfilled:
            self.notes.append(f"{self.path.name}: no row has a value of {', '.join(sorted(self._unfilled))}")

    def samples(self, record: Any) -> Iterable[Sample]:
        row = parse_object(record)
        if "user_input" not in row:
            row = {_EARLIER.get(name, name): value for name, value in row.items()}
        if self.file.columns:
            row = {name: text if name in _TEXTS else cell_value(text) for name, text in row.items()}
        asked, contexts = require(row, "user_input"), row.get("retrieved_contexts")
        grades = {name: Grade.of(value) for name, value in row.items() if name not in _FIELDS | _EARLIER.keys()}
        self._unfilled -= grades.keys()
        yield Sample(
            None,
            asked if contexts is None else {"user_input": asked, "retrieved_contexts": contexts},
            row.get("response", row.get("multi_responses")),
            expected=row.get("reference"),
            attributes={name: row[name] for name in _ATTRIBUTES if isinstance(row.get(name), str)},
            grades=grades,
        )
