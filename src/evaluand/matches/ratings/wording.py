"""Ratings in sentences: what they mean, and what the bias of the judges was.

Reports need the words without the arithmetic, so this module imports neither NumPy nor Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from evaluand.comparison.verdict import adjustment
from evaluand.core.errors import plural

MOST_JUDGES: Final = 20  # whose bias is shown one by one


def select_bias(rows: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], int]:
    """The rows of the bias of judges to show, and of how many judges they are not: with many, only all together.

    Example:
        >>> rows = [{"judge": name} for name in (None, *map(str, range(30)))]
        >>> select_bias(rows[:3]), select_bias(rows)
        (([{'judge': None}, {'judge': '0'}, {'judge': '1'}], 0), ([{'judge': None}], 30))
    """
    judges = {row["judge"] for row in rows} - {None}
    if len(judges) <= MOST_JUDGES:
        return [*rows], 0
    return [row for row in rows if row["judge"] is None], len(judges)


def bias_texts(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Position bias and inconsistency of judges, a sentence for each.

    Args:
        rows: the columns of `store.tables.BIAS`.

    Example:
        >>> row = {"judge": None, "measure": "position_bias", "share": 0.6, "low": 0.52, "high": 0.68, "n": 100.0}
        >>> [text] = bias_texts([row | {"first": 55.0, "second": 35.0, "neither": 10.0, "n_left_out": 0}])
        >>> print(text)
        The response shown first won 60.0 % [52.0, 68.0] of 100 judgements: the first 55, the second 35, 10 ties.
    """
    for row in rows:
        judge = "" if row["judge"] is None else f"{row['judge']}: "
        first, second, neither = (f"{row[name]:,.6g}" for name in ("first", "second", "neither"))
        if row["measure"] == "position_bias":
            text = "Position bias is unknown: no pair of systems was judged in both orders."
            left = plural(row["n_left_out"], "judgement") + " of pairs of systems seen in one order only"
            if row["n"]:
                text = (
                    f"The response shown first won {_format_share(row)} of {plural_of(row['n'], 'judgement')}: the"
                    f" first {first}, the second {second}, {neither} ties."
                )
        else:
            text = "Inconsistency is unknown: no pair was judged in both orders."
            left = plural(row["n_left_out"], "pair") + " judged in one order only"
            if row["n"]:
                text = (
                    f"{_format_share(row)} of {plural_of(row['n'], 'pair')} judged in both orders have opposite"
                    f" winners: the first response won twice in {first}, the second in {second}; {neither} more have"
                    " one tie."
                )
        yield judge + text + (f" Left out: {left}." if row["n_left_out"] else "")


def _format_share(row: Mapping[str, Any]) -> str:
    share = "an unknown share" if row["share"] is None else f"{100 * row['share']:.1f} %"
    if row["low"] is None or row["high"] is None:
        return share
    return f"{share} [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"


def format_rating(row: Mapping[str, Any], is_share: bool) -> str:
    """A rating with its interval: `1049 [1022, 1077]`, or `61.3 % [55.0, 67.2]` for shares.

    An end that no draw of the examples could bound is infinite.

    Example:
        >>> format_rating({"rating": 1049.4, "low": 1021.8, "high": None}, is_share=False)
        '1049 [1022, ∞]'
    """
    texts = {"rating": "–", "low": "−∞", "high": "∞"}
    for name in texts:
        if row[name] is not None:
            texts[name] = f"{100 * row[name]:.1f}" if is_share else f"{row[name]:.0f}"
    value = f"{texts['rating']}{' %' if is_share else ''}"
    return value if row["low"] is None and row["high"] is None else f"{value} [{texts['low']}, {texts['high']}]"


def plural_of(count: float, noun: str) -> str:
    """A count that may have a fraction, with its noun.

    Example:
        >>> plural_of(1.0, "pair"), plural_of(2.5, "pair")
        ('1 pair', '2.5 pairs')
    """
    return f"{count:,.6g} {noun if count == 1 else f'{noun}s'}"


