"""Numbers, times and foreign text, formatted for people."""

import datetime as dt
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from evaluand.core.errors import pluralize

SHORT_ID = 12
LABEL = 60
_HUGE = 1e15
_REASONS = 5
_JOINERS = "\u200c\u200d"


def safe(text: object, limit: int = 0) -> str:
    r"""Text that cannot control a terminal: control, invisible and direction characters become escapes.

    Args:
        text: anything; its `str` is taken.
        limit: the most characters of it to show; 0 is all.

    Example:
        >>> print(safe("red: \x1b[31m, and long", limit=12))
        red: \x1b[31m,…
    """
    shown = str(text)
    if limit and len(shown) > limit:
        shown = shown[: limit - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() or c in _JOINERS else c.encode("unicode_escape").decode() for c in shown)


def escape_controls(text: str) -> str:
    r"""Text for a terminal in which control, invisible and direction characters are written as in JSON.

    Line breaks and tabs stay. JSON means the same afterwards.

    Example:
        >>> print(escape_controls('{"name": "\x9b31m"}'))
        {"name": "\u009b31m"}
    """
    return _CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], text)


_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)


def safe_lines(text: str) -> str:
    r"""Text of several lines, each as `safe` shows it.

    Example:
        >>> safe_lines("one\r\ntwo\tthree")
        'one\ntwo\\tthree'
    """
    return "\n".join(safe(line.rstrip("\r")) for line in text.split("\n"))


def numbers(*values: float | None) -> list[str]:
    """Formats related numbers with the same number of decimals; `–` for None.

    Example:
        >>> numbers(0.8125, 0.79, None), numbers(3.0, 12.0), numbers(1234.5678)
        (['0.812', '0.790', '–'], ['3', '12'], ['1,234.6'])
    """
    form = number_format(values)
    return ["–" if v is None else format(v, form) for v in values]


def number_format(values: Iterable[float | None]) -> str:
    """The format of some numbers: enough decimals for the largest of them, none if all are integers."""
    known = [float(v) for v in values if v is not None]
    size = max(map(abs, known), default=0.0)
    if all(v.is_integer() for v in known) and size < _HUGE:
        return ",.0f"
    digits = math.floor(math.log10(size)) if 0 < size < math.inf else 0
    if digits < -6 or size >= _HUGE:
        return ".3e"
    return f",.{min(max(3 - digits, 1), 3) if digits >= -1 else 2 - digits}f"


def bounds_text(worst: str, best: str) -> str:
    """The bounds of a value if no row were missing; an unknown end, `–`, becomes a word.

    Example:
        >>> bounds_text("0.75", "1.00"), bounds_text("–", "0.083")
        ('0.75 … 1.00', 'no limit … 0.083')
    """
    return f"{'no limit' if worst == '–' else worst} … {'no limit' if best == '–' else best}"


def row_bounds(row: Mapping[str, Any], worst: str, best: str) -> str:
    """The bounds of a row of values, whose ends are formatted; empty if no row is missing, or none could change it."""
    if row["worst"] != row["best"]:
        return bounds_text(worst, best)
    is_unknown = row["worst"] is None and row["value"] is not None and row["n_failed"] + row["n_abstained"] > 0
    return "unknown" if is_unknown else ""


def between(low: str, high: str) -> str:
    """An interval of two formatted numbers, of which `–` is an end that it does not have; empty without both.

    Its words and minus signs cannot be taken for dashes.

    Example:
        >>> between("-0.120", "0.030"), between("–", "0.030"), between("–", "–")
        ('−0.120 to 0.030', '−∞ to 0.030', '')
    """
    if low == high == "–":
        return ""
    return f"{'-∞' if low == '–' else low} to {'∞' if high == '–' else high}".replace("-", "−")


def bracketed(low: str, high: str) -> str:
    """An interval of two formatted numbers as a terminal shows it beside a value; empty without one.

    Example:
        >>> bracketed("0.208", "0.939"), bracketed("–", "–")
        ('[0.208 – 0.939]', '')
    """
    return "" if low == high == "–" else f"[{low} – {high}]"


def group_name(by: Mapping[str, str | None]) -> str:
    """The name of a group; a missing value is written so that no value looks like it.

    Example:
        >>> group_name({"topic": "sums", "language": None}), group_name({"language": "none"})
        ('topic=sums, without language', 'language=none')
    """
    return ", ".join(
        f"without {safe(name, LABEL)}" if value is None else f"{safe(name, LABEL)}={safe(value, LABEL)}"
        for name, value in by.items()
    )


