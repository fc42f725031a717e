"""What runs in the child process of `math_equal`: reads mathematics, and says whether two expressions are equal.

It is started as a file and imports no other module of evaluand. A question is a JSON list of texts on a line of
standard input, the expected one first, and its answer a line of standard output: `{"equal": true}`, or `{"unread":
why}`. Texts become expressions by the grammar of latex2sympy2 (ANTLR), never by `sympify` or `parse_expr`, which
evaluate Python.
"""

from __future__ import annotations

import json
import random
import re
import signal
import sys
from functools import lru_cache
from typing import Any, Final

import sympy
from latex2sympy2_extended.latex2sympy2 import ConversionConfig, NormalizationConfig, latex2sympy, normalize_latex

DIGITS: Final = 60  # of which a difference has to be 0
POINTS: Final = 4  # at which expressions in variables are compared before a proof is tried


class Unread(Exception):
    """Nothing can be said about the texts for sure."""


def main(memory: int, seconds: int) -> None:
    _limit(memory)
    out = sys.stdout
    sys.stdout = sys.stderr
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        signal.alarm(seconds)  # also where nobody is left to end it
        print(json.dumps(_answer(json.loads(line))), file=out, flush=True)
        signal.alarm(0)


def _limit(memory: int) -> None:
    import resource

    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, most))


def _answer(texts: list[str]) -> dict[str, Any]:
    try:
        expected, *answers = map(_read, texts)
        are_equal = all(_are_equal(answer, expected) for answer in answers)
        if are_equal and len({*texts}) > 1 and any(map(_repeats, texts, (expected, *answers))):
            raise Unread("a list in which an item repeats")
        return {"equal": are_equal}
    except Unread as error:
        return {"unread": str(error)}
    except (MemoryError, RecursionError):
        return {"unread": "too large to be compared"}
    except Exception:  # whatever a library raises for what it cannot read
        return {"unread": "not read as mathematics"}


@lru_cache(maxsize=1000)
def _read(text: str) -> Any:
    text = _APPLIED.sub(r"\1=", _SIZED.sub("", text).replace("\\varnothing", "\\emptyset")).strip()
    if _FUNCTION.search(text):
        text = _DEGREES.sub(r"(\1\\cdot\\frac{\\pi}{180})", text)
    if unread := _MISREAD.search(text):
        raise Unread(f"{unread[0]!r} is not read as mathematics")
    latex = _checked(normalize_latex(_DECIMAL.sub(_as_fraction, text), _NORMALIZATION))
    value = latex2sympy(latex, conversion_config=_CONVERSION)
    if isinstance(value, sympy.Tuple):
        return text[:1], value
    if not isinstance(value, sympy.Basic | sympy.MatrixBase) or value.has(
        sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.Derivative, sympy.Float, sympy.nan, sympy.zoo
    ):
        raise Unread("not a value")
    value = value.subs(sympy.Symbol("i"), sympy.I)
    names = [str(symbol) for symbol in value.free_symbols]
    if words := [name for name in names if not _NAME.fullmatch(name)]:
        raise Unread(f"{words[0]!r} is no variable")
    return value


_CONVERSION: Final = ConversionConfig(lowercase_symbols=False, interpret_contains_as_eq=False)
_NORMALIZATION: Final = NormalizationConfig(malformed_operators=True, nits=False, boxed="none")
_NAME: Final = re.compile(r"[^\W\d_](?:_\{?\w+\}?)*|\\?(?:alpha|beta|gamma|delta|theta|lambda|mu|phi|rho|sigma|omega)")
_APPLIED: Final = re.compile(r"^\s*([a-zA-Z])\s*\(\s*[a-zA-Z]\s*\)\s*=(?!=)")
_FUNCTION: Final = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_DEGREES: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(?:\^\s*\{\s*\\circ\s*\}|\^\s*\\circ|\\degree|°)")
_MISREAD: Final = re.compile(
    r"'|’|\\prime|\.\s*\d*\.|…|\\[lc]?dots[a-z]*|\\equiv|(?<![\\a-zA-Z])I(?![a-zA-Z])"
    r"|[A-Z)\]}]\s*\^\s*\{?\s*(?:T|\\top|\\intercal)(?![a-zA-Z])"
    r"|(?<![\\a-zA-Z])[fghFGHP]\s*(?:\^\s*(?:\{[^{}]*\}|\w)\s*)?\("
)
_SIZED: Final = re.compile(r"\\(?:left|right)(?![a-zA-Z])")
_DECIMAL: Final = re.compile(r"(\d*)\.(?:(\d*)\\overline\s*\{(\d+)\}|(\d+))")


