"""Lets Arrow use pandas once somebody has imported it, and not before.

With the first value that it converts (`pa.array`, `pa.scalar`, and so `pc.equal(column, 1)`), Arrow imports pandas, to
ask whether the value is one of pandas: 0.2 s and 40 MiB in each process (https://github.com/apache/arrow/issues/34994).
It asks once. So it is made to ask as soon as it is imported, in vain, and again when somebody has imported pandas.
Until then it reads times in nanoseconds as it does where pandas is not installed.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType

_asking: set[int] = set()  # threads in which Arrow looks for pandas


def keep_pandas_waiting() -> None:
    """Keeps Arrow from importing pandas, from now on."""
    sys.meta_path.insert(0, _Finder())
    _ask("pyarrow")


class _Finder:
    """Finds Arrow and pandas as the finders behind it do, and has Arrow ask when they have been loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in ("pandas", "pyarrow"):
            return None
        if get_ident() in _asking:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in behind)), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_ask(module: ModuleType) -> None:
                load(module)
                _ask(name)

            spec.loader.exec_module = load_and_ask  # type: ignore[method-assign]
        return spec


def _ask(loaded: str) -> None:
    """Has Arrow look for pandas when one of the two has been loaded: in vain unless that is pandas."""
    if "pyarrow" not in sys.modules:
        return
    import pyarrow as pa

    if loaded == "pandas":
        with suppress(ImportError):  # Arrow needs a later version of pandas
            pa.nulls(0).to_pandas()
    elif "pandas" not in sys.modules:
        _asking.add(get_ident())
        pa.array([])
        _asking.remove(get_ident())
