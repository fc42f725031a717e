"""The labels of metrics in tables. Separate from `text`, which start-up imports and which must not load metrics.

add_labels       rows of values, each with the label of its metric
metric_labels    the label of each metric of some rows
value_formats    the number format of each metric of some rows
value_texts      a value, its interval and its bounds as texts
distinct_values  rows of values, each value once
left_out_text    the metrics that a comparison leaves out, by reason
values_alone     of a value that judge and people make together, what each alone says
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from evaluand.metrics.base.signature import distinguishing_words, words_of
from evaluand.metrics.names import FUNCTION, name_in_tables, printed_name
from evaluand.report.text import LABEL, number_format, numbers, safe

_NUMBERS: Final = ("value", "low", "high", "worst", "best")
_CONFUSION: Final = "confusion_matrix"

_Row = TypeVar("_Row", bound=Mapping[str, Any])


def add_labels(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with a metric's signature, each with the `label` of its metric in tables."""
    labels = metric_labels(rows)
    return [{**row, "label": labels[row["scorer"], row["signature"]]} for row in rows]


def metric_labels(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """(scorer, signature) → the metric's label, with the parameters that distinguish it from others of its kind.

    Example:
        >>> signatures = ["f_beta v1 beta=1.0", "f_beta v1 beta=1.0 label=A", "f_beta v1 beta=1.0 average=macro"]
        >>> list(metric_labels([{"scorer": "strict", "signature": signature} for signature in signatures]).values())
        ['f1 · strict', 'f1(label=A) · strict', 'f1_macro · strict']
    """
    alike: dict[tuple[str, str], list[str]] = {}
    keys = {(row["scorer"], row["signature"]): row["signature"].partition(" ")[0] for row in rows}
    for (scorer, signature), kind in keys.items():
        own_name = name_in_tables(signature) if kind == FUNCTION else kind
        alike.setdefault((scorer, own_name), []).append(signature)
    words = {(scorer, s): own for (scorer, _), group in alike.items() for s, own in distinguishing_words(group).items()}
    labels = {}
    for (scorer, signature), kind in keys.items():
        name, expressed = printed_name(kind, words_of(signature))
        distinct = {key: word for key, word in words[scorer, signature].items() if key not in expressed}
        own = ", ".join(f"{key}={word}" if key else word for key, word in distinct.items())
        metric = safe(name, LABEL) + (f"({safe(own, LABEL)})" if own else "")
        labels[scorer, signature] = f"{metric} · {safe(scorer, LABEL)}"
    return labels


def value_formats(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """(scorer, signature) → the number format that its values, with their intervals and bounds, share."""
    found: dict[tuple[str, str], list[float | None]] = {}
    for row in rows:
        found.setdefault((row["scorer"], row["signature"]), []).extend(row[name] for name in _NUMBERS)
    return {key: number_format(values) for key, values in found.items()}


def value_texts(row: Mapping[str, Any], form: str) -> list[str]:
    """The texts of a value, of the ends of its interval and of its bounds; `–` where there is none."""
    texts = ["–" if row[name] is None else format(row[name], form) for name in _NUMBERS]
    return ["see below", *texts[1:]] if row["metric"] == _CONFUSION else texts  # its value is the number of rows


def distinct_values(rows: Sequence[_Row]) -> list[_Row]:
    """Rows of values by metric, without repetitions: criteria of fairness may share a rate with others and metrics.

    Example:
        >>> row = {"task": "a", "scorer": "said", "signature": "recall v2", "target": None, "value": 0.5}
        >>> rows = [row | {"by": {}}, row | {"by": {"sex": "f"}}, row | {"by": {}}, row | {"by": {"age": "old"}}]
        >>> [row["by"] for row in distinct_values(rows)]
        [{}, {'sex': 'f'}, {'age': 'old'}]
    """
    blocks: dict[tuple[Any, ...], dict[tuple[Any, ...], _Row]] = {}
    for row in rows:
        block = blocks.setdefault((row.get("task"), row.get("scorer"), row["signature"]), {})
        block.setdefault((row.get("target"), *row["by"].items()), row)
    return [row for block in blocks.values() for row in block.values()]


def left_out_text(left_out: Sequence[Mapping[str, Any]], pairs: Sequence[Mapping[str, Any]]) -> str:
    """The metrics that a comparison leaves out, by reason, such as `max_error · size (its differences have …)`.

    Args:
        pairs: the rows of the comparison, whose metrics have other labels.
    """
    of: dict[str, list[str]] = {}
    for one in add_labels([*left_out, *pairs])[: len(left_out)]:
        of.setdefault(one["reason"], []).append(one["label"])
    return "; ".join(f"{', '.join(names)} ({safe(reason)})" for reason, names in of.items())


class Alone(NamedTuple):
    """A value of which another is made: what the judge alone, or people alone, would say.

    Attributes:
        who: in words.
        n: the number of rows or labels.
    """

    who: str
    value: float | None
    low: float | None
    high: float | None
    n: int

    def cells(self) -> list[str]:
        """Value, the ends of its interval and number as texts."""
        return [*numbers(self.value, self.low, self.high), f"{self.n:,}"]


def values_alone(row: Mapping[str, Any]) -> list[Alone]:
    """What the judge and people alone say, of a value that is made of both; empty for other values."""
    data = row["data"] or {}
    if not {"judge", "people", "labelled"} <= data.keys():
        return []
    sides = ("the judge alone", data["judge"], data["n"]), ("people alone", data["people"], data["labelled"])
    return [Alone(who, one["value"], one["low"], one["high"], n) for who, one, n in sides]
