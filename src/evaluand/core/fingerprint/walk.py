"""The traversal: every value reached becomes a token, and every value with a separate identity becomes a part.

Data are read by value; other objects by what copying them would read, so that nothing is pickled and nothing is run
that the object does not offer for this. Containers are read in place up to a depth, deeper ones and objects when their
turn in the queue comes.
"""

from __future__ import annotations

import asyncio
import copyreg
import datetime as dt
import decimal
import enum
import logging
import os
import random
import sys
import threading
import types
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from typing import Any

from evaluand.core import identity
from evaluand.core.errors import DataError
from evaluand.core.fingerprint.code import Code
from evaluand.core.fingerprint.facts import CodeFacts, Fingerprint
from evaluand.core.fingerprint.files import Files, is_text_or_path, name_token
from evaluand.core.fingerprint.homes import Home, Homes
from evaluand.core.fingerprint.lookup import Lookup
from evaluand.core.fingerprint.order import hash_seed
from evaluand.core.fingerprint.parts import Parts, Place
from evaluand.core.fingerprint.plain import plain_data
from evaluand.core.fingerprint.secrets import EnvironmentSecrets
from evaluand.core.fingerprint.tokens import leaf, mix, of_integer
from evaluand.core.fingerprint.wrapping import (
    cached_properties,
    declared_files,
    is_a,
    is_code,
    is_function,
    module_of,
    name_of,
)
from evaluand.core.system import working_folder

FORMAT = b"2"  # of the rules in this package; a new one makes every fingerprint a new one
CHANGING = "gives something else each time it is used"
MAX_INLINE = 50  # containers inside one another before the rest waits in the queue

_TIMES = (dt.datetime, dt.date, dt.time, dt.timedelta)
_SCALARS = frozenset((type(None), bool, int, float, bytes, bytearray, *_TIMES, decimal.Decimal, uuid.UUID))
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset, types.MappingProxyType))
# provenance, how a value came to be set, and an address in memory
_UNSTATED = frozenset(("_sklearn_version", "__pydantic_fields_set__", "_stop_words_id"))
_UNSTATED_BY_LIBRARY: Mapping[str, frozenset[str]] = {
    library: frozenset(names.split())
    for library, names in {
        "jinja2": "cache",  # what has been loaded so far
        # the rest: who has used a lock or client so far, what is open, and what was set up at the first request
        "aiohttp": (
            "_acquired _acquired_per_host _cached_hosts _cleanup_closed_handle _cleanup_handle _conns _loop "
            "_resolve_host_tasks _throttle_dns_futures _waiters"
        ),
        "anthropic": "_lazy_tracer _platform",
        "asyncio": "_loop _waiters",
        "google": "_aiohttp_session_lock _aiohttp_sessions",
        "groq": "_platform",
        "http": "_now",  # when a jar of cookies was used
        "httpcore": "_anyio_event _anyio_lock _backend _connections _requests",
        "httpcore2": "_anyio_event _anyio_lock _backend _connections _requests",
        "httpx": "_state",
        "httpx2": "_next_expiry _state",
        "huggingface_hub": "_async_client exit_stack",
        "mistralai": (
            "_telemetry_auto_disabled agents audio batch beta chat classifiers embeddings events files fim models ocr "
            "realtime responses workflows"
        ),
        "openai": "_platform",
        "together": "_platform",
    }.items()
}
_RUNNING = (  # whose state says who runs and who waits
    *(asyncio.AbstractEventLoop, asyncio.BaseTransport, asyncio.Future, futures.Executor, threading.Thread),
    *(threading.Barrier, threading.Condition, threading.Event, threading.Semaphore),
)


