"""Observed inputs: what calls read, so that an answer is reused only while it would be read the same again.

An audit hook reports what Python opens, lists and connects to. While a call runs, it records

    a file opened for reading       with the digest of its content once the call has ended
    a folder that is listed         with the names in it
    a file that does not exist      as absent: once it exists, the answer no longer counts
    what cannot be compared later   a device or pipe, a file that changes during the call, a connection, another
                                    program, and a draw from the generators that `random` and `numpy.random` share: such
                                    an answer is never reused

and leaves out files on which no answer depends: those that the call itself has written, installed packages, bytecode,
`/proc` and `/sys`, the store. Our own clients and providers are declared by model and version, so their connections
do not count.

A context variable says which call opened a file; coroutines and `asyncio.to_thread` inherit it. Other threads
do not: what they open counts for every call in progress. A call may also use what an earlier one has read and cached.
So a file counts for all later answers that code of the same modules gives in this process, unless its name stands in
the example's own values: then for the rows that name it. For code that is seen to keep something between calls, no file
is a row's own.

Not observable: files opened by native code (they are declared with `files`), questions such as `exists`, and other
processes. Code that does any of this is unpinned unless its files are declared (`evaluand.core.fingerprint.outside`).
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import inspect
import os
import random
import re
import stat
import sys
import threading
from array import array
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, Generic, Protocol, TypeVar
from weakref import ref

import orjson

from evaluand.core.fingerprint import CodeFacts
from evaluand.core.fingerprint.files import CHANGED, Stamp, file_state, listing_state, portable, stamp_of, state_of
from evaluand.core.fingerprint.homes import is_first_party
from evaluand.core.fingerprint.tokens import leaf
from evaluand.core.system import working_folder


class Slotted(Protocol):
    """A unit of work, identified by its slot."""

    @property
    def slot(self) -> int: ...


U = TypeVar("U", bound=Slotted)

CONNECTED = "(connected to a service)"  # names of inputs that are no files are in parentheses
RAN = "(ran another program)"
DREW = "(drew from the generator that all code shares in {})"
WROTE = "(wrote a file)"  # which does not keep the answer from being reused
SHOWED = "(holds an address in memory or the name of a temporary file)"

_OPEN = "open"
_STORE_FILES = "evaluand.store.io"  # opens what is in a store relative to its folders, in threads of evaluand too
_LISTING = frozenset(("os.listdir", "os.scandir"))
_NOT_REPEATABLE = {"socket.connect": CONNECTED, "socket.sendto": CONNECTED} | dict.fromkeys(
    ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"), RAN
)
_EVENTS = frozenset((_OPEN, *_LISTING, *_NOT_REPEATABLE, "os.mkdir", "os.rename"))
_PASSING = re.compile(r" at 0x[0-9a-f]{6,}|/tmp[a-z0-9_]{8}\b")  # the default `repr` of objects, and `tempfile`
_STATE_BYTES = 2500  # of the Mersenne Twister: 624 words, and the position
_IGNORED_FOLDERS = ("/proc/", "/sys/")
_IGNORED_DEVICES = frozenset((os.devnull, "/dev/stdout", "/dev/stderr"))
_IMPORTING = ("<frozen importlib", "<frozen zipimport")
_STANDARD_LIBRARY = os.path.dirname(os.__file__)
_READERS_OF_SOURCE = frozenset(  # full paths: a user's file may be called tokenize.py too
    os.path.join(_STANDARD_LIBRARY, name) for name in ("linecache.py", "tokenize.py", "importlib/metadata/__init__.py")
)
_BACKPORT = os.path.join("importlib_metadata", "__init__.py")  # which looks up packages once it is imported
_IGNORED_FUNCTIONS = frozenset(("_rmtree_safe_fd", "_rmtree_safe_fd_step", "_rmtree_unsafe"))  # the second since 3.13


class _Call:
    """One call: what it has opened and what it has written."""

    written: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()  # folders
    own: tuple[_Opened, ...] = ()  # what counts for this call alone

    def __init__(self, observer: Observer[Any], unit: Any) -> None:
        self.observer, self._unit = observer, unit
        self.opened: dict[str, tuple[str, Stamp | str | None]] = {}  # name → path, and stamp or state of a listing
        self._generators = [(module, _state_of(module)) for module in observer.draws] if observer.draws else ()

    def end(self) -> None:
        """Notes the generators that the call has drawn from."""
        for module, state in self._generators:
            if state != _state_of(module):
                name = DREW.format(module)
                _record(self, name, name, "", CHANGED)

    @cached_property
    def texts(self) -> frozenset[str]:
        """The values of the example, as text: names of files among them."""
        example = getattr(self._unit, "example", None)
        return frozenset() if example is None else frozenset(_texts_in(example.input, example.id))

    def created(self, path: str) -> bool:
        """Whether the call itself created a path, or a folder that contains it."""
        return path in self.written or any(path.startswith(folder + os.sep) or path == folder for folder in self.made)


def _state_of(module: str) -> Any:
    """The state of the generator that all code shares in `random` or `numpy.random`; None if it is not loaded."""
    if module == "random":
        return _random_words(vars(random)["_inst"]).tobytes(), vars(random)["_inst"].gauss_next
    numpy = sys.modules.get("numpy.random.mtrand")
    if numpy is None:
        return None
    generator = numpy._rand._bit_generator
    if type(generator).__name__ == "MT19937":  # all others copy their state only, which takes 50 times as long
        return _memory_at(generator.ctypes.state_address).tobytes()
    return repr(generator.state)


@functools.lru_cache(1)
def _random_words(generator: Any) -> Any:
    """The words and the position of the generator of `random`: read in place, since `getstate` makes 625 integers.

    Where they do not lie as in CPython, `getstate` is asked.
    """
    *words, position = generator.getstate()[1]
    size = object.__basicsize__
    if type(generator).__basicsize__ >= size + _STATE_BYTES:
        memory = _memory_at(id(generator) + size)
        if memory.tobytes() == array("I", [position, *words]).tobytes():
            return memory
    return SimpleNamespace(tobytes=generator.getstate)


@functools.lru_cache(16)
def _memory_at(address: int) -> memoryview:
    return memoryview((ctypes.c_char * _STATE_BYTES).from_address(address))


class _Machinery:
    """Marks the context of evaluand's own threads, which read datasets and write journals."""


