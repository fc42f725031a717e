"""Reports: what is stored, first as plain facts, then as tables for the terminal.

The facts are JSON-like and complete; `--json` prints them. The tables are made from the facts alone, so both always
say the same. Three rules hold for every table:

- No value stands without its counts: how many rows it comes from, how many failed, how many were abstained from.
- What failed or was abstained from is told by reason, with its number and the first `_index_`.
- Text that comes from data is made harmless (`safe`) and is never read as markup.

Nothing here needs NumPy or Arrow to be imported, so a list of thousands of artifacts costs only the catalog.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from orjson import Fragment
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from evaluand import ids
from evaluand.errors import NotFound
from evaluand.trace import STATUSES, Trace

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluand.aggregation import Aggregation
    from evaluand.dataset import Dataset
    from evaluand.evaluation import Evaluation
    from evaluand.run import Run
    from evaluand.store import Manifest
    from evaluand.work import Receipt

Facts = dict[str, Any]

SHORT_ID = 12
_WIDE = 104
_REASONS = 3
_KINDS_OF_REASONS = 1000
_CELL = 60
_TEXT = 600
_LINES = 12
_STATUSES = "completed scored failed abstained skipped"
_JOINERS = "\u200c\u200d"


class TaskResult(Protocol):
    """What an experiment came to for one task."""

    @property
    def task(self) -> str: ...
    @property
    def run(self) -> Run: ...
    @property
    def evaluation(self) -> Evaluation: ...


# Facts


def results_facts(tasks: Sequence[TaskResult], aggregation: Aggregation) -> Facts:
    """What an experiment came to: what each step had to do, every value, and why rows are missing."""
    return {
        "tasks": [
            {
                "task": result.task,
                "run": _step(result.run),
                "evaluation": _step(result.evaluation),
                "missing": missing_facts(result.run, result.evaluation),
            }
            for result in tasks
        ],
        "aggregation": {"id": aggregation.id, "digest": aggregation.digest, "name": aggregation.manifest["name"]},
        "metrics": metrics_facts(aggregation, [result.task for result in tasks]),
    }


def metrics_facts(aggregation: Aggregation, tasks: Sequence[str]) -> list[Facts]:
    """Every value of an aggregation.

    Args:
        tasks: what each of the aggregated evaluations is called, in their order.
    """
    return [
        {"task": tasks[row.pop("evaluation")]}
        | row
        | {"by": dict(row["by"]), "data": None if row["data"] is None else orjson.loads(row["data"])}
        for row in aggregation.table().to_pylist()
    ]


def missing_facts(run: Run | None, evaluation: Evaluation | None) -> list[Facts]:
    """Why rows failed or were abstained from, most frequent first; a failed call is told once, not by each scorer."""
    found = [] if run is None else [{"scorer": None} | reason for reason in _failures(run)]
    for scorer in [] if evaluation is None else evaluation.scorers:
        reasons = _reasons(_ungraded(evaluation, scorer)) if evaluation else []
        found += [
            {"scorer": scorer} | reason
            for reason in reasons
            if run is None or not reason["reason"].startswith(("task: ", "the task was not asked"))
        ]
    return found


def run_facts(run: Run, examples: int = 0, *, failed: bool = False) -> Facts:
    """A run: why calls failed, and the first rows, failed ones first.

    Args:
        examples: how many rows.
        failed: only failed ones.
    """
    return {"missing": missing_facts(run, None), "rows": _response_rows(run, examples, failed)}


def evaluation_facts(evaluation: Evaluation, examples: int = 0, *, failed: bool = False) -> Facts:
    """An evaluation: why rows of each scorer have no score, and the first rows, those first."""
    return {
        "missing": missing_facts(None, evaluation),
        "rows": {
            scorer: [
                _plain_row(row)
                for row in _chosen(evaluation.batches(scorer), evaluation.counts[scorer], "scored", examples, failed)
            ]
            for scorer in evaluation.scorers
        },
    }


def dataset_facts(dataset: Dataset, examples: int = 0) -> Facts:
    """A dataset: its roles, its columns and its first rows."""
    first = itertools.islice(dataset.examples(0, examples), examples)
    return {
        "roles": _plain(dataset.spec["roles"]),
        "columns": {field.name: str(field.type) for field in dataset.schema if field.name not in ("_index_", "_digest_")},
        "rows": [
            {"_index_": e.index, "id": e.id, "input": _plain(e.input), "expected": _plain(e.expected)}
            | _plain({"attributes": e.attributes, "weight": e.weight, "cluster": e.cluster, "metadata": e.metadata})
            for e in first
        ],
    }


def _step(made: Run | Evaluation) -> Facts:
    return {
        "id": made.id,
        "digest": made.digest,
        "name": made.name,
        "counts": made.counts,
        "receipt": None if made.receipt is None else _receipt(made.receipt),
    }


def _receipt(receipt: Receipt) -> Facts:
    return {name: getattr(receipt, name) for name in ("total", "called", "reused", "kept", "why")}


def _failures(run: Run) -> list[Facts]:
    if not run.counts.get("failed"):
        return []
    found = (
        (row["_index_"], "failed", f"{row['error']['type']}: {row['error']['message']}")
        for batch in run.batches(["_index_", "error"])
        for row in batch.filter(batch.column("error").is_valid()).to_pylist()
    )
    return _reasons(found)


def _ungraded(evaluation: Evaluation, scorer: str) -> Iterator[tuple[int, str, str]]:
    if set(evaluation.counts[scorer]) <= {"scored"}:
        return
    for batch in evaluation.batches(scorer, ["_index_", "status", "reason"]):
        for row in batch.filter(batch.column("reason").is_valid()).to_pylist():
            yield row["_index_"], row["status"], row["reason"]


def _reasons(found: Iterable[tuple[int, str, str]]) -> list[Facts]:
    """Reasons with their number and first row; those that differ only in their figures are one."""
    first: dict[tuple[str, str], tuple[int, str]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for index, status, reason in found:
        key = (status, re.sub(r"\d+", "0", reason))
        if key not in first and len(first) >= _KINDS_OF_REASONS:
            key, reason = (status, ""), "other reasons"
        first.setdefault(key, (index, reason))
        counts[key] += 1
    return [
        {"status": key[0], "count": count, "reason": first[key][1], "first": first[key][0]}
        for key, count in counts.most_common()
    ]


def _chosen(
    batches: Iterable[pa.RecordBatch], counts: Mapping[str, int], good: str, n: int, failed: bool
) -> list[dict[str, Any]]:
    """The first rows of a table: those without a result first, then (unless only these are wanted) the others."""
    bad_left = min(n, sum(count for status, count in counts.items() if status != good))
    good_left = 0 if failed else min(n - bad_left, counts.get(good, 0))
    bad_rows, good_rows = [], []
    for batch in batches:
        if not bad_left and not good_left:
            break
        for i, status in enumerate(batch.column("status").to_pylist()):
            if status != good and bad_left:
                bad_rows.append(batch.slice(i, 1).to_pylist()[0])
                bad_left -= 1
            elif status == good and good_left:
                good_rows.append(batch.slice(i, 1).to_pylist()[0])
                good_left -= 1
    return bad_rows + good_rows


def _response_rows(run: Run, n: int, failed: bool) -> list[Facts]:
    chosen = _chosen(run.batches(), run.counts, "completed", n, failed)
    examples = _examples(run, sorted({row["_index_"] for row in chosen}))
    spans = _spans(run, {(row["_index_"], row["replication"]) for row in chosen})
    return [
        _plain_row(row)
        | {"responses": _answers(row["responses"], run.items)}
        | examples.get(row["_index_"], {})
        | {"spans": spans.get((row["_index_"], row["replication"]), [])}
        for row in chosen
    ]


def _examples(run: Run, indices: Sequence[int]) -> dict[int, Facts]:
    """Input and expected of some examples, or nothing where the store lacks the dataset."""
    try:
        dataset = run.dataset
    except NotFound:
        return {}
    positions = [bisect_left(dataset.indices, index) for index in indices]
    found = {}
    for start, stop in _stretches(positions):
        for e in dataset.examples(start, stop):
            found[e.index] = {"id": e.id, "input": _plain(e.input), "expected": _plain(e.expected)}
    return found


def _stretches(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Start and stop of each stretch of ascending positions without a gap."""
    start = stop = -1
    for position in positions:
        if position != stop:
            if start >= 0:
                yield start, stop
            start = position
        stop = position + 1
    if start >= 0:
        yield start, stop