class Walk:
    """One traversal.

    Args:
        ignores_changes: whether what the code itself changes counts as it was when this process first read it.
    """

    def __init__(self, seeds_estimators: bool = False, ignores_changes: bool = False) -> None:
        cwd = working_folder()
        self.parts = Parts()
        self.homes = Homes(cwd)
        self.files = Files(cwd)
        self.lookup = Lookup(self.homes, self.parts.unpinned, seeds_estimators)
        self.secrets = EnvironmentSecrets()
        self.ignores_changes = ignores_changes
        self.code = Code(self)
        self._open: set[int] = set()
        self._cyclic = False

    def run(self, obj: object, files: Sequence[str | os.PathLike[str]] = (), home: Home | None = None) -> Fingerprint:
        """The fingerprint of one object; its home is an argument where the object does not show it."""
        home = home or self.homes.of(obj)
        self.lookup.root = obj
        root = self._root(obj, home)
        self.parts.read()
        self.lookup.settle(bool(files))
        for file in files:
            self.files.declare(os.fspath(file), home)
        return self._result(root, home)

    def _root(self, obj: object, home: Home) -> bytes:
        name = name_of(obj)
        place = Place(name, f"{home.stem}.{name}", home)
        if is_a(obj, types.FunctionType, type):
            if home.ours:
                return self.value(obj, place)
        elif is_code(obj) or is_a(obj, types.MethodType):
            name = f"{type(obj).__name__}({name})"
        elif not is_a(obj, types.BuiltinFunctionType):
            name = f"{name}()"
        return self.parts.part(object(), name, f"{home.stem}.{name}", home, lambda at: self.value(obj, at))

    def _result(self, root: bytes, home: Home) -> Fingerprint:
        parts, found = self.parts.digests(), self.files.found
        named = [leaf("label", label.encode()) + token for label, _, token in parts]
        files = [leaf("file", f"{name}\0{content}".encode()) for name, content in sorted(found.values())]
        order = [leaf("hash seed", str(hash_seed()).encode())] if self.lookup.ordered_by_hash else []
        order += [leaf("optimize", bytes(sys.flags.optimize))] if sys.flags.optimize else []  # which skips assertions
        digest = mix("fingerprint", leaf("format", FORMAT), root, mix("parts", *named), mix("files", *files), *order)
        unpinned = tuple(self.parts.unpinned.values())
        return Fingerprint(
            digest.hex(),
            not unpinned,
            unpinned,
            {shown: token.hex() for _, shown, token in parts},
            {shown: content for shown, (_, content) in sorted(found.items())},
            CodeFacts(
                home.folder,
                self.lookup.libraries,
                self.lookup.keeps,
                modules=self.homes.files() | self.lookup.caching,
            ),
        )

    # -- values

    def value(self, value: Any, place: Place) -> bytes:
        """The token of anything; what it refers to is queued."""
        kind = type(value)
        if is_text_or_path(value):
            return name_token(self.secrets.hide(value), place.home.folder)
        if kind is int:
            return of_integer(value)
        if kind in _SCALARS:
            return leaf("data", identity.encode(value))
        if kind not in _CONTAINERS and (is_code(value) or is_function(value)):
            self.lookup.value(value, place)
        known = self.parts.known(value)
        if known is not None:
            return known
        if kind in _CONTAINERS:
            return self._container(value, place)
        for file in declared_files(value):
            self.lookup.declared(value)
            self.files.declare(os.fspath(file), self.homes.of(value))
        return self.code.token(value, place) or self._object(value, place)

    def variable(self, owner: Any, name: str, value: Any, place: Place) -> bytes:
        """The token of the value of a variable or attribute."""
        if not self.ignores_changes or is_code(value):
            return self.value(value, place)

        def content() -> bytes:
            is_changed = name in self.lookup.changed
            return _first_token(owner, name, value, place) if is_changed else self.value(value, place)

        return self.parts.last(place, content)

    def _container(self, value: Any, place: Place) -> bytes:
        if id(value) in self._open:
            raise _Cycle
        if self._cyclic or len(self._open) >= MAX_INLINE:
            return self._later(value, place, self._cyclic)
        plain = plain_data(value, self.secrets)
        if plain is not None:
            return self.parts.know(value, plain)
        outermost = not self._open
        self._open.add(id(value))
        try:
            token = self._items(value, place)
        except _Cycle:
            if not outermost:
                raise
            return self._later(value, place, cyclic=True)
        finally:
            self._open.discard(id(value))
        return self.parts.know(value, token)

    def _items(self, value: Any, place: Place) -> bytes:
        kind = type(value)
        if kind is list or kind is tuple:
            return mix(kind.__name__, *(self._item(value, item, i, place) for i, item in enumerate(value)))
        if kind is set or kind is frozenset:
            ordered = sorted(value, key=lambda item: _order(item, place.home))
            return mix("set", *(self._item(value, item, i, place) for i, item in enumerate(ordered)))
        pairs = ((self._item(value, key, "key", place), key, item) for key, item in value.items())
        return mix("dict", *(token + self._item(value, item, key, place) for token, key, item in pairs))

    def _item(self, owner: object, item: Any, key: object, place: Place) -> bytes:
        if type(item) is str or type(item) in _SCALARS:
            return self.value(item, place)
        step = repr(key) if is_a(key, str, int) else "..."
        return self.value(item, place.inside(owner, f"[{step[:40]}]"))

    def _object(self, value: Any, place: Place) -> bytes:
        kind = type(value)
        if issubclass(kind, enum.Enum):
            return mix("enum", self.value(kind, place), self.value(value._value_, place))
        if issubclass(kind, logging.Logger | logging.LoggerAdapter):
            return leaf("logger", b"")
        if issubclass(kind, _RUNNING):  # which refer to all that runs in this process
            return self.parts.opaque(value, place)
        if module_of(kind) == "numpy" and hasattr(value, "dtype") and hasattr(value, "tobytes"):
            return self._array(value, place)
        if issubclass(kind, random.Random) or hasattr(kind, "__next__") or module_of(kind).startswith("numpy.random"):
            return self.parts.opaque(value, place, CHANGING)
        if self.code.is_unread(value):
            self.lookup.value(kind, place)
            return leaf("unread", f"{kind.__module__}.{kind.__qualname__}".encode())
        return self._later(value, place)

    def _array(self, value: Any, place: Place) -> bytes:
        head = leaf("array", f"{type(value).__name__}{value.dtype.str}{value.shape}".encode())
        if value.dtype.names:  # field by field: the bytes between fields are undefined
            fields = [leaf("field", n.encode()) + self._array(value[n], place) for n in value.dtype.names]
            return mix("structured", head, *fields)
        if value.dtype.hasobject:
            return mix("objects", head, self.value(value.tolist(), place))
        try:
            raw: Any = value.data.cast("B")
        except (AttributeError, TypeError, ValueError):  # scalars, views with gaps, dates
            raw = value.tobytes()
        return mix("array", head, leaf("bytes", raw))

    # -- instances

    def _later(self, value: object, place: Place, cyclic: bool = False) -> bytes:
        return self.parts.later(value, place, lambda: self._read(value, place, cyclic))

    def _read(self, value: Any, place: Place, cyclic: bool) -> bytes:
        self._cyclic = cyclic
        try:
            return self._items(value, place) if type(value) in _CONTAINERS else self._state(value, place)
        finally:
            self._cyclic = False

    def _state(self, value: Any, place: Place) -> bytes:
        kind = type(value)
        if issubclass(kind, set | frozenset):
            return mix("set of", self.value(kind, place), self._items(frozenset(value), place))
        self.lookup.instance(value, place)
        try:
            declared = getattr(kind, "__fingerprint__", None)
            state = declared(value) if declared else _reduce(value)
        except Exception:  # whatever objects raise when asked for their state
            return self.parts.opaque(value, place)
        if declared:
            state = self.value(state, place.inside(value, ".__fingerprint__()"))
            return mix("declared", self.value(kind, place), state)
        if isinstance(state, str):
            return leaf("global", f"{self._package(value)}{state}".encode())
        return self._reduced(value, state, place)

    def _reduced(self, value: Any, reduced: tuple[Any, ...], place: Place) -> bytes:
        make, arguments, state, items, pairs = reduced
        made = [self.value(make, place), self.value(arguments, place.inside(value, ""))]
        entries = [self._item(value, item, i, place) for i, item in enumerate(items)]
        entries += [self.value(key, place) + self._item(value, item, key, place) for key, item in pairs]
        own = self.value(type(value), place)
        return mix("instance", own, *made, self._attributes(value, state, place), *entries)

    def _package(self, value: Any) -> str:
        """The module of something known by name, without the name under which one of ours was loaded."""
        try:
            module = sys.modules.get(value.__module__)
        except Exception:  # attributes may run code
            return ""
        name = module.__name__ if module else ""
        return f"{name}." if module and not self.homes.of(module).ours else ""

    def _attributes(self, value: Any, state: Any, place: Place) -> bytes:
        tables = _tables_of(state)
        if tables is None:
            return self.value(state, place.inside(value, ""))
        cached = cached_properties(type(value)) | _UNSTATED
        for table in tables:
            for name, item in table.items():
                self.lookup.attribute(name, item)
        rows = [(name, table[name]) for table in tables for name in sorted(table.keys() - cached)]
        rows = [
            (name, _cookies_of_user(value) if name == "_cookies" and _is_cookie_jar(value) else item)
            for name, item in rows
            if not _is_unstated(value, name, item)
        ]
        return mix("attributes", *(self._attribute(value, name, item, place) for name, item in rows))

    def _attribute(self, owner: object, name: str, value: Any, place: Place) -> bytes:
        value = self.secrets.hide_named(name, value)
        return leaf("name", name.encode()) + self.variable(owner, name, value, place.inside(owner, f".{name}"))


