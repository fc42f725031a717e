"""The values of metrics as a LaTeX table, for papers."""

from collections.abc import Sequence
from typing import Final

from evaluand.report.facts.base import Facts
from evaluand.report.metric_labels import distinct_values, metric_labels, value_formats, value_texts
from evaluand.report.text import between, group_name, safe

_SPECIAL: Final = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "−": "$-$",
    "∞": r"$\infty$",
    "…": r"\dots{}",
} | {character: f"\\{character}" for character in "{}$&#%_"}


def metrics_latex(rows: Sequence[Facts]) -> str:
    """A table of values with intervals and counts, which needs the package `booktabs`.

    Args:
        rows: as `metrics_facts` returns them.
    """
    labels, formats = metric_labels(rows), value_formats(rows)
    is_grouped = any(row["by"] for row in rows)
    heads = ["task", "metric", *["group"] * is_grouped, "value", "interval", "rows", "scored"]
    lines = [_line(heads), r"\midrule"]
    for row in distinct_values(rows):
        key = row["scorer"], row["signature"]
        value, low, high, *_ = value_texts(row, formats[key])
        label = labels[key] if row["target"] is None else f"{labels[key]} · {safe(row['target'])}"
        group = [group_name(row["by"])] * is_grouped
        counts = [f"{row[name]:,}" for name in ("n", "n_scored")]
        lines.append(_line([safe(row["task"]), label, *group, value, between(low, high), *counts]))
    columns = "l" * (2 + is_grouped) + "rrrr"
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}", ""])


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    Example:
        >>> print(escape("50 % of a_b"))
        50 \% of a\_b
    """
    return "".join(_SPECIAL.get(character, character) for character in text)


def _line(cells: Sequence[str]) -> str:
    # the line break before would take the cell as its argument
    guard = "{}" if cells[0].lstrip().startswith(("[", "*")) else ""
    return guard + " & ".join(map(escape, cells)) + r" \\"
