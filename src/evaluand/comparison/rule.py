"""Gates as text: the rules, and the parser that reads them; see `gates` for what they mean."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn, get_args

from evaluand.core.errors import SpecError
from evaluand.metrics.stats.disparity import Kind

BASELINE: Final = "baseline"
BETTER: Final = "better than"
NOT_WORSE: Final = "not worse than"
EQUAL: Final = "equal to"
LEVEL: Final = 0.95
ANYTIME: Final = "anytime"
WIN_RATE: Final = "win_rate"
AGAINST: Final = "against"
"""The parameter of `win_rate` that names the opponent; `win_rate(mine, base)` is `win_rate(mine, against=base)`."""
MATCH_GATES: Final = (WIN_RATE, "rating", "position_bias", "inconsistency")
"""The numbers of ratings that gates can check."""

RELATIONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True)
class Gate:
    """One rule.

    Attributes:
        text: the rule as it was written.
        metric: the kind of the metric, its name in the problem, or for a disparity a criterion of fairness.
        scorer: the name of the scorer, or of the system of a win rate or rating; None if there is only one.
        where: attribute → value: only this group.
        parameters: name → value: selects one of several metrics of a kind.
        relation: `>=`, `<=`, `>`, `<`, `better than`, `not worse than` or `equal to`.
        number: the threshold, or the margin by which it may be worse, or within which it must be equal; with a sign of
            relation and a baseline, the difference from the baseline that is the threshold. A threshold in percent is a
            share: 0.9 for `90 %`.
        baseline: the name of the evaluation to compare with.
        level: the confidence level of the bound; None checks the value itself.
        disparity: the kind of disparity that is checked in position of the value; see `disparity.Kind`.
        by: the attributes that define the groups of the disparity.
        reference: the values of the group to which others are compared; empty where all pairs are.
        other: the values of the only group that is compared with the reference.
        given: attributes over whose values the disparity is standardised.
        anytime: the bound holds at all looks together, see `metrics.stats.anytime`.
    """

    text: str
    metric: str
    relation: str
    number: float = 0.0
    baseline: str | None = None
    level: float | None = None
    scorer: str | None = None
    where: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    disparity: str | None = None
    by: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    in_percent: bool = False
    anytime: bool = False

    @property
    def limit(self) -> str:
        """What the number must be.

        Example:
            >>> [Gate.parse(text).limit for text in ("accuracy >= 90 %", "accuracy not worse than base by 0.02")]
            ['>= 0.9', 'not worse than base by 0.02']
            >>> Gate.parse("accuracy < 0.99999995").limit
            '< 0.99999995'
        """
        if self.baseline is None:
            return f"{self.relation} {self.number:.15g}"
        if self.relation == EQUAL:
            return f"{EQUAL} {self.baseline} within {self.number:.15g}"
        if " than" in self.relation:
            margin = f" by {self.number:.15g}" if self.number else ""
            return f"{self.relation} {self.baseline}{margin}"
        return f"{self.relation} {self.baseline} {self.number:+.15g}"

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Reads a gate from text.

        Raises:
            SpecError: the text is no gate; the message names the position and what is expected there.

        Example:
            >>> gate = Gate.parse("accuracy(answer)[topic=algebra] not worse than base by 0.02 at 95%")
            >>> gate.scorer, gate.where, gate.relation, gate.baseline, gate.number, gate.level
            ('answer', (('topic', 'algebra'),), 'not worse than', 'base', 0.02, 0.95)
            >>> Gate.parse("B wins against A >= 55 %").metric, Gate.parse("win_rate(B, A) >= 0.55").number
            ('win_rate', 0.55)
            >>> Gate.parse("f1 difference by sex equal to base within 0.05").limit
            'equal to base within 0.05'
            >>> Gate.parse("accuracy => 0.9")
            Traceback (most recent call last):
            evaluand.SpecError: gate 'accuracy => 0.9': at 10: found '=', expected >=, <=, >, <, ...
        """
        return _Parser(text).gate()

    def at_any_time(self) -> Gate:
        """The same rule for repeated looks; a rule without a level, or on a disparity, stays as it is.

        Example:
            >>> Gate.parse("accuracy better than base").at_any_time().text
            'accuracy better than base anytime'
        """
        if self.anytime or self.level is None or self.disparity is not None or self.metric in MATCH_GATES:
            return self
        return Gate.parse(f"{self.text} {ANYTIME}")


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
        raise SpecError(f"gate {gate.text!r}: {what} is no share from 0 to 1; write the threshold without %")
    if low <= gate.number <= high:
        return
    if gate.in_percent:
        outside = f"between 0 % and 100 %, never at {100 * gate.number:g} %"
    else:
        outside = f"between {low:g} and {high:g}, never at {gate.number:g}"
        if is_share and 2 <= gate.number <= 100:  # a smaller number is no percentage that anyone means
            outside += f"; write {gate.number:g} % or {gate.number / 100:g}"
    raise SpecError(f"gate {gate.text!r}: {what} lies {outside}")


