"""The identity of code: a digest of a function or object and of everything first-party that it reaches.

Results may be reused only while the code that made them is the same, so a fingerprint covers the function and, through
the names it uses, every first-party function, class and constant, with closures, defaults and the state of instances,
and the content of the files it names. It leaves out what changes nothing: comments, formatting, unrelated code in the
same module, the folder in which the project lies, the name under which a module was loaded.

    function    its source without comments; its bytecode where there is no source, or where the source on disk is not
                what runs (a file edited after import must not lend its name to results of the old code)
    class       its source, its first-party bases, its methods and the present values of its attributes
    instance    its class and its state as copying would read it (`__getstate__`, `__reduce_ex__`), or the data that its
                `__fingerprint__()` returns; nothing is pickled
    constant    its present value; the order of a dictionary counts, because prompts are built by iterating over it
    file        its content, where a path or a short text that is reached names an existing one
    the rest    third-party, standard-library and evaluand code by name: versions of packages are provenance

A lock, a client or a generator cannot be read as data: it leaves the fingerprint *unpinned*, with a sentence that says
what and where. Loggers are taken as having no influence. A global that a function itself assigns (a client made on
first use) counts by the statement that first sets it, as its value is made by code that is covered already.

Parts refer to one another by name and not by content, so that cycles end and a change shows in the part that changed.
They wait in a queue rather than on Python's stack: neither long chains of calls nor deep objects exhaust it.
"""

from __future__ import annotations

import ast
import copy
import copyreg
import datetime as dt
import decimal
import dis
import enum
import functools
import hashlib
import importlib
import importlib.util
import linecache
import logging
import os
import pathlib
import random
import re
import stat
import sys
import sysconfig
import types
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand import ids
from evaluand.errors import DataError, SpecError


@dataclass(frozen=True)
class Fingerprint:
    """What a function or object is, as far as its results are concerned.

    Attributes:
        digest: 32 hexadecimal digits that stand for everything reached.
        pinned: whether everything reached could be read.
        unpinned: why not, one sentence for each thing that could not.
        parts: qualified name → digest of every function, class and constant reached, for explaining changes.
        files: path → digest of the content of every file named.
    """

    digest: str
    pinned: bool
    unpinned: tuple[str, ...]
    parts: Mapping[str, str]
    files: Mapping[str, str]


def fingerprint(obj: Callable[..., Any] | object, *, files: Sequence[str | os.PathLike[str]] = ()) -> Fingerprint:
    """The fingerprint of a function, class or instance as it is now.

    Args:
        obj: what is to be identified.
        files: files and folders it depends on beyond those its code names, relative to the current directory or to
            the folder of the code.

    Raises:
        SpecError: one of `files` does not exist or cannot be read.

    Example:
        >>> def shout(text, mark="!"):
        ...     return text.upper() + mark
        >>> print_ = fingerprint(shout)
        >>> print_.pinned, len(print_.digest)
        (True, 32)
        >>> shout.__defaults__ = ("?",)
        >>> fingerprint(shout).digest == print_.digest
        False
    """
    return _Walk().run(obj, files)


