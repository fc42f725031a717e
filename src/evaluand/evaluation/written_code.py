"""The program in a reply: the blocks of code that answer, apart from those that show how it is used or what it prints.

Nothing of a reply is executed here; it is only parsed.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from textwrap import dedent
from threading import Lock
from typing import Final, NamedTuple

from evaluand.models.extraction import Extraction


def read_program(reply: str, wanted: Collection[str], prompt: str = "") -> Extraction:
    r"""The program in a reply: the last block that defines each wanted name, with those that define what it needs.

    Of several blocks that define nothing wanted, all that parse and define something; the last one, or else the
    complete reply, where none does. In a block, statements that only try it out are blank: own assertions, what asks
    for input, calls of what is tested, what prints or asserts without a part in what the program rests on, and what
    gives the name of a function or class to an import or a result. A block is between fences, or else a passage that
    parses. Of a block without an end, and of a passage, the first lines that parse together count.

    Args:
        wanted: the names that are tested.
        prompt: what the reply may continue.

    Example:
        >>> reply = "```python\ndef one():\n    return 1\nassert one() == 2\n```\nIt gives\n```\n1\n```"
        >>> read_program(reply, ["one"]).data
        {'text': 'def one():\n    return 1\n\n', 'rule': 'block 1', 'candidates': 2}
    """
    reply = _LINE_END.sub("\n", reply)
    fenced = [*_fenced(reply)]
    texts = fenced or [*_passages(reply, prompt)]
    numbered = [*enumerate(texts, 1)][-_MOST:]
    coded = set[str]()
    blocks = [block for number, text in numbered if (block := _parse_block(number, text, wanted, prompt, coded))]
    defining = [block for block in blocks if block.defines]
    if not (chosen := _answering(defining, wanted) or (defining or blocks[-1:] if fenced or not wanted else [])):
        return Extraction(fenced[-1], "last block", len(fenced)) if fenced else Extraction(reply, "whole reply")
    if not fenced and texts == [reply]:
        rule = "whole reply"
    else:
        numbers = ", ".join(str(block.number) for block in chosen)
        rule = f"{'block' if fenced else 'passage'}{'s' * (len(chosen) > 1)} {numbers}"
    return Extraction("\n".join(block.code for block in chosen), rule, len(texts))


def names_tested(tests: str) -> set[str]:
    r"""The names that tests use and do not define themselves; none where they do not parse.

    Example:
        >>> sorted(names_tested("from math import pi\nfor n in range(3):\n    assert add(n, pi) == area.of(n)"))
        ['add', 'area']
    """
    tree = _parse(tests)
    return set() if isinstance(tree, int) else _used(tree) - _bound(tree)


class _Block(NamedTuple):
    number: int
    code: str
    defines: frozenset[str]
    needs: frozenset[str]


def _answering(blocks: Sequence[_Block], wanted: Collection[str]) -> list[_Block]:
    chosen: set[_Block] = set()
    names = [*wanted]
    while names:
        name = names.pop()
        block = next((block for block in reversed(blocks) if name in block.defines), None)
        if block and not any(name in other.defines for other in chosen):
            chosen.add(block)
            names += block.needs
    return sorted(chosen, key=lambda block: block.number)


def _parse_block(number: int, text: str, wanted: Collection[str], prompt: str, coded: set[str]) -> _Block | None:
    """A block that parses, as it is or as what continues the prompt; its functions and classes are added to `coded`."""
    for code, head in ((text, ""), (dedent(text), ""), (text, prompt)):
        tree = _parse(head + code)
        if isinstance(tree, int):
            continue
        own = [node for node in tree.body if node.lineno > head.count("\n")]
        if prompt and not head and code is not text and not _defined(own) & set(wanted):
            continue  # an indented body
        trials = _trials(own, wanted, coded)
        defines = set(wanted) if head else _defined(node for node in own if node not in trials)
        kept = [node for node in tree.body if node not in trials]
        needs = set().union(*map(_used, kept)) - set().union(*map(_bound, kept)) - defines
        return _Block(number, _without(trials, code, head.count("\n")), frozenset(defines), frozenset(needs))
    return None


def _trials(nodes: Sequence[ast.stmt], wanted: Collection[str], coded: set[str]) -> dict[ast.stmt, None]:
    """The statements of a module that only try out what it defines, and those that rest on them."""
    definitions = {node.name: node for node in nodes if isinstance(node, _DEFINITION)}
    names_in = {name: _used(code) | _bound(code) for name, code in definitions.items()}
    asserting = {name for name, code in definitions.items() if any(isinstance(n, ast.Assert) for n in ast.walk(code))}
    data = _defined(node for node in nodes if not isinstance(node, (*_DEFINITION, *_IMPORT)))
    free = {name: data & (_used(code) - _bound(code)) for name, code in definitions.items()}
    trials: dict[ast.stmt, None] = {}
    known, unknown = set[str](), set[str]()
    for node in nodes:
        is_trial = _rebinds(node, coded, wanted)
        if not is_trial and not any(isinstance(part, (*_DEFINITION, *_IMPORT)) for part in ast.walk(node)):
            called = _called(node)
            names = (_used(node) | _bound(node)).union(*(names_in[name] for name in called & names_in.keys()))
            talks = "print" in names or called & asserting
            has_part = isinstance(node, _ASSIGNMENT) or any(names & free[name] for name in free.keys() - called)
            is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            is_trial = bool(
                isinstance(node, ast.Assert)
                or (isinstance(node, ast.Expr) and not (is_call and called.isdisjoint(("print", "main", *wanted))))
                or (talks and not has_part)
                or "input" in names
                or not _used(node).isdisjoint(unknown - known)
            )
        if is_trial:
            trials[node] = None
            unknown |= _defined([node]) - coded
        else:
            known |= _defined([node])
            coded |= {node.name} if isinstance(node, _DEFINITION) else set()
    return trials


def _rebinds(node: ast.stmt, coded: set[str], wanted: Collection[str]) -> bool:
    """Whether a statement gives the name of a function or class to an import, or to a result or another value."""
    names = _bound(node) & coded
    if isinstance(node, ast.ImportFrom):
        is_known = (node.module or "").partition(".")[0] in sys.stdlib_module_names
        return bool(names & set(wanted) if is_known else names)
    if not isinstance(node, _ASSIGNMENT):
        return False
    return bool(names if not isinstance(node.value, _CODE) else names & _called(node))


def _called(tree: ast.AST) -> set[str]:
    """The functions that are called by their names."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {function.id for function in calls if isinstance(function, ast.Name)}


