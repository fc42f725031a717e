"""What functions, classes and modules are: their own text, and everything first-party that they reach by name.

First-party functions and classes are parts, read when their turn comes. Constants are parts too, one for each name in
a module, so that a changed constant is reported as such, and not as a change of all code that uses it.
"""

from __future__ import annotations

import ast
import enum
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from evaluand.core.fingerprint.bytecode import Uses, code_token, uses_of
from evaluand.core.fingerprint.files import is_text_or_path, name_token
from evaluand.core.fingerprint.homes import MISSING, Home, Namespace, attribute_of, imported
from evaluand.core.fingerprint.names import CodeNames, closure_of, full_name_of
from evaluand.core.fingerprint.outside import why_outside
from evaluand.core.fingerprint.parts import Content, Place
from evaluand.core.fingerprint.plain import plain_data
from evaluand.core.fingerprint.source import Sources
from evaluand.core.fingerprint.syntax import (
    Chain,
    chains_of,
    decorators_of,
    signature_of,
    taken_from,
    text_of,
    without_methods,
    without_our_decorators,
)
from evaluand.core.fingerprint.tokens import leaf, mix
from evaluand.core.fingerprint.wrapping import (
    declared_files,
    file_of,
    functions_in,
    is_a,
    is_cached,
    is_code,
    is_function,
    is_readable,
    module_of,
    own_functions,
    wrapped,
)

if TYPE_CHECKING:
    from evaluand.core.fingerprint.walk import Walk

MAX_WRAPPED = 50  # wrappers around a function before it is taken as any other object

_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_MODULE_NAMES = frozenset(
    str.split("__builtins__ __cached__ __file__ __loader__ __name__ __package__ __path__ __spec__")
)

_NOT_CHANGED = frozenset(("", *str.split("argparse atexit builtins evaluand faulthandler logging signal sys warnings")))
"""What statements at the top of a module may call without a change of answers; empty for code of one's own."""


