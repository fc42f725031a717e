"""Word and character error rates of transcripts."""

import unicodedata
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.confusion import json_number
from evaluand.metrics.base.metric import Columns, refuse, refuse_empty
from evaluand.metrics.base.numeric_pairs import PREDICTION, TRUTH
from evaluand.metrics.base.sums import OfSums

UnicodeForm = Literal["NFC", "NFKC"]


@dataclass(frozen=True, kw_only=True)
class EditRate(OfSums):
    """The edits that turn truths into predictions, as a share of the length of all truths together.

    Edits are the fewest substitutions, deletions and insertions; `data` has their numbers and that of hits. The rate is
    that of the corpus: long texts count more than short ones. Above 1 if many insertions are needed; undefined if all
    truths are empty.
    Source: V. Levenshtein, "Binary codes capable of correcting deletions, insertions and reversals" (1966), computed
    as in H. Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances" (Nordic Journal of
    Computing 10, 2003).

    Args:
        lowercase: compare texts in lower case.
        remove_punctuation: remove punctuation (Unicode categories P) from both texts.
        unicode_form: bring both texts into this normal form of Unicode first; by default they stay as they are.

    Raises:
        SpecError: there is no such form.
    """

    direction = "lower"
    range = (0.0, np.inf)
    reads_text = True
    columns = (TRUTH, PREDICTION)
    row_columns: ClassVar[tuple[str, ...]] = ("hits", "substitutions", "deletions", "insertions")

    lowercase: bool = False
    remove_punctuation: bool = False
    unicode_form: UnicodeForm | None = None

    @abstractmethod
    def units(self, text: str) -> Sequence[str]:
        """The words or characters of a text."""

    def prepare(self, columns: Columns) -> Columns:
        for name in self.columns:
            refuse_empty(columns, name)
            odd = np.array([not isinstance(text, str) for text in columns[name].tolist()], np.bool_)
            if odd.all() and len(odd):
                raise SpecError(f"{self.kind} needs text, but the column {name!r} holds none; choose another metric")
            refuse(columns, odd, lambda row, name=name: f"{name} is not text")  # type: ignore[misc]
        pairs = zip(columns[TRUTH].tolist(), columns[PREDICTION].tolist(), strict=True)
        counts = [count_edits(self._normalized(truth), self._normalized(prediction)) for truth, prediction in pairs]
        table = np.array(counts, np.float64).reshape(-1, len(self.row_columns))
        return dict(zip(self.row_columns, table.T, strict=True))

    def _normalized(self, text: str) -> Sequence[str]:
        if self.unicode_form is not None:
            text = unicodedata.normalize(self.unicode_form, text)
        if self.lowercase:
            text = text.lower()
        if self.remove_punctuation:
            text = "".join(char for char in text if not unicodedata.category(char).startswith("P"))
        return self.units(text)

    def terms(self, rows: Columns) -> Sequence[np.ndarray]:
        return [rows[name] for name in self.row_columns]

    def of_sums(self, sums: Sequence[np.ndarray], rows: Columns) -> np.ndarray:
        hits, substitutions, deletions, insertions = sums
        return np.asarray((substitutions + deletions + insertions) / (hits + substitutions + deletions))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        return "all truths are empty"

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        counts = {name: float(weight @ rows[name]) for name in self.row_columns}
        length = counts["hits"] + counts["substitutions"] + counts["deletions"]
        return {name: json_number(count) for name, count in {**counts, "length": length}.items()}


class WordErrorRate(EditRate):
    """The word error rate (WER) of a corpus; words are separated by white space.

    Case and punctuation count unless they are removed: see the parameters.

    Example:
        >>> metric = WordErrorRate()
        >>> texts = {"truth": np.array(["the cat sat"], object), "prediction": np.array(["a cat sat down"], object)}
        >>> {name: counts.tolist() for name, counts in metric.prepare({**texts, "_index_": np.arange(1)}).items()}
        {'hits': [2.0], 'substitutions': [1.0], 'deletions': [0.0], 'insertions': [1.0]}
    """

    kind = "word_error_rate"

    def units(self, text: str) -> Sequence[str]:
        return text.split()


class CharacterErrorRate(EditRate):
    """The character error rate (CER) of a corpus; white space at both ends of a text does not count.

    A character is a Unicode code point, so choose `unicode_form` if accents may be written in two forms.

    Example:
        >>> CharacterErrorRate(lowercase=True).signature
        'character_error_rate v1 missing=leave_out reduce=first lowercase=true interval=jackknife 95%'
    """

    kind = "character_error_rate"

    def units(self, text: str) -> Sequence[str]:
        return text.strip()


class Edits(NamedTuple):
    """How many units of two sequences are equal, substituted, deleted and inserted."""

    hits: int
    substitutions: int
    deletions: int
    insertions: int


def count_edits(truth: Sequence[Hashable], prediction: Sequence[Hashable]) -> Edits:
    """The fewest edits that turn one sequence into another, by kind.

    Example:
        >>> count_edits("kitten", "sitting")
        Edits(hits=4, substitutions=2, deletions=0, insertions=1)
    """
    start = _common(truth, prediction)
    end = _common(truth[start:][::-1], prediction[start:][::-1])
    truth, prediction = truth[start : len(truth) - end], prediction[start : len(prediction) - end]
    hits, substitutions, deletions, insertions = _align(truth, prediction)
    return Edits(hits + start + end, substitutions, deletions, insertions)


def _common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The length of the common beginning."""
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))


def _align(truth: Sequence[Hashable], prediction: Sequence[Hashable]) -> tuple[int, int, int, int]:
    """Trace an optimal alignment back: deletions first, then insertions, as the rapidfuzz library does."""
    rises, falls = _differences(truth, prediction)
    row, column = len(prediction), len(truth)
    hits = substitutions = deletions = insertions = 0
    while row and column:
        if rises[row - 1] >> (column - 1) & 1:
            deletions, column = deletions + 1, column - 1
            continue
        row -= 1
        if row and falls[row - 1] >> (column - 1) & 1:
            insertions += 1
            continue
        column -= 1
        if truth[column] == prediction[row]:
            hits += 1
        else:
            substitutions += 1
    return hits, substitutions, deletions + column, insertions + row


def _differences(truth: Sequence[Hashable], prediction: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """For each unit of the prediction, at which units of the truth the distance rises or falls by 1, as bits."""
    places: dict[Hashable, int] = {}
    for place, unit in enumerate(truth):
        places[unit] = places.get(unit, 0) | 1 << place
    full = (1 << len(truth)) - 1
    rise, fall = full, 0
    rises, falls = [], []
    for unit in prediction:
        same = places.get(unit, 0)
        diagonal = (((same & rise) + rise) ^ rise) | same | fall
        right = (((fall | ~(diagonal | rise)) << 1) | 1) & full
        left = (diagonal & rise) << 1 & full
        rise, fall = (left | ~(diagonal | right)) & full, right & diagonal
        rises.append(rise)
        falls.append(fall)
    return rises, falls