def _answers(items: list[dict[str, Any]] | None, in_lists: bool) -> list[Any] | None:
    """The responses of a row, best first; a list of items each where the task declares items."""
    if items is None:
        return None
    values = [(item["_response_index_"], orjson.loads(item["value"])) for item in items]
    if not in_lists:
        return [value for _, value in values]
    return [[value for _, value in group] for _, group in itertools.groupby(values, lambda pair: pair[0])]


def _spans(run: Run, keys: set[tuple[int, int]]) -> dict[tuple[int, int], list[Facts]]:
    found: dict[tuple[int, int], list[Facts]] = {}
    last = max((index for index, _ in keys), default=-1)
    for batch in run.spans() if keys else ():
        indices, replications = batch.column("_index_").to_pylist(), batch.column("replication").to_pylist()
        for i, key in enumerate(zip(indices, replications, strict=True)):
            if key in keys:
                found.setdefault(key, []).append(_span(batch.slice(i, 1).to_pylist()[0]))
        if indices and indices[-1] > last:
            break
    return found


def _span(row: dict[str, Any]) -> Facts:
    """A span with times in microseconds; values stay canonical text."""
    times = {name: None if row[name] is None else _microseconds(row[name]) for name in ("start", "duration")}
    return {name: row[name] for name in row if name not in ("_index_", "replication")} | times


