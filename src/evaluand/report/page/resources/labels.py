"""Labelling: which answer or pair comes next for a person, how far people are, and how often they agree.

What a person says is appended to that person's file, in the format that `evaluand label` exports, and the files are
imported as that command imports them. Task, model and other labels are not shown while somebody labels. Names are not
checked: whoever may open the page can label under any name and see what that name said.
"""

from __future__ import annotations

import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

from evaluand.core.errors import DataError, EvaluandWarning, NotFound, SpecError, plural
from evaluand.core.identity import encode
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.people_labels import human_scorers
from evaluand.judges.label_words import find_foreign_words
from evaluand.judges.people.human_labels import COLUMNS, HumanLabels, labelled, parse_label, read_labels
from evaluand.judges.people.label_files import append_row, name_file, open_file, read_to_append
from evaluand.judges.people.labelling import (
    Placed,
    agreement_of_people,
    draw_answers,
    find_strays,
    name_labels,
    read_answer,
    store_labels,
)
from evaluand.matches.kind import MATCHES
from evaluand.matches.labelled_sets import agreement
from evaluand.matches.people import (
    WINNERS,
    Judged,
    PairToJudge,
    match_by_people,
    name_matches,
    pairs_to_judge,
    read_judged,
    read_to_append as read_judged_to_append,
)
from evaluand.report.facts.base import Facts
from evaluand.report.html.cells import cell
from evaluand.report.page.resources.base import Source, read_number, resource
from evaluand.report.page.resources.judges import list_judges_of_run
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store.overlay import OverlayStore

_LONGEST: Final = 100_000  # characters of a value
_LONGEST_NAME: Final = 60
_LONGEST_LABEL: Final = 200
_LONGEST_COMMENT: Final = 10_000
_KEY: Final = re.compile(r"[0-9a-f]{8,128}")
_MOST_AGREEMENTS: Final = 20
_ONLY_SHOWS: Final = "this page only shows; start it with: evaluand view --label"
_writing: Final = Lock()

T = TypeVar("T")


@resource("labelling/{run}")
def read_labelling(source: Source, run: str, query: Mapping[str, str]) -> Facts:
    """The next answer or pair that a person has not labelled, and how far people are.

    Args:
        query: `by`, the person; `other`, another run, for pairs; `from`, the first place that is considered; `at`, the
            place of what is shown even if it is labelled.
    """
    work = open_work(source, run, query.get("other") or None, query.get("by"))
    with _writing:
        work.complete_file(work.file)
    known = work.read()
    at = read_number(query["at"], "place in the order") if query.get("at") else None
    mine = known.keys_of(work.by)
    if at is None:
        start = read_number(query.get("from") or "0", "place in the order")
        at = next((place for place in range(start, len(work.keys)) if work.keys[place] not in mine), None)
    elif at >= len(work.keys):
        raise NotFound(f"there are {plural(len(work.keys), work.noun)}")
    found = None if at is None else work.show(at) | {"place": at, "said": known.said(work.by, work.keys[at])}
    return {"noun": work.noun, "shown": found} | _describe_progress(work, known)


@resource("asked/{run}")
def read_asked(source: Source, run: str) -> Facts:
    """What the labels of a run are for: the `judges` that graded it, which are measured against them."""
    if source.labels is None:
        raise NotFound(_ONLY_SHOWS)
    return {"judges": list_judges_of_run(source, _open_run(source, run).id)}


def _describe_progress(work: Work, known: Known) -> Facts:
    keys = set(work.keys)
    by = [{"by": person, "n": len(keys & known.keys_of(person))} for person in known.people]
    mine = len(keys & known.keys_of(work.by))
    done = {"total": len(keys), "done": mine, "by": [each for each in by if each["n"]]}
    return done | {name: getattr(known, name) for name in ("agreement", "most_compared", "damaged")}


def label(source: Source, run: str, said: Mapping[str, Any]) -> Facts:
    """Appends what a person says about an answer or a pair to their file.

    Args:
        said: `by` and `key`; `value`, `label` and `explanation`, or for pairs `other`, `winner` and `explanation`.

    Returns:
        Its `place` in the order.

    Raises:
        SpecError: something is missing or too long, or is no label.
        NotFound: the run has no such answer.
    """
    work = open_work(source, run, _read_text(said, "other", _LONGEST_LABEL), _read_text(said, "by", _LONGEST_NAME))
    key = said.get("key")
    if not isinstance(key, str) or _KEY.fullmatch(key) is None or key not in work.places:
        raise NotFound(f"there is no such {work.noun} to label; open the page again")
    row = work.fill_in(work.places[key], said)
    with _writing:
        work.complete_file(work.file)
        append_row(work.file, row)
    return {"place": work.places[key]}


