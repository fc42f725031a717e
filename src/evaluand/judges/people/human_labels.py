"""Labels by people: a file to fill in, and the filled-in labels as a scorer.

    labelling_rows(run) ──▶ a file ── people ──▶ read_labels ──▶ HumanLabels ── Evaluator ──▶ Evaluation

People evaluate a run as any scorer does. Answers without a label are abstained from, so an evaluation of half a file
has correct counts, and the next import, with more labels, creates another evaluation. A label belongs to an example
and an answer, not to a run: it also applies to the same answer of another run.
"""

import codecs
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

import orjson
from pydantic_core import from_json

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, kind_of, nearest, warn
from evaluand.core.fingerprint import Identity
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.data.sources import open_texts
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.people_labels import HUMAN, human_scorers
from evaluand.evaluation.sample import find_turns
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.run.excerpts import in_reading_order, to_json
from evaluand.run.runner import Run
from evaluand.store.tables import ABSTAINED, COMPLETED, SCORED

Line = TypeVar("Line")

FIELDS: Final = ("value", "label", "by", "explanation")
"""The fields that people fill in: a number or a word or both, their name, and an explanation."""

COLUMNS: Final = ("key", INDEX, "replication", RESPONSE_INDEX, "id", "input", "expected", "response", *FIELDS)
"""The columns of a row to fill in, in this order."""

NOT_LABELLED: Final = "not labelled yet"

_EXPORT: Final = "`evaluand label export`"


class Label(NamedTuple):
    """The label of one person for one answer."""

    value: float | None
    label: str | None
    by: str | None
    explanation: str | None


def labelling_rows(run: Run, *, given: "HumanLabels | None" = None, by: str | None = None) -> Iterator[dict[str, Any]]:
    """A row for each answer of a run: its key, input, expected output and answer, and empty fields for a label.

    Args:
        given: existing labels; answers that have one are left out.
        by: leave out only the answers that this person has labelled.

    Example:
        >>> from evaluand import Dataset, Runner
        >>> run = Runner().run(str.upper, Dataset.from_rows([{"input": "a"}]))
        >>> row = next(labelling_rows(run))
        >>> row["input"], row["response"], row["value"], row["label"]
        ('a', 'A', None, None)
    """
    examples = iter(run.dataset)
    example = None
    for response in run:
        while example is None or example.index < response.index:
            example = next(examples)
        if response.status != COMPLETED:
            continue
        for number, answer in enumerate(response.responses or ()):
            key = key_of(example.digest, answer)
            existing = given.labels.get(key, ()) if given else ()
            if any(by is None or label.by == by for label in existing):
                continue
            texts = (to_json(example.input), to_json(example.expected), in_reading_order(to_json(answer)))
            cells = (key, response.index, response.replication, number, example.id, *texts, *[None] * len(FIELDS))
            yield dict(zip(COLUMNS, cells, strict=True))


def draw_labelling_rows(
    run: Run,
    *,
    seed: int = 0,
    strata: str | None = None,
    given: "HumanLabels | None" = None,
    by: str | None = None,
) -> list[dict[str, Any]]:
    """The same rows in a random order, so that the first of them are a random sample of all.

    The order depends on examples alone, so the same are labelled for every run; see `labelling_order`.

    Args:
        strata: an attribute of the dataset; its values take turns in the order, so that of each as many come first.
        given: as in `labelling_rows`, like `by`.

    Raises:
        SpecError: `strata` is not an attribute.
    """
    turns = find_turns(run, seed, strata)
    rows = labelling_rows(run, given=given, by=by)
    return sorted(rows, key=lambda row: (turns[row[INDEX], row["replication"]], row[RESPONSE_INDEX]))


def key_of(example: bytes, answer: Any) -> str:
    """The key of an answer to an example, the same in every run."""
    return identity.digest([example.hex(), answer]).hex()


