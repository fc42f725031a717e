"""`evaluand validate`: finds all faults of an experiment and its data before anything is called."""

import inspect
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from shlex import join
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import click
from click.exceptions import Exit

from evaluand.cli.command import make_command, option
from evaluand.cli.file_gates import check_baselines, names_in_file
from evaluand.cli.options import experiment_argument, json_option, model_option, store_option
from evaluand.cli.output import print_json, stdout_to_stderr
from evaluand.comparison.checking import ALLOW
from evaluand.core.errors import DataError, EvaluandError, EvaluandWarning, TaskError, plural, pluralize
from evaluand.core.files.yaml import Document
from evaluand.core.identity import digest
from evaluand.core.secret_hosts import is_loopback
from evaluand.data.dataset import Dataset
from evaluand.engine.event_loop import run_coroutine
from evaluand.evaluation.scorer import FunctionScorer, as_scorer
from evaluand.experiment.access import read_access
from evaluand.experiment.experiment import Experiment
from evaluand.experiment.parsing import parse_file
from evaluand.experiment.suite_spec import is_suite
from evaluand.judges.cards.from_evaluation import model_of
from evaluand.judges.cards.labelled_set import JudgeIdentity
from evaluand.judges.cards.standing import find_standing
from evaluand.report.facts.base import Facts
from evaluand.report.text import safe
from evaluand.run.request import PathRequest
from evaluand.run.responses import RECORDED
from evaluand.run.runner import Runner
from evaluand.run.task import FunctionTask, Request as CallRequest, as_task
from evaluand.run.tasks.recorded import OutputsTask, RecordedTask
from evaluand.run.tasks.service import ServiceTask
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store
from evaluand.trace import Trace

_EXAMPLES = """\b
Examples:
  evaluand validate experiment.yaml
  evaluand validate experiment.yaml --json
  evaluand validate theirs.yaml --access
"""


@make_command("validate", epilog=_EXAMPLES)
def command(
    file: Path = experiment_argument,
    only_access: bool = option(
        "Only list hosts, variables, programs, code and files; read nothing but FILE, import nothing.", "--access"
    ),
    model: str | None = model_option,
    folder: Place = store_option,
    as_json: bool = json_option,
) -> None:
    """Find all faults of the experiment or suite in FILE, or of the only experiment of this folder, its data and code.

    Reads the whole dataset and every recorded file and imports the code, but calls no task and no scorer and stores
    nothing. Then shows what a run would do now: the hosts that it would contact and the environment variables that each
    would receive, the programs that it would execute, the code that it would import, the files that it would read
    elsewhere, and the calls that it would make.
    Exits 1 if there are faults; notes are not faults.

    Importing code executes it. Look at a file from somebody else with --access first.
    """
    with stdout_to_stderr():
        if _is_suite_file(file):
            from evaluand.cli.suite_validation import access_of_suite, facts_of_suite

            facts = access_of_suite(file, model) if only_access else facts_of_suite(file, model, open_store(folder))
        else:
            facts = _access(file, model) if only_access else _facts(file, model, open_store(folder))
    if as_json:
        print_json(facts)
    else:
        _print(facts, only_access)
    if facts["faults"]:
        raise Exit(1)


def _is_suite_file(file: Path) -> bool:
    with suppress(EvaluandError):  # which reading the file reports
        return is_suite(Document(file))
    return False


def _access(file: Path, model: str | None) -> Facts:
    """The faults of the file alone, and what it reaches."""
    facts = no_facts(file)
    try:
        spec, document = parse_file(file, model=model)
        access = read_access(spec, file.parent)
        facts["access"] = {name: [each._asdict() for each in found] for name, found in access._asdict().items()}
        document.check()
    except EvaluandError as error:
        facts["faults"] = list_faults(error)
    return facts


def no_facts(file: Path) -> Facts:
    """The facts of a file without faults that reaches and calls nothing."""
    access: Facts = {"hosts": [], "programs": [], "code": [], "files": []}
    return {"file": str(file), "faults": [], "notes": [], "plan": [], "matches": [], "access": access}


def _facts(file: Path, model: str | None, store: FolderStore) -> Facts:
    facts = _access(file, model) | {"faults": []}
    with gathered_warnings() as messages:
        try:
            experiment = Experiment.from_file(file, model=model, store=store)
        except EvaluandError as error:
            return facts | {"faults": list_faults(error)}
        facts["faults"] = _baseline_faults(file, model, experiment, store)
        facts |= plan_facts(experiment, store, PathRequest())
    facts["notes"] = [*messages, *list_notes(experiment, store)]
    facts["dataset"] = {"id": experiment.dataset.id, "examples": len(experiment.dataset)}
    return facts


