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


def is_shown(node: ast.AST, scope: Scope) -> bool:
    """Whether an expression is only printed, logged or traced, or says what went wrong."""
    while not isinstance(node, ast.stmt) and node is not scope.node:
        inner, node = node, scope.parent(node)
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call) and inner is not node.func and _shows(node, scope):
            return True
    return False


def _shows(call: ast.Call, scope: Scope) -> bool:
    full = scope.names.named(call.func)
    if full == "builtins.print":
        return all(keyword.arg != "file" or "std" in ast.unparse(keyword.value) for keyword in call.keywords)
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOGGING:
        return False
    if full.startswith("logging."):
        return True
    if isinstance(call.func.value, ast.Call):
        return scope.names.named(call.func.value.func) == "logging.getLogger"
    chain = chain_of(call.func.value)
    value = scope.names.resolve(chain)[0] if chain else MISSING
    named = bool(chain) and chain[-1].strip("_").lower() in _LOGGERS
    return named or is_a(value, logging.Logger, logging.LoggerAdapter)
