"""Whether a seed may be None: then what it is for draws at random, as if it had no seed."""

from __future__ import annotations

import ast
import re

from evaluand.core.fingerprint.flow import Flow, Known, Leaf, Scope, find_callee, is_parameter
from evaluand.core.fingerprint.names import assigned
from evaluand.core.fingerprint.outside import SEEDS

_GIVES = re.compile(r"(?!builtins\.(getattr|next)$)(binascii|builtins|hashlib|math|numpy|secrets|time|zlib)\.")
_METHODS = frozenset(  # that never give None
    str.split(
        "bit_length count digest encode find from_bytes getrandbits hexdigest index integers join lower randint random "
        "randrange replace spawn strip upper"
    )
)
_NOT_FOLLOWED = ast.Attribute | ast.Name | ast.Starred | ast.Subscript | ast.Yield | ast.YieldFrom


def seed_in(call: ast.Call) -> ast.expr | None:
    """The expression that a call gives as a seed by name."""
    return next((keyword.value for keyword in call.keywords if keyword.arg in SEEDS), None)


def may_be_none(seed: ast.expr, scope: Scope, flow: Flow) -> bool:
    """Whether a seed may be None; what is not known may be."""
    if isinstance(seed, ast.BoolOp) and isinstance(seed.op, ast.Or):
        return may_be_none(seed.values[-1], scope, flow)
    if isinstance(seed, ast.IfExp) and (tested := _tested(seed.test)):
        unless, branch = (seed.body, seed.orelse) if isinstance(tested[1], ast.IsNot) else (seed.orelse, seed.body)
        if ast.dump(unless) == ast.dump(tested[0]):
            return may_be_none(branch, scope, flow)
    if any(isinstance(node, ast.If) and _replaces_none(node, seed, scope, flow) for node in scope.nodes):
        return False
    return any(_is_none(origin) for origin in flow.origins(seed, scope))


def _tested(test: ast.expr) -> tuple[ast.expr, ast.cmpop] | None:
    """What is compared with None, and how; None for any other test."""
    if not isinstance(test, ast.Compare) or len(test.ops) > 1 or not isinstance(test.ops[0], ast.Is | ast.IsNot):
        return None
    right = test.comparators[0]
    return (test.left, test.ops[0]) if isinstance(right, ast.Constant) and right.value is None else None


def _replaces_none(node: ast.If, seed: ast.expr, scope: Scope, flow: Flow) -> bool:
    """Whether a statement replaces a variable that is None: `if seed is None: seed = 0`."""
    tested = _tested(node.test)
    if tested is None or not isinstance(tested[1], ast.Is) or ast.dump(tested[0]) != ast.dump(seed):
        return False
    values = [
        value
        for part in node.body
        for target, value in assigned(part)
        if getattr(target, "id", "") == ast.unparse(seed)
    ]
    return bool(values) and not any(_is_none(origin) for value in values for origin in flow.origins(value, scope))


def _is_none(origin: Known | Leaf) -> bool:
    if isinstance(origin, Known):
        return origin.value is None
    node, scope = origin.node, origin.scope
    if node is None or is_parameter(origin):
        return node is None
    if isinstance(node, ast.Call):
        full = scope.names.named(node.func)
        if find_callee(scope, node.func):
            return False  # what it returns is followed
        return not (_GIVES.match(full) if full else getattr(node.func, "attr", "") in _METHODS)
    return isinstance(node, _NOT_FOLLOWED)
