"""The core of gates: a rule and the rows that it is about become one result.

A door (metrics, disparities, ratings) finds rows: one measured value or difference each, with its bounds and counts. It
knows which names a rule may use; `check` alone says whether a rule holds, and writes the sentence.

Opinions are refused before anything is compared unless they were measured, or the user allows others: a judge whose
agreement with people is unknown, or no better than chance, may pass anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evaluand.comparison.rule import ANYTIME, EQUAL, NOT_WORSE, Gate
from evaluand.core.errors import plural
from evaluand.core.files.json import none_if_nan

if TYPE_CHECKING:
    from evaluand.evaluation.standing import CorrectedMean, ScorerStanding

ALLOW: Final = "--allow-unmeasured-judges (in an experiment file: allow_unmeasured_judges: true)"


class Row(NamedTuple):
    """One number that a rule is about.

    Attributes:
        value: what was measured, or its difference from a baseline; NaN where it is undefined.
        low, high: its one-sided bounds at the level of the rule.
        end: the bound that decides, `low` or `high`; None where the value decides.
        key: which of several rows it is, as the beginning of its data; its `target` stands directly before the number.
        facts: further data, of which those in `more` follow the bound; None for a row that is not reported as data.
            A `difference` among them is the value.
        lead: the beginning of the sentence.
        note: what stands directly behind the number.
        counts: what the number rests on, as the end of the sentence.
        sign: how the number is signed, `+` for differences.
        is_exact: the level of the bound is not approximate.
        is_bounded: the values have a known range; without one no level of a bound is guaranteed.
        is_rounded: the number was subtracted, whose rounding must not decide.
        is_same: a difference between two evaluations that are the same.
        has_gaps: more than one row in twenty has no score and is left out, which nobody asked for.
        missing: the whole sentence where there is nothing to compare.
        reason: why the number is undefined, if it is.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    end: str | None = None
    key: Mapping[str, Any] = {}
    facts: Mapping[str, Any] | None = {}
    more: Mapping[str, Any] = {}
    lead: str = ""
    note: str = ""
    counts: str = ""
    sign: str = ""
    is_exact: bool = False
    is_bounded: bool = True
    is_rounded: bool = False
    is_same: bool = False
    has_gaps: bool = False
    missing: str = ""
    reason: str = ""

    @property
    def number(self) -> float:
        """What decides."""
        return self.value if self.end is None else self.low if self.end == "low" else self.high


@dataclass(frozen=True, repr=False)
class GateResult:
    """The result of checking one gate for one evaluation.

    Attributes:
        subject: the label of the evaluation.
        message: the number that decided, with its counts, or why there is none.
        facts: the same as data.
        is_decided: whether there was a number to compare; a gate without one has not passed.
    """

    gate: Gate
    subject: str
    passed: bool
    message: str
    facts: Mapping[str, Any]
    is_decided: bool = True

    @classmethod
    def undecided(cls, gate: Gate, subject: str, message: str, **facts: Any) -> GateResult:
        """The result where there is no number to compare."""
        return cls(gate, subject, False, message, {"values": [], **facts}, is_decided=False)

    @property
    def result(self) -> str:
        """`passed`, `failed` or `undecided`."""
        return "passed" if self.passed else "failed" if self.is_decided else "undecided"

    def __str__(self) -> str:
        """One line: whether the gate holds, and the number that decided."""
        result = self.result if self.passed else self.result.upper()
        return f"{result}  {self.gate.text}  {self.subject}: {self.message}"

    def __repr__(self) -> str:
        return f"<{self}>"


class Outcome(NamedTuple):
    """Whether a rule holds for one row, with the sentence and the data."""

    passed: bool
    message: str
    facts: Mapping[str, Any] | None
    is_decided: bool = True


