"""Rankings: several systems in order, and which of them cannot be distinguished."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def assign_letters(ranked: Sequence[int], differing: Collection[frozenset[int]]) -> dict[int, str]:
    """A compact letter display: two systems share a letter if and only if they cannot be distinguished.

    Each letter denotes a largest set of systems of which no two differ; letters follow the order of the ranking.
    Source: H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise comparisons" (Journal of
    Computational and Graphical Statistics 13, 2004).

    Args:
        ranked: the systems, best first.
        differing: the pairs that differ.

    Example:
        >>> assign_letters([0, 1, 2], [frozenset({0, 2})])
        {0: 'a', 1: 'ab', 2: 'b'}
    """
    sets = [frozenset(ranked)]
    for pair in differing:
        split = [s - {one} for s in sets if pair <= s for one in pair]
        sets = _largest([*(s for s in sets if not pair <= s), *split])
    place = {system: i for i, system in enumerate(ranked)}
    sets.sort(key=lambda s: sorted(place[system] for system in s))
    return {system: "".join(_letter(i) for i, s in enumerate(sets) if system in s) for system in ranked}


def _largest(sets: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    distinct = list(dict.fromkeys(sets))
    return [s for s in distinct if not any(s < other for other in distinct)]


def _letter(number: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[number] if number < 26 else f"({number + 1})"
