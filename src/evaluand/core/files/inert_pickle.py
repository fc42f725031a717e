"""The data of a pickle that somebody else wrote, read without unpickling it.

Unpickling a file runs what it says. Some libraries ship their weights so, as joblib writes them: settings, and NumPy
arrays between the instructions of the pickle. Here only the instructions that build data are followed. Nothing that the
file names is imported, called or made: an object is an `Inert` with the name of what would have made it. No value but a
text is a key: hashing a tuple of tuples, each of them twice in the next, would take forever.
"""

from __future__ import annotations

import io
import math
import pickletools
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from evaluand.core.errors import DataError

_CONSTANTS: Final[dict[str, Callable[[], Any]]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
}
_VALUES: Final = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("SHORT_BINUNICODE", "BINUNICODE", "SHORT_BINBYTES", "BINBYTES"),
}
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_NUMBERS: Final = {"f8": "d", "i8": "q"}  # NumPy's types in the words of `struct`
_ARRAY: Final = "joblib.numpy_pickle.NumpyArrayWrapper"
_MOST_DIMENSIONS: Final = 32
_SCALARS: Final = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")


@dataclass(eq=False)
class Inert:
    """An object that unpickling would make.

    Attributes:
        maker: the full name of its class, or of the function that returns it.
        arguments: those of the call.
        state: what its `__setstate__` would get, mostly its attributes.
    """

    maker: str
    arguments: tuple[Any, ...]
    state: Any = None


@dataclass(frozen=True, eq=False)
class Array:
    """A NumPy array: its shape, and its numbers row by row."""

    shape: tuple[int, ...]
    numbers: tuple[float, ...]


class _Name(str):
    """The full name of a class or a function, which is all that is known of it."""

    __slots__ = ()


def read_inert(content: bytes, packages: Collection[str]) -> Any:
    """The value of a pickle: texts, numbers, lists, tuples, dictionaries, `Array`s and `Inert` objects.

    Args:
        content: as `pickle` or `joblib.dump` write it, without compression.
        packages: the only ones that it may name.

    Raises:
        DataError: it is something else, is damaged, or names another package.

    Example:
        >>> import datetime, pickle
        >>> read_inert(pickle.dumps(datetime.timedelta(1)), ["datetime"])
        Inert(maker='datetime.timedelta', arguments=(1, 0, 0), state=None)
    """
    machine = _Machine(content, packages)
    try:
        return machine.run()
    except (ValueError, TypeError, LookupError, struct.error):
        raise DataError("is no pickle, or is damaged") from None


class _Machine:
    """The stack machine of pickles, for instructions that build data."""

    def __init__(self, content: bytes, packages: Collection[str]) -> None:
        self._file = io.BytesIO(content)
        self._packages = packages
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # the stacks below the marks
        self._memo: list[Any] = []

    def run(self) -> Any:
        for instruction, argument, _ in pickletools.genops(self._file):
            self._follow(instruction.name, argument)
        (value,) = self._stack
        return value

    def _follow(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name]())
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(self._last(_TUPLES[name]))]
        elif name == "MEMOIZE":
            self._memo.append(stack[-1])
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif name == "MARK":
            self._below.append(stack)
            self._stack = []
        elif name == "STACK_GLOBAL":
            stack[-2:] = [self._name(*self._last(2))]
        elif name in ("NEWOBJ", "REDUCE"):
            stack[-2:] = [self._make(*self._last(2))]
        elif name == "BUILD":
            stack[-2:] = [self._set_state(*self._last(2))]
        elif name in ("TUPLE", "APPEND", "APPENDS", "SETITEM", "SETITEMS"):
            self._gather(name)
        elif name not in ("PROTO", "FRAME", "STOP"):
            raise DataError(f"is a pickle with the instruction {name}, which is not followed")

    def _last(self, count: int) -> list[Any]:
        if len(self._stack) < count:
            raise ValueError
        return self._stack[-count:]

    def _gather(self, name: str) -> None:
        """Moves values from the top of the stack into a tuple, a list or a dictionary."""
        if name in ("TUPLE", "APPENDS", "SETITEMS"):
            values, self._stack = self._stack, self._below.pop()
        else:
            count = 1 if name == "APPEND" else 2
            values = self._last(count)
            del self._stack[-count:]
        if name == "TUPLE":
            self._stack.append(tuple(values))
        elif name in ("APPEND", "APPENDS") and type(self._stack[-1]) is list:
            self._stack[-1].extend(values)
        elif name in ("SETITEM", "SETITEMS") and type(self._stack[-1]) is dict:
            if not all(type(key) is str for key in values[::2]):
                raise ValueError
            self._stack[-1].update(zip(values[::2], values[1::2], strict=True))
        else:
            raise ValueError

    def _name(self, module: Any, name: Any) -> _Name:
        if type(module) is not str or type(name) is not str:
            raise ValueError
        full = f"{module}.{name}"
        if full.partition(".")[0] not in self._packages:
            raise DataError(f"is a pickle that names {full[:100]!r}, which its data do not need")
        return _Name(full)

    def _make(self, maker: Any, arguments: Any) -> Any:
        if not isinstance(maker, _Name) or not isinstance(arguments, tuple):
            raise ValueError
        if maker in _SCALARS:
            form, content = arguments
            (number,) = struct.unpack(_form(form, 1), content)
            return number
        return Inert(str(maker), arguments)

    def _set_state(self, made: Any, state: Any) -> Any:
        if not isinstance(made, Inert):
            raise ValueError
        made.state = state
        return self._read_array(state) if made.maker == _ARRAY else made

    def _read_array(self, state: Any) -> Array:
        """The numbers that follow the instruction, after one byte that counts bytes to leave out."""
        shape = state["shape"]
        most = len(self._file.getbuffer())
        if len(shape) > _MOST_DIMENSIONS or not all(type(length) is int and 0 <= length <= most for length in shape):
            raise ValueError
        if state["order"] != "C":
            raise DataError("is a pickle with an array that is not stored row by row")
        if state.get("numpy_array_alignment_bytes") is not None:
            self._file.read(self._file.read(1)[0])
        form = _form(state["dtype"], math.prod(shape))
        return Array(shape, struct.unpack(form, self._file.read(struct.calcsize(form))))


def _form(dtype: Any, count: int) -> str:
    """So many numbers of a NumPy type, in the words of `struct`."""
    if not isinstance(dtype, Inert) or dtype.maker != "numpy.dtype" or dtype.arguments[0] not in [*_NUMBERS]:
        raise DataError("is a pickle with numbers of other types than float64 and int64")
    if dtype.state[1] not in ("<", ">"):
        raise ValueError
    return f"{dtype.state[1]}{count}{_NUMBERS[dtype.arguments[0]]}"
