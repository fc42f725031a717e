"""The records of an open recording in the form of the example rows of a report, read from its journal."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from typing import Any, Final

import orjson

from evaluand.apps.leaderboards.records import WAITING
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Lanes, Recording, app_name, parse_record
from evaluand.core import identity
from evaluand.evaluation.scorer import find_call_reader
from evaluand.evaluation.units import Unit, source_of
from evaluand.models.usage_total import usage_text
from evaluand.report.facts.base import Facts
from evaluand.report.facts.evaluation import CALLS
from evaluand.report.html.cells import SHORT, TEXT, Budget, cell, cut_text, json_cell, span_cells
from evaluand.report.html.chats import chat_cells
from evaluand.report.html.examples import call_cells
from evaluand.report.row_columns import OUTCOMES, short_text
from evaluand.run.excerpts import to_json
from evaluand.store.statuses import SKIPPED
from evaluand.store.store import journalled
from evaluand.store.tables import ABSTAINED, FAILED, SCORED

_ROOM: Final = 100_000  # characters of the spans and calls of a record
_CALLS: Final = 50
_SPANS: Final = 300
_SPAN_STATUSES: Final = ("unset", "ok", "error")
_ATTEMPTS, _USAGE = 7, 10


@contextmanager
def _opened(recording: Recording) -> Iterator[Lanes]:
    with closing(Lanes.of(recording.store, recording.manifest)) as lanes, journalled(RECORDINGS, recording.id):
        lanes.refresh()
        yield lanes


def read_open_rows(recording: Recording, start: int, stop: int) -> tuple[list[Facts], int]:
    """Some of the records so far, in order, as rows; and how many there are."""
    with _opened(recording) as lanes:
        slots = islice(lanes.records.done(0), start, stop)
        return [_describe(lanes, recording, slot) for slot in slots], lanes.records.n_done


def read_open_unit(recording: Recording, slot: int) -> Unit | None:
    """The record of a number; None if there is none so far."""
    with _opened(recording) as lanes:
        return parse_record(lanes.records.line(slot)) if lanes.records.is_done(slot) else None


def _describe(lanes: Lanes, recording: Recording, slot: int) -> Facts:
    line = lanes.records.line(slot)
    unit, record, room = parse_record(line), orjson.loads(line), Budget(_ROOM)
    response, example = unit.response, unit.example
    assert unit.traced is not None
    scores = [
        score
        for number, name in enumerate(lanes.judged)
        for score in _list_scores(lanes, recording, unit, number, name, room)
    ]
    spans = [_to_columns(span) for span in orjson.loads(unit.traced.rows)]
    answers, usage = response.responses, record[_USAGE]
    started, duration = unit.traced.started, unit.traced.duration
    return {
        "index": str(slot),
        "replication": 0,
        "status": response.status,
        "outcome": _find_outcome(response.status, scores),
        "id": cut_text(example.id, SHORT),
        "input": cell(example.input),
        "expected": None,
        "attributes": {name: short_text(value) for name, value in example.attributes.items()},
        "metadata": {name: short_text(value) for name, value in example.metadata.items()},
        "error": response.error and {n: None if v is None else cut_text(v, TEXT) for n, v in response.error.items()},
        "responses": None if answers is None else [cell(each) for each in answers],
        "marks": [],
        "n_responses": len(answers or ()),
        "attempts": record[_ATTEMPTS],
        "usage": usage and cut_text(usage_text(usage), SHORT),
        "started": None if started is None else started / 1e6,
        "duration": None if duration is None else duration / 1e6,
        "scores": scores,
        "n_scores": len(scores),
        "chats": chat_cells(spans, room),
        "spans": [span_cells(span, example.input, room) for span in spans[:_SPANS]],
        "n_spans": len(spans),
    }


def _find_outcome(status: str, scores: Sequence[Facts]) -> int:
    """The position in `OUTCOMES`; a feedback that has not judged yet decides nothing."""
    statuses = {status, *(score["status"] for score in scores)}
    if FAILED in statuses:
        return OUTCOMES.index("failed")
    if statuses & {SKIPPED, ABSTAINED}:
        return OUTCOMES.index("not scored")
    return OUTCOMES.index("scored" if SCORED in statuses else "answered")


def _list_scores(
    lanes: Lanes, recording: Recording, unit: Unit, number: int, name: str, room: Budget
) -> Iterator[Facts]:
    lane = lanes.judged[name]
    if not lane.is_done(unit.slot):
        yield {"scorer": number, "response": None, "target": None, "status": WAITING, "value": None}
        return
    app, answers = recording.manifest["spec"]["app"], unit.response.responses or ()
    spec = recording.manifest["spec"]["feedbacks"][name]
    for response, target, status, reason, value, label, data, explanation, columns, *used in _parse_scores(lane, unit):
        score = {"scorer": number, "response": response, "target": target, "status": status, "value": value}
        texts = {"label": label, "reason": reason, "explanation": explanation}
        score |= {key: cut_text(text, TEXT) for key, text in texts.items() if text is not None}
        if data is not None:
            score["data"] = json_cell(identity.encode(data).decode())
        held = dict(columns or {})
        output = answers[response] if response is not None and response < len(answers) else None
        source = partial(source_of, unit, output, app, app_name(app))
        score |= _read_calls(spec, held.pop(CALLS, None), source, room)
        if used:
            held["used"] = usage_text(used[0])
        if held:
            score["columns"] = {key: short_text(each) for key, each in held.items() if each is not None}
        yield score


def _parse_scores(lane: Any, unit: Unit) -> list[list[Any]]:
    scores: list[list[Any]] = orjson.loads(lane.line(unit.slot))[2]
    return scores


def _read_calls(spec: Mapping[str, Any], stored: Any, source: Callable[[], Any], room: Budget) -> Facts:
    """The calls of a feedback with their arguments; nothing for scorers that make none."""
    read = None if stored is None else find_call_reader(spec)
    if read is None:
        return {}
    calls = read(stored, source)
    shown = [call_cells(to_json(call), room) for call in calls[:_CALLS]]
    return {"calls": shown, "n_calls": len(calls)}


def _to_columns(span: Sequence[Any]) -> list[Any]:
    """A span of the journal as the columns of the table of spans after the key."""
    number, parent, name, kind, start, duration, status, *values = span
    times = [None if time is None else dt.timedelta(microseconds=time) for time in (start, duration)]
    texts = [None if value is None else orjson.dumps(value).decode() for value in values]
    return [number, parent, name, kind, *times, _SPAN_STATUSES[status], *texts]