def _microseconds(time: dt.timedelta) -> int:
    return time // dt.timedelta(microseconds=1)


def _plain_row(row: dict[str, Any]) -> Facts:
    """A row of a table as JSON: times in seconds and UTC, digests in hexadecimal digits."""
    return {name: _plain_cell(value) for name, value in row.items() if name != "fold" or value is not None}


def _plain_cell(value: Any) -> Any:
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else value


def _plain(value: Any) -> Any:
    """Any data as JSON, as they are written for digests."""
    return orjson.loads(ids.encode(value))


# Tables


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
    labels = _labels(rows)
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
    table = _table("kind", "id", "created")
    table.add_column("name", overflow="fold", min_width=12)
    table.add_column("counts", min_width=12)
    for entry in entries:
        names = Text(safe(", ".join(entry["names"]), 2 * _CELL))
        if not entry["names"] and entry["name"]:
            names = Text(f"({safe(entry['name'], _CELL)})", "dim")  # the name has gone to a later one
        counts = Text(_counts(entry["counts"])) if entry["status"] == "sealed" else Text(entry["status"], "yellow")
        table.add_row(entry["kind"], entry["id"][:SHORT_ID], _minute(entry["created"]), names, counts)
    return table


def safe(text: object, limit: int = 0) -> str:
    """Text that can do nothing to a terminal: control, invisible and direction characters are written as escapes.

    Args:
        text: anything; its `str` is taken.
        limit: the most characters of it to show; 0 is all.

    Example:
        >>> print(safe("red: \x1b[31m, and long", limit=12))
        red: \x1b[31m…
    """
    shown = str(text)
    if limit and len(shown) > limit:
        shown = shown[: limit - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() or c in _JOINERS else c.encode("unicode_escape").decode() for c in shown)


def numbers(*values: float | None) -> list[str]:
    """Numbers that belong together, with the same number of decimals; `–` for none.

    Example:
        >>> numbers(0.8125, 0.79, None), numbers(3.0, 12.0), numbers(1234.5678)
        (['0.812', '0.790', '–'], ['3', '12'], ['1,234.6'])
    """
    known = [v for v in values if v is not None]
    if all(v.is_integer() and abs(v) < 1e15 for v in map(float, known)):
        form = ",.0f"
    else:
        size = max(map(abs, known))
        digits = math.floor(math.log10(size)) if 0 < size < math.inf else 0
        decimals = min(max(3 - digits, 1), 3) if digits >= -1 else 2 - digits
        form = f",.{decimals}f" if -6 <= digits < 15 else ".3e"
    return ["–" if v is None else f"{v:{form}}" for v in values]


class _Metrics:
    """The table of values; bounds get a column where there is room, else a line."""

    def __init__(self, rows: Sequence[Facts], labels: Mapping[tuple[str, str], str]) -> None:
        self._rows, self._labels = rows, labels

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bounded = any(row["worst"] is not None for row in self._rows)
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
            value, low, high, worst, best = numbers(*(row[n] for n in ("value", "low", "high", "worst", "best")))
            interval = "" if row["low"] is None else f"[{low} – {high}]"
            bounds = "" if row["worst"] is None or row["worst"] == row["best"] else f"{worst} … {best}"
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


