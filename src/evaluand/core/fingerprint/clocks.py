"""Whether the time that a clock gives is only used to measure: subtracted, compared or shown."""

from __future__ import annotations

import ast

from evaluand.core.fingerprint.flow import Flow, Scope
from evaluand.core.fingerprint.shown import is_shown


def measures(node: ast.expr, scope: Scope, flow: Flow, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a time is only measured with, wherever it is stored; what is not known is not."""
    parent = scope.parent(node)
    if id(node) in seen or is_shown(node, scope) or isinstance(parent, ast.Compare | ast.Expr):
        return True
    seen |= {id(node)}
    if isinstance(parent, ast.BinOp):
        added = isinstance(parent.op, ast.Add) and measures(parent, scope, flow, seen)
        return isinstance(parent.op, ast.Sub) or added
    if isinstance(parent, ast.NamedExpr):
        return measures(parent, scope, flow, seen) and all(
            measures(load, scope, flow, seen) for load in scope.loads(parent.target.id)
        )
    targets = parent.targets if isinstance(parent, ast.Assign) else [getattr(parent, "target", None)]
    if not isinstance(parent, ast.Assign | ast.AnnAssign) or len(targets) > 1:
        return False
    if isinstance(targets[0], ast.Name):
        return scope.names.is_local(targets[0].id) and all(
            measures(load, scope, flow, seen) for load in scope.loads(targets[0].id)
        )
    if not isinstance(targets[0], ast.Attribute):
        return False
    name = targets[0].attr
    return all(measures(load, at, flow, seen) for at in flow.scopes.values() for load in at.loads(name))
