"""Experiments of Phoenix as it downloads them: runs with annotations, as JSON or CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError
from evaluand.core.files.json_items import parse_json
from evaluand.exchange.importer import Importer, LogFile, table_records
from evaluand.exchange.sample import (
    Grade,
    Sample,
    by_name,
    cell_value,
    mapping,
    microseconds,
    named_values,
    parse_object,
    require,
    sequence,
    whole_number,
)

_ANNOTATION: Final = "annotation_"
_OBJECTS: Final = ("input", "reference_output", "output", "metadata")
_PARTS: Final = ("score", "label", "explanation", "error")


class Phoenix(Importer):
    """The runs of an experiment of Phoenix."""

    kind: ClassVar[str] = "phoenix"

    @classmethod
    def recognizes(cls, file: LogFile) -> bool:
        return {"example_id", "repetition_number", "reference_output"} <= file.keys | file.columns

    def records(self) -> Iterator[tuple[str, Any]]:
        yield from table_records(self.path)

    def samples(self, record: Any) -> Iterable[Sample]:
        run = parse_object(record)
        if self.file.columns:
            run = _run_of_cells(run)
        error, milliseconds = run.get("error"), run.get("latency_ms")
        yield Sample(
            str(require(run, "example_id")),
            require(run, "input"),
            None if error else run.get("output"),
            expected=run.get("reference_output"),
            attributes=named_values(run.get("metadata")),
            replication=whole_number(run, "repetition_number") - 1,
            error=("RunError", str(error)) if error else None,
            grades=by_name(map(_grade, map(mapping, sequence(run.get("annotations"))))),
            usage=_usage(run),
            started=microseconds(run.get("start_time")),
            duration=round(milliseconds * 1000) if isinstance(milliseconds, int | float) else None,
        )


def _run_of_cells(row: Mapping[str, str]) -> dict[str, Any]:
    """A run as in JSON, of a row of CSV, which has a column for each part of an annotation."""
    run: dict[str, Any] = {name: text for name, text in row.items() if not name.startswith(_ANNOTATION)}
    run |= {name: _value(row[name]) for name in _OBJECTS if row.get(name, "").startswith("{")}
    run |= {name: cell_value(row[name]) for name in ("latency_ms", *_TOKENS) if name in row}
    if row.get("repetition_number", "").isdecimal():
        run["repetition_number"] = int(row["repetition_number"])
    annotations: dict[str, dict[str, Any]] = {}
    for name, text in row.items():
        start, _, part = name.rpartition("_")
        if name.startswith(_ANNOTATION) and part in _PARTS:
            found = annotations.setdefault(start.removeprefix(_ANNOTATION), {})
            found[part] = cell_value(text) if part == "score" else text
    return run | {"annotations": [{"name": name, **said} for name, said in annotations.items()]}


def _value(text: str) -> Any:
    """What a cell with an object means, or the text itself."""
    try:
        return parse_json(text, "")
    except DataError:
        return text


def _grade(annotation: Mapping[str, Any]) -> tuple[str, Grade]:
    name, label, error = str(require(annotation, "name")), annotation.get("label"), annotation.get("error")
    if error:
        return name, Grade(reason=f"{Phoenix.kind}: {error}")
    score = annotation.get("score")
    grade = Grade.of(label if score is None else score, explanation=annotation.get("explanation"))
    return name, grade if label is None else grade._replace(label=str(label))


def _usage(run: Mapping[str, Any]) -> dict[str, Any] | None:
    return {ours: int(n) for theirs, ours in _TOKENS.items() if isinstance(n := run.get(theirs), int | float)} or None


_TOKENS: Final = {"prompt_token_count": "input_tokens", "completion_token_count": "output_tokens"}
