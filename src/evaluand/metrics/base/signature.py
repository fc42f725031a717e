"""What metrics' signatures say, and what tells metrics of one kind apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

_WORD = re.compile(r'interval=\S+ \S+\Z|(?:"(?:[^"\\]|\\.)*"|[^\s"])+')


_UNBOUNDED = "(-inf,inf)"
"""The range of what declares none, which tells nothing."""


def words_of(signature: str) -> dict[str, str]:
    """What a signature says: name → value as it is written there; the version has no name.

    Example:
        >>> words_of("f_beta v1 tag=PER interval=wilson 95%")
        {'': 'v1', 'tag': 'PER', 'interval': 'wilson 95%'}
    """
    pairs = (word.partition("=") for word in _WORD.findall(signature)[1:])
    return {name if sign else "": value if sign else name for name, sign, value in pairs}


def told_apart(signatures: Sequence[str]) -> dict[str, dict[str, str]]:
    """Signature → the words that tell it from the others of its kind, which these are.

    What most of these have in common, and what some of them leave out, is not said of those that have it, or leave it
    out: so no two are told by the same words. Of how many answers a metric tells, its `k`, is always said.

    Example:
        >>> told_apart(["f_beta v1 average=micro", "f_beta v1 average=micro tag=A", "f_beta v1 average=macro"])
        {'f_beta v1 average=micro': {}, 'f_beta v1 average=micro tag=A': {'tag': 'A'}, 'f_beta v1 average=macro': \
{'average': 'macro'}}
    """
    words = {s: {n: w for n, w in words_of(s).items() if w != _UNBOUNDED} for s in signatures}
    return {signature: _apart(own, list(words.values())) for signature, own in words.items()}


def _apart(words: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> dict[str, str]:
    held = {name: Counter(other.get(name) for other in others) for name in words}
    return {n: w for n, w in words.items() if n == "k" or None in held[n] or held[n][w] * 2 <= len(others)}