def check(gate: Gate, row: Row) -> Outcome:
    """Whether a rule holds for a row.

    Example:
        >>> gate = Gate.parse("accuracy >= 0.8 at 95%")
        >>> row = Row(0.9, 0.82, 0.95, gate.end, counts="100 rows: 100 scored")
        >>> check(gate, row).message
        'lower 95% bound about 0.82; 100 rows: 100 scored'
        >>> check(gate, row).facts
        {'value': 0.9, 'low': 0.82, 'high': 0.95, 'bound': 0.82, 'side': 'lower'}
        >>> check(Gate.parse("accuracy >= 0.8"), Row(reason="no rows are scored")).message
        'undefined: no rows are scored'
    """
    number, facts, target = row.number, row.facts, row.key.get("target")
    is_difference = "difference" in (facts or {})
    if facts is not None:
        measured = {} if is_difference or row.missing else {"value": row.value, "low": row.low, "high": row.high}
        decisive = {"bound": number, "side": _SIDES[row.end]} if row.end else {}
        facts = {**row.key, **measured, **facts, **decisive, **row.more}
        facts = {name: none_if_nan(fact) for name, fact in facts.items()}
    if row.missing:
        return Outcome(False, row.missing, facts, is_decided=False)
    if row.is_same:
        unchanged = _join("unchanged: both sides are the same evaluation of the same task", row.counts)
        return Outcome(gate.relation in (NOT_WORSE, EQUAL), unchanged, facts)
    if math.isnan(number):
        return Outcome(False, _join(f"undefined: {row.reason}", row.counts), facts, is_decided=False)
    passed = gate.holds(round(number, 12) if row.is_rounded else number, row.end)
    bound, unsure = "", ""
    label = "" if target is None or is_difference else f"({target}) "
    if row.end is not None:
        anytime = f"{ANYTIME} " if row.more.get(ANYTIME) else ""
        about = "" if row.is_exact else "about "
        bound = f"{_SIDES[row.end]} {100 * (gate.level or 0):g}% {anytime}bound {about}"
        unsure = "" if row.is_bounded else _UNSURE
    message = _join(f"{row.lead}{bound}{label}{number:{row.sign}.4g}{row.note}{unsure}", row.counts)
    if passed and row.has_gaps:
        return Outcome(False, f"{_UNSCORED}; {message}", facts, is_decided=False)
    return Outcome(passed, message, facts)


_UNSURE: Final = " (without a range of values its level is not guaranteed)"
_SIDES: Final = {"low": "lower", "high": "upper"}
_UNSCORED: Final = (
    "undecided: too many rows have no score; score them, or declare how they count, `missing: wrong` or `missing:"
    " leave_out` (--missing of score and compare)"
)


def _join(*sentences: str) -> str:
    return "; ".join(filter(None, sentences))


def decide(
    gate: Gate,
    subject: str,
    find_rows: Callable[[], Iterable[Row]],
    standings: Sequence[ScorerStanding] = (),
    *,
    allowed: bool = False,
    correct: Callable[[ScorerStanding], CorrectedMean | None] = lambda standing: None,
    **facts: Any,
) -> GateResult:
    """The result of a gate: it holds if it holds for every row.

    Args:
        subject: whom the gate is about.
        find_rows: finds the rows; not called for opinions that are refused.
        standings: of those whose opinions the rows are; none for other scorers.
        allowed: whether opinions count that were not measured.
        correct: corrects the mean that the gate is about for the errors of who was measured.
        facts: further data of the result.
    """
    judges = [_describe(standing, allowed) for standing in standings]
    lacking = [standing for standing in standings if standing.status != "measured"]
    if lacking and not allowed:
        why = "; ".join(f"judge {judge.name!r} is {judge.finding}; {judge.remedy}" for judge in lacking[:_SHOWN])
        why += f"; and {plural(len(lacking) - _SHOWN, 'more judge')}" if len(lacking) > _SHOWN else ""
        return GateResult.undecided(gate, subject, f"refused: {why}, or allow it with {ALLOW}", judges=judges)
    outcomes = [check(gate, row) for row in find_rows()] or [check(gate, Row(missing="no rows"))]
    passed = all(outcome.passed for outcome in outcomes)
    is_decided = passed or any(outcome.is_decided and not outcome.passed for outcome in outcomes)
    words = [outcome.message for outcome in outcomes if outcome.passed == passed]
    for standing, described in zip(standings, judges, strict=True):
        if standing.status != "measured":
            words.append(f"judge {standing.name!r} is {standing.finding}, which was allowed")
            continue
        words.append(f"judge {standing.name!r}: {standing.finding}")
        if (mean := correct(standing)) is not None and not math.isnan(mean.corrected.value):
            words.append(_correction_text(gate, passed, mean))
            described["corrected"] = {name: getattr(mean.corrected, name) for name in ("value", "low", "high")}
    facts["values"] = [outcome.facts for outcome in outcomes if outcome.facts is not None]
    return GateResult(
        gate, subject, passed, "; ".join(words), facts | ({"judges": judges} if judges else {}), is_decided
    )


