"""Whether code may remember anything from one call to the next: then a file that one call reads may serve later ones.

It may where a function is cached (`functools.cache`, `cached_property`), sets a global, sets an attribute other than in
making an object, changes a list or dictionary that it has not made itself, or uses a module that caches files. What
the text does not show is taken for remembering: it only makes more files count.
"""

from __future__ import annotations

import ast

from evaluand.core.fingerprint.names import CodeNames
from evaluand.core.fingerprint.outside import UNLISTED, is_caching, why_outside
from evaluand.core.fingerprint.syntax import chain_of

_CACHES = frozenset(("functools.cache", "functools.cached_property", "functools.lru_cache"))
_SETTING = frozenset(("builtins.delattr", "builtins.object.__setattr__", "builtins.setattr", "builtins.vars"))
_CHANGING = frozenset(
    str.split(
        "add append appendleft clear discard extend extendleft insert pop popitem put put_nowait remove reverse "
        "setdefault sort update __setattr__ __setitem__"
    )
)
_FRESH_METHODS = frozenset(
    str.split("copy findall format groups join read readlines read_text replace rsplit split splitlines strip sub")
)
_MAKING = frozenset(("__init__", "__new__", "__post_init__", "__setstate__"))
_DISPLAYS = (
    ast.Constant,
    ast.Dict,
    ast.DictComp,
    ast.GeneratorExp,
    ast.JoinedStr,
    ast.List,
    ast.ListComp,
    ast.Set,
    ast.SetComp,
    ast.Tuple,
)


def remembers(node: ast.AST, names: CodeNames) -> bool:
    """Whether a definition may leave something behind for a later call."""
    making = getattr(node, "name", "") in _MAKING
    return any(_remembers(part, names, making) for part in ast.walk(node))


def _remembers(part: ast.AST, names: CodeNames, making: bool) -> bool:
    if isinstance(part, ast.Global | ast.Nonlocal):
        return True
    if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load):
        return not making and not _is_own(part.value, names)
    if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
        return not _is_own(part.value, names)
    if isinstance(part, ast.Name | ast.Attribute):
        full = names.named(part)
        return bool(full) and (full in _CACHES or full in _SETTING or is_caching(full))
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CHANGING:
        return not _is_own(part.func.value, names)
    return False


def _is_own(node: ast.expr, names: CodeNames, depth: int = 5) -> bool:
    """Whether an expression gives what the definition itself has made."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    if isinstance(node, _DISPLAYS):
        return True
    if isinstance(node, ast.BinOp):
        return _is_own(node.left, names, depth)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _FRESH_METHODS:
            return True
        chain = chain_of(node.func)
        value, full = names.resolve(chain) if chain else (None, "")
        return isinstance(value, type) or (bool(full) and why_outside(full) != UNLISTED and not is_caching(full))
    if isinstance(node, ast.Name) and names.is_local(node.id) and depth:
        return all(value is not None and _is_own(value, names, depth - 1) for value in names.settings[node.id])
    return False
