"""Source files, parsed, and matched with the code that runs.

A file may have been edited after its import. A function is therefore taken to be a definition only where the text
still compiles to the same bytecode; otherwise the bytecode speaks for it.
"""

from __future__ import annotations

import ast
import linecache
import pathlib
import types
import warnings
from dataclasses import dataclass, field
from functools import cached_property

from evaluand.core.fingerprint.bytecode import code_token, nested
from evaluand.core.fingerprint.homes import Namespace
from evaluand.core.fingerprint.syntax import Definition, text_of
from evaluand.core.fingerprint.wrapping import file_of

MAX_CACHED_FILES = 256


@dataclass
class SourceFile:
    """A parsed file, with the code objects it compiles to."""

    text: bytes
    tree: ast.Module
    codes: dict[str, list[types.CodeType]] = field(default_factory=dict)
    functions: dict[tuple[int, str], list[Definition]] = field(default_factory=dict)
    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)

    def function(self, code: types.CodeType) -> Definition | None:
        """The definition of a running function, or None where the text is not what it was compiled from."""
        candidates = self.codes.get(code.co_qualname)
        if not candidates:
            return None
        own = code_token(code)
        same = [c for c in candidates if code_token(c) == own]
        if not same:
            return None
        position = _span(code)
        compiled = next((c for c in same if _span(c) == position), same[0])
        return self._definition(compiled)

    def statements(self, name: str) -> list[ast.stmt]:
        """The statements at the top of the file that set a name."""
        return [node for node in self.tree.body if name in _assigned(node)]

    @cached_property
    def effects(self) -> list[tuple[ast.stmt, list[ast.expr]]]:
        """The statements at the top of the file that set no name, each with what it calls or changes."""
        return [(node, changed) for node in self.tree.body if (changed := _changed(node))]

    def statement(self, name: str) -> str:
        """The text of `statements`."""
        return "\n".join(map(text_of, self.statements(name)))

    def _definition(self, code: types.CodeType) -> Definition | None:
        nodes = self.functions.get((code.co_firstlineno, code.co_name), [])
        if len(nodes) > 1:
            around = [n for n in nodes if isinstance(n, ast.Lambda) and _encloses(n.body, _span(code))]
            return max(around, key=lambda n: _extent(n)[0], default=None)  # the innermost begins last
        return nodes[0] if nodes else None


class Sources:
    """The source files met in one traversal, each as it was when first met."""

    def __init__(self) -> None:
        self._sources: dict[str, SourceFile | None] = {}

    def of(self, file: str | None, namespace: Namespace) -> SourceFile | None:
        """The source of a module; None where there is none, or none that compiles."""
        if file is None:
            return None
        if file not in self._sources:
            self._sources[file] = _read(file, namespace)
        return self._sources[file]

    def definition(self, function: types.FunctionType) -> Definition | None:
        """The definition of a running function, where there is one that says what runs."""
        source = self.of(file_of(function), function.__globals__)
        return source.function(function.__code__) if source else None


_cache: dict[str, SourceFile | None] = {}


def _read(file: str, namespace: Namespace) -> SourceFile | None:
    """A file's source as it is now; parsed anew only when its text is another."""
    try:
        text = pathlib.Path(file).read_bytes()
    except (OSError, ValueError):  # a notebook's cell, a doctest, a module in an archive
        text = "".join(linecache.getlines(file, dict(namespace))).encode("utf-8", "surrogatepass")
    known = _cache.get(file)
    if known is not None and known.text == text:
        return known
    if len(_cache) >= MAX_CACHED_FILES:
        _cache.clear()
    _cache[file] = source = _parse(text, file) if text.strip() else None
    return source


def _parse(text: bytes, file: str) -> SourceFile | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
            compiled = compile(tree, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return None
    source = SourceFile(text, tree)
    for code in nested(compiled):
        source.codes.setdefault(code.co_qualname, []).append(code)
    _index(tree, source)
    return source


def _index(tree: ast.Module, source: SourceFile) -> None:
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        if isinstance(node, ast.ClassDef):
            source.classes.setdefault(prefix + node.name, []).append(node)
            prefix = f"{prefix}{node.name}."
        elif isinstance(node, Definition):
            name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
            line = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            source.functions.setdefault((line, name), []).append(node)
            prefix = f"{prefix}{name}.<locals>."
        waiting.extend((child, prefix) for child in ast.iter_child_nodes(node))


def _changed(node: ast.stmt) -> list[ast.expr]:
    """What a statement calls, or of what it sets an attribute or item."""
    if isinstance(node, ast.Expr):
        return [node.value.func] if isinstance(node.value, ast.Call) else []
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
        return []
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
    return [target for target in targets if isinstance(target, ast.Attribute | ast.Subscript)]


# -- positions


_Span = tuple[tuple[int, int], tuple[int, int]]


def _span(code: types.CodeType) -> _Span:
    """From where to where a code object's instructions reach: line and column."""
    starts, ends = [], []
    for line, last, column, end in code.co_positions():
        if line is not None and last is not None and column is not None and end:
            starts.append((line, column))
            ends.append((last, end))
    first = (code.co_firstlineno, 0)
    return min(starts, default=first), max(ends, default=first)


def _extent(node: ast.expr) -> _Span:
    return (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)


def _encloses(node: ast.expr, span: _Span) -> bool:
    start, end = _extent(node)
    return start <= span[0] and span[1] <= end


def _assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {name.id for target in targets if target for name in ast.walk(target) if isinstance(name, ast.Name)}
