"""Which expressions are only shown: printed, logged, traced, or part of the message of an error."""

from __future__ import annotations

import ast
import logging

from evaluand.core.fingerprint.flow import Scope
from evaluand.core.fingerprint.homes import MISSING
from evaluand.core.fingerprint.syntax import chain_of
from evaluand.core.fingerprint.wrapping import is_a

_LOGGING = frozenset(("critical", "debug", "error", "exception", "info", "log", "set", "warn", "warning"))
_LOGGERS = frozenset(("log", "logger", "task_span"))  # however many underscores, in whatever case


def is_shown(node: ast.AST, scope: Scope, *, raised: bool = False) -> bool:
    """Whether an expression is only printed, logged or traced.

    Args:
        raised: whether what an error says is only shown too, as no code reads it.
    """
    while not isinstance(node, ast.stmt) and node is not scope.node:
        inner, node = node, scope.parent(node)
        if isinstance(node, ast.Raise):
            return raised
        if isinstance(node, ast.Call) and inner is not node.func and _shows(node, scope):
            return True
    return False


def _shows(call: ast.Call, scope: Scope) -> bool:
    full = scope.names.named(call.func)
    if full == "builtins.print":
        files = [keyword.value for keyword in call.keywords if keyword.arg == "file"]
        return all(scope.names.named(file) in ("sys.stderr", "sys.stdout") for file in files)
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOGGING:
        return False
    if full.startswith("logging."):
        return True
    if isinstance(call.func.value, ast.Call):
        return scope.names.named(call.func.value.func) == "logging.getLogger"
    chain = chain_of(call.func.value)
    value = scope.names.resolve(chain)[0] if chain else MISSING
    named = value is MISSING and bool(chain) and chain[-1].strip("_").lower() in _LOGGERS
    return named or is_a(value, logging.Logger, logging.LoggerAdapter)


def reads_errors(scope: Scope) -> bool:
    """Whether a definition uses what an error says, other than to show it."""
    caught = {node.name for node in scope.nodes if isinstance(node, ast.ExceptHandler) and node.name}
    loads = [load for name in caught for load in scope.loads(name) if not isinstance(scope.parent(load), ast.Raise)]
    formats = any(isinstance(node, ast.Name) and node.id == "traceback" for node in scope.nodes)
    return formats or not all(is_shown(load, scope, raised=True) for load in loads)
