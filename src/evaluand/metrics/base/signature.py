"""Write and read metric signatures, and find the parameters that distinguish metrics of one kind."""

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from evaluand.core.identity import decode, encode

_WORD = re.compile(r'interval=\S+ \S+\Z|(?:"(?:[^"\\]|\\.)*"|[^\s"])+')
_UNBOUNDED = "(-inf,inf)"
"""The range of a metric that declares none."""

_BARE_WORD = re.compile(r"(?!(?:true|false|null|inf|nan)\Z)[A-Za-z_][A-Za-z0-9_]*")


def encode_word(value: Any) -> str:
    """A parameter value as a word that no other value is written as."""
    if isinstance(value, str) and _BARE_WORD.fullmatch(value):
        return value
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, list | tuple):
        return f"({','.join(encode_word(item) for item in value)})"
    return encode(value).decode()


def with_condition(signature: str, where: str) -> str:
    """The signature of a metric of the rows that match a condition only.

    Example:
        >>> with_condition("accuracy v1 interval=wilson 95%", "age > 30")
        'accuracy v1 where="age > 30" interval=wilson 95%'
    """
    head, interval, level = signature.partition(" interval=")
    return f"{head} where={encode(where).decode()}{interval}{level}"


def condition_of(signature: str) -> str | None:
    """The condition of the rows that a signature states; None for all rows."""
    word = words_of(signature).get("where")
    return None if word is None else str(decode(word))


def format_percent(confidence: float) -> str:
    """A confidence as signatures write it.

    Example:
        >>> format_percent(0.95), format_percent(0.999)
        ('95%', '99.9%')
    """
    text = f"{Decimal(repr(confidence)) * 100:f}"
    return f"{text.rstrip('0').rstrip('.')}%"


def words_of(signature: str) -> dict[str, str]:
    """Parameter name → value as written in a signature; the version has an empty name.

    Example:
        >>> words_of("f_beta v1 tag=PER interval=wilson 95%")
        {'': 'v1', 'tag': 'PER', 'interval': 'wilson 95%'}
    """
    pairs = (word.partition("=") for word in _WORD.findall(signature)[1:])
    return {name if sign else "": value if sign else name for name, sign, value in pairs}


def distinguishing_words(signatures: Sequence[str]) -> dict[str, dict[str, str]]:
    """Signature → the parameters that distinguish it from the other signatures of its kind.

    A parameter that most signatures share, or that some omit, is not listed for those that share, or omit, it; so no
    two signatures have the same parameters. `k`, the number of answers that a metric looks at, and
    `where`, the condition of its rows, are always listed.

    Args:
        signatures: all signatures of one kind.

    Example:
        >>> distinguishing_words(["f_beta v1 beta=1", "f_beta v1 beta=1 tag=A", "f_beta v1 beta=2"])
        {'f_beta v1 beta=1': {}, 'f_beta v1 beta=1 tag=A': {'tag': 'A'}, 'f_beta v1 beta=2': {'beta': '2'}}
    """
    words = {s: {n: w for n, w in words_of(s).items() if w != _UNBOUNDED} for s in signatures}
    names = {name for own in words.values() for name in own}
    often = {name: Counter(own.get(name) for own in words.values()) for name in names}
    listed = {name for name in names if name in ("k", "where") or None in often[name]}
    return {
        signature: {n: w for n, w in own.items() if n in listed or often[n][w] * 2 <= len(words)}
        for signature, own in words.items()
    }
