"""Resources: what the page can ask for, by path, the same from a server and from files."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from threading import Lock
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

import orjson

from evaluand.core.errors import NotFound
from evaluand.data.kind import DATASETS
from evaluand.report.facts.base import Facts
from evaluand.store.addresses import Place, local_folder
from evaluand.store.catalog import SEALED_STATUS, Entry
from evaluand.store.folder_store import FolderStore

T = TypeVar("T")


class Cache:
    """The last values that were computed, by key; threads that ask for the same key at once share one computation.

    Args:
        most: how many values are held.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._computing: dict[Hashable, Lock] = {}

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        with self._lock:
            own = self._computing.setdefault(key, Lock())
        try:
            with own:
                with self._lock:
                    if key in self._values:
                        self._values.move_to_end(key)
                        known: T = self._values[key]
                        return known
                value = compute()
                with self._lock:
                    self._values[key] = value
                    while len(self._values) > self._most:
                        self._values.popitem(last=False)
                return value
        finally:
            with self._lock:
                self._computing.pop(key, None)


@dataclass
class Source:
    """The store of a page, and what has been read of it.

    Attributes:
        contents: of results, by their name and the ids behind it.
        columns: of rows, by run and evaluation.
        attributes: of examples, by dataset.
        facts: small facts about finished artifacts, by what they say and the id.
        piece: how many rows a piece has.
        labels: the folder of the files to which labels are appended; None if the page only shows.
        is_published: what is read goes to people who do not have the store.
        orders: in which people label, by what and whom.
        listed: texts of the list about finished artifacts, by their entries.
    """

    store: FolderStore
    piece: int = 50
    labels: Path | None = None
    is_published: bool = False
    contents: Cache = field(default_factory=lambda: Cache(8))
    columns: Cache = field(default_factory=lambda: Cache(16))
    attributes: Cache = field(default_factory=lambda: Cache(4))
    facts: Cache = field(default_factory=lambda: Cache(10_000))
    orders: Cache = field(default_factory=lambda: Cache(8))
    listed: Cache = field(default_factory=lambda: Cache(50_000))

    @property
    def root(self) -> Place:
        """The place of the store as pages name it; only its name where it is published: what is above names people."""
        if not self.is_published:
            return self.store.root
        folder = local_folder(self.store.root)
        return Path(self.store.top.path.name if folder is None else folder.absolute().name)

    def finished(self, *kinds: str) -> list[Entry]:
        """The entries of the finished artifacts of some kinds, newest first within a kind."""
        entries = (entry for kind in kinds for entry in self.store.catalog.entries(kind))
        return [entry for entry in entries if entry["status"] == SEALED_STATUS]

    def list_ids(self, *kinds: str) -> tuple[str, ...]:
        """The ids of the finished artifacts of some kinds: a part of the key of what was computed from all of them."""
        return tuple(sorted(entry["id"] for entry in self.finished(*kinds)))

    def find_dataset_name(self, id: str) -> str | None:
        """The name of a dataset; None if it has none, or is not in the store."""
        try:
            name = self.store.manifest(DATASETS, id).get("name")
        except NotFound:
            return None
        return None if name is None else str(name)


def read_number(text: str, what: str = "row or piece") -> int:
    """A whole number from 0 in a path or a query.

    Raises:
        NotFound: the text is something else.
    """
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
        raise NotFound(f"{text[:_DIGITS]!r} is not the number of a {what}")
    return int(text)


_DIGITS: Final = 12


Content = bytes | Facts | list[Any]


@dataclass(frozen=True)
class Resource:
    """A kind of thing to ask for.

    Attributes:
        pattern: the parts of its path; those in braces are parameters.
        read: the source and the parameters → its content.
        paths: the parameters of all that a store holds, for files; None if only a server can answer.
    """

    pattern: tuple[str, ...]
    read: Callable[..., Content]
    paths: Callable[[Source], Iterator[Mapping[str, str]]] | None = None

    def match(self, parts: list[str]) -> dict[str, str] | None:
        """The parameters of a path; None if it is not of this kind."""
        if len(parts) != len(self.pattern):
            return None
        found = {}
        for own, part in zip(self.pattern, parts, strict=True):
            if own.startswith("{"):
                found[own[1:-1]] = part
            elif own != part:
                return None
        return found

    def format(self, parameters: Mapping[str, str]) -> str:
        """The path with these parameters."""
        parts = [quote(parameters[own[1:-1]], safe="") if own.startswith("{") else own for own in self.pattern]
        return "/".join(parts)


RESOURCES: Final[list[Resource]] = []


Read = TypeVar("Read", bound=Callable[..., Content])


def resource(
    pattern: str, paths: Callable[[Source], Iterator[Mapping[str, str]]] | None = None
) -> Callable[[Read], Read]:
    """Registers a function that reads a resource."""

    def register(read: Read) -> Read:
        RESOURCES.append(Resource(tuple(pattern.split("/")), read, paths))
        return read

    return register


def read_resource(source: Source, path: str, query: Mapping[str, str]) -> bytes:
    """The content of a path: JSON, or binary columns.

    Args:
        path: percent-encoded, so that a name may hold a slash.

    Raises:
        NotFound: there is no such resource.
    """
    parts = [unquote(part) for part in path.split("/")]
    for each in RESOURCES:
        if (parameters := each.match(parts)) is not None:
            content = each.read(source, **parameters, **({"query": query} if _takes_query(each) else {}))
            return content if isinstance(content, bytes) else to_json(content)
    raise NotFound("there is no such page")


def find_resources() -> list[Resource]:
    """All resources, of every module beside this one."""
    package = __name__.rpartition(".")[0]
    for each in iter_modules([os.path.dirname(__file__)]):
        import_module(f"{package}.{each.name}")
    return RESOURCES


def list_paths(source: Source) -> Iterator[str]:
    """The paths of all that a store holds and files can answer, some perhaps twice."""
    for each in find_resources():
        if each.paths is not None:
            yield from (each.format(parameters) for parameters in each.paths(source))
        elif not any(part.startswith("{") for part in each.pattern) and not _takes_query(each):
            yield each.format({})


def _takes_query(resource: Resource) -> bool:
    return "query" in resource.read.__code__.co_varnames[: resource.read.__code__.co_argcount]


def to_json(content: Any) -> bytes:
    """Content as JSON; NaN is null."""
    return orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
