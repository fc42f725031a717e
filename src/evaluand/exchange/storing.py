"""Stores what importers read: a dataset for each problem, and for each system a run and an evaluation.

All evaluations of a problem have one aggregation of the mean of each scorer, so that they can be shown and reported at
once. Nothing is stored before every file was read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations, islice
from os import PathLike
from pathlib import Path
from typing import Any, Final

from evaluand.aggregation.aggregator import Aggregation, Aggregator, Measure
from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, alternatives, plural
from evaluand.core.json_like import to_json_like
from evaluand.core.provenance import provenance
from evaluand.core.redaction import is_hidden, redact
from evaluand.data.dataset import Dataset
from evaluand.engine.keyed_work import Progress
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.score_tables import KnownRows
from evaluand.evaluation.scorer import Scorer
from evaluand.evaluation.scorers.imported import Imported
from evaluand.exchange.importer import Importer, find_importers
from evaluand.exchange.sample import NO_GRADE, Grade, Sample, Total, free_name
from evaluand.exchange.spool import Answers, Problem, Texts
from evaluand.metrics.base.metric import Direction
from evaluand.metrics.column_statistics import Mean
from evaluand.models.reasoning import split_reasoning
from evaluand.run.kind import RUNS
from evaluand.run.responses import NOT_RECORDED, seal
from evaluand.run.runner import Run
from evaluand.store.kinds import singular
from evaluand.store.store import Store, begin, check_name
from evaluand.store.tables import ABSTAINED, FAILED, SCORED
from evaluand.trace.chats import LLM


@dataclass
class ImportedResult:
    """What an import has stored.

    Attributes:
        runs: of all systems and problems; `evaluations` has that of each, None where the file has no scores.
        aggregations: one for each problem.
        samples: how many samples were read.
        left_out: the rows that were not imported, and why.
        unreadable: the same of files that could not be read at all, beside others that could; of files whose samples
            have no content; and of rows that count as failed, since a text of theirs cannot be stored.
        agreements: how many totals of the files were equal to those of the imported scores.
        notes: sentences about totals that differ, and about what was assumed.
    """

    runs: list[Run] = field(default_factory=list)
    evaluations: list[Evaluation | None] = field(default_factory=list)
    aggregations: list[Aggregation] = field(default_factory=list)
    samples: int = 0
    left_out: list[Fault] = field(default_factory=list)
    unreadable: list[Fault] = field(default_factory=list)
    agreements: int = 0
    notes: list[str] = field(default_factory=list)


def import_results(
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    store: Store,
    *,
    tool: str | None = None,
    name: str | None = None,
    directions: Mapping[str, Direction] | None = None,
    progress: Progress | None = None,
) -> ImportedResult:
    """Stores the results in files of other tools.

    Args:
        files: one file or folder, or several; formats are recognised by content.
        store: where the results are stored.
        tool: the registered name of the importer, if the format is not to be recognised.
        name: the name under which they are stored; by default that of the problem in the file, and of the system.
        directions: scorer → `higher` or `lower`, whichever is better; needed where the tool does not say it.

    Raises:
        DataError: a file cannot be read, is of an unknown format, or has no samples.
        SpecError: no importer or no scorer has this name.

    Example:
        >>> import json, tempfile
        >>> from pathlib import Path
        >>> from evaluand import MemoryStore
        >>> rows = [{"user_input": "2 + 2?", "response": "4", "reference": "4", "faithfulness": 1.0}]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "ragas.json")
        ...     _ = path.write_text(json.dumps(rows))
        ...     result = import_results(path, MemoryStore())
        >>> result.samples, result.evaluations[0].scorers
        (1, ['faithfulness'])
    """
    paths = [files] if isinstance(files, str | PathLike) else files
    importers = [importer for path in paths for importer in find_importers(Path(path), tool)]
    return save_results(importers, store, name=name, directions=directions, progress=progress)


def save_results(
    importers: Sequence[Importer],
    store: Store,
    *,
    name: str | None = None,
    directions: Mapping[str, Direction] | None = None,
    progress: Progress | None = None,
) -> ImportedResult:
    """As `import_results`, with an importer for each file."""
    results = _Results(directions or {})
    for importer in importers:
        results.read(importer)
    if not results.n_samples:
        faults = [*results.unreadable, *(fault for importer in importers for fault in importer.left_out)]
        raise DataError(faults or [Fault(str(importers[0].path), "has no samples")])
    results.separate_rows()
    results.check_sizes()
    results.check_directions()
    return results.save(store, name, progress)


class _Results:
    """The samples of several files by problem and system."""

    def __init__(self, directions: Mapping[str, Direction]) -> None:
        self.n_samples = 0
        self._directions = directions
        self._texts = Texts()
        self._problems: dict[str, Problem] = {}
        self._answers: dict[_Key, Answers] = {}
        self._scorers: dict[str, str] = {}  # the names in files → ours
        self._importers: dict[_Key, Importer] = {}
        self._n_separate: Counter[str] = Counter()  # rows of a system that repeat examples which others do not
        self._read: list[Importer] = []
        self.unreadable: list[Fault] = []

    def read(self, importer: Importer) -> None:
        """Reads all samples of a file; none of a file that cannot be read to its end."""
        n_before = self.n_samples
        try:
            self._read_samples(importer)
        except DataError as error:
            self.unreadable += error.faults
            self.n_samples = n_before
            self._answers = {key: each for key, each in self._answers.items() if key[2] != id(importer)}
        else:
            self._read.append(importer)

    def _read_samples(self, importer: Importer) -> None:
        n_before, has_content = self.n_samples, False
        for where, record in _records_of(importer):
            try:
                samples = [*importer.samples(record)]
                has_content = has_content or any(map(_has_content, samples))
                refused = [why for sample in samples if (why := self._add(sample, importer, where))]
            except (*_UNREADABLE, DataError) as error:
                importer.leave_out(where, _reason(error))
                continue
            for why in refused:
                importer.leave_out(where, why)
        if self.n_samples > n_before and not has_content:
            self.unreadable.append(Fault(str(importer.path), _NO_CONTENT))

    def _add(self, sample: Sample, importer: Importer, where: str) -> str | None:
        key = _key(sample.problem, sample.system, importer)
        if key not in self._answers:
            problem = self._problems.setdefault(key[0], Problem(key[0], self._texts))
            self._answers[key] = Answers(problem, key[1], self._texts)
            self._importers[key] = importer
        sample.grades = {self._scorer(scorer): grade for scorer, grade in sample.grades.items()}
        try:
            why = self._answers[key].add(sample)
        except TypeError as error:
            if "surrogates" not in str(error):
                raise
            why = self._answers[key].add(_without_answer(sample))
            self.unreadable.append(Fault(where, f"{_HALF_CHARACTER}, so the row counts as failed; mend the text there"))
        self.n_samples += why is None
        return why

    def _scorer(self, name: str) -> str:
        """A valid name for the scorer of a file, which no other has."""
        if name not in self._scorers:
            self._scorers[name] = free_name(_name_of(name), {*self._scorers.values()})
        return self._scorers[name]

    def separate_rows(self) -> None:
        """Makes further examples of rows that repeat an example where others are not repeated."""
        for (problem, system, _), answers in self._answers.items():
            self._n_separate[system or problem] += answers.separate()

    def check_sizes(self) -> None:
        """Raises a DataError for answers that nearly all are missing, as after a wrong number of repeats."""
        for (problem, system, _), answers in self._answers.items():
            n_examples = len(answers.examples)
            size = n_examples * answers.replications
            if size > _MOST_MISSING * len(answers) + _FEW:
                whose = system or problem
                raise DataError(
                    f"{len(answers):,} samples of {whose} are said to be repeats 1 … {answers.replications:,} of"
                    f" {n_examples:,} examples, of which nearly all are missing; import the files one by one"
                )

    def check_directions(self) -> None:
        """Raises a SpecError for the direction of a scorer that no file has."""
        known = {scorer: None for answers in self._answers.values() for scorer in answers.scorers}
        for scorer in self._directions:
            if scorer not in known:
                raise SpecError(f"the files have no scorer {scorer!r}{alternatives(scorer, [*known])}")

    def save(self, store: Store, name: str | None, progress: Progress | None) -> ImportedResult:
        """Stores everything."""
        result = ImportedResult(samples=self.n_samples, unreadable=self.unreadable)
        named_before = {(ref.kind, ref.name): ref.id for ref in store.refs()}
        titles: set[str] = set()
        for problem in self._problems.values():
            of_problem = {key: each for key, each in self._answers.items() if key[0] == problem.name and len(each)}
            if not of_problem:
                continue
            result.notes += self._describe_strangers(problem.name, of_problem)
            if problem.n_unlike:
                result.notes.append(
                    f"{problem.name}: {plural(problem.n_unlike, 'sample')} with other attributes than an earlier one of"
                    " the same example, whose attributes count"
                )
            title = free_name(_title(name, problem.name, len(self._problems)), titles)
            titles.add(title)
            self._save_problem(problem, of_problem, title, name, store, result, progress)
        for importer in self._read:
            result.left_out += importer.left_out
            result.notes += importer.notes
            self._check_totals(importer, result)
        result.notes += [
            f"{whose}: {plural(n, 'further row')} of examples that others have once, stored as examples of their own"
            for whose, n in self._n_separate.items()
            if n
        ]
        result.notes += _describe_renamed(result, named_before)
        return result

    def _save_problem(
        self,
        problem: Problem,
        of_problem: Mapping[_Key, Answers],
        title: str,
        name: str | None,
        store: Store,
        result: ImportedResult,
        progress: Progress | None,
    ) -> None:
        """Stores the runs and evaluations of all systems of a problem, and their aggregation."""
        directions: dict[str, Direction | None] = {}
        datasets: dict[frozenset[int], _Examples] = {}  # systems with the same examples share one
        evaluations: list[Evaluation] = []
        for key, answers in of_problem.items():
            numbers = answers.examples
            if (same := frozenset(numbers)) not in datasets:
                datasets[same] = _Examples(numbers, Dataset(problem.source(numbers), name=title).save(store))
            examples = datasets[same]
            label = free_name(
                _label(name, title, answers.system, len(self._answers)), {str(run.name) for run in result.runs}
            )
            run = _save_run(store, answers, examples, self._importers[key], label)
            result.runs.append(run)
            if not answers.scorers:
                result.evaluations.append(None)
                continue
            own = self._directions_of(key)
            directions |= {scorer: each for scorer, each in own.items() if directions.get(scorer) is None}
            evaluations.append(
                _save_evaluation(store, answers, examples, run, self._importers[key], own, label, progress)
            )
            result.evaluations.append(evaluations[-1])
        result.aggregations += _aggregate(store, evaluations, directions, title)

    def _directions_of(self, key: _Key) -> dict[str, Direction | None]:
        """Which values of each scorer are better: as the caller says, else as the file does."""
        importer, scorers = self._importers[key], self._answers[key].scorers
        stated = {scorer: _DIRECTIONS[_is_higher_better(importer, key[0], scorer)] for scorer in scorers}
        return stated | {scorer: each for scorer, each in self._directions.items() if scorer in scorers}

    def _describe_strangers(self, problem: str, answers: Mapping[_Key, Answers]) -> Iterator[str]:
        """A note for files whose results have one name, and no example in common."""
        files: dict[frozenset[int], str] = {}
        for key, each in answers.items():
            files.setdefault(frozenset(each.examples), str(self._importers[key].path))
        for (one, first), (other, second) in combinations(files.items(), 2):
            if first != second and one.isdisjoint(other):
                yield (
                    f"{first} and {second} are both named {problem!r}, and have no example in common; import them one"
                    " by one, each with a --name, if they are two problems"
                )
                return

    def _check_totals(self, importer: Importer, result: ImportedResult) -> None:
        """Compares the totals of a file with those of its scores."""
        try:
            totals = [*importer.totals()]
        except _UNREADABLE as error:
            result.notes.append(f"{importer.path.name}: the totals in the file cannot be read: {_reason(error)}")
            return
        for total in totals:
            answers = self._answers.get(_key(total.problem, total.system, importer))
            scorer = answers.scorers.get(self._scorers.get(total.scorer, "")) if answers else None
            found = scorer.statistics().get(total.statistic) if scorer else None
            if scorer is None or found is None or not _is_equal(found, total.value):
                result.notes.append(f"{importer.path.name}: {_describe_difference(total, found)}")
                continue
            result.agreements += 1
            if total.statistic == "mean" and not _is_equal(found, scorer.mean):
                result.notes.append(
                    f"{importer.path.name}: the mean of {total.scorer} is {found:g} over examples, as the file has it,"
                    f" and {scorer.mean:g} over rows, as shown: examples have unequal numbers of repeats"
                )


_NO_CONTENT: Final = (
    "no sample has an input, an output, a score or a call of a model; of spans, the attributes of OpenInference and of"
    " OpenTelemetry's gen_ai are read"
)


def _has_content(sample: Sample) -> bool:
    """Whether anything but names and times was read of a sample."""
    spans = ((row[3], row[7], row[8]) for row in sample.spans)  # kind, input and output
    is_read = (kind not in ("task", "span") or input is not None or output is not None for kind, input, output in spans)
    return sample.input is not None or sample.output is not None or bool(sample.grades) or any(is_read)


_HALF_CHARACTER: Final = "has half of a character (a lone surrogate, such as half an emoji), which cannot be stored"


def _without_answer(sample: Sample) -> Sample:
    """A sample that failed, since a text of it cannot be stored; what names and describes its example is escaped."""
    example = {name: to_json_like(getattr(sample, name)) for name in ("id", "input", "expected", "attributes")}
    failure: Any = {"output": None, "error": ("DataError", _HALF_CHARACTER), "grades": {}, "usage": None, "spans": ()}
    return replace(sample, **example, **failure)


def _describe_renamed(result: ImportedResult, named_before: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """A note for each name that another run or aggregation had before."""
    for made in (*result.runs, *result.aggregations):
        before = named_before.get((made.kind, str(made.name)))
        if before is not None and before != made.id:
            yield (
                f"{made.name!r} was the name of {singular(made.kind)} {before[:12]} and is now that of {made.id[:12]};"
                " both are stored, and another --name names them both"
            )


def _is_equal(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def _describe_difference(total: Total, found: float | None) -> str:
    """A total of a file and that of the imported scores, in words."""
    system = f" for {total.system}" if total.system else ""
    ours = "there is no such number of the imported scores" if found is None else f"the imported scores have {found:g}"
    return f"the file states {total.value:g} as the {_TOTALS[total.statistic]} of {total.scorer}{system}, and {ours}"


_TOTALS: Final = {"mean": "mean", "sum": "sum", "passed": "number of passes", "count": "number of scores"}


_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""What code that expects other values raises."""


