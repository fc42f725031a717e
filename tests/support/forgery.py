"""Manifests and names as somebody might write them who computes their digests: any value in any place."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from evaluand.core import identity

VALUES: Final[list[Any]] = [
    *(None, True, -1, 0, 1.5, 1e308, 2**63, "", "x", "../../etc/passwd", "x" * 10_000, "0" * 32),
    *([], [[]], [None], ["x"], {}, {"a": {}}, {"x": None}, {"a": ["b"]}),
    *({"$float": "NaN"}, {"$bytes": "cmF3"}, {"$datetime": "2020-01-01T00:00:00"}, {"$int": "9" * 30}),
]
NOTHING: Final = object()  # the key is missing
MORE: Final = object()  # an object has a further key, a list a further item

Place = tuple[str | int, ...]
Forgery = tuple[Path, Place, Any]


def list_forgeries(store: Path) -> list[Forgery]:
    """Every value in every place of every manifest and name, without those that only list versions."""
    files = sorted([*store.glob("*/*/manifest.json"), *store.glob("*/*/open.json"), *store.glob("refs/*.json")])
    return [
        (file.relative_to(store), place, value)
        for file in files
        for place in _list_places(orjson.loads(file.read_bytes()))
        if place != ("seal",) and place[:2] != ("provenance", "packages")
        for value in (*VALUES, NOTHING, MORE)
    ]


def forge(content: bytes, place: Place, value: Any) -> bytes:
    """The content of a manifest with a value in a place, and a digest that matches."""
    manifest = orjson.loads(content)
    holder = manifest
    for key in place[:-1]:
        holder = holder[key]
    if value is NOTHING:
        del holder[place[-1]]
    elif value is not MORE:
        holder[place[-1]] = copy.deepcopy(value)
    elif isinstance(holder[place[-1]], dict):
        holder[place[-1]]["__class__"] = {"$bytes": "cmF3"}
    else:
        holder[place[-1]] = [holder[place[-1]], {"a": {}}]
    return _seal(manifest)


def describe(forgery: Forgery) -> str:
    """A forgery in a line."""
    file, place, value = forgery
    what = "nothing" if value is NOTHING else "more" if value is MORE else repr(value)[:60]
    return f"{file}: {'.'.join(map(str, place))} = {what}"


def _seal(manifest: dict[str, Any]) -> bytes:
    rest = {name: value for name, value in manifest.items() if name != "seal"}
    seal = identity.digest_of_text(identity.canonical_text(rest).encode()).hex()  # of texts that may have any mark
    return orjson.dumps(rest | {"seal": seal})


def _list_places(value: Any, above: Place = ()) -> Iterator[Place]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*above, key)
        yield from _list_places(item, (*above, key))
