"""What `evaluand validate` finds in a suite: the faults of all problems, what they reach, and what would be run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from evaluand.cli.validate import gathered_warnings, list_faults, list_notes, no_facts, plan_facts
from evaluand.core.errors import EvaluandError
from evaluand.core.files.paths import is_within
from evaluand.experiment.access import Access, Reading, read_access
from evaluand.experiment.suite import Suite
from evaluand.experiment.suite_spec import ParsedSuite, ProblemFolder, parse_suite
from evaluand.report.facts.base import Facts
from evaluand.run.request import PathRequest
from evaluand.store.folder_store import FolderStore


def access_of_suite(file: Path, model: str | None) -> Facts:
    """The faults of the suite's files alone, and what their tasks, scorers and data reach."""
    facts = no_facts(file) | {"problems": []}
    try:
        parsed = parse_suite(file, model)
    except EvaluandError as error:
        return facts | {"faults": list_faults(error)}
    for access in _accesses(parsed):
        for name, found in access._asdict().items():
            known = facts["access"][name]
            known += [entry for each in found if (entry := each._asdict()) not in known]
    own = (each.document for each in parsed.problems.values() if not isinstance(each, ProblemFolder))
    for document in (parsed.document, *own):
        try:
            document.check()
        except EvaluandError as error:
            facts["faults"] += [fault for fault in list_faults(error) if fault not in facts["faults"]]
    return facts


def facts_of_suite(file: Path, model: str | None, store: FolderStore) -> Facts:
    """All faults of a suite, notes, and the calls that it would make now."""
    facts = access_of_suite(file, model) | {"faults": []}
    with gathered_warnings() as messages:
        try:
            suite = Suite.from_file(file, model=model)
        except EvaluandError as error:
            return facts | {"faults": list_faults(error)}
        facts["problems"] = plans(suite, store, PathRequest())
    notes = ((name, note) for name, one in suite.problems.items() for note in list_notes(one, store))
    facts["notes"] = [*messages, *(f"{name}: {note}" for name, note in notes)]
    return facts


def plans(suite: Suite, store: FolderStore, request: PathRequest) -> list[Facts]:
    """Of each problem, the calls and the judgements that a run would make now."""
    return [{"problem": name} | plan_facts(one, store, request) for name, one in suite.problems.items()]


def _accesses(parsed: ParsedSuite) -> Iterator[Access]:
    """What each problem reaches, and what the tasks reach, whose paths are relative to the file of the suite."""
    home = parsed.document.path.parent
    for name, problem in parsed.problems.items():
        if isinstance(problem, ProblemFolder):
            read = [(f"tasks.{task}", path) for task, paths in problem.files.items() for path in paths]
            read = [(f"problems.{name}", problem.folder), *read]
            files = [Reading(where, os.path.relpath(path, home), not is_within(path, home)) for where, path in read]
            yield Access([], [], [], files)
            continue
        whole = problem.parts
        own = read_access(replace(whole, tasks={}), problem.folder)
        yield Access(
            [each._replace(where=f"{name}: {each.where}") for each in own.hosts],
            [each._replace(where=f"{name}: {each.where}") for each in own.programs],
            [each._replace(where=[f"{name}: {where}" for where in each.where]) for each in own.code],
            [each._replace(where=f"{name}: {each.where}") for each in own.files],
        )
        alone = replace(whole, dataset=None, scorers={}, metrics={}, matches={}, prices=None)
        yield read_access(alone, home)