def _records_of(importer: Importer) -> Iterator[tuple[str, Any]]:
    """The records of a file.

    Raises:
        DataError: the file as a whole is not what its importer expects.
    """
    records = importer.records()
    while True:
        try:
            found = next(records, None)
        except _UNREADABLE as error:
            message = f"cannot be read as a result of {importer.kind}: {_reason(error)}"
            raise DataError(Fault(str(importer.path), message)) from None
        if found is None:
            return
        yield found


def _facts_of(importer: Importer) -> dict[str, Any]:
    """What a file says of its origin, without secrets."""
    try:
        facts = importer.facts()
    except _UNREADABLE:
        return {}
    return {name: _without_secrets(name, value) for name, value in facts.items() if value not in (None, {}, [], "")}


_MOST_MISSING = 20
_BATCH_ROWS: Final = 256  # of which each may be large
_FEW = 1_000_000


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"there is no {error}"
    text = str(error).splitlines()
    return redact(text[0])[:300] if text else type(error).__name__


_Key = tuple[str, str, int]


def _key(problem: str, system: str, importer: Importer) -> _Key:
    """What a system's answers to a problem in a file are found by; the file's name stands for a problem without one."""
    return problem or importer.path.stem, system, id(importer)


def _title(name: str | None, problem: str, n_problems: int) -> str:
    """The name of a problem's dataset and aggregation."""
    if name is None:
        return _name_of(problem)
    return name if n_problems == 1 else _name_of(f"{name}/{problem}")


