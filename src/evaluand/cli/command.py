"""Commands whose options are the parameters of a function, or the fields of a record that it takes.

    @dataclass(frozen=True, kw_only=True)
    class Options:
        file: Path = argument(type=FILE)
        limit: int | None = option("Only the first N examples.", type=click.IntRange(min=1), metavar="N")
        fresh: bool = option("Repeat every call and grade.")

    @make_command("run", epilog=_EXAMPLES)
    def command(options: Options) -> None: ...

The type says what an option is: a `bool` is a flag, a tuple of texts is repeatable, a `Literal` a choice. A field that
is itself a record adds its fields, for options which several commands share. Their order is that of the help.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click
from click.types import StringParamType

from evaluand.core.near import near


class _Line(StringParamType):
    envvar_list_splitter = "\n"


LINES = _Line()
"""The type of repeatable texts: their environment variable holds one per line."""


def make_command(
    name: str, group: click.Group | None = None, **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Decorates a function with its options: a command, or a subcommand of a group.

    Args:
        settings: of `click.Command`, such as its `epilog`.

    Example:
        >>> def greet(whom: str = argument(), loudly: bool = option("Shout.")) -> None:
        ...     click.echo(whom.upper() if loudly else whom)
        >>> make_command("greet")(greet).main(["you", "--loudly"], standalone_mode=False)
        YOU
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        def call(**values: Any) -> Any:
            return function(**_read(function, values))

        call.__doc__ = function.__doc__
        make: Any = click.command if group is None else group.command
        made: click.Command = make(name, cls=Command, params=[*_parameters(function)], **settings)(call)
        return made

    return decorate


def option(help: str, *flags: str, **settings: Any) -> Any:
    """The value of a field, or the default of a parameter, that is an option.

    Args:
        flags: what is typed, if not the name of the field.
        settings: of `click.Option`, if they do not follow from the type of the field.
    """

    def make(name: str, kind: Any) -> click.Option:
        names = flags or (f"--{name.replace('_', '-')}",)
        return click.Option([*names, name], help=help, **{**_settings(kind), **settings})

    return make


def argument(**settings: Any) -> Any:
    """The value of a field, or the default of a parameter, that is an argument; settings as of `click.Argument`."""
    return lambda name, kind: click.Argument([name], **settings)


class Command(click.Command):
    """A command that knows what others call its options: `options` of `near.yaml`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            words = near("options", str(self.name)).get(error.option_name)
            if words is None:
                raise
            raise click.UsageError(f"no such option: {error.option_name}; give {words}", ctx) from None


def _parameters(owner: Any) -> Iterator[click.Parameter]:
    """What click reads for the parameters of a function, or the fields of a record."""
    kinds = get_type_hints(owner)
    for name, parameter in inspect.signature(owner).parameters.items():
        if is_dataclass(kinds[name]):
            yield from _parameters(kinds[name])
        else:
            yield parameter.default(name, kinds[name])


def _read(owner: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of parameters or fields, those of records made from theirs."""
    kinds = get_type_hints(owner)
    return {
        name: kinds[name](**_read(kinds[name], values)) if is_dataclass(kinds[name]) else values[name]
        for name in inspect.signature(owner).parameters
    }


def _settings(kind: Any) -> dict[str, Any]:
    """The settings of an option that follow from the type of its field."""
    if get_origin(kind) in (Union, UnionType):
        kind, *_ = get_args(kind)
    if kind is bool:
        return {"is_flag": True}
    if get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis:
        return {"multiple": True, "type": LINES}
    if get_origin(kind) is Literal:
        return {"type": click.Choice(get_args(kind))}
    return {"type": kind} if kind in (int, float) else {}
