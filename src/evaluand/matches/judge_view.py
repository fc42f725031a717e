"""What a judge can see of where an example is: its `_index_`, its place in the dataset and the replication.

A key of judgements has only what the judge can see, so that examples that are moved are not judged again. A judge that
has the argument `example` could read its place from it; it does not if its code reads nothing but other attributes.
"""

from __future__ import annotations

import dis
import types
from dataclasses import dataclass, fields
from typing import Any, Final

from evaluand.data.dataset import Example
from evaluand.evaluation.comparison_scorers import ComparisonScorer, FunctionComparison


@dataclass(frozen=True)
class JudgeView:
    """What a judge can see of where an example is.

    Attributes:
        index: whether it can see `_index_`.
        position: whether it can see the place in the dataset.
        replication: whether it can see the replication.
    """

    index: bool = False
    position: bool = False
    replication: bool = False

    @classmethod
    def of(cls, judge: ComparisonScorer, *, has_ids: bool) -> JudgeView:
        """What a judge can see.

        Args:
            judge: the judge.
            has_ids: whether the dataset has ids; if not, the id of an example is its `_index_`.
        """
        arguments = judge.arguments
        reads = _example_reads(judge) if _EXAMPLE in arguments else frozenset()
        reads_index = "index" in reads or ("id" in reads and not has_ids)
        return cls("index" in arguments or reads_index, "position" in reads, "replication" in arguments)


_EXAMPLE: Final = "example"
_ATTRIBUTES: Final = frozenset({*(field.name for field in fields(Example)), "input_digest"})
_FRAME_READERS: Final = frozenset({"locals", "vars", "eval", "exec", "_getframe", "currentframe", "stack"})


def _example_reads(judge: ComparisonScorer) -> frozenset[str]:
    """The attributes of an example that a judge may read: all of them, unless its code shows which."""
    is_function = type(judge) is FunctionComparison
    if not is_function and getattr(judge.score, "__func__", None) is not ComparisonScorer.score:
        return _ATTRIBUTES
    function: Any = judge.function if is_function else judge.compare  # type: ignore[attr-defined]
    function = getattr(function, "__func__", function)
    if judge.is_batch or not isinstance(function, types.FunctionType):
        return _ATTRIBUTES
    code = function.__code__
    is_argument = _EXAMPLE in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    reads = _name_reads(code, _EXAMPLE) if is_argument else None
    return reads if reads is not None and reads <= _ATTRIBUTES else _ATTRIBUTES


def _name_reads(code: types.CodeType, name: str) -> frozenset[str] | None:
    """The attributes that code and the functions inside read from an argument; None if they may use it otherwise."""
    if not _FRAME_READERS.isdisjoint(code.co_names):
        return None
    reads: set[str] = set()
    instructions = [each for each in dis.get_instructions(code) if each.opname not in _NO_OPERATIONS]
    for instruction, following in zip(instructions, [*instructions[1:], None], strict=True):
        value, operation = instruction.argval, instruction.opname
        names = value if isinstance(value, tuple) else (value,)  # newer versions load two at once
        if operation in _OTHER_NAMES or name not in names:
            continue
        is_load = operation.startswith(_LOADS) and names.index(name) == len(names) - 1
        if not is_load or following is None or following.opname not in _READS:
            return None
        reads.add(following.argval)
    inside = (each for each in code.co_consts if isinstance(each, types.CodeType) and name in each.co_freevars)
    for found in (_name_reads(each, name) for each in inside):
        if found is None:
            return None
        reads |= found
    return frozenset(reads)


_LOADS: Final = ("LOAD_FAST", "LOAD_DEREF")
_READS: Final = ("LOAD_ATTR", "LOAD_METHOD")
_NO_OPERATIONS: Final = ("CACHE", "EXTENDED_ARG", "NOP")
_OTHER_NAMES: Final = (
    *("LOAD_CONST", "RETURN_CONST", "KW_NAMES", "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD"),
    *("MAKE_CELL", "LOAD_CLOSURE"),
)
"""Operations whose value is a constant, another name, or the cell of a variable that functions inside share."""