def unmatched(run: Run, labels: "HumanLabels") -> list[str]:
    """The keys of labels that match no answer of a run, in the order they were read."""
    left = dict.fromkeys(labels.labels)
    for row in labelling_rows(run):
        left.pop(row["key"], None)
    return list(left)


def read_labels(
    files: Iterable[Path], *, range: tuple[float, float] | None = None, words: Sequence[str] | Mapping[str, str] = ()
) -> "HumanLabels":
    """Reads the labels in filled-in files: CSV, or else JSON lines, with a key and any of `FIELDS`.

    Rows without value and label are not labelled; if such a row has an explanation, an `EvaluandWarning` is issued. If
    one person labels one answer twice, the later label counts. Blanks around names and labels are ignored, and so is
    the case of a label: it is spelt as in `words`, or as it was read first. Names that differ only in case are two
    people, and an `EvaluandWarning` is issued.

    Args:
        files: read in this order.
        range: the lowest and the highest allowed value.
        words: the allowed labels, or allowed label → what it is stored as; empty allows any.

    Raises:
        DataError: a row is invalid, or its value or label is not allowed; with its file and line. True and false
            cannot be mixed with numbers outside 0 to 1.
    """
    stored_as = words if isinstance(words, Mapping) else {word: word for word in words}
    allowed = _Allowed(range, stored_as)
    spelt = {word.casefold(): stored for word, stored in stored_as.items()}
    found: dict[str, dict[str | None, Label]] = {}
    faults: list[Fault] = []
    flags: list[str] = []
    counted, only_explained = "", list[str]()
    for file in files:
        for where, line in _rows(file):
            try:
                key, label = _key(row := _require_intact(line)), _label(row, allowed)
            except DataError as error:
                faults.append(Fault(where, str(error)))
                continue
            value, word = label.value, label.label
            if value is None and word is None:
                only_explained += [where] if label.explanation else []
                continue
            if isinstance(value, bool):
                flags.append(where)
            elif value is not None and not 0 <= value <= 1:
                counted = counted or f"{value:g} ({where})"
            value = None if value is None else float(value)
            word = None if word is None else spelt.setdefault(word.casefold(), word)
            found.setdefault(key, {})[label.by] = label._replace(value=value, label=word)
    if counted:
        faults += [
            Fault(where, f"value is true or false, but other values are numbers such as {counted}") for where in flags
        ]
    if faults:
        raise DataError(_merge_equal(faults))
    _warn_of_doubts(only_explained, [by for by_person in found.values() for by in by_person if by])
    return HumanLabels({key: tuple(labels.values()) for key, labels in found.items()})


def filled_in(
    files: Iterable[Path], read: Callable[[Mapping[str, Any]], Line], *, written_by: str = _EXPORT
) -> list[Line]:
    """Parses the rows of filled-in files: JSON lines, or CSV with a column `key`.

    A DataError reports all files that cannot be read and all rows for which `read` raises one, with file and line;
    `written_by` is the command that such a file comes from.
    """
    lines: list[Line] = []
    faults: list[Fault] = []
    for where, row in (found for file in files for found in _rows(file, written_by)):
        try:
            lines.append(read(_require_intact(row)))
        except DataError as error:
            faults.append(Fault(where, str(error)))
    if faults:
        raise DataError(_merge_equal(faults))
    return lines


def parse_label(row: Mapping[str, Any]) -> Label:
    """The label in a filled-in row; value and label are None if it has none.

    Raises:
        DataError: the row is none that `read_labels` would read.
    """
    return _label(row, _Allowed(None, {}))


def n_filled_in(file: Path) -> int:
    """How many rows of a file of labels somebody has filled in, even if only with an explanation."""
    rows = (_require_intact(row) for _, row in _rows(file))
    return sum(any(_key(row) and row.get(name) is not None for name in _WORK) for row in rows)


