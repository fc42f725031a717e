"""Public names of an interop package: loaded on first use, with advice for foreign names that it does not offer."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaluand.core.lazy import lazy_names


def interop_names(
    package: str, replacements: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package of foreign names; `replacements` maps advice → names it does not offer.

    Importing such a name raises `ImportError`, and reading it as an attribute `AttributeError`, both with the advice.
    """
    get_name, list_names = lazy_names(package)
    advice = advice_by_name(replacements)

    def get_interop_name(name: str) -> Any:
        if name in advice:
            importing = sys._getframe(1).f_globals.get("__name__") == "importlib._bootstrap"  # by `from … import …`
            raise (ImportError if importing else AttributeError)(f"{name} is not in {package}: {advice[name]}")
        return get_name(name)

    return get_interop_name, list_names


def advice_by_name(replacements: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Foreign name → what to use instead."""
    return {name: advice for advice, names in replacements.items() for name in names}
