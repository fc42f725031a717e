"""Names of a package that are loaded on first use, and what is said of names that are not there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any


def looked_up(package: str, name: str, modules: Mapping[str, str], instead: Mapping[str, str]) -> Any:
    """What a name of a package stands for; called by `__getattr__` of the package itself.

    Args:
        package: the package.
        name: the name that is asked for.
        modules: name → module that has it.
        instead: name that is not there → what does its work.

    Raises:
        ImportError, AttributeError: there is no such name; as the name was asked for.
    """
    if name in instead:
        importing = sys._getframe(2).f_globals.get("__name__") == "importlib._bootstrap"  # by `from … import …`
        raise (ImportError if importing else AttributeError)(f"{name} is not in {package}: {instead[name]}")
    if name not in modules:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(importlib.import_module(modules[name]), name)
