"""Lets Arrow use pandas once somebody has imported it, and not before.

With the first value that it converts (`pa.array`, `pa.scalar`, and so `pc.equal(column, 1)`), Arrow imports pandas, to
ask whether the value is one of pandas: 0.2 s and 40 MiB in each process (https://github.com/apache/arrow/issues/34994).
It asks once. So it is made to ask as soon as it is imported, in vain, and again when somebody has imported pandas.
Until then it reads times in nanoseconds as it does where pandas is not installed.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType
from typing import Any

_asking: set[int] = set()  # threads in which Arrow looks for pandas


def keep_pandas_waiting() -> None:
    """Keeps Arrow from importing pandas, from now on."""
    sys.meta_path.insert(0, _Finder())
    _ask("pyarrow")


class _Finder:
    """Finds Arrow and pandas as the finders behind it do, and has Arrow ask when they have been loaded."""

    def find_spec(self, name: str, *where: Any) -> ModuleSpec | None:
        if name not in ("pandas", "pyarrow"):
            return None
        if get_ident() in _asking:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return find_behind(self, lambda module: _ask(name), name, *where)


def _ask(loaded: str) -> None:
    """Has Arrow look for pandas when one of the two has been loaded: in vain unless that is pandas."""
    pa: Any = sys.modules.get("pyarrow")
    if pa and loaded == "pandas":
        with suppress(ImportError):  # Arrow needs a later version of pandas
            pa.nulls(0).to_pandas()
    elif pa and "pandas" not in sys.modules:
        _asking.add(get_ident())
        try:
            pa.array([])
        finally:
            _asking.remove(get_ident())


def find_behind(finder: object, then: Callable[[ModuleType], None], name: str, *where: Any) -> ModuleSpec | None:
    """The spec of a module as the other finders find it; once the module has been loaded, `then` is called with it."""
    others = (other for other in sys.meta_path if other is not finder and hasattr(other, "find_spec"))
    spec = next((spec for other in others if (spec := other.find_spec(name, *where)) is not None), None)
    loader: Any = spec and spec.loader
    if loader is not None:
        load = loader.exec_module

        def load_and_call(module: ModuleType) -> None:
            del loader.exec_module
            load(module)
            then(module)

        with suppress(AttributeError):  # a loader without attributes
            loader.exec_module = load_and_call
    return spec