class _Caller:
    """A thread or a task in which calls are made one after another; between them it is evaluand's own.

    Most calls open nothing, so what one opens is recorded from the first file on.
    """

    __slots__ = ("__weakref__", "_observer", "_record", "_runner", "_unit")

    def __init__(self) -> None:
        self._runner = _runner()
        self._observer: Observer[Any] | None = None
        self._unit: Any = None
        self._record: _Call | None = None
        _callers.add(ref(self, _callers.discard))

    def begin(self, observer: Observer[Any], unit: Any = None, record: _Call | None = None) -> None:
        """Begins a call, or another attempt at one."""
        self._observer, self._unit = observer, unit
        self._record = record or (_Call(observer, unit) if observer.draws else None)

    def end(self) -> _Call | None:
        """Ends the call; returns what it has opened, if anything was recorded."""
        record = self._record
        if record is not None:
            record.end()
        self._observer = self._unit = self._record = None
        return record

    @property
    def is_machinery(self) -> bool:
        """Whether no call is made, and this is not what a call has left behind with its context."""
        return self._observer is None and self._runner == _runner()

    def record(self) -> _Call | None:
        """The record of the call that is made, if one is."""
        if self._record is None and self._observer is not None:
            record = _Call(self._observer, self._unit)
            if self._record is None:  # no other thread has asked meanwhile
                self._record = record
        return self._record


def _runner() -> tuple[int, Any]:
    """The current thread and its task, if it runs an event loop."""
    try:
        return threading.get_ident(), asyncio.current_task()
    except RuntimeError:
        return threading.get_ident(), None


_current: ContextVar[_Caller | _Machinery | None] = ContextVar("_current", default=None)
_MACHINERY = _Machinery()
_callers: set[ref[_Caller]] = set()
_opened: list[_Opened | None] = []  # by all calls of the process that others may find
_places: dict[tuple[Any, ...], int] = {}  # of the files among them
_named: dict[str, dict[_Opened, None]] = {}  # text in the example's values → the files of that name
_hooks: list[Callable[..., None]] = []  # the hook, once it is installed: it cannot be removed again


