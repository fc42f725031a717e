"""What an expression may be, followed through variables, parameters, attributes and the user's own functions."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evaluand.core.fingerprint.homes import MISSING
from evaluand.core.fingerprint.names import CodeNames, assigned, static_attribute
from evaluand.core.fingerprint.parts import Place
from evaluand.core.fingerprint.syntax import Definition, chain_of
from evaluand.core.fingerprint.wrapping import innermost, is_a

MAX_FOLLOWED = 300  # expressions on the way to what one of them may be

_PROPERTIES = frozenset(("functools.cached_property", "builtins.property"))


@dataclass(eq=False)
class Scope:
    """A definition, to be judged once everything that is reached has been met."""

    function: types.FunctionType
    node: Definition
    names: CodeNames
    place: Place
    owner: Any = MISSING

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All syntax of the body, without annotations."""
        body = self.node.body
        return [node for part in (body if isinstance(body, list) else [body]) for node in _without_annotations(part)]

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """The `id` of a node → the node around it."""
        return {id(child): node for node in (self.node, *self.nodes) for child in ast.iter_child_nodes(node)}

    def parent(self, node: ast.AST) -> ast.AST:
        """The node around another one; the definition itself at the top."""
        return self.parents.get(id(node), self.node)

    def loads(self, name: str) -> Iterator[ast.expr]:
        """Where a variable or an attribute is read."""
        for node in self.nodes:
            found = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if found == name and isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                yield node

    @cached_property
    def results(self) -> list[ast.expr]:
        """The expressions that it returns."""
        return results_in(self.node)

    def nested(self, node: ast.expr) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions written inside the definition that a name may be."""
        functions = (each for each in self.nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
        return [each for each in functions if isinstance(node, ast.Name) and each.name == node.id]

    def is_property(self) -> bool:
        """Whether its result is read as an attribute."""
        decorators = [] if isinstance(self.node, ast.Lambda) else self.node.decorator_list
        return any(self.names.named(decorator) in _PROPERTIES for decorator in decorators)


@dataclass(frozen=True)
class Known:
    """A value that is there when the code is read: of a global, a default, an attribute."""

    value: Any


@dataclass(frozen=True, eq=False)
class Leaf:
    """An expression that is not followed further; the syntax is None for what is not known at all."""

    node: ast.expr | None
    scope: Scope


@dataclass(frozen=True, eq=False)
class _Step:
    """An expression to follow; where `is_read`, an attribute of an object that is not known."""

    node: ast.expr
    scope: Scope
    is_read: bool = False


_Origin = Known | Leaf | _Step


@dataclass
class Flow:
    """The definitions of one traversal, and how values flow between them.

    Attributes:
        scopes: a function's `id` → its definition.
        passed: functions (`id`) that are used as values, so that not all their calls are known.
    """

    scopes: dict[int, Scope] = field(default_factory=dict)
    passed: set[int] = field(default_factory=set)
    _calls: dict[int, list[tuple[Scope, ast.Call, int]]] = field(default_factory=dict)
    _named_calls: dict[str, list[tuple[Scope, ast.Call, int]]] = field(default_factory=dict)  # of methods
    _methods: dict[str, list[Scope]] = field(default_factory=dict)
    _set: dict[str, list[tuple[Scope, ast.expr]]] = field(default_factory=dict)  # by the name of the attribute
    _of_objects: dict[str, list[Any]] = field(default_factory=dict)
    _of_classes: dict[str, list[Any]] = field(default_factory=dict)
    _steps: dict[tuple[ast.expr, Scope], list[_Origin]] = field(default_factory=dict)
    _origins: dict[tuple[ast.expr, Scope], list[Known | Leaf]] = field(default_factory=dict)

    def note_value(self, name: str, value: Any, of_class: bool = False) -> None:
        """Takes note of an attribute's value."""
        self._forget()
        (self._of_classes if of_class else self._of_objects).setdefault(name, []).append(value)

    def note_passed(self, function: Any) -> None:
        """Takes note of a function that is used as a value."""
        self._forget()
        self.passed.add(id(function))

    def note(self, scope: Scope) -> None:
        """Takes note of a definition: of whom it calls, and which attributes it sets."""
        self.scopes[id(scope.function)] = scope
        self._forget()
        if scope.owner is not MISSING:
            self._methods.setdefault(scope.function.__name__, []).append(scope)
        for node in scope.nodes:
            if isinstance(node, ast.Call):
                if callee := find_callee(scope, node.func):
                    self._calls.setdefault(id(callee[0]), []).append((scope, node, callee[1]))
                if isinstance(node.func, ast.Attribute) and not scope.names.named(node.func):
                    self._named_calls.setdefault(node.func.attr, []).append((scope, node, 1))
            for target, value in attributes_set(node, scope):
                self._set.setdefault(target, []).append((scope, value))

    def _forget(self) -> None:
        """Drops what was followed before another definition or value was met."""
        self._steps.clear()
        self._origins.clear()

    def knows_calls(self, scope: Scope) -> bool:
        """Whether a function is only called where that shows, so that its results can be followed."""
        if id(scope.function) in self.passed:
            return False
        name = scope.function.__name__
        by_name = scope.owner is not MISSING and (name in self._named_calls or scope.is_property())
        return by_name or id(scope.function) in self._calls

    def attributes(self) -> Iterator[Known | Leaf]:
        """What the attributes of all objects may be."""
        for values in (*self._of_objects.values(), *self._of_classes.values()):
            yield from map(Known, values)
        for places in self._set.values():
            for scope, value in places:
                yield from self.origins(value, scope)

    # -- origins

    def origins(self, node: ast.expr, scope: Scope) -> list[Known | Leaf]:
        """What an expression may be."""
        if (node, scope) not in self._origins:
            self._origins[node, scope] = self._follow(node, scope, set())
        return self._origins[node, scope]

    def _follow(self, node: ast.expr, scope: Scope, seen: set[int]) -> list[Known | Leaf]:
        if len(seen) > MAX_FOLLOWED:
            return [Leaf(None, scope)]
        if id(node) in seen:
            return []
        seen.add(id(node))
        if (node, scope) not in self._steps:
            self._steps[node, scope] = [*self._steps_from(node, scope)]
        found: list[Known | Leaf] = []
        for step in self._steps[node, scope]:
            if isinstance(step, _Step):
                follow = self._follow_attribute if step.is_read else self._follow
                found += follow(step.node, step.scope, seen)
            else:
                found.append(step)
        return found

    def _follow_attribute(self, node: ast.expr, scope: Scope, seen: set[int]) -> list[Known | Leaf]:
        name = node.attr if isinstance(node, ast.Attribute) else ""
        found: list[Known | Leaf] = [Known(value) for value in self._of_objects.get(name, ())]
        for owner, value in self._set.get(name, ()):
            found += self._follow(value, owner, seen)
        found = found or [Known(value) for value in self._of_classes.get(name, ())]
        for method in self._methods.get(name, ()):
            for result in method.results if method.is_property() else ():
                found += self._follow(result, method, seen)
        return found or [Leaf(node, scope)]

    def _steps_from(self, node: ast.expr, scope: Scope) -> Iterator[_Origin]:
        """What an expression may be, as far as its own syntax says."""
        if isinstance(node, ast.Constant):
            yield Known(node.value)
        elif isinstance(node, ast.Await | ast.NamedExpr):
            yield _Step(node.value, scope)
        elif isinstance(node, ast.IfExp):
            yield from (_Step(node.body, scope), _Step(node.orelse, scope))
        elif isinstance(node, ast.BoolOp):
            yield from (_Step(value, scope) for value in node.values)
        elif isinstance(node, ast.Call):
            yield from self._steps_from_call(node, scope)
        elif isinstance(node, ast.Name) and scope.names.is_local(node.id):
            yield from self._steps_from_variable(node, scope)
        elif isinstance(node, ast.Name | ast.Attribute):
            yield from self._steps_from_name(node, scope)
        else:
            yield Leaf(node, scope)

    def _steps_from_call(self, node: ast.Call, scope: Scope) -> Iterator[_Origin]:
        for inner in self.functions_at(node.func, scope):
            yield from (_Step(result, inner) for result in inner.results)
        for nested in scope.nested(node.func):
            yield from (_Step(result, scope) for result in results_in(nested))
        names: list[ast.expr] = node.args[1:2] if scope.names.named(node.func) == "builtins.getattr" else []
        if isinstance(node.func, ast.Call) and scope.names.named(node.func.func) == "operator.attrgetter":
            names = node.func.args
        for name in names:
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield _Step(ast.Attribute(node, name.value, ast.Load()), scope, is_read=True)
        yield Leaf(node, scope)

    def functions_at(self, node: ast.expr, scope: Scope) -> list[Scope]:
        """The functions that an expression may be; by the name of the method, where the object is not known."""
        callee = find_callee(scope, node)
        inner = self.scopes.get(id(callee[0])) if callee else None
        found = [inner] if inner else []
        if isinstance(node, ast.Attribute) and not scope.names.named(node):
            found += self._methods.get(node.attr, [])  # subclasses may have another
        return found

    def _steps_from_variable(self, node: ast.Name, scope: Scope) -> Iterator[_Origin]:
        values = list(scope.names.settings[node.id])
        if node.id in _parameters(scope.node):
            values.remove(None)
            yield from self._steps_from_parameter(node.id, scope)
        yield from (_Step(value, scope) for value in values if value is not None)
        if None in values:
            yield from _steps_from_loops(node, scope)

    def _steps_from_parameter(self, name: str, scope: Scope) -> Iterator[_Origin]:
        default = _defaults(scope.function).get(name, MISSING)
        calls = self._calls.get(id(scope.function), [])
        by_name = self._named_calls.get(scope.function.__name__, []) if scope.owner is not MISSING else []
        if not calls and scope.function.__name__ == "__init__":
            return  # no call makes such an object
        for caller, call, before in (*calls, *by_name):
            argument = argument_of(call, scope.node, name, before)
            if argument is not None:
                yield _Step(argument, caller)
            elif default is MISSING or _has_stars(call):
                yield Leaf(None, caller)
            else:
                yield Known(default)
        if by_name or not self.knows_calls(scope):
            yield Leaf(_PARAMETER, scope) if default is MISSING else Known(default)

    def _steps_from_name(self, node: ast.Name | ast.Attribute, scope: Scope) -> Iterator[_Origin]:
        chain = chain_of(node)
        value, full = scope.names.resolve(chain) if chain else (MISSING, "")
        if value is not MISSING:
            yield Known(value)
        elif full or not isinstance(node, ast.Attribute):
            yield Leaf(node, scope)
        else:
            yield _Step(node, scope, is_read=True)


