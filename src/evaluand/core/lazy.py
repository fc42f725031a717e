"""Public names of a package that are loaded on first use, so that importing the package costs next to nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose public names are defined in other modules.

    The package also imports each name under `TYPE_CHECKING`, for type checkers and editors.

    Args:
        package: the package's `__name__`.
        modules: module → the names it defines; modules are relative to the package.

    Example:
        >>> get, names, _ = lazy_names("json", {"decoder": ["JSONDecoder"]})
        >>> get("JSONDecoder").__name__, names()
        ('JSONDecoder', ['JSONDecoder'])
    """
    homes = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def get_name(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    def list_names() -> list[str]:
        return sorted(homes)

    return get_name, list_names, sorted(homes)
