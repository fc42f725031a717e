"""A definition that is read name by name: its syntax, what is around each expression, and what is only shown."""

from __future__ import annotations

import ast
import logging
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaluand.core.fingerprint.homes import MISSING
from evaluand.core.fingerprint.names import CodeNames
from evaluand.core.fingerprint.parts import Place
from evaluand.core.fingerprint.syntax import Definition, chain_of
from evaluand.core.fingerprint.wrapping import is_a

_LOGGING = frozenset(("critical", "debug", "error", "exception", "info", "log", "set", "warn", "warning"))
_LOGGERS = frozenset(("log", "logger", "task_span"))  # however many underscores, in whatever case


@dataclass(eq=False)
class Scope:
    """The definition of a function.

    Attributes:
        owner: the class that a method was written in; MISSING for a function.
        is_root: whether it is the function whose fingerprint is taken, which evaluand calls.
    """

    function: types.FunctionType
    node: Definition
    names: CodeNames
    place: Place
    owner: Any = MISSING
    is_root: bool = False

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All syntax that runs, from the outside in: the body, decorators and defaults, without annotations."""
        body = self.node.body
        return [node for part in (body if isinstance(body, list) else [body]) for node in _without_annotations(part)]

    @cached_property
    def _parents(self) -> dict[int, ast.AST]:
        return {id(child): node for node in (self.node, *self.nodes) for child in ast.iter_child_nodes(node)}

    @cached_property
    def functions(self) -> set[str]:
        """The names of the functions that are written inside the definition."""
        return {node.name for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}

    def parent(self, node: ast.AST) -> ast.AST:
        """The node around another one; the definition itself at the top."""
        return self._parents.get(id(node), self.node)

    @property
    def parameters(self) -> list[ast.arg]:
        """The parameters that may be given by position, and those that may be given by name alone."""
        arguments = self.node.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

    def is_self(self, node: ast.expr) -> bool:
        """Whether an expression is the object of the method."""
        return isinstance(node, ast.Name) and bool(self.parameters) and node.id == self.parameters[0].arg

    def is_shown(self, node: ast.AST) -> bool:
        """Whether an expression is only printed, logged or traced."""
        while not isinstance(node, ast.stmt) and node is not self.node:
            inner, node = node, self.parent(node)
            if isinstance(node, ast.Call) and inner is not node.func and self._shows(node):
                return True
        return False

    def _shows(self, call: ast.Call) -> bool:
        full = self.names.named(call.func)
        if full == "builtins.print":
            files = [keyword.value for keyword in call.keywords if keyword.arg == "file"]
            return all(self.names.named(file) in ("sys.stderr", "sys.stdout") for file in files)
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOGGING:
            return False
        if full.startswith("logging."):
            return True
        if isinstance(call.func.value, ast.Call):
            return self.names.named(call.func.value.func) == "logging.getLogger"
        chain = chain_of(call.func.value)
        value = self.names.resolve(chain)[0] if chain else MISSING
        is_named_so = value is MISSING and bool(chain) and chain[-1].strip("_").lower() in _LOGGERS
        return is_named_so or is_a(value, logging.Logger, logging.LoggerAdapter)


def _without_annotations(node: ast.AST) -> Iterator[ast.AST]:
    """Some syntax with all that it consists of, in the order in which it is written."""
    waiting = [node]
    while waiting:
        part = waiting.pop()
        yield part
        inner: list[ast.AST]
        if isinstance(part, ast.AnnAssign):
            inner = [part.target, *([part.value] if part.value else [])]
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            defaults = [*part.args.defaults, *(value for value in part.args.kw_defaults if value)]
            inner = [*part.decorator_list, *defaults, *part.body]
        else:
            inner = list(ast.iter_child_nodes(part))
        waiting.extend(reversed(inner))
