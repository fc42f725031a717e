"""Tables for the terminal, made from facts alone, so that they and `--json` always say the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

import orjson
from orjson import Fragment
from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from evaluand.report.facts import Facts
from evaluand.report.text import SHORT_ID, metric_labels, minute, number_format, numbers, safe, seconds, took
from evaluand.store import Manifest
from evaluand.trace import STATUSES, Trace

_WIDE = 104
_REASONS = 3
_CELL = 60
_TEXT = 600
_LINES = 12
_NUMBERS = ("value", "low", "high", "worst", "best")
_ORDER = ("completed", "scored", "failed", "abstained", "skipped")


def results_table(facts: Facts, *, quiet: bool = False) -> RenderableType:
    """What an experiment came to."""
    parts: list[RenderableType] = []
    if not quiet:
        parts += [_steps_table(facts["tasks"]), ""]
    parts.append(metrics_table(facts["metrics"]))
    missing = [(entry["task"], reason) for entry in facts["tasks"] for reason in entry["missing"]]
    if missing:
        parts += ["", missing_table(missing)]
    return Group(*parts)


def metrics_table(rows: Sequence[Facts]) -> RenderableType:
    """Values with interval, bounds and counts: a line per task, metric and group, and the metrics' signatures."""
    labels = metric_labels(rows)
    signatures = Table.grid(padding=(0, 2, 0, 0))
    signatures.add_column(overflow="fold")
    signatures.add_column(overflow="fold", style="dim")
    for key, label in labels.items():
        signatures.add_row(Text(label), Text(safe(key[1])))
    return Group(_Metrics(rows, labels), "", signatures)