def store(source: Source, run: str, said: Mapping[str, Any]) -> Facts:
    """Stores what people have said so far, as `evaluand label` does.

    Returns:
        The `kind` and the `id` of what is stored, `notes`, and of answers the `judges` that can now be measured.
    """
    work = open_work(source, run, _read_text(said, "other", _LONGEST_LABEL), _read_text(said, "by", _LONGEST_NAME))
    with _writing, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EvaluandWarning)
        for file in work.files:
            with nullcontext() if file == work.file else suppress(DataError):
                work.complete_file(file)
        stored = work.store()
    if stored["kind"] == EVALUATIONS:
        stored |= {"judges": list_judges_of_run(source, run)}
    return stored | {"notes": [str(each.message) for each in caught if issubclass(each.category, EvaluandWarning)]}


class Known(NamedTuple):
    """What people have said so far.

    Attributes:
        people: who has said anything.
        keys_of: person → the keys of what they have labelled.
        said: person and key → what they said, or None.
        agreement: how often they agree.
        most_compared: the most people and pairs that `agreement` holds, if others are left out of it.
        damaged: file and line of what cannot be read; nothing in these files counts.
    """

    people: Sequence[str]
    keys_of: Callable[[str], set[str]]
    said: Callable[[str, str], Facts | None]
    agreement: list[Facts]
    most_compared: int | None
    damaged: list[str]


class Work(ABC):
    """What one person labels.

    Attributes:
        noun: `answer` or `pair`.
        by: the person.
        keys: of all that is to be labelled, in its order; `places` is the inverse.
        file: to which their answers are appended.
    """

    noun = ""
    kind = ""

    def __init__(self, folder: Path, by: str, keys: Sequence[str]) -> None:
        self.by, self.keys = by, keys
        self.places = {key: place for place, key in enumerate(keys)}
        self.folder, self.file = folder, folder / name_file(self.kind, by)

    @property
    def files(self) -> list[Path]:
        """The files of all people."""
        return sorted(self.folder.glob(str(name_file(self.kind, "*"))))

    def complete_file(self, file: Path) -> None:
        """Completes the last line of a file, or removes what a killed program left of it.

        Raises:
            DataError: the file is damaged.
        """
        if os.path.lexists(file) and not _ends_with_line(file):
            self.complete_line(file)

    def read_intact(self, read: Callable[[list[Path]], T]) -> tuple[T, list[str]]:
        """What is read of the files that are not damaged, and file and line of the damage in the others.

        Raises:
            DataError: this person's file is damaged.
        """
        files, damaged = self.files, list[str]()
        while True:
            try:
                for file in files:
                    open_file(file, "rb").close()
                return read(files), damaged
            except DataError as error:
                places = [fault.where for fault in error.faults]
                broken = [file for file in files if any(f"{place}:".startswith(f"{file}:") for place in places)]
                if not broken or self.file in broken:
                    raise
                files = [file for file in files if file not in broken]
                damaged += [os.path.relpath(place, self.folder) for place in places]

    @abstractmethod
    def show(self, place: int) -> Facts:
        """What is shown at a place."""

    @abstractmethod
    def read(self) -> Known:
        """What people have said."""

    @abstractmethod
    def fill_in(self, place: int, said: Mapping[str, Any]) -> Facts:
        """The row with what a person says."""

    @abstractmethod
    def complete_line(self, file: Path) -> None:
        """Completes the last line of a file, or removes it if it is only the beginning of a row."""

    @abstractmethod
    def store(self) -> Facts:
        """Stores what people have said."""