def explain(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What changed between the parts of two fingerprints, in words.

    Example:
        >>> explain({"app.answer": "1", "app.x": "2"}, {"app.answer": "3", "app.helper": "4"})
        ['app.answer changed', 'app.helper is new', 'app.x is gone']
    """
    changed = [f"{name} changed" for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    added = [f"{name} is new" for name in sorted(new.keys() - old.keys())]
    return changed + added + [f"{name} is gone" for name in sorted(old.keys() - new.keys())]


FORMAT = b"1"  # of the rules below; a new one makes every fingerprint a new one
PIN = "declare version=... to pin it"
UNREADABLE = "holds state that cannot be read as data"
CHANGING = "gives something else each time it is used"
MAX_INLINE = 50  # containers inside one another before the rest waits in the queue
MAX_NAME = 260  # characters of a text that may name a file
MAX_CLIMB = 3  # folders up from the code in which a path still belongs to the project
SOURCES_KEPT = 256

_LOADS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))

_Namespace = Mapping[str, Any]
_Chain = tuple[str, ...]  # a name and the attributes taken from it: helpers.normalise
_Import = tuple[int, str, _Chain]  # level, module and what is taken from it
_Callable = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_TIMES = (dt.datetime, dt.date, dt.time, dt.timedelta)
_SCALARS = frozenset((type(None), bool, int, float, bytes, bytearray, *_TIMES, decimal.Decimal, uuid.UUID))
_PLAIN = frozenset((type(None), bool, int, float))
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset, types.MappingProxyType))
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_UNSTATED = frozenset(("_sklearn_version", "__pydantic_fields_set__"))  # provenance, and how a value came to be set
_MODULE_NAMES = frozenset(
    (
        "__builtins__",
        "__cached__",
        "__doc__",
        "__file__",
        "__loader__",
        "__name__",
        "__package__",
        "__path__",
        "__spec__",
    )
)
_MISSING = object()


class _Cycle(Exception):
    """A container was met inside itself."""


@dataclass(frozen=True, slots=True)
class _Home:
    """The module that something comes from.

    Attributes:
        name: of the module, for what is identified by name.
        stem: of the file, for showing; unlike the module's name it does not depend on how the file was loaded.
        file: None in a notebook or an interactive session.
        ours: first-party.
        folder: where the file lies; the current directory where there is none.
    """

    name: str
    stem: str
    file: str | None
    ours: bool
    folder: str


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value was reached.

    Attributes:
        part: the part whose digest the value belongs to.
        shown: the same for people, down to the variable.
        held: the type of what that variable holds, once the walk is inside it.
        inner: the way from there to the value.
    """

    part: str
    shown: str
    home: _Home
    held: str = ""
    inner: str = ""

    def inside(self, value: object, step: str) -> _Place:
        held = self.held or type(value).__qualname__
        inner = self.inner + step if len(self.inner) < 80 else self.inner
        return _Place(self.part, self.shown, self.home, held, inner)

    def named(self, shown: str) -> _Place:
        return _Place(self.part, shown, self.home)


class _Walk:
    """One traversal. Values become 16-byte tokens; what has an identity of its own is queued and referred to."""

    def __init__(self) -> None:
        self.tokens: dict[int, bytes] = {}
        self.alive: list[object] = []  # an id stands for its object only while that lives
        self.labels: dict[str, int] = {}
        self.shown: dict[str, str] = {}
        self.taken: set[str] = set()
        self.contents: dict[str, list[bytes]] = {}
        self.objects: dict[str, int] = {}
        self.constants: dict[tuple[int, str], bytes] = {}
        self.queue: deque[tuple[Callable[[], bytes], str, bool]] = deque()
        self.open: set[int] = set()
        self.cyclic = False
        self.files: dict[str, tuple[str, str]] = {}
        self.unpinned: dict[str, str] = {}
        self.homes: dict[int, _Home] = {}
        self.namespaces: dict[str, _Namespace] = {}
        self.sources: dict[str, _Source | None] = {}
        self.cwd = _cwd()

    def run(self, obj: object, files: Sequence[str | os.PathLike[str]] = (), home: _Home | None = None) -> Fingerprint:
        home = home or self._home_of(obj)
        root = self._root(obj, home)
        while self.queue:
            content, label, self.cyclic = self.queue.popleft()
            self.contents[label].append(content())
        for file in files:
            self._declared_file(os.fspath(file), home)
        return self._result(root)

    def _root(self, obj: object, home: _Home) -> bytes:
        name = _name_of(obj)
        place = _Place(name, f"{home.stem}.{name}", home)
        if isinstance(obj, types.FunctionType | type):
            if home.ours:
                return self.value(obj, place)
        elif _is_code(obj) or isinstance(obj, types.MethodType):
            name = f"{type(obj).__name__}({name})"
        elif not isinstance(obj, types.BuiltinFunctionType):
            name = f"{name}()"
        return self._part(object(), name, f"{home.stem}.{name}", home, lambda at: self.value(obj, at))

    def _result(self, root: bytes) -> Fingerprint:
        parts = {label: _mix("part", *contents) for label, contents in sorted(self.contents.items())}
        named = [_leaf("label", label.encode()) + token for label, token in parts.items()]
        files = [_leaf("file", f"{name}\0{content}".encode()) for name, content in sorted(self.files.values())]
        digest = _mix("fingerprint", _leaf("format", FORMAT), root, _mix("parts", *named), _mix("files", *files))
        return Fingerprint(
            digest.hex(),
            not self.unpinned,
            tuple(self.unpinned.values()),
            {self.shown[label]: token.hex() for label, token in parts.items()},
            {shown: content for shown, (_, content) in sorted(self.files.items())},
        )

    # -- parts and the queue

    def _part(self, value: object, name: str, shown: str, home: _Home, content: Callable[[_Place], bytes]) -> bytes:
        """Refers to something that has a digest of its own, shown by name."""
        label, shown = self._label(name), self._distinct(shown)
        token = self.tokens[id(value)] = _leaf("part", label.encode())
        self.alive.append(value)
        self.shown[label], self.contents[label] = shown, []
        self.queue.append((lambda: content(_Place(label, shown, home)), label, False))
        return token

    def _label(self, name: str) -> str:
        self.labels[name] = number = self.labels.get(name, 0) + 1
        return name if number == 1 else f"{name}#{number}"

    def _distinct(self, name: str) -> str:
        number, shown = 1, name
        while shown in self.taken:
            number += 1
            shown = f"{name} ({number})"
        self.taken.add(shown)
        return shown

    def _later(self, value: object, place: _Place, cyclic: bool = False) -> bytes:
        """Refers to an object; its content joins that of the part in which it was first reached."""
        self.objects[place.part] = number = self.objects.get(place.part, 0) + 1
        token = self.tokens[id(value)] = _leaf("object", f"{place.part}\0{number}".encode())
        self.alive.append(value)
        self.queue.append((lambda: self._state(value, place), place.part, cyclic))
        return token

    def _opaque(self, value: object, place: _Place, why: str = UNREADABLE) -> bytes:
        kind = type(value).__qualname__
        sentence = f"{place.shown}: {_a(place.held or kind)} {UNREADABLE if place.inner else why}"
        where = f" ({place.inner.lstrip('.')} is {_a(kind)})" if place.inner else ""
        self.unpinned.setdefault(place.shown, f"{sentence}{where}; {PIN}")
        return _leaf("opaque", kind.encode())

    # -- values

    def value(self, value: Any, place: _Place) -> bytes:
        kind = type(value)
        if kind is str:
            return self._text(value, place)
        if kind in _SCALARS:
            return _leaf("data", ids.encode(value))
        known = self.tokens.get(id(value))
        if known is not None:
            return known
        if kind in _CONTAINERS:
            return self._container(value, place)
        return self._code(value, place) or self._object(value, place)

    def _text(self, value: str, place: _Place) -> bytes:
        if _may_name_file(value):
            self._name_files((value,), (place.home.folder, self.cwd), place.home)
            value = _portable(value, place.home.folder) if os.path.isabs(value) else value
        return _leaf("text", value.encode("utf-8", "surrogatepass"))

    def _container(self, value: Any, place: _Place) -> bytes:
        if id(value) in self.open:
            raise _Cycle
        if self.cyclic or len(self.open) >= MAX_INLINE:
            return self._later(value, place, self.cyclic)
        outermost = not self.open
        self.open.add(id(value))
        try:
            token = self._items(value, place)
        except _Cycle:
            if not outermost:
                raise
            return self._later(value, place, cyclic=True)
        finally:
            self.open.discard(id(value))
        self.tokens[id(value)] = token
        self.alive.append(value)
        return token

    def _items(self, value: Any, place: _Place) -> bytes:
        kind = type(value)
        if kind is list or kind is tuple:
            if set(map(type, value)) <= _PLAIN:
                return _leaf(kind.__name__, ids.encode(value))
            return _mix(kind.__name__, *(self._item(value, item, i, place) for i, item in enumerate(value)))
        if kind is set or kind is frozenset:
            ordered = sorted(value, key=lambda item: _order(item, place.home))
            return _mix("set", *(self._item(value, item, i, place) for i, item in enumerate(ordered)))
        pairs = ((self._item(value, key, "key", place), key, item) for key, item in value.items())
        return _mix("dict", *(token + self._item(value, item, key, place) for token, key, item in pairs))

    def _item(self, owner: object, item: Any, key: object, place: _Place) -> bytes:
        if type(item) is str or type(item) in _SCALARS:
            return self.value(item, place)
        step = repr(key) if isinstance(key, str | int) else "..."
        return self.value(item, place.inside(owner, f"[{step[:40]}]"))

    def _code(self, value: Any, place: _Place) -> bytes | None:
        """The token of something that is code, or wraps it; None for other values."""
        kind = type(value)
        if kind is types.FunctionType:
            return self._function(value, place)
        if issubclass(kind, type):
            return self._class(value, place)
        if kind is types.MethodType:
            return _mix("method", self.value(value.__func__, place), self.value(value.__self__, place))
        if kind is types.ModuleType:
            return self._module(value)
        inner = _wrapped(value)
        if inner is None:
            return None
        for file in _files_of(value):
            self._declared_file(os.fspath(file), self._home_of(value))
        return _mix(kind.__qualname__, *(self.value(item, place) for item in inner))

    def _object(self, value: Any, place: _Place) -> bytes:
        kind = type(value)
        if issubclass(kind, pathlib.PurePath):
            return self._path(value, place)
        if issubclass(kind, enum.Enum):
            return _mix("enum", self.value(kind, place), self.value(value._value_, place))
        if issubclass(kind, logging.Logger | logging.LoggerAdapter):
            return _leaf("logger", b"")
        if _module_of(kind) == "numpy" and hasattr(value, "dtype") and hasattr(value, "tobytes"):
            return self._array(value, place)
        if issubclass(kind, random.Random) or hasattr(kind, "__next__") or _module_of(kind).startswith("numpy.random"):
            return self._opaque(value, place, CHANGING)
        return self._later(value, place)

    def _path(self, value: pathlib.PurePath, place: _Place) -> bytes:
        text, folder = str(value), place.home.folder
        self._name_files((text,), (folder, self.cwd), place.home, certain=True)
        return _leaf("path", _portable(text, folder).encode("utf-8", "surrogatepass"))

    def _array(self, value: Any, place: _Place) -> bytes:
        head = _leaf("array", f"{type(value).__name__}{value.dtype.str}{value.shape}".encode())
        if value.dtype.names:  # field by field: the bytes between fields are undefined
            fields = [_leaf("field", n.encode()) + self._array(value[n], place) for n in value.dtype.names]
            return _mix("structured", head, *fields)
        if value.dtype.hasobject:
            return _mix("objects", head, self.value(value.tolist(), place))
        try:
            raw: Any = value.data.cast("B")
        except (AttributeError, TypeError, ValueError):  # scalars, views with gaps, dates
            raw = value.tobytes()
        return _mix("array", head, _leaf("bytes", raw))

    # -- instances

    def _state(self, value: Any, place: _Place) -> bytes:
        kind = type(value)
        if kind in _CONTAINERS:
            return self._items(value, place)
        if kind is types.FunctionType:
            return self._foreign_closure(value, place)
        if issubclass(kind, set | frozenset):
            return _mix("set of", self.value(kind, place), self._items(frozenset(value), place))
        declared = getattr(kind, "__fingerprint__", None)
        try:
            told = declared(value) if declared else _reduce(value)
        except Exception:  # whatever objects raise when asked for their state
            return self._opaque(value, place)
        if declared:
            told = self.value(told, place.inside(value, ".__fingerprint__()"))
            return _mix("declared", self.value(kind, place), told)
        if isinstance(told, str):
            return _leaf("global", f"{self._package(value)}{told}".encode())
        return self._reduced(value, told, place)

    def _reduced(self, value: Any, reduced: tuple[Any, ...], place: _Place) -> bytes:
        make, arguments, state, items, pairs = reduced
        made = [self.value(make, place), self.value(tuple(arguments), place.inside(value, ""))]
        entries = [self._item(value, item, i, place) for i, item in enumerate(items)]
        entries += [self.value(key, place) + self._item(value, item, key, place) for key, item in pairs]
        own = self.value(type(value), place)
        return _mix("instance", own, *made, self._attributes(value, state, place), *entries)

    def _package(self, value: Any) -> str:
        """The module of something known by name, without the name under which one of ours was loaded."""
        name = getattr(value, "__module__", None) or ""
        module = sys.modules.get(name)
        return f"{name}." if module and not self._home(vars(module)).ours else ""

    def _attributes(self, value: Any, state: Any, place: _Place) -> bytes:
        tables = _tables_of(state)
        if tables is None:
            return self.value(state, place.inside(value, ""))
        cached = _cached_properties(type(value)) | _UNSTATED
        rows = [(name, table[name]) for table in tables for name in sorted(table.keys() - cached)]
        return _mix("attributes", *(self._attribute(value, name, item, place) for name, item in rows))

    def _attribute(self, owner: object, name: str, value: Any, place: _Place) -> bytes:
        return _leaf("name", name.encode()) + self.value(value, place.inside(owner, f".{name}"))

    # -- functions

    def _function(self, function: types.FunctionType, place: _Place) -> bytes:
        home = self._home_of(function)
        code = function.__code__
        if home.ours:
            shown = f"{home.stem}.{code.co_qualname}"
            return self._part(function, code.co_qualname, shown, home, lambda p: self._function_content(function, p))
        name = _leaf("name", f"{home.name}.{code.co_qualname}".encode())
        wrapped = getattr(function, "__wrapped__", None)
        if home.name == "functools" and hasattr(function, "registry"):
            return _mix("dispatch", name, self.value(dict(function.registry), place))
        if wrapped is not None and self._is_decorated(wrapped):
            return _mix("decorated", name, self.value(wrapped, place))
        return self._later(function, place) if function.__closure__ or wrapped is not None else name

    def _is_decorated(self, function: Any) -> bool:
        """Whether the text of a first-party function shows what it is wrapped in, and with which settings."""
        for _ in range(MAX_INLINE):
            if type(function) is not types.FunctionType:
                return False
            if "__wrapped__" not in function.__dict__:
                break
            function = function.__dict__["__wrapped__"]
        node = self._node(function) if self._home_of(function).ours else None
        return node is not None and bool(_decorators_of(node, function.__globals__))

    def _foreign_closure(self, function: types.FunctionType, place: _Place) -> bytes:
        home = self._home_of(function)
        name = _leaf("name", f"{home.name}.{function.__code__.co_qualname}".encode())
        wrapped = self.value(getattr(function, "__wrapped__", None), place)
        return _mix("closure", name, wrapped, *self._closure(function, place))

    def _function_content(self, function: types.FunctionType, place: _Place) -> bytes:
        code, namespace = function.__code__, function.__globals__
        node = self._node(function)
        uses = _uses(code)
        if node is None:
            own, strings = _code_token(code), set(_code_strings(code))
        else:
            node = _without_our_decorators(node, namespace)
            uses.chains |= _chains_of(_signature_of(node))
            uses.imports = _imports_of(node)
            own, strings = _leaf("source", _text_of(node).encode()), _strings_of(node)
        globals_ = self._uses_tokens(uses, namespace, place)
        self._name_files(strings, self._folders(uses, namespace, place.home), place.home)
        return _mix("function", own, *globals_, *self._defaults(function, place), *self._closure(function, place))

    def _node(self, function: types.FunctionType) -> _Callable | None:
        source = self._source(_file_of(function), function.__globals__)
        return source.function(function.__code__) if source else None

    def _defaults(self, function: types.FunctionType, place: _Place) -> Iterator[bytes]:
        code, positional = function.__code__, function.__defaults__ or ()
        first = code.co_argcount - len(positional)
        named = dict(zip(code.co_varnames[first : code.co_argcount], positional, strict=False))
        named |= function.__kwdefaults__ or {}
        for name in sorted(named):
            at = place.named(f"{place.shown} (default of {name})")
            yield _leaf("default", name.encode()) + self.value(named[name], at)
        for name, value in sorted(function.__dict__.items()):
            yield _leaf("attribute", name.encode()) + self.value(value, place.named(f"{place.shown}.{name}"))

    def _closure(self, function: types.FunctionType, place: _Place) -> Iterator[bytes]:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not set yet
                continue
            at = place.named(f"{place.shown} (closure variable {name})")
            yield _leaf("closure", name.encode()) + self.value(value, at)

    # -- names that code uses

    def _uses_tokens(self, uses: _Uses, namespace: _Namespace, place: _Place) -> list[bytes]:
        tokens = [
            _leaf("global", ".".join(chain).encode()) + self._global(namespace, chain, uses.stored, place)
            for chain in sorted(uses.chains)
            if chain[0] in uses.stored or (chain[0] in namespace and chain[0] not in _MODULE_NAMES)
        ]
        for level, name, chain in sorted(uses.imports):
            module = _imported(name, level, namespace)
            what = _leaf("import", ".".join((str(level), name, *chain)).encode())
            tokens.append(what + (self._taken(module, chain, place) if module else what))
        return tokens

    def _global(self, namespace: _Namespace, chain: _Chain, stored: Collection[str], place: _Place) -> bytes:
        name = chain[0]
        if name in stored:
            return self._constant(namespace, name, lambda at: self._start(name, namespace, at))
        if type(namespace[name]) is types.ModuleType:
            return self._taken(namespace[name], chain[1:], place)
        return self._named_value(namespace, name, namespace[name], place)

    def _taken(self, module: types.ModuleType, chain: _Chain, place: _Place) -> bytes:
        """What an attribute chain takes out of a module."""
        if not chain or not self._home(vars(module)).ours:
            return self._module(module)
        value = _attribute_of(module, chain[0])
        if type(value) is types.ModuleType:
            return self._taken(value, chain[1:], place)
        if value is _MISSING:
            return _leaf("missing", chain[0].encode())
        return self._named_value(vars(module), chain[0], value, place)

    def _named_value(self, namespace: _Namespace, name: str, value: Any, place: _Place) -> bytes:
        if _is_code(value):
            return self.value(value, place.named(f"{self._home(namespace).stem}.{name}"))
        return self._constant(namespace, name, lambda at: self.value(value, at))

    def _constant(self, namespace: _Namespace, name: str, content: Callable[[_Place], bytes]) -> bytes:
        key = id(namespace), name
        if key not in self.constants:
            home = self._home(namespace)
            self.constants[key] = self._part(object(), name, f"{home.stem}.{name}", home, content)
        return self.constants[key]

    def _start(self, name: str, namespace: _Namespace, place: _Place) -> bytes:
        source = self._source(place.home.file, namespace) if place.home.file else None
        return _leaf("starts", source.statement(name).encode() if source else b"")

    def _module(self, module: types.ModuleType) -> bytes:
        home = self._home(vars(module))
        if id(module) in self.tokens:
            return self.tokens[id(module)]
        if not home.ours:
            return _leaf("module", module.__name__.encode())
        return self._part(module, "module", f"module {home.stem}", home, lambda place: self._whole(module, place))

    def _whole(self, module: types.ModuleType, place: _Place) -> bytes:
        """A module that is used as a value, so that anything in it may be."""
        source = self._source(place.home.file, vars(module)) if place.home.file else None
        text = _text_of(source.tree) if source else ""
        inside = sorted((name, value) for name, value in vars(module).items() if _is_code(value))
        tokens = (_leaf("name", name.encode()) + self.value(value, place) for name, value in inside)
        return _mix("module", _leaf("source", text.encode()), *tokens)

    # -- classes

    def _class(self, kind: type, place: _Place) -> bytes:
        home = self._class_home(kind)
        if not home.ours:
            version = getattr(kind, "version", None) if home.name.partition(".")[0] == "evaluand" else None
            version = version if isinstance(version, str | int) else ""
            return _leaf("name", f"{kind.__module__}.{kind.__qualname__}@{version}".encode())
        shown = f"{home.stem}.{kind.__qualname__}"
        return self._part(kind, kind.__qualname__, shown, home, lambda p: self._class_content(kind, p))

    def _class_home(self, kind: type) -> _Home:
        for function in _own_functions(kind):
            return self._home_of(function)
        namespace = self._class_namespace(kind)
        return self._home(namespace) if namespace else _Home(kind.__module__, kind.__module__, None, True, self.cwd)

    def _class_namespace(self, kind: type) -> _Namespace:
        for function in _own_functions(kind):
            return function.__globals__
        if kind.__module__ in self.namespaces:  # may be loaded from a path, and unknown to sys.modules
            return self.namespaces[kind.__module__]
        module = sys.modules.get(kind.__module__)
        return vars(module) if module else {}

    def _class_content(self, kind: type, place: _Place) -> bytes:
        namespace = self._class_namespace(kind)
        source = self._source(self._class_file(kind, place.home), namespace)
        nodes = source.classes.get(kind.__qualname__, []) if source else []
        members, covered = self._members(kind, bool(nodes), place)
        rest = [_without_methods(node, covered) for node in nodes]
        text = "\n".join(_text_of(node) for node in rest)
        uses = _Uses(set().union(*(_chains_of([node]) for node in rest)))
        folders = (place.home.folder, self.cwd)
        self._name_files(set().union(*(_strings_of(node) for node in rest)), folders, place.home)
        bases = [self.value(base, place) for base in (*kind.__bases__, type(kind))]
        return _mix(
            "class", _leaf("source", text.encode()), *bases, *self._uses_tokens(uses, namespace, place), *members
        )

    def _class_file(self, kind: type, home: _Home) -> str | None:
        return home.file or next((_file_of(function) for function in _own_functions(kind)), None)

    def _members(self, kind: type, sourced: bool, place: _Place) -> tuple[list[bytes], set[str]]:
        """Tokens of a class's attributes, and the names of the methods whose text they cover."""
        tokens: list[bytes] = []
        covered: set[str] = set()
        file = self._class_file(kind, place.home)
        if issubclass(kind, enum.Enum):
            for name, member in kind.__members__.items():
                at = place.named(f"{place.shown}.{name}")
                tokens.append(_leaf("member", name.encode()) + self.value(member._value_, at))
        for name, value in sorted(vars(kind).items()):
            functions = _functions_in(value)
            written = bool(functions) and all(_file_of(f) == file for f in functions)
            if not written and (_is_machinery(name, value, sourced) or issubclass(kind, enum.Enum)):
                continue
            if written:
                covered.add(name)
            token = self.value(value, place.named(f"{place.shown}.{name}"))
            tokens.append(_leaf("member", name.encode()) + token)
        return tokens, covered

    # -- where code comes from

    def _home_of(self, obj: object) -> _Home:
        obj = _innermost(obj)
        if isinstance(obj, types.MethodType):
            obj = obj.__func__
        if isinstance(obj, types.FunctionType):
            home = self._home(obj.__globals__)
            typed = obj.__code__.co_filename.startswith(("<doctest", "<stdin"))
            return _Home(home.name, home.stem, None, True, self.cwd) if typed else home
        if isinstance(obj, types.ModuleType):
            return self._home(vars(obj))
        kind = obj if isinstance(obj, type) else type(obj)
        return self._class_home(kind)

    def _home(self, namespace: _Namespace) -> _Home:
        home = self.homes.get(id(namespace))
        if home is None:
            home = self.homes[id(namespace)] = _home(namespace)
            self.alive.append(namespace)
            if home.ours:
                self.namespaces.setdefault(home.name, namespace)
        return home

    def _source(self, file: str | None, namespace: _Namespace) -> _Source | None:
        if file is None:
            return None
        if file not in self.sources:
            self.sources[file] = _read_source(file, namespace)
        return self.sources[file]

    # -- files

    def _folders(self, uses: _Uses, namespace: _Namespace, home: _Home) -> list[str]:
        """Where a function may look for the files it names."""
        folders = [home.folder, self.cwd]
        for chain in sorted(uses.chains):
            value = namespace.get(chain[0])
            if isinstance(value, str | pathlib.Path) and os.path.isabs(value) and os.path.isdir(value):
                folders.append(str(value))
        if ("__file__",) in uses.chains:
            above = pathlib.Path(home.folder).parents
            folders += [str(folder) for folder in above[: MAX_CLIMB - 1]]
        return folders

    def _name_files(self, texts: Iterable[str], folders: Sequence[str], home: _Home, certain: bool = False) -> None:
        near = dict.fromkeys(folders)
        for text in sorted(texts):
            if not (certain or _may_name_file(text)):
                continue
            for folder in near:
                path = os.path.join(folder, text)
                if _is_file(path):
                    self._implicit_file(path, text if folder in (home.folder, self.cwd) else path, home)

    def _implicit_file(self, path: str, text: str, home: _Home) -> None:
        try:
            content = _content_digest(path)
        except OSError as error:
            self.unpinned.setdefault(text, f"{text}: the file cannot be read ({error.strerror}); {PIN}")
            return
        self._record(_portable(text, home.folder), content)

    def _declared_file(self, name: str, home: _Home) -> None:
        tried = [os.path.join(folder, name) for folder in dict.fromkeys((self.cwd, home.folder))]
        path = next((path for path in tried if os.path.exists(path)), None)
        if path is None:
            raise SpecError(f"files: {name} does not exist (looked for {' and '.join(dict.fromkeys(tried))})")
        try:
            content = _folder_digest(path) if os.path.isdir(path) else _content_digest(path)
        except OSError as error:
            raise SpecError(f"files: {error.filename or name} cannot be read: {error.strerror}") from None
        self._record(_portable(name, home.folder), content)

    def _record(self, name: str, content: str) -> None:
        number, shown = 1, name
        while shown in self.files and self.files[shown][1] != content:
            number += 1
            shown = f"{name} ({number})"
        portable = os.path.basename(name) if os.path.isabs(name) else name
        self.files[shown] = portable, content


# -- tokens


def _leaf(tag: str, raw: Any) -> bytes:
    state = hashlib.blake2b(tag.encode() + b"\0", digest_size=ids.DIGEST_SIZE)
    state.update(raw)
    return state.digest()


def _mix(tag: str, *tokens: bytes) -> bytes:
    return _leaf(tag, b"".join(tokens))


def _order(item: object, home: _Home) -> bytes:
    """A place among the items of a set that does not depend on the hash seed."""
    try:
        return ids.encode(item)
    except DataError:
        return _Walk().run(item, home=home).digest.encode()


def _a(name: str) -> str:
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def _name_of(obj: Any) -> str:
    if isinstance(obj, types.FunctionType):
        return obj.__code__.co_qualname
    obj = _innermost(obj)
    return getattr(obj, "__qualname__", None) or type(obj).__qualname__


# -- what wraps what


def _wrapped(value: Any) -> tuple[Any, ...] | None:
    """What a wrapper of code consists of; None for anything else."""
    kind = type(value)
    if issubclass(kind, staticmethod | classmethod):
        return (value.__func__,)
    if issubclass(kind, property):
        return tuple(f for f in (value.fget, value.fset, value.fdel))
    if kind is functools.cached_property:
        return (value.func,)
    if kind is functools.partial or kind is functools.partialmethod:
        return value.func, value.args, value.keywords
    if kind is functools.singledispatchmethod:
        return value.func, dict(value.dispatcher.registry)
    if _module_of(kind) == "functools" and hasattr(value, "cache_parameters"):
        return value.__wrapped__, value.cache_parameters()
    if _is_function_kind(kind):
        declared = getattr(value, "declared", value.version)  # a scorer's `version` is that of its kind
        return (value.function,) if declared is None else (_name_of(value.function), declared)
    return None


def _is_function_kind(kind: type) -> bool:
    return _module_of(kind).startswith("evaluand.") and kind.__name__ in ("FunctionTask", "FunctionScorer")


def _files_of(value: Any) -> Sequence[str | os.PathLike[str]]:
    """The files that a task or scorer made of a function declares."""
    return value.files if _is_function_kind(type(value)) else ()


def _module_of(kind: type) -> str:
    name: Any = kind.__module__
    return name if isinstance(name, str) else ""  # some extension types have a property there


def _innermost(value: Any) -> Any:
    while (inner := _wrapped(value)) and not isinstance(inner[0], str | None):
        value = inner[0]
    return value


def _is_code(value: Any) -> bool:
    kind = type(value)
    return kind in (types.FunctionType, types.ModuleType) or issubclass(kind, type) or _wrapped(value) is not None


def _functions_in(value: Any) -> list[types.FunctionType]:
    """The functions that a class's attribute is made of."""
    if type(value) is types.FunctionType:
        return [value]
    if isinstance(value, staticmethod | classmethod | property | functools.cached_property):
        return [f for f in _wrapped(value) or () if type(f) is types.FunctionType]
    return []


def _own_functions(kind: type) -> Iterator[types.FunctionType]:
    """The functions of a class that were written in the class's module."""
    for value in vars(kind).values():
        for function in _functions_in(value):
            if function.__module__ == kind.__module__ == function.__globals__.get("__name__"):
                yield function


def _file_of(function: types.FunctionType) -> str:
    """The file of a function; where the code has a relative path, it is the module that knows the folder."""
    named, file = function.__code__.co_filename, function.__globals__.get("__file__")
    return file if isinstance(file, str) and os.path.basename(file) == os.path.basename(named) else named


def _is_machinery(name: str, value: Any, sourced: bool) -> bool:
    """Whether a class's attribute was put there by Python or a library, not by whoever wrote the class."""
    if isinstance(value, _SLOTS) or name == "_abc_impl":
        return True
    dunder = name.startswith("__") and name.endswith("__")
    return dunder and (sourced or not _functions_in(value))


def _cached_properties(kind: type) -> set[str]:
    return {name for base in kind.__mro__ for name, v in vars(base).items() if type(v) is functools.cached_property}


def _reduce(value: Any) -> str | tuple[Any, ...]:
    """What an object would be copied from: maker, its arguments, state, items, pairs; or the name of a global."""
    reducer = copyreg.dispatch_table.get(type(value))
    reduced: Any = reducer(value) if reducer else value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return reduced
    make, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
    return make, arguments, state, list(items or ()), list(pairs or ())


def _tables_of(state: Any) -> list[dict[str, Any]] | None:
    """State as attributes, where it is that: those of the object and those of its slots."""
    tables = list(state) if isinstance(state, tuple) and len(state) == 2 else [state]
    if not all(isinstance(table, dict | None) for table in tables):
        return None
    found = [table for table in tables if table]
    found += [inner for table in found if isinstance(inner := table.get("__dict__"), dict)]
    if not all(isinstance(name, str) for table in found for name in table):
        return None
    return [{name: value for name, value in table.items() if name != "__dict__"} for table in found]


# -- modules


def _home(namespace: _Namespace) -> _Home:
    name, file = str(namespace.get("__name__", "?")), namespace.get("__file__")
    if not isinstance(file, str):
        return _Home(name, name, None, name.partition(".")[0] not in sys.stdlib_module_names, _cwd())
    path = pathlib.PurePath(file)
    stem = path.parent.name if path.stem == "__init__" else path.name.partition(".")[0]
    return _Home(name, stem, file, _is_first_party(file), os.path.dirname(os.path.abspath(file)))


def _folders_of_python() -> tuple[str, ...]:
    folders = [
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        os.path.dirname(os.path.abspath(__file__)),
    ]
    return tuple({form(folder) + os.sep for folder in folders for form in (os.path.abspath, os.path.realpath)})


_NOT_OURS = _folders_of_python()


def _is_first_party(file: str) -> bool:
    path = os.path.abspath(file)
    installed = {"site-packages", "dist-packages"} & set(pathlib.PurePath(path).parts)
    return not installed and not path.startswith(_NOT_OURS)


def _imported(name: str, level: int, namespace: _Namespace) -> types.ModuleType | None:
    """A module that a function imports when it is called; one of ours is imported now, as the call would."""
    try:
        name = importlib.util.resolve_name("." * level + name, namespace.get("__package__"))
        if name in sys.modules:
            return sys.modules[name]
        top = importlib.util.find_spec(name.partition(".")[0])
        if top is None or not top.origin or not _is_first_party(top.origin):
            return None
        return importlib.import_module(name)
    except Exception:  # the module's own code may raise anything; then so will the call
        return None


def _attribute_of(module: types.ModuleType, name: str) -> Any:
    try:
        return getattr(module, name)
    except Exception:  # a module's __getattr__ may raise anything
        submodule = _imported(f"{module.__name__}.{name}", 0, vars(module)) if hasattr(module, "__path__") else None
        return submodule or _MISSING


# -- source


@dataclass
class _Source:
    """A parsed file, with the code objects it compiles to."""

    text: bytes
    tree: ast.Module
    codes: dict[str, list[types.CodeType]] = field(default_factory=dict)
    functions: dict[tuple[int, str], list[_Callable]] = field(default_factory=dict)
    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)

    def function(self, code: types.CodeType) -> _Callable | None:
        """The definition of a running function, or None where the text is not what it was compiled from."""
        candidates = self.codes.get(code.co_qualname)
        if not candidates:
            return None
        own = _code_token(code)
        same = [c for c in candidates if _code_token(c) == own]
        if not same:
            return None
        position = _span(code)
        compiled = next((c for c in same if _span(c) == position), same[0])
        return self._definition(compiled)

    def _definition(self, code: types.CodeType) -> _Callable | None:
        nodes = self.functions.get((code.co_firstlineno, code.co_name), [])
        if len(nodes) > 1:
            around = [n for n in nodes if isinstance(n, ast.Lambda) and _encloses(n.body, _span(code))]
            return max(around, key=lambda n: _extent(n)[0], default=None)  # the innermost begins last
        return nodes[0] if nodes else None

    def statement(self, name: str) -> str:
        """The statements at the top of the file that set a name."""
        return "\n".join(_text_of(node) for node in self.tree.body if name in _assigned(node))