@contextmanager
def machinery() -> Iterator[None]:
    """A block whose reads and writes are those of evaluand and no inputs of a call."""
    token = _current.set(_MACHINERY)
    try:
        yield
    finally:
        _current.reset(token)


def as_machinery(units: Iterator[U]) -> Iterator[U]:
    """The same units; files read to produce them are no inputs of a call.

    The thread or task that consumes them stays marked as evaluand's, except during the calls that it makes.
    """
    while True:
        if _current.get() is None:
            _current.set(_MACHINERY)
        try:
            unit = next(units)
        except StopIteration:
            return
        yield unit


class Observer(Generic[U]):
    """Observes the calls of one code, and writes what they opened into their journal lines.

    Args:
        facts: facts of the code from its fingerprint.
        ignored: folders whose files are no inputs, such as that of the store.
        prepared: files, by name and state, that count for the answers of all calls.
    """

    def __init__(
        self,
        facts: CodeFacts,
        ignored: Sequence[str | os.PathLike[str]] = (),
        prepared: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.facts = facts
        self.draws = facts.draws  # kept, since each call asks
        self._ignored = tuple(os.path.abspath(folder) + os.sep for folder in ignored)
        self._earlier: dict[int, _Call] = {}  # a unit's slot → its last attempt, which failed
        self._ended: dict[int, str] = {}  # a unit's slot → the node of its inputs
        self._nodes: dict[str, Node] = {}
        self._keys: dict[Node, str] = {}
        self._written: set[str] = set()  # the nodes that lines have defined
        self._names: dict[str, str | None] = {}
        self._prepared: list[tuple[str, str]] = []
        self._chain: tuple[int, str | None] = 0, None  # how much of `_opened` is in it, and its node
        self._chaining = threading.Lock()
        self.begin_with(prepared)
        if not _hooks:
            _hooks.append(_hook)
            sys.addaudithook(_hook)

    def __reduce__(self) -> Any:
        """For workers of a cluster: what was opened before the calls counts there, too."""
        return Observer, (self.facts, self._ignored, self._prepared)

    # -- calls

    def call(self, call: Callable[[U], Any]) -> Callable[[U], Any]:
        """The same call, or the same coroutine function, observed."""
        return partial(self._call_async if inspect.iscoroutinefunction(call) else self._call, call)

    def _call(self, call: Callable[[U], Any], unit: U) -> Any:
        caller = self._begin(unit)
        try:
            value = call(unit)
        except BaseException:
            self._end(unit, caller.end(), has_failed=True)
            raise
        self._end(unit, caller.end())
        return value

    async def _call_async(self, call: Callable[[U], Any], unit: U) -> Any:
        caller = self._begin(unit)
        try:
            value = await call(unit)
        except BaseException:
            self._end(unit, caller.end(), has_failed=True)
            raise
        self._end(unit, caller.end())
        return value

    def _begin(self, unit: U) -> _Caller:
        caller = _current.get()
        if type(caller) is not _Caller:
            caller = _Caller()
            _current.set(caller)
        caller.begin(self, unit, self._earlier.pop(unit.slot, None) if self._earlier else None)
        return caller

    def _end(self, unit: U, record: _Call | None, has_failed: bool = False) -> None:
        """Keeps the node of what a call has opened."""
        if record is None and not _named and self._chain[0] == len(_opened):
            node = self._chain[1]
        else:
            record = record or _Call(self, unit)
            if has_failed:
                self._earlier[unit.slot] = record  # a retry continues it
            node = self._node_of(record)
        if node is not None:
            self._ended[unit.slot] = node

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """A block that loads what all calls need: what it opens counts for each of their answers."""
        caller = _Caller()
        token = _current.set(caller)
        caller.begin(self)
        try:
            yield
        finally:
            record = caller.end()
            with machinery():
                opened = record.opened if record else {}
                self.begin_with([(name, _settle(path, stamp)) for name, (path, stamp) in opened.items()])
            _current.reset(token)

    def begin_with(self, files: Sequence[tuple[str, str]]) -> None:
        """Let files, by name and state, count for the answers of all calls that follow."""
        self._prepared += files
        self._chain = self._chain[0], self._chain_of(self._chain[1], files)

    # -- lines

    def line(self, line: Callable[[U, Any], tuple[bytes, int]]) -> Callable[[U, Any], tuple[bytes, int]]:
        """The same lines, each with the inputs of its unit, if any, as the last element."""
        return partial(self._line, line)

    def _line(self, line: Callable[[U, Any], tuple[bytes, int]], unit: U, outcome: Any) -> tuple[bytes, int]:
        written, failed = line(unit, outcome)
        if self._earlier:
            self._earlier.pop(unit.slot, None)
        node = self._ended.pop(unit.slot, None) if self._ended else None
        if (b" at 0x" in written or b"/tmp" in written) and _PASSING.search(str(outcome.value)):
            node = self._node(node, SHOWED, CHANGED)
        if node is None:
            return written, failed
        if written.count(b"\n") == 1:
            return self.with_inputs(written, node), failed
        lines = written.splitlines(keepends=True)
        return b"".join(self.with_inputs(each, node) for each in lines), failed

    def learn(self, node: str, nodes: Mapping[str, Node]) -> None:
        """Learn a node of earlier work and all nodes on the path to it, so that a line may refer to it."""
        self._nodes.update((key, nodes.get(key, UNDEFINED)) for key in path_of(node, nodes, self._nodes))

    def renew(self, node: str, nodes: Mapping[str, Node]) -> str | None:
        """The node of the same files as those of a node of earlier work, as they are now."""
        names = [name for _, name, _ in (nodes.get(key, UNDEFINED) for key in path_of(node, nodes))]
        files = [name for name in names if name and not name.startswith("(")]
        return self._chain_of(None, [(name, state_of(name, self.facts.folder)) for name in files])

    def begin_log(self) -> None:
        """Define the nodes again: the next lines are written to another log, which is read without this one."""
        self._written.clear()

    def with_inputs(self, line: bytes, node: str) -> bytes:
        """A journal line with the node of its inputs, and its definition if no earlier line has it."""
        if node in self._written:
            return b'%b,["%b"]]\n' % (line[:-2], node.encode())
        path = path_of(node, self._nodes, self._written)
        self._written.update(path)
        return b"%b,%b]\n" % (line[:-2], orjson.dumps([node, [self._nodes[key] for key in path]]))

    # -- what was opened

    def _node_of(self, record: _Call) -> str | None:
        if self._chain[0] < len(_opened):
            with self._chaining:
                n, node = self._chain
                opened = _opened[n:]
                self._chain = n + len(opened), self._chain_of(node, self._states(opened, record))
        node = self._chain[1]
        if not _named and not record.own:
            return node
        named = (opened for text in record.texts & _named.keys() for opened in _named[text])
        return self._chain_of(node, sorted({*self._states(dict.fromkeys((*named, *record.own)), record)}))

    def _states(self, opened: Collection[_Opened | None], record: _Call) -> list[tuple[str, str]]:
        """Names and states of the files among those opened that this code may have found."""
        own = self.facts.modules
        shared = [entry for entry in opened if entry and (own is None or entry[3] is None or own & entry[3])]
        named = [(self.name_of(raw, path), path, stamp) for raw, path, stamp, _ in shared]
        return [
            # what was absent and then created by the call itself counts as the call has left it
            (name, _settle(path, stamp_of(path) if stamp is None and path in record.written else stamp))
            for name, path, stamp in named
            if name is not None
        ]

    def _chain_of(self, node: str | None, files: Sequence[tuple[str, str]]) -> str | None:
        for name, state in files:
            node = self._node(node, name, state)
        return node

    def _node(self, parent: str | None, name: str, state: str) -> str:
        node = parent, name, state
        key = self._keys.get(node)
        if key is None:
            key = self._keys[node] = node_key(*node)
            self._nodes[key] = node
        return key

    def name_of(self, raw: str, path: str) -> str | None:
        """The name of an input in the store; None if it is none.

        Args:
            raw: how the code calls it; with a slash at the end for a folder that is listed.
            path: the full path; empty for what is not a file.
        """
        key = raw if raw == path else path + "\0" + raw
        if key not in self._names:
            ignored = bool(path) and (_is_ignored(path) or (path + os.sep).startswith(self._ignored))
            name = None if ignored else _portable(raw, path, self.facts.folder) if path else raw
            self._names[key] = name and name.encode("utf-8", "backslashreplace").decode()  # another where it is no text
        return self._names[key]


_Opened = tuple[str, str, Stamp | str | None, frozenset[str] | None]
"""How the code calls an input, the full path, its stamp or the state of a listing, and the modules of the code."""

Node = tuple[str | None, str, str]
"""The files of the parent and one more: the parent's key, the file's name and its state."""


UNDEFINED: Node = None, "", CHANGED
"""A node of which nothing is known, or of inputs that could not be observed; it never holds."""


def path_of(node: str | None, nodes: Mapping[str, Node], known: Container[str] = ()) -> list[str]:
    """The keys of a node and of its parents, the first parent first, without those from which on all is known."""
    path: list[str] = []
    while node is not None and node not in known:
        path.append(node)
        node = nodes.get(node, UNDEFINED)[0]
    return path[::-1]


def node_key(parent: str | None, name: str, state: str) -> str:
    """The key of a node: 32 hexadecimal digits, a digest of all files on the path to it."""
    return leaf("input", "\0".join((parent or "", name, state)).encode("utf-8", "surrogatepass")).hex()


# -- the hook


def _hook(event: str, args: Any) -> None:
    if not _callers or event not in _EVENTS:
        return
    current = _current.get()
    if current is _MACHINERY or sys._getframe(1).f_globals.get("__name__") == _STORE_FILES:
        return
    record = None
    if type(current) is _Caller:
        if current.is_machinery:
            return
        record = current.record()
    calls = _in_progress() if record is None else (record,)
    if not calls:
        return
    token = _current.set(_MACHINERY)
    try:
        _note(event, args, calls)
    except Exception:  # an exception here would stop the user's own `open`
        for call in calls:
            _record(call, "", "", "", CHANGED)
    finally:
        _current.reset(token)


def _in_progress() -> tuple[_Call, ...]:
    """The records of all calls that are made."""
    records = (caller.record() for at in tuple(_callers) if (caller := at()) is not None)
    return tuple(record for record in records if record is not None)


def _note(event: str, args: Any, calls: Collection[_Call]) -> None:
    if event == _OPEN:
        raw, _, flags = args
        if type(raw) is not int:
            _note_open(raw if type(raw) is str else os.fsdecode(raw), flags, calls)
    elif event in _LISTING:
        raw = "." if args[0] is None else args[0]
        if type(raw) is not int:
            _note_listing(os.fsdecode(raw), calls)
        elif sys._getframe(2).f_code.co_name not in _IGNORED_FUNCTIONS:
            raise ValueError(raw)  # which folder it is, is not known
    elif event in _NOT_REPEATABLE:
        for call in calls:
            _record(call, _NOT_REPEATABLE[event], _NOT_REPEATABLE[event], "", CHANGED)
    elif event == "os.mkdir":
        path = os.path.abspath(os.fsdecode(args[0]))
        for call in () if os.path.lexists(path) else calls:
            call.made |= {path}
    elif event == "os.rename":
        before, after = (os.path.abspath(os.fsdecode(name)) for name in args[:2])
        for call in calls:
            if call.created(before):
                call.written |= {after}


def _note_open(raw: str, flags: int, calls: Collection[_Call]) -> None:
    path = raw if os.path.isabs(raw) else os.path.join(working_folder(), raw)
    makes = flags & os.O_TRUNC or (flags & os.O_CREAT and (flags & os.O_EXCL or not os.path.lexists(path)))
    if makes or flags & (os.O_WRONLY | os.O_RDWR) == os.O_WRONLY:
        for call in calls:
            if makes:  # what is only appended to may be read later
                call.written |= {path}
            if not _is_ignored(path):
                _record(call, WROTE, WROTE, "", "")
        return
    names = _inputs_of(calls, raw, path)
    if not names or ((raw != path or raw.endswith((".py", ".zip"))) and _is_read_by_python(path)):
        return
    stamp = stamp_of(path)
    if stamp is None or not stat.S_ISDIR(stamp[0]):
        for call, name in names:
            _record(call, name, raw, path, stamp)


def _note_listing(raw: str, calls: Collection[_Call]) -> None:
    path = raw if os.path.isabs(raw) else os.path.join(working_folder(), raw)
    raw, listed = os.path.join(raw, ""), os.path.join(path, "")
    names = _inputs_of(calls, raw, listed)
    if names and not _is_read_by_python(listed):
        state = listing_state(path)
        for call, name in names:
            _record(call, name, raw, listed, state)


def _inputs_of(calls: Collection[_Call], raw: str, path: str) -> list[tuple[_Call, str]]:
    """The calls for which a file is a new input, each with the file's name there."""
    names = {observer: observer.name_of(raw, path) for observer in {call.observer for call in calls}}
    return [
        (call, name)
        for call in calls
        if (name := names[call.observer]) is not None and name not in call.opened and not call.created(path)
    ]


def _record(call: _Call, name: str, raw: str, path: str, stamp: Stamp | str | None) -> None:
    call.opened[name] = path, stamp
    opened = (raw, path, stamp, call.observer.facts.modules)
    if not path:  # what the call did, and not what it has read
        call.own += (opened,)
    elif texts := _own_texts(call, raw, path):
        call.own += (opened,)
        for text in texts:
            _named.setdefault(text, {})[opened] = None
    else:
        _share(opened, call.observer.facts.keeps)


def _share(opened: _Opened, is_kept: bool) -> None:
    """Notes a file that counts for later answers; what code reads anew, and keeps nowhere, counts as it was last."""
    raw, path, stamp, modules = opened
    key = (raw, path, modules, stamp) if is_kept else (raw, path, modules)
    place = _places.get(key)
    if place is None or _opened[place] != opened:
        if place is not None:
            _opened[place] = None
        _places[key] = len(_opened)
        _opened.append(opened)


def _own_texts(call: _Call, raw: str, path: str) -> list[str]:
    """The values of the example that name a file: its name, with or without the ending, or its path."""
    if call.observer.facts.keeps or not call.texts:
        return []
    name = os.path.basename(path.rstrip(os.sep))
    return [text for text in dict.fromkeys((name, name.partition(".")[0], raw, path)) if text in call.texts]


def _texts_in(*values: Any) -> Iterator[str]:
    """Texts and numbers in nested data, as text."""
    waiting = [*values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif value is not None:
            yield str(value)


def _settle(path: str, stamp: Stamp | str | None) -> str:
    """The state of an opened file, or `CHANGED` if it has changed since."""
    if type(stamp) is str:
        return stamp
    now = stamp_of(path)
    return file_state(path, now) if now == stamp else CHANGED


def _is_read_by_python(path: str) -> bool:
    """Whether Python itself opens a file for an import, a traceback or the removal of a folder."""
    code = sys._getframe(4).f_code  # below this function, `_note_open` or `_note_listing`, `_note` and the hook
    is_backport = code.co_filename.endswith(_BACKPORT) and not is_first_party(code.co_filename)
    if code.co_filename in _READERS_OF_SOURCE or is_backport:
        return path.endswith((".py", "METADATA", "entry_points.txt", os.sep))  # a folder: to find packages in it
    return code.co_filename.startswith(_IMPORTING) or code.co_name in _IGNORED_FUNCTIONS


def _is_ignored(path: str) -> bool:
    """Whether no answer depends on a file: of a package, bytecode, system state, a store."""
    path = path.rstrip(os.sep)
    if path.startswith(_IGNORED_FOLDERS) or path in _IGNORED_DEVICES or path.endswith(".pyc"):
        return True
    if path.endswith(".zip") and path in sys.path:
        return True
    parts = path.split(os.sep)
    described = any(part.endswith((".dist-info", ".egg-info")) for part in parts)  # where entry points are looked up
    return described or ".evaluand" in parts or not is_first_party(path)


def _portable(raw: str, path: str, folder: str) -> str:
    """A path as it is stored: relative to the working folder if opened like that, else to the folder of the code."""
    name = f"./{os.path.normpath(raw)}" if raw != path else portable(path, folder)
    return f"{name}/" if path.endswith(os.sep) else name
