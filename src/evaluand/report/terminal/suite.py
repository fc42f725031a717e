"""The results of a suite for the terminal, built from facts alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.core.errors import plural
from evaluand.models.usage_total import UsageTotal
from evaluand.report.facts.base import Facts
from evaluand.report.terminal.cells import CELL, plain_table
from evaluand.report.text import between, number_format, numbers, safe, seconds

_WITH_INTERVALS: Final = 4
_SHOWN_SYSTEMS: Final = 10
_BEST: Final = " *"


def suite_table(facts: Facts) -> RenderableType:
    """Scores by problem, mean ranks, means over problems, and cost."""
    parts: list[RenderableType] = [*_scores(facts), "", *_ranks(facts), "", *_means(facts), "", *_costs(facts)]
    return Group(*parts)


def rank_sentences(facts: Facts) -> Iterator[str]:
    """What the ranks say: the test, and which systems do not differ significantly; and which problems were left out."""
    ranks, level = facts["ranks"], f"{1 - facts['confidence']:.3g}"
    if ranks["test"] is None:
        yield f"no test of the ranks: {ranks['reason']}"
    elif ranks["test"] == "friedman":
        found = ranks["friedman"]
        chi, f = numbers(found["chi_squared"], found["f"])
        f = "∞" if found["f"] is None else f
        yield f"Friedman: χ² = {chi} (p = {found['p_chi_squared']:.2g}); Iman–Davenport: F = {f} (p = {found['p']:.2g})"
        if found["p"] < 1 - facts["confidence"]:
            distance = f"{ranks['critical_difference']:.3g}"
            yield (
                f"systems that share a letter do not differ significantly: mean ranks less than {distance} apart"
                f" (Nemenyi, level {level})"
            )
            others = [each for each in ranks["systems"] if each["p_control"] is not None]
            tests = ", ".join(f"{each['system']} p = {each['p_control']:.2g}" for each in others[:_SHOWN_SYSTEMS])
            yield f"against {ranks['control']} alone: {tests}{', …' if len(others) > _SHOWN_SYSTEMS else ''} (Holm)"
        else:
            yield f"no difference of the systems was found (level {level})"
    else:
        name = "Wilcoxon signed-rank test" if ranks["test"] == "wilcoxon" else "sign test, as the scales differ"
        verdict = "the systems differ" if ranks["p"] < 1 - facts["confidence"] else "no difference was found"
        yield f"{name} over problems: p = {ranks['p']:.2g} ({ranks['method']}); {verdict} (level {level})"
    reasons: dict[str, list[str]] = {}
    for problem in facts["problems"]:
        if problem["left_out"] is not None:
            reasons.setdefault(problem["left_out"], []).append(problem["problem"])
    for reason, problems in reasons.items():
        yield f"{_list(problems)} {'are' if len(problems) > 1 else 'is'} left out of ranks and means: {reason}"


def mean_sentences(facts: Facts) -> Iterator[str]:
    """What the means over problems rest on, or why there are none."""
    macro = facts["macro"]
    if macro["reason"] is not None:
        yield f"no mean over problems: {macro['reason']}"
        return
    if macro["no_interval"] is not None:
        yield f"no intervals: {macro['no_interval']}"
        return
    level = f"{100 * facts['confidence']:g} %"
    yield (
        f"{level} intervals, for other rows of the same problems: rows are drawn within each problem, the same for all"
        " systems"
    )
    if any(each["low"] is None for each in macro["systems"]):
        yield "no interval where the rows of each problem agree: they do not say how far other rows could differ"


def cost_cells(facts: Facts) -> tuple[list[str], list[list[str]]]:
    """The headings and the cells of the cost of each system; what nobody knows is `unknown`."""
    judged = any(each["judging"]["rows"] for each in facts["cost"])
    heads = ["calls", "cost", "tokens in", "tokens out", "time of calls", *(["cost of judges"] if judged else [])]
    return heads, [_cost_row(each, judged) for each in facts["cost"]]


def _cost_row(cost: Facts, judged: bool) -> list[str]:
    calls = UsageTotal.read(cost["calls"])
    known = calls.rows - calls.without_tokens
    tokens = [_known(n, known, cost["rows"], f"{n:,}") for n in (calls.input_tokens, calls.output_tokens)]
    time = "unknown" if cost["seconds"] is None else seconds(cost["seconds"])
    judges = [_money(UsageTotal.read(cost["judging"]))] if judged else []
    return [f"{cost['rows']:,}", _money(calls), *tokens, time, *judges]


def _money(total: UsageTotal) -> str:
    return safe(total.describe_cost() or "unknown", CELL)


def _known(n: int, known: int, rows: int, text: str) -> str:
    """A sum of rows; unknown if no row says it, and with their number if only some do."""
    return "unknown" if not known else text if known == rows else f"{text} ({known:,} of {rows:,} rows)"


def score_cell(value: Facts, form: str, *, with_interval: bool) -> str:
    """A score with its interval, and the number of scored rows if it is not that of all; the best one is marked."""
    if value["value"] is None:
        return "–" if value["state"] == "undefined" else str(value["state"])
    text: str = format(value["value"], form)
    if with_interval and value["low"] is not None and value["high"] is not None:
        text += f" ({between(format(value['low'], form), format(value['high'], form))})"
    if _is_partial(value):
        text += f" [{value['n_scored']:,}/{value['n']:,}]"
    return text + (_BEST if value["best"] else "")


def score_sentences(facts: Facts) -> Iterator[str]:
    """What the marks of scores mean, and why systems have none."""
    yield "* best of the problem"
    partial = [each for each in facts["problems"] if any(map(_is_partial, each["values"]))]
    if partial:
        yield "[scored/all]: the other rows failed or abstained"
    if any(each["missing"] == "leave_out" for each in partial):
        yield (
            "ranks and means rest on the scored rows alone, so a system that answers only easy rows looks good;"
            " `missing: wrong` at the metric counts the others as wrong"
        )
    yield from absent_sentences(facts)
    yield from facts["caveats"]


def _is_partial(value: Facts) -> bool:
    return value["value"] is not None and bool(value["n_scored"] < value["n"])


def absent_sentences(facts: Facts, *, with_reason: bool = True) -> Iterator[str]:
    """Which systems failed or were not run on which problems, each reason once."""
    for each in facts["absent"]:
        where = "" if each["system"] is None else f" on {_list(each['problems'])}"
        what = _list(each["problems"]) if each["system"] is None else each["system"]
        verb = "was not run" if each["state"] == "not run" else "failed"
        reason = f": {each['reason']}" if with_reason else ""
        yield f"{what} {verb}{where}{reason}"


def _list(names: Sequence[str]) -> str:
    """Names in a sentence; of more than four the first three."""
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3:,} more"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def by_rank(facts: Facts) -> list[int]:
    """The places of the systems, the best mean rank first; in their order without ranks."""
    ranks = [each["mean_rank"] for each in facts["ranks"]["systems"]]
    return sorted(range(len(ranks)), key=lambda place: (ranks[place] is None, ranks[place] or 0.0))


def score_name(problem: Facts) -> str:
    """The score of a problem, with its direction if lower is better."""
    lower = ", lower is better" if problem["direction"] == "lower" else ""
    return f"{problem['metric']} of {problem['scorer']}{lower}"


def count_text(problem: Facts) -> str:
    """The rows of a problem."""
    return f"{max((each['n'] for each in problem['values']), default=0):,}"


def _scores(facts: Facts) -> Iterator[RenderableType]:
    shown = by_rank(facts)[:_SHOWN_SYSTEMS]
    names = [safe(facts["systems"][place], CELL) for place in shown]
    scores = [safe(score_name(problem), CELL) for problem in facts["problems"]]
    is_shared = len({*scores}) == 1
    title = f"{safe(facts['suite'], CELL)}: {plural(len(scores), 'problem')}"
    yield Text(f"{title}, {scores[0]}" if is_shared else title, "bold")
    texts = ["problem", *(["score"] if not is_shared else [])]
    grid = plain_table(*texts, folded=texts, numbers=[*names, "rows"])
    for problem, score in zip(facts["problems"], scores, strict=True):
        values = [problem["values"][place] for place in shown]
        form = number_format(each[end] for each in values for end in ("value", "low", "high"))
        cells = [score_cell(each, form, with_interval=len(facts["systems"]) <= _WITH_INTERVALS) for each in values]
        own = [score] if not is_shared else []
        grid.add_row(*map(Text, (safe(problem["problem"], CELL), *own, *cells, count_text(problem))))
    yield grid
    yield from _dim(score_sentences(facts))
    if more := len(facts["systems"]) - len(shown):
        yield Text(f"{plural(more, 'more system')} of worse mean rank; --json and --html have all", "dim")


def _ranks(facts: Facts) -> Iterator[RenderableType]:
    ranks = facts["ranks"]
    yield Text(f"mean rank over {plural(ranks['problems'], 'problem')}; 1 is best", "bold")
    with_letters = any(each["letters"] is not None for each in ranks["systems"])
    grid = plain_table("system", folded=["system"], numbers=["mean rank", *["group"] * with_letters])
    form = number_format(each["mean_rank"] for each in ranks["systems"])
    for place in by_rank(facts):
        each = ranks["systems"][place]
        rank = "–" if each["mean_rank"] is None else format(each["mean_rank"], form)
        cells = (safe(each["system"], CELL), rank, *[each["letters"] or ""] * with_letters)
        grid.add_row(*map(Text, cells))
    yield grid
    yield from _dim(rank_sentences(facts))


def _means(facts: Facts) -> Iterator[RenderableType]:
    macro = facts["macro"]
    if macro["systems"]:
        yield Text(f"mean score over {plural(macro['problems'], 'problem')}, each counts once", "bold")
        heads = ["mean", "interval", "difference from best", "its interval"]
        grid = plain_table("system", folded=["system"], numbers=heads)
        for cells in mean_cells(macro):
            grid.add_row(*map(Text, cells))
        yield grid
    yield from _dim(mean_sentences(facts))


def mean_cells(macro: Facts) -> Iterator[Sequence[str]]:
    """The name, mean, interval, difference from the best and its interval of each system, the best first."""
    worst_first = macro["direction"] == "lower"
    order = sorted(macro["systems"], key=lambda each: each["value"] if worst_first else -each["value"])
    form = number_format(each[name] for each in order for name in ("value", "low", "high"))
    for each in order:
        value, low, high, difference, least, most = (
            "–" if each[name] is None else format(each[name], form).replace("-", "−")
            for name in ("value", "low", "high", "difference", "difference_low", "difference_high")
        )
        is_best = each["system"] == macro["best"]
        differs = ("best", "") if is_best else (difference, between(least, most))
        yield (safe(each["system"], CELL), value, between(low, high), *differs)


def _costs(facts: Facts) -> Iterator[RenderableType]:
    yield Text("cost of all rows, whenever they were made", "bold")
    heads, rows = cost_cells(facts)
    grid = plain_table("system", folded=["system"], numbers=heads)
    for system, cells in zip(facts["systems"], rows, strict=True):
        grid.add_row(*map(Text, (safe(system, CELL), *cells)))
    yield grid
    yield from _dim(cost_sentences(facts))


def cost_sentences(facts: Facts) -> Iterator[str]:
    """Which costs are without which problems."""
    systems: dict[tuple[str, ...], list[str]] = {}
    for each in facts["cost"]:
        if each["without"]:
            systems.setdefault(tuple(each["without"]), []).append(each["system"])
    for problems, names in systems.items():
        of = "" if len(names) == len(facts["systems"]) else f" of {_list(names)}"
        yield f"the cost{of} is without {_list(problems)}, where there is no result"


def _dim(sentences: Sequence[str] | Iterator[str]) -> Iterator[Text]:
    return (Text(safe(each, 6 * CELL), "dim") for each in sentences)
