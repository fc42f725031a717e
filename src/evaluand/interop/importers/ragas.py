"""Results of Ragas: rows of `EvaluationResult.to_pandas()` as JSON, JSON lines or CSV; metrics are columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

from evaluand.experiment.imports.importer import Importer, LogFile, table_records
from evaluand.experiment.imports.sample import Grade, Sample, cell_value, parse_object, require

_ATTRIBUTES: Final = ("persona_name", "query_style", "query_length", "synthesizer_name")
_TEXTS: Final = frozenset(("user_input", "response", "reference", *_ATTRIBUTES))
_FIELDS: Final = _TEXTS | {
    *("retrieved_contexts", "reference_contexts", "multi_responses", "rubrics", "retrieved_context_ids"),
    *("reference_context_ids", "reference_topics", "reference_tool_calls", "index"),
}


class Ragas(Importer):
    """Rows of an evaluation by Ragas."""

    kind: ClassVar[str] = "ragas"

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        names = file.keys | file.columns
        return "user_input" in names and bool({"response", "reference", "retrieved_contexts"} & names)

    def records(self) -> Iterator[tuple[str, Any]]:
        yield from table_records(self.path)

    def samples(self, record: Any) -> Iterable[Sample]:
        row = parse_object(record)
        if self.file.columns:
            row = {name: text if name in _TEXTS else cell_value(text) for name, text in row.items()}
        asked, contexts = require(row, "user_input"), row.get("retrieved_contexts")
        yield Sample(
            None,
            asked if contexts is None else {"user_input": asked, "retrieved_contexts": contexts},
            row.get("response", row.get("multi_responses")),
            expected=row.get("reference"),
            attributes={name: row[name] for name in _ATTRIBUTES if isinstance(row.get(name), str)},
            grades={name: Grade.of(value) for name, value in row.items() if name not in _FIELDS},
        )