def missing_table(missing: Sequence[tuple[str, Facts]]) -> RenderableType:
    """Why rows have no score: by task and scorer the most frequent reasons."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for (task, scorer), group in itertools.groupby(missing, lambda pair: (pair[0], pair[1]["scorer"])):
        reasons = [reason for _, reason in group]
        label = " · ".join(safe(part, _CELL) for part in (task, scorer) if part)
        for reason in reasons[:_REASONS]:
            why = Text(f"{safe(reason['reason'], 3 * _CELL)} (first: _index_ {reason['first']})")
            grid.add_row(Text(label), _count(reason["count"]), _status(reason["status"]), why)
            label = ""
        rest = reasons[_REASONS:]
        if rest:
            others = f"for {len(rest):,} other reason{'s'[: len(rest) > 1]}"
            grid.add_row("", _count(sum(r["count"] for r in rest)), Text("more", "dim"), Text(others, "dim"))
    return grid


def artifact_table(facts: Facts) -> RenderableType:
    """One artifact: what it is, where it comes from, and the first of what it holds."""
    head = Text.assemble(
        (f"{facts['kind'][:-1]} ", "bold"), (facts["id"], "bold"), "  ", safe(", ".join(facts["names"]), 2 * _CELL)
    )
    parts: list[RenderableType] = [head, _pairs(_about(facts))]
    for table in _BODIES[facts["kind"]](facts) if facts["status"] == "sealed" else ():
        parts += ["", table]
    return Group(*parts)


def listing_table(entries: Sequence[Facts]) -> RenderableType:
    """Artifacts, one line each."""
    return _Listing(entries)


class _Listing:
    """The list of artifacts, set by hand: there may be thousands, and rich measures and wraps every cell of a table.

    Where there is little room, the counts give way to the names.
    """

    _COLUMNS = ("kind", "id", "created", "name", "counts")
    _LEAST = 14

    def __init__(self, entries: Sequence[Facts]) -> None:
        self._rows = [self._COLUMNS, *(_listed(entry) for entry in entries)]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        kind, id, created, name = (max(cell_len(row[i]) for row in self._rows) for i in range(4))
        head = kind + id + created + 6
        name = min(name, max(options.max_width - head - 2 - self._LEAST, self._LEAST))
        room = max(options.max_width - head - name - 2, self._LEAST)
        style = "dim"
        for row in self._rows:
            names, counts = chop_cells(row[3], name), wrap(row[4], room)
            first = f"{row[0]:{kind}}  {row[1]:{id}}  {row[2]:{created}}  "
            for start, part, count in itertools.zip_longest([first], names, counts, fillvalue=""):
                line = f"{start or ' ' * head}{set_cell_size(part, name)}  {count}"
                yield Text(line.rstrip(), style, no_wrap=True, overflow="ignore")
            style = ""


def _listed(entry: Facts) -> tuple[str, str, str, str, str]:
    names = safe(", ".join(entry["names"]), 2 * _CELL)
    if not entry["names"] and entry["name"]:
        names = f"({safe(entry['name'], 2 * _CELL)})"  # it has gone to a later one
    counts = _counts(entry["counts"]) if entry["status"] == "sealed" else entry["status"]
    return safe(entry["kind"]), safe(entry["id"])[:SHORT_ID], minute(entry["created"]), names, counts


class _Metrics:
    """The table of values; bounds get a column where there is room, else a line."""

    def __init__(self, rows: Sequence[Facts], labels: Mapping[tuple[str, str], str]) -> None:
        self._rows, self._labels = rows, labels
        self._formats = {
            key: number_format(row[n] for row in rows for n in _NUMBERS if (row["scorer"], row["signature"]) == key)
            for key in labels
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bounded = any(row["worst"] != row["best"] for row in self._rows)
        wide = bounded and options.max_width >= _WIDE
        yield self._table(wide, any(row["n_skipped"] for row in self._rows))

    def _table(self, wide: bool, skipped: bool) -> Table:
        table = _table("")
        table.columns[0].overflow, table.columns[0].no_wrap = "fold", False
        counts = ["n", "scored", "failed", "abstained", *["skipped"] * skipped]
        for name in ["value", "interval", *["worst … best"] * wide, *counts]:
            table.add_column(name, justify="right", no_wrap=True)
        task = None
        for row in self._rows:
            if row["task"] != task:
                task = row["task"]
                table.add_row(Text(safe(task, _CELL), "bold"))
            form = self._formats[row["scorer"], row["signature"]]
            value, low, high, worst, best = ("–" if row[n] is None else format(row[n], form) for n in _NUMBERS)
            interval = "" if row["low"] is None else f"[{low} – {high}]"
            bounds = "" if row["worst"] == row["best"] else f"{worst} … {best}"
            table.add_row(self._label(row), value, interval, *[bounds] * wide, *_row_counts(row, skipped))
            indent = " " * (4 if row["by"] else 2)
            if bounds and not wide:
                table.add_row(Text(f"{indent}worst … best", "dim"), "", Text(bounds, "dim"))
            if row["reason"]:
                table.add_row(Text(f"{indent}{safe(row['reason'], 2 * _CELL)}", "dim"))
        return table

    def _label(self, row: Facts) -> Text:
        target = "" if row["target"] is None else safe(row["target"], _CELL)
        if not row["by"]:
            label = self._labels[row["scorer"], row["signature"]]
            return Text(f"  {label}" + (f" · {target}" if target else ""))
        groups = (f"{safe(k, _CELL)}={'none' if v is None else safe(v, _CELL)}" for k, v in row["by"].items())
        return Text("    " + ", ".join([*([target] if target else []), *groups]))


def _row_counts(row: Facts, skipped: bool) -> list[Text]:
    return [
        _count(row["n"]),
        _count(row["n_scored"]),
        _count(row["n_failed"], "red"),
        _count(row["n_abstained"], "yellow"),
        *[_count(row["n_skipped"])] * skipped,
    ]


def _steps_table(tasks: Sequence[Facts]) -> RenderableType:
    """What each step had to do: a line each."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold", style="bold")
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for entry in tasks:
        label = safe(entry["task"], _CELL)
        for step in ("run", "evaluation"):
            grid.add_row(Text(label), step, entry[step]["id"][:SHORT_ID], _did(entry[step]))
            label = ""
    return grid


def _did(step: Facts) -> Text:
    """What one step had to do, in words."""
    receipt = step["receipt"] or {"called": 0, "reused": 0, "kept": 0, "skipped": 0, "why": ""}
    told = [f"{receipt['called']:,} done now"] if receipt["called"] else []
    told += [f"{receipt[name]:,} {name}" for name in ("reused", "kept", "skipped") if receipt[name]]
    why = safe(receipt["why"], 6 * _CELL)
    if not receipt["called"] and not receipt["reused"]:
        told, why = [why or "nothing to do"], ""
    text = Text(", ".join(told))
    failed = step["counts"].get("failed", 0)
    if isinstance(failed, int) and failed:
        text.append(f"; {failed:,} failed", "red")
    return text.append(f" ({why})" if why else "")


