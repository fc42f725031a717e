"""Makes an image of the system's Python, where none can be fetched: `system_image.py podman NAME`."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

PYTHON = Path("/usr/bin/python3")
PROGRAMS = (PYTHON, Path("/usr/bin/env"), Path("/usr/bin/sleep"))


def main(program: str, name: str) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for link in ("bin", "lib", "lib64"):  # of a system whose programs are all below /usr
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{link}"
            archive.addfile(entry)
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(folder)
        for path in sorted(_files()):
            archive.add(path, str(path).lstrip("/"), recursive=False)
    subprocess.run([program, "import", "-", name], input=stream.getvalue(), check=True)


def _files() -> set[Path]:
    said = subprocess.run([PYTHON, "-c", "import os; print(os.__file__)"], capture_output=True, text=True, check=True)
    library = Path(said.stdout.strip()).parent
    modules = {path for path in library.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    programs = {PYTHON.resolve(), *PROGRAMS}
    return programs | modules | {*_needed([*programs, *library.glob("lib-dynload/*.so")])}


def _needed(programs: Iterable[Path]) -> Iterator[Path]:
    """The libraries that programs are linked with, as files, under the names that they are looked for by."""
    said = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    for name in set(re.findall(r"/\S+\.so\S*(?= \(0x)", said)):
        library = Path(name)
        below = Path("/usr") / library.relative_to("/") if not name.startswith("/usr/") else library
        yield below
        yield library.resolve()


if __name__ == "__main__":
    main(*sys.argv[1:])