def _label(name: str | None, title: str, system: str, n_systems: int) -> str:
    """The name of a run."""
    return title if not system or (name is not None and n_systems == 1) else _name_of(f"{title}/{system}")


@lru_cache(4096)
def _name_of(text: str) -> str:
    """A text of a file as a valid name."""
    shown = "".join(c if c.isprintable() else "_" for c in text).strip()[:200] or "imported"
    return check_name(shown)


class _Examples:
    """The dataset of some systems of a problem.

    Attributes:
        numbers: of its examples in the problem.
    """

    def __init__(self, numbers: Sequence[int], dataset: Dataset) -> None:
        self.numbers, self.dataset = numbers, dataset

    @cached_property
    def digests(self) -> list[bytes]:
        """Of the inputs."""
        return [identity.digest(value) for value in self.dataset.inputs()]


def _save_run(store: Store, answers: Answers, examples: _Examples, importer: Importer, name: str) -> Run:
    dataset = examples.dataset
    spec = {
        "task": {"kind": "imported", "tool": importer.kind, "system": answers.system, "answers": answers.digest},
        "seed": 0,
        "dataset": dataset.id,
        "examples": len(dataset),
        "replications": answers.replications,
    }
    origin = {"file": importer.path.name, "tool": importer.kind, "stated": _facts_of(importer)}
    about = {"work": [], "pinned": True, "fresh": False}
    made = {"parts": {}, "unpinned": [], "policy": {}, "task": answers.system or importer.kind}
    opened = begin(
        store,
        RUNS,
        spec,
        name=name,
        again=lambda last: False,
        resume=None,
        about=lambda: about | {"provenance": provenance(origin) | made},
        origin=origin,
    )
    if "digest" not in opened:
        records = _records(answers, examples, importer)
        batches = iter(lambda: [*islice(records, _BATCH_ROWS)], [])
        seal(store, opened, batches, dataset.indices, answers.replications)
    run = Run(store, opened["id"])
    run.called = name
    return run