class HumanLabels(Scorer):
    """Grades answers as people did: the mean of their values, and the label on which all agree.

    Abstains from answers that nobody has labelled, and from those without values on whose label people disagree. The
    columns `by` and `n_labels` hold who has labelled, and the number of labels. Labels are found by `key_of`.
    """

    kind = HUMAN
    version = 2
    cheap = True
    columns: ClassVar = {"by": "labels", "n_labels": "int64"}
    arguments = ("output", "example")

    def __init__(self, labels: Mapping[str, Sequence[Label]]) -> None:
        self.labels = {key: tuple(of_answer) for key, of_answer in labels.items()}

    def identify(self) -> Identity:
        return Identity({"kind": self.kind, "version": self.version, "parameters": {"labels": self._digest}})

    @cached_property
    def _digest(self) -> str:
        return identity.digest({key: [list(label) for label in labels] for key, labels in self.labels.items()}).hex()

    def score(self, output: Any, example: Any) -> Score:
        """The score that people gave the answer."""
        labels = self.labels.get(key_of(example.digest, output))
        if not labels:
            return Score.abstained(NOT_LABELLED)
        values = [label.value for label in labels if label.value is not None]
        words = list(dict.fromkeys(label.label for label in labels if label.label is not None))
        several = len(labels) > 1
        explanations = (
            f"{label.by or 'somebody'}: {label.explanation}" if several else label.explanation
            for label in labels
            if label.explanation
        )
        agreed = bool(values) or len(words) == 1
        return Score(
            math.fsum(values) / len(values) if values else None,
            words[0] if len(words) == 1 else None,
            [label._asdict() for label in labels] if several else None,
            "; ".join(explanations) or None,
            SCORED if agreed else ABSTAINED,
            None if agreed else f"people disagree: {', '.join(words)}",
            columns={"by": sorted({label.by for label in labels if label.by}), "n_labels": len(labels)},
        )


class Labelled(NamedTuple):
    """The progress of labelling.

    Attributes:
        answers: how many answers are to be labelled.
        labelled: how many have a label.
        by: person → how many answers they have labelled; None is labels without a name.
        disputed: how many answers people label differently.
    """

    answers: int
    labelled: int
    by: dict[str | None, int]
    disputed: int


def labelled(evaluation: Evaluation, scorer: str) -> Labelled:
    """The progress of labelling in an evaluation, also while people still work; a SpecError for other scorers."""
    if scorer not in human_scorers(evaluation):
        raise SpecError(f"{scorer!r} holds no labels by people; import them with `evaluand label import`")
    answers = done = disputed = 0
    by: Counter[str | None] = Counter()
    read = ["n_labels", "reason", "data", "by"]
    for batch in evaluation.batches(scorer, read):
        for n, reason, data, people in zip(*(batch.column(name).to_pylist() for name in read), strict=True):
            answers += n is not None or reason == NOT_LABELLED
            if n is None:
                continue
            done += 1
            by.update(people or [None])
            labels = orjson.loads(data) if data is not None else []
            disputed += len({(label["value"], label["label"]) for label in labels}) > 1
    return Labelled(answers, done, dict(by.most_common()), disputed)


_WORK: Final = ("value", "label", "explanation")
_EXAMPLES: Final = 5


class _Allowed(NamedTuple):
    """The lowest and the highest allowed value, and the allowed words → as stored; any if None or empty."""

    range: tuple[float, float] | None
    words: Mapping[str, str]

    def check(self, value: Any, label: str | None) -> None:
        if value is not None and self.range is not None:
            low, high = self.range
            if isinstance(value, bool) and self.range != (0, 1):
                raise DataError(f"value is {str(value).lower()}; give a number from {low:g} to {high:g}")
            if not low <= value <= high:
                raise DataError(f"value {value:g} lies outside the range {low:g} to {high:g}")
        if label is not None and self.words and label.casefold() not in map(str.casefold, self.words):
            known = [*self.words]
            raise DataError(f"label {label!r} is none of {', '.join(known)}{nearest(label, known)}")