_sources: dict[str, _Source | None] = {}


def _read_source(file: str, namespace: _Namespace) -> _Source | None:
    """A file's source as it is now; parsed anew only when its text is another."""
    try:
        text = pathlib.Path(file).read_bytes()
    except (OSError, ValueError):  # a notebook's cell, a doctest, a module in an archive
        text = "".join(linecache.getlines(file, dict(namespace))).encode("utf-8", "surrogatepass")
    known = _sources.get(file)
    if known is not None and known.text == text:
        return known
    if len(_sources) >= SOURCES_KEPT:
        _sources.clear()
    _sources[file] = source = _parse(text, file) if text.strip() else None
    return source


def _parse(text: bytes, file: str) -> _Source | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
            compiled = compile(tree, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return None
    source = _Source(text, tree)
    for code in _nested(compiled):
        source.codes.setdefault(code.co_qualname, []).append(code)
    _index(tree, source)
    return source


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _index(tree: ast.Module, source: _Source) -> None:
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        if isinstance(node, ast.ClassDef):
            source.classes.setdefault(prefix + node.name, []).append(node)
            prefix = f"{prefix}{node.name}."
        elif isinstance(node, _Callable):
            name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
            line = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            source.functions.setdefault((line, name), []).append(node)
            prefix = f"{prefix}{name}.<locals>."
        waiting.extend((child, prefix) for child in ast.iter_child_nodes(node))


_Span = tuple[tuple[int, int], tuple[int, int]]


def _span(code: types.CodeType) -> _Span:
    """From where to where a code object's instructions reach: line and column."""
    starts, ends = [], []
    for line, last, column, end in code.co_positions():
        if line is not None and last is not None and column is not None and end:
            starts.append((line, column))
            ends.append((last, end))
    first = (code.co_firstlineno, 0)
    return min(starts, default=first), max(ends, default=first)


def _extent(node: ast.expr) -> _Span:
    return (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)


def _encloses(node: ast.expr, span: _Span) -> bool:
    start, end = _extent(node)
    return start <= span[0] and span[1] <= end


def _assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {name.id for target in targets if target for name in ast.walk(target) if isinstance(name, ast.Name)}


# -- what a definition says


def _text_of(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:  # a sum of some hundred terms is that deep
        return repr([(type(n).__name__, [_shape_of(value) for _, value in ast.iter_fields(n)]) for n in ast.walk(node)])


def _shape_of(value: Any) -> Any:
    if isinstance(value, list):
        return [_shape_of(item) for item in value]
    return "node" if isinstance(value, ast.AST) else value


def _without_our_decorators(node: _Callable, namespace: _Namespace) -> _Callable:
    """Leaves out `@task` and its like: names and labels say nothing of behaviour, the rest is identified beside."""
    if isinstance(node, ast.Lambda):
        return node
    decorators, node = _decorators_of(node, namespace), copy.copy(node)
    node.decorator_list = decorators
    return node


def _decorators_of(node: _Callable, namespace: _Namespace) -> list[ast.expr]:
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return [decorator for decorator in decorators if not _is_evaluands(decorator, namespace)]


def _is_evaluands(decorator: ast.expr, namespace: _Namespace) -> bool:
    chain = _chain(decorator.func if isinstance(decorator, ast.Call) else decorator)
    value = namespace.get(chain[0]) if chain else None
    for name in chain[1:]:
        value = getattr(value, name, None)
    return str(getattr(value, "__module__", "")).partition(".")[0] == "evaluand"


def _without_methods(node: ast.ClassDef, covered: Collection[str]) -> ast.ClassDef:
    node = copy.copy(node)
    kept = [s for s in node.body if not (isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef) and s.name in covered)]
    node.body = kept or [ast.Pass()]
    return node


def _signature_of(node: _Callable) -> list[ast.AST]:
    """The parts of a definition that run outside its code object: decorators and annotations."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    annotations = [a.annotation for a in every if a is not None]
    more = [] if isinstance(node, ast.Lambda) else [*node.decorator_list, node.returns]
    return [part for part in (*annotations, *more) if part is not None]


def _chains_of(nodes: Iterable[ast.AST]) -> set[_Chain]:
    """The names and attribute chains in some syntax."""
    found: set[_Chain] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        chain = _chain(node)
        if chain:
            found.add(chain)
        else:
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _chain(node: ast.AST) -> _Chain:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) else ()


def _imports_of(node: ast.AST) -> set[_Import]:
    """What a definition takes from the modules that it imports itself."""
    bound: dict[str, _Import] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            for alias in part.names:
                top = alias.name.partition(".")[0]
                bound[alias.asname or top] = (0, alias.name if alias.asname else top, ())
        elif isinstance(part, ast.ImportFrom):
            for alias in part.names:
                bound[alias.asname or alias.name] = (part.level, part.module or "", (alias.name,))
    taken = [(bound[name], rest) for name, *rest in _chains_of([node]) if name in bound]
    return {(level, module, (*chain, *rest)) for (level, module, chain), rest in taken}


def _strings_of(node: ast.AST) -> set[str]:
    """The texts in some syntax, and those it joins to a path: folder / "prompts" / "answer.txt"."""
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            found.add(part.value)
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div):
            found.add("/".join(_divided(part)))
        elif isinstance(part, ast.Call) and getattr(part.func, "attr", "") in ("join", "joinpath"):
            found.add("/".join(_constants(part.args)))
    return found


def _divided(node: ast.expr) -> list[str]:
    operands: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        operands.insert(0, node.right)
        node = node.left
    return _constants([node, *operands])


def _constants(nodes: Sequence[ast.expr]) -> list[str]:
    """The texts at the end of a path's parts, after the last that is computed."""
    names: list[str] = []
    for node in reversed(nodes):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            break
        names.insert(0, node.value)
    return names


# -- bytecode


@dataclass
class _Uses:
    """What code takes from outside itself.

    Attributes:
        chains: global names with the attributes taken from them.
        stored: global names that it assigns.
        imports: level, module and attribute chain of what it imports itself.
    """

    chains: set[_Chain] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    imports: set[_Import] = field(default_factory=set)


def _uses(code: types.CodeType) -> _Uses:
    """What bytecode says of it: exact for globals, only whole modules for imports."""
    uses = _Uses()
    for nested in _nested(code):
        _collect(list(dis.get_instructions(nested)), uses)
    return uses


def _collect(instructions: Sequence[dis.Instruction], uses: _Uses) -> None:
    chain: list[str] = []
    for i, instruction in enumerate(instructions):
        if chain and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            chain.append(instruction.argval)
            continue
        if chain:
            uses.chains.add(tuple(chain))
        chain = [instruction.argval] if instruction.opname in _LOADS else []
        if instruction.opname == "STORE_GLOBAL":
            uses.stored.add(instruction.argval)
            uses.chains.add((instruction.argval,))
        elif instruction.opname == "IMPORT_NAME":
            uses.imports.add((instructions[i - 2].argval or 0, instruction.argval, ()))


def _code_token(code: types.CodeType) -> bytes:
    """What a code object does, wherever it stands."""
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_qualname, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return _mix(
        "code",
        _leaf("shape", repr(shape).encode()),
        _leaf("names", repr(names).encode()),
        _leaf("instructions", code.co_code),
        _leaf("exceptions", code.co_exceptiontable),
        *map(_constant_token, code.co_consts),
    )


def _constant_token(value: Any) -> bytes:
    if isinstance(value, types.CodeType):
        return _code_token(value)
    if isinstance(value, tuple):
        return _mix("tuple", *map(_constant_token, value))
    if isinstance(value, frozenset):
        return _mix("set", *sorted(map(_constant_token, value)))
    return _leaf(type(value).__name__, repr(value).encode("utf-8", "surrogatepass"))


def _code_strings(code: types.CodeType) -> Iterator[str]:
    waiting: list[Any] = [code]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, types.CodeType):
            waiting.extend(value.co_consts)
        elif isinstance(value, tuple | frozenset):
            waiting.extend(value)


