"""Compares tagged spans of text with the expected ones: named entities, or any other tagging of text.

The spans of an answer are paired with the expected ones, each with at most one, and each pair is rated in one of the
four modes of MUC-5 and SemEval-2013 task 9.1 (N. Chinchor & B. Sundheim, "MUC-5 evaluation metrics", 1993; I. Segura-
Bedmar et al., "SemEval-2013 Task 9: Extraction of drug-drug interactions from biomedical texts", 2013):

    mode      a pair is correct if                 and otherwise
    strict    place and tag are the same           incorrect
    exact     the place is the same                incorrect
    partial   the place is the same                partial: they overlap
    type      the tag is the same                  incorrect

An expected span without a partner is missed; one of the answer is spurious. So `correct + incorrect + partial + missed`
is the number of expected spans, and with `spurious` for `missed` that of the answer: nothing is counted twice, even if
spans overlap or occur twice. An empty answer is right if nothing was expected.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from evaluand.core.errors import DataError, described
from evaluand.core.parameters import Text, Within
from evaluand.evaluation.scorer import ExpectationScorer, Score, read_field

OUTCOMES: Final = ("correct", "incorrect", "partial", "missed", "spurious")
_COUNTS: Final = ("correct", "partial", "n_expected", "n_predicted")  # as metrics of counted things read them


class Span(NamedTuple):
    """A piece of text with a tag."""

    start: int
    end: int
    tag: str

    def __str__(self) -> str:
        return f"{self.tag} {self.start}–{self.end}"


class Pair(NamedTuple):
    """A span of the answer and one expected, or one of them alone."""

    outcome: str
    given: Span | None
    wanted: Span | None

    def __str__(self) -> str:
        spans = f"{self.given} for {self.wanted}" if self.given and self.wanted else self.given or self.wanted
        return f"{self.outcome}: {spans}"


@dataclass(frozen=True, kw_only=True)
class Spans(ExpectationScorer):
    """Counts of correct, incorrect, partial, missed and spurious spans; the value is the F1 of the one answer.

    Output and expected are lists of objects with a start, an end (exclusive) and a tag; or the tag of each token in a
    scheme such as BIO, BIOES or BILOU, as a list or with blanks between them, as conlleval reads them: a span begins
    also at an `I-` after another tag. The value is 1 if both are empty. Abstains if expected or output is null.

    For a whole dataset use the metrics `precision`, `recall` and `f_beta`, which read the counts: in the mean of the
    value a text without spans counts as much as one with twenty.

    Pairs are found in rounds: first equal spans, then those in the same place, then those that overlap; in the mode
    `type` those that overlap and have the same tag, then those that overlap. Each round makes the largest possible
    number of pairs of the remaining spans, even if they are nested. A span that occurs twice needs two partners.

    An invalid span (not an object, not integers, an end not after its start, no tag) fails the row, with the span
    in the reason.

    Attributes:
        mode: `strict`, `exact`, `partial` or `type`.
        start_key: the key of the start in a span.
        end_key: the key of its end, the first place after it.
        tag_key: the key of its tag.
        text_key: the key of its words. If given, a row fails if the words of a span in the answer are not those that
            the input has at that place: its offsets then do not count characters. The words are looked up in the input,
            or, if that is an object, in its field of the same name.

    Raises:
        SpecError: there is no such mode, or a key is not text.

    Example:
        >>> ada, oslo = {"start": 0, "end": 3, "tag": "PER"}, {"start": 15, "end": 19, "tag": "LOC"}
        >>> score = Spans().score([ada], [ada, oslo])
        >>> round(score.value, 3), score.explanation
        (0.667, 'missed: LOC 15–19')
        >>> score.columns["correct"], score.columns["missed"], score.columns["n_expected"]
        (1, 1, 2)
    """

    kind = "spans"
    version = 2
    cheap = True
    arguments = ("output", "expected", "input")
    columns: ClassVar = dict.fromkeys((*OUTCOMES, "n_expected", "n_predicted"), "int64") | {"by_tag": "json"}

    mode: Literal["strict", "exact", "partial", "type"] = "strict"
    start_key: Text = "start"
    end_key: Text = "end"
    tag_key: Text = "tag"
    text_key: Text | None = None

    def score(self, output: Any, expected: Any, input: Any = None) -> Score:
        _check_lengths(output, expected)
        return super().score(output, expected, input)

    def grade(self, output: Any, truth: list[Span], *others: Any) -> Score:
        """Counts pairs and spans without one."""
        if output is None:
            return self.abstained("the answer is null", truth)
        given = self._spans("predicted", output)
        if self.text_key is not None and others:
            self._check_words(output, given, others[0])
        return _score(list(self._pairs(given, truth)))

    def read_expected(self, expected: Any) -> list[Span]:
        return self._spans("expected", expected)

    def columns_of(self, truth: list[Span]) -> Mapping[str, Any]:
        return {"n_expected": len(truth), "by_tag": _by_tag([Pair("missed", None, span) for span in truth])}

    def _spans(self, what: str, value: Any) -> list[Span]:
        """The spans of a list, from left to right."""
        if (tags := token_tags(value)) is not None:
            return spans_of_tags(tags)
        if not isinstance(value, list | tuple):
            raise DataError(f"the {what} spans are {described(value)}, not a list of spans")
        return sorted(self._span(f"{what} span {place}", item) for place, item in enumerate(value))

    def _span(self, what: str, item: Any) -> Span:
        if not isinstance(item, Mapping):
            raise DataError(f"{what} is {described(item)}, not an object with start, end and tag")
        values = [self._field(what, item, key) for key in (self.start_key, self.end_key, self.tag_key)]
        for key, value in zip((self.start_key, self.end_key), values, strict=False):
            _check_place(f"{what}: {key!r}", value)
        start, end, tag = values
        if end <= start:
            raise DataError(
                f"{what}: it ends at {end} and starts at {start}; an end is the first place after the span, so it must "
                "be greater than the start"
            )
        if not isinstance(tag, str):
            raise DataError(f"{what}: {self.tag_key!r} is {described(tag)}, not text")
        return Span(start, end, tag)

    def _field(self, what: str, item: Mapping[str, Any], key: str) -> Any:
        names = "start_key, end_key and tag_key" if key != self.text_key else "text_key, or leave it out"
        return read_field(what, item, key, f"; name its keys with {names}")

    def _check_words(self, output: Any, given: list[Span], input: Any) -> None:
        text = input.get(self.text_key) if isinstance(input, Mapping) else input
        if not isinstance(text, str):
            raise DataError(
                f"the input is {described(input)}, in which no words of spans can be found; leave text_key out"
            )
        for place, item in enumerate(output):
            what = f"predicted span {place}"
            words = self._field(what, item, str(self.text_key))
            start, end = item[self.start_key], item[self.end_key]
            if text[start:end] != words:
                raise DataError(
                    f"{what}: its words are {described(words)}, but the input has {described(text[start:end])} at "
                    f"{start}–{end}; offsets count characters, not bytes or UTF-16 units"
                )

    def _pairs(self, given: Sequence[Span], wanted: Sequence[Span]) -> Iterator[Pair]:
        """Each span once: in a pair, with how that is rated, or alone."""
        rate = _RATINGS[self.mode]
        for alike in _ROUNDS[self.mode == "type"]:
            found, given, wanted = _matched(given, wanted, alike)
            yield from (Pair(rate(one, other), one, other) for one, other in found)
        yield from (Pair("spurious", one, None) for one in given)
        yield from (Pair("missed", None, other) for other in wanted)


def _check_place(what: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise DataError(f"{what} is {described(value)}, not an integer of at least 0")


_TOKEN_TAG: Final = re.compile(r"(O)|([BIELSU])-(.+)")


def token_tags(value: Any) -> Sequence[str] | None:
    """The tags of tokens, such as `B-PER I-PER O`; None if these are none."""
    tags = value.split() if isinstance(value, str) else value
    is_list = isinstance(tags, list | tuple) and bool(tags)
    return tags if is_list and all(isinstance(tag, str) and _TOKEN_TAG.fullmatch(tag) for tag in tags) else None


def spans_of_tags(tags: Sequence[str]) -> list[Span]:
    """The spans that the tags of tokens mark, by the numbers of tokens.

    Example:
        >>> spans_of_tags(["B-PER", "I-PER", "O", "B-LOC"])
        [Span(start=0, end=2, tag='PER'), Span(start=3, end=4, tag='LOC')]
    """
    spans: list[Span] = []
    start, current = 0, None  # the tag of the open span
    for place, text in enumerate([*tags, "O"]):
        prefix, name = text[:1], text[2:] or None
        begins = name is not None and (prefix in "BSU" or name != current)
        if current is not None and (begins or name is None):
            spans.append(Span(start, place, current))
            current = None
        if begins:
            start, current = place, name
        if current is not None and prefix in "ELSU":
            spans.append(Span(start, place + 1, current))
            current = None
    return spans


def _check_lengths(output: Any, expected: Any) -> None:
    given, wanted = token_tags(output), token_tags(expected)
    if given is not None and wanted is not None and len(given) != len(wanted):
        raise DataError(f"the output has the tags of {len(given)} tokens, and {len(wanted)} are expected")


_CREDIT: Final = {"correct": 1, "partial": 0.5}
_SHOWN: Final = 20


_ROUNDS: Final[Mapping[bool, Sequence[Callable[[Span], Any]]]] = {
    False: (lambda span: span, lambda span: span[:2], lambda span: None),
    True: (lambda span: span.tag, lambda span: None),
}
"""Whether by type → what the spans of a pair have in common, round by round; the last pairs all that overlap."""

_RATINGS: Final[Mapping[str, Callable[[Span, Span], str]]] = {
    "strict": lambda one, other: "correct" if one == other else "incorrect",
    "exact": lambda one, other: "correct" if one[:2] == other[:2] else "incorrect",
    "partial": lambda one, other: "correct" if one[:2] == other[:2] else "partial",
    "type": lambda one, other: "correct" if one.tag == other.tag else "incorrect",
}
"""Mode → how a pair is rated."""


def _matched(
    given: Sequence[Span], wanted: Sequence[Span], alike: Callable[[Span], Any]
) -> tuple[list[tuple[Span, Span]], list[Span], list[Span]]:
    """The largest number of pairs of spans that overlap and are alike; then the remaining spans of each side."""
    groups: dict[Any, tuple[list[Span], list[Span]]] = {}
    for side, spans in enumerate((given, wanted)):
        for span in spans:
            groups.setdefault(alike(span), ([], []))[side].append(span)
    pairs, left = list[tuple[Span, Span]](), (list[Span](), list[Span]())
    for sides in groups.values():
        _sweep(sides, pairs, left)
    return sorted(pairs), sorted(left[0]), sorted(left[1])


def _sweep(
    sides: tuple[list[Span], list[Span]], pairs: list[tuple[Span, Span]], left: tuple[list[Span], list[Span]]
) -> None:
    """Adds the most pairs of overlapping spans of the two sides, each in order, and the spans without a partner.

    Of all spans that are left, the one that ends first is paired with the one that ends first of those it overlaps. No
    pairs are lost by that: in whatever pairs these two stand elsewhere, they can change partners, since their old
    partners end no earlier and so overlap each other.
    """
    free = [bytearray([True]) * len(spans) for spans in sides]
    begun: tuple[list[tuple[int, int]], ...] = ([], [])  # by their ends: the spans that start before the present end
    following = [0, 0]
    for end, side, place in sorted((span.end, i, k) for i in (0, 1) for k, span in enumerate(sides[i])):
        if not free[side][place]:
            continue
        free[side][place] = False
        other = 1 - side
        spans, heap = sides[other], begun[other]
        while following[other] < len(spans) and spans[following[other]].start < end:
            heappush(heap, (spans[following[other]].end, following[other]))
            following[other] += 1
        while heap and not free[other][heap[0][1]]:
            heappop(heap)
        if not heap:
            left[side].append(sides[side][place])
            continue
        partner = heappop(heap)[1]
        free[other][partner] = False
        pairs.append((sides[0][partner if side else place], sides[1][place if side else partner]))


def _score(pairs: Sequence[Pair]) -> Score:
    counts = Counter(pair.outcome for pair in pairs)
    expected, predicted = len(pairs) - counts["spurious"], len(pairs) - counts["missed"]
    credit = sum(_CREDIT.get(pair.outcome, 0) for pair in pairs)
    columns = {outcome: counts[outcome] for outcome in OUTCOMES} | {"n_expected": expected, "n_predicted": predicted}
    wrong = [str(pair) for pair in pairs if pair.outcome != "correct"]
    return Score(
        2 * credit / (expected + predicted) if pairs else 1.0,
        explanation="; ".join([*wrong[:_SHOWN], *["…"] * (len(wrong) > _SHOWN)]) or None,
        columns=columns | {"by_tag": _by_tag(pairs)},
    )


def _by_tag(pairs: Sequence[Pair]) -> dict[str, dict[str, float]]:
    """For each tag how many spans were expected and found, and how many predicted and right; half of each if partial.

    A pair counts as found for the tag that was expected and as right for the one predicted, so that recall is a share
    of the spans that have the tag and precision of those that were given it.
    """
    found: dict[str, dict[str, float]] = {}
    for outcome, given, wanted in pairs:
        for span, whole, part in ((wanted, "expected", "found"), (given, "predicted", "right")):
            if span is not None:
                tag = found.setdefault(span.tag, dict[str, float].fromkeys(TAG_COUNTS, 0))
                tag[whole] += 1
                tag[part] += _CREDIT.get(outcome, 0)
    return found


TAG_COUNTS: Final = ("expected", "found", "predicted", "right")


@dataclass(frozen=True, kw_only=True)
class HighlightCoverage(ExpectationScorer):
    """The F-beta of the places that highlights cover, from 0 to 1; precision and recall are separate columns.

    Output and expected are lists of highlights: pairs `[start, end]`, or objects with a start and an end, which is the
    first place after the highlight. A place counts once however many highlights cover it, so it is the same whether a
    passage is highlighted as a whole or in pieces.

    Where nothing is highlighted, precision is undefined, and where nothing is expected, recall: these columns are then
    empty, and the explanation says so. The value is still defined: 0 if only one side has highlights, and 1 if neither
    has. For a whole dataset read the counts, with the metrics `precision`, `recall` and `f_beta`.

    Abstains where nothing is expected (null) or answered.

    Attributes:
        beta: how much more recall counts than precision; 2 is twice as much, 0 gives the precision.
        start_key: the key of the start in a highlight that is an object.
        end_key: the key of its end.

    Raises:
        SpecError: beta is not a number of at least 0, or a key is not text.

    Example:
        >>> score = HighlightCoverage(beta=2).score([[3, 5]], [[4, 7]])
        >>> round(score.value, 4), score.columns["precision"], round(score.columns["recall"], 4)
        (0.3571, 0.5, 0.3333)
    """

    kind = "highlight_coverage"
    version = 1
    cheap = True
    ranges: ClassVar = dict.fromkeys(("value", "precision", "recall"), (0.0, 1.0))
    columns: ClassVar = dict.fromkeys(("precision", "recall"), "double") | dict.fromkeys(_COUNTS, "int64")

    beta: Annotated[float, Within(0)] = 1.0
    start_key: Text = "start"
    end_key: Text = "end"

    def grade(self, output: Any, truth: list[tuple[int, int]], *others: Any) -> Score:
        """Counts the places covered on each side and on both."""
        if output is None:
            return self.abstained("the answer is null", truth)
        given = self._covered("generated", output)
        n_given, n_wanted = _places(given), _places(truth)
        both = n_given + n_wanted - _places(_merged([*given, *truth]))
        weight = self.beta**2
        total = n_given + weight * n_wanted
        value = (1 + weight) * both / total if total else float(n_given == n_wanted)
        shares = {"precision": both / n_given if n_given else None, "recall": both / n_wanted if n_wanted else None}
        counts = (both, 0, n_wanted, n_given)
        why = _UNDEFINED.get((bool(n_given), bool(n_wanted)))
        return Score(value, explanation=why, columns=shares | dict(zip(_COUNTS, counts, strict=True)))

    def read_expected(self, expected: Any) -> list[tuple[int, int]]:
        return self._covered("expected", expected)

    def columns_of(self, truth: list[tuple[int, int]]) -> Mapping[str, Any]:
        return {"n_expected": _places(truth)}

    def _covered(self, what: str, highlights: Any) -> list[tuple[int, int]]:
        """The stretches that highlights cover, from left to right and apart."""
        if not isinstance(highlights, list | tuple):
            raise DataError(f"the {what} highlights are {described(highlights)}, not a list of highlights")
        return _merged(self._ends(f"{what} highlight {i}", one) for i, one in enumerate(highlights))

    def _ends(self, what: str, highlight: Any) -> tuple[int, int]:
        if isinstance(highlight, Mapping):
            remedy = "; name its keys with start_key and end_key"
            ends = tuple(read_field(what, highlight, key, remedy) for key in (self.start_key, self.end_key))
        elif isinstance(highlight, list | tuple) and len(highlight) == len(_ENDS):
            ends = tuple(highlight)
        else:
            raise DataError(f"{what} is {described(highlight)}, not a pair of start and end")
        for name, end in zip(_ENDS, ends, strict=True):
            _check_place(f"{what}: its {name}", end)
        if ends[1] < ends[0]:
            raise DataError(f"{what} ends at {ends[1]}, before it starts at {ends[0]}")
        return ends[0], ends[1]


_ENDS: Final = ("start", "end")
_UNDEFINED: Final = {
    (False, True): "nothing is highlighted, so there is no precision",
    (True, False): "nothing is expected to be highlighted, so there is no recall",
    (False, False): "nothing is highlighted, and nothing is expected to be",
}


def _places(stretches: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in stretches)


def _merged(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """All that stretches cover, from left to right and apart."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif end > start:
            found.append((start, end))
    return found