def worst_groups_notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How worst groups were found, and where there are none.

    Example:
        >>> row = {"task": "a", "label": "accuracy", "target": None, "by": None, "n_looked": 3}
        >>> worst_groups_notes([row])
        ['accuracy of a: none of 3 groups looks worse than all rows on half of the examples']
    """
    notes = []
    for row in rows:
        if row["by"] is None:
            target = "" if row["target"] is None else f", {safe(row['target'], LABEL)}"
            which = f"none of {row['n_looked']:,} groups looks worse than all rows on half of the examples"
            which = which if row["n_looked"] else "no group has enough rows on half of the examples"
            notes.append(f"{safe(row['label'], 2 * LABEL)} of {safe(row['task'], LABEL)}{target}: {which}")
    found = [row for row in rows if row["by"] is not None]
    if found:
        looked = max(row["n_looked"] for row in found)
        notes.append(
            f"the worst of up to {looked:,} groups were chosen on half of the examples and judged on the other half;"
            " the intervals of a metric hold at the same time"
        )
    return list(dict.fromkeys(notes))


def disparity_phrase(row: Mapping[str, Any]) -> str:
    """What is compared, in the words of a gate.

    Example:
        >>> row = {"disparity": "ratio_to_overall", "over": ["race"]}
        >>> disparity_phrase(row)
        'ratio to overall by race'
        >>> pair = {"disparity": "difference", "reference": {"race": "a"}, "other": {"race": "b"}}
        >>> disparity_phrase(row | pair | {"given": {"age": None}})
        'difference by race from a to b given age (standardised)'
    """
    text = f"{row['disparity'].replace('_', ' ')} by {', '.join(safe(name, LABEL) for name in row['over'])}"
    for word, name in (("from", "reference"), ("to", "other")):
        text += f" {word} {_group_values(row[name])}" if row.get(name) else ""
    given = row.get("given") or {}
    if given and None in given.values():
        return f"{text} given {', '.join(safe(name, LABEL) for name in given)} (standardised)"
    return f"{text} given {group_name(given)}" if given else text


def rests_on(row: Mapping[str, Any]) -> str:
    """The scored rows behind a value where these are not all scored rows; for recall those that were expected.

    Example:
        >>> rests_on({"data": {"rests_on": 26.7}}), rests_on({"data": None})
        ('26.7', '')
    """
    n = (row["data"] or {}).get("rests_on")
    return "" if n is None else f"{n:,.6g}"


def family_notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What adjusted intervals of disparities allow for, and what a star says.

    Example:
        >>> list(family_notes([{"family_size": 16, "family_method": "bonferroni", "found": False}]))
        ['adjusted intervals hold at once for all 16 disparities of a system (Bonferroni); none shows a disparity']
    """
    families = {(row["family_method"], row["family_size"]) for row in rows if (row.get("family_size") or 0) > 1}
    starred = "* marks those that show a disparity" if any(row["found"] for row in rows) else "none shows a disparity"
    for method, size in sorted(families):
        yield f"adjusted intervals {_ADJUSTED[method].format(f'{size:,}')}; {starred}"
    if not families and any(row["found"] for row in rows):
        yield "* marks an interval that shows a disparity"


_ADJUSTED: Final = {
    "bonferroni": "hold at once for all {} disparities of a system (Bonferroni)",
    "fdr_by": "control the false coverage rate among {} disparities of a system (Benjamini–Yekutieli)",
}


def _group_values(group: Mapping[str, str | None]) -> str:
    return ", ".join(safe(str(value), LABEL) for value in group.values())


def join_names(names: Sequence[str]) -> str:
    """Joins names of groups, which may contain commas; of many names the first 20."""
    more = [f"and {len(names) - _LISTED:,} more"] if len(names) > _LISTED else []
    return "; ".join([*names[:_LISTED], *more])


_LISTED: Final = 20


