"""Proves the wheel, in the folder named last: `build` and `try` of `make wheel`.

`build` makes it and the source distribution twice, of copies of the checkout with other times and rights, and compares
them; `try` calls the first command of the README with the `evaluand` that was installed from the wheel.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from support.pages import blocks_of, compare_output
from support.places import ROOT_FOLDER


def build(folder: Path) -> None:
    """Leaves the wheel in the folder."""
    first = _build_copy(folder, time=1_500_000_000, umask=0o022)
    second = _build_copy(folder, time=1_700_000_000, umask=0o077)
    names = sorted(path.name for path in first.iterdir())
    same, *_ = filecmp.cmpfiles(first, second, names, shallow=False)
    if names != sorted(path.name for path in second.iterdir()) or same != names:
        raise SystemExit(f"two builds of one checkout differ: compare {first} with {second}")
    [wheel], [_sdist] = first.glob("*.whl"), first.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {str(path.relative_to(ROOT_FOLDER / "src")) for path in (ROOT_FOLDER / "src").rglob("*") if path.is_file()}
    differing = names ^ {name for name in files if "__pycache__" not in name}
    if differing:
        raise SystemExit(f"only in the wheel, or only in src: {', '.join(sorted(differing))}")
    shutil.copy(wheel, folder)
    shutil.rmtree(folder / "copy")


def _build_copy(folder: Path, *, time: int, umask: int) -> Path:
    """The folder with what hatchling builds of a copy of the checkout, whose files have a time and rights."""
    copy, built = folder / "copy", folder / f"built-{umask:o}"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in ("src", "docs", "examples", "benchmarks", "tests"):
        shutil.copytree(ROOT_FOLDER / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".evaluand*"))
    files = ("hatch_build.py", "pyproject.toml", "Makefile", "LICENSE", "requirements.lock")
    for path in (*(ROOT_FOLDER / name for name in files), *ROOT_FOLDER.glob("*.md")):
        shutil.copy(path, copy)
    for path in copy.rglob("*"):
        os.utime(path, (time, time))
        path.chmod(0o777 & ~umask if path.is_dir() else 0o666 & ~umask)
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(built.resolve())]
    subprocess.run(command, cwd=copy, env=environment, check=True, capture_output=True)
    return built


def try_out(folder: Path) -> None:
    """Calls the first command of the README in a new folder, and compares what it prints with the page."""
    [data, command, output] = blocks_of("README.md")[:3]
    work = folder / "work"
    work.mkdir()
    assert data.file is not None
    (work / data.file).write_text(data.text, encoding="utf-8")
    environment = {
        "PATH": f"{folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "120",
        "HOME": str(work),
    }
    done = subprocess.run(
        command.text, shell=True, cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    compare_output(output.text, done.stdout, "README.md")


if __name__ == "__main__":
    {"build": build, "try": try_out}[sys.argv[1]](Path(sys.argv[2]).resolve())
