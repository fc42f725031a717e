"""Write the section Names of metrics.md: every metric with a name, with its further names and its kind."""

from pathlib import Path

from evaluand.metrics.names import AVERAGES, averaged_names, metric_names

HEADING = "## Names\n"
PAGE = Path(__file__).with_name("metrics.md")


def section() -> str:
    """The section, from its heading to the end of the page."""
    averages = {f"{base}_{suffix}" for base in averaged_names() for suffix in AVERAGES}
    lines = [
        HEADING.strip(),
        "",
        "How names are read, and what they mean: [metrics](../howto/metrics.md#names). A name with `@` and a number",
        "sets `k`: `ndcg@10`, `map@10`, `precision@5`, `recall@5`, `hits@5`, `pass@3`; `top_5_accuracy`, `f2` and",
        f"`p95` have theirs too. {', '.join(f'`{base}`' for base in averaged_names())},",
        f"and their further names, have averages that end in {', '.join(f'`_{suffix}`' for suffix in AVERAGES)}.",
        "",
        "| name | also called | kind and parameters |",
        "|---|---|---|",
    ]
    for one in metric_names():
        if one.name in averages or not (one.aliases or one.parameters):
            continue
        parameters = ", ".join(f"{name}: {value}" for name, value in one.parameters.items())
        kind = f"`{one.kind}`" + (f" with `{parameters}`" if parameters else "")
        lines.append(f"| `{one.name}` | {', '.join(f'`{alias}`' for alias in one.aliases)} | {kind} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page with the present section."""
    return PAGE.read_text(encoding="utf-8").partition(HEADING)[0] + section()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