def quote_word(word: str) -> str:
    """A name as a gate spells it: quoted if it has blanks or signs."""
    return word if re.fullmatch(r"""[^\s<>()\[\]=,%"']+|".*\"""", word) else f'"{word}"'


class _Token(NamedTuple):
    kind: str  # word, quoted, sign, end
    text: str
    position: int  # in the gate's text, from 1


_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>>=|<=|[<>≥≤()\[\]=,%])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s<>≥≤()\[\]=,%"']+))"""
)


_SIGNS: Final = {"≥": ">=", "≤": "<="}


def _split_tokens(text: str) -> Iterator[_Token]:
    position = 0
    while text[position:].strip():
        found = _TOKEN.match(text, position)
        if found is None:
            start = len(text) - len(text[position:].lstrip())
            raise SpecError(f"gate {text!r}: at {start + 1}: the quotation has no end")
        kind = found.lastgroup or ""
        text_ = _SIGNS.get(found[kind], found[kind]) if kind == "sign" else found[kind]
        yield _Token("quoted" if kind in ("double", "single") else kind, text_, _text_start(found, kind) + 1)
        position = found.end()
    yield _Token("end", "", len(text.rstrip()) + 1)


def _text_start(found: re.Match[str], kind: str) -> int:
    return found.start(kind) - (kind in ("double", "single"))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Parser:
    """Reads a gate from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_split_tokens(text))

    def gate(self) -> Gate:
        metric = self._read_name("a metric")
        if self._accept("wins"):
            return self._read_wins(metric)
        scorer, parameters = self._read_scorer(metric)
        parts: dict[str, Any] = {"text": self.text, "metric": metric, "scorer": scorer, "parameters": parameters}
        parts["where"] = tuple(self._read_where())
        if self.tokens[0].kind == "word" and self.tokens[0].text in get_args(Kind):
            parts |= self._read_disparity(parts)
        if self.tokens[0].text in RELATIONS and self.tokens[0].kind == "sign":
            parts |= {"relation": self._advance().text, **self._read_threshold(has_baseline="disparity" not in parts)}
            parts |= self._read_percent(parts)
        elif self._accept("better"):
            self._expect("than")
            parts |= {"relation": BETTER, "baseline": self._read_name("the name of a baseline"), "level": LEVEL}
        elif self._accept("not"):
            self._expect("worse")
            self._expect("than")
            parts |= {"relation": NOT_WORSE, "baseline": self._read_name("the name of a baseline"), "level": LEVEL}
            parts["number"] = self._read_margin() if self._accept("by") else 0.0
        elif self._accept("equal"):
            self._expect("to")
            parts |= {"relation": EQUAL, "baseline": self._read_name("the name of a baseline"), "level": LEVEL}
            self._expect("within")
            parts["number"] = self._read_margin("the margin within which both are equal", positive=True)
        elif "disparity" in parts:
            self._fail(f"{', '.join(RELATIONS)}, `better than`, `not worse than` or `equal to`")
        else:
            self._fail(">=, <=, >, <, `better than`, `not worse than` or `equal to`")
        if self._accept("at"):
            if parts["relation"] in RELATIONS and parts.get("baseline") is not None:
                raise SpecError(
                    f"gate {self.text!r}: a difference from a baseline that allows for chance is written as "
                    f"`{metric} not worse than {parts['baseline']} by {abs(parts['number']):g} at 95%`"
                )
            parts["level"] = self._read_level()
        if "level" in parts and "disparity" not in parts and self._accept(ANYTIME):
            parts["anytime"] = True
        if self.tokens[0].text == "%" and "number" in parts:
            place = self.tokens[0].position
            raise SpecError(
                f"gate {self.text!r}: at {place}: a difference is in the units of {metric}, without %; of shares,"
                f" write {parts['number'] / 100:g} for {parts['number']:g} percentage points"
            )
        if self.tokens[0].kind != "end":
            self._fail("`at …%` or the end" if "level" not in parts else "the end")
        return Gate(**parts)

    def _read_wins(self, system: str) -> Gate:
        """Reads `B wins against A >= 55% at 95%`, which is `win_rate(B, A) >= 0.55 at 95%`."""
        against = ((AGAINST, self._read_name("the name of a system")),) if self._accept(AGAINST) else ()
        if self.tokens[0].text not in RELATIONS:
            self._fail(f"{'' if against else f'`{AGAINST}`, '}{', '.join(RELATIONS)}")
        parts: dict[str, Any] = {"text": self.text, "metric": WIN_RATE, "scorer": system, "parameters": against}
        parts |= {"relation": self._advance().text, "number": self._read_number("a share of wins, such as 55%")}
        parts |= self._read_percent(parts)
        level = self._read_level() if self._accept("at") else None
        if self.tokens[0].kind != "end":
            self._fail("`at …%` or the end" if level is None else "the end")
        return Gate(**parts, level=level)

    def _read_percent(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Reads the percent sign of a threshold; that of a margin could mean percent of the baseline."""
        if parts.get("baseline") is not None or not self._accept("%"):
            return {}
        return {"number": float(f"{parts['number'] / 100:.15g}"), "in_percent": True}

    def _read_threshold(self, has_baseline: bool) -> dict[str, Any]:
        """Reads a number, or a baseline with a difference: `baseline`, `baseline - 0.02`, `"my run" + 0.01`."""
        token = self.tokens[0]
        if not has_baseline or token.kind not in ("word", "quoted") or _is_number(token.text):
            return {"number": self._read_number("a number" if not has_baseline else "a number or a baseline")}
        together = re.fullmatch(rf"({BASELINE})([+-][\d.]+)", token.text)
        if together:
            self._advance()
            return {"baseline": together[1], "number": float(together[2])}
        name, sign = self._read_name("a number or a baseline"), self.tokens[0].text
        if self.tokens[0].kind == "word" and re.fullmatch(r"[+-][\d.]+", sign):
            return {"baseline": name, "number": self._read_number("a difference")}
        if not (self._accept("+") or self._accept("-") or self._accept("−")):
            return {"baseline": name}
        number = self._read_number("a difference, such as 0.02")
        return {"baseline": name, "number": number if sign == "+" else -number}

    def _read_disparity(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """Reads `difference by sex, site from female, north given age`; tables write a colon after the
        metric, which is accepted.
        """
        if before["where"]:
            raise SpecError(f"gate {self.text!r}: a disparity compares all groups; leave out the group in []")
        kind = self._advance().text
        self._expect("by")
        parts: dict[str, Any] = {"metric": before["metric"].removesuffix(":"), "disparity": kind}
        parts["by"] = self._read_names("an attribute")
        if kind in ("difference", "ratio") and self._accept("from"):
            parts["reference"] = self._read_names("the value of the reference group", len(parts["by"]))
            parts["other"] = self._read_names("the value of a group", len(parts["by"])) if self._accept("to") else ()
        if self._accept("given"):
            parts["given"] = self._read_names("an attribute")
        return parts

    def _read_names(self, what: str, n: int | None = None) -> tuple[str, ...]:
        """Reads names with commas between them; as many as there are attributes, if a number is given."""
        names = [self._read_name(what)]
        while self._accept(",") or (n is not None and len(names) < n):
            names.append(self._read_name(what))
        return tuple(names)

    def _read_scorer(self, metric: str) -> tuple[str | None, tuple[tuple[str, str], ...]]:
        """Reads the parentheses: the scorer, the parameters, or both."""
        if not self._accept("("):
            return None, ()
        scorer: str | None = None
        parameters: list[tuple[str, str]] = []
        while True:
            name = self._read_name("a parameter" if scorer or parameters else "the name of a scorer")
            if metric == WIN_RATE and scorer and not parameters and self.tokens[0].text != "=":
                parameters.append((AGAINST, name))
            elif scorer or parameters or self.tokens[0].text == "=":
                self._expect("=")
                parameters.append((name, self._read_name("its value")))
            else:
                scorer = name
            if not self._accept(","):
                break
        self._expect(")")
        return scorer, tuple(parameters)

    def _read_where(self) -> Iterator[tuple[str, str]]:
        if not self._accept("["):
            return
        while True:
            name = self._read_name("an attribute")
            self._expect("=")
            yield name, self._read_name("its value")
            if not self._accept(","):
                break
        self._expect("]")

    def _read_margin(self, what: str = "the margin by which it may be worse", *, positive: bool = False) -> float:
        token = self.tokens[0]
        number = self._read_number(what)
        if number < 0 or (positive and number == 0):
            must = "must be above 0: no data show that two are exactly equal" if positive else "must not be negative"
            raise SpecError(f"gate {self.text!r}: at {token.position}: the margin {must}")
        return number

    def _read_level(self) -> float:
        token = self.tokens[0]
        percent = self._read_number("a level such as 95%")
        self._expect("%")
        if not 50 < percent < 100:
            raise SpecError(f"gate {self.text!r}: at {token.position}: the level must lie between 50% and 100%")
        return percent / 100

    def _read_number(self, what: str) -> float:
        try:
            number = float(self.tokens[0].text) if self.tokens[0].kind == "word" else math.nan
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self._fail(what)
        self._advance()
        return number

    def _read_name(self, what: str) -> str:
        if self.tokens[0].kind not in ("word", "quoted"):
            self._fail(what)
        return self._advance().text

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._fail(f"`{text}`")

    def _accept(self, text: str) -> bool:
        if self.tokens[0].kind in ("word", "sign") and self.tokens[0].text == text:
            self._advance()
            return True
        return False

    def _advance(self) -> _Token:
        return self.tokens.pop(0)

    def _fail(self, what: str) -> NoReturn:
        token = self.tokens[0]
        found = repr(token.text) if token.kind != "end" else "the end"
        raise SpecError(f"gate {self.text!r}: at {token.position}: found {found}, expected {what}")
