r"""Numbers as people and models write them: plain, in LaTeX, with units, a currency, a percent sign, or a word of size.

A text is divided at its words into clauses; the clause with the number is read by one small grammar, and nothing of it
may be left over: `5x`, `3 + 4`, `x > 5`, `7 or 8` are no numbers. Values are exact: ratios times square roots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation, Overflow
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from evaluand.evaluation.final_answer import Unreadable
from evaluand.evaluation.scorer import ARITHMETIC

_ONE: Final = Decimal(1)
_EXACT: Final = Context(prec=2000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, Overflow])


class Number(NamedTuple):
    """The number `over` / `under` · √`root`; `under` and `root` are positive.

    Example:
        >>> Number(Decimal(5), root=Decimal(3)) .equals(Number(Decimal(15)).divided_by(Number(_ONE, root=Decimal(3))))
        True
    """

    over: Decimal
    under: Decimal = _ONE
    root: Decimal = _ONE

    def times(self, other: Number) -> Number:
        """The product."""
        return Number(*(_EXACT.multiply(a, b) for a, b in zip(self, other, strict=True)))

    def divided_by(self, other: Number) -> Number:
        """The quotient; Unreadable if the other is 0."""
        if not other.over:
            raise Unreadable("a division by 0")
        upside_down = Number(other.under.copy_sign(other.over), _EXACT.multiply(other.over.copy_abs(), other.root))
        return self.times(upside_down._replace(root=other.root))

    def power(self, exponent: int) -> Number:
        """A power of a number without root."""
        raised = Number(_EXACT.power(self.over, abs(exponent)), _EXACT.power(self.under, abs(exponent)))
        return raised if exponent >= 0 else Number(_ONE).divided_by(raised)

    def equals(self, other: Number) -> bool:
        """Whether both are the same number, exactly."""
        if self[1:] == other[1:]:
            return self.over == other.over
        if self.over.is_signed() != other.over.is_signed():
            return not self.over and not other.over
        mine, theirs = self.times(self), other.times(other)  # of which the roots are squares
        left = _EXACT.multiply(_EXACT.multiply(mine.over, self.root), theirs.under)
        return left == _EXACT.multiply(_EXACT.multiply(theirs.over, other.root), mine.under)

    @property
    def latex(self) -> str:
        """It in LaTeX; Unreadable if it has too many digits."""
        if any(abs(part.adjusted()) > _LONGEST for part in self if part):
            raise Unreadable("too many digits")
        over, under, root = (f"{part:f}" for part in self)
        return rf"\frac{{{over}}}{{{under}}}" + (rf"\cdot\sqrt{{{root}}}" if self.root != 1 else "")

    @property
    def decimal(self) -> Decimal:
        """Its first thousand digits."""
        if self.root != 1:
            return ARITHMETIC.divide(ARITHMETIC.multiply(self.over, ARITHMETIC.sqrt(self.root)), self.under)
        return self.over if self.under == 1 else ARITHMETIC.divide(self.over, self.under)


class Quantity(NamedTuple):
    """A number in a text.

    Attributes:
        text: the number as it is written.
        value: what it is.
        unit: its unit in its shortest form, `%` or a currency; None where none is known.
    """

    text: str
    value: Number
    unit: str | None = None


def plain_quantity(text: str) -> Quantity | None:
    """The number that is all of a text, if it is written in digits."""
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    number = match["number"]
    return Quantity(number, Number(_decimal(number)), "%" if match["percent"] else None)


def quantities(text: str, *, states: bool = False, fractions: bool = True) -> Clauses:
    """The clauses of a text; those with digits can be read."""
    if not text.isascii():
        text = text.translate(_SIGNS)
    if "<" in text:
        text = _TAG.sub("\n", _CALCULATION.sub("", text))
    if "\\" in text or "{" in text or "sqrt" in text:
        for pattern, replacement in _LATEX:
            text = pattern.sub(replacement, text)
    if not fractions:
        text = _FRACTION.sub(" ; ", text)
    return Clauses(_WORD.split(text), states)


def are_equal(answer: Quantity, truth: Quantity, are_close: Callable[[Number, Number], bool] | None = None) -> bool:
    """Whether two quantities are the same number.

    Args:
        are_close: whether two numbers that differ still count as equal.

    Raises:
        Unreadable: their units are not the same, or one of them is a percentage.
    """
    if answer.unit and truth.unit and answer.unit != truth.unit:
        raise Unreadable(f"the answer is in {answer.unit}, and {truth.unit} is expected")
    if answer.value.equals(truth.value) or (are_close is not None and are_close(answer.value, truth.value)):
        return True
    shares = [q.value.divided_by(_HUNDRED) if q.unit == "%" else q.value for q in (answer, truth)]
    if answer.unit != truth.unit and shares[0].equals(shares[1]):
        raise Unreadable(f"{answer.text} and {truth.text} are equal only if one is a percentage")
    return False


_HUNDRED: Final = Number(Decimal(100))


def without_unit(text: str) -> str:
    r"""A text of LaTeX without the unit at its end.

    Example:
        >>> without_unit(r"36\pi\text{ cm}^2"), without_unit(r"36\pi"), without_unit(r"3\text{ or }4")
        ('36\\pi', '36\\pi', '3\\text{ or }4')
    """
    match = _UNIT_AT_END.search(text)
    unit = _UNIT.fullmatch(f"{match[1]}{match[2] or ''}".strip()) if match and match.start() else None
    return text[: match.start()].rstrip() if match and unit and _unit(unit) else text


class Clauses:
    """What stands between the words of a text.

    Args:
        parts: clauses and words in turns; a new line counts as a word.
        states: whether they are a stated answer, and no prose.
    """

    def __init__(self, parts: Sequence[str], states: bool) -> None:
        self._parts, self._states = parts, states
        self.numbered = [at for at in range(0, len(parts), 2) if _DIGIT.search(parts[at])]

    def read(self, at: int, *, last: bool = True) -> Quantity:
        """The last number of a clause, or the first.

        Raises:
            Unreadable: it is not one number for sure.
        """
        quantity = self._read_alone(at, last)
        for other, link in self._linked(at, last):
            neighbour = self._read_alone(other, other < at)
            if not neighbour.value.equals(quantity.value):
                several = sorted(((at, quantity.text), (other, neighbour.text)))
                raise Unreadable(f"several numbers in the answer: {several[0][1]} {link} {several[1][1]}")
        return quantity

    def read_only(self) -> Quantity:
        """The number that all clauses agree on; Unreadable if they do not."""
        if len(self.numbered) > _MOST:
            raise Unreadable(f"more than {_MOST} numbers in the answer")
        first = self.read(self.numbered[0], last=False)
        for at in self.numbered:
            quantity = self.read(at)
            if not quantity.value.equals(first.value):
                raise Unreadable(f"several numbers in the answer: {first.text}, {quantity.text}")
        return quantity

    def _linked(self, at: int, last: bool) -> Iterator[tuple[int, str]]:
        """The clauses that `or`, `and` and `to` link with this one."""
        for step in (-1, 1):
            word, beyond = self._word(at + step), at + 2 * step
            if (
                word in _UNITS and beyond in self.numbered and self._parts[max(at, beyond)].strip()[0].isdigit()
            ):  # 5 ft 10
                yield beyond, word
            elif step == 1 and word in _UNITS:  # 7 cm or 8 cm
                word, beyond = self._word(at + 3), at + 4
            if step == -1 and word in _LINKS and not self._parts[beyond].strip() and self._word(beyond - 1) in _UNITS:
                beyond -= 2
            if word in _LINKS and beyond in self.numbered:
                yield beyond, word

    def _is_share(self, at: int) -> bool:
        """Whether the number is a share of another one, or one of which a share is meant: half of 8, 1/3 of 9."""
        if at not in self.numbered or self._word(at - 1) != "of" or "=" in self._parts[at]:
            return False
        share = self._parts[at - 2]
        return any(sign in share for sign in "/%\\") if share.strip() else self._word(at - 3) in _SHARES

    def _word(self, at: int) -> str:
        return self._parts[at].casefold() if 0 < at < len(self._parts) else ""

    def _read_alone(self, at: int, last: bool) -> Quantity:
        clause, before = self._parts[at], self._word(at - 1)
        if len(clause) > _LONGEST:
            raise Unreadable(f"more than {_LONGEST} characters without a word")
        words = [] if at + 1 >= len(self._parts) else [self._word(at + 1)]
        for further in range(at + 2, min(at + 8, len(self._parts)), 2):
            if self._parts[further].strip():
                break
            words.append(self._word(further + 1))
        shown = " ".join(f"{before} {clause} {' '.join(words[:1])}".split())[:_SHOWN]
        if (
            before in _BEFORE
            or self._is_share(at)
            or self._is_share(at + 2)
            or (before and clause.startswith("(") and before != "\n")
        ):
            raise Unreadable(f"{shown!r} is more than a number")
        try:
            return _Clause(clause, words, last, at == 0 or before == "\n", self._states and at == 0).quantity()
        except (Inexact, InvalidOperation, Overflow):
            raise Unreadable(f"{shown!r} is too long to be compared exactly") from None
        except (Unreadable, RecursionError) as error:
            if str(error).startswith("several"):
                raise
            raise Unreadable(f"{shown!r} cannot be read as a number") from None


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class _Clause:
    """Reads the number of one clause.

    Args:
        text: the clause.
        words: what follows it.
        last: whether the last of several is meant, not the first.
        begins_line: whether a mark of a list may stand before it.
        states: whether a dash before the number is a minus for sure.
    """

    def __init__(self, text: str, words: Sequence[str], last: bool, begins_line: bool, states: bool) -> None:
        self.text, self.words, self.last = text, words, last
        self.tokens: list[_Token] = []
        self.at = 0
        self._begins_line, self._states = begins_line, states

    def quantity(self) -> Quantity:
        pieces = [piece for piece in _split(self.text, _BREAK) if _DIGIT.search(piece[0])]
        piece, end = pieces[-1 if self.last else 0]
        if self._begins_line:
            piece = _BULLET.sub("", piece)
        parts = _split(piece, _COMMA)
        items = [item for item, _ in parts if _DIGIT.search(item)]
        if len(parts) > 1 and not all(map(_is_balanced, items)) and re.search(r"[(\[{]", piece):
            raise Unreadable("a list")
        if len(items) > 1:
            read = [_Clause(item, (), True, False, self._states).quantity() for item in items]
            if not all(quantity.value.equals(read[0].value) for quantity in read):
                raise Unreadable(f"several numbers in the answer: {', '.join(q.text for q in read)[:_SHOWN]}")
        *names, side = _EQUALS.split(items[-1 if self.last else 0])
        if len(parts) == 1 and not names and not _is_balanced(side):
            side = _OPENING.sub("", side)
        if any(not _NAME.fullmatch(name) and any(m[1] for m in _LETTER.finditer(name)) for name in names):
            raise Unreadable("an equation")
        if self.text[end:].strip(_CLOSING):
            self.words = ()
        if not (names or self._states) and _SPACED_SIGN.match(side):
            raise Unreadable("a dash or a minus")
        side = _MARKS.sub("", side)
        self.tokens = [_Token(str(m.lastgroup), m[0], *m.span()) for m in _TOKEN.finditer(side)]
        return self._read(side)

    def _read(self, side: str) -> Quantity:
        has_money = any(token.kind == "money" for token in self.tokens[:2])
        negative, money = self._sign(), self._money()
        negative = negative or (has_money and self._sign())
        first = self._peek().start
        value = self._product()
        text = ("-" if negative else "") + side[first : self.tokens[self.at - 1].end].strip().replace("\\surd ", "√")
        if negative:
            value = value._replace(over=value.over.copy_negate())
        value, unit = self._tail(value, side, bool(money))
        return Quantity(text, value, unit or money)

    def _peek(self, ahead: int = 0) -> _Token:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else _END

    def _takes(self, *texts: str) -> str | None:
        """The next token, if it is one of these."""
        if (text := self._peek().text) in texts:
            self.at += 1
            return text
        return None

    def _money(self) -> str | None:
        if self._peek().kind != "money":
            return None
        self.at += 1
        sign = self.tokens[self.at - 1].text.lstrip("\\")
        return None if sign == "$" and self.text.count("$") > self.text.count("\\$") + 1 else sign

    def _sign(self) -> bool:
        return self._takes("-", "+") == "-"

    def _product(self) -> Number:
        value, is_integer = self._factor()
        while True:
            if self._peek().text == "/" and self._peek(1).kind in ("number", "command"):
                self.at += 1
                value = value.divided_by(self._factor()[0])
                if self._peek().text in ("/", "*", "^", "\\sqrt", "\\surd", "\\frac", "\\times", "\\cdot"):
                    raise Unreadable("what is divided by what is open")
                return value
            if self._peek().text in _TIMES and self._peek(1).kind in ("number", "command"):
                self.at += 1
                power_of_ten = self._peek().text == "10" and self._peek(1).text in ("^", "**")
                factor, is_integer = self._factor()
                if not power_of_ten and factor.root == 1 and value.root == 1:
                    raise Unreadable("a product")
            elif self._peek().text in ("\\sqrt", "\\surd"):
                factor, is_integer = self._factor()
            elif self._peek().text == "\\frac" and is_integer:
                factor, _ = self._factor()
                return self._mixed(value, factor)
            else:
                return value
            value = value.times(factor)

    def _mixed(self, whole: Number, part: Number) -> Number:
        if part.root != 1 or part.under == 1 or not 0 < part.over < part.under:
            raise Unreadable("a product")
        return Number(_EXACT.add(_EXACT.multiply(whole.over, part.under), part.over), part.under)

    def _factor(self) -> tuple[Number, bool]:
        """A number, a fraction, a root, or one of these in brackets; and whether it is a whole number in digits."""
        token = self._peek()
        self.at += 1
        if token.kind == "number":
            value = Number(_decimal(token.text))
            whole = token.text.isdecimal()
            if self._takes("^", "**"):
                return value.power(self._exponent()), False
            if whole and self._peek().kind == "number" and self._peek(1).text == "/":
                return self._mixed(value, self._product()), False
            return value, whole
        if token.text == "\\frac":
            return self._argument().divided_by(self._argument()), False
        if token.text in ("\\sqrt", "\\surd"):
            inner = self._argument(is_whole=token.text == "\\surd")
            if inner.root != 1 or inner.over < 0:
                raise Unreadable("a root of a root, or of a negative number")
            return Number(_ONE, inner.under, _EXACT.multiply(inner.over, inner.under)), False
        if token.text in _BRACKETS:
            value = self._inside(_BRACKETS[token.text])
            if self._peek().text in ("^", "**") or self._peek().kind in ("number", "command"):
                raise Unreadable("a power or product of brackets")
            return value, False
        raise Unreadable("no number")

    def _argument(self, *, is_whole: bool = False) -> Number:
        """What a command of LaTeX is applied to: braces, or one digit."""
        if self._takes("{"):
            return self._inside("}")
        if is_whole and self._takes("("):
            return self._inside(")")
        token = self._peek()
        if token.kind != "number" or not token.text.isdecimal():
            raise Unreadable("no number")
        digits = token.text if is_whole else token.text[0]
        self.at += 1
        if digits != token.text:
            if self.tokens[self.at - 2].text == "\\sqrt":
                raise Unreadable("how far a root reaches is open")
            self.at -= 1
            self.tokens[self.at] = token._replace(text=token.text[1:])
        return Number(Decimal(digits))

    def _inside(self, closing: str) -> Number:
        negative = self._sign()
        value = self._product()
        if not self._takes(closing):
            raise Unreadable("a sum, or a bracket that does not close")
        return value._replace(over=value.over.copy_negate()) if negative else value

    def _exponent(self) -> int:
        closing = self._takes("{")
        negative = self._sign()
        value, is_whole = self._factor()
        if not is_whole or value.over > _MOST or (closing and not self._takes("}")):
            raise Unreadable("a power")
        return -int(value.over) if negative else int(value.over)

    def _tail(self, value: Number, side: str, is_money: bool) -> tuple[Number, str | None]:
        """The number with its word of size, and its unit; nothing else may be left of the clause."""
        end = self.tokens[self.at - 1].end
        rest = side[end:].lstrip(" \u00a0").rstrip(_CLOSING + "-" * bool(self.words) + "!" * is_money)
        if side[end : end + 1].isalpha() and not rest[1:2].isalpha():
            raise Unreadable("a variable")
        words = [*self.words]
        if rest.casefold() in _SIZES:
            words, rest = [rest.casefold(), *words], ""
        while not rest and words and words[0] in _SIZES:
            value = value.times(Number(Decimal(_SIZES[words.pop(0)])))
        if not rest and ((words[:1] and words[0] in _AFTER) or words[:2] in (["and", "a"], ["and", "half"])):
            raise Unreadable("more than a number")
        match = _UNIT.match(" ".join([rest, *words]).strip())
        unit = _unit(match) if match else None
        if rest and (match is None or match.end() < len(rest) or (unit is None and rest not in _ENDINGS)):
            raise Unreadable("more than a number")
        return value, unit


def _is_balanced(text: str) -> bool:
    return all(text.count(opening) == text.count(closing) for opening, closing in _BRACKETS.items())


def _split(text: str, pattern: re.Pattern[str]) -> list[tuple[str, int]]:
    """The parts of a text between matches, each with its end."""
    starts, ends = [0], []
    for match in pattern.finditer(text):
        ends.append(match.start())
        starts.append(match.end())
    return [(text[start:end], end) for start, end in zip(starts, [*ends, len(text)], strict=True)]


def _decimal(number: str) -> Decimal:
    return Decimal(number.translate(_UNGROUPED))


def _unit(match: re.Match[str]) -> str | None:
    parts = match.groupdict()
    base, per = (_base(parts[name]) for name in ("base", "per"))
    if parts["base"] and base is None:
        return None
    power = {"sq": "2", "cu": "3"}.get((parts["kind"] or "")[:2], parts["power"])
    powers = (f"^{power}" if power else "", f"^{parts['per_power']}" if parts["per_power"] else "")
    return f"{base or ''}{powers[0]}" + (f"/{per or parts['per']}{powers[1]}" if parts["per"] else "") or None


def _base(name: str | None) -> str | None:
    return None if name is None else _UNITS.get(name) or _UNITS.get(name.casefold())


_SHOWN: Final = 60
_LONGEST: Final = 500  # digits, or characters of a clause
_MOST: Final = 100  # numbers of an answer, and the largest exponent
_END: Final = _Token("end", "", 0, 0)
_BRACKETS: Final = {"(": ")", "{": "}", "[": "]"}
_TIMES: Final = ("*", "x", "\\times", "\\cdot", "\\ast")
_CLOSING: Final = " \u00a0\t$_`\"')]}.\\"

_GROUPING: Final = ",_\u00a0"
_UNGROUPED: Final = dict.fromkeys(map(ord, _GROUPING))

_TABLES: Final = orjson.loads(Path(__file__).with_suffix(".json").read_bytes())
_SIGNS: Final = str.maketrans(_TABLES["signs"])
"""Signs as LaTeX writes them."""

_SIZES: Final[Mapping[str, str]] = _TABLES["sizes"]
_UNITS: Final = {name: line.split()[0] for line in _TABLES["units"] for name in line.split()}
_SHARES: Final = frozenset(_TABLES["shares"].split())
_LINKS: Final = ("or", "and", "to")
_BEFORE: Final = frozenset(_TABLES["before"].split())
_AFTER: Final = frozenset(_TABLES["after"].split())
_ENDINGS: Final = ("th", "st", "nd", "rd", "am", "pm", "")

_CALCULATION: Final = re.compile(r"<<[^<>]*>>")
_TAG: Final = re.compile(r"<[/|]?[a-zA-Z][^<>]*>")
_LATEX: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\{,\}", ","),
        (r"\\(?:!|left(?![a-zA-Z])|right(?![a-zA-Z])|displaystyle|bigg?|Bigg?)", ""),
        (r"\\[,;: ]|~", "\u00a0"),
        (r"\\(?:text[a-z]*|math(?:rm|bf|it|sf)|mbox|operatorname)\s*\{([^{}]*)\}", r" \1 "),
        (r"\bsqrt\s*(?=\()", r"\\surd "),
        (r"\^\s*\{\s*\\circ\s*\}|\^\s*\\circ|\\degree", " degrees "),
        (r"\\%", "%"),
    )
)
_FRACTION: Final = re.compile(r"(?<=\d)[/ ](?=\d)")

_WORD: Final = re.compile(
    r"(\n|(?<![\w\\/^])(?<![^\W\d_]['’-])(?:[^\W\d_][\w’']++(?:[-.]\w++)*+(?!\s?\^|/)|[aAI](?=\s(?:\$?\d|[^\W\d_]{2}))))"
)
_DIGIT: Final = re.compile(r"\d")
_BREAK: Final = re.compile(
    r"[.;:?](?=\s|$)|[.…]{2,}|\\(?:to|Rightarrow|implies|quad|qquad|\\|[()\[\]])|[-=]+>|\$(?!\s?[-+]?[\d.\\])|\|(?!\S)|&|\"|\s[(\[]\s*$"
)
_COMMA: Final = re.compile(r",(?=\s)|,(?=\S)(?<!\d,)|,(?!\S)")
_EQUALS: Final = re.compile(r"(?<![<>!=])=(?![=>])|\\approx(?![a-zA-Z])")
_NAME: Final = re.compile(r"[\s*$({]*[^\W\d_](?:_\w|_\{\w+\})?(?:\([^()=]*\))?[\s*]*|\s*")
_LETTER: Final = re.compile(r"\\(?:times|cdot|div|frac|sqrt|surd)(?![a-zA-Z])|(?<=\d)\s?x\s?(?=\d)|([^\W\d_])")
_OPENING: Final = re.compile(r"^\s*[(\[](?=[^()\[\]]*$)")
_BULLET: Final = re.compile(r"^\s*[*•+#]+\s+")
_MARKS: Final = re.compile(r"^\s*[*_`'#]*(?=\S)|(?<=[^\s*])[*_`]+\s*$")
_SPACED_SIGN: Final = re.compile(r"\s*-\s")
_GROUPED = "|".join(rf"(?!0)\d{{1,3}}(?:{mark}\d{{3}})++(?!{mark}?\d)" for mark in _GROUPING)
_DIGITS = rf"(?:(?:{_GROUPED}|\d++)(?:\.\d++)?+|(?<!\d)\.\d++)"
_PLAIN: Final = re.compile(rf"\s*+(?P<number>-?{_DIGITS})(?P<percent>%)?\.?\s*+")
_TOKEN: Final = re.compile(
    rf"(?P<number>{_DIGITS}(?:[eE][-+]?\d{{1,9}}(?!\d))?+)|(?P<money>\\\$|[$€£¥₹₽₩₺₪₫฿₦₴₱₲¢])"
    r"|(?P<command>\\[a-zA-Z]++|\\.)|(?P<word>[^\W\d_]++)|(?P<sign>\*\*|\S)"
)

_UNIT: Final = re.compile(
    r"(?P<kind>square\s+|sq\.?\s+|cubic\s+|cu\.?\s+)?(?:(?P<base>%|[^\W\d_]+)\s*(?:\^?\s?\{?(?P<power>[23])\}?)?)?"
    r"(?:\s*(?:/|\bper\b)\s*(?P<per>[^\W\d_]+)(?:\^?\{?(?P<per_power>[23])\}?)?)?"
)
_UNIT_AT_END: Final = re.compile(r"\\(?:text|mathrm)\s*\{([^{}]*)\}(\^\{?[23]\}?)?$")
