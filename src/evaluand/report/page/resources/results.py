"""Results: the tasks of an experiment, a run or an evaluation, with answers, sections and where their rows are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.comparison.kind import COMPARISONS
from evaluand.core.labels import experiment_of
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.judges.kind import CARDS
from evaluand.matches.kind import MATCHES, RATINGS
from evaluand.report.contents import Contents, read_contents, read_parts
from evaluand.report.facts.answers import answers
from evaluand.report.facts.base import Facts
from evaluand.report.html.report import write_meta, write_sections
from evaluand.report.page.resources.base import Source, resource
from evaluand.report.page.resources.history import list_attempts
from evaluand.report.page.resources.judges import list_judges_of
from evaluand.report.page.resources.listing import read_index
from evaluand.run.kind import RUNS

_SHOWN: Final = (EVALUATIONS, AGGREGATIONS, COMPARISONS, MATCHES, RATINGS, CARDS)
_OF_ROWS: Final = ("examples", "matches")  # the page has its own


def list_results(source: Source) -> Iterator[Mapping[str, str]]:
    """The names of all results: experiments, and runs and evaluations by id."""
    yield from ({"name": entry["name"]} for entry in read_index(source)["experiments"] if entry["tasks"])
    yield from ({"name": entry["id"]} for entry in source.finished(RUNS, EVALUATIONS))


@resource("results/{name}", list_results)
def read_results(source: Source, name: str) -> Facts:
    """The tasks of results, and where their rows are: enough to begin with."""
    parts = read_parts(source.store, name)
    return {
        "title": name if len(parts) > 1 or not parts else parts[0].task,
        "experiment": experiment_of(parts[0].task) if len(parts) == 1 else None,
        "tasks": [
            {
                "task": part.task,
                "run": part.run.id,
                "evaluation": part.evaluation.id if part.evaluation else None,
                "dataset": part.run.manifest["spec"]["dataset"],
                "counts": part.run.counts,
            }
            for part in parts
        ],
        "history": bool(list_attempts(source, name)),
        "judges": list_judges_of(source, [part.evaluation.id for part in parts if part.evaluation]),
    }


@resource("answers/{name}", list_results)
def read_answers(source: Source, name: str) -> Facts:
    """What results say in a few sentences."""
    contents = _find_contents(source, name, distributions=False)
    facts = contents.facts
    found = answers(facts, contents.measures) if facts["tasks"] else []
    return {
        "title": facts["title"],
        "meta": write_meta(facts),
        "answers": [each._asdict() for each in found],
        "links": [*_list_links(name, contents)],
    }


def _list_links(name: str, contents: Contents) -> Iterator[Facts]:
    """The further pages about results, as the parts of their paths."""
    if contents.tradeoffs:
        yield {"title": "Trade-offs", "path": ["o", name]}
    if contents.matches:
        yield {"title": "Ratings and matches, pair by pair", "path": ["m", name]}
    for app in dict.fromkeys(version["app"] for version in (contents.facts["leaderboard"] or {}).get("versions", ())):
        yield {"title": f"Records of {app}", "path": ["a", app]}


@resource("sections/{name}", list_results)
def read_sections(source: Source, name: str) -> list[Facts]:
    """All sections of a report but its rows, as markup."""
    contents = _find_contents(source, name, distributions=False)
    if len(contents.facts["tasks"]) > 1:  # of one, the page shows distributions beside its rows
        contents = _find_contents(source, name, distributions=True)
    sections = write_sections(contents.facts, contents.tradeoffs)
    return [{"id": id, "title": title, "html": html} for id, title, html in sections if id not in _OF_ROWS]


def _find_contents(source: Source, name: str, *, distributions: bool) -> Contents:
    """What a name refers to now."""
    ids = tuple(sorted((ref.kind, ref.id) for ref in source.store.refs() if f"{ref.name}/".startswith(f"{name}/")))
    key = (name, ids, source.list_ids(*_SHOWN), distributions)
    root = source.root if source.is_published else None

    def read() -> Contents:
        return read_contents(source.store, [name], root=root, distributions=distributions, is_written=False)

    return source.contents.get(key, read)
