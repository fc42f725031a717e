"""Tools: functions whose calls a model may request.

The model receives the name of a `Tool`, a description and the JSON Schema of its arguments. For functions they are made
from its signature, type hints and docstring. A function is called only by `Tool.call`.
"""

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    Final,
    NotRequired,  # pydantic reads those of the standard library from 3.12 on
)

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from typing_extensions import TypedDict

from evaluand.core.errors import SpecError, TaskError

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Tool:
    """A tool that a model may use.

    Args:
        name: letters, digits, `_` and `-`.
        description: what it does, for the model.
        schema: the JSON Schema of its arguments, an object.
        function: the function to call; None if the caller handles the calls.

    Raises:
        SpecError: the name cannot be sent, or the schema is not that of an object.

    Example:
        >>> def add(a: int, b: int = 0) -> int:
        ...     \"\"\"Add two numbers.\"\"\"
        ...     return a + b
        >>> tool = Tool.of(add)
        >>> tool.name, tool.description, tool.schema["required"], tool.call({"a": 2, "b": 2})
        ('add', 'Add two numbers.', ['a'], 4)
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    function: Callable[..., Any] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise SpecError(f"tool {self.name!r}: give a name of at most 64 letters, digits, _ and -")
        if self.schema.get("type") != "object":
            raise SpecError(
                f"tool {self.name!r}: its schema must be that of an object, {{type: object, properties: …}}"
            )

    @classmethod
    def of(cls, tool: "Tool | Callable[..., Any]") -> "Tool":
        """A tool from a function, or the tool itself.

        Raises:
            SpecError: the arguments of the function cannot be described.
        """
        if isinstance(tool, Tool):
            return tool
        name = getattr(tool, "__name__", type(tool).__name__)
        described, of_arguments = _read_docstring(inspect.getdoc(tool) or "")
        try:
            adapter = _adapter(name, tool, of_arguments)
            schema = adapter.json_schema()
        except (PydanticUserError, NameError, ValueError, TypeError) as error:
            problem = str(error).partition("\n")[0]
            raise SpecError(f"tool {name!r}: its arguments cannot be described: {problem}") from None
        return cls(name, described, _without_titles(schema), tool)

    def call(self, arguments: Mapping[str, Any] | None) -> Any:
        """The result of the function for arguments of a model; an awaitable if it is a coroutine function.

        Raises:
            TaskError: the arguments do not fit; the message can be sent to the model.
            SpecError: the tool has no function.
        """
        if self.function is None:
            raise SpecError(f"tool {self.name!r} has no function to call")
        if arguments is None:
            raise TaskError(f"the arguments of {self.name} are no JSON object", code="arguments")
        try:
            read = _adapter(self.name, self.function, {}).validate_python(dict(arguments))
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise TaskError(f"the arguments of {self.name} do not fit: {faults}", code="arguments") from None
        return self.function(**read)


def read_tools(tools: Iterable[Tool | Callable[..., Any]]) -> tuple[Tool, ...]:
    """Tools and functions as tools.

    Raises:
        SpecError: two have the same name, or one cannot be described.
    """
    read = tuple(map(Tool.of, tools))
    names = [tool.name for tool in read]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SpecError(f"two tools have the name {twice[0]!r}; rename one")
    return read


def _adapter(name: str, function: Callable[..., Any], described: Mapping[str, str]) -> TypeAdapter[Any]:
    """Reads the arguments of a function."""
    hints = typing.get_type_hints(
        function if inspect.isroutine(function) else type(function).__call__, include_extras=True
    )
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{parameter} cannot be passed by name")
        hint: Any = Annotated[hints.get(parameter.name, Any), Field(description=described.get(parameter.name))]
        fields[parameter.name] = hint if parameter.default is parameter.empty else NotRequired[hint]
    make: Any = TypedDict
    arguments = make(name, fields)
    arguments.__pydantic_config__ = {"extra": "forbid"}
    return TypeAdapter(arguments)


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description of a function, and that of each argument, from a docstring in Google style."""
    description, _, rest = text.partition("\nArgs:\n")
    block = re.split(r"\n(?=\S)", rest, maxsplit=1)[0] if rest else ""
    found = re.findall(r"^ {2,8}\*{0,2}(\w+)(?: *\([^)]*\))?: *(.*(?:\n {6,}.*)*)", block, re.MULTILINE)
    arguments = {name: " ".join(words.split()) for name, words in found}
    return re.split(r"\n(?:Returns|Raises|Yields|Examples?):\n", description)[0].strip(), arguments


def _without_titles(schema: Any) -> Any:
    """A schema without the titles that pydantic adds to each part."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {one: _without_titles(part) for one, part in value.items()} if name in _NAMED else _without_titles(value)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str))
    }


_NAMED: Final = ("properties", "$defs")  # whose keys are names of the user
