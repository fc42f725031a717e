"""Reading JSON files with every fault at once, each by its field and position."""

from __future__ import annotations

import json
import math
import os
import re
import reprlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TextIO, TypeVar

import orjson

from evaluand.core.errors import DataError, EvaluandWarning, Fault, SpecError, kind_of
from evaluand.core.files.atomic import replaced

Target = str | os.PathLike[str] | TextIO
Source = Target | BinaryIO
SYSTEM: Final = "system"
Made = TypeVar("Made")


def load(source: Source, made: Callable[[dict[str, Any], str], Made]) -> Made:
    """What is made of the object in a file, and of what the system is called, after the file.

    Raises:
        DataError: no such file, no JSON object in it, or none that something can be made of.
        SpecError: it is neither a path nor an open file.
    """
    name, where, found = _read(source)
    try:
        return made(found, name)
    except DataError as error:
        raise DataError(Fault(f"{where}: {fault.where}", fault.message) for fault in error.faults) from None


def save(document: Mapping[str, Any], dest: Target) -> None:
    """Writes strict JSON: infinite numbers are text. A file is there as a whole or not at all.

    Raises:
        SpecError: it is neither a path that can be written nor open text.
    """
    text = as_text(document)
    if not isinstance(dest, str | os.PathLike):
        put(text, dest, "text")
        return
    path = Path(dest)
    try:
        with replaced(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise SpecError(f"{path} cannot be written: {error.strerror}") from None


def put(content: Any, file: Any, form: Literal["text", "bytes"]) -> None:
    """Writes to an open file.

    Raises:
        SpecError: it is none, or open for the other form.
    """
    try:
        file.write(content)
    except (AttributeError, TypeError):
        raise SpecError(f"{shown(file)} is no file that is open for {form}; give one, or a path") from None


def as_text(document: Mapping[str, Any]) -> str:
    """A document as strict JSON."""
    try:
        return orjson.dumps(strict(document), option=orjson.OPT_INDENT_2).decode() + "\n"
    except orjson.JSONEncodeError as error:
        raise DataError(f"cannot be written as JSON: {error}") from None


def strict(value: Any) -> Any:
    """A document whose infinite numbers are text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: strict(each) for key, each in value.items()}
    return [strict(each) for each in value] if isinstance(value, list | tuple) else value


def doubt(message: str) -> None:
    """Tells something that was read all the same."""
    warnings.warn(message, EvaluandWarning, stacklevel=4)


def plain(value: Any) -> Any:
    """What arrays and numbers of NumPy, pandas and the like are in Python."""
    return value.tolist() if hasattr(value, "tolist") else value


def shown(value: Any) -> str:
    """A value within a sentence, however long it is."""
    return _SHORT.repr(value)


def number(value: Any) -> float | None:
    """A number, also as text; None if it is none, or larger than numbers can be."""
    if isinstance(value, bool) or not isinstance(value, Real | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def numbers(values: Any, where: str, faults: list[Fault], low: float, high: float) -> list[float]:
    """A list of numbers within a range; those that are none are noted."""
    values = plain(values)
    if not isinstance(values, list | tuple):
        faults.append(Fault(where, f"must be a list of numbers and is {kind_of(values)}"))
        return []
    found = [value if type(value) is float else number(plain(value)) for value in values]
    for place, each in enumerate(found):
        if each is None:
            faults.append(Fault(f"{where}[{place}]", f"{shown(values[place])} is no number"))
        elif not low <= each <= high:
            faults.append(Fault(f"{where}[{place}]", f"{each:g} does not lie from {low:g} to {high:g}"))
    return [0.0 if each is None else each for each in found]


def is_text(value: Any) -> bool:
    """Whether it is text that can be written, which half a character cannot."""
    return isinstance(value, str) and not _HALF.search(value)


def unique_names(given: Any, where: str, n: int | None, faults: list[Fault]) -> list[str]:
    """Names of models; equal ones are numbered, and told."""
    given = plain(given)
    if given is None:
        return [f"model-{place + 1}" for place in range(n or 0)]
    if not isinstance(given, list | tuple):
        faults.append(Fault(where, f"must be a list of names and is {kind_of(given)}"))
        return []
    for place, name in enumerate(given):
        if not is_text(name):
            faults.append(Fault(f"{where}[{place}]", f"{shown(name)} is no name; write it as text"))
    if n is not None and len(given) != n:
        faults.append(Fault(where, f"has {len(given)} names and there are {n} models"))
    return _numbered(given, where) if all(map(is_text, given)) else [""] * len(given)


def _numbered(given: Sequence[str], where: str) -> list[str]:
    taken = set(given)
    later: dict[str, list[str]] = {}  # of each name, what its models after the first are called
    following: dict[str, int] = {}
    found: list[str] = []
    for name in given:
        if name not in following:
            following[name] = 2
            found.append(name)
            continue
        while (free := f"{name}-{following[name]}") in taken:
            following[name] += 1
        taken.add(free)
        later.setdefault(name, []).append(free)
        found.append(free)
    for name, called in later.items():
        if len(called) == 1:
            doubt(f"{where}: the name {name!r} is there twice; the second model is called {called[0]!r}")
        else:
            told = f"the others are called {called[0]!r} to {called[-1]!r}"
            doubt(f"{where}: the name {name!r} is there {len(called) + 1} times; {told}")
    return found


def _read(source: Source) -> tuple[str, str, dict[str, Any]]:
    if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
        raise SpecError(f"give the path of a file, or an open one, and not {kind_of(source)}")
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise DataError(Fault(str(path), "no such file"))
        name, where = path.name.removesuffix(".json"), str(path)
        text: str | bytes = path.read_bytes()
    else:
        name, where, text = SYSTEM, str(getattr(source, "name", "the text")), b""
    try:
        text = text if isinstance(source, str | os.PathLike) else source.read()
        found = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise DataError(Fault(f"{where}:{error.lineno}:{error.colno}", f"is no JSON: {error.msg}")) from None
    except (ValueError, RecursionError) as error:
        raise DataError(Fault(where, f"is no JSON that can be read: {error}")) from None
    except DataError as error:
        raise DataError(Fault(f"{where}: {fault.where}", fault.message) for fault in error.faults) from None
    return name, where, content(found, where)


def content(document: Any, where: str) -> dict[str, Any]:
    """The fields of a file.

    Raises:
        DataError: it is no object.
    """
    if not isinstance(document, Mapping):
        raise DataError(Fault(where, f"holds {kind_of(document)} and must hold an object"))
    return dict(document)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, no key of which is there twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if not is_text(key):
            raise DataError(Fault(shown(key), "is no text that can be written"))
        if key in found:
            raise DataError(Fault(key, "is there twice in one object"))
        found[key] = value
    return found


_HALF: Final = re.compile(r"[\ud800-\udfff]")
_SHORT: Final = reprlib.Repr()
