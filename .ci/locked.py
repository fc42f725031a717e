"""Writes what `requirements.lock` pins of evaluand with some extras: `python locked.py http,sklearn`.

`pip install --require-hashes` then installs these files and no others. What needs what is in the comments of the lock.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]).lower()


def direct_names(extras: list[str]) -> set[str]:
    """The packages that evaluand names for itself, its extras and its build."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    known = settings["project"]["optional-dependencies"]
    if unknown := [extra for extra in extras if extra not in known]:
        sys.exit(f"error: evaluand has no extra {unknown[0]!r}; there are {', '.join(known)}")
    names = {name_of(each) for each in [*settings["build-system"]["requires"], *settings["project"]["dependencies"]]}
    for extra in extras:
        for each in known[extra]:
            inner = re.fullmatch(r"evaluand\[(.*)\]", each)
            names |= direct_names(inner[1].split(",")) if inner else {name_of(each)}
    return names


def main(extras: str) -> None:
    text = (ROOT / "requirements.lock").read_text()
    entries = re.findall(r"^[a-z0-9].*?(?=^[a-z0-9]|\Z)", text, re.MULTILINE | re.DOTALL)
    needed = direct_names([extra.strip() for extra in extras.split(",") if extra.strip()])
    size = 0
    while size < len(needed):
        size = len(needed)
        for entry in entries:
            if needed.intersection(re.findall(r"^ +# +(?:via )?([a-z0-9-]+)$", entry, re.MULTILINE)):
                needed.add(name_of(entry))
    sys.stdout.write("".join(entry for entry in entries if name_of(entry) in needed))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