def _steps_from_loops(node: ast.Name, scope: Scope) -> Iterator[_Origin]:
    """What a variable may be that loops set."""
    loops = [each for each in scope.nodes if isinstance(each, ast.For | ast.comprehension)]
    iters = [each.iter for each in loops if isinstance(each.target, ast.Name) and each.target.id == node.id]
    if len(iters) < scope.names.settings[node.id].count(None) - (node.id in _parameters(scope.node)):
        yield Leaf(None, scope)
    for each in iters:
        yield from _elements(each, scope)


def _elements(node: ast.expr, scope: Scope) -> Iterator[_Origin]:
    if isinstance(node, ast.List | ast.Tuple):
        yield from (_Step(item, scope) for item in node.elts)
    elif isinstance(node, ast.Call) and scope.names.named(node.func) == "builtins.range":
        yield Known(0)
    else:
        chain = chain_of(node)
        values: Any = scope.names.resolve(chain)[0] if chain else MISSING
        yield from map(Known, values) if is_a(values, list, tuple) else [Leaf(None, scope)]


_PARAMETER = ast.Name("parameter", ast.Load())  # stands for an argument that comes from outside: the data


def is_parameter(leaf: Leaf) -> bool:
    """Whether a leaf is an argument of a function that evaluand or a library calls."""
    return leaf.node is _PARAMETER


