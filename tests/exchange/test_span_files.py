"""Files of spans become samples, one for each trace, whatever the form and the order of the spans."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluand.core.errors import DataError
from evaluand.core.files.json_items import JsonCursor
from evaluand.exchange.storing import ImportedResult, import_results
from evaluand.store.store import MemoryStore

Span = dict[str, Any]


def span(trace: int, number: int, parent: int | None = None, **more: Any) -> Span:
    found = {"traceId": f"{trace:032x}", "spanId": f"{trace * 100 + number:016x}", "name": f"step {number}"}
    found |= {"startTimeUnixNano": str(10**15 + number), "endTimeUnixNano": str(10**15 + number + 9)}
    return found | ({} if parent is None else {"parentSpanId": f"{trace * 100 + parent:016x}"}) | more


MIXED = [span(1, 1), span(2, 1), span(2, 2, 1), span(1, 2, 1), span(3, 1), span(1, 3, 2)]
"""Spans of three traces, of which none stands together."""


def one_document(spans: list[Span]) -> str:
    return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}, indent=1)


def lines_of_requests(spans: list[Span]) -> str:
    return "\n".join(one_document([each]).replace("\n", "") for each in spans) + "\n"


def lines(spans: Sequence[Any]) -> str:
    return "".join(json.dumps(each) + "\r\n" for each in spans)


def several_lists(spans: list[Span]) -> str:
    half = len(spans) // 2
    return json.dumps(spans[:half]) + json.dumps(spans[half:], indent=2)


def older_document(spans: list[Span]) -> str:
    return one_document(spans).replace("scopeSpans", "instrumentationLibrarySpans")


def read(path: Path, text: str) -> ImportedResult:
    path.write_text(text)
    return import_results(path, MemoryStore())


@pytest.mark.parametrize("write", [one_document, lines_of_requests, lines, several_lists, older_document])
def test_spans_are_gathered_by_trace(tmp_path: Path, write: Callable[[list[Span]], str]) -> None:
    result = read(tmp_path / "spans.json", write(MIXED))
    assert (result.samples, result.left_out, result.notes) == (3, [], [])
    rows = [row for batch in result.runs[0].spans() for row in batch.to_pylist()]
    found = [(row["_index_"], row["name"]) for row in rows if row["parent"] is not None]
    assert found == [(0, "step 2"), (0, "step 3"), (1, "step 2")]


@pytest.mark.parametrize("write", [one_document, lines_of_requests, lines, several_lists])
def test_a_file_that_ends_early_is_read_up_to_there(tmp_path: Path, write: Callable[[list[Span]], str]) -> None:
    text = write(MIXED)
    result = read(tmp_path / "spans.json", text[: text.rindex("step 3")])
    (fault,) = result.left_out
    assert "the document ends before this value does; all behind it is left out" in str(fault)
    assert result.samples == 3


def test_what_is_no_span_is_named_with_its_place(tmp_path: Path) -> None:
    text = lines([MIXED[0], {"traceId": "zz", "spanId": "1"}, span(2, 1, name=None)])
    result = read(tmp_path / "spans.jsonl", text + "[1, 2]\n" + '{"resourceSpans": 3}\n{"a": ]}\n')
    named = [str(fault) for fault in result.left_out]
    assert result.samples == 2
    assert all("spans.jsonl" in name and "byte" in name for name in named)
    assert [name.split(": ")[1] for name in named] == ["not a span"] * 4 + ["not JSON"] * 2
    assert named[-1].endswith("all behind it is left out")


def test_spans_without_their_parents_are_counted_once(tmp_path: Path) -> None:
    orphans = [span(n, 2, 1) for n in range(1, 4)]
    result = read(tmp_path / "spans.jsonl", lines([*MIXED[:2], *orphans]))
    assert "1 of 5 spans has no parent" in " ".join(result.notes)


def test_spans_in_a_circle_are_left_out(tmp_path: Path) -> None:
    circle = [span(5, 1, 2), span(5, 2, 1)]
    result = read(tmp_path / "spans.jsonl", lines([MIXED[0], *circle]))
    (fault,) = result.left_out
    assert result.samples == 1
    assert "are each other's parents" in str(fault)


def test_documents_that_follow_each_other_are_visited(tmp_path: Path) -> None:
    cursor = JsonCursor(b' {"a": 1}\n[2] 3 "four"\r\n')
    assert [cursor.value() for _ in cursor.documents()] == [{"a": 1}, [2], 3, "four"]
    cursor = JsonCursor(b'{"a": 1} [2, {"b": 3}] 4')
    assert [cursor.place for _ in cursor.documents()] == [0, 9, 23]
    cursor = JsonCursor(b'1 {"a": [')
    with pytest.raises(DataError, match="byte 2: not JSON: the document ends before this value does"):
        for _ in cursor.documents():
            pass


@pytest.mark.slow
def test_a_mapped_file_is_read_across_its_windows(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    text = "x" * (1 << 23)
    path.write_text(json.dumps([f"{n}{text}" for n in range(5)]))
    cursor = JsonCursor.open(path)
    assert [cursor.value()[0] for _ in cursor.items()] == [*"01234"]
    cursor = JsonCursor.open(path)
    assert len(cursor.text()) == path.stat().st_size
