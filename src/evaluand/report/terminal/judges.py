"""Cards of judges, and what a mean by a judge is worth, for the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evaluand.judges.cards.wording import cost_text, measure_cells, measure_name
from evaluand.report.facts.evaluation import NOT_SENT, SENT
from evaluand.report.terminal.cells import CELL, long_text, name_values, plain_table
from evaluand.report.text import SHORT_ID, bracketed, numbers, safe, safe_lines

Facts = Mapping[str, Any]


def card_table(card: Facts, misses: int = 3) -> RenderableType:
    """A card: its measures, the confusion, what judging cost, and the worst misses."""
    parts = list(card_parts(card, misses))
    return Group(*itertools.chain.from_iterable((part, "") for part in parts[:-1]), parts[-1])


def card_parts(card: Facts, misses: int = 3) -> Iterator[RenderableType]:
    """The same, part by part."""
    yield Text.assemble((safe(card["judge"]["name"], CELL), "bold"), f"  {safe(card['basis'])}")
    yield _measures(card["measures"])
    if card["confusion"]:
        yield _confusion(card["confusion"])
    if card["calibration"]:
        yield _calibration(card["calibration"])
    if cost := cost_text(card):
        yield Text(safe(cost), "dim")
    if card["misses"] and misses:
        yield _misses(card["misses"], misses)


def tuning_table(facts: Facts) -> RenderableType:
    """The choice among several judges, and the card of the chosen one."""
    criterion = safe(facts["criterion"].replace("_", " "))
    table = plain_table("judge", numbers=(criterion, "interval", "abstained", "n"))
    table.add_column(Text(""), overflow="fold", style="dim")
    for each in facts["candidates"]:
        value, interval = measure_cells(each)
        share = f"{100 * each['abstained']:.0f} %"
        table.add_row(
            Text(safe(each["judge"], CELL)),
            value,
            interval,
            share,
            f"{each['items']:,}",
            Text(safe(each["reason"] or "")),
        )
    head = Text("on the half that chooses, the best first", "bold")
    return Group(head, table, "", Text("on the other half", "bold"), card_table(facts["card"], 0))


def standings_table(rows: Sequence[Facts]) -> RenderableType:
    """Whether the judges of some means were measured, and these means corrected for their errors.

    Args:
        rows: as `judge_facts` returns them.
    """
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    before = None
    for row in rows:
        label = f"judge {safe(row['judge'], CELL)}"
        if (label, row["text"]) != before:
            grid.add_row(Text(label, "bold"), Text(safe(row["text"]), _STYLES[row["status"]]))
        before = label, row["text"]
        if row["corrected"] is not None:
            grid.add_row("", Text(f"{safe(row['task'], CELL)}: {_corrected(row)}"))
    return grid


def asked_table(rows: Sequence[Facts]) -> RenderableType | None:
    """Which models judges ask by which rubrics; None where that is not known.

    Args:
        rows: as `judge_facts` returns them.
    """
    lines = dict.fromkeys((safe(row["judge"], CELL), *_question_cells(asked)) for row in rows for asked in row["asked"])
    if not lines:
        return None
    table = plain_table("judge", "model", "protocol", "rubric", "digest", folded=("judge", "model", "rubric"))
    for line in lines:
        table.add_row(*map(Text, line))
    return table


def _question_cells(asked: Facts) -> tuple[str, ...]:
    version = "" if asked["version"] is None else f" {asked['version']}"
    model, title = f"{asked['model'] or '–'}{version}", asked["title"] or "–"
    return safe(model, CELL), safe(asked["protocol"], CELL), safe(title, CELL), safe(asked["rubric"])[:SHORT_ID]


def rubric_parts(rubrics: Sequence[Facts]) -> Iterator[RenderableType]:
    """The rubrics of judges, word for word, as `rubric_facts` returns it."""
    for each in rubrics:
        question = "" if each["question"] is None else f", question {safe(each['question'], CELL)}"
        head = f"rubric of {safe(each['judge'], CELL)}{question}: {safe(each['title'], CELL)}"
        lines = [("dividing", safe_lines(each["dividing"]))] if each["dividing"] else []
        lines += [(message["role"], safe_lines(message["content"])) for message in each["messages"]]
        material = each["material"]
        lines.append(("material", safe_lines(material if isinstance(material, str) else ", ".join(material))))
        yield Text.assemble((head, "bold"), (f"  digest {each['rubric']}", "dim"))
        yield name_values(lines, "  ")


def sent_parts(row: Facts) -> Iterator[RenderableType]:
    """What a judge was sent about a row, if that was read."""
    if NOT_SENT in row:
        yield name_values([("sent to the judge", Text(safe(row[NOT_SENT]), "yellow"))], "  ")
    for each in row.get(SENT, ()):
        question = "" if each["question"] is None else f": {safe(each['question'], CELL)}"
        yield Text(f"  sent to the judge{question}", "dim")
        yield name_values([(said["role"], safe_lines(said["content"])) for said in each["messages"]], "    ")


_STYLES: Final = {"measured": "", "weak": "yellow", "stale": "yellow", "unmeasured": "yellow"}


def _corrected(row: Facts) -> str:
    corrected = row["corrected"]
    if corrected["value"] is None:
        return f"not corrected: {safe(corrected['reason'])}"
    raw, value, low, high = numbers(row["raw"]["value"], *(corrected[name] for name in ("value", "low", "high")))
    return f"{raw} judged right, {value} {bracketed(low, high)} corrected for its errors{row['overlap']}"


def _measures(rows: Sequence[Facts]) -> RenderableType:
    table = plain_table("", "", folded=[""], numbers=("value", "interval", "n"))
    table.add_column(Text(""), overflow="fold", style="dim")
    before = None
    for row in rows:
        name, part = measure_name(row)
        note = "; ".join(filter(None, (row["note"], row["reason"])))
        shown = "" if name == before else safe(name)
        table.add_row(Text(shown), Text(safe(part, CELL)), *measure_cells(row), f"{row['n']:,}", Text(safe(note)))
        before = name
    return table


def _confusion(rows: Sequence[Facts]) -> RenderableType:
    labels = list(dict.fromkeys(row["judge"] for row in rows))
    counts = {(row["people"], row["judge"]): row["n"] for row in rows}
    table = plain_table("people \\ judge", numbers=[safe(label, CELL) for label in labels])
    for people in dict.fromkeys(row["people"] for row in rows):
        cells = ((counts.get((people, judge), 0), people == judge) for judge in labels)
        table.add_row(
            Text(safe(people, CELL)), *(Text(f"{n:,}", "bold" if same else "" if n else "dim") for n, same in cells)
        )
    return table


def _calibration(rows: Sequence[Facts]) -> RenderableType:
    table = plain_table(numbers=("judge says", "people say", "interval", "n"))
    for row in rows:
        judge, people, low, high = numbers(row["judge"], row["people"], row["low"], row["high"])
        table.add_row(judge, people, "" if row["low"] is None else f"[{low}, {high}]", f"{row['n']:,}")
    return table


def _misses(misses: Sequence[Facts], n: int) -> RenderableType:
    parts: list[RenderableType] = [Text("worst misses", "bold")]
    for miss in misses[:n]:
        head = f"{safe(miss['id'], CELL)}: people {safe(miss['people'], CELL)}, judge {safe(miss['judge'], CELL)}"
        texts = [(name, long_text(value)) for name, value in (miss["texts"] or {}).items()]
        texts += [("because", long_text(miss["explanation"]))] if miss["explanation"] else []
        parts += [Text(head), name_values(texts, "  ")]
    if len(misses) > n:
        parts.append(Text(f"and {len(misses) - n:,} more (--json lists them)", "dim"))
    return Group(*parts)