def defaulted_text(provenance: Mapping[str, Any] | None) -> str:
    """How many rows a view's default replaced, with the first reasons; empty if none."""
    defaulted = (provenance or {}).get("defaulted")
    if not defaulted:
        return ""
    reasons = [f"{times:,} × {why}" for why, times in list(defaulted["reasons"].items())[:_REASONS]]
    more = ["…"] if len(defaulted["reasons"]) > _REASONS else []
    replaced = f"the view's default in place of {defaulted['rows']:,} of {defaulted['of']:,} rows: "
    return replaced + "; ".join(reasons + more)


def git_text(provenance: Mapping[str, Any]) -> str:
    """The commit of the code that made an artifact, and whether files had changed since; empty outside a checkout.

    Example:
        >>> git_text({"git": {"commit": "3f2a", "changed": None}})
        '3f2a, changes unknown'
    """
    git = provenance.get("git")
    if not isinstance(git, Mapping):
        return ""
    if not git.get("commit"):
        return "unknown commit"
    changed = git.get("changed")
    state = "changes unknown" if changed is None else "with changes" if changed else "without changes"
    return f"{git['commit']}, {state}"


def clusters_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """The clusters behind intervals where rows are not independent; empty where they are.

    Args:
        rows: with `clusters`, their number or None, and `clustered_by`, the column that defines them; None means that
            each example with its rows is a cluster.

    Example:
        >>> clusters_text([{"clusters": 12, "clustered_by": "page"}, {"clusters": 9, "clustered_by": "page"}])
        '9 to 12 clusters (page)'
        >>> clusters_text([{"clusters": 1, "clustered_by": None}]), clusters_text([{"clusters": None}])
        ('1 example', '')
    """
    counts: dict[str | None, list[int]] = {}
    for row in rows:
        if row.get("clusters") is not None:
            counts.setdefault(row["clustered_by"], []).append(row["clusters"])
    parts = []
    for column, found in counts.items():
        number = " to ".join(f"{n:,}" for n in dict.fromkeys((min(found), max(found))))
        noun = pluralize(max(found), "example" if column is None else "cluster")
        parts.append(f"{number} {noun}" if column is None else f"{number} {noun} ({safe(column, LABEL)})")
    return " and ".join(parts)


def minute(time: str | None) -> str:
    """The minute of a time as manifests write it.

    Example:
        >>> minute("2026-11-21T02:10:03.123456+00:00")
        '2026-11-21 02:10'
    """
    return safe((time or "")[:16].replace("T", " "))


def format_creation(manifest: Mapping[str, Any]) -> str:
    """When an artifact was begun, and how long it took to complete."""
    begun = f"{minute(manifest.get('created'))} UTC"
    took = measure_creation(manifest)
    return begun if took is None else f"{begun}, complete after {took}"


def measure_creation(manifest: Mapping[str, Any]) -> str | None:
    """How long it took to complete an artifact; None if it is not complete, or does not say."""
    try:
        time = dt.datetime.fromisoformat(manifest["sealed"]) - dt.datetime.fromisoformat(manifest["created"])
    except (KeyError, ValueError):
        return None
    return seconds(time.total_seconds())


def example_name(index: int, id: str | None) -> str:
    """The name of an example: its `_index_`, and its id if it has one."""
    return f"_index_ {index}" if id in (None, str(index)) else f"_index_ {index} {safe(id, LABEL)}"


def extraction_text(read: Mapping[str, Any]) -> str:
    """What was read from a reply to be graded, in a line.

    Example:
        >>> extraction_text({"text": "B", "rule": "statement", "candidates": 2})
        "read 'B' by rule 'statement', 2 candidates"
        >>> extraction_text({"reason": "the reply names several options", "candidates": 2})
        'unread: the reply names several options'
    """
    if "reason" in read:
        return f"unread: {read['reason']}"
    text = " ".join(str(read["text"]).split())
    shown = text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"
    several = f", {read['candidates']:,} candidates" if read["candidates"] > 1 else ""
    return f"read {shown!r} by rule {read['rule']!r}{several}"


def seconds(time: float | None) -> str:
    """A duration in a suitable unit.

    Example:
        >>> seconds(0.0042), seconds(9.6), seconds(75), seconds(7384), seconds(None)
        ('4.2 ms', '9.6 s', '1 min 15 s', '2 h 03 min', 'time unknown')
    """
    if time is None:
        return "time unknown"
    if time < 1:
        return f"{time * 1000:.3g} ms"
    if time < 59.95:
        return f"{time:.3g} s"
    whole = round(time)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