def _merge_equal(faults: Iterable[Fault]) -> list[Fault]:
    """The faults, with those of equal messages as one, which names the other places."""
    places: dict[str, list[str]] = {}
    for fault in faults:
        places.setdefault(fault.message, []).append(fault.where)
    return [
        Fault(first, f"{message}; the same at {', '.join(others[:_EXAMPLES])}{_more(others)}" if others else message)
        for message, (first, *others) in places.items()
    ]


def _more(places: Sequence[str]) -> str:
    return f" and {len(places) - _EXAMPLES:,} more" if len(places) > _EXAMPLES else ""


def _rows(file: Path, written_by: str = _EXPORT) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """The rows of a file, each with its place; in place of a broken row the reason."""
    if file.suffix.lower() == ".csv":
        yield from _csv_rows(file, written_by)
        return
    try:
        lines = file.read_bytes().removeprefix(codecs.BOM_UTF8).splitlines()
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = from_json(line)
        except ValueError as error:
            yield f"{file}:{number}", f"is no JSON: {error}"
        else:
            yield f"{file}:{number}", row if isinstance(row, dict) else f"is {kind_of(row)}, not an object"


def _csv_rows(file: Path, written_by: str) -> Iterator[tuple[str, dict[str, Any]]]:
    source, number = open_texts(file), 0
    if "key" not in source.schema.names:
        raise DataError(f"{file}: has no column key; keep the columns that {written_by} wrote")
    for batch in source.batches():
        for row in batch.to_pylist():
            cells = dict.fromkeys(FIELDS) | row
            yield source.where(number), cells | {"value": _parse_value(cells["value"])}
            number += 1


def _parse_value(cell: str | None) -> Any:
    """Parses the text of a cell as a number, true or false; returns other text unchanged."""
    text = (cell or "").strip()
    if text.lower() in _CELLS:
        return _CELLS[text.lower()]
    with suppress(ValueError):
        return float(text)
    return text


_CELLS: Final = {"": None, "true": True, "false": False}


def _require_intact(row: Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(row, str):
        raise DataError(row)
    return row


def _key(row: Mapping[str, Any]) -> str:
    key = row.get("key")
    if not isinstance(key, str):
        raise DataError(f"has no key; keep the key that {_EXPORT} wrote")
    return key.strip()


def _label(row: Mapping[str, Any], allowed: _Allowed) -> Label:
    """The label of a row, with true and false unconverted; value and label are None if it is not filled in."""
    value = row.get("value")
    number = isinstance(value, int | float) and math.isfinite(value)
    if value is not None and not number:
        shown = value if isinstance(value, float) else kind_of(value)
        raise DataError(f"value is {shown}; give a number, true or false, and words as label")
    label, by, explanation = (_strip_text(name, row.get(name)) for name in ("label", "by", "explanation"))
    allowed.check(value, label)
    return Label(value, label, by, explanation)


def _strip_text(name: str, text: Any) -> str | None:
    """A text without surrounding blanks; None if it is empty."""
    if text is not None and not isinstance(text, str):
        raise DataError(f"{name} is {kind_of(text)}; give text")
    return (text or "").strip() or None


def _warn_of_doubts(only_explained: Sequence[str], people: Iterable[str]) -> None:
    if n := len(only_explained):
        lines = ", ".join(only_explained[:_EXAMPLES]) + (", …" if n > _EXAMPLES else "")
        what = "row has an explanation but" if n == 1 else "rows have an explanation but"
        warn(f"{n:,} {what} neither value nor label, so no label: {lines}")
    alike: dict[str, set[str]] = {}
    for name in people:
        alike.setdefault(name.casefold(), set()).add(name)
    for names in alike.values():
        if len(names) > 1:
            spellings = " and ".join(map(repr, sorted(names)))
            warn(f"{spellings} count as {len(names)} people; spell a name the same everywhere")