def _records(answers: Answers, examples: _Examples, importer: Importer) -> Iterator[list[Any]]:
    """The rows of a run as a journal has them."""
    missing = ["NotRecorded", f"{importer.path.name} has no such row", NOT_RECORDED, None]
    slot = 0
    for number, digest in zip(examples.numbers, map(bytes.hex, examples.digests), strict=True):
        for replication in range(answers.replications):
            found = answers.answer(number, replication)
            if found is None:
                yield [slot, digest, None, FAILED, missing, None, 0, 0, None, None, None, None]
            else:
                output, error, usage, started, duration, spans = found
                status = "completed" if error is None else FAILED
                thoughts, output = _split(output)
                if thoughts is not None:
                    said = [None, None, {"reasoning": thoughts}, None]
                    spans = [*spans, [len(spans) + 1, 0, "reply", LLM, 0, None, 1, *said]]
                failure = None if error is None else [error[0], redact(error[1]), None, None]
                texts = None if output is None or error is not None else [[0, output]]
                times = [started, duration, usage, spans or None]
                yield [slot, digest, None, status, failure, texts, int(texts is not None), 1, *times]
            slot += 1


def _split(output: Any) -> tuple[str | None, Any]:
    """The reasoning with which an output begins, and the answer after it, None if there is none."""
    reasoning, answer = split_reasoning(output) if isinstance(output, str) else (None, output)
    return (None, answer) if reasoning is None else (reasoning, answer or None)


