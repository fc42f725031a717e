"""Attributes and globals that code sets, so that what they hold now is not what they will hold."""

from __future__ import annotations

import ast
import types

from evaluand.core.fingerprint.homes import MISSING
from evaluand.core.fingerprint.paths import Known
from evaluand.core.fingerprint.scopes import Met, Scope
from evaluand.core.fingerprint.syntax import chain_of
from evaluand.core.fingerprint.wrapping import innermost, is_code

TABLE = "__dict__"

_SETTING = frozenset(("builtins.setattr", "builtins.delattr", "builtins.object.__setattr__"))
_SETTING_METHODS = frozenset(("__setattr__", "__delattr__"))
_CHANGING_METHODS = frozenset(("clear", "pop", "setdefault", "update"))
_MAKING = frozenset(("__init__", "__new__", "__post_init__", "__setstate__"))


def note_set(scope: Scope, owner: ast.expr, name: str | None) -> None:
    """Takes note that code sets an attribute, of any name where it is None; what makes an object is left out."""
    if scope.function.__name__ in _MAKING:
        return
    chain = chain_of(owner)
    value = scope.names.stands_for(chain)[0] if chain else MISSING
    if type(value) is types.ModuleType:
        scope.met.set_globals.add((id(vars(value)), name))
    scope.met.set_attributes.add(name)


def note_item_set(scope: Scope, table: ast.expr) -> None:
    """Takes note that an item is set, if it is of the table of an object's names: `x.__dict__`, `vars(x)`."""
    if isinstance(table, ast.Attribute) and table.attr == TABLE:
        note_set(scope, table.value, None)
    elif isinstance(table, ast.Call) and scope.names.called(table.func) == "builtins.vars":
        note_set(scope, table.args[0] if table.args else table, None)


def note_call(scope: Scope, call: ast.Call, full: str | None) -> bool:
    """Takes note of a call that sets attributes; whether it does nothing else."""
    if full in _SETTING and len(call.args) > 1:
        for name in Known(scope).values(call.args[1]) or [None]:
            note_set(scope, call.args[0], name if isinstance(name, str) else None)
        return True
    if isinstance(call.func, ast.Attribute) and call.func.attr in _SETTING_METHODS:
        note_set(scope, call.func.value, None)
        return True
    if isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGING_METHODS:
        note_item_set(scope, call.func.value)
    return False


def note_module(met: Met, module: types.ModuleType) -> None:
    """Takes note of a module of one's own that is handed on, so that anything in it may be called or set."""
    met.handed.update(id(innermost(value)) for value in vars(module).values() if is_code(value))
    met.set_globals.add((id(vars(module)), None))
