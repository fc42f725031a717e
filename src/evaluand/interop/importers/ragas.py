"""Results of Ragas: rows of `EvaluationResult.to_pandas()` as JSON records or JSON lines; metrics are columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

from evaluand.experiment.imports.importer import Importer, LogFile, json_records
from evaluand.experiment.imports.sample import Grade, Sample, parse_object, require

_ATTRIBUTES: Final = ("persona_name", "query_style", "query_length", "synthesizer_name")
_FIELDS: Final = frozenset(
    (
        *("user_input", "response", "reference", "retrieved_contexts", "reference_contexts", "multi_responses"),
        *("rubrics", "retrieved_context_ids", "reference_context_ids", "reference_topics", "reference_tool_calls"),
        *_ATTRIBUTES,
    )
)


class Ragas(Importer):
    """Rows of an evaluation by Ragas."""

    kind: ClassVar[str] = "ragas"

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return "user_input" in file.keys and bool({"response", "reference", "retrieved_contexts"} & file.keys)

    def records(self) -> Iterator[tuple[str, Any]]:
        yield from json_records(self.path)

    def samples(self, record: Any) -> Iterable[Sample]:
        row = parse_object(record)
        asked, contexts = require(row, "user_input"), row.get("retrieved_contexts")
        yield Sample(
            None,
            asked if contexts is None else {"user_input": asked, "retrieved_contexts": contexts},
            row.get("response", row.get("multi_responses")),
            expected=row.get("reference"),
            attributes={name: row[name] for name in _ATTRIBUTES if isinstance(row.get(name), str)},
            grades={name: Grade.of(value) for name, value in row.items() if name not in _FIELDS},
        )