def _save_evaluation(
    store: Store,
    answers: Answers,
    examples: _Examples,
    run: Run,
    importer: Importer,
    directions: Mapping[str, Direction | None],
    name: str,
    progress: Progress | None,
) -> Evaluation:
    scorers: dict[str, Scorer] = {
        scorer: Imported(
            importer.kind,
            scorer,
            facts.digest,
            is_share=facts.is_share and facts.n > 0,
            higher_is_better=None if directions[scorer] is None else directions[scorer] == "higher",
        )
        for scorer, facts in answers.scorers.items()
    }
    known = KnownRows(_read_grades(answers, examples))
    return Evaluator(store, progress=progress).evaluate(run, scorers, name=name, judged=known)


def _read_grades(answers: Answers, examples: _Examples) -> Iterator[dict[str, tuple[Any, ...]]]:
    """The grades of each row of the run."""
    has_numbers = {scorer: facts.n > 0 for scorer, facts in answers.scorers.items()}
    for number in examples.numbers:
        for replication in range(answers.replications):
            grades = answers.grades(number, replication)
            yield {scorer: _cells(grade, has_numbers[scorer]) for scorer, grade in grades.items()}


def _cells(grade: Grade, has_numbers: bool) -> tuple[Any, ...]:
    """Status, reason, value, label, data and explanation of a score.

    Args:
        has_numbers: whether the scorer gave numbers: a word in place of one cannot be averaged then.
    """
    reason = grade.reason
    if reason is None and grade.value is None and (has_numbers or (grade.label is None and grade.data is None)):
        said = grade.label if grade.data is None else grade.data
        reason = NO_GRADE if said is None else f"the score in the file is {said!r:.80}, not a number"
    status = SCORED if reason is None else ABSTAINED
    return status, reason, grade.value, grade.label, grade.data, grade.explanation


