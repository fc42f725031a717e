"""Public names of a package that are loaded on first use, so that importing the package costs next to nothing."""

import importlib
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, cast


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names are defined in other modules.

    The public names, which are also its `__all__`, are those that the package imports as `name as name` under
    `TYPE_CHECKING`: type checkers and editors read the same lines. They are read from the source on first use.

    Args:
        package: the package's `__name__`.

    Example:
        >>> get, names = lazy_names("evaluand.store")
        >>> get("MemoryStore").__name__, names() == get("__all__")
        ('MemoryStore', True)
    """

    def get_name(name: str) -> Any:
        homes = read_exports(package)
        if name == "__all__":
            return sorted(homes)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return get_name, lambda: sorted(read_exports(package))


@cache
def read_exports(package: str) -> dict[str, str]:
    """Name → the module that defines it, for the names that a package exports under `TYPE_CHECKING`.

    Raises:
        ImportError: the package was installed without its source.
    """
    import ast  # only when a name is used: `import evaluand` answers at once

    source = cast(Any, sys.modules[package].__loader__).get_source(package)
    if source is None:
        raise ImportError(f"the source of {package} is missing; install evaluand with its .py files")
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    return {
        alias.name: cast(str, node.module)
        for block in blocks
        if ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == alias.asname
    }
