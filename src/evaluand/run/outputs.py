"""The outputs of tasks that declare an `output_schema`: each is validated, and an invalid one fails its row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from evaluand.core import identity
from evaluand.core.errors import SpecError, TaskError
from evaluand.core.fingerprint import Identity
from evaluand.data import schema as schemas  # which loads pydantic with the first schema
from evaluand.run.task import Candidates, Task


class InvalidOutput(TaskError):
    """The output of a task breaks its `output_schema`."""


def output_schema(task: Task[Any, Any]) -> schemas.ValueSchema | None:
    """The schema of a task's outputs, if it declares one.

    Raises:
        SpecError: what it declares is no schema.
    """
    if task.output_schema is None:
        return None
    try:
        return schemas.ValueSchema.of(task.output_schema)
    except SpecError as error:
        raise SpecError("\n".join(f"output_schema: {line}" for line in str(error).split("\n"))) from None


def identify(task: Task[Any, Any]) -> Identity:
    """The identity of a task with the schema of its outputs, which decides which of its rows fail."""
    found, schema = task.identify(), output_schema(task)
    if schema is None or "output_schema" in found.spec:
        return found
    parts = {**found.parts, "output_schema": identity.digest(schema.spec).hex()}
    return replace(found, spec={**found.spec, "output_schema": schema.spec}, parts=parts)


def check_outputs(task: Task[Any, Any], call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A call of a task whose outputs are validated against its schema, if it has one.

    An output of several candidates is valid if each is; if the task declares items, each item is validated. No answer
    (None) is not validated.
    """
    schema = None if task.checks_outputs else output_schema(task)
    if schema is None:
        return call
    return partial(_checked_async if inspect.iscoroutinefunction(call) else _checked, call, schema, task.items)


def _checked(call: Callable[[Any], Any], schema: schemas.ValueSchema, items: bool, unit: Any) -> Any:
    return _check(call(unit), schema, items)


async def _checked_async(call: Callable[[Any], Any], schema: schemas.ValueSchema, items: bool, unit: Any) -> Any:
    return _check(await call(unit), schema, items)


def _check(output: Any, schema: schemas.ValueSchema, items: bool) -> Any:
    for name, value in _parts(output, items):
        if fault := schema.fault(value, name):
            raise InvalidOutput(f"{fault}: it does not fit the output schema", code="schema")
    return output


def _parts(output: Any, items: bool) -> Iterator[tuple[str, Any]]:
    """What is validated of an output, with its name in messages."""
    if output is None:
        return
    several = isinstance(output, Candidates)
    for number, answer in enumerate(output.values if several else (output,)):
        name = f"output {number}" if several else "output"
        if items and isinstance(answer, list | tuple):
            yield from ((f"{name}, item {place}", item) for place, item in enumerate(answer))
        else:
            yield name, answer
