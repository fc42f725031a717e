"""Code that is written to a file, loaded and fingerprinted."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

from evaluand.core.fingerprint import Fingerprint, fingerprint


def load(folder: Path, source: str, name: str = "app") -> ModuleType:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(dedent(source))
    return load_path(path)


def load_path(path: Path, module_name: str = "evaluand_test_module") -> ModuleType:
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of(folder: Path, source: str, name: str = "answer") -> Fingerprint:
    return fingerprint(getattr(load(folder, source), name))


def executed(source: str, **names: Any) -> Any:
    """What `answer` is in code that has no file."""
    namespace: dict[str, Any] = {"__name__": "session", **names}
    exec(source, namespace)
    return namespace["answer"]