def _labels(rows: Sequence[Facts]) -> dict[tuple[str, str], str]:
    """(scorer, signature) → the metric's label; numbered where two metrics would have the same."""
    keys = dict.fromkeys((row["scorer"], row["signature"], row["metric"]) for row in rows)
    twice = Counter((scorer, metric) for scorer, _, metric in keys)
    seen: Counter[tuple[str, str]] = Counter()
    labels = {}
    for scorer, signature, metric in keys:
        seen[scorer, metric] += 1
        number = f" {seen[scorer, metric]}" if twice[scorer, metric] > 1 else ""
        labels[scorer, signature] = f"{safe(metric, _CELL)}{number} · {safe(scorer, _CELL)}"
    return labels


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
    receipt = step["receipt"] or {"called": 0, "reused": 0, "kept": 0, "why": ""}
    told = [f"{receipt['called']:,} done now"] if receipt["called"] else []
    told += [f"{receipt[name]:,} {name}" for name in ("reused", "kept") if receipt[name]]
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
        yield "continue", f"evaluand resume {facts['id'][:SHORT_ID]}"
    yield from _specified(facts["kind"], manifest)
    for name, key in (("made from", "made_from"), ("used by", "used_by")):
        for other in facts.get(key) or ():
            yield name, f"{other['kind'][:-1]} {other['id'][:SHORT_ID]}  {safe(other['name'] or '', _CELL)}"
    yield "created", _when(manifest)
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
    head.append(f"{attempts}, {_seconds(row['duration'])}")
    pairs: list[tuple[str, str | Text]] = [(n, _long(row[n])) for n in ("input", "expected") if row.get(n) is not None]
    if row["error"]:
        code = f" [{row['error']['code']}]" if row["error"]["code"] is not None else ""
        pairs.append(("error", Text(_long(f"{row['error']['type']}: {row['error']['message']}{code}"), "red")))
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
        if rows:
            yield _scores(scorer, rows)


def _scores(scorer: str, rows: Sequence[Facts]) -> RenderableType:
    standard = ("status", "value", "label", "reason", "explanation")
    key = ("_index_", "replication", "_response_index_", "target")
    own = [name for name in rows[0] if name not in (*key, "digest", *standard)]
    first = [name for name in key if name == "_index_" or any(row[name] for row in rows)]
    last = [name for name in ("label", *own, "reason", "explanation") if any(row[name] is not None for row in rows)]
    table = _table(*first, "status", "value")
    for name in last:
        table.add_column(Text(safe(name, _CELL)), overflow="fold")
    for row in rows:
        before, after = ([Text("" if row[n] is None else safe(row[n], 2 * _CELL)) for n in ns] for ns in (first, last))
        table.add_row(*before, _status(row["status"]), numbers(row["value"])[0], *after)
    return Group(Text(safe(scorer, _CELL), "bold"), table)


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
    for name, count in sorted(counts.items(), key=lambda item: _STATUSES.find(item[0])):
        if isinstance(count, Mapping):
            told.append(f"{safe(name, _CELL)}: {_counts(count)}")
        else:
            told.append(f"{count:,} {safe(name, _CELL)}")
    return ("; " if any(isinstance(c, Mapping) for c in counts.values()) else ", ").join(told)


def _json(value: Any) -> str:
    return safe(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode(), 4 * _CELL)


def _long(value: Any) -> str:
    """A value on several lines, cut where it is long; text as it is, all else as JSON."""
    text = value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    lines = (text if len(text) <= _TEXT else text[: _TEXT - 1] + "…").split("\n")
    if len(lines) > _LINES:
        lines = [*lines[:_LINES], "…"]
    return "\n".join(safe(line.rstrip("\r")) for line in lines)


def _minute(created: str | None) -> str:
    return safe((created or "")[:16].replace("T", " "))


def _when(manifest: Manifest) -> str:
    try:
        took = dt.datetime.fromisoformat(manifest["sealed"]) - dt.datetime.fromisoformat(manifest["created"])
    except (KeyError, ValueError):
        return f"{_minute(manifest.get('created'))} UTC"
    return f"{_minute(manifest['created'])} UTC, sealed after {_seconds(took.total_seconds())}"


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:,.3g} ms"
    return f"{seconds:,.3g} s" if seconds < 60 else f"{seconds // 60:,.0f} min {seconds % 60:.0f} s"