def _as_fraction(decimal: re.Match[str]) -> str:
    """A decimal as LaTeX writes a fraction, since floats are not exact."""
    whole, once, again, digits = (part or "" for part in decimal.groups())
    if not again:
        return rf"\frac{{{int(whole + digits)}}}{{{10 ** len(digits)}}}"
    over = int(whole + once + again) - int(whole + once or 0)
    return rf"\frac{{{over}}}{{{10 ** len(once) * (10 ** len(again) - 1)}}}"


def _checked(text: str) -> str:
    """The text; Unread where the grammar adds what stands side by side, or leaves out an index."""
    if _AMBIGUOUS.search(_ENVIRONMENT.sub(" & ", text)):
        raise Unread("numbers side by side")
    return text


_ENVIRONMENT: Final = re.compile(r"\\begin\s*\{\w+\}|\\\\")
_AMBIGUOUS: Final = re.compile(
    r"\d\s*_|\d\s+\d|[)}]\s*\d|\d\s*\{|\d,\d{3}(?!\d)|\d\s*\\[,;:! ]|\\pmod"
    r"|\d\s*\(\s*-?\d+\s*\)|\)\s*\(\s*-?\d+\s*\)|\(\s*-?\d+\s*\)\s*\("
)


def _are_equal(a: Any, b: Any) -> bool:
    """Whether two values are equal; Unread where it is open."""
    a, b = _without_name(a, b), _without_name(b, a)
    kinds = {_kind(a), _kind(b)}
    if kinds == {"set", "relation"}:
        return _are_equal(_as_set(a), _as_set(b))
    if kinds == {"list", "set"}:
        return _are_equal_ranges(*(sympy.FiniteSet(*x.args) if _kind(x) == "list" else x for x in (a, b)))
    if len(kinds) > 1:
        is_open = kinds in ({"list", "relation"}, {"tuple", "relation"}, {"tuple", "matrix"})
        if is_open or (kinds == {"list", "number"} and len(a.args or b.args) == 1):
            raise Unread(f"a {_kind(a)} and a {_kind(b)}")
        return False
    return {
        "tuple": _are_equal_tuples,
        "matrix": _are_equal_matrices,
        "list": _are_equal_sets,
        "set": _are_equal_ranges,
        "relation": _are_equal_relations,
        "number": _are_equal_numbers,
    }[kinds.pop()](a, b)


def _repeats(text: str, value: Any) -> bool:
    """Whether a list without brackets, which is compared as a set, has an item twice."""
    is_list = _kind(value) == "list" and not re.search(r"[(\[]|\\{", text)
    return is_list and text.count(",") >= len(value.args) > 0


def _kind(value: Any) -> str:
    if isinstance(value, tuple | sympy.MatrixBase):
        return "tuple" if isinstance(value, tuple) else "matrix"
    if isinstance(value, sympy.FiniteSet) or type(value).__name__ == "FiniteSet":
        return "list"
    if isinstance(value, sympy.Set):
        return "set"
    is_relation = isinstance(value, sympy.logic.boolalg.Boolean) and not value.is_Symbol
    return "relation" if is_relation else "number"


def _as_set(value: Any) -> Any:
    """The set that a relation in one variable describes."""
    if isinstance(value, sympy.Contains):
        return value.args[1]
    if isinstance(value, sympy.Set):
        return value
    if len(value.free_symbols) != 1:
        raise Unread("a relation and a set")
    return sympy.And(*value.args).as_set() if isinstance(value, sympy.And) else value.as_set()


