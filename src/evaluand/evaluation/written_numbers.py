r"""Numbers as people and models write them: plain, in LaTeX, with units, a currency, a percent sign, or a word of size.

One pattern says where numbers stand; a number counts only where what stands beside it is known to leave it as it is:
`5x`, `3 + 4`, `x > 5`, `7 or 8`, `double 5`, `5 or more` are no numbers. Values are exact: each is known by its square,
which is a ratio also for ratios times square roots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from evaluand.evaluation.final_answer import BOXED, Unreadable


class Quantity(NamedTuple):
    """A number in a text.

    Attributes:
        text: the number as it is written.
        square: its square, with its sign: 4 for 2, -2 for -√2.
        unit: its unit in its shortest form, `%` or a currency; None where none is known.
        size: its words of size.
    """

    text: str
    square: Fraction
    unit: str | None = None
    size: str = ""

    @classmethod
    def of(cls, number: Decimal, text: str | None = None, unit: str | None = None) -> Quantity:
        """The quantity of a decimal; Unreadable if it has too many digits.

        Example:
            >>> Quantity.of(Decimal("-0.5"))
            Quantity(text='-0.5', square=Fraction(-1, 4), unit=None, size='')
        """
        if abs(number.adjusted()) > _LONGEST_NUMBER:
            raise Unreadable("a number is too long to be compared exactly")
        over, under = number.as_integer_ratio()
        return cls(str(number) if text is None else text, Fraction(over * abs(over), under * under), unit)

    @property
    def value(self) -> Fraction:
        """It, or its first thousand digits."""
        return _root(abs(self.square)) * (1 if self.square > 0 else -1)

    @property
    def latex(self) -> str:
        """It in LaTeX; Unreadable if it has too many digits."""
        value = self.value
        over, under = (value if value * abs(value) == self.square else self.square).as_integer_ratio()
        if max(over.bit_length(), under.bit_length()) > 4 * _LONGEST:
            raise Unreadable("too many digits")
        fraction = rf"\frac{{{abs(over)}}}{{{under}}}"
        return "-" * (over < 0) + (fraction if value * abs(value) == self.square else rf"\sqrt{{{fraction}}}")

    def __str__(self) -> str:
        return " ".join(filter(None, (self.text, self.size, self.unit)))[:_SHOWN]


def plain_quantity(text: str) -> Quantity | None:
    """The number that is all of a text, if it is written in digits."""
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    return Quantity.of(_decimal(match["number"]), match["number"], "%" if match["percent"] else None)


def are_equal(answer: Quantity, truth: Quantity, are_close: Callable[[Fraction, Fraction], bool] | None = None) -> bool:
    """Whether two quantities are the same number.

    Args:
        are_close: whether two numbers that differ still count as equal.

    Raises:
        Unreadable: their units are not the same, or one of them is a percentage.
    """
    if answer.unit and truth.unit and answer.unit != truth.unit:
        raise Unreadable(f"the answer is in {answer.unit}, and {truth.unit} is expected")
    if answer.square == truth.square or (are_close is not None and are_close(answer.value, truth.value)):
        return True
    shares = [q.square / 10_000 if q.unit == "%" else q.square for q in (answer, truth)]
    if answer.unit != truth.unit and shares[0] == shares[1]:
        raise Unreadable(f"{answer} and {truth} are equal only if one is a percentage")
    return False


def without_unit(text: str) -> str:
    r"""A text of LaTeX without the unit at its end.

    Example:
        >>> without_unit(r"36\pi\text{ cm}^2"), without_unit(r"36\pi"), without_unit(r"3\text{ or }4")
        ('36\\pi', '36\\pi', '3\\text{ or }4')
    """
    match = _UNIT_AT_END.search(text)
    unit = _UNIT.fullmatch(f"{match[1]}{match[2] or ''}".strip()) if match and match.start() else None
    return text[: match.start()].rstrip() if match and unit and _unit(unit) else text


class Numbers:
    """The numbers of a text; of `3 × 6 = 18`, the last.

    Args:
        rule: what chose the text of a reply, if it is no prose: then only known words may stand before a number.
        fractions: whether `1/5` is a number, and not two.
    """

    def __init__(self, text: str, rule: str | None = None, *, fractions: bool = True) -> None:
        self._source, self._rule = text, rule
        if not text.isascii():
            text = text.translate(_SIGNS)
        if "<" in text:
            text = _TAG.sub("\n", _CALCULATION.sub("", text))
        for pattern, replacement in _REPLACED if _MARKED.search(text) else ():
            text = pattern.sub(replacement, text)
        self._text = text if fractions else _FRACTION.sub(" ; ", text)
        self._matches: list[re.Match[str]] = []
        self._begins: list[int] = []  # of the calculations that end in the numbers
        for match in _NUMBER.finditer(self._text):
            begin = match.start()
            if self._matches and _OPERATOR.fullmatch(self._text, self._matches[-1].end(), match.start("body")):
                begin = self._begins.pop()
                self._matches.pop()
            self._matches.append(match)
            self._begins.append(begin)

    def __len__(self) -> int:
        return len(self._matches)

    @property
    def leads(self) -> bool:
        """Whether nothing but words that leave a number as it is stand before the first."""
        return all(word.casefold() in _HEDGES for word in _WORD.findall(self._text, 0, self._begins[0]))

    @property
    def is_alone(self) -> bool:
        """Whether no word stands before a number."""
        return _WORD.search(self._text, 0, self._matches[-1].start()) is None

    def read(self, index: int) -> Quantity:
        """A number; Unreadable if it is not one number for sure."""
        quantity = self._read_alone(index)
        for left in range(max(index - 1, 0), min(index + 1, len(self) - 1)):
            link = _LINK.fullmatch(self._text, self._matches[left].end(), self._begins[left + 1])
            share = link and link["of"] and self._begins[left + 1] == self._matches[left + 1].start()
            if link and (not link["of"] or (share and _SHARE.search(self._matches[left][0]))):
                both = [self._read_alone(left), self._read_alone(left + 1)]
                if share or both[0].square != both[1].square:
                    between = f" {link['word']} " if link["word"] else ", " if "," in link[0] else " "
                    raise Unreadable(f"several numbers in the answer: {both[0]}{between}{both[1]}")
        return quantity

    def read_only(self) -> Quantity:
        """The number that all are; Unreadable if they are not."""
        if len(self) > _MOST:
            raise Unreadable(f"more than {_MOST} numbers in the answer")
        if self._rule == BOXED and (pair := _PAIR.search(self._source)):
            raise Unreadable(f"{pair[0]} may be two numbers")
        first, *others = (self.read(index) for index in range(len(self)))
        for other in others:
            if other.square != first.square:
                raise Unreadable(f"several numbers in the answer: {first}, {other}")
        return first

    def _read_alone(self, index: int) -> Quantity:
        match, text = self._matches[index], self._text
        try:
            if len(match[0]) > _LONGEST or not self._stands_alone(match):
                raise Unreadable("a piece of more")
            square = _square(match["body"])
        except (Unreadable, ZeroDivisionError):
            words = (
                _LAST_WORD.search(text, max(match.start() - _WINDOW, 0), match.start()),
                match,
                _NEXT_WORD.match(text, match.end()),
            )
            shown = " ".join("".join(word[0] for word in words if word).split())[:_SHOWN]
            raise Unreadable(f"{shown!r} cannot be read as a number") from None
        sizes = match["sizes"].replace("-", " ").split()
        for size in sizes:
            square *= Fraction(_SIZES[size.casefold()]) ** 2
        negative = "-" in match["prefix"]
        money = match["prefix"].strip("-+ \u00a0")
        is_formula = money == "$" and _END_OF_FORMULA.match(text, match.end())
        unit = _unit(match) or ("" if is_formula else money.lstrip("\\")) or None
        return Quantity("-" * negative + match["body"], -square if negative else square, unit, " ".join(sizes))

    def _stands_alone(self, match: re.Match[str]) -> bool:
        """Whether what stands beside a number leaves it as it is."""
        text, end = self._text, match.end()
        window = max(match.start() - _WINDOW, 0), match.start()
        lead, trail = _LEAD.search(text, *window), _TRAIL.match(text, end)
        if lead is None or trail is None or (trail["quote"] or "") not in lead[0] or _CHANGED_AFTER.match(text, end):
            return False
        if word := lead["word"]:
            is_unknown = self._rule and word.casefold() not in _HEDGES | _VERBS
            if is_unknown or _CHANGED_BEFORE.search(text, *window):
                return False
        if lead["equals"]:
            side = _SIDE.split(text[max(lead.start() - _WINDOW, 0) : lead.start()])[-1]
            if not _NAME.fullmatch(side) and any(letter[1] for letter in _LETTER.finditer(side)):
                return False  # an equation
        elif match[0][0] in "-+" and match[0][1].isspace() and (not self._rule or text[: match.start()].strip(" $*_`")):
            return False  # a dash or a minus
        opening, closing = _OPENING.search(text, *window), _CLOSING.match(text, end)
        if closing is None or opening is None:
            return closing is None or bool(closing[1])
        inside = f"{opening[1]} {closing[1]}"
        return not _SEPARATOR.search(inside) or bool(_WORD.search(inside))


def _square(product: str) -> Fraction:
    """The square of a product, with its sign; a number beside a fraction is a mixed one."""
    if mixed := _MIXED.fullmatch(product):
        whole, over, under = (Fraction(_decimal(part)) for part in mixed.groups() if part)
        if not 0 < over < under:
            raise Unreadable("a product")
        return (whole + over / under) ** 2
    negative, product = product.strip()[:1] == "-", product.strip().removeprefix("-")
    square, at, joint = Fraction(1), 0, ""
    while at < len(product) or not at:
        match = _FACTOR.match(product, at)
        if match is None or joint == "/":
            raise Unreadable("no number")
        joint = (match["joint"] or "").strip()
        has_root = match["root"] or (joint and "\\sqrt" in product[:at])
        if bool(joint) > bool(at) or (at and joint != "/" and not has_root and not (joint and match["ten"])):
            raise Unreadable("a product")
        square = square / _factor(match) if joint == "/" else square * _factor(match)
        at = match.end()
    return -square if negative else square


def _factor(match: re.Match[str]) -> Fraction:
    if match["over"]:
        return _square(_inside(match["over"])) / _square(_inside(match["under"]))
    if match["root"]:
        inner = _square(_inside(match["root"]))
        if inner < 0 or (root := _root(inner)) ** 2 != inner:
            raise Unreadable("a root of a root, or of a negative number")
        return root
    exponent = int(match["exponent"].strip("{ }")) if match["exponent"] else 1
    if abs(exponent) > _MOST:
        raise Unreadable("a power")
    return Quantity.of(_decimal(match["digits"])).square ** exponent


def _inside(argument: str) -> str:
    return argument[1:-1] if argument[0] == "{" else argument


def _root(square: Fraction) -> Fraction:
    """The root of a square, or its first thousand digits."""
    over, under = isqrt(square.numerator), isqrt(square.denominator)
    if over * over == square.numerator and under * under == square.denominator:
        return Fraction(over, under)
    return Fraction(isqrt(square.numerator * square.denominator * _PRECISION**2), square.denominator * _PRECISION)


def _decimal(number: str) -> Decimal:
    return Decimal(number.translate(_UNGROUPED))


def _unit(match: re.Match[str]) -> str | None:
    parts = match.groupdict()
    base, per = (
        _UNITS.get(name or "") or _UNITS.get((name or "").casefold()) for name in (parts["base"], parts["per"])
    )
    power = {"sq": "2", "cu": "3"}.get((parts["kind"] or "")[:2].casefold(), parts["power"])
    powers = (f"^{power}" if power else "", f"^{parts['per_power']}" if parts["per_power"] else "")
    return f"{base or ''}{powers[0]}" + (f"/{per or parts['per']}{powers[1]}" if parts["per"] else "") or None


_SHOWN: Final = 60
_LONGEST: Final = 500  # characters of a number within a text
_LONGEST_NUMBER: Final = 5000  # digits
_MOST: Final = 100  # numbers of an answer, and the largest exponent
_WINDOW: Final = 50  # characters before a number that are looked at
_PRECISION: Final = 10**1000

_TABLES: Final = orjson.loads(Path(__file__).with_suffix(".json").read_bytes())
_SIGNS: Final = str.maketrans(_TABLES["signs"])
"""Signs as LaTeX writes them."""
_SIZES: Final[dict[str, str]] = _TABLES["sizes"]
_UNITS: Final = {name: line.split()[0] for line in _TABLES["units"] for name in line.split()}
_HEDGES, _VERBS = (frozenset(" ".join(_TABLES[name]).split()) for name in ("hedges", "verbs"))
_GROUPING: Final = ",_\u00a0"
_UNGROUPED: Final = dict.fromkeys(map(ord, _GROUPING))

_CALCULATION: Final = re.compile(r"<<[^<>]*>>")
_TAG: Final = re.compile(r"<[/|]?[a-zA-Z][^<>]*>")
_MARKED: Final = re.compile(r"[\\{~]|sqrt|degree")
_REPLACED: Final = tuple((re.compile(pattern), replacement) for pattern, replacement in _TABLES["replaced"])
_FRACTION: Final = re.compile(r"(?<=\d)[/ ](?=\d)")


def _any(words: Iterable[str]) -> str:
    return "(?:" + "|".join(sorted(map(re.escape, words), key=len, reverse=True)) + r")(?![^\W\d_])"


_GROUPED = "|".join(rf"(?!0)\d{{1,3}}(?:{mark}\d{{3}})++(?!{mark}?\d)" for mark in _GROUPING)
_PLAIN_DIGITS = rf"(?:(?:{_GROUPED}|\d++)(?:\.\d++)?+|(?<![\d.])\.\d++)"
_DIGITS = rf"{_PLAIN_DIGITS}(?:[eE][-+]?\d{{1,9}}(?!\d))?+"
_BRACES = r"\{(?:[^{}]|\{[^{}]*+\})*+\}"
_EXPONENT = r"\{\s?-?\d+\s?\}|-?\d+"
_JOINT = r"\s?(?:/|\*(?!\*)|x|\\times(?![a-zA-Z])|\\cdot(?![a-zA-Z])|\\ast)\s*|\s?(?=\\)"
_FACTORS = (
    rf"\\frac\s*(?P<over>{_BRACES}|\d)\s*(?P<under>{_BRACES}|\d)|\\sqrt\s?(?P<root>{_BRACES}|\d(?!\d))"
    rf"|(?P<digits>(?P<ten>10(?=\^|\*\*))|{_DIGITS})(?:(?:\^|\*\*)(?P<exponent>{_EXPONENT}))?"
)
_FACTOR: Final = re.compile(rf"(?P<joint>{_JOINT})?(?:{_FACTORS})")
_UNNAMED = re.sub(r"\?P<\w+>", "?:", f"(?:{_FACTORS})")
_BODY = rf"{_UNNAMED}(?:(?:{_JOINT}|\s(?=\d+/\d)){_UNNAMED})*"
_MIXED: Final = re.compile(rf"({_PLAIN_DIGITS})(?:\s?\\frac\s*\{{?(\d+?)\}}?\s*\{{?(\d+)\}}?|\s(\d+)/(\d+))")
_MONEY = r"\\\$|[$€£¥₹₽₩₺₪₫฿₦₴₱₲¢]"
_UNIT_TEXT = (
    r"(?P<kind>(?i:square|sq\.?|cubic|cu\.?)\s+)?"
    rf"(?P<base>{_any(name for name in _UNITS if name != '$')}|(?i:{_any(n for n in _UNITS if len(n) > 2)}))?"
    r"(?(base)(?:(?:\s*\^\s?\{?)?(?P<power>[23])(?!\d)\}?)?)"
    r"(?:\s*(?:/|\bper\b)\s*(?P<per>[^\W\d_]+)(?:(?:\^\{?)?(?P<per_power>[23])(?!\d)\}?)?)?"
)
_UNIT: Final = re.compile(_UNIT_TEXT)
_UNIT_AT_END: Final = re.compile(r"\\(?:text|mathrm)\s*\{([^{}]*)\}(\^\{?[23]\}?)?$")
_NUMBER: Final = re.compile(
    rf"(?=[-+.\\\d]|{_MONEY})"
    r"(?:(?<![^\W\d_])(?<![^\W\d_][-_’'.])(?<!\d)(?<!\d[.,_])(?!(?<=\n)\d\d?[.)] +\S)|(?=\\?\$))"  # no mark of a list
    rf"(?P<prefix>(?:[-+][^\S\n]?+)?(?:(?:{_MONEY})[^\S\n]?[-+]?)?)"
    rf"(?P<body>{_BODY})(?P<sizes>(?:[^\S\n]*-?(?i:{_any(_SIZES)}))*)"
    rf"(?P<tail>(?:(?:[^\S\n]+|(?=[%¢€/]|[^\W\d_]{{2}})){_UNIT_TEXT})?)"
)
_PLAIN: Final = re.compile(rf"\s*+(?P<number>-?{_PLAIN_DIGITS})(?P<percent>%)?\.?\s*+")

_WORD: Final = re.compile(r"(?<![\w\\])[^\W\d_][\w'’.-]*\w")
_LAST_WORD: Final = re.compile(r"(?:(?<![\w\\])[\w'’\\-]+)?[^\w\n]*$")
_NEXT_WORD: Final = re.compile(r"[^\s]*(?:[^\w\n]*[\w'’-]+[)\]}]*)?")
_OPERATOR: Final = re.compile(
    r"[^\S\n]*[$()]*(?:(?:[-+*/x=]|\\(?:times|cdot|div|ast|approx)(?![a-zA-Z]))[^\S\n]*[$()]*[-+]?)+"
)
_LEAD: Final = re.compile(
    r"(?:^|\n|(?P<equals>(?<![<>!=:])=|\\approx)|(?<!\d)[:;]|[:;.?!](?=\W)|\.\.\.|[^\W\d_]{2}[\"*)]*,(?=\W)|[\d%)\"*$],(?=\W)"
    r"|\|(?=\s)|(?<![\w\\^/])(?P<word>[^\W\d_][\w'’.-]*[\w)]|[aAI])(?![(\[{]))[^\S\n]*[ $*_`#\"'({\[\u00a0~]*$"
)
_SIDE: Final = re.compile(
    r"[,;:.?!](?=\s)|\n|=|\\(?:to|implies|approx)(?![a-zA-Z])|(?<![\\\w])[^\W\d_]{2,}(?:['’]\w*)?"
)
_NAME: Final = re.compile(r"[\s*$({]*[^\W\d_](?:_\w|_\{\w+\})?(?:\([^()=]*\))?[\s*]*|\s*")
_LETTER: Final = re.compile(r"\\(?:times|cdot|div|frac|sqrt)(?![a-zA-Z])|(?<=\d)\s?x\s?(?=\d)|([^\W\d_])")
_TRAIL: Final = re.compile(
    r"(?:(?:th|st|nd|rd|am|pm)(?![^\W\d_]))?(?P<quote>['\"])?[ \t\u00a0$*_`\"')\]}]*(?:\\[,;:]?\s*)?"
    r"(?:$|\n|\?(?=\W*(?:$|\n))|[.,;](?=[^\w.]|$)(?!\s*[b-zB-HJ-Z]\s*(?:$|[^\w\s=]))|(?<!\s):(?=\W|$)|!(?=\W|$)(?<=[^\d!]!)|\|(?!\S)"
    r"|(?<=[\s$*_`\"')\]}])(?:[^\W\d_][\w'’-]++|[aAI]\b)(?!\s*[+/^=<>\\])|-[^\W\d_]{2}"
    r"|(?<=\s)(?:[-–]\s(?=\W*[^\W\d_]{2})|[(\[](?=\W*[^\W\d_])))"
)
_OPENING: Final = re.compile(r"[(\[]([^()\[\]]*)$")
_CLOSING: Final = re.compile(r"([^()\[\]]{0,120})[)\]]")
_SEPARATOR: Final = re.compile(r"[,;]")
_END_OF_FORMULA: Final = re.compile(r"[^\n$]*(?<!\\)\$(?!\d)")
_LINK: Final = re.compile(
    r"[\s$*_]*(?:(?<=\n)\d\d?[.)])?,?\s*\(?(?:(?P<word>or|and|to|(?P<of>of(?: the)?))\b)?"
    r"[\s$*_]*(?:[^\W\d_](?:_\w+)?\s*=\s*)?[\s$*_]*"
)
_SHARE: Final = re.compile(r"[/%\\]|percent")
_PAIR: Final = re.compile(r"(?<![\d,.])\d{3},[1-9]\d\d(?![\d,])")
_CHANGED_BEFORE: Final = re.compile(
    rf"\b(?:{'|'.join(_TABLES['changed_before'])})(?:\s+(?:a|about|exactly|the|be))?[^\w.:;,=\n]*$", re.IGNORECASE
)
_CHANGED_AFTER: Final = re.compile(rf"[^\w.:;,=\n(]*(?:{'|'.join(_TABLES['changed_after'])})", re.IGNORECASE)
