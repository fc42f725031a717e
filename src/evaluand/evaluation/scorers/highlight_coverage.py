"""How far highlights in a text cover what should be highlighted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from evaluand.core.errors import DataError
from evaluand.evaluation.scorer import NOTHING_EXPECTED, Score, Scorer, described, require_text, wrong_parameter
from evaluand.store.tables import ABSTAINED


@dataclass(frozen=True, kw_only=True)
class HighlightCoverage(Scorer):
    """The F-beta of the places that highlights cover, from 0 to 1; precision and recall are columns of their own.

    Output and expected are lists of highlights: pairs `[start, end]`, or objects with a start and an end, which is the
    first place after the highlight. A place counts once however many highlights cover it, so it is the same whether a
    passage is highlighted as a whole or in pieces.

    Where nothing is highlighted, precision is undefined, and where nothing is expected, recall: these columns are then
    empty, and the explanation says so. The value still is defined: 0 where only one side has highlights, and 1 where
    neither has. For a whole dataset read the counts, with the metrics `precision`, `recall` and `f_beta`.

    Abstains where nothing is expected (null) or answered.

    Attributes:
        beta: how much recall counts beside precision: 2 is twice as much.
        start_key: where in a highlight that is an object its start stands.
        end_key: where its end stands.

    Raises:
        SpecError: beta is no number above 0, or a key is no text.

    Example:
        >>> score = HighlightCoverage(beta=2).score([[3, 5]], [[4, 7]])
        >>> round(score.value, 4), score.columns["precision"], round(score.columns["recall"], 4)
        (0.3571, 0.5, 0.3333)
    """

    kind = "highlight_coverage"
    version = 1
    cheap = True
    ranges: ClassVar = dict.fromkeys(("value", "precision", "recall"), (0.0, 1.0))

    beta: float = 1.0
    start_key: str = "start"
    end_key: str = "end"

    def __post_init__(self) -> None:
        beta: Any = self.beta
        if not isinstance(beta, int | float) or isinstance(beta, bool) or not 0 < beta < math.inf:
            raise wrong_parameter(self, "beta", "give a number above 0")
        for name in ("start_key", "end_key"):
            require_text(self, name)

    @property
    def columns(self) -> Mapping[str, str]:
        """Shares, and counts of places under the names that metrics of counted things read."""
        return dict.fromkeys(("precision", "recall"), "double") | dict.fromkeys(_COUNTS, "int64")

    def score(self, output: Any, expected: Any) -> Score:
        """Counts the places covered on each side and on both.

        Raises:
            DataError: a highlight is none; names it.
        """
        if expected is None:
            return NOTHING_EXPECTED
        wanted = self._covered("expected", expected)
        if output is None:
            return Score(status=ABSTAINED, reason="the answer is null", columns=self.unanswered(expected))
        given = self._covered("generated", output)
        both, n_given, n_wanted = _shared(given, wanted), _places(given), _places(wanted)
        weight = self.beta**2
        value = (1 + weight) * both / (n_given + weight * n_wanted) if n_given or n_wanted else 1.0
        shares = {"precision": both / n_given if n_given else None, "recall": both / n_wanted if n_wanted else None}
        counts = (both, 0, n_wanted, n_given)
        why = _UNDEFINED.get((bool(n_given), bool(n_wanted)))
        return Score(value, explanation=why, columns=shares | dict(zip(_COUNTS, counts, strict=True)))

    def unanswered(self, expected: Any) -> Mapping[str, Any] | None:
        return None if expected is None else {"n_expected": _places(self._covered("expected", expected))}

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        self._covered("expected", expected)
        for output in outputs:
            self._covered("generated", output)

    def _covered(self, what: str, highlights: Any) -> list[tuple[int, int]]:
        """The stretches that highlights cover, from left to right and apart."""
        if not isinstance(highlights, list | tuple):
            raise DataError(f"the {what} highlights are {described(highlights)}, not a list of highlights")
        found: list[tuple[int, int]] = []
        for start, end in sorted(self._ends(f"{what} highlight {i}", one) for i, one in enumerate(highlights)):
            if found and start <= found[-1][1]:
                found[-1] = found[-1][0], max(found[-1][1], end)
            elif end > start:
                found.append((start, end))
        return found

    def _ends(self, what: str, highlight: Any) -> tuple[int, int]:
        if isinstance(highlight, Mapping):
            for key in (self.start_key, self.end_key):
                if key not in highlight:
                    keys = ", ".join(map(repr, highlight)) or "no keys"
                    raise DataError(f"{what} has {keys} and not {key!r}; name its keys with start_key and end_key")
            ends = highlight[self.start_key], highlight[self.end_key]
        elif isinstance(highlight, list | tuple) and len(highlight) == len(_ENDS):
            ends = tuple(highlight)
        else:
            raise DataError(f"{what} is {described(highlight)}, not a pair of start and end")
        for name, end in zip(_ENDS, ends, strict=True):
            if not isinstance(end, int) or isinstance(end, bool) or end < 0:
                raise DataError(f"{what}: its {name} is {described(end)}, not a whole number of at least 0")
        if ends[1] < ends[0]:
            raise DataError(f"{what} ends at {ends[1]}, before it starts at {ends[0]}")
        return ends[0], ends[1]


_ENDS: Final = ("start", "end")
_COUNTS: Final = ("correct", "partial", "n_expected", "n_predicted")
_UNDEFINED: Final = {
    (False, True): "nothing is highlighted, so there is no precision",
    (True, False): "nothing is expected to be highlighted, so there is no recall",
    (False, False): "nothing is highlighted, and nothing is expected to be",
}


def _places(stretches: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in stretches)


def _shared(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> int:
    """How many places lie in both of two lists of stretches that are in order and apart."""
    total = i = j = 0
    while i < len(one) and j < len(other):
        total += max(0, min(one[i][1], other[j][1]) - max(one[i][0], other[j][0]))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return total
