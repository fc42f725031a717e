"""An artifact for the terminal, made from facts alone."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.core.errors import plural
from evaluand.core.identity import stored_form
from evaluand.core.labels import shown_name
from evaluand.core.provenance import experiment_origin
from evaluand.models.extraction import COLUMN
from evaluand.models.usage_total import usage_text
from evaluand.report.counts import format_counts
from evaluand.report.facts.base import Facts, usage_facts
from evaluand.report.facts.evaluation import CALLS, NOT_SENT, SENT, feedback_calls
from evaluand.report.facts.run import CHATS
from evaluand.report.terminal.cells import (
    CELL,
    LINES,
    count_text,
    long_text,
    name_values,
    plain_table,
    status_text,
)
from evaluand.report.terminal.chats import chats_table
from evaluand.report.terminal.disparities import disparities_table
from evaluand.report.terminal.judges import asked_table, rubric_parts, sent_parts, standings_table
from evaluand.report.terminal.ratings import ratings_table
from evaluand.report.terminal.report import curves_tables, metrics_table, missing_table, unread_lines
from evaluand.report.terminal.spans import request_and_reply, span_contents, span_tree
from evaluand.report.terminal.worst_groups import worst_groups_table
from evaluand.report.text import (
    SHORT_ID,
    between,
    defaulted_text,
    example_name,
    extraction_text,
    format_creation,
    git_text,
    numbers,
    safe,
    seconds,
)
from evaluand.report.usage import spent_text, usage_lines
from evaluand.store.kinds import find_kind, singular
from evaluand.store.statuses import SCORE_STATUSES
from evaluand.store.store import Manifest

_NOTES = 20
_POINTS = 20


def artifact_table(facts: Facts) -> RenderableType:
    """One artifact: what it is, where it comes from, and its first rows."""
    parts: list[RenderableType] = [_head(facts), name_values(_describe_artifact(facts))]
    for table in find_kind(facts["kind"]).shown.body(facts) if facts["status"] == "sealed" else ():
        parts += ["", table]
    return Group(*parts)


def rubrics_table(facts: Facts) -> RenderableType:
    """The rubrics of an artifact, and nothing else of it."""
    return Group(_head(facts), *(part for each in rubric_parts(facts["rubrics"]) for part in ("", each)))


def _head(facts: Facts) -> Text:
    """Kind, id and names of an artifact."""
    kind, names = singular(facts["kind"]), safe(", ".join(map(shown_name, facts["names"])), 2 * CELL)
    return Text.assemble((f"{kind} ", "bold"), (facts["id"], "bold"), "  ", names)


def _describe_artifact(facts: Facts) -> Iterator[tuple[str, str | Text]]:
    manifest: Manifest = facts["manifest"]
    view, origin = find_kind(facts["kind"]).shown, manifest.get("provenance") or {}
    if facts["status"] == "sealed":
        yield "counts", format_counts(manifest.get("counts", {}))
    else:
        yield "status", Text("open: not finished yet", "yellow")
        for step in facts["progress"]:
            yield "done", f"{step['done']:,} of {step['total']:,} {safe(step['label'], CELL)}"
        yield "continue", safe(facts["resume"])
    for line in usage_lines(usage_facts(manifest).get("usage")) if view.sums_usage else ():
        yield "used", line
    if spent := spent_text(manifest):
        yield "spent", spent
    yield from view.describe(manifest["spec"])
    if manifest.get("attempt"):
        yield "attempt", f"{manifest['attempt'] + 1}"
    for name, key in ((view.made, "made_from"), ("used by", "used_by")):
        for other in facts.get(key) or ():
            yield (
                name,
                f"{singular(other['kind'])} {other['id'][:SHORT_ID]}  {safe(shown_name(other['name'] or ''), CELL)}",
            )
    yield "created", format_creation(manifest)
    if origin.get("covered"):
        yield "version covers", "; ".join(safe(what, 2 * CELL) for what in origin["covered"])
    if origin.get("unpinned"):
        yield "unpinned", "; ".join(safe(why, 2 * CELL) for why in origin["unpinned"])
    if defaulted := defaulted_text(origin):
        yield "defaulted", safe(defaulted, 4 * CELL)
    first = manifest.get("name")
    yield from _describe_origin(origin, "" if first in (None, *facts["names"]) else f", first as {safe(first, CELL)}")
    for sentence in facts.get("caveats", ()) if view.notes_stops else ():
        yield "note", Text(safe(sentence), "yellow")
    if "digest" in manifest:
        yield "digest", safe(manifest["digest"], CELL)


def _describe_origin(origin: Facts, first: str) -> Iterator[tuple[str, str]]:
    if source := experiment_origin({"provenance": origin}):
        task = f", task {safe(source.task, CELL)}" if source.task else ""
        limit = f", limit {source.limit:,}" if source.limit else ""
        limit += f", where {safe(source.where, 4 * CELL)}" if source.where else ""
        yield "experiment", f"{safe(source.path, 4 * CELL)}{task}{limit}{first}"
    if "source" in origin:
        yield "source", safe(origin["source"], 4 * CELL)
    if "evaluand" in origin:
        packages = {"evaluand": origin["evaluand"], "python": origin.get("python")} | (origin.get("packages") or {})
        yield "versions", ", ".join(f"{name} {safe(v, CELL)}" for name, v in packages.items() if v)
    if origin.get("platform"):
        yield "platform", safe(origin["platform"], 2 * CELL)
    if git := git_text(origin):
        yield "git", safe(git, 2 * CELL)


def run_body(facts: Facts) -> Iterator[RenderableType]:
    yield from _loss_lines(facts)
    if facts.get("unread"):
        yield unread_lines(facts["unread"])
    if facts["missing"]:
        yield missing_table([("", reason) for reason in facts["missing"]])
    manifest = facts["manifest"]
    repeated, task = manifest["spec"]["replications"] > 1, manifest["provenance"].get("task", "task")
    for row in facts["rows"]:
        yield _response(row, repeated, task, whole="grades" in facts)
    for grade, rows in facts.get("grades", {}).items():
        yield from _scores(grade, rows, repeated) if rows else ()


def _response(row: Facts, repeated: bool, task: str, *, whole: bool = False) -> RenderableType:
    """One call: question, answer and spans; with `whole` also the contents of each span."""
    replication = f", replication {row['replication']}" if repeated else ""
    attempts = f" in {row['attempts']} attempts" if row["attempts"] > 1 else ""
    head = Text.assemble(
        (example_name(row["_index_"], row.get("id")), "bold"), f"{replication}: ", status_text(row["status"])
    )
    head.append(f"{attempts}, {seconds(row['duration'])}")
    pairs: list[tuple[str, str | Text]] = [
        (n, long_text(row[n])) for n in ("input", "asked", "expected") if row.get(n) is not None
    ]
    if row["error"]:
        code = f" [{row['error']['code']}]" if row["error"]["code"] is not None else ""
        pairs.append(("error", Text(long_text(f"{row['error']['type']}: {row['error']['message']}{code}"), "red")))
        if row["error"]["place"]:
            pairs.append(("at", safe(row["error"]["place"], 2 * CELL)))
    elif row["responses"] is None:
        pairs.append(("response", Text("no answer", "yellow")))
    for response in row["responses"] or ():
        pairs.append(("response", long_text(response)))
        if isinstance(response, dict) and isinstance(read := response.get(COLUMN), dict):
            pairs.append((COLUMN, safe(extraction_text(read))))
    if row["usage"]:
        pairs.append(("used", safe(usage_text(row["usage"]), 2 * CELL)))
    if CHATS in row:
        return Group(head, name_values(pairs, "  "), chats_table(row[CHATS]))
    if row["spans"]:
        pairs += request_and_reply(row["spans"][0])
        pairs.append(("trace", span_tree(row, task)))
    return Group(head, name_values(pairs, "  "), *(span_contents(row["spans"]) if whole else ()))


def evaluation_body(facts: Facts) -> Iterator[RenderableType]:
    counts = {scorer: facts["manifest"]["counts"][scorer] for scorer in facts["rows"]}
    table = plain_table("scorer", numbers=("rows", *SCORE_STATUSES))
    for scorer, found in counts.items():
        styled = zip((found.get(s, 0) for s in SCORE_STATUSES), ("", "red", "yellow", ""), strict=True)
        table.add_row(Text(safe(scorer, CELL)), count_text(sum(found.values())), *(count_text(n, s) for n, s in styled))
    yield table
    if facts.get("unread"):
        yield unread_lines(facts["unread"])
    if judges := facts.get("judges"):
        yield standings_table(judges)
        if (asked := asked_table(judges)) is not None:
            yield asked
    yield from rubric_parts(facts.get("rubrics", ()))
    if facts["missing"]:
        yield missing_table([("", reason) for reason in facts["missing"]])
    for row in facts.get("calls", ()):
        yield _response(row, facts["replications"] != 1, facts["task"], whole=True)
    for scorer, rows in facts["rows"].items():
        yield from _scores(scorer, rows, facts["replications"] != 1) if rows else ()
    if "against" in facts:
        alike = [safe(scorer, CELL) for scorer, rows in facts["rows"].items() if not rows]
        other = safe(shown_name(facts["against"]["name"] or "") or facts["against"]["id"][:SHORT_ID], CELL)
        yield from [Text(f"{', '.join(alike)}: same grades by {other}", "dim")] if alike else []


def _scores(scorer: str, rows: Sequence[Facts], repeated: bool) -> Iterator[RenderableType]:
    yield Text(safe(scorer, CELL), "bold")
    for row in rows:
        yield _score(row, repeated)


def _score(row: Facts, repeated: bool) -> RenderableType:
    """One graded row: key, grade, question, answer, and the columns of the scorer."""
    key = [f"replication {row['replication']}"] if repeated else []
    key += [f"_response_index_ {row['_response_index_']}"] if row["_response_index_"] else []
    key += [f"target {safe(row['target'], CELL)}"] if row["target"] is not None else []
    name = example_name(row["_index_"], row.get("id"))
    key += [f"in {safe(row['evaluation'], CELL)}"] if "evaluation" in row else []
    head = Text.assemble((name, "bold"), "".join(f", {part}" for part in key), ": ")
    head.append(status_text(row["status"])).append("" if row["value"] is None else f" {numbers(row['value'])[0]}")
    pairs: list[tuple[str, str | Text]] = [
        (n, long_text(row[n])) for n in ("input", "asked", "expected") if row.get(n) is not None
    ]
    pairs += [("response", long_text(response)) for response in row.get("responses") or ()]
    calls = feedback_calls(row.get(CALLS)) or []
    shown = (n for n in row if n not in _NOT_SHOWN and row[n] is not None and not (calls and n == CALLS))
    pairs += [(n, safe(extraction_text(row[n])) if n == COLUMN else long_text(row[n])) for n in shown]
    if row.get("usage"):
        pairs.append(("used", safe(usage_text(row["usage"]), 2 * CELL)))
    for number, call in enumerate(calls[:LINES], 1):
        values = [*call["args"].items(), *call["meta"].items()]
        pairs += [(f"call {number}", _call_result(call)), *((f"  {n}", long_text(v)) for n, v in values)]
    if len(calls) > LINES:
        pairs.append(("", f"and {len(calls) - LINES:,} more calls (--json lists all)"))
    chats = [chats_table(row[CHATS])] if CHATS in row else []
    return Group(head, name_values(pairs, "  "), *chats, *sent_parts(row))


def _call_result(call: Facts) -> Text:
    if call["error"] is not None:
        return Text(long_text(call["error"]), "red")
    return Text("no value", "yellow") if call["ret"] is None else Text(long_text(call["ret"]))


_KEY = ("_index_", "replication", "_response_index_", "target", "fold", "digest")
_NOT_SHOWN = frozenset(
    (
        *_KEY,
        "evaluation",
        "status",
        "value",
        "id",
        "input",
        "asked",
        "expected",
        "responses",
        "usage",
        CHATS,
        SENT,
        NOT_SENT,
    )
)


def aggregation_body(facts: Facts) -> Iterator[RenderableType]:
    if "rows" in facts:
        for value, rows in facts["rows"].items():
            yield from (
                _scores(value, rows, any(row["replication"] for row in rows))
                if rows
                else [Text(f"{safe(value, CELL)}: no such rows")]
            )
        return
    yield metrics_table(facts["metrics"])
    if judges := facts.get("judges"):
        yield standings_table(judges)
    if facts["disparities"]:
        yield disparities_table(facts["disparities"])
    if facts["worst_groups"]:
        yield worst_groups_table(facts["worst_groups"])
    yield from curves_tables(facts)
    for ratings in facts["ratings"]:
        yield Group(Text(safe(ratings["title"], CELL), "bold"), ratings_table(ratings))
    for trade in facts["tradeoffs"]:
        yield Text(f"trade-off: {safe(trade['name'], 2 * CELL)}", "bold")
        yield Text(safe(trade["reason"])) if trade["reason"] else points_table(trade["points"])
        yield from (Text(f"note: {safe(note)}") for note in trade.get("notes", ())[:_NOTES])
        if (more := len(trade.get("notes", ())) - _NOTES) > 0:
            yield Text(f"note: and {more:,} more", "dim")


def points_table(points: Sequence[Facts]) -> RenderableType:
    """The points of a trade-off: one line per objective."""
    heads = ("point", "from", "objective", "value", "interval", "front")
    table = plain_table(*heads, folded=("point", "objective"))
    for point in points[:_POINTS]:
        threshold = "" if point["threshold"] is None else f"{point['threshold']:.6g}"
        head = (safe(point["model"], CELL), threshold, "yes" if point["front"] else "")
        for objective, come in point["values"].items():
            value, low, high = ("–" if come.get(n) is None else numbers(come[n])[0] for n in ("value", "low", "high"))
            interval = between(low, high)
            table.add_row(*map(Text, (*head[:2], safe(objective, CELL), value, interval, head[2])))
            head = ("", "", "")
    if len(points) > _POINTS:
        table.add_row(Text(f"and {len(points) - _POINTS:,} more", "dim"))
    return table


def dataset_body(facts: Facts) -> Iterator[RenderableType]:
    roles = [(name, columns) for name, columns in facts["roles"].items() if columns not in (None, [], {})]
    yield name_values([(name, columns if isinstance(columns, str) else spec_text(columns)) for name, columns in roles])
    table = plain_table("column", "type")
    for name, kind in facts["columns"].items():
        table.add_row(Text(safe(name, CELL)), Text(safe(kind, 2 * CELL)))
    yield table
    for row in facts["rows"]:
        shown = [(n, long_text(v)) for n, v in row.items() if n != "_index_" and v not in (None, {})]
        yield Group(Text(f"_index_ {row['_index_']}", "bold"), name_values(shown, "  "))


def recording_body(facts: Facts) -> Iterator[RenderableType]:
    yield name_values([(safe(name, CELL), format_counts(counts)) for name, counts in facts["feedbacks"].items()])
    yield from _loss_lines(facts)


def _loss_lines(facts: Facts) -> Iterator[Text]:
    if lost := facts.get("damaged_lines"):
        yield Text(f"{plural(lost, 'damaged line')} of its journal could not be read, so records are lost", "yellow")
    if lost := facts.get("missing_records"):
        yield Text(
            f"at least {plural(lost, 'record')} could not be read and {'is' if lost == 1 else 'are'} lost", "yellow"
        )


def spec_text(value: Any) -> str:
    """JSON that wraps at blanks, cut at one of them if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=stored_form)
    if len(text) > 4 * CELL:
        text = f"{text[: 4 * CELL].rpartition(' ')[0] or text[: 4 * CELL]} …"
    return safe(text)
