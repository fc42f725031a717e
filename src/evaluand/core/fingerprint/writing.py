"""Which files a definition names only in order to write to them.

A task that keeps a log would otherwise differ from itself after its first call: it could never be reused, and a run
never resumed. What a file held before has no influence where code does nothing with its name but these:

    open(name, "w")        and those of `io`, `codecs`, `gzip`, `bz2`, `lzma`, where the mode is a constant: `w` and `x`
                           with or without `+`, and `a` without it (`a+` and `r+` read)
    name.open("w")         the same
    name.write_text(...)   and `write_bytes`, `touch`, `unlink`, `mkdir`
    os.remove(name)        and `os.unlink`, `os.mkdir`, `os.makedirs`
    FileHandler(name)      and its kin in `logging.handlers`, and `logging.basicConfig(filename=name)`
    frame.to_csv(name)     and others of pandas, polars and matplotlib; `numpy.save` and its kin

The name may be made up on the spot of other names and texts (`HERE / "logs" / f"{day}.log"`, `os.path.join`,
`name.parent`), and it may stand in a variable, a parameter's default or a global of one's own modules, where *every*
use of that variable is one of these. Any other use is taken for reading, even if it is none: `name.exists()`,
`print(name)`, handing it to another function, keeping it in an object or a list.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from evaluand.core.fingerprint.bindings import Variables
from evaluand.core.fingerprint.names import CodeNames
from evaluand.core.fingerprint.reads import NAME_KEYWORDS, OPENERS, argument, is_for_writing
from evaluand.core.fingerprint.syntax import Chain, chain_of, chains_of

_WRITERS = frozenset(
    (
        "logging.handlers.TimedRotatingFileHandler",
        "numpy.save",
        "numpy.savetxt",
        "numpy.savez",
        "numpy.savez_compressed",
        "os.makedirs",
        "os.mkdir",
        "os.remove",
        "os.unlink",
    )
)
_WRITING_METHODS = frozenset(("write_text", "write_bytes", "touch", "unlink", "mkdir"))
_EXPORTING_METHODS = frozenset(
    (
        "savefig",
        "to_csv",
        "to_excel",
        "to_feather",
        "to_parquet",
        "write_csv",
        "write_ndjson",
        "write_parquet",
    )
)
_PATHS = frozenset(
    (
        "builtins.str",
        "os.fspath",
        "os.path.abspath",
        "os.path.dirname",
        "os.path.expanduser",
        "os.path.join",
        "os.path.normpath",
        "os.path.realpath",
        "pathlib.Path",
        "pathlib.PurePath",
    )
)
_JOINING_METHODS = frozenset(("joinpath", "with_name", "with_stem", "with_suffix"))
_PLAIN_METHODS = frozenset(("absolute", "as_posix", "expanduser", "resolve"))


@dataclass(frozen=True, slots=True)
class Writing:
    """What a definition does nothing with but write to the file it names.

    Attributes:
        nodes: the `id` of every expression that names such a file, and of what that is made of.
        names: the variables of which every use is among them.
        chains: the names with their attributes of which every use is among them.
        inside: the `id` of everything that stands in such an expression, whatever it does there.
    """

    nodes: Collection[int] = frozenset()
    names: Collection[str] = frozenset()
    chains: Collection[Chain] = frozenset()
    inside: Collection[int] = frozenset()


def writing_in(node: ast.AST, names: CodeNames) -> Writing:
    """What is only written to in some syntax, whose names these are."""
    marks = _Marks(names)
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and (target := marks.target(part)) is not None:
            marks.mark(target)
    variables = Variables(node, names.settings)
    variables.follow(marks.nodes, marks.mark)
    written = {name for name in variables.uses if variables.is_among(name, marks.nodes)}
    return Writing(marks.nodes, written, marks.only(chains_of([node], marks.nodes)), marks.inside)


class _Marks:
    """The expressions found to name files for writing."""

    def __init__(self, names: CodeNames) -> None:
        self.names = names
        self.nodes: set[int] = set()
        self.chains: set[Chain] = set()
        self.inside: set[int] = set()

    def target(self, call: ast.Call) -> ast.expr | None:
        """The expression that names what a call writes to."""
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg in (None, "opener") for k in call.keywords):
            return None
        function = self.names.called(call.func)
        if function is None:
            return _target_of_method(call)
        if function in OPENERS:
            writes = is_for_writing(argument(call, 1, "mode", "filemode"), OPENERS[function])
            return argument(call, 0, *NAME_KEYWORDS) if writes else None
        return argument(call, 0, *NAME_KEYWORDS) if function in _WRITERS else None

    def mark(self, node: ast.expr) -> None:
        """Marks an expression in such a position, and what its value is made of."""
        self.inside.update(map(id, ast.walk(node)))
        waiting: list[ast.expr] = [node]
        while waiting:
            node = waiting.pop()
            chain = chain_of(node)
            if chain:
                self.chains.add(chain)
                self.nodes.update(id(part) for part in ast.walk(node) if isinstance(part, ast.expr))
            elif (made_of := self._made_of(node)) is not None:
                self.nodes.add(id(node))
                waiting.extend(made_of)

    def only(self, others: Collection[Chain]) -> set[Chain]:
        """The chains marked that have nothing in common with others: neither is where the other begins."""
        return {chain for chain in self.chains if not any(_begins_alike(chain, other) for other in others)}

    def _made_of(self, node: ast.expr) -> list[ast.expr] | None:
        """What makes up a file's name without reading anything; None for expressions that may do more."""
        if isinstance(node, ast.Constant):
            return []
        if isinstance(node, ast.Attribute | ast.FormattedValue):
            return [node.value]
        if isinstance(node, ast.JoinedStr):
            return node.values
        if isinstance(node, ast.IfExp):
            return [node.body, node.orelse]
        if isinstance(node, ast.BinOp):
            return [node.left, node.right] if isinstance(node.op, ast.Div | ast.Add | ast.Mod) else None
        return self._made_of_call(node) if isinstance(node, ast.Call) else None

    def _made_of_call(self, call: ast.Call) -> list[ast.expr] | None:
        function = self.names.called(call.func)
        if function in _PATHS:
            return call.args
        if function is None and isinstance(call.func, ast.Attribute):
            if call.func.attr in _JOINING_METHODS:
                return [call.func, *call.args]
            if call.func.attr in _PLAIN_METHODS:
                return [call.func]
        return None


def _target_of_method(call: ast.Call) -> ast.expr | None:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in _WRITING_METHODS or (method == "open" and is_for_writing(argument(call, 0, "mode"), "r")):
        return call.func
    return argument(call, 0, *NAME_KEYWORDS) if method in _EXPORTING_METHODS else None


def _begins_alike(one: Chain, other: Chain) -> bool:
    return all(a == b for a, b in zip(one, other, strict=False))
