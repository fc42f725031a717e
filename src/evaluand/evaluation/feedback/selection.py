"""The values that a feedback's selectors find in a source, and how they are combined to the arguments of its calls."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evaluand.core.errors import DataError, NotStored
from evaluand.core.redaction import HIDDEN
from evaluand.core.selector import Selector
from evaluand.evaluation.feedback.selector_checks import is_hidden

MOST_CALLS: Final = 100_000
"""The most calls for one source; more combinations are taken for a mistake."""


class Missing(DataError):
    """A selector finds nothing in a source."""


def select_all(
    bound: Mapping[str, Selector], source: Mapping[str, Any], values: Mapping[str, Any]
) -> Mapping[str, Sequence[Any]]:
    """The values of each argument.

    Args:
        bound: argument → its selector.
        values: values of arguments, in place of what their selectors find.

    Raises:
        Missing: a selector finds nothing.
        NotStored: it meets something that was not stored.
    """
    selected = {name: select(name, selector, source) for name, selector in bound.items() if name not in values}
    return selected | {name: [value] for name, value in values.items()} if values else selected


def select(name: str, selector: Selector, source: Mapping[str, Any]) -> list[Any]:
    """The values of one argument; raises what `select_all` raises."""
    try:
        found = selector.require(source)
    except NotStored as error:
        raise NotStored(f"{name}: {error}") from None
    except DataError as error:
        raise Missing(f"{name}: {error}") from None
    if any(type(each) is str and each == HIDDEN for each in found) and is_hidden(selector, source):
        raise NotStored(
            f"{name}: {selector} is an argument named like a credential and was not stored; "
            "record it within keep_credentials()"
        )
    return found


def is_found(selector: Selector, source: Mapping[str, Any]) -> bool:
    """Whether a source has what `if_exists` selects; a NotStored if it had."""
    try:
        selector.require(source)
    except NotStored as error:
        raise NotStored(f"if_exists: {error}") from None
    except DataError:
        return False
    return True


def combine(selected: Mapping[str, Sequence[Any]], combinations: str) -> Iterator[dict[str, Any]]:
    """The arguments of each call, from the values that were selected for each argument."""
    iterate = itertools.product if combinations == "product" or not selected else zip
    return (dict(zip(selected, values, strict=True)) for values in iterate(*selected.values()))


def too_many_calls(selected: Mapping[str, Sequence[Any]], combinations: str) -> str | None:
    """What to do about more calls than `MOST_CALLS`; None where they are fewer."""
    sizes = [len(values) for values in selected.values()]
    n_calls = math.prod(sizes) if combinations == "product" else min(sizes)
    if n_calls <= MOST_CALLS:
        return None
    several = " × ".join(f"{len(values):,} of {name}" for name, values in selected.items() if len(values) > 1)
    zipped = "combine them by zip, " if combinations == "product" and len(selected) > 1 else ""
    hint = f"{zipped}make one list of them with .collect(), or select fewer"
    return f"{n_calls:,} calls ({several}) are more than {MOST_CALLS:,}; {hint}"


def leftover_note(selected: Mapping[str, Sequence[Any]], combinations: str) -> str | None:
    """A note about the values that zip does not use."""
    if combinations == "product" or len({len(values) for values in selected.values()}) < 2:
        return None
    sizes = ", ".join(f"{len(values)} of {name}" for name, values in selected.items())
    return f"zip combines to the end of the shortest: there are {sizes}"
