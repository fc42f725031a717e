"""What a definition says: its text without what does not count, and the names, imports and texts in it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from evaluand.core.fingerprint.homes import Namespace

Chain = tuple[str, ...]  # a name and the attributes taken from it: helpers.normalise
Import = tuple[int, str, Chain]  # level, module and what is taken from it
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def text_of(node: ast.AST) -> str:
    """The text of some syntax, the same for every formatting and without comments."""
    try:
        return ast.unparse(node)
    except (
        RecursionError,
        ValueError,
    ):  # a sum of some hundred terms is that deep; very large integers are not written
        return repr([(type(n).__name__, [_shape_of(value) for _, value in ast.iter_fields(n)]) for n in ast.walk(node)])


def _shape_of(value: Any) -> Any:
    if isinstance(value, list):
        return [_shape_of(item) for item in value]
    if type(value) is int:
        return hex(value)
    return "node" if isinstance(value, ast.AST) else value


def without_our_decorators(node: Definition, namespace: Namespace) -> Definition:
    """Leaves out `@task` and the like: names and labels say nothing of behaviour; the rest has its own identity."""
    if isinstance(node, ast.Lambda):
        return node
    decorators, node = decorators_of(node, namespace), copy.copy(node)
    node.decorator_list = decorators
    return node


def decorators_of(node: Definition, namespace: Namespace) -> list[ast.expr]:
    """The decorators of a function other than evaluand's own."""
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    return [decorator for decorator in decorators if not _is_evaluands(decorator, namespace)]


def _is_evaluands(decorator: ast.expr, namespace: Namespace) -> bool:
    chain = chain_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
    value = namespace.get(chain[0]) if chain else None
    for name in chain[1:]:
        value = getattr(value, name, None)
    return str(getattr(value, "__module__", "")).partition(".")[0] == "evaluand"


def without_methods(node: ast.ClassDef, covered: Collection[str]) -> ast.ClassDef:
    """Leaves out the methods that have a separate identity."""
    node = copy.copy(node)
    rest = [s for s in node.body if not (isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef) and s.name in covered)]
    node.body = rest or [ast.Pass()]
    return node


def signature_of(node: Definition) -> list[ast.AST]:
    """The parts of a definition that run outside its code object: decorators and annotations."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    annotations = [a.annotation for a in every if a is not None]
    more = [] if isinstance(node, ast.Lambda) else [*node.decorator_list, node.returns]
    return [part for part in (*annotations, *more) if part is not None]


# -- names


def chains_of(nodes: Iterable[ast.AST], leaving: Collection[int] = ()) -> set[Chain]:
    """The names and attribute chains in some syntax, other than the nodes whose `id` is in `leaving`."""
    found: set[Chain] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        chain = chain_of(node)
        if not chain:
            waiting.extend(ast.iter_child_nodes(node))
        elif id(node) not in leaving:
            found.add(chain)
    return found


def chain_of(node: ast.AST) -> Chain:
    """The name and attributes that an expression consists of; empty where it is anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) else ()


def imports_in(node: ast.AST) -> dict[str, Import]:
    """The names that a definition sets by importing, and what they stand for."""
    bound: dict[str, Import] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Import):
            for alias in part.names:
                top = alias.name.partition(".")[0]
                bound[alias.asname or top] = (0, alias.name if alias.asname else top, ())
        elif isinstance(part, ast.ImportFrom):
            for alias in part.names:
                bound[alias.asname or alias.name] = (part.level, part.module or "", (alias.name,))
    return bound


def taken_from(imports: Mapping[str, Import], chains: Iterable[Chain]) -> set[Import]:
    """What chains take from the modules that some of their first names stand for."""
    taken = [(imports[name], rest) for name, *rest in chains if name in imports]
    return {(level, module, (*chain, *rest)) for (level, module, chain), rest in taken}
