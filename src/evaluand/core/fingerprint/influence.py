"""What stands in a definition without an influence on what comes out of it.

    shown      the arguments of `print`, of a logger's methods and of a task's span, and what only they use
    not run    classes in `isinstance`, `except`, `case` and comparisons of types, which make nothing
    setting    `os.environ["A"] = "b"`, `del`, and `setdefault`, `pop` and `update` whose result nobody takes
    guarding   `if not folder.exists(): folder.mkdir()`, which only prepares writing

What is shown may be made of the date, chance or the environment. A program that is run for it is run all the same.
"""

from __future__ import annotations

import ast
import logging
import types
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from evaluand.core.fingerprint.bindings import Variables
from evaluand.core.fingerprint.names import CodeNames
from evaluand.core.fingerprint.syntax import chain_of
from evaluand.core.fingerprint.wrapping import is_a

SPAN = "task_span"

_LOGGING = frozenset(("critical", "debug", "error", "exception", "info", "log", "warn", "warning"))
_LOGGERS = frozenset(("log", "logger"))  # however many underscores, in whatever case
_SPANNING = frozenset(("log", "set", "span"))
_CHECKING = frozenset(("builtins.isinstance", "builtins.issubclass"))
_ASKED = frozenset(("builtins.getattr", "builtins.hasattr"))  # of modules, which `reach` judges
_SETTING = frozenset(("clear", "pop", "setdefault", "update"))
_ASKING = frozenset(("exists", "is_dir", "isdir", "lexists"))
_PREPARING = frozenset(("makedirs", "mkdir"))


@dataclass(frozen=True, slots=True)
class Idle:
    """What has no influence.

    Attributes:
        shown: the `id` of everything that is only shown to people.
        unused: the `id` of expressions that are named and not used for what they can do.
    """

    shown: Collection[int] = frozenset()
    unused: Collection[int] = frozenset()


def idle_in(node: ast.AST, names: CodeNames) -> Idle:
    """What has no influence in some syntax, whose names these are."""
    shown: set[int] = set()
    unused: set[int] = set()
    spans = {SPAN} | {name for name, several in names.settings.items() if any(_is_span(s.value) for s in several)}
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and _shows(part, names, spans):
            arguments = (*part.args, *(keyword.value for keyword in part.keywords))
            shown.update(id(inner) for argument in arguments for inner in ast.walk(argument))
        unused.update(id(inner) for inner in _unused(part, names))
    Variables(node, names.settings).follow(shown, lambda value: shown.update(map(id, ast.walk(value))))
    return Idle(shown, unused)


def _is_span(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and chain_of(value.func) == (SPAN, "span")


def _shows(call: ast.Call, names: CodeNames, spans: Collection[str]) -> bool:
    full = names.called(call.func)
    if full == "builtins.print":
        return all(keyword.arg != "file" or "std" in ast.unparse(keyword.value) for keyword in call.keywords)
    if not isinstance(call.func, ast.Attribute):
        return False
    method, of = call.func.attr, call.func.value
    chain = chain_of(of)
    if method in _SPANNING and len(chain) == 1 and chain[0] in spans:
        return True
    if method not in _LOGGING:
        return False
    if full and full.startswith("logging."):
        return True
    if isinstance(of, ast.Call):
        return names.called(of.func) == "logging.getLogger"
    if not chain:
        return False
    return is_a(names.stands_for(chain)[0], logging.Logger, logging.LoggerAdapter) or (
        chain[-1].strip("_").lower() in _LOGGERS
    )


def _unused(node: ast.AST, names: CodeNames) -> Iterator[ast.AST]:
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        yield from ast.walk(node.type)
    elif isinstance(node, ast.MatchClass):
        yield node.cls
    elif isinstance(node, ast.Compare):
        yield from (inner for inner in (node.left, *node.comparators) if _is_class(inner, names))
    elif isinstance(node, ast.Call) and len(node.args) > 1 and names.called(node.func) in _CHECKING:
        yield from ast.walk(node.args[1])
    elif isinstance(node, ast.Call) and node.args and names.called(node.func) in _ASKED:
        chain = chain_of(node.args[0])
        if chain and type(names.stands_for(chain)[0]) is types.ModuleType:
            yield node.args[0]
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield from _environment(node.value, names)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        if isinstance(function, ast.Attribute) and function.attr in _SETTING and [*_environment(function.value, names)]:
            yield function
    elif isinstance(node, ast.If) and not node.orelse and all(map(_prepares, node.body)):
        test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        if isinstance(test, ast.Call) and _last_of(test) in _ASKING:
            yield from (test, test.func)


def _is_class(node: ast.expr, names: CodeNames) -> bool:
    chain = chain_of(node)
    return bool(chain) and is_a(names.stands_for(chain)[0], type)


def _environment(node: ast.expr, names: CodeNames) -> Iterator[ast.AST]:
    chain = chain_of(node)
    if chain and names.stands_for(chain)[1] in ("os.environ", "os.environb"):
        yield node


def _prepares(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and _last_of(call) in _PREPARING


def _last_of(call: ast.Call) -> str:
    return (chain_of(call.func) or (getattr(call.func, "attr", ""),))[-1]