def method_texts(facts: Mapping[str, Any]) -> Iterator[str]:
    """What the ratings mean, a sentence each.

    Args:
        facts: ratings, as `Ratings.to_dict` returns them.
    """
    method = facts["method"]
    parameters = method["parameters"]
    baseline = parameters.get("baseline")
    if method["kind"] == "bradley_terry":
        yield "Bradley–Terry ratings: their mean is 1000, and 400 points more are odds of 10 to 1."
        ties = parameters.get("ties")
        yield "A tie is half a win." if ties == "half" else f"Ties have a parameter ({ties})."
    elif baseline is not None:
        if is_at_equal_length(facts):
            equal = f"the share of wins against {baseline} if all responses were equally long"
            yield f"Win rates at equal length are {equal}, and win rates the raw share; a tie is half a win."
        else:
            yield f"Ratings are the share of wins against {baseline}; a tie is half a win."
    else:
        yield "Ratings are the mean share of wins over opponents, each of which counts equally; a tie is half a win."
    if parameters.get("weighted"):
        yield "Each match counts by the weight of its example; counts of matches do not."
    if covariates := parameters.get("covariates"):
        yield f"They are ratings at equal {', '.join(covariates).replace('_', ' ')}."
    if parameters.get("penalty"):
        yield f"A penalty of {parameters['penalty']:g} draws them towards the mean."
    rule = parameters.get("contradictory")
    if rule in ("tie", "drop"):
        yield f"Pairs with opposite winners in their two orders {'are ties' if rule == 'tie' else 'are left out'}."
    if parameters.get("missing") == "lose":
        yield "A missing response loses."
    yield (
        f"Intervals are at {100 * facts['confidence']:g} %; systems that share a letter cannot be distinguished at that"
        f" confidence, with p values adjusted by {adjustment(facts['differences'])}."
    )


def find_only_opponent(win_rates: Iterable[Mapping[str, Any]]) -> str | None:
    """The system that is in every match; None if there is none, or if only two systems met."""
    met = [{row["a"], row["b"]} for row in win_rates if row["win_rate"] is not None]
    common = set.intersection(*met) if met else set()
    return common.pop() if len(common) == 1 else None


def is_share(facts: Mapping[str, Any]) -> bool:
    """Whether ratings are shares of wins, and not points."""
    return bool(facts["method"]["kind"] != "bradley_terry")


def rating_label(method: Mapping[str, Any]) -> str:
    """What a table calls the ratings of a method.

    Args:
        method: its spec.

    Example:
        >>> rating_label({"kind": "equal_length"}), rating_label({"kind": "bradley_terry"})
        ('win rate at equal length', 'rating')
    """
    return _LABELS[method["kind"]]


_LABELS: Final = {"bradley_terry": "rating", "win_rate": "win rate", "equal_length": "win rate at equal length"}


def is_at_equal_length(facts: Mapping[str, Any]) -> bool:
    """Whether ratings are win rates at equal length, which differ from the raw ones."""
    return bool(facts["method"]["kind"] == "equal_length")


def count_texts(facts: Mapping[str, Any]) -> Iterator[str]:
    """What the columns of a ranking count, where readers could take one for another."""
    if is_at_equal_length(facts):
        yield "win rate at equal length: as if all responses were equally long; win rate: the raw share of wins"
    if not facts["method"]["parameters"].get("weighted") and any(
        abs(row["won"] + row["tied"] / 2 - row["win_rate"] * row["n"]) > _ROUNDING * row["n"]
        for row in facts["win_rates"]
        if row["win_rate"] is not None
    ):
        yield f"{PROBABILITIES}; rates add them up"


PROBABILITIES: Final = "outcomes are probabilities: won, tied and lost count the side with the higher one"


_ROUNDING: Final = 1e-6


def difference_text(facts: Mapping[str, Any]) -> str:
    """What the intervals and p values of differences are."""
    method = facts["method"]
    interval, test = _STATEMENTS["covariates" if method["parameters"].get("covariates") else method["kind"]]
    adjusted = f", adjusted by {adjustment(facts['differences'])}" if len(facts["differences"]) > 1 else ""
    text = f"interval: {interval}; p: {test}{adjusted}"
    return f"{text}; near the limit they may disagree" if adjusted or interval != test else text


_STATEMENTS: Final = {
    "bradley_terry": ("bootstrap over examples", "Student's t by example"),
    "covariates": ("Student's t by example", "Student's t by example"),
    "win_rate": ("Wilson by example", "sign-flip test by example"),
    "equal_length": ("Wilson by example", "Student's t by example"),
}
"""Method → where intervals and p values of differences come from; design/0018 says why they have two sources."""