def _is_unstated(owner: object, name: str, item: object) -> bool:
    """Whether a library uses an attribute for what is no part of the state of its objects.

    A subclass elsewhere may give a public name another meaning: there it must hold an object of the library.
    """
    for library in {_library_of(kind) for kind in type(owner).__mro__}:
        if name in _UNSTATED_BY_LIBRARY.get(library, ()):
            return name.startswith("_") or library in (_library_of(type(owner)), _library_of(type(item)))
    return False


def _library_of(kind: type) -> str:
    return module_of(kind).partition(".")[0]


def _is_cookie_jar(value: object) -> bool:
    module = sys.modules.get("http.cookiejar")
    return module is not None and is_a(value, module.CookieJar)


def _cookies_of_user(jar: Any) -> list[tuple[str, ...]]:
    """The cookies of a jar but for those that services set: these expire, or their domain is that of the request."""
    own = (each for each in jar if not each.expires and (each.domain_specified or not each.domain))
    return sorted((each.domain, each.path, each.name, each.value or "") for each in own)


_first: dict[tuple[int, str], tuple[Any, bytes]] = {}  # the owner, or a reference to it, and the token


def _first_token(owner: Any, name: str, value: Any, place: Place) -> bytes:
    """What something held under a name when this process first read it; what calls change since then does not count."""
    key = id(owner), name
    if key not in _first:
        digest = Walk().run(value, home=place.home).digest
        try:
            kept: Any = weakref.ref(owner, lambda _: _first.pop(key, None))
        except TypeError:
            kept = owner  # so that its id stays its own
        _first[key] = kept, leaf("first", digest.encode())
    return _first[key][1]


class _Cycle(Exception):
    """A container was met inside itself."""


def _order(item: object, home: Home) -> bytes:
    """A place among the items of a set that does not depend on the hash seed."""
    try:
        return identity.encode(item)
    except DataError:
        return Walk().run(item, home=home).digest.encode()


def _reduce(value: Any) -> str | tuple[Any, ...]:
    """What an object would be copied from: maker, its arguments, state, items, pairs; or the name of a global."""
    reducer: Callable[[Any], Any] | None = copyreg.dispatch_table.get(type(value))
    reduced: Any = reducer(value) if reducer else value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return reduced
    make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    return make, tuple(arguments), state, list(items or ()), [(key, item) for key, item in pairs or ()]


def _tables_of(state: Any) -> list[dict[str, Any]] | None:
    """State as attributes, where it is that: those of the object and those of its slots."""
    tables = list(state) if is_a(state, tuple) and len(state) == 2 else [state]
    if not all(is_a(table, dict, types.NoneType) for table in tables):
        return None
    found = [table for table in tables if table]
    found += [inner for table in found if is_a(inner := table.get("__dict__"), dict)]
    if not all(is_a(name, str) for table in found for name in table):
        return None
    return [{name: value for name, value in table.items() if name != "__dict__"} for table in found]
