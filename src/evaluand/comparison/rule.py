"""Gates as text: the rules, and the parser that reads them; see `gates` for what they mean."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, NoReturn, get_args

from evaluand.core.errors import SpecError
from evaluand.metrics.names import is_name
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

    @property
    def end(self) -> Literal["low", "high"] | None:
        """The bound that a threshold is compared with; None where it is the value itself."""
        return None if self.level is None else "low" if self.relation in (">=", ">") else "high"

    @property
    def is_of_matches(self) -> bool:
        """Whether it is about matches, in an experiment that has matches; otherwise a metric may have this name."""
        return self.metric in MATCH_GATES

    def holds(self, number: float, end: str | None = None) -> bool:
        """Whether a number, or the bound of a difference at one end, fulfils the rule.

        Example:
            >>> gate = Gate.parse("accuracy not worse than base by 0.02")
            >>> gate.holds(-0.01, "low"), gate.holds(-0.03, "low")
            (True, False)
        """
        if self.relation in RELATIONS:
            return RELATIONS[self.relation](number, self.number)
        return number > -self.number if end == "low" else number < self.number

    def fault(self, message: str) -> SpecError:
        """The error that something is wrong with the rule."""
        return SpecError(f"gate {self.text!r}: {message}")

    def at_any_time(self) -> Gate:
        """The same rule for repeated looks; a rule without a level, or on a disparity, stays as it is.

        Example:
            >>> Gate.parse("accuracy better than base").at_any_time().text
            'accuracy better than base anytime'
        """
        if self.anytime or self.level is None or self.disparity is not None or self.is_of_matches:
            return self
        return Gate.parse(f"{self.text} {ANYTIME}")


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
    while rest := text[position:].lstrip():
        start = len(text) - len(rest)
        found = _TOKEN.match(text, position)
        if found is None:
            raise SpecError(f"gate {text!r}: at {start + 1}: the quotation has no end")
        kind = found.lastgroup or ""
        word = _SIGNS.get(found[kind], found[kind]) if kind == "sign" else found[kind]
        yield _Token("quoted" if kind in ("double", "single") else kind, word, start + 1)
        position = found.end()
    yield _Token("end", "", len(text.rstrip()) + 1)


class _Parser:
    """Reads a gate from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_split_tokens(text))

    def gate(self) -> Gate:
        metric = self._read_name("a metric")
        parts: dict[str, Any] = {"text": self.text, "metric": metric}
        if is_wins := self._accept("wins"):  # `B wins against A >= 55%` is `win_rate(B, A) >= 0.55`
            against = ((AGAINST, self._read_name("the name of a system")),) if self._accept(AGAINST) else ()
            parts |= {"metric": WIN_RATE, "scorer": metric, "parameters": against}
        else:
            parts["scorer"], parts["parameters"] = self._read_scorer(metric)
            parts["where"] = tuple((self._read_name("an attribute"), self._read_value()) for _ in self._list("[", "]"))
            if self.tokens[0].kind == "word" and self.tokens[0].text in get_args(Kind):
                parts |= self._read_disparity(parts)
        if self.tokens[0].text in RELATIONS and (is_wins or self.tokens[0].kind == "sign"):
            parts["relation"] = self._advance().text
            if is_wins:
                parts["number"] = self._read_number("a share of wins, such as 55%")
            else:
                parts |= self._read_threshold(has_baseline="disparity" not in parts)
            if parts.get("baseline") is None and self._accept("%"):  # of a baseline it could mean percent of that
                parts |= {"number": float(f"{parts['number'] / 100:.15g}"), "in_percent": True}
        elif is_wins:
            self._fail(f"{'' if parts['parameters'] else f'`{AGAINST}`, '}{', '.join(RELATIONS)}")
        else:
            parts |= self._read_comparison()
        if self._accept("at"):
            if parts["relation"] in RELATIONS and parts.get("baseline") is not None:
                self._refuse(
                    "a difference from a baseline that allows for chance is written as"
                    f" `{metric} not worse than {parts['baseline']} by {abs(parts['number']):g} at 95%`"
                )
            parts["level"] = self._read_level()
        if "level" in parts and "disparity" not in parts and self._accept(ANYTIME):
            parts["anytime"] = True
        if self.tokens[0].text == "%" and "number" in parts and "in_percent" not in parts:
            number = parts["number"]
            self._refuse(
                f"a difference is in the units of {metric}, without %; of shares, write {number / 100:g} for"
                f" {number:g} percentage points",
                self.tokens[0],
            )
        if self.tokens[0].kind != "end":
            self._fail("`at …%` or the end" if "level" not in parts else "the end")
        return Gate(**parts)

    def _read_comparison(self) -> dict[str, Any]:
        """Reads `better than base`, `not worse than base by 0.02` or `equal to base within 0.02`."""
        relation = next((each for each in (BETTER, NOT_WORSE, EQUAL) if self._accept(each.split()[0])), None)
        if relation is None:
            self._fail(f"{', '.join(RELATIONS)}, `better than`, `not worse than` or `equal to`")
        for word in relation.split()[1:]:
            self._expect(word)
        parts = {"relation": relation, "baseline": self._read_name("the name of a baseline"), "level": LEVEL}
        if relation == NOT_WORSE:
            parts["number"] = self._read_margin("the margin by which it may be worse") if self._accept("by") else 0.0
        if relation == EQUAL:
            self._expect("within")
            parts["number"] = self._read_margin("the margin within which both are equal", positive=True)
        return parts

    def _read_threshold(self, has_baseline: bool) -> dict[str, Any]:
        """Reads a number, or a baseline with a difference: `baseline`, `baseline - 0.02`, `"my run" + 0.01`."""
        token = self.tokens[0]
        what = "a number or a baseline" if has_baseline else "a number"
        if not has_baseline or token.kind not in ("word", "quoted") or _number(token.text) is not None:
            return {"number": self._read_number(what)}
        if together := re.fullmatch(rf"({BASELINE})([+-][\d.]+)", token.text):
            self._advance()
            return {"baseline": together[1], "number": float(together[2])}
        name, sign = self._read_name(what), self.tokens[0].text
        if self.tokens[0].kind == "word" and re.fullmatch(r"[+-][\d.]+", sign):
            return {"baseline": name, "number": self._read_number("a difference")}
        if not any(map(self._accept, "+-−")):
            return {"baseline": name}
        number = self._read_number("a difference, such as 0.02")
        return {"baseline": name, "number": number if sign == "+" else -number}

    def _read_disparity(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """Reads `difference by sex, site from female, north given age`; tables write a colon after the
        metric, which is accepted.
        """
        if before["where"]:
            self._refuse("a disparity compares all groups; leave out the group in []")
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
        scorer: str | None = None
        parameters: list[tuple[str, str]] = []
        for _ in self._list("(", ")"):
            name = self._read_name("a parameter" if scorer or parameters else "the name of a scorer")
            if metric == WIN_RATE and scorer and not parameters and self.tokens[0].text != "=":
                parameters.append((AGAINST, name))
            elif scorer and not parameters and self.tokens[0].text in (",", ")") and not is_name(metric):
                rule = f"{WIN_RATE}({quote_word(scorer)}, {quote_word(name)})"
                self._refuse(f"no metric of two systems is called {metric!r}; did you mean `{rule}`?")
            elif scorer or parameters or self.tokens[0].text == "=":
                parameters.append((name, self._read_value()))
            else:
                scorer = name
        return scorer, tuple(parameters)

    def _list(self, opening: str, closing: str) -> Iterator[None]:
        """Comes to each entry of a list in brackets, if there is one."""
        mark = opening
        while self._accept(mark):
            yield
            mark = ","
        if mark == ",":
            self._expect(closing)

    def _read_value(self) -> str:
        self._expect("=")
        return self._read_name("its value")

    def _read_margin(self, what: str, *, positive: bool = False) -> float:
        token = self.tokens[0]
        number = self._read_number(what)
        if number < 0 or (positive and number == 0):
            must = "must be above 0: no data show that two are exactly equal" if positive else "must not be negative"
            self._refuse(f"the margin {must}", token)
        return number

    def _read_level(self) -> float:
        token = self.tokens[0]
        percent = self._read_number("a level such as 95%")
        self._expect("%")
        if not 50 < percent < 100:
            self._refuse("the level must lie between 50% and 100%", token)
        return percent / 100

    def _read_number(self, what: str) -> float:
        number = _number(self.tokens[0].text) if self.tokens[0].kind == "word" else None
        if number is None or not math.isfinite(number):
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
        self._refuse(f"found {found}, expected {what}", token)

    def _refuse(self, message: str, token: _Token | None = None) -> NoReturn:
        where = "" if token is None else f"at {token.position}: "
        raise SpecError(f"gate {self.text!r}: {where}{message}")


def _number(text: str) -> float | None:
    """The number that a text is."""
    try:
        return float(text)
    except ValueError:
        return None