def results_in(node: Definition) -> list[ast.expr]:
    """The expressions that a definition returns, or something inside it."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    returned = [part.value for statement in node.body for part in ast.walk(statement) if isinstance(part, ast.Return)]
    found = [value for value in returned if value is not None]
    may_give_none = len(found) < len(returned) or (bool(found) and _falls_through(node.body))
    return [*found, ast.Constant(None)] if may_give_none else found


def find_callee(scope: Scope, function: ast.expr) -> tuple[Any, int] | None:
    """The user's own function that is called, and how many arguments precede those of the call."""
    chain = chain_of(function)
    value = scope.names.resolve(chain)[0] if chain else MISSING
    bound = 0
    if value is MISSING and len(chain) == 2 and scope.owner is not MISSING:
        value, bound = static_attribute(scope.owner, chain[1]), 1
    if is_a(value, type):
        value, bound = static_attribute(value, "__init__"), 1
    if type(value) is types.MethodType:
        value, bound = value.__func__, 1
    inner = innermost(value)
    return (inner, bound) if type(inner) is types.FunctionType and scope.names.is_ours(inner) else None


def argument_of(call: ast.Call, node: Definition, name: str, before: int) -> ast.expr | None:
    """The expression that a call has for a parameter; None where it has none."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    place = positional.index(name) - before if name in positional else -1
    return call.args[place] if 0 <= place < len(call.args) else None


def _parameters(node: Definition) -> set[str]:
    arguments = node.args
    return {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    code, positional = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return dict(zip(names[len(names) - len(positional) :], positional, strict=True)) | (function.__kwdefaults__ or {})


def attributes_set(node: ast.AST, scope: Scope) -> Iterator[tuple[str, ast.expr]]:
    """The attributes that a piece of syntax sets, each with the expression that it is set to."""
    for target, value in assigned(node):
        if isinstance(target, ast.Attribute):
            yield target.attr, value
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
        yield node.target.attr, node.value
    if not isinstance(node, ast.Call):
        return
    made, full = scope.names.resolve_node(node.func)
    last = node.func.attr if isinstance(node.func, ast.Attribute) else full.rpartition(".")[2]
    if is_a(made, type) and scope.names.is_ours(made):
        fields = static_attribute(made, "__dataclass_fields__")
        yield from zip(fields if is_a(fields, dict) else (), node.args, strict=False)
    elif last not in ("model_copy", "replace"):
        if full == "builtins.setattr" and len(node.args) == 3 and isinstance(node.args[1], ast.Constant):
            yield str(node.args[1].value), node.args[2]
        return
    yield from ((keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg)


def _has_stars(call: ast.Call) -> bool:
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return starred or any(keyword.arg is None for keyword in call.keywords)


def _falls_through(body: list[ast.stmt]) -> bool:
    """Whether the statements may end without returning anything."""
    last = body[-1]
    if isinstance(last, ast.If):
        return not last.orelse or _falls_through(last.body) or _falls_through(last.orelse)
    if isinstance(last, ast.With | ast.AsyncWith):
        return _falls_through(last.body)
    if isinstance(last, ast.Try):
        blocks = [last.orelse or last.body, *(handler.body for handler in last.handlers)]
        return not (last.finalbody and not _falls_through(last.finalbody)) and any(map(_falls_through, blocks))
    return not isinstance(last, ast.Return | ast.Raise | ast.While | ast.Match)


def _without_annotations(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those inside it, without annotations, which nothing runs."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        annotations = (getattr(node, "annotation", None), getattr(node, "returns", None))
        waiting += [child for child in ast.iter_child_nodes(node) if child not in annotations]
