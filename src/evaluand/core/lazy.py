"""Public names of a package that are loaded on first use, so that importing the package costs next to nothing."""

import importlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, NoReturn, cast


def lazy_names(
    package: str, *, explain: str = "", if_called: str = "", submodules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose public names are defined in other modules.

    The public names, which are also its `__all__`, are those that the package imports as `name as name` under
    `TYPE_CHECKING`: type checkers and editors read the same lines. They are read from the source on first use.

    Args:
        package: the package's `__name__`.
        explain: `module:function` that says what to write for a name that the package does not have, or None.
        if_called: what to write for a call of the package itself, which has the name of a step.
        submodules: modules that are attributes of the package without an import.

    Example:
        >>> get, names = lazy_names("evaluand.store")
        >>> get("MemoryStore").__name__, names() == get("__all__")
        ('MemoryStore', True)
    """

    def get_name(name: str) -> Any:
        homes = read_exports(package)
        if name == "__all__":
            return sorted(homes)
        if name in submodules:
            return importlib.import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_advice(explain, name)}")
        return getattr(importlib.import_module(homes[name]), name)

    if if_called:
        module = sys.modules[package]
        module.__class__ = _Uncallable
        module.__dict__["_if_called"] = if_called
    return get_name, lambda: sorted(read_exports(package))


class _Uncallable(ModuleType):
    """A package that says what to write instead of calling it."""

    def __call__(self, *args: Any, **named: Any) -> NoReturn:
        raise TypeError(f"{self.__name__} is a package and cannot be called; write {self.__dict__['_if_called']}")


def _advice(explain: str, name: str) -> str:
    """What to write for an unknown name; Python itself asks for names with underscores, which have none."""
    if not explain or name.startswith("_"):
        return ""
    module, _, function = explain.partition(":")
    words = getattr(importlib.import_module(module), function)(name)
    return f"; write {words}" if words else ""


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