class Code:
    """Reads code in one traversal."""

    def __init__(self, walk: Walk) -> None:
        self.parts, self.homes, self.lookup, self.secrets = walk.parts, walk.homes, walk.lookup, walk.secrets
        self.value, self.variable, self.ignores_changes = walk.value, walk.variable, walk.ignores_changes
        self.sources = Sources()
        self._constants: dict[tuple[int, str], bytes] = {}
        self._top_level: dict[int, list[bytes]] = {}

    def token(self, value: Any, place: Place) -> bytes | None:
        """The token of something that is code, or wraps it; None for other values."""
        kind = type(value)
        if kind is types.FunctionType:
            return self._function(value, place)
        if issubclass(kind, type):
            return self._class(value, place)
        if kind is types.MethodType:
            return mix("method", self.value(value.__func__, place), self.value(value.__self__, place))
        if kind is types.ModuleType:
            return self._module(value)
        inner = wrapped(value)
        if inner is None:
            return None
        if is_cached(value):
            self.lookup.value(value, place)
        if kind is functools.cached_property:
            self.lookup.note_cache()
        if kind in (functools.partial, functools.partialmethod):
            self.lookup.partial(value.func, value.keywords)
        read = self._named_code if is_cached(value) else self.value
        return mix(kind.__qualname__, *(read(item, place) for item in inner))

    def foreign_closure(self, function: types.FunctionType, place: Place) -> bytes:
        """The content of a function that is not first-party and holds something that may be."""
        home = self.homes.of(function)
        name = leaf("name", f"{home.name}.{function.__code__.co_qualname}".encode())
        inner = self.value(getattr(function, "__wrapped__", None), place)
        return mix("closure", name, inner, *self._closure(function, place))

    # -- functions

    def _function(self, function: types.FunctionType, place: Place) -> bytes:
        home = self.homes.of(function)
        code = function.__code__
        if home.ours:
            shown = f"{home.stem}.{code.co_qualname}"
            return self.parts.part(function, code.co_qualname, shown, home, lambda at: self._content(function, at))
        name = leaf("name", f"{home.name}.{code.co_qualname}".encode())
        inner = getattr(function, "__wrapped__", None)
        if home.name == "functools" and hasattr(function, "registry"):
            return mix("dispatch", name, self.value(dict(function.registry), place))
        if inner is not None and self._is_decorated(inner):
            return mix("decorated", name, self.value(inner, place))
        if inner is not None and not self.homes.of(inspect.unwrap(function)).ours:
            return name
        if function.__closure__ or inner is not None:
            return self.parts.later(function, place, lambda: self.foreign_closure(function, place))
        return name

    def _is_decorated(self, function: Any) -> bool:
        """Whether the text of a first-party function shows what it is wrapped in, and with which settings."""
        for _ in range(MAX_WRAPPED):
            if type(function) is not types.FunctionType:
                return False
            if "__wrapped__" not in function.__dict__:
                break
            function = function.__dict__["__wrapped__"]
        node = self.sources.definition(function) if self.homes.of(function).ours else None
        return node is not None and bool(decorators_of(node, function.__globals__))

    def _content(self, function: types.FunctionType, place: Place) -> bytes:
        code, namespace = function.__code__, function.__globals__
        node, uses = self.sources.definition(function), uses_of(code)
        if node is None:
            own = code_token(code)
            self.lookup.bytecode(function, uses, place)
        else:
            node = without_our_decorators(node, namespace)
            names = CodeNames(node, namespace, self.homes, closure_of(function), {chain[0] for chain in uses.chains})
            followed = self.lookup.definition(function, node, names, place)
            uses.imports = taken_from(names.imports, chains_of([node])) | followed
            uses.chains |= chains_of(signature_of(node))
            own = leaf("source", text_of(node).encode())
        globals_ = [*self._used(uses, namespace, place), *self._effects(namespace)]
        return mix("function", own, *globals_, *self._defaults(function, place), *self._closure(function, place))

    def _defaults(self, function: types.FunctionType, place: Place) -> Iterator[bytes]:
        code, positional = function.__code__, function.__defaults__ or ()
        first = code.co_argcount - len(positional)
        named = dict(zip(code.co_varnames[first : code.co_argcount], positional, strict=False))
        named |= function.__kwdefaults__ or {}
        for name in sorted(named):
            at = place.named(f"{place.shown} (default of {name})")
            yield leaf("default", name.encode()) + self.variable(function, name, named[name], at)
        given = function.__dict__
        if "__wrapped__" not in given and function.__doc__ not in (None, *code.co_consts[:1]):
            given = given | {"__doc__": function.__doc__}  # which was set later
        for name, value in sorted(given.items()):
            at = place.named(f"{place.shown}.{name}")
            yield leaf("attribute", name.encode()) + self.variable(function, name, value, at)

    def _closure(self, function: types.FunctionType, place: Place) -> Iterator[bytes]:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not set yet
                continue
            at = place.named(f"{place.shown} (closure variable {name})")
            yield leaf("closure", name.encode()) + self.variable(function, name, value, at)

    # -- names that code uses

    def _used(self, uses: Uses, namespace: Namespace, place: Place) -> list[bytes]:
        tokens = [
            leaf("global", ".".join(chain).encode()) + self._global(namespace, chain, uses, place)
            for chain in sorted(uses.chains)
            if chain[0] in uses.stored or (chain[0] in namespace and chain[0] not in _MODULE_NAMES)
        ]
        for taken in sorted(uses.imports):
            level, name, chain = taken
            module = imported(name, level, namespace)
            what = leaf("import", ".".join((str(level), name, *chain)).encode())
            ours = (
                module is not None and self.homes.of(module).ours
            )  # else by name, whether it is loaded already or not
            tokens.append(what + (self._attribute(module, chain, place) if module and ours else what))
        return tokens

    def _global(self, namespace: Namespace, chain: Chain, uses: Uses, place: Place) -> bytes:
        name = chain[0]
        if name in uses.stored:
            return self._constant(namespace, name, lambda at: self._start(name, namespace, at))
        if type(namespace[name]) is types.ModuleType:
            return self._attribute(namespace[name], chain[1:], place)
        return self._name(namespace, name, namespace[name], place)

    def _attribute(self, module: types.ModuleType, chain: Chain, place: Place) -> bytes:
        """The token of the attribute that a chain reads from a module."""
        if not chain or not self.homes.of(module).ours:
            return self._module(module)
        value = attribute_of(module, chain[0])
        if type(value) is types.ModuleType:
            return self._attribute(value, chain[1:], place)
        if value is MISSING:
            return leaf("missing", chain[0].encode())
        return self._name(vars(module), chain[0], value, place)

    def _name(self, namespace: Namespace, name: str, value: Any, place: Place) -> bytes:
        home = self.homes.of_namespace(namespace)
        if is_code(value):
            return self._named_code(value, place.named(f"{home.stem}.{name}"))
        if is_function(value) and not is_code(value) and not _is_bound(value):
            return leaf("function", full_name_of(value, self.homes).encode())
        if is_text_or_path(value):
            text = self.secrets.hide(self.secrets.hide_named(name, value))
            return self._constant(namespace, name, lambda at: name_token(text, at.home.folder))
        if known := _public_name(value, name):
            self.lookup.meet(known)
            return leaf("object", known.encode())
        if self.is_unread(value) or (self.ignores_changes and plain_data(value, self.secrets) is None):
            return self._constant(namespace, name, lambda at: self._object_of_library(name, namespace, value, at))
        return self._constant(namespace, name, lambda at: self.variable(namespace, name, value, at))

    def _object_of_library(self, name: str, namespace: Namespace, value: Any, place: Place) -> bytes:
        """A global of which not all may be read: also the statements that set it, and what these use."""
        source = self.sources.of(place.home.file, namespace)
        uses = Uses(chains_of(source.statements(name) if source else ()))
        used = self._used(uses, namespace, place)
        return mix("made", self._start(name, namespace, place), self.variable(namespace, name, value, place), *used)

    def is_unread(self, value: Any) -> bool:
        """Whether an object is one of a library that may give something else each time: a client, a model."""
        return why_outside(name) is not None if (name := full_name_of(type(value), self.homes)) else False

    def _named_code(self, value: Any, place: Place) -> bytes:
        """Code that is used by its name, so that it shows how it is used."""
        known = self.parts.known(value)
        if known is not None:
            return known
        token = None if declared_files(value) else self.token(value, place)
        return self.value(value, place) if token is None else token

    def _constant(self, namespace: Namespace, name: str, content: Content) -> bytes:
        key = id(namespace), name
        if key not in self._constants:
            home = self.homes.of_namespace(namespace)
            self._constants[key] = self.parts.part(object(), name, f"{home.stem}.{name}", home, content)
        return self._constants[key]

    def _start(self, name: str, namespace: Namespace, place: Place) -> bytes:
        """A global that the code changes, or that cannot be read: the statements that set it first."""
        source = self.sources.of(place.home.file, namespace)
        return leaf("starts", source.statement(name).encode() if source else b"")

    def _effects(self, namespace: Namespace) -> list[bytes]:
        """The token of the statements at the top of a module that change a library, such as an option of it."""
        if id(namespace) not in self._top_level:
            source = self.sources.of(self.homes.of_namespace(namespace).file, namespace)
            names = CodeNames(ast.Module([], []), namespace, self.homes)
            nodes = [node for node, changed in (source.effects if source else ()) if _reach_library(changed, names)]
            uses, text = Uses(chains_of(nodes)), "\n".join(map(text_of, nodes)).encode()

            def content(place: Place) -> bytes:
                return mix("effects", leaf("source", text), *self._used(uses, namespace, place))

            tokens = [self._constant(namespace, "top-level statements", content)] if nodes else []
            self._top_level[id(namespace)] = tokens
        return self._top_level[id(namespace)]

    def _module(self, module: types.ModuleType) -> bytes:
        home, known = self.homes.of(module), self.parts.known(module)
        if known is not None:
            return known
        if not home.ours:
            return leaf("module", module.__name__.encode())
        return self.parts.part(
            module, "module", f"module {home.stem}", home, lambda at: self._module_content(module, at)
        )

    def _module_content(self, module: types.ModuleType, place: Place) -> bytes:
        """A module that is used as a value, so that anything in it may be."""
        source = self.sources.of(place.home.file, vars(module))
        text = text_of(source.tree) if source else ""
        inside = sorted((name, value) for name, value in vars(module).items() if is_code(value))
        tokens = (leaf("name", name.encode()) + self.value(value, place) for name, value in inside)
        return mix("module", leaf("source", text.encode()), *tokens)

    # -- classes

    def _class(self, kind: type, place: Place) -> bytes:
        if not is_readable(kind):
            return self.parts.opaque(kind, place)
        home = self.homes.of_class(kind)
        if not home.ours:
            version = getattr(kind, "version", None) if home.name.partition(".")[0] == "evaluand" else None
            version = version if isinstance(version, str | int) else ""
            return leaf("name", f"{kind.__module__}.{kind.__qualname__}@{version}".encode())
        shown = f"{home.stem}.{kind.__qualname__}"
        return self.parts.part(kind, kind.__qualname__, shown, home, lambda at: self._class_content(kind, at))

    def _class_content(self, kind: type, place: Place) -> bytes:
        namespace = self.homes.namespace_of(kind)
        source = self.sources.of(_file_of_class(kind, place.home), namespace)
        nodes = source.classes.get(kind.__qualname__, []) if source else []
        members, covered = self._members(kind, bool(nodes), place)
        rest = ast.Module([without_methods(node, covered) for node in nodes], [])
        names = CodeNames(rest, namespace, self.homes)
        self.lookup.class_body(rest, names, place)
        uses = Uses(chains_of([rest]))
        text = "\n".join(text_of(node) for node in rest.body)
        bases = [self.value(base, place) for base in (*kind.__bases__, type(kind))]
        return mix("class", leaf("source", text.encode()), *bases, *self._used(uses, namespace, place), *members)

    def _members(self, kind: type, sourced: bool, place: Place) -> tuple[list[bytes], set[str]]:
        """Tokens of a class's attributes, and the names of the methods whose text they cover."""
        tokens: list[bytes] = []
        covered: set[str] = set()
        file = _file_of_class(kind, place.home)
        if issubclass(kind, enum.Enum):
            for name, member in kind.__members__.items():
                own = {part: value for part, value in vars(member).items() if not part.startswith("_")}
                for part, value in {"value": member._value_, **own}.items():
                    at = place.named(f"{place.shown}.{name}{'' if part == 'value' else f'.{part}'}")
                    self.lookup.attribute(part, value)
                    tokens.append(leaf("member", f"{name}.{part}".encode()) + self.value(value, at))
        for name, value in sorted(vars(kind).items()):
            if name in _ANNOTATIONS:
                continue
            functions = functions_in(value)
            written = bool(functions) and all(file_of(f) == file for f in functions)
            if not written and (_is_machinery(name, value, sourced) or issubclass(kind, enum.Enum)):
                continue
            if written:
                covered.add(name)
            self.lookup.attribute(name, value)
            token = self.variable(kind, name, value, place.named(f"{place.shown}.{name}"))
            tokens.append(leaf("member", name.encode()) + token)
        return tokens, covered


