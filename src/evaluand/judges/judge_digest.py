"""The digest of a judge; a card is valid for one digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from evaluand.core import identity

ADDRESS: Final = "address"
"""The part of a judge with the address of a model without a declared version; it is no part of its identity."""

_ASKED: Final = "asked"


def digest_judge(spec: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """32 hexadecimal digits: a hash of all that may change a verdict.

    It covers the complete identity, such as kind, version, rubrics, models and variables. For a model without a version
    it covers the address too, because the same name may stand for another model at another address.

    Args:
        spec: the identity of the judge, as in manifests.
        parts: the parts of the judge, as in its identity.

    Example:
        >>> judge = {"kind": "judge", "version": 1, "judge": "3f2a", "variables": {}}
        >>> digest_judge(judge, {}) == digest_judge({**judge, "variables": {"context": "output.passages"}}, {})
        False
    """
    covered = (_ASKED,) if "judge" in spec else ()  # whose digest is `judge`, whatever the order of a jury's members
    bound = {name: value for name, value in spec.items() if name not in covered}
    return identity.digest([bound, parts.get(ADDRESS)]).hex()


def digest_tree(nodes: Iterable[tuple[str | None, Mapping[str, Any], Mapping[str, Any]]]) -> str:
    """32 hexadecimal digits: a hash of the questions of a tree.

    Args:
        nodes: of each question its name, what is asked, and verdict → the name of the next one or the score.
    """
    return identity.digest([[name, {**asked, "then": then}] for name, asked, then in nodes]).hex()


def questions_of(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a judge asks and whom, in its identity: of each question the digest of its rubric, model and options.

    Empty for scorers that are no judges, and for subclasses, which may ask in other ways.
    """
    asked = spec.get(_ASKED)
    return [each for each in asked if isinstance(each, Mapping)] if isinstance(asked, list) else []