_SHOWN: Final = 3


def _describe(standing: ScorerStanding, allowed: bool) -> dict[str, Any]:
    return {
        "judge": standing.name,
        "digest": standing.digest,
        "status": standing.status,
        "card": standing.card_id,
        "finding": standing.finding,
        "allowed": allowed and standing.status != "measured",
    }


def _correction_text(gate: Gate, passed: bool, mean: CorrectedMean) -> str:
    """A corrected mean, and whether a rule that is fulfilled would fail for it."""
    corrected = mean.corrected
    text = f"corrected for its errors {corrected.value:.3g} [{corrected.low:.3g}, {corrected.high:.3g}]{mean.overlap}"
    if not mean.is_mean:  # the share of right answers is then another number than the gate compares
        return f"{mean.raw.value:.4g} judged right, {text}"
    number = getattr(corrected if gate.level is None else mean.at(2 * gate.level - 1), gate.end or "value")
    if not passed or math.isnan(number) or gate.holds(number):
        return text
    side = "" if gate.level is None else f" with its {100 * gate.level:g}% bound {number:.3g}"
    return f"{text}, which would fail this rule{side}"


def refuse_anytime(gate: Gate, what: str) -> None:
    """Refuses `anytime` of a number that has no such bound.

    Raises:
        SpecError: the rule has it.

    Example:
        >>> refuse_anytime(Gate.parse("rating(mine) better than base anytime"), "rating")
        Traceback (most recent call last):
        evaluand.SpecError: gate '...': bounds for repeated looks (`anytime`, --until) exist for ..., not for rating
    """
    if gate.anytime:
        raise gate.fault(
            f"bounds for repeated looks (`{ANYTIME}`, --until) exist for means of one number per row, not for {what}"
        )


def check_threshold(gate: Gate, what: str, low: float, high: float) -> None:
    """Refuses a threshold that a number never has.

    Args:
        what: the number, for the message.
        low, high: its range.

    Raises:
        SpecError: the threshold lies outside, or is in percent where the number is no share.

    Example:
        >>> check_threshold(Gate.parse("accuracy >= 90"), "accuracy", 0, 1)
        Traceback (most recent call last):
        evaluand.SpecError: gate 'accuracy >= 90': accuracy lies between 0 and 1, never at 90; write 90 % or 0.9
    """
    is_share = (low, high) == (0, 1)
    if gate.in_percent and not is_share:
        raise gate.fault(f"{what} is no share from 0 to 1; write the threshold without %")
    if low <= gate.number <= high:
        return
    if gate.in_percent:
        raise gate.fault(f"{what} lies between 0 % and 100 %, never at {100 * gate.number:g} %")
    # a smaller number is no percentage that anyone means
    hint = f"; write {gate.number:g} % or {gate.number / 100:g}" if is_share and 2 <= gate.number <= 100 else ""
    raise gate.fault(f"{what} lies between {low:g} and {high:g}, never at {gate.number:g}{hint}")


def check_distance(gate: Gate, what: str, most: float, *, is_share: bool) -> None:
    """Refuses a difference that two numbers never have.

    Args:
        what: both numbers, for the message.
        most: the largest difference there is.
        is_share: whether they are shares, so that a larger number may be meant in percent.
    """
    number = abs(gate.number)
    if number > most:
        hint = f"; did you mean {number / 100:g}?" if is_share and number <= 100 else ""
        raise gate.fault(f"{what} differ by at most {most:g}, never by {number:g}{hint}")
