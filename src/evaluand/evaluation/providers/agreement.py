"""Agreement of answers with expected ones, by the scorers and metrics of the same names."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Annotated, Any, Final

import numpy as np

from evaluand.core.errors import DataError, kind_of
from evaluand.core.parameters import Within
from evaluand.core.registry import find, make_default
from evaluand.evaluation.local_provider import LocalProvider, longest
from evaluand.evaluation.provider import Judgement, lower_is_better, quoted


@dataclass(frozen=True)
class Agreement(LocalProvider):
    """Compares responses with the expected ones.

    Several texts may be expected, of which any counts. For rankings, what is retrieved is a list, best first (or in one
    of the other forms of the scorer `ranking`), and what is relevant is one item, a list, or an object item →
    relevance. An item that is retrieved again is irrelevant at its further places: it takes the place of another item
    and adds nothing new (Y. Bernstein & J. Zobel, "Redundant documents and search effectiveness", CIKM 2005).

    Args:
        k: how many places of a ranking count; all by default.
        max_characters: how long each argument may be, in place of the methods' own limits.

    Raises:
        SpecError: k or max_characters is not an integer of at least 1.

    Example:
        >>> Agreement(k=2).recall_at_k(["b", "a", "c"], ["a", "c"]).value
        0.5
    """

    kind = "agreement"

    _: KW_ONLY
    k: Annotated[int, Within(1)] | None = None

    @longest(10_000_000, share=True)
    def exact_match(self, response: Any, expected: Any) -> Judgement:
        """1 if a response equals the expected one, else 0; texts regardless of case, width and runs of white space."""
        return _scored("exact_match", response, expected)

    @longest(500_000, share=True)
    def bleu(self, response: str, expected: str | Sequence[str]) -> Judgement:
        """sacreBLEU's score of a sentence, from 0 to 1; the extra `text`."""
        return _scored("bleu", response, expected, 100)

    @longest(10_000, share=True)
    def rouge(self, response: str, expected: str | Sequence[str]) -> Judgement:
        """The F1 of ROUGE-L; the extra `text`."""
        return _scored("rouge", response, expected)

    @lower_is_better
    def absolute_error(self, value: float, expected: float) -> Judgement:
        """|value − expected|; its mean over records is the mean absolute error."""
        for name, number in (("value", value), ("expected", expected)):
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise DataError(f"{name} is {kind_of(number)}, not a number")
        return Judgement(abs(value - expected), {"reason": f"{value:g} beside {expected:g}"})

    @longest(1_000_000, share=True)
    def ndcg_at_k(self, retrieved: Any, relevant: Any) -> Judgement:
        """Normalised discounted cumulative gain of a ranking."""
        return self._ranked("ndcg", retrieved, relevant)

    @longest(1_000_000, share=True)
    def precision_at_k(self, retrieved: Any, relevant: Any) -> Judgement:
        """The share of places with a relevant item."""
        return self._ranked("precision_at_k", retrieved, relevant)

    @longest(1_000_000, share=True)
    def recall_at_k(self, retrieved: Any, relevant: Any) -> Judgement:
        """The share of relevant items that were retrieved."""
        return self._ranked("recall_at_k", retrieved, relevant)

    @longest(1_000_000, share=True)
    def hit_rate(self, retrieved: Any, relevant: Any) -> Judgement:
        """1 if any relevant item was retrieved, else 0."""
        return self._ranked("hits_at_k", retrieved, relevant)

    @longest(1_000_000, share=True)
    def reciprocal_rank(self, retrieved: Any, relevant: Any) -> Judgement:
        """1 / the place of the first relevant item, 0 without one; its mean is the mean reciprocal rank."""
        return self._ranked(None, retrieved, relevant)

    def _ranked(self, name: str | None, retrieved: Any, relevant: Any) -> Judgement:
        scored = _scorer("ranking").score(retrieved, relevant)
        if scored.columns is None:
            return Judgement.undefined(str(scored.reason))
        first, places = scored.columns["first_rank"], len(scored.columns["ranks"])
        cells = {key: np.array([value], np.float64) for key, value in scored.columns.items()}
        if name is None:
            found = first is not None and (self.k is None or first <= self.k)
            value = scored.value if found else 0.0
        else:
            metric = find("metrics", name)(k=self.k if self.k is not None else max(places, 1))
            value = float(metric.prepare(cells)["value"][0])
        count = sum(grade > 0 for grade in scored.columns["grades"])
        among = f"{count} of {len(scored.columns['relevant'])} relevant among {places}"
        reason = f"{among}, the first in place {first:g}" if first is not None else among
        return Judgement(value, {"reason": reason + (f"; looked at {self.k}" if self.k is not None else "")})


def ranked(items: Any, scores: Sequence[float] | None) -> Any:
    """A ranking of items by their scores; as it is without scores.

    Raises:
        DataError: there are not as many scores as items.

    Example:
        >>> Agreement(k=1).hit_rate(ranked(["a", "b"], [0.2, 0.9]), ["b"]).value
        1.0
    """
    if scores is None:
        return items
    if not isinstance(items, Sequence) or isinstance(items, str) or len(items) != len(scores):
        found = f"{len(scores)} scores for {len(items) if isinstance(items, Sequence) else kind_of(items)}"
        raise DataError(f"there are {found} items; give one score for each")
    return [{"answer": item, "score": score} for item, score in zip(items, scores, strict=True)]


def _scored(name: str, response: Any, expected: Any, largest: float = 1.0) -> Judgement:
    scored = _scorer(name).score(response, expected)
    if scored.value is None:
        return Judgement.undefined(str(scored.reason))
    value = min(scored.value / largest, 1.0)  # rounding in sums of logarithms may exceed 1
    return Judgement(value, {"reason": f"{name} {value:.2f} beside {_quote_expected(expected)}"})


def _quote_expected(expected: Any) -> str:
    if isinstance(expected, list | tuple) and expected:
        more = f" and {len(expected) - 1} more" if len(expected) > 1 else ""
        return _quote_expected(expected[0]) + more
    return quoted(expected) if isinstance(expected, str) else repr(expected)


@cache
def _scorer(name: str) -> Any:
    return make_default("scorers", name, **_PARAMETERS.get(name, {}))


_PARAMETERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "exact_match": {"normalise": ("unicode", "case", "space"), "any_of": True},
    "ranking": {"repeats": True},
}
