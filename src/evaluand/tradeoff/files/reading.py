"""Reading score and solution files: the object of a file, and the names of its models."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from evaluand.core.errors import DataError, kind_of, nearest
from evaluand.core.files.json import (
    Findings,
    Node,
    Source,
    Target,
    as_python,
    error_in,
    is_text,
    read_json,
    short_repr,
    source_label,
    write_json,
)

SYSTEM: Final = "system"
"""The name of a system that does not come from a named file."""


class JsonFile(ABC):
    """A JSON file with scores or points of one system."""

    format: ClassVar[str]
    required: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]] = ()
    other_names: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], system: str = SYSTEM) -> Self:
        """The content of a file's JSON object.

        Raises:
            DataError: a field is missing or invalid.
        """
        findings, known = Findings(), (*cls.required, *cls.optional)
        fields = dict(Node.root(document, findings, "the file").value)
        for other, name in cls.other_names.items():
            if name not in fields and other in fields:
                findings.note(other, "other_name", f"is read as {name}, the name in these files")
                fields[name] = fields.pop(other)
        for key in fields:
            if key not in known:
                message = f"is not a field of a {cls.format} file and is ignored{nearest(key, known)}"
                findings.note(key, "unknown_key", message)
        for key in cls.required:
            if key not in fields:
                findings.fault(key, "missing_key", "is missing")
        findings.warn()
        findings.check()
        given: dict[str, Any] = {name.replace("-", "_"): fields[name] for name in known if name in fields}
        return cls(**given | {"system": system})

    @classmethod
    def with_parts(cls, document: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
        """The object with what it says is in other files of the folder."""
        return document

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the file."""

    @classmethod
    def load(cls, source: Source) -> Self:
        """The content of a file, from its path or open text; the system gets the name of the file.

        Raises:
            DataError: there is no such file, or its content does not fit.
            SpecError: `source` is neither a path nor an open file.
        """
        document = read_json(source, extended=True)
        is_path = isinstance(source, str | os.PathLike)
        system = Path(source).name.removesuffix(".json") if is_path else SYSTEM  # type: ignore[arg-type]
        where = source_label(source)
        document = Node.root(document, Findings(), where).value
        try:
            folder = Path(source).parent if is_path else Path.cwd()  # type: ignore[arg-type]
            return cls.from_dict(cls.with_parts(document, folder), system)
        except DataError as error:
            raise error_in(where, error) from None

    def save(self, dest: Target) -> None:
        """Writes the file, to a path or to open text; infinite numbers are the text "Infinity"."""
        write_json(self.to_dict(), dest)


def unique_names(names: Any, where: str, count: int | None, findings: Findings) -> list[str]:
    """The names of models; equal ones are numbered, with a note.

    Args:
        names: a list of texts; `model-1` … if None.
        where: the path of the names, for faults and notes.
        count: how many models there are; None where only the names say so.
    """
    names = as_python(names)
    if names is None:
        return [f"model-{place + 1}" for place in range(count or 0)]
    if not isinstance(names, list | tuple):
        findings.fault(where, "wrong_type", f"must be a list of names, not {kind_of(names)}")
        return []
    for place, name in enumerate(names):
        if not is_text(name):
            findings.fault(f"{where}[{place}]", "wrong_type", f"{short_repr(name)} is not a name; write it as text")
    if count is not None and len(names) != count:
        findings.fault(where, "wrong_length", f"has {len(names)} names for {count} models")
    return _number_repeated(names, where, findings) if all(map(is_text, names)) else [""] * len(names)


def read_items(values: Any, where: str, what: str, findings: Findings) -> list[Any] | None:
    """The items of a list as Python's; None, with a fault, of anything else."""
    values = as_python(values)
    if isinstance(values, list | tuple):
        return [as_python(value) for value in values]
    findings.fault(where, "wrong_type", f"must be {what}, not {kind_of(values)}")
    return None


def _number_repeated(names: Sequence[str], where: str, findings: Findings) -> list[str]:
    taken = set(names)
    renamed: dict[str, list[str]] = {}  # name → the new names of its second and later models
    following: dict[str, int] = {}
    unique: list[str] = []
    for name in names:
        if name not in following:
            following[name] = 2
            unique.append(name)
            continue
        while (free := f"{name}-{following[name]}") in taken:
            following[name] += 1
        taken.add(free)
        renamed.setdefault(name, []).append(free)
        unique.append(free)
    for name, new in renamed.items():
        if len(new) == 1:
            message = f"the name {name!r} occurs twice; the second model is now {new[0]!r}"
        else:
            message = f"the name {name!r} occurs {len(new) + 1} times; the others are now {new[0]!r} to {new[-1]!r}"
        findings.note(where, "twice", message)
    return unique
