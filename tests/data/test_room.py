"""What the packages of the room export, and what importing them costs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PACKAGES = ("evaluand.data", "evaluand.data.adapters", "evaluand.data.schema")


def test_importing_the_room_loads_no_heavy_library() -> None:
    code = f"import sys, {', '.join(PACKAGES)}\nprint(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(result.stdout.split()).isdisjoint({"numpy", "pyarrow", "pydantic"})


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_loaded_on_first_use(package: str) -> None:
    module = importlib.import_module(package)
    assert dir(module) == module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name
