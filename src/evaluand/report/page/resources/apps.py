"""Recorded apps: the leaderboard of their versions, their recordings, and records one by one; open ones so far."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

from evaluand.apps.leaderboards.board import add_evaluations, leaderboard
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Recording, app_name, build_record, read_progress
from evaluand.core.errors import EvaluandError, EvaluandWarning, NotFound, SpecError
from evaluand.evaluation.units import Unit, units_of
from evaluand.report.commands import format_command
from evaluand.report.facts.base import Facts, Names
from evaluand.report.html.cells import json_cell
from evaluand.report.html.open_records import read_open_rows, read_open_unit
from evaluand.report.leaderboard import leaderboard_section
from evaluand.report.page.resources.base import Source, read_number, resource
from evaluand.report.page.resources.rows import NO_EVALUATION, find_rows
from evaluand.report.text import SHORT_ID
from evaluand.run.runner import Run
from evaluand.store.window import WindowedStore

_LONGEST: Final = 1_000_000  # characters of the JSON of an app or a record
_MOST_RECORDINGS: Final = 200


def _list_names(source: Source) -> Iterator[Mapping[str, str]]:
    """The names of all apps and the ids of all recordings."""
    for recording in _list_recordings(source):
        yield {"name": recording.id}
        yield {"name": _name_app(recording)}


def _list_recordings(source: Source) -> list[Recording]:
    """All recordings, newest first."""
    entries = source.store.catalog.entries(RECORDINGS)
    return [Recording(source.store, entry["id"]) for entry in entries if entry["status"] != "damaged"]


def _name_app(recording: Recording) -> str:
    return app_name(recording.manifest["spec"]["app"])


@resource("app/{name}", _list_names)
def read_app(source: Source, name: str) -> Facts:
    """An app: the leaderboard of its versions as markup, and its recordings, newest first.

    Args:
        name: of the app or of a recording of it, or the id of a recording.
    """
    recordings = _list_recordings(source)
    named = next((each for each in recordings if name in (each.id, each.name)), None)
    app = name if named is None else _name_app(named)
    own = [each for each in recordings if _name_app(each) == app]
    if not own:
        raise NotFound(f"no app called {name!r} has been recorded here, and no recording has this name")
    names = Names(source.store.refs())
    return {
        "title": app,
        "chosen": None if named is None else named.id,
        "leaderboard": _write_leaderboard(source, own),
        "command": format_command("leaderboard", app, source.root),
        "recordings": [_describe(source, each, names) for each in own[:_MOST_RECORDINGS]],
        "n_recordings": len(own),
    }


def _write_leaderboard(source: Source, recordings: list[Recording]) -> str:
    """The leaderboard as markup, empty where no call was recorded; that of closed recordings is computed once."""

    def write() -> str:
        with warnings.catch_warnings(action="ignore", category=EvaluandWarning), suppress(SpecError):
            return leaderboard_section(leaderboard(sources).to_dict())
        return ""

    sources = add_evaluations(source.store, recordings)
    if not all(each.is_sealed for each in recordings):
        return write()
    return source.contents.get(("leaderboard", *sorted((each.kind, each.id) for each in sources)), write)


def _describe(source: Source, recording: Recording, names: Names) -> Facts:
    manifest = recording.manifest
    about: Facts = {
        "id": recording.id,
        "name": next(iter(names.find(RECORDINGS, recording.id, recording.name)), recording.id[:SHORT_ID]),
        "version": recording.app[1],
        "mode": recording.mode,
        "created": manifest["created"],
        "is_open": not recording.is_sealed,
    }
    if not about["is_open"]:
        run, evaluation = recording.run, recording.evaluation
        return about | {
            "records": sum(run.counts.values()) if run else 0,
            "run": run and run.id,
            "evaluation": evaluation and evaluation.id,
            "waiting": 0,
        }
    about |= {"run": None, "evaluation": None, "records": None, "waiting": 0}
    about["close"] = format_command("resume", recording.id[:SHORT_ID], source.root)
    with suppress(EvaluandError):  # the records say why
        progress = read_progress(source.store, recording.id)
        about |= {"records": progress.records, "waiting": progress.waiting, "is_live": progress.recording}
    return about


def _find_recording(source: Source, id: str) -> Recording:
    if id not in source.store.ids(RECORDINGS):
        raise NotFound("there is no such recording in this store")
    return Recording(source.store, id)


def _list_pieces(source: Source) -> Iterator[Mapping[str, str]]:
    for recording in _list_recordings(source):
        with suppress(EvaluandError):  # the first piece says why
            n = _count_records(source, recording)
            yield from (
                {"recording": recording.id, "piece": str(piece)} for piece in range(max(-(-n // source.piece), 1))
            )


def _count_records(source: Source, recording: Recording) -> int:
    if not recording.is_sealed:
        return read_progress(source.store, recording.id).records
    return sum(recording.run.counts.values()) if recording.run else 0


@resource("records/{recording}/{piece}", _list_pieces)
def read_records(source: Source, recording: str, piece: str) -> Facts:
    """A piece of the records of a recording as rows, how many there are, and the feedbacks that their scores number."""
    found, start = _find_recording(source, recording), read_number(piece) * source.piece
    if found.is_sealed:
        return _read_sealed(source, found, start)
    rows, total = read_open_rows(found, start, start + source.piece)
    if start and not rows:
        raise NotFound("there is no such piece so far")
    specs = found.manifest["spec"]["feedbacks"]
    scorers = [{"name": name, "aggregate": _name_aggregate(specs[name])} for name in sorted(specs)]
    return {"rows": rows, "total": total, "piece": source.piece, "scorers": scorers, "dataset": None}


def _name_aggregate(spec: Any) -> str | None:
    aggregate = spec.get("aggregate") if isinstance(spec, Mapping) else None
    return aggregate if aggregate is None or isinstance(aggregate, str) else "aggregate"


def _read_sealed(source: Source, recording: Recording, start: int) -> Facts:
    run, evaluation = recording.run, recording.evaluation
    if run is None:
        if start:
            raise NotFound("there is no such piece")
        return {"rows": [], "total": 0, "piece": source.piece, "scorers": [], "dataset": None}
    rows = find_rows(source, run.id, evaluation.id if evaluation else NO_EVALUATION)
    total = len(rows.columns)
    if start and start >= total:
        raise NotFound("there is no such piece")
    return {
        "rows": rows.read(range(start, min(start + source.piece, total))),
        "total": total,
        "piece": source.piece,
        "scorers": [{"name": name, "aggregate": rows.shown.aggregates.get(name)} for name in rows.columns.scorers],
        "dataset": run.manifest["spec"]["dataset"],
    }


@resource("record/{recording}/{number}")
def read_record_json(source: Source, recording: str, number: str) -> Facts:
    """The app and one record of it, whole, as feedbacks are given them."""
    found, slot = _find_recording(source, recording), read_number(number)
    app = found.manifest["spec"]["app"]
    unit = _read_sealed_unit(found, slot) if found.is_sealed else read_open_unit(found, slot)
    if unit is None:
        raise NotFound(f"this recording has no record {number}")
    record = orjson.dumps(dict(build_record(unit, app)), default=str)
    return {"app": _cell(orjson.dumps(app)), "record": _cell(record)}


def _cell(text: bytes) -> Any:
    return json_cell(text.decode(), _LONGEST)


def _read_sealed_unit(recording: Recording, index: int) -> Unit | None:
    run = recording.run
    if run is None:
        return None
    store: Any = WindowedStore(recording.store, [index])
    return next(units_of(Run(store, run.id)), None)