def _aggregate(
    store: Store, evaluations: Sequence[Evaluation], directions: Mapping[str, Direction | None], name: str
) -> list[Aggregation]:
    """The means of all scorers with numbers: together those of the evaluations that have the same scorers."""
    of_scorer: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        for scorer in evaluation.scorers:
            if _has_values(evaluation, scorer):
                of_scorer.setdefault(scorer, []).append(evaluation)
    groups: dict[tuple[str, ...], list[str]] = {}
    for scorer, own in of_scorer.items():
        groups.setdefault(tuple(each.id for each in own), []).append(scorer)
    made: dict[str, Aggregation] = {}
    for ids, scorers in groups.items():
        own = [each for each in evaluations if each.id in ids]
        measures = [Measure(scorer, Mean(direction=directions[scorer])) for scorer in scorers]
        labels = [each.name or each.id for each in own]
        own_name = free_name(name if len(own) == len(evaluations) else labels[0], made)
        made[own_name] = Aggregator(store).aggregate(own, measures, labels=labels, name=own_name)
    return [*made.values()]


_DIRECTIONS: Final[Mapping[bool | None, Direction | None]] = {True: "higher", False: "lower", None: None}


def _is_higher_better(importer: Importer, problem: str, scorer: str) -> bool | None:
    try:
        return importer.is_higher_better(problem, scorer)
    except _UNREADABLE:
        return None


def _has_values(evaluation: Evaluation, scorer: str) -> bool:
    return any(batch.column(0).null_count < batch.num_rows for batch in evaluation.batches(scorer, ["value"]))


def _without_secrets(name: str, value: Any) -> Any:
    if is_hidden(name, value):
        return "[hidden]"
    if isinstance(value, Mapping):
        return {str(key): _without_secrets(str(key), each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_secrets(name, each) for each in value]
    return redact(value) if isinstance(value, str) else value
