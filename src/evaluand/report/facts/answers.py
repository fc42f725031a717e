"""The questions people open results with: which is better, what fails most, which groups are worse, what it cost.

Each answer says only what is stored: a difference is one of a comparison, a worse group one that was confirmed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evaluand.core.errors import plural
from evaluand.report.facts.base import Facts
from evaluand.report.text import between, disparity_phrase, group_name, numbers
from evaluand.report.usage import brief_usage, whole_cost

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import Measure

_MOST: Final = 3


class Answer(NamedTuple):
    """A question and what is known: sentences without a full stop, and what one can do to know more, or None."""

    question: str
    sentences: list[str]
    hint: str | None = None


def answers(facts: Facts, measures: Sequence[Measure] = ()) -> list[Answer]:
    """The answers, of results with at least one task.

    Args:
        facts: as `report_facts` returns them, with `headlines` and `not_compared`.
        measures: those of the metrics, which say whether higher is better.
    """
    return [
        _describe_best(facts),
        _describe_failures(facts, measures),
        _describe_groups(facts, measures),
        _describe_cost(facts),
    ]


def _describe_best(facts: Facts) -> Answer:
    several = len(facts["tasks"]) > 1
    question = "Which is better, and how sure is it?" if several else "How good is it, and how sure is it?"
    if facts.get("headlines"):
        return Answer(question, [*facts["headlines"], *warnings(facts)])
    values = [f"{row['task']}: {_format_value(row)}" for row in _overall_values(facts) if row["value"] is not None]
    values = values or [*_feedback_means(facts)]
    values = values[: 2 * _MOST] or ["No metric has been computed"]
    return Answer(question, [*values, *warnings(facts)], facts.get("not_compared"))


def warnings(facts: Facts) -> list[str]:
    """What must be known before any value: that a run was stopped early, that replies could not be read."""
    return [*facts["caveats"], *(unread["sentence"] for unread in facts["unread"])]


def _feedback_means(facts: Facts) -> Iterator[str]:
    """Those of recorded apps, by version."""
    for row in (facts.get("leaderboard") or {}).get("feedbacks", ()):
        if row["mean"] is not None:
            mean, low, high = numbers(row["mean"], row["low"], row["high"])
            interval = "" if row["low"] is None else f" ({between(low, high)})"
            scored = f"{row['n_scored']:,} of {row['n']:,} records scored"
            yield f"{row['label']}: mean {row['feedback']} {mean}{interval}, {scored}"


def _overall_values(facts: Facts) -> list[Facts]:
    """The metric values over all rows, not by group."""
    return [row for row in facts["metrics"] if not row["by"]]


def _format_value(row: Facts) -> str:
    value, low, high = numbers(row["value"], row["low"], row["high"])
    interval = "" if row["low"] is None else f" ({between(low, high)})"
    target = "" if row["target"] is None else f" · {row['target']}"
    scored = f"{row['n_scored']:,} of {row['n']:,} rows scored"
    return f"{row.get('label') or row['metric']}{target} {value}{interval}, {scored}"


def _describe_failures(facts: Facts, measures: Sequence[Measure]) -> Answer:
    question = "What fails most?"
    reasons = [{**reason, "task": entry["task"]} for entry in facts["tasks"] for reason in entry["missing"]]
    reasons.sort(key=lambda reason: -reason["count"])
    found = [
        f"{each['task']}: {each['count']:,} {each['status']} by {each['scorer'] or 'the task'}: {each['reason']}"
        for each in reasons[:_MOST]
    ]
    if len(reasons) > _MOST:
        rest = sum(reason["count"] for reason in reasons[_MOST:])
        found.append(f"{rest:,} more for {plural(len(reasons) - _MOST, 'other reason')}")
    if not found:
        found = ["No call failed, and every row was scored"] if _overall_values(facts) else ["No call failed"]
    return Answer(question, found + _count_wrong(facts, measures))


def _count_wrong(facts: Facts, measures: Sequence[Measure]) -> list[str]:
    """How many answers are wrong by each accuracy, the largest share first; what has no answer is not among them."""
    found = []
    for row in _overall_values(facts):
        metric = next((each.metric for each in measures if each.metric.signature == row["signature"]), None)
        if metric is None or metric.kind != "accuracy" or getattr(metric, "weighted", False) or not row["n_scored"]:
            continue
        missing = row["n_failed"] + row["n_abstained"] if metric.missing == "wrong" else 0
        wrong, scored = row["data"]["n"] - row["data"]["correct"] - missing, row["data"]["n"] - missing
        target = "" if row["target"] is None else f" · {row['target']}"
        if wrong > 0:
            text = f"{row['task']}: {wrong:,} of {scored:,} wrong by {row.get('label') or row['metric']}{target}"
            found.append((wrong / scored, text))
    found.sort(key=lambda each: -each[0])
    more = [f"{plural(len(found) - 2 * _MOST, 'more count')} of wrong answers"] if len(found) > 2 * _MOST else []
    return [text for _, text in found[: 2 * _MOST]] + more


def _key(row: Facts) -> tuple[Any, ...]:
    return row["scorer"], row["signature"], row["target"], tuple(row["by"])


def _describe_groups(facts: Facts, measures: Sequence[Measure]) -> Answer:
    question = "Which groups are worse?"
    searched = [row for row in facts.get("worst_groups") or () if row["by"] is not None]
    found = [
        f"{row['task']}: {group_name(row['by'])} is worse than all other rows by {row['metric']}, "
        f"{numbers(row['value'])[0]} instead of {numbers(row['rest'])[0]}"
        for row in searched
        if row["confirmed"]
    ]
    found += [
        _describe_disparity(row) for row in facts.get("disparities") or () if row["found"] and not row.get("given")
    ]
    if found:
        return Answer(question, found[: 2 * _MOST])
    if searched or facts.get("disparities"):
        return Answer(question, ["No group is shown to be worse"])
    hint = "Declare `disparities:` or `worst_groups:` for a metric in the experiment file to know which are"
    values = [*_worst_values(facts, measures)]
    known = (
        ["No groups were compared; by their values alone:", *values] if values else ["No metric was computed by group"]
    )
    return Answer(question, known, hint)


def _worst_values(facts: Facts, measures: Sequence[Measure]) -> Iterator[str]:
    """The group in which the first metric of each task is worst, of all groupings that it was computed by."""
    directions = {(each.scorer, each.metric.kind): each.metric.direction for each in measures}
    for entry in facts["tasks"]:
        rows = [row for row in facts["metrics"] if row["task"] == entry["task"] and row["by"]]
        first = [row for row in rows if _key(row)[:3] == _key(rows[0])[:3]]
        for row in first:
            if row["n"] and not row["n_scored"]:
                yield f"{entry['task']} has no score for {group_name(row['by'])}, {row['n']:,} rows"
        known = [row for row in first if row["value"] is not None]
        direction = directions.get((first[0]["scorer"], first[0]["metric"])) if first else None
        if direction is None or len({row["value"] for row in known}) < 2:
            continue
        worst = (max if direction == "lower" else min)(known, key=lambda row: row["value"])
        value, low, high = numbers(worst["value"], worst["low"], worst["high"])
        interval = "" if worst["low"] is None else f" ({between(low, high)})"
        missing = f", {worst['n_scored']:,} of {worst['n']:,} rows scored" if worst["n_scored"] < worst["n"] else ""
        yield f"{entry['task']} is worst for {group_name(worst['by'])}: {worst['metric']} {value}{interval}{missing}"


def _describe_disparity(row: Facts) -> str:
    family = row.get("family_size") or 1
    value, low, high = numbers(row["value"], *(row[f"family_{end}" if family > 1 else end] for end in ("low", "high")))
    adjusted = f", adjusted for {family:,} disparities" if family > 1 else ""
    ends = [group_name(row[end]) for end in ("lowest", "highest") if row[end]]
    groups = f" between {' and '.join(ends)}" if len(ends) == 2 else ""
    return f"{row['task']}: {row['metric']} {disparity_phrase(row)} is {value} ({between(low, high)}{adjusted}){groups}"


def _describe_cost(facts: Facts) -> Answer:
    question = "What did it cost?"
    used = [
        f"{entry['task']}: {text}"
        for entry in facts["tasks"]
        for text in [" + ".join(_texts_of([entry["run"], entry["evaluation"] or {}]))]
        if text
    ]
    if cost := whole_cost(step for entry in facts["tasks"] for step in (entry["run"], entry["evaluation"]) if step):
        used.append(f"Cost of making all of it: {cost}")
    return Answer(question, used or ["No call says what it used"])


def _texts_of(steps: Sequence[Facts]) -> Iterator[str]:
    for step, what in zip(steps, ("", "judges "), strict=True):
        if text := brief_usage(step):
            yield f"{what}{text}"
