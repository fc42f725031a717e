"""Whether code may remember anything from one call to the next: then a file that one call reads may serve later ones.

It may where a function is cached, sets a global, or stores something in an object that outlives the call; where it
calls a method of such an object, or passes it on, unless objects of that type only hold data; and where it uses a
module that caches files. What is not known is taken for remembering: it only makes more files count.
"""

from __future__ import annotations

import ast
import datetime as dt
import decimal
import enum
import logging
import pathlib
import re
import types
from typing import Any, TypeGuard

from evaluand.core.fingerprint.flow import Flow, Known, Leaf, Scope, find_callee, is_parameter
from evaluand.core.fingerprint.outside import UNLISTED, is_caching, why_outside
from evaluand.core.fingerprint.wrapping import is_a, is_function, module_of

_CACHES = frozenset(("functools.cache", "functools.cached_property", "functools.lru_cache"))
_SETTING = frozenset(f"builtins.{name}" for name in ("delattr", "next", "object.__setattr__", "setattr", "vars"))
_SAFE = re.compile(r"(builtins|json|re)\.\w+$")  # functions that change nothing, but for those above
_CHANGING = frozenset(
    str.split(
        "add append appendleft clear discard extend extendleft fill fit fit_predict fit_transform insert itemset "
        "partial_fit pop popitem put put_nowait remove resize reverse set_params setdefault sort update __setattr__ "
        "__setitem__"
    )
)
_READING = frozenset(  # methods of containers and texts
    str.split(
        "casefold copy count decode difference encode endswith format get index intersection isdisjoint issubset "
        "issuperset items join keys lower lstrip partition replace rsplit rstrip split splitlines startswith strip "
        "title union upper values"
    )
)
_MAKING = frozenset(("__init__", "__post_init__", "__setstate__"))
_FIXED = (
    *(bool, bytes, complex, dt.date, dt.time, dt.timedelta, decimal.Decimal, enum.Enum, float, int, logging.Logger),
    *(logging.LoggerAdapter, pathlib.PurePath, range, re.Pattern, str, type, types.FunctionType, types.MethodType),
    *(types.ModuleType, types.NoneType),
)
_DATA = frozenset(("numpy", "pandas", "polars", "pyarrow", "scipy", "sklearn"))  # whose objects cache no files
_DISPLAYS = ast.Constant | ast.Dict | ast.DictComp | ast.JoinedStr | ast.List | ast.ListComp | ast.Set | ast.SetComp
_MADE = _DISPLAYS | ast.Compare | ast.GeneratorExp | ast.Lambda | ast.Tuple | ast.UnaryOp


def remembers(scope: Scope, flow: Flow) -> bool:
    """Whether a definition may leave something behind for a later call."""
    return any(_remembers(node, scope, flow) for node in scope.nodes)


def _remembers(node: ast.AST, scope: Scope, flow: Flow) -> bool:
    if isinstance(node, ast.Global | ast.Nonlocal):
        return True
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        if isinstance(node, ast.Attribute) and node.attr != "__dict__" and _is_new(node.value, scope):
            return False
        return not _is_own(node.value, scope, flow)
    if isinstance(node, ast.Name | ast.Attribute):
        if _is_of_object(node, scope) and node.attr in _CHANGING:
            return not _is_own(node.value, scope, flow)  # called, or passed on to be called
        full = scope.names.named(node)
        return bool(full) and (full in _CACHES or full in _SETTING or is_caching(full))
    return isinstance(node, ast.Call) and (_changes(node, scope, flow) or _passes_on(node, scope, flow))


def _changes(call: ast.Call, scope: Scope, flow: Flow) -> bool:
    """Whether a call may change the object whose method it is."""
    function = call.func
    if any(keyword.arg in ("inplace", "out") for keyword in call.keywords):
        return True
    if not _is_of_object(function, scope) or find_callee(scope, function):
        return False
    return function.attr not in _READING and _outlives(function.value, scope, flow)


def _is_of_object(node: ast.expr, scope: Scope) -> TypeGuard[ast.Attribute]:
    """Whether an expression is the attribute of an object, not of a module or class."""
    if not isinstance(node, ast.Attribute):
        return False
    return not is_a(scope.names.resolve_node(node.value)[0], type, types.ModuleType)


def _is_new(node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is the object that a method makes."""
    arguments = [*scope.node.args.posonlyargs, *scope.node.args.args]
    first = arguments[0].arg if arguments else ""
    return scope.function.__name__ in _MAKING and isinstance(node, ast.Name) and node.id == first


def _passes_on(call: ast.Call, scope: Scope, flow: Flow) -> bool:
    """Whether a call passes on an object that outlives it."""
    full = scope.names.named(call.func)
    if full and (_SAFE.match(full) or full.partition(".")[0] in _DATA):
        return False
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(_outlives(argument, scope, flow) for argument in arguments)


def _is_own(node: ast.expr, scope: Scope, flow: Flow) -> bool:
    """Whether an expression gives only what the call itself has made."""
    return _kinds(node, scope, flow, set()) == {"made"}


def _outlives(node: ast.expr, scope: Scope, flow: Flow) -> bool:
    """Whether an expression may give an object that is there for later calls, and is more than fixed data."""
    return "lasting" in _kinds(node, scope, flow, set())


def _kinds(node: ast.expr, scope: Scope, flow: Flow, seen: set[int]) -> set[str]:
    """What an expression may be: made by the call, fixed data, lasting from call to call, or unknown."""
    if id(node) in seen:
        return set()
    seen.add(id(node))
    if isinstance(node, ast.Subscript | ast.Starred):
        return _kinds(node.value, scope, flow, seen)
    return set().union(*(_kinds_of(origin, flow, seen) for origin in flow.origins(node, scope)))


def _kinds_of(origin: Known | Leaf, flow: Flow, seen: set[int]) -> set[str]:
    if isinstance(origin, Known):
        return {"fixed" if _is_fixed(origin.value) else "lasting"}
    node, scope = origin.node, origin.scope
    if node is None or is_parameter(origin):
        return {"unknown"}
    if isinstance(node, ast.Attribute):
        return _kinds(node.value, scope, flow, seen) - {"fixed"} or {"lasting"}
    if isinstance(node, ast.Call):
        return _kinds_of_call(node, scope, flow, seen)
    if isinstance(node, ast.BinOp):
        return (_kinds(node.left, scope, flow, seen) | _kinds(node.right, scope, flow, seen) | {"made"}) - {"fixed"}
    if isinstance(node, ast.Subscript | ast.Starred):
        return _kinds(node.value, scope, flow, seen)
    return {"made" if isinstance(node, _MADE) else "unknown"}


def _kinds_of_call(node: ast.Call, scope: Scope, flow: Flow, seen: set[int]) -> set[str]:
    value, full = scope.names.resolve_node(node.func)
    if full == "builtins.type":
        return {"lasting"}
    if is_a(value, type) or (full and why_outside(full) != UNLISTED and not is_caching(full)):
        return {"made"}
    if find_callee(scope, node.func):
        return set()  # what it returns is followed
    if isinstance(node.func, ast.Attribute) and not full:
        return _kinds(node.func.value, scope, flow, seen) - {"fixed"} or {"made"}
    return {"unknown"}


def _is_fixed(value: Any) -> bool:
    """Whether a value cannot be changed, or only by setting its items."""
    if type(value) in (tuple, frozenset):
        return all(map(_is_fixed, value))
    return is_a(value, *_FIXED) or is_function(value) or module_of(type(value)).partition(".")[0] in _DATA
