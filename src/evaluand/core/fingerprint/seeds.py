"""Whether a seed may be None: then what it is for draws at random, as if it had no seed."""

from __future__ import annotations

import ast

from evaluand.core.fingerprint.flow import Flow, Known, Leaf, Scope, is_parameter
from evaluand.core.fingerprint.outside import SEEDS

_MAY_GIVE_NONE = frozenset(("builtins.getattr", "builtins.next"))
_METHODS_WITH_NONE = frozenset(("get", "getattr", "pop", "setdefault"))
_NOT_FOLLOWED = ast.Attribute | ast.Name | ast.Starred | ast.Subscript | ast.Yield | ast.YieldFrom


def seed_in(call: ast.Call) -> ast.expr | None:
    """The expression that a call gives as a seed by name."""
    return next((keyword.value for keyword in call.keywords if keyword.arg in SEEDS), None)


def may_be_none(seed: ast.expr, scope: Scope, flow: Flow) -> bool:
    """Whether a seed may be None; what is not known may be."""
    if isinstance(seed, ast.BoolOp) and isinstance(seed.op, ast.Or):
        seed = seed.values[-1]
    return any(_is_none(origin, flow) for origin in flow.origins(seed, scope))


def _is_none(origin: Known | Leaf, flow: Flow) -> bool:
    if isinstance(origin, Known):
        return origin.value is None
    node, scope = origin.node, origin.scope
    if node is None or is_parameter(origin):
        return node is None
    if isinstance(node, ast.Call):
        full = scope.names.named(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) and not full else ""
        return full in _MAY_GIVE_NONE or method in _METHODS_WITH_NONE
    return isinstance(node, _NOT_FOLLOWED)
