"""Packages that load their public names on first use."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.places import ROOT_FOLDER

from evaluand.core.lazy import read_exports

SOURCES = ROOT_FOLDER / "src"
LAZY = sorted(
    ".".join(path.parent.relative_to(SOURCES).parts)
    for path in SOURCES.rglob("__init__.py")
    if "_names(__name__" in path.read_text(encoding="utf-8")
)


def run_python(code: str, folder: Path | str) -> str:
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("package", LAZY)
def test_every_import_for_type_checkers_is_an_exported_name(package: str) -> None:
    module = importlib.import_module(package)
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert set(module.__all__) == set(read_exports(package)) == {*dir(module)}
    assert len(module.__all__) == text.count(" as ", text.index("if TYPE_CHECKING:"))


def test_a_star_import_loads_the_public_names() -> None:
    names = run_python("from evaluand.store import *\nprint(MemoryStore.__name__, 'lazy_names' in globals())", SOURCES)
    assert names.split() == ["MemoryStore", "False"]


def test_names_are_loaded_from_a_zip_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "evaluand.zip", "w") as archive:
        for path in SOURCES.rglob("*.py"):
            archive.write(path, path.relative_to(SOURCES))
    code = "import evaluand\nprint(evaluand.__file__, evaluand.MemoryStore.__name__)"
    where, name = run_python(code, tmp_path / "evaluand.zip").split()
    assert (Path(where).parents[1], name) == (tmp_path / "evaluand.zip", "MemoryStore")


def test_a_package_without_its_source_is_an_error_that_says_so(tmp_path: Path) -> None:
    code = (
        "import py_compile, importlib.machinery as machinery, importlib.util as util\n"
        f"py_compile.compile({str(SOURCES / 'evaluand/store/__init__.py')!r}, {str(tmp_path / 'bare.pyc')!r})\n"
        f"loader = machinery.SourcelessFileLoader('bare', {str(tmp_path / 'bare.pyc')!r})\n"
        "bare = util.module_from_spec(util.spec_from_loader('bare', loader))\n"
        "sys.modules['bare'] = bare\nloader.exec_module(bare)\n"
        "try:\n    bare.Store\nexcept ImportError as error:\n    print(error)"
    )
    assert run_python(code, SOURCES) == "the source of bare is missing; install evaluand with its .py files\n"