def _without_name(value: Any, other: Any) -> Any:
    """`7` for `x = 7` where the other has no name, and the values for `x = 2, x = -3`."""
    if isinstance(value, sympy.Eq) and not isinstance(other, sympy.Rel):
        return value.rhs if value.lhs.is_Symbol else value.lhs if value.rhs.is_Symbol else value
    is_named = _kind(value) == "list" and value.args and all(isinstance(item, sympy.Eq) for item in value.args)
    if (
        not is_named
        or len({item.lhs for item in value.args}) > 1
        or any(isinstance(item, sympy.Eq) for item in getattr(other, "args", ()))
    ):
        return value
    return sympy.FiniteSet(*(item.rhs for item in value.args))


def _are_equal_tuples(a: Any, b: Any) -> bool:
    (bracket, items), (other_bracket, others) = a, b
    if len(items) != len(others) or not all(map(_are_equal, items, others)):
        return False
    if bracket != other_bracket:
        raise Unread("brackets of another kind")
    return True


def _are_equal_matrices(a: Any, b: Any) -> bool:
    return bool(a.shape == b.shape) and all(map(_are_equal, a, b))


def _are_equal_sets(a: Any, b: Any) -> bool:
    if len({isinstance(item, sympy.Rel) for item in (*a.args, *b.args)}) > 1:
        raise Unread("values with and without names")
    pairs = [(item, others.args) for items, others in ((a, b), (b, a)) for item in items.args]
    return all(any(_are_equal(item, other) for other in others) for item, others in pairs)


def _are_equal_ranges(a: Any, b: Any) -> bool:
    if not isinstance(a, sympy.Interval) or not isinstance(b, sympy.Interval):
        if a == b:
            return True
        difference = a.symmetric_difference(b).is_empty
        if difference is None:
            raise Unread("sets of another kind")
        return bool(difference)
    return (a.left_open, a.right_open) == (b.left_open, b.right_open) and all(map(_are_equal, a.args[:2], b.args[:2]))


def _are_equal_relations(a: Any, b: Any) -> bool:
    if not isinstance(a, sympy.Rel) or not isinstance(b, sympy.Rel):
        if a == b:
            return True
        raise Unread("several relations")
    if isinstance(a, sympy.Eq) != isinstance(b, sympy.Eq) or isinstance(a, sympy.Ne) != isinstance(b, sympy.Ne):
        return False
    if isinstance(a, sympy.Eq | sympy.Ne):
        mine, theirs = a.lhs - a.rhs, b.lhs - b.rhs
    else:
        if (a.rel_op in ("<", ">")) != (b.rel_op in ("<", ">")):
            return False
        mine, theirs = a.gts - a.lts, b.gts - b.lts
    if mine.free_symbols != theirs.free_symbols:
        return False
    ratio, is_equation = sympy.simplify(mine / theirs), isinstance(a, sympy.Eq | sympy.Ne)
    if not ratio.free_symbols:
        return bool(ratio != 0 if is_equation else ratio.is_positive)
    sides = [sympy.fraction(sympy.together(side))[0] if is_equation else side for side in (mine, theirs)]
    if not all(side.is_polynomial() and (is_equation or sympy.total_degree(side) == 1) for side in sides):
        raise Unread("relations of another form")
    if len({frozenset(factor for factor, _ in sympy.factor_list(side)[1]) for side in sides}) == 1:
        raise Unread("relations of another form")
    return False


def _are_equal_numbers(a: Any, b: Any) -> bool:
    if a == b:
        return True
    if a.is_infinite or b.is_infinite:
        return False
    difference = a - b
    symbols = sorted(difference.free_symbols, key=str)
    dice = random.Random(0)
    for _ in range(POINTS if symbols else 1):
        point = {symbol: sympy.Rational(dice.randint(-999, 999), 100) for symbol in symbols}
        size = sympy.Abs(difference.subs(point)).evalf(DIGITS, maxn=1000)
        if size.is_number and size.is_finite and size > sympy.Float(10) ** (10 - DIGITS):
            return False
    if sympy.expand(difference) == 0 or sympy.simplify(difference) == 0:
        return True
    raise Unread("equal as far as computed, and not proven")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