def _about(facts: Facts) -> Iterator[tuple[str, str | Text]]:
    """Name → value of what is worth knowing about an artifact."""
    manifest: Manifest = facts["manifest"]
    origin = manifest.get("provenance") or {}
    if facts["status"] == "sealed":
        yield "counts", _counts(manifest.get("counts", {}))
    else:
        yield "status", Text("open: not everything is done yet", "yellow")
        for step in facts["progress"]:
            yield "done", f"{step['done']:,} of {step['total']:,} {safe(step['label'], _CELL)}"
        yield "continue", safe(facts["resume"])
    yield from _specified(facts["kind"], manifest)
    for name, key in (("made from", "made_from"), ("used by", "used_by")):
        for other in facts.get(key) or ():
            yield name, f"{other['kind'][:-1]} {other['id'][:SHORT_ID]}  {safe(other['name'] or '', _CELL)}"
    yield "created", took(manifest)
    if origin.get("unpinned"):
        yield "unpinned", "; ".join(safe(why, 2 * _CELL) for why in origin["unpinned"])
    yield from _origin(origin)
    if "digest" in manifest:
        yield "digest", safe(manifest["digest"], _CELL)


def _specified(kind: str, manifest: Manifest) -> Iterator[tuple[str, str]]:
    spec = manifest["spec"]
    if kind == "runs":
        yield "task", _json(spec["task"])
        yield "asked", f"{spec['examples']:,} examples × {spec['replications']:,}, seed {spec['seed']}"
    elif kind == "evaluations":
        for name, scorer in spec["scorers"].items():
            yield "scorer", f"{safe(name, _CELL)}: {_json(scorer)}"
    if manifest.get("attempt"):
        yield "attempt", f"{manifest['attempt'] + 1}"


def _origin(origin: Facts) -> Iterator[tuple[str, str]]:
    source = origin.get("origin") or {}
    if "experiment" in source:
        task = f", task {safe(source['task'], _CELL)}" if source.get("task") else ""
        limit = f", limit {source['limit']:,}" if source.get("limit") else ""
        yield "experiment", f"{safe(source['experiment'], 4 * _CELL)}{task}{limit}"
    if "source" in origin:
        yield "source", safe(origin["source"], 4 * _CELL)
    if "evaluand" in origin:
        packages = {"evaluand": origin["evaluand"], "python": origin.get("python")} | (origin.get("packages") or {})
        yield "versions", ", ".join(f"{name} {safe(v, _CELL)}" for name, v in packages.items() if v)
    if origin.get("platform"):
        yield "platform", safe(origin["platform"], 2 * _CELL)
    if origin.get("git"):
        commit = safe(origin["git"].get("commit"), _CELL)
        yield "git", f"{commit}{', with changes' if origin['git'].get('changed') else ''}"


def _run_body(facts: Facts) -> Iterator[RenderableType]:
    if facts["missing"]:
        yield missing_table([("", reason) for reason in facts["missing"]])
    for row in facts["rows"]:
        yield _response(row, facts["manifest"]["spec"]["replications"] > 1)


def _response(row: Facts, repeated: bool) -> RenderableType:
    replication = f", replication {row['replication']}" if repeated else ""
    attempts = f" in {row['attempts']} attempts" if row["attempts"] > 1 else ""
    head = Text.assemble((f"_index_ {row['_index_']}", "bold"), f"{replication}: ", _status(row["status"]))
    head.append(f"{attempts}, {seconds(row['duration'])}")
    pairs: list[tuple[str, str | Text]] = [(n, _long(row[n])) for n in ("input", "expected") if row.get(n) is not None]
    if row["error"]:
        code = f" [{row['error']['code']}]" if row["error"]["code"] is not None else ""
        pairs.append(("error", Text(_long(f"{row['error']['type']}: {row['error']['message']}{code}"), "red")))
        if row["error"]["place"]:
            pairs.append(("at", safe(row["error"]["place"], 2 * _CELL)))
    elif row["responses"] is None:
        pairs.append(("response", Text("no answer", "yellow")))
    pairs += [("response", _long(response)) for response in row["responses"] or ()]
    if row["spans"]:
        pairs.append(("trace", _tree(row)))
    return Group(head, _pairs(pairs, "  "))


def _tree(row: Facts) -> str:
    spans = [
        [s["span"], s["parent"], s["name"], s["kind"], s["start"], s["duration"], STATUSES.index(s["status"])]
        + [None if s[name] is None else Fragment(s[name]) for name in ("input", "output", "attributes", "events")]
        for s in row["spans"]
    ]
    status = "error" if row["error"] else "ok"
    trace = Trace.from_rows(spans, name="call", end_ns=round(row["duration"] * 1e9), status=status)
    lines = trace.tree().splitlines()
    more = [f"… {len(lines) - 2 * _LINES:,} more spans"] if len(lines) > 2 * _LINES else []
    return "\n".join([safe(line, 2 * _CELL) for line in lines[: 2 * _LINES]] + more)


