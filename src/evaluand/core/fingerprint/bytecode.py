"""What bytecode says: which names outside itself it uses, and what it does, wherever it lies.

It is exact for global names, which syntax alone cannot distinguish from local ones, and all there is for a function
without source.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.fingerprint.syntax import Chain, Import
from evaluand.core.fingerprint.tokens import leaf, mix, of_integer


@dataclass
class Uses:
    """What code takes from outside itself.

    Attributes:
        chains: global names with the attributes taken from them.
        stored: global names that it assigns.
        imports: level, module and attribute chain of what it imports itself.
    """

    chains: set[Chain] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    imports: set[Import] = field(default_factory=set)


def uses_of(code: types.CodeType) -> Uses:
    """What bytecode says of its uses: exact for globals, only whole modules for imports."""
    uses = Uses()
    for inner in nested(code):
        _collect(list(dis.get_instructions(_without_numbers(inner))), uses)
    return uses


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and all that are defined inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from nested(constant)


def code_token(code: types.CodeType) -> bytes:
    """What a code object does, without its place in the file."""
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_qualname, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return mix(
        "code",
        leaf("shape", repr(shape).encode()),
        leaf("names", repr(names).encode()),
        leaf("instructions", code.co_code),
        leaf("exceptions", code.co_exceptiontable),
        *map(_constant_token, code.co_consts),
    )


_LOADS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))


def _without_numbers(code: types.CodeType) -> types.CodeType:
    """The same code without integers: `dis` writes them out, and Python refuses that for very large ones."""
    return code.replace(co_consts=tuple(0 if type(value) is int and value >> 64 else value for value in code.co_consts))


def _collect(instructions: Sequence[dis.Instruction], uses: Uses) -> None:
    chain: list[str] = []
    for i, instruction in enumerate(instructions):
        if chain and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            chain.append(instruction.argval)
            continue
        if chain:
            uses.chains.add(tuple(chain))
        chain = [instruction.argval] if instruction.opname in _LOADS else []
        if instruction.opname == "STORE_GLOBAL":
            uses.stored.add(instruction.argval)
            uses.chains.add((instruction.argval,))
        elif instruction.opname == "IMPORT_NAME":
            uses.imports.add((instructions[i - 2].argval or 0, instruction.argval, ()))


def _constant_token(value: Any) -> bytes:
    if isinstance(value, types.CodeType):
        return code_token(value)
    if isinstance(value, tuple):
        return mix("tuple", *map(_constant_token, value))
    if isinstance(value, frozenset):
        return mix("set", *sorted(map(_constant_token, value)))
    if type(value) is int:
        return of_integer(value)
    return leaf(type(value).__name__, repr(value).encode("utf-8", "surrogatepass"))