def _ends_with_line(file: Path) -> bool:
    with open_file(file, "rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(size - 1, 0))
        return opened.read(1) in (b"", b"\n")


class AnswersWork(Work):
    """The answers of a run, each of which gets a grade."""

    noun, kind = "answer", "labels"

    def __init__(self, folder: Path, by: str, run: Run, answers: Sequence[Placed]) -> None:
        super().__init__(folder, by, [each.key for each in answers])
        self._run, self._answers = run, answers

    def show(self, place: int) -> Facts:
        row = read_answer(self._run, self._answers[place])
        expected = None if row["expected"] is None else _cell(row["expected"])
        shown = {"input": _cell(row["input"]), "expected": expected, "responses": [_cell(row["response"])]}
        return {"key": row["key"], "id": row["id"]} | shown

    def read(self) -> Known:
        labels, damaged = self._read_labels()
        by_person: dict[str, dict[str, Any]] = {}
        for key, of_answer in labels.labels.items():
            for each in of_answer:
                if each.by is not None:
                    by_person.setdefault(each.by, {})[key] = each
        people = agreement_of_people(labels, self._answers, _MOST_AGREEMENTS)
        agreed = [each._asdict() for each in people.pairs]
        most = None if people.is_complete else _MOST_AGREEMENTS

        def said(by: str, key: str) -> Facts | None:
            own = by_person.get(by, {}).get(key)
            return None if own is None else own._asdict()

        return Known(sorted(by_person), lambda by: set(by_person.get(by, ())), said, agreed, most, damaged)

    def _read_labels(self) -> tuple[HumanLabels, list[str]]:
        with warnings.catch_warnings(action="ignore", category=EvaluandWarning):
            return self.read_intact(read_labels)

    def fill_in(self, place: int, said: Mapping[str, Any]) -> Facts:
        given: Facts = {"value": said.get("value"), "label": _read_text(said, "label", _LONGEST_LABEL), "by": self.by}
        given["explanation"] = _read_text(said, "explanation", _LONGEST_COMMENT)
        found = _parse(lambda: parse_label(given))
        if found.value is None and found.label is None:
            raise SpecError("give a value or a label")
        if isinstance(given["value"], bool):  # which the files cannot mix with other numbers
            raise SpecError("value must be a number, such as 1 for right and 0 for wrong")
        return read_answer(self._run, self._answers[place]) | given

    def complete_line(self, file: Path) -> None:
        read_to_append(file, COLUMNS, read_labels)

    def store(self) -> Facts:
        labels, damaged = self.read_intact(read_labels)
        if damaged:
            raise SpecError(f"{', '.join(damaged)} cannot be read; mend it, or labels would be lost")
        if not labels.labels:
            raise SpecError("nothing is labelled yet")
        find_strays(self._run, labels)
        name = name_labels(self._run)
        self._check_nobody_lost(labels, name)
        foreign = find_foreign_words(self._run, labels)
        if foreign is not None and not foreign.can_match:
            raise SpecError(f"{foreign.text}; import the files with that command: {self._list_files()}")
        made = store_labels(self._run, labels, name)
        return {"kind": EVALUATIONS, "id": made.id, "name": name, "run": self._run.id}

    def _check_nobody_lost(self, labels: HumanLabels, name: str | None) -> None:
        """Raises a SpecError if labels that were imported from other files would no longer have the usual name."""
        named = (ref.id for ref in self._run.store.refs() if (ref.kind, ref.name) == (EVALUATIONS, name))
        if (id := next(named, None)) is None:
            return
        before = Evaluation(self._run.store, id)
        if not human_scorers(before):
            raise SpecError(f"{name!r} is no evaluation by people; rename it, or use `evaluand label import --name`")
        people = {each.by for of_answer in labels.labels.values() for each in of_answer}
        lost = [by or "somebody" for by in labelled(before, human_scorers(before)[0]).by if by not in people]
        if lost:
            files = self._list_files()
            raise SpecError(
                f"{name} holds labels by {', '.join(lost)} that are not in {files}; import all files together:"
                f" evaluand label import {self._run.name} {files} OTHER"
            )

    def _list_files(self) -> str:
        return " ".join(str(file) for file in self.files)


class PairsWork(Work):
    """Pairs of answers of two runs, of which one is better."""

    noun, kind = "pair", "pairs"

    def __init__(self, folder: Path, by: str, runs: Sequence[Run], pairs: Sequence[PairToJudge]) -> None:
        super().__init__(folder, by, [each.key for each in pairs])
        self._runs, self._pairs = runs, pairs

    def show(self, place: int) -> Facts:
        pair = self._pairs[place]
        shown = {"input": _cell(pair.input), "expected": None, "responses": [_cell(pair.first), _cell(pair.second)]}
        return {"key": pair.key, "id": pair.id} | shown

    def read(self) -> Known:
        by_person: dict[str, dict[str, Judged]] = {}
        judged, damaged = self.read_intact(read_judged)
        for each in judged:
            if each.by is not None:
                by_person.setdefault(each.by, {})[each.key] = each

        def said(by: str, key: str) -> Facts | None:
            own = by_person.get(by, {}).get(key)
            return None if own is None else {"winner": own.winner, "explanation": own.explanation}

        # Each person is shown a pair in an order of their own, under another key; so only their own progress is known.
        return Known([self.by], lambda by: set(by_person.get(by, ())), said, [], None, damaged)

    def fill_in(self, place: int, said: Mapping[str, Any]) -> Facts:
        pair, winner = self._pairs[place], said.get("winner")
        if not isinstance(winner, str) or winner not in WINNERS:
            raise SpecError(f"winner must be one of {', '.join(WINNERS)}")
        return pair.filled_in(Judged(pair.key, winner, self.by, _read_text(said, "explanation", _LONGEST_COMMENT)))

    def complete_line(self, file: Path) -> None:
        read_judged_to_append(file)

    def store(self) -> Facts:
        every, _ = self.read_intact(lambda files: {file: read_judged([file]) for file in files})
        answers = every.pop(self.file, [])
        if not answers:
            raise SpecError("no pair is judged yet")
        made = match_by_people(self._runs, answers, name=name_matches(self._runs, self.by)).matches
        others = [judged for of_file in every.values() for judged in of_file]
        agreed: list[Facts] = []
        if others:
            both = match_by_people(_in_memory(self._runs), [*answers, *others]).matches
            agreed = [
                {name: value for name, value in each._asdict().items() if name != "disputed"} | {"answers": each.pairs}
                for each in agreement([both])
            ]
        return {"kind": MATCHES, "id": made.id, "name": made.name, "agreement": agreed}


def _in_memory(runs: Sequence[Run]) -> list[Run]:
    """The runs over a store that keeps in memory what is written."""
    store: Any = OverlayStore(runs[0].store)
    return [Run(store, run.id) for run in runs]


def open_work(source: Source, run: str, other: str | None, by: str | None) -> Work:
    """What a person labels.

    Raises:
        NotFound: there is no such finished run, or the server does not label.
        SpecError: the person has no name, or it cannot be that of a file.
    """
    if source.labels is None:
        raise NotFound(_ONLY_SHOWS)
    name = _check_name(by)
    runs = [_open_run(source, each) for each in ((run,) if other is None else (run, other))]
    if other is None:
        key: tuple[Any, ...] = ("order", runs[0].id)
        return AnswersWork(source.labels, name, runs[0], source.orders.get(key, lambda: draw_answers(runs[0])))
    key = ("pairs", *(each.id for each in runs), name)
    return PairsWork(source.labels, name, runs, source.orders.get(key, lambda: pairs_to_judge(runs, by=name)))


def _open_run(source: Source, id: str) -> Run:
    if not source.store.is_sealed(RUNS, id):
        raise NotFound("this run is not finished, or not in this store")
    return Run(source.store, id)


_NAME: Final = re.compile(r"\w(?:[\w .,@+'-]*[\w.])?")


def _check_name(by: str | None) -> str:
    """The name of a person, which is also part of that of a file."""
    name = (by or "").strip()
    if len(name) > _LONGEST_NAME or _NAME.fullmatch(name) is None:
        raise SpecError(
            f"say who labels by a name of up to {_LONGEST_NAME} letters, digits, blanks and . , @ + ' - _, such as ann"
        )
    return name


def _cell(value: Any) -> Any:
    return cell(value, _LONGEST)


def _parse(read: Callable[[], Any]) -> Any:
    """What is read; a fault of what the page sent is none of what is stored."""
    try:
        return read()
    except DataError as error:
        raise SpecError(str(error)) from None


def _read_text(said: Mapping[str, Any], name: str, longest: int) -> str | None:
    text = said.get(name)
    if text is not None and not isinstance(text, str):
        raise SpecError(f"{name} must be a text")
    if text is not None and len(text) > longest:
        raise SpecError(f"{name} has {len(text):,} characters, and may have {longest:,}")
    try:
        encode(text)
    except (ValueError, TypeError):
        raise SpecError(f"{name} holds characters that are none") from None
    return (text or "").strip() or None