def _reach_library(changed: list[ast.expr], names: CodeNames) -> bool:
    """Whether what a statement calls or changes belongs to a library that answers may depend on."""
    parts = (part for expression in changed for part in ast.walk(expression))
    return any(names.named(part).partition(".")[0] not in _NOT_CHANGED for part in parts)


def _is_bound(function: Any) -> bool:
    """Whether a compiled function is the method of an object."""
    return not is_a(getattr(function, "__self__", None), type, types.ModuleType, types.NoneType)


def _public_name(value: Any, name: str) -> str:
    """The full name of an object that a package offers under that name, such as `scipy.stats.norm`; else empty."""
    package = module_of(type(value))
    while package := package.rpartition(".")[0]:
        if vars(sys.modules.get(package, types)).get(name) is value:
            return f"{package}.{name}"
    return ""


def _file_of_class(kind: type, home: Home) -> str | None:
    return home.file or next((file_of(function) for function in own_functions(kind)), None)


_ANNOTATIONS = frozenset(("__annotate__", "__annotate_func__", "__annotations_cache__"))
"""What Python 3.14 makes of the annotations of a class, which its source has."""


def _is_machinery(name: str, value: Any, sourced: bool) -> bool:
    """Whether a class's attribute was put there by Python or a library, not by whoever wrote the class."""
    if is_a(value, *_SLOTS) or name == "_abc_impl":
        return True
    dunder = name.startswith("__") and name.endswith("__")
    return dunder and (sourced or not functions_in(value))