# -- files


_SUFFIX = re.compile(r"\.\w+$")


def _may_name_file(text: str) -> bool:
    if not 0 < len(text) <= MAX_NAME or "\n" in text or "\0" in text:
        return False
    return "/" in text or os.sep in text or _SUFFIX.search(text) is not None


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _portable(text: str, folder: str) -> str:
    """A path as it would be written after the project has moved; relative ones are that already."""
    if not os.path.isabs(text):
        return pathlib.PurePath(text).as_posix() if text else text
    path, home = os.path.normpath(text), os.path.expanduser("~")
    common, relative = os.path.commonpath([folder, path]), os.path.relpath(path, folder)
    climbed = relative.split(os.sep).count(os.pardir)
    if not climbed or (climbed <= MAX_CLIMB and common not in (os.sep, home)):
        return pathlib.PurePath(relative).as_posix()
    for base, mark in ((_cwd(), "."), (home, "~")):
        if base != os.sep and os.path.commonpath([base, path]) == base:
            return f"{mark}/{pathlib.PurePath(os.path.relpath(path, base)).as_posix()}"
    return text


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return os.sep


BLOCK = 1 << 20
SETTLED = 2.0  # seconds after which a file with the same times and size is taken to be the same

_Stamp = tuple[int, int, int, int]
_contents: dict[str, tuple[_Stamp, str]] = {}


def _content_digest(path: str) -> str:
    """The digest of a file's content. A large file is read again only after it has been touched."""
    with open(path, "rb") as file:
        told = os.fstat(file.fileno())
        stamp = told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns
        known = _contents.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        state = hashlib.blake2b(digest_size=ids.DIGEST_SIZE)
        while block := file.read(BLOCK):
            state.update(block)
    newest = max(told.st_mtime, told.st_ctime)
    if told.st_size > BLOCK and dt.datetime.now().timestamp() - newest > SETTLED:
        _contents[path] = stamp, state.hexdigest()
    return state.hexdigest()


def _folder_digest(path: str) -> str:
    found: list[tuple[str, str]] = []
    for folder, _, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            if _is_file(full):
                found.append((pathlib.PurePath(os.path.relpath(full, path)).as_posix(), _content_digest(full)))
    return _leaf("folder", ids.encode(sorted(found))).hex()
