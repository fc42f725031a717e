"""Reading JSON files with every fault at once, each by its field and position."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import orjson

from evaluand.errors import DataError, Doubt, Fault, kind_of

Source = str | os.PathLike[str] | TextIO
SYSTEM: Final = "system"
Made = TypeVar("Made")


def load(source: Source, made: Callable[[dict[str, Any], str], Made]) -> Made:
    """What is made of the object in a file, and of what the system is called, after the file.

    Raises:
        DataError: no such file, no JSON object in it, or none that something can be made of.
    """
    name, where, found = _read(source)
    try:
        return made(found, name)
    except DataError as error:
        raise DataError(Fault(f"{where}: {fault.where}", fault.message) for fault in error.faults) from None


def save(document: Mapping[str, Any], dest: Source) -> None:
    """Writes strict JSON: infinite numbers are text. A file is there as a whole or not at all."""
    text = as_text(document)
    if not isinstance(dest, str | os.PathLike):
        dest.write(text)
        return
    path = Path(dest)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def as_text(document: Mapping[str, Any]) -> str:
    """A document as strict JSON."""
    return orjson.dumps(strict(document), option=orjson.OPT_INDENT_2).decode() + "\n"


def strict(value: Any) -> Any:
    """A document whose infinite numbers are text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: strict(each) for key, each in value.items()}
    return [strict(each) for each in value] if isinstance(value, list | tuple) else value


def doubt(message: str) -> None:
    """Tells something that was read all the same."""
    warnings.warn(message, Doubt, stacklevel=4)


def number(value: Any) -> float | None:
    """A number, also as text; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def numbers(values: Any, where: str, faults: list[Fault], low: float, high: float) -> list[float]:
    """A list of numbers within a range; those that are none are noted."""
    if not isinstance(values, list | tuple):
        faults.append(Fault(where, f"must be a list of numbers and is {kind_of(values)}"))
        return []
    found = [number(value) for value in values]
    for place, each in enumerate(found):
        if each is None:
            faults.append(Fault(f"{where}[{place}]", f"{values[place]!r} is no number"))
        elif not low <= each <= high:
            faults.append(Fault(f"{where}[{place}]", f"{each:g} does not lie from {low:g} to {high:g}"))
    return [0.0 if each is None else each for each in found]


def unique_names(given: Any, where: str, n: int | None, faults: list[Fault]) -> list[str]:
    """Names of models; equal ones are numbered, and told."""
    if given is None:
        return [f"model-{place + 1}" for place in range(n or 0)]
    if not isinstance(given, Sequence) or isinstance(given, str):
        faults.append(Fault(where, f"must be a list of names and is {kind_of(given)}"))
        return []
    for place, name in enumerate(given):
        if not isinstance(name, str):
            faults.append(Fault(f"{where}[{place}]", f"{name!r} is no name; write it as text"))
    if n is not None and len(given) != n:
        faults.append(Fault(where, f"has {len(given)} names and there are {n} models"))
    found: list[str] = []
    for name in map(str, given):
        number, free = 2, name
        while free in found or (free != name and free in given):
            free, number = f"{name}-{number}", number + 1
        if free != name:
            doubt(f"{where}: the name {name!r} is there twice; the second model is called {free!r}")
        found.append(free)
    return found


def _read(source: Source) -> tuple[str, str, dict[str, Any]]:
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise DataError(Fault(str(path), "no such file"))
        name, where, text = path.name.removesuffix(".json"), str(path), path.read_bytes()
    else:
        name, where, text = SYSTEM, getattr(source, "name", "the text"), source.read().encode()
    try:
        found = orjson.loads(text.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        found = _with_constants(text)
        if found is None:
            raise DataError(Fault(f"{where}:{error.lineno}:{error.colno}", f"is no JSON: {error.msg}")) from None
    if not isinstance(found, dict):
        raise DataError(Fault(where, f"holds {kind_of(found)} and must hold an object"))
    return name, where, found


def _with_constants(text: bytes) -> Any:
    """JSON with the names NaN and Infinity, which some programs write; None if it is none either."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
