"""What to type in place of a command that does not exist."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from shlex import join

from evaluand.cli.options import DATA_SUFFIXES
from evaluand.core.near import near


def advise(name: str, rest: Sequence[str], commands: Iterable[str]) -> str:
    """The end of a message about an unknown command: what to type.

    Args:
        name: the unknown command.
        rest: the arguments after it.

    Example:
        >>> advise("lst", [], ["list", "run"]), advise("evaluate", ["e.yaml"], ["run"])
        ('did you mean `evaluand list`?', 'type `evaluand run e.yaml`')
    """
    known, lower = [*commands], name.lower()
    if lower in known:
        return f"type `evaluand {join([lower, *rest])}`"
    if command := command_for([name]):
        return f"type `evaluand {join([command, name, *rest])}`"
    words, command = near("commands").get(lower), command_for(rest)
    if words == near("commands")["evaluate"] and command:
        return f"type `evaluand {join([command, *rest])}`"
    if lower == "inspect" and command == "run":
        return (
            f"type `evaluand {join(['validate', '--access', *rest])}`, which shows what it would use and uses nothing"
        )
    if words:
        return words
    close = get_close_matches(lower, known, n=1)
    return f"did you mean `evaluand {close[0]}`?" if close else f"the commands are {', '.join(known)}"


def command_for(arguments: Sequence[str]) -> str | None:
    """The command that takes a file with this suffix as its first argument."""
    suffix = PurePath(arguments[0]).suffix.lower() if arguments else ""
    if suffix in (".yaml", ".yml"):
        return "run"
    return "score" if suffix in DATA_SUFFIXES else None
