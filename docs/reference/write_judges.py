"""Write the section on the rubrics of evaluand in judges.md: what each measures, reads and asks, with an example."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluand.judges.prompt import as_text
from evaluand.judges.rubric import Rubric, rubric_names

HEADING = "## Rubrics of evaluand\n"
PAGE = Path(__file__).parents[1] / "howto" / "judges.md"
_BETTER = {True: "higher", False: "lower", None: "neither"}


def section() -> str:
    """The section, from its heading to the end of the page."""
    rubrics = [Rubric.of(name) for name in rubric_names()]
    lines = [
        HEADING.strip(),
        "",
        "`evaluand list rubrics --json` has the complete prompts. The digest covers all that may change a verdict.",
        "",
        "| rubric | version | digest | protocol | reads | better |",
        "|---|---|---|---|---|---|",
        *map(_row, rubrics),
    ]
    for rubric in rubrics:
        lines += ["", *_entry(rubric)]
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page with the present section."""
    return PAGE.read_text(encoding="utf-8").partition(HEADING)[0] + section()


def _row(rubric: Rubric) -> str:
    variables = ", ".join(f"`{name}`" + ("" if name in rubric.required else "?") for name in rubric.variables)
    cells = [f"[`{rubric.name}`](#{rubric.name.replace('_', '-')})", rubric.version, f"`{rubric.digest}`"]
    return f"| {' | '.join([*cells, _protocol(rubric), variables, _BETTER[rubric.higher_is_better]])} |"


def _protocol(rubric: Rubric) -> str:
    if rubric.compares:
        return "comparison, both orders"
    if rubric.parts is None:
        return "one verdict"
    asked = {"model": "divided by the judge, ", "sentences": "divided into sentences, ", "items": ""}
    return f"{asked[rubric.parts.split]}a verdict for each {rubric.parts.name}, {rubric.parts.combine}"


def _entry(rubric: Rubric) -> Iterator[str]:
    """The heading of a rubric, what it measures, its verdicts, an example and its source."""
    levels = (f"{level.label} ({level.value:g})" for level in rubric.scale.levels)
    yield f"### {rubric.name.replace('_', ' ').capitalize()}"
    yield ""
    yield f"{rubric.summary} Verdicts: {', '.join(levels)}."
    yield ""
    example = rubric.examples[0]
    yield f"| `{rubric.name}` | example |"
    yield "|---|---|"
    for name, value in example.material.items():
        yield f"| {name} | {_cell(value)} |"
    if example.evidence:
        yield f"| evidence | {_cell(example.evidence)} |"
    yield f"| reasons | {_cell(example.reasons)} |"
    yield f"| verdict | **{_cell(str(example.verdict))}** |"
    yield ""
    yield f"Source: {rubric.source}."


def _cell(value: Any) -> str:
    return as_text(value).replace("|", "\\|").replace("\n", "<br>")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
