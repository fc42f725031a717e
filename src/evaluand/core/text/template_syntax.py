"""What a template says before it is rendered: its variables, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from jinja2 import TemplateSyntaxError, nodes
from jinja2.meta import find_undeclared_variables

from evaluand.core.errors import nearest
from evaluand.core.text.template_sandbox import MOST_CHARACTERS, SANDBOX


class Remark(NamedTuple):
    """Something about a template, and the line where it is."""

    line: int
    text: str


@dataclass(frozen=True)
class Syntax:
    """What a template consists of.

    Attributes:
        variables: name → the line of its first use.
        optional: the variables that it can do without: it asks whether they are defined, or has a default.
        braces: the words in single braces, which are written as they are.
        faults: what is wrong with it, whatever the values are.
    """

    variables: Mapping[str, int]
    optional: frozenset[str]
    braces: tuple[Remark, ...]
    faults: tuple[Remark, ...]


def read_syntax(text: str) -> Syntax:
    """What a template consists of; of a text with faults these alone."""
    if len(text) > MOST_CHARACTERS:
        return Syntax({}, frozenset(), (), (Remark(1, f"is longer than {MOST_CHARACTERS:,} characters"),))
    try:
        tree = SANDBOX.parse(text)
    except TemplateSyntaxError as error:
        return Syntax({}, frozenset(), (), (_explain(error, text),))
    except RecursionError:
        return Syntax({}, frozenset(), (), (Remark(1, "is nested too deeply"),))
    if faults := sorted(_faults(tree)):
        return Syntax({}, frozenset(), (), tuple(faults))
    return Syntax(_variables(tree), frozenset(_optional(tree)), tuple(_braces(tree)), ())


def _explain(error: TemplateSyntaxError, text: str) -> Remark:
    """Why a text is no template, at the first pair of braces that is not closed, if there is one."""
    why = f"not a Jinja template: {error.message}"
    for found in _OPENING.finditer(text):
        closing = _CLOSING[found[0]]
        end, following = text.find(closing, found.end()), _OPENING.search(text, found.end())
        if end < 0 or (following is not None and following.start() < end):
            line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
            return Remark(line, f"{why}; the {found[0]} in column {column} has no {closing}")
    return Remark(error.lineno, why)


def _variables(tree: nodes.Template) -> dict[str, int]:
    names = find_undeclared_variables(tree)
    found: dict[str, int] = {}
    for node in sorted(tree.find_all(nodes.Name), key=lambda node: node.lineno):
        if node.name in names:
            found.setdefault(node.name, node.lineno)
    return found


def _optional(tree: nodes.Template) -> Iterator[str]:
    asking = [node for node in tree.find_all(nodes.Test) if node.name in ("defined", "undefined")]
    replacing = [node for node in tree.find_all(nodes.Filter) if node.name in ("d", "default")]
    for node in (*asking, *replacing):
        if isinstance(node.node, nodes.Name):
            yield node.node.name


def _braces(tree: nodes.Template) -> Iterator[Remark]:
    for data in tree.find_all(nodes.TemplateData):
        for found in _BRACES.finditer(data.data):
            yield Remark(data.lineno + data.data.count("\n", 0, found.start()), found[1])


def _faults(tree: nodes.Template) -> Iterator[Remark]:
    for refused in tree.find_all(tuple(_REFUSED)):
        yield Remark(refused.lineno, f"{{% {_REFUSED[type(refused)]} %}} is not available")
    known: Mapping[Any, Mapping[str, Any]] = {nodes.Filter: SANDBOX.filters, nodes.Test: SANDBOX.tests}
    for node in tree.find_all((nodes.Filter, nodes.Test)):
        if node.name not in known[type(node)]:
            what = type(node).__name__.lower()
            yield Remark(node.lineno, f"no {what} is called {node.name!r}{nearest(node.name, known[type(node)])}")


_BRACES: Final = re.compile(r"(?<!\{)\{\s*([A-Za-z_]\w*)\s*\}(?!\})", re.ASCII)
_OPENING: Final = re.compile(r"\{[{%]")
_CLOSING: Final = {"{{": "}}", "{%": "%}"}
_REFUSED: Final[Mapping[Any, str]] = {
    nodes.Block: "block",
    nodes.Extends: "extends",
    nodes.FromImport: "from",
    nodes.Import: "import",
    nodes.Include: "include",
}
"""Statements for templates in several files."""
