"""The page as files, for a folder that is opened from a disk, sent in an archive, or put on any web server.

    index.html           the page; what it shows stands behind `#` in the address
    assets/              its script, style sheet and icon
    data/<path>.js       what a server would answer under /api/<path>
    evaluand-bundle.json that this folder may be replaced by another bundle

A page that is opened from a disk may load scripts from its folder, and nothing else. So data are scripts, each of which
calls the function `evaluand` with its path and its content.
"""

from __future__ import annotations

import base64
import gzip
import os
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from evaluand.core.errors import EvaluandError, SpecError
from evaluand.engine.keyed_work import Tally
from evaluand.report.page.page import ASSETS, page, read_asset
from evaluand.report.page.resources.base import Source, list_paths, read_resource
from evaluand.store.addresses import local_folder

PIECE: Final = 1000
"""Rows in a file: fewer files than the pieces that a server reads on demand."""

POLICY: Final = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:; "
    "base-uri 'none'; form-action 'none'"
)
"""The content security policy. It is in the page because no server sends headers; only files of the bundle may load.

Of a page from a disk Chromium takes `'self'` for every file, but that is not in the standard, by which such a page has
no origin that anything could match; `file:` says it plainly. Of a page from a web server `file:` matches nothing that a
browser would load.
"""

_MARK: Final = "evaluand-bundle.json"
_KNOWN: Final = {"index.html", "assets", "data", _MARK}
_PLAIN: Final = re.compile(r"[^a-z0-9/-]")
_DEVICE: Final = re.compile(r"(^|/)(con|prn|aux|nul|com[0-9]|lpt[0-9])(?=/|$)")
_PART: Final = re.compile(r"[^/]{100}(?=[^/])")


def name_file(path: str) -> str:
    """The name of the file of a path, without its suffix; `fileOf` of the page's script is the same.

    Names of users are parts of paths. No two paths have one file, also where capitals do not count, and no file is
    outside the folder, is a device of Windows, or has a name longer than any disk allows.

    Example:
        >>> name_file("results/support%2Fbase"), name_file("results/..%2F.."), name_file("results/nul")
        ('results/support_25_2_46_base', 'results/_2e__2e__25_2_46__2e__2e_', 'results/nul_')
    """
    plain = _PLAIN.sub(lambda found: f"_{ord(found[0]):x}_", path)
    return _DEVICE.sub(r"\1\2_", _PART.sub(r"\g<0>+/", plain))


@dataclass
class Bundle:
    """What was written.

    Attributes:
        files: how many there are of each kind of resource.
        bytes: of all files.
        unreadable: path → why it could not be read; the page shows the reason too.
    """

    files: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)


def write_bundle(source: Source, folder: Path, tally: Tally) -> Bundle:
    """Writes the page on a store as files; a bundle that is there is replaced once all is written.

    Args:
        source: with pieces of `PIECE` rows.
        tally: counts the files while they are written.

    Raises:
        SpecError: the folder exists and is no bundle, holds files of others, or is in the store.
    """
    above, name = os.path.split(os.path.abspath(folder))
    place = Path(os.path.realpath(above), name)  # a link above it may lead into the store
    _check_replaceable(place, folder)
    stored = local_folder(source.store.root)
    if (stored is not None and place.is_relative_to(os.path.realpath(stored))) or not place.name:
        raise SpecError(f"{folder}: is in the store; name a folder beside it")
    place.parent.mkdir(parents=True, exist_ok=True)
    published = Source(source.store, source.piece, is_published=True)
    temporary = place.with_name(f".{place.name[:100]}-{secrets.token_hex(4)}.tmp")
    temporary.mkdir()
    try:
        written = _write(published, temporary, tally)
        _check_replaceable(place, folder)  # it may have been made meanwhile
        _put_in_place(temporary, place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return written


def _check_replaceable(place: Path, shown: Path) -> None:
    if not os.path.lexists(place):
        return
    if place.is_symlink() or not place.is_dir():
        raise SpecError(f"{shown}: is no folder; name one that does not exist yet")
    names = {entry.name for entry in os.scandir(place)}
    if names and _MARK not in names:
        raise SpecError(f"{shown}: exists and is not a bundle; name a folder that does not exist yet")
    if others := sorted(names - _KNOWN):
        raise SpecError(f"{shown}: also holds {others[0]!r}, which would be lost; move it, or name another folder")


def _put_in_place(temporary: Path, place: Path) -> None:
    if not place.exists():
        temporary.rename(place)
        return
    old = place.with_name(f"{temporary.name}.old")
    place.rename(old)
    try:
        temporary.rename(place)
    except OSError:
        with suppress(OSError):
            old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _write(source: Source, folder: Path, tally: Tally) -> Bundle:
    bundle = Bundle()

    def put(name: str, content: bytes) -> None:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        bundle.bytes += len(content)

    for path in _list_all(source, tally):
        name, content = f"data/{name_file(path)}.js", _read(source, path, bundle)
        put(name, content)
        bundle.files[path.partition("/")[0]] += 1
        tally.called += 1
    for asset in ASSETS:
        put(f"assets/{asset}", read_asset(asset))
    meta = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    facts = {"kind": "files", "address": "hash"}
    put("index.html", page("assets/", "data/", facts, meta).encode())
    put(_MARK, orjson.dumps({"format": 1, "files": dict(bundle.files)}))
    return bundle


def _list_all(source: Source, tally: Tally) -> Iterator[str]:
    """Every path once; the number of all is known before the first is read."""
    paths = [*dict.fromkeys(list_paths(source))]
    tally.total = len(paths)
    yield from paths


def _read(source: Source, path: str, bundle: Bundle) -> bytes:
    """The script of a path: with its content, or with the reason why there is none."""
    try:
        content = base64.b64encode(gzip.compress(read_resource(source, path, {}), 6, mtime=0))
    except EvaluandError as error:
        reason = bundle.unreadable[path] = str(error).replace(str(source.store.top.path), str(source.root))
        return b"evaluand(%b, null, %b);\n" % (_quote(path), _quote(reason))
    return b'evaluand(%b, "%b");\n' % (_quote(path), content)


def _quote(text: str) -> bytes:
    return orjson.dumps(text)