def _defined(nodes: Iterable[ast.stmt]) -> set[str]:
    """The names that statements of a module define in it."""
    return {name for node in nodes for name in ([node.name] if isinstance(node, _DEFINITION) else _bound(node))}


_DEFINITION: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORT: Final = (ast.Import, ast.ImportFrom)
_ASSIGNMENT: Final = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_CODE: Final = (ast.Lambda, ast.Call, ast.Name, ast.Attribute)  # what may be a function
_TALK: Final = frozenset(("print", "input"))


def _without(nodes: Iterable[ast.stmt], code: str, offset: int) -> str:
    """Code without statements; the others keep their lines."""
    lines = code.encode().split(b"\n")
    for node in reversed([*nodes]):
        first, last = node.lineno - offset - 1, (node.end_lineno or node.lineno) - offset - 1
        before, after = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        lines[first : last + 1] = [b""] * (last - first + 1)
        lines[first] = before + b"pass" + after if (before + after).strip() else b""
    return b"\n".join(lines).decode()


def _bound(tree: ast.AST) -> set[str]:
    """The names that code defines, at any depth."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITION):
            names.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


def _used(tree: ast.AST) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return names - _BUILT_IN | names & _TALK


_BUILT_IN: Final = frozenset(dir(builtins))


def _fenced(reply: str) -> Iterator[str]:
    """The blocks of Python between fences, without the indentation of these."""
    opened: re.Match[str] | None = None
    lines: list[str] = []
    for line in reply.splitlines():
        fence = _FENCE.match(line)
        if opened is None:
            opened, lines = fence, []
        elif fence and _is_end(fence, opened):
            if opened["language"].casefold() in _LANGUAGES:
                yield _without_prompts("\n".join(lines)) + "\n"
            opened = None
        else:
            indent = len(line) - len(line.lstrip())
            lines.append(line[min(indent, opened.end("indent")) :])
    if opened and opened["language"].casefold() in _LANGUAGES:
        yield _longest(lines) or "\n".join(lines)


def _is_end(fence: re.Match[str], opened: re.Match[str]) -> bool:
    is_near = fence.end("indent") <= opened.end("indent") + 3
    return is_near and not fence["language"] and fence["fence"].startswith(opened["fence"])


_FENCE: Final = re.compile(
    r"(?P<indent>[ \t]*)(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^`]*$"
)
_LANGUAGES: Final = ("", "python", "python3", "py", "pycon", "python-repl")


def _without_prompts(code: str) -> str:
    """What was typed in a session of Python; code that is none as it is."""
    if not code.lstrip().startswith(">>>"):
        return code
    return "\n".join(line.strip()[4:] for line in code.split("\n") if line.strip()[:4] in (">>> ", "... "))


def _passages(reply: str, prompt: str) -> Iterator[str]:
    """The complete reply if it parses, or else its passages that do."""
    if not all(isinstance(_parse(text), int) for text in (reply, dedent(reply), prompt + reply)):
        yield reply
        return
    lines = reply.split("\n")
    if prompt and lines[0][:1].isspace():
        yield _longest(lines, prompt)
        return
    start = 0
    for number in [number for number, line in enumerate(lines) if _BEGINNING.match(line)][:_MOST]:
        if number >= start and (passage := _longest(lines[number:])):
            yield passage
            start = number + passage.count("\n") + 1


_BEGINNING: Final = re.compile(r"@|(?:(?:async\s+)?def|class|import|from)\s|[A-Za-z_]\w*\s*(?::[^=]+)?=\s")


def _longest(lines: Sequence[str], head: str = "") -> str:
    """The most of the first lines that parse together."""
    end = len(lines)
    for _ in range(_TRIES):
        text = "\n".join(lines[:end])
        fault = _parse(head + text)
        if not text.strip() or not isinstance(fault, int):
            return text if text.strip() else ""
        end = max(min(end - 1, fault - head.count("\n") - 1), 0)
    return ""


_TRIES: Final = 20


def _parse(code: str) -> ast.Module | int:
    """The tree of code, or the line in which it cannot be read."""
    if len(code) > _LONGEST:
        return 0
    try:
        with _parsing, warnings.catch_warnings(action="ignore"):  # of escapes such as \d
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return getattr(error, "lineno", None) or 0


_LINE_END: Final = re.compile(r"\r\n?")
_LONGEST: Final = 50_000  # characters
_MOST: Final = 50  # blocks that are looked at
_parsing: Final = Lock()