@contextmanager
def gathered_warnings() -> Iterator[list[str]]:
    """The texts of the warnings within the block, each once; they are there when it ends."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EvaluandWarning)
        yield found
    found += dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, EvaluandWarning))


def list_notes(experiment: Experiment, store: FolderStore) -> Iterator[str]:
    """What is no fault, but may surprise."""
    yield from _task_notes(experiment)
    yield from _scorer_notes(experiment)
    yield from _judge_notes(experiment, store)
    yield from _example_notes(experiment)
    yield from _group_notes(experiment)


def plan_facts(experiment: Experiment, store: FolderStore, request: PathRequest) -> Facts:
    """The calls and the judgements that a run with these options would make now."""
    rows = min(request.limit or len(experiment.dataset), len(experiment.dataset)) * (experiment.replications or 1)
    return {
        "plan": list(_plan(experiment, store, request)),
        "judgements": list(_judgements(experiment, rows)),
        "matches": list(_match_plan(experiment, rows)),
    }


def unpinned_notes(experiment: Experiment) -> Iterator[str]:
    """Which tasks every run calls again, and why."""
    unpinned: dict[str, list[str]] = {}
    for name, entry in experiment.tasks.items():
        for why in as_task(entry).identify().reasons(in_yaml=True):
            unpinned.setdefault(why, []).append(name)
    for why, (first, *others) in unpinned.items():
        if others:
            yield f"tasks {', '.join((first, *others))} are unpinned, so every run calls them again: {why}"
        else:
            yield f"task {first} is unpinned, so every run calls it again: {why}"


def _baseline_faults(file: Path, model: str | None, experiment: Experiment, store: FolderStore) -> list[Facts]:
    """Gates whose baseline is neither a task of the experiment nor in the store."""
    try:
        check_baselines(file, names_in_file(file, model, experiment), experiment, store)
    except EvaluandError as error:
        return list_faults(error)
    return []


def list_faults(error: EvaluandError) -> list[Facts]:
    """The faults of an error, each with its place where that is known."""
    if isinstance(error, DataError):
        return [{"where": fault.where, "message": fault.message} for fault in error.faults]
    return [{"where": "", "message": line} for line in str(error).split("\n")]


def _task_notes(experiment: Experiment) -> Iterator[str]:
    for name, entry in experiment.tasks.items():
        task = as_task(entry)
        if isinstance(task, ServiceTask) and (task.batch or 1) > experiment.policy.calls_at_once:
            at_once = f"only {experiment.policy.calls_at_once} calls are made at once"
            yield f"task {name}: a batch of {task.batch} is never full: {at_once}; raise concurrency under run"
        if isinstance(task, FunctionTask) and task.is_async:
            yield from _blocking_notes(name, task.function)
        if isinstance(task, RecordedTask):
            calls = len(experiment.dataset) * (experiment.replications or 1)
            for group in run_coroutine(_find_missing(task, experiment)):
                found = pluralize(group.total, "an error", "errors") if group.are_errors else "missing"
                are = pluralize(group.total, "is", "are")
                count = f"{group.total:,} of {calls:,} recorded outputs {are} {found}, and will fail"
                yield f"task {name}: {count}: {group.first}"
    yield from unpinned_notes(experiment)


def _blocking_notes(name: str, function: Any) -> Iterator[str]:
    """Calls in the text of a coroutine function that do not wait in the event loop."""
    with suppress(OSError, TypeError):  # without source
        file = Path(inspect.getfile(function)).name
        for number, line in enumerate(*inspect.getsourcelines(function)):
            if found := _BLOCKING.search(line.partition("#")[0]):
                what = f"{found[0]}(…) in an async function holds up all calls, and timeout cannot end it"
                yield f"task {name}: {file}:{number}: {what}; await an asynchronous one, or write def"


_BLOCKING: Final = re.compile(r"\b(time\.sleep|requests\.(get|post)|urlopen|subprocess\.(run|call|check_\w+))(?=\()")


class _Missing(NamedTuple):
    """Recorded outputs that will fail: how many, the first message, and whether the file has their errors."""

    total: int
    first: str
    are_errors: bool


async def _find_missing(task: RecordedTask, experiment: Experiment) -> list[_Missing]:
    """The examples without an output, by kind of fault; a lookup calls nothing."""
    found: dict[str, list[str]] = {}
    for example in experiment.dataset:
        span = Trace.start(task.name, None).root
        for replication in range(experiment.replications or 1):
            key = (example.index, example.id, replication)
            try:
                await task.call(CallRequest(None, span, *key, digest=b"", run_seed=0))
            except TaskError as error:
                kind = RECORDED if error.code == RECORDED else "no row" if "no row for" in str(error) else "no response"
                found.setdefault(kind, []).append(str(error))
    return [_Missing(len(texts), texts[0], kind == RECORDED) for kind, texts in sorted(found.items())]


def _scorer_notes(experiment: Experiment) -> Iterator[str]:
    measured = {measure.scorer for measure in experiment.measures}
    measured |= {name for trade in experiment.tradeoffs for name in trade.scorers}
    for name, entry in experiment.scorers.items():
        scorer = as_scorer(name, entry)
        for why in scorer.identify().reasons(in_yaml=isinstance(scorer, FunctionScorer)):
            yield f"scorer {name} is unpinned, so every evaluation calls it again: {why}"
        if name not in measured:
            yield f"scorer {name} is read by no metric"
    for tournament in experiment.matches:
        yield from tournament.unpinned_notes(in_yaml=True)


def _judge_notes(experiment: Experiment, store: FolderStore) -> Iterator[str]:
    """Judges whose gates would be refused, since no card in the store shows that they agree with people."""
    gates = [gate for gate in experiment.gates if not experiment.is_of_matches(gate)]
    if experiment.allow_unmeasured_judges:
        return
    for name, entry in experiment.scorers.items() if gates else ():
        scorer = as_scorer(name, entry)
        kinds = {measure.metric.kind for measure in experiment.measures_of_all_rows if measure.scorer == name}
        own = [gate for gate in gates if gate.scorer == name or (gate.scorer is None and gate.metric in kinds)]
        if not own or not scorer.is_judge:
            continue
        found = scorer.identify()
        judge = JudgeIdentity(name, found.spec, dict(found.parts), model_of(found.spec), found.pinned)
        source = experiment.run_name(next(iter(experiment.tasks)))
        standing = find_standing(store, judge, source, name if len(experiment.scorers) > 1 else None)
        if standing.status != "measured":
            rules = f"gate{'s' if len(own) > 1 else ''} {', '.join(repr(gate.text) for gate in own)}"
            yield f"{rules} will be refused: judge {name!r} is {standing.text}, or allow it with {ALLOW}"


def _judgements(experiment: Experiment, rows: int) -> Iterator[Facts]:
    """Of each scorer that asks a model, how many rows of all tasks it judges at most."""
    for name, entry in experiment.scorers.items():
        if as_scorer(name, entry).is_judge:
            yield {"scorer": name, "most": rows * len(experiment.tasks)}


def _example_notes(experiment: Experiment) -> Iterator[str]:
    dataset, metrics = experiment.dataset, [measure.metric for measure in experiment.measures]
    roles = dataset.roles
    scorers: list[Any] = [as_scorer(name, entry) for name, entry in experiment.scorers.items()]
    reads_weight = any("weight" in (*s.arguments, *s.columns) for s in scorers)
    if roles.weight and not reads_weight and not any(getattr(metric, "weighted", False) for metric in metrics):
        yield f"the weights in {roles.weight!r} are used by no metric; set weighted: true on a metric to use them"
    if roles.cluster and not any(hasattr(metric, "confidence") for metric in metrics):
        yield f"the clusters in {roles.cluster!r} are used by no metric: none has an interval"
    targets = roles.expected if isinstance(roles.expected, Mapping) else {"": roles.expected} if roles.expected else {}
    for target, column in targets.items():
        missing = sum(batch.column(0).null_count for batch in dataset.columns([column]))
        if missing:
            what = f" for {target}" if target else ""
            have = pluralize(missing, "has", "have")
            yield f"{missing:,} of {len(dataset):,} examples {have} no expected value{what} ({column!r} is empty)"


def _group_notes(experiment: Experiment) -> Iterator[str]:
    """Groups without examples, and examples without a group."""
    groupings = dict.fromkeys(tuple(by) for measure in experiment.measures for by in measure.by)
    names = list(dict.fromkeys(name for by in groupings for name in by))
    if not names:
        return
    found = _combinations(experiment.dataset, names)
    for place, name in enumerate(names):
        missing = sum(count for values, count in found.items() if values[place] == "null")
        if missing:
            have = f"{pluralize(missing, 'has', 'have')} no value of {name!r}, an attribute to group by"
            yield f"{missing:,} of {len(experiment.dataset):,} examples {have}"
    for by in groupings:
        places = [names.index(name) for name in by]
        present = {tuple(values[place] for place in places) for values in found}
        possible = prod(len({values[i] for values in present}) for i in range(len(by)))
        if possible > len(present):
            empty = possible - len(present)
            have = pluralize(empty, "has", "have")
            yield f"by [{', '.join(by)}]: {empty:,} of {possible:,} groups {have} no example"


def _combinations(dataset: Dataset, names: Collection[str]) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for batch in dataset.columns([*names]):
        columns = (["null" if v is None else digest(v).hex() for v in column.to_pylist()] for column in batch.columns)
        found.update(zip(*columns, strict=True))
    return found


def _plan(experiment: Experiment, store: FolderStore, request: PathRequest) -> Iterator[Facts]:
    for name, task in experiment.tasks.items():
        made = Runner(store).plan(
            task,
            experiment.seen_by(name),
            replications=experiment.replications,
            seed=experiment.seed,
            name=experiment.run_name(name),
            limit=request.limit,
            **request.repetition,
        )
        yield {
            "task": name,
            "recorded": isinstance(as_task(task), OutputsTask),
            "calls": made.total,
            "new": made.called,
            "reused": made.reused,
            "kept": made.kept,
            "why": made.why,
        }


def _match_plan(experiment: Experiment, rows: int) -> Iterator[Facts]:
    """Of each set of matches, how many comparisons its judge makes at most: equal responses need none."""
    tasks = [*experiment.tasks]
    for one in experiment.matches:
        yield {"matches": one.name, "systems": one.systems(tasks), "most": one.most_judgements(rows, tasks)}


def _print(facts: Facts, only_access: bool) -> None:
    for fault in facts["faults"]:
        place = f"{fault['where']}: " if fault["where"] else ""
        click.echo(f"fault  {safe(place)}{safe(fault['message'])}")
    for note in facts["notes"]:
        click.echo(f"note   {safe(note)}")
    _print_access(facts["access"], with_own=only_access)
    print_plan(facts)
    for problem in facts.get("problems", ()):
        print_plan(problem, problem["problem"])
    faults = len(facts["faults"])
    if faults or not only_access:
        click.echo(plural(faults, "fault") if faults else f"ok: {safe(facts['file'])} can be run")
    elif not any(facts["access"][name] for name in ("hosts", "programs", "code")):
        click.echo(f"{safe(facts['file'])} names no host, no program and no code")


def print_plan(facts: Facts, problem: str = "") -> None:
    """Prints the calls and the judgements that a run would make now.

    Args:
        facts: as `plan_facts` returns them.
        problem: of a suite, before the names of tasks.
    """
    of = f"{safe(problem)}, " if problem else ""
    for task in facts["plan"]:
        words = {"reused": "reused", "kept": "already stored"}
        done = "".join(f", {task[name]:,} {word}" for name, word in words.items() if task[name])
        what = "recorded outputs to read" if task["recorded"] else "calls to make"
        reason = "unpinned" if task["why"].startswith("unpinned") else task["why"]  # a note says why it is
        why = f" ({safe(reason)})" if reason and (task["new"] or task["reused"]) else ""
        click.echo(f"plan   {of}{safe(task['task'])}: {task['new']:,} of {task['calls']:,} {what}{done}{why}")
    for each in facts.get("judgements", ()):
        most = plural(each["most"], "judgement")
        click.echo(f"judge  {of}{safe(each['scorer'])}: at most {most}; equal answers need one")
    for each in facts["matches"]:
        most = plural(each["most"], "comparison")
        systems = ", ".join(map(safe, each["systems"]))
        click.echo(f"judge  {of}{safe(each['matches'])}: at most {most} of {systems}; equal responses need none")


def _print_access(access: Facts, *, with_own: bool) -> None:
    """Prints what an experiment reaches.

    Args:
        with_own: also servers of this machine that receive no environment variable.
    """
    contacts: dict[str, list[str]] = {}
    for host in access["hosts"]:
        if not with_own and not host["variables"] and is_loopback(urlsplit(host["host"]).hostname or ""):
            continue
        names = [
            f"{name}, which you have not allowed" if name in host["refused"] else name for name in host["variables"]
        ]
        received = " and ".join(names) or "no environment variable"
        contacts.setdefault(f"{host['host']} would receive {received}", []).append(host["where"])
    for contact, places in contacts.items():
        click.echo(f"host   {safe(', '.join(places))}: {safe(contact)}")
    for program in access["programs"]:
        own = f", and with {', '.join(program['environment'])} of the file" if program["environment"] else ""
        what = f"{join(program['command'])} in {program['folder']}, with all environment variables{own}"
        for name, value in program["loading"].items():
            what += f"; {name}={value} may decide which code it executes"
        click.echo(f"start  {safe(program['where'])}: {safe(what)}")
    for code in access["code"]:
        click.echo(f"import {safe(code['module'])}: {safe(', '.join(code['where']))}")
    for file in access["files"]:
        if file["outside"]:
            click.echo(f"read   {safe(file['where'])}: {safe(file['path'])}, outside the folder of the experiment")