def _evaluation_body(facts: Facts) -> Iterator[RenderableType]:
    counts = facts["manifest"]["counts"]
    table = _table("scorer")
    statuses = ("scored", "failed", "abstained", "skipped")
    for status in ("rows", *statuses):
        table.add_column(status, justify="right", no_wrap=True)
    for scorer, found in counts.items():
        styled = zip((found.get(s, 0) for s in statuses), ("", "red", "yellow", ""), strict=True)
        table.add_row(Text(safe(scorer, _CELL)), _count(sum(found.values())), *(_count(n, s) for n, s in styled))
    yield table
    if facts["missing"]:
        yield missing_table([("", reason) for reason in facts["missing"]])
    for scorer, rows in facts["rows"].items():
        yield from _scores(scorer, rows) if rows else ()


def _scores(scorer: str, rows: Sequence[Facts]) -> Iterator[RenderableType]:
    yield Text(safe(scorer, _CELL), "bold")
    for row in rows:
        yield _score(row)


def _score(row: Facts) -> RenderableType:
    """One graded row: its key and grade, what was asked and answered, and what the scorer says."""
    key = [f"{n} {row[n]}" for n in ("replication", "_response_index_") if row[n]]
    key += [f"target {safe(row['target'], _CELL)}"] if row["target"] is not None else []
    head = Text.assemble((f"_index_ {row['_index_']}", "bold"), "".join(f", {part}" for part in key), ": ")
    head.append(_status(row["status"])).append("" if row["value"] is None else f" {numbers(row['value'])[0]}")
    pairs: list[tuple[str, str | Text]] = [(n, _long(row[n])) for n in ("input", "expected") if row.get(n) is not None]
    pairs += [("response", _long(response)) for response in row.get("responses") or ()]
    pairs += [(n, _long(row[n])) for n in row if n not in _NOT_TOLD and row[n] is not None]
    return Group(head, _pairs(pairs, "  "))


_KEY = ("_index_", "replication", "_response_index_", "target", "fold", "digest")
_NOT_TOLD = frozenset((*_KEY, "status", "value", "id", "input", "expected", "responses"))


def _aggregation_body(facts: Facts) -> Iterator[RenderableType]:
    yield metrics_table(facts["metrics"])


def _dataset_body(facts: Facts) -> Iterator[RenderableType]:
    roles = [(name, columns) for name, columns in facts["roles"].items() if columns not in (None, [], {})]
    yield _pairs([(name, columns if isinstance(columns, str) else _json(columns)) for name, columns in roles])
    table = _table("column", "type")
    for name, kind in facts["columns"].items():
        table.add_row(Text(safe(name, _CELL)), Text(safe(kind, 2 * _CELL)))
    yield table
    for row in facts["rows"]:
        shown = [(n, _long(v)) for n, v in row.items() if n != "_index_" and v not in (None, {})]
        yield Group(Text(f"_index_ {row['_index_']}", "bold"), _pairs(shown, "  "))


_BODIES = {
    "runs": _run_body,
    "evaluations": _evaluation_body,
    "aggregations": _aggregation_body,
    "datasets": _dataset_body,
}


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(Text(name), no_wrap=True)
    return table


def _pairs(pairs: Iterable[tuple[str, str | Text]], indent: str = "") -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    before = None
    for name, value in pairs:
        told = "" if name == before else f"{indent}{safe(name, _CELL)}"
        grid.add_row(Text(told), value if isinstance(value, Text) else Text(value))
        before = name
    return grid


def _count(n: int, style: str = "") -> Text:
    return Text(f"{n:,}", style if n else "")


def _status(status: str) -> Text:
    return Text(status, {"failed": "red", "abstained": "yellow", "skipped": "yellow"}.get(status, "green"))


def _counts(counts: Mapping[str, Any]) -> str:
    """`7 scored, 3 failed`, by scorer where there are several statuses for each."""
    told = []
    for name, count in sorted(counts.items(), key=lambda item: _place(item[0])):
        if isinstance(count, Mapping):
            told.append(f"{safe(name, _CELL)}: {_counts(count)}")
        else:
            told.append(f"{count:,} {safe(name, _CELL)}")
    return ("; " if any(isinstance(c, Mapping) for c in counts.values()) else ", ").join(told)


def _place(status: str) -> int:
    return _ORDER.index(status) if status in _ORDER else len(_ORDER)


def _json(value: Any) -> str:
    return safe(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode(), 4 * _CELL)


def _long(value: Any) -> str:
    """A value on several lines, cut where it is long; text as it is, all else as JSON."""
    text = value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    lines = (text if len(text) <= _TEXT else text[: _TEXT - 1] + "…").split("\n")
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], "…"]
    return "\n".join(safe(line.rstrip("\r")) for line in lines)
