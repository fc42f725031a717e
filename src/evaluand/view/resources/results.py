"""Results: the tasks of an experiment, a run or an evaluation, with answers, sections and where their rows are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from evaluand.report.contents import Contents, read_contents
from evaluand.report.facts.answers import answers
from evaluand.report.facts.base import Facts
from evaluand.report.html.report import write_meta, write_sections
from evaluand.view.resources.base import Source, resource
from evaluand.view.resources.listing import read_index

_OF_ROWS: Final = ("examples", "matches")  # the page has its own


def list_results(source: Source) -> Iterator[Mapping[str, str]]:
    """The names of all results: experiments, and runs and evaluations by id."""
    index = read_index(source)
    yield from ({"name": entry["name"]} for entry in index["experiments"])
    for entry in index["artifacts"]:
        if entry["kind"] in ("runs", "evaluations") and entry["status"] == "sealed":
            yield {"name": entry["id"]}


def find_contents(source: Source, name: str) -> Contents:
    """What a name refers to now."""
    ids = tuple(sorted((ref.kind, ref.id) for ref in source.store.refs() if f"{ref.name}/".startswith(f"{name}/")))
    return source.contents.get((name, ids), lambda: read_contents(source.store, [name]))


@resource("results/{name}", list_results)
def read_results(source: Source, name: str) -> Facts:
    """The first screen and all sections of results."""
    contents = find_contents(source, name)
    facts = contents.facts
    sections = write_sections(facts, contents.tradeoffs)
    return {
        "title": facts["title"],
        "meta": write_meta(facts),
        "answers": [each._asdict() for each in answers(facts, contents.measures)],
        "sections": [{"id": id, "title": title, "html": html} for id, title, html in sections if id not in _OF_ROWS],
        "tasks": [
            {
                "task": part.task,
                "run": part.run.id,
                "evaluation": part.evaluation.id if part.evaluation else None,
                "dataset": part.run.manifest["spec"]["dataset"],
                "counts": part.run.counts,
            }
            for part in contents.parts
        ],
        "scorers": [{name: each[name] for name in ("task", "scorer", "binary", "unit")} for each in facts["scores"]],
    }
